//===- Timeline.cpp - When warps began their phases -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warps note cycles of their multiprocessor, which are fine but begin anywhere,
// and, where they begin and end, nanoseconds that all multiprocessors share but
// that may be coarse. All pairs of the two together give the length of a cycle,
// and those of a multiprocessor where its cycles began.
//
//===----------------------------------------------------------------------===//
#include "Timeline.h"
#include "../Support/Error.h"
#include "../Support/Text.h"
#include "Fault.h"

#include <algorithm>
#include <cinttypes>
#include <map>

namespace fi::runtime {
namespace {

/// From cycles of multiprocessors to nanoseconds since the first warp began.
class Clocks {
public:
  explicit Clocks(const std::vector<WarpMarks> &warps) {
    for (const WarpMarks &warp : warps) {
      add(warp, warp.head.begin_time, warp.head.begin_clock);
      add(warp, warp.head.end_time, warp.head.end_clock);
    }
    double both = 0, squares = 0;
    for (const auto &[sm, pairs] : all) {
      Mean mean = meanOf(pairs);
      for (const Pair &pair : pairs) {
        both += (pair.time - mean.time) * (pair.clock - mean.clock);
        squares += (pair.clock - mean.clock) * (pair.clock - mean.clock);
      }
    }
    // A single moment says nothing of the rate.
    perCycle = squares > 0 && both > 0 ? both / squares : 1;
    for (const auto &[sm, pairs] : all)
      means[sm] = meanOf(pairs);
    first = 0;
    bool any = false;
    for (const WarpMarks &warp : warps) {
      double at = toTime(warp, warp.head.begin_clock);
      first = any ? std::min(first, at) : at;
      any = true;
    }
  }

  double nanoseconds(const WarpMarks &warp, uint64_t clock) const {
    return toTime(warp, clock) - first;
  }
  double getMHz() const { return 1000 / perCycle; }

private:
  struct Pair {
    double time, clock;
  };
  using Mean = Pair;

  static Mean meanOf(const std::vector<Pair> &pairs) {
    Mean mean = {0, 0};
    for (const Pair &pair : pairs) {
      mean.time += pair.time / double(pairs.size());
      mean.clock += pair.clock / double(pairs.size());
    }
    return mean;
  }
  /// Differences from the first pair of all, and of the multiprocessor, are
  /// small enough to be exact.
  void add(const WarpMarks &warp, uint64_t time, uint64_t clock) {
    if (all.empty())
      firstTime = time;
    auto [it, isNew] = firstClocks.try_emplace(warp.head.sm, clock);
    all[warp.head.sm].push_back({double(int64_t(time - firstTime)),
                                 double(int64_t(clock - it->second))});
  }
  double toTime(const WarpMarks &warp, uint64_t clock) const {
    const Mean &mean = means.at(warp.head.sm);
    double cycles = double(int64_t(clock - firstClocks.at(warp.head.sm)));
    return mean.time + (cycles - mean.clock) * perCycle;
  }

  std::map<uint32_t, std::vector<Pair>> all;
  std::map<uint32_t, uint64_t> firstClocks;
  std::map<uint32_t, Mean> means;
  uint64_t firstTime = 0;
  double perCycle = 1, first = 0;
};

class Writer {
public:
  Writer(const fi_plan &plan, const std::vector<WarpMarks> &warps)
      : plan(plan), lists(plan.data().lists), warps(warps), clocks(warps) {}

  std::string write() {
    const Manifest &m = plan.package->manifest;
    uint64_t marks = 0, dropped = 0;
    for (const WarpMarks &warp : warps) {
      marks += warp.marks.size();
      dropped += warp.head.dropped;
    }
    append(text,
           "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"generation\":%" PRIu64
           ",\"marks\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"clock_mhz\":%.1f,",
           plan.generation.load(), marks, dropped, clocks.getMHz());
    text += "\"program\":" + quoted(m.program) +
            ",\"device\":" + quoted(plan.device->info.name) + "},\n" +
            "\"traceEvents\":[";
    std::map<uint32_t, bool> named;
    uint32_t thread = 0;
    for (const WarpMarks &warp : warps) {
      if (!named[warp.head.sm]) {
        named[warp.head.sm] = true;
        begin("process_name", "M", warp.head.sm, 0);
        append(text, ",\"args\":{\"name\":\"SM %u\"}}", warp.head.sm);
        begin("process_sort_index", "M", warp.head.sm, 0);
        append(text, ",\"args\":{\"sort_index\":%u}}", warp.head.sm);
      }
      writeWarp(warp, ++thread);
    }
    return text + "]}\n";
  }

private:
  /// A role's name, and the warp's number in it.
  static std::pair<std::string, uint32_t> roleOf(const ProfileShape &profile,
                                                 uint32_t warp) {
    for (const ProfileShape::Role &role : profile.roles) {
      if (warp < uint32_t(role.warps))
        return {role.name, warp};
      warp -= uint32_t(role.warps);
    }
    return {"", warp};
  }

  void begin(const std::string &name, const char *kind, uint32_t process,
             uint32_t thread) {
    text += isFirst ? "\n" : ",\n";
    isFirst = false;
    text += "{\"name\":" + quoted(name);
    append(text, ",\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", kind, process, thread);
  }
  void span(const WarpMarks &warp, uint32_t thread, const std::string &name,
            const char *category, uint64_t from, uint64_t to) {
    constexpr double perMicrosecond = 1000;
    double start = clocks.nanoseconds(warp, from);
    double length = clocks.nanoseconds(warp, to) - start;
    begin(name, "X", warp.head.sm, thread);
    append(text, ",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f", category,
           start / perMicrosecond, length / perMicrosecond);
  }

  void writeWarp(const WarpMarks &warp, uint32_t thread) {
    const Manifest &m = plan.package->manifest;
    const Launch &launch = lists.launches[warp.launch];
    const ProfileShape &profile = shapeOf(m, launch).profile;
    auto [role, number] = roleOf(profile, warp.warp);
    std::string name = m.stages[launch.stage].name + ", CTA " +
                       std::to_string(warp.cta) + ", " +
                       (role.empty() ? "" : role + " ") + "warp " +
                       std::to_string(number);
    begin("thread_name", "M", warp.head.sm, thread);
    text += ",\"args\":{\"name\":" + quoted(name) +
            ",\"kernel\":" + quoted(symbolOf(m, launch)) +
            ",\"role\":" + quoted(role);
    append(text,
           ",\"launch\":%d,\"cta\":%u,\"warp\":%u,\"dropped\":%u,\"from\":%.3f,"
           "\"to\":%.3f}}",
           warp.launch, warp.cta, number, warp.head.dropped,
           clocks.nanoseconds(warp, warp.head.begin_clock) / 1000,
           clocks.nanoseconds(warp, warp.head.end_clock) / 1000);
    begin("thread_sort_index", "M", warp.head.sm, thread);
    append(text, ",\"args\":{\"sort_index\":%u}}", thread);
    writeItems(warp, thread, launch);
    writePhases(warp, thread, profile);
  }

  /// What lies around the phases, so first.
  void writeItems(const WarpMarks &warp, uint32_t thread,
                  const Launch &launch) {
    const std::vector<fi_mark> &marks = warp.marks;
    for (size_t i = 0, next; i < marks.size(); i = next) {
      next = i + 1;
      while (next < marks.size() && marks[next].item == marks[i].item)
        ++next;
      if (marks[i].item < 0)
        continue;
      // Up to its end; up to the warp's where that did not fit.
      bool isWhole = next < marks.size() || warp.head.dropped == 0;
      span(warp, thread, describeItem(plan, launch, marks[i].item), "item",
           marks[i].clock,
           isWhole ? marks[next - 1].clock : warp.head.end_clock);
      append(text, ",\"args\":{\"item\":%d", marks[i].item);
      if (marks[i].item < launch.items) {
        const fi_item &item = lists.items[launch.firstItem + marks[i].item];
        append(text,
               ",\"request\":%d,\"kv_head\":%d,\"row_begin\":%d,"
               "\"row_count\":%d,\"slot\":%d",
               item.request, item.kv_head, item.row_begin, item.row_count,
               item.slot);
      }
      text += "}}";
    }
  }

  void writePhases(const WarpMarks &warp, uint32_t thread,
                   const ProfileShape &profile) {
    const fi_mark *open = nullptr;
    auto close = [&](uint64_t clock) {
      if (!open)
        return;
      span(warp, thread, profile.marks[open->mark].name, "phase", open->clock,
           clock);
      append(text, ",\"args\":{\"item\":%d}}", open->item);
      open = nullptr;
    };
    for (const fi_mark &mark : warp.marks) {
      if (mark.mark >= profile.marks.size())
        continue; // not written by this kernel
      const ProfileShape::Mark &shape = profile.marks[mark.mark];
      if (shape.kind == ProfileShape::Moment) {
        begin(shape.name, "i", warp.head.sm, thread);
        append(text,
               ",\"cat\":\"moment\",\"s\":\"t\",\"ts\":%.3f,"
               "\"args\":{\"item\":%d}}",
               clocks.nanoseconds(warp, mark.clock) / 1000, mark.item);
        continue;
      }
      close(mark.clock);
      if (shape.kind == ProfileShape::Phase)
        open = &mark;
    }
    close(warp.head.end_clock);
  }

  const fi_plan &plan;
  const WorkLists &lists;
  const std::vector<WarpMarks> &warps;
  Clocks clocks;
  std::string text;
  bool isFirst = true;
};

} // namespace

fi_status timelineJson(const fi_plan &plan, void *stream, std::string &json) {
  const Manifest &m = plan.package->manifest;
  if (!plan.device)
    return fail(FI_UNSUPPORTED,
                "timeline: expected a plan for a GPU, whose kernels note the "
                "time, but package '%s' is compiled for the cpu",
                m.program.c_str());
  if (!m.isProfiled())
    return fail(FI_INVALID_ARGUMENT,
                "timeline: expected a package that was compiled for profiling, "
                "but '%s' was not; compile it with --profile, or with "
                "fi.profile on its module",
                m.program.c_str());
  InContext context(*plan.device);
  FI_TRY(context.status("timeline"));
  const fi_driver &driver = *plan.device->driver;
  if (int result =
          driver.stream_check(driver.self, plan.device->context, stream))
    return deviceFailed(*plan.device, result, "timeline: stream");
  std::vector<WarpMarks> warps;
  const PlanData &data = plan.data();
  if (data.onDevice.marks.bytes())
    FI_TRY(data.onDevice.marks.read(*plan.device, stream, warps));
  if (warps.empty() && data.onDevice.marks.bytes())
    return fail(FI_INVALID_ARGUMENT,
                "timeline: expected a run of the plan of '%s', generation "
                "%" PRIu64 ", that has ended, but there was none",
                m.program.c_str(), plan.generation.load());
  json = Writer(plan, warps).write();
  return FI_OK;
}

} // namespace fi::runtime
