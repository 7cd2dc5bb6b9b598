//===- CodesTest.cpp - rows of codes and of bits --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.quantise, fi.dequantise and fi.pack_bits, on the CPU, in the interpreter
// of level 2 and on an emulated GPU.
//
//===----------------------------------------------------------------------===//

#include "CompanionTesting.h"

using namespace fi;
using namespace fi::test;

namespace {

using fi::test::check;

/// Rows to codes and back; the codes, what scales are computed and the numbers
/// are results, or go to memrefs.
struct CodesText {
  std::string codes = "f8E4M3FN", per = "token", element = "bf16",
              output = "bf16";
  int64_t heads = 3, dim = 64, group = 0;
  bool isComputed = false, isInMemory = false;

  bool hasBlocks() const { return codes == "nvfp4" || codes == "mxfp4"; }
  bool hasNumber() const { return codes != "mxfp4"; }
  std::string scheme() const {
    if (codes == "nvfp4")
      return "!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN" +
             std::string(per == "head" ? ", per = head>" : ">");
    if (codes == "mxfp4")
      return "!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>";
    return "!fi.scaled<" + codes + ", per = " + per + ", by = f32>";
  }
  std::string rows(const std::string &rest) const {
    return (isInMemory ? "memref<?x" : "tensor<?x") + std::to_string(heads) +
           rest + ">";
  }
  std::string get() const {
    std::string d = std::to_string(dim);
    std::string x = rows("x" + d + "x" + element),
                y = rows("x" + d + "x" + output),
                c = hasBlocks() ? rows("x" + std::to_string(dim / 2) + "xi8")
                                : rows("x" + d + "x" + codes);
    // Of rows, or numbers of f32.
    int64_t span = codes == "nvfp4" ? 16 : codes == "mxfp4" ? 32 : group;
    std::string made =
        rows((span ? "x" + std::to_string(dim / span) : "") + "x" +
             (codes == "nvfp4"   ? "f8E4M3FN"
              : codes == "mxfp4" ? "f8E8M0FNU"
                                 : "f32"));
    std::string number = per == "head"
                             ? "tensor<" + std::to_string(heads) + "xf32>"
                         : per == "tensor" || hasBlocks() ? "f32"
                                                          : made;
    bool makes = hasBlocks() || isComputed;
    bool takes = hasBlocks() ? hasNumber() : !isComputed;
    std::string clauses =
        "(" + scheme() + ")" +
        (group ? " group(" + std::to_string(group) + ")" : "");
    std::string text = "fi.program @codes run(%x: " + x;
    if (takes)
      text += ", %n: " + number;
    if (isInMemory)
      text += ", %c: " + c + (makes ? ", %s: " + made : "") + ", %y: " + y;
    text += ")";
    if (!isInMemory)
      text += " -> (" + c + (makes ? ", " + made : "") + ", " + y + ")";
    text += " {\n  ";
    if (!isInMemory)
      text += makes ? "%c, %s = " : "%c = ";
    text += "fi.quantise %x to" + clauses +
            (takes ? " scales(%n : " + number + ")" : "");
    std::string types = c + (makes ? ", " + made : "");
    if (isInMemory)
      text +=
          " outs(%c" + std::string(makes ? ", %s" : "") + " : " + types + ")";
    text += " : " + x + (isInMemory ? "" : " -> " + types) + "\n  ";
    if (!isInMemory)
      text += "%y = ";
    text += "fi.dequantise %c from" + clauses + " scales(" +
            (makes ? "%s" : "") + (makes && takes ? ", " : "") +
            (takes ? "%n" : "") + " : " + (makes ? made : "") +
            (makes && takes ? ", " : "") + (takes ? number : "") + ")";
    if (isInMemory)
      text += " outs(%y : " + y + ")";
    text += " : " + c + (isInMemory ? "" : " -> " + y) + "\n  fi.return";
    if (!isInMemory)
      text += std::string(" %c, ") + (makes ? "%s, " : "") + "%y : " + types +
              ", " + y;
    return text + "\n}\n";
  }
};

/// Scales by which some codes are beyond the largest.
void giveScales(Case &test, const CodesText &text) {
  if (text.hasBlocks() ? !text.hasNumber() : text.isComputed)
    return;
  double scale = text.codes == "f8E4M3FN" ? 0.0051
                 : text.codes == "f8E5M2" ? 0.000041
                 : text.codes == "i8"     ? 0.0171
                                          : 0.0123;
  if (text.per == "tensor" || (text.hasBlocks() && text.per != "head"))
    return void(test.giveNumber("n", scale));
  test.adjust(
      [scale](const Signature &signature, std::vector<HostValue> &values) {
        HostTensor scales = values[signature.find("n")].getTensor();
        auto *data = static_cast<float *>(scales.getData());
        for (int64_t i = 0; i < scales.getNumElements(); ++i)
          data[i] = static_cast<float>(scale * (1 + i % 13 * 0.37));
      });
}

void check(const CodesText &text, int64_t rows) {
  check(text.get(), {{rows, 0}}, [&](Case &test) { giveScales(test, text); });
}

TEST(CodesTest, ByGivenScales) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *per : {"tensor", "head", "token"})
      for (auto [heads, dim, group, element] :
           {std::tuple(3, 64, 0, "bf16"), std::tuple(1, 520, 0, "f32"),
            std::tuple(2, 256, 64, "f16"), std::tuple(1, 768, 384, "bf16")}) {
        CodesText text;
        text.codes = codes;
        text.per = per;
        text.heads = heads;
        text.dim = dim;
        text.element = element;
        text.group = text.per == "token" ? group : 0;
        check(text, 21);
      }
}

TEST(CodesTest, ByComputedScales) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (auto [heads, dim, group, element] :
         {std::tuple(3, 64, 0, "bf16"), std::tuple(1, 1000, 0, "f16"),
          std::tuple(2, 8, 0, "f32"), std::tuple(1, 512, 128, "bf16"),
          std::tuple(2, 48, 8, "f32")}) {
      CodesText text;
      text.codes = codes;
      text.isComputed = true;
      text.heads = heads;
      text.dim = dim;
      text.group = group;
      text.element = element;
      check(text, 37);
    }
}

TEST(CodesTest, OfNumbersOfRows) {
  for (int64_t rows : {0, 1, 2, 63, 64, 65, 130}) {
    CodesText text;
    text.isComputed = true;
    text.heads = 1;
    check(text, rows);
    text.dim = 4096;
    if (rows < 4)
      check(text, rows);
    text.codes = "nvfp4";
    text.per = "tensor";
    text.dim = 64;
    check(text, rows);
  }
}

TEST(CodesTest, OfBlocks) {
  for (auto [codes, per] : {std::pair("nvfp4", "tensor"),
                            std::pair("nvfp4", "head"), std::pair("mxfp4", "")})
    for (auto [heads, dim, element, output] :
         {std::tuple(3, 32, "bf16", "bf16"), std::tuple(2, 64, "f32", "f32"),
          std::tuple(1, 544, "f16", "f16")}) {
      CodesText text;
      text.codes = codes;
      text.per = per;
      text.heads = heads;
      text.dim = dim;
      text.element = element;
      text.output = output;
      check(text, 21);
    }
}

TEST(CodesTest, IntoMemory) {
  for (const char *codes : {"f8E4M3FN", "i8", "nvfp4", "mxfp4"})
    for (bool isComputed : {false, true}) {
      CodesText text;
      text.codes = codes;
      text.isComputed = isComputed;
      text.isInMemory = true;
      check(text, 19);
    }
}

/// What each code of a row is, without the reference.
TEST(CodesTest, ComputedScalesReachTheLargestCode) {
  for (auto [codes, largest] :
       {std::pair("f8E4M3FN", 448.0), std::pair("f8E5M2", 57344.0),
        std::pair("i8", 127.0)}) {
    CodesText text;
    text.codes = codes;
    text.isComputed = true;
    text.heads = 1;
    text.element = text.output = "f32";
    Case test(text.get(), {{3, 0}});
    test.adjust([](const Signature &, std::vector<HostValue> &values) {
      HostTensor x = values[0].getTensor();
      for (int64_t d = 0; d < 64; ++d) {
        x.setFloat({0, 0, d}, d == 17 ? -8 : 0.5);
        x.setFloat({1, 0, d}, 0);
      }
    });
    std::vector<HostTensor> got = test.setOptLevel(0).runOnCPU({1});
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0].getFloat({0, 0, 17}), -largest);
    EXPECT_NEAR(got[0].getFloat({0, 0, 3}), largest / 16, 0.5);
    EXPECT_NEAR(got[2].getFloat({0, 0, 17}), -8, 1e-6);
    EXPECT_FLOAT_EQ(got[1].getFloat({0, 0}), 8 / largest);
    // A row of zeros.
    EXPECT_EQ(got[0].getFloat({1, 0, 5}), 0);
    EXPECT_EQ(got[1].getFloat({1, 0}), 0x1p-126);
    EXPECT_EQ(got[2].getFloat({1, 0, 5}), 0);
  }
}

TEST(CodesTest, BlocksHaveTheBytesThatAreKnown) {
  CodesText text;
  text.codes = "nvfp4";
  text.per = "tensor";
  text.heads = 1;
  text.dim = 32;
  text.element = text.output = "f32";
  Case test(text.get(), {{1, 0}});
  test.giveNumber("n", 0.5);
  test.adjust([](const Signature &, std::vector<HostValue> &values) {
    HostTensor x = values[0].getTensor();
    for (int64_t d = 0; d < 32; ++d)
      x.setFloat({0, 0, d}, 0);
    const double numbers[] = {6, -6, 3, 0.5, 1.25, -1, 2.5, 4};
    for (int64_t d = 0; d < 8; ++d)
      x.setFloat({0, 0, 16 + d}, numbers[d]);
  });
  std::vector<HostTensor> got = test.setOptLevel(0).runOnCPU({1});
  ASSERT_EQ(got.size(), 3u);
  // The largest is 6, so that the block's scale is 1 over the number.
  EXPECT_EQ(got[1].getFloat({0, 0, 0}), 0);
  EXPECT_EQ(got[1].getFloat({0, 0, 1}), 2);
  const int64_t bytes[] = {0xf7, 0x15, 0xa2, 0x64};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got[0].getInteger({0, 0, 8 + i}) & 255, bytes[i]) << i;
    EXPECT_EQ(got[0].getInteger({0, 0, i}), 0);
  }
  EXPECT_EQ(got[2].getFloat({0, 0, 17}), -6);
  EXPECT_EQ(got[2].getFloat({0, 0, 20}), 1);
  EXPECT_EQ(got[2].getFloat({0, 0, 22}), 2);
}

TEST(CodesTest, NeedsScalesOfAllRows) {
  CodesText text;
  Case test(text.get(), {{7, 0}});
  test.adjust([](const Signature &signature, std::vector<HostValue> &values) {
    values[signature.find("n")] = HostValue(HostTensor(DType::F32, {5, 3}));
  });
  EXPECT_NE(test.getError().find("'n'"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

std::string bitsText(int64_t heads, int64_t dim, const std::string &element,
                     const std::string &order) {
  std::string x = rowsType(heads, dim, element),
              y = rowsType(heads, dim / 8, "i8");
  return "fi.program @bits run(%x: " + x + ") -> (" + y +
         ") {\n  %y = fi.pack_bits %x order(" + order + ") : " + x + " -> " +
         y + "\n  fi.return %y : " + y + "\n}\n";
}

HostTensor truths(int64_t rows, int64_t heads, int64_t dim, DType type) {
  HostTensor tensor(type, {rows, heads, dim});
  Random random(11);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t d = 0; d < dim; ++d)
        // What is not 0 is true, whatever it is.
        tensor.setInteger({row, head, d}, random.below(2) ? 0
                                          : type == DType::I1
                                              ? 1
                                              : 1 + random.below(90));
  return tensor;
}

TEST(BitsTest, OfTypesOrdersAndWidths) {
  for (auto [element, type] :
       {std::pair("i1", DType::I1), std::pair("i8", DType::I8)})
    for (const char *order : {"little", "big"})
      for (auto [rows, heads, dim] :
           {std::tuple(21, 3, 64), std::tuple(70, 1, 576),
            std::tuple(3, 1, 4096), std::tuple(0, 1, 64),
            std::tuple(1, 2, 128)}) {
        HostTensor x = truths(rows, heads, dim, type);
        check(bitsText(heads, dim, element, order), {{rows, 0}},
              [&](Case &test) { test.give("x", x); });
      }
}

TEST(BitsTest, GivesWhatIsKnown) {
  for (bool isLittle : {true, false}) {
    Case test(bitsText(1, 64, "i1", isLittle ? "little" : "big"), {{1, 0}});
    HostTensor x(DType::I1, {1, 1, 64});
    for (int64_t bit : {0, 1, 4, 15, 63})
      x.setInteger({0, 0, bit}, 1);
    HostTensor y = test.give("x", x).setOptLevel(0).runOnCPU({1})[0];
    EXPECT_EQ(y.getInteger({0, 0, 0}) & 255, isLittle ? 0x13 : 0xc8);
    EXPECT_EQ(y.getInteger({0, 0, 1}) & 255, isLittle ? 0x80 : 0x01);
    EXPECT_EQ(y.getInteger({0, 0, 2}) & 255, 0);
    EXPECT_EQ(y.getInteger({0, 0, 7}) & 255, isLittle ? 0x80 : 0x01);
  }
}

} // namespace
