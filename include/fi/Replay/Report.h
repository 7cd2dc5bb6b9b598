//===- Report.h - a replay's figures for people and programs ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_REPORT_H
#define FI_REPLAY_REPORT_H

#include "fi/Replay/Replay.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace fi::replay {

/// The final table.
void printReport(llvm::raw_ostream &os, const ReplayReport &report);
/// The same figures, and those of each step, under stable names.
llvm::json::Value toJSON(const ReplayReport &report);

llvm::StringRef getName(StepKind kind);

/// Shows how far a replay is: a bar that is redrawn on a terminal, else a line
/// now and then.
class Progress {
public:
  /// `os` is not used after the last step or finish().
  Progress(llvm::raw_ostream &os, bool terminal, int64_t steps)
      : os(os), terminal(terminal), steps(steps) {}

  void update(const StepRecord &record);
  /// Leaves the terminal's cursor on a line of its own.
  void finish();

private:
  static constexpr int64_t kLines = 10; // without a terminal
  llvm::raw_ostream &os;
  bool terminal, drawn = false;
  int64_t steps;
  int64_t tokens = 0, checks = 0;
  double milliseconds = 0;
};

} // namespace fi::replay

#endif // FI_REPLAY_REPORT_H
