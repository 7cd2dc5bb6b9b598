//===- LayoutTest.cpp - views, types and sizes of attention ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Causal attention in every layout, element type, head dim and group.
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

namespace {

/// A base for variations: causal, small.
AttentionText causal() {
  AttentionText text;
  text.clauses = "mask(#fi.causal)";
  return text;
}

/// Two plans: whole and split. The other ways of splitting are tested where
/// they matter.
llvm::ArrayRef<Planned> twoPlans() {
  static const Planned plans[] = {{2}, {4, SplitChoice::Fixed, 64}};
  return plans;
}

} // namespace

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

struct Layout {
  const char *name;
  View view;
  bool isHND;
  int64_t page;
  bool isFused = false, isDynamic = false;
  const char *index = "i32";
};

class LayoutTest : public testing::TestWithParam<Layout> {};

TEST_P(LayoutTest, Causal) {
  const Layout &layout = GetParam();
  AttentionText text = causal();
  text.view = layout.view;
  text.isHND = layout.isHND;
  text.page = layout.page;
  text.isFused = layout.isFused;
  text.isPageDynamic = layout.isDynamic;
  text.index = layout.index;
  text.keyDim = text.valueDim = 32;
  std::vector<Request> requests = mixedBatch();
  if (layout.view == View::Contiguous)
    requests = {{37, 190}};
  Case test(text.get(), requests);
  if (layout.isDynamic)
    test.setPageSize(layout.page);
  test.check();
}

INSTANTIATE_TEST_SUITE_P(
    Views, LayoutTest,
    testing::Values(
        Layout{"paged_nhd_1", View::Paged, false, 1},
        Layout{"paged_hnd_5", View::Paged, true, 5},
        Layout{"paged_nhd_16_i64", View::Paged, false, 16, false, false, "i64"},
        Layout{"paged_hnd_16", View::Paged, true, 16},
        Layout{"paged_hnd_100", View::Paged, true, 100},
        Layout{"paged_nhd_100", View::Paged, false, 100},
        Layout{"paged_hnd_dynamic_7", View::Paged, true, 7, false, true},
        Layout{"paged_nhd_dynamic_64", View::Paged, false, 64, false, true},
        Layout{"fused_hnd_16", View::Paged, true, 16, true},
        Layout{"fused_nhd_dynamic_5", View::Paged, false, 5, true, true, "i64"},
        Layout{"dense_hnd_16", View::Dense, true, 16},
        Layout{"dense_nhd_1_i64", View::Dense, false, 1, false, false, "i64"},
        Layout{"dense_fused_nhd_dynamic_16", View::Dense, false, 16, true,
               true},
        Layout{"ragged_nhd", View::Ragged, false, 1},
        Layout{"ragged_hnd_i64", View::Ragged, true, 1, false, false, "i64"},
        Layout{"contiguous_nhd", View::Contiguous, false, 1},
        Layout{"contiguous_hnd", View::Contiguous, true, 1}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Tables of their own, latents, blocks
//===----------------------------------------------------------------------===//

struct Variation {
  const char *name;
  void (*change)(AttentionText &);
};

class ViewTest : public testing::TestWithParam<Variation> {};

TEST_P(ViewTest, Causal) {
  AttentionText text = causal();
  text.keyDim = text.valueDim = 32;
  GetParam().change(text);
  Case test(text.get(), mixedBatch());
  if (text.isPageDynamic)
    test.setPageSize(text.page);
  test.check();
}

static void setElements(AttentionText &text, const char *element) {
  text.query = text.keys = text.values = text.output = element;
}

static void setLatent(AttentionText &text, int64_t latent, int64_t tail,
                      int64_t heads) {
  text.valueDim = latent;
  text.tailDim = tail;
  text.kvHeads = 1;
  text.group = heads;
  text.isQuerySplit = true;
}

INSTANTIATE_TEST_SUITE_P(
    TwoTables, ViewTest,
    testing::Values(
        Variation{"hnd", [](AttentionText &t) { t.hasTwoTables = true; }},
        Variation{"nhd_dynamic_vo_i64",
                  [](AttentionText &t) {
                    t.hasTwoTables = t.isPageDynamic = true;
                    t.isHND = false;
                    t.page = 5;
                    t.valueDim = 24;
                    t.index = "i64";
                  }},
        Variation{"fused",
                  [](AttentionText &t) { t.hasTwoTables = t.isFused = true; }},
        Variation{"dense_bf16",
                  [](AttentionText &t) {
                    t.hasTwoTables = true;
                    t.view = View::Dense;
                    setElements(t, "bf16");
                  }}),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Latent, ViewTest,
    testing::Values(
        Variation{"f32", [](AttentionText &t) { setLatent(t, 64, 16, 16); }},
        Variation{"f16_one_query",
                  [](AttentionText &t) {
                    setLatent(t, 64, 16, 16);
                    setElements(t, "f16");
                    t.isQuerySplit = false;
                  }},
        Variation{"bf16_dense",
                  [](AttentionText &t) {
                    setLatent(t, 64, 32, 5);
                    setElements(t, "bf16");
                    t.view = View::Dense;
                  }},
        Variation{"bf16_odd_dims",
                  [](AttentionText &t) {
                    setLatent(t, 72, 40, 3);
                    setElements(t, "bf16");
                    t.isPageDynamic = true;
                    t.page = 7;
                  }},
        Variation{"bf16_one_query",
                  [](AttentionText &t) {
                    setLatent(t, 40, 8, 20);
                    setElements(t, "bf16");
                    t.isQuerySplit = false;
                    t.index = "i64";
                  }},
        Variation{"query_f32",
                  [](AttentionText &t) {
                    setLatent(t, 32, 16, 16);
                    setElements(t, "bf16");
                    t.query = "f32";
                    t.page = 1;
                  }},
        Variation{"softcap_window",
                  [](AttentionText &t) {
                    setLatent(t, 64, 16, 16);
                    t.clauses = "score(#fi.softcap<30.0>) "
                                "mask(#fi.causal, #fi.window<left = 40>)";
                  }}),
    [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Blocks, ViewTest,
    testing::Values(Variation{"causal",
                              [](AttentionText &t) { t.view = View::Bsr; }},
                    Variation{"full",
                              [](AttentionText &t) {
                                t.view = View::Bsr;
                                t.clauses = "";
                                t.blockRows = 7;
                                t.blockColumns = 16;
                              }},
                    Variation{"row_by_row",
                              [](AttentionText &t) {
                                t.view = View::Bsr;
                                t.blockRows = 1;
                                t.blockColumns = 48;
                                t.isHND = false;
                                t.group = 3;
                              }},
                    Variation{"large",
                              [](AttentionText &t) {
                                t.view = View::Bsr;
                                t.blockRows = 100;
                                t.blockColumns = 128;
                                t.index = "i64";
                                t.valueDim = 40;
                                setElements(t, "bf16");
                              }},
                    Variation{"window_origin",
                              [](AttentionText &t) {
                                t.view = View::Bsr;
                                t.blockColumns = 32;
                                t.hasOrigin = true;
                                t.clauses =
                                    "mask(#fi.window<left = 70, right = 9>)";
                              }}),
    [](const auto &info) { return info.param.name; });

/// Multi-head latent attention before absorption.
INSTANTIATE_TEST_SUITE_P(Dims192And128, ViewTest,
                         testing::Values(Variation{"ragged",
                                                   [](AttentionText &t) {
                                                     t.view = View::Ragged;
                                                     t.keyDim = 192;
                                                     t.valueDim = 128;
                                                     t.isHND = false;
                                                     setElements(t, "bf16");
                                                   }},
                                         Variation{"paged",
                                                   [](AttentionText &t) {
                                                     t.keyDim = 192;
                                                     t.valueDim = 128;
                                                     t.page = 1;
                                                     t.group = 1;
                                                     setElements(t, "f16");
                                                   }}),
                         [](const auto &info) { return info.param.name; });

/// Absorbed multi-head latent attention as it is: 512 + 64, many heads.
TEST(LatentTest, FullSize) {
  AttentionText text = causal();
  setLatent(text, 512, 64, 128);
  setElements(text, "bf16");
  text.page = 64;
  text.scale = "0.0721688";
  Case(text.get(), {{1, 130}, {1, 64}, {2, 70}})
      .setOptLevel(0)
      .check(twoPlans());
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

struct Types {
  const char *query, *keys, *values, *output;
};

class TypesTest : public testing::TestWithParam<Types> {};

TEST_P(TypesTest, Causal) {
  AttentionText text = causal();
  text.query = GetParam().query;
  text.keys = GetParam().keys;
  text.values = GetParam().values;
  text.output = GetParam().output;
  Case(text.get(), mixedBatch()).check();
}

INSTANTIATE_TEST_SUITE_P(Elements, TypesTest,
                         testing::Values(Types{"f32", "f32", "f32", "f32"},
                                         Types{"f16", "f16", "f16", "f16"},
                                         Types{"bf16", "bf16", "bf16", "bf16"},
                                         Types{"f32", "bf16", "bf16", "f32"},
                                         Types{"bf16", "f32", "f32", "bf16"},
                                         Types{"f32", "f16", "f16", "bf16"},
                                         Types{"f16", "bf16", "f32", "f16"},
                                         Types{"bf16", "bf16", "f16", "f32"},
                                         Types{"bf16", "f16", "bf16", "bf16"}),
                         [](const auto &info) {
                           return std::string(info.param.query) + "_" +
                                  info.param.keys + "_" + info.param.values +
                                  "_" + info.param.output;
                         });

//===----------------------------------------------------------------------===//
// Head dims
//===----------------------------------------------------------------------===//

struct Dims {
  int64_t key, value;
  const char *element;
};

class DimsTest : public testing::TestWithParam<Dims> {};

TEST_P(DimsTest, Causal) {
  AttentionText text = causal();
  text.keyDim = GetParam().key;
  text.valueDim = GetParam().value;
  text.query = text.keys = text.values = text.output = GetParam().element;
  Case(text.get(), {{1, 37}, {19, 70}, {5, 130}})
      .setOptLevel(0)
      .check(twoPlans());
}

INSTANTIATE_TEST_SUITE_P(
    HeadDims, DimsTest,
    testing::Values(
        Dims{8, 8, "f32"}, Dims{40, 40, "f32"}, Dims{64, 64, "f32"},
        Dims{72, 72, "f32"}, Dims{80, 80, "f32"}, Dims{96, 96, "f32"},
        Dims{128, 128, "f32"}, Dims{192, 192, "f32"}, Dims{256, 256, "f32"},
        Dims{512, 512, "f32"}, Dims{192, 128, "f32"}, Dims{64, 40, "f32"},
        Dims{8, 512, "f32"}, Dims{8, 8, "bf16"}, Dims{40, 40, "bf16"},
        Dims{72, 72, "bf16"}, Dims{80, 80, "bf16"}, Dims{256, 256, "bf16"},
        Dims{192, 128, "bf16"}, Dims{64, 40, "bf16"}, Dims{8, 8, "f16"},
        Dims{72, 72, "f16"}, Dims{64, 40, "f16"}),
    [](const auto &info) {
      return std::to_string(info.param.key) + "_" +
             std::to_string(info.param.value) + "_" + info.param.element;
    });

/// Terms that a matrix tile does not divide, beside columns that take all
/// registers of tiles: at all levels of the optimiser, of which the lowest does
/// not keep tile configurations.
TEST(NarrowDimsTest, OfMatrixTiles) {
  for (auto [key, value] : {std::pair(8, 40), std::pair(16, 64),
                            std::pair(40, 40), std::pair(72, 128)})
    for (unsigned level : {0u, 2u}) {
      SCOPED_TRACE(testing::Message()
                   << key << ", " << value << " at level " << level);
      AttentionText text = causal();
      text.query = text.keys = text.values = "bf16";
      text.keyDim = key;
      text.valueDim = value;
      text.kvHeads = 1;
      Case(text.get(), {{17, 17}, {70, 150}, {1, 40}})
          .setOptLevel(level)
          .check(twoPlans());
    }
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

class GroupTest : public testing::TestWithParam<int> {};

TEST_P(GroupTest, Causal) {
  AttentionText text = causal();
  text.group = GetParam();
  text.keyDim = text.valueDim = 16;
  Case(text.get(), mixedBatch()).check();
}

TEST_P(GroupTest, OneHeadInBF16) {
  AttentionText text = causal();
  text.group = GetParam();
  text.kvHeads = 1;
  text.keyDim = text.valueDim = 24;
  text.query = text.keys = text.values = text.output = "bf16";
  text.hasStatistic = false;
  Case(text.get(), mixedBatch()).setOptLevel(0).check(twoPlans());
}

INSTANTIATE_TEST_SUITE_P(Heads, GroupTest,
                         testing::Values(1, 2, 3, 4, 5, 7, 8, 16),
                         testing::PrintToStringParamName());
