//===- Rows.h - checks that ops on rows share -------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FI_IR_ROWS_H
#define FI_LIB_DIALECT_FI_IR_ROWS_H

#include "fi/Dialect/FI/IR/FICompanions.h"

namespace fi {

using Effects = llvm::SmallVectorImpl<
    mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>>;

/// [rows, heads, dim] with heads and dim known, by the rule.
mlir::LogicalResult verifyRowsOf(mlir::Operation *op, mlir::ShapedType type,
                                 llvm::StringRef rule);

/// ROW1: as many results as `wanted`, or memrefs of `outs` in place of them.
mlir::LogicalResult verifyPlaces(CompanionOpInterface op, size_t wanted);

/// Sizes of results are those of their types, and the rows of an operand.
mlir::LogicalResult reifyRows(mlir::OpBuilder &b, CompanionOpInterface op,
                              mlir::ReifiedRankedShapedTypeDims &shapes);

/// Memrefs are read; those of `outs` are written.
void getRowEffects(mlir::Operation *op, mlir::MutableOperandRange outs,
                   Effects &effects);

} // namespace fi

#endif // FI_LIB_DIALECT_FI_IR_ROWS_H
