//===- PackageFiles.h - package directories ---------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A package is written into a temporary directory and renamed, so nobody ever
// meets half of one.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_PACKAGEFILES_H
#define FI_TARGET_PACKAGEFILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fi {

/// Path of a file in a directory.
std::string inDirectory(llvm::StringRef directory, llvm::StringRef file);

/// Writes `checksums`: the SHA-256 of files of a directory, as sha256sum prints
/// them.
llvm::Error writeChecksums(llvm::StringRef directory,
                           llvm::ArrayRef<llvm::StringRef> files);

/// Whether all files that a package's checksums list are as they say, and
/// `required` are among them.
bool isIntact(llvm::StringRef directory,
              llvm::ArrayRef<llvm::StringRef> required);

/// Writes a package directory by `write`, which fills the directory it is
/// given: complete, or not at all. A package that is there is replaced;
/// anything else is not.
llvm::Error
writePackageDirectory(llvm::StringRef directory,
                      llvm::function_ref<llvm::Error(llvm::StringRef)> write);

/// The same where only packages can be.
llvm::Error
replacePackageDirectory(llvm::StringRef directory,
                        llvm::function_ref<llvm::Error(llvm::StringRef)> write);

/// Whether `directory` may become a package: nothing is there, or a package.
/// For callers that compile first.
llvm::Error checkPackageDirectory(llvm::StringRef directory);

} // namespace fi

#endif // FI_TARGET_PACKAGEFILES_H
