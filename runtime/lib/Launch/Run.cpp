//===- Run.cpp - Running a plan -------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the run values, fills parameter slots in the workspace, and has the
// phases done. Nothing is allocated here, and all state of a run lies in its
// workspace.
//
//===----------------------------------------------------------------------===//
#include "Run.h"
#include "../Support/Error.h"
#include "Progress.h"
#include "ThreadPool.h"

#include <cinttypes>
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

  static int64_t *writeTensor(int64_t *slot, const void *data, int32_t rank,
                              const int64_t *shape, const int64_t *strides) {
    *slot++ = int64_t(reinterpret_cast<intptr_t>(data));
    for (int32_t d = 0; d < rank; ++d)
      *slot++ = shape[d];
    for (int32_t d = 0; d < rank; ++d)
      *slot++ = strides[d];
    return slot;
  }
  static int64_t *writeTensor(int64_t *slot, const fi_tensor &tensor) {
    int64_t strides[maxRank];
    fillStrides(tensor, strides);
    return writeTensor(slot, tensor.data, tensor.rank, tensor.shape, strides);
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

/// Why a size is not what the plan was made for.
fi_status wrongSize(const fi_plan &plan, const Argument &argument, int32_t dim,
                    const SizeRule &rule, int64_t got) {
  const Manifest &m = plan.package->manifest;
  const PlanData &data = plan.data();
  const char *name = argument.name.c_str();
  if (rule.exact != unknownSize && got != rule.exact) {
    const char *remedy =
        dim == 0 ? "plan this batch; for padding rows, plan with options.rows"
                 : "plan with this shape";
    return fail(FI_INVALID_RUN,
                "run: operand '%s': expected size %" PRId64
                " in dimension %d, which the plan was made for, but got "
                "%" PRId64 "; %s",
                name, rule.exact, dim, got, remedy);
  }
  // A pool that is too small: find the page that is outside.
  for (size_t s = 0; s < m.stages.size(); ++s) {
    const Stage &stage = m.stages[s];
    if (stage.op == StageOp::Rows)
      continue;
    const View &view = stage.view;
    const ViewLengths &lengths = data.views[view.sharedTables];
    if (view.kind == ViewKind::Ragged || lengths.maxPage < got ||
        (&m.arguments[view.keys] != &argument &&
         &m.arguments[view.values] != &argument))
      continue;
    return fail(FI_INVALID_RUN,
                "%s: operand '%s': expected page indices below %" PRId64
                ", the pages of '%s', but the plan has page index %" PRId64
                "; pass the pool that the tables were made for",
                stage.name.c_str(), m.arguments[view.pages].name.c_str(), got,
                name, lengths.maxPage);
  }
  return fail(FI_INVALID_RUN,
              "run: operand '%s': expected at least %" PRId64
              " in dimension %d, which the plan's tables reach, but got "
              "%" PRId64,
              name, rule.least, dim, got);
}

fi_status checkValues(const fi_plan &plan, const fi_value *values,
                      const fi_tensor *results) {
  const Manifest &m = plan.package->manifest;
  const PlanData &data = plan.data();
  for (size_t i = 0; i < m.runArguments.size(); ++i) {
    const Argument &a = m.arguments[m.runArguments[i]];
    const char *name = a.name.c_str();
    if (a.kind == FI_KIND_SCALAR) {
      int64_t slot;
      FI_TRY(
          checkScalar(FI_INVALID_RUN, "run", name, values[i], a.dtype, slot));
      continue;
    }
    if (values[i].kind != FI_VALUE_TENSOR)
      return fail(FI_INVALID_RUN,
                  "run: operand '%s': expected a tensor, but got a scalar",
                  name);
    const fi_tensor &tensor = values[i].as.tensor;
    FI_TRY(checkTensor(FI_INVALID_RUN, "run", name, tensor, a.dtype,
                       a.shape.data(), int32_t(a.shape.size()),
                       a.kind == FI_KIND_POOL));
    for (int32_t d = 0; d < tensor.rank; ++d) {
      const SizeRule &rule = data.rules[i * maxRank + d];
      if ((rule.exact != unknownSize && tensor.shape[d] != rule.exact) ||
          tensor.shape[d] < rule.least)
        return wrongSize(plan, a, d, rule, tensor.shape[d]);
    }
  }
  for (size_t i = 0; i < m.results.size(); ++i) {
    const Output &output = m.results[i];
    int64_t shape[maxRank];
    std::copy(output.shape.begin(), output.shape.end(), shape);
    shape[0] = data.countRows(output.rowsOf);
    FI_TRY(checkTensor(FI_INVALID_RUN, "run", output.name.c_str(), results[i],
                       output.dtype, shape, int32_t(output.shape.size()),
                       /*written=*/true));
  }
  return FI_OK;
}

} // namespace

fi_status runPlan(fi_plan *plan, uint64_t generation, const fi_value *values,
                  int32_t valueCount, const fi_tensor *results,
                  int32_t resultCount, void *workspace, size_t bytes) {
  int32_t users = plan->users.load(std::memory_order_relaxed);
  do {
    if (users < 0)
      return fail(FI_BUSY, "run: expected a plan at rest, but it is being "
                           "updated by another thread");
  } while (!plan->users.compare_exchange_weak(users, users + 1,
                                              std::memory_order_acquire));
  struct Leave {
    fi_plan *plan;
    ~Leave() { plan->users.fetch_sub(1, std::memory_order_release); }
  } leave{plan};

  uint64_t now = plan->generation.load(std::memory_order_relaxed);
  if (generation && generation != now)
    return fail(FI_STALE_PLAN,
                "run: expected generation %" PRIu64
                " of the plan, but it was updated to %" PRIu64
                "; prepare the run from the updated plan",
                generation, now);
  const Manifest &m = plan->package->manifest;
  if (size_t(valueCount) != m.runArguments.size() || (valueCount && !values))
    return fail(FI_INVALID_ARGUMENT,
                "run: expected %zu values, one for each run argument of '%s', "
                "but got %d",
                m.runArguments.size(), m.program.c_str(),
                values ? valueCount : 0);
  if (size_t(resultCount) != m.results.size() || (resultCount && !results))
    return fail(FI_INVALID_ARGUMENT,
                "run: expected %zu results of '%s', but got %d",
                m.results.size(), m.program.c_str(), results ? resultCount : 0);
  const PlanData &data = plan->data();
  if (bytes < data.layout.bytes || (data.layout.bytes && !workspace))
    return fail(FI_INVALID_RUN,
                "run: workspace: expected at least %zu bytes, but got %zu; ask "
                "fi_plan_workspace_bytes after each plan",
                data.layout.bytes, workspace ? bytes : 0);
  if (reinterpret_cast<uintptr_t>(workspace) % FI_WORKSPACE_ALIGNMENT)
    return fail(FI_INVALID_RUN,
                "run: workspace: expected an address aligned to %d bytes, but "
                "got %p",
                FI_WORKSPACE_ALIGNMENT, workspace);
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
