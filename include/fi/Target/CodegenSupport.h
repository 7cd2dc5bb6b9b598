//===- CodegenSupport.h - what code generators have in common ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors instead of aborts, diagnostics as errors, clocks.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_CODEGENSUPPORT_H
#define FI_TARGET_CODEGENSUPPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace fi {

/// Milliseconds of a steady clock.
double now();

/// Calls `function` so that a crash, an abort or a fatal error of LLVM in it is
/// an error that begins with `what`. What `function` owned then is leaked.
llvm::Error runSafely(llvm::StringRef what,
                      llvm::function_ref<llvm::Error()> function);

/// The last error that a context reports while this lives, as a sentence with
/// its location; diagnostics go on to other handlers.
class LastError {
public:
  explicit LastError(mlir::MLIRContext *context);
  llvm::Error take();

private:
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

/// An error with the location of an op, reported to the context as well.
llvm::Error makeError(mlir::Operation *op, const llvm::Twine &text);

/// Runs the passes that `build` adds; their errors come back. Builds with
/// checks verify what each pass makes, unless told otherwise; all verify what
/// the last one makes.
llvm::Error runPasses(mlir::ModuleOp module,
                      llvm::function_ref<void(mlir::OpPassManager &)> build,
                      bool verifyEach = true);

} // namespace fi

#endif // FI_TARGET_CODEGENSUPPORT_H
