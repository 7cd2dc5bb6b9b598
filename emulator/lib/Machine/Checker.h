//===- Checker.h - Races and reads of nothing -------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Happens-before by vector clocks of warps: barriers join the clocks of their
// participants, fences with atomics or volatile accesses carry them from warp
// to warp and block to block. Lanes of one warp are ordered by bar.warp.sync
// and barriers alone.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_CHECKER_H
#define FI_EMULATOR_MACHINE_CHECKER_H

#include "Launch.h"

namespace fi::emulator {

class Checker {
public:
  explicit Checker(Launch &launch) : launch(launch) {}

  void startBlock(Cta &cta);
  /// Lanes whose access is to be reported as unwritten and the like are still
  /// executed: the report is the point.
  void access(Warp &warp, const Inst &in, Space space, uint32_t mask,
              uint32_t bytes, Access access, const Lanes &lanes);
  void issueCopies(Warp &warp, const PendingCopies &copies);
  /// The copies of lanes `mask` are done.
  void finishCopies(Warp &warp, const PendingCopies &copies, uint32_t mask,
                    const Mbarrier *by);

  void arrive(Warp &warp, uint32_t barrier, uint32_t mask);
  void release(Cta &cta, uint32_t barrier, const std::vector<Warp *> &waiting);
  void warpSynced(Warp &warp, uint32_t mask);
  void fence(Warp &warp);

  // mbarriers, bulk copies and wgmma (AsyncChecker.cpp).
  void fenceProxy(Warp &warp, uint32_t mask);
  void mbarrierInit(Warp &warp, const Inst &in, unsigned lane,
                    Mbarrier &barrier);
  void mbarrierUse(Warp &warp, const Inst &in, unsigned lane,
                   const Mbarrier &barrier);
  void mbarrierArrive(Warp &warp, const Mbarrier &barrier, uint32_t mask);
  /// What copies wrote is known to who sees the end of the phase.
  void mbarrierPhase(Cta &cta, const Mbarrier &barrier);
  void mbarrierObserve(Warp &warp, const Mbarrier &barrier, uint32_t mask);
  void bulkIssue(Warp &warp, const AsyncOp &op, unsigned lane);
  void bulkDone(Warp &warp, const AsyncOp &op, const Mbarrier *barrier);
  void bulkWaited(Warp &warp, uint32_t mask, uint32_t keep, bool readsOnly);
  void endStores(Cta &cta);
  /// The lines of sixteen bytes that a wgmma reads, and that it has read.
  void wgmmaReads(Warp &warp, const Inst &in,
                  const std::vector<uint32_t> &lines);
  /// `agent`: of the warpgroup, whose clock counts products.
  void wgmmaDone(Warp &warp, uint32_t inst, const std::vector<uint32_t> &lines,
                 uint32_t agent, uint64_t serial);
  void wgmmaObserve(Warp &warp, uint32_t agent, uint64_t serial);
  uint32_t newAgent(Cta &cta);

private:
  struct WarpState {
    uint32_t id = 0;
    uint32_t clock = 1;
    Knowledge knows;
    /// The clock of a lane's last synchronisation within the warp, and the
    /// lanes that touched memory since they all met.
    uint32_t laneSync[32] = {};
    uint32_t touched = 0;
    /// What a fence has made ready to be published, and what was read but is
    /// not yet acquired.
    bool fenced = false, acquired = false;
    Knowledge published;
    std::vector<std::pair<uint32_t, uint32_t>> pending;
  };
  /// Of a place where a block may be; those that follow each other there use
  /// the same pages.
  struct BlockState {
    std::vector<WarpState> warps;
    ShadowMemory shared;
    uint32_t generation = 0;
    std::vector<uint64_t> written; // a bit a byte of shared memory
    std::map<uint32_t, Knowledge> barriers;
    /// Of an mbarrier: what arrivals bring, and what ended phases brought.
    struct Phases {
      Knowledge current, ended;
    };
    std::vector<Phases> agents; // mbarriers; warpgroups have nothing there
    /// By sixteen bytes: how many asynchronous operations read there, and which
    /// was the last. Empty if there were none.
    std::vector<uint16_t> reading;
    std::vector<uint32_t> readingInst;
    /// Bulk stores whose group was not waited for.
    struct Store {
      uint32_t warp, lane, group, inst;
      bool reads;
      std::vector<uint32_t> lines;
      std::vector<std::pair<uint64_t, uint32_t>> global; // address, bytes
    };
    std::vector<Store> stores;
  };
  /// An access of a warp: what is the same for all of its lanes.
  struct Site;

  BlockState &blockOf(const Cta &cta) { return *blocks[cta.slot]; }
  WarpState &stateOf(const Warp &w) { return blockOf(*w.cta).warps[w.index]; }
  static bool ordered(const Site &at, const Event &event, uint32_t lane);
  void race(const Site &at, const char *what, const Event &other, uint32_t lane,
            uint64_t address);
  void pending(const Site &at, const ShadowWord &s, uint32_t lane,
               uint64_t address);
  template <bool IsRead>
  void word(const Site &at, ShadowWord &s, uint32_t lane, uint8_t bytes,
            uint64_t address);
  template <bool IsRead>
  void visit(const Site &at, ShadowWord &s, uint32_t lanes, uint8_t bytes,
             uint64_t address);
  template <bool IsRead>
  void range(const Site &at, ShadowMemory &shadow, uint32_t generation,
             uint32_t who, Stripe stripe, uint64_t offset, uint32_t bytes,
             uint64_t address);
  static bool needsWords(const Site &at, const ShadowWord &s, uint32_t who,
                         Stripe stripe);
  void publish(Warp &warp, uint32_t mask, Knowledge &into);
  static bool behindFence(const Site &at, const Event &event);
  void readsInFlight(const Site &at, uint32_t offset, uint32_t bytes,
                     uint32_t lane);
  void startReading(const Site &at, uint32_t address, uint32_t lane);
  void endReading(const Site &at, uint32_t address, const Event &read);
  void retire(Warp &warp, BlockState::Store &store, bool readsOnly);
  /// One call for each record of [offset, offset + bytes), with the bytes.
  template <class F>
  static void records(ShadowMemory &shadow, uint32_t generation,
                      uint64_t offset, uint64_t bytes, F f);
  void synchronise(WarpState &me, const Cta &cta, const Inst &in,
                   uint64_t address, Access access);
  void learn(WarpState &me, const Cta &cta,
             const std::vector<std::pair<uint32_t, uint32_t>> &what);

  Launch &launch;
  std::vector<std::unique_ptr<BlockState>> blocks; // by Cta::slot
  uint32_t generations = 0;
  Allocation *last = nullptr; // that was accessed
  /// What was released to an address.
  std::unordered_map<uint64_t, std::vector<std::pair<uint32_t, uint32_t>>>
      syncs;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_CHECKER_H
