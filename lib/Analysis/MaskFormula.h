//===- MaskFormula.h - a mask as formula over bounds ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Formulas in negation normal form whose atoms are "linear form >= 0", what
// cannot be bounded being an atom of its own; and their disjunctive normal
// form.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_ANALYSIS_MASKFORMULA_H
#define FI_LIB_ANALYSIS_MASKFORMULA_H

#include "LinearForm.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fi::mask {

struct Formula {
  enum Kind { False, True, Unknown, Atom, And, Or };
  Kind kind;
  Linear atom; // >= 0
  llvm::SmallVector<const Formula *, 2> children;
};

/// Atoms in canonical order, all of which hold; if not exact, something that is
/// not known must hold, too.
struct Conjunction {
  llvm::SmallVector<Linear, 4> atoms;
  bool exact = true;
};

/// Builds formulas. Solving a comparison for the key may make a larger one;
/// beyond a number of nodes, everything new is unknown.
class Formulas {
public:
  /// `report` is told, once per cause, what cannot be bounded.
  explicit Formulas(
      Leaves &leaves,
      llvm::function_ref<void(const Leaf *unknown, llvm::StringRef)> report)
      : leaves(leaves), report(report) {}

  const Formula *get(bool value) { return value ? &yes : &no; }
  const Formula *unknown() { return &unclear; }
  const Formula *all(llvm::ArrayRef<const Formula *> children);
  const Formula *any(llvm::ArrayRef<const Formula *> children);
  const Formula *negate(const Formula *f);
  const Formula *choose(const Formula *condition, const Formula *a,
                        const Formula *b);

  /// a + shift >= 0, a - b + shift >= 0, a == 0
  const Formula *atLeastZero(const std::optional<Linear> &a);
  const Formula *atLeast(const std::optional<Linear> &a,
                         const std::optional<Linear> &b, int64_t shift = 0);
  const Formula *isZero(const std::optional<Linear> &a);

  /// Disjunctive normal form of at most `limit` terms, simplified, in canonical
  /// order. Beyond the limit terms are joined to what they have in common.
  std::vector<Conjunction> normalise(const Formula *f, size_t limit);

private:
  const Formula *make(Formula formula);
  const Formula *substitute(const Linear &a, const Leaf *leaf,
                            const Linear &by);
  const Formula *solveFloorDiv(const Leaf &leaf, int64_t factor,
                               const Linear &rest);
  const Formula *solveTruncDiv(const Leaf &leaf, int64_t factor,
                               const Linear &rest);
  const Formula *solveSearch(const Leaf &load, int64_t factor,
                             const Linear &rest);
  const Formula *searchAtLeast(const Leaf &load,
                               const std::optional<Linear> &value,
                               bool atLeast);
  const Formula *fail(const Leaf *leaf, llvm::StringRef reason);
  const Formula *failIn(const Linear &a);

  Leaves &leaves;
  llvm::function_ref<void(const Leaf *, llvm::StringRef)> report;
  std::vector<std::unique_ptr<Formula>> nodes;
  llvm::DenseMap<const Formula *, const Formula *> negations;
  unsigned depth = 0;
  const Formula no{Formula::False, {}, {}};
  const Formula yes{Formula::True, {}, {}};
  const Formula unclear{Formula::Unknown, {}, {}};
};

} // namespace fi::mask

#endif // FI_LIB_ANALYSIS_MASKFORMULA_H
