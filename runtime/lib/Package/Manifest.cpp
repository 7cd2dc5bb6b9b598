//===- Manifest.cpp - Reading a manifest ----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the JSON of docs/abi.md into plain data. Whatever the text says, the
// result is either a manifest that the planner can trust or one sentence.
//
//===----------------------------------------------------------------------===//
#include "Manifest.h"
#include "../Support/Error.h"
#include "JsonReader.h"
#include "ManifestLaunch.h"

#include <algorithm>
#include <cstdio>

namespace fi::runtime {
namespace {

constexpr int64_t maxHeads = 1 << 16;
constexpr int64_t maxTile = 1 << 16;
constexpr int64_t maxBlock = 1 << 20;
constexpr int64_t maxScratch = int64_t(1) << 30;
constexpr size_t maxExpressions = 4096;
constexpr int maxExpressionDepth = 64;

class ManifestReader {
public:
  explicit ManifestReader(Manifest &manifest) : m(manifest) {}

  static void checkVersion(const JsonReader &top) {
    int64_t version = top.at("manifest").integer(0, INT64_MAX);
    if (version > FI_MANIFEST_VERSION)
      throw ManifestError{
          "version " + std::to_string(version) +
          " is newer than this runtime, which reads up to version " +
          std::to_string(FI_MANIFEST_VERSION) +
          "; update the runtime or compile the package with an older compiler"};
    if (version < 1)
      top.at("manifest").error("a version from 1");
    int64_t abi = top.at("abi").integer(0, INT64_MAX);
    if (abi != FI_ABI_VERSION)
      throw ManifestError{"kernel abi " + std::to_string(abi) + " is " +
                          (abi > FI_ABI_VERSION ? "newer" : "older") +
                          " than this runtime's, which is " +
                          std::to_string(FI_ABI_VERSION) +
                          "; compile the package again"};
  }

  void read(const JsonReader &top) {
    checkVersion(top);
    m.program = top.at("program").string();
    if (!top.get("compiler").isNull())
      m.compiler = top.get("compiler").string();
    JsonReader target = top.at("target");
    m.targetKind = target.at("kind").string();
    if (!target.get("cpu").isNull())
      m.targetCpu = target.get("cpu").string();
    if (!target.get("vector_bits").isNull())
      m.vectorBits = target.get("vector_bits").integer(0, 1 << 16);
    if (!target.get("features").isNull())
      m.features = readStrings(target.get("features"));
    if (m.onDevice())
      readDeviceTarget(target, m);

    readArguments(top.at("arguments"));
    readOutputs(top.at("results"), m.results);
    if (!top.get("temporaries").isNull())
      readOutputs(top.get("temporaries"), m.temporaries);
    JsonReader stages = top.at("stages");
    m.stages.resize(stages.size());
    for (size_t i = 0; i < stages.size(); ++i)
      readStage(stages[i], m.stages[i]);
    shareTables();
  }

private:
  static int64_t readAlign(const JsonReader &json) {
    if (json.isNull())
      return 1;
    int64_t align = json.integer(1, 4096);
    if (align & (align - 1))
      json.error("a power of two");
    return align;
  }

  static int32_t readDtype(const JsonReader &json) {
    std::string name = json.string();
    for (int32_t dtype = FI_F32; dtype <= FI_F8E8M0FNU; ++dtype)
      if (name == dtypeName(dtype))
        return dtype;
    json.error(
        "one of f32, f16, bf16, i32, i64, i8, i1, index, f8E4M3FN, f8E5M2, "
        "f8E8M0FNU");
  }

  static std::vector<int64_t> readShape(const JsonReader &json) {
    if (json.size() > size_t(maxRank))
      json.error("at most " + std::to_string(maxRank) + " dimensions");
    std::vector<int64_t> shape;
    for (size_t i = 0; i < json.size(); ++i)
      shape.push_back(json[i].isNull() ? unknownSize
                                       : json[i].integer(0, INT64_C(1) << 40));
    return shape;
  }

  int32_t findArgument(const std::string &name) const {
    for (size_t i = 0; i < m.arguments.size(); ++i)
      if (m.arguments[i].name == name)
        return int32_t(i);
    return none;
  }

  void readArguments(const JsonReader &json) {
    for (size_t i = 0; i < json.size(); ++i) {
      JsonReader one = json[i];
      Argument argument;
      argument.name = one.at("name").string();
      if (findArgument(argument.name) != none)
        one.at("name").error("a name that no other argument has");
      std::string group = one.at("group").string();
      if (group != "plan" && group != "run")
        one.at("group").error("'plan' or 'run'");
      argument.group = group == "plan" ? FI_GROUP_PLAN : FI_GROUP_RUN;
      std::string kind = one.at("kind").string();
      if (kind != "tensor" && kind != "pool" && kind != "scalar")
        one.at("kind").error("'tensor', 'pool' or 'scalar'");
      argument.kind = kind == "tensor" ? FI_KIND_TENSOR
                      : kind == "pool" ? FI_KIND_POOL
                                       : FI_KIND_SCALAR;
      argument.dtype = readDtype(one.at("dtype"));
      if (argument.kind != FI_KIND_SCALAR) {
        argument.shape = readShape(one.at("shape"));
        if (argument.shape.empty())
          one.at("shape").error("at least one dimension");
      }
      if (argument.kind == FI_KIND_POOL && argument.group == FI_GROUP_PLAN)
        one.at("kind").error("'tensor' or 'scalar' in the plan group");
      argument.align = readAlign(one.get("align"));
      if (!one.get("sorted").isNull())
        argument.sorted = one.get("sorted").boolean();
      if (argument.sorted &&
          (argument.group != FI_GROUP_PLAN || argument.kind == FI_KIND_SCALAR ||
           !isIntegerDtype(argument.dtype)))
        one.get("sorted").error("a plan tensor of integers");
      auto &group_ =
          argument.group == FI_GROUP_PLAN ? m.planArguments : m.runArguments;
      argument.indexInGroup = int32_t(group_.size());
      group_.push_back(int32_t(i));
      m.arguments.push_back(std::move(argument));
    }
  }

  void readOutputs(const JsonReader &json, std::vector<Output> &outputs) {
    for (size_t i = 0; i < json.size(); ++i) {
      JsonReader one = json[i];
      Output output;
      output.name = one.at("name").string();
      if (findArgument(output.name) != none ||
          findOutput(output.name).index >= 0)
        one.at("name").error("a name that nothing else has");
      output.dtype = readDtype(one.at("dtype"));
      output.shape = readShape(one.at("shape"));
      if (output.shape.empty())
        one.at("shape").error("at least one dimension");
      for (size_t d = 1; d < output.shape.size(); ++d)
        if (output.shape[d] == unknownSize)
          one.at("shape")[d].error("a size");
      output.rowsOf = readRowSource(one.at("rows_of"));
      output.align = readAlign(one.get("align"));
      outputs.push_back(std::move(output));
    }
  }

  /// A result or temporary by name; index -1 if there is none.
  BufferRef findOutput(const std::string &name) const {
    for (size_t i = 0; i < m.results.size(); ++i)
      if (m.results[i].name == name)
        return {BufferRef::ResultBuffer, int32_t(i)};
    for (size_t i = 0; i < m.temporaries.size(); ++i)
      if (m.temporaries[i].name == name)
        return {BufferRef::TemporaryBuffer, int32_t(i)};
    return {BufferRef::ResultBuffer, none};
  }

  /// The named tensor or pool argument of a group.
  int32_t argument(const JsonReader &json, fi_group group) const {
    int32_t i = findArgument(json.string());
    if (i == none || m.arguments[i].group != group ||
        m.arguments[i].kind == FI_KIND_SCALAR)
      json.error(group == FI_GROUP_PLAN ? "the name of a plan tensor"
                                        : "the name of a run tensor");
    return i;
  }

  RowSource readRowSource(const JsonReader &json) const {
    if (json.isNumber())
      return {none, json.integer(0, INT64_MAX)};
    int32_t i = findArgument(json.string());
    const Argument *a = i == none ? nullptr : &m.arguments[i];
    bool isTensor = a && a->group == FI_GROUP_RUN &&
                    a->kind != FI_KIND_SCALAR && !a->shape.empty();
    bool isNumber = a && a->group == FI_GROUP_PLAN &&
                    a->kind == FI_KIND_SCALAR && isIntegerDtype(a->dtype);
    if (!isTensor && !isNumber)
      json.error("the name of a run tensor or of an integer of the plan, or a "
                 "number of rows");
    return {i, unknownSize};
  }

  /// A plan tensor of integers with one of two ranks; none where null.
  int32_t table(const JsonReader &json, size_t rank,
                size_t otherRank = 0) const {
    if (json.isNull())
      return none;
    int32_t i = argument(json, FI_GROUP_PLAN);
    const Argument &a = m.arguments[i];
    if ((a.shape.size() != rank && a.shape.size() != otherRank) ||
        (a.dtype != FI_I32 && a.dtype != FI_I64 && a.dtype != FI_INDEX))
      json.error("a plan tensor of i32 or i64 with rank " +
                 std::to_string(rank));
    return i;
  }

  /// The static sizes of an argument must not contradict the stage.
  void checkDim(const JsonReader &json, int32_t index, int32_t dim,
                int64_t size) const {
    int64_t declared = m.arguments[index].shape[dim];
    if (declared != unknownSize && declared != size)
      json.error("an argument with size " + std::to_string(size) +
                 " in dimension " + std::to_string(dim) + ", not " +
                 std::to_string(declared));
  }

  void readView(const JsonReader &json, Stage &stage) {
    View &view = stage.view;
    std::string kind = json.at("kind").string();
    view.keys = argument(json.at("keys"), FI_GROUP_RUN);
    view.values = argument(json.at("values"), FI_GROUP_RUN);
    if (!json.get("tail").isNull())
      view.tail = argument(json.get("tail"), FI_GROUP_RUN);
    view.heads = json.at("heads").integer(1, maxHeads);
    if (!json.get("order").isNull()) {
      std::string order = json.get("order").string();
      if (order != "HND" && order != "NHD" && order != "ND")
        json.get("order").error("'HND', 'NHD' or 'ND'");
      view.headsFirst = order == "HND";
      view.hasHeads = order != "ND";
      if (!view.hasHeads && (kind != "paged" || view.heads != 1))
        json.get("order").error("'HND' or 'NHD', unless pages have one head");
    }
    view.origin = table(json.get("origin"), 1);
    view.indptr = table(json.get("indptr"), 1);
    if (kind == "paged") {
      view.kind = view.indptr == none ? ViewKind::Dense : ViewKind::Paged;
      if (!json.get("page").isNull())
        view.page = json.get("page").integer(1, 1 << 24);
      bool dense = view.kind == ViewKind::Dense;
      view.pages = table(json.at("pages"), dense ? 2 : 1);
      const char *lengths = dense ? "lengths" : "last";
      int32_t lengthTable = table(json.at(lengths), 1);
      if (view.pages == none)
        json.at("pages").error("the name of a plan tensor");
      if (lengthTable == none)
        json.at(lengths).error("the name of a plan tensor");
      (dense ? view.lengths : view.last) = lengthTable;
      view.valuePages = table(json.get("value_pages"), dense ? 2 : 1);
    } else if (kind == "ragged") {
      view.kind = ViewKind::Ragged;
      if (JsonReader blocks = json.get("blocks"); !blocks.isNull()) {
        view.blockRows = blocks.at("rows").integer(1, maxBlock);
        view.blockColumns = blocks.at("columns").integer(1, maxBlock);
        view.rowIndptr = table(json.at("row_indptr"), 1);
        view.columns = table(json.at("columns"), 1);
        for (const char *key : {"row_indptr", "columns"})
          if (json.at(key).isNull())
            json.at(key).error("the name of a plan tensor");
      }
    } else {
      json.at("kind").error("'paged' or 'ragged'");
    }
    if (!json.get("fused").isNull())
      view.fused = json.get("fused").boolean();
    if (view.fused &&
        (view.kind == ViewKind::Ragged || view.keys != view.values))
      json.get("fused").error(
          "false, unless keys and values are one paged pool");
    size_t rank = view.kind == ViewKind::Ragged || !view.hasHeads ? 3
                  : view.fused                                    ? 5
                                                                  : 4;
    for (auto [key, pool] :
         {std::pair("keys", view.keys), std::pair("values", view.values),
          std::pair("tail", view.tail)}) {
      if (pool == none)
        continue;
      if (m.arguments[pool].shape.size() != rank)
        json.at(key).error("an argument of rank " + std::to_string(rank));
      if (view.fused)
        checkDim(json.at(key), pool, 1, 2);
      if (view.hasHeads)
        checkDim(json.at(key), pool, view.headDim(), view.heads);
      if (view.page != unknownSize)
        checkDim(json.at(key), pool, view.tokenDim(), view.page);
      if (view.kind != ViewKind::Ragged && view.page == unknownSize)
        view.page = m.arguments[pool].shape[view.tokenDim()];
    }
    if (!json.get("scales").isNull())
      for (size_t i = 0; i < json.get("scales").size(); ++i)
        readScales(json.get("scales")[i], view);
  }

  /// Scales of pages, tokens or blocks, whose sizes go with the pools'.
  void readScales(const JsonReader &json, View &view) {
    std::string per = json.at("per").string();
    bool isBlock = per == "block";
    if (per != "page" && per != "token" && !isBlock)
      json.at("per").error("'page', 'token' or 'block'");
    bool ragged = view.kind == ViewKind::Ragged;
    if (ragged && per == "page")
      json.at("per").error("'token' or 'block' where there are no pages");
    int32_t i = argument(json.at("name"), FI_GROUP_RUN);
    size_t rank =
        (per == "page" || ragged || !view.hasHeads ? 2 : 3) + (isBlock ? 1 : 0);
    int32_t dtype = m.arguments[i].dtype;
    bool fits = isBlock ? dtype == FI_F8E4M3FN || dtype == FI_F8E8M0FNU
                        : dtype == FI_F32;
    if (m.arguments[i].shape.size() != rank || !fits)
      json.at("name").error(std::string("an argument of ") +
                            (isBlock ? "f8E4M3FN or f8E8M0FNU" : "f32") +
                            " with rank " + std::to_string(rank));
    bool ofValues =
        !json.get("values").isNull() && json.get("values").boolean();
    view.scales.push_back({i, per != "page", ofValues});
  }

  /// Where an attention writes: a result, a temporary, or a pool of the caller.
  void readOutput(const JsonReader &json, bool isOutput, Stage &stage) {
    std::string name = json.string();
    if (findOutput(name).index != none)
      return;
    int32_t i = findArgument(name);
    size_t rank = isOutput ? 3 : 2;
    if (i == none || m.arguments[i].kind != FI_KIND_POOL ||
        m.arguments[i].shape.size() != rank)
      json.error("a result, a temporary or a pool of rank " +
                 std::to_string(rank));
    checkDim(json, i, 1, stage.queryHeads);
    if (isOutput)
      checkDim(json, i, 2, stage.voDim);
    stage.outs[isOutput ? 0 : 1] = i;
  }

  int64_t readScratch(const JsonReader &json) const {
    return json.isNull() ? 0 : json.integer(0, m.onDevice() ? 0 : maxScratch);
  }

  static Cost readCost(const JsonReader &json) {
    Cost cost;
    struct {
      const char *key;
      double *value;
    } fields[] = {{"item", &cost.item},
                  {"tile", &cost.tile},
                  {"tile_row", &cost.tileRow},
                  {"slot_row", &cost.slotRow},
                  {"meeting", &cost.meeting}};
    for (auto &field : fields)
      if (!json.isNull() && !json.get(field.key).isNull())
        *field.value = json.get(field.key).cost();
    return cost;
  }

  void readBodies(const JsonReader &json, Stage &stage) {
    if (json.size() == 0)
      json.error("at least one body");
    int64_t covered = 0;
    for (size_t i = 0; i < json.size(); ++i) {
      JsonReader one = json[i];
      Body body;
      body.symbol = one.at("symbol").string();
      body.tileRows = one.at("tile_rows").integer(1, maxTile);
      if (stage.op == StageOp::Attention) {
        body.tileKeys = one.at("tile_keys").integer(1, maxTile);
        if (!one.get("max_rows").isNull())
          body.maxRows = one.get("max_rows").integer(1, INT64_MAX);
        if (covered == unknownSize ||
            (body.maxRows != unknownSize && body.maxRows <= covered))
          one.get("max_rows").error("bodies by rising max_rows");
        covered = body.maxRows;
      }
      body.scratch = readScratch(one.get("scratch"));
      body.cost = readCost(one.get("cost"));
      if (!one.get("counters").isNull())
        body.mergesItself = one.get("counters").boolean();
      if (body.mergesItself &&
          (!m.onDevice() || stage.op != StageOp::Attention))
        one.get("counters").error("false, but for attention on a GPU");
      if (!one.get("merge_fan_in").isNull()) {
        body.mergeFanIn = one.get("merge_fan_in").integer(2, maxTile);
        if (!body.mergesItself)
          one.get("merge_fan_in").error("no such member without counters");
      }
      body.launch = readLaunch(m.onDevice() ? one.at("launch") : one, m, stage);
      stage.bodies.push_back(std::move(body));
    }
    if (stage.op != StageOp::Attention && stage.bodies.size() != 1)
      json.error("exactly one body");
  }

  void readMerge(const JsonReader &json, Stage &stage) {
    Merge merge;
    merge.symbol = json.at("symbol").string();
    merge.tileRows = json.at("tile_rows").integer(1, maxTile);
    merge.scratch = readScratch(json.get("scratch"));
    merge.cost = readCost(json.get("cost"));
    merge.launch =
        readLaunch(m.onDevice() ? json.at("launch") : json, m, stage);
    for (const Merge &other : stage.merges)
      if (other.tileRows == merge.tileRows)
        json.at("tile_rows").error("one merge for each tile_rows");
    stage.merges.push_back(std::move(merge));
  }

  void readSplit(const JsonReader &json, Stage &stage) {
    if (json.isNull()) {
      stage.split.policy = stage.canSplit() ? FI_SPLIT_BALANCED : FI_SPLIT_NONE;
      return;
    }
    std::string policy = json.at("policy").string();
    if (policy == "balanced")
      stage.split.policy = FI_SPLIT_BALANCED;
    else if (policy == "none")
      stage.split.policy = FI_SPLIT_NONE;
    else if (policy == "fixed") {
      stage.split.policy = FI_SPLIT_FIXED;
      stage.split.keys = json.at("keys").integer(1, INT64_C(1) << 40);
    } else
      json.at("policy").error("'balanced', 'fixed' or 'none'");
  }

  int32_t readExpression(const JsonReader &json, Mask &mask, int depth) {
    static const struct {
      const char *name;
      Expression::Op op;
      int operands; // -1: by the rank of the named tensor
    } ops[] = {{"const", Expression::Constant, 0},
               {"q", Expression::QueryPosition, 0},
               {"request", Expression::Request, 0},
               {"q_head", Expression::QueryHead, 0},
               {"kv_head", Expression::KVHead, 0},
               {"kv_len", Expression::KVLength, 0},
               {"q_len", Expression::QueryLength, 0},
               {"scalar", Expression::Scalar, 0},
               {"load", Expression::Load, -1},
               {"first", Expression::First, -1},
               {"add", Expression::Add, 2},
               {"sub", Expression::Sub, 2},
               {"mul", Expression::Mul, 2},
               {"min", Expression::Min, 2},
               {"max", Expression::Max, 2},
               {"floordiv", Expression::FloorDiv, 2},
               {"ceildiv", Expression::CeilDiv, 2}};
    if (depth > maxExpressionDepth)
      json.error("an expression of at most " +
                 std::to_string(maxExpressionDepth) + " levels");
    if (mask.expressions.size() >= maxExpressions)
      json.error("at most " + std::to_string(maxExpressions) + " expressions");
    if (json.size() == 0)
      json.error("an expression such as [\"q\"]");
    std::string name = json[0].string();
    Expression e;
    int operands = 0;
    bool found = false;
    for (const auto &op : ops)
      if (name == op.name) {
        e.op = op.op;
        operands = op.operands;
        found = true;
      }
    if (!found)
      json[0].error("the name of an expression of this manifest version");
    size_t first = 1;
    auto needs = [&](size_t n) {
      if (json.size() != n)
        json.error("an expression of " + std::to_string(n) + " elements");
    };
    switch (e.op) {
    case Expression::Constant:
      needs(2);
      e.constant = json[1].integer(INT64_MIN, INT64_MAX);
      break;
    case Expression::Scalar: {
      needs(2);
      e.argument = findArgument(json[1].string());
      if (e.argument == none ||
          m.arguments[e.argument].group != FI_GROUP_PLAN ||
          m.arguments[e.argument].kind != FI_KIND_SCALAR ||
          !isIntegerDtype(m.arguments[e.argument].dtype))
        json[1].error("the name of an integer plan scalar");
      break;
    }
    case Expression::Load:
    case Expression::First:
      if (json.size() < 2)
        needs(3);
      e.argument = argument(json[1], FI_GROUP_PLAN);
      if (!isIntegerDtype(m.arguments[e.argument].dtype) ||
          m.arguments[e.argument].shape.empty())
        json[1].error("the name of a plan tensor of integers");
      operands = int(m.arguments[e.argument].shape.size());
      first = 2;
      break;
    default:
      break;
    }
    if (e.op != Expression::Constant && e.op != Expression::Scalar)
      needs(first + operands);
    if (e.op == Expression::QueryHead || e.op == Expression::KVHead)
      mask.usesHead = true;
    if (e.op == Expression::QueryPosition)
      mask.usesPosition = true;
    e.operandCount = operands;
    for (int i = 0; i < operands; ++i)
      e.operands[i] = readExpression(json[first + i], mask, depth + 1);
    mask.expressions.push_back(e);
    return int32_t(mask.expressions.size() - 1);
  }

  void readMask(const JsonReader &json, Mask &mask) {
    if (json.isNull())
      return;
    mask.present = true;
    JsonReader terms = json.at("terms");
    for (size_t i = 0; i < terms.size(); ++i) {
      MaskTerm term;
      for (const char *side : {"lo", "hi"}) {
        JsonReader bounds = terms[i].get(side);
        if (bounds.isNull())
          continue;
        auto &roots = side[0] == 'l' ? term.low : term.high;
        for (size_t b = 0; b < bounds.size(); ++b)
          roots.push_back(readExpression(bounds[b], mask, 0));
      }
      if (!terms[i].get("exact").isNull())
        term.exact = terms[i].get("exact").boolean();
      mask.terms.push_back(std::move(term));
    }
  }

  void readBuffers(const JsonReader &json, Stage &stage) {
    for (size_t i = 0; i < json.size(); ++i) {
      std::string name = json[i].string();
      int32_t argument = findArgument(name);
      BufferRef ref = argument != none
                          ? BufferRef{BufferRef::ArgumentBuffer, argument}
                          : findOutput(name);
      if (ref.index == none)
        json[i].error("the name of an argument, result or temporary");
      stage.buffers.push_back(ref);
    }
  }

  /// The run tensor that a query is, or that has the rows of a computed one.
  int32_t query(const JsonReader &json, int64_t heads, bool &isComputed) {
    BufferRef made = findOutput(json.string());
    isComputed = findArgument(json.string()) == none && made.index != none;
    if (!isComputed) {
      int32_t i = argument(json, FI_GROUP_RUN);
      if (m.arguments[i].shape.size() != 3)
        json.error("an argument of rank 3");
      checkDim(json, i, 1, heads);
      return i;
    }
    const Output &output = *m.findOutput(made);
    int32_t rows = output.rowsOf.argument;
    if (output.shape.size() != 3 || output.shape[1] != heads)
      json.error("a tensor of rank 3 with " + std::to_string(heads) + " heads");
    if (rows == none || m.arguments[rows].group != FI_GROUP_RUN)
      json.error("a run tensor, or what has as many rows as one");
    return rows;
  }

  void readAttention(const JsonReader &json, Stage &stage) {
    stage.op = StageOp::Attention;
    stage.rows = table(json.get("rows"), 1);
    stage.positions = table(json.get("positions"), 1);
    readView(json.at("view"), stage);
    stage.queryHeads = json.at("heads").at("q").integer(1, maxHeads);
    stage.kvHeads = json.at("heads").at("kv").integer(1, maxHeads);
    if (stage.kvHeads != stage.view.heads)
      json.at("heads").at("kv").error("the heads of the view, " +
                                      std::to_string(stage.view.heads));
    if (stage.queryHeads % stage.kvHeads != 0)
      json.at("heads").at("q").error("a multiple of the KV heads, " +
                                     std::to_string(stage.kvHeads));
    stage.group = stage.queryHeads / stage.kvHeads;
    stage.qkDim = json.at("dims").at("qk").integer(1, maxTile);
    stage.voDim = json.at("dims").at("vo").integer(1, maxTile);
    stage.query =
        query(json.at("query"), stage.queryHeads, stage.queryIsComputed);
    if (JsonReader tail = json.get("query_tail"); !tail.isNull()) {
      bool isComputed; // which leaves nothing to check
      int32_t i = query(tail, stage.queryHeads, isComputed);
      stage.queryTail = isComputed ? none : i;
    }
    if (!json.get("outputs").isNull())
      for (const char *key : {"o", "lse"})
        if (!json.get("outputs").get(key).isNull())
          readOutput(json.get("outputs").get(key), key[0] == 'o', stage);
    readBodies(json.at("bodies"), stage);
    JsonReader merge = json.get("merge");
    if (merge.isArray())
      for (size_t i = 0; i < merge.size(); ++i)
        readMerge(merge[i], stage);
    else if (!merge.isNull())
      readMerge(merge, stage);
    for (Body &body : stage.bodies)
      for (size_t i = 0; i < stage.merges.size(); ++i)
        if (stage.merges[i].tileRows == body.tileRows)
          body.merge = int32_t(i);
    readSplit(json.get("split"), stage);
    readMask(json.get("mask"), stage.mask);
  }

  void readWithRows(const JsonReader &json, Stage &stage) {
    if (json.isNull())
      return;
    for (size_t i = 0; i < json.size(); ++i) {
      int32_t argument = findArgument(json[i].string());
      if (argument == none || m.arguments[argument].kind == FI_KIND_SCALAR ||
          m.arguments[argument].shape.empty())
        json[i].error("the name of a tensor argument");
      stage.withRows.push_back(argument);
    }
  }

  void readWhole(const JsonReader &json, Stage &stage) {
    for (size_t i = 0; !json.isNull() && i < json.size(); ++i) {
      stage.whole.push_back(findOutput(json[i].string()));
      if (stage.whole.back().index == none &&
          findArgument(json[i].string()) == none)
        json[i].error("the name of a buffer");
    }
  }

  void readStage(const JsonReader &json, Stage &stage) {
    std::string op = json.at("op").string();
    stage.name = json.at("name").string();
    readBuffers(json.at("buffers"), stage);
    if (op == "attention") {
      readAttention(json, stage);
    } else if (op == "rows") {
      stage.op = StageOp::Rows;
      stage.rowsOf = readRowSource(json.at("rows_of"));
      readWithRows(json.get("with_rows"), stage);
      readWhole(json.get("whole"), stage);
      stage.kvHeads = json.at("heads").integer(1, maxHeads);
      readBodies(json.at("bodies"), stage);
    } else if (op == "append") {
      stage.op = StageOp::Append;
      stage.rows = table(json.get("rows"), 1);
      readView(json.at("view"), stage);
      stage.kvHeads = stage.view.heads;
      // The new tokens are the run tensors before the pools.
      for (const BufferRef &buffer : stage.buffers) {
        if (buffer.kind != BufferRef::ArgumentBuffer ||
            buffer.index == stage.view.keys ||
            buffer.index == stage.view.values)
          break;
        const Argument &a = m.arguments[buffer.index];
        if (a.group == FI_GROUP_RUN && a.kind != FI_KIND_SCALAR &&
            !a.shape.empty())
          stage.newTokens.push_back(buffer.index);
      }
      if (stage.newTokens.empty())
        json.at("buffers").error("the new keys before the view's pools");
      readBodies(json.at("bodies"), stage);
    } else {
      json.at("op").error("'attention', 'rows' or 'append'");
    }
  }

  /// Finds stages whose views have the same tables.
  void shareTables() {
    for (size_t i = 0; i < m.stages.size(); ++i) {
      View &view = m.stages[i].view;
      view.sharedTables = int32_t(i);
      if (m.stages[i].op == StageOp::Rows)
        continue;
      for (size_t j = 0; j < i; ++j) {
        const View &other = m.stages[j].view;
        // A ragged view without indptr takes its length from its own pool.
        bool samePool = view.keys == other.keys;
        if (m.stages[j].op != StageOp::Rows && view.kind == other.kind &&
            view.page == other.page && view.indptr == other.indptr &&
            view.pages == other.pages && view.last == other.last &&
            view.valuePages == other.valuePages &&
            view.lengths == other.lengths && view.origin == other.origin &&
            (samePool || (view.indptr != none && view.page != unknownSize))) {
          view.sharedTables = int32_t(j);
          break;
        }
      }
    }
  }

  Manifest &m;
};

} // namespace

size_t bufferSlots(const Manifest &manifest, const BufferRef &buffer) {
  if (buffer.kind == BufferRef::ArgumentBuffer) {
    const Argument &a = manifest.arguments[buffer.index];
    return a.kind == FI_KIND_SCALAR ? 1 : tensorSlots(int32_t(a.shape.size()));
  }
  const auto &outputs = buffer.kind == BufferRef::ResultBuffer
                            ? manifest.results
                            : manifest.temporaries;
  return tensorSlots(int32_t(outputs[buffer.index].shape.size()));
}

size_t stageSlots(const Manifest &manifest, const Stage &stage) {
  size_t slots = 0;
  for (const BufferRef &buffer : stage.buffers)
    slots += bufferSlots(manifest, buffer);
  return slots;
}

/// Calls `read` with the manifest's JSON.
template <typename Read>
static fi_status withJson(const char *text, size_t length, Read read) {
  try {
    nlohmann::json json = nlohmann::json::parse(text, text + length);
    read(JsonReader(json, "manifest"));
    return FI_OK;
  } catch (const ManifestError &error) {
    bool prefixed = error.text.compare(0, 8, "manifest") == 0;
    return fail(FI_INVALID_PACKAGE, "%s%s",
                prefixed ? "" : "manifest: ", error.text.c_str());
  } catch (const nlohmann::json::parse_error &error) {
    return fail(FI_INVALID_PACKAGE,
                "manifest: expected JSON, but got something else at byte %zu "
                "of %zu (truncated or damaged file)",
                error.byte, length);
  } catch (const nlohmann::json::exception &error) {
    return fail(FI_INVALID_PACKAGE, "manifest: %s", error.what());
  }
}

fi_status parseManifest(const char *text, size_t length, Manifest &manifest) {
  return withJson(text, length, [&](const JsonReader &json) {
    ManifestReader(manifest).read(json);
  });
}

fi_status readTargets(const char *text, size_t length,
                      std::vector<std::string> &chips) {
  return withJson(text, length, [&](const JsonReader &json) {
    JsonReader targets = json.get("targets");
    if (targets.isNull())
      return;
    ManifestReader::checkVersion(json);
    if (targets.size() == 0)
      targets.error("a chip at least");
    for (size_t i = 0; i < targets.size(); ++i)
      chips.push_back(readChip(targets[i]));
  });
}

} // namespace fi::runtime
