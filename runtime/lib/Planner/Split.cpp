//===- Split.cpp - Pieces of keys, and who gets them ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The split policies, and the assignment of pieces to workers: longest first,
// each to the least loaded worker. A worker never exceeds the average by more
// than one piece (docs/planner.md has the argument).
//
//===----------------------------------------------------------------------===//
#include "../Support/Error.h"
#include "WorkList.h"

#include <cinttypes>
#include <cmath>

namespace fi::runtime {
namespace {

/// A plan within this factor of perfect balance is not split further.
constexpr double goodBalance = 1.05;
/// Time of a CTA that shares its multiprocessor with no other, as a share of
/// what it takes beside others.
constexpr double aloneShare = 0.55;
/// The same of what the last CTA takes to load states.
constexpr double loneMergeShare = 1. / 3;
/// Finer pieces must shorten the longest worker to this share.
constexpr double finerGain = 0.98;

int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// Sorts by falling cost, then by rising index. Positive floats order as their
/// bits do.
uint64_t sortKey(double cost, size_t index) {
  float rounded = float(cost);
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return uint64_t(~bits) << 32 | uint32_t(index);
}

} // namespace

int64_t WorkListBuilder::piecesUnder(const Stage &stage, const Unit &unit,
                                     double limit) const {
  if (unit.cut)
    return unit.cut;
  const Body &body = stage.bodies[unit.body];
  double tile = body.cost.tile + body.cost.tileRow * unit.rowCount;
  if (limit <= 0 || !body.canSplit() || unit.tiles <= 1 || tile <= 0 ||
      itemCost(body, unit.tiles, unit.rowCount) <= limit)
    return 1;
  int64_t tiles = int64_t(std::max(1.0, (limit - body.cost.item) / tile));
  return divideUp(unit.tiles, tiles);
}

/// Groups as if every unit were cut into equal pieces under the limit: the
/// first pieces have one tile more where it does not come out even.
void WorkListBuilder::groupEvenly(const Stage &stage, int32_t of,
                                  double limit) {
  groups.clear();
  for (size_t u = 0; u < units.size(); ++u) {
    Unit &unit = units[u];
    if (!isOf(unit, of))
      continue;
    const Body &body = stage.bodies[unit.body];
    int64_t n = piecesUnder(stage, unit, limit);
    unit.pieces = int32_t(n);
    int64_t longer = unit.tiles % n, tiles = unit.tiles / n;
    if (longer)
      groups.push({itemCost(body, tiles + 1, unit.rowCount), int32_t(u), 0,
                   int32_t(longer)});
    groups.push({itemCost(body, tiles, unit.rowCount), int32_t(u),
                 int32_t(longer), int32_t(n - longer)});
  }
}

/// Deals the members of a body's groups to workers and adds to the chunks who
/// got what.
WorkListBuilder::Dealt WorkListBuilder::deal(int32_t body, int32_t workers) {
  order.clear();
  Dealt dealt = {};
  bool sorted = true;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group &group = groups[g];
    if (!isOf(units[group.unit], body))
      continue;
    dealt.total += group.cost *
                   double(int64_t(group.pieces) * units[group.unit].headCount);
    dealt.largest = std::max(dealt.largest, group.cost);
    uint64_t key = sortKey(group.cost, g);
    sorted &= order.empty() || order.back() < key;
    order.push(key);
  }
  if (!sorted)
    std::sort(order.begin(), order.end());
  loads.assign(workers, 0.0);
  heap.resize(workers);
  for (int32_t w = 0; w < workers; ++w)
    heap[w] = w;
  auto before = [&](int32_t a, int32_t b) {
    return loads[a] < loads[b] || (loads[a] == loads[b] && a < b);
  };
  double average = dealt.total / workers;
  for (uint64_t key : order) {
    int32_t g = int32_t(uint32_t(key));
    const Group &group = groups[g];
    int64_t members = int64_t(group.pieces) * units[group.unit].headCount;
    for (int64_t first = 0; first < members;) {
      int32_t worker = heap[0];
      // As many as fit under the average; neighbours share page tables.
      int64_t count = 1;
      if (group.cost > 0) {
        double fit = (average - loads[worker]) / group.cost + 1e-9;
        if (fit > 1)
          count =
              fit >= double(members - first) ? members - first : int64_t(fit);
      } else {
        // Costs nothing: spread evenly.
        count = divideUp(members, workers);
        count = std::min(count, members - first);
      }
      loads[worker] += group.cost * double(count);
      chunks.push({g, worker, first, count});
      first += count;
      if (group.cost <= 0) {
        // Rotate, as loads do not tell the workers apart.
        loads[worker] += 1e-9;
      }
      for (int32_t i = 0;;) {
        int32_t child = 2 * i + 1;
        if (child >= workers)
          break;
        if (child + 1 < workers && before(heap[child + 1], heap[child]))
          ++child;
        if (!before(heap[child], heap[i]))
          break;
        std::swap(heap[i], heap[child]);
        i = child;
      }
    }
  }
  for (double load : loads)
    dealt.longest = std::max(dealt.longest, load);
  return dealt;
}

WorkListBuilder::MergeCost WorkListBuilder::mergeCost(const Stage &stage,
                                                      int32_t body) const {
  MergeCost all;
  for (const Unit &unit : units)
    if (unit.pieces > 1 && isOf(unit, body)) {
      const Body &split = stage.bodies[unit.body];
      // A body that merges itself says in its own cost what that costs.
      const Cost &cost = split.mergesItself || split.merge == none
                             ? split.cost
                             : stage.merges[split.merge].cost;
      double slot = cost.slotRow * double(unit.rowCount);
      if (!split.mergesItself) {
        double one = cost.item + slot * double(unit.pieces);
        all.total += unit.headCount * one;
        all.longest = std::max(all.longest, one);
        continue;
      }
      // Each stores its state. Parts meet side by side, then what came of them,
      // until few enough are left for one meeting.
      int64_t left = unit.pieces, moved = left, inTurn = 1, meetings = 1;
      for (int64_t fanIn = split.mergeFanIn; fanIn && left > 2 * fanIn;
           left = divideUp(left, fanIn)) {
        moved += left;
        inTurn += fanIn;
        ++meetings;
      }
      moved += left;
      inTurn += left;
      double meeting = cost.meeting * double(meetings);
      all.total += unit.headCount * (meeting + slot * double(moved));
      all.longest = std::max(all.longest,
                             meeting + slot * loneMergeShare * double(inTurn));
    }
  return all;
}

bool WorkListBuilder::exceedsSlots(const Stage &stage, int32_t body,
                                   double limit) {
  if (!capacity)
    return false;
  bodySlots.assign(stage.bodies.size(), 0);
  for (const Unit &unit : units) {
    int64_t n = isOf(unit, body) ? piecesUnder(stage, unit, limit) : 1;
    if (n > 1)
      bodySlots[unit.body] += n * unit.headCount;
  }
  for (size_t b = 0; b < stage.bodies.size(); ++b)
    if (bodySlots[b] > capacity->bodies[b].slots)
      return true;
  return false;
}

/// What was settled are bounds: a batch that exceeds them here would show a
/// mistake in them, and must not write over what follows.
fi_status WorkListBuilder::checkCapacity(const Stage &stage, size_t firstRange,
                                         const WorkLists &out) {
  size_t bodies = stage.bodies.size();
  bodySlots.assign(bodies, 0);
  cursors.assign(bodies, 0);
  for (const Unit &unit : units) {
    int64_t count = int64_t(unit.pieces) * unit.headCount;
    cursors[unit.body] += count;
    if (unit.pieces > 1)
      bodySlots[unit.body] += count;
  }
  bool fits = int64_t(out.ranges.size() - firstRange) <= capacity->ranges;
  for (size_t b = 0; b < bodies; ++b)
    fits &= cursors[b] <= capacity->bodies[b].items &&
            bodySlots[b] <= capacity->bodies[b].slots;
  if (fits)
    return FI_OK;
  return fail(FI_INVALID_BATCH,
              "%s: expected a batch of no more work items, states and key "
              "ranges than the graph-safe plan has room for, but it needs "
              "more; make a plan with larger capacities",
              stage.name.c_str());
}

/// The balanced policy: a limit of cost per piece, or 0 for whole tiles. Tries
/// finer and finer pieces and keeps what makes the longest worker, merges
/// included, shortest.
double WorkListBuilder::chooseLimit(const Stage &stage, int32_t body,
                                    int32_t workers, const Module *device,
                                    StageReport &report) {
  bool onDevice = device != nullptr;
  bool sharing = onDevice && workers > device->device->info.multiprocessors;
  auto tryLimit = [&](double limit) {
    groupEvenly(stage, body, limit);
    chunks.clear();
    return deal(body, workers);
  };
  Dealt whole = tryLimit(0);
  report.longestUnsplit += whole.longest;
  double average = whole.total / workers;
  // What is to be shared out, and what every piece costs beside it.
  double work = whole.total, each = 0, mostTile = 0;
  for (const Unit &unit : units)
    if (onDevice && isOf(unit, body)) {
      const Cost &cost = stage.bodies[unit.body].cost;
      work -= cost.item * unit.headCount;
      each = std::max(each, cost.item);
      mostTile = std::max(mostTile, cost.tile + cost.tileRow * unit.rowCount);
    }
  if (workers == 1) {
    report.why = "there is one worker";
    return 0;
  }
  if (!stage.canSplit()) {
    report.why = "the package has no merge for this stage";
    return 0;
  }
  if (whole.longest <= goodBalance * average) {
    report.why = "whole row tiles balance within 5 %";
    return 0;
  }
  // When the longest worker is done: a CTA gains from neighbours that are done
  // before it, or are not there. Neighbours are missing everywhere or nowhere.
  auto last = [&](const Dealt &dealt) {
    if (!sharing || dealt.longest <= 0)
      return dealt.longest;
    int64_t pieces = 0;
    for (const Group &group : groups)
      if (isOf(units[group.unit], body))
        pieces += int64_t(group.pieces) * units[group.unit].headCount;
    int64_t multiprocessors = device->device->info.multiprocessors;
    int64_t places = std::min<int64_t>(
        workers, divideUp(pieces, multiprocessors) * multiprocessors);
    double average = dealt.total / std::min<int64_t>(pieces, workers);
    double busy = average / dealt.longest * places / workers;
    return each + (dealt.longest - each) * std::max(busy, aloneShare);
  };
  double best = last(whole), chosen = 0;
  // Coarser pieces than the fair share leave places of a device empty, and have
  // less to merge.
  for (double parts :
       {1. / 16, 1. / 8, 1. / 4, 1. / 3, 1. / 2, 2. / 3, 1., 2., 4., 8.}) {
    if (parts < 1 && !onDevice)
      continue;
    // A little more than the fair share, so that n pieces for n workers are n.
    double limit = goodBalance * average / parts;
    if (onDevice) {
      double share = work / workers / parts;
      limit = each + std::max(goodBalance * share, share + mostTile);
    }
    if (limit >= whole.largest)
      continue;
    // Pieces that are mostly overhead never pay; this also bounds their number.
    bool tooFine = false;
    for (const Unit &unit : units)
      tooFine |= isOf(unit, body) &&
                 piecesUnder(stage, unit, limit) > 8 * int64_t(workers);
    if (tooFine || exceedsSlots(stage, body, limit))
      break;
    Dealt split = tryLimit(limit);
    double longest = last(split) + mergeShare(stage, body, workers, onDevice);
    // Finer pieces mean more states and merges: only for a real gain.
    if (longest < (chosen > 0 ? finerGain : 1.0) * best) {
      best = longest;
      chosen = limit;
    }
    if (best <= goodBalance * average)
      break;
  }
  if (onDevice && cutLastRound(stage, body, workers, last, best)) {
    report.why = "the last round of row tiles would leave workers idle";
    return 0;
  }
  report.why = chosen > 0 ? "the longest worker would dominate"
                          : "splitting costs more than it balances";
  return chosen;
}

double WorkListBuilder::mergeShare(const Stage &stage, int32_t body,
                                   int32_t workers, bool onDevice) const {
  MergeCost merges = mergeCost(stage, body);
  double share = merges.total / workers;
  // CTAs by the hundred wait for the one that merges most.
  return onDevice ? std::max(share, merges.longest) : share;
}

template <typename Last>
bool WorkListBuilder::cutLastRound(const Stage &stage, int32_t body,
                                   int32_t workers, const Last &last,
                                   double best) {
  // Lightest first: the last ones that are dealt.
  order.clear();
  int64_t members = 0;
  for (size_t u = 0; u < units.size(); ++u)
    if (isOf(units[u], body)) {
      const Unit &unit = units[u];
      double cost =
          itemCost(stage.bodies[unit.body], unit.tiles, unit.rowCount);
      order.push(~sortKey(cost, u) >> 32 << 32 | uint32_t(u));
      members += unit.headCount;
    }
  int64_t rest = members % workers;
  if (members < workers || rest == 0)
    return false;
  std::sort(order.begin(), order.end());
  Buffer<uint32_t> cut;
  int64_t taken = 0, mostPieces = INT32_MAX;
  for (size_t i = 0; i < order.size() && taken < rest; ++i) {
    const Unit &unit = units[uint32_t(order[i])];
    cut.push(uint32_t(order[i]));
    taken += unit.headCount;
    mostPieces = std::min(mostPieces, unit.tiles);
  }
  auto set = [&](int64_t pieces) {
    for (uint32_t u : cut)
      units[u].cut = int32_t(pieces);
  };
  int64_t chosen = 0, fair = std::max<int64_t>(2, workers / taken);
  for (int64_t pieces : {fair, fair + 1, 2 * fair}) {
    if (pieces > mostPieces)
      break;
    set(pieces);
    if (exceedsSlots(stage, body, 0))
      break;
    groupEvenly(stage, body, 0);
    chunks.clear();
    double longest = last(deal(body, workers)) +
                     mergeShare(stage, body, workers, /*onDevice=*/true);
    if (longest < finerGain * best) {
      best = longest;
      chosen = pieces;
    }
  }
  set(chosen);
  return chosen > 0;
}

/// Limits for all bodies. Threads do the bodies of a stage side by side; on a
/// device each is a launch that must fill it alone.
void WorkListBuilder::chooseLimits(const Stage &stage, int32_t stageIndex,
                                   const Workers &workers,
                                   StageReport &report) {
  if (!workers.module || stage.bodies.size() == 1) {
    double limit =
        chooseLimit(stage, workers.module ? 0 : none, workers.of(stageIndex, 0),
                    workers.module, report);
    limits.assign(stage.bodies.size(), limit);
    return;
  }
  const char *why = nullptr;
  limits.clear();
  for (size_t b = 0; b < stage.bodies.size(); ++b) {
    bool any = false;
    for (const Unit &unit : units)
      any |= unit.body == int32_t(b);
    limits.push(any ? chooseLimit(stage, int32_t(b),
                                  workers.of(stageIndex, int32_t(b)),
                                  workers.module, report)
                    : 0.0);
    // What split a body says more than what did not split another.
    if (any && (!why || limits.back() > 0))
      why = report.why;
  }
  report.why = why ? why : "there is nothing to do";
}

/// The fixed policy makes as many pieces as the keys demand: refuse absurd
/// numbers before they are made.
fi_status WorkListBuilder::checkPieces(const Stage &stage,
                                       SplitPolicy policy) const {
  if (policy.policy != FI_SPLIT_FIXED)
    return FI_OK;
  int64_t total = 0;
  for (const Unit &unit : units) {
    const Body &body = stage.bodies[unit.body];
    int64_t tiles = divideUp(policy.keys, body.tileKeys);
    // Every span may add two pieces that are not full.
    int64_t n = unit.tiles / tiles + 1 + 2 * int64_t(unit.spanCount);
    total += n * unit.headCount;
    if (total > maxItems)
      return fail(FI_INVALID_BATCH,
                  "%s: fixed splits of %" PRId64
                  " keys: expected at most %" PRId64
                  " work items, but the batch needs more; use larger splits",
                  stage.name.c_str(), policy.keys, maxItems);
  }
  return FI_OK;
}

/// Ranges of a unit's spans within keys [begin, end), full ones first.
void WorkListBuilder::makePiece(const Unit &unit, const Body &body,
                                int64_t begin, int64_t end, WorkLists &out) {
  Piece piece = {int32_t(out.ranges.size()), 0, 0, 0};
  for (bool full : {true, false})
    for (int32_t s = 0; s < unit.spanCount; ++s) {
      const Span &span = unitSpans[unit.spanBegin + s];
      if (span.full != full || span.end <= begin)
        continue;
      if (span.begin >= end)
        break;
      fi_key_range range = {std::max(span.begin, begin),
                            std::min(span.end, end)};
      out.ranges.push(range);
      piece.tiles += divideUp(range.end - range.begin, body.tileKeys);
      ++(full ? piece.full : piece.partial);
    }
  pieces.push(piece);
}

void WorkListBuilder::makePieces(const Stage &stage, SplitPolicy policy,
                                 WorkLists &out) {
  pieces.clear();
  for (Unit &unit : units) {
    const Body &body = stage.bodies[unit.body];
    unit.firstPiece = int32_t(pieces.size());
    unit.pieces = 1;
    if (policy.policy == FI_SPLIT_FIXED && body.canSplit() &&
        unit.spanCount > 0) {
      // Cuts at multiples of the policy's keys, whatever the mask skips.
      int64_t keys = divideUp(policy.keys, body.tileKeys) * body.tileKeys;
      int64_t at = -1; // number of the last piece
      for (int32_t s = 0; s < unit.spanCount; ++s) {
        const Span &span = unitSpans[unit.spanBegin + s];
        int64_t first = std::max(at + 1, span.begin / keys);
        int64_t last = (span.end - 1) / keys;
        for (at = std::max(at, last); first <= last; ++first)
          makePiece(unit, body, first * keys, (first + 1) * keys, out);
      }
      unit.pieces = int32_t(pieces.size()) - unit.firstPiece;
      continue;
    }
    int64_t n = piecesUnder(stage, unit, limits[unit.body]);
    if (n == 1) {
      makePiece(unit, body, 0, INT64_MAX, out);
      continue;
    }
    unit.pieces = int32_t(n);
    // Walks the visited tiles; piece p ends where its tiles do.
    int32_t s = 0;
    int64_t done = 0; // tiles of span s before the cut
    int64_t begin = 0;
    for (int64_t p = 0; p < n; ++p) {
      int64_t tiles = unit.tiles / n + (p < unit.tiles % n ? 1 : 0);
      int64_t end = begin;
      while (tiles > 0) {
        const Span &span = unitSpans[unit.spanBegin + s];
        int64_t inSpan = divideUp(span.end - span.begin, body.tileKeys);
        int64_t taken = std::min(tiles, inSpan - done);
        done += taken;
        tiles -= taken;
        end = span.begin + done * body.tileKeys;
        if (done == inSpan) {
          done = 0;
          ++s;
        }
      }
      makePiece(unit, body, begin, end, out);
      begin = end;
    }
  }
}

/// Groups neighbouring pieces of a unit that cost the same.
void WorkListBuilder::groupPieces(const Stage &stage) {
  groups.clear();
  for (size_t u = 0; u < units.size(); ++u) {
    const Unit &unit = units[u];
    const Body &body = stage.bodies[unit.body];
    for (int32_t p = unit.firstPiece; p < unit.firstPiece + unit.pieces;) {
      int32_t first = p++;
      while (p < unit.firstPiece + unit.pieces &&
             pieces[p].tiles == pieces[first].tiles)
        ++p;
      groups.push({itemCost(body, pieces[first].tiles, unit.rowCount),
                   int32_t(u), first, p - first});
    }
  }
}

} // namespace fi::runtime
