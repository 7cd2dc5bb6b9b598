//===- MaskFuzzTest.cpp - bounds of random masks --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random conditions over positions and plan data: whatever the analysis makes
// of them, no empty tile holds a visible key and no full tile a hidden one.
//
//===----------------------------------------------------------------------===//

#include "MaskTesting.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdlib>
#include <gtest/gtest.h>

using namespace fi;
using namespace fi::test;

namespace {

/// Writes the text of a region that yields a random condition.
class MaskWriter {
public:
  explicit MaskWriter(std::mt19937 &random) : random(random) {}

  std::string write(int depth) {
    text.clear();
    next = 0;
    std::string mask = condition(depth);
    return text + "fi.yield " + mask + " : i1\n";
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  std::string define(const std::string &operation) {
    std::string name = "%x" + std::to_string(next++);
    text += name + " = " + operation + "\n";
    return name;
  }

  std::string number(int64_t value) {
    return define("arith.constant " + std::to_string(value) + " : index");
  }

  std::string condition(int depth) {
    static const char *predicates[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                       "sge", "ult", "ule", "ugt", "uge"};
    int64_t kind = depth == 0 ? 0 : pick(0, 8);
    if (kind <= 2) {
      std::string a = integer(2), b = integer(2);
      return define(std::string("arith.cmpi ") + predicates[pick(0, 9)] + ", " +
                    a + ", " + b + " : index");
    }
    std::string a = condition(depth - 1), b = condition(depth - 1);
    switch (kind) {
    case 3:
    case 4:
      return define("arith.andi " + a + ", " + b + " : i1");
    case 5:
      return define("arith.ori " + a + ", " + b + " : i1");
    case 6:
      return define("arith.xori " + a + ", " + b + " : i1");
    case 7:
      return define(std::string("arith.cmpi ") + predicates[pick(0, 9)] + ", " +
                    a + ", " + b + " : i1");
    default:
      return define("arith.select " + condition(0) + ", " + a + ", " + b +
                    " : i1");
    }
  }

  std::string integer(int depth) {
    if (depth == 0 || pick(0, 3) == 0) {
      switch (pick(0, 8)) {
      case 0:
      case 1:
      case 2:
        return "%kp";
      case 3:
      case 4:
        return "%qp";
      case 5:
        return pick(0, 1) ? "%qh" : "%w";
      case 6:
        return pick(0, 1) ? "%req" : "%kh";
      default:
        return number(pick(-20, 40));
      }
    }
    switch (pick(0, 10)) {
    case 0:
      return define("arith.addi " + integer(depth - 1) + ", " +
                    integer(depth - 1) + " : index");
    case 1:
    case 2:
      return define("arith.subi " + integer(depth - 1) + ", " +
                    integer(depth - 1) + " : index");
    case 3:
      return define("arith.muli " + integer(depth - 1) + ", " +
                    number(pick(-3, 3)) + " : index");
    case 4: {
      static const char *divisions[] = {"floordivsi", "ceildivsi", "divsi",
                                        "remsi"};
      int64_t divisor = pick(1, 9);
      if (pick(0, 5) == 0)
        divisor = -divisor;
      return define(std::string("arith.") + divisions[pick(0, 3)] + " " +
                    integer(depth - 1) + ", " + number(divisor) + " : index");
    }
    case 5:
      return define("arith.minsi " + integer(depth - 1) + ", " +
                    integer(depth - 1) + " : index");
    case 6:
      return define("arith.maxsi " + integer(depth - 1) + ", " +
                    integer(depth - 1) + " : index");
    case 7:
      return define("arith.select " + condition(0) + ", " + integer(depth - 1) +
                    ", " + integer(depth - 1) + " : index");
    case 8: {
      std::string narrow =
          define("arith.index_cast " + integer(depth - 1) + " : index to i32");
      return define("arith.index_cast " + narrow + " : i32 to index");
    }
    default:
      return loaded(depth - 1);
    }
  }

  std::string loaded(int depth) {
    static const char *tables[][3] = {
        {"%doc", "tensor<?x?xi32>", "i32"},
        {"%wide", "tensor<?x?xi64>", "i64"},
        {"%fixed", "tensor<?x96xi32>", "i32"},
        {"%loose", "tensor<?x?xi32>", "i32"},
    };
    if (pick(0, 4) == 0) {
      std::string value =
          define("fi.load %pre[" + integer(depth) + "] : tensor<?xi32>");
      return define("arith.index_cast " + value + " : i32 to index");
    }
    auto &table = tables[pick(0, 4) % 4];
    std::string row = pick(0, 4) ? "%req" : integer(depth);
    std::string value = define(std::string("fi.load ") + table[0] + "[" + row +
                               ", " + integer(depth) + "] : " + table[1]);
    return define("arith.index_cast " + value + " : " + table[2] + " to index");
  }

  std::mt19937 &random;
  std::string text;
  int next = 0;
};

TEST(MaskFuzz, BoundsAreSound) {
  const char *wanted = std::getenv("FI_TEST_MASKS");
  int masks = wanted ? std::atoi(wanted) : 400;
  std::mt19937 random(20240229);
  MaskWriter writer(random);
  auto context = makeContext();
  int64_t kinds[3] = {0, 0, 0}, bounded = 0, exact = 0;
  for (int mask = 0; mask < masks; ++mask) {
    // Uniqued attributes stay in a context.
    if (mask % 500 == 499)
      context = makeContext();
    std::string text = writer.write(mask % 3 + 1);
    bool hasOrigin = mask % 2;
    MaskProgram program(*context, "", text, hasOrigin);
    ASSERT_TRUE(program) << text;
    MaskBounds bounds = program.analyze();
    EXPECT_LE(bounds.terms.size(), 16u);
    // What is written can be read.
    auto read = MaskBounds::fromAttr(bounds.toAttr(context.get()));
    ASSERT_TRUE(mlir::succeeded(read));
    EXPECT_EQ(read->toAttr(context.get()), bounds.toAttr(context.get()));
    bool allExact = true, someBound = bounds.terms.empty();
    for (const MaskTerm &term : bounds.terms) {
      allExact &= term.exact;
      someBound |= !term.lo.empty() || !term.hi.empty();
    }
    bounded += someBound;
    exact += allExact;
    for (int round = 0; round < 2; ++round) {
      Batch batch = makeBatch(random, hasOrigin, mask % 3 == 0, 40, 9);
      auto visible = [&](const Batch &b, const Position &p) {
        return program.isVisible(b, p);
      };
      forEachTile(
          batch, round ? 4 : 1, round ? 16 : 4, visible, [&](const Tile &tile) {
            TileKind kind =
                classifyTile(bounds, tile.context, tile.keyBegin, tile.keyEnd);
            ++kinds[int(kind)];
            // A single row without heads in the mask leaves nothing to
            // be conservative about, but that is not promised.
            EXPECT_FALSE(kind == TileKind::Empty && tile.someVisible);
            EXPECT_FALSE(kind == TileKind::Full && tile.someHidden);
          });
      ASSERT_FALSE(HasFailure())
          << text << describe(bounds, *context) << "\nmask " << mask;
    }
  }
  RecordProperty("bounded", int(bounded));
  RecordProperty("exact", int(exact));
  // The generator reaches all that matters.
  EXPECT_GT(bounded, masks / 3);
  EXPECT_GT(exact, masks / 10);
  for (int64_t kind : kinds)
    EXPECT_GT(kind, masks);
}

} // namespace
