//===- SlotReplay.cpp - plays the order of waits and barriers -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose channels are lowered: buffers are slots with numbers, which are
// computed as the replay goes; copies belong to groups that are committed and
// waited for. A slot may be read when the group of its copies has arrived, or
// it was written, and all warps have been at a barrier since; it may be filled
// again when all have been at one since it was read.
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include <functional>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static bool isBarrier(Operation *op) {
  if (auto store = dyn_cast<StoreMergedStateOp>(op))
    return store.synchronises();
  return isa<NVVM::Barrier0Op, NVVM::BarrierOp, NVVM::SyncWarpOp, ShareStateOp,
             ArriveLastOp>(op);
}

static bool isEvent(Operation *op) {
  return isBarrier(op) || !getReadBuffers(op).empty() ||
         isa<CopyRowsOp, CopyKVOp, WriteOp, SlotOp, NVVM::CpAsyncCommitGroupOp,
             NVVM::CpAsyncWaitGroupOp>(op);
}

namespace {

class SlotReplay {
public:
  SlotReplay(ReplayedOps &ops, LoopTrips trips)
      : ops(ops), trips(std::move(trips)) {}

  /// Events, and what numbers of slots come from.
  static bool isReplayed(Operation *op) {
    return isEvent(op) || (isa<arith::ArithDialect>(op->getDialect()) &&
                           op->getNumResults() == 1 &&
                           op->getResult(0).getType().isIntOrIndex());
  }

  LogicalResult run(ForItemsOp items) {
    bool hasGroups =
        items->getParentOfType<KernelOp>().getSchedule().getKeyWarps() > 1;
    for (int round = 0; round < 2; ++round) {
      if (failed(replay(items.getBody().front())))
        return failure();
      for (auto &[place, slot] : slots)
        if (slot.group && !slot.empty && !slot.arrivedAt)
          return place.first.getDefiningOp()->emitOpError(
                     "expected what is copied to be waited for before the item "
                     "ends, but copies into slot ")
                 << place.second << " of " << describeChannel(place.first)
                 << " are not [TILE30]";
      // Groups of warps meet at the end of an item.
      if (hasGroups)
        ++barriers;
    }
    return success();
  }

private:
  struct Slot {
    /// Group of the last copy; none where nothing was copied.
    std::optional<int64_t> group;
    /// The copy may be of nothing.
    bool empty = false;
    /// Barriers when this thread knew that the copy had arrived, and when the
    /// slot was read last, or written.
    std::optional<int64_t> arrivedAt, readAt, writtenAt;
  };
  using Place = std::pair<Value, int64_t>;

  //===--- Numbers --------------------------------------------------------===//

  std::optional<int64_t> number(Value value) {
    auto known = numbers.find(value);
    if (known != numbers.end())
      return known->second;
    // Outside of the loop over items.
    APInt constant;
    if (!matchPattern(value, m_ConstantInt(&constant)))
      return std::nullopt;
    return constant.getBitWidth() == 1 ? constant.getZExtValue()
                                       : constant.getSExtValue();
  }
  void setNumber(Value value, std::optional<int64_t> to) {
    if (to)
      numbers[value] = *to;
    else
      numbers.erase(value);
  }

  static bool compare(arith::CmpIPredicate predicate, int64_t a, int64_t b) {
    auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return a == b;
    case arith::CmpIPredicate::ne:
      return a != b;
    case arith::CmpIPredicate::slt:
      return a < b;
    case arith::CmpIPredicate::sle:
      return a <= b;
    case arith::CmpIPredicate::sgt:
      return a > b;
    case arith::CmpIPredicate::sge:
      return a >= b;
    case arith::CmpIPredicate::ult:
      return x < y;
    case arith::CmpIPredicate::ule:
      return x <= y;
    case arith::CmpIPredicate::ugt:
      return x > y;
    case arith::CmpIPredicate::uge:
      return x >= y;
    }
    return false;
  }

  /// Numbers of slots come from constants by this arithmetic.
  void compute(Operation *op) {
    auto of = [&](unsigned operand) { return number(op->getOperand(operand)); };
    auto binary = [&](auto combine) -> std::optional<int64_t> {
      if (auto a = of(0), b = of(1); a && b)
        return combine(*a, *b);
      return std::nullopt;
    };
    std::optional<int64_t> result;
    if (isa<arith::AddIOp>(op)) {
      result = binary(std::plus<int64_t>());
    } else if (isa<arith::SubIOp>(op)) {
      result = binary(std::minus<int64_t>());
    } else if (isa<arith::XOrIOp>(op)) {
      result = binary(std::bit_xor<int64_t>());
    } else if (isa<arith::AndIOp>(op)) {
      result = binary(std::bit_and<int64_t>());
    } else if (isa<arith::RemUIOp, arith::RemSIOp>(op)) {
      result = binary([](int64_t a, int64_t b) { return b > 0 ? a % b : 0; });
    } else if (auto test = dyn_cast<arith::CmpIOp>(op)) {
      result = binary([&](int64_t a, int64_t b) -> int64_t {
        return compare(test.getPredicate(), a, b);
      });
    } else if (isa<arith::SelectOp>(op)) {
      if (auto condition = of(0))
        result = of(*condition ? 1 : 2);
    } else if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
      result = of(0);
    } else {
      return;
    }
    setNumber(op->getResult(0), result);
  }

  //===--- Slots ----------------------------------------------------------===//

  LogicalResult locate(SlotOp op) {
    int64_t depth = op.getChannel().getType().getDepth();
    std::optional<int64_t> at = number(op.getNumber());
    if (!at)
      return op.emitOpError("expected the number of a slot of ")
             << describeChannel(op.getChannel())
             << " to follow from constants and the trips of loops [TILE30]";
    if (*at < 0 || *at >= depth)
      return op.emitOpError("expected a slot below ")
             << depth << " of " << describeChannel(op.getChannel())
             << ", but got " << *at << " [TILE30]";
    places.insert_or_assign(op.getBuffer(), Place(op.getChannel(), *at));
    return success();
  }

  FailureOr<Place> placeOf(Operation *op, Value buffer) {
    auto place = places.find(buffer);
    if (place != places.end())
      return place->second;
    op->emitOpError("expected buffers that are results of fi_tile.slot in the "
                    "same item [TILE30]");
    return failure();
  }

  LogicalResult failReadStill(Operation *op, Place place, const char *what) {
    return op->emitOpError("expected a barrier between the last read of slot ")
           << place.second << " of " << describeChannel(place.first) << " and "
           << what << ": another warp may still be reading it [TILE30]";
  }

  LogicalResult failUnderWay(Operation *op, Place place, const char *before) {
    return op->emitOpError("expected earlier copies into slot ")
           << place.second << " of " << describeChannel(place.first)
           << " to be waited for before " << before << " [TILE30]";
  }

  LogicalResult copy(Operation *op, Value buffer) {
    FailureOr<Place> place = placeOf(op, buffer);
    if (failed(place))
      return failure();
    Slot &slot = slots[*place];
    if (slot.readAt && *slot.readAt == barriers)
      return failReadStill(op, *place, "the copy that fills it again");
    bool isSame = slot.group && *slot.group == groups;
    if (slot.group && !slot.arrivedAt && !isSame && !slot.empty)
      return failUnderWay(op, *place, "it is filled again");
    slot = {groups, (!isSame || slot.empty) && mayCopyNothing(op), {}, {}, {}};
    return success();
  }

  LogicalResult write(WriteOp op) {
    FailureOr<Place> place = placeOf(op, op.getBuffer());
    if (failed(place))
      return failure();
    Slot &slot = slots[*place];
    if (slot.readAt && *slot.readAt == barriers)
      return failReadStill(op, *place, "what is written there");
    if (slot.group && !slot.arrivedAt && !slot.empty)
      return failUnderWay(op, *place, "it is written");
    slot = {};
    slot.writtenAt = barriers;
    return success();
  }

  LogicalResult read(Operation *op, Value buffer) {
    FailureOr<Place> place = placeOf(op, buffer);
    if (failed(place))
      return failure();
    Slot &slot = slots[*place];
    auto fail = [&](const char *expected) {
      return op->emitOpError("expected ")
             << expected << " slot " << place->second << " of "
             << describeChannel(place->first) << " before it is read";
    };
    if (slot.writtenAt) {
      if (*slot.writtenAt == barriers)
        return fail("a barrier behind what is written to")
               << ": other warps have written parts of it [TILE30]";
      slot.readAt = barriers;
      return success();
    }
    if (!slot.group)
      return fail("a copy into") << " [TILE30]";
    if (*slot.group == groups)
      return fail("nvvm.cp.async.commit.group after the copies into")
             << " [TILE30]";
    if (!slot.arrivedAt)
      return fail("nvvm.cp.async.wait.group for the copies into")
             << "; groups committed since that one: "
             << groups - 1 - *slot.group << " [TILE30]";
    if (*slot.arrivedAt == barriers)
      return fail("a barrier behind the wait for the copies into")
             << ": other warps have copied parts of it [TILE30]";
    slot.readAt = barriers;
    return success();
  }

  /// States lie where the buffers are.
  LogicalResult share(ShareStateOp op) {
    for (auto &[place, slot] : slots)
      if (slot.group && !slot.empty && !slot.arrivedAt)
        return op.emitOpError("expected copies into slot ")
               << place.second << " of " << describeChannel(place.first)
               << " to be waited for before states take the place of buffers "
                  "[TILE30]";
    return success();
  }

  LogicalResult loop(Operation *op) {
    Block &body = op->getRegion(0).front();
    auto keys = dyn_cast<ForKeysOp>(op);
    SmallVector<std::optional<int64_t>> carried;
    for (Value init : keys ? keys.getInits() : cast<scf::ForOp>(op).getInits())
      carried.push_back(number(init));
    for (int64_t trip = 0, end = trips.lookup(op); trip < end; ++trip) {
      for (auto [argument, value] :
           llvm::zip(body.getArguments().drop_front(), carried))
        setNumber(argument, value);
      if (failed(replay(body)))
        return failure();
      carried.clear();
      for (Value value : body.getTerminator()->getOperands())
        carried.push_back(number(value));
    }
    for (auto [result, value] : llvm::zip(op->getResults(), carried))
      setNumber(result, value);
    return success();
  }

  LogicalResult replay(Block &block) {
    for (Operation *op : ops.of(block))
      if (failed(replay(op)))
        return failure();
    return success();
  }

  LogicalResult replay(Operation *op) {
    if (auto slot = dyn_cast<SlotOp>(op))
      return locate(slot);
    // A count that some runs have and others do not says nothing.
    if (branches > 0 && isEvent(op) &&
        !isa<ArriveLastOp, StoreMergedStateOp>(op) &&
        getReadBuffers(op).empty())
      return op->emitOpError("expected copies, waits and barriers in loops "
                             "only, not in branches [TILE30]");
    if (auto rows = dyn_cast<CopyRowsOp>(op))
      return copy(op, rows.getBuffer());
    if (auto keys = dyn_cast<CopyKVOp>(op))
      return copy(op, keys.getBuffer());
    if (auto store = dyn_cast<WriteOp>(op))
      return write(store);
    if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
      ++groups;
      return success();
    }
    if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
      for (auto &[place, slot] : slots)
        if (slot.group && *slot.group < groups - wait.getN() && !slot.arrivedAt)
          slot.arrivedAt = barriers;
      return success();
    }
    if (auto states = dyn_cast<ShareStateOp>(op))
      if (failed(share(states)))
        return failure();
    if (isBarrier(op)) {
      // In a branch it is one that some runs do not have.
      if (branches == 0)
        ++barriers;
      return success();
    }
    for (Value buffer : getReadBuffers(op))
      if (failed(read(op, buffer)))
        return failure();
    if (isa<ForKeysOp, scf::ForOp>(op))
      return loop(op);
    if (isa<arith::ArithDialect>(op->getDialect()))
      compute(op);
    ++branches;
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(replay(block)))
          return failure();
    --branches;
    return success();
  }

  ReplayedOps &ops;
  LoopTrips trips;
  llvm::MapVector<Place, Slot> slots;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<Value, int64_t> numbers;
  int64_t groups = 0, barriers = 0, branches = 0;
};

} // namespace

LogicalResult fi::tile::replaySlots(ForItemsOp items) {
  ReplayedOps ops(SlotReplay::isReplayed);
  return forEachTrips(items, isEvent, [&](LoopTrips trips) {
    return SlotReplay(ops, std::move(trips)).run(items);
  });
}
