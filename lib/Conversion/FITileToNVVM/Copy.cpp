//===- Copy.cpp - copies into shared memory -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a group take the chunks of 16 bytes of a buffer in turn, rows
// after rows, so that neighbours read neighbouring bytes.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

NVVMLowering::ChunkMap::ChunkMap(BufType type, int64_t threads)
    : threads(threads) {
  elements = kChunkBytes / (type.getElement().getIntOrFloatBitWidth() / 8);
  chunks = llvm::divideCeil(type.getColumns(), elements);
  // A product reads 16 columns at once: what is beyond the last is zero.
  padded = llvm::divideCeil(type.getColumns(), 16) * 16 / elements;
  total = type.getRows() * padded;
  rowsPerTurn = threads % padded == 0 ? threads / padded : 0;
}

/// Number of the chunk that a thread copies in a turn.
Value NVVMLowering::chunkNumber(const ChunkMap &chunks, int64_t turn) {
  return add32(thread32, turn * chunks.threads);
}

Value NVVMLowering::chunkRow(const ChunkMap &chunks, int64_t turn) {
  OpBuilder::InsertionGuard outside(b);
  b.restoreInsertionPoint(entry.saveInsertionPoint());
  if (chunks.rowsPerTurn == 0)
    return arith::DivUIOp::create(b, loc, chunkNumber(chunks, turn),
                                  i32(chunks.padded));
  Value first = arith::DivUIOp::create(b, loc, thread32, i32(chunks.padded));
  return add32(first, turn * chunks.rowsPerTurn);
}

Value NVVMLowering::sharedPointerAt(Value offset) {
  Value at = arith::AddIOp::create(b, loc, sharedBase, offset);
  return LLVM::IntToPtrOp::create(b, loc, sharedPointer, at);
}

void NVVMLowering::copyRows(
    BufType type, Value buffer,
    llvm::function_ref<Value(Value, int64_t, Value)> pointerTo) {
  ChunkMap chunks(type, schedule.getWarps() * kLanes);
  SmemAttr layout = type.getLayout();
  // Turns whose rows are a multiple of 8 apart have their chunks at one
  // distance.
  bool even = chunks.rowsPerTurn != 0 &&
              (layout.getSwizzle() == 0 || chunks.rowsPerTurn % 8 == 0);
  auto binary = [&](auto tag, Value x, int64_t y) -> Value {
    return decltype(tag)::create(b, loc, x, i32(y));
  };
  Value first;
  for (int64_t turn = 0; turn < chunks.getTurns(); ++turn) {
    OpBuilder::InsertionGuard guard(b);
    Value row = chunkRow(chunks, turn), chunk, place;
    {
      // Where a chunk lies depends on the thread alone.
      OpBuilder::InsertionGuard outside(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      int64_t counted = chunks.rowsPerTurn ? 0 : turn;
      chunk = chunks.padded == 1
                  ? i32(0)
                  : binary(arith::RemUIOp(), chunkNumber(chunks, counted),
                           chunks.padded);
      Value from = even ? chunkRow(chunks, 0) : row;
      Value swizzled = chunk;
      if (layout.getSwizzle())
        swizzled = arith::XOrIOp::create(b, loc, chunk,
                                         binary(arith::RemUIOp(), from, 8));
      place = arith::AddIOp::create(
          b, loc, binary(arith::MulIOp(), from, layout.getPitch()),
          binary(arith::MulIOp(), swizzled, kChunkBytes));
    }
    if ((turn + 1) * chunks.threads > chunks.total) {
      Value wanted =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                chunkNumber(chunks, turn), i32(chunks.total));
      auto branch = scf::IfOp::create(b, loc, wanted, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value target;
    if (even && first) {
      target = first;
    } else {
      target = sharedPointerAt(arith::AddIOp::create(b, loc, buffer, place));
      if (even)
        first = target;
    }
    if (even && turn > 0) {
      auto distance =
          static_cast<int32_t>(turn * chunks.rowsPerTurn * layout.getPitch());
      target = LLVM::GEPOp::create(b, loc, sharedPointer, b.getI8Type(), target,
                                   ArrayRef<LLVM::GEPArg>{distance});
    }
    Value size, column = chunk;
    if (chunks.padded != chunks.chunks) {
      Value real = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         chunk, i32(chunks.chunks));
      size = arith::SelectOp::create(b, loc, real, i32(kChunkBytes), i32(0));
      column = arith::SelectOp::create(b, loc, real, chunk, i32(0));
    }
    Value bytes = arith::MulIOp::create(b, loc, column, i32(kChunkBytes));
    NVVM::CpAsyncOp::create(
        b, loc, target, pointerTo(row, turn, fromI32(bytes)),
        b.getI32IntegerAttr(kChunkBytes),
        NVVM::LoadCacheModifierKindAttr::get(b.getContext(),
                                             NVVM::LoadCacheModifierKind::CG),
        size);
  }
}

LogicalResult NVVMLowering::lowerCopyRows(CopyRowsOp op) {
  const Argument &source = argumentOf(op.getSource());
  copyRows(op.getBuffer().getType(), map.lookup(op.getBuffer()),
           [&](Value row, int64_t, Value bytes) {
             Value offset = rowOffset(source, fromI32(row), op.getGroup(),
                                      /*clamp=*/true);
             return advance(address(source, offset), bytes);
           });
  return success();
}

LogicalResult NVVMLowering::lowerCopyKV(CopyKVOp op) {
  const View &view = views.find(op.getView())->second;
  bool values = op.getPart() == KVPart::Values;
  const Argument &pool =
      arguments[values ? view.pools.back() : view.pools.front()];
  OpBuilder::InsertionGuard guard(b);
  if (op.getValid()) {
    auto branch = scf::IfOp::create(b, loc, scalar(op.getValid()),
                                    /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value entries = op.getEntries() ? map.lookup(op.getEntries()) : Value();
  // An address has a part that the loops over keys do not change, and one that
  // the key decides: sums of products with strides, taken apart.
  SmallVector<Value> strides = byteStrides(pool);
  auto part = [&](bool isFixed, Value key, Value head, bool wantValues,
                  llvm::function_ref<Value(Value)> lookup) {
    KVRowAddress place = rowAddress(op.getView(), op.getPart(), key);
    place.strides = strides;
    place.head = head;
    place.wantValues = wantValues;
    if (isFixed)
      place.tableBegin = index(0); // counted with the key
    place.lookup = lookup;
    return cast<KVViewTypeInterface>(op.getView().getType())
        .buildRowOffset(b, loc, place);
  };
  Value fixed = part(true, index(0), itemField(Field::KVHead),
                     /*wantValues=*/values, [&](Value) { return index(0); });
  copyRows(
      op.getBuffer().getType(), map.lookup(op.getBuffer()),
      [&](Value row, int64_t turn, Value bytes) {
        Value origin = advance(pool.base, add(fixed, bytes));
        Value key = clampedKey(scalar(op.getKey()), row);
        Value byKey = part(
            false, key, index(0), /*wantValues=*/false, [&](Value entryIndex) {
              return fromI32(entries ? extract(entries, turn)
                                     : loadEntry(op.getView(), entryIndex));
            });
        return advance(origin, byKey);
      });
  return success();
}

/// The entries of the page table for the rows that a thread copies.
LogicalResult NVVMLowering::lowerLocate(LocateOp op) {
  BufType buffer = op.getType().getBuffer();
  ChunkMap chunks(buffer, schedule.getWarps() * kLanes);
  auto type = cast<VectorType>(lowered(op.getType()));
  auto branch = scf::IfOp::create(b, loc, TypeRange{Type(type)},
                                  scalar(op.getValid()), true, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> entries;
  for (int64_t turn = 0; turn < chunks.getTurns(); ++turn) {
    Value key = clampedKey(scalar(op.getKey()), chunkRow(chunks, turn));
    entries.push_back(tableEntry(op.getView(), key));
  }
  scf::YieldOp::create(b, loc, fromElements(entries));
  b.setInsertionPointToStart(branch.elseBlock());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  scf::YieldOp::create(b, loc, none);
  map.map(op.getResult(), branch.getResult(0));
  return success();
}
