//===- Access.cpp - Addresses of a warp's accesses ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From registers to host addresses, with bounds and alignment checked always: a
// kernel never touches memory of the host that it was not given.
//
//===----------------------------------------------------------------------===//
#include "Checker.h"

#include <algorithm>

namespace fi::emulator {
namespace {

std::string hex(uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(v));
  return text;
}

const char *verb(Access a) {
  return a == Access::Read    ? "read"
         : a == Access::Write ? "write"
                              : "atomic access";
}

/// The lanes that may go on; one report for those that may not.
class Faults {
public:
  void bounds(uint32_t lane) { out |= 1u << lane; }
  void align(uint32_t lane) { misaligned |= 1u << lane; }
  uint32_t all() const { return out | misaligned; }
  void report(Warp &w, const Inst &in, Space space, uint32_t bytes,
              Access access, const Lanes &lanes) const {
    Launch &l = *w.launch;
    uint32_t at = w.instIndex(in);
    if (misaligned) {
      uint64_t a = lanes.address[__builtin_ctz(misaligned)];
      l.addReport(w, at, ReportKind::Misaligned, misaligned,
                  std::string(verb(access)) + " of " + std::to_string(bytes) +
                      " bytes at " + hex(a) + ", which is no multiple of " +
                      std::to_string(bytes),
                  a);
    }
    if (out) {
      uint64_t a = lanes.address[__builtin_ctz(out)];
      std::string where;
      if (space == Space::Shared)
        where = "shared address " + hex(a) + "; the block has " +
                std::to_string(w.cta->sharedBytes) + " bytes from " +
                hex(sharedBase);
      else if (space == Space::Local)
        where = "local address " + hex(a) + "; a thread has " +
                std::to_string(l.kernel.localBytes) + " bytes";
      else if (space == Space::Param)
        where = "parameter address " + hex(a);
      else
        where = l.memory.describe(a);
      l.addReport(w, at, ReportKind::OutOfBounds, out,
                  std::string(verb(access)) + " of " + std::to_string(bytes) +
                      " bytes at " + where,
                  a);
    }
  }

private:
  uint32_t out = 0, misaligned = 0;
};

inline void gatherAddresses(Warp &w, const Inst &in, uint32_t slot,
                            uint64_t *out) {
  if (in.flags & Inst::Address32) {
    const uint32_t *a = w.r32(slot);
    for (unsigned i = 0; i < 32; ++i)
      out[i] = uint64_t(a[i] + uint32_t(in.imm));
  } else {
    const uint64_t *a = w.r64(slot);
    for (unsigned i = 0; i < 32; ++i)
      out[i] = a[i] + uint64_t(in.imm);
  }
}

/// Passes over the banks: 32 words a pass, each bank once a pass. Accesses of 8
/// and 16 bytes go by halves and quarters of the warp.
void countBanks(Launch &l, uint32_t mask, uint32_t bytes,
                const uint64_t *address) {
  unsigned group = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  ++l.statistics.sharedAccesses;
  uint64_t passes = 0, least = 0;
  for (unsigned g = 0; g < 32; g += group) {
    uint64_t words[32 * 4];
    unsigned n = 0;
    for (unsigned i = g; i < g + group; ++i)
      if (mask >> i & 1)
        for (uint32_t b = 0; b < std::max(bytes, 4u); b += 4)
          words[n++] = (address[i] + b) / 4;
    if (!n)
      continue;
    std::sort(words, words + n);
    n = unsigned(std::unique(words, words + n) - words);
    uint32_t banks[32] = {}, most = 0;
    for (unsigned k = 0; k < n; ++k)
      most = std::max(most, ++banks[words[k] % 32]);
    passes += most;
    ++least;
  }
  // Halves and quarters are no conflict: as many passes as there are groups
  // count as one.
  l.statistics.sharedPasses += least ? passes - (least - 1) : 0;
}

void countSectors(Launch &l, uint32_t mask, uint32_t bytes,
                  const uint64_t *address) {
  ++l.statistics.globalAccesses;
  uint64_t sectors[64];
  unsigned n = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) {
      sectors[n++] = address[i] / 32;
      if (bytes > 32 - address[i] % 32)
        sectors[n++] = (address[i] + bytes - 1) / 32;
    }
  std::sort(sectors, sectors + n);
  l.statistics.globalSectors +=
      uint64_t(std::unique(sectors, sectors + n) - sectors);
}

bool cacheAllocation(Warp &w, uint64_t address, uint64_t bytes) {
  Allocation *a = w.launch->memory.find(address, bytes);
  if (!a)
    return false;
  w.cachedBase = a->base;
  w.cachedEnd = a->end;
  w.cachedWritable = a->writable;
  return true;
}

/// One lane at a global address. False: nothing is there.
inline bool globalLane(Warp &w, uint64_t address, uint32_t bytes, bool write) {
  uint64_t size = w.cachedEnd - w.cachedBase;
  uint64_t offset = address - w.cachedBase;
  if (offset >= size || bytes > size - offset) {
    if (!cacheAllocation(w, address, bytes))
      return false;
  }
  return !write || w.cachedWritable;
}

uint32_t resolveGlobal(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                       Access access, Lanes &lanes) {
  Launch &l = *w.launch;
  const uint64_t *a = lanes.address;
  bool write = access != Access::Read;
  // All lanes in the allocation that was used last: the common case.
  if (mask == fullMask && (!write || w.cachedWritable)) {
    uint64_t lo = ~uint64_t(0), hi = 0, low = 0;
    for (unsigned i = 0; i < 32; ++i) {
      lo = a[i] < lo ? a[i] : lo;
      hi = a[i] > hi ? a[i] : hi;
      low |= a[i];
    }
    if (lo >= w.cachedBase && hi < w.cachedEnd && bytes <= w.cachedEnd - hi &&
        (low & (bytes - 1)) == 0) {
      for (unsigned i = 0; i < 32; ++i)
        lanes.p[i] = reinterpret_cast<uint8_t *>(uintptr_t(a[i]));
      if (l.countAccesses)
        countSectors(l, mask, bytes, a);
      if (l.checker)
        l.checker->access(w, in, Space::Global, mask, bytes, access, lanes);
      return mask;
    }
  }
  Faults faults;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    if (a[i] & (bytes - 1))
      faults.align(i);
    else if (!globalLane(w, a[i], bytes, write))
      faults.bounds(i);
    lanes.p[i] = reinterpret_cast<uint8_t *>(uintptr_t(a[i]));
  }
  if (faults.all()) {
    faults.report(w, in, Space::Global, bytes, access, lanes);
    mask &= ~faults.all();
  }
  if (!mask)
    return 0;
  if (l.countAccesses)
    countSectors(l, mask, bytes, a);
  if (l.checker)
    l.checker->access(w, in, Space::Global, mask, bytes, access, lanes);
  return mask;
}

/// Addresses are offsets in the shared window.
uint32_t resolveShared(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                       Access access, Lanes &lanes) {
  Launch &l = *w.launch;
  const uint64_t *a = lanes.address;
  uint8_t *base = w.cta->shared - sharedBase;
  uint64_t end = uint64_t(sharedBase) + w.cta->sharedBytes;
  uint64_t bad = 0;
  for (unsigned i = 0; i < 32; ++i)
    bad |= uint64_t((a[i] < sharedBase) | (a[i] + bytes > end) | (a[i] > end) |
                    ((a[i] & (bytes - 1)) != 0))
           << i;
  for (unsigned i = 0; i < 32; ++i)
    lanes.p[i] = base + a[i];
  if (bad & mask) {
    Faults faults;
    for (unsigned i = 0; i < 32; ++i) {
      if (!(bad & mask & (1u << i)))
        continue;
      if (a[i] & (bytes - 1))
        faults.align(i);
      else
        faults.bounds(i);
    }
    faults.report(w, in, Space::Shared, bytes, access, lanes);
    mask &= ~uint32_t(bad);
    if (!mask)
      return 0;
  }
  if (l.countAccesses)
    countBanks(l, mask, bytes, a);
  if (l.checker)
    l.checker->access(w, in, Space::Shared, mask, bytes, access, lanes);
  return mask;
}

uint32_t resolveLocal(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                      Access access, Lanes &lanes) {
  const uint64_t *a = lanes.address;
  uint64_t size = w.launch->kernel.localBytes;
  Faults faults;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    if (a[i] & (bytes - 1))
      faults.align(i);
    else if (a[i] >= size || bytes > size - a[i])
      faults.bounds(i);
    lanes.p[i] = w.local + size * i + a[i];
  }
  if (faults.all())
    faults.report(w, in, Space::Local, bytes, access, lanes);
  return mask & ~faults.all();
}

uint32_t resolveParam(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                      Access access, Lanes &lanes) {
  const uint64_t *a = lanes.address;
  std::vector<uint8_t> &params = w.launch->params;
  Faults faults;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    if (a[i] & (bytes - 1))
      faults.align(i);
    else if (access != Access::Read || a[i] >= params.size() ||
             bytes > params.size() - a[i])
      faults.bounds(i);
    lanes.p[i] = params.data() + a[i];
  }
  if (faults.all())
    faults.report(w, in, Space::Param, bytes, access, lanes);
  return mask & ~faults.all();
}

uint32_t resolveGeneric(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                        Access access, Lanes &lanes) {
  uint64_t any = 0;
  for (unsigned i = 0; i < 32; ++i)
    any |= mask >> i & 1 ? lanes.address[i] & windowMask : 0;
  if (!any)
    return resolveGlobal(w, in, mask, bytes, access, lanes);
  uint32_t masks[4] = {0, 0, 0, 0};
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) {
      uint64_t window = lanes.address[i] >> 56;
      masks[window <= 3 ? window : 0] |= 1u << i;
      if (window >= 1 && window <= 3)
        lanes.address[i] &= ~windowMask;
    }
  uint32_t out = 0;
  if (masks[0])
    out |= resolveGlobal(w, in, masks[0], bytes, access, lanes);
  if (masks[1])
    out |= resolveShared(w, in, masks[1], bytes, access, lanes);
  if (masks[2])
    out |= resolveLocal(w, in, masks[2], bytes, access, lanes);
  if (masks[3])
    out |= resolveParam(w, in, masks[3], bytes, access, lanes);
  return out;
}

} // namespace

uint32_t resolve(Warp &w, const Inst &in, Space space, uint32_t mask,
                 uint32_t slot, uint32_t bytes, Access access, Lanes &lanes) {
  gatherAddresses(w, in, slot, lanes.address);
  switch (space) {
  case Space::Shared:
    return resolveShared(w, in, mask, bytes, access, lanes);
  case Space::Local:
    return resolveLocal(w, in, mask, bytes, access, lanes);
  case Space::Param:
    // The address of a parameter that was taken is generic.
    if (!(in.flags & Inst::Address32) &&
        lanes.address[__builtin_ctz(mask)] & windowMask)
      return resolveGeneric(w, in, mask, bytes, access, lanes);
    return resolveParam(w, in, mask, bytes, access, lanes);
  case Space::Generic:
    return resolveGeneric(w, in, mask, bytes, access, lanes);
  default:
    return resolveGlobal(w, in, mask, bytes, access, lanes);
  }
}

//===- cp.async -----------------------------------------------------------===//

void issueCopies(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                 const uint32_t *sourceBytes) {
  Launch &l = *w.launch;
  Lanes to, from;
  Inst side = in;
  // The two addresses with their own addends and widths.
  auto addresses = [&](uint32_t slot, bool wide, int32_t addend, Lanes &lanes) {
    for (unsigned i = 0; i < 32; ++i)
      lanes.address[i] =
          (wide ? w.r64(slot)[i] : w.r32(slot)[i]) + uint64_t(int64_t(addend));
    if (!wide)
      for (unsigned i = 0; i < 32; ++i)
        lanes.address[i] &= 0xffffffffu;
  };
  (void)side;
  addresses(in.o[0], in.regBytes & 1, int32_t(uint32_t(in.imm)), to);
  addresses(in.o[1], in.regBytes & 2, int32_t(uint32_t(uint64_t(in.imm) >> 32)),
            from);
  Faults faults;
  uint32_t reads = 0;
  uint64_t end = uint64_t(sharedBase) + w.cta->sharedBytes;
  Faults sources;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    uint64_t d = to.address[i];
    if (d & (bytes - 1))
      faults.align(i);
    else if (d < sharedBase || d + bytes > end)
      faults.bounds(i);
    uint32_t n = sourceBytes[i];
    if (n > bytes) {
      l.addReport(w, w.instIndex(in), ReportKind::InvalidInstruction, 1u << i,
                  "a source of " + std::to_string(n) + " bytes for a copy of " +
                      std::to_string(bytes));
      return;
    }
    if (n) {
      reads |= 1u << i;
      if (from.address[i] & (bytes - 1))
        sources.align(i);
      else if (!globalLane(w, from.address[i], n, false))
        sources.bounds(i);
    }
  }
  if (faults.all())
    faults.report(w, in, Space::Shared, bytes, Access::Write, to);
  if (sources.all())
    sources.report(w, in, Space::Global, bytes, Access::Read, from);
  mask &= ~(faults.all() | sources.all());
  reads &= mask;
  if (!mask)
    return;
  if (l.countAccesses) {
    countBanks(l, mask, bytes, to.address);
    if (reads)
      countSectors(l, reads, bytes, from.address);
  }
  // Whether the source is read now or when it is waited for is the hardware's
  // choice; the seed's here.
  bool sample = l.options.seed == 0 || (l.random() & 1);
  for (unsigned i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    PendingCopy c;
    c.source = from.address[i];
    c.dest = uint32_t(to.address[i]);
    c.group = w.copyGroup[i];
    c.inst = w.instIndex(in);
    c.lane = uint8_t(i);
    c.bytes = uint8_t(bytes);
    c.sourceBytes = uint8_t(sourceBytes[i]);
    c.sampled = sample;
    if (sample) {
      std::memset(c.data, 0, 16);
      if (c.sourceBytes)
        std::memcpy(c.data, reinterpret_cast<const void *>(uintptr_t(c.source)),
                    c.sourceBytes);
    }
    w.copies.push_back(c);
    if (l.checker)
      l.checker->issueCopy(w, in, i, c.dest, bytes);
  }
  if (l.checker && reads) {
    for (unsigned i = 0; i < 32; ++i)
      from.p[i] = reinterpret_cast<uint8_t *>(uintptr_t(from.address[i]));
    // By the size that is read: all lanes of one size at a time.
    for (uint32_t left = reads; left;) {
      uint32_t n = sourceBytes[__builtin_ctz(left)], same = 0;
      for (unsigned i = 0; i < 32; ++i)
        if (left >> i & 1 && sourceBytes[i] == n)
          same |= 1u << i;
      l.checker->access(w, in, Space::Global, same, n, Access::Read, from);
      left &= ~same;
    }
  }
}

void waitCopies(Warp &w, const Inst &, uint32_t mask, uint32_t keep) {
  if (w.copies.empty())
    return;
  Launch &l = *w.launch;
  bool all = keep == 0 && !w.alive;
  size_t kept = 0;
  for (PendingCopy &c : w.copies) {
    uint32_t groups = w.copyGroup[c.lane];
    bool done = all || ((mask >> c.lane & 1) && groups > c.group &&
                        groups - c.group > keep);
    if (!done) {
      w.copies[kept++] = c;
      continue;
    }
    if (!c.sampled) {
      std::memset(c.data, 0, 16);
      if (c.sourceBytes)
        std::memcpy(c.data, reinterpret_cast<const void *>(uintptr_t(c.source)),
                    c.sourceBytes);
    }
    std::memcpy(w.cta->shared + (c.dest - sharedBase), c.data, c.bytes);
    if (l.checker)
      l.checker->finishCopy(w, c);
  }
  w.copies.resize(kept);
}

} // namespace fi::emulator
