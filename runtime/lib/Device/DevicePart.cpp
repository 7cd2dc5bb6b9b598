//===- DevicePart.cpp - The part of a plan that is on a device ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block of device memory per batch of a plan, filled by one copy from
// pinned memory: work items, key ranges, tables.
//
//===----------------------------------------------------------------------===//
#include "DevicePart.h"
#include "../Launch/Values.h"
#include "../Planner/Plan.h"
#include "../Support/Error.h"

#include <cstring>

namespace fi::runtime {
namespace {

/// Tables are read with wide loads.
constexpr size_t partAlignment = 256;

size_t align(size_t bytes) {
  return (bytes + partAlignment - 1) / partAlignment * partAlignment;
}

} // namespace

void DevicePart::release() {
  if (!device)
    return;
  InContext context(*device);
  const fi_driver &driver = *device->driver;
  // Nothing useful can be done about failures: the driver may be down.
  if (copied) {
    if (copying)
      (void)driver.event_synchronize(driver.self, copied);
    (void)driver.event_destroy(driver.self, copied);
  }
  if (staging)
    (void)driver.host_free(driver.self, staging);
  if (memory)
    (void)driver.memory_free(driver.self, memory);
  memory = staging = nullptr;
  copied = nullptr;
  copying = false;
  capacity = used = 0;
  device = nullptr;
}

/// Makes sure of memory on both sides, and that the staging may be written.
fi_status DevicePart::reserve(fi_device &on, size_t bytes) {
  device = &on;
  const fi_driver &driver = *device->driver;
  if (!copied)
    if (int result = driver.event_create(driver.self, &copied)) {
      copied = nullptr;
      return deviceFailed(*device, result, "plan");
    }
  if (copying) {
    copying = false;
    if (int result = driver.event_synchronize(driver.self, copied))
      return deviceFailed(*device, result, "plan");
  }
  if (bytes <= capacity)
    return FI_OK;
  size_t wanted = align(std::max(bytes, capacity + capacity / 2));
  // The old memory serves this part's last batch, which is gone.
  if (staging)
    (void)driver.host_free(driver.self, staging);
  if (memory)
    (void)driver.memory_free(driver.self, memory);
  memory = staging = nullptr;
  capacity = 0;
  void *pinned = nullptr, *there = nullptr;
  int result = driver.host_alloc(driver.self, wanted, &pinned);
  if (result)
    return deviceFailed(*device, result, "plan: pinned memory for its lists");
  staging = static_cast<char *>(pinned);
  result = driver.memory_alloc(driver.self, wanted, &there);
  if (result)
    return deviceFailed(*device, result, "plan: device memory for its lists");
  memory = static_cast<char *>(there);
  capacity = wanted;
  return FI_OK;
}

fi_status DevicePart::build(const Manifest &manifest, const Module &module,
                            const PlanData &plan, void *stream) {
  const fi_driver &driver = *module.device->driver;
  InContext context(*module.device);
  FI_TRY(context.status("plan"));
  int32_t capturing = 0;
  int result = driver.stream_check(driver.self, module.device->context, stream);
  if (result)
    return deviceFailed(*module.device, result, "plan: options.stream");
  result = driver.stream_capturing(driver.self, stream, &capturing);
  if (result)
    return deviceFailed(*module.device, result, "plan: options.stream");
  if (capturing)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.stream: expected a stream that is not being "
                "captured, because the plan's copies are not part of runs; "
                "plan before the capture begins, or in another stream");

  size_t itemBytes = plan.lists.items.size() * sizeof(fi_item);
  size_t rangeBytes = plan.lists.ranges.size() * sizeof(fi_key_range);
  size_t ranges = align(itemBytes);
  size_t tables = ranges + align(rangeBytes);
  size_t counters = tables + align(plan.tableBytes.size());
  auto countersOf = [&](const Launch &launch) {
    bool counts =
        launch.merge == none && launch.slots > 0 &&
        manifest.stages[launch.stage].bodies[launch.body].mergesItself;
    return counts ? align(size_t(launch.slots) * sizeof(uint32_t)) : 0;
  };
  used = counters;
  for (const Launch &launch : plan.lists.launches)
    used += countersOf(launch);
  FI_TRY(reserve(*module.device, std::max<size_t>(used, 1)));
  auto put = [&](size_t offset, const void *data, size_t bytes) {
    if (bytes)
      std::memcpy(staging + offset, data, bytes);
  };
  put(0, plan.lists.items.data(), itemBytes);
  put(ranges, plan.lists.ranges.data(), rangeBytes);
  put(tables, plan.tableBytes.data(), plan.tableBytes.size());
  // Kernels leave the counters as they found them.
  std::memset(staging + counters, 0, used - counters);

  params.clear();
  patches.clear();
  stages.clear();
  for (const Stage &stage : manifest.stages) {
    StagePatches at = {uint32_t(params.size()),
                       uint32_t(stageSlots(manifest, stage)),
                       uint32_t(patches.size()), 0};
    params.resize(params.size() + at.paramCount);
    int64_t *first = params.data() + at.firstParam, *slot = first;
    for (const BufferRef &buffer : stage.buffers) {
      bool isArgument = buffer.kind == BufferRef::ArgumentBuffer;
      const Argument *a =
          isArgument ? &manifest.arguments[buffer.index] : nullptr;
      size_t count = bufferSlots(manifest, buffer);
      if (a && a->group == FI_GROUP_PLAN) {
        const Table &table = plan.kernelTables[buffer.index];
        if (a->kind == FI_KIND_SCALAR)
          *slot = table.scalar;
        else
          writeTensor(slot,
                      memory + tables +
                          (static_cast<const char *>(table.data) -
                           plan.tableBytes.data()),
                      table.rank, table.shape, table.strides);
        slot += count;
        continue;
      }
      std::fill_n(slot, count, 0);
      if (buffer.kind == BufferRef::TemporaryBuffer) {
        const Output &output = manifest.temporaries[buffer.index];
        int32_t rank = int32_t(output.shape.size());
        int64_t shape[maxRank], strides[maxRank];
        std::copy(output.shape.begin(), output.shape.end(), shape);
        shape[0] = plan.countRows(output.rowsOf);
        fillStrides({nullptr, output.dtype, rank, shape, nullptr}, strides);
        writeTensor(slot, nullptr, rank, shape, strides);
      }
      patches.push({buffer, uint32_t(slot - first)});
      ++at.patchCount;
      slot += count;
    }
    stages.push(at);
  }

  launches.clear();
  for (size_t l = 0; l < plan.lists.launches.size(); ++l) {
    const Launch &launch = plan.lists.launches[l];
    if (launch.items == 0)
      continue;
    const Stage &stage = manifest.stages[launch.stage];
    const StageKernels &kernels = module.stages[launch.stage];
    bool merge = launch.merge != none;
    const LaunchShape &shape = merge ? stage.merges[launch.merge].launch
                                     : stage.bodies[launch.body].launch;
    DeviceLaunch made = {};
    made.function = merge ? kernels.merges[launch.merge].function
                          : kernels.bodies[launch.body].function;
    made.grid = uint32_t(launch.grid);
    made.threads = uint32_t(shape.threads);
    made.shared = uint32_t(shape.shared);
    made.stage = launch.stage;
    made.launch = int32_t(l);
    made.states = launch.slots > 0;
    made.tail.items =
        reinterpret_cast<const fi_item *>(memory) + launch.firstItem;
    made.tail.ranges = reinterpret_cast<const fi_key_range *>(memory + ranges);
    if (size_t bytes = countersOf(launch)) {
      made.tail.counters = reinterpret_cast<uint32_t *>(memory + counters);
      counters += bytes;
    }
    made.tail.end = launch.items;
    launches.push(made);
  }

  if (used == 0)
    return FI_OK;
  result = driver.copy_to_device(driver.self, memory, staging, used, stream);
  if (!result) {
    result = driver.event_record(driver.self, copied, stream);
    copying = !result;
  }
  return result
             ? deviceFailed(*module.device, result, "plan: copying its lists")
             : FI_OK;
}

} // namespace fi::runtime
