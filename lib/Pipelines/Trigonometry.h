//===- Trigonometry.h - sines and cosines of large angles -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_PIPELINES_TRIGONOMETRY_H
#define FI_LIB_PIPELINES_TRIGONOMETRY_H

#include "mlir/IR/PatternMatch.h"

namespace fi {

/// math.sin and math.cos of f32, and of vectors of it, as arithmetic.
void populateTrigonometryPatterns(mlir::RewritePatternSet &patterns);

} // namespace fi

#endif // FI_LIB_PIPELINES_TRIGONOMETRY_H
