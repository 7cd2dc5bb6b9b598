//===- Baselines.cpp - what the machine can do ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fi::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs `body(thread)` on each thread at once; the time begins when all are
/// there, so that making threads does not count.
double timeThreads(int threads, const std::function<void(int)> &body) {
  std::atomic<int> ready{0}, done{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t)
    others.emplace_back([&, t] {
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) {
      }
      body(t);
      done.fetch_add(1, std::memory_order_release);
    });
  while (ready.load() < threads - 1)
    std::this_thread::yield();
  Clock::time_point start = Clock::now();
  go.store(true, std::memory_order_release);
  body(0);
  while (done.load(std::memory_order_acquire) < threads - 1) {
  }
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (std::thread &other : others)
    other.join();
  return seconds;
}

/// Keeps a result alive.
volatile float sink;

constexpr int64_t kPeakIterations = 1 << 20;
/// Chains of multiply-adds: enough to cover latency 4 at two a cycle, few
/// enough for the registers.
constexpr int kChains = 12;

// Clang's vectors of any width; the loop is compiled once for each target.
#define FI_PEAK_LOOP(VECTOR, LANES)                                            \
  VECTOR sums[kChains];                                                        \
  for (int c = 0; c < kChains; ++c)                                            \
    sums[c] = VECTOR{} + float(c);                                             \
  VECTOR a = VECTOR{} + 0.999f, b = VECTOR{} + 1e-3f;                          \
  for (int64_t i = 0; i < kPeakIterations; ++i) {                              \
    _Pragma("unroll") for (int c = 0; c < kChains; ++c) sums[c] =              \
        __builtin_elementwise_fma(sums[c], a, b);                              \
    asm volatile("" : "+v"(a), "+v"(b));                                       \
  }                                                                            \
  VECTOR sum = sums[0];                                                        \
  for (int c = 1; c < kChains; ++c)                                            \
    sum += sums[c];                                                            \
  sink = sum[0];                                                               \
  return 2.0 * LANES * kChains * kPeakIterations;

using Vector4 = float __attribute__((vector_size(16)));

#if defined(__x86_64__)
using Vector8 = float __attribute__((vector_size(32)));
using Vector16 = float __attribute__((vector_size(64)));

__attribute__((target("avx2,fma"), noinline)) double multiplyAdd256() {
  FI_PEAK_LOOP(Vector8, 8)
}

__attribute__((target("avx512f,fma"), noinline)) double multiplyAdd512() {
  FI_PEAK_LOOP(Vector16, 16)
}

__attribute__((target("avx512f,avx512bf16,avx512vl"), noinline)) double
dotPairs512() {
  __m512 sums[kChains];
  for (int c = 0; c < kChains; ++c)
    sums[c] = _mm512_set1_ps(float(c));
  __m512 ones = _mm512_set1_ps(1e-3f);
  __m512bh a = _mm512_cvtne2ps_pbh(ones, ones), b = a;
  for (int64_t i = 0; i < kPeakIterations; ++i) {
#pragma unroll
    for (int c = 0; c < kChains; ++c)
      sums[c] = _mm512_dpbf16_ps(sums[c], a, b);
    asm volatile("" : "+v"(a), "+v"(b));
  }
  __m512 sum = sums[0];
  for (int c = 1; c < kChains; ++c)
    sum = _mm512_add_ps(sum, sums[c]);
  sink = sum[0];
  return 4.0 * 16 * kChains * kPeakIterations;
}
#define FI_READ_TARGETS                                                        \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
__attribute__((noinline)) double multiplyAdd() {
  Vector4 sums[kChains];
  for (int c = 0; c < kChains; ++c)
    sums[c] = Vector4{} + float(c);
  Vector4 a = Vector4{} + 0.999f, b = Vector4{} + 1e-3f;
  for (int64_t i = 0; i < kPeakIterations; ++i)
    for (int c = 0; c < kChains; ++c)
      sums[c] = sums[c] * a + b;
  sink = sums[0][0];
  return 2.0 * 4 * kChains * kPeakIterations;
}
#define FI_READ_TARGETS
#endif

/// Adds up bytes in words, in several sums so that the loads do not wait, and
/// fetches as many bytes at `ahead` meanwhile: what a reader that knows the
/// page table can do, and the hardware's prefetcher cannot.
FI_READ_TARGETS uint64_t readBytes(const char *data, int64_t bytes,
                                   const char *ahead) {
  constexpr int lanes = 32; // words; four AVX-512 registers
  constexpr int64_t line = 64;
  uint64_t sums[lanes] = {};
  int64_t i = 0;
  for (; i + int64_t(sizeof(sums)) <= bytes; i += sizeof(sums)) {
    if (ahead)
      for (int64_t at = 0; at < int64_t(sizeof(sums)); at += line)
        __builtin_prefetch(ahead + i + at);
    uint64_t words[lanes];
    std::memcpy(words, data + i, sizeof(words));
    for (int lane = 0; lane < lanes; ++lane)
      sums[lane] += words[lane];
  }
  uint64_t sum = 0;
  for (; i < bytes; ++i)
    sum += static_cast<unsigned char>(data[i]);
  for (uint64_t lane : sums)
    sum += lane;
  return sum;
}

} // namespace

bool hasPeak(PeakKind kind) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  switch (kind) {
  case PeakKind::F32:
  case PeakKind::F32At256:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  case PeakKind::BF16Pairs:
    return __builtin_cpu_supports("avx512bf16");
  }
  return false;
#else
  return kind == PeakKind::F32;
#endif
}

Timed runPeak(PeakKind kind, int threads) {
  double (*loop)();
#if defined(__x86_64__)
  loop = kind == PeakKind::BF16Pairs ? dotPairs512
         : kind == PeakKind::F32 && __builtin_cpu_supports("avx512f")
             ? multiplyAdd512
             : multiplyAdd256;
#else
  (void)kind;
  loop = multiplyAdd;
#endif
  std::vector<double> work(threads);
  Timed result;
  result.seconds = timeThreads(threads, [&](int t) { work[t] = loop(); });
  for (double part : work)
    result.work += part;
  return result;
}

Timed readPages(const Kernel &kernel, ReadOrder order, int threads) {
  const Problem &p = kernel.getProblem();
  const auto *pages = static_cast<const int32_t *>(kernel.getPages().getData());
  int64_t perRequest = kernel.getPages().getSize(0) / p.requests;
  int64_t rowBytes = p.dim * getByteSize(p.type);
  const HostTensor *pools[] = {&kernel.getKeys(), &kernel.getValues()};

  auto readItem = [&](int64_t item) {
    int64_t request = item / p.kvHeads, head = item % p.kvHeads;
    const int32_t *table = pages + request * perRequest;
    auto getRow = [&](const HostTensor *pool, int64_t i, int64_t slot) {
      int64_t page = table[i];
      return static_cast<const char *>(p.order == HeadOrder::HND
                                           ? pool->at({page, head, slot, 0})
                                           : pool->at({page, slot, head, 0}));
    };
    uint64_t sum = 0;
    for (int64_t i = 0; i < perRequest; ++i) {
      int64_t slots = std::min(p.page, p.keys - i * p.page);
      bool more = i + 1 < perRequest;
      for (const HostTensor *pool : pools) {
        // The rows of a head lie together: the hardware fetches them best.
        if (p.order == HeadOrder::HND) {
          sum += readBytes(getRow(pool, i, 0), slots * rowBytes, nullptr);
          continue;
        }
        for (int64_t slot = 0; slot < slots; ++slot)
          sum += readBytes(getRow(pool, i, slot), rowBytes,
                           more ? getRow(pool, i + 1, slot) : nullptr);
      }
    }
    return sum;
  };
  auto readPage = [&](int64_t index) {
    uint64_t sum = 0;
    for (const HostTensor *pool : pools)
      sum += readBytes(
          static_cast<const char *>(pool->at({pages[index], 0, 0, 0})),
          p.page * p.kvHeads * rowBytes, nullptr);
    return sum;
  };

  int64_t count = order == ReadOrder::Items ? p.requests * p.kvHeads
                                            : p.requests * perRequest;
  Timed result;
  result.work = p.getKVBytes();
  result.seconds = timeThreads(threads, [&](int thread) {
    uint64_t sum = 0;
    for (int64_t i = count * thread / threads;
         i < count * (thread + 1) / threads; ++i)
      sum += order == ReadOrder::Items ? readItem(i) : readPage(i);
    sink = float(sum);
  });
  return result;
}

} // namespace fi::bench
