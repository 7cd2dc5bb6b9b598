//===- MaskReader.h - from a mask's IR to formulas --------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the arithmetic of a region (arith, index, scf.if, fi.load) into linear
// forms and formulas. Casts between integer types and `index` are transparent
// where the value fits.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_ANALYSIS_MASKREADER_H
#define FI_LIB_ANALYSIS_MASKREADER_H

#include "MaskFormula.h"
#include "fi/Dialect/FI/IR/FI.h"

namespace fi::mask {

class MaskReader {
public:
  using Remarks = llvm::SmallVectorImpl<std::pair<mlir::Location, std::string>>;

  /// Positions are taken to lie within `limit` of zero.
  MaskReader(AttentionOp op, int64_t limit, Remarks &remarks);

  /// The block arguments of a mask: five positions, then captures.
  void bindArguments(mlir::ValueRange arguments);
  const Formula *readBoolean(mlir::Value value);
  Linear readInteger(mlir::Value value);

  Formulas &getFormulas() { return formulas; }
  const Linear &getKeyPosition() const { return keyPosition; }
  /// Numbers that are not negative where positions are within the limit.
  llvm::SmallVector<Linear> getLimits() const;

private:
  Linear computeInteger(mlir::Value value);
  Linear readCapture(mlir::Value value, mlir::Value captured);
  Linear readLoad(LoadOp load);
  Linear readArithmetic(mlir::Operation *op);
  Linear readDivision(mlir::Operation *op, llvm::StringRef name);
  Linear readCast(mlir::Operation *op, bool isUnsigned);
  const Formula *computeBoolean(mlir::Value value);
  const Formula *readCompare(mlir::Operation *op, llvm::StringRef predicate);

  /// The argument of the program that `captured` is, if it is integer plan
  /// data.
  std::optional<unsigned> getPlanArgument(mlir::Value captured,
                                          std::string &reason);
  Linear fail(mlir::Value value, std::string reason);
  Linear fit(mlir::Value value, const std::optional<Linear> &form,
             bool cannotWrap = false);
  void remark(mlir::Location loc, llvm::StringRef reason);

  AttentionOp op;
  ProgramOp program;
  int64_t limit;
  Remarks &remarks;
  Leaves leaves;
  mlir::Location current;
  // Behind the function that `formulas` refers to.
  std::function<void(const Leaf *, llvm::StringRef)> report;
  Formulas formulas;
  Linear queryPosition, keyPosition;
  llvm::DenseMap<mlir::Value, Linear> integers;
  llvm::DenseMap<mlir::Value, const Formula *> booleans;
  llvm::DenseMap<mlir::Value, mlir::Value> captures;
  unsigned depth = 0;
};

} // namespace fi::mask

#endif // FI_LIB_ANALYSIS_MASKREADER_H
