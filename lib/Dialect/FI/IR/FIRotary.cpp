//===- FIRotary.cpp - short spellings of rotary embeddings ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes that stand for regions of pairs: what a pair turns by, and how
// that is stretched over more positions.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace fi;

namespace {

/// Scalars of f32.
struct Scalars {
  OpBuilder &b;
  Location loc;

  Value number(double value) {
    return arith::ConstantOp::create(
        b, loc, b.getF32FloatAttr(static_cast<float>(value)));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value subtract(Value x, Value y) {
    return arith::SubFOp::create(b, loc, x, y);
  }
  Value multiply(Value x, Value y) {
    return arith::MulFOp::create(b, loc, x, y);
  }
  Value clamp(Value x) {
    x = arith::MaximumFOp::create(b, loc, x, number(0));
    return arith::MinimumFOp::create(b, loc, x, number(1));
  }
  Value toFloat(Value index) {
    Value integer = arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
    return arith::SIToFPOp::create(b, loc, b.getF32Type(), integer);
  }
  /// `rate` where `kept` is 1, divided by `factor` where it is 0.
  Value blend(Value rate, Value kept, double factor) {
    Value slow = multiply(rate, number(1 / factor));
    return add(multiply(subtract(number(1), kept), slow), multiply(kept, rate));
  }
};

/// `name = number`, or an integer, in the order of `names`; behind `<`, to `>`.
struct Field {
  StringRef name;
  FloatAttr *number = nullptr;
  int64_t *integer = nullptr;
  bool isOptional = false;
};

} // namespace

static ParseResult parseFields(AsmParser &parser, ArrayRef<Field> fields) {
  if (parser.parseLess())
    return failure();
  for (auto [index, field] : llvm::enumerate(fields)) {
    if (index > 0) {
      if (failed(parser.parseOptionalComma())) {
        if (field.isOptional)
          break;
        return parser.emitError(parser.getCurrentLocation(), "expected '")
               << field.name << "'";
      }
    }
    if (parser.parseKeyword(field.name) || parser.parseEqual())
      return failure();
    if (field.integer) {
      if (parser.parseInteger(*field.integer))
        return failure();
      continue;
    }
    double value;
    if (parser.parseFloat(value))
      return failure();
    *field.number = parser.getBuilder().getF64FloatAttr(value);
  }
  return parser.parseGreater();
}

static void printNumber(AsmPrinter &printer, StringRef name, FloatAttr value) {
  printer << name << " = ";
  printer.printFloat(value.getValue());
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static LogicalResult verifyFactor(EmitError emitError, FloatAttr factor) {
  double value = factor.getValueAsDouble();
  if (!std::isfinite(value) || value < 1)
    return emitError() << "expected a finite factor of at least 1, but got "
                       << value << " [ROT3]";
  return success();
}

/// What turns more often comes first.
static LogicalResult verifyTurns(EmitError emitError, FloatAttr more,
                                 FloatAttr less, int64_t context) {
  double most = more.getValueAsDouble(), least = less.getValueAsDouble();
  if (!std::isfinite(most) || !(least > 0) || !(most > least))
    return emitError() << "expected finite numbers of turns above 0, of fast "
                          "pairs more than of slow ones, but got "
                       << most << " and " << least << " [ROT4]";
  if (context < 1 || context > (int64_t(1) << 30))
    return emitError() << "expected a context of 1 to 2^30 positions, but got "
                       << context << " [ROT4]";
  return success();
}

//===----------------------------------------------------------------------===//
// RotaryAttr
//===----------------------------------------------------------------------===//

Attribute RotaryAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double theta;
  Attribute scaling;
  if (parser.parseLess() || parser.parseFloat(theta) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseAttribute(scaling)) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<RotaryAttr>(
      loc, parser.getContext(), parser.getBuilder().getF64FloatAttr(theta),
      scaling);
}

void RotaryAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printFloat(getTheta().getValue());
  if (getScaling())
    printer << ", " << getScaling();
  printer << '>';
}

LogicalResult RotaryAttr::verify(EmitError emitError, FloatAttr theta,
                                 Attribute scaling) {
  double value = theta.getValueAsDouble();
  if (!std::isfinite(value) || value <= 1)
    return emitError() << "expected a finite theta above 1, but got " << value
                       << " [ROT1]";
  if (scaling && !isa<RotaryScalingAttrInterface>(scaling))
    return emitError()
           << "expected #fi.linear, #fi.llama3, #fi.yarn or another "
              "attribute that scales rotary embeddings, but got "
           << scaling << " [ROT2]";
  return success();
}

SmallVector<Value> RotaryAttr::buildTransform(OpBuilder &b, Location loc,
                                              ValueRange arguments,
                                              int64_t dims) const {
  Scalars s{b, loc};
  Value x = arguments[0], y = arguments[1];
  Value pair = s.toFloat(arguments[2]);
  double theta = getTheta().getValueAsDouble();
  Value rate = math::Exp2Op::create(
      b, loc,
      s.multiply(pair,
                 s.number(-2 * std::log2(theta) / static_cast<double>(dims))));
  double magnitude = 1;
  if (auto scaling =
          dyn_cast_or_null<RotaryScalingAttrInterface>(getScaling())) {
    rate = scaling.buildRate(b, loc, rate, pair, theta, dims);
    magnitude = scaling.getMagnitude();
  }
  Value angle = s.multiply(s.toFloat(arguments[5]), rate);
  Value cosine = math::CosOp::create(b, loc, angle);
  Value sine = math::SinOp::create(b, loc, angle);
  if (magnitude != 1) {
    cosine = s.multiply(cosine, s.number(magnitude));
    sine = s.multiply(sine, s.number(magnitude));
  }
  return {s.subtract(s.multiply(x, cosine), s.multiply(y, sine)),
          s.add(s.multiply(x, sine), s.multiply(y, cosine))};
}

//===----------------------------------------------------------------------===//
// Scalings
//===----------------------------------------------------------------------===//

Attribute LinearAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FloatAttr factor;
  if (parseFields(parser, {{"factor", &factor}}))
    return {};
  return parser.getChecked<LinearAttr>(loc, parser.getContext(), factor);
}

void LinearAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNumber(printer, "factor", getFactor());
  printer << '>';
}

LogicalResult LinearAttr::verify(EmitError emitError, FloatAttr factor) {
  return verifyFactor(emitError, factor);
}

Value LinearAttr::buildRate(OpBuilder &b, Location loc, Value rate, Value,
                            double, int64_t) const {
  Scalars s{b, loc};
  return s.multiply(rate, s.number(1 / getFactor().getValueAsDouble()));
}

Attribute Llama3Attr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FloatAttr factor, low, high;
  int64_t context = 0;
  if (parseFields(parser, {{"factor", &factor},
                           {"low", &low},
                           {"high", &high},
                           {"context", nullptr, &context}}))
    return {};
  return parser.getChecked<Llama3Attr>(loc, parser.getContext(), factor, low,
                                       high, context);
}

void Llama3Attr::print(AsmPrinter &printer) const {
  printer << '<';
  printNumber(printer, "factor", getFactor());
  printNumber(printer, ", low", getLow());
  printNumber(printer, ", high", getHigh());
  printer << ", context = " << getTrained() << '>';
}

LogicalResult Llama3Attr::verify(EmitError emitError, FloatAttr factor,
                                 FloatAttr low, FloatAttr high,
                                 int64_t context) {
  return failure(failed(verifyFactor(emitError, factor)) ||
                 failed(verifyTurns(emitError, high, low, context)));
}

/// (turns - low) / (high - low), of the old angle, is how much of it stays.
Value Llama3Attr::buildRate(OpBuilder &b, Location loc, Value rate, Value,
                            double, int64_t) const {
  Scalars s{b, loc};
  double low = getLow().getValueAsDouble();
  double span = getHigh().getValueAsDouble() - low;
  double turns = static_cast<double>(getTrained()) / (2 * M_PI);
  Value kept = s.clamp(
      s.add(s.multiply(rate, s.number(turns / span)), s.number(-low / span)));
  return s.blend(rate, kept, getFactor().getValueAsDouble());
}

Attribute YarnAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FloatAttr factor, fast, slow, magnitude;
  int64_t context = 0;
  if (parseFields(parser,
                  {{"factor", &factor},
                   {"fast", &fast},
                   {"slow", &slow},
                   {"context", nullptr, &context},
                   {"magnitude", &magnitude, nullptr, /*isOptional=*/true}}))
    return {};
  return parser.getChecked<YarnAttr>(loc, parser.getContext(), factor, fast,
                                     slow, context, magnitude);
}

void YarnAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNumber(printer, "factor", getFactor());
  printNumber(printer, ", fast", getFast());
  printNumber(printer, ", slow", getSlow());
  printer << ", context = " << getTrained();
  if (getMagnitudeAttr())
    printNumber(printer, ", magnitude", getMagnitudeAttr());
  printer << '>';
}

LogicalResult YarnAttr::verify(EmitError emitError, FloatAttr factor,
                               FloatAttr fast, FloatAttr slow, int64_t context,
                               FloatAttr magnitude) {
  if (failed(verifyFactor(emitError, factor)) ||
      failed(verifyTurns(emitError, fast, slow, context)))
    return failure();
  if (magnitude && !(std::isfinite(magnitude.getValueAsDouble()) &&
                     magnitude.getValueAsDouble() > 0))
    return emitError() << "expected a magnitude that is finite and above 0, "
                          "but got "
                       << magnitude.getValueAsDouble() << " [ROT5]";
  return success();
}

double YarnAttr::getMagnitude() const {
  if (FloatAttr own = getMagnitudeAttr())
    return own.getValueAsDouble();
  return 0.1 * std::log(getFactor().getValueAsDouble()) + 1;
}

/// Of pairs from the first that turns no more than `fast` times on, less and
/// less of the angle stays; nothing of it from the last that turns `slow`
/// times.
Value YarnAttr::buildRate(OpBuilder &b, Location loc, Value rate, Value pair,
                          double theta, int64_t dims) const {
  Scalars s{b, loc};
  auto pairOf = [&](FloatAttr turns) {
    double rate =
        2 * M_PI * turns.getValueAsDouble() / static_cast<double>(getTrained());
    return -static_cast<double>(dims) * std::log(rate) / (2 * std::log(theta));
  };
  double first = std::max(std::floor(pairOf(getFast())), 0.0);
  double last =
      std::min(std::ceil(pairOf(getSlow())), static_cast<double>(dims - 1));
  // A ramp has some width.
  double width = last > first ? last - first : 0.001;
  Value scaled = s.clamp(
      s.multiply(s.subtract(pair, s.number(first)), s.number(1 / width)));
  return s.blend(rate, s.subtract(s.number(1), scaled),
                 getFactor().getValueAsDouble());
}
