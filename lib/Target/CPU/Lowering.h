//===- Lowering.h - from a program to the llvm dialect ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The MLIR half of the CPU compiler: stages, errors, one module a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_LOWERING_H
#define FI_LIB_TARGET_CPU_LOWERING_H

#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/CodegenSupport.h"
#include "mlir/IR/OwningOpRef.h"

namespace fi::cpu {

/// Lets several threads use a context that its owner uses from one, for as long
/// as this lives.
class ParallelContext {
public:
  explicit ParallelContext(mlir::MLIRContext *context);
  ~ParallelContext();

private:
  mlir::MLIRContext *context;
  bool isEnabledHere;
};

/// How far to go.
enum class Level { Vector, LLVM };

/// A program on its way down.
class Lowering {
public:
  explicit Lowering(const CompileOptions &options) : options(options) {}

  /// Copies the program out of `module` and takes it to level 1 with schedules,
  /// unless it is at a later level already.
  llvm::Error prepare(mlir::ModuleOp module, llvm::StringRef name);
  /// Goes on to `level`. If `split`, kernels are lowered in parallel and end in
  /// a nested module each.
  llvm::Error lower(Level level, bool split);

  mlir::ModuleOp getModule() { return *module; }
  TargetAttr getTarget() const { return target; }
  llvm::StringRef getManifest() const { return manifest; }
  /// The nested modules, or the module itself.
  llvm::SmallVector<mlir::ModuleOp> getKernels();

private:
  llvm::Error takeManifest();
  void splitKernels();

  const CompileOptions &options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  TargetAttr target;
  std::string manifest;
};

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_LOWERING_H
