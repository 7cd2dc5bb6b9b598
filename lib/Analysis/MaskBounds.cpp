//===- MaskBounds.cpp - which keys a mask can let through -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From formulas to bounds, and from bounds to the attribute and back.
//
//===----------------------------------------------------------------------===//

#include "fi/Analysis/MaskBounds.h"
#include "MaskReader.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace fi;
using namespace fi::mask;

/// Terms of a mask; each costs the plan time for every tile of rows.
static constexpr size_t kMaxTerms = 16;

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

namespace {
class TermBuilder {
public:
  TermBuilder(MLIRContext *context, const Leaf *key)
      : context(context), key(key) {}

  MaskTerm build(const Conjunction &conjunction) {
    MaskTerm term;
    term.exact = conjunction.exact;
    for (const Linear &atom : conjunction.atoms)
      if (!addBound(atom, term))
        term.exact = false;
    return term;
  }

private:
  ArrayAttr number(int64_t value) { return expressConstant(context, value); }

  /// False where the bound says less than the atom.
  bool addBound(const Linear &atom, MaskTerm &term) {
    int64_t factor = 0;
    bool exact = true;
    Linear rest;
    rest.constant = atom.constant;
    for (auto [leaf, coefficient] : atom.terms) {
      if (leaf == key) {
        factor = coefficient;
        continue;
      }
      // What is searched for the size of a tensor of 64 bits may be found, so
      // that the result is at most the size.
      if (leaf->kind == Leaf::Size && !leaf->narrow) {
        if (coefficient > 0)
          return false;
        exact = false;
      }
      rest.terms.push_back({leaf, coefficient});
    }
    if (factor == 0) {
      // A condition without the key's position: bounds all keys, or none. The
      // numbers are out of reach of positions and do not overflow.
      ArrayAttr sign = express(
          context, "min",
          {express(context, "max", {express(context, rest), number(-1)}),
           number(0)});
      term.hi.push_back(
          express(context, "add",
                  {express(context, "mul", {sign, number(int64_t(1) << 62)}),
                   number(int64_t(1) << 61)}));
      return exact;
    }
    if (factor > 0) {
      std::optional<Linear> negated = scale(rest, -1);
      if (!negated)
        return false;
      ArrayAttr bound = express(context, *negated);
      term.lo.push_back(
          factor == 1 ? bound
                      : express(context, "ceildiv", {bound, number(factor)}));
      return exact;
    }
    ArrayAttr bound = express(context, rest);
    term.hi.push_back(
        factor == -1 ? bound
                     : express(context, "floordiv", {bound, number(-factor)}));
    return exact;
  }

  MLIRContext *context;
  const Leaf *key;
};
} // namespace

/// The bounds if positions lie within `limit` of zero. If `isGuarded`, what is
/// further away is left open.
static MaskBounds analyze(AttentionOp op, int64_t limit, bool isGuarded) {
  MaskBounds bounds;
  MaskReader reader(op, limit, bounds.remarks);
  SmallVector<const Formula *> masks;
  // The attributes are built into a block of their own, which is dropped.
  Block block;
  if (ArrayAttr attributes = op.getMasksAttr()) {
    for (Type type : AttentionOp::getMaskArgumentTypes(op.getContext()))
      block.addArgument(type, op.getLoc());
    reader.bindArguments(block.getArguments());
    OpBuilder builder(op.getContext());
    builder.setInsertionPointToEnd(&block);
    for (Attribute attribute : attributes)
      masks.push_back(
          reader.readBoolean(cast<MaskAttrInterface>(attribute).buildMask(
              builder, op.getLoc(), block.getArguments())));
  }
  Region &region = op.getMaskRegion();
  if (!region.empty()) {
    reader.bindArguments(region.getArguments());
    masks.push_back(
        reader.readBoolean(region.front().getTerminator()->getOperand(0)));
  }
  Formulas &formulas = reader.getFormulas();
  SmallVector<Linear> limits;
  if (isGuarded)
    limits = reader.getLimits();
  std::vector<Conjunction> terms =
      formulas.normalise(formulas.all(masks), kMaxTerms - limits.size());
  if (isGuarded) {
    // Its formulas take the limits for granted, so that they are added here.
    for (Conjunction &term : terms)
      term.atoms.append(limits.begin(), limits.end());
    for (const Linear &atom : limits)
      terms.push_back({{*addConstant(*scale(atom, -1), -1)}, /*exact=*/false});
  }
  TermBuilder builder(op.getContext(),
                      reader.getKeyPosition().terms.front().first);
  for (const Conjunction &term : terms)
    bounds.terms.push_back(builder.build(term));
  return bounds;
}

FailureOr<MaskBounds> fi::analyzeMask(AttentionOp op) {
  ArrayAttr attributes = op.getMasksAttr();
  if ((!attributes || attributes.empty()) && op.getMaskRegion().empty())
    return failure();
  // Positions that follow from lengths fit i32, and so do their differences.
  auto view = op.getView().getDefiningOp<KVViewOpInterface>();
  if (view && !view.getViewOrigin() && !op.getPositions())
    return analyze(op, kMaxLength, /*isGuarded=*/false);
  MaskBounds anywhere = analyze(op, kMaxPosition, /*isGuarded=*/false);
  if (anywhere.remarks.empty())
    return anywhere;
  MaskBounds near = analyze(op, kMaxLength, /*isGuarded=*/true);
  return near.remarks.size() < anywhere.remarks.size() ? near : anywhere;
}

//===----------------------------------------------------------------------===//
// Attribute
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kLow = "lo", kHigh = "hi", kExact = "exact";

ArrayAttr MaskBounds::toAttr(MLIRContext *context) const {
  Builder b(context);
  auto list = [&](ArrayRef<ArrayAttr> bounds) {
    return b.getArrayAttr(SmallVector<Attribute>(bounds.begin(), bounds.end()));
  };
  SmallVector<Attribute> result;
  for (const MaskTerm &term : terms)
    result.push_back(b.getDictionaryAttr(
        {b.getNamedAttr(kLow, list(term.lo)),
         b.getNamedAttr(kHigh, list(term.hi)),
         b.getNamedAttr(kExact, b.getBoolAttr(term.exact))}));
  return b.getArrayAttr(result);
}

/// Whether an attribute is an expression of docs/abi.md.
static bool isExpression(Attribute attr, unsigned depth = 0) {
  auto array = dyn_cast_or_null<ArrayAttr>(attr);
  if (!array || array.empty() || depth > 64 || !isa<StringAttr>(array[0]))
    return false;
  StringRef head = cast<StringAttr>(array[0]).getValue();
  size_t first = 1;
  if (head == "const") {
    auto number =
        array.size() == 2 ? dyn_cast<IntegerAttr>(array[1]) : IntegerAttr();
    return number && number.getValue().getSignificantBits() <= 64;
  }
  if (head == "scalar")
    return array.size() == 2 && isa<StringAttr>(array[1]);
  if (head == "load" || head == "first") {
    if (array.size() < 3 || !isa<StringAttr>(array[1]))
      return false;
    first = 2;
  } else {
    size_t operands = llvm::StringSwitch<size_t>(head)
                          .Cases({"q", "request", "q_head", "kv_head"}, 0)
                          .Cases({"kv_len", "q_len"}, 0)
                          .Cases({"add", "sub", "mul", "min", "max"}, 2)
                          .Cases({"floordiv", "ceildiv"}, 2)
                          .Default(SIZE_MAX);
    if (array.size() - 1 != operands)
      return false;
  }
  return llvm::all_of(array.getValue().drop_front(first),
                      [&](Attribute e) { return isExpression(e, depth + 1); });
}

FailureOr<MaskBounds> MaskBounds::fromAttr(ArrayAttr attr) {
  MaskBounds bounds;
  for (Attribute element : attr) {
    auto dictionary = dyn_cast<DictionaryAttr>(element);
    if (!dictionary)
      return failure();
    MaskTerm term;
    auto exact = dictionary.getAs<BoolAttr>(kExact);
    if (!exact || dictionary.size() != 3)
      return failure();
    term.exact = exact.getValue();
    for (auto [name, list] :
         {std::pair(kLow, &term.lo), std::pair(kHigh, &term.hi)}) {
      auto array = dictionary.getAs<ArrayAttr>(name);
      if (!array)
        return failure();
      for (Attribute expression : array) {
        if (!isExpression(expression))
          return failure();
        list->push_back(cast<ArrayAttr>(expression));
      }
    }
    bounds.terms.push_back(std::move(term));
  }
  return bounds;
}
