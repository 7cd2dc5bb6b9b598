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
  void issueCopy(Warp &warp, const Inst &in, uint32_t lane, uint32_t dest,
                 uint32_t bytes);
  void finishCopy(Warp &warp, const PendingCopy &copy);

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
  struct BlockState {
    std::vector<WarpState> warps;
    ShadowMemory shared;
    std::vector<uint8_t> written; // bytes of shared memory
    std::map<uint32_t, Knowledge> barriers;
  };

  BlockState &blockOf(const Cta &cta) { return *blocks[cta.linear]; }
  WarpState &stateOf(const Warp &w) { return blockOf(*w.cta).warps[w.index]; }
  bool ordered(const WarpState &me, const Cta &cta, const Event &event,
               uint32_t lane) const;
  void word(Warp &w, WarpState &me, const Inst &in, ShadowWord &s,
            uint32_t lane, Access access, uint8_t bytes, bool strong,
            uint64_t address);
  void synchronise(WarpState &me, const Cta &cta, const Inst &in,
                   uint64_t address, Access access);
  void learn(WarpState &me, const Cta &cta,
             const std::vector<std::pair<uint32_t, uint32_t>> &what);

  Launch &launch;
  std::unordered_map<uint32_t, std::unique_ptr<BlockState>> blocks;
  /// What was released to an address.
  std::unordered_map<uint64_t, std::vector<std::pair<uint32_t, uint32_t>>>
      syncs;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_CHECKER_H
