//===- ToolContext.h - a context to compile programs in --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_TOOLS_COMMON_TOOLCONTEXT_H
#define FI_TOOLS_COMMON_TOOLCONTEXT_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

namespace fi {

/// All dialects and both compilers. A message shows its place, not a page of
/// operations.
class ToolContext {
public:
  ToolContext();

  mlir::MLIRContext &get() { return context; }
  const mlir::DialectRegistry &getRegistry() const { return registry; }

private:
  mlir::DialectRegistry registry;
  mlir::MLIRContext context;
};

} // namespace fi

#endif // FI_TOOLS_COMMON_TOOLCONTEXT_H
