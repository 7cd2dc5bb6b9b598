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

#include "ToolContext.h"
#include "ToolMain.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/Support/File.h"
#include "fi/Support/Parallel.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/PackageFiles.h"
#include "fi/Target/SMTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

namespace {
enum class Action { PTX, LLVMIR, Assembly, Manifest, Package, Explain };
} // namespace

static cl::OptionCategory category("Options of fi-translate");

static cl::opt<std::string> inputPath(cl::Positional, cl::init("-"),
                                      cl::desc("FILE.mlir (default: -)"),
                                      cl::cat(category));
static cl::opt<Action> action(
    cl::desc("What to make:"), cl::Required, cl::cat(category),
    cl::values(
        clEnumValN(Action::Package, "fi-to-package",
                   "a package: a directory with manifest.json and the kernels"),
        clEnumValN(Action::PTX, "fi-to-ptx",
                   "the kernels in PTX, for --target=sm_80 and the like"),
        clEnumValN(Action::Manifest, "fi-manifest",
                   "the package's manifest (JSON, docs/abi.md)"),
        clEnumValN(Action::Explain, "fi-explain",
                   "for people: the schedule of each kernel for a GPU, the "
                   "features of the target that it uses, and why not the "
                   "others"),
        clEnumValN(Action::LLVMIR, "fi-to-llvmir",
                   "the kernels in LLVM IR, optimised"),
        clEnumValN(Action::Assembly, "fi-to-asm",
                   "the kernels in assembly language (of a GPU: PTX)")));
static cl::opt<std::string>
    outputPath("o", cl::value_desc("file|directory"), cl::init("-"),
               cl::cat(category),
               cl::desc("Where to write (default: standard output; a package "
                        "needs a directory)"));
static cl::opt<std::string>
    programName("program", cl::value_desc("name"), cl::cat(category),
                cl::desc("The program, where the file has several"));
static cl::opt<std::string> targetText(
    "target", cl::value_desc("native|cpu|cuda|sm_80|...|#fi.target<...>"),
    cl::cat(category),
    cl::desc(
        "What to compile for: this machine (native); any x86-64 CPU with "
        "vectors of --vector-bits (cpu); this machine's GPU (cuda, and "
        "native with --fi-to-ptx); an NVIDIA chip (sm_75, sm_80, "
        "sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, "
        "sm_121a), several of them (sm_80,sm_90a; all), for --fi-to-ptx and "
        "--fi-to-package with a directory and for --fi-explain; "
        "an attribute, for example "
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
static cl::opt<bool>
    checked("checked", cl::cat(category),
            cl::desc("Kernels for GPUs check page indices and tell what they "
                     "are at work on, as with fi.checked on the module"));
static cl::opt<std::string> profile(
    "profile", cl::ValueOptional, cl::value_desc("phases|tiles"),
    cl::cat(category),
    cl::desc("Kernels for GPUs note when their phases begin (phases, the "
             "default), or each wait for a tile, too, as with fi.profile on "
             "the module"));
static cl::opt<bool> noLocations(
    "no-locations", cl::cat(category),
    cl::desc("PTX without .loc directives, which tell the line of each "
             "instruction in the input"));
static cl::opt<bool>
    noCubin("no-cubin", cl::cat(category),
            cl::desc("A package without machine code for the chip, even where "
                     "ptxas is found (FI_PTXAS, PATH, /usr/local/cuda)"));
static cl::opt<bool> printResources(
    "print-resources", cl::cat(category),
    cl::desc("On standard error, what ptxas says that each kernel uses"));
static cl::opt<bool>
    emitTiming("emit-timing", cl::cat(category),
               cl::desc("On standard error, the milliseconds of each phase of "
                        "compiling for a GPU"));
static cl::opt<unsigned> optLevel(
    "fi-opt-level", cl::value_desc("0..3"), cl::init(2), cl::cat(category),
    cl::desc("0: no optimiser; 3: all of LLVM's -O3; for a CPU 2: what kernels "
             "gain from (default); for a GPU 1: what kernels gain from "
             "(default), 2: and loop-invariant code motion"));

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
    "  fi-translate --fi-to-ptx llama.mlir --target=sm_90a --print-resources\n"
    "      what a GPU is given, and what ptxas makes of it\n"
    "  fi-opt --fi-prepare --fi-lower-to-tile llama.mlir | fi-translate "
    "--fi-to-llvmir\n"
    "      LLVM IR of kernels at level 2\n";

/// The compute capability of this machine's first GPU.
static std::optional<std::pair<unsigned, unsigned>> getCapability() {
  const fi_driver *driver = nullptr;
  fi_driver_device info;
  if (fi_cuda_driver(&driver) != FI_OK ||
      driver->device_info(driver->self, 0, &info) != FI_DRIVER_OK)
    return std::nullopt;
  return std::make_pair(unsigned(info.compute_major),
                        unsigned(info.compute_minor));
}

/// The target of the command line; null: the module's.
static Expected<TargetAttr> getTarget(mlir::MLIRContext &context) {
  StringRef text = targetText;
  bool isGiven = vectorBits.getNumOccurrences() > 0;
  if (text != "cpu" && isGiven)
    return createStringError("--vector-bits: expected --target=cpu beside it");
  if (text.empty())
    return TargetAttr();
  if (text == "cuda" || (text == "native" && action == Action::PTX)) {
    auto chip = sm::findNative(getCapability);
    if (!chip)
      return chip.takeError();
    return TargetAttr::get(&context, **chip);
  }
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
  return createStringError("--target: expected native, cpu, cuda, "
                           "#fi.target<...> or one of " +
                           sm::getNames() + ", but got '" + text + "'" +
                           sm::getHint(text));
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

static void printReports(const gpu::CompiledPackage &package) {
  llvm::raw_ostream &os = llvm::errs();
  if (printResources) {
    for (const nvptx::KernelResources &kernel : package.resources)
      os << kernel.kernel << ": " << kernel.registers << " registers, "
         << kernel.stack << " bytes of stack, " << kernel.spillStores
         << " bytes of spill stores, " << kernel.spillLoads
         << " bytes of spill loads, " << kernel.staticShared
         << " bytes of static shared memory, " << kernel.barriers
         << " barriers\n";
    for (const std::string &warning : package.warnings)
      os << "warning: ptxas: " << warning << "\n";
    if (!package.cubinMissing.empty())
      os << "no machine code, so no resources: " << package.cubinMissing
         << "\n";
  }
  if (emitTiming) {
    const gpu::CompileTimes &times = package.times;
    os << llvm::formatv("prepare {0:F1} ms, lower {1:F1} ms, ", times.prepare,
                        times.lower)
       << llvm::formatv("convert {0:F1} ms, translate {1:F1} ms, ",
                        times.emit.convert, times.emit.translate)
       << llvm::formatv("optimise {0:F1} ms, generate {1:F1} ms, ",
                        times.emit.optimise, times.emit.codegen)
       << llvm::formatv("assemble {0:F1} ms, total {1:F1} ms{2}\n",
                        times.assemble, times.total,
                        times.cached ? ", from the cache" : "");
  }
}

static constexpr llvm::StringLiteral kNoProgram =
    "expected a module with an fi.program (or, at a later level, with its "
    "fi_tile.package), but got none";

/// What the command line says of a module.
static void setAttributes(mlir::ModuleOp module, TargetAttr target) {
  if (target)
    module->setAttr(kTargetAttr, target);
  if (checked)
    module->setAttr(kCheckedAttr, mlir::UnitAttr::get(module.getContext()));
  if (profile.getNumOccurrences())
    module->setAttr(
        kProfileAttr,
        mlir::StringAttr::get(module.getContext(),
                              profile.empty() ? "phases" : profile.c_str()));
}

static gpu::CompileOptions getGPUOptions() {
  gpu::CompileOptions options;
  if (optLevel.getNumOccurrences())
    options.emit.optLevel = optLevel;
  options.emit.ptx = ptxVersion;
  options.emit.locations = !noLocations;
  // PTX alone does not need ptxas.
  options.assemble = (action == Action::Package && !noCubin) ||
                     action == Action::Manifest || printResources;
  // What is asked for here is what the compiler makes, not what it once made.
  options.cache.enabled = false;
  return options;
}

static Error runForGPU(mlir::ModuleOp module) {
  gpu::CompileOptions options = getGPUOptions();
  bool isPackage = action == Action::Package;
  if (isPackage)
    if (Error error = checkPackageDirectory(outputPath))
      return error;
  std::string text;
  llvm::raw_string_ostream os(text);
  if (action == Action::LLVMIR) {
    if (Error error = gpu::printLLVMIR(module, programName, options, os))
      return error;
  } else {
    auto package = gpu::compileForGPU(module, programName, options);
    if (!package)
      return package.takeError();
    printReports(*package);
    if (action != Action::PTX && action != Action::Assembly &&
        package->manifest.empty())
      return createStringError(kNoProgram);
    if (isPackage) {
      if (!package->cubinMissing.empty() && !noCubin)
        llvm::errs() << "fi-translate: note: the package has no machine code: "
                     << package->cubinMissing << "\n";
      return gpu::writePackage(*package, outputPath);
    }
    os << (action == Action::Manifest  ? package->manifest
           : action == Action::Explain ? package->explanation
                                       : package->ptx);
  }
  return writeFile(outputPath, [&](llvm::raw_ostream &out) { out << text; });
}

/// The chips of `sm_80,sm_90a` or of `all`, none of nothing.
static Expected<std::vector<const sm::Target *>> getChips(StringRef text) {
  std::vector<const sm::Target *> chips;
  if (text == "all") {
    for (const sm::Target &chip : sm::getTargets())
      chips.push_back(&chip);
    return chips;
  }
  for (StringRef name : llvm::split(text, ',')) {
    if (text.empty())
      break;
    auto chip = sm::find(name);
    if (!chip)
      return createStringError("--target: " + llvm::toString(chip.takeError()));
    if (llvm::is_contained(chips, *chip))
      return createStringError("--target: expected each target once, but got " +
                               name + " twice");
    chips.push_back(*chip);
  }
  return chips;
}

namespace {

/// What was made for one of several chips.
struct ChipResult {
  gpu::CompiledPackage package;
  /// What the compiler says, and why it failed.
  std::string messages, failure;
};

} // namespace

/// Compiles the input for each chip, side by side: a context works on one thing
/// at a time, so each has its own. Prints what the compiler says, in order.
static std::vector<ChipResult>
compileForAll(const llvm::MemoryBuffer &input,
              const mlir::DialectRegistry &registry,
              llvm::ArrayRef<const sm::Target *> chips) {
  std::vector<ChipResult> results(chips.size());
  parallelFor(chips.size(), [&](size_t i) {
    ChipResult &result = results[i];
    llvm::raw_string_ostream os(result.messages);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.printOpOnDiagnostic(false);
    // Programs without an operation of it have a target, too.
    context.loadDialect<FIDialect>();
    auto manager = std::make_shared<llvm::SourceMgr>();
    manager->AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer(input.getMemBufferRef()),
        llvm::SMLoc());
    mlir::SourceMgrDiagnosticHandler handler(*manager, &context, os);
    auto module = mlir::parseSourceFile<mlir::ModuleOp>(*manager, &context);
    if (!module) {
      result.failure = "'" + inputPath + "' is not a valid program";
      return;
    }
    setAttributes(*module, TargetAttr::get(&context, *chips[i]));
    auto package = gpu::compileForGPU(*module, programName, getGPUOptions());
    if (package)
      result.package = std::move(*package);
    else
      result.failure = llvm::toString(package.takeError());
  });
  for (const ChipResult &result : results) {
    llvm::errs() << result.messages;
    if (result.failure.empty())
      printReports(result.package);
  }
  return results;
}

/// What a chip cannot do is an error.
static Error checkCompiled(const sm::Target &chip, const ChipResult &result) {
  if (!result.failure.empty())
    return createStringError(chip.name + ": " + result.failure);
  if (result.package.manifest.empty())
    return createStringError(kNoProgram);
  return Error::success();
}

/// One package for several chips.
static Error packageForAll(const llvm::MemoryBuffer &input,
                           const mlir::DialectRegistry &registry,
                           llvm::ArrayRef<const sm::Target *> chips) {
  if (Error error = checkPackageDirectory(outputPath))
    return error;
  std::vector<std::pair<const sm::Target *, gpu::CompiledPackage>> packages;
  auto results = compileForAll(input, registry, chips);
  for (auto [chip, result] : llvm::zip(chips, results)) {
    if (Error error = checkCompiled(*chip, result))
      return error;
    packages.emplace_back(chip, std::move(result.package));
  }
  return gpu::writePackages(packages, outputPath);
}

/// What there is to say of each chip.
static Error explainForAll(const llvm::MemoryBuffer &input,
                           const mlir::DialectRegistry &registry,
                           llvm::ArrayRef<const sm::Target *> chips) {
  std::string text;
  auto results = compileForAll(input, registry, chips);
  for (auto [chip, result] : llvm::zip(chips, results)) {
    if (Error error = checkCompiled(*chip, result))
      return error;
    text += result.package.explanation;
  }
  return writeFile(outputPath, [&](llvm::raw_ostream &out) { out << text; });
}

/// PTX for each chip: DIR/sm_80.ptx and so on. What a chip cannot do does not
/// stop the others.
static Error printForAll(const llvm::MemoryBuffer &input,
                         const mlir::DialectRegistry &registry,
                         llvm::ArrayRef<const sm::Target *> chips) {
  if (std::error_code code = llvm::sys::fs::create_directories(outputPath))
    return createStringError("cannot make '" + outputPath +
                             "': " + code.message());
  std::string failures;
  auto results = compileForAll(input, registry, chips);
  for (auto [chip, result] : llvm::zip(chips, results)) {
    std::string failure = result.failure;
    const std::string &ptx = result.package.ptx;
    if (failure.empty())
      failure = llvm::toString(
          writeFile(inDirectory(outputPath, (chip->name + ".ptx").str()),
                    [&](llvm::raw_ostream &out) { out << ptx; }));
    if (!failure.empty())
      failures += (failures.empty() ? "" : "\nfi-translate: error: ") +
                  (chip->name + ": " + failure).str();
  }
  return failures.empty() ? Error::success() : createStringError(failures);
}

static Error runTool() {
  if (optLevel > 3)
    return createStringError("--fi-opt-level: expected 0 to 3, but got " +
                             Twine(optLevel));
  bool isPackage = action == Action::Package;
  if (isPackage && outputPath == "-")
    return createStringError("--fi-to-package: expected -o with a directory, "
                             "but got none");
  bool isForAll =
      targetText == "all" || (StringRef(targetText).contains(',') &&
                              !StringRef(targetText).starts_with("#"));
  bool isExplanation = action == Action::Explain;
  if (isForAll && !isExplanation &&
      ((action != Action::PTX && !isPackage) || outputPath == "-"))
    return createStringError("--target=" + targetText +
                             ": expected --fi-to-ptx or --fi-to-package and -o "
                             "with a directory, or --fi-explain");
  auto chips = getChips(isForAll ? targetText.getValue() : "");
  if (!chips)
    return chips.takeError();
  ToolContext toolContext;
  mlir::MLIRContext &context = toolContext.get();
  context.loadDialect<FIDialect>();
  Expected<TargetAttr> target = isForAll ? TargetAttr() : getTarget(context);
  if (!target)
    return target.takeError();

  auto buffer = readFile(inputPath);
  if (!buffer)
    return buffer.takeError();
  if (Error error = checkNesting((*buffer)->getBuffer(), inputPath))
    return error;
  auto manager = std::make_shared<llvm::SourceMgr>();
  manager->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*manager, &context, llvm::errs());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(*manager, &context);
  if (!module)
    return createStringError("'" + inputPath + "' is not a valid program");
  setAttributes(*module, *target);
  if (isForAll) {
    const llvm::MemoryBuffer &input =
        *manager->getMemoryBuffer(manager->getMainFileID());
    const mlir::DialectRegistry &registry = toolContext.getRegistry();
    return isPackage       ? packageForAll(input, registry, *chips)
           : isExplanation ? explainForAll(input, registry, *chips)
                           : printForAll(input, registry, *chips);
  }
  auto attr = (*module)->getAttrOfType<TargetAttr>(kTargetAttr);
  if (attr && attr.getChip())
    return runForGPU(*module);
  if (action == Action::PTX || isExplanation)
    return createStringError(
        Twine(isExplanation ? "--fi-explain" : "--fi-to-ptx") +
        ": expected --target with one of " + sm::getNames());
  cpu::CompileOptions options;
  options.optLevel = optLevel;
  if (isPackage)
    return cpu::writePackage(*module, programName, options, outputPath);
  std::string text;
  llvm::raw_string_ostream os(text);
  auto print = action == Action::LLVMIR     ? cpu::printLLVMIR
               : action == Action::Assembly ? cpu::printAssembly
                                            : cpu::printManifest;
  if (Error error = print(*module, programName, options, os))
    return error;
  return writeFile(outputPath, [&](llvm::raw_ostream &out) { out << text; });
}

int main(int argc, char **argv) {
  return runToolMain(argc, argv, {"fi-translate", category, overview, examples},
                     runTool);
}
