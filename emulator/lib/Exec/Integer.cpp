//===- Integer.cpp - Integer arithmetic -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

#include <limits>

namespace fi::emulator::FI_EMU_ISA {
namespace {

template <class T> using U = std::make_unsigned_t<T>;
/// A type whose arithmetic neither promotes to int nor overflows.
template <class T>
using W = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

struct Add {
  template <class T> static T f(T a, T b) { return T(W<T>(a) + W<T>(b)); }
};
struct AddSat {
  static int32_t f(int32_t a, int32_t b) {
    int64_t s = int64_t(a) + b;
    return int32_t(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
  }
};
struct Sub {
  template <class T> static T f(T a, T b) { return T(W<T>(a) - W<T>(b)); }
};
struct SubSat {
  static int32_t f(int32_t a, int32_t b) {
    int64_t s = int64_t(a) - b;
    return int32_t(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
  }
};
struct MulLo {
  template <class T> static T f(T a, T b) { return T(W<T>(a) * W<T>(b)); }
};
struct MulHi {
  template <class T> static T f(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      if constexpr (std::is_signed_v<T>)
        return T((__int128(a) * b) >> 64);
      else
        return T((static_cast<unsigned __int128>(a) * b) >> 64);
    } else {
      using L = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return T((L(a) * L(b)) >> (sizeof(T) * 8));
    }
  }
};
struct MulWide {
  static uint32_t f(uint16_t a, uint16_t b) { return uint32_t(a) * b; }
  static int32_t f(int16_t a, int16_t b) { return int32_t(a) * b; }
  static uint64_t f(uint32_t a, uint32_t b) { return uint64_t(a) * b; }
  static int64_t f(int32_t a, int32_t b) { return int64_t(a) * b; }
};
template <class M> struct Mad {
  template <class T> static T f(T a, T b, T c) { return Add::f(M::f(a, b), c); }
};
struct MadWide {
  template <class T, class D> static D f(T a, T b, D c) {
    return Add::f(D(MulWide::f(a, b)), c);
  }
};
struct MadHiSat {
  static int32_t f(int32_t a, int32_t b, int32_t c) {
    return AddSat::f(MulHi::f(a, b), c);
  }
};
template <bool Hi> struct Mul24 {
  template <class T> static T f(T a, T b) {
    int64_t x, y;
    if constexpr (std::is_signed_v<T>) {
      x = int64_t(int32_t(uint32_t(a) << 8) >> 8);
      y = int64_t(int32_t(uint32_t(b) << 8) >> 8);
    } else {
      x = a & 0xffffff;
      y = b & 0xffffff;
    }
    return T(Hi ? (x * y) >> 16 : x * y);
  }
};
struct Sad {
  template <class T> static T f(T a, T b, T c) {
    W<T> d = a < b ? W<T>(b) - W<T>(a) : W<T>(a) - W<T>(b);
    return T(d + W<T>(c));
  }
};
// What the hardware gives for a divisor of 0: all ones, and the dividend.
struct Div {
  template <class T> static T f(T a, T b) {
    if (b == 0)
      return T(~T(0));
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return T(0 - W<T>(a));
    return T(a / b);
  }
};
struct Rem {
  template <class T> static T f(T a, T b) {
    if (b == 0)
      return a;
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1))
        return 0;
    return T(a % b);
  }
};
struct Abs {
  template <class T> static T f(T a) { return a < 0 ? T(0 - W<T>(a)) : a; }
};
struct Neg {
  template <class T> static T f(T a) { return T(0 - W<T>(a)); }
};
struct Min {
  template <class T> static T f(T a, T b) { return b < a ? b : a; }
};
struct Max {
  template <class T> static T f(T a, T b) { return a < b ? b : a; }
};
struct Relu {
  template <class T> static T f(T v) { return v < 0 ? T(0) : v; }
};
template <class M> struct ReluOf {
  template <class T> static T f(T a, T b) { return Relu::f(M::f(a, b)); }
};
/// Pairs of 16-bit numbers.
template <class M, class T> struct Packed {
  static uint32_t f(uint32_t a, uint32_t b) {
    uint32_t lo = uint16_t(M::f(T(a), T(b)));
    uint32_t hi = uint16_t(M::f(T(a >> 16), T(b >> 16)));
    return lo | hi << 16;
  }
};

template <class F> void buildBinary(Builder &b) {
  b.inst.fn = intBinary<F>(b.type());
}
template <class F> void buildTernary(Builder &b) {
  b.inst.fn = intTernary<F>(b.type());
}
template <class F> void buildUnary(Builder &b) {
  b.inst.fn = intUnary<F>(b.type());
}
template <class F> void buildSat(Builder &b) {
  b.inst.fn = binary<F, int32_t, int32_t, int32_t>;
}
template <class F> void buildPacked(Builder &b) {
  b.inst.fn = b.is(b.match.groups.size() - 1, "s16x2")
                  ? binary<Packed<F, int16_t>, uint32_t, uint32_t, uint32_t>
                  : binary<Packed<F, uint16_t>, uint32_t, uint32_t, uint32_t>;
}

void buildMulWide(Builder &b) {
  switch (b.type()) {
  case Type::U16:
    b.inst.fn = binary<MulWide, uint32_t, uint16_t, uint16_t>;
    break;
  case Type::S16:
    b.inst.fn = binary<MulWide, int32_t, int16_t, int16_t>;
    break;
  case Type::U32:
    b.inst.fn = binary<MulWide, uint64_t, uint32_t, uint32_t>;
    break;
  default:
    b.inst.fn = binary<MulWide, int64_t, int32_t, int32_t>;
  }
}
void buildMadWide(Builder &b) {
  switch (b.type()) {
  case Type::U16:
    b.inst.fn = ternary<MadWide, uint32_t, uint16_t, uint16_t, uint32_t>;
    break;
  case Type::S16:
    b.inst.fn = ternary<MadWide, int32_t, int16_t, int16_t, int32_t>;
    break;
  case Type::U32:
    b.inst.fn = ternary<MadWide, uint64_t, uint32_t, uint32_t, uint64_t>;
    break;
  default:
    b.inst.fn = ternary<MadWide, int64_t, int32_t, int32_t, int64_t>;
  }
}
void buildMadHiSat(Builder &b) {
  b.inst.fn = ternary<MadHiSat, int32_t, int32_t, int32_t, int32_t>;
}
template <template <bool> class F> void buildMul24(Builder &b) {
  bool hi = b.is(0, "hi"), s = b.type() == Type::S32;
  b.inst.fn = hi ? (s ? binary<F<true>, int32_t, int32_t, int32_t>
                      : binary<F<true>, uint32_t, uint32_t, uint32_t>)
                 : (s ? binary<F<false>, int32_t, int32_t, int32_t>
                      : binary<F<false>, uint32_t, uint32_t, uint32_t>);
}
void buildMad24(Builder &b) {
  bool hi = b.is(0, "hi"), s = b.type() == Type::S32;
  b.inst.fn =
      hi ? (s ? ternary<Mad<Mul24<true>>, int32_t, int32_t, int32_t, int32_t>
              : ternary<Mad<Mul24<true>>, uint32_t, uint32_t, uint32_t,
                        uint32_t>)
         : (s ? ternary<Mad<Mul24<false>>, int32_t, int32_t, int32_t, int32_t>
              : ternary<Mad<Mul24<false>>, uint32_t, uint32_t, uint32_t,
                        uint32_t>);
}

// Extended precision: a carry bit a lane, kept beside the registers.
enum CarryOp : uint32_t { CarryAdd, CarrySub, CarryMadLo, CarryMadHi };
template <class T> void carry(Warp &w, const Inst &in, uint32_t m) {
  using S = typename Io<T>::S;
  S *d = slot<S>(w, in.o[0]);
  const S *a = slot<S>(w, in.o[1]), *b = slot<S>(w, in.o[2]);
  bool mad = in.aux >= CarryMadLo;
  const S *c = mad ? slot<S>(w, in.o[3]) : nullptr;
  bool useCarry = in.imm & 1, setCarry = in.imm & 2;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(m >> i & 1))
      continue;
    S x = a[i], y = b[i];
    if (mad) {
      x = in.aux == CarryMadLo ? S(x * y) : S(MulHi::f(T(a[i]), T(b[i])));
      y = c[i];
    }
    S k = useCarry ? w.carry >> i & 1 : 0;
    S r;
    bool out;
    if (in.aux == CarrySub) {
      r = x - y - k;
      out = x < y || (k && x == y);
    } else {
      r = x + y + k;
      out = r < x || (k && r == x);
    }
    d[i] = r;
    if (setCarry)
      w.carry = (w.carry & ~(1u << i)) | uint32_t(out) << i;
  }
}
void pickCarry(Builder &b, uint32_t op, bool use, bool set) {
  b.inst.aux = op;
  b.inst.imm = int64_t(use) | int64_t(set) << 1;
  switch (b.type()) {
  case Type::S32:
    b.inst.fn = carry<int32_t>;
    break;
  case Type::S64:
    b.inst.fn = carry<int64_t>;
    break;
  case Type::U64:
  case Type::B64:
    b.inst.fn = carry<uint64_t>;
    break;
  default:
    b.inst.fn = carry<uint32_t>;
  }
}
void buildAddCC(Builder &b) { pickCarry(b, CarryAdd, false, true); }
void buildAddC(Builder &b) { pickCarry(b, CarryAdd, true, b.has(0)); }
void buildSubCC(Builder &b) { pickCarry(b, CarrySub, false, true); }
void buildSubC(Builder &b) { pickCarry(b, CarrySub, true, b.has(0)); }
void buildMadCC(Builder &b) {
  pickCarry(b, b.is(0, "lo") ? CarryMadLo : CarryMadHi, false, true);
}
void buildMadC(Builder &b) {
  pickCarry(b, b.is(0, "lo") ? CarryMadLo : CarryMadHi, true, b.has(1));
}

template <class A, class B> struct Dp4 {
  template <class C> static C f(uint32_t a, uint32_t b, C c) {
    uint32_t s = uint32_t(c);
    for (unsigned k = 0; k < 4; ++k)
      s += uint32_t(int32_t(A(a >> (8 * k))) * int32_t(B(b >> (8 * k))));
    return C(s);
  }
};
template <class A, class B, bool Hi> struct Dp2 {
  using H = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
  template <class C> static C f(uint32_t a, uint32_t b, C c) {
    uint32_t s = uint32_t(c);
    for (unsigned k = 0; k < 2; ++k)
      s += uint32_t(int32_t(H(a >> (16 * k))) *
                    int32_t(B(b >> (8 * k + (Hi ? 16 : 0)))));
    return C(s);
  }
};
template <class F> Handler dot() {
  return ternary<F, uint32_t, uint32_t, uint32_t, uint32_t>;
}
void buildDp4a(Builder &b) {
  bool sa = b.is(0, "s32"), sb = b.is(1, "s32");
  b.inst.fn =
      sa ? (sb ? dot<Dp4<int8_t, int8_t>>() : dot<Dp4<int8_t, uint8_t>>())
         : (sb ? dot<Dp4<uint8_t, int8_t>>() : dot<Dp4<uint8_t, uint8_t>>());
}
template <bool Hi> Handler dp2(bool sa, bool sb) {
  return sa ? (sb ? dot<Dp2<int8_t, int8_t, Hi>>()
                  : dot<Dp2<int8_t, uint8_t, Hi>>())
            : (sb ? dot<Dp2<uint8_t, int8_t, Hi>>()
                  : dot<Dp2<uint8_t, uint8_t, Hi>>());
}
void buildDp2a(Builder &b) {
  bool sa = b.is(1, "s32"), sb = b.is(2, "s32");
  b.inst.fn = b.is(0, "hi") ? dp2<true>(sa, sb) : dp2<false>(sa, sb);
}

const Row rows[] = {
    {"add", "$int", "=t t t", 10, 0, buildBinary<Add>},
    {"add", "sat s32", "=t t t", 10, 0, buildSat<AddSat>},
    {"add", "u16x2|s16x2", "=b32 b32 b32", 80, 90, buildPacked<Add>},
    {"add", "cc u32|s32|u64|s64|b32|b64", "=t t t", 12, 0, buildAddCC},
    {"addc", "[cc] u32|s32|u64|s64|b32|b64", "=t t t", 12, 0, buildAddC},
    {"sub", "$int", "=t t t", 10, 0, buildBinary<Sub>},
    {"sub", "sat s32", "=t t t", 10, 0, buildSat<SubSat>},
    {"sub", "cc u32|s32|u64|s64|b32|b64", "=t t t", 12, 0, buildSubCC},
    {"subc", "[cc] u32|s32|u64|s64|b32|b64", "=t t t", 12, 0, buildSubC},
    {"mul", "lo $int", "=t t t", 10, 0, buildBinary<MulLo>},
    {"mul", "hi $int", "=t t t", 10, 0, buildBinary<MulHi>},
    {"mul", "wide u16|s16|u32|s32", "=w t t", 10, 0, buildMulWide},
    {"mad", "lo $int", "=t t t t", 10, 0, buildTernary<Mad<MulLo>>},
    {"mad", "hi $int", "=t t t t", 10, 0, buildTernary<Mad<MulHi>>},
    {"mad", "hi sat s32", "=t t t t", 10, 0, buildMadHiSat},
    {"mad", "wide u16|s16|u32|s32", "=w t t w", 10, 0, buildMadWide},
    {"mad", "lo|hi cc u32|s32|u64|s64", "=t t t t", 30, 20, buildMadCC},
    {"madc", "lo|hi [cc] u32|s32|u64|s64", "=t t t t", 30, 20, buildMadC},
    {"mul24", "lo|hi u32|s32", "=t t t", 10, 0, buildMul24<Mul24>},
    {"mad24", "lo|hi u32|s32", "=t t t t", 10, 0, buildMad24},
    {"sad", "$int", "=t t t t", 10, 0, buildTernary<Sad>},
    {"div", "$int", "=t t t", 10, 0, buildBinary<Div>},
    {"rem", "$int", "=t t t", 10, 0, buildBinary<Rem>},
    {"abs", "s16|s32|s64", "=t t", 10, 0, buildUnary<Abs>},
    {"neg", "s16|s32|s64", "=t t", 10, 0, buildUnary<Neg>},
    {"min", "$int", "=t t t", 10, 0, buildBinary<Min>},
    {"max", "$int", "=t t t", 10, 0, buildBinary<Max>},
    {"min", "relu s32", "=t t t", 80, 90, buildSat<ReluOf<Min>>},
    {"max", "relu s32", "=t t t", 80, 90, buildSat<ReluOf<Max>>},
    {"min", "u16x2|s16x2", "=b32 b32 b32", 80, 90, buildPacked<Min>},
    {"max", "u16x2|s16x2", "=b32 b32 b32", 80, 90, buildPacked<Max>},
    {"dp4a", "u32|s32 u32|s32", "=b32 b32 b32 b32", 50, 61, buildDp4a},
    {"dp2a", "lo|hi u32|s32 u32|s32", "=b32 b32 b32 b32", 50, 61, buildDp2a},
};

} // namespace

void addIntegerRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
