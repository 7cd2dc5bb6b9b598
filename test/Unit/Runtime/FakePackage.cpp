//===- FakePackage.cpp - A package whose kernels count keys ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See FakePackage.h. Nothing here uses the planner's arithmetic.
//
//===----------------------------------------------------------------------===//
#include "FakePackage.h"

#include <algorithm>
#include <sstream>

namespace fi::test {
namespace {

constexpr float notWritten = -7;
constexpr size_t guardBytes = 256;

/// What a buffer of rank 3 or 2 looks like in the parameters.
struct Params {
  Recorder *recorder;
  float *o;
  const int64_t *oStrides;
  float *lse;
  const int64_t *lseStrides;

  explicit Params(const int64_t *slots)
      : recorder(reinterpret_cast<Recorder *>(slots[0])),
        o(reinterpret_cast<float *>(slots[1])), oStrides(slots + 5),
        lse(reinterpret_cast<float *>(slots[8])), lseStrides(slots + 11) {}
};

void write(const Params &p, const fi_item &item, int64_t i, float count) {
  const FakeProgram &program = *p.recorder->program;
  int64_t row = item.q_begin + (item.row_begin + i) / program.group;
  int64_t head =
      item.kv_head * program.group + (item.row_begin + i) % program.group;
  for (int64_t d = 0; d < program.vo; ++d)
    p.o[row * p.oStrides[0] + head * p.oStrides[1] + d] = count;
  p.lse[row * p.lseStrides[0] + head * p.lseStrides[1]] = count;
}

float countRow(Recorder &r, const FakeBody &body, const fi_work &work,
               const fi_item &item, int64_t i) {
  const FakeProgram &program = *r.program;
  int64_t token = (item.row_begin + i) / program.group;
  int64_t row = item.q_begin + token;
  Pair pair;
  pair.request = item.request;
  pair.kvHead = item.kv_head;
  pair.queryHead =
      item.kv_head * program.group + (item.row_begin + i) % program.group;
  pair.queryPosition = r.positions
                           ? (*r.positions)[row]
                           : item.kv_origin + item.kv_len - item.q_len + token;
  pair.queryLength = item.q_len;
  pair.keyLength = item.kv_len;
  float count = 0;
  int64_t heads = program.kvHeads * program.group;
  for (int32_t n = 0; n < item.full_ranges + item.partial_ranges; ++n) {
    const fi_key_range &range = work.ranges[item.range_begin + n];
    bool full = n < item.full_ranges;
    if (range.begin < 0 || range.begin >= range.end ||
        range.end > item.kv_len || range.begin % body.tileKeys != 0 ||
        (full && range.end % body.tileKeys != 0))
      r.violation("range [" + std::to_string(range.begin) + ", " +
                  std::to_string(range.end) + ") of " +
                  std::to_string(item.kv_len) + " keys");
    // Whole tiles: only the mask, and the end of the keys, tell in the last
    // one.
    int64_t tiles = (range.end - range.begin - 1) / body.tileKeys + 1;
    int64_t end = std::min(item.kv_len, range.begin + tiles * body.tileKeys);
    for (int64_t k = range.begin; k < end; ++k) {
      pair.keyPosition = item.kv_origin + k;
      if (r.visible(pair)) {
        count += 1;
        if (!r.covered.empty())
          ++r.covered[(row * heads + pair.queryHead) * r.maxKeys + k];
      } else if (full) {
        r.violation("a full range holds an invisible key");
      }
    }
  }
  return count;
}

void record(Recorder &r, int body, bool merge, const fi_work &work,
            const fi_item &item) {
  if (!r.recordItems)
    return;
  Recorder::Seen seen{body, merge, item, {}};
  if (!merge)
    seen.ranges.assign(work.ranges + item.range_begin,
                       work.ranges + item.range_begin + item.full_ranges +
                           item.partial_ranges);
  std::lock_guard<std::mutex> lock(r.mutex);
  r.items.push_back(std::move(seen));
}

template <int Body>
void countKeys(const int64_t *slots, const fi_work *work, int64_t begin,
               int64_t end, void *scratch) {
  Params p(slots);
  Recorder &r = *p.recorder;
  const FakeBody &body = r.program->bodies[Body];
  std::memset(scratch, 0xAB, body.scratch);
  if (reinterpret_cast<uintptr_t>(scratch) % FI_ALIGNMENT)
    r.violation("scratch is not aligned");
  for (int64_t n = begin; n < end; ++n) {
    const fi_item &item = work->items[n];
    record(r, Body, false, *work, item);
    for (volatile int32_t s = 0; s < r.spin; s = s + 1)
      ;
    if (item.row_count < 1 || item.row_count > body.tileRows ||
        (!r.program->blockRows && item.row_begin % body.tileRows != 0))
      r.violation("rows of an item");
    for (int64_t i = 0; i < item.row_count; ++i) {
      float count = countRow(r, body, *work, item, i);
      if (item.slot < 0) {
        write(p, item, i, count);
        continue;
      }
      int64_t at = item.slot * body.tileRows + i;
      for (int64_t d = 0; d < r.program->vo; ++d)
        work->state_o[at * r.program->vo + d] = count;
      work->state_lse[at] = count;
    }
  }
}

template <int Body>
void mergeCounts(const int64_t *slots, const fi_work *work, int64_t begin,
                 int64_t end, void *) {
  Params p(slots);
  Recorder &r = *p.recorder;
  const FakeBody &body = r.program->bodies[Body];
  for (int64_t n = begin; n < end; ++n) {
    const fi_item &item = work->items[n];
    record(r, Body, true, *work, item);
    if (item.slot_count < 2)
      r.violation("a merge of fewer than two slots");
    for (int64_t i = 0; i < item.row_count; ++i) {
      float count = 0;
      for (int32_t s = 0; s < item.slot_count; ++s) {
        int64_t at = (item.slot + s) * body.tileRows + i;
        float o = work->state_o[at * r.program->vo + r.program->vo - 1];
        if (o != work->state_lse[at])
          r.violation("a state that nobody wrote");
        count += o;
      }
      write(p, item, i, count);
    }
  }
}

} // namespace

void Recorder::violation(const std::string &text) {
  std::lock_guard<std::mutex> lock(mutex);
  if (violations.size() < 10)
    violations.push_back(text);
}

void *findFakeKernel(void *, const char *symbol) {
  static const int32_t version = FI_ABI_VERSION;
  static const fi_cpu_kernel bodies[] = {countKeys<0>, countKeys<1>,
                                         countKeys<2>, countKeys<3>};
  static const fi_cpu_kernel merges[] = {mergeCounts<0>, mergeCounts<1>,
                                         mergeCounts<2>, mergeCounts<3>};
  std::string name = symbol;
  if (name == FI_ABI_VERSION_SYMBOL)
    return const_cast<int32_t *>(&version);
  for (int i = 0; i < 4; ++i) {
    if (name == "body" + std::to_string(i))
      return reinterpret_cast<void *>(bodies[i]);
    if (name == "merge" + std::to_string(i))
      return reinterpret_cast<void *>(merges[i]);
  }
  return nullptr;
}

json FakeProgram::manifest() const {
  const char *index = wideTables ? "i64" : "i32";
  json arguments = json::array();
  auto table = [&](const char *name, int rank) {
    json shape = json::array();
    for (int d = 0; d < rank; ++d)
      shape.push_back(nullptr);
    arguments.push_back({{"name", name},
                         {"group", "plan"},
                         {"kind", "tensor"},
                         {"dtype", index},
                         {"shape", shape}});
  };
  table("qo", 1);
  json viewJson = {{"keys", "k"},
                   {"values", "v"},
                   {"order", headsFirst ? "HND" : "NHD"},
                   {"heads", kvHeads},
                   {"indptr", nullptr},
                   {"origin", nullptr}};
  json pool;
  if (view == FakeView::Ragged) {
    viewJson["kind"] = "ragged";
    viewJson["indptr"] = "indptr";
    table("indptr", 1);
    pool = headsFirst ? json{kvHeads, nullptr, 8} : json{nullptr, kvHeads, 8};
    if (blockRows) {
      viewJson["blocks"] = {{"rows", blockRows}, {"columns", blockColumns}};
      viewJson["row_indptr"] = "row_indptr";
      viewJson["columns"] = "columns";
    }
  } else {
    viewJson["kind"] = "paged";
    viewJson["page"] = page;
    viewJson["pages"] = "pages";
    if (view == FakeView::Paged) {
      viewJson["indptr"] = "indptr";
      viewJson["last"] = "last";
      table("indptr", 1);
      table("pages", 1);
      if (twoTables)
        table("value_pages", 1);
      table("last", 1);
    } else {
      viewJson["lengths"] = "lengths";
      table("pages", 2);
      if (twoTables)
        table("value_pages", 2);
      table("lengths", 1);
    }
    if (twoTables)
      viewJson["value_pages"] = "value_pages";
    pool = headsFirst ? json{nullptr, kvHeads, page, 8}
                      : json{nullptr, page, kvHeads, 8};
  }
  if (origin) {
    viewJson["origin"] = "origin";
    table("origin", 1);
  }
  if (positions)
    table("positions", 1);
  for (const json &extra : extraArguments)
    arguments.push_back(extra);
  json heads = kvHeads * group;
  arguments.push_back({{"name", "recorder"},
                       {"group", "run"},
                       {"kind", "scalar"},
                       {"dtype", "i64"}});
  arguments.push_back({{"name", "q"},
                       {"group", "run"},
                       {"kind", "tensor"},
                       {"dtype", "f32"},
                       {"shape", {nullptr, heads, 8}}});
  for (const char *name : {"k", "v"})
    arguments.push_back({{"name", name},
                         {"group", "run"},
                         {"kind", "pool"},
                         {"dtype", "f32"},
                         {"shape", pool}});
  json stage = {{"op", "attention"},
                {"name", "attention0"},
                {"query", "q"},
                {"rows", "qo"},
                {"positions", nullptr},
                {"view", viewJson},
                {"heads", {{"q", heads}, {"kv", kvHeads}}},
                {"dims", {{"qk", 8}, {"vo", vo}}},
                {"outputs", {{"o", "result0"}, {"lse", "result1"}}},
                {"buffers", {"recorder", "result0", "result1", "q", "k", "v"}},
                {"bodies", json::array()}};
  if (positions) {
    stage["positions"] = "positions";
    stage["buffers"].push_back("positions");
  }
  if (view != FakeView::Ragged)
    stage["buffers"].push_back("pages");
  json merges = json::array();
  for (size_t b = 0; b < bodies.size(); ++b) {
    const FakeBody &body = bodies[b];
    json maxRows = nullptr;
    if (body.maxRows >= 0)
      maxRows = body.maxRows;
    stage["bodies"].push_back({{"symbol", "body" + std::to_string(b)},
                               {"tile_rows", body.tileRows},
                               {"tile_keys", body.tileKeys},
                               {"max_rows", maxRows},
                               {"scratch", body.scratch},
                               {"cost",
                                {{"item", body.item},
                                 {"tile", body.tile},
                                 {"tile_row", body.tileRow}}}});
    merges.push_back({{"symbol", "merge" + std::to_string(b)},
                      {"tile_rows", body.tileRows},
                      {"scratch", 64},
                      {"cost", {{"item", 50}, {"slot_row", 5}}}});
  }
  if (merge)
    stage["merge"] = merges.size() == 1 ? merges[0] : merges;
  if (!split.is_null())
    stage["split"] = split;
  if (!mask.is_null())
    stage["mask"] = mask;
  return {{"manifest", 1},
          {"abi", 1},
          {"compiler", "test"},
          {"program", "counting"},
          {"target", {{"kind", "cpu"}, {"cpu", "any"}, {"vector_bits", 128}}},
          {"arguments", arguments},
          {"results",
           {{{"name", "result0"},
             {"dtype", "f32"},
             {"shape", {nullptr, heads, vo}},
             {"rows_of", "q"}},
            {{"name", "result1"},
             {"dtype", "f32"},
             {"shape", {nullptr, heads}},
             {"rows_of", "q"}}}},
          {"temporaries", json::array()},
          {"stages", {stage}}};
}

fi_package *openFake(const json &manifest) {
  std::string text = manifest.dump();
  fi_package *package = nullptr;
  fi_package_from_memory(text.data(), text.size(), findFakeKernel, nullptr,
                         &package);
  return package;
}

int64_t FakeBatch::rows() const {
  int64_t rows = leadingRows + trailingRows;
  for (int64_t length : queryLengths)
    rows += length;
  return rows;
}

fi_value FakeBatch::integers(const std::string &name,
                             const std::vector<int64_t> &data,
                             std::vector<int64_t> shape, bool wide) {
  auto m = std::make_unique<Memory>();
  m->name = name;
  m->shape = std::move(shape);
  fi_value value = {};
  value.kind = FI_VALUE_TENSOR;
  if (wide) {
    m->wide = data;
    m->wide.reserve(1);
    value.as.tensor.data = m->wide.data();
  } else {
    m->narrow.assign(data.begin(), data.end());
    m->narrow.reserve(1);
    value.as.tensor.data = m->narrow.data();
  }
  value.as.tensor.dtype = wide ? FI_I64 : FI_I32;
  value.as.tensor.rank = int32_t(m->shape.size());
  value.as.tensor.shape = m->shape.data();
  memory.push_back(std::move(m));
  return value;
}

fi_tensor FakeBatch::floats(float *data, std::vector<int64_t> shape) {
  shapes.push_back(std::make_unique<std::vector<int64_t>>(std::move(shape)));
  return {data, FI_F32, int32_t(shapes.back()->size()), shapes.back()->data(),
          nullptr};
}

void FakeBatch::bind(const FakeProgram &p, Recorder &recorder) {
  plan.clear();
  run.clear();
  results.clear();
  memory.clear();
  shapes.clear();
  planNames.clear();
  int64_t requests = int64_t(queryLengths.size());
  auto add = [&](const std::string &name, const std::vector<int64_t> &data,
                 std::vector<int64_t> shape) {
    planNames.push_back(name);
    plan.push_back(integers(name, data, std::move(shape), p.wideTables));
  };
  std::vector<int64_t> qo = {leadingRows};
  for (int64_t length : queryLengths)
    qo.push_back(qo.back() + length);
  add("qo", qo, {requests + 1});
  std::vector<int64_t> indptr = {pageOffset}, last, pages;
  int64_t widest = 0, next = 0;
  for (int64_t i = 0; i < pageOffset; ++i)
    pages.push_back(-1); // before the tables: must not be looked at
  for (int64_t r = 0; r < requests; ++r) {
    int64_t keys = keyLengths[r];
    int64_t count =
        p.view == FakeView::Ragged ? keys : (keys + p.page - 1) / p.page;
    widest = std::max(widest, count);
    indptr.push_back(indptr.back() + count);
    last.push_back(keys ? (keys - 1) % p.page + 1 : r % 3); // free if empty
    for (int64_t i = 0; i < count; ++i)
      pages.push_back((next += 7) % 101);
  }
  for (int64_t i = 0; i < surplusPages; ++i)
    pages.push_back(1 << 30);
  poolPages = 101;
  // Pages of values are others.
  auto valuePages = [&](std::vector<int64_t> table) {
    for (int64_t &page : table)
      if (page >= 0 && page < poolPages)
        page = (page + 50) % poolPages;
    return table;
  };
  if (p.view == FakeView::Dense) {
    int64_t width = widest + surplusPages;
    std::vector<int64_t> table(requests * width, -9);
    for (int64_t r = 0; r < requests; ++r)
      for (int64_t i = 0; i < indptr[r + 1] - indptr[r]; ++i)
        table[r * width + i] = (next += 7) % 101;
    add("pages", table, {requests, width});
    if (p.twoTables)
      add("value_pages", valuePages(table), {requests, width});
    add("lengths", keyLengths, {requests});
  } else {
    add("indptr", indptr, {requests + 1});
    if (p.view == FakeView::Paged) {
      int64_t count = int64_t(pages.size());
      add("pages", pages, {count});
      if (p.twoTables)
        add("value_pages", valuePages(pages), {count});
      add("last", last, {requests});
    }
  }
  if (p.origin)
    add("origin", origins, {requests});
  if (p.positions)
    add("positions", positions, {int64_t(positions.size())});
  for (size_t i = 0; i < extras.size(); ++i) {
    if (extras[i].scalar) {
      fi_value value = {};
      value.kind = FI_VALUE_INTEGER;
      value.as.i64 = extras[i].value;
      plan.push_back(value);
      planNames.push_back("extra");
    } else {
      std::string name = p.extraArguments[i]["name"];
      add(name, extras[i].data, extras[i].shape);
      if (p.extraArguments[i]["dtype"] == "i64" && !p.wideTables)
        plan.back() = integers(name, extras[i].data, extras[i].shape, true);
    }
  }

  int64_t heads = p.kvHeads * p.group;
  recorder.program = &p;
  recorder.positions = p.positions ? &positions : nullptr;
  fi_value value = {};
  value.kind = FI_VALUE_INTEGER;
  value.as.i64 = int64_t(reinterpret_cast<intptr_t>(&recorder));
  run.push_back(value);
  query.assign(rows() * heads * 8 + 1, 0);
  pool.assign(1, 0); // the kernels do not read it
  value.kind = FI_VALUE_TENSOR;
  value.as.tensor = floats(query.data(), {rows(), heads, 8});
  run.push_back(value);
  int64_t tokens = indptr.back() + surplusPages;
  std::vector<int64_t> shape =
      p.view == FakeView::Ragged
          ? (p.headsFirst ? std::vector<int64_t>{p.kvHeads, tokens, 8}
                          : std::vector<int64_t>{tokens, p.kvHeads, 8})
      : p.headsFirst ? std::vector<int64_t>{poolPages, p.kvHeads, p.page, 8}
                     : std::vector<int64_t>{poolPages, p.page, p.kvHeads, 8};
  for (int i = 0; i < 2; ++i) {
    value.as.tensor = floats(pool.data(), shape);
    run.push_back(value);
  }
  output.assign(rows() * heads * p.vo + 1, notWritten);
  lse.assign(rows() * heads + 1, notWritten);
  results.push_back(floats(output.data(), {rows(), heads, p.vo}));
  results.push_back(floats(lse.data(), {rows(), heads}));

  recorder.maxKeys = 0;
  for (int64_t keys : keyLengths)
    recorder.maxKeys = std::max(recorder.maxKeys, keys);
  recorder.covered.assign(
      recorder.cover ? rows() * heads * recorder.maxKeys : 0, 0);
}

fi_value &FakeBatch::planValue(const std::string &name) {
  for (size_t i = 0; i < planNames.size(); ++i)
    if (planNames[i] == name)
      return plan[i];
  std::abort();
}

void FakeBatch::set(const std::string &name, size_t index, int64_t value) {
  fi_tensor &tensor = planValue(name).as.tensor;
  if (tensor.dtype == FI_I64)
    static_cast<int64_t *>(tensor.data)[index] = value;
  else
    static_cast<int32_t *>(tensor.data)[index] = int32_t(value);
}

Workspace::Workspace(size_t bytes) : bytes(bytes) {
  size_t whole =
      (bytes + guardBytes + FI_ALIGNMENT - 1) / FI_ALIGNMENT * FI_ALIGNMENT;
  block = static_cast<char *>(std::aligned_alloc(FI_ALIGNMENT, whole));
  std::memset(block, 0x5C, bytes); // dirty, as workspaces are
  std::memset(block + bytes, 0x33, guardBytes);
}

bool Workspace::guardIntact() const {
  for (size_t i = 0; i < guardBytes; ++i)
    if (block[bytes + i] != 0x33)
      return false;
  return true;
}

PlanPtr planBatch(fi_package *package, const FakeBatch &batch,
                  const fi_plan_options &options, fi_status *status) {
  fi_plan *plan = nullptr;
  fi_status got = fi_plan_create(package, batch.plan.data(),
                                 int32_t(batch.plan.size()), &options, &plan);
  if (status)
    *status = got;
  return PlanPtr(plan);
}

fi_status runBatch(fi_plan *plan, FakeBatch &batch) {
  Workspace workspace(fi_plan_workspace_bytes(plan));
  fi_status status =
      fi_run(plan, fi_plan_generation(plan), batch.run.data(),
             int32_t(batch.run.size()), batch.results.data(),
             int32_t(batch.results.size()), workspace.data(), workspace.size());
  return workspace.guardIntact() ? status : fi_status(-1);
}

std::string compareCounts(const FakeProgram &p, const FakeBatch &batch,
                          const Recorder &recorder) {
  if (!recorder.violations.empty())
    return recorder.violations.front();
  int64_t heads = p.kvHeads * p.group;
  std::ostringstream text;
  int64_t row = 0;
  auto check = [&](int64_t head, int64_t expected, int64_t request) {
    float got = batch.output[(row * heads + head) * p.vo + p.vo - 1];
    if (got == float(expected) &&
        batch.lse[row * heads + head] == float(expected))
      return true;
    text << "request " << request << " row " << row << " head " << head
         << ": expected " << expected << " keys, but got " << got;
    return false;
  };
  auto pads = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++row)
      for (int64_t h = 0; h < heads; ++h)
        if (!check(h, 0, -1))
          return false;
    return true;
  };
  if (!pads(batch.leadingRows))
    return text.str();
  for (size_t r = 0; r < batch.queryLengths.size(); ++r) {
    Pair pair;
    pair.request = int64_t(r);
    pair.queryLength = batch.queryLengths[r];
    pair.keyLength = batch.keyLengths[r];
    int64_t origin = p.origin ? batch.origins[r] : 0;
    for (int64_t t = 0; t < pair.queryLength; ++t, ++row) {
      pair.queryPosition = p.positions
                               ? batch.positions[row]
                               : origin + pair.keyLength - pair.queryLength + t;
      for (int64_t h = 0; h < heads; ++h) {
        pair.queryHead = h;
        pair.kvHead = h / p.group;
        int64_t expected = 0;
        for (int64_t k = 0; k < pair.keyLength; ++k) {
          pair.keyPosition = origin + k;
          bool visible = recorder.visible(pair);
          if (p.blockRows)
            visible &= std::count(batch.blocks[r][t / p.blockRows].begin(),
                                  batch.blocks[r][t / p.blockRows].end(),
                                  k / p.blockColumns) == 1;
          expected += visible;
          int64_t at = (row * heads + h) * recorder.maxKeys + k;
          if (recorder.covered[at] != (visible ? 1 : 0)) {
            text << "request " << r << " row " << row << " head " << h
                 << " key " << k << ": covered " << int(recorder.covered[at])
                 << " times";
            return text.str();
          }
        }
        if (!check(h, expected, int64_t(r)))
          return text.str();
      }
    }
  }
  if (!pads(batch.trailingRows))
    return text.str();
  return "";
}

} // namespace fi::test
