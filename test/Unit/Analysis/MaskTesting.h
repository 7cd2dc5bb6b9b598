//===- MaskTesting.h - masks against brute force ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program around a mask, an interpreter of its region that shares nothing
// with the analysis, random batches, and the comparison of tiles.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_ANALYSIS_MASKTESTING_H
#define FI_TEST_UNIT_ANALYSIS_MASKTESTING_H

#include "fi/Analysis/MaskBounds.h"
#include "fi/Analysis/MaskEvaluator.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <random>
#include <string>

namespace fi::test {

inline constexpr int64_t kQueryHeads = 4, kKVHeads = 2;
/// Last size of the plan argument of static shape.
inline constexpr int64_t kFixedSize = 96;

/// A position of the mask's domain.
struct Position {
  int64_t request, queryHead, kvHead, query, key;
};

/// One request of a batch.
struct Request {
  int64_t queryLength, keyLength, origin;
};

struct Batch {
  std::vector<Request> requests;
  std::map<std::string, PlanData> data;
};

/// A program with one attention. Its regions may use the captures %doc, %wide,
/// %fixed (sorted by request and position, of i32, i64 and i32 with a static
/// size), %loose (the same, but not promised to be sorted), %pre (i32 by
/// request), %w (an index), %limit (i32 by position, a run argument).
class MaskProgram {
public:
  /// `attributes` are the masks' attributes or empty, `body` the region's text,
  /// or empty, which names positions %req, %qh, %kh, %qp, %kp.
  MaskProgram(const MaskProgram &) = delete;
  MaskProgram(mlir::MLIRContext &context, llvm::StringRef attributes,
              llvm::StringRef body, bool hasOrigin = false);

  explicit operator bool() const { return op.getOperation() != nullptr; }
  AttentionOp getOp() { return op; }
  MaskBounds analyze();
  /// Interprets the region.
  bool isVisible(const Batch &batch, const Position &position);

private:
  struct Step {
    unsigned slot, width;
    std::function<int64_t(const int64_t *)> compute;
  };
  void prepare(mlir::Block &block);
  std::string argumentOf(mlir::Value capture);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mutable AttentionOp op;
  // The region as steps over slots, made when first needed.
  llvm::DenseMap<mlir::Value, unsigned> slots;
  std::vector<Step> steps;
  std::vector<int64_t> values;
  const Batch *batch = nullptr;
};

/// All dialects, loaded.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Positions are those of a cache with origins, or without. Plan data is at
/// least as long as each request, unless `isShort`.
Batch makeBatch(std::mt19937 &random, bool hasOrigin, bool isShort,
                int64_t longestKeys = 76, int64_t longestQuery = 20);

using Visible = std::function<bool(const Batch &, const Position &)>;

/// Calls `check` for each tile of rows and keys with the positions in it.
struct Tile {
  MaskContext context;
  int64_t keyBegin, keyEnd;     // positions
  bool someVisible, someHidden; // by brute force
};
void forEachTile(const Batch &batch, int64_t tileRows, int64_t tileKeys,
                 const Visible &visible,
                 llvm::function_ref<void(const Tile &)> check);

/// For messages.
std::string describe(const MaskBounds &bounds, mlir::MLIRContext &context);

} // namespace fi::test

#endif // FI_TEST_UNIT_ANALYSIS_MASKTESTING_H
