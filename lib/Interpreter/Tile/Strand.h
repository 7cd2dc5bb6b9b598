//===- Strand.h - one thread of control of an interpreted kernel -*- C++
//-*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strand holds its own stack of regions and its own values, and executes one
// op at a time: it can be left after any op and resumed, which is what several
// strands of one kernel need. Ops without regions are functions of the strand's
// values, in the files beside this one.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INTERPRETER_TILE_STRAND_H
#define FI_INTERPRETER_TILE_STRAND_H

#include "RuntimeValue.h"
#include "fi/Interpreter/TileInterpreter.h"
#include "llvm/ADT/DenseMap.h"

namespace fi::tile {

/// What the strands of one kernel share.
struct KernelContext {
  KernelOp kernel;
  const fi_work &work;
  int64_t begin, end;
  StateSlots &slots;
  /// Whether `slots` knows all states.
  bool knowsSlots;
  /// Output and statistic that each group of warps shared last; empty before.
  std::vector<std::pair<ElementsRef, ElementsRef>> shared;
  /// Of kernels with roles, between which they are.
  mutable llvm::DenseMap<mlir::Operation *, std::unique_ptr<Channel>> channels;

  int64_t getGroups() const {
    return std::max<int64_t>(1, KernelOp(kernel).getSchedule().getKeyWarps());
  }
};

/// Executes a strand for each group of warps of a worker, or for each role.
llvm::Error runStrands(KernelContext &context,
                       llvm::MutableArrayRef<std::unique_ptr<class Strand>>);
llvm::Error runRoles(KernelContext &context,
                     llvm::MutableArrayRef<std::unique_ptr<class Strand>>);

class Strand {
public:
  /// Starts at the first op of `entry`, whose arguments must be set. With a
  /// `role` it passes the others by.
  Strand(const KernelContext &context, mlir::Block &entry, int64_t group,
         RoleOp role = {});

  bool isFinished() const { return frames.empty(); }
  /// The op before which the strand waits for the other groups, or null.
  mlir::Operation *getMeeting() const { return meeting; }
  /// All groups are there.
  void goOn() {
    meeting = nullptr;
    hasMet = true;
  }
  /// Executes one op, or begins to wait before it.
  llvm::Error step();
  /// The op that waits for another role, or null.
  mlir::Operation *getWaiting();
  RoleOp getRole() const { return role; }
  int64_t getGroup() const { return group; }

  const KernelContext &getContext() const { return context; }

  void set(mlir::Value value, RuntimeValue to) {
    values[value] = std::move(to);
  }
  const RuntimeValue &get(mlir::Value value) { return values[value]; }
  const Elements &elements(mlir::Value value) {
    return *std::get<ElementsRef>(values[value]);
  }
  const std::vector<double> &floats(mlir::Value value) {
    return elements(value).floats;
  }
  const std::vector<int64_t> &integers(mlir::Value value) {
    return elements(value).integers;
  }
  /// A scalar of an integer type.
  int64_t integer(mlir::Value value) { return integers(value).front(); }
  const HostTensor &tensor(mlir::Value value) {
    return std::get<HostTensor>(values[value]);
  }
  const KVView &view(mlir::Value value) {
    return *std::get<std::shared_ptr<const KVView>>(values[value]);
  }
  const fi_item &item(mlir::Value value) {
    if (const LaterRows *rows = laterRows(value))
      return rows->item;
    return *std::get<const fi_item *>(values[value]);
  }
  /// Null for an item with all of its rows.
  const LaterRows *laterRows(mlir::Value value) {
    auto *rows = std::get_if<std::shared_ptr<const LaterRows>>(&values[value]);
    return rows ? rows->get() : nullptr;
  }
  const fi_work &work(mlir::Value value) {
    return *std::get<const fi_work *>(values[value]);
  }
  Channel *channel(mlir::Value value) {
    return std::get<Channel *>(values[value]);
  }
  const BufferRef &buffer(mlir::Value value) {
    return std::get<BufferRef>(values[value]);
  }
  const CursorPlace &cursor(mlir::Value value) {
    return std::get<CursorPlace>(values[value]);
  }
  /// A tile, or what is in a buffer, which must be one that may be read.
  llvm::Expected<ElementsRef> operand(mlir::Operation *op, mlir::Value value);

  void addChannel(ChannelOp op);
  /// Iterations with the induction values first, first + step, ...
  struct Trips {
    int64_t first, step, count;
  };
  /// First keys of the tiles that an item visits, in order.
  llvm::Expected<std::vector<int64_t>>
  visitedTiles(mlir::Operation *op, mlir::Value item, int64_t step);

private:
  /// A region being executed; `op` is null for the entry.
  struct Frame {
    mlir::Operation *op;
    mlir::Block *block;
    mlir::Block::iterator next;
    llvm::SmallVector<Trips> trips; // not yet begun, last first
  };

  /// Enters a loop with its initial values, or leaves it right away.
  void enterLoop(mlir::Operation *op, mlir::Block &body,
                 llvm::SmallVector<Trips> trips,
                 llvm::SmallVector<RuntimeValue> carried);
  /// Starts the next iteration of the innermost loop; false if there is none.
  bool iterate(llvm::ArrayRef<RuntimeValue> carried);
  /// Ends a region op with its results.
  void finish(mlir::Operation *op, llvm::ArrayRef<RuntimeValue> results);
  /// A terminator.
  llvm::Error leave(mlir::Operation *terminator);
  /// Channels are as they were before the item.
  llvm::Error endItem();

  /// The tiles of an item's ranges that are this group's.
  llvm::Expected<llvm::SmallVector<Trips>> collectTrips(mlir::Operation *op,
                                                        const fi_item &item,
                                                        Part part,
                                                        int64_t step);
  llvm::Error enterForItems(ForItemsOp op);
  llvm::Error enterForKeys(ForKeysOp op);
  llvm::Error enterFor(mlir::Operation *op);
  llvm::Error enterIf(mlir::Operation *op);
  llvm::SmallVector<RuntimeValue> getAll(mlir::ValueRange range);

  const KernelContext &context;
  int64_t group;
  RoleOp role;
  mlir::Operation *meeting = nullptr;
  bool hasMet = false;
  llvm::SmallVector<Frame> frames;
  llvm::DenseMap<mlir::Value, RuntimeValue> values;
  std::vector<std::unique_ptr<Channel>> channels;
};

/// The packed rows of an item; those past its last repeat it.
llvm::Expected<Elements> readRows(mlir::Value source, mlir::Value item,
                                  int64_t group, int64_t rows, int64_t columns,
                                  bool floats, Strand &strand);
/// Keys or values from `key` on; those past the last repeat it.
llvm::Expected<Elements> readKV(mlir::Value view, mlir::Value item, KVPart part,
                                int64_t key, int64_t rows, int64_t columns,
                                bool floats, Strand &strand);

/// Columns `first`, `first + step`, ... of rows of `width` elements.
Elements selectColumns(const Elements &source, int64_t rows, int64_t width,
                       int64_t columns, int64_t first, int64_t step);

/// Each executes an op of its kind and says whether it was one.
llvm::Expected<bool> evaluateElementwise(mlir::Operation *op, Strand &strand);
llvm::Expected<bool> evaluateTile(mlir::Operation *op, Strand &strand);
llvm::Expected<bool> evaluateMemory(mlir::Operation *op, Strand &strand);
llvm::Expected<bool> evaluateNormaliser(mlir::Operation *op, Strand &strand);
llvm::Expected<bool> evaluateChannel(mlir::Operation *op, Strand &strand);
llvm::Expected<bool> evaluateGroup(mlir::Operation *op, Strand &strand);

} // namespace fi::tile

#endif // FI_INTERPRETER_TILE_STRAND_H
