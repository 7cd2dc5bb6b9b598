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
  void finishCopies(Warp &warp, const PendingCopies &copies, uint32_t mask);

  void arrive(Warp &warp, uint32_t barrier, uint32_t mask);
  void release(Cta &cta, uint32_t barrier, const std::vector<Warp *> &waiting);
  void warpSynced(Warp &warp, uint32_t mask);
  void fence(Warp &warp);

private:
  struct WarpState {
    uint32_t id = 0;
    uint32_t clock = 1;
    Knowledge knows;
    /// The clock of a lane's last synchronisation within the warp.
    uint32_t laneSync[32] = {};
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
