//===- fi-fuzz-programs.cpp - random programs on several backends ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes programs and batches from seeds, compares backends with the reference,
// and reduces what fails to a text and a batch for fi-run. docs/fuzzing.md is
// the manual.
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Executor.h"
#include "fi/Fuzz/Check.h"
#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/CodegenSupport.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

using namespace fi;
using namespace fi::fuzz;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options of fi-fuzz-programs");

static cl::opt<uint64_t> firstSeed("seed", cl::value_desc("n"), cl::init(1),
                                   cl::cat(category),
                                   cl::desc("The first program's seed (1)"));
static cl::opt<int64_t>
    count("programs", cl::value_desc("n"), cl::init(100), cl::cat(category),
          cl::desc("How many, each of the next seed (100)"));
static cl::list<std::string> backends(
    "backend", cl::CommaSeparated, cl::value_desc("backend,..."),
    cl::cat(category),
    cl::desc("What is compared with the reference, as fi-run names it (cpu)"));
static cl::opt<std::string>
    setText("set", cl::value_desc("name=value,..."), cl::cat(category),
            cl::desc("Choices that are made so whatever the seed says"));
static cl::opt<bool>
    simplest("simplest", cl::cat(category),
             cl::desc("Make all choices that --set does not name 0"));
static cl::opt<bool> emit("emit", cl::cat(category),
                          cl::desc("Print programs, batches and choices, and "
                                   "run nothing"));
static cl::opt<std::string>
    outDir("out", cl::value_desc("directory"), cl::init("fuzz-findings"),
           cl::cat(category),
           cl::desc("Where what fails is written (fuzz-findings)"));
static cl::opt<int64_t>
    reduceLimit("reduce", cl::value_desc("n"), cl::init(400), cl::cat(category),
                cl::desc("Runs that a reduction may take; 0 for none (400)"));
static cl::opt<int64_t>
    mostFindings("findings", cl::value_desc("n"), cl::init(10),
                 cl::cat(category),
                 cl::desc("Stop after that many programs that fail (10)"));
static cl::opt<unsigned>
    jobs("jobs", cl::value_desc("n"), cl::init(1), cl::cat(category),
         cl::desc("Programs that run at once; 0: one on each processor (1)"));
static cl::opt<double>
    timeout("timeout", cl::value_desc("s"), cl::init(60), cl::cat(category),
            cl::desc("Seconds that a program may take (60)"));
static cl::opt<double>
    seconds("seconds", cl::value_desc("s"), cl::init(0), cl::cat(category),
            cl::desc("Begin no more programs after that long; 0 for no limit "
                     "(0)"));
static cl::opt<std::string>
    junitPath("junit", cl::value_desc("file.xml"), cl::cat(category),
              cl::desc("Write each program's result there"));
static cl::opt<bool> timing("timing", cl::cat(category),
                            cl::desc("Print where the time went"));
static cl::opt<bool> quiet("quiet", cl::cat(category),
                           cl::desc("Print what fails, and one line"));

/// Programs that one child runs at most: it is forked and makes its patterns
/// for each such number, and types stay in its context.
static constexpr uint64_t kMostOfChild = 200;

/// What a child says in place of a result.
static constexpr llvm::StringLiteral kTimeIsOver = "time is over";

static const auto start = std::chrono::steady_clock::now();

static double getSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static bool isTimeOver() { return seconds > 0 && getSeconds() > seconds; }

static Choices getChoices(uint64_t seed) {
  Given given;
  (void)parseGiven(setText, given);
  return simplest ? Choices(given) : Choices(seed, given);
}

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

/// What stays of a message when a program gets simpler.
static std::string signatureOf(const Finding &finding) {
  if (finding.kind == "differs" || finding.kind == "crash" ||
      finding.kind == "hang" || finding.kind == "bits")
    return finding.kind;
  std::string text = finding.kind + ":";
  bool inQuotes = false;
  for (char c : StringRef(finding.message).rsplit(": ").second) {
    if (c == '\'')
      inQuotes = !inQuotes;
    if (!inQuotes && (llvm::isAlpha(c) || c == ' '))
      text += c;
  }
  return text;
}

static std::string reproduce(const RandomProgram &program, StringRef backend,
                             StringRef stem) {
  std::string text;
  for (const PlanChoice &plan : program.plans) {
    text += ("fi-run " + stem + ".mlir --backend=" + backend +
             " --compare=reference --workers=" + Twine(plan.workers))
                .str();
    if (!plan.split.empty())
      text += " --split=" + plan.split;
    text += "\n";
  }
  return text;
}

static Error writeFinding(const RandomProgram &program, StringRef backend,
                          const Finding &finding, StringRef choices,
                          StringRef stem) {
  if (std::error_code code = llvm::sys::fs::create_directories(outDir))
    return llvm::createStringError("cannot make '" + outDir +
                                   "': " + code.message());
  llvm::SmallString<128> path(outDir);
  llvm::sys::path::append(path, stem);
  std::string head = "// " + finding.kind + ": " + finding.message + "\n";
  llvm::SmallVector<StringRef> lines;
  std::string commands = reproduce(program, backend, stem);
  StringRef(commands).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    head += ("// " + line + "\n").str();
  head += ("// fi-fuzz-programs --simplest --programs=1 --backend=" + backend +
           " --set=" + choices + "\n")
              .str();
  if (Error error =
          writeFile((path + ".mlir").str(), [&](llvm::raw_ostream &stream) {
            stream << head << program.text;
          }))
    return error;
  return writeFile((path + ".json").str(),
                   [&](llvm::raw_ostream &stream) { stream << program.batch; });
}

static void handleFinding(uint64_t seed, StringRef backend, Finding finding,
                          const mlir::DialectRegistry &registry) {
  llvm::outs() << "seed " << seed << " on " << backend << ": " << finding.kind
               << ": " << finding.message << '\n';
  Choices choices = getChoices(seed);
  Family family = getFamily(backend);
  RandomProgram program = makeProgram(choices, family);
  std::string stem = (Twine("seed-") + Twine(seed) + "-" + backend).str();
  std::replace(stem.begin(), stem.end(), ':', '-');
  std::string wanted = signatureOf(finding);
  Given best = choices.getGiven();
  int64_t runs = 0;
  if (reduceLimit > 0)
    best = reduce(
        best, family,
        [&](const RandomProgram &candidate) {
          ++runs;
          return signatureOf(checkIsolated(candidate, backend, registry,
                                           timeout)) == wanted;
        },
        reduceLimit);
  Choices simple(best);
  program = makeProgram(simple, family);
  if (reduceLimit > 0)
    if (Finding last = checkIsolated(program, backend, registry, timeout))
      finding = last;
  std::string text = simple.getText();
  llvm::outs() << "  reduced in " << runs << " runs to " << text << "\n  "
               << finding.kind << ": " << finding.message << "\n";
  if (Error error = writeFinding(program, backend, finding, text, stem))
    llvm::errs() << "fi-fuzz-programs: error: "
                 << llvm::toString(std::move(error)) << '\n';
  else
    llvm::outs() << "  written to " << outDir << "/" << stem << ".mlir\n";
  llvm::outs().flush();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

struct Totals {
  std::array<double, 4> times = {};
  int64_t passed = 0, failed = 0;
  std::vector<std::pair<std::string, Finding>> results;
};

/// Runs all programs on a backend, some at once: each thread waits for a child.
class Runner {
public:
  Runner(const std::string &backend, uint64_t last,
         const mlir::DialectRegistry &registry, Totals &totals)
      : backend(backend), last(last), registry(registry), totals(totals) {}

  void run();

private:
  void work();
  uint64_t runChunk(uint64_t begin, uint64_t end, Finding &finding);
  void report(uint64_t begin, uint64_t end, const Finding &finding);

  const std::string &backend;
  const uint64_t last;
  const mlir::DialectRegistry &registry;
  Totals &totals;
  /// Programs of a child.
  uint64_t chunk = 1;
  /// Seeds from here on are nobody's yet.
  uint64_t next = 0;
  std::map<uint64_t, Finding> results;
  /// Of what is above, of the output, and of reductions.
  std::mutex mutex;
};

} // namespace

void Runner::run() {
  next = firstSeed;
  unsigned threads =
      jobs ? unsigned(jobs) : std::max(1u, std::thread::hardware_concurrency());
  chunk = kMostOfChild;
  // Each gets some, so that all end at about the same time.
  if (threads > 1)
    chunk = std::clamp<uint64_t>((last - next) / (4 * uint64_t(threads)), 1,
                                 kMostOfChild);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([this] { work(); });
  work();
  for (std::thread &other : others)
    other.join();
  for (auto &[seed, finding] : results)
    totals.results.push_back(
        {("seed " + Twine(seed) + " on " + backend).str(), finding});
}

void Runner::work() {
  while (true) {
    uint64_t begin, end;
    {
      std::lock_guard<std::mutex> lock(mutex);
      begin = next;
      end = next = std::min<uint64_t>(begin + chunk, last);
    }
    if (begin >= end)
      return;
    while (begin < end) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (totals.failed >= mostFindings || isTimeOver())
          return;
      }
      Finding finding;
      uint64_t behind = runChunk(begin, end, finding);
      report(begin, behind, finding);
      begin = behind;
    }
  }
}

void Runner::report(uint64_t begin, uint64_t end, const Finding &finding) {
  std::lock_guard<std::mutex> lock(mutex);
  for (uint64_t at = begin; at < end; ++at)
    results[at] = at + 1 == end ? finding : Finding();
  if (finding) {
    ++totals.failed;
    handleFinding(end - 1, backend, finding, registry);
  }
  if (!quiet && (end - firstSeed) / 1000 != (begin - firstSeed) / 1000)
    llvm::outs() << backend << ": seed " << end - 1 << ", " << totals.failed
                 << " failed\n";
}

/// Runs seeds [begin, end) in a child; stops at the first that fails, and
/// returns the seed behind the last that ran.
uint64_t Runner::runChunk(uint64_t begin, uint64_t end, Finding &finding) {
  Child child = isolate(
      [&](llvm::function_ref<void(StringRef)> report) {
        mlir::MLIRContext context(registry,
                                  mlir::MLIRContext::Threading::DISABLED);
        PassManagers passManagers;
        for (uint64_t seed = begin; seed < end; ++seed) {
          if (isTimeOver())
            return report(kTimeIsOver);
          Choices choices = getChoices(seed);
          RandomProgram program = makeProgram(choices, getFamily(backend));
          CheckTimes times;
          Finding found =
              checkProgram(program, backend, context, &times, &passManagers);
          std::string line;
          llvm::raw_string_ostream(line)
              << llvm::format("%.3f %.3f %.3f %.3f ", times.parse,
                              times.reference, times.compile, times.run)
              << (found ? found.kind : "ok") << ' '
              << llvm::join(llvm::split(found.message, '\n'), "; ");
          report(line);
          if (found)
            return;
        }
      },
      timeout);
  uint64_t seed = begin;
  std::lock_guard<std::mutex> lock(mutex);
  bool isOver = false;
  for (StringRef line : child.lines) {
    if (line == kTimeIsOver) {
      isOver = true;
      break;
    }
    for (double &total : totals.times) {
      auto [number, rest] = line.split(' ');
      total += std::strtod(number.str().c_str(), nullptr);
      line = rest;
    }
    auto [kind, message] = line.split(' ');
    ++seed;
    if (kind == "ok")
      ++totals.passed;
    else
      finding = {kind.str(), message.str()};
  }
  if (!finding && seed < end && !isOver) {
    finding = {child.end, child.message};
    ++seed;
  }
  return seed;
}

static std::string escape(StringRef text) {
  std::string escaped;
  for (char c : text)
    if (c == '<' || c == '>' || c == '&' || c == '"')
      escaped += "&#" + std::to_string(int(c)) + ";";
    else
      escaped += llvm::isPrint(c) ? c : '?';
  return escaped;
}

static Error writeJUnit(const Totals &totals) {
  return writeFile(junitPath, [&](llvm::raw_ostream &stream) {
    stream << "<testsuite name=\"fi-fuzz-programs\">\n";
    for (auto &[name, finding] : totals.results) {
      stream << "<testcase name=\"" << escape(name) << "\"";
      if (finding)
        stream << "><failure message=\""
               << escape(finding.kind + ": " + finding.message)
               << "\"/></testcase>\n";
      else
        stream << "/>\n";
    }
    stream << "</testsuite>\n";
  });
}

static int runTool() {
  Given given;
  if (!parseGiven(setText, given)) {
    llvm::errs() << "fi-fuzz-programs: error: --set: expected "
                    "name=value,..., but got '"
                 << setText << "'\n";
    return 1;
  }
  if (backends.empty())
    backends.push_back("cpu");
  for (const std::string &backend : backends)
    if (Error error = Executor::checkBackend(backend)) {
      llvm::errs() << "fi-fuzz-programs: error: "
                   << llvm::toString(std::move(error)) << '\n';
      return 1;
    }
  uint64_t last = firstSeed + std::max<int64_t>(count, 0);
  if (emit) {
    for (uint64_t seed = firstSeed; seed < last; ++seed) {
      Choices choices = getChoices(seed);
      RandomProgram program = makeProgram(choices, getFamily(backends.front()));
      llvm::outs() << "// seed " << seed << ": " << choices.getText() << '\n'
                   << program.text << program.batch
                   << reproduce(program, backends.front(), "program");
    }
    return 0;
  }
  // What is tested here is compiled here.
  setenv("FI_CACHE_DIR", "", /*overwrite=*/1);
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  cpu::registerCompiler(registry);
  gpu::registerCompiler(registry);
  Totals totals;
  for (const std::string &backend : backends)
    Runner(backend, last, registry, totals).run();
  int64_t failed = totals.failed;
  double took = getSeconds();
  int64_t ran = totals.passed + failed;
  llvm::outs() << totals.passed << " programs passed, " << failed
               << " failed, in "
               << llvm::format("%.1f s (%.1f a second)\n", took,
                               double(ran) / std::max(took, 1e-9));
  if (timing) {
    const char *const names[] = {"parse, print, inputs", "reference", "compile",
                                 "plan, run, compare"};
    for (auto [name, total] : llvm::zip(names, totals.times))
      llvm::outs() << llvm::format("  %7.2f ms a program: ",
                                   total / std::max<double>(ran, 1))
                   << name << '\n';
  }
  if (!junitPath.empty())
    if (Error error = writeJUnit(totals)) {
      llvm::errs() << "fi-fuzz-programs: error: "
                   << llvm::toString(std::move(error)) << '\n';
      return 1;
    }
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "fi-fuzz-programs: random programs on several backends\n\n"
      "Compares backends with the reference on programs that seeds make, and\n"
      "reduces what fails. docs/fuzzing.md is the manual.\n");
  return runTool();
}
