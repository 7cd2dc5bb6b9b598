// hopper.h - what the kernels for sm_90a share: mbarriers, TMA, fences.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include <cstdint>
#define KERNEL extern "C" __global__ void

// A tensor map as the driver makes it; opaque, and no header of the driver.
struct __align__(64) Map {
  uint64_t words[16];
};
#define MAP const __grid_constant__ Map

__device__ __forceinline__ uint32_t shared(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar),
               "r"(count));
}
__device__ __forceinline__ void fenceInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void expect(uint32_t bar, uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
      "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar)
               : "memory");
}
__device__ __forceinline__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nAGAIN:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(bar),
               "r"(parity)
               : "memory");
}
__device__ __forceinline__ void fenceAsync() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void load1(uint32_t d, const void *m, uint32_t bar,
                                      int a) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes "
               "[%0], [%1, {%3}], [%2];" ::"r"(d),
               "l"(m), "r"(bar), "r"(a)
               : "memory");
}
__device__ __forceinline__ void load2(uint32_t d, const void *m, uint32_t bar,
                                      int a, int b) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes "
               "[%0], [%1, {%3, %4}], [%2];" ::"r"(d),
               "l"(m), "r"(bar), "r"(a), "r"(b)
               : "memory");
}
__device__ __forceinline__ void load3(uint32_t d, const void *m, uint32_t bar,
                                      int a, int b, int c) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(d),
               "l"(m), "r"(bar), "r"(a), "r"(b), "r"(c)
               : "memory");
}
__device__ __forceinline__ void load4(uint32_t d, const void *m, uint32_t bar,
                                      int a, int b, int c, int e) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(d),
               "l"(m), "r"(bar), "r"(a), "r"(b), "r"(c), "r"(e)
               : "memory");
}
__device__ __forceinline__ void load5(uint32_t d, const void *m, uint32_t bar,
                                      int a, int b, int c, int e, int f) {
  asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(d),
               "l"(m), "r"(bar), "r"(a), "r"(b), "r"(c), "r"(e), "r"(f)
               : "memory");
}
__device__ __forceinline__ void store2(const void *m, uint32_t s, int a,
                                       int b) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
               "[%0, {%2, %3}], [%1];" ::"l"(m),
               "r"(s), "r"(a), "r"(b)
               : "memory");
}
__device__ __forceinline__ void commitBulk() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N> __device__ __forceinline__ void waitBulk() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N> __device__ __forceinline__ void waitBulkRead() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
__device__ __forceinline__ bool elected() {
  uint32_t p;
  asm volatile("{\n.reg .pred q;\nelect.sync _|q, -1;\nselp.b32 %0, 1, 0, q;\n}"
               : "=r"(p));
  return p;
}
