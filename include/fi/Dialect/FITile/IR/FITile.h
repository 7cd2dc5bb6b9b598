//===- FITile.h - the fi_tile dialect ---------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types and operations of level 2: how a kernel computes.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_FITILE_H
#define FI_DIALECT_FITILE_IR_FITILE_H

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/IR/TensorEncoding.h"

#include "fi/Dialect/FITile/IR/FITileDialect.h.inc"

#include "fi/Dialect/FITile/IR/FITileEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fi/Dialect/FITile/IR/FITileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "fi/Dialect/FITile/IR/FITileTypes.h.inc"
#include <optional>

namespace fi::tile {
/// Whether a type is a tile: rows x columns of numbers, both at least 1.
bool isTile(mlir::Type type);

/// Attribute of a kernel in the placed form: its bytes of shared memory.
constexpr llvm::StringLiteral kSharedAttr = "fi_tile.shared";
/// Attribute of a kernel in the placed form: registers that a lane needs,
/// about.
constexpr llvm::StringLiteral kRegistersAttr = "fi_tile.registers";

/// What marks write to, and nothing else.
struct MarkLog : mlir::SideEffects::Resource::Base<MarkLog> {
  mlir::StringRef getName() final { return "MarkLog"; }
};

/// What prefetches fill, and nothing reads.
struct SecondCache : mlir::SideEffects::Resource::Base<SecondCache> {
  mlir::StringRef getName() final { return "SecondCache"; }
};

/// Shape and element type of a tile or of a buffer.
struct ShapedTile {
  explicit ShapedTile(mlir::Type type);
  int64_t rows, columns;
  mlir::Type element;
};
} // namespace fi::tile

#define GET_OP_CLASSES
#include "fi/Dialect/FITile/IR/FITileOps.h.inc"

namespace fi::tile {

/// Tile arithmetic by the ops of this dialect.
class DialectTileArithmetic : public TileArithmetic {
public:
  using TileArithmetic::TileArithmetic;
  mlir::Value reduceMax(mlir::Value tile) override;
  mlir::Value reduceAdd(mlir::Value tile) override;
  mlir::Value reduceAddKeep(mlir::Value tile, int64_t lanes) override;
  mlir::Value broadcastRows(mlir::Value row, mlir::Value like) override;
};

/// By how much the elements of a tile of integers grow from column to column,
/// if they do so evenly: the position of a key, its distance from a row, the
/// place of its bit in a packed mask grow by one. Products are left out: sums
/// of positions stay far from the bounds of 32 bits, at which a narrower type
/// begins anew.
std::optional<int64_t> columnStep(mlir::Value tile);

/// Whether an operation of an item reads what the plan has made, at most, and
/// writes no memory: it may run beside the launch in front (TILE44).
bool isOfThePlan(mlir::Operation *op);

} // namespace fi::tile

#endif // FI_DIALECT_FITILE_IR_FITILE_H
