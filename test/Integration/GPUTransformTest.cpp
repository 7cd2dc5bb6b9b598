//===- GPUTransformTest.cpp - transforms and types on an emulated GPU -----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products in f32 on a GPU: queries, keys and values of f32 and of types that
// differ, and rows that regions transform, by the backend, and their placed
// form in the interpreter of level 2.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "TransformTexts.h"

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

namespace {

/// Decoding, a chunk, a whole prompt, more rows than keys, requests without
/// rows or keys.
std::vector<Request> batch() {
  return {{1, 1}, {1, 77}, {5, 5}, {23, 70}, {0, 20}, {4, 0}, {9, 4}};
}

struct Types {
  const char *query, *keys, *values;
};
std::string nameOf(const Types &types) {
  return std::string(types.query) + "_" + types.keys + "_" + types.values;
}
void PrintTo(const Types &types, std::ostream *os) { *os << nameOf(types); }

void setTypes(AttentionText &text, const Types &types) {
  text.query = types.query;
  text.keys = types.keys;
  text.values = types.values;
}

constexpr Types kF32 = {"f32", "f32", "f32"};

struct Tiles {
  int64_t rows, keys, warps, stages, lanes;
};
std::string schedules(Tiles tiles) {
  return " schedules([#fi.schedule<tile_rows = " + std::to_string(tiles.rows) +
         ", tile_keys = " + std::to_string(tiles.keys) +
         ", warps = " + std::to_string(tiles.warps) +
         ", stages = " + std::to_string(tiles.stages) +
         ", lanes = " + std::to_string(tiles.lanes) + ">])";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class GPUTypes : public testing::TestWithParam<Types> {};

/// In layouts whose rows are swizzled and padded.
TEST_P(GPUTypes, EqualReference) {
  for (int64_t dim : {64, 72}) {
    SCOPED_TRACE(dim);
    AttentionText text;
    setTypes(text, GetParam());
    text.keyDim = text.valueDim = dim;
    text.clauses = "mask(#fi.causal)";
    Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
  }
}

/// Without groups of warps, placed, in the interpreter and in the emulator.
TEST_P(GPUTypes, InThePlacedForm) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  setTypes(text, GetParam());
  text.keyDim = 40;
  text.valueDim = 32;
  text.view = View::Ragged;
  text.isHND = false;
  text.clauses = "mask(#fi.causal)" + schedules({32, 32, 2, 2, 4});
  Case(text.get(), batch()).on(interpret).check(fewPlans());
  Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
}

INSTANTIATE_TEST_SUITE_P(
    All, GPUTypes,
    testing::Values(kF32, Types{"f32", "bf16", "bf16"},
                    Types{"f32", "f16", "f16"}, Types{"bf16", "f16", "f16"},
                    Types{"f16", "bf16", "bf16"}, Types{"f16", "f16", "bf16"},
                    Types{"bf16", "f32", "f32"}, Types{"f16", "f32", "f16"},
                    Types{"f16", "f16", "f32"}, Types{"f32", "f32", "bf16"}),
    [](const auto &info) { return nameOf(info.param); });

class GPUFloatDims
    : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(GPUFloatDims, EqualReference) {
  AttentionText text;
  std::tie(text.keyDim, text.valueDim) = GetParam();
  text.kvHeads = 1;
  text.clauses = "mask(#fi.causal)";
  Case(text.get(), {{1, 37}, {9, 40}, {3, 0}})
      .on(on("sm_80"))
      .check(fewPlans());
}
INSTANTIATE_TEST_SUITE_P(All, GPUFloatDims,
                         testing::Values(std::pair{8, 8}, std::pair{24, 16},
                                         std::pair{80, 96}, std::pair{128, 128},
                                         std::pair{192, 128},
                                         std::pair{256, 256},
                                         std::pair{512, 512}),
                         [](const auto &info) {
                           return std::to_string(info.param.first) + "_" +
                                  std::to_string(info.param.second);
                         });

class GPUFloatSchedules : public testing::TestWithParam<Tiles> {};

TEST_P(GPUFloatSchedules, EqualReference) {
  for (const char *pairing : {"", "half", "interleaved"}) {
    SCOPED_TRACE(pairing);
    AttentionText text;
    if (*pairing)
      text = rotaryText(32, pairing);
    else
      text.clauses = "mask(#fi.causal)";
    text.keyDim = text.valueDim = 32;
    text.target = "#fi.target<sm_80>";
    text.keys = "bf16";
    text.clauses += schedules(GetParam());
    Case(text.get(), batch()).on(interpret).check(fewPlans());
    Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
  }
}
INSTANTIATE_TEST_SUITE_P(
    Grid, GPUFloatSchedules,
    testing::Values(Tiles{16, 16, 1, 1, 1}, Tiles{16, 32, 1, 2, 4},
                    Tiles{64, 16, 4, 3, 4}, Tiles{64, 48, 2, 2, 1},
                    Tiles{96, 32, 3, 2, 4}, Tiles{128, 64, 4, 2, 4}),
    [](const auto &info) {
      return "r" + std::to_string(info.param.rows) + "_k" +
             std::to_string(info.param.keys) + "_w" +
             std::to_string(info.param.warps);
    });

/// Any finite numbers: above the largest of tf32, and as far below the largest
/// of f32 as the error of a weight. Of one
/// key each, since sums of more of them would overflow.
TEST(GPUFloats, LargestValues) {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  Case(text.get(), {{1, 1}, {1, 1}})
      .adjust([](const Signature &signature, std::vector<HostValue> &values) {
        const HostTensor &v = values[signature.find("v")].getTensor();
        auto *elements = static_cast<float *>(v.getData());
        for (int64_t i = 0; i < v.getNumElements(); ++i)
          elements[i] = i % 2 ? 0x1.fffp+127f : -0x1.fffp+127f;
      })
      .on(on("sm_80"))
      .check(fewPlans());
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

class GPURotary
    : public testing::TestWithParam<std::pair<int64_t, const char *>> {};

TEST_P(GPURotary, EqualsReference) {
  AttentionText text = rotaryText(GetParam().first, GetParam().second);
  text.query = text.keys = text.values = "bf16";
  text.kvHeads = 1;
  Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
}
INSTANTIATE_TEST_SUITE_P(
    Dims, GPURotary,
    testing::Values(std::pair{8, "half"}, std::pair{8, "interleaved"},
                    std::pair{24, "half"}, std::pair{40, "interleaved"},
                    std::pair{64, "interleaved"}, std::pair{128, "half"},
                    std::pair{256, "half"}),
    [](const auto &info) {
      return std::string(info.param.second) + std::to_string(info.param.first);
    });

/// Nothing is rounded to a narrow type between a transform and the product.
TEST(GPUTransforms, TypesAndLayouts) {
  for (const Types &types :
       {kF32, Types{"f16", "f16", "f16"}, Types{"f32", "bf16", "bf16"},
        Types{"bf16", "f16", "f16"}})
    for (bool isHND : {true, false}) {
      SCOPED_TRACE(nameOf(types));
      AttentionText text = rotaryText(64, isHND ? "half" : "interleaved");
      text.isHND = isHND;
      text.view = isHND ? View::Paged : View::Ragged;
      setTypes(text, types);
      Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
    }
}

TEST(GPUTransforms, OfGivenPositions) {
  AttentionText text = rotaryText(32, "half");
  text.query = text.keys = text.values = "f16";
  text.hasOrigin = true;
  Case(text.get(), {{1, 37}, {5, 20}})
      .give("origin", integers({100, -7}))
      .on(on("sm_80"))
      .check(fewPlans());
  text = rotaryText(32, "interleaved");
  text.query = text.keys = text.values = "f16";
  text.hasPositions = true;
  Case(text.get(), {{1, 37}, {5, 20}})
      .give("pos", integers({36, 3, 19, 4, 0, 200}))
      .on(on("sm_80"))
      .check(fewPlans());
}

TEST(GPUTransforms, OfOneSideAndSomePairs) {
  for (const char *side : {"query", "key"}) {
    SCOPED_TRACE(side);
    AttentionText text = someText(side);
    text.query = text.keys = text.values = "bf16";
    Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
  }
}

TEST(GPUTransforms, YieldWhatDependsOnLess) {
  AttentionText text = lessText();
  text.query = text.keys = text.values = "f16";
  Case(text.get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("gain", floats({0.5, -1, 2, 0.25, 1, 1, -0.5, 0.75}))
      .giveNumber("one", 1)
      .on(on("sm_80"))
      .check(fewPlans());
}

TEST(GPUTransforms, OfCapturedNorms) {
  AttentionText text = normText();
  text.query = text.keys = text.values = "bf16";
  Case(text.get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("norms", normsOfThree())
      .give("gain", floats({1.5, 0.5}))
      .on(on("sm_80"))
      .check(fewPlans());
}

TEST(GPUTransforms, GrowScoresWithinTheContract) {
  AttentionText text = growingText();
  text.query = text.keys = text.values = "bf16";
  Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
}

} // namespace
