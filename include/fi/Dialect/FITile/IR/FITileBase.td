//===- FITileBase.td - the fi_tile dialect --------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialect, its types and base classes.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_FITILEBASE_TD
#define FI_DIALECT_FITILE_IR_FITILEBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def FITile_Dialect : Dialect {
  let name = "fi_tile";
  let cppNamespace = "::fi::tile";
  let summary = "how a kernel computes, tile by tile";
  let description = [{
    Level 2 of fi: the program of one worker over its work items, for one schedule.
    Tiles are builtin tensors of two dimensions, rows x columns; a value per row is `tensor<Rx1x...>`, one per key `tensor<1xCx...>`. Elementwise
    work is `arith` and `math` on such tensors; this dialect has what they lack.

    In the logical form everything is synchronous and tiles have no layouts. In the
    placed form, for GPUs, tiles in registers have layouts, and what products read
    from memory passes through channels of buffers in shared memory.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = [
    "::fi::FIDialect", "::mlir::arith::ArithDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    void registerBytecode();
  }];
}

class FITile_Op<string mnemonic, list<Trait> traits = []>
    : Op<FITile_Dialect, mnemonic, traits>;

class FITile_Type<string name, string typeMnemonic>
    : TypeDef<FITile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def FITile_WorkType : FITile_Type<"Work", "work"> {
  let summary = "the work items of one launch, with their key ranges and states";
}

def FITile_ItemType : FITile_Type<"Item", "item"> {
  let summary = "one work item: a tile of packed rows of one request and KV head";
}

def FITile_Field : I32EnumAttr<"Field", "field of a work item", [
    I32EnumAttrCase<"Request", 0, "request">,
    I32EnumAttrCase<"KVHead", 1, "kv_head">,
    I32EnumAttrCase<"RowBegin", 2, "row_begin">,
    I32EnumAttrCase<"RowCount", 3, "row_count">,
    I32EnumAttrCase<"QBegin", 4, "q_begin">,
    I32EnumAttrCase<"QLen", 5, "q_len">,
    I32EnumAttrCase<"KVLen", 6, "kv_len">,
    I32EnumAttrCase<"KVOrigin", 7, "kv_origin">,
    I32EnumAttrCase<"Slot", 8, "slot">,
    I32EnumAttrCase<"SlotCount", 9, "slot_count">,
    I32EnumAttrCase<"FirstSlot", 10, "first_slot">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_FieldAttr : EnumAttr<FITile_Dialect, FITile_Field, "field"> {
  let assemblyFormat = "`<` $value `>`";
}

def FITile_Part : I32EnumAttr<"Part", "part of an item's keys", [
    I32EnumAttrCase<"All", 0, "all">, I32EnumAttrCase<"Full", 1, "full">,
    I32EnumAttrCase<"Partial", 2, "partial">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_PartAttr : EnumAttr<FITile_Dialect, FITile_Part, "part"> {
  let assemblyFormat = "`<` $value `>`";
}

def FITile_Selection : I32EnumAttr<"Selection", "tiles of an item by their order", [
    I32EnumAttrCase<"First", 0, "first">, I32EnumAttrCase<"Rest", 1, "rest">,
    I32EnumAttrCase<"Last", 2, "last">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_SelectionAttr
    : EnumAttr<FITile_Dialect, FITile_Selection, "selection"> {
  let assemblyFormat = "`<` $value `>`";
}

def FITile_ReduceKind : I32EnumAttr<"ReduceKind", "kind of row reduction", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_ReduceKindAttr
    : EnumAttr<FITile_Dialect, FITile_ReduceKind, "reduce_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def FITile_Arrival : I32EnumAttr<"Arrival", "what has become of a buffer", [
    I32EnumAttrCase<"Full", 0, "full">, I32EnumAttrCase<"Empty", 1, "empty">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_ArrivalAttr : EnumAttr<FITile_Dialect, FITile_Arrival, "arrival"> {
  let assemblyFormat = "`<` $value `>`";
}

def FITile_MarkKind : I32EnumAttr<"MarkKind", "kind of time stamp", [
    I32EnumAttrCase<"Phase", 0, "phase">, I32EnumAttrCase<"Moment", 1, "moment">,
    I32EnumAttrCase<"End", 2, "end">]> {
  let cppNamespace = "::fi::tile";
  let genSpecializedAttr = 0;
}
def FITile_MarkKindAttr
    : EnumAttr<FITile_Dialect, FITile_MarkKind, "mark_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif // FI_DIALECT_FITILE_IR_FITILEBASE_TD
