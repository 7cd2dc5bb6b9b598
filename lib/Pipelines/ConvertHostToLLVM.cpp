//===- ConvertHostToLLVM.cpp - functions for a CPU to the llvm dialect ----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarPatterns.h"
#include "fi/Conversion/Passes.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Dialect/X86Vector/Transforms.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace fi {
#define GEN_PASS_DEF_FICONVERTHOSTTOLLVM
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;

namespace {
struct ConvertHostToLLVM
    : fi::impl::FIConvertHostToLLVMBase<ConvertHostToLLVM> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet apart(context);
    populateVectorToSCFConversionPatterns(apart);
    memref::populateExpandStridedMetadataPatterns(apart);
    vector::populateVectorToVectorCanonicalizationPatterns(apart);
    vector::populateVectorBitCastLoweringPatterns(apart);
    vector::populateVectorBroadcastLoweringPatterns(apart);
    vector::populateVectorContractLoweringPatterns(
        apart, vector::VectorContractLowering::Dot);
    vector::populateVectorMaskOpLoweringPatterns(apart);
    vector::populateVectorShapeCastLoweringPatterns(apart);
    vector::populateVectorInterleaveLoweringPatterns(apart);
    vector::populateVectorTransposeLoweringPatterns(
        apart, vector::VectorTransposeLowering::EltWise);
    vector::populateVectorTransferLoweringPatterns(apart,
                                                   /*maxTransferRank=*/1);
    vector::populateVectorMaskMaterializationPatterns(
        apart, /*force32BitVectorIndices=*/true);
    vector::populateVectorInsertExtractStridedSliceTransforms(apart);
    vector::populateVectorStepLoweringPatterns(apart);
    vector::populateVectorRankReducingFMAPattern(apart);
    vector::populateVectorGatherLoweringPatterns(apart);
    expansions = FrozenRewritePatternSet(std::move(apart));

    converter = std::make_shared<LLVMTypeConverter>(context);
    RewritePatternSet set(context);
    populateAffineToStdConversionPatterns(set);
    fi::populateScalarsToLLVM(*converter, set);
    populateFinalizeMemRefToLLVMConversionPatterns(*converter, set);
    populateFuncToLLVMConversionPatterns(*converter, set);
    vector::populateVectorTransferLoweringPatterns(set);
    populateVectorToLLVMConversionPatterns(*converter, set,
                                           /*reassociateFPReductions=*/false,
                                           /*force32BitVectorIndices=*/true);
    populateAMXLegalizeForLLVMExportPatterns(*converter, set);
    populateX86VectorLegalizeForLLVMExportPatterns(*converter, set);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    (void)applyPatternsGreedily(getOperation(), expansions, config);
    LLVMConversionTarget target(getContext());
    target.addIllegalDialect<affine::AffineDialect, arith::ArithDialect,
                             cf::ControlFlowDialect, func::FuncDialect,
                             index::IndexDialect, math::MathDialect,
                             memref::MemRefDialect, scf::SCFDialect,
                             ub::UBDialect, vector::VectorDialect>();
    configureAMXLegalizeForExportTarget(target);
    configureX86VectorLegalizeForExportTarget(target);
    // What can be folded was, by the canonicalizer.
    ConversionConfig conversion;
    conversion.foldingMode = DialectConversionFoldingMode::Never;
    if (failed(applyPartialConversion(getOperation(), target, patterns,
                                      conversion)))
      signalPassFailure();
  }

private:
  std::shared_ptr<LLVMTypeConverter> converter;
  FrozenRewritePatternSet expansions, patterns;
};
} // namespace
