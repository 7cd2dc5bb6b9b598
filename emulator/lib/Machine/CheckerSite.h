//===- CheckerSite.h - An access while it is checked ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the files of the checker share and nobody else sees.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_CHECKERSITE_H
#define FI_EMULATOR_MACHINE_CHECKERSITE_H

#include "Async.h"
#include "Checker.h"

#include <algorithm>

namespace fi::emulator {

inline void setAll(uint64_t *bits, uint64_t from, uint32_t count) {
  while (count) {
    uint32_t at = uint32_t(from % 64), n = std::min(count, 64 - at);
    uint64_t mask = (n == 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1) << at;
    bits[from / 64] |= mask;
    from += n;
    count -= n;
  }
}
inline bool test(const uint64_t *bits, uint64_t from, uint32_t count) {
  bool all = true;
  while (count) {
    uint32_t at = uint32_t(from % 64), n = std::min(count, 64 - at);
    uint64_t mask = (n == 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1) << at;
    all &= (bits[from / 64] & mask) == mask;
    from += n;
    count -= n;
  }
  return all;
}

struct Checker::Site {
  Site(Checker &checker, Warp &w, const Inst &in, Access kind)
      : warp(w), block(checker.blockOf(*w.cta)), me(block.warps[w.index]),
        perBlock(checker.launch.warpsPerBlock), first(w.cta->linear * perBlock),
        inst(w.instIndex(in)), kind(kind), strong(in.flags & Inst::Strong) {}

  Warp &warp;
  BlockState &block;
  WarpState &me;
  uint32_t perBlock, first, inst;
  Access kind;
  bool strong;
  /// ld.global.nc.
  bool late = false;
};

inline bool Checker::ordered(const Site &at, const Event &e, uint32_t lane) {
  if (e.clock == 0)
    return true;
  if (e.warp == at.me.id)
    return (e.lanes & ~(1u << lane)) == 0 || e.clock < at.me.laneSync[lane];
  uint32_t local = e.warp - at.first;
  if (local < at.perBlock) {
    if (e.clock < at.me.knows.local[local])
      return true;
    for (const Knowledge::Part &part : at.me.knows.parts)
      if (part.warp == local && !part.proxied && e.clock < part.clock &&
          (e.lanes & ~part.lanes) == 0)
        return true;
    return false;
  }
  if (e.warp & agentBit) {
    uint32_t agent = at.perBlock + (e.warp & ~agentBit);
    return agent < at.me.knows.local.size() &&
           e.clock < at.me.knows.local[agent];
  }
  if (!at.me.knows.foreign)
    return false;
  auto it = at.me.knows.foreign->find(e.warp);
  return it != at.me.knows.foreign->end() && e.clock < it->second;
}

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_CHECKERSITE_H
