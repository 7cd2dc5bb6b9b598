//===- Pipelines.cpp - the pipelines between the levels -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Pipelines/Pipelines.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/SMTable.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fi;

/// Canonicalises ops. What it does to blocks beside, dropping those that are
/// alike or not reached, takes as long again and finds nothing here: loops are
/// structured, and come from fi's own lowering.
static std::unique_ptr<Pass> createOpCanonicalizer() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

void fi::buildPreparePipeline(OpPassManager &pm) {
  pm.addPass(createFICanonicalizePass());
  pm.addPass(createFIAnalyzeMasksPass());
  pm.addPass(createFIChooseSchedulePass());
  pm.addPass(createFISplitKVPass());
}

void fi::buildTilePipeline(OpPassManager &pm,
                           const TilePipelineOptions &options) {
  pm.addPass(createFIToFITile());
  OpPassManager &kernels = pm.nest<tile::KernelOp>();
  kernels.addPass(tile::createFITileSplitMasked());
  kernels.addPass(tile::createFITileOnlineSoftmax());
  tile::FITileLegalizeDtypesOptions legalize;
  legalize.bf16Dot = options.bf16Dot;
  legalize.f16Dot = options.f16Dot;
  kernels.addPass(tile::createFITileLegalizeDtypes(legalize));
  kernels.addPass(tile::createFITileGatherBits());
  kernels.addPass(createOpCanonicalizer());
  kernels.addPass(createCSEPass());
}

void fi::buildVectorPipeline(OpPassManager &pm) {
  pm.addPass(createFITileToVector());
  buildVectorCleanupPipeline(pm);
}

void fi::buildVectorCleanupPipeline(OpPassManager &pm) {
  pm.addPass(createOpCanonicalizer());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
}

void fi::buildLLVMPipeline(OpPassManager &pm,
                           const LLVMPipelineOptions &options) {
  pm.addPass(createFIApproximateMath());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = !options.nativeBf16;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createFIConvertHostToLLVM());
  pm.addPass(createOpCanonicalizer());
  pm.addPass(createCSEPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void fi::buildPlacePipeline(OpPassManager &pm,
                            const PlacePipelineOptions &options) {
  OpPassManager &kernels = pm.nest<tile::KernelOp>();
  kernels.addPass(tile::createFITileExpandMath());
  kernels.addPass(tile::createFITileCommuteScale());
  kernels.addPass(tile::createFITileSkipRescale());
  kernels.addPass(tile::createFITileLazyMaximum());
  kernels.addPass(tile::createFITilePlaceOperands());
  kernels.addPass(tile::createFITileAssignLayouts());
  kernels.addPass(tile::createFITileSplitRoles());
  kernels.addPass(tile::createFITileTensorCopies());
  kernels.addPass(tile::createFITileRotate());
  kernels.addPass(tile::createFITileLateMaximum());
  kernels.addPass(tile::createFITilePipeline());
  kernels.addPass(tile::createFITileHoistWaits());
  tile::FITileAllocateOptions allocate;
  allocate.limit = options.sharedLimit;
  kernels.addPass(tile::createFITileAllocate(allocate));
  kernels.addPass(tile::createFITileCheckAsync());
  kernels.addPass(tile::createFITileEstimateRegisters());
  kernels.addPass(tile::createFITileOverlapLaunches());
  // Where nothing is decided any more: in profile builds as in all others.
  kernels.addPass(tile::createFITileMark());
}

void fi::buildNVVMPipeline(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<tile::KernelOp>();
  kernels.addPass(tile::createFITileLowerChannels());
  // What it has written is checked like what users write.
  kernels.addPass(tile::createFITileCheckAsync());
  pm.addPass(createFITileToNVVM());
  // Kernel by kernel, so that they may be lowered at the same time. The
  // lowering computes addresses anew wherever it needs them; the first pass
  // leaves little for the second. What comes after the conversion is cleaned by
  // LLVM.
  OpPassManager &functions = pm.nest<LLVM::LLVMFuncOp>();
  functions.addPass(createCSEPass());
  functions.addPass(createOpCanonicalizer());
  functions.addPass(createCSEPass());
  functions.addPass(createFIApproximateMath());
  functions.addPass(createFIConvertToLLVM());
}

void fi::setOptions(TargetAttr target, TilePipelineOptions &options) {
  const sm::Target *chip = target.getChip();
  options.bf16Dot = chip ? chip->has(sm::MmaBF16) : target.getBf16Dot();
  options.f16Dot = chip && chip->has(sm::MmaF16);
}

void fi::setOptions(TargetAttr target, LLVMPipelineOptions &options) {
  options.nativeBf16 = target.getBf16Dot();
}

void fi::setOptions(TargetAttr target, PlacePipelineOptions &options) {
  const sm::Target *chip = target.getChip();
  options.sharedLimit = chip ? chip->maxSharedPerCTA : 0;
}

/// A stage with the options of a target.
template <typename Options>
static std::function<void(OpPassManager &)>
withOptions(TargetAttr target,
            void (*build)(OpPassManager &, const Options &)) {
  return [=](OpPassManager &pm) {
    Options options;
    setOptions(target, options);
    build(pm, options);
  };
}

SmallVector<Stage, 4> fi::getStages(TargetAttr target) {
  SmallVector<Stage, 4> stages;
  stages.push_back({"fi", buildPreparePipeline});
  stages.push_back({"fi_tile", withOptions(target, buildTilePipeline)});
  if (target.getChip()) {
    stages.push_back({"placed", withOptions(target, buildPlacePipeline)});
    stages.push_back({"nvvm", buildNVVMPipeline});
  } else {
    stages.push_back({"vector", buildVectorPipeline});
    stages.push_back({"llvm", withOptions(target, buildLLVMPipeline)});
  }
  return stages;
}

void fi::registerPipelines() {
  PassPipelineRegistration<>(
      "fi-prepare", "level 1: regions, mask bounds, schedules",
      [](OpPassManager &pm) { buildPreparePipeline(pm); });
  PassPipelineRegistration<TilePipelineOptions>(
      "fi-lower-to-tile", "level 1 to level 2, legal for the target",
      buildTilePipeline);
  PassPipelineRegistration<>(
      "fi-lower-to-vector", "level 2 to loops over vectors",
      [](OpPassManager &pm) { buildVectorPipeline(pm); });
  PassPipelineRegistration<PlacePipelineOptions>(
      "fi-place-tiles", "level 2: layouts, channels, shared memory",
      buildPlacePipeline);
  PassPipelineRegistration<>("fi-lower-to-nvvm",
                             "level 2, placed, to the nvvm and llvm dialects",
                             [](OpPassManager &pm) { buildNVVMPipeline(pm); });
  PassPipelineRegistration<LLVMPipelineOptions>(
      "fi-lower-to-llvm", "loops over vectors to the llvm dialect",
      buildLLVMPipeline);
}
