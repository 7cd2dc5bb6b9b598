//===- KVSource.h - the keys and values of a replay -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// There is no model in a replay, so keys, values and queries are seeded random
// numbers. Those of a token are a function of (request, token): at any step the
// contents of every page in use can be compared with what they ought to be,
// which finds wrong tables, lost appends and pages with two owners.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_KVSOURCE_H
#define FI_REPLAY_KVSOURCE_H

#include "fi/Execution/Memory.h"
#include "fi/Replay/Batching.h"
#include "fi/Replay/Program.h"
#include "llvm/Support/Error.h"

namespace fi::replay {

/// The pools of a replay in a backend's memory, and where a token's row lies in
/// them. Written from the description of the layouts; shares nothing with the
/// compiler's addresses.
class Pools {
public:
  /// Allocates the pools and fills them with NaN: whoever reads a slot that was
  /// never written gives itself away.
  static llvm::Expected<Pools> create(const Program &program, int64_t pages,
                                      Memory &memory);

  const HostTensor &getKeys() const { return keys; }
  const HostTensor &getValues() const { return values; }
  Memory &getMemory() const { return *memory; }
  /// The address of a row in one of the tensors.
  char *getRow(const HostTensor &pool, int32_t page, int64_t slot,
               int64_t head) const;
  /// The pools as the host has them: themselves, or copies, of which pages are
  /// as they were when they were last fetched.
  const HostTensor &getHostKeys() const { return hostKeys; }
  const HostTensor &getHostValues() const { return hostValues; }
  /// Copies pages to the host, where the pools are elsewhere.
  llvm::Error fetch(llvm::ArrayRef<int32_t> pages) const;
  /// Fills pages with NaN again, after they were given back.
  llvm::Error poison(llvm::ArrayRef<int32_t> pages) const;
  int64_t getBytes() const { return 2 * poolBytes; }

private:
  HostTensor keys, values, hostKeys, hostValues;
  Memory *memory = nullptr;
  int64_t poolBytes = 0, pageBytes = 0;
  HeadOrder order = HeadOrder::HND;
};

class KVSource {
public:
  KVSource(const Program &program, uint64_t seed, int64_t maxRows);

  /// Keys (or values) of one token: KV heads x dim elements.
  const char *getKeys(int64_t request, int64_t token) const {
    return getTokenRow(2 * (uint64_t(request) << 32 | uint64_t(token)));
  }
  const char *getValues(int64_t request, int64_t token) const {
    return getTokenRow(2 * (uint64_t(request) << 32 | uint64_t(token)) + 1);
  }
  /// Queries of all rows of a step, the host's.
  HostTensor getQuery(int64_t step, int64_t rows) const;
  /// Largest magnitude of any value.
  double getMaxValue() const { return maxValue; }

  /// Writes the new tokens of a batch, one behind the other, as the program's
  /// arguments for appending.
  llvm::Error fillNewRows(const StepBatch &batch, const HostTensor &keys,
                          const HostTensor &values, Memory &memory) const;
  /// Writes the new tokens of a batch into their pages.
  llvm::Error append(const StepBatch &batch, const Pools &pools) const;
  /// Fetches the pages of one entry and checks that they hold its keys and
  /// values.
  llvm::Error verify(const StepBatch &batch, unsigned entry,
                     const Pools &pools) const;

private:
  const char *getTokenRow(uint64_t id) const;

  Program program;
  uint64_t seed;
  int64_t elements, headBytes;
  HostTensor block, queries;
  double maxValue = 0;
};

} // namespace fi::replay

#endif // FI_REPLAY_KVSOURCE_H
