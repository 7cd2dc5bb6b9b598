//===- Layout.cpp - Where the parts of a plan lie -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps the tables that kernels read, and lays out the workspace.
//
//===----------------------------------------------------------------------===//
#include "../Launch/Progress.h"
#include "../Support/Error.h"
#include "Plan.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

size_t align(size_t bytes) {
  return (bytes + FI_ALIGNMENT - 1) / FI_ALIGNMENT * FI_ALIGNMENT;
}

/// Copies a strided tensor into contiguous memory.
char *copyContiguous(const Table &from, int32_t dim, int64_t offset,
                     const int64_t *sizes, char *to) {
  int64_t element = dtypeSize(from.dtype);
  if (dim == from.rank - 1 || from.rank == 0) {
    int64_t bytes = (from.rank ? sizes[dim] : 1) * element;
    if (bytes)
      std::memcpy(to, static_cast<const char *>(from.data) + offset * element,
                  bytes);
    return to + bytes;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    to = copyContiguous(from, dim + 1, offset + i * from.strides[dim], sizes,
                        to);
  return to;
}

/// Copies a strided tensor to where it has other strides.
void copyInto(const Table &from, int32_t dim, int64_t offset,
              const int64_t *sizes, const int64_t *strides, char *to) {
  int64_t element = dtypeSize(from.dtype);
  if (dim == from.rank - 1) {
    if (sizes[dim])
      std::memcpy(to, static_cast<const char *>(from.data) + offset * element,
                  sizes[dim] * element);
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    copyInto(from, dim + 1, offset + i * from.strides[dim], sizes, strides,
             to + i * strides[dim] * element);
}

} // namespace

/// Copies them into the sizes of the largest batch. What a smaller table lacks
/// reads as 0, as it does out of range.
fi_status PlanData::keepGraphTables(const Manifest &manifest,
                                    Capacities &capacities) {
  tableParts.clear();
  // Sizes first: where one table lies depends on those before it.
  size_t bytes = 0;
  for (int32_t argument : manifest.planArguments) {
    kernelTables[argument] = tables[argument];
    Table &kept = kernelTables[argument];
    if (manifest.arguments[argument].kind == FI_KIND_SCALAR) {
      if (isPartOfLaunches(manifest, argument))
        FI_TRY(capacities.admitScalar(manifest, argument, kept.scalar));
      continue;
    }
    if (!tableRows[argument])
      continue;
    int32_t last = kept.rank - 1;
    kept.shape[last] = tableRows[argument] - 1;
    for (const Stage &stage : manifest.stages) {
      if (stage.op == StageOp::Rows || !stage.view.isPageTable(argument))
        continue;
      const StageCapacity &most = capacities.of(stage.view.sharedTables);
      bool dense = stage.view.kind == ViewKind::Dense;
      kept.shape[last] =
          std::max(kept.shape[last], dense ? most.width : most.entries);
      if (dense)
        kept.shape[0] = std::max(kept.shape[0], most.requests);
    }
    FI_TRY(capacities.admitTable(manifest, argument, kept.rank, kept.shape));
    int64_t stride = 1;
    for (int32_t d = last; d >= 0; --d) {
      kept.strides[d] = stride;
      stride *= kept.shape[d];
    }
    size_t size = size_t(stride) * dtypeSize(kept.dtype);
    tableParts.push({bytes, size});
    bytes += align(size);
  }
  tableBytes.resize(bytes);
  size_t part = 0;
  for (int32_t argument : manifest.planArguments) {
    if (!tableRows[argument])
      continue;
    const Table &from = tables[argument];
    Table &kept = kernelTables[argument];
    char *to = tableBytes.data() + tableParts[part].offset;
    kept.data = to;
    int32_t last = kept.rank - 1;
    int64_t used[maxRank];
    for (int32_t d = 0; d <= last; ++d)
      used[d] = std::min(from.shape[d], kept.shape[d]);
    if (isPages[argument]) {
      // Nothing reads entries that the batch does not use.
      used[last] = std::min(used[last], tableRows[argument] - 1);
      tableParts[part].bytes =
          (last ? used[0] * kept.strides[0] : used[0]) * dtypeSize(kept.dtype);
    } else {
      std::memset(to, 0, tableParts[part].bytes);
    }
    copyInto(from, 0, 0, used, kept.strides, to);
    ++part;
  }
  return FI_OK;
}

/// Whether a scalar is a parameter of kernels or a number of rows.
bool PlanData::isPartOfLaunches(const Manifest &manifest, int32_t argument) {
  for (const Stage &stage : manifest.stages) {
    if (stage.op == StageOp::Rows && stage.rowsOf.argument == argument)
      return true;
    for (const BufferRef &buffer : stage.buffers)
      if (buffer.kind == BufferRef::ArgumentBuffer && buffer.index == argument)
        return true;
  }
  for (const auto *outputs : {&manifest.results, &manifest.temporaries})
    for (const Output &output : *outputs)
      if (output.rowsOf.argument == argument)
        return true;
  return false;
}

/// Copies the plan tensors that kernels read, as far as they are needed:
/// engines pass tables with room for the longest batch.
fi_status PlanData::keepTables(const Manifest &manifest, bool borrow,
                               Capacities *capacities) {
  kernelTables.resize(manifest.arguments.size());
  tableRows.assign(manifest.arguments.size(), 0);
  isPages.assign(manifest.arguments.size(), capacities != nullptr);
  // tableRows: 1 + entries of the last dimension to keep, 0: not read at run.
  auto need = [&](int32_t argument, int64_t entries) {
    tableRows[argument] = std::max(tableRows[argument], entries + 1);
  };
  for (const Stage &stage : manifest.stages)
    for (const BufferRef &buffer : stage.buffers) {
      if (buffer.kind != BufferRef::ArgumentBuffer)
        continue;
      const Argument &a = manifest.arguments[buffer.index];
      if (a.group != FI_GROUP_PLAN || a.kind == FI_KIND_SCALAR ||
          a.shape.empty())
        continue;
      const Table &table = tables[buffer.index];
      bool pages =
          stage.op != StageOp::Rows && stage.view.isPageTable(buffer.index);
      int64_t entries = table.shape[table.rank - 1];
      if (pages)
        entries = views[stage.view.sharedTables].tableEnd;
      else if (stage.op == StageOp::Attention &&
               stage.positions == buffer.index)
        // Kernels may read positions of padding rows before they ignore them.
        entries = std::max(entries, argumentRows[stage.query]);
      isPages[buffer.index] &= pages;
      need(buffer.index, entries);
    }
  if (capacities) {
    FI_TRY(keepGraphTables(manifest, *capacities));
    placeDenseTables(manifest);
    return FI_OK;
  }
  size_t bytes = 0;
  auto elements = [&](int32_t argument) {
    const Table &table = tables[argument];
    int64_t count = tableRows[argument] - 1;
    for (int32_t d = 0; d + 1 < table.rank; ++d)
      count *= table.shape[d];
    return count;
  };
  for (int32_t argument : manifest.planArguments) {
    kernelTables[argument] = tables[argument];
    if (!borrow && tableRows[argument])
      bytes += align(elements(argument) * dtypeSize(tables[argument].dtype));
  }
  if (!borrow) {
    tableBytes.resize(bytes);
    char *to = tableBytes.data();
    for (int32_t argument : manifest.planArguments) {
      if (!tableRows[argument])
        continue;
      const Table &from = tables[argument];
      Table &kept = kernelTables[argument];
      kept.data = to;
      int32_t last = kept.rank - 1;
      kept.shape[last] = std::min(tableRows[argument] - 1, from.shape[last]);
      char *end = copyContiguous(from, 0, 0, kept.shape, to);
      size_t size = elements(argument) * dtypeSize(from.dtype);
      if (kept.rank == 1 && size > size_t(end - to)) {
        std::memset(end, 0, size - (end - to));
        kept.shape[last] = tableRows[argument] - 1;
      }
      int64_t stride = 1;
      for (int32_t d = last; d >= 0; --d) {
        kept.strides[d] = stride;
        stride *= kept.shape[d];
      }
      to += align(size);
    }
  }
  placeDenseTables(manifest);
  return FI_OK;
}

/// Work items count entries of a dense table from its first.
void PlanData::placeDenseTables(const Manifest &manifest) {
  for (Launch &launch : lists.launches) {
    const Stage &stage = manifest.stages[launch.stage];
    if (stage.op == StageOp::Rows || stage.view.kind != ViewKind::Dense)
      continue;
    int64_t stride = kernelTables[stage.view.pages].strides[0];
    for (int64_t i = 0; i < launch.items; ++i) {
      fi_item &item = lists.items[launch.firstItem + i];
      item.table_begin = item.request < 0 ? 0 : item.request * stride;
    }
  }
}

/// What workers share and have for themselves, in a run on this machine.
void PlanData::layOutControl(const Manifest &manifest, size_t &at) {
  auto take = [&](size_t bytes) {
    size_t offset = at;
    at += align(bytes);
    return offset;
  };
  layout.phases = take(lists.phases.size() * sizeof(Progress));
  layout.counters = take(lists.launches.size() * workers * sizeof(Progress));
  layout.works = take(lists.launches.size() * sizeof(fi_work));
  layout.params = at;
  stageParams.clear();
  for (const Stage &stage : manifest.stages)
    stageParams.push(take(stageSlots(manifest, stage) * sizeof(int64_t)) -
                     layout.params);
  int64_t scratch = 0;
  for (const Launch &launch : lists.launches)
    if (launch.items || launch.slots)
      scratch = std::max(scratch, launch.scratch);
  layout.scratchStride = align(scratch);
  layout.scratch = take(layout.scratchStride * workers);
}

fi_status PlanData::layOut(const Manifest &manifest, bool onDevice) {
  size_t at = 0;
  auto take = [&](size_t bytes) {
    size_t offset = at;
    at += align(bytes);
    return offset;
  };
  layout = WorkspaceLayout();
  if (!onDevice)
    layOutControl(manifest, at);
  layout.states = take(lists.stateBytes);
  layout.temporaries = at;
  temporaryOffsets.clear();
  for (const Output &output : manifest.temporaries) {
    int64_t bytes = dtypeSize(output.dtype);
    bool overflow =
        __builtin_mul_overflow(bytes, countRows(output.rowsOf), &bytes);
    for (size_t d = 1; d < output.shape.size(); ++d)
      overflow |= __builtin_mul_overflow(bytes, output.shape[d], &bytes);
    if (overflow || bytes > INT64_C(1) << 46)
      return fail(FI_INVALID_BATCH,
                  "plan: temporary '%s': expected a size in memory's range, "
                  "but %" PRId64 " rows are too many",
                  output.name.c_str(), countRows(output.rowsOf));
    temporaryOffsets.push(take(size_t(bytes)) - layout.temporaries);
  }
  layout.bytes = at;
  return FI_OK;
}

} // namespace fi::runtime
