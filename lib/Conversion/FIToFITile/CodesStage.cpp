//===- CodesStage.cpp - kernels of rows of codes and of bits --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.quantise, fi.dequantise and ops that pack bits. What shares a scale in a
// row is an item, so that its largest number is a reduction of the tile. Scales
// that all rows share take two stages before: the largest numbers of rows, and
// those of all rows.
//
//===----------------------------------------------------------------------===//

#include "CompanionStage.h"
#include "RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// A number of f32 for all, or for the item's head.
static Value loadNumber(CompanionStage &stage, const RowScheme &scheme,
                        unsigned buffer) {
  Value number = stage.argument(buffer);
  if (!isa<MemRefType>(number.getType()))
    return number;
  return GatherOp::create(
      stage.b, stage.loc, stage.f32, number,
      scheme.granularity == Granularity::Head ? stage.head : stage.index(0));
}

/// The buffer of scales: of rows, or else of what all rows share.
static unsigned useScales(CompanionStage &stage, const RowScheme &scheme,
                          Value scales) {
  auto type = dyn_cast<ShapedType>(scales.getType());
  return type && type.getRank() == 1 ? stage.useWhole(scales)
                                     : stage.use(scales);
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
  bool areShared = op.makesSharedScales();
  bool makes = (scheme.blocks || !op.getScales()) && !areShared;
  int64_t columns = getColumns(scheme, dim, makes);
  unsigned input = stage.use(op.getInput());
  std::optional<unsigned> scales;
  if (op.getScales())
    scales = useScales(stage, scheme, op.getScales());
  else if (areShared) // made by the stages before
    scales = stage.useWhole(CompanionOpInterface(op).getPlaces()[1]);
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
    scales.push_back(useScales(stage, scheme, operand));
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

//===----------------------------------------------------------------------===//
// Scales that all rows share
//===----------------------------------------------------------------------===//

LogicalResult fi::tile::buildSharedScales(OpBuilder &b, QuantiseOp op,
                                          ProgramBuffers &buffers,
                                          StringRef name,
                                          SmallVectorImpl<Attribute> &stages) {
  auto type = cast<ShapedType>(op.getInput().getType());
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  int64_t heads = type.getDimSize(1), dim = type.getDimSize(2);
  int64_t columns = getColumnPart(dim, kMaxRowDim), parts = dim / columns;
  Location loc = op.getLoc();
  Buffer largest;
  {
    CompanionStage rows(b, op, buffers, name + "_largest");
    largest = rows.addTemporary({type.getDimSize(0), heads, parts});
    unsigned input = rows.use(op.getInput()), output = rows.use(largest);
    rows.begin(columns, heads, parts);
    Value x = rows.load(input, columns, rows.firstColumn(columns));
    rows.store(largestOfRows(b, loc, x), output,
               parts > 1 ? rows.part : Value());
    stages.push_back(rows.end());
  }
  // A row of this stage is a scale. Its tiles go along all that share it.
  bool perHead = scheme.granularity == Granularity::Head;
  constexpr int64_t kAtOnce = 1024;
  CompanionStage all(b, op, buffers, name + "_scales");
  all.setRows(perHead ? heads : 1);
  unsigned input = all.useWhole(largest);
  Value place = CompanionOpInterface(op).getPlaces()[1];
  if (op->getNumResults() > 0 &&
      failed(buffers.define(place, b.getI64IntegerAttr(perHead ? heads : 1))))
    return failure();
  unsigned output = all.use(place);
  all.begin(kAtOnce, /*heads=*/1);
  Type index = b.getIndexType();
  RankedTensorType tile = all.tile(all.rows, kAtOnce, all.f32);
  auto spread = [&](Value value) {
    return broadcastTo(b, loc, value, tile.getShape());
  };
  Value memory = all.argument(input);
  int64_t inRow = perHead ? parts : heads * parts;
  Value count = arith::MulIOp::create(
      b, loc, memref::DimOp::create(b, loc, memory, all.index(0)),
      all.index(inRow));
  Value ofHead =
      perHead ? spread(IotaOp::create(b, loc, all.tile(all.rows, 1, index),
                                      all.field(Field::RowBegin)))
              : Value();
  Value none =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(tile, 0.0f));
  auto loop = scf::ForOp::create(b, loc, all.index(0), count,
                                 all.index(kAtOnce), ValueRange{none});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    // What lies behind the last row is out of range, and reads 0.
    Value place = spread(IotaOp::create(b, loc, all.tile(1, kAtOnce, index),
                                        loop.getInductionVar()));
    auto divide = [&](Value value, int64_t by) -> Value {
      return by == 1
                 ? value
                 : arith::DivUIOp::create(b, loc, value, spread(all.index(by)));
    };
    auto rest = [&](Value value, int64_t by) -> Value {
      return by == 1
                 ? spread(all.index(0))
                 : arith::RemUIOp::create(b, loc, value, spread(all.index(by)));
    };
    Value head = perHead ? ofHead : rest(divide(place, parts), heads);
    Value read = GatherOp::create(
        b, loc, tile, memory,
        ValueRange{divide(place, inRow), head, rest(place, parts)});
    Value most =
        arith::MaximumFOp::create(b, loc, loop.getRegionIterArg(0), read);
    scf::YieldOp::create(b, loc, most);
  }
  all.store(scalesOf(b, loc, largestOfRows(b, loc, loop.getResult(0)),
                     scheme.storage),
            output);
  stages.push_back(all.end());
  return success();
}

//===----------------------------------------------------------------------===//
// Bits of segments
//===----------------------------------------------------------------------===//

namespace {

/// Tiles of indices, a row for each byte that is made.
class ByteRows {
public:
  ByteRows(CompanionStage &stage)
      : stage(stage), b(stage.b), loc(stage.loc),
        type(stage.tile(stage.rows, 1, b.getIndexType())) {}

  Value spread(Value value) {
    return broadcastTo(b, loc, value, type.getShape());
  }
  Value spread(int64_t value) { return spread(stage.index(value)); }
  Value bytes() {
    return IotaOp::create(b, loc, type, stage.field(Field::RowBegin));
  }
  /// Entries of a table of segments; 0 out of range.
  Value read(unsigned table, Value at) {
    Value memory = stage.argument(table);
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    Value entry =
        GatherOp::create(b, loc, type.clone(element), memory, ValueRange{at});
    return arith::IndexCastOp::create(b, loc, type, entry);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }

  /// The last segment that begins at or before each byte, or the first one, by
  /// halving.
  Value findSegments(unsigned table, Value bytes);

private:
  CompanionStage &stage;
  OpBuilder &b;
  Location loc;
  RankedTensorType type;
};

} // namespace

Value ByteRows::findSegments(unsigned table, Value bytes) {
  // More entries than these levels find no memory has. Steps that are beyond
  // the table read nothing.
  constexpr int64_t kLevels = 31;
  Value one = stage.index(1);
  Value segments = arith::SubIOp::create(
      b, loc,
      memref::DimOp::create(b, loc, stage.argument(table), stage.index(0)),
      one);
  Value first = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, APInt(64, 0)));
  auto search = scf::ForOp::create(b, loc, stage.index(0), stage.index(kLevels),
                                   one, ValueRange{first});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(search.getBody());
  Value at = search.getRegionIterArg(0);
  Value step = arith::ShLIOp::create(
      b, loc, one,
      arith::SubIOp::create(b, loc, stage.index(kLevels - 1),
                            search.getInductionVar()));
  Value there = arith::AddIOp::create(b, loc, at, spread(step));
  Value exists = compare(arith::CmpIPredicate::slt, there, spread(segments));
  Value begins = compare(arith::CmpIPredicate::sle, read(table, there), bytes);
  Value moves = arith::AndIOp::create(b, loc, exists, begins);
  Value found = arith::SelectOp::create(b, loc, moves, there, at);
  scf::YieldOp::create(b, loc, found);
  return search.getResult(0);
}

DictionaryAttr fi::tile::buildRows(CompanionStage &stage,
                                   SegmentPackBitsOp op) {
  OpBuilder &b = stage.b;
  Location loc = stage.loc;
  if (Value bytes = op.getBytes()) {
    Attribute rows = stage.getBuffers().findRows(op, bytes);
    if (!rows)
      return {};
    stage.getBuffers().setRows(bytes, rows);
  }
  unsigned input = stage.use(op.getInput()), from = stage.use(op.getFrom()),
           to = stage.use(op.getTo());
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  constexpr int64_t kBits = 8;
  stage.begin(kBits, /*heads=*/1);
  ByteRows rows(stage);
  Value bytes = rows.bytes();
  Value segment = rows.findSegments(to, bytes);
  Value begin = rows.read(from, segment);
  Value end =
      rows.read(from, arith::AddIOp::create(b, loc, segment, rows.spread(1)));
  Value byte = arith::SubIOp::create(b, loc, bytes, rows.read(to, segment));
  Value first = arith::AddIOp::create(
      b, loc, begin, arith::MulIOp::create(b, loc, byte, rows.spread(kBits)));
  RankedTensorType whole = stage.tile(stage.rows, kBits, b.getIndexType());
  auto spread = [&](Value value) {
    return broadcastTo(b, loc, value, whole.getShape());
  };
  Value bit = IotaOp::create(b, loc, stage.tile(1, kBits, b.getIndexType()),
                             stage.index(0));
  Value place = arith::AddIOp::create(b, loc, spread(first), spread(bit));
  Value memory = stage.argument(input);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value isSet =
      GatherOp::create(b, loc, whole.clone(element), memory, ValueRange{place});
  if (!element.isInteger(1)) {
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(whole.clone(element)));
    isSet =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, isSet, zero);
  }
  Value isInside = arith::AndIOp::create(
      b, loc, rows.compare(arith::CmpIPredicate::sge, place, spread(begin)),
      rows.compare(arith::CmpIPredicate::slt, place, spread(end)));
  isSet = arith::AndIOp::create(b, loc, isSet, isInside);
  // The sum of powers of two is exact in f32, as is one with 2^23, whose lowest
  // byte then is the sum.
  Type i32 = b.getI32Type();
  auto words = [&](RankedTensorType like, int32_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(like.clone(i32), value));
  };
  RankedTensorType row = stage.tile(1, kBits, i32);
  Value shift = arith::IndexCastOp::create(b, loc, row, bit);
  if (op.getOrder() == BitOrder::Big)
    shift = arith::SubIOp::create(b, loc, words(row, kBits - 1), shift);
  Value weight = spread(arith::ShLIOp::create(b, loc, words(row, 1), shift));
  Value weights =
      arith::SelectOp::create(b, loc, isSet, weight, words(whole, 0));
  RankedTensorType column = stage.tile(stage.rows, 1, stage.f32);
  Value sum = ReduceOp::create(
      b, loc, column, ReduceKind::Add,
      arith::SIToFPOp::create(b, loc, whole.clone(stage.f32), weights));
  sum = arith::AddFOp::create(
      b, loc, sum,
      arith::ConstantOp::create(b, loc,
                                DenseElementsAttr::get(column, 0x1p23f)));
  sum = arith::BitcastOp::create(b, loc, column.clone(i32), sum);
  stage.store(arith::TruncIOp::create(b, loc, column.clone(b.getI8Type()), sum),
              *output);
  return stage.end();
}
