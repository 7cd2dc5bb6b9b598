//===- CallTest.cpp - Programs called by compiled functions ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_call.h, called as compiled functions do: with arrays of numbers.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"
#include "fi-runtime/fi_call.h"

#include <gtest/gtest.h>
#include <thread>

using namespace fi::test;

namespace {

/// Values as fi-calls-to-llvm writes them.
std::vector<int64_t> encode(const std::vector<fi_value> &values) {
  std::vector<int64_t> words;
  for (const fi_value &value : values) {
    if (value.kind == FI_VALUE_FLOAT) {
      uint32_t bits;
      std::memcpy(&bits, &value.as.f32, sizeof(bits));
      words.insert(words.end(), {FI_CALL_VALUE(value.kind, FI_F32, 0), bits});
      continue;
    }
    if (value.kind == FI_VALUE_INTEGER) {
      words.insert(words.end(),
                   {FI_CALL_VALUE(value.kind, FI_I64, 0), value.as.i64});
      continue;
    }
    const fi_tensor &t = value.as.tensor;
    words.push_back(FI_CALL_VALUE(value.kind, t.dtype, t.rank));
    words.push_back(reinterpret_cast<intptr_t>(t.data));
    words.insert(words.end(), t.shape, t.shape + t.rank);
    std::vector<int64_t> strides(size_t(t.rank), 1);
    for (int32_t i = t.rank - 1; i > 0; --i)
      strides[size_t(i) - 1] = strides[size_t(i)] * t.shape[i];
    if (t.strides)
      strides.assign(t.strides, t.strides + t.rank);
    words.insert(words.end(), strides.begin(), strides.end());
  }
  return words;
}

std::vector<int64_t> encode(const std::vector<fi_tensor> &tensors) {
  std::vector<fi_value> values;
  for (const fi_tensor &tensor : tensors) {
    fi_value value = {};
    value.kind = FI_VALUE_TENSOR;
    value.as.tensor = tensor;
    values.push_back(value);
  }
  return encode(values);
}

/// Collects what calls say instead of ending the process.
struct Failures {
  std::vector<std::string> sentences;
  Failures() {
    fi_call_on_error(
        [](void *self, const char *program, fi_status, const char *sentence) {
          static_cast<Failures *>(self)->sentences.push_back(
              std::string(program) + ": " + sentence);
        },
        this);
  }
  ~Failures() { fi_call_on_error(nullptr, nullptr); }
};

struct Call : ::testing::Test {
  FakeProgram program;
  PackagePtr package;

  void SetUp() override {
    program.bodies = {{4, 16, -1, 256, 10, 100, 10}};
    program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
    package.reset(openFake(program.manifest()));
    ASSERT_TRUE(package) << fi_last_error();
    ASSERT_EQ(fi_call_register("f", package.get(), nullptr), FI_OK)
        << fi_last_error();
  }
  void TearDown() override { fi_call_unregister("f"); }

  /// One call of a function; what went wrong, or "".
  std::string call(std::vector<int64_t> keys = {300, 40, 7, 0, 90}) {
    FakeBatch batch;
    Recorder recorder;
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    batch.queryLengths = {1, 9, 1, 0, 3};
    batch.keyLengths = std::move(keys);
    batch.bind(program, recorder);
    std::vector<int64_t> values = encode(batch.plan), run = encode(batch.run),
                         results = encode(batch.results);
    fi_call *plan = fi_call_plan("f", int32_t(batch.plan.size()), values.data(),
                                 0, nullptr);
    fi_call_run(plan, int32_t(batch.run.size()), run.data(),
                int32_t(batch.results.size()), results.data());
    fi_call_release(plan);
    return compareCounts(program, batch, recorder);
  }
};

TEST_F(Call, PlansAreKeptByWhatTheyAreMadeOf) {
  EXPECT_EQ(call(), "");
  EXPECT_EQ(call(), "");
  EXPECT_EQ(fi_call_plans_made("f"), 1);
  EXPECT_EQ(fi_call_plans_found("f"), 1);
  EXPECT_EQ(call({300, 40, 8, 0, 90}), "");
  EXPECT_EQ(fi_call_plans_made("f"), 2);
  EXPECT_EQ(call(), "");
  EXPECT_EQ(fi_call_plans_made("f"), 2);
}

TEST_F(Call, OldPlansMakePlace) {
  fi_call_options options = {};
  options.struct_size = sizeof(options);
  options.plans_kept = 2;
  ASSERT_EQ(fi_call_register("f", package.get(), &options), FI_OK);
  for (int64_t keys : {1, 2, 3})
    EXPECT_EQ(call({keys, 40, 7, 0, 90}), "");
  EXPECT_EQ(call({2, 40, 7, 0, 90}), "");
  EXPECT_EQ(fi_call_plans_made("f"), 3);
  EXPECT_EQ(call({1, 40, 7, 0, 90}), "");
  EXPECT_EQ(fi_call_plans_made("f"), 4);
}

/// A plan that a function holds is good while others take its place.
TEST_F(Call, HeldPlansLive) {
  fi_call_options options = {};
  options.struct_size = sizeof(options);
  options.plans_kept = 1;
  ASSERT_EQ(fi_call_register("f", package.get(), &options), FI_OK);
  FakeBatch batch;
  Recorder recorder;
  recorder.visible = [](const Pair &p) {
    return p.keyPosition <= p.queryPosition;
  };
  batch.queryLengths = {2};
  batch.keyLengths = {50};
  batch.bind(program, recorder);
  std::vector<int64_t> values = encode(batch.plan), run = encode(batch.run),
                       results = encode(batch.results);
  fi_call *plan =
      fi_call_plan("f", int32_t(batch.plan.size()), values.data(), 0, nullptr);
  EXPECT_EQ(call(), "");
  ASSERT_EQ(fi_call_unregister("f"), FI_OK);
  fi_call_run(plan, int32_t(batch.run.size()), run.data(),
              int32_t(batch.results.size()), results.data());
  fi_call_release(plan);
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(Call, FromManyThreads) {
  std::vector<std::string> failures(6);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 30 && failures[t].empty(); ++i)
        failures[t] = call({i % 10 + 1, 40, 7, 0, 90});
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

/// Tables that are parts of others count by their elements alone.
TEST_F(Call, StridesAreNoDifference) {
  EXPECT_EQ(call(), "");
  FakeBatch batch;
  Recorder recorder;
  batch.queryLengths = {1, 9, 1, 0, 3};
  batch.keyLengths = {300, 40, 7, 0, 90};
  batch.bind(program, recorder);
  std::vector<std::vector<int32_t>> wider;
  std::vector<int64_t> two = {2};
  for (fi_value &value : batch.plan) {
    fi_tensor &t = value.as.tensor;
    ASSERT_EQ(t.rank, 1);
    std::vector<int32_t> spread(size_t(t.shape[0]) * 2, -1);
    for (int64_t i = 0; i < t.shape[0]; ++i)
      spread[size_t(i) * 2] = static_cast<int32_t *>(t.data)[i];
    wider.push_back(std::move(spread));
    t.data = wider.back().data();
    t.strides = two.data();
  }
  std::vector<int64_t> values = encode(batch.plan);
  fi_call *plan =
      fi_call_plan("f", int32_t(batch.plan.size()), values.data(), 0, nullptr);
  ASSERT_TRUE(plan);
  fi_call_release(plan);
  EXPECT_EQ(fi_call_plans_made("f"), 1);
  EXPECT_EQ(fi_call_plans_found("f"), 1);
}

TEST_F(Call, FailuresAreSentences) {
  Failures failures;
  EXPECT_EQ(fi_call_plan("nobody", 0, nullptr, 0, nullptr), nullptr);
  // A plan that failed is run as nothing.
  fi_call_run(nullptr, 0, nullptr, 0, nullptr);
  fi_call_release(nullptr);
  EXPECT_EQ(fi_call_plan("f", 0, nullptr, 0, nullptr), nullptr);
  std::vector<int64_t> shape = {FI_CALL_VALUE(FI_VALUE_INTEGER, FI_I64, 0), 0};
  FakeBatch batch;
  Recorder recorder;
  batch.queryLengths = {1};
  batch.keyLengths = {5};
  batch.bind(program, recorder);
  std::vector<int64_t> values = encode(batch.plan);
  EXPECT_EQ(fi_call_plan("f", int32_t(batch.plan.size()), values.data(), 1,
                         shape.data()),
            nullptr);
  fi_call *plan =
      fi_call_plan("f", int32_t(batch.plan.size()), values.data(), 0, nullptr);
  fi_call_run(plan, 0, nullptr, 0, nullptr);
  fi_call_release(plan);
  ASSERT_EQ(failures.sentences.size(), 4u);
  EXPECT_NE(failures.sentences[0].find(
                "nobody: expected a registered program, but got 'nobody'"),
            std::string::npos);
  EXPECT_NE(failures.sentences[1].find("f: "), std::string::npos);
  EXPECT_NE(failures.sentences[2].find("compiled for another program"),
            std::string::npos)
      << failures.sentences[2];
  EXPECT_NE(failures.sentences[3].find("f: "), std::string::npos);
}

TEST_F(Call, MisuseOfTheTable) {
  EXPECT_EQ(fi_call_register("f", nullptr, nullptr), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "fi_call_register: expected 'package', but got NULL");
  fi_call_options options = {};
  EXPECT_EQ(fi_call_register("f", package.get(), &options),
            FI_INVALID_ARGUMENT);
  options.struct_size = sizeof(options);
  options.plans_kept = -1;
  EXPECT_EQ(fi_call_register("f", package.get(), &options),
            FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(), "fi_call_register: expected 'plans_kept' of at "
                                "least 0, but got -1");
  EXPECT_EQ(fi_call_unregister("g"), FI_INVALID_ARGUMENT);
  EXPECT_EQ(fi_call_unregister(nullptr), FI_INVALID_ARGUMENT);
  EXPECT_EQ(fi_call_plans_made("g"), -1);
  EXPECT_EQ(fi_call_plans_found(nullptr), -1);
  // The package's own name.
  EXPECT_EQ(fi_call_register(nullptr, package.get(), nullptr), FI_OK);
  EXPECT_EQ(fi_call_unregister(fi_package_program(package.get())), FI_OK);
}

TEST_F(Call, WithoutAHandlerTheProcessEnds) {
  EXPECT_DEATH(fi_call_plan("nobody", 0, nullptr, 0, nullptr),
               "fi: a call of program 'nobody' failed: expected a registered "
               "program, but got 'nobody'");
}

} // namespace
