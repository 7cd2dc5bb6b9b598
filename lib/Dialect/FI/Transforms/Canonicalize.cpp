//===- Canonicalize.cpp - variants of attention in one form ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expands short spellings, then simplifies regions and captures to a fixed
// point. The steps are ordered so that none makes work for an earlier one,
// except where a loop says so.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

namespace fi {
#define GEN_PASS_DEF_FICANONICALIZEPASS
#include "fi/Dialect/FI/Transforms/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

//===----------------------------------------------------------------------===//
// Short spellings
//===----------------------------------------------------------------------===//

static void expandScore(AttentionOp op) {
  ScoreAttrInterface score = op.getScoreAttrAttr();
  if (!score)
    return;
  unsigned positions =
      AttentionOp::getScoreArgumentTypes(op.getContext()).size();
  Block *block = op.addRegionBlock(op.getScoreRegion());
  OpBuilder b = OpBuilder::atBlockEnd(block);
  Value value = score.buildScore(b, op.getLoc(),
                                 block->getArguments().take_front(positions));
  fi::YieldOp::create(b, op.getLoc(), value);
  op.removeScoreAttrAttr();
}

/// All masks become one region, attributes first.
static void expandMasks(AttentionOp op) {
  ArrayAttr masks = op.getMasksAttr();
  if (!masks)
    return;
  op.removeMasksAttr();
  if (masks.empty())
    return;
  unsigned positions =
      AttentionOp::getMaskArgumentTypes(op.getContext()).size();
  Region &region = op.getMaskRegion();
  Block *block = region.empty() ? op.addRegionBlock(region) : &region.front();
  Operation *yield =
      block->mightHaveTerminator() ? block->getTerminator() : nullptr;
  OpBuilder b = yield ? OpBuilder(yield) : OpBuilder::atBlockEnd(block);
  Value visible;
  auto require = [&](Value mask) {
    visible =
        visible
            ? arith::AndIOp::create(b, op.getLoc(), visible, mask).getResult()
            : mask;
  };
  for (Attribute mask : masks)
    require(cast<MaskAttrInterface>(mask).buildMask(
        b, op.getLoc(), block->getArguments().take_front(positions)));
  if (yield) {
    require(yield->getOperand(0));
    yield->setOperand(0, visible);
  } else {
    fi::YieldOp::create(b, op.getLoc(), visible);
  }
}

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

/// The block argument of a region that stands for a capture.
static BlockArgument captureArgument(AttentionOp op, Region &region,
                                     unsigned capture) {
  return region.getArgument(region.getNumArguments() - op.getCaptures().size() +
                            capture);
}

static void eraseCapture(AttentionOp op, unsigned capture) {
  for (Region &region : op->getRegions())
    if (!region.empty())
      region.front().eraseArgument(
          captureArgument(op, region, capture).getArgNumber());
  op.getCapturesMutable().erase(capture);
}

/// Uses of a capture that another one equals, or of a constant, go to that.
static void mergeCaptures(AttentionOp op) {
  for (auto [index, value] : llvm::enumerate(op.getCaptures())) {
    unsigned first =
        llvm::find(op.getCaptures(), value) - op.getCaptures().begin();
    Operation *constant = value.getDefiningOp();
    bool isConstant = constant && constant->hasTrait<OpTrait::ConstantLike>() &&
                      value.getType().isIntOrIndexOrFloat();
    for (Region &region : op->getRegions()) {
      if (region.empty())
        continue;
      BlockArgument argument = captureArgument(op, region, index);
      if (isConstant && !argument.use_empty()) {
        Operation *copy = constant->clone();
        region.front().getOperations().push_front(copy);
        argument.replaceAllUsesWith(copy->getResult(0));
      } else if (first != index) {
        argument.replaceAllUsesWith(captureArgument(op, region, first));
      }
    }
  }
}

static void dropDeadCaptures(AttentionOp op) {
  for (unsigned index = op.getCaptures().size(); index-- > 0;)
    if (llvm::all_of(op->getRegions(), [&](Region &region) {
          return region.empty() ||
                 captureArgument(op, region, index).use_empty();
        }))
      eraseCapture(op, index);
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Whether a region's result is what it would be without the region.
static bool isTrivial(AttentionOp op, Region &region) {
  Operation *yield = region.front().getTerminator();
  if (&region == &op.getMaskRegion())
    return matchPattern(yield->getOperand(0), m_One());
  if (&region == &op.getScoreRegion())
    return yield->getOperand(0) == region.getArgument(0);
  return yield->getOperand(0) == region.getArgument(0) &&
         yield->getOperand(1) == region.getArgument(1);
}

/// Conversions between `index` and integers of fewer bits than it has: 64.
static bool isNarrowCast(Operation *op, bool toIndex) {
  if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, index::CastSOp,
           index::CastUOp>(op))
    return false;
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  return toIndex ? to.isIndex() && from.getIntOrFloatBitWidth() < 64
                 : from.isIndex() && to.getIntOrFloatBitWidth() < 64;
}

/// MLIR folds a cast of `index` to fewer bits and back to nothing; where a
/// region casts both ways, the bits that go are a truncation of i64.
static void spellTruncations(Region &region) {
  SmallVector<Operation *> casts;
  bool returns = false;
  region.walk([&](Operation *op) {
    returns |= isNarrowCast(op, /*toIndex=*/true);
    if (isNarrowCast(op, /*toIndex=*/false))
      casts.push_back(op);
  });
  if (!returns)
    return;
  for (Operation *op : casts) {
    OpBuilder b(op);
    Value wide = arith::IndexCastOp::create(b, op->getLoc(), b.getI64Type(),
                                            op->getOperand(0));
    op->getResult(0).replaceAllUsesWith(arith::TruncIOp::create(
        b, op->getLoc(), op->getResult(0).getType(), wide));
    op->erase();
  }
}

/// Puts each operation in front of its first use, so that the order depends on
/// the expressions alone. What is not used goes.
static void orderByUse(Block &block) {
  llvm::SetVector<Operation *> order;
  Operation *terminator = block.getTerminator();
  SmallVector<std::pair<Operation *, bool>> stack = {{terminator, false}};
  while (!stack.empty()) {
    auto [op, ready] = stack.pop_back_val();
    if (ready) {
      order.insert(op);
      continue;
    }
    if (order.contains(op))
      continue;
    stack.push_back({op, true});
    SmallVector<Operation *> needed;
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *definition = operand.getDefiningOp())
          if (definition->getBlock() == &block)
            needed.push_back(definition);
    });
    for (Operation *definition : llvm::reverse(needed))
      if (!order.contains(definition))
        stack.push_back({definition, false});
  }
  for (Operation *op : order)
    if (op != terminator)
      op->moveBefore(terminator);
  // All of a region is pure (ATT13), so what is in front now is dead.
  while (!order.contains(&block.front())) {
    block.front().dropAllUses();
    block.front().erase();
  }
  for (Operation &op : block)
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (inner.mightHaveTerminator())
          orderByUse(inner);
}

namespace {

struct Canonicalize : fi::impl::FICanonicalizePassBase<Canonicalize> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet owned(context);
    for (StringRef dialect : {"arith", "math", "index", "scf"})
      for (RegisteredOperationName name :
           context->getRegisteredOperationsByDialect(dialect))
        name.getCanonicalizationPatterns(owned, context);
    patterns = std::move(owned);
    return success();
  }

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      expandScore(op);
      expandMasks(op);
      mergeCaptures(op);
      for (Region &region : op->getRegions()) {
        spellTruncations(region);
        if (!region.empty() && failed(simplify(op, region)))
          return signalPassFailure();
      }
      for (Region &region : op->getRegions())
        if (!region.empty() && isTrivial(op, region)) {
          region.dropAllReferences();
          region.getBlocks().clear();
        }
      // A pairing belongs to a transform (ATT19).
      if (op.getQueryRegion().empty() && op.getKeyRegion().empty())
        op.removePairingAttr();
      dropDeadCaptures(op);
    }
  }

  /// Folds, and merges common expressions, until neither finds anything.
  LogicalResult simplify(AttentionOp op, Region &region) {
    IRRewriter rewriter(op.getContext());
    GreedyRewriteConfig config;
    config.setScope(&region);
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    for (int round = 0; round < kMaxRounds; ++round) {
      SmallVector<Operation *> inside;
      region.walk([&](Operation *inner) {
        if (!isa<fi::YieldOp>(inner))
          inside.push_back(inner);
      });
      bool changed = false, merged = false;
      (void)applyOpPatternsGreedily(inside, patterns, config, &changed);
      DominanceInfo dominance(op);
      eliminateCommonSubExpressions(rewriter, dominance, op, &merged);
      if (!changed && !merged)
        break;
    }
    orderByUse(region.front());
    return success();
  }

  static constexpr int kMaxRounds = 8;
  FrozenRewritePatternSet patterns;
};

} // namespace
