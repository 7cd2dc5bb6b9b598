//===- OnlineSoftmax.cpp - writes normalisers out -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Splat.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEONLINESOFTMAX
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A tile times a factor per row; null for 1.
Value scaleRows(DialectTileArithmetic &a, Value tile, Value factor) {
  if (!factor)
    return tile;
  return arith::MulFOp::create(a.builder, a.loc, tile,
                               a.broadcastRows(factor, tile));
}

void expand(OpBuilder &b, InitOp op) {
  Location loc = op.getLoc();
  auto acc = cast<RankedTensorType>(op.getRunning()[0].getType());
  int64_t lanes = 1;
  for (Value running : op.getRunning().drop_front())
    lanes = std::max(lanes, tileType(running).getDimSize(1));
  SmallVector<Value> values = {
      arith::ConstantOp::create(b, loc, b.getZeroAttr(acc))};
  llvm::append_range(
      values, op.getNormaliser().buildInit(b, loc, acc.getDimSize(0), lanes));
  op->replaceAllUsesWith(values);
}

void expand(OpBuilder &b, UpdateOp op) {
  Location loc = op.getLoc();
  DialectTileArithmetic a(b, loc);
  Value acc = op.getRunning()[0], values = op.getValues();
  NormaliserUpdate update = op.getNormaliser().buildUpdate(
      a, op.getScores(), op.getRunning().drop_front());
  Value weights = update.weights;
  Type element = tileType(values).getElementType();
  if (element != tileType(weights).getElementType())
    weights = arith::TruncFOp::create(b, loc, tileType(weights).clone(element),
                                      weights);
  acc = scaleRows(a, acc, update.factor);
  SmallVector<Value> results = {DotOp::create(b, loc, acc.getType(), weights,
                                              values, acc,
                                              /*transpose=*/false)};
  llvm::append_range(results, update.running);
  op->replaceAllUsesWith(results);
}

void expand(OpBuilder &b, FoldOp op) {
  DialectTileArithmetic a(b, op.getLoc());
  Value acc = op.getRunning()[0];
  SmallVector<Value> outputs, statistics;
  for (auto [i, tile] : llvm::enumerate(op.getStates()))
    (i % 2 ? statistics : outputs).push_back(tile);
  NormaliserFold update =
      op.getNormaliser().buildFold(a, statistics, op.getRunning().drop_front());
  acc = scaleRows(a, acc, update.factor);
  for (auto [output, weight] : llvm::zip_equal(outputs, update.weights))
    acc = math::FmaOp::create(b, op.getLoc(), output,
                              a.broadcastRows(weight, output), acc);
  SmallVector<Value> results = {acc};
  llvm::append_range(results, update.running);
  op->replaceAllUsesWith(results);
}

void expand(OpBuilder &b, tile::FinalizeOp op) {
  DialectTileArithmetic a(b, op.getLoc());
  auto [factor, statistic] = op.getNormaliser().buildFinalize(
      a, op.getRunning().drop_front(), op.getSink());
  Value output = scaleRows(a, op.getRunning()[0], factor);
  if (!statistic)
    statistic = arith::ConstantOp::create(
        b, op.getLoc(),
        DenseElementsAttr::get(
            tileType(op.getStatistic()),
            b.getF32FloatAttr(op.getNormaliser().getEmptyStatistic())
                .getValue()));
  op->replaceAllUsesWith(ValueRange{output, statistic});
}

void expand(OpBuilder &b, tile::MergeOp op) {
  DialectTileArithmetic a(b, op.getLoc());
  MergeWeights w =
      op.getNormaliser().buildMerge(a, op.getStatisticA(), op.getStatisticB());
  Value output = arith::AddFOp::create(
      b, op.getLoc(), scaleRows(a, op.getOutputA(), w.weightA),
      scaleRows(a, op.getOutputB(), w.weightB));
  op->replaceAllUsesWith(ValueRange{output, w.statistic});
}

void expand(OpBuilder &b, SinkOp op) {
  DialectTileArithmetic a(b, op.getLoc());
  auto [factor, statistic] =
      op.getNormaliser().buildSink(a, op.getInputStatistic(), op.getSink());
  Value output = scaleRows(a, op.getInputOutput(), factor);
  op->replaceAllUsesWith(ValueRange{output, statistic});
}

/// Replaces mulf(mask(x), splat b) by mask(mulf(x, splat b)) for positive b,
/// then mulf(mulf(x, splat a), splat b) by mulf(x, splat (a * b)), which folds
/// the scale into the change of base.
void mergeScales(KernelOp kernel) {
  auto splatOf = [](Value value) -> Value {
    if (Operation *op = value.getDefiningOp())
      if (op->getName().getStringRef() == "tensor.splat")
        return op->getOperand(0);
    return {};
  };
  auto constantOf = [](Value value) -> std::optional<double> {
    std::optional<APFloat> splat = getSplat(value);
    return splat ? std::optional(splat->convertToDouble()) : std::nullopt;
  };
  SmallVector<arith::MulFOp> products;
  kernel.walk([&](arith::MulFOp op) { products.push_back(op); });
  for (arith::MulFOp outer : products) {
    auto mask = outer.getLhs().getDefiningOp<MaskOp>();
    std::optional<double> factor = constantOf(outer.getRhs());
    if (!mask || !mask->hasOneUse() || !factor || *factor <= 0)
      continue;
    outer->moveBefore(mask);
    outer.getRhs().getDefiningOp()->moveBefore(outer);
    outer.getResult().replaceAllUsesWith(mask.getResult());
    outer.getLhsMutable().assign(mask.getScores());
    mask.getScoresMutable().assign(outer.getResult());
  }
  kernel.walk([&](arith::MulFOp outer) {
    auto inner = outer.getLhs().getDefiningOp<arith::MulFOp>();
    std::optional<double> outerFactor = constantOf(outer.getRhs());
    if (!inner || !outerFactor || !tileType(outer).getElementType().isF32())
      return;
    OpBuilder b(outer);
    Location loc = outer.getLoc();
    Value product;
    if (std::optional<double> innerFactor = constantOf(inner.getRhs())) {
      auto type = tileType(outer);
      float value = static_cast<float>(*innerFactor * *outerFactor);
      product = arith::ConstantOp::create(b, loc,
                                          DenseElementsAttr::get(type, value));
    } else if (Value scalar = splatOf(inner.getRhs())) {
      // The product of the scalars, where the splat's scalar is known.
      Operation *splat = inner.getRhs().getDefiningOp();
      b.setInsertionPoint(splat);
      Value factor = arith::ConstantOp::create(
          b, loc, b.getF32FloatAttr(static_cast<float>(*outerFactor)));
      Value scaled = arith::MulFOp::create(b, loc, scalar, factor);
      Operation *clone = b.clone(*splat);
      clone->setOperand(0, scaled);
      product = clone->getResult(0);
    } else {
      return;
    }
    outer.getLhsMutable().assign(inner.getLhs());
    outer.getRhsMutable().assign(product);
  });
}

struct OnlineSoftmaxPass
    : fi::tile::impl::FITileOnlineSoftmaxBase<OnlineSoftmaxPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<InitOp, UpdateOp, FoldOp, tile::FinalizeOp, tile::MergeOp,
              SinkOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder b(op);
      llvm::TypeSwitch<Operation *>(op)
          .Case<InitOp, UpdateOp, FoldOp, tile::FinalizeOp, tile::MergeOp,
                SinkOp>([&](auto typed) { expand(b, typed); });
      op->erase();
    }
    mergeScales(getOperation());
  }
};

} // namespace
