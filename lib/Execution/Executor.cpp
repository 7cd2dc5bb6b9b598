//===- Executor.cpp - runs a program on a backend by name -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What backends have in common, and the reference backend.
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Executor.h"
#include "Device.h"
#include "ExecutorImpl.h"
#include "fi/Execution/Compare.h"
#include "mlir/IR/Diagnostics.h"
#include <cstring>
#include <limits>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

Executor::~Executor() = default;

static constexpr llvm::StringLiteral kBackends =
    "cpu, cuda, emulated:CHIP, level2 or reference";

std::string Executor::describeBackends() {
  std::string text = "cpu: code compiled for this machine (default)\ncuda: ";
  if (auto device = Device::open("cuda"))
    text += (*device)->describe();
  else
    text += "not here: " + llvm::toString(device.takeError());
  text +=
      "\nemulated:CHIP: code for a GPU, run on the CPU with checks; CHIP is "
      "one of " +
      sm::getNames().str() +
      "\nlevel2: kernels of level 2, interpreted\n"
      "reference: the program, interpreted in double\n";
  return text;
}

Expected<std::pair<SplitChoice, int64_t>> fi::parseSplit(StringRef text) {
  using Result = std::pair<SplitChoice, int64_t>;
  if (text.empty() || text == "default")
    return Result(SplitChoice::Default, 0);
  if (text == "balanced")
    return Result(SplitChoice::Balanced, 0);
  if (text == "none")
    return Result(SplitChoice::None, 0);
  int64_t keys;
  StringRef number = text;
  if (number.consume_front("fixed:") && !number.getAsInteger(10, keys) &&
      keys > 0)
    return Result(SplitChoice::Fixed, keys);
  return createStringError("split: expected balanced, fixed:N with N > 0 keys, "
                           "or none, but got '" +
                           text + "'");
}

Error Executor::runOnHost(llvm::ArrayRef<HostValue> arguments,
                          llvm::MutableArrayRef<HostTensor> results,
                          unsigned runs) {
  auto runAll = [&](llvm::ArrayRef<HostValue> values,
                    llvm::MutableArrayRef<HostTensor> outputs) -> Error {
    double fastest = std::numeric_limits<double>::infinity();
    for (unsigned i = 0; i < runs; ++i) {
      if (Error error = run(values, outputs))
        return error;
      fastest = std::min(fastest, times.run);
    }
    times.run = fastest;
    return Error::success();
  };
  Memory &memory = getMemory();
  if (memory.isHost())
    return runAll(arguments, results);
  std::vector<HostValue> placed(arguments.begin(), arguments.end());
  for (auto [info, value] : llvm::zip(signature.arguments, placed))
    if (!info.isPlan && value.getKind() == HostValue::Kind::Tensor) {
      Expected<HostTensor> there = memory.upload(value.getTensor());
      if (!there)
        return there.takeError();
      value = HostValue(*there);
    }
  std::vector<HostTensor> outputs;
  for (const HostTensor &result : results) {
    Expected<HostTensor> there =
        memory.allocate(result.getType(), result.getShape());
    if (!there)
      return there.takeError();
    outputs.push_back(*there);
  }
  if (Error error = runAll(placed, outputs))
    return error;
  // Back into tensors of the host, which may be strided.
  auto fetch = [&](const HostTensor &from, const HostTensor &to) -> Error {
    Expected<HostTensor> here = memory.download(from);
    if (!here)
      return here.takeError();
    copyTensor(*here, to);
    return Error::success();
  };
  for (auto [from, to] : llvm::zip(outputs, results))
    if (Error error = fetch(from, to))
      return error;
  if (!writesArguments(signature))
    return Error::success();
  for (auto [info, from, to] :
       llvm::zip(signature.arguments, placed, arguments))
    if (info.kind == ArgumentInfo::Kind::Pool && !info.isPlan)
      if (Error error = fetch(from.getTensor(), to.getTensor()))
        return error;
  return Error::success();
}

Expected<std::vector<HostTensor>>
Executor::allocateResults(llvm::ArrayRef<HostValue> arguments) const {
  std::vector<HostTensor> results;
  for (const ResultInfo &info : signature.results) {
    llvm::SmallVector<int64_t, 4> shape = info.shape;
    if (!shape.empty() && shape[0] < 0 && info.rowsOf >= 0) {
      const HostValue &rows = arguments[info.rowsOf];
      shape[0] = rows.getKind() == HostValue::Kind::Tensor
                     ? rows.getTensor().getSize(0)
                     : rows.getInteger();
    }
    for (int64_t size : shape)
      if (size < 0)
        return createStringError("result '" + StringRef(info.name) +
                                 "' has a size that does not follow from the "
                                 "program's arguments");
    results.emplace_back(info.type, shape);
  }
  return results;
}

Expected<std::string> Executor::explain() {
  return createStringError("backend '" + name + "' makes no plan to explain");
}

Expected<std::string> Executor::getScheduleJson() {
  return createStringError("backend '" + name + "' makes no plan to draw");
}

Expected<std::string> Executor::getTimelineJson() {
  return createStringError("backend '" + name +
                           "' has no timeline: expected a GPU, cuda or "
                           "emulated:CHIP, whose kernels note the time");
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

namespace {

class ReferenceExecutor : public Executor {
public:
  ReferenceExecutor(ProgramOp program, Signature programSignature,
                    const ExecutorOptions &options)
      : Executor("reference"), program(program) {
    signature = std::move(programSignature);
    reference.onlyRows = options.onlyRows;
    reference.visibleKeys = &visibleKeys;
    reference.transformedScores = &transformedScores;
    reference.weightedSums = &weightedSums;
    reference.queries = &queries;
    reference.tolerances = &tolerances;
    reference.argumentTolerances = &argumentTolerances;
  }

  std::string describe() const override { return "reference interpreter"; }
  Error plan(llvm::ArrayRef<HostValue>) override { return Error::success(); }

  Error run(llvm::ArrayRef<HostValue> arguments,
            llvm::MutableArrayRef<HostTensor> results) override {
    Stopwatch watch;
    visibleKeys.clear();
    transformedScores.clear();
    auto made = interpretProgram(program, arguments, reference);
    if (!made)
      return made.takeError();
    for (auto [to, from] : llvm::zip(results, *made)) {
      if (to.getShape() != from.getShape() || !from.isContiguous())
        return createStringError("a result has another shape than its type and "
                                 "the rows of the query say");
      std::memcpy(to.getData(), from.getData(),
                  from.getNumElements() * getByteSize(from.getType()));
    }
    times.run = watch.getMilliseconds();
    return Error::success();
  }

  llvm::ArrayRef<HostTensor> getVisibleKeys() const override {
    return visibleKeys;
  }
  llvm::ArrayRef<HostTensor> getTransformedScores() const override {
    return transformedScores;
  }
  llvm::ArrayRef<HostTensor> getWeightedSums() const override {
    return weightedSums;
  }
  llvm::ArrayRef<ComputedQuery> getQueries() const override { return queries; }
  llvm::ArrayRef<HostTensor> getTolerances() const override {
    return tolerances;
  }
  llvm::ArrayRef<HostTensor> getArgumentTolerances() const override {
    return argumentTolerances;
  }

private:
  ProgramOp program;
  ReferenceOptions reference;
  std::vector<HostTensor> visibleKeys, transformedScores, weightedSums,
      tolerances, argumentTolerances;
  std::vector<ComputedQuery> queries;
};

} // namespace

Error Executor::checkBackend(StringRef backend) {
  if (backend == "reference" || backend == "level2" || backend == "cpu")
    return Error::success();
  if (Device::isName(backend))
    return Device::check(backend);
  std::string hint;
  if (StringRef meant = sm::suggest(backend); !meant.empty())
    hint = "; did you mean 'emulated:" + meant.str() + "'?";
  return createStringError("backend: expected " + kBackends + ", but got '" +
                           backend + "'" + hint);
}

Expected<std::unique_ptr<Executor>>
Executor::create(StringRef backend, mlir::ModuleOp module, StringRef name,
                 const ExecutorOptions &options) {
  // The error that is returned repeats the last of them.
  mlir::ScopedDiagnosticHandler quiet(
      module.getContext(), [](mlir::Diagnostic &diagnostic) {
        return mlir::success(diagnostic.getSeverity() ==
                             mlir::DiagnosticSeverity::Error);
      });
  auto signature = fi::getSignature(module, name);
  if (!signature)
    return signature.takeError();
  if (backend == "reference") {
    auto program = findProgram(module, name);
    if (!program)
      return createStringError(
          "backend: the reference executes level 1 only: " +
          llvm::toString(program.takeError()));
    return std::make_unique<ReferenceExecutor>(*program, std::move(*signature),
                                               options);
  }
  if (backend == "level2")
    return createLevel2Executor(module, name, std::move(*signature), options);
  if (backend == "cpu")
    return createCPUExecutor(module, name, std::move(*signature), options);
  if (Device::isName(backend))
    return createDeviceExecutor(backend, module, name, std::move(*signature),
                                options);
  return checkBackend(backend);
}
