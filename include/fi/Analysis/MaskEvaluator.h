//===- MaskEvaluator.h - bounds of a mask over a tile -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates bounds by the interval arithmetic of docs/abi.md, plainly: the
// runtime has its own evaluator, which works on the manifest and is fast. Tests
// check the analysis by it.
//
//===----------------------------------------------------------------------===//

#ifndef FI_ANALYSIS_MASKEVALUATOR_H
#define FI_ANALYSIS_MASKEVALUATOR_H

#include "fi/Analysis/MaskBounds.h"
#include <map>
#include <vector>

namespace fi {

/// A plan argument: a scalar has no sizes and one element.
struct PlanData {
  std::vector<int64_t> sizes;
  std::vector<int64_t> elements; // row-major
};

struct MaskInterval {
  int64_t least, most;
};

/// A tile of query rows of one request.
struct MaskContext {
  MaskInterval position, queryHead, kvHead;
  int64_t request = 0, queryLength = 0, keyLength = 0;
  const std::map<std::string, PlanData> *data = nullptr;
};

enum class TileKind { Empty, Partial, Full };

/// The values that an expression takes; all values where it overflows.
MaskInterval evaluateBound(mlir::ArrayAttr expression,
                           const MaskContext &context);

/// What the bounds say of the keys at positions [begin, end).
TileKind classifyTile(const MaskBounds &bounds, const MaskContext &context,
                      int64_t begin, int64_t end);

} // namespace fi

#endif // FI_ANALYSIS_MASKEVALUATOR_H
