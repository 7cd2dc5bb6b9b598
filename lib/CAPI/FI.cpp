//===- FI.cpp - C interface to the dialects of fi -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi-c/FI.h"
#include "LastError.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/InitAll.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/SMTable.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/CAPI/Support.h"
#include <mutex>

using namespace fi;

MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(FI, fi, ::fi::FIDialect)
MLIR_DEFINE_CAPI_DIALECT_REGISTRATION(FITile, fi_tile,
                                      ::fi::tile::FITileDialect)

void fiRegisterAllDialects(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
  cpu::registerCompiler(*unwrap(registry));
  gpu::registerCompiler(*unwrap(registry));
}

void fiRegisterAllPasses() {
  // Pipelines cannot be registered twice.
  static std::once_flag once;
  std::call_once(once, registerAllPasses);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

MlirStringRef fiGetTargetAttrName() { return wrap(kTargetAttr); }

MlirAttribute fiTargetAttrGetHost(MlirContext context) {
  return wrap(cpu::getHostTarget(unwrap(context)));
}

MlirAttribute fiTargetAttrGetChip(MlirContext context, MlirStringRef name) {
  unwrap(context)->loadDialect<FIDialect>();
  auto chip = sm::find(unwrap(name));
  if (chip)
    return wrap(TargetAttr::get(unwrap(context), **chip));
  capi::setLastError(chip.takeError());
  return MlirAttribute{nullptr};
}

bool fiAttributeIsATarget(MlirAttribute attribute) {
  return llvm::isa_and_present<TargetAttr>(unwrap(attribute));
}

static TargetAttr getTarget(MlirAttribute attribute) {
  return llvm::cast<TargetAttr>(unwrap(attribute));
}

bool fiTargetAttrIsCPU(MlirAttribute target) {
  return getTarget(target).isCPU();
}

MlirStringRef fiTargetAttrGetName(MlirAttribute target) {
  return wrap(getTarget(target).getKind().getValue());
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

static mlir::ArrayAttr getSchedules(MlirOperation attention) {
  auto op = llvm::dyn_cast<AttentionOp>(unwrap(attention));
  return op ? op.getSchedulesAttr() : mlir::ArrayAttr();
}

intptr_t fiAttentionGetNumSchedules(MlirOperation attention) {
  mlir::ArrayAttr schedules = getSchedules(attention);
  return schedules ? intptr_t(schedules.size()) : 0;
}

MlirAttribute fiAttentionGetSchedule(MlirOperation attention, intptr_t index) {
  mlir::ArrayAttr schedules = getSchedules(attention);
  if (!schedules || index < 0 || size_t(index) >= schedules.size())
    return MlirAttribute{nullptr};
  return wrap(schedules[size_t(index)]);
}

bool fiAttributeIsASchedule(MlirAttribute attribute) {
  return llvm::isa_and_present<ScheduleAttr>(unwrap(attribute));
}

static ScheduleAttr getSchedule(MlirAttribute attribute) {
  return llvm::cast<ScheduleAttr>(unwrap(attribute));
}

int64_t fiScheduleAttrGetMaxRows(MlirAttribute schedule) {
  return getSchedule(schedule).getMaxRows();
}
int64_t fiScheduleAttrGetTileRows(MlirAttribute schedule) {
  return getSchedule(schedule).getTileRows();
}
int64_t fiScheduleAttrGetTileKeys(MlirAttribute schedule) {
  return getSchedule(schedule).getTileKeys();
}
int64_t fiScheduleAttrGetWarps(MlirAttribute schedule) {
  return getSchedule(schedule).getWarps();
}
int64_t fiScheduleAttrGetKeyWarps(MlirAttribute schedule) {
  return getSchedule(schedule).getKeyWarps();
}
int64_t fiScheduleAttrGetLoadWarps(MlirAttribute schedule) {
  return getSchedule(schedule).getLoadWarps();
}
int64_t fiScheduleAttrGetStages(MlirAttribute schedule) {
  return getSchedule(schedule).getStages();
}
