//===- Plan.cpp - Planning a batch ----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the plan values, has the work lists made stage by stage, keeps the
// tables that kernels read, and lays out the workspace. Nothing is allocated
// when an earlier batch was as large.
//
//===----------------------------------------------------------------------===//
#include "Plan.h"
#include "../Launch/Progress.h"
#include "../Launch/ThreadPool.h"
#include "../Support/Error.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

constexpr int32_t maxWorkers = 1024, maxDeviceWorkers = 1 << 16;

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

fi_status readOptions(const Manifest &manifest, const fi_plan_options *given,
                      PlanOptions &options) {
  fi_plan_options o = {};
  if (given) {
    if (given->struct_size <
            offsetof(fi_plan_options, workers) + sizeof(given->workers) ||
        given->struct_size > sizeof(o))
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.struct_size: expected sizeof(fi_plan_options) "
                  "(%zu), but got %zu; set it, or update the runtime",
                  sizeof(o), given->struct_size);
    std::memcpy(&o, given, given->struct_size);
  }
  int32_t mostWorkers = o.device ? maxDeviceWorkers : maxWorkers;
  if (o.workers < 0 || o.workers > mostWorkers)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.workers: expected 0 (all) to %d, but got %d",
                mostWorkers, o.workers);
  if (o.split_policy < FI_SPLIT_DEFAULT || o.split_policy > FI_SPLIT_NONE)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.split_policy: expected a value of "
                "fi_split_policy, but got %d",
                o.split_policy);
  if (o.split_policy == FI_SPLIT_FIXED &&
      (o.split_keys < 1 || o.split_keys > INT64_C(1) << 40))
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.split_keys: expected the keys of a piece, 1 to "
                "2^40, but got %" PRId64,
                o.split_keys);
  if (o.graph_safe)
    return fail(FI_UNSUPPORTED,
                "plan: options.graph_safe: fixed grids are not supported; set "
                "it to 0, and capture runs anew after each update");
  if (o.rows < 0)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.rows: expected 0 (as the indptr says) or the "
                "rows of the query, but got %" PRId64,
                o.rows);
  options.workers = o.workers;
  options.workersStated = o.workers != 0;
  options.device = o.device;
  options.stream = o.stream;
  options.split = {fi_split_policy(o.split_policy), o.split_keys};
  options.borrowTables = o.borrow_tables != 0;
  options.rows = o.rows;
  options.sizes.assign(
      o.run_shapes ? manifest.runArguments.size() * maxRank : 0, unknownSize);
  for (size_t i = 0; o.run_shapes && i < manifest.runArguments.size(); ++i) {
    const Argument &argument = manifest.arguments[manifest.runArguments[i]];
    const fi_tensor &tensor = o.run_shapes[i];
    if (!tensor.shape || argument.kind == FI_KIND_SCALAR)
      continue;
    if (tensor.rank != int32_t(argument.shape.size()))
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.run_shapes: operand '%s': expected rank %zu, "
                  "but got rank %d",
                  argument.name.c_str(), argument.shape.size(), tensor.rank);
    for (int32_t d = 0; d < tensor.rank; ++d) {
      int64_t size = tensor.shape[d], declared = argument.shape[d];
      if (size < unknownSize || size > INT64_C(1) << 40 ||
          (size != unknownSize && declared != unknownSize && size != declared))
        return fail(FI_INVALID_ARGUMENT,
                    "plan: options.run_shapes: operand '%s': expected size "
                    "%" PRId64 " (-1: any) in dimension %d, but got %" PRId64,
                    argument.name.c_str(), declared, d, size);
      options.sizes[i * maxRank + d] = size;
    }
  }
  return FI_OK;
}

/// Bounds search what a program promises to be sorted.
fi_status checkSorted(const char *name, const Table &table) {
  int last = table.rank - 1;
  int64_t rows = 1;
  for (int dim = 0; dim < last; ++dim)
    rows *= table.shape[dim];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = 0, rest = row;
    for (int dim = last - 1; dim >= 0; --dim) {
      offset += rest % table.shape[dim] * table.strides[dim];
      rest /= table.shape[dim];
    }
    for (int64_t i = 1; i < table.shape[last]; ++i) {
      int64_t before = table.at(offset + (i - 1) * table.strides[last]);
      int64_t value = table.at(offset + i * table.strides[last]);
      if (value < before)
        return fail(
            FI_INVALID_BATCH,
            "plan: operand '%s': expected entries sorted along the last "
            "dimension, as the program promises (fi.sorted), but got "
            "%lld after %lld in row %lld",
            name, (long long)value, (long long)before, (long long)row);
    }
  }
  return FI_OK;
}

/// Raises `rows` to what a stage needs of a row tensor.
void needRows(int64_t &rows, int64_t end) { rows = std::max(rows, end); }

} // namespace

fi_status PlanData::readArguments(const Manifest &manifest,
                                  const fi_value *values) {
  tables.resize(manifest.arguments.size());
  for (size_t i = 0; i < manifest.planArguments.size(); ++i) {
    const Argument &argument = manifest.arguments[manifest.planArguments[i]];
    Table &table = tables[manifest.planArguments[i]];
    const char *name = argument.name.c_str();
    table = Table();
    table.dtype = argument.dtype;
    if (argument.kind == FI_KIND_SCALAR) {
      FI_TRY(checkScalar(FI_INVALID_BATCH, "plan", name, values[i],
                         argument.dtype, table.scalar));
      table.integer = isIntegerDtype(argument.dtype) ? table.scalar : 0;
      continue;
    }
    if (values[i].kind != FI_VALUE_TENSOR)
      return fail(FI_INVALID_BATCH,
                  "plan: operand '%s': expected a tensor, but got a scalar",
                  name);
    const fi_tensor &tensor = values[i].as.tensor;
    FI_TRY(checkTensor(FI_INVALID_BATCH, "plan", name, tensor, argument.dtype,
                       argument.shape.data(), int32_t(argument.shape.size()),
                       argument.kind == FI_KIND_POOL));
    table.data = tensor.data;
    table.rank = tensor.rank;
    std::copy_n(tensor.shape, tensor.rank, table.shape);
    fillStrides(tensor, table.strides);
    if (argument.sorted)
      FI_TRY(checkSorted(name, table));
  }
  return FI_OK;
}

/// Finds how many rows each row tensor has: as the options say, else as the
/// indptrs of the stages that read it.
fi_status PlanData::findRows(const Manifest &manifest,
                             const PlanOptions &options) {
  argumentRows.assign(manifest.arguments.size(), unknownSize);
  for (size_t i = 0; i < manifest.runArguments.size(); ++i)
    argumentRows[manifest.runArguments[i]] = options.size(int32_t(i), 0);
  for (int32_t argument : manifest.planArguments)
    if (manifest.arguments[argument].kind == FI_KIND_SCALAR &&
        isIntegerDtype(manifest.arguments[argument].dtype))
      argumentRows[argument] = tables[argument].integer;
  auto stated = [&](int32_t argument) {
    return options.size(manifest.arguments[argument].indexInGroup, 0) !=
           unknownSize;
  };
  // Rows that the indptrs demand.
  for (size_t s = 0; s < manifest.stages.size(); ++s) {
    const Stage &stage = manifest.stages[s];
    if (stage.op == StageOp::Rows)
      continue;
    int64_t end = 0;
    if (stage.rows != none) {
      FI_TRY(readRows(stage, manifest, tables.data(), 0, rows[s]));
      end = rows[s].begin[rows[s].requests];
    } else if (options.rows) {
      end = options.rows;
    } else {
      continue;
    }
    if (options.rows && options.rows < end)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected at most the %" PRId64
                  " rows of options.rows, but its rows end at %" PRId64,
                  stage.name.c_str(),
                  manifest.arguments[stage.rows].name.c_str(), options.rows,
                  end);
    auto need = [&](int32_t argument) {
      if (!stated(argument))
        needRows(argumentRows[argument], options.rows ? options.rows : end);
    };
    if (stage.op == StageOp::Attention)
      need(stage.query);
    for (int32_t argument : stage.newTokens)
      need(argument);
  }
  // Rows of whatever else has as many as some result.
  auto rowsOf = [&](const RowSource &source, const char *what) {
    int32_t argument = source.argument;
    if (argument == none)
      return FI_OK;
    if (manifest.arguments[argument].group == FI_GROUP_PLAN) {
      if (argumentRows[argument] >= 0)
        return FI_OK;
      return fail(FI_INVALID_BATCH,
                  "plan: operand '%s': expected a number of rows of at least "
                  "0 for %s, but got %" PRId64,
                  manifest.arguments[argument].name.c_str(), what,
                  argumentRows[argument]);
    }
    if (argumentRows[argument] == unknownSize && options.rows)
      argumentRows[argument] = options.rows;
    if (argumentRows[argument] != unknownSize)
      return FI_OK;
    return fail(FI_INVALID_BATCH,
                "plan: operand '%s': its rows, which %s needs, are not known "
                "when planning; give options.rows or its shape in "
                "options.run_shapes",
                manifest.arguments[argument].name.c_str(), what);
  };
  for (size_t s = 0; s < manifest.stages.size(); ++s) {
    const Stage &stage = manifest.stages[s];
    if (stage.op == StageOp::Rows) {
      FI_TRY(rowsOf(stage.rowsOf, stage.name.c_str()));
      continue;
    }
    int32_t rowArgument =
        stage.op == StageOp::Attention ? stage.query : stage.newTokens[0];
    FI_TRY(rowsOf({rowArgument, unknownSize}, stage.name.c_str()));
    int64_t count = argumentRows[rowArgument];
    if (stage.rows == none) {
      FI_TRY(readRows(stage, manifest, tables.data(), count, rows[s]));
      continue;
    }
    int64_t end = rows[s].begin[rows[s].requests];
    if (count < end)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected at most the %" PRId64
                  " rows of '%s', but its rows end at %" PRId64,
                  stage.name.c_str(),
                  manifest.arguments[stage.rows].name.c_str(), count,
                  manifest.arguments[rowArgument].name.c_str(), end);
  }
  for (const auto *outputs : {&manifest.results, &manifest.temporaries})
    for (const Output &output : *outputs)
      FI_TRY(rowsOf(output.rowsOf, output.name.c_str()));
  return FI_OK;
}

/// Demands a size of a run value, unless another stage demands another.
fi_status PlanData::setRule(const Manifest &manifest, const Stage &stage,
                            int32_t argument, int32_t dim, int64_t exact) {
  const Argument &a = manifest.arguments[argument];
  SizeRule &rule = rules[size_t(a.indexInGroup) * maxRank + dim];
  if (rule.exact != unknownSize && rule.exact != exact)
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected size %" PRId64
                " in dimension %d, but it is %" PRId64 " elsewhere",
                stage.name.c_str(), a.name.c_str(), exact, dim, rule.exact);
  rule.exact = exact;
  return FI_OK;
}

fi_status PlanData::setPoolRules(const Manifest &manifest, const Stage &stage,
                                 const ViewLengths &lengths) {
  const View &view = stage.view;
  bool ragged = view.kind == ViewKind::Ragged;
  for (int32_t pool : {view.keys, view.values}) {
    const Argument &a = manifest.arguments[pool];
    FI_TRY(setRule(manifest, stage, pool, view.headDim(), view.heads));
    if (view.fused)
      FI_TRY(setRule(manifest, stage, pool, 1, 2));
    int32_t dim = ragged ? view.tokenDim() : 0;
    if (!ragged)
      FI_TRY(setRule(manifest, stage, pool, view.tokenDim(), lengths.page));
    else if (view.indptr == none)
      FI_TRY(setRule(manifest, stage, pool, dim, lengths.tokens));
    SizeRule &rule = rules[size_t(a.indexInGroup) * maxRank + dim];
    int64_t needed = ragged ? lengths.tokens : lengths.maxPage + 1;
    rule.least = std::max(rule.least, needed);
    int64_t known = a.shape[dim] != unknownSize ? a.shape[dim] : rule.exact;
    if (known == unknownSize || known >= needed)
      continue;
    if (ragged)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected at most the %" PRId64
                  " keys of '%s', but its keys end at %" PRId64,
                  stage.name.c_str(),
                  manifest.arguments[view.indptr].name.c_str(), known,
                  a.name.c_str(), lengths.tokens);
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected page indices below %" PRId64
                ", the pages of '%s', but got %" PRId64,
                stage.name.c_str(), manifest.arguments[view.pages].name.c_str(),
                known, a.name.c_str(), lengths.maxPage);
  }
  return FI_OK;
}

fi_status PlanData::buildStages(const Manifest &manifest, const Workers &crew,
                                const PlanOptions &options) {
  for (size_t s = 0; s < manifest.stages.size(); ++s) {
    const Stage &stage = manifest.stages[s];
    if (stage.op == StageOp::Rows) {
      int64_t count = countRows(stage.rowsOf);
      for (const BufferRef &buffer : stage.buffers) {
        const Output *output = manifest.findOutput(buffer);
        if (output && countRows(output->rowsOf) != count)
          return fail(FI_INVALID_BATCH,
                      "%s: expected states and results of equal numbers of "
                      "rows, but got %" PRId64 " and, in '%s', %" PRId64,
                      stage.name.c_str(), count, output->name.c_str(),
                      countRows(output->rowsOf));
        // Destinations, [rows, heads] or [rows, heads, dim].
        if (!output && manifest.arguments[buffer.index].kind == FI_KIND_POOL &&
            manifest.arguments[buffer.index].shape.size() > 1)
          FI_TRY(setRule(manifest, stage, buffer.index, 0, count));
      }
      FI_TRY(builder.rows(stage, int32_t(s), count, crew, lists));
      continue;
    }
    const View &view = stage.view;
    ViewLengths &lengths = views[view.sharedTables];
    if (view.sharedTables == int32_t(s)) {
      int32_t pool = manifest.arguments[view.keys].indexInGroup;
      int64_t size = options.size(pool, view.tokenDim());
      bool ragged = view.kind == ViewKind::Ragged;
      int64_t declared =
          ragged ? manifest.arguments[view.keys].shape[view.tokenDim()]
                 : view.page;
      if (declared != unknownSize)
        size = declared;
      // Keys of one request without tables, with a row count for both.
      if (ragged && size == unknownSize)
        size = argumentRows[view.keys];
      FI_TRY(readView(stage, manifest, tables.data(), size, size, lengths));
    }
    if (lengths.requests != rows[s].requests)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected the %" PRId64
                  " requests of its view, but got %" PRId64
                  "; all tables of a stage describe the same requests",
                  stage.name.c_str(),
                  stage.rows == none
                      ? "rows"
                      : manifest.arguments[stage.rows].name.c_str(),
                  lengths.requests, rows[s].requests);
    FI_TRY(setPoolRules(manifest, stage, lengths));
    if (stage.op == StageOp::Append) {
      for (int32_t argument : stage.newTokens)
        FI_TRY(setRule(manifest, stage, argument, 0, argumentRows[argument]));
      FI_TRY(builder.append(stage, int32_t(s), rows[s], lengths, crew, lists));
      continue;
    }
    FI_TRY(setRule(manifest, stage, stage.query, 0, argumentRows[stage.query]));
    FI_TRY(setRule(manifest, stage, stage.query, 1, stage.queryHeads));
    for (int32_t out : stage.outs)
      if (out != none) {
        FI_TRY(setRule(manifest, stage, out, 0, argumentRows[stage.query]));
        FI_TRY(setRule(manifest, stage, out, 1, stage.queryHeads));
      }
    if (stage.outs[0] != none)
      FI_TRY(setRule(manifest, stage, stage.outs[0], 2, stage.voDim));
    if (stage.positions != none) {
      // Borrowed, they cannot be extended over the padding rows.
      int64_t end = options.borrowTables ? argumentRows[stage.query]
                                         : rows[s].begin[rows[s].requests];
      if (tables[stage.positions].shape[0] < end)
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': expected a position for each of %" PRId64
                    " rows, but got %" PRId64,
                    stage.name.c_str(),
                    manifest.arguments[stage.positions].name.c_str(), end,
                    tables[stage.positions].shape[0]);
    }
    bool overridden = options.split.policy != FI_SPLIT_DEFAULT;
    SplitPolicy policy = overridden ? options.split : stage.split;
    if (policy.policy == FI_SPLIT_FIXED && !stage.canSplit())
      return fail(FI_UNSUPPORTED,
                  "%s: fixed splits of %" PRId64
                  " keys: expected a stage that can be split, but the package "
                  "has no merge for it; plan it without splitting",
                  stage.name.c_str(), policy.keys);
    FI_TRY(builder.attention(stage, int32_t(s), manifest, tables.data(),
                             rows[s], lengths, argumentRows[stage.query], crew,
                             policy, overridden, lists));
  }
  // Sizes that were stated hold for every run value.
  for (size_t i = 0; i < manifest.runArguments.size(); ++i) {
    const Argument &a = manifest.arguments[manifest.runArguments[i]];
    for (size_t d = 0; d < a.shape.size(); ++d) {
      SizeRule &rule = rules[i * maxRank + d];
      if (rule.exact == unknownSize)
        rule.exact = a.shape[d];
    }
  }
  for (const auto *outputs : {&manifest.results, &manifest.temporaries})
    for (const Output &output : *outputs) {
      if (output.rowsOf.argument == none)
        continue;
      const Argument &a = manifest.arguments[output.rowsOf.argument];
      if (a.group == FI_GROUP_RUN && !a.shape.empty() &&
          rules[size_t(a.indexInGroup) * maxRank].exact == unknownSize)
        rules[size_t(a.indexInGroup) * maxRank].exact =
            countRows(output.rowsOf);
    }
  for (const Stage &stage : manifest.stages) {
    int32_t argument = stage.rowsOf.argument;
    if (stage.op == StageOp::Rows && argument != none &&
        manifest.arguments[argument].group == FI_GROUP_RUN)
      FI_TRY(setRule(manifest, stage, argument, 0, argumentRows[argument]));
  }
  return FI_OK;
}

/// Copies the plan tensors that kernels read, as far as they are needed:
/// engines pass tables with room for the longest batch.
void PlanData::keepTables(const Manifest &manifest, bool borrow) {
  kernelTables.resize(manifest.arguments.size());
  tableRows.assign(manifest.arguments.size(), 0);
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
          stage.op != StageOp::Rows && stage.view.pages == buffer.index;
      int64_t entries = table.shape[table.rank - 1];
      if (pages)
        entries = views[stage.view.sharedTables].tableEnd;
      else if (stage.op == StageOp::Attention &&
               stage.positions == buffer.index)
        // Kernels may read positions of padding rows before they ignore them.
        entries = std::max(entries, argumentRows[stage.query]);
      need(buffer.index, entries);
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
  // Work items count entries of a dense table from its first.
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
    if (launch.items)
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

fi_status PlanData::build(const Manifest &manifest, const Module *module,
                          const fi_value *values, const PlanOptions &options) {
  workers = options.workers;
  Workers crew = {workers, module, options.workersStated};
  views.resize(manifest.stages.size()); // sized once
  rows.resize(manifest.stages.size());
  lists.clear();
  rules.assign(manifest.runArguments.size() * maxRank, SizeRule());
  for (size_t i = 0; i < options.sizes.size(); ++i)
    rules[i].exact = options.sizes[i];
  FI_TRY(readArguments(manifest, values));
  FI_TRY(findRows(manifest, options));
  FI_TRY(buildStages(manifest, crew, options));
  keepTables(manifest, options.borrowTables);
  FI_TRY(layOut(manifest, module != nullptr));
  if (!module)
    return FI_OK;
  return onDevice.build(manifest, *module, *this, options.stream);
}

static fi_status checkValueCount(const Manifest &manifest,
                                 const fi_value *values, int32_t count) {
  if (size_t(count) == manifest.planArguments.size() && (values || !count))
    return FI_OK;
  return fail(FI_INVALID_ARGUMENT,
              "plan: expected %zu values, one for each plan argument of '%s', "
              "but got %d",
              manifest.planArguments.size(), manifest.program.c_str(),
              values ? count : 0);
}

/// Completes options: workers where they are not stated, and the device that
/// the plan is for.
static fi_status completeOptions(fi_plan &plan, PlanOptions &options) {
  const Manifest &manifest = plan.package->manifest;
  if (!options.device)
    options.device = plan.device;
  if (!options.device && manifest.onDevice())
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.device: expected a device, because package "
                "'%s' is compiled for %s, but got NULL; open one with "
                "fi_device_open",
                manifest.program.c_str(), manifest.chip.c_str());
  if (plan.module && options.device != plan.device)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.device: expected the device %d that the plan "
                "was made for, but got another; make another plan",
                plan.device->ordinal);
  if (!options.device) {
    if (options.stream)
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.stream: expected NULL for a plan for the cpu, "
                  "but got %p",
                  options.stream);
    if (!options.workers)
      options.workers = defaultWorkers();
    return FI_OK;
  }
  if (options.borrowTables)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.borrow_tables: expected 0 for a plan for a "
                "device, which copies the tables there, but got 1");
  if (!plan.module) {
    FI_TRY(loadPackage(*plan.package, *options.device, &plan.module));
    plan.device = options.device;
    retain(plan.device);
  }
  if (!options.workers)
    for (size_t s = 0; s < manifest.stages.size(); ++s)
      for (size_t b = 0; b < manifest.stages[s].bodies.size(); ++b)
        options.workers = std::max(options.workers, plan.module->workers(s, b));
  return FI_OK;
}

fi_status createPlan(fi_package *package, const fi_value *values,
                     int32_t valueCount, const fi_plan_options *options,
                     fi_plan **plan) {
  const Manifest &manifest = package->manifest;
  auto created = std::make_unique<fi_plan>(package);
  FI_TRY(checkValueCount(manifest, values, valueCount));
  FI_TRY(readOptions(manifest, options, created->options));
  FI_TRY(completeOptions(*created, created->options));
  FI_TRY(created->batches[0].build(manifest, created->module, values,
                                   created->options));
  // Threads are made here so that runs need not.
  if (!created->module)
    reserveWorkers(created->options.workers);
  created->generation = 1;
  *plan = created.release();
  return FI_OK;
}

fi_status updatePlan(fi_plan *plan, const fi_value *values, int32_t valueCount,
                     const fi_plan_options *options) {
  int32_t idle = 0;
  if (!plan->users.compare_exchange_strong(idle, -1, std::memory_order_acquire))
    return fail(FI_BUSY,
                "plan: expected no run in progress, but %s; update it when its "
                "runs have returned",
                idle < 0 ? "another thread updates it" : "it is being run");
  struct Unlock {
    fi_plan *plan;
    ~Unlock() { plan->users.store(0, std::memory_order_release); }
  } unlock{plan};
  const Manifest &manifest = plan->package->manifest;
  FI_TRY(checkValueCount(manifest, values, valueCount));
  PlanOptions changed;
  if (options) {
    FI_TRY(readOptions(manifest, options, changed));
    FI_TRY(completeOptions(*plan, changed));
  }
  int next = 1 - plan->current;
  FI_TRY(plan->batches[next].build(manifest, plan->module, values,
                                   options ? changed : plan->options));
  if (options) {
    if (!plan->module)
      reserveWorkers(changed.workers);
    std::swap(plan->options, changed);
  }
  plan->current = next;
  plan->generation.fetch_add(1, std::memory_order_release);
  return FI_OK;
}

} // namespace fi::runtime

fi_plan::~fi_plan() {
  for (fi::runtime::PlanData &batch : batches)
    batch.onDevice.release();
  fi::runtime::release(package); // with its modules
  fi::runtime::release(device);
}
