//===- TensorMap.h - Descriptors of tensors for bulk copies -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the emulator puts into the 128 bytes of a tensor map. The hardware's
// form is not public, and a map is opaque to kernels.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_TENSORMAP_H
#define FI_EMULATOR_MACHINE_TENSORMAP_H

#include "fi-emulator/Emulator.h"

namespace fi::emulator {

struct TensorMap {
  static constexpr uint64_t theMagic = 0x70616d726f736e65ull;
  uint64_t magic;
  uint64_t address;
  uint64_t strides[4]; // bytes, of dimensions 1 to 4
  uint64_t dims[5];
  uint16_t box[5];
  uint8_t elementStrides[5];
  uint8_t type, rank, interleave, swizzle, fill;
  /// tensormap.replace was here: whether it is a map is seen when it is used.
  uint8_t replaced;
  uint32_t check;

  uint32_t checksum() const;
  bool valid() const { return magic == theMagic && check == checksum(); }
  /// Elements of a dimension of a box that are copied.
  uint32_t count(unsigned dim) const {
    return dim == 0
               ? box[0]
               : (box[dim] + elementStrides[dim] - 1u) / elementStrides[dim];
  }
  uint32_t elementBytes() const;
  /// What a copy moves, and an mbarrier counts.
  uint32_t boxBytes() const;
  /// From row to row of a box in shared memory: a row that is shorter than the
  /// span of the swizzle takes all of it.
  uint32_t rowPitch() const {
    return swizzle ? 16u << swizzle : box[0] * elementBytes();
  }
  /// Of shared memory, with what lies between the rows.
  uint32_t sharedBytes() const;
  /// The bits of an address that the swizzle changes.
  uint32_t swizzleBits() const {
    return swizzle ? (8u << swizzle) * 2 - 16 : 0;
  }
};
static_assert(sizeof(TensorMap) <= 128);

/// Whether a map may be; what is wrong otherwise.
bool checkTensorMap(const TensorMapConfig &config, std::string &error);
TensorMapConfig configOf(const TensorMap &map);
uint32_t tensorElementBytes(TensorMapConfig::Type type);

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_TENSORMAP_H
