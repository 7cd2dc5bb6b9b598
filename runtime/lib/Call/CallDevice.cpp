//===- CallDevice.cpp - Calls of programs for a device --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tensors of the host may overlap: a result in the place of an operand, keys
// and values that alternate in one buffer. So it is ranges of bytes that are
// copied, those that overlap as one, from the first element of a tensor to the
// last. What lies between elements of one that is written comes back as it was.
//
//===----------------------------------------------------------------------===//
#include "CallDevice.h"

#include "../Launch/Fault.h"
#include "../Launch/Run.h"
#include "../Support/Error.h"

#include <algorithm>
#include <vector>

namespace fi::runtime {

DeviceScratch::~DeviceScratch() {
  if (memory) {
    InContext context(device);
    // Waits for runs that use it.
    (void)device.driver->memory_free(device.driver->self, memory);
  }
  release(&device);
}

fi_status DeviceScratch::reserve(size_t bytes) {
  if (bytes <= capacity)
    return FI_OK;
  const fi_driver &driver = *device.driver;
  if (memory)
    (void)driver.memory_free(driver.self, memory);
  memory = nullptr;
  capacity = 0;
  void *made = nullptr;
  if (int result = driver.memory_alloc(driver.self, bytes, &made))
    return deviceFailed(device, result,
                        "run: no memory for the workspace and for copies of "
                        "the host's tensors");
  memory = static_cast<char *>(made);
  capacity = bytes;
  return FI_OK;
}

namespace {

constexpr size_t alignment = 256; // of allocations, as drivers have it

size_t alignUp(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Asks the driver each time: the host's memory may have an address that was
/// the device's before.
int32_t whereIs(const fi_device &device, const void *pointer) {
  fi_driver_pointer info = {};
  const fi_driver &driver = *device.driver;
  if (driver.pointer_info(driver.self, pointer, &info))
    return FI_DRIVER_HOST;
  return info.memory;
}

/// Bytes of the host, and where their copy is in the scratch memory.
struct Range {
  uintptr_t begin, end;
  bool isWritten;
  size_t offset;
};

/// False if the tensor has no elements.
bool findRange(const fi_tensor &tensor, Range &range) {
  int64_t first = 0, last = 0, dense = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] == 0)
      return false;
    int64_t stride = tensor.strides ? tensor.strides[d] : dense;
    int64_t reach = (tensor.shape[d] - 1) * stride;
    (reach < 0 ? first : last) += reach;
    dense *= tensor.shape[d];
  }
  int64_t bytes = dtypeSize(tensor.dtype);
  auto data = reinterpret_cast<uintptr_t>(tensor.data);
  range.begin = data + uintptr_t(first * bytes);
  range.end = data + uintptr_t((last + 1) * bytes);
  return true;
}

/// A run with values of its own, which point to the device.
class Run {
public:
  Run(fi_plan &plan, const fi_value *values, int32_t valueCount,
      const fi_tensor *results, int32_t resultCount, DeviceScratch &scratch,
      void *stream)
      : plan(plan), device(*plan.device), scratch(scratch), stream(stream),
        values(values, values + valueCount),
        results(results, results + resultCount) {}
  /// Whoever returns may free what is being copied.
  ~Run() {
    if (!isCopying)
      return;
    InContext context(device);
    (void)device.driver->stream_synchronize(device.driver->self, stream);
  }

  fi_status run() {
    InContext context(device);
    FI_TRY(context.status("run"));
    const Manifest &m = plan.package->manifest;
    // Other numbers of values are refused below.
    if (values.size() == m.runArguments.size() &&
        results.size() == m.results.size())
      find(m);
    FI_TRY(checkNotCaptured(device, stream,
                            "a call keeps its plan and its workspace as long "
                            "as it likes; plan and run what a graph repeats "
                            "by fi_plan_create and fi_run_device"));
    size_t workspace = fi_plan_workspace_bytes(&plan);
    FI_TRY(scratch.reserve(place(alignUp(workspace))));
    FI_TRY(copyIn());
    FI_TRY(runPlanOnDevice(&plan, 0, values.data(), int32_t(values.size()),
                           results.data(), int32_t(results.size()),
                           scratch.data(), workspace, stream));
    if (!waits())
      return FI_OK;
    FI_TRY(copyOut());
    isCopying = false;
    if (int result =
            device.driver->stream_synchronize(device.driver->self, stream))
      return deviceFailed(device, result, "run");
    return checkFaults(plan);
  }

private:
  bool waits() const { return isManaged || !ranges.empty(); }

  void find(const Manifest &m) {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].kind == FI_VALUE_TENSOR)
        find(values[i].as.tensor,
             m.arguments[m.runArguments[i]].kind == FI_KIND_POOL);
    for (fi_tensor &result : results)
      find(result, /*isWritten=*/true);
    std::sort(ranges.begin(), ranges.end(),
              [](const Range &a, const Range &b) { return a.begin < b.begin; });
    size_t kept = 0;
    for (size_t i = 1; i < ranges.size(); ++i) {
      Range &last = ranges[kept];
      if (ranges[i].begin < last.end) {
        last.end = std::max(last.end, ranges[i].end);
        last.isWritten |= ranges[i].isWritten;
      } else {
        ranges[++kept] = ranges[i];
      }
    }
    if (!ranges.empty())
      ranges.resize(kept + 1);
  }

  void find(fi_tensor &tensor, bool isWritten) {
    Range range = {0, 0, isWritten, 0};
    if (!findRange(tensor, range))
      return;
    int32_t where = whereIs(device, tensor.data);
    isManaged |= where == FI_DRIVER_MANAGED;
    if (where != FI_DRIVER_HOST)
      return;
    ranges.push_back(range);
    moved.push_back(&tensor);
  }

  /// From `at` on; returns the end.
  size_t place(size_t at) {
    for (Range &range : ranges) {
      range.offset = at;
      at = alignUp(at + size_t(range.end - range.begin));
    }
    return at;
  }

  fi_status copyIn() {
    const fi_driver &driver = *device.driver;
    for (const Range &range : ranges) {
      isCopying = true;
      if (int result =
              driver.copy_to_device(driver.self, scratch.data() + range.offset,
                                    reinterpret_cast<const void *>(range.begin),
                                    size_t(range.end - range.begin), stream))
        return deviceFailed(device, result, "run: copying tensors of the host");
    }
    for (fi_tensor *tensor : moved) {
      auto data = reinterpret_cast<uintptr_t>(tensor->data);
      // An address of data, not of its first byte: strides may be negative.
      auto after = std::upper_bound(
          ranges.begin(), ranges.end(), data,
          [](uintptr_t at, const Range &range) { return at < range.begin; });
      const Range &range = *std::prev(after);
      tensor->data = scratch.data() + range.offset + (data - range.begin);
    }
    return FI_OK;
  }

  fi_status copyOut() {
    const fi_driver &driver = *device.driver;
    for (const Range &range : ranges)
      if (range.isWritten)
        if (int result = driver.copy_to_host(
                driver.self, reinterpret_cast<void *>(range.begin),
                scratch.data() + range.offset, size_t(range.end - range.begin),
                stream))
          return deviceFailed(device, result, "run: copying results");
    return FI_OK;
  }

  fi_plan &plan;
  fi_device &device;
  DeviceScratch &scratch;
  void *stream;
  std::vector<fi_value> values;
  std::vector<fi_tensor> results;
  std::vector<Range> ranges;
  std::vector<fi_tensor *> moved;
  bool isManaged = false, isCopying = false;
};

} // namespace

fi_status checkPlanValues(fi_device &device, const fi_package &package,
                          const fi_value *values, int32_t count) {
  InContext context(device);
  FI_TRY(context.status("plan"));
  const Manifest &m = package.manifest;
  Range range;
  for (int32_t i = 0; i < count; ++i) {
    if (values[i].kind != FI_VALUE_TENSOR ||
        !findRange(values[i].as.tensor, range) ||
        whereIs(device, values[i].as.tensor.data) != FI_DRIVER_DEVICE)
      continue;
    bool isKnown = size_t(i) < m.planArguments.size();
    return fail(FI_INVALID_BATCH,
                "plan: operand '%s': expected memory of the host, where plans "
                "are made, but got memory of device %d (%s); keep tables and "
                "offsets on the host",
                isKnown ? m.arguments[m.planArguments[i]].name.c_str() : "",
                device.ordinal, device.info.name);
  }
  return FI_OK;
}

fi_status runOnDevice(fi_plan &plan, const fi_value *values, int32_t valueCount,
                      const fi_tensor *results, int32_t resultCount,
                      DeviceScratch &scratch, void *stream) {
  return Run(plan, values, valueCount, results, resultCount, scratch, stream)
      .run();
}

} // namespace fi::runtime
