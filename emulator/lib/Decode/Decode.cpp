//===- Decode.cpp - From statements to instructions -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include <algorithm>

namespace fi::emulator {

bool Decoder::run() {
  kernel.module = &module;
  kernel.function = &function;
  sites.emplace_back();
  Site &root = sites.back();
  root.function = &function;
  addRegisters(root);
  if (!flatten(root, 0))
    return false;
  // The end of the text is an exit.
  static const AstInst exit = [] {
    AstInst e;
    e.mnemonic = "exit";
    return e;
  }();
  flat.push_back({&exit, &root, Flat::Plain, nullptr});
  if (!collect())
    return false;
  Assignment slots = assignSlots(program, 2);
  return emit(slots);
}

bool Decoder::fail(uint32_t line, const std::string &message) {
  if (error.empty())
    error = module.ast.name + ":" + std::to_string(line) + ": " + message;
  return false;
}

void Decoder::addRegisters(Site &site) {
  site.registerBase = uint32_t(registers.size());
  registers.insert(registers.end(), site.function->regs.begin(),
                   site.function->regs.end());
}

bool Decoder::flatten(Site &site, unsigned depth) {
  const PtxFunction &fn = *site.function;
  for (size_t i = 0; i < fn.body.size(); ++i) {
    const AstInst &ast = fn.body[i];
    site.flatIndex.push_back(uint32_t(flat.size()));
    if (flat.size() > maxInstructions)
      return fail(ast.line, "more than " + std::to_string(maxInstructions) +
                                " instructions after inlining");
    if (ast.mnemonic == "ret" && site.caller) {
      flat.push_back({&ast, &site, Flat::Return, &site});
      continue;
    }
    if (ast.mnemonic != "call") {
      flat.push_back({&ast, &site, Flat::Plain, nullptr});
      continue;
    }
    // call (results), function, (arguments)
    size_t at = 0;
    const Operand *results = nullptr, *arguments = nullptr;
    if (at < ast.operands.size() && ast.operands[at].kind == Operand::List &&
        ast.operands.size() > 1)
      results = &ast.operands[at++];
    if (at >= ast.operands.size() || ast.operands[at].kind != Operand::Name)
      return fail(ast.line, "expected the name of a function in 'call'; calls "
                            "through a register are not supported");
    std::string_view name = ast.operands[at++].name;
    if (at < ast.operands.size() && ast.operands[at].kind == Operand::List)
      arguments = &ast.operands[at++];
    if (at != ast.operands.size())
      return fail(ast.line, "unexpected operands of 'call'");
    auto it = module.ast.functionByName.find(name);
    if (it == module.ast.functionByName.end())
      return fail(ast.line, "unknown function '" + std::string(name) + "'");
    const PtxFunction &callee = *it->second;
    if (!callee.hasBody) {
      // __assertfail and the like: the row of 'call' says what happens.
      flat.push_back({&ast, &site, Flat::Plain, nullptr});
      continue;
    }
    for (const Site *s = &site; s; s = s->caller)
      if (s->function == &callee)
        return fail(ast.line, "recursive call of '" + std::string(name) +
                                  "' is not supported");
    if (depth > 64)
      return fail(ast.line, "calls are nested more than 64 deep");
    sites.emplace_back();
    Site &child = sites.back();
    child.function = &callee;
    child.caller = &site;
    auto bind = [&](const std::vector<Variable *> &formal,
                    const Operand *actual, const char *what) {
      size_t n = actual ? actual->elems.size() : 0;
      if (n != formal.size())
        return fail(ast.line, "function '" + std::string(name) + "' has " +
                                  std::to_string(formal.size()) + " " + what +
                                  ", but the call has " + std::to_string(n));
      for (size_t k = 0; k < n; ++k) {
        const Operand &op = actual->elems[k];
        if (op.kind != Operand::Var || op.var->space != Space::Param)
          return fail(ast.line, std::string(what) +
                                    " of a call must be .param variables");
        if (op.var->bytes < formal[k]->bytes)
          return fail(ast.line, "'" + std::string(op.var->name) +
                                    "' is smaller "
                                    "than the parameter of '" +
                                    std::string(name) + "'");
        child.alias[formal[k]] = op.var;
      }
      return true;
    };
    if (!bind(callee.results, results, "results") ||
        !bind(callee.params, arguments, "arguments"))
      return false;
    addRegisters(child);
    if (ast.guard >= 0)
      flat.push_back({&ast, &site, Flat::SkipCall, &child});
    if (!flatten(child, depth + 1))
      return false;
    child.end = uint32_t(flat.size());
  }
  site.flatIndex.push_back(uint32_t(flat.size()));
  return true;
}

bool Decoder::branchTarget(const Flat &f, std::string_view name, uint32_t scope,
                           uint32_t &out) {
  int64_t at = f.site->function->findLabel(scope, name);
  if (at < 0)
    return fail(f.ast->line, "unknown label '" + std::string(name) + "'");
  out = f.site->flatIndex[size_t(at)];
  return true;
}

bool Decoder::collect() {
  if (!collectShared())
    return false;
  static const AstInst branchAst = [] {
    AstInst b;
    b.mnemonic = "bra";
    b.operands.emplace_back();
    b.operands.back().kind = Operand::Name;
    return b;
  }();
  collected.resize(flat.size());
  program.kinds.resize(registers.size());
  for (size_t r = 0; r < registers.size(); ++r)
    program.kinds[r] = registers[r].type == Type::Pred  ? 0
                       : sizeOf(registers[r].type) == 8 ? 2
                                                        : 1;
  for (size_t i = 0; i < flat.size(); ++i) {
    const Flat &f = flat[i];
    Collected &c = collected[i];
    const AstInst &ast = f.kind == Flat::Plain ? *f.ast : branchAst;
    std::string message;
    if (!table.match(ast, c.match, message))
      return fail(f.ast->line, message);
    const Row &row = *c.match.row->row;
    if (row.ptx > module.ast.version)
      return fail(f.ast->line,
                  "'" + std::string(ast.mnemonic) +
                      "' in this form needs PTX " +
                      std::to_string(row.ptx / 10) + "." +
                      std::to_string(row.ptx % 10) + ", but the module is of " +
                      std::to_string(module.ast.version / 10) + "." +
                      std::to_string(module.ast.version % 10));
    if (row.sm > module.ast.targetSM)
      return fail(f.ast->line,
                  "'" + std::string(ast.mnemonic) + "' in this form needs sm_" +
                      std::to_string(row.sm) + ", but the module's target is " +
                      std::string(module.ast.target));
    bool guarded = f.ast->guard >= 0;
    if (f.kind == Flat::Return || f.kind == Flat::SkipCall) {
      c.isBranch = true;
      c.targets.push_back(f.callee->end);
      c.fallsThrough = guarded;
    } else {
      for (size_t k = 0; k < ast.operands.size(); ++k) {
        size_t before = c.operands.size();
        if (!operand(f, c.match.row->operands[k], ast.operands[k], c))
          return false;
        c.counts.push_back(uint32_t(c.operands.size() - before));
      }
      if (ast.mnemonic == "bra") {
        uint32_t target;
        if (!branchTarget(f, ast.operands[0].name, ast.operands[0].scope,
                          target))
          return false;
        c.isBranch = true;
        c.targets.push_back(target);
        c.fallsThrough = guarded;
      } else if (ast.mnemonic == "brx") {
        const Operand &list = ast.operands[1];
        auto it = f.site->function->branchTargets.find(list.name);
        if (it == f.site->function->branchTargets.end())
          return fail(ast.line, "unknown list of branch targets '" +
                                    std::string(list.name) + "'");
        for (auto &[name, scope] : it->second) {
          uint32_t target;
          if (!branchTarget(f, name, scope, target))
            return false;
          c.targets.push_back(target);
        }
        c.fallsThrough = guarded;
      } else if (ast.mnemonic == "exit" || ast.mnemonic == "ret") {
        c.fallsThrough = guarded;
      }
    }
    Program::Step step;
    step.firstUse = uint32_t(program.uses.size());
    step.firstDef = uint32_t(program.defs.size());
    if (guarded)
      program.uses.push_back(f.site->registerBase + uint32_t(f.ast->guard));
    for (const FlatOperand &op : c.operands) {
      if (op.kind != FlatOperand::Register && op.kind != FlatOperand::Predicate)
        continue;
      // A guarded definition keeps what was there.
      if (op.dest && op.read)
        program.uses.push_back(op.reg);
      if (op.dest && !guarded)
        program.defs.push_back(op.reg);
      else if (!op.dest)
        program.uses.push_back(op.reg);
      else
        guardedDefs.push_back({uint32_t(i), op.reg});
    }
    step.useCount = uint32_t(program.uses.size()) - step.firstUse;
    step.defCount = uint32_t(program.defs.size()) - step.firstDef;
    step.targets = c.targets;
    step.fallsThrough = c.fallsThrough;
    program.steps.push_back(std::move(step));
  }
  addGuardedDefs();
  return true;
}

void Decoder::addGuardedDefs() {
  if (guardedDefs.empty())
    return;
  // Rebuild the uses with the guarded definitions among them.
  std::vector<uint32_t> uses, defs;
  size_t g = 0;
  for (uint32_t i = 0; i < program.steps.size(); ++i) {
    Program::Step &s = program.steps[i];
    uint32_t firstUse = uint32_t(uses.size());
    for (uint32_t k = 0; k < s.useCount; ++k)
      uses.push_back(program.uses[s.firstUse + k]);
    for (; g < guardedDefs.size() && guardedDefs[g].first == i; ++g)
      uses.push_back(guardedDefs[g].second);
    s.firstUse = firstUse;
    s.useCount = uint32_t(uses.size()) - firstUse;
  }
  program.uses = std::move(uses);
}

uint32_t Decoder::constant(uint64_t value, bool wide) {
  auto [it, isNew] = constants.try_emplace({value, wide}, 0);
  if (isNew) {
    it->second = kernel.slots;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (wide) {
        kernel.constants.push_back(uint32_t(value));
        kernel.constants.push_back(uint32_t(value >> 32));
      } else {
        kernel.constants.push_back(uint32_t(value));
      }
    }
    kernel.slots += wide ? 2 : 1;
  }
  return it->second;
}

uint32_t Decoder::special(uint32_t which, bool wide) {
  auto [it, isNew] = specials.try_emplace({which, wide}, 0);
  if (isNew) {
    it->second = kernel.slots;
    kernel.specials.push_back({Special(which), kernel.slots, wide});
    kernel.constants.resize(kernel.constants.size() + (wide ? 64 : 32));
    kernel.slots += wide ? 2 : 1;
  }
  return it->second;
}

void Decoder::listTouches() {
  bool any = false;
  for (const Flat &f : flat)
    any |= f.ast->mnemonic == "wgmma";
  if (!any)
    return;
  for (uint32_t r = 0; r < registers.size(); ++r)
    kernel.registerNames.push_back(registerName(r));
  for (size_t i = 0; i < flat.size(); ++i) {
    const AstInst &ast = *flat[i].ast;
    kernel.products.push_back(ast.mnemonic == "wgmma" &&
                              !ast.modifiers.empty() &&
                              ast.modifiers[0] == "mma_async");
    kernel.touchStart.push_back(uint32_t(kernel.touches.size()));
    for (const FlatOperand &op : collected[i].operands)
      if (op.kind == FlatOperand::Register)
        kernel.touches.push_back(op.reg * 2 + op.dest);
  }
  kernel.touchStart.push_back(uint32_t(kernel.touches.size()));
}

bool Decoder::emit(const Assignment &assignment) {
  kernel.virtualRegisters = uint32_t(registers.size());
  // A sink of each width after the registers.
  uint32_t sink = assignment.wordSlots;
  kernel.registerSlots = kernel.slots = assignment.wordSlots + 2;
  kernel.predicates = assignment.predicateSlots + 1;
  uint32_t predicateSink = assignment.predicateSlots;
  std::vector<int32_t> trackedIndex(registers.size(), -1);
  for (uint32_t r : assignment.liveAtEntry) {
    trackedIndex[r] = int32_t(kernel.trackedNames.size());
    kernel.trackedNames.push_back(registerName(r));
  }
  kernel.code.resize(flat.size());
  kernel.source.resize(flat.size());
  listTouches();
  for (size_t i = 0; i < flat.size(); ++i) {
    const Flat &f = flat[i];
    Collected &c = collected[i];
    Inst &inst = kernel.code[i];
    kernel.source[i] = f.ast;
    Builder builder{c.match,
                    *f.ast,
                    inst,
                    {},
                    {},
                    std::move(c.counts),
                    std::move(c.addends),
                    c.addressSpace,
                    c.addressIsVariable,
                    {},
                    kernel.lists};
    inst.imm = c.imm;
    inst.aux = c.aux;
    if (c.address32)
      inst.flags |= Inst::Address32;
    auto track = [&](uint32_t reg, bool write) {
      if (trackedIndex[reg] >= 0)
        kernel.tracked.push_back(
            {uint32_t(i), uint32_t(trackedIndex[reg]), write});
    };
    for (const FlatOperand &op : c.operands)
      if (!op.dest && (op.kind == FlatOperand::Register ||
                       op.kind == FlatOperand::Predicate))
        track(op.reg, false);
    if (f.ast->guard >= 0) {
      uint32_t reg = f.site->registerBase + uint32_t(f.ast->guard);
      bool negated = f.ast->guardNegated != (f.kind == Flat::SkipCall);
      inst.guard = assignment.slots[reg] * 2 + negated;
      track(reg, false);
    }
    for (const FlatOperand &op : c.operands) {
      uint32_t slot = 0;
      switch (op.kind) {
      case FlatOperand::Register:
        slot = assignment.slots[op.reg];
        break;
      case FlatOperand::Predicate:
        slot = assignment.slots[op.reg] * 2 + op.negated;
        break;
      case FlatOperand::PredicateConst:
        slot = (op.value ? 1 : 0) * 2 + op.negated;
        break;
      case FlatOperand::Const:
        slot = constant(op.value, op.wide);
        break;
      case FlatOperand::Special:
        slot = special(uint32_t(op.value), op.wide);
        break;
      case FlatOperand::Sink:
        slot = op.bytes == 0 ? predicateSink * 2 : sink;
        break;
      }
      if (op.dest && (op.kind == FlatOperand::Register ||
                      op.kind == FlatOperand::Predicate))
        track(op.reg, true);
      builder.slots.push_back(slot);
      builder.widths.push_back(op.bytes);
    }
    for (size_t k = 0; k < builder.slots.size() && k < 6; ++k)
      inst.o[k] = builder.slots[k];
    if (builder.slots.size() > 6) {
      kernel.lists.push_back(builder.slots);
      inst.list = kernel.lists.back().data();
    }
    if (!c.targets.empty()) {
      inst.aux = c.targets[0];
      if (!c.isBranch) {
        kernel.lists.push_back(c.targets);
        inst.list = kernel.lists.back().data();
        inst.imm = int64_t(c.targets.size());
      }
    }
    c.match.row->row->build(builder);
    if (!builder.error.empty())
      return fail(f.ast->line, builder.error);
    if (!inst.fn)
      return fail(f.ast->line, "'" + std::string(f.ast->mnemonic) +
                                   "' is not supported with these modifiers");
  }
  return true;
}

bool decodeKernel(const LoadedModule &module, const PtxFunction &function,
                  Kernel &kernel, std::string &error) {
  Decoder decoder(module, function, kernel, error);
  return decoder.run();
}

} // namespace fi::emulator
