//===- DeviceErrorTest.cpp - Every refusal of a device --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thing wrong at a time, its sentence, and that nothing was launched.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <gtest/gtest.h>

using namespace fi::test;

namespace {

class DeviceErrors : public ::testing::Test {
protected:
  void SetUp() override {
    program.bodies = {{4, 16, -1, 0, 10, 100, 10}};
    recorder.visible = [](const Pair &) { return true; };
    batch.queryLengths = {1, 3};
    batch.keyLengths = {300, 9};
    manifest = deviceManifest(program);
    // The kernels load 16 bytes at once.
    for (json &argument : manifest["arguments"])
      if (argument["name"] == "q")
        argument["align"] = 16;
    gpu.open(manifest);
    ASSERT_TRUE(gpu.package) << fi_last_error();
    batch.bind(program, recorder);
    gpu.adopt(batch);
    options = gpu.options();
  }

  /// Opens a changed package and loads it: the sentence, or "".
  std::string load(const json &changed, const std::string &ptx,
                   fi_status expected, const std::string &cubin = "") {
    std::string text = changed.dump();
    fi_code codes[] = {{FI_DRIVER_PTX, ptx.data(), ptx.size()},
                       {FI_DRIVER_CUBIN, cubin.data(), cubin.size()}};
    fi_package *opened = nullptr;
    bool onlyCubin = ptx.empty();
    fi_status status =
        fi_package_from_code(text.data(), text.size(), codes + onlyCubin,
                             onlyCubin || cubin.empty() ? 1 : 2, &opened);
    if (status == FI_OK)
      status = fi_package_load(opened, gpu.device);
    fi_package_release(opened);
    EXPECT_EQ(status, expected);
    return status == FI_OK ? "" : fi_last_error();
  }

  void reopen() {
    fi_device_release(gpu.device);
    gpu.device = nullptr;
    ASSERT_EQ(fi_device_open(gpu.driver.table(), 0, &gpu.device), FI_OK);
  }

  std::string plan(fi_status expected) {
    fi_status status = FI_OK;
    EXPECT_FALSE(planBatch(gpu.package.get(), batch, options, &status));
    EXPECT_EQ(status, expected);
    options = gpu.options();
    return fi_last_error();
  }

  std::string run(fi_status expected, const std::function<void()> &spoil,
                  void *stream = nullptr) {
    PlanPtr p = planBatch(gpu.package.get(), batch, gpu.options());
    EXPECT_TRUE(p) << fi_last_error();
    Workspace memory(fi_plan_workspace_bytes(p.get()));
    gpu.driver.adopt(memory.data(), memory.size() + 1);
    workspace = memory.data();
    spoil();
    gpu.driver.clear();
    EXPECT_EQ(fi_run_device(p.get(), 0, batch.run.data(),
                            int32_t(batch.run.size()), batch.results.data(), 2,
                            workspace, memory.size(), stream),
              expected);
    EXPECT_EQ(gpu.driver.launches.size(), 0u);
    EXPECT_EQ(gpu.driver.entered, 0);
    batch.bind(program, recorder);
    gpu.adopt(batch);
    return fi_last_error();
  }

  fi_tensor &query() { return batch.run[1].as.tensor; }

  FakeGpu gpu;
  FakeProgram program;
  FakeBatch batch;
  Recorder recorder;
  json manifest;
  fi_plan_options options;
  void *workspace = nullptr;
};

TEST_F(DeviceErrors, Devices) {
  fi_device *device = nullptr;
  EXPECT_EQ(fi_device_open(gpu.driver.table(), 1, &device),
            FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "device: expected a device of the fake driver, 0 to 0, but got "
               "1");
  fi_driver old = *gpu.driver.table();
  old.version = 7;
  EXPECT_EQ(fi_device_open(&old, 0, &device), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "device: driver: expected a table of version 4, but got 7; "
               "build both against the same fi_driver.h");
  FakeDriver none;
  none.devices.clear();
  EXPECT_EQ(fi_device_count(none.table()), 0);
  EXPECT_EQ(fi_device_open(none.table(), 0, &device), FI_UNSUPPORTED);
  EXPECT_STREQ(fi_last_error(),
               "device: the fake driver has no device; run on a machine with a "
               "GPU that this process may see, or compile for the cpu");
  gpu.driver.failOn("context_open", FI_DRIVER_ERROR, "CUDA_ERROR_X (words)");
  EXPECT_EQ(fi_device_open(gpu.driver.table(), 0, &device), FI_DEVICE_ERROR);
  EXPECT_STREQ(fi_last_error(), "device: cannot be opened: fake device 0 (Fake "
                                "A100): CUDA_ERROR_X (words)");
  EXPECT_EQ(device, nullptr);
}

TEST_F(DeviceErrors, OtherChips) {
  std::string ptx = devicePtx(), cubin = "\x7f"
                                         "ELF body0 merge0";
  EXPECT_EQ(load(deviceManifest(program, "sm_90a"), ptx, FI_UNSUPPORTED),
            "package 'counting': compiled for sm_90a alone, but device 0 (Fake "
            "A100) is sm_80; compile the program for sm_80");
  EXPECT_EQ(load(deviceManifest(program, "sm_86"), ptx, FI_UNSUPPORTED),
            "package 'counting': compiled for sm_86 or later, but device 0 "
            "(Fake A100) is sm_80; compile the program for sm_80");
  EXPECT_EQ(load(deviceManifest(program, "sm_75"), ptx, FI_OK), "");
  gpu.driver.devices[0].compute_major = 9;
  reopen();
  EXPECT_EQ(load(deviceManifest(program, "sm_90a"), ptx, FI_OK), "");
  // Machine code where it fits, else PTX.
  json both = deviceManifest(program);
  both["target"]["cubin"] = {{"chip", "sm_90"}};
  gpu.driver.clear();
  EXPECT_EQ(load(both, ptx, FI_OK, cubin), "");
  EXPECT_EQ(gpu.driver.count("load_cubin"), 1u);
  both["target"]["cubin"] = {{"chip", "sm_80"}};
  gpu.driver.clear();
  EXPECT_EQ(load(both, ptx, FI_OK, cubin), "");
  EXPECT_EQ(gpu.driver.count("load_ptx"), 1u);
  EXPECT_EQ(load(both, "", FI_UNSUPPORTED, cubin),
            "package 'counting': compiled for sm_80 or its family, but device "
            "0 (Fake A100) is sm_90; compile the program for sm_90");
}

TEST_F(DeviceErrors, Code) {
  EXPECT_EQ(load(manifest, devicePtx("9.3"), FI_UNSUPPORTED),
            "package 'counting': its code is PTX 9.3, but the driver for CUDA "
            "12.4 reads PTX up to 8.4; update the driver, or compile with a "
            "ptx version of at most 8.4");
  EXPECT_EQ(load(manifest, "nonsense", FI_INVALID_PACKAGE),
            "package 'counting': expected PTX with a .version, but its text is "
            "something else (truncated or damaged file)");
  EXPECT_EQ(load(manifest, ".version 7.4\n.entry body0(", FI_INVALID_PACKAGE),
            "package 'counting': kernel 'merge0' is named in the manifest but "
            "missing from the code");
  EXPECT_EQ(load(manifest, devicePtx(), FI_INVALID_PACKAGE, "no ELF"),
            "package 'counting': it has machine code, but the manifest's "
            "target has no 'cubin' that says for which chip");
  gpu.driver.moduleLog = "ptxas error : line 7: bad\ninstruction";
  gpu.driver.failOn("load_ptx", FI_DRIVER_BAD_CODE, "CUDA_ERROR_INVALID_PTX");
  EXPECT_EQ(load(manifest, devicePtx(), FI_INVALID_PACKAGE),
            "package 'counting': its PTX cannot be loaded on device 0 (Fake "
            "A100): CUDA_ERROR_INVALID_PTX: ptxas error : line 7: bad "
            "instruction");
  gpu.driver.failOn("", 0, "");
  json big = manifest;
  big["stages"][0]["bodies"][0]["launch"]["shared"] = 200000;
  EXPECT_EQ(load(big, devicePtx(), FI_UNSUPPORTED),
            "package 'counting': kernel 'body0' needs 200000 bytes of shared "
            "memory, but device 0 (Fake A100) has at most 166912 for a CTA; "
            "compile for sm_80");
  big["stages"][0]["bodies"][0]["launch"]["shared"] = 100000;
  EXPECT_EQ(load(big, devicePtx(), FI_OK), "");
  EXPECT_EQ(gpu.driver.sharedOptedIn, 100000);
  gpu.driver.functionInfo.max_threads = 64;
  EXPECT_EQ(load(manifest, devicePtx(), FI_UNSUPPORTED),
            "package 'counting': kernel 'body0' has CTAs of 128 threads with "
            "64 registers each, but device 0 (Fake A100) runs at most 64 of "
            "them; compile for sm_80");
  gpu.driver.functionInfo.max_threads = 1024;
  gpu.driver.occupancy = 0;
  EXPECT_EQ(load(manifest, devicePtx(), FI_UNSUPPORTED),
            "package 'counting': kernel 'body0' with 128 threads and 0 bytes "
            "of shared memory does not fit into a multiprocessor of device 0 "
            "(Fake A100); compile for sm_80");
}

TEST_F(DeviceErrors, Manifests) {
  auto with = [&](const char *pointer, json value) {
    json changed = manifest;
    changed[json::json_pointer(pointer)] = std::move(value);
    return load(changed, devicePtx(), FI_INVALID_PACKAGE);
  };
  EXPECT_EQ(with("/target/chip", "gfx90a"),
            "manifest.target.chip: expected the name of a chip such as "
            "\"sm_90a\", but got \"gfx90a\"");
  EXPECT_EQ(with("/target/ptx", "7.4.1"),
            "manifest.target.ptx: expected a version of PTX such as \"7.4\", "
            "but got \"7.4.1\"");
  EXPECT_EQ(with("/stages/0/bodies/0/launch", nullptr),
            "manifest.stages[0].bodies[0].launch: expected an object, but got "
            "null");
  EXPECT_EQ(with("/stages/0/bodies/0/launch/threads", 2048),
            "manifest.stages[0].bodies[0].launch.threads: expected an integer "
            "from 1 to 1024, but got 2048");
  EXPECT_EQ(with("/stages/0/bodies/0/launch/grid", "tiles"),
            "manifest.stages[0].bodies[0].launch.grid: expected 'items' or "
            "'persistent', but got \"tiles\"");
  json map = {{"buffer", 3}, {"box", {16, 1, 4}}, {"swizzle", 128}};
  auto withMap = [&](const char *member, json value) {
    json changed = map;
    changed[member] = std::move(value);
    std::string text =
        with("/stages/0/bodies/0/launch/tensor_maps", json::array({changed}));
    const std::string where =
        "manifest.stages[0].bodies[0].launch.tensor_maps[0].";
    EXPECT_EQ(text.substr(0, where.size()), where);
    return text.substr(std::min(text.size(), where.size()));
  };
  EXPECT_EQ(withMap("buffer", 99),
            "buffer: expected an integer from 0 to 6, but got 99");
  EXPECT_EQ(withMap("buffer", 0),
            "buffer: expected a tensor, not a scalar, but got 0");
  EXPECT_EQ(withMap("box", {16, 1}),
            "box: expected a size for each of the buffer's dimensions, at most "
            "5, but got [16,1]");
  EXPECT_EQ(withMap("box", {16, 1, 257}),
            "box[2]: expected an integer from 1 to 256, but got 257");
  EXPECT_EQ(withMap("swizzle", 96),
            "swizzle: expected 0, 32, 64 or 128 bytes, but got 96");
  EXPECT_EQ(with("/stages/0/bodies/0/scratch", 64),
            "manifest.stages[0].bodies[0].scratch: expected an integer from 0 "
            "to 0, but got 64");
  EXPECT_EQ(with("/results/0/align", 24),
            "manifest.results[0].align: expected a power of two, but got 24");
  std::string text = manifest.dump();
  fi_package *opened = nullptr;
  EXPECT_EQ(fi_package_from_memory(text.data(), text.size(), findFakeKernel,
                                   nullptr, &opened),
            FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "package 'counting': expected a target 'cpu' for functions in "
               "this process, but got 'cuda'; open it with "
               "fi_package_from_code");
}

TEST_F(DeviceErrors, Plans) {
  options.device = nullptr;
  EXPECT_EQ(plan(FI_INVALID_ARGUMENT),
            "plan: options.device: expected a device, because package "
            "'counting' is compiled for sm_80, but got NULL; open one with "
            "fi_device_open");
  options.borrow_tables = 1;
  EXPECT_EQ(plan(FI_INVALID_ARGUMENT),
            "plan: options.borrow_tables: expected 0 for a plan for a device, "
            "which copies the tables there, but got 1");
  options.stream = gpu.driver.capturedStream;
  EXPECT_EQ(plan(FI_INVALID_ARGUMENT),
            "plan: options.stream: expected a stream that is not being "
            "captured, because the plan's copies are not part of runs; plan "
            "before the capture begins, or in another stream");
  options.stream = gpu.driver.foreignStream;
  EXPECT_EQ(plan(FI_INVALID_RUN), "plan: options.stream: fake device 0 (Fake "
                                  "A100): a stream of another device");
  gpu.driver.failOn("memory_alloc", FI_DRIVER_OUT_OF_MEMORY,
                    "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  EXPECT_EQ(plan(FI_OUT_OF_MEMORY),
            "plan: device memory for its lists: fake device 0 (Fake A100): "
            "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  gpu.driver.failOn("", 0, "");
  EXPECT_EQ(gpu.driver.liveAllocations(), 0u);

  // A package for the cpu on a device.
  json cpu = program.manifest();
  PackagePtr forCpu(openFake(cpu));
  ASSERT_TRUE(forCpu) << fi_last_error();
  fi_status status = FI_OK;
  EXPECT_FALSE(planBatch(forCpu.get(), batch, options, &status));
  EXPECT_EQ(status, FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "package 'counting': compiled for target 'cpu', but device 0 "
               "(Fake A100) is a GPU; compile the program for sm_80, or plan "
               "without a device");
  fi_plan_options onCpu = defaultOptions(2);
  onCpu.stream = &onCpu;
  EXPECT_FALSE(planBatch(forCpu.get(), batch, onCpu, &status));
  EXPECT_NE(std::string(fi_last_error()).find("options.stream: expected NULL"),
            std::string::npos);

  // Plans stay on their device, and what failed changes nothing.
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  fi_device *other = nullptr;
  ASSERT_EQ(fi_device_open(gpu.driver.table(), 0, &other), FI_OK);
  options.device = other;
  EXPECT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), &options),
            FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "plan: options.device: expected the device 0 that the plan was "
               "made for, but got another; make another plan");
  fi_device_release(other);
  options = gpu.options();
  gpu.driver.failOn("copy_to_device", FI_DRIVER_ERROR, "CUDA_ERROR_Y");
  EXPECT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), &options),
            FI_DEVICE_ERROR);
  EXPECT_STREQ(fi_last_error(), "plan: copying its lists: fake device 0 (Fake "
                                "A100): CUDA_ERROR_Y");
  gpu.driver.failOn("", 0, "");
  EXPECT_EQ(fi_plan_generation(p.get()), 1u);
  ASSERT_EQ(gpu.run(p.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(DeviceErrors, Runs) {
  std::vector<float> host(1 << 12);
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { query().data = host.data(); }),
            "run: operand 'q': expected memory of device 0 (Fake A100), but "
            "got host memory; copy it to the device first");
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { batch.results[1].data = host.data(); }),
            "run: operand 'result1': expected memory of device 0 (Fake A100), "
            "but got host memory; copy it to the device first");
  gpu.driver.adopt(host.data(), host.size() * 4, 3);
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { query().data = host.data(); }),
            "run: operand 'q': expected memory of device 0 (Fake A100), but "
            "got memory of device 3; copy it, or plan for that device");
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { query().data = nullptr; }),
            "run: operand 'q': expected data, but got NULL");
  std::string misaligned = run(FI_INVALID_RUN, [&] {
    query().data = static_cast<float *>(query().data) + 1;
  });
  EXPECT_EQ(misaligned.substr(0, misaligned.find(" 0x")),
            "run: operand 'q': expected data aligned to 16 bytes, which its "
            "kernels load at once, but got");
  int64_t strides[] = {34, 8, 1};
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { query().strides = strides; }),
            "run: operand 'q': expected strides of a multiple of 16 bytes, "
            "which its kernels load at once, but got 34 elements of f32 in "
            "dimension 0; copy it first");
  EXPECT_EQ(run(
                FI_INVALID_RUN, [] {}, gpu.driver.foreignStream),
            "run: stream: fake device 0 (Fake A100): a stream of another "
            "device");
  // What kernels copy boxes of has to be what a tensor map can say.
  json mapped = manifest;
  for (json &body : mapped["stages"][0]["bodies"])
    body["launch"]["tensor_maps"] =
        json::array({{{"buffer", 3}, {"box", {16, 1, 4}}, {"swizzle", 128}}});
  gpu.open(mapped);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  int64_t still[] = {0, 8, 1};
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { query().strides = still; }),
            "run: operand 'q': expected at most 4294967296 elements, and a "
            "stride of a positive multiple of 16 bytes below 1099511627776, in "
            "every dimension, which its kernels copy boxes of, but got 4 "
            "elements with a stride of 0 bytes in dimension 0; copy it first, "
            "or compile with 'tma = 0' in the schedule");
  EXPECT_EQ(run(FI_UNSUPPORTED,
                [&] {
                  gpu.driver.failOn("tensor_map", FI_DRIVER_UNAVAILABLE,
                                    "too old");
                }),
            "run: operand 'q': cannot be described to tensor copies: fake "
            "device 0 (Fake A100): too old");
  gpu.driver.failOn("", 0, "");
  gpu.open(manifest);
  alignas(64) static char elsewhere[1 << 16];
  EXPECT_EQ(run(FI_INVALID_RUN, [&] { workspace = elsewhere; }),
            "run: workspace: expected memory of device 0 (Fake A100), but got "
            "host memory; copy it to the device first");
  EXPECT_EQ(run(FI_DEVICE_ERROR,
                [&] {
                  gpu.driver.failOn("launch", FI_DRIVER_ERROR,
                                    "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal "
                                    "memory access was encountered)");
                }),
            "run: attention0 of 'counting', generation 1 of the plan: kernel "
            "'body0' on 24 CTAs: fake device 0 (Fake A100): "
            "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was "
            "encountered)");
}

/// A fault names kernel, plan and, where the driver or the kernel's log tells,
/// the request.
TEST_F(DeviceErrors, Faults) {
  std::string illegal = "CUDA_ERROR_ILLEGAL_ADDRESS";
  // What the kernels saw: items of one row and one range.
  recorder.recordItems = true;
  auto seen = [&](size_t i) {
    const Recorder::Seen &one = recorder.items[i];
    return "request " + std::to_string(one.item.request) + ", KV head " +
           std::to_string(one.item.kv_head) + ", row " +
           std::to_string(one.item.q_begin) + ", keys " +
           std::to_string(one.ranges[0].begin) + " to " +
           std::to_string(one.ranges[0].end - 1);
  };
  auto runWith = [&](PlanPtr &p, void *stream = nullptr) {
    Workspace memory(fi_plan_workspace_bytes(p.get()));
    gpu.driver.adopt(memory.data(), memory.size() + 1);
    fi_status status = fi_run_device(
        p.get(), 0, batch.run.data(), int32_t(batch.run.size()),
        batch.results.data(), 2, memory.data(), memory.size(), stream);
    gpu.driver.finish();
    gpu.driver.clear();
    return std::string(status == FI_OK ? "" : fi_last_error());
  };
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  EXPECT_EQ(runWith(p), "");
  ASSERT_GT(recorder.items.size(), 24u);
  // A driver that knows the CTA. The long request comes first, in pieces.
  gpu.driver.failOn("launch", FI_DRIVER_ERROR, illegal);
  gpu.driver.fault = {0, 1, 3};
  EXPECT_EQ(runWith(p),
            "run: attention0 of 'counting', generation 1 of the plan: kernel "
            "'body0' on 24 CTAs, CTA 3 (" +
                seen(3) + "): fake device 0 (Fake A100): " + illegal);
  // One that knows only that something before went wrong.
  gpu.driver.fault = {1, 0, 0};
  EXPECT_EQ(runWith(p),
            "run: attention0 of 'counting', generation 1 of the plan: kernel "
            "'body0' on 24 CTAs: fake device 0 (Fake A100): " +
                illegal +
                "; this may be the fault of work that was launched before, as "
                "launches are not waited for: plan with options.checked to "
                "have each launch waited for and the one that fails named");
  // A checked plan waits, and knows which launch it was.
  options.checked = 1;
  gpu.driver.failOn("stream_synchronize", FI_DRIVER_ERROR, illegal);
  p = planBatch(gpu.package.get(), batch, options);
  EXPECT_EQ(runWith(p),
            "run: attention0 of 'counting', generation 1 of the plan: kernel "
            "'body0' on 24 CTAs: fake device 0 (Fake A100): " +
                illegal);
  EXPECT_EQ(runWith(p, gpu.driver.capturedStream),
            "run: stream: expected a stream that is not being captured, "
            "because the plan is checked and waits for its launches; plan with "
            "options.checked 0");

  // Checked kernels: a log is their last parameter.
  gpu.driver.failOn("", 0, "");
  json checked = deviceManifest(program);
  checked["stages"][0]["bodies"][0]["launch"]["faults"] = true;
  gpu.open(checked);
  ASSERT_TRUE(gpu.package) << fi_last_error();
  FakeKernel plain = gpu.driver.kernels["body0"];
  uint32_t wrong = 0, lost = 0;
  gpu.driver.kernels["body0"] = [&](FakeCta cta) {
    auto *log = reinterpret_cast<fi_fault_log *>(cta.params[--cta.paramCount]);
    auto *running = reinterpret_cast<uint32_t *>(log + 1);
    EXPECT_EQ(log->code, 0u);
    for (int64_t c = 0; c < cta.ctas; ++c)
      EXPECT_EQ(running[c], 0u);
    plain(cta);
    if (wrong && cta.cta + 1 == cta.ctas)
      *log = {FI_FAULT_PAGE, wrong, 4096, 101, 1, 0};
    if (lost && cta.cta + 1 == cta.ctas)
      running[0] = running[7] = lost;
  };
  for (bool graphSafe : {false, true}) {
    options = gpu.options();
    options.graph_safe = graphSafe;
    wrong = lost = 0;
    p = planBatch(gpu.package.get(), batch, options);
    ASSERT_TRUE(p) << fi_last_error();
    batch.bind(program, recorder);
    gpu.adopt(batch);
    EXPECT_EQ(runWith(p), "");
    EXPECT_EQ(compareCounts(program, batch, recorder), "");
    EXPECT_EQ(fi_plan_check(p.get()), FI_OK);
    wrong = 5;
    EXPECT_EQ(runWith(p), "") << "it comes out later";
    wrong = 0;
    std::string said =
        "run: attention0 of 'counting', generation 1 of the plan: kernel "
        "'body0': " +
        seen(5) +
        ": expected page indices from 0 below 101, the pages of its pool, but "
        "the table on the "
        "device had 4096; the plan's memory was overwritten, or a graph was "
        "launched with a smaller pool";
    EXPECT_EQ(fi_plan_check(p.get()), FI_DEVICE_ERROR);
    EXPECT_EQ(fi_last_error(), said);
    EXPECT_EQ(fi_plan_check(p.get()), FI_OK) << "it is told once";
    wrong = 5;
    EXPECT_EQ(runWith(p), "");
    wrong = 0;
    EXPECT_EQ(runWith(p), said);
    EXPECT_EQ(runWith(p), "");
    wrong = 5;
    EXPECT_EQ(runWith(p), "");
    wrong = 0;
    EXPECT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              FI_DEVICE_ERROR);
    EXPECT_EQ(fi_last_error(), said);
    ASSERT_EQ(fi_plan_update(p.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              FI_OK);
    // A context that breaks leaves what was under way.
    lost = 3;
    EXPECT_EQ(runWith(p), "");
    gpu.driver.failOn("launch", FI_DRIVER_ERROR, illegal);
    gpu.driver.fault = {1, 0, 0};
    std::string all = runWith(p);
    EXPECT_EQ(all.substr(all.find(" CTAs, ")),
              " CTAs, while at work on " + seen(2) + "; " + seen(2) +
                  ": fake device 0 (Fake A100): " + illegal +
                  "; this may be the fault of work that was launched before, "
                  "as launches are not waited for: plan with options.checked "
                  "to have each launch waited for and the one that fails "
                  "named");
    gpu.driver.failOn("", 0, "");
    gpu.driver.fault = {};
  }
  p.reset();
  gpu.package.reset();
  EXPECT_EQ(gpu.driver.liveAllocations(), 0u);
}

TEST_F(DeviceErrors, TheOtherRun) {
  PlanPtr p = planBatch(gpu.package.get(), batch, options);
  ASSERT_TRUE(p) << fi_last_error();
  EXPECT_EQ(runBatch(p.get(), batch), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(), "run: expected a plan for the cpu, but got one "
                                "for device 0; run it with fi_run_device");
  PackagePtr cpu(openFake(program.manifest()));
  PlanPtr onCpu = planBatch(cpu.get(), batch, defaultOptions(1));
  ASSERT_TRUE(onCpu) << fi_last_error();
  EXPECT_EQ(gpu.run(onCpu.get(), batch), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(), "run: expected a plan for a device, but got "
                                "one for the cpu; run it with fi_run");
}

} // namespace
