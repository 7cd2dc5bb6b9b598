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

include "fi/Dialect/FI/IR/FIOperands.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Rows of a companion, and what it makes: numbers or codes.
def FI_CompanionRows : AnyTypeOf<[RankedTensorOf<[F32, F16, BF16]>,
                                  MemRefOf<[F32, F16, BF16]>],
    "tensor or memref of f32, f16 or bf16">;
def FI_CompanionResult : RankedTensorOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I8]>;
def FI_CompanionOut : AnyTypeOf<[FI_CompanionResult,
                                 MemRefOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I8]>],
    "tensor or memref of numbers or codes">;
def FI_CompanionScales : AnyTypeOf<[F32, RankedTensorOf<[F32]>, MemRefOf<[F32]>],
    "f32, or tensor or memref of it">;

// A norm of rows, of which there are two; `own` is what one has beside the other.
class FI_NormOp<string mnemonic, dag own> : FI_Op<mnemonic, [
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let arguments = !con((ins FI_CompanionRows:$input,
                            Optional<FI_CompanionRows>:$addend,
                            Optional<FI_CompanionRows>:$weight),
                       own,
                       (ins Optional<FI_CompanionScales>:$scales,
                            Variadic<FI_CompanionOut>:$outs, F32Attr:$epsilon,
                            OptionalAttr<TypeAttrOf<FI_ScaledType>>:$scheme));
  let results = (outs Variadic<FI_CompanionResult>:$results);
  let hasVerifier = 1;
}

def FI_RMSNormOp : FI_NormOp<"rms_norm", (ins UnitAttr:$plusOne)> {
  let summary = "rows divided by their root mean square";
  let description = [{
    For each row and head, element `d` of `x` becomes
    `x[d] / sqrt(mean(x * x) + eps) * weight[d]`, computed in f32 and rounded once,
    to the result's type (RMS5). Without `weight` it is 1; with `plus_one` the
    factor is `1 + weight[d]`. Hidden states of a model are rows of one head. Rows
    have up to 16384 elements, a multiple of 8.

    With `add`, `x` is the sum of two tensors in f32, and a second result is this
    sum, rounded to that result's type (RMS6). With `to` the first result is of
    codes: the number that they stand for is the code times its scale, given for
    the `tensor` or for each `head` (RMS8). Scales of each `token`, a row and head,
    are computed, and are the last result (RMS10).

    Destinations (`outs`) are as those of `fi.attention`: memrefs that are written
    where `x` is a memref, or a tensor for each result, whose buffer it takes.

    Constraints: RMS1 to RMS4, RMS6, RMS8 to RMS10.

    Example:

    ```mlir
    %y, %sum = fi.rms_norm %x add(%r : tensor<?x1x4096xbf16>) weight(%w : tensor<4096xbf16>) eps(1.0e-6)
        : tensor<?x1x4096xbf16> -> tensor<?x1x4096xbf16>, tensor<?x1x4096xbf16>
    ```
  }];
  let assemblyFormat = [{
    $input (`add` `(` $addend^ `:` type($addend) `)`)?
    (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`plus_one` $plusOne^)? `eps` `(` $epsilon `)`
    (`to` `(` $scheme^ `)`)? (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($input) (`->` type($results)^)?
  }];
}

def FI_LayerNormOp
    : FI_NormOp<"layer_norm", (ins Optional<FI_CompanionRows>:$bias)> {
  let summary = "rows less their mean, divided by their deviation";
  let description = [{
    For each row and head, with `m` its mean, element `d` of `x` becomes
    `(x[d] - m) / sqrt(mean((x - m) * (x - m)) + eps) * weight[d] + bias[d]`, computed
    in f32 and rounded once (RMS7). Everything else is as for `fi.rms_norm`.

    Constraints: RMS1 to RMS4, RMS6, RMS8, RMS9.

    Example:

    ```mlir
    %y = fi.layer_norm %x weight(%w : tensor<768xf32>) bias(%b : tensor<768xf32>) eps(1.0e-5)
        : tensor<?x1x768xf16> -> tensor<?x1x768xf16>
    ```
  }];
  let assemblyFormat = [{
    $input (`add` `(` $addend^ `:` type($addend) `)`)?
    (`weight` `(` $weight^ `:` type($weight) `)`)?
    (`bias` `(` $bias^ `:` type($bias) `)`)? `eps` `(` $epsilon `)`
    (`to` `(` $scheme^ `)`)? (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($input) (`->` type($results)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

// Rows of numbers or of codes, and what they are made of.
def FI_CompanionNumbers : RankedTensorOf<[F32, F16, BF16]>;
def FI_CompanionCodes : AnyTypeOf<[RankedTensorOf<[F8E4M3FN, F8E5M2, I8]>,
                                   MemRefOf<[F8E4M3FN, F8E5M2, I8]>],
    "tensor or memref of f8E4M3FN, f8E5M2 or i8">;
def FI_CompanionBlocks : AnyTypeOf<[
    F32, RankedTensorOf<[F32, F8E4M3FN, F8E8M0FNU]>,
    MemRefOf<[F32, F8E4M3FN, F8E8M0FNU]>],
    "f32, or tensor or memref of f32, f8E4M3FN or f8E8M0FNU">;
def FI_CompanionMade : RankedTensorOf<[F32, F8E4M3FN, F8E5M2, F8E8M0FNU, I8]>;
def FI_CompanionMadeOut : AnyTypeOf<[FI_CompanionMade,
    MemRefOf<[F32, F8E4M3FN, F8E5M2, F8E8M0FNU, I8]>],
    "tensor or memref of codes or scales">;
def FI_CompanionBits : AnyTypeOf<[RankedTensorOf<[I1, I8]>, MemRefOf<[I1, I8]>],
    "tensor or memref of i1 or i8">;

class FI_CompanionOp<string mnemonic, list<string> methods = [],
                     list<Trait> traits = []> : FI_Op<mnemonic,
    !listconcat([
        DeclareOpInterfaceMethods<FI_CompanionOpInterface, methods>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>], traits)> {
  let hasVerifier = 1;
}

def FI_GatedOp : FI_CompanionOp<"gated"> {
  let summary = "one half of rows, gated by a function of the other";
  let description = [{
    Element `d` of a result row, which has half as many elements, is
    `act(x[d]) * x[d + dim / 2]`, computed in f32 and rounded once. `silu` is
    `x / (1 + exp(-x))`, `gelu` is `x (1 + erf(x / sqrt(2))) / 2` and `gelu_tanh` its
    usual approximation with tanh (GAT3). Destinations are as those of norms.

    Constraints: GAT1, GAT2, ROW1.

    Example: `%y = fi.gated %x act(silu) : tensor<?x1x28672xbf16> -> tensor<?x1x14336xbf16>`
  }];
  let arguments = (ins FI_CompanionRows:$input, Variadic<FI_CompanionRows>:$outs,
                       FI_Activation:$activation);
  let results = (outs Optional<FI_CompanionNumbers>:$result);
  let assemblyFormat = [{
    $input `act` `(` $activation `)` (`outs` `(` $outs^ `:` type($outs) `)`)?
    attr-dict `:` type($input) (`->` type($result)^)?
  }];
}

def FI_RopeOp : FI_CompanionOp<"rope", ["getRowOperands"], [
    AttrSizedOperandSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "pairs of rows' elements, transformed by positions";
  let description = [{
    The region transforms pairs (x, y) of a row, as a `query` region of
    `fi.attention` does: it is given the pair's number, the request, which is 0, the
    head, the row's position and the captures. Pairs are elements (i, i + dims / 2)
    for `half` and (2 i, 2 i + 1) for `interleaved`, of the first `dims` elements of
    a row; the others stay what they are. Without `dims` all elements are paired.
    Computed in f32, rounded once. `transform(#fi.rotary<...>)` is the short
    spelling of a region. Destinations are as those of norms.

    Constraints: ROPE1 to ROPE4, ATT11 to ATT13, ROW1.

    Example:

    ```mlir
    %y = fi.rope %x at(%pos : tensor<?xi32>) pair<half> dims(64)
        captures(%t = %table : tensor<?x2x32xf32>)
        transform(%a: f32, %b: f32, %pair: index, %req: index, %head: index, %p: index) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %c = fi.load %t[%p, %zero, %pair] : tensor<?x2x32xf32>
      %s = fi.load %t[%p, %one, %pair] : tensor<?x2x32xf32>
      %ac = arith.mulf %a, %c : f32
      %bs = arith.mulf %b, %s : f32
      %as = arith.mulf %a, %s : f32
      %bc = arith.mulf %b, %c : f32
      %x2 = arith.subf %ac, %bs : f32
      %y2 = arith.addf %as, %bc : f32
      fi.yield %x2, %y2 : f32, f32
    } : tensor<?x8x128xbf16> -> tensor<?x8x128xbf16>
    ```
  }];
  let arguments = (ins FI_CompanionRows:$input, FI_Table:$positions,
                       Variadic<FI_Capture>:$captures,
                       Variadic<FI_CompanionRows>:$outs, FI_Pairing:$pairing,
                       OptionalAttr<I64Attr>:$dims);
  let results = (outs Optional<FI_CompanionNumbers>:$result);
  let regions = (region AnyRegion:$transform);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ShapedType getInputType() {
      return ::llvm::cast<::mlir::ShapedType>(getInput().getType());
    }
    /// Elements of a row that are paired.
    int64_t getPairedDims() {
      return getDims().value_or(getInputType().getDimSize(2));
    }
  }];
}

def FI_QuantiseOp : FI_CompanionOp<"quantise", ["getRowOperands"],
                                   [AttrSizedOperandSegments]> {
  let summary = "rows as codes of few bits";
  let description = [{
    Codes of the scheme `to`, whose numbers times their scales stand for the elements
    of rows [rows, heads, dim]. Scales are one for the `tensor`, a number or [1], one
    for each `head` [heads], one for each `token`, which is a row and head, [rows,
    heads], or with `group(n)` one for n columns of such, [rows, heads, dim / n]
    (QTZ2).

    Without `scales` they are computed, and are the second result: the largest
    magnitude of what shares one divided by the largest code (QTZ4). The scales of
    blocks (`!fi.block_scaled`) are computed always, as by an append (QNT13);
    `scales` then is the number of f32 that multiplies all of them, or those of a
    head. Codes of 4 bits lie two to an i8.

    Destinations are as those of norms.

    Constraints: QTZ1 to QTZ3, ROW1.

    Example:

    ```mlir
    %q, %s = fi.quantise %x to(!fi.scaled<f8E4M3FN, per = token, by = f32>)
        : tensor<?x1x4096xbf16> -> tensor<?x1x4096xf8E4M3FN>, tensor<?x1xf32>
    ```
  }];
  let arguments = (ins FI_CompanionRows:$input,
                       Optional<FI_CompanionScales>:$scales,
                       Variadic<FI_CompanionMadeOut>:$outs, TypeAttr:$scheme,
                       OptionalAttr<I64Attr>:$group);
  let results = (outs Variadic<FI_CompanionMade>:$results);
  let assemblyFormat = [{
    $input `to` `(` $scheme `)` (`group` `(` $group^ `)`)?
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($input) (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    /// Whether scales that a tensor or a head shares are computed.
    bool makesSharedScales();
  }];
}

def FI_DequantiseOp : FI_CompanionOp<"dequantise", ["getRowOperands"],
                                     [AttrSizedOperandSegments]> {
  let summary = "the numbers that rows of codes stand for";
  let description = [{
    Each code's number times its scale, in f32, rounded once. Scales are those that
    `fi.quantise` takes or makes; of blocks the scales of these come first, then the
    number of f32 where there is one.

    Constraints: QTZ1, QTZ2, ROW1.

    Example:

    ```mlir
    %x = fi.dequantise %q from(!fi.scaled<i8, per = head, by = f32>)
        scales(%s : tensor<8xf32>) : tensor<?x8x128xi8> -> tensor<?x8x128xbf16>
    ```
  }];
  let arguments = (ins FI_CompanionCodes:$input,
                       Variadic<FI_CompanionBlocks>:$scales,
                       Variadic<FI_CompanionRows>:$outs, TypeAttr:$scheme,
                       OptionalAttr<I64Attr>:$group);
  let results = (outs Optional<FI_CompanionNumbers>:$result);
  let assemblyFormat = [{
    $input `from` `(` $scheme `)` (`group` `(` $group^ `)`)?
    `scales` `(` $scales `:` type($scales) `)`
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($input) (`->` type($result)^)?
  }];
}

def FI_CompanionBytes : AnyTypeOf<[RankedTensorOf<[I8]>, MemRefOf<[I8]>],
    "tensor or memref of i8">;

def FI_PackBitsOp : FI_CompanionOp<"pack_bits"> {
  let summary = "eight truths to a byte";
  let description = [{
    Byte `d` of a result row has a bit for each of the elements 8 d to 8 d + 7, set
    where the element is not 0; the first one is the lowest bit (`little`), or the
    highest (`big`).

    Constraints: PCK1, PCK2, ROW1.

    Example: `%b = fi.pack_bits %x order(little) : tensor<?x1x1024xi1> -> tensor<?x1x128xi8>`
  }];
  let arguments = (ins FI_CompanionBits:$input,
                       Variadic<FI_CompanionBytes>:$outs,
                       FI_BitOrder:$order);
  let results = (outs Optional<RankedTensorOf<[I8]>>:$result);
  let assemblyFormat = [{
    $input `order` `(` $order `)` (`outs` `(` $outs^ `:` type($outs) `)`)?
    attr-dict `:` type($input) (`->` type($result)^)?
  }];
}

def FI_SegmentPackBitsOp
    : FI_CompanionOp<"segment_pack_bits", ["getRowOperands"],
                     [AttrSizedOperandSegments]> {
  let summary = "eight truths of a segment to a byte";
  let description = [{
    Input and result are vectors, of segments that lie one behind the other: segment
    i has the elements from `from[i]` to `from[i + 1]` and the bytes from `to[i]` on,
    where it begins with a byte of its own. Bits are in the order of `fi.pack_bits`;
    what is left of a segment's last byte, and bytes behind it, are 0 (PCK5). A result
    has as many bytes as `bytes` says, which is known when planning: an argument of
    the plan, a constant, or the size of a run argument. A memref has its own.

    Constraints: PCK4, ROW1.

    Example:

    ```mlir
    %b = fi.segment_pack_bits %x from(%from : tensor<?xi32>) to(%to : tensor<?xi32>)
        bytes(%n) order(little) : tensor<?xi1> -> tensor<?xi8>
    ```
  }];
  let arguments = (ins FI_CompanionBits:$input, FI_Table:$from, FI_Table:$to,
                       Optional<Index>:$bytes,
                       Variadic<FI_CompanionBytes>:$outs, FI_BitOrder:$order);
  let results = (outs Optional<RankedTensorOf<[I8]>>:$result);
  let assemblyFormat = [{
    $input `from` `(` $from `:` type($from) `)` `to` `(` $to `:` type($to) `)`
    (`bytes` `(` $bytes^ `)`)? `order` `(` $order `)`
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($input) (`->` type($result)^)?
  }];
}

#endif // FI_DIALECT_FI_IR_FICOMPANIONOPS_TD
