//===- Package.h - An opened package ---------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A manifest whose symbols have been found, with the code that holds them.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PACKAGE_PACKAGE_H
#define FI_RUNTIME_PACKAGE_PACKAGE_H

#include "../Device/Module.h"
#include "Manifest.h"

#include <atomic>
#include <memory>
#include <mutex>

/// Reference-counted: the user's handle and each plan hold one.
struct fi_package {
  fi::runtime::Manifest manifest;
  void *library = nullptr; // dlopen handle, or null
  // For devices: the code, and what has been loaded where.
  std::string ptx, cubin;
  std::mutex mutex;
  std::vector<std::unique_ptr<fi::runtime::Module>> modules;
  /// Of a package for several targets: one for each, the best first. The
  /// manifest is then the first one's, whose signature all share.
  std::vector<fi_package *> variants;
  std::atomic<int> references{1};
};

namespace fi::runtime {

fi_status openPackage(const char *path, fi_package **package);
fi_status openPackageFromMemory(const char *manifest, size_t length,
                                fi_symbol_lookup lookup, void *context,
                                fi_package **package);
fi_status openPackageFromCode(const char *manifest, size_t length,
                              const fi_code *codes, int32_t count,
                              fi_package **package);
void retain(fi_package *package);
void release(fi_package *package);

} // namespace fi::runtime

#endif // FI_RUNTIME_PACKAGE_PACKAGE_H
