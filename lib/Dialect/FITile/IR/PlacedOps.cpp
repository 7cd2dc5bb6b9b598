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

LogicalResult RoleOp::verify() {
  if (getWarps() < 1 || getWarps() > 32)
    return emitOpError("expected 1 to 32 warps, but got ")
           << getWarps() << " [TILE39]";
  constexpr int64_t kWarpgroup = 4;
  if (std::optional<int64_t> registers = getRegisters())
    if (getWarps() % kWarpgroup != 0 || *registers % 8 != 0 ||
        *registers < 24 || *registers > 256)
      return emitOpError("expected 'registers' of whole warpgroups, four warps "
                         "each, a multiple of 8 from 24 to 256, but got ")
             << *registers << " for " << getWarps() << " warps [TILE39]";
  WalkResult result = getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      Region *region = operand.getParentRegion();
      if (getBody().isAncestor(region) || !definition ||
          isa<ChannelOp, ViewOp>(definition) ||
          definition->hasTrait<OpTrait::ConstantLike>())
        continue;
      InFlightDiagnostic diag =
          op->emitOpError("expected values of its role, channels, views, "
                          "constants and arguments of the kernel, but got one "
                          "of ")
          << operand.getType() << " [TILE39]";
      diag.attachNote(definition->getLoc()) << "computed here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult DotStartOp::verify() {
  ShapedTile a(getA().getType()), b(getB().getType());
  RankedTensorType tile = getResult().getType().getTile();
  bool transpose = getTranspose();
  int64_t depth = transpose ? b.columns : b.rows;
  int64_t columns = transpose ? b.rows : b.columns;
  bool isHalf = a.element.isF16() || a.element.isBF16();
  if (!isTile(tile) || !tile.getElementType().isF32() || !isHalf ||
      a.element != b.element || a.columns != depth ||
      tile.getDimSize(0) != a.rows || tile.getDimSize(1) != columns)
    return emitOpError("expected a product of f16 or bf16 with a result of ")
           << a.rows << " x " << columns << " f32, but got " << getA().getType()
           << " and " << getB().getType() << " to " << tile << " [TILE40]";
  if (getAcc() && getAcc().getType() != tile)
    return emitOpError("expected an accumulator of the type of the result, ")
           << tile << ", but got " << getAcc().getType() << " [TILE40]";
  for (Operation *user : getResult().getUsers())
    if (!isa<WaitOp>(user) || user->getBlock() != (*this)->getBlock())
      return emitOpError("expected a future that fi_tile.wait takes in the "
                         "same block, but '")
             << user->getName() << "' does, or elsewhere [TILE40]";
  if (!getResult().hasOneUse())
    return emitOpError("expected a future that is waited for once, but it is "
                       "used ")
           << std::distance(getResult().use_begin(), getResult().use_end())
           << " times [TILE40]";
  return success();
}
