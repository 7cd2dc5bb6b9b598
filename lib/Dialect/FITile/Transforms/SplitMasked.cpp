//===- SplitMasked.cpp - peels full tiles from partial ones ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/IR/IRMapping.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILESPLITMASKED
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// Erases pure operations of a block that nothing uses any more, last first.
void eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct SplitMaskedPass
    : fi::tile::impl::FITileSplitMaskedBase<SplitMaskedPass> {
  void runOnOperation() override {
    SmallVector<ForKeysOp> loops;
    getOperation().walk([&](ForKeysOp loop) {
      // One tile of all is not masked apart: rotated kernels have such loops.
      if (loop.getPart() == Part::All && !loop.getSelection())
        loops.push_back(loop);
    });
    for (ForKeysOp loop : loops)
      split(loop);
  }

  void split(ForKeysOp loop) {
    OpBuilder b(loop);
    auto full = cast<ForKeysOp>(b.clone(*loop));
    full.setPart(Part::Full);
    full.walk([&](MaskOp mask) {
      mask.getResult().replaceAllUsesWith(mask.getScores());
      mask.erase();
    });
    eraseDead(full.getBody().front());
    loop.setPart(Part::Partial);
    loop.getInitsMutable().assign(full.getResults());
  }
};

} // namespace
