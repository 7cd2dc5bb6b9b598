//===- MaskNormalForm.cpp - disjunctive normal form of a mask -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expansion into terms, and simplification: spellings of one mask shall end in
// the same terms.
//
//===----------------------------------------------------------------------===//

#include "MaskFormula.h"
#include "llvm/ADT/STLExtras.h"

using namespace fi::mask;
using llvm::ArrayRef;
using llvm::SmallVector;

using Terms = std::vector<Conjunction>;

/// Terms while expanding; the result has fewer.
static constexpr size_t kMaxTerms = 64;

static bool lessThan(const Linear &a, const Linear &b) {
  return compare(a, b) < 0;
}

static bool sameAtoms(const Conjunction &a, const Conjunction &b) {
  return a.atoms.size() == b.atoms.size() &&
         llvm::all_of(llvm::zip(a.atoms, b.atoms), [](auto pair) {
           return compare(std::get<0>(pair), std::get<1>(pair)) == 0;
         });
}

/// Whether b >= 0 implies a >= 0.
static bool implies(const Linear &b, const Linear &a) {
  std::optional<Linear> difference = add(a, b, -1);
  return difference && rangeOf(*difference).least >= 0;
}

static bool implies(ArrayRef<Linear> atoms, const Linear &a) {
  return llvm::any_of(atoms, [&](const Linear &b) { return implies(b, a); });
}

static bool implies(ArrayRef<Linear> atoms, ArrayRef<Linear> others) {
  return llvm::all_of(others,
                      [&](const Linear &a) { return implies(atoms, a); });
}

/// Sorts, and drops what the others imply. False if the atoms contradict.
static bool tidy(Conjunction &term) {
  llvm::sort(term.atoms, lessThan);
  for (size_t i = 0; i < term.atoms.size(); ++i)
    for (size_t j = 0; j < term.atoms.size(); ++j) {
      if (i == j)
        continue;
      std::optional<Linear> sum = add(term.atoms[i], term.atoms[j]);
      if (sum && rangeOf(*sum).most < 0)
        return false;
      // Of two atoms that imply each other the first stays.
      if (implies(term.atoms[j], term.atoms[i]) &&
          (j < i || !implies(term.atoms[i], term.atoms[j]))) {
        term.atoms.erase(term.atoms.begin() + i);
        --i;
        break;
      }
    }
  return true;
}

static std::optional<Linear> negated(const Linear &a) {
  std::optional<Linear> negative = scale(a, -1);
  return negative ? addConstant(*negative, -1) : std::nullopt;
}

/// One term for two that touch (as "k <= q" and "q < k <= q + 5"): without an
/// atom of each, of which one always holds, their conjunction is covered by the
/// two. Null if it does not cover them in turn.
static std::optional<Conjunction> unite(const Conjunction &a,
                                        const Conjunction &b) {
  if (!a.exact || !b.exact)
    return std::nullopt;
  for (auto [i, x] : llvm::enumerate(a.atoms)) {
    std::optional<Linear> opposite = negated(x);
    if (!opposite)
      continue;
    for (auto [j, y] : llvm::enumerate(b.atoms)) {
      if (!implies(*opposite, y))
        continue;
      Conjunction both = a;
      both.atoms.erase(both.atoms.begin() + i);
      SmallVector<Linear, 4> others = b.atoms;
      others.erase(others.begin() + j);
      both.atoms.append(others.begin(), others.end());
      if (implies(a.atoms, both.atoms) && implies(b.atoms, both.atoms) &&
          tidy(both))
        return both;
    }
  }
  return std::nullopt;
}

/// Drops terms that others cover, and atoms that others make superfluous (as in
/// "a, or b and not a").
static void simplify(Terms &terms) {
  for (bool changed = true; changed;) {
    changed = false;
    llvm::sort(terms, [](const Conjunction &a, const Conjunction &b) {
      if (int c = int(a.atoms.size()) - int(b.atoms.size()))
        return c < 0;
      for (auto [x, y] : llvm::zip(a.atoms, b.atoms))
        if (int c = compare(x, y))
          return c < 0;
      return a.exact > b.exact;
    });
    for (size_t i = 0; i < terms.size() && !changed; ++i)
      for (size_t j = 0; j < terms.size() && !changed; ++j) {
        if (i == j)
          continue;
        // Term i is covered by term j. An exact term says more than one that
        // is not, so it stays.
        bool covered = implies(terms[i].atoms, terms[j].atoms) &&
                       (terms[j].exact || !terms[i].exact);
        if (covered && j > i && sameAtoms(terms[i], terms[j]) &&
            terms[i].exact == terms[j].exact)
          covered = false; // equal: the first stays
        if (covered) {
          terms.erase(terms.begin() + i);
          changed = true;
          break;
        }
        // Without its atom m, term i would gain what term j has already.
        if (!terms[j].exact)
          continue;
        for (size_t m = 0; m < terms[i].atoms.size(); ++m) {
          SmallVector<Linear, 4> gained(terms[i].atoms);
          std::optional<Linear> opposite = negated(gained[m]);
          if (!opposite)
            continue;
          gained[m] = *opposite;
          if (!implies(gained, terms[j].atoms))
            continue;
          terms[i].atoms.erase(terms[i].atoms.begin() + m);
          changed = true;
          break;
        }
        if (changed || j < i)
          continue;
        if (std::optional<Conjunction> both = unite(terms[i], terms[j])) {
          terms.erase(terms.begin() + j);
          terms[i] = std::move(*both);
          changed = true;
        }
      }
  }
}

/// One term that holds wherever one of `terms` holds.
static Conjunction join(const Terms &terms) {
  Conjunction joined;
  joined.exact = false;
  for (const Conjunction &term : terms)
    for (const Linear &atom : term.atoms)
      if (llvm::all_of(terms, [&](const Conjunction &other) {
            return implies(other.atoms, atom);
          }))
        joined.atoms.push_back(atom);
  tidy(joined);
  return joined;
}

static void limitTerms(Terms &terms, size_t limit) {
  simplify(terms);
  if (terms.size() > limit)
    terms = {join(terms)};
}

static Terms product(Terms a, Terms b) {
  if (a.size() * b.size() > kMaxTerms) {
    // The smaller side stays as it is.
    Terms &larger = a.size() > b.size() ? a : b;
    larger = {join(larger)};
  }
  Terms result;
  for (const Conjunction &x : a)
    for (const Conjunction &y : b) {
      Conjunction both = x;
      both.exact &= y.exact;
      both.atoms.append(y.atoms.begin(), y.atoms.end());
      if (tidy(both))
        result.push_back(std::move(both));
    }
  simplify(result);
  return result;
}

static Terms expand(const Formula *f,
                    llvm::DenseMap<const Formula *, Terms> &known) {
  auto found = known.find(f);
  if (found != known.end())
    return found->second;
  Terms terms;
  switch (f->kind) {
  case Formula::False:
    break;
  case Formula::True:
  case Formula::Unknown:
    terms.emplace_back();
    terms.back().exact = f->kind == Formula::True;
    break;
  case Formula::Atom:
    terms.emplace_back();
    terms.back().atoms.push_back(f->atom);
    break;
  case Formula::And:
    terms.emplace_back();
    for (const Formula *child : f->children)
      terms = product(std::move(terms), expand(child, known));
    break;
  case Formula::Or:
    for (const Formula *child : f->children)
      llvm::append_range(terms, expand(child, known));
    limitTerms(terms, kMaxTerms);
    break;
  }
  known[f] = terms;
  return terms;
}

std::vector<Conjunction> Formulas::normalise(const Formula *f, size_t limit) {
  llvm::DenseMap<const Formula *, Terms> known;
  Terms terms = expand(f, known);
  limitTerms(terms, limit);
  return terms;
}
