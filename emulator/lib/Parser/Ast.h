//===- Ast.h - PTX as it was written ----------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the parser makes of a module: variables, functions and instructions with
// names resolved to registers and variables, modifiers still as text. Names are
// views into the module's text, which the module keeps.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_PARSER_AST_H
#define FI_EMULATOR_PARSER_AST_H

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fi::emulator {

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F64,
};

/// The type that a modifier or a declaration names; None if it names none.
Type parseType(std::string_view text);
/// Bytes of a value; 0 for predicates.
uint32_t sizeOf(Type type);
bool isFloat(Type type);
bool isSigned(Type type);

/// A position of the user's source, from `.loc`.
struct SourceLoc {
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t column = 0;
  /// Where the function was inlined: an index into PtxModule::locations, or -1.
  int32_t inlinedAt = -1;
};

enum class Space : uint8_t { Generic, Global, Shared, Local, Param, Const };

struct PtxFunction;

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Type type = Type::B8;
  uint64_t align = 1;
  uint64_t bytes = 0;
  /// Parameters of a kernel: where it lies in the buffer.
  uint64_t offset = 0;
  /// `.extern .shared x[]`: all of the dynamic shared memory.
  bool dynamic = false;
  bool isExtern = false;
  uint32_t line = 0;
  std::vector<uint8_t> init;
  /// Addresses within `init`: variable, byte offset, addend, as a generic
  /// address.
  struct Address {
    uint64_t at;
    std::string_view name;
    int64_t addend;
  };
  std::vector<Address> addresses;
  /// The function whose variable it is; null for the module's.
  const PtxFunction *owner = nullptr;
  /// Index among the owner's variables.
  uint32_t index = 0;
};

struct Operand {
  enum Kind : uint8_t {
    Reg,     // reg
    Int,     // value
    Float32, // value: the bits
    Float64, // value: the bits
    Var,     // var + value
    Name,    // a function, a label or what the opcode says
    Special, // name, component
    Vector,  // elems
    Address, // elems[0] + value
    Sink,    // _
    List,    // (a, b), of a call
  };
  Kind kind = Int;
  /// `!%p` (or `-%r` is refused).
  bool negated = false;
  char component = 0;
  uint32_t reg = 0;
  /// The scope of a name, for labels.
  uint32_t scope = 0;
  int64_t value = 0;
  const Variable *var = nullptr;
  std::string_view name;
  std::vector<Operand> elems;
  /// `%r1|%p1`.
  std::unique_ptr<Operand> second;

  Operand() = default;
  Operand(Operand &&) = default;
  Operand &operator=(Operand &&) = default;
};

struct AstInst {
  uint32_t line = 0;
  int32_t loc = -1;
  int32_t guard = -1;
  bool guardNegated = false;
  /// `ld`, and `global`, `nc`, `v4`, `u32`.
  std::string_view mnemonic;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
};

struct Register {
  std::string_view prefix;
  uint32_t number = 0;
  bool numbered = false;
  Type type = Type::B32;
};

struct PtxFunction {
  std::string_view name;
  uint32_t line = 0;
  bool isEntry = false;
  bool hasBody = false;
  std::vector<Variable *> results;
  std::vector<Variable *> params;
  uint64_t paramBytes = 0;
  uint32_t maxThreads[3] = {0, 0, 0};
  uint32_t reqThreads[3] = {0, 0, 0};
  /// .maxnreg and .minnctapersm; 0: not given.
  uint32_t maxRegisters = 0, minBlocks = 0;
  std::vector<Register> regs;
  std::deque<Variable> variables;
  std::vector<AstInst> body;
  /// Parent of each scope; scope 0 is the function's.
  std::vector<uint32_t> scopes;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> labels;
  std::map<std::string_view, std::vector<std::pair<std::string_view, uint32_t>>>
      branchTargets;

  /// Where a label is, as seen from a scope; -1 if nowhere.
  int64_t findLabel(uint32_t scope, std::string_view label) const;
};

struct PtxModule {
  std::string name;
  std::string text;
  uint32_t version = 0; // 8.0 is 80
  std::string_view target;
  uint32_t targetSM = 0;
  std::deque<Variable> variables;
  std::unordered_map<std::string_view, Variable *> variableByName;
  std::deque<PtxFunction> functions;
  std::unordered_map<std::string_view, PtxFunction *> functionByName;
  std::unordered_map<uint32_t, std::string> files;
  std::vector<SourceLoc> locations;
};

/// Parses a module. False: `error` says where and what.
bool parseModule(std::string name, std::string text, PtxModule &module,
                 std::string &error);

} // namespace fi::emulator

#endif // FI_EMULATOR_PARSER_AST_H
