//===- Values.cpp - What a run is given -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing here allocates, and nothing is written before all has been checked.
//
//===----------------------------------------------------------------------===//
#include "Values.h"
#include "../Support/Error.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

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
    if (view.kind == ViewKind::Ragged)
      continue;
    for (auto [pool, table, maxPage] :
         poolsOf(view, data.views[view.sharedTables]))
      if (pool != none && maxPage >= got && &m.arguments[pool] == &argument)
        return fail(FI_INVALID_RUN,
                    "%s: operand '%s': expected page indices below %" PRId64
                    ", the pages of '%s', but the plan has page index %" PRId64
                    "; pass the pool that the tables were made for",
                    stage.name.c_str(), m.arguments[table].name.c_str(), got,
                    name, maxPage);
  }
  return fail(FI_INVALID_RUN,
              "run: operand '%s': expected at least %" PRId64
              " in dimension %d, which the plan's tables reach, but got "
              "%" PRId64,
              name, rule.least, dim, got);
}

/// Remembers the smallest of the sizes that runs have had.
void noteSize(std::atomic<int64_t> &smallest, int64_t size) {
  int64_t seen = smallest.load(std::memory_order_relaxed);
  while (size < seen &&
         !smallest.compare_exchange_weak(seen, size, std::memory_order_relaxed))
    ;
}

} // namespace

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
      if (plan.graph && rule.exact == unknownSize)
        noteSize(plan.graph->smallest[i * maxRank + d], tensor.shape[d]);
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

fi_status checkWorkspace(const PlanData &data, const void *workspace,
                         size_t bytes) {
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
  return FI_OK;
}

fi_status PlanUse::begin(fi_plan *used, uint64_t generation, int32_t valueCount,
                         const fi_value *values, int32_t resultCount,
                         const fi_tensor *results) {
  int32_t users = used->users.load(std::memory_order_relaxed);
  do {
    if (users < 0)
      return fail(FI_BUSY, "run: expected a plan at rest, but it is being "
                           "updated by another thread");
  } while (!used->users.compare_exchange_weak(users, users + 1,
                                              std::memory_order_acquire));
  plan = used;
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
  return FI_OK;
}

} // namespace fi::runtime
