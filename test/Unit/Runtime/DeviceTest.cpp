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
  EXPECT_GT(gpu.driver.launches[0].grid[0], 100u);
}

} // namespace
