//===- AdditiveTest.cpp - weights that are not normalised ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `#fi.sum` and `#fi.sigmoid` on the CPU: types, merges, cuts that the program
// states, and values that can be told without a kernel.
//
//===----------------------------------------------------------------------===//

#include "AdditiveTesting.h"
#include <cmath>

using namespace fi;
using namespace fi::test;

namespace {

class AdditiveTest : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Kinds, AdditiveTest, testing::ValuesIn(kAdditiveKinds),
                         [](const auto &info) {
                           return "kind" + std::to_string(info.index);
                         });

TEST_P(AdditiveTest, TypesAndGroups) {
  for (const char *element : {"f32", "f16", "bf16"})
    for (int64_t group : {1, 3}) {
      SCOPED_TRACE(testing::Message() << element << ", " << group);
      AttentionText text;
      text.keyDim = text.valueDim = 16;
      text.query = text.keys = text.values = text.output = element;
      text.group = group;
      text.clauses =
          std::string("normalise(") + GetParam() + ") mask(#fi.causal)";
      Case(text.get(), mixedBatch()).setOptLevel(0).check();
    }
}

TEST_P(AdditiveTest, StatesAdd) {
  for (const char *element : {"f32", "bf16"}) {
    SCOPED_TRACE(element);
    Case test(additiveCascade(element, GetParam()), {});
    giveCascade(test).setOptLevel(0).check();
  }
}

TEST_P(AdditiveTest, SegmentsAdd) {
  std::string text = std::string("#n = ") + GetParam() + R"(
!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!lse = tensor<?x2xf32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!seg = !fi.state<?x2x8xf32, #n, segmented>
!st = !fi.state<?x2x8xf32, #n>
fi.program @cut plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t) -> (!q, !lse) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.4) normalise(#n) mask(#fi.causal) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o, %l = fi.finalize %s : !st -> !q, !lse
  fi.return %o, %l : !q, !lse
}
)";
  Case(text, mixedBatch()).check();
}

/// Queries of zeros: every weight is that of a score of 0.
TEST(AdditiveValues, OfZeroQueries) {
  struct Kind {
    const char *text;
    double weight;
  };
  for (Kind kind :
       {Kind{"#fi.sum", 0}, Kind{"#fi.sigmoid", 0.5},
        Kind{"#fi.sigmoid<bias = -2.0>", 1 / (1 + std::exp(2.0))}}) {
    SCOPED_TRACE(kind.text);
    AttentionText text;
    text.view = AttentionText::View::Contiguous;
    text.keyDim = text.valueDim = 8;
    text.kvHeads = text.group = 1;
    text.clauses = std::string("normalise(") + kind.text + ") mask(#fi.causal)";
    auto make = [&](const Signature &signature,
                    std::vector<HostValue> &values) {
      for (auto [info, value] : llvm::zip(signature.arguments, values)) {
        if (info.name == "q")
          value = HostValue(HostTensor(DType::F32, {5, 1, 8}));
        if (info.name == "v") {
          HostTensor ones(DType::F32, value.getTensor().getShape());
          for (int64_t i = 0; i < ones.getSize(0); ++i)
            for (int64_t h = 0; h < ones.getSize(1); ++h)
              for (int64_t d = 0; d < ones.getSize(2); ++d)
                ones.setFloat({i, h, d}, 1);
          value = HostValue(ones);
        }
      }
    };
    Case test(text.get(), {{5, 100}});
    test.adjust(make);
    for (Planned plan : {Planned{1}, Planned{3, SplitChoice::Fixed, 32}}) {
      std::vector<HostTensor> results = test.runOnCPU(plan);
      ASSERT_EQ(results.size(), 2u);
      for (int64_t row = 0; row < 5; ++row) {
        EXPECT_NEAR(results[0].getFloat({row, 0, 3}),
                    kind.weight * static_cast<double>(96 + row), 1e-4);
        EXPECT_EQ(results[1].getFloat({row, 0}), 0);
      }
    }
    std::vector<HostTensor> wanted = test.runReference();
    EXPECT_NEAR(wanted[0].getFloat({4, 0, 0}), kind.weight * 100, 1e-5);
  }
}

} // namespace
