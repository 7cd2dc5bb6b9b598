//===- Smoke.h - Checks of the runtime on a device -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_TOOLS_FI_GPU_SMOKE_SMOKE_H
#define FI_TOOLS_FI_GPU_SMOKE_SMOKE_H

#include "fi-runtime/fi_runtime.h"

#include <functional>
#include <string>

namespace fi::smoke {

/// Captures what `body` launches into a graph and launches the graph `times`
/// times in the stream; "" or what went wrong. Null where a driver has no
/// graphs.
using Capture = std::function<std::string(
    void *stream, const std::function<std::string()> &body, int times)>;

struct Options {
  std::string package;
  int32_t device = 0;
  bool small = false;   // batches that an emulator does in seconds
  bool explain = false; // print what each plan has chosen
  Capture capture;
};

/// Runs all checks on a driver (NULL: CUDA) and prints a line for each. Returns
/// the number of failures, or -1 where there is no device.
int runSmoke(const fi_driver *driver, const Options &options);

} // namespace fi::smoke

#endif // FI_TOOLS_FI_GPU_SMOKE_SMOKE_H
