//===- RuntimeTypes.cpp - element types by the runtime's names ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/RuntimeTypes.h"

using namespace fi;

std::optional<fi_dtype> fi::toRuntimeType(DType type) {
  switch (type) {
  case DType::F32:
    return FI_F32;
  case DType::F16:
    return FI_F16;
  case DType::BF16:
    return FI_BF16;
  case DType::I32:
    return FI_I32;
  case DType::I64:
    return FI_I64;
  case DType::I8:
    return FI_I8;
  case DType::I1:
    return FI_I1;
  case DType::F8E4M3FN:
    return FI_F8E4M3FN;
  case DType::F8E5M2:
    return FI_F8E5M2;
  case DType::F8E8M0FNU:
    return FI_F8E8M0FNU;
  case DType::F64:
    break;
  }
  return std::nullopt;
}
