//===- ErrorTest.cpp - Every refusal of plan and run ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spoils a good batch in one way at a time and reads the sentence. A refused
// run must not have written anything, and a refused update must leave the plan
// as it was.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"

#include <gtest/gtest.h>

using namespace fi::test;

namespace {

class Errors : public ::testing::Test {
protected:
  void SetUp() override {
    recorder.visible = [](const Pair &) { return true; };
    batch.queryLengths = {3, 0, 2};
    batch.keyLengths = {6, 0, 9};
    batch.surplusPages = 2;
    use(program);
  }

  void use(const FakeProgram &p) {
    program = p;
    package.reset(openFake(program.manifest()));
    ASSERT_TRUE(package) << fi_last_error();
    batch.bind(program, recorder);
    options = defaultOptions(2);
  }

  void expectPlan(const std::string &sentence,
                  fi_status expected = FI_INVALID_BATCH) {
    fi_status status = FI_OK;
    EXPECT_FALSE(planBatch(package.get(), batch, options, &status));
    EXPECT_EQ(status, expected);
    EXPECT_EQ(fi_last_error(), sentence);
    batch.bind(program, recorder);
    options = defaultOptions(2);
  }

  /// Plans the good batch, then lets `spoil` change what is run.
  void expectRun(const std::string &sentence,
                 const std::function<void()> &spoil,
                 fi_status expected = FI_INVALID_RUN) {
    PlanPtr plan = planBatch(package.get(), batch, options);
    ASSERT_TRUE(plan) << fi_last_error();
    spoil();
    std::vector<float> before = batch.output;
    EXPECT_EQ(runBatch(plan.get(), batch), expected);
    EXPECT_EQ(fi_last_error(), sentence);
    EXPECT_EQ(batch.output, before);
    batch.bind(program, recorder);
  }

  fi_tensor &planTensor(const std::string &name) {
    return batch.planValue(name).as.tensor;
  }
  fi_tensor &runTensor(int i) { return batch.run[i].as.tensor; }

  FakeProgram program;
  FakeBatch batch;
  Recorder recorder;
  PackagePtr package;
  fi_plan_options options;
};

TEST_F(Errors, Indptr) {
  batch.set("indptr", 2, 1);
  expectPlan("attention0: operand 'indptr': expected a non-decreasing array, "
             "but got indptr[2] = 1 after 2; give prefix sums of the lengths");
  batch.set("indptr", 0, -1);
  expectPlan("attention0: operand 'indptr': expected a first entry of at least "
             "0, but got indptr[0] = -1");
  batch.set("qo", 3, 2);
  expectPlan("attention0: operand 'qo': expected a non-decreasing array, but "
             "got qo[3] = 2 after 3; give prefix sums of the lengths");
  int64_t zero = 0;
  planTensor("indptr").shape = &zero;
  expectPlan("attention0: operand 'indptr': expected one entry more than there "
             "are requests, but got an empty array");
}

TEST_F(Errors, RequestCounts) {
  int64_t two = 2, three = 3;
  planTensor("last").shape = &two;
  expectPlan("attention0: operand 'last': expected entries for the 3 requests "
             "of 'indptr', but got 2");
  planTensor("qo").shape = &three;
  expectPlan("attention0: operand 'qo': expected the 3 requests of its view, "
             "but got 2; all tables of a stage describe the same requests");
  program.origin = true;
  batch.origins = {0, 0, 0};
  use(program);
  planTensor("origin").shape = &two;
  expectPlan("attention0: operand 'origin': expected entries for the 3 "
             "requests of 'indptr', but got 2");
  batch.set("origin", 1, INT32_MAX); // within 2^48: legal
  EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
}

TEST_F(Errors, Pages) {
  batch.set("pages", 3, -4);
  expectPlan("attention0: operand 'pages': expected page indices from 0, but "
             "got pages[3] = -4 (request 2)");
  int64_t four = 4;
  planTensor("pages").shape = &four;
  expectPlan("attention0: operand 'pages': expected at least the 5 entries "
             "that 'indptr' ends at, but got 4");
  batch.set("pages", 1, 4000);
  expectRun("attention0: operand 'pages': expected page indices below 101, the "
            "pages of 'k', but the plan has page index 4000; pass the pool "
            "that the tables were made for",
            [] {});
}

TEST_F(Errors, PagesOfValues) {
  program.twoTables = true;
  use(program);
  EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
  batch.set("value_pages", 3, -4);
  expectPlan("attention0: operand 'value_pages': expected page indices from 0, "
             "but got value_pages[3] = -4 (request 2)");
  int64_t four = 4;
  planTensor("value_pages").shape = &four;
  expectPlan("attention0: operand 'value_pages': expected at least the 5 "
             "entries that 'indptr' ends at, but got 4");
  // Each pool by its own table.
  batch.set("value_pages", 1, 4000);
  int64_t shape[] = {4000, 2, 4, 8};
  expectRun("attention0: operand 'value_pages': expected page indices below "
            "4000, the pages of 'v', but the plan has page index 4000; pass "
            "the pool that the tables were made for",
            [&] { runTensor(3).shape = shape; });
  program.view = FakeView::Dense;
  use(program);
  int64_t twoRows[] = {2, 5}, narrow[] = {3, 2};
  planTensor("value_pages").shape = twoRows;
  expectPlan("attention0: operand 'value_pages': expected entries for the 3 "
             "requests of 'pages', but got 2");
  planTensor("value_pages").shape = narrow;
  expectPlan("attention0: operand 'lengths': expected a number of keys that 2 "
             "pages of 4 can hold, but got lengths[2] = 9");
  // Kernels count entries of both tables alike.
  int64_t apart[] = {9, 1}, data[27] = {};
  options.borrow_tables = 1;
  planTensor("value_pages").strides = apart;
  planTensor("value_pages").data = data;
  expectPlan("attention0: operand 'value_pages': expected rows as far apart as "
             "those of 'pages' where tables are borrowed, but got strides 9 "
             "and 5");
}

TEST_F(Errors, Blocks) {
  program.view = FakeView::Ragged;
  program.blockRows = 2;
  program.bodies[0].tileKeys = 4;
  program.blockColumns = 4;
  for (const char *name : {"row_indptr", "columns"})
    program.extraArguments.push_back({{"name", name},
                                      {"group", "plan"},
                                      {"kind", "tensor"},
                                      {"dtype", "i32"},
                                      {"shape", {nullptr}}});
  batch.extras.push_back({false, 0, {0, 2, 3, 5}, {4}});
  batch.extras.push_back({false, 0, {0, 1, 1, 0, 2}, {5}});
  use(program);
  EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
  int64_t three = 3;
  planTensor("row_indptr").shape = &three;
  expectPlan("attention0: operand 'row_indptr': expected an entry more than "
             "the 3 blocks of 2 rows, but got 3");
  planTensor("columns").shape = &three;
  expectPlan("attention0: operand 'columns': expected at least the 5 entries "
             "that 'row_indptr' ends at, but got 3");
  batch.set("columns", 1, 0);
  expectPlan("attention0: operand 'columns': expected numbers that rise within "
             "the 2 blocks of keys of request 0, but got columns[1] = 0");
  batch.set("columns", 4, 3);
  expectPlan("attention0: operand 'columns': expected numbers that rise within "
             "the 3 blocks of keys of request 2, but got columns[4] = 3");
  program.bodies[0].tileKeys = 8;
  use(program);
  expectPlan(
      "attention0: operand 'columns': expected blocks of a multiple of 8 "
      "columns, the keys of a tile, but got 4",
      FI_UNSUPPORTED);
}

TEST_F(Errors, LastPage) {
  batch.set("last", 0, 0);
  expectPlan(
      "attention0: operand 'last': expected 1 to 4 (the page size) for a "
      "request with pages, but got last[0] = 0");
  batch.set("last", 2, 5);
  expectPlan(
      "attention0: operand 'last': expected 1 to 4 (the page size) for a "
      "request with pages, but got last[2] = 5");
  for (int64_t anything : {-9, 0, 1, 77}) {
    batch.set("last", 1, anything); // a request without pages
    EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
  }
}

TEST_F(Errors, DenseLengths) {
  program.view = FakeView::Dense;
  use(program);
  batch.set("lengths", 2, 21);
  expectPlan("attention0: operand 'lengths': expected a number of keys that 5 "
             "pages of 4 can hold, but got lengths[2] = 21");
  batch.set("lengths", 0, -1);
  expectPlan("attention0: operand 'lengths': expected a number of keys that 5 "
             "pages of 4 can hold, but got lengths[0] = -1");
  batch.set("pages", 5 * 2 + 1, -3);
  expectPlan("attention0: operand 'pages': expected page indices from 0, but "
             "got pages[1] = -3 (request 2)");
}

TEST_F(Errors, Ragged) {
  program.view = FakeView::Ragged;
  use(program);
  int64_t shape[] = {2, 14, 8};
  expectRun("run: operand 'v': expected at least 15 in dimension 1, which the "
            "plan's tables reach, but got 14",
            [&] { runTensor(3).shape = shape; });
  program.wideTables = true;
  use(program);
  batch.set("indptr", 3, INT64_C(1) << 41);
  expectPlan("attention0: operand 'indptr': expected at most 2^40 keys for a "
             "request, but request 2 has more");
  program.mask =
      json::parse(R"({"terms": [{"lo": [], "hi": [["q"]], "exact": true}]})");
  use(program);
  batch.set("indptr", 2, 10);
  batch.set("indptr", 3, INT64_C(10) + (INT64_C(1) << 29));
  expectPlan("attention0: expected at most 536870911 keys in a request, for "
             "positions that its mask may have computed in 32 bits, but got "
             "536870912 in request 2");
}

TEST_F(Errors, Positions) {
  program.positions = true;
  batch.positions = {0, 1, 2, 3};
  use(program);
  expectPlan("attention0: operand 'positions': expected a position for each of "
             "5 rows, but got 4");
  batch.positions.push_back(4);
  use(program);
  options.rows = 7; // two rows of padding
  EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
  options.borrow_tables = 1;
  expectPlan("attention0: operand 'positions': expected a position for each of "
             "7 rows, but got 5");
  options = {};
  program.wideTables = program.origin = true;
  batch.origins = {0, 0, 0};
  constexpr int64_t far = INT64_C(1) << 48;
  for (const char *name : {"positions", "origin"})
    for (int64_t sign : {1, -1}) {
      use(program);
      batch.set(name, 2, sign * far);
      EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
      batch.set(name, 2, sign * (far + 1));
      expectPlan("attention0: operand '" + std::string(name) +
                 "': expected positions within 2^48, but got " + name +
                 "[2] = " + std::to_string(sign * (far + 1)));
    }
}

TEST_F(Errors, TypesOfTables) {
  planTensor("pages").dtype = FI_I64;
  expectPlan("plan: operand 'pages': expected dtype i32, but got i64; convert "
             "it first");
  planTensor("pages").dtype = 99;
  expectPlan("plan: operand 'pages': expected dtype i32, but got an unknown "
             "dtype; convert it first");
  planTensor("qo").rank = 2;
  expectPlan("plan: operand 'qo': expected rank 1, but got rank 2");
  int64_t two = 2;
  planTensor("indptr").strides = &two;
  expectPlan("plan: operand 'indptr': expected a contiguous last dimension "
             "(stride 1), but got stride 2; copy it first");
  planTensor("last").data = nullptr;
  expectPlan("plan: operand 'last': expected data, but got NULL");
  planTensor("last").shape = nullptr;
  expectPlan("plan: operand 'last': expected a shape, but got NULL");
  int64_t negative = -2;
  planTensor("last").shape = &negative;
  expectPlan("plan: operand 'last': expected a size in dimension 0, but got "
             "-2");
  batch.planValue("last").kind = FI_VALUE_INTEGER;
  expectPlan("plan: operand 'last': expected a tensor, but got a scalar");
  batch.plan.pop_back();
  expectPlan("plan: expected 4 values, one for each plan argument of "
             "'counting', but got 3",
             FI_INVALID_ARGUMENT);
}

TEST_F(Errors, Scalars) {
  program.extraArguments = json::parse(
      R"([{"name": "limit", "group": "plan", "kind": "scalar", "dtype": "i32"}])");
  batch.extras = {{true, 5, {}, {}}};
  use(program);
  batch.planValue("extra").kind = FI_VALUE_FLOAT;
  expectPlan("plan: operand 'limit': expected a scalar of dtype i32 (fi_value "
             "kind FI_VALUE_INTEGER), but got kind 1");
  batch.planValue("extra").as.i64 = INT64_C(1) << 40;
  expectPlan("plan: operand 'limit': expected a value of dtype i32, but got "
             "1099511627776");
}

TEST_F(Errors, Sorted) {
  program.extraArguments = json::parse(
      R"([{"name": "documents", "group": "plan", "kind": "tensor", "dtype": "i32",
           "shape": [null, null], "sorted": true}])");
  batch.extras = {{false, 0, {0, 0, 5, 1, 3, 2}, {2, 3}}};
  use(program);
  expectPlan(
      "plan: operand 'documents': expected entries sorted along the last "
      "dimension, as the program promises (fi.sorted), but got 2 after 3 "
      "in row 1");
  batch.extras = {{false, 0, {0, 0, 5, 1, 3, 3}, {2, 3}}};
  use(program);
  EXPECT_TRUE(planBatch(package.get(), batch, options)) << fi_last_error();
}

TEST_F(Errors, Options) {
  options.workers = -1;
  expectPlan("plan: options.workers: expected 0 (all) to 1024, but got -1",
             FI_INVALID_ARGUMENT);
  options.split_policy = 9;
  expectPlan("plan: options.split_policy: expected a value of fi_split_policy, "
             "but got 9",
             FI_INVALID_ARGUMENT);
  options.split_policy = FI_SPLIT_FIXED;
  expectPlan("plan: options.split_keys: expected the keys of a piece, 1 to "
             "2^40, but got 0",
             FI_INVALID_ARGUMENT);
  options.max_pages = 7;
  expectPlan("plan: options.max_pages: expected 0 for a plan that is not "
             "graph-safe, but got 7; set graph_safe, too",
             FI_INVALID_ARGUMENT);
  options.graph_safe = 1;
  options.max_requests = -1;
  expectPlan("plan: options.max_requests: expected 0 (as the first batch) to "
             "2^40, but got -1",
             FI_INVALID_ARGUMENT);
  options.graph_safe = 1;
  options.borrow_tables = 1;
  expectPlan("plan: options.borrow_tables: expected 0 for a graph-safe plan, "
             "whose tables keep their place, but got 1",
             FI_INVALID_ARGUMENT);
  options.rows = -5;
  expectPlan("plan: options.rows: expected 0 (as the indptr says) or the rows "
             "of the query, but got -5",
             FI_INVALID_ARGUMENT);
  options.rows = 4;
  expectPlan("attention0: operand 'qo': expected at most the 4 rows of "
             "options.rows, but its rows end at 5");
  options.struct_size = 3;
  expectPlan("plan: options.struct_size: expected sizeof(fi_plan_options) (" +
                 std::to_string(sizeof(options)) +
                 "), but got 3; set it, or update the runtime",
             FI_INVALID_ARGUMENT);
  std::vector<fi_tensor> shapes(4);
  int64_t bad[] = {-1, 9, 8};
  shapes[1] = {nullptr, FI_F32, 3, bad, nullptr};
  options.run_shapes = shapes.data();
  expectPlan("plan: options.run_shapes: operand 'q': expected size 4 (-1: any) "
             "in dimension 1, but got 9",
             FI_INVALID_ARGUMENT);
  bad[0] = 3;
  bad[1] = 4;
  options.run_shapes = shapes.data();
  expectPlan(
      "attention0: operand 'qo': expected at most the 3 rows of 'q', but "
      "its rows end at 5");
  shapes[1].rank = 2;
  options.run_shapes = shapes.data();
  expectPlan("plan: options.run_shapes: operand 'q': expected rank 3, but got "
             "rank 2",
             FI_INVALID_ARGUMENT);
}

TEST_F(Errors, CannotSplit) {
  program.merge = false;
  use(program);
  options.split_policy = FI_SPLIT_FIXED;
  options.split_keys = 64;
  expectPlan(
      "attention0: fixed splits of 64 keys: expected a stage that can be "
      "split, but the package has no merge for it; plan it without "
      "splitting",
      FI_UNSUPPORTED);
  program.bodies[0].maxRows = 4;
  use(program);
  expectPlan("attention0: operand 'q': expected at most 2 rows in a request, "
             "for which the package has a body, but request 0 has 3",
             FI_UNSUPPORTED);
}

TEST_F(Errors, AbsurdBatches) {
  program.wideTables = true;
  use(program);
  batch.set("qo", 3, INT64_C(1) << 33);
  expectPlan("attention0: operand 'q': expected at most 1073741823 rows, but "
             "got 8589934592");
  batch.set("qo", 3, 1 << 29);
  expectPlan("attention0: expected at most 16777216 work items in a batch, but "
             "it needs more; plan fewer rows");
  // Rows before the first request, which none of the tables has.
  batch.set("qo", 3, 4);
  for (int i = 0; i < 4; ++i)
    batch.set("qo", i, (1 << 29) + i);
  expectPlan("attention0: expected at most 16777216 work items in a batch, but "
             "it needs more; plan fewer rows");
  use(program);
  batch.set("pages", 3, INT64_MAX);
  expectPlan("attention0: operand 'pages': expected page indices from 0 below "
             "281474976710656, but got pages[3] = 9223372036854775807 "
             "(request 2)");
  program.view = FakeView::Ragged;
  use(program);
  batch.set("indptr", 3, INT64_C(1) << 39);
  options.split_policy = FI_SPLIT_FIXED;
  options.split_keys = 1;
  expectPlan("attention0: fixed splits of 1 keys: expected at most 16777216 "
             "work items, but the batch needs more; use larger splits");
}

TEST_F(Errors, RunShapes) {
  int64_t rows[] = {6, 4, 8}, heads[] = {5, 5, 8}, page[] = {101, 2, 3, 8};
  expectRun("run: operand 'q': expected size 5 in dimension 0, which the plan "
            "was made for, but got 6; plan this batch; for padding rows, plan "
            "with options.rows",
            [&] { runTensor(1).shape = rows; });
  expectRun("run: operand 'q': expected size 4 in dimension 1, but got 5",
            [&] { runTensor(1).shape = heads; });
  expectRun("run: operand 'k': expected size 4 in dimension 2, but got 3",
            [&] { runTensor(2).shape = page; });
  expectRun("run: operand 'result0': expected size 5 in dimension 0, but got 6",
            [&] {
              rows[2] = 4;
              batch.results[0].shape = rows;
            });
}

TEST_F(Errors, RunTypes) {
  expectRun("run: operand 'q': expected dtype f32, but got bf16; convert it "
            "first",
            [&] { runTensor(1).dtype = FI_BF16; });
  expectRun("run: operand 'k': expected rank 4, but got rank 3",
            [&] { runTensor(2).rank = 3; });
  int64_t strides[] = {64, 16, 2}, zero[] = {0, 4, 1};
  expectRun(
      "run: operand 'q': expected a contiguous last dimension (stride 1), "
      "but got stride 2; copy it first",
      [&] { runTensor(1).strides = strides; });
  expectRun("run: operand 'result0': expected elements apart, because it is "
            "written, but got stride 0 in dimension 0",
            [&] { batch.results[0].strides = zero; });
  expectRun("run: operand 'q': expected data, but got NULL",
            [&] { runTensor(1).data = nullptr; });
  expectRun("run: operand 'q': expected a tensor, but got a scalar",
            [&] { batch.run[1].kind = FI_VALUE_FLOAT; });
  expectRun("run: operand 'recorder': expected a scalar of dtype i64 (fi_value "
            "kind FI_VALUE_INTEGER), but got kind 0",
            [&] { batch.run[0].kind = FI_VALUE_TENSOR; });
  expectRun(
      "run: expected 4 values, one for each run argument of 'counting', "
      "but got 3",
      [&] { batch.run.pop_back(); }, FI_INVALID_ARGUMENT);
  expectRun(
      "run: expected 2 results of 'counting', but got 1",
      [&] { batch.results.pop_back(); }, FI_INVALID_ARGUMENT);
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan);
  char *odd = static_cast<char *>(runTensor(1).data) + 1;
  runTensor(1).data = odd;
  EXPECT_EQ(runBatch(plan.get(), batch), FI_INVALID_RUN);
  EXPECT_EQ(std::string(fi_last_error())
                .rfind("run: operand 'q': expected data aligned to the 4 bytes "
                       "of its elements, but got 0x",
                       0),
            0u);
}

TEST_F(Errors, Workspace) {
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan);
  size_t bytes = fi_plan_workspace_bytes(plan.get());
  Workspace workspace(bytes + 64);
  auto run = [&](void *data, size_t size) {
    return fi_run(plan.get(), 1, batch.run.data(), 4, batch.results.data(), 2,
                  data, size);
  };
  EXPECT_EQ(run(workspace.data(), bytes - 1), FI_INVALID_RUN);
  EXPECT_EQ(fi_last_error(), "run: workspace: expected at least " +
                                 std::to_string(bytes) + " bytes, but got " +
                                 std::to_string(bytes - 1) +
                                 "; ask fi_plan_workspace_bytes after each "
                                 "plan");
  EXPECT_EQ(run(nullptr, bytes), FI_INVALID_RUN);
  EXPECT_EQ(run(static_cast<char *>(workspace.data()) + 8, bytes),
            FI_INVALID_RUN);
  EXPECT_EQ(std::string(fi_last_error())
                .rfind("run: workspace: expected an address aligned to 64 "
                       "bytes, but got 0x",
                       0),
            0u);
  EXPECT_EQ(run(workspace.data(), bytes), FI_OK) << fi_last_error();
}

TEST_F(Errors, StaleGeneration) {
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan);
  uint64_t generation = fi_plan_generation(plan.get());
  EXPECT_EQ(generation, 1u);
  ASSERT_EQ(fi_plan_update(plan.get(), batch.plan.data(), 4, nullptr), FI_OK);
  Workspace workspace(fi_plan_workspace_bytes(plan.get()));
  EXPECT_EQ(fi_run(plan.get(), generation, batch.run.data(), 4,
                   batch.results.data(), 2, workspace.data(), workspace.size()),
            FI_STALE_PLAN);
  EXPECT_STREQ(fi_last_error(),
               "run: expected generation 1 of the plan, but it was updated to "
               "2; prepare the run from the updated plan");
}

TEST_F(Errors, FailedUpdateLeavesThePlan) {
  PlanPtr plan = planBatch(package.get(), batch, options);
  ASSERT_TRUE(plan);
  size_t bytes = fi_plan_workspace_bytes(plan.get());
  batch.set("indptr", 2, 1);
  EXPECT_EQ(fi_plan_update(plan.get(), batch.plan.data(), 4, nullptr),
            FI_INVALID_BATCH);
  EXPECT_EQ(fi_plan_generation(plan.get()), 1u);
  EXPECT_EQ(fi_plan_workspace_bytes(plan.get()), bytes);
  EXPECT_EQ(runBatch(plan.get(), batch), FI_OK) << fi_last_error();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(Errors, NullPointers) {
  fi_plan *plan = nullptr;
  EXPECT_EQ(fi_plan_create(nullptr, nullptr, 0, nullptr, &plan),
            FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "fi_plan_create: expected 'package', but got NULL");
  EXPECT_EQ(fi_plan_create(package.get(), nullptr, 4, nullptr, &plan),
            FI_INVALID_ARGUMENT);
  EXPECT_EQ(fi_plan_update(nullptr, nullptr, 0, nullptr), FI_INVALID_ARGUMENT);
  EXPECT_EQ(fi_run(nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0),
            FI_INVALID_ARGUMENT);
  EXPECT_EQ(fi_plan_workspace_bytes(nullptr), 0u);
  fi_plan_destroy(nullptr);
  fi_package_release(nullptr);
  fi_string_free(nullptr);
}

} // namespace
