//===- Device.cpp - An opened device --------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opening devices, and the sentences of what goes wrong with them.
//
//===----------------------------------------------------------------------===//
#include "Device.h"
#include "../Support/Error.h"

#include <memory>

namespace fi::runtime {

void retain(fi_device *device) {
  device->references.fetch_add(1, std::memory_order_relaxed);
}

void release(fi_device *device) {
  if (!device ||
      device->references.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (device->context)
    device->driver->context_close(device->driver->self, device->context);
  delete device;
}

std::string chipOf(const fi_device &device) {
  return "sm_" + std::to_string(device.info.compute_major) +
         std::to_string(device.info.compute_minor);
}

fi_status statusOf(int result) {
  switch (result) {
  case FI_DRIVER_OK:
    return FI_OK;
  case FI_DRIVER_OUT_OF_MEMORY:
    return FI_OUT_OF_MEMORY;
  case FI_DRIVER_UNAVAILABLE:
    return FI_UNSUPPORTED;
  case FI_DRIVER_NOT_FOUND:
  case FI_DRIVER_BAD_CODE:
    return FI_INVALID_PACKAGE;
  case FI_DRIVER_OTHER_DEVICE:
    return FI_INVALID_RUN;
  default:
    return FI_DEVICE_ERROR;
  }
}

fi_status deviceFailed(const fi_device &device, int result, const char *doing) {
  return fail(statusOf(result), "%s: %s device %d (%s): %s", doing,
              device.driver->name, device.ordinal, device.info.name,
              device.driver->last_error(device.driver->self));
}

fi_status openDevice(const fi_driver *driver, int32_t ordinal,
                     fi_device **device) {
  if (!driver)
    FI_TRY(fi_cuda_driver(&driver));
  if (driver->version != FI_DRIVER_VERSION)
    return fail(FI_INVALID_ARGUMENT,
                "device: driver: expected a table of version %d, but got %d; "
                "build both against the same fi_driver.h",
                FI_DRIVER_VERSION, driver->version);
  int32_t count = 0;
  if (int result = driver->device_count(driver->self, &count))
    return fail(statusOf(result), "device: %s: %s", driver->name,
                driver->last_error(driver->self));
  if (count == 0)
    return fail(FI_UNSUPPORTED,
                "device: the %s driver has no device; run on a machine with a "
                "GPU that this process may see, or compile for the cpu",
                driver->name);
  if (ordinal < 0 || ordinal >= count)
    return fail(FI_INVALID_ARGUMENT,
                "device: expected a device of the %s driver, 0 to %d, but got "
                "%d",
                driver->name, count - 1, ordinal);
  struct Releaser {
    void operator()(fi_device *opened) const { release(opened); }
  };
  std::unique_ptr<fi_device, Releaser> opened(new fi_device);
  opened->driver = driver;
  opened->ordinal = ordinal;
  int result = driver->device_info(driver->self, ordinal, &opened->info);
  if (!result)
    result = driver->context_open(driver->self, ordinal, &opened->context);
  if (result)
    return deviceFailed(*opened, result, "device: cannot be opened");
  *device = opened.release();
  return FI_OK;
}

fi_status checkNotCaptured(const fi_device &device, void *stream,
                           const char *because) {
  const fi_driver &driver = *device.driver;
  int32_t capturing = 0;
  if (int result = driver.stream_capturing(driver.self, stream, &capturing))
    return deviceFailed(device, result, "run: stream");
  if (!capturing)
    return FI_OK;
  return fail(FI_INVALID_RUN,
              "run: stream: expected a stream that is not being captured, "
              "because %s",
              because);
}

bool isDeviceMemory(fi_device &device, const void *pointer, std::string &why) {
  uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  // Fibonacci hashing; the low bits of allocations are 0.
  uint64_t hash = uint64_t(address) * 0x9E3779B97F4A7C15u;
  auto &set = device.known[hash >> 56];
  std::atomic<uintptr_t> *place = &set[hash >> 48 & (fi_device::knownWays - 1)];
  for (std::atomic<uintptr_t> &known : set) {
    uintptr_t found = known.load(std::memory_order_relaxed);
    if (found == address)
      return true;
    if (found == 0)
      place = &known;
  }
  fi_driver_pointer info = {};
  const fi_driver &driver = *device.driver;
  if (driver.pointer_info(driver.self, pointer, &info) ||
      info.memory == FI_DRIVER_HOST) {
    why = "host memory; copy it to the device first";
    return false;
  }
  if (info.memory == FI_DRIVER_DEVICE && info.ordinal != device.ordinal) {
    why = "memory of device " + std::to_string(info.ordinal) +
          "; copy it, or plan for that device";
    return false;
  }
  place->store(address, std::memory_order_relaxed);
  return true;
}

} // namespace fi::runtime
