//===- RuntimeTypes.h - element types by the runtime's names ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What compiler and runtime call the same type.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_RUNTIMETYPES_H
#define FI_SUPPORT_RUNTIMETYPES_H

#include "fi-runtime/fi_runtime.h"
#include "fi/Support/HostTensor.h"

namespace fi {

/// None for f64, which the runtime has not.
std::optional<fi_dtype> toRuntimeType(DType type);

} // namespace fi

#endif // FI_SUPPORT_RUNTIMETYPES_H
