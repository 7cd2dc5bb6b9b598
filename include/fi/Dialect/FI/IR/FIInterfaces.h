//===- FIInterfaces.h - interfaces of the fi dialect ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The types that the interfaces' methods exchange, and the interfaces.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIINTERFACES_H
#define FI_DIALECT_FI_IR_FIINTERFACES_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Types.h"
#include "mlir/IR/Value.h"

namespace fi {

enum class KVPart : uint32_t;

/// What `buildRowOffset` needs to find a row of keys or values. All values are
/// of type `index`.
struct KVRowAddress {
  /// Strides of the pool, in elements, one per dimension.
  llvm::ArrayRef<mlir::Value> strides;
  /// What row is wanted (matters where a pool holds several kinds).
  KVPart part = KVPart(0);
  mlir::Value head;
  /// Index of the key in its request's view, in range.
  mlir::Value key;
  /// First entry of the request in the page table, or its first row in the
  /// pool.
  mlir::Value tableBegin;
  /// Keys of one page; null for layouts without pages.
  mlir::Value pageSize;
  /// Reads an entry of the part's page table.
  llvm::function_ref<mlir::Value(mlir::Value entry)> lookup;
};

/// Arithmetic on tiles that upstream dialects lack, as a normaliser needs it.
/// Elementwise operations are `arith` and `math` on the tile's tensor.
class TileArithmetic {
public:
  TileArithmetic(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}
  virtual ~TileArithmetic() = default;

  /// [rows, columns] -> [rows, 1]
  virtual mlir::Value reduceMax(mlir::Value tile) = 0;
  /// [rows, columns] -> [rows, 1]
  virtual mlir::Value reduceAdd(mlir::Value tile) = 0;
  /// [rows, columns] -> [rows, lanes]: partial sums, in a fixed order.
  virtual mlir::Value reduceAddKeep(mlir::Value tile, int64_t lanes) = 0;
  /// [rows, 1] -> [rows, columns of `like`]
  virtual mlir::Value broadcastRows(mlir::Value row, mlir::Value like) = 0;

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// The result of updating a running state by a tile of scores.
struct NormaliserUpdate {
  /// [rows, keys]: what multiplies the values.
  mlir::Value weights;
  /// [rows, 1]: what multiplies the accumulator before the product is added;
  /// null for 1.
  mlir::Value factor;
  llvm::SmallVector<mlir::Value> running;
};

/// The result of folding finalised states into a running state.
struct NormaliserFold {
  /// [rows, 1] each: what multiplies the output of a state.
  llvm::SmallVector<mlir::Value> weights;
  /// As in NormaliserUpdate.
  mlir::Value factor;
  llvm::SmallVector<mlir::Value> running;
};

/// Weights, per row, with which two finalised states are combined.
struct MergeWeights {
  mlir::Value weightA, weightB, statistic;
};

/// An operand of an op that makes a view, by the name that it has in messages
/// and in the manifest.
using KVOperand = std::pair<llvm::StringRef, mlir::Value>;

/// Builds the value that a region of fi.attention yields, from the region's
/// arguments: positions (and the score), then the captures.
using AttentionRegionBuilder = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

} // namespace fi

#include "fi/Dialect/FI/IR/FITypeInterfaces.h.inc"

#include "fi/Dialect/FI/IR/FIAttrInterfaces.h.inc"

#include "fi/Dialect/FI/IR/FIOpInterfaces.h.inc"

#endif // FI_DIALECT_FI_IR_FIINTERFACES_H
