//===- Parts.h - kernels of a module, one by one ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels share declarations and no more, so that code is generated for them at
// the same time. How a module is taken apart depends on the module alone, never
// on the number of cores: the text is the same on all machines.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_NVPTX_PARTS_H
#define FI_LIB_TARGET_NVPTX_PARTS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>
#include <vector>

namespace fi::nvptx {

/// A module for each kernel, in order, with the declarations that all share;
/// the module itself where it has definitions of another kind.
std::vector<mlir::OwningOpRef<mlir::ModuleOp>>
splitKernels(mlir::OwningOpRef<mlir::ModuleOp> module);

/// One text of PTX from those of the parts: one header, each declaration once,
/// one table of files.
std::string joinPTX(llvm::ArrayRef<std::string> texts);

} // namespace fi::nvptx

#endif // FI_LIB_TARGET_NVPTX_PARTS_H
