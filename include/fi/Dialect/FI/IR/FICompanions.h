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

#endif // FI_DIALECT_FI_IR_FICOMPANIONS_H
