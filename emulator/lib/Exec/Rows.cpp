//===- Rows.cpp - All rows, with handlers of one instruction set ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {

void addAllRows(Table &table) {
  addIntegerRows(table);
  addLogicRows(table);
  addCompareRows(table);
  addFloatRows(table);
  addHalfRows(table);
  addConvertRows(table);
  addMemoryRows(table);
  addAtomicRows(table);
  addControlRows(table);
  addWarpRows(table);
  addMatrixRows(table);
  addBulkRows(table);
  addWgmmaRows(table);
}

} // namespace fi::emulator::FI_EMU_ISA
