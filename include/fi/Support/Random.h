//===- Random.h - seeded numbers, the same on every machine -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A generator that depends on its seed alone, which the distributions of the
// C++ library do not promise.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_RANDOM_H
#define FI_SUPPORT_RANDOM_H

#include "fi/Support/HostTensor.h"

namespace fi {

/// SplitMix64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// In [0, bound), for bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>(
        static_cast<unsigned __int128>(next()) * bound >> 64);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Mean 0, deviation 1.
  double normal();

private:
  uint64_t state;
  double spare = 0;
  bool hasSpare = false;
};

/// A seed for something with a name, so that values of one do not change when
/// another is added.
uint64_t deriveSeed(uint64_t seed, llvm::StringRef name);

/// Fills a contiguous tensor in memory order. Integer types get rounded values.
void fillNormal(const HostTensor &tensor, uint64_t seed, double mean = 0,
                double deviation = 1);
void fillUniform(const HostTensor &tensor, uint64_t seed, double low,
                 double high);
void fillConstant(const HostTensor &tensor, double value);

} // namespace fi

#endif // FI_SUPPORT_RANDOM_H
