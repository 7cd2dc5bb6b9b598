//===- PageAllocator.cpp - which pages of a pool are free -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/PageAllocator.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

namespace fi::replay {

PageAllocator::PageAllocator(int64_t pages) : live(pages), used(pages) {
  free.reserve(pages);
  for (int64_t page = pages; page-- > 0;)
    free.push_back(page);
}

std::optional<int32_t> PageAllocator::allocate() {
  if (free.empty())
    return std::nullopt;
  int32_t page = free.back();
  free.pop_back();
  live.set(page);
  ++allocated;
  reused += used.test(page);
  used.set(page);
  peak = std::max(peak, getLive());
  return page;
}

bool PageAllocator::release(llvm::ArrayRef<int32_t> pages) {
  for (auto [i, page] : llvm::enumerate(pages)) {
    if (page >= 0 && page < getCapacity() && live.test(page)) {
      live.reset(page);
      continue;
    }
    // Unknown, free already, or twice in the list: take all back.
    for (int32_t undone : pages.take_front(i))
      live.set(undone);
    return false;
  }
  for (int32_t page : pages)
    free.push_back(page);
  return true;
}

} // namespace fi::replay
