//===- MaskReader.cpp - from a mask's IR to formulas ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every integer is kept only where it equals what the machine computes: where
// arithmetic of its width could wrap, it is unknown.
//
//===----------------------------------------------------------------------===//

#include "MaskReader.h"
#include "fi/Analysis/MaskBounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace fi;
using namespace fi::mask;

/// Nesting of operations that is followed.
static constexpr unsigned kMaxDepth = 200;

/// Bits of an integer; `index` has 64 by rule. 0 for other types.
static unsigned widthOf(Type type) {
  if (isa<IndexType>(type))
    return 64;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() <= 64 ? integer.getWidth() : 0;
}

static Interval rangeOfWidth(unsigned width) {
  if (width == 0 || width > 64)
    width = 64;
  Wide half = Wide(1) << (width - 1);
  return {-half, half - 1};
}

static Interval rangeOfPlanData(Type type) {
  unsigned width = widthOf(type);
  return width == 64 ? Interval{-Wide(kMaxPlanData), Wide(kMaxPlanData)}
                     : rangeOfWidth(width);
}

/// What of a range 64 bits can hold: products of such ends do not overflow.
static Interval clamp(Interval range) {
  return {std::max<Wide>(range.least, INT64_MIN),
          std::min<Wide>(range.most, INT64_MAX)};
}

MaskReader::MaskReader(AttentionOp op, int64_t limit, Remarks &remarks)
    : op(op), program(op->getParentOfType<ProgramOp>()), limit(limit),
      remarks(remarks), current(op.getLoc()),
      report([this](const Leaf *leaf, llvm::StringRef reason) {
        remark(leaf && leaf->loc ? *leaf->loc : current, reason);
      }),
      formulas(leaves, report) {
  Leaf leaf;
  leaf.kind = Leaf::QueryPosition;
  leaf.range = {-Wide(limit), Wide(limit)};
  queryPosition = leaves.unique(leaf);
  leaf.kind = Leaf::KeyPosition;
  leaf.usesKey = true;
  // Without an origin key 0 is at position 0.
  auto view = op.getView().getDefiningOp<KVViewOpInterface>();
  if (view && !view.getViewOrigin())
    leaf.range.least = 0;
  keyPosition = leaves.unique(std::move(leaf));
}

void MaskReader::remark(Location loc, llvm::StringRef reason) {
  std::pair<Location, std::string> entry(loc, reason.str());
  if (!llvm::is_contained(remarks, entry))
    remarks.push_back(std::move(entry));
}

void MaskReader::bindArguments(ValueRange arguments) {
  int64_t heads = op.getQueryHeads(), kvHeads = op.getViewType().getKVHeads();
  const std::pair<Leaf::Kind, Interval> positions[] = {
      {Leaf::Request, {0, kMaxLength}},
      {Leaf::QueryHead, {0, heads - 1}},
      {Leaf::KVHead, {0, kvHeads - 1}}};
  for (auto [argument, position] : llvm::zip(arguments, positions)) {
    Leaf leaf;
    leaf.kind = position.first;
    leaf.range = position.second;
    integers[argument] = leaf.range.least == leaf.range.most
                             ? constant(int64_t(leaf.range.least))
                             : leaves.unique(std::move(leaf));
  }
  integers[arguments[3]] = queryPosition;
  integers[arguments[4]] = keyPosition;
  for (auto [argument, captured] :
       llvm::zip(arguments.drop_front(5), op.getCaptures()))
    captures[argument] = captured;
}

SmallVector<Linear> MaskReader::getLimits() const {
  SmallVector<Linear> limits;
  for (const Linear &position : {queryPosition, keyPosition})
    for (int64_t sign : {1, -1})
      limits.push_back(*addConstant(*scale(position, sign), limit));
  return limits;
}

Linear MaskReader::fail(Value value, std::string reason) {
  return leaves.unknown(value.getLoc(), std::move(reason),
                        rangeOfWidth(widthOf(value.getType())),
                        /*usesKey=*/true);
}

/// `form` as the value of `value`, if the arithmetic behind it does not wrap.
Linear MaskReader::fit(Value value, const std::optional<Linear> &form,
                       bool cannotWrap) {
  unsigned width = widthOf(value.getType());
  Interval limits = rangeOfWidth(width);
  if (form && width > 1 &&
      (cannotWrap || rangeOf(*form).within(limits.least, limits.most)))
    return *form;
  return fail(value, "arithmetic of " + std::to_string(width) +
                         " bits may overflow here; use index");
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Linear MaskReader::readInteger(Value value) {
  auto known = integers.find(value);
  if (known != integers.end())
    return known->second;
  ++depth;
  Linear form = depth > kMaxDepth ? fail(value, "its arithmetic is too large")
                                  : computeInteger(value);
  --depth;
  integers[value] = form;
  return form;
}

Linear MaskReader::computeInteger(Value value) {
  if (Value captured = captures.lookup(value))
    return readCapture(value, captured);
  Operation *definition = value.getDefiningOp();
  if (!definition)
    return fail(value, "this value is not known");
  llvm::APInt number;
  if (matchPattern(value, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64)
    return constant(number.getSExtValue());
  if (auto load = dyn_cast<LoadOp>(definition))
    return readLoad(load);
  if (auto choice = dyn_cast<scf::IfOp>(definition)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    Leaf leaf;
    leaf.kind = Leaf::Select;
    leaf.condition = readBoolean(choice.getCondition());
    leaf.operands = {readInteger(choice.thenYield().getOperand(index)),
                     readInteger(choice.elseYield().getOperand(index))};
    Interval a = rangeOf(leaf.operands[0]), b = rangeOf(leaf.operands[1]);
    leaf.range = {std::min(a.least, b.least), std::max(a.most, b.most)};
    leaf.expressible = false;
    leaf.id = integers.size() + 1;
    return leaves.unique(std::move(leaf));
  }
  return readArithmetic(definition);
}

std::optional<unsigned> MaskReader::getPlanArgument(Value captured,
                                                    std::string &reason) {
  auto argument = dyn_cast<BlockArgument>(captured);
  if (!program || !argument ||
      argument.getOwner() != &program.getBody().front()) {
    reason = "it reads a capture that is no argument of the program";
    return std::nullopt;
  }
  unsigned index = argument.getArgNumber();
  std::string name = program.getArgumentName(index);
  if (!program.isPlanArgument(index)) {
    reason = "it reads run argument '" + name +
             "'; only plan arguments are known when tiles are chosen";
    return std::nullopt;
  }
  Type element = getElementTypeOrSelf(captured.getType());
  if (!element.isInteger(8) && !element.isInteger(32) &&
      !element.isInteger(64) && !element.isIndex()) {
    reason = "plan argument '" + name +
             "' does not hold integers of type i8, i32, i64 or index";
    return std::nullopt;
  }
  return index;
}

Linear MaskReader::readCapture(Value value, Value captured) {
  llvm::APInt number;
  if (matchPattern(captured, m_ConstantInt(&number)) &&
      number.getSignificantBits() <= 64)
    return constant(number.getSExtValue());
  std::string reason;
  std::optional<unsigned> index = getPlanArgument(captured, reason);
  if (!index)
    return fail(value, reason);
  Leaf leaf;
  leaf.kind = Leaf::Scalar;
  leaf.name = program.getArgumentName(*index);
  leaf.range = rangeOfPlanData(captured.getType());
  return leaves.unique(std::move(leaf));
}

Linear MaskReader::readLoad(LoadOp load) {
  Value captured = captures.lookup(load.getSource());
  if (!captured)
    return fail(load, "it does not load from a capture");
  std::string reason;
  std::optional<unsigned> index = getPlanArgument(captured, reason);
  if (!index)
    return fail(load, reason);
  auto type = cast<ShapedType>(captured.getType());
  if (type.getRank() == 0)
    return fail(load, "plan data without dimensions has no expression");
  Leaf leaf;
  leaf.kind = Leaf::Load;
  leaf.name = program.getArgumentName(*index);
  leaf.range = rangeOfPlanData(type.getElementType());
  leaf.sorted = static_cast<bool>(program.getArgAttr(*index, kSortedAttr));
  leaf.narrow = widthOf(type.getElementType()) <= 32;
  leaf.rank = type.getRank();
  if (!ShapedType::isDynamic(type.getShape().back()))
    leaf.lastSize = type.getShape().back();
  for (Value operand : load.getIndices())
    leaf.operands.push_back(readInteger(operand));
  return leaves.unique(std::move(leaf));
}

/// Whether an operation states that its result does not wrap.
static bool cannotWrap(Operation *op) {
  auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op);
  return flags && flags.hasNoSignedWrap();
}

Linear MaskReader::readArithmetic(Operation *op) {
  Value result = op->getResult(0);
  StringRef dialect = op->getName().getDialectNamespace();
  StringRef name = op->getName().stripDialect();
  auto unread = [&] {
    return fail(result, "it depends on '" + op->getName().getStringRef().str() +
                            "', which has no bounds");
  };
  if ((dialect != "arith" && dialect != "index") ||
      widthOf(result.getType()) == 0)
    return unread();
  if (name == "index_cast" || name == "casts" || name == "extsi" ||
      name == "trunci")
    return readCast(op, /*isUnsigned=*/false);
  if (name == "index_castui" || name == "castu" || name == "extui")
    return readCast(op, /*isUnsigned=*/true);
  if (name == "select") {
    Leaf leaf;
    leaf.kind = Leaf::Select;
    leaf.condition = readBoolean(op->getOperand(0));
    leaf.operands = {readInteger(op->getOperand(1)),
                     readInteger(op->getOperand(2))};
    Interval a = rangeOf(leaf.operands[0]), b = rangeOf(leaf.operands[1]);
    leaf.range = {std::min(a.least, b.least), std::max(a.most, b.most)};
    leaf.expressible = false;
    leaf.id = integers.size() + 1;
    return leaves.unique(std::move(leaf));
  }
  // index.add and friends take two operands, too; min and max may take more.
  if (op->getNumOperands() != 2)
    return unread();
  Linear a = readInteger(op->getOperand(0)), b = readInteger(op->getOperand(1));
  auto nonnegative = [&] {
    return rangeOf(a).least >= 0 && rangeOf(b).least >= 0;
  };
  if (name == "addi" || name == "add")
    return fit(result, add(a, b), cannotWrap(op));
  if (name == "subi" || name == "sub")
    return fit(result, add(a, b, -1), cannotWrap(op));
  if (name == "muli" || name == "mul") {
    if (a.isConstant())
      std::swap(a, b);
    if (b.isConstant())
      return fit(result, scale(a, b.constant), cannotWrap(op));
    if (a.usesKey() || b.usesKey() || !a.expressible() || !b.expressible())
      return unread();
    Leaf leaf;
    leaf.kind = Leaf::Product;
    leaf.operands = {a, b};
    if (compare(a, b) > 0)
      std::swap(leaf.operands[0], leaf.operands[1]);
    Interval x = clamp(rangeOf(a)), y = clamp(rangeOf(b));
    Wide ends[] = {x.least * y.least, x.least * y.most, x.most * y.least,
                   x.most * y.most};
    leaf.range = {*std::min_element(ends, ends + 4),
                  *std::max_element(ends, ends + 4)};
    return fit(result, leaves.unique(std::move(leaf)), cannotWrap(op));
  }
  bool isUnsigned = name.ends_with("ui") || name == "minu" || name == "maxu";
  if (name.starts_with("min") || name.starts_with("max")) {
    if (isUnsigned && !nonnegative())
      return unread();
    return fit(result, leaves.minMax(name.starts_with("min"), a, b));
  }
  if (name == "shli" || name == "shl") {
    if (!b.isConstant() || b.constant < 0 || b.constant > 62)
      return unread();
    return fit(result, scale(a, int64_t(1) << b.constant), cannotWrap(op));
  }
  if (name == "shrsi" || name == "shrs" || name == "shrui" || name == "shru") {
    bool logical = name == "shrui" || name == "shru";
    if (!b.isConstant() || b.constant < 0 || b.constant > 62 ||
        (logical && !nonnegative()))
      return unread();
    return fit(result, leaves.floorDiv(a, int64_t(1) << b.constant));
  }
  if (name == "andi" || name == "and") {
    // x & (2^n - 1) is the remainder of the rounded-down division.
    if (a.isConstant())
      std::swap(a, b);
    if (!b.isConstant() || b.constant <= 0 || b.constant == INT64_MAX ||
        (b.constant & (b.constant + 1)) != 0)
      return unread();
    return fit(result, leaves.mod(a, b.constant + 1));
  }
  if (name.contains("div") || name.contains("rem"))
    return readDivision(op, name);
  return unread();
}

Linear MaskReader::readDivision(Operation *op, StringRef name) {
  Value result = op->getResult(0);
  Linear a = readInteger(op->getOperand(0)), b = readInteger(op->getOperand(1));
  if (!b.isConstant() || b.constant == 0 || b.constant == INT64_MIN)
    return fail(result, "it divides by what is not a constant");
  int64_t divisor = b.constant;
  if (name == "divui" || name == "divu" || name == "remui" || name == "remu" ||
      name == "ceildivui" || name == "ceildivu") {
    if (divisor < 0 || rangeOf(a).least < 0)
      return fail(result, "it divides, without sign, what may be negative");
  }
  bool remainder = name.contains("rem");
  if (divisor < 0) {
    divisor = -divisor;
    // A remainder has the sign of the dividend.
    std::optional<Linear> negated =
        remainder ? std::optional<Linear>(a) : scale(a, -1);
    if (!negated)
      return fit(result, std::nullopt);
    a = *negated;
  }
  if (remainder) {
    if (rangeOf(a).least >= 0)
      return fit(result, leaves.mod(a, divisor));
    if (a.usesKey())
      return fail(result, "it takes a remainder of the key's position");
    std::optional<Linear> quotient = leaves.truncDiv(a, divisor);
    return fit(result, quotient ? add(a, *quotient, -divisor) : std::nullopt);
  }
  if (name.starts_with("floordiv") || name == "divui" || name == "divu")
    return fit(result, leaves.floorDiv(a, divisor));
  if (name.starts_with("ceildiv"))
    return fit(result, leaves.ceilDiv(a, divisor));
  return fit(result, leaves.truncDiv(a, divisor));
}

Linear MaskReader::readCast(Operation *op, bool isUnsigned) {
  Value source = op->getOperand(0), result = op->getResult(0);
  if (source.getType().isInteger(1)) {
    Leaf leaf;
    leaf.kind = Leaf::Select;
    leaf.condition = readBoolean(source);
    leaf.operands = {constant(isUnsigned ? 1 : -1), constant(0)};
    leaf.range = {isUnsigned ? 0 : -1, isUnsigned ? 1 : 0};
    leaf.expressible = false;
    leaf.id = integers.size() + 1;
    return leaves.unique(std::move(leaf));
  }
  if (widthOf(source.getType()) == 0)
    return fail(result, "it converts an integer of more than 64 bits");
  Linear a = readInteger(source);
  bool widens = widthOf(result.getType()) > widthOf(source.getType());
  if (isUnsigned && widens && rangeOf(a).least < 0)
    return fail(result, "it extends, without sign, what may be negative");
  Interval limits = rangeOfWidth(widthOf(result.getType()));
  if (widthOf(result.getType()) < 2 ||
      !rangeOf(a).within(limits.least, limits.most))
    return fail(result, "the value may not fit " +
                            std::to_string(widthOf(result.getType())) +
                            " bits; use index");
  return a;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

const Formula *MaskReader::readBoolean(Value value) {
  if (const Formula *known = booleans.lookup(value))
    return known;
  ++depth;
  Location outer = current;
  current = value.getLoc();
  const Formula *formula = nullptr;
  if (depth > kMaxDepth) {
    remark(value.getLoc(), "its arithmetic is too large");
    formula = formulas.unknown();
  } else {
    formula = computeBoolean(value);
  }
  current = outer;
  --depth;
  return booleans[value] = formula;
}

const Formula *MaskReader::computeBoolean(Value value) {
  Operation *definition = value.getDefiningOp();
  auto unread = [&](std::string reason) {
    remark(value.getLoc(), reason);
    return formulas.unknown();
  };
  if (!definition)
    return unread("a captured condition has no bounds");
  llvm::APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return formulas.get(!number.isZero());
  auto operand = [&](unsigned i) {
    return readBoolean(definition->getOperand(i));
  };
  if (isa<arith::AndIOp>(definition))
    return formulas.all({operand(0), operand(1)});
  if (isa<arith::OrIOp>(definition))
    return formulas.any({operand(0), operand(1)});
  if (isa<arith::XOrIOp>(definition)) {
    const Formula *a = operand(0), *b = operand(1);
    return formulas.choose(a, formulas.negate(b), b);
  }
  if (isa<arith::SelectOp>(definition))
    return formulas.choose(operand(0), operand(1), operand(2));
  if (auto choice = dyn_cast<scf::IfOp>(definition)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    const Formula *condition = readBoolean(choice.getCondition());
    const Formula *a = readBoolean(choice.thenYield().getOperand(index));
    const Formula *b = readBoolean(choice.elseYield().getOperand(index));
    return formulas.choose(condition, a, b);
  }
  if (auto compare = dyn_cast<arith::CmpIOp>(definition))
    return readCompare(compare,
                       arith::stringifyCmpIPredicate(compare.getPredicate()));
  if (auto compare = dyn_cast<index::CmpOp>(definition))
    return readCompare(compare,
                       index::stringifyIndexCmpPredicate(compare.getPred()));
  return unread("it depends on '" + definition->getName().getStringRef().str() +
                "', which has no bounds");
}

const Formula *MaskReader::readCompare(Operation *op, StringRef predicate) {
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  if (lhs.getType().isInteger(1)) {
    const Formula *a = readBoolean(lhs), *b = readBoolean(rhs);
    if (predicate == "eq")
      return formulas.choose(a, b, formulas.negate(b));
    if (predicate == "ne")
      return formulas.choose(a, formulas.negate(b), b);
    // True is 1 without sign, and -1 with it.
    if (predicate.consume_front("s"))
      std::swap(a, b);
    else
      predicate = predicate.drop_front();
    if (predicate == "lt")
      return formulas.all({formulas.negate(a), b});
    if (predicate == "le")
      return formulas.any({formulas.negate(a), b});
    if (predicate == "gt")
      return formulas.all({a, formulas.negate(b)});
    return formulas.any({a, formulas.negate(b)});
  }
  if (widthOf(lhs.getType()) == 0) {
    remark(op->getLoc(), "it compares what are not integers of up to 64 bits");
    return formulas.unknown();
  }
  Linear a = readInteger(lhs), b = readInteger(rhs);
  if (predicate == "eq" || predicate == "ne") {
    const Formula *equal = formulas.isZero(add(a, b, -1));
    return predicate == "eq" ? equal : formulas.negate(equal);
  }
  if (predicate.ends_with("gt") || predicate.ends_with("ge"))
    std::swap(a, b);
  // a < b or a <= b from here on.
  bool strict = predicate.ends_with("t");
  const Formula *below = formulas.atLeast(b, a, strict ? -1 : 0);
  if (predicate.starts_with("s"))
    return below;
  // Without sign, negative numbers are above all others.
  const Formula *aNegative = formulas.atLeast(constant(-1), a);
  const Formula *bNegative = formulas.atLeast(constant(-1), b);
  return formulas.any({formulas.all({formulas.negate(aNegative), bNegative}),
                       formulas.all({formulas.negate(aNegative), below}),
                       formulas.all({bNegative, below})});
}
