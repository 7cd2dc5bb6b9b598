//===- ToolMain.cpp - the main function of a tool -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToolMain.h"
#include "llvm/Support/raw_ostream.h"

using namespace fi;
namespace cl = llvm::cl;

int fi::runVerdictMain(int argc, char **argv, const ToolDescription &tool,
                       llvm::function_ref<llvm::Expected<bool>()> body) {
  cl::HideUnrelatedOptions(tool.category);
  cl::extrahelp help(tool.examples);
  cl::ParseCommandLineOptions(argc, argv, tool.overview);
  llvm::Expected<bool> isGood = body();
  if (isGood)
    return *isGood ? 0 : 1;
  llvm::outs().flush();
  llvm::errs() << tool.name << ": error: " << llvm::toString(isGood.takeError())
               << '\n';
  return 1;
}

int fi::runToolMain(int argc, char **argv, const ToolDescription &tool,
                    llvm::function_ref<llvm::Error()> body) {
  return runVerdictMain(argc, argv, tool, [&]() -> llvm::Expected<bool> {
    if (llvm::Error error = body())
      return std::move(error);
    return true;
  });
}
