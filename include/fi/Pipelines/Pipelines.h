//===- Pipelines.h - the pipelines between the levels -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each stage is a function that fills a pass manager, and a registered pipeline
// of the same name in fi-opt; the whole road to a target is their
// concatenation.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PIPELINES_PIPELINES_H
#define FI_PIPELINES_PIPELINES_H

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include <functional>

namespace fi {

/// Options of the stages that depend on what the target can multiply.
struct TilePipelineOptions : mlir::PassPipelineOptions<TilePipelineOptions> {
  Option<bool> bf16Dot{*this, "bf16-dot",
                       llvm::cl::desc("the target multiplies bf16 pairs"),
                       llvm::cl::init(false)};
  Option<bool> f16Dot{*this, "f16-dot",
                      llvm::cl::desc("the target multiplies f16"),
                      llvm::cl::init(false)};
};

struct LLVMPipelineOptions : mlir::PassPipelineOptions<LLVMPipelineOptions> {
  Option<bool> nativeBf16{
      *this, "native-bf16",
      llvm::cl::desc("the target converts between f32 and bf16"),
      llvm::cl::init(false)};
};

struct PlacePipelineOptions : mlir::PassPipelineOptions<PlacePipelineOptions> {
  Option<int64_t> sharedLimit{
      *this, "shared-limit",
      llvm::cl::desc("bytes of shared memory of a CTA; 0: unlimited"),
      llvm::cl::init(0)};
};

/// fi -> fi with regions, mask bounds and schedules. `fi-prepare`.
void buildPreparePipeline(mlir::OpPassManager &pm);
/// fi -> fi_tile, legal for the target. `fi-lower-to-tile`.
void buildTilePipeline(mlir::OpPassManager &pm,
                       const TilePipelineOptions &options);
/// fi_tile -> func, scf, memref, vector. `fi-lower-to-vector`.
void buildVectorPipeline(mlir::OpPassManager &pm);
/// The end of `fi-lower-to-vector`, which looks at one function at a time.
void buildVectorCleanupPipeline(mlir::OpPassManager &pm);
/// vector -> llvm. `fi-lower-to-llvm`.
void buildLLVMPipeline(mlir::OpPassManager &pm,
                       const LLVMPipelineOptions &options);

/// fi_tile, logical -> placed, for a GPU. `fi-place-tiles`.
void buildPlacePipeline(mlir::OpPassManager &pm,
                        const PlacePipelineOptions &options);
/// fi_tile, placed -> nvvm, llvm. `fi-lower-to-nvvm`.
void buildNVVMPipeline(mlir::OpPassManager &pm);

/// Sets the options of a stage to what a target can do.
void setOptions(TargetAttr target, TilePipelineOptions &options);
void setOptions(TargetAttr target, LLVMPipelineOptions &options);
void setOptions(TargetAttr target, PlacePipelineOptions &options);

/// A part of the road from level 1 to a target's dialects.
struct Stage {
  /// What its output is: `fi` (with schedules), `fi_tile`, then for a CPU
  /// `vector` and `llvm`, for a GPU `placed` and `nvvm`.
  llvm::StringRef name;
  std::function<void(mlir::OpPassManager &)> build;
};
/// The stages for a target, in order. The module they run on has the target as
/// its `fi.target`. Any number of them from the first on may be run, in one
/// pass manager or in several, and other passes between them.
llvm::SmallVector<Stage, 4> getStages(TargetAttr target);

void registerPipelines();

} // namespace fi

#endif // FI_PIPELINES_PIPELINES_H
