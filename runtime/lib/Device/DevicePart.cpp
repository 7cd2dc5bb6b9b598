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
  if (memory && ownsMemory)
    (void)driver.memory_free(driver.self, memory);
  if (logs && ownsMemory)
    (void)driver.host_free(driver.self, logs);
  marks.release(*device);
  memory = staging = logs = nullptr;
  logBytes = 0;
  copied = nullptr;
  copying = false;
  capacity = used = 0;
  device = nullptr;
}

void SharedMemory::release(fi_device &device) {
  if (!memory)
    return;
  InContext context(device);
  (void)device.driver->memory_free(device.driver->self, memory);
  if (logs)
    (void)device.driver->host_free(device.driver->self, logs);
  memory = logs = nullptr;
}

/// Makes sure of memory on both sides, and that the staging may be written.
fi_status DevicePart::reserve(fi_device &on, size_t bytes,
                              SharedMemory *shared) {
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
  if (shared)
    wanted = align(bytes); // it will never grow
  // The old memory serves this part's last batch, which is gone.
  if (staging)
    (void)driver.host_free(driver.self, staging);
  if (memory && ownsMemory)
    (void)driver.memory_free(driver.self, memory);
  memory = staging = nullptr;
  capacity = 0;
  void *pinned = nullptr, *there = nullptr;
  int result = driver.host_alloc(driver.self, wanted, &pinned);
  if (result)
    return deviceFailed(*device, result, "plan: pinned memory for its lists");
  staging = static_cast<char *>(pinned);
  ownsMemory = !shared;
  if (shared && shared->memory) {
    memory = shared->memory;
    capacity = wanted;
    return FI_OK;
  }
  result = driver.memory_alloc(driver.self, wanted, &there);
  if (result)
    return deviceFailed(*device, result, "plan: device memory for its lists");
  memory = static_cast<char *>(there);
  if (shared)
    shared->memory = memory;
  capacity = wanted;
  return FI_OK;
}

fi_status DevicePart::build(const Manifest &manifest, const Module &module,
                            const PlanData &plan, void *stream,
                            SharedMemory *shared) {
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
  size_t mostRanges = size_t(plan.lists.rangeCapacity) * sizeof(fi_key_range);
  size_t ranges = align(itemBytes);
  // Kernels ask ahead for as many as they have items (KernelABI.h).
  size_t likelyRanges = plan.lists.items.size() * sizeof(fi_key_range);
  size_t tables =
      ranges + align(std::max({rangeBytes, mostRanges, likelyRanges}));
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
  FI_TRY(reserve(*module.device, std::max<size_t>(used, 1), shared));
  auto put = [&](size_t offset, const void *data, size_t bytes) {
    if (bytes)
      std::memcpy(staging + offset, data, bytes);
  };
  put(ranges, plan.lists.ranges.data(), rangeBytes);
  // Graph-safe plans do the rest where they copy (copyGraph).
  if (!shared) {
    put(0, plan.lists.items.data(), itemBytes);
    put(tables, plan.tableBytes.data(), plan.tableBytes.size());
    // Kernels leave the counters as they found them.
    std::memset(staging + counters, 0, used - counters);
  }
  size_t firstCounter = counters;

  layOutParams(manifest, plan, tables);
  launches.clear();
  for (size_t l = 0; l < plan.lists.launches.size(); ++l) {
    const Launch &launch = plan.lists.launches[l];
    if (launch.capacity == 0)
      continue;
    const StageKernels &kernels = module.stages[launch.stage];
    bool merge = launch.merge != none;
    const LaunchShape &shape = shapeOf(manifest, launch);
    DeviceLaunch made = {};
    made.function = merge ? kernels.merges[launch.merge].function
                          : kernels.bodies[launch.body].function;
    made.grid = uint32_t(launch.grid);
    made.threads = uint32_t(shape.threads);
    made.shared = uint32_t(shape.shared);
    made.stage = launch.stage;
    made.launch = int32_t(l);
    made.states = launch.slots > 0;
    made.overlaps = shape.overlaps;
    made.maps = shape.tensorMaps.data();
    made.mapCount = uint32_t(shape.tensorMaps.size());
    made.tail.items =
        reinterpret_cast<const fi_item *>(memory) + launch.firstItem;
    made.tail.ranges = reinterpret_cast<const fi_key_range *>(memory + ranges);
    if (size_t bytes = countersOf(launch)) {
      made.tail.counters = reinterpret_cast<uint32_t *>(memory + counters);
      counters += bytes;
    }
    made.tail.end = launch.capacity;
    launches.push(made);
  }
  FI_TRY(placeLogs(manifest, plan, shared));
  FI_TRY(marks.place(manifest, plan.lists, *device, plan.profileBytes, stream,
                     launches));

  if (used == 0)
    return FI_OK;
  if (shared)
    FI_TRY(copyGraph(plan, ranges, tables, firstCounter, stream, *shared));
  else
    FI_TRY(copy(0, used, stream));
  result = driver.event_record(driver.self, copied, stream);
  copying = !result;
  return result
             ? deviceFailed(*module.device, result, "plan: copying its lists")
             : FI_OK;
}

/// Gives checked kernels their logs.
fi_status DevicePart::placeLogs(const Manifest &manifest, const PlanData &plan,
                                SharedMemory *shared) {
  auto isChecked = [&](const DeviceLaunch &launch) {
    return shapeOf(manifest, plan.lists.launches[launch.launch]).faults;
  };
  auto bytesOf = [](const DeviceLaunch &launch) {
    return align(sizeof(fi_fault_log) + launch.grid * sizeof(uint32_t));
  };
  size_t bytes = 0;
  for (const DeviceLaunch &launch : launches)
    bytes += isChecked(launch) ? bytesOf(launch) : 0;
  if (bytes == 0)
    return FI_OK;
  const fi_driver &driver = *device->driver;
  if (shared && shared->logs) {
    logs = shared->logs; // grids are what they were
  } else {
    if (bytes > logBytes) {
      void *there = nullptr;
      if (logs)
        (void)driver.host_free(driver.self, logs);
      logs = nullptr;
      if (int result = driver.host_alloc(driver.self, bytes, &there))
        return deviceFailed(*device, result,
                            "plan: host memory for logs of faults");
      logs = static_cast<char *>(there);
      logBytes = bytes;
      if (shared)
        shared->logs = logs;
    }
    std::memset(logs, 0, bytes);
  }
  size_t at = 0;
  for (DeviceLaunch &launch : launches)
    if (isChecked(launch)) {
      launch.log = reinterpret_cast<fi_fault_log *>(logs + at);
      at += bytesOf(launch);
    }
  return FI_OK;
}

fi_status DevicePart::copy(size_t offset, size_t bytes, void *stream) {
  if (bytes == 0)
    return FI_OK;
  const fi_driver &driver = *device->driver;
  int result = driver.copy_to_device(driver.self, memory + offset,
                                     staging + offset, bytes, stream);
  return result ? deviceFailed(*device, result, "plan: copying its lists")
                : FI_OK;
}

/// What has changed of a graph-safe plan, whose memory has room for the largest
/// batch: items that are or were there, ranges and tables as far as used.
fi_status DevicePart::copyGraph(const PlanData &plan, size_t ranges,
                                size_t tables, size_t counters, void *stream,
                                SharedMemory &shared) {
  const WorkLists &lists = plan.lists;
  bool first = shared.items.empty();
  if (first) {
    std::memset(staging + counters, 0, used - counters);
    FI_TRY(copy(counters, used - counters, stream));
    for (const Launch &launch : lists.launches)
      shared.items.push(launch.capacity);
  }
  // Parts that are near each other go in one copy: what lies between them is
  // surplus items, which are put there too, or unused entries.
  constexpr size_t near = 4096;
  BytePart pending = {0, 0};
  auto flush = [&](size_t offset, size_t bytes) {
    size_t end = pending.offset + pending.bytes;
    if (bytes && pending.bytes && offset <= end + near) {
      pending.bytes = offset + bytes - pending.offset;
      return FI_OK;
    }
    FI_TRY(copy(pending.offset, pending.bytes, stream));
    pending = {offset, bytes};
    return FI_OK;
  };
  for (size_t l = 0; l < lists.launches.size(); ++l) {
    const Launch &launch = lists.launches[l];
    int64_t count = std::max(launch.items, shared.items[l]);
    size_t offset = launch.firstItem * sizeof(fi_item);
    size_t bytes = size_t(count) * sizeof(fi_item);
    size_t all = size_t(launch.capacity) * sizeof(fi_item);
    if (all)
      std::memcpy(staging + offset, lists.items.data() + launch.firstItem,
                  std::min(all, bytes + near));
    if (count)
      FI_TRY(flush(offset, bytes));
  }
  if (!lists.ranges.empty())
    FI_TRY(flush(ranges, lists.ranges.size() * sizeof(fi_key_range)));
  for (const BytePart &part : plan.tableParts) {
    if (part.bytes == 0)
      continue;
    std::memcpy(staging + tables + part.offset,
                plan.tableBytes.data() + part.offset, part.bytes);
    FI_TRY(flush(tables + part.offset, part.bytes));
  }
  FI_TRY(flush(0, 0));
  for (size_t l = 0; l < lists.launches.size(); ++l)
    shared.items[l] = lists.launches[l].items;
  return FI_OK;
}

/// Parameters that do not change from run to run, and what runs fill in.
void DevicePart::layOutParams(const Manifest &manifest, const PlanData &plan,
                              size_t tables) {
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
}

} // namespace fi::runtime
