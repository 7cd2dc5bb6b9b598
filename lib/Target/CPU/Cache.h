//===- Cache.h - compiled programs by what they were made from --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of packages, named by the hash of everything that their bytes
// depend on. An entry is never changed, only replaced if it is damaged.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_CACHE_H
#define FI_LIB_TARGET_CPU_CACHE_H

#include "LLVMCodegen.h"

namespace fi::cpu {

/// Hash of the compiler's sources (BuildId.cpp, written by the build).
const char *getBuildId();

/// The name of an entry: a hash of the program at level 1 with its target and
/// schedules, and of all versions.
std::string getCacheKey(mlir::ModuleOp prepared, TargetAttr target,
                        unsigned optLevel);

class Cache {
public:
  /// An unusable directory is reported once in a process, on standard error.
  explicit Cache(const CacheOptions &options);

  bool isEnabled() const { return !directory.empty(); }
  /// Loads an entry; null if there is none that is sound.
  std::unique_ptr<CompiledProgram> load(llvm::StringRef key);
  /// Calls `make` for an entry that is missing, so that of several processes
  /// one compiles and the others wait for what it leaves. Returns what `load`
  /// finds after waiting, or null if this process is to compile.
  std::unique_ptr<CompiledProgram> waitOrLock(llvm::StringRef key);
  /// Writes an entry and lets go of the lock.
  void store(llvm::StringRef key, llvm::StringRef manifest,
             llvm::ArrayRef<ObjectCode> objects);
  ~Cache();

private:
  void disable(llvm::StringRef why);
  std::string getPath(llvm::StringRef key) const;

  std::string directory;
  struct Lock;
  std::unique_ptr<Lock> lock;
};

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_CACHE_H
