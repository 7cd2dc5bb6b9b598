//===- FIDialect.cpp - the fi dialect -------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/IR/FICalls.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;

#include "fi/Dialect/FI/IR/FIDialect.cpp.inc"

#include "fi/Dialect/FI/IR/FIAttrInterfaces.cpp.inc"
#include "fi/Dialect/FI/IR/FIOpInterfaces.cpp.inc"
#include "fi/Dialect/FI/IR/FITypeInterfaces.cpp.inc"

namespace {

/// Prints `!kv`, `!state` as aliases.
struct FIOpAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (isa<KVViewTypeInterface>(type)) {
      os << "kv";
      return AliasResult::OverridableAlias;
    }
    if (isa<StateType>(type)) {
      os << "state";
      return AliasResult::OverridableAlias;
    }
    return AliasResult::NoAlias;
  }
};

} // namespace

void FIDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "fi/Dialect/FI/IR/FIOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fi/Dialect/FI/IR/FICompanionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "fi/Dialect/FI/IR/FICallOps.cpp.inc"
      >();
  registerTypes();
  registerAttributes();
  registerBytecode();
  addInterfaces<FIOpAsmInterface>();
}

LogicalResult FIDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  if (attr.getName() == kTargetAttr && !isa<TargetAttr>(attr.getValue()))
    return op->emitOpError("expected attribute 'fi.target' to be a "
                           "#fi.target, but got ")
           << attr.getValue() << " [TGT4]";
  if (attr.getName() == kProfileAttr) {
    auto detail = dyn_cast<StringAttr>(attr.getValue());
    if (!detail || (detail != "phases" && detail != "tiles"))
      return op->emitOpError("expected attribute 'fi.profile' to be \"phases\" "
                             "or \"tiles\", but got ")
             << attr.getValue() << " [TGT5]";
  }
  return success();
}
