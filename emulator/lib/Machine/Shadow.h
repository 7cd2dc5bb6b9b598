//===- Shadow.h - Who touched a word last -----------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the checks: who accessed each word of shared and global memory last.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_SHADOW_H
#define FI_EMULATOR_MACHINE_SHADOW_H

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

namespace fi::emulator {

/// An access: warp of the grid, clock of the warp, lanes, instruction. Zeros
/// are no access.
struct Event {
  uint32_t warp, clock, lanes, inst;
};

/// Which lanes an event means where a line has one record. Striped: its words
/// belong to lanes one after another, or two words to each.
enum class Stripe : uint8_t { None, Words, Pairs };

/// Zeros: nobody was here.
struct alignas(64) ShadowWord {
  Event write, read;
  /// A reader of another warp that nothing had ordered before `read`.
  Event otherRead;
  uint8_t writeBytes, readBytes;
  bool strongWrite, strongRead, strongOther;
  Stripe writeStripe, readStripe, otherStripe;
  /// A copy in flight: warp + 1, instruction.
  uint32_t pendingWarp, pendingInst;
};
static_assert(sizeof(ShadowWord) == 64, "one line of the cache");

/// 1 KiB of memory. Sixteen bytes that have always been accessed as a whole
/// share a record, for that is how kernels copy and load matrices; others have
/// one for each word.
struct ShadowPage {
  static constexpr uint32_t bytes = 1024, lineBytes = 16, lines = 64;

  bool isSplit(uint32_t line) const { return split >> line & 1; }
  /// One record again where all four are alike and nobody has read.
  void mergeLine(uint32_t line);

  ShadowWord *whole = nullptr; // by line
  ShadowWord *words = nullptr; // of the lines in `split`
  uint64_t split = 0;
  uint32_t generation = 0;
};

/// Records of an allocation, in pages that exist when they are touched. A
/// generation begins with none, without anything being cleared.
class ShadowMemory {
public:
  ShadowPage &page(uint64_t index, uint32_t generation) {
    if (index >= pages.size())
      pages.resize(index + 1);
    ShadowPage &p = pages[index];
    if (p.generation != generation || !p.whole)
      reset(p, generation);
    return p;
  }
  /// The four words of a line, each with a record of its own from now on.
  ShadowWord *wordsOf(ShadowPage &page, uint32_t line) {
    if (!page.isSplit(line))
      splitLine(page, line);
    return page.words + 4 * line;
  }

  /// What is about to be looked at: a load of a warp asks for up to 64 records
  /// that follow no pattern.
  void prefetch(uint64_t offset) const {
    uint64_t index = offset / ShadowPage::bytes;
    if (index < pages.size() && pages[index].whole)
      __builtin_prefetch(pages[index].whole + offset / 16 % ShadowPage::lines,
                         1);
  }

private:
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  void reset(ShadowPage &page, uint32_t generation);
  void splitLine(ShadowPage &page, uint32_t line);
  /// Zeros, in pages of the system that exist when they are touched.
  ShadowWord *take(uint32_t count);

  std::vector<ShadowPage> pages;
  std::vector<std::unique_ptr<void, Free>> slabs;
  ShadowWord *spare = nullptr, *spareEnd = nullptr;
};

/// In place of a warp: an mbarrier of the block, whose copies wrote. The clock
/// is that of its phases.
constexpr uint32_t agentBit = 1u << 31;

/// What a warp knows of others: all events of a warp below a clock.
struct Knowledge {
  /// Warps of the own block, then its mbarriers.
  std::vector<uint32_t> local;
  /// Of those: what a fence.proxy.async lies behind.
  std::vector<uint32_t> proxied;
  /// Events of some lanes of a warp alone: one lane arrived, and the others had
  /// not met it since.
  struct Part {
    uint32_t warp, lanes, clock;
    bool proxied;
  };
  std::vector<Part> parts;
  /// Warps of other blocks; shared between those that know the same.
  std::shared_ptr<const std::unordered_map<uint32_t, uint32_t>> foreign;

  void join(const Knowledge &other);
  void add(const Part &part);
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_SHADOW_H
