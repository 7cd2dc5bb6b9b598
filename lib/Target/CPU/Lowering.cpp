//===- Lowering.cpp - from a program to the llvm dialect ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "Machine.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/Manifest.h"
#include "fi/Target/SelectProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

ParallelContext::ParallelContext(MLIRContext *context)
    : context(context), isEnabledHere(!context->isMultithreadingEnabled()) {
  if (isEnabledHere)
    context->enableMultithreading();
}

ParallelContext::~ParallelContext() {
  if (isEnabledHere)
    context->disableMultithreading();
}

static llvm::Error runStage(ModuleOp module, StringRef name,
                            const CompileOptions &options,
                            llvm::function_ref<void(OpPassManager &)> build) {
  if (llvm::Error error =
          runPasses(module, build, options.verifyEach, options.passManagers))
    return error;
  if (options.observe)
    options.observe(name, module);
  return llvm::Error::success();
}

llvm::Error Lowering::prepare(ModuleOp original, StringRef name) {
  MLIRContext *context = original.getContext();
  auto selected = selectProgram(original, name);
  if (!selected)
    return selected.takeError();
  module = std::move(*selected);
  Attribute attr = (*module)->getAttr(kTargetAttr);
  if (!attr) {
    attr = getHostTarget(context);
    (*module)->setAttr(kTargetAttr, attr);
  }
  // The dialect's verifier lets nothing else through.
  target = cast<TargetAttr>(attr);
  if (!target.isCPU()) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "expected target 'cpu' for code of this host, but got " << target;
    return llvm::createStringError(text);
  }
  if (module->getOps<ProgramOp>().empty())
    return llvm::Error::success();
  return runStage(*module, "fi", options,
                  [](OpPassManager &pm) { buildPreparePipeline(pm); });
}

llvm::Error Lowering::lower(Level level, bool split) {
  // Nothing is taken apart that someone looks at.
  split &= level == Level::LLVM && !options.observe;
  TilePipelineOptions tileOptions;
  setOptions(target, tileOptions);
  LLVMPipelineOptions llvmOptions;
  setOptions(target, llvmOptions);
  if (!module->getOps<ProgramOp>().empty())
    if (llvm::Error error =
            runStage(*module, "fi_tile", options, [&](OpPassManager &pm) {
              buildTilePipeline(pm, tileOptions);
            }))
      return error;
  if (!module->getOps<tile::KernelOp>().empty())
    if (llvm::Error error =
            runStage(*module, "vector", options, [&](OpPassManager &pm) {
              if (split)
                pm.addPass(createFITileToVector());
              else
                buildVectorPipeline(pm);
            }))
      return error;
  if (llvm::Error error = takeManifest())
    return error;
  if (level != Level::LLVM)
    return llvm::Error::success();
  if (!split) {
    if (module->getOps<func::FuncOp>().empty())
      return llvm::Error::success();
    return runStage(*module, "llvm", options, [&](OpPassManager &pm) {
      buildLLVMPipeline(pm, llvmOptions);
    });
  }
  splitKernels();
  return runStage(*module, "llvm", options, [&](OpPassManager &pm) {
    OpPassManager &kernels = pm.nest<ModuleOp>();
    buildVectorCleanupPipeline(kernels);
    buildLLVMPipeline(kernels, llvmOptions);
  });
}

/// Takes the manifest out of the module, with what the code needs of a machine.
llvm::Error Lowering::takeManifest() {
  tile::PackageOp package = *module->getOps<tile::PackageOp>().begin();
  Builder b(module->getContext());
  NamedAttrList entries(package.getManifest());
  NamedAttrList machine;
  if (auto known = dyn_cast_or_null<DictionaryAttr>(entries.get("target")))
    machine = known;
  machine.set("kind", target.getKind());
  machine.set("cpu", b.getStringAttr(getLevel(target)));
  machine.set("vector_bits", b.getI64IntegerAttr(target.getVectorBits()));
  machine.set("features", b.getStrArrayAttr(getFeatures(target)));
  entries.set("target", machine.getDictionary(b.getContext()));
  package.setManifestAttr(entries.getDictionary(b.getContext()));
  llvm::raw_string_ostream os(manifest);
  fi::printManifest(package, os);
  package.erase();
  return llvm::Error::success();
}

/// Moves each function with a body into a module of its own. Kernels do not
/// call each other; what they all may refer to is copied.
void Lowering::splitKernels() {
  SmallVector<FunctionOpInterface> kernels;
  SmallVector<Operation *> shared;
  for (Operation &op : module->getOps()) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (function && !function.isExternal() && function.isPublic())
      kernels.push_back(function);
    else
      shared.push_back(&op);
  }
  OpBuilder b(module->getBodyRegion());
  for (FunctionOpInterface kernel : kernels) {
    b.setInsertionPointToEnd(module->getBody());
    auto nested = ModuleOp::create(b, kernel.getLoc());
    nested->setAttr(kTargetAttr, target);
    b.setInsertionPointToEnd(nested.getBody());
    for (Operation *op : shared)
      b.clone(*op);
    kernel->moveBefore(nested.getBody(), nested.getBody()->end());
  }
  for (Operation *op : shared)
    op->erase();
}

SmallVector<ModuleOp> Lowering::getKernels() {
  SmallVector<ModuleOp> kernels(module->getOps<ModuleOp>());
  if (kernels.empty())
    kernels.push_back(*module);
  return kernels;
}
