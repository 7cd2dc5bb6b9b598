/*===- FakeKernels.c - a kernels.so for package tests ---------------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The symbols of a package on disk. The kernels mark the rows of their items in
 * result0, whose parameters follow one scalar.
 *
 *===----------------------------------------------------------------------===*/
#include "fi/ABI/KernelABI.h"

#define FI_EXPORT __attribute__((visibility("default")))

FI_EXPORT const int32_t fi_package_abi_version = FI_ABI_VERSION;

FI_EXPORT void body0(const int64_t *params, const fi_work *work, int64_t begin,
                     int64_t end, void *scratch) {
  (void)scratch;
  float *o = (float *)(intptr_t)params[1];
  for (int64_t i = begin; i < end; ++i)
    if (work->items[i].slot < 0)
      o[work->items[i].q_begin * params[5]] = 1;
}

FI_EXPORT void merge0(const int64_t *params, const fi_work *work, int64_t begin,
                      int64_t end, void *scratch) {
  body0(params, work, begin, end, scratch);
}
