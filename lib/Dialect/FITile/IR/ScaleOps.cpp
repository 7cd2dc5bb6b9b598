//===- ScaleOps.cpp - operations with scales of keys and values
//----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks. Constraints are TILE34 ... in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/FITile.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

LogicalResult LoadScalesOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  bool ofValues = getPart() == KVPart::Values;
  auto per = getNumberGranularity(view, ofValues);
  BlockScaledType blocks = getBlockScheme();
  bool isPerPage = per == Granularity::Page;
  if (!blocks && !isPerPage && per != Granularity::Token)
    return emitOpError(
               "expected a view that scales pages, tokens or blocks of ")
           << (getPart() == KVPart::Values ? "values" : "keys") << ", but got "
           << getView().getType() << " [TILE34]";
  auto memory = cast<MemRefType>(getScales().getType());
  Type f32 = Float32Type::get(getContext());
  Type element = blocks ? blocks.getBy() : f32;
  // As the pool without parts if fused, and without the last dimension.
  int64_t rank =
      isPerPage
          ? 2
          : view.getPoolRank() -
                (isa<PagedKVType>(view) && view.getPoolCount() == 1 ? 2 : 1) +
                (blocks ? 1 : 0);
  if (memory.getRank() != rank || memory.getElementType() != element)
    return emitOpError("expected scales of rank ")
           << rank << " of " << element << ", but got " << memory
           << " [TILE34]";
  if (blocks) {
    int64_t dim = view.getPartDim(getPart());
    int64_t count = memory.getShape().back();
    if (getType().getDimSize(1) != dim || getType().getElementType() != f32 ||
        count != dim / blocks.getBlock())
      return emitOpError("expected a tile of ")
             << dim << " columns of f32 by scales of "
             << dim / blocks.getBlock() << " blocks, but got " << getType()
             << " by " << memory << " [TILE34]";
    return success();
  }
  if ((getType().getDimSize(0) != 1 && getType().getDimSize(1) != 1) ||
      getType().getElementType() != f32)
    return emitOpError("expected a row or a column of ")
           << f32 << ", but got " << getType() << " [TILE34]";
  return success();
}

LogicalResult StoreScalesOp::verify() {
  BlockScaledType blocks = getBlockScheme();
  auto view = cast<KVViewTypeInterface>(getView().getType());
  auto memory = cast<MemRefType>(getScales().getType());
  int64_t rank = view.getPageSize() == 0 ? 3 : 4;
  RankedTensorType tile = cast<RankedTensorType>(getTile().getType());
  int64_t dim = view.getPartDim(getPart());
  if (!blocks || memory.getRank() != rank ||
      memory.getElementType() != blocks.getBy() ||
      memory.getShape().back() != dim / blocks.getBlock() ||
      tile.getDimSize(1) != dim || !tile.getElementType().isInteger(8))
    return emitOpError("expected scales of blocks of the view, and a tile of ")
           << dim << " columns of i8, but got " << tile << " for " << memory
           << " of " << getView().getType() << " [TILE37]";
  return success();
}

LogicalResult BlockMaxOp::verify() {
  int64_t block = getBlock();
  if (!getType().getElementType().isF32() || block < 1 ||
      getType().getDimSize(1) % block != 0)
    return emitOpError("expected a tile of f32 with a multiple of ")
           << block << " columns, but got " << getType() << " [TILE38]";
  return success();
}
