//===- Checker.h - compare rows of a step with the reference ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of a serving batch is too large for the reference interpreter, a row
// and a head of it are not.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_REPLAY_CHECKER_H
#define FI_LIB_REPLAY_CHECKER_H

#include "fi/Replay/Executor.h"
#include "fi/Replay/KVSource.h"

namespace fi::replay {

struct CheckResult {
  double error = 0, lseError = 0;
  double ratio = 0; ///< largest error by its tolerance
  int64_t keys = 0;
};

class Checker {
public:
  Checker(const Program &program, const KVSource &source, const Pools &pools,
          uint64_t seed)
      : program(program), source(source), pools(pools), seed(seed) {}

  /// Chooses the `number`-th row and head of a step that has run; compares
  /// first the request's pages with what was appended to them and then the row
  /// with the reference. An error tells where they differ.
  llvm::Expected<CheckResult> check(const StepBatch &batch,
                                    const StepTensors &tensors,
                                    int64_t number) const;

private:
  double getMaxScore(const StepBatch &batch, unsigned entry, int64_t row,
                     int64_t head, const StepTensors &tensors) const;

  const Program &program;
  const KVSource &source;
  const Pools &pools;
  uint64_t seed;
};

} // namespace fi::replay

#endif // FI_LIB_REPLAY_CHECKER_H
