//===- FloatMath.cpp - f32 and f64 arithmetic -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IEEE operations are exact in every rounding mode: to nearest by the host's
// own, the others by the host's in that mode. Approximations (ex2.approx and
// the like) are the correctly rounded values or within a hair of them;
// docs/emulator.md states what the hardware allows itself.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

#include <cfenv>

namespace fi::emulator::FI_EMU_ISA {
namespace {

/// Flags of Inst::aux.
enum : uint32_t {
  Ftz = 1,
  Sat = 2,
  ModeShift = 4, // Rounding
};

struct Scope {
  explicit Scope(Rounding mode) {
    static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                FE_UPWARD};
    old = std::fegetround();
    std::fesetround(modes[int(mode)]);
  }
  ~Scope() { std::fesetround(old); }
  int old;
};

template <class T> T clean(T v) {
  if constexpr (sizeof(T) == 4)
    return canonical(v);
  return v;
}
template <class T> T saturate(T v) {
  // NaN becomes +0.
  return v > T(0) ? (v < T(1) ? v : T(1)) : T(0);
}

struct Add {
  template <class T> static T f(T a, T b) { return a + b; }
};
struct Sub {
  template <class T> static T f(T a, T b) { return a - b; }
};
struct Mul {
  template <class T> static T f(T a, T b) { return a * b; }
};
struct Div {
  template <class T> static T f(T a, T b) { return a / b; }
};
struct Fma {
  static float f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double f(double a, double b, double c) {
    return __builtin_fma(a, b, c);
  }
};
struct Rcp {
  template <class T> static T f(T a) { return T(1) / a; }
};
struct Sqrt {
  static float f(float a) { return __builtin_sqrtf(a); }
  static double f(double a) { return __builtin_sqrt(a); }
};
struct Rsqrt {
  static float f(float a) { return float(1.0 / __builtin_sqrt(double(a))); }
  static double f(double a) { return 1.0 / __builtin_sqrt(a); }
};
struct Ex2 {
  static float f(float a) { return float(exp2Of(double(a))); }
};
struct Lg2 {
  static float f(float a) { return float(std::log2(double(a))); }
};
struct Sin {
  static float f(float a) { return float(std::sin(double(a))); }
};
struct Cos {
  static float f(float a) { return float(std::cos(double(a))); }
};
struct Tanh {
  static float f(float a) { return float(std::tanh(double(a))); }
};
/// div.full and div.approx: no IEEE rounding, but good for every divisor; the
/// approximation gives 0 for divisors beyond 2^126.
struct DivApprox {
  static float f(float a, float b) {
    float q = a / b;
    float m = std::fabs(b);
    bool huge = m > 8.507059173023462e+37f && m <= 3.402823466e+38f;
    return huge ? (std::fabs(a) == HUGE_VALF ? floatOf(nan32) : q * 0.0f) : q;
  }
};

/// To nearest, with or without .ftz: the fast road.
template <class F, class T, bool FtzOn> struct Near {
  static T in(T v) {
    if constexpr (FtzOn)
      return flush(v);
    return v;
  }
  template <class... A> static T f(A... a) {
    T r = clean(F::f(in(a)...));
    return in(r);
  }
};

/// Everything else: modes, saturation. Not inlined, so that nothing moves
/// across the change of the mode.
template <class F, class T, unsigned N>
__attribute__((noinline)) void compute(const T *const *s, T *out, bool ftz) {
  for (unsigned i = 0; i < 32; ++i) {
    T v[N];
    for (unsigned k = 0; k < N; ++k) {
      v[k] = s[k][i];
      if constexpr (sizeof(T) == 4)
        v[k] = ftz ? flush(v[k]) : v[k];
    }
    T r;
    if constexpr (N == 1)
      r = F::f(v[0]);
    else if constexpr (N == 2)
      r = F::f(v[0], v[1]);
    else
      r = F::f(v[0], v[1], v[2]);
    out[i] = r;
  }
}
template <class F, class T, unsigned N>
void slow(Warp &w, const Inst &in, uint32_t m) {
  using S = typename Io<T>::S;
  const T *s[N];
  for (unsigned k = 0; k < N; ++k)
    s[k] = slot<T>(w, in.o[1 + k]);
  T out[32];
  bool ftz = in.aux & Ftz;
  {
    Scope scope(Rounding(in.aux >> ModeShift));
    compute<F, T, N>(s, out, ftz);
  }
  bool sat = in.aux & Sat;
  lanes(slot<S>(w, in.o[0]), m, [&](unsigned i) {
    T r = clean(out[i]);
    if constexpr (sizeof(T) == 4)
      r = ftz ? flush(r) : r;
    return Io<T>::put(sat ? saturate(r) : r);
  });
}

template <class F, class T, bool FtzOn, unsigned N> Handler near() {
  if constexpr (N == 1)
    return unary<Near<F, T, FtzOn>, T, T>;
  else if constexpr (N == 2)
    return binary<Near<F, T, FtzOn>, T, T, T>;
  else
    return ternary<Near<F, T, FtzOn>, T, T, T, T>;
}

Rounding modeOf(std::string_view name) {
  return name == "rz"   ? Rounding::Zero
         : name == "rm" ? Rounding::Down
         : name == "rp" ? Rounding::Up
                        : Rounding::Nearest;
}

template <class F, unsigned N>
void pick(Builder &b, std::string_view rounding, bool ftz, bool sat) {
  Rounding mode = modeOf(rounding);
  b.inst.aux =
      (ftz ? Ftz : 0u) | (sat ? Sat : 0u) | uint32_t(mode) << ModeShift;
  bool fast = mode == Rounding::Nearest && !sat;
  if (b.type() == Type::F64)
    b.inst.fn = fast ? near<F, double, false, N>() : slow<F, double, N>;
  else if (!fast)
    b.inst.fn = slow<F, float, N>;
  else
    b.inst.fn = ftz ? near<F, float, true, N>() : near<F, float, false, N>();
}
/// Groups: rounding, ftz, sat, type.
template <class F, unsigned N> void buildArith(Builder &b) {
  pick<F, N>(b, b.group(0), b.has(1), b.has(2));
}
/// Groups: approx or full, ftz, type.
template <class F, unsigned N> void buildApprox(Builder &b) {
  bool ftz = b.has(1);
  b.inst.fn = ftz ? near<F, float, true, N>() : near<F, float, false, N>();
}
template <class F> void buildApprox64(Builder &b) {
  // f64 approximations work on the upper words alone.
  b.inst.fn = unary<Near<F, double, false>, double, double>;
}

//===- Minimum and maximum ------------------------------------------------===//

template <bool Max> inline bool firstWins(uint32_t a, uint32_t b) {
  // Total order of the bits: -0 is below +0.
  int32_t x = int32_t(a), y = int32_t(b);
  x = x < 0 ? int32_t(uint32_t(x) ^ 0x7fffffffu) : x;
  y = y < 0 ? int32_t(uint32_t(y) ^ 0x7fffffffu) : y;
  return Max ? x >= y : x <= y;
}
template <bool Max> inline bool firstWins(uint64_t a, uint64_t b) {
  int64_t x = int64_t(a), y = int64_t(b);
  x = x < 0 ? int64_t(uint64_t(x) ^ 0x7fffffffffffffffull) : x;
  y = y < 0 ? int64_t(uint64_t(y) ^ 0x7fffffffffffffffull) : y;
  return Max ? x >= y : x <= y;
}
template <bool Max, bool KeepNan, bool FtzOn, bool Xor> struct MinMax {
  template <class T> static T f(T a, T b) {
    if constexpr (FtzOn) {
      a = flush(a);
      b = flush(b);
    }
    auto x = bitsOf(a), y = bitsOf(b);
    constexpr auto top = decltype(x)(1) << (sizeof(T) * 8 - 1);
    auto sign = (x ^ y) & top;
    if constexpr (Xor) {
      x &= ~top;
      y &= ~top;
    }
    bool an = a != a, bn = b != b;
    auto r = firstWins<Max>(x, y) ? x : y;
    r = an ? y : r;
    r = bn ? x : r;
    if constexpr (Xor)
      r = (r & ~top) | sign;
    bool nan = KeepNan ? (an | bn) : (an & bn);
    if constexpr (sizeof(T) == 4)
      return floatOf(nan ? nan32 : r);
    else
      return doubleOf(nan ? 0x7fffffffffffffffull : r);
  }
};
template <bool Max> void buildMinMax(Builder &b) {
  using T = float;
  if (b.type() == Type::F64) {
    b.inst.fn =
        binary<MinMax<Max, false, false, false>, double, double, double>;
    return;
  }
  bool ftz = b.has(0), nan = b.has(1), x = b.is(2, "xorsign");
  b.inst.fn =
      x ? (ftz ? (nan ? binary<MinMax<Max, true, true, true>, T, T, T>
                      : binary<MinMax<Max, false, true, true>, T, T, T>)
               : (nan ? binary<MinMax<Max, true, false, true>, T, T, T>
                      : binary<MinMax<Max, false, false, true>, T, T, T>))
        : (ftz ? (nan ? binary<MinMax<Max, true, true, false>, T, T, T>
                      : binary<MinMax<Max, false, true, false>, T, T, T>)
               : (nan ? binary<MinMax<Max, true, false, false>, T, T, T>
                      : binary<MinMax<Max, false, false, false>, T, T, T>));
}

/// Of three, by their magnitudes with Abs.
template <bool Max, bool KeepNan, bool FtzOn, bool Abs> struct MinMax3 {
  static float f(float a, float b, float c) {
    using Two = MinMax<Max, KeepNan, FtzOn, false>;
    auto in = [](float v) {
      return Abs ? floatOf(bitsOf(v) & 0x7fffffffu) : v;
    };
    return Two::f(Two::f(in(a), in(b)), in(c));
  }
};
/// Groups: ftz, NaN, abs.
template <bool Max> void buildMinMax3(Builder &b) {
  using T = float;
  static const Handler handlers[] = {
      ternary<MinMax3<Max, false, false, false>, T, T, T, T>,
      ternary<MinMax3<Max, false, false, true>, T, T, T, T>,
      ternary<MinMax3<Max, true, false, false>, T, T, T, T>,
      ternary<MinMax3<Max, true, false, true>, T, T, T, T>,
      ternary<MinMax3<Max, false, true, false>, T, T, T, T>,
      ternary<MinMax3<Max, false, true, true>, T, T, T, T>,
      ternary<MinMax3<Max, true, true, false>, T, T, T, T>,
      ternary<MinMax3<Max, true, true, true>, T, T, T, T>};
  b.inst.fn = handlers[4 * b.has(0) + 2 * b.has(1) + b.has(2)];
}

struct Abs {
  template <class T> static T f(T a) {
    if constexpr (sizeof(T) == 4) // a NaN is the canonical one, as on an H200
      return canonical(floatOf(bitsOf(a) & 0x7fffffffu));
    else
      return doubleOf(bitsOf(a) & 0x7fffffffffffffffull);
  }
};
struct Neg {
  template <class T> static T f(T a) {
    if constexpr (sizeof(T) == 4)
      return floatOf(bitsOf(a) ^ 0x80000000u);
    else
      return doubleOf(bitsOf(a) ^ 0x8000000000000000ull);
  }
};
template <class F> struct FlushBefore {
  static float f(float a) { return F::f(flush(a)); }
};
template <class F> void buildSign(Builder &b) {
  b.inst.fn = b.type() == Type::F64 ? unary<F, double, double>
              : b.has(0)            ? unary<FlushBefore<F>, float, float>
                                    : unary<F, float, float>;
}
struct Copysign {
  template <class T> static T f(T a, T b) {
    if constexpr (sizeof(T) == 4)
      return floatOf((bitsOf(a) & 0x80000000u) | (bitsOf(b) & 0x7fffffffu));
    else
      return doubleOf((bitsOf(a) & 0x8000000000000000ull) |
                      (bitsOf(b) & 0x7fffffffffffffffull));
  }
};
void buildCopysign(Builder &b) {
  b.inst.fn = b.type() == Type::F64 ? binary<Copysign, double, double, double>
                                    : binary<Copysign, float, float, float>;
}

template <unsigned Which, class T>
void testp(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]);
  constexpr T normal =
      sizeof(T) == 4 ? T(1.1754943508222875e-38) : T(2.2250738585072014e-308);
  uint32_t r = lanesMask([&](unsigned i) {
    T v = a[i];
    T x = v < 0 ? -v : v;
    bool nan = v != v, inf = x == T(HUGE_VAL);
    switch (Which) {
    case 0:
      return !nan && !inf;
    case 1:
      return inf;
    case 2:
      return !nan;
    case 3:
      return nan;
    case 4:
      return !nan && !inf && (x >= normal);
    default:
      return x > 0 && x < normal;
    }
  });
  w.setPred(in.o[0], r, m);
}
template <class T> Handler pickTest(std::string_view name) {
  return name == "finite"       ? testp<0, T>
         : name == "infinite"   ? testp<1, T>
         : name == "number"     ? testp<2, T>
         : name == "notanumber" ? testp<3, T>
         : name == "normal"     ? testp<4, T>
                                : testp<5, T>;
}
void buildTestp(Builder &b) {
  b.inst.fn = b.type() == Type::F64 ? pickTest<double>(b.group(0))
                                    : pickTest<float>(b.group(0));
}

/// Packed pairs of f32 (sm_100): in 64-bit registers.
template <class F, unsigned N, bool FtzOn>
void packed32(Warp &w, const Inst &in, uint32_t m) {
  uint64_t *d = w.r64(in.o[0]);
  const uint64_t *s[N];
  for (unsigned k = 0; k < N; ++k)
    s[k] = w.r64(in.o[1 + k]);
  using G = Near<F, float, FtzOn>;
  lanes(d, m, [&](unsigned i) {
    uint64_t r = 0;
    for (unsigned h = 0; h < 2; ++h) {
      float v[3] = {};
      for (unsigned k = 0; k < N; ++k)
        v[k] = floatOf(uint32_t(s[k][i] >> (32 * h)));
      float x;
      if constexpr (N == 2)
        x = G::f(v[0], v[1]);
      else
        x = G::f(v[0], v[1], v[2]);
      r |= uint64_t(bitsOf(x)) << (32 * h);
    }
    return r;
  });
}
template <class F, unsigned N> void buildPacked32(Builder &b) {
  b.inst.fn = b.has(1) ? packed32<F, N, true> : packed32<F, N, false>;
}

const Row rows[] = {
    {"add", "[$rnd] [ftz] [sat] f32", "=t t t", 10, 0, buildArith<Add, 2>},
    {"sub", "[$rnd] [ftz] [sat] f32", "=t t t", 10, 0, buildArith<Sub, 2>},
    {"mul", "[$rnd] [ftz] [sat] f32", "=t t t", 10, 0, buildArith<Mul, 2>},
    {"fma", "$rnd [ftz] [sat] f32", "=t t t t", 20, 20, buildArith<Fma, 3>},
    {"mad", "[$rnd] [ftz] [sat] f32", "=t t t t", 10, 0, buildArith<Fma, 3>},
    {"add", "[$rnd] [ftz] [sat] f64", "=t t t", 10, 13, buildArith<Add, 2>},
    {"sub", "[$rnd] [ftz] [sat] f64", "=t t t", 10, 13, buildArith<Sub, 2>},
    {"mul", "[$rnd] [ftz] [sat] f64", "=t t t", 10, 13, buildArith<Mul, 2>},
    {"fma", "$rnd [ftz] [sat] f64", "=t t t t", 10, 13, buildArith<Fma, 3>},
    {"mad", "$rnd [ftz] [sat] f64", "=t t t t", 10, 13, buildArith<Fma, 3>},
    {"div", "$rnd [ftz] [sat] f32", "=t t t", 14, 20, buildArith<Div, 2>},
    {"div", "$rnd [ftz] [sat] f64", "=t t t", 14, 13, buildArith<Div, 2>},
    {"div", "full [ftz] f32", "=t t t", 14, 0, buildApprox<Div, 2>},
    {"div", "approx [ftz] f32", "=t t t", 14, 0, buildApprox<DivApprox, 2>},
    {"rcp", "$rnd [ftz] [sat] f32|f64", "=t t", 14, 20, buildArith<Rcp, 1>},
    {"rcp", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Rcp, 1>},
    {"rcp", "approx ftz f64", "=t t", 21, 20, buildApprox64<Rcp>},
    {"sqrt", "$rnd [ftz] [sat] f32|f64", "=t t", 14, 20, buildArith<Sqrt, 1>},
    {"sqrt", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Sqrt, 1>},
    {"rsqrt", "approx [ftz] f32", "=t t", 10, 0, buildApprox<Rsqrt, 1>},
    {"rsqrt", "approx [ftz] f64", "=t t", 14, 13, buildApprox64<Rsqrt>},
    {"ex2", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Ex2, 1>},
    {"lg2", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Lg2, 1>},
    {"sin", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Sin, 1>},
    {"cos", "approx [ftz] f32", "=t t", 14, 0, buildApprox<Cos, 1>},
    {"tanh", "approx [ftz] f32", "=t t", 70, 75, buildApprox<Tanh, 1>},
    {"min", "[ftz] [NaN] f32", "=t t t", 10, 0, buildMinMax<false>},
    {"min", "[ftz] [NaN] xorsign abs f32", "=t t t", 72, 86,
     buildMinMax<false>},
    {"max", "[ftz] [NaN] f32", "=t t t", 10, 0, buildMinMax<true>},
    {"max", "[ftz] [NaN] xorsign abs f32", "=t t t", 72, 86, buildMinMax<true>},
    {"min", "[ftz] [NaN] [abs] f32", "=t t t t", 88, 100, buildMinMax3<false>},
    {"max", "[ftz] [NaN] [abs] f32", "=t t t t", 88, 100, buildMinMax3<true>},
    {"min", "f64", "=t t t", 10, 13, buildMinMax<false>},
    {"max", "f64", "=t t t", 10, 13, buildMinMax<true>},
    {"abs", "[ftz] f32|f64", "=t t", 10, 0, buildSign<Abs>},
    {"neg", "[ftz] f32|f64", "=t t", 10, 0, buildSign<Neg>},
    {"copysign", "f32|f64", "=t t t", 20, 20, buildCopysign},
    {"testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64",
     "=p t", 20, 20, buildTestp},
    {"add", "[rn] [ftz] f32x2", "=b64 b64 b64", 86, 100, buildPacked32<Add, 2>},
    {"sub", "[rn] [ftz] f32x2", "=b64 b64 b64", 86, 100, buildPacked32<Sub, 2>},
    {"mul", "[rn] [ftz] f32x2", "=b64 b64 b64", 86, 100, buildPacked32<Mul, 2>},
    {"fma", "rn [ftz] f32x2", "=b64 b64 b64 b64", 86, 100,
     buildPacked32<Fma, 3>},
};

} // namespace

void addFloatRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
