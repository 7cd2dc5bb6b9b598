//===- fi-compile.cpp - the packages of a model ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles the programs of a model for its targets, ahead of time and side by
// side. docs/fi-compile.md is the manual.
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "ToolMain.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/InitAll.h"
#include "fi/Model/Model.h"
#include "fi/Support/File.h"
#include "fi/Support/Parallel.h"
#include "fi/Target/PackageFiles.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <mutex>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options of fi-compile");
static cl::opt<std::string>
    inputPath(cl::Positional, cl::Required, cl::cat(category),
              cl::desc("MODEL.json (-: standard input)"));
static cl::opt<std::string>
    outputPath("o", cl::value_desc("directory"), cl::cat(category),
               cl::desc("Where to write the packages and model.json"));
static cl::opt<std::string>
    targetText("target", cl::value_desc("sm_80,sm_90a|all"), cl::cat(category),
               cl::desc("NVIDIA chips to compile for; several make packages "
                        "for several targets"));
static cl::opt<int64_t> pageSize("page-size", cl::init(0), cl::cat(category),
                                 cl::desc("Keys of a page (default: the "
                                          "model's)"));
static cl::opt<int64_t>
    tensorParallel("tensor-parallel", cl::init(0), cl::cat(category),
                   cl::desc("Ranks that share heads and gates (default: the "
                            "model's)"));
static cl::list<std::string>
    kvTypes("kv-dtypes", cl::CommaSeparated, cl::cat(category),
            cl::desc("What caches hold (default: the model's)"));
static cl::opt<unsigned>
    jobs("jobs", cl::init(0), cl::cat(category),
         cl::desc("Programs and targets at work at the same time (default: as "
                  "many as there are cores)"));
static cl::opt<bool> noCubin("no-cubin", cl::cat(category),
                             cl::desc("PTX alone, even where ptxas is found"));
static cl::opt<unsigned>
    maxKernels("max-kernels", cl::init(0), cl::cat(category),
               cl::desc("An error where a target has more kernels"));
static cl::opt<bool> quiet("quiet", cl::cat(category),
                           cl::desc("No progress on standard error"));
static cl::opt<bool> printPrograms("print-programs", cl::cat(category),
                                   cl::desc("The programs in MLIR, and nothing "
                                            "else"));

static const char *const overview =
    "fi-compile: makes the packages that a server of a model needs\n\n"
    "Reads the shapes of a model (JSON, docs/fi-compile.md), and compiles its\n"
    "programs: attention, appends, rotary embeddings, norms and gates.\n";
static const char *const examples =
    "\nEXAMPLES:\n\n"
    "  fi-compile llama-3.1-8b.json --target=sm_90a -o llama.fi\n"
    "      packages for one target; fi-run llama.fi/attention runs one\n"
    "  fi-compile llama-3.1-8b.json --target=sm_80,sm_90a --jobs=8 -o "
    "llama.fi\n"
    "      for two targets; the runtime takes the one for its device\n"
    "  fi-compile llama-3.1-8b.json --print-programs | less\n"
    "      what would be compiled\n";

namespace {

/// A program for a target.
struct Job {
  const model::Program *program;
  const sm::Target *target;
  gpu::CompiledPackage package;
  std::string failure;
};

} // namespace

static Expected<std::vector<const sm::Target *>> getTargets() {
  std::vector<const sm::Target *> targets;
  if (targetText == "all") {
    for (const sm::Target &target : sm::getTargets())
      targets.push_back(&target);
    return targets;
  }
  if (targetText.empty())
    return createStringError("--target: expected 'all' or some of " +
                             sm::getNames() + ", but got nothing");
  for (StringRef name : llvm::split(StringRef(targetText), ',')) {
    auto target = sm::find(name);
    if (!target)
      return createStringError("--target: " +
                               llvm::toString(target.takeError()));
    if (llvm::is_contained(targets, *target))
      return createStringError("--target: expected each target once, but got " +
                               name + " twice");
    targets.push_back(*target);
  }
  return targets;
}

static Error compile(Job &job, const mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  context.loadDialect<FIDialect>();
  // What is wrong is in the error; warnings are of schedules, and in reports.
  std::string why;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          why = diagnostic.str();
        return mlir::success();
      });
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(job.program->text, &context);
  if (!module)
    return createStringError(why);
  (*module)->setAttr(kTargetAttr, TargetAttr::get(&context, *job.target));
  gpu::CompileOptions options;
  options.assemble = !noCubin;
  auto package = gpu::compileForGPU(*module, "", options);
  if (!package)
    return package.takeError();
  job.package = std::move(*package);
  return Error::success();
}

/// Compiles all of them, and says so as they are done.
static void runJobs(std::vector<Job> &all) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  gpu::registerCompiler(registry);
  std::mutex mutex;
  size_t done = 0;
  auto work = [&](size_t i) {
    Job &job = all[i];
    auto begin = std::chrono::steady_clock::now();
    job.failure = llvm::toString(compile(job, registry));
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - begin;
    std::lock_guard<std::mutex> lock(mutex);
    ++done;
    if (!quiet)
      llvm::errs() << llvm::formatv(
          "[{0}/{1}] {2} {3}: {4} of PTX, {5:F2} s{6}\n", done, all.size(),
          job.target->name, job.program->name, job.package.ptx.size(),
          time.count(),
          !job.failure.empty()       ? ", failed"
          : job.package.times.cached ? ", from the cache"
                                     : "");
  };
  parallelFor(all.size(), work, jobs);
}

static constexpr llvm::StringLiteral kIndex = "model.json";

/// Whether the directory may be written: nothing is there, or what this tool
/// wrote.
static Error checkDirectory(StringRef directory) {
  if (!llvm::sys::fs::exists(directory) ||
      llvm::sys::fs::exists(inDirectory(directory, kIndex)))
    return Error::success();
  std::error_code code;
  if (llvm::sys::fs::is_directory(directory) &&
      llvm::sys::fs::directory_iterator(directory, code) ==
          llvm::sys::fs::directory_iterator())
    return Error::success();
  return createStringError("cannot write the packages to '" + directory +
                           "': something else than packages of a model is "
                           "there; name another directory");
}

static Error writeAll(std::vector<Job> &all, size_t targets,
                      StringRef directory, ModelReport &report) {
  for (size_t i = 0; i < all.size(); i += targets) {
    std::string path = inDirectory(directory, all[i].program->name);
    std::vector<std::pair<const sm::Target *, gpu::CompiledPackage>> packages;
    for (size_t t = 0; t < targets; ++t)
      packages.emplace_back(all[i + t].target, std::move(all[i + t].package));
    if (Error error = targets == 1
                          ? gpu::writePackage(packages.front().second, path)
                          : gpu::writePackages(packages, path))
      return error;
  }
  if (Error error = addFileSizes(directory, report))
    return error;
  return writeFile(inDirectory(directory, kIndex), [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}", report.toJSON()) << "\n";
  });
}

static Error runTool() {
  auto buffer = readFile(inputPath);
  if (!buffer)
    return buffer.takeError();
  model::Overrides overrides;
  overrides.kvTypes.assign(kvTypes.begin(), kvTypes.end());
  for (auto [option, to] :
       {std::pair(&pageSize, &overrides.pageSize),
        std::pair(&tensorParallel, &overrides.tensorParallel)}) {
    if (!option->getNumOccurrences())
      continue;
    *to = *option;
    if (*to < 1 || *to > 65536)
      return createStringError("--" + option->ArgStr +
                               ": expected 1 to 65536, but got " + Twine(*to));
  }
  auto model = model::parseModel((*buffer)->getBuffer(), inputPath, overrides);
  if (!model)
    return model.takeError();
  std::vector<model::Program> programs = model::makePrograms(*model);
  if (printPrograms) {
    for (const model::Program &program : programs)
      llvm::outs() << "// " << program.name << "\n" << program.text << "\n";
    return Error::success();
  }
  auto targets = getTargets();
  if (!targets)
    return targets.takeError();
  if (outputPath.empty())
    return createStringError("expected -o with a directory, but got none");
  StringRef directory = StringRef(outputPath).rtrim('/');
  if (Error error = checkDirectory(directory))
    return error;

  std::vector<Job> all;
  for (const model::Program &program : programs)
    for (const sm::Target *target : *targets)
      all.push_back({&program, target, {}, {}});
  runJobs(all);
  std::string failures;
  ModelReport report;
  report.model = model->name;
  for (const sm::Target *target : *targets)
    report.targets.push_back(target->name.str());
  for (const model::Program &program : programs)
    report.programs.push_back(program.name);
  for (const Job &job : all) {
    if (!job.failure.empty())
      failures +=
          (failures.empty() ? "" : "\nfi-compile: error: ") +
          (job.target->name + ": " + job.program->name + ": " + job.failure)
              .str();
    for (KernelReport &kernel :
         describeKernels(job.program->name, *job.target, job.package))
      report.kernels.push_back(std::move(kernel));
  }
  if (!failures.empty())
    return createStringError(failures);
  if (maxKernels && report.getKernelsPerTarget() > maxKernels)
    return createStringError("--max-kernels: expected at most " +
                             Twine(maxKernels) +
                             " kernels for a target, but '" + model->name +
                             "' has " + Twine(report.getKernelsPerTarget()));
  if (Error error =
          replacePackageDirectory(directory, [&](StringRef temporary) {
            return writeAll(all, targets->size(), temporary, report);
          }))
    return error;
  report.print(llvm::outs());
  return Error::success();
}

int main(int argc, char **argv) {
  return runToolMain(argc, argv, {"fi-compile", category, overview, examples},
                     runTool);
}
