//===- MaskNormalForm.cpp - disjunctive normal form of a mask -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expansion into terms, and simplification: spellings of one mask shall end in
// the same terms. Atoms are numbered, and what is asked of a pair of them is
// remembered, because it is asked often.
//
//===----------------------------------------------------------------------===//

#include "MaskFormula.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace fi::mask;
using llvm::ArrayRef;
using llvm::SmallVector;

/// Terms while expanding; the result has fewer.
static constexpr size_t kMaxTerms = 64;

namespace {

/// Numbers of atoms, in canonical order of the atoms.
struct Term {
  SmallVector<unsigned, 6> atoms;
  bool exact = true;
};
using Terms = std::vector<Term>;

class Normaliser {
public:
  Terms expand(const Formula *f);
  void limitTerms(Terms &terms, size_t limit);
  const Linear &getAtom(unsigned atom) const { return *atoms[atom]; }

private:
  unsigned number(const Linear &a);
  /// Of the negation; null where 64 bits do not hold it.
  std::optional<unsigned> negated(unsigned atom);
  int compareAtoms(unsigned a, unsigned b);

  bool implies(unsigned b, unsigned a);
  bool implies(ArrayRef<unsigned> from, unsigned a);
  bool implies(ArrayRef<unsigned> from, ArrayRef<unsigned> to);
  bool contradict(unsigned a, unsigned b);

  bool tidy(Term &term);
  bool isCovered(const Term &term, const Term &by, bool later);
  bool dropAtom(Term &term, const Term &other);
  std::optional<Term> unite(const Term &a, const Term &b);
  bool simplifyOnce(Terms &terms);
  void simplify(Terms &terms);
  Term join(const Terms &terms);
  Terms product(Terms a, Terms b);

  template <typename F>
  bool remember(llvm::DenseMap<std::pair<unsigned, unsigned>, bool> &answers,
                unsigned a, unsigned b, F answer) {
    auto found = answers.find({a, b});
    if (found == answers.end())
      found = answers.insert({{a, b}, answer()}).first;
    return found->second;
  }

  std::vector<std::unique_ptr<Linear>> atoms;
  llvm::DenseMap<unsigned, std::optional<unsigned>> negations;
  llvm::DenseMap<std::pair<unsigned, unsigned>, bool> implications;
  llvm::DenseMap<std::pair<unsigned, unsigned>, bool> contradictions;
  llvm::DenseMap<const Formula *, Terms> known;
};

} // namespace

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

unsigned Normaliser::number(const Linear &a) {
  for (auto [index, atom] : llvm::enumerate(atoms))
    if (compare(*atom, a) == 0)
      return index;
  atoms.push_back(std::make_unique<Linear>(a));
  return atoms.size() - 1;
}

std::optional<unsigned> Normaliser::negated(unsigned atom) {
  auto found = negations.find(atom);
  if (found != negations.end())
    return found->second;
  std::optional<Linear> negative = scale(*atoms[atom], -1);
  if (negative)
    negative = addConstant(*negative, -1);
  std::optional<unsigned> result;
  if (negative)
    result = number(*negative);
  negations[atom] = result;
  return result;
}

int Normaliser::compareAtoms(unsigned a, unsigned b) {
  return a == b ? 0 : compare(*atoms[a], *atoms[b]);
}

/// Whether b >= 0 implies a >= 0.
bool Normaliser::implies(unsigned b, unsigned a) {
  if (a == b)
    return true;
  return remember(implications, b, a, [&] {
    std::optional<Linear> difference = add(*atoms[a], *atoms[b], -1);
    return difference && rangeOf(*difference).least >= 0;
  });
}

bool Normaliser::implies(ArrayRef<unsigned> from, unsigned a) {
  return llvm::any_of(from, [&](unsigned b) { return implies(b, a); });
}

bool Normaliser::implies(ArrayRef<unsigned> from, ArrayRef<unsigned> to) {
  return llvm::all_of(to, [&](unsigned a) { return implies(from, a); });
}

bool Normaliser::contradict(unsigned a, unsigned b) {
  return remember(contradictions, std::min(a, b), std::max(a, b), [&] {
    std::optional<Linear> sum = add(*atoms[a], *atoms[b]);
    return sum && rangeOf(*sum).most < 0;
  });
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// Sorts, and drops what the others imply. False if the atoms contradict.
bool Normaliser::tidy(Term &term) {
  llvm::sort(term.atoms,
             [&](unsigned a, unsigned b) { return compareAtoms(a, b) < 0; });
  term.atoms.erase(llvm::unique(term.atoms), term.atoms.end());
  for (size_t i = 0; i < term.atoms.size(); ++i)
    for (size_t j = 0; j < term.atoms.size(); ++j) {
      if (i == j)
        continue;
      if (contradict(term.atoms[i], term.atoms[j]))
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

/// Whether `term` may go because of `by`. An exact term says more than one that
/// is not, so it stays. Of equal terms the first stays.
bool Normaliser::isCovered(const Term &term, const Term &by, bool later) {
  if ((!by.exact && term.exact) || !implies(term.atoms, by.atoms))
    return false;
  return later || term.exact != by.exact || !implies(by.atoms, term.atoms);
}

/// Drops an atom without which the term gains only what `other` has already (as
/// in "a, or b and not a").
bool Normaliser::dropAtom(Term &term, const Term &other) {
  if (!other.exact)
    return false;
  for (size_t m = 0; m < term.atoms.size(); ++m) {
    std::optional<unsigned> opposite = negated(term.atoms[m]);
    if (!opposite)
      continue;
    SmallVector<unsigned, 6> gained(term.atoms);
    gained[m] = *opposite;
    if (implies(gained, other.atoms)) {
      term.atoms.erase(term.atoms.begin() + m);
      return true;
    }
  }
  return false;
}

/// One term for two that touch (as "k <= q" and "q < k <= q + 5"): without an
/// atom of each, of which one always holds, their conjunction is covered by the
/// two. Null if it does not cover them in turn.
std::optional<Term> Normaliser::unite(const Term &a, const Term &b) {
  if (!a.exact || !b.exact)
    return std::nullopt;
  for (size_t i = 0; i < a.atoms.size(); ++i) {
    std::optional<unsigned> opposite = negated(a.atoms[i]);
    if (!opposite)
      continue;
    for (size_t j = 0; j < b.atoms.size(); ++j) {
      if (!implies(*opposite, b.atoms[j]))
        continue;
      Term both = a;
      both.atoms.erase(both.atoms.begin() + i);
      both.atoms.append(b.atoms.begin(), b.atoms.begin() + j);
      both.atoms.append(b.atoms.begin() + j + 1, b.atoms.end());
      if (implies(a.atoms, both.atoms) && implies(b.atoms, both.atoms) &&
          tidy(both))
        return both;
    }
  }
  return std::nullopt;
}

bool Normaliser::simplifyOnce(Terms &terms) {
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = 0; j < terms.size(); ++j) {
      if (i == j)
        continue;
      if (isCovered(terms[i], terms[j], /*later=*/j < i)) {
        terms.erase(terms.begin() + i);
        return true;
      }
      if (dropAtom(terms[i], terms[j]))
        return true;
      if (j < i)
        continue;
      if (std::optional<Term> both = unite(terms[i], terms[j])) {
        terms.erase(terms.begin() + j);
        terms[i] = std::move(*both);
        return true;
      }
    }
  return false;
}

/// Each step removes a term or an atom, so that there is an end.
void Normaliser::simplify(Terms &terms) {
  do {
    llvm::sort(terms, [&](const Term &a, const Term &b) {
      if (a.atoms.size() != b.atoms.size())
        return a.atoms.size() < b.atoms.size();
      for (auto [x, y] : llvm::zip(a.atoms, b.atoms))
        if (int c = compareAtoms(x, y))
          return c < 0;
      return a.exact > b.exact;
    });
  } while (simplifyOnce(terms));
}

/// One term that holds wherever one of `terms` holds.
Term Normaliser::join(const Terms &terms) {
  Term joined;
  joined.exact = false;
  for (const Term &term : terms)
    for (unsigned atom : term.atoms)
      if (!llvm::is_contained(joined.atoms, atom) &&
          llvm::all_of(terms, [&](const Term &other) {
            return implies(other.atoms, atom);
          }))
        joined.atoms.push_back(atom);
  tidy(joined);
  return joined;
}

void Normaliser::limitTerms(Terms &terms, size_t limit) {
  simplify(terms);
  if (terms.size() > limit) {
    Term joined = join(terms);
    terms.assign(1, joined);
  }
}

//===----------------------------------------------------------------------===//
// Expansion
//===----------------------------------------------------------------------===//

Terms Normaliser::product(Terms a, Terms b) {
  if (a.size() * b.size() > kMaxTerms) {
    // The smaller side stays as it is.
    Terms &larger = a.size() > b.size() ? a : b;
    Term joined = join(larger);
    larger.assign(1, joined);
  }
  Terms result;
  for (const Term &x : a)
    for (const Term &y : b) {
      Term both = x;
      both.exact &= y.exact;
      both.atoms.append(y.atoms.begin(), y.atoms.end());
      if (tidy(both))
        result.push_back(std::move(both));
    }
  simplify(result);
  return result;
}

Terms Normaliser::expand(const Formula *f) {
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
    terms.back().atoms.push_back(number(f->atom));
    break;
  case Formula::And:
    terms.emplace_back();
    for (const Formula *child : f->children)
      terms = product(std::move(terms), expand(child));
    break;
  case Formula::Or:
    for (const Formula *child : f->children) {
      llvm::append_range(terms, expand(child));
      if (terms.size() > kMaxTerms)
        limitTerms(terms, kMaxTerms);
    }
    simplify(terms);
    break;
  }
  known[f] = terms;
  return terms;
}

std::vector<Conjunction> Formulas::normalise(const Formula *f, size_t limit) {
  Normaliser normaliser;
  Terms terms = normaliser.expand(f);
  normaliser.limitTerms(terms, limit);
  std::vector<Conjunction> result;
  for (const Term &term : terms) {
    Conjunction &conjunction = result.emplace_back();
    conjunction.exact = term.exact;
    for (unsigned atom : term.atoms)
      conjunction.atoms.push_back(normaliser.getAtom(atom));
  }
  return result;
}
