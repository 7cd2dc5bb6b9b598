//===- MaskBounds.h - Which keys a tile of rows may see --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Evaluates the manifest's mask bounds over a tile of query rows with interval
// arithmetic (signed 64 bits; what overflows is unknown, hence visited and
// tested), and cuts the keys into spans that are visited.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PLANNER_MASKBOUNDS_H
#define FI_RUNTIME_PLANNER_MASKBOUNDS_H

#include "Tables.h"

namespace fi::runtime {

struct Interval {
  int64_t least, most;
};

/// What the bounds of a mask can depend on, for one tile of rows.
struct TileContext {
  Interval position; // of the query rows
  Interval queryHead;
  Interval kvHead;
  int64_t request = 0;
  int64_t queryLength = 0;
  int64_t keyLength = 0;
  int64_t origin = 0;
};

/// Keys [begin, end) that are visited; `begin` is a multiple of the tile. Full:
/// every key is visible to every row and `end` is a multiple of the tile, too.
struct Span {
  int64_t begin, end;
  bool full;
};

class MaskBounds {
public:
  MaskBounds(const Mask &mask, const Table *tables)
      : mask(mask), tables(tables) {}

  /// Appends the visited spans of a tile of rows by rising keys. Spans do not
  /// share a tile of keys.
  void spans(const TileContext &context, int64_t tileKeys, Buffer<Span> &out);

  /// The interval of one expression.
  Interval evaluate(const TileContext &context, int32_t root) const;

private:
  Interval evaluateLoad(const TileContext &context, const Expression &e) const;
  void cut(int64_t keyLength, int64_t tileKeys, Buffer<Span> &out);

  const Mask &mask;
  const Table *tables;
  // Per term, in keys: some row may see it, every row sees it.
  struct Range {
    int64_t begin, end;
  };
  Buffer<Range> seen, full;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_PLANNER_MASKBOUNDS_H
