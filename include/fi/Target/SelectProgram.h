//===- SelectProgram.h - one program of a module ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_SELECTPROGRAM_H
#define FI_TARGET_SELECTPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace fi {

/// A copy of `module` with the program `name` alone, or with the only one if
/// `name` is empty. At a later level than the first a module has one
/// `fi_tile.package` in its place.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
selectProgram(mlir::ModuleOp module, llvm::StringRef name);

} // namespace fi

#endif // FI_TARGET_SELECTPROGRAM_H
