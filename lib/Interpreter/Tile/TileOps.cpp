//===- TileOps.cpp - tile ops in the level 2 interpreter ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of fi_tile that neither touch memory nor know a normaliser.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static int64_t rowsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(0);
}
static int64_t columnsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getDimSize(1);
}

static int64_t getField(const fi_item &item, Field field) {
  switch (field) {
  case Field::Request:
    return item.request;
  case Field::KVHead:
    return item.kv_head;
  case Field::RowBegin:
    return item.row_begin;
  case Field::RowCount:
    return item.row_count;
  case Field::QBegin:
    return item.q_begin;
  case Field::QLen:
    return item.q_len;
  case Field::KVLen:
    return item.kv_len;
  case Field::KVOrigin:
    return item.kv_origin;
  case Field::Slot:
    return item.slot;
  case Field::SlotCount:
    return item.slot_count;
  case Field::FirstSlot:
    return item.first_slot;
  }
  return 0;
}

static RuntimeValue broadcast(BroadcastOp op, Strand &strand) {
  int64_t rows = rowsOf(op.getResult()), columns = columnsOf(op.getResult());
  int64_t fromRows = rowsOf(op.getSource());
  int64_t fromColumns = columnsOf(op.getSource());
  auto repeat = [&](const auto &source) {
    std::decay_t<decltype(source)> result;
    if (source.empty())
      return result;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        result.push_back(source[(fromRows == 1 ? 0 : r) * fromColumns +
                                (fromColumns == 1 ? 0 : c)]);
    return result;
  };
  const Elements &source = strand.elements(op.getSource());
  return std::make_shared<const Elements>(
      Elements{repeat(source.floats), repeat(source.integers)});
}

Elements fi::tile::selectColumns(const Elements &source, int64_t rows,
                                 int64_t width, int64_t columns, int64_t first,
                                 int64_t step) {
  auto take = [&](const auto &from) {
    std::decay_t<decltype(from)> result;
    if (from.empty())
      return result;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        result.push_back(from[r * width + first + c * step]);
    return result;
  };
  return {take(source.floats), take(source.integers)};
}

static RuntimeValue takeColumns(ColumnsOp op, Strand &strand) {
  return std::make_shared<const Elements>(selectColumns(
      strand.elements(op.getSource()), rowsOf(op.getResult()),
      columnsOf(op.getSource()), columnsOf(op.getResult()),
      static_cast<int64_t>(op.getFirst()), static_cast<int64_t>(op.getStep())));
}

/// Of the operands as they are when `at` is executed.
template <typename Product>
static llvm::Expected<RuntimeValue> dot(Product op, Operation *at,
                                        Strand &strand) {
  ShapedTile shape(op.getA().getType()), other(op.getB().getType());
  int64_t m = shape.rows, k = shape.columns;
  bool transpose = op.getTranspose();
  int64_t n = transpose ? other.rows : other.columns;
  llvm::Expected<ElementsRef> first = strand.operand(at, op.getA());
  if (!first)
    return first.takeError();
  llvm::Expected<ElementsRef> second = strand.operand(at, op.getB());
  if (!second)
    return second.takeError();
  const std::vector<double> &a = (*first)->floats;
  std::vector<double> b = (*second)->floats;
  if (b.empty()) // of i8
    b.assign((*second)->integers.begin(), (*second)->integers.end());
  std::vector<double> result(m * n);
  if (op.getAcc())
    result = strand.floats(op.getAcc());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a[i * k + l] * (transpose ? b[j * k + l] : b[l * n + j]);
      result[i * n + j] += sum;
    }
  return makeFloats(std::move(result));
}

static RuntimeValue blockMax(BlockMaxOp op, Strand &strand) {
  const std::vector<double> &source = strand.floats(op.getSource());
  std::vector<double> result(source);
  int64_t block = op.getBlock();
  // A row is a whole number of blocks.
  for (int64_t first = 0, e = source.size(); first < e; first += block) {
    double most = 0;
    for (int64_t i = first; i < first + block; ++i)
      most = std::fmax(most, std::fabs(source[i]));
    std::fill_n(result.begin() + first, block, most);
  }
  return makeFloats(std::move(result));
}

static RuntimeValue reduce(ReduceOp op, Strand &strand) {
  int64_t rows = rowsOf(op.getSource()), columns = columnsOf(op.getSource());
  int64_t kept = columnsOf(op.getResult());
  bool max = op.getKind() == ReduceKind::Max;
  auto fold = [&](const auto &source, auto combine) {
    std::decay_t<decltype(source)> result;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < kept; ++j) {
        auto value = source[r * columns + j];
        for (int64_t c = j + kept; c < columns; c += kept)
          value = combine(value, source[r * columns + c]);
        result.push_back(value);
      }
    return result;
  };
  if (hasFloats(op.getType()))
    return makeFloats(
        fold(strand.floats(op.getSource()), [&](double x, double y) {
          return max ? std::fmax(x, y) : x + y;
        }));
  unsigned width = getWidth(op.getType());
  return makeIntegers(fold(
      strand.integers(op.getSource()), [&](int64_t x, int64_t y) -> int64_t {
        if (max)
          return asSigned(x, width) < asSigned(y, width) ? y : x;
        return wrap(static_cast<uint64_t>(x) + static_cast<uint64_t>(y), width);
      }));
}

llvm::Expected<bool> fi::tile::evaluateTile(Operation *op, Strand &strand) {
  if (auto item = dyn_cast<ItemOp>(op)) {
    strand.set(item, makeIntegers({getField(strand.item(item.getItem()),
                                            item.getField())}));
    return true;
  }
  if (auto from = dyn_cast<FromRowOp>(op)) {
    LaterRows rows = {strand.item(from.getItem()),
                      strand.integer(from.getRow())};
    if (rows.firstRow < 0 || rows.firstRow >= rows.item.row_count)
      return makeError(op, "expected a row of the item's " +
                               llvm::Twine(rows.item.row_count) + ", but got " +
                               llvm::Twine(rows.firstRow));
    rows.item.row_begin += static_cast<int32_t>(rows.firstRow);
    rows.item.row_count -= static_cast<int32_t>(rows.firstRow);
    if (const LaterRows *earlier = strand.laterRows(from.getItem()))
      rows.firstRow += earlier->firstRow;
    strand.set(from, std::make_shared<const LaterRows>(rows));
    return true;
  }
  if (auto iota = dyn_cast<IotaOp>(op)) {
    std::vector<int64_t> result(countElements(iota.getType()));
    for (size_t i = 0; i < result.size(); ++i)
      result[i] =
          wrap(static_cast<uint64_t>(strand.integer(iota.getBase())) + i, 64);
    strand.set(iota, makeIntegers(std::move(result)));
    return true;
  }
  if (auto repeat = dyn_cast<BroadcastOp>(op)) {
    strand.set(repeat, broadcast(repeat, strand));
    return true;
  }
  if (auto columns = dyn_cast<ColumnsOp>(op)) {
    strand.set(columns, takeColumns(columns, strand));
    return true;
  }
  if (auto product = dyn_cast<DotOp>(op)) {
    llvm::Expected<RuntimeValue> result = dot(product, product, strand);
    if (!result)
      return result.takeError();
    strand.set(product, std::move(*result));
    return true;
  }
  // A product that has begun reads its buffers until it is waited for: it is
  // computed of what they hold then.
  if (isa<DotStartOp>(op))
    return true;
  if (auto wait = dyn_cast<WaitOp>(op)) {
    auto product = wait.getFuture().getDefiningOp<DotStartOp>();
    llvm::Expected<RuntimeValue> result = dot(product, wait, strand);
    if (!result)
      return result.takeError();
    strand.set(wait.getResult(), std::move(*result));
    for (auto [kept, passed] : llvm::zip(wait.getKept(), wait.getPassed()))
      strand.set(passed, strand.get(kept));
    return true;
  }
  if (auto mask = dyn_cast<MaskOp>(op)) {
    std::vector<double> result = strand.floats(mask.getScores());
    const std::vector<int64_t> &visible = strand.integers(mask.getVisible());
    for (size_t i = 0; i < result.size(); ++i)
      if (!visible[i])
        result[i] = -std::numeric_limits<double>::infinity();
    strand.set(mask, makeFloats(std::move(result)));
    return true;
  }
  if (auto reduction = dyn_cast<ReduceOp>(op)) {
    strand.set(reduction, reduce(reduction, strand));
    return true;
  }
  if (auto most = dyn_cast<BlockMaxOp>(op)) {
    strand.set(most, blockMax(most, strand));
    return true;
  }
  return false;
}
