//===- EmitPTX.cpp - from the llvm and nvvm dialects to PTX ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/NVPTX/EmitPTX.h"
#include "Parts.h"
#include "fi/Support/Parallel.h"
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
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
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
      optLevel == 0   ? llvm::CodeGenOptLevel::None
      : optLevel == 3 ? llvm::CodeGenOptLevel::Aggressive
                      : llvm::CodeGenOptLevel::Default));
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

/// What kernels gain from. They come without calls and with few variables in
/// memory, as straight code between few loops, of which all of -O3 makes more
/// instructions and spills in six times the time. Reassociation is not here,
/// and loop-invariant code motion by choice: what they compute before a loop
/// takes registers in it, and only ptxas, which moves code as well, knows how
/// many there are.
static llvm::FunctionPassManager makeKernelPipeline(bool movesInvariants) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(
      llvm::InstCombinePass(llvm::InstCombineOptions().setMaxIterations(1)));
  if (movesInvariants)
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(
        llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  // Loads and sums that an outer block has already: of warpgroups' kernels the
  // assembler makes faster ones then.
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::EarlyCSEPass());
  return passes;
}

/// The code generator pairs what vectors of f32 have where PTX can say it. A
/// target that takes the pairs apart again is given none: moves put them
/// together. Pairs of 16 bits stay.
static llvm::FunctionPassManager makeScalars() {
  constexpr unsigned kPairBits = 32;
  llvm::ScalarizerPassOptions options;
  options.ScalarizeMinBits = kPairBits;
  options.ScalarizeLoadStore = false;
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::ScalarizerPass(options));
  passes.addPass(llvm::EarlyCSEPass());
  return passes;
}

/// Whether a sum of vectors has a product in it, and must not be contracted.
static bool isProtectedSum(const llvm::Instruction &instruction) {
  if (instruction.getOpcode() != llvm::Instruction::FAdd &&
      instruction.getOpcode() != llvm::Instruction::FSub)
    return false;
  auto *type = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType());
  return type && type->getElementType()->isFloatTy() &&
         !instruction.hasAllowContract() &&
         llvm::any_of(instruction.operands(), [](const llvm::Use &use) {
           auto *product = llvm::dyn_cast<llvm::Instruction>(use);
           return product && product->getOpcode() == llvm::Instruction::FMul;
         });
}

/// ptxas 13.0 contracts `mul.rn.f32x2` and `add.rn.f32x2`, which say that they
/// must not be, whatever its options; numbers by themselves it leaves alone.
static void protectSums(llvm::Module &ir) {
  for (llvm::Function &function : ir)
    for (llvm::Instruction &sum :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      if (!isProtectedSum(sum))
        continue;
      llvm::IRBuilder<> b(&sum);
      b.setFastMathFlags(sum.getFastMathFlags());
      llvm::Value *all = llvm::PoisonValue::get(sum.getType());
      auto opcode = llvm::Instruction::BinaryOps(sum.getOpcode());
      unsigned count =
          llvm::cast<llvm::FixedVectorType>(sum.getType())->getNumElements();
      for (unsigned i = 0; i < count; ++i)
        all = b.CreateInsertElement(
            all,
            b.CreateBinOp(opcode, b.CreateExtractElement(sum.getOperand(0), i),
                          b.CreateExtractElement(sum.getOperand(1), i)),
            i);
      sum.replaceAllUsesWith(all);
      sum.eraseFromParent();
    }
}

static void optimise(llvm::Module &ir, llvm::TargetMachine &machine,
                     unsigned optLevel, bool wantsScalars) {
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
  if (optLevel < 3)
    llvm::createModuleToFunctionPassAdaptor(
        makeKernelPipeline(/*movesInvariants=*/optLevel == 2))
        .run(ir, modules);
  else
    passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
        .run(ir, modules);
  if (wantsScalars)
    llvm::createModuleToFunctionPassAdaptor(makeScalars()).run(ir, modules);
}

namespace {

/// The passes of LLVM's code generator, where wanted without those that take
/// their time and leave kernels as they are, or with more in registers.
class CodegenPasses : public llvm::legacy::PassManager {
public:
  explicit CodegenPasses(bool isComplete) : isComplete(isComplete) {}

  void add(llvm::Pass *pass) override {
    if (isComplete || !isLeftOut(*pass))
      llvm::legacy::PassManager::add(pass);
    else
      delete pass;
  }

private:
  /// The lowering has addresses a stride apart as sums already, and pointers
  /// instead of products with a loop's counter.
  static bool isLeftOut(const llvm::Pass &pass) {
    const llvm::PassInfo *info =
        llvm::PassRegistry::getPassRegistry()->getPassInfo(pass.getPassID());
    return info &&
           llvm::is_contained({StringRef("slsr"), StringRef("loop-reduce"),
                               StringRef("early-machinelicm")},
                              info->getPassArgument());
  }

  bool isComplete;
};

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

static bool hasInlinePTX(ModuleOp module) {
  return module
      .walk([](NVVM::BasicPtxBuilderInterface) {
        return WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Checks a module and takes it to what is translated; the version of PTX.
static llvm::Expected<unsigned>
prepare(ModuleOp module, const sm::Target &target, const EmitOptions &options) {
  // What was asked for is checked whatever the module holds.
  if (options.ptx)
    if (llvm::Error error = sm::checkPTX(target, options.ptx))
      return std::move(error);
  if (llvm::Error error = checkModule(module, target))
    return std::move(error);
  llvm::Expected<unsigned> ptx = choosePTX(module, target, options.ptx);
  if (!ptx)
    return ptx;
  if (llvm::Error error = runPasses(module, [&](OpPassManager &pm) {
        // Ops that are inline PTX become it; translating them directly would
        // lose their predicates without a word.
        if (hasInlinePTX(module))
          pm.addPass(createConvertNVVMToLLVMPass());
        if (options.locations) {
          LLVM::DIScopeForLLVMFuncOpPassOptions scopes;
          scopes.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
          pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scopes));
        } else {
          pm.addPass(createStripDebugInfoPass());
        }
      }))
    return std::move(error);
  return ptx;
}

namespace {

/// A module in LLVM, with a context of its own so that others may be worked on
/// at the same time.
class Generator {
public:
  Generator(const sm::Target &target, unsigned ptx, unsigned optLevel)
      : target(target), ptx(ptx), optLevel(optLevel) {}

  /// To LLVM IR. Not while others translate ops of the same context.
  llvm::Error translate(ModuleOp module) {
    auto created = createMachine(target, ptx, optLevel);
    if (!created)
      return created.takeError();
    machine = std::move(*created);
    LastError mlirErrors(module->getContext());
    return run(times.translate, [&]() -> llvm::Error {
      context = std::make_unique<llvm::LLVMContext>();
      errors = std::make_unique<LLVMErrors>(*context);
      ir = translateModuleToLLVMIR(module, *context, "fi");
      if (!ir)
        return mlirErrors.take();
      ir->setTargetTriple(machine->getTargetTriple());
      ir->setDataLayout(machine->createDataLayout());
      finishFunctions(*ir);
      return checkShared(*ir);
    });
  }

  llvm::Error optimise() {
    return run(times.optimise, [&] {
      if (optLevel > 0)
        ::optimise(*ir, *machine, optLevel,
                   target.has(sm::F32x2) && !target.has(sm::FastF32x2));
      if (target.has(sm::F32x2))
        protectSums(*ir);
      return errors->take();
    });
  }

  llvm::Error generate(std::string &text) {
    return run(times.codegen, [&] {
      llvm::SmallString<0> buffer;
      llvm::raw_svector_ostream os(buffer);
      CodegenPasses passes(/*isComplete=*/optLevel >= 3);
      if (machine->addPassesToEmitFile(passes, os, nullptr,
                                       llvm::CodeGenFileType::AssemblyFile,
                                       /*DisableVerify=*/true))
        return llvm::createStringError("LLVM cannot write PTX");
      passes.run(*ir);
      text = buffer.str();
      return errors->take();
    });
  }

  llvm::Module &getModule() { return *ir; }

  EmitTimes times;

private:
  llvm::Error run(double &time, llvm::function_ref<llvm::Error()> work) {
    double start = now();
    bool isComplete = false;
    llvm::Error error =
        runSafely(("LLVM's code generator gave up on a kernel for " +
                   target.name + " and PTX " + sm::formatPTX(ptx))
                      .str(),
                  [&] {
                    llvm::Error error = work();
                    isComplete = true;
                    return error;
                  });
    // What LLVM left in the middle of something is not fit to be destroyed.
    if (!isComplete) {
      (void)ir.release();
      (void)errors.release();
      (void)context.release();
    }
    time += now() - start;
    return error;
  }

  const sm::Target &target;
  unsigned ptx, optLevel;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<LLVMErrors> errors;
  std::unique_ptr<llvm::Module> ir;
};

} // namespace

llvm::Expected<std::string> fi::nvptx::emitPTX(ModuleOp module,
                                               const sm::Target &target,
                                               const EmitOptions &options,
                                               EmitTimes *times) {
  return emitPTX(OwningOpRef<ModuleOp>(module.clone()), target, options, times);
}

llvm::Expected<std::string> fi::nvptx::emitPTX(OwningOpRef<ModuleOp> module,
                                               const sm::Target &target,
                                               const EmitOptions &options,
                                               EmitTimes *times) {
  double start = now();
  llvm::Expected<unsigned> ptx = prepare(*module, target, options);
  if (!ptx)
    return ptx.takeError();
  std::vector<OwningOpRef<ModuleOp>> modules = splitKernels(std::move(module));
  EmitTimes sum;
  sum.convert = now() - start;
  std::vector<Generator> parts;
  for (OwningOpRef<ModuleOp> &part : modules)
    if (llvm::Error error =
            parts.emplace_back(target, *ptx, options.optLevel).translate(*part))
      return std::move(error);

  std::vector<std::string> texts(parts.size()), failures(parts.size());
  parallelFor(parts.size(), [&](size_t i) {
    llvm::Error error = parts[i].optimise();
    if (!error)
      error = parts[i].generate(texts[i]);
    failures[i] = llvm::toString(std::move(error));
  });
  for (const std::string &failure : failures)
    if (!failure.empty())
      return llvm::createStringError(failure);
  for (const Generator &part : parts) {
    sum.translate += part.times.translate;
    sum.optimise += part.times.optimise;
    sum.codegen += part.times.codegen;
  }
  if (times)
    *times = sum;
  return joinPTX(texts);
}

llvm::Expected<std::string> fi::nvptx::emitLLVMIR(ModuleOp module,
                                                  const sm::Target &target,
                                                  const EmitOptions &options) {
  OwningOpRef<ModuleOp> copy = module.clone();
  llvm::Expected<unsigned> ptx = prepare(*copy, target, options);
  if (!ptx)
    return ptx.takeError();
  Generator generator(target, *ptx, options.optLevel);
  if (llvm::Error error = generator.translate(*copy))
    return std::move(error);
  if (llvm::Error error = generator.optimise())
    return std::move(error);
  std::string text;
  llvm::raw_string_ostream os(text);
  generator.getModule().print(os, nullptr);
  return text;
}
