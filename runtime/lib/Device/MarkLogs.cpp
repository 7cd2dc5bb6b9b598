//===- MarkLogs.cpp - Logs of time stamps on a device ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device memory, because writing to the host takes a kernel far longer. How
// many marks an item makes is in the manifest, and how many items a CTA has in
// the plan, so that nothing is dropped unless memory is limited.
//
//===----------------------------------------------------------------------===//
#include "MarkLogs.h"
#include "../Support/Error.h"
#include "Device.h"
#include "DevicePart.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstring>

namespace fi::runtime {
namespace {

/// The most that a plan's logs have where the options do not say.
constexpr int64_t defaultBytes = INT64_C(256) << 20;

/// Marks that a warp of the busiest CTA makes.
int64_t mostMarks(const Manifest &m, const WorkLists &lists,
                  const Launch &launch) {
  const ProfileShape &profile = shapeOf(m, launch).profile;
  const Stage &stage = m.stages[launch.stage];
  bool hasTiles = launch.merge == none && stage.op == StageOp::Attention;
  int64_t tileKeys = hasTiles ? stage.bodies[launch.body].tileKeys : 1;
  std::vector<int64_t> ofCta(size_t(std::max<int64_t>(launch.grid, 1)), 0);
  for (int64_t i = 0; i < launch.items; ++i) {
    int64_t &marks = ofCta[size_t(i) % ofCta.size()];
    marks += profile.perItem;
    if (hasTiles && profile.perTile)
      marks += profile.perTile *
               tilesOf(lists, lists.items[launch.firstItem + i], tileKeys);
  }
  return profile.perLaunch + *std::max_element(ofCta.begin(), ofCta.end());
}

} // namespace

void MarkLogs::release(fi_device &device) {
  if (memory)
    (void)device.driver->memory_free(device.driver->self, memory);
  memory = nullptr;
  capacity = used = 0;
  logs.clear();
}

/// New memory is zeros: parts of warps that have not run say so.
fi_status MarkLogs::reserve(fi_device &device, size_t bytes, void *stream) {
  if (bytes <= capacity)
    return FI_OK;
  const fi_driver &driver = *device.driver;
  if (memory)
    (void)driver.memory_free(driver.self, memory);
  memory = nullptr;
  capacity = 0;
  void *there = nullptr;
  if (int result = driver.memory_alloc(driver.self, bytes, &there))
    return deviceFailed(device, result,
                        "plan: device memory for logs of time stamps");
  memory = static_cast<char *>(there);
  const std::vector<char> zeros(std::min<size_t>(bytes, 1 << 20), 0);
  for (size_t at = 0; at < bytes; at += zeros.size())
    if (int result =
            driver.copy_to_device(driver.self, memory + at, zeros.data(),
                                  std::min(zeros.size(), bytes - at), stream))
      return deviceFailed(device, result, "plan: clearing logs of time stamps");
  // The zeros go when this function returns.
  if (int result = driver.stream_synchronize(driver.self, stream))
    return deviceFailed(device, result, "plan: clearing logs of time stamps");
  capacity = bytes;
  return FI_OK;
}

fi_status MarkLogs::place(const Manifest &manifest, const WorkLists &lists,
                          fi_device &device, int64_t most, void *stream,
                          Buffer<DeviceLaunch> &launches) {
  logs.clear();
  used = 0;
  if (!manifest.isProfiled())
    return FI_OK;
  size_t headBytes = 0, markBytes = 0;
  for (const DeviceLaunch &launch : launches) {
    const Launch &planned = lists.launches[launch.launch];
    const ProfileShape &profile = shapeOf(manifest, planned).profile;
    if (profile.marks.empty())
      continue;
    int64_t count =
        std::min<int64_t>(mostMarks(manifest, lists, planned), INT32_MAX / 2);
    Log log = {launch.launch, launch.grid, uint32_t(profile.warps()),
               uint32_t(count), 0};
    logs.push_back(log);
    headBytes += sizeof(fi_mark_log) +
                 size_t(log.grid) * log.warps * sizeof(fi_warp_marks);
    markBytes += size_t(log.grid) * log.warps * log.capacity * sizeof(fi_mark);
  }
  size_t limit = size_t(most ? most : defaultBytes);
  if (headBytes > limit)
    return fail(FI_INVALID_ARGUMENT,
                "plan: options.profile_bytes: expected at least %zu bytes, "
                "which the warps of this batch need before any mark, but got "
                "%zu",
                headBytes, limit);
  double share = headBytes + markBytes > limit
                     ? double(limit - headBytes) / double(markBytes)
                     : 1;
  for (Log &log : logs) {
    log.capacity = uint32_t(double(log.capacity) * share);
    log.offset = used;
    used += bytesOf(log);
  }
  if (logs.empty())
    return FI_OK;
  FI_TRY(reserve(device, used, stream));
  // Of all plans of the process, so that what an earlier batch left in the
  // same memory is not taken for this one's.
  static std::atomic<uint32_t> runs{0};
  do
    run = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  while (run == 0);
  const fi_driver &driver = *device.driver;
  // They are read when the stream comes to it.
  std::vector<fi_mark_log> heads;
  for (const Log &log : logs)
    heads.push_back({log.capacity, run, {0, 0}});
  size_t next = 0;
  for (DeviceLaunch &launch : launches) {
    if (next == logs.size() || logs[next].launch != launch.launch)
      continue;
    launch.marks = memory + logs[next].offset;
    const fi_mark_log &head = heads[next++];
    if (int result = driver.copy_to_device(driver.self, launch.marks, &head,
                                           sizeof(head), stream))
      return deviceFailed(device, result, "plan: logs of time stamps");
  }
  if (int result = driver.stream_synchronize(driver.self, stream))
    return deviceFailed(device, result, "plan: logs of time stamps");
  return FI_OK;
}

fi_status MarkLogs::read(fi_device &device, void *stream,
                         std::vector<WarpMarks> &warps) const {
  const fi_driver &driver = *device.driver;
  std::vector<char> bytes(used);
  if (int result =
          driver.copy_to_host(driver.self, bytes.data(), memory, used, stream))
    return deviceFailed(device, result, "timeline");
  if (int result = driver.stream_synchronize(driver.self, stream))
    return deviceFailed(device, result, "timeline");
  for (const Log &log : logs)
    for (uint32_t w = 0; w < log.grid * log.warps; ++w) {
      const char *part = bytes.data() + log.offset + sizeof(fi_mark_log) +
                         size_t(w) * partBytes(log);
      WarpMarks made = {log.launch, w / log.warps, w % log.warps, {}, {}};
      std::memcpy(&made.head, part, sizeof(made.head));
      if (made.head.run != run)
        continue;
      made.marks.resize(std::min(made.head.written, log.capacity));
      if (!made.marks.empty())
        std::memcpy(made.marks.data(), part + sizeof(fi_warp_marks),
                    made.marks.size() * sizeof(fi_mark));
      warps.push_back(std::move(made));
    }
  return FI_OK;
}

} // namespace fi::runtime
