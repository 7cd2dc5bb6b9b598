//===- CompanionTest.cpp - what stands beside attention -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.gated, fi.rope and appends that transform, on the CPU, in the interpreter
// of level 2 and on an emulated GPU.
//
//===----------------------------------------------------------------------===//

#include "CompanionTesting.h"
#include <algorithm>

using namespace fi;
using namespace fi::test;

namespace {

using fi::test::check;

void check(const RopeText &text, int64_t rows,
           std::optional<HostTensor> table = std::nullopt) {
  check(text.get(), {{rows, 0}}, [&](Case &test) {
    test.give("pos", positionsOf(rows, text.index));
    if (table)
      test.give("table", *table);
  });
}

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

TEST(GatedTest, OfTypesAndActivations) {
  for (const char *activation : {"silu", "gelu", "gelu_tanh"})
    for (const char *input : {"f32", "f16", "bf16"})
      for (const char *output : {"f32", "f16", "bf16"})
        check(gatedText(1, 128, activation, input, output), {{5, 0}});
}

TEST(GatedTest, OfWidths) {
  // One part, several, parts that are 8 wide since nothing else divides.
  for (int64_t dim : {8, 24, 128, 136, 256, 344, 1000, 1048})
    check(gatedText(1, dim), {{19, 0}});
}

TEST(GatedTest, OfRowsAndHeads) {
  for (int64_t rows : {0, 1, 63, 64, 65, 130})
    check(gatedText(3, 40), {{rows, 0}});
}

TEST(GatedTest, OfLargeAndSmallNumbers) {
  for (const char *activation : {"silu", "gelu", "gelu_tanh"})
    check(gatedText(1, 64, activation, "f32", "f32"), {{8, 0}}, [](Case &test) {
      test.adjust([](const Signature &, std::vector<HostValue> &values) {
        HostTensor x = values[0].getTensor();
        for (int64_t row = 0; row < 8; ++row)
          for (int64_t d = 0; d < 64; ++d)
            x.setFloat({row, 0, d}, std::ldexp(d % 2 ? 1.5 : -1.5,
                                               static_cast<int>(d / 4) - 8));
      });
    });
}

TEST(GatedTest, GivesWhatIsKnown) {
  Case test(gatedText(1, 8, "silu", "f32", "f32"), {{1, 0}});
  test.adjust([](const Signature &, std::vector<HostValue> &values) {
    HostTensor x = values[0].getTensor();
    for (int64_t d = 0; d < 8; ++d) {
      x.setFloat({0, 0, d}, d - 2.0);
      x.setFloat({0, 0, d + 8}, 2);
    }
  });
  HostTensor y = test.setOptLevel(0).runOnCPU({1})[0];
  // 2 x / (1 + exp(-x)) at -2, 0 and 1.
  EXPECT_NEAR(y.getFloat({0, 0, 0}), -0.4768116880884702, 1e-6);
  EXPECT_EQ(y.getFloat({0, 0, 2}), 0);
  EXPECT_NEAR(y.getFloat({0, 0, 3}), 1.4621171572600098, 1e-6);
}

TEST(GatedTest, IntoMemory) {
  for (int64_t dim : {64, 1048})
    check(gatedMemoryText(2, dim), {{37, 0}});
}

/// The tolerance tells the activations apart.
TEST(GatedTest, ToleranceIsNarrow) {
  std::vector<HostTensor>
      a = Case(gatedText(1, 64, "gelu", "f32", "f32"), {{5, 0}}).runReference(),
      b = Case(gatedText(1, 64, "gelu_tanh", "f32", "f32"), {{5, 0}})
              .runReference();
  ASSERT_EQ(a.size(), 1u);
  int64_t far = 0;
  for (int64_t d = 0; d < 64; ++d) {
    double x = a[0].getFloat({2, 0, d}), y = b[0].getFloat({2, 0, d});
    far += std::fabs(x - y) > 8 * (std::fabs(x) + 1) * 0x1p-20;
  }
  EXPECT_GT(far, 20);
}

//===----------------------------------------------------------------------===//
// Rotary embeddings
//===----------------------------------------------------------------------===//

TEST(RopeTest, OfPairingsAndDims) {
  for (const char *pairing : {"half", "interleaved"})
    for (auto [dim, dims] :
         {std::pair(16, 16), std::pair(64, 64), std::pair(64, 32),
          std::pair(80, 32), std::pair(128, 128), std::pair(256, 64),
          std::pair(264, 176), std::pair(512, 512)}) {
      RopeText text;
      text.pairing = pairing;
      text.dim = dim;
      text.dims = dims;
      check(text, 21);
    }
}

TEST(RopeTest, OfTypesRowsAndPlaces) {
  for (const char *type : {"f32", "f16", "bf16"})
    for (bool isPlanned : {false, true})
      for (int64_t rows : {0, 1, 64, 100}) {
        RopeText text;
        text.input = type;
        text.output = isPlanned ? "f32" : type;
        text.isPlanned = isPlanned;
        text.index = isPlanned ? "i64" : "i32";
        check(text, rows);
      }
}

TEST(RopeTest, ByTable) {
  for (const char *pairing : {"half", "interleaved"}) {
    RopeText text;
    text.pairing = pairing;
    text.isTable = true;
    text.dim = 96;
    text.dims = 64;
    check(text, 70, cosinesAndSines(4096, 32));
  }
}

TEST(RopeTest, ScaledAngles) {
  for (const char *scaling : {"llama3", "yarn"}) {
    RopeText text;
    text.scaling = scaling;
    check(text, 40);
  }
}

/// A row is read before it is written over.
TEST(RopeTest, InPlace) {
  for (const char *pairing : {"half", "interleaved"})
    for (auto [dim, dims] :
         {std::pair(64, 64), std::pair(80, 32), std::pair(512, 512)}) {
      RopeText text;
      text.pairing = pairing;
      text.dim = dim;
      text.dims = dims;
      text.isInPlace = true;
      check(text, 70);
    }
}

/// By what pair i of `pairs` turns, as it is defined for models: by the length
/// of its wave for llama 3, by a ramp over pairs for yarn.
double turnOf(const std::string &scaling, double theta, int64_t i,
              int64_t pairs) {
  double turn = std::pow(theta, -double(i) / double(pairs));
  double wave = 2 * M_PI / turn;
  if (scaling == "linear")
    return turn / 4;
  if (scaling == "llama3") {
    double smooth = (8192 / wave - 1) / (4 - 1);
    return wave > 8192.0 / 1   ? turn / 8
           : wave < 8192.0 / 4 ? turn
                               : (1 - smooth) * turn / 8 + smooth * turn;
  }
  if (scaling == "yarn") {
    auto pairThatTurns = [&](double times) {
      return 2 * double(pairs) * std::log(4096 / (times * 2 * M_PI)) /
             (2 * std::log(theta));
    };
    double low = std::floor(pairThatTurns(32)),
           high = std::ceil(pairThatTurns(1));
    double ramp = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    return turn / 4 * ramp + turn * (1 - ramp);
  }
  return turn;
}

/// Against what the definitions of models say, on a CPU and in the reference.
TEST(RopeTest, ShortSpellings) {
  const std::tuple<const char *, const char *, double, double> spellings[] = {
      {"", "#fi.rotary<10000.0>", 10000, 1},
      {"linear", "#fi.rotary<10000.0, #fi.linear<factor = 4.0>>", 10000, 1},
      {"llama3",
       "#fi.rotary<500000.0, #fi.llama3<factor = 8.0, low = 1.0, high = 4.0, "
       "context = 8192>>",
       500000, 1},
      {"yarn",
       "#fi.rotary<10000.0, #fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, "
       "context = 4096>>",
       10000, 0.1 * std::log(4.0) + 1},
      {"yarn",
       "#fi.rotary<10000.0, #fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, "
       "context = 4096, magnitude = 1.5>>",
       10000, 1.5}};
  for (auto [scaling, spelling, theta, magnitude] : spellings)
    for (const char *pairing : {"half", "interleaved"}) {
      RopeText text;
      text.pairing = pairing;
      text.spelling = spelling;
      text.dim = 80;
      text.dims = 64;
      text.input = text.output = "f32";
      check(text, 40);
      const int64_t positions[] = {0, 1, 2, 77, 1000, 2047, 4};
      Case rope(text.get(), {{7, 0}});
      HostTensor x;
      rope.give("pos", integers(positions));
      rope.adjust([&](const Signature &, std::vector<HostValue> &values) {
        x = values[0].getTensor();
      });
      HostTensor expected = rope.runReference()[0],
                 got = rope.setOptLevel(0).runOnCPU({1})[0];
      for (int64_t row = 0; row < 7; ++row)
        for (int64_t pair = 0; pair < 32; ++pair) {
          bool isHalf = text.pairing == "half";
          int64_t first = isHalf ? pair : 2 * pair,
                  second = isHalf ? pair + 32 : 2 * pair + 1;
          double angle =
              double(positions[row]) * turnOf(scaling, theta, pair, 32);
          double a = x.getFloat({row, 1, first}),
                 b = x.getFloat({row, 1, second});
          double c = magnitude * std::cos(angle),
                 s = magnitude * std::sin(angle);
          for (const HostTensor &y : {expected, got}) {
            EXPECT_NEAR(y.getFloat({row, 1, first}), a * c - b * s, 3e-3)
                << spelling << " row " << row << " pair " << pair;
            EXPECT_NEAR(y.getFloat({row, 1, second}), a * s + b * c, 3e-3);
          }
        }
    }
}

/// Angles of 2^31 stay angles: nothing leaves the circle (NUM13 would let it).
TEST(RopeTest, OfPositionsBeyondF32) {
  RopeText text;
  text.input = text.output = "f32";
  text.index = "i64";
  Case rope(text.get(), {{4, 0}});
  rope.give("pos",
            integers({0, 2147483520, 2147483001, 1000000007}, DType::I64));
  HostTensor x;
  rope.adjust([&](const Signature &, std::vector<HostValue> &values) {
    x = values[0].getTensor();
  });
  HostTensor y = rope.setOptLevel(0).runOnCPU({1})[0];
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t pair = 0; pair < 32; ++pair) {
      double length = std::hypot(x.getFloat({row, 0, pair}),
                                 x.getFloat({row, 0, pair + 32}));
      EXPECT_NEAR(std::hypot(y.getFloat({row, 0, pair}),
                             y.getFloat({row, 0, pair + 32})),
                  length, 1e-5 * (1 + length));
    }
  // The first pair turns by 1: an angle that f32 holds, 2^31 - 128.
  double a = x.getFloat({1, 0, 0}), b = x.getFloat({1, 0, 32});
  EXPECT_NEAR(y.getFloat({1, 0, 0}),
              a * std::cos(2147483520.0) - b * std::sin(2147483520.0), 1e-5);
}

/// What attention's own transform of queries does.
TEST(RopeTest, IsAttentionsTransform) {
  RopeText text;
  text.dim = text.dims = 32;
  text.input = text.output = "f32";
  Case rope(text.get(), {{7, 0}});
  rope.give("pos", integers({0, 1, 2, 3, 100, 1000, 5}));
  HostTensor y = rope.runReference()[0];
  HostTensor got = rope.setOptLevel(0).runOnCPU({1})[0];
  // A rotation keeps lengths, and does nothing at position 0.
  HostTensor x;
  Case again(text.get(), {{7, 0}});
  again.give("pos", integers({0, 0, 0, 0, 0, 0, 0}));
  x = again.runReference()[0];
  for (int64_t row = 0; row < 7; ++row)
    for (int64_t pair = 0; pair < 16; ++pair) {
      double before = std::hypot(x.getFloat({row, 1, pair}),
                                 x.getFloat({row, 1, pair + 16}));
      EXPECT_NEAR(std::hypot(y.getFloat({row, 1, pair}),
                             y.getFloat({row, 1, pair + 16})),
                  before, 1e-5);
      EXPECT_NEAR(got.getFloat({row, 1, pair}), y.getFloat({row, 1, pair}),
                  2e-3);
      // Row 1, at position 1: an angle of 10000^(-pair / 16).
      if (row == 1) {
        double angle = std::pow(10000, -pair / 16.0);
        EXPECT_NEAR(y.getFloat({row, 1, pair}),
                    x.getFloat({row, 1, pair}) * std::cos(angle) -
                        x.getFloat({row, 1, pair + 16}) * std::sin(angle),
                    1e-5);
      }
    }
}

/// What norms and rotary embeddings make may be a query, or the tail of one.
std::string queryText(const std::string &element, bool hasNorm, bool hasRope) {
  std::string q = rowsType(4, 32, element),
              pool = "memref<?x2x8x32x" + element + ">";
  std::string text = R"(
!ix = tensor<?xi32>
!kv = !fi.paged_kv<8x2x32x)" +
                     element + R"(, HND>
fi.program @query plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%x: )" + q + R"(, %w: tensor<32xf32>, %pos: !ix, %k: )" +
                     pool + ", %v: " + pool + ") -> (" + q +
                     ", tensor<?x4xf32>) {\n";
  std::string query = "%x";
  if (hasNorm) {
    text += "  %n = fi.rms_norm " + query +
            " weight(%w : tensor<32xf32>) eps(1.0e-6) : " + q + " -> " + q +
            "\n";
    query = "%n";
  }
  if (hasRope) {
    text += "  %r = fi.rope " + query +
            " at(%pos : !ix) pair<half> transform(#fi.rotary<10000.0>) : " + q +
            " -> " + q + "\n";
    query = "%r";
  }
  return text +
         "  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, "
         "!ix, !ix) : " +
         pool + ", " + pool + " -> !kv\n  %o, %l = fi.attention " + query +
         " rows(%qo : !ix) over %kv scale(0.17) mask(#fi.causal) : " + q +
         " over !kv -> " + q + ", tensor<?x4xf32>\n  fi.return %o, %l : " + q +
         ", tensor<?x4xf32>\n}\n";
}

HostTensor positionsOf(int64_t rows) {
  HostTensor positions(DType::I32, {rows});
  for (int64_t row = 0; row < rows; ++row)
    positions.setInteger({row}, row * 37 % 211);
  return positions;
}

TEST(QueryTest, IsWhatCompanionsMade) {
  for (const char *element : {"bf16", "f16", "f32"})
    for (auto [hasNorm, hasRope] :
         {std::pair(true, false), std::pair(false, true),
          std::pair(true, true)}) {
      std::string text = queryText(element, hasNorm, hasRope);
      check(text, {{3, 41}, {1, 9}, {20, 20}},
            [](Case &test) { test.give("pos", positionsOf(24)); });
    }
}

/// Another query than the one that was computed is not let through.
TEST(QueryTest, IsCompared) {
  std::vector<Request> requests = {{3, 41}, {1, 9}, {20, 20}};
  auto run = [&](bool hasRope) {
    Case test(queryText("bf16", true, hasRope), requests);
    test.give("pos", positionsOf(24)).setOptLevel(0);
    return test.runOnCPU({1});
  };
  Case test(queryText("bf16", true, true), requests);
  test.give("pos", positionsOf(24));
  EXPECT_FALSE(test.agrees(run(false)));
  EXPECT_TRUE(test.agrees(run(true)));
}

TEST(RopeTest, NeedsPositionsForAllRows) {
  RopeText text;
  Case run(text.get(), {{7, 0}});
  run.give("pos", integers({0, 1, 2}));
  EXPECT_NE(run.getError().find("'pos'"), std::string::npos);
  text.isPlanned = true;
  text.index = "i64";
  Case plan(text.get(), {{7, 0}});
  plan.give("pos", integers({0, 1, 2}, DType::I64));
  std::string error = plan.getError();
  EXPECT_NE(error.find("operand 'pos': expected at least 7 rows, but got 3"),
            std::string::npos)
      << error;
}

//===----------------------------------------------------------------------===//
// Appends
//===----------------------------------------------------------------------===//

const std::vector<Request> &appended() {
  static const std::vector<Request> requests = {
      {1, 20}, {0, 5}, {5, 37}, {70, 70}};
  return requests;
}

TEST(AppendTransformTest, KeysAndValues) {
  for (const char *pairing : {"half", "interleaved"})
    for (bool ofValues : {false, true}) {
      AppendText text;
      text.pairing = pairing;
      text.ofValues = ofValues;
      text.isHND = !ofValues;
      check(text.get(), appended());
      text.dims = 32;
      text.hasOrigin = true;
      check(text.get(), appended());
    }
}

TEST(AppendTransformTest, QuantisesWhatItRotates) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *scales : {"tensor", "head", "token"}) {
      AppendText text;
      text.codes = codes;
      text.scales = scales;
      check(text.get(), appended(),
            [&](Case &test) { giveScales(test, scales); });
    }
}

TEST(AppendTransformTest, TailsOfLatents) {
  for (const char *pairing : {"half", "interleaved"}) {
    AppendText text;
    text.pairing = pairing;
    text.isLatent = true;
    check(text.get(), appended());
  }
}

} // namespace
