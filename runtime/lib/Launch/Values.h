//===- Values.h - What a run is given --------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that are the same for every run, and values as parameter slots.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_VALUES_H
#define FI_RUNTIME_LAUNCH_VALUES_H

#include "../Planner/Plan.h"

#include <algorithm>

namespace fi::runtime {

/// Keeps a plan from being updated while a run looks at it.
class PlanUse {
public:
  ~PlanUse() {
    if (plan)
      plan->users.fetch_sub(1, std::memory_order_release);
  }
  /// Fails if the plan is being updated, is of another generation, or takes
  /// another number of values.
  fi_status begin(fi_plan *used, uint64_t generation, int32_t valueCount,
                  const fi_value *values, int32_t resultCount,
                  const fi_tensor *results);

private:
  fi_plan *plan = nullptr;
};

fi_status checkWorkspace(const PlanData &data, const void *workspace,
                         size_t bytes);

/// Checks values and results against what the plan was made for.
fi_status checkValues(const fi_plan &plan, const fi_value *values,
                      const fi_tensor *results);

/// Copies a few numbers: a call of memmove for each shape costs a run more than
/// all that it copies.
inline int64_t *copySizes(int64_t *to, const int64_t *from, int32_t rank) {
  static_assert(maxRank == 8, "a case for each rank");
  switch (rank) {
  case 8:
    to[7] = from[7];
    [[fallthrough]];
  case 7:
    to[6] = from[6];
    [[fallthrough]];
  case 6:
    to[5] = from[5];
    [[fallthrough]];
  case 5:
    to[4] = from[4];
    [[fallthrough]];
  case 4:
    to[3] = from[3];
    [[fallthrough]];
  case 3:
    to[2] = from[2];
    [[fallthrough]];
  case 2:
    to[1] = from[1];
    [[fallthrough]];
  case 1:
    to[0] = from[0];
  }
  return to + rank;
}

inline int64_t *writeTensor(int64_t *slot, const void *data, int32_t rank,
                            const int64_t *shape, const int64_t *strides) {
  *slot++ = int64_t(reinterpret_cast<intptr_t>(data));
  slot = copySizes(slot, shape, rank);
  return copySizes(slot, strides, rank);
}

inline int64_t *writeTensor(int64_t *slot, const fi_tensor &tensor) {
  if (tensor.strides)
    return writeTensor(slot, tensor.data, tensor.rank, tensor.shape,
                       tensor.strides);
  *slot++ = int64_t(reinterpret_cast<intptr_t>(tensor.data));
  slot = copySizes(slot, tensor.shape, tensor.rank);
  fillStrides(tensor, slot);
  return slot + tensor.rank;
}

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_VALUES_H
