//===- RunTest.cpp - Runs: threads, workspaces, stages --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Concurrent runs of one plan, forks, allocation, and programs of several
// stages with temporaries.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fi::test;

namespace {

bool sanitized(bool threadsOnly) {
#if defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__SANITIZE_ADDRESS__)
  return !threadsOnly;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  return true;
#elif __has_feature(address_sanitizer)
  return !threadsOnly;
#endif
#endif
  (void)threadsOnly;
  return false;
}

struct Subject {
  FakeProgram program;
  PackagePtr package;

  Subject() {
    program.bodies = {{4, 16, -1, 256, 10, 100, 10}};
    program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
    package.reset(openFake(program.manifest()));
  }
  static void fill(FakeBatch &batch, Recorder &recorder) {
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    batch.queryLengths = {1, 9, 1, 0, 3};
    batch.keyLengths = {300, 40, 7, 0, 90};
  }
};

TEST(Run, SamePlanFromManyThreads) {
  Subject s;
  ASSERT_TRUE(s.package) << fi_last_error();
  FakeBatch planned;
  Recorder unused;
  Subject::fill(planned, unused);
  planned.bind(s.program, unused);
  PlanPtr plan = planBatch(s.package.get(), planned, defaultOptions(4));
  ASSERT_TRUE(plan) << fi_last_error();
  std::vector<std::string> failures(6);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50 && failures[t].empty(); ++i) {
        FakeBatch batch;
        Recorder recorder;
        Subject::fill(batch, recorder);
        batch.bind(s.program, recorder);
        if (runBatch(plan.get(), batch) != FI_OK)
          failures[t] = fi_last_error();
        else
          failures[t] = compareCounts(s.program, batch, recorder);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

TEST(Run, UpdateWaitsForNoRun) {
  Subject s;
  FakeBatch batch;
  Recorder recorder;
  Subject::fill(batch, recorder);
  batch.bind(s.program, recorder);
  PlanPtr plan = planBatch(s.package.get(), batch, defaultOptions(1));
  ASSERT_TRUE(plan) << fi_last_error();
  // The mask is called inside of the run.
  fi_status inside = FI_OK;
  std::string sentence;
  recorder.visible = [&](const Pair &) {
    if (inside == FI_OK) {
      inside = fi_plan_update(plan.get(), batch.plan.data(),
                              int32_t(batch.plan.size()), nullptr);
      sentence = fi_last_error();
    }
    return true;
  };
  recorder.covered.clear();
  EXPECT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(inside, FI_BUSY);
  EXPECT_EQ(sentence, "plan: expected no run in progress, but it is being run; "
                      "update it when its runs have returned");
  EXPECT_EQ(fi_plan_update(plan.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), nullptr),
            FI_OK);
}

TEST(Run, TablesMayGoAfterPlanning) {
  Subject s;
  FakeBatch batch;
  Recorder recorder;
  Subject::fill(batch, recorder);
  batch.bind(s.program, recorder);
  fi_plan_options options = defaultOptions(2);
  PlanPtr plan = planBatch(s.package.get(), batch, options);
  ASSERT_TRUE(plan) << fi_last_error();
  for (size_t i = 0; i < 5; ++i)
    batch.set("pages", i, -1);
  EXPECT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(s.program, batch, recorder), "");
}

/// The child of a fork has none of the threads and must not miss them.
TEST(Run, WorksAfterFork) {
  if (sanitized(/*threadsOnly=*/true))
    GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
  Subject s;
  FakeBatch batch;
  Recorder recorder;
  Subject::fill(batch, recorder);
  batch.bind(s.program, recorder);
  PlanPtr plan = planBatch(s.package.get(), batch, defaultOptions(4));
  ASSERT_TRUE(plan) << fi_last_error();
  ASSERT_EQ(runBatch(plan.get(), batch), FI_OK);
  pid_t child = fork();
  if (child == 0) {
    alarm(20); // a hang is a failure
    bool good = true;
    for (int i = 0; i < 20; ++i) {
      batch.bind(s.program, recorder);
      good &= runBatch(plan.get(), batch) == FI_OK &&
              compareCounts(s.program, batch, recorder).empty();
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  batch.bind(s.program, recorder);
  EXPECT_EQ(runBatch(plan.get(), batch), FI_OK);
}

TEST(Run, NeitherRunNorRepeatedUpdatesAllocate) {
  if (sanitized(/*threadsOnly=*/false))
    GTEST_SKIP() << "the sanitizer has an allocator of its own";
  Subject s;
  FakeBatch batch;
  Recorder recorder;
  Subject::fill(batch, recorder);
  batch.bind(s.program, recorder);
  PlanPtr plan = planBatch(s.package.get(), batch, defaultOptions(3));
  ASSERT_TRUE(plan) << fi_last_error();
  Workspace workspace(fi_plan_workspace_bytes(plan.get()));
  auto step = [&] {
    ASSERT_EQ(fi_plan_update(plan.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              FI_OK);
    ASSERT_EQ(fi_run(plan.get(), 0, batch.run.data(), 4, batch.results.data(),
                     2, workspace.data(), workspace.size()),
              FI_OK);
  };
  for (int i = 0; i < 3; ++i)
    step();
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i)
    step();
  EXPECT_EQ(mallinfo2().uordblks, before);
}

//===-- Several stages ----------------------------------------------------===//

/// Counts what the stages of a program do; passed as a scalar, as in Recorder.
struct StageLog {
  std::mutex mutex;
  std::vector<std::string> order;
  std::vector<fi_item> appends, rows;
  const char *workspace = nullptr;
  size_t workspaceBytes = 0;
  bool temporaryInside = false;
  int64_t temporaryRows = 0;
};

void appendTokens(const int64_t *slots, const fi_work *work, int64_t begin,
                  int64_t end, void *) {
  StageLog &log = *reinterpret_cast<StageLog *>(slots[0]);
  std::lock_guard<std::mutex> lock(log.mutex);
  for (int64_t i = begin; i < end; ++i) {
    log.order.push_back("append");
    log.appends.push_back(work->items[i]);
  }
}

void attend(const int64_t *slots, const fi_work *, int64_t begin, int64_t end,
            void *) {
  StageLog &log = *reinterpret_cast<StageLog *>(slots[0]);
  std::lock_guard<std::mutex> lock(log.mutex);
  const char *temporary = reinterpret_cast<const char *>(slots[1]);
  int64_t bytes = slots[2] * slots[3] * slots[4] * int64_t(sizeof(float));
  log.temporaryInside = temporary >= log.workspace &&
                        temporary + bytes <= log.workspace + log.workspaceBytes;
  log.temporaryRows = slots[2];
  for (int64_t i = begin; i < end; ++i)
    log.order.push_back("attention");
}

void finishRows(const int64_t *slots, const fi_work *work, int64_t begin,
                int64_t end, void *) {
  StageLog &log = *reinterpret_cast<StageLog *>(slots[0]);
  std::lock_guard<std::mutex> lock(log.mutex);
  for (int64_t i = begin; i < end; ++i) {
    log.order.push_back("rows");
    log.rows.push_back(work->items[i]);
  }
}

void *findStage(void *, const char *symbol) {
  std::string name = symbol;
  if (name == "append0")
    return reinterpret_cast<void *>(appendTokens);
  if (name == "attend0")
    return reinterpret_cast<void *>(attend);
  if (name == "rows0")
    return reinterpret_cast<void *>(finishRows);
  return findFakeKernel(nullptr, symbol);
}

/// append, attention into a temporary, rows into the results.
json threeStages() {
  FakeProgram program;
  json m = program.manifest();
  for (const char *name : {"newk", "newv"})
    m["arguments"].push_back({{"name", name},
                              {"group", "run"},
                              {"kind", "tensor"},
                              {"dtype", "f32"},
                              {"shape", {nullptr, 2, 8}}});
  m["temporaries"] = {{{"name", "t0"},
                       {"dtype", "f32"},
                       {"shape", {nullptr, 4, 4}},
                       {"rows_of", "q"}}};
  json attention = m["stages"][0];
  attention["bodies"][0]["symbol"] = "attend0";
  attention["buffers"] = {"recorder", "t0", "q", "k", "v", "pages"};
  attention["outputs"] = {{"o", "t0"}};
  attention.erase("merge");
  json append = {
      {"op", "append"},
      {"name", "append0"},
      {"rows", "qo"},
      {"view", attention["view"]},
      {"buffers", {"recorder", "newk", "newv", "k", "v", "pages"}},
      {"bodies", {{{"symbol", "append0"}, {"tile_rows", 2}, {"scratch", 0}}}}};
  json rows = {
      {"op", "rows"},
      {"name", "finish0"},
      {"rows_of", "q"},
      {"heads", 4},
      {"buffers", {"recorder", "t0", "result0", "result1"}},
      {"bodies", {{{"symbol", "rows0"}, {"tile_rows", 3}, {"scratch", 0}}}}};
  m["stages"] = {append, attention, rows};
  return m;
}

TEST(Run, StagesInOrder) {
  std::string text = threeStages().dump();
  fi_package *opened = nullptr;
  ASSERT_EQ(fi_package_from_memory(text.data(), text.size(), findStage, nullptr,
                                   &opened),
            FI_OK)
      << fi_last_error();
  PackagePtr package(opened);
  FakeProgram program;
  FakeBatch batch;
  Recorder unused;
  batch.queryLengths = {1, 5, 0, 2};
  batch.keyLengths = {1, 9, 3, 2};
  batch.trailingRows = 2;
  batch.bind(program, unused);
  fi_plan_options options = defaultOptions(3);
  options.rows = 10;
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan) << fi_last_error();

  std::vector<float> data(10 * 2 * 8);
  int64_t shape[] = {10, 2, 8};
  fi_value tokens = {};
  tokens.as.tensor = {data.data(), FI_F32, 3, shape, nullptr};
  batch.run.push_back(tokens);
  batch.run.push_back(tokens);
  Workspace workspace(fi_plan_workspace_bytes(plan.get()));
  for (int repeat = 0; repeat < 50; ++repeat) {
    StageLog log;
    log.workspace = static_cast<const char *>(workspace.data());
    log.workspaceBytes = workspace.size();
    batch.run[0].as.i64 = int64_t(reinterpret_cast<intptr_t>(&log));
    ASSERT_EQ(fi_run(plan.get(), 1, batch.run.data(), 6, batch.results.data(),
                     2, workspace.data(), workspace.size()),
              FI_OK)
        << fi_last_error();
    ASSERT_TRUE(workspace.guardIntact());
    // Tiles of two tokens on two heads: 1 + 3 + 1 tiles.
    EXPECT_EQ(log.appends.size(), 10u);
    // Ten rows in tiles of three on four heads.
    EXPECT_EQ(log.rows.size(), 16u);
    EXPECT_TRUE(log.temporaryInside);
    EXPECT_EQ(log.temporaryRows, 10);
    EXPECT_TRUE(
        std::is_sorted(log.order.begin(), log.order.end(),
                       [](const std::string &a, const std::string &b) {
                         auto rank = [](const std::string &s) {
                           return s == "append" ? 0 : s == "attention" ? 1 : 2;
                         };
                         return rank(a) < rank(b);
                       }));
    int64_t covered = 0;
    for (const fi_item &item : log.appends) {
      covered += item.row_count;
      EXPECT_EQ(item.q_len, batch.queryLengths[item.request]);
      EXPECT_EQ(item.kv_len, batch.keyLengths[item.request]);
    }
    EXPECT_EQ(covered, 8 * 2);
  }
  // More new tokens than the view has keys.
  batch.set("last", 0, 1);
  batch.set("qo", 1, 2);
  EXPECT_FALSE(planBatch(package.get(), batch, options));
  EXPECT_STREQ(
      fi_last_error(),
      "append0: expected no more new tokens than keys in the view, but "
      "request 0 appends 2 tokens to a view of 1 keys; the view's "
      "lengths include the new tokens");
}

} // namespace
