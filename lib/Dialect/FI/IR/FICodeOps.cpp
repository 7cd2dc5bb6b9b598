//===- FICodeOps.cpp - rows of numbers and rows of codes ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.quantise, fi.dequantise, fi.pack_bits and fi.segment_pack_bits: checks.
//
//===----------------------------------------------------------------------===//

#include "Rows.h"

using namespace mlir;
using namespace fi;

RowScheme RowScheme::of(Type scheme, std::optional<uint64_t> group) {
  if (auto blocks = dyn_cast<BlockScaledType>(scheme))
    return {blocks.getStorage(), blocks.getBy(), blocks.getGranularity(),
            blocks.getBlock(), blocks};
  auto scaled = cast<ScaledType>(scheme);
  return {scaled.getStorage(), scaled.getBy(), scaled.getGranularity(),
          static_cast<int64_t>(group.value_or(0)), BlockScaledType()};
}

double fi::getLargestCode(Type storage) {
  if (isa<Float8E4M3FNType>(storage))
    return 448;
  if (isa<Float8E5M2Type>(storage))
    return 57344;
  return isa<Float4E2M1FNType>(storage) ? 6 : 127;
}

/// [rows, heads], or [rows, heads, groups] where rows are cut.
static SmallVector<int64_t> getScaleShape(const RowScheme &scheme,
                                          ShapedType rows, int64_t dim) {
  SmallVector<int64_t> shape(rows.getShape().drop_back());
  if (scheme.group)
    shape.push_back(dim / scheme.group);
  return shape;
}

/// QTZ1 and what of QTZ3 is about the scheme alone. `numbers` and `codes` are
/// the types of both sides.
static LogicalResult verifyScheme(Operation *op, Type type,
                                  std::optional<uint64_t> group,
                                  ShapedType numbers, ShapedType codes) {
  if (!isa<ScaledType, BlockScaledType>(type))
    return op->emitOpError("expected a scheme, !fi.scaled or !fi.block_scaled, "
                           "but got ")
           << type << " [QTZ1]";
  int64_t dim = numbers.getDimSize(2);
  if (dim % 8 != 0 || dim < 8 || dim > kMaxRow)
    return op->emitOpError("expected a dim that is a multiple of 8 up to ")
           << kMaxRow << ", but got " << dim << " [QTZ1]";
  if (auto scaled = dyn_cast<ScaledType>(type);
      scaled && scaled.getGranularity() == Granularity::Page)
    return op->emitOpError("expected scales per tensor, head or token, but got "
                           "those of pages [QTZ2]");
  RowScheme scheme = RowScheme::of(type, group);
  if (group && (scheme.blocks || scheme.granularity != Granularity::Token))
    return op->emitOpError("expected 'group' beside scales per token, but got ")
           << type << " [QTZ3]";
  if (scheme.group && (scheme.group < 8 || scheme.group % 8 != 0 ||
                       scheme.group > kMaxRowDim || dim % scheme.group != 0))
    return op->emitOpError("expected a dim that groups of columns divide, of a "
                           "multiple of 8 up to ")
           << kMaxRowDim << ", but got " << dim << " and groups of "
           << scheme.group << " [QTZ3]";
  Type stored = scheme.storage;
  if (scheme.blocks)
    stored = IntegerType::get(op->getContext(), 8);
  SmallVector<int64_t> shape(numbers.getShape());
  shape.back() = scheme.getStored(dim);
  if (codes.getElementType() != stored || codes.getShape() != ArrayRef(shape)) {
    InFlightDiagnostic diag = op->emitOpError("expected codes of ");
    for (int64_t size : shape)
      if (ShapedType::isDynamic(size))
        diag << "?x";
      else
        diag << size << 'x';
    return diag << stored << " for " << numbers << " by " << type
                << ", but got " << codes << " [QTZ1]";
  }
  return success();
}

/// QTZ2: an operand or a result that has scales of f32, or of rows.
static LogicalResult verifyScales(Operation *op, const RowScheme &scheme,
                                  bool ofRows, ShapedType rows, int64_t dim,
                                  Type scales, bool areMade = false) {
  auto shaped = dyn_cast<ShapedType>(scales);
  std::string wanted;
  llvm::raw_string_ostream stream(wanted);
  bool fits;
  if (ofRows) {
    SmallVector<int64_t> shape = getScaleShape(scheme, rows, dim);
    fits = shaped && shaped.hasRank() && shaped.getElementType() == scheme.by &&
           shaped.getShape() == ArrayRef(shape);
    stream << scheme.by << " and shape [rows, " << shape[1];
    if (shape.size() > 2)
      stream << ", " << shape[2];
    stream << ']';
  } else if (scheme.granularity == Granularity::Head) {
    fits = shaped && shaped.hasRank() && shaped.getElementType().isF32() &&
           shaped.getShape() == ArrayRef<int64_t>{rows.getDimSize(1)};
    stream << "f32 and shape [" << rows.getDimSize(1) << ']';
  } else {
    fits = areMade ? false : scales.isF32();
    fits |= shaped && shaped.hasRank() && shaped.getElementType().isF32() &&
            shaped.getShape() == ArrayRef<int64_t>{1} && !scheme.blocks;
    stream << (scheme.blocks ? "f32, a number"
               : areMade     ? "f32 and shape [1]"
                             : "f32, a number or of shape [1]");
  }
  if (fits)
    return success();
  return op->emitOpError("expected scales of ")
         << wanted << ", but got " << scales << " [QTZ2]";
}

LogicalResult QuantiseOp::verify() {
  auto input = cast<ShapedType>(getInput().getType());
  if (failed(verifyRowsOf(*this, input, "QTZ1")))
    return failure();
  if (!isa<ScaledType, BlockScaledType>(getScheme()))
    return verifyScheme(*this, getScheme(), getGroup(), input, input);
  RowScheme scheme = RowScheme::of(getScheme(), getGroup());
  bool makes = scheme.blocks || !getScales();
  if (failed(verifyPlaces(*this, makes ? 2 : 1)))
    return failure();
  auto codes = cast<ShapedType>(
      CompanionOpInterface(*this).getPlaces().front().getType());
  if (failed(verifyScheme(*this, getScheme(), getGroup(), input, codes)))
    return failure();
  int64_t dim = input.getDimSize(2);
  bool takes = !scheme.blocks || scheme.blocks.hasNumbers();
  if (getScales() && !takes)
    return emitOpError("expected no 'scales', since those of blocks are "
                       "computed, but got ")
           << getScales().getType() << " [QTZ3]";
  if (!getScales() && takes && scheme.blocks)
    return emitOpError("expected 'scales' for ")
           << getScheme() << ": the number of f32 is not computed [QTZ3]";
  if (getScales() &&
      failed(verifyScales(*this, scheme,
                          !scheme.blocks &&
                              scheme.granularity == Granularity::Token,
                          input, dim, getScales().getType())))
    return failure();
  if (!makes)
    return success();
  if (!scheme.group && scheme.areOfRows() && dim > kMaxRowDim)
    return emitOpError("expected a dim up to ")
           << kMaxRowDim << " where scales are computed, but got " << dim
           << ": compute those of groups, by 'group' [QTZ3]";
  return verifyScales(*this, scheme, scheme.areOfRows(), input, dim,
                      CompanionOpInterface(*this).getPlaces()[1].getType(),
                      /*areMade=*/true);
}

bool QuantiseOp::makesSharedScales() {
  return !getScales() && !RowScheme::of(getScheme(), getGroup()).areOfRows();
}

SmallVector<Value> QuantiseOp::getRowOperands() {
  RowScheme scheme = RowScheme::of(getScheme(), getGroup());
  if (getScales() && !scheme.blocks && scheme.granularity == Granularity::Token)
    return {getInput(), getScales()};
  return {getInput()};
}

LogicalResult
QuantiseOp::reifyResultShapes(OpBuilder &b,
                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(b, *this, shapes);
}

void QuantiseOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}

LogicalResult DequantiseOp::verify() {
  auto input = cast<ShapedType>(getInput().getType());
  if (failed(verifyRowsOf(*this, input, "QTZ1")) ||
      failed(verifyPlaces(*this, 1)))
    return failure();
  auto numbers = cast<ShapedType>(
      CompanionOpInterface(*this).getPlaces().front().getType());
  if (failed(verifyRowsOf(*this, numbers, "QTZ1")) ||
      failed(verifyScheme(*this, getScheme(), getGroup(), numbers, input)))
    return failure();
  RowScheme scheme = RowScheme::of(getScheme(), getGroup());
  size_t wanted = scheme.blocks && scheme.blocks.hasNumbers() ? 2 : 1;
  if (getScales().size() != wanted)
    return emitOpError("expected ")
           << wanted << " of 'scales' for " << getScheme() << ", but got "
           << getScales().size() << " [QTZ2]";
  int64_t dim = numbers.getDimSize(2);
  for (auto [index, scales] : llvm::enumerate(getScales()))
    if (failed(verifyScales(*this, scheme, scheme.areOfRows() && index == 0,
                            input, dim, scales.getType())))
      return failure();
  return success();
}

SmallVector<Value> DequantiseOp::getRowOperands() {
  if (RowScheme::of(getScheme(), getGroup()).areOfRows() &&
      !getScales().empty())
    return {getInput(), getScales().front()};
  return {getInput()};
}

LogicalResult
DequantiseOp::reifyResultShapes(OpBuilder &b,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(b, *this, shapes);
}

void DequantiseOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}

LogicalResult PackBitsOp::verify() {
  auto input = cast<ShapedType>(getInput().getType());
  if (failed(verifyRowsOf(*this, input, "PCK1")) ||
      failed(verifyPlaces(*this, 1)))
    return failure();
  int64_t dim = input.getDimSize(2);
  if (dim % 64 != 0 || dim < 64 || dim > kMaxRow)
    return emitOpError("expected a dim that is a multiple of 64 up to ")
           << kMaxRow << ", but got " << dim << " [PCK1]";
  auto bytes = cast<ShapedType>(
      CompanionOpInterface(*this).getPlaces().front().getType());
  SmallVector<int64_t> shape(input.getShape());
  shape.back() /= 8;
  if (bytes.getShape() != ArrayRef(shape))
    return emitOpError("expected a result of an eighth of the dim of 'input', ")
           << dim / 8 << ", and its rows and heads, but got " << bytes << " of "
           << input << " [PCK2]";
  return success();
}

LogicalResult
PackBitsOp::reifyResultShapes(OpBuilder &b,
                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(b, *this, shapes);
}

void PackBitsOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}

LogicalResult SegmentPackBitsOp::verify() {
  if (failed(verifyPlaces(*this, 1)))
    return failure();
  Type result = CompanionOpInterface(*this).getPlaces().front().getType();
  for (Type type :
       {getInput().getType(), getFrom().getType(), getTo().getType(), result}) {
    auto shaped = cast<ShapedType>(type);
    if (!shaped.hasRank() || shaped.getRank() != 1)
      return emitOpError("expected vectors, of elements, of where segments "
                         "begin, and of bytes, but got ")
             << type << " [PCK4]";
  }
  bool hasResult = (*this)->getNumResults() > 0;
  if (hasResult != (getBytes() != Value()))
    return emitOpError(hasResult
                           ? "expected 'bytes', the size of the result, "
                             "but got none [PCK4]"
                           : "expected no 'bytes' where 'outs' is memory, "
                             "which has a size, but got some [PCK4]");
  return success();
}

SmallVector<Value> SegmentPackBitsOp::getRowOperands() {
  return {getBytes() ? getBytes() : getOuts().front()};
}

LogicalResult
SegmentPackBitsOp::reifyResultShapes(OpBuilder &b,
                                     ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(b, *this, shapes);
}

void SegmentPackBitsOp::getEffects(Effects &effects) {
  getRowEffects(*this, getOutsMutable(), effects);
}
