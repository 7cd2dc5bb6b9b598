//===- RunDevice.cpp - Running a plan on a device -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks the run values and launches the plan's kernels in a stream. The
// parameters were laid out by the plan; a run copies them to its stack and
// fills in where the caller's memory is. Nothing is allocated and nothing is
// waited for.
//
//===----------------------------------------------------------------------===//
#include "../Support/Error.h"
#include "Fault.h"
#include "Run.h"
#include "Values.h"

#include <algorithm>
#include <cinttypes>
#include <string>

namespace fi::runtime {
namespace {

bool isEmpty(const fi_tensor &tensor) {
  for (int32_t d = 0; d < tensor.rank; ++d)
    if (tensor.shape[d] == 0)
      return true;
  return false;
}

/// What a device asks of a tensor beyond what all runs do.
fi_status checkOnDevice(fi_device &device, const char *name,
                        const fi_tensor &tensor, int64_t align) {
  if (isEmpty(tensor))
    return FI_OK;
  std::string why;
  if (!isDeviceMemory(device, tensor.data, why))
    return fail(FI_INVALID_RUN,
                "run: operand '%s': expected memory of device %d (%s), but got "
                "%s",
                name, device.ordinal, device.info.name, why.c_str());
  if (align <= 1)
    return FI_OK;
  // Alignments are powers of two; dividing would cost more than the rest.
  uint64_t below = uint64_t(align) - 1;
  if (reinterpret_cast<uintptr_t>(tensor.data) & below)
    return fail(FI_INVALID_RUN,
                "run: operand '%s': expected data aligned to %" PRId64
                " bytes, which its kernels load at once, but got %p",
                name, align, tensor.data);
  int64_t made[maxRank];
  const int64_t *strides = tensor.strides;
  if (!strides) {
    fillStrides(tensor, made);
    strides = made;
  }
  uint64_t bytes = uint64_t(dtypeSize(tensor.dtype));
  for (int32_t d = 0; d + 1 < tensor.rank; ++d)
    if (tensor.shape[d] > 1 && (uint64_t(strides[d]) * bytes & below))
      return fail(FI_INVALID_RUN,
                  "run: operand '%s': expected strides of a multiple of "
                  "%" PRId64 " bytes, which its kernels load at once, but got "
                  "%" PRId64 " elements of %s in dimension %d; copy it first",
                  name, align, strides[d], dtypeName(tensor.dtype), d);
  return FI_OK;
}

fi_status checkAllOnDevice(const fi_plan &plan, const fi_value *values,
                           const fi_tensor *results, const void *workspace) {
  const Manifest &m = plan.package->manifest;
  fi_device &device = *plan.device;
  for (size_t i = 0; i < m.runArguments.size(); ++i) {
    const Argument &a = m.arguments[m.runArguments[i]];
    if (a.kind != FI_KIND_SCALAR)
      FI_TRY(
          checkOnDevice(device, a.name.c_str(), values[i].as.tensor, a.align));
  }
  for (size_t i = 0; i < m.results.size(); ++i)
    FI_TRY(checkOnDevice(device, m.results[i].name.c_str(), results[i],
                         m.results[i].align));
  std::string why;
  if (plan.data().layout.bytes && !isDeviceMemory(device, workspace, why))
    return fail(FI_INVALID_RUN,
                "run: workspace: expected memory of device %d (%s), but got %s",
                device.ordinal, device.info.name, why.c_str());
  return FI_OK;
}

class DeviceRun {
public:
  DeviceRun(const fi_plan &plan, const fi_value *values,
            const fi_tensor *results, char *workspace)
      : plan(plan), data(plan.data()), manifest(plan.package->manifest),
        values(values), results(results), workspace(workspace) {}

  fi_status launchAll(void *stream) {
    const DevicePart &part = data.onDevice;
    const fi_driver &driver = *plan.device->driver;
    fi_driver_launch made = {};
    made.grid[1] = made.grid[2] = made.block[1] = made.block[2] = 1;
    made.stream = stream;
    made.params = params;
    int32_t stage = none;
    size_t slots = 0;
    for (const DeviceLaunch &launch : part.launches) {
      if (launch.stage != stage) {
        stage = launch.stage;
        slots = fillStage(part, part.stages[stage]);
      }
      LaunchTail tail = launch.tail;
      if (launch.states) {
        const Launch &planned = data.lists.launches[launch.launch];
        char *states = workspace + data.layout.states;
        tail.stateO = states + planned.stateO;
        tail.stateLse = states + planned.stateLse;
      }
      std::memcpy(params + slots, &tail, sizeof(tail));
      size_t log = slots + FI_GPU_TAIL_SLOTS;
      if (launch.log)
        params[log++] = int64_t(reinterpret_cast<intptr_t>(launch.log));
      if (launch.marks)
        params[log++] = int64_t(reinterpret_cast<intptr_t>(launch.marks));
      made.slots = uint32_t(log);
      made.tensor_maps = launch.mapCount;
      FI_TRY(describeTensors(launch, log));
      made.grid[0] = launch.grid;
      made.block[0] = launch.threads;
      made.shared = launch.shared;
      // Two runs would write time stamps into one log.
      made.overlaps = launch.overlaps && !launch.marks;
      made.param_bytes = log * sizeof(int64_t);
      if (int result = driver.launch(driver.self, launch.function, &made))
        return launchFailed(plan, launch, result, /*waited=*/false);
      if (plan.options.checked)
        FI_TRY(wait(launch, stream));
    }
    return FI_OK;
  }

private:
  /// Tensors of which a kernel copies boxes: parameters after the first `used`.
  /// What they say is what the slots of their buffers do.
  fi_status describeTensors(const DeviceLaunch &launch, size_t &used) {
    const fi_driver &driver = *plan.device->driver;
    for (uint32_t i = 0; i < launch.mapCount; ++i) {
      const TensorMapRecipe &recipe = launch.maps[i];
      fi_driver_tensor tensor = {};
      FI_TRY(describe(recipe, launch, tensor));
      used = (used + tensorMapAlignment - 1) / tensorMapAlignment *
             tensorMapAlignment;
      if (int result = driver.tensor_map(driver.self, &tensor, params + used))
        return deviceFailed(*plan.device, result,
                            ("run: operand '" + nameOf(recipe, launch.stage) +
                             "': cannot be described to tensor copies")
                                .c_str());
      used += tensorMapSlots;
    }
    return FI_OK;
  }

  std::string nameOf(const TensorMapRecipe &recipe, int32_t stage) const {
    const BufferRef &buffer = manifest.stages[stage].buffers[recipe.buffer];
    return buffer.kind == BufferRef::ArgumentBuffer
               ? manifest.arguments[buffer.index].name
           : buffer.kind == BufferRef::ResultBuffer
               ? manifest.results[buffer.index].name
               : "a temporary of stage " + std::to_string(stage);
  }

  /// The innermost dimension comes first. One that has a single element may
  /// have any stride: it gets one that is allowed. A tensor without elements,
  /// which need not lie anywhere, is described as one element of the plan's
  /// memory: no kernel reads it.
  fi_status describe(const TensorMapRecipe &recipe, const DeviceLaunch &launch,
                     fi_driver_tensor &tensor) const {
    constexpr int64_t mostStride = int64_t(1) << 40, strideUnit = 16,
                      mostElements = int64_t(1) << 32;
    const int64_t *slot = params + recipe.slot;
    bool isEmpty = std::count(slot + 1, slot + 1 + recipe.rank, 0) > 0;
    int64_t element = int64_t(dtypeSize(recipe.dtype));
    uintptr_t data = isEmpty ? reinterpret_cast<uintptr_t>(launch.tail.items) /
                                   strideUnit * strideUnit
                             : uintptr_t(slot[0]);
    tensor.data = reinterpret_cast<const void *>(data);
    tensor.rank = recipe.rank;
    tensor.element = int32_t(element);
    tensor.swizzle = recipe.swizzle;
    for (int32_t d = 0; d < recipe.rank; ++d) {
      int32_t from = recipe.rank - 1 - d;
      int64_t size = isEmpty ? 1 : slot[1 + from];
      int64_t stride = slot[1 + recipe.rank + from] * element;
      tensor.sizes[d] = size;
      tensor.box[d] = recipe.box[from];
      if (size == 1)
        stride = strideUnit;
      tensor.strides[d] = stride;
      bool allowed = d == 0 || (stride > 0 && stride < mostStride &&
                                stride % strideUnit == 0);
      if (!allowed || size > mostElements)
        return fail(
            FI_INVALID_RUN,
            "run: operand '%s': expected at most %" PRId64
            " elements, and a stride of a positive multiple of %" PRId64
            " bytes below %" PRId64
            ", in every dimension, which its kernels copy boxes of, but got "
            "%" PRId64 " elements with a stride of %" PRId64
            " bytes in dimension %d; copy it first, or compile with 'tma = 0' "
            "in the schedule",
            nameOf(recipe, launch.stage).c_str(), mostElements, strideUnit,
            mostStride, size, stride, from);
    }
    return FI_OK;
  }

  size_t fillStage(const DevicePart &part, const StagePatches &stage) {
    std::copy_n(part.params.data() + stage.firstParam, stage.paramCount,
                params);
    for (uint32_t i = 0; i < stage.patchCount; ++i) {
      const Patch &patch = part.patches[stage.firstPatch + i];
      int64_t *slot = params + patch.slot;
      int32_t index = patch.buffer.index;
      switch (patch.buffer.kind) {
      case BufferRef::ResultBuffer:
        writeTensor(slot, results[index]);
        break;
      case BufferRef::TemporaryBuffer:
        *slot = int64_t(
            reinterpret_cast<intptr_t>(workspace + data.layout.temporaries +
                                       data.temporaryOffsets[index]));
        break;
      case BufferRef::ArgumentBuffer: {
        const Argument &a = manifest.arguments[index];
        const fi_value &value = values[a.indexInGroup];
        if (a.kind != FI_KIND_SCALAR)
          writeTensor(slot, value.as.tensor);
        else // checked before: cannot fail
          checkScalar(FI_INVALID_RUN, "run", a.name.c_str(), value, a.dtype,
                      *slot);
        break;
      }
      }
    }
    return stage.paramCount;
  }

  /// A plan that is checked knows of a launch that fails which it was.
  fi_status wait(const DeviceLaunch &launch, void *stream) const {
    const fi_driver &driver = *plan.device->driver;
    if (int result = driver.stream_synchronize(driver.self, stream))
      return launchFailed(plan, launch, result, /*waited=*/true);
    return checkFaults(plan);
  }

  const fi_plan &plan;
  const PlanData &data;
  const Manifest &manifest;
  const fi_value *values;
  const fi_tensor *results;
  char *workspace;
  alignas(64) int64_t params[maxParamSlots + 1];
};

} // namespace

fi_status runPlanOnDevice(fi_plan *plan, uint64_t generation,
                          const fi_value *values, int32_t valueCount,
                          const fi_tensor *results, int32_t resultCount,
                          void *workspace, size_t bytes, void *stream) {
  PlanUse use;
  FI_TRY(use.begin(plan, generation, valueCount, values, resultCount, results));
  if (!plan->device)
    return fail(FI_INVALID_ARGUMENT,
                "run: expected a plan for a device, but got one for the cpu; "
                "run it with fi_run");
  FI_TRY(checkWorkspace(plan->data(), workspace, bytes));
  FI_TRY(checkValues(*plan, values, results));
  InContext context(*plan->device);
  FI_TRY(context.status("run"));
  FI_TRY(checkAllOnDevice(*plan, values, results, workspace));
  const fi_driver &driver = *plan->device->driver;
  if (int result =
          driver.stream_check(driver.self, plan->device->context, stream))
    return deviceFailed(*plan->device, result, "run: stream");
  if (plan->options.checked)
    FI_TRY(checkNotCaptured(*plan->device, stream,
                            "the plan is checked and waits for its launches; "
                            "plan with options.checked 0"));
  FI_TRY(checkFaults(*plan));
  return DeviceRun(*plan, values, results, static_cast<char *>(workspace))
      .launchAll(stream);
}

} // namespace fi::runtime
