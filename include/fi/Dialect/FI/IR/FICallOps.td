//===- FICallOps.td - programs called by functions --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stands in a function where a program is planned and run.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FICALLOPS_TD
#define FI_DIALECT_FI_IR_FICALLOPS_TD

include "fi/Dialect/FI/IR/FIOperands.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class FI_CallOp<string mnemonic, list<Trait> traits = []>
    : FI_Op<mnemonic, !listconcat(traits, [
        AttrSizedOperandSegments,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  let hasVerifier = 1;
}

def FI_PlanOp : FI_CallOp<"plan"> {
  let summary = "plan of a program for a batch";
  let description = [{
    Plans a batch for a program of the module. `values` are the program's plan
    arguments, in order. `sizes` are the sizes of its run arguments where their
    types leave them open, argument by argument; without them the plan's arguments
    must tell all (rows by an indptr, keys by one or by pages of a known size).

    Over tensors the op is a value of its operands: plans of equal operands are one
    (CSE), and a plan moves out of loops. Over memrefs it reads them, and keeps
    nothing of them.

    Constraints: CAL1 to CAL3.

    Example: `%p = fi.plan @layer(%rows, %keys : tensor<3xi32>, tensor<3xi32>)`
  }];
  let arguments = (ins FlatSymbolRefAttr:$program,
                       Variadic<FI_Capture>:$values, Variadic<Index>:$sizes);
  let results = (outs FI_PlanType:$result);
  let assemblyFormat = [{
    $program `(` ($values^ `:` type($values))? `)` (`sizes` `(` $sizes^ `)`)?
    attr-dict
  }];
}

def FI_RunOp : FI_CallOp<"run", [
    DeclareOpInterfaceMethods<DestinationStyleOpInterface>]> {
  let summary = "run of a plan on tensors";
  let description = [{
    Runs a program under a plan of it. `values` are the program's run arguments, in
    order, and `outs` the places of its results: tensors, whose values are not read
    and which the op returns overwritten whole, or memrefs. A memref may stand for
    any tensor that the program takes; what the program appends to are memrefs.

    Constraints: CAL1, CAL2, CAL4, CAL5.

    Example: `%o = fi.run @layer(%q, %k, %v : !q, !t, !t) by(%p) outs(%e : !q) -> !q`
  }];
  let arguments = (ins FlatSymbolRefAttr:$program,
                       Variadic<FI_Capture>:$values, FI_PlanType:$plan,
                       Variadic<AnyTypeOf<[AnyRankedTensor, AnyMemRef]>>:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $program `(` ($values^ `:` type($values))? `)` `by` `(` $plan `)`
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict (`->` type($results)^)?
  }];
}

#endif // FI_DIALECT_FI_IR_FICALLOPS_TD
