//===- Device.h - An opened device -----------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device behind a driver's table, and what is common to all work with it: its
// context, its sentences on failure, and which pointers are known to be its.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_DEVICE_DEVICE_H
#define FI_RUNTIME_DEVICE_DEVICE_H

#include "fi-runtime/fi_runtime.h"

#include <atomic>
#include <string>

/// Reference-counted: the user's handle, each plan and each loaded package hold
/// one.
struct fi_device {
  const fi_driver *driver = nullptr;
  int32_t ordinal = 0;
  void *context = nullptr;
  fi_driver_device info = {};
  std::atomic<int32_t> references{1};

  /// Pointers that were found to be memory of this device: sets by their hash,
  /// of a few each. Asking the driver costs more than the rest of a run.
  static constexpr size_t knownSets = 256, knownWays = 4;
  std::atomic<uintptr_t> known[knownSets][knownWays] = {};
};

namespace fi::runtime {

fi_status openDevice(const fi_driver *driver, int32_t ordinal,
                     fi_device **device);
void retain(fi_device *device);
void release(fi_device *device);

/// "sm_90": what the device is.
std::string chipOf(const fi_device &device);

/// What a driver's result means to a caller of the runtime.
fi_status statusOf(int result);

/// Fails with `doing`, the device and what the driver says.
fi_status deviceFailed(const fi_device &device, int result, const char *doing);

/// Fails if a stream of the current context is being captured, which a run that
/// waits for it would end.
fi_status checkNotCaptured(const fi_device &device, void *stream,
                           const char *because);

/// Makes the device's context current while it lives.
class InContext {
public:
  explicit InContext(const fi_device &device) : device(device) {
    result = device.driver->context_enter(device.driver->self, device.context,
                                          &changed);
  }
  ~InContext() {
    if (changed)
      device.driver->context_leave(device.driver->self, device.context);
  }
  InContext(const InContext &) = delete;
  InContext &operator=(const InContext &) = delete;

  fi_status status(const char *doing) const {
    return result ? deviceFailed(device, result, doing) : FI_OK;
  }

private:
  const fi_device &device;
  int32_t changed = 0;
  int result = 0;
};

/// Whether kernels of the device may use a pointer. `why` is where it is
/// instead, for a sentence.
bool isDeviceMemory(fi_device &device, const void *pointer, std::string &why);

} // namespace fi::runtime

#endif // FI_RUNTIME_DEVICE_DEVICE_H
