//===- Compare.cpp - setp and set -----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

// Four relations; the others are these with operands exchanged or the result
// inverted, so that each type needs four loops.
struct Eq {
  template <class T> static bool f(T a, T b) { return a == b; }
};
struct Lt {
  template <class T> static bool f(T a, T b) { return a < b; }
};
struct Le {
  template <class T> static bool f(T a, T b) { return a <= b; }
};
struct Num {
  template <class T> static bool f(T a, T b) { return (a == a) & (b == b); }
};

enum : uint8_t { BoolNone, BoolAnd, BoolOr, BoolXor };
/// Bits of Inst::bytes.
enum : uint8_t { Invert = 1, FlushOperands = 2, ButNan = 4 };

inline uint32_t combine(uint8_t op, uint32_t r, uint32_t c) {
  return op == BoolAnd   ? r & c
         : op == BoolOr  ? r | c
         : op == BoolXor ? r ^ c
                         : r;
}
inline void finishSetp(Warp &w, const Inst &in, uint32_t m, uint32_t r) {
  r ^= in.bytes & Invert ? fullMask : 0;
  uint32_t c = in.count != BoolNone ? w.pred(in.o[4]) : 0;
  w.setPred(in.o[0], combine(in.count, r, c), m);
  w.setPred(in.o[1], combine(in.count, ~r, c), m);
}
template <class F, class T> void setp(Warp &w, const Inst &in, uint32_t m) {
  const auto *a = slot<typename Io<T>::S>(w, in.o[2]);
  const auto *b = slot<typename Io<T>::S>(w, in.o[3]);
  finishSetp(w, in, m, lanesMask([&](unsigned i) {
               return F::f(Io<T>::get(a[i]), Io<T>::get(b[i]));
             }));
}
template <class F> void setpFtz(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[2]), *b = w.r32(in.o[3]);
  finishSetp(w, in, m, lanesMask([&](unsigned i) {
               return F::f(flush(floatOf(a[i])), flush(floatOf(b[i])));
             }));
}
/// Halves as floats; aux: the type.
template <class F> void setpHalf(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *a = w.r32(in.o[2]), *b = w.r32(in.o[3]);
  Type t = Type(in.aux);
  bool bf = t == Type::BF16 || t == Type::BF16x2;
  bool packed = t == Type::F16x2 || t == Type::BF16x2;
  bool ftz = in.bytes & FlushOperands;
  auto relation = [&](unsigned shift) {
    return lanesMask([&](unsigned i) {
      uint32_t x = a[i] >> shift & 0xffff, y = b[i] >> shift & 0xffff;
      if (ftz && !bf) {
        x = x & 0x7c00 ? x : x & 0x8000;
        y = y & 0x7c00 ? y : y & 0x8000;
      }
      return bf ? F::f(bf16ToFloat(x), bf16ToFloat(y))
                : F::f(halfToFloat(x), halfToFloat(y));
    });
  };
  if (!packed)
    return finishSetp(w, in, m, relation(0));
  uint32_t invert = in.bytes & Invert ? fullMask : 0;
  uint32_t c = in.count != BoolNone ? w.pred(in.o[4]) : 0;
  uint32_t lo = combine(in.count, relation(0) ^ invert, c);
  uint32_t hi = combine(in.count, relation(16) ^ invert, c);
  w.setPred(in.o[0], lo, m);
  w.setPred(in.o[1], hi, m);
}
/// ne for floats is ordered: not equal, and neither is NaN.
struct OrderedNe {
  template <class T> static bool f(T a, T b) { return (a < b) | (a > b); }
};

template <class F> Handler setpInt(Type t) {
  switch (t) {
  case Type::U16:
  case Type::B16:
    return setp<F, uint16_t>;
  case Type::S16:
    return setp<F, int16_t>;
  case Type::U32:
  case Type::B32:
    return setp<F, uint32_t>;
  case Type::S32:
    return setp<F, int32_t>;
  case Type::U64:
  case Type::B64:
    return setp<F, uint64_t>;
  case Type::S64:
    return setp<F, int64_t>;
  default:
    return nullptr;
  }
}
template <class F> Handler setpFloat(Type t, bool ftz) {
  if (t == Type::F32)
    return ftz ? setpFtz<F> : setp<F, float>;
  return t == Type::F64 ? setp<F, double> : setpHalf<F>;
}

/// Chooses the loop for a comparison; exchanges the operands and sets the flags
/// of the instruction that it needs.
Handler pickCompare(Inst &in, std::string_view cmp, Type t, bool ftz) {
  bool f = isFloat(t);
  in.aux = uint32_t(t);
  in.bytes = ftz ? FlushOperands : 0;
  auto swap = [&] { std::swap(in.o[2], in.o[3]); };
  if (!f) {
    if (cmp == "ne" || cmp == "ge" || cmp == "hs" || cmp == "le" || cmp == "ls")
      in.bytes |= Invert;
    if (cmp == "eq" || cmp == "ne")
      return setpInt<Eq>(t);
    // a >= b is not a < b; a <= b is not b < a; a > b is b < a.
    if (cmp == "le" || cmp == "ls" || cmp == "gt" || cmp == "hi")
      swap();
    return setpInt<Lt>(t);
  }
  if (cmp == "num" || cmp == "nan") {
    in.bytes |= cmp == "nan" ? Invert : 0;
    return setpFloat<Num>(t, ftz);
  }
  std::string_view base = cmp.substr(0, 2);
  bool unordered = cmp.size() == 3;
  if (base == "eq" || base == "ne") {
    // equ is not an ordered ne; neu is not eq.
    bool eq = base == "eq";
    if (unordered) {
      in.bytes |= Invert;
      eq = !eq;
    }
    return eq ? setpFloat<Eq>(t, ftz) : setpFloat<OrderedNe>(t, ftz);
  }
  bool strict = base == "lt" || base == "gt";
  bool less = base == "lt" || base == "le";
  if (unordered) {
    // a < b or unordered is not a >= b.
    in.bytes |= Invert;
    strict = !strict;
    less = !less;
  }
  if (!less)
    swap();
  return strict ? setpFloat<Lt>(t, ftz) : setpFloat<Le>(t, ftz);
}
uint8_t boolOf(std::string_view name) {
  return name == "and"   ? BoolAnd
         : name == "or"  ? BoolOr
         : name == "xor" ? BoolXor
                         : BoolNone;
}
void buildSetp(Builder &b) {
  b.inst.count = boolOf(b.group(1));
  if ((b.inst.count != BoolNone) != (b.ast.operands.size() == 4))
    return b.fail("'setp' has a third source exactly when it combines");
  if (b.ast.operands.size() == 4)
    b.inst.o[4] = b.slots[4];
  bool ftz = b.match.groups.size() > 3 && b.has(2);
  b.inst.fn = pickCompare(b.inst, b.group(0), b.type(), ftz);
}
/// set: a comparison as a number.
void setValue(Warp &w, const Inst &in, uint32_t m) {
  // The comparison is an instruction of its own, with predicates beyond the
  // kernel's as its destination.
  Inst inner = in;
  inner.fn = reinterpret_cast<Handler>(uintptr_t(in.imm));
  uint32_t *preds = w.preds;
  uint32_t p[3] = {0, 0, in.count != BoolNone ? w.pred(in.o[4]) : 0};
  w.preds = p;
  inner.o[0] = 0;
  inner.o[1] = 2;
  inner.o[4] = 4;
  inner.fn(w, inner, m);
  w.preds = preds;
  uint32_t one = in.o[5], r = p[0], q = p[1];
  if (in.regBytes == 32) { // packed halves
    lanes(w.r32(in.o[0]), m, [&](unsigned i) {
      return (r >> i & 1 ? one & 0xffff : 0) | (q >> i & 1 ? one << 16 : 0);
    });
    return;
  }
  lanes(w.r32(in.o[0]), m, [&](unsigned i) { return r >> i & 1 ? one : 0u; });
}
void buildSet(Builder &b) {
  b.inst.count = boolOf(b.group(1));
  if ((b.inst.count != BoolNone) != (b.ast.operands.size() == 4))
    return b.fail("'set' has a third source exactly when it combines");
  bool ftz = b.match.groups.size() > 4 && b.has(2);
  Type t = b.type();
  b.inst.o[4] = b.ast.operands.size() == 4 ? b.slots[3] : 0;
  b.inst.o[2] = b.slots[1];
  b.inst.o[3] = b.slots[2];
  Handler compare = pickCompare(b.inst, b.group(0), t, ftz);
  b.inst.imm = int64_t(reinterpret_cast<uintptr_t>(compare));
  bool packed = t == Type::F16x2 || t == Type::BF16x2;
  Type to = b.match.first;
  b.inst.regBytes = packed ? 32 : 4;
  b.inst.o[5] = to == Type::F32                                ? 0x3f800000u
                : to == Type::F16 || to == Type::F16x2         ? 0x3c00u
                : to == Type::BF16 || to == Type::BF16x2       ? 0x3f80u
                : packed || to == Type::U16 || to == Type::S16 ? 0xffffu
                                                               : ~0u;
  b.inst.fn = setValue;
}

const Row rows[] = {
    {"setp", "$icmp [$bool] $bits|$int", "=p|p t t p?", 10, 0, buildSetp},
    {"setp", "$fcmp [$bool] [ftz] f32|f64|f16|f16x2|bf16|bf16x2", "=p|p t t p?",
     10, 0, buildSetp},
    {"set", "$icmp [$bool] u32|s32|f32|u16|s16 $int|b16|b32|b64", "=u t t p?",
     10, 0, buildSet},
    {"set",
     "$fcmp [$bool] [ftz] u32|s32|f32|u16|s16|f16|bf16|f16x2|bf16x2 "
     "f32|f64|f16|bf16|f16x2|bf16x2",
     "=u t t p?", 10, 0, buildSet},
};

} // namespace

void addCompareRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
