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

inline int64_t *writeTensor(int64_t *slot, const void *data, int32_t rank,
                            const int64_t *shape, const int64_t *strides) {
  *slot++ = int64_t(reinterpret_cast<intptr_t>(data));
  slot = std::copy_n(shape, rank, slot);
  return std::copy_n(strides, rank, slot);
}

inline int64_t *writeTensor(int64_t *slot, const fi_tensor &tensor) {
  int64_t strides[maxRank];
  fillStrides(tensor, strides);
  return writeTensor(slot, tensor.data, tensor.rank, tensor.shape, strides);
}

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_VALUES_H
