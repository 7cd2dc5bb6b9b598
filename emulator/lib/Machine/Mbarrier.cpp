//===- Mbarrier.cpp - Phases, arrivals and bytes --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An mbarrier counts its phases in full; kernels see the parity, or a state
// that holds the phase and the pending arrivals. A phase ends when no arrival
// and no byte is pending. What is known of a barrier lies beside the memory,
// which holds a pattern that tells whether somebody wrote there.
//
//===----------------------------------------------------------------------===//
#include "Async.h"
#include "Checker.h"

namespace fi::emulator {
namespace {

constexpr uint32_t mostCount = (1u << 20) - 1;
constexpr uint32_t mostFailedTests = 1u << 18;
constexpr uint64_t pattern = 0x6d62617272696572ull;

uint64_t patternOf(uint32_t address) {
  return pattern ^ (uint64_t(address) * 0x9e3779b97f4a7c15ull);
}
uint8_t *bytesOf(Cta &cta, uint32_t address) {
  return cta.shared + (address - sharedBase);
}

void fault(Warp &w, const Inst &in, unsigned lane, const std::string &message,
           uint64_t address) {
  w.launch->addReport(w, w.instIndex(in), ReportKind::MbarrierFault, 1u << lane,
                      message, address);
}

std::string at(uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(address));
  return text;
}

/// The shared address, whether given as such or generic. False: reported.
bool place(Warp &w, const Inst &in, unsigned lane, uint64_t address,
           uint32_t &out) {
  if ((address & windowMask) == sharedWindow)
    address &= ~windowMask;
  uint64_t end = uint64_t(sharedBase) + w.cta->sharedBytes;
  if (address < sharedBase || address + 8 > end || address > end) {
    w.launch->addReport(w, w.instIndex(in), ReportKind::OutOfBounds, 1u << lane,
                        "mbarrier at shared address " + at(address) +
                            "; the block has " +
                            std::to_string(w.cta->sharedBytes) +
                            " bytes from " + hex32(sharedBase),
                        address);
    return false;
  }
  if (address % 8) {
    w.launch->addReport(
        w, w.instIndex(in), ReportKind::Misaligned, 1u << lane,
        "mbarrier at " + at(address) + ", which is no multiple of 8", address);
    return false;
  }
  out = uint32_t(address);
  return true;
}

Mbarrier *find(Warp &w, const Inst &in, unsigned lane, uint64_t address) {
  uint32_t where;
  if (!place(w, in, lane, address, where))
    return nullptr;
  Mbarrier *m = w.cta->mbarriers ? w.cta->mbarriers->find(where) : nullptr;
  if (!m) {
    fault(w, in, lane, "no mbarrier was initialised at " + at(where), where);
    return nullptr;
  }
  uint64_t got;
  std::memcpy(&got, bytesOf(*w.cta, where), 8);
  if (got != patternOf(where)) {
    fault(w, in, lane, "the mbarrier at " + at(where) + " was overwritten",
          where);
    return nullptr;
  }
  return m;
}

/// Adds to the bytes that are pending; false: beyond what the hardware counts.
bool addBytes(Mbarrier &m, int64_t bytes) {
  m.bytes += bytes;
  return m.bytes <= int64_t(mostCount) && m.bytes >= -int64_t(mostCount);
}

uint64_t stateOf(const Mbarrier &m) { return m.phase << 20 | m.pending; }

} // namespace

std::string describe(const Mbarrier &m) {
  return "the mbarrier at " + at(m.address) + ", phase " +
         std::to_string(m.phase) + " (parity " + std::to_string(m.phase & 1) +
         "), with " + std::to_string(m.pending) + " of " +
         std::to_string(m.expected) + " arrivals and " +
         std::to_string(m.bytes) + " bytes pending";
}

void Launch::checkPhase(Cta &cta, Mbarrier &m) {
  if (m.pending || m.bytes)
    return;
  ++m.phase;
  m.pending = m.expected;
  cta.idleRounds = 0;
  failedTests = 0;
  if (checker)
    checker->mbarrierPhase(cta, m);
  for (Warp &w : cta.warps)
    for (Fragment &f : w.fragments)
      if (f.wait == Wait::Mbarrier &&
          (f.barrier == m.address || f.barrier == anyMbarrier))
        f.wait = Wait::None;
}

void mbarrierInit(Warp &w, const Inst &in, uint32_t mask,
                  const uint64_t *address, const uint32_t *count) {
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned i = unsigned(__builtin_ctz(left));
    uint32_t where;
    if (!place(w, in, i, address[i], where))
      continue;
    if (count[i] == 0 || count[i] > mostCount) {
      fault(w, in, i,
            "mbarrier.init with a count of " + std::to_string(count[i]) +
                "; expected 1 to " + std::to_string(mostCount),
            where);
      return;
    }
    if (!w.cta->mbarriers)
      w.cta->mbarriers = std::make_shared<Mbarriers>();
    if (Mbarrier *old = w.cta->mbarriers->find(where)) {
      uint64_t got;
      std::memcpy(&got, bytesOf(*w.cta, where), 8);
      if (got == patternOf(where)) {
        fault(w, in, i,
              "mbarrier.init of a barrier that exists: " + describe(*old) +
                  "; mbarrier.inval comes first",
              where);
        return;
      }
    }
    Mbarrier &m = w.cta->mbarriers->byAddress[where];
    m = Mbarrier();
    m.address = where;
    m.expected = m.pending = count[i];
    m.initInst = w.instIndex(in);
    if (w.launch->checker)
      w.launch->checker->mbarrierInit(w, in, i, m);
    uint64_t value = patternOf(where);
    std::memcpy(bytesOf(*w.cta, where), &value, 8);
  }
}

void mbarrierInval(Warp &w, const Inst &in, uint32_t mask,
                   const uint64_t *address) {
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned i = unsigned(__builtin_ctz(left));
    Mbarrier *m = find(w, in, i, address[i]);
    if (!m)
      return;
    if (w.launch->checker)
      w.launch->checker->mbarrierUse(w, in, i, *m);
    std::memset(bytesOf(*w.cta, m->address), 0xff, 8);
    w.cta->mbarriers->byAddress.erase(m->address);
  }
}

void Launch::arriveAt(Warp &w, const Inst &in, unsigned lane, Mbarrier &m,
                      uint32_t count, bool noComplete) {
  if (count > m.pending || count == 0) {
    fault(w, in, lane,
          std::to_string(count) + " arrivals at " + describe(m) +
              "; no more may arrive than are pending",
          m.address);
    return;
  }
  m.pending -= count;
  if (noComplete && m.pending == 0) {
    fault(w, in, lane,
          "an arrival without completion would end the phase of " + describe(m),
          m.address);
    return;
  }
  checkPhase(*w.cta, m);
}

/// Those of the lanes `left` whose address is that of lane `i`, the lowest.
static uint32_t lanesAt(const uint64_t *address, unsigned i, uint32_t left) {
  uint32_t same = 0;
  for (unsigned k = i; k < 32; ++k)
    same |= uint32_t(address[k] == address[i]) << k;
  return same & left;
}

void mbarrierArrive(Warp &w, const Inst &in, uint32_t mask,
                    const uint64_t *address, MbarrierArrive what,
                    const uint32_t *count, const uint32_t *bytes,
                    uint64_t *state) {
  Launch &l = *w.launch;
  for (uint32_t left = mask; left;) {
    unsigned i = unsigned(__builtin_ctz(left));
    // Lanes at one barrier arrive together.
    uint32_t same = lanesAt(address, i, left);
    left &= ~same;
    Mbarrier *m = find(w, in, i, address[i]);
    if (!m)
      return;
    if (l.checker) {
      l.checker->mbarrierUse(w, in, i, *m);
      if (what.arrives && what.releases)
        l.checker->mbarrierArrive(w, *m, same);
    }
    for (uint32_t lanes = same; lanes && !l.stopped; lanes &= lanes - 1) {
      unsigned k = unsigned(__builtin_ctz(lanes));
      if (state)
        state[k] = stateOf(*m);
      if (what.expects && !addBytes(*m, int64_t(bytes[k]))) {
        fault(w, in, k, "more bytes than an mbarrier counts: " + describe(*m),
              m->address);
        return;
      }
      if (what.drops) {
        if (count[k] > m->expected) {
          fault(w, in, k,
                "arrive_drop of " + std::to_string(count[k]) + " at " +
                    describe(*m),
                m->address);
          return;
        }
        m->expected -= count[k];
      }
      if (what.arrives)
        l.arriveAt(w, in, k, *m, count[k], what.noComplete);
    }
  }
}

void mbarrierComplete(Warp &w, const Inst &in, uint32_t mask,
                      const uint64_t *address, const uint32_t *bytes) {
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned i = unsigned(__builtin_ctz(left));
    Mbarrier *m = find(w, in, i, address[i]);
    if (!m)
      return;
    if (!addBytes(*m, -int64_t(bytes[i])))
      return fault(w, in, i,
                   "more bytes than an mbarrier counts: " + describe(*m),
                   m->address);
    w.launch->checkPhase(*w.cta, *m);
  }
}

bool mbarrierTest(Warp &w, const Inst &in, uint32_t mask,
                  const uint64_t *address, const uint64_t *values, bool parity,
                  bool waits, bool acquires, uint32_t &done) {
  Launch &l = *w.launch;
  done = 0;
  uint32_t waitsAt = 0;
  bool several = false;
  for (uint32_t left = mask; left;) {
    unsigned i = unsigned(__builtin_ctz(left));
    uint32_t same = 0;
    for (unsigned k = i; k < 32; ++k)
      same |= uint32_t(address[k] == address[i] && values[k] == values[i]) << k;
    same &= left;
    left &= ~same;
    Mbarrier *m = find(w, in, i, address[i]);
    if (!m)
      return true;
    if (l.checker)
      l.checker->mbarrierUse(w, in, i, *m);
    bool over;
    if (parity) {
      if (values[i] > 1) {
        fault(w, in, i,
              "a parity of " + std::to_string(values[i]) + "; expected 0 or 1",
              m->address);
        return true;
      }
      over = (m->phase & 1) != values[i];
    } else {
      uint64_t phase = values[i] >> 20;
      if (phase > m->phase || phase + 1 < m->phase) {
        fault(w, in, i,
              "the state is of phase " + std::to_string(phase) +
                  ", which is neither the current nor the one before, of " +
                  describe(*m),
              m->address);
        return true;
      }
      over = phase < m->phase;
    }
    if (over) {
      done |= same;
      if (l.checker && acquires)
        l.checker->mbarrierObserve(w, *m, same);
    } else {
      several |= waitsAt && waitsAt != m->address;
      waitsAt = m->address;
    }
  }
  if (done || !waitsAt)
    return true;
  if (waits && !w.timedOut) {
    w.waitBarrier = several ? anyMbarrier : waitsAt;
    block(w, Wait::Mbarrier, 0);
    return false;
  }
  w.timedOut = false;
  if (!waits) {
    // A loop of tests: others go on, and copies end.
    w.limit = 0;
    w.yielded = true;
    if (++l.failedTests > mostFailedTests) {
      l.addReport(w, w.instIndex(in), ReportKind::Deadlock, mask,
                  "nothing happens while mbarriers are tested: waiting for " +
                      describe(*w.cta->mbarriers->find(waitsAt)),
                  waitsAt);
    }
  }
  return true;
}

uint32_t mbarrierPending(uint64_t state) { return uint32_t(state) & mostCount; }

void mbarrierAfterCopies(Warp &w, const Inst &in, uint32_t mask,
                         const uint64_t *address, bool noinc) {
  for (uint32_t left = mask; left;) {
    unsigned i = unsigned(__builtin_ctz(left));
    uint32_t same = lanesAt(address, i, left);
    left &= ~same;
    Mbarrier *m = find(w, in, i, address[i]);
    if (!m)
      return;
    if (w.launch->checker)
      w.launch->checker->mbarrierUse(w, in, i, *m);
    AsyncOp op;
    op.afterCopies = true;
    op.warp = w.index;
    op.lanes = same;
    op.inst = w.instIndex(in);
    op.barrier = m->address;
    op.arrivals = uint32_t(__builtin_popcount(same));
    op.group = w.copySerial;
    if (!noinc) {
      if (m->pending + op.arrivals > mostCount)
        return fault(w, in, i, "too many arrivals at " + describe(*m),
                     m->address);
      m->pending += op.arrivals;
    }
    w.launch->issueAsync(w, std::move(op));
  }
}

} // namespace fi::emulator
