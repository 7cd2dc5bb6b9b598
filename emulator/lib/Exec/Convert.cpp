//===- Convert.cpp - cvt --------------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conversions that address arithmetic and softmax are made of have handlers
// of their own; all others go through a 64-bit integer or a double, by lanes.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

struct Cast {
  template <class T> static T f(T a) { return a; }
};
/// D's register holds the value of type T from source S.
template <class T, class S> struct Via {
  template <class A> static T f(A a) { return T(S(a)); }
};

enum : uint8_t { Sat = 1, Ftz = 2, Relu = 4, Integral = 8 };

/// What a slow conversion does: packed in aux.
struct Plan {
  Type to, from;
  uint8_t flags;
  Rounding mode;
};
Plan planOf(const Inst &in) {
  Plan p;
  std::memcpy(&p, &in.aux, 4);
  return p;
}

template <class T> int64_t clampTo(__int128 v) {
  __int128 lo = std::is_signed_v<T> ? -(__int128(1) << (sizeof(T) * 8 - 1)) : 0;
  __int128 hi =
      (__int128(1) << (sizeof(T) * 8 - (std::is_signed_v<T> ? 1 : 0))) - 1;
  return int64_t(uint64_t(v < lo ? lo : v > hi ? hi : v));
}
int64_t clampInt(__int128 v, Type t) {
  switch (t) {
  case Type::U8:
    return clampTo<uint8_t>(v);
  case Type::S8:
    return clampTo<int8_t>(v);
  case Type::U16:
    return clampTo<uint16_t>(v);
  case Type::S16:
    return clampTo<int16_t>(v);
  case Type::U32:
    return clampTo<uint32_t>(v);
  case Type::S32:
    return clampTo<int32_t>(v);
  case Type::U64:
    return clampTo<uint64_t>(v);
  default:
    return clampTo<int64_t>(v);
  }
}
/// The bits of a value of an integer type, extended by its sign.
int64_t extend(uint64_t v, Type t) {
  switch (t) {
  case Type::U8:
    return uint8_t(v);
  case Type::S8:
    return int8_t(v);
  case Type::U16:
    return uint16_t(v);
  case Type::S16:
    return int16_t(v);
  case Type::U32:
    return uint32_t(v);
  case Type::S32:
    return int32_t(v);
  default:
    return int64_t(v);
  }
}
double roundIntegral(double v, Rounding mode) {
  switch (mode) {
  case Rounding::Zero:
    return std::trunc(v);
  case Rounding::Down:
    return std::floor(v);
  case Rounding::Up:
    return std::ceil(v);
  default:
    return std::nearbyint(v);
  }
}
double floatFrom(uint64_t bits, Type t, bool ftz) {
  switch (t) {
  case Type::F16:
    return double(halfToFloat(uint32_t(bits) & 0xffff));
  case Type::BF16:
    return double(bf16ToFloat(uint32_t(bits) & 0xffff));
  case Type::F32: {
    float v = floatOf(uint32_t(bits));
    return double(ftz ? flush(v) : v);
  }
  default:
    return doubleOf(bits);
  }
}
/// Rounds to f32 like the narrow formats.
uint32_t toF32(double v, Rounding mode) {
  return v != v ? nan32 : roundTo(v, Format{8, 23, false}, mode, false);
}
uint64_t floatTo(double v, const Plan &p) {
  bool saturateTop = false;
  if (p.flags & Sat) {
    v = v > 0 ? (v < 1 ? v : 1.0) : 0.0;
  }
  if (p.flags & Relu)
    v = v < 0 ? 0.0 : v == 0 ? 0.0 : v;
  switch (p.to) {
  case Type::F16:
    return v != v ? 0x7fffu : roundTo(v, formatF16, p.mode, saturateTop);
  case Type::BF16:
    return v != v ? 0x7fffu : roundTo(v, formatBF16, p.mode, saturateTop);
  case Type::F32: {
    uint32_t r = toF32(v, p.mode);
    return p.flags & Ftz ? bitsOf(flush(floatOf(r))) : r;
  }
  default:
    return bitsOf(v);
  }
}
/// A 64-bit integer rounded to odd in double, for formats narrower than that.
double intToOdd(int64_t v, bool isUnsigned) {
  bool negative = !isUnsigned && v < 0;
  uint64_t m = negative ? 0 - uint64_t(v) : uint64_t(v);
  unsigned top = m ? 63 - unsigned(__builtin_clzll(m)) : 0;
  if (top > 52) {
    unsigned drop = top - 52;
    bool lost = m & ((uint64_t(1) << drop) - 1);
    m = (m >> drop | lost) << drop;
  }
  double d = double(m);
  return negative ? -d : d;
}
uint64_t intToF64(int64_t v, bool isUnsigned, Rounding mode) {
  double d = isUnsigned ? double(uint64_t(v)) : double(v);
  __int128 exact = isUnsigned ? __int128(uint64_t(v)) : __int128(v);
  __int128 got = __int128(d);
  bool below = got<exact, above = got> exact;
  if (mode == Rounding::Up && below)
    d = std::nextafter(d, HUGE_VAL);
  if (mode == Rounding::Down && above)
    d = std::nextafter(d, -HUGE_VAL);
  if (mode == Rounding::Zero && ((exact > 0 && above) || (exact < 0 && below)))
    d = std::nextafter(d, 0.0);
  return bitsOf(d);
}

uint64_t convert(uint64_t bits, const Plan &p) {
  bool ff = isFloat(p.from), ft = isFloat(p.to);
  if (!ff && !ft) {
    int64_t v = extend(bits, p.from);
    if (p.flags & Sat)
      v = clampInt(p.from == Type::U64 ? __int128(uint64_t(v)) : __int128(v),
                   p.to);
    return uint64_t(extend(uint64_t(v), p.to));
  }
  if (ff && !ft) {
    double v = floatFrom(bits, p.from, p.flags & Ftz);
    bool wide = sizeOf(p.to) == 8;
    if (v != v) {
      if (p.from != Type::F64 && !wide)
        return 0;
      return wide ? uint64_t(1) << 63
                  : uint64_t(
                        extend(uint64_t(1) << (sizeOf(p.to) * 8 - 1), p.to));
    }
    v = roundIntegral(v, p.mode);
    if (v >= 1.8446744073709552e19)
      return uint64_t(clampInt(__int128(1) << 64, p.to));
    if (v <= -9.3e18)
      return uint64_t(clampInt(-(__int128(1) << 64), p.to));
    return uint64_t(clampInt(__int128(v), p.to));
  }
  if (!ff) {
    int64_t v = extend(bits, p.from);
    bool isUnsigned = p.from == Type::U64;
    if (p.to == Type::F64)
      return intToF64(v, isUnsigned, p.mode);
    return floatTo(intToOdd(v, isUnsigned), p);
  }
  double v = floatFrom(bits, p.from, p.flags & Ftz);
  if (p.flags & Integral) {
    v = roundIntegral(v, p.mode);
    Plan q = p;
    q.mode = Rounding::Nearest;
    return floatTo(v, q);
  }
  return floatTo(v, p);
}

void slowConvert(Warp &w, const Inst &in, uint32_t m) {
  Plan p = planOf(in);
  bool wideFrom = in.bytes == 8, wideTo = in.regBytes == 8;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(m >> i & 1))
      continue;
    uint64_t bits = wideFrom ? w.r64(in.o[1])[i] : w.r32(in.o[1])[i];
    uint64_t r = convert(bits, p);
    if (wideTo)
      w.r64(in.o[0])[i] = r;
    else
      w.r32(in.o[0])[i] = in.regBytes == 2 ? uint32_t(r & 0xffff) : uint32_t(r);
  }
}

/// float to a 32-bit integer, toward zero or to nearest.
template <bool Near, class T> struct ToInt {
  static T f(float a) {
    float r = Near ? __builtin_nearbyintf(a) : __builtin_truncf(a);
    constexpr float lo = std::is_signed_v<T> ? -2147483648.0f : 0.0f;
    constexpr float hi = std::is_signed_v<T> ? 2147483648.0f : 4294967296.0f;
    constexpr T most = std::is_signed_v<T> ? T(0x7fffffff) : T(0xffffffff);
    bool nan = r != r;
    bool big = r >= hi, small = r < lo;
    float safe = (nan | big | small) ? 0.0f : r;
    T v = std::is_signed_v<T> ? T(int32_t(safe)) : T(int64_t(safe));
    v = big ? most : v;
    return small ? (std::is_signed_v<T> ? T(0x80000000u) : T(0)) : v;
  }
};
struct IntToFloat {
  template <class T> static float f(T a) { return float(a); }
};
struct HalfToFloat {
  static float f(uint16_t a) { return canonical(halfToFloat(a)); }
};
struct FloatToHalf {
  static uint16_t f(float a) { return uint16_t(floatToHalf(a)); }
};
struct Bf16ToFloat {
  static float f(uint16_t a) { return canonical(bf16ToFloat(a)); }
};
struct FloatToBf16 {
  static uint16_t f(float a) { return uint16_t(floatToBf16(a)); }
};
struct PackHalf {
  static uint32_t f(float a, float b) {
    return floatToHalf(a) << 16 | floatToHalf(b);
  }
};
struct PackBf16 {
  static uint32_t f(float a, float b) {
    return floatToBf16(a) << 16 | floatToBf16(b);
  }
};

/// Handlers that need not ask for anything at run time; null where there is
/// none.
Handler fastConvert(const Plan &p, unsigned fromBytes, unsigned toBytes) {
  auto is = [&](Type to, Type from) { return p.to == to && p.from == from; };
  bool exact = fromBytes == sizeOf(p.from) && toBytes == sizeOf(p.to);
  if (p.flags == 0 && !isFloat(p.to) && !isFloat(p.from)) {
    // By the widths of the registers: sources may be wider than their types.
    bool f8 = fromBytes == 8, t8 = toBytes == 8;
    if (toBytes == 2)
      return nullptr;
    using U = uint32_t;
    using L = uint64_t;
    switch (p.to) {
    case Type::U64:
    case Type::S64:
    case Type::U32:
    case Type::S32: {
      if (!t8 && f8 && sizeOf(p.from) >= 4)
        return unary<Via<U, U>, U, L>;
      if (t8 && sizeOf(p.to) == 4)
        return nullptr;
      switch (p.from) {
      case Type::U32:
        return t8 ? (f8 ? unary<Via<L, U>, L, L> : unary<Via<L, U>, L, U>)
                  : unary<Via<U, U>, U, U>;
      case Type::S32:
        return t8 ? (f8 ? unary<Via<L, int32_t>, L, L>
                        : unary<Via<L, int32_t>, L, U>)
                  : unary<Via<U, U>, U, U>;
      case Type::U16:
        return f8   ? nullptr
               : t8 ? unary<Via<L, uint16_t>, L, U>
                    : unary<Via<U, uint16_t>, U, U>;
      case Type::S16:
        return f8   ? nullptr
               : t8 ? unary<Via<L, int16_t>, L, U>
                    : unary<Via<U, int16_t>, U, U>;
      case Type::U8:
        return f8   ? nullptr
               : t8 ? unary<Via<L, uint8_t>, L, U>
                    : unary<Via<U, uint8_t>, U, U>;
      case Type::S8:
        return f8   ? nullptr
               : t8 ? unary<Via<L, int8_t>, L, U>
                    : unary<Via<U, int8_t>, U, U>;
      case Type::U64:
      case Type::S64:
        return t8 ? unary<Via<L, L>, L, L> : nullptr;
      default:
        return nullptr;
      }
    }
    default:
      return nullptr;
    }
  }
  if (!exact)
    return nullptr;
  if (p.flags == 0 && p.mode == Rounding::Nearest) {
    if (is(Type::F32, Type::S32))
      return unary<IntToFloat, float, int32_t>;
    if (is(Type::F32, Type::U32))
      return unary<IntToFloat, float, uint32_t>;
    if (is(Type::F32, Type::F16))
      return unary<HalfToFloat, float, uint16_t>;
    if (is(Type::F16, Type::F32))
      return unary<FloatToHalf, uint16_t, float>;
    if (is(Type::F32, Type::BF16))
      return unary<Bf16ToFloat, float, uint16_t>;
    if (is(Type::BF16, Type::F32))
      return unary<FloatToBf16, uint16_t, float>;
    if (is(Type::S32, Type::F32))
      return unary<ToInt<true, int32_t>, int32_t, float>;
    if (is(Type::U32, Type::F32))
      return unary<ToInt<true, uint32_t>, uint32_t, float>;
  }
  if (p.flags == 0 && p.mode == Rounding::Zero) {
    if (is(Type::S32, Type::F32))
      return unary<ToInt<false, int32_t>, int32_t, float>;
    if (is(Type::U32, Type::F32))
      return unary<ToInt<false, uint32_t>, uint32_t, float>;
  }
  return nullptr;
}

Rounding modeOf(std::string_view name) {
  if (name.size() < 2)
    return Rounding::Nearest;
  switch (name[1]) {
  case 'z':
    return Rounding::Zero;
  case 'm':
    return Rounding::Down;
  case 'p':
    return Rounding::Up;
  default:
    return Rounding::Nearest;
  }
}

/// Groups: rounding ftz relu sat to from, found by word.
void buildCvt(Builder &b) {
  Plan p{b.match.first, b.match.last, 0, Rounding::Nearest};
  // One type named twice has one group's first and last; "to" is the first.
  std::string_view rounding;
  for (std::string_view g : b.match.groups) {
    if (g == "ftz")
      p.flags |= Ftz;
    else if (g == "relu")
      p.flags |= Relu;
    else if (g == "sat")
      p.flags |= Sat;
    else if (!g.empty() && g[0] == 'r' && g != "relu")
      rounding = g;
  }
  bool integral = rounding.size() == 3;
  p.mode = modeOf(rounding);
  bool ft = isFloat(p.to), ff = isFloat(p.from);
  auto need = [&](const char *what) {
    b.fail("'cvt' from " + std::string(b.group(b.match.groups.size() - 1)) +
           " to " + std::string(b.group(b.match.groups.size() - 2)) + " " +
           what);
  };
  if (ff && !ft && !integral)
    return need("needs .rni, .rzi, .rmi or .rpi");
  if (!ff && ft && (rounding.empty() || integral))
    return need("needs .rn, .rz, .rm or .rp");
  if (!ff && !ft && !rounding.empty())
    return need("takes no rounding");
  if (ff && ft) {
    bool narrows = sizeOf(p.to) < sizeOf(p.from) ||
                   (sizeOf(p.to) == sizeOf(p.from) && p.to != p.from);
    if (narrows && (rounding.empty() || integral))
      return need("needs .rn, .rz, .rm or .rp");
    if (integral)
      p.flags |= Integral;
  }
  // Without subnormal sources and results .ftz changes nothing.
  if (p.from != Type::F32 && p.to != Type::F32)
    p.flags &= uint8_t(~Ftz);
  std::memcpy(&b.inst.aux, &p, 4);
  b.inst.regBytes = b.widths[0];
  b.inst.bytes = b.widths[1] == 8 ? 8 : 4;
  Plan q = p;
  // What is too large for an integer is clamped with and without .sat.
  if (ff && !ft)
    q.flags &= uint8_t(~Sat);
  b.inst.fn = fastConvert(q, b.widths[1], b.widths[0]);
  if (!b.inst.fn)
    b.inst.fn = slowConvert;
}

//===- Pairs and narrow floats --------------------------------------------===//

enum class Narrow : uint8_t { F16, BF16, TF32, E4M3, E5M2 };
Format formatOf(Narrow n) {
  switch (n) {
  case Narrow::F16:
    return formatF16;
  case Narrow::BF16:
    return formatBF16;
  case Narrow::TF32:
    return formatTF32;
  case Narrow::E4M3:
    return formatE4M3;
  default:
    return formatE5M2;
  }
}
uint32_t narrow(double v, Narrow n, Rounding mode, bool relu, bool sat) {
  Format f = formatOf(n);
  if (v != v)
    return n == Narrow::TF32   ? 0x7fffffffu
           : n == Narrow::E4M3 ? 0x7fu
           : n == Narrow::E5M2 ? 0x7fu
                               : 0x7fffu;
  if (relu && !(v > 0))
    v = 0;
  uint32_t r = roundTo(v, f, mode, sat);
  return n == Narrow::TF32 ? r << 13 : r;
}
struct PairPlan {
  Narrow to;
  Rounding mode;
  uint8_t relu, sat;
};
/// d = {a, b}: a in the upper half.
void pair(Warp &w, const Inst &in, uint32_t m) {
  PairPlan p;
  std::memcpy(&p, &in.aux, 4);
  const float *a = slot<float>(w, in.o[1]), *b = slot<float>(w, in.o[2]);
  unsigned shift = in.bytes;
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    return narrow(double(a[i]), p.to, p.mode, p.relu, p.sat) << shift |
           narrow(double(b[i]), p.to, p.mode, p.relu, p.sat);
  });
}
/// One value, for tf32 and saturating bf16.
void single(Warp &w, const Inst &in, uint32_t m) {
  PairPlan p;
  std::memcpy(&p, &in.aux, 4);
  const float *a = slot<float>(w, in.o[1]);
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    return narrow(double(a[i]), p.to, p.mode, p.relu, p.sat);
  });
}
/// f16x2 to two bytes and back.
void halvesToBytes(Warp &w, const Inst &in, uint32_t m) {
  PairPlan p;
  std::memcpy(&p, &in.aux, 4);
  const uint32_t *a = w.r32(in.o[1]);
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    return narrow(double(halfToFloat(a[i] >> 16)), p.to, p.mode, p.relu, p.sat)
               << 8 |
           narrow(double(halfToFloat(a[i] & 0xffff)), p.to, p.mode, p.relu,
                  p.sat);
  });
}
void bytesToHalves(Warp &w, const Inst &in, uint32_t m) {
  PairPlan p;
  std::memcpy(&p, &in.aux, 4);
  const uint32_t *a = w.r32(in.o[1]);
  Format f = formatOf(p.to);
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    return narrow(valueOf(a[i] >> 8 & 0xff, f), Narrow::F16, p.mode, p.relu,
                  false)
               << 16 |
           narrow(valueOf(a[i] & 0xff, f), Narrow::F16, p.mode, p.relu, false);
  });
}
Narrow narrowOf(std::string_view name) {
  return name.substr(0, 4) == "bf16"   ? Narrow::BF16
         : name.substr(0, 3) == "f16"  ? Narrow::F16
         : name.substr(0, 4) == "tf32" ? Narrow::TF32
         : name.substr(0, 4) == "e4m3" ? Narrow::E4M3
                                       : Narrow::E5M2;
}
void setPair(Builder &b, std::string_view format) {
  PairPlan p{narrowOf(format), Rounding::Nearest, 0, 0};
  for (std::string_view g : b.match.groups) {
    if (g == "rz")
      p.mode = Rounding::Zero;
    else if (g == "rna")
      p.mode = Rounding::NearestAway;
    else if (g == "relu")
      p.relu = 1;
    else if (g == "satfinite")
      p.sat = 1;
  }
  std::memcpy(&b.inst.aux, &p, 4);
  b.inst.bytes = p.to == Narrow::E4M3 || p.to == Narrow::E5M2 ? 8 : 16;
}
void buildPair(Builder &b) {
  size_t n = b.match.groups.size();
  setPair(b, b.group(n - 2));
  PairPlan p;
  std::memcpy(&p, &b.inst.aux, 4);
  b.inst.fn = pair;
  if (p.mode == Rounding::Nearest && !p.relu && !p.sat) {
    if (p.to == Narrow::F16)
      b.inst.fn = binary<PackHalf, uint32_t, float, float>;
    else if (p.to == Narrow::BF16)
      b.inst.fn = binary<PackBf16, uint32_t, float, float>;
  }
}
void buildSingle(Builder &b) {
  setPair(b, b.group(b.match.groups.size() - 2));
  b.inst.fn = single;
}
void buildHalvesToBytes(Builder &b) {
  setPair(b, b.group(b.match.groups.size() - 2));
  b.inst.fn = halvesToBytes;
}
void buildBytesToHalves(Builder &b) {
  setPair(b, b.group(b.match.groups.size() - 1));
  b.inst.fn = bytesToHalves;
}

/// Numbers of e2m1 by their codes without the sign, and the least magnitudes
/// that round to each: ties go to even codes, so where one does, to it.
constexpr double fours[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
uint32_t toFour(double v) {
  if (v != v)
    return 7; // the largest
  uint32_t code = 7;
  double a = std::fabs(v);
  for (uint32_t c = 0; c < 7; ++c) {
    double middle = (fours[c] + fours[c + 1]) / 2;
    if (a < middle || (a == middle && c % 2 == 0)) {
      code = c;
      break;
    }
  }
  return (std::signbit(v) ? 8u : 0u) | code;
}
/// d = {a, b}: a in the upper half of a byte.
void pairOfFours(Warp &w, const Inst &in, uint32_t m) {
  const float *a = slot<float>(w, in.o[1]), *b = slot<float>(w, in.o[2]);
  bool relu = in.aux;
  auto convert = [&](float v) { return relu && v < 0 ? 0 : toFour(double(v)); };
  lanes(w.r32(in.o[0]), m,
        [&](unsigned i) { return convert(a[i]) << 4 | convert(b[i]); });
}
void foursToHalves(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[1]);
  bool relu = in.aux;
  auto convert = [&](uint32_t code) {
    double v = code & 8 ? -fours[code & 7] : fours[code & 7];
    return narrow(v, Narrow::F16, Rounding::Nearest, relu, false);
  };
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    return convert(a[i] >> 4 & 15) << 16 | convert(a[i] & 15);
  });
}
void buildFours(Builder &b) {
  b.inst.aux = 0;
  bool widens = false;
  for (std::string_view g : b.match.groups) {
    b.inst.aux |= g == "relu";
    widens |= g == "f16x2";
  }
  b.inst.fn = widens ? foursToHalves : pairOfFours;
}

/// cvt.pack.sat: two s32 to narrower integers, above what c has.
void packSat(Warp &w, const Inst &in, uint32_t m) {
  Type t = Type(in.aux);
  unsigned bits = in.bytes;
  const uint32_t *a = w.r32(in.o[1]), *b = w.r32(in.o[2]);
  const uint32_t *c = in.count ? w.r32(in.o[3]) : nullptr;
  uint32_t keep = bits == 16 ? 0xffffu : bits == 8 ? 0xffu : (1u << bits) - 1;
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    int64_t x = int32_t(a[i]), y = int32_t(b[i]);
    uint32_t r = (uint32_t(clampInt(x, t)) & keep) << bits |
                 (uint32_t(clampInt(y, t)) & keep);
    return c ? c[i] << (2 * bits) | r : r;
  });
}
void buildPackSat(Builder &b) {
  Type t = parseType(b.group(2));
  b.inst.aux = uint32_t(t);
  b.inst.bytes = uint8_t(sizeOf(t) * 8);
  b.inst.count = b.ast.operands.size() == 4;
  b.inst.fn = packSat;
}

#define FROM_TO "u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f32|f64"
const Row rows[] = {
    {"cvt", "[$rnd|$irnd] [ftz] [sat] " FROM_TO " " FROM_TO, "=u~ t~", 10, 0,
     buildCvt},
    {"cvt", "rn|rz relu f16|bf16 f32", "=u t", 70, 80, buildCvt},
    {"cvt", "rn|rz [relu] satfinite f16|bf16 f32", "=b16 f32", 81, 80,
     buildSingle},
    {"cvt", "rna tf32 f32", "=b32 f32", 70, 80, buildSingle},
    {"cvt", "rn|rz [relu] tf32 f32", "=b32 f32", 78, 90, buildSingle},
    {"cvt", "rn|rz|rna [relu] satfinite tf32 f32", "=b32 f32", 81, 80,
     buildSingle},
    {"cvt", "rn|rz [relu] [satfinite] f16x2|bf16x2 f32", "=b32 f32 f32", 70, 80,
     buildPair},
    {"cvt", "rn satfinite [relu] e4m3x2|e5m2x2 f32", "=b16 f32 f32", 78, 89,
     buildPair},
    {"cvt", "rn satfinite [relu] e4m3x2|e5m2x2 f16x2", "=b16 b32", 78, 89,
     buildHalvesToBytes},
    {"cvt", "rn [relu] f16x2 e4m3x2|e5m2x2", "=b32 b16", 78, 89,
     buildBytesToHalves},
    {"cvt", "rn satfinite [relu] e2m1x2 f32", "=b8 f32 f32", 86, 100,
     buildFours},
    {"cvt", "rn [relu] f16x2 e2m1x2", "=b32 b8", 86, 100, buildFours},
    {"cvt", "pack sat u16|s16 s32", "=b32 b32 b32", 65, 72, buildPackSat},
    {"cvt", "pack sat u8|s8 s32 b32", "=b32 b32 b32 b32", 65, 72, buildPackSat},
};
#undef FROM_TO

} // namespace

void addConvertRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
