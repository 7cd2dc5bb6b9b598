//===- MaskFormula.cpp - a mask as formula over bounds --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Comparisons solved for the key's position, and negation.
//
//===----------------------------------------------------------------------===//

#include "MaskFormula.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace fi::mask;
using llvm::SmallVector;

/// Nodes of all formulas of one mask, and nesting while solving.
static constexpr size_t kMaxNodes = 1024;
static constexpr unsigned kMaxDepth = 64;

//===----------------------------------------------------------------------===//
// Connectives
//===----------------------------------------------------------------------===//

const Formula *Formulas::make(Formula formula) {
  if (nodes.size() >= kMaxNodes)
    return fail(nullptr, "its arithmetic is too large");
  nodes.push_back(std::make_unique<Formula>(std::move(formula)));
  return nodes.back().get();
}

const Formula *Formulas::fail(const Leaf *leaf, llvm::StringRef reason) {
  report(leaf, reason);
  return unknown();
}

/// For a form without the key's position that has no expression.
const Formula *Formulas::failIn(const Linear &a) {
  if (const Leaf *unknown = findUnknown(a))
    return fail(unknown, unknown->reason);
  return fail(nullptr, "a choice stands inside of other arithmetic");
}

/// Adds a child; those of a child of the same kind in its stead.
static void append(Formula &f, const Formula *child) {
  if (child->kind == f.kind) {
    for (const Formula *inner : child->children)
      append(f, inner);
  } else if (!llvm::is_contained(f.children, child)) {
    f.children.push_back(child);
  }
}

const Formula *Formulas::all(llvm::ArrayRef<const Formula *> children) {
  Formula f{Formula::And, {}, {}};
  for (const Formula *child : children) {
    if (child->kind == Formula::False)
      return child;
    if (child->kind != Formula::True)
      append(f, child);
  }
  if (f.children.empty())
    return get(true);
  return f.children.size() == 1 ? f.children[0] : make(std::move(f));
}

const Formula *Formulas::any(llvm::ArrayRef<const Formula *> children) {
  Formula f{Formula::Or, {}, {}};
  for (const Formula *child : children) {
    if (child->kind == Formula::True)
      return child;
    if (child->kind != Formula::False)
      append(f, child);
  }
  if (f.children.empty())
    return get(false);
  return f.children.size() == 1 ? f.children[0] : make(std::move(f));
}

const Formula *Formulas::negate(const Formula *f) {
  if (const Formula *known = negations.lookup(f))
    return known;
  const Formula *result = nullptr;
  switch (f->kind) {
  case Formula::False:
  case Formula::True:
    result = get(f->kind == Formula::False);
    break;
  case Formula::Unknown:
    result = f;
    break;
  case Formula::Atom:
    result = atLeastZero([&]() -> std::optional<Linear> {
      std::optional<Linear> negated = scale(f->atom, -1);
      return negated ? addConstant(*negated, -1) : std::nullopt;
    }());
    break;
  case Formula::And:
  case Formula::Or: {
    SmallVector<const Formula *> children;
    for (const Formula *child : f->children)
      children.push_back(negate(child));
    result = f->kind == Formula::And ? any(children) : all(children);
    break;
  }
  }
  return negations[f] = result;
}

const Formula *Formulas::choose(const Formula *condition, const Formula *a,
                                const Formula *b) {
  if (a == b)
    return a;
  return any({all({condition, a}), all({negate(condition), b})});
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

const Formula *Formulas::atLeast(const std::optional<Linear> &a,
                                 const std::optional<Linear> &b,
                                 int64_t shift) {
  if (!a || !b)
    return atLeastZero(std::nullopt);
  std::optional<Linear> difference = add(*a, *b, -1);
  return atLeastZero(difference ? addConstant(*difference, shift)
                                : std::nullopt);
}

const Formula *Formulas::isZero(const std::optional<Linear> &a) {
  return all({atLeastZero(a), atLeastZero(a ? scale(*a, -1) : std::nullopt)});
}

/// With `leaf`, of which `a` has some, replaced.
const Formula *Formulas::substitute(const Linear &a, const Leaf *leaf,
                                    const Linear &by) {
  Linear rest;
  rest.constant = a.constant;
  int64_t factor = 0;
  for (auto term : a.terms) {
    if (term.first == leaf)
      factor = term.second;
    else
      rest.terms.push_back(term);
  }
  return atLeastZero(add(rest, by, factor));
}

const Formula *Formulas::atLeastZero(const std::optional<Linear> &form) {
  if (!form)
    return fail(nullptr, "its arithmetic may overflow 64 bits");
  // Divided by what the coefficients have in common, the constant rounded down.
  Linear a = *form;
  int64_t common = 0;
  for (auto term : a.terms)
    common = std::gcd(common, term.second);
  if (common > 1) {
    for (auto &term : a.terms)
      term.second /= common;
    int64_t quotient = a.constant / common;
    a.constant = a.constant % common < 0 ? quotient - 1 : quotient;
  }
  Interval range = rangeOf(a);
  if (range.least >= 0)
    return get(true);
  if (range.most < 0)
    return get(false);

  struct Nesting {
    explicit Nesting(unsigned &depth) : depth(depth) { ++depth; }
    ~Nesting() { --depth; }
    unsigned &depth;
  } nesting(depth);
  if (depth > kMaxDepth || nodes.size() >= kMaxNodes)
    return fail(nullptr, "its arithmetic is too large");

  // Choices first: they split the comparison.
  for (auto [leaf, factor] : a.terms) {
    if (leaf->kind == Leaf::Select)
      return choose(leaf->condition, substitute(a, leaf, leaf->operands[0]),
                    substitute(a, leaf, leaf->operands[1]));
    if (leaf->kind == Leaf::Min || leaf->kind == Leaf::Max) {
      const Formula *parts[] = {substitute(a, leaf, leaf->operands[0]),
                                substitute(a, leaf, leaf->operands[1])};
      bool both = (leaf->kind == Leaf::Min) == (factor > 0);
      return both ? all(parts) : any(parts);
    }
  }
  const Leaf *key = nullptr;
  int64_t factor = 0;
  Linear rest;
  rest.constant = a.constant;
  for (auto term : a.terms) {
    if (term.first->kind == Leaf::Unknown)
      return fail(term.first, term.first->reason);
    if (!term.first->usesKey) {
      rest.terms.push_back(term);
      continue;
    }
    if (key)
      return fail(nullptr, "it compares two functions of the key's position "
                           "that are not linear");
    key = term.first;
    factor = term.second;
  }
  for (auto term : rest.terms)
    if (!term.first->expressible)
      return failIn(rest);
  if (!key || key->kind == Leaf::KeyPosition)
    return make({Formula::Atom, std::move(a), {}});
  switch (key->kind) {
  case Leaf::FloorDiv:
    return solveFloorDiv(*key, factor, rest);
  case Leaf::TruncDiv:
    return solveTruncDiv(*key, factor, rest);
  case Leaf::Load:
    return solveSearch(*key, factor, rest);
  case Leaf::Mod:
    return fail(key, "it takes a remainder of the key's position");
  default:
    return fail(key, "the key's position enters in a way that is not linear");
  }
}

/// factor * D + rest >= 0 is D >= low, or D <= high.
static std::optional<Linear> limit(Leaves &leaves, int64_t factor,
                                   const Linear &rest) {
  if (factor < 0)
    return leaves.floorDiv(rest, -factor);
  std::optional<Linear> negated = scale(rest, -1);
  return negated ? leaves.ceilDiv(*negated, factor) : std::nullopt;
}

const Formula *Formulas::solveFloorDiv(const Leaf &leaf, int64_t factor,
                                       const Linear &rest) {
  const Linear &x = leaf.operands[0];
  std::optional<Linear> bound = limit(leaves, factor, rest);
  std::optional<Linear> scaled =
      bound ? scale(*bound, leaf.divisor) : std::nullopt;
  return factor > 0 ? atLeast(x, scaled) : atLeast(scaled, x, leaf.divisor - 1);
}

/// Rounding to zero: below zero the quotient's interval lies the other way.
const Formula *Formulas::solveTruncDiv(const Leaf &leaf, int64_t factor,
                                       const Linear &rest) {
  const Linear &x = leaf.operands[0];
  std::optional<Linear> bound = limit(leaves, factor, rest);
  std::optional<Linear> scaled =
      bound ? scale(*bound, leaf.divisor) : std::nullopt;
  int64_t width = leaf.divisor - 1;
  if (factor > 0)
    return any({atLeast(x, scaled),
                all({atLeast(constant(0), bound), atLeast(x, scaled, width)})});
  return any({atLeast(scaled, x),
              all({atLeast(bound, constant(0)), atLeast(scaled, x, width)})});
}

//===----------------------------------------------------------------------===//
// Sorted plan data
//===----------------------------------------------------------------------===//

const Formula *Formulas::solveSearch(const Leaf &load, int64_t factor,
                                     const Linear &rest) {
  for (const Linear &index : llvm::ArrayRef(load.operands).drop_back())
    if (index.usesKey())
      return fail(&load, "the key's position is an index of '" + load.name +
                             "' other than the last");
  if (!load.sorted)
    return fail(&load,
                "plan argument '" + load.name + "' is not marked {fi.sorted}");
  for (const Linear &index : llvm::ArrayRef(load.operands).drop_back())
    if (!index.expressible())
      return failIn(index);
  return searchAtLeast(load, limit(leaves, factor, rest), factor > 0);
}

/// load(..., x) >= value, or <= value, for x a function of the key's position.
/// What is out of range reads 0.
const Formula *Formulas::searchAtLeast(const Leaf &load,
                                       const std::optional<Linear> &value,
                                       bool atLeastValue) {
  const Linear &x = load.operands.back();
  std::optional<Linear> wanted = !value         ? value
                                 : atLeastValue ? value
                                                : addConstant(*value, 1);
  if (!wanted)
    return atLeastZero(std::nullopt);
  Linear first = leaves.first(load, *wanted);
  Linear size = leaves.size(load);
  const Formula *inside =
      atLeastValue ? all({atLeast(x, first), atLeast(size, x, -1)})
                   : all({atLeast(x, constant(0)), atLeast(first, x, -1)});
  const Formula *outside = any({atLeast(constant(-1), x), atLeast(x, size)});
  const Formula *zero =
      atLeastValue ? atLeast(constant(0), value) : atLeast(value, constant(0));
  return any({inside, all({outside, zero})});
}
