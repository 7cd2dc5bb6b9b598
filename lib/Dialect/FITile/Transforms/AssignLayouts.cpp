//===- AssignLayouts.cpp - gives tiles their layouts ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts are anchored at products: their results are accumulator fragments,
// and all other tiles follow, so that elementwise work and row reductions stay
// within lanes that share rows. First operands of 16 bits are multiplicand
// fragments: a change of layout that moves no register. Tiles of keys that are
// computed are spread over as many warps as have blocks of 16 rows.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

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
      // Products in f32 take accumulators as they are.
      bool isWide = tile.getElementType().isF32();
      int64_t depth = getAtomInfo(isWide ? Atom::MmaC : Atom::MmaA16).columns;
      if (tile.getDimSize(1) % depth != 0) {
        dot.emitOpError("expected a first operand in registers with a multiple "
                        "of ")
            << depth << " columns, so 'tile_keys' of as many, but got "
            << tile.getDimSize(1) << " [SCH4]";
        return WalkResult::interrupt();
      }
      if (isWide)
        return WalkResult::advance();
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
             << kRows << " * n rows or one, and of " << kQuad
             << " * n columns or one, but got " << tile << " [SCH4]";
    value.setType(
        RankedTensorType::get(tile.getShape(), tile.getElementType(), layout));
    return success();
  }

  Attribute layoutOf(int64_t rows, int64_t columns) {
    Atom atom = columns % 8 == 0 || columns == 1 ? Atom::MmaC : Atom::MmaA32;
    int64_t repColumns = columns == 1 ? 1 : columns / getAtomInfo(atom).columns;
    bool wholeColumns = columns == 1 || columns % kQuad == 0;
    if (!wholeColumns || (rows != 1 && rows % kRows != 0))
      return {};
    auto frag = [&](Atom atom, int64_t repColumns) {
      int64_t holders = rows == 1 ? warps : std::gcd(rows / kRows, warps);
      int64_t repRows = rows == 1 ? 1 : rows / (kRows * holders);
      return FragAttr::get(&getContext(), atom, repRows, repColumns, holders);
    };
    if (rows == 1)
      return columns == 1
                 ? Attribute()
                 : SliceAttr::get(&getContext(), 0, frag(atom, repColumns));
    if (columns == 1)
      return SliceAttr::get(&getContext(), 1, frag(Atom::MmaC, 1));
    if (columns == kQuad)
      return PartialAttr::get(&getContext(), frag(Atom::MmaC, 1));
    return frag(atom, repColumns);
  }

  /// Rows of a fragment.
  static constexpr int64_t kRows = 16;
  int64_t warps = 0;
};

} // namespace
