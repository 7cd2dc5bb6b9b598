//===- PlacedOps.cpp - operations of the placed form ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks. Constraints are TILE20 ... in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

LogicalResult CopyRowsOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  BufType buffer = getBuffer().getType();
  if (source.getRank() != 3 || source.getElementType() != buffer.getElement() ||
      source.getShape().back() != buffer.getColumns())
    return emitOpError("expected a source [rows, heads, ")
           << buffer.getColumns() << "] of " << buffer.getElement()
           << ", but got " << source << " [TILE20]";
  if (static_cast<int64_t>(getGroup()) < 1)
    return emitOpError("expected a group of at least 1 head, but got ")
           << getGroup() << " [TILE20]";
  return success();
}

LogicalResult CopyKVOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  bool values = getPart() == KVPart::Values;
  Type element = values ? view.getValueType() : view.getKeyType();
  int64_t dim = values ? view.getValueDim() : view.getKeyDim();
  BufType buffer = getBuffer().getType();
  if (buffer.getElement() != element || buffer.getColumns() != dim)
    return emitOpError("expected a buffer of rows of ")
           << dim << " x " << element << ", but got " << buffer << " [TILE21]";
  return success();
}

LogicalResult ReadOp::verify() {
  BufType buffer = getBuffer().getType();
  RankedTensorType tile = getType();
  if (tile.getDimSize(0) != buffer.getRows() ||
      tile.getDimSize(1) != buffer.getColumns() ||
      tile.getElementType() != buffer.getElement())
    return emitOpError("expected a tile of the buffer's shape and type, but "
                       "got ")
           << tile << " from " << buffer << " [TILE22]";
  return success();
}

LogicalResult RelayoutOp::verify() {
  RankedTensorType from = getSource().getType(), to = getType();
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("expected a result that differs in its layout only, but "
                       "got ")
           << to << " from " << from << " [TILE23]";
  return success();
}
