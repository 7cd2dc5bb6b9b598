//===- Compiler.cpp - C interface to the compiler -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi-c/Compiler.h"
#include "LastError.h"
#include "fi-c/FI.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/CodegenSupport.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/CAPI/Utils.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace fi;
using namespace fi::capi;
using llvm::createStringError;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static std::string &getLastError() {
  static thread_local std::string sentence;
  return sentence;
}

const char *fiGetLastError() { return getLastError().c_str(); }

void capi::setLastError(llvm::Error error) {
  getLastError() = llvm::toString(std::move(error));
}

Diagnostics::Diagnostics(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        auto add = [&](const Diagnostic &one, StringRef kind) {
          llvm::raw_string_ostream os(text);
          os << "\n";
          if (!isa<UnknownLoc>(one.getLocation()))
            os << one.getLocation() << ": ";
          os << kind << ": " << one;
        };
        last.clear();
        llvm::raw_string_ostream(last)
            << diagnostic.getLocation() << ": " << diagnostic;
        add(diagnostic, "error");
        for (const Diagnostic &note : diagnostic.getNotes())
          add(note, "note");
        // Others may want to see it.
        return failure();
      }) {}

void Diagnostics::fail(llvm::Error error) {
  std::string sentence = llvm::toString(std::move(error));
  // The compilers' sentences repeat the last diagnostic.
  getLastError() =
      sentence == last ? StringRef(text).ltrim().str() : sentence + text;
}

//===----------------------------------------------------------------------===//
// Contexts and modules
//===----------------------------------------------------------------------===//

MlirContext fiContextCreate() {
  DialectRegistry registry;
  fiRegisterAllDialects(wrap(&registry));
  auto *context = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
  // Messages show a place, not a page of operations. Handlers that are attached
  // later see them first; this one keeps the rest from the standard error.
  context->printOpOnDiagnostic(false);
  context->getDiagEngine().registerHandler([](Diagnostic &) {});
  return wrap(context);
}

MlirModule fiModuleParse(MlirContext context, MlirStringRef text,
                         MlirStringRef name) {
  Diagnostics diagnostics(unwrap(context));
  if (llvm::Error error = checkNesting(unwrap(text), unwrap(name))) {
    diagnostics.fail(std::move(error));
    return MlirModule{nullptr};
  }
  // MLIR's lexer reads on to a character that ends a name, and takes a null
  // pointer for where an editor completes.
  std::string terminated = unwrap(text).str();
  auto module =
      parseSourceString<ModuleOp>(terminated, unwrap(context), unwrap(name));
  if (!module)
    diagnostics.fail(
        createStringError("'" + unwrap(name) + "' is not a valid program"));
  return wrap(module.release());
}

/// Runs what `build` adds. Returns what diagnostics do not say.
static MlirLogicalResult run(Diagnostics &diagnostics, ModuleOp module,
                             llvm::function_ref<void(OpPassManager &)> build) {
  llvm::Error error = runPasses(module, build);
  if (!error)
    return mlirLogicalResultSuccess();
  diagnostics.fail(std::move(error));
  return mlirLogicalResultFailure();
}

MlirLogicalResult fiModuleRunPipeline(MlirModule module, MlirStringRef names) {
  fiRegisterAllPasses();
  ModuleOp op = unwrap(module);
  Diagnostics diagnostics(op.getContext());
  std::string why;
  llvm::raw_string_ostream os(why);
  OpPassManager pm(ModuleOp::getOperationName());
  StringRef text = unwrap(names).trim();
  // An anchor within the one that is there would match nothing, silently.
  if (text.consume_front("builtin.module(") && !text.consume_back(")"))
    why = "no closing parenthesis";
  if (!why.empty() || failed(parsePassPipeline(text, pm, os))) {
    diagnostics.fail(createStringError("expected names of passes, but got '" +
                                       unwrap(names) +
                                       "': " + StringRef(why).trim()));
    return mlirLogicalResultFailure();
  }
  return run(diagnostics, op, [&](OpPassManager &all) { all = std::move(pm); });
}

MlirLogicalResult fiModuleRunStages(MlirModule module, MlirStringRef last) {
  ModuleOp op = unwrap(module);
  Diagnostics diagnostics(op.getContext());
  auto target = op->getAttrOfType<TargetAttr>(kTargetAttr);
  if (!target) {
    target = cpu::getHostTarget(op.getContext());
    op->setAttr(kTargetAttr, target);
  }
  SmallVector<Stage, 4> stages = getStages(target);
  Stage *found = llvm::find_if(
      stages, [&](const Stage &stage) { return stage.name == unwrap(last); });
  if (found == stages.end()) {
    std::string known;
    for (const Stage &stage : stages)
      known += (known.empty() ? "" : ", ") + stage.name.str();
    diagnostics.fail(createStringError(
        "expected a stage of '" + target.getKind().getValue() + "', " + known +
        ", but got '" + unwrap(last) + "'"));
    return mlirLogicalResultFailure();
  }
  return run(diagnostics, op, [&](OpPassManager &pm) {
    for (const Stage &stage : llvm::make_range(stages.begin(), found + 1))
      stage.build(pm);
  });
}

static bool isForGPU(ModuleOp module) {
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  return target && target.getChip();
}

static llvm::Error makeNoProgramError() {
  return createStringError("expected a module with a fi.program, but got none");
}

static llvm::Error writePackage(ModuleOp module, StringRef program,
                                StringRef directory) {
  if (!isForGPU(module))
    return cpu::writePackage(module, program, {}, directory);
  auto package = gpu::compileForGPU(module, program);
  if (!package)
    return package.takeError();
  if (package->manifest.empty())
    return makeNoProgramError();
  return gpu::writePackage(*package, directory);
}

MlirLogicalResult fiModuleWritePackage(MlirModule module, MlirStringRef program,
                                       MlirStringRef directory) {
  Diagnostics diagnostics(unwrap(module).getContext());
  llvm::Error error =
      writePackage(unwrap(module), unwrap(program), unwrap(directory));
  if (!error)
    return mlirLogicalResultSuccess();
  diagnostics.fail(std::move(error));
  return mlirLogicalResultFailure();
}

static llvm::Error translate(ModuleOp module, StringRef program,
                             FiCodeKind code, llvm::raw_ostream &os) {
  if (code != FI_CODE_LLVM_IR && code != FI_CODE_ASSEMBLY &&
      code != FI_CODE_MANIFEST)
    return createStringError("expected a kind of code (FiCodeKind), but got " +
                             Twine(int(code)));
  if (!isForGPU(module)) {
    auto print = code == FI_CODE_LLVM_IR    ? cpu::printLLVMIR
                 : code == FI_CODE_ASSEMBLY ? cpu::printAssembly
                                            : cpu::printManifest;
    return print(module, program, {}, os);
  }
  if (code == FI_CODE_LLVM_IR)
    return gpu::printLLVMIR(module, program, {}, os);
  gpu::CompileOptions options;
  options.assemble = false;
  auto package = gpu::compileForGPU(module, program, options);
  if (!package)
    return package.takeError();
  if (code == FI_CODE_MANIFEST && package->manifest.empty())
    return makeNoProgramError();
  os << (code == FI_CODE_MANIFEST ? package->manifest : package->ptx);
  return llvm::Error::success();
}

MlirLogicalResult fiModuleTranslate(MlirModule module, MlirStringRef program,
                                    FiCodeKind code,
                                    MlirStringCallback callback,
                                    void *userData) {
  Diagnostics diagnostics(unwrap(module).getContext());
  // Nothing is given of what fails half way.
  std::string text;
  llvm::raw_string_ostream os(text);
  if (llvm::Error error =
          translate(unwrap(module), unwrap(program), code, os)) {
    diagnostics.fail(std::move(error));
    return mlirLogicalResultFailure();
  }
  callback(wrap(StringRef(text)), userData);
  return mlirLogicalResultSuccess();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

namespace {

/// What a FiProgram points to: one of the two.
struct Program {
  std::unique_ptr<cpu::CompiledProgram> code;
  gpu::CompiledPackage package;
};

} // namespace

static Program &get(FiProgram program) {
  return *static_cast<Program *>(program.ptr);
}

static llvm::Error compile(ModuleOp module, const FiCompileOptions &given,
                           Program &program) {
  StringRef name = unwrap(given.program);
  if (!isForGPU(module)) {
    cpu::CompileOptions options;
    options.cache.enabled = !given.no_cache;
    auto code = cpu::CompiledProgram::compile(module, name, options);
    if (!code)
      return code.takeError();
    program.code = std::move(*code);
    return llvm::Error::success();
  }
  gpu::CompileOptions options;
  options.cache.enabled = !given.no_cache;
  options.assemble = !given.no_machine_code;
  auto package = gpu::compileForGPU(module, name, options);
  if (!package)
    return package.takeError();
  if (package->manifest.empty())
    return makeNoProgramError();
  program.package = std::move(*package);
  return llvm::Error::success();
}

FiProgram fiProgramCompile(MlirModule module, const FiCompileOptions *given) {
  Diagnostics diagnostics(unwrap(module).getContext());
  FiCompileOptions options = {};
  if (given) {
    // A later version of the structure may be longer, but not shorter.
    if (given->struct_size < sizeof(FiCompileOptions)) {
      diagnostics.fail(createStringError(
          "FiCompileOptions: expected struct_size of at least " +
          Twine(sizeof(FiCompileOptions)) + ", but got " +
          Twine(given->struct_size)));
      return FiProgram{nullptr};
    }
    options = *given;
  }
  auto program = std::make_unique<Program>();
  if (llvm::Error error = compile(unwrap(module), options, *program)) {
    diagnostics.fail(std::move(error));
    return FiProgram{nullptr};
  }
  return FiProgram{program.release()};
}

void fiProgramDestroy(FiProgram program) {
  delete static_cast<Program *>(program.ptr);
}

bool fiProgramIsForGPU(FiProgram program) { return !get(program).code; }

MlirStringRef fiProgramGetManifest(FiProgram program) {
  Program &it = get(program);
  return wrap(it.code ? it.code->getManifest()
                      : StringRef(it.package.manifest));
}

MlirStringRef fiProgramGetPTX(FiProgram program) {
  return wrap(StringRef(get(program).package.ptx));
}

MlirStringRef fiProgramGetMachineCode(FiProgram program) {
  return wrap(StringRef(get(program).package.cubin));
}

void *fiProgramLookup(void *program, const char *symbol) {
  const Program &it = *static_cast<Program *>(program);
  return it.code ? it.code->lookup(symbol) : nullptr;
}
