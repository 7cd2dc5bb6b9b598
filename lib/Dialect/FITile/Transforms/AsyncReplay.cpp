//===- AsyncReplay.cpp - plays the order of channel operations ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels whose producer is their consumer. The replay finds, for each get,
// how many groups of copies may still be under way; for each acquire, whether a
// barrier lies between it and the release of its buffer; and what cannot work
// at all.
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

bool fi::tile::usesChannel(Operation *op) {
  return isa<AcquireOp, CommitOp, GetOp, ReleaseOp>(op);
}

static bool contains(Operation *op,
                     llvm::function_ref<bool(Operation *)> wanted) {
  return op
      ->walk([&](Operation *inner) {
        return wanted(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool fi::tile::containsChannelOps(Operation *op) {
  return contains(op, usesChannel);
}

std::string fi::tile::describeChannel(Value channel) {
  int64_t number = 0;
  Operation *definition = channel.getDefiningOp();
  for (auto other : definition->getBlock()->getOps<ChannelOp>()) {
    if (other.getOperation() == definition)
      break;
    ++number;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << "channel " << number << " (" << channel.getType() << ")";
  return text;
}

SmallVector<Value, 2> fi::tile::getReadBuffers(Operation *op) {
  SmallVector<Value, 2> buffers;
  if (!isa<CopyRowsOp, CopyKVOp, WriteOp>(op))
    for (Value operand : op->getOperands())
      if (isa<BufType>(operand.getType()))
        buffers.push_back(operand);
  return buffers;
}

bool fi::tile::mayCopyNothing(Operation *op) {
  auto copy = dyn_cast<CopyKVOp>(op);
  return copy && copy.getValid();
}

ArrayRef<Operation *> ReplayedOps::of(Block &block) {
  auto [entry, isNew] = known.try_emplace(&block);
  if (isNew)
    for (Operation &op : block)
      if (op.getNumRegions() > 0 || isReplayed(&op))
        entry->second.push_back(&op);
  return entry->second;
}

LogicalResult
fi::tile::forEachTrips(ForItemsOp items,
                       llvm::function_ref<bool(Operation *)> matters,
                       llvm::function_ref<LogicalResult(LoopTrips)> play) {
  SmallVector<Operation *> loops;
  items.walk([&](Operation *op) {
    if (isa<ForKeysOp, scf::ForOp>(op) && contains(op, matters))
      loops.push_back(op);
  });
  int64_t deepest = 1;
  for (auto channel : items->getBlock()->getOps<ChannelOp>())
    deepest = std::max(deepest, channel.getType().getDepth());
  int64_t counts[] = {0, 1, 2 * deepest + 1};
  int64_t combinations = 1;
  for (size_t i = 0; i < loops.size(); ++i)
    combinations *= 3;
  for (int64_t number = 0; number < combinations; ++number) {
    LoopTrips trips;
    int64_t rest = number;
    for (Operation *loop : loops) {
      trips[loop] = counts[rest % 3];
      rest /= 3;
    }
    if (failed(play(std::move(trips))))
      return failure();
  }
  return success();
}

namespace {

class ChannelReplay {
public:
  ChannelReplay(ChannelFindings &findings, ReplayedOps &ops, LoopTrips trips)
      : findings(findings), ops(ops), trips(std::move(trips)) {}

  static bool isReplayed(Operation *op) {
    return usesChannel(op) || isa<CopyRowsOp, CopyKVOp, WriteOp>(op) ||
           !getReadBuffers(op).empty();
  }

  LogicalResult run(ForItemsOp items) {
    for (int round = 0; round < 2; ++round) {
      if (failed(replay(items.getBody().front())))
        return failure();
      for (auto &[channel, ring] : rings) {
        // What is left over was started past the last tile: empty copies.
        if (ring.taken != ring.released)
          return channel.getDefiningOp()->emitOpError(
                     "expected every buffer that is gotten to be released "
                     "before the item ends, but slot ")
                 << ring.released % ring.depth << " of "
                 << describeChannel(channel) << " is not [TILE25]";
        if (ring.committed > ring.taken && !ring.onlyEmptyAhead)
          return channel.getDefiningOp()->emitOpError(
                     "expected every buffer that is committed to be gotten "
                     "before the item ends, but slot ")
                 << ring.taken % ring.depth << " of "
                 << describeChannel(channel) << " is not [TILE25]";
        ring.acquired = ring.committed = ring.taken = ring.released = 0;
        ring.groups.clear();
        ring.committedAt.clear();
      }
      buffers.clear();
    }
    return success();
  }

private:
  struct Ring {
    int64_t depth = 0;
    int64_t acquired = 0, committed = 0, taken = 0, released = 0;
    bool onlyEmptyAhead = true;
    /// Group of each commit, and barriers seen then; barriers seen when a slot
    /// was released.
    SmallVector<int64_t> groups, committedAt;
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
    for (Operation *op : ops.of(block))
      if (failed(replay(op)))
        return failure();
    return success();
  }

  LogicalResult acquire(AcquireOp op) {
    Ring &ring = ringOf(op.getChannel());
    int64_t slot = ring.acquired % ring.depth;
    if (ring.acquired - ring.released >= ring.depth)
      return op.emitOpError("expected a free buffer, but all ")
             << ring.depth << " of " << describeChannel(op.getChannel())
             << " are in use, slot " << slot << " first [TILE25]";
    buffers[op.getBuffer()] = {op.getChannel(), ring.acquired++};
    if (ring.releasedAt[slot] == barriers) {
      findings.barrierBeforeAcquire.insert(op);
      ++barriers;
    }
    ring.onlyEmptyAhead = llvm::all_of(op->getUsers(), mayCopyNothing);
    return success();
  }

  LogicalResult get(GetOp op) {
    Ring &ring = ringOf(op.getChannel());
    if (ring.taken >= ring.committed)
      return op.emitOpError("expected a committed buffer to get: this would "
                            "wait for ever for slot ")
             << ring.taken % ring.depth << " of "
             << describeChannel(op.getChannel()) << " [TILE25]";
    buffers[op.getBuffer()] = {op.getChannel(), ring.taken};
    int64_t number = ring.taken++;
    if (findings.written.contains(op.getChannel())) {
      if (ring.committedAt[number] == barriers) {
        findings.barrierBeforeGet.insert(op);
        ++barriers;
      }
      return success();
    }
    int64_t later = groups - 1 - ring.groups[number];
    auto [entry, isNew] = findings.pending.try_emplace(op, later);
    if (!isNew)
      entry->second = std::min(entry->second, later);
    ++barriers;
    return success();
  }

  static const char *stateOf(const Ring &ring, int64_t number) {
    return number < ring.released    ? "released"
           : number < ring.taken     ? "gotten"
           : number < ring.committed ? "committed and not gotten"
                                     : "acquired and not committed";
  }

  /// That a buffer may be read, or copied into, now.
  LogicalResult touch(Operation *op, Value buffer, bool isRead) {
    auto known = buffers.find(buffer);
    if (known == buffers.end())
      return op->emitOpError("expected buffers that are results of "
                             "fi_tile.acquire or fi_tile.get in the same item "
                             "[TILE29]");
    auto [channel, number] = known->second;
    Ring &ring = ringOf(channel);
    bool fine = isRead ? number >= ring.released && number < ring.taken
                       : number >= ring.committed;
    if (fine)
      return success();
    return op->emitOpError(isRead
                               ? "expected a gotten buffer to read, but slot "
                               : "expected an acquired buffer to copy into, "
                                 "but slot ")
           << number % ring.depth << " of " << describeChannel(channel)
           << " is " << stateOf(ring, number) << " [TILE29]";
  }

  LogicalResult replay(Operation *op) {
    if (auto acquiring = dyn_cast<AcquireOp>(op))
      return acquire(acquiring);
    if (auto commit = dyn_cast<CommitOp>(op)) {
      Ring &ring = ringOf(commit.getChannel());
      if (ring.committed >= ring.acquired)
        return commit.emitOpError("expected an acquired buffer to commit, but "
                                  "slot ")
               << ring.committed % ring.depth << " of "
               << describeChannel(commit.getChannel())
               << " is not acquired [TILE25]";
      ++ring.committed;
      bool isWritten = findings.written.contains(commit.getChannel());
      ring.groups.push_back(isWritten ? -1 : groups++);
      ring.committedAt.push_back(barriers);
      return success();
    }
    if (auto getting = dyn_cast<GetOp>(op))
      return get(getting);
    if (auto release = dyn_cast<ReleaseOp>(op)) {
      Ring &ring = ringOf(release.getChannel());
      if (ring.released >= ring.taken)
        return release.emitOpError("expected a gotten buffer to release, but "
                                   "slot ")
               << ring.released % ring.depth << " of "
               << describeChannel(release.getChannel())
               << " is not gotten [TILE25]";
      ring.releasedAt[ring.released++ % ring.depth] = barriers;
      return success();
    }
    if (isa<CopyRowsOp, CopyKVOp, WriteOp>(op)) {
      for (Value operand : op->getOperands())
        if (isa<BufType>(operand.getType()) &&
            failed(touch(op, operand, /*isRead=*/false)))
          return failure();
      return success();
    }
    for (Value buffer : getReadBuffers(op))
      if (failed(touch(op, buffer, /*isRead=*/true)))
        return failure();
    if (isa<ForKeysOp, scf::ForOp>(op)) {
      for (int64_t trip = 0, end = trips.lookup(op); trip < end; ++trip)
        if (failed(replay(op->getRegion(0).front())))
          return failure();
      return success();
    }
    if (containsChannelOps(op))
      return op->emitOpError("expected channels to be used in loops only, not "
                             "in branches [TILE25]");
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(replay(block)))
          return failure();
    return success();
  }

  ChannelFindings &findings;
  ReplayedOps &ops;
  LoopTrips trips;
  llvm::MapVector<Value, Ring> rings;
  llvm::DenseMap<Value, std::pair<Value, int64_t>> buffers;
  int64_t groups = 0, barriers = 0;
};

} // namespace

/// A channel is filled by stores or by copies, which are waited for in
/// different ways.
static LogicalResult findWritten(ForItemsOp items, ChannelFindings &findings) {
  llvm::SetVector<Value> copied;
  items.walk([&](Operation *op) {
    Value buffer;
    if (auto write = dyn_cast<WriteOp>(op))
      buffer = write.getBuffer();
    else if (auto rows = dyn_cast<CopyRowsOp>(op))
      buffer = rows.getBuffer();
    else if (auto keys = dyn_cast<CopyKVOp>(op))
      buffer = keys.getBuffer();
    auto acquire = buffer ? buffer.getDefiningOp<AcquireOp>() : AcquireOp();
    if (acquire && isa<WriteOp>(op))
      findings.written.insert(acquire.getChannel());
    else if (acquire)
      copied.insert(acquire.getChannel());
  });
  for (Value channel : copied)
    if (findings.written.contains(channel))
      return channel.getDefiningOp()->emitOpError(
          "expected a channel that is filled by fi_tile.write or by copies, "
          "but got both [TILE25]");
  return success();
}

LogicalResult fi::tile::replayChannels(ForItemsOp items,
                                       ChannelFindings &findings) {
  if (failed(findWritten(items, findings)))
    return failure();
  auto matters = [](Operation *op) {
    return usesChannel(op) || !getReadBuffers(op).empty();
  };
  ReplayedOps ops(ChannelReplay::isReplayed);
  return forEachTrips(items, matters, [&](LoopTrips trips) {
    return ChannelReplay(findings, ops, std::move(trips)).run(items);
  });
}
