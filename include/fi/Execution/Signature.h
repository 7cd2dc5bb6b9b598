//===- Signature.h - what a program takes and gives -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments and results of a program, and which argument plays which role in
// its attentions and appends, read from the program's text or from the manifest
// of a package alike. Tools make and check inputs from it.
//
//===----------------------------------------------------------------------===//

#ifndef FI_EXECUTION_SIGNATURE_H
#define FI_EXECUTION_SIGNATURE_H

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace fi {

struct ArgumentInfo {
  enum class Kind { Tensor, Pool, Scalar };
  std::string name;
  bool isPlan = false;
  Kind kind = Kind::Tensor;
  DType type = DType::F32;
  /// -1: known at run time.
  llvm::SmallVector<int64_t, 4> shape;
};

struct ResultInfo {
  std::string name;
  DType type = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  /// The argument with as many rows, or the scalar that says how many.
  int rowsOf = -1;
};

/// A KV view. Operands are indices of arguments; -1: absent.
struct ViewInfo {
  bool isPaged = false, isDense = false, isFused = false, isHND = false;
  /// Keys of a page; -1: from the pool's shape.
  int64_t page = -1;
  int64_t heads = 0;
  int keys = -1, values = -1;
  /// In pages, or in tokens where the view is ragged.
  int indptr = -1;
  int pages = -1, last = -1, lengths = -1, origin = -1;
  /// Pages of values, where they have a table of their own.
  int valuePages = -1;
  /// Pool of the last columns of keys, where they lie apart.
  int tail = -1;
  /// Whether pools have a dimension of heads.
  bool hasHeads = true;
  /// Of block-sparse views: the size of a block (0: it is none), lists.
  int64_t blockRows = 0, blockColumns = 0;
  int rowIndptr = -1, columns = -1;

  /// The dimension of a pool along which keys lie in a page, or tokens.
  int64_t getKeyDimension() const {
    return (isPaged ? (isFused ? 2 : 1) : 0) + (isHND && hasHeads ? 1 : 0);
  }
  struct Pool {
    /// Arguments; tables of pages are -1 where there are none.
    int pool, pages;
  };
  /// Pools of keys, values and the keys' last columns, each with its table.
  llvm::SmallVector<Pool, 3> getPools() const {
    llvm::SmallVector<Pool, 3> pools = {
        {keys, pages}, {values, valuePages >= 0 ? valuePages : pages}};
    if (tail >= 0)
      pools.push_back({tail, pages});
    return pools;
  }
  /// Of keys and of values; whether they are scaled at all, and by what (known
  /// from the text only): numbers of f32, and scales of blocks of so many
  /// columns.
  struct Scales {
    bool isScaled = false;
    int argument = -1;
    bool isPerPage = false;
    int blocks = -1;
    int64_t block = 0;
  };
  Scales scales[2];
};

struct AttentionInfo {
  int query = -1, rows = -1, positions = -1, scale = -1;
  /// The query's last columns, where they are an argument of their own.
  int queryTail = -1;
  /// Of a query that the program computes (known from the text only): the
  /// argument that has as many rows, its heads and its type.
  int queryRows = -1;
  int64_t queryHeads = 0;
  std::optional<DType> queryType;
  /// Elements of a query row, in all.
  int64_t dim = 0;
  ViewInfo view;
  /// Results of the program, -1 where the output goes elsewhere.
  int output = -1, lse = -1;
  /// Arguments that receive the outputs, where the query is a memref.
  llvm::SmallVector<int, 2> outs;
  /// Known from a program's text only: the scale where it is a number, whether
  /// scores are the scaled product alone and the statistic is of them, values
  /// that regions read, sinks that are finalised with its state, whether the
  /// statistic is in base e, whether weights are not normalised.
  std::optional<double> scaleNumber;
  bool hasPlainScores = false;
  /// The soft cap of scores; 0 if they have none (known from the text only).
  double softcap = 0;
  /// The largest number that a region of scores adds or subtracts (known from
  /// the text only).
  double largestAddend = 0;
  /// Whether a region transforms queries or keys (known from the text only).
  bool hasTransforms = false;
  llvm::SmallVector<int, 2> captures, sinks;
  bool isBaseE = false, isAdditive = false;
};

struct AppendInfo {
  int keys = -1, values = -1, rows = -1;
  ViewInfo view;
};

/// A norm of rows. Known from a program's text only.
struct NormInfo {
  /// Arguments, or -1 of what there is not or is computed.
  int input = -1, addend = -1, weight = -1, bias = -1, scales = -1;
  /// Results of the program, or -1 where they go elsewhere: of the norm, and of
  /// the sum with `addend`.
  int result = -1, sum = -1;
  /// Arguments that they are written to instead.
  std::vector<int> outs;
  int64_t dim = 0;
  double epsilon = 0;
  bool hasAddend = false, plusOne = false, centred = false, isCoded = false;
};

/// What stands beside attention, but for norms. Known from a program's text
/// only.
struct CompanionInfo {
  /// Arguments that have as many rows as its results, -1 for what is none.
  llvm::SmallVector<int, 2> rows;
  /// Arguments that results are written to.
  llvm::SmallVector<int, 2> outs;
};

struct Signature {
  std::string program;
  std::vector<ArgumentInfo> arguments;
  std::vector<ResultInfo> results;
  std::vector<AttentionInfo> attentions;
  std::vector<AppendInfo> appends;
  std::vector<NormInfo> norms;
  std::vector<CompanionInfo> companions;

  /// The argument with that name, or -1.
  int find(llvm::StringRef argument) const;
  /// The views of attentions and appends.
  std::vector<ViewInfo> getViews() const;
};

llvm::Expected<Signature> getSignature(ProgramOp program);
/// Of the program `name` (the only one, if empty), or of a module at level 2,
/// of its fi_tile.package.
llvm::Expected<Signature> getSignature(mlir::ModuleOp module,
                                       llvm::StringRef name);
/// From a manifest (docs/abi.md).
llvm::Expected<Signature> parseSignature(llvm::StringRef manifest);

/// The package of a module at level 2, which has one.
llvm::Expected<tile::PackageOp> findPackage(mlir::ModuleOp module,
                                            llvm::StringRef name);
/// The program of that name; if the name is empty, the only one.
llvm::Expected<ProgramOp> findProgram(mlir::ModuleOp module,
                                      llvm::StringRef name);

} // namespace fi

#endif // FI_EXECUTION_SIGNATURE_H
