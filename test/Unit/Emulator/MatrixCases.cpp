//===- MatrixCases.cpp - References of matrix.cu --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cmath>
#include <cstring>

namespace fi::emulator::test {
namespace {

uint32_t bits(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return b;
}
/// Numbers of at most 8 significant bits are exact in both.
uint32_t half(float v) {
  uint32_t b = bits(v);
  if (v == 0)
    return b >> 16;
  return (b >> 16 & 0x8000) | (((b >> 23 & 255) - 112) << 10) |
         (b >> 13 & 0x3ff);
}
uint32_t bfloat(float v) { return bits(v) >> 16; }

KernelCase gemm16(const char *name, uint32_t (*encode)(float), uint64_t seed) {
  const uint32_t m = 64, n = 128, k = 96;
  Numbers numbers(seed);
  std::vector<float> a(m * k), b(k * n);
  for (float &v : a)
    v = numbers.small();
  for (float &v : b)
    v = numbers.small();
  auto pack = [&](const std::vector<float> &v) {
    Words w(v.size() / 2);
    for (size_t i = 0; i < w.size(); ++i)
      w[i] = encode(v[2 * i]) | encode(v[2 * i + 1]) << 16;
    return w;
  };
  KernelCase c;
  c.module = "matrix";
  c.kernel = name;
  c.grid = {n / 64, m / 64};
  c.block = {128};
  c.shared = 2 * (64 * 40 + 32 * 72) * 2;
  c.arguments = {input(pack(a)), input(pack(b)), output(m * n),
                 scalar(m),      scalar(n),      scalar(k)};
  c.expected.resize(m * n);
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t j = 0; j < n; ++j) {
      double s = 0;
      for (uint32_t l = 0; l < k; ++l)
        s += double(a[i * k + l]) * double(b[l * n + j]);
      c.expected[i * n + j] = bits(float(s));
    }
  // Products have 14 bits and there are 96 of them: sums are exact in float.
  return c;
}

} // namespace

std::vector<KernelCase> matrixCases() {
  std::vector<KernelCase> cases;
  cases.push_back(gemm16("gemm_f16", half, 11));
  cases.push_back(gemm16("gemm_bf16", bfloat, 12));
  {
    const uint32_t m = 32, n = 24, k = 40;
    Numbers numbers(13);
    Words a(m * k), b(k * n);
    std::vector<double> da(m * k), db(k * n);
    // Ten bits of mantissa after rounding away from zero at a tie.
    auto fill = [&](Words &w, std::vector<double> &d) {
      for (size_t i = 0; i < w.size(); ++i) {
        float v = float(int32_t(numbers.next() % 200001) - 100000) / 65536.0f;
        w[i] = bits(v);
        uint32_t r = (bits(v) + 0x1000) & 0xffffe000;
        float t;
        std::memcpy(&t, &r, 4);
        d[i] = double(t);
      }
    };
    fill(a, da);
    fill(b, db);
    KernelCase c;
    c.module = "matrix";
    c.kernel = "gemm_tf32";
    c.grid = {n / 8, m / 16};
    c.block = {32};
    c.arguments = {input(a),  input(b),  output(m * n),
                   scalar(m), scalar(n), scalar(k)};
    c.expected.resize(m * n);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t j = 0; j < n; ++j) {
        double s = 0;
        for (uint32_t l = 0; l < k; ++l)
          s += da[i * k + l] * db[l * n + j];
        c.expected[i * n + j] = bits(float(s));
      }
    c.tolerance = 2e-6f;
    c.exactOnGpu = false;
    cases.push_back(c);
  }
  {
    const uint32_t m = 32, n = 16, k = 128;
    Numbers numbers(14);
    Words a = numbers.words(m * k / 4), b = numbers.words(n * k / 4);
    auto byte = [](const Words &w, uint32_t i) {
      return int8_t(w[i / 4] >> (i % 4 * 8));
    };
    KernelCase c;
    c.module = "matrix";
    c.kernel = "gemm_s8";
    c.grid = {n / 8, m / 16};
    c.block = {32};
    c.arguments = {input(a),  input(b),  output(m * n),
                   scalar(m), scalar(n), scalar(k)};
    c.expected.resize(m * n);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t j = 0; j < n; ++j) {
        int32_t s = 0;
        for (uint32_t l = 0; l < k; ++l)
          s += byte(a, i * k + l) * byte(b, j * k + l);
        c.expected[i * n + j] = uint32_t(s);
      }
    cases.push_back(c);
  }
  {
    Words in = Numbers(15).words(128), e(12 * 32);
    auto element = [&](uint32_t row, uint32_t col) {
      return in[row * 4 + col / 2] >> (col % 2 * 16) & 0xffff;
    };
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t g = l / 4, t = l % 4 * 2;
      for (uint32_t k = 0; k < 4; ++k) {
        e[k * 32 + l] = element(8 * k + g, t) | element(8 * k + g, t + 1) << 16;
        // Row i of matrix k is where lane 8k + i points: row (8k + i) ^ 5.
        e[(4 + k) * 32 + l] =
            element((8 * k + t) ^ 5, g) | element((8 * k + t + 1) ^ 5, g) << 16;
      }
      for (uint32_t k = 0; k < 2; ++k)
        e[(8 + k) * 32 + l] = element(8 * k + t, g) | element(8 * k + t + 1, g)
                                                          << 16;
      e[10 * 32 + l] = element(g, t) | element(g, t + 1) << 16;
      e[11 * 32 + l] = element(t, g) | element(t + 1, g) << 16;
    }
    KernelCase c;
    c.module = "matrix";
    c.kernel = "ldmatrix_layout";
    c.block = {32};
    c.arguments = {input(in), output(e.size()), scalar(128)};
    c.expected = e;
    cases.push_back(c);
  }
  {
    const uint32_t n = 256 * 6 + 101;
    Words in = Numbers(16).words(n + 3), e(64, 0);
    for (uint32_t t = 0; t < 64; ++t)
      for (uint32_t k = 0; k < 7; ++k) {
        uint32_t x = 0;
        for (uint32_t j = 0; j < 4; ++j) {
          uint32_t at = k * 256 + (t * 5 + k) % 64 * 4 + j;
          x ^= at < n ? in[at] : 0;
        }
        e[t] = e[t] * 3 + x;
      }
    KernelCase c;
    c.module = "matrix";
    c.kernel = "async_pipeline";
    c.block = {64};
    c.arguments = {input(in), output(64), scalar(n)};
    c.expected = e;
    cases.push_back(c);
  }
  {
    const uint32_t n = 64 * 9;
    Words in = Numbers(17).words(n), e(64, 0);
    for (uint32_t t = 0; t < 64; ++t)
      for (uint32_t k = 0; k < 9; ++k)
        e[t] += in[k * 64 + (t + k) % 64] * 3 + 1;
    KernelCase c;
    c.module = "matrix";
    c.kernel = "named_barriers";
    c.block = {128};
    c.arguments = {input(in), output(64), scalar(n)};
    c.expected = e;
    cases.push_back(c);
  }
  return cases;
}

} // namespace fi::emulator::test
