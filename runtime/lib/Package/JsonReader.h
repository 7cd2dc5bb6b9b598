//===- JsonReader.h - Checked access to parsed JSON ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A JSON value together with its path, so that every complaint says where.
// Errors are ManifestError exceptions, which do not leave parseManifest.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PACKAGE_JSONREADER_H
#define FI_RUNTIME_PACKAGE_JSONREADER_H

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace fi::runtime {

struct ManifestError {
  std::string text;
};

class JsonReader {
public:
  JsonReader(const nlohmann::json &value, std::string path)
      : value(&value), path(std::move(path)) {}

  [[noreturn]] void error(const std::string &expected) const {
    std::string got =
        value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (got.size() > 60)
      got = got.substr(0, 60) + "...";
    throw ManifestError{path + ": expected " + expected + ", but got " + got};
  }

  bool isNull() const { return value->is_null(); }
  bool isNumber() const { return value->is_number(); }
  const std::string &where() const { return path; }

  /// A member that must be there.
  JsonReader at(const char *key) const {
    if (!value->is_object())
      error("an object");
    auto it = value->find(key);
    if (it == value->end())
      throw ManifestError{path + ": expected a member '" + key +
                          "', but there is none"};
    return JsonReader(*it, path + "." + key);
  }
  /// A member that may be absent; then null.
  JsonReader get(const char *key) const {
    static const nlohmann::json null;
    if (!value->is_object())
      error("an object");
    auto it = value->find(key);
    return JsonReader(it == value->end() ? null : *it, path + "." + key);
  }
  size_t size() const {
    if (!value->is_array())
      error("an array");
    return value->size();
  }
  JsonReader operator[](size_t i) const {
    return JsonReader((*value)[i], path + "[" + std::to_string(i) + "]");
  }
  bool isArray() const { return value->is_array(); }

  std::string string() const {
    if (!value->is_string())
      error("a string");
    return value->get<std::string>();
  }
  int64_t integer(int64_t least, int64_t most) const {
    bool fits = value->is_number_integer() &&
                (!value->is_number_unsigned() ||
                 value->get<uint64_t>() <= uint64_t(INT64_MAX));
    int64_t n = fits ? value->get<int64_t>() : 0;
    if (!fits || n < least || n > most)
      error("an integer from " + std::to_string(least) + " to " +
            std::to_string(most));
    return n;
  }
  double cost() const {
    double n = value->is_number() ? value->get<double>() : -1;
    if (!(n >= 0) || n > 1e15)
      error("a number from 0 to 1e15");
    return n;
  }
  bool boolean() const {
    if (!value->is_boolean())
      error("true or false");
    return value->get<bool>();
  }

private:
  const nlohmann::json *value;
  std::string path;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_PACKAGE_JSONREADER_H
