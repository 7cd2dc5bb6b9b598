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

#include "fi/Replay/KVSource.h"
#include "fi/Replay/Step.h"

namespace fi::replay {

struct CheckResult {
  int64_t rows = 0, keys = 0;
  double error = 0, lseError = 0;
  double ratio = 0; ///< largest error by its tolerance
};

class Checker {
public:
  Checker(const Program &program, const KVSource &source, const Pools &pools,
          uint64_t seed)
      : program(program), source(source), pools(pools), seed(seed) {}

  /// Chooses `count` rows and heads of a step that has run; compares first the
  /// pages of their requests with what was appended to them and then the rows
  /// with the reference. An error tells where they differ.
  llvm::Expected<CheckResult> check(const StepBatch &batch,
                                    const StepTensors &tensors,
                                    int64_t count) const;

private:
  /// A row of the step and a head of it.
  struct Sample {
    unsigned entry = 0;
    int64_t token = 0; ///< of the entry's
    int64_t row = 0, head = 0;
  };

  Sample choose(const StepBatch &batch, int64_t number) const;
  llvm::Error compare(const StepBatch &batch, const StepTensors &tensors,
                      const std::vector<HostTensor> &expected,
                      const Sample &sample, CheckResult &result) const;
  double getMaxScore(const StepBatch &batch, const StepTensors &tensors,
                     const Sample &sample) const;

  const Program &program;
  const KVSource &source;
  const Pools &pools;
  uint64_t seed;
};

} // namespace fi::replay

#endif // FI_LIB_REPLAY_CHECKER_H
