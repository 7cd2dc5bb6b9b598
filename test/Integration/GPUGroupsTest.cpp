//===- GPUGroupsTest.cpp - groups of warps that take key tiles in turn ----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Schedules with `key_warps`, of one warp and of several: the interpreter of
// level 2, at every stage of lowering, and the emulator equal the reference.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Pipelines/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Tiles {
  int64_t rows, keys, warps, keyWarps, stages;
};
void PrintTo(Tiles tiles, std::ostream *os) {
  *os << tiles.rows << 'x' << tiles.keys << ", " << tiles.keyWarps
      << " groups of " << tiles.warps << ", " << tiles.stages << " stages";
}

AttentionText attention(const std::string &element, Tiles tiles) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = element;
  text.group = 4;
  text.clauses = "mask(#fi.causal) schedules([#fi.schedule<tile_rows = " +
                 std::to_string(tiles.rows) +
                 ", tile_keys = " + std::to_string(tiles.keys) +
                 ", warps = " + std::to_string(tiles.warps) +
                 ", key_warps = " + std::to_string(tiles.keyWarps) +
                 ", stages = " + std::to_string(tiles.stages) +
                 ", lanes = 4>])";
  return text;
}

/// Contexts of fewer tiles than groups, of many, and none.
std::vector<Request> batch() {
  return {{1, 1}, {1, 37}, {5, 5}, {9, 130}, {0, 20}, {4, 0}, {9, 4}, {1, 300}};
}

/// What lowers programs to placed kernels, one after the other.
constexpr int kStages = 11;
void addStage(mlir::OpPassManager &pm, int stage) {
  mlir::OpPassManager &kernels = pm.nest<tile::KernelOp>();
  tile::FITileLegalizeDtypesOptions legalize;
  legalize.bf16Dot = legalize.f16Dot = true;
  switch (stage) {
  case 0:
    return kernels.addPass(tile::createFITileSplitMasked());
  case 1:
    return kernels.addPass(tile::createFITileOnlineSoftmax());
  case 2:
    return kernels.addPass(tile::createFITileLegalizeDtypes(legalize));
  case 3:
    kernels.addPass(mlir::createCanonicalizerPass());
    return kernels.addPass(mlir::createCSEPass());
  case 4:
    return kernels.addPass(tile::createFITileCommuteScale());
  case 5:
    return kernels.addPass(tile::createFITileSkipRescale());
  case 6:
    return kernels.addPass(tile::createFITilePlaceOperands());
  case 7:
    return kernels.addPass(tile::createFITileAssignLayouts());
  case 8:
    return kernels.addPass(tile::createFITilePipeline());
  case 9:
    return kernels.addPass(tile::createFITileAllocate());
  case 10:
    kernels.addPass(tile::createFITileCheckAsync());
    return kernels.addPass(tile::createFITileEstimateRegisters());
  }
}

/// Interprets a program after the first `count` stages of level 2.
Case::Maker interpretAfter(int count) {
  return
      [=](mlir::ModuleOp module) -> llvm::Expected<std::unique_ptr<Executor>> {
        mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
        mlir::PassManager pm(module.getContext(),
                             mlir::ModuleOp::getOperationName());
        buildPreparePipeline(pm);
        pm.addPass(createFIToFITile());
        for (int stage = 0; stage < count; ++stage)
          addStage(pm, stage);
        if (mlir::failed(pm.run(*copy)))
          return llvm::createStringError("the passes failed");
        return Executor::create("level2", *copy, "", {});
      };
}

class GPUGroups
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUGroups, GiveEqualResults) {
  auto [element, tiles] = GetParam();
  AttentionText text = attention(element, tiles);
  Case(text.get(), batch()).on(interpretAfter(kStages)).check(fewPlans());
  Case(text.get(), batch()).on(on("sm_80")).check(fewPlans());
}

INSTANTIATE_TEST_SUITE_P(
    Grid, GPUGroups,
    testing::Combine(
        testing::Values("f16", "bf16"),
        testing::Values(Tiles{16, 16, 1, 2, 1}, Tiles{16, 16, 1, 4, 3},
                        Tiles{16, 32, 1, 8, 2}, Tiles{32, 32, 1, 4, 2},
                        Tiles{32, 16, 2, 2, 2}, Tiles{64, 32, 2, 4, 2},
                        Tiles{48, 16, 3, 2, 1})));

TEST(GPUGroups, AreInterpretedAtEveryStage) {
  for (Tiles tiles : {Tiles{16, 16, 1, 4, 3}, Tiles{32, 16, 2, 2, 2}})
    for (int count = 0; count <= kStages; ++count) {
      SCOPED_TRACE(count);
      Case(attention("f16", tiles).get(), batch())
          .on(interpretAfter(count))
          .check(fewPlans());
    }
}

TEST(GPUGroups, MoreThanThereAreBarriers) {
  std::string error =
      Case(attention("f16", {32, 16, 2, 16, 1}).get(), {{3, 20}})
          .on(on("sm_80"))
          .getError();
  EXPECT_NE(error.find("[SCH7]"), std::string::npos) << error;
}

} // namespace
