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

/// Whole prompts, chunks, single rows, more rows than keys, and none.
std::vector<Request> batch() {
  return {{1, 37}, {5, 5}, {23, 70}, {0, 20}, {4, 0}, {9, 4}, {1, 100}};
}

llvm::ArrayRef<Planned> plans() {
  static const Planned all[] = {{3, SplitChoice::None},
                                {4, SplitChoice::Fixed, 64}};
  return all;
}

auto emulate(uint64_t seed = 0) { return emulateOn("sm_90a", seed); }

class GPUHopperSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUHopperSchedules, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  AttentionText text = attention(element, tiles);
  std::vector<Request> requests = batch();
  if (tiles.groups > 1) // items whose rows all warpgroups have
    requests.push_back({33 * tiles.groups, 90});
  Case(text.get(), requests).on(interpret).check(plans());
  Case(text.get(), requests).on(emulate(3 * tiles.stages)).check(plans());
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
          .check(plans());
    }
}

/// Rows whose first tiles are all hidden have no subtrahend when they meet
/// their first key.
TEST(GPUHopperLate, HiddenTiles) {
  AttentionText text = attention("bf16", {1, 16, 2, 1});
  text.clauses =
      "mask(#fi.causal, #fi.window<left = 9>)" + schedules({1, 16, 2, 1});
  Case(text.get(), {{60, 90}, {33, 170}, {1, 40}}).on(emulate()).check(plans());
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
struct Variant {
  const char *name;
  std::function<void(AttentionText &)> change;
};
void PrintTo(const Variant &variant, std::ostream *os) { *os << variant.name; }

class GPUHopperVariants : public testing::TestWithParam<Variant> {};

TEST_P(GPUHopperVariants, EqualsReference) {
  AttentionText text = attention("bf16", kTiles);
  GetParam().change(text);
  std::vector<Request> requests = batch();
  if (text.view == View::Contiguous)
    requests = {{23, 140}};
  Case test(text.get(), requests);
  if (text.isPageDynamic)
    test.setPageSize(8);
  test.on(emulate()).check(plans());
}

INSTANTIATE_TEST_SUITE_P(
    Views, GPUHopperVariants,
    testing::Values(
        Variant{"page1_nhd",
                [](AttentionText &t) {
                  t.page = 1;
                  t.isHND = false;
                }},
        Variant{"page16_nhd", [](AttentionText &t) { t.isHND = false; }},
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
        Variant{"any_page", [](AttentionText &t) { t.isPageDynamic = true; }},
        Variant{"fused",
                [](AttentionText &t) {
                  t.isFused = true;
                  t.page = 4;
                }},
        Variant{"two_tables", [](AttentionText &t) { t.hasTwoTables = true; }},
        Variant{"two_tables_page1",
                [](AttentionText &t) {
                  t.hasTwoTables = true;
                  t.page = 1;
                  t.valueDim = 32;
                }},
        Variant{"ragged_nhd",
                [](AttentionText &t) {
                  t.view = View::Ragged;
                  t.isHND = false;
                }},
        Variant{"ragged_hnd", [](AttentionText &t) { t.view = View::Ragged; }},
        Variant{"contiguous",
                [](AttentionText &t) { t.view = View::Contiguous; }},
        Variant{"dense_i64",
                [](AttentionText &t) {
                  t.view = View::Dense;
                  t.index = "i64";
                }},
        Variant{"blocks", [](AttentionText &t) { t.view = View::Bsr; }},
        Variant{"small_blocks",
                [](AttentionText &t) {
                  t.view = View::Bsr;
                  t.blockRows = 5;
                  t.blockColumns = 32;
                  t.isHND = false;
                  t.index = "i64";
                }},
        Variant{"origin", [](AttentionText &t) { t.hasOrigin = true; }},
        Variant{"positions", [](AttentionText &t) { t.hasPositions = true; }},
        Variant{"no_statistic",
                [](AttentionText &t) { t.hasStatistic = false; }},
        Variant{"f32_output", [](AttentionText &t) { t.output = "f32"; }},
        Variant{"f16",
                [](AttentionText &t) {
                  t.query = t.keys = t.values = t.output = "f16";
                  t.page = 8;
                }},
        Variant{"group1",
                [](AttentionText &t) {
                  t.kvHeads = 3;
                  t.group = 1;
                }},
        Variant{"group7",
                [](AttentionText &t) {
                  t.kvHeads = 1;
                  t.group = 7;
                }}),
    [](const auto &info) { return info.param.name; });

std::function<void(AttentionText &)> dims(int64_t key, int64_t value) {
  return [=](AttentionText &t) {
    t.keyDim = key;
    t.valueDim = value;
    t.kvHeads = 1;
  };
}
INSTANTIATE_TEST_SUITE_P(Dims, GPUHopperVariants,
                         testing::Values(Variant{"d8", dims(8, 8)},
                                         Variant{"d24_40", dims(24, 40)},
                                         Variant{"d32", dims(32, 32)},
                                         Variant{"d72", dims(72, 72)},
                                         Variant{"d96", dims(96, 96)},
                                         Variant{"d128", dims(128, 128)},
                                         Variant{"d192_128", dims(192, 128)},
                                         Variant{"d256", dims(256, 256)}),
                         [](const auto &info) { return info.param.name; });

/// Another mask, or what else stands before the schedules.
std::function<void(AttentionText &)> clauses(const std::string &text) {
  return [=](AttentionText &t) { t.clauses = text + schedules(kTiles); };
}
INSTANTIATE_TEST_SUITE_P(
    Clauses, GPUHopperVariants,
    testing::Values(
        Variant{"full", clauses("")},
        Variant{"window", clauses("mask(#fi.window<left = 17, right = 3>)")},
        Variant{"any", clauses("mask(#fi.any<#fi.window<left = 3, right = 2>, "
                               "#fi.window<right = 0>>)")},
        Variant{"softcap",
                clauses("score(#fi.softcap<30.0>) mask(#fi.causal)")},
        Variant{"base_e",
                clauses("normalise(#fi.softmax<base = e>) mask(#fi.causal)")},
        Variant{"sum", clauses("normalise(#fi.sum) mask(#fi.causal)")},
        Variant{
            "sigmoid",
            clauses("normalise(#fi.sigmoid<bias = -2.0>) mask(#fi.causal)")},
        Variant{"dilated",
                clauses(maskRegion(
                    "%d = arith.subi %qp, %kp : index\n"
                    "%c = arith.constant 3 : index\n"
                    "%r = arith.remsi %d, %c : index\n"
                    "%z = arith.constant 0 : index\n"
                    "%a = arith.cmpi eq, %r, %z : index\n"
                    "%w = arith.constant 90 : index\n"
                    "%near = arith.cmpi sle, %d, %w : index\n"
                    "%m = arith.andi %a, %near : i1\nfi.yield %m : i1"))},
        Variant{"bias",
                clauses(scoreRegion(
                    "%d = arith.subi %kp, %qp : index\n"
                    "%i = arith.index_cast %d : index to i32\n"
                    "%f = arith.sitofp %i : i32 to f32\n"
                    "%m = arith.constant 0.03125 : f32\n"
                    "%b = arith.mulf %f, %m : f32\n"
                    "%t = arith.addf %s, %b : f32\nfi.yield %t : f32"))}),
    [](const auto &info) { return info.param.name; });

/// The same without rotation, where both products are waited for at once.
TEST(GPUHopperVariants, OfOtherNormalisersWithoutRotation) {
  for (const char *clause :
       {"normalise(#fi.sum)", "normalise(#fi.sigmoid<bias = -2.0>)",
        "mask(#fi.window<left = 17, right = 3>)"}) {
    SCOPED_TRACE(clause);
    AttentionText text = attention("f16", kTiles);
    text.clauses = clause + schedules({1, 32, 2, 0});
    Case(text.get(), batch()).on(emulate()).check(plans());
  }
}

TEST(GPUHopperRegions, Captures) {
  AttentionText text = attention("f16", kTiles);
  text.clauses =
      "captures(%sl = %slope : tensor<4xf32>, %pre = %prefix : "
      "tensor<?xi32>)\n" +
      scoreRegion("%m = fi.load %sl[%qh] : tensor<4xf32>\n"
                  "%d = arith.subi %kp, %qp : index\n"
                  "%i = arith.index_cast %d : index to i32\n"
                  "%f = arith.sitofp %i : i32 to f32\n"
                  "%b = arith.mulf %f, %m : f32\n"
                  "%t = arith.addf %s, %b : f32\nfi.yield %t : f32") +
      maskRegion("%n = fi.load %pre[%req] : tensor<?xi32>\n"
                 "%i = arith.index_cast %n : i32 to index\n"
                 "%in = arith.cmpi slt, %kp, %i : index\n"
                 "%c = arith.cmpi sle, %kp, %qp : index\n"
                 "%m = arith.ori %in, %c : i1\nfi.yield %m : i1") +
      schedules(kTiles);
  text.planArguments = ", %prefix: tensor<?xi32>";
  text.runArguments = ", %slope: tensor<4xf32>";
  // An entry is missing: it reads as 0.
  Case(text.get(), batch())
      .give("prefix", integers({30, 5, 2, 7, 3, 70}))
      .give("slope", floats({0.5, 0.25, 0.125, 0.0625}))
      .on(emulate())
      .check(plans());
}

TEST(GPUHopperRegions, PackedMasks) {
  checkPackedMasks(
      attention("bf16", kTiles), schedules(kTiles), batch(),
      [](Case &test) { test.on(emulate()); }, plans());
}

TEST(GPUHopperRegions, Sinks) {
  AttentionText text = attention("bf16", kTiles);
  text.clauses = "sink(%sink : tensor<4xf32>) " + text.clauses;
  text.runArguments = ", %sink: tensor<4xf32>";
  Case(text.get(), batch())
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .on(emulate())
      .check(plans());
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
