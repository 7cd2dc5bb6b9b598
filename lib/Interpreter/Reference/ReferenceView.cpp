//===- ReferenceView.cpp - views, resolved to addresses -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables are read and checked when the view is made; a key's address is then a
// plain index into the pool.
//
//===----------------------------------------------------------------------===//

#include "ReferenceImpl.h"
#include <cmath>

using namespace mlir;
using namespace fi;
using namespace fi::reference;

std::pair<int64_t, int64_t> ViewValue::place(bool wantValues, int64_t request,
                                             int64_t key) const {
  if (!paged)
    return {0, firstRows[request] + key};
  const auto &table = wantValues && !valuePages.empty() ? valuePages : pages;
  return {table[request][key / pageSize], key % pageSize};
}

void *ViewValue::row(KVPart part, int64_t request, int64_t head,
                     int64_t key) const {
  return poolOf(part).at(indexOf(part, request, head, key));
}

const HostTensor &ViewValue::poolOf(KVPart part) const {
  return part == KVPart::Values ? values : part == KVPart::Tail ? tails : keys;
}

SmallVector<int64_t, 5> ViewValue::indexOf(KVPart part, int64_t request,
                                           int64_t head, int64_t key) const {
  bool wantValues = part == KVPart::Values;
  SmallVector<int64_t, 5> at;
  auto [page, token] = place(wantValues, request, key);
  if (paged)
    at.push_back(page);
  if (fused)
    at.push_back(wantValues ? 1 : 0);
  if (!hasHeads) {
    at.push_back(token);
  } else if (headsFirst) {
    at.push_back(head);
    at.push_back(token);
  } else {
    at.push_back(token);
    at.push_back(head);
  }
  at.push_back(0);
  return at;
}

bool ViewValue::sees(int64_t block, int64_t key) const {
  for (int64_t i = blockIndptr[block]; i < blockIndptr[block + 1]; ++i)
    if (blocks[i] == key / blockColumns)
      return true;
  return false;
}

double ViewValue::scale(bool wantValues, int64_t request, int64_t head,
                        int64_t key) const {
  const Scales &scales = wantValues ? valueScales : keyScales;
  auto [page, token] = place(wantValues, request, key);
  switch (scales.granularity) {
  case Granularity::Tensor:
    break;
  case Granularity::Head:
    return scales.tensor.getFloat({head});
  case Granularity::Page:
    return scales.tensor.getFloat({page, head});
  case Granularity::Token: {
    SmallVector<int64_t, 3> at;
    if (paged)
      at.push_back(page);
    at.push_back(headsFirst ? head : token);
    if (hasHeads)
      at.push_back(headsFirst ? token : head);
    return scales.tensor.getFloat(at);
  }
  }
  return scales.number;
}

void *ViewValue::blockScales(bool wantValues, int64_t request, int64_t head,
                             int64_t key) const {
  auto [page, token] = place(wantValues, request, key);
  SmallVector<int64_t, 4> at;
  if (paged)
    at.push_back(page);
  at.push_back(headsFirst ? head : token);
  at.push_back(headsFirst ? token : head);
  at.push_back(0);
  return (wantValues ? valueScales : keyScales).blocks.at(at);
}

void ViewValue::readRow(KVPart part, int64_t request, int64_t head, int64_t key,
                        MutableArrayRef<double> into) const {
  const HostTensor &pool = poolOf(part);
  DType type = pool.getType();
  int64_t bytes = getByteSize(type), step = pool.getStrides().back() * bytes;
  auto *at = static_cast<const char *>(row(part, request, head, key));
  bool wantValues = part == KVPart::Values;
  double factor = scale(wantValues, request, head, key);
  const Scales &scales = wantValues ? valueScales : keyScales;
  if (part == KVPart::Tail || !scales.block) {
    for (double &value : into) {
      value = readFloat(at, type) * factor;
      at += step;
    }
    return;
  }
  auto *codes =
      static_cast<const char *>(blockScales(wantValues, request, head, key));
  DType scaleType = scales.blocks.getType();
  int64_t scaleStep =
      scales.blocks.getStrides().back() * getByteSize(scaleType);
  for (auto [column, value] : llvm::enumerate(into)) {
    int64_t c = column, byte = readInteger(at + c / 2 * step, type);
    value = readFloat4(c % 2 ? byte >> 4 : byte) *
            readFloat(codes + c / scales.block * scaleStep, scaleType) * factor;
  }
}

/// QNT13, step by step in f32.
void fi::reference::quantiseBlock(
    ArrayRef<double> block, DType scaleType, float number, void *place,
    llvm::function_ref<void(int64_t, int64_t)> store) {
  float most = 0;
  for (double x : block)
    most = std::fmax(most, std::fabs(static_cast<float>(x)));
  float factor;
  if (scaleType == DType::F8E8M0FNU) {
    int exponent = most > 0 ? std::ilogb(most) - 2 : -126;
    factor = std::ldexp(1.0f, std::max(exponent, -126));
    writeFloat(place, scaleType, factor);
  } else {
    writeSaturated(place, scaleType, most / 6.0f / number);
    factor = static_cast<float>(readFloat(place, scaleType)) * number;
  }
  for (auto [c, x] : llvm::enumerate(block))
    store(static_cast<int64_t>(c),
          toFloat4(factor == 0 ? 0 : static_cast<float>(x) / factor));
}

void ViewValue::quantiseRow(bool wantValues, int64_t request, int64_t head,
                            int64_t key, ArrayRef<double> row) const {
  const Scales &scales = wantValues ? valueScales : keyScales;
  KVPart part = wantValues ? KVPart::Values : KVPart::Keys;
  const HostTensor &pool = poolOf(part);
  auto *codes = static_cast<char *>(this->row(part, request, head, key));
  auto *to = static_cast<char *>(blockScales(wantValues, request, head, key));
  DType scaleType = scales.blocks.getType();
  int64_t step = pool.getStrides().back() * getByteSize(pool.getType());
  int64_t scaleStep =
      scales.blocks.getStrides().back() * getByteSize(scaleType);
  auto number = static_cast<float>(scale(wantValues, request, head, key));
  int64_t block = scales.block;
  for (int64_t first = 0, e = row.size(); first < e; first += block) {
    quantiseBlock(row.slice(first, block), scaleType, number,
                  to + first / block * scaleStep, [&](int64_t c, int64_t code) {
                    char *byte = codes + (first + c) / 2 * step;
                    int64_t old = readInteger(byte, pool.getType());
                    writeInteger(byte, pool.getType(),
                                 c % 2 ? (old & 15) | code << 4
                                       : (old & ~INT64_C(15)) | code);
                  });
  }
}

/// QNT5: scales by page, token or block go with the pool of keys or values.
static bool takeScales(const BatchError &error, KVViewTypeInterface type,
                       const std::array<Scales, 2> &scales, ViewValue &view) {
  for (bool wantValues : {false, true}) {
    Scales &taken = wantValues ? view.valueScales : view.keyScales;
    taken = scales[wantValues];
    auto check = [&](const HostTensor &tensor, ArrayRef<int64_t> wanted) {
      for (auto [dim, size] : llvm::enumerate(wanted))
        if (tensor.getSize(dim) != size)
          return error(Twine("expected the scales of ") +
                       (wantValues ? "values" : "keys") + " to have size " +
                       Twine(size) + " in dimension " + Twine(dim) +
                       " like their pool, but got " +
                       Twine(tensor.getSize(dim)) + " [QNT5]");
      return true;
    };
    if (taken.block) {
      const HostTensor &pool = wantValues ? view.values : view.keys;
      SmallVector<int64_t> wanted(pool.getShape());
      wanted.back() =
          (wantValues ? type.getValueDim() : type.getKeyDim()) / taken.block;
      if (view.fused)
        wanted.erase(wanted.begin() + 1);
      if (!check(taken.blocks, wanted))
        return false;
    }
    auto per = getNumberGranularity(type, wantValues);
    if (!per || per == Granularity::Tensor)
      continue;
    const HostTensor &pool = wantValues ? view.values : view.keys;
    // [pages, (2,) tokens, heads, dim] or the like: without fusing and dim.
    SmallVector<int64_t> wanted(pool.getShape());
    wanted.pop_back();
    if (view.fused)
      wanted.erase(wanted.begin() + 1);
    if (per == Granularity::Head)
      wanted = {type.getKVHeads()};
    else if (per == Granularity::Page)
      wanted = {pool.getSize(0), type.getKVHeads()};
    if (!check(taken.tensor, wanted))
      return false;
  }
  return true;
}

bool BatchError::operator()(const llvm::Twine &message) const {
  text = ("'" + op->getName().getStringRef() + "' op " + message).str();
  return false;
}

bool fi::reference::readIndptr(const BatchError &error,
                               const NamedTensor &table, int64_t end,
                               StringRef what, std::vector<int64_t> &values) {
  int64_t count = table.tensor.getSize(0);
  if (count < 1)
    return error("expected operand '" + table.name +
                 "' to have one entry more than there are requests, but got 0 "
                 "entries [BAT2]");
  values.clear();
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = table.tensor.getInteger({i});
    int64_t least = i ? values.back() : 0;
    if (value < least)
      return error("expected operand '" + table.name +
                   "' not to fall and not to be negative, but got " +
                   Twine(value) + " at entry " + Twine(i) + " after " +
                   Twine(least) + " [BAT2]");
    values.push_back(value);
  }
  if (values.back() > end)
    return error("expected operand '" + table.name + "' to end at most at " +
                 Twine(end) + ", the number of " + what + ", but got " +
                 Twine(values.back()) + " [BAT4]");
  return true;
}

bool fi::reference::readRows(const BatchError &error,
                             std::optional<HostTensor> rows, int64_t queryRows,
                             int64_t requests, std::vector<int64_t> &values) {
  if (!rows) {
    if (requests != 1)
      return error("expected a view of 1 request where there is no operand "
                   "'rows', but got " +
                   Twine(requests) + " [BAT3]");
    values = {0, queryRows};
    return true;
  }
  if (!readIndptr(error, {"rows", *rows}, queryRows, "rows", values))
    return false;
  if (static_cast<int64_t>(values.size()) - 1 != requests)
    return error("expected operand 'rows' to have " + Twine(requests + 1) +
                 " entries, one more than the view has requests, but got " +
                 Twine(values.size()) + " [BAT3]");
  return true;
}

/// One entry for each request at least; none given: 0.
static bool readOrigins(const BatchError &error,
                        std::optional<HostTensor> origin, ViewValue &view) {
  view.origins.assign(view.getRequests(), 0);
  if (!origin)
    return true;
  if (origin->getSize(0) < view.getRequests())
    return error("expected operand 'origin' to have an entry for each of " +
                 Twine(view.getRequests()) + " requests, but got " +
                 Twine(origin->getSize(0)) + " [BAT8]");
  for (int64_t r = 0; r < view.getRequests(); ++r)
    view.origins[r] = origin->getInteger({r});
  return true;
}

/// The pages of one request, from `count` entries of a table, in pools of
/// `limit` pages.
static bool readPages(const BatchError &error, StringRef name, int64_t limit,
                      int64_t request, int64_t count,
                      llvm::function_ref<int64_t(int64_t)> entry,
                      std::vector<int64_t> &pages) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t page = entry(i);
    if (page < 0 || page >= limit)
      return error("expected operand '" + name +
                   "' to hold indices of the pool's " + Twine(limit) +
                   " pages, but got " + Twine(page) + " as page " + Twine(i) +
                   " of request " + Twine(request) + " [BAT5]");
    pages.push_back(page);
  }
  return true;
}

/// A pool whose type has dynamic sizes against what the view's type says; -1 is
/// any size.
static bool checkPool(const BatchError &error, StringRef name,
                      const HostTensor &pool, ArrayRef<int64_t> wanted) {
  for (auto [dim, size] : llvm::enumerate(wanted))
    if (size >= 0 && pool.getSize(dim) != size)
      return error("expected operand '" + name + "' of size " + Twine(size) +
                   " in dimension " + Twine(dim) +
                   " by the view's type, but got " + Twine(pool.getSize(dim)) +
                   " [BAT9]");
  return true;
}

/// Lengths and pages of each request, by tables; the pools are known.
static bool readTables(const BatchError &error, bool isDense, bool hasTwo,
                       ArrayRef<HostTensor> tables, ViewValue &view) {
  int64_t keyPages = view.keys.getSize(0), valuePages = view.values.getSize(0);
  if (!hasTwo)
    keyPages = std::min(keyPages, valuePages);
  if (view.tails.getRank())
    keyPages = std::min(keyPages, view.tails.getSize(0));
  const HostTensor &table = tables[isDense ? 0 : 1];
  const HostTensor &valueTable = tables[(isDense ? 0 : 1) + (hasTwo ? 1 : 0)];
  /// The pages of one request, of keys and of values.
  auto readBoth =
      [&](int64_t request, int64_t count,
          llvm::function_ref<int64_t(const HostTensor &, int64_t)> entry) {
        return readPages(
                   error, "pages", keyPages, request, count,
                   [&](int64_t i) { return entry(table, i); },
                   view.pages.emplace_back()) &&
               (!hasTwo || readPages(
                               error, "value_pages", valuePages, request, count,
                               [&](int64_t i) { return entry(valueTable, i); },
                               view.valuePages.emplace_back()));
      };
  if (isDense) {
    const HostTensor &lengths = tables.back();
    int64_t requests = lengths.getSize(0);
    for (auto [name, one] :
         {std::pair("pages", table), std::pair("value_pages", valueTable)})
      if (one.getSize(0) < requests)
        return error(Twine("expected operand '") + name +
                     "' to have a row for each of " + Twine(requests) +
                     " requests, but got " + Twine(one.getSize(0)) + " [BAT7]");
    for (int64_t r = 0; r < requests; ++r) {
      int64_t length = lengths.getInteger({r});
      int64_t most =
          std::min(table.getSize(1), valueTable.getSize(1)) * view.pageSize;
      if (length < 0 || length > most)
        return error("expected operand 'lengths' between 0 and " + Twine(most) +
                     " (the row of operand 'pages' has no more), but got " +
                     Twine(length) + " for request " + Twine(r) + " [BAT7]");
      view.lengths.push_back(length);
      int64_t count = (length + view.pageSize - 1) / view.pageSize;
      if (!readBoth(r, count, [&](const HostTensor &from, int64_t i) {
            return from.getInteger({r, i});
          }))
        return false;
    }
    return true;
  }

  const HostTensor &last = tables.back();
  std::vector<int64_t> indptr;
  if (!readIndptr(error, {"indptr", tables[0]}, table.getSize(0),
                  "entries of operand 'pages'", indptr) ||
      !readIndptr(error, {"indptr", tables[0]}, valueTable.getSize(0),
                  "entries of operand 'value_pages'", indptr))
    return false;
  int64_t requests = indptr.size() - 1;
  if (last.getSize(0) < requests)
    return error("expected operand 'last' to have an entry for each of " +
                 Twine(requests) + " requests, but got " +
                 Twine(last.getSize(0)) + " [BAT6]");
  for (int64_t r = 0; r < requests; ++r) {
    int64_t count = indptr[r + 1] - indptr[r];
    if (!readBoth(r, count, [&](const HostTensor &from, int64_t i) {
          return from.getInteger({indptr[r] + i});
        }))
      return false;
    if (count == 0) {
      // Whatever `last` says.
      view.lengths.push_back(0);
      continue;
    }
    int64_t used = last.getInteger({r});
    if (used < 1 || used > view.pageSize)
      return error("expected operand 'last' between 1 and the page size " +
                   Twine(view.pageSize) + ", but got " + Twine(used) +
                   " for request " + Twine(r) + " [BAT6]");
    view.lengths.push_back((count - 1) * view.pageSize + used);
  }
  return true;
}

/// The keys of a page, by the pools, which agree.
static bool readPageSize(const BatchError &error, unsigned tokenDim,
                         StringRef otherName, const HostTensor &other,
                         ViewValue &view) {
  view.pageSize = view.keys.getSize(tokenDim);
  if (view.pageSize < 1)
    return error("expected pages of at least 1 key, but got operand 'keys' "
                 "with pages of 0 [BAT9]");
  if (other.getSize(tokenDim) != view.pageSize)
    return error("expected operand '" + otherName + "' to have pages of " +
                 Twine(view.pageSize) + " keys like operand 'keys', but got " +
                 Twine(other.getSize(tokenDim)) + " [BAT9]");
  return true;
}

bool fi::reference::makePagedView(PagedViewOp op, ArrayRef<HostTensor> pools,
                                  ArrayRef<HostTensor> tables,
                                  std::optional<HostTensor> origin,
                                  const std::array<Scales, 2> &scales,
                                  ViewValue &view, std::string &text) {
  BatchError error(op, text);
  PagedKVType type = op.getType();
  view.paged = true;
  view.fused = type.getFused();
  view.headsFirst = type.getOrder() == HeadOrder::HND;
  view.keys = pools[0];
  view.values = view.fused ? pools[0] : pools[1];
  int64_t page = ShapedType::isDynamic(type.getPage()) ? -1 : type.getPage();
  for (bool wantValues : {false, true}) {
    SmallVector<int64_t> wanted = {-1};
    if (view.fused)
      wanted.push_back(2);
    wanted.push_back(view.headsFirst ? type.getHeads() : page);
    wanted.push_back(view.headsFirst ? page : type.getHeads());
    wanted.push_back(
        type.getPoolColumns(wantValues ? KVPart::Values : KVPart::Keys));
    if (!checkPool(error, wantValues ? "values" : "keys",
                   wantValues ? view.values : view.keys, wanted))
      return false;
  }
  unsigned tokenDim = (view.fused ? 2 : 1) + (view.headsFirst ? 1 : 0);
  return readPageSize(error, tokenDim, "values", view.values, view) &&
         takeScales(error, type, scales, view) &&
         readTables(error, type.getDense(), type.getTwoTables(), tables,
                    view) &&
         readOrigins(error, origin, view);
}

bool fi::reference::makeLatentView(LatentViewOp op, ArrayRef<HostTensor> pools,
                                   ArrayRef<HostTensor> tables,
                                   std::optional<HostTensor> origin,
                                   const std::array<Scales, 2> &scales,
                                   ViewValue &view, std::string &text) {
  BatchError error(op, text);
  LatentKVType type = op.getType();
  view.paged = true;
  view.hasHeads = false;
  view.keys = view.values = pools[0];
  view.tails = pools[1];
  int64_t page = ShapedType::isDynamic(type.getPage()) ? -1 : type.getPage();
  return checkPool(error, "latents", view.keys, {-1, page, type.getLatent()}) &&
         checkPool(error, "tails", view.tails, {-1, page, type.getTail()}) &&
         readPageSize(error, /*tokenDim=*/1, "tails", view.tails, view) &&
         takeScales(error, type, scales, view) &&
         readTables(error, type.getDense(), /*hasTwo=*/false, tables, view) &&
         readOrigins(error, origin, view);
}

/// A view without pages.
template <typename OpTy>
static bool makeTokens(const BatchError &error, OpTy op,
                       ArrayRef<HostTensor> pools,
                       std::optional<HostTensor> indptr,
                       std::optional<HostTensor> origin, ViewValue &view) {
  auto type = op.getType();
  view.headsFirst = type.getOrder() == HeadOrder::HND;
  view.keys = pools[0];
  view.values = pools[1];
  for (bool wantValues : {false, true}) {
    SmallVector<int64_t> wanted = {-1, type.getHeads()};
    if (view.headsFirst)
      std::swap(wanted[0], wanted[1]);
    wanted.push_back(
        type.getPoolColumns(wantValues ? KVPart::Values : KVPart::Keys));
    if (!checkPool(error, wantValues ? "values" : "keys",
                   wantValues ? view.values : view.keys, wanted))
      return false;
  }
  unsigned tokenDim = view.headsFirst ? 1 : 0;
  int64_t tokens = view.keys.getSize(tokenDim);
  if (view.values.getSize(tokenDim) != tokens)
    return error("expected operand 'values' to have " + Twine(tokens) +
                 " tokens like operand 'keys', but got " +
                 Twine(view.values.getSize(tokenDim)) + " [BAT9]");
  std::vector<int64_t> bounds = {0, tokens};
  if (indptr &&
      !readIndptr(error, {"indptr", *indptr}, tokens, "tokens", bounds))
    return false;
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    view.firstRows.push_back(bounds[r]);
    view.lengths.push_back(bounds[r + 1] - bounds[r]);
  }
  return readOrigins(error, origin, view);
}

bool fi::reference::makeRaggedView(RaggedViewOp op, ArrayRef<HostTensor> pools,
                                   std::optional<HostTensor> indptr,
                                   std::optional<HostTensor> origin,
                                   const std::array<Scales, 2> &scales,
                                   ViewValue &view, std::string &text) {
  BatchError error(op, text);
  return makeTokens(error, op, pools, indptr, origin, view) &&
         takeScales(error, op.getType(), scales, view);
}

bool fi::reference::makeBsrView(BsrViewOp op, ArrayRef<HostTensor> pools,
                                std::optional<HostTensor> indptr,
                                ArrayRef<HostTensor> blocks,
                                std::optional<HostTensor> origin,
                                const std::array<Scales, 2> &scales,
                                ViewValue &view, std::string &text) {
  BatchError error(op, text);
  if (!makeTokens(error, op, pools, indptr, origin, view) ||
      !takeScales(error, op.getType(), scales, view) ||
      !readIndptr(error, {"row_indptr", blocks[0]}, blocks[1].getSize(0),
                  "entries of operand 'columns'", view.blockIndptr))
    return false;
  view.blockRows = op.getType().getRows();
  view.blockColumns = op.getType().getColumns();
  for (int64_t i = 0; i < view.blockIndptr.back(); ++i)
    view.blocks.push_back(blocks[1].getInteger({i}));
  return true;
}

bool fi::reference::findBlocks(const BatchError &error, const ViewValue &view,
                               ArrayRef<int64_t> rows,
                               std::vector<int64_t> &first) {
  first = {0};
  for (int64_t r = 0; r < view.getRequests(); ++r) {
    int64_t count = rows[r + 1] - rows[r];
    first.push_back(first.back() +
                    (count + view.blockRows - 1) / view.blockRows);
  }
  int64_t known = view.blockIndptr.size() - 1;
  if (known < first.back())
    return error("expected operand 'row_indptr' to have " +
                 Twine(first.back() + 1) +
                 " entries, one more than there are "
                 "blocks of rows, but got " +
                 Twine(known + 1) + " [BAT13]");
  for (int64_t r = 0; r < view.getRequests(); ++r) {
    int64_t end = (view.lengths[r] + view.blockColumns - 1) / view.blockColumns;
    for (int64_t block = first[r]; block < first[r + 1]; ++block)
      for (int64_t i = view.blockIndptr[block]; i < view.blockIndptr[block + 1];
           ++i) {
        int64_t least =
            i > view.blockIndptr[block] ? view.blocks[i - 1] + 1 : 0;
        if (view.blocks[i] < least || view.blocks[i] >= end)
          return error("expected operand 'columns' to rise within the " +
                       Twine(end) + " blocks of keys of request " + Twine(r) +
                       ", but got " + Twine(view.blocks[i]) + " at entry " +
                       Twine(i) + " [BAT13]");
      }
  }
  return true;
}
