//===- Allocate.cpp - lays out shared memory ------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels one behind the other, in the order of the kernel. Groups of warps
// that take key tiles of their own have each a copy of every channel.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/SMTable.h"
#include "fi/Target/SharedModel.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEALLOCATE
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// An mbarrier.
constexpr int64_t kBarrierBytes = 8;

struct AllocatePass : fi::tile::impl::FITileAllocateBase<AllocatePass> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    Builder b(&getContext());
    int64_t offset = 0;
    int64_t groups = std::max<int64_t>(1, kernel.getSchedule().getKeyWarps());
    for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
      channel.setOffset(offset);
      int64_t bytes =
          llvm::alignTo(channel.getType().getBytes(), kSharedAlignment);
      offset += bytes * groups;
    }
    // One that says full and one that says empty for each buffer between roles.
    bool hasRoles = !kernel.getBody().getOps<RoleOp>().empty();
    if (hasRoles)
      for (auto channel : kernel.getBody().getOps<ChannelOp>()) {
        channel.setBarriers(offset);
        offset += 2 * kBarrierBytes * channel.getType().getDepth();
      }
    // States of groups take the place of the channels, which are empty by then.
    kernel.walk([&](ShareStateOp share) {
      share.setOffset(0);
      offset = std::max(
          offset, groups * getGroupStateBytes(share.getOutput().getType()));
    });
    kernel.walk([&](LoadGroupStateOp load) { load.setOffset(0); });
    kernel.walk([&](ArriveLastOp arrive) {
      arrive.setOffset(offset);
      offset += kSharedFlagBytes;
    });
    kernel.walk([&](ReduceOp reduce) {
      if (!spansWarps(reduce))
        return;
      offset = llvm::alignTo(offset, kChunkBytes);
      reduce->setAttr(kOffsetAttr, b.getI64IntegerAttr(offset));
      offset += getReductionBytes(reduce);
    });
    int64_t most = limit;
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    if (!most && target && target.getChip())
      most = target.getChip()->maxSharedPerCTA;
    if (most && offset > most) {
      InFlightDiagnostic diag =
          kernel.emitOpError("expected a schedule whose "
                             "buffers fit into ")
          << most << " bytes of shared memory, but they take " << offset << ", "
          << offset - most << " too many [SCH5]";
      for (auto channel : kernel.getBody().getOps<ChannelOp>())
        diag.attachNote(channel.getLoc())
            << channel.getType().getBytes() * groups << " bytes for "
            << channel.getType();
      return signalPassFailure();
    }
    kernel->setAttr(kSharedAttr, b.getI64IntegerAttr(offset));
  }
};

} // namespace
