//===- SharingTest.cpp - shared pages and pools in wider memory -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharingCases.h"

using namespace fi;
using namespace fi::test;

class WideMemoryTest : public testing::TestWithParam<WideMemory> {};

TEST_P(WideMemoryTest, EqualsReference) {
  for (const char *element : {"f32", "bf16"}) {
    SCOPED_TRACE(element);
    AttentionText text;
    text.query = text.keys = text.values = text.output = element;
    text.keyDim = text.valueDim = 32;
    text.clauses = "mask(#fi.causal)";
    GetParam().change(text);
    std::vector<HostTensor> kept;
    Case test(text.get(), mixedBatch());
    if (text.isPageDynamic)
      test.setPageSize(8);
    spreadAll(test, GetParam(), kept);
    test.setOptLevel(0).check();
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, WideMemoryTest,
                         testing::ValuesIn(wideMemories()),
                         [](const auto &info) { return info.param.name; });

TEST(SharingTest, PagesOfSeveralRequests) {
  for (bool isHND : {false, true})
    for (const char *element : {"f32", "bf16"}) {
      AttentionText text;
      text.query = text.keys = text.values = text.output = element;
      text.isHND = isHND;
      text.clauses = "mask(#fi.causal)";
      Case test(text.get(), {});
      sharePages(test);
      test.check();
    }
}

TEST(SharingTest, LevelsOfPrefixes) {
  for (const char *element : {"f32", "f16", "bf16"}) {
    Case test(threeLevels(element), {});
    giveLevels(test);
    test.check();
  }
}

TEST(SharingTest, NewTokensByTwoTablesAndOfLatents) {
  for (bool isLatent : {false, true})
    for (const char *element : {"f32", "bf16"})
      Case(appendTo(isLatent, element),
           {{1, 1}, {1, 37}, {5, 5}, {3, 130}, {0, 20}, {0, 0}, {70, 150}})
          .check();
}
