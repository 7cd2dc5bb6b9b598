//===- Pipeline.cpp - copies ahead of their use ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With `stages` buffers, the copies of keys and values run `stages - 1` visited
// tiles ahead of their use: the first ones are started before the loops, and
// each iteration starts those of a later tile, which a cursor finds. The cursor
// goes through consecutive loops over an item's tiles, from full into partial
// ones.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEPIPELINE
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// A copy of a loop's tile through a channel.
struct Transfer {
  AcquireOp acquire;
  CopyKVOp copy;
  CommitOp commit;
  GetOp get;
};

struct PipelinePass : fi::tile::impl::FITilePipelineBase<PipelinePass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    int64_t stages = kernel.getSchedule().getStages();
    if (stages < 2)
      return;
    kernel.walk([&](ForItemsOp items) {
      SmallVector<ForKeysOp> loops;
      for (auto loop : items.getBody().getOps<ForKeysOp>())
        loops.push_back(loop);
      if (loops.empty())
        return;
      SmallVector<SmallVector<Transfer>> transfers;
      for (ForKeysOp loop : loops)
        transfers.push_back(collect(loop));
      if (!alike(transfers)) {
        loops.front().emitRemark(
            "the loops over keys copy through different channels: their copies "
            "are not started ahead");
        return;
      }
      pipeline(loops, transfers, stages);
    });
  }

private:
  SmallVector<Transfer> collect(ForKeysOp loop) {
    SmallVector<Transfer> result;
    for (auto copy : loop.getBody().getOps<CopyKVOp>()) {
      auto acquire = copy.getBuffer().getDefiningOp<AcquireOp>();
      if (!acquire || copy.getKey() != loop.getKey() || copy.getValid())
        continue;
      Transfer transfer = {acquire, copy, {}, {}};
      for (Operation *user : acquire.getChannel().getUsers()) {
        if (user->getBlock() != copy->getBlock())
          continue;
        if (auto commit = dyn_cast<CommitOp>(user))
          transfer.commit = commit;
        if (auto get = dyn_cast<GetOp>(user))
          transfer.get = get;
      }
      if (transfer.commit && transfer.get)
        result.push_back(transfer);
    }
    return result;
  }

  /// Whether the loops use the same channels; each then has one of its own or
  /// takes the first loop's over.
  bool alike(MutableArrayRef<SmallVector<Transfer>> transfers) {
    ArrayRef<Transfer> first = transfers.front();
    if (first.empty())
      return false;
    for (SmallVector<Transfer> &others : transfers.drop_front()) {
      if (others.size() != first.size())
        return false;
      for (auto [a, b] : llvm::zip(first, others)) {
        CopyKVOp copyA = a.copy, copyB = b.copy;
        if (copyA.getPart() != copyB.getPart() ||
            copyA.getView() != copyB.getView() ||
            copyA.getBuffer().getType() != copyB.getBuffer().getType())
          return false;
      }
    }
    return true;
  }

  void pipeline(MutableArrayRef<ForKeysOp> loops,
                MutableArrayRef<SmallVector<Transfer>> transfers,
                int64_t stages) {
    ForKeysOp first = loops.front();
    int64_t step = first.getStep();
    // One ring for all loops, of `stages` buffers.
    for (auto [number, transfer] : llvm::enumerate(transfers.front())) {
      Value channel = transfer.acquire.getChannel();
      auto type = cast<ChanType>(channel.getType());
      channel.setType(ChanType::get(&getContext(), type.getBuffer(), stages));
      for (SmallVector<Transfer> &others : transfers.drop_front()) {
        Value other = others[number].acquire.getChannel();
        if (other == channel)
          continue;
        other.replaceAllUsesWith(channel);
        other.getDefiningOp()->erase();
      }
    }
    // Before what waits: rows of the query come with the first keys.
    Operation *point = first;
    for (Operation *op = first->getPrevNode(); op; op = op->getPrevNode())
      if (isa<GetOp>(op))
        point = op;
    OpBuilder b(point);
    Location loc = first.getLoc();
    Value cursor = CursorOp::create(b, loc, first.getItem(), step);
    for (int64_t ahead = 0; ahead + 1 < stages; ++ahead) {
      for (Transfer &transfer : transfers.front())
        start(b, transfer, cursor);
      cursor = AdvanceOp::create(b, loc, cursor.getType(), cursor, step);
    }
    for (auto [loop, itsTransfers] : llvm::zip(loops, transfers))
      cursor = pipeline(loop, itsTransfers, cursor, step);
  }

  void start(OpBuilder &b, Transfer &transfer, Value cursor) {
    Location loc = transfer.copy.getLoc();
    Value channel = transfer.acquire.getChannel();
    auto place = CursorKeyOp::create(b, loc, cursor);
    auto free = AcquireOp::create(b, loc, channel);
    CopyKVOp::create(b, loc, transfer.copy.getPart(), transfer.copy.getView(),
                     transfer.copy.getItem(), place.getKey(), free,
                     place.getValid());
    CommitOp::create(b, loc, channel);
  }

  /// Rebuilds a loop so that it carries the cursor; returns the cursor after
  /// it.
  Value pipeline(ForKeysOp loop, MutableArrayRef<Transfer> transfers,
                 Value cursor, int64_t step) {
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    SmallVector<Value> inits(loop.getInits());
    inits.push_back(cursor);
    auto carrying = ForKeysOp::create(b, loc, loop.getItem(), inits,
                                      loop.getPart(), loop.getStep());
    Block &body = carrying.getBody().front(), &old = loop.getBody().front();
    body.getOperations().splice(body.end(), old.getOperations());
    for (auto [from, to] : llvm::zip(old.getArguments(), body.getArguments()))
      from.replaceAllUsesWith(to);
    Value ahead = body.getArguments().back();
    for (Transfer &transfer : transfers) {
      b.setInsertionPointAfter(transfer.get);
      start(b, transfer, ahead);
      transfer.commit.erase();
      transfer.copy.erase();
      transfer.acquire.erase();
    }
    Operation *yield = body.getTerminator();
    b.setInsertionPoint(yield);
    Value next = AdvanceOp::create(b, loc, ahead.getType(), ahead, step);
    yield->insertOperands(yield->getNumOperands(), next);
    loop->replaceAllUsesWith(carrying.getResults().drop_back());
    loop.erase();
    return carrying.getResults().back();
  }
};

} // namespace
