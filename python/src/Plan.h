//===- Plan.h - packages and plans as Python objects ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What python/fi/ builds its classes on. Argument lists are read from the
// package once; a run converts its tensors on the stack and calls the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PYTHON_PLAN_H
#define FI_PYTHON_PLAN_H

#include "Tensors.h"

#include <mutex>
#include <vector>

namespace fi::python {

/// An argument or a result, with its name as an interned string.
struct Argument {
  fi_argument_info info;
  nanobind::object name;
};

class Package {
public:
  /// Takes over `handle`; `owner` is kept alive as long as the package.
  Package(fi_package *handle, nanobind::object owner);
  ~Package() { fi_package_release(handle); }
  Package(const Package &) = delete;
  Package &operator=(const Package &) = delete;

  const std::vector<Argument> &group(fi_group which) const {
    return groups[which];
  }

  fi_package *const handle;

private:
  std::vector<Argument> groups[3];
  nanobind::object owner;
};

/// The options of a plan as Python gives them.
struct PlanOptions {
  int32_t workers = 0;
  int32_t splitPolicy = FI_SPLIT_DEFAULT;
  int64_t splitKeys = 0;
  int64_t rows = 0;
  /// None, or a sequence of one entry per run argument: None or its sizes,
  /// where None stands for a size that is not known.
  nanobind::object shapes = nanobind::none();
  /// Address of a stream.
  uintptr_t stream = 0;
  bool graphSafe = false, checked = false;
  int64_t maxRequests = 0, maxRequestRows = 0, maxPages = 0;
  int64_t profileBytes = 0;
};

class Plan {
public:
  /// `device`: an ordinal; negative for a package for the CPU.
  Plan(nanobind::handle package, nanobind::tuple values, int32_t device,
       const PlanOptions &options);
  ~Plan();
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  void update(nanobind::tuple values, const PlanOptions &options);
  /// Values by position, then those whose names are in the tuple `names`, as C
  /// functions of Python get them. Returns a new reference.
  PyObject *run(PyObject *const *args, size_t given, PyObject *names);
  /// Adds `run` to the class, as a function that Python calls without making a
  /// tuple and a dictionary of its arguments.
  static void addRun(nanobind::handle type, const char *doc);

  /// Raises if a checked kernel has found something.
  void check() const;
  std::string explain() const;
  std::string schedule() const;
  /// What warps did when in the last run, as JSON; waits for the stream.
  std::string timeline(uintptr_t stream) const;
  size_t workspaceBytes() const { return fi_plan_workspace_bytes(handle); }
  uint64_t generation() const { return fi_plan_generation(handle); }
  int32_t workers() const { return fi_plan_workers(handle); }

private:
  void make(nanobind::tuple values, const PlanOptions &options);
  void growWorkspace();
  void freeWorkspace();

  nanobind::object keptPackage;
  const Package &package;
  fi_device *device = nullptr;
  int32_t ordinal = -1;
  fi_plan *handle = nullptr;
  void *workspace = nullptr;
  size_t workspaceSize = 0;
  /// There is one workspace: runs of other threads on the CPU wait, and so do
  /// updates.
  std::mutex running;
};

} // namespace fi::python

#endif // FI_PYTHON_PLAN_H
