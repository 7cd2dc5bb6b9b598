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
    // Warps that load run ahead by themselves.
    if (stages < 2 || kernel.getSchedule().getLoadWarps())
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
    // With few rows, page tables are asked first of all, for all tiles that are
    // begun here: the first copy waits for one answer, and no other for another
    // one. Many rows have no registers for it.
    bool isFew =
        first->getParentOfType<KernelOp>().getSchedule().getKeyWarps() > 1;
    Block *block = first->getBlock();
    if (isFew && isa<ForItemsOp>(block->getParentOp()) &&
        isa<BlockArgument>(first.getItem()))
      b.setInsertionPointToStart(block);
    Ahead ahead;
    ahead.cursor = CursorOp::create(b, loc, first.getItem(), step);
    lookUp(b, transfers.front(), ahead);
    SmallVector<Ahead> begun;
    auto begin = [&] {
      for (Ahead &place : begun)
        for (Transfer &transfer : transfers.front())
          start(b, transfer, transfers.front(), place);
      begun.clear();
    };
    for (int64_t number = 0; number + 1 < stages; ++number) {
      begun.push_back(ahead);
      if (!isFew)
        begin();
      advance(b, loc, transfers.front(), ahead, step);
    }
    b.setInsertionPoint(point);
    begin();
    for (auto [loop, itsTransfers] : llvm::zip(loops, transfers))
      ahead = pipeline(loop, itsTransfers, ahead, step);
  }

  /// The tile whose copies are started next.
  struct Ahead {
    Value cursor;
    /// Of page tables, by view and shape of a buffer.
    SmallVector<Value> entries;
    SmallVector<Value> getValues() const {
      SmallVector<Value> values = {cursor};
      llvm::append_range(values, entries);
      return values;
    }
    void setValues(ValueRange values) {
      cursor = values.front();
      llvm::copy(values.drop_front(), entries.begin());
    }
  };

  /// The transfers whose view has a page table, one for each table and shape.
  SmallVector<Transfer *> lookups(MutableArrayRef<Transfer> transfers) {
    SmallVector<Transfer *> result;
    for (Transfer &transfer : transfers) {
      auto view = transfer.copy.getView().getDefiningOp<ViewOp>();
      bool known = llvm::any_of(result, [&](Transfer *other) {
        return sharesEntries(*other, transfer);
      });
      if (view && !view.getPages().empty() && !known)
        result.push_back(&transfer);
    }
    return result;
  }
  static bool sharesEntries(Transfer &a, Transfer &b) {
    return a.copy.getView() == b.copy.getView() &&
           a.copy.getBuffer().getType() == b.copy.getBuffer().getType() &&
           tableOf(a) == tableOf(b);
  }
  static unsigned tableOf(Transfer &transfer) {
    CopyKVOp copy = transfer.copy;
    return cast<KVViewTypeInterface>(copy.getView().getType())
        .getTable(copy.getPart());
  }

  void lookUp(OpBuilder &b, MutableArrayRef<Transfer> transfers, Ahead &ahead) {
    ahead.entries.clear();
    for (Transfer *transfer : lookups(transfers)) {
      CopyKVOp copy = transfer->copy;
      auto place = CursorKeyOp::create(b, copy.getLoc(), ahead.cursor);
      ahead.entries.push_back(LocateOp::create(
          b, copy.getLoc(),
          EntriesType::get(&getContext(), copy.getBuffer().getType()),
          copy.getView(), copy.getItem(), place.getKey(), place.getValid(),
          tableOf(*transfer)));
    }
  }

  void advance(OpBuilder &b, Location loc, MutableArrayRef<Transfer> transfers,
               Ahead &ahead, int64_t step) {
    ahead.cursor =
        AdvanceOp::create(b, loc, ahead.cursor.getType(), ahead.cursor, step);
    lookUp(b, transfers, ahead);
  }

  /// `transfers` are those that the entries ahead are for.
  void start(OpBuilder &b, Transfer &transfer,
             MutableArrayRef<Transfer> transfers, Ahead &ahead) {
    Location loc = transfer.copy.getLoc();
    Value channel = transfer.acquire.getChannel();
    auto place = CursorKeyOp::create(b, loc, ahead.cursor);
    auto free = AcquireOp::create(b, loc, channel);
    Value entries;
    for (auto [other, known] : llvm::zip(lookups(transfers), ahead.entries))
      if (sharesEntries(*other, transfer))
        entries = known;
    CopyKVOp::create(b, loc, transfer.copy.getPart(), transfer.copy.getView(),
                     transfer.copy.getItem(), place.getKey(), free,
                     place.getValid(), entries);
    CommitOp::create(b, loc, channel);
  }

  /// Rebuilds a loop so that it carries the tile ahead; returns the one after
  /// it.
  Ahead pipeline(ForKeysOp loop, MutableArrayRef<Transfer> transfers,
                 Ahead ahead, int64_t step) {
    OpBuilder b(loop);
    Location loc = loop.getLoc();
    SmallVector<Value> inits(loop.getInits());
    unsigned own = inits.size();
    llvm::append_range(inits, ahead.getValues());
    auto carrying = ForKeysOp::create(b, loc, loop.getItem(), inits,
                                      loop.getPart(), loop.getStep());
    Block &body = carrying.getBody().front(), &old = loop.getBody().front();
    body.getOperations().splice(body.end(), old.getOperations());
    for (auto [from, to] : llvm::zip(old.getArguments(), body.getArguments()))
      from.replaceAllUsesWith(to);
    ahead.setValues(carrying.getCarried().drop_front(own));
    for (Transfer &transfer : transfers) {
      b.setInsertionPointAfter(transfer.get);
      start(b, transfer, transfers, ahead);
    }
    Operation *yield = body.getTerminator();
    b.setInsertionPoint(yield);
    advance(b, loc, transfers, ahead, step);
    for (Value value : ahead.getValues())
      yield->insertOperands(yield->getNumOperands(), value);
    for (Transfer &transfer : transfers) {
      transfer.commit.erase();
      transfer.copy.erase();
      transfer.acquire.erase();
    }
    loop->replaceAllUsesWith(carrying.getResults().take_front(own));
    loop.erase();
    ahead.setValues(carrying.getResults().drop_front(own));
    return ahead;
  }
};

} // namespace
