//===- Columns.cpp - parts of tiles ---------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some columns of a tile as a buffer of their own, padded with zeros: read from
// the memory of keys and values where the tile lies there, else from its
// buffer.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "fi/ABI/KernelABI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Columns `from` to `from + count` of the result, as a vector of `count`. The
/// source's row begins at `indices`, the last of which counts columns.
Value KernelLowering::takeColumns(ColumnsOp op, Value base,
                                  ArrayRef<Value> indices, int64_t from,
                                  int64_t count) {
  int64_t first = op.getFirst(), step = op.getStep();
  Type element = cast<MemRefType>(base.getType()).getElementType();
  auto at = [&](int64_t column) {
    SmallVector<Value> moved(indices);
    moved.back() = add(moved.back(), column);
    return moved;
  };
  auto load = [&](int64_t column, int64_t length) -> Value {
    return vector::LoadOp::create(b, loc, VectorType::get({length}, element),
                                  base, at(column));
  };
  if (step == 1)
    return load(first + from, count);
  // Whole groups of columns, of which one each is kept.
  constexpr int64_t kLargestGroup = 4;
  int64_t begin = from * step, length = count * step;
  if (step <= kLargestGroup && first < step &&
      begin + length <= tileType(op.getSource()).getDimSize(1)) {
    SmallVector<int64_t> lanes;
    for (int64_t i = 0; i < count; ++i)
      lanes.push_back(first + i * step);
    Value group = load(begin, length);
    return vector::ShuffleOp::create(b, loc, group, group, lanes);
  }
  SmallVector<Value> elements;
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(
        memref::LoadOp::create(b, loc, base, at(first + (from + i) * step)));
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({count}, element), elements);
}

LogicalResult KernelLowering::lowerColumns(ColumnsOp op) {
  Value source = op.getSource();
  auto inMemory = kvRows.find(source);
  bool isInMemory = inMemory != kvRows.end();
  if (!isInMemory && failed(materialise({source}, op->getBlock())))
    return failure();
  RankedTensorType type = op.getType();
  int64_t columns = type.getDimSize(1);
  Value result = allocate(type);
  Type stored = cast<MemRefType>(result.getType()).getElementType();
  auto widen = [&](Value part) -> Value {
    auto partType = cast<VectorType>(part.getType());
    if (partType.getElementType() == stored)
      return part;
    return this->widen(part);
  };
  auto copy = [&](Value base, ArrayRef<Value> from, ArrayRef<Value> to) {
    for (int64_t column = 0; column < columns; column += W) {
      int64_t count = std::min(W, columns - column);
      Value part = widen(takeColumns(op, base, from, column, count));
      SmallVector<Value> at(to);
      if (kindOf(op.getResult()) != Kind::Rows) {
        at.push_back(index(column));
        if (count < W)
          part = vector::InsertStridedSliceOp::create(
              b, loc, part, splatVector(stored, 0), ArrayRef<int64_t>{0},
              ArrayRef<int64_t>{1});
      }
      vector::StoreOp::create(b, loc, part, result, at);
    }
  };
  if (type.getDimSize(0) == 1) {
    // One row, in a buffer of one dimension.
    SmallVector<Value> to;
    if (kindOf(op.getResult()) == Kind::Rows)
      to.push_back(index(0));
    if (!isInMemory) {
      copy(buffers.lookup(source), {index(0)}, to);
    } else {
      const KVRows rows = inMemory->second;
      Value offset = memref::LoadOp::create(b, loc, rows.offsets, index(0));
      copy(rows.base, {offset}, to);
    }
  } else if (isInMemory) {
    const KVRows rows = inMemory->second;
    loop(index(0), index(rows.rows), 1, [&](Value row) {
      Value offset = memref::LoadOp::create(b, loc, rows.offsets, row);
      int64_t line = FI_ALIGNMENT * 8 / rows.element.getIntOrFloatBitWidth();
      for (int64_t column = op.getFirst();
           column <
           static_cast<int64_t>(op.getFirst() + columns * op.getStep());
           column += line)
        prefetch(rows, row, index(column));
      copy(rows.base, {offset}, {row});
    });
  } else {
    Value buffer = buffers.lookup(source);
    loop(index(0), rowLimit(fixedRows(op.getResult())), 1,
         [&](Value row) { copy(buffer, {row, index(0)}, {row}); });
  }
  buffers[op.getResult()] = result;
  return success();
}
