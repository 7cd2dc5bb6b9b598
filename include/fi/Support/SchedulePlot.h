//===- SchedulePlot.h - a plan's schedule as a picture ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws who does what and when, in units of the planner's cost model, from the
// JSON that fi_plan_schedule_json gives.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_SCHEDULEPLOT_H
#define FI_SUPPORT_SCHEDULEPLOT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fi {

/// An SVG picture: a lane per worker, a box per item coloured by its request,
/// an axis in cost units, a legend. `title` heads it; empty: the program's
/// name.
llvm::Expected<std::string> plotSchedule(llvm::StringRef scheduleJson,
                                         llvm::StringRef title = "");

} // namespace fi

#endif // FI_SUPPORT_SCHEDULEPLOT_H
