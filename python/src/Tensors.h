//===- Tensors.h - tensors of Python as the runtime sees them ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Views of tensors without copies: through the C functions of DLPack where the
// type offers them (torch), the buffer protocol (numpy), or `__dlpack__`. And
// new tensors of the same library for results.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PYTHON_TENSORS_H
#define FI_PYTHON_TENSORS_H

#include "DLPack.h"
#include "fi-runtime/fi_runtime.h"
#include "nanobind/nanobind.h"

#include <string>

namespace fi::python {

/// Raises fi.Error with a status and a sentence.
[[noreturn]] void raise(fi_status status, const std::string &sentence);
/// Raises fi.Error with the runtime's sentence unless `status` is FI_OK.
inline void check(fi_status status) {
  if (status != FI_OK)
    raise(status, fi_last_error());
}
/// Adds `Error` to a module.
void addError(nanobind::module_ &module);

/// Bytes that stand for elements of eight bits which a library has no type for.
constexpr int32_t bytesDtype = 1000;

const char *dtypeName(int32_t dtype);

constexpr int32_t maxRank = 8;

/// A tensor argument, and what keeps it valid for the length of a call.
class View {
public:
  View() = default;
  View(const View &) = delete;
  View &operator=(const View &) = delete;
  ~View() { release(); }

  /// Looks at `object`. `what` and `name` are for errors: "run", "q".
  void of(PyObject *object, const char *what, const char *name, bool writable);

  fi_tensor tensor = {};
  dlpack::Device device = {dlpack::Cpu, 0};
  /// The functions of the object's library; may be null.
  const dlpack::ExchangeAPI *api = nullptr;

private:
  void release();
  bool ofBuffer(PyObject *object, const char *what, const char *name,
                bool writable);
  void ofCapsule(PyObject *object, const char *what, const char *name,
                 bool writable);
  void set(const dlpack::Tensor &from, const char *what, const char *name);

  bool hasBuffer = false;
  Py_buffer buffer;
  nanobind::object capsule;
  int64_t shape[maxRank], strides[maxRank];
};

/// The functions of a type, or null. Remembers the types it saw last.
const dlpack::ExchangeAPI *findAPI(PyTypeObject *type);

/// A new tensor of the library that `api` belongs to, or of numpy (null) on a
/// CPU.
nanobind::object allocate(const dlpack::ExchangeAPI *api, dlpack::Device device,
                          const char *name, int32_t dtype, int32_t rank,
                          const int64_t *shape);

} // namespace fi::python

#endif // FI_PYTHON_TENSORS_H
