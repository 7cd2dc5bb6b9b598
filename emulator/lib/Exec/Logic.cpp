//===- Logic.cpp - Bits and moves -----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

struct And {
  template <class T> static T f(T a, T b) { return T(a & b); }
};
struct Or {
  template <class T> static T f(T a, T b) { return T(a | b); }
};
struct Xor {
  template <class T> static T f(T a, T b) { return T(a ^ b); }
};
struct Not {
  template <class T> static T f(T a) { return T(~a); }
};
struct CNot {
  template <class T> static T f(T a) { return a == 0; }
};
// Amounts beyond the width shift everything out.
struct Shl {
  template <class T> static T f(T a, uint32_t n) {
    return n < sizeof(T) * 8 ? T(a << n) : T(0);
  }
};
struct Shr {
  template <class T> static T f(T a, uint32_t n) {
    uint32_t most = sizeof(T) * 8 - 1;
    if constexpr (std::is_signed_v<T>)
      return T(a >> (n < most ? n : most));
    return n <= most ? T(a >> n) : T(0);
  }
};
struct Popc {
  template <class T> static uint32_t f(T a) {
    return uint32_t(sizeof(T) == 8 ? __builtin_popcountll(a)
                                   : __builtin_popcount(uint32_t(a)));
  }
};
struct Clz {
  template <class T> static uint32_t f(T a) {
    if (a == 0)
      return sizeof(T) * 8;
    return uint32_t(sizeof(T) == 8 ? __builtin_clzll(a)
                                   : __builtin_clz(uint32_t(a)));
  }
};
struct Brev {
  template <class T> static T f(T a) {
    T r = 0;
    for (unsigned i = 0; i < sizeof(T) * 8; ++i)
      r |= T((a >> i & 1) << (sizeof(T) * 8 - 1 - i));
    return r;
  }
};
template <bool Amount> struct Bfind {
  template <class T> static uint32_t f(T a) {
    using V = std::make_unsigned_t<T>;
    V v = V(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (v == 0)
      return ~0u;
    uint32_t top = uint32_t(sizeof(T)) * 8 - 1 - Clz::f(v);
    return Amount ? uint32_t(sizeof(T)) * 8 - 1 - top : top;
  }
};
struct Bfe {
  template <class T> static T f(T a, uint32_t b, uint32_t c) {
    constexpr uint32_t msb = sizeof(T) * 8 - 1;
    using V = std::make_unsigned_t<T>;
    uint32_t pos = b & 0xff, len = c & 0xff;
    if (len == 0)
      return 0;
    V v = pos <= msb ? V(V(a) >> pos) : V(0);
    V mask = len > msb ? V(~V(0)) : V((V(1) << len) - 1);
    uint32_t at = pos + len - 1;
    bool sign = std::is_signed_v<T> && (V(a) >> (at < msb ? at : msb) & 1);
    // What lies above the value's top is the sign.
    V have = pos > msb ? V(0) : V(~V(0)) >> pos;
    if (sign)
      v |= V(~have);
    v &= mask;
    if (sign)
      v |= V(~mask);
    return T(v);
  }
};
struct Bfi {
  template <class T> static T f(T a, T b, uint32_t c, uint32_t d) {
    constexpr uint32_t width = sizeof(T) * 8;
    uint32_t pos = c & 0xff, len = d & 0xff;
    if (pos >= width || len == 0)
      return b;
    T mask = len >= width ? T(~T(0)) : T((T(1) << len) - 1);
    mask = T(mask << pos);
    return T((b & ~mask) | (T(a << pos) & mask));
  }
};
template <class T> void bfi(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]), *b = slot<T>(w, in.o[2]);
  const uint32_t *c = w.r32(in.o[3]), *d = w.r32(in.o[4]);
  lanes(slot<T>(w, in.o[0]), m,
        [&](unsigned i) { return Bfi::f(a[i], b[i], c[i], d[i]); });
}
void lop3(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[1]), *b = w.r32(in.o[2]), *c = w.r32(in.o[3]);
  // Each bit of the table is a minterm; as masks they need no branches.
  uint32_t t[8];
  for (unsigned k = 0; k < 8; ++k)
    t[k] = in.aux >> k & 1 ? ~0u : 0u;
  lanes(w.r32(in.o[0]), m, [&](unsigned i) {
    uint32_t x = a[i], y = b[i], z = c[i];
    uint32_t lo =
        (~y & ((~z & t[0]) | (z & t[1]))) | (y & ((~z & t[2]) | (z & t[3])));
    uint32_t hi =
        (~y & ((~z & t[4]) | (z & t[5]))) | (y & ((~z & t[6]) | (z & t[7])));
    return (~x & lo) | (x & hi);
  });
}
template <bool Left, bool Wrap> struct Shf {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t v = uint64_t(b) << 32 | a;
    uint32_t n = Wrap ? c & 31 : c < 32 ? c : 32;
    return Left ? uint32_t(v << n >> 32) : uint32_t(v >> n);
  }
};
template <unsigned Mode> struct Prmt {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    uint64_t v = uint64_t(b) << 32 | a;
    uint32_t r = 0;
    for (unsigned k = 0; k < 4; ++k) {
      uint32_t s = Mode == 0 ? c >> (4 * k) & 15 : 0;
      uint32_t n = c & 3;
      switch (Mode) {
      case 0:
        break;
      case 1: // f4e
        s = (n + k) & 7;
        break;
      case 2: // b4e
        s = (n - k) & 7;
        break;
      case 3: // rc8
        s = n;
        break;
      case 4: // ecl
        s = k < n ? n : k;
        break;
      case 5: // ecr
        s = k < n ? k : n;
        break;
      case 6: // rc16
        s = (n & 1) * 2 + (k & 1);
        break;
      }
      uint32_t byte = uint32_t(v >> (8 * (s & 7))) & 0xff;
      if (s & 8)
        byte = byte & 0x80 ? 0xff : 0;
      r |= byte << (8 * k);
    }
    return r;
  }
};
template <bool Signed, bool Wrap> struct Szext {
  static uint32_t f(uint32_t a, uint32_t b) {
    uint32_t n = Wrap ? b & 31 : b;
    if (n == 0)
      return 0;
    if (n >= 32)
      return a;
    return Signed ? uint32_t(int32_t(a << (32 - n)) >> (32 - n))
                  : a & ((1u << n) - 1);
  }
};
template <bool Wrap> struct Bmsk {
  static uint32_t f(uint32_t a, uint32_t b) {
    uint32_t at = Wrap ? a & 31 : a, n = Wrap ? b & 31 : b;
    if (at >= 32)
      return 0;
    uint32_t mask = n >= 32 ? ~0u : (1u << n) - 1;
    return mask << at;
  }
};

//===- Moves and selections -----------------------------------------------===//

template <class T> void mov(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]);
  lanes(slot<T>(w, in.o[0]), m, [&](unsigned i) { return a[i]; });
}
void movPred(Warp &w, const Inst &in, uint32_t m) {
  w.setPred(in.o[0], w.pred(in.o[1]), m);
}
/// Registers of one width from a register of another, in parts.
template <class D, class A> void unpack(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  A t[32];
  std::memcpy(t, slot<A>(w, o[in.count]), sizeof(t));
  unsigned width = in.bytes * 8u;
  D mask = width >= sizeof(D) * 8 ? D(~D(0)) : D((D(1) << width) - 1);
  for (unsigned k = 0; k < in.count; ++k)
    lanes(slot<D>(w, o[k]), m,
          [&](unsigned i) { return D(D(t[i] >> (k * width)) & mask); });
}
template <class D, class A> void pack(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  unsigned width = in.bytes * 8u;
  D t[32] = {};
  for (unsigned k = 0; k < in.count; ++k) {
    const A *a = slot<A>(w, o[1 + k]);
    for (unsigned i = 0; i < 32; ++i)
      t[i] |= D(D(a[i]) << (k * width));
  }
  lanes(slot<D>(w, o[0]), m, [&](unsigned i) { return t[i]; });
}
void movSpecial(Warp &w, const Inst &in, uint32_t m) {
  for (unsigned i = 0; i < 32; ++i)
    if (m >> i & 1) {
      uint64_t v = specialValue(w, in.aux, i);
      if (in.regBytes == 8)
        w.r64(in.o[0])[i] = v;
      else
        w.r32(in.o[0])[i] = uint32_t(v);
    }
}
void buildMov(Builder &b) {
  const std::vector<Operand> &ops = b.ast.operands;
  unsigned size = sizeOf(b.type());
  if (b.slots.size() == 1) {
    b.inst.regBytes = b.widths[0];
    b.inst.fn = movSpecial;
    return;
  }
  bool dv = ops[0].kind == Operand::Vector, sv = ops[1].kind == Operand::Vector;
  if (dv && sv)
    return b.fail("expected at most one vector in 'mov'");
  auto same = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (b.widths[i] != b.widths[from])
        return false;
    return true;
  };
  if (dv || sv) {
    unsigned n = unsigned(dv ? ops[0].elems.size() : ops[1].elems.size());
    size_t first = dv ? 0 : 1;
    if (n < 2 || n > 4 || !same(first, first + n) ||
        b.widths[dv ? n : 0] != size || b.widths[first] * n != size)
      return b.fail("the parts of 'mov' do not make " +
                    std::to_string(size * 8) + " bits");
    b.inst.count = uint8_t(n);
    b.inst.bytes = uint8_t(size / n);
    if (dv)
      b.inst.fn =
          size == 8 ? unpack<uint32_t, uint64_t> : unpack<uint32_t, uint32_t>;
    else
      b.inst.fn =
          size == 8 ? pack<uint64_t, uint32_t> : pack<uint32_t, uint32_t>;
    return;
  }
  if (b.widths[0] == 0 || b.widths[1] == 0)
    return b.fail("predicates are moved by 'mov.pred'");
  if ((b.widths[0] == 8) != (size == 8) || (b.widths[1] == 8) != (size == 8) ||
      b.widths[0] < size)
    return b.fail("expected registers of " + std::to_string(size * 8) +
                  " bits in 'mov'");
  b.inst.fn = size == 8 ? mov<uint64_t> : mov<uint32_t>;
}
void buildMovPred(Builder &b) { b.inst.fn = movPred; }

template <class T> void selp(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]), *b = slot<T>(w, in.o[2]);
  uint32_t p = w.pred(in.o[3]);
  lanes(slot<T>(w, in.o[0]), m,
        [&](unsigned i) { return p >> i & 1 ? a[i] : b[i]; });
}
void buildSelp(Builder &b) {
  b.inst.fn = sizeOf(b.type()) == 8 ? selp<uint64_t> : selp<uint32_t>;
}
template <class T, class C> void slct(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]), *b = slot<T>(w, in.o[2]);
  const uint32_t *c = w.r32(in.o[3]);
  lanes(slot<T>(w, in.o[0]), m,
        [&](unsigned i) { return Io<C>::get(c[i]) >= 0 ? a[i] : b[i]; });
}
void buildSlct(Builder &b) {
  bool wide = sizeOf(b.match.first) == 8, f = b.type() == Type::F32;
  b.inst.fn = wide ? (f ? slct<uint64_t, float> : slct<uint64_t, int32_t>)
                   : (f ? slct<uint32_t, float> : slct<uint32_t, int32_t>);
}

//===- Rows ---------------------------------------------------------------===//

template <class F> void buildBits(Builder &b) {
  b.inst.fn = intBinary<F>(b.type());
}
template <unsigned Op> void predLogic(Warp &w, const Inst &in, uint32_t m) {
  uint32_t a = w.pred(in.o[1]), b = Op == 3 ? 0 : w.pred(in.o[2]);
  w.setPred(in.o[0],
            Op == 0   ? a & b
            : Op == 1 ? a | b
            : Op == 2 ? a ^ b
                      : ~a,
            m);
}
template <unsigned Op> void buildPredLogic(Builder &b) {
  b.inst.fn = predLogic<Op>;
}
template <class F> void buildBitsUnary(Builder &b) {
  b.inst.fn = intUnary<F>(b.type());
}
template <class F> void buildShift(Builder &b) {
  switch (b.type()) {
  case Type::B16:
  case Type::U16:
    b.inst.fn = binary<F, uint16_t, uint16_t, uint32_t>;
    break;
  case Type::S16:
    b.inst.fn = binary<F, int16_t, int16_t, uint32_t>;
    break;
  case Type::B32:
  case Type::U32:
    b.inst.fn = binary<F, uint32_t, uint32_t, uint32_t>;
    break;
  case Type::S32:
    b.inst.fn = binary<F, int32_t, int32_t, uint32_t>;
    break;
  case Type::S64:
    b.inst.fn = binary<F, int64_t, int64_t, uint32_t>;
    break;
  default:
    b.inst.fn = binary<F, uint64_t, uint64_t, uint32_t>;
  }
}
template <class F> void buildCount(Builder &b) {
  b.inst.fn = sizeOf(b.type()) == 8 ? unary<F, uint32_t, uint64_t>
                                    : unary<F, uint32_t, uint32_t>;
}
template <class F> Handler pickBfind(Type t) {
  switch (t) {
  case Type::U32:
    return unary<F, uint32_t, uint32_t>;
  case Type::S32:
    return unary<F, uint32_t, int32_t>;
  case Type::U64:
    return unary<F, uint32_t, uint64_t>;
  default:
    return unary<F, uint32_t, int64_t>;
  }
}
void buildBfind(Builder &b) {
  b.inst.fn = b.has(0) ? pickBfind<Bfind<true>>(b.type())
                       : pickBfind<Bfind<false>>(b.type());
}
void buildBfe(Builder &b) {
  switch (b.type()) {
  case Type::U32:
    b.inst.fn = ternary<Bfe, uint32_t, uint32_t, uint32_t, uint32_t>;
    break;
  case Type::S32:
    b.inst.fn = ternary<Bfe, int32_t, int32_t, uint32_t, uint32_t>;
    break;
  case Type::U64:
    b.inst.fn = ternary<Bfe, uint64_t, uint64_t, uint32_t, uint32_t>;
    break;
  default:
    b.inst.fn = ternary<Bfe, int64_t, int64_t, uint32_t, uint32_t>;
  }
}
void buildBfi(Builder &b) {
  b.inst.fn = sizeOf(b.type()) == 8 ? bfi<uint64_t> : bfi<uint32_t>;
}
void buildLop3(Builder &b) {
  const Operand &table = b.ast.operands[4];
  if (table.kind != Operand::Int || table.value < 0 || table.value > 255)
    return b.fail("expected a number from 0 to 255 as the table of 'lop3'");
  b.inst.aux = uint32_t(table.value);
  b.inst.fn = lop3;
}
void buildShf(Builder &b) {
  bool left = b.is(0, "l"), wrap = b.is(1, "wrap");
  using T = uint32_t;
  b.inst.fn = left ? (wrap ? ternary<Shf<true, true>, T, T, T, T>
                           : ternary<Shf<true, false>, T, T, T, T>)
                   : (wrap ? ternary<Shf<false, true>, T, T, T, T>
                           : ternary<Shf<false, false>, T, T, T, T>);
}
void buildPrmt(Builder &b) {
  using T = uint32_t;
  std::string_view mode = b.group(1);
  b.inst.fn = mode.empty()    ? ternary<Prmt<0>, T, T, T, T>
              : mode == "f4e" ? ternary<Prmt<1>, T, T, T, T>
              : mode == "b4e" ? ternary<Prmt<2>, T, T, T, T>
              : mode == "rc8" ? ternary<Prmt<3>, T, T, T, T>
              : mode == "ecl" ? ternary<Prmt<4>, T, T, T, T>
              : mode == "ecr" ? ternary<Prmt<5>, T, T, T, T>
                              : ternary<Prmt<6>, T, T, T, T>;
}
void buildSzext(Builder &b) {
  using T = uint32_t;
  bool wrap = b.is(0, "wrap"), s = b.type() == Type::S32;
  b.inst.fn = wrap ? (s ? binary<Szext<true, true>, T, T, T>
                        : binary<Szext<false, true>, T, T, T>)
                   : (s ? binary<Szext<true, false>, T, T, T>
                        : binary<Szext<false, false>, T, T, T>);
}
void buildBmsk(Builder &b) {
  using T = uint32_t;
  b.inst.fn = b.is(0, "wrap") ? binary<Bmsk<true>, T, T, T>
                              : binary<Bmsk<false>, T, T, T>;
}

const Row rows[] = {
    {"mov", "$any|f16|f16x2|bf16|bf16x2", "=any any", 10, 0, buildMov},
    {"mov", "pred", "=p p", 10, 0, buildMovPred},
    {"and", "$bits", "=t t t", 10, 0, buildBits<And>},
    {"or", "$bits", "=t t t", 10, 0, buildBits<Or>},
    {"xor", "$bits", "=t t t", 10, 0, buildBits<Xor>},
    {"not", "$bits", "=t t", 10, 0, buildBitsUnary<Not>},
    {"cnot", "$bits", "=t t", 10, 0, buildBitsUnary<CNot>},
    {"and", "pred", "=p p p", 10, 0, buildPredLogic<0>},
    {"or", "pred", "=p p p", 10, 0, buildPredLogic<1>},
    {"xor", "pred", "=p p p", 10, 0, buildPredLogic<2>},
    {"not", "pred", "=p p", 10, 0, buildPredLogic<3>},
    {"shl", "$bits", "=t t b32", 10, 0, buildShift<Shl>},
    {"shr", "$bits|$int", "=t t b32", 10, 0, buildShift<Shr>},
    {"shf", "l|r clamp|wrap b32", "=t t t t", 31, 32, buildShf},
    {"popc", "b32|b64", "=b32 t", 20, 20, buildCount<Popc>},
    {"clz", "b32|b64", "=b32 t", 20, 20, buildCount<Clz>},
    {"brev", "b32|b64", "=t t", 20, 20, buildBitsUnary<Brev>},
    {"bfind", "[shiftamt] $int32", "=b32 t", 20, 20, buildBfind},
    {"bfe", "$int32", "=t t b32 b32", 20, 20, buildBfe},
    {"bfi", "b32|b64", "=t t t b32 b32", 20, 20, buildBfi},
    {"lop3", "b32", "=t t t t b32", 43, 50, buildLop3},
    {"prmt", "b32 [f4e|b4e|rc8|ecl|ecr|rc16]", "=t t t t", 20, 20, buildPrmt},
    {"szext", "clamp|wrap u32|s32", "=t t b32", 76, 70, buildSzext},
    {"bmsk", "clamp|wrap b32", "=t t b32", 76, 70, buildBmsk},
    {"selp", "$any|f16|f16x2|bf16|bf16x2", "=t t t p", 10, 0, buildSelp},
    {"slct", "$any s32", "=u u u b32", 10, 0, buildSlct},
    {"slct", "[ftz] $any f32", "=u u u b32", 10, 0, buildSlct},
};

} // namespace

void addLogicRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
