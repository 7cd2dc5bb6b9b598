//===- Check.cpp - a random program on several backends -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Check.h"
#include "fi/Execution/Compare.h"
#include "fi/Execution/Executor.h"
#include "fi/Execution/Inputs.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>
#include <cstring>

using namespace fi;
using namespace fi::fuzz;
using llvm::StringRef;

namespace {

class Stopwatch {
public:
  /// Milliseconds since the last call.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double passed = std::chrono::duration<double, std::milli>(now - at).count();
    at = now;
    return passed;
  }

private:
  std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
};

class Checker {
public:
  Checker(const RandomProgram &program, StringRef backend,
          mlir::MLIRContext &context, CheckTimes &times,
          PassManagers *passManagers)
      : program(program), backend(backend), context(context), times(times),
        passManagers(passManagers) {}

  Finding check();

private:
  mlir::OwningOpRef<mlir::ModuleOp> parse(StringRef text) {
    // The message without the text around it.
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) {
                                            if (diagnosis.empty())
                                              diagnosis = diagnostic.str();
                                            return mlir::success();
                                          });
    return mlir::parseSourceString<mlir::ModuleOp>(
        text, mlir::ParserConfig(&context));
  }
  Finding checkForms(mlir::ModuleOp module);
  Finding execute(Executor &executor, BackendRun &run, StringRef what);
  Finding compare(Executor &executor, const BackendRun &expected,
                  const PlanChoice &plan);
  Finding failed(StringRef kind, llvm::Error error, StringRef what = "") {
    std::string message = llvm::toString(std::move(error));
    return {kind.str(), what.empty() ? message : (what + ": " + message).str()};
  }

  const RandomProgram &program;
  StringRef backend;
  mlir::MLIRContext &context;
  CheckTimes &times;
  PassManagers *passManagers;
  std::string diagnosis;
  Signature signature;
  std::vector<HostValue> inputs;
  CompareOptions options;
};

/// The program's text and its generic form come back to the same text.
Finding Checker::checkForms(mlir::ModuleOp module) {
  auto print = [](mlir::ModuleOp from, bool isGeneric) {
    std::string text;
    llvm::raw_string_ostream os(text);
    mlir::OpPrintingFlags flags;
    from->print(os, isGeneric ? flags.printGenericOpForm() : flags);
    return text;
  };
  std::string text = print(module, false);
  for (bool isGeneric : {false, true}) {
    auto again = parse(isGeneric ? print(module, true) : text);
    if (!again)
      return {"form", "what is printed does not parse: " + diagnosis};
    if (print(*again, false) != text)
      return {"form",
              std::string(isGeneric ? "the generic form" : "what is printed") +
                  " parses to another program"};
  }
  return {};
}

Finding Checker::execute(Executor &executor, BackendRun &run, StringRef what) {
  auto results = executor.allocateResults(run.arguments);
  if (!results)
    return failed("results", results.takeError(), what);
  run.results = std::move(*results);
  // What is not written must show.
  for (HostTensor &result : run.results)
    std::memset(result.getData(), 0xff,
                result.getNumElements() * getByteSize(result.getType()));
  if (llvm::Error error = executor.runOnHost(run.arguments, run.results))
    return failed("run", std::move(error), what);
  return {};
}

static bool hasEqualBits(const HostTensor &a, const HostTensor &b) {
  return a.getShape() == b.getShape() &&
         std::memcmp(a.getData(), b.getData(),
                     a.getNumElements() * getByteSize(a.getType())) == 0;
}

Finding Checker::compare(Executor &executor, const BackendRun &expected,
                         const PlanChoice &plan) {
  std::string how = std::to_string(plan.workers) + " workers";
  if (!plan.split.empty())
    how += ", split " + plan.split;
  auto split = parseSplit(plan.split);
  if (!split)
    return failed("plan", split.takeError(), how);
  executor.setPlanOptions(plan.workers, split->first, split->second);
  BackendRun got;
  got.backend = backend.str();
  got.arguments = takeArguments(signature, inputs);
  if (llvm::Error error = executor.plan(got.arguments))
    return failed("plan", std::move(error), how);
  if (Finding finding = execute(executor, got, how))
    return finding;
  for (const Comparison &one : compareRuns(signature, got, expected, options))
    if (!one.passed()) {
      std::string text;
      llvm::raw_string_ostream(text)
          << how << ": " << one.name << ": " << one.failed << " of "
          << one.compared << " differ, worst " << formatShape(one.worst)
          << llvm::format(": got %.9g, expected %.9g, difference %.3g, allowed "
                          "%.3g",
                          one.got, one.expected, one.error, one.tolerance);
      return {"differs", text};
    }
  BackendRun again;
  again.arguments = takeArguments(signature, inputs);
  if (Finding finding = execute(executor, again, how))
    return finding;
  for (auto [first, second] : llvm::zip(got.results, again.results))
    if (!hasEqualBits(first, second))
      return {"bits", how + ": a second run has other bits"};
  return {};
}

Finding Checker::check() {
  Stopwatch watch;
  auto module = parse(program.text);
  if (!module)
    return {"parse", diagnosis};
  if (Finding finding = checkForms(*module))
    return finding;
  auto batch = parseBatchJson(program.batch, "batch.json");
  if (!batch)
    return failed("batch", batch.takeError());
  auto reference = Executor::create("reference", *module, "", {});
  if (!reference)
    return failed("reference", reference.takeError());
  signature = (*reference)->getSignature();
  auto values = makeInputs(signature, *batch, InputOptions());
  if (!values)
    return failed("inputs", values.takeError());
  inputs = std::move(*values);
  options.independent = isRandomData(signature, *batch, {});
  times.parse = watch.lap();

  BackendRun expected;
  expected.backend = "reference";
  expected.arguments = takeArguments(signature, inputs);
  if (Finding finding = execute(**reference, expected, "reference"))
    return {"reference", finding.message};
  expected.visibleKeys = (*reference)->getVisibleKeys().vec();
  expected.transformedScores = (*reference)->getTransformedScores().vec();
  expected.weightedSums = (*reference)->getWeightedSums().vec();
  expected.queries = (*reference)->getQueries().vec();
  expected.tolerances = (*reference)->getTolerances().vec();
  expected.argumentTolerances = (*reference)->getArgumentTolerances().vec();
  times.reference = watch.lap();

  ExecutorOptions executorOptions;
  executorOptions.optLevel = program.optLevel;
  // Other programs have the other processors.
  executorOptions.sideBySide = false;
  executorOptions.verifyEach = program.verifyEach;
  executorOptions.passManagers = passManagers;
  auto executor = Executor::create(backend, *module, "", executorOptions);
  times.compile = watch.lap();
  if (!executor)
    return failed("compile", executor.takeError());
  for (const PlanChoice &plan : program.plans)
    if (Finding finding = compare(**executor, expected, plan))
      return finding;
  times.run = watch.lap();
  return {};
}

} // namespace

Family fi::fuzz::getFamily(StringRef backend) {
  return backend.starts_with("emulated") || backend.starts_with("cuda")
             ? Family::GPU
             : Family::CPU;
}

Finding fi::fuzz::checkProgram(const RandomProgram &program, StringRef backend,
                               mlir::MLIRContext &context, CheckTimes *times,
                               PassManagers *passManagers) {
  CheckTimes own;
  return Checker(program, backend, context, times ? *times : own, passManagers)
      .check();
}
