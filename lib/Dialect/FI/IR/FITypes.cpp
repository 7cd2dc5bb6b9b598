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

/// Latents and tails share scales, which blocks of columns could not.
static bool isElement(Type type, bool takesBlocks) {
  return isa<Float32Type, Float16Type, BFloat16Type, ScaledType>(type) ||
         (takesBlocks && isa<BlockScaledType>(type));
}

/// What a pool holds of elements of that type.
static Type storedAs(Type element) {
  if (auto scaled = dyn_cast<ScaledType>(element))
    return scaled.getStorage();
  if (auto scaled = dyn_cast<BlockScaledType>(element))
    return scaled.getStorage();
  return element;
}

/// KV1 to KV4.
static LogicalResult
verifyKV(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t heads,
         int64_t dim, int64_t valueDim, Type element, Type valueElement,
         Type index, bool takesBlocks = true) {
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
    if (!isElement(type, takesBlocks))
      return emitError() << "expected elements of type f32, f16"
                         << (takesBlocks
                                 ? ", bf16, !fi.scaled or !fi.block_scaled"
                                 : ", bf16 or !fi.scaled")
                         << ", but got " << type << " [KV3]";
  for (auto [what, size, type] : {std::tuple("keys", dim, element),
                                  std::tuple("values", valueDim, valueElement)})
    if (auto blocks = dyn_cast<BlockScaledType>(type);
        blocks && size % blocks.getBlock() != 0)
      return emitError() << "expected head dim of " << what
                         << " to be a multiple of the " << blocks.getBlock()
                         << " columns that share a scale, but got " << size
                         << " [QNT11]";
  if (!index.isSignlessInteger(32) && !index.isSignlessInteger(64))
    return emitError() << "expected tables of i32 or i64, but got " << index
                       << " [KV4]";
  return success();
}

/// QNT3, and what views have in common.
static LogicalResult
verifyTokens(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t heads,
             int64_t dim, int64_t valueDim, Type element, Type valueElement,
             Type index) {
  for (Type type : {element, valueElement})
    if (auto scaled = dyn_cast<ScaledType>(type);
        scaled && scaled.getGranularity() == Granularity::Page)
      return emitError() << "expected scales per tensor, head or token where "
                            "there are no pages, but got "
                         << type << " [QNT3]";
  return verifyKV(emitError, heads, dim, valueDim, element, valueElement,
                  index);
}

namespace {
/// The options that views share, in their order.
struct ViewOptions {
  std::optional<HeadOrder> order;
  int64_t valueDim = 0;
  Type valueElement, index;
  bool dense = false, fused = false, twoTables = false;
  /// Of a block; 0 where not said.
  int64_t rows = 0;
};

/// What a view has options for.
enum class ViewForm { Paged, Ragged, Bsr };
} // namespace

/// Parses `, NHD|HND` and the options, up to `>`.
static ParseResult parseViewOptions(AsmParser &parser, ViewOptions &options,
                                    ViewForm form) {
  bool paged = form == ViewForm::Paged;
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
    } else if (paged && keyword == "two_tables") {
      options.twoTables = true;
    } else if (form == ViewForm::Bsr && keyword == "rows") {
      if (parser.parseEqual() || parser.parseInteger(options.rows))
        return failure();
    } else {
      auto diag = parser.emitError(loc, "expected one of NHD, HND, 'vo = ', "
                                        "'v = ', 'index = '");
      if (paged)
        diag << ", 'table = dense', 'fused', 'two_tables'";
      if (form == ViewForm::Bsr)
        diag << ", 'rows = '";
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
// ScaledType
//===----------------------------------------------------------------------===//

Type ScaledType::parse(AsmParser &parser) {
  Type storage, by;
  StringRef granularity;
  SMLoc loc = parser.getCurrentLocation(), granularityLoc;
  if (parser.parseLess() || parser.parseType(storage) || parser.parseComma() ||
      parser.parseKeyword("per") || parser.parseEqual() ||
      parser.getCurrentLocation(&granularityLoc) ||
      parser.parseKeyword(&granularity) || parser.parseComma() ||
      parser.parseKeyword("by") || parser.parseEqual() ||
      parser.parseType(by) || parser.parseGreater())
    return {};
  std::optional<Granularity> per = symbolizeGranularity(granularity);
  if (!per) {
    parser.emitError(granularityLoc,
                     "expected one of tensor, head, page, token, but got '")
        << granularity << "'";
    return {};
  }
  return parser.getChecked<ScaledType>(loc, parser.getContext(), storage, *per,
                                       by);
}

void ScaledType::print(AsmPrinter &printer) const {
  printer << '<' << getStorage()
          << ", per = " << stringifyGranularity(getGranularity())
          << ", by = " << getBy() << '>';
}

LogicalResult
ScaledType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   Type storage, Granularity, Type by) {
  if (!isByteCode(storage))
    return emitError() << "expected a storage type of f8E4M3FN, f8E5M2 or i8, "
                          "but got "
                       << storage << " [QNT1]";
  if (!by.isF32())
    return emitError() << "expected scales of f32, but got " << by << " [QNT2]";
  return success();
}

//===----------------------------------------------------------------------===//
// BlockScaledType
//===----------------------------------------------------------------------===//

Type BlockScaledType::parse(AsmParser &parser) {
  Type storage, by;
  int64_t block;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(storage) || parser.parseComma() ||
      parser.parseInteger(block) || parser.parseComma() || parser.parseType(by))
    return {};
  Granularity granularity = Granularity::Tensor;
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    SMLoc keywordLoc;
    if (parser.parseKeyword("per") || parser.parseEqual() ||
        parser.getCurrentLocation(&keywordLoc) || parser.parseKeyword(&keyword))
      return {};
    std::optional<Granularity> per = symbolizeGranularity(keyword);
    if (!per) {
      parser.emitError(keywordLoc, "expected one of tensor, head, but got '")
          << keyword << "'";
      return {};
    }
    granularity = *per;
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<BlockScaledType>(loc, parser.getContext(), storage,
                                            block, by, granularity);
}

void BlockScaledType::print(AsmPrinter &printer) const {
  printer << '<' << getStorage() << ", " << getBlock() << ", " << getBy();
  if (getGranularity() != Granularity::Tensor)
    printer << ", per = " << stringifyGranularity(getGranularity());
  printer << '>';
}

LogicalResult
BlockScaledType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                        Type storage, int64_t block, Type by,
                        Granularity granularity) {
  bool isNVFP4 = isa<Float8E4M3FNType>(by) && block == 16;
  bool isMXFP4 = isa<Float8E8M0FNUType>(by) && block == 32;
  if (!isa<Float4E2M1FNType>(storage) || (!isNVFP4 && !isMXFP4))
    return emitError() << "expected f4E2M1FN in blocks of 16 with scales of "
                          "f8E4M3FN, or of 32 with scales of f8E8M0FNU, but "
                          "got "
                       << storage << " in blocks of " << block
                       << " with scales of " << by << " [QNT9]";
  if (granularity != Granularity::Tensor &&
      (granularity != Granularity::Head || !isNVFP4))
    return emitError() << "expected 'per = head', of scales of f8E4M3FN, or "
                          "nothing, but got 'per = "
                       << stringifyGranularity(granularity)
                       << "' with scales of " << by << " [QNT10]";
  return success();
}

bool BlockScaledType::hasNumbers() const {
  return isa<Float8E4M3FNType>(getBy());
}

std::optional<Granularity> fi::getNumberGranularity(KVViewTypeInterface view,
                                                    bool wantValues) {
  Type scheme = wantValues ? view.getValueScheme() : view.getKeyScheme();
  if (auto scaled = dyn_cast<ScaledType>(scheme))
    return scaled.getGranularity();
  if (auto blocks = dyn_cast<BlockScaledType>(scheme);
      blocks && blocks.hasNumbers())
    return blocks.getGranularity();
  return std::nullopt;
}

bool fi::isQuantised(KVViewTypeInterface view, bool wantValues) {
  return isa<ScaledType, BlockScaledType>(wantValues ? view.getValueScheme()
                                                     : view.getKeyScheme());
}

SmallVector<KVScale, 4> fi::getScales(KVViewTypeInterface view) {
  SmallVector<KVScale, 4> scales;
  for (bool ofValues : {false, true}) {
    // Values that are keys have their scales.
    if (ofValues && view.sharesValues())
      continue;
    if (getBlockScaledType(view, ofValues))
      scales.push_back({ofValues, std::nullopt});
    if (auto per = getNumberGranularity(view, ofValues))
      scales.push_back({ofValues, per});
  }
  return scales;
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
      parseViewOptions(parser, options, ViewForm::Paged) ||
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
      options.dense, options.fused, options.twoTables);
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
  if (getTwoTables())
    printer << ", two_tables";
  printer << ">";
}

LogicalResult
PagedKVType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    int64_t page, int64_t heads, int64_t dim, int64_t valueDim,
                    Type element, Type valueElement, HeadOrder order,
                    Type index, bool dense, bool fused, bool twoTables) {
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
Type PagedKVType::getKeyType() const { return storedAs(getElement()); }
Type PagedKVType::getValueType() const { return storedAs(getValueElement()); }
Type PagedKVType::getKeyScheme() const { return getElement(); }
Type PagedKVType::getValueScheme() const { return getValueElement(); }
Type PagedKVType::getIndexType() const { return getIndex(); }
int64_t PagedKVType::getPageSize() const { return getPage(); }

unsigned PagedKVType::getPoolCount() const { return getFused() ? 1 : 2; }
unsigned PagedKVType::getTableCount() const { return getTwoTables() ? 2 : 1; }
unsigned PagedKVType::getTable(KVPart part) const {
  return getTwoTables() && part == KVPart::Values ? 1 : 0;
}
int64_t PagedKVType::getPoolRank() const { return getFused() ? 5 : 4; }

// [pages, (2,) tokens, heads, dim] or [pages, (2,) heads, tokens, dim].
unsigned PagedKVType::getKeyDimension() const {
  return (getFused() ? 2 : 1) + (getOrder() == HeadOrder::NHD ? 0 : 1);
}
std::optional<unsigned> PagedKVType::getHeadDimension() const {
  return (getFused() ? 2 : 1) + (getOrder() == HeadOrder::NHD ? 1 : 0);
}

/// The offset of a row's page, and of its slot in it.
static Value buildSlotOffset(OpBuilder &b, Location loc, const KVRowAddress &a,
                             Value slotStride) {
  Value entry = add(b, loc, a.tableBegin,
                    arith::DivUIOp::create(b, loc, a.key, a.pageSize));
  Value slot = arith::RemUIOp::create(b, loc, a.key, a.pageSize);
  Value offset = mul(b, loc, a.lookup(entry), a.strides[0]);
  return add(b, loc, offset, mul(b, loc, slot, slotStride));
}

Value PagedKVType::buildRowOffset(OpBuilder &b, Location loc,
                                  const KVRowAddress &a) const {
  Value offset = buildSlotOffset(b, loc, a, a.strides[getKeyDimension()]);
  offset =
      add(b, loc, offset, mul(b, loc, a.head, a.strides[*getHeadDimension()]));
  if (getFused() && a.part == KVPart::Values)
    offset = add(b, loc, offset, a.strides[1]);
  return offset;
}

static void appendPages(SmallVectorImpl<NamedAttribute> &e, Builder b,
                        StringRef order, int64_t page, int64_t heads) {
  e.push_back(b.getNamedAttr("kind", b.getStringAttr("paged")));
  e.push_back(b.getNamedAttr("order", b.getStringAttr(order)));
  e.push_back(b.getNamedAttr("page", page == ShapedType::kDynamic
                                         ? Attribute(b.getUnitAttr())
                                         : b.getI64IntegerAttr(page)));
  e.push_back(b.getNamedAttr("heads", b.getI64IntegerAttr(heads)));
}

void PagedKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  Builder b(getContext());
  appendPages(e, b, stringifyHeadOrder(getOrder()), getPage(), getHeads());
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
      parseViewOptions(parser, options, ViewForm::Ragged) ||
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
  return verifyTokens(emitError, heads, dim, valueDim, element, valueElement,
                      index);
}

int64_t RaggedKVType::getKVHeads() const { return getHeads(); }
int64_t RaggedKVType::getKeyDim() const { return getDim(); }
int64_t RaggedKVType::getValueDim() const { return getValueDimension(); }
Type RaggedKVType::getKeyType() const { return storedAs(getElement()); }
Type RaggedKVType::getValueType() const { return storedAs(getValueElement()); }
Type RaggedKVType::getKeyScheme() const { return getElement(); }
Type RaggedKVType::getValueScheme() const { return getValueElement(); }
Type RaggedKVType::getIndexType() const { return getIndex(); }
int64_t RaggedKVType::getPageSize() const { return 0; }

int64_t RaggedKVType::getPoolRank() const { return 3; }
unsigned RaggedKVType::getKeyDimension() const {
  return getOrder() == HeadOrder::NHD ? 0 : 1;
}
std::optional<unsigned> RaggedKVType::getHeadDimension() const {
  return getOrder() == HeadOrder::NHD ? 1 : 0;
}

static Value buildTokenOffset(OpBuilder &b, Location loc, const KVRowAddress &a,
                              unsigned keyDimension, unsigned headDimension) {
  Value row = add(b, loc, a.tableBegin, a.key);
  return add(b, loc, mul(b, loc, row, a.strides[keyDimension]),
             mul(b, loc, a.head, a.strides[headDimension]));
}

Value RaggedKVType::buildRowOffset(OpBuilder &b, Location loc,
                                   const KVRowAddress &a) const {
  return buildTokenOffset(b, loc, a, getKeyDimension(), *getHeadDimension());
}

static void appendTokens(SmallVectorImpl<NamedAttribute> &e, Builder b,
                         HeadOrder order, int64_t heads) {
  e.push_back(b.getNamedAttr("kind", b.getStringAttr("ragged")));
  e.push_back(
      b.getNamedAttr("order", b.getStringAttr(stringifyHeadOrder(order))));
  e.push_back(b.getNamedAttr("heads", b.getI64IntegerAttr(heads)));
}

void RaggedKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  appendTokens(e, Builder(getContext()), getOrder(), getHeads());
}

//===----------------------------------------------------------------------===//
// LatentKVType
//===----------------------------------------------------------------------===//

Type LatentKVType::parse(AsmParser &parser) {
  int64_t latent;
  SmallVector<int64_t> dims;
  Type element, index;
  std::optional<int64_t> page;
  bool dense = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseInteger(latent) || parser.parsePlus() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false) ||
      parser.parseType(element))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc optionLoc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    if (keyword == "page") {
      page = ShapedType::kDynamic;
      if (parser.parseEqual() || (failed(parser.parseOptionalQuestion()) &&
                                  parser.parseInteger(*page)))
        return {};
    } else if (keyword == "index") {
      if (parser.parseEqual() || parser.parseType(index))
        return {};
    } else if (keyword == "table") {
      if (parser.parseEqual() || parser.parseKeyword("dense"))
        return {};
      dense = true;
    } else {
      parser.emitError(optionLoc, "expected one of 'page = ', 'index = ', "
                                  "'table = dense', but got '")
          << keyword << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  if (dims.size() != 1) {
    parser.emitError(loc, "expected latent + tail x element, but got ")
        << dims.size() << " sizes of tails";
    return {};
  }
  if (!page) {
    parser.emitError(loc, "expected the keys of a page, 'page = '");
    return {};
  }
  MLIRContext *context = parser.getContext();
  return parser.getChecked<LatentKVType>(
      loc, context, latent, dims[0], element, *page,
      index ? index : IntegerType::get(context, 32), dense);
}

void LatentKVType::print(AsmPrinter &printer) const {
  printer << "<" << getLatent() << "+" << getTail() << "x" << getElement()
          << ", page = ";
  if (ShapedType::isDynamic(getPage()))
    printer << "?";
  else
    printer << getPage();
  if (!getIndex().isInteger(32))
    printer << ", index = " << getIndex();
  if (getDense())
    printer << ", table = dense";
  printer << ">";
}

LogicalResult
LatentKVType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t latent, int64_t tail, Type element, int64_t page,
                     Type index, bool dense) {
  if (page != ShapedType::kDynamic && page <= 0)
    return emitError() << "expected a page size of at least 1 or ?, but got "
                       << page << " [KV1]";
  for (auto [what, size] :
       {std::pair("latents", latent), std::pair("tails", tail)})
    if (size <= 0 || size % 8 != 0 || size > kMaxHeadDim)
      return emitError() << "expected dim of " << what
                         << " to be a multiple of 8 up to " << kMaxHeadDim
                         << ", but got " << size << " [KV2]";
  return verifyKV(emitError, /*heads=*/1, latent, latent, element, element,
                  index, /*takesBlocks=*/false);
}

int64_t LatentKVType::getKVHeads() const { return 1; }
int64_t LatentKVType::getKeyDim() const { return getLatent() + getTail(); }
int64_t LatentKVType::getValueDim() const { return getLatent(); }
int64_t LatentKVType::getTailDim() const { return getTail(); }
bool LatentKVType::sharesValues() const { return true; }
Type LatentKVType::getKeyType() const { return storedAs(getElement()); }
Type LatentKVType::getValueType() const { return storedAs(getElement()); }
Type LatentKVType::getKeyScheme() const { return getElement(); }
Type LatentKVType::getValueScheme() const { return getElement(); }
Type LatentKVType::getIndexType() const { return getIndex(); }
int64_t LatentKVType::getPageSize() const { return getPage(); }
unsigned LatentKVType::getPool(KVPart part) const {
  return part == KVPart::Tail ? 1 : 0;
}
int64_t LatentKVType::getPoolRank() const { return 3; }
unsigned LatentKVType::getKeyDimension() const { return 1; }
std::optional<unsigned> LatentKVType::getHeadDimension() const { return {}; }

Value LatentKVType::buildRowOffset(OpBuilder &b, Location loc,
                                   const KVRowAddress &a) const {
  return buildSlotOffset(b, loc, a, a.strides[getKeyDimension()]);
}

void LatentKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  // Pages of tokens, without a dimension of heads.
  appendPages(e, Builder(getContext()), "ND", getPage(), /*heads=*/1);
}

//===----------------------------------------------------------------------===//
// BsrKVType
//===----------------------------------------------------------------------===//

Type BsrKVType::parse(AsmParser &parser) {
  SmallVector<int64_t> dims;
  Type element;
  ViewOptions options;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(dims, /*allowDynamic=*/false) ||
      parser.parseType(element) ||
      parseViewOptions(parser, options, ViewForm::Bsr) || parser.parseGreater())
    return {};
  if (dims.size() != 3) {
    parser.emitError(loc, "expected columns x heads x dim x element, but got ")
        << dims.size() << " sizes";
    return {};
  }
  MLIRContext *context = parser.getContext();
  return parser.getChecked<BsrKVType>(
      loc, context, dims[0], dims[1], dims[2],
      options.valueDim ? options.valueDim : dims[2], element,
      options.valueElement ? options.valueElement : element,
      options.order.value_or(HeadOrder::NHD),
      options.index ? options.index : IntegerType::get(context, 32),
      options.rows);
}

void BsrKVType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList({getColumns(), getHeads(), getDim()});
  printer << "x" << getElement();
  if (getOrder() == HeadOrder::HND)
    printer << ", HND";
  printViewOptions(printer, getDim(), getValueDimension(), getElement(),
                   getValueElement(), getIndex());
  printer << ", rows = " << getRows() << ">";
}

LogicalResult
BsrKVType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                  int64_t columns, int64_t heads, int64_t dim, int64_t valueDim,
                  Type element, Type valueElement, HeadOrder order, Type index,
                  int64_t rows) {
  for (auto [what, size] :
       {std::pair("columns", columns), std::pair("rows", rows)})
    if (size <= 0 || size > kMaxBlock)
      return emitError() << "expected blocks of 1 to " << kMaxBlock << " "
                         << what << ", but got " << size << " [KV12]";
  return verifyTokens(emitError, heads, dim, valueDim, element, valueElement,
                      index);
}

int64_t BsrKVType::getKVHeads() const { return getHeads(); }
int64_t BsrKVType::getKeyDim() const { return getDim(); }
int64_t BsrKVType::getValueDim() const { return getValueDimension(); }
Type BsrKVType::getKeyType() const { return storedAs(getElement()); }
Type BsrKVType::getValueType() const { return storedAs(getValueElement()); }
Type BsrKVType::getKeyScheme() const { return getElement(); }
Type BsrKVType::getValueScheme() const { return getValueElement(); }
Type BsrKVType::getIndexType() const { return getIndex(); }
int64_t BsrKVType::getPageSize() const { return 0; }
int64_t BsrKVType::getPoolRank() const { return 3; }
unsigned BsrKVType::getKeyDimension() const {
  return getOrder() == HeadOrder::NHD ? 0 : 1;
}
std::optional<unsigned> BsrKVType::getHeadDimension() const {
  return getOrder() == HeadOrder::NHD ? 1 : 0;
}

Value BsrKVType::buildRowOffset(OpBuilder &b, Location loc,
                                const KVRowAddress &a) const {
  return buildTokenOffset(b, loc, a, getKeyDimension(), *getHeadDimension());
}

void BsrKVType::appendManifest(SmallVectorImpl<NamedAttribute> &e) const {
  Builder b(getContext());
  appendTokens(e, b, getOrder(), getHeads());
  e.push_back(b.getNamedAttr(
      "blocks",
      b.getDictionaryAttr(
          {b.getNamedAttr("rows", b.getI64IntegerAttr(getRows())),
           b.getNamedAttr("columns", b.getI64IntegerAttr(getColumns()))})));
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
