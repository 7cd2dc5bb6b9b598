//===- Columns.cpp - integers that count columns --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By how much integers grow from column to column.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

std::optional<int64_t> fi::tile::columnStep(Value tile) {
  auto type = dyn_cast<RankedTensorType>(tile.getType());
  if (!type || type.getDimSize(1) == 1)
    return 0;
  Operation *op = tile.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isa<IotaOp>(op))
    return 1;
  if (isa<tensor::SplatOp>(op))
    return 0;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    return dense && dense.isSplat() ? std::optional<int64_t>(0) : std::nullopt;
  }
  if (isa<BroadcastOp, arith::IndexCastOp>(op))
    return columnStep(op->getOperand(0));
  if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    std::optional<int64_t> a = columnStep(op->getOperand(0));
    std::optional<int64_t> b = columnStep(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    return isa<arith::AddIOp>(op) ? *a + *b : *a - *b;
  }
  return std::nullopt;
}
