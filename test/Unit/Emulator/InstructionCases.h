//===- InstructionCases.h - Statements with their results -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_EMULATOR_INSTRUCTIONCASES_H
#define FI_TEST_EMULATOR_INSTRUCTIONCASES_H

#include <cstddef>
#include <cstdint>

namespace fi::emulator::test {

/// `code` ends with # and the letter of its result.
struct InstructionCase {
  const char *code;
  uint64_t expected;
  uint32_t lane = 0;
};
extern const InstructionCase instructionCases[];
extern const size_t instructionCaseCount;
/// For sm_90a, most of them statements of lane 0 alone.
extern const InstructionCase hopperCases[];
extern const size_t hopperCaseCount;

} // namespace fi::emulator::test

#endif // FI_TEST_EMULATOR_INSTRUCTIONCASES_H
