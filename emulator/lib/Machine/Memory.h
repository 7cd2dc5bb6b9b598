//===- Memory.h - What kernels may touch ------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_MEMORY_H
#define FI_EMULATOR_MACHINE_MEMORY_H

#include "Shadow.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fi::emulator {

struct Allocation {
  uint64_t base = 0, end = 0;
  bool writable = true;
  std::unique_ptr<uint8_t[]> owned;
  /// A bit a byte: whether it was written. Empty: all of it.
  std::vector<uint64_t> written;
  ShadowMemory shadow;
};

/// Allocations by address.
class MemoryMap {
public:
  uint64_t allocate(size_t bytes, std::string &error);
  bool add(uint64_t base, size_t bytes, bool writable, std::string &error);
  /// Removes what begins at `base`; `owned`: of which kind it must be.
  bool remove(uint64_t base, bool owned, std::string &error);
  Allocation *find(uint64_t address);
  /// The allocation with all of [address, address + bytes).
  Allocation *find(uint64_t address, uint64_t bytes);
  /// What a report says about an address.
  std::string describe(uint64_t address) const;
  /// Nothing is unwritten any more: a launch without checks ran.
  void markAllWritten();

private:
  std::map<uint64_t, Allocation> byBase;
};

void markWritten(Allocation &allocation, uint64_t address, uint64_t bytes);

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_MEMORY_H
