//===- CPUCompiler.h - from a program to machine code of this host --*- C++
//-*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the programs of a level-1 module for the CPU, in process. The result
// is a package in memory: a manifest (docs/abi.md) and addresses, which the
// runtime plans and runs. What was compiled before comes from the cache
// (docs/packages.md).
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_CPU_CPUCOMPILER_H
#define FI_TARGET_CPU_CPUCOMPILER_H

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Target/Cache.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>

namespace fi {
class PassManagers;
} // namespace fi

namespace fi::cpu {

using fi::CacheOptions;

struct CompileOptions {
  /// 0: no optimiser; 1: quick code generation; 2: what kernels gain from; 3:
  /// LLVM's -O3, which takes longer for code of the same speed.
  unsigned optLevel = 2;
  /// Called with the module after each stage ("fi", "fi_tile", "vector",
  /// "llvm"), for dumps. May be null; if not, nothing comes from the cache.
  std::function<void(llvm::StringRef stage, mlir::ModuleOp)> observe;
  CacheOptions cache;
  /// Whether kernels are compiled side by side, each as a module of its own.
  /// One module takes less time in all where there is one thread for it.
  bool sideBySide = true;
  /// Whether builds with checks verify what each pass makes.
  bool verifyEach = true;
  /// Of the module's context, if many programs are compiled in it.
  PassManagers *passManagers = nullptr;
};

/// Milliseconds spent, for `--timing` and benchmarks. Kernels are compiled in
/// parallel: translate, optimise and codegen are sums over them.
struct CompileTimes {
  /// To level 1 with schedules, and the look-up in the cache.
  double prepare = 0;
  double lower = 0, translate = 0, optimise = 0, codegen = 0;
  /// Writing the entry of the cache.
  double store = 0;
  /// As the caller sees it.
  double total = 0;
  bool cached = false;
};

/// The target attribute of the machine this runs on.
TargetAttr getHostTarget(mlir::MLIRContext *context);

/// Adds what compiling needs to a context's registry (translations to LLVM IR).
void registerCompiler(mlir::DialectRegistry &registry);

/// Machine code of one program, in this process.
class CompiledProgram {
public:
  virtual ~CompiledProgram();

  /// Compiles program `name` of `module` (which is not changed); the only one
  /// if `name` is empty. Diagnostics go to the context's handlers; the error
  /// repeats the last one in a sentence. A module without a `fi.target` is
  /// compiled for this host.
  static llvm::Expected<std::unique_ptr<CompiledProgram>>
  compile(mlir::ModuleOp module, llvm::StringRef name,
          const CompileOptions &options = {});

  /// The manifest's JSON.
  llvm::StringRef getManifest() const { return manifest; }
  /// Address of a symbol, or null.
  virtual void *lookup(llvm::StringRef symbol) const = 0;
  const CompileTimes &getTimes() const { return times; }

  /// `lookup` in the form that fi_package_from_memory takes; the context is the
  /// CompiledProgram.
  static void *lookupCallback(void *context, const char *symbol);

protected:
  std::string manifest;
  CompileTimes times;
};

//===----------------------------------------------------------------------===//
// Translations, as of fi-translate
//===----------------------------------------------------------------------===//
//
// Beside level 1 these take the output of a later stage, as long as it has one
// fi_tile.package.

/// The manifest's JSON.
llvm::Error printManifest(mlir::ModuleOp module, llvm::StringRef name,
                          const CompileOptions &options, llvm::raw_ostream &os);
/// Optimised LLVM IR of the kernels.
llvm::Error printLLVMIR(mlir::ModuleOp module, llvm::StringRef name,
                        const CompileOptions &options, llvm::raw_ostream &os);
/// The kernels in assembly language.
llvm::Error printAssembly(mlir::ModuleOp module, llvm::StringRef name,
                          const CompileOptions &options, llvm::raw_ostream &os);
/// Writes a package directory: complete, or not at all. A package that is there
/// is replaced; anything else is not.
llvm::Error writePackage(mlir::ModuleOp module, llvm::StringRef name,
                         const CompileOptions &options,
                         llvm::StringRef directory);

} // namespace fi::cpu

#endif // FI_TARGET_CPU_CPUCOMPILER_H
