//===- SharedObject.h - links objects in process ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_SHAREDOBJECT_H
#define FI_LIB_TARGET_CPU_SHAREDOBJECT_H

#include "LLVMCodegen.h"

namespace fi::cpu {

/// Links kernels to the shared object `path`; temporary files go beside it.
/// It exports what is public in the objects and needs nothing but libc and
/// libm, whose files need not be there.
llvm::Error linkSharedObject(llvm::ArrayRef<ObjectCode> objects,
                             llvm::StringRef path);

/// Writes manifest.json, kernels.so and checksums into a directory.
llvm::Error writePackageFiles(llvm::StringRef manifest,
                              llvm::ArrayRef<ObjectCode> objects,
                              llvm::StringRef directory);

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_SHAREDOBJECT_H
