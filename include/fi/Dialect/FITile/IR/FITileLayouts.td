//===- FITileLayouts.td - where the elements of tiles lie -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts of the placed form: tiles in registers (encodings of tensors) and tiles
// in shared memory (part of buffer types). The arithmetic is in Layouts.h.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_FITILELAYOUTS_TD
#define FI_DIALECT_FITILE_IR_FITILELAYOUTS_TD

include "fi/Dialect/FITile/IR/FITileBase.td"
include "mlir/IR/TensorEncoding.td"

class FITile_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<FITile_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

// A layout of tiles in registers: the encoding of a tensor that it fits.
class FITile_RegisterAttr<string name, string attrMnemonic>
    : FITile_Attr<name, attrMnemonic,
                  [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]>;

def FITile_Atom : I32EnumAttr<"Atom", "fragment of one warp", [
    I32EnumAttrCase<"MmaC", 0, "mma_c">, I32EnumAttrCase<"MmaA16", 1, "mma_a16">,
    I32EnumAttrCase<"MmaA32", 2, "mma_a32">,
    I32EnumAttrCase<"MmaC8", 3, "mma_c8">, I32EnumAttrCase<"Row8", 4, "row8">,
    I32EnumAttrCase<"Row16", 5, "row16">,
    I32EnumAttrCase<"Row32", 6, "row32">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}

def FITile_FragAttr : FITile_RegisterAttr<"Frag", "frag"> {
  let summary = "tile in the registers of a worker's warps";
  let description = [{
    An atom, which is a block that one warp holds in a fixed pattern, repeated
    `rep` times along rows and columns (columns vary faster in the order of
    registers), and `warps` of these one below the other. Where a worker has more
    warps than the layout, warp `w` holds what warp `w % warps` does.

    The atoms of rows are for work without products: a lane has 8 columns side by
    side, which it moves at once. With them, `column_warps` warps have a row in
    common: those of a row have successive numbers, their blocks lie side by side,
    and a repeat along columns moves on by all of them. Columns of the last repeat
    may lie beyond the tile; what a register holds there is in no result.

    | atom | block | registers of a lane | PTX ISA |
    |---|---|---|---|
    | `mma_c` | 16 x 8 | 4 | accumulator C/D of mma.m16n8k16 |
    | `mma_a16` | 16 x 16 | 8 | multiplicand A of 16 bits of mma.m16n8k16 |
    | `mma_a32` | 16 x 4 | 2 | multiplicand A of mma.m16n8k4, tf32 |
    | `row8`, `row16`, `row32` | 4 x 64, 2 x 128, 1 x 256 | 8 | none: 8, 16 or 32 lanes along a row |
    | `mma_c8` | 16 x 16 | 8 | two accumulators, of the even and of the odd columns: what ldmatrix transposes of bytes are those of two columns |

    Example: `tensor<64x128xf32, #fi_tile.frag<mma_c, rep = [1, 16], warps = 4>>`,
    `tensor<2x4096xf32, #fi_tile.frag<row32, rep = [2, 2], warps = 1, column_warps = 8>>`
  }];
  let parameters = (ins "::fi::tile::Atom":$atom, "int64_t":$repRows,
                        "int64_t":$repColumns, "int64_t":$warps,
                        "int64_t":$columnWarps);
  let builders = [AttrBuilder<(ins "::fi::tile::Atom":$atom,
                                   "int64_t":$repRows, "int64_t":$repColumns,
                                   "int64_t":$warps),
      [{ return $_get($_ctxt, atom, repRows, repColumns, warps, 1); }]>];
  let extraClassDeclaration = [{
    /// Warps that hold a tile, each a part of it.
    int64_t getHolders() const { return getWarps() * getColumnWarps(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def FITile_SliceAttr : FITile_RegisterAttr<"Slice", "slice"> {
  let summary = "a value per row (dim 1 dropped) or per column (dim 0 dropped)";
  let description = [{
    Each lane holds the values of the rows (or columns) of which it holds elements
    in the parent layout; equal values lie in several lanes.

    Example: `tensor<64x1xf32, #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 4>>>`
  }];
  let parameters = (ins "int64_t":$dim, "::fi::tile::FragAttr":$parent);
  let assemblyFormat = "`<` $dim `,` $parent `>`";
  let genVerifyDecl = 1;
}

def FITile_PartialAttr : FITile_RegisterAttr<"Partial", "partial"> {
  let summary = "partial results of rows, one per lane that shares a row";
  let description = [{
    Column `j` of the tile is what lane `j` of those that hold a row has reduced of
    its own elements.

    Example: `tensor<64x4xf32, #fi_tile.partial<<mma_c, rep = [1, 1], warps = 4>>>`
  }];
  let parameters = (ins "::fi::tile::FragAttr":$parent);
  let assemblyFormat = "`<` $parent `>`";
}

def FITile_SmemAttr : FITile_Attr<"Smem", "smem"> {
  let summary = "tile in shared memory";
  let description = [{
    Rows of `pitch` bytes. With `swizzle = 128`, the index of a chunk of 16 bytes is
    xored, in its low three bits, with the row's: eight rows of one chunk then lie in
    different banks. Without, the pitch is an odd number of chunks to that end.

    With `panel`, rows are longer than the pitch: columns go on in further panels of
    all rows, `panel` bytes from one to the next. That is what `wgmma` reads: panels of
    128 bytes a row, in which eight rows are one block of 1024 bytes.

    Example: `#fi_tile.smem<pitch = 256, swizzle = 128>`,
    `#fi_tile.smem<pitch = 128, swizzle = 128, panel = 16384>`
  }];
  let parameters = (ins "int64_t":$pitch, DefaultValuedParameter<"int64_t", "0">:$swizzle,
                        DefaultValuedParameter<"int64_t", "0">:$panel);
  let builders = [AttrBuilder<(ins "int64_t":$pitch, "int64_t":$swizzle),
                              [{ return $_get($_ctxt, pitch, swizzle, 0); }]>];
  let extraClassDeclaration = [{
    /// Bytes from eight chunks of a row to the next eight.
    int64_t getGroupStride() const { return getPanel() ? getPanel() : 128; }
  }];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def FITile_BufType : FITile_Type<"Buf", "buf"> {
  let summary = "a tile in shared memory";
  let description = [{
    Example: `!fi_tile.buf<64x128xf16, #fi_tile.smem<pitch = 256, swizzle = 128>>`
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns,
                        "::mlir::Type":$element, "::fi::tile::SmemAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const;
  }];
}

def FITile_ChanType : FITile_Type<"Chan", "chan"> {
  let summary = "a ring of buffers between a producer and a consumer";
  let description = [{
    The producer acquires a free buffer, fills it and commits it; the consumer gets
    buffers in the same order and releases them. Where one worker is both, `depth`
    minus one tiles can be on their way while one is used.

    Example: `!fi_tile.chan<64x128xf16, #fi_tile.smem<pitch = 256, swizzle = 128>, depth = 2>`
  }];
  let parameters = (ins "::fi::tile::BufType":$buffer, "int64_t":$depth);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getBytes() const { return getDepth() * getBuffer().getBytes(); }
  }];
}

def FITile_EntriesType : FITile_Type<"Entries", "entries"> {
  let summary = "what the page table holds for the rows of a buffer";
  let description = [{
    Each thread has the entries of the rows that it copies into a buffer of the type.

    Example: `!fi_tile.entries<!fi_tile.buf<64x128xf16, #sw>>`
  }];
  let parameters = (ins "::fi::tile::BufType":$buffer);
  let assemblyFormat = "`<` qualified($buffer) `>`";
}

def FITile_FutureType : FITile_Type<"Future", "future"> {
  let summary = "a tile that tensor cores still compute";
  let description = [{
    Nothing but `fi_tile.wait` takes it.

    Example: `!fi_tile.future<tensor<128x64xf32, #acc>>`
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tile);
  let assemblyFormat = "`<` $tile `>`";
}

def FITile_CursorType : FITile_Type<"Cursor", "cursor"> {
  let summary = "a place in the sequence of an item's visited key tiles";
}

#endif // FI_DIALECT_FITILE_IR_FITILELAYOUTS_TD
