//===- Float.h - Formats and roundings --------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions between float and the narrow formats, exact and by every rounding
// mode. Inline in the namespace of the instruction set's level.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EXEC_FLOAT_H
#define FI_EMULATOR_EXEC_FLOAT_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace fi::emulator::FI_EMU_ISA {

inline uint32_t bitsOf(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return b;
}
inline uint64_t bitsOf(double v) {
  uint64_t b;
  std::memcpy(&b, &v, 8);
  return b;
}
inline float floatOf(uint32_t b) {
  float v;
  std::memcpy(&v, &b, 4);
  return v;
}
inline double doubleOf(uint64_t b) {
  double v;
  std::memcpy(&v, &b, 8);
  return v;
}

/// The NaN that f32 operations make.
constexpr uint32_t nan32 = 0x7fffffffu;
inline float canonical(float v) { return v == v ? v : floatOf(nan32); }
/// Subnormal numbers become zeros of their sign.
inline float flush(float v) {
  uint32_t b = bitsOf(v);
  return floatOf((b & 0x7f800000u) == 0 ? b & 0x80000000u : b);
}

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

/// A format of `exponent` and `mantissa` bits. `finite`: no infinity, and one
/// NaN of all ones (e4m3).
struct Format {
  unsigned exponent, mantissa;
  bool finite;
};
constexpr Format formatF16{5, 10, false};
constexpr Format formatBF16{8, 7, false};
constexpr Format formatTF32{8, 10, false};
constexpr Format formatE4M3{4, 3, true};
constexpr Format formatE5M2{5, 2, false};

/// Rounds a finite or infinite number to the bits of a format. `saturate`: what
/// is too large becomes the largest finite number, and infinities too.
inline uint32_t roundTo(double v, Format f, Rounding mode, bool saturate) {
  uint64_t b = bitsOf(v);
  uint32_t sign = uint32_t(b >> 63) << (f.exponent + f.mantissa);
  int bias = (1 << (f.exponent - 1)) - 1;
  uint32_t infinity = ((1u << f.exponent) - 1) << f.mantissa;
  uint32_t largest =
      f.finite ? infinity | ((1u << f.mantissa) - 2) : infinity - 1;
  uint32_t overflow =
      f.finite ? (infinity | ((1u << f.mantissa) - 1)) : infinity;
  bool negative = b >> 63;
  auto tooLarge = [&]() -> uint32_t {
    if (saturate || mode == Rounding::Zero ||
        (mode == Rounding::Down && !negative) ||
        (mode == Rounding::Up && negative))
      return sign | largest;
    return sign | overflow;
  };
  int e = int(b >> 52 & 0x7ff);
  uint64_t m = b & ((uint64_t(1) << 52) - 1);
  if (e == 0x7ff) {
    if (m)
      return f.finite ? overflow : (infinity | ((1u << f.mantissa) - 1));
    return saturate ? sign | largest : sign | overflow;
  }
  if (e == 0 && m == 0)
    return sign;
  if (e == 0) {
    e = 1;
  } else {
    m |= uint64_t(1) << 52;
  }
  // Value: m * 2^(e - 1075). The last place of the result:
  int exponent = e - 1023;
  int lowest = 1 - bias;
  int drop = 52 - int(f.mantissa);
  if (exponent < lowest)
    drop += lowest - exponent;
  uint64_t kept, rest, half;
  if (drop > 62) {
    kept = 0;
    rest = 1;
    half = 2;
  } else {
    kept = m >> drop;
    rest = m & ((uint64_t(1) << drop) - 1);
    half = uint64_t(1) << (drop - 1);
  }
  bool up = false;
  switch (mode) {
  case Rounding::Nearest:
    up = rest > half || (rest == half && (kept & 1));
    break;
  case Rounding::NearestAway:
    up = rest >= half;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    up = rest && negative;
    break;
  case Rounding::Up:
    up = rest && !negative;
    break;
  }
  kept += up;
  uint32_t out;
  if (exponent < lowest)
    out = uint32_t(kept); // a carry makes the least normal number
  else
    out = uint32_t((uint64_t(exponent + bias - 1) << f.mantissa) + kept);
  if (exponent > bias + 1 || out > (f.finite ? largest : infinity - 1))
    return tooLarge();
  return sign | out;
}

/// The value of the bits of a format.
inline double valueOf(uint32_t bits, Format f) {
  uint32_t m = bits & ((1u << f.mantissa) - 1);
  uint32_t e = bits >> f.mantissa & ((1u << f.exponent) - 1);
  bool negative = bits >> (f.exponent + f.mantissa) & 1;
  int bias = (1 << (f.exponent - 1)) - 1;
  uint32_t top = (1u << f.exponent) - 1;
  double v;
  if (e == top && (!f.finite || m == (1u << f.mantissa) - 1))
    v = m ? std::nan("") : HUGE_VAL;
  else if (e == 0)
    v = std::ldexp(double(m), 1 - bias - int(f.mantissa));
  else
    v = std::ldexp(double(m | 1u << f.mantissa),
                   int(e) - bias - int(f.mantissa));
  return negative ? -v : v;
}

inline float halfToFloat(uint32_t h) {
#if defined(__F16C__) && defined(__clang__)
  uint16_t s = uint16_t(h);
  _Float16 v;
  std::memcpy(&v, &s, 2);
  return float(v);
#else
  // The exponent moves by multiplication, which also makes subnormals right.
  uint32_t sign = (h & 0x8000u) << 16, body = (h & 0x7fffu) << 13;
  float v = floatOf(body) * floatOf(0x77800000u); // 2^112
  uint32_t b = bitsOf(v);
  if ((h & 0x7c00u) == 0x7c00u)
    b = 0x7f800000u | (h & 0x3ffu) << 13;
  return floatOf(b | sign);
#endif
}

/// Round to nearest even; NaN is 0x7fff.
inline uint32_t floatToHalf(float v) {
#if defined(__F16C__) && defined(__clang__)
  _Float16 h = _Float16(v);
  uint16_t s;
  std::memcpy(&s, &h, 2);
  return v == v ? s : 0x7fffu;
#else
  uint32_t b = bitsOf(v), sign = b >> 16 & 0x8000u;
  b &= 0x7fffffffu;
  uint32_t out;
  if (b > 0x7f800000u) {
    return 0x7fffu;
  } else if (b >= 0x47800000u) {
    out = 0x7c00u;
  } else if (b < 0x38800000u) {
    // Subnormal: adding 0.5 puts the last place where float rounds.
    float m = floatOf(b) + 0.5f;
    out = bitsOf(m) - 0x3f000000u;
  } else {
    out = (b + 0xc8000fffu + (b >> 13 & 1)) >> 13;
  }
  return out | sign;
#endif
}

inline float bf16ToFloat(uint32_t h) { return floatOf(h << 16); }
inline uint32_t floatToBf16(float v) {
  uint32_t b = bitsOf(v);
  uint32_t r = (b + 0x7fffu + (b >> 16 & 1)) >> 16;
  return v == v ? r : 0x7fffu;
}

/// a + b with the last bit a record of what was lost: rounding it again to
/// fewer bits (at most 22) rounds once.
inline float addToOdd(float a, float b) {
  float s = a + b;
  float t = s - a;
  float e = (a - (s - t)) + (b - t);
  uint32_t bits = bitsOf(s);
  // Away from zero: step back before setting the last bit.
  uint32_t away = (bitsOf(e) ^ bits) >> 31;
  uint32_t odd = (bits - away) | 1;
  bool exact = e == 0 || (bits & 0x7f800000u) == 0x7f800000u;
  return floatOf(exact ? bits : odd);
}
inline double addToOdd(double a, double b) {
  double s = a + b;
  double t = s - a;
  double e = (a - (s - t)) + (b - t);
  uint64_t bits = bitsOf(s);
  uint64_t away = (bitsOf(e) ^ bits) >> 63;
  uint64_t odd = (bits - away) | 1;
  bool exact = e == 0 || (bits >> 52 & 0x7ff) == 0x7ff;
  return doubleOf(exact ? bits : odd);
}

/// 2^x in double, to about 1e-16: vector code where libm has a call a lane.
inline double exp2Of(double x) {
  double clamped = x < -1100 ? -1100 : x > 1100 ? 1100 : x;
  // Round to an integer by adding 1.5 * 2^52.
  double shifted = clamped + 6755399441055744.0;
  double n = shifted - 6755399441055744.0;
  double r = (clamped - n) * 0.69314718055994530942;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // Two factors, so that neither leaves the range: |n| <= 1100.
  int64_t k = int64_t(bitsOf(shifted) & 0xfff);
  k = k >= 2048 ? k - 4096 : k;
  int64_t k1 = k / 2, k2 = k - k1;
  double s1 = doubleOf(uint64_t(k1 + 1023) << 52);
  double s2 = doubleOf(uint64_t(k2 + 1023) << 52);
  double v = p * s1 * s2;
  return x == x ? v : x;
}

} // namespace fi::emulator::FI_EMU_ISA

#endif // FI_EMULATOR_EXEC_FLOAT_H
