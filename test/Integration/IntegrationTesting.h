//===- IntegrationTesting.h - backends side by side in tests ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the text of programs, compiles them for this CPU, and compares what
// they compute on seeded batches with the reference interpreter, under every
// way of splitting keys. Tolerances are those of docs/spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_INTEGRATIONTESTING_H
#define FI_TEST_INTEGRATION_INTEGRATIONTESTING_H

#include "fi/Execution/Compare.h"
#include "fi/Execution/Executor.h"
#include "fi/Execution/Inputs.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "gtest/gtest.h"
#include <functional>

namespace fi::test {

/// The text of a program `p` with one attention: plan arguments qo and the
/// view's tables; run arguments q, k and v (or kv).
struct AttentionText {
  enum class View { Paged, Dense, Ragged, Contiguous, Bsr };
  View view = View::Paged;
  bool isHND = true, isFused = false, isPageDynamic = false;
  bool hasTwoTables = false;
  /// Columns of tails: then a paged or dense view is of latents of `valueDim`,
  /// one KV head. The query has all columns, or is two operands, q and r.
  int64_t tailDim = 0;
  bool isQuerySplit = false;
  /// Of a block-sparse view.
  int64_t blockRows = 16, blockColumns = 64;
  int64_t page = 16;
  std::string index = "i32";
  std::string query = "f32", keys = "f32", values = "f32", output = "f32";
  /// What shares a scale, "tensor" and so on: keys (or values) are codes of
  /// type `keys` (or `values`) then, with a run argument `ks` (or `vs`).
  std::string keyScales, valueScales;
  int64_t kvHeads = 2, group = 2, keyDim = 64, valueDim = 64;
  bool hasStatistic = true, hasOrigin = false, hasPositions = false;
  /// Empty: 1 / sqrt(keyDim).
  std::string scale;
  /// More arguments, each with a comma before it.
  std::string planArguments, runArguments;
  /// What stands between the scale and the types.
  std::string clauses;
  /// The module's fi.target; empty: this machine's.
  std::string target;

  std::string get() const;
};

/// Text of a score region with these operations; `captures` with a comma before
/// each.
std::string scoreRegion(const std::string &operations);
std::string maskRegion(const std::string &operations);

/// Operations of masks: every third key, and at most 90 back; causal for even
/// requests, and 9 back for odd ones.
extern const char *const kDilatedMask, *const kAlternatingMask;

/// How a batch is planned.
struct Planned {
  int workers;
  SplitChoice split = SplitChoice::Default;
  int64_t keys = 0;
};
std::ostream &operator<<(std::ostream &os, const Planned &planned);

/// Split in every way.
llvm::ArrayRef<Planned> everyPlan();
/// Not split, and split: for what is emulated, which takes its time.
llvm::ArrayRef<Planned> fewPlans();

struct Request {
  int64_t rows, keys;
};
/// Decode, chunks and whole prompts, more rows than keys, requests without rows
/// or keys.
std::vector<Request> mixedBatch();
/// Fewer of them, also for what is emulated.
std::vector<Request> smallBatch();

/// One program and one batch.
class Case {
public:
  explicit Case(const std::string &text, std::vector<Request> requests,
                uint64_t seed = 1);
  ~Case();

  /// Gives an argument its value. What is not given is made from the batch.
  Case &give(const std::string &name, const HostTensor &tensor);
  Case &giveNumber(const std::string &name, double value);
  Case &giveInteger(const std::string &name, int64_t value);
  /// Keys of a page where the program leaves it open.
  Case &setPageSize(int64_t keys) {
    batch.pageSize = keys;
    return *this;
  }
  /// Changes the made inputs before anything runs.
  Case &adjust(
      std::function<void(const Signature &, std::vector<HostValue> &)> change);
  /// Whether rounding errors may be taken as independent (NUM2).
  Case &isRandom(bool value) {
    independent = value;
    return *this;
  }

  /// Level of LLVM's optimiser: 3, as it is used, if not said. Large grids take
  /// 0, which halves their time: what differs in them is our own lowering.
  Case &setOptLevel(unsigned level) {
    optLevel = level;
    return *this;
  }

  /// Compiles by other means than for this CPU.
  using Maker =
      std::function<llvm::Expected<std::unique_ptr<Executor>>(mlir::ModuleOp)>;
  Case &on(Maker with) {
    maker = std::move(with);
    return *this;
  }

  /// Compares with the reference under each plan, twice each with equal bits.
  void check(llvm::ArrayRef<Planned> plans = everyPlan());
  /// Whether the comparison lets these results of a program that writes no
  /// arguments through.
  bool agrees(std::vector<HostTensor> results);
  /// The results on the CPU under one plan.
  std::vector<HostTensor> runOnCPU(Planned planned);
  std::vector<HostTensor> runReference();
  /// What compiling, planning or running says that must fail.
  std::string getError(Planned planned = {2});
  /// The work lists of a plan, as JSON.
  std::string getSchedule(Planned planned);

  bool isGood() const { return good; }

private:
  bool prepare();
  bool compile();
  bool runExpected(BackendRun &expected);
  bool execute(Executor &executor, llvm::ArrayRef<HostValue> arguments,
               std::vector<HostTensor> &results, const std::string &what);

  std::string text;
  Batch batch;
  InputOptions inputOptions;
  std::function<void(const Signature &, std::vector<HostValue> &)> change;
  bool independent = true, prepared = false, good = true;
  unsigned optLevel = 3;
  Maker maker;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Executor> reference, cpu;
  std::vector<HostValue> inputs;
};

/// Values for a program that merges attention over keys that all requests share
/// with that over keys of their own, of the tables all, qo, pi, pp, pl
/// (shared), si, sp, sl and first (own): a prefix of 90 keys in pages 0..11;
/// suffixes of 9, 0, 30 and 1 keys behind.
Case &giveCascade(Case &test);

/// The context of all tests.
mlir::MLIRContext &getContext();

HostTensor integers(llvm::ArrayRef<int64_t> values, DType type = DType::I32);
HostTensor floats(llvm::ArrayRef<double> values, DType type = DType::F32);
/// Whether two tensors have equal bits, NaN and all.
bool hasEqualBits(const HostTensor &a, const HostTensor &b);

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_INTEGRATIONTESTING_H
