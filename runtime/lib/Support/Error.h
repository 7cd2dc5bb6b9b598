//===- Error.h - Status and error sentences of the runtime -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A failure is a status code plus one sentence in thread-local memory, so that
// failing needs no allocation.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_SUPPORT_ERROR_H
#define FI_RUNTIME_SUPPORT_ERROR_H

#include "fi-runtime/fi_runtime.h"

namespace fi::runtime {

/// Stores the sentence for fi_last_error and returns `status`.
fi_status fail(fi_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *lastError();

const char *dtypeName(int32_t dtype);
/// Bytes of an element; 0 for an unknown dtype.
int64_t dtypeSize(int32_t dtype);
bool isIntegerDtype(int32_t dtype);
/// True where a value of dtype `got` may be passed for `expected`.
bool dtypeMatches(int32_t expected, int32_t got);

} // namespace fi::runtime

/// Returns from the enclosing function on failure.
#define FI_TRY(expression)                                                     \
  do {                                                                         \
    if (fi_status fiTryStatus = (expression))                                  \
      return fiTryStatus;                                                      \
  } while (false)

#endif // FI_RUNTIME_SUPPORT_ERROR_H
