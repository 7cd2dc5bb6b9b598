//===- Attention.cpp - clauses of random attentions -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draft.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace fi;
using namespace fi::fuzz;

static std::string formatNumber(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.9e", number);
  return text;
}

std::string fi::fuzz::drawNormaliser(Draft &draft) {
  static const char *const kinds[] = {"#fi.softmax<base = 2>",
                                      "#fi.softmax<base = 2>",
                                      "#fi.softmax<base = 2>",
                                      "#fi.softmax<base = e>",
                                      "#fi.sigmoid",
                                      "#fi.sigmoid<bias = -1.5>",
                                      "#fi.sum"};
  int64_t kind = draft.choose("normaliser", 7);
  draft.isAdditive = kind >= 4;
  return kinds[kind];
}

std::string fi::fuzz::drawSink(Draft &draft) {
  if (draft.isAdditive)
    return "";
  int64_t kind = draft.rarely("sink", 3, 3);
  if (kind == 0)
    return "";
  std::string type = "tensor<" + std::to_string(draft.heads()) + "xf32>";
  llvm::json::Value value = normal(2, {});
  if (kind == 2) {
    // None for some heads, and far above and below all scores.
    llvm::json::Array logits;
    for (int64_t h = 0; h < draft.heads(); ++h)
      switch (h % 4) {
      case 0:
        logits.push_back("-inf");
        break;
      case 1:
        logits.push_back(60.0);
        break;
      case 2:
        logits.push_back(-90.0);
        break;
      default:
        logits.push_back(0.5);
      }
    value = std::move(logits);
  }
  return "sink(" + draft.run("sink", type, std::move(value)) + " : " + type +
         ") ";
}

/// Of any length, up to the largest that a mask can have.
static int64_t drawBound(Draft &draft, const std::string &name) {
  static const int64_t bounds[] = {0,
                                   1,
                                   5,
                                   16,
                                   40,
                                   70,
                                   int64_t(1) << 31,
                                   int64_t(1) << 62,
                                   std::numeric_limits<int64_t>::max()};
  return draft.pick(name, bounds);
}

static std::string drawMaskAttr(Draft &draft, const std::string &name,
                                int depth) {
  switch (draft.choose(name, depth > 0 ? 5 : 4)) {
  case 1:
    return "#fi.window<left = " +
           std::to_string(drawBound(draft, name + ".left")) + ">";
  case 2:
    return "#fi.window<left = " +
           std::to_string(drawBound(draft, name + ".left")) +
           ", right = " + std::to_string(drawBound(draft, name + ".right")) +
           ">";
  case 3:
    return "#fi.window<right = " +
           std::to_string(drawBound(draft, name + ".right")) + ">";
  case 4: {
    std::string text = "#fi.any<";
    int64_t count = 1 + draft.choose(name + ".any.count", 3);
    for (int64_t i = 0; i < count; ++i)
      text += (i ? ", " : "") +
              drawMaskAttr(draft, name + ".any[" + std::to_string(i) + "]",
                           depth - 1);
    return text + ">";
  }
  default:
    return "#fi.causal";
  }
}

static std::string drawMasks(Draft &draft, Captures &captures) {
  std::string text;
  static const int64_t counts[] = {0, 1, 1, 2};
  int64_t count = draft.pick("mask.count", counts);
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "mask(") +
            drawMaskAttr(draft, "mask[" + std::to_string(i) + "]", 2);
  if (count)
    text += ") ";
  if (draft.flag("mask.region", 3))
    text += "mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: "
            "index) {\n" +
            drawMaskRegion(draft, captures) + "    } ";
  return text;
}

static std::string drawScore(Draft &draft, Captures &captures) {
  static const char *const caps[] = {"30.0", "2.0", "0.5", "1000.0"};
  switch (draft.rarely("score", 2, 3)) {
  case 1:
    return std::string("score(#fi.softcap<") + draft.pick("softcap", caps) +
           ">) ";
  case 2:
    return "score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, "
           "%kp: index) {\n" +
           drawScoreRegion(draft, captures) + "    } ";
  default:
    return "";
  }
}

static std::string drawScale(Draft &draft) {
  std::string usual = formatNumber(1 / std::sqrt(double(draft.keyDim)));
  switch (draft.rarely("scale", 3, 5)) {
  case 1:
    return draft.run("sc", "f32", 0.25);
  case 2:
    return draft.isAdditive ? usual : "1.0";
  case 3:
    return "0.0";
  case 4:
    return "-0.5";
  default:
    return usual;
  }
}

/// A row's position as usual, moved a little; so that rows of a request may be
/// anywhere, in any order, and before and behind all keys.
static std::string drawPositions(Draft &draft, const ViewDraft &view,
                                 const RowsDraft &rows) {
  int64_t kind = draft.rarely("at", 4, 3);
  if (kind == 0)
    return "";
  std::vector<int64_t> positions(draft.rows, -7);
  for (size_t r = 0; r + 1 < rows.offsets.size(); ++r)
    for (int64_t row = rows.offsets[r]; row < rows.offsets[r + 1]; ++row) {
      int64_t in = row - rows.offsets[r];
      int64_t keys = view.lengths[r];
      positions[row] =
          view.origins[r] +
          (kind == 1 ? keys - 1 - in / 2 : (row * 37 + in) % (keys + 4) - 2);
    }
  if (draft.flag("at.more", 4))
    positions.push_back(-1);
  return " at(" +
         draft.plan("pos" + view.value.substr(3), draft.indexTensor(),
                    toJson(positions)) +
         " : " + draft.indexTensor() + ")";
}

static std::string drawCPUSchedule(Draft &draft, const std::string &name,
                                   int64_t maxRows) {
  static const int64_t keys[] = {16, 32, 48, 64, 128};
  int64_t mr = 1 + draft.choose(name + ".mr", 8);
  int64_t rows =
      std::max<int64_t>(2, mr * (1 + draft.choose(name + ".rows", 6)));
  std::string text =
      "#fi.schedule<tile_rows = " + std::to_string(rows) +
      ", tile_keys = " + std::to_string(draft.pick(name + ".keys", keys)) +
      ", mr = " + std::to_string(mr) +
      ", nr = " + std::to_string(1 + draft.choose(name + ".nr", 4)) +
      ", lanes = " + (draft.flag(name + ".lanes") ? "1" : "16");
  if (maxRows)
    text += ", max_rows = " + std::to_string(maxRows);
  if (draft.flag(name + ".stream"))
    text += ", stream = 1";
  return text + ">";
}

static std::string drawGPUSchedule(Draft &draft, const std::string &name) {
  static const int64_t keys[] = {16, 32, 48};
  static const int64_t warps[] = {1, 2, 4};
  int64_t some = draft.pick(name + ".warps", warps);
  std::string text =
      "#fi.schedule<tile_rows = " +
      std::to_string(16 * some * (1 + draft.choose(name + ".rows", 2))) +
      ", tile_keys = " + std::to_string(draft.pick(name + ".keys", keys)) +
      ", warps = " + std::to_string(some) +
      ", stages = " + std::to_string(1 + draft.choose(name + ".stages", 3)) +
      ", lanes = " + (draft.flag(name + ".lanes") ? "1" : "4");
  return text + ">";
}

static std::string drawSchedules(Draft &draft) {
  if (draft.family == Family::GPU)
    return draft.flag("gpu.schedule", 3)
               ? "schedules([" + drawGPUSchedule(draft, "gpu.schedule") + "]) "
               : "";
  // Those that are chosen without a schedule take longest to compile; the small
  // one, which most programs have, least.
  static const int64_t kinds[] = {0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2};
  int64_t kind = draft.pick("schedule", kinds);
  if (kind == 0)
    return "";
  std::string text = "schedules([";
  if (kind == 1)
    return text + "#fi.schedule<tile_rows = 4, tile_keys = 16, mr = 2, nr = 1, "
                  "lanes = 16>]) ";
  if (draft.flag("schedule.few"))
    text += drawCPUSchedule(draft, "schedule.few",
                            1 + draft.choose("schedule.max", 20)) +
            ", ";
  return text + drawCPUSchedule(draft, "schedule", 0) + "]) ";
}

static std::string drawSplit(Draft &draft) {
  static const char *const splits[] = {
      "", "split(#fi.split<balanced>) ", "split(#fi.split<fixed = 1>) ",
      "split(#fi.split<fixed = 20>) ", "split(#fi.split<fixed = 64>) "};
  return splits[draft.rarely("split", 4, 5)];
}

std::string fi::fuzz::drawAttention(Draft &draft, const ViewDraft &view,
                                    const AttentionOptions &options) {
  Captures captures;
  captures.requests = view.lengths.size();
  for (auto [length, origin] : llvm::zip(view.lengths, view.origins))
    captures.positions =
        std::max(captures.positions, origin < 1000 ? origin + length : length);
  std::string text = "fi.attention " + options.query + " ";
  if (!options.rows.value.empty())
    text += "rows(" + options.rows.value + ") ";
  text += "over " + view.value + drawPositions(draft, view, options.rows) + " ";
  text += options.segments;
  text += "scale(" + drawScale(draft) + ") ";
  if (options.hasSinks)
    text += drawSink(draft);
  if (!options.normaliser.empty())
    text += "normalise(" + options.normaliser + ") ";
  std::string transforms;
  if (options.hasTransforms)
    transforms = drawTransforms(draft, captures);
  std::string score = drawScore(draft, captures);
  std::string masks = drawMasks(draft, captures);
  std::string clauses = score + masks;
  if (!transforms.empty()) {
    text += transforms.substr(0, transforms.find('>') + 2);
    transforms = transforms.substr(transforms.find('>') + 2);
  }
  if (!captures.clauses.empty())
    text += "captures(" + llvm::join(captures.clauses, ", ") + ") ";
  text += transforms + clauses;
  if (options.hasSplit)
    text += drawSplit(draft);
  // Schedules of blocks follow from these (SCH8).
  if (!llvm::StringRef(view.type).starts_with("!fi.bsr_kv"))
    text += drawSchedules(draft);
  return text + options.outs;
}
