//===- Splat.h - tiles whose elements are one number ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What passes ask of constant operands.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_TRANSFORMS_SPLAT_H
#define FI_DIALECT_FITILE_TRANSFORMS_SPLAT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include <optional>

namespace fi::tile {

/// The number that all elements of a constant of floats are.
inline std::optional<llvm::APFloat> getSplat(mlir::Value value) {
  mlir::DenseElementsAttr elements;
  if (!mlir::matchPattern(value, mlir::m_Constant(&elements)) ||
      !elements.isSplat() ||
      !llvm::isa<mlir::FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<llvm::APFloat>();
}

} // namespace fi::tile

#endif // FI_DIALECT_FITILE_TRANSFORMS_SPLAT_H
