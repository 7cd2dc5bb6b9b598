//===- Batch.h - descriptions of batches in JSON and CSV --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a user writes down about a batch: values of a program's arguments, or
// the lengths of its requests, from which tables are made
// (fi/Execution/Inputs.h). docs/fi-run.md describes the files.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_BATCH_H
#define FI_SUPPORT_BATCH_H

#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace fi {

/// Where the value of an argument comes from.
struct ArgumentSource {
  enum class Kind { Values, Npy, Npz, Normal, Uniform, Fill };
  Kind kind = Kind::Values;
  /// Values: a number or nested arrays of numbers, rectangular.
  llvm::json::Value values = nullptr;
  /// Npy and Npz: the file and the array's name in it.
  std::string file, member;
  /// Normal: mean and deviation; Uniform: low and high; Fill: the value.
  double first = 0, second = 1;
  std::optional<uint64_t> seed;
  /// The shape, if stated.
  std::optional<llvm::SmallVector<int64_t, 4>> shape;
};

struct RequestLengths {
  int64_t queryLength = 0, keyLength = 0;
};

struct Batch {
  /// The file, for messages; paths in it are relative to its directory.
  std::string name;
  std::string program;
  std::optional<uint64_t> seed;
  std::optional<int64_t> pageSize;
  /// Pages of a pool, where tables are made; at least what the batch needs.
  std::optional<int64_t> poolPages;
  /// Whether made tables use pages in shuffled order, as a used pool does.
  bool shufflePages = true;
  std::vector<RequestLengths> requests;
  bool hasRequests = false;
  std::vector<std::pair<std::string, ArgumentSource>> arguments;

  const ArgumentSource *find(llvm::StringRef argument) const;
};

llvm::Expected<Batch> parseBatchJson(llvm::StringRef text,
                                     llvm::StringRef name);
/// A head line `q_len,kv_len`, then a line a request. `#` begins a comment.
llvm::Expected<Batch> parseBatchCsv(llvm::StringRef text, llvm::StringRef name);
/// By the ending of the name: `.csv`, else JSON.
llvm::Expected<Batch> readBatch(llvm::StringRef path);

/// Makes the tensor of an argument. `shape` is what the program says, -1 for a
/// size that is not known; it is checked. Values and files may have any integer
/// or float type whose values the wanted type holds: integers must fit, floats
/// are rounded. `defaultSeed` is for a random source without a seed.
llvm::Expected<HostTensor> makeTensor(const ArgumentSource &source,
                                      llvm::StringRef argument, DType type,
                                      llvm::ArrayRef<int64_t> shape,
                                      uint64_t defaultSeed);

/// Checks a tensor against what a program says of an argument, and converts its
/// elements if they have another type. `origin` says where it comes from.
llvm::Expected<HostTensor> convertTensor(const HostTensor &tensor,
                                         llvm::StringRef argument, DType type,
                                         llvm::ArrayRef<int64_t> shape,
                                         llvm::StringRef origin);

/// "[?, 4, 64]"
std::string formatShape(llvm::ArrayRef<int64_t> shape);

} // namespace fi

#endif // FI_SUPPORT_BATCH_H
