//===- Dot.cpp - products by a register microkernel -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One microkernel for every product: `mr` rows by `nr` vectors of accumulators
// in registers, over k. The first operand is a buffer, read as scalars that are
// spread over a vector. The second is read as vectors of columns: packed and
// transposed (keys), as it lies in memory (values in f32), or packed and
// widened or paired (narrow values). With bf16, one step is a pair of k.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "fi/ABI/KernelABI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// `width` values (or pairs) of a row from `column` on, padded with zeros to a
/// vector.
Value KernelLowering::loadOperandRow(DotOp op, Value row, Value column,
                                     int64_t width, bool pairs) {
  Value tile = op.getB();
  auto rows = kvRows.find(tile);
  if (rows == kvRows.end()) {
    Value buffer = buffers.lookup(tile);
    if (pairs)
      buffer = viewAsPairs(buffer);
    Type word = pairs ? Type(b.getI32Type()) : Type(b.getF32Type());
    Value part = vector::LoadOp::create(b, loc, VectorType::get({width}, word),
                                        buffer, ValueRange{row, column});
    if (width == W)
      return part;
    // What lies beyond in the buffer may be anything.
    return vector::InsertStridedSliceOp::create(
        b, loc, part, splatVector(word, 0), ArrayRef<int64_t>{0},
        ArrayRef<int64_t>{1});
  }
  const KVRows source = rows->second;
  Value offset = memref::LoadOp::create(b, loc, source.offsets, row);
  if (!pairs)
    return loadPart(source.base, add(offset, column), width, source.element);
  offset = add(offset, mul(column, 2));
  Value narrow = vector::LoadOp::create(
      b, loc, VectorType::get({2 * width}, source.element), source.base,
      ValueRange{offset});
  Value words = vector::BitCastOp::create(
      b, loc, VectorType::get({width}, b.getI32Type()), narrow);
  if (width == W)
    return words;
  Value zero = splatVector(b.getI32Type(), 0);
  return vector::InsertStridedSliceOp::create(
      b, loc, words, zero, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
}

/// Prefetches for a block of `count` rows by `width` values (or pairs) of a
/// second operand: as many lines as the block has, but those of all blocks of
/// these rows one row after the other, as memory delivers them best.
void KernelLowering::prefetchRows(DotOp op, Value first, int64_t count,
                                  Value step, int64_t width, int64_t steps,
                                  bool pairs) {
  auto rows = kvRows.find(op.getB());
  if (rows == kvRows.end() || !rows->second.nextOffsets)
    return;
  int64_t scale = pairs ? 2 : 1, perRow = steps / W;
  if (width < W) {
    for (int64_t i = 0; i < count; ++i)
      prefetch(rows->second, add(first, i), mul(step, scale));
    return;
  }
  Value number = mul(arith::DivUIOp::create(b, loc, step, index(W)), count);
  for (int64_t i = 0; i < count; ++i)
    prefetchNumbered(rows->second, first, add(number, i), perRow, scale * W);
}

/// The line with a number among the lines of rows from `first` on, `perRow` of
/// `elements` each.
void KernelLowering::prefetchNumbered(const KVRows &rows, Value first,
                                      Value number, int64_t perRow,
                                      int64_t elements) {
  Value row = arith::DivUIOp::create(b, loc, number, index(perRow));
  Value within = arith::RemUIOp::create(b, loc, number, index(perRow));
  prefetch(rows, add(first, row), mul(within, elements));
}

/// Lane j of row i becomes lane i of row j, by halves.
SmallVector<Value> KernelLowering::transpose(SmallVector<Value> rows) {
  for (int64_t half = W / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < W; ++lane) {
      bool upper = lane & half;
      low.push_back(upper ? W + lane - half : lane);
      high.push_back(upper ? W + lane : lane + half);
    }
    for (int64_t i = 0; i < W; ++i) {
      if (i & half)
        continue;
      Value x = rows[i], y = rows[i + half];
      rows[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      rows[i + half] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
  }
  return rows;
}

/// [panels, k, columnsPerPanel] of the transposed second operand.
Value KernelLowering::packTransposed(DotOp op, int64_t columnsPerPanel) {
  bool pairs = tileType(op.getB()).getElementType().isBF16();
  int64_t columns = op.getType().getDimSize(1);
  int64_t steps = tileType(op.getB()).getDimSize(1) / (pairs ? 2 : 1);
  int64_t panels = (columns + columnsPerPanel - 1) / columnsPerPanel;
  Type element = pairs ? Type(b.getI32Type()) : Type(b.getF32Type());
  Value panel = allocateRaw({panels, steps, columnsPerPanel}, element);
  loop(index(0), index(columns), W, [&](Value first) {
    Value which = arith::DivUIOp::create(b, loc, first, index(columnsPerPanel));
    Value within =
        arith::RemUIOp::create(b, loc, first, index(columnsPerPanel));
    auto block = [&](Value step, int64_t width) {
      SmallVector<Value> rows;
      prefetchRows(op, first, W, step, width, steps, pairs);
      for (int64_t i = 0; i < W; ++i)
        rows.push_back(loadOperandRow(op, add(first, i), step, width, pairs));
      rows = transpose(rows);
      for (int64_t i = 0; i < width; ++i)
        vector::StoreOp::create(b, loc, rows[i], panel,
                                ValueRange{which, add(step, i), within});
    };
    int64_t whole = steps / W * W;
    if (whole > 0)
      loop(index(0), index(whole), W, [&](Value step) { block(step, W); });
    if (steps > whole)
      block(index(whole), steps - whole);
  });
  return panel;
}

/// [k, columns] in f32.
Value KernelLowering::packWidened(DotOp op) {
  const KVRows &source = kvRows.find(op.getB())->second;
  Value packed = allocateRaw(
      {source.rows, rowLength(source.columns, b.getF32Type())}, b.getF32Type());
  loop(index(0), index(source.rows), 1, [&](Value row) {
    Value offset = memref::LoadOp::create(b, loc, source.offsets, row);
    for (int64_t column = 0; column < source.columns;
         column += FI_ALIGNMENT * 8 / source.element.getIntOrFloatBitWidth())
      prefetch(source, row, index(column));
    copyRowIn(source.base, offset, source.columns, b.getF32Type(), packed, row);
  });
  return packed;
}

/// [k / 2, columns]: pairs of rows, interleaved.
Value KernelLowering::packPairs(DotOp op) {
  RankedTensorType type = tileType(op.getB());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  Value packed = allocateRaw({rows / 2, padded(columns)}, b.getI32Type());
  Type bf16 = b.getBF16Type();
  auto source = kvRows.find(op.getB());
  loop(index(0), index(rows), 2, [&](Value row) {
    Value pair = arith::DivUIOp::create(b, loc, row, index(2));
    Value offsets[2];
    if (source != kvRows.end())
      for (int i : {0, 1})
        offsets[i] =
            memref::LoadOp::create(b, loc, source->second.offsets, add(row, i));
    if (source != kvRows.end())
      for (int i : {0, 1})
        for (int64_t column = 0; column < columns; column += FI_ALIGNMENT / 2)
          prefetch(source->second, add(row, i), index(column));
    for (int64_t column = 0; column < columns; column += W) {
      int64_t width = std::min(W, columns - column);
      VectorType narrow = VectorType::get({width}, bf16);
      Value halves[2];
      for (int i : {0, 1}) {
        if (source != kvRows.end())
          halves[i] =
              vector::LoadOp::create(b, loc, narrow, source->second.base,
                                     ValueRange{add(offsets[i], column)});
        else
          halves[i] =
              vector::LoadOp::create(b, loc, narrow, buffers.lookup(op.getB()),
                                     ValueRange{add(row, i), index(column)});
      }
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < width; ++lane) {
        lanes.push_back(lane);
        lanes.push_back(width + lane);
      }
      Value mixed =
          vector::ShuffleOp::create(b, loc, halves[0], halves[1], lanes);
      Value words = vector::BitCastOp::create(
          b, loc, VectorType::get({width}, b.getI32Type()), mixed);
      vector::StoreOp::create(b, loc, words, packed,
                              ValueRange{pair, index(column)});
    }
  });
  return packed;
}

//===----------------------------------------------------------------------===//
// Few rows
//===----------------------------------------------------------------------===//

/// Sums of the lanes of W vectors, as the lanes of one: halves of two vectors
/// onto each other, then of two of those.
Value KernelLowering::sumLanes(SmallVector<Value> vectors) {
  for (int64_t half = W / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < W; ++lane) {
      bool upper = lane & half;
      low.push_back(upper ? W + lane - half : lane);
      high.push_back(upper ? W + lane : lane + half);
    }
    size_t count = vectors.size() / 2;
    for (size_t i = 0; i < count; ++i) {
      Value x = vectors[i], y = vectors[i + count];
      vectors[i] = arith::AddFOp::create(
          b, loc, vector::ShuffleOp::create(b, loc, x, y, low),
          vector::ShuffleOp::create(b, loc, x, y, high));
    }
    vectors.resize(count);
  }
  return vectors[0];
}

/// a times the transposed b, where a has few rows: both are read along k as
/// they lie, `mr` rows by W / mr columns at a time, and lanes are summed at the
/// end. This spares the transposition, which no number of rows would pay for.
void KernelLowering::dotAlongRows(DotOp op, Value aBuffer, Value result,
                                  bool pairs) {
  int64_t mr = schedule.getMr(), keys = W / mr;
  int64_t columns = op.getType().getDimSize(1);
  int64_t steps = tileType(op.getA()).getDimSize(1) / (pairs ? 2 : 1);
  Type f32 = b.getF32Type();
  Type word = pairs ? Type(b.getI32Type()) : f32;
  VectorType sumType = vectorOf(f32);
  VectorType pairType = VectorType::get({2 * W}, b.getBF16Type());
  auto asPairs = [&](Value words) -> Value {
    return pairs
               ? vector::BitCastOp::create(b, loc, pairType, words).getResult()
               : words;
  };
  loop(index(0), index(columns), keys, [&](Value column) {
    loop(index(0), rowBound, mr, [&](Value row) {
      auto accumulate = [&](SmallVector<Value> sums, Value k, int64_t width) {
        SmallVector<Value> right;
        prefetchRows(op, column, keys, k, width, steps, pairs);
        for (int64_t j = 0; j < keys; ++j)
          right.push_back(
              asPairs(loadOperandRow(op, add(column, j), k, width, pairs)));
        for (int64_t i = 0; i < mr; ++i) {
          Value left =
              vector::LoadOp::create(b, loc, VectorType::get({width}, word),
                                     aBuffer, ValueRange{add(row, i), k});
          if (width < W) // what lies beyond in the buffer may be anything
            left = vector::InsertStridedSliceOp::create(
                b, loc, left, splatVector(word, 0.0), ArrayRef<int64_t>{0},
                ArrayRef<int64_t>{1});
          left = asPairs(left);
          for (int64_t j = 0; j < keys; ++j) {
            Value &sum = sums[i * keys + j];
            if (pairs)
              sum = x86vector::DotBF16Op::create(b, loc, sumType, sum, left,
                                                 right[j]);
            else
              sum = vector::FMAOp::create(b, loc, left, right[j], sum);
          }
        }
        return sums;
      };
      SmallVector<Value> sums(W, splatVector(f32, 0.0));
      int64_t whole = steps / W * W;
      if (whole > 0) {
        auto k =
            scf::ForOp::create(b, loc, index(0), index(whole), index(W), sums);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(k.getBody());
        scf::YieldOp::create(
            b, loc,
            accumulate(SmallVector<Value>(k.getRegionIterArgs()),
                       k.getInductionVar(), W));
        sums.assign(k.result_begin(), k.result_end());
      }
      if (steps > whole)
        sums = accumulate(sums, index(whole), steps - whole);
      Value all = sumLanes(sums);
      for (int64_t i = 0; i < mr; ++i) {
        Value part = vector::ExtractStridedSliceOp::create(
            b, loc, all, ArrayRef<int64_t>{i * keys}, ArrayRef<int64_t>{keys},
            ArrayRef<int64_t>{1});
        vector::StoreOp::create(b, loc, part, result,
                                ValueRange{add(row, i), column});
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// The microkernel
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerDot(DotOp op) {
  Block *block = op->getBlock();
  Value a = op.getA(), acc = op.getAcc();
  bool pairs = tileType(a).getElementType().isBF16();
  if (!pairs && !tileType(a).getElementType().isF32())
    return op.emitOpError("expected operands of f32 or bf16 (run "
                          "fi-tile-legalize-dtypes), but got ")
           << a.getType();
  int64_t steps = tileType(a).getDimSize(1) / (pairs ? 2 : 1);
  int64_t columns = op.getType().getDimSize(1);
  int64_t vectors = padded(columns) / W;
  int64_t mr = schedule.getMr();
  int64_t nr = std::min<int64_t>(schedule.getNr(), vectors);
  if (op.getTranspose() && columns % W != 0)
    return op.emitOpError("expected a multiple of ")
           << W << " columns, the vector length, but got " << columns
           << " [SCH2]";
  if (pairs && tileType(a).getDimSize(1) % 2 != 0)
    return op.emitOpError("expected an even number of bf16 terms, but got ")
           << tileType(a).getDimSize(1) << " [SCH2]";

  // acc = x * factor per row, where nothing else wants x: the product goes to
  // x's buffer, and accumulators start from x * factor.
  Value accBuffer, factor;
  if (acc) {
    auto scaled = acc.getDefiningOp<arith::MulFOp>();
    auto spread =
        scaled ? scaled.getRhs().getDefiningOp<BroadcastOp>() : BroadcastOp();
    Value old = scaled ? scaled.getLhs() : Value();
    if (spread && acc.hasOneUse() && kindOf(spread.getSource()) == Kind::Rows &&
        buffers.count(old) && old.hasOneUse()) {
      factor = spread.getSource();
      accBuffer = buffers.lookup(old);
      lowered.insert(scaled);
      lowered.insert(spread);
    }
  }
  SmallVector<Value> wanted = {a};
  if (factor)
    wanted.push_back(factor);
  else if (acc)
    wanted.push_back(acc);
  if (!kvRows.count(op.getB()))
    wanted.push_back(op.getB());
  if (failed(materialise(wanted, block)))
    return failure();
  if (acc && !accBuffer) {
    accBuffer = buffers.lookup(acc);
    if (!acc.hasOneUse() || acc.getDefiningOp<arith::ConstantOp>()) {
      // Somebody else reads it: work on a copy.
      Value copy = allocate(op.getType());
      loop(index(0), rowBound, 1, [&](Value row) {
        for (int64_t v = 0; v < vectors; ++v)
          storeVector(
              loadVector(accBuffer, {row, index(v * W)}, b.getF32Type()), copy,
              {row, index(v * W)});
      });
      accBuffer = copy;
    }
  }
  Value result = accBuffer ? accBuffer : allocate(op.getType());
  Value aBuffer = pairs ? viewAsPairs(buffers.lookup(a)) : buffers.lookup(a);

  if (op.getTranspose() && !acc && schedule.getStream() && W % mr == 0) {
    dotAlongRows(op, aBuffer, result, pairs);
    buffers[op.getResult()] = result;
    return success();
  }

  std::optional<Extents> part =
      op.getTranspose() ? extentsOfResult(op) : extentsOfTerms(op);

  if (multipliesByTiles(op)) {
    dotByTiles(op, accBuffer, factor, result, part);
    buffers[op.getResult()] = result;
    return success();
  }

  // The second operand.
  std::function<Value(Value, Value, int64_t)> loadB;
  bool mixed = false; // whether pairs of vectors of columns are (see below)
  Type wordType = pairs ? Type(b.getI32Type()) : Type(b.getF32Type());
  auto rows = kvRows.find(op.getB());
  // The line of the next tile that is asked for with part j of a row's block of
  // columns. For pairs, blocks of columns, one row after the other, cover the
  // tile in its order, which memory delivers faster; in f32, where a step makes
  // half as many products of a line, that was slower than the line in use.
  auto prefetchTerm = [=](Value row, Value column, int64_t j, int64_t width) {
    const KVRows source = rows->second;
    if (!source.nextOffsets)
      return;
    if (vectors % nr != 0 || !pairs)
      return prefetch(source, row, add(column, j * width));
    int64_t parts = nr * W / width;
    Value block = arith::DivUIOp::create(b, loc, column, index(nr * W));
    Value number = add(mul(add(mul(block, source.rows), row), parts), j);
    prefetchNumbered(source, index(0), number, vectors * W / width, width);
  };
  if (op.getTranspose()) {
    int64_t perPanel = nr * W;
    Value panel = packTransposed(op, perPanel);
    loadB = [=](Value k, Value column, int64_t j) -> Value {
      Value which = arith::DivUIOp::create(b, loc, column, index(perPanel));
      return vector::LoadOp::create(b, loc, vectorOf(wordType), panel,
                                    ValueRange{which, k, index(j * W)});
    };
  } else if (!pairs && rows != kvRows.end() && rows->second.element.isF32() &&
             columns % W == 0 &&
             (rows->second.adjacent || schedule.getStream())) {
    KVRows source = rows->second;
    loadB = [=](Value k, Value column, int64_t j) -> Value {
      Value offset = memref::LoadOp::create(b, loc, source.offsets, k);
      offset = add(offset, add(column, j * W));
      if (schedule.getStream() && j * W % (FI_ALIGNMENT / 4) == 0)
        prefetchTerm(k, column, j, W);
      return vector::LoadOp::create(b, loc, vectorOf(wordType), source.base,
                                    ValueRange{offset});
    };
  } else if (pairs && rows != kvRows.end() && schedule.getStream() &&
             rows->second.element.isBF16() && columns % (2 * W) == 0 &&
             nr % 2 == 0) {
    // Few rows: pairs are made where they are multiplied, lane by lane of 128
    // bits, which leaves columns in another order; accumulators have it too.
    mixed = true;
    KVRows source = rows->second;
    loadB = [=](Value k, Value column, int64_t j) -> Value {
      VectorType words = VectorType::get({2 * W}, b.getI16Type());
      Value halves[2];
      for (int64_t i : {0, 1}) {
        Value row = add(mul(k, 2), i);
        Value offset = memref::LoadOp::create(b, loc, source.offsets, row);
        offset = add(offset, add(column, j / 2 * 2 * W));
        halves[i] = vector::BitCastOp::create(
            b, loc, words,
            vector::LoadOp::create(b, loc,
                                   VectorType::get({2 * W}, b.getBF16Type()),
                                   source.base, ValueRange{offset}));
        if (j % 2 == 0)
          prefetchTerm(row, column, j / 2, 2 * W);
      }
      SmallVector<int64_t> lanes;
      for (int64_t lane = 0; lane < W / 4; ++lane)
        for (int64_t t = 0; t < 4; ++t) {
          int64_t from = 8 * lane + 4 * (j % 2) + t;
          lanes.push_back(from);
          lanes.push_back(2 * W + from);
        }
      return vector::BitCastOp::create(
          b, loc, vectorOf(b.getI32Type()),
          vector::ShuffleOp::create(b, loc, halves[0], halves[1], lanes));
    };
  } else {
    Value packed = pairs                  ? packPairs(op)
                   : rows != kvRows.end() ? packWidened(op)
                                          : buffers.lookup(op.getB());
    loadB = [=](Value k, Value column, int64_t j) -> Value {
      return vector::LoadOp::create(b, loc, vectorOf(wordType), packed,
                                    ValueRange{k, add(column, j * W)});
    };
  }

  Type f32 = b.getF32Type();
  VectorType accType = vectorOf(f32);
  VectorType pairType = VectorType::get({2 * W}, b.getBF16Type());
  // Of two vectors of columns, the first four of every eight, then the others.
  SmallVector<int64_t> toMixed, fromMixed(2 * W);
  for (int64_t half : {0, 4})
    for (int64_t lane = 0; lane < W; ++lane)
      toMixed.push_back(lane / 4 * 8 + half + lane % 4);
  for (auto [position, column] : llvm::enumerate(toMixed))
    fromMixed[column] = position;
  auto shufflePairs = [&](SmallVector<Value> &vectors,
                          ArrayRef<int64_t> order) {
    for (size_t j = 0; j < vectors.size(); j += 2) {
      Value x = vectors[j], y = vectors[j + 1];
      vectors[j] = vector::ShuffleOp::create(b, loc, x, y, order.take_front(W));
      vectors[j + 1] =
          vector::ShuffleOp::create(b, loc, x, y, order.take_back(W));
    }
  };
  auto blockOfRows = [&](Value column, int64_t count, Value row) {
    SmallVector<Value> init;
    for (int64_t i = 0; i < mr; ++i) {
      Value scale;
      if (factor) {
        Value one =
            memref::LoadOp::create(b, loc, buffers.lookup(factor), add(row, i));
        scale = vector::BroadcastOp::create(b, loc, accType, one);
      }
      SmallVector<Value> old;
      for (int64_t j = 0; j < count; ++j) {
        if (!accBuffer) {
          old.push_back(splatVector(f32, 0.0));
          continue;
        }
        old.push_back(
            loadVector(accBuffer, {add(row, i), add(column, j * W)}, f32));
        if (scale)
          old.back() = arith::MulFOp::create(b, loc, old.back(), scale);
      }
      if (mixed && accBuffer)
        shufflePairs(old, toMixed);
      llvm::append_range(init, old);
    }
    Value firstStep = index(0), endStep = index(steps);
    if (part && !op.getTranspose()) {
      auto step = [&](Value table) -> Value {
        Value key = memref::LoadOp::create(b, loc, table, row);
        return pairs ? arith::DivUIOp::create(b, loc, key, index(2)) : key;
      };
      firstStep = step(part->first);
      endStep = step(part->limit);
    }
    auto k = scf::ForOp::create(b, loc, firstStep, endStep, index(1), init);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(k.getBody());
      SmallVector<Value> sums(k.getRegionIterArgs());
      SmallVector<Value> right;
      for (int64_t j = 0; j < count; ++j) {
        Value word = loadB(k.getInductionVar(), column, j);
        right.push_back(
            pairs
                ? vector::BitCastOp::create(b, loc, pairType, word).getResult()
                : word);
      }
      for (int64_t i = 0; i < mr; ++i) {
        Value left = memref::LoadOp::create(
            b, loc, aBuffer, ValueRange{add(row, i), k.getInductionVar()});
        left = vector::BroadcastOp::create(b, loc, vectorOf(wordType), left);
        if (pairs)
          left = vector::BitCastOp::create(b, loc, pairType, left);
        for (int64_t j = 0; j < count; ++j) {
          Value &sum = sums[i * count + j];
          if (pairs)
            sum = x86vector::DotBF16Op::create(b, loc, accType, sum, left,
                                               right[j]);
          else
            sum = vector::FMAOp::create(b, loc, left, right[j], sum);
        }
      }
      scf::YieldOp::create(b, loc, sums);
    }
    for (int64_t i = 0; i < mr; ++i) {
      SmallVector<Value> sums(k.getResults().slice(i * count, count));
      if (mixed)
        shufflePairs(sums, fromMixed);
      for (int64_t j = 0; j < count; ++j)
        storeVector(sums[j], result, {add(row, i), add(column, j * W)});
    }
  };
  auto block2D = [&](Value row, Value column, int64_t count) {
    if (!op.getTranspose())
      return blockOfRows(column, count, row);
    whereVisible(part, row, column, count * W,
                 [&] { blockOfRows(column, count, row); });
  };
  int64_t whole = vectors / nr * nr;
  loop(index(0), rowBound, mr, [&](Value row) {
    loop(index(0), index(whole * W), nr * W,
         [&](Value column) { block2D(row, column, nr); });
    if (vectors > whole)
      block2D(row, index(whole * W), vectors - whole);
  });
  buffers[op.getResult()] = result;
  return success();
}
