//===- Module.h - A package's code on a device -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads the code of a package on a device, once for each, and finds its
// kernels. What the device cannot do is said here, before anything is planned.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_DEVICE_MODULE_H
#define FI_RUNTIME_DEVICE_MODULE_H

#include "Device.h"

#include <vector>

namespace fi::runtime {

struct DeviceKernel {
  void *function = nullptr;
  fi_driver_function info = {};
  int32_t ctasPerSM = 1;
};

struct StageKernels {
  std::vector<DeviceKernel> bodies, merges; // as in the manifest's stage
};

class Module {
public:
  explicit Module(fi_device *device) : device(device) { retain(device); }
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// CTAs of a stage's body that the device holds at once.
  int32_t workers(size_t stage, size_t body) const {
    return stages[stage].bodies[body].ctasPerSM * device->info.multiprocessors;
  }

  fi_device *device;
  void *code = nullptr; // the driver's handle
  std::vector<StageKernels> stages;
};

/// The package's code on a device, loaded if it is not. It lives as long as the
/// package.
fi_status loadPackage(fi_package &package, fi_device &device,
                      const Module **module);

/// Of a package for several targets the best one whose code the device can run;
/// any other package itself. Belongs to the package.
fi_status chooseVariant(fi_package &package, const fi_device *device,
                        fi_package **chosen);

} // namespace fi::runtime

#endif // FI_RUNTIME_DEVICE_MODULE_H
