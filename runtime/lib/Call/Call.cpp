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

#include "../Package/Package.h"
#include "../Support/Error.h"

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

} // namespace

/// A plan, and memory for runs of it. Runs at once have some each.
struct fi_call {
  std::string program;
  Key key;
  std::unique_ptr<fi_plan, PlanDeleter> plan;
  size_t bytes = 0;
  std::atomic<int> references{1};
  std::mutex mutex;
  std::vector<Memory> workspaces;

  void release() {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }
  Memory takeWorkspace() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!workspaces.empty()) {
        Memory memory = std::move(workspaces.back());
        workspaces.pop_back();
        return memory;
      }
    }
    size_t whole =
        (bytes / FI_WORKSPACE_ALIGNMENT + 1) * FI_WORKSPACE_ALIGNMENT;
    Memory memory(std::aligned_alloc(FI_WORKSPACE_ALIGNMENT, whole));
    if (!memory)
      throw std::bad_alloc();
    return memory;
  }
  void giveWorkspace(Memory memory) {
    std::lock_guard<std::mutex> lock(mutex);
    workspaces.push_back(std::move(memory));
  }
};

namespace {

struct CallDeleter {
  void operator()(fi_call *call) const { call->release(); }
};
using CallPtr = std::unique_ptr<fi_call, CallDeleter>;

/// A program that functions may call.
struct Callee {
  ~Callee() { fi_package_release(package); }

  fi_package *package = nullptr;
  int32_t workers = 0;
  size_t plansKept = 8;
  std::mutex mutex;
  /// The last ones, the newest first.
  std::list<CallPtr> plans;
  int64_t made = 0, found = 0;
};

struct Table {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Callee>, std::less<>> programs;
  fi_call_handler handler = nullptr;
  void *context = nullptr;
};

/// Never destroyed: functions may be called while the process ends.
Table &table() {
  static Table *instance = new Table;
  return *instance;
}

std::shared_ptr<Callee> find(const char *program) {
  Table &t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.programs.find(program);
  return found == t.programs.end() ? nullptr : found->second;
}

/// Tells of a failure, whose sentence is the thread's last.
void report(const char *program, fi_status status) {
  Table &t = table();
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
  if (package->manifest.onDevice())
    return fail(FI_UNSUPPORTED,
                "fi_call_register: expected a package for the cpu, but got one "
                "for %s; plan and run it by fi_plan_create and fi_run_device",
                package->manifest.chip.c_str());
  auto callee = std::make_shared<Callee>();
  retain(package);
  callee->package = package;
  callee->workers = chosen.workers;
  if (chosen.plans_kept)
    callee->plansKept = size_t(chosen.plans_kept);
  std::string name = program ? program : package->manifest.program;
  Table &t = table();
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
  Table &t = table();
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
  Table &t = table();
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
    Values given(value_count, values);
    std::vector<fi_tensor> places = Values(result_count, results).tensors();
    Memory workspace = call->takeWorkspace();
    fi_status status =
        fi_run(call->plan.get(), 0, given.data(), given.size(), places.data(),
               int32_t(places.size()), workspace.get(), call->bytes);
    call->giveWorkspace(std::move(workspace));
    return status;
  });
}

void fi_call_release(fi_call *call) {
  if (call)
    call->release();
}
