//===- Table.h - The instructions of PTX as a table -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row is one form of one mnemonic: the grammar of its modifiers, its
// operands, the least PTX version and target, and the function that chooses the
// handler.
//
// Grammar: groups in order, separated by blanks. `a|b` is required, `[a|b]`
// optional; `$int` and the like stand for sets of types (see expandSet).
// Matched groups are numbered from 0; an absent optional group is empty.
//
// Operands, separated by blanks; `=` first marks a destination, `+` one that is
// read too, `?` last an optional one:
//   t, u, w    the type of the last group that is a type, of the first, and
//              twice as wide as t
//   b16 b32 b64 and other types        p   predicate (sources may be negated)
//   t|p        destination with an optional predicate beside it
//   v          a value or a vector of type t       v32  a vector of b32
//   m          an address                l   a label or other name
//   tm         the address of a tensor map, with coordinates
//   wg         registers of 32 bits, or one of 64
//   any        whatever the builder takes
// `~` last: the register may be wider than the type.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_DECODE_TABLE_H
#define FI_EMULATOR_DECODE_TABLE_H

#include "../Exec/Exec.h"
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fi::emulator {

struct Match;
struct Builder;
using BuildFn = void (*)(Builder &);

struct Row {
  const char *mnemonic;
  const char *grammar;
  const char *operands;
  uint16_t ptx;
  uint16_t sm;
  BuildFn build;
};

struct OperandSpec {
  enum Kind : uint8_t {
    Value,
    Pred,
    DestPred,
    Vector,
    Address,
    TensorAddress,
    Name,
    Any
  };
  Kind kind = Value;
  bool dest = false, read = false, optional = false, wide = false;
  /// 't', 'u', 'w', or 0 with a type.
  char which = 0;
  Type type = Type::None;
};

struct CompiledRow {
  const Row *row = nullptr;
  struct Group {
    bool optional = false;
    std::vector<std::string_view> words;
    bool isType = false;
  };
  std::vector<Group> groups;
  std::vector<OperandSpec> operands;
};

struct Match {
  const CompiledRow *row = nullptr;
  std::vector<std::string_view> groups;
  Type first = Type::None;
  Type last = Type::None;
};

class Table {
public:
  /// The table with the handlers for this machine.
  static const Table &get();

  /// Matches mnemonic, modifiers and number of operands. False: `error` names
  /// what is unknown and what is allowed.
  bool match(const AstInst &inst, Match &match, std::string &error) const;

  void add(const Row *rows, size_t count);
  const std::vector<std::unique_ptr<CompiledRow>> &rows() const { return all; }

private:
  std::vector<std::unique_ptr<CompiledRow>> all;
  std::unordered_map<std::string_view, std::vector<const CompiledRow *>>
      byMnemonic;
  std::vector<std::unique_ptr<std::string>> strings;
};

/// What a row's build function sees: the match, and the instruction with its
/// operands filled in.
struct Builder {
  const Match &match;
  const AstInst &ast;
  Inst &inst;
  /// Flattened operands, as in Inst::ops().
  std::vector<uint32_t> slots;
  /// Bytes of the register (or type) behind each slot; 0 for predicates.
  std::vector<uint8_t> widths;
  /// Number of slots of each operand of the AST.
  std::vector<uint32_t> counts;
  /// Of each address, in order.
  std::vector<int64_t> addends;
  /// The space of an address, if its operand says so (variables).
  Space addressSpace = Space::Generic;
  bool addressIsVariable = false;
  std::string error;
  /// Where lists live as long as the kernel.
  std::deque<std::vector<uint32_t>> &lists;

  /// Makes words of the builder's the instruction's list.
  void keep(std::vector<uint32_t> words) {
    lists.push_back(std::move(words));
    inst.list = lists.back().data();
  }
  bool has(size_t group) const { return !match.groups[group].empty(); }
  std::string_view group(size_t i) const { return match.groups[i]; }
  bool is(size_t i, std::string_view word) const {
    return match.groups[i] == word;
  }
  Type type() const { return match.last; }
  void fail(std::string message) {
    if (error.empty())
      error = std::move(message);
  }
};

} // namespace fi::emulator

#endif // FI_EMULATOR_DECODE_TABLE_H
