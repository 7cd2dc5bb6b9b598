//===- LinearForm.h - integers of a mask, in normal form --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An integer of a mask is a sum of leaves with constant coefficients, in one
// order, so that different spellings of a bound become one. A leaf is a
// position, plan data, or an operation that is not linear.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_ANALYSIS_LINEARFORM_H
#define FI_LIB_ANALYSIS_LINEARFORM_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fi::mask {

struct Formula;
struct Leaf;

/// Wide enough that the ends of a sum of products of 64-bit numbers are exact.
__extension__ typedef __int128 Wide;

struct Interval {
  Wide least, most;
  bool within(Wide low, Wide high) const {
    return least >= low && most <= high;
  }
};

/// Requests are fewer, their rows and keys too; positions lie within this
/// distance of zero, plan data of 64 bits within that.
inline constexpr int64_t kMaxLength = (int64_t(1) << 29) - 1;
inline constexpr int64_t kMaxPosition = int64_t(1) << 61;
inline constexpr int64_t kMaxPlanData = int64_t(1) << 48;

struct Linear {
  /// Leaves in canonical order, coefficients other than 0.
  llvm::SmallVector<std::pair<const Leaf *, int64_t>, 4> terms;
  int64_t constant = 0;

  bool isConstant() const { return terms.empty(); }
  bool usesKey() const;
  /// Whether docs/abi.md has an expression for it.
  bool expressible() const;
};

struct Leaf {
  enum Kind {
    KeyPosition,
    QueryPosition,
    Request,
    QueryHead,
    KVHead,
    Scalar,   // an integer plan argument
    Load,     // name[operands]
    First,    // least k with name[operands..., k] >= last operand
    Size,     // last size of name
    Product,  // operand 0 * operand 1
    FloorDiv, // operand 0 / divisor, rounded down
    TruncDiv, // operand 0 / divisor, rounded to zero
    Mod,      // operand 0 - divisor * floordiv
    Min,
    Max,
    Select, // condition ? operand 0 : operand 1
    Unknown
  };
  Kind kind;
  std::string name;
  llvm::SmallVector<Linear, 2> operands;
  int64_t divisor = 0;
  const Formula *condition = nullptr;
  Interval range = {0, 0};
  bool usesKey = false;
  bool expressible = true;
  /// Load, First, Size: whether the tensor is sorted, its rank and its last
  /// size, if known, and whether 2^31 is above all of its elements.
  bool sorted = false, narrow = false;
  int64_t rank = 0;
  std::optional<int64_t> lastSize;
  /// Unknown: why, and where.
  std::string reason;
  std::optional<mlir::Location> loc;
  unsigned id = 0;
  /// Nesting of leaves.
  unsigned depth = 0;
};

/// A total order that depends on structure only (and, for what has none, on the
/// order of appearance in the region).
int compare(const Linear &a, const Linear &b);
int compare(const Leaf &a, const Leaf &b);

/// Null where 64 bits do not hold a coefficient.
std::optional<Linear> add(const Linear &a, const Linear &b, int64_t factor = 1);
std::optional<Linear> scale(const Linear &a, int64_t factor);
std::optional<Linear> addConstant(const Linear &a, int64_t constant);

Interval rangeOf(const Linear &a);
Linear constant(int64_t value);

/// The unknown leaf in `a`, at any depth, or null.
const Leaf *findUnknown(const Linear &a);

/// Makes leaves, each structure once. What grows too large becomes unknown.
class Leaves {
public:
  Linear unique(Leaf leaf);
  Linear unknown(std::optional<mlir::Location> loc, std::string reason,
                 Interval range, bool usesKey);
  /// Rounded division by a positive number.
  std::optional<Linear> floorDiv(const Linear &a, int64_t divisor);
  std::optional<Linear> ceilDiv(const Linear &a, int64_t divisor);
  std::optional<Linear> truncDiv(const Linear &a, int64_t divisor);
  std::optional<Linear> mod(const Linear &a, int64_t divisor);
  std::optional<Linear> minMax(bool min, const Linear &a, const Linear &b);
  Linear first(const Leaf &load, const Linear &value);
  Linear size(const Leaf &load);

private:
  std::vector<std::unique_ptr<Leaf>> leaves, unknowns;
};

/// The expression of docs/abi.md; `a` must be expressible.
mlir::ArrayAttr express(mlir::MLIRContext *context, const Linear &a);
mlir::ArrayAttr express(mlir::MLIRContext *context, llvm::StringRef op,
                        llvm::ArrayRef<mlir::Attribute> operands);
mlir::ArrayAttr expressConstant(mlir::MLIRContext *context, int64_t value);

} // namespace fi::mask

#endif // FI_LIB_ANALYSIS_LINEARFORM_H
