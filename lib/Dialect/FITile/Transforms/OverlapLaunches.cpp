//===- OverlapLaunches.cpp - a kernel begins while another ends -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is in front of the wait may run beside the launch in front: the plan's
// data is copied to the device in the stream, not written by kernels, so that
// items, ranges and page tables are there. Everything else waits, writes too:
// the launch in front may still read what this one overwrites.
//
// A launch ends when its last CTA does. If all of its CTAs ended without
// waiting, it could end before the launch in front of it, and whoever waits for
// it alone would come too early: hence the wait behind the items.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEOVERLAPLAUNCHES
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// Keys and values of tiles whose pages are known by then: they come from
/// memory while the launch in front ends.
static void prefetch(OpBuilder &b, Block &item, Block::iterator end) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::make_range(item.begin(), end)))
    if (auto locate = dyn_cast<LocateOp>(op)) {
      auto view = cast<KVViewTypeInterface>(locate.getView().getType());
      BufType buffer = locate.getType().getBuffer();
      for (KVPart part : {KVPart::Keys, view.getSecondPart()})
        if (view.getTable(part) == locate.getTable().value_or(0) &&
            view.getPartType(part) == buffer.getElement() &&
            view.getPartDim(part) == buffer.getColumns())
          PrefetchKVOp::create(b, locate.getLoc(), part, locate.getView(),
                               locate.getItem(), locate.getKey(),
                               locate.getValid(), locate.getResult());
    }
}

struct OverlapLaunches
    : fi::tile::impl::FITileOverlapLaunchesBase<OverlapLaunches> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    bool waits =
        kernel.walk([](AwaitLaunchesOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (waits || !hasFeature(kernel, sm::Griddepcontrol))
      return;
    OpBuilder b(kernel.getContext());
    Block &body = kernel.getBody().front();
    b.setInsertionPointToStart(&body);
    LaunchNextOp::create(b, kernel.getLoc());
    kernel.walk([&](ForItemsOp items) {
      Block &item = items.getBody().front();
      auto first = llvm::find_if_not(
          item, [](Operation &op) { return isOfThePlan(&op); });
      b.setInsertionPoint(&item, first);
      prefetch(b, item, first);
      AwaitLaunchesOp::create(b, items.getLoc());
      b.setInsertionPointAfter(items);
      AwaitLaunchesOp::create(b, items.getLoc());
    });
  }
};

} // namespace
