//===- RuntimeExecutor.h - backends that the runtime runs -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_EXECUTION_RUNTIMEEXECUTOR_H
#define FI_LIB_EXECUTION_RUNTIMEEXECUTOR_H

#include "Device.h"
#include "ExecutorImpl.h"
#include "fi/Interpreter/TileInterpreter.h"
#include "fi/Target/CPU/CPUCompiler.h"

namespace fi {

/// What the runtime's last failure in this thread says.
llvm::Error getRuntimeError();

/// A package through the runtime's C interface, on the host or on a device.
class RuntimeExecutor : public Executor {
public:
  RuntimeExecutor(llvm::StringRef name, Signature programSignature,
                  const ExecutorOptions &options)
      : Executor(name), options(options) {
    signature = std::move(programSignature);
  }
  ~RuntimeExecutor() override {
    fi_plan_destroy(runtimePlan);
    fi_package_release(package);
  }

  std::string describe() const override;
  bool hasPlans() const override { return true; }
  Memory &getMemory() override {
    return device ? static_cast<Memory &>(*device) : getHostMemory();
  }

  void setPlanOptions(int workers, SplitChoice split,
                      int64_t splitKeys) override {
    options.workers = workers;
    options.split = split;
    options.splitKeys = splitKeys;
  }
  llvm::Error plan(llvm::ArrayRef<HostValue> arguments) override;
  llvm::Error run(llvm::ArrayRef<HostValue> arguments,
                  llvm::MutableArrayRef<HostTensor> results) override;
  llvm::Expected<std::string> explain() override {
    return takeText(fi_plan_explain);
  }
  llvm::Expected<std::string> getScheduleJson() override {
    return takeText(fi_plan_schedule_json);
  }
  bool hasTimelines() const override { return bool(device); }
  llvm::Expected<std::string> getTimelineJson() override;
  int getWorkers() const override {
    return runtimePlan ? fi_plan_workers(runtimePlan) : options.workers;
  }

  /// Null on the host. Before all that lives in its memory or is loaded on it.
  std::shared_ptr<Device> device;
  fi_package *package = nullptr;
  /// The code that a package in memory points into.
  std::unique_ptr<cpu::CompiledProgram> compiled;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<tile::InterpretedKernels> kernels;
  void setSignature(Signature of) { signature = std::move(of); }
  void setCompileTime(double milliseconds, bool cached) {
    times.compile = milliseconds;
    times.cached = cached;
  }

private:
  llvm::Expected<std::string> takeText(fi_status (*get)(const fi_plan *,
                                                        char **));

  ExecutorOptions options;
  fi_plan *runtimePlan = nullptr;
  HostTensor workspace;
};

} // namespace fi

#endif // FI_LIB_EXECUTION_RUNTIMEEXECUTOR_H
