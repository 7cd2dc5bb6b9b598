//===- Batching.cpp - continuous batching of a trace ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Batching.h"
#include "fi/Support/Assert.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <tuple>

using namespace llvm;

namespace fi::replay {

int64_t StepBatch::getKeys() const {
  int64_t keys = 0;
  for (const BatchEntry &entry : entries)
    keys += entry.getKeys();
  return keys;
}

int64_t StepBatch::getVisiblePairs() const {
  int64_t pairs = 0;
  for (const BatchEntry &entry : entries)
    pairs +=
        entry.tokens * entry.context + entry.tokens * (entry.tokens + 1) / 2;
  return pairs;
}

Expected<ContinuousBatcher>
ContinuousBatcher::create(std::vector<TraceRequest> trace,
                          const BatchingOptions &options) {
  auto fail = [](const Twine &message) {
    return createStringError(inconvertibleErrorCode(), message);
  };
  const std::tuple<StringRef, int64_t, int64_t> sizes[] = {
      {"requests in flight", options.maxRequests, 1 << 20},
      {"tokens of a step", options.tokenBudget, 1 << 24},
      {"page size", options.pageSize, 1 << 20},
      {"pages", options.pages, kMaxPages}};
  for (auto [name, value, limit] : sizes)
    if (value < 1 || value > limit)
      return fail(name + ": expected a number in 1 ... " + Twine(limit) +
                  ", but got " + Twine(value));
  if (!(options.stepSeconds > 0))
    return fail("seconds of a step: expected a positive number, but got " +
                std::to_string(options.stepSeconds));
  ContinuousBatcher batcher(std::move(trace), options);
  for (auto [i, request] : enumerate(batcher.trace)) {
    int64_t pages = batcher.countPages(request.getComputedTokens());
    if (pages > options.pages)
      return fail("request " + Twine(i) + " of the trace: its " +
                  Twine(request.getComputedTokens()) + " tokens need " +
                  Twine(pages) + " pages of " + Twine(options.pageSize) +
                  " slots, but the pool has " + Twine(options.pages) +
                  "; give the pool more pages");
  }
  return batcher;
}

void ContinuousBatcher::schedule(Running &request, int64_t tokens) {
  const TraceRequest &asked = trace[request.request];
  BatchEntry entry;
  entry.request = request.request;
  entry.context = request.tokens;
  entry.tokens = tokens;
  entry.prefill = request.tokens < asked.promptTokens;
  if (entry.prefill) {
    batch.prefillTokens += tokens;
    batch.chunked |= tokens < asked.promptTokens;
  } else {
    batch.decodeTokens += tokens;
  }
  request.tokens += tokens;
  int64_t pages = countPages(request.tokens);
  while (int64_t(request.pages.size()) < pages) {
    int64_t reused = allocator.getReused();
    std::optional<int32_t> page = allocator.allocate();
    FI_ASSERT(page, "admission promised this page");
    request.pages.push_back(*page);
    ++batch.newPages;
    batch.reusedPages += allocator.getReused() - reused;
  }
  batch.entries.push_back(entry);
}

void ContinuousBatcher::admit(int64_t &budget) {
  while (budget > 0 && next < trace.size() &&
         int64_t(running.size()) < options.maxRequests) {
    const TraceRequest &asked = trace[next];
    if (options.arrivals == Arrivals::Trace && asked.arrival > clock) {
      if (!running.empty())
        return;
      clock = asked.arrival; // nothing to do until then
    }
    int64_t pages = countPages(asked.getComputedTokens());
    if (promisedPages + pages > options.pages)
      return;
    promisedPages += pages;
    Running request;
    request.request = next++;
    running.push_back(std::move(request));
    ++batch.admitted;
    int64_t tokens = std::min(budget, asked.promptTokens);
    schedule(running.back(), tokens);
    budget -= tokens;
  }
}

const StepBatch &ContinuousBatcher::beginStep() {
  FI_ASSERT(!isDone(), "no request is left");
  batch = StepBatch();
  batch.index = counters.steps;
  int64_t budget = options.tokenBudget;
  for (Running &request : running) {
    if (budget > 0 && request.tokens >= trace[request.request].promptTokens) {
      schedule(request, 1);
      --budget;
    }
  }
  for (Running &request : running) {
    int64_t left = trace[request.request].promptTokens - request.tokens;
    if (budget > 0 && left > 0) {
      int64_t tokens = std::min(budget, left);
      schedule(request, tokens);
      budget -= tokens;
    }
  }
  admit(budget);

  batch.inFlight = running.size();
  batch.kind = batch.prefillTokens == 0  ? StepKind::Decode
               : batch.decodeTokens == 0 ? StepKind::Prefill
                                         : StepKind::Mixed;
  writeTables();

  ++counters.steps;
  ++(batch.kind == StepKind::Decode    ? counters.decodeSteps
     : batch.kind == StepKind::Prefill ? counters.prefillSteps
                                       : counters.mixedSteps);
  counters.chunkedSteps += batch.chunked;
  counters.fullSteps += batch.inFlight == options.maxRequests;
  counters.prefillTokens += batch.prefillTokens;
  counters.decodeTokens += batch.decodeTokens;
  counters.admitted += batch.admitted;
  counters.peakInFlight = std::max(counters.peakInFlight, batch.inFlight);
  for (const BatchEntry &entry : batch.entries)
    counters.maxKeys = std::max(counters.maxKeys, entry.getKeys());
  return batch;
}

void ContinuousBatcher::writeTables() {
  DenseMap<int64_t, const Running *> byRequest;
  for (const Running &request : running)
    byRequest[request.request] = &request;
  batch.rows.push_back(0);
  batch.pageIndptr.push_back(0);
  for (const BatchEntry &entry : batch.entries) {
    const Running &request = *byRequest[entry.request];
    batch.rows.push_back(batch.rows.back() + entry.tokens);
    append_range(batch.pages, request.pages);
    batch.pageIndptr.push_back(batch.pages.size());
    batch.lastPage.push_back((entry.getKeys() - 1) % options.pageSize + 1);
  }
}

const std::vector<int32_t> &ContinuousBatcher::endStep() {
  freed.clear();
  auto isComplete = [&](const Running &request) {
    return request.tokens == trace[request.request].getComputedTokens();
  };
  for (const Running &request : running) {
    if (!isComplete(request))
      continue;
    promisedPages -= countPages(request.tokens);
    append_range(freed, request.pages);
    [[maybe_unused]] bool released = allocator.release(request.pages);
    FI_ASSERT(released, "a request gave back pages it did not have");
    ++counters.completed;
  }
  erase_if(running, isComplete);
  clock += options.stepSeconds;
  return freed;
}

} // namespace fi::replay
