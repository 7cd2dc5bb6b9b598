//===- Text.h - Text that is put together piece by piece -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_SUPPORT_TEXT_H
#define FI_RUNTIME_SUPPORT_TEXT_H

#include <cstdarg>
#include <cstdio>
#include <string>

namespace fi::runtime {

/// Appends what printf would print, up to 511 characters of it.
inline void append(std::string &text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

inline void append(std::string &text, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  text += line;
}

/// A JSON string. Names come from the manifest and may hold anything.
inline std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      append(out, "\\u%04x", c);
    else
      out += c;
  }
  return out + "\"";
}

} // namespace fi::runtime

#endif // FI_RUNTIME_SUPPORT_TEXT_H
