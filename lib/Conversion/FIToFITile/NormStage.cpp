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

#include "RegionInliner.h"
#include "StageBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

DictionaryAttr fi::tile::buildNormStage(OpBuilder &b, RMSNormOp op,
                                        ProgramBuffers &buffers,
                                        StringRef name) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = op.getLoc();
  RankedTensorType type = op.getInput().getType();
  int64_t heads = type.getDimSize(1), dim = type.getDimSize(2);
  ScheduleAttr schedule = getRowTiling(op, dim);
  int64_t rows = schedule.getTileRows();
  if (failed(buffers.define(op.getResult(), op.getInput())))
    return {};
  StageBuilder stage(b, loc);
  unsigned input = stage.use(buffers.get(op.getInput()));
  std::optional<unsigned> weight;
  if (op.getWeight())
    weight = stage.use(buffers.get(op.getWeight()));
  unsigned output = stage.use(buffers.get(op.getResult()));
  std::string symbol = (name + "_rows" + Twine(rows)).str();
  KernelOp kernel = stage.createKernel(symbol, schedule);
  Block &entry = kernel.getBody().front();
  Type f32 = b.getF32Type();
  auto tile = [](int64_t height, int64_t width, Type element) {
    return RankedTensorType::get({height, width}, element);
  };
  // The same for all items.
  Value factor;
  if (weight) {
    Value memory = entry.getArgument(*weight);
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    factor = LoadColumnsOp::create(b, loc, tile(1, dim, element), memory);
  }
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  Value item = items.getItem();

  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  Value x = LoadRowsOp::create(b, loc, tile(rows, dim, type.getElementType()),
                               entry.getArgument(input), item, /*group=*/1);
  x = convertTile(b, loc, x, f32);
  Value squares = ReduceOp::create(b, loc, tile(rows, 1, f32), ReduceKind::Add,
                                   arith::MulFOp::create(b, loc, x, x));
  auto column = [&](Value scalar) {
    return broadcastTo(b, loc, scalar, {rows, 1});
  };
  Value mean = arith::MulFOp::create(
      b, loc, squares, column(number(1 / static_cast<double>(dim))));
  mean = arith::AddFOp::create(
      b, loc, mean, column(number(op.getEpsilon().convertToFloat())));
  Value scale = arith::DivFOp::create(b, loc, column(number(1)),
                                      math::SqrtOp::create(b, loc, mean));
  Value y =
      arith::MulFOp::create(b, loc, x, broadcastTo(b, loc, scale, {rows, dim}));
  if (factor) {
    factor = convertTile(b, loc, factor, f32);
    if (op.getPlusOne())
      factor = arith::AddFOp::create(b, loc, factor,
                                     broadcastTo(b, loc, number(1), {1, dim}));
    y = arith::MulFOp::create(b, loc, y,
                              broadcastTo(b, loc, factor, {rows, dim}));
  }
  Value target = entry.getArgument(output);
  y = convertTile(b, loc, y,
                  cast<MemRefType>(target.getType()).getElementType());
  StoreRowsOp::create(b, loc, y, target, item, /*group=*/1, Value());
  return b.getDictionaryAttr(
      {b.getNamedAttr("op", b.getStringAttr("rows")),
       b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("rows_of", buffers.rowsOf(op.getInput())),
       b.getNamedAttr("heads", b.getI64IntegerAttr(heads)),
       b.getNamedAttr("buffers", stage.getNames()),
       b.getNamedAttr("bodies", describeBodies(b, symbol, rows))});
}
