//===- LegalizeDtypes.cpp - decides where narrow floats are widened -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILELEGALIZEDTYPES
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct LegalizeDtypesPass
    : fi::tile::impl::FITileLegalizeDtypesBase<LegalizeDtypesPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<DotOp> dots;
    getOperation().walk([&](DotOp dot) {
      // Of placed kernels, where this is decided.
      if (!isa<RankedTensorType>(dot.getA().getType()) ||
          !isa<RankedTensorType>(dot.getB().getType()))
        return;
      Type element =
          cast<RankedTensorType>(dot.getA().getType()).getElementType();
      bool legal = element.isF32() || (element.isBF16() && bf16Dot) ||
                   (element.isF16() && f16Dot);
      // Products that know f16 convert what they read of a buffer.
      legal &= f16Dot || element.isF32() || !isLoadedFromCodes(dot.getB());
      if (!legal)
        dots.push_back(dot);
    });
    for (DotOp dot : dots) {
      OpBuilder b(dot);
      dot.getAMutable().assign(widen(b, dot.getA()));
      dot.getBMutable().assign(widen(b, dot.getB()));
    }
    getOperation().walk([](arith::TruncFOp op) {
      if (op->use_empty())
        op->erase();
    });
  }

  static bool isLoadedFromCodes(Value value) {
    auto load = value.getDefiningOp<LoadKVOp>();
    if (!load)
      return false;
    auto view = cast<KVViewTypeInterface>(load.getView().getType());
    return isCode(load.getPart() == KVPart::Values ? view.getValueType()
                                                   : view.getKeyType());
  }

  /// `value` in f32: without its rounding, or loaded so, or extended.
  Value widen(OpBuilder &b, Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType wide = type.clone(b.getF32Type());
    if (type == wide)
      return value;
    if (auto trunc = value.getDefiningOp<arith::TruncFOp>())
      if (trunc.getIn().getType() == wide)
        return trunc.getIn();
    Operation *load = value.getDefiningOp();
    if (isa_and_nonnull<LoadRowsOp, LoadKVOp>(load) &&
        llvm::all_of(value.getUsers(),
                     [](Operation *user) { return isa<DotOp>(user); })) {
      value.setType(wide);
      return value;
    }
    return arith::ExtFOp::create(b, value.getLoc(), wide, value);
  }
};

} // namespace
