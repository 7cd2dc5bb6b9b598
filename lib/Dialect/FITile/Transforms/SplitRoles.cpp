//===- SplitRoles.cpp - warps that copy, and warps that compute -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's program is taken apart by who does what: one role has the copies
// and what decides where they go, the other one everything else. Both go
// through the same items and the same tiles of keys, and meet in the channels
// alone. Nothing is moved: the role that copies runs ahead by as many buffers
// as a channel has.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/RegisterModel.h"
#include "fi/Target/SMTable.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILESPLITROLES
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// Warps whose registers are handed over together.
constexpr int64_t kWarpgroup = 4;

bool isCopy(Operation *op) {
  return isa<AcquireOp, CopyRowsOp, CopyKVOp, CommitOp>(op);
}

struct SplitRolesPass : fi::tile::impl::FITileSplitRolesBase<SplitRolesPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    int64_t loadWarps = kernel.getSchedule().getLoadWarps();
    // What has roles is split.
    if (!loadWarps || !kernel.getBody().getOps<RoleOp>().empty())
      return;
    SmallVector<ForItemsOp> loops;
    WalkResult result = kernel.walk([&](Operation *op) {
      if (auto write = dyn_cast<WriteOp>(op)) {
        write.emitOpError("expected operands of products that are copied as "
                          "they are, where warps load for others "
                          "('load_warps'), but this one is computed [SCH9]");
        return WalkResult::interrupt();
      }
      if (isCopy(op)) {
        auto items = op->getParentOfType<ForItemsOp>();
        if (!llvm::is_contained(loops, items))
          loops.push_back(items);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    // Kernels without copies have nothing to take apart.
    if (loops.empty())
      return;
    int64_t stages = kernel.getSchedule().getStages();
    for (auto channel : kernel.getBody().getOps<ChannelOp>())
      if (isRing(channel))
        channel.getResult().setType(ChanType::get(
            &getContext(), channel.getType().getBuffer(), stages));
    bufferAhead();
    for (ForItemsOp items : loops)
      split(items);
  }

private:
  /// What an item has once gets a second buffer where there is room for it, so
  /// that it is copied while the item before is worked at.
  void bufferAhead() {
    KernelOp kernel = getOperation();
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    if (!target || !target.getChip())
      return;
    // Beside buffers: mbarriers, and what warps tell one another.
    constexpr int64_t kOthers = 2048;
    int64_t left = target.getChip()->maxSharedPerCTA - kOthers;
    for (auto channel : kernel.getBody().getOps<ChannelOp>())
      left -= channel.getType().getBytes();
    for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
      ChanType type = channel.getType();
      if (isRing(channel) || type.getBytes() > left)
        continue;
      left -= type.getBytes();
      channel.getResult().setType(
          ChanType::get(&getContext(), type.getBuffer(), 2));
    }
  }

  /// Whether a channel is filled for each tile of keys.
  static bool isRing(ChannelOp channel) {
    return llvm::any_of(channel->getUsers(), [](Operation *user) {
      return isa<AcquireOp>(user) && user->getParentOfType<ForKeysOp>();
    });
  }

  void split(ForItemsOp items) {
    KernelOp kernel = getOperation();
    int64_t warps = kernel.getSchedule().getWarps();
    int64_t loadWarps = kernel.getSchedule().getLoadWarps();
    OpBuilder b(items);
    Location loc = items.getLoc();
    auto role = [&](StringRef name, int64_t count, bool loads) {
      auto op = RoleOp::create(b, loc, b.getStringAttr(name),
                               b.getI64IntegerAttr(count), registersOf(loads));
      op.getBody().emplaceBlock();
      return op;
    };
    RoleOp load = role("load", loadWarps, /*loads=*/true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&load.getBody().front());
      IRMapping map;
      cloneCopies(items, b, map);
    }
    RoleOp compute = role("compute", warps, /*loads=*/false);
    items->moveBefore(&compute.getBody().front(),
                      compute.getBody().front().end());
    SmallVector<Operation *> copies;
    items.walk([&](Operation *op) {
      if (isCopy(op))
        copies.push_back(op);
    });
    for (Operation *op : llvm::reverse(copies))
      op->erase();
  }

  /// Copies what `op` copies, and the loops around it. Loops over keys carry
  /// nothing that decides where a copy goes.
  void cloneCopies(Operation *op, OpBuilder &b, IRMapping &map) {
    bool hasCopies = op->walk([](Operation *inner) {
                         return isCopy(inner) ? WalkResult::interrupt()
                                              : WalkResult::advance();
                       }).wasInterrupted();
    if (!hasCopies)
      return;
    if (isCopy(op)) {
      for (Value operand : op->getOperands())
        cloneScalar(operand, b, map);
      b.clone(*op, map);
      return;
    }
    Operation *loop = nullptr;
    if (auto items = dyn_cast<ForItemsOp>(op))
      loop = ForItemsOp::create(b, op->getLoc(), items.getWork());
    else if (auto keys = dyn_cast<ForKeysOp>(op)) {
      cloneScalar(keys.getItem(), b, map);
      loop = ForKeysOp::create(
          b, op->getLoc(), map.lookupOrDefault(keys.getItem()), ValueRange(),
          keys.getPart(), keys.getStep(), keys.getSelection());
    }
    Block &from = op->getRegion(0).front(), &to = loop->getRegion(0).front();
    map.map(from.getArgument(0), to.getArgument(0));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&to);
    for (Operation &inner : from)
      cloneCopies(&inner, b, map);
    if (isa<ForKeysOp>(op))
      tile::YieldOp::create(b, op->getLoc());
  }

  /// What a copy's operand is computed from, within the item.
  void cloneScalar(Value value, OpBuilder &b, IRMapping &map) {
    Operation *definition = value.getDefiningOp();
    if (!definition || map.contains(value) ||
        !definition->getParentOfType<ForItemsOp>())
      return;
    for (Value operand : definition->getOperands())
      cloneScalar(operand, b, map);
    b.clone(*definition, map);
  }

  /// Of a lane: warps that copy have few, and the others what is left of those
  /// that the CTA is launched with, which are all that they can have.
  IntegerAttr registersOf(bool loads) {
    KernelOp kernel = getOperation();
    ScheduleAttr schedule = kernel.getSchedule();
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    const sm::Target *chip = target ? target.getChip() : nullptr;
    int64_t warps = schedule.getWarps(), loadWarps = schedule.getLoadWarps();
    if (!chip || !chip->has(sm::Feature::Setmaxnreg) ||
        warps % kWarpgroup != 0 || loadWarps % kWarpgroup != 0)
      return {};
    RoleRegisters registers = getRoleRegisters(*chip, warps, loadWarps);
    return Builder(&getContext())
        .getI64IntegerAttr(loads ? registers.copying : registers.computing);
  }
};

} // namespace
