//===- Resolve.h - Addresses of the common accesses -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory, and global memory in the allocation that was used last, where
// nothing is wrong with any address: vector code in the handler. Everything
// else, and every report, is resolve()'s.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EXEC_RESOLVE_H
#define FI_EMULATOR_EXEC_RESOLVE_H

#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {

inline void addressesOf(Warp &w, uint32_t index, bool isWide, int64_t addend,
                        uint64_t *out) {
  if (isWide) {
    const uint64_t *a = w.r64(index);
    FI_EMU_VECTORIZE
    for (unsigned i = 0; i < 32; ++i)
      out[i] = a[i] + uint64_t(addend);
  } else {
    const uint32_t *a = w.r32(index);
    FI_EMU_VECTORIZE
    for (unsigned i = 0; i < 32; ++i)
      out[i] = uint64_t(a[i] + uint32_t(addend));
  }
}

/// Whether accesses of `bytes` (a power of two) lie in [begin, end) and are
/// aligned, for the lanes of `mask`. Addresses of the host and of shared memory
/// are below 2^63.
inline bool allInside(const uint64_t *address, uint32_t mask, uint32_t bytes,
                      uint64_t begin, uint64_t end) {
  if (end < begin + bytes)
    return false;
  uint64_t most = end - begin - bytes;
  uint64_t bad[32];
  FI_EMU_VECTORIZE
  for (unsigned i = 0; i < 32; ++i) {
    uint64_t offset = address[i] - begin;
    // The top bit tells: below the begin, or beyond the last place.
    bad[i] = (offset | (most - offset)) >> 63 | (address[i] & (bytes - 1));
  }
  if (mask == fullMask) {
    uint64_t any = 0;
    FI_EMU_VECTORIZE
    for (unsigned i = 0; i < 32; ++i)
      any |= bad[i];
    return any == 0;
  }
  uint64_t any = 0;
  for (unsigned i = 0; i < 32; ++i)
    any |= mask >> i & 1 ? bad[i] : 0;
  return any == 0;
}

/// As resolve().
template <Space S>
inline uint32_t access(Warp &w, const Inst &in, uint32_t mask, uint32_t slot,
                       uint32_t bytes, Access kind, Lanes &lanes) {
  if constexpr (S == Space::Shared || S == Space::Global ||
                S == Space::Generic) {
    addressesOf(w, slot, !(in.flags & Inst::Address32), in.imm, lanes.address);
    bool fine;
    if constexpr (S == Space::Shared) {
      fine = allInside(lanes.address, mask, bytes, sharedBase,
                       uint64_t(sharedBase) + w.cta->sharedBytes);
      uint64_t base =
          uint64_t(reinterpret_cast<uintptr_t>(w.cta->shared)) - sharedBase;
      FI_EMU_VECTORIZE
      for (unsigned i = 0; i < 32; ++i)
        lanes.p[i] =
            reinterpret_cast<uint8_t *>(uintptr_t(base + lanes.address[i]));
    } else {
      const Warp::Range &r = w.rangeOf(lanes.address[__builtin_ctz(mask)]);
      fine = (kind == Access::Read || r.writable) &&
             allInside(lanes.address, mask, bytes, r.base, r.end);
      std::memcpy(lanes.p, lanes.address, sizeof(lanes.p));
    }
    if (fine) {
      if (w.observed)
        observe(w, in, S == Space::Shared ? Space::Shared : Space::Global, mask,
                bytes, kind, lanes);
      return mask;
    }
  }
  return resolve(w, in, S, mask, slot, bytes, kind, lanes);
}

} // namespace fi::emulator::FI_EMU_ISA

#endif // FI_EMULATOR_EXEC_RESOLVE_H
