//===- KernelTest.cpp - CUDA kernels in the emulator ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

namespace fi::emulator::test {
namespace {

float floatOf(uint32_t b) {
  float v;
  std::memcpy(&v, &b, 4);
  return v;
}

void expectResult(const KernelCase &c) {
  const Words *got = nullptr;
  for (const KernelArgument &a : c.arguments)
    if (a.isOutput)
      got = &a.words;
  ASSERT_TRUE(got);
  ASSERT_EQ(got->size(), c.expected.size());
  float most = 0;
  for (uint32_t v : c.expected)
    most = std::max(most, std::fabs(floatOf(v)));
  size_t wrong = 0;
  for (size_t i = 0; i < got->size() && wrong < 5; ++i) {
    if (c.tolerance == 0) {
      if ((*got)[i] != c.expected[i]) {
        ++wrong;
        ADD_FAILURE() << c.kernel << "[" << i << "]: got 0x" << std::hex
                      << (*got)[i] << ", expected 0x" << c.expected[i];
      }
    } else if (!(std::fabs(floatOf((*got)[i]) - floatOf(c.expected[i])) <=
                 c.tolerance * most)) {
      ++wrong;
      ADD_FAILURE() << c.kernel << "[" << i << "]: got " << floatOf((*got)[i])
                    << ", expected " << floatOf(c.expected[i]);
    }
  }
}

class KernelTest : public testing::TestWithParam<size_t> {
protected:
  void run(const Options &options) {
    std::string error;
    KernelCase c = kernelCases()[GetParam()];
    auto device = Device::create(c.target, options, error);
    ASSERT_TRUE(device) << error;
    LaunchResult r = runCase(*device, c);
    EXPECT_EQ(r.error, "");
    for (const Report &report : r.reports)
      ADD_FAILURE() << report.str();
    expectResult(c);
  }
};

TEST_P(KernelTest, Plain) { run({}); }
TEST_P(KernelTest, Checked) {
  Options options;
  options.check = true;
  run(options);
}
TEST_P(KernelTest, OtherOrders) {
  for (uint64_t seed : {1, 2, 3}) {
    Options options;
    options.check = seed == 3;
    options.seed = seed;
    run(options);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelTest,
                         testing::Range(size_t(0), kernelCases().size()),
                         [](const auto &info) {
                           return kernelCases()[info.param].name();
                         });

TEST(Kernels, AreAtLeastTwenty) { EXPECT_GE(kernelCases().size(), 20u); }

TEST(Kernels, SwizzledTransposeHasNoConflicts) {
  Options options;
  options.countAccesses = true;
  std::string error;
  auto device = Device::create("sm_80", options, error);
  for (const KernelCase &which : kernelCases()) {
    if (which.kernel != "transpose_swizzle")
      continue;
    KernelCase c = which;
    LaunchResult r = runCase(*device, c);
    EXPECT_EQ(r.statistics.sharedAccesses, 4u * 8 * 4 * 2);
    EXPECT_EQ(r.statistics.sharedPasses, r.statistics.sharedAccesses);
    // 32 lanes of 4 bytes in order: four sectors.
    EXPECT_EQ(r.statistics.globalSectors, 4 * r.statistics.globalAccesses);
  }
}

} // namespace
} // namespace fi::emulator::test
