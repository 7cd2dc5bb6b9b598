//===- FITileOps.td - operations of the fi_tile dialect -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_FITILEOPS_TD
#define FI_DIALECT_FITILE_IR_FITILEOPS_TD

include "fi/Dialect/FITile/IR/FITileBase.td"
include "fi/Dialect/FITile/IR/FITileLayouts.td"
include "fi/Dialect/FI/IR/FITypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A tile: static, rows x columns, of numbers.
def FITile_Tile : Type<
    CPred<"::fi::tile::isTile($_self)">,
    "tile (tensor of numbers, two static dimensions of at least 1)",
    "::mlir::RankedTensorType">;

// A tile, or one that lies in a buffer.
def FITile_TileOrBuffer : AnyTypeOf<[FITile_Tile, FITile_BufType],
    "tile or buffer", "::mlir::Type">;

//===----------------------------------------------------------------------===//
// Kernels and packages
//===----------------------------------------------------------------------===//

def FITile_KernelOp : FITile_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "the program of one worker";
  let description = [{
    Arguments are the stage's buffers (memrefs and scalars, in the order of the
    manifest) and, last, the work. One kernel is one body of one stage.

    Example:

    ```mlir
    fi_tile.kernel @fill(%o: memref<?x8x64xf32>, %work: !fi_tile.work)
        schedule(#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 1>) {
      %zero = arith.constant dense<0.0> : tensor<16x64xf32>
      fi_tile.for_items %it in %work {
        fi_tile.store_rows %zero, %o[%it] group 1 : tensor<16x64xf32>, memref<?x8x64xf32>
      }
      fi_tile.return
    }
    ```
  }];
  let arguments = (ins
      SymbolNameAttr:$sym_name,
      TypeAttrOf<FunctionType>:$function_type,
      FI_ScheduleAttr:$schedule,
      OptionalAttr<StrAttr>:$sym_visibility,
      OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::mlir::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::mlir::BlockArgument getWork() {
      return getBody().front().getArguments().back();
    }
  }];
}

def FITile_ReturnOp : FITile_Op<"return", [
    Pure, HasParent<"KernelOp">, ReturnLike, Terminator]> {
  let summary = "end of a kernel";
  let assemblyFormat = "attr-dict";
}

def FITile_PackageOp : FITile_Op<"package", [Symbol]> {
  let summary = "manifest of a program's kernels";
  let description = [{
    What docs/abi.md calls the manifest, as a dictionary; `fi-translate
    --fi-manifest` prints it as JSON.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DictionaryAttr:$manifest);
  let assemblyFormat = "$sym_name $manifest attr-dict";
}

//===----------------------------------------------------------------------===//
// Items and loops
//===----------------------------------------------------------------------===//

def FITile_ForItemsOp : FITile_Op<"for_items", [
    SingleBlock, SingleBlockImplicitTerminator<"YieldOp">,
    RecursiveMemoryEffects]> {
  let summary = "loop over the work items of this worker";
  let description = [{
    Carries values as `scf.for` does, in kernels that are lowered: where rings of
    buffers between roles are.
  }];
  let arguments = (ins FITile_WorkType:$work, Variadic<AnyType>:$inits);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getItem() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getCarried() {
      return getBody().getArguments().drop_front();
    }
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$work,
                             CArg<"::mlir::ValueRange", "{}">:$inits)>];
}

def FITile_ItemOp : FITile_Op<"item", [Pure]> {
  let summary = "field of a work item";
  let description = [{
    Example: `%n = fi_tile.item %it[kv_len]`
  }];
  let arguments = (ins FITile_ItemType:$item, FITile_FieldAttr:$field);
  let results = (outs Index:$result);
  let assemblyFormat = "$item `[` custom<EnumKeyword>($field) `]` attr-dict";
}

def FITile_FromRowOp : FITile_Op<"from_row", [Pure]> {
  let summary = "an item without its first rows";
  let description = [{
    `row_begin` is `row` rows further on, `row_count` as many less; all other fields
    are the item's. Tiles that are loaded from states of it, or stored to them, begin
    at that row, so that a few rows at a time can be merged.

    Example: `%rest = fi_tile.from_row %it[%r]`
  }];
  let arguments = (ins FITile_ItemType:$item, Index:$row);
  let results = (outs FITile_ItemType:$result);
  let assemblyFormat = "$item `[` $row `]` attr-dict";
}

def FITile_ForKeysOp : FITile_Op<"for_keys", [
    SingleBlock, RecursiveMemoryEffects]> {
  let summary = "loop over the visited key tiles of an item";
  let description = [{
    The body runs for each tile of `step` keys in the item's ranges: full ones
    (every key visible to every row), partial ones, or all (full ones first). Its
    first argument is the index of the tile's first key, a multiple of `step`; the
    others carry values as in `scf.for`.

    Example:

    ```mlir
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(%a = %zero)
        -> (tensor<16x64xf32>) {
      fi_tile.yield %a : tensor<16x64xf32>
    }
    ```

    `first` and `last` (of all) are the one tile that comes first or last, if there is
    any; `rest` are the tiles of a part without the first of all.

    Example: `fi_tile.for_keys %t in %it partial rest step 64 { ... }`
  }];
  let arguments = (ins FITile_ItemType:$item, Variadic<AnyType>:$inits,
                       FITile_PartAttr:$part, I64Attr:$step,
                       OptionalAttr<FITile_SelectionAttr>:$selection);
  let useCustomPropertiesEncoding = 1;
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getKey() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getCarried() {
      return getBody().getArguments().drop_front();
    }
  }];
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$item,
                                 "::mlir::ValueRange":$inits,
                                 "::fi::tile::Part":$part, "int64_t":$step,
                                 CArg<"std::optional<::fi::tile::Selection>", "{}">:$selection)>];
}

def FITile_YieldOp : FITile_Op<"yield", [
    Pure, ReturnLike, Terminator,
    ParentOneOf<["ForItemsOp", "ForKeysOp"]>]> {
  let summary = "end of a loop body";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let builders = [OpBuilder<(ins), [{ }]>];
}

//===----------------------------------------------------------------------===//
// Views, loads and stores
//===----------------------------------------------------------------------===//

def FITile_ViewOp : FITile_Op<"view", [Pure, AttrSizedOperandSegments]> {
  let summary = "KV view from its pools and page table";
  let description = [{
    Lengths and table offsets come with the items. One pool where the view is
    fused. Where keys and values have page tables of their own, that of keys comes
    first.

    Example: `%kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x8x16x128xf32>, memref<?x8x16x128xf32> -> !fi.paged_kv<16x8x128xf32, HND>`
  }];
  let arguments = (ins Variadic<AnyMemRef>:$pools, Variadic<AnyMemRef>:$pages);
  let results = (outs FI_AnyKVView:$result);
  let assemblyFormat = [{
    $pools (`pages` `(` $pages^ `:` type($pages) `)`)? attr-dict
    `:` type($pools) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def FITile_LoadRowsOp : FITile_Op<"load_rows", [
    MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "tile of an item's packed rows";
  let description = [{
    Packed row `r` of the tile is row `q_begin + (row_begin + r) / group` and head
    `kv_head * group + (row_begin + r) % group` of the source, [rows, heads, dim],
    [rows, heads] or, of one head, [rows]. Rows beyond `row_count` repeat the last valid
    one. A result of a wider float type is converted.

    With `head` the rows are of that head, whatever the item's is, and the group is 1.
    With `from`, column `c` of the tile is column `first + c * step` of the rows.

    Example: `%q = fi_tile.load_rows %src[%it] group 4 : memref<?x32x128xbf16> -> tensor<128x128xbf16>`
  }];
  let arguments = (ins AnyMemRef:$source, FITile_ItemType:$item, I64Attr:$group,
                       Optional<Index>:$head, Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    $source `[` $item `]` `group` $group (`head` $head^)?
    (`from` $first^ `step` $step)? attr-dict `:` type($source) `->`
    type($result)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source,
                   "::mlir::Value":$item, "int64_t":$group), [{
      build($_builder, $_state, result, source, item, group,
            /*head=*/::mlir::Value(), /*first=*/::mlir::Value(), /*step=*/1);
    }]>
  ];
  // Version 1 has no columns.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
}

def FITile_StoreRowsOp : FITile_Op<"store_rows", [
    MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "stores the valid rows of a tile";
  let description = [{
    Addresses as in `fi_tile.load_rows`; rows beyond `row_count` are not stored.
    With `part`, the tile is that part of the columns, of parts of its width; a value
    per row is stored with part 0.
  }];
  let arguments = (ins FITile_Tile:$tile, AnyMemRef:$target,
                       FITile_ItemType:$item, I64Attr:$group,
                       Optional<Index>:$part, Optional<Index>:$head,
                       Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "1">:$step);
  let assemblyFormat = [{
    $tile `,` $target `[` $item `]` `group` $group (`part` $part^)?
    (`head` $head^)? (`from` $first^ `step` $step)?
    attr-dict `:` type($tile) `,` type($target)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Value":$tile, "::mlir::Value":$target,
                   "::mlir::Value":$item, "int64_t":$group,
                   "::mlir::Value":$part), [{
      build($_builder, $_state, tile, target, item, group, part,
            /*head=*/::mlir::Value(), /*first=*/::mlir::Value(), /*step=*/1);
    }]>
  ];
  // Version 1 has no columns.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
}

def FITile_LoadKVOp : FITile_Op<"load_kv", [MemoryEffects<[MemRead]>]> {
  let summary = "tile of keys or values of an item";
  let description = [{
    Row `j` of the tile is key (or value) `key + j` of the item's request and KV
    head. Keys whose last columns lie in a pool of their own come in two tiles, `keys`
    and `tail`. Rows beyond `kv_len` repeat the last one, so that what lies in unused
    slots cannot reach a result. A result of a wider float type is converted, as is
    one of floats from i8: what is scaled in memory counts as the numbers stored.

    Example: `%k = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<64x128xbf16>`
  }];
  let arguments = (ins FI_KVPartAttr:$part, FI_AnyKVView:$view,
                       FITile_ItemType:$item, Index:$key);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $view `[` $item `,` $key `]` attr-dict `:` qualified(type($view)) `->`
    type($result)
  }];
  let hasVerifier = 1;
}

def FITile_LoadScalesOp : FITile_Op<"load_scales", [MemoryEffects<[MemRead]>]> {
  let summary = "scales of a tile's keys or values";
  let description = [{
    Element `j`, along the dimension that is not 1, is the scale of key (or value)
    `key + j` of the item's request and KV head, of a view that scales each page or
    token of them; beyond `kv_len` that of the last one. Where the view scales blocks
    of a row, the tile is of all columns, and element `j, c` is the scale of the block
    of column `c`.

    Example: `%s = fi_tile.load_scales keys %scales, %kv[%it, %t] : memref<?x8x16xf32>, !kv -> tensor<1x64xf32>`
  }];
  let arguments = (ins FI_KVPartAttr:$part, AnyMemRef:$scales,
                       FI_AnyKVView:$view, FITile_ItemType:$item, Index:$key);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $scales `,` $view `[` $item `,` $key `]`
    attr-dict `:` type($scales) `,` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether blocks of a row have scales; else pages or tokens have.
    bool isOfBlocks() { return getBlockScheme() != nullptr; }
    ::fi::BlockScaledType getBlockScheme() {
      return ::fi::getBlockScaledType(
          ::llvm::cast<::fi::KVViewTypeInterface>(getView().getType()),
          getPart() == ::fi::KVPart::Values);
    }
  }];
}

def FITile_StoreScalesOp : FITile_Op<"store_scales", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores the scales of the blocks of a tile's valid rows";
  let description = [{
    Of each row `r < row_count` the first column of each block becomes the scale of
    that block of key (or value) `key + r` of the item's request and KV head: codes of
    eight bits, whatever the scales' type.

    Example: `fi_tile.store_scales keys %codes to %scales, %kv[%it, %t] : tensor<16x64xi8>, memref<?x8x16x4xf8E4M3FN>, !kv`
  }];
  let arguments = (ins FI_KVPartAttr:$part, FITile_Tile:$tile, AnyMemRef:$scales,
                       FI_AnyKVView:$view, FITile_ItemType:$item, Index:$key);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $tile `to` $scales `,` $view `[` $item `,` $key `]`
    attr-dict `:` type($tile) `,` type($scales) `,` qualified(type($view))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::fi::BlockScaledType getBlockScheme() {
      return ::fi::getBlockScaledType(
          ::llvm::cast<::fi::KVViewTypeInterface>(getView().getType()),
          getPart() == ::fi::KVPart::Values);
    }
  }];
}

def FITile_StoreKVOp : FITile_Op<"store_kv", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores a tile's valid rows as keys or values of an item";
  let description = [{
    Row `r` of the tile, for `r < row_count`, becomes key (or value) `key + r` of
    the item's request and KV head. With `from`, column `c` of the tile is column
    `first + c * step` of the row, and other columns are not stored. Codes of 4 bits are
    those of the elements, of i8.
  }];
  let arguments = (ins FI_KVPartAttr:$part, FITile_Tile:$tile,
                       FI_AnyKVView:$view, FITile_ItemType:$item, Index:$key,
                       Optional<Index>:$first,
                       DefaultValuedAttr<I64Attr, "1">:$step);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $tile `,` $view `[` $item `,` $key `]`
    (`from` $first^ `step` $step)? attr-dict `:` type($tile) `,`
    qualified(type($view))
  }];
  let builders = [
    OpBuilder<(ins "::fi::KVPart":$part, "::mlir::Value":$tile,
                   "::mlir::Value":$view, "::mlir::Value":$item,
                   "::mlir::Value":$key), [{
      build($_builder, $_state, part, tile, view, item, key,
            /*first=*/::mlir::Value(), /*step=*/1);
    }]>
  ];
  // Version 1 has no columns.
  let useCustomPropertiesEncoding = 1;
  let hasVerifier = 1;
}

def FITile_GatherOp : FITile_Op<"gather", [MemoryEffects<[MemRead]>]> {
  let summary = "elements of a captured tensor at index tiles";
  let description = [{
    Indices are scalars or tiles of the result's shape. An index out of range
    reads 0. All-scalar indices give a scalar.

    With `bits` the source is a row of integers, of which the index counts bits, those
    of a word from the least significant one on; the result is i1.

    Example: `%x = fi_tile.gather %doc[%req, %kp] : memref<?x?xi32>, index, tensor<1x64xindex> -> tensor<1x64xi32>`
    Example: `%b = fi_tile.gather %mask[%i] bits : memref<?xi32>, tensor<128x64xindex> -> tensor<128x64xi1>`
  }];
  let arguments = (ins AnyMemRef:$source, Variadic<AnyType>:$indices,
                       UnitAttr:$bits);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $source `[` $indices `]` (`bits` $bits^)? attr-dict `:` type($source)
    (`,` type($indices)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

def FITile_LoadColumnsOp : FITile_Op<"load_columns", [
    MemoryEffects<[MemRead]>]> {
  let summary = "a captured vector as a row";
  let description = [{
    A value per column, such as the weights of a norm.

    Example: `%w = fi_tile.load_columns %weight : memref<4096xbf16> -> tensor<1x4096xbf16>`
  }];
  let arguments = (ins AnyMemRef:$source);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def FITile_IotaOp : FITile_Op<"iota", [Pure]> {
  let summary = "consecutive indices along a row or a column";
  let description = [{
    Element `i` along the dimension that is not 1 is `base + i`.

    Example: `%kp = fi_tile.iota %t : tensor<1x64xindex>`
  }];
  let arguments = (ins Index:$base);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = "$base attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FITile_BroadcastOp : FITile_Op<"broadcast", [Pure]> {
  let summary = "tile that repeats a row or a column";
  let description = [{
    Example: `%m2 = fi_tile.broadcast %m : tensor<128x1xf32> -> tensor<128x64xf32>`
  }];
  let arguments = (ins FITile_Tile:$source);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def FITile_ColumnsOp : FITile_Op<"columns", [Pure]> {
  let summary = "every n-th column of a tile";
  let description = [{
    Element (r, c) of the result is element (r, first + c * step) of the source: one
    half of a tile, or its even or odd columns.

    Example: `%y = fi_tile.columns %k from 1 step 2 : tensor<64x128xf32> -> tensor<64x64xf32>`
  }];
  let arguments = (ins FITile_Tile:$source, I64Attr:$first, I64Attr:$step);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    $source `from` $first `step` $step attr-dict `:` type($source) `->`
    type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FITile_DotOp : FITile_Op<"dot", [
    Pure, OptionalTypesMatchWith<"acc has the type of the result", "result",
                                 "acc", "$_self">]> {
  let summary = "matrix product with accumulation in f32";
  let description = [{
    `a [m, k]` times `b [k, n]`, or `b [n, k]` with `transpose`, plus `acc` if given.
    In the placed form operands may lie in buffers, `b` always does. With `warpgroup`
    four warps multiply together (wgmma), and buffers have panels. If their types
    differ, both are f16, bf16 or f32 there, and are multiplied in f32; or `b` is of
    f8E4M3FN, f8E5M2 or i8, and its numbers are converted to the type of `a`, f16 or
    bf16, which holds them all. Both may be of f8E4M3FN or f8E5M2, with `transpose`: tensor
    cores multiply them as they are.

    Example: `%s = fi_tile.dot %q, %k transpose : tensor<128x64xf32>, tensor<64x64xf32> -> tensor<128x64xf32>`
  }];
  let arguments = (ins FITile_TileOrBuffer:$a, FITile_TileOrBuffer:$b,
                       Optional<FITile_Tile>:$acc, UnitAttr:$transpose,
                       UnitAttr:$warpgroup);
  let useCustomPropertiesEncoding = 1;
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` `(` $acc^ `)`)? (`transpose` $transpose^)?
    (`warpgroup` $warpgroup^)? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FITile_MaskOp : FITile_Op<"mask", [
    Pure, AllTypesMatch<["scores", "result"]>]> {
  let summary = "scores, -inf where a key is not visible";
  let description = [{
    In a loop over full tiles every key is visible, and the op is the scores.

    Example: `%x = fi_tile.mask %s where %ok : tensor<128x64xf32>`
  }];
  let arguments = (ins FITile_Tile:$scores, FITile_Tile:$visible);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    $scores `where` $visible attr-dict `:` type($scores) `,` type($visible)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FITile_BlockMaxOp : FITile_Op<"block_max", [Pure, SameOperandsAndResultType]> {
  let summary = "the largest magnitude of each block of columns";
  let description = [{
    Element `r, c` is the largest |x| of the `block` columns of row `r` that `c` is one
    of. What a NaN makes of its block is any number.

    Example: `%m = fi_tile.block_max %x block 16 : tensor<16x64xf32>`
  }];
  let arguments = (ins FITile_Tile:$source, I64Attr:$block);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = "$source `block` $block attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FITile_ReduceOp : FITile_Op<"reduce", [Pure]> {
  let summary = "row reduction";
  let description = [{
    To one column, or to `n` columns, where column `j` of the result reduces the
    columns `j, j + n, j + 2n, ...` of the source.

    Where several warps have a row in common they tell one another their parts
    through shared memory, at the attribute `fi_tile.offset` that fi-tile-allocate
    gives it, and all warps of the worker come here together.

    Example: `%m = fi_tile.reduce max %x : tensor<128x64xf32> -> tensor<128x1xf32>`
  }];
  let arguments = (ins FITile_ReduceKindAttr:$kind, FITile_Tile:$source);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    custom<EnumKeyword>($kind) $source attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FITile_AnyOp : FITile_Op<"any", [Pure]> {
  let summary = "whether any element is true";
  let description = [{
    Of those that the lanes of one warp hold: the answer may differ between warps,
    and nothing that warps do together may depend on it. Without layouts: of the
    tile.

    Example: `%b = fi_tile.any %c : tensor<128x1xi1>`
  }];
  let arguments = (ins FITile_Tile:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Normalisers, until fi-tile-online-softmax
//===----------------------------------------------------------------------===//

def FITile_InitOp : FITile_Op<"init", [Pure]> {
  let summary = "running state of a normaliser before the first key";
  let description = [{
    The accumulator and what the normaliser keeps beside it.
  }];
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser);
  let results = (outs Variadic<FITile_Tile>:$running);
  // In parentheses, since an attribute takes a type that follows it.
  let assemblyFormat = "`(` $normaliser `)` attr-dict `:` type($running)";
  let hasVerifier = 1;
}

def FITile_UpdateOp : FITile_Op<"update", [
    Pure, RangedTypesMatchWith<"results have the types of the running state",
                               "running", "results", "$_self">]> {
  let summary = "running state after a tile of keys";
  let description = [{
    Scores are in natural units, -inf where masked.
  }];
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser,
                       FITile_Tile:$scores, FITile_Tile:$values,
                       Variadic<FITile_Tile>:$running);
  let results = (outs Variadic<FITile_Tile>:$results);
  let assemblyFormat = [{
    $normaliser `scores` `(` $scores `)` `values` `(` $values `)` `into` `(`
    $running `)` attr-dict `:` type($scores) `,` type($values) `into`
    type($running)
  }];
  let hasVerifier = 1;
}

def FITile_FoldOp : FITile_Op<"fold", [Pure]> {
  let summary = "running state with finalised states folded in";
  let description = [{
    Merges many states with one product per element for each, and finalises once.
    States folded in together share the update of the running state, so that they
    do not wait for one another.

    Example: `%r:3 = fi_tile.fold #fi.softmax<base = 2> (%o, %s), (%p, %t) into (%a, %m, %l) : tensor<16x32xf32>, tensor<16x1xf32> into tensor<16x32xf32>, tensor<16x1xf32>, tensor<16x1xf32>`
  }];
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser,
                       Variadic<FITile_Tile>:$tiles);
  let results = (outs Variadic<FITile_Tile>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Output and statistic of each state in turn.
    ::mlir::OperandRange getStates() {
      return getTiles().drop_back(getNumResults());
    }
    ::mlir::OperandRange getRunning() {
      return getTiles().take_back(getNumResults());
    }
  }];
}

def FITile_FinalizeOp : FITile_Op<"finalize", [
    Pure, AttrSizedOperandSegments]> {
  let summary = "output and statistic of a running state";
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser,
                       Variadic<FITile_Tile>:$running,
                       Optional<FITile_Tile>:$sink);
  let results = (outs FITile_Tile:$output, FITile_Tile:$statistic);
  let assemblyFormat = [{
    $normaliser $running (`sink` `(` $sink^ `:` type($sink) `)`)? attr-dict `:`
    type($running) `->` type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

def FITile_MergeOp : FITile_Op<"merge", [
    Pure, AllTypesMatch<["outputA", "outputB", "output"]>,
    AllTypesMatch<["statisticA", "statisticB", "statistic"]>]> {
  let summary = "state over the keys of two states";
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser,
                       FITile_Tile:$outputA, FITile_Tile:$statisticA,
                       FITile_Tile:$outputB, FITile_Tile:$statisticB);
  let results = (outs FITile_Tile:$output, FITile_Tile:$statistic);
  let assemblyFormat = [{
    $normaliser `(` $outputA `,` $statisticA `)` `,` `(` $outputB `,`
    $statisticB `)` attr-dict `:` type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

def FITile_SinkOp : FITile_Op<"sink", [
    Pure, AllTypesMatch<["inputOutput", "output"]>,
    AllTypesMatch<["inputStatistic", "sink", "statistic"]>]> {
  let summary = "a finalised state with a sink added";
  let arguments = (ins FI_NormaliserAttrInterface:$normaliser,
                       FITile_Tile:$inputOutput, FITile_Tile:$inputStatistic,
                       FITile_Tile:$sink);
  let results = (outs FITile_Tile:$output, FITile_Tile:$statistic);
  let assemblyFormat = [{
    $normaliser $inputOutput `,` $inputStatistic `,` $sink attr-dict `:`
    type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

include "fi/Dialect/FITile/IR/FITileStateOps.td"
include "fi/Dialect/FITile/IR/FITilePlacedOps.td"

#endif // FI_DIALECT_FITILE_IR_FITILEOPS_TD
