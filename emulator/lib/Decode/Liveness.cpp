//===- Liveness.cpp - Slots for registers ---------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel has thousands of virtual registers, hundreds of which live at a
// time; with slots for those alone a warp stays in the cache. Liveness is that
// of one thread: lanes that diverge write their own lanes of a slot only.
//
//===----------------------------------------------------------------------===//
#include "Kernel.h"

#include <algorithm>
#include <queue>

namespace fi::emulator {

Assignment assignSlots(const Program &program, uint32_t firstPredicate) {
  const size_t n = program.steps.size(), regs = program.kinds.size();
  const size_t words = (regs + 63) / 64;
  // Blocks.
  std::vector<uint8_t> leader(n + 1, 0);
  leader[0] = 1;
  for (size_t i = 0; i < n; ++i) {
    const Program::Step &step = program.steps[i];
    for (uint32_t t : step.targets)
      leader[t] = 1;
    if (!step.targets.empty() || !step.fallsThrough)
      leader[i + 1] = 1;
  }
  std::vector<uint32_t> starts;
  std::vector<uint32_t> blockOf(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    if (leader[i])
      starts.push_back(uint32_t(i));
    blockOf[i] = uint32_t(starts.size()) - 1;
  }
  const size_t blocks = starts.size();
  auto endOf = [&](size_t b) {
    return b + 1 < blocks ? starts[b + 1] : uint32_t(n);
  };

  std::vector<uint64_t> use(blocks * words), def(blocks * words),
      in(blocks * words), out(blocks * words);
  auto set = [&](std::vector<uint64_t> &v, size_t b, uint32_t r) {
    v[b * words + r / 64] |= uint64_t(1) << (r % 64);
  };
  auto test = [&](const std::vector<uint64_t> &v, size_t b, uint32_t r) {
    return v[b * words + r / 64] >> (r % 64) & 1;
  };
  for (size_t b = 0; b < blocks; ++b)
    for (uint32_t i = starts[b]; i < endOf(b); ++i) {
      const Program::Step &s = program.steps[i];
      for (uint32_t k = 0; k < s.useCount; ++k) {
        uint32_t r = program.uses[s.firstUse + k];
        if (!test(def, b, r))
          set(use, b, r);
      }
      for (uint32_t k = 0; k < s.defCount; ++k)
        set(def, b, program.defs[s.firstDef + k]);
    }
  std::vector<std::vector<uint32_t>> successors(blocks);
  for (size_t b = 0; b < blocks; ++b) {
    const Program::Step &last = program.steps[endOf(b) - 1];
    for (uint32_t t : last.targets)
      if (t < n)
        successors[b].push_back(blockOf[t]);
    if (last.fallsThrough && endOf(b) < n)
      successors[b].push_back(uint32_t(b) + 1);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks; b-- > 0;) {
      for (size_t w = 0; w < words; ++w) {
        uint64_t o = 0;
        for (uint32_t s : successors[b])
          o |= in[s * words + w];
        out[b * words + w] = o;
        uint64_t i = use[b * words + w] | (o & ~def[b * words + w]);
        changed |= i != in[b * words + w];
        in[b * words + w] = i;
      }
    }
  }

  Assignment result;
  for (uint32_t r = 0; blocks && r < regs; ++r)
    if (test(in, 0, r))
      result.liveAtEntry.push_back(r);

  // Intervals over the text's order.
  constexpr uint32_t never = ~uint32_t(0);
  std::vector<uint32_t> first(regs, never), last(regs, 0);
  auto touch = [&](uint32_t r, uint32_t at) {
    first[r] = first[r] == never ? at : std::min(first[r], at);
    last[r] = std::max(last[r], at);
  };
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t w = 0; w < words; ++w)
      for (uint64_t bits = in [b * words + w]; bits; bits &= bits - 1)
        touch(uint32_t(w * 64) + uint32_t(__builtin_ctzll(bits)), starts[b]);
    for (size_t w = 0; w < words; ++w)
      for (uint64_t bits = out[b * words + w]; bits; bits &= bits - 1)
        touch(uint32_t(w * 64) + uint32_t(__builtin_ctzll(bits)), endOf(b) - 1);
  }
  for (uint32_t i = 0; i < n; ++i) {
    const Program::Step &s = program.steps[i];
    for (uint32_t k = 0; k < s.useCount; ++k)
      touch(program.uses[s.firstUse + k], i);
    for (uint32_t k = 0; k < s.defCount; ++k)
      touch(program.defs[s.firstDef + k], i);
  }
  // A register that may be read before it is written has its slot alone, from
  // the beginning to the end.
  for (uint32_t r : result.liveAtEntry) {
    first[r] = 0;
    last[r] = uint32_t(n);
  }

  // Linear scan. A slot is free after the last use, not at it: handlers may
  // write a destination before they have read all sources.
  std::vector<uint32_t> order;
  for (uint32_t r = 0; r < regs; ++r)
    if (first[r] != never)
      order.push_back(r);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return first[a] != first[b] ? first[a] < first[b] : a < b;
  });
  result.slots.assign(regs, 0);
  using End = std::pair<uint32_t, uint32_t>; // last, slot
  std::priority_queue<End, std::vector<End>, std::greater<End>> live[3];
  std::vector<uint32_t> freeSlots[3];
  uint32_t next = 0, nextPredicate = firstPredicate;
  for (uint32_t r : order) {
    uint8_t kind = program.kinds[r];
    while (!live[kind].empty() && live[kind].top().first < first[r]) {
      freeSlots[kind].push_back(live[kind].top().second);
      live[kind].pop();
    }
    uint32_t slot;
    if (!freeSlots[kind].empty()) {
      slot = freeSlots[kind].back();
      freeSlots[kind].pop_back();
    } else if (kind == 0) {
      slot = nextPredicate++;
    } else {
      slot = next;
      next += kind;
    }
    result.slots[r] = slot;
    live[kind].push({last[r], slot});
  }
  result.wordSlots = next;
  result.predicateSlots = nextPredicate;
  return result;
}

} // namespace fi::emulator
