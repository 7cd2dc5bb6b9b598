//===- Choices.cpp - named decisions that make a random program -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Choices.h"
#include "fi/Support/Random.h"
#include "llvm/ADT/SmallString.h"
#include <algorithm>

using namespace fi;
using namespace fi::fuzz;

int64_t Choices::draw(llvm::StringRef name, int64_t count, int64_t in) {
  // The same question again has the same answer.
  for (const Made &one : made)
    if (one.name == name)
      return one.value;
  int64_t value = 0;
  if (auto it = given.find(name); it != given.end()) {
    value = std::min(std::max<int64_t>(it->second, 0), count - 1);
  } else if (seed && count > 1) {
    Random random(deriveSeed(*seed, name));
    if (in <= 0)
      value = random.below(count);
    else if (random.below(in) == 0)
      value = 1 + random.below(count - 1);
  }
  made.push_back({name.str(), value, count});
  return value;
}

int64_t Choices::choose(const llvm::Twine &name, int64_t count) {
  llvm::SmallString<32> text;
  return draw(name.toStringRef(text), count, 0);
}

int64_t Choices::rarely(const llvm::Twine &name, int64_t in, int64_t count) {
  llvm::SmallString<32> text;
  return draw(name.toStringRef(text), count, in);
}

Given Choices::getGiven() const {
  Given result;
  for (const Made &one : made)
    if (one.value)
      result[one.name] = one.value;
  return result;
}

std::string Choices::getText() const {
  std::string text;
  for (const Made &one : made)
    if (one.value)
      text += (text.empty() ? "" : ",") + one.name + "=" +
              std::to_string(one.value);
  return text;
}

bool fi::fuzz::parseGiven(llvm::StringRef text, Given &given) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, number] = part.split('=');
    int64_t value;
    if (name.empty() || number.getAsInteger(10, value) || value < 0)
      return false;
    given[name] = value;
  }
  return true;
}
