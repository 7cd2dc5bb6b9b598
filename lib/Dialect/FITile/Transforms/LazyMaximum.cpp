//===- LazyMaximum.cpp - maxima of rows where they may matter alone -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The subtrahend of a row's exponentials moves where the row's maximum exceeds
// it by a limit. Whether any row's does, lanes see from their own elements; the
// maxima of rows, for which lanes ask one another, the new subtrahends and the
// factors of what was summed before are computed where one does.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILELAZYMAXIMUM
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// A moving subtrahend: `select(maximum * factor <= before + limit, before,
/// maximum
/// * factor)`, and the factor of what was summed with the one before.
struct Subtrahend {
  arith::SelectOp next;
  Value before;
  arith::AddFOp limit;
  ReduceOp maximum;
  /// What multiplies the maximum; null: nothing.
  Value factor;
  /// `next`, 0 where it is infinite, and 2 to the power of `before` less that.
  arith::SelectOp finite;
  math::Exp2Op decay;
  /// The branch that multiplies the accumulator.
  scf::IfOp rescale;
};

struct LazyMaximumPass
    : fi::tile::impl::FITileLazyMaximumBase<LazyMaximumPass> {
  void runOnOperation() override {
    int64_t lanes = getOperation().getSchedule().getLanes();
    if (lanes != kQuad)
      return;
    SmallVector<Subtrahend> found;
    getOperation().walk([&](scf::IfOp rescale) {
      if (std::optional<Subtrahend> one = match(rescale))
        found.push_back(*one);
    });
    for (Subtrahend &one : found)
      rewrite(one, lanes);
  }

private:
  static std::optional<Subtrahend> match(scf::IfOp rescale) {
    Subtrahend s;
    s.rescale = rescale;
    auto any = rescale.getCondition().getDefiningOp<AnyOp>();
    auto differs =
        any ? any.getSource().getDefiningOp<arith::CmpFOp>() : arith::CmpFOp();
    if (!differs || differs.getPredicate() != arith::CmpFPredicate::UNE ||
        !any->hasOneUse())
      return {};
    s.decay = differs.getLhs().getDefiningOp<math::Exp2Op>();
    auto difference = s.decay
                          ? s.decay.getOperand().getDefiningOp<arith::SubFOp>()
                          : arith::SubFOp();
    s.finite = difference ? difference.getRhs().getDefiningOp<arith::SelectOp>()
                          : arith::SelectOp();
    s.next = s.finite
                 ? s.finite.getFalseValue().getDefiningOp<arith::SelectOp>()
                 : arith::SelectOp();
    auto isKept = s.next ? s.next.getCondition().getDefiningOp<arith::CmpFOp>()
                         : arith::CmpFOp();
    if (!isKept || isKept.getPredicate() != arith::CmpFPredicate::OLE)
      return {};
    s.before = s.next.getTrueValue();
    Value scaled = s.next.getFalseValue();
    s.limit = isKept.getRhs().getDefiningOp<arith::AddFOp>();
    if (isKept.getLhs() != scaled || !s.limit || s.limit.getLhs() != s.before ||
        difference.getLhs() != s.before || !isa<BlockArgument>(s.before))
      return {};
    s.maximum = scaled.getDefiningOp<ReduceOp>();
    if (auto product = scaled.getDefiningOp<arith::MulFOp>()) {
      Attribute constant;
      if (!matchPattern(product.getRhs(), m_Constant(&constant)))
        return {};
      s.factor = product.getRhs();
      s.maximum = product.getLhs().getDefiningOp<ReduceOp>();
    }
    auto isScaled = [&](Operation *user) {
      return user == s.next || user == isKept || s.factor;
    };
    if (!s.maximum || s.maximum.getKind() != ReduceKind::Max ||
        (s.factor && !s.maximum->hasOneUse()) ||
        !llvm::all_of(s.maximum->getUsers(), isScaled) ||
        s.maximum.getType().getDimSize(1) != 1 ||
        s.maximum.getSource().getType().getDimSize(1) % kQuad != 0)
      return {};
    return s;
  }

  /// A tile of the same value everywhere as `like`.
  static Value constantLike(OpBuilder &b, Location loc, Value constant,
                            RankedTensorType type) {
    DenseElementsAttr value;
    if (!matchPattern(constant, m_Constant(&value)) || !value.isSplat())
      return {};
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, value.getSplatValue<Attribute>()));
  }

  static void rewrite(Subtrahend &s, int64_t lanes) {
    OpBuilder b(s.next);
    Location loc = s.next.getLoc();
    auto row = cast<RankedTensorType>(s.next.getType());
    auto parts =
        RankedTensorType::get({row.getDimSize(0), lanes}, row.getElementType());
    Value own =
        ReduceOp::create(b, loc, parts, ReduceKind::Max, s.maximum.getSource());
    Value scaled = own;
    if (s.factor) {
      Value factor = constantLike(b, loc, s.factor, parts);
      if (!factor)
        return;
      scaled = arith::MulFOp::create(b, loc, own, factor);
    }
    Value limit = BroadcastOp::create(b, loc, parts, s.limit);
    Value exceeds =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT, scaled, limit);
    Value any = AnyOp::create(b, loc, exceeds);
    auto branch =
        scf::IfOp::create(b, loc, TypeRange{row, row}, any,
                          /*addThenBlock=*/true, /*addElseBlock=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      IRMapping map;
      map.map(s.maximum.getSource(), own);
      // The maxima of rows from those of lanes, and all that follows.
      Value maximum =
          ReduceOp::create(b, loc, row, ReduceKind::Max, own).getResult();
      map.map(s.maximum.getResult(), maximum);
      auto clone = [&](Operation *op) {
        return b.clone(*op, map)->getResult(0);
      };
      if (s.factor)
        clone(s.next.getFalseValue().getDefiningOp());
      clone(s.next.getCondition().getDefiningOp());
      Value next = clone(s.next);
      clone(s.finite.getCondition().getDefiningOp());
      clone(s.finite);
      clone(s.decay.getOperand().getDefiningOp());
      Value decay = clone(s.decay);
      scf::YieldOp::create(b, loc, ValueRange{next, decay});
      b.setInsertionPointToStart(branch.elseBlock());
      Value one = arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(
              row, b.getFloatAttr(row.getElementType(), 1).getValue()));
      scf::YieldOp::create(b, loc, ValueRange{s.before, one});
    }
    Operation *old[] = {s.rescale.getCondition().getDefiningOp()};
    s.rescale.getConditionMutable().assign(any);
    s.decay.getResult().replaceAllUsesWith(branch.getResult(1));
    s.next.getResult().replaceAllUsesWith(branch.getResult(0));
    // What nothing uses any more.
    SmallVector<Operation *> dead(std::begin(old), std::end(old));
    llvm::append_values(dead, s.decay.getOperation(), s.next.getOperation());
    while (!dead.empty()) {
      Operation *op = dead.pop_back_val();
      if (!op || !isOpTriviallyDead(op))
        continue;
      for (Value operand : op->getOperands())
        dead.push_back(operand.getDefiningOp());
      op->erase();
    }
  }
};

} // namespace
