//===- ProfileTest.cpp - Logs of time stamps ------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of profile builds behind a fake driver: the room that their logs
// have, what becomes of marks that do not fit, clocks that differ, and every
// refusal.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"
#include "fi/ABI/KernelABI.h"

#include <gtest/gtest.h>

using namespace fi::test;

namespace {

/// Cycles of a multiprocessor begin anywhere and are 0.5 ns long.
uint64_t clockOf(uint64_t nanoseconds, uint32_t sm) {
  return nanoseconds * 2 + 1000000007u * (sm + 1);
}

class Profile : public ::testing::Test {
protected:
  static constexpr uint32_t kWarps = 4;
  /// Of an item of the kernel: a prologue of 100 ns, tiles of 400, an end.
  static constexpr uint64_t kItem = 1000, kPrologue = 100, kTiles = 400;

  void SetUp() override {
    program.bodies = {{4, 16, -1, 0, 10, 100, 10}};
    recorder.visible = [](const Pair &) { return true; };
    batch.queryLengths = {1, 3, 1};
    batch.keyLengths = {300, 9, 40};
    manifest = deviceManifest(program);
    plain = gpu.driver.kernels["body0"];
    profile = json::parse(R"({
      "launch": 0, "item": 4, "tile": 0,
      "marks": [{"kind": "phase", "name": "prologue"},
                {"kind": "phase", "name": "full tiles"},
                {"kind": "moment", "name": "first"}, {"kind": "end"}],
      "roles": [{"name": "load", "warps": 1}, {"name": "compute", "warps": 3}]})");
  }

  void open() {
    manifest["stages"][0]["bodies"][0]["launch"]["profile"] = profile;
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    gpu.driver.kernels["body0"] = [this](FakeCta cta) {
      auto *log = reinterpret_cast<fi_mark_log *>(cta.params[--cta.paramCount]);
      write(cta, *log);
      plain(cta);
    };
    batch.bind(program, recorder);
    gpu.adopt(batch);
    options = gpu.options();
    options.split_policy = FI_SPLIT_NONE;
  }

  /// What the warps of a CTA write.
  void write(const FakeCta &cta, fi_mark_log &log) const {
    size_t part = sizeof(fi_warp_marks) + log.capacity * sizeof(fi_mark);
    EXPECT_NE(log.run, 0u);
    int64_t begin = cta.params[cta.paramCount - 2],
            end = cta.params[cta.paramCount - 1];
    uint32_t sm = uint32_t(cta.cta % 2);
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      char *at = reinterpret_cast<char *>(&log + 1) +
                 (size_t(cta.cta) * kWarps + warp) * part;
      auto *head = reinterpret_cast<fi_warp_marks *>(at);
      auto *marks = reinterpret_cast<fi_mark *>(head + 1);
      uint64_t time = 5000000000 + uint64_t(cta.cta) * 10000;
      // The timer that all share moves by 32 ns.
      *head = {time / 32 * 32, clockOf(time, sm), 0, 0, 0, 0, sm, log.run};
      auto mark = [&](uint64_t after, uint32_t number, int64_t item) {
        if (head->written == log.capacity)
          ++head->dropped;
        else
          marks[head->written++] = {clockOf(time + after, sm), number,
                                    int32_t(item)};
      };
      for (int64_t i = begin + cta.cta; i < end; i += cta.ctas) {
        mark(0, 0, i);
        mark(kPrologue, 2, i);
        mark(kPrologue, 1, i);
        mark(kPrologue + kTiles, 3, i);
        time += kItem;
      }
      head->end_time = time / 32 * 32;
      head->end_clock = clockOf(time, sm);
    }
  }

  std::string timeline(fi_plan *plan, fi_status expected = FI_OK) {
    char *text = nullptr;
    EXPECT_EQ(fi_plan_timeline_json(plan, nullptr, &text), expected)
        << fi_last_error();
    std::string copy = text ? text : fi_last_error();
    fi_string_free(text);
    return copy;
  }

  FakeGpu gpu;
  FakeKernel plain;
  FakeProgram program;
  FakeBatch batch;
  Recorder recorder;
  json manifest, profile;
  fi_plan_options options = {};
};

TEST_F(Profile, TellsPhasesOfAllItems) {
  open();
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(timeline(p.get(), FI_INVALID_ARGUMENT),
            "timeline: expected a run of the plan of 'counting', generation "
            "1, that has ended, but there was none");
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  json trace = json::parse(timeline(p.get()));
  size_t items = 0, phases = 0, moments = 0, warps = 0;
  std::map<int64_t, double> ends; // of phases, by thread
  for (const json &event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      ++warps;
      std::string role = event["args"]["role"];
      EXPECT_EQ(role, event["args"]["name"].get<std::string>().find("load") ==
                              std::string::npos
                          ? "compute"
                          : "load");
    }
    if (event["ph"] == "i") {
      ++moments;
      EXPECT_EQ(event["name"], "first");
    }
    if (event["ph"] != "X")
      continue;
    bool isItem = event["cat"] == "item";
    double length = event["dur"], start = event["ts"];
    EXPECT_GE(start, -0.001);
    if (isItem) {
      ++items;
      EXPECT_NEAR(length, (kPrologue + kTiles) / 1000.0, 0.01);
      EXPECT_NE(event["name"].get<std::string>().find("KV head"),
                std::string::npos);
      continue;
    }
    ++phases;
    EXPECT_NEAR(length,
                (event["name"] == "prologue" ? kPrologue : kTiles) / 1000.0,
                0.01)
        << event;
    double &last = ends[event["tid"]];
    EXPECT_GE(start, last - 0.002) << "phases follow one another";
    last = start + length;
  }
  int64_t planned = 0;
  for (const fi_driver_launch &launch : gpu.driver.launches)
    planned += launch.grid[0];
  EXPECT_EQ(warps, size_t(planned) * kWarps);
  EXPECT_EQ(items, moments);
  EXPECT_EQ(phases, 2 * items);
  EXPECT_EQ(items % kWarps, 0u);
  EXPECT_GT(items, 0u);
  EXPECT_EQ(trace["otherData"]["dropped"], 0);
  EXPECT_EQ(trace["otherData"]["marks"], 4 * items);
  EXPECT_NEAR(trace["otherData"]["clock_mhz"].get<double>(), 2000, 20);
}

/// The log has fewer bytes than the batch needs: what does not fit is counted,
/// and the phase that was under way lasts as long as the warp.
TEST_F(Profile, CountsMarksThatDoNotFit) {
  open();
  manifest["stages"][0]["bodies"][0]["launch"]["grid"] = "persistent";
  manifest["stages"][0]["bodies"][0]["launch"]["ctas_per_sm"] = 1;
  gpu.driver.devices[0].multiprocessors = 1;
  fi_device_release(gpu.device);
  gpu.device = nullptr;
  open();
  options.profile_bytes = 16 + kWarps * (48 + 7 * 16);
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  ASSERT_EQ(gpu.driver.launches.back().grid[0], 1u);
  json trace = json::parse(timeline(p.get()));
  int64_t kept = trace["otherData"]["marks"],
          dropped = trace["otherData"]["dropped"];
  EXPECT_EQ(kept, 7 * kWarps);
  EXPECT_GT(dropped, 0);
  EXPECT_EQ((kept + dropped) % (4 * kWarps), 0);
  // With all the room that it needs, nothing is dropped.
  options.profile_bytes = 0;
  p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  trace = json::parse(timeline(p.get()));
  EXPECT_EQ(trace["otherData"]["dropped"], 0);
  EXPECT_EQ(trace["otherData"]["marks"], kept + dropped);
}

/// What a batch before has left in the same memory is not this one's.
TEST_F(Profile, UpdatesBeginAnew) {
  open();
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  for (uint64_t generation = 1; generation < 5; ++generation) {
    EXPECT_EQ(
        timeline(p.get(), FI_INVALID_ARGUMENT),
        "timeline: expected a run of the plan of 'counting', generation " +
            std::to_string(generation) +
            ", that has ended, but there was none");
    ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
    EXPECT_EQ(json::parse(timeline(p.get()))["otherData"]["generation"],
              generation);
    ASSERT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              FI_OK)
        << fi_last_error();
  }
  p.reset();
  gpu.package.reset();
  fi_device_release(gpu.device);
  gpu.device = nullptr;
  EXPECT_EQ(gpu.driver.liveAllocations(), 0u);
}

TEST_F(Profile, Refusals) {
  // Not a profile build.
  gpu.open(manifest);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  batch.bind(program, recorder);
  gpu.adopt(batch);
  PlanPtr p = planBatch(gpu.package.get(), batch, gpu.options());
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(timeline(p.get(), FI_INVALID_ARGUMENT),
            "timeline: expected a package that was compiled for profiling, but "
            "'counting' was not; compile it with --profile, or with fi.profile "
            "on its module");
  open();
  fi_status status = FI_OK;
  options.profile_bytes = -1;
  EXPECT_FALSE(planBatch(gpu.package.get(), batch, options, &status));
  EXPECT_EQ(status, FI_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(fi_last_error()),
            "plan: options.profile_bytes: expected 0 (256 MiB) or the most "
            "bytes of logs of time stamps, but got -1");
  options.profile_bytes = 10;
  EXPECT_FALSE(planBatch(gpu.package.get(), batch, options, &status));
  EXPECT_EQ(status, FI_INVALID_ARGUMENT);
  EXPECT_NE(std::string(fi_last_error())
                .find("bytes, which the warps of this batch need before any "
                      "mark, but got 10"),
            std::string::npos)
      << fi_last_error();
  options.profile_bytes = 0;
  options.graph_safe = 1;
  options.split_policy = FI_SPLIT_DEFAULT;
  EXPECT_FALSE(planBatch(gpu.package.get(), batch, options, &status));
  EXPECT_EQ(status, FI_UNSUPPORTED);
  EXPECT_EQ(std::string(fi_last_error()),
            "attention0: kernel 'body0' of package 'counting': expected a plan "
            "that is not graph-safe of a package compiled for profiling, "
            "because each batch needs logs of its own; plan without "
            "graph_safe");
  // Memory that the driver does not have.
  options = gpu.options();
  gpu.driver.failOn("memory_alloc", FI_DRIVER_ERROR, "no memory");
  EXPECT_FALSE(planBatch(gpu.package.get(), batch, options, &status));
  gpu.driver.failOn("", 0, "");
  // Manifests that contradict themselves.
  auto opened = [&](const std::function<void(json &)> &spoil) {
    json changed = manifest;
    spoil(changed["stages"][0]["bodies"][0]["launch"]["profile"]);
    std::string text = changed.dump(), ptx = devicePtx();
    fi_code code = {FI_DRIVER_PTX, ptx.data(), ptx.size()};
    fi_package *package = nullptr;
    EXPECT_EQ(
        fi_package_from_code(text.data(), text.size(), &code, 1, &package),
        FI_INVALID_PACKAGE);
    return std::string(fi_last_error());
  };
  auto has = [](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(opened([](json &of) { of["roles"][0]["warps"] = 2; }),
      "profile.roles: expected the warps of 128 threads, but got");
  has(opened([](json &of) { of["marks"] = json::array(); }),
      "profile.marks: expected at least one mark, but got []");
  has(opened([](json &of) { of["marks"][0]["kind"] = "now"; }),
      "profile.marks[0].kind: expected 'phase', 'moment' or 'end', but got "
      "\"now\"");
  has(opened([](json &of) { of["marks"][0].erase("name"); }),
      "profile.marks[0]: expected a member 'name', but there is none");
  has(opened([](json &of) { of["item"] = -1; }),
      "profile.item: expected an integer from 0 to 1048576, but got -1");
}

TEST_F(Profile, OfThePlansOfACpu) {
  PackagePtr cpu(openFake(program.manifest()));
  ASSERT_TRUE(cpu) << fi_last_error();
  batch.bind(program, recorder);
  fi_plan_options none = {};
  none.struct_size = sizeof(none);
  PlanPtr p = planBatch(cpu.get(), batch, none);
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(timeline(p.get(), FI_UNSUPPORTED),
            "timeline: expected a plan for a GPU, whose kernels note the time, "
            "but package 'counting' is compiled for the cpu");
}

} // namespace
