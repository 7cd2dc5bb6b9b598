//===- Mutations.cpp - inputs made of other inputs ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include <algorithm>
#include <cctype>

using namespace fi::fuzzing;

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Where sizes and types end, and what numbers may hold.
static const char *const kNumbers[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "7",
                                       "8",
                                       "15",
                                       "16",
                                       "17",
                                       "32",
                                       "64",
                                       "100",
                                       "128",
                                       "256",
                                       "511",
                                       "512",
                                       "513",
                                       "1024",
                                       "4096",
                                       "65536",
                                       "1048576",
                                       "2147483647",
                                       "2147483648",
                                       "4294967296",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "18446744073709551616",
                                       "-1",
                                       "-2147483648",
                                       "-9223372036854775808",
                                       "0.0",
                                       "-0.0",
                                       "1.0",
                                       "1.0e38",
                                       "1.0e-45",
                                       "1.0e400",
                                       "0x7FC00000",
                                       "0xFF800000"};

std::vector<Corpus::Word> Corpus::split(std::string_view text) {
  std::vector<Word> found;
  auto isName = [](char c) {
    return std::isalpha(uint8_t(c)) || c == '_' || c == '.' || c == '$' ||
           c == '%' || c == '#' || c == '!' || c == '@' || c == '^';
  };
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    char c = text[at++];
    if (std::isspace(uint8_t(c)))
      continue;
    Kind kind = Other;
    if (std::isdigit(uint8_t(c)) ||
        (c == '-' && at < text.size() && std::isdigit(uint8_t(text[at])))) {
      kind = Number;
      while (at < text.size() &&
             (std::isdigit(uint8_t(text[at])) || text[at] == '.'))
        ++at;
    } else if (isName(c)) {
      kind = Name;
      while (at < text.size() &&
             (isName(text[at]) || std::isdigit(uint8_t(text[at]))))
        ++at;
    }
    found.push_back({begin, at, kind});
  }
  return found;
}

void Corpus::add(std::string input) {
  for (const Word &word : split(input)) {
    std::string text = input.substr(word.begin, word.end - word.begin);
    if (text.size() <= 64 && known.insert(text).second)
      words[word.kind].push_back(std::move(text));
  }
  inputs.push_back(std::move(input));
}

void Corpus::changeBytes(std::string &text, Random &random) const {
  size_t at = random.below(text.size() + 1);
  switch (random.below(4)) {
  case 0:
    if (at < text.size())
      text[at] ^= char(1 << random.below(8));
    return;
  case 1:
    text.insert(at, 1 + random.below(8), char(random.next()));
    return;
  case 2:
    text.erase(at, 1 + random.below(16));
    return;
  default:
    if (at < text.size())
      text[at] = char(random.next());
  }
}

void Corpus::changeWord(std::string &text, Random &random) const {
  std::vector<Word> found = split(text);
  if (found.empty())
    return changeBytes(text, random);
  Word word = found[random.below(found.size())];
  // Sizes are what programs depend on most.
  if (word.kind != Number && random.oneIn(2))
    for (int tries = 0; tries < 8 && word.kind != Number; ++tries)
      word = found[random.below(found.size())];
  size_t length = word.end - word.begin;
  size_t choice = random.below(8);
  if (choice == 0) {
    text.erase(word.begin, length);
  } else if (choice == 1) {
    text.insert(word.end, " " + text.substr(word.begin, length));
  } else if (choice == 2) {
    const Word &other = found[random.below(found.size())];
    text.replace(word.begin, length,
                 std::string(text, other.begin, other.end - other.begin));
  } else if (word.kind == Number && choice < 6) {
    text.replace(word.begin, length,
                 kNumbers[random.below(std::size(kNumbers))]);
  } else {
    const std::vector<std::string> &kind = words[word.kind];
    if (!kind.empty())
      text.replace(word.begin, length, kind[random.below(kind.size())]);
  }
}

/// From the begin of a line to the begin of another behind it.
static std::pair<size_t, size_t> pickLines(const std::string &text,
                                           Random &random, size_t most) {
  size_t begin = random.below(text.size() + 1);
  begin = begin ? text.rfind('\n', begin - 1) + 1 : 0;
  size_t end = begin;
  for (size_t count = 1 + random.below(most); count > 0; --count) {
    end = text.find('\n', end);
    if (end == std::string::npos)
      return {begin, text.size()};
    ++end;
  }
  return {begin, end};
}

void Corpus::changeLines(std::string &text, Random &random) const {
  auto [begin, end] = pickLines(text, random, 3);
  switch (random.below(4)) {
  case 0:
    text.erase(begin, end - begin);
    return;
  case 1:
    text.insert(end, text.substr(begin, end - begin));
    return;
  case 2: {
    std::string moved = text.substr(begin, end - begin);
    text.erase(begin, end - begin);
    text.insert(pickLines(text, random, 1).first, moved);
    return;
  }
  default:
    const std::string &other = inputs[random.below(inputs.size())];
    auto [from, to] = pickLines(other, random, 4);
    text.insert(begin, other.substr(from, to - from));
  }
}

void Corpus::join(std::string &text, Random &random) const {
  const std::string &other = inputs[random.below(inputs.size())];
  text.resize(pickLines(text, random, 1).first);
  text += other.substr(pickLines(other, random, 1).first);
}

void Corpus::repeat(std::string &text, Random &random) const {
  if (text.empty())
    return;
  size_t begin = random.below(text.size());
  std::string piece =
      text.substr(begin, 1 + random.below(random.oneIn(2) ? 4 : 40));
  std::string all;
  size_t count = size_t(1) << random.below(14);
  for (size_t i = 0; i < count; ++i)
    all += piece;
  text.insert(begin, all);
}

std::string Corpus::mutate(Random &random, size_t maxLength) const {
  std::string text = inputs[random.below(inputs.size())];
  do {
    size_t choice = random.below(32);
    if (choice < 5)
      changeBytes(text, random);
    else if (choice < 23)
      changeWord(text, random);
    else if (choice < 29)
      changeLines(text, random);
    else if (choice < 31)
      join(text, random);
    else
      repeat(text, random);
  } while (!random.oneIn(2));
  if (text.size() > maxLength)
    text.resize(maxLength);
  return text;
}
