//===- Runtime.cpp - the extension fi._runtime ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Packages and plans. Needs no compiler: with the .py files beside it, this one
// file runs packages on a machine without LLVM.
//
//===----------------------------------------------------------------------===//

#include "Plan.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;
using namespace fi::python;

static nb::object openPackage(const std::string &path) {
  fi_package *handle = nullptr;
  check(fi_package_open(path.c_str(), &handle));
  return nb::cast(new Package(handle, nb::none()),
                  nb::rv_policy::take_ownership);
}

/// Code in memory of this process, found by a function that C calls.
static nb::object openMemory(const std::string &manifest, uintptr_t lookup,
                             uintptr_t context, nb::object owner) {
  fi_package *handle = nullptr;
  check(fi_package_from_memory(manifest.data(), manifest.size(),
                               reinterpret_cast<fi_symbol_lookup>(lookup),
                               reinterpret_cast<void *>(context), &handle));
  return nb::cast(new Package(handle, std::move(owner)),
                  nb::rv_policy::take_ownership);
}

/// Code for a GPU: PTX and, if not empty, machine code.
static nb::object openCode(const std::string &manifest, const std::string &ptx,
                           nb::bytes cubin) {
  fi_code codes[2];
  int32_t count = 0;
  if (!ptx.empty())
    codes[count++] = {FI_DRIVER_PTX, ptx.c_str(), ptx.size()};
  if (cubin.size())
    codes[count++] = {FI_DRIVER_CUBIN, cubin.c_str(), cubin.size()};
  fi_package *handle = nullptr;
  check(fi_package_from_code(manifest.data(), manifest.size(), codes, count,
                             &handle));
  return nb::cast(new Package(handle, nb::none()),
                  nb::rv_policy::take_ownership);
}

/// [(name, kind, element type, sizes)] of a group.
static nb::list describe(const Package &package, int32_t group) {
  static const char *const kinds[] = {"tensor", "pool", "scalar"};
  nb::list all;
  for (const Argument &argument : package.group(fi_group(group))) {
    nb::list sizes;
    for (int32_t d = 0; d < argument.info.rank; ++d) {
      int64_t size = argument.info.shape[d];
      if (size < 0)
        sizes.append(nb::none());
      else
        sizes.append(size);
    }
    bool isResult = group == FI_GROUP_RESULT;
    all.append(nb::make_tuple(
        argument.name, isResult ? "tensor" : kinds[argument.info.kind],
        dtypeName(argument.info.dtype), nb::tuple(sizes)));
  }
  return all;
}

/// What this machine's devices are: [(name, major, minor)].
static nb::list devices() {
  nb::list all;
  const fi_driver *driver = nullptr;
  if (fi_cuda_driver(&driver) != FI_OK)
    return all;
  int32_t count = fi_device_count(driver);
  for (int32_t i = 0; i < count; ++i) {
    fi_driver_device info = {};
    if (driver->device_info(driver->self, i, &info) == FI_DRIVER_OK)
      all.append(nb::make_tuple(std::string(info.name), info.compute_major,
                                info.compute_minor));
  }
  return all;
}

NB_MODULE(_runtime, module) {
  module.doc() = "The fi runtime: packages and plans, without the compiler.";
  addError(module);
  module.def("version", [] { return std::string(fi_runtime_version()); });
  module.def("devices", devices);
  module.def("open_package", openPackage, nb::arg("path"));
  module.def("open_memory", openMemory, nb::arg("manifest"), nb::arg("lookup"),
             nb::arg("context"), nb::arg("owner"));
  module.def("open_code", openCode, nb::arg("manifest"), nb::arg("ptx"),
             nb::arg("cubin"));

  nb::class_<Package>(module, "Package")
      .def_prop_ro("program",
                   [](const Package &package) {
                     return std::string(fi_package_program(package.handle));
                   })
      .def("describe", describe, nb::arg("group"));

  nb::class_<PlanOptions>(module, "PlanOptions")
      .def(nb::init<>())
      .def_rw("workers", &PlanOptions::workers)
      .def_rw("split_policy", &PlanOptions::splitPolicy)
      .def_rw("split_keys", &PlanOptions::splitKeys)
      .def_rw("rows", &PlanOptions::rows)
      .def_prop_rw(
          "shapes", [](const PlanOptions &options) { return options.shapes; },
          [](PlanOptions &options, nb::object shapes) {
            options.shapes = std::move(shapes);
          },
          nb::arg().none())
      .def_rw("stream", &PlanOptions::stream)
      .def_rw("graph_safe", &PlanOptions::graphSafe)
      .def_rw("checked", &PlanOptions::checked)
      .def_rw("max_requests", &PlanOptions::maxRequests)
      .def_rw("max_request_rows", &PlanOptions::maxRequestRows)
      .def_rw("max_pages", &PlanOptions::maxPages)
      .def_rw("profile_bytes", &PlanOptions::profileBytes);

  nb::class_<Plan> plan(module, "Plan");
  plan.def(nb::init<nb::handle, nb::tuple, int32_t, const PlanOptions &>(),
           nb::arg("package"), nb::arg("values"), nb::arg("device"),
           nb::arg("options"))
      .def("_update", &Plan::update, nb::arg("values"), nb::arg("options"))
      .def("check", &Plan::check,
           "Raises if a checked kernel has found something. Waits for "
           "nothing.")
      .def("explain", &Plan::explain, "What was chosen and why, as text.")
      .def("schedule_json", &Plan::schedule, "Who does what, as JSON.")
      .def("_timeline", &Plan::timeline, nb::arg("stream"))
      .def_prop_ro("workspace_bytes", &Plan::workspaceBytes)
      .def_prop_ro("generation", &Plan::generation,
                   "1 at first, one more after each update.")
      .def_prop_ro("workers", &Plan::workers);
  Plan::addRun(
      plan,
      "run(*values, out=None, lse=None, stream=None)\n\n"
      "Runs the plan on values of the program's run arguments, in order or "
      "by name, and returns its result or a tuple of its results. `out` is "
      "the first result (or a tuple of all), `lse` the second; what is not "
      "given is allocated by the library of the tensors. On a device all "
      "is launched in `stream` (default: the library's current stream) and "
      "nothing is waited for.");
}
