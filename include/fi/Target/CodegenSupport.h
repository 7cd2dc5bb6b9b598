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
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
class PassManager;
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

/// Pass managers that have run, with the patterns that their passes made: for
/// who compiles many programs in one context, which must outlive this. Several
/// threads may use one at once.
class PassManagers {
public:
  PassManagers();
  ~PassManagers();

  /// One with these passes that nobody uses, or null.
  std::unique_ptr<mlir::PassManager> take(llvm::StringRef passes);
  void giveBack(llvm::StringRef passes,
                std::unique_ptr<mlir::PassManager> manager);

private:
  std::mutex mutex;
  llvm::StringMap<std::vector<std::unique_ptr<mlir::PassManager>>> unused;
};

/// Runs the passes that `build` adds; their errors come back. Builds with
/// checks verify what each pass makes, unless told otherwise; all verify what
/// the last one makes. Managers are taken from `managers` and kept there, if
/// it is given.
llvm::Error runPasses(mlir::ModuleOp module,
                      llvm::function_ref<void(mlir::OpPassManager &)> build,
                      bool verifyEach = true, PassManagers *managers = nullptr);

} // namespace fi

#endif // FI_TARGET_CODEGENSUPPORT_H
