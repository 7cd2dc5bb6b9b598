//===- RowElements.h - elements of rows, and what they are off --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_INTERPRETER_REFERENCE_ROWELEMENTS_H
#define FI_LIB_INTERPRETER_REFERENCE_ROWELEMENTS_H

#include "ReferenceImpl.h"
#include "fi/Interpreter/Tolerance.h"

namespace fi::reference {

/// Calls `visit` with each row and head.
inline void visitRows(const HostTensor &rows,
                      llvm::function_ref<void(int64_t, int64_t)> visit) {
  for (int64_t row = 0; row < rows.getSize(0); ++row)
    for (int64_t head = 0; head < rows.getSize(1); ++head)
      visit(row, head);
}

/// By how much an element of an input may be off.
inline double errorOf(const Rows &input, llvm::ArrayRef<int64_t> index) {
  return input.tolerance ? input.tolerance->getFloat(index) : 0;
}

/// Stores what was computed, off by `error` before it is rounded.
inline void setElement(Rows &result, llvm::ArrayRef<int64_t> index,
                       double value, double error) {
  result.values.setFloat(index, value);
  if (result.tolerance)
    result.tolerance->setFloat(
        index, elementTolerance(value, error, result.values.getType()));
}

/// By how much the number of a code may be off where the quotient that it is
/// the code of may be off by `error`.
inline double codeTolerance(double quotient, double error, DType type) {
  if (error == 0)
    return 0;
  auto numberOf = [&](double x) {
    char code;
    writeSaturated(&code, type, static_cast<float>(x));
    return readFloat(&code, type);
  };
  double number = numberOf(quotient);
  return std::max(std::fabs(numberOf(quotient + error) - number),
                  std::fabs(numberOf(quotient - error) - number));
}

/// What a quotient by a computed scale may be off by, relative to itself.
inline constexpr double kQuotientError = 0x1p-22;

} // namespace fi::reference

#endif // FI_LIB_INTERPRETER_REFERENCE_ROWELEMENTS_H
