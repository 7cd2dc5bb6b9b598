//===- LastError.h - what failed last in a thread ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CAPI_LASTERROR_H
#define FI_LIB_CAPI_LASTERROR_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fi::capi {

/// Keeps a sentence for fiGetLastError.
void setLastError(llvm::Error error);

/// Collects errors and their notes while it lives, and passes them on.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext *context);

  /// Keeps `error` and what was collected for fiGetLastError.
  void fail(llvm::Error error);

private:
  std::string text, last;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace fi::capi

#endif // FI_LIB_CAPI_LASTERROR_H
