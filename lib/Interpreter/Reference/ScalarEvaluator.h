//===- ScalarEvaluator.h - scalar ops, one by one ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates the ops that regions consist of: arith, math, index, scf.if and
// fi.load. Floats are computed in double and rounded to their type by casts
// only; integers wrap at the width of their type; index is 64 bits, signed.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_INTERPRETER_REFERENCE_SCALAREVALUATOR_H
#define FI_LIB_INTERPRETER_REFERENCE_SCALAREVALUATOR_H

#include "fi/Support/HostTensor.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>
#include <string>
#include <vector>

namespace fi::reference {

/// A value: `number` for floats, `integer` (sign-extended) for all others.
struct Scalar {
  double number = 0;
  int64_t integer = 0;

  static Scalar of(double value) { return {value, 0}; }
  static Scalar of(int64_t value) { return {0, value}; }
};

/// Bits of an integer or index type.
unsigned integerWidth(mlir::Type type);
/// `value` wrapped to `width` bits and sign-extended.
int64_t wrap(int64_t value, unsigned width);
/// `value` rounded to a float type.
double roundTo(double value, mlir::Type type);

class ScalarEvaluator {
public:
  /// Gives `value` a slot.
  void define(mlir::Value value) { slotOf(value); }
  /// What fi.load reads for `value`.
  void setTensor(mlir::Value value, HostTensor tensor) {
    tensors[value] = std::move(tensor);
  }
  void set(mlir::Value value, Scalar scalar) { slots[slotOf(value)] = scalar; }
  Scalar get(mlir::Value value) { return slots[slotOf(value)]; }

  /// Adds `op` to what `run` executes; fails for ops that have no meaning here.
  bool add(mlir::Operation &op);
  /// Adds all ops of `block` but its terminator.
  bool add(mlir::Block &block);
  /// Forgets the ops that were added, not the values.
  void clear() { steps.clear(); }
  /// Executes the ops in order.
  bool run();

  /// Why something failed.
  const std::string &getError() const { return error; }

private:
  using Step = std::function<bool(Scalar *)>;
  using Steps = std::vector<Step>;

  unsigned slotOf(mlir::Value value);
  bool fail(mlir::Operation &op, const llvm::Twine &why);
  bool compile(mlir::Operation &op, Steps &into);
  bool compile(mlir::Block &block, Steps &into);
  bool compileConstant(mlir::Operation &op, Steps &into);
  bool compileCast(mlir::Operation &op, Steps &into);
  bool compileDivision(mlir::Operation &op, Steps &into);
  bool compileCompare(mlir::Operation &op, Steps &into);
  bool compileLoad(mlir::Operation &op, Steps &into);
  bool compileIf(mlir::Operation &op, Steps &into);
  bool compileInteger(mlir::Operation &op, Steps &into);
  bool compileFloat(mlir::Operation &op, Steps &into);

  llvm::DenseMap<mlir::Value, unsigned> slotNumbers;
  llvm::DenseMap<mlir::Value, HostTensor> tensors;
  std::vector<Scalar> slots;
  Steps steps;
  std::string error;
};

} // namespace fi::reference

#endif // FI_LIB_INTERPRETER_REFERENCE_SCALAREVALUATOR_H
