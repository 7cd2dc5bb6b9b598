//===- FITypes.td - types of the fi dialect ---------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FITYPES_TD
#define FI_DIALECT_FI_IR_FITYPES_TD

include "fi/Dialect/FI/IR/FIBase.td"
include "fi/Dialect/FI/IR/FIInterfaces.td"
include "fi/Dialect/FI/IR/FIAttrs.td"

def FI_ScaledType : FI_Type<"Scaled", "scaled"> {
  let summary = "numbers kept as codes of few bits, and scales";
  let description = [{
    `storage, per = granularity, by = type of scales`: an element of a view whose
    pool holds `storage` and whose value is the stored number times a scale, which
    all elements of the `tensor` share, those of a `head`, those of a head in a
    `page`, or those of a head and a `token`. The view op takes the scales.

    Constraints: QNT1 (storage), QNT2 (scales).

    Example: `!fi.paged_kv<16x8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>`
  }];
  let parameters = (ins "::mlir::Type":$storage,
                        "::fi::Granularity":$granularity,
                        "::mlir::Type":$by);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_BlockScaledType : FI_Type<"BlockScaled", "block_scaled"> {
  let summary = "numbers kept as codes of few bits, and a scale for each block";
  let description = [{
    `storage, block, type of scales`, then an option, `per = head`: an element of a
    view whose value is a stored number times the scale of its block, `block` columns
    of a row of keys or of values. f4E2M1FN is stored as two to an i8, the first
    column in the low half: the pool has `dim / 2` columns. Where the scales are of
    f8E4M3FN (NVFP4), a number of f32 multiplies all elements, or those of a head.

    Constraints: QNT9 (storage and scales), QNT10 (`per`), QNT11 (dims).

    Example: `!fi.paged_kv<16x8x128x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>, HND>`
  }];
  let parameters = (ins "::mlir::Type":$storage, "int64_t":$block,
                        "::mlir::Type":$by, "::fi::Granularity":$granularity);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether numbers of f32, for all or for each head, multiply the blocks.
    bool hasNumbers() const;
  }];
}

def FI_PagedKVType : FI_Type<"PagedKV", "paged_kv", [
    DeclareTypeInterfaceMethods<FI_KVViewTypeInterface,
        ["getKeyScheme", "getValueScheme", "getPoolCount", "getTableCount",
         "getTable"]>]> {
  let summary = "a paged view of keys and values";
  let description = [{
    `page x heads x dim x element, order` (the order in which a page stores
    tokens and heads), then options in this order: `vo = 64` (dim of values, if it
    differs), `v = f16` (element type of values, if it differs), `index = i64` (of
    the tables; i32 if absent), `table = dense` ([requests, pages] with lengths,
    instead of indptr, pages and last page lengths), `fused` (one pool,
    [pages, 2, ...], keys at 0), `two_tables` (pages of values are found by a table of
    their own). The page size may be `?`: it is then read from the pool's shape.

    Elements are floats, or of a scheme: `!fi.scaled` or `!fi.block_scaled`.

    Constraints: KV1 (sizes), KV2 (head dims), KV3 (elements), KV4 (indices).

    Example: `!fi.paged_kv<16x8x128xbf16, HND>`
  }];
  let parameters = (ins "int64_t":$page, "int64_t":$heads, "int64_t":$dim,
                        "int64_t":$valueDimension, "::mlir::Type":$element,
                        "::mlir::Type":$valueElement,
                        "::fi::HeadOrder":$order, "::mlir::Type":$index,
                        "bool":$dense, "bool":$fused, "bool":$twoTables);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_RaggedKVType : FI_Type<"RaggedKV", "ragged_kv", [
    DeclareTypeInterfaceMethods<FI_KVViewTypeInterface,
                                ["getKeyScheme", "getValueScheme"]>]> {
  let summary = "a view of keys and values without pages";
  let description = [{
    `heads x dim x element`, then options in this order: `HND` (heads before
    tokens; tokens first if absent), `vo = 64`, `v = f16`, `index = i64`. Requests
    lie one behind the other, found by an indptr in tokens; without an indptr there
    is one request that has all tokens (a contiguous cache).

    Constraints: KV1 to KV4; QNT3 (scales).

    Example: `!fi.ragged_kv<8x128xbf16>`
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$dim,
                        "int64_t":$valueDimension, "::mlir::Type":$element,
                        "::mlir::Type":$valueElement,
                        "::fi::HeadOrder":$order, "::mlir::Type":$index);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_LatentKVType : FI_Type<"LatentKV", "latent_kv", [
    DeclareTypeInterfaceMethods<FI_KVViewTypeInterface,
        ["getTailDim", "sharesValues", "getPool", "getKeyScheme",
         "getValueScheme"]>]> {
  let summary = "a paged view of latents, which are keys and values at once";
  let description = [{
    `latent + tail x element`, then options in this order: `page = 64` (or `?`: read
    from the pool's shape), `index = i64`, `table = dense`. One head: all query heads
    share it. A key is a latent and, behind it, a tail (of absorbed multi-head latent
    attention: the part that carries positions); its value is the latent. Latents and
    tails lie in pools of their own, [pages, page, dim]. A pool of both is given as
    two parts of its columns.

    Elements are floats or `!fi.scaled`: latents and tails have the same scales.

    Constraints: KV1 to KV4.

    Example: `!fi.latent_kv<512+64xbf16, page = 64>`
  }];
  let parameters = (ins "int64_t":$latent, "int64_t":$tail,
                        "::mlir::Type":$element, "int64_t":$page,
                        "::mlir::Type":$index, "bool":$dense);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_BsrKVType : FI_Type<"BsrKV", "bsr_kv", [
    DeclareTypeInterfaceMethods<FI_KVViewTypeInterface,
                                ["getKeyScheme", "getValueScheme"]>]> {
  let summary = "a view of keys and values, of which each block of rows sees some";
  let description = [{
    `columns x heads x dim x element`, then options in this order: `HND`, `vo = 64`,
    `v = f16`, `index = i64`, as in `!fi.ragged_kv`, and `rows = 16`. The rows of a
    request are cut into blocks of `rows`, its keys into blocks of `columns`, the last
    of which may be smaller; each block of rows has a list of the blocks of keys that
    it sees. Keys and values lie as in a ragged view.

    Constraints: KV1 to KV4, KV12; QNT3 (scales).

    Example: `!fi.bsr_kv<64x8x128xbf16, rows = 16>`
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$heads, "int64_t":$dim,
                        "int64_t":$valueDimension, "::mlir::Type":$element,
                        "::mlir::Type":$valueElement,
                        "::fi::HeadOrder":$order, "::mlir::Type":$index,
                        "int64_t":$rows);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_StateType : FI_Type<"State", "state"> {
  let summary = "partial attention: outputs over some keys, and their statistic";
  let description = [{
    `rows x heads x dim x f32, normaliser`: for each row and head an output
    normalised over its own keys, and the normaliser's statistic. `segmented` adds
    a slot axis made by splitting the keys. Constraints: ST1 to ST3.

    Example: `!fi.state<?x32x128xf32, #fi.softmax<base = 2>>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$heads, "int64_t":$dim,
                        "::mlir::Type":$element,
                        "::fi::NormaliserAttrInterface":$normaliser,
                        "bool":$segmented);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FI_SegmentsType : FI_Type<"Segments", "segments"> {
  let summary = "where the plan cuts the keys of each request";
}

def FI_PlanType : FI_Type<"Plan", "plan"> {
  let summary = "a plan of a program, in the function that runs it";
}

def FI_AnyKVView : Type<
    CPred<"::llvm::isa<::fi::KVViewTypeInterface>($_self)">,
    "KV view", "::mlir::Type">;

#endif // FI_DIALECT_FI_IR_FITYPES_TD
