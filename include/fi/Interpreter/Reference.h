//===- Reference.h - the reference interpreter ------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executes a level 1 program on host memory, in double, as docs/spec.md says
// and as plainly as possible. Its positions, addresses, masks and sums are its
// own: nothing here is shared with what the compiler generates, so that each
// can be tested against the other.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INTERPRETER_REFERENCE_H
#define FI_INTERPRETER_REFERENCE_H

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <utility>
#include <vector>

namespace fi {

/// An argument of a program. Tensors share their memory with the interpreter,
/// which writes to arguments of memref type only.
class HostValue {
public:
  enum class Kind { Tensor, Float, Integer };

  HostValue(HostTensor tensor)
      : kind(Kind::Tensor), tensor(std::move(tensor)) {}
  static HostValue number(double value) {
    HostValue result(Kind::Float);
    result.real = value;
    return result;
  }
  static HostValue integer(int64_t value) {
    HostValue result(Kind::Integer);
    result.whole = value;
    return result;
  }

  Kind getKind() const { return kind; }
  const HostTensor &getTensor() const { return tensor; }
  double getNumber() const { return real; }
  int64_t getInteger() const { return whole; }

private:
  explicit HostValue(Kind kind) : kind(kind) {}

  Kind kind;
  HostTensor tensor;
  double real = 0;
  int64_t whole = 0;
};

/// A row of the query and a query head.
using RowAndHead = std::pair<int64_t, int64_t>;

/// The query of an attention and its last columns, where a program computes
/// them: what they are, and by how much each element may be off, of f64.
/// Without elements where they are arguments, or exact.
struct ComputedQuery {
  HostTensor values[2], errors[2];
};

struct ReferenceOptions {
  /// Cuts the keys of every attention that may be split before these key
  /// indices (rising), and merges the pieces. With fi.segments it takes the
  /// place of the op's own cut. The result is the same but for rounding in
  /// double.
  std::vector<int64_t> forceSegments;

  /// Evaluate only these rows and heads. All others hold NaN in results and
  /// states, and are left as they are in `outs`.
  std::optional<std::vector<RowAndHead>> onlyRows;

  /// Receives, for each fi.attention in program order, [rows, heads] of i64:
  /// how many keys the row sees; -1 where `onlyRows` leaves it out.
  std::vector<HostTensor> *visibleKeys = nullptr;

  /// Receives, for each fi.attention in program order, [rows, heads] of f64:
  /// the largest |scale| |q| |k| of the row and a visible key, both as
  /// transforms made them, which rounding errors are relative to. No elements
  /// without transforms.
  std::vector<HostTensor> *transformedScores = nullptr;

  /// Receives, for each fi.attention in program order, [rows, heads, 2] of f64:
  /// the largest, over the elements of the output, sum of |weight v| and sum of
  /// squares of weight v, which rounding errors are relative to. No elements
  /// where weights are normalised.
  std::vector<HostTensor> *weightedSums = nullptr;

  /// Receives, for each fi.attention in program order, its query.
  std::vector<ComputedQuery> *queries = nullptr;

  /// Receives, for each result of the program, NUM13's bound on the difference
  /// of each element, of the result's shape and of f64; no elements where the
  /// result is none of a companion.
  std::vector<HostTensor> *tolerances = nullptr;
  /// The same of each argument, for what appends store that they transform.
  std::vector<HostTensor> *argumentTolerances = nullptr;
};

/// Executes `program` on `arguments` (in program order) and gives a tensor for
/// each result, rounded once to its element type. A batch that breaks a rule of
/// docs/spec.md is an error that says operand, what came and what is allowed.
llvm::Expected<std::vector<HostTensor>>
interpretProgram(ProgramOp program, llvm::ArrayRef<HostValue> arguments,
                 const ReferenceOptions &options = {});

} // namespace fi

#endif // FI_INTERPRETER_REFERENCE_H
