//===- Wgmma.h - Products of warpgroups in flight ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_WGMMA_H
#define FI_EMULATOR_MACHINE_WGMMA_H

#include "Async.h"

#include <deque>

namespace fi::emulator {

/// Four warps that execute the same products. A product is one entry until all
/// four have waited for it.
struct Warpgroup {
  struct Entry {
    uint32_t inst;
    uint64_t descriptors[2];
    uint32_t issued = 0, retired = 0;
    /// One warp has waited: it is done for all.
    bool finished = false;
    std::vector<uint32_t> panel;
  };
  std::deque<Entry> entries;
  uint64_t first = 0; // serial of the front
  /// For the checks: a reader of its own, whose clock counts products.
  uint32_t agent = 0;
  std::vector<std::vector<uint32_t>> spare;
};

struct WgmmaState {
  std::shared_ptr<Warpgroup> group;
  /// In the order of issue; with checks with the lines of shared memory.
  struct InFlight {
    WgmmaOp op;
    bool computed;
    std::vector<uint32_t> lines;
  };
  std::deque<InFlight> inFlight;
  uint32_t groupNumber = 0;
  uint64_t serial = 0;
  /// Products are computed when they are waited for, not when they are issued.
  bool late = false;
  bool fenced = false;
  // With checks: by register, when it was touched last, and whether a product
  // in flight has it (1 accumulator, 2 source) and which.
  uint64_t step = 1, lastFence = 0;
  std::vector<uint64_t> touched;
  std::vector<uint8_t> held;
  std::vector<uint32_t> heldBy;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_WGMMA_H
