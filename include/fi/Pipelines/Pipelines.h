//===- Pipelines.h - the pipelines between the levels -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each stage is a function that fills a pass manager, and a registered pipeline
// of the same name in fi-opt; the whole road to the CPU is their concatenation.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PIPELINES_PIPELINES_H
#define FI_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

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

void registerPipelines();

} // namespace fi

#endif // FI_PIPELINES_PIPELINES_H
