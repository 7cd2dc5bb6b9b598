//===- FITileDialect.cpp - the fi_tile dialect ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

#include "fi/Dialect/FITile/IR/FITileDialect.cpp.inc"

#include "fi/Dialect/FITile/IR/FITileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fi/Dialect/FITile/IR/FITileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "fi/Dialect/FITile/IR/FITileTypes.cpp.inc"

void FITileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fi/Dialect/FITile/IR/FITileTypes.cpp.inc"
      >();
}

void FITileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fi/Dialect/FITile/IR/FITileAttrs.cpp.inc"
      >();
}

namespace {

/// Short names of layouts and buffers, so that a placed kernel can be read.
struct FITileAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    StringRef name =
        llvm::TypeSwitch<Attribute, StringRef>(attr)
            .Case([](FragAttr a) {
              if (isRowAtom(a.getAtom()))
                return "rows";
              return a.getAtom() == Atom::MmaC || a.getAtom() == Atom::MmaC8
                         ? "acc"
                         : "a";
            })
            .Case(
                [](SliceAttr a) { return a.getDim() == 1 ? "row" : "column"; })
            .Case([](PartialAttr) { return "partial"; })
            .Case([](SmemAttr) { return "smem"; })
            .Default([](Attribute) { return ""; });
    os << name;
    return name.empty() ? AliasResult::NoAlias : AliasResult::OverridableAlias;
  }

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    if (!isa<BufType, ChanType>(type))
      return AliasResult::NoAlias;
    os << (isa<BufType>(type) ? "buf" : "chan");
    return AliasResult::OverridableAlias;
  }
};

} // namespace

void FITileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "fi/Dialect/FITile/IR/FITileOps.cpp.inc"
      >();
  registerTypes();
  registerAttributes();
  registerBytecode();
  addInterfaces<FITileAsmInterface>();
}

Operation *FITileDialect::materializeConstant(OpBuilder &b, Attribute value,
                                              Type type, Location loc) {
  return arith::ConstantOp::materialize(b, value, type, loc);
}

//===----------------------------------------------------------------------===//
// DialectTileArithmetic
//===----------------------------------------------------------------------===//

static RankedTensorType withColumns(Value tile, int64_t columns) {
  auto type = cast<RankedTensorType>(tile.getType());
  return RankedTensorType::get({type.getDimSize(0), columns},
                               type.getElementType());
}

Value DialectTileArithmetic::reduceMax(Value tile) {
  return ReduceOp::create(builder, loc, withColumns(tile, 1), ReduceKind::Max,
                          tile);
}

Value DialectTileArithmetic::reduceAdd(Value tile) {
  return reduceAddKeep(tile, 1);
}

Value DialectTileArithmetic::reduceAddKeep(Value tile, int64_t lanes) {
  if (cast<RankedTensorType>(tile.getType()).getDimSize(1) == lanes)
    return tile;
  return ReduceOp::create(builder, loc, withColumns(tile, lanes),
                          ReduceKind::Add, tile);
}

Value DialectTileArithmetic::broadcastRows(Value row, Value like) {
  int64_t columns = cast<RankedTensorType>(like.getType()).getDimSize(1);
  if (columns == 1)
    return row;
  return BroadcastOp::create(builder, loc, withColumns(row, columns), row);
}
