//===- Math.cpp - functions on vectors ------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Math/IR/Math.h"
#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

Value KernelLowering::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value KernelLowering::add(Value a, Value c) {
  return arith::AddIOp::create(b, loc, a, c);
}
Value KernelLowering::add(Value a, int64_t c) {
  return c == 0 ? a : add(a, index(c));
}
Value KernelLowering::mul(Value a, Value c) {
  return arith::MulIOp::create(b, loc, a, c);
}
Value KernelLowering::mul(Value a, int64_t c) {
  return c == 1 ? a : mul(a, index(c));
}
Value KernelLowering::sub(Value a, Value c) {
  return arith::SubIOp::create(b, loc, a, c);
}
Value KernelLowering::minimum(Value a, Value c) {
  return arith::MinSIOp::create(b, loc, a, c);
}
Value KernelLowering::roundUp(Value a, int64_t multiple) {
  if (multiple == 1)
    return a;
  Value up = add(a, multiple - 1);
  return mul(arith::DivUIOp::create(b, loc, up, index(multiple)), multiple);
}

Value KernelLowering::splatVector(Type element, double value) {
  VectorType type = vectorOf(element);
  Attribute scalar;
  if (isa<FloatType>(element))
    scalar = b.getFloatAttr(element, value);
  else
    scalar = b.getIntegerAttr(element, static_cast<int64_t>(value));
  return arith::ConstantOp::create(b, loc,
                                   DenseElementsAttr::get(type, scalar));
}

/// `a > b ? a : b`: one instruction, where maxnum's care for NaN takes three. A
/// NaN in b is kept, one in a is not; scores of finite inputs have none (spec
/// VAL3).
Value KernelLowering::maximum(Value a, Value c) {
  Value greater =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, a, c);
  return arith::SelectOp::create(b, loc, greater, a, c);
}

/// 2^x for x < 128, exactly 0 from -126.5 down (and at -inf). The integer part
/// goes to the exponent by adding 1.5 * 2^23 + 127, which leaves it in the low
/// bits; the fraction, in [-0.5, 0.5], to a polynomial of degree 6 with
/// constant term 1 and relative error 2e-9, fitted by reweighted least squares.
/// The order of operations matters: no fast-math flags here.
Value KernelLowering::exp2Bounded(Value x) {
  static constexpr double coefficients[] = {1.0,
                                            0.6931471824645996,
                                            0.24022647738456726,
                                            0.055503323674201965,
                                            0.00961843691766262,
                                            0.0013398875016719103,
                                            0.00015353361959569156};
  Type f32 = b.getF32Type(), i32 = b.getI32Type();
  x = maximum(x, splatVector(f32, -127.0));
  Value magic = splatVector(f32, 12582912.0 + 127.0);
  Value shifted = arith::AddFOp::create(b, loc, x, magic);
  Value whole = arith::SubFOp::create(b, loc, shifted, magic);
  Value fraction = arith::SubFOp::create(b, loc, x, whole);
  Value sum = splatVector(f32, coefficients[6]);
  for (int i = 5; i >= 0; --i)
    sum = vector::FMAOp::create(b, loc, sum, fraction,
                                splatVector(f32, coefficients[i]));
  Value bits = vector::BitCastOp::create(b, loc, vectorOf(i32), shifted);
  bits = arith::ShLIOp::create(b, loc, bits, splatVector(i32, 23));
  Value power = vector::BitCastOp::create(b, loc, vectorOf(f32), bits);
  return arith::MulFOp::create(b, loc, sum, power);
}

Value KernelLowering::elementwise(Operation *op, ValueRange operands) {
  if (auto exp2 = dyn_cast<math::Exp2Op>(op))
    if (bitEnumContainsAll(exp2.getFastmath(), arith::FastMathFlags::afn) &&
        tileType(exp2).getElementType().isF32())
      return exp2Bounded(operands[0]);
  if (isa<arith::MaxNumFOp>(op))
    return maximum(operands[0], operands[1]);
  Type element = tileType(op->getResult(0)).getElementType();
  OperationState state(loc, op->getName(), operands, vectorOf(element),
                       op->getAttrDictionary().getValue());
  Operation *result = b.create(state);
  // Products and sums may be fused.
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(result)) {
    auto fast = cast<arith::ArithFastMathInterface>(result);
    result->setAttr(fast.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(
                        b.getContext(), fast.getFastMathFlagsAttr().getValue() |
                                            arith::FastMathFlags::contract));
  }
  return result->getResult(0);
}

Value KernelLowering::horizontal(ReduceKind kind, Value vector) {
  // Halves onto each other: log2(W) steps.
  for (int64_t half = W / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < W; ++lane)
      lanes.push_back(lane ^ half);
    Value other = vector::ShuffleOp::create(b, loc, vector, vector, lanes);
    vector = kind == ReduceKind::Max
                 ? maximum(vector, other)
                 : arith::AddFOp::create(b, loc, vector, other).getResult();
  }
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0});
}
