//===- Parser.h - PTX text to a module --------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Directives, declarations and the shape of statements. What an opcode means is
// the table's business (Decode/Table.h). The first error ends the parse.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_PARSER_PARSER_H
#define FI_EMULATOR_PARSER_PARSER_H

#include "Ast.h"
#include "Lexer.h"

namespace fi::emulator {

// Declarations larger than these are nobody's kernel, and would only exhaust
// the memory of the host.
constexpr uint64_t maxVariableBytes = uint64_t(1) << 32;
constexpr uint64_t maxRegisters = 1 << 20;
constexpr unsigned maxNesting = 64;

class Parser {
public:
  Parser(PtxModule &module, std::string &error)
      : module(module), error(error), lexer(module.text) {}

  bool run() {
    while (!failed && token().kind != Token::End)
      topLevel();
    if (!failed && module.version == 0)
      fail("expected a '.version' directive, but the module has none");
    if (!failed && module.target.empty())
      fail("expected a '.target' directive, but the module has none");
    return !failed;
  }

private:
  struct Scope {
    uint32_t id = 0;
    /// Ranges of numbered registers, `%r<10>`, and single ones.
    struct Range {
      std::string_view prefix;
      uint32_t count, base;
    };
    std::vector<Range> ranges;
    std::unordered_map<std::string_view, uint32_t> names;
    std::unordered_map<std::string_view, Variable *> variables;
  };

  const Token &token() const { return lexer.token(); }

  void fail(const std::string &message) { failAt(token().line, message); }
  void failAt(uint32_t line, const std::string &message) {
    if (failed)
      return;
    failed = true;
    error = module.name + ":" + std::to_string(line) + ": " + message;
  }

  std::string got() const {
    switch (token().kind) {
    case Token::End:
      return "the end of the text";
    case Token::Directive:
      return "'." + std::string(token().text) + "'";
    case Token::Bad:
      return "malformed '" + std::string(token().text) + "'";
    default:
      return "'" + std::string(token().text) + "'";
    }
  }

  bool expect(char c) {
    if (failed)
      return false;
    if (!token().is(c)) {
      fail(std::string("expected '") + c + "', but got " + got());
      return false;
    }
    lexer.next();
    return true;
  }
  bool accept(char c) {
    if (failed || !token().is(c))
      return false;
    lexer.next();
    return true;
  }
  bool acceptDirective(std::string_view name) {
    if (failed || !token().isDirective(name))
      return false;
    lexer.next();
    return true;
  }

  uint64_t integer() {
    if (failed)
      return 0;
    if (token().kind != Token::Int) {
      fail("expected an integer, but got " + got());
      return 0;
    }
    uint64_t value = token().value;
    lexer.next();
    return value;
  }

  std::string_view identifier() {
    if (failed)
      return {};
    if (token().kind != Token::Ident) {
      fail("expected a name, but got " + got());
      return {};
    }
    std::string_view text = token().text;
    lexer.next();
    return text;
  }

  //===- Declarations -----------------------------------------------------===//

  void topLevel();

  void version();

  void target();

  void file();

  void location();

  Type type();

  /// Past the space: alignment, type, name, dimensions, value.
  void declaration(Variable &var, Space space, bool isExtern);

  void initializer(Variable &var, uint64_t &at, unsigned depth);

  void parameters(PtxFunction &fn, std::vector<Variable *> &list);

  void function(bool entry);

  //===- Statements -------------------------------------------------------===//

  void block(unsigned depth);

  void registers();

  void statement();

  void label(const Token &name);

  //===- Operands ---------------------------------------------------------===//

  int64_t findRegister(std::string_view name) const;

  Variable *findVariable(std::string_view name) const;

  void named(Operand &op);

  /// `+ 4`, `+ -4`, `- 4`.
  int64_t addend();

  Operand operand(unsigned depth);

  PtxModule &module;
  std::string &error;
  Lexer lexer;
  std::vector<Scope> scopes;
  PtxFunction *current = nullptr;
  int32_t currentLoc = -1;
  bool failed = false;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_PARSER_PARSER_H
