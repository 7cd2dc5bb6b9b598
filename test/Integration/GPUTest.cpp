//===- GPUTest.cpp - programs on an emulated GPU --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of level 1 go down to PTX in process, are planned by the runtime for
// a device, and run in the emulator, with its checks, against the reference;
// and their placed form, before there is code, in the interpreter of level 2.
// Only the text of schedules differs where there are many.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "PackedMasks.h"

using namespace fi;
using namespace fi::test;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

struct Tiles {
  int64_t rows, keys, warps, stages, lanes;
};

std::string schedule(Tiles tiles) {
  return "#fi.schedule<tile_rows = " + std::to_string(tiles.rows) +
         ", tile_keys = " + std::to_string(tiles.keys) +
         ", warps = " + std::to_string(tiles.warps) +
         ", stages = " + std::to_string(tiles.stages) +
         ", lanes = " + std::to_string(tiles.lanes) + ">";
}

AttentionText attention(const std::string &element, Tiles tiles) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = element;
  text.kvHeads = 2;
  text.group = 2;
  text.clauses = "mask(#fi.causal) schedules([" + schedule(tiles) + "])";
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

class GPUSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUSchedules, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  SCOPED_TRACE(schedule(tiles));
  AttentionText text = attention(element, tiles);
  Case(text.get(), batch()).on(interpret).check(plans());
  Case(text.get(), batch()).on(emulate).check(plans());
}

INSTANTIATE_TEST_SUITE_P(
    Grid, GPUSchedules,
    testing::Combine(
        testing::Values("f16", "bf16"),
        testing::Values(Tiles{16, 16, 1, 1, 1}, Tiles{16, 32, 1, 2, 4},
                        Tiles{32, 64, 2, 2, 4}, Tiles{64, 16, 4, 4, 4},
                        Tiles{64, 48, 2, 3, 1}, Tiles{96, 32, 3, 2, 4},
                        Tiles{128, 64, 4, 2, 4}, Tiles{128, 32, 8, 1, 4})));

//===----------------------------------------------------------------------===//
// Views, head dims, regions
//===----------------------------------------------------------------------===//

constexpr Tiles kTiles = {32, 32, 2, 2, 4};

struct Variant {
  const char *name;
  std::function<void(AttentionText &)> change;
};
void PrintTo(const Variant &variant, std::ostream *os) { *os << variant.name; }

class GPUVariants : public testing::TestWithParam<Variant> {};

TEST_P(GPUVariants, EqualsReference) {
  for (const char *element : {"f16", "bf16"}) {
    SCOPED_TRACE(element);
    AttentionText text = attention(element, kTiles);
    GetParam().change(text);
    Case test(text.get(), batch());
    if (text.isPageDynamic)
      test.setPageSize(8);
    test.on(emulate).check(plans());
  }
}

/// Latents, shared by all heads.
void setLatent(AttentionText &text, int64_t latent, int64_t tail,
               int64_t heads) {
  text.valueDim = latent;
  text.tailDim = tail;
  text.kvHeads = 1;
  text.group = heads;
  text.isQuerySplit = true;
}

using View = AttentionText::View;
INSTANTIATE_TEST_SUITE_P(
    Views, GPUVariants,
    testing::Values(
        Variant{"page1_nhd",
                [](AttentionText &t) {
                  t.page = 1;
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
        Variant{"two_tables_fused_dense",
                [](AttentionText &t) {
                  t.hasTwoTables = t.isFused = true;
                  t.view = View::Dense;
                  t.index = "i64";
                }},
        Variant{"latent", [](AttentionText &t) { setLatent(t, 64, 16, 16); }},
        Variant{"latent_one_query",
                [](AttentionText &t) {
                  setLatent(t, 64, 16, 16);
                  t.isQuerySplit = false;
                  t.page = 8;
                }},
        Variant{"latent_one_odd_query",
                [](AttentionText &t) {
                  setLatent(t, 72, 24, 5);
                  t.isQuerySplit = false;
                }},
        Variant{"latent_odd",
                [](AttentionText &t) {
                  setLatent(t, 72, 40, 3);
                  t.isPageDynamic = true;
                }},
        Variant{"latent_dense",
                [](AttentionText &t) {
                  setLatent(t, 128, 64, 20);
                  t.view = View::Dense;
                  t.page = 1;
                }},
        Variant{"latent_f32_query",
                [](AttentionText &t) {
                  setLatent(t, 32, 16, 8);
                  t.query = "f32";
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
        Variant{"dense_i64",
                [](AttentionText &t) {
                  t.view = View::Dense;
                  t.index = "i64";
                }},
        Variant{"ragged_nhd",
                [](AttentionText &t) {
                  t.view = View::Ragged;
                  t.isHND = false;
                }},
        Variant{"ragged_hnd", [](AttentionText &t) { t.view = View::Ragged; }},
        Variant{"origin", [](AttentionText &t) { t.hasOrigin = true; }},
        Variant{"positions", [](AttentionText &t) { t.hasPositions = true; }},
        Variant{"no_statistic",
                [](AttentionText &t) { t.hasStatistic = false; }},
        Variant{"f32_output", [](AttentionText &t) { t.output = "f32"; }},
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
INSTANTIATE_TEST_SUITE_P(Dims, GPUVariants,
                         testing::Values(Variant{"d8", dims(8, 8)},
                                         Variant{"d24", dims(24, 24)},
                                         Variant{"d40_72", dims(40, 72)},
                                         Variant{"d80", dims(80, 80)},
                                         Variant{"d96", dims(96, 96)},
                                         Variant{"d128", dims(128, 128)},
                                         Variant{"d192_128", dims(192, 128)},
                                         Variant{"ragged_d192_128",
                                                 [](AttentionText &t) {
                                                   dims(192, 128)(t);
                                                   t.view = View::Ragged;
                                                   t.isHND = false;
                                                   t.kvHeads = 2;
                                                 }},
                                         Variant{"d256", dims(256, 256)},
                                         Variant{"d512", dims(512, 512)}),
                         [](const auto &info) { return info.param.name; });

/// Another mask, or what else stands before the schedules.
std::function<void(AttentionText &)> clauses(const std::string &text) {
  return [=](AttentionText &t) {
    t.clauses = text + " schedules([" + schedule(kTiles) + "])";
  };
}
INSTANTIATE_TEST_SUITE_P(
    Clauses, GPUVariants,
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
        Variant{"alternating",
                clauses(maskRegion("%two = arith.constant 2 : index\n"
                                   "%odd = arith.remui %req, %two : index\n"
                                   "%z = arith.constant 0 : index\n"
                                   "%even = arith.cmpi eq, %odd, %z : index\n"
                                   "%m = scf.if %even -> i1 {\n"
                                   "%a = arith.cmpi sle, %kp, %qp : index\n"
                                   "scf.yield %a : i1\n} else {\n"
                                   "%w = arith.constant 9 : index\n"
                                   "%e = arith.addi %kp, %w : index\n"
                                   "%b = arith.cmpi sge, %e, %qp : index\n"
                                   "scf.yield %b : i1\n}\nfi.yield %m : i1"))},
        Variant{"bias",
                clauses(scoreRegion(
                    "%d = arith.subi %kp, %qp : index\n"
                    "%i = arith.index_cast %d : index to i32\n"
                    "%f = arith.sitofp %i : i32 to f32\n"
                    "%m = arith.constant 0.03125 : f32\n"
                    "%b = arith.mulf %f, %m : f32\n"
                    "%t = arith.addf %s, %b : f32\nfi.yield %t : f32"))}),
    [](const auto &info) { return info.param.name; });

TEST(GPURegions, Captures) {
  AttentionText text = attention("f16", kTiles);
  text.clauses =
      "captures(%sl = %slope : tensor<4xf32>, %pre = %prefix : "
      "tensor<?xi32>)\n" +
      scoreRegion("%m = fi.load %sl[%qh] : tensor<4xf32>\n"
                  "%t = arith.addf %s, %m : f32\nfi.yield %t : f32") +
      maskRegion("%n = fi.load %pre[%req] : tensor<?xi32>\n"
                 "%i = arith.index_cast %n : i32 to index\n"
                 "%in = arith.cmpi slt, %kp, %i : index\n"
                 "%c = arith.cmpi sle, %kp, %qp : index\n"
                 "%m = arith.ori %in, %c : i1\nfi.yield %m : i1") +
      " schedules([" + schedule(kTiles) + "])";
  text.planArguments = ", %prefix: tensor<?xi32>";
  text.runArguments = ", %slope: tensor<4xf32>";
  // An entry is missing: it reads as 0.
  Case(text.get(), batch())
      .give("prefix", integers({30, 5, 2, 7, 3, 70}))
      .on(emulate)
      .check(plans());
}

TEST(GPURegions, PackedMasks) {
  std::string tiles = " schedules([" + schedule(kTiles) + "])";
  checkPackedMasks(
      attention("bf16", kTiles), tiles, batch(),
      [](Case &test) { test.on(emulate); }, plans());
  checkPackedMasks(
      attention("bf16", kTiles), tiles, batch(),
      [](Case &test) { test.on(interpret); }, plans());
}

/// Schedules that are chosen: for latents of 512 with 128 heads, and for blocks
/// of fewer columns than a tile has keys.
TEST(GPUViews, OfChosenSchedules) {
  AttentionText text = attention("bf16", kTiles);
  text.clauses = "mask(#fi.causal)";
  AttentionText latent = text, blocks = text;
  setLatent(latent, 512, 64, 128);
  latent.page = 64;
  latent.scale = "0.0721688";
  Case(latent.get(), {{1, 100}, {1, 5}}).on(emulate).check(plans());
  blocks.view = View::Bsr;
  blocks.blockColumns = 16;
  blocks.blockRows = 64;
  Case(blocks.get(), {{1, 100}, {130, 300}, {3, 20}})
      .on(emulate)
      .check(plans());
}

//===----------------------------------------------------------------------===//
// Other stages
//===----------------------------------------------------------------------===//

TEST(GPUStages, MergedStates) {
  for (const char *element : {"f16", "bf16"}) {
    std::string q = std::string("tensor<?x4x32x") + element + ">";
    std::string pool = std::string("memref<?x2x8x32x") + element + ">";
    std::string text =
        "#n = #fi.softmax<base = 2>\n!ix = tensor<?xi32>\n!q = " + q +
        "\n!lse = tensor<?x4xf32>\n!pool = " + pool +
        "\n!kv = !fi.paged_kv<8x2x32x" + element +
        ", HND>\n!st = !fi.state<?x4x32xf32, #n>" + R"(
fi.program @cascade
    plan(%all: !ix, %qo: !ix, %pi: !ix, %pp: !ix, %pl: !ix, %si: !ix, %sp: !ix, %sl: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32, %sink: tensor<4xf32>) -> (!q, !lse) {
  %prefix = fi.view.paged %k, %v tables(%pi, %pp, %pl : !ix, !ix, !ix) : !pool, !pool -> !kv
  %suffix = fi.view.paged %k, %v tables(%si, %sp, %sl : !ix, !ix, !ix) origin(%first : !ix) : !pool, !pool -> !kv
  %shared = fi.attention %q rows(%all : !ix) over %prefix scale(%sc) normalise(#n) : !q over !kv -> !st
  %own = fi.attention %q rows(%qo : !ix) over %suffix scale(%sc) normalise(#n) mask(#fi.causal) : !q over !kv -> !st
  %s = fi.merge %shared, %own : !st
  %o, %lse = fi.finalize %s sink(%sink : tensor<4xf32>) : !st -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
)";
    Case(text, {})
        .give("all", integers({0, 12}))
        .give("qo", integers({0, 4, 5, 11, 12}))
        .give("pi", integers({0, 12}))
        .give("pp", integers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
        .give("pl", integers({2}))
        .give("si", integers({0, 2, 2, 6, 7}))
        .give("sp", integers({20, 13, 19, 14, 18, 15, 12}))
        .give("sl", integers({1, 8, 6, 1}))
        .give("first", integers({90, 90, 90, 90}))
        .give("sink", floats({0.5, -3, 4, -INFINITY}))
        .on(emulate)
        .check(plans());
  }
}

TEST(GPUStages, AppendThenAttention) {
  for (const char *element : {"f16", "bf16"}) {
    std::string e = element;
    Case("!ix = tensor<?xi32>\n!q = tensor<?x4x24x" + e +
             ">\n!lse = tensor<?x4xf32>\n!pool = memref<?x2x4x24x" + e +
             ">\n!kv = !fi.paged_kv<4x2x24x" + e +
             ", HND>\n!new = tensor<?x2x24x" + e + R"(>
fi.program @step plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %nk: !new, %nv: !new, %k: !pool, %v: !pool) -> (!q, !lse) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv
  %o, %l = fi.attention %q rows(%qo : !ix) over %kv scale(0.2) mask(#fi.causal) : !q over !kv -> !q, !lse
  fi.return %o, %l : !q, !lse
}
)",
         {{1, 1}, {1, 37}, {5, 5}, {3, 130}, {0, 20}, {0, 0}, {70, 150}})
        .on(emulate)
        .check(plans());
  }
}

/// What a schedule cannot be, and what there is no code for yet.
TEST(GPUErrors, AreSentences) {
  auto expect = [](const AttentionText &text, const std::string &sentence) {
    std::string error = Case(text.get(), {{3, 20}}).on(emulate).getError();
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
  };
  expect(attention("f16", {16, 24, 1, 2, 4}),
         "expected a first operand in registers with a multiple of 16 columns, "
         "so 'tile_keys' of as many, but got 24 [SCH4]");
  expect(attention("f16", {24, 32, 1, 2, 4}),
         "expected 'tile_rows' to be a multiple of 16, 16 for each of 1 warps, "
         "but got 24 [SCH4]");
  expect(attention("f16", {32, 32, 2, 2, 8}),
         "expected 'lanes' of 1 or 4, the lanes that share a row, but got 8 "
         "[SCH4]");
  expect(attention("f16", {128, 512, 4, 4, 4}),
         "expected a schedule whose buffers fit into 166912 bytes of shared "
         "memory, but they take 540688, 373776 too many [SCH5]");
  expect(attention("f32", {16, 20, 1, 2, 4}),
         "expected a first operand in registers with a multiple of 8 columns, "
         "so 'tile_keys' of as many, but got 20 [SCH4]");
}

/// Rows whose bytes no copy can begin at are refused before the device is.
TEST(GPUErrors, StridesThatAreNotAligned) {
  AttentionText text = attention("f16", kTiles);
  for (int64_t more : {8, 4}) {
    HostTensor wide;
    Case test(text.get(), {{3, 20}});
    test.on(emulate).adjust(
        [&](const Signature &signature, std::vector<HostValue> &values) {
          HostValue &value = values[signature.find("q")];
          HostTensor from = value.getTensor();
          wide = HostTensor(DType::F16, {from.getSize(0), from.getSize(1),
                                         from.getSize(2) + more});
          HostTensor to(DType::F16, from.getShape(), wide.getData(),
                        wide.getStrides());
          copyTensor(from, to);
          value = to;
        });
    if (more % 8 == 0) {
      test.check(plans());
      continue;
    }
    std::string error = test.getError();
    EXPECT_NE(error.find("operand 'q': expected strides of a multiple of 16 "
                         "bytes"),
              std::string::npos)
        << error;
  }
}

TEST(GPURegions, Sinks) {
  AttentionText text = attention("bf16", kTiles);
  text.clauses = "sink(%sink : tensor<4xf32>) " + text.clauses;
  text.runArguments = ", %sink: tensor<4xf32>";
  Case(text.get(), batch())
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .on(emulate)
      .check(plans());
}

} // namespace
