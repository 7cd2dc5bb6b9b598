//===- Data.cpp - lengths and values of random batches --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draft.h"

using namespace fi;
using namespace fi::fuzz;

llvm::json::Array fi::fuzz::toJson(llvm::ArrayRef<int64_t> values) {
  llvm::json::Array array;
  for (int64_t value : values)
    array.push_back(value);
  return array;
}

llvm::json::Value fi::fuzz::toJson(llvm::ArrayRef<std::vector<int64_t>> rows,
                                   int64_t width) {
  // Nested arrays without elements do not tell their shape.
  if (rows.empty() || width == 0)
    return llvm::json::Object{{"fill", 0},
                              {"shape", toJson({int64_t(rows.size()), width})}};
  llvm::json::Array table;
  for (const std::vector<int64_t> &row : rows)
    table.push_back(toJson(row));
  return table;
}

static llvm::json::Value withShape(llvm::json::Object source,
                                   llvm::ArrayRef<int64_t> shape) {
  if (!shape.empty())
    source["shape"] = toJson(shape);
  return source;
}

llvm::json::Value fi::fuzz::normal(double deviation,
                                   llvm::ArrayRef<int64_t> shape) {
  return withShape(
      llvm::json::Object{{"random", "normal"}, {"deviation", deviation}},
      shape);
}

static llvm::json::Value evenly(double low, double high,
                                llvm::ArrayRef<int64_t> shape) {
  return withShape(
      llvm::json::Object{{"random", "uniform"}, {"low", low}, {"high", high}},
      shape);
}

static llvm::json::Value filled(double value, llvm::ArrayRef<int64_t> shape) {
  return withShape(llvm::json::Object{{"fill", value}}, shape);
}

llvm::json::Value fi::fuzz::drawQueries(Draft &draft, const std::string &name,
                                        llvm::ArrayRef<int64_t> shape) {
  switch (draft.rarely("data." + name, 3, 7)) {
  case 1: // Scores near 0: all keys count alike.
    return normal(1e-3, shape);
  case 2: // Scores of some hundreds: one key counts.
    return normal(draft.isAdditive ? 1 : 8, shape);
  case 3: // Equal scores.
    return filled(0, shape);
  case 4:
    return filled(draft.isAdditive ? 0.5 : 3, shape);
  case 5:
    return evenly(0, 1, shape);
  case 6: // Far below what a finite number could stand for a mask.
    return filled(draft.isAdditive ? -0.5 : -64, shape);
  default:
    return normal(1, shape);
  }
}

llvm::json::Value fi::fuzz::drawValues(Draft &draft, const std::string &name,
                                       llvm::ArrayRef<int64_t> shape) {
  switch (draft.rarely("data." + name, 4, 5)) {
  case 1:
    return filled(1, shape);
  case 2:
    return normal(draft.isAdditive ? 1 : 1000, shape);
  case 3:
    return normal(1e-6, shape);
  case 4:
    return evenly(-1, 2, shape);
  default:
    return normal(1, shape);
  }
}

void fi::fuzz::drawRequests(Draft &draft) {
  // Edges of pages and of tiles, and what is beyond a tile.
  static const int64_t rows[] = {1, 1, 1, 0, 2, 3, 5, 9, 17};
  static const int64_t keys[] = {1,  0,  2,  3,  7,  8,  15, 16,
                                 17, 24, 31, 33, 48, 64, 65, 90};
  static const int64_t counts[] = {1, 2, 3, 4, 5, 6, 0};
  int64_t count = draft.pick("request.count", counts);
  for (int64_t i = 0; i < count; ++i) {
    std::string name = "request[" + std::to_string(i) + "].";
    int64_t length = draft.pick(name + "keys", keys);
    // Once in a while a whole prompt.
    int64_t queries = draft.flag(name + "prompt", 6)
                          ? std::min<int64_t>(length, 24)
                          : draft.pick(name + "rows", rows);
    draft.requests.push_back({queries, length});
  }
}
