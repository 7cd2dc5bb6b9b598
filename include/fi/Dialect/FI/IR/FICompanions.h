//===- FICompanions.h - what stands beside attention ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of the fi dialect on rows alone, apart from FI.h: few files know
// them.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FICOMPANIONS_H
#define FI_DIALECT_FI_IR_FICOMPANIONS_H

#include "fi/Dialect/FI/IR/FI.h"

namespace fi {
/// Elements of a row of a companion operation.
inline constexpr int64_t kMaxRowDim = 16384;
} // namespace fi

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FICompanionOps.h.inc"

namespace fi {

/// What a norm of rows says, whichever it is.
struct NormParts {
  /// Of fi.rms_norm or fi.layer_norm; nothing of other ops.
  static std::optional<NormParts> of(mlir::Operation *op);

  mlir::Operation *op;
  mlir::Value input, addend, weight, bias, scales;
  double epsilon;
  /// Whether the factor is 1 + weight; whether rows lose their mean.
  bool plusOne, centred;
  /// Of codes, else null.
  ScaledType scheme;
  mlir::OperandRange outs;

  mlir::ShapedType getInputType() const {
    return llvm::cast<mlir::ShapedType>(input.getType());
  }
  /// Whether the scales of codes are computed, one for each row and head.
  bool makesScales() const {
    return scheme && scheme.getGranularity() == Granularity::Token;
  }
  int64_t getHeads() const { return getInputType().getDimSize(1); }
  int64_t getDim() const { return getInputType().getDimSize(2); }
  /// Where the norm goes, the sum with `addend`, and scales that are computed:
  /// results, or memrefs of `outs`.
  mlir::ValueRange getPlaces() const {
    return op->getNumResults() > 0 ? mlir::ValueRange(op->getResults())
                                   : mlir::ValueRange(outs);
  }
};

/// Most elements of a row that is not reduced (GAT1).
inline constexpr int64_t kMaxRow = 1 << 20;

/// How rows are kept as codes.
struct RowScheme {
  /// Of fi.quantise or fi.dequantise.
  static RowScheme of(mlir::Type scheme, std::optional<uint64_t> group);

  /// What a code is, and a scale.
  mlir::Type storage, by;
  /// Of numbers of f32: of all, of heads, or of rows (`token`).
  Granularity granularity;
  /// Columns of a row that share a scale of their own; 0: all of them.
  int64_t group;
  /// Null where rows are not cut into blocks that have scales of few bits.
  BlockScaledType blocks;

  /// Whether there are scales for each row, of [rows, heads] or of [rows,
  /// heads, groups].
  bool areOfRows() const { return blocks || granularity == Granularity::Token; }
  /// Elements of memory for a row of `dim` elements.
  int64_t getStored(int64_t dim) const { return blocks ? dim / 2 : dim; }
};

/// The largest number that a code stands for.
double getLargestCode(mlir::Type storage);

} // namespace fi

#endif // FI_DIALECT_FI_IR_FICOMPANIONS_H
