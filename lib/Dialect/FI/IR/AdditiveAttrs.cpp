//===- AdditiveAttrs.cpp - normalisers of weights that add ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `#fi.sum` and `#fi.sigmoid`: a key's weight depends on its own score alone,
// and weights are not divided by their sum. There is no running state beside
// the accumulator, states over disjoint keys add, and the statistic is always
// 0.
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fi;

//===----------------------------------------------------------------------===//
// What the kinds have in common
//===----------------------------------------------------------------------===//

/// Every state counts as it is, but for those that stand in for none.
static NormaliserFold fold(Tiles t, ValueRange statistics) {
  NormaliserFold fold;
  for (Value x : statistics)
    fold.weights.push_back(
        t.select(t.equal(x, -kInf), t.constant(x, 0.0), t.constant(x, 1.0)));
  return fold;
}

#define ADDITIVE_KIND(KIND)                                                    \
  bool KIND::canMerge() const { return true; }                                 \
  bool KIND::canSink() const { return false; }                                 \
  bool KIND::canFold() const { return true; }                                  \
  bool KIND::isAdditive() const { return true; }                               \
  double KIND::getEmptyStatistic() const { return 0; }                         \
  SmallVector<Type> KIND::getRunningTypes(MLIRContext *, int64_t, int64_t)     \
      const {                                                                  \
    return {};                                                                 \
  }                                                                            \
  SmallVector<Value> KIND::buildInit(OpBuilder &, Location, int64_t, int64_t)  \
      const {                                                                  \
    return {};                                                                 \
  }                                                                            \
  NormaliserFold KIND::buildFold(TileArithmetic &a, ValueRange statistics,     \
                                 ValueRange) const {                           \
    return fold({a.builder, a.loc}, statistics);                               \
  }                                                                            \
  std::pair<Value, Value> KIND::buildFinalize(TileArithmetic &, ValueRange,    \
                                              Value) const {                   \
    return {};                                                                 \
  }                                                                            \
  MergeWeights KIND::buildMerge(TileArithmetic &, Value statisticA, Value)     \
      const {                                                                  \
    return {Value(), Value(), statisticA};                                     \
  }                                                                            \
  std::pair<Value, Value> KIND::buildSink(TileArithmetic &, Value statistic,   \
                                          Value) const {                       \
    return {Value(), statistic};                                               \
  }

ADDITIVE_KIND(SumAttr)
ADDITIVE_KIND(SigmoidAttr)

#undef ADDITIVE_KIND

//===----------------------------------------------------------------------===//
// Sum
//===----------------------------------------------------------------------===//

NormaliserUpdate SumAttr::buildUpdate(TileArithmetic &a, Value scores,
                                      ValueRange) const {
  Tiles t{a.builder, a.loc};
  Value isMasked = t.equal(scores, -kInf);
  return {t.select(isMasked, t.constant(scores, 0.0), scores), Value(), {}};
}

//===----------------------------------------------------------------------===//
// Sigmoid
//===----------------------------------------------------------------------===//

Attribute SigmoidAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalLess()))
    return SigmoidAttr::get(parser.getContext(), FloatAttr());
  double bias;
  if (parser.parseKeyword("bias") || parser.parseEqual() ||
      parser.parseFloat(bias) || parser.parseGreater())
    return {};
  return parser.getChecked<SigmoidAttr>(
      loc, parser.getContext(), parser.getBuilder().getF32FloatAttr(bias));
}

void SigmoidAttr::print(AsmPrinter &printer) const {
  if (!getBias())
    return;
  printer << "<bias = ";
  printer.printFloat(getBias().getValue());
  printer << ">";
}

LogicalResult
SigmoidAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    FloatAttr bias) {
  if (bias && !bias.getValue().isFinite())
    return emitError()
           << "expected a bias of a sigmoid that is finite, but got "
           << bias.getValueAsDouble() << " [NRM7]";
  return success();
}

/// With t = exp(-|x|), which cannot overflow, the sigmoid is 1 / (1 + t) or,
/// for negative x, t / (1 + t); that is 0 where x is -inf.
NormaliserUpdate SigmoidAttr::buildUpdate(TileArithmetic &a, Value scores,
                                          ValueRange) const {
  Tiles t{a.builder, a.loc};
  Value x = scores;
  if (getBias())
    x = t.add(x, t.constant(x, getBias().getValueAsDouble()));
  Value power = t.exp2(t.mul(t.abs(x), t.constant(x, -kLog2E)));
  Value one = t.constant(x, 1.0);
  Value part = t.div(one, t.add(one, power));
  Value weights = t.select(t.atLeast(x, 0.0), part, t.mul(power, part));
  return {weights, Value(), {}};
}
