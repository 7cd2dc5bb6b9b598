//===- FITileToVector.cpp - converts tile kernels to loops over vectors ---===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass, a kernel's control flow, and the tiles that loops carry.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "KernelLowering.h"
#include "fi/Conversion/Passes.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace fi {
#define GEN_PASS_DEF_FITILETOVECTOR
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;
using namespace fi::tile;

KernelLowering::KernelLowering(KernelOp kernel, TargetAttr target)
    : kernel(kernel), schedule(kernel.getSchedule()), b(kernel), entry(kernel),
      loc(kernel.getLoc()), W(target.getVectorBits() / 32),
      matrixTiles(target.getAmx()) {}

FailureOr<int64_t> KernelLowering::run() {
  if (schedule.getMr() == 0)
    return kernel.emitOpError("expected a schedule with 'mr' and 'nr' for a "
                              "CPU, but got ")
           << schedule << " [SCH2]";
  if (schedule.getTileRows() < 2)
    return kernel.emitOpError("expected 'tile_rows' of at least 2, but got ")
           << schedule.getTileRows() << " [SCH3]";
  if (schedule.getLanes() != 1 && schedule.getLanes() % W != 0)
    return kernel.emitOpError("expected 'lanes' of 1 or a multiple of ")
           << W << ", the vector length, but got " << schedule.getLanes()
           << " [SCH2]";
  findRowDomains();
  createFunction();
  Operation *end = func::ReturnOp::create(b, loc);
  b.setInsertionPoint(end);
  entry.setInsertionPoint(end);
  if (failed(lowerBlock(kernel.getBody().front())))
    return failure();
  return scratchBytes;
}

LogicalResult KernelLowering::lowerBlock(Block &block) {
  // Scalars first: a mask is then known before the products that it is about.
  llvm::DenseSet<Operation *> early;
  for (Operation &op : block) {
    bool onScalars =
        isa<ItemOp>(op) ||
        (isPure(&op) && op.getNumRegions() == 0 && !isa<ViewOp>(op) &&
         llvm::all_of(op.getOperands(),
                      [&](Value v) { return scalars.contains(v); }) &&
         llvm::all_of(op.getResults(),
                      [](Value v) { return kindOf(v) == Kind::Scalar; }));
    if (!onScalars)
      continue;
    if (failed(lowerOp(&op)))
      return failure();
    early.insert(&op);
  }
  for (Operation &op : block)
    if (!early.contains(&op) && failed(lowerOp(&op)))
      return failure();
  return success();
}

LogicalResult KernelLowering::lowerOp(Operation *op) {
  if (isLazy(op))
    return success();
  lowered.insert(op);
  loc = op->getLoc();
  if (auto view = dyn_cast<ViewOp>(op)) {
    View &lowered = views[view.getResult()];
    for (Value pool : view.getPools())
      lowered.pools.push_back(cast<BlockArgument>(pool).getArgNumber());
    for (Value table : view.getPages())
      lowered.pages.push_back(cast<BlockArgument>(table).getArgNumber());
    return success();
  }
  if (auto item = dyn_cast<ItemOp>(op)) {
    scalars.map(item.getResult(), itemField(item.getField()));
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    const Argument &argument =
        arguments[cast<BlockArgument>(dim.getSource()).getArgNumber()];
    scalars.map(dim.getResult(), argument.sizes[*dim.getConstantIndex()]);
    return success();
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    // All indices are scalars: lane 0 of a gather at one place.
    SmallVector<Value> indices = llvm::map_to_vector(
        gather.getIndices(), [&](Value v) { return scalar(v); });
    Value vector = gatherVector(gather, indices);
    scalars.map(gather.getResult(),
                vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{0})
                    .getResult());
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ForItemsOp op) { return lowerForItems(op); })
      .Case([&](ForKeysOp op) { return lowerForKeys(op); })
      .Case([&](scf::ForOp op) { return lowerFor(op); })
      .Case([&](scf::IfOp op) { return lowerIf(op); })
      .Case([&](LoadRowsOp op) { return lowerLoadRows(op); })
      .Case([&](StoreRowsOp op) { return lowerStoreRows(op); })
      .Case([&](LoadColumnsOp op) { return lowerLoadColumns(op); })
      .Case([&](LoadKVOp op) { return lowerLoadKV(op); })
      .Case([&](LoadScalesOp op) { return lowerLoadScales(op); })
      .Case([&](StoreScalesOp op) { return lowerStoreScales(op); })
      .Case([&](BlockMaxOp op) { return lowerBlockMax(op); })
      .Case([&](StoreKVOp op) { return lowerStoreKV(op); })
      .Case([&](LoadStateOp op) { return lowerLoadState(op); })
      .Case([&](StoreStateOp op) { return lowerStoreState(op); })
      .Case([&](ColumnsOp op) { return lowerColumns(op); })
      .Case([&](DotOp op) { return lowerDot(op); })
      .Case<FromRowOp, GroupOp, GroupsOp, ShareStateOp, LoadGroupStateOp,
            ArriveLastOp, StoreMergedStateOp>([](Operation *op) {
        return op->emitOpError(
            "is for groups of warps of a GPU: it has no lowering for a CPU");
      })
      // Threads of a CPU have no log of time stamps.
      .Case<MarkOp, LaunchNextOp, AwaitLaunchesOp, PrefetchKVOp, tile::YieldOp,
            tile::ReturnOp, scf::YieldOp>([](Operation *) { return success(); })
      .Default([&](Operation *op) -> LogicalResult {
        bool onScalars =
            llvm::all_of(op->getOperands(),
                         [](Value v) { return kindOf(v) == Kind::Scalar; }) &&
            llvm::all_of(op->getResults(),
                         [](Value v) { return kindOf(v) == Kind::Scalar; });
        if (!onScalars || op->getNumRegions() != 0)
          return op->emitOpError("has no lowering for the CPU");
        b.clone(*op, scalars);
        return success();
      });
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::lowerForItems(ForItemsOp op) {
  Block &block = function.getBody().front();
  auto bound = [&](unsigned argument) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                      block.getArgument(argument));
  };
  auto items = scf::ForOp::create(b, loc, bound(2), bound(3), index(1));
  // Buffers are made before the loop.
  entry.setInsertionPoint(items);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(items.getBody());
  Value bytes = mul(items.getInductionVar(), sizeof(fi_item));
  Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes);
  itemPointer =
      LLVM::GEPOp::create(b, loc, itemsPointer.getType(), b.getI8Type(),
                          itemsPointer, ArrayRef<LLVM::GEPArg>{offset});
  rowBound = roundUp(itemField(Field::RowCount), schedule.getMr());
  rowVectorBound = roundUp(rowBound, W);
  return lowerBlock(op.getBody().front());
}

/// Whether a tile is one value everywhere.
static bool isFillOf(Value tile) {
  return isa_and_nonnull<arith::ConstantOp, tensor::SplatOp>(
      tile.getDefiningOp());
}

/// A buffer of its own, filled with that value, with the rows of `like`.
Value KernelLowering::fill(Value tile, Value like) {
  Value buffer = allocate(tileType(tile));
  bool rows = kindOf(tile) == Kind::Rows;
  int64_t fixed = fixedRows(like);
  int64_t chunks = rows ? 1 : padded(tileType(tile).getDimSize(1)) / W;
  loop(index(0), rows ? rowVectorLimit(fixed) : rowLimit(fixed), rows ? W : 1,
       [&](Value row) {
         Iteration iteration(/*overRows=*/rows, row);
         for (int64_t chunk = 0; chunk < chunks; ++chunk) {
           SmallVector<Value> indices = {row};
           if (!rows)
             indices.push_back(index(chunk * W));
           storeVector(evaluateLeaf(iteration, tile, chunk), buffer, indices);
         }
       });
  return buffer;
}

LogicalResult KernelLowering::bindCarried(ValueRange inits,
                                          ValueRange arguments,
                                          ValueRange results) {
  SmallVector<Value> needed;
  for (Value init : inits) {
    if (kindOf(init) == Kind::Scalar)
      return mlir::emitError(loc, "expected loops to carry tiles, but got ")
             << init.getType();
    if (!isFillOf(init))
      needed.push_back(init);
  }
  if (failed(materialise(needed, nullptr)))
    return failure();
  for (auto [init, argument, result] : llvm::zip(inits, arguments, results)) {
    if (isFillOf(init)) {
      buffers[argument] = buffers[result] = fill(init, argument);
      continue;
    }
    Value buffer = buffers.lookup(init);
    // The loop may take over a buffer that nothing else reads.
    bool owned = init.hasOneUse() && !isa<BlockArgument>(init) &&
                 !init.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
    if (!owned) {
      Value copy = allocate(tileType(init));
      Type element = tileType(init).getElementType();
      int64_t fixed = fixedRows(init);
      if (kindOf(init) == Kind::Rows) {
        loop(index(0), rowVectorLimit(fixed), W, [&](Value row) {
          storeVector(loadVector(buffer, {row}, element), copy, {row});
        });
      } else {
        int64_t chunks = padded(tileType(init).getDimSize(1)) / W;
        loop(index(0), rowLimit(fixed), 1, [&](Value row) {
          for (int64_t chunk = 0; chunk < chunks; ++chunk)
            storeVector(loadVector(buffer, {row, index(chunk * W)}, element),
                        copy, {row, index(chunk * W)});
        });
      }
      buffer = copy;
    }
    buffers[argument] = buffer;
    buffers[result] = buffer;
  }
  return success();
}

LogicalResult KernelLowering::yieldCarried(Operation *terminator,
                                           ValueRange arguments) {
  if (failed(materialise(SmallVector<Value>(terminator->getOperands()),
                         terminator->getBlock())))
    return failure();
  for (auto [yielded, argument] :
       llvm::zip(terminator->getOperands(), arguments)) {
    Value from = buffers.lookup(yielded), to = buffers.lookup(argument);
    if (from == to)
      continue;
    if (llvm::is_contained(arguments, yielded))
      return terminator->emitOpError(
          "expected loops that do not exchange the tiles they carry");
    Type element = tileType(yielded).getElementType();
    int64_t fixed = fixedRows(yielded);
    if (kindOf(yielded) == Kind::Rows) {
      loop(index(0), rowVectorLimit(fixed), W, [&](Value row) {
        storeVector(loadVector(from, {row}, element), to, {row});
      });
    } else {
      int64_t chunks = padded(tileType(yielded).getDimSize(1)) / W;
      loop(index(0), rowLimit(fixed), 1, [&](Value row) {
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          storeVector(loadVector(from, {row, index(chunk * W)}, element), to,
                      {row, index(chunk * W)});
      });
    }
  }
  return success();
}

/// Computes, before a loop, the tiles from outside that its body reads. What is
/// cheap, or would be a matrix of positions, stays with its users.
LogicalResult KernelLowering::hoistInvariants(Region &body) {
  llvm::SetVector<Value> targets;
  std::function<void(Value)> add = [&](Value value) {
    if (kindOf(value) == Kind::Scalar || buffers.count(value) ||
        kvRows.count(value) || body.isAncestor(value.getParentRegion()))
      return;
    Operation *op = value.getDefiningOp();
    if (!op || !isLazy(op) ||
        isa<arith::ConstantOp, tensor::SplatOp, IotaOp>(op))
      return;
    if (isa<BroadcastOp>(op) ||
        (kindOf(value) == Kind::Matrix &&
         !isa<FloatType>(tileType(value).getElementType()))) {
      for (Value operand : op->getOperands())
        add(operand);
      return;
    }
    targets.insert(value);
  };
  body.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      add(operand);
  });
  return materialise(targets.getArrayRef(), nullptr);
}

/// Lowers a loop's body. What is computed in it is gone after it: it may not
/// run.
LogicalResult KernelLowering::lowerBody(Block &body, ValueRange carried) {
  llvm::DenseMap<Value, Value> saved = buffers;
  llvm::DenseSet<Operation *> savedLowered = lowered;
  if (failed(lowerBlock(body)) ||
      failed(yieldCarried(body.getTerminator(), carried)))
    return failure();
  buffers = std::move(saved);
  lowered = std::move(savedLowered);
  body.walk([&](Operation *op) { lowered.insert(op); });
  return success();
}

LogicalResult KernelLowering::lowerForKeys(ForKeysOp op) {
  if (failed(hoistInvariants(op.getBody())) ||
      failed(bindCarried(op.getInits(), op.getCarried(), op.getResults())))
    return failure();
  Value first = loadField(itemPointer, offsetof(fi_item, range_begin), 32);
  Value full = loadField(itemPointer, offsetof(fi_item, full_ranges), 32);
  Value partial = loadField(itemPointer, offsetof(fi_item, partial_ranges), 32);
  Value middle = add(first, full);
  Value lower = op.getPart() == Part::Partial ? middle : first;
  Value upper = op.getPart() == Part::Full ? middle : add(middle, partial);
  // Keys and values of a tile are found one tile ahead, to be prefetched.
  SmallVector<LoadKVOp> loads;
  for (auto load : op.getBody().getOps<LoadKVOp>())
    if (load.getKey() == op.getKey())
      loads.push_back(load);
  describeRows(loads, /*withNext=*/true);
  // Of tiles that are copied the body forgets the rows.
  SmallVector<KVRows> described = llvm::map_to_vector(
      loads, [&](LoadKVOp load) { return kvRows.lookup(load.getResult()); });
  LogicalResult result = success();
  loop(lower, upper, 1, [&](Value number) {
    Value bytes = mul(number, sizeof(fi_key_range));
    Value offset = arith::IndexCastOp::create(b, loc, b.getI64Type(), bytes);
    Value range =
        LLVM::GEPOp::create(b, loc, rangesPointer.getType(), b.getI8Type(),
                            rangesPointer, ArrayRef<LLVM::GEPArg>{offset});
    Value begin = loadField(range, offsetof(fi_key_range, begin), 64);
    Value end = loadField(range, offsetof(fi_key_range, end), 64);
    if (!loads.empty())
      locateRows(loads, begin, /*next=*/false);
    loop(begin, end, op.getStep(), [&](Value key) {
      scalars.map(op.getKey(), key);
      if (!loads.empty()) {
        locateRows(loads, add(key, op.getStep()), /*next=*/true);
        if (schedule.getStream())
          touchRows(loads);
      }
      result = lowerBody(op.getBody().front(), op.getCarried());
      for (auto [load, rows] : llvm::zip_equal(loads, described))
        kvRows[load.getResult()] = rows;
      advanceRows(loads);
    });
  });
  return result;
}

LogicalResult KernelLowering::lowerFor(Operation *operation) {
  auto op = cast<scf::ForOp>(operation);
  if (failed(hoistInvariants(op.getRegion())) ||
      failed(
          bindCarried(op.getInits(), op.getRegionIterArgs(), op.getResults())))
    return failure();
  auto counted =
      scf::ForOp::create(b, loc, scalar(op.getLowerBound()),
                         scalar(op.getUpperBound()), scalar(op.getStep()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(counted.getBody());
  scalars.map(op.getInductionVar(), counted.getInductionVar());
  return lowerBody(*op.getBody(), op.getRegionIterArgs());
}

LogicalResult KernelLowering::lowerIf(Operation *operation) {
  auto op = cast<scf::IfOp>(operation);
  if (op.getNumResults() != 0)
    return op.emitOpError("expected branches without results at this level");
  // What a branch computes stays in it.
  auto branch =
      scf::IfOp::create(b, loc, scalar(op.getCondition()),
                        /*withElseRegion=*/!op.getElseRegion().empty());
  for (unsigned number : {0u, 1u}) {
    Region &from = op->getRegion(number);
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&branch->getRegion(number).front());
    llvm::DenseMap<Value, Value> saved = buffers;
    llvm::DenseSet<Operation *> savedLowered = lowered;
    if (failed(lowerBlock(from.front())))
      return failure();
    buffers = std::move(saved);
    lowered = std::move(savedLowered);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct FITileToVectorPass : fi::impl::FITileToVectorBase<FITileToVectorPass> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(kTargetAttr);
    if (!target || target.getKind().getValue() != "cpu") {
      getOperation().emitError(
          "expected a module with fi.target = #fi.target<cpu, ...>");
      return signalPassFailure();
    }
    llvm::StringMap<Attribute> scratch;
    Builder b(&getContext());
    for (KernelOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
      FailureOr<int64_t> bytes = KernelLowering(kernel, target).run();
      if (failed(bytes))
        return signalPassFailure();
      scratch[kernel.getSymName()] = b.getI64IntegerAttr(*bytes);
      kernel.erase();
    }
    for (PackageOp package : getOperation().getOps<PackageOp>())
      package.setManifestAttr(cast<DictionaryAttr>(
          withBodyEntry(package.getManifestAttr(), "scratch", scratch)));
  }
};

} // namespace
