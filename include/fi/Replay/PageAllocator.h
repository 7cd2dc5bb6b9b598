//===- PageAllocator.h - which pages of a pool are free ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The free list of a pool of KV pages. The page that was given back last is
// given out first: a serving engine does so because that page is still in a
// cache, and a replay does so because stale page tables then read wrong keys
// soon.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_PAGEALLOCATOR_H
#define FI_REPLAY_PAGEALLOCATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace fi::replay {

class PageAllocator {
public:
  explicit PageAllocator(int64_t pages);

  /// A free page; none if all are in use.
  std::optional<int32_t> allocate();
  /// Gives pages back, the last one first to be given out again. Pages that are
  /// not in use are refused: false, and nothing happens.
  [[nodiscard]] bool release(llvm::ArrayRef<int32_t> pages);

  int64_t getCapacity() const { return live.size(); }
  int64_t getFree() const { return free.size(); }
  int64_t getLive() const { return getCapacity() - getFree(); }
  bool isLive(int32_t page) const { return live.test(page); }
  /// Most pages in use at once.
  int64_t getPeak() const { return peak; }
  /// Pages given out, and how many of these had been in use before.
  int64_t getAllocated() const { return allocated; }
  int64_t getReused() const { return reused; }

private:
  std::vector<int32_t> free; // a stack
  llvm::BitVector live, used;
  int64_t peak = 0, allocated = 0, reused = 0;
};

} // namespace fi::replay

#endif // FI_REPLAY_PAGEALLOCATOR_H
