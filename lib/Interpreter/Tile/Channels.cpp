//===- Channels.cpp - the placed form in the level 2 interpreter ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels are queues of numbered buffers: a buffer is acquired, committed,
// gotten and released, in the order of its channel, and what is copied into it
// can be read between get and release alone. Where a kernel would wait for what
// cannot come, or touches a buffer that is not its turn, there is an error.
// Layouts are names only: a tile has the same elements in each.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static llvm::Error at(Operation *op, llvm::Error error) {
  return makeError(op, llvm::toString(std::move(error)));
}

static const char *stateOf(const Channel &channel, int64_t number) {
  if (number < channel.released)
    return "released";
  if (number < channel.gotten)
    return "gotten";
  return number < channel.committed ? "committed and not gotten"
                                    : "acquired and not committed";
}

//===----------------------------------------------------------------------===//
// The order of a channel
//===----------------------------------------------------------------------===//

static llvm::Error acquire(AcquireOp op, Strand &strand) {
  Channel &channel = *strand.channel(op.getChannel());
  if (channel.acquired - channel.released >= channel.depth)
    return makeError(op, "waits for ever: expected a free buffer, but all " +
                             llvm::Twine(channel.depth) +
                             " of the channel are in use");
  // What was in it is gone.
  channel.data[channel.acquired % channel.depth] = nullptr;
  strand.set(op, BufferRef{&channel, channel.acquired++});
  return llvm::Error::success();
}

static llvm::Error commit(CommitOp op, Strand &strand) {
  Channel &channel = *strand.channel(op.getChannel());
  if (channel.committed == channel.acquired)
    return makeError(op, "expected an acquired buffer to commit, but there is "
                         "none");
  ++channel.committed;
  return llvm::Error::success();
}

static llvm::Error get(GetOp op, Strand &strand) {
  Channel &channel = *strand.channel(op.getChannel());
  if (channel.gotten == channel.committed)
    return makeError(op, "waits for ever: expected a committed buffer to get, "
                         "but there is none");
  strand.set(op, BufferRef{&channel, channel.gotten++});
  return llvm::Error::success();
}

static llvm::Error release(ReleaseOp op, Strand &strand) {
  Channel &channel = *strand.channel(op.getChannel());
  if (channel.released == channel.gotten)
    return makeError(op, "expected a gotten buffer to release, but there is "
                         "none");
  ++channel.released;
  return llvm::Error::success();
}

llvm::Error Strand::endItem() {
  for (const std::unique_ptr<Channel> &channel : channels) {
    if (channel->released != channel->gotten)
      return makeError(channel->op,
                       "expected every gotten buffer to be "
                       "released before the item ends, but " +
                           llvm::Twine(channel->gotten - channel->released) +
                           " are not");
    // Copies past an item's last tile are of nothing.
    for (int64_t n = channel->gotten; n < channel->acquired; ++n)
      if (channel->data[n % channel->depth])
        return makeError(channel->op,
                         "expected what is copied to be gotten before the item "
                         "ends, but a buffer is " +
                             llvm::Twine(stateOf(*channel, n)));
    channel->acquired = channel->committed = channel->gotten =
        channel->released = 0;
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Contents of buffers
//===----------------------------------------------------------------------===//

static llvm::Error copy(Operation *op, Value to, Elements elements,
                        Strand &strand) {
  const BufferRef &buffer = strand.buffer(to);
  Channel &channel = *buffer.channel;
  if (buffer.number < channel.committed)
    return makeError(op, "expected an acquired buffer to copy into, but it "
                         "is " +
                             llvm::Twine(stateOf(channel, buffer.number)));
  channel.data[buffer.number % channel.depth] =
      std::make_shared<const Elements>(std::move(elements));
  return llvm::Error::success();
}

static llvm::Error copyRows(CopyRowsOp op, Strand &strand) {
  BufType type = op.getBuffer().getType();
  llvm::Expected<Elements> rows =
      readRows(op.getSource(), op.getItem(), op.getGroup(), type.getRows(),
               type.getColumns(), hasFloats(type.getElement()), strand);
  if (!rows)
    return at(op, rows.takeError());
  return copy(op, op.getBuffer(), std::move(*rows), strand);
}

static llvm::Error copyKV(CopyKVOp op, Strand &strand) {
  if (op.getValid() && !strand.integer(op.getValid()))
    return llvm::Error::success();
  BufType type = op.getBuffer().getType();
  llvm::Expected<Elements> rows = readKV(
      op.getView(), op.getItem(), op.getPart(), strand.integer(op.getKey()),
      type.getRows(), type.getColumns(), hasFloats(type.getElement()), strand);
  if (!rows)
    return at(op, rows.takeError());
  return copy(op, op.getBuffer(), std::move(*rows), strand);
}

llvm::Expected<ElementsRef> Strand::operand(Operation *op, Value value) {
  if (!isa<BufType>(value.getType()))
    return std::get<ElementsRef>(get(value));
  const BufferRef &ref = buffer(value);
  const Channel &channel = *ref.channel;
  if (ref.number < channel.released || ref.number >= channel.gotten)
    return makeError(op, "expected a gotten buffer to read, but it is " +
                             llvm::Twine(stateOf(channel, ref.number)));
  const ElementsRef &data = channel.data[ref.number % channel.depth];
  if (!data)
    return makeError(op, "reads a buffer that nothing was copied into");
  return data;
}

static llvm::Error readBuffer(ReadOp op, Strand &strand) {
  llvm::Expected<ElementsRef> data = strand.operand(op, op.getBuffer());
  if (!data)
    return data.takeError();
  BufType type = op.getBuffer().getType();
  strand.set(op, std::make_shared<const Elements>(selectColumns(
                     **data, type.getRows(), type.getColumns(),
                     op.getType().getDimSize(1), op.getFirst().value_or(0),
                     op.getStep().value_or(1))));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Cursors
//===----------------------------------------------------------------------===//

static llvm::Error startCursor(CursorOp op, Strand &strand) {
  llvm::Expected<std::vector<int64_t>> tiles =
      strand.visitedTiles(op, op.getItem(), op.getStep());
  if (!tiles)
    return tiles.takeError();
  strand.set(op, CursorPlace{std::make_shared<const std::vector<int64_t>>(
                                 std::move(*tiles)),
                             0});
  return llvm::Error::success();
}

static void advance(AdvanceOp op, Strand &strand) {
  CursorPlace place = strand.cursor(op.getCursor());
  if (place.at < place.tiles->size())
    ++place.at;
  strand.set(op, place);
}

static void readCursor(CursorKeyOp op, Strand &strand) {
  const CursorPlace &place = strand.cursor(op.getCursor());
  bool valid = place.at < place.tiles->size();
  strand.set(op.getKey(), makeIntegers({valid ? (*place.tiles)[place.at] : 0}));
  strand.set(op.getValid(), makeIntegers({valid}));
}

llvm::Expected<bool> fi::tile::evaluateChannel(Operation *op, Strand &strand) {
  auto done = [](llvm::Error error) -> llvm::Expected<bool> {
    if (error)
      return std::move(error);
    return true;
  };
  if (auto channel = dyn_cast<ChannelOp>(op)) {
    strand.addChannel(channel);
    return true;
  }
  if (auto ring = dyn_cast<AcquireOp>(op))
    return done(acquire(ring, strand));
  if (auto ring = dyn_cast<CommitOp>(op))
    return done(commit(ring, strand));
  if (auto ring = dyn_cast<GetOp>(op))
    return done(get(ring, strand));
  if (auto ring = dyn_cast<ReleaseOp>(op))
    return done(release(ring, strand));
  if (auto rows = dyn_cast<CopyRowsOp>(op))
    return done(copyRows(rows, strand));
  if (auto keys = dyn_cast<CopyKVOp>(op))
    return done(copyKV(keys, strand));
  if (auto cursor = dyn_cast<CursorOp>(op))
    return done(startCursor(cursor, strand));
  if (auto step = dyn_cast<AdvanceOp>(op)) {
    advance(step, strand);
    return true;
  }
  if (auto key = dyn_cast<CursorKeyOp>(op)) {
    readCursor(key, strand);
    return true;
  }
  if (auto move = dyn_cast<RelayoutOp>(op)) {
    strand.set(move, strand.get(move.getSource()));
    return true;
  }
  if (auto any = dyn_cast<AnyOp>(op)) {
    const Elements &elements = strand.elements(any.getSource());
    strand.set(any, makeIntegers({llvm::any_of(
                        elements.integers, [](int64_t x) { return x != 0; })}));
    return true;
  }
  // Copies look the table up themselves.
  if (auto locate = dyn_cast<LocateOp>(op)) {
    strand.set(locate, makeIntegers({0}));
    return true;
  }
  if (auto read = dyn_cast<ReadOp>(op))
    return done(readBuffer(read, strand));
  if (auto write = dyn_cast<WriteOp>(op))
    return done(copy(write, write.getBuffer(), strand.elements(write.getTile()),
                     strand));
  return false;
}
