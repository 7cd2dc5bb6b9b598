//===- CheckAsync.cpp - checks of copies, waits and barriers --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// That a buffer is read after its copies have arrived and before it is filled
// again (AsyncReplay.h), and that what warps do together is reached by all of
// them: a value may differ between groups of warps, or between warps, and so
// may the branches and loops that it decides.
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILECHECKASYNC
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// Among which warps a value may differ: none, groups, or all.
enum class Spread { None, Groups, Warps };

class Uniformity {
public:
  explicit Uniformity(KernelOp kernel) : kernel(kernel) {
    ScheduleAttr schedule = kernel.getSchedule();
    if (schedule.getKeyWarps() > 1)
      betweenGroups = Spread::Groups;
    betweenWarps = schedule.getWarps() > 1 ? Spread::Warps : betweenGroups;
    do {
      changed = false;
      kernel.getBody().walk([&](Operation *op) { visit(op); });
    } while (changed);
  }

  /// That everything which warps do together is reached by all of them.
  LogicalResult check() {
    WalkResult result = kernel.getBody().walk([&](Operation *op) {
      Spread allowed;
      auto merged = dyn_cast<StoreMergedStateOp>(op);
      if (isa<ShareStateOp, ArriveLastOp, NVVM::Barrier0Op>(op) ||
          (merged && merged.synchronises()))
        allowed = Spread::None;
      else if (merged)
        allowed = betweenGroups;
      else if (auto reduce = dyn_cast<ReduceOp>(op);
               reduce && spansWarps(reduce))
        allowed = Spread::None;
      else if (auto dot = dyn_cast<DotOp>(op); dot && dot.getWarpgroup())
        allowed = betweenGroups;
      else if (usesChannel(op) ||
               isa<AwaitOp, ArriveOp, DotStartOp, WaitOp>(op) ||
               isa<CopyRowsOp, CopyKVOp, WriteOp, NVVM::CpAsyncWaitGroupOp,
                   NVVM::BarrierOp>(op))
        allowed = betweenGroups;
      else
        return WalkResult::advance();
      for (Operation *parent = op->getParentOp();
           parent != kernel.getOperation(); parent = parent->getParentOp()) {
        Spread spread = ofControl(parent);
        if (spread <= allowed)
          continue;
        op->emitOpError("expected ")
            << (allowed == Spread::None ? "all warps of the worker"
                                        : "all warps of a group")
            << " to come here together, but whether they do is decided by '"
            << parent->getName() << "' for each "
            << (spread == Spread::Groups ? "group of warps" : "warp")
            << " by itself [TILE31]";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

private:
  Spread of(Value value) { return spreads.lookup(value); }
  Spread ofAll(ValueRange values) {
    Spread spread = Spread::None;
    for (Value value : values)
      spread = std::max(spread, of(value));
    return spread;
  }
  void raise(Value value, Spread to) {
    Spread &spread = spreads[value];
    if (spread >= to)
      return;
    spread = to;
    changed = true;
  }

  /// Of whether and how often the regions of an op run.
  Spread ofControl(Operation *op) {
    // Groups take the tiles of an item in turn.
    if (isa<ForKeysOp>(op))
      return betweenGroups;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return ofAll(
          {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return of(branch.getCondition());
    return Spread::None;
  }

  void visit(Operation *op) {
    Spread spread = ofAll(op->getOperands());
    // Elements of tiles belong to lanes; scalars come of them by `any` alone.
    if (isa<AnyOp>(op))
      spread = betweenWarps;
    else if (isa<ArriveLastOp>(op))
      spread = Spread::None;
    else if (isa<GroupOp, CursorOp, AdvanceOp, CursorKeyOp>(op))
      spread = std::max(spread, betweenGroups);
    if (op->getNumRegions() == 0) {
      for (Value result : op->getResults())
        raise(result, spread);
      return;
    }
    Spread control = ofControl(op);
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        auto yielded = block.empty() ? ValueRange()
                                     : ValueRange(block.back().getOperands());
        bool isLoop = isa<ForKeysOp, scf::ForOp>(op);
        if (isLoop)
          raise(block.getArgument(0), control);
        for (auto [number, result] : llvm::enumerate(op->getResults())) {
          Spread value = control;
          if (number < yielded.size())
            value = std::max(value, of(yielded[number]));
          if (isLoop) {
            ValueRange inits = isa<ForKeysOp>(op)
                                   ? cast<ForKeysOp>(op).getInits()
                                   : cast<scf::ForOp>(op).getInits();
            value = std::max(value, of(inits[number]));
            raise(block.getArgument(number + 1), value);
          }
          raise(result, value);
        }
      }
  }

  KernelOp kernel;
  Spread betweenGroups = Spread::None, betweenWarps = Spread::None;
  llvm::DenseMap<Value, Spread> spreads;
  bool changed = false;
};

struct CheckAsyncPass : fi::tile::impl::FITileCheckAsyncBase<CheckAsyncPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (failed(Uniformity(kernel).check()))
      return signalPassFailure();
    bool hasSlots = false;
    kernel.walk([&](SlotOp) { hasSlots = true; });
    if (!kernel.getBody().getOps<RoleOp>().empty()) {
      // Lowered channels of roles are checked before.
      if (!hasSlots && failed(replayRoles(kernel)))
        return signalPassFailure();
      return markAllAnalysesPreserved();
    }
    bool isWrong = false;
    kernel.walk([&](ForItemsOp items) {
      ChannelFindings unused;
      isWrong |=
          failed(hasSlots ? replaySlots(items) : replayChannels(items, unused));
    });
    if (isWrong)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
