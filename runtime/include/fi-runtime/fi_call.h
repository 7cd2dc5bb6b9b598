/*===- fi_call.h - Programs called by compiled functions ------------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * What stands between a compiled function and the programs it calls. A process
 * registers the package of each program by the program's name, and then calls
 * the function, which plans and runs it:
 *
 *   fi_call_register("layer_attention0", package, NULL);
 *   layer(...);                                 calls fi_call_plan, fi_call_run
 *
 * The second half of this file is what fi-calls-to-llvm makes calls of.
 *
 * Plans are kept: a call with the same tables and sizes as one of the last ones
 * finds its plan. All functions may be called by several threads at once.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FI_RUNTIME_FI_CALL_H
#define FI_RUNTIME_FI_CALL_H

#include "fi-runtime/fi_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- For the process -----------------------------------------------------*/

/* Zero-initialise, set struct_size, and set what you need. */
typedef struct fi_call_options {
  size_t struct_size; /* sizeof(fi_call_options) */
  int32_t workers;    /* as of fi_plan_options */
  int32_t plans_kept; /* plans that nobody uses; 0: 8 */
  /* Packages for a GPU: where calls run, in this stream of it. NULL: the first
   * device of the CUDA driver; its default stream. The stream must live as long
   * as functions may call the program. */
  fi_device *device;
  void *stream;
} fi_call_options;

/* Functions that call `program` (NULL: the package's own name for it) run this
 * package from now on, which is kept. Another package may take a name's place;
 * calls that are under way go on with the one they began with. The code of a
 * package for a GPU is loaded here; FI_UNSUPPORTED where there is no GPU.
 *
 * On a GPU the plan arguments of a function are memory of the host, and its
 * other tensors that of the device, the host, or both. What is the host's is
 * copied there, and what may be written back, before the call returns. A call
 * whose tensors are all the device's is put into the stream and not waited for.
 */
FI_API fi_status fi_call_register(const char *program, fi_package *package,
                                  const fi_call_options *options);
/* Forgets a name and its plans. FI_INVALID_ARGUMENT if there is none. */
FI_API fi_status fi_call_unregister(const char *program);

/* What is done where a call fails: compiled functions have no way to say so.
 * Without a handler the sentence is printed and the process aborts. Behind a
 * handler that returns the function goes on, with results that were not
 * written. NULL: none. */
typedef void (*fi_call_handler)(void *context, const char *program,
                                fi_status status, const char *sentence);
FI_API void fi_call_on_error(fi_call_handler handler, void *context);

/* Plans that have been made for a program since it was registered, and calls
 * that found one; -1 if it is not registered. */
FI_API int64_t fi_call_plans_made(const char *program);
FI_API int64_t fi_call_plans_found(const char *program);

/*===-- For compiled functions ----------------------------------------------*/

/* Values are numbers one behind the other. Of each first what it is:
 *
 *   FI_CALL_VALUE(FI_VALUE_TENSOR, dtype, rank), address, sizes, strides (in
 *     elements)
 *   FI_CALL_VALUE(FI_VALUE_FLOAT, dtype, 0), the bits of an f32
 *   FI_CALL_VALUE(FI_VALUE_INTEGER, dtype, 0), the number
 */
#define FI_CALL_VALUE(kind, dtype, rank)                                       \
  ((int64_t)(kind) | (int64_t)(dtype) << 8 | (int64_t)(rank) << 16)

typedef struct fi_call fi_call;

/* A plan of a program for these plan arguments. `shapes` (shape_count may be 0)
 * are the run arguments without addresses, for their sizes, -1 where they are
 * not known. NULL on failure. The caller gives it back by fi_call_release. */
FI_API fi_call *fi_call_plan(const char *program, int32_t value_count,
                             const int64_t *values, int32_t shape_count,
                             const int64_t *shapes);
/* Runs it. A NULL plan has failed before: nothing is done. */
FI_API void fi_call_run(fi_call *plan, int32_t value_count,
                        const int64_t *values, int32_t result_count,
                        const int64_t *results);
FI_API void fi_call_release(fi_call *plan);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FI_RUNTIME_FI_CALL_H */
