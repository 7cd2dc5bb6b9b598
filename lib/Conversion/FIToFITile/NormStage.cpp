//===- NormStage.cpp - kernels of norms of rows ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage of rows: an item is a tile of rows of one head, which is loaded,
// reduced, multiplied and stored.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "RegionInliner.h"
#include "StageBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

class NormStage {
public:
  NormStage(OpBuilder &b, const NormParts &norm, ProgramBuffers &buffers,
            StringRef name)
      : b(b), loc(norm.op->getLoc()), norm(norm), buffers(buffers), name(name),
        stage(b, loc), dim(norm.getDim()) {}

  DictionaryAttr build();

private:
  std::optional<unsigned> use(Value value) {
    if (!value)
      return std::nullopt;
    return stage.use(buffers.get(value));
  }
  Value argument(unsigned buffer) { return entry->getArgument(buffer); }
  Type elementOf(unsigned buffer) {
    return cast<MemRefType>(argument(buffer).getType()).getElementType();
  }
  RankedTensorType tile(int64_t height, int64_t width, Type element) {
    return RankedTensorType::get({height, width}, element);
  }
  Value column(double number) {
    return broadcastTo(
        b, loc, arith::ConstantOp::create(b, loc, b.getF32FloatAttr(number)),
        {rows, 1});
  }
  /// A value per column.
  Value loadColumns(std::optional<unsigned> buffer) {
    if (!buffer)
      return {};
    return LoadColumnsOp::create(b, loc, tile(1, dim, elementOf(*buffer)),
                                 argument(*buffer));
  }
  Value spreadColumns(Value columns) {
    return broadcastTo(b, loc, columns, {rows, dim});
  }
  Value load(unsigned buffer) {
    Value loaded =
        LoadRowsOp::create(b, loc, tile(rows, dim, elementOf(buffer)),
                           argument(buffer), item, /*group=*/1);
    return convertTile(b, loc, loaded, b.getF32Type());
  }
  void store(Value value, unsigned buffer) {
    StoreRowsOp::create(b, loc, value, argument(buffer), item, /*group=*/1,
                        Value());
  }
  Value mean(Value values) {
    Value sum = ReduceOp::create(b, loc, tile(rows, 1, b.getF32Type()),
                                 ReduceKind::Add, values);
    return arith::MulFOp::create(b, loc, sum,
                                 column(1 / static_cast<double>(dim)));
  }
  /// The codes of numbers: one division for all of a head.
  Value toCodes(Value numbers, unsigned buffer);

  OpBuilder &b;
  Location loc;
  const NormParts &norm;
  ProgramBuffers &buffers;
  StringRef name;
  StageBuilder stage;
  int64_t dim, rows = 0;
  Block *entry = nullptr;
  Value item;
  std::optional<unsigned> scales;
};

} // namespace

Value NormStage::toCodes(Value numbers, unsigned buffer) {
  if (!norm.scheme)
    return convertTile(b, loc, numbers, elementOf(buffer));
  if (norm.makesScales()) {
    Value made = rowScales(b, loc, numbers, norm.scheme.getStorage());
    store(made, *scales);
    numbers = arith::DivFOp::create(b, loc, numbers,
                                    broadcastTo(b, loc, made, {rows, dim}));
    return quantise(b, loc, numbers, elementOf(buffer));
  }
  Value scale = argument(*scales);
  if (norm.scheme.getGranularity() == Granularity::Head) {
    Value head = ItemOp::create(b, loc, item, Field::KVHead);
    scale = GatherOp::create(b, loc, b.getF32Type(), scale, ValueRange{head});
  }
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
  Value factor = arith::DivFOp::create(b, loc, one, scale);
  numbers = arith::MulFOp::create(b, loc, numbers,
                                  broadcastTo(b, loc, factor, {rows, dim}));
  return quantise(b, loc, numbers, elementOf(buffer));
}

DictionaryAttr NormStage::build() {
  OpBuilder::InsertionGuard guard(b);
  ScheduleAttr schedule = getRowTiling(norm.op, dim);
  rows = schedule.getTileRows();
  for (Value result : norm.op->getResults())
    if (failed(buffers.define(result, norm.input)))
      return {};
  unsigned input = *use(norm.input);
  std::optional<unsigned> addend = use(norm.addend), weight = use(norm.weight),
                          bias = use(norm.bias);
  scales = use(norm.scales);
  ValueRange places = norm.getPlaces();
  unsigned output = *use(places[0]);
  std::optional<unsigned> sum = use(norm.addend ? places[1] : Value());
  if (norm.makesScales())
    scales = use(places.back());
  std::string symbol = (name + "_rows" + Twine(rows)).str();
  KernelOp kernel = stage.createKernel(symbol, schedule);
  kernel->setAttr(kRowItemsAttr,
                  b.getDenseI64ArrayAttr({input, norm.getHeads()}));
  entry = &kernel.getBody().front();
  // The same for all items. A CTA has one item, and code keeps what comes
  // before a loop in registers as f32: there they are loaded where rows are.
  bool isGPU = schedule.getWarps() > 0;
  Value factor, offset;
  auto loadAllColumns = [&] {
    factor = loadColumns(weight);
    offset = loadColumns(bias);
  };
  if (!isGPU)
    loadAllColumns();
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  item = items.getItem();

  Type f32 = b.getF32Type();
  if (isGPU)
    loadAllColumns();
  Value x = load(input);
  if (addend) {
    x = arith::AddFOp::create(b, loc, x, load(*addend));
    store(convertTile(b, loc, x, elementOf(*sum)), *sum);
  }
  if (norm.centred)
    x = arith::SubFOp::create(b, loc, x,
                              broadcastTo(b, loc, mean(x), {rows, dim}));
  Value squares = mean(arith::MulFOp::create(b, loc, x, x));
  squares = arith::AddFOp::create(b, loc, squares, column(norm.epsilon));
  Value scale = arith::DivFOp::create(b, loc, column(1),
                                      math::SqrtOp::create(b, loc, squares));
  Value y =
      arith::MulFOp::create(b, loc, x, broadcastTo(b, loc, scale, {rows, dim}));
  if (factor) {
    factor = convertTile(b, loc, factor, f32);
    if (norm.plusOne) {
      Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
      factor = arith::AddFOp::create(b, loc, factor,
                                     broadcastTo(b, loc, one, {1, dim}));
    }
    y = arith::MulFOp::create(b, loc, y, spreadColumns(factor));
  }
  if (offset)
    y = arith::AddFOp::create(b, loc, y,
                              spreadColumns(convertTile(b, loc, offset, f32)));
  store(toCodes(y, output), output);
  return b.getDictionaryAttr(
      {b.getNamedAttr("op", b.getStringAttr("rows")),
       b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("rows_of", buffers.rowsOf(norm.input)),
       b.getNamedAttr("heads", b.getI64IntegerAttr(norm.getHeads())),
       b.getNamedAttr("buffers", stage.getNames()),
       b.getNamedAttr("bodies", describeBodies(b, symbol, rows))});
}

DictionaryAttr fi::tile::buildNormStage(OpBuilder &b, const NormParts &norm,
                                        ProgramBuffers &buffers,
                                        StringRef name) {
  return NormStage(b, norm, buffers, name).build();
}
