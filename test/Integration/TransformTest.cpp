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

#include "IntegrationTesting.h"
#include <cmath>

using namespace fi;
using namespace fi::test;

namespace {

std::string transform(const std::string &side, const std::string &operations) {
  return side +
         "(%x: f32, %y: f32, %pair: index, %req: index, %head: index, "
         "%pos: index) {\n" +
         operations + "\n}\n";
}

/// (x, y) turned by pos * 10000^(-2 pair / dim).
std::string rotary(int64_t dim) {
  std::string rate;
  llvm::raw_string_ostream(rate)
      << llvm::format("%.9e", -2 * std::log2(10000.0) / double(dim));
  return "%i = arith.index_cast %pair : index to i32\n"
         "%f = arith.sitofp %i : i32 to f32\n"
         "%rate = arith.constant " +
         rate +
         " : f32\n"
         "%e = arith.mulf %f, %rate : f32\n%w = math.exp2 %e : f32\n"
         "%p = arith.index_cast %pos : index to i32\n"
         "%pf = arith.sitofp %p : i32 to f32\n"
         "%angle = arith.mulf %pf, %w : f32\n"
         "%c = math.cos %angle : f32\n%s = math.sin %angle : f32\n"
         "%xc = arith.mulf %x, %c : f32\n%ys = arith.mulf %y, %s : f32\n"
         "%xs = arith.mulf %x, %s : f32\n%yc = arith.mulf %y, %c : f32\n"
         "%a = arith.subf %xc, %ys : f32\n%b = arith.addf %xs, %yc : f32\n"
         "fi.yield %a, %b : f32, f32";
}

AttentionText rotaryText(int64_t dim, const char *pairing) {
  AttentionText text;
  text.keyDim = text.valueDim = dim;
  text.clauses = std::string("pair<") + pairing + "> " +
                 transform("query", rotary(dim)) +
                 transform("key", rotary(dim)) + "mask(#fi.causal)";
  return text;
}

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

/// Half of the pairs as they are, as in partial rotary embeddings; a head
/// alone.
TEST(TransformTest, OfOneSideAndSomePairs) {
  std::string some = "%m = arith.constant 8 : index\n"
                     "%q = arith.cmpi ult, %pair, %m : index\n"
                     "%r:2 = scf.if %q -> (f32, f32) {\n"
                     "%n = arith.negf %y : f32\nscf.yield %n, %x : f32, f32\n"
                     "} else {\nscf.yield %x, %y : f32, f32\n}\n"
                     "fi.yield %r#0, %r#1 : f32, f32";
  for (const char *side : {"query", "key"}) {
    SCOPED_TRACE(side);
    AttentionText text;
    text.keyDim = text.valueDim = 32;
    text.clauses = "pair<half> " + transform(side, some) + "mask(#fi.causal)";
    Case(text.get(), mixedBatch()).setOptLevel(0).check();
  }
}

/// Values that are smaller than a row: of a head, of a pair, of nothing.
TEST(TransformTest, YieldsWhatDependsOnLess) {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = "pair<interleaved> captures(%g = %gain : tensor<?xf32>, %z = "
                 "%one : f32) " +
                 transform("query", "%a = fi.load %g[%head] : tensor<?xf32>\n"
                                    "fi.yield %a, %z : f32, f32") +
                 transform("key", "%c = fi.load %g[%pair] : tensor<?xf32>\n"
                                  "%p = fi.load %g[%pos] : tensor<?xf32>\n"
                                  "fi.yield %c, %p : f32, f32") +
                 "mask(#fi.causal)";
  text.runArguments = ", %gain: tensor<?xf32>, %one: f32";
  Case(text.get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("gain", floats({0.5, -1, 2, 0.25, 1, 1, -0.5, 0.75}))
      .giveNumber("one", 1)
      .setOptLevel(0)
      .check();
}

/// A norm by head: what depends on the whole row is captured, [request tokens].
TEST(TransformTest, OfCapturedNorms) {
  AttentionText text;
  text.keyDim = text.valueDim = 24;
  text.group = 3;
  text.clauses =
      "pair<half> captures(%n = %norms : tensor<?x?xf32>, %g = %gain : "
      "tensor<?xf32>) " +
      transform("key", "%r = fi.load %n[%req, %pos] : tensor<?x?xf32>\n"
                       "%m = math.sqrt %r : f32\n"
                       "%w = fi.load %g[%head] : tensor<?xf32>\n"
                       "%t = arith.mulf %m, %w : f32\n"
                       "%a = arith.mulf %x, %t : f32\n"
                       "%b = arith.mulf %y, %t : f32\n"
                       "fi.yield %a, %b : f32, f32") +
      scoreRegion("%c = arith.constant 0.5 : f32\n"
                  "%t = arith.mulf %s, %c : f32\nfi.yield %t : f32") +
      " mask(#fi.window<left = 30>, #fi.causal)";
  text.runArguments = ", %norms: tensor<?x?xf32>, %gain: tensor<?xf32>";
  HostTensor norms(DType::F32, {3, 70});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < 70; ++i)
      norms.setFloat({r, i}, 0.5 + double((r * 31 + i * 7) % 11) / 8);
  Case(text.get(), {{1, 37}, {5, 20}, {40, 70}})
      .give("norms", norms)
      .give("gain", floats({1.5, 0.5}))
      .setOptLevel(0)
      .check();
}

/// Scores far larger than queries and keys would give.
TEST(TransformTest, GrowsScoresWithinTheContract) {
  AttentionText text;
  text.keyDim = text.valueDim = 64;
  text.clauses = "pair<half> " +
                 transform("query", "%c = arith.constant 8.0 : f32\n"
                                    "%a = arith.mulf %x, %c : f32\n"
                                    "%b = arith.mulf %y, %c : f32\n"
                                    "fi.yield %a, %b : f32, f32") +
                 transform("key", "%c = arith.constant 4.0 : f32\n"
                                  "%a = arith.mulf %x, %c : f32\n"
                                  "%b = arith.mulf %y, %c : f32\n"
                                  "fi.yield %b, %a : f32, f32");
  Case(text.get(), mixedBatch()).setOptLevel(0).check();
}

} // namespace
