//===- Normaliser.cpp - normaliser ops in the level 2 interpreter ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The normaliser ops of `#fi.softmax`, `#fi.sum` and `#fi.sigmoid`, row by row
// with exp and log and without the dialect's own arithmetic. The running state
// of a softmax is (accumulator, greatest score in natural units, sum of
// weights), with the sum in the first column; that of the others is the
// accumulator.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static constexpr double kInf = std::numeric_limits<double>::infinity();

namespace {
struct Matrix {
  std::vector<double> values;
  int64_t rows, columns;

  double &operator()(int64_t r, int64_t c) { return values[r * columns + c]; }
};

/// One kind of softmax.
struct Softmax {
  double toNatural; // statistic in its base, times this: natural units

  /// e^(x - reference), 0 for -inf.
  static double weight(double x, double reference) {
    return x == -kInf ? 0 : std::exp(x - reference);
  }
  double statistic(double reference, double sum) const {
    return sum == 0 ? -kInf : (reference + std::log(sum)) / toNatural;
  }
};
} // namespace

static Matrix get(Strand &strand, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return {strand.floats(tile), type.getDimSize(0), type.getDimSize(1)};
}

static void update(UpdateOp op, Strand &strand) {
  Matrix scores = get(strand, op.getScores());
  Matrix values = get(strand, op.getValues());
  Matrix acc = get(strand, op.getRunning()[0]);
  Matrix greatest = get(strand, op.getRunning()[1]);
  Matrix sum = get(strand, op.getRunning()[2]);
  for (int64_t r = 0; r < scores.rows; ++r) {
    double top = greatest(r, 0);
    for (int64_t c = 0; c < scores.columns; ++c)
      top = std::fmax(top, scores(r, c));
    double keep = Softmax::weight(greatest(r, 0), top);
    greatest(r, 0) = top;
    sum(r, 0) *= keep;
    for (int64_t d = 0; d < acc.columns; ++d)
      acc(r, d) *= keep;
    for (int64_t c = 0; c < scores.columns; ++c) {
      double weight = Softmax::weight(scores(r, c), top);
      sum(r, 0) += weight;
      for (int64_t d = 0; d < acc.columns; ++d)
        acc(r, d) += weight * values(c, d);
    }
  }
  strand.set(op.getResult(0), makeFloats(std::move(acc.values)));
  strand.set(op.getResult(1), makeFloats(std::move(greatest.values)));
  strand.set(op.getResult(2), makeFloats(std::move(sum.values)));
}

/// Adds finalised states, each as a key whose weight is the state's sum.
static void fold(FoldOp op, Softmax kind, Strand &strand) {
  Matrix acc = get(strand, op.getRunning()[0]);
  Matrix greatest = get(strand, op.getRunning()[1]);
  Matrix sum = get(strand, op.getRunning()[2]);
  for (size_t i = 0; i + 1 < op.getStates().size(); i += 2) {
    Matrix output = get(strand, op.getStates()[i]);
    const std::vector<double> &statistics =
        strand.floats(op.getStates()[i + 1]);
    for (int64_t r = 0; r < acc.rows; ++r) {
      double state = statistics[r] * kind.toNatural;
      double top = std::fmax(greatest(r, 0), state);
      double keep = Softmax::weight(greatest(r, 0), top);
      double weight = Softmax::weight(state, top);
      greatest(r, 0) = top;
      for (int64_t c = 0; c < sum.columns; ++c)
        sum(r, c) *= keep;
      sum(r, 0) += weight;
      for (int64_t d = 0; d < acc.columns; ++d)
        acc(r, d) = acc(r, d) * keep + output(r, d) * weight;
    }
  }
  strand.set(op.getResult(0), makeFloats(std::move(acc.values)));
  strand.set(op.getResult(1), makeFloats(std::move(greatest.values)));
  strand.set(op.getResult(2), makeFloats(std::move(sum.values)));
}

static void finalize(tile::FinalizeOp op, Softmax kind, Strand &strand) {
  Matrix acc = get(strand, op.getRunning()[0]);
  Matrix greatest = get(strand, op.getRunning()[1]);
  Matrix sum = get(strand, op.getRunning()[2]);
  std::vector<double> statistics;
  for (int64_t r = 0; r < acc.rows; ++r) {
    double top = greatest(r, 0), total = 0;
    for (int64_t c = 0; c < sum.columns; ++c)
      total += sum(r, c);
    double keep = 1;
    if (op.getSink()) {
      double sink = strand.floats(op.getSink())[r];
      double newTop = std::fmax(top, sink);
      keep = Softmax::weight(top, newTop);
      total = total * keep + Softmax::weight(sink, newTop);
      top = newTop;
    }
    for (int64_t d = 0; d < acc.columns; ++d)
      acc(r, d) = total == 0 ? 0 : acc(r, d) * keep / total;
    statistics.push_back(kind.statistic(top, total));
  }
  strand.set(op.getOutput(), makeFloats(std::move(acc.values)));
  strand.set(op.getStatistic(), makeFloats(std::move(statistics)));
}

/// Combines rows of (a, statistic a) and (b, statistic b), both in natural
/// units; without `b` its output is 0.
static void combine(Softmax kind, Matrix &a, std::vector<double> &statistics,
                    Matrix *b, const std::vector<double> &others) {
  for (int64_t r = 0; r < a.rows; ++r) {
    double top = std::fmax(statistics[r], others[r]);
    double weightA = Softmax::weight(statistics[r], top);
    double weightB = Softmax::weight(others[r], top);
    double total = weightA + weightB;
    for (int64_t d = 0; d < a.columns; ++d) {
      double sum = weightA * a(r, d) + (b ? weightB * (*b)(r, d) : 0);
      a(r, d) = total == 0 ? 0 : sum / total;
    }
    statistics[r] = kind.statistic(top, total);
  }
}

static std::vector<double> scaled(std::vector<double> values, double by) {
  for (double &value : values)
    value *= by;
  return values;
}

/// `#fi.sum`, or `#fi.sigmoid` with its bias.
static double weigh(Attribute kind, double score) {
  if (score == -kInf)
    return 0;
  auto sigmoid = dyn_cast<SigmoidAttr>(kind);
  if (!sigmoid)
    return score;
  double bias = sigmoid.getBias() ? sigmoid.getBias().getValueAsDouble() : 0.0;
  return 1 / (1 + std::exp(-(score + bias)));
}

/// Kinds whose states add; their statistics are 0.
static void evaluateAdditive(Operation *op, Attribute kind, Strand &strand) {
  auto zeros = [](Value tile) {
    return makeFloats(std::vector<double>(countElements(tile.getType()), 0.0));
  };
  if (auto init = dyn_cast<InitOp>(op)) {
    strand.set(init.getResult(0), zeros(init.getResult(0)));
  } else if (auto next = dyn_cast<UpdateOp>(op)) {
    Matrix scores = get(strand, next.getScores());
    Matrix values = get(strand, next.getValues());
    Matrix acc = get(strand, next.getRunning()[0]);
    for (int64_t r = 0; r < scores.rows; ++r)
      for (int64_t c = 0; c < scores.columns; ++c)
        if (double weight = weigh(kind, scores(r, c)); weight != 0)
          for (int64_t d = 0; d < acc.columns; ++d)
            acc(r, d) += weight * values(c, d);
    strand.set(next.getResult(0), makeFloats(std::move(acc.values)));
  } else if (auto more = dyn_cast<FoldOp>(op)) {
    std::vector<double> acc = strand.floats(more.getRunning()[0]);
    OperandRange states = more.getStates();
    for (size_t i = 0; i + 1 < states.size(); i += 2) {
      Matrix output = get(strand, states[i]);
      std::vector<double> statistics = strand.floats(states[i + 1]);
      // -inf stands for no state.
      for (int64_t r = 0; r < output.rows; ++r)
        for (int64_t d = 0; d < output.columns; ++d)
          if (statistics[r] != -kInf)
            acc[r * output.columns + d] += output(r, d);
    }
    strand.set(more.getResult(0), makeFloats(std::move(acc)));
  } else if (auto last = dyn_cast<tile::FinalizeOp>(op)) {
    strand.set(last.getOutput(),
               makeFloats(strand.floats(last.getRunning()[0])));
    strand.set(last.getStatistic(), zeros(last.getStatistic()));
  } else {
    auto merge = cast<tile::MergeOp>(op);
    std::vector<double> sum = strand.floats(merge.getOutputA());
    std::vector<double> other = strand.floats(merge.getOutputB());
    for (auto [a, b] : llvm::zip(sum, other))
      a += b;
    strand.set(merge.getOutput(), makeFloats(std::move(sum)));
    strand.set(merge.getStatistic(), zeros(merge.getStatistic()));
  }
}

llvm::Expected<bool> fi::tile::evaluateNormaliser(Operation *op,
                                                  Strand &strand) {
  if (!isa<InitOp, UpdateOp, FoldOp, tile::FinalizeOp, tile::MergeOp, SinkOp>(
          op))
    return false;
  Attribute kind = op->getAttr("normaliser");
  if (isa<SumAttr, SigmoidAttr>(kind)) {
    evaluateAdditive(op, kind, strand);
    return true;
  }
  auto attr = dyn_cast<SoftmaxAttr>(kind);
  if (!attr)
    return makeError(op, "expected #fi.softmax, #fi.sum or #fi.sigmoid, or a "
                         "kernel in which the normaliser is written out");
  Softmax softmax = {attr.getBase() == LseBase::Two ? std::log(2.0) : 1.0};
  unsigned running = isa<UpdateOp>(op) ? cast<UpdateOp>(op).getRunning().size()
                     : isa<tile::FinalizeOp>(op)
                         ? cast<tile::FinalizeOp>(op).getRunning().size()
                     : isa<FoldOp>(op) ? op->getNumResults()
                     : isa<InitOp>(op) ? op->getNumResults()
                                       : 3;
  if (running != 3)
    return makeError(op, "expected accumulator, maximum and sum, but got " +
                             llvm::Twine(running) + " tiles");
  if (auto init = dyn_cast<InitOp>(op)) {
    for (unsigned i : {0, 1, 2})
      strand.set(init.getResult(i),
                 makeFloats(std::vector<double>(
                     countElements(init.getResult(i).getType()),
                     i == 1 ? -kInf : 0.0)));
  } else if (auto next = dyn_cast<UpdateOp>(op)) {
    update(next, strand);
  } else if (auto another = dyn_cast<FoldOp>(op)) {
    fold(another, softmax, strand);
  } else if (auto last = dyn_cast<tile::FinalizeOp>(op)) {
    finalize(last, softmax, strand);
  } else if (auto merge = dyn_cast<tile::MergeOp>(op)) {
    Matrix a = get(strand, merge.getOutputA());
    Matrix b = get(strand, merge.getOutputB());
    std::vector<double> statistics =
        scaled(strand.floats(merge.getStatisticA()), softmax.toNatural);
    combine(softmax, a, statistics, &b,
            scaled(strand.floats(merge.getStatisticB()), softmax.toNatural));
    strand.set(merge.getOutput(), makeFloats(std::move(a.values)));
    strand.set(merge.getStatistic(), makeFloats(std::move(statistics)));
  } else {
    auto sink = cast<SinkOp>(op);
    Matrix a = get(strand, sink.getInputOutput());
    std::vector<double> statistics =
        scaled(strand.floats(sink.getInputStatistic()), softmax.toNatural);
    combine(softmax, a, statistics, nullptr, strand.floats(sink.getSink()));
    strand.set(sink.getOutput(), makeFloats(std::move(a.values)));
    strand.set(sink.getStatistic(), makeFloats(std::move(statistics)));
  }
  return true;
}
