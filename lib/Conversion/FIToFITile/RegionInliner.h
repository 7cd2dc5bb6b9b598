//===- RegionInliner.h - regions of fi.attention on tiles -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inlines a scalar region elementwise on tiles. A value of the region is kept
// as small as what it depends on: a scalar, a column per row (Rx1), a row per
// key (1xC), or a whole tile.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITOFITILE_REGIONINLINER_H
#define FI_LIB_CONVERSION_FITOFITILE_REGIONINLINER_H

#include "fi/Dialect/FITile/IR/FITile.h"

namespace fi::tile {

/// Inlines the one-block region at the builder's insertion point. `arguments`
/// stand for the block's arguments: scalars, tiles, memrefs. Returns what the
/// region yields, or failure after emitting an error.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
inlineRegion(mlir::OpBuilder &builder, mlir::Region &region,
             mlir::ValueRange arguments);

/// Broadcasts a scalar, a row or a column to a tile of that shape.
mlir::Value broadcastTo(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value value, llvm::ArrayRef<int64_t> shape);

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITOFITILE_REGIONINLINER_H
