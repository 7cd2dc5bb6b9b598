//===- Scales.cpp - scales of keys and values, and blocks of codes
//-------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of pages, tokens and blocks, and rows of codes of 4 bits, which lie
// two to a byte. A register has columns of one block, since these are multiples
// of 8 columns.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

LogicalResult NVVMLowering::lowerLoadScales(LoadScalesOp op) {
  const Argument &scales = argumentOf(op.getScales());
  SmallVector<Value> strides = getScaleStrides(op, scales.strides, index(0));
  RegisterLayout layout = layoutOf(op.getResult());
  bool isColumn = !layout.overColumns();
  if (op.isOfBlocks())
    return lowerBlockScales(op, strides);
  Value first = isColumn ? laneRow(layout) : laneColumn(layout);
  SmallVector<Value> registers;
  for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
    Position part = layout.getRegisterPart(reg);
    Value number = add(first, isColumn ? part.row : part.column);
    Value key = clampedKey(scalar(op.getKey()), toI32(number));
    registers.push_back(loadElements(
        scales, kvRowOffset(op.getView(), op.getPart(), key, {}, strides), 1));
  }
  map.map(op.getResult(), fromElements(registers));
  return success();
}

/// The columns of a register's 8 lie in one block.
LogicalResult NVVMLowering::lowerBlockScales(LoadScalesOp op,
                                             ArrayRef<Value> strides) {
  const Argument &scales = argumentOf(op.getScales());
  int64_t block = op.getBlockScheme().getBlock();
  RegisterLayout layout = layoutOf(op.getResult());
  SmallVector<Value> registers(layout.getRegisters());
  for (RowOfRegisters &row : rowsOf(op.getType())) {
    Value key = clampedKey(scalar(op.getKey()), toI32(row.row));
    Value offset = kvRowOffset(op.getView(), op.getPart(), key, {}, strides);
    llvm::SmallDenseMap<int64_t, Value> known;
    for (auto [reg, column] : row.pairs) {
      Value &scale = known[column / block];
      if (!scale) {
        Value code =
            loadElements(scales, add(offset, column / block), /*count=*/1);
        scale = extract(
            fromCodes(fromElements(code), scales.element, b.getF32Type()), 0);
      }
      for (int64_t i = 0; i < layout.getNeighbours(); ++i)
        registers[reg + i] = scale;
    }
  }
  map.map(op.getResult(), fromElements(registers));
  return success();
}

/// The first lane of a quad has the first column of a block.
LogicalResult NVVMLowering::lowerStoreScales(StoreScalesOp op) {
  const Argument &scales = argumentOf(op.getScales());
  SmallVector<Value> strides = getScaleStrides(op, scales.strides, index(0));
  int64_t block = op.getBlockScheme().getBlock();
  auto type = cast<RankedTensorType>(op.getTile().getType());
  Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                      remainder(lane, kQuad), index(0));
  if (Value writes = isHolder(layoutOf(op.getTile()).getFrag()))
    first = arith::AndIOp::create(b, loc, first, writes);
  Value registers = map.lookup(op.getTile());
  for (RowOfRegisters &row : rowsOf(type)) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         row.row, itemField(Field::RowCount));
    inside = arith::AndIOp::create(b, loc, inside, first);
    auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value offset = kvRowOffset(op.getView(), op.getPart(),
                               add(scalar(op.getKey()), row.row), {}, strides);
    for (auto [reg, column] : row.pairs)
      if (column % block == 0)
        storeElements(extract(registers, reg), scales,
                      add(offset, column / block));
  }
  return success();
}

/// Two neighbours are a byte of the pool.
void NVVMLowering::storePacked(StoreKVOp op) {
  const Argument &pool = poolOf(op.getView(), op.getPart());
  auto type = cast<RankedTensorType>(op.getTile().getType());
  RegisterLayout layout = layoutOf(op.getTile());
  Value registers = map.lookup(op.getTile());
  Value writes = isHolder(layout.getFrag());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(value));
  };
  for (RowOfRegisters &row : rowsOf(type)) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         row.row, itemField(Field::RowCount));
    if (writes)
      inside = arith::AndIOp::create(b, loc, inside, writes);
    auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value offset = kvRowOffset(op.getView(), op.getPart(),
                               add(scalar(op.getKey()), row.row));
    offset = add(offset, remainder(lane, kQuad));
    for (auto [reg, column] : row.pairs) {
      Value low =
          arith::AndIOp::create(b, loc, extract(registers, reg), number(15));
      Value high =
          arith::ShLIOp::create(b, loc, extract(registers, reg + 1), number(4));
      storeElements(arith::OrIOp::create(b, loc, low, high), pool,
                    add(offset, column / 2));
    }
  }
}

/// Blocks are of 8 columns, which the lanes of a quad hold, or of several 8.
LogicalResult NVVMLowering::lowerBlockMax(BlockMaxOp op) {
  RankedTensorType type = op.getType();
  FailureOr<RegisterLayout> layout = RegisterLayout::of(type);
  int64_t block = op.getBlock();
  if (failed(layout) || layout->getFrag().getAtom() != Atom::MmaC ||
      !layout->overColumns() || block % 8 != 0)
    return op.emitOpError("expected blocks of a multiple of 8 columns of a "
                          "fragment of accumulators, but got ")
           << block << " of " << type;
  Value source = map.lookup(op.getSource());
  SmallVector<Value> registers(layout->getRegisters());
  for (RowOfRegisters &row : rowsOf(type)) {
    llvm::MapVector<int64_t, SmallVector<int64_t>> blocks;
    for (auto [reg, column] : row.pairs)
      for (int64_t i = 0; i < layout->getNeighbours(); ++i)
        blocks[column / block].push_back(reg + i);
    for (auto &[number, members] : blocks) {
      Value most;
      for (int64_t reg : members) {
        Value x = math::AbsFOp::create(b, loc, extract(source, reg));
        most = most ? combine(ReduceKind::Max, most, x) : x;
      }
      for (int64_t bit = 1; bit < kQuad; bit *= 2)
        most = combineLanes(ReduceKind::Max, most, bit);
      for (int64_t reg : members)
        registers[reg] = most;
    }
  }
  map.map(op.getResult(), fromElements(registers));
  return success();
}
