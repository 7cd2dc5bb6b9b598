//===- Compile.h - the compiler for callers with exceptions -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The seam between the extension, which is compiled with exceptions, and the
// compiler, which is not: standard types alone, errors as strings.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PYTHON_COMPILE_H
#define FI_PYTHON_COMPILE_H

#include <cstdint>
#include <memory>
#include <string>

namespace fi::python {

struct Request {
  std::string text;
  /// As of --target of fi-translate; empty: the text's fi.target, or "native".
  std::string target;
  /// Which of several programs; empty: the only one.
  std::string program;
  bool cache = true;
  /// Sets fi.checked.
  bool checked = false;
  /// Sets fi.profile, unless empty.
  std::string profile;
  /// Of this machine's GPU; 0: there is none.
  unsigned major = 0, minor = 0;
};

/// A package in memory.
struct Code {
  std::string manifest;
  bool isCuda = false;
  /// For a GPU.
  std::string ptx, cubin;
  /// For the CPU: the machine code's owner, and how symbols are found in it, as
  /// fi_package_from_memory takes them.
  std::shared_ptr<void> owner;
  uintptr_t lookup = 0, context = 0;
};

/// Compiles; on failure returns the sentence, with the diagnostics that led to
/// it on lines of their own.
std::string compile(const Request &request, Code &code);

/// The text after a stage of compiling ("fi", "fi_tile", "vector", ...); empty
/// where there is no such stage.
std::string print(const Request &request, const std::string &level,
                  std::string &text);

} // namespace fi::python

#endif // FI_PYTHON_COMPILE_H
