//===- MaskBounds.cpp - Which keys a tile of rows may see -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval arithmetic over mask bounds, and the cut into spans.
//
//===----------------------------------------------------------------------===//
#include "MaskBounds.h"

namespace fi::runtime {
namespace {

constexpr Interval everything = {INT64_MIN, INT64_MAX};
/// A load over more elements than this is not looked at.
constexpr int64_t maxLoadElements = 4096;

Interval add(Interval a, Interval b) {
  Interval r;
  if (__builtin_add_overflow(a.least, b.least, &r.least) ||
      __builtin_add_overflow(a.most, b.most, &r.most))
    return everything;
  return r;
}

Interval sub(Interval a, Interval b) {
  Interval r;
  if (__builtin_sub_overflow(a.least, b.most, &r.least) ||
      __builtin_sub_overflow(a.most, b.least, &r.most))
    return everything;
  return r;
}

Interval mul(Interval a, Interval b) {
  Interval r = {INT64_MAX, INT64_MIN};
  for (int64_t x : {a.least, a.most})
    for (int64_t y : {b.least, b.most}) {
      int64_t product;
      if (__builtin_mul_overflow(x, y, &product))
        return everything;
      r.least = std::min(r.least, product);
      r.most = std::max(r.most, product);
    }
  return r;
}

int64_t floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t ceilDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) == (b < 0)) ? q + 1 : q;
}

/// Rounded division is monotone in each operand while the divisor keeps its
/// sign, so that the corners bound it.
Interval divide(Interval a, Interval b, int64_t (*op)(int64_t, int64_t)) {
  if (b.least <= 0 && b.most >= 0)
    return everything;
  Interval r = {INT64_MAX, INT64_MIN};
  for (int64_t x : {a.least, a.most})
    for (int64_t y : {b.least, b.most}) {
      if (x == INT64_MIN && y == -1)
        return everything;
      int64_t quotient = op(x, y);
      r.least = std::min(r.least, quotient);
      r.most = std::max(r.most, quotient);
    }
  return r;
}

/// The least k with table[offset + k] >= v in a sorted row, or `size`.
int64_t firstAtLeast(const Table &table, int64_t offset, int64_t size,
                     int64_t v) {
  int64_t low = 0, high = size;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (table.at(offset + middle) >= v)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

int64_t alignDown(int64_t n, int64_t to) { return n - n % to; }
int64_t alignUp(int64_t n, int64_t to) { return alignDown(n + to - 1, to); }

} // namespace

/// Load and First: every element that the indices may name. Out of range, a
/// load is 0.
Interval MaskBounds::evaluateLoad(const TileContext &context,
                                  const Expression &e) const {
  const Table &table = tables[e.argument];
  bool search = e.op == Expression::First;
  int32_t indices = search ? table.rank - 1 : table.rank;
  int64_t size = search ? table.shape[table.rank - 1] : 0;
  Interval wanted = {0, 0};
  if (search)
    wanted = evaluate(context, e.operands[indices]);
  Interval index[maxRank];
  bool outside = false, empty = false;
  int64_t elements = 1;
  for (int32_t d = 0; d < indices; ++d) {
    Interval i = evaluate(context, e.operands[d]);
    outside |= i.least < 0 || i.most >= table.shape[d];
    index[d].least = std::max<int64_t>(i.least, 0);
    index[d].most = std::min(i.most, table.shape[d] - 1);
    if (index[d].least > index[d].most) {
      empty = true;
      continue;
    }
    int64_t count = index[d].most - index[d].least + 1;
    elements = count > maxLoadElements ? maxLoadElements + 1 : elements * count;
    if (elements > maxLoadElements)
      return search ? Interval{0, size} : everything;
  }
  Interval r = {INT64_MAX, INT64_MIN};
  auto include = [&r](int64_t least, int64_t most) {
    r.least = std::min(r.least, least);
    r.most = std::max(r.most, most);
  };
  if (outside || empty) {
    // A load gives 0. A search that starts outside of the tensor has no defined
    // row: any result is possible.
    if (search)
      include(0, size);
    else
      include(0, 0);
  }
  if (empty)
    return r;
  int64_t at[maxRank];
  for (int32_t d = 0; d < indices; ++d)
    at[d] = index[d].least;
  while (true) {
    int64_t offset = 0;
    for (int32_t d = 0; d < indices; ++d)
      offset += at[d] * table.strides[d];
    if (search) {
      include(firstAtLeast(table, offset, size, wanted.least),
              firstAtLeast(table, offset, size, wanted.most));
    } else {
      int64_t value = table.at(offset);
      include(value, value);
    }
    int32_t d = indices - 1;
    while (d >= 0 && ++at[d] > index[d].most) {
      at[d] = index[d].least;
      --d;
    }
    if (d < 0)
      return r;
  }
}

Interval MaskBounds::evaluate(const TileContext &context, int32_t root) const {
  const Expression &e = mask.expressions[root];
  auto operand = [&](int i) { return evaluate(context, e.operands[i]); };
  switch (e.op) {
  case Expression::Constant:
    return {e.constant, e.constant};
  case Expression::QueryPosition:
    return context.position;
  case Expression::Request:
    return {context.request, context.request};
  case Expression::QueryHead:
    return context.queryHead;
  case Expression::KVHead:
    return context.kvHead;
  case Expression::KVLength:
    return {context.keyLength, context.keyLength};
  case Expression::QueryLength:
    return {context.queryLength, context.queryLength};
  case Expression::Scalar:
    return {tables[e.argument].integer, tables[e.argument].integer};
  case Expression::Load:
  case Expression::First:
    return evaluateLoad(context, e);
  case Expression::Add:
    return add(operand(0), operand(1));
  case Expression::Sub:
    return sub(operand(0), operand(1));
  case Expression::Mul:
    return mul(operand(0), operand(1));
  case Expression::Min: {
    Interval a = operand(0), b = operand(1);
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  }
  case Expression::Max: {
    Interval a = operand(0), b = operand(1);
    return {std::max(a.least, b.least), std::max(a.most, b.most)};
  }
  case Expression::FloorDiv:
    return divide(operand(0), operand(1), floorDiv);
  case Expression::CeilDiv:
    return divide(operand(0), operand(1), ceilDiv);
  }
  return everything;
}

void MaskBounds::spans(const TileContext &context, int64_t tileKeys,
                       Buffer<Span> &out) {
  int64_t keys = context.keyLength;
  if (keys <= 0)
    return;
  if (!mask.present) {
    int64_t whole = alignDown(keys, tileKeys);
    if (whole > 0)
      out.push({0, whole, true});
    if (whole < keys)
      out.push({whole, keys, false});
    return;
  }
  seen.clear();
  full.clear();
  // Bounds as key indices, [first, end), limited to the keys that exist. The
  // origin is within 2^48, so only a bound near the ends of 64 bits saturates.
  auto firstKey = [&](int64_t position) {
    int64_t key;
    if (__builtin_sub_overflow(position, context.origin, &key))
      key = position < 0 ? 0 : keys;
    return std::min(std::max<int64_t>(key, 0), keys);
  };
  auto endKey = [&](int64_t position) {
    return position == INT64_MAX ? keys : firstKey(position + 1);
  };
  for (const MaskTerm &term : mask.terms) {
    Range some = {0, keys}, all = {0, keys};
    for (int32_t root : term.low) {
      Interval bound = evaluate(context, root);
      some.begin = std::max(some.begin, firstKey(bound.least));
      all.begin = std::max(all.begin, firstKey(bound.most));
    }
    for (int32_t root : term.high) {
      Interval bound = evaluate(context, root);
      some.end = std::min(some.end, endKey(bound.most));
      all.end = std::min(all.end, endKey(bound.least));
    }
    if (some.begin < some.end)
      seen.push(some);
    if (term.exact && all.begin < all.end)
      full.push(all);
  }
  cut(keys, tileKeys, out);
}

/// Unites the terms' ranges and cuts them at tiles.
void MaskBounds::cut(int64_t keyLength, int64_t tileKeys, Buffer<Span> &out) {
  auto byBegin = [](const Range &a, const Range &b) {
    return a.begin < b.begin;
  };
  if (seen.size() > 1)
    std::sort(seen.begin(), seen.end(), byBegin);
  if (full.size() > 1)
    std::sort(full.begin(), full.end(), byBegin);
  // Full: united by keys, then shrunk to whole tiles.
  size_t fulls = 0;
  for (size_t i = 0; i < full.size();) {
    Range range = full[i++];
    while (i < full.size() && full[i].begin <= range.end)
      range.end = std::max(range.end, full[i++].end);
    range.begin = alignUp(range.begin, tileKeys);
    range.end = alignDown(range.end, tileKeys);
    if (range.begin < range.end)
      full[fulls++] = range;
  }
  // Seen: grown to whole tiles at the left, united where they share a tile or
  // touch, as full ranges may have been.
  size_t f = 0;
  for (size_t i = 0; i < seen.size();) {
    Range range = seen[i++];
    range.begin = alignDown(range.begin, tileKeys);
    while (i < seen.size() && seen[i].begin <= alignUp(range.end, tileKeys))
      range.end = std::max(range.end, seen[i++].end);
    // Full ranges are subsets of seen ones, in the same order.
    int64_t at = range.begin;
    for (; f < fulls && full[f].begin < range.end; ++f) {
      if (at < full[f].begin)
        out.push({at, full[f].begin, false});
      out.push({full[f].begin, full[f].end, true});
      at = full[f].end;
    }
    if (at < range.end)
      out.push({at, std::min(range.end, keyLength), false});
  }
}

} // namespace fi::runtime
