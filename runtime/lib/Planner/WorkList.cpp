//===- WorkList.cpp - Work items of a batch -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cuts rows into tiles, finds each tile's keys, and writes the items and merge
// items by body and worker. How tiles are split over keys and dealt to workers
// is in Split.cpp.
//
//===----------------------------------------------------------------------===//
#include "WorkList.h"
#include "../Support/Error.h"

#include <cinttypes>

namespace fi::runtime {
namespace {

int64_t divideUp(int64_t a, int64_t b) { return a / b + (a % b != 0); }

size_t align(size_t bytes) {
  return (bytes + FI_ALIGNMENT - 1) / FI_ALIGNMENT * FI_ALIGNMENT;
}

fi_status tooManyItems(const Stage &stage) {
  return fail(FI_INVALID_BATCH,
              "%s: expected at most %" PRId64
              " work items in a batch, but it needs more; plan fewer rows",
              stage.name.c_str(), maxItems);
}

/// The first body for requests with that many packed rows, or -1.
int32_t bodyFor(const Stage &stage, int64_t packedRows) {
  for (size_t b = 0; b < stage.bodies.size(); ++b)
    if (stage.bodies[b].maxRows == unknownSize ||
        packedRows <= stage.bodies[b].maxRows)
      return int32_t(b);
  return none;
}

/// CTAs of a launch on a device.
int64_t gridOf(const LaunchShape &shape, int64_t items, int32_t ctas) {
  return shape.persistent ? std::min<int64_t>(items, ctas) : items;
}

} // namespace

/// Closes a launch of equal items, the last that were written: a list for each
/// thread of equal length, or one for all CTAs. `most` is its capacity in a
/// graph-safe plan.
void WorkListBuilder::finish(Launch &launch, const LaunchShape &shape,
                             int32_t ctas, int64_t most, const Workers &crew,
                             WorkLists &out) const {
  int64_t items = int64_t(out.items.size() - launch.firstItem);
  int32_t workers = crew.module ? 1 : crew.count;
  for (int32_t w = 0; w <= workers; ++w)
    out.lists.push(items / workers * w + items % workers * w / workers);
  launch.items = items;
  launch.capacity = capacity && crew.module ? most : items;
  launch.ctas = ctas;
  launch.grid = gridOf(shape, launch.capacity, ctas);
  out.add(launch);
}

void WorkLists::add(const Launch &launch) {
  size_t index = launches.size();
  launches.push(launch);
  if (launch.capacity == launch.items && index >= written.size())
    return; // no plan with surplus items, or one that was full so far
  // Memory that earlier batches of this plan wrote is laid out alike.
  while (written.size() <= index)
    written.push(launches[written.size()].capacity);
  items.resize(launch.firstItem + launch.capacity);
  fi_item surplus = {};
  surplus.request = -1;
  surplus.slot = -1;
  for (int64_t i = launch.items; i < written[index]; ++i)
    items[launch.firstItem + i] = surplus;
  written[index] = launch.items;
}

void WorkLists::clear() {
  items.clear();
  ranges.clear();
  launches.clear();
  phases.clear();
  lists.clear();
  reports.clear();
  stateBytes = 0;
  rangeCapacity = 0;
}

void WorkListBuilder::addUnit(const Unit &unit, const Body &body,
                              StageReport &report) {
  Unit added = unit;
  added.tiles = 0;
  int64_t fullTiles = 0;
  for (int32_t s = 0; s < unit.spanCount; ++s) {
    const Span &span = unitSpans[unit.spanBegin + s];
    int64_t tiles = divideUp(span.end - span.begin, body.tileKeys);
    added.tiles += tiles;
    if (span.full)
      fullTiles += tiles;
  }
  report.units += unit.headCount;
  report.fullTiles += fullTiles * unit.headCount;
  report.partialTiles += (added.tiles - fullTiles) * unit.headCount;
  units.push(added);
}

/// Rows [begin, begin + count) of the query belong to no request.
fi_status WorkListBuilder::addPad(const Stage &stage, int64_t begin,
                                  int64_t count, StageReport &report) {
  if (count <= 0)
    return FI_OK;
  int32_t b = capacity ? capacity->padBody : int32_t(stage.bodies.size()) - 1;
  const Body &body = stage.bodies[b];
  report.padRows += count;
  // The last body takes all as one request; others, what they take of one.
  int64_t tokens = capacity ? padTokens(stage, body, count) : count;
  if (divideUp(count, tokens) * divideUp(tokens * stage.group, body.tileRows) *
          stage.kvHeads >
      maxItems)
    return tooManyItems(stage);
  for (int64_t first = 0; first < count; first += tokens) {
    int64_t length = std::min(tokens, count - first);
    int64_t packed = length * stage.group;
    for (int64_t row = 0; row < packed; row += body.tileRows) {
      Unit unit = {};
      unit.request = -1;
      unit.body = b;
      unit.rowBegin = int32_t(row);
      unit.rowCount = int32_t(std::min(body.tileRows, packed - row));
      unit.headCount = int32_t(stage.kvHeads);
      unit.queryBegin = begin + first;
      unit.queryLength = length;
      addUnit(unit, body, report);
    }
  }
  return FI_OK;
}

/// Cuts the spans from `first` on down to the blocks of columns that a block of
/// rows has listed. Tiles begin with blocks, so that what was cut at tiles is
/// so still.
void WorkListBuilder::keepBlocks(const View &view, int64_t block,
                                 int64_t keyLength, size_t first) {
  maskSpans.clear();
  for (size_t i = first; i < unitSpans.size(); ++i)
    maskSpans.push(unitSpans[i]);
  unitSpans.resize(first);
  int64_t at = blocks.begin[block], end = blocks.begin[block + 1];
  for (size_t i = 0; i < maskSpans.size(); ++i) {
    const Span &span = maskSpans[i];
    // Both rise: a block that ends before this span is none of the next ones'.
    while (at < end &&
           (blocks.columns->at(at) + 1) * view.blockColumns <= span.begin)
      ++at;
    for (int64_t next = at; next < end;) {
      int64_t begin = blocks.columns->at(next) * view.blockColumns;
      if (begin >= span.end)
        break;
      int64_t limit = begin + view.blockColumns;
      // Blocks that follow one another are one range.
      while (++next < end &&
             blocks.columns->at(next) * view.blockColumns == limit)
        limit += view.blockColumns;
      limit = std::min(std::min(limit, keyLength), span.end);
      unitSpans.push({std::max(begin, span.begin), limit, span.full});
    }
  }
}

fi_status WorkListBuilder::makeUnits(const Stage &stage,
                                     const Manifest &manifest,
                                     const Table *tables,
                                     const RowLengths &rows,
                                     const ViewLengths &view, int64_t totalRows,
                                     StageReport &report) {
  units.clear();
  unitSpans.clear();
  if (totalRows > INT32_MAX / stage.group)
    return fail(
        FI_INVALID_BATCH,
        "%s: operand '%s': expected at most %" PRId64 " rows, but got %" PRId64,
        stage.name.c_str(), manifest.arguments[stage.query].name.c_str(),
        INT32_MAX / stage.group, totalRows);
  MaskBounds bounds(stage.mask, tables);
  // Heads that see the same keys share one unit and its ranges.
  bool perHead = stage.mask.present && stage.mask.usesHead;
  int32_t headSets = perHead ? int32_t(stage.kvHeads) : 1;
  int32_t headsPerSet = perHead ? 1 : int32_t(stage.kvHeads);
  const Table *positions =
      stage.positions == none ? nullptr : &tables[stage.positions];
  // Rows of one tile are of one block, so that they see the same keys.
  const View &layout = stage.view;
  int64_t blockRows = layout.blockRows * stage.group;
  if (blockRows)
    FI_TRY(readBlocks(stage, manifest, tables, rows, view, blocks));
  int64_t items = 0;
  FI_TRY(addPad(stage, 0, rows.begin[0], report));
  for (int64_t r = 0; r < rows.requests; ++r) {
    int64_t queryLength = rows.begin[r + 1] - rows.begin[r];
    if (queryLength == 0)
      continue;
    int64_t packed = queryLength * stage.group;
    int64_t together = blockRows ? std::min(packed, blockRows) : packed;
    int32_t b = bodyFor(stage, together);
    if (b == none)
      return fail(FI_UNSUPPORTED,
                  "%s: operand '%s': expected at most %" PRId64
                  " rows in a request, for which the package has a body, but "
                  "request %" PRId64 " has %" PRId64,
                  stage.name.c_str(),
                  manifest.arguments[stage.query].name.c_str(),
                  stage.bodies.back().maxRows / stage.group, r, queryLength);
    const Body &body = stage.bodies[b];
    if (blockRows && layout.blockColumns % body.tileKeys != 0)
      return fail(FI_UNSUPPORTED,
                  "%s: operand '%s': expected blocks of a multiple of %" PRId64
                  " columns, the keys of a tile, but got %" PRId64,
                  stage.name.c_str(),
                  manifest.arguments[layout.columns].name.c_str(),
                  body.tileKeys, layout.blockColumns);
    items += divideUp(packed, together) * divideUp(together, body.tileRows) *
             stage.kvHeads;
    if (items > maxItems)
      return tooManyItems(stage);
    TileContext context;
    context.request = r;
    context.queryLength = queryLength;
    context.keyLength = view.keys[r];
    context.origin = view.origin[r];
    int64_t firstPosition = view.origin[r] + view.keys[r] - queryLength;
    int64_t keyTiles = divideUp(view.keys[r], body.tileKeys);
    Unit unit = {};
    unit.request = int32_t(r);
    unit.body = b;
    unit.queryBegin = rows.begin[r];
    unit.queryLength = queryLength;
    unit.headCount = headsPerSet;
    for (int64_t row = 0; row < packed; row += unit.rowCount) {
      unit.rowBegin = int32_t(row);
      unit.rowCount = int32_t(
          std::min(std::min(body.tileRows, packed - row),
                   blockRows ? blockRows - row % blockRows : INT64_MAX));
      int64_t firstToken = row / stage.group;
      int64_t lastToken = (row + unit.rowCount - 1) / stage.group;
      context.position = {firstPosition + firstToken,
                          firstPosition + lastToken};
      if (positions && stage.mask.usesPosition) {
        context.position = {INT64_MAX, INT64_MIN};
        for (int64_t t = firstToken; t <= lastToken; ++t) {
          int64_t p = positions->at(rows.begin[r] + t);
          context.position.least = std::min(context.position.least, p);
          context.position.most = std::max(context.position.most, p);
        }
      }
      Interval headInGroup = {0, stage.group - 1};
      if (firstToken == lastToken)
        headInGroup = {row % stage.group,
                       (row + unit.rowCount - 1) % stage.group};
      for (int32_t h = 0; h < headSets; ++h) {
        int64_t lastHead = h + headsPerSet - 1;
        context.kvHead = {h, lastHead};
        context.queryHead = {h * stage.group + headInGroup.least,
                             lastHead * stage.group + headInGroup.most};
        unit.headBegin = h;
        unit.spanBegin = int32_t(unitSpans.size());
        bounds.spans(context, body.tileKeys, unitSpans);
        if (blockRows)
          keepBlocks(layout, blocks.first[r] + row / blockRows, view.keys[r],
                     unit.spanBegin);
        if (unitSpans.size() > size_t(INT32_MAX) / 2)
          return tooManyItems(stage);
        unit.spanCount = int32_t(unitSpans.size()) - unit.spanBegin;
        addUnit(unit, body, report);
        report.skippedTiles += (keyTiles - units.back().tiles) * unit.headCount;
      }
    }
  }
  int64_t end = rows.begin[rows.requests];
  return addPad(stage, end, totalRows - end, report);
}

fi_status WorkListBuilder::attention(const Stage &stage, int32_t stageIndex,
                                     const Manifest &manifest,
                                     const Table *tables,
                                     const RowLengths &rows,
                                     const ViewLengths &view, int64_t totalRows,
                                     const Workers &workers, SplitPolicy policy,
                                     bool overridden, WorkLists &out) {
  StageReport report = {};
  report.policy = policy;
  report.overridden = overridden;
  FI_TRY(makeUnits(stage, manifest, tables, rows, view, totalRows, report));
  limits.assign(stage.bodies.size(), 0);
  if (policy.policy == FI_SPLIT_BALANCED) {
    chooseLimits(stage, stageIndex, workers, report);
  } else {
    report.why = policy.policy == FI_SPLIT_FIXED
                     ? "pieces do not depend on the batch"
                     : "no splitting was asked for";
    FI_TRY(checkPieces(stage, policy));
  }
  size_t firstRange = out.ranges.size();
  makePieces(stage, policy, out);
  if (int64_t(pieces.size()) > maxItems || out.ranges.size() > INT32_MAX)
    return tooManyItems(stage);
  if (capacity) {
    FI_TRY(checkCapacity(stage, firstRange, out));
    out.rangeCapacity += capacity->ranges;
  }
  groupPieces(stage);
  chunks.clear();
  int32_t firstBody = workers.module ? 0 : none;
  int32_t lastBody = workers.module ? int32_t(stage.bodies.size()) - 1 : none;
  for (int32_t b = firstBody; b <= lastBody; ++b) {
    int32_t count = workers.of(stageIndex, b);
    Dealt dealt = deal(b, count);
    report.total += dealt.total;
    report.average += dealt.total / count;
    report.longest += dealt.longest;
    report.largestPiece = std::max(report.largestPiece, dealt.largest);
  }
  report.mergeTotal = mergeCost(stage, none).total;
  if (policy.policy != FI_SPLIT_BALANCED)
    report.longestUnsplit = report.longest;
  emit(stage, stageIndex, view, workers, report, out);
  out.reports.push(report);
  return FI_OK;
}

/// Writes the dealt pieces as items, by body and then by worker.
void WorkListBuilder::emit(const Stage &stage, int32_t stageIndex,
                           const ViewLengths &view, const Workers &crew,
                           StageReport &report, WorkLists &out) {
  size_t bodies = stage.bodies.size();
  // The CTAs of a device have one list, heaviest items first.
  int32_t workers = crew.module ? 1 : crew.count;
  auto worker = [&](const Chunk &chunk) {
    return crew.module ? 0 : chunk.worker;
  };
  // Slots: a split tile has one for each piece, and they are consecutive.
  bodySlots.assign(bodies, 0);
  for (Unit &unit : units) {
    report.pieces += int64_t(unit.pieces) * unit.headCount;
    if (unit.pieces == 1)
      continue;
    report.splitUnits += unit.headCount;
    unit.firstSlot = bodySlots[unit.body];
    bodySlots[unit.body] += int64_t(unit.pieces) * unit.headCount;
  }
  cursors.assign(bodies * workers, 0);
  for (const Chunk &chunk : chunks)
    cursors[units[groups[chunk.group].unit].body * workers + worker(chunk)] +=
        chunk.count;

  size_t firstLaunch = out.launches.size();
  Phase phase = {stageIndex, int32_t(firstLaunch), 0, 0};
  size_t stateOffset = 0;
  for (size_t b = 0; b < bodies; ++b) {
    const Body &body = stage.bodies[b];
    Launch launch = {};
    launch.kernel = body.kernel;
    launch.stage = stageIndex;
    launch.body = int32_t(b);
    launch.merge = none;
    launch.scratch = body.scratch;
    launch.firstItem = out.items.size();
    launch.firstList = out.lists.size();
    for (int32_t w = 0; w < workers; ++w) {
      out.lists.push(launch.items);
      int64_t count = cursors[b * workers + w];
      cursors[b * workers + w] = launch.firstItem + launch.items;
      launch.items += count;
    }
    out.lists.push(launch.items);
    launch.capacity =
        capacity && crew.module ? capacity->bodies[b].items : launch.items;
    launch.ctas = crew.of(stageIndex, int32_t(b));
    launch.grid = gridOf(body.launch, launch.capacity, launch.ctas);
    launch.slots = capacity ? capacity->bodies[b].slots : bodySlots[b];
    launch.tileRows = body.tileRows;
    launch.stateO = stateOffset;
    stateOffset += align(size_t(launch.slots) * body.tileRows * stage.voDim *
                         sizeof(float));
    launch.stateLse = stateOffset;
    stateOffset += align(size_t(launch.slots) * body.tileRows * sizeof(float));
    out.items.resize(launch.firstItem + launch.items);
    out.add(launch);
    phase.items += launch.items;
    ++phase.launchCount;
  }
  out.stateBytes = std::max(out.stateBytes, stateOffset);

  fi_item *items = out.items.data();
  size_t firstItem =
      bodies ? out.launches[firstLaunch].firstItem : out.items.size();
  costs.resize(crew.module ? out.items.size() - firstItem : 0);
  for (const Chunk &chunk : chunks) {
    const Group &group = groups[chunk.group];
    const Unit &unit = units[group.unit];
    int64_t &cursor = cursors[unit.body * workers + worker(chunk)];
    fi_item item = {};
    item.request = unit.request;
    item.row_begin = unit.rowBegin;
    item.row_count = unit.rowCount;
    bool mergesItself = unit.pieces > 1 && stage.bodies[unit.body].mergesItself;
    item.slot_count = mergesItself ? unit.pieces : 1;
    item.slot = -1;
    item.q_begin = unit.queryBegin;
    item.q_len = unit.queryLength;
    if (unit.request >= 0) {
      item.kv_len = view.keys[unit.request];
      item.kv_origin = view.origin[unit.request];
      item.table_begin = view.tableBegin[unit.request];
    }
    // Members of a group are numbered by head, then by piece.
    int64_t head = chunk.first / group.pieces;
    int64_t piece = chunk.first % group.pieces;
    fi_item *to = items + cursor;
    if (crew.module)
      std::fill_n(costs.begin() + (cursor - firstItem), chunk.count,
                  group.cost);
    cursor += chunk.count;
    for (int64_t i = 0; i < chunk.count; ++i) {
      const Piece &p = pieces[group.firstPiece + piece];
      item.kv_head = int32_t(unit.headBegin + head);
      item.range_begin = p.rangeBegin;
      item.full_ranges = p.full;
      item.partial_ranges = p.partial;
      if (unit.pieces > 1)
        item.slot = int32_t(unit.firstSlot + head * unit.pieces +
                            (group.firstPiece - unit.firstPiece) + piece);
      if (mergesItself)
        item.first_slot = int32_t(unit.firstSlot + head * unit.pieces);
      *to++ = item;
      if (++piece == group.pieces) {
        piece = 0;
        ++head;
      }
    }
  }
  for (size_t b = 0; b < bodies; ++b)
    if (stage.bodies[b].launch.persistent)
      arrange(out.launches[firstLaunch + b], out);
  out.phases.push(phase);
  if (report.splitUnits || capacity)
    emitMerges(stage, stageIndex, view, crew, firstLaunch, out);
}

/// Sees to it that CTAs which take every n-th item get equal shares: in each
/// round of n the CTA with the least takes the heaviest.
void WorkListBuilder::arrange(const Launch &launch, WorkLists &out) {
  int64_t count = launch.items, ctas = launch.grid;
  if (ctas < 2 || count <= ctas)
    return;
  const double *cost =
      costs.begin() + (launch.firstItem + costs.size() - out.items.size());
  if (cost[0] == cost[count - 1])
    return; // heaviest first: all are equal
  fi_item *items = out.items.begin() + launch.firstItem;
  arranged.resize(count);
  loads.assign(ctas, 0.0);
  heap.resize(ctas);
  for (int32_t c = 0; c < ctas; ++c)
    heap[c] = c;
  int64_t whole = count - count % ctas;
  // The round that is not whole goes to whoever has least before it. CTAs are
  // then numbered so that these are the first; their lists move with them.
  cursors.resize(count); // which item a place gets
  for (int64_t first = 0; first < count; first += ctas) {
    int64_t inRound = std::min(ctas, count - first);
    std::sort(heap.begin(), heap.end(), [&](int32_t a, int32_t b) {
      return loads[a] < loads[b] || (loads[a] == loads[b] && a < b);
    });
    for (int64_t i = 0; i < inRound; ++i) {
      cursors[first + (first < whole ? heap[i] : i)] = first + i;
      loads[heap[i]] += cost[first + i];
    }
  }
  // heap[i] has item i of the last round: it becomes CTA i.
  for (int64_t first = 0; first < whole; first += ctas)
    for (int64_t i = 0; i < ctas; ++i)
      arranged[first + i] = items[cursors[first + heap[i]]];
  for (int64_t i = whole; i < count; ++i)
    arranged[i] = items[cursors[i]];
  std::copy(arranged.begin(), arranged.end(), items);
}

/// A merge item for each split tile, after all of the stage's pieces.
void WorkListBuilder::emitMerges(const Stage &stage, int32_t stageIndex,
                                 const ViewLengths &view,
                                 const Workers &workers, size_t firstLaunch,
                                 WorkLists &out) {
  Phase phase = {stageIndex, int32_t(out.launches.size()), 0, 0};
  for (size_t b = 0; b < stage.bodies.size(); ++b) {
    Launch states = out.launches[firstLaunch + b];
    if (states.slots == 0 || stage.bodies[b].mergesItself)
      continue;
    const Merge &merge = stage.merges[stage.bodies[b].merge];
    Launch launch = states;
    launch.kernel = merge.kernel;
    launch.merge = stage.bodies[b].merge;
    launch.scratch = merge.scratch;
    launch.firstItem = out.items.size();
    launch.firstList = out.lists.size();
    for (const Unit &unit : units) {
      if (unit.pieces == 1 || unit.body != int32_t(b))
        continue;
      fi_item item = {};
      item.request = unit.request;
      item.row_begin = unit.rowBegin;
      item.row_count = unit.rowCount;
      item.range_begin = pieces[unit.firstPiece].rangeBegin;
      item.slot_count = unit.pieces;
      item.q_begin = unit.queryBegin;
      item.q_len = unit.queryLength;
      item.kv_len = view.keys[unit.request];
      item.kv_origin = view.origin[unit.request];
      item.table_begin = view.tableBegin[unit.request];
      for (int32_t h = 0; h < unit.headCount; ++h) {
        item.kv_head = unit.headBegin + h;
        item.slot = int32_t(unit.firstSlot + int64_t(h) * unit.pieces);
        out.items.push(item);
      }
    }
    finish(launch, merge.launch, workers.ofMerge(stageIndex, launch.merge),
           capacity ? capacity->bodies[b].merges : 0, workers, out);
    phase.items += launch.items;
    ++phase.launchCount;
  }
  if (phase.launchCount)
    out.phases.push(phase);
}

fi_status WorkListBuilder::rows(const Stage &stage, int32_t stageIndex,
                                int64_t totalRows, const Workers &workers,
                                WorkLists &out) {
  const Body &body = stage.bodies[0];
  if (totalRows > INT32_MAX ||
      divideUp(totalRows, body.tileRows) * stage.kvHeads > maxItems)
    return tooManyItems(stage);
  Launch launch = {};
  launch.kernel = body.kernel;
  launch.stage = stageIndex;
  launch.merge = none;
  launch.scratch = body.scratch;
  launch.tileRows = body.tileRows;
  launch.firstItem = out.items.size();
  launch.firstList = out.lists.size();
  fi_item item = {};
  item.slot = -1;
  item.slot_count = 1;
  item.q_len = totalRows;
  for (int64_t row = 0; row < totalRows; row += body.tileRows) {
    item.row_begin = int32_t(row);
    item.row_count = int32_t(std::min(body.tileRows, totalRows - row));
    for (int64_t h = 0; h < stage.kvHeads; ++h) {
      item.kv_head = int32_t(h);
      out.items.push(item);
    }
  }
  int32_t phaseLaunch = int32_t(out.launches.size());
  finish(launch, body.launch, workers.of(stageIndex, 0),
         int64_t(out.items.size() - launch.firstItem), workers, out);
  out.phases.push({stageIndex, phaseLaunch, 1, launch.items});
  StageReport report = {};
  report.units = report.pieces = launch.items;
  report.total = double(launch.items) * body.cost.item;
  report.average = report.total / workers.of(stageIndex, 0);
  out.reports.push(report);
  return FI_OK;
}

fi_status WorkListBuilder::append(const Stage &stage, int32_t stageIndex,
                                  const RowLengths &rows,
                                  const ViewLengths &view,
                                  const Workers &workers, WorkLists &out) {
  const Body &body = stage.bodies[0];
  Launch launch = {};
  launch.kernel = body.kernel;
  launch.stage = stageIndex;
  launch.merge = none;
  launch.scratch = body.scratch;
  launch.tileRows = body.tileRows;
  launch.firstItem = out.items.size();
  launch.firstList = out.lists.size();
  for (int64_t r = 0; r < rows.requests; ++r) {
    int64_t tokens = rows.begin[r + 1] - rows.begin[r];
    if (tokens > view.keys[r])
      return fail(FI_INVALID_BATCH,
                  "%s: expected no more new tokens than keys in the view, but "
                  "request %" PRId64 " appends %" PRId64
                  " tokens to a view of %" PRId64
                  " keys; the view's lengths include the new tokens",
                  stage.name.c_str(), r, tokens, view.keys[r]);
    if (tokens > INT32_MAX ||
        int64_t(out.items.size() - launch.firstItem) +
                divideUp(tokens, body.tileRows) * stage.kvHeads >
            maxItems)
      return tooManyItems(stage);
    fi_item item = {};
    item.request = int32_t(r);
    item.slot = -1;
    item.slot_count = 1;
    item.q_begin = rows.begin[r];
    item.q_len = tokens;
    item.kv_len = view.keys[r];
    item.kv_origin = view.origin[r];
    item.table_begin = view.tableBegin[r];
    for (int64_t row = 0; row < tokens; row += body.tileRows) {
      item.row_begin = int32_t(row);
      item.row_count = int32_t(std::min(body.tileRows, tokens - row));
      for (int64_t h = 0; h < stage.kvHeads; ++h) {
        item.kv_head = int32_t(h);
        out.items.push(item);
      }
    }
  }
  int32_t phaseLaunch = int32_t(out.launches.size());
  finish(launch, body.launch, workers.of(stageIndex, 0),
         capacity ? capacity->bodies[0].items : 0, workers, out);
  out.phases.push({stageIndex, phaseLaunch, 1, launch.items});
  StageReport report = {};
  report.units = report.pieces = launch.items;
  report.total = double(launch.items) * body.cost.item;
  report.average = report.total / workers.of(stageIndex, 0);
  out.reports.push(report);
  return FI_OK;
}

} // namespace fi::runtime
