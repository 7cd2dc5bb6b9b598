//===- TensorEvaluator.cpp - functions of linalg, in double ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorEvaluator.h"
#include "fi/Execution/Executor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace fi;
using namespace fi::test;

int64_t Numbers::getOffset(ArrayRef<int64_t> indices) const {
  int64_t offset = 0;
  for (auto [index, size] : llvm::zip(indices, shape))
    offset = offset * size + index;
  return offset;
}

static Numbers makeNumbers(ArrayRef<int64_t> shape) {
  Numbers result;
  result.shape.assign(shape.begin(), shape.end());
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  result.data.resize(size_t(count));
  return result;
}

/// Calls `body` with all indices below `sizes`, in order.
static void forEach(ArrayRef<int64_t> sizes,
                    llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(sizes, 0))
    return;
  SmallVector<int64_t> indices(sizes.size(), 0);
  for (;;) {
    body(indices);
    size_t d = sizes.size();
    while (d > 0 && ++indices[d - 1] == sizes[d - 1])
      indices[--d] = 0;
    if (d == 0)
      return;
  }
}

Numbers &TensorEvaluator::get(Value value) {
  auto found = values.find(value);
  if (found == values.end())
    llvm::report_fatal_error("TensorEvaluator: a value was not computed");
  return found->second;
}

SmallVector<int64_t> TensorEvaluator::getShape(Type type, ValueRange dynamic) {
  SmallVector<int64_t> shape(cast<ShapedType>(type).getShape());
  for (int64_t &size : shape)
    if (ShapedType::isDynamic(size)) {
      size = getIndex(dynamic.front());
      dynamic = dynamic.drop_front();
    }
  return shape;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static double getNumber(Attribute attribute) {
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  auto whole = cast<IntegerAttr>(attribute);
  return whole.getType().isInteger(1) ? double(whole.getValue().getZExtValue())
                                      : double(whole.getInt());
}

static bool compare(arith::CmpIPredicate predicate, double a, double b) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return a < b;
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return a <= b;
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return a > b;
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return a >= b;
  }
  return false;
}

static double apply(Operation *op, ArrayRef<double> x) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([&](arith::AddFOp) { return x[0] + x[1]; })
      .Case([&](arith::SubFOp) { return x[0] - x[1]; })
      .Case([&](arith::MulFOp) { return x[0] * x[1]; })
      .Case([&](arith::DivFOp) { return x[0] / x[1]; })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return std::fmax(x[0], x[1]); })
      .Case<arith::AddIOp>([&](auto) { return x[0] + x[1]; })
      .Case<arith::SubIOp>([&](auto) { return x[0] - x[1]; })
      .Case<arith::MulIOp>([&](auto) { return x[0] * x[1]; })
      .Case<arith::DivUIOp>([&](auto) { return std::floor(x[0] / x[1]); })
      .Case<arith::AndIOp>([&](auto) { return double(x[0] && x[1]); })
      .Case([&](arith::CmpIOp cmp) {
        return double(compare(cmp.getPredicate(), x[0], x[1]));
      })
      .Case([&](arith::SelectOp) { return x[0] ? x[1] : x[2]; })
      .Case([&](math::ExpOp) { return std::exp(x[0]); })
      .Case([&](math::Exp2Op) { return std::exp2(x[0]); })
      .Case([&](math::TanhOp) { return std::tanh(x[0]); })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::IndexCastOp, arith::SIToFPOp,
            arith::ExtSIOp>([&](auto) { return x[0]; })
      .Default([](Operation *other) -> double {
        llvm::report_fatal_error("TensorEvaluator: unknown op " +
                                 other->getName().getStringRef());
      });
}

double TensorEvaluator::evaluateScalar(Value value, Operation *of,
                                       ArrayRef<int64_t> loops,
                                       Scalars &scalars) {
  if (auto found = scalars.find(value); found != scalars.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  if (!op || op->getParentOp() != of)
    return get(value).data[0];
  double result;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    result = getNumber(constant.getValue());
  } else if (auto index = dyn_cast<linalg::IndexOp>(op)) {
    result = double(loops[size_t(index.getDim())]);
  } else {
    SmallVector<double> operands;
    for (Value operand : op->getOperands())
      operands.push_back(evaluateScalar(operand, of, loops, scalars));
    result = apply(op, operands);
  }
  return scalars[value] = result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void TensorEvaluator::evaluate(linalg::LinalgOp op) {
  // Sizes of loops, from the operands.
  SmallVector<int64_t> sizes(op.getNumLoops(), 1);
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (OpOperand &operand : op->getOpOperands())
    for (auto [number, expr] :
         llvm::enumerate(maps[operand.getOperandNumber()].getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        sizes[dim.getPosition()] = get(operand.get()).shape[number];
  for (auto [result, init] : llvm::zip(op->getResults(), op.getDpsInits())) {
    Numbers copy = get(init);
    values[result] = copy;
  }
  Operation *yield = op.getBlock()->getTerminator();
  // Nothing is added to the values any more: they stay where they are.
  SmallVector<Numbers *> operands;
  for (OpOperand &operand : op->getOpOperands())
    operands.push_back(&get(op.isDpsInit(&operand)
                                ? Value(op.getTiedOpResult(&operand))
                                : operand.get()));
  forEach(sizes, [&](ArrayRef<int64_t> loops) {
    auto locate = [&](OpOperand &operand) {
      SmallVector<int64_t> indices;
      for (AffineExpr expr : maps[operand.getOperandNumber()].getResults()) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        indices.push_back(dim ? loops[dim.getPosition()] : 0);
      }
      return indices;
    };
    Scalars scalars;
    for (OpOperand &operand : op->getOpOperands()) {
      scalars[op.getMatchingBlockArgument(&operand)] =
          operands[operand.getOperandNumber()]->at(locate(operand));
    }
    SmallVector<double> yielded;
    for (Value value : yield->getOperands())
      yielded.push_back(evaluateScalar(value, op, loops, scalars));
    for (auto [number, value] : llvm::enumerate(yielded)) {
      OpOperand *init = op.getDpsInitOperand(int64_t(number));
      get(op->getResult(unsigned(number))).at(locate(*init)) = value;
    }
  });
}

void TensorEvaluator::evaluateSoftmax(linalg::SoftmaxOp op) {
  Numbers input = get(op.getInput());
  size_t dim = op.getDimension();
  Numbers result = makeNumbers(input.shape);
  SmallVector<int64_t> rows(input.shape);
  rows[dim] = 1;
  forEach(rows, [&](ArrayRef<int64_t> row) {
    SmallVector<int64_t> at(row);
    double sum = 0;
    for (at[dim] = 0; at[dim] < input.shape[dim]; ++at[dim])
      sum += std::exp(input.at(at));
    for (at[dim] = 0; at[dim] < input.shape[dim]; ++at[dim])
      result.at(at) = std::exp(input.at(at)) / sum;
  });
  values[op->getResult(0)] = result;
}

void TensorEvaluator::evaluate(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Numbers result;
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue())) {
      result = makeNumbers(elements.getType().getShape());
      for (auto [number, value] :
           llvm::zip(result.data, elements.getValues<Attribute>()))
        number = getNumber(value);
    } else {
      result = makeNumbers({});
      result.data[0] = getNumber(constant.getValue());
    }
    values[constant] = result;
  } else if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op)) {
    evaluateSoftmax(softmax);
  } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    evaluate(linalgOp);
  } else if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    values[empty] = makeNumbers(getShape(empty.getType(), empty.getOperands()));
  } else if (isa<tensor::SplatOp, tensor::FromElementsOp>(op)) {
    double number = get(op->getOperand(0)).data[0];
    auto type = cast<ShapedType>(op->getResult(0).getType());
    Numbers result = makeNumbers(type.getShape());
    llvm::fill(result.data, number);
    values[op->getResult(0)] = result;
  } else if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    Numbers result = makeNumbers({});
    result.data[0] =
        double(get(dim.getSource()).shape[size_t(getIndex(dim.getIndex()))]);
    values[dim] = result;
  } else if (auto cast = dyn_cast<tensor::CastOp>(op)) {
    Numbers copy = get(cast.getSource());
    values[cast] = copy;
  } else if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    Numbers result = get(expand.getSrc());
    result.shape = getShape(expand.getType(), expand.getOutputShape());
    values[expand] = result;
  } else if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op)) {
    Numbers result = get(collapse.getSrc());
    SmallVector<int64_t> shape;
    for (const ReassociationIndices &group :
         collapse.getReassociationIndices()) {
      shape.push_back(1);
      for (int64_t part : group)
        shape.back() *= result.shape[size_t(part)];
    }
    result.shape = shape;
    values[collapse] = result;
  } else if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    Numbers result =
        makeNumbers(getShape(generate.getType(), generate.getDynamicExtents()));
    Block &body = generate.getBody().front();
    forEach(result.shape, [&](ArrayRef<int64_t> indices) {
      Scalars scalars;
      for (auto [argument, index] : llvm::zip(body.getArguments(), indices))
        scalars[argument] = double(index);
      result.at(indices) = evaluateScalar(body.getTerminator()->getOperand(0),
                                          op, indices, scalars);
    });
    values[generate] = result;
  } else if (auto call = dyn_cast<RunOp>(op)) {
    run(call);
  } else if (!isa<PlanOp, func::ReturnOp>(op)) {
    // Elementwise on scalars or tensors.
    Numbers result = makeNumbers(get(op->getOperand(0)).shape);
    for (size_t i = 0; i < result.data.size(); ++i) {
      SmallVector<double> operands;
      for (Value operand : op->getOperands())
        operands.push_back(get(operand).data[i]);
      result.data[i] = apply(op, operands);
    }
    values[op->getResult(0)] = result;
  }
}

Numbers TensorEvaluator::evaluate(func::FuncOp function,
                                  ArrayRef<Numbers> arguments) {
  values.clear();
  for (auto [argument, numbers] : llvm::zip(function.getArguments(), arguments))
    values[argument] = numbers;
  for (Operation &op : function.getOps())
    evaluate(&op);
  return get(function.getBody().front().getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static HostTensor toHost(const Numbers &numbers, Type element) {
  HostTensor tensor(*getDType(element), numbers.shape);
  int64_t bytes = getByteSize(tensor.getType());
  for (size_t i = 0; i < numbers.data.size(); ++i) {
    char *address = static_cast<char *>(tensor.getData()) + int64_t(i) * bytes;
    if (isFloat(tensor.getType()))
      writeFloat(address, tensor.getType(), numbers.data[i]);
    else
      writeInteger(address, tensor.getType(), int64_t(numbers.data[i]));
  }
  return tensor;
}

void TensorEvaluator::run(RunOp op) {
  auto executor = llvm::cantFail(Executor::create(
      backend, op->getParentOfType<ModuleOp>(), op.getProgram(), {}));
  auto plan = op.getPlan().getDefiningOp<PlanOp>();
  std::vector<HostValue> inputs;
  for (ValueRange group : {plan.getValues(), op.getValues()})
    for (Value value : group) {
      if (isa<ShapedType>(value.getType()))
        inputs.push_back(
            toHost(get(value), getElementTypeOrSelf(value.getType())));
      else if (isa<FloatType>(value.getType()))
        inputs.push_back(HostValue::number(get(value).data[0]));
      else
        inputs.push_back(HostValue::integer(getIndex(value)));
    }
  auto results = llvm::cantFail(executor->allocateResults(inputs));
  llvm::cantFail(executor->plan(inputs));
  llvm::cantFail(executor->runOnHost(inputs, results));
  for (size_t i = 0; i < results.size(); ++i) {
    Numbers out = makeNumbers(results[i].getShape());
    forEach(out.shape, [&](ArrayRef<int64_t> indices) {
      out.at(indices) = results[i].getFloat(indices);
    });
    values[op->getResult(unsigned(i))] = out;
  }
}
