//===- Report.cpp - a replay's figures for people and programs ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Report.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace llvm;

namespace fi::replay {
namespace {

/// 1234567 as "1,234,567".
std::string group(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t i = int64_t(digits.size()) - 3; i > 0 && digits[i - 1] != '-';
       i -= 3)
    digits.insert(i, ",");
  return digits;
}

double divide(double a, double b) { return b > 0 ? a / b : 0; }

/// Sums over the steps of one kind.
struct KindSum {
  int64_t steps = 0, tokens = 0;
  double milliseconds = 0, bytes = 0, operations = 0;
};

KindSum sumOf(const ReplayReport &report, StepKind kind) {
  KindSum sum;
  for (const StepRecord &step : report.steps) {
    if (step.kind != kind)
      continue;
    ++sum.steps;
    sum.tokens += step.prefillTokens + step.decodeTokens;
    sum.milliseconds += step.runMilliseconds;
    sum.bytes += step.bytes;
    sum.operations += step.operations;
  }
  return sum;
}

constexpr StepKind kKinds[] = {StepKind::Prefill, StepKind::Mixed,
                               StepKind::Decode};

} // namespace

StringRef getName(StepKind kind) {
  switch (kind) {
  case StepKind::Prefill:
    return "prefill";
  case StepKind::Decode:
    return "decode";
  case StepKind::Mixed:
    return "mixed";
  }
  return "";
}

void printReport(raw_ostream &os, const ReplayReport &report) {
  const BatchingCounters &c = report.counters;
  auto line = [&](StringRef name, const Twine &text) {
    os << formatv("  {0,-10} ", name) << text << "\n";
  };
  os << formatv("  {0,-10} {1,7} {2,9} {3,9} {4,10} {5,8} {6,9}\n", "steps",
                "number", "tokens", "run ms", "tokens/s", "GB/s", "GFLOP/s");
  auto row = [&](StringRef name, const KindSum &sum) {
    double seconds = sum.milliseconds / 1000;
    os << formatv("  {0,-10} {1,7} {2,9} {3,9:f0} {4,10:f0} {5,8:f1} "
                  "{6,9:f1}\n",
                  name, sum.steps, group(sum.tokens), sum.milliseconds,
                  divide(sum.tokens, seconds), divide(sum.bytes, seconds) / 1e9,
                  divide(sum.operations, seconds) / 1e9);
  };
  KindSum all;
  for (StepKind kind : kKinds) {
    KindSum sum = sumOf(report, kind);
    row(getName(kind), sum);
    all.steps += sum.steps;
    all.tokens += sum.tokens;
    all.milliseconds += sum.milliseconds;
    all.bytes += sum.bytes;
    all.operations += sum.operations;
  }
  row("all", all);
  os << "\n";
  line("requests", group(c.admitted) + " admitted, " + group(c.completed) +
                       " completed, at most " + group(c.peakInFlight) +
                       " in flight (in " + group(c.fullSteps) +
                       " steps), longest " + group(c.maxKeys) + " keys");
  line("prompts", group(c.prefillTokens) + " tokens, in part in " +
                      group(c.chunkedSteps) + " steps; " +
                      group(c.decodeTokens) + " tokens decoded");
  line("pages", "peak " + group(report.peakPages) + " of " +
                    group(report.poolPages) + " (" +
                    group(report.poolBytes >> 20) + " MiB), " +
                    group(report.allocatedPages) + " given out, " +
                    group(report.reusedPages) + " of them used before");
  int64_t updates = int64_t(report.steps.size()) - 1;
  line("plan",
       formatv("first {0:f0} us, then {1:f1} us on average, at most {2:f1} us",
               1000 * report.firstPlanMilliseconds,
               updates > 0 ? 1000 *
                                 (report.planMilliseconds -
                                  report.firstPlanMilliseconds) /
                                 updates
                           : 0.0,
               1000 * report.maxPlanMilliseconds)
           .str());
  if (report.items > 0)
    line("schedule", group(report.items) + " items, " + group(report.splits) +
                         " of them pieces of split keys");
  if (report.compileMilliseconds > 0)
    line("compile", formatv("{0:f0} ms", report.compileMilliseconds).str());
  if (report.checkedRows > 0)
    line("checked",
         formatv("{0} rows of a head over {1} keys against the reference: "
                 "largest error {2:e1}, of the lse {3:e1}; {4:f1} % of the "
                 "tolerance",
                 group(report.checkedRows), group(report.checkedKeys),
                 report.maxError, report.maxLseError, 100 * report.maxRatio)
             .str());
  line("time", formatv("{0:f1} s in all, {1:f1} s of it in the kernels",
                       report.wallSeconds, report.runMilliseconds / 1000)
                   .str());
}

json::Value toJSON(const ReplayReport &report) {
  const BatchingCounters &c = report.counters;
  json::Array steps;
  for (const StepRecord &s : report.steps)
    steps.push_back(json::Object{{"step", s.index},
                                 {"kind", getName(s.kind)},
                                 {"chunked", s.chunked},
                                 {"requests", s.requests},
                                 {"in_flight", s.inFlight},
                                 {"prefill_tokens", s.prefillTokens},
                                 {"decode_tokens", s.decodeTokens},
                                 {"keys", s.keys},
                                 {"live_pages", s.livePages},
                                 {"plan_ms", s.planMilliseconds},
                                 {"run_ms", s.runMilliseconds},
                                 {"bytes", s.bytes},
                                 {"operations", s.operations},
                                 {"items", s.schedule.items},
                                 {"splits", s.schedule.splits},
                                 {"checked_rows", s.checkedRows},
                                 {"max_error", s.maxError}});
  double seconds = report.runMilliseconds / 1000;
  return json::Object{
      {"replay", 1},
      {"steps", c.steps},
      {"prefill_steps", c.prefillSteps},
      {"decode_steps", c.decodeSteps},
      {"mixed_steps", c.mixedSteps},
      {"chunked_steps", c.chunkedSteps},
      {"full_steps", c.fullSteps},
      {"prefill_tokens", c.prefillTokens},
      {"decode_tokens", c.decodeTokens},
      {"admitted", c.admitted},
      {"completed", c.completed},
      {"peak_in_flight", c.peakInFlight},
      {"max_keys", c.maxKeys},
      {"pool_pages", report.poolPages},
      {"pool_bytes", report.poolBytes},
      {"peak_pages", report.peakPages},
      {"allocated_pages", report.allocatedPages},
      {"reused_pages", report.reusedPages},
      {"compile_ms", report.compileMilliseconds},
      {"first_plan_ms", report.firstPlanMilliseconds},
      {"plan_ms", report.planMilliseconds},
      {"max_plan_ms", report.maxPlanMilliseconds},
      {"run_ms", report.runMilliseconds},
      {"wall_s", report.wallSeconds},
      {"tokens_per_second", divide(c.prefillTokens + c.decodeTokens, seconds)},
      {"gb_per_second", divide(report.bytes, seconds) / 1e9},
      {"gflop_per_second", divide(report.operations, seconds) / 1e9},
      {"items", report.items},
      {"splits", report.splits},
      {"checked_rows", report.checkedRows},
      {"checked_keys", report.checkedKeys},
      {"max_error", report.maxError},
      {"max_lse_error", report.maxLseError},
      {"max_error_to_tolerance", report.maxRatio},
      {"per_step", std::move(steps)}};
}

void Progress::update(const StepRecord &record) {
  tokens += record.prefillTokens + record.decodeTokens;
  checks += record.checkedRows;
  milliseconds += record.runMilliseconds;
  int64_t done = record.index + 1;
  // The length of a whole trace is not known before.
  std::string of = steps > 0 ? " of " + std::to_string(steps) : "";
  std::string text =
      formatv("step {0}{1}: {2} in flight, {3} keys, {4:f0} tokens/s, {5} rows "
              "right",
              done, of, record.inFlight, group(record.keys),
              divide(tokens, milliseconds / 1000), checks)
          .str();
  if (!terminal) {
    int64_t interval = steps > 0 ? std::max<int64_t>(1, steps / kLines) : 100;
    if (done % interval == 0 || done == steps)
      os << "  " << text << "\n";
    return;
  }
  constexpr int64_t width = 24;
  os << "\r\033[K  ";
  if (steps > 0) {
    int64_t filled = width * done / steps;
    os << '[' << std::string(filled, '=') << std::string(width - filled, ' ')
       << "] ";
  }
  os << text;
  os.flush();
  drawn = true;
}

void Progress::finish() {
  if (drawn)
    os << "\r\033[K";
  drawn = false;
}

} // namespace fi::replay
