//===- ToyToFI.cpp - toy.sdpa becomes fi.attention ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a compiler that embeds fi has to write: a view of its keys and values,
// the attention, and, for code that fi's runtime plans and runs, a program
// around them. Offsets become arguments of the plan: they are known when a
// batch is scheduled, and the same for all layers. The rest arrives with each
// run.
//
//===----------------------------------------------------------------------===//

#include "Toy.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace {

/// The bias by distance, as a region: score + slopes[head] * (key - row).
Value addBias(OpBuilder &b, Location loc, ValueRange arguments) {
  // (score, request, query head, KV head, row's position, key's position), and
  // behind them what the attention captures.
  Value score = arguments[0], head = arguments[2];
  Value distance =
      arith::SubIOp::create(b, loc, arguments[5], arguments[4]).getResult();
  Value whole =
      arith::IndexCastOp::create(b, loc, b.getI32Type(), distance).getResult();
  Value real = arith::SIToFPOp::create(b, loc, b.getF32Type(), whole);
  Value slope = fi::LoadOp::create(b, loc, b.getF32Type(), arguments[6], head);
  Value bias = arith::MulFOp::create(b, loc, slope, real);
  return arith::AddFOp::create(b, loc, score, bias);
}

/// Writes the attention for `op`, whose operands are found in `map`.
Value convert(OpBuilder &b, toy::SdpaOp op, const IRMapping &map) {
  Location loc = op.getLoc();
  MLIRContext *context = b.getContext();
  auto keys = cast<ShapedType>(op.getKey().getType());
  auto values = cast<ShapedType>(op.getValue().getType());
  auto type = fi::RaggedKVType::get(
      context, keys.getDimSize(1), keys.getDimSize(2), values.getDimSize(2),
      keys.getElementType(), values.getElementType(), fi::HeadOrder::NHD,
      b.getI32Type());
  Value view = fi::RaggedViewOp::create(
      b, loc, type,
      ValueRange{map.lookup(op.getKey()), map.lookup(op.getValue())},
      map.lookup(op.getKeyOffsets()), /*origin=*/Value(),
      /*scales=*/ValueRange());
  SmallVector<Value, 1> captures;
  if (op.getSlopes())
    captures.push_back(map.lookup(op.getSlopes()));
  SmallVector<Attribute, 1> masks;
  if (op.getCausal())
    masks.push_back(fi::CausalAttr::get(context));
  auto attention = fi::AttentionOp::create(
      b, loc, op.getResult().getType(), map.lookup(op.getQuery()),
      map.lookup(op.getQueryOffsets()), view, op.getScaleAttr(), captures,
      masks.empty() ? ArrayAttr() : b.getArrayAttr(masks),
      op.getSlopes() ? fi::AttentionRegionBuilder(addBias)
                     : fi::AttentionRegionBuilder(),
      /*mask=*/{});
  return attention.getResult(0);
}

struct ToyToFI : PassWrapper<ToyToFI, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToyToFI)

  StringRef getArgument() const override { return "toy-to-fi"; }
  StringRef getDescription() const override {
    return "functions of toy.sdpa to programs of fi";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, fi::FIDialect>();
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp function : functions)
      if (failed(outline(function)))
        return signalPassFailure();
  }

  LogicalResult outline(func::FuncOp function);
};

LogicalResult ToyToFI::outline(func::FuncOp function) {
  Block &body = function.getBody().front();
  // What a program may have of this dialect: see docs/spec.md, PRG8.
  for (Operation &op : body)
    if (!isa<toy::SdpaOp, func::ReturnOp>(op))
      return op.emitOpError("expected toy.sdpa or return alone in function '")
             << function.getName() << "'";

  auto isOffsets = [](BlockArgument argument) {
    return llvm::any_of(argument.getUses(), [](OpOperand &use) {
      auto op = dyn_cast<toy::SdpaOp>(use.getOwner());
      return op && (use.get() == op.getQueryOffsets() ||
                    use.get() == op.getKeyOffsets());
    });
  };
  // Arguments of the plan come first.
  SmallVector<BlockArgument> arguments, others;
  for (BlockArgument argument : body.getArguments())
    (isOffsets(argument) ? arguments : others).push_back(argument);
  llvm::append_range(arguments, others);

  OpBuilder b(function);
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  for (BlockArgument argument : arguments) {
    types.push_back(argument.getType());
    NamedAttrList list;
    if (isOffsets(argument))
      list.set(fi::ProgramOp::kPlanAttr, b.getUnitAttr());
    // The name by which callers pass it.
    list.set(fi::ProgramOp::kNameAttr,
             b.getStringAttr("arg" + Twine(argument.getArgNumber())));
    attributes.push_back(list.getDictionary(b.getContext()));
  }
  auto program = fi::ProgramOp::create(
      b, function.getLoc(), function.getSymNameAttr(),
      TypeAttr::get(
          b.getFunctionType(types, function.getFunctionType().getResults())),
      /*sym_visibility=*/StringAttr(), b.getArrayAttr(attributes),
      /*res_attrs=*/ArrayAttr());
  Block *block = b.createBlock(&program.getBody());
  IRMapping map;
  for (BlockArgument argument : arguments)
    map.map(argument,
            block->addArgument(argument.getType(), argument.getLoc()));
  for (Operation &op : body) {
    if (auto sdpa = dyn_cast<toy::SdpaOp>(op))
      map.map(sdpa.getResult(), convert(b, sdpa, map));
    else
      fi::ReturnOp::create(b, op.getLoc(),
                           llvm::map_to_vector(op.getOperands(), [&](Value v) {
                             return map.lookup(v);
                           }));
  }
  function.erase();
  return success();
}

} // namespace

std::unique_ptr<Pass> toy::createToyToFIPass() {
  return std::make_unique<ToyToFI>();
}
