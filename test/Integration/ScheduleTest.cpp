//===- ScheduleTest.cpp - schedules and targets set by hand ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi/Target/CPU/CPUCompiler.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Tiles {
  int64_t rows, keys, mr, nr, lanes;
};

std::string schedule(Tiles tiles, int64_t maxRows = 0) {
  std::string text = "#fi.schedule<tile_rows = " + std::to_string(tiles.rows) +
                     ", tile_keys = " + std::to_string(tiles.keys) +
                     ", mr = " + std::to_string(tiles.mr) +
                     ", nr = " + std::to_string(tiles.nr) +
                     ", lanes = " + std::to_string(tiles.lanes);
  if (maxRows)
    text += ", max_rows = " + std::to_string(maxRows);
  return text + ">";
}

AttentionText causal(const std::string &element, const std::string &schedules) {
  AttentionText text;
  text.keyDim = text.valueDim = 40;
  text.query = text.keys = text.values = text.output = element;
  text.clauses = "mask(#fi.causal) schedules([" + schedules + "])";
  return text;
}

llvm::ArrayRef<Planned> twoPlans() {
  static const Planned plans[] = {{2}, {4, SplitChoice::Fixed, 64}};
  return plans;
}

const Tiles kGrid[] = {
    {2, 16, 1, 1, 1},    {2, 16, 2, 1, 16},  {3, 32, 3, 2, 16},
    {5, 16, 1, 4, 1},    {7, 48, 7, 2, 16},  {8, 64, 4, 3, 1},
    {16, 128, 8, 2, 16}, {24, 16, 6, 1, 1},  {32, 64, 2, 4, 16},
    {33, 80, 11, 1, 16}, {64, 32, 8, 2, 1},  {128, 64, 4, 4, 16},
    {130, 64, 1, 1, 1},  {12, 256, 3, 5, 16}};

class ScheduleTest
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(ScheduleTest, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  SCOPED_TRACE(schedule(tiles));
  Case(causal(element, schedule(tiles)).get(),
       {{1, 37}, {5, 5}, {40, 150}, {9, 4}, {3, 300}, {4, 0}})
      .setOptLevel(0)
      .check(twoPlans());
}

INSTANTIATE_TEST_SUITE_P(Grid, ScheduleTest,
                         testing::Combine(testing::Values("f32", "bf16"),
                                          testing::ValuesIn(kGrid)));

TEST(SchedulesTest, ThreeBodies) {
  Case(causal("f32", schedule({2, 64, 2, 4, 16}, 2) + ", " +
                         schedule({16, 32, 8, 2, 1}, 16) + ", " +
                         schedule({64, 128, 8, 2, 16}))
           .get(),
       mixedBatch())
      .check();
}

/// A query of many rows reaches the first body alone, if it is the only one.
TEST(SchedulesTest, OneSmallBody) {
  Case(causal("f32", schedule({4, 64, 4, 2, 16})).get(), mixedBatch()).check();
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

class VectorTest
    : public testing::TestWithParam<std::tuple<int, const char *, int64_t>> {};

TEST_P(VectorTest, GivesEqualResults) {
  auto [bits, element, dim] = GetParam();
  if (bits > cpu::getHostTarget(&getContext()).getVectorBits())
    GTEST_SKIP() << "this machine has no vectors of " << bits << " bits";
  AttentionText text;
  text.keyDim = text.valueDim = dim;
  text.query = text.keys = text.values = text.output = element;
  text.target = "#fi.target<cpu, vector_bits = " + std::to_string(bits) + ">";
  text.clauses = "captures(%sl = %slope : tensor<4xf32>)\n" +
                 scoreRegion("%m = fi.load %sl[%qh] : tensor<4xf32>\n"
                             "%t = arith.addf %s, %m : f32\n"
                             "fi.yield %t : f32") +
                 " mask(#fi.causal)";
  text.runArguments = ", %slope: tensor<4xf32>";
  // At 0 the element's loops stay as they are written; at 3 they are combined.
  Case(text.get(), mixedBatch())
      .setOptLevel(dim == 40 ? 3 : 0)
      .check(twoPlans());
}

INSTANTIATE_TEST_SUITE_P(Widths, VectorTest,
                         testing::Combine(testing::Values(128, 256, 512),
                                          testing::Values("f32", "f16", "bf16"),
                                          testing::Values(8, 40, 128)));

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(ScheduleErrorTest, NamesWhatDoesNotFit) {
  auto error = [](const std::string &element, const std::string &schedules) {
    return Case(causal(element, schedules).get(), {{20, 37}}).getError();
  };
  std::string message = error("f32", schedule({1, 64, 1, 1, 1}));
  EXPECT_NE(message.find("tile_rows"), std::string::npos) << message;
  EXPECT_NE(message.find("SCH3"), std::string::npos) << message;
  message = error("f32", schedule({8, 1, 8, 1, 1}));
  EXPECT_NE(message.find("SCH2"), std::string::npos) << message;
  message = error("f32", schedule({8, 10, 8, 1, 1}));
  EXPECT_NE(message.find("SCH2"), std::string::npos) << message;
  message = error("bf16", schedule({8, 33, 8, 1, 1}));
  EXPECT_NE(message.find("SCH2"), std::string::npos) << message;
  message = error("f32", schedule({8, 64, 8, 1, 2}));
  EXPECT_NE(message.find("SCH2"), std::string::npos) << message;
  message = error("f32", schedule({8, 64, 8, 1, 1}, 8));
  EXPECT_NE(message.find("at most 4 rows in a request"), std::string::npos)
      << message;
}

} // namespace
