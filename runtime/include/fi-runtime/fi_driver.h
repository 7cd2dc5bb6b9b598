/*===- fi_driver.h - What the runtime asks of a device's driver -----------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * A table of functions behind which a device lies: the CUDA driver
 * (fi_cuda_driver of fi_runtime.h), an emulator, or a test. Plain C, no CUDA
 * headers.
 *
 * Every function gets the table's `self` first and returns a
 * fi_driver_result; last_error then has a text for the calling thread, with the
 * driver's own name of the error in front. Functions may be called from several
 * threads at once. Those below "contexts" work in the context that is current
 * in the calling thread. Streams are the driver's handles; NULL is its default
 * stream. Work in a stream is done in order; launches, copies and event_record
 * return before it is done.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FI_RUNTIME_FI_DRIVER_H
#define FI_RUNTIME_FI_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_DRIVER_VERSION 4

typedef enum fi_driver_result {
  FI_DRIVER_OK = 0,
  FI_DRIVER_ERROR = 1,
  FI_DRIVER_OUT_OF_MEMORY = 2,
  FI_DRIVER_UNAVAILABLE = 3, /* no driver, or no device */
  FI_DRIVER_NOT_FOUND = 4,   /* no function of that name in the module */
  FI_DRIVER_BAD_CODE = 5,    /* the code cannot be assembled or loaded */
  FI_DRIVER_OTHER_DEVICE = 6 /* a stream of another device or context */
} fi_driver_result;

typedef struct fi_driver_device {
  char name[128];
  int32_t compute_major, compute_minor; /* 9, 0: sm_90 */
  int32_t multiprocessors;
  int32_t max_threads; /* of a CTA */
  int64_t shared;      /* bytes a CTA may have without opting in */
  int64_t shared_optin;
  int64_t shared_multiprocessor;
  int64_t registers; /* of a multiprocessor */
  int64_t cache;     /* bytes of the L2 cache; 0: not known */
  int64_t memory;    /* bytes */
  /* The newest PTX that is assembled, 10 * major + minor; 0: not known. */
  int32_t ptx_version;
  /* What the driver says of itself: "driver for CUDA 12.4". */
  char driver[64];
} fi_driver_device;

typedef enum fi_driver_memory {
  FI_DRIVER_HOST = 0,   /* or unknown to the driver */
  FI_DRIVER_DEVICE = 1, /* of the device `ordinal` */
  FI_DRIVER_MANAGED = 2 /* reachable from every device */
} fi_driver_memory;

typedef struct fi_driver_pointer {
  int32_t memory; /* fi_driver_memory */
  int32_t ordinal;
} fi_driver_pointer;

typedef struct fi_driver_function {
  int32_t registers; /* of a thread */
  int32_t max_threads;
  int64_t shared; /* static, of a CTA */
  int64_t local;  /* spills and stack, of a thread */
} fi_driver_function;

/* A tensor and the boxes of it that kernels copy at once; dimensions begin with
 * the innermost one, whose elements lie side by side. What a box has beyond the
 * tensor is zeros. */
typedef struct fi_driver_tensor {
  const void *data; /* aligned to 16 bytes */
  int32_t rank;     /* 1 to 5 */
  int32_t element;  /* bytes: 1, 2, 4 or 8 */
  int64_t sizes[5];
  int64_t strides[5]; /* bytes; that of the innermost is not read */
  int32_t box[5];
  int32_t swizzle; /* bytes of a box's row in shared memory: 0, 32, 64, 128 */
} fi_driver_tensor;

#define FI_DRIVER_TENSOR_MAP_BYTES 128

typedef struct fi_driver_launch {
  uint32_t grid[3], block[3];
  uint32_t shared; /* dynamic, in bytes */
  void *stream;
  const void *params; /* read before the function returns */
  size_t param_bytes;
  /* The parameters: so many of 8 bytes, and so many tensor maps behind them,
   * which begin at a multiple of 64 bytes. */
  uint32_t slots, tensor_maps;
  /* 1: it may begin while the launch in front of it in the stream ends, for
   * which it waits itself; drivers that cannot do so begin it behind. */
  int32_t overlaps;
} fi_driver_launch;

/* What is known of the calling thread's last failure. */
typedef struct fi_driver_fault {
  int32_t earlier; /* 1: it may be of work that was launched before */
  int32_t located; /* 1: it is of the launch that failed, in this CTA */
  uint32_t cta;
} fi_driver_fault;

typedef enum fi_driver_code {
  FI_DRIVER_PTX = 0,  /* text; ends with a zero byte after `bytes` */
  FI_DRIVER_CUBIN = 1 /* machine code */
} fi_driver_code;

typedef struct fi_driver {
  int32_t version;          /* FI_DRIVER_VERSION */
  int32_t launches_overlap; /* 1: `overlaps` of launches counts */
  const char *name;
  void *self;

  const char *(*last_error)(void *self);
  int (*device_count)(void *self, int32_t *count);
  int (*device_info)(void *self, int32_t ordinal, fi_driver_device *info);

  /* A context of the device: the one current in this thread if it is of this
   * device, else the device's primary context. */
  int (*context_open)(void *self, int32_t ordinal, void **context);
  void (*context_close)(void *self, void *context);
  /* Makes it current; `changed` tells whether it was not. */
  int (*context_enter)(void *self, void *context, int32_t *changed);
  /* Makes current what was before a context_enter that `changed`. */
  void (*context_leave)(void *self, void *context);

  int (*memory_alloc)(void *self, size_t bytes, void **memory);
  int (*memory_free)(void *self, void *memory);
  /* Host memory that copies read and write without a detour, and that kernels
   * reach by the same address. */
  int (*host_alloc)(void *self, size_t bytes, void **memory);
  int (*host_free)(void *self, void *memory);
  int (*pointer_info)(void *self, const void *pointer, fi_driver_pointer *info);
  int (*copy_to_device)(void *self, void *to, const void *from, size_t bytes,
                        void *stream);
  int (*copy_to_host)(void *self, void *to, const void *from, size_t bytes,
                      void *stream);

  int (*stream_create)(void *self, void **stream);
  int (*stream_destroy)(void *self, void *stream);
  int (*stream_synchronize)(void *self, void *stream);
  /* FI_DRIVER_OTHER_DEVICE where the stream is not one of the context. */
  int (*stream_check)(void *self, void *context, void *stream);
  int (*stream_capturing)(void *self, void *stream, int32_t *capturing);

  int (*event_create)(void *self, void **event);
  int (*event_destroy)(void *self, void *event);
  int (*event_record)(void *self, void *event, void *stream);
  int (*event_synchronize)(void *self, void *event);
  int (*event_milliseconds)(void *self, void *first, void *second,
                            float *milliseconds);

  /* Loads code; on failure `log` has what the assembler said. */
  int (*module_load)(void *self, int32_t kind, const void *code, size_t bytes,
                     char *log, size_t log_bytes, void **module);
  int (*module_unload)(void *self, void *module);
  int (*module_function)(void *self, void *module, const char *name,
                         void **function, fi_driver_function *info);
  /* Lets launches of the function ask for that much dynamic shared memory. */
  int (*function_shared)(void *self, void *function, size_t bytes);
  /* CTAs that a multiprocessor holds at once. */
  int (*function_occupancy)(void *self, void *function, int32_t threads,
                            size_t shared, int32_t *ctas);
  /* The parameter of FI_DRIVER_TENSOR_MAP_BYTES bytes, at an address that is a
   * multiple of 64, that describes a tensor to a kernel.
   * FI_DRIVER_UNAVAILABLE where the driver knows of no such copies. */
  int (*tensor_map)(void *self, const fi_driver_tensor *tensor, void *map);
  int (*launch)(void *self, void *function, const fi_driver_launch *launch);
  void (*last_fault)(void *self, fi_driver_fault *fault);
} fi_driver;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FI_RUNTIME_FI_DRIVER_H */
