//===- Table.cpp - Finding the row of an instruction ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Table.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace fi::emulator {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t at = text.find(by);
    if (at != 0)
      out.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      break;
    text.remove_prefix(at + 1);
  }
  return out;
}

/// The shapes of wgmma: n is a multiple of 8, with integers of 16 from 32 on.
const char *productShapes(unsigned k, bool ints) {
  static std::deque<std::string> texts;
  std::string &text = texts.emplace_back();
  for (unsigned n = 8; n <= 256; n += 8)
    if (!ints || n % 16 == 0 || n < 32)
      text += (text.empty() ? "m64n" : "|m64n") + std::to_string(n) + "k" +
              std::to_string(k);
  return text.c_str();
}

void expandSet(std::string_view word, std::vector<std::string_view> &out) {
  static const std::unordered_map<std::string_view, const char *> sets = {
      {"$int", "u16|u32|u64|s16|s32|s64"},
      {"$int32", "u32|s32|u64|s64"},
      {"$bits", "b16|b32|b64"},
      {"$any", "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"},
      {"$mem", "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f16|f16x2|bf16|"
               "f32|f64"},
      {"$cvtint", "u8|u16|u32|u64|s8|s16|s32|s64"},
      {"$rnd", "rn|rz|rm|rp"},
      {"$irnd", "rni|rzi|rmi|rpi"},
      {"$icmp", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs"},
      {"$fcmp", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"},
      {"$bool", "and|or|xor"},
      {"$cache", "ca|cg|cs|lu|cv|wb|wt"},
      {"$evict",
       "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|"
       "L1::no_allocate"},
      {"$l2", "L2::64B|L2::128B|L2::256B"},
      {"$scope", "cta|cluster|gpu|sys"},
      {"$wg8", productShapes(8, false)},
      {"$wg16", productShapes(16, false)},
      {"$wg32", productShapes(32, false)},
      {"$wgint", productShapes(32, true)},
  };
  if (word[0] != '$') {
    out.push_back(word);
    return;
  }
  auto it = sets.find(word);
  if (it == sets.end()) {
    std::fprintf(stderr, "fi-emulator: unknown set %s in the table\n",
                 std::string(word).c_str());
    std::abort();
  }
  for (std::string_view w : split(it->second, '|'))
    out.push_back(w);
}

OperandSpec compileOperand(std::string_view text) {
  OperandSpec spec;
  if (text[0] == '=') {
    spec.dest = true;
    text.remove_prefix(1);
  } else if (text[0] == '+') {
    spec.dest = spec.read = true;
    text.remove_prefix(1);
  }
  if (text.back() == '?') {
    spec.optional = true;
    text.remove_suffix(1);
  }
  if (text.back() == '~') {
    spec.wide = true;
    text.remove_suffix(1);
  }
  if (text == "p") {
    spec.kind = OperandSpec::Pred;
  } else if (text.size() > 2 && text.substr(text.size() - 2) == "|p") {
    spec.kind = OperandSpec::DestPred;
    text.remove_suffix(2);
    if (text == "t")
      spec.which = 't';
    else
      spec.type = text == "p" ? Type::Pred : parseType(text);
  } else if (text == "v") {
    spec.kind = OperandSpec::Vector;
    spec.which = 't';
  } else if (text == "v32") {
    spec.kind = OperandSpec::Vector;
    spec.type = Type::B32;
  } else if (text == "v64") {
    spec.kind = OperandSpec::Vector;
    spec.type = Type::B64;
  } else if (text == "wg") {
    spec.kind = OperandSpec::Vector;
    spec.which = 'g';
  } else if (text == "tm") {
    spec.kind = OperandSpec::TensorAddress;
  } else if (text == "m") {
    spec.kind = OperandSpec::Address;
  } else if (text == "l") {
    spec.kind = OperandSpec::Name;
  } else if (text == "any") {
    spec.kind = OperandSpec::Any;
  } else if (text == "t" || text == "u" || text == "w") {
    spec.which = text[0];
  } else {
    spec.type = parseType(text);
    if (spec.type == Type::None) {
      std::fprintf(stderr, "fi-emulator: unknown operand %s in the table\n",
                   std::string(text).c_str());
      std::abort();
    }
  }
  return spec;
}

/// Matches groups from `g` with words from `m`; `furthest` keeps the greatest
/// number of words that some path took.
bool matchGroups(const CompiledRow &row,
                 const std::vector<std::string_view> &words, size_t g, size_t m,
                 std::vector<std::string_view> &out, size_t &furthest) {
  furthest = std::max(furthest, m);
  if (g == row.groups.size())
    return m == words.size();
  const CompiledRow::Group &group = row.groups[g];
  if (m < words.size() && std::find(group.words.begin(), group.words.end(),
                                    words[m]) != group.words.end()) {
    out[g] = words[m];
    if (matchGroups(row, words, g + 1, m + 1, out, furthest))
      return true;
    out[g] = {};
  }
  return group.optional && matchGroups(row, words, g + 1, m, out, furthest);
}

} // namespace

namespace base {
void addAllRows(Table &table);
}
#if defined(FI_EMU_HAVE_V3)
namespace v3 {
void addAllRows(Table &table);
}
#endif
#if defined(FI_EMU_HAVE_V4)
namespace v4 {
void addAllRows(Table &table);
}
#endif

const Table &Table::get() {
  static const Table table = [] {
    Table t;
#if defined(FI_EMU_HAVE_V4)
    if (__builtin_cpu_supports("x86-64-v4")) {
      v4::addAllRows(t);
      return t;
    }
#endif
#if defined(FI_EMU_HAVE_V3)
    if (__builtin_cpu_supports("x86-64-v3")) {
      v3::addAllRows(t);
      return t;
    }
#endif
    base::addAllRows(t);
    return t;
  }();
  return table;
}

void Table::add(const Row *rows, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto compiled = std::make_unique<CompiledRow>();
    compiled->row = &rows[i];
    for (std::string_view text : split(rows[i].grammar, ' ')) {
      CompiledRow::Group group;
      if (text[0] == '[') {
        group.optional = true;
        text = text.substr(1, text.size() - 2);
      }
      for (std::string_view word : split(text, '|'))
        expandSet(word, group.words);
      group.isType = std::all_of(
          group.words.begin(), group.words.end(),
          [](std::string_view w) { return parseType(w) != Type::None; });
      compiled->groups.push_back(std::move(group));
    }
    for (std::string_view text : split(rows[i].operands, ' '))
      compiled->operands.push_back(compileOperand(text));
    byMnemonic[rows[i].mnemonic].push_back(compiled.get());
    all.push_back(std::move(compiled));
  }
}

bool Table::match(const AstInst &inst, Match &match, std::string &error) const {
  auto it = byMnemonic.find(inst.mnemonic);
  std::string full(inst.mnemonic);
  for (std::string_view m : inst.modifiers)
    full += "." + std::string(m);
  if (it == byMnemonic.end()) {
    error = "unknown instruction '" + full + "'";
    return false;
  }
  size_t furthest = 0;
  const CompiledRow *wrongCount = nullptr;
  for (const CompiledRow *row : it->second) {
    match.groups.assign(row->groups.size(), {});
    if (!matchGroups(*row, inst.modifiers, 0, 0, match.groups, furthest))
      continue;
    size_t required = 0;
    for (const OperandSpec &spec : row->operands)
      required += !spec.optional;
    if (inst.operands.size() < required ||
        inst.operands.size() > row->operands.size()) {
      wrongCount = row;
      continue;
    }
    match.row = row;
    match.first = match.last = Type::None;
    for (size_t g = 0; g < row->groups.size(); ++g)
      if (row->groups[g].isType && !match.groups[g].empty()) {
        Type t = parseType(match.groups[g]);
        if (match.first == Type::None)
          match.first = t;
        match.last = t;
      }
    return true;
  }
  if (wrongCount) {
    error = "'" + full + "' has " + std::to_string(inst.operands.size()) +
            " operands; expected '" + wrongCount->row->operands + "'";
    return false;
  }
  error = furthest < inst.modifiers.size()
              ? "unknown modifier '." + std::string(inst.modifiers[furthest]) +
                    "' of '" + full + "'"
              : "'" + full + "' lacks a modifier";
  error += "; known forms:";
  size_t shown = 0;
  for (const CompiledRow *row : it->second) {
    if (shown++ == 4) {
      error += " ...";
      break;
    }
    error += std::string(shown > 1 ? "," : "") + " '" + row->row->mnemonic +
             " " + row->row->grammar + "'";
  }
  return false;
}

} // namespace fi::emulator
