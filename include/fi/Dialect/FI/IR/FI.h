//===- FI.h - the fi dialect ------------------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types, attributes and operations of level 1: what attention means.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FI_H
#define FI_DIALECT_FI_IR_FI_H

#include "fi/Dialect/FI/IR/FIInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>

namespace fi::sm {
struct Target;
} // namespace fi::sm

#include "fi/Dialect/FI/IR/FIDialect.h.inc"

#include "fi/Dialect/FI/IR/FIEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fi/Dialect/FI/IR/FIAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "fi/Dialect/FI/IR/FITypes.h.inc"

namespace fi {
class RopeOp; // FICompanions.h
} // namespace fi

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FIOps.h.inc"

namespace fi {

/// Module attribute that holds the `#fi.target` kernels are compiled for.
inline constexpr llvm::StringLiteral kTargetAttr = "fi.target";
/// Of modules: kernels for GPUs check page indices and tell what they are at
/// work on (docs/abi.md).
inline constexpr llvm::StringLiteral kCheckedAttr = "fi.checked";

/// The number of rows of a state, asked of the ops that made it (a dimension of
/// a query, say). Fails where the state comes from a block argument or another
/// dialect and its type does not say.
mlir::FailureOr<mlir::OpFoldResult>
getStateRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value state);

/// Largest head dim of queries, keys and values (KV2).
inline constexpr int64_t kMaxHeadDim = 512;

/// Most rows, and most columns, of a block of a block-sparse view (KV12).
inline constexpr int64_t kMaxBlock = 1 << 20;

/// Whether a type is one that schemes store numbers as.
inline bool isCode(mlir::Type type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type) ||
         type.isSignlessInteger(8);
}

/// The scheme of keys or values where it is scaled, else null.
inline ScaledType getScaledType(KVViewTypeInterface view, bool wantValues) {
  return llvm::dyn_cast<ScaledType>(wantValues ? view.getValueScheme()
                                               : view.getKeyScheme());
}

} // namespace fi

#endif // FI_DIALECT_FI_IR_FI_H
