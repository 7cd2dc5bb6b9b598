//===- LayoutsTest.cpp - the arithmetic of layouts ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace mlir;
using namespace fi::tile;

namespace {

class LayoutsTest : public ::testing::Test {
protected:
  LayoutsTest() { context.loadDialect<FITileDialect>(); }

  FragAttr frag(Atom atom, int64_t rows, int64_t columns, int64_t warps) {
    return FragAttr::get(&context, atom, rows, columns, warps);
  }
  RankedTensorType tile(int64_t rows, int64_t columns, Attribute layout) {
    return RankedTensorType::get({rows, columns}, Float32Type::get(&context),
                                 layout);
  }
  RegisterLayout of(RankedTensorType type) {
    FailureOr<RegisterLayout> layout = RegisterLayout::of(type);
    EXPECT_TRUE(succeeded(layout));
    return *layout;
  }

  MLIRContext context;
};

/// lane:register of each element, by rows, as the figures of the PTX ISA have
/// it ("T5:{c2,c3}" is "5:2 5:3"). Matrix fragments for mma.m16n8k16,
/// accumulator C or D.
const char *const kFigureC[16] = {"0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1",
                                  "4:0 4:1 5:0 5:1 6:0 6:1 7:0 7:1",
                                  "8:0 8:1 9:0 9:1 10:0 10:1 11:0 11:1",
                                  "12:0 12:1 13:0 13:1 14:0 14:1 15:0 15:1",
                                  "16:0 16:1 17:0 17:1 18:0 18:1 19:0 19:1",
                                  "20:0 20:1 21:0 21:1 22:0 22:1 23:0 23:1",
                                  "24:0 24:1 25:0 25:1 26:0 26:1 27:0 27:1",
                                  "28:0 28:1 29:0 29:1 30:0 30:1 31:0 31:1",
                                  "0:2 0:3 1:2 1:3 2:2 2:3 3:2 3:3",
                                  "4:2 4:3 5:2 5:3 6:2 6:3 7:2 7:3",
                                  "8:2 8:3 9:2 9:3 10:2 10:3 11:2 11:3",
                                  "12:2 12:3 13:2 13:3 14:2 14:3 15:2 15:3",
                                  "16:2 16:3 17:2 17:3 18:2 18:3 19:2 19:3",
                                  "20:2 20:3 21:2 21:3 22:2 22:3 23:2 23:3",
                                  "24:2 24:3 25:2 25:3 26:2 26:3 27:2 27:3",
                                  "28:2 28:3 29:2 29:3 30:2 30:3 31:2 31:3"};

/// The same for the first multiplicand A of 16 bits.
const char *const kFigureA[16] = {
    "0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1 0:4 0:5 1:4 1:5 2:4 2:5 3:4 3:5",
    "4:0 4:1 5:0 5:1 6:0 6:1 7:0 7:1 4:4 4:5 5:4 5:5 6:4 6:5 7:4 7:5",
    "8:0 8:1 9:0 9:1 10:0 10:1 11:0 11:1 8:4 8:5 9:4 9:5 10:4 10:5 11:4 11:5",
    "12:0 12:1 13:0 13:1 14:0 14:1 15:0 15:1 12:4 12:5 13:4 13:5 14:4 14:5 "
    "15:4 15:5",
    "16:0 16:1 17:0 17:1 18:0 18:1 19:0 19:1 16:4 16:5 17:4 17:5 18:4 18:5 "
    "19:4 19:5",
    "20:0 20:1 21:0 21:1 22:0 22:1 23:0 23:1 20:4 20:5 21:4 21:5 22:4 22:5 "
    "23:4 23:5",
    "24:0 24:1 25:0 25:1 26:0 26:1 27:0 27:1 24:4 24:5 25:4 25:5 26:4 26:5 "
    "27:4 27:5",
    "28:0 28:1 29:0 29:1 30:0 30:1 31:0 31:1 28:4 28:5 29:4 29:5 30:4 30:5 "
    "31:4 31:5",
    "0:2 0:3 1:2 1:3 2:2 2:3 3:2 3:3 0:6 0:7 1:6 1:7 2:6 2:7 3:6 3:7",
    "4:2 4:3 5:2 5:3 6:2 6:3 7:2 7:3 4:6 4:7 5:6 5:7 6:6 6:7 7:6 7:7",
    "8:2 8:3 9:2 9:3 10:2 10:3 11:2 11:3 8:6 8:7 9:6 9:7 10:6 10:7 11:6 11:7",
    "12:2 12:3 13:2 13:3 14:2 14:3 15:2 15:3 12:6 12:7 13:6 13:7 14:6 14:7 "
    "15:6 15:7",
    "16:2 16:3 17:2 17:3 18:2 18:3 19:2 19:3 16:6 16:7 17:6 17:7 18:6 18:7 "
    "19:6 19:7",
    "20:2 20:3 21:2 21:3 22:2 22:3 23:2 23:3 20:6 20:7 21:6 21:7 22:6 22:7 "
    "23:6 23:7",
    "24:2 24:3 25:2 25:3 26:2 26:3 27:2 27:3 24:6 24:7 25:6 25:7 26:6 26:7 "
    "27:6 27:7",
    "28:2 28:3 29:2 29:3 30:2 30:3 31:2 31:3 28:6 28:7 29:6 29:7 30:6 30:7 "
    "31:6 31:7"};

/// Matrix fragments for mma.m16n8k4 with .tf32, multiplicand A.
const char *const kFigureTF32[16] = {
    "0:0 1:0 2:0 3:0",     "4:0 5:0 6:0 7:0",     "8:0 9:0 10:0 11:0",
    "12:0 13:0 14:0 15:0", "16:0 17:0 18:0 19:0", "20:0 21:0 22:0 23:0",
    "24:0 25:0 26:0 27:0", "28:0 29:0 30:0 31:0", "0:1 1:1 2:1 3:1",
    "4:1 5:1 6:1 7:1",     "8:1 9:1 10:1 11:1",   "12:1 13:1 14:1 15:1",
    "16:1 17:1 18:1 19:1", "20:1 21:1 22:1 23:1", "24:1 25:1 26:1 27:1",
    "28:1 29:1 30:1 31:1"};

/// Two accumulators of mma.m16n8k16, of the even and of the odd columns of 16:
/// lane t of a quad has c_0 of both in columns 4t and 4t + 1, c_1 in the two
/// after them.
const char *const kFigureC8[16] = {
    "0:0 0:1 0:2 0:3 1:0 1:1 1:2 1:3 2:0 2:1 2:2 2:3 3:0 3:1 3:2 3:3",
    "4:0 4:1 4:2 4:3 5:0 5:1 5:2 5:3 6:0 6:1 6:2 6:3 7:0 7:1 7:2 7:3",
    "8:0 8:1 8:2 8:3 9:0 9:1 9:2 9:3 10:0 10:1 10:2 10:3 11:0 11:1 11:2 11:3",
    "12:0 12:1 12:2 12:3 13:0 13:1 13:2 13:3 14:0 14:1 14:2 14:3 15:0 15:1 "
    "15:2 15:3",
    "16:0 16:1 16:2 16:3 17:0 17:1 17:2 17:3 18:0 18:1 18:2 18:3 19:0 19:1 "
    "19:2 19:3",
    "20:0 20:1 20:2 20:3 21:0 21:1 21:2 21:3 22:0 22:1 22:2 22:3 23:0 23:1 "
    "23:2 23:3",
    "24:0 24:1 24:2 24:3 25:0 25:1 25:2 25:3 26:0 26:1 26:2 26:3 27:0 27:1 "
    "27:2 27:3",
    "28:0 28:1 28:2 28:3 29:0 29:1 29:2 29:3 30:0 30:1 30:2 30:3 31:0 31:1 "
    "31:2 31:3",
    "0:4 0:5 0:6 0:7 1:4 1:5 1:6 1:7 2:4 2:5 2:6 2:7 3:4 3:5 3:6 3:7",
    "4:4 4:5 4:6 4:7 5:4 5:5 5:6 5:7 6:4 6:5 6:6 6:7 7:4 7:5 7:6 7:7",
    "8:4 8:5 8:6 8:7 9:4 9:5 9:6 9:7 10:4 10:5 10:6 10:7 11:4 11:5 11:6 11:7",
    "12:4 12:5 12:6 12:7 13:4 13:5 13:6 13:7 14:4 14:5 14:6 14:7 15:4 15:5 "
    "15:6 15:7",
    "16:4 16:5 16:6 16:7 17:4 17:5 17:6 17:7 18:4 18:5 18:6 18:7 19:4 19:5 "
    "19:6 19:7",
    "20:4 20:5 20:6 20:7 21:4 21:5 21:6 21:7 22:4 22:5 22:6 22:7 23:4 23:5 "
    "23:6 23:7",
    "24:4 24:5 24:6 24:7 25:4 25:5 25:6 25:7 26:4 26:5 26:6 26:7 27:4 27:5 "
    "27:6 27:7",
    "28:4 28:5 28:6 28:7 29:4 29:5 29:6 29:7 30:4 30:5 30:6 30:7 31:4 31:5 "
    "31:6 31:7"};

/// The table of an atom in the same form.
std::vector<std::string> tabulate(Atom atom) {
  AtomInfo info = getAtomInfo(atom);
  std::map<std::pair<int64_t, int64_t>, std::string> holders;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t reg = 0; reg < info.registers; ++reg) {
      Position at = getAtomPosition(atom, reg, lane);
      holders[{at.row, at.column}] +=
          std::to_string(lane) + ":" + std::to_string(reg);
    }
  std::vector<std::string> rows;
  for (int64_t row = 0; row < info.rows; ++row) {
    rows.emplace_back();
    for (int64_t column = 0; column < info.columns; ++column)
      rows.back() += (column ? " " : "") + holders[{row, column}];
  }
  return rows;
}

TEST_F(LayoutsTest, AccumulatorOfThePTXISA) {
  EXPECT_THAT(tabulate(Atom::MmaC), ::testing::ElementsAreArray(kFigureC));
}

TEST_F(LayoutsTest, FirstMultiplicandOfThePTXISA) {
  EXPECT_THAT(tabulate(Atom::MmaA16), ::testing::ElementsAreArray(kFigureA));
}

TEST_F(LayoutsTest, FirstMultiplicandOfTF32OfThePTXISA) {
  EXPECT_THAT(tabulate(Atom::MmaA32), ::testing::ElementsAreArray(kFigureTF32));
}

TEST_F(LayoutsTest, AccumulatorsOfEvenAndOddColumns) {
  EXPECT_THAT(tabulate(Atom::MmaC8), ::testing::ElementsAreArray(kFigureC8));
}

// Eight columns of a lane side by side, the lanes of a row one behind the
// other.
TEST_F(LayoutsTest, RowsAlongLanes) {
  const std::pair<Atom, int64_t> atoms[] = {
      {Atom::Row8, 8}, {Atom::Row16, 16}, {Atom::Row32, 32}};
  for (auto [atom, lanes] : atoms) {
    std::vector<std::string> expected;
    for (int64_t row = 0; row < 32 / lanes; ++row) {
      expected.emplace_back();
      for (int64_t column = 0; column < 8 * lanes; ++column)
        expected.back() += (column ? " " : "") +
                           std::to_string(row * lanes + column / 8) + ":" +
                           std::to_string(column % 8);
    }
    EXPECT_EQ(tabulate(atom), expected);
  }
  EXPECT_EQ(getRowAtom(8), Atom::Row8);
  EXPECT_EQ(getRowAtom(64), Atom::Row8);
  EXPECT_EQ(getRowAtom(72), Atom::Row16);
  EXPECT_EQ(getRowAtom(136), Atom::Row32);
}

// Warps that share rows: each element has one holder, its row and its column
// are those of the slices, and only the last repeat goes beyond the tile.
TEST_F(LayoutsTest, ColumnsOverWarps) {
  for (Atom atom : {Atom::Row8, Atom::Row16, Atom::Row32})
    for (int64_t rowWarps : {1, 2, 3})
      for (int64_t columnWarps : {1, 2, 5})
        for (int64_t missing : {0, 8, 40}) {
          AtomInfo info = getAtomInfo(atom);
          int64_t rows = info.rows * 2 * rowWarps;
          int64_t step = info.columns * columnWarps;
          int64_t columns = step * 3 - missing;
          auto parent =
              FragAttr::get(&context, atom, 2, 3, rowWarps, columnWarps);
          RegisterLayout layout = of(tile(rows, columns, parent));
          RegisterLayout ofRows =
              of(tile(rows, 1, SliceAttr::get(&context, 1, parent)));
          RegisterLayout ofColumns =
              of(tile(1, columns, SliceAttr::get(&context, 0, parent)));
          EXPECT_EQ(layout.getRegisters(), 2 * 3 * 8);
          EXPECT_EQ(ofRows.getRegisters(), 2);
          EXPECT_EQ(ofColumns.getRegisters(), 3 * 8);
          std::map<std::pair<int64_t, int64_t>, int64_t> counts;
          for (int64_t warp = 0; warp < rowWarps * columnWarps; ++warp)
            for (int64_t lane = 0; lane < kLanes; ++lane)
              for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
                Position at = layout.getPosition(reg, lane, warp);
                EXPECT_EQ(at.row, ofRows.getPosition(reg / 24, lane, warp).row);
                EXPECT_EQ(at.column,
                          ofColumns.getPosition(reg % 24, lane, warp).column);
                int64_t part = layout.getRegisterPart(reg).column / 8 * 8;
                if (at.column < columns)
                  ++counts[{at.row, at.column}];
                else
                  EXPECT_TRUE(layout.goesBeyond(part, columns));
                EXPECT_EQ(layout.goesBeyond(part, columns),
                          missing > 0 && part >= 2 * step);
              }
          EXPECT_EQ(static_cast<int64_t>(counts.size()), rows * columns);
          for (auto &[at, count] : counts)
            ASSERT_EQ(count, 1) << at.first << ", " << at.second;
        }
  // By hand: warp 5 of 2 x 3 is in the second group of rows, the last of a row.
  RegisterLayout layout =
      of(tile(8, 1536, FragAttr::get(&context, Atom::Row32, 4, 2, 2, 3)));
  EXPECT_EQ(layout.getPosition(8 * 3 + 1, 2, 5),
            (Position{4 + 1, 3 * 256 + 2 * 256 + 2 * 8 + 1}));
}

// Partial results lie as a block of that does.
TEST_F(LayoutsTest, PartialsAreBlocksOfFourColumns) {
  RegisterLayout block = of(tile(64, 4, frag(Atom::MmaA32, 2, 1, 2)));
  RegisterLayout partial =
      of(tile(64, 4, PartialAttr::get(&context, frag(Atom::MmaC, 2, 1, 2))));
  ASSERT_EQ(block.getRegisters(), partial.getRegisters());
  for (int64_t warp = 0; warp < 2; ++warp)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t reg = 0; reg < block.getRegisters(); ++reg)
        EXPECT_EQ(block.getPosition(reg, lane, warp),
                  partial.getPosition(reg, lane, warp));
}

// More warps than a layout has hold what its own do.
TEST_F(LayoutsTest, MoreWarpsRepeat) {
  RegisterLayout layout = of(tile(32, 8, frag(Atom::MmaC, 1, 1, 2)));
  for (int64_t lane = 0; lane < kLanes; ++lane)
    for (int64_t reg = 0; reg < 4; ++reg) {
      EXPECT_EQ(layout.getPosition(reg, lane, 2),
                layout.getPosition(reg, lane, 0));
      EXPECT_EQ(layout.getPosition(reg, lane, 5),
                layout.getPosition(reg, lane, 1));
    }
}

/// How often each element of a rows x columns tile is held.
std::map<std::pair<int64_t, int64_t>, int64_t>
countHolders(const RegisterLayout &layout) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (int64_t warp = 0; warp < layout.getFrag().getWarps(); ++warp)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
        Position at = layout.getPosition(reg, lane, warp);
        ++counts[{at.row, at.column}];
      }
  return counts;
}

void expectEach(const RegisterLayout &layout, int64_t rows, int64_t columns,
                int64_t times) {
  auto counts = countHolders(layout);
  EXPECT_EQ(static_cast<int64_t>(counts.size()), rows * columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      ASSERT_EQ((counts[{row, column}]), times) << row << ", " << column;
}

// Also where nothing is a power of two.
TEST_F(LayoutsTest, EveryElementHasOneHolder) {
  for (Atom atom : {Atom::MmaC, Atom::MmaA16, Atom::MmaA32, Atom::MmaC8}) {
    AtomInfo info = getAtomInfo(atom);
    for (int64_t repRows : {1, 2, 3})
      for (int64_t repColumns : {1, 2, 5, 11})
        for (int64_t warps : {1, 2, 3, 4}) {
          int64_t rows = info.rows * repRows * warps;
          int64_t columns = info.columns * repColumns;
          SCOPED_TRACE(stringifyAtom(atom).str() + " " + std::to_string(rows) +
                       " x " + std::to_string(columns));
          FragAttr parent = frag(atom, repRows, repColumns, warps);
          RegisterLayout layout = of(tile(rows, columns, parent));
          EXPECT_EQ(layout.getRegisters() * kLanes * warps, rows * columns);
          expectEach(layout, rows, columns, 1);
          // The lanes of a quad share a row.
          expectEach(of(tile(rows, 1, SliceAttr::get(&context, 1, parent))),
                     rows, 1, kQuad);
          expectEach(of(tile(rows, kQuad, PartialAttr::get(&context, parent))),
                     rows, kQuad, 1);
          // 8 lanes of each warp share a column.
          expectEach(of(tile(1, columns, SliceAttr::get(&context, 0, parent))),
                     1, columns, 8 * warps);
        }
  }
}

// What a lane holds of a slice are the rows and columns of its elements.
TEST_F(LayoutsTest, SlicesFollowTheirParents) {
  for (Atom atom : {Atom::MmaC, Atom::MmaA16, Atom::MmaA32, Atom::MmaC8}) {
    AtomInfo info = getAtomInfo(atom);
    FragAttr parent = frag(atom, 2, 3, 2);
    int64_t rows = info.rows * 4, columns = info.columns * 3;
    RegisterLayout matrix = of(tile(rows, columns, parent));
    RegisterLayout row = of(tile(rows, 1, SliceAttr::get(&context, 1, parent)));
    RegisterLayout column =
        of(tile(1, columns, SliceAttr::get(&context, 0, parent)));
    for (int64_t warp = 0; warp < 2; ++warp)
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        std::set<int64_t> rowsOfMatrix, rowsOfSlice, columnsOfMatrix,
            columnsOfSlice;
        for (int64_t reg = 0; reg < matrix.getRegisters(); ++reg) {
          rowsOfMatrix.insert(matrix.getPosition(reg, lane, warp).row);
          columnsOfMatrix.insert(matrix.getPosition(reg, lane, warp).column);
        }
        for (int64_t reg = 0; reg < row.getRegisters(); ++reg)
          rowsOfSlice.insert(row.getPosition(reg, lane, warp).row);
        for (int64_t reg = 0; reg < column.getRegisters(); ++reg)
          columnsOfSlice.insert(column.getPosition(reg, lane, warp).column);
        EXPECT_EQ(rowsOfMatrix, rowsOfSlice);
        EXPECT_EQ(columnsOfMatrix, columnsOfSlice);
      }
  }
}

// The lowering adds what lane and warp contribute to each register's part.
TEST_F(LayoutsTest, PositionsAreSums) {
  for (Atom atom : {Atom::MmaC, Atom::MmaA16, Atom::MmaA32, Atom::MmaC8,
                    Atom::Row8, Atom::Row16, Atom::Row32}) {
    AtomInfo info = getAtomInfo(atom);
    FragAttr parent = frag(atom, 2, 3, 3);
    RegisterLayout layout = of(tile(info.rows * 6, info.columns * 3, parent));
    for (int64_t warp = 0; warp < 3; ++warp)
      for (int64_t lane = 0; lane < kLanes; ++lane)
        for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
          Position part = layout.getRegisterPart(reg);
          Position thread = layout.getPosition(0, lane, warp);
          EXPECT_EQ(
              layout.getPosition(reg, lane, warp),
              (Position{part.row + thread.row, part.column + thread.column}));
        }
  }
}

// An accumulator of 16 bits is a first multiplicand where it lies.
TEST_F(LayoutsTest, AccumulatorsBecomeMultiplicandsForFree) {
  RegisterLayout c = of(tile(64, 48, frag(Atom::MmaC, 2, 6, 2)));
  RegisterLayout a = of(tile(64, 48, frag(Atom::MmaA16, 2, 3, 2)));
  ASSERT_EQ(c.getRegisters(), a.getRegisters());
  for (int64_t warp = 0; warp < 2; ++warp)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      std::set<std::pair<int64_t, int64_t>> inC, inA;
      for (int64_t reg = 0; reg < c.getRegisters(); ++reg) {
        Position p = c.getPosition(reg, lane, warp);
        Position q = a.getPosition(reg, lane, warp);
        inC.insert({p.row, p.column});
        inA.insert({q.row, q.column});
      }
      EXPECT_EQ(inC, inA);
    }
}

TEST_F(LayoutsTest, TilesWithoutLayoutsHaveNone) {
  EXPECT_TRUE(failed(RegisterLayout::of(tile(16, 16, nullptr))));
  EXPECT_EQ(drawLayout(tile(16, 16, nullptr)), "no layout");
}

TEST_F(LayoutsTest, Pictures) {
  std::string wanted = "lane:register of the first 16 x 8 elements, by rows";
  for (const char *row : kFigureC)
    wanted += std::string("\n  ") + row;
  EXPECT_EQ(drawLayout(tile(32, 16, frag(Atom::MmaC, 2, 2, 1))), wanted);
  // A value per row: the first lane of those that hold it.
  std::string rows = drawLayout(
      tile(16, 1, SliceAttr::get(&context, 1, frag(Atom::MmaC, 1, 4, 1))));
  EXPECT_THAT(rows, ::testing::StartsWith(
                        "lane:register of the first 16 x 1 elements, by rows\n"
                        "  0:0\n  4:0\n  8:0\n"));
  EXPECT_THAT(rows, ::testing::EndsWith("\n  24:1\n  28:1"));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

class SharedTest : public LayoutsTest,
                   public ::testing::WithParamInterface<unsigned> {
protected:
  Type element() { return IntegerType::get(&context, GetParam()); }
};

// All head dims: no two chunks in one place, rows within their pitch, and
// ldmatrix without conflicts.
TEST_P(SharedTest, ChunksOfEveryHeadDim) {
  for (int64_t columns = 8; columns <= 512; columns += 8) {
    SCOPED_TRACE(columns);
    SmemAttr layout = getSmemLayout(&context, columns, element());
    int64_t padded = (columns + 15) / 16 * 16;
    int64_t chunks = padded * GetParam() / 8 / kChunkBytes;
    ASSERT_LE(chunks * kChunkBytes, layout.getPitch());
    std::set<int64_t> offsets;
    for (int64_t row = 0; row < 16; ++row)
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        int64_t offset = getChunkOffset(layout, row, chunk);
        EXPECT_EQ(offset % kChunkBytes, 0);
        EXPECT_EQ(offset / layout.getPitch(), row);
        EXPECT_TRUE(offsets.insert(offset).second);
      }
    EXPECT_EQ(countBankConflicts(layout, 16, chunks), 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Bits, SharedTest, ::testing::Values(8u, 16u, 32u),
                         [](const auto &info) {
                           return "i" + std::to_string(info.param);
                         });

TEST_F(LayoutsTest, SwizzlesPermuteEightChunks) {
  SmemAttr layout = SmemAttr::get(&context, 256, 128);
  // Row 3: chunk i of each 128 bytes lies at i xor 3.
  std::vector<int64_t> places;
  for (int64_t chunk = 0; chunk < 16; ++chunk)
    places.push_back((getChunkOffset(layout, 3, chunk) - 3 * 256) /
                     kChunkBytes);
  EXPECT_THAT(places, ::testing::ElementsAre(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9,
                                             8, 15, 14, 13, 12));
  // It repeats every 8 rows.
  for (int64_t chunk = 0; chunk < 16; ++chunk)
    EXPECT_EQ(getChunkOffset(layout, 11, chunk) - 8 * 256,
              getChunkOffset(layout, 3, chunk));
}

TEST_F(LayoutsTest, ConflictsAreCounted) {
  // 8 rows of one chunk in the same banks; in two; in different ones.
  EXPECT_EQ(countBankConflicts(SmemAttr::get(&context, 256, 0), 16, 16), 8);
  EXPECT_EQ(countBankConflicts(SmemAttr::get(&context, 64, 0), 16, 4), 4);
  EXPECT_EQ(countBankConflicts(SmemAttr::get(&context, 96, 0), 16, 6), 2);
  EXPECT_EQ(countBankConflicts(SmemAttr::get(&context, 80, 0), 16, 4), 1);
}

} // namespace
