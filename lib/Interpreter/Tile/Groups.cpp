//===- Groups.cpp - groups of warps in the level 2 interpreter ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each group of warps (`key_warps` of the schedule) is a strand with channels
// and values of its own, which takes the key tiles of an item in turn with the
// others. A strand runs until it comes to an op at which all wait for one
// another; when not all of them come to the same one, they would wait for ever.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

llvm::Error
fi::tile::runStrands(KernelContext &context,
                     MutableArrayRef<std::unique_ptr<Strand>> strands) {
  while (true) {
    for (std::unique_ptr<Strand> &strand : strands)
      while (!strand->isFinished() && !strand->getMeeting())
        if (llvm::Error error = strand->step())
          return error;
    Operation *meeting = nullptr;
    for (std::unique_ptr<Strand> &strand : strands)
      if (!meeting)
        meeting = strand->getMeeting();
    if (!meeting)
      return llvm::Error::success();
    for (std::unique_ptr<Strand> &strand : strands) {
      Operation *other = strand->getMeeting();
      if (other == meeting)
        continue;
      std::string where = " has ended";
      if (other)
        where = (" is at '" + other->getName().getStringRef() + "'").str();
      return makeError(meeting, "waits for ever: expected all " +
                                    llvm::Twine(strands.size()) +
                                    " groups of warps, but group " +
                                    llvm::Twine(strand->getGroup()) + where);
    }
    for (std::unique_ptr<Strand> &strand : strands) {
      auto &[output, statistic] = context.shared[strand->getGroup()];
      // What was shared lies where the next item's buffers will.
      if (isa<tile::YieldOp>(meeting))
        output = statistic = nullptr;
      if (auto share = dyn_cast<ShareStateOp>(meeting)) {
        output = std::get<ElementsRef>(strand->get(share.getOutput()));
        statistic = std::get<ElementsRef>(strand->get(share.getStatistic()));
      }
      strand->goOn();
    }
  }
}

llvm::Error
fi::tile::runRoles(KernelContext &context,
                   MutableArrayRef<std::unique_ptr<Strand>> strands) {
  bool moves = true;
  while (moves) {
    moves = false;
    for (std::unique_ptr<Strand> &strand : strands)
      while (!strand->isFinished() && !strand->getWaiting()) {
        moves = true;
        if (llvm::Error error = strand->step())
          return error;
      }
  }
  for (std::unique_ptr<Strand> &strand : strands)
    if (Operation *waiting = strand->getWaiting())
      return makeError(waiting,
                       "waits for ever: role '" + strand->getRole().getName() +
                           "' expected a " +
                           (isa<AcquireOp>(waiting) ? "free" : "committed") +
                           " buffer, but the other roles are at "
                           "their end, or wait, too");
  for (auto &[op, channel] : context.channels)
    if (channel->acquired != channel->released)
      return makeError(op,
                       "expected every buffer that is filled to be read "
                       "and released, but " +
                           llvm::Twine(channel->acquired - channel->released) +
                           " are not");
  return llvm::Error::success();
}

/// Part of the columns of what a group shared.
static llvm::Error loadGroupState(LoadGroupStateOp op, Strand &strand) {
  const KernelContext &context = strand.getContext();
  int64_t index = strand.integer(op.getIndex());
  int64_t part = strand.integer(op.getPart());
  auto type = cast<RankedTensorType>(op.getOutput().getType());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  int64_t width = op.getColumns();
  if (index < 0 || index >= context.getGroups())
    return makeError(op, "expected a group of warps below " +
                             llvm::Twine(context.getGroups()) + ", but got " +
                             llvm::Twine(index));
  if (part < 0 || (part + 1) * columns > width)
    return makeError(op, "expected a part of " + llvm::Twine(columns) +
                             " of the " + llvm::Twine(width) +
                             " columns, but got part " + llvm::Twine(part));
  auto [output, statistic] = context.shared[index];
  if (!output)
    return makeError(op, "expected a state that group " + llvm::Twine(index) +
                             " has shared in this item, but there is none");
  // A few rows of the kernel's tile, or all of them.
  int64_t shared = rows, from = 0;
  if (op.getRow()) {
    shared = op->getParentOfType<KernelOp>().getSchedule().getTileRows();
    from = strand.integer(op.getRow());
    if (from < 0 || from >= shared)
      return makeError(op, "expected a row of " + llvm::Twine(shared) +
                               ", but got " + llvm::Twine(from));
  }
  if (static_cast<int64_t>(output->floats.size()) != shared * width ||
      static_cast<int64_t>(statistic->floats.size()) != shared)
    return makeError(op, "expected a state of " + llvm::Twine(shared) + " x " +
                             llvm::Twine(width) + ", but group " +
                             llvm::Twine(index) + " has shared " +
                             llvm::Twine(statistic->floats.size()) +
                             " rows of " + llvm::Twine(output->floats.size()) +
                             " elements in all");
  std::vector<double> loaded, statistics;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t row = std::min(from + r, shared - 1);
    auto first = output->floats.begin() + row * width + part * columns;
    loaded.insert(loaded.end(), first, first + columns);
    statistics.push_back(statistic->floats[row]);
  }
  strand.set(op.getOutput(), makeFloats(std::move(loaded)));
  strand.set(op.getStatistic(), makeFloats(std::move(statistics)));
  return llvm::Error::success();
}

llvm::Expected<bool> fi::tile::evaluateGroup(Operation *op, Strand &strand) {
  if (auto load = dyn_cast<LoadGroupStateOp>(op)) {
    if (llvm::Error error = loadGroupState(load, strand))
      return std::move(error);
  } else if (auto group = dyn_cast<GroupOp>(op)) {
    strand.set(group, makeIntegers({strand.getGroup()}));
  } else if (auto groups = dyn_cast<GroupsOp>(op)) {
    strand.set(groups, makeIntegers({strand.getContext().getGroups()}));
  } else if (auto arrive = dyn_cast<ArriveLastOp>(op)) {
    // Pieces are merged by the plan's own launch here.
    strand.set(arrive, makeIntegers({0}));
  } else if (!isa<ShareStateOp, MarkOp, LaunchNextOp, AwaitLaunchesOp,
                  PrefetchKVOp>(op)) {
    // Of those nobody looks at the time, and launches follow one another.
    return false;
  }
  return true;
}
