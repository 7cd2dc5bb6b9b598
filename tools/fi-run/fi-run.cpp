//===- fi-run.cpp - runs a program on tensors -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a program or a package and a batch, runs it on one backend, and shows,
// saves or compares the results. docs/fi-run.md is the manual.
//
//===----------------------------------------------------------------------===//

#include "Report.h"
#include "ToolContext.h"
#include "ToolMain.h"
#include "fi/Execution/Compare.h"
#include "fi/Execution/Executor.h"
#include "fi/Execution/Inputs.h"
#include "fi/Support/Batch.h"
#include "fi/Support/File.h"
#include "fi/Support/Npy.h"
#include "fi/Support/SchedulePlot.h"
#include "fi/Support/Timeline.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static cl::OptionCategory category("Options of fi-run");

static cl::opt<std::string>
    inputPath(cl::Positional, cl::desc("FILE.mlir|PACKAGE"), cl::cat(category));
static cl::opt<std::string>
    programName("program", cl::value_desc("name"), cl::cat(category),
                cl::desc("The program to run, where the file has several"));
static cl::opt<std::string> batchPath(
    "batch", cl::value_desc("file.json|file.csv"), cl::cat(category),
    cl::desc("The batch: values of arguments, or lengths of requests (default: "
             "the .json beside the program's file, if there is one)"));
static cl::list<std::string>
    tensorFiles("tensor", cl::value_desc("name=file.npy"), cl::cat(category),
                cl::desc("Value of one argument, before the batch's"));
static cl::opt<std::string>
    archivePath("npz", cl::value_desc("file.npz"), cl::cat(category),
                cl::desc("Values of the arguments that the archive names"));
static cl::opt<uint64_t>
    seed("seed", cl::value_desc("n"), cl::init(1), cl::cat(category),
         cl::desc("Seed of what has no value, where the batch states none "
                  "(default 1)"));
static cl::opt<bool> nanUnused(
    "nan-unused", cl::init(true), cl::cat(category),
    cl::desc("Fill what no request uses of made pools with NaN (default on)"));

static cl::opt<std::string> backendName(
    "backend", cl::value_desc("name"), cl::cat(category),
    cl::desc("cpu: compiled for this machine; cuda: for its GPU (cuda:1 for "
             "another one); emulated:CHIP: for a chip such as sm_80, run on "
             "the CPU with checks; level2: its kernels interpreted; reference: "
             "the program interpreted in double (default: cpu; for a package "
             "for GPUs: cuda)"));
static cl::opt<bool> listBackends(
    "list-backends", cl::cat(category),
    cl::desc("Print the backends, and whether they are here, and stop"));
static cl::list<std::string> compareNames(
    "compare", cl::CommaSeparated, cl::value_desc("backend,..."),
    cl::cat(category),
    cl::desc("Run these backends too and compare; ends with 1 if a difference "
             "exceeds what rounding explains"));
static cl::opt<std::string>
    sourcePath("source", cl::value_desc("file.mlir"), cl::cat(category),
               cl::desc("The text of a package's program, for --compare"));
static cl::opt<int64_t> sampleCount(
    "sample", cl::value_desc("n"), cl::init(0), cl::cat(category),
    cl::desc("Compare n rows and heads, chosen by the seed (default: all)"));
static cl::opt<int>
    workers("workers", cl::value_desc("n"), cl::init(0), cl::cat(category),
            cl::desc("Threads (default: one a core), or CTAs of "
                     "a GPU (default: what it holds)"));
static cl::opt<std::string> splitText(
    "split", cl::value_desc("balanced|fixed:N|none"), cl::cat(category),
    cl::desc("How the plan cuts the keys of a request (default: as the program "
             "says)"));

static cl::opt<bool>
    checked("checked", cl::cat(category),
            cl::desc("Kernels for GPUs check page indices and tell what they "
                     "are at work on, as with fi.checked on the module"));
static cl::opt<std::string> profile(
    "profile", cl::ValueOptional, cl::value_desc("phases|tiles"),
    cl::cat(category),
    cl::desc("Kernels for GPUs note when their phases begin (phases, the "
             "default), or each wait for a tile, too, as with fi.profile on "
             "the module; prints where the time went"));
static cl::opt<std::string> timelinePath(
    "timeline", cl::value_desc("trace.json"), cl::cat(category),
    cl::desc("Write what the warps of a profiled program did when, for "
             "Chrome's and Perfetto's viewers"));
static cl::opt<int64_t>
    profileBytes("profile-bytes", cl::value_desc("n"), cl::init(0),
                 cl::cat(category),
                 cl::desc("Most bytes of device memory for the log of a "
                          "profiled program (default 256 MiB)"));
static cl::opt<std::string>
    timelinePlotPath("plot-timeline", cl::value_desc("file.svg"),
                     cl::cat(category),
                     cl::desc("Draw what the warps of a profiled program did "
                              "when"));
static cl::opt<bool>
    print("print", cl::cat(category),
          cl::desc("Print rows, visible keys, log-sum-exp and outputs"));
static cl::opt<bool> explain("explain", cl::cat(category),
                             cl::desc("Print what the plan chose and why"));
static cl::opt<bool> timing("timing", cl::cat(category),
                            cl::desc("Print the times of compiling, planning "
                                     "and running (of a GPU: between events "
                                     "in its stream)"));
static cl::opt<unsigned> repeat(
    "repeat", cl::value_desc("n"), cl::init(1), cl::cat(category),
    cl::desc("Run n times and print the fastest time (programs that append "
             "run once)"));
static cl::opt<std::string> plotPath("plot-schedule",
                                     cl::value_desc("file.svg"),
                                     cl::cat(category),
                                     cl::desc("Draw the plan's schedule"));
static cl::opt<std::string>
    savePath("save", cl::value_desc("file.npz"), cl::cat(category),
             cl::desc("Save results, and pools that the program writes"));

static const char *const overview =
    "fi-run: runs an attention program on tensors\n\n"
    "The program is MLIR text with a fi.program, or a compiled package. Its "
    "plan\n"
    "arguments come from the batch; run arguments without a value are seeded\n"
    "normal numbers of the shape that follows from the batch.\n";

static const char *const examples =
    "\nEXAMPLES:\n\n"
    "  fi-run examples/three-requests.mlir --compare=reference --print\n"
    "      run the batch beside the file, show each request's rows\n"
    "  fi-run llama.mlir --batch=requests.csv --explain --plot-schedule=s.svg\n"
    "      make tables for the lengths in requests.csv (columns "
    "q_len,kv_len),\n"
    "      say what the plan chose, draw it\n"
    "  fi-run llama.mlir --batch=b.json --tensor q=q.npy --save=out.npz\n"
    "      take the query from a file, save the results\n"
    "  fi-run examples/three-requests-half.mlir \\\n"
    "      --backend=emulated:sm_80 --compare=reference\n"
    "      code for an A100, executed and checked on the CPU\n"
    "  fi-run llama.fipkg --batch=b.json --timing --repeat=20\n"
    "      run a package, without the compiler\n";

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

static Expected<mlir::OwningOpRef<mlir::ModuleOp>>
parseModule(StringRef path, mlir::MLIRContext &context) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  if (Error error = checkNesting((*buffer)->getBuffer(), path))
    return std::move(error);
  auto manager = std::make_shared<llvm::SourceMgr>();
  manager->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(*manager, &context, llvm::errs());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(*manager, &context);
  if (!module)
    return createStringError("'" + path + "' is not a valid program");
  return module;
}

static Expected<Batch> findBatch() {
  std::string path = batchPath;
  if (path.empty() && StringRef(inputPath).ends_with(".mlir")) {
    llvm::SmallString<128> beside = StringRef(inputPath);
    llvm::sys::path::replace_extension(beside, ".json");
    if (llvm::sys::fs::exists(beside))
      path = beside.str().str();
  }
  if (path.empty())
    return Batch();
  return readBatch(path);
}

static Error readTensors(std::vector<NamedTensor> &tensors) {
  for (const std::string &text : tensorFiles) {
    auto [name, path] = StringRef(text).split('=');
    if (name.empty() || path.empty())
      return createStringError("--tensor: expected name=file.npy, but got '" +
                               Twine(text) + "'");
    auto tensor = readNpy(path);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back({name.str(), std::move(*tensor)});
  }
  if (archivePath.empty())
    return Error::success();
  auto archive = readNpz(archivePath);
  if (!archive)
    return archive.takeError();
  for (NamedTensor &tensor : *archive)
    if (llvm::none_of(tensors, [&](const NamedTensor &given) {
          return given.name == tensor.name;
        }))
      tensors.push_back(std::move(tensor));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static Error runOn(Executor &executor, llvm::ArrayRef<HostValue> inputs,
                   BackendRun &out) {
  const Signature &signature = executor.getSignature();
  out.backend = executor.getName().str();
  out.arguments = takeArguments(signature, inputs);
  auto results = executor.allocateResults(out.arguments);
  if (!results)
    return results.takeError();
  out.results = std::move(*results);
  if (Error error = executor.plan(out.arguments))
    return error;
  unsigned runs = writesArguments(signature) ? 1 : std::max(1u, +repeat);
  if (Error error = executor.runOnHost(out.arguments, out.results, runs))
    return error;
  out.visibleKeys = executor.getVisibleKeys().vec();
  out.transformedScores = executor.getTransformedScores().vec();
  out.weightedSums = executor.getWeightedSums().vec();
  out.queries = executor.getQueries().vec();
  out.tolerances = executor.getTolerances().vec();
  out.argumentTolerances = executor.getArgumentTolerances().vec();
  if (timing) {
    const ExecutorTimes &times = executor.getTimes();
    llvm::outs() << "time on " << out.backend << ": ";
    if (times.compile > 0)
      llvm::outs() << llvm::format("compile %.1f ms%s, ", times.compile,
                                   times.cached ? " (cached)" : "");
    llvm::outs() << llvm::format("plan %.3f ms, run %.3f ms", times.plan,
                                 times.run);
    if (runs > 1)
      llvm::outs() << " (fastest of " << runs << ")";
    llvm::outs() << '\n';
  }
  return Error::success();
}

static Error save(const Signature &signature, const BackendRun &run) {
  std::vector<NamedTensor> tensors;
  for (auto [info, tensor] : llvm::zip(signature.results, run.results))
    tensors.push_back({info.name, tensor});
  if (writesArguments(signature))
    for (auto [info, value] : llvm::zip(signature.arguments, run.arguments))
      if (info.kind == ArgumentInfo::Kind::Pool)
        tensors.push_back({info.name, value.getTensor()});
  return writeNpz(savePath, tensors);
}

/// Prints, writes and draws what the warps of the last run did when.
static Error tellTimeline(Executor &executor) {
  auto json = executor.getTimelineJson();
  if (!json)
    return json.takeError();
  auto summary = summarizeTimeline(*json);
  if (!summary)
    return summary.takeError();
  llvm::outs() << *summary;
  auto write = [](StringRef path, const std::string &text) -> Error {
    return writeFile(path, [&](llvm::raw_ostream &stream) { stream << text; });
  };
  if (!timelinePath.empty())
    if (Error error = write(timelinePath, *json))
      return error;
  if (timelinePlotPath.empty())
    return Error::success();
  auto picture = plotTimeline(*json);
  if (!picture)
    return picture.takeError();
  return write(timelinePlotPath, *picture);
}

/// A package and the text it is compared with must be the same program.
static Error checkSameArguments(const Signature &package,
                                const Signature &text) {
  bool isSame = package.arguments.size() == text.arguments.size() &&
                package.results.size() == text.results.size();
  for (size_t i = 0; isSame && i < text.arguments.size(); ++i)
    isSame = package.arguments[i].name == text.arguments[i].name &&
             package.arguments[i].isPlan == text.arguments[i].isPlan &&
             package.arguments[i].type == text.arguments[i].type &&
             package.arguments[i].shape == text.arguments[i].shape;
  if (isSame)
    return Error::success();
  return createStringError("--source: program '" + package.program +
                           "' of the text has other arguments than the "
                           "package; give the text that it was compiled from");
}

static Expected<bool> runTool() {
  if (listBackends) {
    llvm::outs() << Executor::describeBackends();
    return true;
  }
  if (inputPath.empty())
    return createStringError("expected a program (FILE.mlir) or a package as "
                             "the first argument, but got none; --help shows "
                             "examples");
  auto split = parseSplit(splitText);
  if (!split)
    return createStringError("--" + llvm::toString(split.takeError()));
  if (workers < 0 || workers > 4096)
    return createStringError("--workers: expected 0 to 4096, but got " +
                             Twine(workers));
  if (sampleCount < 0)
    return createStringError("--sample: expected at least 0, but got " +
                             Twine(sampleCount));
  ExecutorOptions options;
  options.workers = workers;
  options.profileBytes = profileBytes;
  std::tie(options.split, options.splitKeys) = *split;

  auto batch = findBatch();
  if (!batch)
    return batch.takeError();
  std::string name = programName.empty() ? batch->program : programName;

  ToolContext toolContext;
  mlir::MLIRContext &context = toolContext.get();
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool isPackage = llvm::sys::fs::is_directory(inputPath);
  std::string textPath = isPackage ? sourcePath : inputPath;
  if (!textPath.empty()) {
    auto parsed = parseModule(textPath, context);
    if (!parsed)
      return parsed.takeError();
    module = std::move(*parsed);
  }
  if (checked && isPackage)
    return createStringError("--checked: expected a program's text, but got a "
                             "package, which has the checks that it was "
                             "compiled with; use fi-translate --checked");
  if (checked)
    (*module)->setAttr(kCheckedAttr, mlir::UnitAttr::get(&context));
  bool wantsTimeline = profile.getNumOccurrences() || !timelinePath.empty() ||
                       !timelinePlotPath.empty();
  if (profile.getNumOccurrences() && isPackage)
    return createStringError("--profile: expected a program's text, but got a "
                             "package, whose kernels note the time if it was "
                             "compiled so; use fi-translate --profile");
  if (wantsTimeline && !isPackage) {
    StringRef detail =
        profile.empty() ? StringRef("phases") : StringRef(profile);
    if (detail != "phases" && detail != "tiles")
      return createStringError(
          "--profile: expected phases or tiles, but got '" + detail + "'");
    if (profile.getNumOccurrences() || !(*module)->hasAttr(kProfileAttr))
      (*module)->setAttr(kProfileAttr, mlir::StringAttr::get(&context, detail));
  }
  if (!module && !compareNames.empty())
    return createStringError("--compare: a package has no text to run on "
                             "another backend; give it by --source=FILE.mlir");

  std::string backend =
      backendName.empty() ? Executor::getDefaultBackend().str() : backendName;
  auto executor = isPackage
                      ? Executor::openPackage(inputPath, options, backendName)
                      : Executor::create(backend, *module, name, options);
  if (!executor)
    return executor.takeError();
  const Signature &signature = (*executor)->getSignature();
  if (wantsTimeline && !(*executor)->hasTimelines())
    return (*executor)->getTimelineJson().takeError();

  InputOptions inputOptions;
  inputOptions.seed = seed;
  inputOptions.nanUnused = nanUnused;
  if (Error error = readTensors(inputOptions.tensors))
    return std::move(error);
  auto inputs = makeInputs(signature, *batch, inputOptions);
  if (!inputs)
    return inputs.takeError();

  BackendRun run;
  if (Error error = runOn(**executor, *inputs, run))
    return std::move(error);
  printSummary(llvm::outs(), signature, run);

  // Roles that comparing needs are in the text alone.
  Signature textSignature = signature;
  if (module) {
    auto fromText = getSignature(*module, signature.program);
    if (!fromText)
      return fromText.takeError();
    textSignature = std::move(*fromText);
    if (Error error = checkSameArguments(signature, textSignature))
      return std::move(error);
  }
  if (print && run.visibleKeys.empty()) {
    auto counts = countVisibleKeys(**executor, textSignature, *inputs);
    if (!counts)
      return counts.takeError();
    run.visibleKeys = std::move(*counts);
  }
  CompareOptions compareOptions;
  compareOptions.independent =
      isRandomData(signature, *batch, inputOptions.tensors);
  auto isDevice = [](llvm::StringRef name) { return name.starts_with("cuda"); };
  compareOptions.onDevice =
      isDevice(backend) || llvm::any_of(compareNames, isDevice);
  if (sampleCount > 0)
    compareOptions.onlyRows = sampleRows(textSignature, *inputs, sampleCount,
                                         batch->seed.value_or(seed));
  bool passed = true;
  std::vector<BackendRun> others(compareNames.size());
  for (auto [other, otherName] : llvm::zip(others, compareNames)) {
    ExecutorOptions otherOptions = options;
    otherOptions.onlyRows = compareOptions.onlyRows;
    auto otherExecutor =
        Executor::create(otherName, *module, signature.program, otherOptions);
    if (!otherExecutor)
      return otherExecutor.takeError();
    if (Error error = runOn(**otherExecutor, *inputs, other))
      return std::move(error);
    if (print && other.visibleKeys.empty()) {
      auto counts = countVisibleKeys(**otherExecutor, textSignature, *inputs);
      if (!counts)
        return counts.takeError();
      other.visibleKeys = std::move(*counts);
    }
  }
  if (print)
    printAttentions(llvm::outs(), textSignature, run,
                    others.empty() ? nullptr : &others.front());
  for (const BackendRun &other : others) {
    // The reference is what is expected, on whichever side it stands.
    bool isSwapped = run.backend == "reference" && other.backend != "reference";
    auto comparisons = compareRuns(textSignature, isSwapped ? other : run,
                                   isSwapped ? run : other, compareOptions);
    passed &= printComparisons(llvm::outs(), other.backend, comparisons);
  }
  if (explain) {
    auto text = (*executor)->explain();
    if (!text)
      return text.takeError();
    llvm::outs() << *text;
  }
  if (!plotPath.empty()) {
    auto json = (*executor)->getScheduleJson();
    if (!json)
      return json.takeError();
    auto picture = plotSchedule(*json);
    if (!picture)
      return picture.takeError();
    if (Error error = writeFile(
            plotPath, [&](llvm::raw_ostream &stream) { stream << *picture; }))
      return std::move(error);
  }
  if (wantsTimeline)
    if (Error error = tellTimeline(**executor))
      return std::move(error);
  if (!savePath.empty())
    if (Error error = save(signature, run))
      return std::move(error);
  return passed;
}

int main(int argc, char **argv) {
  return runVerdictMain(argc, argv, {"fi-run", category, overview, examples},
                        runTool);
}
