//===- Compare.h - two runs of a program side by side -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what two backends made of a program, element by element, with the
// tolerance that docs/spec.md derives from types, lengths and magnitudes
// (fi/Interpreter/Tolerance.h).
//
//===----------------------------------------------------------------------===//

#ifndef FI_EXECUTION_COMPARE_H
#define FI_EXECUTION_COMPARE_H

#include "fi/Execution/Executor.h"
#include "fi/Support/Batch.h"
#include "fi/Support/Npy.h"

namespace fi {

/// What one backend made of a program.
struct BackendRun {
  std::string backend;
  /// As the run left them: pools and outs may be written.
  std::vector<HostValue> arguments;
  std::vector<HostTensor> results;
  /// For each attention, visible keys by row and head, -1 where not counted;
  /// empty where unknown.
  std::vector<HostTensor> visibleKeys;
  /// For each attention, ReferenceOptions::transformedScores; empty where
  /// unknown.
  std::vector<HostTensor> transformedScores;
  /// For each attention, ReferenceOptions::weightedSums; empty where unknown.
  std::vector<HostTensor> weightedSums;
  /// For each attention, ReferenceOptions::queries; empty where unknown.
  std::vector<ComputedQuery> queries;
  /// For each result, ReferenceOptions::tolerances; empty where unknown.
  std::vector<HostTensor> tolerances;
  /// For each argument, ReferenceOptions::argumentTolerances.
  std::vector<HostTensor> argumentTolerances;
};

struct CompareOptions {
  /// Compare these rows and heads alone.
  std::optional<std::vector<RowAndHead>> onlyRows;
  /// Whether rounding errors may be taken as independent (NUM2): random data.
  bool independent = false;
  /// Whether a device has computed what is compared, whose tensor cores may sum
  /// products of FP8 with few bits (NUM16).
  bool onDevice = false;
};

/// The comparison of one result, or of one argument that the program writes.
struct Comparison {
  std::string name;
  int64_t compared = 0, failed = 0;
  /// Largest difference of all elements.
  double maxError = 0;
  /// The element whose difference is largest in relation to its tolerance.
  llvm::SmallVector<int64_t, 4> worst;
  double error = 0, tolerance = 0, got = 0, expected = 0;

  bool passed() const { return failed == 0; }
};

/// Compares `got` with `expected`. `signature` must come from the program's
/// text.
std::vector<Comparison> compareRuns(const Signature &signature,
                                    const BackendRun &got,
                                    const BackendRun &expected,
                                    const CompareOptions &options);

/// Whether a run writes arguments, so that backends need pools of their own.
bool writesArguments(const Signature &signature);

/// Whether all floating-point data is made here, so that errors of rounding are
/// independent of each other.
bool isRandomData(const Signature &signature, const Batch &batch,
                  llvm::ArrayRef<NamedTensor> tensors);

/// Arguments for one run: as `inputs`, with own memory where the run writes.
std::vector<HostValue> takeArguments(const Signature &signature,
                                     llvm::ArrayRef<HostValue> inputs);

/// Rows and heads of the program's queries, chosen by a seed, without
/// repetition; all of them if there are not more than `count`.
std::vector<RowAndHead> sampleRows(const Signature &signature,
                                   llvm::ArrayRef<HostValue> arguments,
                                   int64_t count, uint64_t seed);

/// Counts the keys that each row sees on a backend, by a run with a query of
/// zeros: all weights are then equal, and the log-sum-exp is the logarithm of
/// the count. Attentions without a plain score or without that result stay at
/// -1. The executor must have planned the batch.
llvm::Expected<std::vector<HostTensor>>
countVisibleKeys(Executor &executor, const Signature &signature,
                 llvm::ArrayRef<HostValue> inputs);

} // namespace fi

#endif // FI_EXECUTION_COMPARE_H
