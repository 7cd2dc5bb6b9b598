//===- Passes.h - passes over the fi dialect --------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes from level 1 to level 1.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_TRANSFORMS_PASSES_H
#define FI_DIALECT_FI_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>

namespace fi {

#define GEN_PASS_DECL
#include "fi/Dialect/FI/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fi/Dialect/FI/Transforms/Passes.h.inc"

} // namespace fi

#endif // FI_DIALECT_FI_TRANSFORMS_PASSES_H
