//===- FICompanionOps.td - what stands beside attention ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations on rows that a layer needs around attention. Each is a stage of
// rows: a tile of rows of one head, no loop over keys. The constraints carry the
// numbers that they have in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FICOMPANIONOPS_TD
#define FI_DIALECT_FI_IR_FICOMPANIONOPS_TD

include "fi/Dialect/FI/IR/FIBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def FI_RowTensor : RankedTensorOf<[F32, F16, BF16]>;

def FI_RMSNormOp : FI_Op<"rms_norm", [
    Pure,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "rows divided by their root mean square";
  let description = [{
    For each row and head, element `d` of `x` becomes
    `x[d] / sqrt(mean(x * x) + eps) * weight[d]`, computed in f32 and rounded once,
    to the result's type (RMS5). Without `weight` it is 1; with `plus_one` the
    factor is `1 + weight[d]`. Hidden states of a model are rows of one head.

    Rows have up to 16384 elements, a multiple of 8.

    Constraints: RMS1 to RMS4.

    Example:

    ```mlir
    %y = fi.rms_norm %x weight(%w : tensor<128xbf16>) eps(1.0e-6)
        : tensor<?x32x128xbf16> -> tensor<?x32x128xbf16>
    ```
  }];
  let arguments = (ins FI_RowTensor:$input, Optional<FI_RowTensor>:$weight,
                       F32Attr:$epsilon, UnitAttr:$plusOne);
  let results = (outs FI_RowTensor:$result);
  let assemblyFormat = [{
    $input (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`plus_one` $plusOne^)? `eps` `(` $epsilon `)` attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // FI_DIALECT_FI_IR_FICOMPANIONOPS_TD
