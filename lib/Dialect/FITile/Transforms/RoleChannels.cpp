//===- RoleChannels.cpp - channels between roles --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each buffer has an mbarrier that says it is full and one that says it is
// empty. Both ends of a channel count buffers on their own: the number of the
// next one in the ring, and the parity of the phase that its mbarrier is in,
// which changes from round to round. Rings go on from item to item.
//
//===----------------------------------------------------------------------===//

#include "AsyncReplay.h"
#include "ChannelRewriting.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

class RoleRewriter {
public:
  explicit RoleRewriter(RoleOp role) : role(role) {
    OpBuilder b = OpBuilder::atBlockBegin(&role.getBody().front());
    Value zero = constant(b, role.getLoc(), 0),
          one = constant(b, role.getLoc(), 1);
    role.walk([&](Operation *op) {
      // Nobody fills a fresh buffer: who waits for it to be empty goes on.
      if (auto acquire = dyn_cast<AcquireOp>(op))
        filled.try_emplace(acquire.getChannel(), End{zero, one, {}});
      if (auto get = dyn_cast<GetOp>(op))
        read.try_emplace(get.getChannel(), End{zero, zero, {}});
    });
  }

  void run() { rewrite(role.getBody().front()); }

private:
  /// Of the next buffer to wait for; and the numbers of those that are held,
  /// the oldest first.
  struct End {
    Value number, phase;
    SmallVector<Value, 2> held;
  };

  /// Numbers are of 32 bits, which registers of warps have.
  static Value constant(OpBuilder &b, Location loc, int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  }

  static int64_t depthOf(Value channel) {
    return cast<ChanType>(channel.getType()).getDepth();
  }

  /// Waits for the next buffer of an end and moves on.
  Value take(OpBuilder &b, Location loc, Value channel, Arrival arrival,
             End &end) {
    AwaitOp::create(b, loc, arrival, channel, end.number, end.phase);
    Value slot = SlotOp::create(
        b, loc, channel,
        arith::IndexCastOp::create(b, loc, b.getIndexType(), end.number));
    end.held.push_back(end.number);
    Value one = constant(b, loc, 1);
    Value other = arith::XOrIOp::create(b, loc, end.phase, one);
    int64_t depth = depthOf(channel);
    if (depth == 1) {
      end.phase = other;
      return slot;
    }
    Value next = arith::AddIOp::create(b, loc, end.number, one);
    Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next,
                                        constant(b, loc, depth));
    end.phase = arith::SelectOp::create(b, loc, wraps, other, end.phase);
    end.number =
        arith::SelectOp::create(b, loc, wraps, constant(b, loc, 0), next);
    return slot;
  }

  /// Gives the oldest buffer of an end back; it was taken in the same block.
  void give(OpBuilder &b, Location loc, Value channel, Arrival arrival,
            End &end) {
    ArriveOp::create(b, loc, arrival, channel, end.held.front());
    end.held.erase(end.held.begin());
  }

  void rewrite(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      rewrite(&op);
  }

  void rewrite(Operation *op) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    if (auto acquire = dyn_cast<AcquireOp>(op)) {
      Value channel = acquire.getChannel();
      acquire.replaceAllUsesWith(
          take(b, loc, channel, Arrival::Empty, filled[channel]));
    } else if (auto commit = dyn_cast<CommitOp>(op)) {
      Value channel = commit.getChannel();
      give(b, loc, channel, Arrival::Full, filled[channel]);
    } else if (auto get = dyn_cast<GetOp>(op)) {
      Value channel = get.getChannel();
      get.replaceAllUsesWith(
          take(b, loc, channel, Arrival::Full, read[channel]));
    } else if (auto release = dyn_cast<ReleaseOp>(op)) {
      Value channel = release.getChannel();
      give(b, loc, channel, Arrival::Empty, read[channel]);
    } else if (containsChannelOps(op)) {
      return rewriteLoop(op);
    } else {
      return;
    }
    op->erase();
  }

  void rewriteLoop(Operation *op) {
    llvm::SetVector<Value *> carried;
    auto add = [&](Value channel, End &end) {
      carried.insert(&end.phase);
      if (depthOf(channel) > 1)
        carried.insert(&end.number);
    };
    op->walk([&](Operation *inner) {
      if (auto acquire = dyn_cast<AcquireOp>(inner))
        add(acquire.getChannel(), filled[acquire.getChannel()]);
      if (auto get = dyn_cast<GetOp>(inner))
        add(get.getChannel(), read[get.getChannel()]);
    });
    rebuildLoop(op, carried.getArrayRef(), [&](Block &body) { rewrite(body); });
  }

  RoleOp role;
  llvm::MapVector<Value, End> filled, read;
};

} // namespace

void fi::tile::lowerRoleChannels(KernelOp kernel) {
  for (auto role : kernel.getBody().getOps<RoleOp>())
    RoleRewriter(role).run();
}
