//===- SchedulePlot.cpp - a plan's schedule as a picture ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Phases are one behind the other: a phase begins when the slowest worker has
// ended the one before. Items of a worker follow each other in the order of its
// list.
//
//===----------------------------------------------------------------------===//

#include "fi/Support/SchedulePlot.h"
#include "Svg.h"
#include "fi/Support/File.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <map>
#include <vector>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::format;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct Item {
  int64_t phase = 0, request = 0, head = 0, rowBegin = 0, rowCount = 0;
  int64_t keyBegin = 0, keyEnd = 0, fullKeys = 0, partialKeys = 0;
  int64_t slots = 0, stage = 0;
  bool isMerge = false;
  double cost = 0;
  /// Where it is drawn, in cost units.
  double start = 0, end = 0;
};

class Plot {
public:
  Error read(StringRef json);
  std::string draw(StringRef title);

private:
  void layOut();
  void drawHead(llvm::raw_ostream &out, StringRef title);
  void drawAxis(llvm::raw_ostream &out);
  void drawLane(llvm::raw_ostream &out, size_t worker);
  void drawItem(llvm::raw_ostream &out, const Item &item, double top);
  void drawLegend(llvm::raw_ostream &out);
  double x(double cost) const { return kLeft + cost * scale; }
  double laneTop(size_t worker) const {
    return kTop + worker * (laneHeight + kGap);
  }
  std::string describe(const Item &item) const;

  static constexpr double kLeft = 84, kRight = 76, kTop = 78, kWidth = 1280;
  static constexpr double kGap = 6, kLegendRow = 20;

  std::string program;
  std::vector<std::pair<std::string, std::string>> stages; // name, op
  std::vector<std::vector<Item>> lanes;
  std::vector<double> phaseStarts;
  std::map<int64_t, int64_t> rowsOfRequest;
  double total = 0, scale = 1, laneHeight = 34;
  int64_t itemCount = 0;
};

/// A colour per request: hues by the golden angle, so that neighbours differ.
std::string colour(const Item &item, double lightness) {
  if (item.request < 0)
    lightness += 0.08;
  double hue = std::fmod(210 + 137.508 * double(item.request), 360) / 60;
  double saturation = item.request < 0 ? 0 : 0.58;
  double chroma = (1 - std::fabs(2 * lightness - 1)) * saturation;
  double second = chroma * (1 - std::fabs(std::fmod(hue, 2) - 1));
  double rgb[3] = {0, 0, 0};
  static constexpr int kMax[] = {0, 1, 1, 2, 2, 0}, kMid[] = {1, 0, 2, 1, 0, 2};
  int sector = static_cast<int>(hue) % 6;
  rgb[kMax[sector]] = chroma;
  rgb[kMid[sector]] = second;
  std::string out;
  llvm::raw_string_ostream stream(out);
  stream << '#';
  for (double part : rgb)
    stream << format("%02x",
                     int(std::lround(255 * (part + lightness - chroma / 2))));
  return out;
}

} // namespace

Error Plot::read(StringRef json) {
  auto root = parseJson(json, "schedule");
  if (!root)
    return root.takeError();
  auto malformed = [](StringRef what) {
    return createStringError("schedule: expected " + what);
  };
  const llvm::json::Object *object = root->getAsObject();
  const llvm::json::Array *workers =
      object ? object->getArray("workers") : nullptr;
  if (!workers)
    return malformed("an object with an array 'workers'");
  program = object->getString("program").value_or("").str();
  if (const llvm::json::Array *list = object->getArray("stages"))
    for (const llvm::json::Value &value : *list)
      if (const llvm::json::Object *stage = value.getAsObject())
        stages.emplace_back(stage->getString("name").value_or("").str(),
                            stage->getString("op").value_or("").str());
  for (const llvm::json::Value &value : *workers) {
    const llvm::json::Object *worker = value.getAsObject();
    const llvm::json::Array *items =
        worker ? worker->getArray("items") : nullptr;
    if (!items)
      return malformed("workers with an array 'items'");
    lanes.emplace_back();
    for (const llvm::json::Value &entry : *items) {
      const llvm::json::Object *from = entry.getAsObject();
      if (!from)
        return malformed("items that are objects");
      auto number = [&](StringRef key) {
        return from->getInteger(key).value_or(0);
      };
      Item item;
      item.phase =
          std::min<int64_t>(std::max<int64_t>(number("phase"), 0), 1000);
      item.stage = number("stage");
      item.request = number("request");
      item.head = number("kv_head");
      item.rowBegin = number("row_begin");
      item.rowCount = number("row_count");
      item.slots = number("slots");
      item.isMerge = from->getBoolean("merge").value_or(false);
      item.cost = from->getNumber("cost").value_or(0);
      if (!(item.cost >= 0) || !std::isfinite(item.cost))
        return malformed("a cost of at least 0 of each item");
      bool first = true;
      if (const llvm::json::Array *ranges = from->getArray("ranges"))
        for (const llvm::json::Value &rangeValue : *ranges)
          if (const llvm::json::Object *range = rangeValue.getAsObject()) {
            int64_t begin = range->getInteger("begin").value_or(0),
                    end = range->getInteger("end").value_or(0);
            item.keyBegin = first ? begin : std::min(item.keyBegin, begin);
            item.keyEnd = first ? end : std::max(item.keyEnd, end);
            first = false;
            (range->getBoolean("full").value_or(false) ? item.fullKeys
                                                       : item.partialKeys) +=
                end - begin;
          }
      rowsOfRequest[item.request] += item.isMerge ? 0 : item.rowCount;
      ++itemCount;
      lanes.back().push_back(item);
    }
  }
  return Error::success();
}

void Plot::layOut() {
  int64_t phases = 0;
  for (const auto &lane : lanes)
    for (const Item &item : lane)
      phases = std::max(phases, item.phase + 1);
  for (int64_t phase = 0; phase < phases; ++phase) {
    phaseStarts.push_back(total);
    double end = total;
    for (auto &lane : lanes) {
      double at = total;
      for (Item &item : lane)
        if (item.phase == phase) {
          item.start = at;
          at += item.cost;
          item.end = at;
        }
      end = std::max(end, at);
    }
    total = end;
  }
  scale = (kWidth - kLeft - kRight) / (total > 0 ? total : 1);
  // Many workers get lower lanes.
  laneHeight = std::max(10.0, std::min(34.0, 900.0 / double(lanes.size() + 1)));
}

std::string Plot::describe(const Item &item) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (item.stage >= 0 && item.stage < int64_t(stages.size()))
    out << stages[item.stage].first << ": ";
  if (item.isMerge)
    out << "merge of " << item.slots << " pieces, ";
  if (item.request < 0)
    out << "padding rows";
  else
    out << "request " << item.request;
  out << ", KV head " << item.head << ", packed rows " << item.rowBegin
      << " to " << item.rowBegin + item.rowCount - 1;
  if (item.keyEnd > item.keyBegin)
    out << ", keys " << item.keyBegin << " to " << item.keyEnd - 1 << " ("
        << item.fullKeys << " in full tiles, " << item.partialKeys
        << " masked or partial)";
  out << ", cost " << format("%.0f", item.cost);
  return text;
}

void Plot::drawItem(llvm::raw_ostream &out, const Item &item, double top) {
  double left = x(item.start),
         width = std::max((item.end - item.start) * scale, 0.05);
  out << "<g><title>" << svg::escape(describe(item)) << "</title>"
      << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ",
                left, top, width, laneHeight);
  out << "fill=\"" << colour(item, item.isMerge ? 0.9 : 0.8) << '"';
  if (width > 2)
    out << " stroke=\"" << colour(item, 0.45) << "\" stroke-width=\"0.7\"";
  if (item.isMerge)
    out << " stroke-dasharray=\"3 2\"";
  out << "/>";
  // A strip says how much of the keys needs no mask.
  double keys = item.fullKeys + item.partialKeys;
  if (keys > 0 && width > 2 && laneHeight >= 16) {
    double full = (width - 1.4) * item.fullKeys / keys;
    out << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"4\" "
                  "fill=\"%s\"/>",
                  left + 0.7, top + laneHeight - 4.7, full,
                  colour(item, 0.42).c_str())
        << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"4\" "
                  "fill=\"%s\"/>",
                  left + 0.7 + full, top + laneHeight - 4.7, width - 1.4 - full,
                  colour(item, 0.66).c_str());
  }
  // The longest label that has room, at about 5.4 units a character.
  std::string name = item.request < 0 ? std::string("pad")
                                      : "R" + std::to_string(item.request);
  std::string rows = std::to_string(item.rowBegin) + "-" +
                     std::to_string(item.rowBegin + item.rowCount - 1);
  std::string range =
      std::to_string(item.keyBegin) + "-" + std::to_string(item.keyEnd - 1);
  std::vector<std::string> labels;
  std::string withHead = name + " h" + std::to_string(item.head);
  if (item.isMerge)
    labels = {withHead + " merge", "merge", "m"};
  else if (item.keyEnd > item.keyBegin)
    labels = {withHead + " rows " + rows + " keys " + range,
              withHead + " " + rows + " / " + range, withHead, name};
  else
    labels = {withHead + " rows " + rows, withHead, name};
  if (laneHeight >= 13)
    for (const std::string &label : labels)
      if (label.size() * 5.4 + 6 <= width) {
        out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"item\">", left + 3.5,
                      top + (laneHeight >= 24 ? 17 : laneHeight * 0.72))
            << svg::escape(label) << "</text>";
        break;
      }
  out << "</g>\n";
}

void Plot::drawLane(llvm::raw_ostream &out, size_t worker) {
  double top = laneTop(worker);
  out << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                "fill=\"#f3f4f6\"/>\n",
                kLeft, top, kWidth - kLeft - kRight, laneHeight);
  double busy = 0;
  for (size_t i = 0; i < lanes[worker].size(); ++i) {
    Item item = lanes[worker][i];
    busy += item.cost;
    // Neighbours too narrow to be seen become one box.
    while (i + 1 < lanes[worker].size()) {
      const Item &next = lanes[worker][i + 1];
      if (next.request != item.request || next.phase != item.phase ||
          next.isMerge != item.isMerge || (item.end - item.start) * scale > 0.6)
        break;
      item.end = next.end;
      item.cost += next.cost;
      busy += next.cost;
      ++i;
    }
    drawItem(out, item, top);
  }
  out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"lane\" "
                "text-anchor=\"end\">worker %zu</text>\n",
                kLeft - 8, top + laneHeight / 2 + 4, worker)
      << format("<text x=\"%.2f\" y=\"%.2f\" class=\"lane\">%.0f %%</text>\n",
                kWidth - kRight + 8, top + laneHeight / 2 + 4,
                total > 0 ? 100 * busy / total : 0.0);
}

void Plot::drawAxis(llvm::raw_ostream &out) {
  double bottom = laneTop(lanes.size());
  svg::drawTicks(out, total, kTop - 4, bottom,
                 [this](double at) { return x(at); });
  out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\" "
                "text-anchor=\"middle\">cost units of the planner</text>\n",
                (kLeft + kWidth - kRight) / 2, bottom + 30)
      << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">busy</text>\n",
                kWidth - kRight + 8, kTop - 10);
}

void Plot::drawHead(llvm::raw_ostream &out, StringRef title) {
  std::string text =
      title.empty() ? "schedule of '" + program + "'" : title.str();
  double longest = 0, sum = 0;
  for (const auto &lane : lanes) {
    double busy = 0;
    for (const Item &item : lane)
      busy += item.cost;
    longest = std::max(longest, busy);
    sum += busy;
  }
  double average = lanes.empty() ? 0 : sum / lanes.size();
  out << format("<text x=\"%.2f\" y=\"26\" class=\"title\">", 16.0)
      << svg::escape(text) << "</text>\n"
      << format("<text x=\"%.2f\" y=\"46\" class=\"axis\">", 16.0) << itemCount
      << (itemCount == 1 ? " item on " : " items on ") << lanes.size()
      << (lanes.size() == 1 ? " worker" : " workers")
      << format("; longest worker %.0f cost units, average %.0f", longest,
                average);
  if (average > 0)
    out << format(" (%.2fx)", longest / average);
  out << "</text>\n";
}

void Plot::drawLegend(llvm::raw_ostream &out) {
  double top = laneTop(lanes.size()) + 46, left = kLeft;
  auto place = [&](double width) {
    if (left + width > kWidth - 16) {
      left = kLeft;
      top += kLegendRow;
    }
    left += width;
    return left - width;
  };
  constexpr size_t kMost = 24;
  size_t shown = 0;
  for (auto [request, rows] : rowsOfRequest) {
    if (shown++ == kMost) {
      double at = place(150);
      out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">", at, top + 10)
          << "and " << rowsOfRequest.size() - kMost
          << " more requests</text>\n";
      break;
    }
    Item sample;
    sample.request = request;
    double at = place(92);
    out << format("<rect x=\"%.2f\" y=\"%.2f\" width=\"14\" height=\"12\" ", at,
                  top)
        << "fill=\"" << colour(sample, 0.8) << "\" stroke=\""
        << colour(sample, 0.45) << "\" stroke-width=\"0.7\"/>"
        << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">", at + 19,
                  top + 10);
    if (request < 0)
      out << "padding</text>\n";
    else
      out << "request " << request << "</text>\n";
  }
  left = kLeft;
  top += kLegendRow;
  out << format("<text x=\"%.2f\" y=\"%.2f\" class=\"axis\">", left, top + 10)
      << "R request, h KV head, rows x group packed; dark strip: keys in full "
         "tiles, light strip: keys under a mask or in a partial tile; dashed: "
         "merge of split rows</text>\n";
}

std::string Plot::draw(StringRef title) {
  layOut();
  size_t entries = std::min<size_t>(rowsOfRequest.size(), 25);
  double perRow = std::floor((kWidth - 16 - kLeft) / 92);
  double height = laneTop(lanes.size()) + 46 +
                  kLegendRow * (std::ceil(entries / perRow) + 1) + 16;
  std::string text;
  llvm::raw_string_ostream out(text);
  svg::begin(out, kWidth, height, ".item{font-size:10px}");
  drawHead(out, title);
  drawAxis(out);
  for (size_t worker = 0; worker < lanes.size(); ++worker)
    drawLane(out, worker);
  for (double start : phaseStarts)
    if (start > 0)
      out << format("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
                    "stroke=\"#111827\" stroke-width=\"1\" "
                    "stroke-dasharray=\"4 3\"/>\n",
                    x(start), kTop - 4, x(start), laneTop(lanes.size()));
  drawLegend(out);
  out << "</svg>\n";
  return text;
}

Expected<std::string> fi::plotSchedule(StringRef scheduleJson,
                                       StringRef title) {
  Plot plot;
  if (Error error = plot.read(scheduleJson))
    return std::move(error);
  return plot.draw(title);
}
