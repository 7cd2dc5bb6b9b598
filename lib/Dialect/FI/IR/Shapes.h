//===- Shapes.h - shapes in checks and messages ------------------*- C++
//-*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the verifiers of ops share.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FI_IR_SHAPES_H
#define FI_LIB_DIALECT_FI_IR_SHAPES_H

#include "mlir/IR/BuiltinTypes.h"

namespace fi {

/// `?` for a dynamic size.
inline std::string sizeText(int64_t size) {
  return mlir::ShapedType::isDynamic(size) ? "?" : std::to_string(size);
}

inline std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(shape))
    text += (i ? ", " : "") + sizeText(size);
  return text + "]";
}

/// Whether a shape fits the wanted one; dynamic sizes fit everything.
inline bool shapeFits(llvm::ArrayRef<int64_t> shape,
                      llvm::ArrayRef<int64_t> wanted) {
  return shape.size() == wanted.size() &&
         llvm::all_of(llvm::zip(shape, wanted), [](auto pair) {
           auto [a, b] = pair;
           return mlir::ShapedType::isDynamic(a) ||
                  mlir::ShapedType::isDynamic(b) || a == b;
         });
}

} // namespace fi

#endif // FI_LIB_DIALECT_FI_IR_SHAPES_H
