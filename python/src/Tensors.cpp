//===- Tensors.cpp - tensors of Python as the runtime sees them -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace fi::python {

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

static PyObject *errorType = nullptr;

static const char *statusName(fi_status status) {
  switch (status) {
  case FI_OK:
    return "ok";
  case FI_INVALID_ARGUMENT:
    return "invalid argument";
  case FI_INVALID_PACKAGE:
    return "invalid package";
  case FI_UNSUPPORTED:
    return "unsupported";
  case FI_INVALID_BATCH:
    return "invalid batch";
  case FI_INVALID_RUN:
    return "invalid run";
  case FI_STALE_PLAN:
    return "stale plan";
  case FI_BUSY:
    return "busy";
  case FI_OUT_OF_MEMORY:
    return "out of memory";
  case FI_DEVICE_ERROR:
    return "device error";
  }
  return "unknown";
}

void raise(fi_status status, const std::string &sentence) {
  nb::object error =
      nb::steal(PyObject_CallFunction(errorType, "s", sentence.c_str()));
  if (error.is_valid()) {
    error.attr("status") = statusName(status);
    PyErr_SetObject(errorType, error.ptr());
  }
  nb::raise_python_error();
}

void addError(nb::module_ &module) {
  errorType = PyErr_NewExceptionWithDoc(
      "fi.Error",
      "What the runtime or the compiler refuses, in a sentence. `status` says "
      "of what kind it is: 'invalid argument', 'invalid package', "
      "'unsupported', 'invalid batch', 'invalid run', 'stale plan', 'busy', "
      "'out of memory', 'device error', 'invalid program'.",
      PyExc_RuntimeError, nullptr);
  if (!errorType)
    nb::raise_python_error();
  nb::borrow(errorType).attr("status") = statusName(FI_INVALID_ARGUMENT);
  module.attr("Error") = nb::borrow(errorType);
}

/// "run: operand 'q': ".
static std::string where(const char *what, const char *name) {
  return std::string(what) + ": operand '" + name + "': ";
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

const char *dtypeName(int32_t dtype) {
  static const char *const names[] = {"f32",      "f16",    "bf16",     "i32",
                                      "i64",      "i8",     "i1",       "index",
                                      "f8E4M3FN", "f8E5M2", "f8E8M0FNU"};
  if (dtype == bytesDtype)
    return "uint8";
  return dtype >= 0 && dtype < 11 ? names[dtype] : "?";
}

/// The element type of DLPack as an fi_dtype, or -1.
static int32_t fromDLPack(dlpack::DataType type) {
  if (type.lanes != 1)
    return -1;
  switch (type.code) {
  case dlpack::Float:
    return type.bits == 32 ? FI_F32 : type.bits == 16 ? FI_F16 : -1;
  case dlpack::BFloat:
    return type.bits == 16 ? FI_BF16 : -1;
  case dlpack::Int:
    return type.bits == 32   ? FI_I32
           : type.bits == 64 ? FI_I64
           : type.bits == 8  ? FI_I8
                             : -1;
  case dlpack::Bool:
    return type.bits == 8 ? FI_I1 : -1;
  case dlpack::UInt:
    return type.bits == 8 ? bytesDtype : -1;
  case dlpack::Float8E4M3FN:
    return type.bits == 8 ? FI_F8E4M3FN : -1;
  case dlpack::Float8E5M2:
    return type.bits == 8 ? FI_F8E5M2 : -1;
  case dlpack::Float8E8M0FNU:
    return type.bits == 8 ? FI_F8E8M0FNU : -1;
  }
  return -1;
}

static dlpack::DataType toDLPack(int32_t dtype) {
  switch (dtype) {
  case FI_F32:
    return {dlpack::Float, 32, 1};
  case FI_F16:
    return {dlpack::Float, 16, 1};
  case FI_BF16:
    return {dlpack::BFloat, 16, 1};
  case FI_I32:
    return {dlpack::Int, 32, 1};
  case FI_I8:
    return {dlpack::Int, 8, 1};
  case FI_I1:
    return {dlpack::Bool, 8, 1};
  case FI_F8E4M3FN:
    return {dlpack::Float8E4M3FN, 8, 1};
  case FI_F8E5M2:
    return {dlpack::Float8E5M2, 8, 1};
  case FI_F8E8M0FNU:
    return {dlpack::Float8E8M0FNU, 8, 1};
  default:
    return {dlpack::Int, 64, 1};
  }
}

/// The element type of a buffer as an fi_dtype, or -1.
static int32_t fromFormat(const Py_buffer &buffer) {
  const char *format = buffer.format ? buffer.format : "B";
  if (*format == '@' || *format == '=' || *format == '<')
    ++format;
  if (format[0] == '\0' || format[1] != '\0')
    return -1;
  switch (*format) {
  case 'f':
    return FI_F32;
  case 'e':
    return FI_F16;
  case 'i':
  case 'l':
  case 'q':
    return buffer.itemsize == 4 ? FI_I32 : buffer.itemsize == 8 ? FI_I64 : -1;
  case 'b':
    return FI_I8;
  case 'B':
    return bytesDtype;
  case '?':
    return FI_I1;
  }
  return -1;
}

static constexpr const char allowedTypes[] =
    "expected elements of float32, float16, bfloat16, float8_e4m3fn, "
    "float8_e5m2, int32, int64, int8 or bool (uint8 for the bytes of float8), "
    "but got ";

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

const dlpack::ExchangeAPI *findAPI(PyTypeObject *type) {
  // Types are kept alive, so that no other can come to lie at their address.
  struct Known {
    PyTypeObject *type;
    const dlpack::ExchangeAPI *api;
  };
  constexpr unsigned size = 8;
  static Known known[size] = {};
  static unsigned next = 0;
  for (const Known &entry : known)
    if (entry.type == type)
      return entry.api;

  const dlpack::ExchangeAPI *api = nullptr;
  nb::object capsule = nb::steal(PyObject_GetAttrString(
      reinterpret_cast<PyObject *>(type), "__dlpack_c_exchange_api__"));
  if (!capsule.is_valid())
    PyErr_Clear();
  else if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    api = static_cast<const dlpack::ExchangeAPI *>(
        PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  // Version 1 keeps the layout; tables of other versions are older or newer.
  while (api && api->version.major != 1)
    api = api->version.major > 1 ? api->previous : nullptr;
  if (api && !api->viewOfObject)
    api = nullptr;

  Known &entry = known[next++ % size];
  Py_INCREF(type);
  Py_XDECREF(entry.type);
  entry = {type, api};
  return api;
}

void View::release() {
  if (hasBuffer)
    PyBuffer_Release(&buffer);
  hasBuffer = false;
}

void View::set(const dlpack::Tensor &from, const char *what, const char *name) {
  tensor.dtype = fromDLPack(from.dtype);
  if (tensor.dtype < 0)
    raise(FI_INVALID_ARGUMENT,
          where(what, name) + allowedTypes + "elements of " +
              std::to_string(from.dtype.bits) + " bits of DLPack's type " +
              std::to_string(from.dtype.code));
  tensor.data = static_cast<char *>(from.data) + from.byteOffset;
  tensor.rank = from.rank;
  tensor.shape = from.shape;
  tensor.strides = from.strides;
  device = from.device;
}

bool View::ofBuffer(PyObject *object, const char *what, const char *name,
                    bool writable) {
  if (PyObject_GetBuffer(object, &buffer, PyBUF_FORMAT | PyBUF_STRIDES)) {
    PyErr_Clear();
    return false;
  }
  hasBuffer = true;
  if (writable && buffer.readonly)
    raise(FI_INVALID_ARGUMENT,
          where(what, name) +
              "expected memory that may be written, but it is read-only; pass "
              "a copy");
  tensor.dtype = fromFormat(buffer);
  if (tensor.dtype < 0)
    raise(FI_INVALID_ARGUMENT, where(what, name) + allowedTypes + "format '" +
                                   (buffer.format ? buffer.format : "B") + "'");
  if (buffer.ndim > maxRank)
    raise(FI_INVALID_ARGUMENT, where(what, name) +
                                   "expected at most 8 dimensions, but got " +
                                   std::to_string(buffer.ndim));
  for (int32_t d = 0; d < buffer.ndim; ++d) {
    if (buffer.strides[d] % buffer.itemsize)
      raise(FI_INVALID_ARGUMENT,
            where(what, name) +
                "expected strides of whole elements, but dimension " +
                std::to_string(d) + " has one of " +
                std::to_string(buffer.strides[d]) + " bytes; copy it first");
    shape[d] = buffer.shape[d];
    strides[d] = buffer.strides[d] / buffer.itemsize;
  }
  tensor.data = buffer.buf;
  tensor.rank = buffer.ndim;
  tensor.shape = shape;
  tensor.strides = strides;
  device = {dlpack::Cpu, 0};
  return true;
}

void View::ofCapsule(PyObject *object, const char *what, const char *name,
                     bool writable) {
  nb::handle handle(object);
  if (!nb::hasattr(handle, "__dlpack__"))
    raise(FI_INVALID_ARGUMENT,
          where(what, name) +
              "expected a tensor (of numpy, torch, or another with "
              "__dlpack__), but got an object of type '" +
              Py_TYPE(object)->tp_name + "'");
  // Streams are ordered by the caller of a run, so the producer need not.
  bool onCuda =
      nb::hasattr(handle, "__dlpack_device__") &&
      nb::cast<int>(handle.attr("__dlpack_device__")()[0]) == dlpack::Cuda;
  capsule = onCuda ? handle.attr("__dlpack__")(nb::arg("stream") = -1)
                   : handle.attr("__dlpack__")();
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto *managed = static_cast<dlpack::ManagedVersioned *>(
        PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    if (managed->version.major != 1)
      raise(FI_UNSUPPORTED, where(what, name) +
                                "expected DLPack 1, but got version " +
                                std::to_string(managed->version.major));
    if (writable && (managed->flags & 1))
      raise(FI_INVALID_ARGUMENT,
            where(what, name) +
                "expected memory that may be written, but it is read-only; "
                "pass a copy");
    set(managed->tensor, what, name);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    set(static_cast<dlpack::Managed *>(
            PyCapsule_GetPointer(capsule.ptr(), "dltensor"))
            ->tensor,
        what, name);
  } else {
    raise(FI_INVALID_ARGUMENT,
          where(what, name) +
              "expected a capsule of DLPack from __dlpack__ of "
              "an object of type '" +
              Py_TYPE(object)->tp_name + "', but got another object");
  }
}

void View::of(PyObject *object, const char *what, const char *name,
              bool writable) {
  api = findAPI(Py_TYPE(object));
  if (api) {
    dlpack::Tensor view;
    if (api->viewOfObject(object, &view))
      nb::raise_python_error();
    set(view, what, name);
    return;
  }
  if (PyObject_CheckBuffer(object) && ofBuffer(object, what, name, writable))
    return;
  ofCapsule(object, what, name, writable);
}

//===----------------------------------------------------------------------===//
// New tensors
//===----------------------------------------------------------------------===//

static void setPythonError(void *, const char *kind, const char *message) {
  bool isMemory = kind && std::strstr(kind, "Memory");
  PyErr_SetString(isMemory ? PyExc_MemoryError : PyExc_RuntimeError, message);
}

static nb::object allocateNumpy(const char *name, int32_t dtype, int32_t rank,
                                const int64_t *shape) {
  const char *type = dtype == FI_F32   ? "float32"
                     : dtype == FI_F16 ? "float16"
                     : dtype == FI_I32 ? "int32"
                     : dtype == FI_I8  ? "int8"
                     : dtype == FI_I1  ? "bool"
                                       : "int64";
  if (dtype == FI_BF16)
    raise(FI_INVALID_ARGUMENT,
          std::string("run: result '") + name +
              "': numpy has no bfloat16; pass a tensor of another library "
              "(torch) in out=");
  nb::list sizes;
  for (int32_t d = 0; d < rank; ++d)
    sizes.append(shape[d]);
  return nb::module_::import_("numpy").attr("empty")(nb::tuple(sizes), type);
}

nb::object allocate(const dlpack::ExchangeAPI *api, dlpack::Device device,
                    const char *name, int32_t dtype, int32_t rank,
                    const int64_t *shape) {
  if (!api || !api->allocate || !api->managedToObject) {
    if (device.type != dlpack::Cpu)
      raise(FI_INVALID_ARGUMENT,
            std::string("run: result '") + name +
                "': the library of the tensors does not say how to make one on "
                "a device; pass it in out=");
    return allocateNumpy(name, dtype, rank, shape);
  }
  int64_t sizes[maxRank];
  std::copy_n(shape, rank, sizes);
  dlpack::Tensor prototype = {nullptr, device,  rank, toDLPack(dtype),
                              sizes,   nullptr, 0};
  dlpack::ManagedVersioned *managed = nullptr;
  void *object = nullptr;
  if (api->allocate(&prototype, &managed, nullptr, setPythonError) ||
      api->managedToObject(managed, &object)) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_RuntimeError, "run: result '%s': no memory for it",
                   name);
    nb::raise_python_error();
  }
  return nb::steal(static_cast<PyObject *>(object));
}

} // namespace fi::python
