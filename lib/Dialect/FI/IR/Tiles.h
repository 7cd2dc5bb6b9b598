//===- Tiles.h - arithmetic on tiles for normalisers ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What normalisers build their elementwise arithmetic with.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FI_IR_TILES_H
#define FI_LIB_DIALECT_FI_IR_TILES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

namespace fi {

inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// Short names for elementwise arithmetic on tiles.
struct Tiles {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value constant(mlir::Value like, double value) {
    auto type = mlir::cast<mlir::RankedTensorType>(like.getType());
    return constant(type, value);
  }
  mlir::Value constant(mlir::RankedTensorType type, double value) {
    return mlir::arith::ConstantOp::create(
        b, loc,
        mlir::DenseElementsAttr::get(
            type, b.getFloatAttr(type.getElementType(), value).getValue()));
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddFOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubFOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivFOp::create(b, loc, x, y);
  }
  mlir::Value max(mlir::Value x, mlir::Value y) {
    return mlir::arith::MaxNumFOp::create(b, loc, x, y);
  }
  /// 2^x for x of at most a few; exactly 0 at -inf.
  mlir::Value exp2(mlir::Value x) {
    return mlir::math::Exp2Op::create(b, loc, x,
                                      mlir::arith::FastMathFlags::afn);
  }
  mlir::Value log2(mlir::Value x) {
    return mlir::math::Log2Op::create(b, loc, x);
  }
  mlir::Value abs(mlir::Value x) {
    return mlir::math::AbsFOp::create(b, loc, x);
  }
  mlir::Value equal(mlir::Value x, double value) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OEQ,
                                       x, constant(x, value));
  }
  mlir::Value atMost(mlir::Value x, mlir::Value y) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OLE,
                                       x, y);
  }
  mlir::Value atLeast(mlir::Value x, double value) {
    return mlir::arith::CmpFOp::create(b, loc, mlir::arith::CmpFPredicate::OGE,
                                       x, constant(x, value));
  }
  mlir::Value select(mlir::Value c, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, c, x, y);
  }
  /// m, or 0 where m is -inf.
  mlir::Value subtrahend(mlir::Value m) {
    return select(equal(m, -kInf), constant(m, 0.0), m);
  }
};

} // namespace fi

#endif // FI_LIB_DIALECT_FI_IR_TILES_H
