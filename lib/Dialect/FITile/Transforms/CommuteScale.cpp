//===- CommuteScale.cpp - scales scores after their maximum ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A positive factor changes no order and leaves -inf alone, so that it may come
// after masks and maxima: then only the subtraction multiplies, and both are
// one instruction.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILECOMMUTESCALE
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// The factor of a product with equal positive finite elements.
std::optional<APFloat> positiveFactor(arith::MulFOp product) {
  DenseElementsAttr dense;
  if (!matchPattern(product.getRhs(), m_Constant(&dense)) || !dense.isSplat())
    return std::nullopt;
  APFloat factor = dense.getSplatValue<APFloat>();
  if (!factor.isFinite() || factor.isNegative() || factor.isZero())
    return std::nullopt;
  return factor;
}

Value splat(OpBuilder &b, Location loc, Type type, const APFloat &value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(cast<ShapedType>(type), value));
}

/// mask(x * c) becomes mask(x) * c.
struct ScaleAfterMask : OpRewritePattern<MaskOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MaskOp op,
                                PatternRewriter &rewriter) const override {
    auto product = op.getScores().getDefiningOp<arith::MulFOp>();
    if (!product || !positiveFactor(product))
      return rewriter.notifyMatchFailure(op, "not a positive constant factor");
    auto mask = MaskOp::create(rewriter, op.getLoc(), product.getLhs(),
                               op.getVisible());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, mask, product.getRhs());
    return success();
  }
};

/// max(x * c) becomes max(x) * c.
struct ScaleAfterMax : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto product = op.getSource().getDefiningOp<arith::MulFOp>();
    std::optional<APFloat> factor =
        product ? positiveFactor(product) : std::nullopt;
    if (op.getKind() != ReduceKind::Max || !factor)
      return rewriter.notifyMatchFailure(op, "not a positive constant factor");
    auto top = ReduceOp::create(rewriter, op.getLoc(), op.getType(),
                                op.getKind(), product.getLhs());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, top, splat(rewriter, op.getLoc(), op.getType(), *factor));
    return success();
  }
};

struct CommuteScalePass
    : fi::tile::impl::FITileCommuteScaleBase<CommuteScalePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ScaleAfterMask, ScaleAfterMax>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    // x * c - m is one instruction.
    getOperation().walk([&](arith::SubFOp difference) {
      auto product = difference.getLhs().getDefiningOp<arith::MulFOp>();
      if (!product || !product->hasOneUse() ||
          !isa<RankedTensorType>(difference.getType()))
        return;
      for (Operation *op : {product.getOperation(), difference.getOperation()})
        op->setAttr("fastmath",
                    arith::FastMathFlagsAttr::get(
                        &getContext(), arith::FastMathFlags::contract));
    });
  }
};

} // namespace
