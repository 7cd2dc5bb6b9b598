//===- Fault.h - What went wrong on a device, and for whom -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sentences that name kernel, plan and request for what a driver reports of a
// launch, and for what checked kernels leave in their logs.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_FAULT_H
#define FI_RUNTIME_LAUNCH_FAULT_H

#include "../Planner/Plan.h"

namespace fi::runtime {

/// "request 2, KV head 1, query row 17, keys 0 to 63": the item of that index
/// among those of a launch.
std::string describeItem(const fi_plan &plan, const Launch &launch,
                         int64_t index);

/// Fails if a checked kernel of the plan has found something since the last
/// look. Does not wait for runs that are under way.
fi_status checkFaults(const fi_plan &plan);

/// Fails with what the driver says of a launch. `waited`: the launch was waited
/// for, so that what it says is of this launch.
fi_status launchFailed(const fi_plan &plan, const DeviceLaunch &launch,
                       int result, bool waited);

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_FAULT_H
