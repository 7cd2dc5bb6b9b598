//===- QuantisedTest.cpp - keys and values as codes with scales -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every type of codes, with scales of every granularity, in each layout.
//
//===----------------------------------------------------------------------===//

#include "QuantisedTesting.h"

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

class QuantisedTest : public testing::TestWithParam<Quantised> {};

TEST_P(QuantisedTest, Causal) {
  checkQuantised(GetParam(), [](Case &) {}, everyPlan());
}

INSTANTIATE_TEST_SUITE_P(Schemes, QuantisedTest,
                         testing::ValuesIn(quantisedCases()),
                         [](const auto &info) { return info.param.getName(); });

TEST(Quantised8, Append) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *scales : {"tensor", "head", "page", "token"}) {
      SCOPED_TRACE(std::string(codes) + " per " + scales);
      checkQuantisedAppend(codes, scales, "f32", [](Case &) {});
      checkQuantisedAppend(codes, scales, "bf16", [](Case &) {});
    }
}

TEST(Quantised8, SmallCodes) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2"})
    checkSmallCodes("f16", codes, 64, [](Case &) {});
}

/// Codes that are not numbers, in slots that hold no key.
TEST(Quantised8, UnusedSlots) {
  AttentionText text;
  text.keys = text.values = "f8E4M3FN";
  text.keyScales = text.valueScales = "tensor";
  text.clauses = "mask(#fi.causal)";
  Case test(text.get(), mixedBatch());
  test.giveNumber("ks", 1).giveNumber("vs", 1).check();
}

TEST(Quantised4, Append) {
  for (const char *scales : {"nvfp4", "nvfp4_head", "mxfp4"})
    for (const char *element : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(scales) + " of " + element);
      checkQuantisedAppend("f4E2M1FN", scales, element, [](Case &) {});
    }
}

TEST(QuantisedFaults, OfTheField) {
  checkQuantisedFaults([](Case &) {}, /*manyKeys=*/8192, everyPlan());
}

/// Numbers of the smallest and of the largest exponents.
TEST(Quantised8, EveryCode) {
  for (const char *type : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *query : {"f32", "bf16"}) {
      SCOPED_TRACE(std::string(type) + ", " + query);
      checkEveryCode(type, query, [](Case &) {});
    }
}
