//===- ScalarRegions.cpp - regions of scalars in ops of fi ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarRegions.h"

using namespace mlir;
using namespace fi;

//===----------------------------------------------------------------------===//
// Clauses
//===----------------------------------------------------------------------===//

ParseResult fi::parseTypedClause(OpAsmParser &parser, StringRef keyword,
                                 Clause &clause) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return failure(parser.parseLParen() ||
                 parser.parseOperand(clause.operands.emplace_back()) ||
                 parser.parseColonType(clause.types.emplace_back()) ||
                 parser.parseRParen());
}

ParseResult fi::parseCaptures(OpAsmParser &parser, Clause &clause,
                              ArgumentList &bindings) {
  if (failed(parser.parseOptionalKeyword("captures")))
    return success();
  return parser.parseCommaSeparatedList(
      OpAsmParser::Delimiter::Paren, [&]() -> ParseResult {
        OpAsmParser::Argument &binding = bindings.emplace_back();
        if (parser.parseArgument(binding) || parser.parseEqual() ||
            parser.parseOperand(clause.operands.emplace_back()) ||
            parser.parseColonType(clause.types.emplace_back()))
          return failure();
        binding.type = clause.types.back();
        return success();
      });
}

ParseResult fi::parsePairing(OpAsmParser &parser, OperationState &result,
                             StringAttr name) {
  if (failed(parser.parseOptionalKeyword("pair")))
    return success();
  SMLoc loc;
  StringRef text;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) ||
      parser.parseKeyword(&text) || parser.parseGreater())
    return failure();
  std::optional<Pairing> pairing = symbolizePairing(text);
  if (!pairing)
    return parser.emitError(loc, "expected 'half' or 'interleaved', but got '")
           << text << "'";
  result.addAttribute(name, PairingAttr::get(parser.getContext(), *pairing));
  return success();
}

ParseResult fi::parsePairClauses(OpAsmParser &parser, OperationState &result,
                                 PairNames names, Clause &captures,
                                 ArgumentList &bindings) {
  if (parsePairing(parser, result, names.pairing))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("dims"))) {
    int64_t dims;
    if (parser.parseLParen() || parser.parseInteger(dims) ||
        parser.parseRParen())
      return failure();
    result.addAttribute(names.dims,
                        parser.getBuilder().getI64IntegerAttr(dims));
  }
  return parseCaptures(parser, captures, bindings);
}

ParseResult fi::parseScalarRegion(OpAsmParser &parser, Region &region,
                                  ArrayRef<OpAsmParser::Argument> bindings) {
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::None,
                               /*allowType=*/true) ||
      parser.parseRParen())
    return failure();
  llvm::append_range(arguments, bindings);
  return parser.parseRegion(region, arguments, /*enableNameShadowing=*/true);
}

ParseResult fi::parseTransform(OpAsmParser &parser, Region &region,
                               ArrayRef<OpAsmParser::Argument> bindings,
                               TransformSpelling &spelling) {
  spelling.loc = parser.getCurrentLocation();
  OptionalParseResult parsed = parser.parseOptionalAttribute(spelling.attr);
  if (!parsed.has_value())
    return parseScalarRegion(parser, region, bindings);
  if (failed(*parsed))
    return failure();
  if (!isa<TransformAttrInterface>(spelling.attr))
    return parser.emitError(spelling.loc,
                            "expected an attribute that transforms pairs, such "
                            "as #fi.rotary<10000.0>, but got ")
           << spelling.attr << " [ROT8]";
  return parser.parseRParen();
}

ParseResult TransformSpelling::build(OpAsmParser &parser, Region &region,
                                     TypeRange captures, int64_t dims) const {
  if (!attr)
    return success();
  // Pairs that no op takes are refused by it; this needs some number.
  dims = std::max<int64_t>(dims, 2);
  OpBuilder b(parser.getContext());
  Location location = parser.getEncodedSourceLoc(loc);
  SmallVector<Type> types =
      AttentionOp::getTransformArgumentTypes(b.getContext());
  size_t own = types.size();
  llvm::append_range(types, captures);
  Block *block = b.createBlock(&region, {}, types,
                               SmallVector<Location>(types.size(), location));
  SmallVector<Value> made = cast<TransformAttrInterface>(attr).buildTransform(
      b, location, ValueRange(block->getArguments()).take_front(own), dims);
  fi::YieldOp::create(b, location, made);
  return success();
}

ParseResult fi::parseDestinations(OpAsmParser &parser, Clause &outs) {
  if (failed(parser.parseOptionalKeyword("outs")))
    return success();
  return failure(parser.parseLParen() ||
                 parser.parseOperandList(outs.operands) ||
                 parser.parseColonTypeList(outs.types) || parser.parseRParen());
}

void fi::printDestinations(OpAsmPrinter &printer, ValueRange outs) {
  if (outs.empty())
    return;
  printer << " outs(" << outs << " : " << outs.getTypes() << ')';
}

void fi::printCaptures(OpAsmPrinter &printer, ValueRange captures,
                       Region *first) {
  if (captures.empty() || !first)
    return;
  printer << " captures(";
  unsigned base = first->getNumArguments() - captures.size();
  llvm::interleaveComma(llvm::enumerate(captures), printer, [&](auto it) {
    printer << first->getArgument(base + it.index()) << " = " << it.value()
            << " : " << it.value().getType();
  });
  printer << ')';
}

void fi::printScalarRegion(OpAsmPrinter &printer, StringRef keyword,
                           Region &region, Region *first, size_t captures) {
  if (region.empty())
    return;
  printer << ' ' << keyword << '(';
  unsigned own = region.getNumArguments() - captures;
  llvm::interleaveComma(
      region.getArguments().take_front(own), printer,
      [&](BlockArgument a) { printer << a << ": " << a.getType(); });
  printer << ") ";
  if (first && first != &region && first->getNumArguments() >= captures) {
    SmallVector<Value> names(region.getArguments().take_front(own).begin(),
                             region.getArguments().take_front(own).end());
    llvm::append_range(names, first->getArguments().take_back(captures));
    printer.shadowRegionArgs(region, names);
  }
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

void fi::nameTransformArguments(Region &region, OpAsmSetValueNameFn setName) {
  static constexpr StringLiteral names[] = {"x",   "y",    "pair",
                                            "req", "head", "pos"};
  for (auto [i, argument] : llvm::enumerate(region.getArguments()))
    setName(argument, i < std::size(names)
                          ? std::string(names[i])
                          : "c" + std::to_string(i - std::size(names)));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// ATT13: what may stand in a region.
static bool isAllowedInRegion(Operation *op) {
  if (isa<fi::LoadOp, fi::YieldOp>(op))
    return true;
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "arith" || dialect == "math" || dialect == "index")
    return true;
  StringRef name = op->getName().getStringRef();
  return name == "scf.if" || name == "scf.yield";
}

static std::string listOf(TypeRange types) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(types, stream);
  return text;
}

LogicalResult fi::verifyScalarRegion(Operation *op, Region &region,
                                     StringRef name, TypeRange arguments,
                                     TypeRange captures, TypeRange results) {
  if (!region.hasOneBlock())
    return op->emitOpError("expected region '")
           << name << "' to have one block, but got "
           << region.getBlocks().size() << " [ATT11]";
  SmallVector<Type> wanted(arguments);
  llvm::append_range(wanted, captures);
  Block &block = region.front();
  if (TypeRange(block.getArgumentTypes()) != TypeRange(wanted))
    return op->emitOpError("expected region '")
           << name << "' to take (" << listOf(wanted) << "), but got ("
           << listOf(block.getArgumentTypes()) << ") [ATT11]";
  auto yield =
      block.empty() ? fi::YieldOp() : dyn_cast<fi::YieldOp>(block.back());
  if (!yield || TypeRange(yield.getOperandTypes()) != results)
    return op->emitOpError("expected region '")
           << name << "' to yield (" << listOf(results) << ") [ATT12]";
  WalkResult walk = region.walk([&](Operation *inner) {
    if (isAllowedInRegion(inner))
      return WalkResult::advance();
    inner->emitOpError("expected only arith, math, index, scf.if and fi.load "
                       "in region '")
        << name << "' of " << op->getName() << " [ATT13]";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult fi::verifyTransform(Operation *op, Region &region, StringRef name,
                                  TypeRange captures) {
  MLIRContext *context = op->getContext();
  Type f32 = Float32Type::get(context);
  return verifyScalarRegion(op, region, name,
                            AttentionOp::getTransformArgumentTypes(context),
                            captures, {f32, f32});
}

LogicalResult fi::verifyPairedDims(Operation *op, std::optional<int64_t> dims,
                                   int64_t dim, StringRef rule) {
  int64_t paired = dims.value_or(dim);
  if (paired < 16 || paired % 16 != 0 || paired > dim)
    return op->emitOpError("expected a multiple of 16 of at most ")
           << dim << " elements in pairs, but got " << paired
           << (dims ? "" : "; say how many by 'dims'") << " [" << rule << "]";
  return success();
}
