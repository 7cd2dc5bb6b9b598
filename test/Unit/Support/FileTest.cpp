//===- FileTest.cpp - writing whole files ---------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/File.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

/// What is not a file is written to: replacing /dev/null by a file would be the
/// end of much else.
TEST(WriteFile, LeavesPipesAndDevicesWhatTheyAre) {
  llvm::SmallString<128> directory;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fi-file", directory));
  llvm::SmallString<128> path = directory;
  llvm::sys::path::append(path, "pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  // Open for reading first, without waiting for the writer.
  int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  llvm::Error error =
      fi::writeFile(path, [](llvm::raw_ostream &os) { os << "text"; });
  EXPECT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  char text[8] = {};
  EXPECT_EQ(read(reader, text, sizeof(text) - 1), 4);
  EXPECT_STREQ(text, "text");
  close(reader);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  llvm::sys::fs::remove_directories(directory);
}

} // namespace
