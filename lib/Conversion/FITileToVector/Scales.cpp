//===- Scales.cpp - scales of keys and values, and blocks of codes
//-------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of pages, tokens and blocks, and rows of codes of 4 bits, which lie
// two to a byte.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Codes of 4 bits, two to a byte, the first in its low half. A sign, two bits
/// of exponent and one of mantissa are an f16's but for a factor of 2^14.
void KernelLowering::copyPackedRowIn(Value base, Value offset, int64_t columns,
                                     Value buffer, Value row) {
  int64_t whole = std::min<int64_t>(W, 16);
  for (int64_t column = 0; column < columns; column += whole) {
    int64_t count = std::min(whole, columns - column);
    VectorType words = VectorType::get({count / 2}, b.getI16Type());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(words, static_cast<int16_t>(value)));
    };
    Value bytes = vector::LoadOp::create(
        b, loc, VectorType::get({count / 2}, b.getI8Type()), base,
        ValueRange{add(offset, column / 2)});
    bytes = arith::ExtUIOp::create(b, loc, words, bytes);
    Value halves[2];
    for (int64_t half : {0, 1}) {
      auto up = [&](Value value, int64_t by) -> Value {
        return arith::ShLIOp::create(b, loc, value, constant(by));
      };
      Value sign = arith::AndIOp::create(b, loc, up(bytes, half ? 8 : 12),
                                         constant(0x8000));
      Value rest = arith::AndIOp::create(b, loc, up(bytes, half ? 5 : 9),
                                         constant(0x0e00));
      halves[half] = arith::OrIOp::create(b, loc, sign, rest);
    }
    Value both = vector::InterleaveOp::create(b, loc, halves[0], halves[1]);
    VectorType type = VectorType::get({count}, b.getF16Type());
    VectorType wide = type.clone(b.getF32Type());
    Value numbers = arith::BitcastOp::create(b, loc, type, both);
    numbers = arith::ExtFOp::create(b, loc, wide, numbers);
    numbers = arith::MulFOp::create(
        b, loc, numbers,
        arith::ConstantOp::create(b, loc,
                                  DenseElementsAttr::get(wide, 16384.0f)));
    vector::StoreOp::create(b, loc, numbers, buffer,
                            ValueRange{row, index(column)});
  }
}

/// The other way: a buffer has a code in the low half of each byte.
void KernelLowering::copyPackedRowOut(Value buffer, Value row, int64_t columns,
                                      Value base, Value offset) {
  int64_t whole = std::min<int64_t>(W, 16);
  for (int64_t column = 0; column < columns; column += whole) {
    int64_t count = std::min(whole, columns - column);
    VectorType type = VectorType::get({count}, b.getI8Type());
    VectorType half = VectorType::get({count / 2}, b.getI8Type());
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(half, static_cast<int8_t>(value)));
    };
    Value codes = vector::LoadOp::create(b, loc, type, buffer,
                                         ValueRange{row, index(column)});
    auto parts = vector::DeinterleaveOp::create(b, loc, codes);
    Value low = arith::AndIOp::create(b, loc, parts.getRes1(), constant(15));
    Value high = arith::ShLIOp::create(b, loc, parts.getRes2(), constant(4));
    vector::StoreOp::create(b, loc, arith::OrIOp::create(b, loc, low, high),
                            base, ValueRange{add(offset, column / 2)});
  }
}

LogicalResult KernelLowering::lowerLoadScales(LoadScalesOp op) {
  const Argument &scales =
      arguments[cast<BlockArgument>(op.getScales()).getArgNumber()];
  SmallVector<Value> strides = getScaleStrides(op, scales.strides, index(0));
  Value buffer = allocate(op.getType());
  Value first = scalar(op.getKey());
  Value last = sub(itemField(Field::KVLen), index(1));
  if (op.isOfBlocks()) {
    int64_t block = op.getBlockScheme().getBlock();
    int64_t columns = op.getType().getDimSize(1);
    loop(index(0), index(op.getType().getDimSize(0)), 1, [&](Value row) {
      Value offset = kvRowOffset(op.getView(), op.getPart(),
                                 minimum(add(first, row), last), strides);
      for (int64_t i = 0; i < columns / block; ++i) {
        Type element = cast<MemRefType>(scales.base.getType()).getElementType();
        Value scale =
            vector::LoadOp::create(b, loc, VectorType::get({1}, element),
                                   scales.base, ValueRange{add(offset, i)});
        scale = vector::ExtractOp::create(b, loc, widen(scale),
                                          ArrayRef<int64_t>{0});
        int64_t count = std::min(W, block);
        Value spread = vector::BroadcastOp::create(
            b, loc, VectorType::get({count}, b.getF32Type()), scale);
        for (int64_t column = 0; column < block; column += count)
          vector::StoreOp::create(b, loc, spread, buffer,
                                  ValueRange{row, index(i * block + column)});
      }
    });
    buffers[op.getResult()] = buffer;
    return success();
  }
  loop(index(0), index(op.getType().getNumElements()), 1, [&](Value i) {
    Value offset = kvRowOffset(op.getView(), op.getPart(),
                               minimum(add(first, i), last), strides);
    memref::StoreOp::create(
        b, loc, memref::LoadOp::create(b, loc, scales.base, offset), buffer, i);
  });
  buffers[op.getResult()] = buffer;
  return success();
}

LogicalResult KernelLowering::lowerStoreScales(StoreScalesOp op) {
  if (failed(materialise({op.getTile()}, op->getBlock())))
    return failure();
  const Argument &scales =
      arguments[cast<BlockArgument>(op.getScales()).getArgNumber()];
  Type element = cast<MemRefType>(scales.base.getType()).getElementType();
  SmallVector<Value> strides = getScaleStrides(op, scales.strides, index(0));
  Value buffer = buffers.lookup(op.getTile());
  Value first = scalar(op.getKey());
  int64_t block = op.getBlockScheme().getBlock();
  int64_t columns = tileType(op.getTile()).getDimSize(1);
  loop(index(0), itemField(Field::RowCount), 1, [&](Value row) {
    Value offset =
        kvRowOffset(op.getView(), op.getPart(), add(first, row), strides);
    for (int64_t column = 0; column < columns; column += block) {
      Value code = memref::LoadOp::create(b, loc, buffer,
                                          ValueRange{row, index(column)});
      memref::StoreOp::create(b, loc,
                              arith::BitcastOp::create(b, loc, element, code),
                              scales.base, add(offset, column / block));
    }
  });
  return success();
}

LogicalResult KernelLowering::lowerBlockMax(BlockMaxOp op) {
  if (failed(materialise({op.getSource()}, op->getBlock())))
    return failure();
  RankedTensorType type = op.getType();
  Value from = buffers.lookup(op.getSource()), to = allocate(type);
  int64_t block = op.getBlock(), columns = type.getDimSize(1);
  int64_t count = std::gcd(W, block);
  VectorType part = VectorType::get({count}, b.getF32Type());
  loop(index(0), rowLimit(fixedRows(op.getResult())), 1, [&](Value row) {
    for (int64_t first = 0; first < columns; first += block) {
      Value most;
      for (int64_t column = first; column < first + block; column += count) {
        Value x = vector::LoadOp::create(b, loc, part, from,
                                         ValueRange{row, index(column)});
        x = math::AbsFOp::create(b, loc, x);
        most = most ? arith::MaxNumFOp::create(b, loc, most, x).getResult() : x;
      }
      most = vector::ReductionOp::create(b, loc, vector::CombiningKind::MAXNUMF,
                                         most);
      most = vector::BroadcastOp::create(b, loc, part, most);
      for (int64_t column = first; column < first + block; column += count)
        vector::StoreOp::create(b, loc, most, to,
                                ValueRange{row, index(column)});
    }
  });
  buffers[op.getResult()] = to;
  return success();
}
