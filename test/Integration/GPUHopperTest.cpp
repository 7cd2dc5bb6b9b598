//===- GPUHopperTest.cpp - roles and products of warpgroups ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules with `load_warps`, `wgmma`, `rotate` and `tma`: warps that copy, or
// have boxes copied, and warps that multiply meet in mbarriers, and products
// are under way while weights are computed. The interpreter of level 2 and the
// emulator, which ends copies and products early or late by its seed, equal the
// reference.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "GPUVariants.h"
#include "PackedMasks.h"

using namespace fi;
using namespace fi::test;

namespace {

/// Rows are 64 for each warpgroup.
struct Tiles {
  int64_t groups, keys, stages, rotate, tma = 1, late = 1, loads = 4;
};
void PrintTo(Tiles tiles, std::ostream *os) {
  *os << 64 * tiles.groups << 'x' << tiles.keys << ", " << tiles.stages
      << " stages" << (tiles.rotate ? ", rotated" : "")
      << (tiles.tma ? ", tensor copies" : "")
      << (tiles.late ? ", late maxima" : "");
}

constexpr Tiles kTiles = {1, 32, 2, 1};

std::string schedules(Tiles tiles) {
  return " schedules([#fi.schedule<tile_rows = " +
         std::to_string(64 * tiles.groups) +
         ", tile_keys = " + std::to_string(tiles.keys) +
         ", warps = " + std::to_string(4 * tiles.groups) +
         ", load_warps = " + std::to_string(tiles.loads) +
         ", stages = " + std::to_string(tiles.stages) +
         ", wgmma = 1, rotate = " + std::to_string(tiles.rotate) +
         ", tma = " + std::to_string(tiles.tma) +
         ", late = " + std::to_string(tiles.late) + ", lanes = 4>])";
}

AttentionText attention(const std::string &element, Tiles tiles) {
  AttentionText text;
  text.target = "#fi.target<sm_90a>";
  text.query = text.keys = text.values = text.output = element;
  text.kvHeads = 2;
  text.group = 2;
  text.clauses = "mask(#fi.causal)" + schedules(tiles);
  return text;
}

auto emulate(uint64_t seed = 0) { return emulateOn("sm_90a", seed); }

class GPUHopperSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUHopperSchedules, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  AttentionText text = attention(element, tiles);
  std::vector<Request> requests = smallBatch();
  if (tiles.groups > 1) // items whose rows all warpgroups have
    requests.push_back({33 * tiles.groups, 90});
  Case(text.get(), requests).on(interpret).check(fewPlans());
  Case(text.get(), requests).on(emulate(3 * tiles.stages)).check(fewPlans());
}

INSTANTIATE_TEST_SUITE_P(
    Grid, GPUHopperSchedules,
    testing::Combine(testing::Values("f16", "bf16"),
                     testing::Values(Tiles{1, 16, 1, 0}, Tiles{1, 16, 4, 1},
                                     Tiles{1, 64, 1, 1}, Tiles{1, 128, 2, 1},
                                     Tiles{1, 48, 3, 0}, Tiles{2, 32, 1, 1},
                                     Tiles{2, 64, 2, 0}, Tiles{2, 128, 2, 1},
                                     Tiles{3, 16, 2, 0}, Tiles{3, 96, 2, 1},
                                     Tiles{3, 64, 4, 1}, Tiles{1, 48, 3, 1, 0},
                                     Tiles{2, 32, 1, 0, 0},
                                     Tiles{3, 64, 4, 1, 0},
                                     Tiles{1, 32, 2, 1, 1, 0},
                                     Tiles{3, 64, 4, 1, 1, 0})));

/// Copies and products that are done early and late, warps in other orders.
TEST(GPUHopperOrders, Seeds) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Tiles tiles = {int64_t(1 + seed % 2), 32, int64_t(1 + seed % 3),
                   int64_t(seed % 4 != 0), int64_t(seed % 3 != 0)};
    Case(attention("f16", tiles).get(), {{1, 37}, {23, 70}, {40, 150}, {2, 0}})
        .on(emulate(seed))
        .check({{3, SplitChoice::None}});
  }
}

/// Scores that outgrow the subtrahends of their rows, from tile to tile and by
/// far: weights are computed a second time. Their powers would exceed f16.
TEST(GPUHopperLate, LargeScores) {
  for (const char *scale : {"2.0", "40.0"})
    for (int64_t late : {0, 1}) {
      SCOPED_TRACE(std::string(scale) + (late ? ", late" : ""));
      AttentionText text = attention("f16", {1, 16, 2, 1, 1, late});
      text.scale = scale;
      Case(text.get(), {{1, 37}, {23, 170}, {40, 150}, {2, 0}})
          .on(emulate())
          .check(fewPlans());
    }
}

/// Rows whose first tiles are all hidden have no subtrahend when they meet
/// their first key.
TEST(GPUHopperLate, HiddenTiles) {
  AttentionText text = attention("bf16", {1, 16, 2, 1});
  text.clauses =
      "mask(#fi.causal, #fi.window<left = 9>)" + schedules({1, 16, 2, 1});
  Case(text.get(), {{60, 90}, {33, 170}, {1, 40}})
      .on(emulate())
      .check(fewPlans());
}

/// More warps that copy than buffers, and as many and fewer buffers than warps;
/// pages of one key, whose entries lanes look up for one another, and of 16.
TEST(GPUHopperFillers, WarpsAndBuffers) {
  for (int64_t stages : {1, 3, 4})
    for (int64_t loads : {4, 8}) {
      SCOPED_TRACE(std::to_string(stages) + " stages, " +
                   std::to_string(loads) + " warps");
      AttentionText text =
          attention("f16", {1, 48, stages, 1, loads == 8, 1, loads});
      text.page = stages == 4 ? 16 : 1;
      Case(text.get(), {{1, 37}, {23, 170}, {40, 150}, {2, 0}})
          .on(emulate(stages))
          .check({{1, SplitChoice::None}});
    }
}

/// Rings go on from item to item: workers of many items, with any number of
/// tiles.
TEST(GPUHopperOrders, ManyItemsAWorker) {
  std::vector<Request> requests;
  for (int64_t keys : {0, 1, 33, 64, 95, 97, 0, 130, 32, 161})
    requests.push_back({2, keys});
  for (int64_t rotate : {0, 1})
    for (int64_t stages : {1, 2, 3})
      Case(attention("f16", {1, 32, stages, rotate, stages % 2}).get(),
           requests)
          .on(emulate(stages))
          .check({{1, SplitChoice::None}});
}

//===----------------------------------------------------------------------===//
// Views, head dims, regions
//===----------------------------------------------------------------------===//

using View = AttentionText::View;
class GPUHopperVariants : public testing::TestWithParam<Variant> {};

TEST_P(GPUHopperVariants, EqualsReference) {
  AttentionText text = attention("bf16", kTiles);
  GetParam().change(text);
  std::vector<Request> requests = smallBatch();
  if (text.view == View::Contiguous)
    requests = {{23, 140}};
  Case test(text.get(), requests);
  if (text.isPageDynamic)
    test.setPageSize(8);
  test.on(emulate()).check(fewPlans());
}

INSTANTIATE_TEST_SUITE_P(
    Views, GPUHopperVariants,
    testing::ValuesIn(viewVariants(
        {Variant{"page16_nhd", [](AttentionText &t) { t.isHND = false; }},
         Variant{"page8_fused",
                 [](AttentionText &t) {
                   t.isFused = true;
                   t.page = 8;
                 }},
         Variant{"page64", [](AttentionText &t) { t.page = 64; }},
         Variant{"page24_nhd",
                 [](AttentionText &t) {
                   t.page = 24;
                   t.isHND = false;
                 }},
         Variant{"contiguous",
                 [](AttentionText &t) { t.view = View::Contiguous; }},
         Variant{"f16",
                 [](AttentionText &t) {
                   t.query = t.keys = t.values = t.output = "f16";
                   t.page = 8;
                 }}})),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Dims, GPUHopperVariants,
                         testing::Values(dimVariant(8, 8), dimVariant(24, 40),
                                         dimVariant(32, 32), dimVariant(72, 72),
                                         dimVariant(96, 96),
                                         dimVariant(128, 128),
                                         dimVariant(192, 128),
                                         dimVariant(256, 256)),
                         nameOf);

INSTANTIATE_TEST_SUITE_P(Clauses, GPUHopperVariants,
                         testing::ValuesIn(clauseVariants(schedules(kTiles))),
                         nameOf);

/// The same without rotation, where both products are waited for at once.
TEST(GPUHopperVariants, OfOtherNormalisersWithoutRotation) {
  for (const char *clause :
       {"normalise(#fi.sum)", "normalise(#fi.sigmoid<bias = -2.0>)",
        "mask(#fi.window<left = 17, right = 3>)"}) {
    SCOPED_TRACE(clause);
    AttentionText text = attention("f16", kTiles);
    text.clauses = clause + schedules({1, 32, 2, 0});
    Case(text.get(), smallBatch()).on(emulate()).check(fewPlans());
  }
}

TEST(GPUHopperRegions, Captures) {
  checkCaptures(attention("f16", kTiles), schedules(kTiles), emulate());
}

TEST(GPUHopperRegions, PackedMasks) {
  checkPackedMasks(
      attention("bf16", kTiles), schedules(kTiles), smallBatch(),
      [](Case &test) { test.on(emulate()); }, fewPlans());
}

TEST(GPUHopperRegions, Sinks) {
  AttentionText text = attention("bf16", kTiles);
  text.clauses = "sink(%sink : tensor<4xf32>) " + text.clauses;
  text.runArguments = ", %sink: tensor<4xf32>";
  Case(text.get(), smallBatch())
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .on(emulate())
      .check(fewPlans());
}

/// Schedules that are chosen: one of warpgroups among them.
TEST(GPUHopperSchedule, Chosen) {
  for (auto [key, value] : {std::pair<int64_t, int64_t>{128, 128}, {64, 64}}) {
    AttentionText text = attention("bf16", kTiles);
    text.clauses = "mask(#fi.causal)";
    text.keyDim = key;
    text.valueDim = value;
    Case(text.get(), {{1, 100}, {3, 20}, {100, 130}})
        .on(emulate())
        .check({{3, SplitChoice::None}});
  }
}

/// What a schedule of warpgroups cannot be.
TEST(GPUHopperErrors, AreSentences) {
  auto expect = [](const AttentionText &text, const std::string &sentence) {
    std::string error = Case(text.get(), {{3, 20}}).on(emulate()).getError();
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
  };
  AttentionText wide = attention("f16", kTiles);
  wide.keys = wide.values = wide.query = "f32";
  expect(wide, "leave 'wgmma' out of the schedule [SCH9]");
  AttentionText old = attention("f16", kTiles);
  old.target = "#fi.target<sm_80>";
  expect(old, "expected a target with products of warpgroups for 'wgmma', but "
              "got sm_80 [SCH9]");
}

} // namespace
