//===- Kernel.h - A kernel ready to run -------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_DECODE_KERNEL_H
#define FI_EMULATOR_DECODE_KERNEL_H

#include "../Exec/Exec.h"
#include <deque>
#include <unordered_map>

namespace fi::emulator {

/// Special registers. Those up to LastStatic do not change while a warp runs
/// and live in slots.
enum class Special : uint32_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  Laneid,
  Warpid,
  Nwarpid,
  Smid,
  Nsmid,
  Gridid,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  DynamicSmem,
  TotalSmem,
  WarpSize,
  One,
  Zero,
  LastStatic = Zero,
  Clock,
  ClockHi,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
};

/// A module whose variables have addresses.
struct LoadedModule {
  PtxModule ast;
  std::unordered_map<const Variable *, uint64_t> addresses;
};

struct Kernel {
  const LoadedModule *module = nullptr;
  const PtxFunction *function = nullptr;
  std::vector<Inst> code;
  /// By instruction: what it was made of.
  std::vector<const AstInst *> source;
  std::deque<std::vector<uint32_t>> lists;
  /// Slots of a warp: registers, then constants and special registers.
  uint32_t slots = 0;
  uint32_t registerSlots = 0;
  std::vector<uint32_t> constants; // words of the slots after the registers
  struct SpecialSlot {
    Special which;
    uint32_t slot;
    bool wide;
  };
  std::vector<SpecialSlot> specials;
  uint32_t predicates = 2; // 0 is false, 1 true
  uint32_t virtualRegisters = 0;
  uint32_t sharedBytes = 0; // static
  uint32_t dynamicAlign = 16;
  uint32_t localBytes = 0; // a lane
  /// Registers that some path may read before writing them.
  struct Tracked {
    uint32_t inst, index;
    bool write;
  };
  std::vector<Tracked> tracked; // sorted by instruction
  std::vector<std::string> trackedNames;
  /// In kernels with wgmma: the registers of each instruction in the order of
  /// its operands, times two, and one more for those that are written.
  std::vector<uint32_t> touchStart, touches;
  std::vector<bool> products; // by instruction: wgmma.mma_async
  std::vector<std::string> registerNames;

  uint32_t dynamicOffset() const {
    return (sharedBytes + dynamicAlign - 1) / dynamicAlign * dynamicAlign;
  }
};

/// Decodes an entry function. False: `error` says where and what.
bool decodeKernel(const LoadedModule &module, const PtxFunction &function,
                  Kernel &kernel, std::string &error);

/// Gives each register of a flattened program a slot. `uses`, `defs`: registers
/// by instruction; `successors`: by instruction.
struct Program {
  struct Step {
    uint32_t firstUse, useCount, firstDef, defCount;
    std::vector<uint32_t> targets;
    bool fallsThrough = true;
  };
  std::vector<Step> steps;
  std::vector<uint32_t> uses, defs;
  /// 0 predicate, 1 word, 2 double word.
  std::vector<uint8_t> kinds;
};
struct Assignment {
  std::vector<uint32_t> slots;
  uint32_t wordSlots = 0, predicateSlots = 0;
  /// Registers that are live where the program begins.
  std::vector<uint32_t> liveAtEntry;
};
Assignment assignSlots(const Program &program, uint32_t firstPredicate);

} // namespace fi::emulator

#endif // FI_EMULATOR_DECODE_KERNEL_H
