//===- GraphTest.cpp - Graph-safe plans -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches of a plan's first batch are captured and done again after updates,
// with the parameters that they had: each time they must give the results of
// the batch that is planned then. And what exceeds the capacities is refused.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace fi::test;

namespace {

/// A program with a captured run of its largest batch.
class Captured {
public:
  Captured(const FakeProgram &program, const json &manifest,
           std::vector<int64_t> queries, std::vector<int64_t> keys,
           const std::function<void(fi_plan_options &)> &change,
           std::function<bool(const Pair &)> visible = nullptr)
      : program(program) {
    gpu.driver.devices[0].multiprocessors = 5;
    gpu.open(manifest);
    recorder.visible = visible ? visible : [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    fill(first, queries, keys);
    rows = first.rows();
    options = gpu.options();
    options.graph_safe = 1;
    change(options);
    rows = first.trailingRows = std::max(rows, options.rows) - rows;
    rows = first.rows();
    first.bind(program, recorder);
    plan = planBatch(gpu.package.get(), first, options);
    if (!plan) {
      problem = fi_last_error();
      return;
    }
    workspace =
        std::make_unique<Workspace>(fi_plan_workspace_bytes(plan.get()));
    gpu.driver.adopt(workspace->data(), workspace->size() + 1);
    gpu.adopt(first);
    gpu.driver.capturing = true;
    if (fi_run_device(plan.get(), 0, first.run.data(),
                      int32_t(first.run.size()), first.results.data(), 2,
                      workspace->data(), workspace->size(), nullptr) != FI_OK)
      problem = fi_last_error();
    gpu.driver.capturing = false;
    gpu.driver.clear();
    if (problem.empty())
      problem = replay(first);
  }

  void fill(FakeBatch &batch, const std::vector<int64_t> &queries,
            const std::vector<int64_t> &keys) const {
    batch.queryLengths = queries;
    batch.keyLengths = keys;
    if (program.origin)
      batch.origins.assign(queries.size(), 5);
    if (!program.positions)
      return;
    batch.positions.assign(batch.leadingRows, 0);
    for (size_t r = 0; r < queries.size(); ++r)
      for (int64_t t = 0; t < queries[r]; ++t)
        batch.positions.push_back(keys[r] - queries[r] + t);
    batch.positions.resize(128); // of padding rows, too
  }

  /// Plans a batch into the plan, and does the captured launches. "" or what is
  /// wrong.
  std::string update(const std::vector<int64_t> &queries,
                     const std::vector<int64_t> &keys, int64_t pageOffset = 0,
                     int64_t leadingRows = 0) {
    FakeBatch batch;
    batch.pageOffset = pageOffset;
    batch.leadingRows = leadingRows;
    fill(batch, queries, keys);
    batch.trailingRows = rows - batch.rows();
    bool tooMany = batch.trailingRows < 0;
    batch.trailingRows = std::max<int64_t>(batch.trailingRows, 0);
    batch.bind(program, recorder);
    gpu.driver.clear();
    size_t bytes = fi_plan_workspace_bytes(plan.get());
    if (fi_plan_update(plan.get(), batch.plan.data(),
                       int32_t(batch.plan.size()), nullptr) != FI_OK)
      return fi_last_error();
    EXPECT_FALSE(tooMany);
    EXPECT_EQ(fi_plan_workspace_bytes(plan.get()), bytes);
    EXPECT_EQ(gpu.driver.count("memory_alloc"), 0u);
    return replay(batch);
  }

  /// Does the captured launches and checks them against the batch, which is
  /// bound to the recorder.
  std::string replay(FakeBatch &batch) {
    std::fill(first.output.begin(), first.output.end(), -7.f);
    std::fill(first.lse.begin(), first.lse.end(), -7.f);
    gpu.driver.replay();
    batch.output = first.output;
    batch.lse = first.lse;
    if (!workspace->guardIntact())
      return "the workspace is too small";
    return compareCounts(program, batch, recorder);
  }

  FakeProgram program;
  FakeGpu gpu;
  Recorder recorder;
  FakeBatch first;
  fi_plan_options options;
  PlanPtr plan;
  std::unique_ptr<Workspace> workspace;
  std::string problem;
  int64_t rows = 0;
};

FakeProgram smallProgram() {
  FakeProgram program;
  program.bodies = {{4, 16, 4, 0, 10, 100, 10}, {16, 16, -1, 0, 20, 100, 5}};
  program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
  return program;
}

/// Masks of several terms, and of bounds that differ between heads.
struct Masked {
  const char *bounds;
  std::function<bool(const Pair &)> visible;
};
const Masked masks[] = {
    {R"({"terms": [{"hi": [["q"]]}]})",
     [](const Pair &p) { return p.keyPosition <= p.queryPosition; }},
    {R"({"terms": [
         {"lo": [["sub", ["q"], ["const", 60]]], "hi": [["q"]]},
         {"lo": [["const", 20]],
          "hi": [["min", ["q"], ["const", 75]]]},
         {"lo": [["sub", ["q"], ["const", 230]]],
          "hi": [["sub", ["q"], ["const", 170]]]}]})",
     [](const Pair &p) {
       int64_t q = p.queryPosition, k = p.keyPosition;
       return (k >= q - 60 && k <= q) ||
              (k >= 20 && k <= std::min<int64_t>(q, 75)) ||
              (k >= q - 230 && k <= q - 170);
     }},
    {R"({"terms": [{"lo": [["sub", ["q"], ["mul", ["const", 50],
                                    ["add", ["q_head"], ["const", 1]]]]],
                    "hi": [["q"]]}]})",
     [](const Pair &p) {
       return p.keyPosition >= p.queryPosition - 50 * (p.queryHead + 1) &&
              p.keyPosition <= p.queryPosition;
     }}};

/// Random batches within the capacities, for programs of every sort.
/// FI_TEST_BATCHES is the number of batches.
TEST(GraphSafe, ReplaysGiveWhatIsPlanned) {
  std::mt19937 random(3);
  auto upTo = [&](int64_t most) {
    return int64_t(random() % uint32_t(most + 1));
  };
  const char *wanted = std::getenv("FI_TEST_BATCHES");
  int variants = wanted ? std::atoi(wanted) / 14 : 72;
  for (int variant = 0; variant < variants; ++variant) {
    SCOPED_TRACE(variant);
    FakeProgram program = smallProgram();
    const Masked &mask = masks[variant / 9 % 3];
    program.mask = json::parse(mask.bounds);
    program.kvHeads = 1 + variant / 5 % 3;
    program.group = 1 + variant / 3 % 5;
    program.bodies[0].maxRows = 2 * program.group;
    program.bodies[0].tileRows = variant / 4 % 2 ? 4 : 8;
    program.view = FakeView(variant % 3);
    program.twoTables = program.view != FakeView::Ragged && variant % 5 < 2;
    program.positions = variant % 5 == 1;
    program.origin = variant % 5 == 2;
    program.wideTables = variant % 2;
    json manifest = deviceManifest(program);
    json &stage = manifest["stages"][0];
    for (json &body : stage["bodies"])
      if (variant % 4 == 3)
        body["launch"]["grid"] = "persistent";
    bool counters = variant % 7 == 5;
    if (counters) {
      for (json &body : stage["bodies"])
        body["counters"] = true;
      stage.erase("merge");
    }
    // Decodes, or chunks among them.
    bool decodes = variant % 2;
    std::vector<int64_t> queries(6, 1), keys(6, 400);
    if (!decodes)
      queries = {1, 13, 1, 1, 40, 2};
    Captured c(
        program, manifest, queries, keys,
        [&](fi_plan_options &o) {
          o.split_policy =
              std::vector<int32_t>{FI_SPLIT_BALANCED, FI_SPLIT_FIXED,
                                   FI_SPLIT_NONE}[variant / 3 % 3];
          o.split_keys = 48;
          if (program.view == FakeView::Paged && variant % 4 == 0)
            o.max_pages = 650;
          if (variant % 6 == 0)
            o.max_requests = 9;
          if (!decodes)
            o.rows = 70;
        },
        mask.visible);
    ASSERT_EQ(c.problem, "");
    // The captured launches touch no more than the rows and pools of the first
    // batch, so ragged keys must fit into its pool.
    int64_t budget = 2370; // pages are not filled
    for (int round = 0; round < 12; ++round) {
      std::vector<int64_t> q, k;
      int64_t requests = upTo(variant % 6 == 0 ? 9 : 6), rows = c.rows;
      int64_t leading = round % 4 == 3 && rows > 8 ? 2 : 0, left = budget;
      rows -= leading;
      for (int64_t r = 0; r < requests; ++r) {
        int64_t n = std::min(upTo(decodes ? 1 : 40), rows);
        int64_t m = std::min(n + upTo(program.view == FakeView::Dense ? 360
                                      : round % 3                     ? 300
                                                                      : 1500),
                             left);
        n = std::min(n, m);
        rows -= n;
        left -= m;
        // Requests without rows or keys, too.
        q.push_back(n);
        k.push_back(upTo(9) == 0 && n == 0 ? 0 : m);
      }
      ASSERT_EQ(c.update(q, k, 0, leading), "") << "round " << round;
    }
    ASSERT_EQ(c.update({}, {}), "") << "nothing but padding";
    ASSERT_EQ(c.update(queries, keys), "") << "the first batch again";
  }
}

/// What a graph holds does not depend on the batch.
TEST(GraphSafe, GridsAndParametersStay) {
  FakeProgram program = smallProgram();
  Captured c(program, deviceManifest(program), {1, 1, 1, 1}, {700, 9, 40, 300},
             [](fi_plan_options &o) { o.max_pages = 2000; });
  ASSERT_EQ(c.problem, "");
  std::vector<fi_driver_launch> before;
  for (std::vector<int64_t> keys :
       {std::vector<int64_t>{4000, 1, 1, 1}, {1}, {}, {20, 20, 3000}}) {
    ASSERT_EQ(c.update(std::vector<int64_t>(keys.size(), 1), keys), "");
    c.gpu.driver.clear();
    ASSERT_EQ(fi_run_device(c.plan.get(), 0, c.first.run.data(),
                            int32_t(c.first.run.size()), c.first.results.data(),
                            2, c.workspace->data(), c.workspace->size(),
                            nullptr),
              FI_OK)
        << fi_last_error();
    std::vector<fi_driver_launch> now = c.gpu.driver.launches;
    c.gpu.driver.finish();
    // Decodes alone: one body and its merge.
    ASSERT_EQ(now.size(), 2u);
    if (before.empty())
      before = now;
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_EQ(now[i].grid[0], before[i].grid[0]);
      EXPECT_EQ(now[i].param_bytes, before[i].param_bytes);
    }
  }
  char *text = nullptr;
  ASSERT_EQ(fi_plan_explain(c.plan.get(), &text), FI_OK);
  EXPECT_NE(std::string(text).find("graph-safe: for at most 4 requests, 4 rows "
                                   "of which 1 in a request, 2000 entries"),
            std::string::npos)
      << text;
  fi_string_free(text);
}

/// An update copies what has changed, not the capacity.
TEST(GraphSafe, SmallUpdatesCopyLittle) {
  FakeProgram program = smallProgram();
  Captured c(program, deviceManifest(program), std::vector<int64_t>(64, 1),
             std::vector<int64_t>(64, 64),
             [](fi_plan_options &o) { o.max_pages = 1 << 20; });
  ASSERT_EQ(c.problem, "");
  ASSERT_EQ(c.update({1}, {4}), "");
  ASSERT_EQ(c.update({1}, {4}), "");
  EXPECT_LT(c.gpu.driver.copiedBytes, 60u << 10);
  EXPECT_LE(c.gpu.driver.count("copy_to_device"), 4u);
}

TEST(GraphSafe, RefusesWhatExceeds) {
  FakeProgram program = smallProgram();
  Captured c(program, deviceManifest(program), {1, 3, 1}, {30, 20, 10},
             [](fi_plan_options &o) {
               o.rows = 8;
               o.max_requests = 4;
               o.max_request_rows = 5;
               o.max_pages = 20;
             });
  ASSERT_EQ(c.problem, "");
  EXPECT_EQ(c.update({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}),
            "attention0: operand 'qo': expected at most 4 requests, for which "
            "the graph-safe plan was made, but got 5; make a plan with larger "
            "options.max_requests");
  EXPECT_EQ(c.update({1, 6}, {1, 6}),
            "attention0: operand 'qo': expected at most 5 rows in a request, "
            "for which the graph-safe plan was made, but request 1 has 6; make "
            "a plan with larger options.max_request_rows");
  EXPECT_EQ(c.update({5, 4}, {5, 4}),
            "attention0: operand 'qo': expected at most the 8 rows of "
            "options.rows, but its rows end at 9");
  EXPECT_EQ(c.update({1}, {81}),
            "attention0: operand 'pages': expected at most 20 entries, for "
            "which the graph-safe plan was made, but got 21; make a plan with "
            "larger options.max_pages");
  // The plan is as before.
  EXPECT_EQ(c.update({5, 3}, {40, 40}), "");
  EXPECT_EQ(c.update({1}, {81}).substr(0, 10), "attention0");
  FakeBatch batch;
  c.fill(batch, {5, 3}, {40, 40});
  batch.bind(program, c.recorder);
  EXPECT_EQ(c.replay(batch), "");

  // A pool that a captured run had is the smallest for good.
  batch.set("pages", 3, 101);
  EXPECT_EQ(fi_plan_update(c.plan.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), nullptr),
            FI_INVALID_BATCH);
  EXPECT_STREQ(fi_last_error(),
               "plan: operand 'k': expected tables that reach at most the 101 "
               "in dimension 0 that the graph-safe plan was run with, as a "
               "graph may hold that run, but they reach 102");
  batch.set("pages", 3, 100);

  // Options that the launches depend on stay; the stream need not.
  auto update = [&](const std::function<void(fi_plan_options &)> &change) {
    fi_plan_options o = c.options;
    change(o);
    fi_status status = fi_plan_update(c.plan.get(), batch.plan.data(),
                                      int32_t(batch.plan.size()), &o);
    return std::string(status == FI_OK ? "" : fi_last_error());
  };
  EXPECT_EQ(update([](fi_plan_options &o) { o.max_pages = 21; }),
            "plan: options.max_pages: expected 0 or 20, with which the "
            "graph-safe plan was made, but got 21; make another plan");
  EXPECT_EQ(update([](fi_plan_options &o) { o.split_policy = FI_SPLIT_NONE; }),
            "plan: options.split_policy: expected 0 or 0, with which the "
            "graph-safe plan was made, but got 3; make another plan");
  EXPECT_EQ(update([](fi_plan_options &o) {
              o.graph_safe = o.max_pages = o.max_requests = 0;
              o.max_request_rows = 0;
            }),
            "plan: options.graph_safe: expected 1, which the plan was made "
            "with, but got 0; make another plan");
  EXPECT_EQ(update([](fi_plan_options &o) {
              o.stream = reinterpret_cast<void *>(0x77);
              o.rows = 0;
            }),
            "");

  // Kernels that would do something for items without rows.
  json manifest = deviceManifest(program);
  manifest["stages"][0]["bodies"][1]["launch"].erase("empty_items");
  Captured old(program, manifest, {1}, {3}, [](fi_plan_options &) {});
  EXPECT_EQ(old.problem.substr(0, 82),
            "attention0: kernel 'body1' of package 'counting': expected "
            "\"empty_items\": true in ");
  // Capacities that no memory holds.
  Captured absurd(program, deviceManifest(program), {1}, {3},
                  [](fi_plan_options &o) {
                    o.max_pages = int64_t(1) << 40;
                    o.split_policy = FI_SPLIT_FIXED;
                    o.split_keys = 16;
                  });
  EXPECT_NE(absurd.problem.find("expected at most 16777216 work items"),
            std::string::npos)
      << absurd.problem;
}

/// Plan scalars are part of launches, or of bounds alone.
TEST(GraphSafe, Scalars) {
  FakeProgram program = smallProgram();
  program.extraArguments = json::parse(
      R"([{"name": "w", "group": "plan", "kind": "scalar", "dtype": "i64"}])");
  for (bool isRead : {false, true}) {
    json manifest = deviceManifest(program);
    if (isRead)
      manifest["stages"][0]["buffers"].push_back("w");
    Captured c(program, manifest, {}, {}, [](fi_plan_options &) {});
    FakeBatch batch;
    c.fill(batch, {1}, {5});
    batch.extras.resize(1);
    batch.extras[0].scalar = true;
    batch.extras[0].value = 7;
    batch.bind(program, c.recorder);
    PlanPtr plan = planBatch(c.gpu.package.get(), batch, c.options);
    ASSERT_TRUE(plan) << fi_last_error();
    batch.extras[0].value = 8;
    batch.bind(program, c.recorder);
    EXPECT_EQ(fi_plan_update(plan.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              isRead ? FI_INVALID_BATCH : FI_OK);
    if (isRead)
      EXPECT_STREQ(fi_last_error(),
                   "plan: operand 'w': expected 7, with which the graph-safe "
                   "plan was made and which its launches hold, but got 8; make "
                   "another plan, or pass it as a run argument");
  }
}

/// On the CPU a graph-safe plan keeps rows and workspace, and the same rules.
TEST(GraphSafe, OnTheCpu) {
  FakeProgram program = smallProgram();
  PackagePtr package(openFake(program.manifest()));
  ASSERT_TRUE(package) << fi_last_error();
  Recorder recorder;
  recorder.visible = [](const Pair &p) {
    return p.keyPosition <= p.queryPosition;
  };
  FakeBatch batch;
  batch.queryLengths = {1, 3, 1};
  batch.keyLengths = {900, 20, 10};
  batch.trailingRows = 3;
  batch.bind(program, recorder);
  fi_plan_options options = defaultOptions(3);
  options.graph_safe = 1;
  options.rows = 8;
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan) << fi_last_error();
  ASSERT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  size_t bytes = fi_plan_workspace_bytes(plan.get());
  for (auto lengths : {std::vector<int64_t>{1, 1}, {}, {3, 2, 1}, {1}}) {
    batch.queryLengths = batch.keyLengths = lengths;
    for (int64_t &keys : batch.keyLengths)
      keys *= 140;
    batch.trailingRows = 0;
    batch.trailingRows = 8 - batch.rows();
    batch.bind(program, recorder);
    ASSERT_EQ(fi_plan_update(plan.get(), batch.plan.data(),
                             int32_t(batch.plan.size()), nullptr),
              FI_OK)
        << fi_last_error();
    EXPECT_EQ(fi_plan_workspace_bytes(plan.get()), bytes);
    ASSERT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
    EXPECT_EQ(compareCounts(program, batch, recorder), "");
  }
  batch.queryLengths = {4};
  batch.keyLengths = {4};
  batch.bind(program, recorder);
  EXPECT_EQ(fi_plan_update(plan.get(), batch.plan.data(),
                           int32_t(batch.plan.size()), nullptr),
            FI_INVALID_BATCH);
}

} // namespace
