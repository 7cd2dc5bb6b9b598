//===- Memory.cpp - Loads, stores, copies and addresses -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Resolve.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

template <class T> inline T read(const uint8_t *p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}

/// Element T of each lane's address to register type R; k-th of a vector.
template <class T, class R>
inline void loadElement(Warp &w, uint32_t reg, uint32_t m, const Lanes &from,
                        unsigned offset, R keep) {
  R *d = slot<R>(w, reg);
  if (m == fullMask) {
    for (unsigned i = 0; i < 32; ++i)
      d[i] = R(R(read<T>(from.p[i] + offset)) & keep);
    return;
  }
  for (unsigned i = 0; i < 32; ++i)
    if (m >> i & 1)
      d[i] = R(R(read<T>(from.p[i] + offset)) & keep);
}

template <Space S, class T, class R>
void ld(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  m = access<S>(w, in, m, o[n], sizeof(T) * n, Access::Read, lanes);
  R keep = in.regBytes == 2 ? R(0xffff) : R(~R(0));
  for (unsigned k = 0; k < n; ++k)
    loadElement<T, R>(w, o[k], m, lanes, unsigned(k * sizeof(T)), keep);
}

template <Space S, class T, class R>
void st(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  m = access<S>(w, in, m, o[0], sizeof(T) * n, Access::Write, lanes);
  for (unsigned i = 0; i < 32; ++i)
    if (m >> i & 1)
      for (unsigned k = 0; k < n; ++k) {
        T v = T(slot<R>(w, o[1 + k])[i]);
        std::memcpy(lanes.p[i] + k * sizeof(T), &v, sizeof(T));
      }
}

template <Space S, bool Load> Handler pickAccess(Type t, bool wideReg) {
  switch (sizeOf(t)) {
  case 1:
    if (Load && isSigned(t))
      return wideReg ? ld<S, int8_t, uint64_t> : ld<S, int8_t, uint32_t>;
    return Load
               ? (wideReg ? ld<S, uint8_t, uint64_t> : ld<S, uint8_t, uint32_t>)
               : (wideReg ? st<S, uint8_t, uint64_t>
                          : st<S, uint8_t, uint32_t>);
  case 2:
    if (Load && isSigned(t))
      return wideReg ? ld<S, int16_t, uint64_t> : ld<S, int16_t, uint32_t>;
    return Load ? (wideReg ? ld<S, uint16_t, uint64_t>
                           : ld<S, uint16_t, uint32_t>)
                : (wideReg ? st<S, uint16_t, uint64_t>
                           : st<S, uint16_t, uint32_t>);
  case 4:
    if (Load && isSigned(t) && wideReg)
      return ld<S, int32_t, uint64_t>;
    return Load ? (wideReg ? ld<S, uint32_t, uint64_t>
                           : ld<S, uint32_t, uint32_t>)
                : (wideReg ? st<S, uint32_t, uint64_t>
                           : st<S, uint32_t, uint32_t>);
  case 8:
    return Load ? ld<S, uint64_t, uint64_t> : st<S, uint64_t, uint64_t>;
  }
  return nullptr;
}
template <bool Load> Handler pickSpace(Space space, Type t, bool wideReg) {
  switch (space) {
  case Space::Shared:
    return pickAccess<Space::Shared, Load>(t, wideReg);
  case Space::Local:
    return pickAccess<Space::Local, Load>(t, wideReg);
  case Space::Param:
    return pickAccess<Space::Param, Load>(t, wideReg);
  case Space::Generic:
    return pickAccess<Space::Generic, Load>(t, wideReg);
  default:
    return pickAccess<Space::Global, Load>(t, wideReg);
  }
}

Space spaceOf(std::string_view name) {
  if (name.substr(0, 6) == "shared")
    return Space::Shared;
  if (name == "global")
    return Space::Global;
  if (name == "local")
    return Space::Local;
  if (name.substr(0, 5) == "param")
    return Space::Param;
  if (name == "const")
    return Space::Const;
  return Space::Generic;
}

/// Groups of every row: sem scope space nc cache... vec type. Looked up by
/// word, since rows differ.
void buildAccess(Builder &b, bool load) {
  Space space = Space::Generic;
  unsigned n = 1;
  for (std::string_view g : b.match.groups) {
    if (g.empty())
      continue;
    if (g == "v2" || g == "v4" || g == "v8")
      n = unsigned(g[1] - '0');
    else if (g == "volatile" || g == "relaxed" || g == "mmio")
      b.inst.flags |= Inst::Strong;
    else if (g == "acquire")
      b.inst.flags |= Inst::Strong | Inst::Acquire;
    else if (g == "release")
      b.inst.flags |= Inst::Strong | Inst::Release;
    else if (g == "nc")
      b.inst.flags |= Inst::NonCoherent;
    else if (spaceOf(g) != Space::Generic)
      space = spaceOf(g);
  }
  // Parameters of device functions are the thread's own memory.
  if (space == Space::Param && b.addressIsVariable)
    space = b.addressSpace;
  if (space == Space::Generic && b.addressIsVariable) {
    if (b.addressSpace != Space::Global && b.addressSpace != Space::Const)
      space = b.addressSpace;
  } else if (b.addressIsVariable && space != b.addressSpace &&
             !(space == Space::Global && b.addressSpace == Space::Const)) {
    return b.fail("the variable is not in the state space of '" +
                  std::string(b.ast.mnemonic) + "'");
  }
  if (!load && (space == Space::Const || (space == Space::Param)))
    return b.fail("nothing is stored to that state space");
  unsigned registers = b.counts[load ? 0 : 1];
  if (registers != n)
    return b.fail("expected " + std::to_string(n) + " registers in '" +
                  std::string(b.ast.mnemonic) + "', but got " +
                  std::to_string(registers));
  size_t first = load ? 0 : 1;
  for (size_t k = 1; k < n; ++k)
    if ((b.widths[first + k] == 8) != (b.widths[first] == 8))
      return b.fail("expected registers of one width in '" +
                    std::string(b.ast.mnemonic) + "'");
  unsigned bytes = sizeOf(b.type());
  if (n * bytes > 32)
    return b.fail("expected at most 32 bytes a thread");
  b.inst.count = uint8_t(n);
  b.inst.bytes = uint8_t(bytes);
  b.inst.regBytes = b.widths[first];
  bool wide = b.widths[first] == 8;
  b.inst.fn = load ? pickSpace<true>(space, b.type(), wide)
                   : pickSpace<false>(space, b.type(), wide);
}
void buildLd(Builder &b) { buildAccess(b, true); }
void buildSt(Builder &b) { buildAccess(b, false); }

//===- cp.async -----------------------------------------------------------===//

// Operands: dst, src, cp-size [, src-size or ignore-src]. o[0], o[1] addresses;
// the addends are in imm (low: dst, high: src), set by the builder.
void cpAsync(Warp &w, const Inst &in, uint32_t m) {
  uint32_t sizes[32];
  unsigned bytes = in.bytes;
  if (in.aux == 1) { // src-size
    const uint32_t *s = w.r32(in.o[2]);
    for (unsigned i = 0; i < 32; ++i)
      sizes[i] = s[i];
  } else if (in.aux == 2) { // ignore-src
    uint32_t p = w.pred(in.o[2]);
    for (unsigned i = 0; i < 32; ++i)
      sizes[i] = p >> i & 1 ? 0 : bytes;
  } else {
    for (unsigned i = 0; i < 32; ++i)
      sizes[i] = bytes;
  }
  Lanes to, from;
  addressesOf(w, in.o[0], in.regBytes & 1, int32_t(uint32_t(in.imm)),
              to.address);
  addressesOf(w, in.o[1], in.regBytes & 2,
              int32_t(uint32_t(uint64_t(in.imm) >> 32)), from.address);
  uint32_t reads = lanesMask([&](unsigned i) { return sizes[i] != 0; });
  uint32_t tooLong = lanesMask([&](unsigned i) { return sizes[i] > bytes; });
  // Sources that are cut off are short of the end by less than is asked here;
  // then the machine looks again.
  const Warp::Range &r =
      w.rangeOf(from.address[__builtin_ctz(m & reads ? m & reads : m)]);
  bool checked = !(tooLong & m) &&
                 allInside(to.address, m, bytes, sharedBase,
                           uint64_t(sharedBase) + w.cta->sharedBytes) &&
                 allInside(from.address, m & reads, bytes, r.base, r.end);
  issueCopies(w, in, m, bytes, sizes, to, from, checked);
}
void buildCpAsync(Builder &b) {
  const Operand &size = b.ast.operands[2];
  if (size.kind != Operand::Int ||
      (size.value != 4 && size.value != 8 && size.value != 16))
    return b.fail("expected 4, 8 or 16 as size of 'cp.async'");
  if (b.is(1, "cg") && size.value != 16)
    return b.fail("expected 16 as size of 'cp.async.cg'");
  b.inst.bytes = uint8_t(size.value);
  b.inst.aux = 0;
  // The last operand may be a policy of the second-level cache, without effect.
  bool isPolicy = b.has(4) && b.ast.operands.size() == 4 && b.widths[3] == 8;
  if (b.ast.operands.size() > 3 && !isPolicy) {
    // After the two addresses and the size: a number or a predicate.
    bool predicate = b.widths[3] == 0;
    if (b.widths[3] == 8)
      return b.fail(
          "expected a number of 32 bits or a predicate as fourth operand "
          "of 'cp.async'");
    b.inst.aux = predicate ? 2 : 1;
    b.inst.o[2] = b.slots[3];
  }
  b.inst.imm = int64_t(uint64_t(uint32_t(b.addends[0])) |
                       uint64_t(uint32_t(b.addends[1])) << 32);
  // Each address has its own width.
  b.inst.regBytes =
      uint8_t((b.widths[0] == 8 ? 1 : 0) | (b.widths[1] == 8 ? 2 : 0));
  if (b.widths[1] != 8)
    return b.fail("expected a global address of 64 bits in 'cp.async'");
  b.inst.fn = cpAsync;
}
void commitGroup(Warp &w, const Inst &, uint32_t m) {
  for (unsigned i = 0; i < 32; ++i)
    w.copyGroup[i] += m >> i & 1;
}
void waitGroup(Warp &w, const Inst &in, uint32_t m) {
  waitCopies(w, in, m, in.aux);
}
void waitAll(Warp &w, const Inst &in, uint32_t m) {
  commitGroup(w, in, m);
  waitCopies(w, in, m, 0);
}
void buildCommit(Builder &b) { b.inst.fn = commitGroup; }
void buildWaitGroup(Builder &b) {
  const Operand &n = b.ast.operands[0];
  if (n.kind != Operand::Int || n.value < 0)
    return b.fail("expected the number of groups in 'cp.async.wait_group'");
  b.inst.aux = uint32_t(n.value);
  b.inst.fn = waitGroup;
}
void buildWaitAll(Builder &b) { b.inst.fn = waitAll; }

//===- Addresses ----------------------------------------------------------===//

/// aux: what is added (to generic) or taken away (from generic).
template <class T> void cvta(Warp &w, const Inst &in, uint32_t m) {
  const T *a = slot<T>(w, in.o[1]);
  T add = T(in.imm);
  lanes(slot<T>(w, in.o[0]), m, [&](unsigned i) { return T(a[i] + add); });
}
void buildCvta(Builder &b) {
  bool to = b.has(0);
  uint64_t window = 0;
  switch (spaceOf(b.group(1))) {
  case Space::Shared:
    window = sharedWindow;
    break;
  case Space::Local:
    window = localWindow;
    break;
  case Space::Param:
    window = paramWindow;
    break;
  default:
    break;
  }
  b.inst.imm = int64_t(to ? 0 - window : window);
  if (sizeOf(b.type()) != 8)
    return b.fail("expected 'cvta' of 64 bits");
  // The address of a device function's parameter is generic already.
  if (window == paramWindow && b.ast.operands[1].kind == Operand::Var &&
      b.ast.operands[1].var->space != Space::Param)
    return b.fail("expected a parameter in 'cvta.param'");
  b.inst.fn = cvta<uint64_t>;
}

void isSpace(Warp &w, const Inst &in, uint32_t m) {
  const uint64_t *a = w.r64(in.o[1]);
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i)
    r |= uint32_t((a[i] & windowMask) == uint64_t(in.imm)) << i;
  w.setPred(in.o[0], r, m);
}
void buildIsSpace(Builder &b) {
  Space s = spaceOf(b.group(0));
  b.inst.imm = int64_t(s == Space::Shared  ? sharedWindow
                       : s == Space::Local ? localWindow
                       : s == Space::Param ? paramWindow
                                           : 0);
  b.inst.fn = isSpace;
}

/// Cache policies mean nothing here; any value is one.
void policy(Warp &w, const Inst &in, uint32_t m) {
  lanes(w.r64(in.o[0]), m, [](unsigned) { return uint64_t(0); });
}
void buildPolicy(Builder &b) { b.inst.fn = policy; }

void nothing(Warp &, const Inst &, uint32_t) {}
void buildNothing(Builder &b) { b.inst.fn = nothing; }

#define SPACES                                                                 \
  "[const|global|local|param|param::entry|param::func|shared|shared::cta]"
const Row rows[] = {
    {"ld", SPACES " [$cache] [$evict] [L2::cache_hint] [$l2] [v2|v4] $mem",
     "=v~ m b64?", 10, 0, buildLd},
    {"ld", "volatile " SPACES " [$l2] [v2|v4] $mem", "=v~ m", 10, 0, buildLd},
    {"ld",
     "relaxed|acquire $scope [global|shared|shared::cta] [$evict] "
     "[L2::cache_hint] "
     "[$l2] [v2|v4] $mem",
     "=v~ m b64?", 60, 70, buildLd},
    {"ld",
     "weak " SPACES " [$cache] [$evict] [L2::cache_hint] [$l2] [v2|v4] $mem",
     "=v~ m b64?", 60, 70, buildLd},
    {"ld", "global [$cache] nc [$evict] [L2::cache_hint] [$l2] [v2|v4] $mem",
     "=v~ m b64?", 31, 32, buildLd},
    {"ld", "global [nc] [$evict] [L2::cache_hint] [$l2] v8 b32|u32|s32|f32",
     "=v~ m b64?", 88, 100, buildLd},
    {"ldu", "[global] [v2|v4] $mem", "=v~ m", 20, 20, buildLd},
    {"st",
     "[global|local|param|param::func|shared|shared::cta] [$cache] [$evict] "
     "[L2::cache_hint] [v2|v4] $mem",
     "m v~ b64?", 10, 0, buildSt},
    {"st", "volatile [global|local|shared|shared::cta] [v2|v4] $mem", "m v~",
     10, 0, buildSt},
    {"st",
     "relaxed|release $scope [global|shared|shared::cta] [$evict] "
     "[L2::cache_hint] "
     "[v2|v4] $mem",
     "m v~ b64?", 60, 70, buildSt},
    {"st",
     "weak [global|local|shared|shared::cta] [$cache] [$evict] "
     "[L2::cache_hint] [v2|v4] $mem",
     "m v~ b64?", 60, 70, buildSt},
    {"st", "global [$evict] [L2::cache_hint] v8 b32|u32|s32|f32", "m v~ b64?",
     88, 100, buildSt},
    {"cp", "async ca|cg shared|shared::cta global [L2::cache_hint] [$l2]",
     "m m u32 any? b64?", 70, 80, buildCpAsync},
    {"cp", "async commit_group", "", 70, 80, buildCommit},
    {"cp", "async wait_group", "u32", 70, 80, buildWaitGroup},
    {"cp", "async wait_all", "", 70, 80, buildWaitAll},
    {"cvta",
     "[to] const|global|local|shared|shared::cta|param|param::entry u32|u64",
     "=t t", 20, 20, buildCvta},
    {"isspacep", "global|const|local|shared|shared::cta|param|param::entry",
     "=p b64", 20, 20, buildIsSpace},
    {"prefetch", "[global|local] L1|L2", "m", 20, 20, buildNothing},
    {"prefetch", "global L2::evict_last|L2::evict_normal", "m", 74, 80,
     buildNothing},
    {"prefetchu", "L1", "m", 20, 20, buildNothing},
    {"applypriority", "[global] L2::evict_normal", "m b32", 74, 80,
     buildNothing},
    {"discard", "[global] L2", "m b32", 74, 80, buildNothing},
    {"createpolicy",
     "fractional "
     "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged "
     "[L2::evict_first|L2::evict_unchanged] b64",
     "=b64 f32?", 74, 80, buildPolicy},
};
#undef SPACES

} // namespace

void addMemoryRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
