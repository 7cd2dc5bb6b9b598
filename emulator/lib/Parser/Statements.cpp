//===- Statements.cpp - Functions, statements and operands ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Parser.h"

namespace fi::emulator {

void Parser::parameters(PtxFunction &fn, std::vector<Variable *> &list) {
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

void Parser::function(bool entry) {
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
      uint32_t *out = name == "maxntid" ? placed.maxThreads : placed.reqThreads;
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
      uint32_t value = uint32_t(integer());
      if (name == "maxnreg")
        placed.maxRegisters = value;
      else if (name == "minnctapersm")
        placed.minBlocks = value;
    } else if (name == "reqnctapercluster") {
      uint32_t line = token().line;
      lexer.next();
      uint64_t blocks = 1;
      do
        blocks *= integer();
      while (!failed && accept(','));
      if (!failed && blocks != 1)
        return failAt(line, "clusters of more than one block are not emulated");
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
  auto [slot, isNew] = module.functionByName.try_emplace(placed.name, &placed);
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

void Parser::block(unsigned depth) {
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

void Parser::registers() {
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
        return failAt(line,
                      "register '" + std::string(name) + "' is declared twice");
      add(0, false);
    }
  } while (accept(','));
  expect(';');
}

void Parser::statement() {
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

void Parser::label(const Token &name) {
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

int64_t Parser::findRegister(std::string_view name) const {
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

Variable *Parser::findVariable(std::string_view name) const {
  for (size_t i = scopes.size(); i-- > 0;)
    if (auto it = scopes[i].variables.find(name);
        it != scopes[i].variables.end())
      return it->second;
  auto it = module.variableByName.find(name);
  return it == module.variableByName.end() ? nullptr : it->second;
}

void Parser::named(Operand &op) {
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

int64_t Parser::addend() {
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

Operand Parser::operand(unsigned depth) {
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

} // namespace fi::emulator
