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
#include "FakeDriver.h"
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

/// A function whose program is for a device, whose streams do nothing before
/// somebody waits.
struct DeviceCall : ::testing::Test {
  FakeProgram program;
  FakeGpu gpu;
  FakeBatch batch;
  Recorder recorder;
  void *stream = reinterpret_cast<void *>(0x77);
  fi_call_options options = {};
  Failures failures;

  void SetUp() override {
    program.bodies = {{4, 16, -1, 256, 10, 100, 10}};
    program.mask = json::parse(R"({"terms": [{"hi": [["q"]]}]})");
    gpu.open(deviceManifest(program));
    ASSERT_TRUE(gpu.package) << fi_last_error();
    options.struct_size = sizeof(options);
    options.device = gpu.device;
    options.stream = stream;
    ASSERT_EQ(fi_call_register("g", gpu.package.get(), &options), FI_OK)
        << fi_last_error();
    // Kernels are there before the first call.
    EXPECT_EQ(gpu.driver.count("load_ptx"), 1u);
    recorder.visible = [](const Pair &p) {
      return p.keyPosition <= p.queryPosition;
    };
    batch.queryLengths = {1, 9, 1, 0, 3};
    batch.keyLengths = {3000, 40, 7, 0, 90};
    batch.bind(program, recorder);
    // The pools are not read, and shorter than they say: they are the device's.
    gpu.driver.adopt(batch.run[2].as.tensor.data, 8);
  }
  void TearDown() override { fi_call_unregister("g"); }

  fi_call *plan() {
    std::vector<int64_t> values = encode(batch.plan);
    return fi_call_plan("g", int32_t(batch.plan.size()), values.data(), 0,
                        nullptr);
  }
  void run(fi_call *plan) {
    std::vector<int64_t> run = encode(batch.run),
                         results = encode(batch.results);
    fi_call_run(plan, int32_t(batch.run.size()), run.data(),
                int32_t(batch.results.size()), results.data());
  }
  void call() {
    fi_call *planned = plan();
    gpu.driver.clear();
    run(planned);
    fi_call_release(planned);
    for (const std::string &failure : failures.sentences)
      ADD_FAILURE() << failure;
  }
  size_t hostBytes() const {
    return sizeof(float) * (batch.query.size() - 1 +
                            2 * (batch.output.size() + batch.lse.size() - 2));
  }
};

/// What the host has is there and back again when the call returns.
TEST_F(DeviceCall, HostTensorsAreCopied) {
  call();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  EXPECT_EQ(gpu.driver.count("copy_to_device"), 3u);
  EXPECT_EQ(gpu.driver.count("copy_to_host"), 2u);
  EXPECT_EQ(gpu.driver.copiedBytes, hostBytes());
  EXPECT_EQ(gpu.driver.count("stream_synchronize"), 1u);
  for (const fi_driver_launch &launch : gpu.driver.launches)
    EXPECT_EQ(launch.stream, stream);
  // Plan and memory are those of the first call.
  std::fill(recorder.covered.begin(), recorder.covered.end(), 0);
  call();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  EXPECT_EQ(gpu.driver.count("memory_alloc"), 0u);
  EXPECT_EQ(fi_call_plans_made("g"), 1);
  EXPECT_EQ(fi_call_plans_found("g"), 1);
  EXPECT_EQ(gpu.driver.entered, 0);
}

/// A function all of whose tensors are the device's launches and goes on.
TEST_F(DeviceCall, DeviceTensorsAreNotWaitedFor) {
  gpu.adopt(batch);
  call();
  EXPECT_EQ(gpu.driver.count("copy_to_device"), 0u);
  EXPECT_EQ(gpu.driver.count("copy_to_host"), 0u);
  EXPECT_EQ(gpu.driver.count("stream_synchronize"), 0u);
  EXPECT_FALSE(gpu.driver.launches.empty());
  EXPECT_EQ(batch.output[0], -7); // not yet
  gpu.driver.finish();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(DeviceCall, SomeTensorsOfTheHost) {
  gpu.driver.adopt(batch.query.data(), 8);
  gpu.driver.adopt(batch.output.data(), 8);
  call();
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
  EXPECT_EQ(gpu.driver.count("copy_to_device"), 1u);
  EXPECT_EQ(gpu.driver.count("copy_to_host"), 1u);
}

/// Results that lie in turns in one buffer are copied as one range, so that
/// neither brings back what was there before the other.
TEST_F(DeviceCall, TensorsThatOverlapAreOne) {
  fi_tensor &output = batch.results[0], &lse = batch.results[1];
  // In a row: the output, one more, the lse, and one more.
  int64_t heads = output.shape[1], size = output.shape[2],
          width = heads * (size + 1) + 2;
  std::vector<float> both(size_t(output.shape[0] * width), -5);
  std::vector<int64_t> outputStrides = {width, size, 1},
                       lseStrides = {width, 1};
  output.data = both.data();
  output.strides = outputStrides.data();
  lse.data = both.data() + heads * size + 1;
  lse.strides = lseStrides.data();
  call();
  EXPECT_EQ(gpu.driver.count("copy_to_device"), 2u);
  EXPECT_EQ(gpu.driver.count("copy_to_host"), 1u);
  for (int64_t i = 0; i < output.shape[0]; ++i) {
    const float *row = both.data() + i * width;
    std::copy_n(row, heads * size, batch.output.data() + i * heads * size);
    std::copy_n(row + heads * size + 1, heads, batch.lse.data() + i * heads);
    EXPECT_EQ(row[heads * size], -5);
    EXPECT_EQ(row[width - 1], -5);
  }
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

/// A plan that others push out of the table, and one that is held when the
/// program is forgotten, are good until their functions are done.
TEST_F(DeviceCall, HeldPlansLiveAndEverythingIsGivenBack) {
  size_t before = gpu.driver.liveAllocations();
  options.plans_kept = 1;
  ASSERT_EQ(fi_call_register("g", gpu.package.get(), &options), FI_OK);
  fi_call *held = plan();
  gpu.adopt(batch);
  run(held);
  batch.set("qo", 5, 13);
  batch.set("qo", 4, 13);
  fi_call *other = plan();
  EXPECT_NE(other, held);
  ASSERT_EQ(fi_call_unregister("g"), FI_OK);
  fi_call_release(other);
  EXPECT_GT(gpu.driver.liveAllocations(), before);
  fi_call_release(held);
  EXPECT_EQ(gpu.driver.liveAllocations(), before);
  EXPECT_EQ(compareCounts(program, batch, recorder), "");
}

TEST_F(DeviceCall, FailuresAreSentences) {
  // Tables on the device.
  int32_t there = 0;
  gpu.driver.adopt(&there, sizeof(there));
  void *&pages = batch.planValue("pages").as.tensor.data, *here = pages;
  pages = &there;
  EXPECT_EQ(plan(), nullptr);
  pages = here;
  fi_call *planned = plan();
  fi_call_run(planned, 0, nullptr, 0, nullptr);
  gpu.driver.failOn("memory_alloc", FI_DRIVER_OUT_OF_MEMORY, "no room");
  run(planned);
  gpu.driver.failOn("copy_to_device", FI_DRIVER_ERROR, "no way there");
  run(planned);
  gpu.driver.failOn("copy_to_host", FI_DRIVER_ERROR, "no way back");
  run(planned);
  gpu.driver.failOn("stream_synchronize", FI_DRIVER_ERROR, "it fell over");
  run(planned);
  fi_call_release(planned);
  const char *expected[] = {
      "operand 'pages': expected memory of the host, where plans are made",
      "expected 4 values",
      "no room",
      "no way there",
      "no way back",
      "it fell over"};
  ASSERT_EQ(failures.sentences.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_NE(failures.sentences[i].find(expected[i]), std::string::npos)
        << failures.sentences[i];
  gpu.driver.failOn("", 0, "");
  // A stream that is being captured takes no call.
  planned = plan();
  gpu.driver.capturedStream = stream;
  run(planned);
  ASSERT_EQ(failures.sentences.size(), std::size(expected) + 1);
  EXPECT_NE(
      failures.sentences.back().find(
          "expected a stream that is not being captured, because a call keeps"),
      std::string::npos)
      << failures.sentences.back();
  fi_call_release(planned);
}

TEST_F(DeviceCall, MisuseOfTheTable) {
  // A package for the cpu on a device, and in a stream.
  FakeProgram other;
  PackagePtr here(openFake(other.manifest()));
  ASSERT_TRUE(here) << fi_last_error();
  EXPECT_EQ(fi_call_register("h", here.get(), &options), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(),
               "fi_call_register: expected a package for device 0 (Fake A100), "
               "but got one for the cpu; compile the program for sm_80, or "
               "leave 'device' NULL");
  options.device = nullptr;
  EXPECT_EQ(fi_call_register("h", here.get(), &options), FI_INVALID_ARGUMENT);
  EXPECT_STREQ(fi_last_error(), "fi_call_register: expected 'stream' NULL for "
                                "a package for the cpu, but got one");
  // A package for a later GPU than the device.
  gpu.open(deviceManifest(program, "sm_90"));
  ASSERT_TRUE(gpu.package) << fi_last_error();
  options.device = gpu.device;
  EXPECT_EQ(fi_call_register("h", gpu.package.get(), &options), FI_UNSUPPORTED);
  EXPECT_NE(std::string(fi_last_error()).find("compiled for sm_90"),
            std::string::npos)
      << fi_last_error();
  EXPECT_EQ(fi_call_plans_made("h"), -1);
}

} // namespace
