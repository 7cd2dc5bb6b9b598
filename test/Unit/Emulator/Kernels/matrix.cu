// matrix.cu - products on tensor cores, ldmatrix, cp.async, named barriers.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#define KERNEL extern "C" __global__ void

__device__ __forceinline__ uint32_t shared(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void copy16(void *d, const void *s) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared(d)), "l"(s));
}
__device__ __forceinline__ void copy16z(void *d, const void *s, int n) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared(d)), "l"(s),
               "r"(n));
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N));
}
__device__ __forceinline__ void load4(uint32_t *r, uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(a));
}
__device__ __forceinline__ void load2t(uint32_t *r, uint32_t a) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(a));
}
#define MMA(NAME, TEXT)                                                              \
  __device__ __forceinline__ void NAME(float *d, const uint32_t *a, const uint32_t *b) { \
    asm volatile(TEXT " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"          \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  }
MMA(mmaF16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MMA(mmaBf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MMA(mmaTf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")

// C[M,N] = A[M,K] B[K,N]; tiles of 64x64x32, 128 threads, two stages of cp.async.
template <class T, class Mma>
__device__ void gemm(const T *A, const T *B, float *C, int M, int N, int K, Mma mma) {
  extern __shared__ __align__(16) char smem[];
  T *sa = (T *)smem, *sb = sa + 2 * 64 * 40;
  int t = threadIdx.x, w = t / 32, l = t % 32, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
  float acc[2][4][4] = {};
  auto load = [&](int s, int k0) {
    for (int i = t; i < 256; i += 128) {
      int r = i / 4, c = i % 4 * 8;
      copy16(sa + s * 64 * 40 + r * 40 + c, A + (size_t)(m0 + r) * K + k0 + c);
    }
    for (int i = t; i < 256; i += 128) {
      int r = i / 8, c = i % 8 * 8;
      copy16(sb + s * 32 * 72 + r * 72 + c, B + (size_t)(k0 + r) * N + n0 + c);
    }
    commit();
  };
  load(0, 0);
  int n = K / 32;
  for (int i = 0; i < n; i++) {
    if (i + 1 < n) {
      load((i + 1) & 1, (i + 1) * 32);
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();
    const T *a = sa + (i & 1) * 64 * 40, *b = sb + (i & 1) * 32 * 72;
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t ra[2][4], rb[4][2];
      for (int mi = 0; mi < 2; mi++)
        load4(ra[mi], shared(a + ((w / 2) * 32 + mi * 16 + l % 16) * 40 + kk + l / 16 * 8));
      for (int ni = 0; ni < 4; ni++)
        load2t(rb[ni], shared(b + (kk + l % 16) * 72 + (w % 2) * 32 + ni * 8));
      for (int mi = 0; mi < 2; mi++)
        for (int ni = 0; ni < 4; ni++)
          mma(acc[mi][ni], ra[mi], rb[ni]);
    }
    __syncthreads();
  }
  for (int mi = 0; mi < 2; mi++)
    for (int ni = 0; ni < 4; ni++) {
      int r = m0 + (w / 2) * 32 + mi * 16 + l / 4, c = n0 + (w % 2) * 32 + ni * 8 + l % 4 * 2;
      *(float2 *)(C + (size_t)r * N + c) = make_float2(acc[mi][ni][0], acc[mi][ni][1]);
      *(float2 *)(C + (size_t)(r + 8) * N + c) = make_float2(acc[mi][ni][2], acc[mi][ni][3]);
    }
}
KERNEL gemm_f16(const half *A, const half *B, float *C, int M, int N, int K) {
  gemm(A, B, C, M, N, K, mmaF16);
}
KERNEL gemm_bf16(const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N,
                 int K) {
  gemm(A, B, C, M, N, K, mmaBf16);
}

// One warp a 16x8 tile, straight from global memory.
KERNEL gemm_tf32(const float *A, const float *B, float *C, int M, int N, int K) {
  int l = threadIdx.x, g = l / 4, t = l % 4, m0 = blockIdx.y * 16, n0 = blockIdx.x * 8;
  float acc[4] = {};
  for (int k = 0; k < K; k += 8) {
    uint32_t a[4], b[2];
    auto tf = [](float v) {
      uint32_t r;
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
      return r;
    };
    a[0] = tf(A[(m0 + g) * K + k + t]);
    a[1] = tf(A[(m0 + g + 8) * K + k + t]);
    a[2] = tf(A[(m0 + g) * K + k + t + 4]);
    a[3] = tf(A[(m0 + g + 8) * K + k + t + 4]);
    b[0] = tf(B[(k + t) * N + n0 + g]);
    b[1] = tf(B[(k + t + 4) * N + n0 + g]);
    mmaTf32(acc, a, b);
  }
  C[(m0 + g) * N + n0 + t * 2] = acc[0];
  C[(m0 + g) * N + n0 + t * 2 + 1] = acc[1];
  C[(m0 + g + 8) * N + n0 + t * 2] = acc[2];
  C[(m0 + g + 8) * N + n0 + t * 2 + 1] = acc[3];
}

// A[M,K] and B[N,K] of bytes.
KERNEL gemm_s8(const int8_t *A, const int8_t *B, int *C, int M, int N, int K) {
  int l = threadIdx.x, g = l / 4, t = l % 4, m0 = blockIdx.y * 16, n0 = blockIdx.x * 8;
  int acc[4] = {};
  for (int k = 0; k < K; k += 32) {
    uint32_t a[4], b[2];
    a[0] = *(const uint32_t *)(A + (m0 + g) * K + k + t * 4);
    a[1] = *(const uint32_t *)(A + (m0 + g + 8) * K + k + t * 4);
    a[2] = *(const uint32_t *)(A + (m0 + g) * K + k + t * 4 + 16);
    a[3] = *(const uint32_t *)(A + (m0 + g + 8) * K + k + t * 4 + 16);
    b[0] = *(const uint32_t *)(B + (n0 + g) * K + k + t * 4);
    b[1] = *(const uint32_t *)(B + (n0 + g) * K + k + t * 4 + 16);
    asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  C[(m0 + g) * N + n0 + t * 2] = acc[0];
  C[(m0 + g) * N + n0 + t * 2 + 1] = acc[1];
  C[(m0 + g + 8) * N + n0 + t * 2] = acc[2];
  C[(m0 + g + 8) * N + n0 + t * 2 + 1] = acc[3];
}

// What ldmatrix gives each lane, plain and transposed: out[12 * 32].
KERNEL ldmatrix_layout(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ __align__(16) uint32_t s[32 * 4];
  int l = threadIdx.x;
  for (int k = 0; k < 4; ++k)
    s[l * 4 + k] = in[l * 4 + k];
  __syncwarp();
  uint32_t r[4];
  load4(r, shared(s + l * 4));
  for (int k = 0; k < 4; ++k)
    out[k * 32 + l] = r[k];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared(s + (l ^ 5) * 4)));
  for (int k = 0; k < 4; ++k)
    out[(4 + k) * 32 + l] = r[k];
  load2t(r, shared(s + (l % 16) * 4));
  out[8 * 32 + l] = r[0];
  out[9 * 32 + l] = r[1];
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared(s + (l % 8) * 4)));
  out[10 * 32 + l] = r[0];
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[1]) : "r"(r[0]));
  out[11 * 32 + l] = r[1];
}

// Four stages of 16-byte copies; rows past n are filled with zeros.
KERNEL async_pipeline(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ __align__(16) uint4 s[4][64];
  uint32_t t = threadIdx.x, steps = (n + 255) / 256;
  auto issue = [&](uint32_t step) {
    if (step < steps) {
      uint32_t at = step * 256 + t * 4;
      int bytes = at >= n ? 0 : n - at >= 4 ? 16 : int(n - at) * 4;
      copy16z(&s[step % 4][t], in + (at < n ? at : 0), bytes);
    }
    commit();
  };
  for (uint32_t k = 0; k < 3; ++k)
    issue(k);
  uint32_t sum = 0;
  for (uint32_t k = 0; k < steps; ++k) {
    wait<2>();
    __syncthreads();
    uint4 v = s[k % 4][(t * 5 + k) % 64];
    sum = sum * 3 + (v.x ^ v.y ^ v.z ^ v.w);
    issue(k + 3);
  }
  out[blockIdx.x * 64 + t] = sum;
}

// Warps 0-1 produce, warps 2-3 consume, two slots, named barriers.
KERNEL named_barriers(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t s[2][64];
  uint32_t t = threadIdx.x, steps = n / 64;
  if (t < 64) {
    for (uint32_t k = 0; k < steps; ++k) {
      uint32_t slot = k & 1;
      if (k >= 2)
        asm volatile("bar.sync %0, 128;" ::"r"(3 + slot) : "memory");
      s[slot][t] = in[k * 64 + t] * 3 + 1;
      __threadfence_block();
      asm volatile("bar.arrive %0, 128;" ::"r"(1 + slot) : "memory");
    }
  } else {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < steps; ++k) {
      uint32_t slot = k & 1;
      asm volatile("bar.sync %0, 128;" ::"r"(1 + slot) : "memory");
      sum += s[slot][(t + k) % 64];
      if (k + 2 < steps)
        asm volatile("bar.arrive %0, 128;" ::"r"(3 + slot) : "memory");
    }
    out[t - 64] = sum;
  }
}
