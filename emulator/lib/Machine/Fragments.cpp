//===- Fragments.cpp - Divergence, reconvergence and barriers -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Checker.h"

#include <algorithm>

namespace fi::emulator {

std::string hex32(uint32_t v) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", v);
  return text;
}

//===- Fragments ----------------------------------------------------------===//

void block(Warp &w, Wait why, uint32_t members) {
  // The instruction is repeated when the others are there.
  --w.pc;
  --w.launch->counts[w.pc];
  w.wait = why;
  w.waitMembers = members;
  w.limit = 0;
}

void partialWarp(Warp &w, const Inst &in, uint32_t mask) {
  bool others = false;
  for (uint32_t i = 0; i < w.fragments.size(); ++i)
    others |= i != w.current;
  if (others && mask == w.active) {
    block(w, Wait::Converge, w.launched);
    return;
  }
  uint32_t missing = ~mask;
  std::string why = missing & w.active     ? "switched off by its guard"
                    : missing & w.launched ? "exited"
                                           : "not part of the block";
  w.launch->addReport(w, w.instIndex(in), ReportKind::Divergence, mask,
                      "an instruction of the whole warp is executed by lanes " +
                          hex32(mask) + "; the others are " + why);
}

void branch(Warp &w, uint32_t taken, uint32_t target) {
  if (taken == w.active) {
    bool backward = target < w.pc;
    w.pc = target;
    if (backward && w.fragments.size() > 1)
      w.limit = 0;
    return;
  }
  Fragment other;
  other.pc = target;
  other.mask = taken;
  w.fragments.push_back(other);
  w.active &= ~taken;
  w.limit = 0;
}

void diverge(Warp &w, const uint32_t *targets, uint32_t mask) {
  uint32_t rest = w.active & ~mask;
  uint32_t left = mask;
  bool first = rest == 0;
  uint32_t keep = rest;
  while (left) {
    uint32_t target = targets[__builtin_ctz(left)], same = 0;
    for (unsigned i = 0; i < 32; ++i)
      if (left >> i & 1 && targets[i] == target)
        same |= 1u << i;
    left &= ~same;
    if (first) {
      w.pc = target;
      keep = same;
      first = false;
    } else {
      Fragment f;
      f.pc = target;
      f.mask = same;
      w.fragments.push_back(f);
    }
  }
  w.active = keep;
  w.limit = 0;
}

void exitLanes(Warp &w, uint32_t mask) {
  w.alive &= ~mask;
  w.active &= ~mask;
  w.limit = 0;
  if (!w.alive)
    w.launch->warpExited(w);
}

bool Launch::select(Warp &w) {
  // Fragments at one place become one. Those behind a barrier that has not
  // opened are somewhere else.
  std::vector<Fragment> &fs = w.fragments;
  for (size_t i = 0; i < fs.size(); ++i) {
    if (isElsewhere(fs[i].wait))
      continue;
    for (size_t k = i + 1; k < fs.size();) {
      if (fs[k].pc == fs[i].pc && !isElsewhere(fs[k].wait)) {
        fs[i].mask |= fs[k].mask;
        fs[i].wait = Wait::None;
        fs[i].expired = false;
        fs[i].timedOut |= fs[k].timedOut;
        fs[k] = fs.back();
        fs.pop_back();
      } else {
        ++k;
      }
    }
  }
  if (fs.size() > 1 || fs[0].wait != Wait::None) {
    uint32_t together = 0;
    for (const Fragment &f : fs)
      if (f.wait == Wait::WarpBarrier)
        together |= f.mask;
    bool released = false;
    for (Fragment &f : fs) {
      if (f.wait == Wait::Converge || f.wait == Wait::Lanes) {
        if ((f.members & w.alive & ~f.mask) == 0)
          f.wait = Wait::None;
        // The rest of the warp has exited: the instruction says so itself.
        if (f.wait == Wait::Converge && fs.size() == 1)
          f.wait = Wait::None;
      } else if (f.wait == Wait::WarpBarrier &&
                 (f.members & w.alive & ~together) == 0) {
        f.wait = Wait::None;
        ++f.pc;
        released = true;
      }
    }
    if (released) {
      if (checker)
        checker->warpSynced(w, together);
      return select(w);
    }
  }
  for (unsigned round = 0; round < 2; ++round) {
    const Fragment *best = nullptr;
    for (const Fragment &f : fs)
      if (f.wait == Wait::None && !f.expired && (!best || f.pc < best->pc))
        best = &f;
    if (best) {
      w.current = uint32_t(best - fs.data());
      w.pc = best->pc;
      w.active = best->mask;
      w.limit = ~0u;
      for (const Fragment &f : fs)
        if (!isElsewhere(f.wait) && f.pc > w.pc)
          w.limit = std::min(w.limit, f.pc);
      w.wait = Wait::None;
      w.timedOut = best->timedOut;
      fs[w.current].timedOut = false;
      return true;
    }
    for (Fragment &f : fs)
      f.expired = false;
  }
  bool barrier = false;
  for (const Fragment &f : fs)
    barrier |= isElsewhere(f.wait);
  if (barrier)
    return false; // another warp may open it
  // Lanes wait for each other at different places.
  const Fragment *at = &fs[0];
  for (const Fragment &f : fs)
    if (f.pc < at->pc)
      at = &f;
  bool aligned = false;
  for (const Fragment &f : fs)
    aligned |= f.wait == Wait::Converge;
  addReport(
      w, at->pc, aligned ? ReportKind::Divergence : ReportKind::Deadlock,
      at->mask,
      std::string(aligned ? "an instruction of the whole warp is reached by a "
                            "part of it"
                          : "lanes wait for each other at different places") +
          "; " + describePosition(w));
  return false;
}

//===- Barriers -----------------------------------------------------------===//

void barrierArrive(Warp &w, const Inst &in, uint32_t mask, uint32_t id,
                   uint32_t count, bool counted, bool waits, bool red,
                   uint32_t predicate) {
  Launch &l = *w.launch;
  uint32_t at = w.instIndex(in);
  auto misuse = [&](const std::string &message) {
    l.addReport(w, at, ReportKind::BarrierMisuse, mask, message);
  };
  if (id >= 16)
    return misuse("barrier " + std::to_string(id) +
                  " does not exist; there are 16");
  Barrier &b = w.cta->barriers[id];
  if (counted && (count == 0 || count % 32))
    return misuse("barrier " + std::to_string(id) + " expects " +
                  std::to_string(count) +
                  " threads; a multiple of 32 is needed");
  if (counted && count > l.warpsPerBlock * 32)
    return misuse("barrier " + std::to_string(id) + " expects " +
                  std::to_string(count) + " threads, but the block has " +
                  std::to_string(l.warpsPerBlock * 32));
  if (b.used && (b.counted != counted || (counted && b.expected != count)))
    return misuse("barrier " + std::to_string(id) + " expects " +
                  std::to_string(count) + " threads here, but " +
                  std::to_string(b.expected) + " where it was reached before");
  b.used = true;
  b.counted = counted;
  b.expected = counted ? count : 0;
  // A warp counts as 32 threads when all of its lanes have come.
  if ((w.alive & ~mask) == 0) {
    b.arrived += 32;
  } else {
    if (b.partial.empty())
      b.partial.assign(w.cta->warps.size(), 0);
    uint32_t &part = b.partial[w.index];
    part |= mask;
    if ((w.alive & ~part) == 0) {
      b.arrived += 32;
      part = 0;
    }
  }
  if (red) {
    uint32_t p = predicate & mask;
    b.popc += uint32_t(__builtin_popcount(p));
    b.all &= p == mask;
    b.any |= p != 0;
    b.readers.push_back({w.index, at, mask});
  }
  if (l.checker)
    l.checker->arrive(w, id, mask);
  if (waits) {
    w.wait = Wait::Barrier;
    w.waitBarrier = id;
    w.limit = 0;
    // The scheduler's record is behind: the barrier may open at once.
    Fragment &f = w.fragments[w.current];
    f.pc = w.pc;
    f.mask = w.active;
    f.wait = Wait::Barrier;
    f.barrier = id;
  }
  l.checkBarriers(*w.cta);
  if (waits && w.fragments[w.current].wait == Wait::None)
    w.wait = Wait::None;
}

void Launch::checkBarriers(Cta &cta) {
  for (uint32_t id = 0; id < cta.barriers.size(); ++id) {
    Barrier &b = cta.barriers[id];
    if (!b.used)
      continue;
    uint32_t expected = b.counted ? b.expected : cta.liveWarps * 32;
    if (b.arrived >= expected && b.arrived > 0)
      completeBarrier(cta, id);
  }
}

void Launch::completeBarrier(Cta &cta, uint32_t id) {
  Barrier &b = cta.barriers[id];
  for (const Barrier::Reader &r : b.readers) {
    Warp &w = cta.warps[r.warp];
    const Inst &in = kernel.code[r.inst];
    const uint32_t *o = in.ops();
    if (in.aux == 2) {
      for (unsigned i = 0; i < 32; ++i)
        if (r.mask >> i & 1)
          w.r32(o[0])[i] = b.popc;
    } else {
      bool v = in.aux == 3 ? b.all : b.any;
      w.setPred(o[0], v ? fullMask : 0, r.mask);
    }
  }
  std::vector<Warp *> waiting;
  for (Warp &w : cta.warps) {
    bool here = false;
    for (Fragment &f : w.fragments)
      if (f.wait == Wait::Barrier && f.barrier == id) {
        f.wait = Wait::None;
        here = true;
      }
    if (here)
      waiting.push_back(&w);
  }
  if (checker)
    checker->release(cta, id, waiting);
  b = Barrier();
}

void warpSynced(Warp &w, uint32_t mask) {
  if (w.launch->checker)
    w.launch->checker->warpSynced(w, mask);
}

void fence(Warp &w, uint32_t, uint32_t) {
  if (w.launch->checker)
    w.launch->checker->fence(w);
}

} // namespace fi::emulator
