//===- FICompanionOps.cpp - what stands beside attention ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include <cmath>

using namespace mlir;
using namespace fi;

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FICompanionOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

std::optional<NormParts> NormParts::of(Operation *op) {
  auto parts = [&](auto norm) {
    auto scheme = norm.getScheme();
    return NormParts{norm,
                     norm.getInput(),
                     norm.getAddend(),
                     norm.getWeight(),
                     /*bias=*/Value(),
                     norm.getScales(),
                     norm.getEpsilon().convertToDouble(),
                     /*plusOne=*/false,
                     /*centred=*/false,
                     scheme ? cast<ScaledType>(*scheme) : ScaledType(),
                     norm.getOuts()};
  };
  if (auto norm = dyn_cast_or_null<RMSNormOp>(op)) {
    NormParts result = parts(norm);
    result.plusOne = norm.getPlusOne();
    return result;
  }
  if (auto norm = dyn_cast_or_null<LayerNormOp>(op)) {
    NormParts result = parts(norm);
    result.bias = norm.getBias();
    result.centred = true;
    return result;
  }
  return std::nullopt;
}

/// Where results go, as for fi.attention.
static LogicalResult verifyNormPlaces(const NormParts &norm) {
  Operation *op = norm.op;
  if (isa<MemRefType>(norm.input.getType())) {
    if (op->getNumResults() != 0)
      return op->emitOpError(
                 "expected no results, but 'outs', where 'input' is "
                 "a memref, but got ")
             << op->getNumResults() << " [RMS9]";
    for (Value out : norm.outs)
      if (!isa<MemRefType>(out.getType()))
        return op->emitOpError("expected 'outs' to be memrefs, as 'input' is, "
                               "but got ")
               << out.getType() << " [RMS9]";
  } else if (!norm.outs.empty() &&
             norm.outs.getTypes() != op->getResultTypes()) {
    return op->emitOpError("expected 'outs' to be a tensor of the type of each "
                           "result, (")
           << op->getResultTypes() << "), but got (" << norm.outs.getTypes()
           << ") [RMS9]";
  }
  size_t wanted = 1 + (norm.addend ? 1 : 0) + (norm.makesScales() ? 1 : 0);
  if (norm.getPlaces().size() != wanted)
    return op->emitOpError("expected ")
           << wanted << " of results, or of 'outs' where these are memrefs, "
           << (norm.addend && norm.makesScales()
                   ? "the norm, the sum and the scales"
               : norm.addend        ? "the norm and the sum"
               : norm.makesScales() ? "the norm and the scales"
                                    : "the norm")
           << ", but got " << norm.getPlaces().size() << " [RMS2]";
  return success();
}

static LogicalResult verifyScheme(const NormParts &norm, ShapedType result) {
  Operation *op = norm.op;
  if (!norm.scheme) {
    if (norm.scales)
      return op->emitOpError("expected 'scales' beside 'to', but got none "
                             "[RMS8]");
    if (!isa<Float32Type, Float16Type, BFloat16Type>(result.getElementType()))
      return op->emitOpError("expected codes to be asked for by 'to', but got ")
             << result << " without it [RMS8]";
    return success();
  }
  Granularity granularity = norm.scheme.getGranularity();
  if (granularity == Granularity::Page)
    return op->emitOpError(
               "expected scales per tensor, head or token, but got ")
           << norm.scheme << " [RMS8]";
  if (result.getElementType() != norm.scheme.getStorage())
    return op->emitOpError("expected a result of ")
           << norm.scheme.getStorage() << " by 'to', but got " << result
           << " [RMS8]";
  if (norm.makesScales()) {
    if (norm.scales)
      return op->emitOpError("expected no 'scales' of tokens, since these are "
                             "computed, but got ")
             << norm.scales.getType() << " [RMS10]";
    auto made = cast<ShapedType>(norm.getPlaces().back().getType());
    if (!made.getElementType().isF32() ||
        made.getShape() != norm.getInputType().getShape().drop_back())
      return op->emitOpError("expected scales of f32 and of the rows and heads "
                             "of ")
             << norm.getInputType() << ", but got " << made << " [RMS10]";
    return success();
  }
  bool fits = false;
  if (norm.scales) {
    auto shaped = dyn_cast<ShapedType>(norm.scales.getType());
    fits = granularity == Granularity::Tensor
               ? !shaped
               : shaped && shaped.getRank() == 1 &&
                     shaped.getDimSize(0) == norm.getHeads();
  }
  if (!fits) {
    InFlightDiagnostic diag = op->emitOpError("expected 'scales' of ");
    if (granularity == Granularity::Tensor)
      diag << "f32";
    else
      diag << "shape [" << norm.getHeads() << ']';
    diag << " for " << norm.scheme << ", but got ";
    if (norm.scales)
      diag << norm.scales.getType();
    else
      diag << "none";
    return diag << " [RMS8]";
  }
  return success();
}

static LogicalResult verifyNorm(const NormParts &norm) {
  Operation *op = norm.op;
  ShapedType input = norm.getInputType();
  if (!input.hasRank() || input.getRank() != 3 || input.isDynamicDim(1) ||
      input.isDynamicDim(2) || input.getDimSize(1) < 1)
    return op->emitOpError(
               "expected operand 'input' of shape [rows, heads, dim] "
               "with heads and dim known and at least 1 head, but got ")
           << input << " [RMS1]";
  int64_t dim = norm.getDim();
  if (dim % 8 != 0 || dim < 8 || dim > kMaxRowDim)
    return op->emitOpError("expected a dim that is a multiple of 8 up to ")
           << kMaxRowDim << ", but got " << dim << " [RMS1]";
  if (failed(verifyNormPlaces(norm)))
    return failure();
  for (Value place : norm.getPlaces().drop_back(norm.makesScales() ? 1 : 0)) {
    auto type = cast<ShapedType>(place.getType());
    if (type.getShape() != input.getShape())
      return op->emitOpError(
                 "expected a result of the shape of 'input', but got ")
             << type << " of " << input << " [RMS2]";
  }
  if (norm.addend) {
    auto type = cast<ShapedType>(norm.addend.getType());
    if (type.getShape() != input.getShape() ||
        isa<MemRefType>(type) != isa<MemRefType>(input))
      return op->emitOpError("expected operand 'addend' of the shape and kind "
                             "of 'input', but got ")
             << type << " beside " << input << " [RMS6]";
    auto sum = cast<ShapedType>(norm.getPlaces()[1].getType());
    if (!isa<Float32Type, Float16Type, BFloat16Type>(sum.getElementType()))
      return op->emitOpError("expected the sum to be of f32, f16 or bf16, but "
                             "got ")
             << sum << " [RMS6]";
  }
  for (auto [name, value] :
       {std::pair("weight", norm.weight), std::pair("bias", norm.bias)}) {
    if (!value)
      continue;
    auto type = cast<ShapedType>(value.getType());
    if (!type.hasRank() || type.getRank() != 1 || type.getDimSize(0) != dim)
      return op->emitOpError("expected operand '")
             << name << "' of shape [" << dim << "], but got " << type
             << " [RMS3]";
  }
  if (norm.plusOne && !norm.weight)
    return op->emitOpError("expected 'plus_one' beside a weight, but got none "
                           "[RMS3]");
  if (!std::isfinite(norm.epsilon) || norm.epsilon < 0)
    return op->emitOpError(
               "expected 'eps' to be finite and not negative, but got ")
           << static_cast<float>(norm.epsilon) << " [RMS4]";
  return verifyScheme(norm, cast<ShapedType>(norm.getPlaces()[0].getType()));
}

static LogicalResult reifyNorm(const NormParts &norm, OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  if (norm.op->getNumResults() == 0)
    return failure();
  for (Value result : norm.op->getResults()) {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(b, norm.op->getLoc(), norm.input);
    sizes.resize(cast<ShapedType>(result.getType()).getRank());
    shapes.push_back(std::move(sizes));
  }
  return success();
}

LogicalResult RMSNormOp::verify() { return verifyNorm(*NormParts::of(*this)); }
LogicalResult LayerNormOp::verify() {
  return verifyNorm(*NormParts::of(*this));
}

LogicalResult
RMSNormOp::reifyResultShapes(OpBuilder &b,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyNorm(*NormParts::of(*this), b, shapes);
}
LogicalResult
LayerNormOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyNorm(*NormParts::of(*this), b, shapes);
}

void RMSNormOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}
void LayerNormOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}
