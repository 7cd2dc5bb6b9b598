//===- FIOps.td - operations of the fi dialect ------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention as fi defines it. Each constraint carries the number it has in
// docs/spec.md.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIOPS_TD
#define FI_DIALECT_FI_IR_FIOPS_TD

include "fi/Dialect/FI/IR/FIOperands.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def FI_ProgramOp : FI_Op<"program", [
    FunctionOpInterface, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a plan and what runs under it";
  let description = [{
    A symbol with two groups of arguments: what is known when a batch is
    scheduled (`plan`: lengths, tables, positions) and what arrives per layer
    (`run`: tensors, scales). The manifest is made from this signature, names
    included. Public always (PRG1); results are tensors (PRG2).

    Example:

    ```mlir
    !ix = tensor<?xi32>
    fi.program @decode
        plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
        run(%q: tensor<?x32x128xf32>, %k: memref<?x8x16x128xf32>,
            %v: memref<?x8x16x128xf32>) -> (tensor<?x32x128xf32>) {
      %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
          : memref<?x8x16x128xf32>, memref<?x8x16x128xf32>
          -> !fi.paged_kv<16x8x128xf32, HND>
      %o = fi.attention %q rows(%qo : !ix) over %kv scale(8.838835e-02)
          : tensor<?x32x128xf32> over !fi.paged_kv<16x8x128xf32, HND>
          -> tensor<?x32x128xf32>
      fi.return %o : tensor<?x32x128xf32>
    }
    ```
  }];
  let arguments = (ins
      SymbolNameAttr:$sym_name,
      TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<StrAttr>:$sym_visibility,
      OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Argument attribute of plan arguments, and of the argument's name.
    static constexpr llvm::StringLiteral kPlanAttr = "fi.plan";
    static constexpr llvm::StringLiteral kNameAttr = "fi.name";

    bool isPlanArgument(unsigned index);
    /// The name that the manifest gives to an argument.
    std::string getArgumentName(unsigned index);

    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def FI_ReturnOp : FI_Op<"return", [
    Pure, HasParent<"ProgramOp">, ReturnLike, Terminator]> {
  let summary = "results of a program";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

class FI_ViewOp<string mnemonic, list<string> more = []> : FI_Op<mnemonic, [
    Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<FI_KVViewOpInterface, more>]> {
  let hasVerifier = 1;
}

def FI_PagedViewOp : FI_ViewOp<"view.paged", ["getViewScales"]> {
  let summary = "view of keys and values in pages";
  let description = [{
    Pools of pages and the tables that say which pages hold a request's keys, in
    logical order. Tables are indptr [requests + 1] in pages (need not start at 0),
    pages, and the number of valid slots in each request's last page; or, for
    `table = dense`, [requests, max pages] and lengths [requests] in keys. A
    request without pages is empty whatever its last page length says. `origin`
    gives the position of each request's key 0 (0 if absent). With `two_tables` the
    table of the pages of values follows that of keys: indptr, pages, value_pages,
    last; or pages, value_pages, lengths. `scales` are those of the keys, then those
    of the values, of each whose element type is `!fi.scaled`: a number, [heads],
    [pages, heads], or for tokens the shape of the pool without its last dimension.
    Those of `!fi.block_scaled` are of the pool's shape, with the blocks of a row as
    the last dimension, and then the number or [heads] if there is one.

    Constraints: KV5 (pools), KV6 (tables), KV7 (origin), QNT4 (scales).

    Example:

    ```mlir
    %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
        scales(%ks, %vs : f32, f32) : !pool, !pool
        -> !fi.paged_kv<16x8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
    ```
  }];
  // Groups of operands are kept in the order in which they came to be, so that
  // older bytecode lacks the last ones.
  let arguments = (ins Variadic<FI_Pool>:$pools, Variadic<FI_Table>:$tables,
                       Optional<FI_Table>:$origin, Variadic<FI_Scales>:$scales);
  let results = (outs FI_PagedKVType:$result);
  let assemblyFormat = [{
    $pools `tables` `(` $tables `:` type($tables) `)`
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`origin` `(` $origin^ `:` type($origin) `)`)?
    attr-dict `:` type($pools) `->` qualified(type($result))
  }];
}

def FI_LatentViewOp : FI_ViewOp<"view.latent", ["getViewScales"]> {
  let summary = "view of latents in pages";
  let description = [{
    The pools of latents and of tails, [pages, page, dim] each, and tables as those of
    `fi.view.paged`. Where one pool holds both, its columns are given as two memrefs
    whose strides skip the others. `scales`, where elements have some, are one operand
    for latents and tails: a number, [1], [pages, 1], or [pages, page].

    Constraints: KV5 (pools), KV6 (tables), KV7 (origin), QNT4 (scales).

    Example: `fi.view.latent %c, %r tables(%indptr, %pages, %last : !ix, !ix, !ix) : memref<?x64x512xbf16>, memref<?x64x64xbf16> -> !fi.latent_kv<512+64xbf16, page = 64>`
  }];
  let arguments = (ins Variadic<FI_Pool>:$pools, Variadic<FI_Table>:$tables,
                       Optional<FI_Table>:$origin, Variadic<FI_Scales>:$scales);
  let results = (outs FI_LatentKVType:$result);
  let assemblyFormat = [{
    $pools `tables` `(` $tables `:` type($tables) `)`
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`origin` `(` $origin^ `:` type($origin) `)`)?
    attr-dict `:` type($pools) `->` qualified(type($result))
  }];
}

def FI_BsrViewOp : FI_ViewOp<"view.bsr", ["getViewScales"]> {
  let summary = "view of the blocks of keys that each block of rows sees";
  let description = [{
    Pools and `indptr` as those of `fi.view.ragged`. `blocks` are two tables: the
    blocks of rows, those of all requests one behind the other, have the entries from
    `row_indptr[i]` on, up to `row_indptr[i + 1]`, of `columns`: numbers of blocks of
    keys, which count from the request's first key and rise. A request of n rows has
    `ceil(n / rows)` blocks of rows. `scales` as in `fi.view.ragged`.

    Constraints: KV5, KV6, KV7, KV13, QNT4.

    Example: `fi.view.bsr %k, %v indptr(%ip : !ix) blocks(%rp, %cols : !ix, !ix) : !t, !t -> !fi.bsr_kv<64x8x128xf32, rows = 16>`
  }];
  let arguments = (ins Variadic<FI_Pool>:$pools, Optional<FI_Table>:$indptr,
                       Variadic<FI_Table>:$blocks, Optional<FI_Table>:$origin,
                       Variadic<FI_Scales>:$scales);
  let results = (outs FI_BsrKVType:$result);
  let assemblyFormat = [{
    $pools (`indptr` `(` $indptr^ `:` type($indptr) `)`)?
    `blocks` `(` $blocks `:` type($blocks) `)`
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`origin` `(` $origin^ `:` type($origin) `)`)?
    attr-dict `:` type($pools) `->` qualified(type($result))
  }];
}

def FI_RaggedViewOp : FI_ViewOp<"view.ragged", ["getViewScales"]> {
  let summary = "view of keys and values one request behind the other";
  let description = [{
    Keys and values as [tokens, heads, dim] (or [heads, tokens, dim] for `HND`).
    `indptr` [requests + 1] is in tokens; without it there is one request. `scales`
    as in `fi.view.paged`.

    Constraints: KV5, KV6, KV7, QNT4.

    Example: `fi.view.ragged %k, %v indptr(%ip : tensor<?xi32>) : !t, !t -> !fi.ragged_kv<8x128xf32>`
  }];
  let arguments = (ins Variadic<FI_Pool>:$pools, Optional<FI_Table>:$indptr,
                       Optional<FI_Table>:$origin, Variadic<FI_Scales>:$scales);
  let results = (outs FI_RaggedKVType:$result);
  let assemblyFormat = [{
    $pools (`indptr` `(` $indptr^ `:` type($indptr) `)`)?
    (`scales` `(` $scales^ `:` type($scales) `)`)?
    (`origin` `(` $origin^ `:` type($origin) `)`)?
    attr-dict `:` type($pools) `->` qualified(type($result))
  }];
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def FI_AttentionOp : FI_Op<"attention", [
    AttrSizedOperandSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "attention of query rows over a KV view";
  let description = [{
    For each row `i` and query head `h`, with `g` its KV head: the score of key `j`
    is `scale * (q[i, h] . k[j, g])` in natural units; then the score region; then
    the masks, all of which must allow the key; then the normaliser, whose weights
    sum the values. The order is fixed. Regions are called for keys in range only
    and see positions: key `j` is at `origin + j`, row `i` of a request at
    `origin + kv_len - q_len + i`, unless `at(...)` gives a position for each row.

    A `query` or `key` region transforms pairs (x, y) of a row before the product,
    given the pair's number, request, head and position: elements (i, i + dim / 2)
    for `half`, (2 i, 2 i + 1) for `interleaved`.

    Over a view whose keys have a tail, the query may come in two parts as well: a
    second operand behind the first has the columns that the tails are multiplied
    with. One operand then has the others; alone it has all columns.

    Clauses, in this order: `rows(...)` indptr of the query's rows per request (one
    request without it), `over` the view, `at(...)`, `segments(...)`, `scale(...)` a number or
    an f32 value, `sink(...)` one logit per query head, `normalise(...)`,
    `pair<half>` or `pair<interleaved>` with a transform region, `captures(...)`
    values that the regions read, `query`/`key` transform regions,
    `score(...)` an attribute or a region, `mask(...)` attributes and a region,
    `outs(...)` destinations.

    Results: the output [rows, heads, dim of values] and, if a second result is
    named, the statistic [rows, heads] in f32; or one state. Rows beyond the last
    request are empty: output 0, statistic of no keys.

    Destinations: where the query is a memref the results are written to the
    memrefs of `outs`. Where it is a tensor, `outs` may name a tensor for each
    result, whose buffer the result takes when tensors become memrefs (one-shot
    bufferization); all of it is overwritten and nothing of it is read. Without
    `outs` a buffer is allocated. Since `outs` may be left out, upstream's
    DestinationStyleOpInterface, which demands it, is not implemented.

    Constraints: ATT1 to ATT19, ATT23, ATT24.

    Example:

    ```mlir
    %o, %lse = fi.attention %q rows(%qo : tensor<?xi32>) over %kv scale(0.125)
        mask(#fi.causal) : tensor<?x32x64xf32> over !fi.ragged_kv<8x64xf32>
        -> tensor<?x32x64xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = (ins
      FI_QueryRows:$query,
      Optional<FI_Table>:$rows,
      FI_AnyKVView:$view,
      Optional<FI_Table>:$positions,
      Optional<FI_SegmentsType>:$segments,
      Optional<F32>:$scaleValue,
      Optional<AnyTypeOf<[RankedTensorOf<[F32]>, MemRefOf<[F32]>]>>:$sink,
      Variadic<FI_Capture>:$captures,
      Variadic<FI_Rows>:$outs,
      Optional<FI_QueryRows>:$queryTail,
      OptionalAttr<F32Attr>:$scale,
      FI_NormaliserAttrInterface:$normaliser,
      OptionalAttr<FI_ScoreAttrInterface>:$scoreAttr,
      OptionalAttr<ArrayAttr>:$masks,
      OptionalAttr<FI_SplitAttr>:$split,
      OptionalAttr<ArrayAttr>:$bounds,
      OptionalAttr<TypedArrayAttrBase<FI_ScheduleAttr, "schedules">>:$schedules,
      OptionalAttr<FI_Pairing>:$pairing);
  let regions = (region AnyRegion:$queryRegion, AnyRegion:$keyRegion,
                        AnyRegion:$scoreRegion, AnyRegion:$maskRegion);
  let results = (outs Variadic<AnyType>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$resultTypes, "::mlir::Value":$query,
                   "::mlir::Value":$rows, "::mlir::Value":$view,
                   "::mlir::FloatAttr":$scale, "::mlir::ValueRange":$captures,
                   "::mlir::ArrayAttr":$masks,
                   "::fi::AttentionRegionBuilder":$score,
                   "::fi::AttentionRegionBuilder":$mask)>
  ];
  let extraClassDeclaration = [{
    ::fi::KVViewTypeInterface getViewType() {
      return ::llvm::cast<::fi::KVViewTypeInterface>(getView().getType());
    }
    ::mlir::ShapedType getQueryType() {
      return ::llvm::cast<::mlir::ShapedType>(getQuery().getType());
    }
    /// The query's operands, by columns.
    ::llvm::SmallVector<::mlir::Value> getQueryParts();
    int64_t getQueryHeads() { return getQueryType().getDimSize(1); }
    int64_t getGroup() { return getQueryHeads() / getViewType().getKVHeads(); }
    bool returnsState();

    /// Types of a region's leading arguments, before the captures.
    static ::llvm::SmallVector<::mlir::Type>
    getScoreArgumentTypes(::mlir::MLIRContext *context);
    static ::llvm::SmallVector<::mlir::Type>
    getMaskArgumentTypes(::mlir::MLIRContext *context);
    static ::llvm::SmallVector<::mlir::Type>
    getTransformArgumentTypes(::mlir::MLIRContext *context);

    /// Adds an empty block with the arguments of the region and the captures.
    ::mlir::Block *addRegionBlock(::mlir::Region &region);
  }];
}

def FI_LoadOp : FI_Op<"load", [
    Pure, TypesMatchWith<"result is an element of the source", "source",
                         "result",
                         "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "element of a captured tensor, inside a region";
  let description = [{
    Reads `source[indices]`. An index out of range reads 0 (LD1), so a region is
    total and may be evaluated outside the batch.

    Example: `%b = fi.load %slopes[%qh] : tensor<32xf32>`
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, AnyMemRef]>:$source,
                       Variadic<Index>:$indices);
  let results = (outs AnyTypeOf<[AnySignlessInteger, AnyFloat, Index]>:$result);
  let assemblyFormat = "$source `[` $indices `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def FI_YieldOp : FI_Op<"yield", [
    Pure, ParentOneOf<["AttentionOp", "AppendOp", "RopeOp"]>, ReturnLike,
    Terminator]> {
  let summary = "value of a region";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

def FI_EmptyOp : FI_Op<"empty", [Pure]> {
  let summary = "the state of no keys";
  let description = [{
    Output 0 and the statistic of no keys for `rows` rows; the identity of
    `fi.merge`.

    Example: `%e = fi.empty rows(%n) : !fi.state<?x32x128xf32, #fi.softmax<base = 2>>`
  }];
  let arguments = (ins Optional<Index>:$rows);
  let results = (outs FI_StateType:$result);
  let assemblyFormat = [{
    (`rows` `(` $rows^ `)`)? attr-dict `:` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def FI_MergeOp : FI_Op<"merge", [Pure]> {
  let summary = "state over the union of disjoint keys";
  let description = [{
    N-ary, associative, with `fi.empty` as identity; weights are normalised before
    they are used. The keys must be disjoint (MRG2): overlapping keys count twice.
    Normalisers that cannot be merged are refused (MRG1).

    Example: `%s = fi.merge %a, %b : !fi.state<?x32x128xf32, #fi.softmax<base = 2>>`
  }];
  let arguments = (ins Variadic<FI_StateType>:$states);
  let results = (outs FI_StateType:$result);
  let assemblyFormat = [{
    $states attr-dict `:` custom<MergeTypes>(ref($states), type($states),
                                             type($result))
  }];
  let hasVerifier = 1;
}

def FI_FinalizeOp : FI_Op<"finalize", [
    AttrSizedOperandSegments, AlwaysSpeculatable,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let summary = "output and statistic of a state";
  let description = [{
    Gives the output, rounded to the result's element type, and the statistic if a
    second result is named. A sink (one logit per query head, natural units) adds
    `exp(sink)` to the weights' sum here, and so counts once (FIN2). Destinations
    in `outs(...)` are memrefs, and then there are no results, or a tensor for each
    result, as those of `fi.attention` (FIN5).

    Example: `%o, %lse = fi.finalize %s sink(%sink : tensor<32xf32>) : !st -> tensor<?x32x128xbf16>, tensor<?x32xf32>`
  }];
  let arguments = (ins FI_StateType:$state,
                       Optional<AnyTypeOf<[RankedTensorOf<[F32]>, MemRefOf<[F32]>]>>:$sink,
                       Variadic<FI_Rows>:$outs);
  let results = (outs Variadic<RankedTensorOf<[F32, F16, BF16]>>:$results);
  let assemblyFormat = [{
    $state (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` qualified(type($state)) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$output, "::mlir::Type":$statistic,
                   "::mlir::Value":$state, "::mlir::Value":$sink)>
  ];
  let extraClassDeclaration = [{
    /// The results, null where they are not asked for or lie in memrefs.
    ::mlir::Value getOutput() {
      return getNumResults() > 0 ? getResult(0) : ::mlir::Value();
    }
    ::mlir::Value getStatistic() {
      return getNumResults() > 1 ? getResult(1) : ::mlir::Value();
    }
  }];
}

def FI_SegmentsOp : FI_Op<"segments", [Pure]> {
  let summary = "the plan's cut of each request's keys";
  let description = [{
    Example: `%g = fi.segments rows(%qo : tensor<?xi32>) over %kv split(#fi.split<fixed = 2048>) : !kv`
  }];
  let arguments = (ins Optional<FI_Table>:$rows, FI_AnyKVView:$view,
                       FI_SplitAttr:$split);
  let results = (outs FI_SegmentsType:$result);
  let assemblyFormat = [{
    (`rows` `(` $rows^ `:` type($rows) `)`)? `over` $view
    `split` `(` qualified($split) `)` attr-dict `:` qualified(type($view))
  }];
}

def FI_MergeSegmentsOp : FI_Op<"merge_segments", [Pure]> {
  let summary = "fold of a segmented state over its slots, in order";
  let arguments = (ins FI_StateType:$state, FI_SegmentsType:$segments);
  let results = (outs FI_StateType:$result);
  let assemblyFormat = [{
    $state `by` $segments attr-dict `:` qualified(type($state)) `->`
    qualified(type($result))
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Append
//===----------------------------------------------------------------------===//

def FI_AppendOp : FI_Op<"append", [
    IsolatedFromAbove,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "new keys and values into a view's memory";
  let description = [{
    Keys and values as the view stores them: latents and tails where it has these.
    `rows` is the indptr [requests + 1] of new tokens; the view's lengths already
    count them. Token `i` of the `n` new tokens of a request becomes key
    `kv_len - n + i`. Values are converted to the view's element type. The view
    must be made, in this program, from memrefs (APP1); new tokens beyond a
    request's keys are an error of the batch (APP3).

    A `key` or `value` region (`tail` over a latent view) transforms pairs of what is
    stored, as regions of `fi.attention` do, at the position of the key that a token
    becomes; with `dims` pairs of the first so many elements, and the rest stays.
    What comes of it is converted, or quantised by the view's scheme.

    Constraints: APP1 to APP9.

    Example: `fi.append %nk, %nv rows(%ap : tensor<?xi32>) to %kv : !t, !t to !kv`
  }];
  let arguments = (ins FI_Rows:$keys, FI_Rows:$values, FI_Table:$rows,
                       FI_AnyKVView:$view, Variadic<FI_Capture>:$captures,
                       OptionalAttr<FI_Pairing>:$pairing,
                       OptionalAttr<I64Attr>:$dims);
  // Of keys and of values; none where nothing is transformed.
  let regions = (region VariadicRegion<AnyRegion>:$transforms);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The region that transforms keys, or values; null for none.
    ::mlir::Region *getTransform(bool ofValues);
  }];
}

#endif // FI_DIALECT_FI_IR_FIOPS_TD
