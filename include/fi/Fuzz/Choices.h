//===- Choices.h - named decisions that make a random program ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A random program is a function of choices: each has a name, a number of
// alternatives and a value, of which 0 is the simplest. Values are drawn by the
// seed and the name, so that a new choice changes no other; or they are given,
// and what is not given is 0. So a program comes again from its seed, and from
// what was chosen; and a reducer needs to know nothing but numbers.
//
//===----------------------------------------------------------------------===//

#ifndef FI_FUZZ_CHOICES_H
#define FI_FUZZ_CHOICES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fi::fuzz {

/// Values by name, what a program is reduced and written down as.
using Given = llvm::StringMap<int64_t>;

class Choices {
public:
  struct Made {
    std::string name;
    int64_t value, count;
  };

  /// Drawn by a seed, but for those that are given.
  explicit Choices(uint64_t seed, Given given = {})
      : seed(seed), given(std::move(given)) {}
  /// As given, and 0 otherwise.
  explicit Choices(Given given) : given(std::move(given)) {}

  /// One of `count` alternatives, all equally probable.
  int64_t choose(const llvm::Twine &name, int64_t count);
  /// 0, but one time in `in` something else of `count` alternatives.
  int64_t rarely(const llvm::Twine &name, int64_t in, int64_t count = 2);
  bool flag(const llvm::Twine &name, int64_t in = 2) {
    return rarely(name, in) != 0;
  }
  /// An element of a list that begins with the simplest. One that is there
  /// several times is more probable.
  template <typename T>
  T pick(const llvm::Twine &name, llvm::ArrayRef<T> from) {
    return from[choose(name, from.size())];
  }
  template <typename T, size_t N>
  T pick(const llvm::Twine &name, const T (&from)[N]) {
    return from[choose(name, N)];
  }

  /// What was asked, in order.
  llvm::ArrayRef<Made> getMade() const { return made; }
  /// The choices made that are not 0.
  Given getGiven() const;
  /// "a0.mask=2,requests=3": in the order in which they were made.
  std::string getText() const;

private:
  int64_t draw(llvm::StringRef name, int64_t count, int64_t in);

  std::optional<uint64_t> seed;
  Given given;
  std::vector<Made> made;
};

/// Parses what getText() gives; false if it is something else.
bool parseGiven(llvm::StringRef text, Given &given);

} // namespace fi::fuzz

#endif // FI_FUZZ_CHOICES_H
