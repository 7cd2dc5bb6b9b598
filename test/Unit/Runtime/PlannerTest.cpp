//===- PlannerTest.cpp - Policies and their guarantees --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Balance, batch invariance, merge order, tile skipping, and shapes that only
// the options know. Reads the schedule as the tools do.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"

#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace fi::test;

namespace {

json causal() { return json::parse(R"({"terms": [{"hi": [["q"]]}]})"); }

json scheduleOf(fi_plan *plan) {
  char *text = nullptr;
  EXPECT_EQ(fi_plan_schedule_json(plan, &text), FI_OK) << fi_last_error();
  json parsed = json::parse(text);
  fi_string_free(text);
  return parsed;
}

std::string explain(fi_plan *plan) {
  char *text = nullptr;
  EXPECT_EQ(fi_plan_explain(plan, &text), FI_OK) << fi_last_error();
  std::string result = text;
  fi_string_free(text);
  return result;
}

struct Balance {
  double longest = 0, average = 0, largest = 0;
  int64_t items = 0, slots = 0;
};

/// Loads of the first phase, summed from the items.
Balance balanceOf(const json &schedule) {
  Balance b;
  for (const json &worker : schedule["workers"]) {
    double load = 0;
    for (const json &item : worker["items"]) {
      if (item["merge"])
        continue;
      ++b.items;
      b.slots += item["slot"] >= 0;
      load += item["cost"].get<double>();
      b.largest = std::max(b.largest, item["cost"].get<double>());
    }
    b.longest = std::max(b.longest, load);
    b.average += load / double(schedule["workers"].size());
  }
  return b;
}

FakeProgram servingProgram() {
  FakeProgram program;
  program.kvHeads = 8;
  program.group = 4;
  program.page = 16;
  program.bodies = {{16, 64, 16, 512, 400, 900, 20},
                    {128, 64, -1, 512, 4000, 1200, 18}};
  program.mask = causal();
  return program;
}

struct Planned {
  PackagePtr package;
  Recorder recorder;
  FakeBatch batch;
  PlanPtr plan;

  Planned(const FakeProgram &program, std::vector<int64_t> queries,
          std::vector<int64_t> keys, const fi_plan_options &options) {
    package.reset(openFake(program.manifest()));
    EXPECT_TRUE(package) << fi_last_error();
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    batch.queryLengths = std::move(queries);
    batch.keyLengths = std::move(keys);
    batch.bind(program, recorder);
    plan = planBatch(package.get(), batch, options);
    EXPECT_TRUE(plan) << fi_last_error();
  }
};

TEST(Planner, LeavesBalancedBatchesWhole) {
  FakeProgram program = servingProgram();
  Planned p(program, std::vector<int64_t>(128, 1),
            std::vector<int64_t>(128, 2048), defaultOptions(16));
  Balance b = balanceOf(scheduleOf(p.plan.get()));
  EXPECT_EQ(b.items, 1024);
  EXPECT_EQ(b.slots, 0);
  EXPECT_DOUBLE_EQ(b.longest, b.average);
  EXPECT_NE(explain(p.plan.get()).find("balance within 5 %"),
            std::string::npos);
}

TEST(Planner, SplitsWhatWouldDominate) {
  FakeProgram program = servingProgram();
  for (int32_t workers : {2, 3, 16, 64}) {
    Planned p(program, {1, 1}, {131072, 64}, defaultOptions(workers));
    Balance b = balanceOf(scheduleOf(p.plan.get()));
    if (workers > 8) {
      EXPECT_GT(b.slots, 0) << workers;
    }
    EXPECT_LE(b.longest, 1.15 * b.average) << workers;
  }
}

TEST(Planner, BalanceBoundHolds) {
  std::mt19937_64 random(11);
  FakeProgram program = servingProgram();
  PackagePtr package(openFake(program.manifest()));
  for (int i = 0; i < 300; ++i) {
    Recorder recorder;
    recorder.cover = false;
    FakeBatch batch;
    for (int r = 0, n = 1 + int(random() % 20); r < n; ++r) {
      batch.queryLengths.push_back(random() % 4 ? 1
                                                : int64_t(random() % 100 + 1));
      batch.keyLengths.push_back(batch.queryLengths.back() +
                                 int64_t(random() % 20000));
    }
    batch.bind(program, recorder);
    fi_plan_options options = defaultOptions(int32_t(1 + random() % 32));
    PlanPtr plan = planBatch(package.get(), batch, options);
    ASSERT_TRUE(plan) << fi_last_error();
    Balance b = balanceOf(scheduleOf(plan.get()));
    // Never more than the average and one piece.
    ASSERT_LE(b.longest, (b.average + b.largest) * (1 + 1e-9));
    // Never worse than whole tiles.
    options.split_policy = FI_SPLIT_NONE;
    plan = planBatch(package.get(), batch, options);
    ASSERT_TRUE(plan) << fi_last_error();
    Balance whole = balanceOf(scheduleOf(plan.get()));
    ASSERT_EQ(whole.slots, 0);
    ASSERT_LE(b.longest, whole.longest * (1 + 1e-9));
  }
}

/// Pieces of one request: by head and rows, the ranges of each in slot order.
using Pieces = std::set<std::string>;

Pieces piecesOf(const json &schedule, int64_t request) {
  std::map<std::string, std::map<int64_t, std::string>> tiles;
  for (const json &worker : schedule["workers"])
    for (const json &item : worker["items"]) {
      if (item["request"] != request || item["merge"])
        continue;
      json key = {item["body"], item["kv_head"], item["row_begin"],
                  item["row_count"]};
      tiles[key.dump()][item["slot"]] = item["ranges"].dump();
    }
  Pieces pieces;
  for (const auto &tile : tiles) {
    std::string text = tile.first;
    for (const auto &piece : tile.second)
      text += " | " + piece.second;
    pieces.insert(text);
  }
  return pieces;
}

TEST(Planner, FixedSplitsDoNotDependOnTheBatch) {
  std::mt19937_64 random(3);
  FakeProgram program = servingProgram();
  fi_plan_options options = defaultOptions(4);
  options.split_policy = FI_SPLIT_FIXED;
  options.split_keys = 256;
  int64_t split = 0;
  for (int i = 0; i < 200; ++i) {
    int64_t queries = 1 + int64_t(random() % 40);
    int64_t keys = queries + int64_t(random() % 2000);
    Planned alone(program, {queries}, {keys}, options);
    Pieces expected = piecesOf(scheduleOf(alone.plan.get()), 0);
    ASSERT_FALSE(expected.empty());
    split += expected.begin()->find(" | ", 0) != expected.begin()->rfind(" | ");
    std::vector<int64_t> otherQueries, otherKeys;
    for (int r = 0, n = int(random() % 6); r < n; ++r) {
      otherQueries.push_back(int64_t(random() % 40));
      otherKeys.push_back(int64_t(random() % 3000));
    }
    int64_t at = int64_t(random() % (otherQueries.size() + 1));
    otherQueries.insert(otherQueries.begin() + at, queries);
    otherKeys.insert(otherKeys.begin() + at, keys);
    options.workers = int32_t(1 + random() % 30);
    Planned among(program, otherQueries, otherKeys, options);
    ASSERT_EQ(piecesOf(scheduleOf(among.plan.get()), at), expected);
  }
  EXPECT_GT(split, 50);
}

TEST(Planner, FixedSplitsAreCutAtMultiples) {
  FakeProgram program = servingProgram();
  program.split = {{"policy", "fixed"}, {"keys", 200}}; // rounded up to 256
  Planned p(program, {1}, {1000}, defaultOptions(2));
  std::set<int64_t> begins;
  json schedule = scheduleOf(p.plan.get());
  for (const json &worker : schedule["workers"])
    for (const json &item : worker["items"])
      if (!item["merge"])
        begins.insert(item["ranges"][0]["begin"].get<int64_t>());
  EXPECT_EQ(begins, (std::set<int64_t>{0, 256, 512, 768}));
}

/// docs/planner.md: a merge costs item + slot_row * slots * rows.
TEST(Planner, MergesCostWhatTheirSlotsDo) {
  FakeProgram program = servingProgram();
  fi_plan_options options = defaultOptions(4);
  options.split_policy = FI_SPLIT_FIXED;
  options.split_keys = 256;
  Planned p(program, {1}, {1000}, options); // 4 pieces
  char *text = nullptr;
  ASSERT_EQ(fi_plan_explain(p.plan.get(), &text), FI_OK);
  std::string explained = text;
  fi_string_free(text);
  int64_t cost = program.kvHeads * (50 + 5 * 4 * program.group);
  EXPECT_NE(explained.find("; merging costs " + std::to_string(cost) + "\n"),
            std::string::npos)
      << explained;
}

TEST(Planner, MergesSlotsInKeyOrder) {
  FakeProgram program = servingProgram();
  Planned p(program, {1, 3}, {40000, 9000}, defaultOptions(24));
  json schedule = scheduleOf(p.plan.get());
  std::map<int64_t, int64_t> keyOfSlot; // body 0 has all of them here
  int64_t merges = 0;
  for (const json &worker : schedule["workers"])
    for (const json &item : worker["items"])
      if (!item["merge"] && item["slot"] >= 0)
        keyOfSlot[item["slot"]] = item["ranges"][0]["begin"];
  for (const json &worker : schedule["workers"])
    for (const json &item : worker["items"]) {
      if (!item["merge"])
        continue;
      ++merges;
      int64_t first = item["slot"], count = item["slots"];
      ASSERT_GE(count, 2);
      EXPECT_EQ(keyOfSlot[first], 0);
      for (int64_t s = first; s < first + count; ++s)
        ASSERT_TRUE(keyOfSlot.count(s));
      for (int64_t s = first + 1; s < first + count; ++s)
        EXPECT_LT(keyOfSlot[s - 1], keyOfSlot[s]);
    }
  EXPECT_GE(merges, 8);
  ASSERT_EQ(runBatch(p.plan.get(), p.batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, p.batch, p.recorder), "");
}

TEST(Planner, VisitsOnlyTilesInTheWindow) {
  FakeProgram program = servingProgram();
  program.mask = json::parse(
      R"({"terms": [{"lo": [["sub", ["q"], ["const", 511]]], "hi": [["q"]]}]})");
  Planned p(program, {1}, {1000000}, defaultOptions(1));
  json schedule = scheduleOf(p.plan.get());
  ASSERT_EQ(schedule["workers"][0]["items"].size(), 8u);
  // Keys 999488 ... 999999 are eight whole tiles.
  json ranges = schedule["workers"][0]["items"][0]["ranges"];
  int64_t begin = ranges[0]["begin"], end = ranges.back()["end"];
  EXPECT_EQ(begin, 999488);
  EXPECT_EQ(end, 1000000);
  for (const json &range : ranges)
    EXPECT_TRUE(range["full"]);
}

TEST(Planner, EmptyBatchesAreLegal) {
  FakeProgram program = servingProgram();
  Planned none(program, {}, {}, defaultOptions(2));
  EXPECT_EQ(runBatch(none.plan.get(), none.batch), FI_OK) << fi_last_error();
  Planned noRows(program, {0, 0}, {5, 0}, defaultOptions(2));
  EXPECT_EQ(runBatch(noRows.plan.get(), noRows.batch), FI_OK)
      << fi_last_error();
  Planned noKeys(program, {3, 1}, {0, 0}, defaultOptions(2));
  EXPECT_EQ(runBatch(noKeys.plan.get(), noKeys.batch), FI_OK)
      << fi_last_error();
  EXPECT_EQ(compareCounts(program, noKeys.batch, noKeys.recorder), "");
}

/// One request without tables: rows, keys and page size come from the options.
TEST(Planner, TakesOpenSizesFromTheOptions) {
  FakeProgram program;
  program.view = FakeView::Ragged;
  program.mask = causal();
  json manifest = program.manifest();
  json &stage = manifest["stages"][0];
  stage["rows"] = nullptr;
  stage["view"]["indptr"] = nullptr;
  manifest["arguments"].erase(0); // qo
  manifest["arguments"].erase(0); // indptr
  PackagePtr package(openFake(manifest));
  ASSERT_TRUE(package) << fi_last_error();
  FakeBatch batch;
  Recorder recorder;
  recorder.visible = [](const Pair &p) {
    return p.keyPosition <= p.queryPosition;
  };
  batch.queryLengths = {5};
  batch.keyLengths = {33};
  batch.bind(program, recorder);
  batch.plan.clear();
  fi_status status;
  EXPECT_FALSE(planBatch(package.get(), batch, defaultOptions(2), &status));
  EXPECT_EQ(status, FI_INVALID_BATCH);
  EXPECT_NE(std::string(fi_last_error()).find("operand 'q': its rows"),
            std::string::npos);
  std::vector<fi_tensor> shapes(4);
  for (int i = 1; i < 4; ++i)
    shapes[i] = batch.run[i].as.tensor;
  fi_plan_options options = defaultOptions(2);
  options.run_shapes = shapes.data();
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan) << fi_last_error();
  ASSERT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  // The options are remembered by an update without any.
  ASSERT_EQ(fi_plan_update(plan.get(), nullptr, 0, nullptr), FI_OK)
      << fi_last_error();
}

TEST(Planner, TakesThePageSizeFromTheOptions) {
  FakeProgram program;
  program.mask = causal();
  json manifest = program.manifest();
  manifest["stages"][0]["view"]["page"] = nullptr;
  for (json &argument : manifest["arguments"])
    if (argument["kind"] == "pool")
      argument["shape"][2] = nullptr;
  PackagePtr package(openFake(manifest));
  ASSERT_TRUE(package) << fi_last_error();
  FakeBatch batch;
  Recorder recorder;
  recorder.visible = [](const Pair &p) {
    return p.keyPosition <= p.queryPosition;
  };
  batch.queryLengths = {2, 1};
  batch.keyLengths = {9, 30};
  batch.bind(program, recorder);
  EXPECT_FALSE(planBatch(package.get(), batch, defaultOptions(2)));
  EXPECT_NE(std::string(fi_last_error()).find("page size is not known"),
            std::string::npos);
  std::vector<fi_tensor> shapes(4);
  int64_t pool[] = {-1, -1, 4, -1};
  shapes[2] = {nullptr, FI_F32, 4, pool, nullptr};
  fi_plan_options options = defaultOptions(2);
  options.run_shapes = shapes.data();
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan) << fi_last_error();
  ASSERT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  // A stated pool is checked against the page table when planning.
  int64_t small[] = {50, 2, 4, 8};
  shapes[2].shape = small;
  EXPECT_FALSE(planBatch(package.get(), batch, options));
  EXPECT_NE(std::string(fi_last_error()).find("page indices below 50"),
            std::string::npos)
      << fi_last_error();
}

} // namespace
