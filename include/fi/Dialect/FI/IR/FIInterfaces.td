//===- FIInterfaces.td - interfaces of the fi dialect -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a new KV layout, mask, score function or normaliser has to answer. Other
// dialects may bring their own; nothing below level 1 asks for a concrete type.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIINTERFACES_TD
#define FI_DIALECT_FI_IR_FIINTERFACES_TD

include "mlir/IR/OpBase.td"

def FI_KVViewTypeInterface : TypeInterface<"KVViewTypeInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    A layout of keys and values: heads, dims, element types, and the address of
    (request, head, key). All address arithmetic of keys and values is made by
    `buildRowOffset`; loads, appends and tests share it.

    A view has pools and page tables, which it numbers. A row of a part (`keys`,
    `values`, `tail`) lies in one pool and is found by one table.
  }];
  let methods = [
    InterfaceMethod<"Number of KV heads.", "int64_t", "getKVHeads">,
    InterfaceMethod<"Elements of a key row, the tail's included.", "int64_t",
                    "getKeyDim">,
    InterfaceMethod<"Elements of a value row.", "int64_t", "getValueDim">,
    InterfaceMethod<"Element type of keys in memory.", "::mlir::Type",
                    "getKeyType">,
    InterfaceMethod<"Element type of values in memory.", "::mlir::Type",
                    "getValueType">,
    InterfaceMethod<[{
      Scheme of the keys' elements: `getKeyType` itself, or what it stores, such
      as `!fi.scaled`.
    }], "::mlir::Type", "getKeyScheme", (ins), [{}],
        [{ return $_type.getKeyType(); }]>,
    InterfaceMethod<"Scheme of the values' elements.", "::mlir::Type",
                    "getValueScheme", (ins), [{}],
                    [{ return $_type.getValueType(); }]>,
    InterfaceMethod<"Integer type of the tables.", "::mlir::Type",
                    "getIndexType">,
    InterfaceMethod<[{
      Elements at the end of a key row that lie in a pool of their own; 0 for none.
    }], "int64_t", "getTailDim", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      Whether a value row is the part `keys` of the key's row, in the same memory.
    }], "bool", "sharesValues", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Number of pools.", "unsigned", "getPoolCount", (ins), [{}],
                    [{ return 2; }]>,
    InterfaceMethod<"The number of a part's pool.", "unsigned", "getPool",
        (ins "::fi::KVPart":$part), [{}],
        [{ return part == ::fi::KVPart(1) ? $_type.getPoolCount() - 1 : 0; }]>,
    InterfaceMethod<"Number of page tables.", "unsigned", "getTableCount", (ins),
                    [{}], [{ return $_type.getPageSize() == 0 ? 0 : 1; }]>,
    InterfaceMethod<"The number of a part's page table.", "unsigned", "getTable",
        (ins "::fi::KVPart":$part), [{}], [{ return 0; }]>,
    InterfaceMethod<"Rank of the pools.", "int64_t", "getPoolRank">,
    InterfaceMethod<[{
      The dimension of a pool along which the keys of a page lie, or of the request
      where there are no pages.
    }], "unsigned", "getKeyDimension">,
    InterfaceMethod<"The dimension of a pool for heads, if it has one.",
                    "std::optional<unsigned>", "getHeadDimension">,
    InterfaceMethod<[{
      Keys of one page: a number, `ShapedType::kDynamic` where it is read from
      the pool, or 0 for a layout without pages.
    }], "int64_t", "getPageSize">,
    InterfaceMethod<[{
      Builds the offset, in elements from the base of the pool, of the first
      element of a key's (or value's) row. All arithmetic is in `index`, which
      is 64 bits wide here.
    }], "::mlir::Value", "buildRowOffset",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "const ::fi::KVRowAddress &":$address)>,
    InterfaceMethod<[{
      The layout's part of a stage's `view` in the manifest (docs/abi.md).
    }], "void", "appendManifest",
        (ins "::mlir::SmallVectorImpl<::mlir::NamedAttribute> &":$entries)>,
  ];
  let extraSharedClassDeclaration = [{
    /// Columns of a part, and their type in memory.
    int64_t getPartDim(::fi::KVPart part) const {
      return part == ::fi::KVPart(1)   ? $_type.getValueDim()
             : part == ::fi::KVPart(2) ? $_type.getTailDim()
                                       : $_type.getKeyDim() - $_type.getTailDim();
    }
    ::mlir::Type getPartType(::fi::KVPart part) const {
      return part == ::fi::KVPart(1) ? $_type.getValueType() : $_type.getKeyType();
    }
    /// What a pool of a part holds, and how many of it in a row: elements, or two
    /// elements of 4 bits in a byte.
    ::mlir::Type getPoolType(::fi::KVPart part) const {
      ::mlir::Type type = getPartType(part);
      return type.getIntOrFloatBitWidth() >= 8
                 ? type
                 : ::mlir::IntegerType::get(type.getContext(), 8);
    }
    int64_t getPoolColumns(::fi::KVPart part) const {
      int64_t bits = getPartType(part).getIntOrFloatBitWidth();
      return bits >= 8 ? getPartDim(part) : getPartDim(part) * bits / 8;
    }
    /// The part that an append writes beside `keys`.
    ::fi::KVPart getSecondPart() const {
      return ::fi::KVPart($_type.getTailDim() ? 2 : 1);
    }
    /// A part that is found by the page table of that number.
    ::fi::KVPart getPartOfTable(unsigned table) const {
      return ::fi::KVPart($_type.getTable(::fi::KVPart(0)) == table ? 0 : 1);
    }
  }];
}

def FI_KVViewOpInterface : OpInterface<"KVViewOpInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    An op that makes a view of keys and values from pools and tables.
  }];
  let methods = [
    InterfaceMethod<"The pools, by the view's numbers.", "::mlir::ValueRange",
                    "getViewPools", (ins), [{}], [{ return $_op.getPools(); }]>,
    InterfaceMethod<"The page tables, by the view's numbers.",
                    "::llvm::SmallVector<::mlir::Value>", "getPageTables">,
    InterfaceMethod<"The position of each request's key 0, or null.",
                    "::mlir::Value", "getViewOrigin", (ins), [{}],
                    [{ return $_op.getOrigin(); }]>,
    InterfaceMethod<[{
      The scales of keys and of values that the view's type asks for (`getScales`).
    }], "::mlir::ValueRange", "getViewScales", (ins), [{}],
        [{ return ::mlir::ValueRange(); }]>,
    InterfaceMethod<[{
      All operands by name: keys, values, tail; indptr, pages, value_pages, last,
      lengths, row_indptr, columns; origin. What a layout has none of is left out;
      what may be given and is not is null.
    }], "::llvm::SmallVector<::fi::KVOperand>", "getNamedOperands">,
  ];
}

def FI_CompanionOpInterface : OpInterface<"CompanionOpInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    An op on rows that a layer needs beside attention: a stage of rows, in which each
    row, or tile of rows, is work of its own.
  }];
  let methods = [
    InterfaceMethod<[{
      The operands that have a row for each row of the results; the first says how
      many there are.
    }], "::llvm::SmallVector<::mlir::Value>", "getRowOperands", (ins), [{}],
        [{ return {$_op->getOperand(0)}; }]>,
    InterfaceMethod<[{
      Where results go: the op's results, or the memrefs of `outs` that it writes
      instead.
    }], "::mlir::ValueRange", "getPlaces", (ins), [{}], [{
      return $_op->getNumResults() > 0 ? ::mlir::ValueRange($_op->getResults())
                                       : ::mlir::ValueRange($_op.getOuts());
    }]>,
    InterfaceMethod<"The destinations that are given, memrefs or tensors.",
                    "::mlir::MutableOperandRange", "getDestinations", (ins), [{}],
                    [{ return $_op.getOutsMutable(); }]>,
  ];
}

def FI_TransformAttrInterface : AttrInterface<"TransformAttrInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    A short spelling of a region that transforms pairs. `buildTransform` builds what
    the region yields from its leading arguments (x, y, pair, request, head,
    position), where `dims` elements of a row are paired.
  }];
  let methods = [
    InterfaceMethod<"Builds the new elements of the pair, two f32.",
                    "::llvm::SmallVector<::mlir::Value>", "buildTransform",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "::mlir::ValueRange":$arguments, "int64_t":$dims)>,
  ];
}

def FI_RotaryScalingAttrInterface : AttrInterface<"RotaryScalingAttrInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    How a rotary embedding is stretched over more positions than a model was trained
    with: what becomes of the angle by which a pair turns from one position to the
    next, and a factor of both elements.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the new angle, an f32, from the old one and the pair's number, an f32
      too; pair i of dims / 2 turns by theta^(-2 i / dims).
    }], "::mlir::Value", "buildRate",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "::mlir::Value":$rate, "::mlir::Value":$pair, "double":$theta,
             "int64_t":$dims)>,
    InterfaceMethod<"The factor of cosines and sines.", "double", "getMagnitude",
                    (ins), [{}], [{ return 1; }]>,
  ];
}

def FI_MaskAttrInterface : AttrInterface<"MaskAttrInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    A short spelling of a mask region. `buildMask` builds the region's value
    from its block arguments (request, q_head, kv_head, q_pos, kv_pos).
  }];
  let methods = [
    InterfaceMethod<"Builds the i1 that says whether the key is visible.",
                    "::mlir::Value", "buildMask",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "::mlir::ValueRange":$positions)>,
  ];
}

def FI_ScoreAttrInterface : AttrInterface<"ScoreAttrInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    A short spelling of a score region. `buildScore` builds the new score from
    the block arguments (score, request, q_head, kv_head, q_pos, kv_pos).
  }];
  let methods = [
    InterfaceMethod<"Builds the new score, an f32.", "::mlir::Value",
                    "buildScore",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "::mlir::ValueRange":$arguments)>,
  ];
}

def FI_NormaliserAttrInterface : AttrInterface<"NormaliserAttrInterface"> {
  let cppNamespace = "::fi";
  let description = [{
    Turns scores into weights, online: a running state of tiles is initialised,
    updated with a tile of scores, and finalised to outputs normalised over their
    own keys and a statistic (for softmax, the log-sum-exp). States of the same
    kind may be merged where the kind allows it. The methods build arithmetic on
    tile values through a `TileArithmetic`, so that a kind knows nothing about
    targets.
  }];
  let methods = [
    InterfaceMethod<"Whether states over disjoint keys may be merged, and so "
                    "whether the KV axis may be split.", "bool", "canMerge">,
    InterfaceMethod<"Whether a sink may be given when finalising.", "bool",
                    "canSink">,
    InterfaceMethod<[{
      Whether weights are not divided by their sum: outputs over disjoint keys then
      add, and the statistic is that of no keys throughout.
    }], "bool", "isAdditive", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Types of the running state beside the accumulator, for tiles of `rows`
      rows and reductions that keep `lanes` partial results a row.
    }], "::mlir::SmallVector<::mlir::Type>", "getRunningTypes",
        (ins "::mlir::MLIRContext *":$context, "int64_t":$rows,
             "int64_t":$lanes)>,
    InterfaceMethod<"Builds the running state of no keys (not the accumulator, "
                    "which starts at zero).",
        "::mlir::SmallVector<::mlir::Value>", "buildInit",
        (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
             "int64_t":$rows, "int64_t":$lanes)>,
    InterfaceMethod<[{
      Builds the update by a tile of scores (natural units, -inf where masked):
      the weights of the tile, a factor per row for the accumulator (null for 1),
      and the new running state.
    }], "::fi::NormaliserUpdate", "buildUpdate",
        (ins "::fi::TileArithmetic &":$arithmetic,
             "::mlir::Value":$scores, "::mlir::ValueRange":$running)>,
    InterfaceMethod<"Whether finalised states can be folded into a running one.",
        "bool", "canFold", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Builds the update by finalised states with a statistic per row each: the
      weights of their outputs, per row, and the rest as in `buildUpdate`. A state
      whose statistic is -inf stands in for none and has weight 0, of any kind. For
      kinds that can fold.
    }], "::fi::NormaliserFold", "buildFold",
        (ins "::fi::TileArithmetic &":$arithmetic,
             "::mlir::ValueRange":$statistics, "::mlir::ValueRange":$running),
        [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      Builds (factor per row for the accumulator, statistic per row) at the end.
      `sink` is a row of logits in natural units, or null. A null factor is 1, a null
      statistic that of no keys.
    }], "std::pair<::mlir::Value, ::mlir::Value>", "buildFinalize",
        (ins "::fi::TileArithmetic &":$arithmetic,
             "::mlir::ValueRange":$running, "::mlir::Value":$sink)>,
    InterfaceMethod<[{
      Builds (weight of a, weight of b, merged statistic), per row, of two
      finalised states. The weights are already normalised; a null one is 1.
    }], "::fi::MergeWeights", "buildMerge",
        (ins "::fi::TileArithmetic &":$arithmetic,
             "::mlir::Value":$statisticA, "::mlir::Value":$statisticB)>,
    InterfaceMethod<[{
      Builds (factor per row for the output, new statistic) when a sink is
      added to a finalised state.
    }], "std::pair<::mlir::Value, ::mlir::Value>", "buildSink",
        (ins "::fi::TileArithmetic &":$arithmetic,
             "::mlir::Value":$statistic, "::mlir::Value":$sink)>,
    InterfaceMethod<"The statistic of no keys.", "double", "getEmptyStatistic">,
  ];
}

#endif // FI_DIALECT_FI_IR_FIINTERFACES_TD
