//===- MaskEvaluator.cpp - bounds of a mask over a tile -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Interval arithmetic in 128 bits; what does not fit 64 is any value.
//
//===----------------------------------------------------------------------===//

#include "fi/Analysis/MaskEvaluator.h"
#include "LinearForm.h"
#include "fi/Support/Assert.h"

using namespace mlir;
using namespace fi;
using mask::Wide;

namespace {

constexpr MaskInterval kEverything = {INT64_MIN, INT64_MAX};

MaskInterval narrow(Wide least, Wide most) {
  if (least < INT64_MIN || most > INT64_MAX)
    return kEverything;
  return {int64_t(least), int64_t(most)};
}

/// The interval of an operation that is monotone in each operand.
template <typename F>
MaskInterval corners(MaskInterval a, MaskInterval b, F f) {
  Wide least = f(a.least, b.least), most = least;
  for (int64_t x : {a.least, a.most})
    for (int64_t y : {b.least, b.most}) {
      least = std::min<Wide>(least, f(x, y));
      most = std::max<Wide>(most, f(x, y));
    }
  return narrow(least, most);
}

Wide floorDivide(Wide a, Wide b) {
  Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Calls `visit` with every element that `indices` may name, as offset of its
/// row of `stride` elements; says whether some index may be out of range.
bool visitRows(const PlanData &data, ArrayRef<MaskInterval> indices,
               llvm::function_ref<void(int64_t offset)> visit,
               int64_t offset = 0, size_t dim = 0) {
  if (dim == indices.size()) {
    visit(offset);
    return false;
  }
  int64_t size = data.sizes[dim];
  int64_t stride = 1;
  for (size_t d = dim + 1; d < data.sizes.size(); ++d)
    stride *= data.sizes[d];
  bool outside = indices[dim].least < 0 || indices[dim].most >= size;
  for (int64_t i = std::max<int64_t>(indices[dim].least, 0),
               end = std::min(indices[dim].most, size - 1);
       i <= end; ++i)
    outside |= visitRows(data, indices, visit, offset + i * stride, dim + 1);
  return outside;
}

MaskInterval evaluateTable(StringRef head, ArrayAttr expression,
                           const MaskContext &context) {
  const PlanData &data =
      context.data->at(cast<StringAttr>(expression[1]).str());
  SmallVector<MaskInterval> operands;
  for (Attribute operand : expression.getValue().drop_front(2))
    operands.push_back(evaluateBound(cast<ArrayAttr>(operand), context));
  std::optional<MaskInterval> result;
  auto include = [&](int64_t least, int64_t most) {
    result = result ? MaskInterval{std::min(result->least, least),
                                   std::max(result->most, most)}
                    : MaskInterval{least, most};
  };
  if (head == "load") {
    if (visitRows(data, operands, [&](int64_t offset) {
          include(data.elements[offset], data.elements[offset]);
        }))
      include(0, 0);
  } else {
    MaskInterval wanted = operands.pop_back_val();
    int64_t size = data.sizes.back();
    auto search = [&](int64_t offset, int64_t value) {
      auto begin = data.elements.begin() + offset;
      return std::lower_bound(begin, begin + size, value) - begin;
    };
    if (visitRows(data, operands, [&](int64_t offset) {
          include(search(offset, wanted.least), search(offset, wanted.most));
        }))
      include(0, size);
  }
  return result.value_or(kEverything);
}

} // namespace

MaskInterval fi::evaluateBound(ArrayAttr expression,
                               const MaskContext &context) {
  StringRef head = cast<StringAttr>(expression[0]).getValue();
  if (head == "const") {
    int64_t value = cast<IntegerAttr>(expression[1]).getValue().getSExtValue();
    return {value, value};
  }
  if (head == "q")
    return context.position;
  if (head == "request")
    return {context.request, context.request};
  if (head == "q_head")
    return context.queryHead;
  if (head == "kv_head")
    return context.kvHead;
  if (head == "kv_len")
    return {context.keyLength, context.keyLength};
  if (head == "q_len")
    return {context.queryLength, context.queryLength};
  if (head == "scalar") {
    int64_t value = context.data->at(cast<StringAttr>(expression[1]).str())
                        .elements.front();
    return {value, value};
  }
  if (head == "load" || head == "first")
    return evaluateTable(head, expression, context);
  MaskInterval a = evaluateBound(cast<ArrayAttr>(expression[1]), context);
  MaskInterval b = evaluateBound(cast<ArrayAttr>(expression[2]), context);
  if (head == "add")
    return narrow(Wide(a.least) + b.least, Wide(a.most) + b.most);
  if (head == "sub")
    return narrow(Wide(a.least) - b.most, Wide(a.most) - b.least);
  if (head == "mul")
    return corners(a, b, [](Wide x, Wide y) { return x * y; });
  if (head == "min")
    return {std::min(a.least, b.least), std::min(a.most, b.most)};
  if (head == "max")
    return {std::max(a.least, b.least), std::max(a.most, b.most)};
  bool down = head == "floordiv";
  FI_ASSERT(down || head == "ceildiv", "an expression of docs/abi.md");
  if (b.least <= 0 && b.most >= 0)
    return kEverything;
  return corners(a, b, [down](Wide x, Wide y) {
    return down ? floorDivide(x, y) : -floorDivide(-x, y);
  });
}

TileKind fi::classifyTile(const MaskBounds &bounds, const MaskContext &context,
                          int64_t begin, int64_t end) {
  bool seen = false;
  // Ranges of keys in which some term is full; united, they may hold the tile.
  SmallVector<std::pair<int64_t, int64_t>> full;
  for (const MaskTerm &term : bounds.terms) {
    int64_t low = INT64_MIN, high = INT64_MAX;
    int64_t fullLow = INT64_MIN, fullHigh = INT64_MAX;
    for (ArrayAttr expression : term.lo) {
      MaskInterval bound = evaluateBound(expression, context);
      low = std::max(low, bound.least);
      fullLow = std::max(fullLow, bound.most);
    }
    for (ArrayAttr expression : term.hi) {
      MaskInterval bound = evaluateBound(expression, context);
      high = std::min(high, bound.most);
      fullHigh = std::min(fullHigh, bound.least);
    }
    seen |= std::max(low, begin) <= std::min(high, end - 1);
    if (term.exact && fullLow <= fullHigh)
      full.push_back({fullLow, fullHigh});
  }
  if (!seen)
    return TileKind::Empty;
  llvm::sort(full);
  int64_t covered = begin;
  for (auto [first, last] : full)
    if (first <= covered && last >= covered)
      covered = last >= end - 1 ? end : last + 1;
  return covered >= end ? TileKind::Full : TileKind::Partial;
}
