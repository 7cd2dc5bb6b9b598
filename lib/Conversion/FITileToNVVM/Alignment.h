//===- Alignment.h - what kernels ask of tensors' addresses -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITILETONVVM_ALIGNMENT_H
#define FI_LIB_CONVERSION_FITILETONVVM_ALIGNMENT_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "llvm/ADT/StringMap.h"

namespace fi::tile {

/// Bytes to which each argument of a placed kernel is aligned, its rows as well
/// as its beginning; 1 where elements are enough.
llvm::SmallVector<int64_t> getAlignments(KernelOp kernel);

/// A package's manifest that says so of arguments and results, of all kernels
/// by name.
mlir::DictionaryAttr
withAlignments(mlir::DictionaryAttr manifest,
               const llvm::StringMap<llvm::SmallVector<int64_t>> &kernels);

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITILETONVVM_ALIGNMENT_H
