//===- KVSource.cpp - the keys and values of a replay ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/KVSource.h"
#include "fi/Support/Random.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace llvm;

namespace fi::replay {
namespace {

/// Rows of tokens begin at multiples of this many elements of the block.
constexpr int64_t kRowStep = 64;
/// Places at which a token's row may begin. A prime, so that tokens at regular
/// distances do not fall together.
constexpr int64_t kRowPlaces = 30011;
/// Elements by which the queries of two steps are apart.
constexpr int64_t kQueryStep = 512;
constexpr int64_t kQueryPlaces = 127;

uint64_t mix(uint64_t seed, uint64_t id) {
  return Random(seed ^ id * 0xd1342543de82ef95).next();
}

} // namespace

Expected<Pools> Pools::create(const Program &program, int64_t pages,
                              Memory &memory) {
  Pools pools;
  pools.order = program.getOrder();
  pools.pageBytes = program.getPageSize() * program.getTokenBytes() / 2;
  if (pages > std::numeric_limits<int64_t>::max() / 4 / pools.pageBytes)
    return createStringError(inconvertibleErrorCode(),
                             "pools of " + Twine(pages) + " pages of " +
                                 Twine(2 * pools.pageBytes) +
                                 " bytes have no address");
  pools.poolBytes = pages * pools.pageBytes;
  std::array<int64_t, 4> shape = program.getPoolShape(pages);
  pools.memory = &memory;
  for (HostTensor *pool : {&pools.keys, &pools.values}) {
    Expected<HostTensor> made = memory.allocate(program.getKVType(), shape);
    if (!made)
      return createStringError(
          inconvertibleErrorCode(),
          "out of memory for pools of " + Twine(pages) + " pages, " +
              Twine(2 * pools.poolBytes >> 20) + " MiB; choose fewer pages (" +
              toString(made.takeError()) + ")");
    *pool = std::move(*made);
    // All bits set is a NaN in every float type.
    if (Error error = memory.fill(pool->getData(), 0xff, pools.poolBytes))
      return std::move(error);
  }
  bool isHost = memory.isHost();
  pools.hostKeys = isHost ? pools.keys : HostTensor(program.getKVType(), shape);
  pools.hostValues =
      isHost ? pools.values : HostTensor(program.getKVType(), shape);
  return pools;
}

char *Pools::getRow(const HostTensor &pool, int32_t page, int64_t slot,
                    int64_t head) const {
  if (order == HeadOrder::HND)
    return static_cast<char *>(pool.at({page, head, slot, 0}));
  return static_cast<char *>(pool.at({page, slot, head, 0}));
}

Error Pools::fetch(ArrayRef<int32_t> pages) const {
  if (memory->isHost())
    return Error::success();
  auto copy = [&](const HostTensor &from, const HostTensor &to) -> Error {
    for (int32_t page : pages) {
      int64_t offset = page * pageBytes;
      if (Error error = memory->read(
              static_cast<char *>(to.getData()) + offset,
              static_cast<const char *>(from.getData()) + offset, pageBytes))
        return error;
    }
    return Error::success();
  };
  if (Error error = copy(keys, hostKeys))
    return error;
  return copy(values, hostValues);
}

Error Pools::poison(ArrayRef<int32_t> pages) const {
  for (const HostTensor *pool : {&keys, &values})
    for (int32_t page : pages)
      if (Error error = memory->fill(static_cast<char *>(pool->getData()) +
                                         page * pageBytes,
                                     0xff, pageBytes))
        return error;
  return Error::success();
}

KVSource::KVSource(const Program &program, uint64_t seed, int64_t maxRows)
    : program(program), seed(seed),
      elements(program.getKVHeads() * program.getDim()),
      headBytes(program.getDim() * getByteSize(program.getKVType())),
      block(program.getKVType(), {kRowStep * kRowPlaces + elements}),
      queries(program.getQueryType(),
              {maxRows * program.getQueryHeads() * program.getDim() +
               kQueryStep * kQueryPlaces}) {
  fillNormal(block, deriveSeed(seed, "keys and values"));
  fillNormal(queries, deriveSeed(seed, "queries"));
  for (int64_t i = 0; i < block.getNumElements(); ++i)
    maxValue = std::max(maxValue, std::fabs(block.getFloat({i})));
}

const char *KVSource::getTokenRow(uint64_t id) const {
  int64_t place = mix(seed, id) % kRowPlaces;
  return static_cast<const char *>(block.at({place * kRowStep}));
}

HostTensor KVSource::getQuery(int64_t step, int64_t rows) const {
  int64_t place = mix(~seed, step) % kQueryPlaces;
  return HostTensor(program.getQueryType(),
                    {rows, program.getQueryHeads(), program.getDim()},
                    queries.at({place * kQueryStep}));
}

Error KVSource::fillNewRows(const StepBatch &batch, const HostTensor &keys,
                            const HostTensor &values, Memory &memory) const {
  int64_t bytes = elements * getByteSize(program.getKVType());
  // Each as one copy, which matters where copies are slow to begin.
  std::vector<char> rows(batch.getTokens() * bytes);
  auto fill = [&](auto getToken, const HostTensor &to) {
    char *row = rows.data();
    for (const BatchEntry &entry : batch.entries)
      for (int64_t token = entry.context; token < entry.getKeys(); ++token) {
        std::memcpy(row, getToken(entry.request, token), bytes);
        row += bytes;
      }
    return memory.write(to.getData(), rows.data(), row - rows.data());
  };
  if (Error error = fill([&](int64_t request,
                             int64_t token) { return getKeys(request, token); },
                         keys))
    return error;
  return fill(
      [&](int64_t request, int64_t token) { return getValues(request, token); },
      values);
}

Error KVSource::append(const StepBatch &batch, const Pools &pools) const {
  int64_t page = program.getPageSize();
  Memory &memory = pools.getMemory();
  for (auto [i, entry] : enumerate(batch.entries))
    for (int64_t token = entry.context; token < entry.getKeys(); ++token) {
      int32_t id = batch.pages[batch.pageIndptr[i] + token / page];
      for (int64_t head = 0; head < program.getKVHeads(); ++head) {
        if (Error error = memory.write(
                pools.getRow(pools.getKeys(), id, token % page, head),
                getKeys(entry.request, token) + head * headBytes, headBytes))
          return error;
        if (Error error = memory.write(
                pools.getRow(pools.getValues(), id, token % page, head),
                getValues(entry.request, token) + head * headBytes, headBytes))
          return error;
      }
    }
  return Error::success();
}

Error KVSource::verify(const StepBatch &batch, unsigned index,
                       const Pools &pools) const {
  const BatchEntry &entry = batch.entries[index];
  int64_t page = program.getPageSize();
  ArrayRef<int32_t> pages =
      ArrayRef<int32_t>(batch.pages)
          .slice(batch.pageIndptr[index],
                 batch.pageIndptr[index + 1] - batch.pageIndptr[index]);
  if (Error error = pools.fetch(pages))
    return error;
  for (int64_t token = 0; token < entry.getKeys(); ++token) {
    int32_t id = pages[token / page];
    for (int64_t head = 0; head < program.getKVHeads(); ++head) {
      auto isEqual = [&](const HostTensor &pool, const char *wanted) {
        return std::memcmp(pools.getRow(pool, id, token % page, head),
                           wanted + head * headBytes, headBytes) == 0;
      };
      bool isKey = isEqual(pools.getHostKeys(), getKeys(entry.request, token));
      if (!isKey ||
          !isEqual(pools.getHostValues(), getValues(entry.request, token)))
        return createStringError(
            inconvertibleErrorCode(),
            formatv("step {0}: request {1}: the {2} of token {3}, head {4} in "
                    "slot {5} of page {6} is not what was appended",
                    batch.index, entry.request, isKey ? "value" : "key", token,
                    head, token % page, id));
    }
  }
  return Error::success();
}

} // namespace fi::replay
