//===- GatherBits.cpp - bits out of gathered words ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A packed mask is read by arithmetic in a region: a quotient finds the word, a
// remainder the bit.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEGATHERBITS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// An integer, or a tile of which each element is that integer.
std::optional<uint64_t> equalInteger(Value value) {
  Attribute attribute;
  if (!matchPattern(value, m_Constant(&attribute)))
    return std::nullopt;
  if (auto dense = dyn_cast<DenseElementsAttr>(attribute))
    attribute =
        dense.isSplat() ? dense.getSplatValue<Attribute>() : Attribute();
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!integer)
    return std::nullopt;
  return integer.getValue().getZExtValue();
}

Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
             arith::TruncIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// x of `x / width`, where that is what `value` is.
Value dividend(Value value, uint64_t width) {
  if (auto quotient = value.getDefiningOp<arith::DivUIOp>())
    if (equalInteger(quotient.getRhs()) == width)
      return quotient.getLhs();
  if (auto shift = value.getDefiningOp<arith::ShRUIOp>())
    if (equalInteger(shift.getRhs()) == llvm::Log2_64(width))
      return shift.getLhs();
  return Value();
}

/// Whether `value` is `x % width`.
bool isRemainder(Value value, Value x, uint64_t width) {
  if (auto remainder = value.getDefiningOp<arith::RemUIOp>())
    return remainder.getLhs() == x && equalInteger(remainder.getRhs()) == width;
  if (auto mask = value.getDefiningOp<arith::AndIOp>())
    return mask.getLhs() == x && equalInteger(mask.getRhs()) == width - 1;
  return false;
}

/// The lowest bit of what, if `op` is that: `trunci x`, `andi x, 1 != 0`.
Value lowestBitOf(Operation *op) {
  if (auto truncation = dyn_cast<arith::TruncIOp>(op);
      truncation && getElementTypeOrSelf(truncation.getType()).isInteger(1))
    return truncation.getIn();
  auto comparison = dyn_cast<arith::CmpIOp>(op);
  if (!comparison || comparison.getPredicate() != arith::CmpIPredicate::ne ||
      equalInteger(comparison.getRhs()) != 0)
    return Value();
  auto mask = comparison.getLhs().getDefiningOp<arith::AndIOp>();
  return mask && equalInteger(mask.getRhs()) == 1 ? mask.getLhs() : Value();
}

struct GatherBitsPass : fi::tile::impl::FITileGatherBitsBase<GatherBitsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) { rewrite(op); });
  }

  static void rewrite(Operation *op) {
    Value lowest = lowestBitOf(op);
    auto shift =
        lowest ? skipCasts(lowest).getDefiningOp<arith::ShRUIOp>() : nullptr;
    auto gather =
        shift ? skipCasts(shift.getLhs()).getDefiningOp<GatherOp>() : nullptr;
    if (!gather || gather.getBits() || gather.getIndices().size() != 1 ||
        !isa<RankedTensorType>(gather.getType()))
      return;
    auto word = dyn_cast<IntegerType>(
        cast<MemRefType>(gather.getSource().getType()).getElementType());
    if (!word || word.getWidth() < 8 || word.getWidth() > 64 ||
        !llvm::isPowerOf2_32(word.getWidth()))
      return;
    Value index = dividend(gather.getIndices()[0], word.getWidth());
    if (!index ||
        !isRemainder(skipCasts(shift.getRhs()), index, word.getWidth()))
      return;
    OpBuilder b(op);
    auto bits = GatherOp::create(b, op->getLoc(), op->getResult(0).getType(),
                                 gather.getSource(), index, /*bits=*/true);
    op->replaceAllUsesWith(bits);
    op->erase();
  }
};

} // namespace
