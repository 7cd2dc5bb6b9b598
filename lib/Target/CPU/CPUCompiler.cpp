//===- CPUCompiler.cpp - from a program to machine code of this host ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/CPU/CPUCompiler.h"
#include "LLVMCodegen.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/Manifest.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include <chrono>

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

static double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

CompiledProgram::~CompiledProgram() = default;

void *CompiledProgram::lookupCallback(void *context, const char *symbol) {
  return static_cast<CompiledProgram *>(context)->lookup(symbol);
}

namespace {

/// Code in this process.
class JITProgram : public CompiledProgram {
public:
  JITProgram(std::string text, CompileTimes spent,
             std::unique_ptr<llvm::orc::LLJIT> jit)
      : jit(std::move(jit)) {
    manifest = std::move(text);
    times = spent;
  }

  void *lookup(StringRef symbol) const override {
    auto address = jit->lookup(symbol);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void *>();
  }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// The last error, as the caller's sentence; all go on to other handlers.
class LastError {
public:
  explicit LastError(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            text.clear();
            llvm::raw_string_ostream os(text);
            os << diagnostic.getLocation() << ": " << diagnostic.str();
          }
          return failure();
        }) {}

  llvm::Error take(StringRef fallback) {
    return llvm::createStringError(text.empty() ? fallback.str() : text);
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};

} // namespace

llvm::Expected<LoweredProgram>
fi::cpu::lowerProgram(ModuleOp module, StringRef name, bool toLLVM,
                      const CompileOptions &options) {
  MLIRContext *context = module.getContext();
  SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  if (programs.empty())
    return llvm::createStringError("expected a module with an fi.program, but "
                                   "got none");
  if (name.empty() && programs.size() > 1) {
    std::string names;
    for (ProgramOp program : programs)
      names += " '" + program.getSymName().str() + "'";
    return llvm::createStringError("expected the name of one of the programs" +
                                   names);
  }
  LoweredProgram result;
  result.module = module.clone();
  bool found = false;
  for (ProgramOp program :
       llvm::make_early_inc_range(result.module->getOps<ProgramOp>())) {
    if (name.empty() || program.getSymName() == name)
      found = true;
    else
      program.erase();
  }
  if (!found) {
    std::string names;
    for (ProgramOp program : programs)
      names += " '" + program.getSymName().str() + "'";
    return llvm::createStringError("expected one of the programs" + names +
                                   ", but got '" + name + "'");
  }
  if (!(*result.module)->hasAttr(kTargetAttr))
    (*result.module)->setAttr(kTargetAttr, getHostTarget(context));
  auto target = (*result.module)->getAttrOfType<TargetAttr>(kTargetAttr);

  LastError errors(context);
  auto stage = [&](StringRef stageName,
                   llvm::function_ref<void(OpPassManager &)> build) {
    PassManager pm(context, ModuleOp::getOperationName());
    build(pm);
    LogicalResult run = pm.run(*result.module);
    if (succeeded(run) && options.observe)
      options.observe(stageName, *result.module);
    return run;
  };
  TilePipelineOptions tile;
  tile.bf16Dot = target.getBf16Dot();
  LLVMPipelineOptions llvmOptions;
  llvmOptions.nativeBf16 = target.getBf16Dot();
  if (failed(stage("fi", [](OpPassManager &pm) { buildPreparePipeline(pm); })) ||
      failed(stage("fi_tile",
                   [&](OpPassManager &pm) { buildTilePipeline(pm, tile); })) ||
      failed(stage("vector",
                   [](OpPassManager &pm) { buildVectorPipeline(pm); })))
    return errors.take("lowering failed");
  for (tile::PackageOp package :
       llvm::make_early_inc_range(result.module->getOps<tile::PackageOp>())) {
    llvm::raw_string_ostream os(result.manifest);
    printManifest(package, os);
    package.erase();
  }
  if (toLLVM && failed(stage("llvm", [&](OpPassManager &pm) {
        buildLLVMPipeline(pm, llvmOptions);
      })))
    return errors.take("lowering failed");
  return result;
}

llvm::Expected<std::unique_ptr<CompiledProgram>>
CompiledProgram::compile(ModuleOp module, StringRef name,
                         const CompileOptions &options) {
  CompileTimes times;
  double start = now();
  llvm::Expected<LoweredProgram> lowered =
      lowerProgram(module, name, /*toLLVM=*/true, options);
  if (!lowered)
    return lowered.takeError();
  times.lower = now() - start;
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> jit =
      compileInProcess(*lowered->module, options.optLevel, times);
  if (!jit)
    return jit.takeError();
  return std::make_unique<JITProgram>(std::move(lowered->manifest), times,
                                      std::move(*jit));
}
