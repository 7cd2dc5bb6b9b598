//===- KernelCases.h - Kernels with inputs and expected results -*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One list of launches for the emulator's test and for a GPU: fi-emu-cases
// writes inputs and the emulator's outputs, check_on_gpu.py runs the same PTX
// there.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_EMULATOR_KERNELCASES_H
#define FI_TEST_EMULATOR_KERNELCASES_H

#include "fi-emulator/Emulator.h"
#include <functional>
#include <string>
#include <vector>

namespace fi::emulator::test {

using Words = std::vector<uint32_t>;

struct KernelArgument {
  bool isBuffer = true;
  bool isOutput = false;
  uint32_t scalar = 0;
  /// Contents before the launch.
  Words words;
  /// A buffer that tensor maps alone know: no parameter. Behind the parameters.
  bool isHidden = false;
  /// A tensor map over the buffer that is argument `of`, `offset` bytes on.
  bool isMap = false;
  TensorMapConfig map = {};
  size_t of = 0;
  uint64_t offset = 0;
};

struct KernelCase {
  std::string module; // basic: basic.ptx
  std::string kernel;
  /// Of several cases of one kernel; the kernel's name if empty.
  std::string label;
  Dim3 grid, block;
  uint32_t shared = 0;
  std::vector<KernelArgument> arguments;
  /// What the last output buffer must hold.
  Words expected;
  /// 0: bit for bit. Otherwise floats, relative to the largest expected value.
  float tolerance = 0;
  /// Emulator and GPU agree bit for bit (no approximations, no tensor cores on
  /// floats).
  bool exactOnGpu = true;
  /// The device that it needs: sm_80 and later, or sm_90a alone.
  std::string target = "sm_80";

  const std::string &name() const { return label.empty() ? kernel : label; }
};

const std::vector<KernelCase> &kernelCases();
/// The text of a module of the tests.
const std::string &moduleText(const std::string &name);

/// Launches a case; outputs are in its arguments afterwards.
LaunchResult runCase(Device &device, KernelCase &c, std::string_view ptx = {});

std::vector<KernelCase> basicCases();
std::vector<KernelCase> matrixCases();
std::vector<KernelCase> numericCases();
std::vector<KernelCase> tmaCases();
std::vector<KernelCase> wgmmaCases();

/// The same numbers everywhere.
class Numbers {
public:
  explicit Numbers(uint64_t seed) : state(seed) {}
  uint32_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return uint32_t((z ^ (z >> 31)) >> 16);
  }
  Words words(size_t n) {
    Words w(n);
    for (uint32_t &v : w)
      v = next();
    return w;
  }
  /// In (-1, 1), with few bits.
  float small() { return float(int32_t(next() % 255) - 127) / 128.0f; }

private:
  uint64_t state;
};

inline KernelArgument input(Words words) {
  KernelArgument a;
  a.words = std::move(words);
  return a;
}
inline KernelArgument output(size_t n, uint32_t fill = 0) {
  KernelArgument a;
  a.isOutput = true;
  a.words.assign(n, fill);
  return a;
}
inline KernelArgument hidden(KernelArgument a) {
  a.isHidden = true;
  return a;
}
inline KernelArgument tensorMap(const TensorMapConfig &map, size_t of,
                                uint64_t offset = 0) {
  KernelArgument a;
  a.isBuffer = false;
  a.isMap = true;
  a.map = map;
  a.of = of;
  a.offset = offset;
  return a;
}
inline KernelArgument scalar(uint32_t v) {
  KernelArgument a;
  a.isBuffer = false;
  a.scalar = v;
  return a;
}

} // namespace fi::emulator::test

#endif // FI_TEST_EMULATOR_KERNELCASES_H
