//===- GPUAdditiveTest.cpp - states that add on a GPU -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `#fi.sum` and `#fi.sigmoid` in placed kernels, interpreted and as code in the
// emulator: groups of warps that share an item's keys, pieces that meet in a
// kernel, merged states.
//
//===----------------------------------------------------------------------===//

#include "AdditiveTesting.h"
#include "EmulatedExecutor.h"

using namespace fi;
using namespace fi::test;

namespace {

class GPUAdditive : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Kinds, GPUAdditive, testing::ValuesIn(kAdditiveKinds),
                         [](const auto &info) {
                           return "kind" + std::to_string(info.index);
                         });

llvm::ArrayRef<Planned> plans() {
  static const Planned all[] = {{3, SplitChoice::None},
                                {4, SplitChoice::Fixed, 64},
                                {2, SplitChoice::Fixed, 32}};
  return all;
}

AttentionText attention(const char *kind, const char *schedule) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = "bf16";
  text.keyDim = text.valueDim = 32;
  text.clauses = std::string("normalise(") + kind +
                 ") mask(#fi.causal) schedules([#fi.schedule<" + schedule +
                 ">])";
  return text;
}

// Many pieces: pieces meet by several, and not by a multiple of what a merge
// reads at once.
TEST_P(GPUAdditive, PiecesMeet) {
  AttentionText text = attention(
      GetParam(), "tile_rows = 16, tile_keys = 16, warps = 1, stages = 2, "
                  "lanes = 4");
  std::vector<Request> batch = {{1, 700}, {3, 37}, {4, 0}, {2, 130}};
  Case(text.get(), batch).on(emulate).check(plans());
  Case(text.get(), {{1, 150}, {3, 37}}).on(interpret).check(plans());
}

TEST_P(GPUAdditive, GroupsOfWarps) {
  AttentionText text = attention(
      GetParam(), "tile_rows = 16, tile_keys = 32, warps = 1, key_warps = 4, "
                  "stages = 1, lanes = 4");
  Case(text.get(), {{1, 300}, {3, 37}, {4, 0}, {2, 130}})
      .on(emulate)
      .check(plans());
  Case(text.get(), {{1, 300}, {3, 37}}).on(interpret).check(plans());
}

TEST_P(GPUAdditive, StatesAdd) {
  for (const char *element : {"f16", "bf16"}) {
    SCOPED_TRACE(element);
    Case test(additiveCascade(element, GetParam()), {});
    giveCascade(test).on(emulate).check(plans());
  }
}

} // namespace
