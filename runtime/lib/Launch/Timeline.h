//===- Timeline.h - When warps began their phases --------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_TIMELINE_H
#define FI_RUNTIME_LAUNCH_TIMELINE_H

#include "../Planner/Plan.h"

namespace fi::runtime {

/// What the last run's warps have written, as a trace of Chrome's format.
fi_status timelineJson(const fi_plan &plan, void *stream, std::string &json);

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_TIMELINE_H
