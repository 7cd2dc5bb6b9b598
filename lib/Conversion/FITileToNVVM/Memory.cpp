//===- Memory.cpp - items, rows and states --------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How kernels see parameters, items and tensors (include/fi/ABI/KernelABI.h),
// and how tiles go between memory and registers.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

/// Items and ranges do not change during a launch.
Value NVVMLowering::loadField(Value pointer, int64_t offset, unsigned bits) {
  Value address =
      LLVM::GEPOp::create(b, loc, globalPointer, b.getI8Type(), pointer,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  auto load = LLVM::LoadOp::create(b, loc, b.getIntegerType(bits), address,
                                   /*alignment=*/bits / 8);
  load.setInvariant(true);
  return toIndex(load);
}

Value NVVMLowering::itemWord(int64_t offset, unsigned bits) {
  if (auto loaded = wordsOfItem.find(offset); loaded != wordsOfItem.end())
    return loaded->second;
  return loadField(itemPointer, offset, bits);
}

Value NVVMLowering::itemField(Field field) {
  if (auto loaded = itemFields.find(field); loaded != itemFields.end())
    return loaded->second;
  ItemFieldPlace place = getItemFieldPlace(field);
  return loadField(itemPointer, place.offset, place.bits);
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

Type fi::tile::storedType(Type element, Builder &b) {
  if (element.isInteger(1) || isCode(element) ||
      isa<Float8E8M0FNUType>(element))
    return b.getI8Type();
  if (element.isIndex())
    return b.getI64Type();
  return element;
}

Value NVVMLowering::address(const Argument &argument, Value offset) {
  Type element = storedType(argument.element, b);
  if (argument.shared) {
    Value bytes = arith::MulIOp::create(
        b, loc, toI32(offset), i32(element.getIntOrFloatBitWidth() / 8));
    return sharedPointerAt(arith::AddIOp::create(b, loc, argument.base, bytes));
  }
  return LLVM::GEPOp::create(b, loc, globalPointer, element, argument.base,
                             ArrayRef<LLVM::GEPArg>{toI64(offset)});
}

Value NVVMLowering::advance(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{toI64(bytes)});
}

SmallVector<Value> NVVMLowering::byteStrides(const Argument &argument) {
  OpBuilder::InsertionGuard outside(b);
  b.restoreInsertionPoint(entry.saveInsertionPoint());
  int64_t bytes = storedType(argument.element, b).getIntOrFloatBitWidth() / 8;
  return llvm::map_to_vector(argument.strides,
                             [&](Value stride) { return mul(stride, bytes); });
}

/// Offset of packed row `row` of the item; rows beyond the last repeat it.
Value NVVMLowering::rowOffset(const Argument &argument, Value row,
                              int64_t group, bool clamp, Value ofHead) {
  if (clamp)
    row = minimum(row, add(itemField(Field::RowCount), -1));
  Value packed = add(itemField(Field::RowBegin), row);
  Value token = packed, head = ofHead ? ofHead : itemField(Field::KVHead);
  if (group > 1) {
    token = divide(packed, group);
    head = add(mul(head, group), remainder(packed, group));
  }
  token = add(token, itemField(Field::QBegin));
  Value offset = mul(token, argument.strides[0]);
  if (argument.strides.size() == 1) // one head
    return offset;
  return add(offset, mul(head, argument.strides[1]));
}

const NVVMLowering::Argument &NVVMLowering::poolOf(Value view, KVPart part) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  return arguments[views.find(view)->second.pools[type.getPool(part)]];
}

/// Pages are counted in 32 bits, whatever the table's type; the runtime checks.
Value NVVMLowering::loadEntry(Value view, KVPart part, Value entryIndex) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  const Argument &pages =
      arguments[views.find(view)->second.pages[type.getTable(part)]];
  Value entry, place = address(pages, entryIndex);
  if (isLookedUp) {
    bool isLong = pages.element.isInteger(64);
    entry =
        assembly(pages.element,
                 isLong ? "{ mov.b64 $0, 0; @$2 ld.global.nc.b64 $0, [$1]; }"
                        : "{ mov.b32 $0, 0; @$2 ld.global.nc.b32 $0, [$1]; }",
                 isLong ? "=&l,l,b" : "=&r,l,b", ValueRange{place, isLookedUp});
  } else {
    auto load = LLVM::LoadOp::create(b, loc, pages.element, place);
    load.setInvariant(true); // tables belong to the plan
    entry = load;
  }
  if (logPointer)
    entry = checkEntry(view, part, entry);
  if (pages.element.isInteger(32))
    return entry;
  return arith::TruncIOp::create(b, loc, b.getI32Type(), entry);
}

/// A page outside of the pool is put into the log, and page 0 is read instead.
Value NVVMLowering::checkEntry(Value view, KVPart part, Value entry) {
  Type type = entry.getType();
  const Argument &pool = poolOf(view, part);
  Value pages = toI64(pool.sizes.front()), wide = entry;
  if (type.isInteger(32))
    wide = arith::ExtSIOp::create(b, loc, b.getI64Type(), entry);
  Value outside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, wide, pages);
  auto branch = scf::IfOp::create(b, loc, outside, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    auto field = [&](size_t offset) -> Value {
      return LLVM::GEPOp::create(
          b, loc, globalPointer, b.getI8Type(), logPointer,
          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    };
    // The code comes last: whoever sees it on the host sees the rest.
    Value before = LLVM::AtomicRMWOp::create(
        b, loc, LLVM::AtomicBinOp::add, field(offsetof(fi_fault_log, taken)),
        i32(1), LLVM::AtomicOrdering::monotonic);
    Value first =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, before, i32(0));
    auto write = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
    b.setInsertionPointToStart(write.thenBlock());
    auto store = [&](Value value, size_t offset) {
      LLVM::StoreOp::create(
          b, loc, value, field(offset),
          /*alignment=*/value.getType().getIntOrFloatBitWidth() / 8,
          /*isVolatile=*/true);
    };
    store(toI32(itemNumber), offsetof(fi_fault_log, item));
    store(wide, offsetof(fi_fault_log, value));
    store(pages, offsetof(fi_fault_log, limit));
    LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel, "");
    store(i32(FI_FAULT_PAGE), offsetof(fi_fault_log, code));
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return arith::SelectOp::create(b, loc, outside, zero, entry);
}

/// Whether this is the first thread of the CTA.
Value NVVMLowering::isLeader() {
  auto isFirst = [&](Value number) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number,
                                 i32(0));
  };
  return arith::AndIOp::create(b, loc, isFirst(thread32), isFirst(group32));
}

/// Tells the log what this CTA is at work on.
void NVVMLowering::logRunning(Value value) {
  auto branch = scf::IfOp::create(b, loc, isLeader(),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value cta = arith::ExtUIOp::create(
      b, loc, b.getI64Type(), NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value words = LLVM::GEPOp::create(
      b, loc, globalPointer, b.getI8Type(), logPointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(sizeof(fi_fault_log))});
  Value word = LLVM::GEPOp::create(b, loc, globalPointer, b.getI32Type(), words,
                                   ArrayRef<LLVM::GEPArg>{cta});
  LLVM::StoreOp::create(b, loc, value, word, /*alignment=*/4,
                        /*isVolatile=*/true);
}

/// What the page table holds for a key: asked of the address arithmetic of the
/// view, whose other operations are dead then.
Value NVVMLowering::tableEntry(Value view, KVPart part, Value key) {
  Value found;
  KVRowAddress place = rowAddress(view, part, key);
  auto lookup = [&](Value entryIndex) -> Value {
    found = loadEntry(view, part, entryIndex);
    return fromI32(found);
  };
  place.lookup = lookup;
  cast<KVViewTypeInterface>(view.getType()).buildRowOffset(b, loc, place);
  return found;
}

Value NVVMLowering::clampedKey(Value first, Value row32) {
  Value last = toI32(add(itemField(Field::KVLen), -1));
  Value key = arith::AddIOp::create(b, loc, toI32(first), row32);
  return fromI32(arith::MinSIOp::create(b, loc, key, last));
}

Value NVVMLowering::kvRowOffset(Value view, KVPart part, Value key, Value entry,
                                ArrayRef<Value> strides) {
  KVRowAddress place = rowAddress(view, part, key);
  if (!strides.empty()) // of scales
    place.strides = strides;
  auto lookup = [&](Value entryIndex) -> Value {
    return entry ? entry : fromI32(loadEntry(view, part, entryIndex));
  };
  place.lookup = lookup;
  return cast<KVViewTypeInterface>(view.getType())
      .buildRowOffset(b, loc, place);
}

KVRowAddress NVVMLowering::rowAddress(Value view, KVPart part, Value key) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  const Argument &pool = poolOf(view, part);
  KVRowAddress place;
  place.strides = pool.strides;
  place.part = part;
  place.head = itemField(Field::KVHead);
  place.key = key;
  place.tableBegin = itemWord(offsetof(fi_item, table_begin), 64);
  int64_t page = type.getPageSize();
  if (page == ShapedType::kDynamic)
    place.pageSize = fromI32(toI32(pool.sizes[type.getKeyDimension()]));
  else if (page > 0)
    place.pageSize = index(page);
  return place;
}

//===----------------------------------------------------------------------===//
// Tiles in memory
//===----------------------------------------------------------------------===//

Value NVVMLowering::loadElements(const Argument &argument, Value offset,
                                 int64_t count) {
  Type element = storedType(argument.element, b);
  Type type = count == 1 ? element : VectorType::get({count}, element);
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  Value loaded =
      LLVM::LoadOp::create(b, loc, type, address(argument, offset),
                           std::min<unsigned>(bytes * count, kChunkBytes));
  if (argument.element.isIndex())
    return toIndex(loaded);
  if (argument.element.isInteger(1))
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne, loaded,
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type)));
  return loaded;
}

void NVVMLowering::storeElements(Value elements, const Argument &argument,
                                 Value offset) {
  auto vector = dyn_cast<VectorType>(elements.getType());
  int64_t count = vector ? vector.getNumElements() : 1;
  unsigned bytes = storedType(argument.element, b).getIntOrFloatBitWidth() / 8;
  LLVM::StoreOp::create(b, loc, elements, address(argument, offset),
                        std::min<unsigned>(bytes * count, kChunkBytes));
}

SmallVector<NVVMLowering::RowOfRegisters>
NVVMLowering::rowsOf(RankedTensorType type) {
  RegisterLayout layout = *RegisterLayout::of(type);
  Value first = laneRow(layout);
  llvm::MapVector<int64_t, RowOfRegisters> rows;
  for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
    Position part = layout.getRegisterPart(reg);
    RowOfRegisters &row = rows[part.row];
    if (!row.row)
      row.row = add(first, part.row);
    if (part.column % layout.getNeighbours() == 0)
      row.pairs.push_back({reg, part.column});
  }
  return llvm::map_to_vector(rows, [](auto &entry) { return entry.second; });
}

Value NVVMLowering::laneInRow(const RegisterLayout &layout) {
  int64_t lanes = layout.getRowLanes();
  return lanes == kLanes ? lane : remainder(lane, lanes);
}

Value NVVMLowering::laneColumn(const RegisterLayout &layout) {
  FragAttr frag = layout.getFrag();
  Value column = mul(laneInRow(layout), layout.getNeighbours());
  if (frag.getColumnWarps() == 1)
    return column;
  return add(column, mul(remainder(holder(frag), frag.getColumnWarps()),
                         getAtomInfo(frag.getAtom()).columns));
}

Value NVVMLowering::laneRow(const RegisterLayout &layout) {
  FragAttr frag = layout.getFrag();
  Value first = index(0);
  if (frag.getWarps() > 1)
    first = mul(divide(holder(frag), frag.getColumnWarps()),
                frag.getRepRows() * getAtomInfo(frag.getAtom()).rows);
  int64_t lanes = layout.getRowLanes();
  return lanes == kLanes ? first : add(first, divide(lane, lanes));
}

Value NVVMLowering::holder(FragAttr frag) {
  return frag.getHolders() == schedule.getWarps()
             ? warp
             : remainder(warp, frag.getHolders());
}

Value NVVMLowering::isHolder(FragAttr frag) {
  if (frag.getHolders() == schedule.getWarps())
    return {};
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, warp,
                               index(frag.getHolders()));
}

Value NVVMLowering::loadTile(RankedTensorType type, const Argument &argument,
                             llvm::function_ref<Value(Value)> offsetOf,
                             Value part, int64_t step) {
  RegisterLayout layout = *RegisterLayout::of(type);
  bool isWide = layout.overColumns();
  int64_t count = layout.getNeighbours();
  SmallVector<Value> registers(layout.getRegisters());
  for (RowOfRegisters &row : rowsOf(type)) {
    Value offset = offsetOf(row.row);
    Value begin = offset;
    if (isWide)
      offset = add(offset, mul(laneColumn(layout), step));
    if (isWide && part)
      offset = add(offset, mul(part, type.getDimSize(1)));
    for (auto [reg, column] : row.pairs) {
      Value at = add(offset, column * step);
      if (isWide && layout.goesBeyond(column, type.getDimSize(1)))
        at = add(begin,
                 mul(columnOffset(layout, column, type.getDimSize(1)), step));
      if (step > 1) {
        for (int64_t i = 0; i < count; ++i)
          registers[reg + i] = loadElements(argument, add(at, i * step), 1);
        continue;
      }
      Value loaded = loadElements(argument, at, count);
      for (int64_t i = 0; i < count; ++i)
        registers[reg + i] = count > 1 ? extract(loaded, i) : loaded;
    }
  }
  Value result = fromElements(registers);
  Type element = type.getElementType();
  if (argument.element == element)
    return result;
  if (isCode(argument.element) || isa<Float8E8M0FNUType>(argument.element))
    return fromCodes(result, argument.element, element);
  return arith::ExtFOp::create(b, loc, lowered(type), result);
}

void NVVMLowering::storeTile(Value registers, RankedTensorType type,
                             const Argument &argument, Value rowLimit,
                             llvm::function_ref<Value(Value)> offsetOf,
                             Value part, int64_t step) {
  RegisterLayout layout = *RegisterLayout::of(type);
  bool isWide = layout.overColumns();
  Value writes = isHolder(layout.getFrag());
  if (!isWide) { // one lane of those that share a row, of one group
    Value first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        laneColumn(layout), index(0));
    writes = writes ? arith::AndIOp::create(b, loc, writes, first).getResult()
                    : first;
    if (part)
      writes = arith::AndIOp::create(
          b, loc, writes,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, part,
                                index(0)));
  }
  for (RowOfRegisters &row : rowsOf(type)) {
    Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         row.row, rowLimit);
    if (writes)
      inside = arith::AndIOp::create(b, loc, inside, writes);
    auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value offset = offsetOf(row.row);
    if (isWide)
      offset = add(offset, mul(laneColumn(layout), step));
    if (isWide && part)
      offset = add(offset, mul(part, type.getDimSize(1)));
    for (auto [reg, column] : row.pairs) {
      OpBuilder::InsertionGuard all(b);
      Value some =
          isWide ? isInside(layout, column, type.getDimSize(1)) : Value();
      if (some) {
        auto part = scf::IfOp::create(b, loc, some, /*withElseRegion=*/false);
        b.setInsertionPointToStart(part.thenBlock());
      }
      if (step > 1) {
        for (int64_t i = 0; i < layout.getNeighbours(); ++i)
          storeElements(extract(registers, reg + i), argument,
                        add(offset, (column + i) * step));
        continue;
      }
      storeElements(neighbours(registers, reg, layout.getNeighbours()),
                    argument, add(offset, column));
    }
  }
}

Value NVVMLowering::rowBegin(const Argument &argument, Value row, int64_t group,
                             bool clamp, Value head, Value first) {
  Value offset =
      rowOffset(argument, row, group, clamp, head ? scalar(head) : Value());
  return first ? add(offset, scalar(first)) : offset;
}

LogicalResult NVVMLowering::lowerLoadRows(LoadRowsOp op) {
  if (isRowAtom(layoutOf(op.getResult()).getFrag().getAtom()))
    return loadOwnRows(op);
  const Argument &source = argumentOf(op.getSource());
  map.map(op.getResult(), loadTile(
                              op.getType(), source,
                              [&](Value row) {
                                return rowBegin(source, row, op.getGroup(),
                                                /*clamp=*/true, op.getHead(),
                                                op.getFirst());
                              },
                              /*part=*/Value(), op.getStep()));
  return success();
}

LogicalResult NVVMLowering::lowerStoreRows(StoreRowsOp op) {
  const Argument &target = argumentOf(op.getTarget());
  storeTile(
      map.lookup(op.getTile()), op.getTile().getType(), target,
      itemField(Field::RowCount),
      [&](Value row) {
        return rowBegin(target, row, op.getGroup(), /*clamp=*/false,
                        op.getHead(), op.getFirst());
      },
      partOf(op.getPart()), op.getStep());
  return success();
}

LogicalResult NVVMLowering::lowerLoadKV(LoadKVOp op) {
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  if (!isByteCode(view.getPartType(op.getPart())) &&
      isCode(view.getPartType(op.getPart())))
    return op.emitOpError("expected codes of 4 bits to go through a buffer: "
                          "run fi-tile-place-operands first");
  const Argument &pool = poolOf(op.getView(), op.getPart());
  map.map(op.getResult(), loadTile(op.getType(), pool, [&](Value row) {
            Value key = clampedKey(scalar(op.getKey()), toI32(row));
            return kvRowOffset(op.getView(), op.getPart(), key);
          }));
  return success();
}

LogicalResult NVVMLowering::lowerStoreKV(StoreKVOp op) {
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  if (view.getPoolColumns(op.getPart()) != view.getPartDim(op.getPart())) {
    if (layoutOf(op.getTile()).getNeighbours() != 2)
      return op.emitOpError("expected lanes that hold pairs of columns, but "
                            "got ")
             << op.getTile().getType();
    storePacked(op);
    return success();
  }
  const Argument &pool = poolOf(op.getView(), op.getPart());
  storeTile(
      map.lookup(op.getTile()), op.getTile().getType(), pool,
      itemField(Field::RowCount),
      [&](Value row) {
        Value offset = kvRowOffset(op.getView(), op.getPart(),
                                   add(scalar(op.getKey()), row));
        return op.getFirst() ? add(offset, scalar(op.getFirst())) : offset;
      },
      /*part=*/Value(), op.getStep());
  return success();
}

//===----------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------===//

Value NVVMLowering::gatherElement(const Argument &argument,
                                  ArrayRef<Value> indices) {
  Value flat = index(0), inRange;
  for (auto [dim, i] : llvm::enumerate(indices)) {
    // One unsigned comparison is both bounds.
    Value fits = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, i,
                                       argument.sizes[dim]);
    inRange = inRange ? arith::AndIOp::create(b, loc, inRange, fits).getResult()
                      : fits;
    flat = add(flat, mul(i, argument.strides[dim]));
  }
  if (!inRange)
    return loadElements(argument, flat, 1);
  auto read = scf::IfOp::create(b, loc, TypeRange{argument.element}, inRange,
                                true, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(read.thenBlock());
  scf::YieldOp::create(b, loc, loadElements(argument, flat, 1));
  b.setInsertionPointToStart(read.elseBlock());
  scf::YieldOp::create(
      b, loc,
      arith::ConstantOp::create(b, loc, b.getZeroAttr(argument.element))
          .getResult());
  return read.getResult(0);
}

LogicalResult NVVMLowering::lowerGather(GatherOp op) {
  if (op.getBits())
    return lowerGatherBits(op);
  const Argument &source = argumentOf(op.getSource());
  SmallVector<Value> indices = llvm::map_to_vector(
      op.getIndices(), [&](Value value) { return scalar(value); });
  auto toIndexType = [&](Value value) {
    return value.getType().isIndex() ? value : toIndex(value);
  };
  if (!isTile(op.getResult().getType())) {
    for (Value &i : indices)
      i = toIndexType(i);
    map.map(op.getResult(), gatherElement(source, indices));
    return success();
  }
  RegisterLayout layout = layoutOf(op.getResult());
  SmallVector<Value> results;
  for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
    SmallVector<Value> at;
    for (Value i : indices)
      at.push_back(
          toIndexType(isa<VectorType>(i.getType()) ? extract(i, reg) : i));
    results.push_back(gatherElement(source, at));
  }
  map.map(op.getResult(), fromElements(results));
  return success();
}
