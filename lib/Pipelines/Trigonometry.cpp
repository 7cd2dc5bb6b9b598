//===- Trigonometry.cpp - sines and cosines of large angles ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Angles are products of positions, and so as large as these. In f32 nothing is
// left of an angle of 10^7 once multiples of pi / 2 are taken away; here this
// is done in f64, with pi / 2 in parts of 21 bits, whose products with numbers
// of quarter turns below 2^32 are exact. Upstream's polynomials do it in f32.
//
//===----------------------------------------------------------------------===//

#include "Trigonometry.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace {

/// Beyond, an angle is taken for 0: an f32 of that size is a multiple of 512.
constexpr double kLargestAngle = 0x1p32;
constexpr double kHalfPi[] = {0x1.921fbp+0, 0x1.5110ap-22, 0x1.4611ap-42,
                              0x1.898ccp-64};
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

/// Sines and cosines of what is left of an angle.
class Angle {
public:
  Angle(PatternRewriter &b, Location loc, Value x) : b(b), loc(loc) {
    f32 = x.getType();
    f64 = like(b.getF64Type());
    i64 = like(b.getI64Type());
    i32 = like(b.getI32Type());
    Value size = math::AbsFOp::create(b, loc, x);
    Value isKnown = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLE,
                                          size, number(kLargestAngle, f32));
    x = arith::SelectOp::create(b, loc, isKnown, x, number(0, f32));
    Value wide = arith::ExtFOp::create(b, loc, f64, x);
    // A sum with a large number is rounded to an integer, in its low bits.
    Value large = number(0x1.8p52, f64);
    Value sum = arith::AddFOp::create(
        b, loc, multiply(wide, number(kTwoOverPi, f64)), large);
    Value bits = arith::BitcastOp::create(b, loc, i64, sum);
    quarter = arith::TruncIOp::create(b, loc, i32, bits);
    Value turns = arith::SubFOp::create(b, loc, sum, large);
    for (double part : kHalfPi)
      wide = arith::SubFOp::create(b, loc, wide,
                                   multiply(turns, number(part, f64)));
    rest = arith::TruncFOp::create(b, loc, f32, wide);
    square = multiply(rest, rest);
  }

  /// Of the angle and `more` quarter turns: the polynomial of sines or of
  /// cosines, with the sign that the quarter has.
  Value sine(int64_t more) {
    Value turned = arith::AddIOp::create(b, loc, quarter, integer(more));
    auto hasBit = [&](int64_t bit) -> Value {
      Value one = arith::AndIOp::create(b, loc, turned, integer(bit));
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, one,
                                   integer(0));
    };
    Value value = arith::SelectOp::create(b, loc, hasBit(1), cosineOfRest(),
                                          sineOfRest());
    Value negated = arith::NegFOp::create(b, loc, value);
    return arith::SelectOp::create(b, loc, hasBit(2), negated, value);
  }

private:
  Type like(Type element) {
    if (auto vector = dyn_cast<VectorType>(f32))
      return vector.clone(element);
    return element;
  }
  Value constant(Type type, Attribute value) {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(vector, value));
    return arith::ConstantOp::create(b, loc, type, cast<TypedAttr>(value));
  }
  Value number(double value, Type type) {
    return constant(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value integer(int64_t value) {
    return constant(i32, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value multiply(Value x, Value y) {
    return arith::MulFOp::create(b, loc, x, y);
  }
  /// A polynomial of the square, from the highest power on.
  Value polynomial(ArrayRef<double> factors) {
    Value value = number(factors.front(), f32);
    for (double factor : factors.drop_front())
      value = arith::AddFOp::create(b, loc, multiply(value, square),
                                    number(factor, f32));
    return value;
  }
  // Taylor series up to x^9 and x^10, whose rest is below 2^-29 at pi / 4.
  Value sineOfRest() {
    return multiply(
        rest, polynomial({1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1}));
  }
  Value cosineOfRest() {
    return polynomial(
        {-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1});
  }

  PatternRewriter &b;
  Location loc;
  Type f32, f64, i64, i32;
  /// The number of quarter turns; the angle less these, and its square.
  Value quarter, rest, square;
};

/// A cosine is the sine of the angle and a quarter turn.
template <typename OpTy, int64_t more> struct Expand : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &b) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    b.replaceOp(op, Angle(b, op.getLoc(), op.getOperand()).sine(more));
    return success();
  }
};

} // namespace

void fi::populateTrigonometryPatterns(RewritePatternSet &patterns) {
  // Before upstream's.
  patterns.add<Expand<math::SinOp, 0>, Expand<math::CosOp, 1>>(
      patterns.getContext(), PatternBenefit(2));
}
