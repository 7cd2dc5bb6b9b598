//===- NormTolerances.h - how far norms of rows may be off ------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NUM10 to NUM12 for the elements of one norm of a program, from its inputs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_EXECUTION_NORMTOLERANCES_H
#define FI_LIB_EXECUTION_NORMTOLERANCES_H

#include "fi/Execution/Compare.h"
#include "fi/Execution/Signature.h"

namespace fi {

class NormTolerances {
public:
  NormTolerances(const NormInfo &norm, const BackendRun &run);

  /// Of an element [row, head, d] of the result of type `out`, of which the
  /// reference has `expected`.
  double ofNorm(llvm::ArrayRef<int64_t> index, double expected, DType out);
  /// Of an element of the sum of two inputs.
  double ofSum(double expected, DType out) const;

private:
  std::optional<HostTensor> find(int argument) const;
  double getScale(int64_t head) const;
  /// The largest element of a row in units of its deviation.
  double getLargest(int64_t row, int64_t head);

  const NormInfo &norm;
  const BackendRun &run;
  std::optional<HostTensor> input, addend, weight, bias;
  int64_t row = -1, head = -1;
  double largest = 0;
};

} // namespace fi

#endif // FI_LIB_EXECUTION_NORMTOLERANCES_H
