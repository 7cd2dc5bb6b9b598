//===- Baselines.h - what the machine can do --------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The limits that rows are measured against, taken in the same interleaved run:
// arithmetic without memory, and reading the pages without arithmetic.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TOOLS_FI_BENCH_BASELINES_H
#define FI_TOOLS_FI_BENCH_BASELINES_H

#include "Kernel.h"

namespace fi::bench {

enum class PeakKind {
  F32,       ///< widest f32 multiply-add of this host
  F32At256,  ///< on 256-bit vectors
  BF16Pairs, ///< AVX-512 dot products of bf16 pairs
};

/// Whether this host has the instructions.
bool hasPeak(PeakKind kind);

/// What a loop did and how long it took.
struct Timed {
  double seconds = 0;
  double work = 0; ///< operations or bytes
};

/// A few milliseconds of independent multiply-adds in registers on each of
/// `threads` threads.
Timed runPeak(PeakKind kind, int threads);

enum class ReadOrder {
  Items, ///< as kernels must: (request, KV head), page, keys then values, slot;
         ///< with the same row of the next page fetched ahead
  Pages  ///< page by page with all heads, in the order of the page tables
};

/// Reads every key and value row of the kernel's pages once.
Timed readPages(const Kernel &kernel, ReadOrder order, int threads);

} // namespace fi::bench

#endif // FI_TOOLS_FI_BENCH_BASELINES_H
