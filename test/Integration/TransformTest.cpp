//===- TransformTest.cpp - transforms of queries and keys -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rotary embeddings computed while queries and keys are loaded, from angles and
// from tables, scalings by head and by captured norms, one side alone, under
// other regions.
//
//===----------------------------------------------------------------------===//

#include "TransformTexts.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Dim {
  int64_t dim;
  const char *pairing;
};

class RotaryTest : public testing::TestWithParam<Dim> {};

TEST_P(RotaryTest, OfEveryPlan) {
  AttentionText text = rotaryText(GetParam().dim, GetParam().pairing);
  Case(text.get(), mixedBatch()).setOptLevel(0).check();
}

INSTANTIATE_TEST_SUITE_P(
    Dims, RotaryTest,
    testing::Values(Dim{8, "half"}, Dim{8, "interleaved"}, Dim{24, "half"},
                    Dim{40, "interleaved"}, Dim{64, "interleaved"},
                    Dim{128, "half"}, Dim{256, "half"}),
    [](const auto &info) {
      return std::string(info.param.pairing) + std::to_string(info.param.dim);
    });

struct Types {
  const char *query, *keys;
};

class RotaryTypesTest : public testing::TestWithParam<Types> {};

/// Nothing is rounded to a narrow type between a transform and the product.
TEST_P(RotaryTypesTest, AndLayouts) {
  for (bool isHND : {true, false}) {
    SCOPED_TRACE(isHND);
    AttentionText text = rotaryText(64, isHND ? "half" : "interleaved");
    text.isHND = isHND;
    text.view =
        isHND ? AttentionText::View::Paged : AttentionText::View::Ragged;
    text.query = GetParam().query;
    text.keys = text.values = GetParam().keys;
    text.output = "f32";
    Case(text.get(), mixedBatch()).setOptLevel(0).check();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, RotaryTypesTest,
    testing::Values(Types{"f32", "f32"}, Types{"bf16", "bf16"},
                    Types{"f16", "f16"}, Types{"f32", "bf16"},
                    Types{"bf16", "f16"}),
    [](const auto &info) {
      return std::string(info.param.query) + "_" + info.param.keys;
    });

/// The same under other vector lengths.
TEST(TransformTest, OnOtherTargets) {
  for (int bits : {128, 256}) {
    SCOPED_TRACE(bits);
    AttentionText text = rotaryText(40, "half");
    text.target = "#fi.target<cpu, vector_bits = " + std::to_string(bits) + ">";
    Case(text.get(), mixedBatch()).setOptLevel(0).check();
  }
}

/// Positions come from origins and from `at`, also in keys' transforms.
TEST(TransformTest, OfGivenPositions) {
  AttentionText text = rotaryText(32, "half");
  text.hasOrigin = true;
  Case(text.get(), {{1, 37}, {5, 20}})
      .give("origin", integers({100, -7}))
      .setOptLevel(0)
      .check();
  text = rotaryText(32, "interleaved");
  text.hasPositions = true;
  Case(text.get(), {{1, 37}, {5, 20}})
      .give("pos", integers({36, 3, 19, 4, 0, 200}))
      .setOptLevel(0)
      .check();
}

TEST(TransformTest, OfOneSideAndSomePairs) {
  for (const char *side : {"query", "key"}) {
    SCOPED_TRACE(side);
    Case(someText(side).get(), mixedBatch()).setOptLevel(0).check();
  }
}

TEST(TransformTest, YieldsWhatDependsOnLess) {
  Case(lessText().get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("gain", floats({0.5, -1, 2, 0.25, 1, 1, -0.5, 0.75}))
      .giveNumber("one", 1)
      .setOptLevel(0)
      .check();
}

TEST(TransformTest, OfCapturedNorms) {
  Case(normText().get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("norms", normsOfThree())
      .give("gain", floats({1.5, 0.5}))
      .setOptLevel(0)
      .check();
}

TEST(TransformTest, GrowsScoresWithinTheContract) {
  Case(growingText().get(), mixedBatch()).setOptLevel(0).check();
}

} // namespace
