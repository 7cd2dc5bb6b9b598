//===- DotF32.cpp - products in f32 ---------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync.m16n8k8 of tf32, for operands of f32 or of types that differ. tf32
// has the exponents of f32 and 11 binary digits: all that f16 and bf16 have, so
// that their products are exact. A number of f32 is split into two of tf32, of
// which the products but that of both low parts are added: what is left out is
// below 2^-21 of the product.
//
// Targets without tf32 multiply and add by fma: lanes tell one another the
// elements of fragments, which lie as for the instruction.
//
// A product sums over k in any order, as long as both operands are in the same:
// lane t of a quad takes columns 2t and 2t + 1 of a block where the instruction
// counts them as t and t + 4. Accumulators are first operands where they lie
// then, and what ldmatrix reads of 16-bit types is widened in place.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Columns of a block, and rows of fragments of accumulators.
static constexpr int64_t kBlock = 8, kMmaRows = 16;

/// A word of two elements as numbers of f32.
SmallVector<Value> NVVMLowering::widen(Value word, Type element) {
  Value pair =
      LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), word);
  Value wide =
      arith::ExtFOp::create(b, loc, VectorType::get({2}, b.getF32Type()), pair);
  return {extract(wide, 0), extract(wide, 1)};
}

NVVMLowering::Split NVVMLowering::split(ArrayRef<Value> values, bool isExact) {
  Split result;
  Type word = b.getI32Type();
  auto bits = [&](Value value) -> Value {
    return arith::BitcastOp::create(b, loc, word, value);
  };
  auto round = [&](Value value) -> Value {
    return NVVM::ConvertFloatToTF32Op::create(b, loc, word, value,
                                              NVVM::FPRoundingMode::RNA);
  };
  // The largest number of tf32: rounding what is above it would overflow.
  APFloat most(APFloat::IEEEsingle(), APInt(32, 0x7f7fe000));
  auto limit = [&](const APFloat &value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getFloatAttr(b.getF32Type(), value));
  };
  for (Value value : values) {
    if (isExact) {
      result.high.push_back(bits(value));
      continue;
    }
    Value inside = arith::MinNumFOp::create(
        b, loc, arith::MaxNumFOp::create(b, loc, value, limit(-most)),
        limit(most));
    Value high = round(inside);
    Value rest = arith::SubFOp::create(
        b, loc, value, arith::BitcastOp::create(b, loc, b.getF32Type(), high));
    result.high.push_back(high);
    result.low.push_back(round(rest));
  }
  return result;
}

Value NVVMLowering::fromLane(Value value, Value from) {
  return NVVM::ShflOp::create(b, loc, value.getType(), i32(-1), value, from,
                              i32(kLanes - 1), NVVM::ShflKind::idx, UnitAttr());
}

/// Lane j of each quad has the columns of a block that the instruction would
/// count as j and j + 4 (or, of half a block, as j).
NVVMLowering::Spread NVVMLowering::spreadFirst(ArrayRef<Value> values) {
  Spread spread;
  for (int64_t j = 0; j < kQuad; ++j) {
    Value from;
    {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      from =
          add32(arith::AndIOp::create(b, loc, lane32, i32(kLanes - kQuad)), j);
    }
    for (size_t column = 0; 2 * column < values.size(); ++column)
      spread.push_back({fromLane(values[2 * column], from),
                        fromLane(values[2 * column + 1], from)});
  }
  return spread;
}

/// Columns 2t and 2t + 1 of the product, which are of quads 2t and 2t + 1.
NVVMLowering::Spread NVVMLowering::spreadSecond(ArrayRef<Value> values) {
  Spread spread;
  for (int64_t j = 0; j < kQuad; ++j) {
    Value even, odd;
    {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      Value inQuad = arith::RemUIOp::create(b, loc, lane32, i32(kQuad));
      Value first = arith::MulIOp::create(b, loc, inQuad, i32(2 * kQuad));
      even = add32(first, j);
      odd = add32(first, kQuad + j);
    }
    for (Value value : values)
      spread.push_back({fromLane(value, even), fromLane(value, odd)});
  }
  return spread;
}

/// `row` is the lane's, and decides the swizzle by its low three bits;
/// `columnBytes` is less than a block.
NVVMLowering::BlockRows NVVMLowering::locateBlocks(SmemAttr layout,
                                                   Value buffer, Value row,
                                                   Value columnBytes) {
  Value offset;
  {
    // What depends on the thread alone.
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    Value column = columnBytes;
    if (layout.getSwizzle()) {
      Value turn = arith::MulIOp::create(
          b, loc, arith::RemUIOp::create(b, loc, row, i32(8)),
          i32(kChunkBytes));
      column = arith::XOrIOp::create(b, loc, column, turn);
    }
    offset = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, row, i32(layout.getPitch())),
        column);
  }
  Value first = arith::AddIOp::create(b, loc, buffer, offset);
  BlockRows rows;
  rows.swizzled = layout.getSwizzle() != 0;
  rows.pointers[0] = sharedPointerAt(first);
  for (int64_t block = 1; rows.swizzled && block < 4; ++block)
    rows.pointers[block] = sharedPointerAt(
        arith::XOrIOp::create(b, loc, first, i32(block * kBlock * 4)));
  return rows;
}

/// `count` neighbouring elements of a block of columns, `offset` bytes further
/// on.
SmallVector<Value> NVVMLowering::loadBlock(BlockRows &rows, int64_t block,
                                           int64_t offset, int64_t count) {
  Value pointer = rows.pointers[rows.swizzled ? block % 4 : 0];
  offset += (rows.swizzled ? block / 4 * 4 : block) * kBlock * 4;
  if (offset)
    pointer = LLVM::GEPOp::create(
        b, loc, sharedPointer, b.getI8Type(), pointer,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  Type type = b.getF32Type();
  if (count > 1)
    type = VectorType::get({count}, type);
  Value loaded = LLVM::LoadOp::create(b, loc, type, pointer,
                                      /*alignment=*/4 * count);
  if (count == 1)
    return {loaded};
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(extract(loaded, i));
  return values;
}

LogicalResult NVVMLowering::lowerDotF32(DotOp op) {
  auto aBuffer = dyn_cast<BufType>(op.getA().getType());
  auto bBuffer = cast<BufType>(op.getB().getType());
  ShapedTile a(op.getA().getType());
  Type aElement = a.element, bElement = bBuffer.getElement();
  FragAttr frag = layoutOf(op.getResult()).getFrag();
  int64_t repRows = frag.getRepRows(), repColumns = frag.getRepColumns();
  int64_t depth = a.columns, rest = depth % kBlock;
  bool transpose = op.getTranspose();
  // Half a block is left where rows of f32 in buffers are pairs' halves.
  bool mayHaveRest = aBuffer && transpose && aElement.isF32() &&
                     bElement.isF32() && rest == kBlock / 2;
  if (rest && !mayHaveRest)
    return op.emitOpError("expected a product over a multiple of ")
           << kBlock << ", or of " << kBlock / 2
           << " for operands of f32 that both lie in buffers, but got "
           << op.getA().getType() << " and " << op.getB().getType();
  if (!aBuffer) {
    RegisterLayout layout = layoutOf(op.getA());
    if (layout.getFrag().getAtom() == Atom::MmaA32 ||
        layout.getFrag().getWarps() != frag.getWarps() ||
        layout.getRegisters() != repRows * depth / 2)
      return op.emitOpError(
                 "expected a first operand whose lanes hold pairs of "
                 "columns of their warp's rows, but got ")
             << op.getA().getType();
  }

  Value quad, inQuad;
  {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    quad = arith::DivUIOp::create(b, loc, lane32, i32(kQuad));
    inQuad = arith::RemUIOp::create(b, loc, lane32, i32(kQuad));
  }
  auto times = [&](Value value, int64_t by) -> Value {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    return arith::MulIOp::create(b, loc, value, i32(by));
  };

  // First operands: rows `quad` and `quad + 8` of each block of 16.
  MatrixRows aMatrices;
  BlockRows aBlocks, aRest;
  Value aRegisters;
  if (!aBuffer) {
    aRegisters = map.lookup(op.getA());
  } else if (aElement.isF32()) {
    Value first = arith::AddIOp::create(
        b, loc, map.lookup(op.getA()),
        times(warp32, repRows * kMmaRows * aBuffer.getLayout().getPitch()));
    aBlocks = locateBlocks(aBuffer.getLayout(), first, quad, times(inQuad, 8));
    if (rest)
      aRest = locateBlocks(aBuffer.getLayout(), first, quad, times(inQuad, 4));
  } else {
    aMatrices = locateFirst(op, aBuffer);
  }
  // In the order of the instruction: two rows of a column, then the next.
  auto firsts = [&](int64_t row, int64_t step,
                    SmallVector<SmallVector<Value>> &byBlock) {
    int64_t blocks = std::min<int64_t>(2, (depth - 16 * step + 7) / kBlock);
    byBlock.assign(blocks, {});
    SmallVector<Value> words;
    int64_t pitch = aBuffer ? aBuffer.getLayout().getPitch() : 0;
    if (aBuffer && !aElement.isF32())
      words = loadMatrices(aMatrices, 2 * step, row * kMmaRows * pitch,
                           /*transpose=*/false);
    for (int64_t i = 0; i < blocks; ++i) {
      int64_t block = 2 * step + i;
      bool isRest = (block + 1) * kBlock > depth;
      SmallVector<Value> upper, lower;
      if (!words.empty()) {
        upper = widen(words[2 * i], aElement);
        lower = widen(words[2 * i + 1], aElement);
      } else if (aBuffer) {
        int64_t offset = row * kMmaRows * pitch;
        BlockRows &from = isRest ? aRest : aBlocks;
        upper = loadBlock(from, block, offset, isRest ? 1 : 2);
        lower = loadBlock(from, block, offset + 8 * pitch, isRest ? 1 : 2);
      } else {
        int64_t first = (row * (depth / kBlock) + block) * 4;
        for (int64_t r = 0; r < 4; ++r) {
          Value value = extract(aRegisters, first + r);
          if (!aElement.isF32())
            value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
          (r < 2 ? upper : lower).push_back(value);
        }
      }
      for (auto [x, y] : llvm::zip(upper, lower)) {
        byBlock[i].push_back(x);
        byBlock[i].push_back(y);
      }
    }
  };

  // Second operands: column `quad` of each block of 8.
  SmemAttr bLayout = bBuffer.getLayout();
  Value bBase = map.lookup(op.getB());
  MatrixRows bMatrices;
  BlockRows bBlocks, bRest, bOdd;
  if (!bElement.isF32()) {
    bMatrices = locateSecond(op, bBuffer);
  } else if (transpose) {
    bBlocks = locateBlocks(bLayout, bBase, quad, times(inQuad, 8));
    if (rest)
      bRest = locateBlocks(bLayout, bBase, quad, times(inQuad, 4));
  } else {
    // Rows 2t and 2t + 1.
    Value even = times(inQuad, 2), odd;
    {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      odd = add32(even, 1);
    }
    bBlocks = locateBlocks(bLayout, bBase, even, times(quad, 4));
    bOdd = locateBlocks(bLayout, bBase, odd, times(quad, 4));
  }
  int64_t bPitch = bLayout.getPitch();
  auto second = [&](int64_t column, int64_t block,
                    ArrayRef<Value> words) -> SmallVector<Value> {
    if (!words.empty())
      return widen(words[2 * (column % 2) + block % 2], bElement);
    if (transpose) {
      bool isRest = (block + 1) * kBlock > depth;
      return loadBlock(isRest ? bRest : bBlocks, block,
                       column * kBlock * bPitch, isRest ? 1 : 2);
    }
    int64_t offset = block * kBlock * bPitch;
    return {loadBlock(bBlocks, column, offset, 1).front(),
            loadBlock(bOdd, column, offset, 1).front()};
  };

  auto resultType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  auto multiply = [&](ArrayRef<Value> x, ArrayRef<Value> y,
                      std::array<Value, 4> &sum) {
    int64_t k = 2 * x.size();
    Value result = NVVM::MmaOp::create(
        b, loc, resultType, x, y, ValueRange(sum),
        ArrayRef<int64_t>{kMmaRows, kBlock, k}, std::nullopt, std::nullopt,
        std::array<NVVM::MMATypes, 2>{NVVM::MMATypes::tf32,
                                      NVVM::MMATypes::tf32},
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    for (int64_t i = 0; i < 4; ++i)
      sum[i] = LLVM::ExtractValueOp::create(b, loc, result, i);
  };

  Sums sums = takeSums(op);
  bool hasTF32 = has(sm::MmaTF32);
  auto multiplyByParts = [&](const Split &x, const Split &y,
                             std::array<Value, 4> &sum) {
    // Small ones first.
    if (!x.low.empty())
      multiply(x.low, y.high, sum);
    if (!y.low.empty())
      multiply(x.high, y.low, sum);
    multiply(x.high, y.high, sum);
  };
  auto multiplySpread = [&](const Spread &x, const Spread &y,
                            std::array<Value, 4> &sum) {
    for (auto [xs, ys] : llvm::zip_equal(x, y))
      for (int64_t i = 0; i < 4; ++i)
        sum[i] = LLVM::FMAOp::create(b, loc, xs[i / 2], ys[i % 2], sum[i]);
  };
  for (int64_t step = 0; step * 2 * kBlock < depth; ++step) {
    SmallVector<SmallVector<Split>> splits(repRows);
    SmallVector<SmallVector<Spread>> spreads(repRows);
    for (int64_t row = 0; row < repRows; ++row) {
      SmallVector<SmallVector<Value>> byBlock;
      firsts(row, step, byBlock);
      for (SmallVector<Value> &values : byBlock)
        if (hasTF32)
          splits[row].push_back(split(values, !aElement.isF32()));
        else
          spreads[row].push_back(spreadFirst(values));
    }
    SmallVector<Value> words;
    for (int64_t column = 0; column < repColumns; ++column) {
      if (!bElement.isF32() && column % 2 == 0)
        words = transpose ? loadMatrices(bMatrices, 2 * step,
                                         column * kBlock * bPitch, false)
                          : loadMatrices(bMatrices, column,
                                         step * 2 * kBlock * bPitch, true);
      size_t blocks = std::max(splits.front().size(), spreads.front().size());
      for (size_t i = 0; i < blocks; ++i) {
        SmallVector<Value> values = second(column, 2 * step + i, words);
        auto sumOf = [&](int64_t row) -> std::array<Value, 4> & {
          return sums[row * repColumns + column];
        };
        if (hasTF32) {
          Split y = split(values, !bElement.isF32());
          for (int64_t row = 0; row < repRows; ++row)
            multiplyByParts(splits[row][i], y, sumOf(row));
        } else {
          Spread y = spreadSecond(values);
          for (int64_t row = 0; row < repRows; ++row)
            multiplySpread(spreads[row][i], y, sumOf(row));
        }
      }
    }
  }
  giveSums(op, sums);
  return success();
}
