//===- NormTolerances.cpp - how far norms of rows may be off --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NormTolerances.h"
#include "fi/Interpreter/Tolerance.h"

using namespace fi;

NormTolerances::NormTolerances(const NormInfo &norm, const BackendRun &run)
    : norm(norm), run(run), input(find(norm.input)), addend(find(norm.addend)),
      weight(find(norm.weight)), bias(find(norm.bias)) {}

std::optional<HostTensor> NormTolerances::find(int argument) const {
  if (argument < 0)
    return std::nullopt;
  return run.arguments[argument].getTensor();
}

double NormTolerances::getScale(int64_t head) const {
  if (norm.scales < 0)
    return 1;
  const HostValue &value = run.arguments[norm.scales];
  if (value.getKind() != HostValue::Kind::Tensor)
    return value.getNumber();
  return value.getTensor().getFloat({head});
}

double NormTolerances::getLargest(int64_t wantedRow, int64_t wantedHead) {
  // Rows that the program computes are not known here: as far from their mean
  // as this is, in units of their deviation, they are (NUM11).
  constexpr double kUnknown = 64;
  if (!input || (norm.hasAddend && !addend))
    return kUnknown;
  if (row == wantedRow && head == wantedHead)
    return largest;
  row = wantedRow;
  head = wantedHead;
  double magnitude = 0, mean = 0, squares = 0;
  auto dim = static_cast<double>(norm.dim);
  std::vector<double> elements(norm.dim);
  for (int64_t d = 0; d < norm.dim; ++d) {
    double x = input->getFloat({row, head, d});
    double r = addend ? addend->getFloat({row, head, d}) : 0;
    magnitude = std::max(magnitude, std::fabs(x) + std::fabs(r));
    elements[d] = x + r;
    mean += elements[d] / dim;
  }
  for (double x : elements)
    squares += (x - mean) * (x - mean);
  return largest = magnitude / std::sqrt(squares / dim + norm.epsilon);
}

double NormTolerances::ofNorm(llvm::ArrayRef<int64_t> index, double expected,
                              DType out) {
  // What codes stand for, before it is divided by the scale and rounded.
  double scale = norm.isCoded ? std::fabs(getScale(index[1])) : 1;
  double y = expected * scale;
  DType type = norm.isCoded ? DType::F32 : out;
  double factor = weight ? weight->getFloat({index[2]}) : 1;
  double tolerance =
      norm.centred
          ? layerNormTolerance(y, norm.plusOne ? 1 + factor : factor,
                               bias ? bias->getFloat({index[2]}) : 0,
                               getLargest(index[0], index[1]), norm.dim, type)
          : normTolerance(y, norm.dim, type);
  if (!norm.isCoded)
    return tolerance;
  return tolerance / scale + codeSpacing(expected, out);
}

double NormTolerances::ofSum(double expected, DType out) const {
  return std::fabs(expected) *
             (2 * unitRoundoff(out) + unitRoundoff(DType::F32)) +
         subnormalSpacing(out);
}
