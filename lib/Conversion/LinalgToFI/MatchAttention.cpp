//===- MatchAttention.cpp - softmax(Q K^T) V in tensor code ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Works on expressions, so that it does not matter which ops a front end writes
// and where it reshapes, transposes, broadcasts and rounds.
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetOperations.h"
#include <cmath>

using namespace mlir;
using namespace fi::raise;

namespace {

class Matcher {
public:
  Matcher(ExprGraph &graph, std::string &why) : graph(graph), why(why) {}

  std::optional<Attention> match(OpResult result);

private:
  bool fail(const Twine &reason) {
    why = reason.str();
    return false;
  }

  bool matchRoot(Expr *root);
  bool matchWeights(Expr *weights);
  bool matchSum(Expr *numerator, Expr *denominator);
  bool matchExponential(Expr *weights);
  bool matchScores(Expr *scores);
  bool matchLoops();
  bool matchUses();

  /// Whether something looks like weights: an exponential, and a sum or maximum
  /// that is no product of matrices (which the gates of a layer have, too).
  bool looksNormalised(Expr *expr) {
    bool hasExponential = false, hasReduction = false;
    look(expr, hasExponential, hasReduction);
    return hasExponential && hasReduction;
  }
  void look(Expr *expr, bool &hasExponential, bool &hasReduction,
            int depth = 0);
  /// The product of queries and keys: sums of products in elementwise code.
  void findProducts(Expr *expr, llvm::SetVector<Expr *> &found, int depth = 0);
  bool containsProduct(Expr *expr, int depth = 0);
  Expr *simplify(Expr *expr, bool isOutermost);
  /// What is left without factors, and through casts: a read of a tensor, or
  /// null.
  Expr *stripFactors(Expr *expr);
  bool isProductOf(Expr *reduce, Expr *&a, Expr *&b);
  LoopIndex getLoops(const Access &access) {
    LoopIndex result;
    for (const LoopIndex &index : graph.loops.resolve(access))
      llvm::append_range(result, index);
    return result;
  }

  ExprGraph &graph;
  std::string &why;
  Attention found;
};

} // namespace

static bool isHidden(Expr *expr) {
  auto number = expr->getNumber();
  return number && *number <= -65504.0;
}

static bool isZero(Expr *expr) {
  auto number = expr->getNumber();
  return number && *number == 0;
}

bool Matcher::isProductOf(Expr *reduce, Expr *&a, Expr *&b) {
  if (reduce->kind != Expr::Kind::Reduce || !isa<arith::AddFOp>(reduce->op))
    return false;
  Expr *product = graph.strip(reduce->operands[0]);
  if (!product->applies<arith::MulFOp>())
    return false;
  a = product->operands[0];
  b = product->operands[1];
  return true;
}

void Matcher::look(Expr *expr, bool &hasExponential, bool &hasReduction,
                   int depth) {
  expr = graph.peek(expr);
  Expr *a, *b;
  if (expr->applies<linalg::SoftmaxOp>())
    hasExponential = hasReduction = true;
  hasExponential |= expr->applies<math::ExpOp, math::Exp2Op>();
  hasReduction |= expr->kind == Expr::Kind::Reduce && !isProductOf(expr, a, b);
  if (expr->kind == Expr::Kind::Apply && depth < 8)
    for (Expr *operand : expr->operands)
      look(operand, hasExponential, hasReduction, depth + 1);
}

bool Matcher::matchRoot(Expr *root) {
  Expr *a, *b;
  if (isProductOf(root, a, b)) {
    bool isFirst = looksNormalised(a);
    if (!isFirst && !looksNormalised(b))
      return false;
    found.keys = graph.loops.resolve(root->index);
    found.value = isFirst ? b : a;
    return matchWeights(isFirst ? a : b);
  }
  // The values are summed before the division.
  if (!root->applies<arith::DivFOp>())
    return false;
  Expr *sum = graph.strip(root->operands[0]);
  if (!isProductOf(sum, a, b))
    return false;
  bool isFirst = looksNormalised(a);
  // Without a maximum only the division below shows what it is.
  if (!isFirst && !looksNormalised(b)) {
    Expr *below = graph.strip(root->operands[1]), *x, *y;
    if (below->kind != Expr::Kind::Reduce || isProductOf(below, x, y))
      return false;
    isFirst = graph.strip(a)->applies<math::ExpOp, math::Exp2Op>();
    if (!isFirst && !graph.strip(b)->applies<math::ExpOp, math::Exp2Op>())
      return false;
  }
  found.keys = graph.loops.resolve(sum->index);
  found.value = isFirst ? b : a;
  Expr *weights = isFirst ? a : b;
  return matchSum(weights, root->operands[1]) && matchExponential(weights);
}

bool Matcher::matchWeights(Expr *weights) {
  weights = graph.strip(weights);
  if (weights->applies<linalg::SoftmaxOp>()) {
    if (graph.loops.resolve(weights->index) != found.keys)
      return fail("the weights are normalised over another dimension than that "
                  "of the keys");
    return matchScores(weights->operands[0]);
  }
  if (weights->applies<arith::DivFOp>())
    return matchSum(weights->operands[0], weights->operands[1]) &&
           matchExponential(weights->operands[0]);
  if (weights->applies<arith::MulFOp>())
    for (unsigned one : {0u, 1u}) {
      Expr *inverse = graph.strip(weights->operands[one]);
      if (inverse->applies<arith::DivFOp>() && inverse->operands[0] &&
          graph.strip(inverse->operands[0])->getNumber() == 1.0)
        return matchSum(weights->operands[1 - one], inverse->operands[1]) &&
               matchExponential(weights->operands[1 - one]);
    }
  if (weights->applies<math::ExpOp, math::Exp2Op>())
    return fail("the weights are not divided by their sum");
  return fail("the weights are changed behind the softmax");
}

bool Matcher::matchSum(Expr *numerator, Expr *denominator) {
  denominator = graph.strip(denominator);
  if (denominator->kind != Expr::Kind::Reduce ||
      !isa<arith::AddFOp>(denominator->op))
    return fail("the weights are not divided by their sum");
  LoopIndex summed = graph.loops.resolve(denominator->index);
  if (summed.size() != 1 || found.keys.size() != 1)
    return fail("the keys are not one dimension of which more than one is "
                "known");
  llvm::DenseMap<int, int> loops = {{summed[0], found.keys[0]}};
  if (!graph.areEqual(denominator->operands[0], numerator, loops))
    return fail("the weights are divided by another sum than that over the "
                "keys");
  return true;
}

bool Matcher::matchExponential(Expr *weights) {
  weights = graph.strip(weights);
  if (!weights->applies<math::ExpOp, math::Exp2Op>())
    return fail("the weights are changed between the exponential and the "
                "product with the values");
  if (isa<math::Exp2Op>(weights->op))
    found.postScale *= std::log(2.0);
  Expr *scores = graph.strip(weights->operands[0]);
  while (scores->applies<arith::MulFOp>()) {
    auto factor = graph.strip(scores->operands[1])->getNumber();
    if (!factor || *factor <= 0 ||
        !graph.strip(scores->operands[0])->applies<arith::SubFOp>())
      break;
    found.postScale *= *factor;
    scores = graph.strip(scores->operands[0]);
  }
  if (!scores->applies<arith::SubFOp>())
    // Nothing is subtracted, which is the same but for overflow.
    return matchScores(scores);
  Expr *largest = graph.strip(scores->operands[1]);
  if (largest->kind != Expr::Kind::Reduce ||
      !isa<arith::MaximumFOp, arith::MaxNumFOp>(largest->op))
    return fail("what is subtracted from the scores is not their largest");
  LoopIndex reduced = graph.loops.resolve(largest->index);
  if (reduced.size() != 1)
    return fail("the largest score is that of more than the keys");
  llvm::DenseMap<int, int> loops = {{reduced[0], found.keys[0]}};
  if (!graph.areEqual(largest->operands[0], scores->operands[0], loops))
    return fail("what is subtracted from the scores is the largest of others");
  return matchScores(scores->operands[0]);
}

void Matcher::findProducts(Expr *expr, llvm::SetVector<Expr *> &products,
                           int depth) {
  expr = graph.peek(expr);
  Expr *a, *b;
  if (isProductOf(expr, a, b)) {
    products.insert(expr);
    return;
  }
  if (expr->kind == Expr::Kind::Apply && depth < 16)
    for (Expr *operand : expr->operands)
      findProducts(operand, products, depth + 1);
}

bool Matcher::containsProduct(Expr *expr, int depth) {
  expr = graph.peek(expr);
  if (expr == found.product)
    return true;
  return expr->kind == Expr::Kind::Apply && depth < 16 &&
         llvm::any_of(
             expr->operands,
             [&](Expr *operand) {
               return containsProduct(operand, depth + 1);
             });
}

/// Takes constant factors of the product into the scale, and masks apart.
Expr *Matcher::simplify(Expr *expr, bool isOutermost) {
  expr = graph.peek(expr);
  if (expr == found.product || !containsProduct(expr))
    return expr;
  if (expr->isCast()) {
    Expr *inner = simplify(expr->operands[0], isOutermost);
    return inner == found.product ? inner : graph.apply(*expr, {inner});
  }
  if (expr->applies<arith::MulFOp, arith::DivFOp>()) {
    bool isDivision = expr->applies<arith::DivFOp>();
    for (unsigned side : {0u, 1u}) {
      auto number = graph.strip(expr->operands[1 - side])->getNumber();
      if (!number || *number == 0 || (isDivision && side == 1))
        continue;
      Expr *inner = simplify(expr->operands[side], isOutermost && *number > 0);
      if (inner == found.product) {
        found.scale *= isDivision ? 1 / *number : *number;
        return inner;
      }
      SmallVector<Expr *, 2> operands(expr->operands.begin(),
                                      expr->operands.end());
      operands[side] = inner;
      return graph.apply(*expr, operands);
    }
  }
  if (isOutermost && expr->applies<arith::SelectOp>())
    for (unsigned side : {1u, 2u})
      if (isHidden(graph.strip(expr->operands[3 - side]))) {
        found.masks.push_back({expr->operands[0], side == 1});
        return simplify(expr->operands[side], true);
      }
  if (isOutermost && expr->applies<arith::AddFOp>())
    for (unsigned side : {0u, 1u}) {
      if (!containsProduct(expr->operands[side]))
        continue;
      Expr *term = graph.strip(expr->operands[1 - side]);
      if (term->applies<arith::SelectOp>())
        for (unsigned visible : {1u, 2u})
          if (isZero(graph.strip(term->operands[visible])) &&
              isHidden(graph.strip(term->operands[3 - visible]))) {
            found.masks.push_back({term->operands[0], visible == 1});
            return simplify(expr->operands[side], true);
          }
      return graph.apply(*expr, {simplify(expr->operands[side], true),
                                 expr->operands[1 - side]});
    }
  SmallVector<Expr *, 3> operands;
  for (Expr *operand : expr->operands)
    operands.push_back(simplify(operand, false));
  return graph.apply(*expr, operands);
}

Expr *Matcher::stripFactors(Expr *expr) {
  for (;;) {
    Expr *inner = expr->isRead() ? graph.expand(expr) : expr;
    if (!inner)
      return expr;
    if (inner->isRead()) {
      expr = inner;
      continue;
    }
    if (inner->isCast()) {
      expr = inner->operands[0];
      continue;
    }
    if (inner->applies<arith::MulFOp, arith::DivFOp>()) {
      bool isDivision = inner->applies<arith::DivFOp>();
      auto right = graph.strip(inner->operands[1])->getNumber();
      auto left = isDivision ? std::nullopt
                             : graph.strip(inner->operands[0])->getNumber();
      if (right && *right != 0) {
        found.scale *= isDivision ? 1 / *right : *right;
        expr = inner->operands[0];
        continue;
      }
      if (left) {
        found.scale *= *left;
        expr = inner->operands[1];
        continue;
      }
    }
    return expr->isRead() ? expr : nullptr;
  }
}

bool Matcher::matchScores(Expr *scores) {
  llvm::SetVector<Expr *> products;
  findProducts(scores, products);
  if (products.empty())
    return fail("the scores are no products of queries and keys");
  if (products.size() > 1)
    return fail("the scores are made of more than one product");
  found.product = products.front();
  found.score = simplify(scores, true);
  if (found.score == found.product) {
    found.scale *= found.postScale;
    found.postScale = 1;
  }
  Expr *a, *b;
  isProductOf(found.product, a, b);
  found.query = stripFactors(a);
  found.key = stripFactors(b);
  double scale = found.scale;
  found.value = stripFactors(found.value);
  if (!found.query || !found.key || !found.value)
    return fail("queries, keys or values are not read from tensors");
  if (found.scale != scale)
    return fail("the values are scaled");
  return matchLoops();
}

static LoopIndex without(const LoopIndex &loops, const LoopIndex &others) {
  LoopIndex result;
  llvm::copy_if(loops, std::back_inserter(result),
                [&](int loop) { return !llvm::is_contained(others, loop); });
  return result;
}

static bool isSameSet(LoopIndex a, LoopIndex b) {
  llvm::sort(a);
  llvm::sort(b);
  return a == b;
}

static bool areUnique(LoopIndex loops) {
  llvm::sort(loops);
  return std::adjacent_find(loops.begin(), loops.end()) == loops.end();
}

bool Matcher::matchLoops() {
  found.keys = graph.loops.resolve(found.keys);
  found.dim = graph.loops.resolve(found.product->index);
  auto holdsKeys = [&](Expr *read) {
    return llvm::is_contained(getLoops(read->access), found.keys[0]);
  };
  if (found.keys.size() != 1)
    return fail("the keys are not one dimension of which more than one is "
                "known");
  if (holdsKeys(found.query))
    std::swap(found.query, found.key);
  LoopIndex query = getLoops(found.query->access),
            key = getLoops(found.key->access),
            value = getLoops(found.value->access),
            result = getLoops(found.resultAccess);
  if (!holdsKeys(found.key) || holdsKeys(found.query) ||
      !holdsKeys(found.value))
    return fail(
        "the dimension of the keys is not one of keys and values alone");
  if (!areUnique(query) || !areUnique(key) || !areUnique(value))
    return fail("an operand is read along a diagonal");

  found.valueDim = without(without(without(value, found.keys), query), key);
  LoopIndex shared = without(without(key, found.keys), found.dim);
  if (!isSameSet(shared, without(without(value, found.keys), found.valueDim)))
    return fail("keys and values differ in their batch or heads");
  if (!without(shared, query).empty())
    return fail("the query lacks a dimension of batch or heads that keys have");
  if (!without(found.dim, query).empty() || !without(found.dim, key).empty())
    return fail("queries and keys are not summed over the same columns");
  LoopIndex rest = without(without(query, found.dim), shared);
  LoopIndex expected = shared;
  llvm::append_range(expected, rest);
  llvm::append_range(expected, found.valueDim);
  if (!isSameSet(expected, result))
    return fail(
        "the result has other dimensions than the rows, heads and batch "
        "of the query and the columns of the values");

  // Rows are what stands before the keys in the scores; other dimensions that
  // keys do not have are heads that share them.
  Access scores = graph.loops.resolve(found.product->access);
  LoopIndex before;
  for (size_t d = 1; d < scores.size(); ++d)
    if (scores[d] == found.keys)
      before = scores[d - 1];
  if (before.size() == 1 && llvm::is_contained(rest, before[0]))
    found.row = before;
  else if (rest.size() == 1 && !before.empty())
    found.row = rest;
  found.group = without(rest, found.row);

  // In the query's order. With one dimension that is known, it is that of
  // heads.
  LoopIndex batch =
      without(without(without(query, found.dim), found.row), found.group);
  auto isOpen = [&](int loop) {
    return ShapedType::isDynamic(graph.loops.getSize(loop));
  };
  // Unless the query's rows stand between it and its heads.
  auto isBeforeRows = [&] {
    auto at = [&](int loop) { return llvm::find(query, loop); };
    return !found.row.empty() && !found.group.empty() &&
           at(batch[0]) < at(found.row[0]) &&
           at(found.row[0]) < at(found.group[0]);
  };
  if (batch.size() > 1 ||
      (batch.size() == 1 && (isOpen(batch[0]) || isBeforeRows())))
    found.request = {batch[0]};
  found.heads = without(batch, found.request);
  for (const LoopIndex &known :
       {found.heads, found.group, found.dim, found.valueDim})
    if (llvm::any_of(known, isOpen))
      return fail("the number of heads or columns is not known");
  return true;
}

/// What others use too, between the product and the result, would be computed
/// twice.
bool Matcher::matchUses() {
  SmallVector<Operation *> work = {found.product->source};
  llvm::DenseSet<Operation *> between(work.begin(), work.end());
  while (!work.empty())
    for (Operation *user : work.pop_back_val()->getUsers()) {
      if (!graph.seen.contains(user)) {
        if (!user->use_empty() || user->hasTrait<OpTrait::IsTerminator>())
          return fail("the scores or weights are used by another operation");
        continue;
      }
      if (user != found.result.getOwner() && between.insert(user).second)
        work.push_back(user);
    }
  return true;
}

std::optional<Attention> Matcher::match(OpResult result) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (!type || !isa<FloatType>(type.getElementType()))
    return std::nullopt;
  found.result = result;
  for (int64_t size : type.getShape())
    found.resultAccess.push_back(graph.loops.make(size));
  Expr *root = graph.expand(graph.read(result, found.resultAccess));
  if (!root || !matchRoot(root) || !matchUses())
    return std::nullopt;
  return found;
}

std::optional<Attention>
fi::raise::matchAttention(ExprGraph &graph, OpResult result, std::string &why) {
  return Matcher(graph, why).match(result);
}
