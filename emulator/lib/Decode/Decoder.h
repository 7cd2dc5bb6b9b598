//===- Decoder.h - From statements to instructions --------------*- C++ -*-===//
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
#ifndef FI_EMULATOR_DECODE_DECODER_H
#define FI_EMULATOR_DECODE_DECODER_H

#include "Kernel.h"
#include "Table.h"
#include <map>

namespace fi::emulator {

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
  bool dest = false, read = false, negated = false, wide = false;
  uint8_t bytes = 4;
  uint32_t reg = 0;
  uint64_t value = 0;
};

struct SpecialName;

class Decoder {
public:
  Decoder(const LoadedModule &module, const PtxFunction &function,
          Kernel &kernel, std::string &error)
      : module(module), function(function), kernel(kernel), error(error),
        table(Table::get()) {}

  bool run();

private:
  bool fail(uint32_t line, const std::string &message);

  void addRegisters(Site &site);

  bool flatten(Site &site, unsigned depth);

  struct Place {
    Space space = Space::Global;
    uint64_t value = 0;
  };

  bool place(uint32_t line, Site *site, const Variable *var, Place &out);

  /// Static shared variables are placed first; where dynamic memory begins is
  /// known when all are seen.
  bool collectShared();

  std::string registerName(uint32_t reg) const;

  bool findSpecial(const Operand &op, const SpecialName *&found) const;

  /// One value: a register, a constant, a special register.
  bool value(const Flat &f, const Operand &op, Type type, bool dest,
             bool relaxed, FlatOperand &out);

  bool predicate(const Flat &f, const Operand &op, bool dest, FlatOperand &out);

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

  bool address(const Flat &f, const Operand &op, Collected &c);

  /// Flattens operand `op` by its spec.
  bool operand(const Flat &f, const OperandSpec &spec, const Operand &op,
               Collected &c);

  bool branchTarget(const Flat &f, std::string_view name, uint32_t scope,
                    uint32_t &out);

  /// Matches all instructions and records uses and definitions.
  bool collect();

  /// A guarded definition is one that may not happen: the old value stays live.
  /// It counts as a use as well, unless nothing reads the old value, which the
  /// liveness then knows from elsewhere.
  void addGuardedDefs();

  uint32_t constant(uint64_t value, bool wide);

  uint32_t special(uint32_t which, bool wide);

  /// In kernels with wgmma: the registers of every instruction.
  void listTouches();

  bool emit(const Assignment &assignment);

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

} // namespace fi::emulator

#endif // FI_EMULATOR_DECODE_DECODER_H
