//===- MatchAttention.h - softmax(Q K^T) V in tensor code -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_LINALGTOFI_MATCHATTENTION_H
#define FI_LIB_CONVERSION_LINALGTOFI_MATCHATTENTION_H

#include "TensorExpr.h"

namespace fi::raise {

/// What was found, in loops.
struct Attention {
  mlir::OpResult result;
  Access resultAccess;
  /// Reads of tensors.
  Expr *query = nullptr, *key = nullptr, *value = nullptr;
  /// Each of these is empty where its size is 1. Rows of a request, keys,
  /// columns of queries and keys, columns of values.
  LoopIndex row, keys, dim, valueDim;
  /// The batch; heads that keys have; heads that share keys, within these.
  LoopIndex request, heads, group;
  double scale = 1;
  /// What scores are, from the product on, which is `product`; the same where
  /// nothing is done with it. Then multiplied by `postScale`.
  Expr *score = nullptr, *product = nullptr;
  double postScale = 1;
  /// What has to be true, or false, of visible keys.
  llvm::SmallVector<std::pair<Expr *, bool>, 2> masks;
};

/// Looks at what makes `result`. Not attention: null, and `why` is empty.
/// Nearly: null, and `why` says what is in the way.
std::optional<Attention> matchAttention(ExprGraph &graph, mlir::OpResult result,
                                        std::string &why);

} // namespace fi::raise

#endif // FI_LIB_CONVERSION_LINALGTOFI_MATCHATTENTION_H
