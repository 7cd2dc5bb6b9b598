//===- TensorExpr.h - what an element of a tensor is ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One element of a tensor as an expression of elements of others, whatever ops
// have made it: named or generic ones of linalg, elementwise ones of arith and
// math, changes of shape. Expressions are expanded step by step, as far as who
// matches them looks.
//
// Elements are named by loops. An index is a row-major product of loops:
// dimensions that were collapsed have several, dimensions of size 1 none. Where
// a reshape cuts a loop, its parts take its place everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_LINALGTOFI_TENSOREXPR_H
#define FI_LIB_CONVERSION_LINALGTOFI_TENSOREXPR_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <deque>

namespace fi::raise {

using LoopIndex = llvm::SmallVector<int, 2>;
using Access = llvm::SmallVector<LoopIndex, 4>;

class Loops {
public:
  /// The index of a new loop; of none for size 1.
  LoopIndex make(int64_t size);
  int64_t getSize(int loop) const { return sizes[size_t(loop)]; }
  /// The index in loops that were not cut.
  LoopIndex resolve(llvm::ArrayRef<int> index) const;
  Access resolve(const Access &access) const;
  /// Takes an index apart into dimensions of these sizes, of which others than
  /// the first that is not 1 have to be known. Cuts loops where it must.
  std::optional<Access> split(llvm::ArrayRef<int> index,
                              llvm::ArrayRef<int64_t> dims);

private:
  llvm::SmallVector<int64_t> sizes;
  llvm::DenseMap<int, LoopIndex> parts;
};

struct Expr {
  enum class Kind {
    /// An element of `tensor` (which may be a scalar, too).
    Read,
    Constant,
    /// The value of `index`.
    Position,
    /// `op`, elementwise or of scalars, or linalg.softmax along `index`.
    Apply,
    /// `op` combines what the operand is for all values of `index`.
    Reduce
  };
  Kind kind;
  mlir::Value tensor;
  /// Of reads; and of all that a read was expanded to.
  Access access;
  mlir::TypedAttr constant;
  LoopIndex index;
  mlir::Operation *op = nullptr;
  llvm::SmallVector<Expr *, 3> operands;
  /// The op on tensors that it was found in.
  mlir::Operation *source = nullptr;

  bool isRead() const { return kind == Kind::Read; }
  template <typename... Ops> bool applies() const {
    return kind == Kind::Apply && llvm::isa<Ops...>(op);
  }
  /// Rounding or widening.
  bool isCast() const;
  /// The number that it is, if it is one.
  std::optional<double> getNumber() const;
  mlir::Type getType() const;

private:
  friend class ExprGraph;
  bool isTried = false;
  Expr *expansion = nullptr;
};

class ExprGraph {
public:
  Loops loops;

  Expr *read(mlir::Value tensor, Access access);
  Expr *apply(const Expr &like, llvm::ArrayRef<Expr *> operands);

  /// What a read is made from, one step; null if that is not understood.
  Expr *expand(Expr *read);
  /// Follows reads: to what is computed, or to a read of what is not
  /// understood.
  Expr *peek(Expr *expr);
  /// The same through casts.
  Expr *strip(Expr *expr);
  /// Whether two expressions are the same, with loops of `a` for ones of `b`,
  /// and but for casts.
  bool areEqual(Expr *a, Expr *b, llvm::DenseMap<int, int> loopsOfB) {
    unsigned steps = 0;
    return areEqual(a, b, loopsOfB, steps);
  }

  /// Ops that were looked into.
  llvm::DenseSet<mlir::Operation *> seen;

private:
  bool areEqual(Expr *a, Expr *b, llvm::DenseMap<int, int> &loopsOfB,
                unsigned &steps);
  Expr *make(Expr::Kind kind, mlir::Operation *source);
  Expr *expandLinalg(mlir::linalg::LinalgOp op, mlir::OpResult result,
                     const Access &access);
  Expr *expandReshape(mlir::Operation *op, const Access &access);
  Expr *expandAny(mlir::OpResult result, const Access &access);

  std::deque<Expr> exprs;
};

} // namespace fi::raise

#endif // FI_LIB_CONVERSION_LINALGTOFI_TENSOREXPR_H
