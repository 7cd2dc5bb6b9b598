//===- ReplayTest.cpp - whole replays, in small ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replays on the reference interpreter with tiny heads: all events occur, and
// executors that are wrong in one way each are found out.
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Replay.h"
#include "fi/Execution/Inputs.h"
#include "fi/InitAll.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstring>
#include <list>

using namespace fi;
using namespace fi::replay;
using testing::HasSubstr;

namespace {

std::vector<TraceRequest> makeTrace() {
  return {{0, 11, 3}, {0, 30, 2}, {0, 4, 8}, {0, 7, 1}, {0, 19, 5}, {0, 1, 6}};
}

/// Runs every step, then spoils it in some way.
class SpoiledExecutor : public Executor {
public:
  using Spoil = std::function<void(const StepBatch &, const StepTensors &)>;
  SpoiledExecutor(const Program &program, const ContinuousBatcher &batcher,
                  std::unique_ptr<Executor> made, Spoil spoil)
      : Executor("spoiled"), program(program), batcher(batcher),
        executor(std::move(made)), spoil(std::move(spoil)) {}

  llvm::Error plan(llvm::ArrayRef<HostValue> arguments) override {
    return executor->plan(arguments);
  }
  llvm::Error run(llvm::ArrayRef<HostValue> arguments,
                  llvm::MutableArrayRef<HostTensor> results) override {
    if (llvm::Error error = executor->run(arguments, results))
      return error;
    StepTensors tensors;
    tensors.keys = arguments[program.getArgument(Role::Keys)].getTensor();
    tensors.values = arguments[program.getArgument(Role::Values)].getTensor();
    tensors.output = results[0];
    tensors.lse = results[1];
    spoil(batcher.getBatch(), tensors);
    return llvm::Error::success();
  }

private:
  const Program &program;
  const ContinuousBatcher &batcher;
  std::unique_ptr<Executor> executor;
  Spoil spoil;
};

/// Memory of a device that does not exist: using its addresses on the host is a
/// fault.
class ForeignMemory : public Memory {
public:
  static constexpr uintptr_t kOffset = uintptr_t(1) << 62;
  static void *toHost(const void *address) {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(address) -
                                    kOffset);
  }

  bool isHost() const override { return false; }
  llvm::Expected<HostTensor> allocate(DType type,
                                      llvm::ArrayRef<int64_t> shape) override {
    HostTensor &kept = tensors.emplace_back(type, shape);
    return HostTensor(
        type, shape,
        reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(kept.getData()) +
                                 kOffset));
  }
  llvm::Error write(void *to, const void *from, int64_t bytes) override {
    std::memcpy(toHost(to), from, bytes);
    return llvm::Error::success();
  }
  llvm::Error read(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, toHost(from), bytes);
    return llvm::Error::success();
  }
  llvm::Error fill(void *to, int byte, int64_t bytes) override {
    std::memset(toHost(to), byte, bytes);
    return llvm::Error::success();
  }

private:
  std::list<HostTensor> tensors;
};

/// The reference on a device of its own.
class ForeignExecutor : public Executor {
public:
  explicit ForeignExecutor(std::unique_ptr<Executor> made)
      : Executor("foreign"), executor(std::move(made)) {
    signature = executor->getSignature();
  }
  Memory &getMemory() override { return memory; }
  llvm::Error plan(llvm::ArrayRef<HostValue> arguments) override {
    return executor->plan(arguments);
  }
  llvm::Error run(llvm::ArrayRef<HostValue> arguments,
                  llvm::MutableArrayRef<HostTensor> results) override {
    auto take = [](const HostTensor &tensor) {
      return HostTensor(tensor.getType(), tensor.getShape(),
                        ForeignMemory::toHost(tensor.getData()));
    };
    std::vector<HostValue> here(arguments.begin(), arguments.end());
    for (auto [info, value] : llvm::zip(signature.arguments, here))
      if (!info.isPlan)
        value = HostValue(take(value.getTensor()));
    std::vector<HostTensor> outputs;
    for (const HostTensor &result : results)
      outputs.push_back(take(result));
    return executor->run(here, outputs);
  }

private:
  ForeignMemory memory;
  std::unique_ptr<Executor> executor;
};

class ReplayTest : public testing::Test {
protected:
  ReplayTest() : context(makeRegistry()) {
    sizes.page = 4;
    sizes.queryHeads = 4;
    sizes.kvHeads = 2;
    sizes.dim = 8;
    batching.maxRequests = 3;
    batching.tokenBudget = 9;
    batching.pageSize = 4;
    batching.pages = 16;
    options.steps = 0;
    options.checksPerStep = 4;
  }

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  llvm::Expected<ReplayReport> run(SpoiledExecutor::Spoil spoil) {
    auto loaded = parseProgram(context, printProgram(sizes), "p.mlir");
    if (!loaded)
      return loaded.takeError();
    auto batcher = ContinuousBatcher::create(makeTrace(), batching);
    if (!batcher)
      return batcher.takeError();
    auto made = Executor::create("reference", *loaded->module, "", {});
    if (!made)
      return made.takeError();
    if (onDevice) {
      ForeignExecutor executor(std::move(*made));
      return replay::replay(*batcher, loaded->program, executor, options);
    }
    SpoiledExecutor executor(loaded->program, *batcher, std::move(*made),
                             std::move(spoil));
    return replay::replay(*batcher, loaded->program, executor, options);
  }
  std::string errorOf(SpoiledExecutor::Spoil spoil) {
    auto report = run(std::move(spoil));
    return report ? "" : llvm::toString(report.takeError());
  }

  mlir::MLIRContext context;
  ProgramOptions sizes;
  BatchingOptions batching;
  ReplayOptions options;
  bool onDevice = false;
};

void spoilNothing(const StepBatch &, const StepTensors &) {}

TEST_F(ReplayTest, WholeTraceInEachLayoutAndType) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    for (HeadOrder order : {HeadOrder::HND, HeadOrder::NHD})
      for (bool append : {true, false}) {
        sizes.type = type;
        sizes.order = order;
        sizes.append = append;
        int64_t calls = 0;
        options.onStep = [&](const StepRecord &record) {
          EXPECT_EQ(record.index, calls++);
          EXPECT_EQ(record.checkedRows, 4);
        };
        auto report = run(spoilNothing);
        ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
        EXPECT_EQ(report->counters.completed, 6);
        EXPECT_EQ(report->counters.prefillTokens, 72);
        EXPECT_EQ(report->counters.decodeTokens, 19);
        EXPECT_EQ(report->counters.peakInFlight, 3);
        EXPECT_EQ(int64_t(report->steps.size()), calls);
        EXPECT_EQ(report->checkedRows, 4 * calls);
        // The same interpreter on both sides.
        EXPECT_EQ(report->maxError, 0);
        EXPECT_GT(report->reusedPages, 0);
        EXPECT_THAT(report->getMissingEvents(), testing::IsEmpty());
      }
}

/// No address of a backend's memory is used but through its interface.
TEST_F(ReplayTest, OnADeviceWithMemoryOfItsOwn) {
  onDevice = true;
  for (bool append : {true, false}) {
    sizes.append = append;
    auto report = run(spoilNothing);
    ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
    EXPECT_EQ(report->counters.completed, 6);
    EXPECT_EQ(report->maxError, 0);
    EXPECT_GT(report->checkedRows, 0);
  }
}

/// As fi-run does: the host's tensors go there, results and pools come back.
TEST_F(ReplayTest, RunsTheHostsTensorsOnADevice) {
  auto loaded = parseProgram(context, printProgram(sizes), "p.mlir");
  ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
  std::vector<std::vector<HostTensor>> results;
  std::vector<HostTensor> pools;
  Batch batch;
  batch.hasRequests = true;
  batch.requests = {{1, 5}, {3, 9}};
  for (bool isForeign : {false, true}) {
    auto made = Executor::create("reference", *loaded->module, "", {});
    ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
    std::unique_ptr<Executor> executor = std::move(*made);
    if (isForeign)
      executor = std::make_unique<ForeignExecutor>(std::move(executor));
    auto inputs = makeInputs(executor->getSignature(), batch, {});
    ASSERT_TRUE(bool(inputs)) << llvm::toString(inputs.takeError());
    auto outputs = executor->allocateResults(*inputs);
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    ASSERT_FALSE(bool(executor->plan(*inputs)));
    ASSERT_FALSE(bool(executor->runOnHost(*inputs, *outputs)));
    results.push_back(std::move(*outputs));
    pools.push_back(
        (*inputs)[loaded->program.getArgument(Role::Keys)].getTensor());
  }
  auto isEqual = [](const HostTensor &a, const HostTensor &b) {
    return std::memcmp(a.getData(), b.getData(),
                       a.getNumElements() * getByteSize(a.getType())) == 0;
  };
  EXPECT_TRUE(isEqual(results[0][0], results[1][0]));
  EXPECT_TRUE(isEqual(results[0][1], results[1][1]));
  EXPECT_TRUE(isEqual(pools[0], pools[1]));
}

TEST_F(ReplayTest, StopsAfterTheStepsAskedForAndMissesEvents) {
  options.steps = 2;
  auto report = run(spoilNothing);
  ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
  EXPECT_EQ(report->counters.steps, 2);
  EXPECT_THAT(report->getMissingEvents(),
              testing::Contains("no page was used again"));
}

TEST_F(ReplayTest, FindsAWrongOutput) {
  std::string error =
      errorOf([](const StepBatch &batch, const StepTensors &tensors) {
        if (batch.index != 3)
          return;
        for (int64_t row = 0; row < tensors.output.getSize(0); ++row)
          for (int64_t head = 0; head < 4; ++head)
            tensors.output.setFloat(
                {row, head, 5}, tensors.output.getFloat({row, head, 5}) + 1e-4);
      });
  EXPECT_THAT(error, HasSubstr("step 3: request "));
  EXPECT_THAT(error, HasSubstr("expected output 5 "));
}

TEST_F(ReplayTest, FindsAWrongLseAndNaN) {
  EXPECT_THAT(errorOf([](const StepBatch &, const StepTensors &tensors) {
                for (int64_t row = 0; row < tensors.lse.getSize(0); ++row)
                  for (int64_t head = 0; head < 4; ++head)
                    tensors.lse.setFloat(
                        {row, head}, tensors.lse.getFloat({row, head}) * 1.01);
              }),
              HasSubstr("expected lse "));
  EXPECT_THAT(errorOf([](const StepBatch &, const StepTensors &tensors) {
                for (int64_t row = 0; row < tensors.output.getSize(0); ++row)
                  for (int64_t head = 0; head < 4; ++head)
                    tensors.output.setFloat({row, head, 0}, NAN);
              }),
              HasSubstr("but got nan"));
}

TEST_F(ReplayTest, FindsKeysThatWereNotAppended) {
  // What a lost append leaves: the slot of the newest token as it was.
  EXPECT_THAT(errorOf([](const StepBatch &batch, const StepTensors &tensors) {
                for (size_t i = 0; i < batch.entries.size(); ++i) {
                  int32_t page = batch.pages[batch.pageIndptr[i + 1] - 1];
                  tensors.values.setFloat({page, 1, batch.lastPage[i] - 1, 7},
                                          NAN);
                }
              }),
              HasSubstr("is not what was appended"));
}

TEST_F(ReplayTest, FillsFreedPagesWithNaN) {
  // So that a stale page table gives NaN. Pages in no table are such pages,
  // where every request in flight takes part in the step.
  int64_t poisoned = 0;
  auto report = run([&](const StepBatch &batch, const StepTensors &tensors) {
    std::vector<bool> listed(16, false);
    for (int32_t page : batch.pages)
      listed[page] = true;
    if (batch.inFlight == int64_t(batch.entries.size()))
      for (int64_t page = 0; page < 16; ++page)
        if (!listed[page]) {
          ++poisoned;
          EXPECT_TRUE(std::isnan(tensors.keys.getFloat({page, 0, 0, 0})));
          EXPECT_TRUE(std::isnan(tensors.values.getFloat({page, 1, 3, 7})));
        }
  });
  ASSERT_TRUE(bool(report)) << llvm::toString(report.takeError());
  EXPECT_GT(poisoned, 0);
}

TEST_F(ReplayTest, RefusesPagesOfAnotherSize) {
  batching.pageSize = 8;
  EXPECT_THAT(
      errorOf(spoilNothing),
      HasSubstr("the batches have pages of 8 slots, but the program has "
                "pages of 4"));
}

TEST(Schedule, CountsItemsAndPieces) {
  auto summary = summarizeSchedule(R"({
    "stages": [{"op": "append"}, {"op": "attention"}],
    "workers": [
      {"items": [{"stage": 0, "merge": false, "slot": -1},
                 {"stage": 1, "merge": false, "slot": 0},
                 {"stage": 1, "merge": false, "slot": 1}]},
      {"items": [{"stage": 1, "merge": false, "slot": -1},
                 {"stage": 1, "merge": true, "slot": 0}]}]})");
  ASSERT_TRUE(bool(summary)) << llvm::toString(summary.takeError());
  EXPECT_EQ(summary->workers, 2);
  EXPECT_EQ(summary->items, 4);
  EXPECT_EQ(summary->splits, 2);
  for (
      const char *wrong :
      {"", "[]", "{}", R"({"stages": [], "workers": [{}]})",
       R"({"stages": [], "workers": [{"items": [{"stage": 0, "slot": 1}]}]})"}) {
    auto refused = summarizeSchedule(wrong);
    ASSERT_FALSE(bool(refused)) << wrong;
    EXPECT_NE(llvm::toString(refused.takeError()), "");
  }
}

} // namespace
