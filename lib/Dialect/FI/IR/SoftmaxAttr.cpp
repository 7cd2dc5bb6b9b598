//===- SoftmaxAttr.cpp - the softmax normaliser ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Online softmax on tiles. The running state is (m, l): the row maximum of the
// scores in base-2 units, and partial sums of 2^(x - m) in `lanes` columns.
// Masked scores are -inf; a row whose keys are all masked keeps m = -inf, for
// which 0 stands in as the subtrahend, so that no inf - inf arises and every
// weight is 0.
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fi;

namespace {
constexpr double kLn2 = 0.6931471805599453;
/// How far, in powers of 2, scores may pass what is subtracted from them.
constexpr double kSlack = 8;
} // namespace

Attribute SoftmaxAttr::parse(AsmParser &parser, Type) {
  SMLoc loc;
  LseBase base;
  if (parser.parseLess() || parser.parseKeyword("base") || parser.parseEqual())
    return {};
  loc = parser.getCurrentLocation();
  int64_t number;
  OptionalParseResult integer = parser.parseOptionalInteger(number);
  if (integer.has_value()) {
    if (failed(*integer) || number != 2) {
      parser.emitError(loc, "expected base 2 or e, but got ") << number;
      return {};
    }
    base = LseBase::Two;
  } else {
    if (parser.parseKeyword("e"))
      return {};
    base = LseBase::E;
  }
  if (parser.parseGreater())
    return {};
  return SoftmaxAttr::get(parser.getContext(), base);
}

void SoftmaxAttr::print(AsmPrinter &printer) const {
  printer << "<base = " << stringifyLseBase(getBase()) << ">";
}

bool SoftmaxAttr::canMerge() const { return true; }
bool SoftmaxAttr::canSink() const { return true; }
bool SoftmaxAttr::canFold() const { return true; }
double SoftmaxAttr::getEmptyStatistic() const { return -kInf; }

SmallVector<Type> SoftmaxAttr::getRunningTypes(MLIRContext *context,
                                               int64_t rows,
                                               int64_t lanes) const {
  Type f32 = Float32Type::get(context);
  return {RankedTensorType::get({rows, 1}, f32),
          RankedTensorType::get({rows, lanes}, f32)};
}

SmallVector<Value> SoftmaxAttr::buildInit(OpBuilder &b, Location loc,
                                          int64_t rows, int64_t lanes) const {
  SmallVector<Type> types = getRunningTypes(b.getContext(), rows, lanes);
  Tiles t{b, loc};
  return {t.constant(cast<RankedTensorType>(types[0]), -kInf),
          t.constant(cast<RankedTensorType>(types[1]), 0.0)};
}

/// Moves the maximum `m` to `top` where needed, and gives what exponents
/// subtract. It moves only where weights would pass 2^kSlack: any that is near
/// the maximum will do, and most tiles then leave the accumulator as it is. A
/// first maximum moves it from -inf; a NaN moves it too.
static Value moveMaximum(Tiles t, Value &m, Value top) {
  m = t.select(t.atMost(top, t.add(m, t.constant(m, kSlack))), m, top);
  return t.subtrahend(m);
}

/// The update by scores in base-2 units.
static NormaliserUpdate update(Tiles t, TileArithmetic &a, Value x,
                               ValueRange running) {
  Value m = running[0], l = running[1];
  int64_t lanes = cast<RankedTensorType>(l.getType()).getDimSize(1);
  Value newM = m;
  Value subtrahend = moveMaximum(t, newM, a.reduceMax(x));
  Value factor = t.exp2(t.sub(m, subtrahend));
  Value weights = t.exp2(t.sub(x, a.broadcastRows(subtrahend, x)));
  Value newL = t.add(t.mul(l, a.broadcastRows(factor, l)),
                     a.reduceAddKeep(weights, lanes));
  return {weights, factor, {newM, newL}};
}

NormaliserUpdate SoftmaxAttr::buildUpdate(TileArithmetic &a, Value scores,
                                          ValueRange running) const {
  Tiles t{a.builder, a.loc};
  return update(t, a, t.mul(scores, t.constant(scores, kLog2E)), running);
}

/// The statistic in this kind's base, from base-2 units.
static Value fromBaseTwo(Tiles t, LseBase base, Value x) {
  return base == LseBase::Two ? x : t.mul(x, t.constant(x, kLn2));
}
/// The statistic in base-2 units.
static Value toBaseTwo(Tiles t, LseBase base, Value x) {
  return base == LseBase::Two ? x : t.mul(x, t.constant(x, kLog2E));
}

/// A state weighs like one key whose score is its statistic.
NormaliserFold SoftmaxAttr::buildFold(TileArithmetic &a, ValueRange statistics,
                                      ValueRange running) const {
  Tiles t{a.builder, a.loc};
  SmallVector<Value> scores = llvm::map_to_vector(
      statistics, [&](Value x) { return toBaseTwo(t, getBase(), x); });
  Value top = scores.front();
  for (Value x : llvm::drop_begin(scores))
    top = t.max(top, x);
  Value m = running[0], newM = m;
  Value subtrahend = moveMaximum(t, newM, top);
  NormaliserFold fold;
  fold.factor = t.exp2(t.sub(m, subtrahend));
  Value sum = t.mul(running[1], fold.factor);
  for (Value x : scores) {
    fold.weights.push_back(t.exp2(t.sub(x, subtrahend)));
    sum = t.add(sum, fold.weights.back());
  }
  fold.running = {newM, sum};
  return fold;
}

std::pair<Value, Value> SoftmaxAttr::buildFinalize(TileArithmetic &a,
                                                   ValueRange running,
                                                   Value sink) const {
  Tiles t{a.builder, a.loc};
  Value m = running[0];
  Value sum = a.reduceAdd(running[1]);
  Value top = m, scale;
  if (sink) {
    Value x = t.mul(sink, t.constant(sink, kLog2E));
    top = t.max(m, x);
    Value subtrahend = t.subtrahend(top);
    scale = t.exp2(t.sub(m, subtrahend));
    sum = t.add(t.mul(sum, scale), t.exp2(t.sub(x, subtrahend)));
  }
  // A row without weight: output 0, statistic -inf (NRM1).
  Value none = t.equal(sum, 0.0);
  Value safe = t.select(none, t.constant(sum, 1.0), sum);
  Value factor = scale ? t.div(scale, safe) : t.div(t.constant(sum, 1.0), safe);
  Value statistic = t.add(t.subtrahend(top), t.log2(safe));
  statistic = t.select(none, t.constant(sum, -kInf), statistic);
  return {factor, fromBaseTwo(t, getBase(), statistic)};
}

MergeWeights SoftmaxAttr::buildMerge(TileArithmetic &a, Value statisticA,
                                     Value statisticB) const {
  Tiles t{a.builder, a.loc};
  Value sa = toBaseTwo(t, getBase(), statisticA);
  Value sb = toBaseTwo(t, getBase(), statisticB);
  Value top = t.max(sa, sb);
  Value subtrahend = t.subtrahend(top);
  Value wa = t.exp2(t.sub(sa, subtrahend));
  Value wb = t.exp2(t.sub(sb, subtrahend));
  Value sum = t.add(wa, wb);
  Value none = t.equal(sum, 0.0);
  Value safe = t.select(none, t.constant(sum, 1.0), sum);
  Value statistic = t.add(subtrahend, t.log2(safe));
  statistic = t.select(none, t.constant(sum, -kInf), statistic);
  return {t.div(wa, safe), t.div(wb, safe),
          fromBaseTwo(t, getBase(), statistic)};
}

std::pair<Value, Value>
SoftmaxAttr::buildSink(TileArithmetic &a, Value statistic, Value sink) const {
  Tiles t{a.builder, a.loc};
  // A sink is a state with output 0: merge with it, in this kind's base.
  Value units =
      getBase() == LseBase::Two ? t.mul(sink, t.constant(sink, kLog2E)) : sink;
  MergeWeights merged = buildMerge(a, statistic, units);
  return {merged.weightA, merged.statistic};
}
