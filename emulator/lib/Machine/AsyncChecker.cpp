//===- AsyncChecker.cpp - Checks of mbarriers, bulk copies and wgmma ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a copy with an mbarrier writes is an event of that barrier in its phase:
// who has seen the end of the phase, or knows somebody who has, may touch it.
// What a wgmma reads is one of its warpgroup: who has waited for it knows.
// Until the copy is done its destination is pending, as that of a cp.async.
// What the async proxy reads (stores, wgmma) is being read until it was waited
// for; then the warp that waited has read it.
//
// Between a write through registers and a read by the async proxy a
// fence.proxy.async has to lie, on the way from one to the other. The other way
// round none is needed after a read: its value has arrived.
//
//===----------------------------------------------------------------------===//
#include "CheckerSite.h"

namespace fi::emulator {

//===- mbarriers ----------------------------------------------------------===//

uint32_t Checker::newAgent(Cta &cta) {
  std::vector<BlockState::Phases> &agents = blockOf(cta).agents;
  agents.emplace_back();
  return uint32_t(agents.size()) - 1;
}

void Checker::mbarrierInit(Warp &w, const Inst &in, unsigned lane,
                           Mbarrier &m) {
  m.agent = newAgent(*w.cta);
  Lanes lanes;
  for (uint64_t &a : lanes.address)
    a = m.address;
  access(w, in, Space::Shared, 1u << lane, 8, Access::Write, lanes);
}

void Checker::mbarrierUse(Warp &w, const Inst &in, unsigned lane,
                          const Mbarrier &m) {
  Site at(*this, w, in, Access::Read);
  records(at.block.shared, at.block.generation, m.address - sharedBase, 8,
          [&](ShadowWord &s, uint8_t) {
            if (s.write.inst == m.initInst && !ordered(at, s.write, lane))
              race(at, "mbarrier.init", s.write, lane, m.address);
          });
}

void Checker::mbarrierArrive(Warp &w, const Mbarrier &m, uint32_t mask) {
  publish(w, mask, blockOf(*w.cta).agents[m.agent].current);
}

void Checker::mbarrierPhase(Cta &cta, const Mbarrier &m) {
  BlockState::Phases &p = blockOf(cta).agents[m.agent];
  p.ended.join(p.current);
  p.current = Knowledge();
  // Copies of phase n wrote at clock n + 1; the phase counts one more now.
  size_t agent = launch.warpsPerBlock + m.agent;
  if (p.ended.local.size() <= agent)
    p.ended.local.resize(agent + 1, 0);
  p.ended.local[agent] = uint32_t(m.phase) + 1;
}

void Checker::mbarrierObserve(Warp &w, const Mbarrier &m, uint32_t mask) {
  BlockState &block = blockOf(*w.cta);
  WarpState &me = block.warps[w.index];
  const Knowledge &ended = block.agents[m.agent].ended;
  me.knows.join(ended);
  // What the own warp told the barrier.
  if (w.index < ended.local.size())
    for (uint32_t i = 0; i < 32; ++i)
      if (mask >> i & 1)
        me.laneSync[i] = std::max(me.laneSync[i], ended.local[w.index]);
}

//===- Records ------------------------------------------------------------===//

template <class F>
void Checker::records(ShadowMemory &shadow, uint32_t generation,
                      uint64_t offset, uint64_t bytes, F f) {
  for (uint64_t b = offset, end = offset + bytes; b < end;) {
    ShadowPage &page = shadow.page(b / ShadowPage::bytes, generation);
    uint32_t line = uint32_t(b / 16 % ShadowPage::lines);
    if (b % 16 == 0 && end - b >= 16 && !page.isSplit(line)) {
      f(page.whole[line], uint8_t(15));
      b += 16;
      continue;
    }
    ShadowWord *words = shadow.wordsOf(page, line);
    uint64_t stop = std::min(end, (b | 15) + 1);
    while (b < stop) {
      uint64_t next = std::min((b | 3) + 1, stop);
      f(words[b / 4 % 4], uint8_t(((1u << (next - b)) - 1) << (b & 3)));
      b = next;
    }
  }
}

bool Checker::behindFence(const Site &at, const Event &e) {
  uint32_t local = e.warp - at.first;
  // Other blocks, and what copies wrote.
  if (local >= at.perBlock)
    return true;
  const Knowledge &k = at.me.knows;
  if (local < k.proxied.size() && e.clock < k.proxied[local])
    return true;
  for (const Knowledge::Part &part : k.parts)
    if (part.warp == local && part.proxied && e.clock < part.clock &&
        (e.lanes & ~part.lanes) == 0)
      return true;
  return false;
}

void Checker::readsInFlight(const Site &at, uint32_t offset, uint32_t bytes,
                            uint32_t lane) {
  for (uint32_t line = offset / 16; line <= (offset + bytes - 1) / 16; ++line)
    if (at.block.reading[line]) {
      launch.addReport(at.warp, at.inst, ReportKind::PendingCopy, 1u << lane,
                       "write of shared memory that an asynchronous operation "
                       "is still reading: it was not waited for",
                       sharedBase + line * 16,
                       int64_t(at.block.readingInst[line]));
      return;
    }
}

/// An asynchronous operation begins to read sixteen bytes of shared memory.
void Checker::startReading(const Site &at, uint32_t address, uint32_t lane) {
  BlockState &block = at.block;
  uint32_t offset = address - sharedBase;
  records(
      block.shared, block.generation, offset, 16, [&](ShadowWord &s, uint8_t) {
        if (s.pendingWarp)
          pending(at, s, lane, address);
        if (!s.write.clock)
          return;
        if (!ordered(at, s.write, lane))
          race(at, "a write", s.write, lane, address);
        else if (!behindFence(at, s.write))
          launch.addReport(at.warp, at.inst, ReportKind::ProxyFence, 1u << lane,
                           "the async proxy reads what was written without "
                           "it, and no fence.proxy.async lies between",
                           address, int64_t(s.write.inst));
      });
  if (!test(block.written.data(), offset, 16)) {
    setAll(block.written.data(), offset, 16);
    if (launch.options.checkUninitialized)
      launch.addReport(
          at.warp, at.inst, ReportKind::UninitializedMemory, 1u << lane,
          "read of shared memory that nobody has written", address);
  }
  if (block.reading.empty()) {
    block.reading.assign(at.warp.cta->sharedBytes / 16 + 2, 0);
    block.readingInst.assign(at.warp.cta->sharedBytes / 16 + 2, 0);
  }
  ++block.reading[offset / 16];
  block.readingInst[offset / 16] = at.inst;
}

void Checker::endReading(const Site &at, uint32_t address, const Event &read) {
  BlockState &block = at.block;
  uint32_t offset = address - sharedBase;
  --block.reading[offset / 16];
  records(block.shared, block.generation, offset, 16,
          [&](ShadowWord &s, uint8_t) {
            if (s.read.warp == read.warp && s.read.clock == read.clock) {
              s.read.lanes |= read.lanes;
              return;
            }
            if (s.read.clock && !ordered(at, s.read, 0)) {
              s.otherRead = s.read;
              s.strongOther = s.strongRead;
              s.otherStripe = s.readStripe;
            }
            s.read = read;
            s.readBytes = 15;
            s.strongRead = false;
            s.readStripe = Stripe::None;
          });
}

//===- Bulk copies --------------------------------------------------------===//

void Checker::bulkIssue(Warp &w, const AsyncOp &op, unsigned lane) {
  Site at(*this, w, w.code[op.inst], Access::Write);
  at.strong = false;
  uint32_t unwritten = 0;
  auto global = [&](uint64_t address, uint32_t bytes, auto f) {
    Allocation *a = launch.memory.find(address);
    if (!a)
      return;
    if (a->writable)
      records(a->shadow, launch.generation, address - (a->base & ~uint64_t(15)),
              bytes, f);
    f.written(*a);
  };
  struct Visit {
    Checker &c;
    const Site &at;
    unsigned lane;
    uint64_t address;
    uint32_t bytes;
    bool write;
    uint32_t &unwritten;
    void operator()(ShadowWord &s, uint8_t which) {
      if (s.pendingWarp)
        c.pending(at, s, lane, address);
      if ((s.writeBytes & which) && !ordered(at, s.write, lane))
        c.race(at, "a write", s.write, lane, address);
      if (!write)
        return;
      if (s.read.clock && !ordered(at, s.read, lane))
        c.race(at, "a read", s.read, lane, address);
      else if (s.otherRead.clock && !ordered(at, s.otherRead, lane))
        c.race(at, "a read", s.otherRead, lane, address);
      s.read = s.otherRead = Event();
      s.pendingWarp = at.me.id + 1;
      s.pendingInst = at.inst;
    }
    void written(Allocation &a) {
      if (a.written.empty())
        return;
      if (!write && !test(a.written.data(), address - a.base, bytes))
        unwritten = 1;
      setAll(a.written.data(), address - a.base, bytes);
    }
  };
  if (op.kind == BulkKind::Load || op.kind == BulkKind::Move) {
    if (op.kind == BulkKind::Load)
      for (const BulkRow &row : op.rows)
        if (row.bytes)
          global(
              row.global, row.bytes,
              Visit{*this, at, lane, row.global, row.bytes, false, unwritten});
    if (unwritten && launch.options.checkUninitialized)
      launch.addReport(w, op.inst, ReportKind::UninitializedMemory, 1u << lane,
                       "read of global memory that nobody has written");
    forSharedLines(op, [&](uint32_t address) {
      uint32_t offset = address - sharedBase;
      if (!at.block.reading.empty())
        readsInFlight(at, offset, 16, lane);
      records(at.block.shared, at.block.generation, offset, 16,
              [&](ShadowWord &s, uint8_t which) {
                Event before = s.write;
                Visit{*this, at, lane, address, 16, true, unwritten}(s, which);
                if (before.clock && ordered(at, before, lane) &&
                    !behindFence(at, before))
                  launch.addReport(
                      w, op.inst, ReportKind::ProxyFence, 1u << lane,
                      "the async proxy overwrites what was written without "
                      "it, and no fence.proxy.async lies between",
                      address, int64_t(before.inst));
              });
    });
    return;
  }
  BlockState::Store store{w.index, lane, op.group, op.inst, true, {}, {}};
  forSharedLines(op, [&](uint32_t address) {
    startReading(at, address, lane);
    store.lines.push_back(address);
  });
  for (const BulkRow &row : op.rows)
    if (row.bytes) {
      // Reductions are atomic: others may be in flight at the same place.
      if (op.kind == BulkKind::Store)
        global(row.global, row.bytes,
               Visit{*this, at, lane, row.global, row.bytes, true, unwritten});
      else if (Allocation *a = launch.memory.find(row.global);
               a && !a->written.empty())
        setAll(a->written.data(), row.global - a->base, row.bytes);
      if (op.kind == BulkKind::Store)
        store.global.push_back({row.global, row.bytes});
    }
  at.block.stores.push_back(std::move(store));
}

void Checker::bulkDone(Warp &w, const AsyncOp &op, const Mbarrier *m) {
  BlockState &block = blockOf(*w.cta);
  ShadowWord done = {};
  done.write = Event{m ? agentBit | m->agent : block.warps[w.index].id,
                     m ? uint32_t(m->phase) + 1 : 1, 0, op.inst};
  done.writeBytes = 15;
  forSharedLines(op, [&](uint32_t address) {
    uint32_t offset = address - sharedBase;
    ShadowPage &page =
        block.shared.page(offset / ShadowPage::bytes, block.generation);
    uint32_t line = offset / 16 % ShadowPage::lines;
    page.whole[line] = done;
    page.split &= ~(uint64_t(1) << line);
    setAll(block.written.data(), offset, 16);
  });
}

void Checker::retire(Warp &w, BlockState::Store &store, bool readsOnly) {
  Site at(*this, w, w.code[store.inst], Access::Read);
  uint32_t lanes = 1u << store.lane;
  if (store.reads)
    for (uint32_t address : store.lines)
      endReading(at, address, Event{at.me.id, at.me.clock, lanes, store.inst});
  store.reads = false;
  if (readsOnly)
    return;
  for (auto [address, bytes] : store.global) {
    Allocation *a = launch.memory.find(address);
    if (!a || !a->writable)
      continue;
    records(a->shadow, launch.generation, address - (a->base & ~uint64_t(15)),
            bytes, [&](ShadowWord &s, uint8_t which) {
              s.write = Event{at.me.id, at.me.clock, lanes, store.inst};
              s.writeBytes = which;
              s.strongWrite = false;
              s.writeStripe = Stripe::None;
              s.pendingWarp = 0;
            });
  }
}

void Checker::bulkWaited(Warp &w, uint32_t mask, uint32_t keep,
                         bool readsOnly) {
  std::vector<BlockState::Store> &stores = blockOf(*w.cta).stores;
  for (size_t i = 0; i < stores.size();) {
    BlockState::Store &s = stores[i];
    bool mine = s.warp == w.index && (mask >> s.lane & 1) &&
                w.bulkGroup[s.lane] > s.group &&
                w.bulkGroup[s.lane] - s.group > keep;
    if (mine)
      retire(w, s, readsOnly);
    if (mine && !readsOnly)
      stores.erase(stores.begin() + int64_t(i));
    else
      ++i;
  }
}

void Checker::endStores(Cta &cta) {
  for (BlockState::Store &s : blockOf(cta).stores) {
    Warp &w = cta.warps[s.warp];
    if (s.reads && !launch.stopped)
      launch.addReport(w, s.inst, ReportKind::PendingCopy, 1u << s.lane,
                       "the block ends before this copy has read shared "
                       "memory: cp.async.bulk.wait_group is missing");
    retire(w, s, false);
  }
  blockOf(cta).stores.clear();
}

//===- wgmma --------------------------------------------------------------===//

void Checker::wgmmaReads(Warp &w, const Inst &in,
                         const std::vector<uint32_t> &lines) {
  Site at(*this, w, in, Access::Read);
  for (uint32_t address : lines)
    startReading(at, address, 0);
}

void Checker::wgmmaDone(Warp &w, uint32_t inst,
                        const std::vector<uint32_t> &lines, uint32_t agent,
                        uint64_t serial) {
  Site at(*this, w, w.code[inst], Access::Read);
  for (uint32_t address : lines)
    endReading(at, address,
               Event{agentBit | agent, uint32_t(serial) + 1, 0, inst});
}

void Checker::wgmmaObserve(Warp &w, uint32_t agent, uint64_t serial) {
  std::vector<uint32_t> &local = stateOf(w).knows.local;
  size_t index = launch.warpsPerBlock + agent;
  if (local.size() <= index)
    local.resize(index + 1, 0);
  local[index] = std::max(local[index], uint32_t(serial) + 2);
}

} // namespace fi::emulator
