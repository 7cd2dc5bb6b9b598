//===- FIBase.td - the fi dialect -------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect itself and the base classes of its ops, types and attributes.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIBASE_TD
#define FI_DIALECT_FI_IR_FIBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def FI_Dialect : Dialect {
  let name = "fi";
  let cppNamespace = "::fi";
  let summary = "what attention means, without a target";
  let description = [{
    Level 1 of fi: KV layouts as typed views, attention with its variants as
    regions, attention states and their algebra. Nothing here says how a
    kernel is tiled or where it runs; every op can be executed by the
    reference interpreter. `docs/spec.md` numbers each constraint.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"
  ];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    void registerBytecode();
  }];
}

class FI_Op<string mnemonic, list<Trait> traits = []>
    : Op<FI_Dialect, mnemonic, traits>;

class FI_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<FI_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

class FI_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<FI_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

#endif // FI_DIALECT_FI_IR_FIBASE_TD
