//===- Program.cpp - random programs of level 1 ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops around attentions, and the frame of a program.
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Program.h"
#include "Draft.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace fi;
using namespace fi::fuzz;

//===----------------------------------------------------------------------===//
// Frame
//===----------------------------------------------------------------------===//

std::string Draft::plan(const std::string &name, const std::string &type,
                        llvm::json::Value value) {
  if (!values.get(name)) {
    planArguments.push_back({name, type});
    values[name] = std::move(value);
  }
  return "%" + name;
}

std::string Draft::run(const std::string &name, const std::string &type,
                       llvm::json::Value value) {
  if (!values.get(name)) {
    runArguments.push_back({name, type});
    values[name] = std::move(value);
  }
  return "%" + name;
}

std::string Draft::typeOf(const std::string &value) const {
  for (const auto &arguments : {planArguments, runArguments})
    for (const Argument &argument : arguments)
      if ("%" + argument.name == value)
        return argument.type;
  return "";
}

RandomProgram Draft::finish() {
  std::string text = "module";
  if (!target.empty())
    text += " attributes {fi.target = " + target + "}";
  text += " {\n  fi.program @p";
  auto list = [](llvm::ArrayRef<Argument> arguments) {
    std::string joined;
    for (const Argument &argument : arguments)
      joined +=
          (joined.empty() ? "%" : ", %") + argument.name + ": " + argument.type;
    return joined;
  };
  if (!planArguments.empty())
    text += " plan(" + list(planArguments) + ")";
  text += "\n      run(" + list(runArguments) + ")";
  std::string names, types;
  for (auto &[name, type] : results) {
    names += (names.empty() ? "" : ", ") + name;
    types += (types.empty() ? "" : ", ") + type;
  }
  if (!results.empty())
    text += " -> (" + types + ")";
  text += " {\n" + body + "  fi.return";
  if (!results.empty())
    text += " " + names + " : " + types;
  made.text = text + "\n  }\n}\n";

  // A line for each request and each argument.
  llvm::raw_string_ostream os(made.batch);
  os << "{\n  \"requests\": [";
  for (auto [i, request] : llvm::enumerate(requests))
    os << (i ? ",\n    " : "\n    ") << "{\"q_len\": " << request.first
       << ", \"kv_len\": " << request.second << "}";
  os << "],\n  \"arguments\": {";
  llvm::StringRef separator = "\n";
  for (llvm::ArrayRef<Argument> arguments : {planArguments, runArguments})
    for (const Argument &argument : arguments) {
      os << separator << "    \"" << argument.name
         << "\": " << *values.get(argument.name);
      separator = ",\n";
    }
  os << "}\n}\n";
  return std::move(made);
}

//===----------------------------------------------------------------------===//
// Facts and rows
//===----------------------------------------------------------------------===//

static void drawTypes(Draft &draft) {
  static const char *const elements[] = {"f32", "bf16", "bf16", "f16"};
  static const int64_t dims[] = {8, 16, 16, 24, 40, 64};
  static const int64_t groups[] = {1, 2, 3, 4, 7};
  draft.indexType = draft.flag("index") ? "i64" : "i32";
  draft.kvHeads = 1 + draft.choose("kv.heads", 2);
  draft.group = draft.pick("group", groups);
  draft.keyDim = draft.pick("k.dim", dims);
  draft.valueDim =
      draft.flag("v.dim.differs", 3) ? draft.pick("v.dim", dims) : draft.keyDim;
  draft.queryElement = draft.pick("q.element", elements);
  draft.outputElement = draft.flag("o.element.differs", 3)
                            ? draft.pick("o.element", elements)
                            : draft.queryElement;
  if (draft.family == Family::CPU) {
    static const char *const targets[] = {"",
                                          "#fi.target<cpu, vector_bits = 128>",
                                          "#fi.target<cpu, vector_bits = 256>"};
    draft.target = targets[draft.rarely("target", 5, 3)];
  }
}

/// The requests' rows, between rows of no request.
static RowsDraft drawRows(Draft &draft, bool canLackIndptr) {
  RowsDraft rows;
  int64_t begin = draft.rarely("rows.begin", 5, 3);
  rows.offsets = {begin};
  for (auto [queries, keys] : draft.requests)
    rows.offsets.push_back(rows.offsets.back() + queries);
  draft.rows = rows.offsets.back() + draft.rarely("rows.more", 4, 4);
  if (canLackIndptr && draft.requests.size() == 1 && begin == 0 &&
      draft.rows == rows.offsets.back() && draft.flag("rows.none"))
    return rows;
  std::string type =
      draft.flag("rows.index", 4)
          ? (draft.indexType == "i32" ? "tensor<?xi64>" : "tensor<?xi32>")
          : draft.indexTensor();
  rows.value = draft.plan("qo", type, toJson(rows.offsets)) + " : " + type;
  return rows;
}

static std::vector<int64_t> keysOf(const Draft &draft) {
  std::vector<int64_t> lengths;
  for (auto [queries, keys] : draft.requests)
    lengths.push_back(keys);
  return lengths;
}

static std::string addQuery(Draft &draft, bool isPlace) {
  return draft.run(
      "q", draft.rowsType(draft.keyDim, draft.queryElement, isPlace),
      drawQueries(draft, "q", {draft.rows, draft.heads(), draft.keyDim}));
}

/// An op with an output and maybe a statistic, by its text and the type of what
/// it takes. Both are results of the program.
static void addOutputs(Draft &draft, const std::string &op,
                       const std::string &from, bool hasStatistic) {
  std::string output = draft.fresh("o"), statistic = draft.fresh("lse");
  std::string type = draft.rowsType(draft.valueDim, draft.outputElement);
  std::string types = type;
  if (hasStatistic)
    types += ", " + draft.statisticType();
  draft.add(output + (hasStatistic ? ", " + statistic : "") + " = " + op +
            " : " + from + " -> " + types);
  draft.result(output, type);
  if (hasStatistic)
    draft.result(statistic, draft.statisticType());
}

static std::string stateType(Draft &draft, const std::string &normaliser,
                             bool isSegmented = false) {
  return "!fi.state<?x" + std::to_string(draft.heads()) + "x" +
         std::to_string(draft.valueDim) + "xf32, " + normaliser +
         (isSegmented ? ", segmented>" : ">");
}

static void addFinalize(Draft &draft, const std::string &state,
                        const std::string &type) {
  addOutputs(draft, "fi.finalize " + state + " " + drawSink(draft), type,
             !draft.flag("no.statistic", 4));
}

/// One request with all rows and keys of its own, which all requests share.
static RowsDraft sharedRows(Draft &draft) {
  RowsDraft rows;
  rows.offsets = {0, draft.rows};
  rows.value = draft.plan("all", draft.indexTensor(), toJson(rows.offsets)) +
               " : " + draft.indexTensor();
  return rows;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// One attention, with results, destinations or a state that is finalised.
static void makePlain(Draft &draft) {
  std::string normaliser = drawNormaliser(draft);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/true);
  // Blocks of rows are counted by the plan: there is an indptr.
  std::vector<int64_t> queries;
  if (!rows.value.empty())
    for (auto [count, keys] : draft.requests)
      queries.push_back(count);
  ViewDraft view = drawView(draft, {false, keysOf(draft), {}, queries});
  AttentionOptions options;
  options.rows = rows;
  options.normaliser = normaliser;
  int64_t ends = draft.rarely("ends", 3, 4);
  bool isPlace = ends == 1;
  options.query = addQuery(draft, isPlace);
  options.queryType = draft.rowsType(draft.keyDim, draft.queryElement, isPlace);
  std::string over = options.queryType + " over " + view.type;
  bool hasStatistic = !draft.flag("no.statistic", 4);
  std::string type = draft.rowsType(draft.valueDim, draft.outputElement);
  std::string statistic = draft.statisticType();
  std::vector<int64_t> shape = {draft.rows, draft.heads(), draft.valueDim};
  std::vector<int64_t> flat = {draft.rows, draft.heads()};
  if (ends == 3) {
    options.hasSinks = false;
    std::string state = draft.fresh("s"), made = stateType(draft, normaliser);
    draft.add(state + " = " + drawAttention(draft, view, options) + ": " +
              over + " -> " + made);
    return addFinalize(draft, state, made);
  }
  if (ends == 1) {
    type = draft.rowsType(draft.valueDim, draft.outputElement, true);
    statistic = draft.statisticType(true);
  }
  if (ends == 1 || ends == 2) {
    std::string places = draft.run("out", type, normal(1, shape)), types = type;
    if (hasStatistic) {
      places += ", " + draft.run("stat", statistic, normal(1, flat));
      types += ", " + statistic;
    }
    options.outs = "outs(" + places + " : " + types + ") ";
  }
  std::string op = drawAttention(draft, view, options);
  if (ends == 1)
    return draft.add(op + ": " + over);
  addOutputs(draft, op, over, hasStatistic);
}

/// Queries of latents and tails, in one operand or two.
static void makeLatents(Draft &draft) {
  static const int64_t latents[] = {16, 32, 64, 128};
  static const int64_t tails[] = {16, 8, 32};
  int64_t tail = draft.pick("latent.tail", tails);
  draft.kvHeads = 1;
  draft.valueDim = draft.pick("latent.dim", latents);
  draft.keyDim = draft.valueDim + tail;
  std::string normaliser = drawNormaliser(draft);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/true);
  ViewDraft view = drawView(draft, {false, keysOf(draft), {}, {}, tail});
  AttentionOptions options;
  options.rows = rows;
  options.normaliser = normaliser;
  options.hasTransforms = false;
  if (draft.flag("latent.split")) {
    options.query = draft.run(
        "qn", draft.rowsType(draft.valueDim, draft.queryElement),
        drawQueries(draft, "q", {draft.rows, draft.heads(), draft.valueDim}));
    options.query +=
        ", " +
        draft.run("qr", draft.rowsType(tail, draft.queryElement),
                  drawQueries(draft, "qr", {draft.rows, draft.heads(), tail}));
    options.queryType = draft.rowsType(draft.valueDim, draft.queryElement) +
                        ", " + draft.rowsType(tail, draft.queryElement);
  } else {
    options.query = addQuery(draft, false);
    options.queryType = draft.rowsType(draft.keyDim, draft.queryElement);
  }
  addOutputs(draft, drawAttention(draft, view, options),
             options.queryType + " over " + view.type,
             !draft.flag("no.statistic", 4));
}

/// States over disjoint keys, merged.
static void makeMerge(Draft &draft) {
  std::string normaliser = drawNormaliser(draft);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/false);
  std::string query = addQuery(draft, false);
  std::string type = stateType(draft, normaliser);
  int64_t count = 2 + draft.choose("merged", 2);
  std::vector<std::string> states;
  std::vector<int64_t> lengths = keysOf(draft);
  std::vector<int64_t> origins;
  bool isShared = draft.flag("shared");
  static const int64_t prefixes[] = {1, 0, 16, 40};
  for (int64_t i = 0; i < count; ++i) {
    draft.scope = "a" + std::to_string(i) + ".";
    AttentionOptions options;
    options.query = query;
    options.queryType = draft.rowsType(draft.keyDim, draft.queryElement);
    options.hasSinks = false;
    options.normaliser = normaliser;
    options.rows = rows;
    ViewOptions view{false, lengths, {}, {}};
    if (isShared && i == 0) {
      // A prefix of all requests, behind which their own keys begin.
      options.rows = sharedRows(draft);
      view.lengths = {draft.pick("prefix", prefixes)};
      view.origins = {0};
      origins.assign(lengths.size(), view.lengths[0]);
    } else if (i == 1 && !origins.empty()) {
      view.origins = origins;
    }
    ViewDraft made = drawView(draft, view);
    std::string state = draft.fresh("s");
    draft.add(state + " = " + drawAttention(draft, made, options) + ": " +
              options.queryType + " over " + made.type + " -> " + type);
    states.push_back(state);
  }
  draft.scope = "";
  if (draft.flag("empty", 3)) {
    std::string zero = draft.fresh("zero"), size = draft.fresh("n"),
                none = draft.fresh("s");
    draft.add(zero + " = arith.constant 0 : index");
    draft.add(size + " = tensor.dim " + query + ", " + zero + " : " +
              draft.rowsType(draft.keyDim, draft.queryElement));
    draft.add(none + " = fi.empty rows(" + size + ") : " + type);
    states.insert(states.begin() + draft.choose("empty.at", states.size() + 1),
                  none);
  }
  // In one op, or two by two.
  std::string merged = draft.fresh("m");
  if (draft.flag("merge.pairs")) {
    merged = states[0];
    for (size_t i = 1; i < states.size(); ++i) {
      std::string next = draft.fresh("m");
      draft.add(next + " = fi.merge " + merged + ", " + states[i] + " : " +
                type);
      merged = next;
    }
  } else {
    draft.add(merged + " = fi.merge " + llvm::join(states, ", ") + " : " +
              type);
  }
  addFinalize(draft, merged, type);
}

/// A cut that the program states.
static void makeSegments(Draft &draft) {
  static const char *const splits[] = {
      "#fi.split<fixed = 16>", "#fi.split<balanced>", "#fi.split<fixed = 1>",
      "#fi.split<fixed = 50>"};
  std::string normaliser = drawNormaliser(draft);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/false);
  ViewDraft view = drawView(draft, {false, keysOf(draft), {}, {}});
  AttentionOptions options;
  options.rows = rows;
  options.normaliser = normaliser;
  options.hasSinks = options.hasSplit = false;
  options.query = addQuery(draft, false);
  options.queryType = draft.rowsType(draft.keyDim, draft.queryElement);
  std::string cut = draft.fresh("g"), parts = draft.fresh("p"),
              state = draft.fresh("s");
  std::string type = stateType(draft, normaliser),
              segmented = stateType(draft, normaliser, true);
  draft.add(cut + " = fi.segments " +
            (rows.value.empty() ? "" : "rows(" + rows.value + ") ") + "over " +
            view.value + " split(" + draft.pick("segments", splits) +
            ") : " + view.type);
  options.segments = "segments(" + cut + ") ";
  draft.add(parts + " = " + drawAttention(draft, view, options) + ": " +
            options.queryType + " over " + view.type + " -> " + segmented);
  draft.add(state + " = fi.merge_segments " + parts + " by " + cut + " : " +
            segmented + " -> " + type);
  addFinalize(draft, state, type);
}

/// New keys, which the attention behind sees.
static void makeAppend(Draft &draft) {
  static const char *const elements[] = {"f32", "bf16", "f16"};
  std::string normaliser = drawNormaliser(draft);
  // No more new tokens than keys.
  for (auto &[queries, keys] : draft.requests)
    keys = std::max(keys, queries);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/false);
  ViewDraft view = drawView(draft, {true, keysOf(draft), {}, {}});
  auto fresh = [&](const char *name, int64_t dim, const std::string &like) {
    std::string element =
        draft.flag(std::string(name) + ".differs", 3)
            ? draft.pick(std::string(name) + ".element", elements)
            : like;
    std::string type = "tensor<?x" + std::to_string(draft.kvHeads) + "x" +
                       std::to_string(dim) + "x" + element + ">";
    draft.run(name, type, normal(1, {draft.rows, draft.kvHeads, dim}));
    return type;
  };
  std::string keys = fresh("nk", draft.keyDim, view.newKeys),
              values = fresh("nv", draft.valueDim, view.newValues);
  draft.add("fi.append %nk, %nv rows(" + rows.value + ") to " + view.value +
            " : " + keys + ", " + values + " to " + view.type);
  if (draft.flag("append.only", 5))
    return;
  AttentionOptions options;
  options.rows = rows;
  options.normaliser = normaliser;
  options.query = addQuery(draft, false);
  options.queryType = draft.rowsType(draft.keyDim, draft.queryElement);
  addOutputs(draft, drawAttention(draft, view, options),
             options.queryType + " over " + view.type,
             !draft.flag("no.statistic", 4));
}

/// Two attentions with regions of their own over one view.
static void makeTwo(Draft &draft) {
  std::string normaliser = drawNormaliser(draft);
  RowsDraft rows = drawRows(draft, /*canLackIndptr=*/false);
  ViewDraft view = drawView(draft, {false, keysOf(draft), {}, {}});
  std::string query = addQuery(draft, false);
  for (const char *scope : {"a0.", "a1."}) {
    draft.scope = scope;
    AttentionOptions options;
    options.rows = rows;
    options.normaliser = normaliser;
    options.query = query;
    options.queryType = draft.rowsType(draft.keyDim, draft.queryElement);
    addOutputs(draft, drawAttention(draft, view, options),
               options.queryType + " over " + view.type,
               !draft.flag("no.statistic", 4));
  }
  draft.scope = "";
}

/// A norm of rows, alone: of hidden states too, of sums, to codes.
static void makeNorm(Draft &draft) {
  static const char *const elements[] = {"f32", "bf16", "f16"};
  static const char *const epsilons[] = {"1.0e-6", "0.5", "1.0e-5"};
  static const char *const storages[] = {"f8E4M3FN", "f8E5M2", "i8"};
  static const int64_t rows[] = {1, 0, 3, 17, 64, 70};
  static const int64_t dims[] = {520, 1032, 2048, 3000};
  draft.rows = draft.pick("norm.rows", rows);
  if (draft.flag("norm.long", 4)) {
    draft.keyDim = draft.pick("norm.dim", dims);
    draft.kvHeads = draft.group = 1;
  }
  int64_t dim = draft.keyDim;
  bool isLayer = draft.flag("norm.layer", 3);
  std::string input = draft.rowsType(dim, draft.queryElement);
  std::string op = (isLayer ? "fi.layer_norm " : "fi.rms_norm ") +
                   addQuery(draft, false) + " ";
  auto columns = [&](const std::string &clause, const std::string &name) {
    std::string type = "tensor<" + std::to_string(dim) + "x" +
                       draft.pick("norm." + clause, elements) + ">";
    op += clause + "(" + draft.run(name, type, normal(1, {})) + " : " + type +
          ") ";
  };
  std::string result = draft.fresh("y"), sum, sumType;
  if (draft.flag("norm.add", 3)) {
    std::string type = draft.rowsType(dim, draft.pick("norm.addend", elements));
    op += "add(" +
          draft.run("r", type, normal(1, {draft.rows, draft.heads(), dim})) +
          " : " + type + ") ";
    sum = draft.fresh("sum");
    sumType = draft.rowsType(dim, draft.pick("norm.sum", elements));
  }
  if (!draft.flag("norm.plain", 4)) {
    columns("weight", "w");
    if (!isLayer && draft.flag("norm.plus_one", 3))
      op += "plus_one ";
  }
  if (isLayer && draft.flag("norm.bias"))
    columns("bias", "b");
  op += std::string("eps(") + draft.pick("norm.eps", epsilons) + ") ";
  std::string output = draft.rowsType(dim, draft.outputElement);
  std::string found, foundType;
  if (draft.flag("norm.codes", 4)) {
    std::string storage = draft.pick("norm.storage", storages);
    if (draft.flag("norm.codes.found", 3)) {
      found = draft.fresh("t");
      foundType = draft.statisticType();
    }
    std::string scales = "tensor<" + std::to_string(draft.heads()) + "xf32>";
    output = draft.rowsType(dim, storage);
    op += "to(!fi.scaled<" + storage +
          ", per = " + (found.empty() ? "head" : "token") + ", by = f32>) ";
    if (found.empty())
      op +=
          "scales(" +
          draft.run("s", scales,
                    llvm::json::Object{
                        {"random", "uniform"}, {"low", 0.01}, {"high", 0.1}}) +
          " : " + scales + ") ";
  }
  std::string names = result, types = output;
  draft.result(result, output);
  for (auto &[name, type] :
       {std::pair(sum, sumType), std::pair(found, foundType)}) {
    if (name.empty())
      continue;
    names += ", " + name;
    types += ", " + type;
    draft.result(name, type);
  }
  draft.add(names + " = " + op + ": " + input + " -> " + types);
}

static void drawPlans(Draft &draft) {
  static const char *const splits[] = {
      "", "none", "balanced", "fixed:1", "fixed:20", "fixed:64", "fixed:100"};
  int64_t count = 1 + draft.choose("plan.count", 2);
  for (int64_t i = 0; i < count; ++i) {
    std::string name = "plan[" + std::to_string(i) + "].";
    PlanChoice plan;
    plan.workers = 1 + static_cast<int>(draft.choose(name + "workers", 8));
    plan.split = draft.pick(name + "split", splits);
    draft.made.plans.push_back(plan);
  }
  draft.made.optLevel = draft.flag("optimised", 16) ? 2 : 0;
  draft.made.verifyEach = draft.flag("verified", 16);
}

RandomProgram fi::fuzz::makeProgram(Choices &choices, Family family) {
  Draft draft(choices, family);
  int64_t kind = draft.rarely("program", 3, 6);
  drawTypes(draft);
  drawRequests(draft);
  if (draft.flag("latent", 10)) {
    makeLatents(draft);
    drawPlans(draft);
    return draft.finish();
  }
  if (int64_t rows = draft.rarely("rows", 8, kRowsKinds + 1)) {
    makeRows(draft, rows);
    drawPlans(draft);
    return draft.finish();
  }
  switch (kind) {
  case 1:
    makeMerge(draft);
    break;
  case 2:
    makeSegments(draft);
    break;
  case 3:
    makeAppend(draft);
    break;
  case 4:
    makeTwo(draft);
    break;
  case 5:
    makeNorm(draft);
    break;
  default:
    makePlain(draft);
  }
  drawPlans(draft);
  return draft.finish();
}
