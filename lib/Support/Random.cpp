//===- Random.cpp - seeded numbers, the same on every machine -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Random.h"
#include <cmath>

using namespace fi;

double Random::normal() {
  if (hasSpare) {
    hasSpare = false;
    return spare;
  }
  // Box and Muller's transform; 1 - u is never 0.
  double radius = std::sqrt(-2 * std::log(1 - uniform()));
  double angle = 2 * 3.14159265358979323846 * uniform();
  spare = radius * std::sin(angle);
  hasSpare = true;
  return radius * std::cos(angle);
}

uint64_t fi::deriveSeed(uint64_t seed, llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return Random(seed ^ hash).next();
}

template <typename Next> static void fill(const HostTensor &tensor, Next next) {
  char *data = static_cast<char *>(tensor.getData());
  int64_t bytes = getByteSize(tensor.getType());
  bool isFloating = isFloat(tensor.getType());
  for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i)
    if (double value = next(); isFloating)
      writeFloat(data + i * bytes, tensor.getType(), value);
    else
      writeInteger(data + i * bytes, tensor.getType(), std::llround(value));
}

void fi::fillNormal(const HostTensor &tensor, uint64_t seed, double mean,
                    double deviation) {
  Random random(seed);
  fill(tensor, [&] { return mean + deviation * random.normal(); });
}

void fi::fillUniform(const HostTensor &tensor, uint64_t seed, double low,
                     double high) {
  Random random(seed);
  fill(tensor, [&] { return low + (high - low) * random.uniform(); });
}

void fi::fillConstant(const HostTensor &tensor, double value) {
  fill(tensor, [&] { return value; });
}
