//===- Prefetch.cpp - the plan's data, before it is asked for -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CTA's first keys are the end of a chain: its item says which range, the
// range which entries of the page table, these which page. Each is a load that
// waits for the one before, and finds nothing in the caches when the model's
// other layers have run since. Where an item has little work, in kernels of few
// rows, that is a part of it: all threads of a launch begin by asking for a
// line each of the ranges and of the tables, while the item is on its way.
// Kernels of many rows have no registers for this, and roles run ahead.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Line `number` of `bytes` bytes at `base`, if there is one.
void NVVMLowering::prefetchLine(Value base, Value bytes, Value number) {
  constexpr int64_t kLine = 128;
  Value offset = mul(number, kLine);
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, offset, bytes);
  // As text: the operation takes no predicate, and a branch here costs ptxas
  // registers all through the kernel.
  instruct("@$1 prefetch.global.L2 [$0];", "l,b",
           ValueRange{advance(base, offset), inside});
}

bool NVVMLowering::visitsKeys() {
  return kernel
      .walk([](Operation *op) {
        return isa<ForKeysOp, CursorOp>(op) ? WalkResult::interrupt()
                                            : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Who has little to do waits for an item once, not field by field.
void NVVMLowering::loadItemAtOnce() {
  bool hasKeys = visitsKeys();
  if (role || (hasKeys && getGroups() == 1))
    return;
  for (Field field :
       {Field::RowCount, Field::RowBegin, Field::QBegin, Field::KVHead})
    itemFields[field] = itemField(field);
  if (!hasKeys)
    return;
  itemFields[Field::KVLen] = itemField(Field::KVLen);
  for (auto [offset, bits] : {std::pair(offsetof(fi_item, range_begin), 32u),
                              std::pair(offsetof(fi_item, full_ranges), 32u),
                              std::pair(offsetof(fi_item, partial_ranges), 32u),
                              std::pair(offsetof(fi_item, table_begin), 64u)})
    wordsOfItem[offset] = loadField(itemPointer, offset, bits);
}

void NVVMLowering::prefetchPlan() {
  if (getGroups() == 1 || !visitsKeys())
    return;
  Value cta = fromI32(NVVM::BlockIdXOp::create(b, loc, b.getI32Type()));
  Value number =
      add(mul(cta, fromI32(NVVM::BlockDimXOp::create(b, loc, b.getI32Type()))),
          fromI32(NVVM::ThreadIdXOp::create(b, loc, b.getI32Type())));
  // There is room for as many ranges as items.
  prefetchLine(rangesPointer, mul(endItem, sizeof(fi_key_range)), number);
  llvm::SmallSetVector<Value, 2> tables;
  kernel.walk([&](ViewOp view) {
    tables.insert(view.getPages().begin(), view.getPages().end());
  });
  for (Value value : tables) {
    const Argument &table =
        arguments[cast<BlockArgument>(value).getArgNumber()];
    Value elements = index(1);
    for (auto [size, stride] : llvm::zip(table.sizes, table.strides))
      elements = add(elements, mul(add(size, -1), stride));
    prefetchLine(table.base,
                 mul(elements, table.element.getIntOrFloatBitWidth() / 8),
                 number);
  }
}
