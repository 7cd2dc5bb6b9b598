//===- Explain.cpp - A plan as text and as JSON ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a plan has chosen and why, for people; who does what, for tools that
// draw it.
//
//===----------------------------------------------------------------------===//
#include "../Support/Text.h"
#include "Plan.h"

#include <algorithm>
#include <cinttypes>

namespace fi::runtime {
namespace {

std::string policyText(const SplitPolicy &policy) {
  std::string text;
  switch (policy.policy) {
  case FI_SPLIT_BALANCED:
    return "balanced";
  case FI_SPLIT_FIXED:
    append(text, "fixed, every %" PRId64 " keys", policy.keys);
    return text;
  default:
    return "none";
  }
}

const char *opName(StageOp op) {
  return op == StageOp::Attention ? "attention"
         : op == StageOp::Append  ? "append"
                                  : "rows";
}

double costOf(const Manifest &m, const WorkLists &lists, const Launch &launch,
              const fi_item &item) {
  const Stage &stage = m.stages[launch.stage];
  if (launch.merge != none) {
    const Cost &cost = stage.merges[launch.merge].cost;
    return cost.item + cost.slotRow * item.slot_count * item.row_count;
  }
  const Body &body = stage.bodies[launch.body];
  if (stage.op != StageOp::Attention)
    return body.cost.item;
  return itemCost(body, tilesOf(lists, item, body.tileKeys), item.row_count);
}

void explainAttention(std::string &text, const Stage &stage,
                      const StageReport &report, const PlanData &data,
                      size_t index) {
  const RowLengths &rows = data.rows[index];
  const ViewLengths &view = data.views[stage.view.sharedTables];
  int64_t longest = 0;
  for (int64_t keys : view.keys)
    longest = std::max(longest, keys);
  append(text,
         "  batch: %" PRId64 " requests, %" PRId64 " rows, %" PRId64
         " padding rows, longest view %" PRId64 " keys\n",
         rows.requests, rows.begin[rows.requests] - rows.begin[0],
         report.padRows, longest);
  append(text,
         "  keys: %" PRId64 " full tiles, %" PRId64
         " masked or partial tiles, %" PRId64 " skipped\n",
         report.fullTiles, report.partialTiles, report.skippedTiles);
  if (const Capacities *capacities = data.capacities) {
    const StageCapacity &most = capacities->of(index);
    append(text,
           "  graph-safe: for at most %" PRId64 " requests, %" PRId64
           " rows of which %" PRId64 " in a request",
           most.requests, most.rows, most.requestRows);
    if (stage.view.kind == ViewKind::Paged)
      append(text, ", %" PRId64 " entries of the page table", most.entries);
    text += "\n";
  }
  append(text, "  split: %s (%s)", policyText(report.policy).c_str(),
         report.overridden ? "asked for by the caller" : "from the package");
  if (report.splitUnits)
    append(text,
           "; %" PRId64 " of %" PRId64 " row tiles split, %" PRId64
           " pieces in all",
           report.splitUnits, report.units, report.pieces);
  else
    append(text, "; no row tile is split");
  append(text, ", because %s\n", report.why);
  double average = report.average;
  append(text,
         "  balance: longest worker %.0f, average %.0f (%.2fx), largest "
         "piece %.0f; unsplit the longest would be %.0f; merging costs %.0f\n",
         report.longest, average, average > 0 ? report.longest / average : 1.0,
         report.largestPiece, report.longestUnsplit, report.mergeTotal);
}

/// How a kernel of a device is launched, and what it needs.
void explainLaunch(std::string &text, const Stage &stage,
                   const StageKernels &kernels, const Launch &launch,
                   bool overlaps) {
  bool merge = launch.merge != none;
  const LaunchShape &shape = merge ? stage.merges[launch.merge].launch
                                   : stage.bodies[launch.body].launch;
  const DeviceKernel &kernel =
      merge ? kernels.merges[launch.merge] : kernels.bodies[launch.body];
  append(text,
         "    launch: %" PRId64 " CTAs of %d threads (%s), %d at once on a "
         "multiprocessor; %d registers, %" PRId64 " bytes of shared memory, "
         "%" PRId64 " of local memory\n",
         launch.grid, shape.threads,
         shape.persistent ? "persistent" : "one for each item",
         kernel.ctasPerSM, kernel.info.registers,
         shape.shared + kernel.info.shared, kernel.info.local);
  if (shape.overlaps)
    append(text, "    %s\n",
           overlaps ? "begins while the launch in front of it ends"
                    : "begins behind the launch in front of it: the driver is "
                      "older than CUDA 12.3, or FI_OVERLAP_LAUNCHES is 0");
}

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What the chip of the code has and the kernels that are launched do not use,
/// and why: what would have been of use, then what there was nothing for.
void explainFeatures(std::string &text, const Manifest &m,
                     const std::vector<std::string> &launched) {
  for (bool idle : {false, true}) {
    bool first = true;
    for (const UnusedFeatures &unused : m.unused) {
      std::vector<std::string> users;
      for (const std::string &symbol : launched)
        if (std::count(unused.kernels.begin(), unused.kernels.end(), symbol))
          users.push_back(symbol);
      if (unused.idle != idle || users.empty())
        continue;
      if (first)
        text += idle ? "nothing to do for:\n"
                     : "not used of what " + m.chip + " has:\n";
      first = false;
      text += "  " + listed(unused.features) + ": " + unused.why;
      if (users.size() < launched.size())
        text += " (" + listed(users) + ")";
      text += "\n";
    }
  }
}

/// Which CTA slot of a device does an item, as far as that can be known: the
/// CTAs that it holds at once take the next item in turn (`persistent`), or
/// whoever is done first takes it.
class Slots {
public:
  Slots(int32_t count, bool persistent)
      : loads(size_t(std::max(count, 1)), 0.0), persistent(persistent) {}

  int32_t take(double cost) {
    size_t slot = persistent
                      ? next++ % loads.size()
                      : size_t(std::min_element(loads.begin(), loads.end()) -
                               loads.begin());
    loads[slot] += cost;
    return int32_t(slot);
  }

private:
  std::vector<double> loads;
  bool persistent;
  size_t next = 0;
};

void scheduleItem(std::string &text, const Manifest &m, const WorkLists &lists,
                  const Launch &launch, const fi_item &item, size_t phase) {
  append(text,
         "{\"phase\":%zu,\"stage\":%d,\"body\":%d,\"merge\":%s,\"request\":%d,"
         "\"kv_head\":%d,\"row_begin\":%d,\"row_count\":%d,\"q_begin\":%" PRId64
         ",\"kv_len\":%" PRId64 ",\"slot\":%d,\"slots\":%d,\"cost\":%.17g,"
         "\"ranges\":[",
         phase, launch.stage, launch.body,
         launch.merge != none ? "true" : "false", item.request, item.kv_head,
         item.row_begin, item.row_count, item.q_begin, item.kv_len, item.slot,
         item.slot_count, costOf(m, lists, launch, item));
  int32_t count =
      launch.merge != none ? 0 : item.full_ranges + item.partial_ranges;
  for (int32_t r = 0; r < count; ++r) {
    const fi_key_range &range = lists.ranges[item.range_begin + r];
    append(text, "%s{\"begin\":%" PRId64 ",\"end\":%" PRId64 ",\"full\":%s}",
           r ? "," : "", range.begin, range.end,
           r < item.full_ranges ? "true" : "false");
  }
  text += "]}";
}

} // namespace

std::string explainPlan(const fi_plan &plan) {
  const Manifest &m = plan.package->manifest;
  const PlanData &data = plan.data();
  std::string text;
  text += "plan of '" + m.program + "', generation ";
  append(text, "%" PRIu64 ", for %d %s (", plan.generation.load(), data.workers,
         plan.device ? "CTAs at once" : "workers");
  if (plan.device) {
    append(text, "%s device %d: %s, %s, %d multiprocessors",
           plan.device->driver->name, plan.device->ordinal,
           plan.device->info.name, chipOf(*plan.device).c_str(),
           plan.device->info.multiprocessors);
    if (m.chip != chipOf(*plan.device))
      text += ", code for " + m.chip;
  } else {
    text += "cpu";
    if (!m.targetCpu.empty())
      text += " " + m.targetCpu;
  }
  text += ")\n";
  std::vector<std::string> launched;
  for (size_t s = 0; s < m.stages.size(); ++s) {
    const Stage &stage = m.stages[s];
    append(text, "stage %zu: %s '%s'", s, opName(stage.op), stage.name.c_str());
    if (stage.op == StageOp::Attention)
      append(text,
             ", %" PRId64 " query heads on %" PRId64 " KV heads, dims %" PRId64
             " and %" PRId64,
             stage.queryHeads, stage.kvHeads, stage.qkDim, stage.voDim);
    text += "\n";
    if (stage.op == StageOp::Attention)
      explainAttention(text, stage, data.lists.reports[s], data, s);
    for (const Launch &launch : data.lists.launches) {
      if (launch.stage != int32_t(s))
        continue;
      append(text, "  %s '%s': %" PRId64 " items, tiles of %" PRId64 " rows",
             launch.merge != none ? "merge" : "body",
             symbolOf(m, launch).c_str(), launch.items, launch.tileRows);
      const Body &body = stage.bodies[launch.body];
      if (stage.op == StageOp::Attention && launch.merge == none) {
        append(text, " and %" PRId64 " keys", body.tileKeys);
        if (body.maxRows != unknownSize)
          append(text, ", for requests of up to %" PRId64 " packed rows",
                 body.maxRows);
      }
      if (launch.slots)
        append(text, ", %" PRId64 " state slots", launch.slots);
      text += "\n";
      if (plan.device && launch.capacity) {
        explainLaunch(text, stage, plan.module->stages[s], launch,
                      plan.device->driver->launches_overlap);
        launched.push_back(symbolOf(m, launch));
      }
    }
  }
  const WorkspaceLayout &l = data.layout;
  if (plan.device) {
    explainFeatures(text, m, launched);
    append(text,
           "workspace: %zu bytes (states %zu, temporaries %zu)\n"
           "plan: %zu bytes on the device, of which it uses %zu\n",
           l.bytes, l.temporaries - l.states, l.bytes - l.temporaries,
           data.onDevice.deviceBytes(), data.onDevice.usedBytes());
    return text;
  }
  append(text,
         "workspace: %zu bytes (control %zu, scratch %zu, states %zu, "
         "temporaries %zu)\n",
         l.bytes, l.scratch, l.states - l.scratch, l.temporaries - l.states,
         l.bytes - l.temporaries);
  return text;
}

std::string scheduleJson(const fi_plan &plan) {
  const Manifest &m = plan.package->manifest;
  const PlanData &data = plan.data();
  const WorkLists &lists = data.lists;
  std::string text = "{\"schedule\":1,\"program\":" + quoted(m.program);
  append(text, ",\"generation\":%" PRIu64 ",\"workspace\":%zu,\"stages\":[",
         plan.generation.load(), data.layout.bytes);
  for (size_t s = 0; s < m.stages.size(); ++s) {
    const Stage &stage = m.stages[s];
    text += std::string(s ? "," : "") + "{\"name\":" + quoted(stage.name) +
            ",\"op\":\"" + opName(stage.op) + "\",\"bodies\":[";
    for (size_t b = 0; b < stage.bodies.size(); ++b) {
      text += std::string(b ? "," : "") +
              "{\"symbol\":" + quoted(stage.bodies[b].symbol);
      append(text, ",\"tile_rows\":%" PRId64 ",\"tile_keys\":%" PRId64 "}",
             stage.bodies[b].tileRows, stage.bodies[b].tileKeys);
    }
    text += "]}";
  }
  // Per worker, the items in their order.
  std::vector<std::string> workers(data.workers);
  auto add = [&](int32_t worker, const Launch &launch, size_t phase,
                 int64_t index) {
    std::string &items = workers[worker];
    items += items.empty() ? "\n" : ",\n";
    scheduleItem(items, m, lists, launch, lists.items[launch.firstItem + index],
                 phase);
  };
  for (size_t p = 0; p < lists.phases.size(); ++p)
    for (int32_t i = 0; i < lists.phases[p].launchCount; ++i) {
      const Launch &launch = lists.launches[lists.phases[p].firstLaunch + i];
      if (!plan.device) {
        const int64_t *list = &lists.lists[launch.firstList];
        for (int32_t w = 0; w < data.workers; ++w)
          for (int64_t j = list[w]; j < list[w + 1]; ++j)
            add(w, launch, p, j);
        continue;
      }
      const Stage &stage = m.stages[launch.stage];
      bool merge = launch.merge != none;
      bool persistent = merge ? stage.merges[launch.merge].launch.persistent
                              : stage.bodies[launch.body].launch.persistent;
      Slots slots(
          int32_t(std::min<int64_t>({launch.grid, launch.ctas, data.workers})),
          persistent);
      for (int64_t j = 0; j < launch.items; ++j)
        add(slots.take(
                costOf(m, lists, launch, lists.items[launch.firstItem + j])),
            launch, p, j);
    }
  if (plan.device) {
    text += "],\"device\":{\"driver\":" + quoted(plan.device->driver->name) +
            ",\"name\":" + quoted(plan.device->info.name) +
            ",\"chip\":" + quoted(chipOf(*plan.device));
    append(text, ",\"ordinal\":%d},\"launches\":[", plan.device->ordinal);
    bool first = true;
    for (const Launch &launch : lists.launches) {
      if (!launch.capacity)
        continue;
      text += std::string(first ? "" : ",") +
              "{\"symbol\":" + quoted(symbolOf(m, launch));
      append(text,
             ",\"stage\":%d,\"items\":%" PRId64 ",\"grid\":%" PRId64
             ",\"at_once\":%d}",
             launch.stage, launch.items, launch.grid, launch.ctas);
      first = false;
    }
  }
  text += "],\"workers\":[";
  for (int32_t w = 0; w < data.workers; ++w) {
    append(text, "%s\n{\"worker\":%d,\"items\":[", w ? "," : "", w);
    text += workers[w] + "]}";
  }
  return text + "]}\n";
}

} // namespace fi::runtime
