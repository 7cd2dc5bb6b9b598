//===- Driver.cpp - The emulator as a device of the runtime ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_driver over Device. The device is used by one thread at a time, so every
// call takes a lock; streams and events are numbers, since all work is done at
// once.
//
//===----------------------------------------------------------------------===//
#include "fi-emulator/Emulator.h"
#include "fi-emulator/fi_emulator_driver.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

using namespace fi::emulator;

namespace {

thread_local std::string lastText;
thread_local fi_driver_fault lastFault = {};

struct EmulatorDriver {
  fi_driver table = {};
  std::unique_ptr<Device> device;
  std::string name;
  std::mutex mutex;
  /// Memory that kernels may use, by its end: allocated or registered.
  std::map<uintptr_t, size_t> memory;
  uintptr_t nextHandle = 16; // of streams
  uint64_t instructions = 0;
  double seconds = 0; // of the processor

  static EmulatorDriver &of(void *self) {
    return *static_cast<EmulatorDriver *>(self);
  }
};

struct Event {
  std::chrono::steady_clock::time_point at;
};

/// What a multiprocessor of the chip has. Chips that are not listed have what
/// the newest have.
void limitsOf(int chip, Options &options) {
  static const struct {
    int from;                             // and later, up to the next
    uint32_t sharedPerBlock, sharedPerSM; // KB
    uint32_t threads, blocks, multiprocessors;
  } limits[] = {{75, 64, 64, 1024, 16, 40},     {80, 163, 164, 2048, 32, 108},
                {86, 99, 100, 1536, 16, 84},    {87, 163, 164, 1536, 16, 16},
                {89, 99, 100, 1536, 24, 128},   {90, 227, 228, 2048, 32, 132},
                {100, 227, 228, 2048, 32, 148}, {110, 227, 228, 1536, 24, 20},
                {120, 99, 100, 1536, 24, 170}};
  for (const auto &limit : limits)
    if (chip >= limit.from) {
      options.sharedPerBlock = limit.sharedPerBlock << 10;
      options.sharedPerMultiprocessor = limit.sharedPerSM << 10;
      options.threadsPerMultiprocessor = limit.threads;
      options.blocksPerMultiprocessor = limit.blocks;
      options.multiprocessors = limit.multiprocessors;
    }
}

int done(bool ok, const std::string &error, int failure = FI_DRIVER_ERROR) {
  if (ok)
    return FI_DRIVER_OK;
  lastText = error;
  lastFault = {};
  return failure;
}

uint64_t address(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

const char *lastErrorOf(void *) { return lastText.c_str(); }

int deviceCount(void *, int32_t *count) {
  *count = 1;
  return FI_DRIVER_OK;
}

int deviceInfo(void *self, int32_t, fi_driver_device *info) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  const Options &options = d.device->options();
  *info = {};
  std::snprintf(info->name, sizeof(info->name), "emulated %s",
                d.device->target().c_str());
  int number = std::atoi(d.device->target().c_str() + 3);
  info->compute_major = number / 10;
  info->compute_minor = number % 10;
  info->multiprocessors = int32_t(options.multiprocessors);
  info->max_threads = 1024;
  info->shared = std::min<int64_t>(options.sharedPerBlock, 48 << 10);
  info->shared_optin = options.sharedPerBlock;
  info->shared_multiprocessor = options.sharedPerMultiprocessor;
  info->registers = 65536;
  std::snprintf(info->driver, sizeof(info->driver), "PTX emulator");
  return FI_DRIVER_OK;
}

int contextOpen(void *self, int32_t, void **context) {
  *context = self;
  return FI_DRIVER_OK;
}
void contextClose(void *, void *) {}
int contextEnter(void *, void *, int32_t *changed) {
  *changed = 0;
  return FI_DRIVER_OK;
}
void contextLeave(void *, void *) {}

int memoryAlloc(void *self, size_t bytes, void **memory) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  uint64_t at = d.device->memAlloc(bytes, error);
  if (at)
    d.memory[at + bytes] = bytes;
  *memory = reinterpret_cast<void *>(uintptr_t(at));
  return done(at != 0, error, FI_DRIVER_OUT_OF_MEMORY);
}

/// Forgets memory that begins there.
void forget(EmulatorDriver &d, const void *memory) {
  auto it = d.memory.upper_bound(address(memory));
  if (it != d.memory.end() && it->first - it->second == address(memory))
    d.memory.erase(it);
}

int memoryFree(void *self, void *memory) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  forget(d, memory);
  return done(d.device->memFree(address(memory), error), error);
}

/// Kernels reach it, too.
int hostAlloc(void *self, size_t bytes, void **memory) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error = "out of memory";
  *memory = std::malloc(std::max<size_t>(bytes, 1));
  bool ok = *memory && d.device->registerMemory(
                           *memory, std::max<size_t>(bytes, 1), true, error);
  return done(ok, error, FI_DRIVER_OUT_OF_MEMORY);
}
int hostFree(void *self, void *memory) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  bool ok = d.device->unregisterMemory(memory, error);
  std::free(memory);
  return done(ok, error);
}

int pointerInfo(void *self, const void *pointer, fi_driver_pointer *info) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  auto it = d.memory.upper_bound(address(pointer));
  bool known =
      it != d.memory.end() && it->first - it->second <= address(pointer);
  *info = {known ? FI_DRIVER_DEVICE : FI_DRIVER_HOST, 0};
  return FI_DRIVER_OK;
}

int copyToDevice(void *self, void *to, const void *from, size_t bytes, void *) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  return done(d.device->memcpyToDevice(address(to), from, bytes, error), error);
}
int copyToHost(void *self, void *to, const void *from, size_t bytes, void *) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  return done(d.device->memcpyToHost(to, address(from), bytes, error), error);
}

int streamCreate(void *self, void **stream) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  *stream = reinterpret_cast<void *>(d.nextHandle++);
  return FI_DRIVER_OK;
}
int nothing(void *, void *) { return FI_DRIVER_OK; }
int streamCheck(void *, void *, void *) { return FI_DRIVER_OK; }
int streamCapturing(void *, void *, int32_t *capturing) {
  *capturing = 0;
  return FI_DRIVER_OK;
}

int eventCreate(void *, void **event) {
  *event = new Event;
  return FI_DRIVER_OK;
}
int eventDestroy(void *, void *event) {
  delete static_cast<Event *>(event);
  return FI_DRIVER_OK;
}
int eventRecord(void *, void *event, void *) {
  static_cast<Event *>(event)->at = std::chrono::steady_clock::now();
  return FI_DRIVER_OK;
}
int eventMilliseconds(void *, void *first, void *second, float *milliseconds) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(
          static_cast<Event *>(second)->at - static_cast<Event *>(first)->at)
          .count();
  return FI_DRIVER_OK;
}

int moduleLoad(void *self, int32_t kind, const void *code, size_t bytes,
               char *log, size_t logBytes, void **module) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  *module = nullptr;
  if (logBytes)
    log[0] = 0;
  if (kind != FI_DRIVER_PTX)
    return done(false, "the emulator runs PTX and no machine code",
                FI_DRIVER_BAD_CODE);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  *module = d.device->moduleLoad(
      "kernels.ptx", {static_cast<const char *>(code), bytes}, error);
  return done(*module != nullptr, error, FI_DRIVER_BAD_CODE);
}
int moduleUnload(void *self, void *module) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  d.device->moduleUnload(static_cast<Module *>(module));
  return FI_DRIVER_OK;
}
int moduleFunction(void *self, void *module, const char *name, void **function,
                   fi_driver_function *info) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  *info = {};
  const Function *found =
      static_cast<Module *>(module)->getFunction(name, error);
  *function = const_cast<Function *>(found);
  if (!found)
    return done(false, error, FI_DRIVER_NOT_FOUND);
  Dim3 most = found->maxThreads();
  info->registers = int32_t(found->liveRegisters());
  info->max_threads = most.x ? int32_t(most.x * most.y * most.z) : 1024;
  info->shared = found->staticSharedBytes();
  info->local = found->localBytes();
  return FI_DRIVER_OK;
}
int functionShared(void *, void *, size_t) { return FI_DRIVER_OK; }
int functionOccupancy(void *self, void *function, int32_t threads,
                      size_t shared, int32_t *ctas) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  *ctas =
      int32_t(d.device->occupancy(*static_cast<Function *>(function),
                                  {uint32_t(threads), 1, 1}, uint32_t(shared)));
  return FI_DRIVER_OK;
}

int tensorMap(void *, const fi_driver_tensor *tensor, void *map) {
  TensorMapConfig config;
  using Type = TensorMapConfig::Type;
  config.type = tensor->element == 1   ? Type::U8
                : tensor->element == 2 ? Type::U16
                : tensor->element == 4 ? Type::U32
                                       : Type::U64;
  using Swizzle = TensorMapConfig::Swizzle;
  config.swizzle = tensor->swizzle == 128  ? Swizzle::Bytes128
                   : tensor->swizzle == 64 ? Swizzle::Bytes64
                   : tensor->swizzle == 32 ? Swizzle::Bytes32
                                           : Swizzle::None;
  config.rank = uint32_t(tensor->rank);
  config.address = address(tensor->data);
  for (int32_t d = 0; d < tensor->rank; ++d) {
    config.dims[d] = uint64_t(tensor->sizes[d]);
    config.box[d] = uint32_t(tensor->box[d]);
    if (d > 0)
      config.strides[d - 1] = uint64_t(tensor->strides[d]);
  }
  std::string error;
  return done(encodeTensorMap(config, map, error), error);
}

int launchKernel(void *self, void *function, const fi_driver_launch *launch) {
  EmulatorDriver &d = EmulatorDriver::of(self);
  std::lock_guard<std::mutex> lock(d.mutex);
  LaunchConfig config;
  config.grid = {launch->grid[0], launch->grid[1], launch->grid[2]};
  config.block = {launch->block[0], launch->block[1], launch->block[2]};
  config.dynamicShared = launch->shared;
  config.params = launch->params;
  config.paramBytes = launch->param_bytes;
  LaunchResult result =
      d.device->launch(*static_cast<Function *>(function), config);
  d.instructions += result.statistics.warpInstructions;
  d.seconds += result.statistics.processorSeconds;
  std::string all = result.error;
  for (const Report &report : result.reports)
    all += (all.empty() ? "" : "\n") + report.str();
  int failed = done(result.ok(), all);
  if (failed && !result.reports.empty())
    lastFault = {0, 1, result.reports.front().block[0]};
  return failed;
}

void faultOf(void *, fi_driver_fault *fault) { *fault = lastFault; }

} // namespace

const fi_driver *fi_emulator_driver(const char *chip, const char *options) {
  Options parsed;
  std::string error;
  auto made = std::make_unique<EmulatorDriver>();
  // The sentence goes where the C interface's are: through a device that fails.
  fi_emu_device *probe = nullptr;
  if (fi_emu_device_create(chip, options, &probe))
    return nullptr;
  fi_emu_device_destroy(probe);
  limitsOf(std::atoi(chip + 3), parsed); // sm_80
  if (!parseOptions(options ? options : "", parsed, error))
    return nullptr;
  made->device = Device::create(chip, parsed, error);
  if (!made->device)
    return nullptr;
  made->name = "emulated";
  fi_driver &t = made->table;
  t.version = FI_DRIVER_VERSION;
  t.name = made->name.c_str();
  t.self = made.get();
  t.last_error = lastErrorOf;
  t.device_count = deviceCount;
  t.device_info = deviceInfo;
  t.context_open = contextOpen;
  t.context_close = contextClose;
  t.context_enter = contextEnter;
  t.context_leave = contextLeave;
  t.memory_alloc = memoryAlloc;
  t.memory_free = memoryFree;
  t.host_alloc = hostAlloc;
  t.host_free = hostFree;
  t.pointer_info = pointerInfo;
  t.copy_to_device = copyToDevice;
  t.copy_to_host = copyToHost;
  t.stream_create = streamCreate;
  t.stream_destroy = nothing;
  t.stream_synchronize = nothing;
  t.stream_check = streamCheck;
  t.stream_capturing = streamCapturing;
  t.event_create = eventCreate;
  t.event_destroy = eventDestroy;
  t.event_record = eventRecord;
  t.event_synchronize = nothing;
  t.event_milliseconds = eventMilliseconds;
  t.module_load = moduleLoad;
  t.module_unload = moduleUnload;
  t.module_function = moduleFunction;
  t.function_shared = functionShared;
  t.function_occupancy = functionOccupancy;
  t.tensor_map = tensorMap;
  t.launch = launchKernel;
  t.last_fault = faultOf;
  return &made.release()->table;
}

void fi_emulator_driver_destroy(const fi_driver *driver) {
  if (!driver)
    return;
  auto *d = static_cast<EmulatorDriver *>(driver->self);
  if (d->device->options().printTime)
    std::fprintf(stderr,
                 "emulated %s: %llu warp instructions in %.3f s of the "
                 "processor: %.1f M/s\n",
                 d->device->target().c_str(),
                 static_cast<unsigned long long>(d->instructions), d->seconds,
                 double(d->instructions) / d->seconds / 1e6);
  delete d;
}

int fi_emulator_driver_register(const fi_driver *driver, void *memory,
                                size_t bytes, int writable) {
  EmulatorDriver &d = EmulatorDriver::of(driver->self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  if (!d.device->registerMemory(memory, bytes, writable != 0, error))
    return done(false, error);
  d.memory[address(memory) + bytes] = bytes;
  return 0;
}

int fi_emulator_driver_unregister(const fi_driver *driver, void *memory) {
  EmulatorDriver &d = EmulatorDriver::of(driver->self);
  std::lock_guard<std::mutex> lock(d.mutex);
  std::string error;
  forget(d, memory);
  return done(d.device->unregisterMemory(memory, error), error);
}

uint64_t fi_emulator_driver_instructions(const fi_driver *driver) {
  EmulatorDriver &d = EmulatorDriver::of(driver->self);
  std::lock_guard<std::mutex> lock(d.mutex);
  return d.instructions;
}
