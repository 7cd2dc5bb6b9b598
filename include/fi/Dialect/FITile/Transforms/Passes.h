//===- Passes.h - passes over the fi_tile dialect ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_TRANSFORMS_PASSES_H
#define FI_DIALECT_FITILE_TRANSFORMS_PASSES_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Pass/Pass.h"

namespace mlir::NVVM {
class NVVMDialect;
} // namespace mlir::NVVM

namespace fi::tile {

#define GEN_PASS_DECL
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"

} // namespace fi::tile

#endif // FI_DIALECT_FITILE_TRANSFORMS_PASSES_H
