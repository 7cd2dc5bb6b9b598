//===- RegionInliner.cpp - regions of fi.attention on tiles ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegionInliner.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static SmallVector<int64_t> shapeOf(Value value) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    return SmallVector<int64_t>(type.getShape());
  return {};
}

/// The least shape that holds all operands: {} for scalars.
static SmallVector<int64_t> joinShapes(ValueRange values) {
  SmallVector<int64_t> shape;
  for (Value value : values) {
    SmallVector<int64_t> other = shapeOf(value);
    if (shape.empty())
      shape = other;
    else if (!other.empty())
      for (int dim : {0, 1})
        shape[dim] = std::max(shape[dim], other[dim]);
  }
  return shape;
}

Value fi::tile::broadcastTo(OpBuilder &b, Location loc, Value value,
                            ArrayRef<int64_t> shape) {
  if (shape.empty() || ArrayRef<int64_t>(shapeOf(value)) == shape)
    return value;
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  if (tile)
    return BroadcastOp::create(
        b, loc, RankedTensorType::get(shape, tile.getElementType()), value);
  auto type = RankedTensorType::get(shape, value.getType());
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, constant));
  return tensor::SplatOp::create(b, loc, type, value);
}

namespace {

class Inliner {
public:
  Inliner(OpBuilder &b) : b(b) {}

  IRMapping mapping;

  /// Inlines the operations of a block but its terminator.
  LogicalResult inlineBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(inlineOp(&op)))
        return failure();
    return success();
  }

private:
  Value map(Value value) { return mapping.lookupOrDefault(value); }

  LogicalResult inlineOp(Operation *op) {
    if (auto load = dyn_cast<fi::LoadOp>(op))
      return inlineLoad(load);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return inlineIf(branch);
    if (op->getName().getDialectNamespace() == "index")
      return inlineIndexOp(op);
    if (isa<arith::ConstantOp>(op)) {
      b.clone(*op, mapping);
      return success();
    }
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return map(v); });
    if (isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
            arith::CeilDivSIOp>(op))
      guardDivision(op->getLoc(), operands, /*isSigned=*/true);
    else if (isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op))
      guardDivision(op->getLoc(), operands, /*isSigned=*/false);
    Operation *result =
        createElementwise(op->getLoc(), op->getName(), operands,
                          op->getResultTypes(), op->getAttrDictionary());
    if (!result)
      return op->emitOpError("expected an elementwise op in a region");
    mapping.map(op->getResults(), result->getResults());
    return success();
  }

  /// Regions are evaluated where nobody looks at them: a quotient without a
  /// value, by 0 or of the least integer by -1, must not trap. Its divisor
  /// becomes 1.
  void guardDivision(Location loc, MutableArrayRef<Value> operands,
                     bool isSigned) {
    APInt known;
    if (matchPattern(operands[1], m_ConstantInt(&known)) && !known.isZero() &&
        !(isSigned && known.isAllOnes()))
      return;
    Type element = getElementTypeOrSelf(operands[1].getType());
    unsigned bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
    auto equals = [&](Value value, const APInt &number) -> Value {
      Value scalar = arith::ConstantOp::create(
          b, loc, cast<TypedAttr>(b.getIntegerAttr(element, number)));
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value,
                                   broadcastTo(b, loc, scalar, shapeOf(value)));
    };
    auto join = [&](Value &x, Value &y) {
      SmallVector<int64_t> shape = joinShapes({x, y});
      x = broadcastTo(b, loc, x, shape);
      y = broadcastTo(b, loc, y, shape);
    };
    Value bad = equals(operands[1], APInt::getZero(bits));
    APInt dividend;
    if (isSigned && !(matchPattern(operands[0], m_ConstantInt(&dividend)) &&
                      !dividend.isMinSignedValue())) {
      Value negative = equals(operands[1], APInt::getAllOnes(bits));
      Value least = equals(operands[0], APInt::getSignedMinValue(bits));
      join(negative, least);
      Value overflows = arith::AndIOp::create(b, loc, negative, least);
      join(bad, overflows);
      bad = arith::OrIOp::create(b, loc, bad, overflows);
    }
    Value one = arith::ConstantOp::create(
        b, loc, cast<TypedAttr>(b.getIntegerAttr(element, APInt(bits, 1))));
    SmallVector<int64_t> shape = joinShapes({bad, operands[1]});
    operands[1] =
        arith::SelectOp::create(b, loc, broadcastTo(b, loc, bad, shape),
                                broadcastTo(b, loc, one, shape),
                                broadcastTo(b, loc, operands[1], shape));
  }

  Operation *createElementwise(Location loc, OperationName name,
                               MutableArrayRef<Value> operands,
                               TypeRange scalarTypes, DictionaryAttr attrs) {
    if (!name.hasTrait<OpTrait::Elementwise>())
      return nullptr;
    SmallVector<int64_t> shape = joinShapes(operands);
    for (Value &operand : operands)
      operand = broadcastTo(b, loc, operand, shape);
    SmallVector<Type> types(scalarTypes);
    if (!shape.empty())
      for (Type &type : types)
        type = RankedTensorType::get(shape, type);
    OperationState state(loc, name, operands, types, attrs.getValue());
    return b.create(state);
  }

  LogicalResult inlineLoad(fi::LoadOp load) {
    SmallVector<Value> indices =
        llvm::map_to_vector(load.getIndices(), [&](Value v) { return map(v); });
    SmallVector<int64_t> shape = joinShapes(indices);
    Type type = load.getType();
    if (!shape.empty()) {
      type = RankedTensorType::get(shape, type);
      for (Value &index : indices)
        if (isa<RankedTensorType>(index.getType()))
          index = broadcastTo(b, load.getLoc(), index, shape);
    }
    mapping.map(load.getResult(),
                GatherOp::create(b, load.getLoc(), type, map(load.getSource()),
                                 indices));
    return success();
  }

  /// Both branches, then selects: everything in a region is total.
  LogicalResult inlineIf(scf::IfOp branch) {
    if (failed(inlineBlock(branch.getThenRegion().front())))
      return failure();
    if (branch.getElseRegion().empty())
      return success();
    if (failed(inlineBlock(branch.getElseRegion().front())))
      return failure();
    for (auto [result, yes, no] :
         llvm::zip(branch.getResults(), branch.thenYield().getOperands(),
                   branch.elseYield().getOperands())) {
      SmallVector<Value> operands = {map(branch.getCondition()), map(yes),
                                     map(no)};
      SmallVector<int64_t> shape = joinShapes(operands);
      for (Value &operand : operands)
        operand = broadcastTo(b, branch.getLoc(), operand, shape);
      mapping.map(result,
                  arith::SelectOp::create(b, branch.getLoc(), operands[0],
                                          operands[1], operands[2])
                      .getResult());
    }
    return success();
  }

  /// The index dialect has no elementwise form; arith says the same.
  LogicalResult inlineIndexOp(Operation *op) {
    static const llvm::StringMap<StringRef> names = {
        {"index.add", "arith.addi"},
        {"index.sub", "arith.subi"},
        {"index.mul", "arith.muli"},
        {"index.divs", "arith.divsi"},
        {"index.divu", "arith.divui"},
        {"index.ceildivs", "arith.ceildivsi"},
        {"index.ceildivu", "arith.ceildivui"},
        {"index.floordivs", "arith.floordivsi"},
        {"index.rems", "arith.remsi"},
        {"index.remu", "arith.remui"},
        {"index.maxs", "arith.maxsi"},
        {"index.maxu", "arith.maxui"},
        {"index.mins", "arith.minsi"},
        {"index.minu", "arith.minui"},
        {"index.shl", "arith.shli"},
        {"index.shrs", "arith.shrsi"},
        {"index.shru", "arith.shrui"},
        {"index.and", "arith.andi"},
        {"index.or", "arith.ori"},
        {"index.xor", "arith.xori"},
        {"index.casts", "arith.index_cast"},
        {"index.castu", "arith.index_castui"}};
    Location loc = op->getLoc();
    if (auto constant = dyn_cast<index::ConstantOp>(op)) {
      mapping.map(constant.getResult(),
                  arith::ConstantIndexOp::create(
                      b, loc, constant.getValue().getSExtValue())
                      .getResult());
      return success();
    }
    if (auto constant = dyn_cast<index::BoolConstantOp>(op)) {
      mapping.map(
          constant.getResult(),
          arith::ConstantOp::create(b, loc, b.getBoolAttr(constant.getValue()))
              .getResult());
      return success();
    }
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value v) { return map(v); });
    if (auto cmp = dyn_cast<index::CmpOp>(op)) {
      static constexpr std::pair<index::IndexCmpPredicate, arith::CmpIPredicate>
          predicates[] = {
              {index::IndexCmpPredicate::EQ, arith::CmpIPredicate::eq},
              {index::IndexCmpPredicate::NE, arith::CmpIPredicate::ne},
              {index::IndexCmpPredicate::SLT, arith::CmpIPredicate::slt},
              {index::IndexCmpPredicate::SLE, arith::CmpIPredicate::sle},
              {index::IndexCmpPredicate::SGT, arith::CmpIPredicate::sgt},
              {index::IndexCmpPredicate::SGE, arith::CmpIPredicate::sge},
              {index::IndexCmpPredicate::ULT, arith::CmpIPredicate::ult},
              {index::IndexCmpPredicate::ULE, arith::CmpIPredicate::ule},
              {index::IndexCmpPredicate::UGT, arith::CmpIPredicate::ugt},
              {index::IndexCmpPredicate::UGE, arith::CmpIPredicate::uge}};
      SmallVector<int64_t> shape = joinShapes(operands);
      for (Value &operand : operands)
        operand = broadcastTo(b, loc, operand, shape);
      for (auto [from, to] : predicates)
        if (from == cmp.getPred())
          mapping.map(cmp.getResult(), arith::CmpIOp::create(
                                           b, loc, to, operands[0], operands[1])
                                           .getResult());
      return success();
    }
    auto found = names.find(op->getName().getStringRef());
    if (found == names.end())
      return op->emitOpError("has no elementwise form");
    if (found->second.contains("div") || found->second.contains("rem"))
      guardDivision(loc, operands, /*isSigned=*/found->second.ends_with("si"));
    Operation *result = createElementwise(
        loc, OperationName(found->second, op->getContext()), operands,
        op->getResultTypes(), DictionaryAttr::get(op->getContext()));
    mapping.map(op->getResults(), result->getResults());
    return success();
  }

  OpBuilder &b;
};

} // namespace

FailureOr<SmallVector<Value>>
fi::tile::inlineRegion(OpBuilder &b, Region &region, ValueRange arguments) {
  Inliner inliner(b);
  Block &block = region.front();
  inliner.mapping.map(block.getArguments(), arguments);
  if (failed(inliner.inlineBlock(block)))
    return failure();
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return inliner.mapping.lookupOrDefault(value); });
}
