//===- ScalarEvaluator.cpp - scalar ops, one by one -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block is turned into a list of closures over numbered slots once, because a
// mask region is evaluated for every row, head and key. Ops are found by name:
// the tables below are the list of what regions may contain.
//
//===----------------------------------------------------------------------===//

#include "ScalarEvaluator.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::reference;

unsigned fi::reference::integerWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

int64_t fi::reference::wrap(int64_t value, unsigned width) {
  return width >= 64 ? value : llvm::SignExtend64(value, width);
}

/// `value` as the unsigned number of its lowest `width` bits.
static uint64_t unsignedOf(int64_t value, unsigned width) {
  uint64_t bits = static_cast<uint64_t>(value);
  return width >= 64 ? bits : bits & ((uint64_t(1) << width) - 1);
}

double fi::reference::roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  llvm::APFloat number(value);
  bool exact;
  number.convert(cast<FloatType>(type).getFloatSemantics(),
                 llvm::APFloat::rmNearestTiesToEven, &exact);
  number.convert(llvm::APFloat::IEEEdouble(),
                 llvm::APFloat::rmNearestTiesToEven, &exact);
  return number.convertToDouble();
}

unsigned ScalarEvaluator::slotOf(Value value) {
  auto [it, inserted] = slotNumbers.try_emplace(value, slots.size());
  if (inserted)
    slots.emplace_back();
  return it->second;
}

bool ScalarEvaluator::fail(Operation &op, const llvm::Twine &why) {
  error = ("'" + op.getName().getStringRef() + "' " + why).str();
  return false;
}

bool ScalarEvaluator::add(Operation &op) { return compile(op, steps); }
bool ScalarEvaluator::add(Block &block) { return compile(block, steps); }

bool ScalarEvaluator::run() {
  for (const Step &step : steps)
    if (!step(slots.data()))
      return false;
  return true;
}

bool ScalarEvaluator::compile(Block &block, Steps &into) {
  for (Operation &op : block.without_terminator())
    if (!compile(op, into))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

using Float1 = double (*)(double);
using Float2 = double (*)(double, double);

static Float1 findFloat1(StringRef name) {
  static const llvm::StringMap<Float1> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"arith.extf", [](double x) { return x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.acosh", [](double x) { return std::acosh(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.asinh", [](double x) { return std::asinh(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.atanh", [](double x) { return std::atanh(x); }},
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
      {"math.rsqrt", [](double x) { return 1.0 / std::sqrt(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
  };
  return table.lookup(name);
}

static Float2 findFloat2(StringRef name) {
  static const llvm::StringMap<Float2> table = {
      {"arith.addf", [](double x, double y) { return x + y; }},
      {"arith.subf", [](double x, double y) { return x - y; }},
      {"arith.mulf", [](double x, double y) { return x * y; }},
      {"arith.divf", [](double x, double y) { return x / y; }},
      {"arith.remf", [](double x, double y) { return std::fmod(x, y); }},
      // NaN wins in maximumf and minimumf, and loses in maxnumf and minnumf.
      {"arith.maximumf",
       [](double x, double y) {
         return std::isnan(x) ? x : std::isnan(y) ? y : std::fmax(x, y);
       }},
      {"arith.minimumf",
       [](double x, double y) {
         return std::isnan(x) ? x : std::isnan(y) ? y : std::fmin(x, y);
       }},
      {"arith.maxnumf", [](double x, double y) { return std::fmax(x, y); }},
      {"arith.minnumf", [](double x, double y) { return std::fmin(x, y); }},
      {"math.atan2", [](double x, double y) { return std::atan2(x, y); }},
      {"math.copysign", [](double x, double y) { return std::copysign(x, y); }},
      {"math.powf", [](double x, double y) { return std::pow(x, y); }},
  };
  return table.lookup(name);
}

bool ScalarEvaluator::compileFloat(Operation &op, Steps &into) {
  StringRef name = op.getName().getStringRef();
  unsigned r = slotOf(op.getResult(0));
  auto in = [&](unsigned i) { return slotOf(op.getOperand(i)); };
  if (Float1 function = findFloat1(name)) {
    into.push_back([=, a = in(0)](Scalar *s) {
      s[r].number = function(s[a].number);
      return true;
    });
    return true;
  }
  if (Float2 function = findFloat2(name)) {
    into.push_back([=, a = in(0), b = in(1)](Scalar *s) {
      s[r].number = function(s[a].number, s[b].number);
      return true;
    });
    return true;
  }
  if (name == "math.fma") {
    into.push_back([=, a = in(0), b = in(1), c = in(2)](Scalar *s) {
      s[r].number = std::fma(s[a].number, s[b].number, s[c].number);
      return true;
    });
    return true;
  }
  if (name == "math.clampf") {
    into.push_back([=, a = in(0), b = in(1), c = in(2)](Scalar *s) {
      s[r].number = std::fmin(std::fmax(s[a].number, s[b].number), s[c].number);
      return true;
    });
    return true;
  }
  if (name == "math.fpowi") {
    into.push_back([=, a = in(0), b = in(1)](Scalar *s) {
      s[r].number = std::pow(s[a].number, static_cast<double>(s[b].integer));
      return true;
    });
    return true;
  }
  if (name == "math.sincos") {
    into.push_back([a = in(0), r, c = slotOf(op.getResult(1))](Scalar *s) {
      s[r].number = std::sin(s[a].number);
      s[c].number = std::cos(s[a].number);
      return true;
    });
    return true;
  }
  using Test = bool (*)(double);
  static const llvm::StringMap<Test> tests = {
      {"math.isfinite", [](double x) { return std::isfinite(x); }},
      {"math.isinf", [](double x) { return std::isinf(x); }},
      {"math.isnan", [](double x) { return std::isnan(x); }},
  };
  if (Test test = tests.lookup(name)) {
    into.push_back([=, a = in(0)](Scalar *s) {
      s[r].integer = test(s[a].number) ? -1 : 0;
      return true;
    });
    return true;
  }
  return fail(op, "op: expected an op that the reference interpreter knows");
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

using Signed2 = int64_t (*)(int64_t, int64_t);
using Unsigned2 = uint64_t (*)(uint64_t, uint64_t);

/// Ops whose lowest bits do not depend on the sign. Unsigned arithmetic wraps.
static Unsigned2 findBits2(StringRef name) {
  static const llvm::StringMap<Unsigned2> table = {
      {"addi", [](uint64_t x, uint64_t y) { return x + y; }},
      {"subi", [](uint64_t x, uint64_t y) { return x - y; }},
      {"muli", [](uint64_t x, uint64_t y) { return x * y; }},
      {"andi", [](uint64_t x, uint64_t y) { return x & y; }},
      {"ori", [](uint64_t x, uint64_t y) { return x | y; }},
      {"xori", [](uint64_t x, uint64_t y) { return x ^ y; }},
      // index spells them without the i.
      {"add", [](uint64_t x, uint64_t y) { return x + y; }},
      {"sub", [](uint64_t x, uint64_t y) { return x - y; }},
      {"mul", [](uint64_t x, uint64_t y) { return x * y; }},
      {"and", [](uint64_t x, uint64_t y) { return x & y; }},
      {"or", [](uint64_t x, uint64_t y) { return x | y; }},
      {"xor", [](uint64_t x, uint64_t y) { return x ^ y; }},
      {"maxui", [](uint64_t x, uint64_t y) { return x > y ? x : y; }},
      {"minui", [](uint64_t x, uint64_t y) { return x < y ? x : y; }},
      {"maxu", [](uint64_t x, uint64_t y) { return x > y ? x : y; }},
      {"minu", [](uint64_t x, uint64_t y) { return x < y ? x : y; }},
      // A shift by the width or more has no value upstream; here it gives 0.
      {"shli", [](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; }},
      {"shl", [](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; }},
      {"shrui", [](uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; }},
      {"shru", [](uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; }},
  };
  return table.lookup(name);
}

static int64_t shiftRight(int64_t x, int64_t y) {
  return x >> (y < 0 || y > 63 ? 63 : y);
}

static int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = base;
  for (; exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return result;
}

static Signed2 findSigned2(StringRef name) {
  static const llvm::StringMap<Signed2> table = {
      {"maxsi", [](int64_t x, int64_t y) { return x > y ? x : y; }},
      {"minsi", [](int64_t x, int64_t y) { return x < y ? x : y; }},
      {"maxs", [](int64_t x, int64_t y) { return x > y ? x : y; }},
      {"mins", [](int64_t x, int64_t y) { return x < y ? x : y; }},
      {"shrsi", shiftRight},
      {"shrs", shiftRight},
      {"ipowi", power},
  };
  return table.lookup(name);
}

bool ScalarEvaluator::compileInteger(Operation &op, Steps &into) {
  StringRef name = op.getName().stripDialect();
  unsigned r = slotOf(op.getResult(0));
  auto in = [&](unsigned i) { return slotOf(op.getOperand(i)); };
  unsigned width = integerWidth(op.getResult(0).getType());
  if (Unsigned2 function = findBits2(name)) {
    into.push_back([=, a = in(0), b = in(1)](Scalar *s) {
      uint64_t x = unsignedOf(s[a].integer, width);
      uint64_t y = unsignedOf(s[b].integer, width);
      s[r].integer = wrap(static_cast<int64_t>(function(x, y)), width);
      return true;
    });
    return true;
  }
  if (Signed2 function = findSigned2(name)) {
    into.push_back([=, a = in(0), b = in(1)](Scalar *s) {
      s[r].integer = wrap(function(s[a].integer, s[b].integer), width);
      return true;
    });
    return true;
  }
  if (name == "absi") {
    into.push_back([=, a = in(0)](Scalar *s) {
      uint64_t x = static_cast<uint64_t>(s[a].integer);
      s[r].integer =
          wrap(static_cast<int64_t>(s[a].integer < 0 ? 0 - x : x), width);
      return true;
    });
    return true;
  }
  using Count = int64_t (*)(const llvm::APInt &);
  static const llvm::StringMap<Count> counts = {
      {"ctlz", [](const llvm::APInt &x) -> int64_t { return x.countl_zero(); }},
      {"cttz", [](const llvm::APInt &x) -> int64_t { return x.countr_zero(); }},
      {"ctpop", [](const llvm::APInt &x) -> int64_t { return x.popcount(); }},
  };
  if (Count count = counts.lookup(name)) {
    into.push_back([=, a = in(0)](Scalar *s) {
      llvm::APInt bits(width, unsignedOf(s[a].integer, width));
      s[r].integer = wrap(count(bits), width);
      return true;
    });
    return true;
  }
  return fail(op, "op: expected an op that the reference interpreter knows");
}

/// Quotients and remainders. Where there is none, by 0, or it does not fit, of
/// the least integer by -1, the divisor is 1 (REG4).
bool ScalarEvaluator::compileDivision(Operation &op, Steps &into) {
  enum Kind { DivS, DivU, RemS, RemU, CeilS, CeilU, FloorS };
  static const llvm::StringMap<Kind> table = {
      {"divsi", DivS},        {"divs", DivS},       {"divui", DivU},
      {"divu", DivU},         {"remsi", RemS},      {"rems", RemS},
      {"remui", RemU},        {"remu", RemU},       {"ceildivsi", CeilS},
      {"ceildivs", CeilS},    {"ceildivui", CeilU}, {"ceildivu", CeilU},
      {"floordivsi", FloorS}, {"floordivs", FloorS}};
  auto found = table.find(op.getName().stripDialect());
  if (found == table.end() || op.getNumOperands() != 2)
    return false;
  Kind kind = found->second;
  unsigned width = integerWidth(op.getResult(0).getType());
  into.push_back([kind, width, a = slotOf(op.getOperand(0)),
                  b = slotOf(op.getOperand(1)),
                  r = slotOf(op.getResult(0))](Scalar *s) {
    int64_t x = s[a].integer, y = s[b].integer;
    if (y == 0)
      y = 1;
    if (kind == DivU || kind == RemU || kind == CeilU) {
      uint64_t ux = unsignedOf(x, width), uy = unsignedOf(y, width);
      uint64_t quotient = ux / uy, remainder = ux % uy;
      s[r].integer = wrap(static_cast<int64_t>(kind == RemU ? remainder
                                               : kind == CeilU
                                                   ? quotient + (remainder != 0)
                                                   : quotient),
                          width);
      return true;
    }
    if (y == -1 && x == wrap(int64_t(1) << (width - 1), width))
      y = 1;
    int64_t quotient = x / y, remainder = x % y;
    bool exact = remainder == 0, positive = (x < 0) == (y < 0);
    s[r].integer = kind == RemS                            ? remainder
                   : kind == CeilS && !exact && positive   ? quotient + 1
                   : kind == FloorS && !exact && !positive ? quotient - 1
                                                           : quotient;
    return true;
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Constants, casts, comparisons
//===----------------------------------------------------------------------===//

bool ScalarEvaluator::compileConstant(Operation &op, Steps &into) {
  Attribute value = op.getAttr("value");
  Scalar constant;
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    constant = Scalar::of(number.getValueAsDouble());
  else if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    constant = Scalar::of(integer.getValue().getSExtValue());
  else if (auto truth = dyn_cast_or_null<BoolAttr>(value))
    constant = Scalar::of(int64_t(truth.getValue() ? -1 : 0));
  else
    return fail(op, "op: expected a constant that is a number");
  into.push_back([=, r = slotOf(op.getResult(0))](Scalar *s) {
    s[r] = constant;
    return true;
  });
  return true;
}

/// The nearest integer toward 0; the nearest that fits if it does not; 0 for
/// NaN.
static int64_t toInteger(double x, unsigned width, bool isSigned) {
  if (std::isnan(x))
    return 0;
  llvm::APSInt result(width, /*isUnsigned=*/!isSigned);
  bool exact;
  llvm::APFloat(x).convertToInteger(result, llvm::APFloat::rmTowardZero,
                                    &exact);
  return wrap(static_cast<int64_t>(result.getZExtValue()), width);
}

bool ScalarEvaluator::compileCast(Operation &op, Steps &into) {
  StringRef name = op.getName().stripDialect();
  Type from = op.getOperand(0).getType(), to = op.getResult(0).getType();
  unsigned a = slotOf(op.getOperand(0)), r = slotOf(op.getResult(0));
  auto push = [&](auto function) {
    into.push_back([=](Scalar *s) {
      s[r] = function(s[a]);
      return true;
    });
    return true;
  };
  if (isa<FloatType>(from) && isa<FloatType>(to) && name == "truncf")
    return push([=](Scalar x) { return Scalar::of(roundTo(x.number, to)); });
  if (name == "bitcast") {
    return push([=](Scalar x) {
      llvm::APInt bits;
      if (auto type = dyn_cast<FloatType>(from)) {
        llvm::APFloat number(x.number);
        bool exact;
        number.convert(type.getFloatSemantics(),
                       llvm::APFloat::rmNearestTiesToEven, &exact);
        bits = number.bitcastToAPInt();
      } else {
        unsigned width = integerWidth(from);
        bits = llvm::APInt(width, unsignedOf(x.integer, width));
      }
      if (auto type = dyn_cast<FloatType>(to)) {
        llvm::APFloat number(type.getFloatSemantics(), bits);
        bool exact;
        number.convert(llvm::APFloat::IEEEdouble(),
                       llvm::APFloat::rmNearestTiesToEven, &exact);
        return Scalar::of(number.convertToDouble());
      }
      return Scalar::of(bits.getSExtValue());
    });
  }
  if (name == "sitofp" || name == "uitofp") {
    bool isSigned = name == "sitofp";
    unsigned width = integerWidth(from);
    return push([=](Scalar x) {
      double number = isSigned
                          ? static_cast<double>(x.integer)
                          : static_cast<double>(unsignedOf(x.integer, width));
      return Scalar::of(roundTo(number, to));
    });
  }
  if (name == "fptosi" || name == "fptoui") {
    bool isSigned = name == "fptosi";
    unsigned width = integerWidth(to);
    return push([=](Scalar x) {
      return Scalar::of(toInteger(x.number, width, isSigned));
    });
  }
  // Between integers: by the sign of the narrower one.
  unsigned fromWidth = integerWidth(from), toWidth = integerWidth(to);
  if (name == "extui" || name == "index_castui" || name == "castu")
    return push([=](Scalar x) {
      return Scalar::of(wrap(
          static_cast<int64_t>(unsignedOf(x.integer, fromWidth)), toWidth));
    });
  return push([=](Scalar x) { return Scalar::of(wrap(x.integer, toWidth)); });
}

/// Integer comparisons by their name, of values and of their unsigned reading.
static bool compareIntegers(StringRef predicate, int64_t x, int64_t y,
                            uint64_t ux, uint64_t uy) {
  if (predicate == "eq" || predicate == "ne")
    return (x == y) == (predicate == "eq");
  bool isSigned = predicate[0] == 's';
  bool less = isSigned ? x < y : ux < uy;
  if (predicate.drop_front() == "lt")
    return less;
  if (predicate.drop_front() == "le")
    return less || x == y;
  if (predicate.drop_front() == "gt")
    return !less && x != y;
  return !less;
}

/// Float comparisons by their name: o.. is false and u.. true if either is NaN.
static bool compareFloats(StringRef predicate, double x, double y) {
  if (predicate == "false" || predicate == "true")
    return predicate == "true";
  bool unordered = std::isnan(x) || std::isnan(y);
  if (predicate == "ord" || predicate == "uno")
    return unordered == (predicate == "uno");
  if (unordered)
    return predicate[0] == 'u';
  StringRef relation = predicate.drop_front();
  return relation == "eq"   ? x == y
         : relation == "ne" ? x != y
         : relation == "lt" ? x < y
         : relation == "le" ? x <= y
         : relation == "gt" ? x > y
                            : x >= y;
}

bool ScalarEvaluator::compileCompare(Operation &op, Steps &into) {
  unsigned a = slotOf(op.getOperand(0)), b = slotOf(op.getOperand(1)),
           r = slotOf(op.getResult(0));
  if (auto compare = dyn_cast<arith::CmpFOp>(op)) {
    StringRef predicate = arith::stringifyCmpFPredicate(compare.getPredicate());
    into.push_back([=](Scalar *s) {
      s[r].integer =
          compareFloats(predicate, s[a].number, s[b].number) ? -1 : 0;
      return true;
    });
    return true;
  }
  StringRef predicate =
      isa<arith::CmpIOp>(op)
          ? arith::stringifyCmpIPredicate(
                cast<arith::CmpIOp>(op).getPredicate())
          : index::stringifyIndexCmpPredicate(cast<index::CmpOp>(op).getPred());
  unsigned width = integerWidth(op.getOperand(0).getType());
  into.push_back([=](Scalar *s) {
    int64_t x = s[a].integer, y = s[b].integer;
    s[r].integer = compareIntegers(predicate, x, y, unsignedOf(x, width),
                                   unsignedOf(y, width))
                       ? -1
                       : 0;
    return true;
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Control and memory
//===----------------------------------------------------------------------===//

bool ScalarEvaluator::compileIf(Operation &op, Steps &into) {
  auto ifOp = cast<scf::IfOp>(op);
  std::vector<std::pair<unsigned, unsigned>> copies[2];
  Steps branches[2];
  for (unsigned i : {0u, 1u}) {
    Region &region = i == 0 ? ifOp.getThenRegion() : ifOp.getElseRegion();
    if (region.empty())
      continue;
    if (!compile(region.front(), branches[i]))
      return false;
    for (auto [result, yielded] : llvm::zip(
             op.getResults(), region.front().getTerminator()->getOperands()))
      copies[i].push_back({slotOf(result), slotOf(yielded)});
  }
  into.push_back([condition = slotOf(ifOp.getCondition()),
                  thenSteps = std::move(branches[0]),
                  elseSteps = std::move(branches[1]),
                  thenCopies = std::move(copies[0]),
                  elseCopies = std::move(copies[1])](Scalar *s) {
    bool taken = s[condition].integer & 1;
    for (const Step &step : taken ? thenSteps : elseSteps)
      if (!step(s))
        return false;
    for (auto [to, from] : taken ? thenCopies : elseCopies)
      s[to] = s[from];
    return true;
  });
  return true;
}

bool ScalarEvaluator::compileLoad(Operation &op, Steps &into) {
  auto load = cast<fi::LoadOp>(op);
  auto found = tensors.find(load.getSource());
  if (found == tensors.end())
    return fail(op, "op: expected operand 'source' to be a captured tensor");
  HostTensor tensor = found->second;
  SmallVector<unsigned> indices;
  for (Value index : load.getIndices())
    indices.push_back(slotOf(index));
  bool isNumber = isa<FloatType>(load.getType());
  unsigned width = isNumber ? 0 : integerWidth(load.getType());
  into.push_back([=, r = slotOf(load.getResult())](Scalar *s) {
    SmallVector<int64_t, 4> at;
    for (auto [dim, slot] : llvm::enumerate(indices)) {
      at.push_back(s[slot].integer);
      if (at.back() < 0 || at.back() >= tensor.getSize(dim)) {
        s[r] = Scalar();
        return true;
      }
    }
    if (isNumber)
      s[r].number = tensor.getFloat(at);
    else
      s[r].integer = wrap(tensor.getInteger(at), width);
    return true;
  });
  return true;
}

bool ScalarEvaluator::compile(Operation &op, Steps &into) {
  if (isa<scf::IfOp>(op))
    return compileIf(op, into);
  if (isa<fi::LoadOp>(op))
    return compileLoad(op, into);
  StringRef dialect = op.getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math" && dialect != "index")
    return fail(op, "op: expected an op that the reference interpreter knows");
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op.getOperandTypes()),
                                SmallVector<Type>(op.getResultTypes())))
    if (!type.isIntOrIndexOrFloat() ||
        (!isa<FloatType>(type) && integerWidth(type) > 64))
      return fail(op, "op: expected scalars of at most 64 bits");
  if (op.getNumResults() == 0)
    return fail(op, "op: expected an op with a result");

  if (op.hasTrait<OpTrait::ConstantLike>())
    return compileConstant(op, into);
  if (isa<arith::CmpIOp, arith::CmpFOp, index::CmpOp>(op))
    return compileCompare(op, into);
  if (isa<arith::SelectOp>(op)) {
    into.push_back([c = slotOf(op.getOperand(0)), a = slotOf(op.getOperand(1)),
                    b = slotOf(op.getOperand(2)),
                    r = slotOf(op.getResult(0))](Scalar *s) {
      s[r] = s[c].integer & 1 ? s[a] : s[b];
      return true;
    });
    return true;
  }
  static const StringRef casts[] = {
      "truncf",  "sitofp",     "uitofp",      "fptosi", "fptoui",
      "extsi",   "extui",      "trunci",      "casts",  "castu",
      "bitcast", "index_cast", "index_castui"};
  StringRef name = op.getName().stripDialect();
  if (llvm::is_contained(casts, name))
    return compileCast(op, into);
  bool isNumber = isa<FloatType>(op.getOperand(0).getType());
  if (isNumber)
    return compileFloat(op, into);
  error.clear();
  if (compileDivision(op, into))
    return true;
  return compileInteger(op, into);
}
