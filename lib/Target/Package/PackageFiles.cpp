//===- PackageFiles.cpp - package directories -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//

#include "fi/Target/PackageFiles.h"
#include "fi/Support/File.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include <cerrno>
#include <cstdio>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::SmallString;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral kSums = "checksums";

std::string fi::inDirectory(StringRef directory, StringRef file) {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, file);
  return path.str().str();
}

/// A line of `checksums`.
static Expected<std::string> sumFile(StringRef directory, StringRef file) {
  auto buffer = readFile(inDirectory(directory, file));
  if (!buffer)
    return buffer.takeError();
  auto sum =
      llvm::SHA256::hash(llvm::arrayRefFromStringRef((*buffer)->getBuffer()));
  return llvm::toHex(sum, /*LowerCase=*/true) + "  " + file.str();
}

Error fi::writeChecksums(StringRef directory, llvm::ArrayRef<StringRef> files) {
  std::string text;
  for (StringRef file : files) {
    auto line = sumFile(directory, file);
    if (!line)
      return line.takeError();
    text += *line + "\n";
  }
  return writeFile(inDirectory(directory, kSums),
                   [&](llvm::raw_ostream &os) { os << text; });
}

bool fi::isIntact(StringRef directory, llvm::ArrayRef<StringRef> required) {
  auto sums = readFile(inDirectory(directory, kSums));
  if (!sums) {
    llvm::consumeError(sums.takeError());
    return false;
  }
  llvm::SmallVector<StringRef> lines, files;
  (*sums)->getBuffer().split(lines, '\n', /*MaxSplit=*/-1,
                             /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    StringRef file = line.split("  ").second;
    if (file.empty() || file.contains('/'))
      return false;
    auto found = sumFile(directory, file);
    if (!found) {
      llvm::consumeError(found.takeError());
      return false;
    }
    if (*found != line)
      return false;
    files.push_back(file);
  }
  return llvm::all_of(required, [&](StringRef file) {
    return llvm::is_contained(files, file);
  });
}

/// A new directory beside `path`.
static Expected<std::string> makeTemporaryDirectory(StringRef path) {
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

static void removeDirectory(StringRef path) {
  llvm::sys::fs::remove_directories(path);
}

/// Moves the complete package `from` to `to` in one step, replacing what is
/// there. Of several processes one wins, and all succeed.
static Error publishPackage(StringRef from, StringRef to) {
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

Error fi::replacePackageDirectory(StringRef directory,
                                  llvm::function_ref<Error(StringRef)> write) {
  auto temporary = makeTemporaryDirectory(directory);
  if (!temporary)
    return temporary.takeError();
  Error error = write(*temporary);
  if (!error)
    error = publishPackage(*temporary, directory);
  if (error)
    removeDirectory(*temporary);
  return error;
}

static StringRef withoutSlash(StringRef directory) {
  while (directory.size() > 1 &&
         llvm::sys::path::is_separator(directory.back()))
    directory = directory.drop_back();
  return directory;
}

Error fi::checkPackageDirectory(StringRef directory) {
  directory = withoutSlash(directory);
  if (!llvm::sys::fs::exists(directory))
    return Error::success();
  // What a user wrote by mistake is not to be lost.
  std::error_code code;
  bool isEmpty = llvm::sys::fs::directory_iterator(directory, code) ==
                 llvm::sys::fs::directory_iterator();
  if (!llvm::sys::fs::is_directory(directory) ||
      (!isEmpty &&
       !llvm::sys::fs::exists(inDirectory(directory, "manifest.json"))))
    return createStringError(
        "cannot write the package '" + directory +
        "': something that is no package is there; name another directory");
  return Error::success();
}

Error fi::writePackageDirectory(StringRef directory,
                                llvm::function_ref<Error(StringRef)> write) {
  if (Error error = checkPackageDirectory(directory))
    return error;
  return replacePackageDirectory(withoutSlash(directory), write);
}
