//===- Checker.cpp - Races and reads of nothing ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CheckerSite.h"

#include <algorithm>

namespace fi::emulator {

//===- Records ------------------------------------------------------------===//

void ShadowPage::mergeLine(uint32_t line) {
  const ShadowWord *w = words + 4 * line;
  uint32_t first = w->write.lanes;
  bool same = first && !(first & (first - 1));
  // Lanes of the four words: one, four, or two.
  bool one = true, each = same, pairs = same;
  for (uint32_t k = 0; k < 4; ++k) {
    const ShadowWord &s = w[k];
    const Event &a = s.write, &b = w->write;
    if (a.warp != b.warp || a.clock != b.clock || a.inst != b.inst ||
        s.writeBytes != 15 || s.strongWrite != w->strongWrite || s.read.clock ||
        s.otherRead.clock || s.pendingWarp != w->pendingWarp ||
        s.pendingInst != w->pendingInst)
      return;
    one &= a.lanes == first;
    each &= a.lanes == first << k;
    pairs &= a.lanes == first << k / 2;
  }
  if (!one && !each && !pairs)
    return;
  whole[line] = *w;
  if (!one) {
    whole[line].write.lanes = each ? first * 15 : first * 3;
    whole[line].writeStripe = each ? Stripe::Words : Stripe::Pairs;
  }
  split &= ~(uint64_t(1) << line);
}

ShadowWord *ShadowMemory::take(uint32_t count) {
  constexpr size_t slabWords = 4096; // 256 KiB
  if (size_t(spareEnd - spare) < count) {
    void *slab = std::calloc(slabWords + 1, sizeof(ShadowWord));
    if (!slab)
      std::abort(); // as operator new would end it
    slabs.emplace_back(slab);
    uintptr_t at = reinterpret_cast<uintptr_t>(slab);
    at = (at + alignof(ShadowWord) - 1) / alignof(ShadowWord) *
         alignof(ShadowWord);
    spare = reinterpret_cast<ShadowWord *>(at);
    spareEnd = spare + slabWords;
  }
  ShadowWord *taken = spare;
  spare += count;
  return taken;
}

void ShadowMemory::splitLine(ShadowPage &page, uint32_t line) {
  if (!page.words)
    page.words = take(4 * ShadowPage::lines);
  auto lanesOf = [](uint32_t lanes, Stripe stripe, uint32_t k) {
    if (stripe == Stripe::None)
      return lanes;
    return (lanes & (0 - lanes)) << (stripe == Stripe::Words ? k : k / 2);
  };
  for (uint32_t k = 0; k < 4; ++k) {
    ShadowWord &s = page.words[4 * line + k];
    s = page.whole[line];
    s.write.lanes = lanesOf(s.write.lanes, s.writeStripe, k);
    s.read.lanes = lanesOf(s.read.lanes, s.readStripe, k);
    s.otherRead.lanes = lanesOf(s.otherRead.lanes, s.otherStripe, k);
    s.writeStripe = s.readStripe = s.otherStripe = Stripe::None;
  }
  page.split |= uint64_t(1) << line;
}

void ShadowMemory::reset(ShadowPage &page, uint32_t generation) {
  if (page.whole)
    std::fill_n(page.whole, ShadowPage::lines, ShadowWord());
  else
    page.whole = take(ShadowPage::lines);
  page.split = 0;
  page.generation = generation;
}

//===- Accesses -----------------------------------------------------------===//

void Checker::startBlock(Cta &cta) {
  if (cta.slot >= blocks.size())
    blocks.resize(cta.slot + 1);
  std::unique_ptr<BlockState> &block = blocks[cta.slot];
  if (!block)
    block = std::make_unique<BlockState>();
  block->warps.assign(cta.warps.size(), WarpState());
  for (size_t i = 0; i < cta.warps.size(); ++i) {
    WarpState &s = block->warps[i];
    s.id = cta.linear * launch.warpsPerBlock + uint32_t(i);
    s.knows.local.assign(cta.warps.size(), 0);
  }
  block->generation = ++generations;
  block->written.assign((cta.sharedBytes + 63) / 64, 0);
  block->barriers.clear();
  block->agents.clear();
  block->reading.clear();
  block->readingInst.clear();
  block->stores.clear();
}

__attribute__((noinline)) void Checker::race(const Site &at, const char *what,
                                             const Event &other, uint32_t lane,
                                             uint64_t address) {
  std::string who = other.warp & agentBit
                        ? std::string("an asynchronous operation")
                        : "warp " + std::to_string(other.warp % at.perBlock) +
                              " of block " +
                              std::to_string(other.warp / at.perBlock);
  launch.addReport(at.warp, at.inst, ReportKind::Race, 1u << lane,
                   std::string(what) + " by " + who +
                       " is not ordered with this access",
                   address, int64_t(other.inst));
}

__attribute__((noinline)) void Checker::pending(const Site &at,
                                                const ShadowWord &s,
                                                uint32_t lane,
                                                uint64_t address) {
  launch.addReport(
      at.warp, at.inst, ReportKind::PendingCopy, 1u << lane,
      std::string(at.kind == Access::Read ? "read" : "write") +
          " of memory that an asynchronous copy is writing: it was not waited "
          "for",
      address, int64_t(s.pendingInst));
}

template <bool IsRead>
inline __attribute__((always_inline)) void
Checker::word(const Site &at, ShadowWord &s, uint32_t lane, uint8_t bytes,
              uint64_t address) {
  const WarpState &me = at.me;
  bool strong = at.strong;
  if (__builtin_expect(s.pendingWarp != 0, 0))
    pending(at, s, lane, address);
  if constexpr (IsRead) {
    if ((s.writeBytes & bytes) && !(strong && s.strongWrite) &&
        !ordered(at, s.write, lane))
      race(at, "a write", s.write, lane, address);
    if (s.read.warp == me.id && s.read.clock == me.clock) {
      s.read.lanes |= 1u << lane;
      s.strongRead &= strong;
      return;
    }
    // The older reader stays known unless it is ordered before this one.
    if (s.read.clock && !ordered(at, s.read, lane)) {
      s.otherRead = s.read;
      s.strongOther = s.strongRead;
      s.otherStripe = s.readStripe;
    }
    s.read = Event{me.id, me.clock, 1u << lane, at.inst};
    s.readBytes = bytes;
    s.strongRead = strong;
    s.readStripe = Stripe::None;
    return;
  }
  bool sameInst = s.write.warp == me.id && s.write.inst == at.inst &&
                  s.write.clock == me.clock;
  if ((s.writeBytes & bytes) && !sameInst && !(strong && s.strongWrite) &&
      !ordered(at, s.write, lane))
    race(at, "a write", s.write, lane, address);
  bool readHere = s.read.warp == me.id && s.read.inst == at.inst;
  if (!readHere && !(strong && s.strongRead) && !ordered(at, s.read, lane))
    race(at, "a read", s.read, lane, address);
  else if (s.otherRead.clock && !(strong && s.strongOther) &&
           !ordered(at, s.otherRead, lane))
    race(at, "a read", s.otherRead, lane, address);
  if (sameInst) {
    s.write.lanes |= 1u << lane;
    s.writeBytes |= bytes;
  } else {
    // Neighbouring bytes of the word by the same warp keep their record.
    bool sameWarp = s.write.warp == me.id && s.write.clock == me.clock;
    s.writeBytes = sameWarp ? uint8_t(s.writeBytes | bytes) : bytes;
    s.write = Event{me.id, me.clock,
                    (sameWarp ? s.write.lanes : 0) | 1u << lane, at.inst};
  }
  s.strongWrite = strong || at.kind == Access::Atomic;
  s.writeStripe = Stripe::None;
  s.read = Event();
  s.otherRead = Event();
}

/// Whether the lanes of a line's events matter: they do among the lanes of one
/// warp, as long as these have not met.
inline bool Checker::needsWords(const Site &at, const ShadowWord &s,
                                uint32_t who, Stripe stripe) {
  if (stripe == Stripe::None && s.writeStripe == Stripe::None &&
      s.readStripe == Stripe::None && s.otherStripe == Stripe::None)
    return false;
  uint32_t met = at.me.laneSync[__builtin_ctz(who)];
  for (uint32_t left = who & (who - 1); left; left &= left - 1)
    met = std::min(met, at.me.laneSync[__builtin_ctz(left)]);
  auto open = [&](const Event &e) {
    return e.clock >= met && e.clock && e.warp == at.me.id;
  };
  return open(s.write) || open(s.read) || open(s.otherRead);
}

/// The lanes that access one place.
template <bool IsRead>
inline __attribute__((always_inline)) void
Checker::visit(const Site &at, ShadowWord &s, uint32_t lanes, uint8_t bytes,
               uint64_t address) {
  if (at.late && s.write.clock)
    launch.addReport(at.warp, at.inst, ReportKind::NonCoherent, lanes,
                     "ld.global.nc of memory that this launch writes", address,
                     int64_t(s.write.inst));
  while (lanes) {
    // A lane of this warp has read the word since the last write, by another
    // warp: what holds for that lane holds for all.
    if (IsRead && s.read.warp == at.me.id && s.read.clock == at.me.clock &&
        s.write.warp != at.me.id && !s.pendingWarp && s.readBytes == bytes) {
      s.read.lanes |= lanes;
      s.strongRead &= at.strong;
      return;
    }
    word<IsRead>(at, s, uint32_t(__builtin_ctz(lanes)), bytes, address);
    lanes &= lanes - 1;
  }
}

/// The lanes `who` at [offset, offset + bytes) of a space; with a stripe, which
/// is of 16 bytes, lanes one after another.
template <bool IsRead>
inline void Checker::range(const Site &at, ShadowMemory &shadow,
                           uint32_t generation, uint32_t who, Stripe stripe,
                           uint64_t offset, uint32_t bytes, uint64_t address) {
  if (((offset | bytes) & 15) == 0) {
    for (uint64_t b = offset; b < offset + bytes; b += 16) {
      ShadowPage &page = shadow.page(b / ShadowPage::bytes, generation);
      uint32_t line = uint32_t(b / 16 % ShadowPage::lines);
      if (__builtin_expect(!page.isSplit(line), 1)) {
        ShadowWord &s = page.whole[line];
        if (!needsWords(at, s, who, stripe)) {
          if (stripe == Stripe::None) {
            visit<IsRead>(at, s, who, 15, address);
            continue;
          }
          visit<IsRead>(at, s, who & (0 - who), 15, address);
          (IsRead ? s.read : s.write).lanes = who;
          (IsRead ? s.readStripe : s.writeStripe) = stripe;
          continue;
        }
      }
      ShadowWord *words = shadow.wordsOf(page, line);
      for (uint32_t k = 0; k < 4; ++k) {
        uint32_t lanes = stripe == Stripe::None
                             ? who
                             : (who & (0 - who))
                                   << (stripe == Stripe::Words ? k : k / 2);
        visit<IsRead>(at, words[k], lanes, 15, address);
      }
      if (!IsRead)
        page.mergeLine(line);
    }
    return;
  }
  for (uint64_t b = offset; b < offset + bytes;) {
    uint64_t end = std::min((b | 3) + 1, offset + bytes);
    uint8_t which = 15;
    if (end - b != 4)
      which = uint8_t(((1u << (end - b)) - 1) << (b & 3));
    ShadowPage &page = shadow.page(b / ShadowPage::bytes, generation);
    ShadowWord *words =
        shadow.wordsOf(page, uint32_t(b / 16 % ShadowPage::lines));
    visit<IsRead>(at, words[b / 4 % 4], who, which, address);
    b = end;
  }
}

void Checker::access(Warp &w, const Inst &in, Space space, uint32_t mask,
                     uint32_t bytes, Access kind, const Lanes &lanes) {
  Site at(*this, w, in, kind);
  at.me.touched |= mask;
  bool shared = space == Space::Shared;
  at.late = !shared && (in.flags & Inst::NonCoherent);
  Allocation *allocation = last;
  uint32_t unwritten = 0;
  uint64_t unwrittenAt = 0;
  // Lanes at one address are looked up once.
  bool together = kind == Access::Read && !at.strong;
  if (together) {
    uint64_t address = lanes.address[__builtin_ctz(mask)];
    for (uint32_t i = 0; i < 32; ++i)
      together &= !(mask >> i & 1) | (lanes.address[i] == address);
  }
  // Shared memory begins at a multiple of 16 bytes, allocations nearly always.
  bool stripes = !together && !at.strong && (bytes == 4 || bytes == 8);
  if (shared) {
    if (!together)
      for (uint32_t i = 0; i < 32; ++i)
        at.block.shared.prefetch(lanes.address[i] - sharedBase);
  } else {
    uint64_t address = lanes.address[__builtin_ctz(mask)];
    if (!allocation || address < allocation->base || address >= allocation->end)
      allocation = launch.memory.find(address);
    if (allocation && !together)
      for (uint32_t i = 0; i < 32; ++i)
        allocation->shadow.prefetch(lanes.address[i] -
                                    (allocation->base & ~uint64_t(15)));
  }
  for (uint32_t left = mask; left;) {
    uint32_t i = uint32_t(__builtin_ctz(left));
    uint32_t who = together ? mask : 1u << i;
    uint64_t address = lanes.address[i];
    uint32_t size = bytes;
    Stripe stripe = Stripe::None;
    if (stripes && (address & 15) == 0) {
      // Do the next lanes have the rest of the 16 bytes?
      uint32_t n = 16 / bytes, all = i + n > 32 ? 0 : (n == 4 ? 15u : 3u) << i;
      bool follow = all && (left & all) == all;
      for (uint32_t k = 1; k < n && follow; ++k)
        follow = lanes.address[i + k] == address + k * bytes;
      if (follow) {
        who = all;
        size = 16;
        stripe = n == 4 ? Stripe::Words : Stripe::Pairs;
      }
    }
    left &= ~who;
    uint64_t offset;
    uint32_t generation;
    ShadowMemory *shadow;
    if (shared) {
      offset = address - sharedBase;
      shadow = &at.block.shared;
      generation = at.block.generation;
      if (kind != Access::Read && !at.block.reading.empty())
        readsInFlight(at, uint32_t(offset), size, i);
    } else {
      if (!allocation || address < allocation->base ||
          address >= allocation->end)
        allocation = launch.memory.find(address);
      if (!allocation)
        continue;
      // Nobody writes memory that is read-only, so nothing there can race.
      if (!allocation->writable)
        continue;
      offset = address - (allocation->base & ~uint64_t(15));
      shadow = &allocation->shadow;
      generation = launch.generation;
    }
    if (kind == Access::Read)
      range<true>(at, *shadow, generation, who, stripe, offset, size, address);
    else
      range<false>(at, *shadow, generation, who, stripe, offset, size, address);
    if (at.strong)
      synchronise(
          at.me, *w.cta, in,
          shared ? (uint64_t(w.cta->linear) << 32 | address | uint64_t(1) << 63)
                 : address,
          kind);
    // What was written.
    uint64_t *bits;
    uint64_t from;
    if (shared) {
      bits = at.block.written.data();
      from = offset;
    } else {
      if (allocation->written.empty())
        continue;
      bits = allocation->written.data();
      from = address - allocation->base;
    }
    if (kind != Access::Write) {
      if (test(bits, from, size))
        continue;
      unwrittenAt = address;
      for (uint32_t lane = i, k = 0; lane < 32; ++lane)
        if (who >> lane & 1 &&
            !test(bits, from + (stripe == Stripe::None ? 0 : bytes * k++),
                  bytes))
          unwritten |= 1u << lane;
    }
    // Reported once.
    setAll(bits, from, size);
  }
  last = allocation;
  if (unwritten && launch.options.checkUninitialized)
    launch.addReport(w, at.inst, ReportKind::UninitializedMemory, unwritten,
                     std::string("read of ") + (shared ? "shared" : "global") +
                         " memory that nobody has written",
                     unwrittenAt);
}

//===- Copies -------------------------------------------------------------===//

void Checker::issueCopies(Warp &w, const PendingCopies &c) {
  Site at(*this, w, w.code[c.inst], Access::Write);
  at.strong = false;
  auto touch = [&](ShadowWord &s, uint32_t lane) {
    // The write may happen at any time from now on.
    Event write = s.write;
    uint8_t writeBytes = s.writeBytes;
    Stripe stripe = s.writeStripe;
    word<false>(at, s, lane, 15, c.dest[lane]);
    s.write = write;
    s.writeBytes = writeBytes;
    s.writeStripe = stripe;
    s.pendingWarp = at.me.id + 1;
    s.pendingInst = c.inst;
  };
  at.me.touched |= c.mask;
  for (uint32_t left = c.mask; left; left &= left - 1) {
    uint32_t i = uint32_t(__builtin_ctz(left)), offset = c.dest[i] - sharedBase;
    if (!at.block.reading.empty())
      readsInFlight(at, offset, c.bytes, i);
    ShadowPage &page =
        at.block.shared.page(offset / ShadowPage::bytes, at.block.generation);
    uint32_t line = offset / 16 % ShadowPage::lines;
    if (c.bytes == 16 && !page.isSplit(line) &&
        !needsWords(at, page.whole[line], 1u << i, Stripe::None)) {
      touch(page.whole[line], i);
      continue;
    }
    ShadowWord *words = at.block.shared.wordsOf(page, line);
    for (uint32_t b = offset % 16; b < offset % 16 + c.bytes; b += 4)
      touch(words[b / 4], i);
  }
}

void Checker::finishCopies(Warp &w, const PendingCopies &c, uint32_t mask,
                           const Mbarrier *by) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  for (uint32_t left = mask; left; left &= left - 1) {
    uint32_t i = uint32_t(__builtin_ctz(left)), offset = c.dest[i] - sharedBase;
    ShadowWord done = {};
    done.write = by ? Event{agentBit | by->agent, uint32_t(by->phase) + 1,
                            1u << i, c.inst}
                    : Event{me.id, me.clock, 1u << i, c.inst};
    done.writeBytes = 15;
    ShadowPage &page =
        block.shared.page(offset / ShadowPage::bytes, block.generation);
    uint32_t line = offset / 16 % ShadowPage::lines;
    if (c.bytes == 16) {
      page.whole[line] = done;
      page.split &= ~(uint64_t(1) << line);
    } else {
      ShadowWord *words = block.shared.wordsOf(page, line);
      for (uint32_t b = offset % 16; b < offset % 16 + c.bytes; b += 4)
        words[b / 4] = done;
    }
    setAll(block.written.data(), offset, c.bytes);
  }
}

} // namespace fi::emulator
