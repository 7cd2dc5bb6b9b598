/*===- decode_cuda.c - plan once, launch 32 layers on a GPU ---------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * decode_cuda PACKAGE: decodes one token for four requests through 32 layers on
 * the first GPU. PACKAGE holds a paged attention program compiled for a GPU
 * with plan tables qo, indptr, pages, last (i32), pages of at least 1 token,
 * and any run values; test/data/gpu/naive is one. The host plans once and then
 * only launches; it waits once, at the end. Says so and exits with 77 where
 * there is no GPU.
 *
 *===----------------------------------------------------------------------===*/
#include "fi-runtime/fi_runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 32, REQUESTS = 4, PAGES = 8, MOST = 16 };

static const fi_driver *driver;

static void check(fi_status status) {
  if (status == FI_OK)
    return;
  fprintf(stderr, "decode_cuda: %s\n", fi_last_error());
  exit(1);
}

static void checkDriver(int result) {
  if (result == FI_DRIVER_OK)
    return;
  fprintf(stderr, "decode_cuda: %s\n", driver->last_error(driver->self));
  exit(1);
}

static fi_value table(int32_t *data, const int64_t *size) {
  fi_value value = {.kind = FI_VALUE_TENSOR,
                    .as.tensor = {data, FI_I32, 1, size, NULL}};
  return value;
}

/* A value of an argument's shape in device memory, zeroed; sizes left open are
 * the pages of a pool, else the rows of the batch. */
static fi_value onDevice(fi_package *package, int32_t group, int32_t index,
                         void *stream) {
  static const size_t sizes[] = {4, 2, 2, 4, 8, 1, 1, 8}; /* of an fi_dtype */
  fi_argument_info info;
  check(fi_package_argument(package, group, index, &info));
  if (info.kind == FI_KIND_SCALAR) {
    fi_value scalar = {.kind = info.dtype == FI_F32 ? FI_VALUE_FLOAT
                                                    : FI_VALUE_INTEGER};
    if (info.dtype == FI_F32)
      scalar.as.f32 = 1;
    else
      scalar.as.i64 = 1;
    return scalar;
  }
  int64_t *shape = malloc(sizeof(int64_t) * (size_t)info.rank), count = 1;
  int64_t open = info.kind == FI_KIND_POOL ? PAGES : REQUESTS;
  for (int32_t d = 0; d < info.rank; ++d)
    count *= shape[d] = info.shape[d] < 0 ? open : info.shape[d];
  size_t bytes = (size_t)count * sizes[info.dtype];
  void *zeros = calloc(bytes, 1), *memory = NULL;
  checkDriver(driver->memory_alloc(driver->self, bytes, &memory));
  checkDriver(
      driver->copy_to_device(driver->self, memory, zeros, bytes, stream));
  checkDriver(driver->stream_synchronize(driver->self, stream));
  free(zeros);
  fi_value value = {.kind = FI_VALUE_TENSOR,
                    .as.tensor = {memory, info.dtype, info.rank, shape, NULL}};
  return value;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: decode_cuda PACKAGE\n");
    return 1;
  }
  fi_device *device;
  if (fi_device_open(NULL, 0, &device) != FI_OK) {
    fprintf(stderr, "decode_cuda: %s\n", fi_last_error());
    return 77;
  }
  driver = fi_device_driver(device);
  /* A program that uses the CUDA runtime or a framework has a context. */
  void *context, *stream;
  int32_t changed;
  checkDriver(driver->context_open(driver->self, 0, &context));
  checkDriver(driver->context_enter(driver->self, context, &changed));
  checkDriver(driver->stream_create(driver->self, &stream));

  fi_package *package;
  check(fi_package_open(argv[1], &package));

  /* Four requests of 2, 1, 3 and 2 pages, one new token each. The tables are
   * the host's; the plan takes them to the device. */
  int32_t qo[] = {0, 1, 2, 3, 4}, indptr[] = {0, 2, 3, 6, 8};
  int32_t pages[] = {7, 2, 5, 3, 1, 6, 0, 4}, last[] = {1, 1, 1, 1};
  int64_t ends = REQUESTS + 1, page_count = PAGES, requests = REQUESTS;
  fi_value tables[] = {table(qo, &ends), table(indptr, &ends),
                       table(pages, &page_count), table(last, &requests)};
  fi_plan_options options = {
      .struct_size = sizeof(options), .device = device, .stream = stream};
  fi_plan *plan;
  check(fi_plan_create(package, tables, 4, &options, &plan));
  size_t bytes = fi_plan_workspace_bytes(plan);
  void *workspace = NULL;
  checkDriver(driver->memory_alloc(driver->self, bytes + 1, &workspace));

  int32_t count = fi_package_argument_count(package, FI_GROUP_RUN);
  int32_t result_count = fi_package_argument_count(package, FI_GROUP_RESULT);
  fi_value values[MOST];
  fi_tensor results[MOST];
  if (count > MOST || result_count > MOST)
    return 1;
  for (int32_t i = 0; i < count; ++i)
    values[i] = onDevice(package, FI_GROUP_RUN, i, stream);
  for (int32_t i = 0; i < result_count; ++i)
    results[i] = onDevice(package, FI_GROUP_RESULT, i, stream).as.tensor;

  /* Each layer would have pools of its own; the plan serves them all. */
  for (int layer = 0; layer < LAYERS; ++layer)
    check(fi_run_device(plan, fi_plan_generation(plan), values, count, results,
                        result_count, workspace, bytes, stream));
  checkDriver(driver->stream_synchronize(driver->self, stream));

  float first = -1;
  checkDriver(driver->copy_to_host(driver->self, &first, results[0].data,
                                   sizeof(first), stream));
  checkDriver(driver->stream_synchronize(driver->self, stream));
  fi_driver_device info;
  check(fi_device_describe(device, &info));
  printf("%d layers on %s, %zu bytes of workspace, o[0] = %g\n", LAYERS,
         info.name, bytes, first);
  fi_plan_destroy(plan);
  fi_package_release(package);
  checkDriver(driver->stream_destroy(driver->self, stream));
  if (changed)
    driver->context_leave(driver->self, context);
  driver->context_close(driver->self, context);
  fi_device_release(device);
  return 0;
}
