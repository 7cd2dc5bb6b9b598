//===- PipelineFuzzer.cpp - any module through the pipelines -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What verifies must compile, for a CPU and for a GPU, or be refused by a
// sentence of fi's own: no pass may leave something that does not verify, and
// none may fail silently or because a pattern was missing. Functions are not
// what the stages compile; they go through the passes for functions.
//
//===----------------------------------------------------------------------===//

#include "FuzzContext.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Pipelines/Pipelines.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace fi::fuzzing;

namespace {

/// Verifies after each pass, so that what a pass breaks is told from what it
/// refuses.
struct VerifyAfterEach : PassInstrumentation {
  explicit VerifyAfterEach(FuzzContext &fuzzing) : fuzzing(fuzzing) {}
  void runAfterPass(Pass *pass, Operation *op) override {
    if (failed(verify(op)))
      fault(("after " + pass->getName() + ": " + fuzzing.lastError).str());
  }
  void runAfterPassFailed(Pass *pass, Operation *) override {
    StringRef why = fuzzing.lastError;
    if (why.empty() || why.contains("failed to legalize") ||
        why.contains("is not supported by the pass"))
      fault((pass->getName() + " fails: " + why).str());
  }
  FuzzContext &fuzzing;
};

} // namespace

static bool runPasses(FuzzContext &fuzzing, ModuleOp module,
                      function_ref<void(OpPassManager &)> build) {
  PassManager pm(&fuzzing.context);
  pm.enableVerifier(false);
  pm.addInstrumentation(std::make_unique<VerifyAfterEach>(fuzzing));
  build(pm);
  fuzzing.lastError.clear();
  return succeeded(pm.run(module));
}

static bool isPlaced(ModuleOp module) {
  return module
      .walk([](fi::tile::ChannelOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Through the stages for the module's target, and for a share of the modules
/// through LLVM.
static void compile(FuzzContext &fuzzing, ModuleOp module, bool withCode) {
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    function.erase();
  OwningOpRef<ModuleOp> source(module.clone());
  auto target = module->getAttrOfType<fi::TargetAttr>(fi::kTargetAttr);
  for (const fi::Stage &stage : fi::getStages(target)) {
    // As in the compiler: what is placed is not placed again.
    if (stage.name == "placed" && isPlaced(*source))
      continue;
    if (!runPasses(fuzzing, module, stage.build))
      return;
    note(stage.name);
  }
  if (!withCode)
    return;
  fuzzing.lastError.clear();
  std::string code;
  llvm::raw_string_ostream os(code);
  auto fail = [&](llvm::Error error) {
    std::string why = llvm::toString(std::move(error));
    note(why);
    // Names of programs that do not exist, several programs, and the like.
    if (why.empty() || StringRef(why).contains("Cannot select") ||
        StringRef(why).contains("crash"))
      fault("code generation fails: " + why);
  };
  // A second road over the same stages, which must end as the first.
  if (target.getChip()) {
    fi::gpu::CompileOptions options;
    options.assemble = false;
    options.cache.enabled = false;
    auto package = fi::gpu::compileForGPU(*source, "", options);
    if (!package)
      fail(package.takeError());
  } else {
    fi::cpu::CompileOptions options;
    options.optLevel = 0;
    options.cache.enabled = false;
    if (llvm::Error error = fi::cpu::printAssembly(*source, "", options, os))
      fail(std::move(error));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzContext &fuzzing = FuzzContext::get();
  OwningOpRef<ModuleOp> module = fuzzing.parseInput(data, size);
  if (!module)
    return 0;
  note("verified");
  bool hasCode = !(*module).getOps<fi::ProgramOp>().empty() ||
                 !(*module).getOps<fi::tile::KernelOp>().empty();
  OwningOpRef<ModuleOp> other(module->clone()), calls(module->clone());
  runPasses(fuzzing, *other, [](OpPassManager &pm) {
    pm.addPass(fi::createFIRaiseAttention());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
    pm.addPass(fi::createFIOutlineProgramsPass());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
  });
  runPasses(fuzzing, *calls,
            [](OpPassManager &pm) { pm.addPass(fi::createFICallsToLLVM()); });
  if (!hasCode)
    return 0;
  // The text decides what it is compiled for.
  uint64_t hash = llvm::xxh3_64bits(llvm::ArrayRef(data, size));
  if (!(*module)->hasAttrOfType<fi::TargetAttr>(fi::kTargetAttr)) {
    static const char *const targets[] = {
        "#fi.target<cpu, vector_bits = 512, bf16_dot>",
        "#fi.target<cpu, vector_bits = 256>",
        "#fi.target<sm_75>",
        "#fi.target<sm_80>",
        "#fi.target<sm_90a>",
        "#fi.target<sm_100a>"};
    Attribute target =
        parseAttribute(targets[hash % std::size(targets)], &fuzzing.context);
    if (!target)
      fault("a target does not parse: " + fuzzing.lastError);
    (*module)->setAttr(fi::kTargetAttr, target);
  }
  compile(fuzzing, *module, /*withCode=*/(hash >> 32) % 8 == 0);
  return 0;
}
