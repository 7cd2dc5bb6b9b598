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
#include "GPUVariants.h"
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

std::string schedules(Tiles tiles) {
  return " schedules([" + schedule(tiles) + "])";
}

AttentionText attention(const std::string &element, Tiles tiles) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = element;
  text.kvHeads = 2;
  text.group = 2;
  text.clauses = "mask(#fi.causal)" + schedules(tiles);
  return text;
}

class GPUSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUSchedules, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  SCOPED_TRACE(schedule(tiles));
  AttentionText text = attention(element, tiles);
  Case(text.get(), smallBatch()).on(interpret).check(fewPlans());
  Case(text.get(), smallBatch()).on(emulate).check(fewPlans());
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

class GPUVariants : public testing::TestWithParam<Variant> {};

TEST_P(GPUVariants, EqualsReference) {
  for (const char *element : {"f16", "bf16"}) {
    SCOPED_TRACE(element);
    AttentionText text = attention(element, kTiles);
    GetParam().change(text);
    Case test(text.get(), smallBatch());
    if (text.isPageDynamic)
      test.setPageSize(8);
    test.on(emulate).check(fewPlans());
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
    testing::ValuesIn(viewVariants(
        {Variant{"two_tables_fused_dense",
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
                 }}})),
    nameOf);

INSTANTIATE_TEST_SUITE_P(
    Dims, GPUVariants,
    testing::Values(dimVariant(8, 8), dimVariant(24, 24), dimVariant(40, 72),
                    dimVariant(80, 80), dimVariant(96, 96),
                    dimVariant(128, 128), dimVariant(192, 128),
                    Variant{"ragged_d192_128",
                            [](AttentionText &t) {
                              dimVariant(192, 128).change(t);
                              t.view = View::Ragged;
                              t.isHND = false;
                              t.kvHeads = 2;
                            }},
                    dimVariant(256, 256), dimVariant(512, 512)),
    nameOf);

INSTANTIATE_TEST_SUITE_P(Clauses, GPUVariants,
                         testing::ValuesIn(clauseVariants(schedules(kTiles))),
                         nameOf);

TEST(GPURegions, Captures) {
  checkCaptures(attention("f16", kTiles), schedules(kTiles), emulate);
}

TEST(GPURegions, PackedMasks) {
  std::string tiles = schedules(kTiles);
  checkPackedMasks(
      attention("bf16", kTiles), tiles, smallBatch(),
      [](Case &test) { test.on(emulate); }, fewPlans());
  checkPackedMasks(
      attention("bf16", kTiles), tiles, smallBatch(),
      [](Case &test) { test.on(interpret); }, fewPlans());
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
  Case(latent.get(), {{1, 100}, {1, 5}}).on(emulate).check(fewPlans());
  blocks.view = View::Bsr;
  blocks.blockColumns = 16;
  blocks.blockRows = 64;
  Case(blocks.get(), {{1, 100}, {130, 300}, {3, 20}})
      .on(emulate)
      .check(fewPlans());
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
    Case test(text, {});
    giveCascade(test)
        .give("sink", floats({0.5, -3, 4, -INFINITY}))
        .on(emulate)
        .check(fewPlans());
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
        .check(fewPlans());
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
      test.check(fewPlans());
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
  Case(text.get(), smallBatch())
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .on(emulate)
      .check(fewPlans());
}

} // namespace
