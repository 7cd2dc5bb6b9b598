//===- Async.h - mbarriers and copies that are not done ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_ASYNC_H
#define FI_EMULATOR_MACHINE_ASYNC_H

#include "../Exec/Async.h"
#include "Launch.h"

namespace fi::emulator {

/// An mbarrier of a block, beside the eight bytes in its shared memory.
struct Mbarrier {
  uint32_t address = 0; // shared
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0; // of copies, that are still expected
  uint64_t phase = 0;
  /// For the checks: a writer of its own.
  uint32_t agent = 0;
  uint32_t initInst = 0;
};
struct Mbarriers {
  std::unordered_map<uint32_t, Mbarrier> byAddress;
  Mbarrier *find(uint32_t address) {
    auto it = byAddress.find(address);
    return it == byAddress.end() ? nullptr : &it->second;
  }
};

/// Bytes of a row of a box, which lie together in global memory.
struct BulkRow {
  uint64_t global;       // of the first byte that exists
  uint32_t shared;       // before the swizzle
  uint32_t begin, bytes; // what exists, of the row
};

/// A bulk copy, or the arrival after cp.async, that is not done.
struct AsyncOp {
  BulkKind kind = BulkKind::Load;
  bool afterCopies = false; // mbarrierAfterCopies
  BulkOp op = BulkOp::None;
  Type type = Type::None;
  uint32_t warp = 0, lanes = 0, inst = 0;
  uint32_t group = 0;
  uint64_t due = 0;
  /// The source has been read, into `data`.
  bool sampled = false;
  uint32_t barrier = 0; // address
  uint32_t swizzle = 0;
  uint32_t rowBytes = 0;
  uint32_t total = 0;    // bytes
  bool fillsNaN = false; // outside of the tensor, where zeros are otherwise
  uint32_t from = 0;     // of Move: shared address
  std::vector<BulkRow> rows;
  std::vector<uint8_t> data;
  /// Arrivals after cp.async.
  uint32_t arrivals = 0;
};
struct AsyncOps {
  std::vector<AsyncOp> ops;
  uint64_t nextDue = ~uint64_t(0);
};

inline uint32_t swizzled(uint32_t address, uint32_t bits) {
  return address ^ ((address >> 3) & bits);
}
/// The sixteen bytes of an operation in shared memory, one call for each.
template <class F> void forSharedLines(const AsyncOp &op, F f) {
  for (const BulkRow &row : op.rows)
    for (uint32_t b = 0; b < op.rowBytes; b += 16)
      f(swizzled(row.shared + b, op.swizzle));
}

/// For messages.
std::string describe(const Mbarrier &m);

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_ASYNC_H
