/*===- fi_runtime.h - C interface of the fi runtime -----------------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Opens compiled packages, plans a batch once, and runs the plan once per
 * layer. Plain C; needs no compiler. docs/planner.md explains the ideas,
 * docs/abi.md what a package holds.
 *
 *   fi_package *package;
 *   fi_plan *plan;
 *   fi_package_open("llama.fipkg", &package);
 *   fi_plan_create(package, tables, table_count, NULL, &plan);
 *   void *workspace = aligned_alloc(FI_WORKSPACE_ALIGNMENT, bytes of the plan);
 *   for each layer: fi_run(plan, generation, values, ..., workspace, bytes);
 *
 * On a GPU the plan is made for a device, workspace and tensors lie in its
 * memory, and runs are launches in a stream:
 *
 *   fi_device *device;
 *   fi_device_open(NULL, 0, &device);
 *   fi_plan_options options = {.struct_size = sizeof(options),
 *                              .device = device, .stream = stream};
 *   fi_plan_create(package, tables, table_count, &options, &plan);
 *   for each layer: fi_run_device(plan, generation, values, ..., stream);
 *
 * Every function that can fail returns an fi_status; fi_last_error() then has a
 * sentence for this thread. Different plans may be used from different
 * threads freely. One plan may be run from several threads at once, each with
 * its own workspace; it must not be updated or destroyed meanwhile (an update
 * is refused with FI_BUSY).
 *
 *===----------------------------------------------------------------------===*/
#ifndef FI_RUNTIME_FI_RUNTIME_H
#define FI_RUNTIME_FI_RUNTIME_H

#include "fi-runtime/fi_driver.h"

#include <stddef.h>
#include <stdint.h>

#if defined(FI_RUNTIME_STATIC)
#define FI_API
#else
#define FI_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Workspaces must be aligned to this many bytes. */
#define FI_WORKSPACE_ALIGNMENT 64

typedef enum fi_status {
  FI_OK = 0,
  FI_INVALID_ARGUMENT = 1, /* wrong use of a function of this header */
  FI_INVALID_PACKAGE = 2,  /* unreadable, malformed or newer package */
  FI_UNSUPPORTED = 3,      /* understood, but not available */
  FI_INVALID_BATCH = 4,    /* plan values that contradict each other */
  FI_INVALID_RUN = 5,      /* run values that the plan was not made for */
  FI_STALE_PLAN = 6,       /* the plan was updated since */
  FI_BUSY = 7,             /* the plan is being run or updated */
  FI_OUT_OF_MEMORY = 8,
  FI_DEVICE_ERROR = 9 /* the device's driver refused or failed */
} fi_status;

/* The sentence of the last failure in this thread, or "". Stays valid until the
 * next failing call in the same thread. */
FI_API const char *fi_last_error(void);
/* "fi runtime 0.1.0, abi 1, manifest 1" */
FI_API const char *fi_runtime_version(void);

/*===-- Values --------------------------------------------------------------*/

typedef enum fi_dtype {
  FI_F32 = 0,
  FI_F16 = 1,
  FI_BF16 = 2,
  FI_I32 = 3,
  FI_I64 = 4,
  FI_I8 = 5,
  FI_I1 = 6,    /* one byte an element */
  FI_INDEX = 7, /* 64 bits signed; interchangeable with FI_I64 */
  FI_F8E4M3FN = 8,
  FI_F8E5M2 = 9,
  FI_F8E8M0FNU = 10 /* powers of two: scales of blocks */
} fi_dtype;

/* A view of somebody's memory. Strides are in elements; NULL strides mean
 * contiguous, row-major. */
typedef struct fi_tensor {
  void *data;
  int32_t dtype; /* fi_dtype */
  int32_t rank;
  const int64_t *shape;
  const int64_t *strides;
} fi_tensor;

typedef enum fi_value_kind {
  FI_VALUE_TENSOR = 0,
  FI_VALUE_FLOAT = 1,  /* scalar of a float dtype, in `f32` */
  FI_VALUE_INTEGER = 2 /* scalar of an integer dtype, in `i64` */
} fi_value_kind;

typedef struct fi_value {
  int32_t kind; /* fi_value_kind */
  union {
    fi_tensor tensor;
    float f32;
    int64_t i64;
  } as;
} fi_value;

/*===-- Devices -------------------------------------------------------------*/

typedef struct fi_device fi_device;

/* The CUDA driver of this machine, loaded on the first call; FI_UNSUPPORTED
 * where there is none. Belongs to the runtime. */
FI_API fi_status fi_cuda_driver(const fi_driver **driver);
/* Devices of a driver (NULL: CUDA). No driver and no device are 0 devices. */
FI_API int32_t fi_device_count(const fi_driver *driver);
/* Opens a device of a driver (NULL: CUDA), which must outlive it. Works in the
 * context that is current in this thread if it is one of that device, else in
 * the device's primary context; both are what other libraries use, too. */
FI_API fi_status fi_device_open(const fi_driver *driver, int32_t ordinal,
                                fi_device **device);
/* Gives the caller's reference back. Plans and packages hold their own. NULL is
 * fine. */
FI_API void fi_device_release(fi_device *device);
FI_API fi_status fi_device_describe(const fi_device *device,
                                    fi_driver_device *description);
FI_API const fi_driver *fi_device_driver(const fi_device *device);

/*===-- Packages ------------------------------------------------------------*/

typedef struct fi_package fi_package;

/* Finds a symbol's address for a package in memory; NULL if there is none. */
typedef void *(*fi_symbol_lookup)(void *context, const char *symbol);

/* Opens a package directory (manifest.json, and kernels.so for the cpu or
 * kernels.ptx and kernels.cubin for a GPU), or one with a package for each of
 * several GPUs, of which a plan takes the one for its device. Needs no GPU. */
FI_API fi_status fi_package_open(const char *path, fi_package **package);
/* Opens a package whose code is in this process already. All symbols are looked
 * up before the function returns; the code must outlive the package. */
FI_API fi_status fi_package_from_memory(const char *manifest, size_t length,
                                        fi_symbol_lookup lookup, void *context,
                                        fi_package **package);
typedef struct fi_code {
  int32_t kind; /* fi_driver_code */
  const void *data;
  size_t bytes;
} fi_code;

/* Opens a package for a GPU whose code is in memory: PTX, machine code, or one
 * of each. The code is copied. */
FI_API fi_status fi_package_from_code(const char *manifest, size_t length,
                                      const fi_code *codes, int32_t code_count,
                                      fi_package **package);
/* Loads the code of a package for a GPU on a device, as the first plan there
 * does: assembling PTX takes its time. */
FI_API fi_status fi_package_load(fi_package *package, fi_device *device);
/* The target whose code a device takes ("sm_90a", or "cpu"): of a package for
 * several the best that the device can run. The device may be NULL for a
 * package of one target. The name lives as long as the package. */
FI_API fi_status fi_package_target(fi_package *package, const fi_device *device,
                                   const char **target);
/* Gives the caller's reference back. Plans hold their own. NULL is fine. */
FI_API void fi_package_release(fi_package *package);

typedef enum fi_group {
  FI_GROUP_PLAN = 0,  /* arguments of fi_plan_create, in order */
  FI_GROUP_RUN = 1,   /* arguments of fi_run, in order */
  FI_GROUP_RESULT = 2 /* results of fi_run, in order */
} fi_group;

typedef enum fi_argument_kind {
  FI_KIND_TENSOR = 0,
  FI_KIND_POOL = 1, /* may be written */
  FI_KIND_SCALAR = 2
} fi_argument_kind;

typedef struct fi_argument_info {
  const char *name;
  int32_t kind;         /* fi_argument_kind */
  int32_t dtype;        /* fi_dtype */
  int32_t rank;         /* 0 for scalars */
  const int64_t *shape; /* -1: known at run time */
  int32_t rows_of;      /* results: the run argument with as many rows, or -1
                           (a number of rows that the plan or shape says) */
} fi_argument_info;

FI_API const char *fi_package_program(const fi_package *package);
FI_API int32_t fi_package_argument_count(const fi_package *package,
                                         int32_t group);
FI_API fi_status fi_package_argument(const fi_package *package, int32_t group,
                                     int32_t index, fi_argument_info *info);
/* The index of the argument with that name in its group, or -1. */
FI_API int32_t fi_package_argument_index(const fi_package *package,
                                         int32_t group, const char *name);

/*===-- Plans ---------------------------------------------------------------*/

typedef struct fi_plan fi_plan;

typedef enum fi_split_policy {
  FI_SPLIT_DEFAULT = 0,  /* as the package says */
  FI_SPLIT_BALANCED = 1, /* split where one worker would dominate */
  FI_SPLIT_FIXED = 2,    /* every split_keys keys from key 0: batch-invariant */
  FI_SPLIT_NONE = 3
} fi_split_policy;

/* Zero-initialise, set struct_size, and set what you need. */
typedef struct fi_plan_options {
  size_t struct_size;   /* sizeof(fi_plan_options) */
  int32_t workers;      /* 0: as many as this process may use */
  int32_t split_policy; /* fi_split_policy */
  int64_t split_keys;   /* FI_SPLIT_FIXED: keys of a piece */
  /* 1: launches that were captured in a graph stay good when the plan is
   * updated: addresses, sizes and grids are those of the largest batch, which
   * the first one and the capacities below tell (docs/planner.md). */
  int32_t graph_safe;
  /* 0: the plan copies what kernels read of the tables. 1: it keeps pointers;
   * the tables must stay alive and unchanged until the last run. */
  int32_t borrow_tables;
  /* Rows of the query (and of other per-token tensors) where they exceed the
   * last entry of the row indptr: the surplus rows are padding and become empty
   * states. 0: exactly the rows of the indptr. */
  int64_t rows;
  /* NULL, or one entry per run argument: its shape as far as known (-1: not
   * known, or a NULL shape). Needed for sizes that no table tells: the page
   * size where the program leaves it open, rows and keys of a program without
   * indptr. Sizes given here are checked against the tables now and against the
   * tensors at run. data and strides are ignored. */
  const fi_tensor *run_shapes;
  /* Packages for a GPU: the device that runs the plan, for good. `workers` is
   * then best left 0: as many CTAs as the device holds at once. */
  fi_device *device;
  /* The stream in which what the plan keeps in device memory is copied there.
   * Runs in the same stream come after it; runs in others are the caller's to
   * order. Must not be one that is being captured. */
  void *stream;
  /* Graph-safe plans: capacities of the batches that may come. 0: as the first
   * batch has. The rows of the query are `rows` (or those of the first batch)
   * for good: what a batch does not use is padding. */
  int64_t max_requests;
  int64_t max_request_rows; /* rows of one request */
  int64_t max_pages;        /* entries of a page table, of all requests */
  /* Devices: 1: runs wait for each launch, so that a fault names its kernel.
   * Such runs cannot be captured. */
  int32_t checked;
  /* Packages of profile builds: the most bytes of device memory that logs of
   * time stamps may take (0: 256 MiB). Marks that do not fit are counted. */
  int64_t profile_bytes;
} fi_plan_options;

/* Plans a batch: `values` are the plan arguments in order, in host memory. They
 * may be released afterwards unless options say borrow_tables. For a device the
 * plan has the work lists copied there from its own pinned memory and does not
 * wait for the copy; it does wait where its device memory must grow (which the
 * driver does to free the old one), and where the copy of the last update but
 * one is still on its way. */
FI_API fi_status fi_plan_create(fi_package *package, const fi_value *values,
                                int32_t value_count,
                                const fi_plan_options *options, fi_plan **plan);
/* Plans another batch into the same object, which reuses its memory. Runs of
 * the last batch may still be under way on a device; those of the one before
 * must be done or come earlier in the same stream. On failure the plan is as
 * before. On success its generation grows. `options` as in fi_plan_create;
 * NULL: those that the plan was last made with. A graph-safe plan writes the
 * new batch over the old one on the device: runs must be done or come earlier
 * in the same stream. Its options stay what they were but for the stream. */
FI_API fi_status fi_plan_update(fi_plan *plan, const fi_value *values,
                                int32_t value_count,
                                const fi_plan_options *options);
FI_API void fi_plan_destroy(fi_plan *plan);
/* FI_DEVICE_ERROR with a sentence if a checked kernel of the plan (docs/abi.md)
 * has found something since this was asked last. Waits for nothing: runs that
 * are under way may find it yet. Runs and updates ask, too. */
FI_API fi_status fi_plan_check(const fi_plan *plan);

/* Exactly the bytes that fi_run needs; may change with an update. */
FI_API size_t fi_plan_workspace_bytes(const fi_plan *plan);
/* 1 after creation, one more after each successful update. */
FI_API uint64_t fi_plan_generation(const fi_plan *plan);
FI_API int32_t fi_plan_workers(const fi_plan *plan);
/* What was chosen and why, as text. Released by fi_string_free. */
FI_API fi_status fi_plan_explain(const fi_plan *plan, char **text);
/* Who does what, as JSON (docs/planner.md). Released by fi_string_free. */
FI_API fi_status fi_plan_schedule_json(const fi_plan *plan, char **text);
/* When the warps of the last run began their phases, as a trace in JSON for
 * Chrome's and Perfetto's viewers (docs/profiling.md): of a plan for a device
 * whose package was compiled for profiling. The run was in `stream`, or comes
 * before what is in it; the function waits for the stream. Released by
 * fi_string_free. */
FI_API fi_status fi_plan_timeline_json(const fi_plan *plan, void *stream,
                                       char **text);
FI_API void fi_string_free(char *text);

/*===-- Run -----------------------------------------------------------------*/

/* Runs the plan on the calling thread and the runtime's worker threads, and
 * returns when all results are written. `generation` is what
 * fi_plan_generation said when the caller prepared this run: a plan that has
 * been updated since is refused; 0 runs whatever is planned now. Values that
 * the plan was not made for are refused before anything is written. */
FI_API fi_status fi_run(fi_plan *plan, uint64_t generation,
                        const fi_value *values, int32_t value_count,
                        const fi_tensor *results, int32_t result_count,
                        void *workspace, size_t workspace_bytes);

/* Launches a plan for a device in a stream of the device, and returns. Tensors,
 * results and workspace are memory of the device. Nothing is allocated and
 * nothing is waited for: launches are all that happens, so that a run may be
 * captured in a graph; the graph is good until the plan is updated, and for a
 * graph-safe plan for good. Values that the plan was not made for are refused
 * before anything is launched. Runs of one plan that are under way at once need
 * a workspace each. */
FI_API fi_status fi_run_device(fi_plan *plan, uint64_t generation,
                               const fi_value *values, int32_t value_count,
                               const fi_tensor *results, int32_t result_count,
                               void *workspace, size_t workspace_bytes,
                               void *stream);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FI_RUNTIME_FI_RUNTIME_H */
