//===- RowDomains.cpp - what the rows of a tile stand for -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of most tiles are packed rows of the item, of which it may have fewer
// than the tile. Rows of others are keys, of which a tile has all (those beyond
// the last repeat it), or terms of a product. Which they are follows from where
// values come from and what they are combined with; shapes may agree by chance.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Whether what a tile is combined with tells what its rows are. Constants and
/// iotas are made again for each user, and may be common to unlike ones.
static bool hasDomain(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getDimSize(0) > 1 &&
         !isa_and_nonnull<arith::ConstantOp, tensor::SplatOp, IotaOp>(
             value.getDefiningOp());
}

void KernelLowering::findRowDomains() {
  auto link = [&](Value a, Value c) {
    if (hasDomain(a) && hasDomain(c))
      rowDomains.unionSets(a.getAsOpaquePointer(), c.getAsOpaquePointer());
  };
  auto linkCarried = [&](ValueRange inits, ValueRange arguments,
                         ValueRange yielded, ValueRange results) {
    for (auto [init, argument, value, result] :
         llvm::zip_equal(inits, arguments, yielded, results)) {
      link(init, argument);
      link(value, argument);
      link(result, argument);
    }
  };
  SmallVector<Value> keys;
  kernel.walk([&](Operation *op) {
    if (isa<LoadKVOp, LoadScalesOp>(op)) {
      keys.push_back(op->getResult(0));
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      keys.push_back(dot.getB());
      link(dot.getA(), dot.getResult());
      if (dot.getAcc())
        link(dot.getAcc(), dot.getResult());
    } else if (auto forKeys = dyn_cast<ForKeysOp>(op)) {
      Block &body = forKeys.getBody().front();
      linkCarried(forKeys.getInits(), forKeys.getCarried(),
                  body.getTerminator()->getOperands(), forKeys.getResults());
    } else if (auto loopOp = dyn_cast<scf::ForOp>(op)) {
      linkCarried(loopOp.getInits(), loopOp.getRegionIterArgs(),
                  loopOp.getBody()->getTerminator()->getOperands(),
                  loopOp.getResults());
    } else if (isLazy(op) || isa<ColumnsOp, BlockMaxOp>(op)) {
      for (Value operand : op->getOperands())
        link(operand, op->getResult(0));
    }
  });
  for (Value value : keys)
    keyDomains.insert(
        rowDomains.getOrInsertLeaderValue(value.getAsOpaquePointer()));
}

bool KernelLowering::hasKeysAsRows(Value tile) {
  auto found = rowDomains.findLeader(tile.getAsOpaquePointer());
  return found != rowDomains.member_end() && keyDomains.contains(*found);
}
