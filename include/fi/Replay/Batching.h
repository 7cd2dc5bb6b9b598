//===- Batching.h - continuous batching of a trace --------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scheduler of a serving engine, without the model: which requests take
// part in a step with how many tokens, in which pages their keys lie, and when
// pages become free. Pure and deterministic; it knows nothing of kernels,
// tensors or devices. An executor (Executor.h) runs the batches.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_BATCHING_H
#define FI_REPLAY_BATCHING_H

#include "fi/Replay/PageAllocator.h"
#include "fi/Replay/Trace.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <vector>

namespace fi::replay {

/// Most pages that a pool may have.
inline constexpr int64_t kMaxPages = 1 << 24;

/// When requests are there to be admitted.
enum class Arrivals {
  Saturated, ///< all at once: there is always one waiting
  Trace ///< at the trace's times; a step takes BatchingOptions::stepSeconds
};

struct BatchingOptions {
  /// Requests in flight at once.
  int64_t maxRequests = 64;
  /// Tokens of a step. Decoding requests take one each, prompts share the rest
  /// in chunks.
  int64_t tokenBudget = 512;
  int64_t pageSize = 16;
  /// Pages of the pool.
  int64_t pages = 8192;
  Arrivals arrivals = Arrivals::Saturated;
  /// Simulated, not measured, so that the batches do not depend on the machine.
  double stepSeconds = 0.05;
};

/// The part of one request in a step: its tokens [context, context + tokens).
struct BatchEntry {
  int64_t request = 0; ///< index in the trace
  int64_t context = 0; ///< tokens whose keys were there before
  int64_t tokens = 0;  ///< new tokens
  bool prefill = false;

  int64_t getKeys() const { return context + tokens; }
};

enum class StepKind { Prefill, Decode, Mixed };

/// One step of the engine: entries and the tables that describe them, decoding
/// requests first.
struct StepBatch {
  int64_t index = 0;
  std::vector<BatchEntry> entries;
  /// Row indptr, page indptr, pages and valid slots of each last page, after
  /// the new tokens have been appended.
  std::vector<int32_t> rows, pageIndptr, pages, lastPage;
  StepKind kind = StepKind::Decode;
  /// Whether some prompt is in this step only in part.
  bool chunked = false;
  int64_t prefillTokens = 0, decodeTokens = 0;
  /// Requests in flight, those admitted in this step included.
  int64_t inFlight = 0, admitted = 0;
  /// Pages taken in this step, and how many of them another request had had.
  int64_t newPages = 0, reusedPages = 0;

  int64_t getTokens() const { return prefillTokens + decodeTokens; }
  int64_t getKeys() const;
  /// Pairs of a row and a key that causal attention lets it see.
  int64_t getVisiblePairs() const;
};

/// What happened up to now.
struct BatchingCounters {
  int64_t steps = 0, prefillSteps = 0, decodeSteps = 0, mixedSteps = 0;
  int64_t chunkedSteps = 0, fullSteps = 0; // fullSteps: maxRequests in flight
  int64_t prefillTokens = 0, decodeTokens = 0;
  int64_t admitted = 0, completed = 0;
  int64_t peakInFlight = 0, maxKeys = 0; // maxKeys: of one request
};

/// Forms the batches of a trace, one step after the other:
///
///   while (!batcher.isDone()) {
///     const StepBatch &batch = batcher.beginStep();
///     ... execute it ...
///     batcher.endStep();
///   }
///
/// A request is admitted while a step has tokens left, in the order of arrival,
/// when the pages of its final length are not promised to others: so a request
/// once admitted always finds its next page, and none is ever preempted. Pages
/// are taken when tokens come, and given back at the end of the last step.
class ContinuousBatcher {
public:
  /// Refuses options out of range and requests that can never fit.
  static llvm::Expected<ContinuousBatcher>
  create(std::vector<TraceRequest> trace, const BatchingOptions &options);

  /// Whether every request of the trace is completed.
  bool isDone() const { return running.empty() && next == trace.size(); }
  /// Forms the next batch. Must not be called when done or within a step.
  const StepBatch &beginStep();
  /// The batch has been executed: completed requests leave and free their
  /// pages, which are returned (until the next call).
  const std::vector<int32_t> &endStep();

  const StepBatch &getBatch() const { return batch; }
  const BatchingCounters &getCounters() const { return counters; }
  const PageAllocator &getPages() const { return allocator; }
  const std::vector<TraceRequest> &getTrace() const { return trace; }
  const BatchingOptions &getOptions() const { return options; }

private:
  struct Running {
    int64_t request = 0;
    int64_t tokens = 0; // computed up to now, this step's included
    std::vector<int32_t> pages;
  };

  ContinuousBatcher(std::vector<TraceRequest> trace,
                    const BatchingOptions &options)
      : trace(std::move(trace)), options(options), allocator(options.pages) {}

  int64_t countPages(int64_t tokens) const {
    return (tokens + options.pageSize - 1) / options.pageSize;
  }
  void schedule(Running &request, int64_t tokens);
  void admit(int64_t &budget);
  void writeTables();

  std::vector<TraceRequest> trace;
  BatchingOptions options;
  PageAllocator allocator;
  std::vector<Running> running; // in the order of admission
  size_t next = 0;              // of the trace
  int64_t promisedPages = 0;    // final pages of the running requests
  double clock = 0;
  StepBatch batch;
  std::vector<int32_t> freed;
  BatchingCounters counters;
};

} // namespace fi::replay

#endif // FI_REPLAY_BATCHING_H
