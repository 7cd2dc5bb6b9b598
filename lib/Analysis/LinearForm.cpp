//===- LinearForm.cpp - integers of a mask, in normal form ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic, ranges and order of linear forms, and their expressions.
//
//===----------------------------------------------------------------------===//

#include "LinearForm.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fi::mask;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

template <typename T> static int compareValues(const T &a, const T &b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int fi::mask::compare(const Leaf &a, const Leaf &b) {
  if (&a == &b)
    return 0;
  if (int c = compareValues(a.kind, b.kind))
    return c;
  if (int c = compareValues(a.name, b.name))
    return c;
  if (int c = compareValues(a.divisor, b.divisor))
    return c;
  if (int c = compareValues(a.operands.size(), b.operands.size()))
    return c;
  for (auto [x, y] : llvm::zip(a.operands, b.operands))
    if (int c = compare(x, y))
      return c;
  return compareValues(a.id, b.id);
}

int fi::mask::compare(const Linear &a, const Linear &b) {
  if (int c = compareValues(a.terms.size(), b.terms.size()))
    return c;
  for (auto [x, y] : llvm::zip(a.terms, b.terms)) {
    if (int c = compare(*x.first, *y.first))
      return c;
    if (int c = compareValues(x.second, y.second))
      return c;
  }
  return compareValues(a.constant, b.constant);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static constexpr int64_t kMaxCoefficient = int64_t(1) << 48;

bool Linear::usesKey() const {
  return llvm::any_of(terms, [](auto t) { return t.first->usesKey; });
}

bool Linear::expressible() const {
  return llvm::all_of(terms, [](auto t) { return t.first->expressible; });
}

Linear fi::mask::constant(int64_t value) {
  Linear a;
  a.constant = value;
  return a;
}

std::optional<Linear> fi::mask::add(const Linear &a, const Linear &b,
                                    int64_t factor) {
  Linear sum;
  int64_t scaled;
  if (llvm::MulOverflow(b.constant, factor, scaled) ||
      llvm::AddOverflow(a.constant, scaled, sum.constant))
    return std::nullopt;
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    int order = x == a.terms.end()   ? 1
                : y == b.terms.end() ? -1
                                     : compare(*x->first, *y->first);
    int64_t coefficient = 0;
    if (order >= 0 && llvm::MulOverflow(y->second, factor, coefficient))
      return std::nullopt;
    const Leaf *leaf = order <= 0 ? x->first : y->first;
    if (order <= 0 && llvm::AddOverflow(x->second, coefficient, coefficient))
      return std::nullopt;
    // Leaves room to negate, and to sum ranges.
    if (coefficient < -kMaxCoefficient || coefficient > kMaxCoefficient)
      return std::nullopt;
    if (coefficient != 0)
      sum.terms.push_back({leaf, coefficient});
    x += order <= 0;
    y += order >= 0;
  }
  return sum;
}

std::optional<Linear> fi::mask::scale(const Linear &a, int64_t factor) {
  return add(Linear(), a, factor);
}

std::optional<Linear> fi::mask::addConstant(const Linear &a, int64_t value) {
  return add(a, constant(value));
}

/// Whether `first` searches the tensor that `size` is the last size of.
static bool sameTable(const Leaf &size, const Leaf &first) {
  return size.kind == Leaf::Size && first.kind == Leaf::First &&
         size.name == first.name;
}

Interval fi::mask::rangeOf(const Linear &a) {
  Interval sum = {a.constant, a.constant};
  auto include = [&](Interval range, int64_t factor) {
    Wide x = range.least * factor, y = range.most * factor;
    sum.least += std::min(x, y);
    sum.most += std::max(x, y);
  };
  // A search never goes beyond the size, so the two are taken together.
  llvm::SmallVector<bool> taken(a.terms.size());
  for (auto [i, size] : llvm::enumerate(a.terms))
    for (auto [j, first] : llvm::enumerate(a.terms))
      if (!taken[i] && !taken[j] && sameTable(*size.first, *first.first) &&
          size.second == -first.second) {
        taken[i] = taken[j] = true;
        include(size.first->range, size.second);
      }
  for (auto [i, term] : llvm::enumerate(a.terms))
    if (!taken[i])
      include(term.first->range, term.second);
  return sum;
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

/// Leaves of one mask, and their nesting (a manifest has limits, too).
static constexpr size_t kMaxLeaves = 512;
static constexpr unsigned kMaxLeafDepth = 12;

const Leaf *fi::mask::findUnknown(const Linear &a) {
  for (auto term : a.terms) {
    if (term.first->kind == Leaf::Unknown)
      return term.first;
    for (const Linear &operand : term.first->operands)
      if (const Leaf *leaf = findUnknown(operand))
        return leaf;
  }
  return nullptr;
}

static Linear single(const Leaf *leaf) {
  Linear form;
  form.terms.push_back({leaf, 1});
  return form;
}

Linear Leaves::unique(Leaf leaf) {
  for (const Linear &operand : leaf.operands) {
    leaf.usesKey |= operand.usesKey();
    leaf.expressible &= operand.expressible();
    for (auto term : operand.terms)
      leaf.depth = std::max(leaf.depth, term.first->depth + 1);
  }
  leaf.range = {std::max<Wide>(leaf.range.least, INT64_MIN),
                std::min<Wide>(leaf.range.most, INT64_MAX)};
  if (leaf.depth > kMaxLeafDepth || leaves.size() > kMaxLeaves)
    return unknown(std::nullopt, "its arithmetic is too large", leaf.range,
                   leaf.usesKey);
  for (const std::unique_ptr<Leaf> &known : leaves)
    if (compare(*known, leaf) == 0)
      return single(known.get());
  leaves.push_back(std::make_unique<Leaf>(std::move(leaf)));
  return single(leaves.back().get());
}

Linear Leaves::unknown(std::optional<Location> loc, std::string reason,
                       Interval range, bool usesKey) {
  auto leaf = std::make_unique<Leaf>();
  leaf->kind = Leaf::Unknown;
  leaf->reason = std::move(reason);
  leaf->loc = loc;
  leaf->range = range;
  leaf->usesKey = usesKey;
  leaf->expressible = false;
  leaf->id = unknowns.size() + 1;
  unknowns.push_back(std::move(leaf));
  return single(unknowns.back().get());
}

static Wide floorDivide(Wide a, Wide b) {
  Wide quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

/// What of `a` is divisible by `divisor`, divided; `a` keeps the rest.
static Linear takeMultiples(Linear &a, int64_t divisor) {
  Linear whole;
  whole.constant = int64_t(floorDivide(a.constant, divisor));
  a.constant -= whole.constant * divisor;
  Linear rest;
  rest.constant = a.constant;
  for (auto term : a.terms) {
    if (term.second % divisor == 0)
      whole.terms.push_back({term.first, term.second / divisor});
    else
      rest.terms.push_back(term);
  }
  a = std::move(rest);
  return whole;
}

std::optional<Linear> Leaves::floorDiv(const Linear &a, int64_t divisor) {
  if (divisor == 1)
    return a;
  Linear rest = a;
  Linear whole = takeMultiples(rest, divisor);
  Interval range = rangeOf(rest);
  range = {floorDivide(range.least, divisor), floorDivide(range.most, divisor)};
  if (range.least == range.most)
    return addConstant(whole, int64_t(range.least));
  Leaf leaf;
  leaf.kind = Leaf::FloorDiv;
  leaf.operands = {rest};
  leaf.divisor = divisor;
  leaf.range = range;
  return add(whole, unique(std::move(leaf)));
}

std::optional<Linear> Leaves::ceilDiv(const Linear &a, int64_t divisor) {
  std::optional<Linear> shifted = addConstant(a, divisor - 1);
  return shifted ? floorDiv(*shifted, divisor) : std::nullopt;
}

std::optional<Linear> Leaves::truncDiv(const Linear &a, int64_t divisor) {
  Interval range = rangeOf(a);
  if (range.least >= 0)
    return floorDiv(a, divisor);
  if (range.most <= 0)
    return ceilDiv(a, divisor);
  Leaf leaf;
  leaf.kind = Leaf::TruncDiv;
  leaf.operands = {a};
  leaf.divisor = divisor;
  leaf.range = {range.least / divisor, range.most / divisor};
  return unique(std::move(leaf));
}

std::optional<Linear> Leaves::mod(const Linear &a, int64_t divisor) {
  Linear rest = a;
  takeMultiples(rest, divisor);
  if (rangeOf(rest).within(0, divisor - 1))
    return rest;
  Leaf leaf;
  leaf.kind = Leaf::Mod;
  leaf.operands = {rest};
  leaf.divisor = divisor;
  leaf.range = {0, divisor - 1};
  return unique(std::move(leaf));
}

std::optional<Linear> Leaves::minMax(bool min, const Linear &a,
                                     const Linear &b) {
  std::optional<Linear> difference = add(a, b, -1);
  if (!difference)
    return std::nullopt;
  Interval range = rangeOf(*difference);
  if (range.least >= 0)
    return min ? b : a;
  if (range.most <= 0)
    return min ? a : b;
  Interval x = rangeOf(a), y = rangeOf(b);
  Leaf leaf;
  leaf.kind = min ? Leaf::Min : Leaf::Max;
  leaf.operands = {a, b};
  if (compare(a, b) > 0)
    std::swap(leaf.operands[0], leaf.operands[1]);
  leaf.range =
      min ? Interval{std::min(x.least, y.least), std::min(x.most, y.most)}
          : Interval{std::max(x.least, y.least), std::max(x.most, y.most)};
  return unique(std::move(leaf));
}

/// A leaf about the tensor that `load` reads.
static Leaf aboutTable(Leaf::Kind kind, const Leaf &load) {
  Leaf leaf;
  leaf.kind = kind;
  leaf.name = load.name;
  leaf.sorted = load.sorted;
  leaf.narrow = load.narrow;
  leaf.rank = load.rank;
  leaf.lastSize = load.lastSize;
  leaf.range = {0, load.lastSize.value_or(kMaxPlanData)};
  return leaf;
}

Linear Leaves::first(const Leaf &load, const Linear &value) {
  Leaf leaf = aboutTable(Leaf::First, load);
  leaf.operands.assign(load.operands.begin(), load.operands.end());
  leaf.operands.back() = value;
  return unique(std::move(leaf));
}

Linear Leaves::size(const Leaf &load) {
  if (load.lastSize)
    return constant(*load.lastSize);
  return unique(aboutTable(Leaf::Size, load));
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ArrayAttr fi::mask::express(MLIRContext *context, StringRef op,
                            ArrayRef<Attribute> operands) {
  SmallVector<Attribute> elements = {StringAttr::get(context, op)};
  llvm::append_range(elements, operands);
  return ArrayAttr::get(context, elements);
}

ArrayAttr fi::mask::expressConstant(MLIRContext *context, int64_t value) {
  return express(context, "const", Builder(context).getI64IntegerAttr(value));
}

static ArrayAttr express(MLIRContext *context, const Leaf &leaf) {
  SmallVector<Attribute> operands;
  for (const Linear &operand : leaf.operands)
    operands.push_back(fi::mask::express(context, operand));
  auto make = [&](StringRef op, ArrayRef<Attribute> arguments) {
    return fi::mask::express(context, op, arguments);
  };
  auto number = [&](int64_t value) { return expressConstant(context, value); };
  switch (leaf.kind) {
  case Leaf::QueryPosition:
    return make("q", {});
  case Leaf::Request:
    return make("request", {});
  case Leaf::QueryHead:
    return make("q_head", {});
  case Leaf::KVHead:
    return make("kv_head", {});
  case Leaf::Scalar:
    return make("scalar", StringAttr::get(context, leaf.name));
  case Leaf::Load:
  case Leaf::First:
    operands.insert(operands.begin(), StringAttr::get(context, leaf.name));
    return make(leaf.kind == Leaf::Load ? "load" : "first", operands);
  case Leaf::Size: {
    // A search for more than there is finds the end.
    operands.push_back(StringAttr::get(context, leaf.name));
    operands.append(leaf.rank - 1, number(0));
    operands.push_back(number(leaf.narrow ? int64_t(1) << 31 : INT64_MAX));
    return make("first", operands);
  }
  case Leaf::Product:
    return make("mul", operands);
  case Leaf::FloorDiv:
    return make("floordiv", {operands[0], number(leaf.divisor)});
  case Leaf::TruncDiv: {
    // One part is 0, and both rise, so that intervals stay exact.
    ArrayAttr down = make("floordiv", {operands[0], number(leaf.divisor)});
    ArrayAttr up = make("ceildiv", {operands[0], number(leaf.divisor)});
    return make("add",
                {make("max", {down, number(0)}), make("min", {up, number(0)})});
  }
  case Leaf::Mod: {
    ArrayAttr quotient = make("floordiv", {operands[0], number(leaf.divisor)});
    return make("sub",
                {operands[0], make("mul", {quotient, number(leaf.divisor)})});
  }
  case Leaf::Min:
    return make("min", operands);
  case Leaf::Max:
    return make("max", operands);
  case Leaf::KeyPosition:
  case Leaf::Select:
  case Leaf::Unknown:
    break; // not expressible
  }
  llvm_unreachable("expression of a leaf without one");
}

ArrayAttr fi::mask::express(MLIRContext *context, const Linear &a) {
  ArrayAttr sum;
  auto scaled = [&](const Leaf *leaf, int64_t factor) {
    ArrayAttr expression = ::express(context, *leaf);
    return factor == 1
               ? expression
               : express(context, "mul",
                         {expression, expressConstant(context, factor)});
  };
  for (auto [leaf, factor] : a.terms)
    if (factor > 0) {
      ArrayAttr term = scaled(leaf, factor);
      sum = sum ? express(context, "add", {sum, term}) : term;
    }
  // The constant comes last, or first where there is nothing to add it to.
  bool pending = a.constant != 0 && sum;
  if (!sum)
    sum = expressConstant(context, a.constant);
  for (auto [leaf, factor] : a.terms)
    if (factor < 0)
      sum = express(context, "sub", {sum, scaled(leaf, -factor)});
  if (pending)
    sum = express(context, "add", {sum, expressConstant(context, a.constant)});
  return sum;
}
