//===- Mark.cpp - time stamps where a kernel's phases begin ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The last pass of the placed form: what comes before decides as it would
// without marks. A phase ends where the next one begins, so that a place needs
// one mark. Loops over keys that run never would leave phases of no length, and
// what begins before a loop would take the wait for its first tile along: their
// marks are inside, where the first tile has arrived.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEMARK
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct MarkPass : fi::tile::impl::FITileMarkBase<MarkPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    auto detail =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<StringAttr>(
            kProfileAttr);
    bool isMarked = kernel.walk([](MarkOp) { return WalkResult::interrupt(); })
                        .wasInterrupted();
    if (!detail || isMarked)
      return;
    marksTiles = detail == "tiles";
    kernel.walk([&](ForItemsOp items) { markItem(items); });
  }

private:
  void mark(OpBuilder &b, Location loc, StringRef name, bool once = false) {
    MarkOp::create(b, loc, MarkKind::Phase, name, once);
  }
  void markBefore(Operation *op, StringRef name) {
    OpBuilder b(op);
    mark(b, op->getLoc(), name);
  }
  void markBehind(Operation *op, StringRef name, bool once = false) {
    OpBuilder b(op);
    b.setInsertionPointAfter(op);
    mark(b, op->getLoc(), name, once);
  }

  template <typename... OpTs> static bool contains(Operation *op) {
    return op
        ->walk([&](Operation *inner) {
          return inner != op && isa<OpTs...>(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
        })
        .wasInterrupted();
  }

  void markItem(ForItemsOp items) {
    Block &body = items.getBody().front();
    bool onlyCopies = contains<AcquireOp>(items) && !contains<GetOp>(items);
    StringRef first = onlyCopies                     ? "copying"
                      : contains<ForKeysOp>(items)   ? "prologue"
                      : contains<LoadStateOp>(items) ? "merging"
                                                     : "work";
    SmallVector<ForKeysOp> loops(body.getOps<ForKeysOp>());
    if (onlyCopies) {
      if (marksTiles)
        markAcquires(items);
    } else {
      for (ForKeysOp loop : loops)
        markLoop(loop);
      markStates(body, first);
      if (!loops.empty())
        markBehind(loops.back(), "finalising");
    }
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    mark(b, items.getLoc(), first);
    if (body.mightHaveTerminator() && isa<tile::YieldOp>(body.back()))
      b.setInsertionPoint(&body.back());
    else
      b.setInsertionPointToEnd(&body);
    MarkOp::create(b, items.getLoc(), MarkKind::End, "");
  }

  static StringRef nameOf(ForKeysOp loop) {
    if (std::optional<Selection> selection = loop.getSelection();
        selection && *selection != Selection::Rest)
      return *selection == Selection::First ? "first tile" : "last product";
    switch (loop.getPart()) {
    case Part::All:
      return "tiles";
    case Part::Full:
      return "full tiles";
    case Part::Partial:
      return "partial tiles";
    }
    return "tiles";
  }

  /// Where a role waits for a free buffer, and where it has one.
  void markAcquires(ForItemsOp items) {
    SmallVector<AcquireOp> acquires;
    items.walk([&](AcquireOp acquire) { acquires.push_back(acquire); });
    for (AcquireOp acquire : acquires) {
      markBefore(acquire, "waiting for a buffer");
      markBehind(acquire, "copying");
    }
  }

  /// Behind the wait for a loop's first tile; with tiles, before and behind
  /// each wait but those beside a product that is under way: warps would begin
  /// to differ while it reads their registers.
  void markLoop(ForKeysOp loop) {
    StringRef name = nameOf(loop);
    SmallVector<GetOp> waits;
    int64_t underWay = 0;
    for (Operation &op : loop.getBody().front()) {
      if (isa<DotStartOp>(op))
        ++underWay;
      else if (isa<WaitOp>(op))
        --underWay;
      else if (auto get = dyn_cast<GetOp>(op); get && underWay == 0)
        waits.push_back(get);
    }
    if (waits.empty()) {
      OpBuilder b = OpBuilder::atBlockBegin(&loop.getBody().front());
      mark(b, loop.getLoc(), name, /*once=*/true);
      return;
    }
    if (!marksTiles) {
      markBehind(waits.front(), name, /*once=*/true);
      return;
    }
    for (GetOp get : waits) {
      markBefore(get, "waiting for a tile");
      markBehind(get, name);
    }
  }

  /// What a piece of work with states or results begins with; empty: nothing.
  static StringRef phaseOf(Operation *op) {
    if (isa<ShareStateOp>(op))
      return "sharing states";
    if (isa<LoadGroupStateOp, LoadStateOp>(op))
      return "merging";
    if (isa<StoreStateOp, StoreMergedStateOp>(op))
      return "storing a state";
    if (isa<ArriveLastOp>(op))
      return "meeting";
    if (isa<StoreRowsOp, StoreKVOp, StoreScalesOp>(op))
      return "storing results";
    return {};
  }

  /// Marks in a block where the phase is `now`, and in the blocks in it.
  void markStates(Block &block, StringRef now) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      StringRef phase = phaseOf(&op);
      if (!phase.empty() && phase != now) {
        markBefore(&op, phase);
        now = phase;
      }
      if (isa<ForKeysOp>(op)) {
        now = "";
        continue;
      }
      // In a loop, what comes first may come behind what comes last.
      bool isLoop = isa<scf::ForOp>(op);
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          markStates(inner, isLoop && hasSeveral(inner) ? StringRef() : now);
      if (op.getNumRegions() && hasPhases(&op))
        now = "";
    }
  }

  static bool hasPhases(Operation *op) {
    return op
        ->walk([](Operation *inner) {
          return phaseOf(inner).empty() ? WalkResult::advance()
                                        : WalkResult::interrupt();
        })
        .wasInterrupted();
  }
  /// Whether a block has phases of different names.
  static bool hasSeveral(Block &block) {
    StringRef first;
    bool differ = false;
    block.walk([&](Operation *inner) {
      StringRef phase = phaseOf(inner);
      if (phase.empty())
        return;
      if (first.empty())
        first = phase;
      differ |= phase != first;
    });
    return differ;
  }

  bool marksTiles = false;
};

} // namespace
