//===- Executor.h - runs a program on a backend by name ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One interface over everything that can execute a program: the reference
// interpreter, the interpreter of level 2, code compiled in process for this
// CPU, a GPU or an emulated one, a compiled package. A batch is planned once
// and run any number of times, as with the runtime itself. Tools and replays
// know backends only through it: another one is another Executor, and another
// Memory where it does not share the host's.
//
//===----------------------------------------------------------------------===//

#ifndef FI_EXECUTION_EXECUTOR_H
#define FI_EXECUTION_EXECUTOR_H

#include "fi/Execution/Memory.h"
#include "fi/Execution/Signature.h"
#include "fi/Interpreter/Reference.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace fi {

class PassManagers;

enum class SplitChoice { Default, Balanced, Fixed, None };

/// Parses `default`, `balanced`, `fixed:N` or `none`.
llvm::Expected<std::pair<SplitChoice, int64_t>>
parseSplit(llvm::StringRef text);

struct ExecutorOptions {
  /// Threads; 0: as many as this process may use.
  int workers = 0;
  SplitChoice split = SplitChoice::Default;
  /// Keys of a piece where the split is fixed.
  int64_t splitKeys = 0;
  /// Most bytes of the log of a profiled program; 0: as the runtime says.
  int64_t profileBytes = 0;
  /// As of cpu::CompileOptions.
  unsigned optLevel = 2;
  bool sideBySide = true, verifyEach = true;
  PassManagers *passManagers = nullptr;
  /// Reference only: evaluate these rows and heads.
  std::optional<std::vector<RowAndHead>> onlyRows;
};

/// Milliseconds of the last call of each kind.
struct ExecutorTimes {
  double compile = 0, plan = 0, run = 0;
  /// Whether the compiled code came from the cache.
  bool cached = false;
};

class Executor {
public:
  virtual ~Executor();

  /// Makes program `name` of `module` (the only one, if empty) executable on a
  /// backend: `cpu`, `cuda` (or `cuda:1` and so on), `emulated:CHIP`, `level2`
  /// or `reference`. A module may be at level 2: kernels and one
  /// fi_tile.package, which all backends but the reference execute.
  static llvm::Expected<std::unique_ptr<Executor>>
  create(llvm::StringRef backend, mlir::ModuleOp module, llvm::StringRef name,
         const ExecutorOptions &options);
  /// Whether `create` knows a backend of that name, here or not.
  static llvm::Error checkBackend(llvm::StringRef backend);
  /// Opens a compiled package; `backend` is the device of one for GPUs (if
  /// empty, `cuda`).
  static llvm::Expected<std::unique_ptr<Executor>>
  openPackage(llvm::StringRef path, const ExecutorOptions &options,
              llvm::StringRef backend = {});
  /// The backend that is taken where nobody says.
  static llvm::StringRef getDefaultBackend() { return "cpu"; }
  /// Backends for `create` and whether they are here, a line each.
  static std::string describeBackends();

  llvm::StringRef getName() const { return name; }
  const Signature &getSignature() const { return signature; }
  const ExecutorTimes &getTimes() const { return times; }

  /// Other workers and another split from the next plan on; the code is kept.
  virtual void setPlanOptions(int workers, SplitChoice split,
                              int64_t splitKeys) {
    (void)workers, (void)split, (void)splitKeys;
  }
  /// For people: "cpu, 2 workers".
  virtual std::string describe() const { return name; }
  /// Where the tensors of `run` live.
  virtual Memory &getMemory() { return getHostMemory(); }

  /// Plans a batch: all arguments in program order, of which the run arguments
  /// tell shapes only; those of the plan are the host's. Makes ready what a run
  /// needs. Another call plans another batch.
  virtual llvm::Error plan(llvm::ArrayRef<HostValue> arguments) = 0;
  /// Runs the plan on tensors in the backend's memory. `results` must be as
  /// allocateResults makes them, or of the same shapes there.
  virtual llvm::Error run(llvm::ArrayRef<HostValue> arguments,
                          llvm::MutableArrayRef<HostTensor> results) = 0;
  /// Runs the plan on the host's tensors, wherever the backend's are: they are
  /// copied there, and results and pools that the program writes back. Runs
  /// `runs` times in between; the time is then the fastest run's.
  llvm::Error runOnHost(llvm::ArrayRef<HostValue> arguments,
                        llvm::MutableArrayRef<HostTensor> results,
                        unsigned runs = 1);
  /// Tensors of the results' shapes, of the host.
  llvm::Expected<std::vector<HostTensor>>
  allocateResults(llvm::ArrayRef<HostValue> arguments) const;

  /// What the plan chose and why; an error where a backend has no plan.
  virtual bool hasPlans() const { return false; }
  virtual llvm::Expected<std::string> explain();
  /// Who does what, as JSON (docs/planner.md).
  virtual llvm::Expected<std::string> getScheduleJson();
  /// When the warps of the last run began their phases, as a trace
  /// (docs/profiling.md); an error where they did not note it.
  virtual bool hasTimelines() const { return false; }
  virtual llvm::Expected<std::string> getTimelineJson();
  virtual int getWorkers() const { return 1; }
  /// Reference only: visible keys by row and head for each attention, of the
  /// last run.
  virtual llvm::ArrayRef<HostTensor> getVisibleKeys() const { return {}; }
  /// Reference only: ReferenceOptions::transformedScores of the last run.
  virtual llvm::ArrayRef<HostTensor> getTransformedScores() const { return {}; }
  /// Reference only: ReferenceOptions::weightedSums of the last run.
  virtual llvm::ArrayRef<HostTensor> getWeightedSums() const { return {}; }
  /// Reference only: ReferenceOptions::queries of the last run.
  virtual llvm::ArrayRef<ComputedQuery> getQueries() const { return {}; }
  /// Reference only: ReferenceOptions::tolerances of the last run.
  virtual llvm::ArrayRef<HostTensor> getTolerances() const { return {}; }
  /// Reference only: ReferenceOptions::argumentTolerances of the last run.
  virtual llvm::ArrayRef<HostTensor> getArgumentTolerances() const {
    return {};
  }

protected:
  explicit Executor(llvm::StringRef name) : name(name) {}

  std::string name;
  Signature signature;
  ExecutorTimes times;
};

} // namespace fi

#endif // FI_EXECUTION_EXECUTOR_H
