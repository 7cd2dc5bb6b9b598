//===- fi-translate.cpp - programs to code and packages -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes a program out of MLIR: LLVM IR, assembly language, a manifest, or a
// package that the runtime opens. docs/packages.md is the manual. Its output
// may be a directory, so the driver is not mlir-translate's.
//
//===----------------------------------------------------------------------===//

#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/NVPTX/EmitPTX.h"
#include "fi/Target/SMTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

namespace {
enum class Action { PTX, LLVMIR, Assembly, Manifest, Package };
} // namespace

static cl::OptionCategory category("Options of fi-translate");

static cl::opt<std::string> inputPath(cl::Positional, cl::init("-"),
                                      cl::desc("FILE.mlir (default: -)"),
                                      cl::cat(category));
static cl::opt<Action> action(
    cl::desc("What to make:"), cl::Required, cl::cat(category),
    cl::values(
        clEnumValN(Action::Package, "fi-to-package",
                   "a package: a directory with manifest.json and kernels.so"),
        clEnumValN(Action::PTX, "fi-to-ptx",
                   "the kernels in PTX, for --target=sm_80 and the like"),
        clEnumValN(Action::Manifest, "fi-manifest",
                   "the package's manifest (JSON, docs/abi.md)"),
        clEnumValN(Action::LLVMIR, "fi-to-llvmir",
                   "the kernels in LLVM IR, optimised"),
        clEnumValN(Action::Assembly, "fi-to-asm",
                   "the kernels in assembly language")));
static cl::opt<std::string>
    outputPath("o", cl::value_desc("file|directory"), cl::init("-"),
               cl::cat(category),
               cl::desc("Where to write (default: standard output; a package "
                        "needs a directory)"));
static cl::opt<std::string>
    programName("program", cl::value_desc("name"), cl::cat(category),
                cl::desc("The program, where the file has several"));
static cl::opt<std::string> targetText(
    "target", cl::value_desc("native|cpu|sm_80|...|#fi.target<...>"),
    cl::cat(category),
    cl::desc("What to compile for: this machine (native); any x86-64 CPU with "
             "vectors of --vector-bits (cpu); an NVIDIA chip (sm_75, sm_80, "
             "sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, "
             "sm_121a); an attribute, for example "
             "'#fi.target<cpu, vector_bits = 512, bf16_dot>' (default: the "
             "module's fi.target, else native)"));
static cl::opt<unsigned> vectorBits(
    "vector-bits", cl::value_desc("128|256|512"), cl::init(256),
    cl::cat(category),
    cl::desc("Width of the vectors of --target=cpu (default 256: x86-64-v3)"));
static cl::opt<unsigned>
    ptxVersion("ptx-version", cl::value_desc("74|80|..."), cl::init(0),
               cl::cat(category),
               cl::desc("Version of the PTX ISA, times ten (default: the "
                        "lowest that the target's kernels need)"));
static cl::opt<bool> noLocations(
    "no-locations", cl::cat(category),
    cl::desc("PTX without .loc directives, which tell the line of each "
             "instruction in the input"));
static cl::opt<unsigned> optLevel("fi-opt-level", cl::value_desc("0..3"),
                                  cl::init(2), cl::cat(category),
                                  cl::desc("0: no optimiser; 2: what kernels "
                                           "gain from (default); 3: all of "
                                           "LLVM's -O3"));

static const char *const overview =
    "fi-translate: makes code and packages of attention programs\n\n"
    "Reads MLIR text or bytecode with a fi.program; the output of a later "
    "stage\n"
    "of fi-opt will do as well, while it has its fi_tile.package.\n";

static const char *const examples =
    "\nEXAMPLES:\n\n"
    "  fi-translate --fi-to-package llama.mlir -o llama.fipkg\n"
    "      a package for this machine; fi-run llama.fipkg runs it\n"
    "  fi-translate --fi-to-package llama.mlir -o old.fipkg --target=cpu "
    "--vector-bits=256\n"
    "      a package for any machine with AVX2\n"
    "  fi-translate --fi-manifest llama.mlir\n"
    "      what the runtime is told of the program\n"
    "  fi-translate --fi-to-asm llama.mlir --program=decode | less\n"
    "      what the processor executes\n"
    "  fi-opt --fi-prepare --fi-lower-to-tile llama.mlir | fi-translate "
    "--fi-to-llvmir\n"
    "      LLVM IR of kernels at level 2\n";

/// The target of the command line; null: the module's.
static Expected<TargetAttr> getTarget(mlir::MLIRContext &context) {
  StringRef text = targetText;
  bool isGiven = vectorBits.getNumOccurrences() > 0;
  if (text != "cpu" && isGiven)
    return createStringError("--vector-bits: expected --target=cpu beside it");
  if (text.empty())
    return TargetAttr();
  if (text == "native")
    return cpu::getHostTarget(&context);
  if (text == "cpu") {
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
      return createStringError("--vector-bits: expected 128, 256 or 512, but "
                               "got " +
                               Twine(vectorBits));
    return TargetAttr::get(&context, mlir::StringAttr::get(&context, "cpu"),
                           vectorBits, /*bf16Dot=*/false);
  }
  if (text.starts_with("#fi.target")) {
    std::string why;
    mlir::ScopedDiagnosticHandler handler(
        &context,
        [&](mlir::Diagnostic &diagnostic) { why = diagnostic.str(); });
    auto attr = llvm::dyn_cast_or_null<TargetAttr>(
        mlir::parseAttribute(text, &context));
    if (attr)
      return attr;
    return createStringError("--target: " +
                             (why.empty() ? Twine("not a target") : why));
  }
  if (const sm::Target *chip = sm::lookup(text))
    return TargetAttr::get(&context, *chip);
  return createStringError("--target: expected native, cpu, #fi.target<...> or "
                           "one of " +
                           sm::getNames() + ", but got '" + text + "'" +
                           sm::getHint(text));
}

/// Like emitPTX.
static Expected<std::string> emitLLVMIR(mlir::ModuleOp module,
                                        const sm::Target &chip,
                                        const nvptx::EmitOptions &options,
                                        nvptx::EmitTimes *) {
  return nvptx::emitLLVMIR(module, chip, options);
}

static Error runTool() {
  if (optLevel > 3)
    return createStringError("--fi-opt-level: expected 0 to 3, but got " +
                             Twine(optLevel));
  bool isPackage = action == Action::Package;
  if (isPackage && outputPath == "-")
    return createStringError("--fi-to-package: expected -o with a directory, "
                             "but got none");
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  cpu::registerCompiler(registry);
  nvptx::registerEmitter(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<FIDialect>();
  auto target = getTarget(context);
  if (!target)
    return target.takeError();

  auto buffer = readFile(inputPath);
  if (!buffer)
    return buffer.takeError();
  auto manager = std::make_shared<llvm::SourceMgr>();
  manager->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*manager, &context, llvm::errs());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(*manager, &context);
  if (!module)
    return createStringError("'" + inputPath + "' is not a valid program");
  if (*target)
    (*module)->setAttr(kTargetAttr, *target);

  cpu::CompileOptions options;
  options.optLevel = optLevel;
  if (isPackage)
    return cpu::writePackage(*module, programName, options, outputPath);
  std::string text;
  llvm::raw_string_ostream os(text);
  auto attr = (*module)->getAttrOfType<TargetAttr>(kTargetAttr);
  const sm::Target *chip = attr ? attr.getChip() : nullptr;
  if (action == Action::PTX && !chip)
    return createStringError("--fi-to-ptx: expected --target with one of " +
                             sm::getNames());
  if (chip && (action == Action::PTX || action == Action::LLVMIR)) {
    nvptx::EmitOptions emit;
    emit.optLevel = optLevel.getNumOccurrences() ? optLevel : 3u;
    emit.ptx = ptxVersion;
    emit.locations = !noLocations;
    auto result = (action == Action::PTX ? nvptx::emitPTX : emitLLVMIR)(
        *module, *chip, emit, nullptr);
    if (!result)
      return result.takeError();
    return writeFile(outputPath,
                     [&](llvm::raw_ostream &out) { out << *result; });
  }
  auto print = action == Action::LLVMIR     ? cpu::printLLVMIR
               : action == Action::Assembly ? cpu::printAssembly
                                            : cpu::printManifest;
  if (Error error = print(*module, programName, options, os))
    return error;
  return writeFile(outputPath, [&](llvm::raw_ostream &out) { out << text; });
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::extrahelp help(examples);
  cl::ParseCommandLineOptions(argc, argv, overview);
  if (Error error = runTool()) {
    llvm::errs() << "fi-translate: error: " << llvm::toString(std::move(error))
                 << '\n';
    return 1;
  }
  return 0;
}
