//===- Launch.h - the manifest of kernels for a GPU -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_GPU_LAUNCH_H
#define FI_LIB_TARGET_GPU_LAUNCH_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Target/GPU/GPUCompiler.h"

namespace fi::gpu {

/// Completes a package's manifest by what its kernels say, and checks one
/// against the other: each body and merge has a kernel, whose launch fits the
/// chip (docs/abi.md).
llvm::Error completeLaunches(mlir::ModuleOp module, tile::PackageOp package,
                             const sm::Target &chip);

/// Sets the manifest's target.
void setTarget(tile::PackageOp package, const sm::Target &chip, unsigned ptx);

/// Adds the machine code to the manifest's target.
void setCubin(tile::PackageOp package, const sm::Target &chip,
              llvm::StringRef ptxasVersion, const nvptx::Assembly &assembly);

} // namespace fi::gpu

#endif // FI_LIB_TARGET_GPU_LAUNCH_H
