//===- EmitPTX.h - from the llvm and nvvm dialects to PTX -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits PTX in process. The same module, target and options give the same
// bytes. Nothing here ends the process: what LLVM cannot do is an error.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_NVPTX_EMITPTX_H
#define FI_TARGET_NVPTX_EMITPTX_H

#include "fi/Target/SMTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace fi::nvptx {

struct EmitOptions {
  /// 0: no optimiser; 1: what kernels gain from; 2: loop-invariant code motion
  /// as well, for fewer instructions and more registers; 3: all of LLVM's -O3.
  unsigned optLevel = 1;
  /// The version of the PTX ISA, times ten; 0: the lowest that has the target
  /// and the instructions of the module.
  unsigned ptx = 0;
  /// `.loc` directives with the locations of ops. They change no instruction
  /// and need no debug information in the cubin.
  bool locations = true;
};

/// Milliseconds spent. Those of `optimise` and `codegen` are added up over
/// kernels, which are done at the same time where there are cores.
struct EmitTimes {
  double convert = 0, translate = 0, optimise = 0, codegen = 0;
};

/// The version of the PTX ISA for a module of the llvm and nvvm dialects: the
/// target's, or a later one where an instruction asks for it. One that was
/// asked for is checked.
llvm::Expected<unsigned> choosePTX(mlir::ModuleOp module,
                                   const sm::Target &target, unsigned asked);

/// Adds the dialects and translations that emitting needs.
void registerEmitter(mlir::DialectRegistry &registry);

/// Emits a module of the llvm and nvvm dialects, whose kernels are functions
/// with `nvvm.kernel`. The module is not changed. Errors have the location of
/// an op where one is to blame, and are reported to the context as well.
///
/// Products and sums are contracted where their fastmath flags say so, and
/// nowhere else. f32 denormals are flushed, unless a function has
/// `denormal_fp_math_f32`. Inline assembly is convergent.
llvm::Expected<std::string> emitPTX(mlir::ModuleOp module,
                                    const sm::Target &target,
                                    const EmitOptions &options = {},
                                    EmitTimes *times = nullptr);

/// The same for a module that nobody needs afterwards.
llvm::Expected<std::string> emitPTX(mlir::OwningOpRef<mlir::ModuleOp> module,
                                    const sm::Target &target,
                                    const EmitOptions &options = {},
                                    EmitTimes *times = nullptr);

/// The LLVM IR that code is generated from.
llvm::Expected<std::string> emitLLVMIR(mlir::ModuleOp module,
                                       const sm::Target &target,
                                       const EmitOptions &options = {});

/// Gives each op the location of its own line in the text of the module, as a
/// file `name`, and returns the text.
std::string snapshotLocations(mlir::ModuleOp module, llvm::StringRef name);

} // namespace fi::nvptx

#endif // FI_TARGET_NVPTX_EMITPTX_H
