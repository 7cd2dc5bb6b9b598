//===- BasicCases.cpp - References of basic.cu ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <algorithm>

namespace fi::emulator::test {
namespace {

KernelCase make(const char *kernel, Dim3 grid, Dim3 block, Words in,
                size_t outWords, uint32_t n, Words expected) {
  KernelCase c;
  c.module = "basic";
  c.kernel = kernel;
  c.grid = grid;
  c.block = block;
  c.arguments = {input(std::move(in)), output(outWords), scalar(n)};
  c.expected = std::move(expected);
  return c;
}

uint32_t popc(uint32_t v) { return uint32_t(__builtin_popcount(v)); }
uint32_t reverse(uint32_t v) {
  uint32_t r = 0;
  for (int i = 0; i < 32; ++i)
    r |= (v >> i & 1) << (31 - i);
  return r;
}
uint32_t mix(uint32_t a, uint32_t b) {
  a ^= b * 0x9e3779b9u;
  a = a << 13 | a >> 19;
  return a * 5 + 0xe6546b64u;
}
uint32_t bytePerm(uint32_t a, uint32_t b, uint32_t s) {
  uint64_t v = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (int k = 0; k < 4; ++k) {
    uint32_t n = s >> (4 * k) & 15;
    uint32_t byte = uint32_t(v >> (8 * (n & 7))) & 255;
    r |= (n & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * k);
  }
  return r;
}
uint32_t integerMix(const Words &in, uint32_t i) {
  uint32_t n = uint32_t(in.size()), a = in[i], b = in[(i + 1) % n], r = 0;
  int32_t sa = int32_t(a), sb = int32_t(b);
  r ^= bytePerm(a, b, 0x5140 + (i & 3));
  uint32_t dp = i;
  for (int k = 0; k < 4; ++k)
    dp += uint32_t(int8_t(a >> (8 * k)) * int8_t(b >> (8 * k)));
  r += dp;
  r ^= uint32_t(uint64_t(a) * b >> 32) + uint32_t((int64_t(sa) * sb) >> 32);
  r += uint32_t((uint64_t(b) << 32 | a) >> (i & 31));
  r ^= (a > b ? a - b : b - a) + i;
  uint64_t q = (uint64_t(a) << 32 | b) / (uint64_t(b) % 1000 + 1);
  r += uint32_t(q) ^ uint32_t(q >> 32);
  r ^= uint32_t(int64_t(sa) * sb >> 20);
  r += sb ? uint32_t(sa / (sb | 1)) + uint32_t(sa % (sb | 1)) : 1;
  uint32_t add = 0, max = 0;
  for (int k = 0; k < 4; ++k)
    add |= (((a >> (8 * k)) + (b >> (8 * k))) & 255) << (8 * k);
  for (int k = 0; k < 2; ++k)
    max |= std::max(a >> (16 * k) & 0xffff, b >> (16 * k) & 0xffff) << (16 * k);
  r ^= add + max;
  r += (a & ~b) | i;
  return r;
}

} // namespace

std::vector<KernelCase> basicCases() {
  std::vector<KernelCase> cases;
  Numbers numbers(1);
  {
    uint32_t n = 3000;
    Words in = numbers.words(n), sum(4, 0), x(4, 0);
    for (uint32_t i = 0; i < n; ++i) {
      sum[i / 256 % 4] += in[i];
      x[i / 256 % 4] ^= in[i];
    }
    cases.push_back(make("reduce_tree", {4}, {256}, in, 4, n, sum));
    cases.push_back(make("reduce_shuffle", {4}, {256}, in, 4, n, x));
  }
  {
    uint32_t n = 700;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i)
      e[i] = in[i] + (i % 256 ? e[i - 1] : 0);
    cases.push_back(make("scan_block", {3}, {256}, in, n, n, e));
  }
  {
    Words in = numbers.words(64 * 64), e(64 * 64);
    for (uint32_t y = 0; y < 64; ++y)
      for (uint32_t x = 0; x < 64; ++x)
        e[x * 64 + y] = in[y * 64 + x];
    cases.push_back(
        make("transpose_swizzle", {2, 2}, {32, 8}, in, 64 * 64, 64, e));
  }
  {
    uint32_t n = 2000;
    Words in = numbers.words(n), e(64, 0);
    for (uint32_t v : in)
      ++e[v % 64];
    cases.push_back(make("histogram", {3}, {256}, in, 64, n, e));
  }
  {
    uint32_t n = 5000, blocks = 7;
    Words in = numbers.words(n), e(2 + blocks, 0);
    for (uint32_t i = 0; i < n; ++i)
      e[2 + i / 256 % blocks] += in[i] ^ (i * 2654435761u);
    for (uint32_t b = 0; b < blocks; ++b)
      e[0] = e[0] * 31 + e[2 + b];
    cases.push_back(
        make("last_arriver", {blocks}, {256}, in, 2 + blocks, n, e));
  }
  {
    uint32_t n = 20;
    Words in = numbers.words(n), e(2 * n, 1);
    for (uint32_t i = 0; i < n; ++i)
      e[i] = (i ? e[i - 1] * 3 : 0) + in[i];
    cases.push_back(make("chained_blocks", {n}, {32}, in, 2 * n, n, e));
  }
  {
    uint32_t n = 150;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t v = in[i] % 1000 + 1, steps = 0;
      while (v != 1 && steps < 300) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        ++steps;
        if (steps != 200 && v % 97 == 0)
          break;
      }
      e[i] = steps * 1000 + v % 997;
    }
    cases.push_back(make("divergent_loops", {2}, {96}, in, n, n, e));
  }
  {
    uint32_t n = 100;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t a = in[i], b = i;
      uint64_t c = 7;
      for (uint32_t k = 0; k < i % 5 + 1; ++k) {
        a = mix(a, k);
        b = mix(b, a);
        c += uint64_t(a) * b;
      }
      e[i] = a ^ b ^ uint32_t(c) ^ uint32_t(c >> 32);
    }
    cases.push_back(make("function_calls", {2}, {64}, in, n, n, e));
  }
  {
    uint32_t n = 100;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i) {
      Words a;
      for (uint32_t k = 0; k < 17; ++k)
        a.push_back(in[(i + k * 7) % n]);
      std::sort(a.begin(), a.end());
      e[i] = a[8] + a[in[i] % 17];
    }
    cases.push_back(make("local_array", {1}, {128}, in, n, n, e));
  }
  {
    uint32_t n = 200;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t v = in[i];
      uint32_t r[9] = {v * 3,
                       v ^ 0x5555,
                       reverse(v),
                       uint32_t(v ? __builtin_clz(v) : 32),
                       popc(v) * v,
                       v >> 7 | v << 9,
                       uint32_t(__builtin_ffs(int(v))),
                       v / 13,
                       v % 1009};
      e[i] = r[v % 9];
    }
    cases.push_back(make("jump_table", {2}, {128}, in, n, n, e));
  }
  {
    uint32_t n = 200;
    Words in = numbers.words(n), e(n);
    for (uint32_t i = 0; i < n; ++i)
      e[i] = integerMix(in, i);
    cases.push_back(make("integer_mix", {2}, {128}, in, n, n, e));
  }
  {
    uint32_t n = 64;
    Words in = numbers.words(n), e(n);
    for (uint32_t base = 0; base < n; base += 32) {
      uint32_t sum = 0, same[6] = {}, any = 0;
      int32_t most = INT32_MIN;
      for (uint32_t i = base; i < base + 32; ++i) {
        sum += in[i];
        most = std::max(most, int32_t(in[i]));
        ++same[in[i] % 6];
        any |= in[i] % 6 == 5;
      }
      for (uint32_t i = base; i < base + 32; ++i)
        e[i] =
            same[in[i] % 6] * 1000003u + sum + uint32_t(most) + ~0u + any + 2;
    }
    cases.push_back(make("match_and_redux", {2}, {32}, in, n, n, e));
  }
  return cases;
}

} // namespace fi::emulator::test
