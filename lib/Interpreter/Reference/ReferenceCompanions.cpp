//===- ReferenceCompanions.cpp - what stands beside attention -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows in double, and by how much backends that compute in f32 may differ from
// them (NUM13).
//
//===----------------------------------------------------------------------===//

#include "RowElements.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fi;
using namespace fi::reference;

//===----------------------------------------------------------------------===//
// Gates
//===----------------------------------------------------------------------===//

namespace {
struct Activated {
  double value;
  /// By how much f32 is off.
  double error;
};
} // namespace

static Activated activate(Activation kind, double x) {
  // A logistic function of z, whose exponential f32 may not hold.
  auto logistic = [&](double z) {
    double value = x / (1 + std::exp(-z));
    return Activated{value,
                     std::fabs(value) * (1 + std::fabs(z)) * kElementError +
                         0x1p-120};
  };
  switch (kind) {
  case Activation::Silu:
    return logistic(x);
  case Activation::GeluTanh:
    return logistic(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
  case Activation::Gelu:
    return {x * std::erfc(-x / std::sqrt(2.0)) / 2,
            std::fabs(x) * kElementError};
  }
  return {0, 0};
}

void fi::reference::evaluateGated(GatedOp op, const Rows &input, Rows &result) {
  int64_t dim = input.values.getSize(2) / 2;
  // No activation rises faster.
  constexpr double slope = 1.13;
  visitRows(input.values, [&](int64_t row, int64_t head) {
    for (int64_t d = 0; d < dim; ++d) {
      int64_t gate[] = {row, head, d}, other[] = {row, head, d + dim};
      double factor = input.values.getFloat(other);
      Activated act = activate(op.getActivation(), input.values.getFloat(gate));
      double error =
          std::fabs(factor) * (act.error + slope * errorOf(input, gate)) +
          std::fabs(act.value) * errorOf(input, other);
      setElement(result, gate, act.value * factor, error);
    }
  });
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

bool fi::reference::transformPairs(RegionFunction &region, Pairing pairing,
                                   int64_t dims, int64_t request, int64_t head,
                                   int64_t position,
                                   MutableArrayRef<double> row) {
  for (int64_t pair = 0; pair < dims / 2; ++pair) {
    auto [first, second] = pairOf(pairing, dims, pair);
    double &x = row[first], &y = row[second];
    if (!region.call({Scalar::of(x), Scalar::of(y), Scalar::of(pair),
                      Scalar::of(request), Scalar::of(head),
                      Scalar::of(position)}))
      return false;
    x = region.result(0).number;
    y = region.result(1).number;
  }
  return true;
}

bool fi::reference::computesFunctions(Region &region) {
  return region
      .walk([](Operation *op) {
        return isa<math::MathDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

double fi::reference::pairError(bool isComputed, int64_t position,
                                double before, double after) {
  // Angles are products of positions, and errors in them relative to these.
  double largest =
      isComputed ? 1 + std::fabs(static_cast<double>(position)) : 1;
  return kElementError * largest * (before + after);
}

bool fi::reference::evaluateRope(RopeOp op, const Rows &input,
                                 const HostTensor &positions,
                                 ArrayRef<Capture> captures, Rows &result,
                                 std::string &error) {
  BatchError report(op, error);
  if (positions.getSize(0) < input.values.getSize(0))
    return report("expected operand 'positions' to have at least " +
                  Twine(input.values.getSize(0)) + " elements, but got " +
                  Twine(positions.getSize(0)) + " [ROPE3]");
  RegionFunction region;
  if (!region.prepare(op.getTransform().front(), 6, captures))
    return report("failed in a region: " + Twine(region.getError()) +
                  " [BAT11]");
  int64_t dim = input.values.getSize(2), dims = op.getPairedDims();
  bool isComputed = computesFunctions(op.getTransform());
  std::vector<double> before(dim), after;
  bool good = true;
  visitRows(input.values, [&](int64_t row, int64_t head) {
    for (int64_t d = 0; d < dim; ++d)
      before[d] = input.values.getFloat({row, head, d});
    after = before;
    int64_t position = positions.getInteger({row});
    good = good && transformPairs(region, op.getPairing(), dims, /*request=*/0,
                                  head, position, after);
    for (int64_t pair = 0; pair < dims / 2; ++pair) {
      auto [first, second] = pairOf(op.getPairing(), dims, pair);
      double was = std::fabs(before[first]) + std::fabs(before[second]);
      double is = std::fabs(after[first]) + std::fabs(after[second]);
      double gain = was > 0 ? std::max(1.0, is / was) : 1;
      double off = pairError(isComputed, position, was, is) +
                   2 * gain *
                       (errorOf(input, {row, head, first}) +
                        errorOf(input, {row, head, second}));
      for (int64_t d : {first, second})
        setElement(result, {row, head, d}, after[d], off);
    }
    for (int64_t d = dims; d < dim; ++d)
      setElement(result, {row, head, d}, after[d],
                 errorOf(input, {row, head, d}));
  });
  return good ||
         report("failed in a region: " + Twine(region.getError()) + " [BAT11]");
}
