//===- fi-opt.cpp - runs fi's passes over MLIR text -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  fi::registerAllDialects(registry);
  fi::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv,
      "fi-opt: runs passes and pipelines of fi over MLIR text or bytecode.\n"
      "Levels: fi (what attention means), fi_tile (how a kernel computes), "
      "then "
      "vector, scf, memref and llvm.\n",
      registry));
}
