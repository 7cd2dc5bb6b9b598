//===- Elementwise.cpp - arith and math in the level 2 interpreter --------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise ops, on scalars and tiles alike. Most are a line of a table.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

double fi::tile::roundTo(Type floatType, double value) {
  std::optional<DType> type = getDType(floatType);
  if (!type)
    return value;
  char memory[8];
  writeFloat(memory, *type, value);
  return readFloat(memory, *type);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

namespace {
using Unary = double (*)(double);
using Binary = double (*)(double, double);
} // namespace

/// The greater or lesser, -0 below +0; NaN if either is.
static double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::nan("");
  if (x == y)
    return std::signbit(x) ? y : x;
  return x > y ? x : y;
}
static double minimum(double x, double y) { return -maximum(-x, -y); }

static Unary findUnary(StringRef name) {
  static const llvm::StringMap<Unary> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.cbrt", [](double x) { return std::cbrt(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.cosh", [](double x) { return std::cosh(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.erfc", [](double x) { return std::erfc(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.round", [](double x) { return std::round(x); }},
      {"math.roundeven", [](double x) { return std::nearbyint(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
  };
  return table.lookup(name);
}

static Binary findBinary(StringRef name) {
  static const llvm::StringMap<Binary> table = {
      {"arith.addf", [](double x, double y) { return x + y; }},
      {"arith.subf", [](double x, double y) { return x - y; }},
      {"arith.mulf", [](double x, double y) { return x * y; }},
      {"arith.divf", [](double x, double y) { return x / y; }},
      {"arith.remf", [](double x, double y) { return std::fmod(x, y); }},
      {"arith.maximumf", maximum},
      {"arith.minimumf", minimum},
      {"arith.maxnumf", [](double x, double y) { return std::fmax(x, y); }},
      {"arith.minnumf", [](double x, double y) { return std::fmin(x, y); }},
      {"math.atan2", [](double x, double y) { return std::atan2(x, y); }},
      {"math.copysign", [](double x, double y) { return std::copysign(x, y); }},
      {"math.powf", [](double x, double y) { return std::pow(x, y); }},
  };
  return table.lookup(name);
}

static bool compare(arith::CmpFPredicate predicate, double x, double y) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return x == y;
  case P::OGT:
    return x > y;
  case P::OGE:
    return x >= y;
  case P::OLT:
    return x < y;
  case P::OLE:
    return x <= y;
  case P::ONE:
    return !unordered && x != y;
  case P::UEQ:
    return unordered || x == y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UNE:
    return unordered || x != y;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

namespace {
/// Operands of an integer op, in both readings.
struct Operands {
  int64_t x, y;
  uint64_t ux, uy;
  unsigned width;
};
/// The result's bits; none where the op has no defined behaviour.
using IntegerBinary = std::optional<uint64_t> (*)(const Operands &);
} // namespace

/// Signed division is undefined by zero and where the quotient does not fit.
static bool canDivide(const Operands &o) {
  return o.y != 0 && !(o.y == -1 && o.ux == uint64_t(1) << (o.width - 1));
}
static uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

static IntegerBinary findInteger(StringRef name) {
  using O = const Operands &;
  using R = std::optional<uint64_t>;
  static const llvm::StringMap<IntegerBinary> table = {
      {"arith.addi", [](O o) -> R { return o.ux + o.uy; }},
      {"arith.subi", [](O o) -> R { return o.ux - o.uy; }},
      {"arith.muli", [](O o) -> R { return o.ux * o.uy; }},
      {"arith.andi", [](O o) -> R { return o.ux & o.uy; }},
      {"arith.ori", [](O o) -> R { return o.ux | o.uy; }},
      {"arith.xori", [](O o) -> R { return o.ux ^ o.uy; }},
      {"arith.maxsi", [](O o) -> R { return bits(std::max(o.x, o.y)); }},
      {"arith.minsi", [](O o) -> R { return bits(std::min(o.x, o.y)); }},
      {"arith.maxui", [](O o) -> R { return std::max(o.ux, o.uy); }},
      {"arith.minui", [](O o) -> R { return std::min(o.ux, o.uy); }},
      // Shifts by the width or more are poison: every bit is shifted out.
      {"arith.shli",
       [](O o) -> R { return o.uy < o.width ? o.ux << o.uy : 0; }},
      {"arith.shrui",
       [](O o) -> R { return o.uy < o.width ? o.ux >> o.uy : 0; }},
      {"arith.shrsi",
       [](O o) -> R { return bits(o.x >> std::min<uint64_t>(o.uy, 63)); }},
      {"arith.divui",
       [](O o) -> R { return o.uy ? R(o.ux / o.uy) : std::nullopt; }},
      {"arith.remui",
       [](O o) -> R { return o.uy ? R(o.ux % o.uy) : std::nullopt; }},
      {"arith.ceildivui",
       [](O o) -> R {
         return o.uy ? R(o.ux / o.uy + (o.ux % o.uy != 0)) : std::nullopt;
       }},
      {"arith.divsi",
       [](O o) -> R {
         return canDivide(o) ? R(bits(o.x / o.y)) : std::nullopt;
       }},
      {"arith.remsi",
       [](O o) -> R {
         return canDivide(o) ? R(bits(o.x % o.y)) : std::nullopt;
       }},
      {"arith.floordivsi",
       [](O o) -> R {
         if (!canDivide(o))
           return std::nullopt;
         bool down = o.x % o.y != 0 && (o.x < 0) != (o.y < 0);
         return bits(o.x / o.y - down);
       }},
      {"arith.ceildivsi",
       [](O o) -> R {
         if (!canDivide(o))
           return std::nullopt;
         bool up = o.x % o.y != 0 && (o.x < 0) == (o.y < 0);
         return bits(o.x / o.y + up);
       }},
  };
  return table.lookup(name);
}

static bool compare(arith::CmpIPredicate predicate, const Operands &o) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return o.x == o.y;
  case P::ne:
    return o.x != o.y;
  case P::slt:
    return o.x < o.y;
  case P::sle:
    return o.x <= o.y;
  case P::sgt:
    return o.x > o.y;
  case P::sge:
    return o.x >= o.y;
  case P::ult:
    return o.ux < o.uy;
  case P::ule:
    return o.ux <= o.uy;
  case P::ugt:
    return o.ux > o.uy;
  case P::uge:
    return o.ux >= o.uy;
  }
  return false;
}

/// Calls `body` with the operands of each element.
template <typename F>
static void forEach(Operation *op, Strand &strand, F body) {
  const std::vector<int64_t> &xs = strand.integers(op->getOperand(0));
  const std::vector<int64_t> &ys = strand.integers(op->getOperand(1));
  unsigned width = getWidth(op->getOperand(0).getType());
  for (size_t i = 0; i < xs.size(); ++i)
    body(Operands{asSigned(xs[i], width), asSigned(ys[i], width),
                  asUnsigned(xs[i], width), asUnsigned(ys[i], width), width});
}

//===----------------------------------------------------------------------===//
// Casts and constants
//===----------------------------------------------------------------------===//

/// The integer of `width` bits next to a float, towards zero; what does not fit
/// is poison, here the nearest end of the range.
static int64_t toInteger(double x, unsigned width, bool isSigned) {
  if (std::isnan(x))
    return 0;
  double low = isSigned ? -std::ldexp(1.0, width - 1) : 0.0;
  double end = std::ldexp(1.0, isSigned ? width - 1 : width);
  if (x <= low)
    return wrap(isSigned ? uint64_t(1) << (width - 1) : 0, width);
  if (x >= end)
    return wrap(llvm::maskTrailingOnes<uint64_t>(isSigned ? width - 1 : width),
                width);
  return wrap(isSigned ? bits(static_cast<int64_t>(x))
                       : static_cast<uint64_t>(x),
              width);
}

/// Between a float and the integer of the same bits.
static int64_t floatToBits(double value, DType type, unsigned width) {
  uint64_t memory = 0;
  writeFloat(&memory, type, value);
  return wrap(memory, width);
}
static double bitsToFloat(int64_t value, DType type) {
  return readFloat(&value, type);
}

static RuntimeValue bitcast(Type from, Type to, const Elements &source) {
  if (hasFloats(from) == hasFloats(to)) {
    if (from == to || !hasFloats(from))
      return std::make_shared<const Elements>(source);
    // f16 and bf16 have the same bits.
    std::vector<double> result;
    for (double x : source.floats)
      result.push_back(bitsToFloat(
          floatToBits(x, *getDType(getElementType(from)), getWidth(from)),
          *getDType(getElementType(to))));
    return makeFloats(std::move(result));
  }
  if (hasFloats(from)) {
    std::vector<int64_t> result;
    for (double x : source.floats)
      result.push_back(
          floatToBits(x, *getDType(getElementType(from)), getWidth(to)));
    return makeIntegers(std::move(result));
  }
  std::vector<double> result;
  for (int64_t x : source.integers)
    result.push_back(bitsToFloat(x, *getDType(getElementType(to))));
  return makeFloats(std::move(result));
}

/// None for ops that are no cast.
static std::optional<RuntimeValue> evaluateCast(Operation *op, Strand &strand) {
  if (op->getNumOperands() != 1 || op->getNumResults() != 1)
    return std::nullopt;
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  auto integers = [&](auto convert) {
    std::vector<int64_t> result;
    for (int64_t x : strand.integers(op->getOperand(0)))
      result.push_back(wrap(convert(x), getWidth(to)));
    return makeIntegers(std::move(result));
  };
  auto toFloats = [&](auto convert) {
    std::vector<double> result;
    for (int64_t x : strand.integers(op->getOperand(0)))
      result.push_back(roundTo(getElementType(to), convert(x)));
    return makeFloats(std::move(result));
  };
  auto fromFloats = [&](bool isSigned) {
    std::vector<int64_t> result;
    for (double x : strand.floats(op->getOperand(0)))
      result.push_back(toInteger(x, getWidth(to), isSigned));
    return makeIntegers(std::move(result));
  };
  unsigned width =
      isa<ShapedType>(from) || from.isIntOrIndexOrFloat() ? getWidth(from) : 0;
  auto signedBits = [&](int64_t x) { return bits(asSigned(x, width)); };
  auto unsignedBits = [&](int64_t x) { return asUnsigned(x, width); };
  if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(op))
    return integers(signedBits);
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    return integers(unsignedBits);
  if (isa<arith::SIToFPOp>(op))
    return toFloats(
        [&](int64_t x) { return static_cast<double>(asSigned(x, width)); });
  if (isa<arith::UIToFPOp>(op))
    return toFloats(
        [&](int64_t x) { return static_cast<double>(asUnsigned(x, width)); });
  if (isa<arith::FPToSIOp>(op))
    return fromFloats(true);
  if (isa<arith::FPToUIOp>(op))
    return fromFloats(false);
  if (isa<arith::ExtFOp>(op))
    return strand.get(op->getOperand(0));
  if (isa<arith::TruncFOp>(op)) {
    std::vector<double> result;
    for (double x : strand.floats(op->getOperand(0)))
      result.push_back(roundTo(getElementType(to), x));
    return makeFloats(std::move(result));
  }
  if (isa<arith::BitcastOp>(op))
    return bitcast(from, to, strand.elements(op->getOperand(0)));
  return std::nullopt;
}

static double toDouble(APFloat value) {
  bool exact;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &exact);
  return value.convertToDouble();
}
static int64_t toInteger(const APInt &value) {
  return wrap(value.getZExtValue(), value.getBitWidth());
}

static llvm::Expected<RuntimeValue> evaluateConstant(arith::ConstantOp op) {
  Attribute value = op.getValue();
  if (auto number = dyn_cast<IntegerAttr>(value))
    return makeIntegers({toInteger(number.getValue())});
  if (auto number = dyn_cast<FloatAttr>(value))
    return makeFloats({toDouble(number.getValue())});
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return makeError(op, "expected a number or dense numbers");
  size_t count = dense.getNumElements();
  if (hasFloats(op.getType())) {
    if (dense.isSplat())
      return makeFloats(
          std::vector<double>(count, toDouble(dense.getSplatValue<APFloat>())));
    std::vector<double> result;
    for (const APFloat &number : dense.getValues<APFloat>())
      result.push_back(toDouble(number));
    return makeFloats(std::move(result));
  }
  if (dense.isSplat())
    return makeIntegers(
        std::vector<int64_t>(count, toInteger(dense.getSplatValue<APInt>())));
  std::vector<int64_t> result;
  for (const APInt &number : dense.getValues<APInt>())
    result.push_back(toInteger(number));
  return makeIntegers(std::move(result));
}

static RuntimeValue evaluateSplat(Operation *op, Strand &strand) {
  size_t count = countElements(op->getResult(0).getType());
  const Elements &scalar = strand.elements(op->getOperand(0));
  if (scalar.floats.empty())
    return makeIntegers(std::vector<int64_t>(count, scalar.integers[0]));
  return makeFloats(std::vector<double>(count, scalar.floats[0]));
}

/// The condition is a scalar or has an element for each of the result.
static RuntimeValue evaluateSelect(arith::SelectOp op, Strand &strand) {
  const std::vector<int64_t> &conditions = strand.integers(op.getCondition());
  if (conditions.size() == 1)
    return strand.get(conditions[0] ? op.getTrueValue() : op.getFalseValue());
  auto choose = [&](const auto &xs, const auto &ys) {
    auto result = xs;
    for (size_t i = 0; i < xs.size(); ++i)
      if (!conditions[i])
        result[i] = ys[i];
    return result;
  };
  const Elements &x = strand.elements(op.getTrueValue());
  const Elements &y = strand.elements(op.getFalseValue());
  return std::make_shared<const Elements>(
      Elements{choose(x.floats, y.floats), choose(x.integers, y.integers)});
}

/// Integer ops of one operand.
static std::optional<RuntimeValue> evaluateBits(Operation *op, Strand &strand) {
  if (!isa<math::AbsIOp, math::CtPopOp, math::CountLeadingZerosOp,
           math::CountTrailingZerosOp>(op))
    return std::nullopt;
  unsigned width = getWidth(op->getOperand(0).getType());
  std::vector<int64_t> result;
  for (int64_t x : strand.integers(op->getOperand(0))) {
    uint64_t u = asUnsigned(x, width);
    uint64_t value;
    if (isa<math::AbsIOp>(op))
      value = asSigned(x, width) < 0 ? 0 - u : u;
    else if (isa<math::CtPopOp>(op))
      value = llvm::popcount(u);
    else if (isa<math::CountLeadingZerosOp>(op))
      value = llvm::countl_zero(u) - (64 - width);
    else
      value = std::min<uint64_t>(llvm::countr_zero(u), width);
    result.push_back(wrap(value, width));
  }
  return makeIntegers(std::move(result));
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

llvm::Expected<bool> fi::tile::evaluateElementwise(Operation *op,
                                                   Strand &strand) {
  StringRef name = op->getName().getStringRef();
  if (op->getNumResults() != 1)
    return false;
  Value to = op->getResult(0);
  if (Unary f = findUnary(name)) {
    std::vector<double> result = strand.floats(op->getOperand(0));
    for (double &x : result)
      x = f(x);
    strand.set(to, makeFloats(std::move(result)));
    return true;
  }
  if (Binary f = findBinary(name)) {
    std::vector<double> result = strand.floats(op->getOperand(0));
    const std::vector<double> &ys = strand.floats(op->getOperand(1));
    for (size_t i = 0; i < ys.size(); ++i)
      result[i] = f(result[i], ys[i]);
    strand.set(to, makeFloats(std::move(result)));
    return true;
  }
  if (IntegerBinary f = findInteger(name)) {
    std::vector<int64_t> result;
    std::optional<Operands> bad;
    forEach(op, strand, [&](const Operands &o) {
      std::optional<uint64_t> value = f(o);
      if (!value && !bad)
        bad = o;
      result.push_back(wrap(value.value_or(0), o.width));
    });
    if (bad)
      return makeError(op, "expected a quotient that is defined, but got " +
                               llvm::Twine(bad->x) + " by " +
                               llvm::Twine(bad->y));
    strand.set(to, makeIntegers(std::move(result)));
    return true;
  }
  if (std::optional<RuntimeValue> result = evaluateCast(op, strand)) {
    strand.set(to, *result);
    return true;
  }
  if (std::optional<RuntimeValue> result = evaluateBits(op, strand)) {
    strand.set(to, *result);
    return true;
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    llvm::Expected<RuntimeValue> result = evaluateConstant(constant);
    if (!result)
      return result.takeError();
    strand.set(to, *result);
    return true;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (!std::holds_alternative<ElementsRef>(strand.get(select.getTrueValue())))
      strand.set(to, strand.get(strand.integer(select.getCondition())
                                    ? select.getTrueValue()
                                    : select.getFalseValue()));
    else
      strand.set(to, evaluateSelect(select, strand));
    return true;
  }
  if (isa<tensor::SplatOp>(op)) {
    strand.set(to, evaluateSplat(op, strand));
    return true;
  }
  if (auto comparison = dyn_cast<arith::CmpIOp>(op)) {
    std::vector<int64_t> result;
    forEach(op, strand, [&](const Operands &o) {
      result.push_back(compare(comparison.getPredicate(), o));
    });
    strand.set(to, makeIntegers(std::move(result)));
    return true;
  }
  if (auto comparison = dyn_cast<arith::CmpFOp>(op)) {
    std::vector<int64_t> result;
    for (auto [x, y] : llvm::zip_equal(strand.floats(comparison.getLhs()),
                                       strand.floats(comparison.getRhs())))
      result.push_back(compare(comparison.getPredicate(), x, y));
    strand.set(to, makeIntegers(std::move(result)));
    return true;
  }
  if (auto fma = dyn_cast<math::FmaOp>(op)) {
    std::vector<double> result = strand.floats(fma.getA());
    const std::vector<double> &b = strand.floats(fma.getB());
    const std::vector<double> &c = strand.floats(fma.getC());
    for (size_t i = 0; i < b.size(); ++i)
      result[i] = std::fma(result[i], b[i], c[i]);
    strand.set(to, makeFloats(std::move(result)));
    return true;
  }
  if (isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op)) {
    std::vector<int64_t> result;
    for (double x : strand.floats(op->getOperand(0)))
      result.push_back(isa<math::IsNaNOp>(op)   ? std::isnan(x)
                       : isa<math::IsInfOp>(op) ? std::isinf(x)
                                                : std::isfinite(x));
    strand.set(to, makeIntegers(std::move(result)));
    return true;
  }
  return false;
}
