//===- NumericCases.cpp - References of numeric.cu ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Expected values by other means than the emulator's: wide arithmetic of the
// host and one rounding by counting units in the last place.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cfenv>
#include <cmath>
#include <cstring>

namespace fi::emulator::test {
namespace {

enum Mode { Nearest, Zero, Down, Up };

float floatOf(uint32_t b) {
  float v;
  std::memcpy(&v, &b, 4);
  return v;
}
uint32_t bits(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return v == v ? b : 0x7fffffffu;
}

/// To a format by counting its units: `p` bits, least exponent `least`,
/// greatest finite value `most`. Infinity where it is left.
long double roundUnits(long double v, int p, int least, long double most,
                       Mode mode) {
  if (v == 0 || std::isinf(v) || std::isnan(v))
    return v;
  int e;
  std::frexp(v, &e);
  long double unit = std::ldexp(1.0L, std::max(e - p, least));
  long double q = v / unit, r;
  switch (mode) {
  case Nearest:
    r = std::nearbyint(q);
    break;
  case Zero:
    r = std::trunc(q);
    break;
  case Down:
    r = std::floor(q);
    break;
  default:
    r = std::ceil(q);
  }
  r = std::copysign(r * unit, v);
  if (std::fabs(r) > most) {
    bool inf =
        mode == Nearest || (mode == Up && v > 0) || (mode == Down && v < 0);
    r = std::copysign(inf ? HUGE_VALL : most, v);
  }
  return r;
}
uint32_t toFloat(long double v, Mode mode = Nearest) {
  return bits(float(roundUnits(v, 24, -149, 3.40282346638528859812e38L, mode)));
}
uint32_t toHalf(long double v, Mode mode = Nearest) {
  v = roundUnits(v, 11, -24, 65504.0L, mode);
  if (std::isnan(v))
    return 0x7fff;
  uint32_t sign = std::signbit(v) ? 0x8000 : 0;
  v = std::fabs(v);
  if (std::isinf(v))
    return sign | 0x7c00;
  if (v < std::ldexp(1.0L, -14))
    return sign | uint32_t(std::ldexp(v, 24));
  int e;
  long double m = std::frexp(v, &e);
  return sign | uint32_t(e + 14) << 10 | (uint32_t(std::ldexp(m, 11)) & 0x3ff);
}
uint32_t toBfloat(long double v, Mode mode = Nearest) {
  uint32_t b =
      bits(float(roundUnits(v, 8, -133, 3.38953138925153547590e38L, mode)));
  return b >> 16;
}
long double fromHalf(uint32_t h) {
  uint32_t e = h >> 10 & 31, m = h & 0x3ff;
  long double v = e == 31 ? (m ? std::nanl("") : HUGE_VALL)
                  : e     ? std::ldexp((long double)(m | 0x400), int(e) - 25)
                          : std::ldexp((long double)m, -24);
  return h & 0x8000 ? -v : v;
}
long double fromBfloat(uint32_t h) { return floatOf(h << 16); }

KernelCase make(const char *kernel, uint32_t n, uint32_t block, Words in,
                Words expected) {
  KernelCase c;
  c.module = "numeric";
  c.kernel = kernel;
  c.grid = {(n + block - 1) / block};
  c.block = {block};
  c.arguments = {input(std::move(in)), output(expected.size()), scalar(n)};
  c.expected = std::move(expected);
  return c;
}

/// Floats of moderate size and a few special ones.
Words floats(uint64_t seed, size_t n, bool special) {
  Numbers numbers(seed);
  Words w(n);
  for (uint32_t &v : w)
    v = (numbers.next() & 0x807fffffu) | (118 + numbers.next() % 20) << 23;
  if (special) {
    const uint32_t odd[] = {0,           0x80000000u, 0x7f800000u,
                            0xff800000u, 0x7fc00000u, 0x00000001u,
                            0x80400000u, 0x3f800000u, 0x7f7fffffu};
    for (uint32_t v : odd)
      w[numbers.next() % n] = v;
  }
  return w;
}

Words floatOps(const Words &in) {
  uint32_t n = uint32_t(in.size());
  Words e(16 * n);
  for (uint32_t i = 0; i < n; ++i) {
    float a = floatOf(in[i]), b = floatOf(in[(i + 1) % n]),
          c = floatOf(in[(i + 2) % n]);
    auto put = [&](uint32_t k, uint32_t v) { e[k * n + i] = v; };
    auto mode = [&](int m, auto f) {
      std::fesetround(m);
      volatile float r = f();
      std::fesetround(FE_TONEAREST);
      return bits(r);
    };
    volatile float x = a, y = b, z = c;
    put(0, bits(a + b));
    put(1, bits(a * b));
    put(2, bits(std::fmaf(a, b, c)));
    put(3, mode(FE_TOWARDZERO, [&] { return x + y; }));
    put(4, mode(FE_UPWARD, [&] { return x * y; }));
    put(5, mode(FE_DOWNWARD, [&] { return std::fmaf(x, y, z); }));
    put(6, bits(a / b));
    put(7, bits(std::sqrt(a)));
    put(8, bits(a != a   ? b
                : b != b ? a
                : a == b ? (std::signbit(a) ? a : b)
                         : (a < b ? a : b)));
    put(9, bits(a != a   ? c
                : c != c ? a
                : a == c ? (std::signbit(a) ? c : a)
                         : (a > c ? a : c)));
    put(10, bits(a > 0 ? (a < 1 ? a : 1.0f) : 0.0f));
    put(11, bits(b - c));
    put(12, bits(1 / a));
    put(13, mode(FE_TOWARDZERO, [&] { return x / z; }));
    // Only bits move.
    put(14, a == a ? in[i] & 0x7fffffffu : 0x7fffffffu);
    put(15, (in[(i + 1) % n] & 0x7fffffffu) | (in[(i + 2) % n] & 0x80000000u));
  }
  return e;
}

Words halfOps(const Words &in) {
  uint32_t n = uint32_t(in.size());
  Words e(9 * n);
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t w[3] = {in[i], in[(i + 1) % n], in[(i + 2) % n]};
    for (uint32_t s = 0; s < 32; s += 16) {
      long double a = fromHalf(w[0] >> s & 0xffff),
                  b = fromHalf(w[1] >> s & 0xffff),
                  c = fromHalf(w[2] >> s & 0xffff);
      long double f = a * b + c;
      long double r[8] = {a + b,
                          a * b,
                          f,
                          b - c,
                          f < 0 ? 0 : f,
                          a > b ? a : b,
                          a < c ? a : c,
                          a + c > 1   ? 1
                          : a + c < 0 ? 0
                                      : a + c};
      for (uint32_t k = 0; k < 8; ++k)
        e[k * n + i] |= toHalf(r[k]) << s;
    }
    auto lo = [&](int k) { return fromHalf(w[k] & 0xffff); };
    auto hi = [&](int k) { return fromHalf(w[k] >> 16); };
    e[8 * n + i] = uint32_t(lo(0) > lo(1)) | uint32_t(hi(0) == hi(1)) << 1 |
                   uint32_t(lo(0) != lo(2)) << 2;
  }
  return e;
}

Words bfloatOps(const Words &in) {
  uint32_t n = uint32_t(in.size());
  Words e(4 * n);
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t w[3] = {in[i], in[(i + 1) % n], in[(i + 2) % n]};
    for (uint32_t s = 0; s < 32; s += 16) {
      long double a = fromBfloat(w[0] >> s & 0xffff),
                  b = fromBfloat(w[1] >> s & 0xffff),
                  c = fromBfloat(w[2] >> s & 0xffff);
      long double r[4] = {a * b + c, a > b ? a : b, a + b, b * c};
      for (uint32_t k = 0; k < 4; ++k)
        e[k * n + i] |= toBfloat(r[k]) << s;
    }
  }
  return e;
}

int64_t clampTo(long double v, long double lo, long double hi) {
  return v != v ? 0 : int64_t(v < lo ? lo : v > hi ? hi : v);
}

Words conversions(const Words &in) {
  uint32_t n = uint32_t(in.size());
  Words e(20 * n);
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t v = in[i];
    long double f = floatOf(v), h = fromHalf(v & 0xffff);
    long double s = int32_t(v);
    const long double lo = -2147483648.0L, hi = 2147483647.0L;
    uint32_t r[20] = {
        toHalf(f), toHalf(f, Zero), toHalf(f, Up), toHalf(f, Down), toBfloat(f),
        toBfloat(f, Zero), uint32_t(clampTo(std::trunc(f), lo, hi)),
        uint32_t(clampTo(std::nearbyint(f), lo, hi)),
        uint32_t(clampTo(std::ceil(f), 0, 4294967295.0L)), toFloat(s),
        toFloat((long double)v, Zero), toFloat(h),
        uint32_t(clampTo(std::floor(h), lo, hi)),
        toHalf((long double)(int32_t(v) >> 12)), bits(float(std::nearbyint(f))),
        bits(float(std::floor(f))),
        uint32_t(clampTo(std::trunc(f), -9223372036854775808.0L,
                         9223372036854775807.0L) >>
                 7),
        // NaN of f64 becomes the least integer, that of f32 becomes 0.
        f != f ? 0x80000000u
               : uint32_t(clampTo(std::nearbyint(f * 1.5L), lo, hi)),
        toFloat((long double)int64_t(uint64_t(v) * v)),
        toFloat((long double)(double(int32_t(v)) / 3), Down)};
    for (uint32_t k = 0; k < 20; ++k)
      e[k * n + i] = r[k];
  }
  return e;
}

} // namespace

std::vector<KernelCase> numericCases() {
  std::vector<KernelCase> cases;
  {
    Words in = floats(21, 256, true);
    cases.push_back(make("float_ops", 256, 128, in, floatOps(in)));
  }
  {
    uint32_t n = 96;
    Words in = Numbers(22).words(n), e(2 * n);
    for (uint32_t i = 0; i < n; ++i) {
      double a = int32_t(in[i]) * 0.37,
             b = int32_t(in[(i + 1) % n]) * 1e-3 + 0.5;
      // nvcc contracts products and sums as it reads them.
      b = std::fma(double(int32_t(in[(i + 1) % n])), 1e-3, 0.5);
      std::fesetround(FE_TOWARDZERO);
      volatile double x = a, y = b;
      volatile double s = x + y;
      std::fesetround(FE_UPWARD);
      volatile double p = x * y;
      std::fesetround(FE_TONEAREST);
      double r =
          std::fma(double(s), double(p),
                   std::fma(a, b, 1.0) + a / b - std::sqrt(std::fabs(a)));
      uint64_t u;
      std::memcpy(&u, &r, 8);
      e[2 * i] = uint32_t(u);
      e[2 * i + 1] = uint32_t(u >> 32);
    }
    cases.push_back(make("double_ops", n, 96, in, e));
  }
  {
    Numbers numbers(23);
    Words in(128);
    for (uint32_t &v : in) {
      v = 0;
      for (uint32_t s = 0; s < 32; s += 16)
        v |= ((numbers.next() & 0x83ff) | (8 + numbers.next() % 14) << 10) << s;
    }
    cases.push_back(make("half_ops", 128, 64, in, halfOps(in)));
    for (uint32_t &v : in) {
      v = 0;
      for (uint32_t s = 0; s < 32; s += 16)
        v |= ((numbers.next() & 0x807f) | (120 + numbers.next() % 14) << 7)
             << s;
    }
    cases.push_back(make("bfloat_ops", 128, 64, in, bfloatOps(in)));
  }
  {
    Words in = floats(24, 256, true), more = Numbers(25).words(128);
    in.insert(in.end(), more.begin(), more.end());
    cases.push_back(
        make("conversions", uint32_t(in.size()), 128, in, conversions(in)));
  }
  {
    Numbers numbers(26);
    const uint32_t rows = 8;
    Words in(rows * 128), e(rows * 128);
    for (uint32_t &v : in)
      v = bits(numbers.small() * 6);
    for (uint32_t r = 0; r < rows; ++r) {
      double m = -1e30, s = 0;
      for (uint32_t k = 0; k < 128; ++k)
        m = std::max(m, double(floatOf(in[r * 128 + k])));
      for (uint32_t k = 0; k < 128; ++k)
        s += std::exp(double(floatOf(in[r * 128 + k])) - m);
      for (uint32_t k = 0; k < 128; ++k)
        e[r * 128 + k] =
            bits(float(std::exp(double(floatOf(in[r * 128 + k])) - m) / s));
    }
    KernelCase c = make("softmax_rows", rows * 32, 128, in, e);
    c.tolerance = 1e-6f;
    c.exactOnGpu = false;
    cases.push_back(c);
  }
  {
    const uint32_t n = 128;
    Words in = Numbers(27).words(n), e(6 * n);
    for (uint32_t i = 0; i < n; ++i) {
      double a = double(float(in[i] >> 8) * 0x1p-22f + 0.01f);
      double r[6] = {std::log2(a), 1 / std::sqrt(a), std::sin(a),
                     std::cos(a),  std::tanh(a),     a / (a + 1)};
      for (uint32_t k = 0; k < 6; ++k)
        e[k * n + i] = bits(float(r[k]));
    }
    KernelCase c = make("approximations", n, 128, in, e);
    c.tolerance = 1e-6f;
    c.exactOnGpu = false;
    cases.push_back(c);
  }
  return cases;
}

} // namespace fi::emulator::test
