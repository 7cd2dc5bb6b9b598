//===- Plan.cpp - packages and plans as Python objects --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <cstdlib>
#include <map>
#include <memory>

namespace nb = nanobind;

namespace fi::python {
namespace {

/// `count` objects of a type that cannot be moved: on the stack where they are
/// few, as they are in every program of a model. No others are made.
template <typename T, size_t small> class Array {
public:
  explicit Array(size_t count) : count(count) {
    if (count > small)
      first = static_cast<T *>(::operator new(count * sizeof(T)));
    for (size_t i = 0; i < count; ++i)
      new (first + i) T;
  }
  ~Array() {
    for (size_t i = 0; i < count; ++i)
      first[i].~T();
    if (count > small)
      ::operator delete(first);
  }
  Array(const Array &) = delete;
  T &operator[](size_t i) { return first[i]; }
  T *data() { return first; }

private:
  size_t count;
  alignas(T) unsigned char few[small * sizeof(T)];
  T *first = reinterpret_cast<T *>(few);
};

constexpr size_t usual = 12;

/// A scalar, or a view of a tensor.
void convert(PyObject *object, const char *what, const Argument &argument,
             View &view, fi_value &value) {
  if (argument.info.kind == FI_KIND_SCALAR) {
    bool isFloat = argument.info.dtype <= FI_BF16;
    if (isFloat) {
      value.kind = FI_VALUE_FLOAT;
      value.as.f32 = float(PyFloat_AsDouble(object));
    } else {
      value.kind = FI_VALUE_INTEGER;
      value.as.i64 = PyLong_AsLongLong(object);
    }
    if (PyErr_Occurred()) {
      PyErr_Clear();
      raise(
          FI_INVALID_ARGUMENT,
          std::string(what) + ": operand '" + argument.info.name +
              "': expected a number of type " + dtypeName(argument.info.dtype) +
              ", but got an object of type '" + Py_TYPE(object)->tp_name + "'");
    }
    return;
  }
  view.of(object, what, argument.info.name, argument.info.kind == FI_KIND_POOL);
  if (view.tensor.dtype == bytesDtype) {
    int32_t wanted = argument.info.dtype;
    if (wanted != FI_F8E4M3FN && wanted != FI_F8E5M2 && wanted != FI_F8E8M0FNU)
      raise(FI_INVALID_ARGUMENT,
            std::string(what) + ": operand '" + argument.info.name +
                "': expected dtype " + dtypeName(wanted) +
                ", but got uint8, which stands for float8 only");
    view.tensor.dtype = wanted;
  }
  value.kind = FI_VALUE_TENSOR;
  value.as.tensor = view.tensor;
}

std::string list(const std::vector<Argument> &arguments) {
  std::string text;
  for (const Argument &a : arguments)
    text += (text.empty() ? "" : ", ") + std::string(a.info.name);
  return text.empty() ? "none" : text;
}

/// The devices of this process, opened once: packages keep their code loaded
/// per device.
fi_device *getDevice(int32_t ordinal) {
  static std::map<int32_t, fi_device *> devices;
  fi_device *&device = devices[ordinal];
  if (!device)
    check(fi_device_open(nullptr, ordinal, &device));
  return device;
}

/// The shapes that options give, as the runtime takes them.
class Shapes {
public:
  Shapes(nb::handle given, size_t count) {
    if (given.is_none())
      return;
    tensors.resize(count);
    sizes.resize(count);
    for (size_t i = 0; i < count; ++i) {
      nb::object one = given[i];
      if (one.is_none())
        continue;
      for (nb::handle size : one)
        sizes[i].push_back(size.is_none() ? -1 : nb::cast<int64_t>(size));
      tensors[i].rank = int32_t(sizes[i].size());
      tensors[i].shape = sizes[i].data();
    }
  }
  const fi_tensor *data() const {
    return tensors.empty() ? nullptr : tensors.data();
  }

private:
  std::vector<fi_tensor> tensors;
  std::vector<std::vector<int64_t>> sizes;
};

/// The address of a stream: a number, or an object of torch or of another
/// library that tells it.
void *getStream(nb::handle stream) {
  if (PyLong_Check(stream.ptr()))
    return reinterpret_cast<void *>(nb::cast<uintptr_t>(stream));
  if (nb::hasattr(stream, "__cuda_stream__"))
    return reinterpret_cast<void *>(
        nb::cast<uintptr_t>(stream.attr("__cuda_stream__")()[1]));
  if (nb::hasattr(stream, "cuda_stream"))
    return reinterpret_cast<void *>(
        nb::cast<uintptr_t>(stream.attr("cuda_stream")));
  raise(FI_INVALID_ARGUMENT,
        std::string("run: stream: expected a stream of torch, an object with "
                    "__cuda_stream__ or an address, but got an object of type "
                    "'") +
            Py_TYPE(stream.ptr())->tp_name + "'");
}

} // namespace

//===----------------------------------------------------------------------===//
// Packages
//===----------------------------------------------------------------------===//

Package::Package(fi_package *handle, nb::object owner)
    : handle(handle), owner(std::move(owner)) {
  for (int32_t g = 0; g < 3; ++g) {
    int32_t count = fi_package_argument_count(handle, g);
    for (int32_t i = 0; i < count; ++i) {
      Argument argument;
      check(fi_package_argument(handle, g, i, &argument.info));
      argument.name = nb::steal(PyUnicode_InternFromString(argument.info.name));
      groups[g].push_back(std::move(argument));
    }
  }
}

//===----------------------------------------------------------------------===//
// Making plans
//===----------------------------------------------------------------------===//

Plan::Plan(nb::handle package, nb::tuple values, int32_t ordinal,
           const PlanOptions &options)
    : keptPackage(nb::borrow(package)),
      package(*nb::cast<const Package *>(package)), ordinal(ordinal) {
  if (ordinal >= 0)
    device = getDevice(ordinal);
  try {
    make(values, options);
  } catch (...) {
    fi_plan_destroy(handle);
    throw;
  }
}

Plan::~Plan() {
  // Frees after what runs still do.
  freeWorkspace();
  fi_plan_destroy(handle);
}

void Plan::make(nb::tuple given, const PlanOptions &options) {
  const std::vector<Argument> &arguments = package.group(FI_GROUP_PLAN);
  if (given.size() != arguments.size())
    raise(FI_INVALID_ARGUMENT,
          "plan: expected " + std::to_string(arguments.size()) + " values (" +
              list(arguments) + "), but got " + std::to_string(given.size()));
  Array<View, usual> views(arguments.size());
  std::vector<fi_value> values(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    convert(nb::handle(given[i]).ptr(), "plan", arguments[i], views[i],
            values[i]);
    if (views[i].device.type == dlpack::Cuda)
      raise(FI_INVALID_ARGUMENT,
            std::string("plan: operand '") + arguments[i].info.name +
                "': expected a tensor in host memory, which planning reads, "
                "but got one on device " +
                std::to_string(views[i].device.id) + "; pass .cpu()");
  }
  Shapes shapes(options.shapes, package.group(FI_GROUP_RUN).size());
  fi_plan_options made = {};
  made.struct_size = sizeof(made);
  made.workers = options.workers;
  made.split_policy = options.splitPolicy;
  made.split_keys = options.splitKeys;
  made.rows = options.rows;
  made.run_shapes = shapes.data();
  made.device = device;
  made.stream = reinterpret_cast<void *>(options.stream);
  made.graph_safe = options.graphSafe;
  made.checked = options.checked;
  made.max_requests = options.maxRequests;
  made.max_request_rows = options.maxRequestRows;
  made.max_pages = options.maxPages;
  made.profile_bytes = options.profileBytes;
  std::lock_guard<std::mutex> lock(running);
  python::check(
      handle
          ? fi_plan_update(handle, values.data(), int32_t(values.size()), &made)
          : fi_plan_create(package.handle, values.data(),
                           int32_t(values.size()), &made, &handle));
  growWorkspace();
}

void Plan::update(nb::tuple values, const PlanOptions &options) {
  make(values, options);
}

void Plan::growWorkspace() {
  size_t bytes = fi_plan_workspace_bytes(handle);
  if (bytes <= workspaceSize)
    return;
  freeWorkspace();
  if (device) {
    const fi_driver *driver = fi_device_driver(device);
    void *context = nullptr;
    int32_t changed = 0;
    int result = driver->context_open(driver->self, ordinal, &context);
    if (result == FI_DRIVER_OK) {
      result = driver->context_enter(driver->self, context, &changed);
      if (result == FI_DRIVER_OK)
        result = driver->memory_alloc(driver->self, bytes, &workspace);
      if (changed)
        driver->context_leave(driver->self, context);
      driver->context_close(driver->self, context);
    }
    if (result != FI_DRIVER_OK) {
      workspace = nullptr;
      raise(result == FI_DRIVER_OUT_OF_MEMORY ? FI_OUT_OF_MEMORY
                                              : FI_DEVICE_ERROR,
            "plan: no memory of device " + std::to_string(ordinal) +
                " for a workspace of " + std::to_string(bytes) +
                " bytes: " + driver->last_error(driver->self));
    }
  } else {
    size_t rounded = (bytes + FI_WORKSPACE_ALIGNMENT - 1) /
                     FI_WORKSPACE_ALIGNMENT * FI_WORKSPACE_ALIGNMENT;
    workspace = std::aligned_alloc(FI_WORKSPACE_ALIGNMENT, rounded);
    if (!workspace)
      raise(FI_OUT_OF_MEMORY, "plan: no memory for a workspace of " +
                                  std::to_string(bytes) + " bytes");
  }
  workspaceSize = bytes;
}

void Plan::freeWorkspace() {
  if (!workspace)
    return;
  if (device) {
    const fi_driver *driver = fi_device_driver(device);
    void *context = nullptr;
    int32_t changed = 0;
    if (driver->context_open(driver->self, ordinal, &context) == FI_DRIVER_OK) {
      if (driver->context_enter(driver->self, context, &changed) ==
          FI_DRIVER_OK)
        driver->memory_free(driver->self, workspace);
      if (changed)
        driver->context_leave(driver->self, context);
      driver->context_close(driver->self, context);
    }
  } else {
    std::free(workspace);
  }
  workspace = nullptr;
  workspaceSize = 0;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

PyObject *Plan::run(PyObject *const *args, size_t given, PyObject *names) {
  const std::vector<Argument> &arguments = package.group(FI_GROUP_RUN);
  const std::vector<Argument> &results = package.group(FI_GROUP_RESULT);
  size_t count = arguments.size(), resultCount = results.size();

  // Who is what: borrowed references, alive as long as the call.
  Array<PyObject *, usual> objects(count);
  if (given > count)
    raise(FI_INVALID_ARGUMENT, "run: expected " + std::to_string(count) +
                                   " values (" + list(arguments) +
                                   "), but got " + std::to_string(given));
  for (size_t i = 0; i < count; ++i)
    objects[i] = i < given ? args[i] : nullptr;
  PyObject *out = nullptr, *lse = nullptr, *stream = nullptr;
  Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  for (Py_ssize_t n = 0; n < named; ++n) {
    PyObject *key = PyTuple_GET_ITEM(names, n), *value = args[given + n];
    static PyObject *const outName = PyUnicode_InternFromString("out");
    static PyObject *const lseName = PyUnicode_InternFromString("lse");
    static PyObject *const streamName = PyUnicode_InternFromString("stream");
    // Names in a program's text are interned, as ours are.
    auto find = [&](auto same) {
      for (size_t i = given; i < count; ++i)
        if (same(arguments[i].name.ptr()))
          return objects[i] = value, true;
      if (same(outName))
        return out = value, true;
      if (same(lseName))
        return lse = value, true;
      return same(streamName) ? (stream = value, true) : false;
    };
    if (!find([&](PyObject *name) { return key == name; }) &&
        !find(
            [&](PyObject *name) { return PyUnicode_Compare(key, name) == 0; }))
      raise(FI_INVALID_ARGUMENT,
            std::string("run: '") + PyUnicode_AsUTF8(key) +
                "' is not among the values (" + list(arguments) +
                ") nor is it out, lse or stream, or it was given by position "
                "already");
  }

  Array<View, usual> views(count + resultCount);
  Array<fi_value, usual> values(count);
  const dlpack::ExchangeAPI *api = nullptr;
  dlpack::Device where = {device ? dlpack::Cuda : dlpack::Cpu,
                          device ? ordinal : 0};
  for (size_t i = 0; i < count; ++i) {
    if (!objects[i])
      raise(FI_INVALID_ARGUMENT, std::string("run: operand '") +
                                     arguments[i].info.name +
                                     "': expected a value, but got none");
    convert(objects[i], "run", arguments[i], views[i], values[i]);
    if (!api)
      api = views[i].api;
    if (!device && views[i].device.type != dlpack::Cpu &&
        views[i].device.type != dlpack::CudaHost)
      raise(FI_INVALID_RUN,
            std::string("run: operand '") + arguments[i].info.name +
                "': expected memory of this host, for which the program was "
                "compiled, but got memory of a device; compile it for the "
                "device, or pass .cpu()");
  }

  Array<fi_tensor, usual> outputs(resultCount);
  Array<nb::object, 4> kept(resultCount);
  auto outGiven = [&](size_t i) -> PyObject * {
    PyObject *object = nullptr;
    if (out && PyTuple_Check(out))
      object = i < size_t(PyTuple_GET_SIZE(out)) ? PyTuple_GET_ITEM(out, i)
                                                 : nullptr;
    else if (i == 0)
      object = out;
    if (i == 1 && lse && lse != Py_None)
      object = lse;
    return object == Py_None ? nullptr : object;
  };
  if (lse && lse != Py_None && resultCount < 2)
    raise(FI_INVALID_ARGUMENT,
          "run: lse: the program has no second result; leave lse out");
  if (out && PyTuple_Check(out) && size_t(PyTuple_GET_SIZE(out)) > resultCount)
    raise(FI_INVALID_ARGUMENT,
          "run: out: expected at most " + std::to_string(resultCount) +
              " results, but got " + std::to_string(PyTuple_GET_SIZE(out)));
  for (size_t i = 0; i < resultCount; ++i) {
    const fi_argument_info &info = results[i].info;
    PyObject *object = outGiven(i);
    if (object) {
      kept[i] = nb::borrow(object);
    } else {
      int64_t shape[maxRank];
      for (int32_t d = 0; d < info.rank; ++d) {
        shape[d] = info.shape[d];
        if (shape[d] < 0 && d == 0 && info.rows_of >= 0 &&
            values[info.rows_of].kind == FI_VALUE_TENSOR &&
            values[info.rows_of].as.tensor.rank > 0)
          shape[d] = values[info.rows_of].as.tensor.shape[0];
        if (shape[d] < 0)
          raise(FI_INVALID_ARGUMENT,
                std::string("run: result '") + info.name +
                    "': the program does not say its size in dimension " +
                    std::to_string(d) + "; pass it in out=");
      }
      kept[i] = allocate(api, where, info.name, info.dtype, info.rank, shape);
    }
    View &view = views[count + i];
    view.of(kept[i].ptr(), "run", info.name, /*writable=*/true);
    outputs[i] = view.tensor;
  }

  if (device) {
    void *handleOfStream = nullptr;
    if (stream && stream != Py_None)
      handleOfStream = getStream(stream);
    else if (api && api->currentStream &&
             api->currentStream(dlpack::Cuda, ordinal, &handleOfStream))
      nb::raise_python_error();
    python::check(fi_run_device(handle, 0, values.data(), int32_t(count),
                                outputs.data(), int32_t(resultCount), workspace,
                                workspaceSize, handleOfStream));
  } else {
    if (stream && stream != Py_None)
      raise(FI_INVALID_ARGUMENT,
            "run: stream: the plan runs on the CPU, which has none");
    fi_status status;
    {
      nb::gil_scoped_release unlocked;
      std::lock_guard<std::mutex> lock(running);
      status = fi_run(handle, 0, values.data(), int32_t(count), outputs.data(),
                      int32_t(resultCount), workspace, workspaceSize);
    }
    python::check(status);
  }

  if (resultCount == 1)
    return kept[0].release().ptr();
  PyObject *tuple = PyTuple_New(Py_ssize_t(resultCount));
  if (!tuple)
    nb::raise_python_error();
  for (size_t i = 0; i < resultCount; ++i)
    PyTuple_SET_ITEM(tuple, Py_ssize_t(i), kept[i].release().ptr());
  return tuple;
}

static PyObject *callRun(PyObject *self, PyObject *const *args,
                         Py_ssize_t count, PyObject *names) {
  try {
    if (!nb::inst_ready(self))
      raise(FI_INVALID_ARGUMENT,
            "run: expected a plan that was made, but its __init__ was not "
            "called");
    return nb::inst_ptr<Plan>(self)->run(args, size_t(count), names);
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

void Plan::addRun(nb::handle type, const char *doc) {
  static PyMethodDef method = {
      "run",
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(callRun)),
      METH_FASTCALL | METH_KEYWORDS, doc};
  type.attr("run") = nb::steal(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject *>(type.ptr()), &method));
}

//===----------------------------------------------------------------------===//
// Telling
//===----------------------------------------------------------------------===//

void Plan::check() const { python::check(fi_plan_check(handle)); }

static std::string take(fi_status status, char *text) {
  python::check(status);
  std::string copy = text;
  fi_string_free(text);
  return copy;
}

std::string Plan::explain() const {
  char *text = nullptr;
  fi_status status = fi_plan_explain(handle, &text);
  return take(status, text);
}

std::string Plan::schedule() const {
  char *text = nullptr;
  fi_status status = fi_plan_schedule_json(handle, &text);
  return take(status, text);
}

std::string Plan::timeline(uintptr_t stream) const {
  char *text = nullptr;
  fi_status status = FI_OK;
  {
    nanobind::gil_scoped_release unlocked;
    status =
        fi_plan_timeline_json(handle, reinterpret_cast<void *>(stream), &text);
  }
  return take(status, text);
}

} // namespace fi::python
