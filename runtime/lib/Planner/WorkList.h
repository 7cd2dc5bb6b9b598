//===- WorkList.h - Work items, their split and their workers --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the lengths of a batch into work items by body and worker. Attention:
// rows are cut into tiles, tiles meet the mask's spans of keys, long ones are
// cut into pieces, pieces are dealt to workers. docs/planner.md has the
// policies and what they guarantee.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PLANNER_WORKLIST_H
#define FI_RUNTIME_PLANNER_WORKLIST_H

#include "../Device/Module.h"
#include "Capacity.h"
#include "MaskBounds.h"
#include "Tables.h"

namespace fi::runtime {

/// More items than this are refused: such a batch is a mistake, not a load.
constexpr int64_t maxItems = int64_t(1) << 24;

/// Who does the items: threads of this machine, or CTAs of a device.
struct Workers {
  int32_t count = 1;              // the most that any kernel has
  const Module *module = nullptr; // the device's
  bool stated = false;            // `count` holds for every kernel

  /// CTAs of a body that the device holds at once; else the threads.
  int32_t of(int32_t stage, int32_t body) const {
    return module && !stated ? module->workers(stage, body) : count;
  }
  int32_t ofMerge(int32_t stage, int32_t merge) const {
    return module && !stated ? module->stages[stage].merges[merge].ctasPerSM *
                                   module->device->info.multiprocessors
                             : count;
  }
};

/// Tokens of the padding rows that make one request of no keys for a body: as
/// many as the body takes of a request.
inline int64_t padTokens(const Stage &stage, const Body &body, int64_t count) {
  if (body.maxRows == unknownSize)
    return count;
  return std::min(count, std::max<int64_t>(1, body.maxRows / stage.group));
}

/// One kernel over the items of one stage and body.
struct Launch {
  fi_cpu_kernel kernel;
  int32_t stage;
  int32_t body;  // bodies of the stage; for a merge, of what it merges
  int32_t merge; // index into Stage::merges, or none
  int64_t scratch;
  size_t firstItem; // into WorkLists::items
  size_t firstList; // into WorkLists::lists: workers + 1 item offsets
  int64_t items;
  /// With the surplus ones that follow, which have no rows: of a graph-safe
  /// plan for a device; else `items`.
  int64_t capacity;
  int64_t grid; // devices: CTAs
  int32_t ctas; // devices: that it holds at once
  // States that this launch writes or reads.
  int64_t slots;
  int64_t tileRows;
  size_t stateO, stateLse; // bytes from the start of the state region
};

/// Launches without an order among them. Phases run one after another.
struct Phase {
  int32_t stage;
  int32_t firstLaunch, launchCount;
  int64_t items;
};

/// What explain tells of a stage.
struct StageReport {
  SplitPolicy policy;
  bool overridden; // by the options
  const char *why; // of the split decision
  int64_t units;   // row tiles x heads before splitting
  int64_t splitUnits;
  int64_t pieces;
  int64_t fullTiles, partialTiles;
  int64_t skippedTiles; // of a rectangle of all keys
  int64_t padRows;
  double total, longest; // cost over workers, as planned
  double average;        // of a worker
  double longestUnsplit;
  double largestPiece;
  double mergeTotal;
};

struct WorkLists {
  Buffer<fi_item> items;
  Buffer<fi_key_range> ranges;
  Buffer<Launch> launches;
  Buffer<Phase> phases;
  Buffer<int64_t> lists;
  Buffer<StageReport> reports;
  size_t stateBytes = 0; // of the stage that needs most
  /// Graph-safe plans: key ranges that may be needed, else 0.
  int64_t rangeCapacity = 0;

  void clear();
  /// Adds a launch whose items lie from its first on; what follows them up to
  /// its capacity becomes surplus.
  void add(const Launch &launch);

private:
  /// Per launch of a graph-safe plan: items that may not be surplus, from
  /// earlier batches.
  Buffer<int64_t> written;
};

/// The cost of an attention item in the units of the manifest.
inline double itemCost(const Body &body, int64_t tiles, int64_t rows) {
  return body.cost.item +
         double(tiles) * (body.cost.tile + body.cost.tileRow * double(rows));
}

/// Tiles of keys that an item visits.
inline int64_t tilesOf(const WorkLists &lists, const fi_item &item,
                       int64_t tileKeys) {
  int64_t tiles = 0;
  for (int32_t r = 0; r < item.full_ranges + item.partial_ranges; ++r) {
    const fi_key_range &range = lists.ranges[item.range_begin + r];
    tiles += (range.end - range.begin + tileKeys - 1) / tileKeys;
  }
  return tiles;
}

/// The kernel of a launch, and how it is launched.
inline const std::string &symbolOf(const Manifest &m, const Launch &launch) {
  const Stage &stage = m.stages[launch.stage];
  return launch.merge != none ? stage.merges[launch.merge].symbol
                              : stage.bodies[launch.body].symbol;
}
inline const LaunchShape &shapeOf(const Manifest &m, const Launch &launch) {
  const Stage &stage = m.stages[launch.stage];
  return launch.merge != none ? stage.merges[launch.merge].launch
                              : stage.bodies[launch.body].launch;
}

/// Makes the work lists of stages, one after another; keeps its memory.
class WorkListBuilder {
public:
  /// The capacities of the stage that comes next; null: as it needs.
  void setCapacity(const StageCapacity *of) { capacity = of; }

  fi_status attention(const Stage &stage, int32_t stageIndex,
                      const Manifest &manifest, const Table *tables,
                      const RowLengths &rows, const ViewLengths &view,
                      int64_t totalRows, const Workers &workers,
                      SplitPolicy policy, bool overridden, WorkLists &out);
  fi_status rows(const Stage &stage, int32_t stageIndex, int64_t totalRows,
                 const Workers &workers, WorkLists &out);
  fi_status append(const Stage &stage, int32_t stageIndex,
                   const RowLengths &rows, const ViewLengths &view,
                   const Workers &workers, WorkLists &out);

private:
  /// A tile of packed rows of a request, for some KV heads whose keys and cost
  /// are the same.
  struct Unit {
    int32_t request, body;
    int32_t rowBegin, rowCount;
    int32_t headBegin, headCount;
    int32_t spanBegin, spanCount;
    int32_t firstPiece, pieces;
    int32_t cut; // into so many pieces, whatever they cost; 0: as that says
    int64_t firstSlot;
    int64_t tiles;
    int64_t queryBegin, queryLength;
  };
  /// Some of a unit's keys, as ranges for the kernel.
  struct Piece {
    int32_t rangeBegin, full, partial;
    int64_t tiles;
  };
  /// Pieces of one unit that cost the same, times its heads.
  struct Group {
    double cost;
    int32_t unit, firstPiece, pieces;
  };
  /// Consecutive members of a group that go to one worker.
  struct Chunk {
    int32_t group, worker;
    int64_t first, count;
  };
  struct Dealt {
    double total, longest, largest;
  };

  void keepBlocks(const View &view, int64_t block, int64_t keyLength,
                  size_t first);
  fi_status makeUnits(const Stage &stage, const Manifest &manifest,
                      const Table *tables, const RowLengths &rows,
                      const ViewLengths &view, int64_t totalRows,
                      StageReport &report);
  void addUnit(const Unit &unit, const Body &body, StageReport &report);
  fi_status addPad(const Stage &stage, int64_t begin, int64_t count,
                   StageReport &report);
  /// Pieces of a unit under a limit of cost per piece.
  int64_t piecesUnder(const Stage &stage, const Unit &unit, double limit) const;
  /// Whether pieces under the limit need more states than there may be.
  bool exceedsSlots(const Stage &stage, int32_t body, double limit);
  /// Fails where pieces, states or ranges are more than was settled.
  fi_status checkCapacity(const Stage &stage, size_t firstRange,
                          const WorkLists &out);
  void groupEvenly(const Stage &stage, int32_t body, double limit);
  Dealt deal(int32_t body, int32_t workers);
  struct MergeCost {
    double total = 0, longest = 0;
  };
  MergeCost mergeCost(const Stage &stage, int32_t body) const;
  double chooseLimit(const Stage &stage, int32_t body, int32_t workers,
                     const Module *device, StageReport &report);
  /// Cuts the row tiles that would fill a part of the last round of workers
  /// alone, so that their pieces fill it, if that ends before `best`.
  template <typename Last>
  bool cutLastRound(const Stage &stage, int32_t body, int32_t workers,
                    const Last &last, double best);
  /// All that bodies' pieces take, once the longest worker is done.
  double mergeShare(const Stage &stage, int32_t body, int32_t workers,
                    bool onDevice) const;
  void chooseLimits(const Stage &stage, int32_t stageIndex,
                    const Workers &workers, StageReport &report);
  void makePieces(const Stage &stage, SplitPolicy policy, WorkLists &out);
  /// Whether a unit is one of a body's; `none` are all bodies.
  static bool isOf(const Unit &unit, int32_t body) {
    return body == none || unit.body == body;
  }
  void makePiece(const Unit &unit, const Body &body, int64_t begin, int64_t end,
                 WorkLists &out);
  void groupPieces(const Stage &stage);
  void emit(const Stage &stage, int32_t stageIndex, const ViewLengths &view,
            const Workers &workers, StageReport &report, WorkLists &out);
  void emitMerges(const Stage &stage, int32_t stageIndex,
                  const ViewLengths &view, const Workers &workers,
                  size_t firstLaunch, WorkLists &out);
  void arrange(const Launch &launch, WorkLists &out);
  fi_status checkPieces(const Stage &stage, SplitPolicy policy) const;

  void finish(Launch &launch, const LaunchShape &shape, int32_t ctas,
              int64_t most, const Workers &crew, WorkLists &out) const;

  const StageCapacity *capacity = nullptr;
  Buffer<Unit> units;
  Buffer<Span> unitSpans, maskSpans;
  BlockLists blocks;
  Buffer<Piece> pieces;
  Buffer<Group> groups;
  Buffer<Chunk> chunks;
  Buffer<uint64_t> order;
  Buffer<double> loads;
  Buffer<int32_t> heap;
  Buffer<double> limits; // of a piece's cost, per body; 0: none
  Buffer<int64_t> cursors;
  // Devices: of the items of a stage, in their order.
  Buffer<double> costs;
  Buffer<fi_item> arranged;
  Buffer<int64_t> bodySlots;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_PLANNER_WORKLIST_H
