//===- BatchingTest.cpp - continuous batching -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Invariants of the batcher over seeded traces, checked against a book that the
// test keeps itself: every token once and in order, tables that describe the
// keys, no page with two owners, nothing lost at the end.
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Batching.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <map>
#include <random>
#include <set>

using namespace fi::replay;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

ContinuousBatcher make(std::vector<TraceRequest> trace,
                       const BatchingOptions &options) {
  auto batcher = ContinuousBatcher::create(std::move(trace), options);
  if (!batcher) {
    ADD_FAILURE() << llvm::toString(batcher.takeError());
    std::abort();
  }
  return std::move(*batcher);
}

/// Runs a trace to its end and checks every step.
void checkInvariants(const std::vector<TraceRequest> &trace,
                     const BatchingOptions &options) {
  ContinuousBatcher batcher = make(trace, options);
  std::vector<int64_t> computed(trace.size(), 0);
  std::map<int64_t, std::vector<int32_t>> pagesOf; // live requests
  std::set<int32_t> everUsed;
  int64_t reused = 0, steps = 0, prefill = 0, decode = 0, nextAdmitted = 0;
  while (!batcher.isDone()) {
    const StepBatch &batch = batcher.beginStep();
    ASSERT_EQ(batch.index, steps++);
    size_t n = batch.entries.size();
    ASSERT_GT(n, 0u) << "a step without work";
    ASSERT_EQ(batch.rows.size(), n + 1);
    ASSERT_EQ(batch.pageIndptr.size(), n + 1);
    ASSERT_EQ(batch.lastPage.size(), n);
    ASSERT_EQ(batch.rows[0], 0);
    ASSERT_EQ(batch.pageIndptr[0], 0);
    ASSERT_EQ(size_t(batch.pageIndptr.back()), batch.pages.size());
    ASSERT_LE(batch.getTokens(), options.tokenBudget);
    ASSERT_EQ(batch.rows.back(), batch.getTokens());
    ASSERT_LE(batch.inFlight, options.maxRequests);

    std::set<int64_t> seen;
    std::map<int32_t, int64_t> owner;
    for (auto &[request, pages] : pagesOf)
      for (int32_t page : pages)
        owner[page] = request;
    bool sawPrefill = false, chunked = false;
    int64_t stepPrefill = 0, stepDecode = 0, reusedHere = 0, newHere = 0;
    for (size_t i = 0; i < n; ++i) {
      const BatchEntry &entry = batch.entries[i];
      const TraceRequest &asked = trace[entry.request];
      ASSERT_TRUE(seen.insert(entry.request).second) << "twice in one step";
      // Every token once, in order.
      ASSERT_EQ(entry.context, computed[entry.request]);
      ASSERT_GT(entry.tokens, 0);
      ASSERT_EQ(batch.rows[i + 1] - batch.rows[i], entry.tokens);
      bool inPrompt = entry.context < asked.promptTokens;
      ASSERT_EQ(entry.prefill, inPrompt);
      ASSERT_TRUE(inPrompt || entry.tokens == 1);
      ASSERT_TRUE(!inPrompt || entry.getKeys() <= asked.promptTokens)
          << "a chunk runs over the end of the prompt";
      ASSERT_TRUE(inPrompt || !sawPrefill) << "decoding comes first";
      sawPrefill |= inPrompt;
      (inPrompt ? stepPrefill : stepDecode) += entry.tokens;
      chunked |= inPrompt && entry.tokens < asked.promptTokens;
      if (entry.context == 0) {
        ASSERT_EQ(entry.request, nextAdmitted++) << "order of arrival";
      }
      computed[entry.request] += entry.tokens;

      // The tables describe all keys, and pages once given stay.
      std::vector<int32_t> pages(batch.pages.begin() + batch.pageIndptr[i],
                                 batch.pages.begin() + batch.pageIndptr[i + 1]);
      ASSERT_EQ(int64_t(pages.size() - 1) * options.pageSize +
                    batch.lastPage[i],
                entry.getKeys());
      ASSERT_GE(batch.lastPage[i], 1);
      ASSERT_LE(batch.lastPage[i], options.pageSize);
      std::vector<int32_t> &before = pagesOf[entry.request];
      ASSERT_TRUE(std::equal(before.begin(), before.end(), pages.begin()));
      for (size_t j = before.size(); j < pages.size(); ++j) {
        ASSERT_GE(pages[j], 0);
        ASSERT_LT(pages[j], options.pages);
        ASSERT_EQ(owner.count(pages[j]), 0u) << "a page with two owners";
        owner[pages[j]] = entry.request;
        ++newHere;
        reusedHere += !everUsed.insert(pages[j]).second;
      }
      before = pages;
    }
    ASSERT_EQ(batch.prefillTokens, stepPrefill);
    ASSERT_EQ(batch.decodeTokens, stepDecode);
    ASSERT_EQ(batch.chunked, chunked);
    ASSERT_EQ(batch.kind, stepDecode == 0    ? StepKind::Prefill
                          : stepPrefill == 0 ? StepKind::Decode
                                             : StepKind::Mixed);
    ASSERT_EQ(batch.newPages, newHere);
    ASSERT_EQ(batch.reusedPages, reusedHere);
    ASSERT_EQ(batch.inFlight, int64_t(pagesOf.size()));
    ASSERT_EQ(batcher.getPages().getLive(), int64_t(owner.size()));
    reused += reusedHere;
    prefill += stepPrefill;
    decode += stepDecode;

    std::set<int32_t> freed;
    for (auto it = pagesOf.begin(); it != pagesOf.end();) {
      if (computed[it->first] == trace[it->first].getComputedTokens()) {
        freed.insert(it->second.begin(), it->second.end());
        it = pagesOf.erase(it);
      } else {
        ++it;
      }
    }
    llvm::ArrayRef<int32_t> given = batcher.endStep();
    ASSERT_EQ(freed, std::set<int32_t>(given.begin(), given.end()));
    ASSERT_EQ(freed.size(), given.size());
  }
  for (size_t i = 0; i < trace.size(); ++i)
    ASSERT_EQ(computed[i], trace[i].getComputedTokens());
  const BatchingCounters &counters = batcher.getCounters();
  EXPECT_EQ(counters.steps, steps);
  EXPECT_EQ(counters.prefillSteps + counters.decodeSteps + counters.mixedSteps,
            steps);
  EXPECT_EQ(counters.prefillTokens, prefill);
  EXPECT_EQ(counters.decodeTokens, decode);
  EXPECT_EQ(counters.admitted, int64_t(trace.size()));
  EXPECT_EQ(counters.completed, int64_t(trace.size()));
  EXPECT_EQ(batcher.getPages().getReused(), reused);
  EXPECT_EQ(batcher.getPages().getLive(), 0);
}

TEST(Batching, InvariantsOverSeededTraces) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto draw = [&](int64_t from, int64_t to) {
      return from + int64_t(random() % uint64_t(to - from + 1));
    };
    BatchingOptions options;
    options.maxRequests = draw(1, 12);
    options.tokenBudget = draw(1, 40);
    options.pageSize = draw(1, 9);
    options.arrivals = seed % 3 ? Arrivals::Saturated : Arrivals::Trace;
    options.stepSeconds = 0.25;
    std::vector<TraceRequest> trace(draw(1, 30));
    double time = 0;
    int64_t longest = 1;
    for (TraceRequest &request : trace) {
      request.arrival = time;
      time += draw(0, 8) * 0.25;
      request.promptTokens = draw(1, draw(1, 4) == 1 ? 100 : 20);
      request.generatedTokens = draw(0, 25);
      longest = std::max(longest, request.getComputedTokens());
    }
    // From just enough pages for one request to plenty for all.
    int64_t least = (longest + options.pageSize - 1) / options.pageSize;
    options.pages = least + draw(0, 3) * least;
    SCOPED_TRACE(seed);
    checkInvariants(trace, options);
    if (HasFatalFailure())
      return;
  }
}

TEST(Batching, StepByStep) {
  BatchingOptions options;
  options.maxRequests = 2;
  options.tokenBudget = 6;
  options.pageSize = 4;
  options.pages = 8;
  ContinuousBatcher batcher = make({{0, 8, 3}, {0, 5, 1}, {0, 2, 2}}, options);

  // The first prompt in part.
  const StepBatch &batch = batcher.beginStep();
  EXPECT_EQ(batch.kind, StepKind::Prefill);
  EXPECT_TRUE(batch.chunked);
  EXPECT_THAT(batch.rows, ElementsAre(0, 6));
  EXPECT_THAT(batch.pages, ElementsAre(0, 1));
  EXPECT_THAT(batch.lastPage, ElementsAre(2));
  EXPECT_EQ(batch.getVisiblePairs(), 21);
  batcher.endStep();

  // Its rest, and a part of the second.
  batcher.beginStep();
  EXPECT_THAT(batch.rows, ElementsAre(0, 2, 6));
  EXPECT_THAT(batch.pageIndptr, ElementsAre(0, 2, 3));
  EXPECT_THAT(batch.pages, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.lastPage, ElementsAre(4, 4));
  batcher.endStep();

  // Decoding beside a prompt; the second request ends with its prompt. The
  // third must wait for a place although there are tokens left.
  batcher.beginStep();
  EXPECT_EQ(batch.kind, StepKind::Mixed);
  EXPECT_THAT(batch.rows, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.pages, ElementsAre(0, 1, 3, 2, 4));
  EXPECT_EQ(batch.getVisiblePairs(), 9 + 5);
  EXPECT_THAT(batcher.endStep(), ElementsAre(2, 4));

  // The third takes the page that was given back last.
  batcher.beginStep();
  EXPECT_THAT(batch.rows, ElementsAre(0, 1, 3));
  EXPECT_THAT(batch.pages, ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(batch.reusedPages, 1);
  EXPECT_FALSE(batch.chunked);
  EXPECT_THAT(batcher.endStep(), ElementsAre(0, 1, 3));

  batcher.beginStep();
  EXPECT_EQ(batch.kind, StepKind::Decode);
  EXPECT_THAT(batch.lastPage, ElementsAre(3));
  batcher.endStep();
  EXPECT_TRUE(batcher.isDone());
  EXPECT_EQ(batcher.getCounters().peakInFlight, 2);
  EXPECT_EQ(batcher.getCounters().maxKeys, 10);
}

TEST(Batching, WaitsForPagesOfTheFinalLength) {
  BatchingOptions options;
  options.pageSize = 4;
  options.pages = 4;
  // Both prompts would fit now, but the first will need three pages.
  ContinuousBatcher batcher = make({{0, 4, 9}, {0, 5, 1}}, options);
  for (int step = 0; step < 9; ++step) {
    EXPECT_EQ(batcher.beginStep().inFlight, 1) << step;
    batcher.endStep();
  }
  EXPECT_EQ(batcher.beginStep().entries[0].request, 1);
}

TEST(Batching, ArrivesWhenTheTraceSays) {
  BatchingOptions options;
  options.arrivals = Arrivals::Trace;
  options.stepSeconds = 1;
  ContinuousBatcher batcher =
      make({{0, 1, 4}, {2, 1, 1}, {1000, 1, 1}}, options);
  std::vector<int64_t> admitted;
  while (!batcher.isDone()) {
    admitted.push_back(batcher.beginStep().admitted);
    batcher.endStep();
  }
  EXPECT_THAT(admitted, ElementsAre(1, 0, 1, 0, 1));
}

TEST(Batching, RefusesWhatCannotWork) {
  auto errorOf = [](BatchingOptions options) {
    auto batcher = ContinuousBatcher::create({{0, 30, 4}}, options);
    return batcher ? "" : llvm::toString(batcher.takeError());
  };
  BatchingOptions options;
  options.pageSize = 8;
  options.pages = 4;
  EXPECT_THAT(errorOf(options),
              HasSubstr("request 0 of the trace: its 33 tokens need 5 pages of "
                        "8 slots, but the pool has 4"));
  options.pages = 5;
  EXPECT_EQ(errorOf(options), "");
  options.maxRequests = 0;
  EXPECT_THAT(errorOf(options), HasSubstr("requests in flight: expected"));
  options = {};
  options.tokenBudget = -1;
  EXPECT_THAT(errorOf(options), HasSubstr("tokens of a step: expected"));
  options = {};
  options.pageSize = int64_t(1) << 40;
  EXPECT_THAT(errorOf(options), HasSubstr("page size: expected"));
  options = {};
  options.pages = int64_t(1) << 40;
  EXPECT_THAT(errorOf(options), HasSubstr("pages: expected"));
  options = {};
  options.stepSeconds = 0;
  EXPECT_THAT(errorOf(options), HasSubstr("seconds of a step: expected"));
}

TEST(PageAllocator, LastGivenBackIsFirstGivenOut) {
  PageAllocator pages(3);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 1);
  EXPECT_EQ(pages.allocate(), 2);
  EXPECT_EQ(pages.allocate(), std::nullopt);
  EXPECT_TRUE(pages.release({2, 0}));
  EXPECT_EQ(pages.getFree(), 2);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 2);
  EXPECT_EQ(pages.getPeak(), 3);
  EXPECT_EQ(pages.getAllocated(), 5);
  EXPECT_EQ(pages.getReused(), 2);
}

TEST(PageAllocator, RefusesPagesThatAreNotInUse) {
  PageAllocator pages(4);
  ASSERT_EQ(pages.allocate(), 0);
  ASSERT_EQ(pages.allocate(), 1);
  for (std::vector<int32_t> wrong :
       {std::vector<int32_t>{0, 2}, {1, 1}, {0, -1}, {0, 4}}) {
    EXPECT_FALSE(pages.release(wrong));
    EXPECT_EQ(pages.getLive(), 2);
    EXPECT_TRUE(pages.isLive(0) && pages.isLive(1));
  }
  EXPECT_TRUE(pages.release({0, 1}));
  EXPECT_EQ(pages.getLive(), 0);
}

} // namespace
