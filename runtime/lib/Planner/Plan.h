//===- Plan.h - A planned batch --------------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What planning leaves for runs: work lists, the tables that kernels read, what
// the run values must look like, and where everything lies in the workspace.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PLANNER_PLAN_H
#define FI_RUNTIME_PLANNER_PLAN_H

#include "../Device/DevicePart.h"
#include "../Package/Package.h"
#include "Tables.h"
#include "WorkList.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace fi::runtime {

/// The options of a plan with their arrays copied.
struct PlanOptions {
  int32_t workers = 0;
  SplitPolicy split = {FI_SPLIT_DEFAULT, 0};
  bool borrowTables = false;
  int64_t rows = 0;
  bool workersStated = false;
  fi_device *device = nullptr; // kept alive by the plan
  void *stream = nullptr;
  bool graphSafe = false, checked = false;
  int64_t maxRequests = 0, maxRequestRows = 0, maxPages = 0;
  int64_t profileBytes = 0;
  /// Per run argument: its sizes, unknownSize where not stated.
  std::vector<int64_t> sizes;

  int64_t size(int32_t runArgument, int32_t dim) const {
    size_t i = size_t(runArgument) * maxRank + dim;
    return i < sizes.size() ? sizes[i] : unknownSize;
  }
};

/// A size that a run value must have.
struct SizeRule {
  int64_t exact = unknownSize;
  int64_t least = 0;
};

/// What both batches of a graph-safe plan share.
struct GraphPlan {
  explicit GraphPlan(const Manifest &manifest)
      : smallest(manifest.runArguments.size() * maxRank) {
    for (std::atomic<int64_t> &size : smallest)
      size.store(INT64_MAX, std::memory_order_relaxed);
  }

  Capacities capacities;
  SharedMemory memory;
  /// Per run argument and dimension: the smallest that a run has had.
  std::vector<std::atomic<int64_t>> smallest;
};

/// Offsets of the parts of the workspace, in bytes.
struct WorkspaceLayout {
  size_t phases = 0;   // progress of each phase
  size_t counters = 0; // next item of each list
  size_t works = 0;    // fi_work of each launch
  size_t params = 0;   // parameter slots of each stage
  size_t scratch = 0, scratchStride = 0;
  size_t states = 0;
  size_t temporaries = 0;
  size_t bytes = 0;
};

/// Everything about one batch. A plan has two, so that an update that fails
/// leaves the old one whole and one that succeeds reuses memory.
class PlanData {
public:
  /// Plans a batch. On failure the contents are unusable.
  fi_status build(const Manifest &manifest, const Module *module,
                  const fi_value *values, const PlanOptions &options,
                  GraphPlan *graph);

  int32_t workers = 1;
  int64_t profileBytes = 0;
  const Capacities *capacities = nullptr; // of a graph-safe plan
  WorkLists lists;
  /// Per argument of the program: plan arguments as kernels read them.
  Buffer<Table> kernelTables;
  /// Per run argument and dimension.
  Buffer<SizeRule> rules;
  /// Per argument: rows, where the plan knows them.
  Buffer<int64_t> argumentRows;
  int64_t countRows(const RowSource &source) const {
    return source.argument == none ? source.count
                                   : argumentRows[source.argument];
  }
  /// Per stage.
  std::vector<ViewLengths> views;
  std::vector<RowLengths> rows;
  Buffer<size_t> stageParams;      // byte offset of a stage's slots in params
  Buffer<size_t> temporaryOffsets; // from WorkspaceLayout::temporaries
  WorkspaceLayout layout;
  /// What lies on the device, for a plan for one.
  DevicePart onDevice;
  /// The kept copy of the tables that kernels read.
  Buffer<char> tableBytes;
  /// Graph-safe plans: what of them this batch has written.
  Buffer<BytePart> tableParts;

private:
  fi_status readArguments(const Manifest &manifest, const fi_value *values);
  fi_status findRows(const Manifest &manifest, const PlanOptions &options);
  fi_status setRule(const Manifest &manifest, const Stage &stage,
                    int32_t argument, int32_t dim, int64_t exact);
  fi_status setPoolRules(const Manifest &manifest, const Stage &stage,
                         const ViewLengths &lengths);
  fi_status setScaleRules(const Manifest &manifest, const Stage &stage,
                          const ViewLengths &lengths);
  fi_status buildStages(const Manifest &manifest, const Workers &crew,
                        const PlanOptions &options, Capacities *capacities);
  fi_status keepTables(const Manifest &manifest, bool borrow,
                       Capacities *capacities);
  fi_status keepGraphTables(const Manifest &manifest, Capacities &capacities);
  static bool isPartOfLaunches(const Manifest &manifest, int32_t argument);
  void placeDenseTables(const Manifest &manifest);
  fi_status checkSeen(const Manifest &manifest, const GraphPlan &graph) const;
  void layOutControl(const Manifest &manifest, size_t &at);
  fi_status layOut(const Manifest &manifest, bool onDevice);

  Buffer<Table> tables;      // per argument, as the caller passed them
  Buffer<int64_t> tableRows; // per argument: rows to keep, or unknownSize
  Buffer<bool> isPages;      // per argument: read as a page table alone
  WorkListBuilder builder;
};

} // namespace fi::runtime

struct fi_plan {
  explicit fi_plan(fi_package *package) : package(package) {
    fi::runtime::retain(package);
  }
  ~fi_plan();

  const fi::runtime::PlanData &data() const { return batches[current]; }

  fi_package *package;
  /// Where it runs; null: on this machine's threads.
  fi_device *device = nullptr;
  const fi::runtime::Module *module = nullptr; // the package's
  fi::runtime::PlanData batches[2];
  int current = 0;
  fi::runtime::PlanOptions options;
  std::unique_ptr<fi::runtime::GraphPlan> graph; // of a graph-safe plan
  std::atomic<uint64_t> generation{0};
  /// Runs in progress; -1 during an update.
  std::atomic<int32_t> users{0};
};

namespace fi::runtime {

fi_status createPlan(fi_package *package, const fi_value *values,
                     int32_t valueCount, const fi_plan_options *options,
                     fi_plan **plan);
fi_status updatePlan(fi_plan *plan, const fi_value *values, int32_t valueCount,
                     const fi_plan_options *options);
std::string explainPlan(const fi_plan &plan);
std::string scheduleJson(const fi_plan &plan);

} // namespace fi::runtime

#endif // FI_RUNTIME_PLANNER_PLAN_H
