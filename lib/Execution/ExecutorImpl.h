//===- ExecutorImpl.h - what the files of fi/Execution share ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_EXECUTION_EXECUTORIMPL_H
#define FI_LIB_EXECUTION_EXECUTORIMPL_H

#include "fi/Execution/Executor.h"
#include <chrono>

namespace fi {

class Stopwatch {
public:
  double getMilliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start)
        .count();
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

/// Interprets level 2 as it is, or as the conversion from level 1 makes it, on
/// the runtime's plan.
llvm::Expected<std::unique_ptr<Executor>>
createLevel2Executor(mlir::ModuleOp module, llvm::StringRef name,
                     Signature signature, const ExecutorOptions &options);

llvm::Expected<std::unique_ptr<Executor>>
createCPUExecutor(mlir::ModuleOp module, llvm::StringRef name,
                  Signature signature, const ExecutorOptions &options);

/// On a device: see Device::isName.
llvm::Expected<std::unique_ptr<Executor>>
createDeviceExecutor(llvm::StringRef backend, mlir::ModuleOp module,
                     llvm::StringRef name, Signature signature,
                     const ExecutorOptions &options);

} // namespace fi

#endif // FI_LIB_EXECUTION_EXECUTORIMPL_H
