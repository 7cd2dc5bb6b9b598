//===- ProfileTest.cpp - timelines of profiled kernels --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs compiled for profiling compute the same bits as without, in the
// emulator and interpreted with their marks; their timelines have every item
// that was planned, in phases that follow one another, and nothing is dropped.
// With FI_TEST_GPU=cuda in the environment: on the GPU.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "fi/Support/Timeline.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

using namespace fi;
using namespace fi::test;

namespace {

struct Profiled {
  const char *name, *chip, *schedule;
  Planned planned;
  std::vector<Request> requests;
  /// Phases that must come, "role/phase".
  std::vector<const char *> phases;
};
void PrintTo(const Profiled &of, std::ostream *os) { *os << of.name; }

class ProfiledPrograms
    : public testing::TestWithParam<std::tuple<Profiled, const char *>> {
protected:
  struct Run {
    std::vector<HostTensor> results;
    std::string timeline, schedule;
  };

  /// `detail`: of fi.profile; null: without.
  bool run(const Profiled &of, const char *detail, Run &out) {
    AttentionText text;
    text.target = std::string("#fi.target<") + of.chip + ">";
    text.query = text.keys = text.values = text.output = "f16";
    text.kvHeads = 2;
    text.group = 2;
    text.clauses = std::string("mask(#fi.causal)") + of.schedule;
    mlir::ParserConfig config(&getContext());
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text.get(), config);
    if (!module)
      return report("text");
    if (detail)
      (*module)->setAttr(kProfileAttr,
                         mlir::StringAttr::get(&getContext(), detail));
    const char *gpu = std::getenv("FI_TEST_GPU");
    ExecutorOptions options;
    options.workers = of.planned.workers;
    options.split = of.planned.split;
    options.splitKeys = of.planned.keys;
    auto executor = Executor::create(
        gpu ? gpu : std::string("emulated:") + of.chip + ":sms=6", *module, "",
        options);
    if (!executor)
      return report(llvm::toString(executor.takeError()));
    Batch batch;
    batch.hasRequests = true;
    for (const Request &request : of.requests)
      batch.requests.push_back({request.rows, request.keys});
    auto inputs = makeInputs((*executor)->getSignature(), batch, {});
    if (!inputs)
      return report(llvm::toString(inputs.takeError()));
    if (llvm::Error error = (*executor)->plan(*inputs))
      return report(llvm::toString(std::move(error)));
    auto results = (*executor)->allocateResults(*inputs);
    if (!results)
      return report(llvm::toString(results.takeError()));
    out.results = std::move(*results);
    if (llvm::Error error = (*executor)->runOnHost(*inputs, out.results))
      return report(llvm::toString(std::move(error)));
    auto schedule = (*executor)->getScheduleJson();
    if (!schedule)
      return report(llvm::toString(schedule.takeError()));
    out.schedule = *schedule;
    auto timeline = (*executor)->getTimelineJson();
    if (!timeline) {
      out.timeline = llvm::toString(timeline.takeError());
      return !detail || report(out.timeline);
    }
    out.timeline = *timeline;
    return true;
  }
  static bool report(const std::string &what) {
    ADD_FAILURE() << what;
    return false;
  }
};

TEST_P(ProfiledPrograms, HaveTheSameBitsAndTellAllItems) {
  const auto &[of, detail] = GetParam();
  Run plain, profiled;
  ASSERT_TRUE(run(of, nullptr, plain));
  ASSERT_TRUE(run(of, detail, profiled));
  EXPECT_NE(plain.timeline.find("expected a package that was compiled for "
                                "profiling, but"),
            std::string::npos)
      << plain.timeline;
  ASSERT_EQ(plain.results.size(), profiled.results.size());
  for (auto [a, b] : llvm::zip(plain.results, profiled.results))
    EXPECT_TRUE(hasEqualBits(a, b));

  auto trace = llvm::json::parse(profiled.timeline);
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
  const llvm::json::Object &root = *trace->getAsObject();
  EXPECT_EQ(root.getObject("otherData")->getInteger("dropped"), 0);
  struct Warp {
    std::string role;
    double from = 0, to = 0, last = -1;
    std::set<int64_t> items;
    int64_t launch = 0, phases = 0;
  };
  std::map<int64_t, Warp> warps;
  std::set<std::string> phases;
  for (const llvm::json::Value &value : *root.getArray("traceEvents")) {
    const llvm::json::Object &event = *value.getAsObject();
    llvm::StringRef kind = *event.getString("ph");
    Warp &warp = warps[*event.getInteger("tid")];
    const llvm::json::Object &args = *event.getObject("args");
    if (event.getString("name") == "thread_name") {
      warp.role = args.getString("role")->str();
      warp.launch = *args.getInteger("launch");
      warp.from = *args.getNumber("from");
      warp.to = *args.getNumber("to");
      EXPECT_LT(warp.from, warp.to);
    }
    if (kind != "X")
      continue;
    double start = *event.getNumber("ts"), length = *event.getNumber("dur");
    EXPECT_GE(start, warp.from - 0.002);
    EXPECT_LE(start + length, warp.to + 0.002);
    if (event.getString("cat") == "item") {
      EXPECT_TRUE(warp.items.insert(*args.getInteger("item")).second)
          << "an item comes once in a warp";
      continue;
    }
    EXPECT_GE(start, warp.last - 0.002) << "phases follow one another";
    warp.last = start + length;
    ++warp.phases;
    phases.insert(warp.role + "/" + event.getString("name")->str());
  }
  warps.erase(0); // of processes

  // Every item of every launch, by each of its CTA's warps.
  auto schedule = llvm::json::parse(profiled.schedule);
  ASSERT_TRUE(bool(schedule)) << llvm::toString(schedule.takeError());
  int64_t planned = 0;
  for (const llvm::json::Value &launch :
       *schedule->getAsObject()->getArray("launches"))
    planned += *launch.getAsObject()->getInteger("items");
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const auto &[thread, warp] : warps) {
    EXPECT_GT(warp.phases, 0);
    for (int64_t item : warp.items)
      seen.insert({warp.launch, item});
  }
  EXPECT_EQ(int64_t(seen.size()), planned);
  for (const char *phase : of.phases)
    EXPECT_TRUE(phases.count(phase))
        << phase << " is missing:\n"
        << llvm::cantFail(summarizeTimeline(profiled.timeline));
  bool hasWaits = llvm::any_of(phases, [](const std::string &phase) {
    return llvm::StringRef(phase).contains("/waiting for ");
  });
  EXPECT_EQ(hasWaits, llvm::StringRef(detail) == "tiles");

  // Tables and pictures are made of it.
  std::string table = llvm::cantFail(summarizeTimeline(profiled.timeline));
  EXPECT_NE(table.find("(between phases)"), std::string::npos) << table;
  std::string picture = llvm::cantFail(plotTimeline(profiled.timeline));
  EXPECT_NE(picture.find("</svg>"), std::string::npos);
}

const Profiled kPrograms[] = {
    {"decode",
     "sm_90a",
     " schedules([#fi.schedule<tile_rows = 16, tile_keys = 32, warps = 1, "
     "key_warps = 4, stages = 2, lanes = 4>])",
     {6, SplitChoice::Fixed, 64},
     {{1, 300}, {1, 17}, {1, 128}, {2, 0}},
     {"group 0/prologue", "group 1/full tiles", "group 0/partial tiles",
      "group 1/sharing states", "group 0/storing a state", "group 0/meeting",
      "group 0/merging", "group 0/storing results"}},
    {"decodeAmpere",
     "sm_80",
     " schedules([#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, "
     "stages = 3, lanes = 4>])",
     {4, SplitChoice::None},
     {{1, 300}, {1, 17}, {33, 128}},
     {"/prologue", "/full tiles", "/partial tiles", "/finalising",
      "/storing results"}},
    {"roles",
     "sm_90a",
     " schedules([#fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, "
     "load_warps = 4, stages = 2, wgmma = 1, rotate = 1, tma = 1, late = 1, "
     "lanes = 4>])",
     {3, SplitChoice::Fixed, 64},
     {{1, 37}, {40, 150}, {9, 200}, {0, 20}, {4, 0}},
     {"load/copying", "compute/prologue", "compute/first tile",
      "compute/full tiles", "compute/partial tiles", "compute/last product",
      "compute/finalising", "compute/storing a state",
      "compute/storing results"}},
    {"rolesWithoutTensorCopies",
     "sm_90a",
     " schedules([#fi.schedule<tile_rows = 64, tile_keys = 48, warps = 4, "
     "load_warps = 4, stages = 3, wgmma = 1, lanes = 4>])",
     {3, SplitChoice::None},
     {{1, 37}, {40, 150}, {9, 200}},
     {"load/copying", "compute/prologue", "compute/full tiles",
      "compute/partial tiles", "compute/storing results"}}};

INSTANTIATE_TEST_SUITE_P(Emulated, ProfiledPrograms,
                         testing::Combine(testing::ValuesIn(kPrograms),
                                          testing::Values("phases", "tiles")),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  std::get<1>(info.param);
                         });

/// The interpreter of level 2 passes marks over, and so does a CPU.
TEST(ProfiledPrograms, ElsewhereMarksAreNothing) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = "f16";
  for (const char *detail : {"phases", "tiles"})
    Case(text.get(), {{1, 90}, {5, 20}})
        .on([&](mlir::ModuleOp module) {
          module->setAttr(kProfileAttr,
                          mlir::StringAttr::get(&getContext(), detail));
          return interpret(module);
        })
        .check({{3, SplitChoice::None}, {4, SplitChoice::Fixed, 32}});
  text.target = "";
  Case(text.get(), {{1, 90}, {5, 20}})
      .on([&](mlir::ModuleOp module) {
        module->setAttr(kProfileAttr,
                        mlir::StringAttr::get(&getContext(), "phases"));
        return Executor::create("cpu", module, "", {});
      })
      .check({{3, SplitChoice::None}});
}

} // namespace
