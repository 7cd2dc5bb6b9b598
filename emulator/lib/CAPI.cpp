//===- CAPI.cpp - The C interface -----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "fi-emulator/Emulator.h"
#include "fi-emulator/fi_emulator.h"

#include <cstdlib>

using namespace fi::emulator;

struct fi_emu_device {
  std::unique_ptr<Device> device;
  LaunchResult last;
};

namespace {

std::string &lastError() {
  static thread_local std::string error;
  return error;
}
int result(bool ok, const std::string &error) {
  lastError() = ok ? std::string() : error;
  return ok ? 0 : 1;
}
Module *unwrap(fi_emu_module *m) { return reinterpret_cast<Module *>(m); }
const Function *unwrap(const fi_emu_function *f) {
  return reinterpret_cast<const Function *>(f);
}

} // namespace

bool fi::emulator::parseOptions(std::string_view text, Options &options,
                                std::string &error) {
  std::string all(text);
  size_t at = 0;
  while (at < all.size()) {
    size_t end = all.find(',', at);
    std::string word = all.substr(at, end - at);
    at = end == std::string::npos ? all.size() : end + 1;
    size_t eq = word.find('=');
    std::string key = word.substr(0, eq);
    char *stop = nullptr;
    const char *digits = eq == std::string::npos ? "" : word.c_str() + eq + 1;
    uint64_t value = std::strtoull(digits, &stop, 0);
    bool number = *digits && !*stop;
    if (word == "check")
      options.check = true;
    else if (word == "nocheck")
      options.check = false;
    else if (word == "time")
      options.printTime = true;
    else if (word == "stats")
      options.countAccesses = true;
    else if (word == "stop")
      options.stopAtFirst = true;
    else if (key == "seed" && number)
      options.seed = value;
    else if (key == "steps" && number)
      options.stepLimit = value;
    else if (key == "sms" && number && value > 0 && value < 65536)
      options.multiprocessors = uint32_t(value);
    else {
      error = "unknown option '" + word +
              "'; expected check, nocheck, time, stats, stop, seed=N, "
              "steps=N or sms=N";
      return false;
    }
  }
  return true;
}

extern "C" {

const char *fi_emu_last_error(void) { return lastError().c_str(); }

int fi_emu_device_create(const char *target, const char *options,
                         fi_emu_device **out) {
  Options parsed;
  std::string error;
  if (!target || !out)
    return result(false,
                  "expected a target and a place for the device, but got NULL");
  if (!parseOptions(options ? options : "", parsed, error))
    return result(false, error);
  auto device = Device::create(target, parsed, error);
  if (!device)
    return result(false, error);
  *out = new fi_emu_device{std::move(device), {}};
  return result(true, {});
}
void fi_emu_device_destroy(fi_emu_device *device) { delete device; }

int fi_emu_mem_alloc(fi_emu_device *d, size_t bytes, uint64_t *out) {
  std::string error;
  *out = d->device->memAlloc(bytes, error);
  return result(*out != 0, error);
}
int fi_emu_mem_free(fi_emu_device *d, uint64_t address) {
  std::string error;
  return result(d->device->memFree(address, error), error);
}
int fi_emu_mem_register(fi_emu_device *d, void *pointer, size_t bytes,
                        int writable) {
  std::string error;
  return result(d->device->registerMemory(pointer, bytes, writable != 0, error),
                error);
}
int fi_emu_mem_unregister(fi_emu_device *d, void *pointer) {
  std::string error;
  return result(d->device->unregisterMemory(pointer, error), error);
}
int fi_emu_memcpy_to_device(fi_emu_device *d, uint64_t to, const void *from,
                            size_t bytes) {
  std::string error;
  return result(d->device->memcpyToDevice(to, from, bytes, error), error);
}
int fi_emu_memcpy_to_host(fi_emu_device *d, void *to, uint64_t from,
                          size_t bytes) {
  std::string error;
  return result(d->device->memcpyToHost(to, from, bytes, error), error);
}

int fi_emu_tensor_map_encode_tiled(void *map, uint32_t type, uint32_t rank,
                                   uint64_t address, const uint64_t *dims,
                                   const uint64_t *strides, const uint32_t *box,
                                   const uint32_t *elementStrides,
                                   uint32_t interleave, uint32_t swizzle,
                                   uint32_t promotion, uint32_t fill) {
  TensorMapConfig c;
  std::string error;
  if (!map || !dims || !box || !elementStrides || (rank > 1 && !strides))
    return result(false, "expected a place for the tensor map, dimensions, "
                         "strides and a box, but got NULL");
  c.type = TensorMapConfig::Type(type);
  c.rank = rank;
  c.address = address;
  for (uint32_t i = 0; i < rank && i < 5; ++i) {
    c.dims[i] = dims[i];
    c.box[i] = box[i];
    c.elementStrides[i] = elementStrides[i];
    if (i > 0)
      c.strides[i - 1] = strides[i - 1];
  }
  c.interleave = interleave;
  c.swizzle = TensorMapConfig::Swizzle(swizzle);
  c.promotion = promotion;
  c.fill = fill;
  return result(encodeTensorMap(c, map, error), error);
}

int fi_emu_module_load(fi_emu_device *d, const char *name, const char *ptx,
                       fi_emu_module **out) {
  std::string error;
  if (!ptx || !out)
    return result(false,
                  "expected PTX text and a place for the module, but got NULL");
  Module *m = d->device->moduleLoad(name ? name : "module", ptx, error);
  *out = reinterpret_cast<fi_emu_module *>(m);
  return result(m != nullptr, error);
}
void fi_emu_module_unload(fi_emu_device *d, fi_emu_module *m) {
  d->device->moduleUnload(unwrap(m));
}
int fi_emu_module_get_function(fi_emu_module *m, const char *name,
                               fi_emu_function **out) {
  std::string error;
  const Function *f = unwrap(m)->getFunction(name ? name : "", error);
  *out = reinterpret_cast<fi_emu_function *>(const_cast<Function *>(f));
  return result(f != nullptr, error);
}
size_t fi_emu_function_parameter_bytes(const fi_emu_function *f) {
  return unwrap(f)->parameterBytes();
}
uint32_t fi_emu_function_shared_bytes(const fi_emu_function *f) {
  return unwrap(f)->staticSharedBytes();
}

int fi_emu_launch(fi_emu_device *d, const fi_emu_function *f,
                  const uint32_t grid[3], const uint32_t block[3],
                  uint32_t dynamicShared, const void *params,
                  size_t paramBytes) {
  LaunchConfig c;
  c.grid = Dim3{grid[0], grid[1], grid[2]};
  c.block = Dim3{block[0], block[1], block[2]};
  c.dynamicShared = dynamicShared;
  c.params = params;
  c.paramBytes = paramBytes;
  d->last = d->device->launch(*unwrap(f), c);
  std::string text = d->last.error;
  for (const Report &r : d->last.reports)
    text += (text.empty() ? "" : "\n") + r.str();
  return result(d->last.ok(), text);
}
uint64_t fi_emu_last_warp_instructions(const fi_emu_device *d) {
  return d->last.statistics.warpInstructions;
}
uint32_t fi_emu_last_report_count(const fi_emu_device *d) {
  return uint32_t(d->last.reports.size());
}

} // extern "C"
