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
/// Of modules: kernels for GPUs note when their phases begin, "phases", or also
/// each wait for a tile, "tiles" (docs/profiling.md).
inline constexpr llvm::StringLiteral kProfileAttr = "fi.profile";

/// The number of rows of a state, asked of the ops that made it (a dimension of
/// a query, say). Fails where the state comes from a block argument or another
/// dialect and its type does not say.
mlir::FailureOr<mlir::OpFoldResult>
getStateRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value state);

/// Largest head dim of queries, keys and values (KV2).
inline constexpr int64_t kMaxHeadDim = 512;

/// Most rows, and most columns, of a block of a block-sparse view (KV12).
inline constexpr int64_t kMaxBlock = 1 << 20;

/// Whether a type is one that schemes store numbers as: in a byte, or two in
/// one.
inline bool isByteCode(mlir::Type type) {
  return llvm::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type) ||
         type.isSignlessInteger(8);
}
inline bool isCode(mlir::Type type) {
  return isByteCode(type) || llvm::isa<mlir::Float4E2M1FNType>(type);
}

/// The scheme of keys or values where each block of a row has a scale, else
/// null.
inline BlockScaledType getBlockScaledType(KVViewTypeInterface view,
                                          bool wantValues) {
  return llvm::dyn_cast<BlockScaledType>(wantValues ? view.getValueScheme()
                                                    : view.getKeyScheme());
}

/// Whether products of such keys or values with numbers of `query` have to be
/// of f32: scales of f8E8M0FNU have the range of bf16, which f16 has not.
inline bool exceedsRange(KVViewTypeInterface view, bool wantValues,
                         mlir::Type query) {
  BlockScaledType blocks = getBlockScaledType(view, wantValues);
  return blocks && query.isF16() &&
         llvm::isa<mlir::Float8E8M0FNUType>(blocks.getBy());
}

/// What shares one of the numbers of f32 that multiply keys or values; none
/// where there are no such numbers.
std::optional<Granularity> getNumberGranularity(KVViewTypeInterface view,
                                                bool wantValues);
/// Whether keys or values are codes with scales.
bool isQuantised(KVViewTypeInterface view, bool wantValues);

/// An operand of a view op that scales its keys or its values.
struct KVScale {
  bool ofValues;
  /// What shares a number of it; none where each block of a row has a scale.
  std::optional<Granularity> per;
};
/// The operands that a view's scales are, in order.
llvm::SmallVector<KVScale, 4> getScales(KVViewTypeInterface view);

} // namespace fi

#endif // FI_DIALECT_FI_IR_FI_H
