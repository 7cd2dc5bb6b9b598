//===- CodesStage.cpp - kernels of rows of codes and of bits --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.quantise, fi.dequantise and fi.pack_bits. What shares a scale in a row is
// an item, so that its largest number is a reduction of the tile.
//
//===----------------------------------------------------------------------===//

#include "CompanionStage.h"
#include "RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// A number of f32 for all, or for the item's head.
static Value loadNumber(CompanionStage &stage, const RowScheme &scheme,
                        unsigned buffer) {
  Value number = stage.argument(buffer);
  if (scheme.granularity != Granularity::Head)
    return number;
  return GatherOp::create(stage.b, stage.loc, stage.f32, number,
                          ValueRange{stage.head});
}

/// The column of the scale, among those of a row, that an item's part has.
static Value scaleColumn(CompanionStage &stage, const RowScheme &scheme,
                         int64_t columns) {
  if (!scheme.group)
    return {};
  Value column = stage.firstColumn(columns);
  return arith::DivUIOp::create(stage.b, stage.loc, column,
                                stage.index(scheme.group));
}

/// The scales of an item: a number, or a column of those of its rows.
static Value loadScales(CompanionStage &stage, const RowScheme &scheme,
                        unsigned buffer, int64_t columns) {
  if (!scheme.areOfRows())
    return loadNumber(stage, scheme, buffer);
  return stage.load(buffer, 1, scaleColumn(stage, scheme, columns));
}

/// Columns of an item, which share a scale.
static int64_t getColumns(const RowScheme &scheme, int64_t dim, bool makes) {
  int64_t shared = scheme.group ? scheme.group : dim;
  return makes || scheme.blocks ? shared : getColumnPart(shared, kMostColumns);
}

DictionaryAttr fi::tile::buildRows(CompanionStage &stage, QuantiseOp op) {
  OpBuilder &b = stage.b;
  Location loc = stage.loc;
  auto type = cast<ShapedType>(op.getInput().getType());
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  int64_t dim = type.getDimSize(2);
  bool makes = scheme.blocks || !op.getScales();
  int64_t columns = getColumns(scheme, dim, makes);
  unsigned input = stage.use(op.getInput());
  std::optional<unsigned> scales;
  if (op.getScales())
    scales = stage.use(op.getScales());
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  FailureOr<unsigned> made = failure();
  if (makes && failed(made = stage.place(1)))
    return {};
  int64_t width = scheme.blocks ? columns / 2 : columns;
  stage.begin(width, type.getDimSize(1), dim / columns);
  Value first = stage.firstColumn(columns);
  if (scheme.blocks) {
    Value second = arith::AddIOp::create(b, loc, first, stage.index(1));
    Value number = scales ? loadNumber(stage, scheme, *scales) : Value();
    auto [codes, scale] = quantiseBlock(
        b, loc, stage.load(input, width, first, 2),
        stage.load(input, width, second, 2), scheme.blocks, number);
    stage.store(scale, *made, scaleColumn(stage, scheme, columns));
    stage.store(codes, *output, stage.firstColumn(width));
    return stage.end();
  }
  Value x = stage.load(input, columns, first);
  Value scale;
  if (makes) {
    scale = rowScales(b, loc, x, scheme.storage);
    stage.store(scale, *made, scaleColumn(stage, scheme, columns));
  } else {
    scale = loadScales(stage, scheme, *scales, columns);
  }
  x = arith::DivFOp::create(b, loc, x,
                            broadcastTo(b, loc, scale, {stage.rows, columns}));
  stage.store(quantise(b, loc, x, scheme.storage), *output, first);
  return stage.end();
}

DictionaryAttr fi::tile::buildRows(CompanionStage &stage, DequantiseOp op) {
  OpBuilder &b = stage.b;
  Location loc = stage.loc;
  auto type =
      cast<ShapedType>(CompanionOpInterface(op).getPlaces().front().getType());
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  int64_t dim = type.getDimSize(2);
  int64_t columns = getColumns(scheme, dim, /*makes=*/false);
  unsigned input = stage.use(op.getInput());
  SmallVector<unsigned> scales;
  for (Value operand : op.getScales())
    scales.push_back(stage.use(operand));
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  int64_t width = scheme.blocks ? columns / 2 : columns;
  stage.begin(width, type.getDimSize(1), dim / columns);
  Value first = stage.firstColumn(columns);
  auto spread = [&](Value value) {
    return broadcastTo(b, loc, value, {stage.rows, width});
  };
  Value scale = spread(loadScales(stage, scheme, scales.front(), columns));
  if (!scheme.blocks) {
    Value codes = stage.load(input, columns, first);
    stage.store(arith::MulFOp::create(b, loc, codes, scale), *output, first);
    return stage.end();
  }
  auto [even, odd] = unpackFloat4(
      b, loc, stage.loadRaw(input, width, stage.firstColumn(width)));
  Value number;
  if (scheme.blocks.hasNumbers())
    number = spread(loadNumber(stage, scheme, scales[1]));
  Value second = arith::AddIOp::create(b, loc, first, stage.index(1));
  for (auto [codes, from] : {std::pair(even, first), std::pair(odd, second)}) {
    Value x = arith::MulFOp::create(b, loc, codes, scale);
    if (number)
      x = arith::MulFOp::create(b, loc, x, number);
    stage.store(x, *output, from, 2);
  }
  return stage.end();
}

DictionaryAttr fi::tile::buildRows(CompanionStage &stage, PackBitsOp op) {
  OpBuilder &b = stage.b;
  Location loc = stage.loc;
  auto type = cast<ShapedType>(op.getInput().getType());
  int64_t bytes = type.getDimSize(2) / 8;
  int64_t columns = getColumnPart(bytes, kMostColumns);
  unsigned input = stage.use(op.getInput());
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  stage.begin(columns, type.getDimSize(1), bytes / columns);
  Type index = b.getIndexType();
  RankedTensorType whole = stage.tile(stage.rows, columns, index);
  auto spread = [&](Value value) {
    return broadcastTo(b, loc, value, whole.getShape());
  };
  Value row = spread(IotaOp::create(b, loc, stage.tile(stage.rows, 1, index),
                                    stage.field(Field::RowBegin)));
  Value head = spread(stage.head);
  Value first = stage.firstColumn(columns);
  Value bit = IotaOp::create(b, loc, stage.tile(1, columns, index), first);
  bit = arith::MulIOp::create(
      b, loc, bit, broadcastTo(b, loc, stage.index(8), {1, columns}));
  Value memory = stage.argument(input);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  RankedTensorType words = whole.clone(b.getI32Type());
  auto word = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(words, value));
  };
  Value packed = word(0);
  for (int64_t i = 0; i < 8; ++i) {
    Value column = arith::AddIOp::create(
        b, loc, bit, broadcastTo(b, loc, stage.index(i), {1, columns}));
    Value isSet = GatherOp::create(b, loc, whole.clone(element), memory,
                                   ValueRange{row, head, spread(column)});
    if (!element.isInteger(1)) {
      Value zero = arith::ConstantOp::create(
          b, loc, b.getZeroAttr(whole.clone(element)));
      isSet =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, isSet, zero);
    }
    int64_t place = op.getOrder() == BitOrder::Little ? i : 7 - i;
    Value one = arith::SelectOp::create(
        b, loc, isSet, word(static_cast<int32_t>(1) << place), word(0));
    packed = arith::OrIOp::create(b, loc, packed, one);
  }
  stage.store(
      arith::TruncIOp::create(b, loc, whole.clone(b.getI8Type()), packed),
      *output, first);
  return stage.end();
}
