//===- FITileToNVVM.cpp - converts placed tile kernels to NVVM ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass, a kernel's signature and its control flow.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "Alignment.h"
#include "NVVMLowering.h"
#include "fi/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace fi {
#define GEN_PASS_DEF_FITILETONVVM
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The one symbol of dynamic shared memory in a module.
static constexpr llvm::StringLiteral kSharedSymbol = "fi_shared";
/// Parts of a cursor: number of its range, the number after the last range, the
/// key, the end of the range.
enum CursorPart { kRange, kRangesEnd, kKey, kKeysEnd, kCursorParts };

/// Threads of a CTA.
static int64_t countThreads(KernelOp kernel) {
  int64_t ofRoles = 0;
  for (auto role : kernel.getBody().getOps<RoleOp>())
    ofRoles += kLanes * role.getWarps();
  ScheduleAttr schedule = kernel.getSchedule();
  return ofRoles ? ofRoles
                 : kLanes * schedule.getWarps() *
                       std::max<int64_t>(1, schedule.getKeyWarps());
}

NVVMLowering::NVVMLowering(KernelOp kernel)
    : kernel(kernel), schedule(kernel.getSchedule()), chip(getChipOf(kernel)),
      b(kernel), loc(kernel.getLoc()), warps(schedule.getWarps()),
      entry(kernel) {
  globalPointer = LLVM::LLVMPointerType::get(b.getContext(), 1);
  sharedPointer = LLVM::LLVMPointerType::get(b.getContext(), 3);
}

LogicalResult NVVMLowering::run(LLVM::GlobalOp shared) {
  if (failed(reserveMarks()))
    return failure();
  createFunction();
  if (shared)
    sharedBase = LLVM::PtrToIntOp::create(
        b, loc, b.getI32Type(), LLVM::AddressOfOp::create(b, loc, shared));
  Operation *end = LLVM::ReturnOp::create(b, loc, ValueRange());
  b.setInsertionPoint(end);
  // What depends on the thread alone is computed here.
  entry.setInsertionPoint(
      UnrealizedConversionCastOp::create(b, loc, TypeRange(), ValueRange()));
  kernel.walk([&](ArriveLastOp) { mergesItself = true; });
  kernel.walk([&](ReduceOp op) { sharesRows |= spansWarps(op); });
  kernel.walk([&](LocateOp op) {
    int64_t &count = entryCounts[op.getType()];
    count = std::max(count, countEntries(op));
  });
  beginMarks();
  prefetchPlan();
  if (failed(initBarriers()) || failed(lowerBlock(kernel.getBody().front())))
    return failure();
  endMarks();
  return success();
}

//===----------------------------------------------------------------------===//
// Signature
//===----------------------------------------------------------------------===//

void NVVMLowering::createFunction() {
  MLIRContext *context = b.getContext();
  Type i64 = b.getI64Type();
  SmallVector<Type> types;
  auto inputs = kernel.getBody().front().getArguments().drop_back();
  for (BlockArgument argument : inputs) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    types.push_back(type ? Type(globalPointer) : i64);
    if (type)
      types.append(2 * type.getRank(), i64);
  }
  // items, ranges, state_o, state_lse, counters, begin, end
  types.append(5, globalPointer);
  types.append(2, i64);
  bool checked = isChecked(kernel);
  if (checked)
    types.push_back(globalPointer); // the log of faults
  bool profiled = isProfiled(kernel);
  if (profiled)
    types.push_back(globalPointer); // the log of time stamps
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  function = LLVM::LLVMFuncOp::create(b, loc, kernel.getSymName(), type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  auto threads = static_cast<int32_t>(countThreads(kernel));
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({threads}));
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(getLeastCTAs(threads)));
  Block *block = function.addEntryBlock(b);
  b.setInsertionPointToStart(block);
  unsigned next = 0;
  auto parameter = [&] { return block->getArgument(next++); };
  for (BlockArgument argument : inputs) {
    Argument &lowered = arguments.emplace_back();
    auto memref = dyn_cast<MemRefType>(argument.getType());
    if (!memref) {
      Type scalarType = argument.getType();
      Value value = parameter();
      if (scalarType.isF32()) {
        Value bits = arith::TruncIOp::create(b, loc, b.getI32Type(), value);
        value = arith::BitcastOp::create(b, loc, scalarType, bits);
      } else if (scalarType.isIndex()) {
        value = toIndex(value);
      } else if (scalarType != i64) {
        value = arith::TruncIOp::create(b, loc, scalarType, value);
      }
      lowered.base = value;
      map.map(argument, value);
      continue;
    }
    lowered.base = parameter();
    lowered.element = memref.getElementType();
    for (int64_t dim = 0; dim < memref.getRank(); ++dim)
      lowered.sizes.push_back(toIndex(parameter()));
    for (int64_t dim = 0; dim < memref.getRank(); ++dim)
      lowered.strides.push_back(toIndex(parameter()));
    // What the type says of strides is known.
    lowered.strides.back() = index(1);
  }
  itemsPointer = parameter();
  rangesPointer = parameter();
  stateOutput.base = parameter();
  stateStatistic.base = parameter();
  stateOutput.element = stateStatistic.element = b.getF32Type();
  countersPointer = parameter();
  beginItem = toIndex(parameter());
  endItem = toIndex(parameter());
  if (checked)
    logPointer = parameter();
  if (profiled)
    marksPointer = parameter();
  setThread(NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()));
}

void NVVMLowering::setThread(Value number) {
  auto quotient = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(b, loc, value, i32(by));
  };
  auto rest = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(b, loc, value, i32(by));
  };
  bool hasGroups = getGroups() > 1;
  group32 = hasGroups ? quotient(number, getThreads()) : i32(0);
  thread32 = hasGroups ? rest(number, getThreads()) : number;
  lane32 = rest(thread32, kLanes);
  warp32 = quotient(thread32, kLanes);
  group = fromI32(group32);
  thread = fromI32(thread32);
  lane = fromI32(lane32);
  warp = fromI32(warp32);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult NVVMLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (failed(lowerOp(&op)))
      return failure();
  return success();
}

LogicalResult NVVMLowering::lowerOp(Operation *op) {
  loc = op->getLoc();
  LaterRowsScope rows(*this, op);
  // Masks stay what they are by rows as long as they can.
  if (auto comparison = dyn_cast<arith::CmpIOp>(op);
      comparison && lowerComparison(comparison))
    return success();
  if (auto conjunction = dyn_cast<arith::AndIOp>(op);
      conjunction && lowerConjunction(conjunction))
    return success();
  if (auto broadcast = dyn_cast<BroadcastOp>(op);
      broadcast && broadcastMasks(broadcast))
    return success();
  SmallVector<Value> made = makeElements(op);
  llvm::scope_exit forget([&] {
    for (Value value : made)
      map.erase(value);
  });
  if (auto view = dyn_cast<ViewOp>(op)) {
    View &lowered = views[view.getResult()];
    for (Value pool : view.getPools())
      lowered.pools.push_back(cast<BlockArgument>(pool).getArgNumber());
    for (Value table : view.getPages())
      lowered.pages.push_back(cast<BlockArgument>(table).getArgNumber());
    return success();
  }
  if (auto from = dyn_cast<FromRowOp>(op)) {
    lowerFromRow(from);
    return success();
  }
  if (auto item = dyn_cast<ItemOp>(op)) {
    map.map(item.getResult(), itemField(item.getField()));
    return success();
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    map.map(dim.getResult(),
            argumentOf(dim.getSource()).sizes[*dim.getConstantIndex()]);
    return success();
  }
  if (isa<ChannelOp>(op))
    return success();
  if (auto role = dyn_cast<RoleOp>(op))
    return lowerRole(role);
  if (auto slot = dyn_cast<SlotOp>(op)) {
    auto channel = slot.getChannel().getDefiningOp<ChannelOp>();
    if (!channel.getOffset())
      return channel.emitOpError("expected an offset: run fi-tile-allocate");
    ChanType type = channel.getType();
    auto times = [&](Value value, int64_t by) -> Value {
      return arith::MulIOp::create(b, loc, value, i32(by));
    };
    Value offset = add32(
        times(toI32(scalar(slot.getNumber())), type.getBuffer().getBytes()),
        *channel.getOffset());
    if (schedule.getKeyWarps() > 1)
      offset = arith::AddIOp::create(
          b, loc, offset, times(group32, llvm::alignTo(type.getBytes(), 1024)));
    map.map(slot.getBuffer(), offset);
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ForItemsOp op) { return lowerForItems(op); })
      .Case([&](ForKeysOp op) { return lowerForKeys(op); })
      .Case([&](scf::ForOp op) { return lowerFor(op); })
      .Case([&](scf::IfOp op) { return lowerIf(op); })
      .Case([&](CursorOp op) { return lowerCursor(op); })
      .Case([&](AdvanceOp op) { return lowerAdvance(op); })
      .Case([&](CursorKeyOp op) { return lowerCursorKey(op); })
      .Case([&](LoadRowsOp op) { return lowerLoadRows(op); })
      .Case([&](StoreRowsOp op) { return lowerStoreRows(op); })
      .Case([&](LoadKVOp op) { return lowerLoadKV(op); })
      .Case([&](LoadScalesOp op) { return lowerLoadScales(op); })
      .Case([&](StoreScalesOp op) { return lowerStoreScales(op); })
      .Case([&](BlockMaxOp op) { return lowerBlockMax(op); })
      .Case([&](StoreKVOp op) { return lowerStoreKV(op); })
      .Case([&](LoadStateOp op) { return lowerLoadState(op); })
      .Case([&](StoreStateOp op) { return lowerStoreState(op); })
      .Case([&](StoreMergedStateOp op) { return lowerStoreMergedState(op); })
      .Case([&](ShareStateOp op) { return lowerShareState(op); })
      .Case([&](LoadGroupStateOp op) { return lowerLoadGroupState(op); })
      .Case([&](ArriveLastOp op) { return lowerArriveLast(op); })
      .Case([&](GroupOp op) -> LogicalResult {
        map.map(op.getResult(), group);
        return success();
      })
      .Case([&](GroupsOp op) -> LogicalResult {
        map.map(op.getResult(), index(getGroups()));
        return success();
      })
      .Case([&](GatherOp op) { return lowerGather(op); })
      .Case([&](LoadColumnsOp op) { return lowerLoadColumns(op); })
      .Case([&](CopyRowsOp op) { return lowerCopyRows(op); })
      .Case([&](CopyKVOp op) { return lowerCopyKV(op); })
      .Case([&](LocateOp op) { return lowerLocate(op); })
      .Case([&](PrefetchKVOp op) { return lowerPrefetchKV(op); })
      .Case([&](ReadOp op) { return lowerRead(op); })
      .Case([&](WriteOp op) { return lowerWrite(op); })
      .Case([&](ColumnsOp op) { return lowerColumns(op); })
      .Case([&](DotOp op) {
        return op.getWarpgroup() ? lowerDotWarpgroup(op) : lowerDot(op);
      })
      .Case([&](DotStartOp op) { return lowerDotStart(op); })
      .Case([&](WaitOp op) { return lowerWait(op); })
      .Case([&](AwaitOp op) { return lowerAwait(op); })
      .Case([&](ArriveOp op) { return lowerArrive(op); })
      .Case([&](MarkOp op) { return lowerMark(op); })
      .Case([&](LaunchNextOp op) -> LogicalResult {
        instruct("griddepcontrol.launch_dependents;", "", {});
        return success();
      })
      .Case([&](AwaitLaunchesOp op) -> LogicalResult {
        // As text: LLVM's intrinsic lets loads pass.
        instruct("griddepcontrol.wait;", "~{memory}", {});
        return success();
      })
      .Case([&](NVVM::FenceProxyOp op) -> LogicalResult {
        b.clone(*op);
        return success();
      })
      .Case([&](IotaOp op) { return lowerIota(op); })
      .Case([&](BroadcastOp op) { return lowerBroadcast(op); })
      .Case([&](MaskOp op) { return lowerMask(op); })
      .Case([&](ReduceOp op) { return lowerReduce(op); })
      .Case([&](AnyOp op) { return lowerAny(op); })
      .Case([&](RelayoutOp op) { return lowerRelayout(op); })
      .Case<arith::ConstantOp>([&](Operation *op) { return lowerConstant(op); })
      .Case([&](tensor::SplatOp op) -> LogicalResult {
        map.map(op.getResult(),
                vector::BroadcastOp::create(b, loc, lowered(op.getType()),
                                            scalar(op.getInput()))
                    .getResult());
        return success();
      })
      .Case<NVVM::CpAsyncCommitGroupOp, NVVM::CpAsyncWaitGroupOp>(
          [&](Operation *op) {
            // Copies through registers have ended where they stand.
            if (has(sm::CpAsync))
              b.clone(*op, map);
            return success();
          })
      .Case<tile::YieldOp, tile::ReturnOp, scf::YieldOp>(
          [](Operation *) { return success(); })
      .Default([&](Operation *op) { return lowerElementwise(op); });
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

/// Values of a terminator's operands, in the lowered program.
static SmallVector<Value> yielded(Operation *terminator, IRMapping &map) {
  return llvm::map_to_vector(terminator->getOperands(), [&](Value value) {
    return map.lookupOrDefault(value);
  });
}

void NVVMLowering::barrier() {
  if (!role) {
    NVVM::Barrier0Op::create(b, loc);
    return;
  }
  // Number 0 is everybody's.
  NVVM::BarrierOp::create(b, loc, TypeRange(), i32(1 + roleNumber),
                          i32(getThreads()), NVVM::BarrierReductionAttr(),
                          Value());
}

LogicalResult NVVMLowering::lowerForItems(ForItemsOp op) {
  auto cta = [&](Value number) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), number);
  };
  Value first =
      add(beginItem, cta(NVVM::BlockIdXOp::create(b, loc, b.getI32Type())));
  Value step = cta(NVVM::GridDimXOp::create(b, loc, b.getI32Type()));
  SmallVector<Value> inits = llvm::map_to_vector(
      op.getInits(), [&](Value value) { return scalar(value); });
  auto items = scf::ForOp::create(b, loc, first, endItem, step, inits);
  OpBuilder::InsertionGuard guard(b);
  for (auto [carried, argument] :
       llvm::zip(op.getCarried(), items.getRegionIterArgs()))
    map.map(carried, argument);
  for (auto [from, to] : llvm::zip(op.getResults(), items.getResults()))
    map.map(from, to);
  b.setInsertionPointToStart(items.getBody());
  Value offset = toI64(mul(items.getInductionVar(), sizeof(fi_item)));
  itemPointer =
      LLVM::GEPOp::create(b, loc, globalPointer, b.getI8Type(), itemsPointer,
                          ArrayRef<LLVM::GEPArg>{offset});
  itemFields.clear();
  wordsOfItem.clear();
  if (auto rows = kernel->getAttrOfType<DenseI64ArrayAttr>(kRowItemsAttr))
    countRowItems(rows, items.getInductionVar());
  else
    loadItemAtOnce();
  // Surplus items of a graph-safe plan have no rows (docs/abi.md).
  Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                    itemField(Field::RowCount), index(0));
  auto work =
      scf::IfOp::create(b, loc, ValueRange(inits).getTypes(), any,
                        /*addThenBlock=*/true, /*addElseBlock=*/!inits.empty());
  if (inits.empty()) {
    b.setInsertionPointToStart(work.thenBlock());
    b.setInsertionPoint(scf::YieldOp::create(b, loc));
  } else {
    scf::YieldOp::create(b, loc, work.getResults());
    b.setInsertionPointToStart(work.elseBlock());
    scf::YieldOp::create(b, loc, items.getRegionIterArgs());
    b.setInsertionPointToStart(work.thenBlock());
  }
  itemNumber = items.getInductionVar();
  resetMarks();
  // One role says what runs: the last one, which does the work.
  bool logs =
      logPointer && (!role || !isa_and_nonnull<RoleOp>(role->getNextNode()));
  if (logs)
    logRunning(arith::AddIOp::create(b, loc, toI32(itemNumber), i32(1)));
  if (failed(lowerBlock(op.getBody().front())))
    return failure();
  if (logs) {
    barrier();
    logRunning(i32(0));
  }
  // What warps have of one another is read before the next item comes.
  if (getGroups() > 1 || sharesRows)
    barrier();
  if (!inits.empty())
    scf::YieldOp::create(b, loc,
                         yielded(op.getBody().front().getTerminator(), map));
  return success();
}

Value NVVMLowering::loadRange(Value number, bool end) {
  Value offset = toI64(mul(number, sizeof(fi_key_range)));
  Value range =
      LLVM::GEPOp::create(b, loc, globalPointer, b.getI8Type(), rangesPointer,
                          ArrayRef<LLVM::GEPArg>{offset});
  return loadField(
      range, end ? offsetof(fi_key_range, end) : offsetof(fi_key_range, begin),
      64);
}

LogicalResult NVVMLowering::lowerForKeys(ForKeysOp op) {
  Value first = itemWord(offsetof(fi_item, range_begin), 32);
  Value full = itemWord(offsetof(fi_item, full_ranges), 32);
  Value partial = itemWord(offsetof(fi_item, partial_ranges), 32);
  Value middle = add(first, full);
  Value lower = op.getPart() == Part::Partial ? middle : first;
  Value upper = op.getPart() == Part::Full ? middle : add(middle, partial);
  SmallVector<Value> inits = llvm::map_to_vector(
      op.getInits(), [&](Value value) { return scalar(value); });
  std::optional<Selection> selection = op.getSelection();
  // Where an item's results go is loaded beside its last product.
  if (role && selection == Selection::Last)
    for (Field field : {Field::QBegin, Field::Slot})
      itemFields[field] = itemField(field);
  // The one tile that comes first or last lies in the first or last range.
  bool isOne = selection && *selection != Selection::Rest;
  if (isOne && *selection == Selection::First)
    upper = minimum(upper, add(lower, 1));
  else if (isOne)
    lower = arith::MaxSIOp::create(b, loc, lower, add(upper, -1));
  auto ranges = scf::ForOp::create(b, loc, lower, upper, index(1), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ranges.getBody());
  Value begin = loadRange(ranges.getInductionVar(), false);
  Value end = loadRange(ranges.getInductionVar(), true);
  if (isOne) {
    if (*selection == Selection::Last)
      begin = add(begin, mul(divide(sub(add(end, -1), begin), op.getStep()),
                             op.getStep()));
    map.map(op.getKey(), begin);
    for (auto [carried, argument] :
         llvm::zip(op.getCarried(), ranges.getRegionIterArgs()))
      map.map(carried, argument);
    Block &body = op.getBody().front();
    if (failed(lowerBlock(body)))
      return failure();
    if (!inits.empty())
      scf::YieldOp::create(b, loc, yielded(body.getTerminator(), map));
    for (auto [from, to] : llvm::zip(op.getResults(), ranges.getResults()))
      map.map(from, to);
    return success();
  }
  if (selection) {
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          ranges.getInductionVar(), first);
    begin = arith::SelectOp::create(b, loc, isFirst, add(begin, op.getStep()),
                                    begin);
  }
  int64_t groups = std::max<int64_t>(1, schedule.getKeyWarps());
  int64_t step = op.getStep();
  if (groups > 1)
    begin = add(begin, mul(group, step));
  auto keys = scf::ForOp::create(b, loc, begin, end, index(step * groups),
                                 ranges.getRegionIterArgs());
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(keys.getBody());
    map.map(op.getKey(), keys.getInductionVar());
    for (auto [carried, argument] :
         llvm::zip(op.getCarried(), keys.getRegionIterArgs()))
      map.map(carried, argument);
    Block &body = op.getBody().front();
    if (failed(lowerBlock(body)))
      return failure();
    if (!inits.empty())
      scf::YieldOp::create(b, loc, yielded(body.getTerminator(), map));
  }
  if (!inits.empty())
    scf::YieldOp::create(b, loc, keys.getResults());
  for (auto [from, to] : llvm::zip(op.getResults(), ranges.getResults()))
    map.map(from, to);
  return success();
}

LogicalResult NVVMLowering::lowerFor(Operation *operation) {
  auto op = cast<scf::ForOp>(operation);
  SmallVector<Value> inits = llvm::map_to_vector(
      op.getInits(), [&](Value value) { return scalar(value); });
  auto loop = scf::ForOp::create(b, loc, scalar(op.getLowerBound()),
                                 scalar(op.getUpperBound()),
                                 scalar(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  map.map(op.getInductionVar(), loop.getInductionVar());
  for (auto [from, to] :
       llvm::zip(op.getRegionIterArgs(), loop.getRegionIterArgs()))
    map.map(from, to);
  if (failed(lowerBlock(*op.getBody())))
    return failure();
  if (!inits.empty())
    scf::YieldOp::create(b, loc, yielded(op.getBody()->getTerminator(), map));
  for (auto [from, to] : llvm::zip(op.getResults(), loop.getResults()))
    map.map(from, to);
  return success();
}

LogicalResult NVVMLowering::lowerIf(Operation *operation) {
  auto op = cast<scf::IfOp>(operation);
  SmallVector<Type> types = llvm::map_to_vector(
      op.getResultTypes(), [&](Type type) { return lowered(type); });
  auto branch = scf::IfOp::create(b, loc, types, scalar(op.getCondition()),
                                  /*addThenBlock=*/true,
                                  /*addElseBlock=*/!op.getElseRegion().empty());
  for (unsigned number : {0u, 1u}) {
    Region &from = op->getRegion(number);
    if (from.empty())
      continue;
    OpBuilder::InsertionGuard guard(b);
    Block &block = branch->getRegion(number).front();
    if (!block.empty())
      b.setInsertionPoint(block.getTerminator());
    else
      b.setInsertionPointToStart(&block);
    if (failed(lowerBlock(from.front())))
      return failure();
    if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
      scf::YieldOp::create(b, loc, yielded(from.front().getTerminator(), map));
  }
  for (auto [from, to] : llvm::zip(op.getResults(), branch.getResults()))
    map.map(from, to);
  return success();
}

//===----------------------------------------------------------------------===//
// Cursors
//===----------------------------------------------------------------------===//

Value NVVMLowering::cursorAt(Value number, Value last, Value step) {
  // Ranges that are shorter than the first tile of this group are passed over.
  int64_t groups = std::max<int64_t>(1, schedule.getKeyWarps());
  auto make = [&](Value at, Value key, Value end) {
    return fromElements({at, last, key, end});
  };
  if (groups == 1) {
    Value valid =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, last);
    auto read =
        scf::IfOp::create(b, loc, TypeRange{b.getIndexType(), b.getIndexType()},
                          valid, true, true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(read.thenBlock());
      scf::YieldOp::create(
          b, loc,
          ValueRange{loadRange(number, false), loadRange(number, true)});
      b.setInsertionPointToStart(read.elseBlock());
      scf::YieldOp::create(b, loc, ValueRange{index(0), index(0)});
    }
    return make(number, read.getResult(0), read.getResult(1));
  }
  SmallVector<Type> types(3, b.getIndexType());
  auto search = scf::WhileOp::create(b, loc, types,
                                     ValueRange{number, index(0), index(0)});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.createBlock(&search.getBefore(), {}, types,
                                  SmallVector<Location>(3, loc));
    Value at = before->getArgument(0);
    Value more =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, last);
    auto read = scf::IfOp::create(b, loc, TypeRange{types[0], types[0]}, more,
                                  true, true);
    {
      OpBuilder::InsertionGuard inner(b);
      b.setInsertionPointToStart(read.thenBlock());
      scf::YieldOp::create(
          b, loc,
          ValueRange{add(loadRange(at, false), mul(group, step)),
                     loadRange(at, true)});
      b.setInsertionPointToStart(read.elseBlock());
      scf::YieldOp::create(b, loc, ValueRange{index(0), index(0)});
    }
    Value beyond = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                         read.getResult(0), read.getResult(1));
    Value go = arith::AndIOp::create(b, loc, more, beyond);
    scf::ConditionOp::create(
        b, loc, go, ValueRange{at, read.getResult(0), read.getResult(1)});
    Block *after = b.createBlock(&search.getAfter(), {}, types,
                                 SmallVector<Location>(3, loc));
    scf::YieldOp::create(b, loc,
                         ValueRange{add(after->getArgument(0), 1),
                                    after->getArgument(1),
                                    after->getArgument(2)});
  }
  return make(search.getResult(0), search.getResult(1), search.getResult(2));
}

LogicalResult NVVMLowering::lowerCursor(CursorOp op) {
  Value first = itemWord(offsetof(fi_item, range_begin), 32);
  Value full = itemWord(offsetof(fi_item, full_ranges), 32);
  Value partial = itemWord(offsetof(fi_item, partial_ranges), 32);
  map.map(op.getResult(),
          cursorAt(first, add(add(first, full), partial), index(op.getStep())));
  return success();
}

LogicalResult NVVMLowering::lowerAdvance(AdvanceOp op) {
  Value cursor = scalar(op.getCursor());
  Value at = extract(cursor, kRange), last = extract(cursor, kRangesEnd);
  int64_t groups = std::max<int64_t>(1, schedule.getKeyWarps());
  Value key = add(extract(cursor, kKey), op.getStep() * groups);
  Value end = extract(cursor, kKeysEnd);
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, end);
  auto move = scf::IfOp::create(b, loc, TypeRange{cursor.getType()}, inside,
                                true, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(move.thenBlock());
  scf::YieldOp::create(b, loc, fromElements({at, last, key, end}));
  b.setInsertionPointToStart(move.elseBlock());
  // Past the last range the cursor stays.
  Value next = minimum(add(at, 1), last);
  scf::YieldOp::create(b, loc, cursorAt(next, last, index(op.getStep())));
  map.map(op.getResult(), move.getResult(0));
  return success();
}

LogicalResult NVVMLowering::lowerCursorKey(CursorKeyOp op) {
  Value cursor = scalar(op.getCursor());
  map.map(op.getKey(), extract(cursor, kKey));
  map.map(op.getValid(),
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                extract(cursor, kRange),
                                extract(cursor, kRangesEnd))
              .getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

bool fi::tile::isChecked(KernelOp kernel) {
  return kernel->getParentOfType<ModuleOp>()->hasAttr(kCheckedAttr);
}

static DictionaryAttr launchOf(KernelOp kernel, ArrayRef<Attribute> tensorMaps,
                               Attribute marks) {
  Builder b(kernel.getContext());
  auto shared = kernel->getAttrOfType<IntegerAttr>(kSharedAttr);
  // Where others copy for them, warps find what their next item needs.
  bool hasRoles = !kernel.getBody().getOps<RoleOp>().empty();
  SmallVector<NamedAttribute> entries = {
      b.getNamedAttr("empty_items", b.getBoolAttr(true)),
      b.getNamedAttr("grid",
                     b.getStringAttr(hasRoles ? "persistent" : "items")),
      b.getNamedAttr("shared",
                     b.getI64IntegerAttr(shared ? shared.getInt() : 0)),
      b.getNamedAttr("threads", b.getI64IntegerAttr(countThreads(kernel)))};
  if (isChecked(kernel))
    entries.push_back(b.getNamedAttr("faults", b.getBoolAttr(true)));
  bool waits =
      kernel.walk([](AwaitLaunchesOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  if (waits)
    entries.push_back(b.getNamedAttr("overlaps", b.getBoolAttr(true)));
  if (marks)
    entries.push_back(b.getNamedAttr("profile", marks));
  if (!tensorMaps.empty())
    entries.push_back(
        b.getNamedAttr("tensor_maps", b.getArrayAttr(tensorMaps)));
  return b.getDictionaryAttr(entries);
}

/// Drops the merges of stages all of whose bodies merge their tiles themselves,
/// and their kernels: they are for those who run the tile level as it stands.
static void dropMerges(ModuleOp module) {
  AttrTypeReplacer replacer;
  llvm::StringSet<> dropped;
  replacer.addReplacement(
      [&](DictionaryAttr stage) -> std::optional<Attribute> {
        auto bodies = dyn_cast_or_null<ArrayAttr>(stage.get("bodies"));
        auto merges = dyn_cast_or_null<ArrayAttr>(stage.get("merge"));
        auto mergesItself = [](Attribute body) {
          return cast<DictionaryAttr>(body).get("counters") != Attribute();
        };
        if (!bodies || !merges || !llvm::all_of(bodies, mergesItself))
          return std::nullopt;
        for (auto merge : merges.getAsRange<DictionaryAttr>())
          dropped.insert(cast<StringAttr>(merge.get("symbol")).getValue());
        NamedAttrList kept(stage);
        kept.erase("merge");
        return kept.getDictionary(module.getContext());
      });
  for (PackageOp package : module.getOps<PackageOp>())
    package.setManifestAttr(
        cast<DictionaryAttr>(replacer.replace(package.getManifestAttr())));
  for (KernelOp kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
    if (dropped.contains(kernel.getSymName()))
      kernel.erase();
}

namespace {

struct FITileToNVVMPass : fi::impl::FITileToNVVMBase<FITileToNVVMPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    dropMerges(module);
    LLVM::GlobalOp shared;
    bool needed = llvm::any_of(module.getOps<KernelOp>(), [](KernelOp kernel) {
      auto bytes = kernel->getAttrOfType<IntegerAttr>(kSharedAttr);
      return (bytes && bytes.getInt() > 0) || isProfiled(kernel) ||
             !kernel.getBody().getOps<ChannelOp>().empty();
    });
    if (needed) {
      OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
      auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
      shared = LLVM::GlobalOp::create(
          b, module.getLoc(), bytes, /*isConstant=*/false,
          LLVM::Linkage::External, kSharedSymbol, Attribute(),
          /*alignment=*/1024, /*addrSpace=*/3);
    }
    llvm::StringMap<Attribute> launches;
    llvm::StringMap<SmallVector<int64_t>> alignments;
    for (KernelOp kernel :
         llvm::make_early_inc_range(module.getOps<KernelOp>())) {
      if (kernel.getSchedule().getWarps() == 0) {
        kernel.emitOpError("expected a schedule with 'warps' [SCH4]");
        return signalPassFailure();
      }
      alignments[kernel.getSymName()] = getAlignments(kernel);
      NVVMLowering lowering(kernel);
      if (failed(lowering.run(shared)))
        return signalPassFailure();
      launches[kernel.getSymName()] =
          launchOf(kernel, lowering.getRecipes(), lowering.getMarks());
      kernel.erase();
    }
    for (PackageOp package : module.getOps<PackageOp>())
      package.setManifestAttr(
          withAlignments(cast<DictionaryAttr>(withBodyEntry(
                             package.getManifestAttr(), "launch", launches)),
                         alignments));
    // The marks of the places where values of the thread are computed.
    SmallVector<Operation *> marks;
    module.walk([&](UnrealizedConversionCastOp op) {
      if (op.getNumOperands() == 0 && op.getNumResults() == 0)
        marks.push_back(op);
    });
    for (Operation *mark : marks)
      mark->erase();
    // Rounded divisions have no LLVM operation.
    SmallVector<Operation *> divisions;
    module.walk([&](Operation *op) {
      if (isa<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op))
        divisions.push_back(op);
    });
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingOps);
    if (failed(applyOpPatternsGreedily(divisions, std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
