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

#include "fi/Dialect/FI/IR/FP8.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// An enumeration as a bare keyword: `[kv_len]`, not `[<kv_len>]`.
template <typename EnumAttr>
static ParseResult parseEnumKeyword(OpAsmParser &parser, EnumAttr &attr) {
  using Enum = decltype(attr.getValue());
  FailureOr<Enum> value = FieldParser<Enum>::parse(parser);
  if (failed(value))
    return failure();
  attr = EnumAttr::get(parser.getContext(), *value);
  return success();
}
template <typename EnumAttr>
static void printEnumKeyword(OpAsmPrinter &printer, Operation *,
                             EnumAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

#define GET_OP_CLASSES
#include "fi/Dialect/FITile/IR/FITileOps.cpp.inc"

bool fi::tile::isTile(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 2 && tile.hasStaticShape() &&
         tile.getDimSize(0) > 0 && tile.getDimSize(1) > 0 &&
         tile.getElementType().isIntOrIndexOrFloat();
}

static RankedTensorType tileType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether a load may convert `from` to `to`: alike, or to a wider float.
static bool widens(Type from, Type to) {
  if (from == to)
    return true;
  return (isa<FloatType>(from) || isCode(from)) && isa<FloatType>(to) &&
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
        for (NamedAttribute attr :
             attrs ? attrs.getValue() : ArrayRef<NamedAttribute>())
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
      return emitOpError(
                 "expected arguments to be memrefs or scalars, but got ")
             << type << " [TILE1]";
  if (!getResultTypes().empty())
    return emitOpError("expected no results, but got ")
           << getResultTypes() << " [TILE1]";
  return success();
}

//===----------------------------------------------------------------------===//
// Views, loads and stores
//===----------------------------------------------------------------------===//

LogicalResult ViewOp::verify() {
  auto type = cast<KVViewTypeInterface>(getType());
  if (getPools().size() != type.getPoolCount())
    return emitOpError("expected ")
           << type.getPoolCount() << " pools for a view of type " << getType()
           << ", but got " << getPools().size() << " [TILE13]";
  for (KVPart part : {KVPart::Keys, KVPart::Values, KVPart::Tail}) {
    int64_t dim = type.getPoolColumns(part);
    if (dim == 0)
      continue;
    auto pool = cast<MemRefType>(getPools()[type.getPool(part)].getType());
    Type element = type.getPoolType(part);
    if (pool.getRank() != type.getPoolRank() ||
        pool.getElementType() != element ||
        (!pool.isDynamicDim(pool.getRank() - 1) &&
         pool.getShape().back() != dim))
      return emitOpError("expected a pool of rank ")
             << type.getPoolRank() << " with rows of " << dim << " x "
             << element << " for " << stringifyKVPart(part) << ", but got "
             << pool << " [TILE13]";
  }
  if (getPages().size() != type.getTableCount())
    return emitOpError("expected ")
           << type.getTableCount() << " page tables for a view of type "
           << getType() << ", but got " << getPages().size() << " [TILE13]";
  for (Value table : getPages()) {
    auto pages = cast<MemRefType>(table.getType());
    if (pages.getElementType() != type.getIndexType() || pages.getRank() < 1 ||
        pages.getRank() > 2)
      return emitOpError(
                 "expected a page table [pages] or [requests, pages] of ")
             << type.getIndexType() << ", but got " << pages << " [TILE13]";
  }
  return success();
}

/// Some of a row's columns, beginning anywhere.
static LogicalResult verifyColumns(Operation *op, int64_t columns,
                                   RankedTensorType tile, Value first,
                                   int64_t step) {
  if (step < 1 || (!first && step != 1))
    return op->emitOpError("expected a step of at least 1, and of 1 without "
                           "'from', but got ")
           << step << " [TILE36]";
  if (first && static_cast<__int128>(tile.getDimSize(1) - 1) * step >= columns)
    return op->emitOpError("expected a tile of columns that a row of ")
           << columns << " has, but got " << tile << " by steps of " << step
           << " [TILE36]";
  return success();
}

/// Rows of [rows, heads, dim], [rows, heads] or [rows] against a tile.
static LogicalResult verifyRows(Operation *op, MemRefType memory,
                                RankedTensorType tile, int64_t group, bool load,
                                Value head, Value first, int64_t step,
                                bool byGroup = false) {
  if (memory.getRank() < 1 || memory.getRank() > 3)
    return op->emitOpError("expected a memref [rows, heads, dim], [rows, "
                           "heads] or [rows], but got ")
           << memory << " [TILE4]";
  if (memory.getRank() == 1 && (group != 1 || head))
    return op->emitOpError("expected a group of 1 and no 'head' for ")
           << memory << ", which has one head, but got a group of " << group
           << (head ? " and a head [TILE4]" : " [TILE4]");
  int64_t columns = memory.getRank() == 3 ? memory.getDimSize(2) : 1;
  if (failed(verifyColumns(op, columns, tile, first, step)))
    return failure();
  if (head && group != 1)
    return op->emitOpError("expected a group of 1 with 'head', but got ")
           << group << " [TILE36]";
  bool share = first || (byGroup && columns % tile.getDimSize(1) == 0);
  if (tile.getDimSize(1) != columns && !share)
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
                    getGroup(), /*load=*/true, getHead(), getFirst(),
                    getStep());
}

LogicalResult StoreRowsOp::verify() {
  return verifyRows(*this, cast<MemRefType>(getTarget().getType()),
                    tileType(getTile()), getGroup(), /*load=*/false, getHead(),
                    getFirst(), getStep(), getPart() != Value());
}

static LogicalResult verifyKV(Operation *op, Value view, KVPart part,
                              RankedTensorType tile, bool load,
                              Value first = {}, int64_t step = 1) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  int64_t dim = type.getPartDim(part);
  Type element = type.getPartType(part);
  // Codes of less than a byte are stored as they are computed, one to a byte.
  if (!load)
    element = type.getPoolType(part);
  bool fits = load ? widens(element, tile.getElementType())
                   : element == tile.getElementType();
  if (failed(verifyColumns(op, dim, tile, first, step)))
    return failure();
  if ((tile.getDimSize(1) != dim && !first) || !fits)
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
  auto view = cast<KVViewTypeInterface>(getView().getType());
  if (getFirst() &&
      view.getPoolColumns(getPart()) != view.getPartDim(getPart()))
    return emitOpError("expected whole rows where two codes share a byte, but "
                       "got columns of ")
           << getView().getType() << " [TILE5]";
  return verifyKV(*this, getView(), getPart(), tileType(getTile()),
                  /*load=*/false, getFirst(), getStep());
}

LogicalResult GatherOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  if (static_cast<int64_t>(getIndices().size()) != source.getRank())
    return emitOpError("expected ") << source.getRank() << " indices, but got "
                                    << getIndices().size() << " [TILE6]";
  auto tile = dyn_cast<RankedTensorType>(getType());
  Type element = tile ? tile.getElementType() : getType();
  Type wanted = source.getElementType();
  if (getBits()) {
    auto word = dyn_cast<IntegerType>(wanted);
    if (source.getRank() != 1 || !word ||
        !llvm::isPowerOf2_32(word.getWidth()) || word.getWidth() < 8 ||
        word.getWidth() > 64)
      return emitOpError(
                 "expected bits of a row of i8, i16, i32 or i64, but got ")
             << source << " [TILE6]";
    wanted = IntegerType::get(getContext(), 1);
  }
  if (element != wanted)
    return emitOpError("expected a result of ")
           << wanted << ", but got " << getType() << " [TILE6]";
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

LogicalResult LoadColumnsOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  RankedTensorType type = getType();
  if (source.getRank() != 1 || source.getElementType() != type.getElementType())
    return emitOpError("expected a memref of rank 1 of the result's ")
           << type.getElementType() << ", but got " << source << " [TILE35]";
  if (type.getDimSize(0) != 1 || type.getDimSize(1) != source.getDimSize(0))
    return emitOpError("expected a row of the source's elements, but got ")
           << type << " of " << source << " [TILE35]";
  return success();
}

/// Output and statistic of a finalised state.
static LogicalResult verifyState(Operation *op, Value output, Value statistic,
                                 StringRef id) {
  RankedTensorType o = tileType(output), s = tileType(statistic);
  if (o.getElementType().isF32() && s.getElementType().isF32() &&
      s.getDimSize(0) == o.getDimSize(0) && s.getDimSize(1) == 1)
    return success();
  return op->emitOpError("expected an output [rows, dim] and a statistic "
                         "[rows, 1] of f32, but got ")
         << o << " and " << s << " [" << id << "]";
}

LogicalResult StoreStateOp::verify() {
  return verifyState(*this, getOutput(), getStatistic(), "TILE14");
}

LogicalResult LoadStateOp::verify() {
  return verifyState(*this, getOutput(), getStatistic(), "TILE14");
}

LogicalResult StoreMergedStateOp::verify() {
  return verifyState(*this, getOutput(), getStatistic(), "TILE14");
}

LogicalResult ArriveLastOp::verify() {
  size_t count = getCounter().size();
  if (count == 0 || count == 2)
    return success();
  return emitOpError(
             "expected a counter's number and how many arrive at it, or "
             "neither, but got ")
         << count << " operands [TILE28]";
}

ParseResult FoldOp::parse(OpAsmParser &parser, OperationState &result) {
  NormaliserAttrInterface normaliser;
  SmallVector<OpAsmParser::UnresolvedOperand> states, running;
  SmallVector<Type> stateTypes, runningTypes;
  auto parseState = [&]() -> ParseResult {
    return failure(
        parser.parseLParen() || parser.parseOperand(states.emplace_back()) ||
        parser.parseComma() || parser.parseOperand(states.emplace_back()) ||
        parser.parseRParen());
  };
  SMLoc loc;
  if (parser.parseAttribute(normaliser) ||
      parser.parseCommaSeparatedList(parseState) ||
      parser.parseKeyword("into") || parser.getCurrentLocation(&loc) ||
      parser.parseOperandList(running, OpAsmParser::Delimiter::Paren) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(stateTypes.emplace_back()) || parser.parseComma() ||
      parser.parseType(stateTypes.emplace_back()) ||
      parser.parseKeyword("into") || parser.parseTypeList(runningTypes))
    return failure();
  for (size_t i = 0; i < states.size(); ++i)
    if (parser.resolveOperand(states[i], stateTypes[i % 2], result.operands))
      return failure();
  if (parser.resolveOperands(running, runningTypes, loc, result.operands))
    return failure();
  result.getOrAddProperties<Properties>().normaliser = normaliser;
  result.addTypes(runningTypes);
  return success();
}

void FoldOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getNormaliser() << ' ';
  OperandRange states = getStates();
  for (size_t i = 0; i + 1 < states.size(); i += 2)
    printer << (i ? ", (" : "(") << states[i] << ", " << states[i + 1] << ')';
  printer << " into (" << getRunning() << ')';
  printer.printOptionalAttrDict((*this)->getAttrs(), {"normaliser"});
  printer << " : " << states[0].getType() << ", " << states[1].getType()
          << " into " << getRunning().getTypes();
}

LogicalResult FoldOp::verify() {
  size_t operands = getTiles().size(), results = getNumResults();
  if (operands < results + 2 || (operands - results) % 2)
    return emitOpError("expected pairs of output and statistic, then a running "
                       "state of as many tiles as results, ")
           << results << ", but got " << operands << " tiles [TILE27]";
  if (getRunning().getTypes() != getResultTypes())
    return emitOpError("expected results of the types of the running state, ")
           << getRunning().getTypes() << ", but got " << getResultTypes()
           << " [TILE27]";
  OperandRange states = getStates();
  Type output = states[0].getType(), statistic = states[1].getType();
  for (size_t i = 2; i < states.size(); i += 2)
    if (states[i].getType() != output || states[i + 1].getType() != statistic)
      return emitOpError("expected states of one type, ")
             << output << " and " << statistic << ", but got "
             << states[i].getType() << " and " << states[i + 1].getType()
             << " [TILE27]";
  if (results == 0 || getRunning()[0].getType() != output)
    return emitOpError("expected an accumulator of the output's type, ")
           << output << ", but got "
           << (results ? getRunning()[0].getType() : Type()) << " [TILE27]";
  if (!getNormaliser().canFold())
    return emitOpError("expected a normaliser whose states can be folded, but "
                       "got ")
           << getNormaliser() << " [TILE27]";
  return verifyState(*this, states[0], states[1], "TILE14");
}

LogicalResult ShareStateOp::verify() {
  return verifyState(*this, getOutput(), getStatistic(), "TILE14");
}

LogicalResult LoadGroupStateOp::verify() {
  int64_t columns = getOutput().getType().getDimSize(1);
  if (static_cast<int64_t>(getColumns()) % columns != 0)
    return emitOpError("expected a share of ")
           << getColumns() << " columns, but got " << getOutput().getType()
           << " [TILE14]";
  return verifyState(*this, getOutput(), getStatistic(), "TILE14");
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
    fits &=
        from.getDimSize(dim) == to.getDimSize(dim) || from.getDimSize(dim) == 1;
  if (!fits)
    return emitOpError("expected a result that repeats dimensions of size 1, "
                       "but got ")
           << from << " to " << to << " [TILE8]";
  return success();
}

LogicalResult ColumnsOp::verify() {
  RankedTensorType from = tileType(getSource()), to = getType();
  int64_t columns = from.getDimSize(1);
  // In 128 bits, where no attribute overflows.
  __int128 last = static_cast<__int128>(to.getDimSize(1) - 1) * getStep() +
                  static_cast<__int128>(getFirst());
  if (from.getElementType() != to.getElementType() ||
      from.getDimSize(0) != to.getDimSize(0) ||
      static_cast<int64_t>(getFirst()) < 0 ||
      static_cast<int64_t>(getStep()) < 1 || last >= columns)
    return emitOpError("expected rows of the source and columns first, first + "
                       "step, ... among its ")
           << columns << ", but got " << to << " from "
           << static_cast<int64_t>(getFirst()) << " step "
           << static_cast<int64_t>(getStep()) << " of " << from << " [TILE19]";
  return success();
}

LogicalResult DotOp::verify() {
  ShapedTile a(getA().getType()), b(getB().getType());
  RankedTensorType c = getType();
  int64_t k = getTranspose() ? b.columns : b.rows;
  int64_t n = getTranspose() ? b.rows : b.columns;
  if (a.columns != k || c.getDimSize(0) != a.rows || c.getDimSize(1) != n)
    return emitOpError("expected [m, k] times ")
           << (getTranspose() ? "transposed [n, k]" : "[k, n]")
           << " to be [m, n], but got " << getA().getType() << ", "
           << getB().getType() << " and " << c << " [TILE9]";
  if (!isa<FloatType>(a.element))
    return emitOpError("expected operands of floats, but got ")
           << getA().getType() << " [TILE9]";
  // A buffer holds what is in memory; what differs is multiplied in f32.
  auto isMultiplied = [](Type element) {
    return element.isF16() || element.isBF16() || element.isF32();
  };
  bool isConverted = isByteCode(b.element) && !a.element.isF32();
  bool ofCodes = isa<BufType>(getA().getType()) && isFP8(a.element) &&
                 isFP8(b.element) && getTranspose();
  bool inBuffers = isa<BufType>(getB().getType()) &&
                   (ofCodes || (isMultiplied(a.element) &&
                                (isMultiplied(b.element) || isConverted)));
  bool isAlike = a.element == b.element && (!isFP8(a.element) || ofCodes);
  if ((!isAlike && !inBuffers) || !c.getElementType().isF32())
    return emitOpError("expected operands of one element type, or of f16, bf16 "
                       "and f32 where the second one lies in a buffer, which "
                       "may be of f8E4M3FN, f8E5M2 or i8 where the first is of "
                       "f16 or bf16, or both in buffers, of f8E4M3FN or "
                       "f8E5M2, with a transposed second one, and a result of "
                       "f32, but got ")
           << getA().getType() << ", " << getB().getType() << " and " << c
           << " [TILE9]";
  return success();
}

LogicalResult MaskOp::verify() {
  RankedTensorType scores = tileType(getScores()),
                   visible = tileType(getVisible());
  if (scores.getShape() != visible.getShape() ||
      !visible.getElementType().isInteger(1))
    return emitOpError("expected an i1 for each score, but got ")
           << visible << " for " << scores << " [TILE10]";
  if (!isa<FloatType>(scores.getElementType()))
    return emitOpError("expected scores of floats, but got ")
           << scores << " [TILE10]";
  return success();
}

LogicalResult AnyOp::verify() {
  if (!tileType(getSource()).getElementType().isInteger(1))
    return emitOpError("expected a tile of i1, but got ")
           << getSource().getType() << " [TILE26]";
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType from = tileType(getSource()), to = getType();
  if (from.getDimSize(0) != to.getDimSize(0) ||
      from.getDimSize(1) % to.getDimSize(1) != 0 ||
      from.getElementType() != to.getElementType())
    return emitOpError(
               "expected a result of as many rows, whose columns divide "
               "those of the source, but got ")
           << from << " to " << to << " [TILE11]";
  return success();
}

//===----------------------------------------------------------------------===//
// Normalisers
//===----------------------------------------------------------------------===//

/// The accumulator, and what the normaliser keeps with some number of lanes.
static LogicalResult verifyRunning(Operation *op,
                                   NormaliserAttrInterface normaliser,
                                   TypeRange types) {
  if (types.empty())
    return op->emitOpError("expected an accumulator, but got no tiles "
                           "[TILE12]");
  auto acc = cast<RankedTensorType>(types[0]);
  if (!acc.getElementType().isF32())
    return op->emitOpError("expected an accumulator of f32, but got ")
           << acc << " [TILE12]";
  SmallVector<Type> kept(types.drop_front());
  for (Type type : types) {
    int64_t lanes = cast<RankedTensorType>(type).getDimSize(1);
    if (normaliser.getRunningTypes(op->getContext(), acc.getDimSize(0),
                                   lanes) == kept)
      return success();
  }
  return op->emitOpError("expected the accumulator and then tiles such as ")
         << normaliser.getRunningTypes(op->getContext(), acc.getDimSize(0), 1)
         << " for " << normaliser << ", but got " << types << " [TILE12]";
}

LogicalResult InitOp::verify() {
  return verifyRunning(*this, getNormaliser(), getResultTypes());
}

LogicalResult UpdateOp::verify() {
  if (failed(verifyRunning(*this, getNormaliser(), getRunning().getTypes())))
    return failure();
  RankedTensorType scores = tileType(getScores()),
                   values = tileType(getValues()),
                   acc = tileType(getRunning()[0]);
  if (!scores.getElementType().isF32() ||
      !isa<FloatType>(values.getElementType()) ||
      scores.getDimSize(0) != acc.getDimSize(0) ||
      scores.getDimSize(1) != values.getDimSize(0) ||
      values.getDimSize(1) != acc.getDimSize(1))
    return emitOpError("expected scores [rows, keys] of f32 and values [keys, "
                       "dim] for an accumulator [rows, dim], but got ")
           << scores << ", " << values << " and " << acc << " [TILE15]";
  return success();
}

LogicalResult tile::FinalizeOp::verify() {
  if (failed(verifyRunning(*this, getNormaliser(), getRunning().getTypes())) ||
      failed(verifyState(*this, getOutput(), getStatistic(), "TILE16")))
    return failure();
  if (tileType(getOutput()) != tileType(getRunning()[0]))
    return emitOpError("expected an output of the accumulator's type, ")
           << getRunning()[0].getType() << ", but got " << getOutput().getType()
           << " [TILE16]";
  if (!getSink())
    return success();
  if (!getNormaliser().canSink())
    return emitOpError("expected a normaliser that takes a sink, but got ")
           << getNormaliser() << " [TILE16]";
  if (getSink().getType() != getStatistic().getType())
    return emitOpError("expected a sink of the statistic's type, ")
           << getStatistic().getType() << ", but got " << getSink().getType()
           << " [TILE16]";
  return success();
}

LogicalResult tile::MergeOp::verify() {
  if (!getNormaliser().canMerge())
    return emitOpError("expected a normaliser whose states can be merged, but "
                       "got ")
           << getNormaliser() << " [TILE17]";
  return verifyState(*this, getOutput(), getStatistic(), "TILE17");
}

LogicalResult SinkOp::verify() {
  if (!getNormaliser().canSink())
    return emitOpError("expected a normaliser that takes a sink, but got ")
           << getNormaliser() << " [TILE17]";
  return verifyState(*this, getOutput(), getStatistic(), "TILE17");
}
