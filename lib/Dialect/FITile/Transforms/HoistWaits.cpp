//===- HoistWaits.cpp - waits before elementwise work, not behind it ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The copy of the next values starts where those of a tile have been waited for
// and their buffer's last user is past: right before their product, or earlier.
// With few rows memory is the limit, and each copy should start as early as can
// be. With many rows tensor cores are, and the wait would only come before its
// time.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEHOISTWAITS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct HoistWaitsPass : fi::tile::impl::FITileHoistWaitsBase<HoistWaitsPass> {
  using FITileHoistWaitsBase::FITileHoistWaitsBase;

  void runOnOperation() override {
    if (getOperation().getSchedule().getTileRows() > maxRows)
      return;
    SmallVector<GetOp> gets;
    getOperation().walk([&](GetOp get) {
      auto type = cast<ChanType>(get.getChannel().getType());
      if (isa<ForKeysOp>(get->getParentOp()) && type.getDepth() > 1)
        gets.push_back(get);
    });
    for (GetOp get : gets)
      hoist(get);
  }

private:
  /// Moves the wait and the copy that it makes room for behind whatever comes
  /// before them and has an effect.
  void hoist(GetOp get) {
    Operation *anchor = get->getPrevNode();
    while (anchor && isMemoryEffectFree(anchor))
      anchor = anchor->getPrevNode();
    if (!anchor || anchor == get->getPrevNode())
      return;
    SmallVector<Operation *> group = withCopy(get);
    for (Operation *op : group)
      for (Value operand : op->getOperands())
        if (Operation *source = operand.getDefiningOp())
          if (source->getBlock() == get->getBlock() &&
              anchor->isBeforeInBlock(source) &&
              !llvm::is_contained(group, source))
            return;
    for (Operation *op : group) {
      op->moveAfter(anchor);
      anchor = op;
    }
  }

  /// The wait and what follows it up to the commit of its channel's next copy;
  /// the wait alone where none is started there.
  SmallVector<Operation *> withCopy(GetOp get) {
    SmallVector<Operation *> group = {get};
    for (Operation *op = get->getNextNode();
         isa_and_nonnull<CursorKeyOp, AcquireOp, CopyKVOp, CommitOp>(op);
         op = op->getNextNode()) {
      group.push_back(op);
      if (auto commit = dyn_cast<CommitOp>(op))
        return commit.getChannel() == get.getChannel()
                   ? group
                   : SmallVector<Operation *>{get};
    }
    return {get};
  }
};

} // namespace
