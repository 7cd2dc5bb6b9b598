//===- States.cpp - states of pieces and of groups of warps ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the states of split keys lie in memory and those of groups in shared
// memory, and how the last piece of a tile learns that it is.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// States of split keys
//===----------------------------------------------------------------------===//

NVVMLowering::StateLayout::StateLayout(RankedTensorType type, int64_t parts)
    : rows(type.getDimSize(0)), columns(type.getDimSize(1)), parts(parts) {
  // A lane's pairs of columns lie 8 apart.
  pairs = columns % 16 == 0 ? 2 : 1;
}

/// Tiles that lanes have along rows: so states lie then.
static bool isOfRows(RankedTensorType type) {
  auto frag = dyn_cast_or_null<FragAttr>(type.getEncoding());
  return frag && isRowAtom(frag.getAtom());
}

/// Where the rows of a slot begin, or those of the operation's item in it.
Value NVVMLowering::stateBegin(Value slot, RankedTensorType type) {
  if (!firstRow)
    return mul(slot, type.getDimSize(0));
  return add(mul(slot, schedule.getTileRows()), firstRow);
}

/// The outputs of a slot. What is in it does not depend on the slot.
NVVMLowering::Argument NVVMLowering::stateSlot(const StateLayout &layout,
                                               Value slot) {
  Argument outputs = stateOutput;
  outputs.base =
      advance(stateOutput.base, mul(slot, layout.rows * layout.columns *
                                              layout.parts * sizeof(float)));
  return outputs;
}

/// Where the registers of a row lie in a slot of outputs.
Value NVVMLowering::stateRow(const StateLayout &layout, Value row, Value part) {
  Value chunks = mul(divide(row, 8), layout.columns * layout.parts * 8);
  Value lanes = add(mul(remainder(row, 8), kQuad), remainder(lane, kQuad));
  Value offset = add(chunks, mul(lanes, layout.getChunk()));
  return part ? add(offset, mul(part, layout.columns * 8)) : offset;
}

void NVVMLowering::storeState(TypedValue<RankedTensorType> output,
                              TypedValue<RankedTensorType> statistic,
                              Value slot, Value part) {
  RankedTensorType type = output.getType();
  Value limit = itemField(Field::RowCount);
  Value first = stateBegin(slot, type);
  storeTile(
      map.lookup(statistic), statistic.getType(), stateStatistic, limit,
      [&](Value row) { return add(first, row); }, partOf(part));
  if (mergesItself && isOfRows(type))
    return storeRowState(map.lookup(output), type, first, limit);
  if (!mergesItself) {
    int64_t columns = type.getDimSize(1) * (part ? getGroups() : 1);
    storeTile(
        map.lookup(output), type, stateOutput, limit,
        [&](Value row) { return mul(add(first, row), columns); }, partOf(part));
    return;
  }
  StateLayout layout(type, part ? getGroups() : 1);
  Argument outputs = stateSlot(layout, slot);
  Value registers = map.lookup(output);
  for (RowOfRegisters &row : rowsOf(type)) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         row.row, limit);
    auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value place = stateRow(layout, row.row, partOf(part));
    for (size_t i = 0; i < row.pairs.size(); i += layout.pairs) {
      SmallVector<int64_t> parts;
      for (int64_t p = 0; p < layout.pairs; ++p)
        llvm::append_values(parts, row.pairs[i + p].first,
                            row.pairs[i + p].first + 1);
      storeElements(shuffle(registers, parts), outputs,
                    add(place, layout.getColumn(row.pairs[i].second)));
    }
  }
}

LogicalResult NVVMLowering::lowerStoreState(StoreStateOp op) {
  storeState(op.getOutput(), op.getStatistic(), itemField(Field::Slot),
             op.getPart());
  return success();
}

LogicalResult NVVMLowering::lowerStoreMergedState(StoreMergedStateOp op) {
  // Statistics are stored by one lane and loaded by others, and rows past the
  // last one are that one: of all groups, or of the group whose rows they are.
  if (op.synchronises())
    barrier();
  else if (schedule.getWarps() > 1)
    NVVM::BarrierOp::create(b, loc, TypeRange(), add32(group32, 1),
                            i32(getThreads()), NVVM::BarrierReductionAttr(),
                            Value());
  else
    NVVM::SyncWarpOp::create(b, loc, i32(-1));
  storeState(op.getOutput(), op.getStatistic(),
             add(itemField(Field::Slot), scalar(op.getIndex())), op.getPart());
  return success();
}

LogicalResult NVVMLowering::lowerLoadState(LoadStateOp op) {
  RankedTensorType type = op.getOutput().getType();
  Value slot = add(itemField(Field::Slot), scalar(op.getIndex()));
  if (mergesItself && isOfRows(type)) {
    loadRowState(op, slot);
    return success();
  }
  Value first = stateBegin(slot, type);
  Value last = add(itemField(Field::RowCount), -1);
  map.map(op.getStatistic(),
          loadTile(op.getStatistic().getType(), stateStatistic,
                   [&](Value row) { return add(first, minimum(row, last)); }));
  if (!mergesItself) {
    int64_t columns = type.getDimSize(1) * (op.getPart() ? getGroups() : 1);
    map.map(op.getOutput(), loadTile(
                                type, stateOutput,
                                [&](Value row) {
                                  return mul(add(first, minimum(row, last)),
                                             columns);
                                },
                                partOf(op.getPart())));
    return success();
  }
  StateLayout layout(type, op.getPart() ? getGroups() : 1);
  Argument outputs = stateSlot(layout, slot);
  SmallVector<Value> registers(layoutOf(op.getOutput()).getRegisters());
  for (RowOfRegisters &row : rowsOf(type)) {
    Value place =
        stateRow(layout, minimum(row.row, last), partOf(op.getPart()));
    for (size_t i = 0; i < row.pairs.size(); i += layout.pairs) {
      Value loaded = loadElements(
          outputs, add(place, layout.getColumn(row.pairs[i].second)),
          layout.getChunk());
      for (int64_t p = 0; p < layout.getChunk(); ++p)
        registers[row.pairs[i + p / 2].first + p % 2] = extract(loaded, p);
    }
  }
  map.map(op.getOutput(), fromElements(registers));
  return success();
}

template <typename Op> LogicalResult NVVMLowering::checkOffset(Op op) {
  if (!op.getOffset())
    return op.emitOpError("expected an offset: run fi-tile-allocate");
  if (!sharedBase)
    return op.emitOpError("expected a kernel with shared memory, but it has no "
                          "'fi_tile.shared': run fi-tile-allocate");
  return success();
}

std::pair<NVVMLowering::Argument, NVVMLowering::Argument>
NVVMLowering::groupState(int64_t offset, Value number, int64_t rows,
                         int64_t columns) {
  auto whole = RankedTensorType::get({rows, columns}, b.getF32Type());
  Argument output, statistic;
  output.element = statistic.element = b.getF32Type();
  output.shared = statistic.shared = true;
  output.base = add32(
      arith::MulIOp::create(b, loc, number, i32(getGroupStateBytes(whole))),
      offset);
  statistic.base = add32(output.base, rows * getGroupStatePitch(columns));
  return {output, statistic};
}

LogicalResult NVVMLowering::lowerShareState(ShareStateOp op) {
  RankedTensorType type = op.getOutput().getType();
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (failed(checkOffset(op)))
    return failure();
  auto [output, statistic] =
      groupState(*op.getOffset(), group32, rows, columns);
  // Who merges rows reads only those that there are.
  bool readsRows = kernel
                       .walk([](LoadGroupStateOp load) {
                         return load.getRow() ? WalkResult::interrupt()
                                              : WalkResult::advance();
                       })
                       .wasInterrupted();
  Value count = readsRows ? itemField(Field::RowCount) : index(rows);
  // The channels' place: everybody has read what was there.
  barrier();
  storeTile(map.lookup(op.getOutput()), type, output, count, [&](Value row) {
    return mul(row, getGroupStatePitch(columns) / 4);
  });
  storeTile(map.lookup(op.getStatistic()), op.getStatistic().getType(),
            statistic, count, [](Value row) { return row; });
  barrier();
  return success();
}

LogicalResult NVVMLowering::lowerLoadGroupState(LoadGroupStateOp op) {
  RankedTensorType type = op.getOutput().getType();
  int64_t rows = op.getRow() ? schedule.getTileRows() : type.getDimSize(0);
  int64_t columns = op.getColumns();
  if (failed(checkOffset(op)))
    return failure();
  bool isWhole = type.getDimSize(1) == columns && op.getRow();
  if (!isWhole && type.getDimSize(1) * getGroups() != columns)
    return op.emitOpError("expected a share of ")
           << columns << " / " << getGroups() << " columns, but got " << type;
  auto [output, statistic] =
      groupState(*op.getOffset(), toI32(scalar(op.getIndex())), rows, columns);
  // Past the item's end its last row is read again.
  auto place = [&](Value row) {
    return op.getRow() ? minimum(add(row, scalar(op.getRow())),
                                 add(itemField(Field::RowCount), -1))
                       : row;
  };
  map.map(op.getOutput(), loadTile(
                              type, output,
                              [&](Value row) {
                                return mul(place(row),
                                           getGroupStatePitch(columns) / 4);
                              },
                              isWhole ? Value() : scalar(op.getPart())));
  map.map(op.getStatistic(),
          loadTile(op.getStatistic().getType(), statistic, place));
  return success();
}

/// Stores of all threads, then one thread's count, which releases them and
/// acquires those of the others, then everybody's loads: PTX orders them by the
/// barriers between.
LogicalResult NVVMLowering::lowerArriveLast(ArriveLastOp op) {
  if (failed(checkOffset(op)))
    return failure();
  Value flag = sharedPointerAt(i32(*op.getOffset()));
  Value number = itemField(Field::FirstSlot);
  Value arrivals = itemField(Field::SlotCount);
  if (!op.getCounter().empty()) {
    number = add(number, scalar(op.getCounter()[0]));
    arrivals = scalar(op.getCounter()[1]);
  }
  Value counter = LLVM::GEPOp::create(b, loc, globalPointer, b.getI32Type(),
                                      countersPointer,
                                      ArrayRef<LLVM::GEPArg>{toI64(number)});
  barrier();
  auto branch = scf::IfOp::create(b, loc, isLeader(),
                                  /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    // As text: LLVM 22 drops the ordering of atomicrmw.
    Value before =
        LLVM::InlineAsmOp::create(
            b, loc, b.getI32Type(), ValueRange{counter, i32(1)},
            "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}",
            /*has_side_effects=*/true,
            /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
            /*asm_dialect=*/LLVM::AsmDialectAttr(),
            /*operand_attrs=*/ArrayAttr())
            .getRes();
    Value all = toI32(add(arrivals, -1));
    Value last =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, before, all);
    LLVM::StoreOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, b.getI32Type(), last), flag,
        /*alignment=*/4);
    auto reset = scf::IfOp::create(b, loc, last, /*withElseRegion=*/false);
    b.setInsertionPointToStart(reset.thenBlock());
    LLVM::StoreOp::create(b, loc, i32(0), counter, /*alignment=*/4);
  }
  barrier();
  Value told = LLVM::LoadOp::create(b, loc, b.getI32Type(), flag,
                                    /*alignment=*/4);
  map.map(op.getResult(),
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, told, i32(0))
              .getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// States of rows
//===----------------------------------------------------------------------===//

// Of eight columns that a lane has side by side, the first four lie in the
// first half of a row's state, the others in the second: what the lanes of a
// row load or store at once lies side by side.

void NVVMLowering::storeRowState(Value registers, RankedTensorType type,
                                 Value first, Value limit) {
  RegisterLayout layout = *RegisterLayout::of(type);
  int64_t columns = type.getDimSize(1);
  constexpr int64_t kHalf = kRowChunk / 2;
  Value lanePart = mul(laneInRow(layout), kHalf);
  for (RowOfRegisters &row : rowsOf(type)) {
    Value isValid = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                          row.row, limit);
    auto branch = scf::IfOp::create(b, loc, isValid, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value begin = add(mul(add(first, row.row), columns), lanePart);
    for (auto [reg, column] : row.pairs) {
      OpBuilder::InsertionGuard all(b);
      if (Value some = isInside(layout, column, columns)) {
        auto part = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
        b.setInsertionPointToStart(part.thenBlock());
      }
      for (int64_t half : {0, 1})
        storeElements(neighbours(registers, reg + half * kHalf, kHalf),
                      stateOutput, add(begin, (column + half * columns) / 2));
    }
  }
}

/// Slots are counted in 32 bits (KernelABI.h): a multiplication for each, on
/// top of what is the same for all.
void NVVMLowering::loadRowState(LoadStateOp op, Value slot) {
  RankedTensorType type = op.getOutput().getType();
  RegisterLayout layout = *RegisterLayout::of(type);
  int64_t columns = type.getDimSize(1), rows = schedule.getTileRows();
  constexpr int64_t kHalf = kRowChunk / 2;
  slot = fromI32(toI32(slot));
  Value last = add(itemField(Field::RowCount), -1);
  auto rowOfSlot = [&](Value row) {
    row = minimum(row, last);
    return firstRow ? add(firstRow, row) : row;
  };
  // The slot comes last.
  auto inSlot = [&](const Argument &states, Value first, int64_t width) {
    Argument moved = states;
    moved.base = advance(advance(states.base, mul(first, sizeof(float))),
                         mul(slot, rows * width * sizeof(float)));
    return moved;
  };
  Argument statistics = inSlot(stateStatistic, rowOfSlot(laneRow(layout)), 1);
  map.map(op.getStatistic(),
          loadTile(op.getStatistic().getType(), statistics, [&](Value row) {
            return sub(rowOfSlot(row), rowOfSlot(laneRow(layout)));
          }));
  Value lanePart = mul(laneInRow(layout), kHalf);
  SmallVector<Value> registers(layout.getRegisters());
  for (RowOfRegisters &row : rowsOf(type)) {
    Value begin = mul(rowOfSlot(row.row), columns);
    for (auto [reg, column] : row.pairs) {
      // Lanes without columns read the last ones.
      Value place = add(lanePart, column / 2);
      if (layout.goesBeyond(column, columns))
        place = minimum(place, index(columns / 2 - kHalf));
      Argument outputs = inSlot(stateOutput, add(begin, place), columns);
      for (int64_t half : {0, 1}) {
        Value loaded = loadElements(outputs, index(half * columns / 2), kHalf);
        for (int64_t i = 0; i < kHalf; ++i)
          registers[reg + half * kHalf + i] = extract(loaded, i);
      }
    }
  }
  map.map(op.getOutput(), fromElements(registers));
}
