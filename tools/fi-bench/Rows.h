//===- Rows.h - what fi-bench measures --------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows by name. A row is a few contenders that are measured in turns, round
// after round, so that a machine that slows down slows all of them down.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TOOLS_FI_BENCH_ROWS_H
#define FI_TOOLS_FI_BENCH_ROWS_H

#include "Baselines.h"
#include "Kernel.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <string>
#include <vector>

namespace fi::bench {

enum class Unit { GFlops, GBytes, Milliseconds, Microseconds };
llvm::StringRef getName(Unit unit);
/// Work and seconds in a unit.
double toUnit(Unit unit, const Timed &timed);
/// Whether more is better.
bool isRate(Unit unit);

struct Contender {
  std::string name;
  std::function<llvm::Expected<Timed>()> run;
};

/// A row ready to be measured. The first contender is what the row is about,
/// the others are what it is compared with.
struct Case {
  std::vector<Contender> contenders;
  /// The first contender's, where it is an attention.
  std::shared_ptr<Kernel> kernel;
};

struct Row {
  std::string name, description;
  Unit unit = Unit::GFlops;
  /// To reach: for a rate at least this ratio to the second contender, for a
  /// time at most this value; 0 for none.
  double goal = 0;
  /// Empty, or why this host cannot run the row.
  std::string missing;
  std::function<llvm::Expected<Case>()> make;
};

/// All rows, in the order in which they run. `toolDirectory` is where fi's
/// tools are.
std::vector<Row> makeRows(const std::string &toolDirectory);

/// Medians of a row's contenders.
struct Measurement {
  std::vector<std::string> names;
  std::vector<double> values;
  int64_t rounds = 0;

  double getRatio(size_t contender) const {
    return values[contender] > 0 ? values[0] / values[contender] : 0;
  }
};

/// Measures in turns for about `seconds`, at least five rounds, after one that
/// does not count.
llvm::Expected<Measurement> measure(const Row &row, const Case &made,
                                    double seconds);

/// Answers requests on standard input, one a line, so that another program can
/// measure in turns with a row (docs/fi-replay.md, bench/cpu):
///
///   run N         N runs; prints their milliseconds as a JSON array
///   save DIR      writes q, k, v, o (and pages) as .npy; prints the sizes as
///   JSON quit
llvm::Error serve(const Row &row);

} // namespace fi::bench

#endif // FI_TOOLS_FI_BENCH_ROWS_H
