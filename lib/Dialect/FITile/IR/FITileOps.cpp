//===- FITileOps.cpp - operations of the fi_tile dialect ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling and checks. Constraints are TILE1 ... in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

#define GET_OP_CLASSES
#include "fi/Dialect/FITile/IR/FITileOps.cpp.inc"

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether a load may convert `from` to `to`: alike, or to a wider float.
static bool widens(Type from, Type to) {
  if (from == to)
    return true;
  return isa<FloatType>(from) && isa<FloatType>(to) &&
         from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth();
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  ScheduleAttr schedule;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true, /*allowAttrs=*/true) ||
      parser.parseKeyword("schedule") || parser.parseLParen() ||
      parser.parseAttribute(schedule, getScheduleAttrName(result.name),
                            result.attributes) ||
      parser.parseRParen() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Builder &b = parser.getBuilder();
  SmallVector<Type> types;
  for (OpAsmParser::Argument &argument : arguments) {
    types.push_back(argument.type);
    // Names survive as attributes, as in fi.program.
    StringRef ssaName = argument.ssaName.name.drop_front();
    NamedAttrList attrs(argument.attrs);
    if (!isa<WorkType>(argument.type) && !attrs.get(ProgramOp::kNameAttr) &&
        !llvm::isDigit(ssaName.front()))
      attrs.set(ProgramOp::kNameAttr, b.getStringAttr(ssaName));
    argument.attrs = attrs.getDictionary(b.getContext());
  }
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(b.getFunctionType(types, {})));
  call_interface_impl::addArgAndResultAttrs(
      b, result, arguments, /*resultAttrs=*/{},
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  llvm::interleaveComma(
      getBody().front().getArguments(), printer, [&](BlockArgument argument) {
        DictionaryAttr attrs = getArgAttrDict(argument.getArgNumber());
        SmallVector<NamedAttribute> shown;
        for (NamedAttribute attr : attrs ? attrs.getValue()
                                         : ArrayRef<NamedAttribute>())
          if (attr.getName() != ProgramOp::kNameAttr)
            shown.push_back(attr);
        printer.printRegionArgument(argument, shown);
      });
  printer << ") schedule(" << getSchedule() << ')';
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {SymbolTable::getSymbolAttrName(), getFunctionTypeAttrName(),
       getArgAttrsAttrName(), getResAttrsAttrName(), getScheduleAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments()) {
    if (auto name = getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                 ProgramOp::kNameAttr))
      setName(argument, name);
    else if (isa<WorkType>(argument.getType()))
      setName(argument, "work");
  }
}

LogicalResult KernelOp::verify() {
  ArrayRef<Type> types = getArgumentTypes();
  if (types.empty() || !isa<WorkType>(types.back()))
    return emitOpError("expected the last argument to be the work, of type "
                       "!fi_tile.work [TILE1]");
  for (Type type : types.drop_back())
    if (!isa<MemRefType>(type) && !type.isIntOrIndexOrFloat())
      return emitOpError("expected arguments to be memrefs or scalars, but got ")
             << type << " [TILE1]";
  return success();
}

//===----------------------------------------------------------------------===//
// ForItemsOp
//===----------------------------------------------------------------------===//

void ForItemsOp::build(OpBuilder &b, OperationState &state, Value work) {
  state.addOperands(work);
  Region *body = state.addRegion();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(body);
  block->addArgument(ItemType::get(b.getContext()), state.location);
  tile::YieldOp::create(b, state.location);
}

ParseResult ForItemsOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument item;
  OpAsmParser::UnresolvedOperand work;
  item.type = ItemType::get(parser.getContext());
  if (parser.parseArgument(item) || parser.parseKeyword("in") ||
      parser.parseOperand(work) ||
      parser.resolveOperand(work, WorkType::get(parser.getContext()),
                            result.operands) ||
      parser.parseRegion(*result.addRegion(), item))
    return failure();
  ForItemsOp::ensureTerminator(*result.regions[0], parser.getBuilder(),
                               result.location);
  return parser.parseOptionalAttrDict(result.attributes);
}

void ForItemsOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getItem() << " in " << getWork() << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                      /*printBlockTerminators=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs());
}

//===----------------------------------------------------------------------===//
// ForKeysOp
//===----------------------------------------------------------------------===//

void ForKeysOp::build(OpBuilder &b, OperationState &state, Value item,
                      ValueRange inits, Part part, int64_t step) {
  state.addOperands(item);
  state.addOperands(inits);
  state.addTypes(inits.getTypes());
  auto &properties = state.getOrAddProperties<Properties>();
  properties.part = PartAttr::get(b.getContext(), part);
  properties.step = b.getI64IntegerAttr(step);
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
  if (parser.parseKeyword("step") || parser.parseInteger(step))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments = {key};
  SmallVector<OpAsmParser::Argument> carried;
  SmallVector<OpAsmParser::UnresolvedOperand> inits;
  if (succeeded(parser.parseOptionalKeyword("iter_args"))) {
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseAssignmentList(carried, inits) ||
        parser.parseArrowTypeList(result.types))
      return failure();
    if (carried.size() != result.types.size())
      return parser.emitError(loc, "expected ")
             << carried.size() << " types, but got " << result.types.size();
    for (auto [argument, type] : llvm::zip(carried, result.types))
      argument.type = type;
    llvm::append_range(arguments, carried);
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.resolveOperand(item, ItemType::get(parser.getContext()),
                            result.operands) ||
      parser.resolveOperands(inits, result.types, loc, result.operands) ||
      parser.parseRegion(*result.addRegion(), arguments))
    return failure();
  auto &properties = result.getOrAddProperties<Properties>();
  properties.part = PartAttr::get(parser.getContext(), *which);
  properties.step = b.getI64IntegerAttr(step);
  return parser.parseOptionalAttrDict(result.attributes);
}

void ForKeysOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getKey() << " in " << getItem() << ' '
          << stringifyPart(getPart()) << " step " << getStep();
  if (!getInits().empty()) {
    printer << " iter_args(";
    llvm::interleaveComma(llvm::zip(getCarried(), getInits()), printer,
                          [&](auto pair) {
                            printer << std::get<0>(pair) << " = "
                                    << std::get<1>(pair);
                          });
    printer << ") -> (" << getResultTypes() << ')';
  }
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getPartAttrName(), getStepAttrName()});
}

LogicalResult ForKeysOp::verify() {
  if (getStep() <= 0)
    return emitOpError("expected a step of at least 1 key, but got ")
           << getStep() << " [TILE2]";
  auto yield = cast<tile::YieldOp>(getBody().front().getTerminator());
  if (TypeRange(getInits().getTypes()) != getResultTypes() ||
      yield.getOperandTypes() != getResultTypes())
    return emitOpError("expected initial, yielded and resulting values of the "
                       "same types [TILE3]");
  return success();
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// Rows of [rows, heads, dim] or [rows, heads] against a tile.
static LogicalResult verifyRows(Operation *op, MemRefType memory,
                                RankedTensorType tile, int64_t group,
                                bool load) {
  if (memory.getRank() != 2 && memory.getRank() != 3)
    return op->emitOpError("expected a memref [rows, heads, dim] or [rows, "
                           "heads], but got ")
           << memory << " [TILE4]";
  int64_t columns = memory.getRank() == 3 ? memory.getDimSize(2) : 1;
  if (tile.getDimSize(1) != columns)
    return op->emitOpError("expected a tile of ")
           << columns << " columns, but got " << tile << " [TILE4]";
  if (group <= 0)
    return op->emitOpError("expected a group of at least 1, but got ")
           << group << " [TILE4]";
  bool fits = load ? widens(memory.getElementType(), tile.getElementType())
                   : memory.getElementType() == tile.getElementType();
  if (!fits)
    return op->emitOpError("expected a tile of ")
           << memory.getElementType() << (load ? " or a wider float" : "")
           << ", but got " << tile << " [TILE4]";
  return success();
}

LogicalResult LoadRowsOp::verify() {
  return verifyRows(*this, cast<MemRefType>(getSource().getType()), getType(),
                    getGroup(), /*load=*/true);
}

LogicalResult StoreRowsOp::verify() {
  return verifyRows(*this, cast<MemRefType>(getTarget().getType()),
                    tileType(getTile()), getGroup(), /*load=*/false);
}

static LogicalResult verifyKV(Operation *op, Value view, KVPart part,
                              RankedTensorType tile, bool load) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  bool keys = part == KVPart::Keys;
  int64_t dim = keys ? type.getKeyDim() : type.getValueDim();
  Type element = keys ? type.getKeyType() : type.getValueType();
  bool fits = load ? widens(element, tile.getElementType())
                   : element == tile.getElementType();
  if (tile.getDimSize(1) != dim || !fits)
    return op->emitOpError("expected a tile of ")
           << dim << " columns of " << element
           << (load ? " or a wider float" : "") << ", but got " << tile
           << " [TILE5]";
  return success();
}

LogicalResult LoadKVOp::verify() {
  return verifyKV(*this, getView(), getPart(), getType(), /*load=*/true);
}

LogicalResult StoreKVOp::verify() {
  return verifyKV(*this, getView(), getPart(), tileType(getTile()),
                  /*load=*/false);
}

LogicalResult GatherOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  if (static_cast<int64_t>(getIndices().size()) != source.getRank())
    return emitOpError("expected ")
           << source.getRank() << " indices, but got " << getIndices().size()
           << " [TILE6]";
  auto tile = dyn_cast<RankedTensorType>(getType());
  Type element = tile ? tile.getElementType() : getType();
  if (element != source.getElementType())
    return emitOpError("expected a result of ")
           << source.getElementType() << ", but got " << getType()
           << " [TILE6]";
  for (Value index : getIndices()) {
    auto indexTile = dyn_cast<RankedTensorType>(index.getType());
    bool fits = indexTile ? tile && indexTile.getShape() == tile.getShape() &&
                                indexTile.getElementType().isIndex()
                          : index.getType().isIndex();
    if (!fits)
      return emitOpError("expected indices of type index, or tiles of index of "
                         "the result's shape, but got ")
             << index.getType() << " [TILE6]";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  RankedTensorType type = getType();
  if (!type.getElementType().isIndex() ||
      (type.getDimSize(0) != 1 && type.getDimSize(1) != 1))
    return emitOpError("expected a row or a column of index, but got ")
           << type << " [TILE7]";
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = tileType(getSource()), to = getType();
  bool fits = from.getElementType() == to.getElementType();
  for (int dim : {0, 1})
    fits &= from.getDimSize(dim) == to.getDimSize(dim) ||
            from.getDimSize(dim) == 1;
  if (!fits)
    return emitOpError("expected a result that repeats dimensions of size 1, "
                       "but got ")
           << from << " to " << to << " [TILE8]";
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType a = tileType(getA()), b = tileType(getB()), c = getType();
  int64_t k = getTranspose() ? b.getDimSize(1) : b.getDimSize(0);
  int64_t n = getTranspose() ? b.getDimSize(0) : b.getDimSize(1);
  if (a.getDimSize(1) != k || c.getDimSize(0) != a.getDimSize(0) ||
      c.getDimSize(1) != n)
    return emitOpError("expected [m, k] times ")
           << (getTranspose() ? "transposed [n, k]" : "[k, n]")
           << " to be [m, n], but got " << a << ", " << b << " and " << c
           << " [TILE9]";
  if (a.getElementType() != b.getElementType() || !c.getElementType().isF32())
    return emitOpError("expected operands of one element type and a result of "
                       "f32, but got ")
           << a << ", " << b << " and " << c << " [TILE9]";
  return success();
}

LogicalResult MaskOp::verify() {
  RankedTensorType scores = tileType(getScores()),
                   visible = tileType(getVisible());
  if (scores.getShape() != visible.getShape() ||
      !visible.getElementType().isInteger(1))
    return emitOpError("expected an i1 for each score, but got ")
           << visible << " for " << scores << " [TILE10]";
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType from = tileType(getSource()), to = getType();
  if (from.getDimSize(0) != to.getDimSize(0) ||
      from.getDimSize(1) % to.getDimSize(1) != 0 ||
      from.getElementType() != to.getElementType())
    return emitOpError("expected a result of as many rows, whose columns divide "
                       "those of the source, but got ")
           << from << " to " << to << " [TILE11]";
  return success();
}

LogicalResult InitOp::verify() {
  if (getNumResults() < 1)
    return emitOpError("expected an accumulator among the results [TILE12]");
  return success();
}
