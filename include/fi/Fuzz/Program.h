//===- Program.h - random programs of level 1 -------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a legal program, a batch for it and ways to plan it from choices.
// Every program must give the same results on all backends.
//
// An axis is one way in which programs differ: a page size, a mask, the layout
// of a view. To add one:
//
//  1. Write one function `void drawX(Draft &draft, ...)` in the file of
//     lib/Fuzz that it belongs to: Views.cpp (layouts and tables),
//     Attention.cpp (clauses), Regions.cpp (operations of regions), Data.cpp
//     (values), Program.cpp (ops around attentions). It asks
//     `draft.choose("name", n)` and writes text and batch accordingly.
//     Alternative 0 is the simplest, as if the axis were not there: reducing a
//     failure means setting choices to 0.
//  2. Call it where the others of its kind are called. Names are new names, so
//     all other choices of a seed stay what they were.
//  3. Give what a backend refuses by name to that backend's list in Check.h, or
//     let `draft.family` leave it out.
//
// Numbers in a name's brackets belong to a list, "request[2].keys", whose
// elements the reducer takes out; slashes in the name of a region's operation
// are a path in its tree, where the reducer puts operands in the place of
// operations.
//
//===----------------------------------------------------------------------===//

#ifndef FI_FUZZ_PROGRAM_H
#define FI_FUZZ_PROGRAM_H

#include "fi/Fuzz/Choices.h"
#include "fi/Support/Batch.h"

namespace fi::fuzz {

/// For which kind of machine: schedules differ.
enum class Family { CPU, GPU };

/// How a batch is planned: as the options of fi-run.
struct PlanChoice {
  int workers = 1;
  /// Empty, "balanced", "none" or "fixed:N".
  std::string split;
};

struct RandomProgram {
  std::string text;
  /// A batch file of fi-run (docs/fi-run.md).
  std::string batch;
  std::vector<PlanChoice> plans;
  /// Level of LLVM's optimiser on a CPU.
  unsigned optLevel = 0;
  /// Whether what each pass makes is verified.
  bool verifyEach = false;
};

/// The program of these choices, which are recorded.
RandomProgram makeProgram(Choices &choices, Family family);

} // namespace fi::fuzz

#endif // FI_FUZZ_PROGRAM_H
