//===- AssignLayouts.cpp - gives tiles their layouts ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts are anchored at products: their results are accumulator fragments,
// and all other tiles follow, so that elementwise work and row reductions stay
// within lanes that share rows. First operands are multiplicand fragments: a
// change of layout that moves no register for 16-bit types.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEASSIGNLAYOUTS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct AssignLayoutsPass
    : fi::tile::impl::FITileAssignLayoutsBase<AssignLayoutsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    warps = kernel.getSchedule().getWarps();
    int64_t block = 16 * warps;
    if (warps == 0) {
      kernel.emitOpError("expected a schedule with 'warps' [SCH4]");
      return signalPassFailure();
    }
    if (kernel.getSchedule().getTileRows() % block != 0) {
      kernel.emitOpError("expected 'tile_rows' to be a multiple of ")
          << block << ", 16 for each of " << warps << " warps, but got "
          << kernel.getSchedule().getTileRows() << " [SCH4]";
      return signalPassFailure();
    }
    int64_t lanes = kernel.getSchedule().getLanes();
    if (lanes != 1 && lanes != kQuad) {
      kernel.emitOpError("expected 'lanes' of 1 or ")
          << kQuad << ", the lanes that share a row, but got " << lanes
          << " [SCH4]";
      return signalPassFailure();
    }
    WalkResult result = kernel.walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        for (Block &body : region)
          for (BlockArgument argument : body.getArguments())
            if (failed(assign(op, argument)))
              return WalkResult::interrupt();
      for (Value value : op->getResults())
        if (failed(assign(op, value)))
          return WalkResult::interrupt();
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()))
          if (isTile(constant.getType()))
            constant.setValueAttr(
                dense.resizeSplat(cast<ShapedType>(constant.getType())));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    result = kernel.walk([&](DotOp dot) {
      auto tile = dyn_cast<RankedTensorType>(dot.getA().getType());
      if (!tile)
        return WalkResult::advance();
      int64_t depth = getAtomInfo(Atom::MmaA16).columns;
      if (tile.getDimSize(1) % depth != 0) {
        dot.emitOpError("expected a first operand in registers with a multiple "
                        "of ")
            << depth << " columns, so 'tile_keys' of as many, but got "
            << tile.getDimSize(1) << " [SCH4]";
        return WalkResult::interrupt();
      }
      OpBuilder b(dot);
      auto frag =
          FragAttr::get(&getContext(), Atom::MmaA16, tile.getDimSize(0) / block,
                        tile.getDimSize(1) / depth, warps);
      auto type =
          RankedTensorType::get(tile.getShape(), tile.getElementType(), frag);
      dot.getAMutable().assign(
          RelayoutOp::create(b, dot.getLoc(), type, dot.getA()));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult assign(Operation *op, Value value) {
    if (!isTile(value.getType()))
      return success();
    auto tile = cast<RankedTensorType>(value.getType());
    if (tile.getEncoding())
      return success();
    Attribute layout = layoutOf(tile.getDimSize(0), tile.getDimSize(1));
    if (!layout)
      return op->emitOpError("expected tiles of ")
             << 16 * warps << " * n rows or one, and of 8 * n columns, "
             << kQuad << " or one, but got " << tile << " [SCH4]";
    value.setType(
        RankedTensorType::get(tile.getShape(), tile.getElementType(), layout));
    return success();
  }

  Attribute layoutOf(int64_t rows, int64_t columns) {
    auto frag = [&](int64_t repRows, int64_t repColumns) {
      return FragAttr::get(&getContext(), Atom::MmaC, repRows, repColumns,
                           warps);
    };
    int64_t repRows = rows / (16 * warps);
    bool wholeRows = rows % (16 * warps) == 0;
    if (rows == 1 && columns % 8 == 0)
      return SliceAttr::get(&getContext(), 0, frag(1, columns / 8));
    if (!wholeRows)
      return {};
    if (columns == 1)
      return SliceAttr::get(&getContext(), 1, frag(repRows, 1));
    if (columns == kQuad)
      return PartialAttr::get(&getContext(), frag(repRows, 1));
    if (columns % 8 == 0)
      return frag(repRows, columns / 8);
    return {};
  }

  int64_t warps = 0;
};

} // namespace
