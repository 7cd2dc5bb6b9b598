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
double Checker::getMaxScore(const StepBatch &batch, const StepTensors &tensors,
                            const Sample &sample) const {
  // |q| |k| bounds each partial sum of a score, which |q . k| does not.
  auto getNorm = [&](const char *data, DType type) {
    double sum = 0;
    for (int64_t d = 0; d < program.getDim(); ++d) {
      double x = readFloat(data + d * getByteSize(type), type);
      sum += x * x;
    }
    return std::sqrt(sum);
  };
  const BatchEntry &entry = batch.entries[sample.entry];
  int64_t group = program.getQueryHeads() / program.getKVHeads();
  int64_t offset =
      sample.head / group * program.getDim() * getByteSize(program.getKVType());
  double longest = 0;
  for (int64_t token = 0; token < entry.getKeys(); ++token)
    longest =
        std::max(longest, getNorm(source.getKeys(entry.request, token) + offset,
                                  program.getKVType()));
  const void *query = tensors.query.at({sample.row, sample.head, 0});
  return std::fabs(program.getScale()) * longest *
         getNorm(static_cast<const char *>(query), program.getQueryType());
}

Checker::Sample Checker::choose(const StepBatch &batch, int64_t number) const {
  Random random(deriveSeed(seed + batch.index, "check") + number);
  Sample sample;
  sample.entry = random.below(batch.entries.size());
  // Every other one is of a prompt where there is one: its rows are the harder
  // ones, but few requests.
  if (number % 2 && batch.entries.back().prefill)
    while (!batch.entries[sample.entry].prefill)
      sample.entry = random.below(batch.entries.size());
  sample.token = random.below(batch.entries[sample.entry].tokens);
  sample.row = batch.rows[sample.entry] + sample.token;
  sample.head = random.below(program.getQueryHeads());
  return sample;
}

Expected<CheckResult> Checker::check(const StepBatch &batch,
                                     const StepTensors &tensors,
                                     int64_t count) const {
  CheckResult result;
  if (count == 0)
    return result;
  std::vector<Sample> samples;
  std::vector<std::pair<int64_t, int64_t>> only;
  for (int64_t number = 0; number < count; ++number) {
    samples.push_back(choose(batch, number));
    only.push_back({samples.back().row, samples.back().head});
    // Before the reference, which appends the new keys and values once more.
    if (Error error = source.verify(batch, samples.back().entry, pools))
      return std::move(error);
  }
  ReferenceOptions options;
  options.onlyRows = only;
  auto expected = interpretProgram(
      program.getOp(), makeArguments(program, batch, tensors), options);
  if (!expected)
    return createStringError(inconvertibleErrorCode(),
                             "step " + Twine(batch.index) + ": reference: " +
                                 toString(expected.takeError()));
  for (const Sample &sample : samples)
    if (Error error = compare(batch, tensors, *expected, sample, result))
      return std::move(error);
  return result;
}

Error Checker::compare(const StepBatch &batch, const StepTensors &tensors,
                       const std::vector<HostTensor> &expected,
                       const Sample &sample, CheckResult &result) const {
  const BatchEntry &entry = batch.entries[sample.entry];
  ErrorTerms terms;
  terms.in = program.getKVType();
  terms.out = program.getOutputType();
  terms.maxScore = getMaxScore(batch, tensors, sample);
  terms.dim = program.getDim();
  terms.keys = entry.context + sample.token + 1;
  terms.maxValue = source.getMaxValue();
  terms.independent = true; // the data is random
  ++result.rows;
  result.keys += terms.keys;

  auto compareOne = [&](const Twine &what, double got, double want,
                        double tolerance, double &worst) -> Error {
    // An empty row is 0 / -inf on both sides; NaN is never right.
    double error = got == want ? 0 : std::fabs(got - want);
    if (!(error <= tolerance))
      return createStringError(
          inconvertibleErrorCode(),
          formatv(
              "step {0}: request {1}, row {2} at position {3}, head {4}: "
              "expected {5} {6:e9} as the reference has it, but got {7:e9}; "
              "they differ by {8:e2}, the tolerance is {9:e2}",
              batch.index, entry.request, sample.row,
              entry.context + sample.token, sample.head, what.str(), want, got,
              error, tolerance));
    worst = std::max(worst, error);
    if (error > 0)
      result.ratio = std::max(result.ratio, error / tolerance);
    return Error::success();
  };
  double tolerance = outputTolerance(terms);
  for (int64_t d = 0; d < program.getDim(); ++d)
    if (Error error =
            compareOne("output " + Twine(d),
                       tensors.output.getFloat({sample.row, sample.head, d}),
                       expected[0].getFloat({sample.row, sample.head, d}),
                       tolerance, result.error))
      return error;
  if (!program.hasLse())
    return Error::success();
  return compareOne("lse", tensors.lse.getFloat({sample.row, sample.head}),
                    expected[1].getFloat({sample.row, sample.head}),
                    statisticTolerance(terms), result.lseError);
}

} // namespace fi::replay
