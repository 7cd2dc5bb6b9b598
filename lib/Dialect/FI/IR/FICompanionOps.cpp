//===- FICompanionOps.cpp - what stands beside attention ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fi;

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FICompanionOps.cpp.inc"

LogicalResult RMSNormOp::verify() {
  RankedTensorType input = getInput().getType();
  if (input.getRank() != 3 || input.isDynamicDim(1) || input.isDynamicDim(2) ||
      input.getDimSize(1) < 1)
    return emitOpError("expected operand 'input' of shape [rows, heads, dim] "
                       "with heads and dim known and at least 1 head, but got ")
           << input << " [RMS1]";
  int64_t dim = input.getDimSize(2);
  if (dim % 8 != 0 || dim < 8 || dim > kMaxRowDim)
    return emitOpError("expected a dim that is a multiple of 8 up to ")
           << kMaxRowDim << ", but got " << dim << " [RMS1]";
  if (getResult().getType().getShape() != input.getShape())
    return emitOpError("expected a result of the shape of 'input', but got ")
           << getResult().getType() << " of " << input << " [RMS2]";
  if (Value weight = getWeight()) {
    auto type = cast<RankedTensorType>(weight.getType());
    if (type.getRank() != 1 || type.getDimSize(0) != dim)
      return emitOpError("expected operand 'weight' of shape [")
             << dim << "], but got " << type << " [RMS3]";
  } else if (getPlusOne()) {
    return emitOpError("expected 'plus_one' beside a weight, but got none "
                       "[RMS3]");
  }
  if (APFloat epsilon = getEpsilon();
      !epsilon.isFinite() || epsilon.isNegative())
    return emitOpError("expected 'eps' to be finite and not negative, but got ")
           << epsilon.convertToFloat() << " [RMS4]";
  return success();
}

LogicalResult
RMSNormOp::reifyResultShapes(OpBuilder &b,
                             ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(b, getLoc(), getInput()));
  return success();
}
