//===- ApproximateMath.cpp - polynomials for functions on vectors ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trigonometry.h"
#include "fi/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fi {
#define GEN_PASS_DEF_FIAPPROXIMATEMATH
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;

namespace {
struct ApproximateMath : fi::impl::FIApproximateMathBase<ApproximateMath> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    // Functions that the polynomials are not written for, by those they are.
    populateExpansionPatterns(set, {"exp2", "tan", "sinh", "cosh", "asinh",
                                    "acosh", "atanh", "fpowi"});
    fi::populateTrigonometryPatterns(set);
    populateMathPolynomialApproximationPatterns(set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    // Most kernels have none, and a walk is cheaper than a driver.
    auto isApproximated = [](Operation *op) {
      return isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
                     !isa<math::FmaOp>(op)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    if (!getOperation()->walk(isApproximated).wasInterrupted())
      return;
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    (void)applyPatternsGreedily(getOperation(), patterns, config);
  }

  static void populateExpansionPatterns(RewritePatternSet &patterns,
                                        ArrayRef<StringRef> ops) {
    math::populateExpansionPatterns(patterns, ops);
  }

private:
  FrozenRewritePatternSet patterns;
};
} // namespace
