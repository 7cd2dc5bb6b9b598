//===- MarkLogs.h - Logs of time stamps on a device ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernels of profile builds write when their phases begin (KernelABI.h).
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_DEVICE_MARKLOGS_H
#define FI_RUNTIME_DEVICE_MARKLOGS_H

#include "../Package/Manifest.h"
#include "../Planner/WorkList.h"
#include "../Support/Buffer.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/ABI/KernelABI.h"

#include <vector>

namespace fi::runtime {

struct DeviceLaunch;

/// What one warp of a launch has written.
struct WarpMarks {
  int32_t launch; // index into WorkLists::launches
  uint32_t cta, warp;
  fi_warp_marks head;
  std::vector<fi_mark> marks;
};

class MarkLogs {
public:
  /// Gives the profiled kernels among the launches logs with room for the marks
  /// of their items, all logs together at most `most` bytes: those for which
  /// there is no room are counted by the kernels.
  fi_status place(const Manifest &manifest, const WorkLists &lists,
                  fi_device &device, int64_t most, void *stream,
                  Buffer<DeviceLaunch> &launches);
  void release(fi_device &device);

  /// What the warps of the last run have written; waits for the stream. None
  /// of a warp that has not run since the logs were placed.
  fi_status read(fi_device &device, void *stream,
                 std::vector<WarpMarks> &warps) const;
  size_t bytes() const { return used; }

private:
  struct Log {
    int32_t launch;
    uint32_t grid, warps, capacity;
    size_t offset;
  };
  static size_t partBytes(const Log &log) {
    return sizeof(fi_warp_marks) + size_t(log.capacity) * sizeof(fi_mark);
  }
  static size_t bytesOf(const Log &log) {
    return sizeof(fi_mark_log) + size_t(log.grid) * log.warps * partBytes(log);
  }
  fi_status reserve(fi_device &device, size_t bytes, void *stream);

  std::vector<Log> logs;
  char *memory = nullptr; // on the device
  size_t capacity = 0, used = 0;
  uint32_t run = 0; // what warps of this batch write into their parts
};

} // namespace fi::runtime

#endif // FI_RUNTIME_DEVICE_MARKLOGS_H
