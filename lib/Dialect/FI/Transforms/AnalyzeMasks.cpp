//===- AnalyzeMasks.cpp - bounds on visible keys from masks ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes what lib/Analysis finds. Bounds that were there before are replaced.
//
//===----------------------------------------------------------------------===//

#include "fi/Analysis/MaskBounds.h"
#include "fi/Dialect/FI/Transforms/Passes.h"

namespace fi {
#define GEN_PASS_DEF_FIANALYZEMASKSPASS
#include "fi/Dialect/FI/Transforms/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

namespace {
struct AnalyzeMasks : fi::impl::FIAnalyzeMasksPassBase<AnalyzeMasks> {
  void runOnOperation() override {
    getOperation()->walk([&](AttentionOp op) {
      FailureOr<MaskBounds> bounds = analyzeMask(op);
      if (failed(bounds)) {
        op.removeBoundsAttr();
        return;
      }
      for (auto &[loc, text] : bounds->remarks)
        emitRemark(loc) << "cannot bound this mask: " << text;
      op.setBoundsAttr(bounds->toAttr(op.getContext()));
    });
    markAllAnalysesPreserved();
  }
};
} // namespace
