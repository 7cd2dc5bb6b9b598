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

#include "Rows.h"
#include "ScalarRegions.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace fi;

//===----------------------------------------------------------------------===//
// What all share
//===----------------------------------------------------------------------===//

LogicalResult fi::verifyRowsOf(Operation *op, ShapedType type, StringRef rule) {
  if (!type.hasRank() || type.getRank() != 3 || type.isDynamicDim(1) ||
      type.isDynamicDim(2) || type.getDimSize(1) < 1)
    return op->emitOpError("expected operand 'input' of shape [rows, heads, "
                           "dim] with heads and dim known and at least 1 head, "
                           "but got ")
           << type << " [" << rule << "]";
  return success();
}

LogicalResult fi::verifyPlaces(CompanionOpInterface op, size_t wanted) {
  MutableOperandRange outs = op.getDestinations();
  SmallVector<Type> given;
  for (OpOperand &out : outs)
    given.push_back(out.get().getType());
  if (isa<MemRefType>(op->getOperand(0).getType())) {
    if (op->getNumResults() != 0)
      return op->emitOpError("expected no results, but 'outs', where 'input' "
                             "is a memref, but got ")
             << op->getNumResults() << " [ROW1]";
    for (Type type : given)
      if (!isa<MemRefType>(type))
        return op->emitOpError("expected 'outs' to be memrefs, as 'input' is, "
                               "but got ")
               << type << " [ROW1]";
  } else if (!given.empty() && TypeRange(given) != op->getResultTypes()) {
    return op->emitOpError("expected 'outs' to be a tensor of the type of each "
                           "result, (")
           << op->getResultTypes() << "), but got (" << given << ") [ROW1]";
  }
  if (op.getPlaces().size() != wanted)
    return op->emitOpError("expected ")
           << wanted << " of results, or of 'outs' where these are memrefs, "
           << "but got " << op.getPlaces().size() << " [ROW1]";
  return success();
}

LogicalResult fi::reifyRows(OpBuilder &b, CompanionOpInterface op,
                            ReifiedRankedShapedTypeDims &shapes) {
  if (op->getNumResults() == 0)
    return failure();
  Value rows = op.getRowOperands().front();
  // Their number, or what has them.
  auto getRows = [&] {
    return rows.getType().isIndex()
               ? OpFoldResult(rows)
               : tensor::getMixedSize(b, op.getLoc(), rows, 0);
  };
  for (Type type : op->getResultTypes()) {
    SmallVector<OpFoldResult> dims;
    for (auto [index, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape()))
      dims.push_back(index == 0 && ShapedType::isDynamic(size)
                         ? getRows()
                         : OpFoldResult(b.getIndexAttr(size)));
    shapes.push_back(std::move(dims));
  }
  return success();
}

void fi::getRowEffects(Operation *op, MutableOperandRange outs,
                       Effects &effects) {
  llvm::SmallPtrSet<OpOperand *, 2> places;
  for (OpOperand &out : outs)
    places.insert(&out);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (places.contains(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
}

/// The type of what goes to a place.
static ShapedType typeOf(CompanionOpInterface op, unsigned place) {
  return cast<ShapedType>(op.getPlaces()[place].getType());
}

//===----------------------------------------------------------------------===//
// GatedOp
//===----------------------------------------------------------------------===//

LogicalResult GatedOp::verify() {
  auto input = cast<ShapedType>(getInput().getType());
  if (failed(verifyRowsOf(*this, input, "GAT1")) ||
      failed(verifyPlaces(*this, 1)))
    return failure();
  int64_t dim = input.getDimSize(2);
  if (dim % 16 != 0 || dim < 16 || dim > kMaxRow)
    return emitOpError("expected a dim that is a multiple of 16 up to ")
           << kMaxRow << ", but got " << dim << " [GAT1]";
  SmallVector<int64_t> shape(input.getShape());
  shape.back() /= 2;
  if (typeOf(*this, 0).getShape() != ArrayRef(shape))
    return emitOpError("expected a result of half the dim of 'input', ")
           << dim / 2 << ", and its rows and heads, but got "
           << typeOf(*this, 0) << " of " << input << " [GAT2]";
  return success();
}

LogicalResult GatedOp::reifyResultShapes(OpBuilder &b,
                                         ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(b, *this, shapes);
}

void GatedOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
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
  Clause input, positions, captures, outs;
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
  TransformSpelling spelling;
  if (parser.parseKeyword("transform") || parser.parseLParen() ||
      parseTransform(parser, *region, bindings, spelling) ||
      parseDestinations(parser, outs) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(input.types.emplace_back()) ||
      parser.parseOptionalArrowTypeList(result.types))
    return failure();
  int64_t paired = 0;
  if (auto type = dyn_cast<ShapedType>(input.types.back());
      type && type.hasRank() && type.getRank() == 3)
    paired = type.getDimSize(2);
  if (auto dims = dyn_cast_or_null<IntegerAttr>(
          result.attributes.get(getDimsAttrName(result.name))))
    paired = dims.getInt();
  if (spelling.build(parser, *region, captures.types, paired))
    return failure();
  SmallVector<int32_t> sizes;
  for (Clause *clause : {&input, &positions, &captures, &outs}) {
    if (parser.resolveOperands(clause->operands, clause->types,
                               parser.getNameLoc(), result.operands))
      return failure();
    sizes.push_back(static_cast<int32_t>(clause->operands.size()));
  }
  result.getOrAddProperties<RopeOp::Properties>().setOperandSegmentSizes(sizes);
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
  printDestinations(printer, getOuts());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getPairingAttrName(), getDimsAttrName(),
                                 getOperandSegmentSizesAttrName()});
  printer << " : " << getInput().getType();
  if (getResult())
    printer << " -> " << getResult().getType();
}

void RopeOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}

LogicalResult RopeOp::verify() {
  ShapedType input = getInputType();
  if (failed(verifyRowsOf(*this, input, "ROPE1")) ||
      failed(verifyPlaces(*this, 1)))
    return failure();
  int64_t dim = input.getDimSize(2);
  if (dim % 8 != 0 || dim < 8 || dim > kMaxHeadDim)
    return emitOpError("expected a dim that is a multiple of 8 up to ")
           << kMaxHeadDim << ", but got " << dim << " [ROPE1]";
  if (typeOf(*this, 0).getShape() != input.getShape())
    return emitOpError("expected a result of the shape of 'input', but got ")
           << typeOf(*this, 0) << " of " << input << " [ROPE2]";
  auto positions = cast<ShapedType>(getPositions().getType());
  if (!positions.hasRank() || positions.getRank() != 1 ||
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
  return reifyRows(b, *this, shapes);
}
