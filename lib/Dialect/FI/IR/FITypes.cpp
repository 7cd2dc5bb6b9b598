//===- FITypes.cpp - types of the fi dialect ------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling and checks of the KV views and states, and the address arithmetic of
// each layout.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;

#define GET_TYPEDEF_CLASSES
#include "fi/Dialect/FI/IR/FITypes.cpp.inc"

void FIDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fi/Dialect/FI/IR/FITypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Checks and spelling shared by the views
//===----------------------------------------------------------------------===//

static bool isElement(Type type) {
  return isa<Float32Type, Float16Type, BFloat16Type>(type);
}

/// KV1 to KV4.
static LogicalResult
verifyKV(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t heads,
         int64_t dim, int64_t valueDim, Type element, Type valueElement,
         Type index) {
  if (heads <= 0)
    return emitError() << "expected at least 1 head, but got " << heads
                       << " [KV1]";
  for (auto [what, size] :
       {std::pair("keys", dim), std::pair("values", valueDim)})
    if (size <= 0 || size % 8 != 0 || size > kMaxHeadDim)
      return emitError() << "expected head dim of " << what
                         << " to be a multiple of 8 up to " << kMaxHeadDim
                         << ", but got " << size << " [KV2]";
  for (Type type : {element, valueElement})
    if (!isElement(type))
      return emitError() << "expected elements of type f32, f16 or bf16, but "
                            "got "
                         << type << " [KV3]";
  if (!index.isSignlessInteger(32) && !index.isSignlessInteger(64))
    return emitError() << "expected tables of i32 or i64, but got " << index
                       << " [KV4]";
  return success();
}

namespace {
/// The options that views share, in their order.
struct ViewOptions {
  std::optional<HeadOrder> order;
  int64_t valueDim = 0;
  Type valueElement, index;
  bool dense = false, fused = false;
};
} // namespace

/// Parses `, NHD|HND` and the options, up to `>`.
static ParseResult parseViewOptions(AsmParser &parser, ViewOptions &options,
                                    bool paged) {
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return failure();
    if (std::optional<HeadOrder> order = symbolizeHeadOrder(keyword)) {
      options.order = *order;
    } else if (keyword == "vo") {
      if (parser.parseEqual() || parser.parseInteger(options.valueDim))
        return failure();
    } else if (keyword == "v") {
      if (parser.parseEqual() || parser.parseType(options.valueElement))
        return failure();
    } else if (keyword == "index") {
      if (parser.parseEqual() || parser.parseType(options.index))
        return failure();
    } else if (paged && keyword == "table") {
      if (parser.parseEqual() || parser.parseKeyword("dense"))
        return failure();
      options.dense = true;
    } else if (paged && keyword == "fused") {
      options.fused = true;
    } else {
      auto diag = parser.emitError(loc, "expected one of NHD, HND, 'vo = ', "
                                        "'v = ', 'index = '");
      if (paged)
        diag << ", 'table = dense', 'fused'";
      return diag << ", but got '" << keyword << "'";
    }
  }
  return success();
}

static void printViewOptions(AsmPrinter &printer, int64_t dim, int64_t valueDim,
                             Type element, Type valueElement, Type index) {
  if (valueDim != dim)
    printer << ", vo = " << valueDim;
  if (valueElement != element)
    printer << ", v = " << valueElement;
  if (!index.isInteger(32))
    printer << ", index = " << index;
}

static Value mul(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::MulIOp::create(b, loc, x, y);
}
static Value add(OpBuilder &b, Location loc, Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}

//===----------------------------------------------------------------------===//
// PagedKVType
//===----------------------------------------------------------------------===//

Type PagedKVType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  ViewOptions options;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/true) ||
      parser.parseType(element) ||
      parseViewOptions(parser, options, /*paged=*/true) ||
      parser.parseGreater())
    return {};
  if (dims.size() != 3) {
    parser.emitError(loc, "expected page x heads x dim x element, but got ")
        << dims.size() << " sizes";
    return {};
  }
  if (!options.order) {
    parser.emitError(loc, "expected the order of a page, NHD or HND");
    return {};
  }
  MLIRContext *context = parser.getContext();
  return parser.getChecked<PagedKVType>(
      loc, context, dims[0], dims[1], dims[2],
      options.valueDim ? options.valueDim : dims[2], element,
      options.valueElement ? options.valueElement : element, *options.order,
      options.index ? options.index : IntegerType::get(context, 32),
      options.dense, options.fused);
}

void PagedKVType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList({getPage(), getHeads(), getDim()});
  printer << "x" << getElement() << ", " << stringifyHeadOrder(getOrder());
  printViewOptions(printer, getDim(), getValueDimension(), getElement(),
                   getValueElement(), getIndex());
  if (getDense())
    printer << ", table = dense";
  if (getFused())
    printer << ", fused";
  printer << ">";
}

LogicalResult
PagedKVType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    int64_t page, int64_t heads, int64_t dim, int64_t valueDim,
                    Type element, Type valueElement, HeadOrder order,
                    Type index, bool dense, bool fused) {
  if (page != ShapedType::kDynamic && page <= 0)
    return emitError() << "expected a page size of at least 1 or ?, but got "
                       << page << " [KV1]";
  if (failed(verifyKV(emitError, heads, dim, valueDim, element, valueElement,
                      index)))
    return failure();
  if (fused && (dim != valueDim || element != valueElement))
    return emitError() << "expected a fused pool to have keys and values of "
                          "one dim and element, but got "
                       << dim << "x" << element << " and " << valueDim << "x"
                       << valueElement << " [KV1]";
  return success();
}

int64_t PagedKVType::getKVHeads() const { return getHeads(); }
int64_t PagedKVType::getKeyDim() const { return getDim(); }
int64_t PagedKVType::getValueDim() const { return getValueDimension(); }
Type PagedKVType::getKeyType() const { return getElement(); }
Type PagedKVType::getValueType() const { return getValueElement(); }
Type PagedKVType::getIndexType() const { return getIndex(); }
int64_t PagedKVType::getPageSize() const { return getPage(); }

Value PagedKVType::getKeyStride(ArrayRef<Value> strides) const {
  // [pages, (2,) tokens, heads, dim] or [pages, (2,) heads, tokens, dim].
  unsigned inner = getFused() ? 2 : 1;
  return strides[getOrder() == HeadOrder::NHD ? inner : inner + 1];
}

Value PagedKVType::buildRowOffset(OpBuilder &b, Location loc,
                                  const KVRowAddress &a) const {
  Value entry = add(b, loc, a.tableBegin,
                    arith::DivUIOp::create(b, loc, a.key, a.pageSize));
  Value slot = arith::RemUIOp::create(b, loc, a.key, a.pageSize);
  unsigned inner = getFused() ? 2 : 1;
  bool nhd = getOrder() == HeadOrder::NHD;
  Value slotStride = getKeyStride(a.strides);
  Value headStride = a.strides[nhd ? inner + 1 : inner];
  Value offset = mul(b, loc, a.lookup(entry), a.strides[0]);
  offset = add(b, loc, offset, mul(b, loc, slot, slotStride));
  offset = add(b, loc, offset, mul(b, loc, a.head, headStride));
  if (getFused() && a.wantValues)
    offset = add(b, loc, offset, a.strides[1]);
  return offset;
}

void PagedKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  Builder b(getContext());
  e.push_back(b.getNamedAttr("kind", b.getStringAttr("paged")));
  e.push_back(
      b.getNamedAttr("order", b.getStringAttr(stringifyHeadOrder(getOrder()))));
  e.push_back(b.getNamedAttr("page", getPage() == ShapedType::kDynamic
                                         ? Attribute(b.getUnitAttr())
                                         : b.getI64IntegerAttr(getPage())));
  e.push_back(b.getNamedAttr("heads", b.getI64IntegerAttr(getHeads())));
  e.push_back(b.getNamedAttr("fused", b.getBoolAttr(getFused())));
}

//===----------------------------------------------------------------------===//
// RaggedKVType
//===----------------------------------------------------------------------===//

Type RaggedKVType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  ViewOptions options;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false) ||
      parser.parseType(element) ||
      parseViewOptions(parser, options, /*paged=*/false) ||
      parser.parseGreater())
    return {};
  if (dims.size() != 2) {
    parser.emitError(loc, "expected heads x dim x element, but got ")
        << dims.size() << " sizes";
    return {};
  }
  MLIRContext *context = parser.getContext();
  return parser.getChecked<RaggedKVType>(
      loc, context, dims[0], dims[1],
      options.valueDim ? options.valueDim : dims[1], element,
      options.valueElement ? options.valueElement : element,
      options.order.value_or(HeadOrder::NHD),
      options.index ? options.index : IntegerType::get(context, 32));
}

void RaggedKVType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList({getHeads(), getDim()});
  printer << "x" << getElement();
  if (getOrder() == HeadOrder::HND)
    printer << ", HND";
  printViewOptions(printer, getDim(), getValueDimension(), getElement(),
                   getValueElement(), getIndex());
  printer << ">";
}

LogicalResult
RaggedKVType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t heads, int64_t dim, int64_t valueDim, Type element,
                     Type valueElement, HeadOrder order, Type index) {
  return verifyKV(emitError, heads, dim, valueDim, element, valueElement,
                  index);
}

int64_t RaggedKVType::getKVHeads() const { return getHeads(); }
int64_t RaggedKVType::getKeyDim() const { return getDim(); }
int64_t RaggedKVType::getValueDim() const { return getValueDimension(); }
Type RaggedKVType::getKeyType() const { return getElement(); }
Type RaggedKVType::getValueType() const { return getValueElement(); }
Type RaggedKVType::getIndexType() const { return getIndex(); }
int64_t RaggedKVType::getPageSize() const { return 0; }

Value RaggedKVType::getKeyStride(ArrayRef<Value> strides) const {
  return strides[getOrder() == HeadOrder::NHD ? 0 : 1];
}

Value RaggedKVType::buildRowOffset(OpBuilder &b, Location loc,
                                   const KVRowAddress &a) const {
  bool nhd = getOrder() == HeadOrder::NHD;
  Value row = add(b, loc, a.tableBegin, a.key);
  return add(b, loc, mul(b, loc, row, getKeyStride(a.strides)),
             mul(b, loc, a.head, a.strides[nhd ? 1 : 0]));
}

void RaggedKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  Builder b(getContext());
  e.push_back(b.getNamedAttr("kind", b.getStringAttr("ragged")));
  e.push_back(
      b.getNamedAttr("order", b.getStringAttr(stringifyHeadOrder(getOrder()))));
  e.push_back(b.getNamedAttr("heads", b.getI64IntegerAttr(getHeads())));
}

//===----------------------------------------------------------------------===//
// StateType
//===----------------------------------------------------------------------===//

Type StateType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  NormaliserAttrInterface normaliser;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/true) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.parseAttribute(normaliser))
    return {};
  bool segmented = false;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("segmented"))
      return {};
    segmented = true;
  }
  if (parser.parseGreater())
    return {};
  if (dims.size() != 3) {
    parser.emitError(loc, "expected rows x heads x dim x element, but got ")
        << dims.size() << " sizes";
    return {};
  }
  return parser.getChecked<StateType>(loc, parser.getContext(), dims[0],
                                      dims[1], dims[2], element, normaliser,
                                      segmented);
}

void StateType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList({getRows(), getHeads(), getDim()});
  printer << "x" << getElement() << ", " << getNormaliser();
  if (getSegmented())
    printer << ", segmented";
  printer << ">";
}

LogicalResult
StateType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                  int64_t rows, int64_t heads, int64_t dim, Type element,
                  NormaliserAttrInterface normaliser, bool segmented) {
  if (!element.isF32())
    return emitError() << "expected a state of f32, but got " << element
                       << " [ST1]";
  if ((rows < 0 && rows != ShapedType::kDynamic) || heads <= 0)
    return emitError() << "expected at least 1 head, but got " << heads
                       << " [ST2]";
  if (dim <= 0 || dim % 8 != 0 || dim > kMaxHeadDim)
    return emitError() << "expected head dim of a state to be a multiple of 8 "
                          "up to "
                       << kMaxHeadDim << ", but got " << dim << " [ST3]";
  if (segmented && !normaliser.canMerge())
    return emitError() << "expected a normaliser that can be merged for a "
                          "segmented state, but got "
                       << normaliser << " [ST4]";
  return success();
}
