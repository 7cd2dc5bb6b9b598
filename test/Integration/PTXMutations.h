//===- PTXMutations.h - kernels of fi, broken one by one --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the PTX of a program, which is right, breaks one statement at a time
// and looks at what the emulator and the comparison with the reference say.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_PTXMUTATIONS_H
#define FI_TEST_INTEGRATION_PTXMUTATIONS_H

#include "EmulatedExecutor.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <functional>
#include <gtest/gtest-spi.h>

namespace fi::test {

/// Where a statement is, from its first character to behind its semicolon.
struct Statement {
  size_t begin, end;
};

/// An address, which ends at `end`, some bytes further.
inline std::string shift(llvm::StringRef statement, size_t end, int64_t bytes) {
  llvm::StringRef head = statement.substr(0, end), tail = statement.substr(end);
  size_t plus = head.rfind('+'), open = head.rfind('[');
  if (plus != llvm::StringRef::npos && plus > open) {
    int64_t was = 0;
    head.substr(plus + 1).getAsInteger(10, was);
    bytes += was;
    head = head.substr(0, plus);
  }
  return (head + "+" + llvm::Twine(bytes) + tail).str();
}

inline std::string nothing(llvm::StringRef) { return ""; }

class PTXMutations : public testing::Test {
protected:
  /// What is as it was made must run.
  void compile(
      std::string newText, std::vector<Request> newRequests, Planned newPlan,
      std::function<void(Case &)> newPrepare = [](Case &) {}) {
    source = std::move(newText);
    requests = std::move(newRequests);
    plan = newPlan;
    prepare = std::move(newPrepare);
    Case right(source, requests);
    prepare(right);
    right
        .on([&](mlir::ModuleOp module)
                -> llvm::Expected<std::unique_ptr<Executor>> {
          auto made = compileForEmulator(module);
          if (!made)
            return made.takeError();
          compiled = std::move(*made);
          return loadIntoEmulator(compiled);
        })
        .check({plan});
    ASSERT_TRUE(right.isGood());
    ptx = compiled.ptx;
    ASSERT_FALSE(ptx.empty());
  }

  /// Statements that begin with `what`, and have no `without` if it is given.
  std::vector<Statement> find(llvm::StringRef what,
                              llvm::StringRef without = {}) {
    std::vector<Statement> found;
    for (size_t at = 0; (at = ptx.find(what.str(), at)) != std::string::npos;) {
      size_t end = ptx.find(';', at) + 1;
      llvm::StringRef statement = llvm::StringRef(ptx).slice(at, end);
      if (without.empty() || !statement.contains(without))
        found.push_back({at, end});
      at = end;
    }
    return found;
  }

  /// What a run of changed PTX says; empty if results are right.
  std::string failureOf(const std::string &changed) {
    gpu::CompiledPackage broken = compiled;
    broken.ptx = changed;
    testing::TestPartResultArray failures;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::
              INTERCEPT_ONLY_CURRENT_THREAD,
          &failures);
      Case test(source, requests);
      prepare(test);
      test.on([&](mlir::ModuleOp) { return loadIntoEmulator(broken); })
          .check({plan});
    }
    std::string all;
    for (int i = 0; i < failures.size(); ++i)
      all += failures.GetTestPartResult(i).message();
    return all;
  }

  /// Breaks statements with `what`, each on its own, by `change`: all, or as
  /// many as a test has time for. `see` takes each statement with what was said
  /// of it; returns how many there are in all.
  size_t breakEach(
      llvm::StringRef what,
      llvm::function_ref<std::string(llvm::StringRef)> change,
      llvm::function_ref<void(const std::string &, const std::string &)> see,
      llvm::StringRef without = {}) {
    std::vector<Statement> all = find(what, without);
    for (size_t k = 0, step = all.size() / 16 + 1; k < all.size(); k += step) {
      Statement s = all[k];
      std::string statement = ptx.substr(s.begin, s.end - s.begin);
      std::string changed = ptx;
      changed.replace(s.begin, s.end - s.begin, change(statement));
      size_t line =
          1 + size_t(std::count(ptx.begin(), ptx.begin() + s.begin, '\n'));
      see(statement + " at PTX line " + std::to_string(line),
          failureOf(changed));
    }
    return all.size();
  }

  /// At least `least` statements must be reported in one of these words.
  void expectReports(llvm::StringRef what, unsigned least,
                     llvm::ArrayRef<const char *> words,
                     llvm::function_ref<std::string(llvm::StringRef)> change,
                     bool mayBeWrong = false) {
    unsigned reported = 0;
    size_t all = breakEach(
        what, change,
        [&](const std::string &statement, const std::string &failure) {
          if (failure.empty())
            return;
          SCOPED_TRACE(statement + ": " + failure);
          bool named = std::any_of(words.begin(), words.end(), [&](auto *word) {
            return llvm::StringRef(failure).contains(word);
          });
          reported += named;
          EXPECT_TRUE(named || mayBeWrong);
          // The line of the PTX, and of the program that it was made of.
          if (named)
            EXPECT_TRUE(llvm::StringRef(failure).contains("at PTX line ") &&
                        llvm::StringRef(failure).contains("\n    from "));
        });
    EXPECT_GE(reported, least) << what.str() << ", of " << all;
  }

  /// All statements but `harmless` must be reported, or give other results; and
  /// there are some.
  void expectFailures(llvm::StringRef what, unsigned harmless,
                      llvm::function_ref<std::string(llvm::StringRef)> change,
                      llvm::StringRef without = {}) {
    unsigned broken = 0, silent = 0;
    std::string unseen;
    breakEach(
        what, change,
        [&](const std::string &statement, const std::string &failure) {
          ++broken;
          if (failure.empty()) {
            ++silent;
            unseen += "\n" + statement;
          }
        },
        without);
    EXPECT_GT(broken, silent) << what.str();
    EXPECT_LE(silent, harmless) << what.str() << ", of " << broken << unseen;
  }

  std::string source;
  std::vector<Request> requests;
  Planned plan;
  std::function<void(Case &)> prepare;
  gpu::CompiledPackage compiled;
  std::string ptx;
};

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_PTXMUTATIONS_H
