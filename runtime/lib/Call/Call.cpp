//===- Call.cpp - Programs called by compiled functions -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_call.h: a table of programs by name, and for each the last plans with what
// they were made of. Whoever calls holds a plan by a count of references, so
// that it outlives its place in the table.
//
//===----------------------------------------------------------------------===//
#include "fi-runtime/fi_call.h"

#include "../Planner/Plan.h"
#include "../Support/Error.h"
#include "CallDevice.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace fi::runtime;

namespace {

/// Values as a call gives them, in the form that the runtime takes.
class Values {
public:
  Values(int32_t count, const int64_t *words) {
    values.reserve(size_t(count > 0 ? count : 0));
    for (int32_t i = 0; i < count; ++i) {
      int64_t head = *words++;
      fi_value value = {};
      value.kind = int32_t(head & 255);
      int32_t dtype = int32_t(head >> 8 & 255), rank = int32_t(head >> 16);
      if (value.kind == FI_VALUE_TENSOR) {
        void *data = reinterpret_cast<void *>(intptr_t(*words++));
        value.as.tensor = {data, dtype, rank, words, words + rank};
        words += 2 * rank;
      } else if (value.kind == FI_VALUE_FLOAT) {
        uint32_t bits = uint32_t(*words++);
        std::memcpy(&value.as.f32, &bits, sizeof(bits));
      } else {
        value.as.i64 = *words++;
      }
      values.push_back(value);
    }
  }

  const fi_value *data() const { return values.data(); }
  int32_t size() const { return int32_t(values.size()); }
  std::vector<fi_tensor> tensors() const {
    std::vector<fi_tensor> result;
    for (const fi_value &value : values)
      result.push_back(value.kind == FI_VALUE_TENSOR ? value.as.tensor
                                                     : fi_tensor{});
    return result;
  }

private:
  std::vector<fi_value> values;
};

/// What a plan is made of, as bytes that are equal for equal values.
class Key {
public:
  void addShapes(const Values &values) {
    for (int32_t i = 0; i < values.size(); ++i)
      if (values.data()[i].kind == FI_VALUE_TENSOR)
        addShape(values.data()[i].as.tensor);
  }
  void addValues(const Values &values) {
    for (int32_t i = 0; i < values.size(); ++i) {
      const fi_value &value = values.data()[i];
      addNumber(value.kind);
      if (value.kind == FI_VALUE_TENSOR) {
        addShape(value.as.tensor);
        addElements(value.as.tensor, 0,
                    static_cast<char *>(value.as.tensor.data));
      } else if (value.kind == FI_VALUE_FLOAT) {
        add(&value.as.f32, sizeof(float));
      } else {
        addNumber(value.as.i64);
      }
    }
  }
  bool operator==(const Key &other) const { return bytes == other.bytes; }

private:
  void add(const void *data, size_t size) {
    bytes.append(static_cast<const char *>(data), size);
  }
  void addNumber(int64_t number) { add(&number, sizeof(number)); }
  void addShape(const fi_tensor &tensor) {
    addNumber(tensor.dtype);
    addNumber(tensor.rank);
    add(tensor.shape, size_t(tensor.rank) * sizeof(int64_t));
  }
  void addElements(const fi_tensor &tensor, int32_t dim, const char *at) {
    int64_t size = dtypeSize(tensor.dtype);
    // From here on the elements lie side by side.
    int64_t count = 1;
    bool isWhole = true;
    for (int32_t d = tensor.rank; d-- > dim;) {
      isWhole &= tensor.shape[d] == 1 || tensor.strides[d] == count;
      count *= tensor.shape[d];
    }
    if (count == 0)
      return;
    if (isWhole)
      return add(at, size_t(count * size));
    for (int64_t i = 0; i < tensor.shape[dim]; ++i)
      addElements(tensor, dim + 1, at + i * tensor.strides[dim] * size);
  }

  std::string bytes;
};

struct PlanDeleter {
  void operator()(fi_plan *plan) const { fi_plan_destroy(plan); }
};
struct MemoryDeleter {
  void operator()(void *memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, MemoryDeleter>;
using Scratch = std::unique_ptr<DeviceScratch>;

/// Memory for runs of a plan. Runs at once have some each.
template <typename T> class Spare {
public:
  /// Null if all are in use.
  T take() {
    std::lock_guard<std::mutex> lock(mutex);
    if (spare.empty())
      return nullptr;
    T taken = std::move(spare.back());
    spare.pop_back();
    return taken;
  }
  void give(T one) {
    std::lock_guard<std::mutex> lock(mutex);
    spare.push_back(std::move(one));
  }

private:
  std::mutex mutex;
  std::vector<T> spare;
};

} // namespace

/// A plan, and memory for runs of it.
struct fi_call {
  std::string program;
  Key key;
  std::unique_ptr<fi_plan, PlanDeleter> plan;
  size_t bytes = 0;
  void *stream = nullptr; // of a plan for a device
  std::atomic<int> references{1};

  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }

  fi_status run(const Values &values, const std::vector<fi_tensor> &results) {
    return plan->device ? runThere(values, results) : runHere(values, results);
  }

private:
  fi_status runHere(const Values &values,
                    const std::vector<fi_tensor> &results) {
    Memory workspace = workspaces.take();
    if (!workspace) {
      size_t whole =
          (bytes / FI_WORKSPACE_ALIGNMENT + 1) * FI_WORKSPACE_ALIGNMENT;
      workspace.reset(std::aligned_alloc(FI_WORKSPACE_ALIGNMENT, whole));
      if (!workspace)
        throw std::bad_alloc();
    }
    fi_status status =
        fi_run(plan.get(), 0, values.data(), values.size(), results.data(),
               int32_t(results.size()), workspace.get(), bytes);
    workspaces.give(std::move(workspace));
    return status;
  }

  /// What a run leaves under way in the stream, the next one with the same
  /// memory comes after.
  fi_status runThere(const Values &values,
                     const std::vector<fi_tensor> &results) {
    Scratch scratch = scratches.take();
    if (!scratch)
      scratch = std::make_unique<DeviceScratch>(*plan->device);
    fi_status status =
        runOnDevice(*plan, values.data(), values.size(), results.data(),
                    int32_t(results.size()), *scratch, stream);
    scratches.give(std::move(scratch));
    return status;
  }

  Spare<Memory> workspaces;
  Spare<Scratch> scratches;
};

namespace {

struct CallDeleter {
  void operator()(fi_call *call) const { call->release(); }
};
using CallPtr = std::unique_ptr<fi_call, CallDeleter>;

/// A program that functions may call.
struct Callee {
  ~Callee() {
    plans.clear();
    fi_package_release(package);
    release(device);
  }

  fi_package *package = nullptr;
  fi_device *device = nullptr; // null: this machine's threads
  void *stream = nullptr;
  int32_t workers = 0;
  size_t plansKept = 8;
  std::mutex mutex;
  /// The last ones, the newest first.
  std::list<CallPtr> plans;
  int64_t made = 0, found = 0;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Callee>, std::less<>> programs;
  fi_call_handler handler = nullptr;
  void *context = nullptr;
};

/// Never destroyed: functions may be called while the process ends.
Registry &registry() {
  static Registry *instance = new Registry;
  return *instance;
}

std::shared_ptr<Callee> find(const char *program) {
  Registry &t = registry();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.programs.find(program);
  return found == t.programs.end() ? nullptr : found->second;
}

/// Tells of a failure, whose sentence is the thread's last.
void report(const char *program, fi_status status) {
  Registry &t = registry();
  fi_call_handler handler;
  void *context;
  {
    std::lock_guard<std::mutex> lock(t.mutex);
    handler = t.handler;
    context = t.context;
  }
  if (handler)
    return handler(context, program, status, lastError());
  std::fprintf(stderr, "fi: a call of program '%s' failed: %s\n", program,
               lastError());
  std::abort();
}

/// Runs `body`; what fails in it is reported.
template <typename Body> void guard(const char *program, Body body) {
  fi_status status;
  try {
    status = body();
  } catch (const std::bad_alloc &) {
    status = fail(FI_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &error) {
    status = fail(FI_INVALID_ARGUMENT, "%s", error.what());
  }
  if (status != FI_OK)
    report(program, status);
}

fi_status plan(const char *program, const Values &values, const Values &shapes,
               fi_call **call) {
  std::shared_ptr<Callee> callee = find(program);
  if (!callee)
    return fail(FI_INVALID_ARGUMENT,
                "expected a registered program, but got '%s'; give its package "
                "to fi_call_register before the function is called",
                program);
  if (callee->device)
    FI_TRY(checkPlanValues(*callee->device, *callee->package, values.data(),
                           values.size()));
  Key key;
  key.addValues(values);
  key.addShapes(shapes);
  std::lock_guard<std::mutex> lock(callee->mutex);
  for (auto it = callee->plans.begin(); it != callee->plans.end(); ++it)
    if ((*it)->key == key) {
      callee->plans.splice(callee->plans.begin(), callee->plans, it);
      ++callee->found;
      *call = callee->plans.front().get();
      (*call)->references.fetch_add(1, std::memory_order_relaxed);
      return FI_OK;
    }
  CallPtr made(new fi_call);
  made->program = program;
  made->key = std::move(key);
  fi_plan_options options = {};
  options.struct_size = sizeof(options);
  options.workers = callee->workers;
  options.device = callee->device;
  options.stream = made->stream = callee->stream;
  std::vector<fi_tensor> tensors = shapes.tensors();
  if (shapes.size()) {
    int32_t wanted = fi_package_argument_count(callee->package, FI_GROUP_RUN);
    if (shapes.size() != wanted)
      return fail(
          FI_INVALID_ARGUMENT,
          "expected sizes of %d run arguments, but got %d: the function "
          "was compiled for another program of this name",
          wanted, shapes.size());
    options.run_shapes = tensors.data();
  }
  fi_plan *planned;
  FI_TRY(fi_plan_create(callee->package, values.data(), values.size(), &options,
                        &planned));
  made->plan.reset(planned);
  made->bytes = fi_plan_workspace_bytes(planned);
  ++callee->made;
  callee->plans.push_front(std::move(made));
  *call = callee->plans.front().get();
  (*call)->references.fetch_add(1, std::memory_order_relaxed);
  if (callee->plans.size() > callee->plansKept)
    callee->plans.pop_back();
  return FI_OK;
}

/// Where calls of a package run, for which its code is loaded; null: here.
fi_status chooseDevice(fi_package &package, const fi_call_options &options,
                       fi_device *&device) {
  const Manifest &m = package.manifest;
  if (!m.onDevice()) {
    if (options.device)
      return fail(FI_INVALID_ARGUMENT,
                  "fi_call_register: expected a package for device %d (%s), "
                  "but got one for the cpu; compile the program for %s, or "
                  "leave 'device' NULL",
                  options.device->ordinal, options.device->info.name,
                  chipOf(*options.device).c_str());
    if (options.stream)
      return fail(FI_INVALID_ARGUMENT,
                  "fi_call_register: expected 'stream' NULL for a package for "
                  "the cpu, but got one");
    return FI_OK;
  }
  if (options.device) {
    device = options.device;
    retain(device);
  } else if (fi_status status = openDevice(nullptr, 0, &device)) {
    std::string why = lastError();
    return fail(status,
                "fi_call_register: package '%s' is compiled for %s, and no "
                "'device' was given: %s",
                m.program.c_str(), m.chip.c_str(), why.c_str());
  }
  return fi_package_load(&package, device);
}

fi_status registerProgram(const char *program, fi_package *package,
                          const fi_call_options *options) {
  fi_call_options chosen = {};
  if (options) {
    if (options->struct_size < sizeof(size_t) ||
        options->struct_size > sizeof(chosen))
      return fail(FI_INVALID_ARGUMENT,
                  "fi_call_register: expected struct_size %zu, but got %zu",
                  sizeof(chosen), options->struct_size);
    std::memcpy(&chosen, options, options->struct_size);
  }
  if (chosen.plans_kept < 0 || chosen.workers < 0)
    return fail(FI_INVALID_ARGUMENT,
                "fi_call_register: expected '%s' of at least 0, but got %d",
                chosen.workers < 0 ? "workers" : "plans_kept",
                chosen.workers < 0 ? chosen.workers : chosen.plans_kept);
  auto callee = std::make_shared<Callee>();
  retain(package);
  callee->package = package;
  FI_TRY(chooseDevice(*package, chosen, callee->device));
  callee->stream = chosen.stream;
  callee->workers = chosen.workers;
  if (chosen.plans_kept)
    callee->plansKept = size_t(chosen.plans_kept);
  std::string name = program ? program : package->manifest.program;
  Registry &t = registry();
  std::shared_ptr<Callee> old;
  std::lock_guard<std::mutex> lock(t.mutex);
  std::shared_ptr<Callee> &place = t.programs[name];
  old = std::move(place);
  place = std::move(callee);
  return FI_OK;
}

} // namespace

fi_status fi_call_register(const char *program, fi_package *package,
                           const fi_call_options *options) {
  if (!package)
    return fail(FI_INVALID_ARGUMENT,
                "fi_call_register: expected 'package', but got NULL");
  try {
    return registerProgram(program, package, options);
  } catch (const std::bad_alloc &) {
    return fail(FI_OUT_OF_MEMORY, "fi_call_register: out of memory");
  }
}

fi_status fi_call_unregister(const char *program) {
  Registry &t = registry();
  std::shared_ptr<Callee> old;
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = program ? t.programs.find(program) : t.programs.end();
  if (found == t.programs.end())
    return fail(FI_INVALID_ARGUMENT,
                "fi_call_unregister: expected a registered program, but got "
                "'%s'",
                program ? program : "");
  old = std::move(found->second);
  t.programs.erase(found);
  return FI_OK;
}

void fi_call_on_error(fi_call_handler handler, void *context) {
  Registry &t = registry();
  std::lock_guard<std::mutex> lock(t.mutex);
  t.handler = handler;
  t.context = context;
}

int64_t fi_call_plans_made(const char *program) {
  std::shared_ptr<Callee> callee = program ? find(program) : nullptr;
  if (!callee)
    return -1;
  std::lock_guard<std::mutex> lock(callee->mutex);
  return callee->made;
}

int64_t fi_call_plans_found(const char *program) {
  std::shared_ptr<Callee> callee = program ? find(program) : nullptr;
  if (!callee)
    return -1;
  std::lock_guard<std::mutex> lock(callee->mutex);
  return callee->found;
}

fi_call *fi_call_plan(const char *program, int32_t value_count,
                      const int64_t *values, int32_t shape_count,
                      const int64_t *shapes) {
  fi_call *call = nullptr;
  guard(program, [&] {
    return plan(program, Values(value_count, values),
                Values(shape_count, shapes), &call);
  });
  return call;
}

void fi_call_run(fi_call *call, int32_t value_count, const int64_t *values,
                 int32_t result_count, const int64_t *results) {
  if (!call)
    return;
  guard(call->program.c_str(), [&] {
    return call->run(Values(value_count, values),
                     Values(result_count, results).tensors());
  });
}

void fi_call_release(fi_call *call) {
  if (call)
    call->release();
}
