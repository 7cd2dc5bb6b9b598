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

/// Buffers whose copies are under way while the next ones are started.
static constexpr int64_t kUntold = 2;

/// Arrivals that end a phase of the mbarriers of a channel: of every warp that
/// copies, or that reads.
static int64_t countArrivals(ChannelOp channel, Arrival arrival) {
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
  warps = op.getWarps();
  setThread(arith::SubIOp::create(b, loc, tid, i32(first)));
  matrixOffsets.clear();
  warpgroupRows = {};
  entry.setInsertionPoint(
      UnrealizedConversionCastOp::create(b, loc, TypeRange(), ValueRange()));
  untold.clear();
  byThreads.clear();
  uniformWarp = uniform(warp32);
  bool copies = op.walk([](ArriveOp arrive) {
                    return arrive.getArrival() == Arrival::Full
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  }).wasInterrupted();
  if (copies) {
    OpBuilder::InsertionGuard outside(b);
    b.setInsertionPointToStart(&function.getBody().front());
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    Value one = LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
    for (int64_t i = 0; i < kUntold; ++i) {
      untold.push_back(
          LLVM::AllocaOp::create(b, loc, pointer, b.getI32Type(), one));
      LLVM::StoreOp::create(b, loc, i32(0), untold.back());
    }
  }
  LogicalResult result = lowerBlock(op.getBody().front());
  if (copies)
    tellCopies(untold, /*later=*/0);
  untold.clear();
  role = {};
  return result;
}

Value NVVMLowering::uniform(Value value) {
  Value all = arith::ConstantIntOp::create(b, loc, -1, 32);
  constexpr int64_t kClamp = 31;
  return NVVM::ShflOp::create(b, loc, b.getI32Type(), all, value, i32(0),
                              i32(kClamp), NVVM::ShflKind::idx, UnitAttr());
}

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

/// What threads write, tensor cores read past them: each thread waits for its
/// own copies and fences them, so that those who read need no fence.
void NVVMLowering::tellCopies(ArrayRef<Value> places, int64_t later) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, later);
  NVVM::FenceProxyOp::create(
      b, loc,
      NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  for (Value place : llvm::reverse(places)) {
    Value at = LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
    Value isOne =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, at, i32(0));
    auto branch = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    arriveOnce(LLVM::IntToPtrOp::create(b, loc, sharedPointer, at));
    LLVM::StoreOp::create(b, loc, i32(0), place);
  }
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
  FailureOr<Value> at =
      barrierOf(op, op.getChannel(), op.getNumber(), op.getArrival());
  if (failed(at))
    return failure();
  Value phase = scalar(op.getPhase());
  // Before a thread waits, it tells what it has copied: who waits for that may
  // be the one that it waits for.
  if (!untold.empty()) {
    Value isOver =
        LLVM::InlineAsmOp::create(
            b, loc, b.getI32Type(), ValueRange{*at, phase},
            "{\n.reg .pred p;\n"
            "mbarrier.test_wait.parity.shared.b64 p, [$1], $2;\n"
            "selp.b32 $0, 1, 0, p;\n}",
            "=r,r,r,~{memory}", /*has_side_effects=*/true,
            /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
            LLVM::AsmDialectAttr(), ArrayAttr())
            .getRes();
    Value waits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, isOver, i32(0));
    Value any = i32(0);
    for (Value place : untold)
      any = arith::OrIOp::create(
          b, loc, any, LLVM::LoadOp::create(b, loc, b.getI32Type(), place));
    waits = arith::AndIOp::create(
        b, loc, waits,
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, any, i32(0)));
    auto branch = scf::IfOp::create(b, loc, waits, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    tellCopies(untold, /*later=*/0);
  }
  // Nanoseconds that hardware may keep a thread before it asks again.
  constexpr int64_t kTicks = 0x989680;
  NVVM::MBarrierTryWaitParityOp::create(b, loc, *at, phase, i32(kTicks));
  return success();
}

LogicalResult NVVMLowering::lowerArrive(ArriveOp op) {
  FailureOr<Value> at =
      barrierOf(op, op.getChannel(), op.getNumber(), op.getArrival());
  if (failed(at))
    return failure();
  if (op.getArrival() == Arrival::Full) {
    NVVM::CpAsyncCommitGroupOp::create(b, loc);
    Value oldest = LLVM::LoadOp::create(b, loc, b.getI32Type(), untold.back());
    Value isOne =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, oldest, i32(0));
    auto branch = scf::IfOp::create(b, loc, isOne, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      tellCopies(untold.back(), kUntold);
    }
    for (size_t i = untold.size() - 1; i > 0; --i)
      LLVM::StoreOp::create(
          b, loc, LLVM::LoadOp::create(b, loc, b.getI32Type(), untold[i - 1]),
          untold[i]);
    Value place = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), *at);
    // Tensor copies have arrived when they began.
    if (Value threads = byThreads.lookup(op.getChannel())) {
      byThreads.erase(op.getChannel());
      place = arith::SelectOp::create(b, loc, threads, place, i32(0));
    }
    LLVM::StoreOp::create(b, loc, place, untold.front());
    return success();
  }
  arriveOnce(*at);
  return success();
}
