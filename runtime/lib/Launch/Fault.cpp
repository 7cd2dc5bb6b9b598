//===- Fault.cpp - What went wrong on a device, and for whom --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver knows kernels and CTAs; the plan knows which items these did, and
// for which requests. The logs of checked kernels lie in host memory, which
// outlives a context that a fault has broken.
//
//===----------------------------------------------------------------------===//
#include "Fault.h"
#include "../Support/Error.h"

#include <cinttypes>

namespace fi::runtime {
static std::string span(const char *what, int64_t first, int64_t count) {
  return count == 1 ? std::string(what) + " " + std::to_string(first)
                    : std::string(what) + "s " + std::to_string(first) +
                          " to " + std::to_string(first + count - 1);
}

std::string describeItem(const fi_plan &plan, const Launch &launch,
                         int64_t index) {
  const PlanData &data = plan.data();
  const Stage &stage = plan.package->manifest.stages[launch.stage];
  if (index < 0 || index >= launch.items)
    return "no item of this batch";
  const fi_item &item = data.lists.items[launch.firstItem + index];
  bool ofRows = stage.op == StageOp::Rows;
  std::string text = item.request < 0 ? "padding rows"
                     : ofRows ? ""
                              : "request " + std::to_string(item.request);
  text += (text.empty() ? "" : ", ") +
          std::string(ofRows ? "head " : "KV head ") +
          std::to_string(item.kv_head);
  // Packed rows are the tokens of the request times the heads of the group.
  int64_t group = stage.op == StageOp::Attention ? stage.group : 1;
  int64_t first = item.row_begin / group;
  int64_t last = (item.row_begin + item.row_count - 1) / group;
  text += ", " + span("row", item.q_begin + first, last - first + 1);
  if (launch.merge != none || stage.op != StageOp::Attention ||
      item.full_ranges + item.partial_ranges == 0)
    return text;
  int64_t begin = INT64_MAX, end = 0;
  for (int32_t r = 0; r < item.full_ranges + item.partial_ranges; ++r) {
    const fi_key_range &range = data.lists.ranges[item.range_begin + r];
    begin = std::min(begin, range.begin);
    end = std::max(end, range.end);
  }
  return text + ", " + span("key", begin, end - begin);
}

namespace {

/// "run: attention0 of 'llama', generation 3 of the plan: kernel 'decode'".
std::string place(const fi_plan &plan, const Launch &launch) {
  const Manifest &manifest = plan.package->manifest;
  return "run: " + manifest.stages[launch.stage].name + " of '" +
         manifest.program + "', generation " +
         std::to_string(plan.generation.load(std::memory_order_relaxed)) +
         " of the plan: kernel '" + symbolOf(manifest, launch) + "'";
}

/// What a CTA does: one item, or every n-th.
std::string describeCta(const fi_plan &plan, const Launch &launch,
                        uint32_t cta) {
  constexpr int most = 4;
  std::string text;
  int64_t count = 0;
  for (int64_t i = cta; i < launch.items; i += launch.grid)
    if (++count <= most)
      text += (text.empty() ? "" : "; or ") + describeItem(plan, launch, i);
  if (count > most)
    text += "; or " + std::to_string(count - most) + " more";
  return text.empty() ? "no item of this batch" : text;
}

/// Of the items that CTAs had begun and not finished when a launch was lost.
std::string describeRunning(const fi_plan &plan, const DeviceLaunch &launch) {
  constexpr int most = 8;
  const Launch &planned = plan.data().lists.launches[launch.launch];
  std::string text;
  int64_t count = 0;
  const volatile uint32_t *running =
      reinterpret_cast<const uint32_t *>(launch.log + 1);
  for (uint32_t c = 0; c < launch.grid; ++c)
    if (uint32_t item = running[c])
      if (++count <= most)
        text += (text.empty() ? "" : "; ") +
                describeItem(plan, planned, int64_t(item) - 1);
  if (count > most)
    text += "; and " + std::to_string(count - most) + " more";
  return text;
}

} // namespace

fi_status checkFaults(const fi_plan &plan) {
  const PlanData &data = plan.data();
  for (const DeviceLaunch &launch : data.onDevice.launches) {
    if (!launch.log)
      continue;
    // Written by the device at any time.
    volatile fi_fault_log &log = *launch.log;
    uint32_t code = log.code;
    if (code == FI_FAULT_NONE)
      continue;
    const Launch &planned = data.lists.launches[launch.launch];
    std::string where = place(plan, planned) + ": " +
                        describeItem(plan, planned, log.item) + ": ";
    int64_t value = log.value, limit = log.limit;
    log.code = FI_FAULT_NONE;
    log.taken = 0; // the next one is told, too
    if (code == FI_FAULT_PAGE)
      return fail(FI_DEVICE_ERROR,
                  "%sexpected page indices from 0 below %" PRId64
                  ", the pages of its pool, but the table on the device had "
                  "%" PRId64
                  "; the plan's memory was overwritten, or a graph was "
                  "launched with a smaller pool",
                  where.c_str(), limit, value);
    return fail(FI_DEVICE_ERROR,
                "%scheck %u failed: expected at most %" PRId64
                ", but got %" PRId64,
                where.c_str(), code, limit, value);
  }
  return FI_OK;
}

fi_status launchFailed(const fi_plan &plan, const DeviceLaunch &launch,
                       int result, bool waited) {
  const fi_driver &driver = *plan.device->driver;
  const Launch &planned = plan.data().lists.launches[launch.launch];
  fi_driver_fault fault = {};
  driver.last_fault(driver.self, &fault);
  std::string said = driver.last_error(driver.self);
  std::string doing =
      place(plan, planned) + " on " + std::to_string(launch.grid) + " CTAs";
  // What checked kernels of this plan were doing, this one first.
  std::string running;
  if (launch.log)
    running = describeRunning(plan, launch);
  if (fault.located)
    doing += ", CTA " + std::to_string(fault.cta) + " (" +
             describeCta(plan, planned, fault.cta) + ")";
  else if (!running.empty())
    doing += ", while at work on " + running;
  std::string remedy;
  if (fault.earlier && !waited)
    remedy = "; this may be the fault of work that was launched before, as "
             "launches are not waited for: plan with options.checked to have "
             "each launch waited for and the one that fails named";
  return fail(statusOf(result), "%s: %s device %d (%s): %s%s", doing.c_str(),
              driver.name, plan.device->ordinal, plan.device->info.name,
              said.c_str(), remedy.c_str());
}

} // namespace fi::runtime
