//===- Rows.cpp - what fi-bench measures ----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <algorithm>
#include <chrono>
#include <thread>

using namespace llvm;

namespace fi::bench {
namespace {

using Clock = std::chrono::steady_clock;

double getSeconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

Contender contend(std::string name, std::shared_ptr<Kernel> kernel,
                  double work) {
  return {std::move(name), [kernel, work]() -> Expected<Timed> {
            Expected<double> seconds = kernel->run();
            if (!seconds)
              return seconds.takeError();
            return Timed{*seconds, work};
          }};
}

Expected<std::shared_ptr<Kernel>> makeKernel(const Problem &problem) {
  Expected<std::unique_ptr<Kernel>> kernel = Kernel::create(problem);
  if (!kernel)
    return kernel.takeError();
  return std::shared_ptr<Kernel>(std::move(*kernel));
}

PeakKind getPeak(const Problem &problem) {
  if (problem.vectorBits == 256)
    return PeakKind::F32At256;
  if (problem.type == DType::BF16 && hasPeak(PeakKind::BF16Pairs))
    return PeakKind::BF16Pairs;
  return PeakKind::F32;
}

std::string nameThreads(int threads) {
  return "-" + std::to_string(threads) + "t";
}

/// "1k"
std::string nameKeys(int64_t keys) { return std::to_string(keys / 1024) + "k"; }

/// Prefill against the arithmetic peak, or against another prefill.
Row makePrefill(std::string name, std::string description,
                const Problem &problem,
                std::optional<Problem> other = std::nullopt) {
  Row row;
  row.name = std::move(name);
  row.description = std::move(description);
  row.unit = Unit::GFlops;
  row.goal = other ? 0.8 : 0;
  if (problem.workers > int(std::thread::hardware_concurrency()))
    row.missing = "needs " + std::to_string(problem.workers) + " cores";
  else if (!hasPeak(getPeak(problem)))
    row.missing = "needs AVX2";
  row.make = [problem, other]() -> Expected<Case> {
    Case made;
    auto kernel = makeKernel(problem);
    if (!kernel)
      return kernel.takeError();
    made.kernel = *kernel;
    made.contenders.push_back(contend("fi", *kernel, problem.getOperations()));
    if (other) {
      auto base = makeKernel(*other);
      if (!base)
        return base.takeError();
      made.contenders.push_back(
          contend("hd128 causal", *base, other->getOperations()));
    }
    made.contenders.push_back({"peak", [problem]() -> Expected<Timed> {
                                 return runPeak(getPeak(problem),
                                                problem.workers);
                               }});
    return made;
  };
  return row;
}

void addPrefills(std::vector<Row> &rows) {
  for (DType type : {DType::F32, DType::BF16, DType::F16})
    for (int64_t keys : {1024, 2048})
      for (int threads : {1, 2}) {
        if (type == DType::F16 && (keys != 1024 || threads != 1))
          continue;
        Problem p;
        p.type = type;
        p.rows = p.keys = keys;
        p.workers = threads;
        rows.push_back(makePrefill(
            "cpu-prefill-" + fi::getName(type).str() + "-" + nameKeys(keys) +
                "-causal" + nameThreads(threads),
            "causal prefill, 32/8 heads x 128, contiguous keys", p));
      }
  Problem base;
  Problem avx2 = base;
  avx2.vectorBits = 256;
  rows.push_back(makePrefill("cpu-prefill-f32-1k-causal-avx2-1t",
                             "the same, compiled for 256-bit vectors", avx2));
  Problem paged = base;
  paged.paged = true;
  rows.push_back(makePrefill("cpu-prefill-f32-1k-causal-paged-1t",
                             "the same on pages of 16 in no order", paged,
                             base));
  for (int64_t dim : {64, 80, 256}) {
    Problem p = base;
    p.dim = dim;
    rows.push_back(makePrefill(
        "cpu-prefill-f32-1k-causal-hd" + std::to_string(dim) + "-1t",
        "another head dim, against hd128 causal", p, base));
  }
  Problem full = base;
  full.mask = Mask::Full;
  rows.push_back(makePrefill("cpu-prefill-f32-1k-full-1t",
                             "without a mask, against hd128 causal", full,
                             base));
  Problem window = base;
  window.mask = Mask::Window;
  window.rows = window.keys = 2048;
  rows.push_back(makePrefill("cpu-prefill-f32-2k-window512-1t",
                             "causal with a window of 512 keys, against hd128 "
                             "causal",
                             window, base));
}

Row makeDecode(DType type, HeadOrder order, int threads) {
  Problem p;
  p.type = type;
  p.paged = true;
  p.order = order;
  p.requests = 8;
  p.rows = 1;
  p.keys = 2048;
  p.workers = threads;
  Row row;
  row.name = "cpu-decode-bs8-kv2k-" + fi::getName(type).str() + "-" +
             stringifyHeadOrder(order).str() + nameThreads(threads);
  row.description = "decoding 8 requests of 2048 keys in pages of 16, 32/8 "
                    "heads x 128, against reading the same pages";
  row.unit = Unit::GBytes;
  row.goal = 0.85;
  if (threads > int(std::thread::hardware_concurrency()))
    row.missing = "needs " + std::to_string(threads) + " cores";
  row.make = [p]() -> Expected<Case> {
    auto kernel = makeKernel(p);
    if (!kernel)
      return kernel.takeError();
    Case made;
    made.kernel = *kernel;
    made.contenders.push_back(contend("fi", *kernel, p.getKVBytes()));
    for (auto [name, order] :
         {std::pair<const char *, ReadOrder>{"read loop", ReadOrder::Items},
          {"whole pages", ReadOrder::Pages}})
      made.contenders.push_back(
          {name, [kernel = *kernel, p, order = order]() -> Expected<Timed> {
             return readPages(*kernel, order, p.workers);
           }});
    return made;
  };
  return row;
}

/// Compiling, with or without the cache, of one causal paged attention.
Row makeCompile(bool cached) {
  Row row;
  row.name = cached ? "compile-cached" : "compile-cold";
  row.description =
      cached ? "loading the code of one attention from the cache"
             : "compiling one paged attention to machine code in process";
  row.unit = Unit::Milliseconds;
  row.goal = cached ? 5 : 300;
  row.make = [cached]() -> Expected<Case> {
    Problem p;
    p.paged = true;
    auto module = parseModule(p.printProgram());
    if (!module)
      return module.takeError();
    auto shared =
        std::make_shared<mlir::OwningOpRef<mlir::ModuleOp>>(std::move(*module));
    // Leaves nothing behind.
    struct Directory {
      ~Directory() {
        if (!path.empty())
          sys::fs::remove_directories(path);
      }
      SmallString<64> path;
    };
    auto directory = std::make_shared<Directory>();
    if (cached)
      if (std::error_code code =
              sys::fs::createUniqueDirectory("fi-bench", directory->path))
        return createStringError(code, "no directory for a cache");
    cpu::CompileOptions options;
    options.cache.enabled = cached;
    options.cache.directory = directory->path.str().str();
    Case made;
    made.contenders.push_back(
        {"fi",
         [shared, options, directory, first = true,
          cached]() mutable -> Expected<Timed> {
           Clock::time_point start = Clock::now();
           auto code = cpu::CompiledProgram::compile(**shared, "", options);
           double seconds = getSeconds(start);
           if (!code)
             return code.takeError();
           if (!first && (*code)->getTimes().cached != cached)
             return createStringError(
                 inconvertibleErrorCode(),
                 cached ? "the code did not come from the cache"
                        : "the code came from a cache");
           first = false;
           return Timed{seconds, 0};
         }});
    return made;
  };
  return row;
}

Row makePlan() {
  Row row;
  row.name = "plan-128";
  row.description = "planning 128 decoding requests of 2048 keys again";
  row.unit = Unit::Microseconds;
  row.goal = 20;
  row.make = []() -> Expected<Case> {
    Problem p;
    p.paged = true;
    p.requests = 128;
    p.rows = 1;
    p.keys = 2048;
    // The plan does not know how much a head holds, and this keeps memory
    // small.
    p.dim = 8;
    p.workers = 0;
    auto kernel = makeKernel(p);
    if (!kernel)
      return kernel.takeError();
    Case made;
    made.contenders.push_back({"fi", [kernel = *kernel]() -> Expected<Timed> {
                                 Expected<double> seconds = kernel->plan();
                                 if (!seconds)
                                   return seconds.takeError();
                                 return Timed{*seconds, 0};
                               }});
    return made;
  };
  return row;
}

Row makeToolStart(const std::string &toolDirectory) {
  Row row;
  row.name = "tool-start";
  row.description = "from starting fi-opt --version to its end";
  row.unit = Unit::Milliseconds;
  row.goal = 20;
  SmallString<128> tool(toolDirectory);
  sys::path::append(tool, "fi-opt");
  if (!sys::fs::can_execute(tool))
    row.missing = "needs fi-opt beside fi-bench";
  row.make = [path = tool.str().str()]() -> Expected<Case> {
    Case made;
    made.contenders.push_back(
        {"fi", [path]() -> Expected<Timed> {
           std::string message;
           std::optional<StringRef> redirects[] = {StringRef(), StringRef(),
                                                   StringRef()};
           Clock::time_point start = Clock::now();
           int status =
               sys::ExecuteAndWait(path, {path, "--version"}, std::nullopt,
                                   redirects, 0, 0, &message);
           if (status != 0)
             return createStringError(inconvertibleErrorCode(),
                                      path + " --version: " + message);
           return Timed{getSeconds(start), 0};
         }});
    return made;
  };
  return row;
}

} // namespace

StringRef getName(Unit unit) {
  switch (unit) {
  case Unit::GFlops:
    return "GFLOP/s";
  case Unit::GBytes:
    return "GB/s";
  case Unit::Milliseconds:
    return "ms";
  case Unit::Microseconds:
    return "us";
  }
  return "";
}

double toUnit(Unit unit, const Timed &timed) {
  switch (unit) {
  case Unit::GFlops:
  case Unit::GBytes:
    return timed.seconds > 0 ? timed.work / timed.seconds * 1e-9 : 0;
  case Unit::Milliseconds:
    return timed.seconds * 1e3;
  case Unit::Microseconds:
    return timed.seconds * 1e6;
  }
  return 0;
}

bool isRate(Unit unit) { return unit == Unit::GFlops || unit == Unit::GBytes; }

std::vector<Row> makeRows(const std::string &toolDirectory) {
  std::vector<Row> rows;
  addPrefills(rows);
  for (DType type : {DType::F32, DType::BF16})
    for (HeadOrder order : {HeadOrder::HND, HeadOrder::NHD})
      for (int threads : {1, 2})
        rows.push_back(makeDecode(type, order, threads));
  rows.push_back(makeCompile(/*cached=*/false));
  rows.push_back(makeCompile(/*cached=*/true));
  rows.push_back(makePlan());
  rows.push_back(makeToolStart(toolDirectory));
  return rows;
}

Expected<Measurement> measure(const Row &row, const Case &made,
                              double seconds) {
  constexpr int64_t leastRounds = 5, mostRounds = 5000;
  std::vector<std::vector<double>> samples(made.contenders.size());
  Clock::time_point start = Clock::now();
  int64_t rounds = -1; // the first does not count
  while (rounds < leastRounds ||
         (rounds < mostRounds && getSeconds(start) < seconds)) {
    for (auto [i, contender] : enumerate(made.contenders)) {
      Expected<Timed> timed = contender.run();
      if (!timed)
        return timed.takeError();
      if (rounds >= 0)
        samples[i].push_back(toUnit(row.unit, *timed));
    }
    ++rounds;
  }
  Measurement result;
  result.rounds = rounds;
  for (auto [i, contender] : enumerate(made.contenders)) {
    auto middle = samples[i].begin() + samples[i].size() / 2;
    std::nth_element(samples[i].begin(), middle, samples[i].end());
    result.names.push_back(contender.name);
    result.values.push_back(*middle);
  }
  return result;
}

} // namespace fi::bench
