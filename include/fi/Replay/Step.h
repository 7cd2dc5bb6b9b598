//===- Step.h - one step of a replay as arguments ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The boundary between batching and kernels: a batch and its tensors become the
// arguments of the program, which an fi::Executor plans and runs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_STEP_H
#define FI_REPLAY_STEP_H

#include "fi/Interpreter/Reference.h"
#include "fi/Replay/Batching.h"
#include "fi/Replay/Program.h"
#include "fi/Support/HostTensor.h"
#include <vector>

namespace fi::replay {

/// The run arguments and results of one step. `newKeys` and `newValues` are
/// unused by a program that does not append, `lse` by one that does not return
/// it.
struct StepTensors {
  HostTensor query, newKeys, newValues, keys, values, output, lse;

  std::vector<HostTensor> getResults(const Program &program) const;
};

/// Arguments in program order. The tables are the batch's own, and must live
/// while the arguments are used.
std::vector<HostValue> makeArguments(const Program &program,
                                     const StepBatch &batch,
                                     const StepTensors &tensors);

/// Who does how much in a planned batch.
struct ScheduleSummary {
  int64_t items = 0;  ///< of attention and append
  int64_t splits = 0; ///< attention items that write a state to be merged
  int64_t workers = 0;
};

/// Counts the items of a schedule's JSON (docs/planner.md).
llvm::Expected<ScheduleSummary> summarizeSchedule(llvm::StringRef json);

} // namespace fi::replay

#endif // FI_REPLAY_STEP_H
