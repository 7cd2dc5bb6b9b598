//===- Compiler.cpp - the extension fi._compiler --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From text to packages in memory, which fi._runtime opens. The two extensions
// share no C++ types: code goes from one to the other as bytes and addresses.
//
//===----------------------------------------------------------------------===//

#include "Compile.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;
using namespace fi::python;

/// The package, or the sentence of what is wrong.
static nb::object compileText(const std::string &text,
                              const std::string &target,
                              const std::string &program, bool cache,
                              bool checked, const std::string &profile,
                              unsigned major, unsigned minor) {
  Request request = {text,    target,  program, cache,
                     checked, profile, major,   minor};
  auto code = std::make_unique<Code>();
  std::string error;
  {
    nb::gil_scoped_release unlocked;
    error = compile(request, *code);
  }
  if (!error.empty())
    return nb::str(error.c_str(), error.size());
  return nb::cast(code.release(), nb::rv_policy::take_ownership);
}

/// "" where there is no such level, "!" and a sentence, or " " and the text.
static std::string printText(const std::string &text, const std::string &target,
                             const std::string &program,
                             const std::string &level, bool checked,
                             const std::string &profile, unsigned major,
                             unsigned minor) {
  Request request = {text,    target,  program, false,
                     checked, profile, major,   minor};
  std::string found, error;
  {
    nb::gil_scoped_release unlocked;
    error = print(request, level, found);
  }
  if (!error.empty())
    return "!" + error;
  return found.empty() ? found : " " + found;
}

NB_MODULE(_compiler, module) {
  module.doc() = "The fi compiler: from text to packages in memory.";
  module.def("compile", compileText);
  module.def("text", printText);
  nb::class_<Code>(module, "Compiled")
      .def_ro("manifest", &Code::manifest)
      .def_ro("is_cuda", &Code::isCuda)
      .def_ro("ptx", &Code::ptx)
      .def_prop_ro("cubin",
                   [](const Code &code) {
                     return nb::bytes(code.cubin.data(), code.cubin.size());
                   })
      .def_ro("lookup", &Code::lookup)
      .def_ro("context", &Code::context);
}
