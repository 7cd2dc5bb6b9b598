//===- Plan.cpp - Planning a batch ----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks options and plan values and has the work lists made stage by stage.
// Nothing is allocated when an earlier batch was as large.
//
//===----------------------------------------------------------------------===//
#include "Plan.h"
#include "../Launch/Fault.h"
#include "../Launch/ThreadPool.h"
#include "../Support/Error.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

constexpr int32_t maxWorkers = 1024, maxDeviceWorkers = 1 << 16;

fi_status readCapacities(const fi_plan_options &o, PlanOptions &options) {
  const struct {
    const char *name;
    int64_t value, *to;
  } stated[] = {
      {"max_requests", o.max_requests, &options.maxRequests},
      {"max_request_rows", o.max_request_rows, &options.maxRequestRows},
      {"max_pages", o.max_pages, &options.maxPages}};
  options.graphSafe = o.graph_safe != 0;
  options.checked = o.checked != 0;
  options.profileBytes = o.profile_bytes;
  if (o.profile_bytes < 0)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.profile_bytes: expected 0 (256 MiB) or the most "
                "bytes of logs of time stamps, but got %" PRId64,
                o.profile_bytes);
  for (const auto &one : stated) {
    if (one.value < 0 || one.value > INT64_C(1) << 40)
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.%s: expected 0 (as the first batch) to 2^40, "
                  "but got %" PRId64,
                  one.name, one.value);
    if (one.value && !options.graphSafe)
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.%s: expected 0 for a plan that is not "
                  "graph-safe, but got %" PRId64 "; set graph_safe, too",
                  one.name, one.value);
    *one.to = one.value;
  }
  if (options.graphSafe && o.borrow_tables)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.borrow_tables: expected 0 for a graph-safe "
                "plan, whose tables keep their place, but got 1");
  return FI_OK;
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
  FI_TRY(readCapacities(o, options));
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
  for (auto [pool, table, maxPage] : poolsOf(view, lengths)) {
    if (pool == none)
      continue;
    const Argument &a = manifest.arguments[pool];
    if (view.hasHeads)
      FI_TRY(setRule(manifest, stage, pool, view.headDim(), view.heads));
    if (view.fused)
      FI_TRY(setRule(manifest, stage, pool, 1, 2));
    int32_t dim = ragged ? view.tokenDim() : 0;
    if (!ragged)
      FI_TRY(setRule(manifest, stage, pool, view.tokenDim(), lengths.page));
    else if (view.indptr == none)
      FI_TRY(setRule(manifest, stage, pool, dim, lengths.tokens));
    SizeRule &rule = rules[size_t(a.indexInGroup) * maxRank + dim];
    int64_t needed = ragged ? lengths.tokens : maxPage + 1;
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
                stage.name.c_str(), manifest.arguments[table].name.c_str(),
                known, a.name.c_str(), maxPage);
  }
  return setScaleRules(manifest, stage, lengths);
}

/// Scales cover what the tables reach, like the pools that they go with.
fi_status PlanData::setScaleRules(const Manifest &manifest, const Stage &stage,
                                  const ViewLengths &lengths) {
  const View &view = stage.view;
  bool ragged = view.kind == ViewKind::Ragged;
  for (const View::Scales &scales : view.scales) {
    // Dimensions of a pool without that of a fused one's parts.
    int32_t token = view.tokenDim() - (view.fused ? 1 : 0);
    int32_t head = view.headDim() - (view.fused ? 1 : 0);
    if (view.hasHeads || !scales.perToken)
      FI_TRY(setRule(manifest, stage, scales.argument,
                     scales.perToken ? head : 1, view.heads));
    if (!ragged && scales.perToken)
      FI_TRY(setRule(manifest, stage, scales.argument, token, lengths.page));
    const Argument &a = manifest.arguments[scales.argument];
    int32_t dim = ragged ? token : 0;
    int64_t maxPage = scales.ofValues && view.valuePages != none
                          ? lengths.maxValuePage
                          : lengths.maxPage;
    int64_t needed = ragged ? lengths.tokens : maxPage + 1;
    SizeRule &rule = rules[size_t(a.indexInGroup) * maxRank + dim];
    rule.least = std::max(rule.least, needed);
    if (a.shape[dim] != unknownSize && a.shape[dim] < needed)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected scales of at least %" PRId64
                  " %s, which the tables reach, but got %" PRId64,
                  stage.name.c_str(), a.name.c_str(), needed,
                  ragged ? "tokens" : "pages", a.shape[dim]);
  }
  return FI_OK;
}

fi_status PlanData::buildStages(const Manifest &manifest, const Workers &crew,
                                const PlanOptions &options,
                                Capacities *capacities) {
  builder.setCapacity(nullptr);
  for (size_t s = 0; s < manifest.stages.size(); ++s) {
    const Stage &stage = manifest.stages[s];
    if (stage.op == StageOp::Rows) {
      int64_t count = countRows(stage.rowsOf);
      for (const BufferRef &buffer : stage.buffers) {
        const Output *output = manifest.findOutput(buffer);
        if (output && !stage.readsWhole(buffer) &&
            countRows(output->rowsOf) != count)
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
      for (int32_t argument : stage.withRows) {
        const Argument &a = manifest.arguments[argument];
        if (a.group == FI_GROUP_RUN)
          FI_TRY(setRule(manifest, stage, argument, 0, count));
        else if (tables[argument].shape[0] < count)
          return fail(FI_INVALID_BATCH,
                      "%s: operand '%s': expected at least %" PRId64
                      " rows, but got %" PRId64,
                      stage.name.c_str(), a.name.c_str(), count,
                      tables[argument].shape[0]);
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
    bool overridden = options.split.policy != FI_SPLIT_DEFAULT;
    SplitPolicy policy = overridden ? options.split : stage.split;
    if (capacities && view.blockRows)
      return fail(FI_UNSUPPORTED,
                  "%s: operand '%s': block-sparse views have no graph-safe "
                  "plans yet; plan each batch",
                  stage.name.c_str(),
                  manifest.arguments[view.rowIndptr].name.c_str());
    if (view.valuePages != none && options.borrowTables &&
        view.kind == ViewKind::Dense &&
        tables[view.valuePages].strides[0] != tables[view.pages].strides[0])
      return fail(
          FI_INVALID_BATCH,
          "%s: operand '%s': expected rows as far apart as those of "
          "'%s' where tables are borrowed, but got strides %" PRId64
          " and %" PRId64,
          stage.name.c_str(), manifest.arguments[view.valuePages].name.c_str(),
          manifest.arguments[view.pages].name.c_str(),
          tables[view.valuePages].strides[0], tables[view.pages].strides[0]);
    if (capacities) {
      const SizeRule &pool =
          rules[size_t(manifest.arguments[view.keys].indexInGroup) * maxRank +
                view.tokenDim()];
      int32_t rowArgument =
          stage.op == StageOp::Attention ? stage.query : stage.newTokens[0];
      FI_TRY(capacities->admit(manifest, s, tables.data(), rows[s], lengths,
                               argumentRows[rowArgument], pool.exact, crew,
                               policy));
      builder.setCapacity(&capacities->of(s));
    }
    if (stage.op == StageOp::Append) {
      for (int32_t argument : stage.newTokens)
        FI_TRY(setRule(manifest, stage, argument, 0, argumentRows[argument]));
      FI_TRY(builder.append(stage, int32_t(s), rows[s], lengths, crew, lists));
      continue;
    }
    FI_TRY(setRule(manifest, stage, stage.query, 0, argumentRows[stage.query]));
    if (!stage.queryIsComputed)
      FI_TRY(setRule(manifest, stage, stage.query, 1, stage.queryHeads));
    if (stage.queryTail != none) {
      FI_TRY(setRule(manifest, stage, stage.queryTail, 0,
                     argumentRows[stage.query]));
      FI_TRY(setRule(manifest, stage, stage.queryTail, 1, stage.queryHeads));
    }
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
      FI_TRY(checkPositions(stage, manifest, tables.data(), end));
    }
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

/// Launches of a graph may be with smaller pools than this batch reaches.
fi_status PlanData::checkSeen(const Manifest &manifest,
                              const GraphPlan &graph) const {
  for (size_t i = 0; i < manifest.runArguments.size(); ++i)
    for (int32_t d = 0; d < maxRank; ++d) {
      int64_t least = rules[i * maxRank + d].least;
      int64_t seen =
          graph.smallest[i * maxRank + d].load(std::memory_order_relaxed);
      if (least > seen)
        return fail(FI_INVALID_BATCH,
                    "plan: operand '%s': expected tables that reach at most "
                    "the %" PRId64 " in dimension %d that the graph-safe plan "
                    "was run with, as a graph may hold that run, but they "
                    "reach %" PRId64,
                    manifest.arguments[manifest.runArguments[i]].name.c_str(),
                    seen, d, least);
    }
  return FI_OK;
}

fi_status PlanData::build(const Manifest &manifest, const Module *module,
                          const fi_value *values, const PlanOptions &options,
                          GraphPlan *graph) {
  workers = options.workers;
  profileBytes = options.profileBytes;
  capacities = graph ? &graph->capacities : nullptr;
  Workers crew = {workers, module, options.workersStated};
  views.resize(manifest.stages.size()); // sized once
  rows.resize(manifest.stages.size());
  lists.clear();
  rules.assign(manifest.runArguments.size() * maxRank, SizeRule());
  for (size_t i = 0; i < options.sizes.size(); ++i)
    rules[i].exact = options.sizes[i];
  FI_TRY(readArguments(manifest, values));
  FI_TRY(findRows(manifest, options));
  FI_TRY(buildStages(manifest, crew, options,
                     graph ? &graph->capacities : nullptr));
  FI_TRY(keepTables(manifest, options.borrowTables,
                    graph ? &graph->capacities : nullptr));
  FI_TRY(layOut(manifest, module != nullptr));
  if (graph)
    FI_TRY(checkSeen(manifest, *graph));
  if (!module)
    return FI_OK;
  return onDevice.build(manifest, *module, *this, options.stream,
                        graph ? &graph->memory : nullptr);
}

/// Options of an update of a graph-safe plan: what they say again must be what
/// the plan was made with, and the rest stays.
static fi_status keepGraphOptions(const fi_plan &plan, PlanOptions &changed) {
  const PlanOptions &kept = plan.options;
  if (changed.graphSafe != kept.graphSafe)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.graph_safe: expected %d, which the plan was "
                "made with, but got %d; make another plan",
                kept.graphSafe, changed.graphSafe);
  if (!kept.graphSafe)
    return FI_OK;
  const struct {
    const char *name;
    int64_t was, now;
    bool stated;
  } all[] = {
      {"max_requests", kept.maxRequests, changed.maxRequests,
       changed.maxRequests != 0},
      {"max_request_rows", kept.maxRequestRows, changed.maxRequestRows,
       changed.maxRequestRows != 0},
      {"max_pages", kept.maxPages, changed.maxPages, changed.maxPages != 0},
      {"rows", kept.rows, changed.rows, changed.rows != 0},
      {"split_policy", kept.split.policy, changed.split.policy,
       changed.split.policy != FI_SPLIT_DEFAULT},
      {"split_keys", kept.split.keys, changed.split.keys,
       changed.split.policy == FI_SPLIT_FIXED},
      {"workers", kept.workers, changed.workers, changed.workersStated}};
  for (const auto &one : all)
    if (one.stated && one.was != one.now)
      return fail(FI_INVALID_ARGUMENT,
                  "plan: options.%s: expected 0 or %" PRId64
                  ", with which the graph-safe plan was made, but got %" PRId64
                  "; make another plan",
                  one.name, one.was, one.now);
  const Manifest &manifest = plan.package->manifest;
  for (size_t i = 0; i < changed.sizes.size(); ++i)
    if (changed.sizes[i] != unknownSize && kept.sizes[i] != unknownSize &&
        changed.sizes[i] != kept.sizes[i])
      return fail(
          FI_INVALID_ARGUMENT,
          "plan: options.run_shapes: operand '%s': expected size %" PRId64
          " in dimension %zu, with which the graph-safe plan was made, but "
          "got %" PRId64 "; make another plan",
          manifest.arguments[manifest.runArguments[i / maxRank]].name.c_str(),
          kept.sizes[i], i % maxRank, changed.sizes[i]);
  void *stream = changed.stream;
  bool checked = changed.checked;
  changed = kept;
  changed.stream = stream;
  changed.checked = checked;
  return FI_OK;
}

/// Sizes that the first batch had hold for all that follow.
static void freezeSizes(PlanOptions &options, const PlanData &data) {
  options.sizes.resize(data.rules.size(), unknownSize);
  for (size_t i = 0; i < data.rules.size(); ++i)
    if (data.rules[i].exact != unknownSize)
      options.sizes[i] = data.rules[i].exact;
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
  if (!package->variants.empty()) {
    PlanOptions stated;
    FI_TRY(readOptions(package->manifest, options, stated));
    FI_TRY(chooseVariant(*package, stated.device, &package));
  }
  const Manifest &manifest = package->manifest;
  auto created = std::make_unique<fi_plan>(package);
  FI_TRY(checkValueCount(manifest, values, valueCount));
  FI_TRY(readOptions(manifest, options, created->options));
  PlanOptions &made = created->options;
  FI_TRY(completeOptions(*created, made));
  if (made.graphSafe) {
    if (made.device)
      FI_TRY(checkGraphKernels(manifest));
    created->graph = std::make_unique<GraphPlan>(manifest);
    created->graph->capacities.statedRequests = made.maxRequests;
    created->graph->capacities.statedRequestRows = made.maxRequestRows;
    created->graph->capacities.statedPages = made.maxPages;
  }
  FI_TRY(created->batches[0].build(manifest, created->module, values, made,
                                   created->graph.get()));
  if (made.graphSafe) {
    created->graph->capacities.settle();
    freezeSizes(made, created->data());
  }
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
  if (plan->device)
    FI_TRY(checkFaults(*plan));
  PlanOptions changed;
  if (options) {
    FI_TRY(readOptions(manifest, options, changed));
    FI_TRY(completeOptions(*plan, changed));
    FI_TRY(keepGraphOptions(*plan, changed));
  }
  int next = 1 - plan->current;
  FI_TRY(plan->batches[next].build(manifest, plan->module, values,
                                   options ? changed : plan->options,
                                   plan->graph.get()));
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
  if (graph && device)
    graph->memory.release(*device);
  fi::runtime::release(package); // with its modules
  fi::runtime::release(device);
}
