//===- Capacity.h - What a graph-safe plan may grow to ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that were captured in a graph hold addresses, sizes and grids. A
// graph-safe plan keeps all of them from its first batch on: it settles then
// how many requests, rows and table entries a batch may have, derives from it
// the most items, states and key ranges that any such batch can need, and
// refuses batches that exceed what was settled. docs/planner.md has the rules.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PLANNER_CAPACITY_H
#define FI_RUNTIME_PLANNER_CAPACITY_H

#include "Tables.h"

#include <vector>

namespace fi::runtime {

struct Workers;

/// Of one launch of a body, and of the launch that merges its states.
struct BodyCapacity {
  int64_t items = 0, slots = 0, merges = 0;
};

struct StageCapacity {
  int64_t requests = 0;
  int64_t requestRows = 0; // of one request
  int64_t rows = 0;
  int64_t entries = 0; // of a page table; ragged: keys of the pool
  int64_t width = 0;   // dense tables: entries of a row
  int64_t ranges = 0;
  int32_t padBody = none; // that writes rows of no request
  std::vector<BodyCapacity> bodies;
};

class Capacities {
public:
  /// As the options state them; 0: as the first batch has.
  int64_t statedRequests = 0, statedRequestRows = 0, statedPages = 0;

  /// From now on batches are checked against what was settled.
  void settle() { settled = true; }
  bool isSettled() const { return settled; }

  /// Settles a stage's capacities from the first batch, or checks a batch
  /// against them. `poolKeys`: of a ragged view, where they are known.
  fi_status admit(const Manifest &manifest, size_t index, const Table *tables,
                  const RowLengths &rows, const ViewLengths &view,
                  int64_t totalRows, int64_t poolKeys, const Workers &workers,
                  SplitPolicy policy);
  const StageCapacity &of(size_t stage) const { return stages[stage]; }

  /// The same for the scalar of a plan that is part of launches.
  fi_status admitScalar(const Manifest &manifest, int32_t argument,
                        int64_t value);
  /// The same for the sizes of a table that kernels read: `sizes` are what the
  /// batch needs, and become those that are kept for good.
  fi_status admitTable(const Manifest &manifest, int32_t argument, int32_t rank,
                       int64_t *sizes);

private:
  fi_status settleItems(const Stage &stage, const Workers &workers,
                        int32_t index, const ViewLengths &view,
                        SplitPolicy policy, StageCapacity &c) const;

  struct Frozen {
    int64_t scalar = 0;
    int64_t sizes[maxRank] = {};
  };
  bool settled = false;
  std::vector<StageCapacity> stages;
  std::vector<Frozen> frozen; // per argument
};

/// Kernels of a graph-safe plan must pass over surplus items, and may not write
/// time stamps.
fi_status checkGraphKernels(const Manifest &manifest);

} // namespace fi::runtime

#endif // FI_RUNTIME_PLANNER_CAPACITY_H
