//===- HalfMath.cpp - f16 and bf16 arithmetic -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every result is rounded once. Sums and products of f16 are rounded from
// float, whose 24 bits are enough for that to be innocuous; products and sums
// of three numbers go through a sum rounded to odd.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

enum : uint32_t { Ftz = 1, Sat = 2, Relu = 4, KeepNan = 8, XorSign = 16 };

struct F16 {
  static constexpr uint32_t one = 0x3c00, nan = 0x7fff;
  static float load(uint32_t v) { return halfToFloat(v & 0xffff); }
  static uint32_t store(float v) { return floatToHalf(v); }
  static uint32_t flushBits(uint32_t v) { return v & 0x7c00 ? v : v & 0x8000; }
  static uint32_t fma(float a, float b, float c) {
    // The product is exact in float.
    float r = addToOdd(a * b, c);
    return store(r);
  }
};
struct BF16 {
  static constexpr uint32_t one = 0x3f80, nan = 0x7fff;
  static float load(uint32_t v) { return bf16ToFloat(v & 0xffff); }
  static uint32_t store(float v) { return floatToBf16(v); }
  static uint32_t flushBits(uint32_t v) { return v & 0x7f80 ? v : v & 0x8000; }
  static uint32_t fma(float a, float b, float c) {
    double s = addToOdd(double(a) * double(b), double(c));
    if (s != s)
      return nan;
    // To float by rounding to odd again, then once to 8 bits.
    float f = float(s);
    uint32_t bits = bitsOf(f);
    if (double(f) != s && (bits & 0x7f800000u) != 0x7f800000u) {
      double back = double(f);
      bool away = s > 0 ? back > s : back < s;
      bits = (bits - away) | 1;
      f = floatOf(bits);
    }
    return store(f);
  }
};

struct Add {
  template <class H> static uint32_t f(float a, float b, float) {
    return H::store(a + b);
  }
};
struct Sub {
  template <class H> static uint32_t f(float a, float b, float) {
    return H::store(a - b);
  }
};
struct Mul {
  template <class H> static uint32_t f(float a, float b, float) {
    if constexpr (std::is_same_v<H, F16>)
      return H::store(a * b);
    else
      return H::fma(a, b, -0.0f);
  }
};
struct Fma {
  template <class H> static uint32_t f(float a, float b, float c) {
    return H::fma(a, b, c);
  }
};
template <bool Max> struct MinMax {
  template <class H> static uint32_t f(float a, float b, float) {
    return pick<H>(a, b, 0);
  }
  template <class H> static uint32_t pick(float a, float b, uint32_t flags) {
    uint32_t sign =
        flags & XorSign ? ((bitsOf(a) ^ bitsOf(b)) >> 16) & 0x8000u : 0;
    if (flags & XorSign) {
      a = std::fabs(a);
      b = std::fabs(b);
    }
    bool an = a != a, bn = b != b;
    int32_t x = int32_t(bitsOf(a)), y = int32_t(bitsOf(b));
    x = x < 0 ? int32_t(uint32_t(x) ^ 0x7fffffffu) : x;
    y = y < 0 ? int32_t(uint32_t(y) ^ 0x7fffffffu) : y;
    float r = (Max ? x >= y : x <= y) ? a : b;
    r = an ? b : r;
    r = bn ? a : r;
    bool nan = flags & KeepNan ? (an | bn) : (an & bn);
    return nan ? H::nan : H::store(r) | sign;
  }
};
struct Ex2 {
  template <class H> static uint32_t f(float a, float, float) {
    return H::store(float(exp2Of(double(a))));
  }
};
struct Tanh {
  template <class H> static uint32_t f(float a, float, float) {
    return H::store(float(std::tanh(double(a))));
  }
};

template <class F, class H>
inline uint32_t half(uint32_t a, uint32_t b, uint32_t c, uint32_t flags) {
  if (flags & Ftz) {
    a = H::flushBits(a & 0xffff);
    b = H::flushBits(b & 0xffff);
    c = H::flushBits(c & 0xffff);
  }
  uint32_t r;
  if constexpr (std::is_same_v<F, MinMax<true>> ||
                std::is_same_v<F, MinMax<false>>)
    r = F::template pick<H>(H::load(a), H::load(b), flags);
  else
    r = F::template f<H>(H::load(a), H::load(b), H::load(c));
  if (flags & Ftz)
    r = H::flushBits(r);
  if (flags & Relu) // NaN stays, in its canonical form
    r = (r & 0x8000) && (r & 0x7fff) <= (H::one == 0x3c00 ? 0x7c00u : 0x7f80u)
            ? 0
            : r;
  if (flags & Sat) {
    float v = H::load(r);
    r = v > 0 ? (v < 1 ? r : H::one) : 0;
  }
  return r & 0xffff;
}

template <class F, class H, unsigned N, bool Packed>
void compute(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[1]);
  const uint32_t *b = w.r32(in.o[N > 1 ? 2 : 1]);
  const uint32_t *c = w.r32(in.o[N > 2 ? 3 : 1]);
  uint32_t flags = in.aux;
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    uint32_t r = half<F, H>(a[i], b[i], c[i], flags);
    if constexpr (Packed)
      r |= half<F, H>(a[i] >> 16, b[i] >> 16, c[i] >> 16, flags) << 16;
    return r;
  });
}

template <class F, unsigned N> Handler pick(Type t) {
  switch (t) {
  case Type::F16:
    return compute<F, F16, N, false>;
  case Type::F16x2:
    return compute<F, F16, N, true>;
  case Type::BF16:
    return compute<F, BF16, N, false>;
  default:
    return compute<F, BF16, N, true>;
  }
}

/// Flags are whatever modifiers stand before the type.
void setFlags(Builder &b) {
  for (std::string_view g : b.match.groups) {
    if (g == "ftz")
      b.inst.aux |= Ftz;
    if (g == "sat")
      b.inst.aux |= Sat;
    if (g == "relu")
      b.inst.aux |= Relu;
  }
}
template <class F, unsigned N> void build(Builder &b) {
  setFlags(b);
  b.inst.fn = pick<F, N>(b.type());
}
template <bool Max> void buildMinMax(Builder &b) {
  setFlags(b);
  b.inst.aux |= (b.has(1) ? KeepNan : 0u) | (b.is(2, "xorsign") ? XorSign : 0u);
  b.inst.fn = pick<MinMax<Max>, 2>(b.type());
}

/// abs and neg change the sign bits alone.
template <bool Abs> void sign(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[1]);
  uint32_t bits = uint32_t(in.imm);
  bool ftz = in.aux & Ftz;
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    uint32_t v = a[i];
    if (ftz)
      v = F16::flushBits(v & 0xffff) | F16::flushBits(v >> 16) << 16;
    return Abs ? v & ~bits : v ^ bits;
  });
}
template <bool Abs> void buildSign(Builder &b) {
  setFlags(b);
  bool packed = b.type() == Type::F16x2 || b.type() == Type::BF16x2;
  b.inst.imm = packed ? 0x80008000 : 0x8000;
  b.inst.fn = sign<Abs>;
}

const Row rows[] = {
    {"add", "[rn] [ftz] [sat] f16|f16x2", "=t t t", 42, 53, build<Add, 2>},
    {"sub", "[rn] [ftz] [sat] f16|f16x2", "=t t t", 42, 53, build<Sub, 2>},
    {"mul", "[rn] [ftz] [sat] f16|f16x2", "=t t t", 42, 53, build<Mul, 2>},
    {"fma", "rn [ftz] [sat] f16|f16x2", "=t t t t", 42, 53, build<Fma, 3>},
    {"fma", "rn [ftz] relu f16|f16x2", "=t t t t", 70, 80, build<Fma, 3>},
    {"add", "[rn] bf16|bf16x2", "=t t t", 78, 90, build<Add, 2>},
    {"sub", "[rn] bf16|bf16x2", "=t t t", 78, 90, build<Sub, 2>},
    {"mul", "[rn] bf16|bf16x2", "=t t t", 78, 90, build<Mul, 2>},
    {"fma", "rn [relu] bf16|bf16x2", "=t t t t", 70, 80, build<Fma, 3>},
    {"min", "[ftz] [NaN] f16|f16x2|bf16|bf16x2", "=t t t", 70, 80,
     buildMinMax<false>},
    {"min", "[ftz] [NaN] xorsign abs f16|f16x2|bf16|bf16x2", "=t t t", 72, 86,
     buildMinMax<false>},
    {"max", "[ftz] [NaN] f16|f16x2|bf16|bf16x2", "=t t t", 70, 80,
     buildMinMax<true>},
    {"max", "[ftz] [NaN] xorsign abs f16|f16x2|bf16|bf16x2", "=t t t", 72, 86,
     buildMinMax<true>},
    {"abs", "[ftz] f16|f16x2", "=t t", 65, 53, buildSign<true>},
    {"neg", "[ftz] f16|f16x2", "=t t", 60, 53, buildSign<false>},
    {"abs", "bf16|bf16x2", "=t t", 70, 80, buildSign<true>},
    {"neg", "bf16|bf16x2", "=t t", 70, 80, buildSign<false>},
    {"ex2", "approx f16|f16x2", "=t t", 70, 75, build<Ex2, 1>},
    {"ex2", "approx ftz bf16|bf16x2", "=t t", 78, 90, build<Ex2, 1>},
    {"tanh", "approx f16|f16x2", "=t t", 70, 75, build<Tanh, 1>},
    {"tanh", "approx bf16|bf16x2", "=t t", 78, 90, build<Tanh, 1>},
};

} // namespace

void addHalfRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
