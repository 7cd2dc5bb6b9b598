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

/// The row tensors of a step: the first rows of buffers that fit any step.
class StepBuffers {
public:
  StepBuffers(const Program &program, const Pools &pools, int64_t maxRows)
      : program(program), pools(pools),
        output(program.getOutputType(),
               {maxRows, program.getQueryHeads(), program.getDim()}),
        lse(DType::F32, {maxRows, program.getQueryHeads()}) {
    if (!program.hasAppend())
      return;
    int64_t shape[] = {maxRows, program.getKVHeads(), program.getDim()};
    newKeys = HostTensor(program.getKVType(), shape);
    newValues = HostTensor(program.getKVType(), shape);
  }

  StepTensors get(const KVSource &source, const StepBatch &batch) const {
    int64_t rows = batch.getTokens();
    StepTensors tensors;
    tensors.query = source.getQuery(batch.index, rows);
    tensors.keys = pools.getKeys();
    tensors.values = pools.getValues();
    tensors.output = takeRows(output, rows);
    tensors.lse = takeRows(lse, rows);
    if (program.hasAppend()) {
      tensors.newKeys = takeRows(newKeys, rows);
      tensors.newValues = takeRows(newValues, rows);
    }
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
  HostTensor newKeys, newValues, output, lse;
};

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
  report.compileMilliseconds = executor.getCompileMilliseconds();
  Expected<Pools> pools = Pools::create(program, batching.pages);
  if (!pools)
    return pools.takeError();
  report.poolPages = batching.pages;
  report.poolBytes = pools->getBytes();
  KVSource source(program, options.seed, batching.tokenBudget);
  StepBuffers buffers(program, *pools, batching.tokenBudget);
  Checker checker(program, source, *pools, options.seed);
  int64_t scheduleKeys = -1;

  while (!batcher.isDone() &&
         (options.steps == 0 || batcher.getCounters().steps < options.steps)) {
    const StepBatch &batch = batcher.beginStep();
    StepTensors tensors = buffers.get(source, batch);
    if (program.hasAppend())
      source.fillNewRows(batch, tensors.newKeys, tensors.newValues);
    else
      source.append(batch, *pools);
    StepRecord record = makeRecord(program, batcher, batch);

    Clock::time_point start = Clock::now();
    if (Error error = executor.plan(batch))
      return inStep(batch.index, std::move(error));
    record.planMilliseconds = getMilliseconds(start);
    if (Error error = executor.prepare())
      return inStep(batch.index, std::move(error));
    start = Clock::now();
    if (Error error = executor.run(tensors))
      return inStep(batch.index, std::move(error));
    record.runMilliseconds = getMilliseconds(start);

    Expected<std::string> schedule = executor.getSchedule();
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

    Expected<CheckResult> checked =
        checker.check(batch, tensors, options.checksPerStep);
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
    pools->poison(batcher.endStep());
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
