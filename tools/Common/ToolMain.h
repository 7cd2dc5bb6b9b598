//===- ToolMain.h - the main function of a tool ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Options, an error as a line of its own, and the exit status, the same for all
// tools.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TOOLS_COMMON_TOOLMAIN_H
#define FI_TOOLS_COMMON_TOOLMAIN_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace fi {

struct ToolDescription {
  const char *name;
  llvm::cl::OptionCategory &category; // of the options that --help shows
  const char *overview;
  const char *examples = ""; // behind the options
};

/// Parses options and runs `body`. Signals stay as they are: who ignores
/// SIGXFSZ gets a sentence for a file that is too large. The exit status is 1
/// if it fails, which is said as "NAME: error: ...".
int runToolMain(int argc, char **argv, const ToolDescription &tool,
                llvm::function_ref<llvm::Error()> body);

/// The exit status is 1 also if `body` has said itself what is not good, and
/// gives false.
int runVerdictMain(int argc, char **argv, const ToolDescription &tool,
                   llvm::function_ref<llvm::Expected<bool>()> body);

} // namespace fi

#endif // FI_TOOLS_COMMON_TOOLMAIN_H
