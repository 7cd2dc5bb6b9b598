//===- Order.cpp - What happens before what -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Checker.h"

#include <algorithm>

namespace fi::emulator {
namespace {

constexpr size_t mostSyncs = 1 << 20;

void joinPairs(std::vector<std::pair<uint32_t, uint32_t>> &into,
               const std::vector<std::pair<uint32_t, uint32_t>> &from) {
  // Both sorted by warp.
  std::vector<std::pair<uint32_t, uint32_t>> out;
  out.reserve(into.size() + from.size());
  size_t a = 0, b = 0;
  while (a < into.size() || b < from.size()) {
    if (b == from.size() ||
        (a < into.size() && into[a].first < from[b].first)) {
      out.push_back(into[a++]);
    } else if (a == into.size() || from[b].first < into[a].first) {
      out.push_back(from[b++]);
    } else {
      out.push_back({into[a].first, std::max(into[a].second, from[b].second)});
      ++a;
      ++b;
    }
  }
  into = std::move(out);
}

} // namespace

void Knowledge::add(const Part &part) {
  const std::vector<uint32_t> &whole = part.proxied ? proxied : local;
  if (part.warp < whole.size() && part.clock <= whole[part.warp])
    return;
  for (Part &mine : parts)
    if (mine.warp == part.warp && mine.lanes == part.lanes &&
        mine.proxied == part.proxied) {
      mine.clock = std::max(mine.clock, part.clock);
      return;
    }
  // Few are alive at a time; the oldest go.
  if (parts.size() >= 64)
    parts.erase(parts.begin());
  parts.push_back(part);
}

void Knowledge::join(const Knowledge &other) {
  if (local.size() < other.local.size())
    local.resize(other.local.size(), 0);
  for (size_t i = 0; i < other.local.size(); ++i)
    local[i] = std::max(local[i], other.local[i]);
  if (proxied.size() < other.proxied.size())
    proxied.resize(other.proxied.size(), 0);
  for (size_t i = 0; i < other.proxied.size(); ++i)
    proxied[i] = std::max(proxied[i], other.proxied[i]);
  for (const Part &part : other.parts)
    add(part);
  if (!other.foreign || other.foreign == foreign)
    return;
  if (!foreign) {
    foreign = other.foreign;
    return;
  }
  auto merged =
      std::make_shared<std::unordered_map<uint32_t, uint32_t>>(*foreign);
  for (auto &[warp, clock] : *other.foreign) {
    uint32_t &mine = (*merged)[warp];
    mine = std::max(mine, clock);
  }
  foreign = std::move(merged);
}

void Checker::arrive(Warp &w, uint32_t barrier, uint32_t mask) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  ++me.clock;
  me.knows.local[w.index] = me.clock;
  block.barriers[barrier].join(me.knows);
  (void)mask;
}

void Checker::publish(Warp &w, uint32_t mask, Knowledge &into) {
  WarpState &me = stateOf(w);
  ++me.clock;
  uint32_t others = me.touched & ~mask & w.alive;
  if (!others) {
    me.knows.local[w.index] = me.clock;
    into.join(me.knows);
    return;
  }
  // What lanes did that did not meet the one here is not told of.
  uint32_t met = me.clock;
  for (uint32_t left = others; left; left &= left - 1)
    met = std::min(met, me.laneSync[__builtin_ctz(left)]);
  uint32_t &mine = me.knows.local[w.index];
  mine = std::max(mine, met);
  into.join(me.knows);
  into.add({w.index, mask, me.clock, false});
}

void Checker::fenceProxy(Warp &w, uint32_t mask) {
  WarpState &me = stateOf(w);
  Knowledge now;
  publish(w, mask, now);
  std::vector<uint32_t> &behind = me.knows.proxied;
  if (behind.size() < now.local.size())
    behind.resize(now.local.size(), 0);
  for (size_t i = 0; i < now.local.size(); ++i)
    behind[i] = std::max(behind[i], now.local[i]);
  for (Knowledge::Part part : now.parts) {
    part.proxied = true;
    me.knows.add(part);
  }
}

void Checker::release(Cta &cta, uint32_t barrier,
                      const std::vector<Warp *> &waiting) {
  BlockState &block = blockOf(cta);
  Knowledge all = std::move(block.barriers[barrier]);
  block.barriers.erase(barrier);
  for (Warp *w : waiting) {
    WarpState &s = block.warps[w->index];
    s.knows.join(all);
    // Lanes of one warp have met as well.
    for (uint32_t &lane : s.laneSync)
      lane = s.clock;
    s.touched = 0;
  }
}

void Checker::warpSynced(Warp &w, uint32_t mask) {
  WarpState &me = stateOf(w);
  ++me.clock;
  for (uint32_t i = 0; i < 32; ++i)
    if (mask >> i & 1)
      me.laneSync[i] = me.clock;
  if ((me.touched & ~mask) == 0)
    me.touched = 0;
}

void Checker::fence(Warp &w) {
  WarpState &me = stateOf(w);
  ++me.clock;
  me.knows.local[w.index] = me.clock;
  learn(me, *w.cta, me.pending);
  me.pending.clear();
  me.published = me.knows;
  me.fenced = true;
}

void Checker::learn(WarpState &me, const Cta &cta,
                    const std::vector<std::pair<uint32_t, uint32_t>> &what) {
  uint32_t first = cta.linear * launch.warpsPerBlock;
  std::shared_ptr<std::unordered_map<uint32_t, uint32_t>> changed;
  for (auto [warp, clock] : what) {
    if (warp >= first && warp < first + launch.warpsPerBlock) {
      uint32_t &mine = me.knows.local[warp - first];
      mine = std::max(mine, clock);
      continue;
    }
    if (me.knows.foreign) {
      auto it = me.knows.foreign->find(warp);
      if (it != me.knows.foreign->end() && it->second >= clock)
        continue;
    }
    if (!changed) {
      changed =
          me.knows.foreign
              ? std::make_shared<std::unordered_map<uint32_t, uint32_t>>(
                    *me.knows.foreign)
              : std::make_shared<std::unordered_map<uint32_t, uint32_t>>();
    }
    uint32_t &mine = (*changed)[warp];
    mine = std::max(mine, clock);
  }
  if (changed)
    me.knows.foreign = std::move(changed);
}

void Checker::synchronise(WarpState &me, const Cta &cta, const Inst &in,
                          uint64_t address, Access access) {
  uint32_t first = cta.linear * launch.warpsPerBlock;
  if (access != Access::Write) {
    auto it = syncs.find(address);
    if (it != syncs.end()) {
      if (in.flags & Inst::Acquire)
        learn(me, cta, it->second);
      else
        joinPairs(me.pending, it->second);
    }
  }
  if (access == Access::Read)
    return;
  bool release = in.flags & Inst::Release;
  if (release) {
    ++me.clock;
    me.knows.local[me.id - first] = me.clock;
  }
  if (!release && !me.fenced) {
    // A plain store ends what was released here; an atomic continues it.
    if (access == Access::Write)
      syncs.erase(address);
    return;
  }
  const Knowledge &k = release ? me.knows : me.published;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  // mbarriers are the block's own.
  for (uint32_t i = 0; i < launch.warpsPerBlock && i < k.local.size(); ++i)
    if (k.local[i])
      pairs.push_back({first + i, k.local[i]});
  if (k.foreign)
    for (auto &[warp, clock] : *k.foreign)
      pairs.push_back({warp, clock});
  std::sort(pairs.begin(), pairs.end());
  if (syncs.size() > mostSyncs)
    syncs.clear();
  auto &slot = syncs[address];
  if (access == Access::Write)
    slot = std::move(pairs);
  else
    joinPairs(slot, pairs);
}

} // namespace fi::emulator
