//===- MaskBounds.h - which keys a mask can let through ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Derives bounds on the key's position from the arithmetic of a mask: the data
// by which a plan finds tiles of keys that are empty, full or partial. The
// expressions of bounds are those of docs/abi.md, section "mask".
//
// What the analysis takes for granted, beyond the language:
//  * requests, rows and keys of a request are fewer than 2^29, so that
//    positions that follow from them (and their differences) fit i32;
//  * integer plan data of 64 bits lies within 2^48 of zero, so that adding a
//  few
//    of them does not wrap;
//  * a plan argument marked `fi.sorted` does not descend along its last
//    dimension.
// Arithmetic that could wrap under these limits is not analysed. Positions that
// the program gives (`origin`, `at`) may be far from zero: a mask whose
// arithmetic holds for those below 2^29 only has no bounds beyond.
//
//===----------------------------------------------------------------------===//

#ifndef FI_ANALYSIS_MASKBOUNDS_H
#define FI_ANALYSIS_MASKBOUNDS_H

#include "fi/Dialect/FI/IR/FI.h"
#include <string>

namespace fi {

/// Marks an integer plan tensor that does not descend along its last dimension.
inline constexpr llvm::StringLiteral kSortedAttr = "fi.sorted";

/// A conjunction of inclusive bounds on the key's position. Each is an
/// expression: an array attribute in the prefix form of docs/abi.md.
struct MaskTerm {
  llvm::SmallVector<mlir::ArrayAttr> lo, hi;
  /// Whether the bounds are sufficient for visibility, or only necessary.
  bool exact = true;
};

/// A key is visible only where some term holds.
struct MaskBounds {
  llvm::SmallVector<MaskTerm> terms;
  /// What could not be bounded, and where.
  llvm::SmallVector<std::pair<mlir::Location, std::string>> remarks;

  /// The attribute `bounds` of fi.attention.
  mlir::ArrayAttr toAttr(mlir::MLIRContext *context) const;
  /// Reads the attribute back; fails, without a diagnostic, where it is not of
  /// the form that `toAttr` gives.
  static mlir::FailureOr<MaskBounds> fromAttr(mlir::ArrayAttr attr);
};

/// Bounds of all masks of `op`, attributes and region together. Fails, without
/// a diagnostic, where the op has no mask. Does not change the op.
mlir::FailureOr<MaskBounds> analyzeMask(AttentionOp op);

} // namespace fi

#endif // FI_ANALYSIS_MASKBOUNDS_H
