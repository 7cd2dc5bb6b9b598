//===- Parallel.h - work side by side ---------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_PARALLEL_H
#define FI_SUPPORT_PARALLEL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstddef>

namespace fi {

/// Calls `work` with 0 to `count` - 1, each once, in any order, on `threads`
/// threads; 0: as many as there are cores. The caller is one of them.
void parallelFor(size_t count, llvm::function_ref<void(size_t)> work,
                 size_t threads = 0);

} // namespace fi

#endif // FI_SUPPORT_PARALLEL_H
