/*===- FakeCuda.c - A libcuda made of host memory -------------------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The functions of the CUDA driver that the runtime uses, for tests of its
 * adapter on machines without a GPU. Device memory is host memory; launches are
 * handed to the test. FI_FAKE_CUDA says what is wrong with it: a word of
 * "uninitialised", "nodevice", "old", "oldptx", "alien".
 *
 *===----------------------------------------------------------------------===*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
struct Function {
  char name[64];
};

/* What the test sets and sees. */
void (*fake_cuda_launch)(const char *name, unsigned grid, unsigned threads,
                         unsigned shared, void *stream, const void *params,
                         size_t bytes);
int fake_cuda_pushes, fake_cuda_primary, fake_cuda_modules;
int fake_cuda_dynamic_shared;
void *fake_cuda_current; /* context */
static struct {
  Address at;
  size_t bytes;
} blocks[256];

static int is(const char *word) {
  const char *mode = getenv("FI_FAKE_CUDA");
  return mode && strcmp(mode, word) == 0;
}
static void *contextOf(int device) {
  return (void *)(uintptr_t)(0xC0 + device);
}

int cuInit(unsigned flags) {
  (void)flags;
  return is("uninitialised") ? 3 : is("nodevice") ? 100 : 0;
}
int cuDriverGetVersion(int *version) {
  *version = is("old") ? 10020 : is("oldptx") ? 11030 : 12060;
  return 0;
}
int cuGetErrorName(int error, const char **name) {
  *name = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == 3   ? "CUDA_ERROR_NOT_INITIALIZED"
          : error == 100 ? "CUDA_ERROR_NO_DEVICE"
          : error == 218 ? "CUDA_ERROR_INVALID_PTX"
          : error == 400 ? "CUDA_ERROR_INVALID_HANDLE"
          : error == 500 ? "CUDA_ERROR_NOT_FOUND"
                         : NULL;
  return *name ? 0 : 1;
}
int cuGetErrorString(int error, const char **text) {
  *text = error == 2 ? "out of memory" : "what it means";
  return 0;
}
int cuDeviceGetCount(int *count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char *name, int bytes, int device) {
  snprintf(name, (size_t)bytes, "Fake H%d", device);
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 1    ? 1024
           : attribute == 8  ? 49152
           : attribute == 16 ? 132
           : attribute == 75 ? 9
           : attribute == 76 ? 0
           : attribute == 81 ? 233472
           : attribute == 82 ? 65536
           : attribute == 97 ? 232448
           : attribute == 38 ? 62914560
                             : -1;
  return *value < 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 37;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  ++fake_cuda_primary;
  *context = contextOf(device);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  --fake_cuda_primary;
  return 0;
}
int cuCtxGetCurrent(void **context) {
  *context = fake_cuda_current;
  return 0;
}
int cuCtxGetDevice(int *device) {
  /* 0xD0 is a context of device 0 that somebody created. */
  *device = fake_cuda_current == contextOf(1);
  return 0;
}
static void *pushed[16];
int cuCtxPushCurrent_v2(void *context) {
  pushed[fake_cuda_pushes++] = fake_cuda_current;
  fake_cuda_current = context;
  return 0;
}
int cuCtxPopCurrent_v2(void **context) {
  *context = fake_cuda_current;
  fake_cuda_current = pushed[--fake_cuda_pushes];
  return 0;
}
int cuMemAlloc_v2(Address *memory, size_t bytes) {
  if (bytes > (size_t)1 << 30)
    return 2;
  for (int i = 0; i < 256; ++i)
    if (!blocks[i].at) {
      blocks[i].at =
          (Address)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
      blocks[i].bytes = bytes;
      *memory = blocks[i].at;
      return 0;
    }
  return 2;
}
int cuMemFree_v2(Address memory) {
  for (int i = 0; i < 256; ++i)
    if (blocks[i].at == memory) {
      blocks[i].at = 0;
      free((void *)(uintptr_t)memory);
      return 0;
    }
  return 1;
}
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  *memory = flags == 1 ? malloc(bytes) : NULL;
  return !*memory;
}
int cuMemFreeHost(void *memory) {
  free(memory);
  return 0;
}
int cuPointerGetAttributes(unsigned count, int *which, void **to,
                           Address pointer) {
  unsigned type = 0;
  for (int i = 0; i < 256; ++i)
    if (blocks[i].at && pointer >= blocks[i].at &&
        pointer < blocks[i].at + blocks[i].bytes)
      type = 2;
  for (unsigned i = 0; i < count; ++i)
    if (which[i] == 2)
      *(unsigned *)to[i] = type;
    else if (which[i] == 9)
      *(int *)to[i] = is("alien");
    else
      *(unsigned *)to[i] = 0;
  return 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *s) {
  (void)s;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *s) {
  (void)s;
  memcpy(to, (void *)(uintptr_t)from, bytes);
  return 0;
}
int cuStreamCreate(void **stream, unsigned flags) {
  *stream = (void *)0x5000;
  return flags != 1;
}
int cuStreamDestroy_v2(void *stream) { return stream != (void *)0x5000; }
int cuStreamSynchronize(void *stream) {
  (void)stream;
  return 0;
}
int cuStreamGetCtx(void *stream, void **context) {
  *context = stream == (void *)0x5001 ? contextOf(1) : fake_cuda_current;
  return stream == (void *)0x5002 ? 400 : 0;
}
int cuStreamIsCapturing(void *stream, int *status) {
  (void)stream;
  *status = 0;
  return 0;
}
int cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  *event = malloc(1);
  return 0;
}
int cuEventDestroy_v2(void *event) {
  free(event);
  return 0;
}
int cuEventRecord(void *event, void *stream) {
  (void)stream;
  return !event;
}
int cuEventSynchronize(void *event) { return !event; }
int cuEventElapsedTime(float *milliseconds, void *first, void *second) {
  *milliseconds = 1;
  return !first || !second;
}
int cuModuleLoadDataEx(void **module, const void *code, unsigned count,
                       int *options, void **values) {
  if (!strstr(code, "body0")) {
    for (unsigned i = 0; i + 1 < count; ++i)
      if (options[i] == 5 && options[i + 1] == 6)
        snprintf(values[i], (size_t)values[i + 1], "ptxas: no body");
    return 218;
  }
  ++fake_cuda_modules;
  *module = strdup(code);
  return 0;
}
int cuModuleUnload(void *module) {
  free(module);
  --fake_cuda_modules;
  return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  static struct Function functions[16];
  static int count;
  if (!strstr(module, name) || count == 16)
    return 500;
  snprintf(functions[count].name, sizeof(functions[count].name), "%s", name);
  *function = &functions[count++];
  return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = attribute == 0 ? 1024 : attribute == 4 ? 64 : 0;
  return !function;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute == 8)
    fake_cuda_dynamic_shared = value;
  return !function;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ctas, void *function,
                                                int threads, size_t shared) {
  (void)shared;
  *ctas = 2048 / threads / 8;
  return !function;
}
/* What it was given, as the numbers of a map. */
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *data,
                           const uint64_t *sizes, const uint64_t *strides,
                           const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion,
                           int fill) {
  uint64_t *at = map;
  unsigned d;
  if ((uintptr_t)map % 64 || rank > 5 || interleave || fill)
    return 1;
  *at++ = (uintptr_t)data;
  *at++ = (uint64_t)type | (uint64_t)swizzle << 8 | (uint64_t)promotion << 16;
  for (d = 0; d < rank; ++d) {
    *at++ = sizes[d];
    *at++ = (uint64_t)box[d] | (uint64_t)steps[d] << 32;
    if (d + 1 < rank)
      *at++ = strides[d];
  }
  return 0;
}

void *fake_cuda_each[8]; /* parameters that came one by one */
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z,
                   unsigned tx, unsigned ty, unsigned tz, unsigned shared,
                   void *stream, void **params, void **extra) {
  if (params && !extra) {
    memcpy(fake_cuda_each, params, sizeof(fake_cuda_each));
    return 0;
  }
  if (y != 1 || z != 1 || ty != 1 || tz != 1 || params ||
      extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])
    return 1;
  if (fake_cuda_launch)
    fake_cuda_launch(((struct Function *)function)->name, x, tx, shared, stream,
                     extra[1], *(size_t *)extra[3]);
  return 0;
}

/* Launches that may begin early, by the address of this number. */
int fake_cuda_overlaps = 0;

/* CUlaunchConfig with one attribute, which says so. */
int cuLaunchKernelEx(const void *config, void *function, void **params,
                     void **extra) {
  const unsigned *sizes = config;
  void *const *behind = (void *const *)((const char *)config + 32);
  const unsigned *attribute = behind[1];
  if (*(const unsigned *)&behind[2] != 1 || attribute[0] != 6 ||
      attribute[2] != 1)
    return 1;
  ++fake_cuda_overlaps;
  return cuLaunchKernel(function, sizes[0], sizes[1], sizes[2], sizes[3],
                        sizes[4], sizes[5], sizes[6], behind[0], params, extra);
}
