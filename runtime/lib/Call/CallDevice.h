//===- CallDevice.h - Calls of programs for a device -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compiled function has memory of the host, of the device, or some of each.
// What of a run's values the device cannot reach is copied there and back.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_CALL_CALLDEVICE_H
#define FI_RUNTIME_CALL_CALLDEVICE_H

#include "../Device/Device.h"

namespace fi::runtime {

/// Device memory of one run at a time: its workspace, and copies of what the
/// host has.
class DeviceScratch {
public:
  explicit DeviceScratch(fi_device &device) : device(device) {
    retain(&device);
  }
  ~DeviceScratch();
  DeviceScratch(const DeviceScratch &) = delete;
  DeviceScratch &operator=(const DeviceScratch &) = delete;

  /// Keeps nothing of what was there. The device's context is current.
  fi_status reserve(size_t bytes);
  char *data() const { return memory; }

private:
  fi_device &device;
  char *memory = nullptr;
  size_t capacity = 0;
};

/// Fails if the planner, which runs on the host, cannot read a value.
fi_status checkPlanValues(fi_device &device, const fi_package &package,
                          const fi_value *values, int32_t count);

/// Runs a plan for a device. Waits only if the host has or reaches some of the
/// memory.
fi_status runOnDevice(fi_plan &plan, const fi_value *values, int32_t valueCount,
                      const fi_tensor *results, int32_t resultCount,
                      DeviceScratch &scratch, void *stream);

} // namespace fi::runtime

#endif // FI_RUNTIME_CALL_CALLDEVICE_H
