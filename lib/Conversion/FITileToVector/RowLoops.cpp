//===- RowLoops.cpp - elementwise work in loops over rows -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loop distribution for tile arithmetic. Matrix work goes to loops over single
// rows with vectors along the columns; work on one value per row, to loops over
// vectors of rows; a row reduction ends a matrix phase. What crosses from one
// phase to a later one is stored, or computed again where that is cheaper than
// memory.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

KernelLowering::Kind KernelLowering::kindOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return Kind::Scalar;
  if (type.getDimSize(1) == 1)
    return Kind::Rows;
  return type.getDimSize(0) == 1 ? Kind::Columns : Kind::Matrix;
}

RankedTensorType KernelLowering::tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool KernelLowering::isLazy(Operation *op) {
  if (op->getNumResults() != 1 || kindOf(op->getResult(0)) == Kind::Scalar)
    return false;
  return isa<IotaOp, BroadcastOp, MaskOp, ReduceOp, GatherOp, tensor::SplatOp,
             arith::ConstantOp>(op) ||
         op->hasTrait<OpTrait::Elementwise>();
}

/// Values that cost nothing to make again.
bool KernelLowering::isFree(Operation *op) {
  return isa_and_nonnull<arith::ConstantOp, tensor::SplatOp, IotaOp>(op);
}

void KernelLowering::loop(Value lower, Value upper, int64_t step,
                          llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, lower, upper, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

void KernelLowering::forChunks(int64_t columns,
                               llvm::function_ref<void(Value, int64_t)> body) {
  int64_t begin = 0;
  if (isLong(columns)) {
    begin = loopedColumns(columns);
    loop(index(0), index(begin), kChunksAtOnce * W, [&](Value column) {
      for (int64_t chunk = 0; chunk < kChunksAtOnce; ++chunk)
        body(add(column, chunk * W), W);
    });
  }
  for (; begin < columns; begin += W)
    body(index(begin), std::min(W, columns - begin));
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Matrix values: even. Rows: odd, from -1. Columns: -2, before everything. A
/// reduction's result belongs to the matrix phase that computes it.
int KernelLowering::phaseOf(Phases &phases, Value tile) {
  Kind kind = kindOf(tile);
  if (kind == Kind::Scalar || kind == Kind::Columns)
    return -2;
  if (buffers.count(tile))
    return kind == Kind::Rows ? -1 : -2;
  auto found = phases.phase.find(tile);
  if (found != phases.phase.end())
    return found->second;
  Operation *op = tile.getDefiningOp();
  bool matrix = kind == Kind::Matrix || isa<ReduceOp>(op);
  int phase = matrix ? 0 : -1;
  for (Value operand : op->getOperands()) {
    int before = phaseOf(phases, operand);
    if (kindOf(operand) == Kind::Rows) {
      bool reduction = !buffers.count(operand) &&
                       isa_and_nonnull<ReduceOp>(operand.getDefiningOp());
      if (matrix)
        before += reduction ? 2 : 1;
      else
        before += reduction ? 1 : 0;
    }
    phase = std::max(phase, before);
  }
  phases.phase[tile] = phase;
  return phase;
}

bool KernelLowering::isRecomputable(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isFree(op) || isa<BroadcastOp>(op))
    return true;
  // Positions and visibility are never stored as matrices.
  if (!isa<FloatType>(tileType(tile).getElementType()))
    return true;
  // One operation on something that has a buffer, and on splats.
  if (!isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return buffers.count(operand) || isFree(operand.getDefiningOp());
  });
}

bool KernelLowering::isExpensive(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (isFree(op) || isa<BroadcastOp>(op))
    return false;
  if (isa<ReduceOp, GatherOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp,
          arith::RemUIOp, arith::DivFOp>(op) ||
      op->getName().getDialectNamespace() == "math")
    return true;
  return kindOf(tile) == Kind::Rows;
}

LogicalResult KernelLowering::demand(Phases &phases, Value tile, int phase) {
  Kind kind = kindOf(tile);
  if (kind == Kind::Scalar)
    return success();
  if (buffers.count(tile)) {
    int &last = phases.lastLeafUse.try_emplace(tile, phase).first->second;
    last = std::max(last, phase);
    return success();
  }
  if (!phases.demanded.insert({tile.getAsOpaquePointer(), phase}).second)
    return success();
  Operation *op = tile.getDefiningOp();
  if (!op || !isLazy(op))
    return mlir::emitError(tile.getLoc())
           << "expected a tile that is computed before it is used, but got "
           << tile;
  phases.visited.insert(op);
  if (isFree(op))
    return success();
  int own = phaseOf(phases, tile);
  auto demandOperands = [&](int at) -> LogicalResult {
    for (Value operand : op->getOperands())
      if (failed(demand(phases, operand, at)))
        return failure();
    return success();
  };
  switch (kind) {
  case Kind::Columns:
    if (isExpensive(tile))
      phases.stored.insert(tile);
    return demandOperands(-2);
  case Kind::Rows:
    if (isa<ReduceOp>(op) || phase != own)
      phases.stored.insert(tile);
    return demandOperands(own);
  default:
    if (phase == own)
      return demandOperands(own);
    if (isRecomputable(tile))
      return demandOperands(phase);
    phases.stored.insert(tile);
    return demand(phases, tile, own);
  }
}

/// Whether a tile can be computed from what has a buffer now.
bool KernelLowering::isReady(Value tile) {
  if (kindOf(tile) == Kind::Scalar || buffers.count(tile))
    return true;
  Operation *op = tile.getDefiningOp();
  return op && isLazy(op) &&
         llvm::all_of(op->getOperands(), [&](Value v) { return isReady(v); });
}

/// Whether nothing will compute an op's results from their operands again.
bool KernelLowering::usesAreOver(Phases &phases, Operation *op) {
  for (Value result : op->getResults()) {
    if (phases.stored.contains(result) || buffers.count(result))
      continue;
    for (Operation *user : result.getUsers())
      if (!(phases.visited.contains(user) || lowered.contains(user)) ||
          !usesAreOver(phases, user))
        return false;
  }
  return true;
}

/// Whether `yielded` may overwrite the buffer of the value it replaces: all
/// uses of the old value lie in this plan, none in a later phase. Within one
/// iteration all loads precede the stores.
bool KernelLowering::mayUpdateInPlace(Phases &phases, Value yielded,
                                      Value carried) {
  if (tileType(yielded) != tileType(carried))
    return false;
  for (Operation *user : carried.getUsers())
    if (!(phases.visited.contains(user) || lowered.contains(user)) ||
        !usesAreOver(phases, user))
      return false;
  auto last = phases.lastLeafUse.find(carried);
  int phase = phaseOf(phases, yielded);
  if (isa_and_nonnull<ReduceOp>(yielded.getDefiningOp()) &&
      kindOf(yielded) == Kind::Rows)
    return last == phases.lastLeafUse.end();
  return last == phases.lastLeafUse.end() || last->second <= phase;
}

LogicalResult KernelLowering::materialise(ArrayRef<Value> tiles, Block *block) {
  SmallVector<Value> targets;
  auto want = [&](Value tile) {
    if (kindOf(tile) != Kind::Scalar && !buffers.count(tile) &&
        !kvRows.count(tile) && !llvm::is_contained(targets, tile))
      targets.push_back(tile);
  };
  for (Value tile : tiles)
    want(tile);
  if (targets.empty())
    return success();
  // What the block will yield and can be had now comes along.
  Operation *terminator =
      block && block->mightHaveTerminator() ? block->getTerminator() : nullptr;
  bool carries = terminator && isa<tile::YieldOp, scf::YieldOp>(terminator) &&
                 isa<ForKeysOp, scf::ForOp>(terminator->getParentOp());
  if (carries)
    for (Value yielded : terminator->getOperands())
      if (isReady(yielded))
        want(yielded);

  Phases phases;
  for (Value target : targets) {
    phases.stored.insert(target);
    int own = phaseOf(phases, target);
    if (isFree(target.getDefiningOp()))
      phases.phase[target] = kindOf(target) == Kind::Rows ? -1 : 0;
    if (failed(demand(phases, target, own)))
      return failure();
  }
  // What is dear and will be asked for again is kept.
  for (Operation *op : phases.visited) {
    Value result = op->getResult(0);
    if (!isExpensive(result) || phases.stored.contains(result))
      continue;
    for (Operation *user : result.getUsers())
      if (!phases.visited.contains(user) && !lowered.contains(user) &&
          user != terminator)
        phases.stored.insert(result);
  }

  // Give every stored value its buffer: that of the carried value it replaces,
  // where nobody needs the old one any more.
  llvm::DenseMap<Value, Value> inPlace;
  if (carries)
    for (auto [number, yielded] : llvm::enumerate(terminator->getOperands())) {
      if (!phases.stored.contains(yielded) || inPlace.count(yielded) ||
          !llvm::hasSingleElement(llvm::make_filter_range(
              terminator->getOperands(),
              [&, y = yielded](Value v) { return v == y; })))
        continue;
      Value carried = block->getArgument(number + 1);
      if (mayUpdateInPlace(phases, yielded, carried))
        inPlace[yielded] = buffers.lookup(carried);
    }
  llvm::DenseMap<Value, Value> fresh;
  int lastPhase = 0;
  for (Value value : phases.stored) {
    fresh[value] =
        inPlace.count(value) ? inPlace[value] : allocate(tileType(value));
    lastPhase = std::max(lastPhase, phaseOf(phases, value));
  }
  preferred = fresh;

  // Columns: straight-line code, a few vectors.
  for (Value value : phases.stored) {
    if (kindOf(value) != Kind::Columns)
      continue;
    if (isLong(tileType(value).getDimSize(1))) {
      storeChunks(Value(), value);
      buffers[value] = fresh[value];
      continue;
    }
    Iteration iteration(/*overRows=*/false, Value());
    int64_t chunks = padded(tileType(value).getDimSize(1)) / W;
    SmallVector<Value> vectors;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      vectors.push_back(evaluate(iteration, value, chunk));
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      storeVector(vectors[chunk], fresh[value], {index(chunk * W)});
    buffers[value] = fresh[value];
  }
  for (int phase = -1; phase <= lastPhase; ++phase) {
    if (phase % 2 != 0)
      emitRowsPhase(phases, phase);
    else
      emitMatrixPhase(phases, phase);
  }
  lowered.insert(phases.visited.begin(), phases.visited.end());
  return success();
}

void KernelLowering::emitRowsPhase(Phases &phases, int phase) {
  // A loop for the item's rows, and one for each number of keys.
  llvm::MapVector<int64_t, SmallVector<Value>> roots;
  for (Value value : phases.stored)
    if (kindOf(value) == Kind::Rows && !buffers.count(value) &&
        !isa<ReduceOp>(value.getDefiningOp()) &&
        phaseOf(phases, value) == phase)
      roots[fixedRows(value)].push_back(value);
  for (auto &[fixed, group] : roots) {
    loop(index(0), rowVectorLimit(fixed), W, [&, &values = group](Value row) {
      Iteration iteration(/*overRows=*/true, row);
      SmallVector<Value> vectors;
      for (Value root : values)
        vectors.push_back(evaluate(iteration, root, 0));
      for (auto [root, vector] : llvm::zip(values, vectors))
        storeVector(vector, preferred[root], {row});
    });
  }
  for (auto &[fixed, group] : roots)
    for (Value root : group)
      buffers[root] = preferred[root];
}

/// Whether a value depends, within its iteration, on a reduction over columns.
static bool dependsOnReduction(Value value,
                               const llvm::DenseMap<Value, Value> &buffers) {
  if (buffers.count(value))
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || isa<ReduceOp>(op))
    return static_cast<bool>(op);
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) &&
           dependsOnReduction(operand, buffers);
  });
}

void KernelLowering::emitMatrixPhase(Phases &phases, int phase) {
  llvm::MapVector<int64_t, SmallVector<Value>> roots;
  for (Value value : phases.stored) {
    bool reduction = isa_and_nonnull<ReduceOp>(value.getDefiningOp());
    bool mine = kindOf(value) == Kind::Matrix ||
                (kindOf(value) == Kind::Rows && reduction);
    if (mine && !buffers.count(value) && phaseOf(phases, value) == phase)
      roots[fixedRows(value)].push_back(value);
  }
  for (auto &[fixed, group] : roots)
    emitMatrixLoop(group);
  for (auto &[fixed, group] : roots)
    for (Value value : group)
      buffers[value] = preferred[value];
}

void KernelLowering::storeChunks(Value row, ArrayRef<Value> values) {
  auto emit = [&](Iteration &iteration, int64_t chunk) {
    SmallVector<Value> vectors = llvm::map_to_vector(
        values, [&](Value value) { return evaluate(iteration, value, chunk); });
    SmallVector<Value> indices = {columnOf(iteration, chunk)};
    if (row)
      indices.insert(indices.begin(), row);
    for (auto [value, vector] : llvm::zip_equal(values, vectors))
      storeVector(vector, preferred[value], indices);
  };
  int64_t columns = tileType(values.front()).getDimSize(1);
  int64_t looped = loopedColumns(columns);
  loop(index(0), index(looped), kChunksAtOnce * W, [&](Value column) {
    Iteration iteration(/*overRows=*/false, row);
    iteration.column = column;
    for (int64_t chunk = 0; chunk < kChunksAtOnce; ++chunk)
      emit(iteration, chunk);
  });
  Iteration rest(/*overRows=*/false, row);
  for (int64_t chunk = looped / W; chunk < padded(columns) / W; ++chunk)
    emit(rest, chunk);
}

/// One loop for values of one domain and phase.
void KernelLowering::emitMatrixLoop(ArrayRef<Value> roots) {
  SmallVector<Value> chunked, reducing;
  llvm::MapVector<int64_t, SmallVector<Value>> longOnes;
  int64_t chunks = 0;
  for (Value value : roots) {
    if (dependsOnReduction(value, buffers)) {
      reducing.push_back(value);
    } else if (int64_t columns = tileType(value).getDimSize(1);
               isLong(columns)) {
      longOnes[columns].push_back(value);
    } else {
      chunked.push_back(value);
      chunks = std::max(chunks, padded(tileType(value).getDimSize(1)) / W);
    }
  }
  loop(index(0), rowLimit(fixedRows(roots.front())), 1, [&](Value row) {
    Iteration iteration(/*overRows=*/false, row);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      SmallVector<std::pair<Value, Value>> stores;
      for (Value value : chunked)
        if (chunk * W < padded(tileType(value).getDimSize(1)))
          stores.push_back({value, evaluate(iteration, value, chunk)});
      for (auto [value, vector] : stores)
        storeVector(vector, preferred[value], {row, index(chunk * W)});
    }
    for (auto &[columns, values] : longOnes)
      storeChunks(row, values);
    SmallVector<std::tuple<Value, Value, int64_t>> stores;
    for (Value value : reducing) {
      int64_t own = kindOf(value) == Kind::Rows
                        ? 1
                        : padded(tileType(value).getDimSize(1)) / W;
      for (int64_t chunk = 0; chunk < own; ++chunk)
        stores.push_back({value, evaluate(iteration, value, chunk), chunk});
    }
    for (auto [value, result, chunk] : stores) {
      if (kindOf(value) == Kind::Rows)
        memref::StoreOp::create(b, loc, result, preferred[value], row);
      else
        storeVector(result, preferred[value], {row, index(chunk * W)});
    }
  });
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// i1 is stored in bytes.
void KernelLowering::storeVector(Value vector, Value buffer,
                                 ValueRange indices) {
  auto type = cast<VectorType>(vector.getType());
  if (type.getElementType().isInteger(1))
    vector = arith::ExtUIOp::create(b, loc, vectorOf(b.getI8Type()), vector);
  vector::StoreOp::create(b, loc, vector, buffer, indices);
}

Value KernelLowering::loadVector(Value buffer, ValueRange indices,
                                 Type element) {
  bool bytes = element.isInteger(1);
  Value vector = vector::LoadOp::create(
      b, loc, vectorOf(bytes ? b.getI8Type() : element), buffer, indices);
  if (bytes)
    vector = arith::TruncIOp::create(b, loc, vectorOf(element), vector);
  return vector;
}

/// The value of a row, spread over a vector.
Value KernelLowering::rowScalar(Iteration &iteration, Value tile) {
  Value &memo = iteration.values[{tile, -1}];
  if (memo)
    return memo;
  Type element = tileType(tile).getElementType();
  Operation *op = tile.getDefiningOp();
  Value result;
  auto buffer = buffers.find(tile);
  if (buffer != buffers.end()) {
    bool bytes = element.isInteger(1);
    Value scalar =
        memref::LoadOp::create(b, loc, buffer->second, iteration.row);
    if (bytes)
      scalar = arith::TruncIOp::create(b, loc, element, scalar);
    result = vector::BroadcastOp::create(b, loc, vectorOf(element), scalar);
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    Value scalar = add(this->scalar(iota.getBase()), iteration.row);
    result = vector::BroadcastOp::create(b, loc, vectorOf(element), scalar);
  } else {
    result = evaluateLeaf(iteration, tile, 0);
  }
  return iteration.values[{tile, -1}] = result;
}

/// Constants, splats and iotas.
Value KernelLowering::evaluateLeaf(Iteration &iteration, Value tile,
                                   int64_t chunk) {
  Operation *op = tile.getDefiningOp();
  Type element = tileType(tile).getElementType();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(vectorOf(element),
                               dense.getSplatValue<Attribute>()));
  }
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    return vector::BroadcastOp::create(b, loc, vectorOf(element),
                                       scalar(splat.getInput()));
  auto iota = cast<IotaOp>(op);
  Value first = scalar(iota.getBase());
  if (iteration.overRows)
    first = add(first, iteration.row);
  else if (iteration.column)
    first = add(first, columnOf(iteration, chunk));
  else
    first = add(first, chunk * W);
  Value steps = vector::StepOp::create(b, loc, vectorOf(element));
  Value base = vector::BroadcastOp::create(b, loc, vectorOf(element), first);
  return arith::AddIOp::create(b, loc, base, steps);
}

/// What lies behind the last column may be anything.
Value KernelLowering::maskTail(ReduceOp op, Value chunk) {
  RankedTensorType type = tileType(op.getSource());
  SmallVector<bool> inside;
  for (int64_t lane = 0; lane < W; ++lane)
    inside.push_back(lane < type.getDimSize(1) % W);
  Value mask = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(vectorOf(b.getI1Type()), inside));
  Value none = splatVector(type.getElementType(),
                           op.getKind() == ReduceKind::Max
                               ? -std::numeric_limits<double>::infinity()
                               : 0);
  return arith::SelectOp::create(b, loc, mask, chunk, none);
}

Value KernelLowering::combine(ReduceKind kind, Value a, Value c) {
  if (kind == ReduceKind::Max)
    return maximum(a, c);
  return arith::AddFOp::create(b, loc, a, c);
}

/// A vector of what its lanes have of a long row: as many sums as chunks at
/// once.
Value KernelLowering::reduceLong(Iteration &iteration, ReduceOp op) {
  Value source = op.getSource();
  int64_t size = tileType(source).getDimSize(1), looped = loopedColumns(size);
  SmallVector<Value> sums;
  for (int64_t chunk = 0; chunk < kChunksAtOnce; ++chunk)
    sums.push_back(splatVector(tileType(source).getElementType(),
                               op.getKind() == ReduceKind::Max
                                   ? -std::numeric_limits<double>::infinity()
                                   : 0));
  auto chunks = scf::ForOp::create(b, loc, index(0), index(looped),
                                   index(kChunksAtOnce * W), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(chunks.getBody());
    Iteration inner(/*overRows=*/false, iteration.row);
    inner.column = chunks.getInductionVar();
    SmallVector<Value> next;
    for (auto [chunk, sum] : llvm::enumerate(chunks.getRegionIterArgs()))
      next.push_back(
          combine(op.getKind(), sum, evaluate(inner, source, chunk)));
    scf::YieldOp::create(b, loc, next);
  }
  sums.assign(chunks.getResults().begin(), chunks.getResults().end());
  for (int64_t chunk = looped / W; chunk < padded(size) / W; ++chunk) {
    Value part = evaluate(iteration, source, chunk);
    if (size % W != 0 && chunk + 1 == padded(size) / W)
      part = maskTail(op, part);
    Value &sum = sums[chunk % kChunksAtOnce];
    sum = combine(op.getKind(), sum, part);
  }
  while (sums.size() > 1) {
    Value last = sums.pop_back_val();
    Value &sum = sums[sums.size() / 2];
    sum = combine(op.getKind(), sum, last);
  }
  return sums.front();
}

Value KernelLowering::evaluateReduction(Iteration &iteration, ReduceOp op,
                                        int64_t chunk) {
  int64_t size = tileType(op.getSource()).getDimSize(1);
  int64_t columns = padded(size) / W;
  if (isLong(size) && op.getType().getDimSize(1) == 1)
    return horizontal(op.getKind(), reduceLong(iteration, op));
  int64_t kept = std::max<int64_t>(op.getType().getDimSize(1) / W, 1);
  SmallVector<Value> parts;
  for (int64_t part = chunk; part < columns; part += kept)
    parts.push_back(evaluate(iteration, op.getSource(), part));
  if (size % W != 0)
    parts.back() = maskTail(op, parts.back());
  while (parts.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < parts.size(); i += 2)
      next.push_back(combine(op.getKind(), parts[i], parts[i + 1]));
    if (parts.size() % 2 != 0)
      next.push_back(parts.back());
    parts = next;
  }
  if (op.getType().getDimSize(1) > 1)
    return parts[0];
  return horizontal(op.getKind(), parts[0]);
}

Value KernelLowering::evaluate(Iteration &iteration, Value tile,
                               int64_t chunk) {
  Kind kind = kindOf(tile);
  Value &memo = iteration.values[{tile, chunk}];
  if (memo)
    return memo;
  Value result;
  auto buffer = buffers.find(tile);
  Operation *op = tile.getDefiningOp();
  if (buffer != buffers.end()) {
    Type element = tileType(tile).getElementType();
    SmallVector<Value> indices;
    if (kind == Kind::Rows)
      indices = {iteration.row};
    else if (kind == Kind::Columns)
      indices = {columnOf(iteration, chunk)};
    else
      indices = {iteration.row, columnOf(iteration, chunk)};
    result = loadVector(buffer->second, indices, element);
  } else if (isFree(op)) {
    result = evaluateLeaf(iteration, tile, chunk);
  } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    Value source = broadcast.getSource();
    result = kindOf(source) == Kind::Rows && kind != Kind::Rows
                 ? rowScalar(iteration, source)
                 : evaluate(iteration, source, chunk);
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    result = evaluateReduction(iteration, reduce, chunk);
  } else if (auto mask = dyn_cast<MaskOp>(op)) {
    Value visible = evaluate(iteration, mask.getVisible(), chunk);
    Value scores = evaluate(iteration, mask.getScores(), chunk);
    Value hidden = splatVector(tileType(tile).getElementType(),
                               -std::numeric_limits<double>::infinity());
    result = arith::SelectOp::create(b, loc, visible, scores, hidden);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(kindOf(operand) == Kind::Scalar
                             ? scalar(operand)
                             : evaluate(iteration, operand, chunk));
    if (auto gather = dyn_cast<GatherOp>(op))
      result = gatherVector(gather, ArrayRef<Value>(operands).drop_front());
    else
      result = elementwise(op, operands);
  }
  return iteration.values[{tile, chunk}] = result;
}
