//===- WarpOps.cpp - shfl, vote, match, redux -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

/// The lanes that a .sync instruction names: one mask for all.
bool members(Warp &w, uint32_t m, uint32_t slotIndex, uint32_t &out) {
  const uint32_t *mask = w.r32(slotIndex);
  uint32_t first = mask[__builtin_ctz(m)];
  out = first;
  if (!(first & m))
    return true;
  return lanesHere(w, m, first);
}

enum : uint32_t { Up, Down, Bfly, Idx };

// o: d, p, a, b, c, membermask
void shfl(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  uint32_t who;
  if (in.count && !members(w, m, o[5], who))
    return;
  uint32_t a[32], d[32];
  std::memcpy(a, w.r32(o[2]), sizeof(a));
  const uint32_t *b = w.r32(o[3]), *c = w.r32(o[4]);
  uint32_t p = 0;
  for (unsigned i = 0; i < 32; ++i) {
    uint32_t bv = b[i] & 31, cv = c[i] & 31, seg = c[i] >> 8 & 31;
    uint32_t most = (i & seg) | (cv & ~seg), least = i & seg;
    int32_t j = int32_t(i);
    bool ok = true;
    switch (in.aux) {
    case Up:
      j = int32_t(i) - int32_t(bv);
      ok = j >= int32_t(most);
      break;
    case Down:
      j = int32_t(i + bv);
      ok = j <= int32_t(most);
      break;
    case Bfly:
      j = int32_t(i ^ bv);
      ok = j <= int32_t(most);
      break;
    default:
      j = int32_t(least | (bv & ~seg));
      ok = j <= int32_t(most);
    }
    if (!ok)
      j = int32_t(i);
    p |= uint32_t(ok) << i;
    d[i] = a[j & 31];
  }
  lanes(w.r32(o[0]), m, [&](unsigned i) { return d[i]; });
  w.setPred(o[1], p, m);
}
void buildShfl(Builder &b) {
  std::string_view mode = b.group(b.match.groups.size() - 2);
  b.inst.aux = mode == "up"     ? Up
               : mode == "down" ? Down
               : mode == "bfly" ? Bfly
                                : Idx;
  b.inst.count = b.match.groups.size() == 3;
  b.inst.fn = shfl;
}

enum : uint32_t { All, Any, Uni, Ballot };
// o: d, p, membermask
void vote(Warp &w, const Inst &in, uint32_t m) {
  uint32_t who = m;
  if (in.count) {
    if (!members(w, m, in.o[2], who))
      return;
    who &= m;
  }
  uint32_t p = w.pred(in.o[1]) & who;
  switch (in.aux) {
  case All:
    w.setPred(in.o[0], p == who ? fullMask : 0, m);
    break;
  case Any:
    w.setPred(in.o[0], p ? fullMask : 0, m);
    break;
  case Uni:
    w.setPred(in.o[0], p == 0 || p == who ? fullMask : 0, m);
    break;
  default:
    lanes(w.r32(in.o[0]), m, [&](unsigned) { return p; });
  }
}
void buildVote(Builder &b) {
  size_t n = b.match.groups.size();
  std::string_view mode = b.group(n - 2);
  b.inst.aux = mode == "all"   ? All
               : mode == "any" ? Any
               : mode == "uni" ? Uni
                               : Ballot;
  b.inst.count = b.is(0, "sync");
  b.inst.fn = vote;
}

void activemask(Warp &w, const Inst &in, uint32_t m) {
  lanes(w.r32(in.o[0]), m, [&](unsigned) { return m; });
}
void buildActivemask(Builder &b) { b.inst.fn = activemask; }

// o: d, p, a, membermask
template <class T> void match(Warp &w, const Inst &in, uint32_t m) {
  uint32_t who;
  if (!members(w, m, in.o[3], who))
    return;
  who &= m;
  T a[32];
  std::memcpy(a, slot<T>(w, in.o[2]), sizeof(a));
  uint32_t d[32] = {};
  bool all = true;
  for (unsigned i = 0; i < 32; ++i)
    for (unsigned j = 0; j < 32; ++j)
      if (who >> i & 1 && who >> j & 1) {
        d[i] |= uint32_t(a[i] == a[j]) << j;
        all &= a[i] == a[j];
      }
  if (in.aux) {
    lanes(w.r32(in.o[0]), m, [&](unsigned) { return all ? who : 0; });
    w.setPred(in.o[1], all ? fullMask : 0, m);
  } else {
    lanes(w.r32(in.o[0]), m, [&](unsigned i) { return d[i]; });
  }
}
void buildMatch(Builder &b) {
  b.inst.aux = b.is(0, "all");
  b.inst.fn = sizeOf(b.type()) == 8 ? match<uint64_t> : match<uint32_t>;
}

// o: d, a, membermask
template <class F> void reduceLanes(Warp &w, const Inst &in, uint32_t m, F f) {
  uint32_t who;
  if (!members(w, m, in.o[2], who))
    return;
  who &= m;
  const uint32_t *a = w.r32(in.o[1]);
  bool first = true;
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (who >> i & 1) {
      r = first ? a[i] : f(r, a[i]);
      first = false;
    }
  lanes(w.r32(in.o[0]), m, [&](unsigned) { return r; });
}
void redux(Warp &w, const Inst &in, uint32_t m) {
  bool s = in.count;
  switch (in.aux) {
  case 0:
    return reduceLanes(w, in, m, [](uint32_t a, uint32_t b) { return a + b; });
  case 1:
    return reduceLanes(w, in, m, [s](uint32_t a, uint32_t b) {
      return (s ? int32_t(a) < int32_t(b) : a < b) ? a : b;
    });
  case 2:
    return reduceLanes(w, in, m, [s](uint32_t a, uint32_t b) {
      return (s ? int32_t(a) > int32_t(b) : a > b) ? a : b;
    });
  case 3:
    return reduceLanes(w, in, m, [](uint32_t a, uint32_t b) { return a & b; });
  case 4:
    return reduceLanes(w, in, m, [](uint32_t a, uint32_t b) { return a | b; });
  default:
    return reduceLanes(w, in, m, [](uint32_t a, uint32_t b) { return a ^ b; });
  }
}
/// redux.f32 (sm_100a): min and max, optionally of absolute values.
void reduxFloat(Warp &w, const Inst &in, uint32_t m) {
  bool max = in.aux, abs = in.count & 1, keepNan = in.count & 2;
  reduceLanes(w, in, m, [=](uint32_t a, uint32_t b) {
    if (abs) {
      a &= 0x7fffffffu;
      b &= 0x7fffffffu;
    }
    float x = floatOf(a), y = floatOf(b);
    if (x != x || y != y) {
      if (keepNan || (x != x && y != y))
        return nan32;
      return x != x ? b : a;
    }
    return (max ? x >= y : x <= y) ? a : b;
  });
}
void buildRedux(Builder &b) {
  std::string_view op = b.group(1);
  b.inst.count = b.type() == Type::S32;
  b.inst.aux = op == "add"   ? 0
               : op == "min" ? 1
               : op == "max" ? 2
               : op == "and" ? 3
               : op == "or"  ? 4
                             : 5;
  b.inst.fn = redux;
}
void buildReduxFloat(Builder &b) {
  b.inst.aux = b.is(1, "max");
  b.inst.count = uint8_t((b.has(2) ? 1 : 0) | (b.has(3) ? 2 : 0));
  b.inst.fn = reduxFloat;
}

// o: d, p, membermask. Any active lane may be elected; the least is.
void elect(Warp &w, const Inst &in, uint32_t m) {
  uint32_t who;
  if (!members(w, m, in.o[2], who))
    return;
  who &= m;
  if (!who)
    who = m;
  uint32_t leader = uint32_t(__builtin_ctz(who));
  lanes(w.r32(in.o[0]), m, [&](unsigned) { return leader; });
  w.setPred(in.o[1], 1u << leader, m);
}
void buildElect(Builder &b) { b.inst.fn = elect; }

const Row rows[] = {
    {"shfl", "sync up|down|bfly|idx b32", "=t|p t b32 b32 b32", 60, 30,
     buildShfl},
    {"vote", "sync all|any|uni pred", "=p p b32", 60, 30, buildVote},
    {"vote", "sync ballot b32", "=b32 p b32", 60, 30, buildVote},
    {"activemask", "b32", "=b32", 62, 30, buildActivemask},
    {"match", "any|all sync b32|b64", "=b32|p t b32", 60, 70, buildMatch},
    {"redux", "sync add|min|max u32|s32", "=t t b32", 70, 80, buildRedux},
    {"redux", "sync and|or|xor b32", "=t t b32", 70, 80, buildRedux},
    {"redux", "sync min|max [abs] [NaN] f32", "=t t b32", 86, 100,
     buildReduxFloat},
    {"elect", "sync", "=b32|p b32", 80, 90, buildElect},
};

} // namespace

void addWarpRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
