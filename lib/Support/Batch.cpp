//===- Batch.cpp - descriptions of batches in JSON and CSV ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Batch.h"
#include "fi/Support/File.h"
#include "fi/Support/Npy.h"
#include "fi/Support/Random.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <limits>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

const ArgumentSource *Batch::find(StringRef argument) const {
  for (auto &[name, source] : arguments)
    if (name == argument)
      return &source;
  return nullptr;
}

std::string fi::formatShape(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i ? ", " : "";
    text += shape[i] < 0 ? "?" : std::to_string(shape[i]);
  }
  return text + "]";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {

/// What a JSON value is, in a message.
StringRef kindOf(const llvm::json::Value &value) {
  switch (value.kind()) {
  case llvm::json::Value::Null:
    return "null";
  case llvm::json::Value::Boolean:
    return "a boolean";
  case llvm::json::Value::Number:
    return "a number";
  case llvm::json::Value::String:
    return "a string";
  case llvm::json::Value::Array:
    return "an array";
  case llvm::json::Value::Object:
    return "an object";
  }
  return "";
}

class BatchParser {
public:
  explicit BatchParser(StringRef name) { batch.name = name.str(); }
  Expected<Batch> parse(const llvm::json::Value &root);

private:
  Error failed(const Twine &what) {
    return createStringError("'" + StringRef(batch.name) + "': " + what);
  }
  Error wrongKind(const Twine &where, StringRef wanted,
                  const llvm::json::Value &got) {
    return failed(where + ": expected " + wanted + ", but got " + kindOf(got));
  }
  Error checkKeys(const llvm::json::Object &object, const Twine &where,
                  llvm::ArrayRef<StringRef> allowed);
  Error readInteger(const llvm::json::Value &value, const Twine &where,
                    int64_t low, int64_t high, int64_t &out);
  Error parseRequests(const llvm::json::Value &value);
  Error parseArgument(StringRef argument, const llvm::json::Value &value);
  Error parseSource(const llvm::json::Object &object, const Twine &where,
                    ArgumentSource &source);

  Batch batch;
};

Error BatchParser::checkKeys(const llvm::json::Object &object,
                             const Twine &where,
                             llvm::ArrayRef<StringRef> allowed) {
  // In order of the text's keys, so that the message does not depend on
  // hashing.
  std::vector<std::string> unknown;
  for (const auto &entry : object)
    if (!llvm::is_contained(allowed, StringRef(entry.first)))
      unknown.push_back(StringRef(entry.first).str());
  if (unknown.empty())
    return Error::success();
  llvm::sort(unknown);
  return failed(where + "unknown entry '" + unknown.front() +
                "'; allowed are " + llvm::join(allowed, ", "));
}

Error BatchParser::readInteger(const llvm::json::Value &value,
                               const Twine &where, int64_t low, int64_t high,
                               int64_t &out) {
  std::optional<int64_t> number = value.getAsInteger();
  if (!number)
    return wrongKind(where, "an integer", value);
  if (*number < low || *number > high)
    return failed(where + ": expected " + Twine(low) + " to " + Twine(high) +
                  ", but got " + Twine(*number));
  out = *number;
  return Error::success();
}

Error BatchParser::parseRequests(const llvm::json::Value &value) {
  const llvm::json::Array *requests = value.getAsArray();
  if (!requests)
    return wrongKind("requests", "an array", value);
  batch.hasRequests = true;
  for (size_t i = 0; i < requests->size(); ++i) {
    std::string where = "requests[" + std::to_string(i) + "]";
    const llvm::json::Object *request = (*requests)[i].getAsObject();
    if (!request)
      return wrongKind(where, "an object with q_len and kv_len",
                       (*requests)[i]);
    if (Error error = checkKeys(*request, where + ": ", {"q_len", "kv_len"}))
      return error;
    RequestLengths lengths;
    for (auto [key, out] :
         {std::pair<StringRef, int64_t *>("q_len", &lengths.queryLength),
          std::pair<StringRef, int64_t *>("kv_len", &lengths.keyLength)}) {
      const llvm::json::Value *number = request->get(key);
      if (!number)
        return failed(where + ": expected an entry '" + key + "'");
      if (Error error =
              readInteger(*number, where + "." + key, 0, kMaxLength, *out))
        return error;
    }
    batch.requests.push_back(lengths);
  }
  return Error::success();
}

Error BatchParser::parseSource(const llvm::json::Object &object,
                               const Twine &where, ArgumentSource &source) {
  using Kind = ArgumentSource::Kind;
  static constexpr std::pair<StringRef, Kind> kKinds[] = {
      {"values", Kind::Values},
      {"npy", Kind::Npy},
      {"npz", Kind::Npz},
      {"random", Kind::Normal},
      {"fill", Kind::Fill}};
  const llvm::json::Value *main = nullptr;
  for (auto &[key, kind] : kKinds)
    if (const llvm::json::Value *value = object.get(key)) {
      if (main)
        return failed(where + ": expected one of values, npy, npz, random and "
                              "fill, but got several");
      main = value;
      source.kind = kind;
    }
  if (!main)
    return failed(where +
                  ": expected one of values, npy, npz, random and fill");

  llvm::SmallVector<StringRef> allowed;
  if (source.kind == Kind::Values) {
    allowed = {"values", "shape"};
    source.values = *main;
  } else if (source.kind == Kind::Npy || source.kind == Kind::Npz) {
    bool isArchive = source.kind == Kind::Npz;
    allowed = {"npy"};
    if (isArchive)
      allowed = {"npz", "name"};
    std::optional<StringRef> file = main->getAsString();
    if (!file)
      return wrongKind(where + "." + allowed[0], "a file's name", *main);
    // Relative to the batch's file, wherever the tool was started.
    llvm::SmallString<128> path(*file);
    if (llvm::sys::path::is_relative(*file)) {
      path = llvm::sys::path::parent_path(batch.name);
      llvm::sys::path::append(path, *file);
    }
    source.file = path.str().str();
    if (std::optional<StringRef> member = object.getString("name"))
      source.member = member->str();
  } else if (source.kind == Kind::Fill) {
    allowed = {"fill", "shape"};
    std::optional<double> value = main->getAsNumber();
    if (!value && main->getAsString() == "nan")
      value = std::numeric_limits<double>::quiet_NaN();
    if (!value)
      return wrongKind(where + ".fill", "a number or \"nan\"", *main);
    source.first = *value;
  } else {
    std::optional<StringRef> kind = main->getAsString();
    if (kind != "normal" && kind != "uniform")
      return failed(where + ".random: expected \"normal\" or \"uniform\"");
    bool isUniform = kind == "uniform";
    if (isUniform) {
      source.kind = Kind::Uniform;
      allowed = {"random", "seed", "shape", "low", "high"};
    } else {
      allowed = {"random", "seed", "shape", "mean", "deviation"};
    }
    for (auto [key, out] :
         {std::pair<StringRef, double *>(isUniform ? "low" : "mean",
                                         &source.first),
          std::pair<StringRef, double *>(isUniform ? "high" : "deviation",
                                         &source.second)})
      if (const llvm::json::Value *value = object.get(key)) {
        std::optional<double> number = value->getAsNumber();
        if (!number || !std::isfinite(*number))
          return wrongKind(where + "." + key, "a finite number", *value);
        *out = *number;
      }
    if (const llvm::json::Value *value = object.get("seed")) {
      int64_t seed;
      if (Error error = readInteger(*value, where + ".seed", 0,
                                    std::numeric_limits<int64_t>::max(), seed))
        return error;
      source.seed = seed;
    }
  }
  if (Error error = checkKeys(object, where + ": ", allowed))
    return error;
  if (const llvm::json::Value *value = object.get("shape")) {
    const llvm::json::Array *sizes = value->getAsArray();
    if (!sizes)
      return wrongKind(where + ".shape", "an array of sizes", *value);
    source.shape.emplace();
    for (const llvm::json::Value &size : *sizes) {
      int64_t number;
      if (Error error =
              readInteger(size, where + ".shape", 0, kMaxLength, number))
        return error;
      source.shape->push_back(number);
    }
  }
  return Error::success();
}

Error BatchParser::parseArgument(StringRef argument,
                                 const llvm::json::Value &value) {
  std::string where = ("arguments." + argument).str();
  ArgumentSource source;
  switch (value.kind()) {
  case llvm::json::Value::Array:
  case llvm::json::Value::Number:
  case llvm::json::Value::Boolean:
    source.values = value;
    break;
  case llvm::json::Value::Object:
    if (Error error = parseSource(*value.getAsObject(), where, source))
      return error;
    break;
  default:
    return wrongKind(where, "a number, an array or an object", value);
  }
  batch.arguments.emplace_back(argument.str(), std::move(source));
  return Error::success();
}

Expected<Batch> BatchParser::parse(const llvm::json::Value &root) {
  const llvm::json::Object *object = root.getAsObject();
  if (!object)
    return wrongKind("batch", "an object", root);
  if (Error error =
          checkKeys(*object, "",
                    {"program", "seed", "arguments", "requests", "page_size",
                     "pool_pages", "page_order", "comment"}))
    return std::move(error);
  if (const llvm::json::Value *value = object->get("program")) {
    std::optional<StringRef> program = value->getAsString();
    if (!program)
      return wrongKind("program", "a string", *value);
    batch.program = program->str();
  }
  for (auto [key, low, high, store] :
       {std::tuple<StringRef, int64_t, int64_t, int>(
            "seed", 0, std::numeric_limits<int64_t>::max(), 0),
        std::tuple<StringRef, int64_t, int64_t, int>("page_size", 1, 1 << 20,
                                                     1),
        std::tuple<StringRef, int64_t, int64_t, int>("pool_pages", 0,
                                                     kMaxLength, 2)}) {
    const llvm::json::Value *value = object->get(key);
    if (!value)
      continue;
    int64_t number;
    if (Error error = readInteger(*value, key, low, high, number))
      return std::move(error);
    if (store == 0)
      batch.seed = number;
    else
      (store == 1 ? batch.pageSize : batch.poolPages) = number;
  }
  if (const llvm::json::Value *value = object->get("page_order")) {
    std::optional<StringRef> order = value->getAsString();
    if (order != "shuffled" && order != "sequential")
      return failed("page_order: expected \"shuffled\" or \"sequential\"");
    batch.shufflePages = order == "shuffled";
  }
  if (const llvm::json::Value *value = object->get("requests"))
    if (Error error = parseRequests(*value))
      return std::move(error);
  if (const llvm::json::Value *value = object->get("arguments")) {
    const llvm::json::Object *arguments = value->getAsObject();
    if (!arguments)
      return wrongKind("arguments", "an object", *value);
    std::vector<StringRef> names;
    for (const auto &entry : *arguments)
      names.push_back(entry.first);
    llvm::sort(names);
    for (StringRef argument : names)
      if (Error error = parseArgument(argument, *arguments->get(argument)))
        return std::move(error);
  }
  return std::move(batch);
}

} // namespace

Expected<Batch> fi::parseBatchJson(StringRef text, StringRef name) {
  auto root = parseJson(text, name);
  if (!root)
    return root.takeError();
  return BatchParser(name).parse(*root);
}

//===----------------------------------------------------------------------===//
// CSV
//===----------------------------------------------------------------------===//

Expected<Batch> fi::parseBatchCsv(StringRef text, StringRef name) {
  Batch batch;
  batch.name = name.str();
  batch.hasRequests = true;
  int queryColumn = -1, keyColumn = -1;
  size_t columns = 0;
  unsigned number = 0;
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    ++number;
    line = line.split('#').first.trim();
    if (line.empty())
      continue;
    llvm::SmallVector<StringRef> cells;
    line.split(cells, ',');
    for (StringRef &cell : cells)
      cell = cell.trim();
    std::string where = ("'" + name + "':" + Twine(number) + ": ").str();
    if (columns == 0) {
      columns = cells.size();
      for (size_t i = 0; i < columns; ++i) {
        if (cells[i] == "q_len")
          queryColumn = i;
        if (cells[i] == "kv_len")
          keyColumn = i;
      }
      if (queryColumn < 0 || keyColumn < 0)
        return createStringError(where +
                                 "expected a head line with the columns q_len "
                                 "and kv_len");
      continue;
    }
    if (cells.size() != columns)
      return createStringError(where + "expected " + Twine(columns) +
                               " columns, but got " + Twine(cells.size()));
    RequestLengths request;
    for (auto [column, key, out] :
         {std::tuple<int, StringRef, int64_t *>(queryColumn, "q_len",
                                                &request.queryLength),
          std::tuple<int, StringRef, int64_t *>(keyColumn, "kv_len",
                                                &request.keyLength)})
      if (cells[column].getAsInteger(10, *out) || *out < 0 || *out > kMaxLength)
        return createStringError(where + "expected 0 to " + Twine(kMaxLength) +
                                 " as " + key + ", but got '" + cells[column] +
                                 "'");
    batch.requests.push_back(request);
  }
  if (columns == 0)
    return createStringError("'" + name +
                             "': expected a head line with the columns q_len "
                             "and kv_len, but the file is empty");
  return batch;
}

Expected<Batch> fi::readBatch(StringRef path) {
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  StringRef text = (*buffer)->getBuffer();
  return path.ends_with(".csv") ? parseBatchCsv(text, path)
                                : parseBatchJson(text, path);
}
