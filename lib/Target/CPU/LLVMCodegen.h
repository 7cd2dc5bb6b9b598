//===- LLVMCodegen.h - from the llvm dialect to machine code ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of the CPU compiler that fi-translate shares.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_LLVMCODEGEN_H
#define FI_LIB_TARGET_CPU_LLVMCODEGEN_H

#include "fi/Target/CPU/CPUCompiler.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

namespace fi::cpu {

/// A module of one program's kernels, and its manifest.
struct LoweredProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string manifest;
};

/// Lowers a copy of `module` to vectors, or to the llvm dialect.
llvm::Expected<LoweredProgram> lowerProgram(mlir::ModuleOp module,
                                            llvm::StringRef name, bool toLLVM,
                                            const CompileOptions &options);

/// Translates, optimises and links into this process. Never aborts: what LLVM
/// cannot do comes back as an error.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
compileInProcess(mlir::ModuleOp module, unsigned optLevel, CompileTimes &times);

/// Translates to LLVM IR for this host and optimises.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, llvm::LLVMContext &context, unsigned optLevel,
          CompileTimes &times);

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_LLVMCODEGEN_H
