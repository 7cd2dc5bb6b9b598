//===- RegisterModel.h - what a lane's registers hold -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers that code for a GPU has beside its tiles, for estimates before
// there is code. fi-tile-estimate-registers counts the tiles of a kernel;
// before there is one, those of an attention body follow from its schedule.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_REGISTERMODEL_H
#define FI_TARGET_REGISTERMODEL_H

#include "fi/Target/SMTable.h"
#include "llvm/Support/MathExtras.h"

namespace fi {

/// Of an index or a pointer.
constexpr int64_t kAddressRegisters = 2;
/// A thread's numbers, the bounds of loops, the numbers of slots, and addresses
/// of memory that code keeps.
constexpr int64_t kBaseRegisters = 36;
/// A block of 16 x 16 elements of 16 bits, while the next one is read.
constexpr int64_t kFragmentRegisters = 8;
/// A copy's pointer into each memory, an offset and a size.
constexpr int64_t kCopyRegisters = 3 * kAddressRegisters + 1;
/// Loads of a stream that are under way.
constexpr int64_t kStreamRegisters = 16;

/// Registers that a lane may have in a CTA of `threads`. They are given to a
/// warp by 256, so to a lane by 8.
inline int64_t getRegisterLimit(const sm::Target &chip, int64_t threads) {
  int64_t share = chip.registersPerSM / std::max<int64_t>(threads, 1) / 8 * 8;
  return std::min<int64_t>(chip.maxRegistersPerThread, share);
}

/// What a lane has in a kernel with warps that copy beside those that compute,
/// by eights, as setmaxnreg moves them: the former have few, the latter what is
/// left of those that a CTA is launched with, which are all that it can have.
struct RoleRegisters {
  int64_t copying, computing;
};
inline RoleRegisters getRoleRegisters(const sm::Target &chip, int64_t computing,
                                      int64_t copying) {
  constexpr int64_t lanes = 32, step = 8, most = 240, few = 32;
  auto down = [](int64_t number) { return number / step * step; };
  int64_t all = computing + copying;
  int64_t launched = down(chip.registersPerSM / (lanes * all)) * all;
  int64_t own = std::min(down((launched - few * copying) / computing), most);
  return {std::min(down((launched - own * computing) / copying), most), own};
}

/// An attention body for a GPU: rows of a warp, keys of a tile.
struct AttentionShape {
  int64_t rowsPerWarp, keys, keyDim, valueDim;
  /// Bytes of an element of keys.
  int64_t keyBytes;
  /// Threads that copy a tile of keys together.
  int64_t copyThreads;
  /// Keys of a page; 1 where they are not known.
  int64_t pageKeys = 1;
};

/// Entries of a page table that a thread keeps for a tile: one for each page,
/// or for each of its turns where it takes fewer.
inline int64_t countEntries(int64_t keys, int64_t pageKeys, int64_t turns) {
  return std::min<int64_t>(turns, llvm::divideCeil(keys, pageKeys));
}

/// About what fi-tile-estimate-registers will say of it.
inline int64_t estimateRegisters(const AttentionShape &shape) {
  constexpr int64_t lanes = 32, chunkBytes = 16, swizzled = 8;
  int64_t blocks = llvm::divideCeil(shape.rowsPerWarp, 16);
  // Accumulator and scores are f32; maximum, two sums and a factor per row.
  int64_t accumulator = blocks * 16 * llvm::alignTo(shape.valueDim, 8) / lanes;
  int64_t scores = blocks * 16 * llvm::alignTo(shape.keys, 8) / lanes;
  int64_t rows = blocks * 2 * 4;
  // The entries of the page table for a tile, and the cursor.
  int64_t chunks =
      shape.keys * llvm::divideCeil(shape.keyDim * shape.keyBytes, chunkBytes);
  int64_t turns = llvm::divideCeil(chunks, shape.copyThreads);
  int64_t ahead =
      countEntries(shape.keys, shape.pageKeys, turns) + 4 * kAddressRegisters;
  // The first product reads both its operands from shared memory.
  int64_t matrices = 2 * swizzled + (blocks + 1) * kFragmentRegisters;
  return kBaseRegisters + accumulator + scores + rows + ahead + matrices;
}

} // namespace fi

#endif // FI_TARGET_REGISTERMODEL_H
