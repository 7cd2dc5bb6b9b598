//===- PlannerPropertyTest.cpp - Random batches through plan and run ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seeded random programs and batches. Every visible (row, head, key) must be
// covered exactly once, full ranges must be all visible, and every row's count
// must come through splits and merges; all against masks written a second time,
// key by key. FI_TEST_BATCHES sets the number of batches (default 10000).
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace fi::test;

namespace {

int64_t batchCount() {
  const char *text = std::getenv("FI_TEST_BATCHES");
  return text ? std::max(1ll, std::atoll(text)) : 10000;
}

class RandomCase {
public:
  explicit RandomCase(uint64_t seed) : random(seed) {}

  int64_t pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }

  void make() {
    program.kvHeads = pick(1, 3);
    program.group = pick(1, 5);
    program.vo = 2;
    program.view = FakeView(pick(0, 2));
    program.headsFirst = chance(50);
    program.page = std::vector<int64_t>{1, 3, 4, 16}[pick(0, 3)];
    program.wideTables = chance(30);
    program.twoTables = program.view != FakeView::Ragged && chance(20);
    program.positions = chance(20);
    program.origin = chance(30);
    program.merge = chance(85);
    makeBodies();
    makeBatch();
    makeMask(int(pick(0, 13)));
    if (program.view == FakeView::Ragged && chance(40))
      makeBlocks();
    if (program.merge && chance(30))
      program.split = {{"policy", "fixed"}, {"keys", pick(1, 100)}};
    options = defaultOptions(int32_t(pick(1, 6)));
    if (program.merge && chance(20)) {
      options.split_policy = FI_SPLIT_FIXED;
      options.split_keys = pick(1, 64);
    } else if (chance(10)) {
      options.split_policy = FI_SPLIT_NONE;
    }
    options.borrow_tables = chance(20);
    if (batch.trailingRows)
      options.rows = batch.rows();
    batch.bind(program, recorder);
  }

  FakeProgram program;
  FakeBatch batch;
  Recorder recorder;
  fi_plan_options options;

private:
  void makeBodies() {
    program.bodies.clear();
    int64_t count = pick(1, 3), covered = 0;
    const int64_t rowChoices[] = {1, 4, 16, 32}, keyChoices[] = {1, 8, 16, 64};
    for (int64_t b = 0; b < count; ++b) {
      FakeBody body;
      // Different tiles, so that each body has a merge of its own.
      body.tileRows = rowChoices[b] * (b == 2 ? 2 : 1);
      body.tileKeys = keyChoices[pick(0, 3)];
      body.scratch = pick(0, 3) * 40;
      body.item = double(pick(0, 2000));
      body.tile = double(pick(0, 500));
      body.tileRow = double(pick(0, 30));
      body.maxRows = b + 1 == count ? -1 : (covered += pick(1, 16));
      program.bodies.push_back(body);
    }
  }

  void makeBatch() {
    int64_t requests = chance(5) ? 0 : pick(1, 6);
    bool decode = chance(30), longest = chance(30);
    for (int64_t r = 0; r < requests; ++r) {
      batch.queryLengths.push_back(decode ? 1 : chance(15) ? 0 : pick(0, 14));
      batch.keyLengths.push_back(
          chance(15) ? 0 : pick(0, longest && r == 0 ? 400 : 60));
      batch.origins.push_back(pick(-20, 50));
    }
    if (chance(20))
      batch.leadingRows = pick(1, 5);
    if (chance(20))
      batch.trailingRows = pick(1, 5);
    if (chance(30))
      batch.pageOffset = pick(1, 9);
    if (chance(30))
      batch.surplusPages = pick(1, 9);
    if (program.positions)
      for (int64_t i = 0; i < batch.rows(); ++i)
        batch.positions.push_back(pick(-10, 80));
  }

  /// Lists of blocks, of columns that are a multiple of each body's tile.
  void makeBlocks() {
    program.blockRows = pick(1, 7);
    for (const FakeBody &body : program.bodies)
      program.blockColumns = std::max(program.blockColumns, body.tileKeys);
    program.blockColumns *= pick(1, 2);
    int64_t density = pick(0, 100);
    std::vector<int64_t> indptr = {pick(0, 3)}, columns(indptr[0], -1);
    for (size_t r = 0; r < batch.queryLengths.size(); ++r) {
      auto &lists = batch.blocks.emplace_back();
      for (int64_t row = 0; row < batch.queryLengths[r];
           row += program.blockRows) {
        auto &list = lists.emplace_back();
        for (int64_t key = 0; key < batch.keyLengths[r];
             key += program.blockColumns)
          if (chance(int(density)))
            list.push_back(key / program.blockColumns);
        columns.insert(columns.end(), list.begin(), list.end());
        indptr.push_back(int64_t(columns.size()));
      }
    }
    const char *type = program.wideTables ? "i64" : "i32";
    extraTensor("row_indptr", type, 1, indptr, {int64_t(indptr.size())});
    extraTensor("columns", type, 1, columns, {int64_t(columns.size())});
  }

  void extraTensor(const char *name, const char *dtype, int rank,
                   std::vector<int64_t> data, std::vector<int64_t> shape) {
    json sizes = json::array();
    for (int d = 0; d < rank; ++d)
      sizes.push_back(nullptr);
    program.extraArguments.push_back({{"name", name},
                                      {"group", "plan"},
                                      {"kind", "tensor"},
                                      {"dtype", dtype},
                                      {"shape", sizes}});
    batch.extras.push_back({false, 0, std::move(data), std::move(shape)});
  }

  /// A JSON array; braces would make an object of some.
  template <typename... Elements>
  static json list(const Elements &...elements) {
    json array = json::array();
    (array.push_back(json(elements)), ...);
    return array;
  }

  static json term(const json &low, const json &high, bool exact = true) {
    json term;
    term["lo"] = low;
    term["hi"] = high;
    term["exact"] = exact;
    return term;
  }

  /// A mask twice: as bounds for the manifest, and as a predicate of a pair.
  void makeMask(int kind) {
    json q = list("q"), request = list("request");
    json noBounds = json::array(), causal = list(q);
    auto constant = [](int64_t n) { return list("const", n); };
    json terms = json::array();
    auto &visible = recorder.visible;
    int64_t n = pick(0, 40);
    int64_t requests = int64_t(batch.queryLengths.size());
    const char *tableType = program.wideTables ? "i64" : "i32";
    switch (kind) {
    case 0:
      visible = [](const Pair &) { return true; };
      return;
    case 1:
      terms = list(term(noBounds, causal));
      visible = [](const Pair &p) { return p.keyPosition <= p.queryPosition; };
      break;
    case 2: // window
      terms = list(term(list(list("sub", q, constant(n))), causal));
      visible = [n](const Pair &p) {
        return p.keyPosition <= p.queryPosition &&
               p.queryPosition - p.keyPosition <= n;
      };
      break;
    case 3: { // a prefix that everybody sees
      std::vector<int64_t> prefix;
      for (int64_t r = 0; r < requests; ++r)
        prefix.push_back(pick(-3, 30));
      extraTensor("prefix", tableType, 1, prefix, {requests});
      json end = list("sub", list("load", "prefix", request), constant(1));
      terms = list(term(noBounds, causal), term(noBounds, list(end)));
      visible = [prefix](const Pair &p) {
        return p.keyPosition <= p.queryPosition ||
               p.keyPosition < prefix[p.request];
      };
      break;
    }
    case 4: { // chunks of n + 1
      json size = constant(n + 1);
      json start = list("mul", list("floordiv", q, size), size);
      terms = list(term(list(start), causal));
      visible = [n](const Pair &p) {
        int64_t start = p.queryPosition;
        while (((start % (n + 1)) + n + 1) % (n + 1) != 0)
          --start;
        return p.keyPosition <= p.queryPosition && p.keyPosition >= start;
      };
      break;
    }
    case 5: { // documents that start at sorted positions
      int64_t count = pick(1, 6);
      std::vector<int64_t> starts;
      for (int64_t r = 0; r < requests; ++r) {
        std::vector<int64_t> row;
        for (int64_t i = 0; i < count; ++i)
          row.push_back(pick(-10, 80));
        std::sort(row.begin(), row.end());
        starts.insert(starts.end(), row.begin(), row.end());
      }
      extraTensor("starts", "i64", 2, starts, {requests, count});
      json after =
          list("first", "starts", request, list("add", q, constant(1)));
      json start =
          list("load", "starts", request, list("sub", after, constant(1)));
      terms = list(term(list(start), causal));
      visible = [starts, count](const Pair &p) {
        int64_t begin = 0; // before the first document a load reads 0
        for (int64_t i = 0; i < count; ++i)
          if (starts[p.request * count + i] <= p.queryPosition)
            begin = starts[p.request * count + i];
        return p.keyPosition <= p.queryPosition && p.keyPosition >= begin;
      };
      break;
    }
    case 6: { // a window per query head
      std::vector<int64_t> windows;
      for (int64_t h = 0; h < program.kvHeads * program.group; ++h)
        windows.push_back(pick(0, 40));
      extraTensor("windows", tableType, 1, windows,
                  {program.kvHeads * program.group});
      json window = list("load", "windows", list("q_head"));
      terms = list(term(list(list("sub", q, window)), causal));
      visible = [windows](const Pair &p) {
        return p.keyPosition <= p.queryPosition &&
               p.queryPosition - p.keyPosition <= windows[p.queryHead];
      };
      break;
    }
    case 7: // dilated: bounds that do not tell all
      terms = list(term(noBounds, causal, false));
      visible = [](const Pair &p) {
        return p.keyPosition <= p.queryPosition &&
               (p.queryPosition - p.keyPosition) % 3 == 0;
      };
      break;
    case 8:
      program.extraArguments.push_back({{"name", "limit"},
                                        {"group", "plan"},
                                        {"kind", "scalar"},
                                        {"dtype", "i32"}});
      batch.extras.push_back({true, n, {}, {}});
      terms =
          list(term(noBounds, list(list("min", q, list("scalar", "limit")))));
      visible = [n](const Pair &p) {
        return p.keyPosition <= p.queryPosition && p.keyPosition <= n;
      };
      break;
    case 9:
      terms = list(term(list(list("max", constant(-5), list("q_len"))),
                        list(list("sub", list("kv_len"), constant(3)))));
      visible = [](const Pair &p) {
        return p.keyPosition >= -5 && p.keyPosition >= p.queryLength &&
               p.keyPosition <= p.keyLength - 3;
      };
      break;
    case 10: // nothing is visible
      visible = [](const Pair &) { return false; };
      break;
    case 11: { // a negative slope: intervals turn round
      json low = list("ceildiv", list("mul", q, constant(-1)), constant(2));
      json high = list("add", list("kv_head"), constant(n));
      terms = list(term(list(low), list(high)));
      visible = [n](const Pair &p) {
        return 2 * p.keyPosition >= -p.queryPosition &&
               p.keyPosition <= p.kvHead + n;
      };
      break;
    }
    case 12: // numbers that leave 64 bits are no bounds
      terms =
          list(term(list(list("sub", constant(INT64_MIN), q)), causal, false));
      visible = [](const Pair &p) { return p.keyPosition <= p.queryPosition; };
      break;
    case 13: // three terms with holes between them
      terms = list(term(list(constant(0)), list(constant(n))),
                   term(list(constant(n + 30)), list(constant(n + 40))),
                   term(list(list("sub", q, constant(2))), causal));
      visible = [n](const Pair &p) {
        int64_t k = p.keyPosition;
        return (k >= 0 && k <= n) || (k >= n + 30 && k <= n + 40) ||
               (k <= p.queryPosition && k >= p.queryPosition - 2);
      };
      break;
    }
    program.mask = {{"terms", terms}};
  }

  std::mt19937_64 random;
};

TEST(PlannerProperty, EveryVisibleKeyExactlyOnce) {
  int64_t count = batchCount(), split = 0, masked = 0;
  for (int64_t i = 0; i < count; ++i) {
    RandomCase c(uint64_t(i) * 7919 + 1);
    c.make();
    std::string where =
        "batch " + std::to_string(i) + ": " + c.program.manifest().dump();
    PackagePtr package(openFake(c.program.manifest()));
    ASSERT_TRUE(package) << fi_last_error() << "\n" << where;
    PlanPtr plan = planBatch(package.get(), c.batch, c.options);
    ASSERT_TRUE(plan) << fi_last_error() << "\n" << where;
    ASSERT_EQ(runBatch(plan.get(), c.batch), FI_OK) << fi_last_error() << "\n"
                                                    << where;
    std::string difference = compareCounts(c.program, c.batch, c.recorder);
    ASSERT_EQ(difference, "") << where;
    // So that the test cannot pass without its subjects.
    char *text = nullptr;
    if (i % 16 == 0) {
      ASSERT_EQ(fi_plan_explain(plan.get(), &text), FI_OK);
      split += std::strstr(text, "no row tile is split") == nullptr;
      masked += !c.program.mask.is_null();
      fi_string_free(text);
    }
  }
  if (count >= 1000) {
    EXPECT_GT(split, count / 160);
    EXPECT_GT(masked, count / 64);
  }
}

/// The same programs as launches on a device of up to hundreds of CTAs, one per
/// item or persistent.
TEST(PlannerProperty, EveryVisibleKeyExactlyOnceOnADevice) {
  int64_t count = std::max<int64_t>(1, batchCount() / 4), merges = 0;
  int64_t persistent = 0;
  for (int64_t i = 0; i < count; ++i) {
    RandomCase c(uint64_t(i) * 6101 + 3);
    c.make();
    json manifest = deviceManifest(c.program);
    for (const char *kind : {"bodies", "merge"})
      if (manifest["stages"][0][kind].is_array())
        for (json &kernel : manifest["stages"][0][kind]) {
          if (c.chance(50))
            kernel["launch"]["grid"] = "persistent";
          if (c.chance(50))
            kernel["launch"]["ctas_per_sm"] = c.pick(1, 2);
          if (kind[0] == 'b' && c.program.merge && c.chance(30))
            kernel["counters"] = true;
        }
    FakeGpu gpu;
    gpu.driver.devices[0].multiprocessors = int32_t(c.pick(1, 150));
    gpu.open(manifest);
    std::string where = "batch " + std::to_string(i) + ": " + manifest.dump();
    ASSERT_TRUE(gpu.package) << fi_last_error() << "\n" << where;
    c.options.borrow_tables = 0;
    c.options.workers = c.chance(50) ? 0 : int32_t(c.pick(1, 600));
    c.options.device = gpu.device;
    PlanPtr plan = planBatch(gpu.package.get(), c.batch, c.options);
    ASSERT_TRUE(plan) << fi_last_error() << "\n" << where;
    ASSERT_EQ(gpu.run(plan.get(), c.batch), FI_OK) << fi_last_error() << "\n"
                                                   << where;
    std::string difference = compareCounts(c.program, c.batch, c.recorder);
    ASSERT_EQ(difference, "") << where;
    merges += gpu.driver.launches.size() > c.program.bodies.size();
    for (const fi_driver_launch &launch : gpu.driver.launches)
      persistent += launch.grid[0] == uint32_t(fi_plan_workers(plan.get()));
  }
  if (count >= 1000) {
    EXPECT_GT(merges, count / 100);
    EXPECT_GT(persistent, count / 100);
  }
}

/// Updates of one plan object are as good as new plans.
TEST(PlannerProperty, UpdatesEqualNewPlans) {
  std::mt19937_64 random(5);
  FakeProgram program;
  program.bodies = {{1, 16, 2, 128, 100, 100, 10}, {16, 16, -1, 512, 9, 90, 5}};
  program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
  PackagePtr package(openFake(program.manifest()));
  ASSERT_TRUE(package) << fi_last_error();
  PlanPtr reused;
  for (int i = 0; i < 200; ++i) {
    FakeBatch batch;
    Recorder recorder;
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    for (int r = 0, n = int(random() % 9); r < n; ++r) {
      batch.queryLengths.push_back(int64_t(random() % 20));
      batch.keyLengths.push_back(int64_t(random() % 200));
    }
    batch.bind(program, recorder);
    fi_plan_options options = defaultOptions(1 + i % 4);
    PlanPtr fresh = planBatch(package.get(), batch, options);
    ASSERT_TRUE(fresh) << fi_last_error();
    if (!reused) {
      reused = planBatch(package.get(), batch, options);
    } else {
      ASSERT_EQ(fi_plan_update(reused.get(), batch.plan.data(),
                               int32_t(batch.plan.size()), &options),
                FI_OK)
          << fi_last_error();
    }
    ASSERT_EQ(fi_plan_generation(reused.get()), uint64_t(i + 1));
    ASSERT_EQ(fi_plan_workspace_bytes(reused.get()),
              fi_plan_workspace_bytes(fresh.get()));
    char *a = nullptr, *b = nullptr;
    ASSERT_EQ(fi_plan_schedule_json(reused.get(), &a), FI_OK);
    ASSERT_EQ(fi_plan_schedule_json(fresh.get(), &b), FI_OK);
    json first = json::parse(a), second = json::parse(b);
    first.erase("generation");
    second.erase("generation");
    EXPECT_EQ(first, second);
    fi_string_free(a);
    fi_string_free(b);
    ASSERT_EQ(runBatch(reused.get(), batch), FI_OK) << fi_last_error();
    ASSERT_EQ(compareCounts(program, batch, recorder), "");
  }
}

} // namespace
