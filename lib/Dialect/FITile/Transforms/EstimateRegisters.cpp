//===- EstimateRegisters.cpp - registers of a lane, before there is code --===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The values that are alive at once, in registers of 32 bits. What can be
// computed again where it is used costs nothing of its own: constants, repeated
// rows and columns, tiles of indices and of truth values, of which code makes
// one element after the other; neither do elements that are made of others
// which are alive as well. An operation on elements takes the place of an
// operand that ends there.
//
// Tiles are what a kernel cannot do without. Beside them an operation has
// addresses and fragments under way, which code may have more or fewer of.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/RegisterModel.h"
#include "fi/Target/SMTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEESTIMATEREGISTERS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

using Live = llvm::SetVector<Value>;

class Estimator {
public:
  explicit Estimator(KernelOp kernel) : kernel(kernel) {}

  LogicalResult run() {
    WalkResult result = kernel.getBody().walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (auto tile = dyn_cast<RankedTensorType>(type);
            tile && failed(RegisterLayout::of(tile))) {
          op->emitOpError("expected tiles with layouts: run "
                          "fi-tile-assign-layouts first");
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    kernel.getBody().walk([&](LocateOp locate) {
      BufType buffer = locate.getType().getBuffer();
      int64_t known =
          cast<KVViewTypeInterface>(locate.getView().getType()).getPageSize();
      int64_t page = known > 0 ? known : 1;
      int64_t &entries = entryCounts[locate.getType()];
      entries = std::max(
          entries, countEntries(buffer.getRows(), page, getChunkTurns(buffer)));
    });
    walk(kernel.getBody().front(), Live());
    return success();
  }

  /// At the op where there are most.
  struct Peak {
    int64_t registers = 0;
    Live values;
  };
  /// Of tiles alone, and with what operations have beside them.
  Peak tiles, all;

  int64_t cost(Value value) {
    Type type = value.getType();
    if (auto future = dyn_cast<FutureType>(type))
      type = future.getTile();
    if (auto tile = dyn_cast<RankedTensorType>(type)) {
      Type element = tile.getElementType();
      if (element.isInteger(1)) // predicates
        return 0;
      int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
      int64_t registers = RegisterLayout::of(tile)->getRegisters();
      return llvm::divideCeil(registers * bits, 32);
    }
    if (isa<EntriesType>(type))
      return entryCounts.lookup(type);
    // The number of a range, the number after the last, a key and the end.
    if (isa<CursorType>(type))
      return 4 * kAddressRegisters;
    if (isa<BufType>(type) || type.isF32() || type.isInteger(32))
      return 1;
    if (isa<ItemType>(type) || type.isIndex() || type.isInteger(64))
      return kAddressRegisters;
    return 0; // of the launch, which are constants, and predicates
  }

private:
  /// Turns in which the threads of a group copy the chunks of a buffer.
  int64_t getChunkTurns(BufType type) {
    int64_t chunks = type.getBytes() / kChunkBytes;
    return llvm::divideCeil(
        chunks, kLanes * std::max<int64_t>(1, kernel.getSchedule().getWarps()));
  }

  static bool isMatrix(Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && tile.getDimSize(0) > 1 && tile.getDimSize(1) > 1;
  }

  /// What code computes again, element by element, where it is used.
  static bool isRecomputed(Operation *op) {
    if (op->hasTrait<OpTrait::ConstantLike>() ||
        isa<BroadcastOp, IotaOp, tensor::SplatOp, GroupOp, GroupsOp>(op))
      return true;
    return isPure(op) && op->getNumResults() == 1 &&
           isMatrix(op->getResult(0).getType()) &&
           !isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  }

  static bool isElementwise(Operation *op) {
    return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
           isa<MaskOp>(op);
  }

  /// What of a state is loaded is used as it comes, and so is what is made of
  /// its elements alone.
  static bool isStreamed(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !isMatrix(value.getType()))
      return false;
    if (isa<LoadStateOp, LoadGroupStateOp>(op))
      return true;
    return isElementwise(op) && llvm::any_of(op->getOperands(), isStreamed) &&
           llvm::all_of(op->getOperands(), [](Value operand) {
             Operation *source = operand.getDefiningOp();
             return isStreamed(operand) || (source && isRecomputed(source));
           });
  }

  void need(Live &live, Value value) {
    Operation *definition = value.getDefiningOp();
    if (!definition || !isRecomputed(definition)) {
      live.insert(value);
      return;
    }
    for (Value operand : definition->getOperands())
      need(live, operand);
  }

  /// Addresses and fragments that an op has under way.
  int64_t getBeside(Operation *op) {
    if (auto dot = dyn_cast<DotOp>(op)) {
      if (dot.getWarpgroup())
        return 0; // descriptors
      int64_t registers = 0;
      for (Value operand : {dot.getA(), dot.getB()})
        if (auto buffer = dyn_cast<BufType>(operand.getType()))
          registers += getMatrixRegisters(buffer, operand == dot.getA());
      return registers;
    }
    if (isa<CopyKVOp, CopyRowsOp>(op))
      return kCopyRegisters;
    return 0;
  }

  /// Pointers to matrices in a buffer, one for each place of a chunk in its
  /// group of 8, and fragments that are read ahead.
  int64_t getMatrixRegisters(BufType type, bool isFirst) {
    int64_t pointers = 1;
    if (type.getLayout().getSwizzle())
      pointers =
          std::min<int64_t>(8, type.getLayout().getPitch() / kChunkBytes);
    int64_t warps = std::max<int64_t>(1, kernel.getSchedule().getWarps());
    int64_t blocks = isFirst ? type.getRows() / 16 / warps : 1;
    return pointers + kFragmentRegisters * std::max<int64_t>(1, blocks);
  }

  /// Elements that code can make, when they are used, of others that are alive.
  bool isDerived(Value value, const Live &live) {
    Operation *op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || !isElementwise(op))
      return false;
    Live sources;
    for (Value operand : op->getOperands())
      need(sources, operand);
    return llvm::all_of(sources,
                        [&](Value source) { return live.contains(source); });
  }

  void note(const Live &live, int64_t beside) {
    int64_t ofTiles = 0, ofAll = kBaseRegisters + beside, ofStreams = 0;
    for (Value value : live) {
      if (isDerived(value, live))
        continue;
      int64_t registers = cost(value);
      if (isStreamed(value)) {
        ofStreams += registers;
        continue;
      }
      ofAll += registers;
      if (isa<RankedTensorType>(value.getType()))
        ofTiles += registers;
    }
    ofAll += std::min(ofStreams, kStreamRegisters);
    if (ofTiles > tiles.registers)
      tiles = {ofTiles, live};
    if (ofAll > all.registers)
      all = {ofAll, live};
  }

  /// From what is alive behind a block to what is before it.
  Live walk(Block &block, Live live) {
    for (Operation &op : llvm::reverse(block)) {
      if (isRecomputed(&op))
        continue;
      if (op.getNumRegions() > 0) {
        live = walkRegions(&op, std::move(live));
        continue;
      }
      // A product reads its operands to its end.
      bool isProduct = isa<DotOp>(op);
      Live during = live;
      for (Value result : op.getResults())
        live.remove(result);
      for (Value operand : op.getOperands()) {
        need(live, operand);
        bool isAccumulator = isProduct && operand == cast<DotOp>(op).getAcc();
        if (isProduct && !isAccumulator)
          need(during, operand);
      }
      int64_t beside = getBeside(&op);
      note(during, beside);
      note(live, beside);
    }
    return live;
  }

  Live walkRegions(Operation *op, Live live) {
    for (Value result : op->getResults())
      live.remove(result);
    bool isLoop = !isa<scf::IfOp>(op);
    Live captured;
    op->walk([&](Operation *inner) {
      if (inner == op || isRecomputed(inner))
        return;
      Live used;
      for (Value operand : inner->getOperands())
        need(used, operand);
      for (Value value : used)
        if (!op->isAncestor(value.getParentRegion()->getParentOp()))
          captured.insert(value);
    });
    Live before = live;
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        Live end = live;
        // Every iteration begins with them.
        if (isLoop)
          end.insert_range(captured);
        Live begin = walk(block, std::move(end));
        for (BlockArgument argument : block.getArguments())
          begin.remove(argument);
        before.insert_range(begin);
      }
    for (Value operand : op->getOperands())
      need(before, operand);
    note(before, 0);
    return before;
  }

  KernelOp kernel;
  llvm::DenseMap<Type, int64_t> entryCounts;
};

struct EstimateRegistersPass
    : fi::tile::impl::FITileEstimateRegistersBase<EstimateRegistersPass> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Estimator estimator(kernel);
    if (failed(estimator.run()))
      return signalPassFailure();
    Builder b(&getContext());
    kernel->setAttr(kRegistersAttr,
                    b.getI64IntegerAttr(estimator.all.registers));
    ScheduleAttr schedule = kernel.getSchedule();
    int64_t threads = kLanes * std::max<int64_t>(1, schedule.getWarps()) *
                      std::max<int64_t>(1, schedule.getKeyWarps());
    int64_t most = limit;
    // The role with most of them is the one that needs them.
    for (auto role : kernel.getBody().getOps<RoleOp>())
      if (!limit && role.getRegisters())
        most = std::max<int64_t>(most, *role.getRegisters());
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    const sm::Target *chip = target ? target.getChip() : nullptr;
    if (!most && chip)
      most = getRegisterLimit(*chip, threads);
    if (most && estimator.tiles.registers > most)
      warn(kernel, estimator, most, threads, limit ? nullptr : chip);
    if (remarks) {
      InFlightDiagnostic diag = kernel.emitRemark();
      diag << "needs about " << estimator.all.registers
           << " registers of a lane";
      if (most)
        diag << " of " << most;
      diag << ", " << estimator.tiles.registers << " of them for tiles";
      listLargest(diag, estimator, estimator.all.values);
    }
    markAllAnalysesPreserved();
  }

private:
  void warn(KernelOp kernel, Estimator &estimator, int64_t most,
            int64_t threads, const sm::Target *chip) {
    int64_t registers = estimator.tiles.registers;
    InFlightDiagnostic diag = kernel.emitWarning();
    diag << "expected tiles that fit into " << most << " registers of a lane";
    if (chip) {
      if (most == chip->maxRegistersPerThread)
        diag << ", all that it can have on " << chip->name.str();
      else
        diag << ", its share of the " << chip->registersPerSM << " of "
             << chip->name.str() << " for " << threads << " threads";
    }
    diag << ", but " << registers << " are in use at once, " << registers - most
         << " too many: the rest will spill; take fewer rows or keys of a tile "
            "for a warp [SCH6]";
    listLargest(diag, estimator, estimator.tiles.values);
  }

  void listLargest(InFlightDiagnostic &diag, Estimator &estimator,
                   const Live &live) {
    // Of equal ones the first.
    SmallVector<std::pair<int64_t, int64_t>> largest;
    for (auto [number, value] : llvm::enumerate(live))
      if (isa<RankedTensorType>(value.getType()))
        largest.push_back({-estimator.cost(value), number});
    llvm::sort(largest);
    for (auto [cost, number] : ArrayRef(largest).take_front(3))
      diag.attachNote(live[number].getLoc())
          << -cost << " registers for " << live[number].getType();
  }
};

} // namespace
