//===- FIRowOps.cpp - work on rows beside norms ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gates and rotary embeddings: spelling and checks.
//
//===----------------------------------------------------------------------===//

#include "ScalarRegions.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fi;

/// Rows of heads whose elements are some number of times 8.
static LogicalResult verifyRows(Operation *op, RankedTensorType type,
                                StringRef rule) {
  if (type.getRank() != 3 || type.isDynamicDim(1) || type.isDynamicDim(2) ||
      type.getDimSize(1) < 1)
    return op->emitOpError("expected operand 'input' of shape [rows, heads, "
                           "dim] with heads and dim known and at least 1 head, "
                           "but got ")
           << type << " [" << rule << "]";
  return success();
}

/// Results have the sizes that their types say, and the rows of an operand.
static void reifyRows(OpBuilder &b, CompanionOpInterface op,
                      ReifiedRankedShapedTypeDims &shapes) {
  Value rows = op.getRowOperands().front();
  for (Type type : op->getResultTypes()) {
    SmallVector<OpFoldResult> dims;
    for (auto [index, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      dims.push_back(index == 0 && ShapedType::isDynamic(size)
                         ? tensor::getMixedSize(b, op.getLoc(), rows, 0)
                         : OpFoldResult(b.getIndexAttr(size)));
    shapes.push_back(std::move(dims));
  }
}

//===----------------------------------------------------------------------===//
// GatedOp
//===----------------------------------------------------------------------===//

LogicalResult GatedOp::verify() {
  RankedTensorType input = getInput().getType();
  if (failed(verifyRows(*this, input, "GAT1")))
    return failure();
  int64_t dim = input.getDimSize(2);
  if (dim % 16 != 0 || dim < 16 || dim > kMaxRow)
    return emitOpError("expected a dim that is a multiple of 16 up to ")
           << kMaxRow << ", but got " << dim << " [GAT1]";
  SmallVector<int64_t> shape(input.getShape());
  shape.back() /= 2;
  if (getResult().getType().getShape() != ArrayRef(shape))
    return emitOpError("expected a result of half the dim of 'input', ")
           << dim / 2 << ", and its rows and heads, but got "
           << getResult().getType() << " of " << input << " [GAT2]";
  return success();
}

LogicalResult GatedOp::reifyResultShapes(OpBuilder &b,
                                         ReifiedRankedShapedTypeDims &shapes) {
  reifyRows(b, *this, shapes);
  return success();
}

//===----------------------------------------------------------------------===//
// RopeOp
//===----------------------------------------------------------------------===//

SmallVector<Value> RopeOp::getRowOperands() {
  return {getInput(), getPositions()};
}

void RopeOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setName) {
  nameTransformArguments(region, setName);
}

ParseResult RopeOp::parse(OpAsmParser &parser, OperationState &result) {
  Clause input, positions, captures;
  SmallVector<OpAsmParser::Argument> bindings;
  Region *region = result.addRegion();
  if (parser.parseOperand(input.operands.emplace_back()) ||
      parser.parseKeyword("at") || parser.parseLParen() ||
      parser.parseOperand(positions.operands.emplace_back()) ||
      parser.parseColonType(positions.types.emplace_back()) ||
      parser.parseRParen() ||
      parsePairClauses(
          parser, result,
          {getPairingAttrName(result.name), getDimsAttrName(result.name)},
          captures, bindings))
    return failure();
  if (!result.attributes.get(getPairingAttrName(result.name)))
    return parser.emitError(parser.getNameLoc(),
                            "expected 'pair<half>' or 'pair<interleaved>'");
  if (parser.parseKeyword("transform") || parser.parseLParen() ||
      parseScalarRegion(parser, *region, bindings) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(input.types.emplace_back()) ||
      parser.parseArrow() || parser.parseType(result.types.emplace_back()))
    return failure();
  for (Clause *clause : {&input, &positions, &captures})
    if (parser.resolveOperands(clause->operands, clause->types,
                               parser.getNameLoc(), result.operands))
      return failure();
  return success();
}

void RopeOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getInput() << " at(" << getPositions() << " : "
          << getPositions().getType() << ") pair<"
          << stringifyPairing(getPairing()) << '>';
  if (getDims())
    printer << " dims(" << *getDims() << ')';
  printCaptures(printer, getCaptures(), &getTransform());
  printScalarRegion(printer, "transform", getTransform(), &getTransform(),
                    getCaptures().size());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getPairingAttrName(), getDimsAttrName()});
  printer << " : " << getInput().getType() << " -> " << getResult().getType();
}

LogicalResult RopeOp::verify() {
  RankedTensorType input = getInput().getType();
  if (failed(verifyRows(*this, input, "ROPE1")))
    return failure();
  int64_t dim = input.getDimSize(2);
  if (dim % 8 != 0 || dim < 8 || dim > kMaxHeadDim)
    return emitOpError("expected a dim that is a multiple of 8 up to ")
           << kMaxHeadDim << ", but got " << dim << " [ROPE1]";
  if (getResult().getType().getShape() != input.getShape())
    return emitOpError("expected a result of the shape of 'input', but got ")
           << getResult().getType() << " of " << input << " [ROPE2]";
  auto positions = cast<RankedTensorType>(getPositions().getType());
  if (positions.getRank() != 1 ||
      (!positions.isDynamicDim(0) && !input.isDynamicDim(0) &&
       positions.getDimSize(0) != input.getDimSize(0)))
    return emitOpError("expected operand 'positions' to have an element for "
                       "each row of ")
           << input << ", but got " << positions << " [ROPE3]";
  return verifyPairedDims(*this, getDims(), dim, "ROPE4");
}

LogicalResult RopeOp::verifyRegions() {
  return verifyTransform(*this, getTransform(), "transform",
                         getCaptures().getTypes());
}

LogicalResult RopeOp::reifyResultShapes(OpBuilder &b,
                                        ReifiedRankedShapedTypeDims &shapes) {
  reifyRows(b, *this, shapes);
  return success();
}
