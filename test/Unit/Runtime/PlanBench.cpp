//===- PlanBench.cpp - What planning and launching cost -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi-runtime-bench: replanning into the same plan, and the host side of a run
// with kernels that do next to nothing.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <benchmark/benchmark.h>
#include <random>

using namespace fi::test;

namespace {

FakeProgram decodeProgram() {
  FakeProgram program;
  program.kvHeads = 8;
  program.group = 4;
  program.page = 16;
  program.bodies = {{16, 64, 16, 65536, 400, 900, 20},
                    {128, 64, -1, 262144, 4000, 1200, 18}};
  program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
  return program;
}

void plan(benchmark::State &state, const FakeBatch &made, int32_t workers) {
  FakeProgram program = decodeProgram();
  PackagePtr package(openFake(program.manifest()));
  Recorder recorder;
  recorder.cover = false;
  FakeBatch batch;
  batch.queryLengths = made.queryLengths;
  batch.keyLengths = made.keyLengths;
  batch.bind(program, recorder);
  fi_plan_options options = defaultOptions(workers);
  PlanPtr plan = planBatch(package.get(), batch, options);
  for (auto _ : state)
    if (!plan || fi_plan_update(plan.get(), batch.plan.data(),
                                int32_t(batch.plan.size()), nullptr) != FI_OK)
      return state.SkipWithError(fi_last_error());
}

/// 128 requests, one token each, 2048 keys in pages of 16, 8 KV heads.
void planDecode128(benchmark::State &state) {
  FakeBatch batch;
  batch.queryLengths.assign(128, 1);
  batch.keyLengths.assign(128, 2048);
  plan(state, batch, int32_t(state.range(0)));
}
BENCHMARK(planDecode128)->Arg(1)->Arg(2)->Arg(16)->Arg(64);

/// The same with lengths from 1 to 4096.
void planDecode128Mixed(benchmark::State &state) {
  FakeBatch batch;
  std::mt19937 random(1);
  batch.queryLengths.assign(128, 1);
  for (int i = 0; i < 128; ++i)
    batch.keyLengths.push_back(1 + random() % 4096);
  plan(state, batch, int32_t(state.range(0)));
}
BENCHMARK(planDecode128Mixed)->Arg(2)->Arg(16)->Arg(64);

/// 4 prefill chunks of 512 tokens among 60 decodes.
void planChunked64(benchmark::State &state) {
  FakeBatch batch;
  batch.queryLengths.assign(60, 1);
  batch.keyLengths.assign(60, 2048);
  for (int i = 0; i < 4; ++i) {
    batch.queryLengths.push_back(512);
    batch.keyLengths.push_back(512 * (i + 1));
  }
  plan(state, batch, int32_t(state.range(0)));
}
BENCHMARK(planChunked64)->Arg(2)->Arg(16);

/// One request of 131072 keys: split for all workers.
void planLongDecode(benchmark::State &state) {
  FakeBatch batch;
  batch.queryLengths = {1};
  batch.keyLengths = {131072};
  plan(state, batch, int32_t(state.range(0)));
}
BENCHMARK(planLongDecode)->Arg(16)->Arg(64);

/// fi_run with one short item per worker: checks, parameters, wake-up, barrier.
void runNothing(benchmark::State &state) {
  FakeProgram program = decodeProgram();
  for (FakeBody &body : program.bodies)
    body.scratch = 64;
  PackagePtr package(openFake(program.manifest()));
  Recorder recorder;
  recorder.visible = [](const Pair &) { return true; };
  FakeBatch batch;
  batch.queryLengths = {1};
  batch.keyLengths = {1};
  batch.bind(program, recorder);
  recorder.covered.clear();
  PlanPtr plan =
      planBatch(package.get(), batch, defaultOptions(int32_t(state.range(0))));
  Workspace workspace(fi_plan_workspace_bytes(plan.get()));
  for (auto _ : state)
    if (fi_run(plan.get(), 0, batch.run.data(), int32_t(batch.run.size()),
               batch.results.data(), 2, workspace.data(),
               workspace.size()) != FI_OK)
      return state.SkipWithError(fi_last_error());
}
BENCHMARK(runNothing)->Arg(1)->Arg(2)->UseRealTime();

/// fi_run_device of five tensors on a driver that does nothing: the runtime's
/// part of a launch. 32 layers in turns, each with pools of its own.
void runOnDevice(benchmark::State &state) {
  FakeProgram program = decodeProgram();
  FakeGpu gpu;
  gpu.open(deviceManifest(program));
  Recorder recorder;
  recorder.cover = false;
  FakeBatch batch;
  batch.queryLengths = {1};
  batch.keyLengths = {1 + 64 * state.range(0)}; // split or not
  batch.bind(program, recorder);
  PlanPtr plan = planBatch(gpu.package.get(), batch, gpu.options());
  Workspace workspace(fi_plan_workspace_bytes(plan.get()));
  gpu.adopt(batch);
  gpu.driver.adopt(workspace.data(), workspace.size() + 1);
  fi_driver *table = const_cast<fi_driver *>(gpu.driver.table());
  table->launch = [](void *, void *, const fi_driver_launch *launch) {
    benchmark::DoNotOptimize(launch->param_bytes);
    return 0;
  };
  std::vector<char> pools(64 << 12);
  gpu.driver.adopt(pools.data(), pools.size());
  size_t layer = 0;
  for (auto _ : state) {
    batch.run[2].as.tensor.data = pools.data() + (2 * layer << 12);
    batch.run[3].as.tensor.data = pools.data() + ((2 * layer + 1) << 12);
    layer = (layer + 1) % 32;
    if (fi_run_device(plan.get(), 0, batch.run.data(),
                      int32_t(batch.run.size()), batch.results.data(), 2,
                      workspace.data(), workspace.size(), nullptr) != FI_OK)
      return state.SkipWithError(fi_last_error());
  }
}
BENCHMARK(runOnDevice)->Arg(0)->Arg(1000);

/// Replanning for a device of 132 multiprocessors: 128 decodes of 2048 keys.
void planOnDevice(benchmark::State &state) {
  FakeProgram program = decodeProgram();
  FakeGpu gpu;
  gpu.driver.devices[0].multiprocessors = 132;
  gpu.open(deviceManifest(program));
  Recorder recorder;
  recorder.cover = false;
  FakeBatch batch;
  batch.queryLengths.assign(size_t(state.range(0)), 1);
  batch.keyLengths.assign(size_t(state.range(0)), state.range(1));
  batch.bind(program, recorder);
  fi_plan_options options = gpu.options();
  PlanPtr plan = planBatch(gpu.package.get(), batch, options);
  for (auto _ : state) {
    if (!plan || fi_plan_update(plan.get(), batch.plan.data(),
                                int32_t(batch.plan.size()), nullptr) != FI_OK)
      return state.SkipWithError(fi_last_error());
    gpu.driver.clear();
  }
}
BENCHMARK(planOnDevice)->Args({128, 2048})->Args({64, 4096})->Args({1, 131072});

} // namespace

BENCHMARK_MAIN();
