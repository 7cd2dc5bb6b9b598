//===- AttentionStage.h - kernels of fi.attention ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of making the kernels and the manifest entry of one attention. The
// members are implemented by topic: AttentionStage.cpp (bodies, manifest),
// AttentionMerge.cpp (states of split keys).
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITOFITILE_ATTENTIONSTAGE_H
#define FI_LIB_CONVERSION_FITOFITILE_ATTENTIONSTAGE_H

#include "RegionInliner.h"
#include "StageBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fi::tile {

/// Pieces of a split tile whose states one worker merges; up to twice as many,
/// where these are all.
inline constexpr int64_t kMergeFanIn = 16;

class AttentionStage {
  using OpBuilder = mlir::OpBuilder;
  using Location = mlir::Location;
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Region = mlir::Region;
  using RankedTensorType = mlir::RankedTensorType;
  using DictionaryAttr = mlir::DictionaryAttr;
  using LogicalResult = mlir::LogicalResult;
  using StringRef = llvm::StringRef;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;
  template <typename T> using SmallVector = llvm::SmallVector<T>;
  template <typename T> using FailureOr = mlir::FailureOr<T>;

public:
  AttentionStage(OpBuilder &b, AttentionOp op, ProgramBuffers &buffers,
                 StringRef name)
      : b(b), loc(op.getLoc()), op(op), buffers(buffers), name(name),
        stage(b, op.getLoc()), view(op.getViewType()), group(op.getGroup()) {}

  DictionaryAttr build();

private:
  struct Destinations {
    unsigned output;
    std::optional<unsigned> statistic;
    std::string outputName, statisticName;
  };

  LogicalResult findFold();
  LogicalResult collectBuffers();
  KernelOp buildBody(StringRef kernelName, ScheduleAttr schedule);
  KernelOp buildMerge(StringRef kernelName, ScheduleAttr schedule);
  SmallVector<mlir::NamedAttribute> gpuCosts(ScheduleAttr schedule);

  // Pieces of a body; `item` and the kernel's entry block are set.
  Value argument(unsigned index) { return entry->getArgument(index); }
  Value field(Field which) { return ItemOp::create(b, loc, item, which); }
  Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  RankedTensorType tile(int64_t rows, int64_t columns, Type element) {
    return RankedTensorType::get({rows, columns}, element);
  }
  /// Token and query head of each packed row, Rx1.
  void buildRows(int64_t tileRows);
  /// A tile as the products take it: whole, or first and second elements of its
  /// pairs, transformed by the region if it is not empty.
  FailureOr<SmallVector<Value>> buildOperand(Value rows, Region &region,
                                             Value head, Value position);
  /// The rows of the query as the products take them.
  FailureOr<SmallVector<Value>> buildQuery(int64_t rows);
  /// `keyRows` receives the rows of keys as they lie in memory, without tails.
  Value buildScores(ArrayRef<Value> query, Value viewValue, Value key,
                    ScheduleAttr schedule, Value &keyRows);
  SmallVector<Value> captureArguments() {
    return llvm::map_to_vector(captureBuffers,
                               [&](unsigned index) { return argument(index); });
  }
  /// The scale that all keys (or values) of an item share; null where there is
  /// none, or each key has its own.
  Value sharedScale(bool wantValues);
  /// Those of the keys of a tile, as a row or a column; null where they share
  /// one.
  Value keyScales(bool wantValues, RankedTensorType type, Value viewValue,
                  Value key);
  /// The type that products with keys (or values) are of.
  Type productType(bool wantValues);
  Value scaled(Value tile, Value scale) {
    auto type = llvm::cast<RankedTensorType>(tile.getType());
    return mlir::arith::MulFOp::create(
        b, loc, tile, broadcastTo(b, loc, scale, type.getShape()));
  }
  /// Rows of keys or values, each block times its scale where blocks have some,
  /// as numbers of `element`.
  Value loadNumbers(KVPart part, Type element, Value viewValue, Value key,
                    int64_t keys);
  Value loadValues(Value viewValue, Value key, int64_t keys);
  Value loadSink(int64_t tileRows);
  void storeOutputs(Value output, Value statistic, Value part = {});
  void storeMerged(Value output, Value statistic, int64_t rows, Value part);
  std::pair<Value, Value>
  foldStates(RankedTensorType type, Value count, int64_t atOnce,
             llvm::function_ref<std::pair<Value, Value>(Value)> load);
  /// As many states as a few registers of a thread hold.
  static int64_t statesAtOnce(RankedTensorType type, ScheduleAttr schedule) {
    // Lanes without columns have registers for them, too, in tiles of few rows.
    int64_t columns = type.getDimSize(1);
    constexpr int64_t kFewRows = 16, kMostColumns = 256;
    if (type.getDimSize(0) < kFewRows && columns > kMostColumns)
      columns = llvm::alignTo(columns, kMostColumns);
    int64_t held = std::max<int64_t>(
        1, type.getDimSize(0) * columns /
               (32 * std::max<int64_t>(1, schedule.getWarps())));
    return std::clamp<int64_t>(128 / held, 1, kMergeFanIn);
  }
  /// How groups of warps share merging: each has a few rows at a time, of which
  /// every lane has columns side by side; or, where `rows` is 0, a part of the
  /// columns of all rows.
  struct MergeShare {
    int64_t rows = 0;
    Value part;
  };
  MergeShare shareMerging(ScheduleAttr schedule);
  /// Calls `merge` with the item of the rows that this group merges, and the
  /// type of their tile: in a loop, or once for all rows.
  void
  forMergedRows(const MergeShare &share, ScheduleAttr schedule,
                llvm::function_ref<void(RankedTensorType, Value row)> merge);
  std::pair<Value, Value> mergeGroups(RankedTensorType type, Value row,
                                      const MergeShare &share,
                                      ScheduleAttr schedule);
  std::pair<Value, Value> mergeSlots(KernelOp kernel, RankedTensorType type,
                                     Value count,
                                     llvm::function_ref<Value(Value)> slotOf,
                                     Value part, bool atOnce);
  void mergePieces(KernelOp kernel, const MergeShare &share);
  /// Whether a body merges the pieces of its tiles, so that no launch after it
  /// does.
  bool mergesItself(ScheduleAttr schedule) {
    return schedule.getWarps() > 0 && op.getNormaliser().canMerge();
  }

  OpBuilder &b;
  Location loc;
  AttentionOp op;
  ProgramBuffers &buffers;
  StringRef name;
  StageBuilder stage;
  KVViewTypeInterface view;
  int64_t group;
  /// Over segments: the fold over them and, where nothing else reads the state,
  /// its finalisation are part of the stage.
  fi::MergeSegmentsOp fold;
  fi::FinalizeOp finalisation;
  SplitAttr split;
  Value sink;

  SmallVector<unsigned> queryBuffers;
  ViewBuffers viewBuffers;
  std::optional<unsigned> scaleBuffer, sinkBuffer, positionsBuffer;
  SmallVector<unsigned> captureBuffers;
  Destinations destinations;

  mlir::Block *entry = nullptr;
  Value item, queryHead, queryPosition;
};

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITOFITILE_ATTENTIONSTAGE_H
