//===- BufferizableOpInterfaceImpl.cpp - fi under bufferization -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor and the memref form of an op of fi differ in their operands' types
// and in who has the results: so an op is bufferized by putting buffers in
// place of its tensors, and the results into `outs`.
//
// A KV view is no tensor. The analysis sees that a view op reads its tensors,
// but not that an attention reads them again, later, through the view.
// Therefore a view op (a) is read by ops of fi in its function only, which
// `verifyAnalysis` demands, and (b) gets a copy of each tensor that some op may
// overwrite in place while the view lives, which `resolveConflicts` inserts.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/Transforms/BufferizableOpInterfaceImpl.h"
#include "fi/Dialect/FI/IR/FICalls.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace fi;

namespace {

bool isInProgram(Operation *op) {
  return static_cast<bool>(op->getParentOfType<ProgramOp>());
}

/// The operands of an op, with buffers for tensors.
FailureOr<SmallVector<Value>> getBuffers(RewriterBase &rewriter,
                                         ValueRange values,
                                         const BufferizationOptions &options,
                                         BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value value : values) {
    if (isa<TensorType>(value.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      value = *buffer;
    }
    buffers.push_back(value);
  }
  return buffers;
}

/// An op that reads its tensors and has no tensor results.
template <typename Model, typename OpTy>
struct ReaderModel : BufferizableOpInterface::ExternalModel<Model, OpTy> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &,
                              const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &,
                               const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &,
                                      const AnalysisState &) const {
    return {};
  }
  /// Bufferization by functions does not analyse programs and would, to be
  /// safe, copy everything in them.
  LogicalResult resolveConflicts(Operation *op, RewriterBase &rewriter,
                                 const AnalysisState &analysis,
                                 const BufferizationState &state) const {
    if (isInProgram(op))
      return success();
    return cast<BufferizableOpInterface>(op).resolveTensorOpOperandConflicts(
        rewriter, analysis, state);
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (isInProgram(op))
      return success();
    FailureOr<SmallVector<Value>> buffers =
        getBuffers(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op->setOperands(*buffers); });
    return success();
  }
};

/// Gives the arguments of regions the types of the captures.
template <typename OpTy> void setCaptureTypes(OpTy op) {
  for (Region &region : op->getRegions())
    if (!region.empty())
      for (auto [argument, capture] :
           llvm::zip(region.getArguments().take_back(op.getCaptures().size()),
                     op.getCaptures()))
        argument.setType(capture.getType());
}

struct AppendModel : ReaderModel<AppendModel, AppendOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (isInProgram(op))
      return success();
    if (failed(ReaderModel::bufferize(op, rewriter, options, state)))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { setCaptureTypes(cast<AppendOp>(op)); });
    return success();
  }
};
struct SegmentsModel : ReaderModel<SegmentsModel, SegmentsOp> {};

struct LoadModel : ReaderModel<LoadModel, fi::LoadOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    // A capture's type is changed by its owner.
    if (isa<AttentionOp, AppendOp, RopeOp>(
            getOwnerOfValue(cast<fi::LoadOp>(op).getSource())))
      return success();
    return ReaderModel::bufferize(op, rewriter, options, state);
  }
};

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

template <typename OpTy> struct ViewModel : ReaderModel<ViewModel<OpTy>, OpTy> {
  using Base = ReaderModel<ViewModel<OpTy>, OpTy>;

  static bool ofTensors(Operation *op) {
    return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<TensorType>);
  }

  LogicalResult verifyAnalysis(Operation *op, const AnalysisState &) const {
    if (isInProgram(op) || !ofTensors(op))
      return success();
    for (Operation *user : op->getUsers())
      if (!isa<AttentionOp, AppendOp, SegmentsOp>(user)) {
        InFlightDiagnostic diag =
            op->emitOpError("expected a view of tensors to be used by "
                            "fi.attention, fi.append and fi.segments only, but "
                            "it is used by '")
            << user->getName()
            << "': its buffers may be gone or overwritten there";
        diag.attachNote(user->getLoc()) << "make the view there, or make it "
                                           "from memrefs";
        return diag;
      }
    return success();
  }

  /// Whether an op may write in place to the buffer of a tensor after the view
  /// is made. What comes before it on every path cannot come between it and a
  /// use: a view lives no longer than one execution of the block that makes it.
  static bool isOverwritten(Operation *view, Value tensor,
                            const AnalysisState &state) {
    Operation *function = view->getParentOfType<FunctionOpInterface>();
    if (!function)
      return true;
    DominanceInfo dominance(function);
    WalkResult walk = function->walk([&](Operation *op) {
      if (op == view || dominance.properlyDominates(op, view))
        return WalkResult::advance();
      for (OpOperand &operand : op->getOpOperands())
        if (isa<TensorType>(operand.get().getType()) &&
            state.isInPlace(operand) &&
            state.areAliasingBufferizedValues(operand.get(), tensor) &&
            state.bufferizesToMemoryWrite(operand))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return walk.wasInterrupted();
  }

  LogicalResult resolveConflicts(Operation *op, RewriterBase &rewriter,
                                 const AnalysisState &analysis,
                                 const BufferizationState &state) const {
    if (isInProgram(op))
      return success();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isa<TensorType>(operand.get().getType()) ||
          !isOverwritten(op, operand.get(), analysis))
        continue;
      FailureOr<Value> copy = allocateTensorForShapedValue(
          rewriter, op->getLoc(), operand.get(), analysis.getOptions(), state);
      if (failed(copy))
        return failure();
      rewriter.modifyOpInPlace(op, [&] { operand.set(*copy); });
    }
    return success();
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    if (isInProgram(op))
      return success();
    SmallVector<Value> pools = cast<OpTy>(op).getPools();
    FailureOr<SmallVector<Value>> buffers =
        getBuffers(rewriter, pools, options, state);
    if (failed(buffers))
      return failure();
    for (auto [index, buffer] : llvm::enumerate(*buffers)) {
      auto type = cast<MemRefType>(buffer.getType());
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(type.getStridesAndOffset(strides, offset)) ||
          strides.back() != 1)
        return op->emitOpError("expected the buffer of pool ")
               << index << " to have a last dimension of stride 1, but got "
               << type
               << ": bufferize function boundaries with identity-layout-map "
                  "[KV8]";
    }
    return Base::bufferize(op, rewriter, options, state);
  }
};

//===----------------------------------------------------------------------===//
// Ops with outputs: fi.attention, fi.finalize, norms
//===----------------------------------------------------------------------===//

/// The rows of a buffer, as a size of another.
FailureOr<OpFoldResult> getRows(OpBuilder &b, Operation *op, Value buffer) {
  Value rows = memref::DimOp::create(b, op->getLoc(), buffer, 0);
  return OpFoldResult(rows);
}

/// Where the results of an op are put: `outs`, or new buffers.
template <typename OpTy>
FailureOr<SmallVector<Value>>
getPlaces(RewriterBase &rewriter, OpTy op,
          llvm::function_ref<FailureOr<OpFoldResult>()> getRows,
          const BufferizationOptions &options, BufferizationState &state) {
  if (!op.getOuts().empty())
    return getBuffers(rewriter, op.getOuts(), options, state);
  SmallVector<Value> places;
  FailureOr<OpFoldResult> rows = OpFoldResult();
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<Value> sizes;
    // Heads and dim are known by the query or the state where the result's type
    // leaves them open.
    if (type.getNumDynamicDims() > 1 ||
        (type.getNumDynamicDims() == 1 && !type.isDynamicDim(0)))
      return failure();
    if (type.isDynamicDim(0)) {
      if (!*rows)
        rows = getRows();
      if (failed(rows))
        return failure();
      sizes.push_back(
          getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), *rows));
    }
    FailureOr<BufferLikeType> buffer = getBufferType(result, options, state);
    if (failed(buffer))
      return failure();
    FailureOr<Value> place = options.createAlloc(
        rewriter, op.getLoc(), cast<MemRefType>(*buffer), sizes);
    if (failed(place))
      return failure();
    places.push_back(*place);
  }
  return places;
}

template <typename Model, typename OpTy>
struct OutputModel : ReaderModel<Model, OpTy> {
  static std::optional<unsigned> outOf(Operation *op, OpOperand &operand) {
    for (auto [index, out] : llvm::enumerate(cast<OpTy>(op).getOutsMutable()))
      if (&out == &operand)
        return index;
    return std::nullopt;
  }

  bool bufferizesToAllocation(Operation *op, Value) const {
    return cast<OpTy>(op).getOuts().empty();
  }
  /// Destinations are overwritten whole.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return !outOf(op, operand);
  }
  bool bufferizesToMemoryWrite(Operation *op, OpOperand &operand,
                               const AnalysisState &) const {
    return outOf(op, operand).has_value();
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &operand,
                                      const AnalysisState &) const {
    if (std::optional<unsigned> index = outOf(op, operand))
      return {{op->getResult(*index), BufferRelation::Equivalent}};
    return {};
  }
  AliasingOpOperandList getAliasingOpOperands(Operation *op, Value value,
                                              const AnalysisState &) const {
    OpOperand *operand = nullptr;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      operand = captureOf(op, argument);
    } else {
      unsigned index = cast<OpResult>(value).getResultNumber();
      MutableOperandRange outs = cast<OpTy>(op).getOutsMutable();
      if (index < outs.size())
        operand = &outs[index];
    }
    if (!operand)
      return {};
    return {{operand, BufferRelation::Equivalent}};
  }
  FailureOr<BufferLikeType> getBufferType(Operation *op, Value value,
                                          const BufferizationOptions &options,
                                          const BufferizationState &state,
                                          SmallVector<Value> &stack) const {
    OpOperand *source = nullptr;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      source = captureOf(op, argument);
    } else {
      unsigned index = cast<OpResult>(value).getResultNumber();
      MutableOperandRange outs = cast<OpTy>(op).getOutsMutable();
      if (index < outs.size())
        source = &outs[index];
    }
    if (source)
      return bufferization::getBufferType(source->get(), options, state, stack);
    auto type = cast<TensorType>(value.getType());
    std::optional<Attribute> space = options.defaultMemorySpaceFn(type);
    return cast<BufferLikeType>(getMemRefTypeWithStaticIdentityLayout(
        type, space.value_or(Attribute())));
  }

  /// The capture that an argument of a region stands for.
  static OpOperand *captureOf(Operation *op, BlockArgument argument) {
    auto attention = dyn_cast<AttentionOp>(op);
    auto rope = dyn_cast<RopeOp>(op);
    if (!attention && !rope)
      return nullptr;
    MutableOperandRange captures =
        attention ? attention.getCapturesMutable() : rope.getCapturesMutable();
    int64_t index = int64_t(argument.getArgNumber()) + captures.size() -
                    argument.getOwner()->getNumArguments();
    return index < 0 ? nullptr : &captures[index];
  }
};

/// Captured tensors are read by what knows that they become buffers.
LogicalResult verifyCaptures(Operation *op) {
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (isa<TensorType>(argument.getType()))
        for (Operation *user : argument.getUsers())
          if (!isa<fi::LoadOp>(user))
            return user->emitOpError("expected a captured tensor to be read by "
                                     "fi.load where it is bufferized");
  return success();
}

struct AttentionModel : OutputModel<AttentionModel, AttentionOp> {
  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto op = cast<AttentionOp>(operation);
    if (isInProgram(op))
      return success();
    if (failed(verifyCaptures(op)))
      return failure();
    FailureOr<SmallVector<Value>> buffers =
        getBuffers(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();

    if (op.getNumResults() == 0 || op.returnsState()) {
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperands(*buffers);
        setCaptureTypes(op);
      });
      return success();
    }
    FailureOr<SmallVector<Value>> places = getPlaces(
        rewriter, op, [&] { return getRows(rewriter, op, buffers->front()); },
        options, state);
    if (failed(places))
      return op.emitOpError("has results whose sizes are not known; give their "
                            "places in 'outs'");
    IRMapping mapping;
    mapping.map(op->getOperands(), *buffers);
    auto get = [&](Value value) { return mapping.lookupOrNull(value); };
    auto getOrNull = [&](Value value) { return value ? get(value) : Value(); };
    SmallVector<Value> captures = llvm::map_to_vector(op.getCaptures(), get);
    auto made = AttentionOp::create(
        rewriter, op.getLoc(), TypeRange(), get(op.getQuery()),
        getOrNull(op.getRows()), op.getView(), getOrNull(op.getPositions()),
        getOrNull(op.getSegments()), getOrNull(op.getScaleValue()),
        getOrNull(op.getSink()), captures, *places,
        getOrNull(op.getQueryTail()), op.getScaleAttr(), op.getNormaliser(),
        op.getScoreAttrAttr(), op.getMasksAttr(), op.getSplitAttr(),
        op.getBoundsAttr(), op.getSchedulesAttr(), op.getPairingAttr());
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    for (auto [from, to] : llvm::zip(op->getRegions(), made->getRegions()))
      rewriter.inlineRegionBefore(from, to, to.end());
    rewriter.modifyOpInPlace(made, [&] { setCaptureTypes(made); });
    replaceOpWithBufferizedValues(rewriter, op, *places);
    return success();
  }
};

struct FinalizeModel : OutputModel<FinalizeModel, FinalizeOp> {
  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto op = cast<FinalizeOp>(operation);
    if (isInProgram(op))
      return success();
    if (op.getNumResults() == 0)
      return ReaderModel::bufferize(operation, rewriter, options, state);
    FailureOr<SmallVector<Value>> places = getPlaces(
        rewriter, op,
        [&] { return getStateRows(rewriter, op.getLoc(), op.getState()); },
        options, state);
    if (failed(places))
      return op.emitOpError("has results whose sizes are not known here, where "
                            "the state was not made; give their places in "
                            "'outs'");
    Value sink = op.getSink();
    if (sink && isa<TensorType>(sink.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, sink, options, state);
      if (failed(buffer))
        return failure();
      sink = *buffer;
    }
    auto made = FinalizeOp::create(rewriter, op.getLoc(), TypeRange(),
                                   op.getState(), sink, *places);
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    replaceOpWithBufferizedValues(rewriter, op, *places);
    return success();
  }
};

/// The group of operands of fi.segment_pack_bits before `outs`.
static constexpr unsigned kBytes = 3;

/// Norms and other ops on rows, whose `outs` are their last operands.
template <typename OpTy> struct RowsModel : OutputModel<RowsModel<OpTy>, OpTy> {
  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto op = cast<OpTy>(operation);
    if (isInProgram(op))
      return success();
    if (failed(verifyCaptures(op)))
      return failure();
    FailureOr<SmallVector<Value>> buffers =
        getBuffers(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    auto retype = [](Operation *made) {
      if (auto rope = dyn_cast<RopeOp>(made))
        setCaptureTypes(rope);
    };
    if (op->getNumResults() == 0) {
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperands(*buffers);
        retype(op);
      });
      return success();
    }
    FailureOr<SmallVector<Value>> places = getPlaces(
        rewriter, op,
        [&]() -> FailureOr<OpFoldResult> {
          if constexpr (std::is_same_v<OpTy, SegmentPackBitsOp>)
            return OpFoldResult(op.getBytes());
          return getRows(rewriter, op, buffers->front());
        },
        options, state);
    if (failed(places))
      return failure();
    // The operands but for `outs`, which come last, and the places.
    size_t kept = op->getNumOperands() - op.getOuts().size();
    SmallVector<Value> operands(ArrayRef(*buffers).take_front(kept));
    llvm::append_range(operands, *places);
    NamedAttrList attributes(op->getAttrs());
    if constexpr (OpTy::template hasTrait<
                      OpTrait::AttrSizedOperandSegments>()) {
      SmallVector<int32_t> sizes(op.getProperties().getOperandSegmentSizes());
      sizes.back() = static_cast<int32_t>(places->size());
      // Memory says how much there is of it.
      if constexpr (std::is_same_v<OpTy, SegmentPackBitsOp>) {
        operands.erase(operands.begin() + kept - sizes[kBytes]);
        sizes[kBytes] = 0;
      }
      attributes.set(OpTy::getOperandSegmentSizesAttrName(op->getName()),
                     rewriter.getDenseI32ArrayAttr(sizes));
    }
    OperationState made(op.getLoc(), op->getName(), operands, TypeRange());
    made.addAttributes(attributes);
    for (Region &region : op->getRegions())
      made.addRegion()->takeBody(region);
    retype(rewriter.create(made));
    replaceOpWithBufferizedValues(rewriter, op, *places);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

struct ProgramModel : ReaderModel<ProgramModel, ProgramOp> {
  AliasingOpOperandList getAliasingOpOperands(Operation *, Value,
                                              const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &,
                          const BufferizationOptions &options,
                          BufferizationState &) const {
    if (options.allowUnknownOps)
      return success();
    return op->emitOpError(
        "is not bufferized: its tensors become buffers when it "
        "is lowered to level 2; leave it as it is with "
        "'allow-unknown-ops'");
  }
};

//===----------------------------------------------------------------------===//
// Calls of programs
//===----------------------------------------------------------------------===//

struct PlanModel : ReaderModel<PlanModel, PlanOp> {};

struct RunModel : DstBufferizableOpInterfaceExternalModel<RunModel, RunOp> {
  /// Results are written whole.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const AnalysisState &) const {
    return cast<RunOp>(op).isDpsInput(&operand);
  }
  LogicalResult bufferize(Operation *operation, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto op = cast<RunOp>(operation);
    FailureOr<SmallVector<Value>> values =
        getBuffers(rewriter, op.getValues(), options, state);
    FailureOr<SmallVector<Value>> outs =
        getBuffers(rewriter, op.getOuts(), options, state);
    if (failed(values) || failed(outs))
      return failure();
    auto made =
        RunOp::create(rewriter, op.getLoc(), TypeRange(), op.getProgramAttr(),
                      *values, op.getPlan(), *outs);
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    if (op.getNumResults() == 0)
      rewriter.eraseOp(op);
    else
      replaceOpWithBufferizedValues(rewriter, op, *outs);
    return success();
  }
};

} // namespace

void fi::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, FIDialect *) {
    context->loadDialect<bufferization::BufferizationDialect,
                         memref::MemRefDialect>();
    AppendOp::attachInterface<AppendModel>(*context);
    AttentionOp::attachInterface<AttentionModel>(*context);
    BsrViewOp::attachInterface<ViewModel<BsrViewOp>>(*context);
    FinalizeOp::attachInterface<FinalizeModel>(*context);
    DequantiseOp::attachInterface<RowsModel<DequantiseOp>>(*context);
    GatedOp::attachInterface<RowsModel<GatedOp>>(*context);
    LayerNormOp::attachInterface<RowsModel<LayerNormOp>>(*context);
    PackBitsOp::attachInterface<RowsModel<PackBitsOp>>(*context);
    SegmentPackBitsOp::attachInterface<RowsModel<SegmentPackBitsOp>>(*context);
    QuantiseOp::attachInterface<RowsModel<QuantiseOp>>(*context);
    RMSNormOp::attachInterface<RowsModel<RMSNormOp>>(*context);
    RopeOp::attachInterface<RowsModel<RopeOp>>(*context);
    LatentViewOp::attachInterface<ViewModel<LatentViewOp>>(*context);
    fi::LoadOp::attachInterface<LoadModel>(*context);
    PagedViewOp::attachInterface<ViewModel<PagedViewOp>>(*context);
    PlanOp::attachInterface<PlanModel>(*context);
    ProgramOp::attachInterface<ProgramModel>(*context);
    RaggedViewOp::attachInterface<ViewModel<RaggedViewOp>>(*context);
    RunOp::attachInterface<RunModel>(*context);
    SegmentsOp::attachInterface<SegmentsModel>(*context);
  });
}

void fi::leavePrograms(BufferizationOptions &options) {
  options.opFilter.denyOperation(
      [](Operation *op) { return isa<ProgramOp>(op) || isInProgram(op); });
}
