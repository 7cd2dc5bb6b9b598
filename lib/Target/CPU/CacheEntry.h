//===- CacheEntry.h - compiled programs in the cache ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_CACHEENTRY_H
#define FI_LIB_TARGET_CPU_CACHEENTRY_H

#include "fi/Target/CPU/CPUCompiler.h"

namespace fi::cpu {

/// The name of a program's entry: a hash of the program at level 1 with its
/// target and schedules, and of all versions.
std::string getCacheKey(mlir::ModuleOp prepared, TargetAttr target,
                        unsigned optLevel);

/// A package of this machine; null if it is not sound.
std::unique_ptr<CompiledProgram> loadPackage(llvm::StringRef directory);

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_CACHEENTRY_H
