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

#include "CompanionTexts.h"
#include "EmulatedExecutor.h"

using namespace fi;
using namespace fi::test;

namespace {

/// On all backends that there are.
void check(
    const std::string &text, std::vector<Request> requests,
    llvm::function_ref<void(Case &)> prepare = [](Case &) {}) {
  SCOPED_TRACE(text);
  static const Planned plans[] = {{1}, {3}};
  const std::pair<const char *, Case::Maker> backends[] = {
      {"cpu", {}}, {"interpreter", interpret}, {"emulated", emulate}};
  for (const auto &[name, maker] : backends) {
    SCOPED_TRACE(name);
    Case test(text, requests);
    test.setOptLevel(0);
    if (maker)
      test.on(maker);
    prepare(test);
    test.check(plans);
  }
}

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
