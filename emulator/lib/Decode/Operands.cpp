//===- Operands.cpp - Registers, constants and addresses ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Decoder.h"

#include <algorithm>

namespace fi::emulator {

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

bool Decoder::place(uint32_t line, Site *site, const Variable *var,
                    Place &out) {
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
  if (var->space == Space::Param && var->owner == &function && !site->caller &&
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

bool Decoder::collectShared() {
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

std::string Decoder::registerName(uint32_t reg) const {
  const Register &r = registers[reg];
  return std::string(r.prefix) + (r.numbered ? std::to_string(r.number) : "");
}

bool Decoder::findSpecial(const Operand &op, const SpecialName *&found) const {
  for (const SpecialName &s : specialNames)
    if (op.name == s.name && op.component == s.component) {
      found = &s;
      return true;
    }
  return false;
}

bool Decoder::value(const Flat &f, const Operand &op, Type type, bool dest,
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
  const SpecialName *special = nullptr;
  if (op.kind == Operand::Special && !findSpecial(op, special))
    return fail(line, "unknown register '" + std::string(op.name) + "'");
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

bool Decoder::predicate(const Flat &f, const Operand &op, bool dest,
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
        line, "expected a predicate in '" + std::string(f.ast->mnemonic) + "'" +
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

bool Decoder::address(const Flat &f, const Operand &op, Collected &c) {
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
    return fail(line, "expected a register or a variable as address" +
                          (base.name.empty()
                               ? std::string()
                               : ", but got '" + std::string(base.name) + "'"));
  }
  c.addends.push_back(c.imm);
  c.operands.push_back(out);
  return true;
}

bool Decoder::operand(const Flat &f, const OperandSpec &spec, const Operand &op,
                      Collected &c) {
  uint32_t line = f.ast->line;
  Type type = spec.type;
  if (spec.which == 't')
    type = c.match.last;
  else if (spec.which == 'u')
    type = c.match.first;
  else if (spec.which == 'w')
    type = sizeOf(c.match.last) == 2 ? Type::B32 : Type::B64;
  else if (spec.which == 'g')
    type = op.kind == Operand::Vector ? Type::B32 : Type::B64;
  auto one = [&](const Operand &o, Type t) {
    FlatOperand out;
    out.read = spec.read;
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
  case OperandSpec::TensorAddress: {
    if (!address(f, op, c))
      return false;
    if (op.elems.size() != 2 || op.elems[1].kind != Operand::Vector)
      return fail(line, "expected a tensor map and coordinates, [map, {x, "
                        "...}], in '" +
                            std::string(f.ast->mnemonic) + "'");
    for (const Operand &e : op.elems[1].elems)
      if (!one(e, Type::B32))
        return false;
    return true;
  }
  case OperandSpec::Address:
    if (op.kind == Operand::Address && op.elems.size() > 1)
      return fail(line, "unexpected coordinates in '" +
                            std::string(f.ast->mnemonic) + "'");
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
      if (op.kind == Operand::Vector) {
        // A part of the whole.
        size_t bytes =
            sizeOf(c.match.last) / std::max<size_t>(op.elems.size(), 1);
        return one(o, bytes == 4   ? Type::B32
                      : bytes == 2 ? Type::B16
                                   : Type::B8);
      }
      if (type != Type::None)
        return one(o, type);
      return one(o, c.match.last == Type::None ? Type::B32 : c.match.last);
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

} // namespace fi::emulator
