//===- LLVMCodegen.h - from the llvm dialect to machine code ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The LLVM half of the CPU compiler. Nothing here aborts: what LLVM cannot do
// comes back as an error.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_LLVMCODEGEN_H
#define FI_LIB_TARGET_CPU_LLVMCODEGEN_H

#include "fi/Target/CPU/CPUCompiler.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace fi::cpu {

/// The bytes of a relocatable object.
using ObjectCode = llvm::SmallVector<char, 0>;

/// Translates to LLVM IR for a target and optimises. `definesVersion`: the
/// module brings the symbol that tells the ABI's version.
llvm::Expected<std::unique_ptr<llvm::Module>>
translate(mlir::ModuleOp module, TargetAttr target, bool definesVersion,
          llvm::LLVMContext &context, unsigned optLevel, CompileTimes &times);

/// Generates code for IR of `translate`.
llvm::Error emitCode(llvm::Module &ir, TargetAttr target, unsigned optLevel,
                     bool asAssembly, llvm::raw_pwrite_stream &os);

/// The functions that convert f16 on a target without instructions for it.
llvm::Expected<ObjectCode> compileHalfConversions(TargetAttr target);

/// The names that `objects` use and do not define, sorted.
llvm::Expected<std::vector<std::string>>
findUndefined(llvm::ArrayRef<ObjectCode> objects);

/// One object for each module, made in parallel, and what they need beside libc
/// and libm.
llvm::Expected<std::vector<ObjectCode>>
compileKernels(llvm::ArrayRef<mlir::ModuleOp> kernels, TargetAttr target,
               unsigned optLevel, CompileTimes &times);

/// Loads objects into this process.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
loadInProcess(llvm::ArrayRef<ObjectCode> objects, TargetAttr target);

/// fi::runSafely, with a sentence of the CPU's compiler.
llvm::Error runSafely(llvm::function_ref<llvm::Error()> function);

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_LLVMCODEGEN_H
