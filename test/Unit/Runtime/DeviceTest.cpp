//===- DeviceTest.cpp - Plans and runs on a device ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packages, plans and runs on a device behind a fake driver: results, what is
// called when, memory, and every refusal.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <gtest/gtest.h>

using namespace fi::test;

namespace {

class Device : public ::testing::Test {
protected:
  void SetUp() override {
    program.bodies = {{4, 16, -1, 0, 10, 100, 10}};
    program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    batch.queryLengths = {1, 9, 1, 0, 3};
    batch.keyLengths = {3000, 40, 7, 0, 90};
    batch.trailingRows = 2;
    gpu.open(deviceManifest(program));
    ASSERT_TRUE(gpu.package) << fi_last_error();
    batch.bind(program, recorder);
    options = gpu.options();
    options.rows = batch.rows();
  }

  PlanPtr plan(fi_status *status = nullptr) {
    return planBatch(gpu.package.get(), batch, options, status);
  }

  FakeGpu gpu;
  FakeProgram program;
  FakeBatch batch;
  Recorder recorder;
  fi_plan_options options;
};

TEST_F(Device, PlansAndRuns) {
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(fi_plan_workers(p.get()), 2 * 108);
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  // The long request was split: a body and a merge.
  ASSERT_EQ(gpu.driver.launches.size(), 2u);
  EXPECT_EQ(gpu.driver.launches[0].block[0], 128u);
  EXPECT_GT(gpu.driver.launches[0].grid[0], 90u);
}

/// A run launches and does nothing else that could not be captured, nor
/// anything that waits.
TEST_F(Device, RunsAreLaunchesOnly) {
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  gpu.driver.clear();
  Workspace workspace(fi_plan_workspace_bytes(p.get()));
  gpu.driver.adopt(workspace.data(), workspace.size() + 1);
  void *stream = reinterpret_cast<void *>(0x77);
  for (int layer = 0; layer < 3; ++layer)
    ASSERT_EQ(fi_run_device(p.get(), 0, batch.run.data(),
                            int32_t(batch.run.size()), batch.results.data(), 2,
                            workspace.data(), workspace.size(), stream),
              FI_OK)
        << fi_last_error();
  for (const std::string &call : gpu.driver.calls)
    EXPECT_TRUE(call == "launch" || call == "pointer_info") << call;
  EXPECT_EQ(gpu.driver.launches.size(), 6u);
  for (const fi_driver_launch &launch : gpu.driver.launches)
    EXPECT_EQ(launch.stream, stream);
  // Only what had not been seen was asked for.
  EXPECT_LE(gpu.driver.count("pointer_info"), 1u);
  EXPECT_EQ(gpu.driver.entered, 0); // contexts are as they were
  gpu.driver.finish();
  EXPECT_EQ(compareCounts(program, batch, recorder).substr(0, 7), "request")
      << "each key must have been covered four times by now";
}

/// The host's tables may go as soon as the plan is made, though the copy to the
/// device has not happened yet; and an update does not disturb copies and runs
/// of the batch before, which are still to come.
TEST_F(Device, UpdatesDoNotDisturbWhatIsUnderWay) {
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  Workspace workspace(fi_plan_workspace_bytes(p.get()));
  gpu.driver.adopt(workspace.data(), workspace.size() + 1);
  gpu.adopt(batch);
  ASSERT_EQ(fi_run_device(p.get(), 0, batch.run.data(),
                          int32_t(batch.run.size()), batch.results.data(), 2,
                          workspace.data(), workspace.size(), nullptr),
            FI_OK)
      << fi_last_error();
  // Nothing has happened on the device so far.
  EXPECT_EQ(batch.output[0], -7);
  FakeBatch other;
  Recorder otherRecorder;
  otherRecorder.visible = recorder.visible;
  other.queryLengths = {2, 1};
  other.keyLengths = {10, 200};
  other.bind(program, otherRecorder);
  options.rows = 0;
  gpu.driver.clear();
  ASSERT_EQ(fi_plan_update(p.get(), other.plan.data(),
                           int32_t(other.plan.size()), &options),
            FI_OK)
      << fi_last_error();
  EXPECT_EQ(gpu.driver.count("event_synchronize"), 0u);
  EXPECT_EQ(batch.output[0], -7);
  ASSERT_EQ(gpu.run(p.get(), other), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  EXPECT_EQ(compareCounts(program, other, otherRecorder), "");
  // The third batch takes the memory of the first, and waits for its copy.
  gpu.driver.clear();
  batch.bind(program, recorder);
  options.rows = batch.rows();
  ASSERT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), &options),
            FI_OK)
      << fi_last_error();
  EXPECT_EQ(gpu.driver.count("event_synchronize"), 1u);
  EXPECT_EQ(gpu.driver.count("memory_alloc"), 0u);
  EXPECT_EQ(gpu.driver.count("host_alloc"), 0u);
  EXPECT_EQ(gpu.driver.count("copy_to_device"), 1u);
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(Device, GivesEverythingBack) {
  PlanPtr p = plan(), second = plan();
  ASSERT_TRUE(p && second) << fi_last_error();
  // One module for both, and for other handles of the package's plans.
  EXPECT_EQ(gpu.driver.count("load_ptx"), 1u);
  EXPECT_EQ(gpu.driver.liveModules, 1u);
  // The plans hold package and device.
  gpu.package.reset();
  fi_device_release(gpu.device);
  gpu.device = nullptr;
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  p.reset();
  EXPECT_EQ(gpu.driver.liveModules, 1u);
  second.reset();
  EXPECT_EQ(gpu.driver.liveModules, 0u);
  EXPECT_EQ(gpu.driver.liveAllocations(), 0u);
  EXPECT_EQ(gpu.driver.count("context_close"), 1u);
  EXPECT_EQ(gpu.driver.count("event_create"),
            gpu.driver.count("event_destroy"));
}

TEST_F(Device, WorkspaceHoldsStatesOnly) {
  options.split_policy = FI_SPLIT_NONE;
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(fi_plan_workspace_bytes(p.get()), 0u);
  gpu.adopt(batch);
  ASSERT_EQ(fi_run_device(p.get(), 0, batch.run.data(),
                          int32_t(batch.run.size()), batch.results.data(), 2,
                          nullptr, 0, nullptr),
            FI_OK)
      << fi_last_error();
  gpu.driver.finish();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

/// Items by falling cost; persistent CTAs get equal shares of them.
TEST_F(Device, OrdersItems) {
  for (const char *grid : {"items", "persistent"}) {
    json manifest = deviceManifest(program);
    manifest["stages"][0]["bodies"][0]["launch"]["grid"] = grid;
    manifest["stages"][0]["bodies"][0]["launch"]["ctas_per_sm"] = 1;
    gpu.driver.devices[0].multiprocessors = 12;
    fi_device_release(gpu.device);
    gpu.device = nullptr;
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    FakeBatch many;
    for (int64_t r = 0; r < 60; ++r) {
      many.queryLengths.push_back(1);
      many.keyLengths.push_back(16 * (1 + r * r % 61));
    }
    Recorder seen;
    seen.visible = recorder.visible;
    seen.recordItems = true;
    many.bind(program, seen);
    options = gpu.options();
    options.split_policy = FI_SPLIT_NONE;
    PlanPtr p = planBatch(gpu.package.get(), many, options);
    ASSERT_TRUE(p) << fi_last_error();
    gpu.driver.clear();
    ASSERT_EQ(gpu.run(p.get(), many), FI_OK) << fi_last_error();
    ASSERT_EQ(compareCounts(program, many, seen), "");
    ASSERT_EQ(gpu.driver.launches.size(), 1u);
    bool persistent = std::string(grid) == "persistent";
    uint32_t ctas = gpu.driver.launches[0].grid[0];
    EXPECT_EQ(ctas, persistent ? 12u : 120u);
    // The recorder saw one CTA after another.
    ASSERT_EQ(seen.items.size(), 120u);
    if (!persistent) {
      for (size_t i = 1; i < seen.items.size(); ++i)
        EXPECT_GE(seen.items[i - 1].item.kv_len, seen.items[i].item.kv_len);
      continue;
    }
    int64_t least = INT64_MAX, most = 0;
    for (size_t c = 0; c < 12; ++c) {
      int64_t keys = 0;
      for (size_t i = 0; i < 10; ++i)
        keys += seen.items[c * 10 + i].item.kv_len;
      least = std::min(least, keys);
      most = std::max(most, keys);
    }
    EXPECT_LT(double(most), 1.05 * double(least));
  }
}

/// What fills a machine of 132 multiprocessors with two CTAs each.
TEST_F(Device, SplitsFillTheDevice) {
  gpu.driver.devices[0].multiprocessors = 132;
  fi_device_release(gpu.device);
  gpu.device = nullptr;
  FakeProgram wide = program;
  wide.kvHeads = 8;
  wide.group = 4;
  wide.page = 16;
  wide.bodies = {{16, 64, 16, 0, 1, 10, 0}, {128, 64, -1, 0, 4, 20, 0}};
  struct {
    std::vector<int64_t> queries, keys;
    uint32_t least, most; // CTAs of the decode body
    double slotRow = 0.1; // of merges
  } cases[] = {
      // 8 heads, one request: all 264 at once.
      {{1}, {131072}, 240, 264},
      // 64 requests: 512 whole items.
      {std::vector<int64_t>(64, 1), std::vector<int64_t>(64, 4096), 512, 512},
      // A prefill beside decodes does not keep these from being split.
      {{1, 1024}, {65536, 1024}, 240, 264},
      // Where merging costs as much as attending, it pays to merge less and to
      // leave places empty.
      {{1}, {131072}, 64, 160, 20}};
  for (auto &c : cases) {
    json manifest = deviceManifest(wide);
    for (json &merge : manifest["stages"][0]["merge"])
      merge["cost"] = {{"item", 5}, {"slot_row", c.slotRow}};
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    FakeBatch made;
    Recorder none;
    none.cover = false;
    none.visible = recorder.visible;
    made.queryLengths = c.queries;
    made.keyLengths = c.keys;
    made.bind(wide, none);
    options = gpu.options();
    PlanPtr p = planBatch(gpu.package.get(), made, options);
    ASSERT_TRUE(p) << fi_last_error();
    EXPECT_EQ(fi_plan_workers(p.get()), 264);
    char *text = nullptr;
    ASSERT_EQ(fi_plan_schedule_json(p.get(), &text), FI_OK);
    json schedule = json::parse(text);
    fi_string_free(text);
    const json &decode = schedule["launches"][0];
    EXPECT_EQ(decode["symbol"], "body0");
    EXPECT_GE(decode["grid"], c.least);
    EXPECT_LE(decode["grid"], c.most);
    size_t scheduled = 0, items = 0;
    for (const json &worker : schedule["workers"])
      scheduled += worker["items"].size();
    for (const json &launch : schedule["launches"])
      items += launch["items"].get<size_t>();
    EXPECT_EQ(scheduled, items);
  }
}

/// Row tiles that would fill a part of the last round of CTAs alone are cut, so
/// that their pieces fill it.
TEST_F(Device, CutsTheLastRound) {
  gpu.driver.devices[0].multiprocessors = 132;
  gpu.driver.occupancy = 1;
  fi_device_release(gpu.device);
  gpu.device = nullptr;
  FakeProgram wide = program;
  wide.kvHeads = 8;
  wide.group = 4;
  wide.page = 16;
  wide.bodies = {{192, 64, -1, 0, 100, 100, 0}};
  wide.mask = nullptr;
  struct {
    int64_t tokens;
    size_t items;
    double item; // what each costs beside its tiles
  } cases[] = {  // 22 tiles of rows: 128 whole, and 6 x 8 cut in half.
               {1024, 128 + 48 * 2, 100},
               // Where pieces cost as much as they bring, none is cut.
               {1024, 176, 30000},
               // 86: five rounds, and 4 x 8 cut into four.
               {4096, 656 + 32 * 4, 100},
               // 20 rounds hardly gain by it.
               {16384, 2736, 100}};
  for (auto &c : cases) {
    json manifest = deviceManifest(wide);
    manifest["stages"][0]["bodies"][0]["cost"]["item"] = c.item;
    manifest["stages"][0]["merge"]["cost"] = {{"item", 5}, {"slot_row", 0.1}};
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    FakeBatch made;
    Recorder none;
    none.cover = false;
    none.visible = [](const Pair &) { return true; };
    made.queryLengths = {c.tokens};
    made.keyLengths = {c.tokens};
    made.bind(wide, none);
    options = gpu.options();
    PlanPtr p = planBatch(gpu.package.get(), made, options);
    ASSERT_TRUE(p) << fi_last_error();
    char *text = nullptr;
    ASSERT_EQ(fi_plan_schedule_json(p.get(), &text), FI_OK);
    json schedule = json::parse(text);
    fi_string_free(text);
    EXPECT_EQ(schedule["launches"][0]["items"], c.items) << c.tokens;
  }
}

/// Tensors of which kernels copy boxes are described behind the parameters, by
/// what each run is given.
TEST_F(Device, DescribesTensors) {
  json manifest = deviceManifest(program);
  for (json &body : manifest["stages"][0]["bodies"])
    body["launch"]["tensor_maps"] =
        json::array({{{"buffer", 4}, {"box", {1, 1, 4, 4}}, {"swizzle", 128}},
                     {{"buffer", 3}, {"box", {16, 1, 4}}, {"swizzle", 0}}});
  gpu.open(manifest);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  gpu.driver.clear();
  gpu.driver.tensors.clear();
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  ASSERT_GE(gpu.driver.tensors.size(), 2u);
  const fi_tensor &q = batch.run[1].as.tensor;
  const fi_driver_tensor &tensor = gpu.driver.tensors[1];
  EXPECT_EQ(tensor.data, q.data);
  ASSERT_EQ(tensor.rank, 3);
  EXPECT_EQ(tensor.element, 4);
  EXPECT_EQ(tensor.swizzle, 0);
  for (int d = 0; d < 3; ++d)
    EXPECT_EQ(tensor.sizes[d], q.shape[2 - d]) << d;
  EXPECT_EQ(tensor.strides[1], q.shape[2] * 4);
  EXPECT_EQ(tensor.strides[2], q.shape[2] * q.shape[1] * 4);
  EXPECT_EQ(tensor.box[0], 4);
  EXPECT_EQ(tensor.box[2], 16);
  EXPECT_EQ(gpu.driver.tensors[0].rank, 4);
  EXPECT_EQ(gpu.driver.tensors[0].swizzle, 128);
  // The bytes of both, after all else and aligned.
  const fi_driver_launch &first = gpu.driver.launches[0];
  EXPECT_EQ(first.tensor_maps, 2u);
  EXPECT_EQ(first.param_bytes % 64, 0u);
  EXPECT_GE(first.param_bytes, first.slots * 8 + 2 * 128);
}

/// Kernels that wait for the launch in front themselves, as their manifest
/// says.
TEST_F(Device, OverlapsLaunches) {
  for (bool overlaps : {false, true}) {
    json manifest = deviceManifest(program);
    for (json &body : manifest["stages"][0]["bodies"])
      body["launch"]["overlaps"] = overlaps;
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    PlanPtr p = plan();
    ASSERT_TRUE(p) << fi_last_error();
    for (int32_t can : {0, 1}) {
      gpu.driver.setLaunchesOverlap(can);
      char *explained = nullptr;
      ASSERT_EQ(fi_plan_explain(p.get(), &explained), FI_OK);
      std::string text = explained;
      fi_string_free(explained);
      EXPECT_EQ(text.find("begins while the launch in front of it ends") !=
                    std::string::npos,
                overlaps && can)
          << text;
      EXPECT_EQ(text.find("begins behind the launch in front of it: the "
                          "driver is older than CUDA 12.3") !=
                    std::string::npos,
                overlaps && !can)
          << text;
    }
    gpu.driver.clear();
    ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
    EXPECT_EQ(gpu.driver.launches[0].overlaps, int32_t(overlaps));
  }
}

/// Pools without pages have no address, and maps of them one that nobody reads.
TEST_F(Device, DescribesEmptyTensors) {
  json manifest = deviceManifest(program);
  for (json &body : manifest["stages"][0]["bodies"])
    body["launch"]["tensor_maps"] =
        json::array({{{"buffer", 4}, {"box", {4, 4}}, {"swizzle", 128}}});
  batch.queryLengths = {1, 3};
  batch.keyLengths = {0, 0};
  batch.trailingRows = 0;
  batch.bind(program, recorder);
  options.rows = batch.rows();
  fi_tensor &keys = batch.run[2].as.tensor;
  manifest["stages"][0]["bodies"][0]["launch"]["tensor_maps"][0]["box"] =
      json(std::vector<int>(size_t(keys.rank), 4));
  gpu.open(manifest);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  int64_t shape[8];
  std::copy_n(keys.shape, keys.rank, shape);
  shape[0] = 0;
  keys.shape = shape;
  keys.data = nullptr;
  gpu.driver.tensors.clear();
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  ASSERT_GE(gpu.driver.tensors.size(), 1u);
  const fi_driver_tensor &tensor = gpu.driver.tensors[0];
  EXPECT_NE(tensor.data, nullptr);
  EXPECT_EQ(uintptr_t(tensor.data) % 16, 0u);
  for (int d = 0; d < tensor.rank; ++d)
    EXPECT_EQ(tensor.sizes[d], 1);
}

/// Pieces that merge themselves meet by their fan-in, as long as more than
/// twice as many are left: each meeting costs, and each state stored or loaded.
TEST_F(Device, CostOfMeetings) {
  json manifest = deviceManifest(program);
  json &body = manifest["stages"][0]["bodies"][0];
  body["counters"] = true;
  body["merge_fan_in"] = 4;
  body["cost"]["meeting"] = 1000;
  body["cost"]["slot_row"] = 1;
  manifest["stages"][0].erase("merge");
  gpu.open(manifest);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  int64_t tile = program.bodies[0].tileKeys;
  struct {
    int64_t pieces, states, meetings;
  } cases[] = {{8, 8 + 8, 1},
               {9, 9 + 9 + 3, 2},
               {32, 32 + 32 + 8, 2},
               {33, 33 + 33 + 9 + 3, 3}};
  for (auto &c : cases) {
    FakeBatch made;
    Recorder none;
    none.cover = false;
    none.visible = recorder.visible;
    made.queryLengths = {1};
    made.keyLengths = {c.pieces * tile};
    made.bind(program, none);
    options = gpu.options();
    options.split_policy = FI_SPLIT_FIXED;
    options.split_keys = tile;
    PlanPtr p = planBatch(gpu.package.get(), made, options);
    ASSERT_TRUE(p) << fi_last_error();
    char *text = nullptr;
    ASSERT_EQ(fi_plan_explain(p.get(), &text), FI_OK);
    std::string explained = text;
    fi_string_free(text);
    int64_t cost = program.kvHeads *
                   (1000 * c.meetings + c.states * int64_t(program.group));
    EXPECT_NE(explained.find("; merging costs " + std::to_string(cost) + "\n"),
              std::string::npos)
        << c.pieces << " pieces\n"
        << explained;
  }
}

/// A body that merges itself has counters, which are left as they were, and no
/// launch for merging.
TEST_F(Device, BodiesThatMergeThemselves) {
  json manifest = deviceManifest(program);
  manifest["stages"][0]["bodies"][0]["counters"] = true;
  manifest["stages"][0].erase("merge");
  gpu.open(manifest);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  for (int run = 0; run < 2; ++run) {
    batch.bind(program, recorder);
    gpu.driver.clear();
    ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
    EXPECT_EQ(compareCounts(program, batch, recorder), "");
    ASSERT_EQ(gpu.driver.launches.size(), 1u);
    EXPECT_GT(gpu.driver.launches[0].grid[0], 90u);
  }
}

TEST_F(Device, Explains) {
  PlanPtr p = plan();
  ASSERT_TRUE(p) << fi_last_error();
  char *text = nullptr;
  ASSERT_EQ(fi_plan_explain(p.get(), &text), FI_OK);
  std::string all = text;
  fi_string_free(text);
  for (const char *part :
       {"for 216 CTAs at once (fake device 0: Fake A100, sm_80, 108 "
        "multiprocessors)",
        "CTAs of 128 threads (one for each item), 2 at once on a "
        "multiprocessor; 64 registers",
        "bytes on the device"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

} // namespace
