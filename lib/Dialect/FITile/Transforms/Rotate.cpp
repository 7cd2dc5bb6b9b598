//===- Rotate.cpp - two products under way at the same time ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A body that multiplies twice is cut behind the weights: what comes after
// them, the product with the values, is done one tile later, beside the next
// tile's product with the keys. So the loops over an item's keys become one for
// the first tile, without the second product, those for the others, with the
// second product of the tile before, and one for the last second product.
// Weights of the first tile are computed by the body of the last loop, whose
// masks all tiles may have.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEROTATE
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

/// The parts of a body.
struct Body {
  ForKeysOp loop;
  GetOp getKeys, getValues;
  ReleaseOp releaseKeys, releaseValues;
  DotOp scores, product;
  /// Where the accumulator is among the values that the loop carries.
  unsigned accumulator = 0;
  /// Everything else: what makes the weights, what these become as an operand
  /// of the product, and what changes the accumulator before it.
  SmallVector<Operation *> weights, narrowing, rescaling;
};

struct RotatePass : fi::tile::impl::FITileRotateBase<RotatePass> {
  void runOnOperation() override {
    if (!getOperation().getSchedule().getRotate())
      return;
    getOperation().walk([&](ForItemsOp items) {
      SmallVector<ForKeysOp> loops(items.getBody().getOps<ForKeysOp>());
      if (loops.empty() || !usesProducts(loops.front()))
        return;
      SmallVector<Body> bodies;
      for (ForKeysOp loop : loops) {
        FailureOr<Body> body = analyse(loop);
        if (failed(body))
          return;
        bodies.push_back(*body);
      }
      for (Body &body : bodies)
        if (!alike(bodies.front(), body)) {
          remark(body.loop,
                 "its products differ from those of the loop before");
          return;
        }
      rotate(bodies);
      releaseEarly(items);
    });
  }

private:
  static bool usesProducts(ForKeysOp loop) {
    return !loop.getBody().getOps<DotOp>().empty();
  }

  /// The last product has no queries: their buffer is given back before it.
  static void releaseEarly(ForItemsOp items) {
    Block &block = items.getBody().front();
    for (auto release : llvm::make_early_inc_range(block.getOps<ReleaseOp>())) {
      Operation *last = nullptr;
      for (auto get : block.getOps<GetOp>())
        if (get.getChannel() == release.getChannel())
          for (Operation *user : get->getUsers()) {
            Operation *inBlock = block.findAncestorOpInBlock(*user);
            if (!last || last->isBeforeInBlock(inBlock))
              last = inBlock;
          }
      if (last && last->isBeforeInBlock(release))
        release->moveAfter(last);
    }
  }

  static void remark(ForKeysOp loop, const Twine &why) {
    loop.emitRemark("is not rotated: ") << why;
  }

  static bool alike(Body &a, Body &b) {
    return a.getKeys.getChannel() == b.getKeys.getChannel() &&
           a.getValues.getChannel() == b.getValues.getChannel() &&
           a.accumulator == b.accumulator &&
           a.loop->getResultTypes() == b.loop->getResultTypes() &&
           a.product.getA().getType() == b.product.getA().getType() &&
           a.loop.getStep() == b.loop.getStep() && !a.loop.getSelection() &&
           !b.loop.getSelection();
  }

  /// Operations of the body that depend on one of `sources`, these among them.
  static llvm::SetVector<Operation *> dependents(Block &block,
                                                 ArrayRef<Value> sources) {
    llvm::SmallDenseSet<Value> known(sources.begin(), sources.end());
    llvm::SetVector<Operation *> result;
    for (Operation &op : block) {
      bool depends = false;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          depends |= known.contains(operand);
      });
      if (!depends)
        continue;
      result.insert(&op);
      known.insert(op.result_begin(), op.result_end());
    }
    return result;
  }

  FailureOr<Body> analyse(ForKeysOp loop) {
    Body body;
    body.loop = loop;
    Block &block = loop.getBody().front();
    SmallVector<DotOp> dots(block.getOps<DotOp>());
    auto fail = [&](const Twine &why) {
      remark(loop, why);
      return failure();
    };
    if (dots.size() != 2 || !dots[0].getWarpgroup() || !dots[1].getWarpgroup())
      return fail("expected two products of warpgroups, but there are " +
                  Twine(dots.size()) + " products, or others");
    body.scores = dots[0];
    body.product = dots[1];
    auto yield = cast<tile::YieldOp>(block.getTerminator());
    Value result = body.product.getResult();
    if (!result.hasOneUse() || *result.user_begin() != yield)
      return fail("expected the second product to be carried and not used "
                  "otherwise");
    body.accumulator = result.use_begin()->getOperandNumber();
    Value carried = loop.getCarried()[body.accumulator];
    // Channels of the second operands.
    auto ends = [&](DotOp dot, GetOp &get, ReleaseOp &release) {
      get = dot.getB().getDefiningOp<GetOp>();
      if (!get || get->getBlock() != &block || !get.getBuffer().hasOneUse())
        return false;
      for (Operation *user : get.getChannel().getUsers())
        if (user->getBlock() == &block && isa<ReleaseOp>(user))
          release = cast<ReleaseOp>(user);
      return bool(release);
    };
    if (!ends(body.scores, body.getKeys, body.releaseKeys) ||
        !ends(body.product, body.getValues, body.releaseValues))
      return fail("expected products with a buffer that the loop gets and "
                  "releases");
    if (body.scores.getAcc() || !isa<BufType>(body.scores.getA().getType()))
      return fail(
          "expected a first product of a buffer, without an accumulator");
    llvm::SetVector<Operation *> ofAccumulator = dependents(block, {carried});
    // From the product's operand back to where it becomes narrow.
    llvm::SetVector<Operation *> narrowing;
    for (Operation *op = body.product.getA().getDefiningOp();
         op && op->getBlock() == &block && op->getNumOperands() == 1 &&
         isa<RelayoutOp, arith::TruncFOp>(op) && op->getResult(0).hasOneUse();
         op = op->getOperand(0).getDefiningOp())
      narrowing.insert(op);
    if (narrowing.empty())
      return fail("expected weights in registers that become narrow for the "
                  "second product");
    for (Operation &op : block) {
      if (&op == body.scores || &op == body.product || &op == body.getKeys ||
          &op == body.getValues || &op == body.releaseKeys ||
          &op == body.releaseValues || &op == yield)
        continue;
      if (narrowing.contains(&op))
        body.narrowing.push_back(&op);
      else if (ofAccumulator.contains(&op))
        body.rescaling.push_back(&op);
      else if (isMemoryEffectFree(&op) || isa<GatherOp, LoadScalesOp>(op))
        body.weights.push_back(&op);
      else
        return fail("expected nothing but products to have effects, but '" +
                    Twine(op.getName().getStringRef()) + "' has");
    }
    for (Operation *op : body.rescaling)
      if (op->isBeforeInBlock(body.scores) || !isMemoryEffectFree(op))
        return fail("expected the accumulator to change behind the scores");
    // Carried values may not depend on the product.
    for (auto [number, value] : llvm::enumerate(yield.getOperands()))
      if (number != body.accumulator)
        if (Operation *definition = value.getDefiningOp())
          if (ofAccumulator.contains(definition))
            return fail("expected other carried values not to depend on the "
                        "accumulator");
    return body;
  }

  static void clone(OpBuilder &b, ArrayRef<Operation *> ops, IRMapping &map) {
    for (Operation *op : ops)
      b.clone(*op, map);
  }

  static Value start(OpBuilder &b, DotOp dot, Value a, Value buffer,
                     Value acc) {
    auto type = FutureType::get(b.getContext(), dot.getType());
    return DotStartOp::create(b, dot.getLoc(), type, a, buffer, acc,
                              dot.getTranspose());
  }

  /// Carried: the weights as an operand, and what the loop had, the accumulator
  /// ready for the product with these weights.
  void rotate(MutableArrayRef<Body> bodies) {
    Body &model = bodies.back();
    ForKeysOp front = bodies.front().loop;
    OpBuilder b(front);
    Location loc = front.getLoc();
    Value weights = model.product.getA();
    auto weightsType = cast<RankedTensorType>(weights.getType());
    auto zero = DenseElementsAttr::get(
        weightsType, b.getZeroAttr(weightsType.getElementType()));
    SmallVector<Value> state = {arith::ConstantOp::create(b, loc, zero)};
    llvm::append_range(state, front.getInits());
    state = buildLoop(b, model, state, Part::All, Selection::First);
    for (Body &body : bodies)
      state = buildLoop(b, body, state, body.loop.getPart(), Selection::Rest);
    state[1 + model.accumulator] = finish(b, model, state);
    bodies.back().loop->replaceAllUsesWith(ArrayRef(state).drop_front());
    for (Body &body : llvm::reverse(bodies))
      body.loop->erase();
  }

  SmallVector<Value> buildLoop(OpBuilder &b, Body &body, ArrayRef<Value> state,
                               Part part, Selection selection) {
    Location loc = body.loop.getLoc();
    ForKeysOp old = body.loop;
    auto loop = ForKeysOp::create(b, loc, old.getItem(), state, part,
                                  old.getStep(), selection);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&loop.getBody().front());
    IRMapping map;
    map.map(old.getKey(), loop.getKey());
    auto carried = loop.getCarried();
    for (auto [from, to] : llvm::zip(old.getCarried(), carried.drop_front()))
      map.map(from, to);
    // What the scores do not need comes behind the products.
    DotOp scores = body.scores, product = body.product;
    Value channel = body.getKeys->getOperand(0);
    auto keys = GetOp::create(b, loc, channel);
    Value ofScores = start(b, scores, scores.getA(), keys, Value());
    Value ofProduct;
    bool hasProduct = selection == Selection::Rest;
    Value valueChannel = body.getValues->getOperand(0);
    Value accumulated = carried[1 + body.accumulator];
    if (hasProduct) {
      auto values = GetOp::create(b, loc, valueChannel);
      ofProduct = start(b, product, carried[0], values, accumulated);
    }
    map.map(
        scores.getResult(),
        WaitOp::create(b, scores.getLoc(), ofScores, ValueRange()).getResult());
    ReleaseOp::create(b, loc, channel);
    clone(b, body.weights, map);
    Operation *first = body.narrowing.front();
    Value wide = first->getOperand(0);
    if (hasProduct) {
      // Weights become narrow when the product has read the ones before.
      auto wait = WaitOp::create(b, product.getLoc(), ofProduct,
                                 ValueRange(map.lookup(wide)));
      accumulated = wait.getResult();
      map.map(wide, wait.getPassed().front());
      ReleaseOp::create(b, loc, valueChannel);
    }
    map.map(old.getCarried()[body.accumulator], accumulated);
    clone(b, body.narrowing, map);
    clone(b, body.rescaling, map);
    SmallVector<Value> results = {map.lookupOrDefault(product.getA())};
    Operation *yield = old.getBody().front().getTerminator();
    for (Value value : yield->getOperands())
      results.push_back(map.lookupOrDefault(value));
    results[1 + body.accumulator] =
        map.lookupOrDefault(Value(product.getAcc()));
    tile::YieldOp::create(b, loc, results);
    return llvm::to_vector_of<Value>(loop.getResults());
  }

  /// The product of the last tile.
  Value finish(OpBuilder &b, Body &body, ArrayRef<Value> state) {
    Location loc = body.loop.getLoc();
    ForKeysOp old = body.loop;
    auto loop = ForKeysOp::create(b, loc, old.getItem(),
                                  ArrayRef(state[1 + body.accumulator]),
                                  Part::All, old.getStep(), Selection::Last);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&loop.getBody().front());
    Value channel = body.getValues->getOperand(0);
    auto values = GetOp::create(b, loc, channel);
    Value future =
        start(b, body.product, state[0], values, loop.getCarried()[0]);
    Value product = WaitOp::create(b, loc, future, ValueRange()).getResult();
    ReleaseOp::create(b, loc, channel);
    tile::YieldOp::create(b, loc, product);
    return loop.getResult(0);
  }
};

} // namespace
