//===- Checker.cpp - compare rows of a step with the reference ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checker.h"
#include "fi/Interpreter/Tolerance.h"
#include "fi/Support/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace fi::replay {
double Checker::getMaxScore(const StepBatch &batch, unsigned index, int64_t row,
                            int64_t head, const StepTensors &tensors) const {
  // |q| |k| bounds each partial sum of a score, which |q . k| does not.
  auto getNorm = [&](const char *data, DType type) {
    double sum = 0;
    for (int64_t d = 0; d < program.getDim(); ++d) {
      double x = readFloat(data + d * getByteSize(type), type);
      sum += x * x;
    }
    return std::sqrt(sum);
  };
  const BatchEntry &entry = batch.entries[index];
  int64_t group = program.getQueryHeads() / program.getKVHeads();
  int64_t headBytes = program.getDim() * getByteSize(program.getKVType());
  double longest = 0;
  for (int64_t token = 0; token < entry.getKeys(); ++token)
    longest = std::max(longest, getNorm(source.getKeys(entry.request, token) +
                                            head / group * headBytes,
                                        program.getKVType()));
  const char *query =
      static_cast<const char *>(tensors.query.at({row, head, 0}));
  return getNorm(query, program.getQueryType()) * longest;
}

Expected<CheckResult> Checker::check(const StepBatch &batch,
                                     const StepTensors &tensors,
                                     int64_t number) const {
  Random random(deriveSeed(seed + batch.index, "check") + number);
  // Every other check is of a prompt where there is one: its rows are the
  // harder ones, but few requests.
  unsigned index = random.below(batch.entries.size());
  if (number % 2 && batch.entries.back().prefill)
    while (!batch.entries[index].prefill)
      index = random.below(batch.entries.size());
  const BatchEntry &entry = batch.entries[index];
  int64_t token = random.below(entry.tokens);
  int64_t head = random.below(program.getQueryHeads());
  int64_t row = batch.rows[index] + token;

  if (Error error = source.verify(batch, index, pools))
    return std::move(error);
  std::vector<std::pair<int64_t, int64_t>> only = {{row, head}};
  auto expected = interpretStep(program, batch, tensors, &only);
  if (!expected)
    return createStringError(inconvertibleErrorCode(),
                             "step " + Twine(batch.index) + ": reference: " +
                                 toString(expected.takeError()));

  CheckResult result;
  result.keys = entry.context + token + 1;
  ErrorTerms terms;
  terms.in = program.getKVType();
  terms.out = program.getOutputType();
  terms.maxScore = getMaxScore(batch, index, row, head, tensors) *
                   std::fabs(program.getScale());
  terms.dim = program.getDim();
  terms.keys = result.keys;
  terms.maxValue = source.getMaxValue();
  terms.independent = true; // the data is random

  auto compare = [&](StringRef what, double got, double want, double tolerance,
                     double &worst) -> Error {
    // An empty row is 0 / -inf on both sides; NaN is never right.
    double error = got == want ? 0 : std::fabs(got - want);
    if (!(error <= tolerance))
      return createStringError(
          inconvertibleErrorCode(),
          formatv(
              "step {0}: request {1}, row {2} at position {3}, head {4}: "
              "expected {5} {6:e9} as the reference has it, but got {7:e9}; "
              "they differ by {8:e2}, the tolerance is {9:e2}",
              batch.index, entry.request, row, entry.context + token, head,
              what, want, got, error, tolerance));
    worst = std::max(worst, error);
    if (error > 0)
      result.ratio = std::max(result.ratio, error / tolerance);
    return Error::success();
  };
  double tolerance = outputTolerance(terms);
  for (int64_t d = 0; d < program.getDim(); ++d)
    if (Error error = compare(("output " + Twine(d)).str(),
                              tensors.output.getFloat({row, head, d}),
                              (*expected)[0].getFloat({row, head, d}),
                              tolerance, result.error))
      return std::move(error);
  if (program.hasLse())
    if (Error error = compare("lse", tensors.lse.getFloat({row, head}),
                              (*expected)[1].getFloat({row, head}),
                              statisticTolerance(terms), result.lseError))
      return std::move(error);
  return result;
}

} // namespace fi::replay
