//===- fi-replay.cpp - replays a trace of serving requests ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The command line around fi::replay: docs/fi-replay.md.
//
//===----------------------------------------------------------------------===//

#include "ToolContext.h"
#include "ToolMain.h"
#include "fi/Replay/Replay.h"
#include "fi/Replay/Report.h"
#include "fi/Support/File.h"
#include "fi/Support/SchedulePlot.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace fi;
using namespace fi::replay;

namespace {

cl::OptionCategory category("fi-replay options");

cl::opt<std::string> programFile(cl::Positional, cl::desc("[program.mlir]"),
                                 cl::value_desc("file"), cl::cat(category));
cl::opt<std::string>
    programName("program",
                cl::desc("program of the file; the only one if not given"),
                cl::value_desc("name"), cl::cat(category));
cl::opt<std::string> traceFile(
    "trace",
    cl::desc("CSV with TIMESTAMP, ContextTokens and GeneratedTokens; 300 "
             "requests of the Azure LLM inference trace 2023 if not given"),
    cl::value_desc("file"), cl::cat(category));
cl::opt<int64_t>
    requestLimit("requests",
                 cl::desc("take only the first N requests of the trace"),
                 cl::value_desc("N"), cl::init(0), cl::cat(category));
cl::opt<Arrivals> arrivals(
    "arrivals", cl::desc("when requests are there to be admitted"),
    cl::values(clEnumValN(Arrivals::Saturated, "saturated",
                          "always one is waiting (default)"),
               clEnumValN(Arrivals::Trace, "trace",
                          "at the trace's times, in steps of --step-ms")),
    cl::init(Arrivals::Saturated), cl::cat(category));
cl::opt<double> stepMilliseconds(
    "step-ms", cl::desc("simulated time of a step for --arrivals=trace (50)"),
    cl::value_desc("ms"), cl::init(50), cl::cat(category));
cl::opt<int64_t> steps("steps",
                       cl::desc("steps to run (360); 0 for the whole trace"),
                       cl::value_desc("N"), cl::init(360), cl::cat(category));
cl::opt<int64_t> inFlight("in-flight",
                          cl::desc("requests in flight at once (64)"),
                          cl::value_desc("N"), cl::init(64), cl::cat(category));
cl::opt<int64_t> budget(
    "budget",
    cl::desc("tokens of a step: one for each decoding request, the rest in "
             "chunks of prompts (512)"),
    cl::value_desc("N"), cl::init(512), cl::cat(category));
cl::opt<int64_t> pages("pages", cl::desc("pages of the pool (8192)"),
                       cl::value_desc("N"), cl::init(8192), cl::cat(category));

cl::opt<std::string> dtype("dtype",
                           cl::desc("element type: f32 (default), bf16, f16"),
                           cl::value_desc("type"), cl::init("f32"),
                           cl::cat(category));
cl::opt<HeadOrder>
    order("order", cl::desc("order in a page"),
          cl::values(clEnumValN(HeadOrder::HND, "HND", "heads first (default)"),
                     clEnumValN(HeadOrder::NHD, "NHD", "tokens first")),
          cl::init(HeadOrder::HND), cl::cat(category));
cl::opt<int64_t> pageSize("page-size", cl::desc("slots of a page (16)"),
                          cl::value_desc("N"), cl::init(16), cl::cat(category));
cl::opt<std::string> heads("heads", cl::desc("query heads/KV heads (32/8)"),
                           cl::value_desc("Q/KV"), cl::init("32/8"),
                           cl::cat(category));
cl::opt<int64_t> dim("dim", cl::desc("head dim (128)"), cl::value_desc("N"),
                     cl::init(128), cl::cat(category));
cl::opt<bool> hostAppend(
    "host-append",
    cl::desc(
        "write new keys and values into the pages before the run, in place "
        "of a fi.append in the program"),
    cl::cat(category));
cl::opt<bool> printOnly("print-program",
                        cl::desc("print the program that would run, and stop"),
                        cl::cat(category));

cl::opt<std::string> backend(
    "backend",
    cl::desc(
        "what executes the steps: cpu (default); cuda, this machine's GPU "
        "(cuda:1 for another one); emulated:CHIP (sm_80 and so on), level2 "
        "and reference for tiny sizes"),
    cl::value_desc("name"), cl::init("cpu"), cl::cat(category));
cl::opt<int> workers("workers",
                     cl::desc("threads, or CTAs of a GPU; all if not given"),
                     cl::value_desc("N"), cl::init(0), cl::cat(category));
cl::opt<std::string>
    split("split",
          cl::desc("policy of the planner: balanced, fixed:KEYS or none; the "
                   "program's if not given"),
          cl::value_desc("policy"), cl::cat(category));
cl::opt<uint64_t> seed("seed",
                       cl::desc("seed of keys, values, queries and "
                                "checked rows (1)"),
                       cl::value_desc("N"), cl::init(1), cl::cat(category));
cl::opt<int64_t> checks(
    "checks",
    cl::desc("rows and heads of each step compared with the reference (2)"),
    cl::value_desc("N"), cl::init(2), cl::cat(category));
cl::opt<bool> requireEvents(
    "require-events",
    cl::desc("fail if prompts in part, decoding alone, both together or the "
             "reuse of pages did not occur (default)"),
    cl::init(true), cl::cat(category));
cl::opt<std::string> jsonFile("json", cl::desc("write all figures as JSON"),
                              cl::value_desc("file"), cl::cat(category));
cl::opt<std::string>
    plotFile("plot-schedule",
             cl::desc("draw who does what in one step, as SVG"),
             cl::value_desc("file"), cl::cat(category));
cl::opt<int64_t> plotStep(
    "plot-step",
    cl::desc("step to draw; the mixed step with the most keys if not given"),
    cl::value_desc("N"), cl::init(-1), cl::cat(category));

const char *overview =
    R"(replays a trace of serving requests with continuous batching

Each step admits requests, appends the new keys and values to pages, plans the
batch and runs the attention of one layer; completed requests free their pages for
others. Some rows of each step are compared with the reference interpreter, and
the keys and values in their pages with what was appended.

A program of your own replaces the built-in one (--print-program shows it): it
takes plan(qo, indptr, pages, last) and run(q, newk, newv, k, v) and returns the
output, or output and lse. Another mask, score, head count or layout is a change of
its text.

Examples:
  fi-replay                                   the built-in trace, f32, on this CPU
  fi-replay --dtype=bf16 --order=NHD --workers=1
  fi-replay my.mlir --trace=conv.csv --steps=1000 --pages=16384
  fi-replay --plot-schedule=step.svg --json=replay.json
)";

constexpr StringLiteral defaultTrace =
#include "DefaultTrace.inc"
    ;

Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

Error checkOption(StringRef option, int64_t value, int64_t least,
                  int64_t most) {
  if (value >= least && value <= most)
    return Error::success();
  return makeError("--" + option + ": expected a number in " + Twine(least) +
                   " ... " + Twine(most) + ", but got " + Twine(value));
}

/// The built-in program's sizes, from options.
Expected<ProgramOptions> getProgramOptions() {
  ProgramOptions options;
  std::optional<DType> type = parseDType(dtype);
  if (!type ||
      (*type != DType::F32 && *type != DType::BF16 && *type != DType::F16))
    return makeError("--dtype: expected f32, bf16 or f16, but got '" + dtype +
                     "'");
  options.type = *type;
  options.order = order;
  options.append = !hostAppend;
  auto [queryHeads, kvHeads] = StringRef(heads).split('/');
  if (queryHeads.getAsInteger(10, options.queryHeads) ||
      kvHeads.getAsInteger(10, options.kvHeads) || options.kvHeads < 1 ||
      options.queryHeads < 1 || options.queryHeads > 4096 ||
      options.queryHeads % options.kvHeads != 0)
    return makeError("--heads: expected Q/KV with Q a multiple of KV, at most "
                     "4096, but got '" +
                     heads + "'");
  options.page = pageSize;
  options.dim = dim;
  if (Error error = checkOption("page-size", pageSize, 1, 1 << 16))
    return std::move(error);
  if (Error error = checkOption("dim", dim, 8, kMaxHeadDim))
    return std::move(error);
  return options;
}

Error runTool() {
  for (auto [option, value, least, most] :
       {std::tuple<StringRef, int64_t, int64_t, int64_t>{"steps", steps, 0,
                                                         int64_t(1) << 40},
        {"requests", requestLimit, 0, int64_t(1) << 40},
        {"checks", checks, 0, 1 << 20},
        {"workers", workers, 0, 1 << 12},
        {"plot-step", plotStep, -1, int64_t(1) << 40}})
    if (Error error = checkOption(option, value, least, most))
      return error;

  // What is wrong with the options is said before anything is loaded.
  std::string text, name = "<built-in>";
  if (programFile.empty()) {
    Expected<ProgramOptions> options = getProgramOptions();
    if (!options)
      return options.takeError();
    text = printProgram(*options);
  } else {
    for (const cl::Option *option : std::initializer_list<const cl::Option *>{
             &dtype, &order, &pageSize, &heads, &dim, &hostAppend})
      if (option->getNumOccurrences())
        return makeError("--" + option->ArgStr +
                         ": the program file says this; change it there");
    auto buffer = readFile(programFile);
    if (!buffer)
      return buffer.takeError();
    text = (*buffer)->getBuffer().str();
    name = programFile;
  }
  if (printOnly) {
    outs() << text;
    return Error::success();
  }
  ExecutorOptions executorOptions;
  executorOptions.workers = workers;
  auto policy = parseSplit(split);
  if (!policy)
    return makeError("--" + toString(policy.takeError()));
  std::tie(executorOptions.split, executorOptions.splitKeys) = *policy;

  ToolContext toolContext;
  mlir::MLIRContext &context = toolContext.get();
  Expected<LoadedProgram> loaded =
      parseProgram(context, text, name, programName);
  if (!loaded)
    return loaded.takeError();
  const Program &program = loaded->program;

  Expected<std::vector<TraceRequest>> trace =
      traceFile.empty() ? parseTrace(defaultTrace, "<built-in trace>")
                        : readTrace(traceFile);
  if (!trace)
    return trace.takeError();
  if (requestLimit > 0 && requestLimit < int64_t(trace->size()))
    trace->resize(requestLimit);
  BatchingOptions batching;
  batching.maxRequests = inFlight;
  batching.tokenBudget = budget;
  batching.pageSize = program.getPageSize();
  batching.pages = pages;
  batching.arrivals = arrivals;
  batching.stepSeconds = stepMilliseconds / 1000;
  size_t requests = trace->size();
  Expected<ContinuousBatcher> batcher =
      ContinuousBatcher::create(std::move(*trace), batching);
  if (!batcher)
    return batcher.takeError();

  auto made = fi::Executor::create(backend, *loaded->module,
                                   program.getOp().getName(), executorOptions);
  if (!made)
    return made.takeError();
  fi::Executor &executor = **made;

  outs() << "trace    "
         << (traceFile.empty()
                 ? "Azure LLM inference 2023, conversations (CC-BY 4.0)"
                 : traceFile.getValue())
         << ", " << requests << " requests\n"
         << "program  " << program.describe() << "\n"
         << "batches  up to " << inFlight << " requests in flight, " << budget
         << " tokens a step\n"
         << "backend  " << executor.describe() << "\n\n";
  outs().flush();

  ReplayOptions options;
  options.steps = steps;
  options.seed = seed;
  options.checksPerStep = checks;
  options.scheduleStep = plotStep;
  Progress progress(outs(), outs().is_displayed(), steps);
  options.onStep = [&](const StepRecord &record) { progress.update(record); };
  Expected<ReplayReport> report =
      replay::replay(*batcher, program, executor, options);
  progress.finish();
  if (!report)
    return report.takeError();
  outs() << "\n";
  printReport(outs(), *report);

  if (!jsonFile.empty())
    if (Error error = writeFile(jsonFile, [&](raw_ostream &os) {
          os << formatv("{0:2}", toJSON(*report)) << "\n";
        }))
      return error;
  if (!plotFile.empty()) {
    if (report->schedule.empty())
      return makeError(
          executor.hasPlans()
              ? "--plot-schedule: step " + Twine(plotStep) +
                    " did not take place, or no step had prompts and decoding"
              : "--plot-schedule: the " + backend + " backend has no schedule");
    Expected<std::string> svg = plotSchedule(report->schedule);
    if (!svg)
      return svg.takeError();
    if (Error error = writeFile(plotFile, [&](raw_ostream &os) { os << *svg; }))
      return error;
    outs() << formatv("  {0,-10} ", "picture") << "step "
           << report->scheduleStep << " in " << plotFile << "\n";
  }
  std::vector<std::string> missing = report->getMissingEvents();
  if (requireEvents && !missing.empty())
    return makeError("this replay shows too little: " + join(missing, ", ") +
                     "; run more steps, or pass --require-events=false");
  return Error::success();
}

} // namespace

int main(int argc, char **argv) {
  return runToolMain(argc, argv, {"fi-replay", category, overview}, runTool);
}
