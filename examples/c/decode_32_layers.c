/*===- decode_32_layers.c - plan once, run 32 layers ----------------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * decode_32_layers PACKAGE: decodes one token for four requests through 32
 * layers. PACKAGE holds a paged attention program in f32 with plan tables qo,
 * indptr, pages, last (i32), run values q, k, v and results o, lse, as in
 * docs/getting-started.md. Heads, page size and dims come from the package.
 *
 *===----------------------------------------------------------------------===*/
#include "fi-runtime/fi_runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 32, REQUESTS = 4, PAGES = 8 };

static void check(fi_status status) {
  if (status == FI_OK)
    return;
  fprintf(stderr, "decode_32_layers: %s\n", fi_last_error());
  exit(1);
}

static fi_value table(int32_t *data, const int64_t *size) {
  fi_value value = {.kind = FI_VALUE_TENSOR,
                    .as.tensor = {data, FI_I32, 1, size, NULL}};
  return value;
}

/* Zeroed floats of an argument's shape; sizes left open become `open`. */
static fi_tensor floats(fi_package *package, int32_t group, int32_t index,
                        int64_t open) {
  fi_argument_info info;
  check(fi_package_argument(package, group, index, &info));
  int64_t *shape = malloc(sizeof(int64_t) * (size_t)info.rank), count = 1;
  for (int32_t d = 0; d < info.rank; ++d)
    count *= shape[d] = info.shape[d] < 0 ? open : info.shape[d];
  float *data = calloc((size_t)count, sizeof(float));
  for (int64_t i = 0; i < count && group == FI_GROUP_RUN; ++i)
    data[i] = (float)(i % 17) / 17;
  return (fi_tensor){data, info.dtype, info.rank, shape, NULL};
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: decode_32_layers PACKAGE\n");
    return 1;
  }
  fi_package *package;
  check(fi_package_open(argv[1], &package));

  /* Four requests of 2, 1, 3 and 2 pages, one new token each. */
  int32_t qo[] = {0, 1, 2, 3, 4}, indptr[] = {0, 2, 3, 6, 8};
  int32_t pages[] = {7, 2, 5, 3, 1, 6, 0, 4}, last[] = {1, 1, 1, 1};
  int64_t ends = REQUESTS + 1, page_count = PAGES, requests = REQUESTS;
  fi_value tables[] = {table(qo, &ends), table(indptr, &ends),
                       table(pages, &page_count), table(last, &requests)};
  fi_plan *plan;
  check(fi_plan_create(package, tables, 4, NULL, &plan));
  size_t bytes = fi_plan_workspace_bytes(plan);
  size_t rounded =
      (bytes / FI_WORKSPACE_ALIGNMENT + 1) * FI_WORKSPACE_ALIGNMENT;
  void *workspace = aligned_alloc(FI_WORKSPACE_ALIGNMENT, rounded);

  /* Each layer has pools of its own; the plan serves them all. */
  fi_value q = {.kind = FI_VALUE_TENSOR,
                .as.tensor = floats(package, FI_GROUP_RUN, 0, REQUESTS)};
  fi_tensor results[] = {floats(package, FI_GROUP_RESULT, 0, REQUESTS),
                         floats(package, FI_GROUP_RESULT, 1, REQUESTS)};
  for (int layer = 0; layer < LAYERS; ++layer) {
    fi_value k = {.kind = FI_VALUE_TENSOR,
                  .as.tensor = floats(package, FI_GROUP_RUN, 1, PAGES)};
    fi_value v = {.kind = FI_VALUE_TENSOR,
                  .as.tensor = floats(package, FI_GROUP_RUN, 2, PAGES)};
    fi_value values[] = {q, k, v};
    check(fi_run(plan, fi_plan_generation(plan), values, 3, results, 2,
                 workspace, bytes));
    q.as.tensor.data = results[0].data; /* stands for the rest of the layer */
    free(k.as.tensor.data), free((void *)k.as.tensor.shape);
    free(v.as.tensor.data), free((void *)v.as.tensor.shape);
  }
  printf("%d layers, %zu bytes of workspace, o[0] = %g, lse[0] = %g\n", LAYERS,
         bytes, ((float *)results[0].data)[0], ((float *)results[1].data)[0]);
  free(workspace);
  fi_plan_destroy(plan);
  fi_package_release(package);
  return 0;
}
