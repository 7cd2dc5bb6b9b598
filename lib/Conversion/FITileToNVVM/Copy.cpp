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

void NVVMLowering::copyRows(BufType type, Value buffer, const Argument &source,
                            llvm::function_ref<Value(Value)> offsetOf) {
  int64_t bytes = type.getElement().getIntOrFloatBitWidth() / 8;
  int64_t elements = kChunkBytes / bytes;
  int64_t chunks = llvm::divideCeil(type.getColumns(), elements);
  // A product reads 16 columns at once: what is beyond the last is zero.
  int64_t padded = llvm::divideCeil(type.getColumns(), 16) * 16 / elements;
  int64_t total = type.getRows() * padded;
  int64_t threads = schedule.getWarps() * kLanes;
  for (int64_t done = 0; done < total; done += threads) {
    OpBuilder::InsertionGuard guard(b);
    // Where a chunk lies depends on the thread alone.
    Value number, row, chunk, place;
    {
      OpBuilder::InsertionGuard outside(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      number = add(thread, done);
      row = divide(number, padded);
      chunk = padded == 1 ? index(0) : remainder(number, padded);
      Value swizzled = chunk;
      if (type.getLayout().getSwizzle())
        swizzled = arith::XOrIOp::create(b, loc, chunk, remainder(row, 8));
      place = add(mul(row, type.getLayout().getPitch()),
                  mul(swizzled, kChunkBytes));
    }
    Value wanted;
    if (done + threads > total)
      wanted = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number,
                                     index(total));
    if (wanted) {
      auto branch = scf::IfOp::create(b, loc, wanted, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value target =
        LLVM::GEPOp::create(b, loc, sharedPointer, b.getI8Type(), sharedBase,
                            ArrayRef<LLVM::GEPArg>{toI64(add(buffer, place))});
    Value size, column = chunk;
    if (padded != chunks) {
      Value real = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                         chunk, index(chunks));
      size = arith::SelectOp::create(b, loc, real, i32(kChunkBytes), i32(0));
      column = arith::SelectOp::create(b, loc, real, chunk, index(0));
    }
    Value from = address(source, add(offsetOf(row), mul(column, elements)));
    NVVM::CpAsyncOp::create(b, loc, target, from, kChunkBytes,
                            NVVM::LoadCacheModifierKind::CG, size);
  }
}

LogicalResult NVVMLowering::lowerCopyRows(CopyRowsOp op) {
  const Argument &source = argumentOf(op.getSource());
  copyRows(op.getBuffer().getType(), map.lookup(op.getBuffer()), source,
           [&](Value row) {
             return rowOffset(source, row, op.getGroup(), /*clamp=*/true);
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
  Value last = add(itemField(Field::KVLen), -1);
  Value first = scalar(op.getKey());
  copyRows(op.getBuffer().getType(), map.lookup(op.getBuffer()), pool,
           [&](Value row) {
             Value key = minimum(add(first, row), last);
             return kvRowOffset(op.getView(), op.getPart(), key);
           });
  return success();
}
