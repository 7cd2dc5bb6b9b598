//===- MatrixTiles.cpp - products of bf16 by AMX --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the host multiplies matrix tiles in hardware: blocks of 16 rows by 32
// terms times 16 pairs of terms by 16 columns, accumulated in f32 tiles. The
// second operand is packed as for pairs of bf16; k is written out, since tiles
// live in eight registers that no loop can carry.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Rows and columns of an accumulator, and pairs of terms in one step.
static constexpr int64_t kSide = 16;

bool KernelLowering::multipliesByTiles(DotOp op) {
  return matrixTiles && tileType(op.getA()).getElementType().isBF16() &&
         schedule.getMr() % kSide == 0 && W == kSide;
}

/// Pairs of terms in each step, which are all as long.
static int64_t getTileDepth(int64_t pairs) {
  int64_t depth = kSide;
  while (pairs % depth != 0)
    --depth;
  return depth;
}

/// Whether tiles of operands have the shape of sums in all of the kernel.
bool KernelLowering::hasOneTileShape() {
  WalkResult result = kernel.walk([&](DotOp dot) {
    int64_t pairs = tileType(dot.getA()).getDimSize(1) / 2;
    return multipliesByTiles(dot) && getTileDepth(pairs) != kSide
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

Value KernelLowering::viewAs(Value buffer, ArrayRef<int64_t> shape,
                             Type element) {
  auto view = buffer.getDefiningOp<memref::ViewOp>();
  OpBuilder at(view);
  at.setInsertionPointAfter(view);
  return memref::ViewOp::create(at, loc, MemRefType::get(shape, element), arena,
                                view.getByteShift(), ValueRange());
}

void KernelLowering::dotByTiles(DotOp op, Value accBuffer, Value factor,
                                Value result,
                                const std::optional<Extents> &part) {
  Type f32 = b.getF32Type(), bf16 = b.getBF16Type();
  int64_t columns = padded(op.getType().getDimSize(1));
  int64_t allPairs = tileType(op.getA()).getDimSize(1) / 2;
  int64_t mr = schedule.getMr();
  // There are eight registers, and one of them has one shape in all of a
  // kernel. Blocks of 2 x 2 sums take all of them if operands look like sums;
  // blocks of 2 x 1 take 5, and operands of any two other shapes 3 of their
  // own.
  int64_t high = mr % (2 * kSide) == 0 ? 2 : 1;
  int64_t nr = std::min(
      {schedule.getNr(), columns / kSide, int64_t(hasOneTileShape() ? 2 : 1)});
  int64_t perPanel = nr * kSide;
  int64_t depth = getTileDepth(allPairs);
  Value a = buffers.lookup(op.getA());

  // Accumulators start from what is in memory: scale it there first, where any
  // row of a block has a factor other than 1.
  if (accBuffer && factor)
    loop(index(0), rowBound, mr, [&](Value first) {
      Value factors = buffers.lookup(factor), moved;
      for (int64_t i = 0; i < mr; i += W) {
        Value differs = arith::CmpFOp::create(
            b, loc, arith::CmpFPredicate::UNE,
            loadVector(factors, {add(first, i)}, f32), splatVector(f32, 1.0));
        moved = moved ? arith::OrIOp::create(b, loc, moved, differs).getResult()
                      : differs;
      }
      auto branch = scf::IfOp::create(
          b, loc,
          vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, moved),
          /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      loop(first, add(first, mr), 1, [&](Value row) {
        Value one = memref::LoadOp::create(b, loc, factors, row);
        Value scale = vector::BroadcastOp::create(b, loc, vectorOf(f32), one);
        for (int64_t column = 0; column < columns; column += W) {
          Value old = loadVector(accBuffer, {row, index(column)}, f32);
          storeVector(arith::MulFOp::create(b, loc, old, scale), accBuffer,
                      {row, index(column)});
        }
      });
    });

  // Rows of the packed operand hold pairs: [pairs, 2 * columns], one panel of
  // columns behind the other where it is transposed.
  Value packed =
      op.getTranspose() ? packTransposed(op, perPanel) : packPairs(op);
  auto packedType = cast<MemRefType>(packed.getType());
  int64_t panels = op.getTranspose() ? packedType.getDimSize(0) : 1;
  int64_t rowPairs = packedType.getShape().back();
  Value right = viewAs(packed, {panels * allPairs, 2 * rowPairs}, bf16);

  auto accumulator = amx::TileType::get({kSide, kSide}, f32);
  auto leftType = amx::TileType::get({kSide, 2 * depth}, bf16);
  auto rightType = amx::TileType::get({depth, 2 * kSide}, bf16);
  auto blockOfSums = [&](Value column, int64_t count, Value row,
                         int64_t pairs) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < count; ++j) {
        if (accBuffer)
          sums.push_back(amx::TileLoadOp::create(
              b, loc, accumulator, result,
              ValueRange{add(row, i * kSide), add(column, j * kSide)}));
        else
          sums.push_back(amx::TileZeroOp::create(b, loc, accumulator));
      }
    Value firstRow = index(0), firstColumn = mul(column, 2);
    if (op.getTranspose()) {
      Value panel = arith::DivUIOp::create(b, loc, column, index(perPanel));
      firstRow = mul(panel, allPairs);
      firstColumn = index(0);
    }
    for (int64_t k = 0; k < pairs; k += depth) {
      SmallVector<Value> lefts, rights;
      for (int64_t i = 0; i < high; ++i)
        lefts.push_back(amx::TileLoadOp::create(
            b, loc, leftType, a,
            ValueRange{add(row, i * kSide), index(2 * k)}));
      for (int64_t j = 0; j < count; ++j)
        rights.push_back(amx::TileLoadOp::create(
            b, loc, rightType, right,
            ValueRange{add(firstRow, k), add(firstColumn, 2 * j * kSide)}));
      for (int64_t i = 0; i < high; ++i)
        for (int64_t j = 0; j < count; ++j) {
          Value &sum = sums[i * count + j];
          sum = amx::TileMulFOp::create(b, loc, accumulator, lefts[i],
                                        rights[j], sum);
        }
    }
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < count; ++j)
        amx::TileStoreOp::create(
            b, loc, result,
            ValueRange{add(row, i * kSide), add(column, j * kSide)},
            sums[i * count + j]);
  };
  auto blockOfRows = [&](Value column, int64_t count, Value row,
                         int64_t pairs) {
    for (int64_t i = 0; i < mr; i += high * kSide)
      blockOfSums(column, count, add(row, i), pairs);
  };
  auto block = [&](Value row, Value column, int64_t count) {
    if (op.getTranspose())
      return whereVisible(part, row, column, count * kSide,
                          [&] { blockOfRows(column, count, row, allPairs); });
    // Of the terms only those in front of the last visible one: one copy of
    // the steps for each of at most four limits.
    if (!part)
      return blockOfRows(column, count, row, allPairs);
    int64_t steps = allPairs / depth;
    int64_t grain = (steps + 3) / 4 * depth;
    Value limit = memref::LoadOp::create(b, loc, part->limit, row);
    OpBuilder::InsertionGuard guard(b);
    for (int64_t pairs = grain; pairs < allPairs; pairs += grain) {
      Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                         limit, index(2 * pairs));
      auto branch = scf::IfOp::create(b, loc, fits, /*withElseRegion=*/true);
      b.setInsertionPointToStart(branch.thenBlock());
      blockOfRows(column, count, row, pairs);
      b.setInsertionPointToStart(branch.elseBlock());
    }
    blockOfRows(column, count, row, allPairs);
  };
  // The block of rows stays in the first-level cache for all columns.
  int64_t whole = columns / perPanel * perPanel;
  loop(index(0), rowBound, mr, [&](Value row) {
    if (whole > 0)
      loop(index(0), index(whole), perPanel,
           [&](Value column) { block(row, column, nr); });
    if (columns > whole)
      block(row, index(whole), (columns - whole) / kSide);
  });
}
