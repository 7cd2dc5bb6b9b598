//===- Passes.h - conversions between fi's levels ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_CONVERSION_PASSES_H
#define FI_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace fi {

#define GEN_PASS_DECL
#include "fi/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fi/Conversion/Passes.h.inc"

} // namespace fi

#endif // FI_CONVERSION_PASSES_H
