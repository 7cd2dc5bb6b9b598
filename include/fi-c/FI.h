/*===- FI.h - C interface to the dialects of fi -------------------*- C -*-===*\
|*                                                                            *|
|* Part of fi, under the Apache License v2.0 with LLVM Exceptions.            *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* Registration, and attributes that say what is compiled for and how. In the *|
|* style of MLIR's own C interface, whose types it takes and gives.           *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef FI_C_FI_H
#define FI_C_FI_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Registration --------------------------------------------------------*/

MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(FI, fi);
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(FITile, fi_tile);

/// fi's dialects, the upstream ones that its levels use, and what compiling
/// them needs of all of these.
MLIR_CAPI_EXPORTED void fiRegisterAllDialects(MlirDialectRegistry registry);

/// fi's passes and pipelines and the upstream ones that they use, by name. May
/// be called more than once.
MLIR_CAPI_EXPORTED void fiRegisterAllPasses(void);

/*===-- Targets -------------------------------------------------------------*/

/// The name of the attribute of a module that says what it is compiled for.
MLIR_CAPI_EXPORTED MlirStringRef fiGetTargetAttrName(void);

/// What this machine's CPU is.
MLIR_CAPI_EXPORTED MlirAttribute fiTargetAttrGetHost(MlirContext context);
/// An NVIDIA chip by name, "sm_90a". Null if there is none of that name:
/// fiGetLastError says which there are.
MLIR_CAPI_EXPORTED MlirAttribute fiTargetAttrGetChip(MlirContext context,
                                                     MlirStringRef name);
MLIR_CAPI_EXPORTED bool fiAttributeIsATarget(MlirAttribute attribute);
/// Whether the target is a CPU; a GPU otherwise.
MLIR_CAPI_EXPORTED bool fiTargetAttrIsCPU(MlirAttribute target);
/// "cpu" or the chip's name.
MLIR_CAPI_EXPORTED MlirStringRef fiTargetAttrGetName(MlirAttribute target);

/*===-- Schedules -----------------------------------------------------------*/

/// The schedules of an fi.attention, one for each body of its kernel: those
/// that `fi-choose-schedule` has chosen, or that were set by hand. 0 before.
MLIR_CAPI_EXPORTED intptr_t fiAttentionGetNumSchedules(MlirOperation attention);
MLIR_CAPI_EXPORTED MlirAttribute fiAttentionGetSchedule(MlirOperation attention,
                                                        intptr_t index);

MLIR_CAPI_EXPORTED bool fiAttributeIsASchedule(MlirAttribute attribute);
/// Requests of up to so many packed rows take this body; 0: any number.
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetMaxRows(MlirAttribute schedule);
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetTileRows(MlirAttribute schedule);
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetTileKeys(MlirAttribute schedule);
/// Of a GPU; 0 for a CPU.
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetWarps(MlirAttribute schedule);
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetKeyWarps(MlirAttribute schedule);
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetLoadWarps(MlirAttribute schedule);
MLIR_CAPI_EXPORTED int64_t fiScheduleAttrGetStages(MlirAttribute schedule);

#ifdef __cplusplus
}
#endif

#endif /* FI_C_FI_H */
