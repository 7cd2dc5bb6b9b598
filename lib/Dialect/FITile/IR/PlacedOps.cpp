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
  Type element = view.getPartType(getPart());
  int64_t dim = view.getPartDim(getPart());
  BufType buffer = getBuffer().getType();
  if (buffer.getElement() != element || buffer.getColumns() != dim)
    return emitOpError("expected a buffer of rows of ")
           << dim << " x " << element << ", but got " << buffer << " [TILE21]";
  return success();
}

void LocateOp::build(OpBuilder &b, OperationState &state, Type result,
                     Value view, Value item, Value key, Value valid,
                     unsigned table) {
  build(b, state, result, view, item, key, valid,
        table ? b.getI64IntegerAttr(table) : IntegerAttr());
}

LogicalResult LocateOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  int64_t table = getTable().value_or(0), count = view.getTableCount();
  if (table < 0 || table >= count)
    return emitOpError("expected one of the view's ")
           << count << " page tables, but got number " << table << " [TILE33]";
  return success();
}

LogicalResult ReadOp::verify() {
  BufType buffer = getBuffer().getType();
  RankedTensorType tile = getType();
  int64_t first = getFirst().value_or(0), step = getStep().value_or(1);
  int64_t columns = tile.getDimSize(1);
  if (tile.getDimSize(0) != buffer.getRows() ||
      tile.getElementType() != buffer.getElement() ||
      (!getFirst() && columns != buffer.getColumns()))
    return emitOpError("expected a tile of the buffer's shape and type, but "
                       "got ")
           << tile << " from " << buffer << " [TILE22]";
  if (getFirst().has_value() != getStep().has_value() || first < 0 ||
      step < 1 || first >= buffer.getColumns() ||
      columns > (buffer.getColumns() - 1 - first) / step + 1)
    return emitOpError(
               "expected 'from' of at least 0 and 'step' of at least 1, "
               "given together, with columns of the buffer, but got ")
           << columns << " columns from " << first << " step " << step << " of "
           << buffer << " [TILE22]";
  return success();
}

LogicalResult WriteOp::verify() {
  BufType buffer = getBuffer().getType();
  RankedTensorType tile = getTile().getType();
  if (tile.getDimSize(0) != buffer.getRows() ||
      tile.getElementType() != buffer.getElement() ||
      tile.getDimSize(1) != buffer.getColumns())
    return emitOpError("expected a tile of the buffer's shape and type, but "
                       "got ")
           << tile << " for " << buffer << " [TILE32]";
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
