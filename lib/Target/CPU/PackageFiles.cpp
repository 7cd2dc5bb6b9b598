//===- PackageFiles.cpp - package directories -----------------------------===//
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

#include "SharedObject.h"
#include "fi/Support/File.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <cerrno>
#include <cstdio>

using namespace fi;
using namespace fi::cpu;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallString;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral kFiles[] = {"manifest.json", "kernels.so"};

static std::string inDirectory(StringRef directory, StringRef file) {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, file);
  return path.str().str();
}

/// The text that `checksums` should have.
static Expected<std::string> sumFiles(StringRef directory) {
  std::string text;
  for (StringRef file : kFiles) {
    auto buffer = readFile(inDirectory(directory, file));
    if (!buffer)
      return buffer.takeError();
    auto sum =
        llvm::SHA256::hash(llvm::arrayRefFromStringRef((*buffer)->getBuffer()));
    text += llvm::toHex(sum, /*LowerCase=*/true) + "  " + file.str() + "\n";
  }
  return text;
}

Error fi::cpu::writePackageFiles(StringRef manifest,
                                 llvm::ArrayRef<ObjectCode> objects,
                                 StringRef directory) {
  if (Error error =
          linkSharedObject(objects, inDirectory(directory, "kernels.so")))
    return error;
  if (Error error = writeFile(inDirectory(directory, "manifest.json"),
                              [&](llvm::raw_ostream &os) { os << manifest; }))
    return error;
  auto sums = sumFiles(directory);
  if (!sums)
    return sums.takeError();
  return writeFile(inDirectory(directory, "checksums"),
                   [&](llvm::raw_ostream &os) { os << *sums; });
}

bool fi::cpu::isIntact(StringRef directory) {
  auto expected = readFile(inDirectory(directory, "checksums"));
  if (!expected) {
    llvm::consumeError(expected.takeError());
    return false;
  }
  auto sums = sumFiles(directory);
  if (!sums) {
    llvm::consumeError(sums.takeError());
    return false;
  }
  return (*expected)->getBuffer() == *sums;
}

Expected<std::string> fi::cpu::makeTemporaryDirectory(StringRef path) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    SmallString<128> made;
    llvm::sys::fs::createUniquePath(path + ".tmp-%%%%%%%%%%", made,
                                    /*MakeAbsolute=*/false);
    std::error_code code = llvm::sys::fs::create_directory(
        made, /*IgnoreExisting=*/false, llvm::sys::fs::all_all);
    if (!code)
      return made.str().str();
    if (code != std::errc::file_exists)
      return createStringError("cannot write '" + path +
                               "': " + code.message());
  }
  return createStringError("cannot write '" + path +
                           "': no free name for a temporary beside it");
}

void fi::cpu::removeDirectory(StringRef path) {
  llvm::sys::fs::remove_directories(path);
}

Error fi::cpu::publishPackage(StringRef from, StringRef to) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    if (std::rename(from.str().c_str(), to.str().c_str()) == 0)
      return Error::success();
    if (errno != EEXIST && errno != ENOTEMPTY)
      return createStringError(
          "cannot write '" + to +
          "': " + std::error_code(errno, std::generic_category()).message());
    // Something is there: it makes room in one step as well.
    auto old = makeTemporaryDirectory(to);
    if (!old)
      return old.takeError();
    bool isMoved = std::rename(to.str().c_str(), old->c_str()) == 0;
    removeDirectory(*old);
    if (!isMoved && errno != ENOENT)
      return createStringError(
          "cannot replace '" + to +
          "': " + std::error_code(errno, std::generic_category()).message());
  }
  return createStringError("cannot write '" + to +
                           "': others keep writing it at the same time");
}
