//===- Rows.cpp - tiles with lanes along rows -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What atoms of rows have beside fragments of products: columns and rows beyond
// the tile; how many CTAs of kernels of rows are wanted side by side.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// Items of rows
//===----------------------------------------------------------------------===//

void NVVMLowering::lowerFromRow(FromRowOp op) {
  // An item of that kind is in force here, if this one comes of one.
  Value row = scalar(op.getRow());
  laterRows[op.getResult()] = {firstRow ? add(firstRow, row) : row,
                               add(itemField(Field::RowBegin), row),
                               sub(itemField(Field::RowCount), row)};
}

NVVMLowering::LaterRowsScope::LaterRowsScope(NVVMLowering &lowering,
                                             Operation *op)
    : lowering(lowering) {
  // What is in a loop says itself whose rows it takes.
  if (op->getNumRegions())
    return;
  for (Value operand : op->getOperands()) {
    auto rows = lowering.laterRows.find(operand);
    if (rows == lowering.laterRows.end())
      continue;
    isActive = true;
    fields = lowering.itemFields;
    firstRow = lowering.firstRow;
    lowering.itemFields[Field::RowBegin] = rows->second.begin;
    lowering.itemFields[Field::RowCount] = rows->second.count;
    lowering.firstRow = rows->second.first;
    return;
  }
}

NVVMLowering::LaterRowsScope::~LaterRowsScope() {
  if (!isActive)
    return;
  lowering.itemFields = std::move(fields);
  lowering.firstRow = firstRow;
}

/// Items that are all tiles of a memref's rows for all heads: their number says
/// what is in them, so that nobody waits for them.
void NVVMLowering::countRowItems(DenseI64ArrayAttr rows, Value number) {
  int64_t argument = rows[0], heads = rows[1];
  Value tile = heads == 1 ? number : divide(number, heads);
  Value begin = mul(tile, schedule.getTileRows());
  itemFields[Field::RowBegin] = begin;
  Value left = sub(arguments[argument].sizes[0], begin);
  left = arith::MaxSIOp::create(b, loc, left, index(0));
  itemFields[Field::RowCount] = minimum(left, index(schedule.getTileRows()));
  itemFields[Field::QBegin] = index(0);
  itemFields[Field::KVHead] = heads == 1 ? index(0) : remainder(number, heads);
}

//===----------------------------------------------------------------------===//
// Lanes along rows
//===----------------------------------------------------------------------===//

Value NVVMLowering::isInside(const RegisterLayout &layout, int64_t column,
                             int64_t columns) {
  if (!layout.goesBeyond(column, columns))
    return {};
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                               laneColumn(layout), index(columns - column));
}

Value NVVMLowering::columnOffset(const RegisterLayout &layout, int64_t column,
                                 int64_t columns) {
  Value first = laneColumn(layout);
  if (column < layout.getRepeatColumns()) {
    Value last = index(columns - column - layout.getNeighbours());
    return add(minimum(first, last), column);
  }
  Value own = arith::SelectOp::create(b, loc, isInside(layout, column, columns),
                                      index(column), index(0));
  return add(first, own);
}

/// Lanes along rows read nothing of one another's: what is beyond a tile
/// repeats a row, and columns, of the lane itself, or is 0 where it has none.
/// So a kernel may write over what it has read.
LogicalResult NVVMLowering::loadOwnRows(LoadRowsOp op) {
  const Argument &source = argumentOf(op.getSource());
  RegisterLayout layout = layoutOf(op.getResult());
  FragAttr frag = layout.getFrag();
  int64_t columns = op.getType().getDimSize(1);
  Value count = itemField(Field::RowCount), first = laneRow(layout);
  auto isValid = [&](Value row) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, row, count);
  };
  auto load = [&] {
    return loadTile(
        op.getType(), source,
        [&](Value row) {
          row = arith::SelectOp::create(b, loc, isValid(row), row, first);
          return rowBegin(source, row, op.getGroup(), /*clamp=*/false,
                          op.getHead(), op.getFirst());
        },
        /*part=*/Value(), op.getStep());
  };
  Value hasAny;
  if (frag.getWarps() > 1 || getAtomInfo(frag.getAtom()).rows > 1)
    hasAny = isValid(first);
  if (layout.overColumns() && layout.goesBeyond(0, columns)) {
    Value inside = isInside(layout, 0, columns);
    hasAny = hasAny ? arith::AndIOp::create(b, loc, hasAny, inside).getResult()
                    : inside;
  }
  if (!hasAny) {
    map.map(op.getResult(), load());
    return success();
  }
  Type type = lowered(op.getType());
  auto branch = scf::IfOp::create(b, loc, TypeRange{type}, hasAny,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, load());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(
        b, loc,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type)).getResult());
  }
  map.map(op.getResult(), branch.getResult(0));
  return success();
}

LogicalResult NVVMLowering::lowerLoadColumns(LoadColumnsOp op) {
  map.map(op.getResult(), loadTile(op.getType(), argumentOf(op.getSource()),
                                   [&](Value) { return index(0); }));
  return success();
}

/// One CTA at least: a kernel may have all registers that it asks for. Kernels
/// of rows move memory and need as many loads under way as there can be: half
/// of the threads of a multiprocessor, where a lane has few elements and what
/// it loads takes few registers; less where there is more to keep from one
/// reduction to the next.
int32_t NVVMLowering::getLeastCTAs(int64_t threads) {
  constexpr int64_t kFew = 32, kHalf = 1024;
  int64_t loaded = 0, reductions = 0;
  kernel.walk([&](ReduceOp) { ++reductions; });
  WalkResult result = kernel.walk([&](LoadRowsOp load) {
    FailureOr<RegisterLayout> layout = RegisterLayout::of(load.getType());
    if (failed(layout) || !isRowAtom(layout->getFrag().getAtom()) ||
        layout->getRegisters() > kFew)
      return WalkResult::interrupt();
    loaded += layout->getRegisters() * load.getType().getElementTypeBitWidth();
    return WalkResult::advance();
  });
  bool isSmall = !result.wasInterrupted() && loaded > 0 && loaded <= 32 * kFew;
  int64_t wanted = reductions > 1 ? kHalf * 3 / 4 : kHalf;
  // Functions take registers, and time enough to hide the way to memory.
  bool hasFunctions = kernel
                          .walk([](Operation *op) {
                            return isa<math::Exp2Op, math::ExpOp, math::SinOp,
                                       math::CosOp, math::PowFOp>(op)
                                       ? WalkResult::interrupt()
                                       : WalkResult::advance();
                          })
                          .wasInterrupted();
  if (hasFunctions)
    wanted = kHalf / 2;
  return isSmall ? std::max<int64_t>(1, wanted / threads) : 1;
}
