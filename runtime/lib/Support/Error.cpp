//===- Error.cpp - Status and error sentences of the runtime --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The thread-local error sentence, and names and sizes of dtypes.
//
//===----------------------------------------------------------------------===//
#include "Error.h"

#include <cstdarg>
#include <cstdio>

namespace fi::runtime {

static thread_local char message[1024];

fi_status fail(fi_status status, const char *format, ...) {
  // Formatted apart first: an argument may point into the previous message.
  char text[sizeof(message)];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::snprintf(message, sizeof(message), "%s", text);
  return status;
}

const char *lastError() { return message; }

const char *dtypeName(int32_t dtype) {
  switch (dtype) {
  case FI_F32:
    return "f32";
  case FI_F16:
    return "f16";
  case FI_BF16:
    return "bf16";
  case FI_I32:
    return "i32";
  case FI_I64:
    return "i64";
  case FI_I8:
    return "i8";
  case FI_I1:
    return "i1";
  case FI_INDEX:
    return "index";
  case FI_F8E4M3FN:
    return "f8E4M3FN";
  case FI_F8E5M2:
    return "f8E5M2";
  case FI_F8E8M0FNU:
    return "f8E8M0FNU";
  default:
    return "an unknown dtype";
  }
}

int64_t dtypeSize(int32_t dtype) {
  switch (dtype) {
  case FI_F32:
  case FI_I32:
    return 4;
  case FI_F16:
  case FI_BF16:
    return 2;
  case FI_I64:
  case FI_INDEX:
    return 8;
  case FI_I8:
  case FI_I1:
  case FI_F8E4M3FN:
  case FI_F8E5M2:
  case FI_F8E8M0FNU:
    return 1;
  default:
    return 0;
  }
}

bool isIntegerDtype(int32_t dtype) {
  return dtype >= FI_I32 && dtype <= FI_INDEX;
}

bool dtypeMatches(int32_t expected, int32_t got) {
  return expected == got || (expected == FI_INDEX && got == FI_I64) ||
         (expected == FI_I64 && got == FI_INDEX);
}

} // namespace fi::runtime
