//===- TensorCopies.cpp - copies by the hardware --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Marks the copies of a role that read what a tensor map can say. Whether one
// can is what the operations' own verifiers check: a copy is marked, and the
// mark taken back where they would refuse it.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/SMTable.h"
#include "mlir/IR/Diagnostics.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILETENSORCOPIES
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct TensorCopiesPass
    : fi::tile::impl::FITileTensorCopiesBase<TensorCopiesPass> {
  using Base = fi::tile::impl::FITileTensorCopiesBase<TensorCopiesPass>;
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (!kernel.getSchedule().getTma())
      return;
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    const sm::Target *chip = target ? target.getChip() : nullptr;
    if (chip && !chip->has(sm::Feature::Tma)) {
      kernel.emitOpError("expected a target with tensor copies for 'tma' in "
                         "the schedule, but ")
          << chip->name << " has none [SCH10]";
      return signalPassFailure();
    }
    for (auto role : kernel.getBody().getOps<RoleOp>())
      role.walk([&](Operation *op) {
        if (auto rows = dyn_cast<CopyRowsOp>(op))
          mark(rows);
        else if (auto keys = dyn_cast<CopyKVOp>(op))
          mark(keys);
      });
  }

private:
  template <typename OpTy> void mark(OpTy op) {
    op.setTma(true);
    std::string why;
    {
      ScopedDiagnosticHandler quiet(&getContext(), [&](Diagnostic &diagnostic) {
        if (why.empty())
          why = diagnostic.str();
        return success();
      });
      if (succeeded(op.verify()))
        return;
    }
    op.setTma(false);
    if (remarks)
      op.emitRemark("is left to threads: ") << why;
  }
};

} // namespace
