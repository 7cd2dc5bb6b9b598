//===- Loops.cpp - loops over items and keys ------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling and checks of fi_tile.for_items and fi_tile.for_keys.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// ForItemsOp
//===----------------------------------------------------------------------===//

/// A loop's block takes `arguments` and yields `carried`.
static LogicalResult verifyBody(Operation *op, Block &body, TypeRange arguments,
                                TypeRange carried) {
  if (TypeRange(body.getArgumentTypes()) != arguments)
    return op->emitOpError("expected a body with arguments of types ")
           << arguments << ", but got " << body.getArgumentTypes()
           << " [TILE18]";
  auto yield = dyn_cast<tile::YieldOp>(body.getTerminator());
  if (!yield)
    return op->emitOpError("expected a body that ends with fi_tile.yield, but "
                           "got ")
           << body.getTerminator()->getName() << " [TILE18]";
  if (TypeRange(yield.getOperandTypes()) != carried) {
    InFlightDiagnostic diag = op->emitOpError("expected a body that yields ");
    if (carried.empty())
      diag << "nothing";
    else
      diag << carried;
    diag << ", but got " << yield.getOperandTypes() << " [TILE3]";
    diag.attachNote(yield.getLoc()) << "yielded here";
    return diag;
  }
  return success();
}

LogicalResult ForItemsOp::verify() {
  if (TypeRange(getInits().getTypes()) != getResultTypes())
    return emitOpError("expected initial values of the types of the results, ")
           << getResultTypes() << ", but got " << getInits().getTypes()
           << " [TILE3]";
  return success();
}

LogicalResult ForItemsOp::verifyRegions() {
  SmallVector<Type> arguments = {ItemType::get(getContext())};
  llvm::append_range(arguments, getResultTypes());
  return verifyBody(*this, getBody().front(), arguments, getResultTypes());
}

void ForItemsOp::build(OpBuilder &b, OperationState &state, Value work,
                       ValueRange inits) {
  state.addOperands(work);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(body);
  block->addArgument(ItemType::get(b.getContext()), state.location);
  for (Value init : inits)
    block->addArgument(init.getType(), init.getLoc());
  if (inits.empty())
    tile::YieldOp::create(b, state.location);
}

/// `iter_args(%a = %b, ...) -> (types)`, if there are any.
static ParseResult
parseCarried(OpAsmParser &parser,
             SmallVectorImpl<OpAsmParser::Argument> &arguments,
             SmallVectorImpl<OpAsmParser::UnresolvedOperand> &inits,
             SmallVectorImpl<Type> &types) {
  if (failed(parser.parseOptionalKeyword("iter_args")))
    return success();
  SmallVector<OpAsmParser::Argument> carried;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAssignmentList(carried, inits) ||
      parser.parseArrowTypeList(types))
    return failure();
  if (carried.size() != types.size())
    return parser.emitError(loc, "expected ")
           << carried.size() << " types, but got " << types.size();
  for (auto [argument, type] : llvm::zip(carried, types))
    argument.type = type;
  llvm::append_range(arguments, carried);
  return success();
}

static void printCarried(OpAsmPrinter &printer, ValueRange carried,
                         ValueRange inits, TypeRange types) {
  if (inits.empty())
    return;
  printer << " iter_args(";
  llvm::interleaveComma(llvm::zip(carried, inits), printer, [&](auto pair) {
    printer << std::get<0>(pair) << " = " << std::get<1>(pair);
  });
  printer << ") -> (" << types << ')';
}

ParseResult ForItemsOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument item;
  OpAsmParser::UnresolvedOperand work;
  item.type = ItemType::get(parser.getContext());
  if (parser.parseArgument(item) || parser.parseKeyword("in") ||
      parser.parseOperand(work))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments = {item};
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  if (parseCarried(parser, arguments, inits, result.types))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.resolveOperand(work, WorkType::get(parser.getContext()),
                            result.operands) ||
      parser.resolveOperands(inits, result.types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  // A loop that carries nothing needs no terminator in text.
  if (inits.empty())
    ForItemsOp::ensureTerminator(*result.regions[0], parser.getBuilder(),
                                 result.location);
  return parser.parseOptionalAttrDict(result.attributes);
}

void ForItemsOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getItem() << " in " << getWork();
  printCarried(printer, getCarried(), getInits(), getResultTypes());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/!getInits().empty());
  printer.printOptionalAttrDict((*this)->getAttrs());
}

//===----------------------------------------------------------------------===//
// ForKeysOp
//===----------------------------------------------------------------------===//

void ForKeysOp::build(OpBuilder &b, OperationState &state, Value item,
                      ValueRange inits, Part part, int64_t step,
                      std::optional<Selection> selection) {
  state.addOperands(item);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  auto &properties = state.getOrAddProperties<Properties>();
  properties.part = PartAttr::get(b.getContext(), part);
  properties.step = b.getI64IntegerAttr(step);
  if (selection)
    properties.selection = SelectionAttr::get(b.getContext(), *selection);
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(body);
  block->addArgument(b.getIndexType(), state.location);
  for (Value init : inits)
    block->addArgument(init.getType(), init.getLoc());
}

ParseResult ForKeysOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument key;
  OpAsmParser::UnresolvedOperand item;
  StringRef part;
  int64_t step;
  SMLoc partLoc;
  Builder &b = parser.getBuilder();
  key.type = b.getIndexType();
  if (parser.parseArgument(key) || parser.parseKeyword("in") ||
      parser.parseOperand(item) || parser.getCurrentLocation(&partLoc) ||
      parser.parseKeyword(&part))
    return failure();
  std::optional<Part> which = symbolizePart(part);
  if (!which)
    return parser.emitError(partLoc, "expected all, full or partial, but got '")
           << part << "'";
  std::optional<Selection> selection;
  for (Selection one : {Selection::First, Selection::Rest, Selection::Last})
    if (succeeded(parser.parseOptionalKeyword(stringifySelection(one))))
      selection = one;
  if (parser.parseKeyword("step") || parser.parseInteger(step))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments = {key};
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  if (parseCarried(parser, arguments, inits, result.types))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.resolveOperand(item, ItemType::get(parser.getContext()),
                            result.operands) ||
      parser.resolveOperands(inits, result.types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.part = PartAttr::get(parser.getContext(), *which);
  properties.step = b.getI64IntegerAttr(step);
  if (selection)
    properties.selection = SelectionAttr::get(parser.getContext(), *selection);
  return parser.parseOptionalAttrDict(result.attributes);
}

void ForKeysOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getKey() << " in " << getItem() << ' '
          << stringifyPart(getPart());
  if (std::optional<Selection> selection = getSelection())
    printer << ' ' << stringifySelection(*selection);
  printer << " step " << getStep();
  printCarried(printer, getCarried(), getInits(), getResultTypes());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getPartAttrName(), getStepAttrName(), getSelectionAttrName()});
}

LogicalResult ForKeysOp::verify() {
  if (getSelection() && *getSelection() != Selection::Rest &&
      getPart() != Part::All)
    return emitOpError("expected the first or last tile of all, but got one of "
                       "the ")
           << stringifyPart(getPart()) << " ones [TILE2]";
  // The accessor is unsigned.
  if (auto step = static_cast<int64_t>(getStep()); step <= 0)
    return emitOpError("expected a step of at least 1 key, but got ")
           << step << " [TILE2]";
  if (TypeRange(getInits().getTypes()) != getResultTypes())
    return emitOpError("expected initial values of the types of the results, ")
           << getResultTypes() << ", but got " << getInits().getTypes()
           << " [TILE3]";
  return success();
}

LogicalResult ForKeysOp::verifyRegions() {
  SmallVector<Type> expected = {IndexType::get(getContext())};
  llvm::append_range(expected, getResultTypes());
  return verifyBody(*this, getBody().front(), expected, getResultTypes());
}
