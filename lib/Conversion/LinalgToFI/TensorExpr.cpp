//===- TensorExpr.cpp - what an element of a tensor is --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorExpr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fi::raise;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

LoopIndex Loops::make(int64_t size) {
  if (size == 1)
    return {};
  sizes.push_back(size);
  return {int(sizes.size()) - 1};
}

LoopIndex Loops::resolve(ArrayRef<int> index) const {
  LoopIndex result;
  for (int loop : index) {
    auto found = parts.find(loop);
    if (found == parts.end())
      result.push_back(loop);
    else
      llvm::append_range(result, resolve(found->second));
  }
  return result;
}

Access Loops::resolve(const Access &access) const {
  return llvm::map_to_vector<4>(
      access, [&](const LoopIndex &index) { return resolve(index); });
}

std::optional<Access> Loops::split(ArrayRef<int> index,
                                   ArrayRef<int64_t> dims) {
  LoopIndex left = resolve(index);
  if (llvm::is_contained(dims, 0) ||
      llvm::any_of(left, [&](int loop) { return getSize(loop) == 0; }))
    return std::nullopt;
  Access result(dims.size());
  size_t first = 0;
  while (first < dims.size() && dims[first] == 1)
    ++first;
  for (size_t d = dims.size(); d-- > 0;) {
    if (d == first) {
      result[d] = left;
      left.clear();
      break;
    }
    // Loops from the last one on until their sizes make up the dimension's.
    for (int64_t size = dims[d]; size != 1;) {
      if (left.empty() || ShapedType::isDynamic(size))
        return std::nullopt;
      int loop = left.pop_back_val();
      int64_t has = getSize(loop);
      if (!ShapedType::isDynamic(has) && has <= size) {
        if (size % has)
          return std::nullopt;
        size /= has;
        result[d].insert(result[d].begin(), loop);
        continue;
      }
      if (!ShapedType::isDynamic(has) && has % size)
        return std::nullopt;
      LoopIndex outer = make(ShapedType::isDynamic(has) ? has : has / size);
      LoopIndex inner = make(size);
      LoopIndex both = outer;
      llvm::append_range(both, inner);
      parts[loop] = both;
      llvm::append_range(left, outer);
      result[d].insert(result[d].begin(), inner.begin(), inner.end());
      size = 1;
    }
  }
  if (!left.empty())
    return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

bool Expr::isCast() const { return applies<arith::ExtFOp, arith::TruncFOp>(); }

std::optional<double> Expr::getNumber() const {
  if (kind != Kind::Constant)
    return std::nullopt;
  if (auto number = dyn_cast<FloatAttr>(constant))
    return number.getValueAsDouble();
  return std::nullopt;
}

Type Expr::getType() const {
  switch (kind) {
  case Kind::Read:
    return getElementTypeOrSelf(tensor.getType());
  case Kind::Constant:
    return constant.getType();
  case Kind::Position:
    return IndexType::get(source->getContext());
  case Kind::Apply:
  case Kind::Reduce:
    return getElementTypeOrSelf(op->getResult(0).getType());
  }
  llvm_unreachable("kinds are listed");
}

Expr *ExprGraph::make(Expr::Kind kind, Operation *source) {
  exprs.emplace_back();
  exprs.back().kind = kind;
  exprs.back().source = source;
  return &exprs.back();
}

Expr *ExprGraph::read(Value tensor, Access access) {
  Expr *result = make(Expr::Kind::Read, tensor.getDefiningOp());
  result->tensor = tensor;
  result->access = std::move(access);
  return result;
}

Expr *ExprGraph::apply(const Expr &like, ArrayRef<Expr *> operands) {
  Expr *result = make(Expr::Kind::Apply, like.source);
  result->op = like.op;
  result->operands.assign(operands.begin(), operands.end());
  return result;
}

Expr *ExprGraph::peek(Expr *expr) {
  while (expr->isRead()) {
    Expr *next = expand(expr);
    if (!next)
      break;
    expr = next;
  }
  return expr;
}

Expr *ExprGraph::strip(Expr *expr) {
  for (expr = peek(expr); expr->isCast();)
    expr = peek(expr->operands[0]);
  return expr;
}

Expr *ExprGraph::expand(Expr *expr) {
  if (expr->isTried)
    return expr->expansion;
  expr->isTried = true;
  auto result = dyn_cast<OpResult>(expr->tensor);
  if (!result || !isa<RankedTensorType>(result.getType()))
    return nullptr;
  expr->expansion = expandAny(result, expr->access);
  if (!expr->expansion)
    return nullptr;
  seen.insert(result.getOwner());
  if (!expr->expansion->isRead())
    expr->expansion->access = expr->access;
  return expr->expansion;
}

Expr *ExprGraph::expandAny(OpResult result, const Access &access) {
  Operation *op = result.getOwner();
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!splat)
      return nullptr;
    Expr *number = make(Expr::Kind::Constant, op);
    number->constant = dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>());
    return number->constant ? number : nullptr;
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    if (!isa<RankedTensorType>(cast.getSource().getType()))
      return nullptr;
    return read(cast.getSource(), access);
  }
  // All elements are one scalar.
  Value scalar;
  if (auto splat = dyn_cast<tensor::SplatOp>(op))
    scalar = splat.getInput();
  if (auto elements = dyn_cast<tensor::FromElementsOp>(op);
      elements && elements.getElements().size() == 1)
    scalar = elements.getElements().front();
  if (scalar) {
    auto constant = scalar.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return read(scalar, {});
    Expr *number = make(Expr::Kind::Constant, op);
    number->constant = constant.getValue();
    return number;
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return expandReshape(op, access);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    Expr *weights = make(Expr::Kind::Apply, op);
    weights->op = op;
    weights->index = access[softmax.getDimension()];
    weights->operands.push_back(read(softmax.getInput(), access));
    return weights;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return expandLinalg(linalgOp, result, access);
  if (op->getNumResults() == 1 && OpTrait::hasElementwiseMappableTraits(op) &&
      llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>)) {
    Expr *elements = make(Expr::Kind::Apply, op);
    elements->op = op;
    for (Value operand : op->getOperands())
      elements->operands.push_back(read(operand, access));
    return elements;
  }
  return nullptr;
}

Expr *ExprGraph::expandReshape(Operation *op, const Access &access) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  Access source;
  if (auto expanded = dyn_cast<tensor::ExpandShapeOp>(op)) {
    for (ReassociationIndices group : expanded.getReassociationIndices()) {
      LoopIndex index;
      for (int64_t dim : group)
        llvm::append_range(index, access[size_t(dim)]);
      source.push_back(index);
    }
    // A tensor of no dimensions becomes one of ones.
    source.resize(size_t(type.getRank()));
    return read(op->getOperand(0), source);
  }
  auto collapsed = cast<tensor::CollapseShapeOp>(op);
  for (auto [number, group] :
       llvm::enumerate(collapsed.getReassociationIndices())) {
    SmallVector<int64_t> sizes = llvm::map_to_vector(
        group, [&](int64_t dim) { return type.getDimSize(unsigned(dim)); });
    auto split = loops.split(access[number], sizes);
    if (!split)
      return nullptr;
    llvm::append_range(source, *split);
  }
  source.resize(size_t(type.getRank()));
  return read(op->getOperand(0), source);
}

namespace {

/// The body of an op of linalg for one element of a result.
class Body {
public:
  Body(linalg::LinalgOp op, llvm::function_ref<Expr *(Value, Access)> read,
       llvm::function_ref<Expr *(Expr::Kind)> make)
      : op(op), read(read), make(make), dims(op.getNumLoops()) {}

  /// Which loops the op's dimensions are; false where that is not understood.
  bool bind(OpOperand *init, const Access &access, Loops &loops);
  /// Null where it is not understood.
  Expr *convert(Value scalar) {
    auto [known, isNew] = converted.try_emplace(scalar, nullptr);
    if (!isNew)
      return known->second;
    Expr *expr = convertNew(scalar);
    return converted[scalar] = expr;
  }
  Expr *readOperand(OpOperand &operand);

  LoopIndex reduced;

private:
  Expr *convertNew(Value scalar);

  linalg::LinalgOp op;
  llvm::function_ref<Expr *(Value, Access)> read;
  llvm::function_ref<Expr *(Expr::Kind)> make;
  Access dims;
  /// A value that is used twice is one expression.
  llvm::DenseMap<Value, Expr *> converted;
};

} // namespace

bool Body::bind(OpOperand *init, const Access &access, Loops &loops) {
  llvm::SmallBitVector isBound(op.getNumLoops());
  AffineMap map = op.getMatchingIndexingMap(init);
  for (auto [number, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    // A dimension of size 1 may be written as 0.
    if (auto constant = dyn_cast<AffineConstantExpr>(expr);
        constant && constant.getValue() == 0 && access[number].empty())
      continue;
    if (!dim || isBound.test(dim.getPosition()))
      return false;
    isBound.set(dim.getPosition());
    dims[dim.getPosition()] = access[number];
  }
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  for (auto [number, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (isBound.test(unsigned(number)))
      continue;
    if (kind != utils::IteratorType::reduction)
      return false;
    dims[number] = loops.make(ranges[number]);
    llvm::append_range(reduced, dims[number]);
  }
  return true;
}

Expr *Body::readOperand(OpOperand &operand) {
  if (!isa<RankedTensorType>(operand.get().getType()))
    return convert(operand.get());
  auto type = cast<RankedTensorType>(operand.get().getType());
  Access access;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  for (auto [number, expr] : llvm::enumerate(map.getResults())) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      access.push_back(dims[dim.getPosition()]);
    else if (auto constant = dyn_cast<AffineConstantExpr>(expr);
             constant && constant.getValue() == 0 &&
             type.getDimSize(unsigned(number)) == 1)
      access.emplace_back();
    else
      return nullptr;
  }
  return read(operand.get(), access);
}

Expr *Body::convertNew(Value scalar) {
  if (auto argument = dyn_cast<BlockArgument>(scalar);
      argument && argument.getOwner() == op.getBlock())
    return readOperand(op->getOpOperand(argument.getArgNumber()));
  Operation *from = scalar.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(from)) {
    Expr *result = make(Expr::Kind::Constant);
    result->constant = constant.getValue();
    return result;
  }
  if (!from || from->getBlock() != op.getBlock())
    return read(scalar, {});
  if (auto index = dyn_cast<linalg::IndexOp>(from)) {
    Expr *result = make(Expr::Kind::Position);
    result->index = dims[size_t(index.getDim())];
    return result;
  }
  if (from->getNumRegions() || from->getNumResults() != 1 ||
      !isa_and_present<arith::ArithDialect, math::MathDialect>(
          from->getDialect()))
    return nullptr;
  SmallVector<Expr *> operands;
  for (Value operand : from->getOperands()) {
    operands.push_back(convert(operand));
    if (!operands.back())
      return nullptr;
  }
  Expr *result = make(Expr::Kind::Apply);
  result->op = from;
  result->operands.assign(operands.begin(), operands.end());
  return result;
}

/// Whether `number` changes no result of `combiner`.
static bool isNeutral(Operation *combiner, double number) {
  if (isa<arith::AddFOp>(combiner))
    return number == 0;
  // The smallest finite number of a type serves as well.
  return isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner) &&
         number <= -65504.0;
}

Expr *ExprGraph::expandLinalg(linalg::LinalgOp op, OpResult result,
                              const Access &access) {
  if (!op.hasPureTensorSemantics())
    return nullptr;
  OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
  // The body refers to these as long as it lives.
  auto readAt = [&](Value value, Access at) { return read(value, at); };
  auto makeHere = [&](Expr::Kind kind) { return make(kind, op); };
  Body body(op, readAt, makeHere);
  if (!body.bind(init, access, loops))
    return nullptr;
  Value yielded =
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
  if (op.getNumReductionLoops() == 0)
    return body.convert(yielded);

  Operation *combiner = yielded.getDefiningOp();
  Value accumulator = op.getMatchingBlockArgument(init);
  if (!combiner || combiner->getNumOperands() != 2 ||
      !isa<arith::AddFOp, arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return nullptr;
  bool isFirst = combiner->getOperand(0) == accumulator;
  if (!isFirst && combiner->getOperand(1) != accumulator)
    return nullptr;
  Expr *begin = body.readOperand(*init);
  Expr *element = body.convert(combiner->getOperand(isFirst ? 1 : 0));
  if (!begin || !element)
    return nullptr;
  auto number = peek(begin)->getNumber();
  if (!number || !isNeutral(combiner, *number))
    return nullptr;
  Expr *reduce = make(Expr::Kind::Reduce, op);
  reduce->op = combiner;
  reduce->index = body.reduced;
  reduce->operands.push_back(element);
  return reduce;
}

bool ExprGraph::areEqual(Expr *a, Expr *b, llvm::DenseMap<int, int> &loopsOfB,
                         unsigned &steps) {
  // Expressions that share parts are small as such and large when walked.
  if (++steps > 10000)
    return false;
  auto areSameIndices = [&](ArrayRef<int> x, ArrayRef<int> y) {
    LoopIndex left = loops.resolve(x), right = loops.resolve(y);
    for (int &loop : left)
      if (auto found = loopsOfB.find(loop); found != loopsOfB.end())
        loop = found->second;
    return left == right;
  };
  auto areSameReads = [&] {
    return a->isRead() && b->isRead() && a->tensor == b->tensor &&
           a->access.size() == b->access.size() &&
           llvm::all_of(llvm::zip(a->access, b->access), [&](auto pair) {
             return areSameIndices(std::get<0>(pair), std::get<1>(pair));
           });
  };
  if (areSameReads())
    return true;
  a = strip(a);
  b = strip(b);
  if (a == b || areSameReads())
    return true;
  if (a->kind != b->kind || a->operands.size() != b->operands.size())
    return false;
  switch (a->kind) {
  case Expr::Kind::Read:
    return false;
  case Expr::Kind::Constant:
    return a->constant == b->constant ||
           (a->getNumber() && a->getNumber() == b->getNumber());
  case Expr::Kind::Position:
    return areSameIndices(a->index, b->index);
  case Expr::Kind::Apply:
  case Expr::Kind::Reduce:
    break;
  }
  if (a->op->getName() != b->op->getName() ||
      a->op->getAttrDictionary() != b->op->getAttrDictionary())
    return false;
  if (a->kind == Expr::Kind::Reduce) {
    LoopIndex left = loops.resolve(a->index), right = loops.resolve(b->index);
    if (left.size() != right.size())
      return false;
    for (auto [x, y] : llvm::zip(left, right))
      loopsOfB[x] = y;
  } else if (!areSameIndices(a->index, b->index)) {
    return false;
  }
  return llvm::all_of(llvm::zip(a->operands, b->operands), [&](auto pair) {
    return areEqual(std::get<0>(pair), std::get<1>(pair), loopsOfB, steps);
  });
}
