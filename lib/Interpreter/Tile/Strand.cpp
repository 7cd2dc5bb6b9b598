//===- Strand.cpp - one thread of control of an interpreted kernel --------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Strand.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

llvm::Error fi::tile::makeError(Operation *op, const llvm::Twine &message) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>())
    os << loc.getFilename().getValue() << ':' << loc.getLine() << ':'
       << loc.getColumn();
  else
    os << op->getLoc();
  os << ": '" << op->getName() << "' op " << message;
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

Strand::Strand(const KernelContext &context, Block &entry, int64_t group,
               RoleOp role)
    : context(context), group(group), role(role) {
  frames.push_back({nullptr, &entry, entry.begin(), {}});
}

void Strand::addChannel(ChannelOp op) {
  // Roles have channels in common, groups each their own.
  std::unique_ptr<Channel> &channel =
      role ? context.channels[op] : channels.emplace_back();
  if (!channel) {
    int64_t depth = op.getType().getDepth();
    channel = std::make_unique<Channel>();
    *channel = {op, depth, 0, 0, 0, 0, std::vector<ElementsRef>(depth)};
  }
  set(op, channel.get());
}

Operation *Strand::getWaiting() {
  if (!role || isFinished() || frames.back().next == frames.back().block->end())
    return nullptr;
  Operation *op = &*frames.back().next;
  if (auto acquire = dyn_cast<AcquireOp>(op)) {
    Channel &ring = *channel(acquire.getChannel());
    return ring.acquired - ring.released >= ring.depth ? op : nullptr;
  }
  if (auto taken = dyn_cast<GetOp>(op)) {
    Channel &ring = *channel(taken.getChannel());
    return ring.gotten == ring.committed ? op : nullptr;
  }
  return nullptr;
}

SmallVector<RuntimeValue> Strand::getAll(ValueRange range) {
  SmallVector<RuntimeValue> result;
  for (Value value : range)
    result.push_back(get(value));
  return result;
}

void Strand::finish(Operation *op, ArrayRef<RuntimeValue> results) {
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    set(result, value);
  ++frames.back().next;
}

bool Strand::iterate(ArrayRef<RuntimeValue> carried) {
  Frame &frame = frames.back();
  while (!frame.trips.empty() && frame.trips.back().count == 0)
    frame.trips.pop_back();
  if (frame.trips.empty())
    return false;
  Trips &trips = frame.trips.back();
  Block::BlockArgListType arguments = frame.block->getArguments();
  if (isa<ItemType>(arguments[0].getType()))
    set(arguments[0], context.work.items + trips.first);
  else
    set(arguments[0], makeIntegers({wrap(static_cast<uint64_t>(trips.first),
                                         getWidth(arguments[0].getType()))}));
  trips.first = static_cast<int64_t>(static_cast<uint64_t>(trips.first) +
                                     static_cast<uint64_t>(trips.step));
  --trips.count;
  for (auto [argument, value] :
       llvm::zip_equal(arguments.drop_front(), carried))
    set(argument, value);
  frame.next = frame.block->begin();
  return true;
}

void Strand::enterLoop(Operation *op, Block &body, SmallVector<Trips> trips,
                       SmallVector<RuntimeValue> carried) {
  std::reverse(trips.begin(), trips.end());
  frames.push_back({op, &body, body.begin(), std::move(trips)});
  if (iterate(carried))
    return;
  frames.pop_back();
  finish(op, carried);
}

llvm::Error Strand::leave(Operation *terminator) {
  SmallVector<RuntimeValue> results = getAll(terminator->getOperands());
  Operation *op = frames.back().op;
  if (isa_and_nonnull<ForItemsOp>(op))
    if (llvm::Error error = endItem())
      return error;
  if (op && iterate(results))
    return llvm::Error::success();
  frames.pop_back();
  if (op)
    finish(op, results);
  return llvm::Error::success();
}

/// What every kernel relies on. Indices into tensors are checked where used.
static llvm::Error checkItem(ForItemsOp op, KernelOp kernel,
                             const fi_item &item, int64_t index) {
  auto fail = [&](const llvm::Twine &what) {
    return makeError(op, "expected item " + llvm::Twine(index) + " to have " +
                             what);
  };
  int64_t tileRows = kernel.getSchedule().getTileRows();
  if (item.row_count < 1 || item.row_count > tileRows)
    return fail("1 to " + llvm::Twine(tileRows) + " rows, but got " +
                llvm::Twine(item.row_count));
  if (item.row_begin < 0)
    return fail("a row_begin of at least 0, but got " +
                llvm::Twine(item.row_begin));
  if (item.kv_head < 0)
    return fail("a kv_head of at least 0, but got " +
                llvm::Twine(item.kv_head));
  if (item.q_begin < 0 || item.q_len < 0 || item.kv_len < 0)
    return fail("q_begin, q_len and kv_len of at least 0, but got " +
                llvm::Twine(item.q_begin) + ", " + llvm::Twine(item.q_len) +
                " and " + llvm::Twine(item.kv_len));
  if (item.full_ranges < 0 || item.partial_ranges < 0 ||
      (item.full_ranges + int64_t(item.partial_ranges) > 0 &&
       item.range_begin < 0))
    return fail("counts of ranges of at least 0, but got " +
                llvm::Twine(item.full_ranges) + " full and " +
                llvm::Twine(item.partial_ranges) + " partial ones from " +
                llvm::Twine(item.range_begin));
  return llvm::Error::success();
}

llvm::Error Strand::enterForItems(ForItemsOp op) {
  for (int64_t i = context.begin; i < context.end; ++i)
    if (llvm::Error error =
            checkItem(op, context.kernel, context.work.items[i], i))
      return error;
  enterLoop(op, op.getBody().front(),
            {{context.begin, 1, context.end - context.begin}},
            getAll(op.getInits()));
  return llvm::Error::success();
}

llvm::Expected<SmallVector<Strand::Trips>>
Strand::collectTrips(Operation *op, const fi_item &it, Part part,
                     int64_t step) {
  SmallVector<Trips> trips;
  bool needsTiles = false;
  if (auto loop = dyn_cast<ForKeysOp>(op))
    needsTiles = loop.getSelection().has_value();
  for (bool full : {true, false}) {
    if (part == (full ? Part::Partial : Part::Full))
      continue;
    int64_t first = it.range_begin + (full ? 0 : int64_t(it.full_ranges));
    int64_t count = full ? it.full_ranges : it.partial_ranges;
    for (int64_t i = first; i < first + count; ++i) {
      const fi_key_range &range = context.work.ranges[i];
      auto fail = [&](const llvm::Twine &what) {
        return makeError(op, "expected " + what + ", but got range " +
                                 llvm::Twine(i) + " with keys [" +
                                 llvm::Twine(range.begin) + ", " +
                                 llvm::Twine(range.end) + ")");
      };
      if (range.begin < 0 || range.begin > range.end || range.end > it.kv_len)
        return fail("a range within the " + llvm::Twine(it.kv_len) +
                    " keys of the request");
      if (range.begin % step != 0 || (full && range.end % step != 0))
        return fail(llvm::Twine(full ? "a full range that begins and ends"
                                     : "a range that begins") +
                    " at a multiple of " + llvm::Twine(step));
      if (needsTiles && range.begin == range.end)
        return fail("ranges with keys");
      // Groups of warps take the tiles of each range in turn.
      int64_t tiles = (range.end - range.begin + step - 1) / step;
      int64_t groups = context.getGroups();
      trips.push_back({range.begin + group * step, groups * step,
                       (tiles - group + groups - 1) / groups});
    }
  }
  return trips;
}

llvm::Expected<std::vector<int64_t>>
Strand::visitedTiles(Operation *op, Value it, int64_t step) {
  llvm::Expected<SmallVector<Trips>> trips =
      collectTrips(op, item(it), Part::All, step);
  if (!trips)
    return trips.takeError();
  std::vector<int64_t> tiles;
  for (const Trips &trip : *trips)
    for (int64_t i = 0; i < trip.count; ++i)
      tiles.push_back(trip.first + i * trip.step);
  return tiles;
}

/// The first or the last of some tiles, or all but the first of all. Where
/// there are full ones, the first of all is none of the `partial` ones.
static void select(SmallVectorImpl<Strand::Trips> &trips, Selection selection,
                   bool hasFull, bool partial) {
  llvm::erase_if(trips, [](const Strand::Trips &t) { return t.count == 0; });
  if (trips.empty())
    return;
  switch (selection) {
  case Selection::First:
    trips.truncate(1);
    trips.front().count = 1;
    return;
  case Selection::Last: {
    Strand::Trips last = trips.back();
    trips.assign({{last.first + (last.count - 1) * last.step, last.step, 1}});
    return;
  }
  case Selection::Rest:
    if (partial && hasFull)
      return;
    trips.front().first += trips.front().step;
    --trips.front().count;
    return;
  }
}

llvm::Error Strand::enterForKeys(ForKeysOp op) {
  llvm::Expected<SmallVector<Trips>> trips =
      collectTrips(op, item(op.getItem()), op.getPart(), op.getStep());
  if (!trips)
    return trips.takeError();
  if (std::optional<Selection> selection = op.getSelection())
    select(*trips, *selection, item(op.getItem()).full_ranges > 0,
           op.getPart() == Part::Partial);
  enterLoop(op, op.getBody().front(), std::move(*trips), getAll(op.getInits()));
  return llvm::Error::success();
}

llvm::Error Strand::enterFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  unsigned width = getWidth(loop.getInductionVar().getType());
  int64_t lower = integer(loop.getLowerBound());
  int64_t upper = integer(loop.getUpperBound());
  int64_t step = integer(loop.getStep());
  int64_t count = 0;
  bool isUnsigned = loop.getUnsignedCmp();
  bool runs = isUnsigned ? asUnsigned(lower, width) < asUnsigned(upper, width)
                         : asSigned(lower, width) < asSigned(upper, width);
  uint64_t stride = isUnsigned ? asUnsigned(step, width)
                               : static_cast<uint64_t>(asSigned(step, width));
  if (stride == 0 || (!isUnsigned && asSigned(step, width) < 0))
    return makeError(op, "expected a step of at least 1, but got " +
                             llvm::Twine(asSigned(step, width)));
  if (runs) {
    uint64_t distance = asUnsigned(upper, width) - asUnsigned(lower, width);
    distance &= llvm::maskTrailingOnes<uint64_t>(width);
    count = static_cast<int64_t>((distance - 1) / stride + 1);
  }
  enterLoop(op, *loop.getBody(), {{lower, static_cast<int64_t>(stride), count}},
            getAll(loop.getInitArgs()));
  return llvm::Error::success();
}

llvm::Error Strand::enterIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  Region &region = integer(branch.getCondition()) ? branch.getThenRegion()
                                                  : branch.getElseRegion();
  if (region.empty())
    finish(op, {});
  else
    frames.push_back({op, &region.front(), region.front().begin(), {}});
  return llvm::Error::success();
}

/// Where all groups of warps wait for one another.
static bool isMeeting(Operation *op) {
  if (auto store = dyn_cast<StoreMergedStateOp>(op))
    return store.synchronises();
  return isa<ShareStateOp, ArriveLastOp>(op) ||
         (isa<tile::YieldOp>(op) && isa<ForItemsOp>(op->getParentOp()));
}

llvm::Error Strand::step() {
  // A role ends without a terminator.
  if (frames.back().next == frames.back().block->end()) {
    Operation *ended = frames.back().op;
    frames.pop_back();
    finish(ended, {});
    return llvm::Error::success();
  }
  Operation *op = &*frames.back().next;
  if (auto other = dyn_cast<RoleOp>(op)) {
    Block &block = other.getBody().front();
    if (other == role)
      frames.push_back({op, &block, block.begin(), {}});
    else
      ++frames.back().next;
    return llvm::Error::success();
  }
  if (context.getGroups() > 1 && isMeeting(op) && !hasMet) {
    meeting = op;
    return llvm::Error::success();
  }
  hasMet = false;
  if (auto loop = dyn_cast<ForItemsOp>(op))
    return enterForItems(loop);
  if (auto loop = dyn_cast<ForKeysOp>(op))
    return enterForKeys(loop);
  if (isa<scf::ForOp>(op))
    return enterFor(op);
  if (isa<scf::IfOp>(op))
    return enterIf(op);
  if (isa<tile::YieldOp, tile::ReturnOp, scf::YieldOp>(op)) {
    return leave(op);
  }
  for (auto *evaluate : {evaluateElementwise, evaluateTile, evaluateMemory,
                         evaluateNormaliser, evaluateChannel, evaluateGroup}) {
    llvm::Expected<bool> done = evaluate(op, *this);
    if (!done)
      return done.takeError();
    if (*done) {
      ++frames.back().next;
      return llvm::Error::success();
    }
  }
  return makeError(op, "cannot be interpreted; expected fi_tile, arith, math, "
                       "tensor.splat, scf.for or scf.if");
}
