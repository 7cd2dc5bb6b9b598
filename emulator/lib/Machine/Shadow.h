//===- Shadow.h - Who touched a word last -----------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the checks: a record for each four bytes of shared and global memory.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_SHADOW_H
#define FI_EMULATOR_MACHINE_SHADOW_H

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fi::emulator {

/// An access: warp of the grid, clock of the warp, lanes, instruction.
struct Event {
  uint32_t warp = 0;
  uint32_t clock = 0; // 0: none
  uint32_t lanes = 0;
  uint32_t inst = 0;
};

struct ShadowWord {
  Event write, read;
  /// A reader of another warp that nothing had ordered before `read`.
  Event otherRead;
  uint8_t writeBytes = 0, readBytes = 0;
  bool strongWrite = false, strongRead = false, strongOther = false;
  /// A copy in flight: warp + 1, instruction.
  uint32_t pendingWarp = 0, pendingInst = 0;
};

/// Words of an allocation, in pages that exist when they are touched.
class ShadowMemory {
public:
  ShadowWord &at(uint64_t word, uint32_t generation) {
    uint64_t page = word / pageWords;
    if (page >= pages.size())
      pages.resize(page + 1);
    Page &p = pages[page];
    if (!p.words || p.generation != generation)
      reset(p, generation);
    return p.words[word % pageWords];
  }
  void clear() { pages.clear(); }

  static constexpr uint64_t pageWords = 256;

private:
  struct Page {
    std::unique_ptr<ShadowWord[]> words;
    uint32_t generation = 0;
  };
  static void reset(Page &page, uint32_t generation) {
    page.words = std::make_unique<ShadowWord[]>(pageWords);
    page.generation = generation;
  }
  std::vector<Page> pages;
};

/// What a warp knows of others: all events of a warp below a clock.
struct Knowledge {
  /// Warps of the own block.
  std::vector<uint32_t> local;
  /// Warps of other blocks; shared between those that know the same.
  std::shared_ptr<const std::unordered_map<uint32_t, uint32_t>> foreign;

  void join(const Knowledge &other);
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_SHADOW_H
