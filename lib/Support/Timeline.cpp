//===- Timeline.cpp - what the warps of a GPU did when --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A table and a picture of a trace.
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Timeline.h"
#include "Svg.h"
#include "fi/Support/File.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::format;
using llvm::StringRef;

namespace {

struct Span {
  std::string name;
  double from = 0, to = 0; // microseconds
};

/// A warp of one CTA of one launch.
struct Warp {
  int64_t sm = 0, launch = 0, cta = 0, number = 0, order = 0;
  std::string kernel, role, name;
  double from = 0, to = 0;
  std::vector<Span> items, phases, moments;
};

struct Timeline {
  std::string program, device;
  int64_t marks = 0, dropped = 0;
  double megahertz = 0, length = 0;
  std::vector<Warp> warps; // in the order of launches, CTAs and warps

  Error read(StringRef json);
};

Error malformed(StringRef what) {
  return createStringError("timeline: expected " + what);
}

} // namespace

Error Timeline::read(StringRef json) {
  auto root = parseJson(json, "timeline");
  if (!root)
    return root.takeError();
  const llvm::json::Object *object = root->getAsObject();
  const llvm::json::Array *events =
      object ? object->getArray("traceEvents") : nullptr;
  if (!events)
    return malformed("an object with an array 'traceEvents'");
  if (const llvm::json::Object *other = object->getObject("otherData")) {
    program = other->getString("program").value_or("").str();
    device = other->getString("device").value_or("").str();
    marks = other->getInteger("marks").value_or(0);
    dropped = other->getInteger("dropped").value_or(0);
    megahertz = other->getNumber("clock_mhz").value_or(0);
  }
  std::map<int64_t, Warp> byThread;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object *event = value.getAsObject();
    if (!event)
      return malformed("events that are objects");
    StringRef kind = event->getString("ph").value_or("");
    StringRef name = event->getString("name").value_or("");
    int64_t thread = event->getInteger("tid").value_or(0);
    const llvm::json::Object *args = event->getObject("args");
    if (kind == "M" && name == "thread_name" && args) {
      Warp &warp = byThread[thread];
      warp.sm = event->getInteger("pid").value_or(0);
      warp.order = thread;
      warp.launch = args->getInteger("launch").value_or(0);
      warp.cta = args->getInteger("cta").value_or(0);
      warp.number = args->getInteger("warp").value_or(0);
      warp.kernel = args->getString("kernel").value_or("").str();
      warp.role = args->getString("role").value_or("").str();
      warp.name = args->getString("name").value_or("").str();
      warp.from = args->getNumber("from").value_or(0);
      warp.to = args->getNumber("to").value_or(0);
      if (!std::isfinite(warp.from) || !std::isfinite(warp.to))
        return malformed("times that are finite");
      continue;
    }
    if (kind != "X" && kind != "i")
      continue;
    Span span = {name.str(), event->getNumber("ts").value_or(0), 0};
    span.to = span.from + event->getNumber("dur").value_or(0);
    if (!std::isfinite(span.from) || !std::isfinite(span.to))
      return malformed("times that are finite");
    bool isItem = event->getString("cat").value_or("") == "item";
    Warp &warp = byThread[thread];
    (kind == "i" ? warp.moments
     : isItem    ? warp.items
                 : warp.phases)
        .push_back(span);
  }
  for (auto &[thread, warp] : byThread) {
    length = std::max(length, warp.to);
    for (const Span &span : warp.phases)
      length = std::max(length, span.to);
    warps.push_back(std::move(warp));
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Table
//===----------------------------------------------------------------------===//

static std::string describe(const Timeline &timeline) {
  std::set<int64_t> multiprocessors;
  for (const Warp &warp : timeline.warps)
    multiprocessors.insert(warp.sm);
  std::string text =
      llvm::formatv(
          "{0} marks of {1} warps on {2} multiprocessor{3}, {4:f2} us",
          timeline.marks, timeline.warps.size(), multiprocessors.size(),
          multiprocessors.size() == 1 ? "" : "s", timeline.length)
          .str();
  if (timeline.dropped > 0)
    text += llvm::formatv("; {0} MARKS DID NOT FIT into the log, so phases are "
                          "missing: give it more bytes (profile_bytes)",
                          timeline.dropped)
                .str();
  return text;
}

Expected<std::string> fi::summarizeTimeline(StringRef traceJson) {
  Timeline timeline;
  if (Error error = timeline.read(traceJson))
    return std::move(error);
  struct Phase {
    double time = 0;
    int64_t count = 0;
  };
  struct Group {
    double time = 0;
    int64_t warps = 0;
    llvm::MapVector<StringRef, Phase> phases;
  };
  llvm::MapVector<std::pair<StringRef, StringRef>, Group> groups;
  for (const Warp &warp : timeline.warps) {
    Group &group = groups[{warp.kernel, warp.role}];
    group.time += warp.to - warp.from;
    ++group.warps;
    for (const Span &span : warp.phases) {
      Phase &phase = group.phases[span.name];
      phase.time += span.to - span.from;
      ++phase.count;
    }
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "timeline of '" << timeline.program << "' on " << timeline.device
      << ": " << describe(timeline) << '\n';
  for (auto &entry : groups) {
    const auto &key = entry.first;
    Group &group = entry.second;
    out << "  " << key.first;
    if (!key.second.empty())
      out << ", " << key.second;
    out << ": " << group.warps << (group.warps == 1 ? " warp" : " warps")
        << format(", %.2f us each\n", group.time / double(group.warps));
    double left = group.time;
    auto row = [&](StringRef name, double time, int64_t count) {
      out << "    " << llvm::left_justify(name, 22)
          << format("%6.1f %%", group.time > 0 ? 100 * time / group.time : 0.0);
      if (count)
        out << format("  %8lld times, %9.3f us", (long long)count,
                      time / double(count));
      out << '\n';
    };
    for (auto &[name, phase] : group.phases) {
      row(name, phase.time, phase.count);
      left -= phase.time;
    }
    row("(between phases)", std::max(left, 0.0), 0);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Picture
//===----------------------------------------------------------------------===//

namespace {

class Picture {
public:
  explicit Picture(const Timeline &timeline) : timeline(timeline) { layOut(); }
  std::string draw(StringRef title);

private:
  struct Row {
    int64_t sm = 0;
    std::string role;
    std::vector<const Warp *> warps; // one after another
  };

  void layOut();
  void drawRow(llvm::raw_ostream &out, size_t number);
  void drawAxis(llvm::raw_ostream &out);
  void drawLegend(llvm::raw_ostream &out);
  double x(double time) const { return kLeft + time * scale; }
  double top(size_t row) const { return kTop + double(row) * pitch; }
  std::string colour(StringRef phase) const;

  static constexpr double kLeft = 118, kRight = 24, kTop = 78, kWidth = 1280;
  static constexpr double kLegendRow = 20;

  const Timeline &timeline;
  std::vector<Row> rows;
  llvm::MapVector<StringRef, double> phases; // with their time
  double scale = 1, pitch = 16;
};

} // namespace

/// Colours of the phases that fi-tile-mark makes, so that pictures of different
/// kernels can be compared; others take what is left in turn.
std::string Picture::colour(StringRef phase) const {
  static constexpr std::pair<StringRef, StringRef> known[] = {
      {"prologue", "#f4b942"},
      {"first tile", "#8fc1e3"},
      {"full tiles", "#3b7dd8"},
      {"partial tiles", "#7b61c4"},
      {"tiles", "#3b7dd8"},
      {"last product", "#26547c"},
      {"finalising", "#9aa5b1"},
      {"sharing states", "#e07a5f"},
      {"storing a state", "#c8553d"},
      {"meeting", "#d62246"},
      {"merging", "#8d2b4a"},
      {"storing results", "#4c956c"},
      {"copying", "#81b29a"},
      {"waiting for a buffer", "#f2cc8f"},
      {"waiting for a tile", "#f2cc8f"},
      {"work", "#3b7dd8"}};
  for (auto [name, value] : known)
    if (name == phase)
      return value.str();
  static constexpr StringRef others[] = {"#2a9d8f", "#e9c46a", "#e76f51",
                                         "#6d597a", "#355070", "#b56576",
                                         "#588157", "#bc6c25"};
  size_t number = 0;
  for (const auto &entry : phases) {
    if (entry.first == phase)
      break;
    ++number;
  }
  return others[number % std::size(others)].str();
}

/// CTAs that a multiprocessor has one after another share rows.
void Picture::layOut() {
  std::vector<const Warp *> firsts;
  for (const Warp &warp : timeline.warps) {
    for (const Span &span : warp.phases)
      phases[span.name] += span.to - span.from;
    if (warp.number == 0)
      firsts.push_back(&warp);
  }
  llvm::sort(firsts, [](const Warp *a, const Warp *b) {
    return std::make_tuple(a->sm, a->from, a->order) <
           std::make_tuple(b->sm, b->from, b->order);
  });
  for (const Warp *warp : firsts) {
    Row *found = nullptr;
    for (Row &row : rows)
      if (row.sm == warp->sm && row.role == warp->role &&
          row.warps.back()->to <= warp->from) {
        found = &row;
        break;
      }
    if (!found) {
      found = &rows.emplace_back();
      found->sm = warp->sm;
      found->role = warp->role;
    }
    found->warps.push_back(warp);
  }
  scale = (kWidth - kLeft - kRight) /
          (timeline.length > 1e-6 ? timeline.length : 1);
  pitch = std::max(3.0, std::min(22.0, 1200.0 / double(rows.size() + 1)));
}

void Picture::drawRow(llvm::raw_ostream &out, size_t number) {
  const Row &row = rows[number];
  double height = pitch * (pitch > 6 ? 0.86 : 1), at = top(number);
  if (pitch >= 9 || number == 0 || row.sm != rows[number - 1].sm)
    if (pitch >= 9 || row.sm % 8 == 0) {
      std::string name = "SM " + std::to_string(row.sm);
      if (pitch >= 9 && !row.role.empty())
        name += ", " + row.role;
      out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"lane\" "
                    "text-anchor=\"end\">",
                    kLeft - 8, at + std::max(height, 8.0) * 0.8)
          << svg::escape(name) << "</text>\n";
    }
  for (const Warp *warp : row.warps) {
    out << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                  "fill=\"#e5e7eb\"/>\n",
                  x(warp->from), at, (warp->to - warp->from) * scale, height);
    for (const Span &span : warp->phases) {
      double width = (span.to - span.from) * scale;
      if (width < 0.04)
        continue; // the table has it
      out << "<g><title>" << svg::escape(warp->name + ": " + span.name)
          << format(", %.3f us from %.3f us", span.to - span.from, span.from)
          << "</title>"
          << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                    "height=\"%.2f\" fill=\"%s\"/></g>\n",
                    x(span.from), at, width, height, colour(span.name).c_str());
    }
    // Where items begin, and moments, which are shorter.
    auto line = [&](const Span &span, double length) {
      out << "<g><title>" << svg::escape(span.name) << "</title>"
          << format("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
                    "stroke=\"#111827\" stroke-width=\"0.8\"/></g>\n",
                    x(span.from), at, x(span.from), at + length);
    };
    if (pitch < 5)
      continue;
    for (const Span &item : warp->items)
      line(item, height);
    for (const Span &moment : warp->moments)
      line(moment, height / 3);
  }
}

void Picture::drawAxis(llvm::raw_ostream &out) {
  double bottom = top(rows.size());
  svg::drawTicks(out, timeline.length, kTop - 4, bottom,
                 [this](double at) { return x(at); });
  out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\" "
                "text-anchor=\"middle\">microseconds</text>\n",
                (kLeft + kWidth - kRight) / 2, bottom + 30);
}

void Picture::drawLegend(llvm::raw_ostream &out) {
  double at = top(rows.size()) + 46, left = kLeft;
  for (const auto &[name, time] : phases) {
    double width = 30 + 6.2 * double(name.size());
    if (left + width > kWidth - 16) {
      left = kLeft;
      at += kLegendRow;
    }
    out << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"14\" height=\"12\" "
                  "fill=\"%s\"/>",
                  left, at, colour(name).c_str())
        << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">", left + 19,
                  at + 10)
        << svg::escape(name) << "</text>\n";
    left += width;
  }
  out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">", kLeft,
                at + kLegendRow + 10)
      << "The first warp of each role of a CTA; light grey: the warp runs "
         "outside of phases; dark lines: an item begins, short ones: a "
         "moment</text>\n";
}

std::string Picture::draw(StringRef title) {
  std::string legend;
  llvm::raw_string_ostream legendOut(legend);
  drawLegend(legendOut);
  double width = 0;
  for (const auto &[name, time] : phases)
    width += 30 + 6.2 * double(name.size());
  double height = top(rows.size()) + 46 +
                  kLegendRow * (std::ceil(width / (kWidth - kLeft - 40)) + 2);
  std::string text;
  llvm::raw_string_ostream out(text);
  svg::begin(out, kWidth, height);
  out << "<text x=\"16\" y=\"26\" class=\"title\">"
      << svg::escape(title.empty() ? "timeline of '" + timeline.program +
                                         "' on " + timeline.device
                                   : title.str())
      << "</text>\n<text x=\"16\" y=\"46\" class=\"axis\">"
      << svg::escape(describe(timeline)) << "</text>\n";
  drawAxis(out);
  for (size_t row = 0; row < rows.size(); ++row)
    drawRow(out, row);
  out << legend << "</svg>\n";
  return text;
}

Expected<std::string> fi::plotTimeline(StringRef traceJson, StringRef title) {
  Timeline timeline;
  if (Error error = timeline.read(traceJson))
    return std::move(error);
  return Picture(timeline).draw(title);
}
