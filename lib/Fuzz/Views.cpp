//===- Views.cpp - layouts and tables of random programs ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every layout, with the tables that engines send: pages in any order, shared,
// beside entries that nobody may read.
//
//===----------------------------------------------------------------------===//

#include "Draft.h"
#include "fi/Support/Random.h"
#include <numeric>

using namespace fi;
using namespace fi::fuzz;

namespace {

/// What no kernel may take for an index.
constexpr int64_t kGarbage = -1;

class ViewWriter {
public:
  ViewWriter(Draft &draft, ViewOptions options)
      : draft(draft), options(std::move(options)) {}
  ViewDraft write();

private:
  enum Kind { Ragged, Paged, Dense, Contiguous };
  void drawTypes();
  void drawOrigins();
  std::string pagedTables();
  std::string denseTables();
  std::string raggedTables();
  /// Pages of the pool for that many entries of a table.
  std::vector<int64_t> drawPages(int64_t count);
  void addPools();
  std::string name(const std::string &base) const { return base + suffix; }
  std::string plan(const std::string &base, const std::string &type,
                   llvm::json::Value value) {
    return draft.plan(name(base), type, std::move(value));
  }

  Draft &draft;
  ViewOptions options;
  ViewDraft view;
  Kind kind = Ragged;
  std::string suffix;
  bool isHND = false, isFused = false, isPageDynamic = false, isMemRef = false;
  int64_t page = 8;
  /// Pages or tokens of the pools.
  int64_t slots = 0;
  std::string poolTypes, pools, originClause;
};

void ViewWriter::drawTypes() {
  static const char *const elements[] = {"f32", "bf16", "bf16", "f16"};
  static const int64_t pages[] = {8, 1, 2, 3, 5, 16, 32, 64, 100};
  static const Kind kinds[] = {Ragged, Paged, Paged, Dense, Contiguous};
  kind = draft.pick("view", kinds);
  // One request, whose length is that of the pool.
  if (kind == Contiguous && (view.lengths.size() != 1 || options.isWritten))
    kind = Ragged;
  view.isPaged = kind == Paged || kind == Dense;
  isHND = draft.flag("hnd");
  view.keyElement = draft.pick("k.element", elements);
  view.valueElement = draft.flag("v.element.differs", 3)
                          ? draft.pick("v.element", elements)
                          : view.keyElement;
  if (view.isPaged) {
    page = draft.pick("page", pages);
    isPageDynamic = draft.flag("page.dynamic", 4);
    isFused = view.keyElement == view.valueElement &&
              draft.keyDim == draft.valueDim && draft.flag("fused", 4);
  }
  isMemRef = options.isWritten || draft.flag("pool.memref");
}

void ViewWriter::drawOrigins() {
  view.origins = options.origins;
  bool isGiven = !view.origins.empty();
  view.origins.resize(view.lengths.size(), 0);
  if (!isGiven) {
    if (kind == Contiguous)
      return;
    int64_t far = draft.rarely("origin", 3, 4);
    if (far == 0)
      return;
    int64_t base = far == 1                   ? 0
                   : far == 2                 ? int64_t(1) << 20
                   : draft.indexType == "i64" ? int64_t(1) << 40
                                              : (int64_t(1) << 31) - 1000;
    for (size_t r = 0; r < view.origins.size(); ++r)
      view.origins[r] = base + draft.choose("origin." + std::to_string(r), 60);
  }
  llvm::json::Array entries = toJson(view.origins);
  if (draft.flag("origin.more", 4))
    entries.push_back(kGarbage);
  originClause = " origin(" +
                 plan("origin", draft.indexTensor(), std::move(entries)) +
                 " : " + draft.indexTensor() + ")";
}

std::vector<int64_t> ViewWriter::drawPages(int64_t count) {
  int64_t sharing = options.isWritten ? 0 : draft.rarely("pages.shared", 4, 3);
  // Which of the entries are pages of their own.
  std::vector<int64_t> entries;
  int64_t used = 0;
  for (int64_t i = 0; i < count; ++i) {
    bool isShared = sharing && used > 0 && i % 3 == 2;
    entries.push_back(isShared ? (sharing == 1 ? used - 1 : i % used) : used++);
  }
  slots = used + draft.choose("pages.unused", 3);
  std::vector<int64_t> order(slots);
  std::iota(order.begin(), order.end(), 0);
  if (draft.flag("pages.shuffled")) {
    Random random(slots);
    for (int64_t i = slots; i > 1; --i)
      std::swap(order[i - 1], order[random.below(i)]);
  }
  for (int64_t &entry : entries)
    entry = order[entry];
  return entries;
}

static int64_t pagesOf(int64_t length, int64_t page) {
  return (length + page - 1) / page;
}

std::string ViewWriter::pagedTables() {
  static const int64_t noPages[] = {0, 1, 99, -5};
  int64_t begin = draft.rarely("indptr.begin", 4, 4);
  int64_t lastOfNone = draft.pick("last.of.none", noPages);
  std::vector<int64_t> indptr = {begin}, last;
  for (int64_t length : view.lengths) {
    int64_t count = pagesOf(length, page);
    indptr.push_back(indptr.back() + count);
    last.push_back(count ? length - (count - 1) * page : lastOfNone);
  }
  std::vector<int64_t> pages = drawPages(indptr.back() - begin);
  pages.insert(pages.begin(), begin, kGarbage);
  pages.insert(pages.end(), draft.rarely("pages.more", 4, 3), kGarbage);
  if (draft.flag("last.more", 5))
    last.push_back(kGarbage);
  std::string type = draft.indexTensor();
  return " tables(" + plan("indptr", type, toJson(indptr)) + ", " +
         plan("pages", type, toJson(pages)) + ", " +
         plan("last", type, toJson(last)) + " : " + type + ", " + type + ", " +
         type + ")";
}

std::string ViewWriter::denseTables() {
  int64_t most = 0, count = 0;
  for (int64_t length : view.lengths) {
    most = std::max(most, pagesOf(length, page));
    count += pagesOf(length, page);
  }
  int64_t width = most + draft.rarely("table.more", 3, 3);
  std::vector<int64_t> pages = drawPages(count);
  std::vector<std::vector<int64_t>> table;
  size_t next = 0;
  for (int64_t length : view.lengths) {
    table.emplace_back();
    for (int64_t i = 0; i < width; ++i)
      table.back().push_back(i < pagesOf(length, page) ? pages[next++]
                                                       : kGarbage);
  }
  std::string tableType = "tensor<?x?x" + draft.indexType + ">";
  std::string pagesValue = plan("pages", tableType, toJson(table, width));
  return " tables(" + pagesValue + ", " +
         plan("lengths", draft.indexTensor(), toJson(view.lengths)) + " : " +
         tableType + ", " + draft.indexTensor() + ")";
}

std::string ViewWriter::raggedTables() {
  std::vector<int64_t> indptr = {draft.rarely("indptr.begin", 4, 4)};
  for (int64_t length : view.lengths)
    indptr.push_back(indptr.back() + length);
  slots = indptr.back() + draft.rarely("tokens.more", 4, 3);
  return " indptr(" + plan("indptr", draft.indexTensor(), toJson(indptr)) +
         " : " + draft.indexTensor() + ")";
}

void ViewWriter::addPools() {
  auto add = [&](bool isValue) {
    int64_t dim = isValue ? draft.valueDim : draft.keyDim;
    std::vector<int64_t> shape = {draft.kvHeads, slots};
    std::string type;
    auto number = [](int64_t size) { return std::to_string(size); };
    if (view.isPaged) {
      shape = {slots};
      type = "?x";
      if (isFused) {
        shape.push_back(2);
        type += "2x";
      }
      shape.push_back(isHND ? draft.kvHeads : page);
      shape.push_back(isHND ? page : draft.kvHeads);
      std::string pageText = isPageDynamic ? "?" : number(page);
      type += (isHND ? number(draft.kvHeads) + "x" + pageText
                     : pageText + "x" + number(draft.kvHeads)) +
              "x";
    } else {
      if (!isHND)
        std::swap(shape[0], shape[1]);
      type = isHND ? number(draft.kvHeads) + "x?x"
                   : "?x" + number(draft.kvHeads) + "x";
    }
    shape.push_back(dim);
    type = (isMemRef ? "memref<" : "tensor<") + type + number(dim) + "x" +
           (isValue ? view.valueElement : view.keyElement) + ">";
    std::string base = name(isValue ? "v" : "k");
    std::string value = draft.run(base, type,
                                  isValue ? drawValues(draft, base, shape)
                                          : drawQueries(draft, base, shape));
    (isValue ? view.values : view.keys) = value;
    pools += (pools.empty() ? "" : ", ") + value;
    poolTypes += (poolTypes.empty() ? "" : ", ") + type;
  };
  add(/*isValue=*/false);
  if (!isFused)
    add(/*isValue=*/true);
}

ViewDraft ViewWriter::write() {
  view.value = draft.fresh("kv");
  suffix = view.value.substr(3);
  view.lengths = options.lengths;
  drawTypes();
  std::string tables;
  switch (kind) {
  case Paged:
    tables = pagedTables();
    break;
  case Dense:
    tables = denseTables();
    break;
  case Ragged:
    tables = raggedTables();
    break;
  case Contiguous:
    slots = view.lengths[0];
    break;
  }
  drawOrigins();
  addPools();
  std::string end =
      (view.isPaged ? (isPageDynamic ? "?" : std::to_string(page)) + "x" : "") +
      std::to_string(draft.kvHeads) + "x" + std::to_string(draft.keyDim) + "x" +
      view.keyElement + (isHND ? ", HND" : ", NHD");
  if (draft.valueDim != draft.keyDim)
    end += ", vo = " + std::to_string(draft.valueDim);
  if (view.valueElement != view.keyElement)
    end += ", v = " + view.valueElement;
  // Without tables there is no index.
  if (draft.indexType != "i32")
    end += ", index = " + draft.indexType;
  if (kind == Dense)
    end += ", table = dense";
  if (isFused)
    end += ", fused";
  view.type = (view.isPaged ? "!fi.paged_kv<" : "!fi.ragged_kv<") + end + ">";
  draft.add(view.value + " = fi.view." + (view.isPaged ? "paged " : "ragged ") +
            pools + tables + originClause + " : " + poolTypes + " -> " +
            view.type);
  return std::move(view);
}

} // namespace

ViewDraft fi::fuzz::drawView(Draft &draft, ViewOptions options) {
  return ViewWriter(draft, std::move(options)).write();
}
