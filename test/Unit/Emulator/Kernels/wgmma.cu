// wgmma.cu - products of warpgroups: layouts of matrices, types, rings of stages,
// roles with setmaxnreg.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include "hopper.h"

extern __shared__ __align__(1024) uint32_t mem[];

__device__ __forceinline__ void fenceW() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commitW() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ __forceinline__ void waitW() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// A descriptor without the address.
__device__ __forceinline__ uint64_t descriptor(uint32_t address, uint64_t rest) {
  return rest | ((address & 0x3ffff) >> 4);
}
constexpr uint64_t by128 = uint64_t(1) << 62 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 16;

#define R8(X, B)                                                                               \
  X(d[B]), X(d[B + 1]), X(d[B + 2]), X(d[B + 3]), X(d[B + 4]), X(d[B + 5]), X(d[B + 6]),       \
      X(d[B + 7])
#define R32(X) R8(X, 0), R8(X, 8), R8(X, 16), R8(X, 24)
#define R64(X, B)                                                                              \
  R8(X, B), R8(X, B + 8), R8(X, B + 16), R8(X, B + 24), R8(X, B + 32), R8(X, B + 40),          \
      R8(X, B + 48), R8(X, B + 56)
#define F(V) "+f"(V)
#define I(V) "+r"(V)
#define D16 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define D32                                                                                    \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"   \
  "%24,%25,%26,%27,%28,%29,%30,%31}"

// One product of m64n64 from memory as it was given: `bytes` words at 1 KiB.
// `count` results for each thread, which start as 1.
#define PROBE(NAME, TYPE, COUNT, CONSTRAINTS, ASM)                                             \
  KERNEL NAME(const uint32_t *in, uint32_t *out, int words, int offsetB, uint32_t lowA,        \
              uint32_t highA, uint32_t lowB, uint32_t highB, int scale) {                      \
        int t = threadIdx.x;                                                                       \
    for (int i = t; i < words; i += blockDim.x)                                                \
      mem[i] = in[i];                                                                          \
    fenceAsync();                                                                              \
    __syncthreads();                                                                           \
    TYPE d[COUNT];                                                                             \
    for (int i = 0; i < COUNT; i++)                                                            \
      d[i] = TYPE(in[words + i % 4]);                                                          \
    uint64_t a = descriptor(shared(mem), uint64_t(highA) << 32 | lowA);                        \
    uint64_t b = descriptor(shared(mem) + offsetB, uint64_t(highB) << 32 | lowB);              \
    asm volatile(ASM : CONSTRAINTS : "l"(a), "l"(b), "r"(scale) : "memory");                   \
    commitW();                                                                                 \
    waitW<0>();                                                                                \
    for (int i = 0; i < COUNT; i++)                                                            \
      out[t * COUNT + i] = bitsOf(d[i]);                                                       \
  }
__device__ __forceinline__ uint32_t bitsOf(float v) { return __float_as_uint(v); }
__device__ __forceinline__ uint32_t bitsOf(uint32_t v) { return v; }
#define PRODUCT(FORM, D, A, B, P, REST)                                                        \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.fence.sync.aligned;\n"                     \
  "wgmma.mma_async.sync.aligned." FORM " " D ", " A ", " B ", p" REST ";\n}"
#define FLOATS(NAME, FORM, REST)                                                               \
  PROBE(NAME, float, 32, R32(F), PRODUCT(FORM, D32, "%32", "%33", "%34", REST))
#define INTS(NAME, FORM)                                                                       \
  PROBE(NAME, uint32_t, 32, R32(I), PRODUCT(FORM, D32, "%32", "%33", "%34", ""))
#define HALVES(NAME, FORM, REST)                                                               \
  PROBE(NAME, uint32_t, 16, R8(I, 0) COMMA R8(I, 8),                                           \
        PRODUCT(FORM, D16, "%16", "%17", "%18", REST))
#define COMMA ,
FLOATS(probe_f16_kk, "m64n64k16.f32.f16.f16", ", 1, 1, 0, 0")
FLOATS(probe_f16_km, "m64n64k16.f32.f16.f16", ", 1, -1, 0, 1")
FLOATS(probe_f16_mk, "m64n64k16.f32.f16.f16", ", -1, 1, 1, 0")
FLOATS(probe_f16_mm, "m64n64k16.f32.f16.f16", ", 1, 1, 1, 1")
FLOATS(probe_bf16_kk, "m64n64k16.f32.bf16.bf16", ", 1, 1, 0, 0")
FLOATS(probe_tf32, "m64n64k8.f32.tf32.tf32", ", 1, 1")
FLOATS(probe_e4m3, "m64n64k32.f32.e4m3.e4m3", ", 1, 1")
FLOATS(probe_e5m2_e4m3, "m64n64k32.f32.e5m2.e4m3", ", 1, 1")
HALVES(probe_f16_f16, "m64n64k16.f16.f16.f16", ", 1, 1, 0, 0")
HALVES(probe_e4m3_f16, "m64n64k32.f16.e4m3.e5m2", ", 1, 1")
INTS(probe_s8, "m64n64k32.s32.s8.s8")
INTS(probe_u8_s8, "m64n64k32.satfinite.s32.u8.s8")

// A in registers, as each thread has it.
KERNEL probe_registers(const uint32_t *in, uint32_t *out, int words) {
  int t = threadIdx.x;
  for (int i = t; i < words; i += blockDim.x)
    mem[i] = in[i];
  fenceAsync();
  __syncthreads();
  float d[32];
  const uint32_t *a = in + words + t * 4;
  uint32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  uint64_t b = descriptor(shared(mem), by128);
  asm volatile(PRODUCT("m64n64k16.f32.f16.f16", D32, "{%32,%33,%34,%35}", "%36", "%37",
                       ", 1, 1, 0")
               : R32(F)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(0)
               : "memory");
  commitW();
  waitW<0>();
  for (int i = 0; i < 32; i++)
    out[t * 32 + i] = bitsOf(d[i]);
}

__device__ __forceinline__ void product128(float *d, uint64_t a, uint64_t b, int scale) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
      "%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,"
      "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, "
      "1, 0, 1;\n}"
      : R64(F, 0)
      : "l"(a), "l"(b), "r"(scale)
      : "memory");
}

// C[M,N] = A[M,K] B[K,N] in f16: tiles of 64 x 128 x 64, a ring of `stages` that
// one thread fills, one warpgroup. A along k, B across. N and K are multiples of
// 64; tails in M are cut.
KERNEL __launch_bounds__(128, 1)
    gemm_ring(MAP ma, MAP mb, float *c, int m, int n, int k, int stages) {
  __shared__ uint64_t full[4];
  int t = threadIdx.x, m0 = blockIdx.y * 64, n0 = blockIdx.x * 128, steps = k / 64;
  if (t == 0) {
    for (int i = 0; i < stages; i++)
      init(shared(&full[i]), 1);
    fenceInit();
  }
  __syncthreads();
  auto load = [&](int i) {
    uint32_t s = shared(mem) + i % stages * 24576, bar = shared(&full[i % stages]);
    expect(bar, 24576);
    load2(s, &ma, bar, i * 64, m0);
    load2(s + 8192, &mb, bar, n0, i * 64);
    load2(s + 16384, &mb, bar, n0 + 64, i * 64);
  };
  if (t == 0)
    for (int i = 0; i < stages - 1 && i < steps; i++)
      load(i);
  float d[64];
  for (int i = 0; i < steps; i++) {
    wait(shared(&full[i % stages]), i / stages & 1);
    uint32_t s = shared(mem) + i % stages * 24576;
    uint64_t a = descriptor(s, by128);
    // Rows of k, 64 columns of n in 128 bytes; the other 64 lie 8 KiB on.
    uint64_t b = descriptor(s + 8192, uint64_t(1) << 62 | uint64_t(1024 >> 4) << 32 |
                                          uint64_t(8192 >> 4) << 16);
    fenceW();
    for (int q = 0; q < 4; q++)
      product128(d, a + q * 2, b + q * 128, i + q);
    commitW();
    // The product before this one is done: its slot is free.
    waitW<1>();
    __syncthreads();
    if (t == 0 && i + stages - 1 < steps)
      load(i + stages - 1);
  }
  waitW<0>();
  for (int i = 0; i < 64; i++) {
    int row = m0 + t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8;
    int column = n0 + i / 4 * 8 + t % 4 * 2 + (i & 1);
    if (row < m)
      c[row * n + column] = d[i];
  }
}

// The same with roles: a producer warpgroup that gives its registers away, two
// that multiply, tiles of 128 x 128, stages of 64; blocks go from tile to tile.
// Results leave as f16 through shared memory and a tensor store.
KERNEL __launch_bounds__(384, 1) gemm_roles(MAP ma, MAP mb, MAP mc, int m, int n, int k) {
  __shared__ uint64_t full[3], empty[3];
  constexpr int stages = 3, stage = 32768, output = stages * stage;
  int t = threadIdx.x, group = t / 128, steps = k / 64;
  int columns = n / 128, tiles = (m + 127) / 128 * columns;
  if (t == 0) {
    for (int i = 0; i < stages; i++) {
      init(shared(&full[i]), 1);
      init(shared(&empty[i]), 2);
    }
    fenceInit();
  }
  __syncthreads();
  int step = 0;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (t / 32 == 0 && elected())
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        for (int i = 0; i < steps; i++, step++) {
          int s = step % stages;
          uint32_t to = shared(mem) + s * stage, bar = shared(&full[s]);
          wait(shared(&empty[s]), (step / stages & 1) ^ 1);
          expect(bar, stage);
          load2(to, &ma, bar, i * 64, tile / columns * 128);
          load2(to + 16384, &mb, bar, tile % columns * 128, i * 64);
          load2(to + 24576, &mb, bar, tile % columns * 128 + 64, i * 64);
        }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
  int w = group - 1, u = t % 128;
  float d[64];
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    for (int i = 0; i < steps; i++, step++) {
      int s = step % stages;
      uint32_t from = shared(mem) + s * stage;
      wait(shared(&full[s]), step / stages & 1);
      uint64_t a = descriptor(from + w * 8192, by128);
      uint64_t b = descriptor(from + 16384, uint64_t(1) << 62 | uint64_t(1024 >> 4) << 32 |
                                                uint64_t(8192 >> 4) << 16);
      fenceW();
      for (int q = 0; q < 4; q++)
        product128(d, a + q * 2, b + q * 128, i + q);
      commitW();
      waitW<0>();
      if (u == 0)
        arrive(shared(&empty[s]));
    }
    // 64 rows of the group, two halves of 64 columns, each swizzled by 128.
    uint32_t out = shared(mem) + output + w * 16384;
    if (u == 0)
      waitBulkRead<0>();
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
    for (int i = 0; i < 64; i += 8) {
      uint32_t r[4];
      for (int q = 0; q < 4; q++)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r[q]) : "f"(d[i + 2 * q + 1]), "f"(d[i + 2 * q]));
      // r: rows 0-7 and 8-15 of eight columns, then of the next eight.
      int row = u / 32 * 16 + u % 16, chunk = i / 4 + u % 32 / 16;
      uint32_t at = out + chunk / 8 * 8192 + row * 128 + ((chunk % 8 ^ row % 8) << 4);
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(at),
                   "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
                   : "memory");
    }
    fenceAsync();
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
    if (u == 0) {
      int row = tile / columns * 128 + w * 64, column = tile % columns * 128;
      store2(&mc, out, column, row);
      store2(&mc, out + 8192, column + 64, row);
      commitBulk();
    }
  }
  if (u == 0)
    waitBulk<0>();
}
