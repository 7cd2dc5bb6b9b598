//===- Gather.cpp - elements of captured tensors --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gathers by vectors of places, of elements and of bits.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Whether lanes read elements side by side of a dimension whose stride may be
/// 1, all in the same row.
static bool isRun(GatherOp op, ArrayRef<Value> indices) {
  if (op.getBits() || !isa<VectorType>(indices.back().getType()))
    return false;
  OperandRange tiles = op.getIndices();
  return columnStep(tiles.back()) == 1 &&
         llvm::all_of(tiles.drop_back(),
                      [](Value tile) { return columnStep(tile) == 0; });
}

Value KernelLowering::gatherVector(GatherOp op, ArrayRef<Value> indices) {
  constexpr int64_t word = 32;
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  if (isRun(op, indices))
    return gatherRun(op, indices);
  if (!op.getBits() || !element.isInteger(word) || W > word ||
      columnStep(op.getIndices()[0]) != 1 ||
      !isa<VectorType>(indices[0].getType()))
    return gatherEach(op, indices);
  // Bits side by side are in two words: one shift for all lanes.
  const Argument &argument =
      arguments[cast<BlockArgument>(op.getSource()).getArgNumber()];
  Value place = laneOf(indices[0], 0);
  Value first =
      arith::ShRSIOp::create(b, loc, place, index(llvm::Log2_64(word)));
  Value next = arith::AddIOp::create(b, loc, first, index(1));
  Value inRange = arith::AndIOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, first, index(0)),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, next,
                            argument.sizes[0]));
  return gatherUnless(op, indices, inRange, [&]() -> Value {
    Type i64 = b.getI64Type();
    auto load = [&](Value at) -> Value {
      Value flat = arith::MulIOp::create(b, loc, at, argument.strides[0]);
      return arith::ExtUIOp::create(
          b, loc, i64, memref::LoadOp::create(b, loc, argument.base, flat));
    };
    Value both = arith::OrIOp::create(
        b, loc, load(first),
        arith::ShLIOp::create(
            b, loc, load(next),
            arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(word))));
    Value shift = arith::IndexCastOp::create(
        b, loc, i64, arith::AndIOp::create(b, loc, place, index(word - 1)));
    Type lanes = b.getIntegerType(W);
    Value few = arith::TruncIOp::create(
        b, loc, lanes, arith::ShRUIOp::create(b, loc, both, shift));
    return vector::BitCastOp::create(
        b, loc, vectorOf(b.getI1Type()),
        vector::BroadcastOp::create(b, loc, VectorType::get({1}, lanes), few));
  });
}

Value KernelLowering::laneOf(Value value, int64_t lane) {
  return isa<VectorType>(value.getType())
             ? vector::ExtractOp::create(b, loc, value, ArrayRef<int64_t>{lane})
                   .getResult()
             : value;
}

/// What `make` makes where a condition holds, and a gather elsewhere.
Value KernelLowering::gatherUnless(GatherOp op, ArrayRef<Value> indices,
                                   Value condition,
                                   llvm::function_ref<Value()> make) {
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  auto made = scf::IfOp::create(
      b, loc, TypeRange{vectorOf(op.getBits() ? b.getI1Type() : element)},
      condition, /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(made.thenBlock());
  scf::YieldOp::create(b, loc, make());
  b.setInsertionPointToStart(made.elseBlock());
  scf::YieldOp::create(b, loc, gatherEach(op, indices));
  return made.getResult(0);
}

/// One load, where all lanes are in range and the elements side by side.
Value KernelLowering::gatherRun(GatherOp op, ArrayRef<Value> indices) {
  const Argument &argument =
      arguments[cast<BlockArgument>(op.getSource()).getArgNumber()];
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  auto compare = [&](arith::CmpIPredicate predicate, Value x,
                     Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  // The last lane has its own comparison: sums of narrow integers wrap.
  Value last = laneOf(indices.back(), W - 1);
  Value fits = arith::AndIOp::create(
      b, loc,
      compare(arith::CmpIPredicate::eq, argument.strides.back(), index(1)),
      compare(arith::CmpIPredicate::eq, last,
              add(laneOf(indices.back(), 0), W - 1)));
  fits = arith::AndIOp::create(
      b, loc, fits,
      compare(arith::CmpIPredicate::ult, last, argument.sizes.back()));
  Value flat = index(0);
  for (auto [dim, vector] : llvm::enumerate(indices)) {
    Value first = laneOf(vector, 0);
    fits = arith::AndIOp::create(
        b, loc, fits,
        compare(arith::CmpIPredicate::ult, first, argument.sizes[dim]));
    flat = arith::AddIOp::create(
        b, loc, flat,
        arith::MulIOp::create(b, loc, first, argument.strides[dim]));
  }
  return gatherUnless(op, indices, fits, [&]() -> Value {
    bool bytes = element.isInteger(1);
    Type read = bytes ? b.getI8Type() : element;
    Value run =
        vector::LoadOp::create(b, loc, vectorOf(read), argument.base, flat);
    return bytes ? arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, run,
                                         splatVector(read, 0))
                       .getResult()
                 : run;
  });
}

/// Out of range reads 0: the mask of the gather.
Value KernelLowering::gatherEach(GatherOp op, ArrayRef<Value> indices) {
  const Argument &argument =
      arguments[cast<BlockArgument>(op.getSource()).getArgNumber()];
  Type element = cast<MemRefType>(op.getSource().getType()).getElementType();
  VectorType indexVector = vectorOf(b.getIndexType());
  auto spread = [&](Value value) -> Value {
    if (isa<VectorType>(value.getType()))
      return value;
    return vector::BroadcastOp::create(b, loc, indexVector, value);
  };
  Value flat = splatVector(b.getIndexType(), 0), inRange;
  int64_t width = op.getBits() ? element.getIntOrFloatBitWidth() : 1;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value i = spread(index);
    if (op.getBits())
      i = arith::ShRSIOp::create(
          b, loc, i, splatVector(b.getIndexType(), llvm::Log2_64(width)));
    // One unsigned comparison is both bounds.
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, i,
                                       spread(argument.sizes[dim]));
    inRange = inRange ? arith::AndIOp::create(b, loc, inRange, fits).getResult()
                      : fits;
    Value scaled =
        arith::MulIOp::create(b, loc, i, spread(argument.strides[dim]));
    flat = arith::AddIOp::create(b, loc, flat, scaled);
  }
  bool bytes = element.isInteger(1);
  Type read = bytes ? b.getI8Type() : element;
  Value zero = splatVector(read, 0);
  Value result =
      vector::GatherOp::create(b, loc, vectorOf(read), argument.base,
                               ValueRange{index(0)}, flat, inRange, zero);
  if (bytes)
    result =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, result, zero);
  if (op.getBits()) {
    Value bit = arith::AndIOp::create(b, loc, spread(indices[0]),
                                      splatVector(b.getIndexType(), width - 1));
    bit = arith::IndexCastOp::create(b, loc, vectorOf(read), bit);
    result =
        arith::TruncIOp::create(b, loc, vectorOf(b.getI1Type()),
                                arith::ShRUIOp::create(b, loc, result, bit));
  }
  return result;
}
