//===- Cache.h - compiled programs by what they were made from --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory of packages, named by the hash of everything that their bytes
// depend on (docs/packages.md). An entry is never changed, only replaced if it
// is damaged.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_CACHE_H
#define FI_TARGET_CACHE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace fi {

struct CacheOptions {
  bool enabled = true;
  /// Where entries are; if empty, $FI_CACHE_DIR (set but empty: no cache),
  /// $XDG_CACHE_HOME/fi or ~/.cache/fi.
  std::string directory;
};

/// Hash of the compiler's sources (BuildId.cpp, written by the build).
const char *getBuildId();

/// The name of an entry: a hash of a program at level 1 with its schedules, of
/// `fields` (the target and all else that decides the bytes, a line each), and
/// of all versions.
std::string makeCacheKey(llvm::StringRef fields, mlir::ModuleOp prepared);

class Cache {
public:
  /// Looks at an entry's directory, which need not be there or be sound;
  /// returns whether it is of use.
  using Load = llvm::function_ref<bool(llvm::StringRef directory)>;

  /// An unusable directory is reported once in a process, on standard error.
  explicit Cache(const CacheOptions &options);
  ~Cache();

  bool isEnabled() const { return !directory.empty(); }
  /// Loads an entry; false if there is none that is sound.
  bool load(llvm::StringRef key, Load load);
  /// For an entry that is missing: of several processes one makes it and the
  /// others wait for what it leaves. Returns what `load` says after waiting, or
  /// false if this process is to make it.
  bool waitOrLock(llvm::StringRef key, Load load);
  /// Writes an entry by `write`, which fills a directory, and lets go of the
  /// lock.
  void store(llvm::StringRef key,
             llvm::function_ref<llvm::Error(llvm::StringRef)> write);

private:
  void disable(llvm::StringRef why);
  std::string getPath(llvm::StringRef key) const;

  std::string directory;
  struct Lock;
  std::unique_ptr<Lock> lock;
};

} // namespace fi

#endif // FI_TARGET_CACHE_H
