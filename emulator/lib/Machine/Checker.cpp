//===- Checker.cpp - Races and reads of nothing ---------------------------===//
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

void Knowledge::join(const Knowledge &other) {
  if (local.size() < other.local.size())
    local.resize(other.local.size(), 0);
  for (size_t i = 0; i < other.local.size(); ++i)
    local[i] = std::max(local[i], other.local[i]);
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

void Checker::startBlock(Cta &cta) {
  auto block = std::make_unique<BlockState>();
  block->warps.resize(cta.warps.size());
  for (size_t i = 0; i < cta.warps.size(); ++i) {
    WarpState &s = block->warps[i];
    s.id = cta.linear * launch.warpsPerBlock + uint32_t(i);
    s.knows.local.assign(cta.warps.size(), 0);
  }
  block->written.assign(cta.sharedBytes, 0);
  blocks[cta.linear] = std::move(block);
}

bool Checker::ordered(const WarpState &me, const Cta &cta, const Event &e,
                      uint32_t lane) const {
  if (e.clock == 0)
    return true;
  if (e.warp == me.id)
    return (e.lanes & ~(1u << lane)) == 0 || e.clock < me.laneSync[lane];
  uint32_t first = cta.linear * launch.warpsPerBlock;
  if (e.warp >= first && e.warp < first + launch.warpsPerBlock)
    return e.clock < me.knows.local[e.warp - first];
  if (!me.knows.foreign)
    return false;
  auto it = me.knows.foreign->find(e.warp);
  return it != me.knows.foreign->end() && e.clock < it->second;
}

void Checker::word(Warp &w, WarpState &me, const Inst &in, ShadowWord &s,
                   uint32_t lane, Access access, uint8_t bytes, bool strong,
                   uint64_t address) {
  // Another lane of this warp has read the word since the last write, by
  // another warp: what holds for that lane holds for this one.
  if (access == Access::Read && s.read.warp == me.id &&
      s.read.clock == me.clock && s.write.warp != me.id && !s.pendingWarp &&
      s.readBytes == bytes) {
    s.read.lanes |= 1u << lane;
    s.strongRead &= strong;
    return;
  }
  uint32_t inst = w.instIndex(in);
  const Cta &cta = *w.cta;
  auto race = [&](const char *what, const Event &other) {
    uint32_t block = other.warp / launch.warpsPerBlock;
    launch.addReport(w, inst, ReportKind::Race, 1u << lane,
                     std::string(what) + " by warp " +
                         std::to_string(other.warp % launch.warpsPerBlock) +
                         " of block " + std::to_string(block) +
                         " is not ordered with this access",
                     address, int64_t(other.inst));
  };
  if (s.pendingWarp)
    launch.addReport(
        w, inst, ReportKind::PendingCopy, 1u << lane,
        std::string(access == Access::Read ? "read" : "write") +
            " of memory that a cp.async is writing: it was not waited for",
        address, int64_t(s.pendingInst));
  bool sameInst = s.write.warp == me.id && s.write.inst == inst &&
                  s.write.clock == me.clock;
  if (access == Access::Read) {
    if ((s.writeBytes & bytes) && !(strong && s.strongWrite) &&
        !ordered(me, cta, s.write, lane))
      race("a write", s.write);
    Event e{me.id, me.clock, 1u << lane, inst};
    if (s.read.warp == me.id && s.read.clock == me.clock) {
      s.read.lanes |= 1u << lane;
      s.strongRead &= strong;
      return;
    }
    // The older reader stays known unless it is ordered before this one.
    if (s.read.clock && !ordered(me, cta, s.read, lane)) {
      s.otherRead = s.read;
      s.strongOther = s.strongRead;
    }
    s.read = e;
    s.readBytes = bytes;
    s.strongRead = strong;
    return;
  }
  if ((s.writeBytes & bytes) && !sameInst && !(strong && s.strongWrite) &&
      !ordered(me, cta, s.write, lane))
    race("a write", s.write);
  bool readHere = s.read.warp == me.id && s.read.inst == inst;
  if (!readHere && !(strong && s.strongRead) && !ordered(me, cta, s.read, lane))
    race("a read", s.read);
  else if (s.otherRead.clock && !(strong && s.strongOther) &&
           !ordered(me, cta, s.otherRead, lane))
    race("a read", s.otherRead);
  if (sameInst) {
    s.write.lanes |= 1u << lane;
    s.writeBytes |= bytes;
  } else {
    // Neighbouring bytes of the word by the same warp keep their record.
    bool sameWarp = s.write.warp == me.id && s.write.clock == me.clock;
    s.writeBytes = sameWarp ? uint8_t(s.writeBytes | bytes) : bytes;
    s.write = Event{me.id, me.clock,
                    (sameWarp ? s.write.lanes : 0) | 1u << lane, inst};
  }
  s.strongWrite = strong;
  s.read = Event();
  s.otherRead = Event();
}

void Checker::access(Warp &w, const Inst &in, Space space, uint32_t mask,
                     uint32_t bytes, Access kind, const Lanes &lanes) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  bool strong = in.flags & Inst::Strong;
  bool shared = space == Space::Shared;
  Allocation *allocation = nullptr;
  uint32_t unwritten = 0;
  uint64_t unwrittenAt = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(mask >> i & 1))
      continue;
    uint64_t address = lanes.address[i];
    uint64_t offset;
    ShadowMemory *shadow;
    if (shared) {
      offset = address - sharedBase;
      shadow = &block.shared;
    } else {
      if (!allocation || address < allocation->base ||
          address >= allocation->end)
        allocation = launch.memory.find(address);
      if (!allocation)
        continue;
      // Nobody writes memory that is read-only, so nothing there can race.
      if (!allocation->writable)
        continue;
      offset = address - (allocation->base & ~uint64_t(3));
      shadow = &allocation->shadow;
    }
    bool late = !shared && (in.flags & Inst::NonCoherent);
    ShadowWord *run = nullptr; // the words of one page
    for (uint64_t b = offset; b < offset + bytes;) {
      uint64_t end = std::min((b | 3) + 1, offset + bytes);
      uint8_t which = 15;
      if (end - b != 4)
        which = uint8_t(((1u << (end - b)) - 1) << (b & 3));
      run = run && (b / 4) % ShadowMemory::pageWords
                ? run + 1
                : &shadow->at(b / 4, launch.generation);
      ShadowWord &s = *run;
      if (late && s.write.clock)
        launch.addReport(w, w.instIndex(in), ReportKind::NonCoherent, 1u << i,
                         "ld.global.nc of memory that this launch writes",
                         address, int64_t(s.write.inst));
      word(w, me, in, s, i, kind, which, strong, address);
      if (kind == Access::Atomic)
        s.strongWrite = true;
      b = end;
    }
    if (strong)
      synchronise(
          me, *w.cta, in,
          shared ? (uint64_t(w.cta->linear) << 32 | address | uint64_t(1) << 63)
                 : address,
          kind);
    // What was written.
    if (shared) {
      for (uint64_t b = offset; b < offset + bytes; ++b) {
        if (kind != Access::Write && !block.written[b] &&
            !(unwritten >> i & 1)) {
          unwritten |= 1u << i;
          unwrittenAt = address;
        }
        block.written[b] = 1;
      }
    } else if (!allocation->written.empty()) {
      uint64_t from = address - allocation->base;
      if (kind != Access::Write)
        for (uint64_t b = from; b < from + bytes; ++b)
          if (!(allocation->written[b / 64] >> (b % 64) & 1)) {
            unwritten |= 1u << i;
            unwrittenAt = address;
            break;
          }
      if (kind != Access::Read || (unwritten >> i & 1))
        markWritten(*allocation, address, bytes);
    }
  }
  if (unwritten && launch.options.checkUninitialized)
    launch.addReport(w, w.instIndex(in), ReportKind::UninitializedMemory,
                     unwritten,
                     std::string("read of ") + (shared ? "shared" : "global") +
                         " memory that nobody has written",
                     unwrittenAt);
}

//===- Copies -------------------------------------------------------------===//

void Checker::issueCopy(Warp &w, const Inst &in, uint32_t lane, uint32_t dest,
                        uint32_t bytes) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  for (uint32_t b = 0; b < bytes; b += 4) {
    ShadowWord &s =
        block.shared.at((dest - sharedBase + b) / 4, launch.generation);
    // The write may happen at any time from now on.
    Event write = s.write;
    uint8_t writeBytes = s.writeBytes;
    word(w, me, in, s, lane, Access::Write, 15, false, dest + b);
    s.write = write;
    s.writeBytes = writeBytes;
    s.pendingWarp = me.id + 1;
    s.pendingInst = w.instIndex(in);
  }
}

void Checker::finishCopy(Warp &w, const PendingCopy &c) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  for (uint32_t b = 0; b < c.bytes; b += 4) {
    ShadowWord &s =
        block.shared.at((c.dest - sharedBase + b) / 4, launch.generation);
    s.pendingWarp = 0;
    s.write = Event{me.id, me.clock, 1u << c.lane, c.inst};
    s.writeBytes = 15;
    s.strongWrite = false;
    s.read = Event();
    s.otherRead = Event();
  }
  std::fill_n(block.written.begin() + (c.dest - sharedBase), c.bytes,
              uint8_t(1));
}

//===- Order --------------------------------------------------------------===//

void Checker::arrive(Warp &w, uint32_t barrier, uint32_t mask) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  ++me.clock;
  me.knows.local[w.index] = me.clock;
  block.barriers[barrier].join(me.knows);
  (void)mask;
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
  }
}

void Checker::warpSynced(Warp &w, uint32_t mask) {
  WarpState &me = stateOf(w);
  ++me.clock;
  for (uint32_t i = 0; i < 32; ++i)
    if (mask >> i & 1)
      me.laneSync[i] = me.clock;
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
  for (uint32_t i = 0; i < k.local.size(); ++i)
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
