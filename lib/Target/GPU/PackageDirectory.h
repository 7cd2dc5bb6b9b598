//===- PackageDirectory.h - a GPU's package as files ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_GPU_PACKAGEDIRECTORY_H
#define FI_LIB_TARGET_GPU_PACKAGEDIRECTORY_H

#include "fi/Target/GPU/GPUCompiler.h"

namespace fi::gpu {

/// Writes the files of a package into a directory.
llvm::Error writeFiles(const CompiledPackage &package,
                       llvm::StringRef directory);

/// Reads them back; false if they are not sound.
bool readFiles(llvm::StringRef directory, CompiledPackage &package);

} // namespace fi::gpu

#endif // FI_LIB_TARGET_GPU_PACKAGEDIRECTORY_H
