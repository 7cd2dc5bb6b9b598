//===- GPUCompiler.h - from a program to a package for a GPU ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the programs of a module for an NVIDIA chip, in process. The result
// is a package in memory: a manifest (docs/abi.md), PTX, and machine code where
// ptxas is there. No GPU and no driver is needed. What was compiled before
// comes from the cache (docs/packages.md).
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_GPU_GPUCOMPILER_H
#define FI_TARGET_GPU_GPUCOMPILER_H

#include "fi/Target/Cache.h"
#include "fi/Target/NVPTX/EmitPTX.h"
#include "fi/Target/NVPTX/Ptxas.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace fi {
class PassManagers;
} // namespace fi

namespace fi::gpu {

struct CompileOptions {
  nvptx::EmitOptions emit;
  /// Adds machine code, if ptxas is found.
  bool assemble = true;
  /// Called with the module after each stage ("fi", "fi_tile", "placed",
  /// "nvvm"), for dumps. May be null; if not, nothing comes from the cache.
  std::function<void(llvm::StringRef stage, mlir::ModuleOp)> observe;
  CacheOptions cache;
  /// Whether builds with checks verify what each pass makes.
  bool verifyEach = true;
  /// Of the module's context, if many programs are compiled in it.
  PassManagers *passManagers = nullptr;
};

/// Milliseconds spent.
struct CompileTimes {
  /// To level 1 with schedules, and the look-up in the cache.
  double prepare = 0;
  double lower = 0;
  nvptx::EmitTimes emit;
  double assemble = 0;
  /// Writing the entry of the cache.
  double store = 0;
  double total = 0;
  bool cached = false;
};

/// A package in memory.
struct CompiledPackage {
  /// JSON; empty where the input has no program and no package.
  std::string manifest;
  std::string ptx;
  /// Machine code; empty without ptxas.
  std::string cubin;
  /// Why there is no machine code, or nothing.
  std::string cubinMissing;
  /// The text of level 2, whose lines the PTX names, where the input was at
  /// level 1. Otherwise the PTX names lines of the input.
  std::string tiles;
  /// With machine code: what kernels use, and what ptxas warns of.
  std::vector<nvptx::KernelResources> resources;
  std::vector<std::string> warnings;
  /// For people: of each kernel its schedule, the features of the target that
  /// it uses, and why not the others. Empty where it comes from the cache.
  std::string explanation;
  CompileTimes times;
};

/// Adds what compiling needs to a context's registry.
void registerCompiler(mlir::DialectRegistry &registry);

/// Compiles program `name` of `module` (which is not changed), the only one if
/// `name` is empty, for the chip of the module's `fi.target`. The module is at
/// any level, down to kernels of the llvm and nvvm dialects. Diagnostics go to
/// the context's handlers; the error repeats the last one in a sentence.
llvm::Expected<CompiledPackage>
compileForGPU(mlir::ModuleOp module, llvm::StringRef name,
              const CompileOptions &options = {});

/// Writes a package directory: complete, or not at all. A package that is there
/// is replaced; anything else is not.
llvm::Error writePackage(const CompiledPackage &package,
                         llvm::StringRef directory);

/// The same with a package for each of several chips, which all are of one
/// program: the runtime takes the best for a device.
llvm::Error writePackages(
    llvm::ArrayRef<std::pair<const sm::Target *, CompiledPackage>> packages,
    llvm::StringRef directory);

/// The optimised LLVM IR of the kernels.
llvm::Error printLLVMIR(mlir::ModuleOp module, llvm::StringRef name,
                        const CompileOptions &options, llvm::raw_ostream &os);

} // namespace fi::gpu

#endif // FI_TARGET_GPU_GPUCOMPILER_H
