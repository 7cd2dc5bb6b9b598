//===- LowerChannels.cpp - makes waiting explicit -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels whose producer is their consumer, on groups of asynchronous copies.
// How long to wait follows from the order of operations: it is replayed for
// loops that run never, once, and often enough that their rings are full, over
// two items. The replay finds, for each get, how many groups may still be under
// way; for each acquire, whether a barrier lies between it and the release of
// its buffer; and what cannot work at all.
//
//===----------------------------------------------------------------------===//

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

namespace {

bool usesChannel(Operation *op) {
  return isa<AcquireOp, CommitOp, GetOp, ReleaseOp>(op);
}

bool containsChannelOps(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return usesChannel(inner) ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Replay
//===----------------------------------------------------------------------===//

/// What the replay finds out.
struct Findings {
  /// Groups that may be under way after a get.
  llvm::DenseMap<Operation *, int64_t> pending;
  llvm::DenseSet<Operation *> barrierBeforeAcquire;
};

class Replay {
public:
  Replay(Findings &findings, llvm::DenseMap<Operation *, int64_t> trips)
      : findings(findings), trips(std::move(trips)) {}

  LogicalResult run(ForItemsOp items) {
    for (int round = 0; round < 2; ++round) {
      if (failed(replay(items.getBody().front())))
        return failure();
      for (auto &[channel, ring] : rings) {
        // What is left over was started past the last tile: empty copies.
        if (ring.taken != ring.released)
          return channel.getDefiningOp()->emitOpError(
              "expected every buffer that is gotten to be released before the "
              "item ends [TILE25]");
        if (ring.committed > ring.taken && !ring.onlyEmptyAhead)
          return channel.getDefiningOp()->emitOpError(
              "expected every buffer that is committed to be gotten before the "
              "item ends [TILE25]");
        ring.acquired = ring.committed = ring.taken = ring.released = 0;
        ring.groups.clear();
      }
    }
    return success();
  }

private:
  struct Ring {
    int64_t depth = 0;
    int64_t acquired = 0, committed = 0, taken = 0, released = 0;
    bool onlyEmptyAhead = true;
    /// Group of each commit; barriers seen when a slot was released.
    SmallVector<int64_t> groups;
    SmallVector<int64_t> releasedAt;
  };

  Ring &ringOf(Value channel) {
    Ring &ring = rings[channel];
    if (ring.depth == 0) {
      ring.depth = cast<ChanType>(channel.getType()).getDepth();
      ring.releasedAt.assign(ring.depth, -1);
    }
    return ring;
  }

  LogicalResult replay(Block &block) {
    for (Operation &op : block)
      if (failed(replay(&op)))
        return failure();
    return success();
  }

  LogicalResult replay(Operation *op) {
    if (auto acquire = dyn_cast<AcquireOp>(op)) {
      Ring &ring = ringOf(acquire.getChannel());
      if (ring.acquired - ring.released >= ring.depth)
        return acquire.emitOpError("expected a free buffer, but all ")
               << ring.depth << " of the channel are in use [TILE25]";
      int64_t slot = ring.acquired++ % ring.depth;
      if (ring.releasedAt[slot] == barriers) {
        findings.barrierBeforeAcquire.insert(op);
        ++barriers;
      }
      ring.onlyEmptyAhead = true;
      for (Operation *user : acquire->getUsers())
        if (auto copy = dyn_cast<CopyKVOp>(user); !copy || !copy.getValid())
          ring.onlyEmptyAhead = false;
      return success();
    }
    if (auto commit = dyn_cast<CommitOp>(op)) {
      Ring &ring = ringOf(commit.getChannel());
      if (++ring.committed > ring.acquired)
        return commit.emitOpError(
            "expected an acquired buffer to commit [TILE25]");
      ring.groups.push_back(groups++);
      return success();
    }
    if (auto get = dyn_cast<GetOp>(op)) {
      Ring &ring = ringOf(get.getChannel());
      if (ring.taken >= ring.committed)
        return get.emitOpError("expected a committed buffer to get: this would "
                               "wait for ever [TILE25]");
      int64_t later = groups - 1 - ring.groups[ring.taken++];
      auto [entry, isNew] = findings.pending.try_emplace(op, later);
      if (!isNew)
        entry->second = std::min(entry->second, later);
      ++barriers;
      return success();
    }
    if (auto release = dyn_cast<ReleaseOp>(op)) {
      Ring &ring = ringOf(release.getChannel());
      if (ring.released >= ring.taken)
        return release.emitOpError(
            "expected a gotten buffer to release [TILE25]");
      ring.releasedAt[ring.released++ % ring.depth] = barriers;
      return success();
    }
    if (!containsChannelOps(op))
      return success();
    if (!isa<ForKeysOp, scf::ForOp>(op))
      return op->emitOpError("expected channels to be used in loops only, not "
                             "in branches [TILE25]");
    for (int64_t trip = 0, end = trips.lookup(op); trip < end; ++trip)
      if (failed(replay(op->getRegion(0).front())))
        return failure();
    return success();
  }

  Findings &findings;
  llvm::DenseMap<Operation *, int64_t> trips;
  llvm::MapVector<Value, Ring> rings;
  int64_t groups = 0, barriers = 0;
};

LogicalResult replayAll(ForItemsOp items, Findings &findings) {
  SmallVector<Operation *> loops;
  int64_t deepest = 1;
  items.walk([&](Operation *op) {
    if (isa<ForKeysOp, scf::ForOp>(op) && containsChannelOps(op))
      loops.push_back(op);
    if (auto acquire = dyn_cast<AcquireOp>(op))
      deepest = std::max(deepest, acquire.getChannel().getType().getDepth());
  });
  int64_t counts[] = {0, 1, 2 * deepest + 1};
  // A barrier found necessary changes what later replays see: until nothing
  // changes.
  int64_t combinations = 1;
  for (size_t i = 0; i < loops.size(); ++i)
    combinations *= 3;
  for (int64_t number = 0; number < combinations; ++number) {
    llvm::DenseMap<Operation *, int64_t> trips;
    int64_t rest = number;
    for (Operation *loop : loops) {
      trips[loop] = counts[rest % 3];
      rest /= 3;
    }
    if (failed(Replay(findings, std::move(trips)).run(items)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Rewrite
//===----------------------------------------------------------------------===//

class Rewriter {
public:
  Rewriter(KernelOp kernel, Findings &findings)
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

  void barrier(OpBuilder &b, Location loc) {
    ScheduleAttr schedule = kernel.getSchedule();
    if (schedule.getKeyWarps() > 1 && schedule.getWarps() == 1) {
      Value mask = arith::ConstantIntOp::create(b, loc, -1, 32);
      NVVM::SyncWarpOp::create(b, loc, mask);
    } else {
      NVVM::Barrier0Op::create(b, loc);
    }
  }

  /// The number after `number` in a ring.
  Value after(OpBuilder &b, Location loc, Value number, int64_t depth) {
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
      number = after(b, loc, number, acquire.getChannel().getType().getDepth());
      acquire.erase();
    } else if (auto commit = dyn_cast<CommitOp>(op)) {
      NVVM::CpAsyncCommitGroupOp::create(b, loc);
      commit.erase();
    } else if (auto get = dyn_cast<GetOp>(op)) {
      NVVM::CpAsyncWaitGroupOp::create(b, loc, findings.pending.lookup(op));
      barrier(b, loc);
      Value &number = counters.find(get.getChannel())->second.oldest;
      get.replaceAllUsesWith(
          SlotOp::create(b, loc, get.getChannel(), number).getBuffer());
      number = after(b, loc, number, get.getChannel().getType().getDepth());
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
    OpBuilder b(op);
    SmallVector<Value> inits;
    Operation *rebuilt;
    unsigned own;
    if (auto keys = dyn_cast<ForKeysOp>(op)) {
      llvm::append_range(inits, keys.getInits());
      own = inits.size();
      for (Value *counter : carried)
        inits.push_back(*counter);
      rebuilt = ForKeysOp::create(b, op->getLoc(), keys.getItem(), inits,
                                  keys.getPart(), keys.getStep());
    } else {
      auto loop = cast<scf::ForOp>(op);
      llvm::append_range(inits, loop.getInits());
      own = inits.size();
      for (Value *counter : carried)
        inits.push_back(*counter);
      auto created =
          scf::ForOp::create(b, op->getLoc(), loop.getLowerBound(),
                             loop.getUpperBound(), loop.getStep(), inits);
      if (!created.getBody()->empty())
        created.getBody()->getTerminator()->erase();
      rebuilt = created;
    }
    Block &body = rebuilt->getRegion(0).front(),
          &old = op->getRegion(0).front();
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

  KernelOp kernel;
  Findings &findings;
  llvm::MapVector<Value, Counters> counters;
};

struct LowerChannelsPass
    : fi::tile::impl::FITileLowerChannelsBase<LowerChannelsPass> {
  void runOnOperation() override {
    SmallVector<ForItemsOp> loops;
    getOperation().walk([&](ForItemsOp items) {
      if (containsChannelOps(items))
        loops.push_back(items);
    });
    for (ForItemsOp items : loops) {
      Findings findings;
      if (failed(replayAll(items, findings)))
        return signalPassFailure();
      Rewriter(getOperation(), findings).run(items);
    }
  }
};

} // namespace
