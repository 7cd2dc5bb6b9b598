//===- Visibility.cpp - parts of products that masks hide -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A partial tile hides some of its scores. Where a mask is known before the
// product that it applies to, the tile's blocks of rows are asked, before any
// product, from which key to which they see anything. Scores outside are not
// computed, since the mask replaces them; weights outside are 0, so that their
// values are not multiplied. Any mask is served: it is evaluated, not analysed.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Whether a value can be evaluated from what has been lowered so far.
bool KernelLowering::isAvailable(Value value) {
  if (kindOf(value) == Kind::Scalar)
    return scalars.contains(value);
  if (buffers.count(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && isLazy(op) && !isa<ReduceOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isa<MemRefType>(operand.getType()) || isAvailable(operand);
         });
}

std::optional<KernelLowering::Extents> KernelLowering::extentsOf(Value visible,
                                                                 Block *block) {
  auto known = extents.find(visible);
  if (known != extents.end())
    return known->second;
  Operation *op = visible.getDefiningOp();
  if (!op || op->getBlock() != block || kindOf(visible) != Kind::Matrix ||
      tileType(visible).getDimSize(1) % W != 0 || !isAvailable(visible))
    return std::nullopt;
  // What is one value per row has a buffer first, as in any loop over rows;
  // what is dear and one value per key is not computed for each row.
  SmallVector<Value> sources;
  std::function<void(Value)> collect = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (kindOf(value) == Kind::Scalar || buffers.count(value) || isFree(op))
      return;
    if (kindOf(value) == Kind::Rows ||
        (kindOf(value) == Kind::Columns && isExpensive(value))) {
      sources.push_back(value);
      return;
    }
    for (Value operand : op->getOperands())
      collect(operand);
  };
  collect(visible);
  if (failed(materialise(sources, nullptr)))
    return std::nullopt;
  int64_t rows = padded(tileType(visible).getDimSize(0));
  int64_t chunks = tileType(visible).getDimSize(1) / W;
  Extents result = {allocateRaw({rows}, b.getIndexType()),
                    allocateRaw({rows}, b.getIndexType())};
  loop(index(0), rowBound, schedule.getMr(), [&](Value row) {
    SmallVector<Value> none(chunks, splatVector(b.getI1Type(), 0));
    auto inBlock = scf::ForOp::create(b, loc, row, add(row, schedule.getMr()),
                                      index(1), none);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(inBlock.getBody());
      Iteration iteration(/*overRows=*/false, inBlock.getInductionVar());
      SmallVector<Value> seen(inBlock.getRegionIterArgs());
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        seen[chunk] = arith::OrIOp::create(b, loc, seen[chunk],
                                           evaluate(iteration, visible, chunk));
      scf::YieldOp::create(b, loc, seen);
    }
    Value first = index(0), limit = index(0);
    SmallVector<Value> any;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      any.push_back(vector::ReductionOp::create(
          b, loc, vector::CombiningKind::OR, inBlock.getResult(chunk)));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      limit = arith::SelectOp::create(b, loc, any[chunk],
                                      index((chunk + 1) * W), limit);
      int64_t back = chunks - 1 - chunk;
      first =
          arith::SelectOp::create(b, loc, any[back], index(back * W), first);
    }
    memref::StoreOp::create(b, loc, first, result.first, row);
    memref::StoreOp::create(b, loc, limit, result.limit, row);
  });
  return extents[visible] = result;
}

/// The mask that replaces what it hides of a tile before anything else reads
/// it.
static MaskOp maskAfter(Value tile) {
  while (tile.hasOneUse()) {
    Operation *user = *tile.user_begin();
    if (auto mask = dyn_cast<MaskOp>(user))
      return tile == mask.getScores() ? mask : MaskOp();
    if (!user->hasTrait<OpTrait::Elementwise>() || user->getNumResults() != 1)
      return MaskOp();
    tile = user->getResult(0);
  }
  return MaskOp();
}

std::optional<KernelLowering::Extents>
KernelLowering::extentsOfResult(DotOp op) {
  MaskOp mask = maskAfter(op.getResult());
  return mask ? extentsOf(mask.getVisible(), op->getBlock()) : std::nullopt;
}

/// 2^(x - y) with x = -inf where hidden is 0 there. y is one value per row: the
/// maximum, 0 instead of -inf; where it is NaN, so is the whole row.
std::optional<KernelLowering::Extents>
KernelLowering::extentsOfTerms(DotOp op) {
  Value tile = op.getA();
  if (auto narrowed = tile.getDefiningOp<arith::TruncFOp>())
    tile = narrowed.getIn();
  auto exp2 = tile.getDefiningOp<math::Exp2Op>();
  auto difference =
      exp2 ? exp2.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  if (!difference)
    return std::nullopt;
  auto mask = difference.getLhs().getDefiningOp<MaskOp>();
  auto spread = difference.getRhs().getDefiningOp<BroadcastOp>();
  if (!mask || !spread || kindOf(spread.getSource()) != Kind::Rows)
    return std::nullopt;
  return extentsOf(mask.getVisible(), op->getBlock());
}

void KernelLowering::whereVisible(const std::optional<Extents> &extents,
                                  Value row, Value column, int64_t columns,
                                  llvm::function_ref<void()> body) {
  if (!extents)
    return body();
  Value first = memref::LoadOp::create(b, loc, extents->first, row);
  Value limit = memref::LoadOp::create(b, loc, extents->limit, row);
  Value begins = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, first,
                                       add(column, columns));
  Value ends =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, limit, column);
  auto branch = scf::IfOp::create(
      b, loc, arith::AndIOp::create(b, loc, begins, ends), false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}
