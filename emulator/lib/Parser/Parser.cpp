//===- Parser.cpp - Directives and declarations ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Parser.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fi::emulator {

void Parser::topLevel() {
  if (token().kind != Token::Directive) {
    fail("expected a directive, but got " + got());
    return;
  }
  uint32_t line = token().line;
  if (acceptDirective("version")) {
    version();
    return;
  }
  if (acceptDirective("target")) {
    target();
    return;
  }
  if (acceptDirective("address_size")) {
    if (integer() != 64)
      failAt(line, "expected an address size of 64; 32-bit PTX is not "
                   "supported");
    return;
  }
  if (acceptDirective("file")) {
    file();
    return;
  }
  if (acceptDirective("section")) {
    // DWARF: `.section .debug_str { ... }`.
    lexer.next();
    if (!token().is('{'))
      fail("expected '{' after a section's name, but got " + got());
    else
      lexer.skipBraces();
    return;
  }
  if (acceptDirective("pragma")) {
    while (!failed && !token().is(';') && token().kind != Token::End)
      lexer.next();
    expect(';');
    return;
  }
  if (acceptDirective("loc")) {
    location();
    return;
  }
  bool isExtern = false;
  for (;;) {
    if (acceptDirective("extern")) {
      isExtern = true;
      continue;
    }
    if (acceptDirective("visible") || acceptDirective("weak") ||
        acceptDirective("common"))
      continue;
    break;
  }
  if (acceptDirective("entry"))
    return function(true);
  if (acceptDirective("func"))
    return function(false);
  for (auto [name, space] :
       {std::pair<const char *, Space>{"global", Space::Global},
        {"const", Space::Const},
        {"shared", Space::Shared}})
    if (acceptDirective(name)) {
      do {
        Variable &var = module.variables.emplace_back();
        declaration(var, space, isExtern);
        if (failed)
          return;
        if (!module.variableByName.try_emplace(var.name, &var).second) {
          // An extern declaration may be repeated.
          if (!isExtern)
            failAt(var.line, "variable '" + std::string(var.name) +
                                 "' is declared twice");
        }
      } while (accept(','));
      expect(';');
      return;
    }
  fail("unknown directive " + got());
}

void Parser::version() {
  // "8.0" reads as a number with a fraction.
  std::string text(token().text);
  size_t dot = text.find('.');
  if (token().kind != Token::Float64 || dot == std::string::npos ||
      dot + 2 != text.size()) {
    fail("expected a version such as 8.0, but got " + got());
    return;
  }
  module.version =
      uint32_t(std::atoi(text.c_str()) * 10 + (text[dot + 1] - '0'));
  lexer.next();
}

void Parser::target() {
  uint32_t line = token().line;
  do {
    std::string_view name = identifier();
    if (failed)
      return;
    if (name.substr(0, 3) == "sm_") {
      module.target = name;
      module.targetSM =
          uint32_t(std::atoi(std::string(name.substr(3)).c_str()));
    } else if (name != "debug" && name.substr(0, 7) != "texmode" &&
               name != "map_f64_to_f32") {
      failAt(line, "unknown target '" + std::string(name) +
                       "'; expected sm_<number>");
      return;
    }
  } while (accept(','));
}

void Parser::file() {
  uint64_t index = integer();
  if (token().kind != Token::String) {
    fail("expected a file's name, but got " + got());
    return;
  }
  module.files[uint32_t(index)] = std::string(token().text);
  lexer.next();
  // Optional time stamp and size.
  while (accept(','))
    integer();
}

void Parser::location() {
  SourceLoc loc;
  loc.file = uint32_t(integer());
  loc.line = uint32_t(integer());
  loc.column = uint32_t(integer());
  if (accept(',')) {
    // function_name <label> [+ offset], inlined_at <file> <line> <column>
    if (identifier() != "function_name" || failed) {
      fail("expected 'function_name' in .loc, but got " + got());
      return;
    }
    identifier();
    if (accept('+'))
      integer();
    expect(',');
    if (identifier() != "inlined_at" && !failed) {
      fail("expected 'inlined_at' in .loc");
      return;
    }
    SourceLoc outer;
    outer.file = uint32_t(integer());
    outer.line = uint32_t(integer());
    outer.column = uint32_t(integer());
    // The place of inlining has a .loc of its own before, which may say
    // where it was inlined in turn.
    for (int32_t i = int32_t(module.locations.size()) - 1, n = 0;
         i >= 0 && n < 64; --i, ++n) {
      const SourceLoc &l = module.locations[size_t(i)];
      if (l.file == outer.file && l.line == outer.line &&
          l.column == outer.column) {
        loc.inlinedAt = i;
        break;
      }
    }
    if (loc.inlinedAt < 0) {
      module.locations.push_back(outer);
      loc.inlinedAt = int32_t(module.locations.size()) - 1;
    }
  }
  module.locations.push_back(loc);
  currentLoc = int32_t(module.locations.size()) - 1;
}

Type Parser::type() {
  if (failed)
    return Type::None;
  if (token().kind != Token::Directive) {
    fail("expected a type, but got " + got());
    return Type::None;
  }
  Type t = parseType(token().text);
  if (t == Type::None)
    fail("unknown type " + got());
  else
    lexer.next();
  return t;
}

void Parser::declaration(Variable &var, Space space, bool isExtern) {
  var.space = space;
  var.isExtern = isExtern;
  uint64_t align = 0;
  uint32_t vector = 1;
  for (;;) {
    if (acceptDirective("align")) {
      align = integer();
      if (!failed && (align == 0 || (align & (align - 1)) || align > 4096)) {
        fail("expected an alignment that is a power of two up to 4096, but "
             "got " +
             std::to_string(align));
        return;
      }
      continue;
    }
    if (acceptDirective("v2")) {
      vector = 2;
      continue;
    }
    if (acceptDirective("v4")) {
      vector = 4;
      continue;
    }
    if (acceptDirective("attribute")) {
      while (!failed && !token().is(')') && token().kind != Token::End)
        lexer.next();
      expect(')');
      continue;
    }
    break;
  }
  // LLVM writes `.param .b64 .ptr .global .align 16 name`.
  var.type = type();
  if (acceptDirective("ptr")) {
    while (!failed && token().kind == Token::Directive) {
      if (acceptDirective("align"))
        integer();
      else
        lexer.next();
    }
  }
  var.line = token().line;
  var.name = identifier();
  if (failed)
    return;
  if (var.type == Type::Pred) {
    failAt(var.line,
           "variable '" + std::string(var.name) + "' cannot be a predicate");
    return;
  }
  uint64_t element = uint64_t(sizeOf(var.type)) * vector, count = 1;
  bool unsized = false;
  while (accept('[')) {
    if (accept(']')) {
      unsized = true;
      continue;
    }
    uint64_t n = integer();
    expect(']');
    if (failed)
      return;
    if (n > maxVariableBytes || count * n > maxVariableBytes) {
      failAt(var.line, "variable '" + std::string(var.name) + "' is too large");
      return;
    }
    count *= n;
  }
  var.align = std::max(align, element);
  if (align)
    var.align = align;
  var.bytes = element * count;
  if (unsized) {
    var.bytes = 0;
    if (space == Space::Shared)
      var.dynamic = true;
  }
  if (var.bytes > maxVariableBytes) {
    failAt(var.line, "variable '" + std::string(var.name) + "' is too large");
    return;
  }
  if (accept('=')) {
    if (space != Space::Global && space != Space::Const) {
      fail("only global and constant variables have initial values");
      return;
    }
    uint64_t at = 0;
    initializer(var, at, 0);
    if (unsized)
      var.bytes = var.init.size();
    if (!failed && var.init.size() > var.bytes)
      failAt(var.line, "variable '" + std::string(var.name) + "' has " +
                           std::to_string(var.bytes) +
                           " bytes, but its value " +
                           std::to_string(var.init.size()));
  }
}

void Parser::initializer(Variable &var, uint64_t &at, unsigned depth) {
  if (depth > maxNesting) {
    fail("initial value is nested too deeply");
    return;
  }
  if (accept('{')) {
    if (accept('}'))
      return;
    do
      initializer(var, at, depth + 1);
    while (!failed && accept(','));
    expect('}');
    return;
  }
  uint32_t size = sizeOf(var.type);
  if (at + size > maxVariableBytes)
    return fail("initial value is too long");
  if (var.init.size() < at + size)
    var.init.resize(at + size);
  bool negative = accept('-');
  uint64_t bits = 0;
  if (token().kind == Token::Int) {
    bits = negative ? 0 - token().value : token().value;
    lexer.next();
  } else if (token().kind == Token::Float32 || token().kind == Token::Float64) {
    bits = token().value;
    if (token().kind == Token::Float64 && var.type == Type::F32) {
      double d;
      std::memcpy(&d, &bits, 8);
      float f = float(negative ? -d : d);
      uint32_t b;
      std::memcpy(&b, &f, 4);
      bits = b;
    }
    lexer.next();
  } else if (token().kind == Token::Ident) {
    std::string_view name = identifier();
    bool paren = name == "generic" && accept('(');
    if (paren)
      name = identifier();
    if (paren)
      expect(')');
    int64_t addend = 0;
    if (accept('+'))
      addend = int64_t(integer());
    if (size != 8)
      return fail("an address needs an element of 8 bytes");
    var.addresses.push_back({at, name, addend});
  } else {
    return fail("expected a value, but got " + got());
  }
  std::memcpy(var.init.data() + at, &bits, std::min<uint32_t>(size, 8));
  at += size;
}

int64_t PtxFunction::findLabel(uint32_t scope, std::string_view label) const {
  for (;;) {
    auto it = labels.find({scope, label});
    if (it != labels.end())
      return it->second;
    if (scope == 0)
      return -1;
    scope = scopes[scope];
  }
}

Type parseType(std::string_view text) {
  static const std::unordered_map<std::string_view, Type> types = {
      {"pred", Type::Pred},   {"b8", Type::B8},     {"b16", Type::B16},
      {"b32", Type::B32},     {"b64", Type::B64},   {"b128", Type::B128},
      {"u8", Type::U8},       {"u16", Type::U16},   {"u32", Type::U32},
      {"u64", Type::U64},     {"s8", Type::S8},     {"s16", Type::S16},
      {"s32", Type::S32},     {"s64", Type::S64},   {"f16", Type::F16},
      {"f16x2", Type::F16x2}, {"bf16", Type::BF16}, {"bf16x2", Type::BF16x2},
      {"f32", Type::F32},     {"f64", Type::F64}};
  auto it = types.find(text);
  return it == types.end() ? Type::None : it->second;
}

uint32_t sizeOf(Type type) {
  switch (type) {
  case Type::None:
  case Type::Pred:
    return 0;
  case Type::B8:
  case Type::U8:
  case Type::S8:
    return 1;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return 2;
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::F16x2:
  case Type::BF16x2:
    return 4;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
    return 8;
  case Type::B128:
    return 16;
  }
  return 0;
}

bool isFloat(Type type) {
  return type == Type::F16 || type == Type::F16x2 || type == Type::BF16 ||
         type == Type::BF16x2 || type == Type::F32 || type == Type::F64;
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 ||
         type == Type::S64;
}

bool parseModule(std::string name, std::string text, PtxModule &module,
                 std::string &error) {
  module.name = std::move(name);
  module.text = std::move(text);
  Parser parser(module, error);
  return parser.run();
}

} // namespace fi::emulator
