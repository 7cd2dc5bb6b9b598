//===- Replay.h - replay a trace on an executor -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of a serving engine around the batcher and an executor: form a
// batch, plan, run, check some rows against the reference interpreter, free
// pages. Gives figures; printing them is the tool's affair (Report.h).
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_REPLAY_H
#define FI_REPLAY_REPLAY_H

#include "fi/Execution/Executor.h"
#include "fi/Replay/Batching.h"
#include "fi/Replay/Program.h"
#include "fi/Replay/Step.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace fi::replay {

struct StepRecord;

struct ReplayOptions {
  /// Steps to run; 0 for the whole trace.
  int64_t steps = 360;
  uint64_t seed = 1;
  /// Rows and heads of each step that are compared with the reference.
  int64_t checksPerStep = 2;
  /// Step whose schedule is kept; -1 for the mixed step with the most keys.
  int64_t scheduleStep = -1;
  /// Called after each step.
  std::function<void(const StepRecord &)> onStep;
};

/// Figures of one step.
struct StepRecord {
  int64_t index = 0;
  StepKind kind = StepKind::Decode;
  bool chunked = false;
  int64_t requests = 0, inFlight = 0, prefillTokens = 0, decodeTokens = 0;
  int64_t keys = 0; ///< over the requests
  int64_t livePages = 0;
  double planMilliseconds = 0, runMilliseconds = 0;
  double bytes = 0;      ///< see ReplayReport::bytes
  double operations = 0; ///< see ReplayReport::operations
  ScheduleSummary schedule;
  int64_t checkedRows = 0;
  double maxError = 0; ///< of the outputs checked
};

/// What a replay did. Times are of the executor alone, without making up keys
/// and queries, checking and printing.
struct ReplayReport {
  BatchingCounters counters;
  int64_t poolPages = 0, poolBytes = 0, peakPages = 0, allocatedPages = 0,
          reusedPages = 0;
  double compileMilliseconds = 0;
  /// The first plan makes the plan object, the others update it.
  double firstPlanMilliseconds = 0, planMilliseconds = 0,
         maxPlanMilliseconds = 0, runMilliseconds = 0;
  double wallSeconds = 0;
  /// Least traffic: each key and value of a request once, each new one written
  /// once, queries and outputs once.
  double bytes = 0;
  /// Two products of 2 * dim operations for each row, head and key that causal
  /// attention sees.
  double operations = 0;
  int64_t items = 0, splits = 0;
  int64_t checkedRows = 0, checkedKeys = 0;
  /// Largest error of an output and of a base-2 lse that was checked, and the
  /// largest ratio of an error to its tolerance.
  double maxError = 0, maxLseError = 0, maxRatio = 0;
  std::vector<StepRecord> steps;
  /// JSON of the kept step's schedule; empty where the backend has none.
  std::string schedule;
  int64_t scheduleStep = -1;

  /// What of the events that a replay must have did not occur ("no page was
  /// reused"); empty if all did.
  std::vector<std::string> getMissingEvents() const;
};

/// Replays until `options.steps` or the end of the trace. An error says step,
/// request, row and head: of the executor, or of a result that is not right.
llvm::Expected<ReplayReport> replay(ContinuousBatcher &batcher,
                                    const Program &program, Executor &executor,
                                    const ReplayOptions &options);

} // namespace fi::replay

#endif // FI_REPLAY_REPLAY_H
