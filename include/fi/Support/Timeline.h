//===- Timeline.h - what the warps of a GPU did when ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the trace that fi_plan_timeline_json gives (docs/profiling.md).
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_TIMELINE_H
#define FI_SUPPORT_TIMELINE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fi {

/// A table: for each kernel and role, what part of its warps' time phases took,
/// how often they came, and how long one was.
llvm::Expected<std::string> summarizeTimeline(llvm::StringRef traceJson);

/// An SVG picture: a row for each role of the CTAs that a multiprocessor had
/// one after another, of the first warp of each, phases in colours, an axis in
/// microseconds, a legend. `title` heads it; empty: the program's name.
llvm::Expected<std::string> plotTimeline(llvm::StringRef traceJson,
                                         llvm::StringRef title = "");

} // namespace fi

#endif // FI_SUPPORT_TIMELINE_H
