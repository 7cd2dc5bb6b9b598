//===- Fuzzing.h - what a fuzz target tells its driver ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target is LLVMFuzzerTestOneInput, as libFuzzer calls it. It may say what
// came of an input: the driver of this directory, which sees no coverage, keeps
// inputs with outcomes that it has not seen, and changes them further.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_FUZZ_FUZZING_H
#define FI_TEST_FUZZ_FUZZING_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fi::fuzzing {

/// Of the input that is being tried; 0 where nothing was said.
inline uint64_t outcome = 0;

/// Says that a part of an input ended in this sentence. What is in quotes and
/// numbers belong to the input, not to the outcome.
inline void note(std::string_view sentence) {
  uint64_t hash = outcome ^ 0xcbf29ce484222325;
  bool isQuoted = false;
  for (char c : sentence) {
    if (c == '\'' || c == '"')
      isQuoted = !isQuoted;
    if (!isQuoted && ((c >= 'a' && c <= 'z') || c == ' '))
      hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  }
  outcome = hash ? hash : 1;
}

/// Ends the process: the input has shown a fault.
[[noreturn]] inline void fault(std::string_view sentence) {
  std::fprintf(stderr, "fault: %.*s\n", int(sentence.size()), sentence.data());
  std::abort();
}

} // namespace fi::fuzzing

#endif // FI_TEST_FUZZ_FUZZING_H
