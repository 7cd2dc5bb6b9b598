//===- Features.h - what code of a module may use ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes ask the target of the module that they are in for a feature of the
// table of targets.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FEATURES_H
#define FI_DIALECT_FI_IR_FEATURES_H

#include "fi/Target/SMTable.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace fi {

/// The chip that the module of `op` is for. Kernels that do not say it are
/// lowered as for the first target with asynchronous copies.
const sm::Target &getChipOf(mlir::Operation *op);

/// Whether code in the module of `op` may use a feature.
inline bool hasFeature(mlir::Operation *op, sm::Feature feature) {
  return getChipOf(op).has(feature);
}

} // namespace fi

#endif // FI_DIALECT_FI_IR_FEATURES_H
