//===- Chip.h - Which chips run a chip's code ------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names of chips, as manifests have them.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_DEVICE_CHIP_H
#define FI_RUNTIME_DEVICE_CHIP_H

#include "fi-runtime/fi_driver.h"

#include <cstdio>
#include <string>
#include <tuple>

namespace fi::runtime {

/// The number and the letter of sm_90a; the manifest has been checked.
struct Chip {
  int major = 0, minor = 0;
  char letter = 0;

  explicit Chip(const std::string &name) {
    int number = 0, end = 0;
    std::sscanf(name.c_str(), "sm_%d%n", &number, &end);
    major = number / 10;
    minor = number % 10;
    letter = size_t(end) < name.size() ? name[end] : 0;
  }

  /// Machine code for a chip runs on it and on later ones of its family; with
  /// an `a` on it alone.
  bool machineCodeRunsOn(const fi_driver_device &info) const {
    return info.compute_major == major &&
           (letter == 'a' ? info.compute_minor == minor
                          : info.compute_minor >= minor);
  }
  /// PTX is assembled for every later chip, unless a letter binds it.
  bool textRunsOn(const fi_driver_device &info) const {
    if (letter)
      return machineCodeRunsOn(info);
    return info.compute_major > major ||
           (info.compute_major == major && info.compute_minor >= minor);
  }
};

/// Whether code for one chip is to be preferred where both run: that of the
/// later chip, and what is for it alone.
inline bool isBetterChip(const std::string &a, const std::string &b) {
  Chip x(a), y(b);
  return std::tuple(x.major, x.minor, x.letter == 'a', x.letter) >
         std::tuple(y.major, y.minor, y.letter == 'a', y.letter);
}

} // namespace fi::runtime

#endif // FI_RUNTIME_DEVICE_CHIP_H
