//===- Roles.cpp - warps with programs of their own -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A role is a branch that its warps take. What is computed from a thread's
// number is computed in it, so that roles do not keep one another's values.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Bytes of an mbarrier.
static constexpr int64_t kBarrierBytes = 8;

/// Arrivals that end a phase of the mbarriers of a channel: of the warp that
/// fills the buffer, or of every warp that reads.
static int64_t countArrivals(ChannelOp channel, Arrival arrival) {
  if (arrival == Arrival::Full)
    return 1;
  for (Operation *user : channel->getUsers()) {
    auto arrive = dyn_cast<ArriveOp>(user);
    if (!arrive || arrive.getArrival() != arrival)
      continue;
    return arrive->getParentOfType<RoleOp>().getWarps();
  }
  return 1;
}

LogicalResult NVVMLowering::initBarriers() {
  if (kernel.getBody().getOps<RoleOp>().empty())
    return success();
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread32, i32(0));
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
      if (!channel.getBarriers())
        return channel.emitOpError("expected an offset of its mbarriers: run "
                                   "fi-tile-allocate");
      int64_t depth = channel.getType().getDepth();
      for (Arrival arrival : {Arrival::Full, Arrival::Empty})
        for (int64_t slot = 0; slot < depth; ++slot) {
          int64_t number = slot + (arrival == Arrival::Empty ? depth : 0);
          Value at = sharedPointerAt(
              i32(*channel.getBarriers() + kBarrierBytes * number));
          NVVM::MBarrierInitOp::create(b, loc, at,
                                       i32(countArrivals(channel, arrival)),
                                       /*predicate=*/Value());
        }
    }
    NVVM::FenceMbarrierInitOp::create(b, loc);
  }
  NVVM::Barrier0Op::create(b, loc);
  return success();
}

/// A warp of a role that fills buffers does so alone: the role copies and does
/// nothing that its warps share.
static LogicalResult verifyCopying(RoleOp role) {
  WalkResult result = role.walk([&](Operation *op) {
    auto wait = dyn_cast<AwaitOp>(op);
    bool reads = wait && wait.getArrival() == Arrival::Full;
    if (!reads && !isa<WriteOp, DotOp, DotStartOp, LocateOp>(op))
      return WalkResult::advance();
    op->emitOpError("expected a role that fills channels to copy alone: its "
                    "warps fill buffers one by one");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult NVVMLowering::lowerRole(RoleOp op) {
  int64_t first = 0, number = 0;
  for (auto other : kernel.getBody().getOps<RoleOp>()) {
    if (other == op)
      break;
    first += other.getWarps() * kLanes;
    ++number;
  }
  Value tid = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  // All lanes of a warp branch alike, and the assembler is to know it.
  Value ofWarp = uniform(tid);
  Value mine = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, ofWarp,
                                     i32(first));
  Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, ofWarp,
                                      i32(first + op.getWarps() * kLanes));
  mine = arith::AndIOp::create(b, loc, mine, below);
  auto branch = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (std::optional<int64_t> registers = op.getRegisters()) {
    // What a lane has when the kernel begins, rounded down as hardware does.
    int64_t threads = 0;
    for (auto other : kernel.getBody().getOps<RoleOp>())
      threads += other.getWarps() * kLanes;
    bool grows = *registers > chip.registersPerSM / threads / 8 * 8;
    NVVM::SetMaxRegisterOp::create(b, loc, *registers,
                                   grows
                                       ? NVVM::SetMaxRegisterAction::increase
                                       : NVVM::SetMaxRegisterAction::decrease);
  }
  role = op;
  roleNumber = number;
  bool copies = op.walk([](ArriveOp arrive) {
                    return arrive.getArrival() == Arrival::Full
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  }).wasInterrupted();
  Value inRole = arith::SubIOp::create(b, loc, tid, i32(first));
  Value lanes = i32(kLanes);
  uniformWarp = uniform(arith::DivUIOp::create(b, loc, inRole, lanes));
  isCopying = copies;
  filling.clear();
  // A warp that copies fills a buffer alone.
  warps = copies ? 1 : op.getWarps();
  setThread(copies ? Value(arith::RemUIOp::create(b, loc, inRole, lanes))
                   : inRole);
  matrixOffsets.clear();
  warpgroupRows = {};
  entry.setInsertionPoint(
      UnrealizedConversionCastOp::create(b, loc, TypeRange(), ValueRange()));
  if (copies && failed(verifyCopying(op)))
    return failure();
  LogicalResult result = lowerBlock(op.getBody().front());
  if (succeeded(result) && !filling.empty())
    result = filling.begin()->second.front()->emitOpError(
        "expected the buffer to be said to be full in its role");
  isCopying = false;
  role = {};
  return result;
}

Value NVVMLowering::uniform(Value value) { return fromLane(value, i32(0)); }

FailureOr<Value> NVVMLowering::barrierOf(Operation *op, Value channel,
                                         Value number, Arrival arrival) {
  auto definition = channel.getDefiningOp<ChannelOp>();
  if (!definition.getBarriers() || !role)
    return op->emitOpError("expected a channel with mbarriers, in a role: run "
                           "fi-tile-split-roles and fi-tile-allocate");
  int64_t first = *definition.getBarriers();
  if (arrival == Arrival::Empty)
    first += kBarrierBytes * definition.getType().getDepth();
  Value offset =
      arith::MulIOp::create(b, loc, scalar(number), i32(kBarrierBytes));
  return sharedPointerAt(add32(offset, first));
}

void NVVMLowering::arriveOnce(Value barrier) {
  // What the other lanes have done, they have.
  NVVM::SyncWarpOp::create(b, loc,
                           arith::ConstantIntOp::create(b, loc, -1, 32));
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane32, i32(0));
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  NVVM::MBarrierArriveOp::create(b, loc, b.getI64Type(), barrier, Value());
}

LogicalResult NVVMLowering::lowerAwait(AwaitOp op) {
  if (op.getArrival() == Arrival::Empty) {
    auto [it, isFirst] = filling.try_emplace(op.getChannel());
    if (!isFirst)
      return op.emitOpError("expected the buffer of the channel that the role "
                            "waited for before to be said to be full first");
    it->second = std::exchange(heldMarks, {});
    it->second.push_back(op);
    return success();
  }
  return await(op);
}

LogicalResult NVVMLowering::await(AwaitOp op) {
  FailureOr<Value> at =
      barrierOf(op, op.getChannel(), op.getNumber(), op.getArrival());
  if (failed(at))
    return failure();
  Value phase = scalar(op.getPhase());
  // Nanoseconds that hardware may keep a thread before it asks again.
  constexpr int64_t kTicks = 0x989680;
  NVVM::MBarrierTryWaitParityOp::create(b, loc, *at, phase, i32(kTicks));
  return success();
}

bool NVVMLowering::isDeferred(Operation *copy, Value buffer) {
  auto slot = buffer.getDefiningOp<SlotOp>();
  if (!isCopying || !slot)
    return false;
  auto it = filling.find(slot.getChannel());
  if (it == filling.end())
    return false;
  it->second.push_back(copy);
  return true;
}

/// All that fills a buffer, by the warp that fills it each time: it knows the
/// phase that it waits for, since it has seen all others, where a parity alone
/// may be that of the phase two before. It tells what its lanes have copied
/// when that is there: others are under way in other warps, and a fence waits
/// for all of a thread's own. What threads write, tensor cores read past them:
/// those who write fence, so that those who read need not.
LogicalResult NVVMLowering::fill(ArriveOp op) {
  Value channel = op.getChannel();
  FailureOr<Value> at = barrierOf(op, channel, op.getNumber(), Arrival::Full);
  if (failed(at))
    return failure();
  SmallVector<Operation *> steps = std::move(filling[channel]);
  filling.erase(channel);
  if (steps.empty())
    return op->emitOpError("expected a wait for the buffer in its role before "
                           "it is said to be full: run fi-tile-lower-channels");
  int64_t count = role.getWarps();
  Value mine = arith::ConstantIntOp::create(b, loc, 1, 1);
  if (count > 1) {
    // Keys and values of a tile by different warps, where there are several.
    int64_t before = 0;
    for (auto other : kernel.getBody().getOps<ChannelOp>()) {
      if (other.getResult() == channel)
        break;
      ++before;
    }
    Value filler = arith::RemUIOp::create(
        b, loc, add32(scalar(op.getNumber()), before * count / 2), i32(count));
    mine = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, filler,
                                 uniformWarp);
  }
  auto branch = scf::IfOp::create(b, loc, mine, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (Operation *step : steps) {
    if (auto mark = dyn_cast<MarkOp>(step)) {
      writeMark(mark);
    } else if (auto wait = dyn_cast<AwaitOp>(step)) {
      if (failed(await(wait)))
        return failure();
      // One lane begins tensor copies: no other may be a phase behind it.
      NVVM::SyncWarpOp::create(b, loc,
                               arith::ConstantIntOp::create(b, loc, -1, 32));
    } else if (failed(lowerOp(step))) {
      return failure();
    }
  }
  // Tensor copies arrive when they begin.
  Value byThreads = filledByThreads.lookup(channel);
  filledByThreads.erase(channel);
  if (byThreads) {
    auto own = scf::IfOp::create(b, loc, byThreads, /*withElseRegion=*/false);
    b.setInsertionPointToStart(own.thenBlock());
  }
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
  NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
  NVVM::FenceProxyOp::create(
      b, loc,
      NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  arriveOnce(*at);
  return success();
}

LogicalResult NVVMLowering::lowerArrive(ArriveOp op) {
  if (op.getArrival() == Arrival::Full)
    return fill(op);
  FailureOr<Value> at =
      barrierOf(op, op.getChannel(), op.getNumber(), op.getArrival());
  if (failed(at))
    return failure();
  arriveOnce(*at);
  return success();
}
