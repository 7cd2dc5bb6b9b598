//===- kernels.cu - A small package for GPUs, written by hand -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels by the GPU's ABI (docs/abi.md) for tests of the runtime on real and
// emulated devices: append, causal paged attention in f32 with split states, its
// merge, and a stage of rows. As plain as can be. scripts/make-gpu-test-data.sh
// makes kernels.ptx of it.
//
//===----------------------------------------------------------------------===//
#include "fi/ABI/KernelABI.h"

typedef int64_t i64;

// A buffer of rank r: pointer, sizes, strides; a parameter of 8 bytes each.
#define T1(type, name) type *name, i64 name##_n0, i64 name##_s0
#define T2(type, name)                                                         \
  type *name, i64 name##_n0, i64 name##_n1, i64 name##_s0, i64 name##_s1
#define T3(type, name)                                                         \
  type *name, i64 name##_n0, i64 name##_n1, i64 name##_n2, i64 name##_s0,      \
      i64 name##_s1, i64 name##_s2
#define T4(type, name)                                                         \
  type *name, i64 name##_n0, i64 name##_n1, i64 name##_n2, i64 name##_n3,      \
      i64 name##_s0, i64 name##_s1, i64 name##_s2, i64 name##_s3
#define TAIL                                                                   \
  const fi_item *items, const fi_key_range *ranges, float *state_o,            \
      float *state_lse, uint32_t *counters, i64 begin, i64 end

constexpr int dim = 64, page = 16, group = 4, lanes = 32;
constexpr int perLane = dim / lanes;

__device__ float warpSum(float x) {
  for (int mask = lanes / 2; mask; mask /= 2)
    x += __shfl_xor_sync(~0u, x, mask);
  return x;
}

/// New keys and values become the last ones of their request.
extern "C" __global__ void append(T3(const float, newk), T3(const float, newv),
                                  T4(float, k), T4(float, v),
                                  T1(const int, pages), TAIL) {
  for (i64 i = begin + blockIdx.x; i < end; i += gridDim.x) {
    const fi_item item = items[i];
    for (int at = threadIdx.x; at < item.row_count * dim; at += blockDim.x) {
      i64 token = item.row_begin + at / dim, d = at % dim;
      i64 key = item.kv_len - item.q_len + token;
      i64 p = pages[item.table_begin + key / page];
      i64 from = item.q_begin + token, h = item.kv_head;
      k[p * k_s0 + h * k_s1 + key % page * k_s2 + d] =
          newk[from * newk_s0 + h * newk_s1 + d];
      v[p * v_s0 + h * v_s1 + key % page * v_s2 + d] =
          newv[from * newv_s0 + h * newv_s1 + d];
    }
  }
}

/// Where a row's result goes: a state, or the outputs.
template <int tileRows>
__device__ void store(const fi_item &item, int row, const float *o, float lse,
                      float *out, i64 out_s0, i64 out_s1, float *out_lse,
                      i64 out_lse_s0, i64 out_lse_s1, float *state_o,
                      float *state_lse, bool toState) {
  int lane = threadIdx.x % lanes;
  i64 packed = item.row_begin + row;
  i64 token = item.q_begin + packed / group;
  i64 head = item.kv_head * group + packed % group;
  i64 slot = i64(item.slot) * tileRows + row;
  float *to = toState ? state_o + slot * dim
                      : out + token * out_s0 + head * out_s1;
  for (int j = 0; j < perLane; ++j)
    to[lane * perLane + j] = o[j];
  if (lane == 0)
    *(toState ? state_lse + slot
              : out_lse + token * out_lse_s0 + head * out_lse_s1) = lse;
}

/// A warp for each row, a lane for every two elements, one key at a time.
template <int tileRows>
__device__ void attend(T3(const float, q), T4(const float, k),
                       T4(const float, v), T1(const int, pages),
                       T3(float, out), T2(float, out_lse), TAIL) {
  int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  for (i64 i = begin + blockIdx.x; i < end; i += gridDim.x) {
    const fi_item item = items[i];
    for (int row = warp; row < item.row_count; row += blockDim.x / lanes) {
      i64 packed = item.row_begin + row;
      i64 token = packed / group, h = item.kv_head;
      i64 head = h * group + packed % group;
      // Rows are causal by their position among the keys.
      i64 last = item.kv_len - item.q_len + token;
      float query[perLane], o[perLane] = {};
      for (int j = 0; j < perLane; ++j)
        query[j] = q[(item.q_begin + token) * q_s0 + head * q_s1 +
                     lane * perLane + j];
      float most = -INFINITY, sum = 0;
      int count = item.full_ranges + item.partial_ranges;
      for (int r = 0; r < count; ++r) {
        fi_key_range range = ranges[item.range_begin + r];
        for (i64 key = range.begin; key < range.end; ++key) {
          if (key > last)
            break;
          i64 at = pages[item.table_begin + key / page];
          const float *kRow = k + at * k_s0 + h * k_s1 + key % page * k_s2;
          const float *vRow = v + at * v_s0 + h * v_s1 + key % page * v_s2;
          float score = 0;
          for (int j = 0; j < perLane; ++j)
            score += query[j] * kRow[lane * perLane + j];
          // In base 2, 1 / sqrt(64) in it.
          score = warpSum(score) * 0.125f * 1.44269504f;
          float next = fmaxf(most, score);
          float keep = exp2f(most - next), weight = exp2f(score - next);
          for (int j = 0; j < perLane; ++j)
            o[j] = o[j] * keep + weight * vRow[lane * perLane + j];
          sum = sum * keep + weight;
          most = next;
        }
      }
      for (int j = 0; j < perLane; ++j)
        o[j] = sum > 0 ? o[j] / sum : 0;
      float lse = sum > 0 ? most + log2f(sum) : -INFINITY;
      store<tileRows>(item, row, o, lse, out, out_s0, out_s1, out_lse,
                      out_lse_s0, out_lse_s1, state_o, state_lse,
                      item.slot >= 0);
    }
  }
}

/// Folds consecutive slots in their order.
template <int tileRows>
__device__ void mergeSlots(T3(float, out), T2(float, out_lse), TAIL) {
  int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  for (i64 i = begin + blockIdx.x; i < end; i += gridDim.x) {
    const fi_item item = items[i];
    for (int row = warp; row < item.row_count; row += blockDim.x / lanes) {
      float most = -INFINITY, sum = 0, o[perLane] = {};
      for (int s = 0; s < item.slot_count; ++s) {
        i64 slot = i64(item.slot + s) * tileRows + row;
        float lse = state_lse[slot];
        if (lse == -INFINITY)
          continue;
        float next = fmaxf(most, lse);
        float keep = exp2f(most - next), weight = exp2f(lse - next);
        for (int j = 0; j < perLane; ++j)
          o[j] =
              o[j] * keep + weight * state_o[slot * dim + lane * perLane + j];
        sum = sum * keep + weight;
        most = next;
      }
      for (int j = 0; j < perLane; ++j)
        o[j] = sum > 0 ? o[j] / sum : 0;
      float lse = sum > 0 ? most + log2f(sum) : -INFINITY;
      store<tileRows>(item, row, o, lse, out, out_s0, out_s1, out_lse,
                      out_lse_s0, out_lse_s1, state_o, state_lse, false);
    }
  }
}

#define BUFFERS                                                                \
  T3(const float, q), T4(const float, k), T4(const float, v),                  \
      T1(const int, pages), T3(float, out), T2(float, out_lse)
#define TAIL_NAMES items, ranges, state_o, state_lse, counters, begin, end
#define OUT_NAMES                                                              \
  out, out_n0, out_n1, out_n2, out_s0, out_s1, out_s2, out_lse, out_lse_n0,    \
      out_lse_n1, out_lse_s0, out_lse_s1
#define ALL_NAMES                                                              \
  q, q_n0, q_n1, q_n2, q_s0, q_s1, q_s2, k, k_n0, k_n1, k_n2, k_n3, k_s0,      \
      k_s1, k_s2, k_s3, v, v_n0, v_n1, v_n2, v_n3, v_s0, v_s1, v_s2, v_s3,     \
      pages, pages_n0, pages_s0, OUT_NAMES

extern "C" __global__ void decode(BUFFERS, TAIL) {
  attend<4>(ALL_NAMES, TAIL_NAMES);
}
extern "C" __global__ void prefill(BUFFERS, TAIL) {
  attend<32>(ALL_NAMES, TAIL_NAMES);
}
extern "C" __global__ void merge_decode(BUFFERS, TAIL) {
  mergeSlots<4>(OUT_NAMES, TAIL_NAMES);
}
extern "C" __global__ void merge_prefill(BUFFERS, TAIL) {
  mergeSlots<32>(OUT_NAMES, TAIL_NAMES);
}

/// result = states * factor, by rows and heads; through shared memory, so that a
/// launch that opts in for much of it is among the tests.
extern "C" __global__ void scale(T3(const float, states), i64 factorBits,
                                 T3(float, result), TAIL) {
  extern __shared__ float row[];
  float factor = __int_as_float(int(factorBits));
  for (i64 i = begin + blockIdx.x; i < end; i += gridDim.x) {
    const fi_item item = items[i];
    for (int at = threadIdx.x; at < item.row_count * dim; at += blockDim.x) {
      i64 r = item.row_begin + at / dim, d = at % dim, h = item.kv_head;
      row[at] = states[r * states_s0 + h * states_s1 + d];
      result[r * result_s0 + h * result_s1 + d] = row[at] * factor;
    }
  }
}
