//===- Parser.cpp - PTX text to a module ----------------------------------===//
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
#include "Ast.h"
#include "Lexer.h"

#include <algorithm>
#include <cstring>

namespace fi::emulator {
namespace {

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

  void topLevel() {
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

  void version() {
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

  void target() {
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

  void file() {
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

  void location() {
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

  Type type() {
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

  /// Past the space: alignment, type, name, dimensions, value.
  void declaration(Variable &var, Space space, bool isExtern) {
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
        failAt(var.line,
               "variable '" + std::string(var.name) + "' is too large");
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

  void initializer(Variable &var, uint64_t &at, unsigned depth) {
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
    } else if (token().kind == Token::Float32 ||
               token().kind == Token::Float64) {
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

  void parameters(PtxFunction &fn, std::vector<Variable *> &list) {
    if (accept(')'))
      return;
    do {
      if (token().isDirective("reg")) {
        fail("parameters in registers are not supported; declare them as "
             ".param");
        return;
      }
      if (!acceptDirective("param")) {
        fail("expected '.param', but got " + got());
        return;
      }
      Variable &var = fn.variables.emplace_back();
      var.owner = &fn;
      var.index = uint32_t(fn.variables.size() - 1);
      declaration(var, Space::Param, false);
      list.push_back(&var);
      if (!failed && var.name != "_")
        scopes[0].variables[var.name] = &var;
    } while (!failed && accept(','));
    expect(')');
  }

  void function(bool entry) {
    PtxFunction fn;
    fn.isEntry = entry;
    fn.line = token().line;
    scopes.clear();
    scopes.emplace_back();
    fn.scopes.push_back(0);
    PtxFunction &placed = module.functions.emplace_back(std::move(fn));
    current = &placed;
    if (!entry && accept('('))
      parameters(placed, placed.results);
    placed.name = identifier();
    if (accept('('))
      parameters(placed, placed.params);
    if (failed)
      return;
    if (entry) {
      uint64_t at = 0;
      for (Variable *param : placed.params) {
        at = (at + param->align - 1) / param->align * param->align;
        param->offset = at;
        at += param->bytes;
      }
      placed.paramBytes = at;
      if (at > 32764)
        return failAt(placed.line,
                      "kernel '" + std::string(placed.name) + "' has " +
                          std::to_string(at) +
                          " bytes of parameters, at most 32764 are allowed");
    }
    while (!failed && token().kind == Token::Directive) {
      std::string_view name = token().text;
      if (name == "maxntid" || name == "reqntid") {
        lexer.next();
        uint32_t *out =
            name == "maxntid" ? placed.maxThreads : placed.reqThreads;
        out[0] = out[1] = out[2] = 1;
        unsigned i = 0;
        do
          out[i++] = uint32_t(integer());
        while (!failed && i < 3 && accept(','));
      } else if (name == "noreturn" || name == "explicitcluster" ||
                 name == "blocksareclusters") {
        lexer.next();
      } else if (name == "minnctapersm" || name == "maxnctapersm" ||
                 name == "maxnreg" || name == "maxclusterrank" ||
                 name == "abi_preserve" || name == "abi_preserve_control") {
        lexer.next();
        integer();
      } else if (name == "reqnctapercluster") {
        lexer.next();
        do
          integer();
        while (!failed && accept(','));
      } else if (name == "pragma") {
        lexer.next();
        while (!failed && !token().is(';') && token().kind != Token::End)
          lexer.next();
        expect(';');
      } else if (name == "loc" || name == "file") {
        break;
      } else {
        return fail("unknown directive " + got() + " of a function");
      }
    }
    auto [slot, isNew] =
        module.functionByName.try_emplace(placed.name, &placed);
    if (accept(';'))
      return;
    if (!token().is('{'))
      return fail("expected '{' or ';', but got " + got());
    if (!isNew) {
      if (slot->second->hasBody)
        return failAt(placed.line, "function '" + std::string(placed.name) +
                                       "' is defined twice");
      slot->second = &placed;
    }
    placed.hasBody = true;
    currentLoc = -1;
    lexer.next();
    block(0);
  }

  //===- Statements -------------------------------------------------------===//

  void block(unsigned depth) {
    while (!failed) {
      if (token().kind == Token::End)
        return fail("expected '}', but got the end of the text");
      if (accept('}'))
        return;
      if (token().is('{')) {
        if (depth >= maxNesting)
          return fail("blocks are nested too deeply");
        lexer.next();
        uint32_t parent = scopes.back().id;
        scopes.emplace_back();
        scopes.back().id = uint32_t(current->scopes.size());
        current->scopes.push_back(parent);
        block(depth + 1);
        scopes.pop_back();
        continue;
      }
      statement();
    }
  }

  void registers() {
    Type t = type();
    // Vectors of registers (.v2 .f32) are a leftover of the first PTX.
    do {
      uint32_t line = token().line;
      std::string_view name = identifier();
      if (failed)
        return;
      auto add = [&](uint32_t number, bool numbered) {
        Register reg;
        reg.prefix = name;
        reg.number = number;
        reg.numbered = numbered;
        reg.type = t;
        current->regs.push_back(reg);
      };
      if (accept('<')) {
        uint64_t count = integer();
        expect('>');
        if (failed)
          return;
        if (count + current->regs.size() > maxRegisters)
          return failAt(line, "more than " + std::to_string(maxRegisters) +
                                  " registers");
        scopes.back().ranges.push_back(
            {name, uint32_t(count), uint32_t(current->regs.size())});
        for (uint32_t i = 0; i < count; ++i)
          add(i, true);
      } else {
        if (!scopes.back()
                 .names.try_emplace(name, uint32_t(current->regs.size()))
                 .second)
          return failAt(line, "register '" + std::string(name) +
                                  "' is declared twice");
        add(0, false);
      }
    } while (accept(','));
    expect(';');
  }

  void statement() {
    if (token().kind == Token::Directive) {
      if (acceptDirective("reg"))
        return registers();
      if (acceptDirective("loc"))
        return location();
      if (acceptDirective("file"))
        return file();
      if (acceptDirective("pragma")) {
        while (!failed && !token().is(';') && token().kind != Token::End)
          lexer.next();
        expect(';');
        return;
      }
      for (auto [name, space] :
           {std::pair<const char *, Space>{"local", Space::Local},
            {"shared", Space::Shared},
            {"param", Space::Param},
            {"global", Space::Global},
            {"const", Space::Const}})
        if (acceptDirective(name)) {
          do {
            Variable &var = current->variables.emplace_back();
            var.owner = current;
            var.index = uint32_t(current->variables.size() - 1);
            declaration(var, space, false);
            if (failed)
              return;
            if (!scopes.back().variables.try_emplace(var.name, &var).second)
              return failAt(var.line, "variable '" + std::string(var.name) +
                                          "' is declared twice");
          } while (accept(','));
          expect(';');
          return;
        }
      return fail("unknown directive " + got() + " in a function");
    }
    AstInst inst;
    inst.line = token().line;
    inst.loc = currentLoc;
    if (accept('@')) {
      inst.guardNegated = accept('!');
      std::string_view name = identifier();
      if (failed)
        return;
      int64_t reg = findRegister(name);
      if (reg < 0)
        return fail("unknown register '" + std::string(name) + "'");
      if (current->regs[size_t(reg)].type != Type::Pred)
        return fail("expected a predicate as guard, but got '" +
                    std::string(name) + "'");
      inst.guard = int32_t(reg);
    }
    if (token().kind != Token::Ident)
      return fail("expected an instruction, but got " + got());
    Token first = token();
    Lexer saved = lexer;
    lexer.next();
    if (token().is(':')) {
      Lexer afterColon = lexer;
      lexer.next();
      if (!token().is(':')) {
        if (inst.guard >= 0)
          return fail("a label has no guard");
        return label(first);
      }
      lexer = afterColon;
    }
    lexer = saved;
    lexer.extendToOpcode();
    std::string_view opcode = token().text;
    inst.line = token().line;
    lexer.next();
    size_t dot = opcode.find('.');
    inst.mnemonic = opcode.substr(0, dot);
    while (dot != std::string_view::npos) {
      size_t end = opcode.find('.', dot + 1);
      inst.modifiers.push_back(opcode.substr(
          dot + 1, end == std::string_view::npos ? end : end - dot - 1));
      dot = end;
    }
    if (!token().is(';')) {
      do
        inst.operands.push_back(operand(0));
      while (!failed && accept(','));
    }
    if (!expect(';'))
      return;
    current->body.push_back(std::move(inst));
  }

  void label(const Token &name) {
    if (token().isDirective("branchtargets")) {
      lexer.next();
      auto &list = current->branchTargets[name.text];
      do
        list.push_back({identifier(), scopes.back().id});
      while (!failed && accept(','));
      expect(';');
      return;
    }
    if (token().isDirective("callprototype") ||
        token().isDirective("calltargets"))
      return fail("calls through a register are not supported");
    if (!current->labels
             .try_emplace({scopes.back().id, name.text},
                          uint32_t(current->body.size()))
             .second)
      failAt(name.line,
             "label '" + std::string(name.text) + "' is defined twice");
  }

  //===- Operands ---------------------------------------------------------===//

  int64_t findRegister(std::string_view name) const {
    std::string_view prefix = name;
    while (!prefix.empty() && prefix.back() >= '0' && prefix.back() <= '9')
      prefix.remove_suffix(1);
    std::string_view digits = name.substr(prefix.size());
    for (size_t i = scopes.size(); i-- > 0;) {
      const Scope &scope = scopes[i];
      if (auto it = scope.names.find(name); it != scope.names.end())
        return it->second;
      // `%rd<5>` and `%r<5>` differ in the prefix; a prefix may end in digits.
      for (const Scope::Range &range : scope.ranges) {
        if (range.prefix.size() < prefix.size() ||
            name.substr(0, range.prefix.size()) != range.prefix ||
            range.prefix.size() >= name.size())
          continue;
        std::string_view rest = name.substr(range.prefix.size());
        if (rest.size() > 9 || (rest.size() > 1 && rest[0] == '0'))
          continue;
        uint64_t n = 0;
        for (char c : rest)
          n = n * 10 + uint64_t(c - '0');
        if (n < range.count)
          return int64_t(range.base + n);
      }
    }
    (void)digits;
    return -1;
  }

  Variable *findVariable(std::string_view name) const {
    for (size_t i = scopes.size(); i-- > 0;)
      if (auto it = scopes[i].variables.find(name);
          it != scopes[i].variables.end())
        return it->second;
    auto it = module.variableByName.find(name);
    return it == module.variableByName.end() ? nullptr : it->second;
  }

  void named(Operand &op) {
    std::string_view name = token().text;
    op.name = name;
    op.scope = scopes.back().id;
    int64_t reg = findRegister(name);
    lexer.next();
    if (reg >= 0) {
      op.kind = Operand::Reg;
      op.reg = uint32_t(reg);
      return;
    }
    if (name == "_") {
      op.kind = Operand::Sink;
      return;
    }
    if (Variable *var = findVariable(name)) {
      op.kind = Operand::Var;
      op.var = var;
      return;
    }
    if (name[0] == '%') {
      op.kind = Operand::Special;
      if (token().kind == Token::Directive && token().text.size() == 1) {
        op.component = token().text[0];
        lexer.next();
      }
      return;
    }
    op.kind = Operand::Name;
  }

  /// `+ 4`, `+ -4`, `- 4`.
  int64_t addend() {
    int64_t sum = 0;
    while (!failed) {
      bool minus = false;
      if (accept('-'))
        minus = true;
      else if (!accept('+'))
        break;
      while (accept('-'))
        minus = !minus;
      uint64_t value = integer();
      sum = int64_t(uint64_t(sum) + (minus ? 0 - value : value));
    }
    return sum;
  }

  Operand operand(unsigned depth) {
    Operand op;
    if (depth > 4) {
      fail("operands are nested too deeply");
      return op;
    }
    if (accept('!')) {
      op.negated = true;
      if (token().kind != Token::Ident) {
        fail("expected a predicate after '!', but got " + got());
        return op;
      }
      named(op);
    } else if (accept('{') || accept('(')) {
      // A call has lists in parentheses.
      op.kind = Operand::Vector;
      bool list = false;
      if (!token().is('}') && !token().is(')')) {
        do
          op.elems.push_back(operand(depth + 1));
        while (!failed && accept(','));
      }
      list = token().is(')');
      if (!accept(')'))
        expect('}');
      if (list)
        op.kind = Operand::List;
    } else if (accept('[')) {
      op.kind = Operand::Address;
      op.elems.push_back(operand(depth + 1));
      // The addend of a variable went to the variable.
      op.value = addend();
      // TMA: [tensorMap, {x, y}].
      while (!failed && accept(','))
        op.elems.push_back(operand(depth + 1));
      expect(']');
    } else if (accept('-')) {
      if (token().kind == Token::Int) {
        op.kind = Operand::Int;
        op.value = int64_t(0 - token().value);
        lexer.next();
      } else if (token().kind == Token::Float32 ||
                 token().kind == Token::Float64) {
        bool single = token().kind == Token::Float32;
        op.kind = single ? Operand::Float32 : Operand::Float64;
        op.value = int64_t(token().value ^ (uint64_t(1) << (single ? 31 : 63)));
        lexer.next();
      } else {
        fail("expected a number after '-', but got " + got());
      }
    } else if (token().kind == Token::Int) {
      op.kind = Operand::Int;
      op.value = int64_t(token().value);
      lexer.next();
    } else if (token().kind == Token::Float32) {
      op.kind = Operand::Float32;
      op.value = int64_t(token().value);
      lexer.next();
    } else if (token().kind == Token::Float64) {
      op.kind = Operand::Float64;
      op.value = int64_t(token().value);
      lexer.next();
    } else if (token().kind == Token::Ident) {
      named(op);
      if (op.kind == Operand::Var)
        op.value = addend();
    } else {
      fail("expected an operand, but got " + got());
    }
    if (accept('|')) {
      op.second = std::make_unique<Operand>();
      if (token().kind == Token::Ident)
        named(*op.second);
      else
        fail("expected a predicate after '|', but got " + got());
    }
    return op;
  }

  PtxModule &module;
  std::string &error;
  Lexer lexer;
  std::vector<Scope> scopes;
  PtxFunction *current = nullptr;
  int32_t currentLoc = -1;
  bool failed = false;
};

} // namespace

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
