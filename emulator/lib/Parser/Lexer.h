//===- Lexer.h - The words of PTX -------------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_PARSER_LEXER_H
#define FI_EMULATOR_PARSER_LEXER_H

#include <cstdint>
#include <string_view>

namespace fi::emulator {

struct Token {
  enum Kind : uint8_t {
    End,
    Ident,     // %r1, $L__BB0_1, name
    Directive, // .reg: text without the dot
    Int,
    Float32,
    Float64,
    String,
    Punct,
    Bad,
  };
  Kind kind = End;
  std::string_view text;
  uint64_t value = 0;
  uint32_t line = 1;

  bool is(char c) const { return kind == Punct && text[0] == c; }
  bool isDirective(std::string_view name) const {
    return kind == Directive && text == name;
  }
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { next(); }

  const Token &token() const { return current; }
  void next();
  /// At an identifier: takes the whole opcode, `ld.global.L1::no_allocate.u32`,
  /// as one token.
  void extendToOpcode();
  /// Past the body of a section, from its `{`.
  void skipBraces();

private:
  void skipSpace();
  void number();

  std::string_view text;
  size_t pos = 0;
  uint32_t line = 1;
  Token current;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_PARSER_LEXER_H
