// numeric.cu - floating point, conversions, softmax.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
// Every kernel: (const uint32_t *in, uint32_t *out, uint32_t n).
#define KERNEL extern "C" __global__ void

KERNEL float_ops(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float a = __uint_as_float(in[i]), b = __uint_as_float(in[(i + 1) % n]);
  float c = __uint_as_float(in[(i + 2) % n]);
  float r[16] = {a + b, a * b, __fmaf_rn(a, b, c), __fadd_rz(a, b), __fmul_ru(a, b),
                 __fmaf_rd(a, b, c), __fdiv_rn(a, b), __fsqrt_rn(a), fminf(a, b),
                 fmaxf(a, c), __saturatef(a), __fsub_rn(b, c), __frcp_rn(a),
                 __fdiv_rz(a, c), fabsf(a), copysignf(b, c)};
  for (int k = 0; k < 16; ++k)
    out[k * n + i] = __float_as_uint(r[k]);
}

KERNEL double_ops(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double a = int(in[i]) * 0.37, b = int(in[(i + 1) % n]) * 1e-3 + 0.5;
  double r = __fma_rn(a, b, 1.0) + a / b - sqrt(fabs(a)) + __dadd_rz(a, b) * __dmul_ru(a, b);
  out[2 * i] = __double2loint(r);
  out[2 * i + 1] = __double2hiint(r);
}

KERNEL half_ops(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  auto bits = [](half2 v) { return *(uint32_t *)&v; };
  half2 a = *(const half2 *)&in[i], b = *(const half2 *)&in[(i + 1) % n];
  half2 c = *(const half2 *)&in[(i + 2) % n];
  half2 r[8] = {__hadd2(a, b), __hmul2(a, b), __hfma2(a, b, c), __hsub2(b, c),
                __hfma2_relu(a, b, c), __hmax2(a, b), __hmin2_nan(a, c), __hadd2_sat(a, c)};
  for (int k = 0; k < 8; ++k)
    out[k * n + i] = bits(r[k]);
  out[8 * n + i] = __hgt(a.x, b.x) | __heq(a.y, b.y) << 1 | __hneu(a.x, c.x) << 2;
}

KERNEL bfloat_ops(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  typedef __nv_bfloat162 T;
  auto bits = [](T v) { return *(uint32_t *)&v; };
  T a = *(const T *)&in[i], b = *(const T *)&in[(i + 1) % n], c = *(const T *)&in[(i + 2) % n];
  T r[4] = {__hfma2(a, b, c), __hmax2(a, b), __hadd2(a, b), __hmul2(b, c)};
  for (int k = 0; k < 4; ++k)
    out[k * n + i] = bits(r[k]);
}

KERNEL conversions(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t v = in[i];
  float f = __uint_as_float(v);
  half h = __ushort_as_half((unsigned short)v);
  uint32_t r[20] = {
      __half_as_ushort(__float2half_rn(f)),  __half_as_ushort(__float2half_rz(f)),
      __half_as_ushort(__float2half_ru(f)),  __half_as_ushort(__float2half_rd(f)),
      __bfloat16_as_ushort(__float2bfloat16_rn(f)),
      __bfloat16_as_ushort(__float2bfloat16_rz(f)),
      uint32_t(__float2int_rz(f)),           uint32_t(__float2int_rn(f)),
      __float2uint_ru(f),                    __float_as_uint(__int2float_rn(int(v))),
      __float_as_uint(__uint2float_rz(v)),   __float_as_uint(__half2float(h)),
      uint32_t(__half2int_rd(h)),            __half_as_ushort(__int2half_rn(int(v) >> 12)),
      __float_as_uint(rintf(f)),             __float_as_uint(floorf(f)),
      uint32_t(__float2ll_rz(f) >> 7),       uint32_t(__double2int_rn(double(f) * 1.5)),
      __float_as_uint(__ll2float_rn((long long)v * v)),
      __float_as_uint(__double2float_rd(double(int(v)) / 3))};
  for (int k = 0; k < 20; ++k)
    out[k * n + i] = r[k];
}

// Rows of 128, a warp a row. Approximations: compared with a tolerance.
KERNEL softmax_rows(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t l = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const float4 v = ((const float4 *)in)[row * 32 + l];
  float m = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
  for (int d = 16; d; d /= 2)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
  float4 e = make_float4(exp2f((v.x - m) * 1.44269504f), exp2f((v.y - m) * 1.44269504f),
                         __expf(v.z - m), __expf(v.w - m));
  float s = e.x + e.y + e.z + e.w;
  for (int d = 16; d; d /= 2)
    s += __shfl_xor_sync(~0u, s, d);
  float k = __frcp_rn(s);
  ((float4 *)out)[row * 32 + l] = make_float4(e.x * k, e.y * k, e.z * k, e.w * k);
}

// Approximate functions: compared with a tolerance.
KERNEL approximations(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float a = (in[i] >> 8) * 0x1p-22f + 0.01f, t;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(a));
  float r[6] = {__log2f(a), rsqrtf(a), __sinf(a), __cosf(a), t, __fdividef(a, a + 1)};
  for (int k = 0; k < 6; ++k)
    out[k * n + i] = __float_as_uint(r[k]);
}
