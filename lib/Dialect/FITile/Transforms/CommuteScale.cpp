//===- CommuteScale.cpp - scales scores after their maximum ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A positive factor changes no order and leaves -inf alone, so that it may come
// after masks and maxima: then only the subtraction multiplies, and both are
// one instruction. A constant term may come later still, to one number a row.
//
//===----------------------------------------------------------------------===//

#include "Splat.h"
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
  std::optional<APFloat> factor = getSplat(product.getRhs());
  if (!factor || !factor->isFinite() || factor->isNegative() ||
      factor->isZero())
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

/// The constant term of a sum with equal finite elements that may be added
/// later.
std::optional<APFloat> freeTerm(arith::AddFOp sum) {
  if (!sum ||
      !bitEnumContainsAll(sum.getFastmath(), arith::FastMathFlags::reassoc))
    return std::nullopt;
  std::optional<APFloat> term = getSplat(sum.getRhs());
  return term && term->isFinite() ? term : std::nullopt;
}

arith::AddFOp addLater(PatternRewriter &rewriter, Location loc, Value x,
                       const APFloat &term) {
  return arith::AddFOp::create(
      rewriter, loc, x, splat(rewriter, loc, x.getType(), term),
      arith::FastMathFlagsAttr::get(rewriter.getContext(),
                                    arith::FastMathFlags::reassoc |
                                        arith::FastMathFlags::contract));
}

/// mask(x + c) becomes mask(x) + c, max(x + c) becomes max(x) + c.
struct TermAfterMask : OpRewritePattern<MaskOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MaskOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getScores().getDefiningOp<arith::AddFOp>();
    std::optional<APFloat> term = freeTerm(sum);
    if (!term)
      return rewriter.notifyMatchFailure(op, "not a constant term");
    auto mask =
        MaskOp::create(rewriter, op.getLoc(), sum.getLhs(), op.getVisible());
    rewriter.replaceOp(op, addLater(rewriter, op.getLoc(), mask, *term));
    return success();
  }
};
struct TermAfterMax : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getSource().getDefiningOp<arith::AddFOp>();
    std::optional<APFloat> term = freeTerm(sum);
    if (op.getKind() != ReduceKind::Max || !term)
      return rewriter.notifyMatchFailure(op, "not a constant term");
    auto top = ReduceOp::create(rewriter, op.getLoc(), op.getType(),
                                op.getKind(), sum.getLhs());
    rewriter.replaceOp(op, addLater(rewriter, op.getLoc(), top, *term));
    return success();
  }
};

/// (x + c) * d becomes x * d + c * d.
struct TermAfterProduct : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getLhs().getDefiningOp<arith::AddFOp>();
    std::optional<APFloat> term = freeTerm(sum);
    std::optional<APFloat> factor = positiveFactor(op);
    if (!term || !factor)
      return rewriter.notifyMatchFailure(op, "not a constant term and factor");
    Location loc = op.getLoc();
    Value x = sum.getLhs();
    APFloat product = *term;
    product.multiply(*factor, APFloat::rmNearestTiesToEven);
    x = arith::MulFOp::create(rewriter, loc, x, op.getRhs());
    rewriter.replaceOp(op, addLater(rewriter, loc, x, product));
    return success();
  }
};

/// (x * a) * c becomes x * (a * c), where a is a power of two: nothing is
/// rounded otherwise.
struct MergeFactors : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getLhs().getDefiningOp<arith::MulFOp>();
    std::optional<APFloat> factor = positiveFactor(op);
    std::optional<APFloat> other = inner ? positiveFactor(inner) : std::nullopt;
    if (!factor || !other || other->getExactLog2() == INT_MIN)
      return rewriter.notifyMatchFailure(op, "not a power of two");
    factor->multiply(*other, APFloat::rmNearestTiesToEven);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, inner.getLhs(),
        splat(rewriter, op.getLoc(), op.getType(), *factor));
    return success();
  }
};

/// (x + c) - m becomes x - (m - c), where m is one number a row.
struct TermToSubtrahend : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubFOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getLhs().getDefiningOp<arith::AddFOp>();
    auto spread = op.getRhs().getDefiningOp<BroadcastOp>();
    std::optional<APFloat> term = freeTerm(sum);
    if (!term || !spread)
      return rewriter.notifyMatchFailure(op, "not a constant term");
    Location loc = op.getLoc();
    Value row = spread.getSource();
    row = arith::SubFOp::create(rewriter, loc, row,
                                splat(rewriter, loc, row.getType(), *term));
    row = BroadcastOp::create(rewriter, loc, op.getType(), row);
    rewriter.replaceOpWithNewOp<arith::SubFOp>(op, sum.getLhs(), row);
    return success();
  }
};

struct CommuteScalePass
    : fi::tile::impl::FITileCommuteScaleBase<CommuteScalePass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ScaleAfterMask, ScaleAfterMax, TermAfterMask, TermAfterMax,
                 TermAfterProduct, TermToSubtrahend, MergeFactors>(
        &getContext());
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
