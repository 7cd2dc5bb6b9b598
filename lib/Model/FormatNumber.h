//===- FormatNumber.h - numbers in MLIR -------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_MODEL_FORMATNUMBER_H
#define FI_LIB_MODEL_FORMATNUMBER_H

#include <algorithm>
#include <cstdio>
#include <string>

namespace fi::model {

/// A number as MLIR reads it, with a point, to the precision of f32 and more.
inline std::string formatNumber(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.12g", value);
  std::string text = buffer;
  if (text.find('.') == std::string::npos)
    text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

} // namespace fi::model

#endif // FI_LIB_MODEL_FORMATNUMBER_H
