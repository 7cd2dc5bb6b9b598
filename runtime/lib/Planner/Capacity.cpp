//===- Capacity.cpp - What a graph-safe plan may grow to ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds of what any batch within the capacities can need. A bound that is too
// large costs memory and CTAs that leave at once; one that is too small would
// refuse a batch that was promised, so the planner checks them, too.
//
//===----------------------------------------------------------------------===//
#include "Capacity.h"
#include "../Support/Error.h"
#include "WorkList.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

/// Slots of a body's split tiles, per CTA or thread that is there at once: the
/// finest pieces that the balanced policy tries have an eighth of a fair share,
/// and rarely does it take less than a half.
constexpr int64_t slotsPerWorker = 4;

int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

const char *argumentName(const Manifest &manifest, int32_t argument) {
  return argument == none ? "rows" : manifest.arguments[argument].name.c_str();
}

/// Row tiles that requests can need of a body: by the rows of all of them, and
/// by those of each.
int64_t mostUnits(const Stage &stage, size_t b, const StageCapacity &c) {
  const Body &body = stage.bodies[b];
  int64_t packed = c.requestRows * stage.group;
  int64_t before = b ? stage.bodies[b - 1].maxRows : 0;
  if (packed <= before)
    return 0; // earlier bodies take every request
  if (body.maxRows != unknownSize)
    packed = std::min(packed, body.maxRows);
  int64_t requests = std::min(c.requests, c.rows);
  return std::min(requests * divideUp(packed, body.tileRows),
                  c.rows * stage.group / body.tileRows + requests);
}

/// Row tiles of rows that belong to no request: before the first and after the
/// last.
int64_t mostPadUnits(const Stage &stage, const Body &body,
                     const StageCapacity &c) {
  int64_t tokens = padTokens(stage, body, c.rows);
  if (tokens == 0)
    return 0;
  return (c.rows / tokens + 2) * divideUp(tokens * stage.group, body.tileRows);
}

fi_status exceeds(const Stage &stage, const char *name, int64_t capacity,
                  const char *what, int64_t got, const char *remedy) {
  return fail(FI_INVALID_BATCH,
              "%s: operand '%s': expected at most %" PRId64
              " %s, for which the graph-safe plan was made, but got %" PRId64
              "; make a plan %s",
              stage.name.c_str(), name, capacity, what, got, remedy);
}

} // namespace

fi_status Capacities::settleItems(const Stage &stage, const Workers &workers,
                                  int32_t index, const ViewLengths &view,
                                  SplitPolicy policy, StageCapacity &c) const {
  int64_t heads = stage.kvHeads;
  if (stage.op == StageOp::Append) {
    c.bodies[0].items = mostUnits(stage, 0, c) * heads;
    return FI_OK;
  }
  c.padBody = int32_t(stage.bodies.size()) - 1;
  for (int32_t b = c.padBody; b >= 0; --b)
    if (stage.bodies[b].maxRows == unknownSize ||
        c.requestRows * stage.group <= stage.bodies[b].maxRows)
      c.padBody = b;
  // A term of a mask has a full range, and ranges on both sides of it.
  int64_t spans = stage.mask.present ? 3 * int64_t(stage.mask.terms.size()) : 2;
  int64_t headSets = stage.mask.present && stage.mask.usesHead ? heads : 1;
  int64_t keys = c.entries;
  if (stage.view.kind == ViewKind::Paged)
    keys = c.entries * view.page;
  else if (stage.view.kind == ViewKind::Dense)
    keys = c.requests * c.width * view.page;
  for (size_t b = 0; b < stage.bodies.size(); ++b) {
    const Body &body = stage.bodies[b];
    BodyCapacity &most = c.bodies[b];
    int64_t units = mostUnits(stage, b, c), whole = units * heads;
    if (units == 0 || !body.canSplit()) {
      most.slots = 0;
    } else if (policy.policy == FI_SPLIT_BALANCED) {
      int32_t crew = workers.of(index, int32_t(b));
      most.slots = crew > 1 ? slotsPerWorker * crew : 0;
    } else if (policy.policy == FI_SPLIT_FIXED) {
      int64_t piece = divideUp(policy.keys, body.tileKeys) * body.tileKeys;
      int64_t packed = c.requestRows * stage.group;
      if (body.maxRows != unknownSize)
        packed = std::min(packed, body.maxRows);
      // In floating point: capacities may be absurd, and are refused below.
      double slots =
          (double(divideUp(packed, body.tileRows)) * double(keys / piece) +
           double(units)) *
          double(heads);
      most.slots = int64_t(std::min(slots, double(2 * maxItems)));
    }
    most.items = whole + most.slots;
    most.merges = body.mergesItself ? 0 : std::min(most.slots / 2, whole);
    if (int32_t(b) == c.padBody)
      units += mostPadUnits(stage, body, c);
    most.items += (units * heads) - whole;
    if (most.items > maxItems)
      return fail(FI_INVALID_BATCH,
                  "%s: a graph-safe plan of up to %" PRId64 " rows and %" PRId64
                  " keys: expected at most %" PRId64
                  " work items, but batches may need more; state smaller "
                  "capacities (options.max_pages, max_request_rows), or larger "
                  "pieces",
                  stage.name.c_str(), c.rows, keys, maxItems);
    c.ranges += units * headSets * spans + most.slots;
  }
  return FI_OK;
}

fi_status Capacities::admit(const Manifest &manifest, size_t index,
                            const Table *tables, const RowLengths &rows,
                            const ViewLengths &view, int64_t totalRows,
                            int64_t poolKeys, const Workers &workers,
                            SplitPolicy policy) {
  const Stage &stage = manifest.stages[index];
  bool ragged = stage.view.kind == ViewKind::Ragged;
  bool dense = stage.view.kind == ViewKind::Dense;
  int64_t longest = 0, longestAt = 0;
  for (int64_t r = 0; r < rows.requests; ++r)
    if (rows.begin[r + 1] - rows.begin[r] > longest) {
      longest = rows.begin[r + 1] - rows.begin[r];
      longestAt = r;
    }
  auto entriesOf = [&](int32_t table, int32_t dim) {
    return tables[table].shape[dim];
  };
  stages.resize(manifest.stages.size());
  StageCapacity &c = stages[index];
  if (!settled) {
    c = StageCapacity();
    c.requests = statedRequests ? statedRequests : rows.requests;
    c.rows = totalRows;
    c.requestRows =
        statedRequestRows ? std::min(statedRequestRows, totalRows) : longest;
    if (stage.rows == none)
      c.requestRows = totalRows;
    if (ragged)
      c.entries = std::max(view.tokens, poolKeys);
    else if (!dense)
      c.entries = statedPages ? statedPages : entriesOf(stage.view.pages, 0);
    else
      c.width = entriesOf(stage.view.pages, 1);
    if (stage.view.valuePages != none && !(statedPages && !dense)) {
      int64_t &most = dense ? c.width : c.entries;
      most = std::min(most, entriesOf(stage.view.valuePages, dense ? 1 : 0));
    }
    c.bodies.resize(stage.bodies.size());
    FI_TRY(settleItems(stage, workers, int32_t(index), view, policy, c));
  }
  const char *rowsName = argumentName(manifest, stage.rows);
  if (rows.requests > c.requests)
    return exceeds(stage, rowsName, c.requests, "requests", rows.requests,
                   "with larger options.max_requests");
  if (longest > c.requestRows)
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected at most %" PRId64
                " rows in a request, for which the graph-safe plan was made, "
                "but request %" PRId64 " has %" PRId64
                "; make a plan with larger options.max_request_rows",
                stage.name.c_str(), rowsName, c.requestRows, longestAt,
                longest);
  int32_t table = ragged ? stage.view.indptr : stage.view.pages;
  int64_t used = ragged ? view.tokens : view.tableEnd;
  if (!dense && used > c.entries)
    return exceeds(stage, argumentName(manifest, table), c.entries,
                   ragged ? "keys" : "entries", used,
                   ragged ? "with the largest batch, or with more keys in "
                            "options.run_shapes"
                          : "with larger options.max_pages");
  if (dense && used > c.width)
    return exceeds(stage, argumentName(manifest, table), c.width,
                   "entries for a request", used, "from the widest table");
  return FI_OK;
}

fi_status Capacities::admitScalar(const Manifest &manifest, int32_t argument,
                                  int64_t value) {
  frozen.resize(manifest.arguments.size());
  Frozen &kept = frozen[argument];
  if (!settled)
    kept.scalar = value;
  if (kept.scalar == value)
    return FI_OK;
  const Argument &a = manifest.arguments[argument];
  if (!isIntegerDtype(a.dtype))
    return fail(FI_INVALID_BATCH,
                "plan: operand '%s': expected the value that the graph-safe "
                "plan was made with, which its launches hold, but got another; "
                "make another plan, or pass it as a run argument",
                a.name.c_str());
  return fail(FI_INVALID_BATCH,
              "plan: operand '%s': expected %" PRId64
              ", with which the graph-safe plan was made and which its "
              "launches hold, but got %" PRId64
              "; make another plan, or pass it as a run argument",
              a.name.c_str(), kept.scalar, value);
}

fi_status Capacities::admitTable(const Manifest &manifest, int32_t argument,
                                 int32_t rank, int64_t *sizes) {
  frozen.resize(manifest.arguments.size());
  Frozen &kept = frozen[argument];
  for (int32_t d = 0; d < rank; ++d) {
    if (!settled)
      kept.sizes[d] = sizes[d];
    if (sizes[d] > kept.sizes[d])
      return fail(FI_INVALID_BATCH,
                  "plan: operand '%s': expected at most size %" PRId64
                  " in dimension %d, for which the graph-safe plan was made, "
                  "but got %" PRId64 "; make a plan from the largest tables",
                  manifest.arguments[argument].name.c_str(), kept.sizes[d], d,
                  sizes[d]);
    sizes[d] = kept.sizes[d];
  }
  return FI_OK;
}

/// Kernels of a graph-safe plan must pass over surplus items.
fi_status checkGraphKernels(const Manifest &manifest) {
  auto check = [&](const Stage &stage, const std::string &symbol,
                   const LaunchShape &launch) {
    if (launch.isProfiled())
      return fail(FI_UNSUPPORTED,
                  "%s: kernel '%s' of package '%s': expected a plan that is "
                  "not graph-safe of a package compiled for profiling, because "
                  "each batch needs logs of its own; plan without graph_safe",
                  stage.name.c_str(), symbol.c_str(), manifest.program.c_str());
    if (launch.emptyItems)
      return FI_OK;
    return fail(FI_UNSUPPORTED,
                "%s: kernel '%s' of package '%s': expected \"empty_items\": "
                "true in its launch for a graph-safe plan, whose grids are "
                "those of the largest batch, but got none; compile the program "
                "again with this version, or plan without graph_safe and "
                "capture runs anew after each update",
                stage.name.c_str(), symbol.c_str(), manifest.program.c_str());
  };
  for (const Stage &stage : manifest.stages) {
    for (const Body &body : stage.bodies)
      FI_TRY(check(stage, body.symbol, body.launch));
    for (const Merge &merge : stage.merges)
      FI_TRY(check(stage, merge.symbol, merge.launch));
  }
  return FI_OK;
}

} // namespace fi::runtime
