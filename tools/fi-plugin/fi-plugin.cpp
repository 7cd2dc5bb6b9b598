//===- fi-plugin.cpp - fi for mlir-opt and its like -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mlir-opt --load-dialect-plugin=fi-plugin.so --load-pass-plugin=fi-plugin.so
//
// Adds fi's dialects, passes and pipelines to a program that has MLIR's own.
//
//===----------------------------------------------------------------------===//

#include "fi/InitAll.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" ::mlir::DialectPluginLibraryInfo LLVM_ATTRIBUTE_VISIBILITY_DEFAULT
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "fi", LLVM_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            fi::registerAllDialects(*registry);
          }};
}

extern "C" ::mlir::PassPluginLibraryInfo LLVM_ATTRIBUTE_VISIBILITY_DEFAULT
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "fi", LLVM_VERSION_STRING,
          fi::registerPasses};
}
