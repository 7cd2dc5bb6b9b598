//===- Mutations.h - inputs made of other inputs ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Changes inputs by bytes, words, lines and pieces of other inputs. Words make
// text that a parser accepts more often than bytes do: a word takes the place
// of another of its kind.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_FUZZ_MUTATIONS_H
#define FI_TEST_FUZZ_MUTATIONS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace fi::fuzzing {

/// The same numbers on every machine (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// Below `count`, which is not 0.
  size_t below(size_t count) { return next() % count; }
  bool oneIn(size_t count) { return below(count) == 0; }

private:
  uint64_t state;
};

class Corpus {
public:
  void add(std::string input);
  size_t size() const { return inputs.size(); }
  const std::string &operator[](size_t i) const { return inputs[i]; }
  /// An input with some changes.
  std::string mutate(Random &random, size_t maxLength) const;

private:
  enum Kind { Number, Name, Other, kKinds };
  struct Word {
    size_t begin, end;
    Kind kind;
  };
  static std::vector<Word> split(std::string_view text);
  void changeBytes(std::string &text, Random &random) const;
  void changeWord(std::string &text, Random &random) const;
  void changeLines(std::string &text, Random &random) const;
  void join(std::string &text, Random &random) const;
  void repeat(std::string &text, Random &random) const;

  std::vector<std::string> inputs;
  std::vector<std::string> words[kKinds];
  std::unordered_set<std::string> known;
};

} // namespace fi::fuzzing

#endif // FI_TEST_FUZZ_MUTATIONS_H
