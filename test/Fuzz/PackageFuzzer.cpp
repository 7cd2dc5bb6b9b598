//===- PackageFuzzer.cpp - any text as a package's manifest --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens a manifest with kernels that do nothing, asks for all it says, and
// plans and runs a small batch. What is refused has a sentence.
//
//===----------------------------------------------------------------------===//

#include "Fuzzing.h"
#include "fi-runtime/fi_runtime.h"
#include <algorithm>
#include <string>
#include <vector>

using namespace fi::fuzzing;

/// Takes the place of every kernel: the runtime calls it with pointers only.
static void doNothing() {}

static void *findKernel(void *, const char *) {
  return reinterpret_cast<void *>(&doNothing);
}

static void expectSentence(fi_status status) {
  if (status == FI_OK)
    return;
  std::string sentence = fi_last_error();
  if (sentence.empty())
    fault("something is refused without a sentence");
  note(sentence);
}

namespace {

/// Values of a group's arguments, small and of any sizes that are open.
struct Values {
  Values(fi_package *package, int32_t group, uint64_t seed) {
    int32_t count = fi_package_argument_count(package, group);
    infos.resize(std::max(count, 0));
    for (int32_t i = 0; i < count; ++i) {
      if (fi_package_argument(package, group, i, &infos[i]) != FI_OK)
        fault("an argument of a package is not there");
      if (fi_package_argument_index(package, group, infos[i].name) < 0)
        fault("an argument of a package is not found by name");
    }
    shapes.resize(infos.size());
    data.resize(infos.size());
    for (size_t i = 0; i < infos.size(); ++i)
      add(infos[i], i, seed >> (i % 16));
  }

  std::vector<fi_argument_info> infos;
  std::vector<fi_value> values;
  std::vector<fi_tensor> tensors;
  bool isSmall = true;

private:
  void add(const fi_argument_info &info, size_t i, uint64_t bits) {
    fi_value value = {};
    if (info.kind == FI_KIND_SCALAR) {
      bool isFloat = info.dtype <= FI_BF16;
      value.kind = isFloat ? FI_VALUE_FLOAT : FI_VALUE_INTEGER;
      if (isFloat)
        value.as.f32 = 0.5f;
      else
        value.as.i64 = bits % 5;
      values.push_back(value);
      return;
    }
    int64_t elements = 1;
    for (int32_t d = 0; d < info.rank; ++d) {
      int64_t size = info.shape[d] < 0 ? int64_t(bits >> d) % 4 : info.shape[d];
      shapes[i].push_back(size);
      elements = size > (1 << 16) ? 1 << 17
                                  : std::min<int64_t>(elements * size, 1 << 17);
    }
    isSmall &= elements < (1 << 17);
    // 0, 1, 2, ... are tables of requests with one row, one page, one key.
    std::vector<int64_t> &memory = data[i];
    memory.resize(isSmall ? elements + 8 : 8);
    if (info.dtype == FI_I64 || info.dtype == FI_INDEX) {
      for (size_t e = 0; e < memory.size(); ++e)
        memory[e] = e;
    } else if (info.dtype == FI_I32) {
      auto *narrow = reinterpret_cast<int32_t *>(memory.data());
      for (size_t e = 0; e < memory.size() * 2; ++e)
        narrow[e] = e;
    }
    value.as.tensor = {memory.data(), info.dtype, info.rank, shapes[i].data(),
                       nullptr};
    tensors.push_back(value.as.tensor);
    values.push_back(value);
  }

  std::vector<std::vector<int64_t>> shapes, data;
};

} // namespace

static void planAndRun(fi_package *package, uint64_t seed) {
  Values plan(package, FI_GROUP_PLAN, seed), run(package, FI_GROUP_RUN, seed),
      results(package, FI_GROUP_RESULT, seed);
  if (!plan.isSmall || !run.isSmall || !results.isSmall)
    return;
  std::vector<fi_tensor> shapes(run.values.size());
  for (size_t i = 0; i < shapes.size(); ++i)
    if (run.values[i].kind == FI_VALUE_TENSOR)
      shapes[i] = run.values[i].as.tensor;
  fi_plan_options options = {};
  options.struct_size = sizeof(options);
  options.workers = 1 + seed % 3;
  options.split_policy = seed / 3 % 4;
  options.split_keys = 1 + seed % 5;
  options.run_shapes = seed % 2 ? shapes.data() : nullptr;
  fi_plan *made = nullptr;
  fi_status status = fi_plan_create(package, plan.values.data(),
                                    plan.values.size(), &options, &made);
  expectSentence(status);
  if (status != FI_OK)
    return;
  note("planned");
  char *text = nullptr;
  for (auto *describe : {fi_plan_explain, fi_plan_schedule_json}) {
    expectSentence(describe(made, &text));
    fi_string_free(text);
    text = nullptr;
  }
  size_t bytes = fi_plan_workspace_bytes(made);
  if (bytes < (size_t(64) << 20)) {
    void *workspace = std::aligned_alloc(FI_WORKSPACE_ALIGNMENT,
                                         (bytes / FI_WORKSPACE_ALIGNMENT + 1) *
                                             FI_WORKSPACE_ALIGNMENT);
    status = fi_run(made, 0, run.values.data(), run.values.size(),
                    results.tensors.data(), results.tensors.size(), workspace,
                    bytes);
    expectSentence(status);
    if (status == FI_OK)
      note("run");
    std::free(workspace);
  }
  fi_plan_destroy(made);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Threads would not outlive the driver's forks; one is enough.
  fi_package *package = nullptr;
  const char *text = reinterpret_cast<const char *>(data);
  fi_status status =
      fi_package_from_memory(text, size, findKernel, nullptr, &package);
  if (status != FI_OK) {
    expectSentence(status);
    // Those of GPUs come with their code, which is looked at on a device.
    fi_code code = {FI_DRIVER_PTX, text, size};
    status = fi_package_from_code(text, size, &code, 1, &package);
    expectSentence(status);
    if (status != FI_OK)
      return 0;
  }
  note("opened");
  if (!fi_package_program(package))
    fault("a package has no name");
  for (uint64_t seed : {0x1234567890abcdefull, 0xfedcba0987654321ull, 0ull})
    planAndRun(package, seed);
  fi_package_release(package);
  return 0;
}
