//===- Device.h - a device of the runtime as a memory -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What backends on devices need beside a plan: the opened device, its memory,
// one stream in which everything happens, and clocks in it.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_EXECUTION_DEVICE_H
#define FI_LIB_EXECUTION_DEVICE_H

#include "fi-runtime/fi_runtime.h"
#include "fi/Execution/Memory.h"
#include "fi/Target/SMTable.h"
#include <string>

namespace fi {

/// Tensors keep the device whose memory they are in.
class Device : public Memory, public std::enable_shared_from_this<Device> {
public:
  /// Whether a backend's name is one of a device: `cuda`, `cuda:ORDINAL`,
  /// `emulated:CHIP`, `emulated:CHIP:OPTION...`, or meant to be.
  static bool isName(llvm::StringRef backend);
  /// Whether the kind and the chip or number of such a name are right, be the
  /// device here or not.
  static llvm::Error check(llvm::StringRef backend);
  static llvm::Expected<std::shared_ptr<Device>> open(llvm::StringRef backend);
  ~Device() override;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// The target whose code it runs best.
  const sm::Target &getChip() const { return *chip; }
  bool isEmulated() const { return emulator != nullptr; }
  /// For people: "NVIDIA H200 (sm_90a), driver for CUDA 12.4".
  std::string describe() const;

  fi_device *getHandle() const { return device; }
  void *getStream() const { return stream; }

  /// Calls `launch`, which puts work into the stream, and waits for the end of
  /// that work. The milliseconds that it took on the device.
  llvm::Expected<double>
  measure(llvm::function_ref<llvm::Error()> launch) const;

  bool isHost() const override { return false; }
  llvm::Expected<HostTensor> allocate(DType type,
                                      llvm::ArrayRef<int64_t> shape) override;
  llvm::Error write(void *to, const void *from, int64_t bytes) override;
  llvm::Error read(void *to, const void *from, int64_t bytes) override;
  llvm::Error fill(void *to, int byte, int64_t bytes) override;

private:
  Device() = default;
  llvm::Error openOn(int32_t ordinal);
  /// Calls `work` with the device's context current and takes its result.
  llvm::Error inContext(const char *doing,
                        llvm::function_ref<int()> work) const;
  void release(void *memory) const;

  std::string backend;
  const fi_driver *driver = nullptr;
  /// The driver again where it is an emulator's, which is owned.
  const fi_driver *emulator = nullptr;
  fi_device *device = nullptr;
  fi_driver_device info = {};
  const sm::Target *chip = nullptr;
  void *context = nullptr, *stream = nullptr;
  void *first = nullptr, *last = nullptr; // events
};

} // namespace fi

#endif // FI_LIB_EXECUTION_DEVICE_H
