//===- Progress.h - Shared counters of a run in its workspace --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counters by which workers share out the items of a run. They lie in the
// workspace, one to a cache line, so that runs of one plan do not meet.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_PROGRESS_H
#define FI_RUNTIME_LAUNCH_PROGRESS_H

#include "fi/ABI/KernelABI.h"

#include <atomic>
#include <cstdint>

namespace fi::runtime {

/// Items of a phase that are done, or the next item of a list.
struct alignas(FI_ALIGNMENT) Progress {
  std::atomic<int64_t> value;
};
static_assert(sizeof(Progress) == FI_ALIGNMENT, "one cache line");

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_PROGRESS_H
