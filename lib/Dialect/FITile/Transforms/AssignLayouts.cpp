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
// computed are spread over as many warps as have blocks of 16 rows. What a
// product with codes of values accumulates has its even and its odd columns
// apart as long as a loop carries it.
//
// Kernels of rows alone, without products and keys, have the atoms of rows: a
// lane has neighbouring columns, which memory gives it at once, and the lanes
// of one warp, or of several, have a row. Rows go to warps as long as a lane
// has two of them; more warps share columns. In kernels of products, tiles of
// fewer rows than a fragment's, by which states are merged, have them as well.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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
    findRows(kernel);
    findBlocks(kernel);
    if (!widest && kernel.getSchedule().getTileRows() % block != 0) {
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
    kernel.walk([&](DotOp dot) {
      if (!dot.getTranspose() &&
          isCode(ShapedTile(dot.getB().getType()).element) &&
          !ShapedTile(dot.getA().getType()).element.isF32())
        splitColumns(dot.getResult());
    });
    while (!split.empty())
      followSplit(split.pop_back_val());
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
  /// Whether a kernel is one of rows, and then how its warps share a tile.
  void findRows(KernelOp kernel) {
    widest = 0;
    bool ofRows = true;
    auto see = [&](Type type) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile || !isTile(tile) || tile.getDimSize(1) == 1)
        return;
      ofRows &= tile.getDimSize(1) % kRowChunk == 0;
      widest = std::max(widest, tile.getDimSize(1));
    };
    kernel.walk([&](Operation *op) {
      ofRows &=
          !isa<DotOp, ViewOp, ForKeysOp, LoadStateOp, StoreStateOp,
               StoreMergedStateOp, ShareStateOp, LoadGroupStateOp, AnyOp>(op);
      llvm::for_each(op->getResultTypes(), see);
    });
    int64_t rows = kernel.getSchedule().getTileRows();
    int64_t atomRows = getAtomInfo(getRowAtom(widest)).rows;
    if (!ofRows || rows % atomRows != 0 ||
        kernel.getSchedule().getKeyWarps() > 1)
      widest = 0;
    if (!widest)
      return;
    int64_t blocks = rows / atomRows;
    rowWarps = blocks > 1 ? std::gcd(blocks / 2, warps) : 1;
  }

  /// Columns of states that are merged by fewer rows than a fragment has.
  void findBlocks(KernelOp kernel) {
    blockColumns = 0;
    kernel.walk([&](Operation *op) {
      if (isa<LoadStateOp, LoadGroupStateOp>(op))
        for (Type type : op->getResultTypes())
          if (auto tile = cast<RankedTensorType>(type);
              tile.getDimSize(0) % kRows != 0)
            blockColumns = std::max(blockColumns, tile.getDimSize(1));
    });
  }

  LogicalResult assign(Operation *op, Value value) {
    if (!isTile(value.getType()))
      return success();
    auto tile = cast<RankedTensorType>(value.getType());
    if (tile.getEncoding())
      return success();
    Attribute layout = layoutOf(tile.getDimSize(0), tile.getDimSize(1));
    // What buffers and products have lies as these need it.
    if (isBlock(tile.getDimSize(0)) &&
        isa<ReadOp, LoadKVOp, LoadScalesOp, DotOp, ForKeysOp>(op))
      layout = {};
    if (!layout && widest)
      return op->emitOpError("expected tiles of the kernel's ")
             << op->getParentOfType<KernelOp>().getSchedule().getTileRows()
             << " rows or one, but got " << tile << " [SCH4]";
    if (!layout)
      return op->emitOpError("expected tiles of ")
             << kRows << " * n rows or one, and of " << kQuad
             << " * n columns or one, but got " << tile << " [SCH4]";
    value.setType(
        RankedTensorType::get(tile.getShape(), tile.getElementType(), layout));
    return success();
  }

  /// Whether tiles of so many rows are of states that are merged by rows.
  bool isBlock(int64_t rows) {
    return blockColumns && rows != 1 && rows % kRows != 0;
  }

  Attribute layoutOf(int64_t rows, int64_t columns) {
    if (widest)
      return rowLayoutOf(rows, columns, getRowAtom(widest), rowWarps);
    if (isBlock(rows))
      return columns == 1 || columns % kRowChunk == 0
                 ? rowLayoutOf(rows, columns, getRowAtom(blockColumns), warps)
                 : Attribute();
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

  Attribute rowLayoutOf(int64_t rows, int64_t columns, Atom atom,
                        int64_t rowWarps) {
    AtomInfo info = getAtomInfo(atom);
    int64_t columnWarps = warps / rowWarps;
    if (rows != 1 && rows % (info.rows * rowWarps) != 0)
      return {};
    auto frag = FragAttr::get(
        &getContext(), atom, rows == 1 ? 1 : rows / (info.rows * rowWarps),
        llvm::divideCeil(columns, info.columns * columnWarps), rowWarps,
        columnWarps);
    if (rows == 1)
      return columns == 1 ? Attribute()
                          : SliceAttr::get(&getContext(), 0, frag);
    if (columns == 1)
      return SliceAttr::get(&getContext(), 1, frag);
    return frag;
  }

  static RankedTensorType splitType(RankedTensorType type) {
    auto frag = cast<FragAttr>(type.getEncoding());
    return RankedTensorType::get(
        type.getShape(), type.getElementType(),
        FragAttr::get(type.getContext(), Atom::MmaC8, frag.getRepRows(),
                      frag.getRepColumns() / 2, frag.getWarps()));
  }
  static bool isSplit(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto frag =
        type ? dyn_cast_or_null<FragAttr>(type.getEncoding()) : FragAttr();
    return frag && frag.getAtom() == Atom::MmaC8;
  }

  void splitColumns(Value value) {
    if (isSplit(value))
      return;
    value.setType(splitType(cast<RankedTensorType>(value.getType())));
    split.push_back(value);
  }

  /// Operands that are made anew for each user are made in the layout.
  void splitOperand(OpOperand &operand) {
    Operation *def = operand.get().getDefiningOp();
    if (isSplit(operand.get()))
      return;
    if (!isa_and_nonnull<arith::ConstantOp, BroadcastOp, tensor::SplatOp>(def))
      return splitColumns(operand.get());
    OpBuilder b(operand.getOwner());
    Operation *clone = b.clone(*def);
    RankedTensorType type =
        splitType(cast<RankedTensorType>(def->getResult(0).getType()));
    clone->getResult(0).setType(type);
    if (auto constant = dyn_cast<arith::ConstantOp>(clone))
      constant.setValueAttr(
          cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
    operand.set(clone->getResult(0));
  }

  static bool isElementwise(Operation *op, Value like) {
    return op->getNumRegions() == 0 && op->getNumResults() == 1 &&
           isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
           isa<RankedTensorType>(op->getResult(0).getType()) &&
           cast<RankedTensorType>(op->getResult(0).getType()).getShape() ==
               cast<RankedTensorType>(like.getType()).getShape();
  }

  /// What is computed from a split tile, and what it is computed from.
  void followSplit(Value value) {
    auto shape = cast<RankedTensorType>(value.getType()).getShape();
    auto ofLoop = [&](ForKeysOp loop, unsigned number) {
      splitOperand(loop.getInitsMutable()[number]);
      splitColumns(loop.getCarried()[number]);
      splitOperand(
          loop.getBody().front().getTerminator()->getOpOperand(number));
      splitColumns(loop.getResult(number));
    };
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<ForKeysOp>(argument.getOwner()->getParentOp()))
        ofLoop(loop, argument.getArgNumber() - 1);
    } else {
      Operation *def = value.getDefiningOp();
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (auto dot = dyn_cast<DotOp>(def)) {
        if (dot.getAcc())
          splitOperand(dot.getAccMutable()[0]);
      } else if (auto loop = dyn_cast<ForKeysOp>(def)) {
        ofLoop(loop, number);
      } else if (auto branch = dyn_cast<scf::IfOp>(def)) {
        splitOperand(branch.thenYield()->getOpOperand(number));
        splitOperand(branch.elseYield()->getOpOperand(number));
      } else if (isElementwise(def, value)) {
        for (OpOperand &operand : def->getOpOperands())
          if (auto tile = dyn_cast<RankedTensorType>(operand.get().getType());
              tile && tile.getShape() == shape)
            splitOperand(operand);
      }
    }
    bool endsLoop = value.getDefiningOp<ForKeysOp>() != nullptr;
    SmallVector<OpOperand *> others;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      unsigned number = use.getOperandNumber();
      if (auto loop = dyn_cast<ForKeysOp>(user))
        ofLoop(loop, number - 1);
      else if (auto yield = dyn_cast<tile::YieldOp>(user))
        ofLoop(cast<ForKeysOp>(yield->getParentOp()), number);
      else if (auto yield = dyn_cast<scf::YieldOp>(user))
        splitColumns(yield->getParentOp()->getResult(number));
      else if (isa<DotOp>(user) || (!endsLoop && isElementwise(user, value)))
        splitColumns(user->getResult(0));
      else
        others.push_back(&use);
    }
    // Everything else has columns side by side.
    Value whole;
    for (OpOperand *use : others) {
      if (!whole) {
        OpBuilder b(&getContext());
        b.setInsertionPointAfterValue(value);
        auto type = cast<RankedTensorType>(value.getType());
        whole = RelayoutOp::create(
            b, value.getLoc(),
            RankedTensorType::get(shape, type.getElementType(),
                                  layoutOf(shape[0], shape[1])),
            value);
      }
      use->set(whole);
    }
  }

  SmallVector<Value> split;
  /// Rows of a fragment.
  static constexpr int64_t kRows = 16;
  int64_t warps = 0;
  /// Of a kernel of rows: columns of its widest tile, else 0, and the warps
  /// that have different rows.
  int64_t widest = 0, rowWarps = 1;
  int64_t blockColumns = 0;
};

} // namespace
