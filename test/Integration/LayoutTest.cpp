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
