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
  /// Whether a given scale of the tensor is a vector of one.
  bool isComputed = false, isInMemory = false, isVector = false;

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
    if (isComputed && !hasBlocks() && per != "token")
      made = std::string(isInMemory ? "memref<" : "tensor<") +
             std::to_string(per == "head" ? heads : 1) + "xf32>";
    std::string number = isVector ? "tensor<1xf32>"
                         : per == "head"
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
  if (!text.isVector &&
      (text.per == "tensor" || (text.hasBlocks() && text.per != "head")))
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

TEST(CodesTest, ByComputedScalesOfAllRows) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *per : {"tensor", "head"})
      for (auto [rows, heads, dim, element, output] :
           {std::tuple(37, 3, 64, "bf16", "f16"),
            std::tuple(1, 1, 1000, "f16", "f32"),
            std::tuple(0, 2, 8, "f32", "bf16"),
            std::tuple(67, 2, 48, "f32", "f32"),
            // More rows than are read at once, and several parts of each.
            std::tuple(1100, 1, 8, "bf16", "bf16"),
            std::tuple(3, 2, 16400, "bf16", "bf16")}) {
        if (dim > 1000 && std::string(codes) != "i8")
          continue;
        CodesText text;
        text.codes = codes;
        text.per = per;
        text.isComputed = true;
        text.heads = heads;
        text.dim = dim;
        text.element = element;
        text.output = output;
        check(text, rows);
      }
}

/// One scale in memory, as a computed one is, but given.
TEST(CodesTest, ByAGivenScaleInMemory) {
  for (const char *codes : {"f8E4M3FN", "i8"}) {
    CodesText text;
    text.codes = codes;
    text.per = "tensor";
    text.isVector = true;
    check(text, 21);
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
      if (text.hasBlocks() || !isComputed)
        continue;
      for (const char *per : {"tensor", "head"}) {
        text.per = per;
        check(text, 19);
      }
    }
}

/// The largest number of all rows decides, wherever it is, whoever finds it.
TEST(CodesTest, ComputedScalesOfAllRowsAreThoseOfTheLargest) {
  for (bool perHead : {false, true})
    for (auto [row, head, d] : {std::tuple(0, 0, 0), std::tuple(1499, 1, 23),
                                std::tuple(700, 0, 17)}) {
      CodesText text;
      text.codes = "i8";
      text.per = perHead ? "head" : "tensor";
      text.isComputed = true;
      text.heads = 2;
      text.dim = 24;
      text.element = text.output = "f32";
      Case test(text.get(), {{1500, 0}});
      test.adjust([row = row, head = head,
                   d = d](const Signature &, std::vector<HostValue> &values) {
        HostTensor x = values[0].getTensor();
        for (int64_t r = 0; r < 1500; ++r)
          for (int64_t h = 0; h < 2; ++h)
            for (int64_t c = 0; c < 24; ++c)
              x.setFloat({r, h, c}, 0.5);
        x.setFloat({row, head, d}, -254);
      });
      for (int workers : {1, 3}) {
        std::vector<HostTensor> got = test.setOptLevel(0).runOnCPU({workers});
        ASSERT_EQ(got.size(), 3u);
        for (int64_t h = 0; h < (perHead ? 2 : 1); ++h)
          EXPECT_FLOAT_EQ(got[1].getFloat({h}),
                          !perHead || h == head ? 2 : 0.5 / 127);
        EXPECT_EQ(got[0].getInteger({row, head, d}), -127);
        EXPECT_EQ(got[0].getInteger({5, 1 - head, 5}), perHead ? 127 : 0);
      }
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

//===----------------------------------------------------------------------===//
// Bits of segments
//===----------------------------------------------------------------------===//

std::string segmentsText(const std::string &element, const std::string &index,
                         const std::string &order, bool isInMemory,
                         bool isPlanned = true) {
  std::string x = (isInMemory ? "memref<?x" : "tensor<?x") + element + ">";
  std::string y = isInMemory ? "memref<?xi8>" : "tensor<?xi8>";
  std::string t = "tensor<?x" + index + ">";
  std::string tables = "%from: " + t + ", %to: " + t;
  std::string text = "fi.program @segments";
  if (isPlanned || !isInMemory)
    text +=
        " plan(" + (isPlanned ? tables : "") +
        (isInMemory ? "" : std::string(isPlanned ? ", " : "") + "%n: index") +
        ")";
  text += " run(%x: " + x + (isPlanned ? "" : ", " + tables) +
          (isInMemory ? ", %y: " + y : "") + ")" +
          (isInMemory ? "" : " -> (" + y + ")") + " {\n  " +
          (isInMemory ? "" : "%y = ") +
          "fi.segment_pack_bits %x from(%from : " + t + ") to(%to : " + t +
          ")" + (isInMemory ? "" : " bytes(%n)") + " order(" + order + ")" +
          (isInMemory ? " outs(%y : " + y + ")" : "") + " : " + x +
          (isInMemory ? "" : " -> " + y) + "\n  fi.return" +
          (isInMemory ? "" : " %y : " + y) + "\n}\n";
  return text;
}

/// Segments of these numbers of elements.
struct Segments {
  std::vector<int64_t> from = {0}, to = {0};
  explicit Segments(std::vector<int64_t> lengths, int64_t first = 0) {
    from[0] = first;
    for (int64_t length : lengths) {
      from.push_back(from.back() + length);
      to.push_back(to.back() + (length + 7) / 8);
    }
  }
  HostTensor table(const std::vector<int64_t> &of, DType type) const {
    HostTensor tensor(type, {static_cast<int64_t>(of.size())});
    for (size_t i = 0; i < of.size(); ++i)
      tensor.setInteger({static_cast<int64_t>(i)}, of[i]);
    return tensor;
  }
  HostTensor bits(DType type, int64_t behind) const {
    HostTensor wide = truths(1, 1, from.back() + behind, type);
    HostTensor flat(type, {from.back() + behind});
    for (int64_t i = 0; i < from.back() + behind; ++i)
      flat.setInteger({i}, wide.getInteger({0, 0, i}));
    return flat;
  }
};

void checkSegments(const Segments &segments, DType type,
                   const std::string &order, bool isInMemory, int64_t behind) {
  bool isWide = behind > 0;
  DType index = isWide ? DType::I64 : DType::I32;
  // What is left of the result is 0.
  int64_t bytes = segments.to.back() + behind;
  check(segmentsText(type == DType::I1 ? "i1" : "i8", isWide ? "i64" : "i32",
                     order, isInMemory, /*isPlanned=*/!isWide),
        {{1, 0}}, [&](Case &test) {
          test.give("x", segments.bits(type, behind));
          test.give("from", segments.table(segments.from, index));
          test.give("to", segments.table(segments.to, index));
          if (isInMemory)
            test.give("y", HostTensor(DType::I8, {bytes}));
          else
            test.giveInteger("n", bytes);
        });
}

TEST(SegmentBitsTest, OfTypesOrdersAndLengths) {
  for (DType type : {DType::I1, DType::I8})
    for (const char *order : {"little", "big"})
      for (bool isInMemory : {false, true})
        for (const Segments &segments :
             {Segments({}), Segments({5}), Segments({8, 0, 0, 64, 1, 7, 1000}),
              Segments({0, 0, 3}, 9), Segments(std::vector<int64_t>(130, 11))})
          for (int64_t behind : {0, 3})
            checkSegments(segments, type, order, isInMemory, behind);
}

TEST(SegmentBitsTest, GivesWhatIsKnown) {
  for (bool isLittle : {true, false}) {
    Case test(segmentsText("i1", "i32", isLittle ? "little" : "big", false),
              {{1, 0}});
    Segments segments({3, 0, 9, 1});
    HostTensor x(DType::I1, {14});
    for (int64_t bit : {1, 3, 4, 11, 12, 13})
      x.setInteger({bit}, 1);
    HostTensor y = test.give("x", x)
                       .give("from", segments.table(segments.from, DType::I32))
                       .give("to", segments.table(segments.to, DType::I32))
                       .giveInteger("n", 5)
                       .setOptLevel(0)
                       .runOnCPU({1})[0];
    const int64_t little[] = {0x02, 0x03, 0x01, 0x01, 0},
                  big[] = {0x40, 0xc0, 0x80, 0x80, 0};
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_EQ(y.getInteger({i}) & 255, (isLittle ? little : big)[i]) << i;
  }
}

/// Tables that contradict one another, or the tensors, read no other memory.
TEST(SegmentBitsTest, OfTablesThatLie) {
  Segments segments({40, 40});
  for (auto [from, to] :
       {std::pair(std::vector<int64_t>{0, 400, 80}, segments.to),
        std::pair(segments.from, std::vector<int64_t>{3, 2, 1}),
        std::pair(std::vector<int64_t>{-50, 30, 1 << 30}, segments.to),
        std::pair(segments.from, std::vector<int64_t>{0})}) {
    Case test(segmentsText("i8", "i32", "little", false), {{1, 0}});
    test.give("x", segments.bits(DType::I8, 0))
        .give("from", segments.table(from, DType::I32))
        .give("to", segments.table(to, DType::I32))
        .giveInteger("n", 64)
        .setOptLevel(0);
    std::vector<HostTensor> got = test.runOnCPU({1});
    EXPECT_EQ(got.size(), 1u);
  }
}

} // namespace
