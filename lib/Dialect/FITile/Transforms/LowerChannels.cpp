//===- LowerChannels.cpp - makes waiting explicit -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels whose producer is their consumer, on groups of asynchronous copies.
// How long to wait, and where barriers are needed, follows from the order of
// operations (AsyncReplay.h).
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "ChannelRewriting.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILELOWERCHANNELS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The number after `number` in a ring.
static Value nextInRing(OpBuilder &b, Location loc, Value number,
                        int64_t depth) {
  if (depth == 1)
    return number;
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  if (depth == 2)
    return arith::XOrIOp::create(b, loc, number, one);
  Value next = arith::AddIOp::create(b, loc, number, one);
  Value end = arith::ConstantIndexOp::create(b, loc, depth);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value wraps =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next, end);
  return arith::SelectOp::create(b, loc, wraps, zero, next);
}

void fi::tile::rebuildLoop(Operation *op, ArrayRef<Value *> carried,
                           llvm::function_ref<void(Block &)> rewrite) {
  OpBuilder b(op);
  SmallVector<Value> inits;
  auto withCarried = [&](ValueRange own) {
    llvm::append_range(inits, own);
    for (Value *counter : carried)
      inits.push_back(*counter);
    return own.size();
  };
  Operation *rebuilt;
  size_t own;
  if (auto items = dyn_cast<ForItemsOp>(op)) {
    own = withCarried(items.getInits());
    rebuilt = ForItemsOp::create(b, op->getLoc(), items.getWork(), inits);
  } else if (auto keys = dyn_cast<ForKeysOp>(op)) {
    own = withCarried(keys.getInits());
    rebuilt =
        ForKeysOp::create(b, op->getLoc(), keys.getItem(), inits,
                          keys.getPart(), keys.getStep(), keys.getSelection());
  } else {
    auto loop = cast<scf::ForOp>(op);
    own = withCarried(loop.getInits());
    rebuilt = scf::ForOp::create(b, op->getLoc(), loop.getLowerBound(),
                                 loop.getUpperBound(), loop.getStep(), inits);
  }
  Block &body = rebuilt->getRegion(0).front(), &old = op->getRegion(0).front();
  if (!body.empty())
    body.back().erase();
  body.getOperations().splice(body.end(), old.getOperations());
  for (auto [from, to] : llvm::zip(old.getArguments(), body.getArguments()))
    from.replaceAllUsesWith(to);
  auto arguments = body.getArguments().take_back(carried.size());
  for (auto [counter, argument] : llvm::zip(carried, arguments))
    *counter = argument;
  rewrite(body);
  Operation *yield = body.getTerminator();
  for (Value *counter : carried)
    yield->insertOperands(yield->getNumOperands(), *counter);
  for (auto [counter, result] :
       llvm::zip(carried, rebuilt->getResults().drop_front(own)))
    *counter = result;
  op->replaceAllUsesWith(rebuilt->getResults().take_front(own));
  op->erase();
}

namespace {

/// Barriers of a CTA beside number 0.
constexpr int64_t kNamedBarriers = 15;

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

class Rewriter {
public:
  Rewriter(KernelOp kernel, ChannelFindings &findings)
      : kernel(kernel), findings(findings) {}

  void run(ForItemsOp items) {
    OpBuilder b = OpBuilder::atBlockBegin(&items.getBody().front());
    Value zero = arith::ConstantIndexOp::create(b, items.getLoc(), 0);
    for (auto channel : kernel.getBody().getOps<ChannelOp>())
      counters[channel] = {zero, zero};
    rewrite(items.getBody().front());
  }

private:
  struct Counters {
    Value next, oldest;
  };

  /// Among the warps that share a ring: groups have different numbers of tiles,
  /// so each has a barrier of its own, number 0 being everybody's.
  void barrier(OpBuilder &b, Location loc) {
    ScheduleAttr schedule = kernel.getSchedule();
    if (schedule.getKeyWarps() <= 1) {
      NVVM::Barrier0Op::create(b, loc);
    } else if (schedule.getWarps() <= 1) {
      Value mask = arith::ConstantIntOp::create(b, loc, -1, 32);
      NVVM::SyncWarpOp::create(b, loc, mask);
    } else {
      Value one = arith::ConstantIndexOp::create(b, loc, 1);
      Value number = arith::AddIOp::create(
          b, loc, GroupOp::create(b, loc, b.getIndexType()), one);
      Value id = arith::IndexCastOp::create(b, loc, b.getI32Type(), number);
      Value threads = arith::ConstantIntOp::create(
          b, loc, kLanes * schedule.getWarps(), 32);
      NVVM::BarrierOp::create(b, loc, TypeRange(), id, threads,
                              NVVM::BarrierReductionAttr(), Value());
    }
  }

  void rewrite(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      rewrite(&op);
  }

  void rewrite(Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (auto acquire = dyn_cast<AcquireOp>(op)) {
      if (findings.barrierBeforeAcquire.contains(op))
        barrier(b, loc);
      Value &number = counters.find(acquire.getChannel())->second.next;
      acquire.replaceAllUsesWith(
          SlotOp::create(b, loc, acquire.getChannel(), number).getBuffer());
      number =
          nextInRing(b, loc, number, acquire.getChannel().getType().getDepth());
      acquire.erase();
    } else if (auto commit = dyn_cast<CommitOp>(op)) {
      if (!findings.written.contains(commit.getChannel()))
        NVVM::CpAsyncCommitGroupOp::create(b, loc);
      commit.erase();
    } else if (auto get = dyn_cast<GetOp>(op)) {
      bool isWritten = findings.written.contains(get.getChannel());
      if (!isWritten)
        NVVM::CpAsyncWaitGroupOp::create(b, loc, findings.pending.lookup(op));
      if (!isWritten || findings.barrierBeforeGet.contains(op))
        barrier(b, loc);
      Value &number = counters.find(get.getChannel())->second.oldest;
      get.replaceAllUsesWith(
          SlotOp::create(b, loc, get.getChannel(), number).getBuffer());
      number =
          nextInRing(b, loc, number, get.getChannel().getType().getDepth());
      get.erase();
    } else if (isa<ReleaseOp>(op)) {
      op->erase();
    } else if (containsChannelOps(op)) {
      rewriteLoop(op);
    }
  }

  /// Adds the counters that a loop changes to the values that it carries.
  void rewriteLoop(Operation *op) {
    SmallVector<Value *> carried;
    llvm::SetVector<Value> acquired, gotten;
    op->walk([&](Operation *inner) {
      if (auto acquire = dyn_cast<AcquireOp>(inner))
        acquired.insert(acquire.getChannel());
      if (auto get = dyn_cast<GetOp>(inner))
        gotten.insert(get.getChannel());
    });
    auto isRing = [](Value channel) {
      return cast<ChanType>(channel.getType()).getDepth() > 1;
    };
    for (Value channel : acquired)
      if (isRing(channel))
        carried.push_back(&counters.find(channel)->second.next);
    for (Value channel : gotten)
      if (isRing(channel))
        carried.push_back(&counters.find(channel)->second.oldest);
    rebuildLoop(op, carried, [&](Block &body) { rewrite(body); });
  }

  KernelOp kernel;
  ChannelFindings &findings;
  llvm::MapVector<Value, Counters> counters;
};

struct LowerChannelsPass
    : fi::tile::impl::FITileLowerChannelsBase<LowerChannelsPass> {
  void runOnOperation() override {
    SmallVector<RoleOp> roles(getOperation().getBody().getOps<RoleOp>());
    if (!roles.empty()) {
      if (failed(replayRoles(getOperation())))
        return signalPassFailure();
      lowerRoleChannels(getOperation());
      return;
    }
    SmallVector<ForItemsOp> loops;
    getOperation().walk([&](ForItemsOp items) {
      if (containsChannelOps(items))
        loops.push_back(items);
    });
    ScheduleAttr schedule = getOperation().getSchedule();
    if (!loops.empty() && schedule.getWarps() > 1 &&
        schedule.getKeyWarps() > kNamedBarriers) {
      getOperation().emitOpError("expected at most ")
          << kNamedBarriers
          << " groups of several warps ('key_warps'), since each has a barrier "
             "of its own, but got "
          << schedule.getKeyWarps() << " of " << schedule.getWarps()
          << " warps; take fewer groups, or groups of one warp [SCH7]";
      return signalPassFailure();
    }
    for (ForItemsOp items : loops) {
      ChannelFindings findings;
      if (failed(replayChannels(items, findings)))
        return signalPassFailure();
      Rewriter(getOperation(), findings).run(items);
    }
  }
};

} // namespace
