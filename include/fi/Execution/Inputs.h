//===- Inputs.h - arguments of a program from a batch -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every argument of a program a value: from the command line, from the
// batch's description, as a table made from the lengths of requests, or seeded
// random numbers whose shape follows from the tables.
//
//===----------------------------------------------------------------------===//

#ifndef FI_EXECUTION_INPUTS_H
#define FI_EXECUTION_INPUTS_H

#include "fi/Execution/Signature.h"
#include "fi/Interpreter/Reference.h"
#include "fi/Support/Batch.h"
#include "fi/Support/Npy.h"

namespace fi {

struct InputOptions {
  uint64_t seed = 1;
  /// Fills slots of made pools that no request uses with NaN: nothing may read
  /// them.
  bool nanUnused = true;
  /// Values that take precedence over the batch's, by the argument's name.
  std::vector<NamedTensor> tensors;
};

/// One value an argument, in program order.
llvm::Expected<std::vector<HostValue>> makeInputs(const Signature &signature,
                                                  const Batch &batch,
                                                  const InputOptions &options);

/// A value whose tensor has memory of its own, as pools need that a run writes.
HostValue cloneValue(const HostValue &value);

/// Lengths of the requests that an attention sees, as its tables say. Reads
/// tables that contradict each other as far as they go; executing them is an
/// error.
std::vector<RequestLengths> getRequestLengths(const AttentionInfo &attention,
                                              llvm::ArrayRef<HostValue> values);

/// First row of each request, and the end of the last.
std::vector<int64_t> getRowOffsets(const AttentionInfo &attention,
                                   llvm::ArrayRef<HostValue> values);

} // namespace fi

#endif // FI_EXECUTION_INPUTS_H
