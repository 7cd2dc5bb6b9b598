//===- FIOps.cpp - operations of the fi dialect ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs, states and appends. fi.attention and the views have their own
// files.
//
//===----------------------------------------------------------------------===//

#include "ScalarRegions.h"
#include "Shapes.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fi;

/// One type for all states and the result. Only the generic form can say more.
static ParseResult
parseMergeTypes(OpAsmParser &parser,
                const SmallVectorImpl<OpAsmParser::UnresolvedOperand> &states,
                SmallVectorImpl<Type> &stateTypes, Type &resultType) {
  if (parser.parseType(resultType))
    return failure();
  stateTypes.assign(states.size(), resultType);
  return success();
}

static void printMergeTypes(OpAsmPrinter &printer, Operation *, OperandRange,
                            TypeRange, Type resultType) {
  printer << resultType;
}

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FIOps.cpp.inc"

//===----------------------------------------------------------------------===//
// ProgramOp, ReturnOp
//===----------------------------------------------------------------------===//

bool ProgramOp::isPlanArgument(unsigned index) {
  return static_cast<bool>(getArgAttr(index, kPlanAttr));
}

std::string ProgramOp::getArgumentName(unsigned index) {
  if (auto name = getArgAttrOfType<StringAttr>(index, kNameAttr))
    return name.str();
  return "arg" + std::to_string(index);
}

static ParseResult
parseArgumentGroup(OpAsmParser &parser, StringRef group,
                   SmallVectorImpl<OpAsmParser::Argument> &arguments,
                   bool optional) {
  if (failed(parser.parseOptionalKeyword(group))) {
    if (optional)
      return success();
    return parser.emitError(parser.getCurrentLocation(),
                            "expected argument group '")
           << group << "'";
  }
  SmallVector<OpAsmParser::Argument> parsed;
  if (parser.parseArgumentList(parsed, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true, /*allowAttrs=*/true))
    return failure();
  Builder b(parser.getContext());
  for (OpAsmParser::Argument &argument : parsed) {
    NamedAttrList attrs(argument.attrs);
    if (group == "plan")
      attrs.set(ProgramOp::kPlanAttr, b.getUnitAttr());
    StringRef name = argument.ssaName.name.drop_front();
    if (!attrs.get(ProgramOp::kNameAttr) && !name.empty() &&
        !llvm::isDigit(name.front()))
      attrs.set(ProgramOp::kNameAttr, b.getStringAttr(name));
    argument.attrs = attrs.getDictionary(parser.getContext());
    arguments.push_back(argument);
  }
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(),
                             result.attributes))
    return failure();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parseArgumentGroup(parser, "plan", arguments, /*optional=*/true) ||
      parseArgumentGroup(parser, "run", arguments, /*optional=*/false))
    return failure();
  SmallVector<Type> results;
  if (parser.parseOptionalArrowTypeList(results))
    return failure();
  Builder &b = parser.getBuilder();
  SmallVector<Type> types = llvm::map_to_vector(
      arguments, [](OpAsmParser::Argument &a) { return a.type; });
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(b.getFunctionType(types, results)));
  SmallVector<DictionaryAttr> resultAttrs(results.size(),
                                          b.getDictionaryAttr({}));
  call_interface_impl::addArgAndResultAttrs(b, result, arguments, resultAttrs,
                                            getArgAttrsAttrName(result.name),
                                            getResAttrsAttrName(result.name));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  Block &entry = getBody().front();
  auto printGroup = [&](StringRef group, bool plan) {
    printer << ' ' << group << '(';
    bool first = true;
    for (BlockArgument argument : entry.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (isPlanArgument(index) != plan)
        continue;
      if (!first)
        printer << ", ";
      first = false;
      SmallVector<NamedAttribute> shown;
      if (DictionaryAttr attrs = getArgAttrDict(index))
        for (NamedAttribute attr : attrs)
          if (attr.getName() != kPlanAttr && attr.getName() != kNameAttr)
            shown.push_back(attr);
      printer.printRegionArgument(argument, shown);
    }
    printer << ')';
  };
  if (llvm::any_of(entry.getArguments(), [&](BlockArgument a) {
        return isPlanArgument(a.getArgNumber());
      }))
    printGroup("plan", true);
  printGroup("run", false);
  if (!getResultTypes().empty()) {
    printer << " -> (";
    llvm::interleaveComma(getResultTypes(), printer);
    printer << ")";
  }
  SmallVector<StringRef> elided = {
      SymbolTable::getSymbolAttrName(), getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName()};
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), elided);
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

void ProgramOp::getAsmBlockArgumentNames(Region &region,
                                         OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments())
    if (auto name =
            getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr))
      setName(argument, name);
}

LogicalResult ProgramOp::verify() {
  if (!isPublic())
    return emitOpError("expected a public symbol, but got visibility '")
           << getSymVisibility().value_or("") << "' [PRG1]";
  for (auto [index, type] : llvm::enumerate(getResultTypes()))
    if (!isa<RankedTensorType>(type))
      return emitOpError("expected result ")
             << index << " to be a ranked tensor, but got " << type
             << " [PRG2]";
  llvm::StringSet<> names;
  bool runSeen = false;
  for (unsigned index = 0, e = getArgumentTypes().size(); index < e; ++index) {
    Type type = getArgumentTypes()[index];
    std::string name = getArgumentName(index);
    if (!names.insert(name).second)
      return emitOpError("expected argument names to differ, but got '")
             << name << "' twice [PRG3]";
    if (isPlanArgument(index) && runSeen)
      return emitOpError("expected plan argument '")
             << name << "' before the run arguments [PRG4]";
    runSeen |= !isPlanArgument(index);
    if (!isa<RankedTensorType, MemRefType>(type) && !type.isIntOrIndexOrFloat())
      return emitOpError("expected argument '")
             << name << "' to be a tensor, a memref or a scalar, but got "
             << type << " [PRG5]";
  }
  if (getBody().empty() || !getBody().front().mightHaveTerminator())
    return emitOpError("expected a body that ends in fi.return [PRG6]");
  return success();
}

LogicalResult fi::ReturnOp::verify() {
  auto program = (*this)->getParentOfType<ProgramOp>();
  ArrayRef<Type> types = program.getResultTypes();
  if (getNumOperands() != types.size())
    return emitOpError("expected ")
           << types.size() << " operands, one for each result of the program, "
           << "but got " << getNumOperands() << " [PRG7]";
  for (auto [index, operand, type] : llvm::enumerate(getOperands(), types))
    if (operand.getType() != type)
      return emitOpError("expected operand ")
             << index << " of type " << type << ", but got "
             << operand.getType() << " [PRG7]";
  return success();
}

//===----------------------------------------------------------------------===//
// LoadOp
//===----------------------------------------------------------------------===//

LogicalResult fi::LoadOp::verify() {
  int64_t rank = cast<ShapedType>(getSource().getType()).getRank();
  if (static_cast<int64_t>(getIndices().size()) != rank)
    return emitOpError("expected ")
           << rank << " indices into operand 'source', but got "
           << getIndices().size() << " [LD2]";
  return success();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

LogicalResult EmptyOp::verify() {
  bool dynamic = ShapedType::isDynamic(getType().getRows());
  if (dynamic != static_cast<bool>(getRows()))
    return emitOpError("expected operand 'rows' exactly where the state's rows "
                       "are dynamic, but got ")
           << getType() << " [ST5]";
  if (getType().getSegmented())
    return emitOpError("expected a state that is not segmented, but got ")
           << getType() << " [ST6]";
  return success();
}

LogicalResult MergeOp::verify() {
  if (getStates().empty())
    return emitOpError("expected at least 1 state [MRG3]");
  for (auto [index, state] : llvm::enumerate(getStates()))
    if (state.getType() != getType())
      return emitOpError("expected state ")
             << index << " of type " << getType() << ", but got "
             << state.getType() << " [MRG3]";
  if (!getType().getNormaliser().canMerge())
    return emitOpError("expected a normaliser that can be merged, but got ")
           << getType().getNormaliser() << " [MRG1]";
  if (getType().getSegmented())
    return emitOpError("expected states that are not segmented (fold them by "
                       "fi.merge_segments), but got ")
           << getType() << " [MRG4]";
  return success();
}

void FinalizeOp::build(OpBuilder &b, OperationState &state, Type output,
                       Type statistic, Value partial, Value sink) {
  SmallVector<Type> types = {output};
  if (statistic)
    types.push_back(statistic);
  build(b, state, types, partial, sink, /*outs=*/ValueRange());
}

void FinalizeOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (getSink() && isa<MemRefType>(getSink().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getSinkMutable()[0]);
  // Views hide their pools: as with fi.append, no value is attached.
  if (getNumResults() == 0)
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult
FinalizeOp::reifyResultShapes(OpBuilder &b,
                              ReifiedRankedShapedTypeDims &shapes) {
  if (getNumResults() == 0)
    return failure();
  auto isDynamic = [](Type type) {
    return !cast<RankedTensorType>(type).hasStaticShape();
  };
  // Where the rows are not known here, those of a destination are.
  FailureOr<OpFoldResult> rows = OpFoldResult();
  if (llvm::any_of(getResultTypes(), isDynamic)) {
    rows = getStateRows(b, getLoc(), getState());
    if (failed(rows) && !getOuts().empty())
      rows = OpFoldResult(
          tensor::DimOp::create(b, getLoc(), getOuts()[0], 0).getResult());
    if (failed(rows))
      return failure();
  }
  StateType state = getState().getType();
  int64_t sizes[] = {0, state.getHeads(), state.getDim()};
  for (Type type : getResultTypes()) {
    SmallVector<OpFoldResult> dims;
    for (auto [index, size] :
         llvm::enumerate(cast<RankedTensorType>(type).getShape())) {
      if (!ShapedType::isDynamic(size))
        dims.push_back(b.getIndexAttr(size));
      else if (index == 0)
        dims.push_back(*rows);
      else
        dims.push_back(b.getIndexAttr(sizes[index]));
    }
    shapes.push_back(std::move(dims));
  }
  return success();
}

LogicalResult FinalizeOp::verify() {
  StateType state = getState().getType();
  if (state.getSegmented())
    return emitOpError("expected a state that is not segmented, but got ")
           << state << " [FIN1]";
  bool places =
      !getOuts().empty() && isa<MemRefType>(getOuts().front().getType());
  if (places) {
    if (getNumResults() != 0)
      return emitOpError("expected no results where 'outs' are memrefs, but "
                         "got ")
             << getNumResults() << " [FIN5]";
    for (Value out : getOuts())
      if (!isa<MemRefType>(out.getType()))
        return emitOpError("expected 'outs' to be memrefs all, or tensors all, "
                           "but got ")
               << getOuts().getTypes() << " [FIN5]";
  } else if (!getOuts().empty() && getOuts().getTypes() != getResultTypes()) {
    return emitOpError("expected 'outs' to be a tensor of the type of each "
                       "result, (")
           << getResultTypes() << "), but got (" << getOuts().getTypes()
           << ") [FIN5]";
  }
  TypeRange types =
      places ? TypeRange(getOuts().getTypes()) : TypeRange(getResultTypes());
  StringRef what = places ? "destination" : "result";
  if (types.empty() || types.size() > 2)
    return emitOpError("expected 1 ")
           << what << " (output) or 2 (output, statistic), but got "
           << types.size() << " [FIN1]";
  auto output = cast<ShapedType>(types[0]);
  if (!shapeFits(output.getShape(),
                 {state.getRows(), state.getHeads(), state.getDim()}))
    return emitOpError("expected ")
           << what << " 'output' of shape "
           << shapeText({state.getRows(), state.getHeads(), state.getDim()})
           << ", but got " << shapeText(output.getShape()) << " [FIN1]";
  if (types.size() > 1) {
    auto statistic = cast<ShapedType>(types[1]);
    if (!shapeFits(statistic.getShape(), {state.getRows(), state.getHeads()}))
      return emitOpError("expected ")
             << what << " 'statistic' of shape "
             << shapeText({state.getRows(), state.getHeads()}) << ", but got "
             << shapeText(statistic.getShape()) << " [FIN1]";
    if (!statistic.getElementType().isF32())
      return emitOpError("expected ")
             << what << " 'statistic' to hold f32, but got "
             << statistic.getElementType() << " [FIN1]";
  }
  if (!getSink())
    return success();
  if (!state.getNormaliser().canSink())
    return emitOpError("expected a normaliser that takes a sink, but got ")
           << state.getNormaliser() << " [FIN2]";
  ArrayRef<int64_t> sink = cast<ShapedType>(getSink().getType()).getShape();
  if (!shapeFits(sink, {state.getHeads()}))
    return emitOpError("expected operand 'sink' of shape ")
           << shapeText({state.getHeads()}) << ", one logit for each query "
           << "head, but got " << shapeText(sink) << " [FIN3]";
  return success();
}

LogicalResult MergeSegmentsOp::verify() {
  StateType from = getState().getType(), to = getType();
  if (!from.getSegmented() || to.getSegmented())
    return emitOpError("expected a segmented state folded to one that is not, "
                       "but got ")
           << from << " and " << to << " [MRG5]";
  if (from.getHeads() != to.getHeads() || from.getDim() != to.getDim() ||
      from.getNormaliser() != to.getNormaliser())
    return emitOpError("expected states alike but for the slot axis, but got ")
           << from << " and " << to << " [MRG5]";
  return success();
}

//===----------------------------------------------------------------------===//
// AppendOp
//===----------------------------------------------------------------------===//

void AppendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // No value is attached: two views of one pool alias, and nothing upstream
  // sees through a view.
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

Region *AppendOp::getTransform(bool ofValues) {
  MutableArrayRef<Region> regions = getTransforms();
  if (regions.size() != 2 || regions[ofValues].empty())
    return nullptr;
  return &regions[ofValues];
}

void AppendOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  nameTransformArguments(region, setName);
}

/// Over a latent view the second part is the tails.
static StringRef secondRegionName(Type view) {
  auto type = dyn_cast<KVViewTypeInterface>(view);
  return type && type.getSecondPart() == KVPart::Tail ? "tail" : "value";
}

ParseResult AppendOp::parse(OpAsmParser &parser, OperationState &result) {
  Clause keys, values, rows, view, captures;
  SmallVector<OpAsmParser::Argument> bindings;
  if (parser.parseOperand(keys.operands.emplace_back()) ||
      parser.parseComma() ||
      parser.parseOperand(values.operands.emplace_back()) ||
      parseTypedClause(parser, "rows", rows) || parser.parseKeyword("to") ||
      parser.parseOperand(view.operands.emplace_back()) ||
      parsePairClauses(
          parser, result,
          {getPairingAttrName(result.name), getDimsAttrName(result.name)},
          captures, bindings))
    return failure();
  if (rows.operands.empty())
    return parser.emitError(parser.getNameLoc(), "expected 'rows'");
  std::unique_ptr<Region> regions[2];
  TransformSpelling spellings[2];
  StringRef second;
  SMLoc loc = parser.getCurrentLocation();
  for (StringRef name : {"key", "value", "tail"}) {
    std::unique_ptr<Region> &region = regions[name != "key"];
    if (region || failed(parser.parseOptionalKeyword(name)))
      continue;
    region = std::make_unique<Region>();
    if (name != "key")
      second = name;
    if (parser.parseLParen() ||
        parseTransform(parser, *region, bindings, spellings[name != "key"]))
      return failure();
  }
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(keys.types.emplace_back()) || parser.parseComma() ||
      parser.parseType(values.types.emplace_back()) ||
      parser.parseKeyword("to") || parser.parseType(view.types.emplace_back()))
    return failure();
  if (!second.empty() && second != secondRegionName(view.types[0]))
    return parser.emitError(loc, "expected region '")
           << secondRegionName(view.types[0]) << "' of a view of type "
           << view.types[0] << ", but got '" << second << "'";
  auto viewType = dyn_cast<KVViewTypeInterface>(view.types[0]);
  auto dims = dyn_cast_or_null<IntegerAttr>(
      result.attributes.get(getDimsAttrName(result.name)));
  for (auto [isSecond, spelling] : llvm::enumerate(spellings)) {
    int64_t paired = dims ? dims.getInt() : 0;
    if (viewType && !dims)
      paired = viewType.getPartDim(isSecond ? viewType.getSecondPart()
                                            : KVPart::Keys);
    if (regions[isSecond] &&
        spelling.build(parser, *regions[isSecond], captures.types, paired))
      return failure();
  }
  if (regions[0] || regions[1])
    for (std::unique_ptr<Region> &region : regions)
      result.addRegion(region ? std::move(region) : std::make_unique<Region>());
  for (Clause *clause : {&keys, &values, &rows, &view, &captures})
    if (parser.resolveOperands(clause->operands, clause->types,
                               parser.getNameLoc(), result.operands))
      return failure();
  return success();
}

void AppendOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getKeys() << ", " << getValues() << " rows(" << getRows()
          << " : " << getRows().getType() << ") to " << getView();
  if (getPairing())
    printer << " pair<" << stringifyPairing(*getPairing()) << '>';
  if (getDims())
    printer << " dims(" << *getDims() << ')';
  Region *key = getTransform(false), *value = getTransform(true);
  Region *first = key ? key : value;
  printCaptures(printer, getCaptures(), first);
  if (key)
    printScalarRegion(printer, "key", *key, first, getCaptures().size());
  if (value)
    printScalarRegion(printer, secondRegionName(getView().getType()), *value,
                      first, getCaptures().size());
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getPairingAttrName(), getDimsAttrName()});
  printer << " : " << getKeys().getType() << ", " << getValues().getType()
          << " to " << getView().getType();
}

LogicalResult AppendOp::verifyRegions() {
  for (bool ofValues : {false, true})
    if (Region *region = getTransform(ofValues))
      if (failed(verifyTransform(
              *this, *region,
              ofValues ? secondRegionName(getView().getType()) : "key",
              getCaptures().getTypes())))
        return failure();
  return success();
}

LogicalResult AppendOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  auto maker = getView().getDefiningOp<KVViewOpInterface>();
  if (!maker)
    return emitOpError(
        "expected operand 'view' to be made by a view op in this "
        "program [APP1]");
  for (Value pool : maker.getViewPools())
    if (!isa<MemRefType>(pool.getType())) {
      InFlightDiagnostic diag =
          emitOpError(
              "expected operand 'view' to be made from memrefs, but got ")
          << pool.getType() << " [APP1]";
      diag.attachNote(maker->getLoc()) << "the view is made here";
      return diag;
    }
  for (auto [scale, operand] :
       llvm::zip_equal(getScales(view), maker.getViewScales()))
    if (!scale.per && !isa<MemRefType>(operand.getType()))
      return emitOpError("expected the scales of blocks, which this op writes, "
                         "to be memrefs, but got ")
             << operand.getType() << " [QNT12]";
  constexpr int64_t dynamic = ShapedType::kDynamic;
  for (auto [name, value, dim] :
       {std::tuple("keys", getKeys(), view.getPartDim(KVPart::Keys)),
        std::tuple("values", getValues(),
                   view.getPartDim(view.getSecondPart()))}) {
    ArrayRef<int64_t> shape = cast<ShapedType>(value.getType()).getShape();
    if (!shapeFits(shape, {dynamic, view.getKVHeads(), dim}))
      return emitOpError("expected operand '")
             << name << "' of shape "
             << shapeText({dynamic, view.getKVHeads(), dim}) << ", but got "
             << shapeText(shape) << " [APP2]";
  }
  auto rows = cast<ShapedType>(getRows().getType());
  if (!rows.hasRank() || rows.getRank() != 1)
    return emitOpError("expected operand 'rows' to be of rank 1, but got ")
           << rows << " [APP4]";
  if (!getTransforms().empty() && getTransforms().size() != 2)
    return emitOpError("expected 2 regions, of keys and of values, or none, "
                       "but got ")
           << getTransforms().size() << " [APP8]";
  bool transforms = getTransform(false) || getTransform(true);
  if (transforms != getPairing().has_value() || (!transforms && getDims()))
    return emitOpError("expected 'pair', and 'dims' where not all elements are "
                       "paired, exactly with a region that transforms keys or "
                       "values [APP8]");
  for (bool ofValues : {false, true})
    if (getTransform(ofValues) &&
        failed(verifyPairedDims(
            *this, getDims(),
            view.getPartDim(ofValues ? view.getSecondPart() : KVPart::Keys),
            "APP9")))
      return failure();
  for (bool ofValues : {false, true})
    if (getTransform(ofValues) &&
        isa<BlockScaledType>(ofValues ? view.getValueScheme()
                                      : view.getKeyScheme()))
      return emitOpError("expected no region for ")
             << (ofValues ? "values" : "keys")
             << " that are stored with scales of blocks: transform them "
                "before, "
                "by 'fi.rope' [APP9]";
  return success();
}
