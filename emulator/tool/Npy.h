//===- Npy.h - NumPy's array files, without LLVM ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The emulator is without LLVM, so it cannot use fi/Support/Npy.h. Bytes and a
// description are all that a kernel's argument needs.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_TOOL_NPY_H
#define FI_EMULATOR_TOOL_NPY_H

#include <cstdint>
#include <string>
#include <vector>

namespace fi::emulator {

struct NpyArray {
  /// "<f4", "<u2"...
  std::string descr;
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Reads a file; C order, little endian. False and a sentence on failure.
bool readNpy(const std::string &path, NpyArray &array, std::string &error);
bool writeNpy(const std::string &path, const NpyArray &array,
              std::string &error);
/// Bytes of an element of a descr; 0 if unknown.
uint64_t elementBytes(const std::string &descr);
/// The descr of f32, f16, bf16, i32...; empty if unknown.
std::string descrOf(const std::string &type);

} // namespace fi::emulator

#endif // FI_EMULATOR_TOOL_NPY_H
