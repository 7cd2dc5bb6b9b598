//===- Program.h - the program that a replay runs ---------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A replay runs one level-1 program: paged attention of a step's rows, with or
// without the append of their keys and values before it. The arguments have
// fixed names; sizes, element types and order come from their types, so that a
// user may bring another mask, score or layout in text.
//
//===----------------------------------------------------------------------===//

#ifndef FI_REPLAY_PROGRAM_H
#define FI_REPLAY_PROGRAM_H

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Support/HostTensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <string>

namespace fi::replay {

/// What printProgram writes. Head dims must be multiples of 8, as fi asks.
struct ProgramOptions {
  DType type = DType::F32;
  HeadOrder order = HeadOrder::HND;
  int64_t page = 16;
  int64_t queryHeads = 32, kvHeads = 8, dim = 128;
  /// Whether the program appends the new keys and values itself.
  bool append = true;
};

/// The text of a program that a replay can run: examples/replay.mlir, for other
/// sizes.
std::string printProgram(const ProgramOptions &options);

/// Arguments of a replay's program, by name. `NewKeys` and `NewValues` are
/// absent in a program that does not append; the replay then fills the pages.
enum class Role {
  Rows,      ///< plan %qo: row indptr
  Indptr,    ///< plan %indptr: page indptr
  Pages,     ///< plan %pages
  LastPage,  ///< plan %last
  Query,     ///< run %q: [rows, heads, dim]
  NewKeys,   ///< run %newk: [rows, KV heads, dim]
  NewValues, ///< run %newv
  Keys,      ///< run %k: pool
  Values     ///< run %v
};
inline constexpr unsigned kRoles = 9;
llvm::StringRef getName(Role role);

/// A verified program and the sizes that its types say.
class Program {
public:
  /// Checks that a replay can run `op`: names, types and results. The op must
  /// outlive the object.
  static llvm::Expected<Program> create(ProgramOp op);

  ProgramOp getOp() const { return op; }
  bool hasAppend() const { return arguments[unsigned(Role::NewKeys)] >= 0; }
  /// Index among all arguments, or -1.
  int getArgument(Role role) const { return arguments[unsigned(role)]; }
  DType getQueryType() const { return queryType; }
  DType getKVType() const { return kvType; }
  DType getOutputType() const { return outputType; }
  HeadOrder getOrder() const { return order; }
  int64_t getPageSize() const { return page; }
  int64_t getQueryHeads() const { return queryHeads; }
  int64_t getKVHeads() const { return kvHeads; }
  int64_t getDim() const { return dim; }
  bool hasLse() const { return lse; }
  /// Factor of the scores, where it is a number; else 1 / sqrt(dim).
  double getScale() const { return scale; }

  /// Bytes of the keys and values of one token.
  int64_t getTokenBytes() const {
    return 2 * kvHeads * dim * getByteSize(kvType);
  }
  /// Shape of each pool.
  std::array<int64_t, 4> getPoolShape(int64_t pages) const;
  /// "f32, 32/8 heads x 128, page 16 HND, append and attention"
  std::string describe() const;

private:
  ProgramOp op;
  std::array<int, kRoles> arguments;
  DType queryType = DType::F32, kvType = DType::F32, outputType = DType::F32;
  HeadOrder order = HeadOrder::HND;
  int64_t page = 0, queryHeads = 0, kvHeads = 0, dim = 0;
  bool lse = false;
  double scale = 0;
};

/// Parses and verifies a file's only program (or `name` of it). `text` may be
/// MLIR text or bytecode; `file` is for messages. Diagnostics go into the
/// error.
struct LoadedProgram {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Program program;
};
llvm::Expected<LoadedProgram> parseProgram(mlir::MLIRContext &context,
                                           llvm::StringRef text,
                                           llvm::StringRef file,
                                           llvm::StringRef name = {});

} // namespace fi::replay

#endif // FI_REPLAY_PROGRAM_H
