//===- EmitPTX.cpp - from the llvm and nvvm dialects to PTX ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/NVPTX/EmitPTX.h"
#include "fi/Target/CodegenSupport.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/LocationSnapshot.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace fi;
using namespace fi::nvptx;

void fi::nvptx::registerEmitter(DialectRegistry &registry) {
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

std::string fi::nvptx::snapshotLocations(ModuleOp module, StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  generateLocationsFromIR(os, name, module, OpPrintingFlags());
  return text;
}

//===----------------------------------------------------------------------===//
// Checks before LLVM sees anything
//===----------------------------------------------------------------------===//

/// The threads of a CTA that a kernel asks for.
static llvm::Error checkThreads(LLVM::LLVMFuncOp kernel,
                                const sm::Target &target) {
  for (StringRef name : {NVVM::NVVMDialect::getReqntidAttrName(),
                         NVVM::NVVMDialect::getMaxntidAttrName()}) {
    auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(name);
    if (!sizes)
      continue;
    int64_t threads = 1;
    for (int32_t size : sizes.asArrayRef())
      threads *= std::max(size, 0);
    if (threads < 1 || threads > target.maxThreadsPerCTA)
      return makeError(kernel, "expected 1 to " +
                                   Twine(target.maxThreadsPerCTA) +
                                   " threads of a CTA in '" + name + "' for " +
                                   target.name + ", but got " + Twine(threads));
  }
  return llvm::Error::success();
}

static llvm::Error checkModule(ModuleOp module, const sm::Target &target) {
  bool hasKernel = false;
  std::optional<llvm::Error> found;
  module.walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (dialect != "llvm" && dialect != "nvvm" && !isa<ModuleOp>(op)) {
      found = makeError(op, "expected ops of the llvm and nvvm dialects, but "
                            "got '" +
                                op->getName().getStringRef() +
                                "'; lower it before PTX is emitted");
      return WalkResult::interrupt();
    }
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
        function &&
        function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName())) {
      hasKernel = true;
      if (llvm::Error failed = checkThreads(function, target)) {
        found = std::move(failed);
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  if (found)
    return std::move(*found);
  if (!hasKernel)
    return makeError(module, "expected a function with 'nvvm.kernel', but got "
                             "none");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// LLVM
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(const sm::Target &target, unsigned ptx, unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string why;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, why);
  if (!llvmTarget)
    return llvm::createStringError(why);
  llvm::TargetOptions options;
  // By the flags of each op, and nothing else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      triple, target.chip, "+ptx" + std::to_string(ptx), options, std::nullopt,
      std::nullopt,
      optLevel == 0 ? llvm::CodeGenOptLevel::None
                    : llvm::CodeGenOptLevel::Aggressive));
}

/// What the dialects cannot say of functions and calls.
static void finishFunctions(llvm::Module &ir) {
  for (llvm::Function &function : ir) {
    if (function.isDeclaration())
      continue;
    // A barrier may be in any of them.
    function.addFnAttr(llvm::Attribute::Convergent);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (!function.hasFnAttribute("denormal-fp-math-f32"))
      function.addFnAttr("denormal-fp-math-f32", "preserve-sign");
    // An optimiser may otherwise copy an instruction with `.aligned` into both
    // sides of a branch where lanes part, or merge two of them.
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = dyn_cast<llvm::CallBase>(&instruction);
          call && call->isInlineAsm())
        call->setConvergent();
  }
}

static void optimise(llvm::Module &ir, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder passes(&machine);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(ir, modules);
}

namespace {

/// The first error that LLVM reports of a module. Without a handler it would
/// end the process.
class LLVMErrors {
public:
  explicit LLVMErrors(llvm::LLVMContext &context) {
    context.setDiagnosticHandlerCallBack(
        [](const llvm::DiagnosticInfo *info, void *self) {
          static_cast<LLVMErrors *>(self)->handle(*info);
        },
        this);
  }

  llvm::Error take() {
    if (text.empty())
      return llvm::Error::success();
    return llvm::createStringError("LLVM cannot generate code: " + text);
  }

private:
  void handle(const llvm::DiagnosticInfo &info) {
    if (info.getSeverity() != llvm::DS_Error || !text.empty())
      return;
    llvm::raw_string_ostream os(text);
    llvm::DiagnosticPrinterRawOStream printer(os);
    info.print(printer);
  }

  std::string text;
};

} // namespace

/// Static shared memory is bounded by what needs no opt-in.
static constexpr uint64_t kMaxStaticShared = 48 * 1024;

static void findFunctions(const llvm::User *user,
                          llvm::SmallPtrSetImpl<const llvm::Function *> &all) {
  if (auto *instruction = dyn_cast<llvm::Instruction>(user)) {
    all.insert(instruction->getFunction());
    return;
  }
  for (const llvm::User *next : user->users())
    findFunctions(next, all);
}

static llvm::Error checkShared(const llvm::Module &ir) {
  constexpr unsigned sharedSpace = 3;
  llvm::MapVector<const llvm::Function *, uint64_t> bytes;
  for (const llvm::GlobalVariable &global : ir.globals()) {
    if (global.getAddressSpace() != sharedSpace)
      continue;
    llvm::SmallPtrSet<const llvm::Function *, 4> functions;
    for (const llvm::User *user : global.users())
      findFunctions(user, functions);
    for (const llvm::Function &function : ir)
      if (functions.contains(&function))
        bytes[&function] +=
            ir.getDataLayout().getTypeAllocSize(global.getValueType());
  }
  for (auto [function, size] : bytes)
    if (size > kMaxStaticShared)
      return llvm::createStringError(
          "expected at most " + Twine(kMaxStaticShared) +
          " bytes of static shared memory, but '" + function->getName() +
          "' has " + Twine(size) +
          "; take it from the dynamic shared memory of the launch");
  return llvm::Error::success();
}

/// Takes a module down to optimised LLVM IR and gives it to `use`.
static llvm::Error
withIR(ModuleOp original, const sm::Target &target, const EmitOptions &options,
       EmitTimes &times,
       llvm::function_ref<void(llvm::Module &, llvm::TargetMachine &)> use) {
  // What was asked for is checked whatever the module holds.
  if (options.ptx)
    if (llvm::Error error = sm::checkPTX(target, options.ptx))
      return error;
  if (llvm::Error error = checkModule(original, target))
    return error;
  llvm::Expected<unsigned> chosen = choosePTX(original, target, options.ptx);
  if (!chosen)
    return chosen.takeError();
  unsigned ptx = *chosen;

  double start = now();
  OwningOpRef<ModuleOp> module = original.clone();
  if (llvm::Error error = runPasses(*module, [&](OpPassManager &pm) {
        // Ops that are inline PTX become it; translating them directly would
        // lose their predicates without a word.
        pm.addPass(createConvertNVVMToLLVMPass());
        if (options.locations) {
          LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
          scopes.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
          pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
        } else {
          pm.addPass(createStripDebugInfoPass());
        }
      }))
    return error;
  times.convert += now() - start;

  auto machine = createMachine(target, ptx, options.optLevel);
  if (!machine)
    return machine.takeError();
  std::string what = ("LLVM's code generator gave up on a kernel for " +
                      target.name + " and PTX " + sm::formatPTX(ptx))
                         .str();
  LastError mlirErrors(module->getContext());
  return runSafely(what, [&]() -> llvm::Error {
    double start = now();
    llvm::LLVMContext context;
    LLVMErrors errors(context);
    std::unique_ptr<llvm::Module> ir =
        translateModuleToLLVMIR(*module, context, "fi");
    if (!ir)
      return mlirErrors.take();
    ir->setTargetTriple((*machine)->getTargetTriple());
    ir->setDataLayout((*machine)->createDataLayout());
    finishFunctions(*ir);
    if (llvm::Error error = checkShared(*ir))
      return error;
    times.translate += now() - start;

    start = now();
    if (options.optLevel > 0)
      optimise(*ir, **machine);
    times.optimise += now() - start;
    start = now();
    use(*ir, **machine);
    times.codegen += now() - start;
    return errors.take();
  });
}

llvm::Expected<std::string> fi::nvptx::emitPTX(ModuleOp module,
                                               const sm::Target &target,
                                               const EmitOptions &options,
                                               EmitTimes *times) {
  EmitTimes unused;
  llvm::SmallString<0> text;
  bool isWritable = true;
  if (llvm::Error error =
          withIR(module, target, options, times ? *times : unused,
                 [&](llvm::Module &ir, llvm::TargetMachine &machine) {
                   llvm::raw_svector_ostream os(text);
                   llvm::legacy::PassManager passes;
                   isWritable = !machine.addPassesToEmitFile(
                       passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile,
                       /*DisableVerify=*/true);
                   if (isWritable)
                     passes.run(ir);
                 }))
    return std::move(error);
  if (!isWritable)
    return llvm::createStringError("LLVM cannot write PTX");
  return text.str().str();
}

llvm::Expected<std::string> fi::nvptx::emitLLVMIR(ModuleOp module,
                                                  const sm::Target &target,
                                                  const EmitOptions &options) {
  EmitTimes unused;
  std::string text;
  if (llvm::Error error = withIR(module, target, options, unused,
                                 [&](llvm::Module &ir, llvm::TargetMachine &) {
                                   llvm::raw_string_ostream os(text);
                                   ir.print(os, nullptr);
                                 }))
    return std::move(error);
  return text;
}
