//===- SplitKV.cpp - attention over segments of keys ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "mlir/IR/Builders.h"

namespace fi {
#define GEN_PASS_DEF_FISPLITKVPASS
#include "fi/Dialect/FI/Transforms/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

namespace {

struct SplitKV : fi::impl::FISplitKVPassBase<SplitKV> {
  using FISplitKVPassBase::FISplitKVPassBase;

  void runOnOperation() override {
    SplitAttr byOption;
    if (!policy.empty()) {
      int64_t keys = 0;
      if (policy != "balanced" &&
          (StringRef(policy).getAsInteger(10, keys) || keys <= 0)) {
        getOperation()->emitError(
            "expected option 'policy' to be 'balanced' or a "
            "number of keys of at least 1, but got '")
            << policy << "'";
        return signalPassFailure();
      }
      byOption = SplitAttr::get(&getContext(), keys);
    }
    SmallVector<AttentionOp> ops;
    getOperation()->walk([&](AttentionOp op) { ops.push_back(op); });
    for (AttentionOp op : ops) {
      SplitAttr attr = op.getSplitAttr() ? op.getSplitAttr() : byOption;
      if (!attr || op.getSegments() || !op.getNormaliser().canMerge())
        continue;
      split(op, attr);
    }
  }

  void split(AttentionOp op, SplitAttr attr) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto query = cast<ShapedType>(op.getQuery().getType());
    auto stateType = [&](bool segmented) {
      return StateType::get(&getContext(), query.getDimSize(0),
                            query.getDimSize(1), op.getViewType().getValueDim(),
                            b.getF32Type(), op.getNormaliser(), segmented);
    };
    Value segments =
        SegmentsOp::create(b, loc, SegmentsType::get(&getContext()),
                           op.getRows(), op.getView(), attr);
    Value sink = op.getSink();
    SmallVector<Value> outs(op.getOuts());

    // The same attention, with another result.
    auto clone = cast<AttentionOp>(b.clone(*op));
    clone.removeSplitAttr();
    clone.getSinkMutable().clear();
    clone.getOutsMutable().clear();
    clone.getSegmentsMutable().assign(segments);
    b.setInsertionPoint(op);
    OperationState rebuilt(loc, clone->getName(), clone->getOperands(),
                           TypeRange{stateType(true)},
                           clone->getAttrDictionary().getValue());
    for (Region &region : clone->getRegions())
      rebuilt.addRegion()->takeBody(region);
    Operation *segmented = b.create(rebuilt);
    clone.erase();

    Value merged = MergeSegmentsOp::create(b, loc, stateType(false),
                                           segmented->getResult(0), segments);
    if (op.returnsState()) {
      op.getResult(0).replaceAllUsesWith(merged);
    } else {
      auto final =
          FinalizeOp::create(b, loc, op.getResultTypes(), merged, sink, outs);
      op.replaceAllUsesWith(final.getResults());
    }
    op.erase();
  }
};

} // namespace
