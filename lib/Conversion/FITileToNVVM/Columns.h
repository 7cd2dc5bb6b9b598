//===- Columns.h - integers that count columns ------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The position of a key, its distance from a row, the place of its bit in a
// packed mask: integers that grow by one from column to column. Of such a tile
// a lane computes the first element of each row; what differs in the others is
// known.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITILETONVVM_COLUMNS_H
#define FI_LIB_CONVERSION_FITILETONVVM_COLUMNS_H

#include "fi/Dialect/FITile/IR/Layouts.h"

namespace fi::tile {

/// For each row of a lane, its registers: the first one has the least column.
llvm::SmallVector<llvm::SmallVector<int64_t>>
registersByRow(const RegisterLayout &layout);

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITILETONVVM_COLUMNS_H
