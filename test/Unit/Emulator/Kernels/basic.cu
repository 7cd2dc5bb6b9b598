// basic.cu - reductions, scans, divergence, calls, atomics.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include <cstdint>
// Every kernel: (const uint32_t *in, uint32_t *out, uint32_t n).
#define KERNEL extern "C" __global__ void

KERNEL reduce_tree(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t s[256];
  uint32_t t = threadIdx.x, v = 0;
  for (uint32_t i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256)
    v += in[i];
  s[t] = v;
  __syncthreads();
  for (uint32_t d = 128; d; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}

KERNEL reduce_shuffle(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t s[8];
  uint32_t t = threadIdx.x, v = 0;
  for (uint32_t i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256)
    v ^= in[i];
  for (int d = 16; d; d /= 2)
    v ^= __shfl_xor_sync(~0u, v, d);
  if (t % 32 == 0)
    s[t / 32] = v;
  __syncthreads();
  if (t < 32) {
    v = t < 8 ? s[t] : 0;
    for (int d = 4; d; d /= 2)
      v ^= __shfl_down_sync(~0u, v, d);
    if (t == 0)
      out[blockIdx.x] = v;
  }
}

KERNEL scan_block(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t w[8];
  uint32_t i = blockIdx.x * 256 + threadIdx.x, l = threadIdx.x % 32;
  uint32_t v = i < n ? in[i] : 0;
  for (int d = 1; d < 32; d *= 2) {
    uint32_t u = __shfl_up_sync(~0u, v, d);
    if (l >= d)
      v += u;
  }
  if (l == 31)
    w[threadIdx.x / 32] = v;
  __syncthreads();
  uint32_t base = 0;
  for (uint32_t k = 0; k < threadIdx.x / 32; ++k)
    base += w[k];
  if (i < n)
    out[i] = v + base;
}

// 32x32 tiles of 4-byte elements, columns swizzled by the row.
KERNEL transpose_swizzle(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t s[32 * 32];
  uint32_t x = threadIdx.x, bx = blockIdx.x * 32, by = blockIdx.y * 32;
  for (uint32_t y = threadIdx.y; y < 32; y += 8)
    s[y * 32 + (x ^ y)] = in[(by + y) * n + bx + x];
  __syncthreads();
  for (uint32_t y = threadIdx.y; y < 32; y += 8)
    out[(bx + y) * n + by + x] = s[x * 32 + (y ^ x)];
}

KERNEL histogram(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t h[64];
  if (threadIdx.x < 64)
    h[threadIdx.x] = 0;
  __syncthreads();
  for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
    atomicAdd(&h[in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64)
    atomicAdd(&out[threadIdx.x], h[threadIdx.x]);
}

// The last block to arrive adds the partial sums in order. out: sum, counter (0
// before), partial sums.
KERNEL last_arriver(const uint32_t *in, uint32_t *out, uint32_t n) {
  __shared__ uint32_t s[256];
  __shared__ uint32_t last;
  uint32_t t = threadIdx.x, v = 0;
  for (uint32_t i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256)
    v += in[i] ^ (i * 2654435761u);
  s[t] = v;
  __syncthreads();
  for (uint32_t d = 128; d; d /= 2) {
    if (t < d)
      s[t] += s[t + d];
    __syncthreads();
  }
  volatile uint32_t *partial = out + 2;
  if (t == 0) {
    out[2 + blockIdx.x] = s[0];
    __threadfence();
    last = atomicAdd(&out[1], 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && t == 0) {
    uint32_t sum = 0;
    for (uint32_t b = 0; b < gridDim.x; ++b)
      sum = sum * 31 + partial[b];
    out[0] = sum;
    out[1] = 0;
  }
}

// Blocks wait for their predecessor: a chain through global memory.
KERNEL chained_blocks(const uint32_t *in, uint32_t *out, uint32_t n) {
  if (threadIdx.x != 0)
    return;
  uint32_t b = blockIdx.x;
  volatile uint32_t *flag = out + n;
  uint32_t before = 0;
  if (b) {
    while (flag[b - 1] == 0)
      ;
    __threadfence();
    before = out[b - 1];
  }
  out[b] = before * 3 + in[b];
  __threadfence();
  flag[b] = 1;
}

KERNEL divergent_loops(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t v = in[i] % 1000 + 1, steps = 0;
  while (v != 1 && steps < 300) {
    if (v % 2)
      v = 3 * v + 1;
    else
      v /= 2;
    ++steps;
    if (steps == 200)
      continue;
    if (v % 97 == 0)
      break;
  }
  uint32_t mask = __ballot_sync(__activemask(), v == 1);
  out[i] = steps * 1000 + v % 997 + (__popc(mask) & 0);
}

__device__ __noinline__ uint32_t mix(uint32_t a, uint32_t b) {
  a ^= b * 0x9e3779b9u;
  a = __funnelshift_l(a, a, 13);
  return a * 5 + 0xe6546b64u;
}
struct Pair {
  uint32_t a, b;
  uint64_t c;
};
__device__ __noinline__ Pair twice(Pair p, uint32_t k) {
  p.a = mix(p.a, k);
  p.b = mix(p.b, p.a);
  p.c += uint64_t(p.a) * p.b;
  return p;
}
KERNEL function_calls(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Pair p{in[i], i, 7};
  for (uint32_t k = 0; k < i % 5 + 1; ++k)
    p = twice(p, k);
  out[i] = p.a ^ p.b ^ uint32_t(p.c) ^ uint32_t(p.c >> 32);
}

KERNEL local_array(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t a[17];
  for (uint32_t k = 0; k < 17; ++k)
    a[k] = in[(i + k * 7) % n];
  // Insertion sort with indices that only the data knows.
  for (uint32_t k = 1; k < 17; ++k) {
    uint32_t v = a[k], j = k;
    while (j > 0 && a[j - 1] > v) {
      a[j] = a[j - 1];
      --j;
    }
    a[j] = v;
  }
  out[i] = a[8] + a[in[i] % 17];
}

KERNEL jump_table(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t v = in[i], r;
  switch (v % 9) {
  case 0: r = v * 3; break;
  case 1: r = v ^ 0x5555; break;
  case 2: r = __brev(v); break;
  case 3: r = __clz(v); break;
  case 4: r = __popc(v) * v; break;
  case 5: r = v >> 7 | v << 9; break;
  case 6: r = __ffs(v); break;
  case 7: r = v / 13; break;
  default: r = v % 1009;
  }
  out[i] = r;
}

KERNEL integer_mix(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  uint32_t a = in[i], b = in[(i + 1) % n], r = 0;
  int32_t sa = int32_t(a), sb = int32_t(b);
  r ^= __byte_perm(a, b, 0x5140 + (i & 3));
  r += __dp4a(sa, sb, int(i));
  r ^= __umulhi(a, b) + __mulhi(sa, sb);
  r += __funnelshift_r(a, b, i & 63);
  r ^= __usad(a, b, i);
  uint64_t q = (uint64_t(a) << 32 | b) / (uint64_t(b) % 1000 + 1);
  r += uint32_t(q) ^ uint32_t(q >> 32);
  r ^= uint32_t(int64_t(sa) * sb >> 20);
  r += sb ? uint32_t(sa / (sb | 1)) + uint32_t(sa % (sb | 1)) : 1;
  r ^= __vadd4(a, b) + __vmaxu2(a, b);
  r += (a & ~b) | i;
  out[i] = r;
}

KERNEL match_and_redux(const uint32_t *in, uint32_t *out, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t v = in[i] % 6;
  uint32_t same = __match_any_sync(~0u, v);
  uint32_t sum = __reduce_add_sync(~0u, in[i]);
  int32_t most = __reduce_max_sync(~0u, int32_t(in[i]));
  int pred;
  uint32_t all = __match_all_sync(~0u, v / 6, &pred);
  out[i] = __popc(same) * 1000003u + sum + uint32_t(most) + all * uint32_t(pred) +
           __any_sync(~0u, v == 5) + 2 * __all_sync(~0u, v < 6);
}
