//===- RoleReplay.cpp - plays the roles of a kernel side by side ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each role does what it does until it has to wait for another one. How often
// loops over keys run follows from how many tiles an item has. Where all roles
// that are not at their end wait, they would do so for ever.
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static bool matters(Operation *op) {
  return usesChannel(op) || isa<CopyRowsOp, CopyKVOp, WriteOp, WaitOp>(op) ||
         !getReadBuffers(op).empty();
}

static bool containsEvents(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return matters(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {

/// What a role does to channels and buffers, one operation after the other.
struct Trace {
  RoleOp role;
  SmallVector<Operation *> events;
  size_t next = 0;
  /// What acquire and get gave, by number.
  llvm::DenseMap<Value, std::pair<Value, int64_t>> buffers;
  /// Products that are not waited for, and the buffers that they read.
  SmallVector<std::pair<Operation *, std::pair<Value, int64_t>>> products;
  bool isDone() const { return next == events.size(); }
};

struct Ring {
  RoleOp producer, consumer;
  int64_t acquired = 0, committed = 0, taken = 0, released = 0;
};

class RoleReplay {
public:
  RoleReplay(KernelOp kernel) : kernel(kernel) {}

  LogicalResult run() {
    for (auto role : kernel.getBody().getOps<RoleOp>()) {
      WalkResult result = role.walk([&](Operation *op) {
        bool isLoop = isa<RoleOp, ForItemsOp, ForKeysOp>(op);
        if (isLoop || op->getNumRegions() == 0 || !containsChannelOps(op))
          return WalkResult::advance();
        op->emitOpError("expected channels between roles to be used in loops "
                        "over items and keys only [TILE25]");
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted() || failed(findEnds(role)))
        return failure();
    }
    int64_t deepest = 1;
    for (auto channel : kernel.getBody().getOps<ChannelOp>())
      deepest = std::max(deepest, channel.getType().getDepth());
    for (int64_t count : {int64_t(0), int64_t(1), 2 * deepest + 1})
      for (int64_t other : {int64_t(0), int64_t(1), 2 * deepest + 1}) {
        full = count;
        partial = other;
        if (failed(play()))
          return failure();
      }
    return success();
  }

private:
  /// Whether what a commit or release gives away was taken in its block: as
  /// many were as are given away there.
  static bool isTakenBefore(Operation *op) {
    int64_t taken = 0;
    for (Operation &other : *op->getBlock()) {
      if (usesChannel(&other) && other.getOperand(0) == op->getOperand(0)) {
        bool isEnd =
            isa<AcquireOp, CommitOp>(op) == isa<AcquireOp, CommitOp>(&other);
        if (isEnd)
          taken += isa<AcquireOp, GetOp>(&other) ? 1 : -1;
      }
      if (&other == op)
        return taken >= 0;
    }
    return false;
  }

  /// One role fills a channel, and one reads it.
  LogicalResult findEnds(RoleOp role) {
    WalkResult result = role.walk([&](Operation *op) {
      if (!usesChannel(op))
        return WalkResult::advance();
      Value channel = op->getOperand(0);
      bool fills = isa<AcquireOp, CommitOp>(op);
      if (isa<CommitOp, ReleaseOp>(op) && !isTakenBefore(op)) {
        op->emitOpError("expected a buffer of ")
            << describeChannel(channel) << " that is "
            << (fills ? "acquired" : "gotten")
            << " before in the same block [TILE25]";
        return WalkResult::interrupt();
      }
      RoleOp &end = fills ? ends[channel].producer : ends[channel].consumer;
      if (end && end != role) {
        op->emitOpError("expected one role that ")
            << (fills ? "fills " : "reads ") << describeChannel(channel)
            << ", but '" << end.getName() << "' does, too [TILE25]";
        return WalkResult::interrupt();
      }
      end = role;
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Of an item with so many full and partial tiles.
  int64_t countTrips(ForKeysOp loop) const {
    std::optional<Selection> selection = loop.getSelection();
    int64_t all = full + partial;
    if (selection && *selection != Selection::Rest)
      return std::min<int64_t>(all, 1);
    bool rest = selection.has_value();
    switch (loop.getPart()) {
    case Part::All:
      return std::max<int64_t>(all - rest, 0);
    case Part::Full:
      return std::max<int64_t>(full - rest, 0);
    case Part::Partial:
      return std::max<int64_t>(partial - (rest && full == 0), 0);
    }
    return 0;
  }

  void flatten(Block &block, Trace &trace) {
    for (Operation &op : block) {
      if (!containsEvents(&op))
        continue;
      if (op.getNumRegions() == 0) {
        trace.events.push_back(&op);
        continue;
      }
      int64_t count = 1;
      if (isa<ForItemsOp>(op))
        count = 2;
      else if (auto loop = dyn_cast<ForKeysOp>(op))
        count = countTrips(loop);
      for (int64_t i = 0; i < count; ++i)
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            flatten(inner, trace);
    }
  }

  LogicalResult play() {
    SmallVector<Trace> traces;
    for (auto role : kernel.getBody().getOps<RoleOp>()) {
      Trace &trace = traces.emplace_back();
      trace.role = role;
      flatten(role.getBody().front(), trace);
    }
    for (auto &[channel, ring] : ends)
      ring.acquired = ring.committed = ring.taken = ring.released = 0;
    bool moves = true;
    while (moves) {
      moves = false;
      for (Trace &trace : traces)
        while (!trace.isDone() && !mustWait(trace.events[trace.next])) {
          if (failed(execute(trace, trace.events[trace.next++])))
            return failure();
          moves = true;
        }
    }
    for (Trace &trace : traces)
      if (!trace.isDone()) {
        Operation *op = trace.events[trace.next];
        Value channel = op->getOperand(0);
        return op->emitOpError("expected ")
               << (isa<AcquireOp>(op) ? "a free" : "a committed")
               << " buffer, but role '" << trace.role.getName()
               << "' would wait for ever for slot "
               << (isa<AcquireOp>(op) ? ends[channel].acquired
                                      : ends[channel].taken) %
                      depthOf(channel)
               << " of " << describeChannel(channel) << " [TILE25]";
      }
    for (auto &[channel, ring] : ends)
      if (ring.acquired != ring.released)
        return channel.getDefiningOp()->emitOpError(
                   "expected every buffer that is filled to be read and "
                   "released, but slot ")
               << ring.released % depthOf(channel) << " of "
               << describeChannel(channel) << " is not [TILE25]";
    return success();
  }

  static int64_t depthOf(Value channel) {
    return cast<ChanType>(channel.getType()).getDepth();
  }

  bool mustWait(Operation *op) {
    if (!isa<AcquireOp, GetOp>(op))
      return false;
    Ring &ring = ends[op->getOperand(0)];
    return isa<AcquireOp>(op)
               ? ring.acquired - ring.released >= depthOf(op->getOperand(0))
               : ring.taken >= ring.committed;
  }

  LogicalResult execute(Trace &trace, Operation *op) {
    if (usesChannel(op)) {
      Value channel = op->getOperand(0);
      Ring &ring = ends[channel];
      if (isa<AcquireOp>(op))
        trace.buffers[op->getResult(0)] = {channel, ring.acquired++};
      else if (isa<GetOp>(op))
        trace.buffers[op->getResult(0)] = {channel, ring.taken++};
      else if (isa<CommitOp>(op) && ring.committed < ring.acquired)
        ++ring.committed;
      else if (isa<ReleaseOp>(op) && ring.released < ring.taken) {
        std::pair<Value, int64_t> buffer = {channel, ring.released};
        for (auto &[product, read] : trace.products)
          if (read == buffer)
            return op->emitOpError("expected a buffer that nobody reads, but a "
                                   "product that is not waited for reads slot ")
                   << buffer.second % depthOf(channel) << " of "
                   << describeChannel(channel) << " [TILE29]";
        ++ring.released;
      } else
        return op->emitOpError("expected a buffer of ")
               << describeChannel(channel) << " that the role has "
               << (isa<CommitOp>(op) ? "acquired" : "gotten") << " [TILE25]";
      return success();
    }
    // Products end in the order in which they begin.
    if (auto wait = dyn_cast<WaitOp>(op)) {
      Operation *awaited = wait.getFuture().getDefiningOp();
      bool isKnown = llvm::any_of(trace.products, [&](auto &product) {
        return product.first == awaited;
      });
      while (isKnown && trace.products.front().first != awaited)
        trace.products.erase(trace.products.begin());
      llvm::erase_if(trace.products,
                     [&](auto &product) { return product.first == awaited; });
      return success();
    }
    bool fills = isa<CopyRowsOp, CopyKVOp, WriteOp>(op);
    for (Value buffer : op->getOperands()) {
      if (!isa<BufType>(buffer.getType()))
        continue;
      auto known = trace.buffers.find(buffer);
      if (known == trace.buffers.end())
        return op->emitOpError("expected buffers that are results of "
                               "fi_tile.acquire or fi_tile.get in the same "
                               "item and role [TILE29]");
      auto [channel, number] = known->second;
      Ring &ring = ends[channel];
      if (fills ? number < ring.committed : number < ring.released)
        return op->emitOpError("expected ")
               << (fills ? "an acquired buffer to copy into"
                         : "a gotten buffer to read")
               << ", but slot " << number % depthOf(channel) << " of "
               << describeChannel(channel) << " is "
               << (fills ? "committed" : "released") << " [TILE29]";
      if (isa<DotStartOp>(op))
        trace.products.push_back({op, known->second});
    }
    return success();
  }

  KernelOp kernel;
  llvm::MapVector<Value, Ring> ends;
  int64_t full = 0, partial = 0;
};

} // namespace

LogicalResult fi::tile::replayRoles(KernelOp kernel) {
  return RoleReplay(kernel).run();
}
