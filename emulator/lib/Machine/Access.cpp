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
#include "Async.h"
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
    // The first word of each bank; usually there is no other.
    uint64_t first[32];
    uint32_t seen = 0;
    bool conflict = false;
    for (unsigned k = 0; k < n; ++k) {
      uint32_t bank = uint32_t(words[k] % 32), bit = 1u << bank;
      conflict |= (seen & bit) && first[bank] != words[k];
      first[bank] = seen & bit ? first[bank] : words[k];
      seen |= bit;
    }
    uint32_t banks[32] = {}, most = 1;
    if (conflict) {
      std::sort(words, words + n);
      n = unsigned(std::unique(words, words + n) - words);
      for (unsigned k = 0; k < n; ++k)
        most = std::max(most, ++banks[words[k] % 32]);
    }
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

/// One lane at a global address. False: nothing is there.
inline bool globalLane(Warp &w, uint64_t address, uint32_t bytes, bool write) {
  const Warp::Range *r = &w.rangeOf(address);
  if (address - r->base >= r->end - r->base || bytes > r->end - address) {
    Allocation *a = w.launch->memory.find(address, bytes);
    if (!a)
      return false;
    Warp::Range &taken = w.ranges[w.nextRange++ % std::size(w.ranges)];
    taken = {a->base, a->end, a->writable};
    r = &taken;
  }
  return !write || r->writable;
}

uint32_t resolveGlobal(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                       Access access, Lanes &lanes) {
  const uint64_t *a = lanes.address;
  bool write = access != Access::Read;
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
  observe(w, in, Space::Global, mask, bytes, access, lanes);
  return mask;
}

/// Addresses are offsets in the shared window.
uint32_t resolveShared(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                       Access access, Lanes &lanes) {
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
  observe(w, in, Space::Shared, mask, bytes, access, lanes);
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

void observe(Warp &w, const Inst &in, Space space, uint32_t mask,
             uint32_t bytes, Access access, const Lanes &lanes) {
  Launch &l = *w.launch;
  if (l.countAccesses) {
    if (space == Space::Shared)
      countBanks(l, mask, bytes, lanes.address);
    else
      countSectors(l, mask, bytes, lanes.address);
  }
  if (l.checker)
    l.checker->access(w, in, space, mask, bytes, access, lanes);
}

//===- cp.async -----------------------------------------------------------===//

namespace {

/// The lanes of `mask` that may go on; the others are reported.
uint32_t checkCopies(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                     const uint32_t *sourceBytes, const Lanes &to,
                     const Lanes &from) {
  Faults faults, sources;
  uint64_t end = uint64_t(sharedBase) + w.cta->sharedBytes;
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
      w.launch->addReport(w, w.instIndex(in), ReportKind::InvalidInstruction,
                          1u << i,
                          "a source of " + std::to_string(n) +
                              " bytes for a copy of " + std::to_string(bytes));
      return 0;
    }
    if (n) {
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
  return mask & ~(faults.all() | sources.all());
}

inline const uint8_t *host(uint64_t address) {
  return reinterpret_cast<const uint8_t *>(uintptr_t(address));
}

void sample(PendingCopies &c, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned i = unsigned(__builtin_ctz(left));
    if (c.sourceBytes[i] == 16) {
      std::memcpy(c.data[i], host(c.source[i]), 16);
      continue;
    }
    std::memset(c.data[i], 0, 16);
    if (c.sourceBytes[i])
      std::memcpy(c.data[i], host(c.source[i]), c.sourceBytes[i]);
  }
}

} // namespace

void issueCopies(Warp &w, const Inst &in, uint32_t mask, uint32_t bytes,
                 const uint32_t *sourceBytes, Lanes &to, Lanes &from,
                 bool checked) {
  Launch &l = *w.launch;
  if (!checked)
    mask = checkCopies(w, in, mask, bytes, sourceBytes, to, from);
  if (!mask)
    return;
  if (w.copyCount == w.copies.size())
    w.copies.emplace_back();
  PendingCopies &c = w.copies[w.copyCount++];
  c.mask = mask;
  c.inst = w.instIndex(in);
  c.serial = w.copySerial++;
  c.bytes = uint8_t(bytes);
  // Whether the source is read now or when it is waited for is the hardware's
  // choice; the seed's here.
  c.sampled = l.options.seed == 0 || (l.random() & 1);
  std::memcpy(c.group, w.copyGroup, sizeof(c.group));
  std::memcpy(c.source, from.address, sizeof(c.source));
  for (unsigned i = 0; i < 32; ++i) {
    c.dest[i] = uint32_t(to.address[i]);
    c.sourceBytes[i] = uint8_t(sourceBytes[i]);
  }
  if (c.sampled)
    sample(c, mask);
  if (!w.observed)
    return;
  uint32_t reads = 0;
  for (unsigned i = 0; i < 32; ++i)
    reads |= uint32_t(sourceBytes[i] != 0) << i;
  reads &= mask;
  if (l.countAccesses) {
    countBanks(l, mask, bytes, to.address);
    if (reads)
      countSectors(l, reads, bytes, from.address);
  }
  if (!l.checker)
    return;
  l.checker->issueCopies(w, c);
  for (unsigned i = 0; i < 32; ++i)
    from.p[i] = const_cast<uint8_t *>(host(from.address[i]));
  // By the size that is read: all lanes of one size at a time.
  for (uint32_t left = reads; left;) {
    uint32_t n = sourceBytes[__builtin_ctz(left)], same = 0;
    for (unsigned i = 0; i < 32; ++i)
      same |= uint32_t(sourceBytes[i] == n) << i;
    same &= left;
    l.checker->access(w, in, Space::Global, same, n, Access::Read, from);
    left &= ~same;
  }
}

namespace {

/// Ends the copies of the lanes that `which` names; `by`: the mbarrier that
/// tells of them, or null.
template <class F> void endCopies(Warp &w, const Mbarrier *by, F which) {
  Launch &l = *w.launch;
  uint32_t kept = 0;
  for (uint32_t k = 0; k < w.copyCount; ++k) {
    PendingCopies &c = w.copies[k];
    uint32_t done = which(c) & c.mask;
    if (done) {
      if (!c.sampled)
        sample(c, done);
      uint8_t *base = w.cta->shared - sharedBase;
      for (uint32_t left = done; left; left &= left - 1) {
        unsigned i = unsigned(__builtin_ctz(left));
        if (c.bytes == 16)
          std::memcpy(base + c.dest[i], c.data[i], 16);
        else
          std::memcpy(base + c.dest[i], c.data[i], c.bytes);
      }
      if (l.checker)
        l.checker->finishCopies(w, c, done, by);
      c.mask &= ~done;
    }
    if (c.mask) {
      if (kept != k)
        std::swap(w.copies[kept], c);
      ++kept;
    }
  }
  w.copyCount = kept;
}

} // namespace

void waitCopies(Warp &w, const Inst &, uint32_t mask, uint32_t keep) {
  Launch &l = *w.launch;
  if (!w.copyCount)
    return;
  bool all = keep == 0 && !w.alive;
  // Mbarriers tell of the copies that they were told of, also when the threads
  // that started them are gone.
  if (all)
    l.completeArrivals(w);
  endCopies(w, nullptr, [&](const PendingCopies &c) {
    if (all)
      return c.mask;
    uint32_t done = 0;
    for (unsigned i = 0; i < 32; ++i)
      done |= uint32_t(w.copyGroup[i] > c.group[i] &&
                       w.copyGroup[i] - c.group[i] > keep)
              << i;
    return done & mask;
  });
}

void finishCopiesBefore(Warp &w, uint32_t mask, uint32_t serial,
                        const Mbarrier *by) {
  endCopies(w, by, [&](const PendingCopies &c) {
    return int32_t(c.serial - serial) < 0 ? mask : 0;
  });
}

} // namespace fi::emulator
