//===- Model.h - the programs of a model ------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From the shapes of a model, as JSON (docs/fi-compile.md), to the programs of
// level 1 that a server of it runs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_MODEL_MODEL_H
#define FI_MODEL_MODEL_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fi::model {

struct Rope {
  double theta = 0;
  int64_t dims = 0;
  std::string pairs = "half";
  /// The attribute of a scaling, `#fi.yarn<...>`; empty: none.
  std::string scaling;
};

/// A kind of layer.
struct Layer {
  std::string name;
  /// Keys that a query sees; 0: all.
  int64_t window = 0;
  std::optional<Rope> rope;
};

struct Norms {
  std::vector<int64_t> dims;
  double eps = 1e-6;
  bool plusOne = false;
};

struct Gate {
  int64_t dim = 0;
  std::string activation = "silu";
};

struct Latent {
  int64_t rank = 0, ropeDim = 0, nopeDim = 0, valueDim = 0;
};

/// Shapes of a rank.
struct Model {
  std::string name, dtype = "bf16", layout = "NHD";
  std::vector<std::string> kvTypes;
  int64_t pageSize = 16;
  int64_t queryHeads = 0, kvHeads = 0, headDim = 0;
  double scale = 0, softcap = 0;
  bool hasSinks = false, hasHeadNorms = false;
  std::vector<Layer> layers;
  std::optional<Norms> norms;
  std::optional<Gate> gate;
  std::optional<Latent> latent;
};

/// What a command line says instead of the file.
struct Overrides {
  int64_t pageSize = 0, tensorParallel = 0;
  std::vector<std::string> kvTypes;
};

/// Reads a model. An error names `file` and the key.
llvm::Expected<Model> parseModel(llvm::StringRef json, llvm::StringRef file,
                                 const Overrides &overrides = {});

struct Program {
  std::string name;
  /// MLIR at level 1, with this program alone.
  std::string text;
};

/// The programs of a model; of those with equal texts the first.
std::vector<Program> makePrograms(const Model &model);

} // namespace fi::model

#endif // FI_MODEL_MODEL_H
