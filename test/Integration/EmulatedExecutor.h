//===- EmulatedExecutor.h - programs on an emulated GPU ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From a module with a program to PTX in process, and to an executor that plans
// it by the runtime and runs it in the emulator with its checks.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_INTEGRATION_EMULATEDEXECUTOR_H
#define FI_TEST_INTEGRATION_EMULATEDEXECUTOR_H

#include "IntegrationTesting.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include <cstdlib>

namespace fi::test {

/// On the emulated backend, or with FI_TEST_GPU=cuda in the environment on that
/// one.
inline Case::Maker on(const std::string &chip) {
  return [chip](mlir::ModuleOp module) {
    const char *gpu = std::getenv("FI_TEST_GPU");
    return Executor::create(gpu ? gpu : "emulated:" + chip, module, "", {});
  };
}

/// The module's programs as placed kernels, interpreted.
llvm::Expected<std::unique_ptr<Executor>> interpret(mlir::ModuleOp module);

/// The same as code for an sm_80, emulated, or on a GPU as above.
llvm::Expected<std::unique_ptr<Executor>> emulate(mlir::ModuleOp module);

/// On another chip, in an order that a seed chooses: of warps, and when
/// asynchronous copies and products are done.
Case::Maker emulateOn(const std::string &chip, uint64_t seed = 0);

/// The two halves of emulate() and emulateOn().
/// `change` may change kernels before code is made of them, when all checks are
/// behind them.
llvm::Expected<gpu::CompiledPackage> compileForEmulator(
    mlir::ModuleOp module,
    llvm::function_ref<void(mlir::Operation *)> change = nullptr);
llvm::Expected<std::unique_ptr<Executor>>
loadIntoEmulator(const gpu::CompiledPackage &compiled,
                 const std::string &chip = "sm_80", uint64_t seed = 0);

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_EMULATEDEXECUTOR_H
