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
  void drawCodes();
  std::string addScales();
  /// The sizes of a pool with rows of that many columns, and its type but for
  /// the element.
  std::string poolType(bool isValue, int64_t columns, bool hasParts,
                       std::vector<int64_t> &shape) const;
  void drawOrigins();
  std::string pagedTables();
  std::string denseTables();
  bool hasTables() const { return kind == Paged || kind == Dense; }
  std::string raggedTables();
  std::string blockTables();
  /// Pages of a pool for that many entries of a table; `slots` becomes its
  /// size.
  std::vector<int64_t> drawPages(int64_t count, const std::string &choice,
                                 int64_t &slots);
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
  bool hasTwoTables = false, isBsr = false;
  int64_t page = 8;
  /// Of a block-sparse view.
  int64_t blockRows = 0, blockColumns = 0;
  /// Pages or tokens of the pools.
  int64_t slots = 0, valueSlots = 0;
  /// What pools hold, and what shares a scale, where that is codes.
  std::string keyStored, valueStored, keyScales, valueScales;
  /// Columns that share a scale of their own, where codes are of 4 bits.
  int64_t keyBlock = 0, valueBlock = 0;
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
  if (options.tailDim && !hasTables())
    kind = Paged;
  view.isPaged = hasTables();
  isBsr = kind == Ragged && !options.rows.empty() && draft.flag("bsr", 3);
  isHND = draft.flag("hnd");
  view.keyElement = draft.pick("k.element", elements);
  view.valueElement = draft.flag("v.element.differs", 3)
                          ? draft.pick("v.element", elements)
                          : view.keyElement;
  if (options.tailDim)
    view.valueElement = view.keyElement;
  keyStored = view.keyElement;
  valueStored = view.valueElement;
  view.newKeys = view.keyElement;
  view.newValues = view.valueElement;
  if (!options.tailDim && draft.flag("codes", 4))
    drawCodes();
  if (view.isPaged) {
    page = draft.pick("page", pages);
    isPageDynamic = draft.flag("page.dynamic", 4);
    isFused = !options.tailDim && keyScales.empty() && !keyBlock &&
              view.keyElement == view.valueElement &&
              draft.keyDim == draft.valueDim && draft.flag("fused", 4);
    hasTwoTables = !isFused && !options.tailDim && draft.flag("two_tables", 4);
  }
  isMemRef = options.isWritten || draft.flag("pool.memref");
}

/// Codes of eight bits with scales, of keys and of values; or of four bits,
/// whose blocks have scales.
void ViewWriter::drawCodes() {
  static const char *const codes[] = {"f8E4M3FN", "f8E5M2", "i8"};
  static const char *const shared[] = {"tensor", "head", "token", "page"};
  auto draw = [&](const std::string &name, std::string &stored,
                  std::string &scales, std::string &element, int64_t &block,
                  int64_t dim) {
    static const int64_t blocks[] = {0, 16, 32};
    block = blocks[draft.rarely(name + ".blocks", 3, 3)];
    if (block && dim % block == 0) {
      stored = "i8";
      bool hasHeads = block == 16 && draft.flag(name + ".blocks.heads", 3);
      scales = block == 32 ? "" : hasHeads ? "head" : "tensor";
      element = block == 32
                    ? "!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>"
                    : std::string("!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN") +
                          (hasHeads ? ", per = head>" : ">");
      return;
    }
    block = 0;
    stored = draft.pick(name + ".codes", codes);
    scales = draft.pick(name + ".scales", shared);
    if (scales == "page" && !view.isPaged)
      scales = "token";
    element = "!fi.scaled<" + stored + ", per = " + scales + ", by = f32>";
  };
  draw("k", keyStored, keyScales, view.keyElement, keyBlock, draft.keyDim);
  valueStored = keyStored;
  valueScales = keyScales;
  valueBlock = keyBlock;
  view.valueElement = view.keyElement;
  bool isPossible = !keyBlock || draft.valueDim % keyBlock == 0;
  if (draft.flag("v.codes.differ") || !isPossible)
    draw("v", valueStored, valueScales, view.valueElement, valueBlock,
         draft.valueDim);
  // What is appended is divided by scales.
  view.newKeys = view.newValues = draft.queryElement;
}

std::string ViewWriter::addScales() {
  if (keyScales.empty() && !keyBlock)
    return "";
  auto addBlocks = [&](bool isValue) {
    int64_t block = isValue ? valueBlock : keyBlock;
    std::vector<int64_t> shape;
    std::string type =
        poolType(isValue, (isValue ? draft.valueDim : draft.keyDim) / block,
                 /*hasParts=*/false, shape);
    // An append writes them.
    return draft.run(name(isValue ? "vb" : "kb"),
                     (options.isWritten ? "memref<" : "tensor<") + type +
                         (block == 16 ? "f8E4M3FN>" : "f8E8M0FNU>"),
                     llvm::json::Object{{"random", "uniform"},
                                        {"low", 0.25},
                                        {"high", 2.0},
                                        {"shape", toJson(shape)}});
  };
  auto add = [&](bool isValue) {
    const std::string &kind = isValue ? valueScales : keyScales;
    bool isWide = (isValue ? valueStored : keyStored) == "i8" &&
                  !(isValue ? valueBlock : keyBlock);
    double low = isWide ? 0.01 : 0.5, high = isWide ? 0.05 : 1.5;
    std::string base = name(isValue ? "vs" : "ks");
    std::string heads = std::to_string(draft.kvHeads);
    int64_t count = isValue ? valueSlots : slots;
    std::vector<int64_t> shape;
    std::string type;
    if (kind == "tensor")
      return draft.run(base, "f32", isWide ? 0.02 : 0.75);
    if (kind == "head") {
      shape = {draft.kvHeads};
      type = heads + "x";
    } else if (kind == "page") {
      shape = {count, draft.kvHeads};
      type = "?x" + heads + "x";
    } else if (view.isPaged) {
      std::string pageText = isPageDynamic ? "?" : std::to_string(page);
      shape = {count, isHND ? draft.kvHeads : page,
               isHND ? page : draft.kvHeads};
      type = "?x" + (isHND ? heads + "x" + pageText : pageText + "x" + heads) +
             "x";
    } else {
      shape = {isHND ? draft.kvHeads : count, isHND ? count : draft.kvHeads};
      type = isHND ? heads + "x?x" : "?x" + heads + "x";
    }
    return draft.run(base, "tensor<" + type + "f32>",
                     llvm::json::Object{{"random", "uniform"},
                                        {"low", low},
                                        {"high", high},
                                        {"shape", toJson(shape)}});
  };
  std::string names, types;
  auto list = [&](const std::string &value) {
    names += (names.empty() ? "" : ", ") + value;
    types += (types.empty() ? "" : ", ") + draft.typeOf(value);
  };
  for (bool isValue : {false, true}) {
    if (isValue ? valueBlock : keyBlock)
      list(addBlocks(isValue));
    if (!(isValue ? valueScales : keyScales).empty())
      list(add(isValue));
  }
  return " scales(" + names + " : " + types + ")";
}

std::string ViewWriter::poolType(bool isValue, int64_t columns, bool hasParts,
                                 std::vector<int64_t> &shape) const {
  int64_t count = isValue ? valueSlots : slots;
  std::string heads = std::to_string(draft.kvHeads), type;
  if (view.isPaged) {
    shape = {count};
    type = "?x";
    std::string pageText = isPageDynamic ? "?" : std::to_string(page);
    if (options.tailDim) {
      shape = {count, page, columns};
      return type + pageText + "x" + std::to_string(columns) + "x";
    }
    if (hasParts) {
      shape.push_back(2);
      type += "2x";
    }
    shape.push_back(isHND ? draft.kvHeads : page);
    shape.push_back(isHND ? page : draft.kvHeads);
    type += (isHND ? heads + "x" + pageText : pageText + "x" + heads) + "x";
  } else {
    shape = {isHND ? draft.kvHeads : count, isHND ? count : draft.kvHeads};
    type = isHND ? heads + "x?x" : "?x" + heads + "x";
  }
  shape.push_back(columns);
  return type + std::to_string(columns) + "x";
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

std::vector<int64_t> ViewWriter::drawPages(int64_t count,
                                           const std::string &choice,
                                           int64_t &slots) {
  int64_t sharing =
      options.isWritten ? 0 : draft.rarely(choice + ".shared", 4, 3);
  // Which of the entries are pages of their own.
  std::vector<int64_t> entries;
  int64_t used = 0;
  for (int64_t i = 0; i < count; ++i) {
    bool isShared = sharing && used > 0 && i % 3 == 2;
    entries.push_back(isShared ? (sharing == 1 ? used - 1 : i % used) : used++);
  }
  slots = used + draft.choose(choice + ".unused", 3);
  std::vector<int64_t> order(slots);
  std::iota(order.begin(), order.end(), 0);
  if (draft.flag(choice + ".shuffled")) {
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
  std::string type = draft.indexTensor();
  auto drawTable = [&](const std::string &base, int64_t &size) {
    std::vector<int64_t> pages = drawPages(indptr.back() - begin, base, size);
    pages.insert(pages.begin(), begin, kGarbage);
    pages.insert(pages.end(), draft.rarely(base + ".more", 4, 3), kGarbage);
    return plan(base, type, toJson(pages)) + ", ";
  };
  std::string tables = " tables(" + plan("indptr", type, toJson(indptr)) + ", ";
  tables += drawTable("pages", slots);
  valueSlots = slots;
  if (hasTwoTables)
    tables += drawTable("value_pages", valueSlots);
  if (draft.flag("last.more", 5))
    last.push_back(kGarbage);
  return tables + plan("last", type, toJson(last)) + " : " + type + ", " +
         type + ", " + (hasTwoTables ? type + ", " : "") + type + ")";
}

std::string ViewWriter::denseTables() {
  int64_t most = 0, count = 0;
  for (int64_t length : view.lengths) {
    most = std::max(most, pagesOf(length, page));
    count += pagesOf(length, page);
  }
  int64_t width = most + draft.rarely("table.more", 3, 3);
  std::string tableType = "tensor<?x?x" + draft.indexType + ">";
  auto drawTable = [&](const std::string &base, int64_t &size) {
    std::vector<int64_t> pages = drawPages(count, base, size);
    std::vector<std::vector<int64_t>> table;
    size_t next = 0;
    for (int64_t length : view.lengths) {
      table.emplace_back();
      for (int64_t i = 0; i < width; ++i)
        table.back().push_back(i < pagesOf(length, page) ? pages[next++]
                                                         : kGarbage);
    }
    return plan(base, tableType, toJson(table, width)) + ", ";
  };
  std::string tables = " tables(" + drawTable("pages", slots);
  valueSlots = slots;
  if (hasTwoTables)
    tables += drawTable("value_pages", valueSlots);
  return tables + plan("lengths", draft.indexTensor(), toJson(view.lengths)) +
         " : " + tableType + ", " + (hasTwoTables ? tableType + ", " : "") +
         draft.indexTensor() + ")";
}

std::string ViewWriter::raggedTables() {
  std::vector<int64_t> indptr = {draft.rarely("indptr.begin", 4, 4)};
  for (int64_t length : view.lengths)
    indptr.push_back(indptr.back() + length);
  valueSlots = slots = indptr.back() + draft.rarely("tokens.more", 4, 3);
  return " indptr(" + plan("indptr", draft.indexTensor(), toJson(indptr)) +
         " : " + draft.indexTensor() + ")";
}

/// Of each block of rows some blocks of keys, all of them, or none.
std::string ViewWriter::blockTables() {
  static const int64_t rows[] = {16, 1, 3, 17, 64};
  static const int64_t columns[] = {16, 32, 64};
  blockRows = draft.pick("bsr.rows", rows);
  blockColumns = draft.pick("bsr.columns", columns);
  int64_t density = draft.choose("bsr.density", 4);
  Random random(blockRows * 100 + blockColumns);
  std::vector<int64_t> begins = {0}, listed;
  for (auto [r, length] : llvm::enumerate(view.lengths))
    for (int64_t row = 0; row < options.rows[r]; row += blockRows) {
      for (int64_t block = 0; block * blockColumns < length; ++block)
        if (density == 0 || (density < 3 && random.below(1 + density) == 0))
          listed.push_back(block);
      begins.push_back(static_cast<int64_t>(listed.size()));
    }
  listed.insert(listed.end(), draft.rarely("bsr.more", 4, 3), kGarbage);
  std::string type = draft.indexTensor();
  return " blocks(" + plan("row_indptr", type, toJson(begins)) + ", " +
         plan("columns", type, toJson(listed)) + " : " + type + ", " + type +
         ")";
}

void ViewWriter::addPools() {
  auto add = [&](bool isValue) {
    int64_t dim = isValue ? draft.valueDim : draft.keyDim;
    if (options.tailDim)
      dim = isValue ? options.tailDim : draft.valueDim;
    bool isPacked = (isValue ? valueBlock : keyBlock) != 0;
    std::vector<int64_t> shape;
    std::string type =
        (isMemRef ? "memref<" : "tensor<") +
        poolType(isValue, isPacked ? dim / 2 : dim, isFused, shape) +
        (isValue ? valueStored : keyStored) + ">";
    std::string base = name(isValue ? "v" : "k");
    // Codes are of all sizes.
    std::string value = draft.run(
        base, type,
        isPacked
            ? llvm::json::Value(llvm::json::Object{{"random", "uniform"},
                                                   {"low", -128},
                                                   {"high", 127},
                                                   {"shape", toJson(shape)}})
        : !(isValue ? valueScales : keyScales).empty()
            ? normal((isValue ? valueStored : keyStored) == "i8" ? 40 : 1,
                     shape)
        : isValue ? drawValues(draft, base, shape)
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
    if (isBsr)
      tables += blockTables();
    break;
  case Contiguous:
    valueSlots = slots = view.lengths[0];
    break;
  }
  drawOrigins();
  addPools();
  std::string scales = addScales();
  if (options.tailDim) {
    view.type =
        "!fi.latent_kv<" + std::to_string(draft.valueDim) + "+" +
        std::to_string(options.tailDim) + "x" + view.keyElement +
        ", page = " + (isPageDynamic ? "?" : std::to_string(page)) +
        (draft.indexType != "i32" ? ", index = " + draft.indexType : "") +
        (kind == Dense ? ", table = dense>" : ">");
    draft.add(view.value + " = fi.view.latent " + pools + tables +
              originClause + " : " + poolTypes + " -> " + view.type);
    return std::move(view);
  }
  std::string end = isBsr ? std::to_string(blockColumns) + "x"
                    : view.isPaged
                        ? (isPageDynamic ? "?" : std::to_string(page)) + "x"
                        : "";
  end += std::to_string(draft.kvHeads) + "x" + std::to_string(draft.keyDim) +
         "x" + view.keyElement +
         (isHND   ? ", HND"
          : isBsr ? ""
                  : ", NHD");
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
  if (hasTwoTables)
    end += ", two_tables";
  if (isBsr)
    end += ", rows = " + std::to_string(blockRows);
  std::string layout = isBsr ? "bsr" : view.isPaged ? "paged" : "ragged";
  view.type = "!fi." + layout + "_kv<" + end + ">";
  draft.add(view.value + " = fi.view." + layout + " " + pools + tables +
            scales + originClause + " : " + poolTypes + " -> " + view.type);
  return std::move(view);
}

} // namespace

ViewDraft fi::fuzz::drawView(Draft &draft, ViewOptions options) {
  return ViewWriter(draft, std::move(options)).write();
}
