/*===- three_requests.c - a package's kernel, written by hand -------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * What examples/three-requests.mlir says, by hand and slowly, to test packages
 * in fi-run without the compiler. WRONG is added to one output.
 *
 *===----------------------------------------------------------------------===*/
#include "fi/ABI/KernelABI.h"
#include <math.h>

#ifndef WRONG
#define WRONG 0
#endif

const int fi_package_abi_version = FI_ABI_VERSION;

void three_requests_attention(const int64_t *params, const fi_work *work,
                              int64_t begin, int64_t end, void *scratch) {
  (void)scratch;
  /* A buffer of rank r: pointer, r sizes, r strides. */
  const float *q = (const float *)params[0], *k = (const float *)params[7];
  const float *v = (const float *)params[16];
  const int32_t *pages = (const int32_t *)params[25];
  float *o = (float *)params[28], *lse = (float *)params[35];
  const int64_t *q_stride = params + 4, *k_stride = params + 12;
  const int64_t *v_stride = params + 21, *o_stride = params + 32;
  const int64_t *lse_stride = params + 38;
  for (int64_t i = begin; i < end; ++i) {
    const fi_item *item = work->items + i;
    for (int32_t r = 0; r < item->row_count; ++r) {
      int64_t packed = item->row_begin + r, token = packed / 2;
      int64_t row = item->q_begin + token,
              head = item->kv_head * 2 + packed % 2;
      int64_t position = item->kv_origin + item->kv_len - item->q_len + token;
      double best = -INFINITY, sum = 0, out[64] = {0};
      for (int32_t n = 0; n < item->full_ranges + item->partial_ranges; ++n) {
        const fi_key_range *range = work->ranges + item->range_begin + n;
        for (int64_t key = range->begin; key < range->end; ++key) {
          if (key >= item->kv_len || item->kv_origin + key > position)
            continue;
          int64_t page = pages[item->table_begin + key / 4];
          const float *k_row = k + page * k_stride[0] + key % 4 * k_stride[1] +
                               item->kv_head * k_stride[2];
          const float *v_row = v + page * v_stride[0] + key % 4 * v_stride[1] +
                               item->kv_head * v_stride[2];
          double score = 0;
          for (int d = 0; d < 64; ++d)
            score += (double)q[row * q_stride[0] + head * q_stride[1] + d] *
                     k_row[d] * 0.125;
          double top = fmax(best, score), factor = exp(best - top);
          double weight = exp(score - top);
          sum = sum * factor + weight;
          for (int d = 0; d < 64; ++d)
            out[d] = out[d] * factor + weight * v_row[d];
          best = top;
        }
      }
      for (int d = 0; d < 64; ++d)
        o[row * o_stride[0] + head * o_stride[1] + d] =
            (float)(sum > 0 ? out[d] / sum : 0);
      lse[row * lse_stride[0] + head * lse_stride[1]] =
          (float)((best + log(sum)) / log(2));
      if (row == 6 && head == 3)
        o[row * o_stride[0] + head * o_stride[1] + 17] += (float)WRONG;
    }
  }
}
