//===- Module.cpp - A package's code on a device --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which of a package's codes a device takes, loading it, and checks of what its
// kernels need of the device.
//
//===----------------------------------------------------------------------===//
#include "Module.h"
#include "../Package/Package.h"
#include "../Support/Error.h"
#include "Chip.h"

#include <cinttypes>
#include <cstdio>

namespace fi::runtime {
namespace {

/// Bytes of kernel parameters that every driver takes.
constexpr size_t maxParamBytes = 4096;

int32_t versionOfText(const std::string &ptx) {
  size_t at = ptx.find(".version");
  int major = 0, minor = 0;
  if (at == std::string::npos ||
      std::sscanf(ptx.c_str() + at, ".version %d.%d", &major, &minor) != 2)
    return 0;
  return 10 * major + minor;
}

fi_status otherChip(const fi_package &package, const fi_device &device) {
  const Manifest &m = package.manifest;
  std::string chip = package.ptx.empty() ? m.cubinChip : m.chip;
  std::string allowed = package.ptx.empty()        ? chip + " or its family"
                        : Chip(chip).letter == 'a' ? chip + " alone"
                        : Chip(chip).letter == 'f' ? chip + " or its family"
                                                   : chip + " or later";
  return fail(FI_UNSUPPORTED,
              "package '%s': compiled for %s, but device %d (%s) is %s; "
              "compile the program for %s",
              m.program.c_str(), allowed.c_str(), device.ordinal,
              device.info.name, chipOf(device).c_str(), chipOf(device).c_str());
}

/// Checks a kernel's launch against the device and lets it have its memory.
fi_status prepare(const Manifest &m, const fi_device &device,
                  const std::string &symbol, const LaunchShape &shape,
                  DeviceKernel &kernel) {
  const fi_driver_device &info = device.info;
  int64_t shared = shape.shared + kernel.info.shared;
  if (shared > info.shared_optin)
    return fail(FI_UNSUPPORTED,
                "package '%s': kernel '%s' needs %" PRId64
                " bytes of shared memory, but device %d (%s) has at most "
                "%" PRId64 " for a CTA; compile for %s",
                m.program.c_str(), symbol.c_str(), shared, device.ordinal,
                info.name, info.shared_optin, chipOf(device).c_str());
  if (shape.threads > kernel.info.max_threads)
    return fail(FI_UNSUPPORTED,
                "package '%s': kernel '%s' has CTAs of %d threads with %d "
                "registers each, but device %d (%s) runs at most %d of them; "
                "compile for %s",
                m.program.c_str(), symbol.c_str(), shape.threads,
                kernel.info.registers, device.ordinal, info.name,
                kernel.info.max_threads, chipOf(device).c_str());
  const fi_driver &driver = *device.driver;
  int result = 0;
  if (shape.shared > info.shared)
    result = driver.function_shared(driver.self, kernel.function,
                                    size_t(shape.shared));
  int32_t ctas = 0;
  if (!result)
    result =
        driver.function_occupancy(driver.self, kernel.function, shape.threads,
                                  size_t(shape.shared), &ctas);
  if (result)
    return deviceFailed(
        device, result,
        ("package '" + m.program + "': kernel '" + symbol + "'").c_str());
  if (ctas < 1)
    return fail(FI_UNSUPPORTED,
                "package '%s': kernel '%s' with %d threads and %" PRId64
                " bytes of shared memory does not fit into a multiprocessor "
                "of device %d (%s); compile for %s",
                m.program.c_str(), symbol.c_str(), shape.threads, shared,
                device.ordinal, info.name, chipOf(device).c_str());
  // The manifest may ask for fewer CTAs than fit, never for more.
  kernel.ctasPerSM = shape.ctasPerSM ? std::min(shape.ctasPerSM, ctas) : ctas;
  return FI_OK;
}

fi_status findKernel(const fi_package &package, const Module &module,
                     const std::string &symbol, const LaunchShape &shape,
                     DeviceKernel &kernel) {
  const fi_device &device = *module.device;
  const fi_driver &driver = *device.driver;
  const Manifest &m = package.manifest;
  int result = driver.module_function(driver.self, module.code, symbol.c_str(),
                                      &kernel.function, &kernel.info);
  if (result == FI_DRIVER_NOT_FOUND)
    return fail(FI_INVALID_PACKAGE,
                "package '%s': kernel '%s' is named in the manifest but "
                "missing from the code",
                m.program.c_str(), symbol.c_str());
  if (result)
    return deviceFailed(
        device, result,
        ("package '" + m.program + "': kernel '" + symbol + "'").c_str());
  return prepare(m, device, symbol, shape, kernel);
}

fi_status checkParams(const Manifest &m) {
  for (const Stage &stage : m.stages) {
    size_t maps = 0;
    for (const Body &body : stage.bodies)
      maps = std::max(maps, body.launch.tensorMaps.size());
    // Behind the tail: the logs of faults and of time stamps.
    size_t slots =
        stageSlots(m, stage) + FI_GPU_TAIL_SLOTS + 1 + m.isProfiled();
    if (maps)
      slots += tensorMapAlignment - 1 + maps * tensorMapSlots;
    size_t bytes = slots * sizeof(int64_t);
    if (bytes > maxParamBytes)
      return fail(FI_UNSUPPORTED,
                  "%s: expected at most %zu bytes of kernel parameters, but "
                  "its buffers need %zu; give it fewer buffers",
                  stage.name.c_str(), maxParamBytes, bytes);
  }
  return FI_OK;
}

bool hasMachineCode(const fi_package &package, const fi_device &device) {
  return !package.cubin.empty() &&
         Chip(package.manifest.cubinChip).machineCodeRunsOn(device.info);
}
bool hasText(const fi_package &package, const fi_device &device) {
  return !package.ptx.empty() &&
         Chip(package.manifest.chip).textRunsOn(device.info);
}
/// Of the text, times ten; 0 where nothing says it.
int32_t getVersion(const fi_package &package) {
  int32_t version = versionOfText(package.ptx);
  return version ? version : package.manifest.ptxVersion;
}

fi_status loadCode(const fi_package &package, Module &module) {
  const fi_device &device = *module.device;
  const fi_driver &driver = *device.driver;
  const Manifest &m = package.manifest;
  bool machineCode = hasMachineCode(package, device);
  if (!machineCode && !hasText(package, device))
    return otherChip(package, device);
  if (!machineCode) {
    int32_t version = getVersion(package);
    int32_t most = device.info.ptx_version;
    if (version && most && version > most)
      return fail(FI_UNSUPPORTED,
                  "package '%s': its code is PTX %d.%d, but the %s reads PTX "
                  "up to %d.%d; update the driver, or compile with a ptx "
                  "version of at most %d.%d",
                  m.program.c_str(), version / 10, version % 10,
                  device.info.driver, most / 10, most % 10, most / 10,
                  most % 10);
  }
  const std::string &code = machineCode ? package.cubin : package.ptx;
  char log[512] = "";
  int result = driver.module_load(
      driver.self, machineCode ? FI_DRIVER_CUBIN : FI_DRIVER_PTX, code.c_str(),
      code.size(), log, sizeof(log), &module.code);
  if (!result)
    return FI_OK;
  module.code = nullptr;
  // One sentence on one line.
  for (char &c : log)
    if (c == '\n' || c == '\r')
      c = ' ';
  std::string said = driver.last_error(driver.self);
  if (log[0])
    said += std::string(": ") + log;
  return fail(statusOf(result),
              "package '%s': its %s cannot be loaded on device %d (%s): %s",
              m.program.c_str(), machineCode ? "machine code" : "PTX",
              device.ordinal, device.info.name, said.c_str());
}

} // namespace

fi_status chooseVariant(fi_package &package, const fi_device *to,
                        fi_package **chosen) {
  *chosen = &package;
  if (package.variants.empty())
    return FI_OK;
  if (!to)
    return fail(FI_INVALID_ARGUMENT,
                "package '%s': expected a device, because it is compiled for "
                "several targets, but got NULL; open one with fi_device_open",
                package.manifest.program.c_str());
  const fi_device &device = *to;
  fi_package *tooNew = nullptr;
  std::string chips;
  for (fi_package *variant : package.variants) {
    chips += (chips.empty() ? "" : ", ") + variant->manifest.chip;
    bool hasCode = hasMachineCode(*variant, device);
    if (!hasCode && hasText(*variant, device)) {
      int32_t version = getVersion(*variant), most = device.info.ptx_version;
      hasCode = !version || !most || version <= most;
      if (!hasCode && !tooNew)
        tooNew = variant;
    }
    if (hasCode) {
      *chosen = variant;
      return FI_OK;
    }
  }
  // Loading it says what the driver lacks.
  if (tooNew) {
    *chosen = tooNew;
    return FI_OK;
  }
  return fail(FI_UNSUPPORTED,
              "package '%s': compiled for %s, but device %d (%s) is %s; "
              "compile the program for %s, too",
              package.manifest.program.c_str(), chips.c_str(), device.ordinal,
              device.info.name, chipOf(device).c_str(), chipOf(device).c_str());
}

Module::~Module() {
  if (code) {
    InContext context(*device);
    // If the driver has gone down, the code went with it.
    (void)device->driver->module_unload(device->driver->self, code);
  }
  release(device);
}

fi_status loadPackage(fi_package &package, fi_device &device,
                      const Module **module) {
  const Manifest &m = package.manifest;
  if (!m.onDevice())
    return fail(FI_INVALID_ARGUMENT,
                "package '%s': compiled for target '%s', but device %d (%s) "
                "is a GPU; compile the program for %s, or plan without a "
                "device",
                m.program.c_str(), m.targetKind.c_str(), device.ordinal,
                device.info.name, chipOf(device).c_str());
  std::lock_guard<std::mutex> lock(package.mutex);
  for (const auto &loaded : package.modules)
    if (loaded->device->driver == device.driver &&
        loaded->device->context == device.context) {
      *module = loaded.get();
      return FI_OK;
    }
  FI_TRY(checkParams(m));
  InContext context(device);
  FI_TRY(context.status("package"));
  auto made = std::make_unique<Module>(&device);
  FI_TRY(loadCode(package, *made));
  for (const Stage &stage : m.stages) {
    StageKernels &kernels = made->stages.emplace_back();
    for (const Body &body : stage.bodies)
      FI_TRY(findKernel(package, *made, body.symbol, body.launch,
                        kernels.bodies.emplace_back()));
    for (const Merge &merge : stage.merges)
      FI_TRY(findKernel(package, *made, merge.symbol, merge.launch,
                        kernels.merges.emplace_back()));
  }
  *module = package.modules.emplace_back(std::move(made)).get();
  return FI_OK;
}

} // namespace fi::runtime
