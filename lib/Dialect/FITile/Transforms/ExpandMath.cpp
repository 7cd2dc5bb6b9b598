//===- ExpandMath.cpp - functions by powers of two ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A soft cap computes a hyperbolic tangent of every score. GPUs have powers of
// two and reciprocals as instructions of enough digits; their tangent has 11.
//
//===----------------------------------------------------------------------===//

#include "Splat.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEEXPANDMATH
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct ExpandMathPass : fi::tile::impl::FITileExpandMathBase<ExpandMathPass> {
  void runOnOperation() override {
    getOperation().walk([](math::TanhOp op) {
      auto type = dyn_cast<RankedTensorType>(op.getType());
      if (type && type.getElementType().isF32() &&
          bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
        expand(op, type);
    });
  }

  static void expand(math::TanhOp op, RankedTensorType type) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto splat = [&](double value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(type, b.getF32FloatAttr(value)));
    };
    auto fast = [&](arith::FastMathFlags flags) {
      return arith::FastMathFlagsAttr::get(b.getContext(), flags);
    };
    double factor = 2 * llvm::numbers::log2e;
    Value x = op.getOperand();
    if (auto product = x.getDefiningOp<arith::MulFOp>())
      if (std::optional<APFloat> other = getSplat(product.getRhs())) {
        factor *= other->convertToFloat();
        x = product.getLhs();
      }
    x = arith::MulFOp::create(b, loc, x, splat(factor));
    Value power =
        math::Exp2Op::create(b, loc, x, fast(arith::FastMathFlags::afn));
    // The negative of the reciprocal, of which a positive multiple remains.
    Value below = arith::SubFOp::create(b, loc, splat(-1), power);
    Value part = arith::DivFOp::create(
        b, loc, splat(1), below,
        fast(arith::FastMathFlags::arcp | arith::FastMathFlags::afn));
    auto free =
        fast(arith::FastMathFlags::reassoc | arith::FastMathFlags::contract);
    Value twice = arith::MulFOp::create(b, loc, part, splat(2), free);
    op.replaceAllUsesWith(
        arith::AddFOp::create(b, loc, twice, splat(1), free).getResult());
    op.erase();
  }
};

} // namespace
