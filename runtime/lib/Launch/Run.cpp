//===- Run.cpp - Running a plan -------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fills parameter slots in the workspace and has the phases done. Nothing is
// allocated here, and all state of a run lies in its workspace.
//
//===----------------------------------------------------------------------===//
#include "Run.h"
#include "../Support/Error.h"
#include "Progress.h"
#include "ThreadPool.h"
#include "Values.h"

#include <new>

namespace fi::runtime {
namespace {

class PlanRun final : public Job {
public:
  PlanRun(const fi_plan &plan, char *workspace)
      : plan(plan.data()), manifest(plan.package->manifest),
        workspace(workspace) {}

  void prepare(const fi_value *values, const fi_tensor *results) {
    fillParams(values, results);
    const WorkLists &lists = plan.lists;
    for (size_t p = 0; p < lists.phases.size(); ++p)
      new (phase(p)) Progress{{0}};
    fi_work *works = at<fi_work>(plan.layout.works);
    for (size_t l = 0; l < lists.launches.size(); ++l) {
      const Launch &launch = lists.launches[l];
      works[l].items = lists.items.data() + launch.firstItem;
      works[l].ranges = lists.ranges.data();
      bool states = launch.slots > 0;
      char *base = workspace + plan.layout.states;
      works[l].state_o =
          states ? reinterpret_cast<float *>(base + launch.stateO) : nullptr;
      works[l].state_lse =
          states ? reinterpret_cast<float *>(base + launch.stateLse) : nullptr;
      for (int32_t w = 0; w < plan.workers; ++w)
        new (counter(l, w)) Progress{{lists.lists[launch.firstList + w]}};
    }
  }

  void participate(int32_t participant) override {
    for (size_t p = 0; p < plan.lists.phases.size(); ++p) {
      const Phase &current = plan.lists.phases[p];
      if (current.items == 0)
        continue;
      int64_t done = 0;
      // The own list first, then what others have left.
      for (int32_t i = 0; i < plan.workers; ++i)
        done += doLists(current, (participant + i) % plan.workers, participant);
      std::atomic<int64_t> &progress = phase(p)->value;
      if (done)
        progress.fetch_add(done, std::memory_order_acq_rel);
      Backoff backoff;
      while (progress.load(std::memory_order_acquire) != current.items)
        backoff.wait();
    }
  }

private:
  template <typename T> T *at(size_t offset) {
    return reinterpret_cast<T *>(workspace + offset);
  }
  Progress *phase(size_t p) { return at<Progress>(plan.layout.phases) + p; }
  Progress *counter(size_t launch, int32_t worker) {
    return at<Progress>(plan.layout.counters) + launch * plan.workers + worker;
  }

  int64_t doLists(const Phase &current, int32_t worker, int32_t participant) {
    int64_t done = 0;
    for (int32_t i = 0; i < current.launchCount; ++i) {
      size_t l = size_t(current.firstLaunch) + i;
      const Launch &launch = plan.lists.launches[l];
      const int64_t *list = &plan.lists.lists[launch.firstList + worker];
      std::atomic<int64_t> &next = counter(l, worker)->value;
      // Small bites, so that a slow worker's list can be finished by others.
      int64_t bite = std::max<int64_t>(1, (list[1] - list[0]) / 32);
      while (next.load(std::memory_order_relaxed) < list[1]) {
        int64_t begin = next.fetch_add(bite, std::memory_order_relaxed);
        int64_t end = std::min(begin + bite, list[1]);
        if (begin >= end)
          break;
        launch.kernel(at<const int64_t>(plan.layout.params +
                                        plan.stageParams[launch.stage]),
                      at<const fi_work>(plan.layout.works) + l, begin, end,
                      workspace + plan.layout.scratch +
                          participant * plan.layout.scratchStride);
        done += end - begin;
      }
    }
    return done;
  }

  void fillParams(const fi_value *values, const fi_tensor *results) {
    for (size_t s = 0; s < manifest.stages.size(); ++s) {
      int64_t *slot = at<int64_t>(plan.layout.params + plan.stageParams[s]);
      for (const BufferRef &buffer : manifest.stages[s].buffers)
        slot = fillBuffer(slot, buffer, values, results);
    }
  }

  int64_t *fillBuffer(int64_t *slot, const BufferRef &buffer,
                      const fi_value *values, const fi_tensor *results) {
    if (buffer.kind == BufferRef::ResultBuffer)
      return writeTensor(slot, results[buffer.index]);
    if (buffer.kind == BufferRef::TemporaryBuffer) {
      const Output &output = manifest.temporaries[buffer.index];
      int64_t shape[maxRank];
      std::copy(output.shape.begin(), output.shape.end(), shape);
      shape[0] = plan.countRows(output.rowsOf);
      return writeTensor(slot, {workspace + plan.layout.temporaries +
                                    plan.temporaryOffsets[buffer.index],
                                output.dtype, int32_t(output.shape.size()),
                                shape, nullptr});
    }
    const Argument &a = manifest.arguments[buffer.index];
    if (a.group == FI_GROUP_PLAN) {
      const Table &table = plan.kernelTables[buffer.index];
      if (a.kind != FI_KIND_SCALAR)
        return writeTensor(slot, table.data, table.rank, table.shape,
                           table.strides);
      *slot = table.scalar;
      return slot + 1;
    }
    const fi_value &value = values[a.indexInGroup];
    if (a.kind != FI_KIND_SCALAR)
      return writeTensor(slot, value.as.tensor);
    // Checked before: cannot fail.
    checkScalar(FI_INVALID_RUN, "run", a.name.c_str(), value, a.dtype, *slot);
    return slot + 1;
  }

  const PlanData &plan;
  const Manifest &manifest;
  char *workspace;
};

} // namespace

fi_status runPlan(fi_plan *plan, uint64_t generation, const fi_value *values,
                  int32_t valueCount, const fi_tensor *results,
                  int32_t resultCount, void *workspace, size_t bytes) {
  PlanUse use;
  FI_TRY(use.begin(plan, generation, valueCount, values, resultCount, results));
  if (plan->device)
    return fail(FI_INVALID_ARGUMENT,
                "run: expected a plan for the cpu, but got one for device %d; "
                "run it with fi_run_device",
                plan->device->ordinal);
  const PlanData &data = plan->data();
  FI_TRY(checkWorkspace(data, workspace, bytes));
  FI_TRY(checkValues(*plan, values, results));
  PlanRun run(*plan, static_cast<char *>(workspace));
  run.prepare(values, results);
  // Waking threads for one item would cost more than it saves.
  int64_t most = 0;
  for (const Phase &phase : data.lists.phases)
    most = std::max(most, phase.items);
  runJob(run, int32_t(std::min<int64_t>(data.workers, most)));
  return FI_OK;
}

} // namespace fi::runtime
