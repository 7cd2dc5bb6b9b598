//===- TensorEvaluator.h - functions of linalg, in double -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates a function on tensors, op by op and element by element, in double
// precision without any rounding between ops. What a function runs of fi's
// programs is run by a backend.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_RAISE_TENSOREVALUATOR_H
#define FI_TEST_UNIT_RAISE_TENSOREVALUATOR_H

#include "fi/Dialect/FI/IR/FICalls.h"
#include "fi/Interpreter/Reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <string>
#include <vector>

namespace fi::test {

/// Row-major. A scalar has no dimensions.
struct Numbers {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> data;

  int64_t getOffset(llvm::ArrayRef<int64_t> indices) const;
  double &at(llvm::ArrayRef<int64_t> indices) {
    return data[size_t(getOffset(indices))];
  }
};

class TensorEvaluator {
public:
  explicit TensorEvaluator(std::string backend) : backend(std::move(backend)) {}

  /// Of the only result. What is not known ends the test with a sentence.
  Numbers evaluate(mlir::func::FuncOp function,
                   llvm::ArrayRef<Numbers> arguments);

private:
  /// What is known while a body is evaluated.
  using Scalars = llvm::SmallDenseMap<mlir::Value, double, 16>;

  void evaluate(mlir::Operation *op);
  void evaluate(mlir::linalg::LinalgOp op);
  void evaluateSoftmax(mlir::linalg::SoftmaxOp op);
  void run(RunOp op);
  double evaluateScalar(mlir::Value value, mlir::Operation *of,
                        llvm::ArrayRef<int64_t> loops, Scalars &scalars);
  Numbers &get(mlir::Value value);
  int64_t getIndex(mlir::Value value) { return int64_t(get(value).data[0]); }
  llvm::SmallVector<int64_t> getShape(mlir::Type type,
                                      mlir::ValueRange dynamic);

  std::string backend;
  llvm::DenseMap<mlir::Value, Numbers> values;
};

} // namespace fi::test

#endif // FI_TEST_UNIT_RAISE_TENSOREVALUATOR_H
