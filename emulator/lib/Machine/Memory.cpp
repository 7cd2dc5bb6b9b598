//===- Memory.cpp - What kernels may touch --------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Memory.h"

#include <algorithm>
#include <cstdio>
#include <new>

namespace fi::emulator {
namespace {

std::string hex(uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(v));
  return text;
}

} // namespace

uint64_t MemoryMap::allocate(size_t bytes, std::string &error) {
  constexpr size_t align = 256, most = size_t(1) << 40;
  if (bytes == 0 || bytes > most) {
    error = "expected an allocation of 1 byte to 1 TiB, but got " +
            std::to_string(bytes) + " bytes";
    return 0;
  }
  // Room on both sides, so that neighbours do not touch.
  std::unique_ptr<uint8_t[]> memory(new (std::nothrow)
                                        uint8_t[bytes + 3 * align]);
  if (!memory) {
    error = "out of memory: " + std::to_string(bytes) + " bytes";
    return 0;
  }
  uint64_t base =
      (uint64_t(reinterpret_cast<uintptr_t>(memory.get())) + 2 * align - 1) /
      align * align;
  Allocation &a = byBase[base];
  a.base = base;
  a.end = base + bytes;
  a.owned = std::move(memory);
  a.written.assign((bytes + 63) / 64, 0);
  return base;
}

bool MemoryMap::add(uint64_t base, size_t bytes, bool writable,
                    std::string &error) {
  if (base == 0 || bytes == 0) {
    error = "expected memory to register, but got " + std::to_string(bytes) +
            " bytes at " + hex(base);
    return false;
  }
  auto next = byBase.lower_bound(base);
  if ((next != byBase.end() && next->second.base < base + bytes) ||
      (next != byBase.begin() && std::prev(next)->second.end > base)) {
    error = "memory at " + hex(base) + " overlaps what is registered already";
    return false;
  }
  Allocation &a = byBase[base];
  a.base = base;
  a.end = base + bytes;
  a.writable = writable;
  return true;
}

bool MemoryMap::remove(uint64_t base, bool owned, std::string &error) {
  auto it = byBase.find(base);
  if (it == byBase.end() || bool(it->second.owned) != owned) {
    error = hex(base) + (owned ? " is not the beginning of an allocation"
                               : " is not the beginning of registered memory");
    return false;
  }
  byBase.erase(it);
  return true;
}

Allocation *MemoryMap::find(uint64_t address) {
  auto it = byBase.upper_bound(address);
  if (it == byBase.begin())
    return nullptr;
  Allocation &a = std::prev(it)->second;
  return address < a.end ? &a : nullptr;
}

Allocation *MemoryMap::find(uint64_t address, uint64_t bytes) {
  Allocation *a = find(address);
  return a && bytes <= a->end - address ? a : nullptr;
}

std::string MemoryMap::describe(uint64_t address) const {
  std::string text = hex(address);
  auto it = byBase.upper_bound(address);
  const Allocation *below =
      it == byBase.begin() ? nullptr : &std::prev(it)->second;
  const Allocation *above = it == byBase.end() ? nullptr : &it->second;
  auto size = [](const Allocation &a) {
    return std::to_string(a.end - a.base);
  };
  if (below && (!above || address - below->end <= above->base - address))
    return text + ", " + std::to_string(address - below->end) +
           " bytes after the end of an allocation of " + size(*below) +
           " bytes at " + hex(below->base);
  if (above)
    return text + ", " + std::to_string(above->base - address) +
           " bytes before an allocation of " + size(*above) + " bytes at " +
           hex(above->base);
  return text + "; nothing is allocated";
}

void MemoryMap::markAllWritten() {
  for (auto &[base, a] : byBase)
    a.written.clear();
}

void markWritten(Allocation &a, uint64_t address, uint64_t bytes) {
  if (a.written.empty())
    return;
  uint64_t from = address - a.base, to = from + bytes;
  while (from < to) {
    if (from % 64 == 0 && to - from >= 64) {
      a.written[from / 64] = ~uint64_t(0);
      from += 64;
    } else {
      a.written[from / 64] |= uint64_t(1) << (from % 64);
      ++from;
    }
  }
}

} // namespace fi::emulator
