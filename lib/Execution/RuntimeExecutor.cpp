//===- RuntimeExecutor.cpp - backends that the runtime plans and runs -----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packages that were just compiled for this CPU or consist of interpreted
// kernels, and what is common to all plans and runs by the runtime.
//
//===----------------------------------------------------------------------===//

#include "RuntimeExecutor.h"
#include "fi/Conversion/Passes.h"
#include "fi/Execution/RuntimeValues.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Support/File.h"
#include "fi/Target/Manifest.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Path.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

Error fi::getRuntimeError() {
  return createStringError(Twine(fi_last_error()));
}

std::string RuntimeExecutor::describe() const {
  int workers = getWorkers();
  std::string text = name;
  if (device)
    text += ", " + device->describe();
  if (workers > 0)
    text += ", " + std::to_string(workers) + (device ? " CTA" : " worker") +
            (workers > 1 ? "s" : "");
  return text;
}

Expected<std::string>
RuntimeExecutor::takeText(fi_status (*get)(const fi_plan *, char **)) {
  if (!runtimePlan)
    return createStringError("expected a plan before asking about it");
  char *text = nullptr;
  if (get(runtimePlan, &text) != FI_OK)
    return getRuntimeError();
  std::string result = text;
  fi_string_free(text);
  return result;
}

Expected<std::string> RuntimeExecutor::getTimelineJson() {
  if (!device)
    return Executor::getTimelineJson();
  if (!runtimePlan)
    return createStringError("expected a plan before asking about it");
  char *text = nullptr;
  if (fi_plan_timeline_json(runtimePlan, device->getStream(), &text) != FI_OK)
    return getRuntimeError();
  std::string result = text;
  fi_string_free(text);
  return result;
}

Error RuntimeExecutor::plan(llvm::ArrayRef<HostValue> arguments) {
  llvm::SmallVector<fi_value> planValues, runValues;
  if (Error error =
          toRuntimeValues(signature, arguments, /*isPlan=*/true, planValues))
    return error;
  if (Error error =
          toRuntimeValues(signature, arguments, /*isPlan=*/false, runValues))
    return error;
  llvm::SmallVector<fi_tensor> shapes;
  for (const fi_value &value : runValues) {
    fi_tensor shape = {};
    if (value.kind == FI_VALUE_TENSOR)
      shape = value.as.tensor;
    shapes.push_back(shape);
  }
  fi_plan_options planOptions = {};
  planOptions.struct_size = sizeof(planOptions);
  planOptions.workers = options.workers;
  planOptions.split_policy =
      options.split == SplitChoice::Balanced ? FI_SPLIT_BALANCED
      : options.split == SplitChoice::Fixed  ? FI_SPLIT_FIXED
      : options.split == SplitChoice::None   ? FI_SPLIT_NONE
                                             : FI_SPLIT_DEFAULT;
  planOptions.split_keys = options.splitKeys;
  planOptions.profile_bytes = options.profileBytes;
  planOptions.run_shapes = shapes.empty() ? nullptr : shapes.data();
  if (device) {
    planOptions.device = device->getHandle();
    planOptions.stream = device->getStream();
  }
  // Rows behind the last request are padding; the plan must know of them.
  for (const AttentionInfo &attention : signature.attentions)
    if (attention.query >= 0 && attention.rows >= 0) {
      int64_t rows = arguments[attention.query].getTensor().getSize(0);
      const HostTensor &indptr = arguments[attention.rows].getTensor();
      int64_t requests = indptr.getSize(0) - 1;
      if (requests >= 0 && rows > indptr.getInteger({requests}))
        planOptions.rows = rows;
    }

  Stopwatch watch;
  fi_status status =
      runtimePlan
          ? fi_plan_update(runtimePlan, planValues.data(), planValues.size(),
                           &planOptions)
          : fi_plan_create(package, planValues.data(), planValues.size(),
                           &planOptions, &runtimePlan);
  if (status != FI_OK)
    return getRuntimeError();
  times.plan = watch.getMilliseconds();
  int64_t bytes = fi_plan_workspace_bytes(runtimePlan);
  if (workspace.getRank() == 0 || bytes > workspace.getSize(0)) {
    workspace = HostTensor();
    // Some headroom, so that a growing batch does not allocate at each step.
    auto made = getMemory().allocate(DType::I8, {bytes + bytes / 4});
    if (!made)
      return createStringError("workspace: " +
                               llvm::toString(made.takeError()));
    workspace = std::move(*made);
  }
  return Error::success();
}

Error RuntimeExecutor::run(llvm::ArrayRef<HostValue> arguments,
                           llvm::MutableArrayRef<HostTensor> results) {
  if (!runtimePlan)
    return createStringError("expected a plan before a run");
  llvm::SmallVector<fi_value> values;
  if (Error error =
          toRuntimeValues(signature, arguments, /*isPlan=*/false, values))
    return error;
  llvm::SmallVector<fi_tensor> outputs(results.size());
  for (auto [i, result] : llvm::enumerate(results))
    if (Error error =
            toRuntimeTensor(result, signature.results[i].name, outputs[i]))
      return error;
  if (device) {
    auto time = device->measure([&]() -> Error {
      if (fi_run_device(runtimePlan, fi_plan_generation(runtimePlan),
                        values.data(), values.size(), outputs.data(),
                        outputs.size(), workspace.getData(),
                        workspace.getSize(0), device->getStream()) != FI_OK)
        return getRuntimeError();
      return Error::success();
    });
    if (!time)
      return time.takeError();
    times.run = *time;
    return Error::success();
  }
  Stopwatch watch;
  if (fi_run(runtimePlan, fi_plan_generation(runtimePlan), values.data(),
             values.size(), outputs.data(), outputs.size(), workspace.getData(),
             workspace.getSize(0)) != FI_OK)
    return getRuntimeError();
  times.run = watch.getMilliseconds();
  return kernels ? kernels->takeError() : Error::success();
}

Expected<std::unique_ptr<Executor>>
fi::createCPUExecutor(mlir::ModuleOp module, StringRef name,
                      Signature signature, const ExecutorOptions &options) {
  Stopwatch watch;
  cpu::CompileOptions compileOptions;
  compileOptions.optLevel = options.optLevel;
  compileOptions.sideBySide = options.sideBySide;
  compileOptions.verifyEach = options.verifyEach;
  compileOptions.passManagers = options.passManagers;
  auto compiled = cpu::CompiledProgram::compile(module, name, compileOptions);
  if (!compiled)
    return compiled.takeError();
  auto executor =
      std::make_unique<RuntimeExecutor>("cpu", std::move(signature), options);
  StringRef manifest = (*compiled)->getManifest();
  if (fi_package_from_memory(manifest.data(), manifest.size(),
                             cpu::CompiledProgram::lookupCallback,
                             compiled->get(), &executor->package) != FI_OK)
    return getRuntimeError();
  executor->compiled = std::move(*compiled);
  executor->setCompileTime(watch.getMilliseconds(),
                           executor->compiled->getTimes().cached);
  return executor;
}

/// Takes the program of that name to level 2, as the conversion writes it.
static Error lowerToTiles(mlir::ModuleOp module, ProgramOp chosen) {
  for (ProgramOp program :
       llvm::make_early_inc_range(module.getOps<ProgramOp>()))
    if (program != chosen)
      program.erase();
  mlir::MLIRContext *context = module.getContext();
  // Schedules are for a target; which one makes no difference here.
  if (!module->hasAttr(kTargetAttr))
    module->setAttr(kTargetAttr, cpu::getHostTarget(context));
  std::string message = "lowering to level 2 failed";
  mlir::ScopedDiagnosticHandler handler(
      context, [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error) {
          message.clear();
          llvm::raw_string_ostream(message)
              << diagnostic.getLocation() << ": " << diagnostic.str();
        }
        return mlir::failure();
      });
  mlir::PassManager pm(context, mlir::ModuleOp::getOperationName());
  buildPreparePipeline(pm);
  pm.addPass(createFIToFITile());
  if (mlir::failed(pm.run(module)))
    return createStringError(message);
  return Error::success();
}

Expected<std::unique_ptr<Executor>>
fi::createLevel2Executor(mlir::ModuleOp module, StringRef name,
                         Signature signature, const ExecutorOptions &options) {
  Stopwatch watch;
  auto executor = std::make_unique<RuntimeExecutor>(
      "level2", std::move(signature), options);
  executor->module = module.clone();
  mlir::ModuleOp copy = *executor->module;
  if (!copy.getOps<ProgramOp>().empty()) {
    auto program = findProgram(copy, name);
    if (!program)
      return program.takeError();
    if (Error error = lowerToTiles(copy, *program))
      return std::move(error);
  }
  auto package = findPackage(copy, name);
  if (!package)
    return package.takeError();
  // The host interprets kernels for any target; pieces of tiles are merged by
  // launches of their own then.
  mlir::Builder b(copy.getContext());
  mlir::AttrTypeReplacer withoutCounters;
  withoutCounters.addReplacement(
      [&](mlir::DictionaryAttr dictionary) -> std::optional<mlir::Attribute> {
        mlir::NamedAttrList kept(dictionary);
        if (!kept.erase("counters"))
          return std::nullopt;
        kept.erase("merge_fan_in");
        return kept.getDictionary(copy.getContext());
      });
  mlir::NamedAttrList entries(mlir::cast<mlir::DictionaryAttr>(
      withoutCounters.replace(package->getManifestAttr())));
  entries.set("target", b.getDictionaryAttr(
                            b.getNamedAttr("kind", b.getStringAttr("cpu"))));
  package->setManifestAttr(entries.getDictionary(copy.getContext()));
  auto kernels = tile::InterpretedKernels::create(copy);
  if (!kernels)
    return kernels.takeError();
  executor->kernels = std::move(*kernels);
  std::string manifest;
  llvm::raw_string_ostream os(manifest);
  printManifest(*package, os);
  if (fi_package_from_memory(manifest.data(), manifest.size(),
                             tile::InterpretedKernels::lookupSymbol,
                             executor->kernels.get(),
                             &executor->package) != FI_OK)
    return getRuntimeError();
  executor->setCompileTime(watch.getMilliseconds(), /*cached=*/false);
  return executor;
}
