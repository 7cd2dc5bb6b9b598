//===- RaiseAttention.cpp - softmax(Q K^T) V becomes fi.attention ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatchAttention.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace fi {
#define GEN_PASS_DEF_FIRAISEATTENTION
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;
using namespace fi::raise;

namespace {

/// Writes what was found as an op of fi, before the op that it replaces.
class Writer {
public:
  Writer(ExprGraph &graph, const Attention &found)
      : graph(graph), found(found), b(found.result.getOwner()),
        loc(found.result.getLoc()) {}

  /// False, with a reason, where fi has no such attention.
  bool check(std::string &why);
  Value build();

private:
  int64_t getSize(ArrayRef<int> index) {
    int64_t size = 1;
    for (int loop : index) {
      int64_t one = graph.loops.getSize(loop);
      if (ShapedType::isDynamic(one))
        return one;
      size *= one;
    }
    return size;
  }
  OpFoldResult getSizeValue(ArrayRef<int> index);
  OpFoldResult getLoopSize(int loop);
  Value toValue(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }
  OpFoldResult combine(StringRef name, OpFoldResult x, OpFoldResult y);

  /// The same elements in dimensions that are products of other loops.
  Value arrange(Value tensor, const Access &from, const Access &to);
  /// A table of where each request's rows or keys begin.
  Value makeOffsets(ArrayRef<int> perRequest);

  /// Finds the tensors that regions read. False where regions cannot say what
  /// is to be computed.
  bool collect(Expr *expr, std::string &why);
  Value emit(OpBuilder &at, Expr *expr, ValueRange positions);
  Value emitPosition(OpBuilder &at, LoopIndex index, ValueRange positions);
  Value capture(Value value, ValueRange positions) {
    for (auto [number, captured] : llvm::enumerate(captures))
      if (captured == value)
        return positions[kPositions + number];
    llvm_unreachable("collected before");
  }
  Expr *choose(Expr *expr);

  /// Arguments of regions that say where they are: request, query head, KV
  /// head, row, key.
  static constexpr unsigned kPositions = 5;

  ExprGraph &graph;
  const Attention &found;
  OpBuilder b;
  Location loc;
  SmallVector<Value> captures;
  Value score;
  /// How much less a row's number is than its position, where it is not known.
  Value rowShift;
  bool needsRow = false, hasScore = false;
  /// Regions are written as trees.
  static constexpr unsigned kMaxRegion = 256;
  unsigned regionSize = 0;
};

} // namespace

static Type getElement(Expr *read) {
  return getElementTypeOrSelf(read->tensor.getType());
}

bool Writer::check(std::string &why) {
  auto isFloat = [](Type type) {
    return type.isF32() || type.isF16() || type.isBF16();
  };
  for (Type type :
       {getElement(found.query), getElement(found.key), getElement(found.value),
        getElementTypeOrSelf(found.result.getType())})
    if (!isFloat(type)) {
      llvm::raw_string_ostream(why)
          << "expected elements of f32, f16 or bf16, but got " << type;
      return false;
    }
  for (Expr *read : {found.query, found.key, found.value})
    for (const LoopIndex &index : graph.loops.resolve(read->access))
      if (getSize(index) == 0) {
        why = "a dimension has size 0";
        return false;
      }
  for (ArrayRef<int> columns :
       {ArrayRef<int>(found.dim), ArrayRef<int>(found.valueDim)}) {
    int64_t size = getSize(columns);
    if (size % 8 == 0 && size <= kMaxHeadDim)
      continue;
    llvm::raw_string_ostream(why)
        << "expected head dims that are multiples of 8 up to " << kMaxHeadDim
        << ", but got " << size << " [KV2]";
    return false;
  }
  hasScore = found.score != found.product || found.postScale != 1;
  if (hasScore && !collect(found.score, why))
    return false;
  return llvm::all_of(found.masks,
                      [&](auto &mask) { return collect(mask.first, why); });
}

//===----------------------------------------------------------------------===//
// Sizes and shapes
//===----------------------------------------------------------------------===//

OpFoldResult Writer::combine(StringRef name, OpFoldResult x, OpFoldResult y) {
  auto a = getConstantIntValue(x), c = getConstantIntValue(y);
  if (a && c)
    return b.getIndexAttr(name == "mul"   ? *a * *c
                          : name == "sub" ? *a - *c
                          : name == "add" ? *a + *c
                                          : *a / *c);
  Value left = toValue(x), right = toValue(y);
  if (name == "mul")
    return arith::MulIOp::create(b, loc, left, right).getResult();
  if (name == "sub")
    return arith::SubIOp::create(b, loc, left, right).getResult();
  if (name == "add")
    return arith::AddIOp::create(b, loc, left, right).getResult();
  return arith::DivUIOp::create(b, loc, left, right).getResult();
}

OpFoldResult Writer::getLoopSize(int loop) {
  int64_t known = graph.loops.getSize(loop);
  if (!ShapedType::isDynamic(known))
    return b.getIndexAttr(known);
  for (Expr *read : {found.query, found.key, found.value})
    for (auto [dim, index] :
         llvm::enumerate(graph.loops.resolve(read->access))) {
      if (!llvm::is_contained(index, loop))
        continue;
      OpFoldResult size = tensor::getMixedSize(b, loc, read->tensor, dim);
      // Others of the dimension are known, or no reshape could be written.
      for (int other : index)
        if (other != loop)
          size =
              combine("div", size, b.getIndexAttr(graph.loops.getSize(other)));
      return size;
    }
  llvm_unreachable("each loop is one of an operand");
}

OpFoldResult Writer::getSizeValue(ArrayRef<int> index) {
  OpFoldResult size = b.getIndexAttr(1);
  for (int loop : index)
    size = combine("mul", size, getLoopSize(loop));
  return size;
}

Value Writer::arrange(Value tensor, const Access &from, const Access &to) {
  Type element = getElementTypeOrSelf(tensor.getType());
  auto getType = [&](const Access &access) {
    return RankedTensorType::get(
        llvm::map_to_vector(access,
                            [&](const LoopIndex &i) { return getSize(i); }),
        element);
  };
  // Groups of `whole`'s dimensions, one for each of `parts`' that are in it: of
  // both the loops are the same, in the same order.
  auto getGroups = [](const Access &whole, const Access &parts) {
    SmallVector<ReassociationIndices> groups(whole.size());
    size_t part = 0;
    for (auto [number, index] : llvm::enumerate(whole))
      for (size_t n = 0; n < index.size() && part < parts.size();) {
        n += parts[part].size();
        groups[number].push_back(int64_t(part++));
      }
    return groups;
  };
  LoopIndex order;
  Access single, wanted;
  for (const LoopIndex &index : from)
    for (int loop : index)
      single.push_back({loop});
  for (const LoopIndex &index : to)
    for (int loop : index)
      wanted.push_back({loop});
  auto withoutOnes = [](const Access &access) {
    Access result;
    llvm::copy_if(access, std::back_inserter(result),
                  [](const LoopIndex &index) { return !index.empty(); });
    return result;
  };
  // Reassociations between `access` and the same without dimensions of size 1.
  auto getOnes = [&](const Access &access) {
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices ones;
    for (auto [dim, index] : llvm::enumerate(access)) {
      ones.push_back(int64_t(dim));
      if (index.empty())
        continue;
      groups.push_back(ones);
      ones.clear();
    }
    llvm::append_range(groups.back(), ones);
    return groups;
  };

  Access dims = withoutOnes(from);
  if (dims.size() != from.size())
    tensor = tensor::CollapseShapeOp::create(b, loc, getType(dims), tensor,
                                             getOnes(from));
  if (single.size() != dims.size()) {
    SmallVector<OpFoldResult> sizes;
    for (const LoopIndex &loop : single)
      sizes.push_back(getSizeValue(loop));
    tensor = tensor::ExpandShapeOp::create(b, loc, getType(single), tensor,
                                           getGroups(dims, single), sizes);
  }
  if (single != wanted) {
    SmallVector<int64_t> permutation;
    SmallVector<OpFoldResult> sizes;
    for (const LoopIndex &loop : wanted) {
      permutation.push_back(llvm::find(single, loop) - single.begin());
      sizes.push_back(getSizeValue(loop));
    }
    Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
    tensor = linalg::TransposeOp::create(b, loc, tensor, empty, permutation)
                 ->getResult(0);
  }
  dims = withoutOnes(to);
  if (wanted.size() != dims.size())
    tensor = tensor::CollapseShapeOp::create(b, loc, getType(dims), tensor,
                                             getGroups(dims, wanted));
  if (dims.size() != to.size()) {
    SmallVector<OpFoldResult> sizes;
    for (const LoopIndex &index : to)
      sizes.push_back(getSizeValue(index));
    tensor = tensor::ExpandShapeOp::create(b, loc, getType(to), tensor,
                                           getOnes(to), sizes);
  }
  return tensor;
}

Value Writer::makeOffsets(ArrayRef<int> perRequest) {
  int64_t requests = getSize(found.request), step = getSize(perRequest);
  if (!ShapedType::isDynamic(requests) && !ShapedType::isDynamic(step)) {
    SmallVector<int32_t> offsets;
    for (int64_t i = 0; i <= requests; ++i)
      offsets.push_back(int32_t(i * step));
    return arith::ConstantOp::create(b, loc, b.getI32TensorAttr(offsets));
  }
  OpFoldResult size =
      combine("add", getSizeValue(found.request), b.getIndexAttr(1));
  Value stepValue = toValue(getSizeValue(perRequest));
  auto type = RankedTensorType::get(
      {ShapedType::isDynamic(requests) ? requests : requests + 1},
      b.getI32Type());
  SmallVector<Value> dynamic;
  if (ShapedType::isDynamic(requests))
    dynamic.push_back(toValue(size));
  return tensor::GenerateOp::create(
      b, loc, type, dynamic, [&](OpBuilder &at, Location, ValueRange index) {
        Value offset = arith::MulIOp::create(at, loc, index[0], stepValue);
        tensor::YieldOp::create(
            at, loc,
            arith::IndexCastOp::create(at, loc, b.getI32Type(), offset)
                .getResult());
      });
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// What a region computes itself: elementwise code. The rest it reads.
Expr *Writer::choose(Expr *expr) {
  while (expr != found.product && expr->isRead()) {
    Expr *next = graph.expand(expr);
    if (!next || next->kind == Expr::Kind::Reduce ||
        (next->kind == Expr::Kind::Apply &&
         !isa<arith::ArithDialect, math::MathDialect>(next->op->getDialect())))
      break;
    expr = next;
  }
  return expr;
}

bool Writer::collect(Expr *expr, std::string &why) {
  expr = choose(expr);
  if (expr == found.product)
    return true;
  if (++regionSize > kMaxRegion) {
    llvm::raw_string_ostream(why)
        << "more than " << kMaxRegion << " operations change the scores";
    return false;
  }
  if (expr->isRead() && !llvm::is_contained(captures, expr->tensor))
    captures.push_back(expr->tensor);
  LoopIndex loops = graph.loops.resolve(expr->index);
  if (expr->isRead())
    for (const LoopIndex &index : graph.loops.resolve(expr->access))
      llvm::append_range(loops, index);
  for (int loop : loops) {
    needsRow |= llvm::is_contained(found.row, loop);
    if (!llvm::any_of(ArrayRef<LoopIndex>{found.request, found.heads,
                                          found.group, found.row, found.keys},
                      [&](const LoopIndex &index) {
                        return llvm::is_contained(index, loop);
                      })) {
      why = "the scores depend on the columns of the values";
      return false;
    }
  }
  return llvm::all_of(expr->operands,
                      [&](Expr *operand) { return collect(operand, why); });
}

Value Writer::emitPosition(OpBuilder &at, LoopIndex index,
                           ValueRange positions) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(at, loc, value);
  };
  // One of the loops of a number that counts several.
  auto takeApart = [&](Value number, ArrayRef<int> loops, int loop) {
    int64_t inner = 1;
    size_t place = llvm::find(loops, loop) - loops.begin();
    for (int other : loops.drop_front(place + 1))
      inner *= graph.loops.getSize(other);
    if (inner > 1)
      number = arith::DivUIOp::create(at, loc, number, constant(inner));
    if (place > 0)
      number = arith::RemUIOp::create(at, loc, number,
                                      constant(graph.loops.getSize(loop)));
    return number;
  };
  auto getOne = [&](int loop) -> Value {
    if (llvm::is_contained(found.request, loop))
      return positions[0];
    if (llvm::is_contained(found.heads, loop))
      return takeApart(positions[2], found.heads, loop);
    if (llvm::is_contained(found.group, loop)) {
      Value head = positions[1];
      if (!found.heads.empty())
        head = arith::RemUIOp::create(at, loc, head,
                                      constant(getSize(found.group)));
      return takeApart(head, found.group, loop);
    }
    if (llvm::is_contained(found.keys, loop))
      return positions[4];
    // Rows are the last ones of the request.
    int64_t rowCount = getSize(found.row), keyCount = getSize(found.keys);
    if (rowShift)
      return arith::SubIOp::create(at, loc, positions[3],
                                   capture(rowShift, positions));
    return keyCount == rowCount
               ? positions[3]
               : arith::SubIOp::create(at, loc, positions[3],
                                       constant(keyCount - rowCount));
  };
  Value number;
  for (int loop : graph.loops.resolve(index)) {
    Value one = getOne(loop);
    if (number) {
      // Only the first may be open.
      number = arith::MulIOp::create(at, loc, number,
                                     constant(graph.loops.getSize(loop)));
      one = arith::AddIOp::create(at, loc, number, one);
    }
    number = one;
  }
  return number ? number : constant(0);
}

Value Writer::emit(OpBuilder &at, Expr *expr, ValueRange positions) {
  expr = choose(expr);
  if (expr == found.product) {
    Type type = expr->getType();
    if (type.isF32())
      return score;
    return convertScalarToDtype(at, loc, score, type, /*isUnsignedCast=*/false);
  }
  switch (expr->kind) {
  case Expr::Kind::Constant:
    return arith::ConstantOp::create(at, loc, expr->constant);
  case Expr::Kind::Position:
    return emitPosition(at, expr->index, positions);
  case Expr::Kind::Read: {
    Value captured = capture(expr->tensor, positions);
    if (!isa<ShapedType>(captured.getType()))
      return captured;
    SmallVector<Value> indices;
    for (const LoopIndex &index : expr->access)
      indices.push_back(emitPosition(at, index, positions));
    return LoadOp::create(at, loc, getElementTypeOrSelf(captured.getType()),
                          captured, indices);
  }
  case Expr::Kind::Apply:
  case Expr::Kind::Reduce:
    break;
  }
  OperationState state(loc, expr->op->getName());
  for (Expr *operand : expr->operands)
    state.addOperands(emit(at, operand, positions));
  state.addTypes(getElementTypeOrSelf(expr->op->getResult(0).getType()));
  state.addAttributes(expr->op->getAttrs());
  return at.create(state)->getResult(0);
}

//===----------------------------------------------------------------------===//
// The op
//===----------------------------------------------------------------------===//

static LoopIndex join(const LoopIndex &a, const LoopIndex &b) {
  LoopIndex result = a;
  llvm::append_range(result, b);
  return result;
}

Value Writer::build() {
  if (needsRow && (ShapedType::isDynamic(getSize(found.row)) ||
                   ShapedType::isDynamic(getSize(found.keys)))) {
    OpFoldResult shift =
        combine("sub", getSizeValue(found.keys), getSizeValue(found.row));
    captures.push_back(rowShift = toValue(shift));
  }

  LoopIndex heads = join(found.heads, found.group);
  Access rows = {join(found.request, found.row), heads, found.dim};
  Access keys = {join(found.request, found.keys), found.heads, found.dim};
  Access values = {join(found.request, found.keys), found.heads,
                   found.valueDim};
  Access results = {rows[0], heads, found.valueDim};
  auto take = [&](Expr *read, const Access &to) {
    return arrange(read->tensor, graph.loops.resolve(read->access), to);
  };
  Value query = take(found.query, rows), key = take(found.key, keys),
        value = take(found.value, values);
  Value rowOffsets, keyOffsets;
  if (!found.request.empty()) {
    rowOffsets = makeOffsets(found.row);
    keyOffsets = makeOffsets(found.keys);
  }
  auto viewType = RaggedKVType::get(
      b.getContext(), getSize(found.heads), getSize(found.dim),
      getSize(found.valueDim), getElement(found.key), getElement(found.value),
      HeadOrder::NHD, b.getI32Type());
  Value view = RaggedViewOp::create(b, loc, viewType, ValueRange{key, value},
                                    keyOffsets, /*origin=*/Value(),
                                    /*scales=*/ValueRange());

  auto scoreRegion = [&](OpBuilder &at, Location, ValueRange arguments) {
    score = arguments[0];
    Value changed = emit(at, found.score, arguments.drop_front());
    if (!changed.getType().isF32())
      changed = convertScalarToDtype(at, loc, changed, at.getF32Type(),
                                     /*isUnsignedCast=*/false);
    if (found.postScale != 1)
      changed = arith::MulFOp::create(
          at, loc, changed,
          arith::ConstantOp::create(
              at, loc, at.getF32FloatAttr(float(found.postScale))));
    return changed;
  };
  auto maskRegion = [&](OpBuilder &at, Location, ValueRange arguments) {
    Value all;
    for (auto [condition, isVisible] : found.masks) {
      Value one = emit(at, condition, arguments);
      if (!isVisible)
        one = arith::XOrIOp::create(
            at, loc, one,
            arith::ConstantOp::create(at, loc, at.getBoolAttr(true)));
      all = all ? arith::AndIOp::create(at, loc, all, one).getResult() : one;
    }
    return all;
  };
  auto resultType = RankedTensorType::get(
      llvm::map_to_vector(results,
                          [&](const LoopIndex &i) { return getSize(i); }),
      getElementTypeOrSelf(found.result.getType()));
  auto attention = AttentionOp::create(
      b, loc, TypeRange(resultType), query, rowOffsets, view,
      b.getF32FloatAttr(float(found.scale)), captures, /*masks=*/ArrayAttr(),
      hasScore ? AttentionRegionBuilder(scoreRegion) : AttentionRegionBuilder(),
      found.masks.empty() ? AttentionRegionBuilder()
                          : AttentionRegionBuilder(maskRegion));
  Value result = arrange(attention.getResult(0), results,
                         graph.loops.resolve(found.resultAccess));
  if (result.getType() != found.result.getType())
    result = tensor::CastOp::create(b, loc, found.result.getType(), result);
  return result;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct RaiseAttention : fi::impl::FIRaiseAttentionBase<RaiseAttention> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> candidates;
    getOperation()->walk([&](Operation *op) {
      if (isa<linalg::LinalgOp, arith::DivFOp>(op) && op->getNumResults())
        candidates.push_back(op);
    });
    // From the last one on: what an attention was made of is not looked at
    // again.
    llvm::DenseSet<Operation *> raised;
    for (Operation *op : llvm::reverse(candidates)) {
      if (raised.contains(op))
        continue;
      for (OpResult result : op->getResults())
        raise(result, raised);
    }
    eraseDead(raised);
  }

  void raise(OpResult result, llvm::DenseSet<Operation *> &raised) {
    ExprGraph graph;
    std::string why;
    auto found = matchAttention(graph, result, why);
    std::optional<Writer> writer;
    if (found) {
      writer.emplace(graph, *found);
      if (!writer->check(why))
        found.reset();
    }
    if (!found) {
      if (!why.empty()) {
        mlir::emitRemark(result.getLoc())
            << "not raised to fi.attention: " << why;
        raised.insert(graph.seen.begin(), graph.seen.end());
      }
      return;
    }
    result.replaceAllUsesWith(writer->build());
    raised.insert(graph.seen.begin(), graph.seen.end());
  }

  /// Of what attentions were made of, that which nobody needs now.
  void eraseDead(const llvm::DenseSet<Operation *> &raised) {
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (raised.contains(op))
        ops.push_back(op);
    });
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
