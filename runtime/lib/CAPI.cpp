//===- CAPI.cpp - The C interface -----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_runtime.h in terms of the C++ inside. No exception leaves this file.
//
//===----------------------------------------------------------------------===//
#include "Launch/Fault.h"
#include "Launch/Run.h"
#include "Launch/Timeline.h"
#include "Support/Error.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

using namespace fi::runtime;

namespace {

/// Calls `body`, turning what it throws into a status.
template <typename Body> fi_status guarded(const char *what, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return fail(FI_OUT_OF_MEMORY, "%s: out of memory", what);
  } catch (const std::exception &error) {
    return fail(FI_INVALID_ARGUMENT, "%s: %s", what, error.what());
  }
}

fi_status nullPointer(const char *function, const char *argument) {
  return fail(FI_INVALID_ARGUMENT, "%s: expected '%s', but got NULL", function,
              argument);
}

fi_status giveString(const std::string &text, char **out) {
  char *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return FI_OK;
}

const std::vector<int32_t> *argumentsOf(const Manifest &manifest,
                                        int32_t group) {
  return group == FI_GROUP_PLAN  ? &manifest.planArguments
         : group == FI_GROUP_RUN ? &manifest.runArguments
                                 : nullptr;
}

} // namespace

const char *fi_last_error(void) { return lastError(); }

#define FI_STRING_(x) #x
#define FI_STRING(x) FI_STRING_(x)
const char *fi_runtime_version(void) {
  return "fi runtime 0.1.0, abi " FI_STRING(
      FI_ABI_VERSION) ", manifest " FI_STRING(FI_MANIFEST_VERSION);
}

fi_status fi_package_open(const char *path, fi_package **package) {
  if (!path || !package)
    return nullPointer("fi_package_open", path ? "package" : "path");
  *package = nullptr;
  return guarded("package", [&] { return openPackage(path, package); });
}

fi_status fi_package_from_memory(const char *manifest, size_t length,
                                 fi_symbol_lookup lookup, void *context,
                                 fi_package **package) {
  if (!manifest || !lookup || !package)
    return nullPointer("fi_package_from_memory", !manifest ? "manifest"
                                                 : !lookup ? "lookup"
                                                           : "package");
  *package = nullptr;
  return guarded("package", [&] {
    return openPackageFromMemory(manifest, length, lookup, context, package);
  });
}

fi_status fi_package_from_code(const char *manifest, size_t length,
                               const fi_code *codes, int32_t code_count,
                               fi_package **package) {
  if (!manifest || (!codes && code_count) || !package)
    return nullPointer("fi_package_from_code", !manifest  ? "manifest"
                                               : !package ? "package"
                                                          : "codes");
  *package = nullptr;
  return guarded("package", [&] {
    return openPackageFromCode(manifest, length, codes, code_count, package);
  });
}

fi_status fi_package_load(fi_package *package, fi_device *device) {
  if (!package || !device)
    return nullPointer("fi_package_load", package ? "device" : "package");
  return guarded("package", [&] {
    const Module *module;
    fi_package *chosen;
    FI_TRY(chooseVariant(*package, device, &chosen));
    return loadPackage(*chosen, *device, &module);
  });
}

fi_status fi_package_target(fi_package *package, const fi_device *device,
                            const char **target) {
  if (!package || !target)
    return nullPointer("fi_package_target", package ? "target" : "package");
  *target = nullptr;
  return guarded("package", [&] {
    fi_package *chosen;
    FI_TRY(chooseVariant(*package, device, &chosen));
    const Manifest &m = chosen->manifest;
    *target = m.onDevice() ? m.chip.c_str() : m.targetKind.c_str();
    return FI_OK;
  });
}

int32_t fi_device_count(const fi_driver *driver) {
  int32_t count = 0;
  if (!driver && fi_cuda_driver(&driver) != FI_OK)
    return 0;
  return driver->device_count(driver->self, &count) ? 0 : count;
}

fi_status fi_device_open(const fi_driver *driver, int32_t ordinal,
                         fi_device **device) {
  if (!device)
    return nullPointer("fi_device_open", "device");
  *device = nullptr;
  return guarded("device", [&] { return openDevice(driver, ordinal, device); });
}

void fi_device_release(fi_device *device) { release(device); }

fi_status fi_device_describe(const fi_device *device,
                             fi_driver_device *description) {
  if (!device || !description)
    return nullPointer("fi_device_describe", device ? "description" : "device");
  *description = device->info;
  return FI_OK;
}

const fi_driver *fi_device_driver(const fi_device *device) {
  return device ? device->driver : nullptr;
}

void fi_package_release(fi_package *package) { release(package); }

const char *fi_package_program(const fi_package *package) {
  return package ? package->manifest.program.c_str() : "";
}

int32_t fi_package_argument_count(const fi_package *package, int32_t group) {
  if (!package)
    return 0;
  const Manifest &m = package->manifest;
  if (group == FI_GROUP_RESULT)
    return int32_t(m.results.size());
  const auto *arguments = argumentsOf(m, group);
  return arguments ? int32_t(arguments->size()) : 0;
}

fi_status fi_package_argument(const fi_package *package, int32_t group,
                              int32_t index, fi_argument_info *info) {
  if (!package || !info)
    return nullPointer("fi_package_argument", package ? "info" : "package");
  int32_t count = fi_package_argument_count(package, group);
  if (index < 0 || index >= count)
    return fail(FI_INVALID_ARGUMENT,
                "fi_package_argument: expected an index below %d in group %d, "
                "but got %d",
                count, group, index);
  const Manifest &m = package->manifest;
  if (group == FI_GROUP_RESULT) {
    const Output &o = m.results[index];
    int32_t rowsOf = o.rowsOf.argument;
    bool isRun = rowsOf != none && m.arguments[rowsOf].group == FI_GROUP_RUN;
    *info = {o.name.c_str(), FI_KIND_TENSOR,
             o.dtype,        int32_t(o.shape.size()),
             o.shape.data(), isRun ? m.arguments[rowsOf].indexInGroup : -1};
    return FI_OK;
  }
  const Argument &a = m.arguments[(*argumentsOf(m, group))[index]];
  *info = {a.name.c_str(),          a.kind,         a.dtype,
           int32_t(a.shape.size()), a.shape.data(), -1};
  return FI_OK;
}

int32_t fi_package_argument_index(const fi_package *package, int32_t group,
                                  const char *name) {
  fi_argument_info info;
  for (int32_t i = 0; name && i < fi_package_argument_count(package, group);
       ++i)
    if (fi_package_argument(package, group, i, &info) == FI_OK &&
        std::strcmp(info.name, name) == 0)
      return i;
  return -1;
}

fi_status fi_plan_create(fi_package *package, const fi_value *values,
                         int32_t value_count, const fi_plan_options *options,
                         fi_plan **plan) {
  if (!package || !plan)
    return nullPointer("fi_plan_create", package ? "plan" : "package");
  *plan = nullptr;
  return guarded("plan", [&] {
    return createPlan(package, values, value_count, options, plan);
  });
}

fi_status fi_plan_update(fi_plan *plan, const fi_value *values,
                         int32_t value_count, const fi_plan_options *options) {
  if (!plan)
    return nullPointer("fi_plan_update", "plan");
  return guarded(
      "plan", [&] { return updatePlan(plan, values, value_count, options); });
}

fi_status fi_plan_check(const fi_plan *plan) {
  if (!plan)
    return nullPointer("fi_plan_check", "plan");
  return guarded("check",
                 [&] { return plan->device ? checkFaults(*plan) : FI_OK; });
}

void fi_plan_destroy(fi_plan *plan) { delete plan; }

size_t fi_plan_workspace_bytes(const fi_plan *plan) {
  return plan ? plan->data().layout.bytes : 0;
}

uint64_t fi_plan_generation(const fi_plan *plan) {
  return plan ? plan->generation.load(std::memory_order_acquire) : 0;
}

int32_t fi_plan_workers(const fi_plan *plan) {
  return plan ? plan->data().workers : 0;
}

fi_status fi_plan_explain(const fi_plan *plan, char **text) {
  if (!plan || !text)
    return nullPointer("fi_plan_explain", plan ? "text" : "plan");
  *text = nullptr;
  return guarded("explain",
                 [&] { return giveString(explainPlan(*plan), text); });
}

fi_status fi_plan_schedule_json(const fi_plan *plan, char **text) {
  if (!plan || !text)
    return nullPointer("fi_plan_schedule_json", plan ? "text" : "plan");
  *text = nullptr;
  return guarded("schedule",
                 [&] { return giveString(scheduleJson(*plan), text); });
}

fi_status fi_plan_timeline_json(const fi_plan *plan, void *stream,
                                char **text) {
  if (!plan || !text)
    return nullPointer("fi_plan_timeline_json", plan ? "text" : "plan");
  *text = nullptr;
  return guarded("timeline", [&] {
    std::string json;
    FI_TRY(timelineJson(*plan, stream, json));
    return giveString(json, text);
  });
}

void fi_string_free(char *text) { std::free(text); }

fi_status fi_run(fi_plan *plan, uint64_t generation, const fi_value *values,
                 int32_t value_count, const fi_tensor *results,
                 int32_t result_count, void *workspace,
                 size_t workspace_bytes) {
  if (!plan)
    return nullPointer("fi_run", "plan");
  return guarded("run", [&] {
    return runPlan(plan, generation, values, value_count, results, result_count,
                   workspace, workspace_bytes);
  });
}

fi_status fi_run_device(fi_plan *plan, uint64_t generation,
                        const fi_value *values, int32_t value_count,
                        const fi_tensor *results, int32_t result_count,
                        void *workspace, size_t workspace_bytes, void *stream) {
  if (!plan)
    return nullPointer("fi_run_device", "plan");
  return guarded("run", [&] {
    return runPlanOnDevice(plan, generation, values, value_count, results,
                           result_count, workspace, workspace_bytes, stream);
  });
}
