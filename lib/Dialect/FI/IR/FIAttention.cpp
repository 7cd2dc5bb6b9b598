//===- FIAttention.cpp - the fi.attention operation -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling, checks and builders of fi.attention.
//
//===----------------------------------------------------------------------===//

#include "ScalarRegions.h"
#include "Shapes.h"
#include "fi/Dialect/FI/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fi;

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

Type fi::getQueryNumbers(AttentionOp op) {
  Type element = op.getQueryType().getElementType();
  return isFP8(element) ? Float16Type::get(op.getContext()) : element;
}

SmallVector<Value> AttentionOp::getQueryParts() {
  SmallVector<Value> parts = {getQuery()};
  if (getQueryTail())
    parts.push_back(getQueryTail());
  return parts;
}

SmallVector<Type> AttentionOp::getMaskArgumentTypes(MLIRContext *context) {
  return SmallVector<Type>(5, IndexType::get(context));
}

SmallVector<Type> AttentionOp::getScoreArgumentTypes(MLIRContext *context) {
  SmallVector<Type> types = {Float32Type::get(context)};
  types.append(5, IndexType::get(context));
  return types;
}

/// (x, y, pair, request, head, position)
SmallVector<Type> AttentionOp::getTransformArgumentTypes(MLIRContext *context) {
  SmallVector<Type> types(2, Float32Type::get(context));
  types.append(4, IndexType::get(context));
  return types;
}

static SmallVector<Type> regionArgumentTypes(MLIRContext *context,
                                             unsigned index) {
  if (index < 2)
    return AttentionOp::getTransformArgumentTypes(context);
  if (index == 2)
    return AttentionOp::getScoreArgumentTypes(context);
  return AttentionOp::getMaskArgumentTypes(context);
}

static constexpr StringLiteral kRegionNames[] = {"query", "key", "score",
                                                 "mask"};

Block *AttentionOp::addRegionBlock(Region &region) {
  unsigned index = region.getRegionNumber();
  Block *block = new Block;
  region.push_back(block);
  for (Type type : regionArgumentTypes(getContext(), index))
    block->addArgument(type, getLoc());
  for (Value capture : getCaptures())
    block->addArgument(capture.getType(), capture.getLoc());
  return block;
}

void AttentionOp::build(OpBuilder &b, OperationState &state,
                        TypeRange resultTypes, Value query, Value rows,
                        Value view, FloatAttr scale, ValueRange captures,
                        ArrayAttr masks, AttentionRegionBuilder score,
                        AttentionRegionBuilder mask) {
  NormaliserAttrInterface normaliser =
      SoftmaxAttr::get(b.getContext(), LseBase::Two);
  build(b, state, resultTypes, query, rows, view, /*positions=*/Value(),
        /*segments=*/Value(), /*scaleValue=*/Value(), /*sink=*/Value(),
        captures, /*outs=*/ValueRange(), /*queryTail=*/Value(), scale,
        normaliser,
        /*scoreAttr=*/ScoreAttrInterface(), masks, /*split=*/SplitAttr(),
        /*bounds=*/ArrayAttr(), /*schedules=*/ArrayAttr(),
        /*pairing=*/PairingAttr());
  auto fill = [&](unsigned index, AttentionRegionBuilder body) {
    if (!body)
      return;
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Type> types = regionArgumentTypes(b.getContext(), index);
    llvm::append_range(types, captures.getTypes());
    Block *block =
        b.createBlock(state.regions[index].get(), {}, types,
                      SmallVector<Location>(types.size(), state.location));
    Value value = body(b, state.location, block->getArguments());
    fi::YieldOp::create(b, state.location, value);
  };
  fill(2, score);
  fill(3, mask);
}

void AttentionOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  static constexpr StringLiteral transform[] = {"x",   "y",    "pair",
                                                "req", "head", "pos"};
  static constexpr StringLiteral score[] = {"s", "req", "qh", "kh", "qp", "kp"};
  unsigned index = region.getRegionNumber();
  ArrayRef<StringLiteral> names =
      index < 2    ? ArrayRef<StringLiteral>(transform)
      : index == 2 ? ArrayRef<StringLiteral>(score)
                   : ArrayRef<StringLiteral>(score).drop_front();
  for (auto [i, argument] : llvm::enumerate(region.getArguments()))
    setName(argument, i < names.size()
                          ? std::string(names[i])
                          : "c" + std::to_string(i - names.size()));
}

//===----------------------------------------------------------------------===//
// Parser and printer
//===----------------------------------------------------------------------===//

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  Clause query, rows, view, positions, segments, scaleValue, sink, captures,
      outs, queryTail;
  SmallVector<OpAsmParser::Argument> bindings;
  Builder &b = parser.getBuilder();
  Region *regions[4];
  for (Region *&region : regions)
    region = result.addRegion();

  auto parseRegionWithArguments = [&](Region &region) -> ParseResult {
    return parseScalarRegion(parser, region, bindings);
  };
  // The region, or a list of attributes, behind `keyword(`.
  auto startsAttribute = [&](Attribute &attr) -> ParseResult {
    OptionalParseResult parsed = parser.parseOptionalAttribute(attr);
    return failure(parsed.has_value() && failed(*parsed));
  };

  if (parser.parseOperand(query.operands.emplace_back()) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseOperand(queryTail.operands.emplace_back())) ||
      parseTypedClause(parser, "rows", rows) || parser.parseKeyword("over") ||
      parser.parseOperand(view.operands.emplace_back()) ||
      parseTypedClause(parser, "at", positions))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("segments"))) {
    if (parser.parseLParen() ||
        parser.parseOperand(segments.operands.emplace_back()) ||
        parser.parseRParen())
      return failure();
    segments.types.push_back(SegmentsType::get(parser.getContext()));
  }
  if (parser.parseKeyword("scale") || parser.parseLParen())
    return failure();
  OpAsmParser::UnresolvedOperand scaleOperand;
  OptionalParseResult scaleParsed = parser.parseOptionalOperand(scaleOperand);
  if (scaleParsed.has_value()) {
    if (failed(*scaleParsed))
      return failure();
    scaleValue.operands.push_back(scaleOperand);
    scaleValue.types.push_back(b.getF32Type());
  } else {
    double scale;
    if (parser.parseFloat(scale))
      return failure();
    result.addAttribute(getScaleAttrName(result.name),
                        b.getF32FloatAttr(scale));
  }
  if (parser.parseRParen() || parseTypedClause(parser, "sink", sink))
    return failure();
  Attribute normaliser = SoftmaxAttr::get(parser.getContext(), LseBase::Two);
  if (succeeded(parser.parseOptionalKeyword("normalise"))) {
    SMLoc loc;
    if (parser.parseLParen() || parser.getCurrentLocation(&loc) ||
        parser.parseAttribute(normaliser) || parser.parseRParen())
      return failure();
    if (!isa<NormaliserAttrInterface>(normaliser))
      return parser.emitError(loc, "expected a normaliser, but got ")
             << normaliser << " [ATT9]";
  }
  result.addAttribute(getNormaliserAttrName(result.name), normaliser);
  if (parsePairing(parser, result, getPairingAttrName(result.name)))
    return failure();
  if (parseCaptures(parser, captures, bindings))
    return failure();
  TransformSpelling spellings[2];
  for (unsigned index : {0u, 1u})
    if (succeeded(parser.parseOptionalKeyword(kRegionNames[index])))
      if (parser.parseLParen() ||
          parseTransform(parser, *regions[index], bindings, spellings[index]))
        return failure();
  // score(#attr) or score(arguments) { ... }
  if (succeeded(parser.parseOptionalKeyword("score"))) {
    Attribute attr;
    SMLoc loc;
    if (parser.parseLParen() || parser.getCurrentLocation(&loc) ||
        startsAttribute(attr))
      return failure();
    if (attr) {
      if (!isa<ScoreAttrInterface>(attr))
        return parser.emitError(loc, "expected a score attribute, but got ")
               << attr << " [ATT15]";
      result.addAttribute(getScoreAttrAttrName(result.name), attr);
      if (parser.parseRParen())
        return failure();
    } else if (parseRegionWithArguments(*regions[2])) {
      return failure();
    }
  }
  // mask(#a, #b), then mask(arguments) { ... }
  while (regions[3]->empty() &&
         succeeded(parser.parseOptionalKeyword("mask"))) {
    Attribute attr;
    if (parser.parseLParen() || startsAttribute(attr))
      return failure();
    if (!attr) {
      if (parseRegionWithArguments(*regions[3]))
        return failure();
      break;
    }
    if (result.attributes.get(getMasksAttrName(result.name)))
      return parser.emitError(parser.getCurrentLocation(),
                              "expected one list of mask attributes");
    SmallVector<Attribute> masks = {attr};
    while (succeeded(parser.parseOptionalComma()))
      if (parser.parseAttribute(masks.emplace_back()))
        return failure();
    result.addAttribute(getMasksAttrName(result.name), b.getArrayAttr(masks));
    if (parser.parseRParen())
      return failure();
  }
  auto parseAttrClause = [&](StringRef keyword,
                             StringAttr name) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    Attribute attr;
    return failure(parser.parseLParen() ||
                   parser.parseAttribute(attr, name, result.attributes) ||
                   parser.parseRParen());
  };
  if (parseAttrClause("split", getSplitAttrName(result.name)) ||
      parseAttrClause("bounds", getBoundsAttrName(result.name)) ||
      parseAttrClause("schedules", getSchedulesAttrName(result.name)))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("outs")))
    if (parser.parseLParen() || parser.parseOperandList(outs.operands) ||
        parser.parseColonTypeList(outs.types) || parser.parseRParen())
      return failure();
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(query.types.emplace_back()) ||
      (!queryTail.operands.empty() &&
       (parser.parseComma() ||
        parser.parseType(queryTail.types.emplace_back()))) ||
      parser.parseKeyword("over") ||
      parser.parseType(view.types.emplace_back()))
    return failure();
  if (succeeded(parser.parseOptionalArrow()))
    if (parser.parseTypeList(result.types))
      return failure();

  auto viewType = dyn_cast<KVViewTypeInterface>(view.types.back());
  for (unsigned index : {0u, 1u})
    if (spellings[index].build(parser, *regions[index], captures.types,
                               viewType ? viewType.getKeyDim() : 0))
      return failure();

  SmallVector<int32_t> segmentSizes;
  SMLoc loc = parser.getNameLoc();
  for (Clause *clause : {&query, &rows, &view, &positions, &segments,
                         &scaleValue, &sink, &captures, &outs, &queryTail}) {
    if (parser.resolveOperands(clause->operands, clause->types, loc,
                               result.operands))
      return failure();
    segmentSizes.push_back(clause->operands.size());
  }
  result.getOrAddProperties<AttentionOp::Properties>().setOperandSegmentSizes(
      segmentSizes);
  return success();
}

void AttentionOp::print(OpAsmPrinter &printer) {
  auto typed = [&](StringRef keyword, Value value) {
    if (value)
      printer << ' ' << keyword << '(' << value << " : " << value.getType()
              << ')';
  };
  printer << ' ' << getQuery();
  if (getQueryTail())
    printer << ", " << getQueryTail();
  typed("rows", getRows());
  printer << " over " << getView();
  typed("at", getPositions());
  if (getSegments())
    printer << " segments(" << getSegments() << ')';
  printer << " scale(";
  if (getScaleValue())
    printer << getScaleValue();
  else if (getScaleAttr())
    printer.printFloat(*getScale());
  printer << ')';
  typed("sink", getSink());
  if (getNormaliser() != SoftmaxAttr::get(getContext(), LseBase::Two))
    printer << " normalise(" << getNormaliser() << ')';

  if (getPairing())
    printer << " pair<" << stringifyPairing(*getPairing()) << '>';

  // Captures get one name in all regions: that of the first region which has
  // arguments for them.
  Region *first = nullptr;
  for (Region &region : (*this)->getRegions())
    if (!region.empty() && !first)
      first = &region;
  printCaptures(printer, getCaptures(), first);
  auto region = [&](unsigned index) {
    printScalarRegion(printer, kRegionNames[index], (*this)->getRegion(index),
                      first, getCaptures().size());
  };
  region(0);
  region(1);
  if (ScoreAttrInterface score = getScoreAttrAttr())
    printer << " score(" << score << ')';
  region(2);
  if (ArrayAttr masks = getMasksAttr()) {
    printer << " mask(";
    llvm::interleaveComma(masks, printer);
    printer << ')';
  }
  region(3);
  if (getSplitAttr())
    printer << " split(" << getSplitAttr() << ')';
  if (getBoundsAttr())
    printer << " bounds(" << getBoundsAttr() << ')';
  if (getSchedulesAttr())
    printer << " schedules(" << getSchedulesAttr() << ')';
  if (!getOuts().empty())
    printer << " outs(" << getOuts() << " : " << getOuts().getTypes() << ')';
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getScaleAttrName(), getNormaliserAttrName(),
                                 getScoreAttrAttrName(), getMasksAttrName(),
                                 getSplitAttrName(), getBoundsAttrName(),
                                 getSchedulesAttrName(), getPairingAttrName(),
                                 getOperandSegmentSizesAttrName()});
  printer << " : " << getQuery().getType();
  if (getQueryTail())
    printer << ", " << getQueryTail().getType();
  printer << " over " << getView().getType();
  if (!getResults().empty())
    printer << " -> " << getResultTypes();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

bool AttentionOp::returnsState() {
  return getNumResults() == 1 && isa<StateType>(getResult(0).getType());
}

static LogicalResult verifyVector(AttentionOp op, StringRef name, Value value,
                                  StringRef id) {
  auto type = cast<ShapedType>(value.getType());
  if (type.hasRank() && type.getRank() == 1)
    return success();
  return op.emitOpError("expected operand '")
         << name << "' to be of rank 1, but got " << type << " [" << id << "]";
}

static bool sizeFits(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

/// ATT6 and ATT17: one output, or an output and a statistic.
static LogicalResult verifyOutputs(AttentionOp op, TypeRange types,
                                   StringRef what) {
  if (types.empty() || types.size() > 2)
    return op.emitOpError("expected 1 ")
           << what << " (output) or 2 (output, statistic), but got "
           << types.size() << " [ATT6]";
  ShapedType query = op.getQueryType();
  auto output = dyn_cast<ShapedType>(types[0]);
  int64_t dim = op.getViewType().getValueDim();
  if (!output || !output.hasRank() || output.getRank() != 3 ||
      !sizeFits(output.getDimSize(0), query.getDimSize(0)) ||
      output.getDimSize(1) != query.getDimSize(1) ||
      output.getDimSize(2) != dim ||
      !isa<Float32Type, Float16Type, BFloat16Type>(output.getElementType()))
    return op.emitOpError("expected ")
           << what << " 'output' to be [rows, " << query.getDimSize(1) << ", "
           << dim << "] of f32, f16 or bf16, but got " << types[0] << " [ATT6]";
  if (types.size() == 1)
    return success();
  auto statistic = dyn_cast<ShapedType>(types[1]);
  if (!statistic || !statistic.hasRank() || statistic.getRank() != 2 ||
      !sizeFits(statistic.getDimSize(0), query.getDimSize(0)) ||
      statistic.getDimSize(1) != query.getDimSize(1) ||
      !statistic.getElementType().isF32())
    return op.emitOpError("expected ")
           << what << " 'statistic' to be [rows, " << query.getDimSize(1)
           << "] of f32, but got " << types[1] << " [ATT6]";
  return success();
}

LogicalResult AttentionOp::verify() {
  KVViewTypeInterface view = getViewType();
  ShapedType query = getQueryType();
  if (!query.hasRank() || query.getRank() != 3 || query.isDynamicDim(1) ||
      query.isDynamicDim(2))
    return emitOpError("expected operand 'query' to be [rows, heads, dim] with "
                       "heads and dim known, but got ")
           << query << " [ATT1]";
  if (query.getDimSize(1) == 0 || query.getDimSize(1) % view.getKVHeads() != 0)
    return emitOpError(
               "expected the number of query heads to be a multiple of ")
           << view.getKVHeads() << " KV heads, but got " << query.getDimSize(1)
           << " [ATT3]";
  int64_t tail = getQueryTail() ? view.getTailDim() : 0;
  if (query.getDimSize(2) != view.getKeyDim() - tail)
    return emitOpError("expected head dim of operand 'query' to be that of the "
                       "view's keys, ")
           << view.getKeyDim() - tail << (tail ? " without their tails" : "")
           << ", but got " << query.getDimSize(2) << " [ATT4]";
  if (getQueryTail()) {
    if (tail == 0)
      return emitOpError("expected no second query operand over a view whose "
                         "keys have no tail, but got ")
             << getQueryTail().getType() << " [ATT23]";
    auto type = cast<ShapedType>(getQueryTail().getType());
    if (type.getElementType() != query.getElementType() ||
        !shapeFits(type.getShape(),
                   {query.getDimSize(0), query.getDimSize(1), tail}) ||
        type.isDynamicDim(1) || type.isDynamicDim(2) ||
        isa<MemRefType>(type) != isa<MemRefType>(query))
      return emitOpError("expected the second query operand to be like the "
                         "first, of ")
             << shapeText({query.getDimSize(0), query.getDimSize(1), tail})
             << " x " << query.getElementType() << ", but got " << type
             << " [ATT23]";
  }
  if (static_cast<bool>(getScaleAttr()) == static_cast<bool>(getScaleValue()))
    return emitOpError("expected 'scale' as a number or as a value [ATT5]");
  if (getRows() && failed(verifyVector(*this, "rows", getRows(), "ATT7")))
    return failure();
  if (getPositions() &&
      failed(verifyVector(*this, "positions", getPositions(), "ATT7")))
    return failure();

  if (returnsState()) {
    auto state = cast<StateType>(getResult(0).getType());
    if (!sizeFits(state.getRows(), query.getDimSize(0)) ||
        state.getHeads() != query.getDimSize(1) ||
        state.getDim() != view.getValueDim() ||
        state.getNormaliser() != getNormaliser())
      return emitOpError("expected a state of ")
             << query.getDimSize(1) << "x" << view.getValueDim() << " by "
             << getNormaliser() << ", but got " << state << " [ATT6]";
    if (getSink())
      return emitOpError("expected no operand 'sink' where the result is a "
                         "state: give it to fi.finalize [ATT9]");
    if (state.getSegmented() != static_cast<bool>(getSegments()))
      return emitOpError("expected operand 'segments' exactly with a segmented "
                         "state [ATT8]");
    if (!getOuts().empty())
      return emitOpError("expected no 'outs' where the result is a state "
                         "[ATT17]");
  } else {
    if (getSegments())
      return emitOpError("expected operand 'segments' exactly with a segmented "
                         "state [ATT8]");
    bool places = isa<MemRefType>(query);
    if (places && getNumResults() != 0)
      return emitOpError(
                 "expected results in 'outs' where operand 'query' is a "
                 "memref, but got ")
             << getNumResults() << " results [ATT17]";
    if (!places && !getOuts().empty() &&
        getOuts().getTypes() != getResultTypes())
      return emitOpError("expected 'outs' to be a tensor of the type of each "
                         "result where operand 'query' is a tensor, (")
             << getResultTypes() << "), but got (" << getOuts().getTypes()
             << ") [ATT17]";
    if (failed(verifyOutputs(*this,
                             places ? TypeRange(getOuts().getTypes())
                                    : TypeRange(getResultTypes()),
                             places ? "destination" : "result")))
      return failure();
    if (places)
      for (Value out : getOuts())
        if (!isa<MemRefType>(out.getType()))
          return emitOpError("expected 'outs' to be memrefs, but got ")
                 << out.getType() << " [ATT17]";
  }
  if (getSink()) {
    auto sink = cast<ShapedType>(getSink().getType());
    if (!getNormaliser().canSink())
      return emitOpError("expected a normaliser that takes a sink, but got ")
             << getNormaliser() << " [ATT10]";
    if (sink.getRank() != 1 ||
        !sizeFits(sink.getDimSize(0), query.getDimSize(1)))
      return emitOpError(
                 "expected operand 'sink' to have one logit for each of ")
             << query.getDimSize(1) << " query heads, but got " << sink
             << " [ATT10]";
  }
  if (ArrayAttr masks = getMasksAttr())
    for (Attribute mask : masks)
      if (!isa<MaskAttrInterface>(mask))
        return emitOpError("expected mask attributes, but got ")
               << mask << " [ATT15]";
  if (getScoreAttrAttr() && !getScoreRegion().empty())
    return emitOpError("expected 'score' as an attribute or as a region, but "
                       "got both [ATT16]");
  bool transforms = !getQueryRegion().empty() || !getKeyRegion().empty();
  if (transforms != getPairing().has_value())
    return emitOpError("expected 'pair' exactly with a region 'query' or 'key' "
                       "[ATT19]");
  if (transforms && view.getTailDim())
    return emitOpError("expected no region 'query' or 'key' over a view whose "
                       "keys have tails: transform queries and keys before "
                       "[ATT24]");
  if (getSplitAttr() && !getNormaliser().canMerge())
    return emitOpError(
               "expected a normaliser that can be merged where keys are "
               "split, but got ")
           << getNormaliser() << " [ATT18]";
  return success();
}

LogicalResult AttentionOp::verifyRegions() {
  Type f32 = Float32Type::get(getContext());
  Type i1 = IntegerType::get(getContext(), 1);
  for (unsigned index = 0; index < 4; ++index) {
    Region &region = (*this)->getRegion(index);
    SmallVector<Type> yielded = index < 2    ? SmallVector<Type>{f32, f32}
                                : index == 2 ? SmallVector<Type>{f32}
                                             : SmallVector<Type>{i1};
    if (!region.empty() &&
        failed(verifyScalarRegion(*this, region, kRegionNames[index],
                                  regionArgumentTypes(getContext(), index),
                                  getCaptures().getTypes(), yielded)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // Reads memory that no value stands for: an append through another view of
  // the pool must not be crossed. See fi.append.
  effects.emplace_back(MemoryEffects::Read::get());
  if (isa<MemRefType>(getQuery().getType()) && !getOuts().empty())
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  if (getNumResults() == 0 || returnsState())
    return failure();
  for (Value result : getResults()) {
    SmallVector<OpFoldResult> dims;
    for (auto [index, size] :
         llvm::enumerate(cast<RankedTensorType>(result.getType()).getShape())) {
      if (ShapedType::isDynamic(size))
        dims.push_back(
            tensor::DimOp::create(b, getLoc(), getQuery(), index).getResult());
      else
        dims.push_back(b.getIndexAttr(size));
    }
    shapes.push_back(std::move(dims));
  }
  return success();
}

FailureOr<OpFoldResult> fi::getStateRows(OpBuilder &b, Location loc,
                                         Value state) {
  while (true) {
    int64_t rows = cast<StateType>(state.getType()).getRows();
    if (!ShapedType::isDynamic(rows))
      return OpFoldResult(b.getIndexAttr(rows));
    Operation *maker = state.getDefiningOp();
    if (auto attention = dyn_cast_or_null<AttentionOp>(maker)) {
      Value query = attention.getQuery();
      if (isa<MemRefType>(query.getType()))
        return OpFoldResult(
            memref::DimOp::create(b, loc, query, 0).getResult());
      return OpFoldResult(tensor::DimOp::create(b, loc, query, 0).getResult());
    }
    if (auto empty = dyn_cast_or_null<EmptyOp>(maker))
      return OpFoldResult(empty.getRows());
    if (!isa_and_nonnull<MergeOp, MergeSegmentsOp>(maker))
      return failure();
    state = maker->getOperand(0);
  }
}
