//===- Executor.h - what executes the batches of a replay -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The boundary between batching and kernels: plan a batch, run it on tensors. A
// replay knows nothing else of a backend.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_EXECUTOR_H
#define FI_REPLAY_EXECUTOR_H

#include "fi/Replay/Batching.h"
#include "fi/Replay/Program.h"
#include "fi/Support/HostTensor.h"
#include <memory>
#include <string>

namespace fi::replay {

/// The run arguments and results of one step. `newKeys` and `newValues` are
/// unused by a program that does not append, `lse` by one that does not return
/// it.
struct StepTensors {
  HostTensor query, newKeys, newValues, keys, values, output, lse;
};

/// Who does how much in a planned batch.
struct ScheduleSummary {
  int64_t items = 0;  ///< of attention and append
  int64_t splits = 0; ///< attention items that write a state to be merged
  int64_t workers = 0;
};

class Executor {
public:
  virtual ~Executor();

  /// "cpu, 2 workers", for people.
  virtual std::string describe() const = 0;
  /// Plans a batch in place of the one before. The tables are copied.
  virtual llvm::Error plan(const StepBatch &batch) = 0;
  /// Prepares what run needs for the planned batch and is not a part of the
  /// measured run (memory).
  virtual llvm::Error prepare() = 0;
  /// Runs the planned batch.
  virtual llvm::Error run(const StepTensors &tensors) = 0;
  /// The runtime's schedule of the planned batch as JSON (docs/planner.md);
  /// empty for a backend without schedules.
  virtual llvm::Expected<std::string> getSchedule() = 0;
  /// Milliseconds that it took to make the code; 0 without.
  virtual double getCompileMilliseconds() const { return 0; }
};

/// Counts the items of a schedule's JSON.
llvm::Expected<ScheduleSummary> summarizeSchedule(llvm::StringRef json);

struct CPUExecutorOptions {
  /// Threads; 0 for as many as the process may use.
  int32_t workers = 0;
  /// Pages of the pools that runs will bring.
  int64_t pages = 0;
  /// As fi_plan_options: 0 default, 1 balanced, 2 fixed, 3 none.
  int32_t splitPolicy = 0;
  int64_t splitKeys = 0;
};

/// Compiles the program for this host and runs it through the runtime.
llvm::Expected<std::unique_ptr<Executor>>
createCPUExecutor(const Program &program, const CPUExecutorOptions &options);

/// Interprets the program in double: slow, and always right.
std::unique_ptr<Executor> createReferenceExecutor(const Program &program);

/// Executes the program on the reference interpreter for the listed rows and
/// heads only; results of the others are NaN.
llvm::Expected<std::vector<HostTensor>>
interpretStep(const Program &program, const StepBatch &batch,
              const StepTensors &tensors,
              const std::vector<std::pair<int64_t, int64_t>> *onlyRows);

} // namespace fi::replay

#endif // FI_REPLAY_EXECUTOR_H
