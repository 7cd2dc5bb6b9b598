//===- FIAttrs.td - attributes of the fi dialect ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIATTRS_TD
#define FI_DIALECT_FI_IR_FIATTRS_TD

include "fi/Dialect/FI/IR/FIBase.td"
include "fi/Dialect/FI/IR/FIInterfaces.td"

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def FI_Granularity : I32EnumAttr<"Granularity", "what shares a scale", [
    I32EnumAttrCase<"Tensor", 0, "tensor">, I32EnumAttrCase<"Head", 1, "head">,
    I32EnumAttrCase<"Page", 2, "page">, I32EnumAttrCase<"Token", 3, "token">]> {
  let cppNamespace = "::fi";
}

def FI_HeadOrder : I32EnumAttr<"HeadOrder", "order of tokens and heads", [
    I32EnumAttrCase<"NHD", 0>, I32EnumAttrCase<"HND", 1>]> {
  let cppNamespace = "::fi";
  let genSpecializedAttr = 0;
}

def FI_KVPart : I32EnumAttr<"KVPart", "what rows of a view are", [
    I32EnumAttrCase<"Keys", 0, "keys">, I32EnumAttrCase<"Values", 1, "values">,
    I32EnumAttrCase<"Tail", 2, "tail">]> {
  let description = [{
    `tail` is the last columns of keys, where they lie in a pool of their own; `keys`
    are the columns before them then.
  }];
  let cppNamespace = "::fi";
  let genSpecializedAttr = 0;
}
def FI_KVPartAttr : EnumAttr<FI_Dialect, FI_KVPart, "kv_part"> {
  let assemblyFormat = "`<` $value `>`";
}

def FI_LseBase : I32EnumAttr<"LseBase", "base of a log-sum-exp", [
    I32EnumAttrCase<"Two", 2, "2">, I32EnumAttrCase<"E", 0, "e">]> {
  let cppNamespace = "::fi";
  let genSpecializedAttr = 0;
}

def FI_Pairing : I32EnumAttr<"Pairing", "which elements a transform pairs", [
    I32EnumAttrCase<"Half", 0, "half">,
    I32EnumAttrCase<"Interleaved", 1, "interleaved">]> {
  let cppNamespace = "::fi";
}

def FI_Activation : I32EnumAttr<"Activation", "function of a gate", [
    I32EnumAttrCase<"Silu", 0, "silu">, I32EnumAttrCase<"Gelu", 1, "gelu">,
    I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">]> {
  let cppNamespace = "::fi";
}

def FI_BitOrder : I32EnumAttr<"BitOrder", "which bit of a byte is the first", [
    I32EnumAttrCase<"Little", 0, "little">, I32EnumAttrCase<"Big", 1, "big">]> {
  let cppNamespace = "::fi";
}

//===----------------------------------------------------------------------===//
// Rotary embeddings
//===----------------------------------------------------------------------===//

def FI_RotaryAttr : FI_Attr<"Rotary", "rotary", [
    DeclareAttrInterfaceMethods<FI_TransformAttrInterface>]> {
  let summary = "the rotation of pairs by positions";
  let description = [{
    Pair i of dims / 2 pairs turns by position times `theta^(-2 i / dims)`, or by what
    `scaling` makes of this angle: `#fi.linear`, `#fi.llama3`, `#fi.yarn`. Stands for
    the region that computes it (REG5): the parser makes the region of it.

    Constraints: ROT1 (theta), ROT2 (scaling).

    Example: `#fi.rotary<10000.0>`,
    `#fi.rotary<500000.0, #fi.llama3<factor = 8.0, low = 1.0, high = 4.0, context = 8192>>`
  }];
  let parameters = (ins "::mlir::FloatAttr":$theta,
                        OptionalParameter<"::mlir::Attribute">:$scaling);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class FI_RotaryScalingAttr<string name, string mnemonic, list<string> methods = []>
    : FI_Attr<name, mnemonic, [
        DeclareAttrInterfaceMethods<FI_RotaryScalingAttrInterface, methods>]> {
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_LinearAttr : FI_RotaryScalingAttr<"Linear", "linear"> {
  let summary = "angles divided by a factor";
  let description = [{
    Constraints: ROT3. Example: `#fi.linear<factor = 4.0>`
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor);
}

def FI_Llama3Attr : FI_RotaryScalingAttr<"Llama3", "llama3"> {
  let summary = "slow angles divided by a factor, fast ones kept";
  let description = [{
    A pair turns `r = context * angle / (2 pi)` times over the context that a model was
    trained with. Its angle is kept where `r >= high`, divided by `factor` where
    `r <= low`, and blended linearly in r between (ROT6).

    Constraints: ROT3, ROT4.

    Example: `#fi.llama3<factor = 8.0, low = 1.0, high = 4.0, context = 8192>`
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$low,
                        "::mlir::FloatAttr":$high, "int64_t":$trained);
}

def FI_YarnAttr : FI_RotaryScalingAttr<"Yarn", "yarn", ["getMagnitude"]> {
  let summary = "angles blended over pairs, and a factor of both elements";
  let description = [{
    Pairs before the one that turns `fast` times over the context keep their angles,
    those behind the one that turns `slow` times have them divided by `factor`, and
    between them the blend is linear in the pair's number (ROT7). Both elements are
    multiplied by `magnitude`, `0.1 ln(factor) + 1` where it is left out.

    Constraints: ROT3 to ROT5.

    Example: `#fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, context = 32768>`
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor, "::mlir::FloatAttr":$fast,
                        "::mlir::FloatAttr":$slow, "int64_t":$trained,
                        OptionalParameter<"::mlir::FloatAttr">:$magnitudeAttr);
}

//===----------------------------------------------------------------------===//
// Normalisers
//===----------------------------------------------------------------------===//

def FI_SoftmaxAttr : FI_Attr<"Softmax", "softmax", [
    DeclareAttrInterfaceMethods<FI_NormaliserAttrInterface, ["canFold", "buildFold"]>]> {
  let summary = "softmax over the visible keys";
  let description = [{
    The statistic is the log-sum-exp of the scores in the stated base: 2, or e.
    A row without visible keys has output 0 and statistic -inf (NRM1).

    Example: `#fi.softmax<base = 2>`
  }];
  let parameters = (ins "::fi::LseBase":$base);
  let hasCustomAssemblyFormat = 1;
}

class FI_AdditiveAttr<string name, string mnemonic> : FI_Attr<name, mnemonic, [
    DeclareAttrInterfaceMethods<FI_NormaliserAttrInterface,
                                ["isAdditive", "canFold", "buildFold"]>]>;

def FI_SumAttr : FI_AdditiveAttr<"Sum", "sum"> {
  let summary = "scores as weights";
  let description = [{
    The output is the sum of the visible keys' values times their scores. Nothing
    is normalised, states add, the statistic is 0, and there are no sinks (NRM5).

    Example: `#fi.sum`
  }];
}

def FI_SigmoidAttr : FI_AdditiveAttr<"Sigmoid", "sigmoid"> {
  let summary = "sigmoids of scores as weights";
  let description = [{
    The output is the sum of the visible keys' values times
    `1 / (1 + exp(-(score + bias)))`. Nothing is normalised, states add, the
    statistic is 0, and there are no sinks (NRM5). The bias is 0 if left out, and
    finite (NRM7).

    Example: `#fi.sigmoid`, `#fi.sigmoid<bias = -4.0>`
  }];
  let parameters = (ins OptionalParameter<"::mlir::FloatAttr">:$bias);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

def FI_CausalAttr : FI_Attr<"Causal", "causal", [
    DeclareAttrInterfaceMethods<FI_MaskAttrInterface>]> {
  let summary = "keys at or before the query's position";
  let description = [{
    Key at position `k` is visible to the row at position `q` iff `k <= q`. With
    positions as usual (rows are the last of their request) this is aligned at
    the bottom right.
  }];
}

def FI_WindowAttr : FI_Attr<"Window", "window", [
    DeclareAttrInterfaceMethods<FI_MaskAttrInterface>]> {
  let summary = "keys near the query's position";
  let description = [{
    Key at position `k` is visible to the row at position `q` iff
    `q - left <= k` and `k <= q + right`. Both bounds are inclusive; a missing one
    is none; a negative one is an error (MSK1).

    Example: `#fi.window<left = 127, right = 0>`
  }];
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$left,
                        OptionalParameter<"std::optional<int64_t>">:$right);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def FI_AnyAttr : FI_Attr<"Any", "any", [
    DeclareAttrInterfaceMethods<FI_MaskAttrInterface>]> {
  let summary = "keys that some of several masks allow";
  let description = [{
    Example: `#fi.any<#fi.causal, #fi.window<right = 3>>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$masks);
  let assemblyFormat = "`<` $masks `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

def FI_SoftcapAttr : FI_Attr<"Softcap", "softcap", [
    DeclareAttrInterfaceMethods<FI_ScoreAttrInterface>]> {
  let summary = "tanh soft cap of the scores";
  let description = [{
    The score becomes `cap * tanh(score / cap)`, in natural units, before the
    mask. The cap must be positive and finite (SCR1).

    Example: `#fi.softcap<30.0>`
  }];
  let parameters = (ins "::mlir::FloatAttr":$cap);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Schedule
//===----------------------------------------------------------------------===//

def FI_TargetAttr : FI_Attr<"Target", "target"> {
  let summary = "what a kernel is compiled for";
  let description = [{
    `cpu` with the width of its vectors in bits, whether it has a dot product
    of bf16 pairs that accumulates in f32 (`bf16_dot`), and whether it multiplies
    tiles of bf16 in hardware (`amx`); or an NVIDIA chip, whose limits and features
    the table of targets has (TGT1, TGT2).

    Example: `#fi.target<cpu, vector_bits = 512, bf16_dot, amx>`,
    `#fi.target<sm_80>`
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "int64_t":$vectorBits,
                        "bool":$bf16Dot, "bool":$amx);
  let builders = [
    AttrBuilder<(ins "::mlir::StringAttr":$kind, "int64_t":$vectorBits,
                     "bool":$bf16Dot),
                [{ return $_get($_ctxt, kind, vectorBits, bf16Dot, false); }]>,
    AttrBuilder<(ins "const ::fi::sm::Target &":$chip), [{
      return $_get($_ctxt, ::mlir::StringAttr::get($_ctxt, chip.name), 0, false,
                   false);
    }]>
  ];
  let extraClassDeclaration = [{
    bool isCPU() const { return getKind().getValue() == "cpu"; }
    /// The chip's row in the table of targets; null for a CPU.
    const ::fi::sm::Target *getChip() const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_ScheduleAttr : FI_Attr<"Schedule", "schedule"> {
  let summary = "how one body of a kernel is tiled";
  let description = [{
    A body serves requests of at most `max_rows` packed rows (0: any number) with
    tiles of `tile_rows` packed rows by `tile_keys` keys. `mr` x `nr` is the
    register block of the microkernel, in rows and vectors; `lanes` is how many
    partial sums a row reduction keeps. With `stream = 1` a tile of keys is fetched
    while the one before it is computed: for few rows, where memory is the limit.
    On a GPU there is no register block; a tile's rows are shared by `warps` warps,
    and the key tiles of an item by `key_warps` such groups, each with an accumulator
    of its own. `stages` buffers of keys and of values are in use or under way.
    With `load_warps` so many more warps copy what these multiply, instead of the warps
    themselves; with `wgmma = 1` products are those of warpgroups, four warps with 64
    rows, where the types allow it (SCH9). With `rotate = 1` those of a tile's keys and
    of the values of the tile before it are under way at the same time, and with
    `turns = 1` warpgroups would begin theirs one after the other: it is refused so far.
    With `tma = 1` the warps that copy have the hardware do so, box by box, where whole
    rows of a buffer lie in memory as a tensor map can say (TILE41).
    With `late = 1` a tile's weights are computed with the subtrahends that stood before
    it, and again where these turn out to be too small (fi-tile-late-maximum).
    Changing the numbers gives another
    correct kernel, or a diagnostic (SCH1).

    Example: `#fi.schedule<tile_rows = 128, tile_keys = 64, mr = 8, nr = 2, lanes = 16>`,
    `#fi.schedule<tile_rows = 128, tile_keys = 64, warps = 4, stages = 2, lanes = 4>`,
    `#fi.schedule<tile_rows = 128, tile_keys = 128, warps = 8, load_warps = 4, stages = 2, wgmma = 1, tma = 1, lanes = 4>`
  }];
  let parameters = (ins
      "int64_t":$tileRows, "int64_t":$tileKeys, "int64_t":$mr, "int64_t":$nr,
      "int64_t":$lanes, "int64_t":$maxRows, "int64_t":$stream,
      "int64_t":$warps, "int64_t":$keyWarps, "int64_t":$stages,
      "int64_t":$loadWarps, "int64_t":$wgmma, "int64_t":$rotate,
      "int64_t":$turns, "int64_t":$tma, "int64_t":$late);
  let builders = [
    AttrBuilder<(ins "int64_t":$tileRows, "int64_t":$tileKeys, "int64_t":$mr,
                     "int64_t":$nr, "int64_t":$lanes, "int64_t":$maxRows,
                     "int64_t":$stream, "int64_t":$warps, "int64_t":$keyWarps,
                     "int64_t":$stages),
                [{ return $_get($_ctxt, tileRows, tileKeys, mr, nr, lanes,
                                maxRows, stream, warps, keyWarps, stages, 0,
                                0, 0, 0, 0, 0); }]>,
    AttrBuilder<(ins "int64_t":$tileRows, "int64_t":$tileKeys, "int64_t":$mr,
                     "int64_t":$nr, "int64_t":$lanes, "int64_t":$maxRows,
                     "int64_t":$stream),
                [{ return $_get($_ctxt, tileRows, tileKeys, mr, nr, lanes,
                                maxRows, stream, 0, 0, 0, 0, 0, 0, 0, 0,
                                0); }]>
  ];
  let extraClassDeclaration = [{
    /// The same with tiles of other sizes.
    ScheduleAttr withTiles(int64_t tileRows, int64_t tileKeys, int64_t warps,
                           int64_t keyWarps, int64_t stages) const;
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_SplitAttr : FI_Attr<"Split", "split"> {
  let summary = "how the plan may cut the keys of a request";
  let description = [{
    `balanced` cuts where the longest worker would dominate; `fixed` cuts every
    `keys` keys, so that a request's result does not depend on its batch.

    Example: `#fi.split<balanced>`, `#fi.split<fixed = 2048>`
  }];
  let parameters = (ins "int64_t":$keys); // 0: balanced
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // FI_DIALECT_FI_IR_FIATTRS_TD
