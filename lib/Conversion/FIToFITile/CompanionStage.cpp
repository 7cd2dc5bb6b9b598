//===- CompanionStage.cpp - kernels of what stands beside attention -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompanionStage.h"
#include "../KernelABI.h"
#include "RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// The frame
//===----------------------------------------------------------------------===//

int64_t fi::tile::getColumnPart(int64_t columns, int64_t most) {
  int64_t part = 8;
  for (int64_t next = 8; next <= most; next += 8)
    if (columns % next == 0)
      part = next;
  return part;
}

FailureOr<unsigned> CompanionStage::place(unsigned index) {
  Value place = op.getPlaces()[index];
  if (op->getNumResults() > 0 &&
      failed(buffers.define(place, op.getRowOperands().front())))
    return failure();
  return stage.use(buffers.get(place));
}

void CompanionStage::begin(int64_t columns, int64_t heads, int64_t parts) {
  ScheduleAttr schedule = getRowTiling(op, columns);
  rows = schedule.getTileRows();
  items = heads * parts;
  symbol = (name + "_rows" + Twine(rows)).str();
  KernelOp kernel = stage.createKernel(symbol, schedule);
  Value rowsOf = op.getRowOperands().front();
  if (auto shaped = dyn_cast<ShapedType>(rowsOf.getType());
      shaped && shaped.getRank() > 1 && !fixedRows)
    kernel->setAttr(kRowItemsAttr,
                    b.getDenseI64ArrayAttr({use(rowsOf), items}));
  entry = &kernel.getBody().front();
  auto loop = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&loop.getBody().front());
  item = loop.getItem();
  head = field(Field::KVHead);
  if (parts == 1)
    return;
  part = arith::RemUIOp::create(b, loc, head, index(parts));
  head = arith::DivUIOp::create(b, loc, head, index(parts));
}

DictionaryAttr CompanionStage::end() {
  SmallVector<NamedAttribute> entries = {
      b.getNamedAttr("op", b.getStringAttr("rows")),
      b.getNamedAttr("name", b.getStringAttr(name)),
      b.getNamedAttr("rows_of",
                     fixedRows ? fixedRows
                               : buffers.rowsOf(op.getRowOperands().front())),
      b.getNamedAttr("heads", b.getI64IntegerAttr(items)),
      b.getNamedAttr("buffers", stage.getNames()),
      b.getNamedAttr("bodies", describeBodies(b, symbol, rows))};
  if (!whole.empty())
    entries.push_back(b.getNamedAttr("whole", b.getArrayAttr(whole)));
  if (fixedRows)
    return b.getDictionaryAttr(entries);
  // Results and temporaries are known to have as many.
  SmallVector<Attribute> arguments;
  SmallVector<Value> withRows = op.getRowOperands();
  // A vector is what all rows share, or has rows of one byte.
  for (Value place : op.getPlaces())
    if (op->getNumResults() == 0 &&
        cast<ShapedType>(place.getType()).getRank() > 1)
      withRows.push_back(place);
  for (Value operand : llvm::drop_begin(withRows))
    if (isa<BlockArgument>(operand))
      arguments.push_back(b.getStringAttr(buffers.get(operand).name));
  if (!arguments.empty())
    entries.push_back(b.getNamedAttr("with_rows", b.getArrayAttr(arguments)));
  return b.getDictionaryAttr(entries);
}

Value CompanionStage::field(Field which) {
  return ItemOp::create(b, loc, item, which);
}
Value CompanionStage::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value CompanionStage::number(double value) {
  return arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(static_cast<float>(value)));
}

Value CompanionStage::firstColumn(int64_t columns) {
  if (!part)
    return index(0);
  return arith::MulIOp::create(b, loc, part, index(columns));
}

static Value loadAs(CompanionStage &stage, Value item, Value memory,
                    Type element, int64_t columns, Value first, int64_t step) {
  return LoadRowsOp::create(
      stage.b, stage.loc, stage.tile(stage.rows, columns, element), memory,
      item, /*group=*/1, stage.part ? stage.head : Value(), first,
      static_cast<uint64_t>(step));
}

Value CompanionStage::loadRaw(unsigned buffer, int64_t columns, Value first,
                              int64_t step) {
  Value memory = argument(buffer);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return loadAs(*this, item, memory, element, columns, first, step);
}

Value CompanionStage::load(unsigned buffer, int64_t columns, Value first,
                           int64_t step) {
  Value memory = argument(buffer);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  // Loads make numbers of codes.
  if (element.getIntOrFloatBitWidth() == 8)
    element = f32;
  return convertTile(
      b, loc, loadAs(*this, item, memory, element, columns, first, step), f32);
}

void CompanionStage::store(Value value, unsigned buffer, Value first,
                           int64_t step) {
  Value memory = argument(buffer);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  StoreRowsOp::create(b, loc, convertTile(b, loc, value, element), memory, item,
                      /*group=*/1, /*part=*/Value(), part ? head : Value(),
                      first, static_cast<uint64_t>(step));
}

//===----------------------------------------------------------------------===//
// fi.gated
//===----------------------------------------------------------------------===//

namespace {

/// Functions of the elements of a tile.
class Elements {
public:
  Elements(CompanionStage &stage, Value like)
      : b(stage.b), loc(stage.loc),
        type(cast<RankedTensorType>(like.getType())) {}

  Value activate(Activation kind, Value x) {
    switch (kind) {
    case Activation::Silu:
      return logistic(x, x, 1);
    case Activation::GeluTanh: {
      // (1 + tanh(u)) / 2 is the logistic function of 2 u.
      Value square = multiply(x, x);
      Value cubic = add(multiply(square, 0.044715), 1);
      return logistic(x, multiply(x, cubic), 2 * std::sqrt(2 / M_PI));
    }
    case Activation::Gelu: {
      Value erf = math::ErfOp::create(b, loc, multiply(x, std::sqrt(0.5)));
      return multiply(multiply(x, 0.5), add(erf, 1));
    }
    }
    return {};
  }

  Value multiply(Value x, Value y) {
    return arith::MulFOp::create(b, loc, x, y);
  }

private:
  /// x / (1 + exp(-factor z))
  Value logistic(Value x, Value z, double factor) {
    Value power = math::Exp2Op::create(b, loc, multiply(z, -factor * M_LOG2E));
    return arith::DivFOp::create(b, loc, x, add(power, 1));
  }
  Value number(double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, static_cast<float>(value)));
  }
  Value multiply(Value x, double y) { return multiply(x, number(y)); }
  Value add(Value x, double y) {
    return arith::AddFOp::create(b, loc, x, number(y));
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType type;
};

} // namespace

/// Both elements of so many pairs are in registers.
static constexpr int64_t kMostPairs = 128;

DictionaryAttr fi::tile::buildRows(CompanionStage &stage, GatedOp op) {
  auto type = cast<ShapedType>(op.getInput().getType());
  int64_t dim = type.getDimSize(2) / 2;
  int64_t columns = getColumnPart(dim, kMostColumns);
  unsigned input = stage.use(op.getInput());
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  OpBuilder &b = stage.b;
  stage.begin(columns, type.getDimSize(1), dim / columns);
  Value first = stage.firstColumn(columns);
  Value gate = stage.load(input, columns, first);
  Value other =
      stage.load(input, columns,
                 arith::AddIOp::create(b, stage.loc, first, stage.index(dim)));
  Elements elements(stage, gate);
  stage.store(
      elements.multiply(elements.activate(op.getActivation(), gate), other),
      *output, first);
  return stage.end();
}

//===----------------------------------------------------------------------===//
// fi.rope
//===----------------------------------------------------------------------===//

LogicalResult fi::tile::buildTransform(OpBuilder &b, Location loc,
                                       const PairTransform &transform) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  bool half = transform.pairing == Pairing::Half;
  int64_t pairs = transform.dims / 2;
  int64_t columns = getColumnPart(pairs, kMostPairs);
  int64_t step = half ? 1 : 2;
  auto row = RankedTensorType::get({1, columns}, b.getIndexType());
  for (int64_t pair = 0; pair < pairs; pair += columns) {
    Value firsts[] = {index(half ? pair : 2 * pair),
                      index(half ? pair + pairs : 2 * pair + 1)};
    SmallVector<Value> arguments;
    for (Value first : firsts)
      arguments.push_back(transform.load(columns, first, step));
    arguments.push_back(IotaOp::create(b, loc, row, index(pair)));
    llvm::append_range(arguments, transform.arguments);
    FailureOr<SmallVector<Value>> made =
        inlineRegion(b, transform.region, arguments);
    if (failed(made))
      return failure();
    for (auto [value, first] : llvm::zip_equal(*made, firsts))
      transform.store(broadcastTo(b, loc, value, {transform.rows, columns}),
                      first, step);
  }
  int64_t rest = transform.dim - transform.dims;
  if (!rest)
    return success();
  int64_t part = getColumnPart(rest, columns);
  for (int64_t column = 0; column < rest; column += part) {
    Value first = index(transform.dims + column);
    transform.store(transform.load(part, first, 1), first, 1);
  }
  return success();
}

DictionaryAttr fi::tile::buildRows(CompanionStage &stage, RopeOp op) {
  ShapedType type = op.getInputType();
  unsigned input = stage.use(op.getInput()),
           positions = stage.use(op.getPositions());
  SmallVector<unsigned> captures;
  for (Value capture : op.getCaptures())
    captures.push_back(stage.use(capture));
  FailureOr<unsigned> output = stage.place();
  if (failed(output))
    return {};
  OpBuilder &b = stage.b;
  Location loc = stage.loc;
  stage.begin(getColumnPart(op.getPairedDims() / 2, kMostPairs),
              type.getDimSize(1));
  RankedTensorType column = stage.tile(stage.rows, 1, b.getIndexType());
  Value row = IotaOp::create(b, loc, column, stage.field(Field::RowBegin));
  Value memory = stage.argument(positions);
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value position = GatherOp::create(b, loc, stage.tile(stage.rows, 1, element),
                                    memory, ValueRange{row});
  position = arith::IndexCastOp::create(b, loc, column, position);
  SmallVector<Value> arguments = {stage.index(0), stage.head, position};
  for (unsigned capture : captures)
    arguments.push_back(stage.argument(capture));
  auto load = [&](int64_t columns, Value first, int64_t step) {
    return stage.load(input, columns, first, step);
  };
  auto store = [&](Value value, Value first, int64_t step) {
    stage.store(value, *output, first, step);
  };
  if (failed(buildTransform(b, loc,
                            {op.getTransform(), op.getPairing(),
                             op.getPairedDims(), type.getDimSize(2), stage.rows,
                             arguments, load, store})))
    return {};
  return stage.end();
}

LogicalResult
fi::tile::buildCompanionStages(OpBuilder &b, CompanionOpInterface op,
                               ProgramBuffers &buffers, StringRef name,
                               SmallVectorImpl<Attribute> &stages) {
  if (auto quantise = dyn_cast<QuantiseOp>(*op);
      quantise && quantise.makesSharedScales() &&
      failed(buildSharedScales(b, quantise, buffers, name, stages)))
    return failure();
  CompanionStage stage(b, op, buffers, name);
  auto made =
      llvm::TypeSwitch<Operation *, DictionaryAttr>(op)
          .Case<GatedOp, RopeOp, QuantiseOp, DequantiseOp, PackBitsOp,
                SegmentPackBitsOp>(
              [&](auto concrete) { return buildRows(stage, concrete); })
          .Default([](Operation *other) {
            other->emitOpError("expected an op that this level has kernels of");
            return DictionaryAttr();
          });
  if (!made)
    return failure();
  stages.push_back(made);
  return success();
}
