//===- SharedModel.h - what buffers take of shared memory -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How rows lie in shared memory, for the layouts of buffers, for
// fi-tile-allocate, and for the choice of schedules, which asks before there
// are buffers.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_SHAREDMODEL_H
#define FI_TARGET_SHAREDMODEL_H

#include "llvm/Support/MathExtras.h"

namespace fi {

/// Channels begin at multiples of it: a swizzle repeats every 8 rows of 128
/// bytes.
constexpr int64_t kSharedAlignment = 1024;
/// A word through which one thread tells the others.
constexpr int64_t kSharedFlagBytes = 16;

/// Bytes from a row of `columns` elements to the next: 16 columns are read at
/// once, and rows that are not swizzled are an odd number of 16 bytes apart.
inline int64_t getSharedPitch(int64_t columns, int64_t bits) {
  constexpr int64_t chunkBytes = 16, swizzled = 8;
  int64_t chunks =
      llvm::divideCeil(llvm::alignTo(columns, 16) * bits / 8, chunkBytes);
  return (chunks % swizzled == 0 ? chunks : chunks | 1) * chunkBytes;
}

/// Bytes of a channel with all its slots.
inline int64_t getSharedChannelBytes(int64_t rows, int64_t pitch,
                                     int64_t slots) {
  return llvm::alignTo(rows * pitch * slots, kSharedAlignment);
}

} // namespace fi

#endif // FI_TARGET_SHAREDMODEL_H
