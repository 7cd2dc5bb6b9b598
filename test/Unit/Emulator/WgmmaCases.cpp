//===- WgmmaCases.cpp - References of wgmma.cu ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrices are laid out here as the PTX ISA draws its canonical layouts: core
// matrices of eight rows of sixteen bytes, or rows of the width of the swizzle.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cmath>
#include <cstring>

namespace fi::emulator::test {
namespace {

enum Format { F16, BF16, TF32, E4M3, E5M2, S8, U8 };
uint32_t bytesOf(Format f) {
  return f == TF32 ? 4 : f == F16 || f == BF16 ? 2 : 1;
}

uint32_t bits(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return b;
}
uint32_t half(float v) {
  uint32_t b = bits(v);
  if (v == 0)
    return b >> 16;
  return (b >> 16 & 0x8000) | (((b >> 23 & 255) - 112) << 10) |
         (b >> 13 & 0x3ff);
}

/// Numbers with so few bits that all sums are exact everywhere, and their form.
struct Value {
  float v;
  uint32_t bits;
};
Value value(Format f, Numbers &numbers) {
  uint32_t r = numbers.next();
  if (f == S8)
    return {float(int8_t(r)), r & 255};
  if (f == U8)
    return {float(r & 255), r & 255};
  static const float some[] = {0.5f, 1.0f, 1.5f, 2.0f};
  float v = some[r & 3];
  v = r & 4 ? -v : v;
  uint32_t sign = r & 4 ? 0x80 : 0, b = bits(v);
  switch (f) {
  case F16:
    return {v, half(v)};
  case BF16:
    return {v, b >> 16};
  case TF32:
    return {v, b};
  case E4M3:
    return {v, sign | ((b >> 23 & 255) - 120) << 3 | (b >> 20 & 7)};
  default:
    return {v, sign | ((b >> 23 & 255) - 112) << 2 | (b >> 21 & 3)};
  }
}

/// A layout: width of the swizzle (0: none), whether rows run along k, and the
/// two offsets; `start` bytes into the first row.
struct Layout {
  uint32_t width;
  bool alongK;
  uint32_t leading, stride, start;

  uint32_t at(uint32_t mn, uint32_t k, uint32_t bytes) const {
    uint32_t per = 16 / bytes, a = start;
    if (width == 0 && alongK)
      a += mn % 8 * 16 + mn / 8 * stride + k / per * leading + k % per * bytes;
    else if (width == 0)
      a += mn % per * bytes + mn / per * stride + k % 8 * 16 + k / 8 * leading;
    else if (alongK)
      a += mn % 8 * width + mn / 8 * stride + k * bytes;
    else
      a += mn * bytes % width + mn * bytes / width * leading + k % 8 * width +
           k / 8 * stride;
    // Sixteen bytes change places within a row by the number of the row of 128
    // bytes.
    uint32_t mask = width ? width / 16 - 1 : 0;
    return a ^ ((a / 128 & mask) * 16);
  }
  uint64_t descriptor() const {
    uint64_t mode = width == 0 ? 0 : width == 128 ? 1 : width == 64 ? 2 : 3;
    return uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 |
           mode << 62 | start >> 4;
  }
};

struct Probe {
  const char *label, *kernel;
  Format a, b;
  bool halfD, satfinite;
  int sign;
  Layout layoutA, layoutB;
  uint32_t scale;
};

constexpr Layout k128{128, true, 16, 1024, 0}, k64{64, true, 16, 512, 0},
    k32{32, true, 16, 256, 0};

const Probe probes[] = {
    {"f16_k128", "probe_f16_kk", F16, F16, false, false, 1, k128, k128, 1},
    {"f16_k64", "probe_f16_kk", F16, F16, false, false, 1, k64, k64, 1},
    {"f16_k32", "probe_f16_kk", F16, F16, false, false, 1, k32, k32, 1},
    {"f16_k128_inside",
     "probe_f16_kk",
     F16,
     F16,
     false,
     false,
     1,
     {128, true, 16, 1024, 96},
     {128, true, 16, 1024, 32},
     1},
    {"f16_k64_inside",
     "probe_f16_kk",
     F16,
     F16,
     false,
     false,
     1,
     {64, true, 16, 512, 32},
     {64, true, 16, 512, 32},
     0},
    // Core matrices side by side, and far apart.
    {"f16_k_plain",
     "probe_f16_kk",
     F16,
     F16,
     false,
     false,
     1,
     {0, true, 128, 256, 0},
     {0, true, 1024, 128, 0},
     1},
    {"f16_m128_b",
     "probe_f16_km",
     F16,
     F16,
     false,
     false,
     -1,
     k128,
     {128, false, 2048, 1024, 0},
     1},
    {"f16_m64_b",
     "probe_f16_km",
     F16,
     F16,
     false,
     false,
     -1,
     k64,
     {64, false, 1024, 512, 0},
     1},
    {"f16_m32_b",
     "probe_f16_km",
     F16,
     F16,
     false,
     false,
     -1,
     k32,
     {32, false, 512, 256, 0},
     1},
    {"f16_m32_b_apart",
     "probe_f16_km",
     F16,
     F16,
     false,
     false,
     -1,
     k32,
     {32, false, 256, 1024, 0},
     1},
    {"f16_m_plain_b",
     "probe_f16_km",
     F16,
     F16,
     false,
     false,
     -1,
     k128,
     {0, false, 1024, 128, 0},
     1},
    {"f16_m128_a",
     "probe_f16_mk",
     F16,
     F16,
     false,
     false,
     -1,
     {128, false, 2048, 1024, 0},
     k128,
     1},
    {"f16_m64_a",
     "probe_f16_mk",
     F16,
     F16,
     false,
     false,
     -1,
     {64, false, 1024, 512, 0},
     k64,
     0},
    {"f16_m_both",
     "probe_f16_mm",
     F16,
     F16,
     false,
     false,
     1,
     {32, false, 512, 256, 0},
     {64, false, 1024, 512, 0},
     1},
    {"f16_m_plain_both",
     "probe_f16_mm",
     F16,
     F16,
     false,
     false,
     1,
     {0, false, 1024, 128, 0},
     {0, false, 128, 256, 0},
     1},
    {"bf16", "probe_bf16_kk", BF16, BF16, false, false, 1, k128, k64, 1},
    {"tf32", "probe_tf32", TF32, TF32, false, false, 1, k128, k32, 1},
    {"tf32_plain",
     "probe_tf32",
     TF32,
     TF32,
     false,
     false,
     1,
     {0, true, 128, 256, 0},
     {0, true, 128, 256, 0},
     1},
    {"e4m3", "probe_e4m3", E4M3, E4M3, false, false, 1, k128, k64, 1},
    {"e5m2_e4m3", "probe_e5m2_e4m3", E5M2, E4M3, false, false, 1, k32, k128, 1},
    {"f16_to_f16", "probe_f16_f16", F16, F16, true, false, 1, k128, k128, 1},
    {"e4m3_to_f16", "probe_e4m3_f16", E4M3, E5M2, true, false, 1, k64, k64, 1},
    {"s8", "probe_s8", S8, S8, false, false, 1, k128, k128, 1},
    {"u8_s8_saturated",
     "probe_u8_s8",
     U8,
     S8,
     false,
     true,
     1,
     k32,
     {0, true, 128, 256, 0},
     1},
};

KernelCase probeCase(const Probe &p) {
  constexpr uint32_t offsetB = 16384, words = 32768 / 4;
  uint32_t bytes = bytesOf(p.a), depth = 32 / bytes;
  bool ints = p.a >= S8;
  Numbers numbers(41);
  // What is not an element is a number that would be seen.
  Words in(words + 4, 0x7e7e7e7e);
  auto *memory = reinterpret_cast<uint8_t *>(in.data());
  std::vector<float> a(64 * depth), b(64 * depth);
  auto fill = [&](std::vector<float> &to, Format f, const Layout &layout,
                  uint32_t base) {
    for (uint32_t mn = 0; mn < 64; ++mn)
      for (uint32_t k = 0; k < depth; ++k) {
        Value v = value(f, numbers);
        to[mn * depth + k] = v.v;
        std::memcpy(memory + base + layout.at(mn, k, bytes), &v.bits, bytes);
      }
  };
  fill(a, p.a, p.layoutA, 0);
  fill(b, p.b, p.layoutB, offsetB);
  // The accumulators before, by their number modulo four.
  for (uint32_t i = 0; i < 4; ++i)
    in[words + i] = p.halfD       ? half(float(i) - 1.5f) | half(2.0f) << 16
                    : p.satfinite ? i % 2 ? 0x7fffff00u : 0x80000010u
                                  : i * 3;
  uint32_t count = p.halfD ? 16 : 32;
  KernelCase c;
  c.module = "wgmma";
  c.target = "sm_90a";
  c.kernel = p.kernel;
  c.label = std::string("wgmma_") + p.label;
  c.block = {128};
  c.shared = words * 4;
  uint64_t da = p.layoutA.descriptor(), db = p.layoutB.descriptor();
  c.arguments = {input(in),
                 output(128 * count),
                 scalar(words),
                 scalar(offsetB),
                 scalar(uint32_t(da)),
                 scalar(uint32_t(da >> 32)),
                 scalar(uint32_t(db)),
                 scalar(uint32_t(db >> 32)),
                 scalar(p.scale)};
  c.expected.resize(128 * count);
  for (uint32_t t = 0; t < 128; ++t)
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t row = t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8;
      uint32_t column = i / 4 * 8 + t % 4 * 2 + (i & 1);
      double sum = 0;
      for (uint32_t k = 0; k < depth; ++k)
        sum += double(a[row * depth + k]) * double(b[column * depth + k]);
      sum *= p.sign;
      if (p.halfD) {
        uint32_t &e = c.expected[t * 16 + i / 2];
        double before = i & 1 ? 2.0 : double(i / 2 % 4) - 1.5;
        e |= half(float(sum + before)) << (i & 1) * 16;
      } else if (ints) {
        int64_t v = int32_t(in[words + i % 4]) + int64_t(sum);
        if (p.satfinite)
          v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
        c.expected[t * 32 + i] = uint32_t(v);
      } else {
        c.expected[t * 32 + i] =
            bits(float(sum + (p.scale ? double(in[words + i % 4]) : 0.0)));
      }
    }
  return c;
}

TensorMapConfig halves(uint64_t columns, uint64_t rows, uint32_t boxRows) {
  TensorMapConfig map;
  map.type = TensorMapConfig::Type::F16;
  map.rank = 2;
  map.dims[0] = columns;
  map.dims[1] = rows;
  map.strides[0] = columns * 2;
  map.box[0] = 64;
  map.box[1] = boxRows;
  map.swizzle = TensorMapConfig::Swizzle::Bytes128;
  return map;
}
struct Matrix {
  std::vector<float> v;
  Words words;
  Matrix(uint32_t n, uint64_t seed) : v(n), words(n / 2, 0) {
    Numbers numbers(seed);
    for (uint32_t i = 0; i < n; ++i) {
      // Half of small whole numbers: products of K up to 512 are exact, in f16
      // as well.
      v[i] = float(int32_t(numbers.next() % 5) - 2) * 0.5f;
      words[i / 2] |= half(v[i]) << (i % 2 * 16);
    }
  }
};

} // namespace

std::vector<KernelCase> wgmmaCases() {
  std::vector<KernelCase> cases;
  for (const Probe &p : probes)
    cases.push_back(probeCase(p));
  {
    // A as threads have it: rows by lanes, then registers by halves.
    Numbers numbers(42);
    constexpr uint32_t words = 8192 / 4;
    Words in(words + 128 * 4, 0);
    auto *memory = reinterpret_cast<uint8_t *>(in.data());
    float a[64][16], b[64][16];
    for (auto &row : b)
      for (float &v : row) {
        Value x = value(F16, numbers);
        v = x.v;
        uint32_t n = uint32_t(&row - b), k = uint32_t(&v - row);
        std::memcpy(memory + k128.at(n, k, 2), &x.bits, 2);
      }
    for (auto &row : a)
      for (float &v : row) {
        Value x = value(F16, numbers);
        v = x.v;
        uint32_t m = uint32_t(&row - a), k = uint32_t(&v - row);
        uint32_t thread = m / 16 * 32 + m % 8 * 4 + k % 8 / 2;
        uint32_t reg = m / 8 % 2 + k / 8 * 2;
        in[words + thread * 4 + reg] |= x.bits << (k % 2 * 16);
      }
    KernelCase c;
    c.module = "wgmma";
    c.target = "sm_90a";
    c.kernel = "probe_registers";
    c.block = {128};
    c.shared = words * 4;
    c.arguments = {input(in), output(128 * 32), scalar(words)};
    c.expected.resize(128 * 32);
    for (uint32_t t = 0; t < 128; ++t)
      for (uint32_t i = 0; i < 32; ++i) {
        uint32_t row = t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8;
        uint32_t column = i / 4 * 8 + t % 4 * 2 + (i & 1);
        float sum = 0;
        for (uint32_t k = 0; k < 16; ++k)
          sum += a[row][k] * b[column][k];
        c.expected[t * 32 + i] = bits(sum);
      }
    cases.push_back(c);
  }
  for (bool roles : {false, true}) {
    const uint32_t m = roles ? 200 : 100, n = 256, k = 320;
    Matrix a(m * k, 43), b(k * n, 44);
    KernelCase c;
    c.module = "wgmma";
    c.target = "sm_90a";
    c.kernel = roles ? "gemm_roles" : "gemm_ring";
    c.grid = roles ? Dim3{3} : Dim3{n / 128, (m + 63) / 64};
    c.block = {roles ? 384u : 128u};
    c.shared = roles ? 4 * 32768 : 3 * 24576;
    std::vector<float> sums(m * n, 0.0f);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t l = 0; l < k; ++l)
        for (uint32_t j = 0; j < n; ++j)
          sums[i * n + j] += a.v[i * k + l] * b.v[l * n + j];
    TensorMapConfig mapA = halves(k, m, roles ? 128 : 64);
    TensorMapConfig mapB = halves(n, k, 64), mapC = halves(n, m, 64);
    if (roles) {
      c.arguments = {tensorMap(mapA, 6),
                     tensorMap(mapB, 7),
                     tensorMap(mapC, 8),
                     scalar(m),
                     scalar(n),
                     scalar(k),
                     hidden(input(a.words)),
                     hidden(input(b.words)),
                     hidden(output(m * n / 2))};
      c.expected.resize(m * n / 2);
      for (uint32_t i = 0; i < m * n; ++i)
        c.expected[i / 2] |= half(sums[i]) << (i % 2 * 16);
    } else {
      c.arguments = {tensorMap(mapA, 7),
                     tensorMap(mapB, 8),
                     output(m * n),
                     scalar(m),
                     scalar(n),
                     scalar(k),
                     scalar(3),
                     hidden(input(a.words)),
                     hidden(input(b.words))};
      for (float s : sums)
        c.expected.push_back(bits(s));
    }
    cases.push_back(c);
  }
  return cases;
}

} // namespace fi::emulator::test
