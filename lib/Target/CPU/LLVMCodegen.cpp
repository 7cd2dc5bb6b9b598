//===- LLVMCodegen.cpp - from the llvm dialect to machine code ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LLVMCodegen.h"
#include "fi/ABI/KernelABI.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include <chrono>
#include <mutex>

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

static double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

static void initialiseTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    llvm::CrashRecoveryContext::Enable();
  });
}

TargetAttr fi::cpu::getHostTarget(MLIRContext *context) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](StringRef feature) { return features.lookup(feature); };
  bool avx512 = has("avx512f") && has("avx512bw") && has("avx512vl") &&
                has("avx512dq");
  int64_t bits = avx512 ? 512 : has("avx2") && has("fma") ? 256 : 128;
  return TargetAttr::get(context, StringAttr::get(context, "cpu"), bits,
                         avx512 && has("avx512bf16"));
}

void fi::cpu::registerCompiler(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

/// A target machine for this host. Vectors are used at their full width, as the
/// kernels are written for it.
static llvm::Expected<llvm::orc::JITTargetMachineBuilder> hostMachine() {
  initialiseTarget();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  return builder;
}

llvm::Expected<std::unique_ptr<llvm::Module>>
fi::cpu::translate(ModuleOp module, llvm::LLVMContext &context,
                   unsigned optLevel, CompileTimes &times) {
  double start = now();
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context, "fi");
  if (!result)
    return llvm::createStringError("translation to LLVM IR failed");
  auto builder = hostMachine();
  if (!builder)
    return builder.takeError();
  auto machine = builder->createTargetMachine();
  if (!machine)
    return machine.takeError();
  result->setTargetTriple((*machine)->getTargetTriple());
  result->setDataLayout((*machine)->createDataLayout());
  std::string features = builder->getFeatures().getString();
  for (llvm::Function &function : *result) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", "512");
    function.addFnAttr("min-legal-vector-width", "512");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  // The version that a runtime asks of a shared object.
  llvm::Type *i32 = llvm::Type::getInt32Ty(context);
  new llvm::GlobalVariable(*result, i32, /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantInt::get(i32, FI_ABI_VERSION),
                           FI_ABI_VERSION_SYMBOL);
  times.translate = now() - start;

  start = now();
  if (optLevel > 0) {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::PipelineTuningOptions tuning;
    // The loops are vectorised and unrolled as they should be already.
    tuning.LoopVectorization = false;
    tuning.SLPVectorization = false;
    tuning.LoopUnrolling = false;
    llvm::PassBuilder passes(machine->get(), tuning);
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(components);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, components, modules);
    auto level = optLevel == 1   ? llvm::OptimizationLevel::O1
                 : optLevel == 2 ? llvm::OptimizationLevel::O2
                                 : llvm::OptimizationLevel::O3;
    passes.buildPerModuleDefaultPipeline(level).run(*result, modules);
  }
  times.optimise = now() - start;
  return result;
}

llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
fi::cpu::compileInProcess(ModuleOp module, unsigned optLevel,
                          CompileTimes &times) {
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> result(nullptr);
  llvm::Error error = llvm::Error::success();
  auto compile = [&]() -> llvm::Error {
    auto context = std::make_unique<llvm::LLVMContext>();
    auto ir = translate(module, *context, optLevel, times);
    if (!ir)
      return ir.takeError();
    double start = now();
    auto builder = hostMachine();
    if (!builder)
      return builder.takeError();
    auto jit = llvm::orc::LLJITBuilder()
                   .setJITTargetMachineBuilder(std::move(*builder))
                   .create();
    if (!jit)
      return jit.takeError();
    // libc and libm of this process.
    auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        (*jit)->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    (*jit)->getMainJITDylib().addGenerator(std::move(*process));
    SmallVector<std::string> names;
    for (llvm::Function &function : **ir)
      if (!function.isDeclaration())
        names.push_back(function.getName().str());
    if (llvm::Error e = (*jit)->addIRModule(llvm::orc::ThreadSafeModule(
            std::move(*ir), std::move(context))))
      return e;
    // Code is generated at the first look-up.
    for (const std::string &name : names)
      if (auto address = (*jit)->lookup(name); !address)
        return address.takeError();
    times.codegen = now() - start;
    result = std::move(*jit);
    return llvm::Error::success();
  };
  (void)static_cast<bool>(error);
  llvm::CrashRecoveryContext recovery;
  bool survived = recovery.RunSafely([&] { error = compile(); });
  if (!survived)
    return llvm::createStringError(
        "LLVM's code generator gave up on a kernel of this program");
  if (error)
    return std::move(error);
  return result;
}
