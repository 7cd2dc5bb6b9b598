//===- CudaDriver.cpp - The CUDA driver behind the table ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_driver over libcuda, which is loaded when it is first asked for. The types
// and numbers are those of the driver's stable binary interface; every function
// is looked up under the name that has the version written here.
//
//===----------------------------------------------------------------------===//
#include "../Support/Error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <vector>

namespace fi::runtime {
namespace {

using Result = int; // CUresult
using Address = unsigned long long;

// The numbers of the interface that are used here.
enum : Result {
  errorOutOfMemory = 2,
  errorNotInitialized = 3,
  errorDeinitialized = 4,
  errorStubLibrary = 34,
  errorNoDevice = 100,
  errorInvalidImage = 200,
  errorInvalidContext = 201,
  errorNoBinary = 209,
  errorInvalidPtx = 218,
  errorNoCompiler = 221,
  errorUnsupportedPtx = 222,
  errorInvalidSource = 300,
  errorInvalidHandle = 400,
  errorNotFound = 500
};
enum {
  attributeMaxThreads = 1,
  attributeShared = 8,
  attributeMultiprocessors = 16,
  attributeCache = 38,
  attributeMajor = 75,
  attributeMinor = 76,
  attributeSharedMultiprocessor = 81,
  attributeRegisters = 82,
  attributeSharedOptin = 97
};
enum {
  functionMaxThreads = 0,
  functionShared = 1,
  functionLocal = 3,
  functionRegisters = 4,
  functionMaxDynamicShared = 8
};
enum { pointerMemoryType = 2, pointerManaged = 8, pointerOrdinal = 9 };
enum { memoryTypeDevice = 2 };
enum { jitErrorLog = 5, jitErrorLogSize = 6 };

#define FI_CUDA_FUNCTIONS(F)                                                   \
  F(cuInit, "cuInit", (unsigned))                                              \
  F(cuDriverGetVersion, "cuDriverGetVersion", (int *))                         \
  F(cuGetErrorName, "cuGetErrorName", (Result, const char **))                 \
  F(cuGetErrorString, "cuGetErrorString", (Result, const char **))             \
  F(cuDeviceGetCount, "cuDeviceGetCount", (int *))                             \
  F(cuDeviceGet, "cuDeviceGet", (int *, int))                                  \
  F(cuDeviceGetName, "cuDeviceGetName", (char *, int, int))                    \
  F(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))           \
  F(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t *, int))                  \
  F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))      \
  F(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (int))          \
  F(cuCtxGetCurrent, "cuCtxGetCurrent", (void **))                             \
  F(cuCtxGetDevice, "cuCtxGetDevice", (int *))                                 \
  F(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (void *))                         \
  F(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (void **))                          \
  F(cuMemAlloc, "cuMemAlloc_v2", (Address *, size_t))                          \
  F(cuMemFree, "cuMemFree_v2", (Address))                                      \
  F(cuMemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))             \
  F(cuMemFreeHost, "cuMemFreeHost", (void *))                                  \
  F(cuPointerGetAttributes, "cuPointerGetAttributes",                          \
    (unsigned, int *, void **, Address))                                       \
  F(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                 \
    (Address, const void *, size_t, void *))                                   \
  F(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                 \
    (void *, Address, size_t, void *))                                         \
  F(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                     \
  F(cuStreamDestroy, "cuStreamDestroy_v2", (void *))                           \
  F(cuStreamSynchronize, "cuStreamSynchronize", (void *))                      \
  F(cuStreamGetCtx, "cuStreamGetCtx", (void *, void **))                       \
  F(cuStreamIsCapturing, "cuStreamIsCapturing", (void *, int *))               \
  F(cuEventCreate, "cuEventCreate", (void **, unsigned))                       \
  F(cuEventDestroy, "cuEventDestroy_v2", (void *))                             \
  F(cuEventRecord, "cuEventRecord", (void *, void *))                          \
  F(cuEventSynchronize, "cuEventSynchronize", (void *))                        \
  F(cuEventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))       \
  F(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                  \
    (void **, const void *, unsigned, int *, void **))                         \
  F(cuModuleUnload, "cuModuleUnload", (void *))                                \
  F(cuModuleGetFunction, "cuModuleGetFunction",                                \
    (void **, void *, const char *))                                           \
  F(cuFuncGetAttribute, "cuFuncGetAttribute", (int *, int, void *))            \
  F(cuFuncSetAttribute, "cuFuncSetAttribute", (void *, int, int))              \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor,                               \
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",                             \
    (int *, void *, int, size_t))                                              \
  F(cuLaunchKernel, "cuLaunchKernel",                                          \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     unsigned, void *, void **, void **))

thread_local std::string lastText;
thread_local Result lastResult = 0;

/// Whether an error may be of any work that was launched before: it comes out
/// where the driver next has to do with the context.
bool isAsynchronous(Result result) {
  return result == 700 || // illegal address
         result == 702 || // launch timeout
         result == 710 || // assertion
         (result >= 714 && result <= 719);
}

/// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int32_t which;
  char pad[4];
  union {
    int32_t number;
    char room[64];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72, "as in cuda.h");

struct LaunchConfig {
  uint32_t grid[3], block[3], shared;
  void *stream;
  LaunchAttribute *attributes;
  uint32_t count;
};

struct Cuda {
#define FI_DECLARE(member, symbol, parameters) Result(*member) parameters;
  FI_CUDA_FUNCTIONS(FI_DECLARE)
#undef FI_DECLARE
  Result (*cuTensorMapEncodeTiled)(void *, int, uint32_t, void *,
                                   const uint64_t *, const uint64_t *,
                                   const uint32_t *, const uint32_t *, int, int,
                                   int, int) = nullptr;
  Result (*cuLaunchKernelEx)(const LaunchConfig *, void *, void **,
                             void **) = nullptr;
  int version = 0; // 12040: CUDA 12.4
  fi_driver table = {};
  std::string why; // it cannot be used; else empty

  Cuda();

  static Cuda &of(void *self) { return *static_cast<Cuda *>(self); }

  Result launch(void *function, const fi_driver_launch &launch, void **params,
                void **extra) const {
    if (!launch.overlaps || !table.launches_overlap)
      return cuLaunchKernel(function, launch.grid[0], launch.grid[1],
                            launch.grid[2], launch.block[0], launch.block[1],
                            launch.block[2], launch.shared, launch.stream,
                            params, extra);
    constexpr int32_t programmaticStreamSerialization = 6;
    LaunchAttribute attribute = {};
    attribute.which = programmaticStreamSerialization;
    attribute.value.number = 1;
    LaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]},
                           {launch.block[0], launch.block[1], launch.block[2]},
                           launch.shared,
                           launch.stream,
                           &attribute,
                           1};
    return cuLaunchKernelEx(&config, function, params, extra);
  }

  /// Remembers the text of a failure by its name.
  int done(Result result) const {
    if (result == 0)
      return FI_DRIVER_OK;
    lastResult = result;
    const char *name = nullptr, *text = nullptr;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    lastText = name ? name : "error " + std::to_string(result);
    if (text)
      lastText += std::string(" (") + text + ")";
    switch (result) {
    case errorOutOfMemory:
      return FI_DRIVER_OUT_OF_MEMORY;
    case errorNotInitialized:
    case errorDeinitialized:
    case errorNoDevice:
    case errorStubLibrary:
      return FI_DRIVER_UNAVAILABLE;
    case errorInvalidImage:
    case errorNoBinary:
    case errorInvalidPtx:
    case errorNoCompiler:
    case errorUnsupportedPtx:
    case errorInvalidSource:
      return FI_DRIVER_BAD_CODE;
    case errorNotFound:
      return FI_DRIVER_NOT_FOUND;
    default:
      return FI_DRIVER_ERROR;
    }
  }
};

Address address(const void *pointer) {
  return static_cast<Address>(reinterpret_cast<uintptr_t>(pointer));
}

/// The newest PTX that a driver reads. Since CUDA 11.0 the minor versions of
/// both go together, but for two that brought none.
int32_t ptxOf(int version) {
  int major = version / 1000, minor = version % 1000 / 10;
  if (major < 11)
    return 0;
  if (major == 11)
    return 70 + minor;
  if (major == 12) // 12.5 and 12.6 have 8.5
    return 80 + (minor > 5 ? minor - 1 : minor);
  if (major == 13)
    return 90 + minor;
  return 0; // newer than this file: the driver itself will say
}

//===----------------------------------------------------------------------===//
// The table's functions
//===----------------------------------------------------------------------===//

const char *lastErrorOf(void *) { return lastText.c_str(); }

int deviceCount(void *self, int32_t *count) {
  Cuda &cuda = Cuda::of(self);
  int found = 0;
  Result result = cuda.cuDeviceGetCount(&found);
  *count = result == errorNoDevice ? 0 : found;
  return result == errorNoDevice ? FI_DRIVER_OK : cuda.done(result);
}

int deviceInfo(void *self, int32_t ordinal, fi_driver_device *info) {
  Cuda &cuda = Cuda::of(self);
  *info = {};
  int device = 0;
  Result result = cuda.cuDeviceGet(&device, ordinal);
  auto attribute = [&](int which, auto &to) {
    int value = 0;
    if (result == 0)
      result = cuda.cuDeviceGetAttribute(&value, which, device);
    to = value;
  };
  if (result == 0)
    result = cuda.cuDeviceGetName(info->name, sizeof(info->name), device);
  attribute(attributeMajor, info->compute_major);
  attribute(attributeMinor, info->compute_minor);
  attribute(attributeMultiprocessors, info->multiprocessors);
  attribute(attributeMaxThreads, info->max_threads);
  attribute(attributeShared, info->shared);
  attribute(attributeSharedOptin, info->shared_optin);
  attribute(attributeSharedMultiprocessor, info->shared_multiprocessor);
  attribute(attributeRegisters, info->registers);
  attribute(attributeCache, info->cache);
  size_t memory = 0;
  if (result == 0)
    result = cuda.cuDeviceTotalMem(&memory, device);
  info->memory = int64_t(memory);
  info->ptx_version = ptxOf(cuda.version);
  std::snprintf(info->driver, sizeof(info->driver), "driver for CUDA %d.%d",
                cuda.version / 1000, cuda.version % 1000 / 10);
  return cuda.done(result);
}

/// A context and whether it must be given back. One object for each, so that
/// handles of one context are equal.
struct Context {
  void *handle;
  int primaryOf; // device, or -1
  int users;
};
std::mutex contextsMutex;
std::vector<Context *> contexts;

int contextOpen(void *self, int32_t ordinal, void **context) {
  Cuda &cuda = Cuda::of(self);
  int device = 0, currentDevice = 0;
  void *current = nullptr;
  Result result = cuda.cuDeviceGet(&device, ordinal);
  if (result == 0)
    result = cuda.cuCtxGetCurrent(&current);
  if (result == 0 && current)
    result = cuda.cuCtxGetDevice(&currentDevice);
  if (result)
    return cuda.done(result);
  // The primary context is retained in any case: if it is the current one,
  // somebody else's release must not take it away.
  void *primary = nullptr;
  result = cuda.cuDevicePrimaryCtxRetain(&primary, device);
  if (result)
    return cuda.done(result);
  bool own = current && currentDevice == device && current != primary;
  if (own)
    cuda.cuDevicePrimaryCtxRelease(device);
  void *handle = own ? current : primary;
  std::lock_guard<std::mutex> lock(contextsMutex);
  for (Context *known : contexts)
    if (known->handle == handle) {
      if (!own) // it holds the primary context already
        cuda.cuDevicePrimaryCtxRelease(device);
      ++known->users;
      *context = known;
      return FI_DRIVER_OK;
    }
  *context = contexts.emplace_back(new Context{handle, own ? -1 : device, 1});
  return FI_DRIVER_OK;
}

void contextClose(void *self, void *context) {
  Context *opened = static_cast<Context *>(context);
  std::lock_guard<std::mutex> lock(contextsMutex);
  if (--opened->users)
    return;
  contexts.erase(std::find(contexts.begin(), contexts.end(), opened));
  if (opened->primaryOf >= 0)
    Cuda::of(self).cuDevicePrimaryCtxRelease(opened->primaryOf);
  delete opened;
}

int contextEnter(void *self, void *context, int32_t *changed) {
  Cuda &cuda = Cuda::of(self);
  void *wanted = static_cast<Context *>(context)->handle, *current = nullptr;
  *changed = 0;
  Result result = cuda.cuCtxGetCurrent(&current);
  if (result == 0 && current != wanted) {
    result = cuda.cuCtxPushCurrent(wanted);
    *changed = result == 0;
  }
  return cuda.done(result);
}

void contextLeave(void *self, void *) {
  void *popped;
  Cuda::of(self).cuCtxPopCurrent(&popped);
}

int memoryAlloc(void *self, size_t bytes, void **memory) {
  Address allocated = 0;
  int result =
      Cuda::of(self).done(Cuda::of(self).cuMemAlloc(&allocated, bytes));
  *memory = reinterpret_cast<void *>(static_cast<uintptr_t>(allocated));
  return result;
}

int memoryFree(void *self, void *memory) {
  return Cuda::of(self).done(Cuda::of(self).cuMemFree(address(memory)));
}

int hostAlloc(void *self, size_t bytes, void **memory) {
  constexpr unsigned portable = 1; // pinned for every context
  return Cuda::of(self).done(
      Cuda::of(self).cuMemHostAlloc(memory, bytes, portable));
}

int hostFree(void *self, void *memory) {
  return Cuda::of(self).done(Cuda::of(self).cuMemFreeHost(memory));
}

int pointerInfo(void *self, const void *pointer, fi_driver_pointer *info) {
  Cuda &cuda = Cuda::of(self);
  // What the driver does not know has type 0, and that is no failure.
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  int which[] = {pointerMemoryType, pointerManaged, pointerOrdinal};
  void *to[] = {&type, &managed, &ordinal};
  Result result = cuda.cuPointerGetAttributes(3, which, to, address(pointer));
  *info = {managed                    ? FI_DRIVER_MANAGED
           : type == memoryTypeDevice ? FI_DRIVER_DEVICE
                                      : FI_DRIVER_HOST,
           ordinal};
  return cuda.done(result);
}

int copyToDevice(void *self, void *to, const void *from, size_t bytes,
                 void *stream) {
  Cuda &cuda = Cuda::of(self);
  return cuda.done(cuda.cuMemcpyHtoDAsync(address(to), from, bytes, stream));
}

int copyToHost(void *self, void *to, const void *from, size_t bytes,
               void *stream) {
  Cuda &cuda = Cuda::of(self);
  return cuda.done(cuda.cuMemcpyDtoHAsync(to, address(from), bytes, stream));
}

int streamCreate(void *self, void **stream) {
  constexpr unsigned nonBlocking = 1;
  return Cuda::of(self).done(
      Cuda::of(self).cuStreamCreate(stream, nonBlocking));
}

int streamDestroy(void *self, void *stream) {
  return Cuda::of(self).done(Cuda::of(self).cuStreamDestroy(stream));
}

int streamSynchronize(void *self, void *stream) {
  return Cuda::of(self).done(Cuda::of(self).cuStreamSynchronize(stream));
}

int streamCheck(void *self, void *context, void *stream) {
  Cuda &cuda = Cuda::of(self);
  // The handles 0, 1 and 2 name the default streams of whatever is current.
  if (reinterpret_cast<uintptr_t>(stream) <= 2)
    return FI_DRIVER_OK;
  void *owner = nullptr;
  Result result = cuda.cuStreamGetCtx(stream, &owner);
  if (result == 0 && owner != static_cast<Context *>(context)->handle) {
    lastText = "expected a stream of this device and context, but got one of "
               "another; pass a stream of the device that the plan was made "
               "for";
    return FI_DRIVER_OTHER_DEVICE;
  }
  if (result == errorInvalidHandle || result == errorInvalidContext) {
    cuda.done(result);
    return FI_DRIVER_OTHER_DEVICE;
  }
  // Anything else is for the work in the stream to report.
  return FI_DRIVER_OK;
}

int streamCapturing(void *self, void *stream, int32_t *capturing) {
  Cuda &cuda = Cuda::of(self);
  int status = 0;
  Result result = cuda.cuStreamIsCapturing(stream, &status);
  *capturing = status != 0;
  return cuda.done(result);
}

int eventCreate(void *self, void **event) {
  return Cuda::of(self).done(Cuda::of(self).cuEventCreate(event, 0));
}

int eventDestroy(void *self, void *event) {
  return Cuda::of(self).done(Cuda::of(self).cuEventDestroy(event));
}

int eventRecord(void *self, void *event, void *stream) {
  return Cuda::of(self).done(Cuda::of(self).cuEventRecord(event, stream));
}

int eventSynchronize(void *self, void *event) {
  return Cuda::of(self).done(Cuda::of(self).cuEventSynchronize(event));
}

int eventMilliseconds(void *self, void *first, void *second,
                      float *milliseconds) {
  Cuda &cuda = Cuda::of(self);
  return cuda.done(cuda.cuEventElapsedTime(milliseconds, first, second));
}

int moduleLoad(void *self, int32_t, const void *code, size_t, char *log,
               size_t logBytes, void **module) {
  Cuda &cuda = Cuda::of(self);
  // The driver tells text and machine code apart. Values travel in the
  // pointers.
  int options[] = {jitErrorLog, jitErrorLogSize};
  void *values[] = {log, reinterpret_cast<void *>(logBytes)};
  return cuda.done(cuda.cuModuleLoadDataEx(
      module, code, log && logBytes ? 2 : 0, options, values));
}

int moduleUnload(void *self, void *module) {
  return Cuda::of(self).done(Cuda::of(self).cuModuleUnload(module));
}

int moduleFunction(void *self, void *module, const char *name, void **function,
                   fi_driver_function *info) {
  Cuda &cuda = Cuda::of(self);
  *info = {};
  Result result = cuda.cuModuleGetFunction(function, module, name);
  auto attribute = [&](int which, auto &to) {
    int value = 0;
    if (result == 0)
      result = cuda.cuFuncGetAttribute(&value, which, *function);
    to = value;
  };
  attribute(functionRegisters, info->registers);
  attribute(functionMaxThreads, info->max_threads);
  attribute(functionShared, info->shared);
  attribute(functionLocal, info->local);
  return cuda.done(result);
}

int functionShared_(void *self, void *function, size_t bytes) {
  Cuda &cuda = Cuda::of(self);
  return cuda.done(
      cuda.cuFuncSetAttribute(function, functionMaxDynamicShared, int(bytes)));
}

int functionOccupancy(void *self, void *function, int32_t threads,
                      size_t shared, int32_t *ctas) {
  Cuda &cuda = Cuda::of(self);
  return cuda.done(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
      ctas, function, threads, shared));
}

int tensorMap(void *self, const fi_driver_tensor *tensor, void *map) {
  Cuda &cuda = Cuda::of(self);
  if (!cuda.cuTensorMapEncodeTiled) {
    lastText =
        "the CUDA driver is too old for tensor copies: it has no function "
        "'cuTensorMapEncodeTiled'; install a driver for CUDA 12.0 or "
        "later";
    return FI_DRIVER_UNAVAILABLE;
  }
  // Unsigned numbers of so many bytes: nothing is computed with them.
  enum { ofBytes1 = 0, ofBytes2 = 1, ofBytes4 = 2, ofBytes8 = 4 };
  int type = tensor->element == 1   ? ofBytes1
             : tensor->element == 2 ? ofBytes2
             : tensor->element == 4 ? ofBytes4
                                    : ofBytes8;
  uint64_t sizes[5], strides[5];
  uint32_t box[5], steps[5];
  for (int32_t d = 0; d < tensor->rank; ++d) {
    sizes[d] = uint64_t(tensor->sizes[d]);
    strides[d] = uint64_t(tensor->strides[d]);
    box[d] = uint32_t(tensor->box[d]);
    steps[d] = 1;
  }
  int swizzle = tensor->swizzle == 128  ? 3
                : tensor->swizzle == 64 ? 2
                : tensor->swizzle == 32 ? 1
                                        : 0;
  constexpr int noInterleave = 0, promoteTo128 = 2, fillZeros = 0;
  return cuda.done(cuda.cuTensorMapEncodeTiled(
      map, type, uint32_t(tensor->rank), const_cast<void *>(tensor->data),
      sizes, strides + 1, box, steps, noInterleave, swizzle, promoteTo128,
      fillZeros));
}

int launchKernel(void *self, void *function, const fi_driver_launch *launch) {
  Cuda &cuda = Cuda::of(self);
  if (launch->tensor_maps > 0) {
    // In one buffer the driver does not put them where kernels look for them:
    // it gets the parameters one by one.
    constexpr size_t most = 512;
    void *each[most];
    if (launch->slots + launch->tensor_maps > most) {
      lastText = "expected at most 512 parameters";
      return FI_DRIVER_ERROR;
    }
    char *params = static_cast<char *>(const_cast<void *>(launch->params));
    for (uint32_t i = 0; i < launch->slots; ++i)
      each[i] = params + i * 8;
    char *maps = params + launch->param_bytes -
                 launch->tensor_maps * FI_DRIVER_TENSOR_MAP_BYTES;
    for (uint32_t i = 0; i < launch->tensor_maps; ++i)
      each[launch->slots + i] = maps + i * FI_DRIVER_TENSOR_MAP_BYTES;
    return cuda.done(cuda.launch(function, *launch, each, nullptr));
  }
  size_t bytes = launch->param_bytes;
  void *extra[] = {reinterpret_cast<void *>(1), // the buffer
                   const_cast<void *>(launch->params),
                   reinterpret_cast<void *>(2), // its size
                   &bytes, nullptr};
  return cuda.done(cuda.launch(function, *launch, nullptr, extra));
}

void lastFault(void *, fi_driver_fault *fault) {
  *fault = {isAsynchronous(lastResult), 0, 0};
}

Cuda::Cuda() {
  table.version = FI_DRIVER_VERSION;
  table.name = "cuda";
  table.self = this;
  table.last_error = lastErrorOf;
  table.device_count = deviceCount;
  table.device_info = deviceInfo;
  table.context_open = contextOpen;
  table.context_close = contextClose;
  table.context_enter = contextEnter;
  table.context_leave = contextLeave;
  table.memory_alloc = memoryAlloc;
  table.memory_free = memoryFree;
  table.host_alloc = hostAlloc;
  table.host_free = hostFree;
  table.pointer_info = pointerInfo;
  table.copy_to_device = copyToDevice;
  table.copy_to_host = copyToHost;
  table.stream_create = streamCreate;
  table.stream_destroy = streamDestroy;
  table.stream_synchronize = streamSynchronize;
  table.stream_check = streamCheck;
  table.stream_capturing = streamCapturing;
  table.event_create = eventCreate;
  table.event_destroy = eventDestroy;
  table.event_record = eventRecord;
  table.event_synchronize = eventSynchronize;
  table.event_milliseconds = eventMilliseconds;
  table.module_load = moduleLoad;
  table.module_unload = moduleUnload;
  table.module_function = moduleFunction;
  table.function_shared = functionShared_;
  table.function_occupancy = functionOccupancy;
  table.tensor_map = tensorMap;
  table.launch = launchKernel;
  table.last_fault = lastFault;

  // FI_CUDA_LIBRARY: another library than the system's, for tests and for
  // drivers that lie elsewhere.
  const char *other = std::getenv("FI_CUDA_LIBRARY");
  const char *path = other && *other ? other : "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *text = dlerror();
    why = std::string("there is no CUDA driver on this machine (") +
          (text ? text : path) +
          "); install NVIDIA's driver, or compile for the cpu";
    return;
  }
  const char *missing = nullptr;
#define FI_FIND(member, symbol, parameters)                                    \
  member = reinterpret_cast<decltype(member)>(dlsym(library, symbol));         \
  if (!member && !missing)                                                     \
    missing = symbol;
  FI_CUDA_FUNCTIONS(FI_FIND)
#undef FI_FIND
  // Of CUDA 12.0: only some kernels ask for it.
  cuTensorMapEncodeTiled = reinterpret_cast<decltype(cuTensorMapEncodeTiled)>(
      dlsym(library, "cuTensorMapEncodeTiled"));
  cuLaunchKernelEx = reinterpret_cast<decltype(cuLaunchKernelEx)>(
      dlsym(library, "cuLaunchKernelEx"));
  if (missing) {
    why = std::string("the CUDA driver is too old: '") + path +
          "' has no function '" + missing +
          "'; install a driver for CUDA 11.0 or later";
    return;
  }
  if (Result result = cuInit(0)) {
    done(result);
    why = "the CUDA driver cannot be used: " + lastText +
          (result == errorNoDevice
               ? "; run on a machine with a GPU that this process may see, or "
                 "compile for the cpu"
               : "; check that the driver is loaded (nvidia-smi)");
    return;
  }
  if (Result result = cuDriverGetVersion(&version)) {
    done(result);
    why = "the CUDA driver cannot be used: " + lastText;
  } else if (version < 11000) {
    char text[160];
    std::snprintf(text, sizeof(text),
                  "the CUDA driver is too old: it is for CUDA %d.%d; install a "
                  "driver for CUDA 11.0 or later",
                  version / 1000, version % 1000 / 10);
    why = text;
  }
  // CUDA graphs keep the overlap since 12.3.
  const char *wanted = std::getenv("FI_OVERLAP_LAUNCHES");
  table.launches_overlap = cuLaunchKernelEx && version >= 12030 &&
                           !(wanted && std::string(wanted) == "0");
}

} // namespace
} // namespace fi::runtime

fi_status fi_cuda_driver(const fi_driver **driver) {
  using namespace fi::runtime;
  if (!driver)
    return fail(FI_INVALID_ARGUMENT,
                "fi_cuda_driver: expected 'driver', but got NULL");
  *driver = nullptr;
  // Never destroyed: plans may be released while the process ends.
  static Cuda &cuda = *new Cuda;
  if (!cuda.why.empty())
    return fail(FI_UNSUPPORTED, "device: %s", cuda.why.c_str());
  *driver = &cuda.table;
  return FI_OK;
}
