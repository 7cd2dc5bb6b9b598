//===- Replay.cpp - replay a trace on an executor -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Replay.h"
#include "Checker.h"
#include "fi/Replay/KVSource.h"
#include <algorithm>
#include <chrono>

using namespace llvm;

namespace fi::replay {
namespace {

using Clock = std::chrono::steady_clock;

double getMilliseconds(Clock::time_point from) {
  return std::chrono::duration<double, std::milli>(Clock::now() - from).count();
}

Error inStep(int64_t step, Error error) {
  return createStringError(inconvertibleErrorCode(),
                           "step " + Twine(step) + ": " +
                               toString(std::move(error)));
}

/// The row tensors of a step, in the backend's memory: the first rows of
/// buffers that fit any step.
class StepBuffers {
public:
  StepBuffers(const Program &program, const Pools &pools)
      : program(program), pools(pools) {}

  Error allocate(int64_t maxRows) {
    int64_t queryShape[] = {maxRows, program.getQueryHeads(), program.getDim()};
    int64_t newShape[] = {maxRows, program.getKVHeads(), program.getDim()};
    auto make = [&](HostTensor &tensor, DType type,
                    ArrayRef<int64_t> shape) -> Error {
      Expected<HostTensor> made = pools.getMemory().allocate(type, shape);
      if (!made)
        return made.takeError();
      tensor = std::move(*made);
      return Error::success();
    };
    if (Error error = make(output, program.getOutputType(), queryShape))
      return error;
    if (Error error =
            make(lse, DType::F32, ArrayRef<int64_t>(queryShape).drop_back()))
      return error;
    if (Error error = make(query, program.getQueryType(), queryShape))
      return error;
    if (!program.hasAppend())
      return Error::success();
    if (Error error = make(newKeys, program.getKVType(), newShape))
      return error;
    return make(newValues, program.getKVType(), newShape);
  }

  /// Tensors of a step, with the queries and, for a program that appends, the
  /// new keys and values in them.
  Expected<StepTensors> fill(const KVSource &source,
                             const StepBatch &batch) const {
    int64_t rows = batch.getTokens();
    Memory &memory = pools.getMemory();
    StepTensors tensors;
    HostTensor made = source.getQuery(batch.index, rows);
    tensors.query = made;
    if (!memory.isHost()) {
      tensors.query = takeRows(query, rows);
      if (Error error =
              memory.write(tensors.query.getData(), made.getData(),
                           made.getNumElements() * getByteSize(made.getType())))
        return std::move(error);
    }
    tensors.keys = pools.getKeys();
    tensors.values = pools.getValues();
    tensors.output = takeRows(output, rows);
    tensors.lse = takeRows(lse, rows);
    if (!program.hasAppend()) {
      if (Error error = source.append(batch, pools))
        return std::move(error);
      return tensors;
    }
    tensors.newKeys = takeRows(newKeys, rows);
    tensors.newValues = takeRows(newValues, rows);
    if (Error error = source.fillNewRows(batch, tensors.newKeys,
                                         tensors.newValues, memory))
      return std::move(error);
    return tensors;
  }

private:
  static HostTensor takeRows(const HostTensor &tensor, int64_t rows) {
    SmallVector<int64_t> shape(tensor.getShape());
    shape[0] = rows;
    return HostTensor(tensor.getType(), shape, tensor.getData());
  }

  const Program &program;
  const Pools &pools;
  HostTensor query, newKeys, newValues, output, lse;
};

/// The step's tensors on the host, for checks: themselves where they are there.
/// The checker fetches the pages that it looks at.
Expected<StepTensors> fetch(const StepTensors &tensors, const Program &program,
                            const Pools &pools) {
  Memory &memory = pools.getMemory();
  if (memory.isHost())
    return tensors;
  StepTensors copy = tensors;
  copy.keys = pools.getHostKeys();
  copy.values = pools.getHostValues();
  SmallVector<HostTensor *> all = {&copy.query, &copy.output};
  if (program.hasLse())
    all.push_back(&copy.lse);
  if (program.hasAppend())
    all.append({&copy.newKeys, &copy.newValues});
  for (HostTensor *tensor : all) {
    Expected<HostTensor> here = memory.download(*tensor);
    if (!here)
      return here.takeError();
    *tensor = std::move(*here);
  }
  return copy;
}

StepRecord makeRecord(const Program &program, const ContinuousBatcher &batcher,
                      const StepBatch &batch) {
  StepRecord record;
  record.index = batch.index;
  record.kind = batch.kind;
  record.chunked = batch.chunked;
  record.requests = batch.entries.size();
  record.inFlight = batch.inFlight;
  record.prefillTokens = batch.prefillTokens;
  record.decodeTokens = batch.decodeTokens;
  record.keys = batch.getKeys();
  record.livePages = batcher.getPages().getLive();
  double rowElements = double(program.getQueryHeads()) * program.getDim();
  double rows = batch.getTokens();
  record.bytes = (record.keys + rows) * double(program.getTokenBytes()) +
                 rows * rowElements *
                     (getByteSize(program.getQueryType()) +
                      getByteSize(program.getOutputType()));
  record.operations = 4 * rowElements * batch.getVisiblePairs();
  return record;
}

} // namespace

std::vector<std::string> ReplayReport::getMissingEvents() const {
  std::vector<std::string> missing;
  if (counters.chunkedSteps == 0)
    missing.push_back("no step with a part of a prompt");
  if (counters.decodeSteps == 0)
    missing.push_back("no step of decoding alone");
  if (counters.mixedSteps == 0)
    missing.push_back("no step of prompts and decoding together");
  if (counters.completed == 0)
    missing.push_back("no request was completed");
  if (reusedPages == 0)
    missing.push_back("no page was used again");
  return missing;
}

Expected<ReplayReport> replay(ContinuousBatcher &batcher,
                              const Program &program, Executor &executor,
                              const ReplayOptions &options) {
  Clock::time_point begin = Clock::now();
  const BatchingOptions &batching = batcher.getOptions();
  if (batching.pageSize != program.getPageSize())
    return createStringError(inconvertibleErrorCode(),
                             "the batches have pages of " +
                                 Twine(batching.pageSize) +
                                 " slots, but the program has pages of " +
                                 Twine(program.getPageSize()));
  ReplayReport report;
  report.compileMilliseconds = executor.getTimes().compile;
  Memory &memory = executor.getMemory();
  Expected<Pools> pools = Pools::create(program, batching.pages, memory);
  if (!pools)
    return pools.takeError();
  report.poolPages = batching.pages;
  report.poolBytes = pools->getBytes();
  KVSource source(program, options.seed, batching.tokenBudget);
  StepBuffers buffers(program, *pools);
  if (Error error = buffers.allocate(batching.tokenBudget))
    return std::move(error);
  Checker checker(program, source, *pools, options.seed);
  int64_t scheduleKeys = -1;

  while (!batcher.isDone() &&
         (options.steps == 0 || batcher.getCounters().steps < options.steps)) {
    const StepBatch &batch = batcher.beginStep();
    Expected<StepTensors> tensors = buffers.fill(source, batch);
    if (!tensors)
      return inStep(batch.index, tensors.takeError());
    StepRecord record = makeRecord(program, batcher, batch);

    std::vector<HostValue> arguments = makeArguments(program, batch, *tensors);
    std::vector<HostTensor> results = tensors->getResults(program);
    if (Error error = executor.plan(arguments))
      return inStep(batch.index, std::move(error));
    record.planMilliseconds = executor.getTimes().plan;
    if (Error error = executor.run(arguments, results))
      return inStep(batch.index, std::move(error));
    record.runMilliseconds = executor.getTimes().run;

    Expected<std::string> schedule = executor.hasPlans()
                                         ? executor.getScheduleJson()
                                         : Expected<std::string>("");
    if (!schedule)
      return inStep(batch.index, schedule.takeError());
    if (!schedule->empty()) {
      Expected<ScheduleSummary> summary = summarizeSchedule(*schedule);
      if (!summary)
        return inStep(batch.index, summary.takeError());
      record.schedule = *summary;
    }
    bool keep = options.scheduleStep >= 0 ? batch.index == options.scheduleStep
                                          : batch.kind == StepKind::Mixed &&
                                                record.keys > scheduleKeys;
    if (keep) {
      report.schedule = std::move(*schedule);
      report.scheduleStep = batch.index;
      scheduleKeys = record.keys;
    }

    Expected<StepTensors> here = fetch(*tensors, program, *pools);
    if (!here)
      return inStep(batch.index, here.takeError());
    Expected<CheckResult> checked =
        checker.check(batch, *here, options.checksPerStep);
    if (!checked)
      return checked.takeError();
    record.checkedRows = checked->rows;
    record.maxError = checked->error;
    report.checkedKeys += checked->keys;
    report.maxLseError = std::max(report.maxLseError, checked->lseError);
    report.maxRatio = std::max(report.maxRatio, checked->ratio);

    if (report.steps.empty())
      report.firstPlanMilliseconds = record.planMilliseconds;
    else
      report.maxPlanMilliseconds =
          std::max(report.maxPlanMilliseconds, record.planMilliseconds);
    report.planMilliseconds += record.planMilliseconds;
    report.runMilliseconds += record.runMilliseconds;
    report.bytes += record.bytes;
    report.operations += record.operations;
    report.items += record.schedule.items;
    report.splits += record.schedule.splits;
    report.checkedRows += record.checkedRows;
    report.maxError = std::max(report.maxError, record.maxError);
    report.steps.push_back(record);
    if (Error error = pools->poison(batcher.endStep()))
      return std::move(error);
    if (options.onStep)
      options.onStep(record);
  }
  report.counters = batcher.getCounters();
  report.peakPages = batcher.getPages().getPeak();
  report.allocatedPages = batcher.getPages().getAllocated();
  report.reusedPages = batcher.getPages().getReused();
  report.wallSeconds = getMilliseconds(begin) / 1000;
  return report;
}

} // namespace fi::replay
