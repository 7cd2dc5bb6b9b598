// tma.cu - mbarriers, bulk copies, tensor copies with all swizzles.
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include "hopper.h"

extern __shared__ __align__(1024) uint32_t mem[];

// A box as it lies in shared memory: `bytes` of it from `offset` on, in memory of
// 48 KiB that was filled with one number.
template <class Load>
__device__ void dump(uint32_t *out, int offset, int bytes, uint32_t fill, Load load) {
  __shared__ uint64_t bar;
  int t = threadIdx.x, n = 49152 / 4;
  for (int i = t; i < n; i += blockDim.x)
    mem[i] = fill;
  if (t == 0) {
    init(shared(&bar), 1);
    fenceInit();
  }
  fenceAsync();
  __syncthreads();
  if (t == 0) {
    expect(shared(&bar), bytes);
    load(shared(mem) + offset, shared(&bar));
  }
  wait(shared(&bar), 0);
  for (int i = t; i < n; i += blockDim.x)
    out[i] = mem[i];
}
KERNEL dump_1d(MAP m, uint32_t *out, int offset, int bytes, uint32_t fill, int a) {
  dump(out, offset, bytes, fill, [&](uint32_t d, uint32_t b) { load1(d, &m, b, a); });
}
KERNEL dump_2d(MAP m, uint32_t *out, int offset, int bytes, uint32_t fill, int a, int b) {
  dump(out, offset, bytes, fill, [&](uint32_t d, uint32_t bar) { load2(d, &m, bar, a, b); });
}
KERNEL dump_3d(MAP m, uint32_t *out, int offset, int bytes, uint32_t fill, int a, int b, int c) {
  dump(out, offset, bytes, fill, [&](uint32_t d, uint32_t bar) { load3(d, &m, bar, a, b, c); });
}
KERNEL dump_4d(MAP m, uint32_t *out, int offset, int bytes, uint32_t fill, int a, int b, int c,
               int e) {
  dump(out, offset, bytes, fill, [&](uint32_t d, uint32_t bar) { load4(d, &m, bar, a, b, c, e); });
}
KERNEL dump_5d(MAP m, uint32_t *out, int offset, int bytes, uint32_t fill, int a, int b, int c,
               int e, int f) {
  dump(out, offset, bytes, fill,
       [&](uint32_t d, uint32_t bar) { load5(d, &m, bar, a, b, c, e, f); });
}

// From tensor to tensor through shared memory, box by box: rows of 128 bytes,
// 32 rows, both swizzled by 128. Words are doubled on the way. Edges are cut.
KERNEL tensor_store(MAP from, MAP to, int rows) {
  __shared__ uint64_t bar;
  int t = threadIdx.x;
  if (t == 0) {
    init(shared(&bar), 1);
    fenceInit();
  }
  __syncthreads();
  for (int i = 0; i * 32 < rows; i++) {
    if (t == 0) {
      asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&from),
                   "r"(blockIdx.x * 32), "r"(i * 32 + 32)
                   : "memory");
      expect(shared(&bar), 4096);
      load2(shared(mem), &from, shared(&bar), blockIdx.x * 32, i * 32);
    }
    wait(shared(&bar), i & 1);
    for (int k = t; k < 1024; k += blockDim.x)
      mem[1024 + k] = mem[k] * 2;
    fenceAsync();
    __syncthreads();
    if (t == 0) {
      store2(&to, shared(mem) + 4096, blockIdx.x * 32, i * 32);
      commitBulk();
      waitBulkRead<0>();
    }
    __syncthreads();
  }
  if (t == 0)
    waitBulk<0>();
}

// A box from shared memory in which every word is another one.
KERNEL box_store(MAP to, int offset, int a, int b) {
  for (int i = threadIdx.x; i < 16384 / 4; i += blockDim.x)
    mem[i] = (i + 1) * 2654435761u;
  fenceAsync();
  __syncthreads();
  if (threadIdx.x == 0) {
    store2(&to, shared(mem) + offset, a, b);
    commitBulk();
    waitBulk<0>();
  }
}

// Adds tiles of floats to a tensor, all blocks to the same.
KERNEL tensor_reduce(MAP to, const float *in) {
  __shared__ __align__(128) float tile[32 * 16];
  int t = threadIdx.x;
  for (int k = t; k < 512; k += blockDim.x)
    tile[k] = in[blockIdx.x * 512 + k];
  fenceAsync();
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                 "[%0, {%2, %3}], [%1];" ::"l"(&to),
                 "r"(shared(tile)), "r"(0), "r"(0)
                 : "memory");
    commitBulk();
    waitBulk<0>();
  }
}

// Blocks of 1 KiB through a ring of four slots: a producer thread, three warps that
// read, and results that go back by bulk copies.
KERNEL bulk_ring(const uint32_t *in, uint32_t *out, int n) {
  __shared__ __align__(16) uint32_t slot[4][256], result[2][96 * 4];
  __shared__ uint64_t full[4], empty[4];
  int t = threadIdx.x, warp = t / 32;
  if (t == 0) {
    for (int i = 0; i < 4; i++) {
      init(shared(&full[i]), 1);
      init(shared(&empty[i]), 3);
    }
    fenceInit();
  }
  __syncthreads();
  if (warp == 3) {
    if (elected())
      for (int i = 0; i < n; i++) {
        int s = i % 4;
        wait(shared(&empty[s]), (i / 4 & 1) ^ 1);
        expect(shared(&full[s]), 1024);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], 1024, [%2];" ::"r"(shared(slot[s])),
                     "l"(in + i * 256), "r"(shared(&full[s]))
                     : "memory");
      }
    return;
  }
  for (int i = 0; i < n; i++) {
    int s = i % 4;
    wait(shared(&full[s]), i / 4 & 1);
    uint32_t v = 0;
    for (int k = 0; k < 256; k += 32)
      v = v * 5 + slot[s][(k + t) % 256];
    __syncwarp();
    if (t % 32 == 0)
      arrive(shared(&empty[s]));
    // Two results are written while the other two are on their way.
    if (t == 0)
      waitBulkRead<1>();
    asm volatile("bar.sync 1, 96;" ::: "memory");
    for (int k = 0; k < 4; k++)
      result[i & 1][t * 4 + k] = v + k;
    fenceAsync();
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + i * 384),
                   "r"(shared(result[i & 1])), "r"(1536)
                   : "memory");
      commitBulk();
    }
  }
  if (t == 0)
    waitBulk<0>();
}

// Bulk reductions of every block into one row: u32 add, f16 add, s32 min, b32 xor.
KERNEL bulk_reduce(const uint32_t *in, uint32_t *out) {
  __shared__ __align__(16) uint32_t rows[4][64];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += blockDim.x)
    rows[i / 64][i % 64] = in[blockIdx.x * 256 + i];
  fenceAsync();
  __syncthreads();
#define REDUCE(K, OP)                                                                         \
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." OP " [%0], [%1], 256;" ::"l"( \
                   out + K * 64),                                                             \
               "r"(shared(rows[K]))                                                            \
               : "memory")
  if (t == 0) {
    REDUCE(0, "add.u32");
    REDUCE(1, "add.noftz.f16");
    REDUCE(2, "min.s32");
    REDUCE(3, "xor.b32");
    commitBulk();
    waitBulk<0>();
  }
}

// States, tests, cp.async that arrives. 64 threads: the first warp fills two slots
// by turns, the second reads.
KERNEL mbarrier_states(const uint32_t *in, uint32_t *out, int n) {
  __shared__ __align__(16) uint32_t slot[2][128];
  __shared__ uint64_t full[2], empty[2];
  int t = threadIdx.x, lane = t % 32;
  if (t < 2) {
    init(shared(&full[t]), 32 + 32);
    init(shared(&empty[t]), 32);
  }
  __syncthreads();
  for (int i = 0; i < n; i++) {
    uint32_t f = shared(&full[i & 1]), e = shared(&empty[i & 1]);
    uint32_t *s = slot[i & 1];
    if (t < 32) {
      wait(e, (i / 2 & 1) ^ 1);
      // Half of a slot by cp.async, half by a store.
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared(&s[lane * 4])),
                   "l"(in + i * 128 + lane * 4));
      asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(f) : "memory");
      s[lane * 4 + 2] = in[i * 128 + lane * 4 + 2];
      s[lane * 4 + 3] = in[i * 128 + lane * 4 + 3];
      uint64_t state;
      asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(f) : "memory");
      uint32_t done = 0;
      while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(f), "l"(state)
                     : "memory");
    } else {
      wait(f, i / 2 & 1);
      uint32_t v = 0;
      for (int k = 0; k < 128; k++)
        v = v * 3 + (s[(k + lane) % 128] ^ k);
      out[i * 32 + lane] = v;
      arrive(e);
    }
  }
}

// A tensor map that the kernel makes from another: in shared memory, with another
// address, another height, a box of eight rows and no swizzle; then it is used.
KERNEL map_replace(MAP m, Map *global, const uint32_t *source, uint32_t *out) {
  __shared__ __align__(128) Map copy;
  __shared__ __align__(128) uint32_t tile[8 * 32];
  __shared__ uint64_t bar;
  int t = threadIdx.x;
  if (t < 16)
    copy.words[t] = m.words[t];
  if (t == 0) {
    init(shared(&bar), 1);
    fenceInit();
  }
  __syncthreads();
  if (t == 0) {
    uint32_t a = shared(&copy);
#define REPLACE(FIELD, TYPE, ...)                                                             \
  asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE " [%0], " __VA_ARGS__ \
               : "memory")
    REPLACE("global_address", "b64", "%1;" ::"r"(a), "l"(source));
    REPLACE("global_dim", "b32", "1, %1;" ::"r"(a), "r"(20));
    REPLACE("global_stride", "b64", "0, %1;" ::"r"(a), "l"(uint64_t(192)));
    REPLACE("box_dim", "b32", "1, %1;" ::"r"(a), "r"(8));
    REPLACE("element_stride", "b32", "1, %1;" ::"r"(a), "r"(1));
    REPLACE("swizzle_mode", "b32", "0;" ::"r"(a));
    REPLACE("fill_mode", "b32", "0;" ::"r"(a));
  }
  __syncthreads();
  if (t < 32)
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync."
                 "aligned [%0], [%1], 128;" ::"l"(global),
                 "r"(shared(&copy))
                 : "memory");
  if (t == 0) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(global) : "memory");
    expect(shared(&bar), 1024);
    load2(shared(tile), global, shared(&bar), 4, 15);
  }
  wait(shared(&bar), 0);
  for (int i = t; i < 256; i += blockDim.x)
    out[i] = tile[i];
}
