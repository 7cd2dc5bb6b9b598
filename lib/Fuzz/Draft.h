//===- Draft.h - a random program under construction ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the axes of random programs write to: arguments with their values,
// operations, and the facts that several axes need.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_FUZZ_DRAFT_H
#define FI_LIB_FUZZ_DRAFT_H

#include "fi/Fuzz/Program.h"
#include "llvm/Support/JSON.h"

namespace fi::fuzz {

/// Keys and values of an attention.
struct ViewDraft {
  /// "%kv0" and its type.
  std::string value, type;
  /// Names of the pools, of which the second is empty if they are fused.
  std::string keys, values;
  /// Keys of each request, and the position of the first of them.
  std::vector<int64_t> lengths, origins;
  std::string keyElement, valueElement;
  /// Elements of what is appended.
  std::string newKeys, newValues;
  bool isPaged = false;
};

/// Rows of a query that belong to requests, as an indptr.
struct RowsDraft {
  /// Empty: one request, all rows.
  std::string value;
  std::vector<int64_t> offsets;
};

class Draft {
public:
  Draft(Choices &choices, Family family) : choices(choices), family(family) {}

  //===--- Choices, with the prefix of what is being drawn
  //-----------------===//
  int64_t choose(const llvm::Twine &name, int64_t count) {
    return choices.choose(scope + name, count);
  }
  bool flag(const llvm::Twine &name, int64_t in = 2) {
    return choices.flag(scope + name, in);
  }
  int64_t rarely(const llvm::Twine &name, int64_t in, int64_t count) {
    return choices.rarely(scope + name, in, count);
  }
  template <typename T, size_t N>
  T pick(const llvm::Twine &name, const T (&from)[N]) {
    return choices.pick(scope + name, from);
  }
  Choices &choices;
  const Family family;
  std::string scope;

  //===--- Text
  //------------------------------------------------------------===//
  /// Adds an argument once; returns it as a value, "%qo".
  std::string plan(const std::string &name, const std::string &type,
                   llvm::json::Value value);
  std::string run(const std::string &name, const std::string &type,
                  llvm::json::Value value);
  /// The type of an argument, "%qo".
  std::string typeOf(const std::string &value) const;
  /// Adds a line to the program's body.
  void add(const std::string &line) { body += "  " + line + "\n"; }
  /// A value of the body that is a result of the program.
  void result(const std::string &value, const std::string &type) {
    results.push_back({value, type});
  }
  /// A name of the body that was not used yet.
  std::string fresh(const std::string &prefix) {
    return "%" + prefix + std::to_string(counter++);
  }
  RandomProgram finish();

  //===--- Facts
  //-----------------------------------------------------------===//
  std::string indexType = "i32";
  int64_t kvHeads = 1, group = 1, keyDim = 8, valueDim = 8;
  std::string queryElement = "f32", outputElement = "f32";
  /// Rows of the query, those of no request included.
  int64_t rows = 0;
  /// Whether weights are not normalised: values then stay small.
  bool isAdditive = false;
  std::string target;
  RandomProgram made;
  std::vector<std::pair<int64_t, int64_t>> requests;

  int64_t heads() const { return kvHeads * group; }
  std::string indexTensor() const { return "tensor<?x" + indexType + ">"; }
  std::string rowsType(int64_t dim, const std::string &element,
                       bool isPlace = false) const {
    return (isPlace ? "memref<?x" : "tensor<?x") + std::to_string(heads()) +
           "x" + std::to_string(dim) + "x" + element + ">";
  }
  std::string statisticType(bool isPlace = false) const {
    return (isPlace ? "memref<?x" : "tensor<?x") + std::to_string(heads()) +
           "xf32>";
  }

private:
  struct Argument {
    std::string name, type;
  };
  std::vector<Argument> planArguments, runArguments;
  llvm::json::Object values;
  std::string body;
  std::vector<std::pair<std::string, std::string>> results;
  int counter = 0;
};

llvm::json::Array toJson(llvm::ArrayRef<int64_t> values);
/// Rows of `width` integers each, which may be none.
llvm::json::Value toJson(llvm::ArrayRef<std::vector<int64_t>> rows,
                         int64_t width);

//===--- Data.cpp
//----------------------------------------------------------===//

/// Seeded floats of a shape (empty: as the program says).
llvm::json::Value drawQueries(Draft &draft, const std::string &name,
                              llvm::ArrayRef<int64_t> shape);
llvm::json::Value drawValues(Draft &draft, const std::string &name,
                             llvm::ArrayRef<int64_t> shape);
llvm::json::Value normal(double deviation, llvm::ArrayRef<int64_t> shape);
/// Lengths of the requests.
void drawRequests(Draft &draft);

//===--- Views.cpp
//---------------------------------------------------------===//

struct ViewOptions {
  /// Memory that is written: each slot belongs to one key.
  bool isWritten = false;
  /// Of one request with all keys.
  std::vector<int64_t> lengths;
  /// Positions before the first key are other keys'.
  std::vector<int64_t> origins;
  /// Rows of each request, where the view may be of blocks of rows and keys.
  std::vector<int64_t> rows;
  /// Columns of keys that lie apart: a view of latents and tails.
  int64_t tailDim = 0;
};
ViewDraft drawView(Draft &draft, ViewOptions options);

//===--- Attention.cpp
//-----------------------------------------------------===//

struct AttentionOptions {
  /// "%q" and its type.
  std::string query, queryType;
  RowsDraft rows;
  /// The normaliser, "" for the default.
  std::string normaliser;
  bool hasSinks = true;
  /// Clauses before and behind: "segments(%g) ", "outs(...) ".
  std::string segments, outs;
  bool hasSplit = true;
  bool hasTransforms = true;
};
/// "#fi.softmax<base = 2>" or another one.
std::string drawNormaliser(Draft &draft);
/// The attention but for its results: " : !q over !kv -> " is the caller's.
std::string drawAttention(Draft &draft, const ViewDraft &view,
                          const AttentionOptions &options);
/// "sink(%sink : ...) " or nothing.
std::string drawSink(Draft &draft);

//===--- Rows.cpp
//----------------------------------------------------------===//

/// What `makeRows` makes, from 1 on: gates, rotary embeddings, codes, bits.
inline constexpr int64_t kRowsKinds = 4;
void makeRows(Draft &draft, int64_t kind);

//===--- Regions.cpp
//-------------------------------------------------------===//

/// What regions of one attention capture.
struct Captures {
  std::vector<std::string> clauses;
  int64_t requests = 0, positions = 0;
};
std::string drawScoreRegion(Draft &draft, Captures &captures);
std::string drawMaskRegion(Draft &draft, Captures &captures);
/// Query and key regions with their `pair`, or nothing.
std::string drawTransforms(Draft &draft, Captures &captures);

} // namespace fi::fuzz

#endif // FI_LIB_FUZZ_DRAFT_H
