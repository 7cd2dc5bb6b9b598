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

using namespace mlir;
using namespace fi;
using namespace fi::reference;

void *ViewValue::row(bool wantValues, int64_t request, int64_t head,
                     int64_t key) const {
  const HostTensor &pool = wantValues ? values : keys;
  SmallVector<int64_t, 5> at;
  int64_t token = key;
  if (paged) {
    at.push_back(pages[request][key / pageSize]);
    if (fused)
      at.push_back(wantValues ? 1 : 0);
    token = key % pageSize;
  } else {
    token = firstRows[request] + key;
  }
  if (headsFirst) {
    at.push_back(head);
    at.push_back(token);
  } else {
    at.push_back(token);
    at.push_back(head);
  }
  at.push_back(0);
  return pool.at(at);
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

/// The pages of one request, from `count` entries of a table.
static bool readPages(const BatchError &error, const ViewValue &view,
                      int64_t request, int64_t count,
                      llvm::function_ref<int64_t(int64_t)> entry,
                      std::vector<int64_t> &pages) {
  int64_t limit = std::min(view.keys.getSize(0), view.values.getSize(0));
  for (int64_t i = 0; i < count; ++i) {
    int64_t page = entry(i);
    if (page < 0 || page >= limit)
      return error("expected operand 'pages' to hold indices of the pool's " +
                   Twine(limit) + " pages, but got " + Twine(page) +
                   " as page " + Twine(i) + " of request " + Twine(request) +
                   " [BAT5]");
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

bool fi::reference::makePagedView(PagedViewOp op, ArrayRef<HostTensor> pools,
                                  ArrayRef<HostTensor> tables,
                                  std::optional<HostTensor> origin,
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
    wanted.push_back(wantValues ? type.getValueDim() : type.getKeyDim());
    if (!checkPool(error, wantValues ? "values" : "keys",
                   wantValues ? view.values : view.keys, wanted))
      return false;
  }
  unsigned tokenDim = (view.fused ? 2 : 1) + (view.headsFirst ? 1 : 0);
  view.pageSize = view.keys.getSize(tokenDim);
  if (view.pageSize < 1)
    return error("expected pages of at least 1 key, but got operand 'keys' "
                 "with pages of 0 [BAT9]");
  if (view.values.getSize(tokenDim) != view.pageSize)
    return error("expected operand 'values' to have pages of " +
                 Twine(view.pageSize) + " keys like operand 'keys', but got " +
                 Twine(view.values.getSize(tokenDim)) + " [BAT9]");

  if (type.getDense()) {
    const HostTensor &table = tables[0], &lengths = tables[1];
    int64_t requests = lengths.getSize(0);
    if (table.getSize(0) < requests)
      return error("expected operand 'pages' to have a row for each of " +
                   Twine(requests) + " requests, but got " +
                   Twine(table.getSize(0)) + " [BAT7]");
    for (int64_t r = 0; r < requests; ++r) {
      int64_t length = lengths.getInteger({r});
      int64_t most = table.getSize(1) * view.pageSize;
      if (length < 0 || length > most)
        return error("expected operand 'lengths' between 0 and " + Twine(most) +
                     " (the row of operand 'pages' has no more), but got " +
                     Twine(length) + " for request " + Twine(r) + " [BAT7]");
      view.lengths.push_back(length);
      int64_t count = (length + view.pageSize - 1) / view.pageSize;
      if (!readPages(
              error, view, r, count,
              [&](int64_t i) { return table.getInteger({r, i}); },
              view.pages.emplace_back()))
        return false;
    }
    return readOrigins(error, origin, view);
  }

  const HostTensor &table = tables[1], &last = tables[2];
  std::vector<int64_t> indptr;
  if (!readIndptr(error, {"indptr", tables[0]}, table.getSize(0),
                  "entries of operand 'pages'", indptr))
    return false;
  int64_t requests = indptr.size() - 1;
  if (last.getSize(0) < requests)
    return error("expected operand 'last' to have an entry for each of " +
                 Twine(requests) + " requests, but got " +
                 Twine(last.getSize(0)) + " [BAT6]");
  for (int64_t r = 0; r < requests; ++r) {
    int64_t count = indptr[r + 1] - indptr[r];
    if (!readPages(
            error, view, r, count,
            [&](int64_t i) { return table.getInteger({indptr[r] + i}); },
            view.pages.emplace_back()))
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
  return readOrigins(error, origin, view);
}

bool fi::reference::makeRaggedView(RaggedViewOp op, ArrayRef<HostTensor> pools,
                                   std::optional<HostTensor> indptr,
                                   std::optional<HostTensor> origin,
                                   ViewValue &view, std::string &text) {
  BatchError error(op, text);
  view.headsFirst = op.getType().getOrder() == HeadOrder::HND;
  view.keys = pools[0];
  view.values = pools[1];
  for (bool wantValues : {false, true}) {
    SmallVector<int64_t> wanted = {-1, op.getType().getHeads()};
    if (view.headsFirst)
      std::swap(wanted[0], wanted[1]);
    wanted.push_back(wantValues ? op.getType().getValueDim()
                                : op.getType().getKeyDim());
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
