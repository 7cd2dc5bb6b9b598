//===- Run.h - Running a plan ----------------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_RUN_H
#define FI_RUNTIME_LAUNCH_RUN_H

#include "../Planner/Plan.h"

namespace fi::runtime {

/// See fi_run.
fi_status runPlan(fi_plan *plan, uint64_t generation, const fi_value *values,
                  int32_t valueCount, const fi_tensor *results,
                  int32_t resultCount, void *workspace, size_t bytes);

/// See fi_run_device.
fi_status runPlanOnDevice(fi_plan *plan, uint64_t generation,
                          const fi_value *values, int32_t valueCount,
                          const fi_tensor *results, int32_t resultCount,
                          void *workspace, size_t bytes, void *stream);

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_RUN_H
