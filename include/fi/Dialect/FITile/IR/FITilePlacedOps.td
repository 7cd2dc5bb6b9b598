//===- FITilePlacedOps.td - operations of the placed form -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels, copies into shared memory, changes of layout, and time stamps.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_FITILEPLACEDOPS_TD
#define FI_DIALECT_FITILE_IR_FITILEPLACEDOPS_TD

include "fi/Dialect/FITile/IR/FITileLayouts.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def FITile_ChannelOp : FITile_Op<"channel", [
    MemoryEffects<[MemAlloc]>, HasParent<"KernelOp">]> {
  let summary = "channel through shared memory";
  let description = [{
    `offset` is where its buffers begin in the worker's shared memory, in bytes, once
    fi-tile-allocate has run, and `barriers` where the mbarriers of a channel between
    two roles do: for each buffer one that says it is full, then for each one that says
    it is empty.

    Example: `%kc = fi_tile.channel : !fi_tile.chan<64x128xf16, #sw, depth = 2>`
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<I64Attr>:$barriers);
  let useCustomPropertiesEncoding = 1;
  let results = (outs FITile_ChanType:$result);
  let assemblyFormat = [{
    (`at` $offset^)? (`barriers` $barriers^)? attr-dict `:` qualified(type($result))
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::IntegerAttr":$offset),
                            [{ build($_builder, $_state, type, offset, {}); }]>];
}

def FITile_RoleOp : FITile_Op<"role", [
    SingleBlock, NoTerminator, RecursiveMemoryEffects, HasParent<"KernelOp">]> {
  let summary = "what some of a worker's warps do";
  let description = [{
    The roles of a kernel run at the same time, each by warps of its own: the first
    role has the first `warps`, the next one those behind them. What a role takes from
    outside is the kernel's arguments, channels, views and constants; roles tell one
    another everything else through channels, of which one role is the producer and one
    the consumer. With `registers`, each lane has so many, whatever the others have:
    warpgroups hand registers to one another (setmaxnreg).

    Example: `fi_tile.role @load warps 4 registers 40 { ... }`
  }];
  let arguments = (ins SymbolNameAttr:$name, I64Attr:$warps,
                       OptionalAttr<I64Attr>:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `warps` $warps (`registers` $registers^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def FITile_AcquireOp : FITile_Op<"acquire", [
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the buffer is one of the channel", "channel", "buffer",
                   "::llvm::cast<::fi::tile::ChanType>($_self).getBuffer()">]> {
  let summary = "the channel's next free buffer";
  let description = [{
    Waits until the consumer has released it.
  }];
  let arguments = (ins FITile_ChanType:$channel);
  let results = (outs FITile_BufType:$buffer);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
}

def FITile_CommitOp : FITile_Op<"commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "hands the acquired buffer to the consumer";
  let description = [{
    It arrives when the copies into it since the acquire have.
  }];
  let arguments = (ins FITile_ChanType:$channel);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
}

def FITile_GetOp : FITile_Op<"get", [
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the buffer is one of the channel", "channel", "buffer",
                   "::llvm::cast<::fi::tile::ChanType>($_self).getBuffer()">]> {
  let summary = "the oldest committed buffer";
  let description = [{
    Waits until its copies have arrived.
  }];
  let arguments = (ins FITile_ChanType:$channel);
  let results = (outs FITile_BufType:$buffer);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
}

def FITile_ReleaseOp : FITile_Op<"release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives the oldest gotten buffer back";
  let description = [{
    After everything that reads the buffer.
  }];
  let arguments = (ins FITile_ChanType:$channel);
  let assemblyFormat = "$channel attr-dict `:` qualified(type($channel))";
}

def FITile_SlotOp : FITile_Op<"slot", [
    Pure,
    TypesMatchWith<"the buffer is one of the channel", "channel", "buffer",
                   "::llvm::cast<::fi::tile::ChanType>($_self).getBuffer()">]> {
  let summary = "a buffer of a channel by number";
  let description = [{
    What acquire and get become when fi-tile-lower-channels has made waiting
    explicit.
  }];
  let arguments = (ins FITile_ChanType:$channel, Index:$number);
  let results = (outs FITile_BufType:$buffer);
  let assemblyFormat = [{
    $channel `[` $number `]` attr-dict `:` qualified(type($channel))
  }];
}

def FITile_AwaitOp : FITile_Op<"await", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until a buffer of a channel between roles is full or empty";
  let description = [{
    Its mbarrier has gone through a phase of the parity `phase`, 0 or 1: the first one
    has parity 0, and the one before it, of parity 1, is over from the start.

    Example: `fi_tile.await full %kc[%n] phase %p : !c`
  }];
  let arguments = (ins FITile_ArrivalAttr:$arrival, FITile_ChanType:$channel,
                       I32:$number, I32:$phase);
  let assemblyFormat = [{
    custom<EnumKeyword>($arrival) $channel `[` $number `]` `phase` $phase attr-dict
    `:` qualified(type($channel))
  }];
}

def FITile_ArriveOp : FITile_Op<"arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "says that a buffer of a channel between roles is full or empty";
  let description = [{
    Full: by the one warp of the role that fills the buffer, once its copies are there.
    Empty: by each warp of the role, which reads the buffer no more.

    Example: `fi_tile.arrive empty %kc[%n] : !c`
  }];
  let arguments = (ins FITile_ArrivalAttr:$arrival, FITile_ChanType:$channel,
                       I32:$number);
  let assemblyFormat = [{
    custom<EnumKeyword>($arrival) $channel `[` $number `]` attr-dict `:`
    qualified(type($channel))
  }];
}

def FITile_DotStartOp : FITile_Op<"dot_start", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins a product of warpgroups";
  let description = [{
    As `fi_tile.dot ... warpgroup`, of which nothing is there until it is waited for:
    until then nobody may write to what it reads, the buffers and the registers of `a`
    and `acc`. Products end in the order in which they begin.

    Example: `%f = fi_tile.dot_start %q, %k transpose : !b, !b -> !fi_tile.future<!T>`
  }];
  let arguments = (ins FITile_TileOrBuffer:$a, FITile_BufType:$b,
                       Optional<FITile_Tile>:$acc, UnitAttr:$transpose);
  let results = (outs FITile_FutureType:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` `(` $acc^ `:` type($acc) `)`)? (`transpose` $transpose^)? attr-dict
    `:` type($a) `,` qualified(type($b)) `->` qualified(type($result))
  }];
  let hasVerifier = 1;
}

def FITile_WaitOp : FITile_Op<"wait", [
    MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"the result is the future's tile", "future", "result",
                   "::llvm::cast<::fi::tile::FutureType>($_self).getTile()">,
    RangedTypesMatchWith<"what is kept keeps its types", "kept", "passed",
                         "$_self">]> {
  let summary = "waits for a product";
  let description = [{
    The products that began before it are done then, too. `keep` names tiles that are
    computed before and used behind: what is made of them is not made earlier, while
    the product still reads registers.

    Example: `%o, %e = fi_tile.wait %f keep(%p : !P) : !fi_tile.future<!T>`
  }];
  let arguments = (ins FITile_FutureType:$future, Variadic<FITile_Tile>:$kept);
  let results = (outs FITile_Tile:$result, Variadic<FITile_Tile>:$passed);
  let builders = [OpBuilder<(ins "::mlir::Value":$future,
                                 "::mlir::ValueRange":$kept), [{
    $_state.addTypes(::llvm::cast<FutureType>(future.getType()).getTile());
    $_state.addTypes(kept.getTypes());
    $_state.addOperands(future);
    $_state.addOperands(kept);
  }]>];
  let assemblyFormat = [{
    $future (`keep` `(` $kept^ `:` type($kept) `)`)? attr-dict `:`
    qualified(type($future))
  }];
}

def FITile_CopyRowsOp : FITile_Op<"copy_rows", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts a copy of an item's packed rows to a buffer";
  let description = [{
    Rows as in `fi_tile.load_rows`. `via(tma)`: by tensor copies, boxes of memory that
    the hardware moves; rows beyond the request's are any then (TILE41).

    Example: `fi_tile.copy_rows %q[%it] to %b group 4 via(tma) : memref<?x32x128xf16>, !fi_tile.buf<...>`
  }];
  let arguments = (ins AnyMemRef:$source, FITile_ItemType:$item,
                       FITile_BufType:$buffer, I64Attr:$group, UnitAttr:$tma);
  let assemblyFormat = [{
    $source `[` $item `]` `to` $buffer `group` $group (`via` `(` `tma` `)` $tma^)?
    attr-dict `:` type($source)
    `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1;
}

def FITile_CopyKVOp : FITile_Op<"copy_kv", [
    AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts a copy of keys or values to a buffer";
  let description = [{
    Rows as in `fi_tile.load_kv`; nothing is copied where `valid` is given and false.
    `via(tma)`: tiles whose keys are all of the request by tensor copies, boxes of
    memory that the hardware moves; the others by the threads (TILE41).

    Example: `fi_tile.copy_kv keys %kv[%it, %t] to %b via(tma) : !kv, !fi_tile.buf<...>`
  }];
  let arguments = (ins FI_KVPartAttr:$part, FI_AnyKVView:$view,
                       FITile_ItemType:$item, Index:$key,
                       FITile_BufType:$buffer, Optional<I1>:$valid,
                       Optional<FITile_EntriesType>:$entries, UnitAttr:$tma);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $view `[` $item `,` $key `]` `to` $buffer
    (`if` $valid^)? (`entries` `(` $entries^ `:` qualified(type($entries)) `)`)?
    (`via` `(` `tma` `)` $tma^)? attr-dict `:` qualified(type($view)) `,`
    qualified(type($buffer))
  }];
  let extraClassDeclaration = [{
    /// Keys that lie one after another in memory wherever a tile begins: a page's,
    /// or all of the tile's; 0 where that is not known.
    int64_t getBoxRows();
  }];
  let hasVerifier = 1;
  let useCustomPropertiesEncoding = 1;
}

def FITile_LocateOp : FITile_Op<"locate", [MemoryEffects<[MemRead]>]> {
  let summary = "looks the pages of a tile of keys up";
  let description = [{
    For copies of keys or values that come later: the table is read ahead of them.
    Where `valid` is false nothing is read. `table` is the number of the view's page
    table, where there are two.

    Example: `%e = fi_tile.locate %kv[%it, %t] if %valid : !kv -> !fi_tile.entries<!b>`
  }];
  let arguments = (ins FI_AnyKVView:$view, FITile_ItemType:$item, Index:$key,
                       I1:$valid, OptionalAttr<I64Attr>:$table);
  let results = (outs FITile_EntriesType:$result);
  let assemblyFormat = [{
    $view `[` $item `,` $key `]` `if` $valid (`table` $table^)? attr-dict `:` qualified(type($view))
    `->` qualified(type($result))
  }];
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$view,
                   "::mlir::Value":$item, "::mlir::Value":$key,
                   "::mlir::Value":$valid, "unsigned":$table)>
  ];
}

// What is only fetched changes nothing that anybody reads, but is not dead.
def FITile_SecondCache : Resource<"::fi::tile::SecondCache">;

def FITile_PrefetchKVOp : FITile_Op<"prefetch_kv", [
    MemoryEffects<[MemWrite<FITile_SecondCache>]>]> {
  let summary = "has keys or values brought near that a copy will ask for";
  let description = [{
    Rows as in `fi_tile.copy_kv`, from memory to the cache that all multiprocessors share;
    none where `valid` is false. No element is read, so that it may stand in front of
    `fi_tile.await_launches`: what the launch in front writes, copies see.

    Example: `fi_tile.prefetch_kv keys %kv[%it, %t] if %valid entries(%e : !fi_tile.entries<!b>) : !kv`
  }];
  let arguments = (ins FI_KVPartAttr:$part, FI_AnyKVView:$view,
                       FITile_ItemType:$item, Index:$key, I1:$valid,
                       FITile_EntriesType:$entries);
  let assemblyFormat = [{
    custom<EnumKeyword>($part) $view `[` $item `,` $key `]` `if` $valid
    `entries` `(` $entries `:` qualified(type($entries)) `)` attr-dict `:`
    qualified(type($view))
  }];
  let extraClassDeclaration = [{
    bool getTma() { return false; }
  }];
  let hasVerifier = 1;
}

def FITile_ReadOp : FITile_Op<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "tile of a buffer, in registers";
  let description = [{
    Column `c` of the tile is column `first + c * step` of the buffer: all of them, one
    half, or every other one.

    Example: `%y = fi_tile.read %b from 1 step 2 : !fi_tile.buf<...> -> tensor<64x64xf16, #c>`
  }];
  let arguments = (ins FITile_BufType:$buffer, OptionalAttr<I64Attr>:$first,
                       OptionalAttr<I64Attr>:$step);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = [{
    $buffer (`from` $first^ `step` $step)? attr-dict `:`
    qualified(type($buffer)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def FITile_WriteOp : FITile_Op<"write", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "fills an acquired buffer with a tile";
  let description = [{
    All threads of the worker write their elements; they see those of others after
    the commit and a get.

    Example: `fi_tile.write %x to %b : tensor<64x64xf32, #c>, !fi_tile.buf<...>`
  }];
  let arguments = (ins FITile_Tile:$tile, FITile_BufType:$buffer);
  let assemblyFormat = [{
    $tile `to` $buffer attr-dict `:` type($tile) `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def FITile_RelayoutOp : FITile_Op<"relayout", [Pure]> {
  let summary = "the same tile in another layout";
  let arguments = (ins FITile_Tile:$source);
  let results = (outs FITile_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def FITile_CursorOp : FITile_Op<"cursor", [MemoryEffects<[MemRead]>]> {
  let summary = "the first visited key tile of an item";
  let description = [{
    In the order of `fi_tile.for_keys` over all tiles.

    Example: `%c = fi_tile.cursor %it step 64`
  }];
  let arguments = (ins FITile_ItemType:$item, I64Attr:$step);
  let results = (outs FITile_CursorType:$result);
  let assemblyFormat = "$item `step` $step attr-dict";
}

def FITile_AdvanceOp : FITile_Op<"advance", [
    MemoryEffects<[MemRead]>, AllTypesMatch<["cursor", "result"]>]> {
  let summary = "the visited key tile after a cursor's";
  let description = [{
    Past the last one the cursor stays there.
  }];
  let arguments = (ins FITile_CursorType:$cursor, I64Attr:$step);
  let results = (outs FITile_CursorType:$result);
  let assemblyFormat = "$cursor `step` $step attr-dict";
}

def FITile_CursorKeyOp : FITile_Op<"cursor_key", [Pure]> {
  let summary = "first key of a cursor's tile, and whether there is one";
  let arguments = (ins FITile_CursorType:$cursor);
  let results = (outs Index:$key, I1:$valid);
  let assemblyFormat = "$cursor attr-dict";
}

// The log of time stamps, which nothing else reads or writes: a mark is neither
// erased nor moved past another one.
def FITile_MarkLog : Resource<"::fi::tile::MarkLog">;

def FITile_MarkOp : FITile_Op<"mark", [MemoryEffects<[MemWrite<FITile_MarkLog>]>]> {
  let summary = "time stamp in profile builds";
  let description = [{
    In modules with `fi.profile`, each warp that comes here notes the time and the item
    that it is at work on. `phase` begins what the warp does from here to its next
    phase or `end`, `end` begins nothing, and a `moment` is a point in time beside them.
    With `once`, only the first time in an item counts. Other builds have nothing in
    their place, and neither have kernels for the CPU.

    Example: `fi_tile.mark phase "full tiles" once`
  }];
  let arguments = (ins FITile_MarkKindAttr:$kind, OptionalAttr<StrAttr>:$name,
                       UnitAttr:$once);
  let assemblyFormat = [{
    custom<EnumKeyword>($kind) ($name^)? (`once` $once^)? attr-dict
  }];
  let builders = [OpBuilder<(ins "MarkKind":$kind, "::llvm::StringRef":$name,
                                 CArg<"bool", "false">:$once)>];
  let hasVerifier = 1;
}

def FITile_LaunchNextOp : FITile_Op<"launch_next", [
    MemoryEffects<[MemRead, MemWrite]>, HasParent<"KernelOp">]> {
  let summary = "lets the launch behind this one begin";
  let description = [{
    Where all workers have come here or have ended, the launch behind this one in its
    stream may begin while they go on (`griddepcontrol.launch_dependents`), if its
    manifest says `overlaps`. Every loop over items of such a kernel waits, in its body
    and behind it (TILE45).

    Example: `fi_tile.launch_next`
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def FITile_AwaitLaunchesOp : FITile_Op<"await_launches", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for the launches in front of this one";
  let description = [{
    What is in front of it runs while the launch in front of this one may not have ended:
    it reads nothing but what the plan has made (items, ranges, tables), and writes
    nothing (`griddepcontrol.wait`). Every warp that reads or writes what a run is given
    waits first; every kernel waits once at least, with items or without, so that it does
    not end before those in front of it. Waiting again costs nothing (TILE44).

    Example: `fi_tile.await_launches`
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

#endif // FI_DIALECT_FITILE_IR_FITILEPLACEDOPS_TD
