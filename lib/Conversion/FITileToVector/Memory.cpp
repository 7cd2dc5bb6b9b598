//===- Memory.cpp - ABI, loads and stores ---------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How kernels see parameters, items and tensors (include/fi/ABI/KernelABI.h),
// and how rows go between memory and buffers.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// Arena
//===----------------------------------------------------------------------===//

Value KernelLowering::allocateRaw(ArrayRef<int64_t> shape, Type element) {
  if (element.isInteger(1))
    element = b.getI8Type();
  int64_t bytes = element.isIndex() ? 8 : element.getIntOrFloatBitWidth() / 8;
  for (int64_t size : shape)
    bytes *= size;
  Value offset = arith::ConstantIndexOp::create(entry, loc, scratchBytes);
  // One line more than needed: rows of a power of two bytes would all fall into
  // one set of the cache.
  scratchBytes +=
      (bytes + FI_ALIGNMENT - 1) / FI_ALIGNMENT * FI_ALIGNMENT + FI_ALIGNMENT;
  return memref::ViewOp::create(entry, loc, MemRefType::get(shape, element),
                                arena, offset, ValueRange());
}

Value KernelLowering::allocate(RankedTensorType type) {
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (columns == 1)
    return allocateRaw({padded(rows)}, type.getElementType());
  if (rows == 1)
    return allocateRaw({padded(columns)}, type.getElementType());
  return allocateRaw({rows, rowLength(columns, type.getElementType())},
                     type.getElementType());
}

/// Columns of a buffer with a row's end left free: rows a power of two of bytes
/// apart share few sets of the cache, and loads of one seem to depend on stores
/// to another whose addresses agree in their low bits.
int64_t KernelLowering::rowLength(int64_t columns, Type element) const {
  int64_t length = padded(columns);
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  int64_t line = FI_ALIGNMENT * 8 / bits;
  return length * bits / 8 % (4 * FI_ALIGNMENT) == 0 ? length + line : length;
}

Value KernelLowering::viewAsPairs(Value buffer) {
  Value &pairs = pairViews[buffer];
  if (pairs)
    return pairs;
  auto view = buffer.getDefiningOp<memref::ViewOp>();
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= 2;
  OpBuilder at(view);
  at.setInsertionPointAfter(view);
  return pairs = memref::ViewOp::create(
             at, loc, MemRefType::get(shape, at.getI32Type()), arena,
             view.getByteShift(), ValueRange());
}

//===----------------------------------------------------------------------===//
// Signature and items
//===----------------------------------------------------------------------===//

Value KernelLowering::loadField(Value pointer, int64_t offset, unsigned bits) {
  Type type = b.getIntegerType(bits);
  Value address =
      LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                          ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  Value value = LLVM::LoadOp::create(b, loc, type, address);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}

/// memref<?xT> over unknown many elements from `pointer`.
Value KernelLowering::flatMemRef(Value pointer, Type element) {
  if (element.isInteger(1))
    element = b.getI8Type();
  auto type = MemRefType::get({ShapedType::kDynamic}, element);
  Type i64 = b.getI64Type();
  auto array = LLVM::LLVMArrayType::get(i64, 1);
  auto descriptor = LLVM::LLVMStructType::getLiteral(
      b.getContext(),
      {pointer.getType(), pointer.getType(), i64, array, array});
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(value));
  };
  Value fields = LLVM::PoisonOp::create(b, loc, descriptor);
  auto insert = [&](Value value, ArrayRef<int64_t> position) {
    fields = LLVM::InsertValueOp::create(b, loc, fields, value, position);
  };
  insert(pointer, {0});
  insert(pointer, {1});
  insert(constant(0), {2});
  insert(constant(INT64_MAX), {3, 0});
  insert(constant(1), {4, 0});
  return UnrealizedConversionCastOp::create(b, loc, type, fields).getResult(0);
}

void KernelLowering::createFunction() {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  Type i64 = b.getI64Type();
  function = func::FuncOp::create(
      b, loc, kernel.getSymName(),
      b.getFunctionType({pointer, pointer, i64, i64, pointer}, {}));
  Block *block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
  Value params = block->getArgument(0), work = block->getArgument(1);
  auto loadPointer = [&](Value from, int64_t offset) -> Value {
    Value address = LLVM::GEPOp::create(
        b, loc, pointer, b.getI8Type(), from,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    return LLVM::LoadOp::create(b, loc, pointer, address);
  };
  itemsPointer = loadPointer(work, offsetof(fi_work, items));
  rangesPointer = loadPointer(work, offsetof(fi_work, ranges));
  stateOutput =
      flatMemRef(loadPointer(work, offsetof(fi_work, state_o)), b.getF32Type());
  stateStatistic = flatMemRef(loadPointer(work, offsetof(fi_work, state_lse)),
                              b.getF32Type());
  int64_t slot = 0;
  auto nextSlot = [&] { return 8 * slot++; };
  for (BlockArgument argument :
       kernel.getBody().front().getArguments().drop_back()) {
    Argument &lowered = arguments.emplace_back();
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      Type scalarType = argument.getType();
      int64_t offset = nextSlot();
      if (auto floating = dyn_cast<FloatType>(scalarType)) {
        Value address = LLVM::GEPOp::create(
            b, loc, pointer, b.getI8Type(), params,
            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
        lowered.base = LLVM::LoadOp::create(b, loc, floating, address);
      } else {
        Value value = loadField(params, offset, 64);
        if (!scalarType.isIndex())
          value = arith::IndexCastOp::create(b, loc, scalarType, value);
        lowered.base = value;
      }
      scalars.map(argument, lowered.base);
      continue;
    }
    lowered.base =
        flatMemRef(loadPointer(params, nextSlot()), type.getElementType());
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      lowered.sizes.push_back(loadField(params, nextSlot(), 64));
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      lowered.strides.push_back(loadField(params, nextSlot(), 64));
  }
  // The arena, as bytes.
  arena = flatMemRef(block->getArgument(4), b.getI8Type());
}

Value KernelLowering::itemField(Field field) {
  ItemFieldPlace place = getItemFieldPlace(field);
  return loadField(itemPointer, place.offset, place.bits);
}

//===----------------------------------------------------------------------===//
// Rows of tensors
//===----------------------------------------------------------------------===//

/// Offset of packed row `row` of the item; rows beyond the last repeat it.
Value KernelLowering::rowOffset(const Argument &argument, Value row,
                                int64_t group, bool clamp, Value ofHead) {
  if (clamp)
    row = minimum(row, sub(itemField(Field::RowCount), index(1)));
  Value packed = add(itemField(Field::RowBegin), row);
  Value token = packed, head = ofHead ? ofHead : itemField(Field::KVHead);
  if (group > 1) {
    token = arith::DivUIOp::create(b, loc, packed, index(group));
    Value within = arith::RemUIOp::create(b, loc, packed, index(group));
    head = add(mul(head, group), within);
  }
  token = add(token, itemField(Field::QBegin));
  Value offset = mul(token, argument.strides[0]);
  if (argument.strides.size() == 1) // one head
    return offset;
  return add(offset, mul(head, argument.strides[1]));
}

/// The bits of f8E5M2 are the upper half of an f16; those of f8E4M3FN are an
/// f16's but for the last exponent bit and a factor of 2^8, which also holds
/// for numbers that are not normal. What is no number becomes some number
/// (QNT7).
Value KernelLowering::widen(Value part) {
  auto type = cast<VectorType>(part.getType());
  Type element = type.getElementType();
  Type f32 = b.getF32Type();
  VectorType wide = type.clone(f32);
  if (element == f32)
    return part;
  if (element.isInteger(8))
    return arith::SIToFPOp::create(b, loc, wide, part);
  if (!isByteCode(element) && !isa<Float8E8M0FNUType>(element))
    return arith::ExtFOp::create(b, loc, wide, part);
  if (isa<Float8E8M0FNUType>(element)) {
    // The exponent of an f32, whose smallest one is not of normal numbers.
    VectorType exponents = type.clone(b.getI32Type());
    auto number = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(exponents, value));
    };
    Value bits =
        arith::BitcastOp::create(b, loc, type.clone(b.getI8Type()), part);
    bits = arith::ExtUIOp::create(b, loc, exponents, bits);
    bits = arith::ShLIOp::create(b, loc, bits, number(23));
    bits = arith::MaxUIOp::create(b, loc, bits, number(1 << 22));
    return arith::BitcastOp::create(b, loc, wide, bits);
  }
  VectorType words = type.clone(b.getI16Type());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(words, static_cast<int16_t>(value)));
  };
  Value bits =
      arith::BitcastOp::create(b, loc, type.clone(b.getI8Type()), part);
  bits = arith::ExtUIOp::create(b, loc, words, bits);
  bits = arith::ShLIOp::create(b, loc, bits, constant(8));
  VectorType halves = type.clone(b.getF16Type());
  if (isa<Float8E5M2Type>(element)) {
    bits = arith::BitcastOp::create(b, loc, halves, bits);
    return arith::ExtFOp::create(b, loc, wide, bits);
  }
  // The sign stays, the rest moves by one bit.
  Value rest = arith::ShRSIOp::create(b, loc, bits, constant(1));
  bits = arith::AndIOp::create(b, loc, rest, constant(0xbfff));
  bits = arith::BitcastOp::create(b, loc, halves, bits);
  bits = arith::ExtFOp::create(b, loc, wide, bits);
  Value factor =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(wide, 256.0f));
  return arith::MulFOp::create(b, loc, bits, factor);
}

/// `count` elements from `offset`, widened to f32, padded with zeros to a
/// vector.
Value KernelLowering::loadPart(Value base, Value offset, int64_t count,
                               Type element) {
  Value part = vector::LoadOp::create(b, loc, VectorType::get({count}, element),
                                      base, ValueRange{offset});
  part = widen(part);
  if (count == W)
    return part;
  return vector::InsertStridedSliceOp::create(
      b, loc, part, splatVector(b.getF32Type(), 0.0), ArrayRef<int64_t>{0},
      ArrayRef<int64_t>{1});
}

void KernelLowering::copyRowIn(Value base, Value offset, int64_t columns,
                               Type element, Value buffer, Value row,
                               int64_t step) {
  Type from = cast<MemRefType>(base.getType()).getElementType();
  if (step > 1) {
    loop(index(0), index(columns), 1, [&](Value column) {
      Value at = add(offset, mul(column, step));
      Value value =
          from == element && !element.isF32()
              ? memref::LoadOp::create(b, loc, base, at).getResult()
              : vector::ExtractOp::create(b, loc, loadPart(base, at, 1, from),
                                          ArrayRef<int64_t>{0})
                    .getResult();
      memref::StoreOp::create(b, loc, value, buffer, ValueRange{row, column});
    });
    return;
  }
  forChunks(columns, [&](Value column, int64_t count) {
    Value at = add(offset, column);
    Value part;
    if (from == element && !element.isF32()) {
      part = vector::LoadOp::create(b, loc, VectorType::get({count}, from),
                                    base, ValueRange{at});
      if (count < W)
        part = vector::InsertStridedSliceOp::create(
            b, loc, part, splatVector(element, 0.0), ArrayRef<int64_t>{0},
            ArrayRef<int64_t>{1});
    } else {
      part = loadPart(base, at, count, from);
    }
    SmallVector<Value> indices = {column};
    if (row)
      indices.insert(indices.begin(), row);
    vector::StoreOp::create(b, loc, part, buffer, indices);
  });
}

void KernelLowering::copyRowOut(Value buffer, Value row, int64_t columns,
                                Value base, Value offset, int64_t step) {
  Type element = cast<MemRefType>(buffer.getType()).getElementType();
  if (step > 1) {
    loop(index(0), index(columns), 1, [&](Value column) {
      memref::StoreOp::create(
          b, loc, memref::LoadOp::create(b, loc, buffer, {row, column}), base,
          add(offset, mul(column, step)));
    });
    return;
  }
  forChunks(columns, [&](Value column, int64_t count) {
    Value part =
        vector::LoadOp::create(b, loc, VectorType::get({count}, element),
                               buffer, ValueRange{row, column});
    vector::StoreOp::create(b, loc, part, base,
                            ValueRange{add(offset, column)});
  });
}

/// Rows of a tensor lie far apart, often a page of memory each: so many rows
/// ahead of its use a row is asked for.
static constexpr int64_t kRowsAhead = 8;

void KernelLowering::prefetchRow(const Argument &argument, Value offset,
                                 int64_t columns, bool forWriting) {
  if (isLong(columns)) // the hardware follows it
    return;
  Type element = cast<MemRefType>(argument.base.getType()).getElementType();
  int64_t line = FI_ALIGNMENT * 8 / element.getIntOrFloatBitWidth();
  for (int64_t column = 0; column < columns; column += line)
    memref::PrefetchOp::create(b, loc, argument.base,
                               ValueRange{add(offset, column)}, forWriting,
                               /*localityHint=*/3, /*isDataCache=*/true);
}

LogicalResult KernelLowering::lowerLoadRows(LoadRowsOp op) {
  const Argument &source =
      arguments[cast<BlockArgument>(op.getSource()).getArgNumber()];
  RankedTensorType type = op.getType();
  Value buffer = allocate(type);
  bool scalarRows = kindOf(op.getResult()) == Kind::Rows;
  Value limit = rowLimit(fixedRows(op.getResult()));
  auto begin = [&](Value row) {
    Value offset = rowOffset(source, row, op.getGroup(), /*clamp=*/true,
                             op.getHead() ? scalar(op.getHead()) : Value());
    return op.getFirst() ? add(offset, scalar(op.getFirst())) : offset;
  };
  int64_t columns = type.getDimSize(1), step = op.getStep();
  loop(index(0), limit, 1, [&](Value row) {
    Value offset = begin(row);
    if (scalarRows) {
      Value value = memref::LoadOp::create(b, loc, source.base, offset);
      if (value.getType().getIntOrFloatBitWidth() == 8 &&
          type.getElementType().isF32()) {
        value = vector::BroadcastOp::create(
            b, loc, VectorType::get({1}, value.getType()), value);
        value = vector::ExtractOp::create(b, loc, widen(value),
                                          ArrayRef<int64_t>{0});
      } else if (value.getType() != type.getElementType()) {
        value = arith::ExtFOp::create(b, loc, type.getElementType(), value);
      }
      memref::StoreOp::create(b, loc, value, buffer, row);
    } else {
      prefetchRow(source, begin(add(row, kRowsAhead)), columns * step,
                  /*forWriting=*/false);
      copyRowIn(source.base, offset, columns, type.getElementType(), buffer,
                row, step);
    }
  });
  buffers[op.getResult()] = buffer;
  return success();
}

LogicalResult KernelLowering::lowerLoadColumns(LoadColumnsOp op) {
  const Argument &source =
      arguments[cast<BlockArgument>(op.getSource()).getArgNumber()];
  RankedTensorType type = op.getType();
  Value buffer = allocate(type);
  copyRowIn(source.base, index(0), type.getDimSize(1), type.getElementType(),
            buffer, /*row=*/Value());
  buffers[op.getResult()] = buffer;
  return success();
}

LogicalResult KernelLowering::lowerStoreRows(StoreRowsOp op) {
  if (failed(materialise({op.getTile()}, op->getBlock())))
    return failure();
  const Argument &target =
      arguments[cast<BlockArgument>(op.getTarget()).getArgNumber()];
  Value buffer = buffers.lookup(op.getTile());
  bool scalarRows = kindOf(op.getTile()) == Kind::Rows;
  auto begin = [&](Value row, bool clamp) {
    Value offset = rowOffset(target, row, op.getGroup(), clamp,
                             op.getHead() ? scalar(op.getHead()) : Value());
    return op.getFirst() ? add(offset, scalar(op.getFirst())) : offset;
  };
  int64_t columns = tileType(op.getTile()).getDimSize(1), step = op.getStep();
  loop(index(0), itemField(Field::RowCount), 1, [&](Value row) {
    Value offset = begin(row, /*clamp=*/false);
    if (scalarRows) {
      Value value = memref::LoadOp::create(b, loc, buffer, row);
      memref::StoreOp::create(b, loc, value, target.base, offset);
    } else {
      prefetchRow(target, begin(add(row, kRowsAhead), /*clamp=*/true),
                  columns * step, /*forWriting=*/true);
      copyRowOut(buffer, row, columns, target.base, offset, step);
    }
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

const KernelLowering::Argument &KernelLowering::poolOf(Value view,
                                                       KVPart part) {
  auto type = cast<KVViewTypeInterface>(view.getType());
  return arguments[views.find(view)->second.pools[type.getPool(part)]];
}

Value KernelLowering::kvRowOffset(Value view, KVPart part, Value key,
                                  ArrayRef<Value> strides) {
  const View &lowered = views.find(view)->second;
  auto type = cast<KVViewTypeInterface>(view.getType());
  const Argument &pool = poolOf(view, part);
  KVRowAddress address;
  address.strides = strides.empty() ? ArrayRef<Value>(pool.strides) : strides;
  address.part = part;
  address.head = itemField(Field::KVHead);
  address.key = key;
  address.tableBegin =
      loadField(itemPointer, offsetof(fi_item, table_begin), 64);
  auto lookup = [&](Value entryIndex) -> Value {
    Value table = arguments[lowered.pages[type.getTable(part)]].base;
    Value page = memref::LoadOp::create(b, loc, table, entryIndex);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), page);
  };
  address.lookup = lookup;
  int64_t page = type.getPageSize();
  if (page == ShapedType::kDynamic)
    address.pageSize = pool.sizes[type.getKeyDimension()];
  else if (page > 0)
    address.pageSize = index(page);
  return type.buildRowOffset(b, loc, address);
}

/// Whether successive keys of a head lie one behind the other. Where they do
/// not, their distance is that of all heads, usually a power of two, and a tile
/// of rows falls into few sets of the cache.
static bool rowsAreAdjacent(KVViewTypeInterface view) {
  if (view.getKVHeads() == 1)
    return true;
  std::optional<unsigned> heads = view.getHeadDimension();
  return !heads || *heads < view.getKeyDimension();
}

/// Buffers for where the rows of tiles are, and those of the tiles after them.
void KernelLowering::describeRows(ArrayRef<LoadKVOp> loads, bool withNext) {
  for (LoadKVOp op : loads) {
    Value base = poolOf(op.getView(), op.getPart()).base;
    KVRows rows;
    rows.base = base;
    rows.rows = op.getType().getDimSize(0);
    auto view = cast<KVViewTypeInterface>(op.getView().getType());
    rows.columns = view.getPoolColumns(op.getPart());
    rows.isPacked = rows.columns != op.getType().getDimSize(1);
    rows.element = cast<MemRefType>(base.getType()).getElementType();
    rows.offsets = allocateRaw({padded(rows.rows)}, b.getIndexType());
    if (withNext)
      rows.nextOffsets = allocateRaw({padded(rows.rows)}, b.getIndexType());
    rows.adjacent = rowsAreAdjacent(view);
    kvRows[op.getResult()] = rows;
  }
}

/// Finds the rows of tiles: one loop for keys and values, which share their
/// page. Keys beyond the last repeat it.
void KernelLowering::locateRows(ArrayRef<LoadKVOp> loads, Value key,
                                bool next) {
  int64_t keys = 0;
  for (LoadKVOp op : loads)
    keys = std::max(keys, op.getType().getDimSize(0));
  Value last = sub(itemField(Field::KVLen), index(1));
  loop(index(0), index(keys), 1, [&](Value i) {
    Value clamped = minimum(add(key, i), last);
    for (LoadKVOp op : loads) {
      const KVRows &rows = kvRows.find(op.getResult())->second;
      memref::StoreOp::create(b, loc,
                              kvRowOffset(op.getView(), op.getPart(), clamped),
                              next ? rows.nextOffsets : rows.offsets, i);
    }
  });
}

/// The next tile becomes the current one: its rows are found once.
void KernelLowering::advanceRows(ArrayRef<LoadKVOp> loads) {
  for (LoadKVOp op : loads) {
    const KVRows &rows = kvRows.find(op.getResult())->second;
    for (int64_t i = 0; i < rows.rows; i += W)
      storeVector(loadVector(rows.nextOffsets, {index(i)}, b.getIndexType()),
                  rows.offsets, {index(i)});
  }
}

/// Loads a few bytes of each cache line of the tiles: memory delivers all lines
/// at once, where work on them would wait for one after the other.
void KernelLowering::touchRows(ArrayRef<LoadKVOp> loads) {
  VectorType words = VectorType::get({4}, b.getI32Type());
  Value zero = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(words, b.getI32IntegerAttr(0)));
  Value sink = allocateRaw({16}, b.getI32Type());
  LoadKVOp first = loads.front();
  auto rowsLoop =
      scf::ForOp::create(b, loc, index(0), index(first.getType().getDimSize(0)),
                         index(1), SmallVector<Value>(4, zero));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rowsLoop.getBody());
    SmallVector<Value> sums(rowsLoop.getRegionIterArgs());
    unsigned turn = 0;
    for (LoadKVOp op : loads) {
      const KVRows &rows = kvRows.find(op.getResult())->second;
      int64_t bytes = rows.element.getIntOrFloatBitWidth() / 8;
      Value offset = memref::LoadOp::create(b, loc, rows.offsets,
                                            rowsLoop.getInductionVar());
      int64_t line = FI_ALIGNMENT / bytes, count = 16 / bytes;
      for (int64_t column = 0; column + count <= rows.columns; column += line) {
        Value part = vector::LoadOp::create(
            b, loc, VectorType::get({count}, rows.element), rows.base,
            ValueRange{add(offset, column)});
        part = vector::BitCastOp::create(b, loc, words, part);
        Value &sum = sums[turn++ % 4];
        sum = arith::XOrIOp::create(b, loc, sum, part);
      }
    }
    scf::YieldOp::create(b, loc, sums);
  }
  for (int64_t i = 0; i < 4; ++i)
    vector::StoreOp::create(b, loc, rowsLoop.getResult(i), sink,
                            ValueRange{index(4 * i)});
}

/// Asks for the line of the next tile that corresponds to one in use now: for
/// the first-level cache where a tile is worked on for a short time only.
void KernelLowering::prefetch(const KVRows &rows, Value row, Value column) {
  if (!rows.nextOffsets)
    return;
  Value offset = memref::LoadOp::create(b, loc, rows.nextOffsets, row);
  memref::PrefetchOp::create(b, loc, rows.base, ValueRange{add(offset, column)},
                             /*isWrite=*/false,
                             /*localityHint=*/schedule.getStream() ? 3 : 2,
                             /*isDataCache=*/true);
}

LogicalResult KernelLowering::lowerLoadKV(LoadKVOp op) {
  if (!kvRows.count(op.getResult())) {
    describeRows({op}, /*withNext=*/false);
    locateRows({op}, scalar(op.getKey()), /*next=*/false);
  }
  KVRows rows = kvRows.find(op.getResult())->second;
  bool isReadInPlace = llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto dot = dyn_cast<DotOp>(use.getOwner());
    return isa<ColumnsOp>(use.getOwner()) ||
           (dot && use.getOperandNumber() == 1);
  });
  if (isReadInPlace && !rows.isPacked)
    return success(); // a product reads or packs them
  RankedTensorType type = op.getType();
  Value buffer = allocate(type);
  loop(index(0), index(rows.rows), 1, [&](Value row) {
    Value offset = memref::LoadOp::create(b, loc, rows.offsets, row);
    if (rows.isPacked)
      copyPackedRowIn(rows.base, offset, type.getDimSize(1), buffer, row);
    else
      copyRowIn(rows.base, offset, type.getDimSize(1), type.getElementType(),
                buffer, row);
  });
  kvRows.erase(op.getResult());
  buffers[op.getResult()] = buffer;
  return success();
}

LogicalResult KernelLowering::lowerStoreKV(StoreKVOp op) {
  if (failed(materialise({op.getTile()}, op->getBlock())))
    return failure();
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  Value base = poolOf(op.getView(), op.getPart()).base;
  Value buffer = buffers.lookup(op.getTile());
  Value first = scalar(op.getKey());
  loop(index(0), itemField(Field::RowCount), 1, [&](Value row) {
    Value offset = kvRowOffset(op.getView(), op.getPart(), add(first, row));
    int64_t columns = tileType(op.getTile()).getDimSize(1);
    // Two codes to a byte: of whole rows (TILE5).
    if (view.getPoolColumns(op.getPart()) != view.getPartDim(op.getPart())) {
      copyPackedRowOut(buffer, row, columns, base, offset);
      return;
    }
    if (op.getFirst())
      offset = add(offset, scalar(op.getFirst()));
    copyRowOut(buffer, row, columns, base, offset, op.getStep());
  });
  return success();
}

//===----------------------------------------------------------------------===//
// States of split keys
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerStoreState(StoreStateOp op) {
  if (failed(materialise({op.getOutput(), op.getStatistic()}, op->getBlock())))
    return failure();
  int64_t rows = tileType(op.getOutput()).getDimSize(0);
  int64_t columns = tileType(op.getOutput()).getDimSize(1);
  Value output = buffers.lookup(op.getOutput());
  Value statistic = buffers.lookup(op.getStatistic());
  Value firstRow = mul(itemField(Field::Slot), rows);
  loop(index(0), itemField(Field::RowCount), 1, [&](Value row) {
    Value at = add(firstRow, row);
    copyRowOut(output, row, columns, stateOutput, mul(at, columns));
    Value value = memref::LoadOp::create(b, loc, statistic, row);
    memref::StoreOp::create(b, loc, value, stateStatistic, at);
  });
  return success();
}

LogicalResult KernelLowering::lowerLoadState(LoadStateOp op) {
  RankedTensorType type = tileType(op.getOutput());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  Value output = allocate(type);
  Value statistic = allocate(tileType(op.getStatistic()));
  Value slot = add(itemField(Field::Slot), scalar(op.getIndex()));
  Value firstRow = mul(slot, rows);
  Value last = sub(itemField(Field::RowCount), index(1));
  Value limit = rowLimit(
      std::max(fixedRows(op.getOutput()), fixedRows(op.getStatistic())));
  loop(index(0), limit, 1, [&](Value row) {
    Value at = add(firstRow, minimum(row, last));
    copyRowIn(stateOutput, mul(at, columns), columns, type.getElementType(),
              output, row);
    Value value = memref::LoadOp::create(b, loc, stateStatistic, at);
    memref::StoreOp::create(b, loc, value, statistic, row);
  });
  buffers[op.getOutput()] = output;
  buffers[op.getStatistic()] = statistic;
  return success();
}
