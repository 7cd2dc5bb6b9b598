//===- GPUVariants.h - ways of attending that GPUs are tested with -*- C++ -*-//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes of an attention's text, by name: views, head dims, masks and scores.
// Kernels of every kind of schedule are held to the same ones.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_INTEGRATION_GPUVARIANTS_H
#define FI_TEST_INTEGRATION_GPUVARIANTS_H

#include "IntegrationTesting.h"

namespace fi::test {

struct Variant {
  std::string name;
  std::function<void(AttentionText &)> change;
};
void PrintTo(const Variant &variant, std::ostream *os);
std::string nameOf(const testing::TestParamInfo<Variant> &info);

/// Views, and what else is of operands and results; `more` of them behind.
std::vector<Variant> viewVariants(std::vector<Variant> more);

/// One KV head of these dims: "d64", "d192_128".
Variant dimVariant(int64_t key, int64_t value);

/// Masks, scores and normalisers before `schedules`.
std::vector<Variant> clauseVariants(const std::string &schedules);

/// Checks regions that capture slopes of heads, and a prefix of each request
/// that all rows see.
void checkCaptures(AttentionText text, const std::string &schedules,
                   Case::Maker maker);

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_GPUVARIANTS_H
