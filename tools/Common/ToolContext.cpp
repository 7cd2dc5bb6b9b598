//===- ToolContext.cpp - a context to compile programs in -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ToolContext.h"
#include "fi/InitAll.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"

using namespace fi;

static mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  cpu::registerCompiler(registry);
  gpu::registerCompiler(registry);
  return registry;
}

ToolContext::ToolContext()
    : registry(makeRegistry()),
      context(registry, mlir::MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
}
