//===- FICalls.h - programs called by functions -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.plan and fi.run, apart from FI.h: what compiles programs does not know
// them.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FICALLS_H
#define FI_DIALECT_FI_IR_FICALLS_H

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FICallOps.h.inc"

#endif // FI_DIALECT_FI_IR_FICALLS_H
