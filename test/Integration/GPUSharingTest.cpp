//===- GPUSharingTest.cpp - shared pages and wider memory on a GPU --------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "SharingCases.h"

using namespace fi;
using namespace fi::test;

namespace {

AttentionText halves() {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = "bf16";
  text.keyDim = text.valueDim = 32;
  text.clauses = "mask(#fi.causal)";
  return text;
}

} // namespace

class GPUWideMemory : public testing::TestWithParam<WideMemory> {};

TEST_P(GPUWideMemory, EqualsReference) {
  AttentionText text = halves();
  GetParam().change(text);
  std::vector<HostTensor> kept;
  Case test(text.get(), {{1, 37}, {5, 5}, {23, 70}, {0, 20}, {4, 0}, {1, 100}});
  if (text.isPageDynamic)
    test.setPageSize(8);
  spreadAll(test, GetParam(), kept);
  test.on(emulate).check(fewPlans());
}

INSTANTIATE_TEST_SUITE_P(Pools, GPUWideMemory,
                         testing::ValuesIn(wideMemories()),
                         [](const auto &info) { return info.param.name; });

TEST(GPUSharing, PagesOfSeveralRequests) {
  Case test(halves().get(), {});
  sharePages(test);
  test.on(emulate).check(fewPlans());
}

TEST(GPUSharing, LevelsOfPrefixes) {
  for (const char *element : {"f16", "bf16"}) {
    Case test(threeLevels(element), {});
    giveLevels(test);
    test.on(emulate).check(fewPlans());
  }
}

TEST(GPUSharing, NewTokensByTwoTablesAndOfLatents) {
  for (bool isLatent : {false, true})
    for (const char *element : {"f16", "bf16"})
      Case(appendTo(isLatent, element),
           {{1, 1}, {1, 37}, {5, 5}, {3, 130}, {0, 20}, {0, 0}, {70, 150}})
          .on(emulate)
          .check(fewPlans());
}
