//===- Cache.cpp - compiled programs by what they were made from ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/Cache.h"
#include "fi/ABI/KernelABI.h"
#include "fi/Target/PackageFiles.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LockFileManager.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include <atomic>

using namespace mlir;
using namespace fi;

struct Cache::Lock {
  explicit Lock(StringRef path) : manager(path) {}
  llvm::LockFileManager manager;
};

std::string fi::makeCacheKey(StringRef fields, ModuleOp prepared) {
  std::string text;
  llvm::raw_string_ostream os(text);
  // Versions first; every field ends with a line.
  os << "fi cache 1\n"
     << getBuildId() << "\n"
     << LLVM_VERSION_STRING << "\n"
     << FI_MANIFEST_VERSION << " " << FI_ABI_VERSION << "\n"
     << fields;
  // Names of values and locations are not part of the text.
  prepared->print(os, OpPrintingFlags().enableDebugInfo(false));
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

/// An unset variable and an empty one differ.
static std::string findDirectory(const CacheOptions &options,
                                 std::string &why) {
  if (!options.directory.empty())
    return options.directory;
  if (auto own = llvm::sys::Process::GetEnv("FI_CACHE_DIR"))
    return *own;
  llvm::SmallString<128> path;
  auto base = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
  // The specification has relative paths ignored.
  if (base && llvm::sys::path::is_absolute(*base)) {
    path = *base;
  } else if (auto home = llvm::sys::Process::GetEnv("HOME");
             home && !home->empty()) {
    path = *home;
    llvm::sys::path::append(path, ".cache");
  } else {
    why = "neither XDG_CACHE_HOME nor HOME is set";
    return "";
  }
  llvm::sys::path::append(path, "fi");
  return path.str().str();
}

Cache::Cache(const CacheOptions &options) {
  if (!options.enabled)
    return;
  std::string why;
  directory = findDirectory(options, why);
  if (!why.empty())
    disable(why);
  if (directory.empty())
    return;
  using namespace llvm::sys::fs;
  if (std::error_code code = create_directories(
          directory, /*IgnoreExisting=*/true, perms::owner_all))
    disable("cannot make '" + directory + "': " + code.message());
}

Cache::~Cache() = default;

void Cache::disable(StringRef why) {
  directory.clear();
  lock.reset();
  static std::atomic<bool> isReported(false);
  if (isReported.exchange(true))
    return;
  // Without a handler, a context keeps warnings to itself.
  llvm::errs()
      << "warning: the cache of compiled programs is not used: " << why
      << "; set FI_CACHE_DIR to a directory that can be written, or to "
         "nothing to do without a cache\n";
}

std::string Cache::getPath(StringRef key) const {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, key);
  return path.str().str();
}

bool Cache::load(StringRef key, Load load) {
  return isEnabled() && load(getPath(key));
}

bool Cache::waitOrLock(StringRef key, Load load) {
  if (!isEnabled())
    return false;
  std::string path = getPath(key);
  // Longer than any program compiles; after that, two compile.
  constexpr std::chrono::seconds patience(20);
  for (int attempt = 0; attempt < 3; ++attempt) {
    lock = std::make_unique<Lock>(path);
    llvm::Expected<bool> isOurs = lock->manager.tryLock();
    if (!isOurs) {
      disable(llvm::toString(isOurs.takeError()));
      return false;
    }
    if (!*isOurs) {
      llvm::WaitForUnlockResult result =
          lock->manager.waitForUnlockFor(patience);
      if (result == llvm::WaitForUnlockResult::Timeout) {
        lock->manager.unsafeMaybeUnlock();
        break;
      }
      // The owner is done, or died without an entry.
      if (load(path))
        return true;
      continue;
    }
    // Another may have finished between our look-up and our lock.
    if (load(path)) {
      lock.reset();
      return true;
    }
    return false;
  }
  lock.reset();
  return false;
}

void Cache::store(StringRef key,
                  llvm::function_ref<llvm::Error(StringRef)> write) {
  if (!isEnabled())
    return;
  if (llvm::Error error = replacePackageDirectory(getPath(key), write))
    return disable(llvm::toString(std::move(error)));
  lock.reset();
}
