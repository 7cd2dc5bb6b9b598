//===- LLVMCodegen.cpp - from the llvm dialect to machine code ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LLVMCodegen.h"
#include "Lowering.h"
#include "Machine.h"
#include "fi/ABI/KernelABI.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

void fi::cpu::registerCompiler(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

llvm::Error fi::cpu::runSafely(llvm::function_ref<llvm::Error()> function) {
  return fi::runSafely(
      "LLVM's code generator gave up on a kernel of this program", function);
}

/// Kernels come as vectorised loops without calls or stack slots worth the
/// name. This is what they gain from; LLVM's own -O3 takes three times as long
/// for code of the same speed.
static constexpr llvm::StringLiteral kKernelPipeline =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"
    "simplifycfg,loop-mssa(loop-rotate,licm),gvn,"
    "instcombine<no-verify-fixpoint>,simplifycfg)";

llvm::Expected<std::unique_ptr<llvm::Module>>
fi::cpu::translate(ModuleOp module, TargetAttr target, bool definesVersion,
                   llvm::LLVMContext &context, unsigned optLevel,
                   CompileTimes &times) {
  double start = now();
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, "fi");
  if (!result)
    return llvm::createStringError("translation to LLVM IR failed");
  auto machine = createMachine(target, optLevel);
  if (!machine)
    return machine.takeError();
  result->setTargetTriple((*machine)->getTargetTriple());
  result->setDataLayout((*machine)->createDataLayout());
  std::string tuning = getTuning(target);
  std::string width = std::to_string(target.getVectorBits());
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", (*machine)->getTargetCPU());
    if (!(*machine)->getTargetFeatureString().empty())
      function.addFnAttr("target-features",
                         (*machine)->getTargetFeatureString());
    function.addFnAttr("tune-cpu", tuning);
    // Kernels are written for vectors of this width.
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  if (definesVersion) {
    llvm::Type *i32 = llvm::Type::getInt32Ty(context);
    new llvm::GlobalVariable(
        *result, i32, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
        llvm::ConstantInt::get(i32, FI_ABI_VERSION), FI_ABI_VERSION_SYMBOL);
  }
  times.translate += now() - start;

  start = now();
  if (optLevel > 0) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PipelineTuningOptions tuningOptions;
    // The loops are vectorised and unrolled as they should be already.
    tuningOptions.LoopVectorization = false;
    tuningOptions.SLPVectorization = false;
    tuningOptions.LoopUnrolling = false;
    llvm::PassBuilder passes(machine->get(), tuningOptions);
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(components);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, components, modules);
    llvm::ModulePassManager pipeline;
    if (optLevel >= 3) {
      pipeline =
          passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
    } else if (llvm::Error error =
                   passes.parsePassPipeline(pipeline, kKernelPipeline)) {
      return std::move(error);
    }
    pipeline.run(*result, modules);
  }
  times.optimise += now() - start;
  return result;
}

llvm::Error fi::cpu::emitCode(llvm::Module &ir, TargetAttr target,
                              unsigned optLevel, bool asAssembly,
                              llvm::raw_pwrite_stream &os) {
  // LLVM's quickest code loads tile configurations from registers that it has
  // overwritten.
  if (optLevel == 0 && llvm::any_of(ir, [](const llvm::Function &function) {
        return function.getName().starts_with("llvm.x86.tile");
      }))
    optLevel = 1;
  auto machine = createMachine(target, optLevel);
  if (!machine)
    return machine.takeError();
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, os, nullptr,
                                      asAssembly
                                          ? llvm::CodeGenFileType::AssemblyFile
                                          : llvm::CodeGenFileType::ObjectFile,
                                      /*DisableVerify=*/true))
    return llvm::createStringError("LLVM cannot write code for this target");
  passes.run(ir);
  return llvm::Error::success();
}

llvm::Expected<std::vector<ObjectCode>>
fi::cpu::compileKernels(ArrayRef<ModuleOp> kernels, TargetAttr target,
                        unsigned optLevel, CompileTimes &times) {
  std::vector<ObjectCode> objects(kernels.size());
  std::vector<CompileTimes> spent(kernels.size());
  std::vector<std::string> failures(kernels.size());
  auto compileOne = [&](size_t i) -> llvm::Error {
    llvm::LLVMContext context;
    auto ir = translate(kernels[i], target, /*definesVersion=*/i == 0, context,
                        optLevel, spent[i]);
    if (!ir)
      return ir.takeError();
    double start = now();
    llvm::raw_svector_ostream os(objects[i]);
    llvm::Error error =
        emitCode(**ir, target, optLevel, /*asAssembly=*/false, os);
    spent[i].codegen = now() - start;
    return error;
  };
  // The machine is looked up before threads are.
  if (auto machine = createMachine(target, optLevel); !machine)
    return machine.takeError();
  if (!kernels.empty())
    parallelFor(kernels[0]->getContext(), 0, kernels.size(), [&](size_t i) {
      if (llvm::Error error = runSafely([&] { return compileOne(i); }))
        failures[i] = llvm::toString(std::move(error));
    });
  for (const CompileTimes &one : spent) {
    times.translate += one.translate;
    times.optimise += one.optimise;
    times.codegen += one.codegen;
  }
  for (const std::string &failure : failures)
    if (!failure.empty())
      return llvm::createStringError(failure);
  // Higher levels have instructions for f16, some of them for bf16.
  if (!target.getBf16Dot()) {
    auto undefined = findUndefined(objects);
    if (!undefined)
      return undefined.takeError();
    if (llvm::is_contained(*undefined, "__extendhfsf2") ||
        llvm::is_contained(*undefined, "__truncsfhf2") ||
        llvm::is_contained(*undefined, "__truncsfbf2")) {
      auto conversions = compileHalfConversions(target);
      if (!conversions)
        return conversions.takeError();
      objects.push_back(std::move(*conversions));
    }
  }
  return objects;
}

llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
fi::cpu::loadInProcess(ArrayRef<ObjectCode> objects, TargetAttr target) {
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> result(nullptr);
  llvm::Error error = runSafely([&]() -> llvm::Error {
    llvm::orc::JITTargetMachineBuilder builder(
        llvm::Triple("x86_64-unknown-linux-gnu"));
    builder.setCPU(getLevel(target).str());
    auto jit = llvm::orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(builder))
                   .create();
    if (!jit)
      return jit.takeError();
    // libc and libm of this process, which need not have had a use for libm.
    llvm::sys::DynamicLibrary::LoadLibraryPermanently("libm.so.6");
    auto process =
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
            (*jit)->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    (*jit)->getMainJITDylib().addGenerator(std::move(*process));
    for (const ObjectCode &object : objects)
      if (llvm::Error failed =
              (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
                  StringRef(object.data(), object.size()), "kernel.o")))
        return failed;
    // Everything is linked now, so that what is missing is missed here.
    if (auto address = (*jit)->lookup(FI_ABI_VERSION_SYMBOL); !address)
      return address.takeError();
    result = std::move(*jit);
    return llvm::Error::success();
  });
  if (error) {
    llvm::consumeError(result.takeError());
    return std::move(error);
  }
  return result;
}
