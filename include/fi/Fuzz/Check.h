//===- Check.h - a random program on several backends -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a program on the reference and on another backend under each of its
// plans, and compares them in the tolerance of docs/spec.md. The work is done
// in children, so that a crash and a hang are findings like others.
//
//===----------------------------------------------------------------------===//

#ifndef FI_FUZZ_CHECK_H
#define FI_FUZZ_CHECK_H

#include "fi/Fuzz/Program.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fi {
class PassManagers;
} // namespace fi

namespace fi::fuzz {

/// What is wrong with a program; empty if nothing is. The kind is one word, and
/// what a reduction keeps.
struct Finding {
  std::string kind, message;
  explicit operator bool() const { return !kind.empty(); }
};

/// Milliseconds of the last check.
struct CheckTimes {
  double parse = 0, reference = 0, compile = 0, run = 0;
};

/// The family of a backend's name.
Family getFamily(llvm::StringRef backend);

/// Of a program that parses; checks its printed forms too. Pass managers are of
/// the context, for the next program.
Finding checkProgram(const RandomProgram &program, llvm::StringRef backend,
                     mlir::MLIRContext &context, CheckTimes *times = nullptr,
                     PassManagers *passManagers = nullptr);

/// What came of a child.
struct Child {
  /// Lines that it reported, each without its end.
  std::vector<std::string> lines;
  /// "", "crash" or "hang", and which signal.
  std::string end, message;
};

/// Does `work` in a child, which reports lines by the function it is given, and
/// has `seconds` from each line to the next.
Child isolate(
    llvm::function_ref<void(llvm::function_ref<void(llvm::StringRef)>)> work,
    double seconds);

/// checkProgram in a child.
Finding checkIsolated(const RandomProgram &program, llvm::StringRef backend,
                      const mlir::DialectRegistry &registry, double seconds);

/// Sets choices to simpler ones as long as `isBad` says that the program still
/// is as wanted, at most `limit` times.
Given reduce(const Given &given, Family family,
             llvm::function_ref<bool(const RandomProgram &)> isBad,
             int64_t limit);

} // namespace fi::fuzz

#endif // FI_FUZZ_CHECK_H
