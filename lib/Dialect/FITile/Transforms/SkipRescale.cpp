//===- SkipRescale.cpp - multiplies accumulators only where it matters ----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most tiles leave the subtrahend of the exponentials as it is, and the factor
// of the accumulator is 1 for all rows: a branch that all lanes of a warp take
// alike then saves a multiplication per element.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILESKIPRESCALE
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct SkipRescalePass
    : fi::tile::impl::FITileSkipRescaleBase<SkipRescalePass> {
  void runOnOperation() override {
    SmallVector<arith::MulFOp> products;
    getOperation().walk([&](DotOp dot) {
      if (!dot.getAcc())
        return;
      auto product = dot.getAcc().getDefiningOp<arith::MulFOp>();
      if (product && product->hasOneUse() &&
          isa<BlockArgument>(product.getLhs()) &&
          product.getRhs().getDefiningOp<BroadcastOp>())
        products.push_back(product);
    });
    for (arith::MulFOp product : products) {
      OpBuilder b(product);
      Location loc = product.getLoc();
      Value factor = product.getRhs().getDefiningOp<BroadcastOp>().getSource();
      auto type = cast<RankedTensorType>(factor.getType());
      Value one = arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(
              type, b.getFloatAttr(type.getElementType(), 1).getValue()));
      Value differs =
          arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, factor, one);
      Value any = AnyOp::create(b, loc, differs);
      auto branch = scf::IfOp::create(b, loc, TypeRange{product.getType()}, any,
                                      /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
      product.getResult().replaceAllUsesWith(branch.getResult(0));
      Value broadcast = product.getRhs();
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, loc, product.getLhs());
      product->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
      if (broadcast.hasOneUse())
        broadcast.getDefiningOp()->moveBefore(product);
      b.setInsertionPointToEnd(branch.thenBlock());
      scf::YieldOp::create(b, loc, product.getResult());
    }
  }
};

} // namespace
