//===- FITileFolds.cpp - folding and canonical forms of fi_tile -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is left of broadcasts, masks and reductions once constants are known: an
// always visible tile is not masked, and one value in all places is a splat.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

OpFoldResult ColumnsOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType() && getFirst() == 0 && getStep() == 1)
    return getSource();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(getType());
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(getType());
  // The dimensions of size 1 of the first source are 1 in between or repeated.
  if (auto inner = getSource().getDefiningOp<BroadcastOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

namespace {
/// broadcast (splat x) -> splat x
struct BroadcastOfSplat : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(BroadcastOp op,
                                PatternRewriter &rewriter) const override {
    auto splat = op.getSource().getDefiningOp<tensor::SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "source is no tensor.splat");
    rewriter.replaceOpWithNewOp<tensor::SplatOp>(op, splat.getInput(),
                                                 op.getType());
    return success();
  }
};
} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<BroadcastOfSplat>(context);
}

OpFoldResult MaskOp::fold(FoldAdaptor adaptor) {
  auto visible = dyn_cast_if_present<SplatElementsAttr>(adaptor.getVisible());
  if (!visible)
    return {};
  if (visible.getSplatValue<bool>())
    return getScores();
  auto element = cast<FloatType>(getType().getElementType());
  return DenseElementsAttr::get(
      cast<ShapedType>(getType()),
      APFloat::getInf(element.getFloatSemantics(), /*Negative=*/true));
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return {};
}
