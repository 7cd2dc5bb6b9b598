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
  std::string op = "rms_norm", input = "bf16", weight = "bf16", output = "bf16";
  /// Types of what is added, and of the sum; of the bias; the scheme of codes.
  std::string addend, sum, bias, scheme;
  int64_t heads = 2, dim = 64;
  std::string eps = "1.0e-6";
  bool plusOne = false, inMemory = false, inPlace = false;

  std::string rowsOf(const std::string &element) const {
    return (inMemory ? "memref<?x" : "tensor<?x") + std::to_string(heads) +
           "x" + std::to_string(dim) + "x" + element + ">";
  }
  std::string columnsOf(const std::string &element) const {
    return "tensor<" + std::to_string(dim) + "x" + element + ">";
  }
  bool isPerToken() const {
    return scheme.find("per = token") != std::string::npos;
  }
  std::string scalesType() const {
    return (inMemory ? "memref<?x" : "tensor<?x") + std::to_string(heads) +
           "xf32>";
  }
  bool isPerHead() const {
    return scheme.find("per = head") != std::string::npos;
  }

  std::string get() const {
    std::string x = rowsOf(input), y = rowsOf(output);
    std::string arguments = "%x: " + x, body = "fi." + op + " %x ";
    auto add = [&](const char *clause, const std::string &name,
                   const std::string &type) {
      arguments += ", " + name + ": " + type;
      body += std::string(clause) + "(" + name + " : " + type + ") ";
    };
    if (!addend.empty())
      add("add", "%r", rowsOf(addend));
    if (!weight.empty())
      add("weight", "%w", columnsOf(weight));
    if (!bias.empty())
      add("bias", "%b", columnsOf(bias));
    if (plusOne)
      body += "plus_one ";
    body += "eps(" + eps + ") ";
    if (!scheme.empty()) {
      body += "to(" + scheme + ") ";
      if (!isPerToken())
        add("scales", "%s",
            isPerHead() ? "tensor<" + std::to_string(heads) + "xf32>" : "f32");
    }
    std::string types = y, names = "%y";
    if (!addend.empty()) {
      types += ", " + rowsOf(sum);
      names += ", %sum";
    }
    if (isPerToken()) {
      types += ", " + scalesType();
      names += ", %t";
    }
    if (inPlace)
      return "fi.program @norm run(" + arguments + ") {\n  " + body +
             "outs(%x, %r : " + x + ", " + rowsOf(addend) + ") : " + x +
             "\n  fi.return\n}\n";
    if (inMemory) {
      arguments += ", %y: " + y;
      if (!addend.empty())
        arguments += ", %sum: " + rowsOf(sum);
      if (isPerToken())
        arguments += ", %t: " + scalesType();
      return "fi.program @norm run(" + arguments + ") {\n  " + body + "outs(" +
             names + " : " + types + ") : " + x + "\n  fi.return\n}\n";
    }
    return "fi.program @norm run(" + arguments + ") -> (" + types + ") {\n  " +
           names + " = " + body + ": " + x + " -> " + types + "\n  fi.return " +
           names + " : " + types + "\n}\n";
  }

  /// Gives scales that leave some of the codes beyond the largest.
  void giveScales(Case &test) const {
    double scale = output == "i8" ? 0.02 : output == "f8E5M2" ? 3e-5 : 0.005;
    if (isPerHead()) {
      std::vector<double> scales;
      for (int64_t head = 0; head < heads; ++head)
        scales.push_back(scale * static_cast<double>(head + 1));
      test.give("s", floats(scales));
    } else if (!scheme.empty() && !isPerToken()) {
      test.giveNumber("s", scale);
    }
  }
};

/// On all backends that there are.
void check(const Norm &norm, int64_t rows = 70) {
  SCOPED_TRACE(norm.get());
  static const Planned plans[] = {{1}, {3}};
  for (const Case::Maker &maker :
       {Case::Maker(), Case::Maker(interpret), Case::Maker(emulate)}) {
    Case test(norm.get(), {{rows, 0}});
    norm.giveScales(test);
    if (maker)
      test.on(maker);
    else
      test.setOptLevel(0);
    test.check(plans);
  }
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

TEST(RMSNormTest, OfSums) {
  for (int64_t dim : {64, 1032, 4096})
    for (const char *input : {"bf16", "f32"})
      for (const char *sum : {"bf16", "f16", "f32"}) {
        Norm norm;
        norm.input = input;
        norm.addend = norm.weight = "bf16";
        norm.sum = norm.output = sum;
        norm.dim = dim;
        norm.heads = dim > 64 ? 1 : 2;
        norm.plusOne = dim == 1032;
        check(norm, dim > 64 ? 5 : 70);
      }
}

TEST(LayerNormTest, OfTypes) {
  for (const char *input : {"f32", "f16", "bf16"})
    for (const char *other : {"f32", "f16", "bf16"}) {
      Norm norm;
      norm.op = "layer_norm";
      norm.eps = "1.0e-5";
      norm.input = input;
      norm.weight = norm.bias = norm.output = other;
      check(norm);
    }
}

TEST(LayerNormTest, OfDims) {
  for (int64_t dim : {8, 40, 128, 264, 768, 1032, 2880, 16384}) {
    Norm norm;
    norm.op = "layer_norm";
    norm.bias = "f32";
    norm.dim = dim;
    norm.heads = 1;
    check(norm, 7);
  }
}

TEST(LayerNormTest, WithoutWeightsAndOfSums) {
  Norm norm;
  norm.op = "layer_norm";
  norm.weight = "";
  check(norm);
  norm.bias = "f16";
  check(norm);
  norm.addend = "f16";
  norm.sum = "f32";
  norm.dim = 1288;
  check(norm, 5);
}

/// A mean far larger than the deviation: what would lose all digits if squares
/// were summed before the mean is taken away.
TEST(LayerNormTest, OfRowsFarFromZero) {
  for (int64_t dim : {64, 1032})
    for (Case::Maker maker : {Case::Maker(), Case::Maker(emulate)}) {
      Norm norm;
      norm.op = "layer_norm";
      norm.input = norm.weight = norm.output = "f32";
      norm.dim = dim;
      norm.heads = 1;
      Case test(norm.get(), {{3, 0}});
      test.setOptLevel(0).adjust(
          [dim](const Signature &, std::vector<HostValue> &values) {
            HostTensor x = values[0].getTensor();
            for (int64_t row = 0; row < 3; ++row)
              for (int64_t d = 0; d < dim; ++d)
                x.setFloat({row, 0, d}, 1000 + x.getFloat({row, 0, d}));
          });
      if (maker)
        test.on(maker);
      static const Planned plans[] = {{2}};
      test.check(plans);
    }
}

TEST(QuantisedNormTest, OfSchemes) {
  for (const char *op : {"rms_norm", "layer_norm"})
    for (const char *storage : {"f8E4M3FN", "f8E5M2", "i8"})
      for (const char *per : {"tensor", "head", "token"})
        for (int64_t dim : {72, 1288}) {
          Norm norm;
          norm.op = op;
          norm.dim = dim;
          norm.output = storage;
          norm.scheme = std::string("!fi.scaled<") + storage +
                        ", per = " + per + ", by = f32>";
          if (dim > 72) {
            norm.addend = "f16";
            norm.sum = "bf16";
          }
          check(norm, dim > 72 ? 5 : 33);
        }
}

TEST(QuantisedNormTest, IntoMemoryByScalesThatItFinds) {
  for (bool adds : {false, true})
    for (int64_t dim : {64, 1032, 4096}) {
      Norm norm;
      norm.dim = dim;
      norm.inMemory = true;
      norm.output = "i8";
      norm.scheme = "!fi.scaled<i8, per = token, by = f32>";
      if (adds)
        norm.addend = norm.sum = "bf16";
      check(norm, 7);
    }
}

/// What a row's scale is, without the reference.
TEST(QuantisedNormTest, ScalesReachTheLargestCode) {
  Norm norm;
  norm.heads = 1;
  norm.input = "f32";
  norm.weight.clear();
  norm.output = "f8E4M3FN";
  norm.eps = "0.0";
  norm.scheme = "!fi.scaled<f8E4M3FN, per = token, by = f32>";
  Case test(norm.get(), {{1, 0}});
  test.adjust([](const Signature &, std::vector<HostValue> &values) {
    for (int64_t d = 0; d < 64; ++d)
      values[0].getTensor().setFloat({0, 0, d}, d == 5 ? -4 : 2);
  });
  std::vector<HostTensor> got = test.setOptLevel(0).runOnCPU({1});
  ASSERT_EQ(got.size(), 2u);
  double deviation = std::sqrt((63 * 4 + 16) / 64.0);
  EXPECT_NEAR(got[1].getFloat({0, 0}), 4 / deviation / 448, 1e-8);
  EXPECT_EQ(got[0].getFloat({0, 0, 5}), -448);
  EXPECT_EQ(got[0].getFloat({0, 0, 6}), 224);
}

/// Over its inputs, as engines do: the sum stays for the next layer. Lanes read
/// nothing that others write, also where they have no row or no columns.
TEST(RMSNormTest, InPlace) {
  for (int64_t dim : {40, 64, 120, 264, 520, 1032, 4096}) {
    Norm norm;
    norm.dim = dim;
    norm.addend = norm.sum = "bf16";
    norm.inMemory = norm.inPlace = true;
    check(norm, 7);
  }
}

TEST(RMSNormTest, IntoMemory) {
  for (const char *op : {"rms_norm", "layer_norm"})
    for (bool adds : {false, true})
      for (int64_t dim : {64, 1032}) {
        Norm norm;
        norm.op = op;
        norm.dim = dim;
        norm.inMemory = true;
        if (adds) {
          norm.addend = "bf16";
          norm.sum = "f32";
        }
        check(norm, 6);
      }
  Norm norm;
  norm.inMemory = true;
  norm.output = "f8E4M3FN";
  norm.scheme = "!fi.scaled<f8E4M3FN, per = tensor, by = f32>";
  check(norm, 6);
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
