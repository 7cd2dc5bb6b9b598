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
#include <vector>

namespace fi::smoke {

/// Does something and returns "" or what went wrong.
using Step = std::function<std::string()>;

/// Captures what `body` launches into a graph; `launch` launches that in the
/// same stream. Null where a driver has no graphs.
using Capture =
    std::function<std::string(void *stream, const Step &body, Step &launch)>;

/// Graphs on drivers without them, for tests: launches through `table` are kept
/// while they are captured, and done again from what was kept.
class RecordingDriver {
public:
  explicit RecordingDriver(const fi_driver *inner);
  ~RecordingDriver();
  RecordingDriver(const RecordingDriver &) = delete;
  const fi_driver *table() const { return &driver; }
  Capture capture();

private:
  struct Launch {
    void *function;
    fi_driver_launch shape;
    std::vector<char> params;
  };
  static int launch(void *self, void *function, const fi_driver_launch *shape);

  const fi_driver *inner;
  fi_driver driver;
  bool recording = false;
  std::vector<Launch> recorded;
};

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
