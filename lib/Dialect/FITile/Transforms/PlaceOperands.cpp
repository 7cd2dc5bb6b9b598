//===- PlaceOperands.cpp - decides where operands of products lie ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first pass of the placed form. What a product reads from memory goes
// through a channel in shared memory, waited for where it was loaded: keys and
// values, and the rows of the query. What is computed stays in registers.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/IR/Dominance.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEPLACEOPERANDS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct PlaceOperandsPass
    : fi::tile::impl::FITilePlaceOperandsBase<PlaceOperandsPass> {
  void runOnOperation() override {
    known.clear();
    lastChannel = {};
    llvm::SetVector<Operation *> seen;
    WalkResult result = getOperation().walk([&](DotOp dot) {
      for (OpOperand &operand : dot->getOpOperands().take_front(2)) {
        Operation *load = operand.get().getDefiningOp();
        if (isa_and_nonnull<LoadRowsOp, LoadKVOp>(load)) {
          if (failed(checkUses(load)))
            return WalkResult::interrupt();
          seen.insert(load);
        } else if (operand.getOperandNumber() == 1 &&
                   isa<RankedTensorType>(operand.get().getType())) {
          dot.emitOpError("expected the second operand of a product to be "
                          "keys or values as they lie in memory, but got a "
                          "tile that is computed")
              << " [TILE24]";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (Operation *load : seen) {
      if (auto kv = dyn_cast<LoadKVOp>(load))
        place(kv);
      else
        place(cast<LoadRowsOp>(load));
    }
  }

private:
  /// A buffer holds elements as they are in memory.
  LogicalResult checkUses(Operation *load) {
    Type tile = getElementTypeOrSelf(load->getResult(0).getType());
    Type source;
    if (auto kv = dyn_cast<LoadKVOp>(load)) {
      auto view = cast<KVViewTypeInterface>(kv.getView().getType());
      source = kv.getPart() == KVPart::Values ? view.getValueType()
                                              : view.getKeyType();
    } else {
      source = getElementTypeOrSelf(cast<LoadRowsOp>(load).getSource());
    }
    if (tile != source)
      return load->emitOpError("expected operands of products to be loaded in "
                               "their type in memory, ")
             << source << ", but got " << tile << " [TILE24]";
    for (Operation *user : load->getUsers())
      if (!isa<DotOp>(user))
        return load->emitOpError("expected a tile that only products read, but "
                                 "got a use by ")
               << user->getName() << " [TILE24]";
    return success();
  }

  ChannelOp createChannel(RankedTensorType tile) {
    OpBuilder b = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    SmemAttr layout =
        getSmemLayout(&getContext(), tile.getDimSize(1), tile.getElementType());
    auto buffer =
        BufType::get(&getContext(), tile.getDimSize(0), tile.getDimSize(1),
                     tile.getElementType(), layout);
    // Channels in the order in which they are made.
    if (lastChannel)
      b.setInsertionPointAfter(lastChannel);
    auto channel = ChannelOp::create(b, getOperation().getLoc(),
                                     ChanType::get(&getContext(), buffer, 1),
                                     IntegerAttr());
    lastChannel = channel;
    return channel;
  }

  /// The last operation of `block` that uses the value, in it or deeper.
  Operation *lastUse(Value value, Block *block) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *inBlock = block->findAncestorOpInBlock(*user);
      if (!last || last->isBeforeInBlock(inBlock))
        last = inBlock;
    }
    return last;
  }

  void replaceByBuffer(Value tile, Value buffer) {
    // A product takes a buffer in a tile's place: only the type differs.
    tile.replaceAllUsesWith(buffer);
  }

  void place(LoadKVOp load) {
    // Loops that follow one another share a channel.
    ChannelOp channel;
    for (Known &other : known)
      if (other.part == load.getPart() && other.view == load.getView() &&
          other.type == load.getType() && other.block != load->getBlock())
        channel = other.channel;
    if (!channel)
      channel = createChannel(load.getType());
    known.push_back({load.getPart(), load.getView(), load.getType(),
                     load->getBlock(), channel});
    OpBuilder b(load);
    Location loc = load.getLoc();
    auto free = AcquireOp::create(b, loc, channel);
    CopyKVOp::create(b, loc, load.getPart(), load.getView(), load.getItem(),
                     load.getKey(), free, Value(), Value());
    CommitOp::create(b, loc, channel);
    // The copy is waited for where it is first read.
    Operation *first = firstUse(load.getResult(), load->getBlock());
    b.setInsertionPoint(first);
    auto ready = GetOp::create(b, loc, channel);
    b.setInsertionPointAfter(lastUse(load.getResult(), load->getBlock()));
    ReleaseOp::create(b, loc, channel);
    replaceByBuffer(load.getResult(), ready);
    load.erase();
  }

  Operation *firstUse(Value value, Block *block) {
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *inBlock = block->findAncestorOpInBlock(*user);
      if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
    }
    return first;
  }

  void place(LoadRowsOp load) {
    ChannelOp channel = createChannel(load.getType());
    OpBuilder b(load);
    Location loc = load.getLoc();
    auto free = AcquireOp::create(b, loc, channel);
    CopyRowsOp::create(b, loc, load.getSource(), load.getItem(), free,
                       load.getGroup());
    CommitOp::create(b, loc, channel);
    b.setInsertionPoint(firstUse(load.getResult(), load->getBlock()));
    auto ready = GetOp::create(b, loc, channel);
    b.setInsertionPointAfter(lastUse(load.getResult(), load->getBlock()));
    ReleaseOp::create(b, loc, channel);
    replaceByBuffer(load.getResult(), ready);
    load.erase();
  }

  struct Known {
    KVPart part;
    Value view;
    Type type;
    Block *block;
    ChannelOp channel;
  };
  SmallVector<Known> known;
  ChannelOp lastChannel;
};

} // namespace
