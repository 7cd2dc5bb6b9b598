//===- FP8.h - numbers that tensor cores take as they lie -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types of FP8, and queries that are of them.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FP8_H
#define FI_DIALECT_FI_IR_FP8_H

#include "fi/Dialect/FI/IR/FI.h"

namespace fi {

/// Whether a type is one of FP8, which tensor cores of some targets multiply.
inline bool isFP8(mlir::Type type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type);
}

/// What a query counts as beside keys and values: its type, or f16 for numbers
/// of FP8, which it holds (ATT25).
mlir::Type getQueryNumbers(AttentionOp op);

} // namespace fi

#endif // FI_DIALECT_FI_IR_FP8_H
