//===- LateMaximum.cpp - exponentials before the maximum of their tile ----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights are powers of scores less the subtrahend that stood before the tile,
// for which nothing has to be known of the tile. Their sums, which are needed
// anyway, tell whether it may stand: no weight exceeds the sum. Where a lane's
// sum exceeds 2 to the power of the limit, or is no number, maxima, subtrahends
// and weights are computed as ever, in a branch.
//
// A subtrahend of minus infinity, that of a row without keys so far, gives sums
// that are infinite or no numbers, and the branch.
//
//===----------------------------------------------------------------------===//

#include "Splat.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

namespace fi::tile {
#define GEN_PASS_DEF_FITILELATEMAXIMUM
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// A subtrahend that moves in a branch, as fi-tile-lazy-maximum makes it, and
/// the weights and sums that follow.
struct Weights {
  /// The branch, its condition, and what lanes compute for it.
  scf::IfOp branch;
  AnyOp any;
  arith::CmpFOp exceeds;
  ReduceOp own;
  /// In log2: by how much a score may exceed the subtrahend.
  float limit = 0;
  Value before;
  /// Their sum.
  arith::AddFOp most;
  /// The subtrahend, 0 where it is infinite, for each element of the tile.
  arith::SelectOp finite;
  BroadcastOp spread;
  arith::SubFOp difference;
  math::Exp2Op exponentials;
  ReduceOp sum;
};

struct LateMaximumPass
    : fi::tile::impl::FITileLateMaximumBase<LateMaximumPass> {
  void runOnOperation() override {
    if (!getOperation().getSchedule().getLate())
      return;
    SmallVector<Weights> found;
    llvm::SmallPtrSet<Operation *, 4> branches;
    getOperation().walk([&](math::Exp2Op op) {
      // A first tile has no subtrahend that stands before it.
      auto loop = op->getParentOfType<ForKeysOp>();
      if (!loop || loop.getSelection() == Selection::First)
        return;
      std::optional<Weights> one = match(op);
      if (one && branches.insert(one->branch).second)
        found.push_back(*one);
    });
    for (Weights &one : found)
      rewrite(one);
  }

private:
  template <typename OpTy> static OpTy only(Value value) {
    return value ? value.getDefiningOp<OpTy>() : OpTy();
  }

  static std::optional<Weights> match(math::Exp2Op exponentials) {
    Weights w;
    w.exponentials = exponentials;
    w.difference = only<arith::SubFOp>(exponentials.getOperand());
    w.spread =
        w.difference ? only<BroadcastOp>(w.difference.getRhs()) : BroadcastOp();
    w.finite = w.spread ? only<arith::SelectOp>(w.spread.getSource()) : nullptr;
    w.branch = w.finite ? only<scf::IfOp>(w.finite.getFalseValue()) : nullptr;
    if (!w.branch || w.branch.getNumResults() != 2 ||
        w.branch.getResult(0) != w.finite.getFalseValue() ||
        w.branch->getBlock() != exponentials->getBlock())
      return {};
    w.any = only<AnyOp>(w.branch.getCondition());
    w.exceeds = w.any ? only<arith::CmpFOp>(w.any.getSource()) : nullptr;
    if (!w.exceeds || w.exceeds.getPredicate() != arith::CmpFPredicate::UGT)
      return {};
    Value scaled = w.exceeds.getLhs();
    if (auto product = only<arith::MulFOp>(scaled))
      scaled = product.getLhs();
    w.own = only<ReduceOp>(scaled);
    auto limits = only<BroadcastOp>(w.exceeds.getRhs());
    auto sum = limits ? only<arith::AddFOp>(limits.getSource()) : nullptr;
    std::optional<APFloat> limit = sum ? getSplat(sum.getRhs()) : std::nullopt;
    if (!w.own || w.own.getKind() != ReduceKind::Max || !limit ||
        !w.own.getType().getElementType().isF32())
      return {};
    w.limit = limit->convertToFloat();
    w.before = sum.getLhs();
    w.most = sum;
    for (Operation *user : exponentials->getUsers())
      if (auto reduce = dyn_cast<ReduceOp>(user))
        if (reduce.getKind() == ReduceKind::Add &&
            reduce.getType() == w.own.getType())
          w.sum = reduce;
    if (!w.sum || w.sum->getBlock() != w.branch->getBlock())
      return {};
    // What else uses the branch and its condition comes behind the weights.
    Operation *own[] = {w.branch, w.finite,
                        w.finite.getCondition().getDefiningOp()};
    auto isBehind = [&](Operation *user) {
      Operation *at = w.branch->getBlock()->findAncestorOpInBlock(*user);
      return llvm::is_contained(own, user) ||
             (at && w.exponentials->isBeforeInBlock(at));
    };
    if (!llvm::all_of(w.branch->getUsers(), isBehind) ||
        !llvm::all_of(w.any->getUsers(), isBehind))
      return {};
    return w;
  }

  static void rewrite(Weights &w) {
    OpBuilder b(w.branch);
    Location loc = w.branch.getLoc();
    // What they are where the subtrahend stands.
    b.setInsertionPoint(w.exponentials);
    IRMapping map;
    Value spread =
        BroadcastOp::create(b, w.spread.getLoc(), w.spread.getType(), w.before);
    map.map(w.spread.getResult(), spread);
    auto clone = [&](Operation *op) { return b.clone(*op, map)->getResult(0); };
    clone(w.difference);
    Value weights = clone(w.exponentials);
    Value sums = clone(w.sum);
    auto parts = cast<RankedTensorType>(sums.getType());
    Value most = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(parts, std::exp2(w.limit)));
    Value exceeds =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT, sums, most);
    Value any = AnyOp::create(b, loc, exceeds);
    auto branch = scf::IfOp::create(
        b, loc,
        TypeRange{w.branch.getResult(0).getType(),
                  w.branch.getResult(1).getType(), weights.getType(), parts},
        any, /*addThenBlock=*/true, /*addElseBlock=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    auto kept = cast<scf::YieldOp>(w.branch.elseBlock()->getTerminator());
    IRMapping unmoved;
    for (Operation &op : w.branch.elseBlock()->without_terminator())
      b.clone(op, unmoved);
    SmallVector<Value> values;
    for (Value value : kept.getOperands())
      values.push_back(unmoved.lookupOrDefault(value));
    values.append({weights, sums});
    scf::YieldOp::create(b, loc, values);

    b.setInsertionPointToStart(branch.thenBlock());
    // Where it is computed again anyway, a row's subtrahend moves whenever its
    // maximum exceeds it: many scores below the limit have a sum above it.
    IRMapping moved;
    moved.map(w.most.getResult(), w.before);
    b.clone(*w.own, moved);
    for (Operation &op : w.branch.thenBlock()->without_terminator())
      b.clone(op, moved);
    values.clear();
    auto yield = cast<scf::YieldOp>(w.branch.thenBlock()->getTerminator());
    for (auto [result, value] :
         llvm::zip_equal(w.branch.getResults(), yield.getOperands())) {
      values.push_back(moved.lookupOrDefault(value));
      moved.map(result, values.back());
    }
    b.clone(*w.finite.getCondition().getDefiningOp(), moved);
    for (Operation *op :
         {w.finite.getOperation(), w.spread.getOperation(),
          w.difference.getOperation(), w.exponentials.getOperation(),
          w.sum.getOperation()}) {
      Operation *copy = b.clone(*op, moved);
      if (op == w.exponentials || op == w.sum)
        values.push_back(copy->getResult(0));
    }
    scf::YieldOp::create(b, loc, values);

    // What comes before the sums and needs the branch moves behind them: the
    // factors of sums.
    w.exponentials.getResult().replaceAllUsesExcept(branch.getResult(2), w.sum);
    w.sum.getResult().replaceAllUsesWith(branch.getResult(3));
    for (unsigned i : {0, 1})
      w.branch.getResult(i).replaceUsesWithIf(
          branch.getResult(i), [&](OpOperand &use) {
            return !llvm::is_contained(
                {w.finite.getOperation(),
                 w.finite.getCondition().getDefiningOp()},
                use.getOwner());
          });
    w.any.getResult().replaceUsesWithIf(
        any, [&](OpOperand &use) { return use.getOwner() != w.branch; });
    // What nothing uses any more, and what that alone has used.
    SmallVector<Operation *> dead = {w.sum, w.exponentials, w.branch, w.any};
    llvm::SmallPtrSet<Operation *, 16> erased;
    while (!dead.empty()) {
      Operation *op = dead.pop_back_val();
      if (!op || erased.contains(op) || !isOpTriviallyDead(op))
        continue;
      for (Value operand : op->getOperands())
        dead.push_back(operand.getDefiningOp());
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *outside = operand.getDefiningOp();
              outside && !op->isAncestor(outside))
            dead.push_back(outside);
      });
      erased.insert(op);
      op->erase();
    }
  }
};

} // namespace
