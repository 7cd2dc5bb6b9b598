//===- Reduce.cpp - the smallest program that still fails -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Knows choices alone: a simpler program is one with smaller numbers, with
// fewer elements of a list, or with an operand in the place of its operation.
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Check.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace fi;
using namespace fi::fuzz;
using llvm::StringRef;

namespace {

class Reducer {
public:
  Reducer(Given start, Family family,
          llvm::function_ref<bool(const RandomProgram &)> isBad, int64_t limit)
      : best(std::move(start)), family(family), isBad(isBad), limit(limit) {}

  Given reduce();

private:
  /// Keeps a candidate if it is as bad.
  bool attempt(const Given &candidate);
  bool set(StringRef name, int64_t value) {
    Given candidate = best;
    if (value)
      candidate[name] = value;
    else
      candidate.erase(name);
    return attempt(candidate);
  }
  bool dropScopes();
  bool dropElements();
  bool promoteOperands();
  bool simplifyValues();
  /// The choices of the best program that are not 0, in the order in which they
  /// are asked for.
  std::vector<Choices::Made> getMade() {
    Choices choices(best);
    makeProgram(choices, family);
    std::vector<Choices::Made> made;
    for (const Choices::Made &one : choices.getMade())
      if (one.value)
        made.push_back(one);
    return made;
  }

  Given best;
  Family family;
  llvm::function_ref<bool(const RandomProgram &)> isBad;
  int64_t limit;
  llvm::StringSet<> tried;
};

bool Reducer::attempt(const Given &candidate) {
  Choices choices(candidate);
  RandomProgram program = makeProgram(choices, family);
  // Another program, and none that was tried before.
  if (limit <= 0 || !tried.insert(choices.getText()).second)
    return false;
  --limit;
  if (!isBad(program))
    return false;
  best = choices.getGiven();
  return true;
}

/// Makes a program of one attention of those that it has: "a1.mask" becomes
/// "mask" of the simplest program.
bool Reducer::dropScopes() {
  for (const char *scope : {"a0.", "a1.", "a2."}) {
    Given candidate;
    bool isThere = false;
    for (const auto &[name, value] : best) {
      StringRef rest = name;
      if (rest.consume_front(scope)) {
        candidate[rest] = value;
        isThere = true;
      } else if (name != "program" &&
                 !(name.size() > 2 && name[0] == 'a' &&
                   llvm::isDigit(name[1]) && name[2] == '.')) {
        candidate.try_emplace(name, value);
      }
    }
    if (isThere && attempt(candidate))
      return true;
  }
  return false;
}

/// Takes elements out of lists: those behind move up, and the count falls.
bool Reducer::dropElements() {
  bool changed = false;
  llvm::StringSet<> lists;
  for (const Choices::Made &one : getMade()) {
    StringRef list = StringRef(one.name).split('[').first;
    if (list.size() == one.name.size() || !lists.insert(list).second)
      continue;
    std::string count = list.str() + ".count";
    auto at = best.find(count);
    int64_t size = at == best.end() ? 0 : at->second;
    for (int64_t drop = size; drop >= 0 && size > 0; --drop) {
      Given candidate;
      for (const auto &[name, value] : best) {
        StringRef rest = name;
        int64_t index;
        if (!rest.consume_front(list) || !rest.consume_front("[") ||
            rest.consumeInteger(10, index) || index < drop) {
          candidate[name] = value;
          continue;
        }
        if (index > drop)
          candidate[(list + "[" + llvm::Twine(index - 1) + rest).str()] = value;
      }
      candidate[count] = size - 1;
      if (attempt(candidate)) {
        changed = true;
        --size;
      }
    }
  }
  return changed;
}

/// Puts an operand, "path/1/...", in the place of its operation, "path/...".
bool Reducer::promoteOperands() {
  bool changed = false;
  for (const Choices::Made &one : getMade()) {
    auto [path, last] = StringRef(one.name).rsplit('/');
    if (last != "op" && last != "test" && last != "real")
      continue;
    for (char operand : {'0', '1', '2'}) {
      std::string from = (path + "/" + llvm::Twine(operand)).str();
      Given candidate;
      bool isThere = false;
      for (const auto &[name, value] : best) {
        StringRef rest = name;
        if (rest.consume_front(from) &&
            (rest.starts_with("/") || rest.starts_with("."))) {
          candidate[(path + rest).str()] = value;
          isThere = true;
        } else if (!name.starts_with((path + "/").str())) {
          candidate[name] = value;
        }
      }
      if (isThere && attempt(candidate)) {
        changed = true;
        break;
      }
    }
  }
  return changed;
}

bool Reducer::simplifyValues() {
  bool changed = false;
  for (const Choices::Made &one : getMade()) {
    auto at = best.find(one.name);
    if (at == best.end())
      continue;
    int64_t value = at->second;
    if (set(one.name, 0)) {
      changed = true;
      continue;
    }
    for (int64_t less : {int64_t(1), value / 2, value - 1})
      if (less > 0 && less < value && set(one.name, less)) {
        changed = true;
        break;
      }
  }
  return changed;
}

Given Reducer::reduce() {
  bool changed = true;
  while (changed && limit > 0) {
    changed = dropScopes();
    changed |= dropElements();
    changed |= simplifyValues();
    changed |= promoteOperands();
  }
  return best;
}

} // namespace

Given fi::fuzz::reduce(const Given &given, Family family,
                       llvm::function_ref<bool(const RandomProgram &)> isBad,
                       int64_t limit) {
  return Reducer(given, family, isBad, limit).reduce();
}
