//===- Decode.cpp - From statements to instructions -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flattens an entry function: device functions are inlined at their calls, so
// that the order of the text is an order of reconvergence and a register is a
// slot. Then matches every instruction with the table, gives registers slots by
// liveness and lets the row's builder choose the handler.
//
//===----------------------------------------------------------------------===//
#include "Kernel.h"
#include "Table.h"

#include <algorithm>
#include <map>

namespace fi::emulator {
namespace {

constexpr size_t maxInstructions = 4 << 20;
constexpr uint64_t maxLocalBytes = 512 << 10;

/// A function inlined at a place.
struct Site {
  const PtxFunction *function = nullptr;
  Site *caller = nullptr;
  uint32_t registerBase = 0;
  /// Formal parameters: what the caller passed.
  std::map<const Variable *, const Variable *> alias;
  std::map<const Variable *, uint32_t> localOffset;
  std::vector<uint32_t> flatIndex;
  uint32_t end = 0;
};

struct Flat {
  const AstInst *ast = nullptr;
  Site *site = nullptr;
  enum Kind : uint8_t { Plain, Return, SkipCall } kind = Plain;
  Site *callee = nullptr;
};

/// An operand before slots are known.
struct FlatOperand {
  enum Kind : uint8_t {
    Register,
    Predicate,
    PredicateConst,
    Const,
    Special,
    Sink
  };
  Kind kind = Const;
  bool dest = false, negated = false, wide = false;
  uint8_t bytes = 4;
  uint32_t reg = 0;
  uint64_t value = 0;
};

struct SpecialName {
  const char *name;
  char component;
  Special which;
  bool wide;
};
const SpecialName specialNames[] = {
    {"%tid", 'x', Special::TidX, false},
    {"%tid", 'y', Special::TidY, false},
    {"%tid", 'z', Special::TidZ, false},
    {"%ntid", 'x', Special::NtidX, false},
    {"%ntid", 'y', Special::NtidY, false},
    {"%ntid", 'z', Special::NtidZ, false},
    {"%ctaid", 'x', Special::CtaidX, false},
    {"%ctaid", 'y', Special::CtaidY, false},
    {"%ctaid", 'z', Special::CtaidZ, false},
    {"%nctaid", 'x', Special::NctaidX, false},
    {"%nctaid", 'y', Special::NctaidY, false},
    {"%nctaid", 'z', Special::NctaidZ, false},
    {"%laneid", 0, Special::Laneid, false},
    {"%warpid", 0, Special::Warpid, false},
    {"%nwarpid", 0, Special::Nwarpid, false},
    {"%smid", 0, Special::Smid, false},
    {"%nsmid", 0, Special::Nsmid, false},
    {"%gridid", 0, Special::Gridid, true},
    {"%lanemask_eq", 0, Special::LanemaskEq, false},
    {"%lanemask_le", 0, Special::LanemaskLe, false},
    {"%lanemask_lt", 0, Special::LanemaskLt, false},
    {"%lanemask_ge", 0, Special::LanemaskGe, false},
    {"%lanemask_gt", 0, Special::LanemaskGt, false},
    {"%dynamic_smem_size", 0, Special::DynamicSmem, false},
    {"%total_smem_size", 0, Special::TotalSmem, false},
    // A grid without clusters has clusters of one CTA.
    {"%clusterid", 'x', Special::CtaidX, false},
    {"%clusterid", 'y', Special::CtaidY, false},
    {"%clusterid", 'z', Special::CtaidZ, false},
    {"%nclusterid", 'x', Special::NctaidX, false},
    {"%nclusterid", 'y', Special::NctaidY, false},
    {"%nclusterid", 'z', Special::NctaidZ, false},
    {"%cluster_ctaid", 'x', Special::Zero, false},
    {"%cluster_ctaid", 'y', Special::Zero, false},
    {"%cluster_ctaid", 'z', Special::Zero, false},
    {"%cluster_nctaid", 'x', Special::One, false},
    {"%cluster_nctaid", 'y', Special::One, false},
    {"%cluster_nctaid", 'z', Special::One, false},
    {"%cluster_ctarank", 0, Special::Zero, false},
    {"%cluster_nctarank", 0, Special::One, false},
    {"%clock", 0, Special::Clock, false},
    {"%clock_hi", 0, Special::ClockHi, false},
    {"%clock64", 0, Special::Clock64, true},
    {"%globaltimer", 0, Special::GlobalTimer, true},
    {"%globaltimer_lo", 0, Special::GlobalTimerLo, false},
    {"%globaltimer_hi", 0, Special::GlobalTimerHi, false},
};

class Decoder {
public:
  Decoder(const LoadedModule &module, const PtxFunction &function,
          Kernel &kernel, std::string &error)
      : module(module), function(function), kernel(kernel), error(error),
        table(Table::get()) {}

  bool run() {
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

private:
  bool fail(uint32_t line, const std::string &message) {
    if (error.empty())
      error = module.ast.name + ":" + std::to_string(line) + ": " + message;
    return false;
  }

  void addRegisters(Site &site) {
    site.registerBase = uint32_t(registers.size());
    registers.insert(registers.end(), site.function->regs.begin(),
                     site.function->regs.end());
  }

  bool flatten(Site &site, unsigned depth) {
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
        return fail(ast.line,
                    "expected the name of a function in 'call'; calls "
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

  struct Place {
    Space space = Space::Global;
    uint64_t value = 0;
  };

  bool place(uint32_t line, Site *site, const Variable *var, Place &out) {
    // A formal parameter is the caller's variable.
    while (site->caller) {
      auto it = site->alias.find(var);
      if (it == site->alias.end())
        break;
      var = it->second;
      site = site->caller;
    }
    if (var->space == Space::Shared) {
      out.space = Space::Shared;
      auto it = sharedOffset.find(var);
      if (it == sharedOffset.end()) {
        uint64_t offset = 0;
        if (var->dynamic) {
          kernel.dynamicAlign =
              std::max(kernel.dynamicAlign, uint32_t(var->align));
          dynamic.push_back(var);
        } else {
          uint64_t at = kernel.sharedBytes;
          at = (at + var->align - 1) / var->align * var->align;
          offset = at;
          if (at + var->bytes > (1 << 20))
            return fail(line, "static shared memory is larger than 1 MiB");
          kernel.sharedBytes = uint32_t(at + var->bytes);
        }
        it = sharedOffset.emplace(var, offset).first;
      }
      out.value = sharedBase + it->second;
      return true;
    }
    if (var->owner == nullptr || var->space == Space::Global ||
        var->space == Space::Const) {
      auto it = module.addresses.find(var);
      if (it == module.addresses.end())
        return fail(line, "variable '" + std::string(var->name) +
                              "' is external and has no address");
      out.space = var->space;
      out.value = it->second;
      return true;
    }
    if (var->space == Space::Param && var->owner == &function &&
        !site->caller &&
        std::find(function.params.begin(), function.params.end(), var) !=
            function.params.end()) {
      out.space = Space::Param;
      out.value = var->offset;
      return true;
    }
    out.space = Space::Local;
    auto it = site->localOffset.find(var);
    if (it == site->localOffset.end()) {
      uint64_t at =
          (kernel.localBytes + var->align - 1) / var->align * var->align;
      if (at + var->bytes > maxLocalBytes)
        return fail(line, "local memory is larger than 512 KiB a thread");
      kernel.localBytes = uint32_t(at + var->bytes);
      it = site->localOffset.emplace(var, uint32_t(at)).first;
    }
    out.value = it->second;
    return true;
  }

  /// Static shared variables are placed first; where dynamic memory begins is
  /// known when all are seen.
  bool collectShared() {
    for (const Flat &f : flat) {
      bool ok = true;
      auto visit = [&](auto &&self, const Operand &op) -> void {
        Place p;
        if (op.kind == Operand::Var && op.var->space == Space::Shared)
          ok = ok && place(f.ast->line, f.site, op.var, p);
        for (const Operand &e : op.elems)
          self(self, e);
      };
      for (const Operand &op : f.ast->operands)
        visit(visit, op);
      if (!ok)
        return false;
    }
    for (const Variable *var : dynamic)
      sharedOffset[var] = kernel.dynamicOffset();
    return true;
  }

  std::string registerName(uint32_t reg) const {
    const Register &r = registers[reg];
    return std::string(r.prefix) + (r.numbered ? std::to_string(r.number) : "");
  }

  bool findSpecial(const Operand &op, const SpecialName *&found) const {
    for (const SpecialName &s : specialNames)
      if (op.name == s.name && op.component == s.component) {
        found = &s;
        return true;
      }
    return false;
  }

  /// One value: a register, a constant, a special register.
  bool value(const Flat &f, const Operand &op, Type type, bool dest,
             bool relaxed, FlatOperand &out) {
    uint32_t line = f.ast->line;
    uint32_t size = sizeOf(type);
    out.dest = dest;
    out.bytes = uint8_t(size);
    out.wide = size == 8;
    auto text = [&] { return "'" + std::string(f.ast->mnemonic) + "'"; };
    if (op.negated)
      return fail(line, "'!' is for predicates");
    if (op.kind == Operand::Sink) {
      if (!dest)
        return fail(line, "'_' is for destinations");
      out.kind = FlatOperand::Sink;
      return true;
    }
    if (op.kind == Operand::Reg) {
      const Register &r = f.site->function->regs[op.reg];
      uint32_t width = sizeOf(r.type);
      out.kind = FlatOperand::Register;
      out.reg = f.site->registerBase + op.reg;
      if (r.type == Type::Pred)
        return fail(line, "expected a register of " + std::to_string(size * 8) +
                              " bits, but '" + registerName(out.reg) +
                              "' is a predicate");
      if (width > 8)
        return fail(line, "registers of 128 bits are not supported");
      if (relaxed ? width < size : width != size)
        return fail(line, "expected a register of " + std::to_string(size * 8) +
                              " bits in " + text() + ", but '" +
                              registerName(out.reg) + "' has " +
                              std::to_string(width * 8));
      out.bytes = uint8_t(width);
      out.wide = width == 8;
      return true;
    }
    if (dest)
      return fail(line, "expected a register as destination of " + text());
    uint64_t v = 0;
    switch (op.kind) {
    case Operand::Int:
      v = uint64_t(op.value);
      if (type == Type::F32) {
        float x = float(op.value);
        std::memcpy(&v, &x, 4);
      } else if (type == Type::F64) {
        double x = double(op.value);
        std::memcpy(&v, &x, 8);
      }
      break;
    case Operand::Float32:
      v = uint64_t(op.value);
      if (type == Type::F64) {
        float x;
        uint32_t bits = uint32_t(op.value);
        std::memcpy(&x, &bits, 4);
        double y = double(x);
        std::memcpy(&v, &y, 8);
      }
      break;
    case Operand::Float64:
      v = uint64_t(op.value);
      if (type == Type::F32) {
        double x;
        std::memcpy(&x, &op.value, 8);
        float y = float(x);
        v = 0;
        std::memcpy(&v, &y, 4);
      }
      break;
    case Operand::Name:
      if (op.name == "WARP_SZ") {
        v = 32;
        break;
      }
      return fail(line, "unknown name '" + std::string(op.name) + "'");
    case Operand::Special: {
      const SpecialName *s = nullptr;
      if (!findSpecial(op, s))
        return fail(line, "unknown register '" + std::string(op.name) +
                              (op.component ? std::string(".") + op.component
                                            : std::string()) +
                              "'");
      if (s->which > Special::LastStatic)
        return fail(line,
                    "'" + std::string(op.name) + "' is read by 'mov' alone");
      out.kind = FlatOperand::Special;
      out.value = uint64_t(s->which);
      return true;
    }
    case Operand::Var: {
      Place p;
      if (!place(line, f.site, op.var, p))
        return false;
      v = p.value + uint64_t(op.value);
      // The address of a parameter of a device function is only ever used as a
      // generic one.
      if (op.var->space == Space::Param && p.space == Space::Local)
        v |= localWindow;
      if (size < 8 && p.space != Space::Shared && p.space != Space::Local)
        return fail(line, "the address of '" + std::string(op.var->name) +
                              "' needs 64 bits");
      break;
    }
    default:
      return fail(line, "expected a register or a number in " + text());
    }
    if (size == 4)
      v &= 0xffffffffu;
    else if (size == 2)
      v &= 0xffff;
    else if (size == 1)
      v &= 0xff;
    out.kind = FlatOperand::Const;
    out.value = v;
    return true;
  }

  bool predicate(const Flat &f, const Operand &op, bool dest,
                 FlatOperand &out) {
    uint32_t line = f.ast->line;
    out.dest = dest;
    out.bytes = 0;
    out.negated = op.negated;
    if (op.kind == Operand::Sink && dest) {
      out.kind = FlatOperand::Sink;
      return true;
    }
    if (op.kind == Operand::Int && !dest) {
      out.kind = FlatOperand::PredicateConst;
      out.value = op.value != 0;
      return true;
    }
    if (op.kind != Operand::Reg ||
        f.site->function->regs[op.reg].type != Type::Pred)
      return fail(
          line, "expected a predicate in '" + std::string(f.ast->mnemonic) +
                    "'" +
                    (op.kind == Operand::Reg
                         ? ", but got '" +
                               registerName(f.site->registerBase + op.reg) + "'"
                         : std::string()));
    if (dest && op.negated)
      return fail(line, "a destination cannot be negated");
    out.kind = FlatOperand::Predicate;
    out.reg = f.site->registerBase + op.reg;
    return true;
  }

  struct Collected {
    Match match;
    std::vector<FlatOperand> operands;
    std::vector<uint32_t> counts;
    Space addressSpace = Space::Generic;
    bool addressIsVariable = false;
    bool address32 = false;
    int64_t imm = 0;
    std::vector<int64_t> addends;
    uint32_t aux = 0;
    std::vector<uint32_t> targets;
    bool fallsThrough = true;
    bool isBranch = false;
  };

  bool address(const Flat &f, const Operand &op, Collected &c) {
    uint32_t line = f.ast->line;
    if (op.kind != Operand::Address || op.elems.empty())
      return fail(line, "expected an address in '" +
                            std::string(f.ast->mnemonic) + "'");
    const Operand &base = op.elems[0];
    FlatOperand out;
    c.imm = op.value;
    if (base.kind == Operand::Reg) {
      const Register &r = f.site->function->regs[base.reg];
      if (r.type == Type::Pred || (sizeOf(r.type) != 4 && sizeOf(r.type) != 8))
        return fail(line, "expected an address of 32 or 64 bits, but got '" +
                              registerName(f.site->registerBase + base.reg) +
                              "'");
      out.kind = FlatOperand::Register;
      out.reg = f.site->registerBase + base.reg;
      out.bytes = uint8_t(sizeOf(r.type));
      out.wide = out.bytes == 8;
      c.address32 = !out.wide;
    } else if (base.kind == Operand::Var) {
      Place p;
      if (!place(line, f.site, base.var, p))
        return false;
      c.addressSpace = p.space;
      c.addressIsVariable = true;
      out.kind = FlatOperand::Const;
      out.wide = true;
      out.bytes = 8;
      out.value = p.value + uint64_t(base.value) + uint64_t(op.value);
      c.imm = 0;
    } else if (base.kind == Operand::Int) {
      out.kind = FlatOperand::Const;
      out.wide = true;
      out.bytes = 8;
      out.value = uint64_t(base.value) + uint64_t(op.value);
      c.imm = 0;
    } else {
      return fail(line,
                  "expected a register or a variable as address" +
                      (base.name.empty()
                           ? std::string()
                           : ", but got '" + std::string(base.name) + "'"));
    }
    c.addends.push_back(c.imm);
    c.operands.push_back(out);
    return true;
  }

  /// Flattens operand `op` by its spec.
  bool operand(const Flat &f, const OperandSpec &spec, const Operand &op,
               Collected &c) {
    uint32_t line = f.ast->line;
    Type type = spec.type;
    if (spec.which == 't')
      type = c.match.last;
    else if (spec.which == 'u')
      type = c.match.first;
    else if (spec.which == 'w')
      type = sizeOf(c.match.last) == 2 ? Type::B32 : Type::B64;
    auto one = [&](const Operand &o, Type t) {
      FlatOperand out;
      if (t == Type::Pred ? !predicate(f, o, spec.dest, out)
                          : !value(f, o, t, spec.dest, spec.wide, out))
        return false;
      c.operands.push_back(out);
      return true;
    };
    if (op.second && spec.kind != OperandSpec::DestPred)
      return fail(line,
                  "unexpected '|' in '" + std::string(f.ast->mnemonic) + "'");
    switch (spec.kind) {
    case OperandSpec::Pred:
      return one(op, Type::Pred);
    case OperandSpec::DestPred: {
      if (!one(op, type))
        return false;
      FlatOperand out;
      if (!op.second) {
        out.kind = FlatOperand::Sink;
        out.dest = true;
        out.bytes = 0;
      } else if (!predicate(f, *op.second, true, out)) {
        return false;
      }
      c.operands.push_back(out);
      return true;
    }
    case OperandSpec::Value:
      return one(op, type);
    case OperandSpec::Vector:
      if (op.kind != Operand::Vector)
        return one(op, type);
      for (const Operand &e : op.elems)
        if (!one(e, type))
          return false;
      return true;
    case OperandSpec::Address:
      return address(f, op, c);
    case OperandSpec::Name:
      return true;
    case OperandSpec::Any: {
      // mov: each by its own width.
      auto any = [&](const Operand &o) {
        if (o.kind == Operand::Reg)
          return one(o, f.site->function->regs[o.reg].type);
        if (o.kind == Operand::Special) {
          const SpecialName *s = nullptr;
          if (findSpecial(o, s) && s->which > Special::LastStatic) {
            c.aux = uint32_t(s->which);
            return true;
          }
        }
        return one(o, type == Type::None ? c.match.last : type);
      };
      if (op.kind != Operand::Vector)
        return any(op);
      for (const Operand &e : op.elems)
        if (!any(e))
          return false;
      return true;
    }
    }
    return true;
  }

  bool branchTarget(const Flat &f, std::string_view name, uint32_t scope,
                    uint32_t &out) {
    int64_t at = f.site->function->findLabel(scope, name);
    if (at < 0)
      return fail(f.ast->line, "unknown label '" + std::string(name) + "'");
    out = f.site->flatIndex[size_t(at)];
    return true;
  }

  /// Matches all instructions and records uses and definitions.
  bool collect() {
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
        return fail(
            f.ast->line,
            "'" + std::string(ast.mnemonic) + "' in this form needs PTX " +
                std::to_string(row.ptx / 10) + "." +
                std::to_string(row.ptx % 10) + ", but the module is of " +
                std::to_string(module.ast.version / 10) + "." +
                std::to_string(module.ast.version % 10));
      if (row.sm > module.ast.targetSM)
        return fail(f.ast->line, "'" + std::string(ast.mnemonic) +
                                     "' in this form needs sm_" +
                                     std::to_string(row.sm) +
                                     ", but the module's target is " +
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
        if (op.kind != FlatOperand::Register &&
            op.kind != FlatOperand::Predicate)
          continue;
        // A guarded definition keeps what was there.
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

  /// A guarded definition is one that may not happen: the old value stays live.
  /// It counts as a use as well, unless nothing reads the old value, which the
  /// liveness then knows from elsewhere.
  void addGuardedDefs() {
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

  uint32_t constant(uint64_t value, bool wide) {
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

  uint32_t special(uint32_t which, bool wide) {
    auto [it, isNew] = specials.try_emplace({which, wide}, 0);
    if (isNew) {
      it->second = kernel.slots;
      kernel.specials.push_back({Special(which), kernel.slots, wide});
      kernel.constants.resize(kernel.constants.size() + (wide ? 64 : 32));
      kernel.slots += wide ? 2 : 1;
    }
    return it->second;
  }

  bool emit(const Assignment &assignment) {
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
                      {}};
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

  const LoadedModule &module;
  const PtxFunction &function;
  Kernel &kernel;
  std::string &error;
  const Table &table;
  std::deque<Site> sites;
  std::vector<Register> registers;
  std::vector<Flat> flat;
  std::vector<Collected> collected;
  Program program;
  std::vector<std::pair<uint32_t, uint32_t>> guardedDefs;
  std::map<const Variable *, uint64_t> sharedOffset;
  std::vector<const Variable *> dynamic;
  std::map<std::pair<uint64_t, bool>, uint32_t> constants;
  std::map<std::pair<uint32_t, bool>, uint32_t> specials;
};

} // namespace

bool decodeKernel(const LoadedModule &module, const PtxFunction &function,
                  Kernel &kernel, std::string &error) {
  Decoder decoder(module, function, kernel, error);
  return decoder.run();
}

} // namespace fi::emulator
