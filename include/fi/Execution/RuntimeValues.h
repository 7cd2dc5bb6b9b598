//===- RuntimeValues.h - values of backends for the runtime ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors and scalars of an executor as the runtime's C interface takes them.
// They refer to the memory, shapes and strides of what they are made from.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EXECUTION_RUNTIMEVALUES_H
#define FI_EXECUTION_RUNTIMEVALUES_H

#include "fi-runtime/fi_runtime.h"
#include "fi/Execution/Executor.h"

namespace fi {

/// `what` names the tensor in an error: the runtime has no f64.
llvm::Error toRuntimeTensor(const HostTensor &from, llvm::StringRef what,
                            fi_tensor &to);

/// The plan arguments or the run arguments, in their order.
llvm::Error toRuntimeValues(const Signature &signature,
                            llvm::ArrayRef<HostValue> arguments, bool isPlan,
                            llvm::SmallVectorImpl<fi_value> &out);

} // namespace fi

#endif // FI_EXECUTION_RUNTIMEVALUES_H
