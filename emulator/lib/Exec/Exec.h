//===- Exec.h - Decoded instructions and the state they act on --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp's registers are slots of 32 words, one a lane; values of 8 and 16 bits
// are zero-extended to a word, values of 64 bits take two slots. Predicates are
// masks. Constants and the special registers that do not change are slots too,
// so that an operand is always an offset. A handler computes one instruction
// for all lanes of a mask.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EXEC_EXEC_H
#define FI_EMULATOR_EXEC_EXEC_H

#include "../Parser/Ast.h"
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace fi::emulator {

struct Warp;
struct Inst;
struct Cta;
class Launch;
using Handler = void (*)(Warp &, const Inst &, uint32_t mask);

constexpr uint32_t noGuard = ~uint32_t(0);
constexpr uint32_t fullMask = ~uint32_t(0);

// Generic addresses of spaces that are not global. Their low words are 0, as on
// hardware, so a generic shared address cut to 32 bits is the shared address.
constexpr uint64_t sharedWindow = uint64_t(1) << 56;
constexpr uint64_t localWindow = uint64_t(2) << 56;
constexpr uint64_t paramWindow = uint64_t(3) << 56;
constexpr uint64_t windowMask = uint64_t(0xff) << 56;
/// Shared addresses begin here: the hardware keeps the first 1 KiB too, and a
/// null pointer is seen.
constexpr uint32_t sharedBase = 1024;

struct Inst {
  Handler fn = nullptr;
  int64_t imm = 0;
  /// More than six operands: all of them.
  const uint32_t *list = nullptr;
  /// Predicate slot * 2 + negated.
  uint32_t guard = noGuard;
  /// Slots; predicates as slot * 2 + negated.
  uint32_t o[6] = {0, 0, 0, 0, 0, 0};
  /// Branch target, or what the handler wants.
  uint32_t aux = 0;
  /// Elements, bytes of an element, bytes of a register: of memory operations.
  uint8_t count = 1;
  uint8_t bytes = 4;
  uint8_t regBytes = 4;
  /// Any of the flags below.
  uint8_t flags = 0;

  enum : uint8_t {
    SignExtend = 1,
    Address32 = 2,
    HasDest2 = 4,
    Aligned = 8,
    Strong = 16, // volatile, relaxed, acquire, release: no data race
    NonCoherent = 32,
    Acquire = 64,
    Release = 128,
  };

  const uint32_t *ops() const { return list ? list : o; }
};

/// What a fragment waits for.
enum class Wait : uint8_t {
  None,
  Converge,
  Lanes,
  WarpBarrier,
  Barrier,
  // The instruction is repeated when the machine says so:
  Mbarrier,  // a phase of the mbarrier at `barrier` ends, or time is up
  Registers, // setmaxnreg.inc, when the block has registers
  Products,  // wgmma.wait_group, when all warps of the group have issued
};
inline bool isElsewhere(Wait w) { return w >= Wait::Barrier; }

/// Lanes of a warp at one place.
struct Fragment {
  uint32_t pc = 0;
  uint32_t mask = 0;
  Wait wait = Wait::None;
  bool expired = false;
  /// A try_wait has waited for long: it gives up.
  bool timedOut = false;
  uint32_t barrier = 0;
  /// Lanes that must come (Lanes, WarpBarrier).
  uint32_t members = 0;
};

/// A cp.async of a warp: the lanes that have not been waited for.
struct PendingCopies {
  uint32_t mask;
  uint32_t inst;
  uint32_t serial;
  uint8_t bytes;
  /// Whether the sources were read when the copy was issued.
  bool sampled;
  uint32_t group[32];
  uint32_t dest[32];
  uint64_t source[32];
  uint8_t sourceBytes[32];
  uint8_t data[32][16];
};

struct Mbarriers;
struct AsyncOps;
struct WgmmaState;

struct Warp {
  uint32_t *regs = nullptr;
  uint32_t *preds = nullptr;
  uint32_t pc = 0;
  /// Straight execution ends here. 0 after anything that needs a decision.
  uint32_t limit = 0;
  uint32_t active = 0;
  uint32_t alive = 0;
  uint32_t launched = 0;
  uint32_t index = 0;
  Cta *cta = nullptr;
  Launch *launch = nullptr;
  const Inst *code = nullptr;
  /// Allocations that were accessed before.
  struct Range {
    uint64_t base = 0, end = 0;
    bool writable = false;
  };
  Range ranges[4];
  uint32_t nextRange = 0;
  /// The one with an address, or any.
  const Range &rangeOf(uint64_t address) const {
    for (const Range &r : ranges)
      if (address - r.base < r.end - r.base)
        return r;
    return ranges[0];
  }
  /// Accesses are counted or checked.
  bool observed = false;
  /// Set by handlers that block: the reason, taken by the scheduler.
  Wait wait = Wait::None;
  uint32_t waitBarrier = 0;
  uint32_t waitMembers = 0;
  std::vector<Fragment> fragments;
  uint32_t current = 0;
  uint8_t *local = nullptr;
  /// In the order of issue; those beyond `copyCount` are spare.
  std::vector<PendingCopies> copies;
  uint32_t copyCount = 0;
  uint32_t copyGroup[32] = {};
  uint32_t copySerial = 0;
  /// Of cp.async.bulk, by lane.
  uint32_t bulkGroup[32] = {};
  /// Products in flight; null if there never were any.
  std::shared_ptr<WgmmaState> wgmma;
  /// Registers of a thread (setmaxnreg); 0: not known.
  uint32_t maxRegisters = 0;
  bool timedOut = false;
  uint64_t executed = 0;
  /// nanosleep: the scheduler takes another warp.
  bool yielded = false;
  /// The carry bit of add.cc and the like.
  uint32_t carry = 0;
  /// By tracked register: the lanes that have written it.
  std::vector<uint32_t> writtenRegisters;

  uint32_t *r32(uint32_t slot) { return regs + size_t(slot) * 32; }
  uint64_t *r64(uint32_t slot) {
    return reinterpret_cast<uint64_t *>(regs + size_t(slot) * 32);
  }
  /// A predicate operand as a mask.
  uint32_t pred(uint32_t op) const {
    return preds[op >> 1] ^ (op & 1 ? fullMask : 0);
  }
  void setPred(uint32_t op, uint32_t value, uint32_t mask) {
    uint32_t &p = preds[op >> 1];
    p = (p & ~mask) | (value & mask);
  }
  uint32_t instIndex(const Inst &in) const { return uint32_t(&in - code); }
};

struct Barrier {
  uint32_t arrived = 0;
  uint32_t expected = 0; // 0: all warps
  bool counted = false;
  bool used = false;
  /// Of bar.red.
  uint32_t popc = 0;
  bool all = true, any = false;
  /// Lanes of warps that have arrived in part.
  std::vector<uint32_t> partial;
  /// (warp, instruction, lanes) that want the result.
  struct Reader {
    uint32_t warp, inst, mask;
  };
  std::vector<Reader> readers;
};

struct Cta {
  uint32_t id[3] = {0, 0, 0};
  uint32_t linear = 0;
  uint32_t slot = 0;
  uint8_t *shared = nullptr;
  uint32_t sharedBytes = 0;
  std::vector<Warp> warps;
  std::vector<uint32_t> registers, predicates;
  std::vector<uint8_t> sharedMemory, localMemory;
  std::vector<Barrier> barriers;
  std::shared_ptr<Mbarriers> mbarriers;
  /// Bulk copies that are not done; null if there never were any.
  std::shared_ptr<AsyncOps> async;
  /// Registers that setmaxnreg.dec gave back, for each thread of a warp.
  uint32_t freeRegisters = 0;
  /// Rounds in which nothing but time-outs of waits happened.
  uint32_t idleRounds = 0;
  uint32_t liveWarps = 0;
  uint32_t nextWarp = 0;
};

enum class Access : uint8_t { Read, Write, Atomic };

/// Host addresses of a warp's accesses.
struct Lanes {
  uint8_t *p[32];
  uint64_t address[32];
};

// What handlers ask of the machine. Defined in Machine/.

/// Fills `lanes` for the lanes of `mask`; removes lanes that fault (they are
/// reported). `bytes` is the size and the alignment of an access.
uint32_t resolve(Warp &warp, const Inst &in, Space space, uint32_t mask,
                 uint32_t slot, uint32_t bytes, Access access, Lanes &lanes);
/// The rest of it for addresses that are all right: counts and checks.
void observe(Warp &warp, const Inst &in, Space space, uint32_t mask,
             uint32_t bytes, Access access, const Lanes &lanes);
/// A report at an instruction; may end the launch.
void report(Warp &warp, const Inst &in, int kind, uint32_t mask,
            const std::string &message);
/// Ends the current run of the warp at the instruction, which is repeated.
void block(Warp &warp, Wait why, uint32_t members);
void exitLanes(Warp &warp, uint32_t mask);
void branch(Warp &warp, uint32_t taken, uint32_t target);
void diverge(Warp &warp, const uint32_t *targets, uint32_t mask);
void barrierArrive(Warp &warp, const Inst &in, uint32_t mask, uint32_t id,
                   uint32_t count, bool counted, bool waits, bool red,
                   uint32_t predicate);
/// cp.async to and from the addresses of `to` and `from`. `checked`: nothing is
/// wrong with them and the sizes.
void issueCopies(Warp &warp, const Inst &in, uint32_t mask, uint32_t bytes,
                 const uint32_t *sourceBytes, Lanes &to, Lanes &from,
                 bool checked);
void waitCopies(Warp &warp, const Inst &in, uint32_t mask, uint32_t keep);
void warpSynced(Warp &warp, uint32_t mask);
void fence(Warp &warp, uint32_t mask, uint32_t scope);
uint64_t specialValue(Warp &warp, uint32_t which, uint32_t lane);

/// Waits for the rest of the warp; a report if it cannot come.
void partialWarp(Warp &warp, const Inst &in, uint32_t mask);
/// Whether all lanes of the warp are here; blocks until they are.
inline bool wholeWarp(Warp &w, const Inst &in, uint32_t mask) {
  if (mask == fullMask)
    return true;
  partialWarp(w, in, mask);
  return false;
}
/// Whether the lanes of `members` that have not exited are here.
inline bool lanesHere(Warp &w, uint32_t mask, uint32_t members) {
  if (((members & w.alive) & ~mask) == 0)
    return true;
  block(w, Wait::Lanes, members);
  return false;
}

} // namespace fi::emulator

#endif // FI_EMULATOR_EXEC_EXEC_H
