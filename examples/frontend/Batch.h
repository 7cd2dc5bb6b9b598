//===- Batch.h - sequences to run a toy.sdpa on -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BATCH_H
#define BATCH_H

#include "Toy.h"
#include "fi/Interpreter/Reference.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace toy {

struct Batch {
  /// One value for each argument of the function.
  std::vector<fi::HostValue> arguments;
  /// What its result is, by the toy dialect's definition, in double precision.
  std::vector<double> expected;
};

/// Makes seeded numbers for sequences with so many rows and keys, and evaluates
/// the function, which is one toy.sdpa.
llvm::Expected<Batch> makeBatch(mlir::func::FuncOp function,
                                llvm::ArrayRef<int64_t> rows,
                                llvm::ArrayRef<int64_t> keys);

} // namespace toy

#endif // BATCH_H
