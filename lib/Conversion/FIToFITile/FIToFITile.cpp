//===- FIToFITile.cpp - converts programs to kernels and a manifest -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageBuilder.h"
#include "fi/ABI/KernelABI.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fi {
#define GEN_PASS_DEF_FITOFITILE
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct FIToFITilePass : fi::impl::FIToFITileBase<FIToFITilePass> {
  void runOnOperation() override {
    SmallVector<ProgramOp> programs(getOperation().getOps<ProgramOp>());
    for (ProgramOp program : programs) {
      if (failed(convert(program)))
        return signalPassFailure();
      program.erase();
    }
  }

  /// Whether an attention over segments has this finalisation in its stage.
  static bool isPartOfAttention(fi::FinalizeOp op) {
    return op.getState().hasOneUse() &&
           op.getState().getDefiningOp<MergeSegmentsOp>();
  }

  /// Whether an op says how many rows what another one makes has.
  static bool onlyCountsRows(Operation *op) {
    return isa<arith::ConstantOp, tensor::DimOp, memref::DimOp>(op) &&
           llvm::all_of(op->getUsers(), [](Operation *user) {
             return isa<EmptyOp, SegmentPackBitsOp>(user) ||
                    onlyCountsRows(user);
           });
  }

  LogicalResult convert(ProgramOp program) {
    OpBuilder b(program);
    ProgramBuffers buffers(program);
    SmallVector<Attribute> stages;
    llvm::StringMap<unsigned> counts;
    for (Operation &op : program.getBody().front()) {
      StringRef kind = op.getName().stripDialect();
      auto nextName = [&] {
        return (program.getSymName() + "_" + kind + Twine(counts[kind]++))
            .str();
      };
      DictionaryAttr stage;
      if (auto attention = dyn_cast<AttentionOp>(op))
        stage = buildAttentionStage(b, attention, buffers, nextName());
      else if (auto append = dyn_cast<AppendOp>(op))
        stage = buildAppendStage(b, append, buffers, nextName());
      else if (auto finalize = dyn_cast<fi::FinalizeOp>(op);
               finalize && isPartOfAttention(finalize))
        continue;
      else if (isa<fi::MergeOp, fi::FinalizeOp, EmptyOp>(op))
        stage = buildRowsStage(b, &op, buffers, nextName());
      else if (auto norm = NormParts::of(&op))
        stage = buildNormStage(b, *norm, buffers, nextName());
      else if (auto companion = dyn_cast<CompanionOpInterface>(op)) {
        if (failed(buildCompanionStages(b, companion, buffers, nextName(),
                                        stages)))
          return failure();
        continue;
      } else if (onlyCountsRows(&op))
        continue;
      else if (isa<KVViewOpInterface, SegmentsOp, MergeSegmentsOp,
                   fi::ReturnOp>(op))
        continue;
      else
        return op.emitOpError("expected only fi ops in a program at this "
                              "level: compute before or after it");
      if (!stage)
        return failure();
      stages.push_back(stage);
    }
    auto ret = cast<fi::ReturnOp>(program.getBody().front().getTerminator());
    for (auto [index, operand] : llvm::enumerate(ret.getOperands()))
      if (isa<BlockArgument>(operand))
        return ret.emitOpError("expected operand ")
               << index << " to be computed by the program, but got argument '"
               << buffers.get(operand).name << "'";
    TargetAttr target =
        program->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    auto named = [&](StringRef key, Attribute value) {
      return b.getNamedAttr(key, value);
    };
    bool isGPU = target && !target.isCPU();
    SmallVector<NamedAttribute> targetEntry = {
        named("kind", b.getStringAttr(isGPU ? "cuda" : "cpu"))};
    if (isGPU)
      targetEntry.push_back(named("chip", target.getKind()));
    else if (target)
      targetEntry.push_back(
          named("vector_bits", b.getI64IntegerAttr(target.getVectorBits())));
    PackageOp::create(
        b, program.getLoc(), program.getSymName(),
        b.getDictionaryAttr(
            {named("manifest", b.getI64IntegerAttr(FI_MANIFEST_VERSION)),
             named("abi", b.getI64IntegerAttr(FI_ABI_VERSION)),
             named("compiler", b.getStringAttr("fi 0.1.0")),
             named("program", b.getStringAttr(program.getSymName())),
             named("target", b.getDictionaryAttr(targetEntry)),
             named("arguments", buffers.getArguments()),
             named("results", buffers.getResults()),
             named("temporaries", buffers.getTemporaries()),
             named("stages", b.getArrayAttr(stages))}));
    return success();
  }
};

} // namespace
