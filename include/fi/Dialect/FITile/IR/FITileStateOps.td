//===- FITileStateOps.td - states of split keys and of groups --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How pieces of a split tile, and groups of warps, hand their states on. A part
// of FITileOps.td, whose definitions it needs.
//
//===----------------------------------------------------------------------===//
#ifndef FI_DIALECT_FITILE_IR_FITILESTATEOPS_TD
#define FI_DIALECT_FITILE_IR_FITILESTATEOPS_TD

//===----------------------------------------------------------------------===//
// States of split keys
//===----------------------------------------------------------------------===//

def FITile_StoreStateOp : FITile_Op<"store_state", [
    MemoryEffects<[MemWrite]>]> {
  let summary = "stores a partial state in the item's slot";
  let description = [{
    With `part`, that part of the output's columns, as in `fi_tile.store_rows`.
  }];
  let arguments = (ins FITile_Tile:$output, FITile_Tile:$statistic,
                       FITile_WorkType:$work, FITile_ItemType:$item,
                       Optional<Index>:$part);
  let assemblyFormat = [{
    $output `,` $statistic `to` $work `[` $item `]` (`part` $part^)?
    attr-dict `:` type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

def FITile_StoreMergedStateOp : FITile_Op<"store_merged_state", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "stores the state of several pieces in the first one's slot";
  let description = [{
    `index` counts from the item's `slot`, as in `fi_tile.load_state`: the slot loses
    the state that it held. All warps of a worker wait for one another before it, so
    that whoever merges a part of the columns, or rows beside, has loaded that state.
    Of an item without its first rows (`fi_tile.from_row`), each group of warps merges
    rows of its own, and only its warps wait.

    Example: `fi_tile.store_merged_state %o, %l to %work[%it, %i] part %g : tensor<16x32xf32>, tensor<16x1xf32>`
  }];
  let arguments = (ins FITile_Tile:$output, FITile_Tile:$statistic,
                       FITile_WorkType:$work, FITile_ItemType:$item,
                       Index:$index, Optional<Index>:$part);
  let assemblyFormat = [{
    $output `,` $statistic `to` $work `[` $item `,` $index `]` (`part` $part^)?
    attr-dict `:` type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether all warps wait for one another, not those of a group.
    bool synchronises() { return !getItem().getDefiningOp<FromRowOp>(); }
  }];
}

def FITile_LoadStateOp : FITile_Op<"load_state", [MemoryEffects<[MemRead]>]> {
  let summary = "loads the partial state of a slot";
  let description = [{
    `index` counts from the item's `slot`. With `part`, that part of the output's
    columns.
  }];
  let arguments = (ins FITile_WorkType:$work, FITile_ItemType:$item,
                       Index:$index, Optional<Index>:$part);
  let results = (outs FITile_Tile:$output, FITile_Tile:$statistic);
  let assemblyFormat = [{
    $work `[` $item `,` $index `]` (`part` $part^)? attr-dict `:`
    type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Groups of warps
//===----------------------------------------------------------------------===//

def FITile_ShareStateOp : FITile_Op<"share_state", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "lays a group's state out for the other groups";
  let description = [{
    Groups of warps that take key tiles of one item in turn (`key_warps` of the
    schedule) have a state each. All groups wait for one another.

    `offset` is where the states lie in shared memory, once fi-tile-allocate has run.

    Example: `fi_tile.share_state %o, %lse : tensor<16x128xf32>, tensor<16x1xf32>`
  }];
  let arguments = (ins FITile_Tile:$output, FITile_Tile:$statistic,
                       OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = [{
    $output `,` $statistic (`at` $offset^)? attr-dict `:` type($output) `,`
    type($statistic)
  }];
  let hasVerifier = 1;
}

def FITile_LoadGroupStateOp : FITile_Op<"load_group_state", [
    MemoryEffects<[MemRead]>]> {
  let summary = "part of the columns, or of the rows, of a group's state";
  let description = [{
    Of the state of `columns` columns that group `index` shared last: all of its
    rows, or a few from `row` on.

    Example: `%o, %l = fi_tile.load_group_state %i part %g of 128 : tensor<16x32xf32>, tensor<16x1xf32>`
    Example: `%o, %l = fi_tile.load_group_state %i part %c0 of 128 from %r : tensor<2x128xf32>, tensor<2x1xf32>`
  }];
  let arguments = (ins Index:$index, Index:$part, I64Attr:$columns,
                       OptionalAttr<I64Attr>:$offset, Optional<Index>:$row);
  let results = (outs FITile_Tile:$output, FITile_Tile:$statistic);
  let assemblyFormat = [{
    $index `part` $part `of` $columns (`from` $row^)? (`at` $offset^)?
    attr-dict `:` type($output) `,` type($statistic)
  }];
  let hasVerifier = 1;
}

def FITile_GroupsOp : FITile_Op<"groups", [Pure]> {
  let summary = "number of groups of warps";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def FITile_GroupOp : FITile_Op<"group", [Pure]> {
  let summary = "number of this group of warps";
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def FITile_ArriveLastOp : FITile_Op<"arrive_last", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "whether all pieces of the item's tile have stored their states";
  let description = [{
    Each piece of a split tile arrives once, after it has stored its state; true in
    the one that arrives last, which may load all of them. It resets the count for
    the next launch. The same for all warps of a worker.

    `counter` has a counter's number, from the one of the tile's first slot, and how
    many arrive at it: parts of the pieces may meet first, and one of each part then.
    Every slot of the tile has a counter. Absent, all pieces arrive at the first.

    Example: `%last = fi_tile.arrive_last %work[%it]`
    Example: `%last = fi_tile.arrive_last %work[%it] counter %c, %n`
  }];
  let arguments = (ins FITile_WorkType:$work, FITile_ItemType:$item,
                       Variadic<Index>:$counter, OptionalAttr<I64Attr>:$offset);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $work `[` $item `]` (`counter` $counter^)? (`at` $offset^)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // FI_DIALECT_FITILE_IR_FITILESTATEOPS_TD
