//===- fi-opt.cpp - runs fi's passes over MLIR text -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

static const char *const overview =
    "fi-opt: runs passes and pipelines of fi over MLIR text or bytecode.\n"
    "Levels: fi (what attention means), fi_tile (how a kernel computes), then "
    "vector, scf, memref and llvm.\n";

static llvm::Error run(llvm::StringRef input, llvm::StringRef output,
                       mlir::DialectRegistry &registry, bool &isGood) {
  auto buffer = fi::readFile(input);
  if (!buffer)
    return buffer.takeError();
  // MLIR's own main would descend without a bound.
  if (llvm::Error error = fi::checkNesting((*buffer)->getBuffer(), input))
    return error;
  std::string message;
  auto file = mlir::openOutputFile(output, &message);
  if (!file)
    return llvm::createStringError(message);
  isGood = mlir::succeeded(
      mlir::MlirOptMain(file->os(), std::move(*buffer), registry,
                        mlir::MlirOptMainConfig::createFromCLOptions()));
  if (isGood)
    file->keep();
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  fi::registerAllDialects(registry);
  fi::registerAllPasses();
  auto [input, output] =
      mlir::registerAndParseCLIOptions(argc, argv, overview, registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));
  bool isGood = false;
  if (llvm::Error error = run(input, output, registry, isGood)) {
    llvm::errs() << "fi-opt: error: " << llvm::toString(std::move(error))
                 << "\n";
    return 1;
  }
  return isGood ? 0 : 1;
}
