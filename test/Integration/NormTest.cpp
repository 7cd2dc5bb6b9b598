//===- NormTest.cpp - norms of rows ---------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.rms_norm on the CPU, in the interpreter of level 2 and on an emulated GPU.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "fi/Interpreter/Tolerance.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Norm {
  std::string input = "bf16", weight = "bf16", output = "bf16";
  int64_t heads = 2, dim = 64;
  std::string eps = "1.0e-6";
  bool plusOne = false;

  std::string get() const {
    std::string size = std::to_string(heads) + "x" + std::to_string(dim) + "x";
    std::string x = "tensor<?x" + size + input + ">",
                y = "tensor<?x" + size + output + ">",
                w = "tensor<" + std::to_string(dim) + "x" + weight + ">";
    bool hasWeight = !weight.empty();
    return "fi.program @norm run(%x: " + x +
           (hasWeight ? ", %w: " + w : std::string()) + ") -> (" + y +
           ") {\n  %y = fi.rms_norm %x " +
           (hasWeight ? "weight(%w : " + w + ") " : std::string()) +
           (plusOne ? "plus_one " : "") + "eps(" + eps + ") : " + x + " -> " +
           y + "\n  fi.return %y : " + y + "\n}\n";
  }
};

/// On all backends that there are.
void check(const Norm &norm, int64_t rows = 70) {
  SCOPED_TRACE(norm.get());
  static const Planned plans[] = {{1}, {3}};
  Case(norm.get(), {{rows, 0}}).setOptLevel(0).check(plans);
  Case(norm.get(), {{rows, 0}}).on(interpret).check(plans);
  Case(norm.get(), {{rows, 0}}).on(emulate).check(plans);
}

TEST(RMSNormTest, OfTypes) {
  for (const char *input : {"f32", "f16", "bf16"})
    for (const char *other : {"f32", "f16", "bf16"}) {
      Norm norm;
      norm.input = input;
      norm.weight = norm.output = other;
      check(norm);
    }
}

TEST(RMSNormTest, OfDims) {
  for (int64_t dim : {8, 24, 40, 72, 128, 192, 256, 512}) {
    Norm norm;
    norm.dim = dim;
    norm.heads = 1;
    check(norm, 33);
  }
}

/// Where a warp has a row no more: dims that fill all lanes and that do not, by
/// one lane, a warp, or several, and as many warps as there can be.
TEST(RMSNormTest, OfLongRows) {
  for (int64_t dim :
       {520, 768, 1024, 1032, 2048, 2880, 4096, 5120, 8184, 12288, 16384}) {
    Norm norm;
    norm.dim = dim;
    norm.heads = 1;
    check(norm, 7);
  }
}

TEST(RMSNormTest, OfLongRowsOfSeveralHeadsAndTypes) {
  for (const char *input : {"f32", "f16", "bf16"})
    for (const char *other : {"f32", "f16", "bf16"}) {
      Norm norm;
      norm.input = input;
      norm.weight = norm.output = other;
      norm.dim = 1288;
      norm.plusOne = input == norm.weight;
      check(norm, 5);
    }
}

/// What lies beside a row, and beyond its last column, is in no result.
TEST(RMSNormTest, OfLongRowsBesideNaN) {
  for (Case::Maker maker : {Case::Maker(), Case::Maker(emulate)}) {
    Norm norm;
    norm.dim = 1032;
    norm.heads = 1;
    Case test(norm.get(), {{6, 0}});
    test.setOptLevel(0).adjust(
        [](const Signature &, std::vector<HostValue> &values) {
          HostTensor x = values[0].getTensor();
          for (int64_t row : {0, 3})
            for (int64_t d = 0; d < 1032; ++d)
              x.setFloat({row, 0, d}, std::nan(""));
        });
    if (maker)
      test.on(maker);
    std::vector<HostTensor> got = test.runOnCPU({2}),
                            expected = test.runReference();
    ASSERT_EQ(got.size(), 1u);
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t d = 0; d < 1032; ++d) {
        double y = got[0].getFloat({row, 0, d});
        double wanted = expected[0].getFloat({row, 0, d});
        if (row % 3 == 0)
          ASSERT_TRUE(std::isnan(y)) << row << ", " << d;
        else
          ASSERT_NEAR(y, wanted, normTolerance(wanted, 1032, DType::BF16));
      }
  }
}

TEST(RMSNormTest, OfRows) {
  for (int64_t rows : {0, 1, 15, 16, 64, 65, 200}) {
    Norm norm;
    norm.heads = 3;
    check(norm, rows);
  }
}

TEST(RMSNormTest, WithoutWeightsAndWithOneAdded) {
  Norm norm;
  norm.weight = "";
  check(norm);
  norm.weight = "f16";
  norm.plusOne = true;
  check(norm);
  norm.eps = "0.5";
  check(norm);
}

TEST(RMSNormTest, OfRowsThatAreZero) {
  // With an epsilon the result is 0, not NaN.
  for (Case::Maker maker : {Case::Maker(), Case::Maker(emulate)}) {
    Norm norm;
    Case test(norm.get(), {{9, 0}});
    test.setOptLevel(0).adjust(
        [](const Signature &, std::vector<HostValue> &values) {
          HostTensor x = values[0].getTensor();
          for (int64_t row : {0, 4})
            for (int64_t head = 0; head < 2; ++head)
              for (int64_t d = 0; d < 64; ++d)
                x.setFloat({row, head, d}, 0);
        });
    if (maker)
      test.on(maker);
    static const Planned plans[] = {{2}};
    test.check(plans);
    EXPECT_EQ(test.runOnCPU({2})[0].getFloat({4, 1, 63}), 0);
  }
}

TEST(RMSNormTest, OfTheResultOfAnAttention) {
  // Stages of rows behind others, through memory of the workspace.
  std::string text = R"(!ix = tensor<?xi32>
!q = tensor<?x4x32xbf16>
!t = tensor<?x2x32xbf16>
!kv = !fi.ragged_kv<2x32xbf16>
fi.program @layer plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t, %w: tensor<32xf32>) -> (tensor<?x4x32xf32>) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.2) mask(#fi.causal) : !q over !kv -> !q
  %y = fi.rms_norm %o weight(%w : tensor<32xf32>) eps(0.01) : !q -> tensor<?x4x32xf32>
  fi.return %y : tensor<?x4x32xf32>
}
)";
  Case cpu(text, {{3, 9}, {20, 70}});
  std::vector<HostTensor> expected = cpu.runReference(),
                          got = cpu.setOptLevel(0).runOnCPU({2});
  ASSERT_EQ(got.size(), 1u);
  for (int64_t row = 0; row < 23; ++row)
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t d = 0; d < 32; ++d)
        EXPECT_NEAR(got[0].getFloat({row, head, d}),
                    expected[0].getFloat({row, head, d}), 0.05);
}

/// The tolerance is not so wide that another epsilon, or the mean of one
/// element less, would pass.
TEST(RMSNormTest, ToleranceIsNarrow) {
  Norm norm;
  norm.input = norm.weight = norm.output = "f32";
  Case right(norm.get(), {{5, 0}});
  norm.eps = "1.0e-3";
  Case other(norm.get(), {{5, 0}});
  std::vector<HostTensor> a = right.runReference(), b = other.runReference();
  ASSERT_EQ(a.size(), 1u);
  int64_t far = 0;
  for (int64_t d = 0; d < 64; ++d) {
    double expected = a[0].getFloat({2, 1, d});
    far += std::fabs(expected - b[0].getFloat({2, 1, d})) >
           normTolerance(expected, 64, DType::F32);
  }
  EXPECT_GT(far, 60);
}

} // namespace
