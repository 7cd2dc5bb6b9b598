//===- AsyncReplay.h - plays the order of asynchronous copies ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What happens to the buffers of channels follows from the order of operations.
// It is played for loops that run never, once, and often enough that all rings
// are full, over two items: with channels (acquire, commit, get, release), and
// once they are lowered (slots, groups of copies, waits, barriers).
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FITILE_TRANSFORMS_ASYNCREPLAY_H
#define FI_LIB_DIALECT_FITILE_TRANSFORMS_ASYNCREPLAY_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include <vector>

namespace fi::tile {

/// How many times each loop runs.
using LoopTrips = llvm::DenseMap<mlir::Operation *, int64_t>;

/// What a replay of channels finds out.
struct ChannelFindings {
  /// Groups that may be under way after a get.
  llvm::DenseMap<mlir::Operation *, int64_t> pending;
  llvm::DenseSet<mlir::Operation *> barrierBeforeAcquire;
  /// Channels that are filled by stores, for which a barrier is all there is to
  /// wait for, and the gets that need one.
  llvm::DenseSet<mlir::Value> written;
  llvm::DenseSet<mlir::Operation *> barrierBeforeGet;
};

/// Whether an op acquires, commits, gets or releases.
bool usesChannel(mlir::Operation *op);
/// Whether an op does, or one within it.
bool containsChannelOps(mlir::Operation *op);

/// "channel 1 (!fi_tile.chan<...>)", by its place in the kernel.
std::string describeChannel(mlir::Value channel);
/// The buffers that an op reads; what copies write is not among them.
llvm::SmallVector<mlir::Value, 2> getReadBuffers(mlir::Operation *op);
/// Whether a copy may be of nothing: where its tile is past the last one.
bool mayCopyNothing(mlir::Operation *op);

/// The ops of a block that a replay does something for. Most are not among
/// them, and a replay goes through a block again and again.
class ReplayedOps {
public:
  using Predicate = bool (*)(mlir::Operation *);
  explicit ReplayedOps(Predicate isReplayed) : isReplayed(isReplayed) {}

  /// In order; valid as long as this is.
  llvm::ArrayRef<mlir::Operation *> of(mlir::Block &block);

private:
  Predicate isReplayed;
  llvm::DenseMap<mlir::Block *, std::vector<mlir::Operation *>> known;
};

/// Plays what is within `items` for every combination of trips of the loops
/// that hold something which `matters`.
mlir::LogicalResult
forEachTrips(ForItemsOp items,
             llvm::function_ref<bool(mlir::Operation *)> matters,
             llvm::function_ref<mlir::LogicalResult(LoopTrips)> play);

/// Plays channels, and says what is wrong (TILE25, TILE29).
mlir::LogicalResult replayChannels(ForItemsOp items, ChannelFindings &findings);
/// Plays the roles of a kernel side by side, and says what is wrong (TILE25,
/// TILE29).
mlir::LogicalResult replayRoles(KernelOp kernel);
/// Plays slots, and says what is wrong (TILE30).
mlir::LogicalResult replaySlots(ForItemsOp items);

} // namespace fi::tile

#endif // FI_LIB_DIALECT_FITILE_TRANSFORMS_ASYNCREPLAY_H
