//===- Atomic.cpp - atom and red ------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes of a warp in order of their number: one of the orders that the
// hardware may take, and the same one each time.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

enum Op : uint32_t { Add, And, Or, Xor, Exch, Cas, Inc, Dec, Min, Max };

template <class T> T integer(uint32_t op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case Add:
    return T(U(old) + U(b));
  case And:
    return T(old & b);
  case Or:
    return T(old | b);
  case Xor:
    return T(old ^ b);
  case Exch:
    return b;
  case Cas:
    return old == b ? c : old;
  case Inc:
    return U(old) >= U(b) ? T(0) : T(U(old) + 1);
  case Dec:
    return old == 0 || U(old) > U(b) ? b : T(U(old) - 1);
  case Min:
    return old < b ? old : b;
  default:
    return old > b ? old : b;
  }
}
uint32_t addHalf(uint32_t a, uint32_t b, bool bf) {
  if (bf)
    return floatToBf16(bf16ToFloat(a & 0xffff) + bf16ToFloat(b & 0xffff));
  return floatToHalf(halfToFloat(a & 0xffff) + halfToFloat(b & 0xffff));
}
uint32_t pickHalf(uint32_t op, uint32_t a, uint32_t b, bool bf) {
  if (op == Add)
    return addHalf(a, b, bf);
  float x = bf ? bf16ToFloat(a & 0xffff) : halfToFloat(a & 0xffff);
  float y = bf ? bf16ToFloat(b & 0xffff) : halfToFloat(b & 0xffff);
  if (x != x)
    return b & 0xffff;
  if (y != y)
    return a & 0xffff;
  return ((op == Max) == (x >= y) ? a : b) & 0xffff;
}

/// The new value at an address.
uint64_t apply(uint32_t op, Type t, uint64_t old, uint64_t b, uint64_t c) {
  switch (t) {
  case Type::B16:
    return integer<uint16_t>(op, uint16_t(old), uint16_t(b), uint16_t(c));
  case Type::U32:
  case Type::B32:
    return integer<uint32_t>(op, uint32_t(old), uint32_t(b), uint32_t(c));
  case Type::S32:
    return uint32_t(integer<int32_t>(op, int32_t(old), int32_t(b), int32_t(c)));
  case Type::U64:
  case Type::B64:
    return integer<uint64_t>(op, old, b, c);
  case Type::S64:
    return uint64_t(integer<int64_t>(op, int64_t(old), int64_t(b), int64_t(c)));
  case Type::F32:
    return bitsOf(canonical(floatOf(uint32_t(old)) + floatOf(uint32_t(b))));
  case Type::F64:
    return bitsOf(doubleOf(old) + doubleOf(b));
  case Type::F16:
  case Type::BF16:
    return pickHalf(op, uint32_t(old), uint32_t(b), t == Type::BF16);
  default: {
    bool bf = t == Type::BF16x2;
    uint32_t o = uint32_t(old), v = uint32_t(b);
    return pickHalf(op, o, v, bf) | pickHalf(op, o >> 16, v >> 16, bf) << 16;
  }
  }
}

/// o: [d,] address, b [, c]; or address and a vector, for red.
void atomic(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  bool returns = in.flags & Inst::HasDest2;
  uint32_t op = in.aux & 0xff;
  Type t = Type(in.aux >> 8 & 0xff);
  Space space = Space(in.aux >> 16 & 0xff);
  unsigned size = in.bytes, n = in.count;
  unsigned at = returns ? n : 0;
  Lanes lanes;
  m = resolve(w, in, space, m, o[at], size * n, Access::Atomic, lanes);
  bool wide = size == 8;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(m >> i & 1))
      continue;
    for (unsigned k = 0; k < n; ++k) {
      auto get = [&](uint32_t s) -> uint64_t {
        return wide ? w.r64(s)[i] : w.r32(s)[i];
      };
      uint64_t old = 0, b = get(o[at + 1 + k]);
      uint64_t c = op == Cas ? get(o[at + 2]) : 0;
      uint8_t *p = lanes.p[i] + k * size;
      std::memcpy(&old, p, size);
      uint64_t v = apply(op, t, old, b, c);
      std::memcpy(p, &v, size);
      if (returns) {
        if (wide)
          w.r64(o[k])[i] = old;
        else
          w.r32(o[k])[i] = uint32_t(old);
      }
    }
  }
}

void build(Builder &b) {
  bool returns = b.ast.mnemonic == "atom";
  uint32_t op = Add;
  Space space = Space::Generic;
  unsigned n = 1;
  b.inst.flags |= Inst::Strong;
  for (std::string_view g : b.match.groups) {
    static const std::pair<std::string_view, uint32_t> names[] = {
        {"add", Add}, {"and", And}, {"or", Or},   {"xor", Xor}, {"exch", Exch},
        {"cas", Cas}, {"inc", Inc}, {"dec", Dec}, {"min", Min}, {"max", Max}};
    for (auto &[name, value] : names)
      if (g == name)
        op = value;
    if (g == "global")
      space = Space::Global;
    else if (g.substr(0, 6) == "shared")
      space = Space::Shared;
    else if (g == "acquire" || g == "acq_rel")
      b.inst.flags |= Inst::Acquire;
    if (g == "release" || g == "acq_rel")
      b.inst.flags |= Inst::Release;
    if (g == "v2" || g == "v4" || g == "v8")
      n = unsigned(g[1] - '0');
  }
  if (b.addressIsVariable && space == Space::Generic &&
      b.addressSpace == Space::Shared)
    space = Space::Shared;
  if (returns)
    b.inst.flags |= Inst::HasDest2;
  if (b.counts[returns ? 2 : 1] != n)
    return b.fail("expected " + std::to_string(n) + " values in '" +
                  std::string(b.ast.mnemonic) + "'");
  b.inst.count = uint8_t(n);
  b.inst.bytes = uint8_t(sizeOf(b.type()));
  b.inst.aux = op | uint32_t(b.type()) << 8 | uint32_t(space) << 16;
  b.inst.fn = atomic;
}

#define HEAD                                                                   \
  "[relaxed|acquire|release|acq_rel] [$scope] [global|shared|shared::cta] "
#define RHEAD "[relaxed|release] [$scope] [global|shared|shared::cta] "
const Row rows[] = {
    {"atom", HEAD "and|or|xor [L2::cache_hint] b32|b64", "=t m t b64?", 11, 11,
     build},
    {"atom", HEAD "exch [L2::cache_hint] b32|b64", "=t m t b64?", 11, 11,
     build},
    {"atom", HEAD "cas [L2::cache_hint] b32|b64", "=t m t t b64?", 11, 11,
     build},
    {"atom", HEAD "cas b16", "=t m t t", 63, 70, build},
    {"atom", HEAD "add [L2::cache_hint] u32|s32|u64|f32|f64", "=t m t b64?", 11,
     11, build},
    {"atom", HEAD "add noftz [L2::cache_hint] f16|f16x2", "=t m t b64?", 62, 60,
     build},
    {"atom", HEAD "add noftz [L2::cache_hint] bf16|bf16x2", "=t m t b64?", 78,
     90, build},
    {"atom", HEAD "inc|dec u32", "=t m t", 11, 11, build},
    {"atom", HEAD "min|max [L2::cache_hint] u32|s32|u64|s64", "=t m t b64?", 11,
     11, build},
    {"red", RHEAD "and|or|xor [L2::cache_hint] b32|b64", "m t b64?", 12, 20,
     build},
    {"red", RHEAD "add [L2::cache_hint] u32|s32|u64|f32|f64", "m t b64?", 12,
     20, build},
    {"red", RHEAD "add noftz [L2::cache_hint] f16|f16x2", "m t b64?", 62, 60,
     build},
    {"red", RHEAD "add noftz [L2::cache_hint] bf16|bf16x2", "m t b64?", 78, 90,
     build},
    {"red", RHEAD "inc|dec u32", "m t", 12, 20, build},
    {"red", RHEAD "min|max [L2::cache_hint] u32|s32|u64|s64", "m t b64?", 12,
     20, build},
    {"red",
     "[relaxed|release] [$scope] [global] add [L2::cache_hint] v2|v4 f32",
     "m v b64?", 81, 90, build},
    {"red",
     "[relaxed|release] [$scope] [global] add|min|max noftz [L2::cache_hint] "
     "v2|v4 "
     "f16x2|bf16x2|f16|bf16",
     "m v b64?", 81, 90, build},
};
#undef HEAD
#undef RHEAD

} // namespace

void addAtomicRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
