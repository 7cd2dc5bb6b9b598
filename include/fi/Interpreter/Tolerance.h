//===- Tolerance.h - how far a kernel may be from the reference -*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The numeric contract of docs/spec.md (NUM1 to NUM12) as a formula: bounds on
// the difference of outputs and statistics between a kernel that accumulates in
// f32 and the reference, both rounded to the result's type.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INTERPRETER_TOLERANCE_H
#define FI_INTERPRETER_TOLERANCE_H

#include "fi/Support/HostTensor.h"
#include <algorithm>
#include <cmath>
#include <optional>

namespace fi {

/// Largest relative error of rounding to nearest: 2^-24 for f32.
inline double unitRoundoff(DType type) {
  switch (type) {
  case DType::F64:
    return 0x1p-53;
  case DType::F16:
    return 0x1p-11;
  case DType::BF16:
    return 0x1p-8;
  default:
    return 0x1p-24;
  }
}

/// What the error of a row depends on.
struct ErrorTerms {
  DType in = DType::F32;
  DType out = DType::F32;
  /// Largest |scale| * sum |q_d| |k_d| of a visible key (|scale| |q| |k| bounds
  /// it): what a score is rounded relative to, also where it cancels.
  double maxScore = 0;
  /// Head dim of keys.
  int64_t dim = 0;
  /// Most visible keys of a row.
  int64_t keys = 0;
  /// Largest |v|.
  double maxValue = 0;
  /// Absolute error that regions and transforms add to a score, natural units.
  double scoreError = 0;
  /// |sink|, a logit in natural units, where there is one.
  double sink = 0;
  /// Type to which weights are rounded before they multiply values; that of the
  /// inputs if absent.
  std::optional<DType> weights;
  /// Whether keys or values are codes with scales, and whether values are
  /// rounded to the type of the inputs when scaled (NUM9).
  bool isScaled = false, roundsValues = false;
  /// Whether scores may be sums of tensor cores that keep few bits (NUM16).
  bool hasCoarseSums = false;
  /// Whether rounding errors may be taken as independent, as on random data:
  /// they then grow with the root of the number of terms (NUM2).
  bool independent = false;
  /// Of kinds whose weights are not normalised, over all visible keys: the
  /// largest, over the elements of an output, sum |weight v| and sum of squares
  /// of weight v; and |output|, the reference's element.
  bool isAdditive = false;
  double weightedSum = 0, weightedSquares = 0, output = 0;
};

/// NUM2: error of a sum of `terms` products in f32, relative to the sum of
/// their magnitudes.
inline double accumulationError(double terms, bool independent,
                                double unit = unitRoundoff(DType::F32)) {
  constexpr double deviations = 8;
  double steps =
      independent ? std::min(terms, deviations * std::sqrt(terms)) : terms;
  return steps * unit;
}

/// NUM3: absolute error of a score in natural units.
inline double scoreErrorBound(const ErrorTerms &t) {
  constexpr double roundings = 6; // scale, log2(e), its constant, maximum, ...
  double u = unitRoundoff(DType::F32);
  constexpr double kCoarse = 0x1p-13;
  double score =
      t.maxScore * (accumulationError(t.dim, t.independent,
                                      t.hasCoarseSums ? kCoarse : u) +
                    (roundings + (t.isScaled ? 2 : 0)) * u) +
      t.scoreError;
  // A sink is a score without a product.
  return std::max(score, roundings * u * t.sink);
}

/// NUM4: relative error of one exponential.
inline constexpr double kExpError = 0x1p-21;

/// NUM9: relative error of values that are scaled.
inline double scalingError(const ErrorTerms &t) {
  if (!t.isScaled)
    return 0;
  return 2 * unitRoundoff(DType::F32) +
         (t.roundsValues && isFloat(t.in) ? unitRoundoff(t.in) : 0);
}

/// NUM8: bound on the difference of an output element of weights that are not
/// normalised.
inline double additiveTolerance(const ErrorTerms &t) {
  constexpr double deviations = 8;
  DType weights = t.weights.value_or(isFloat(t.in) ? t.in : DType::F32);
  double rounded = t.weightedSum;
  if (t.independent)
    rounded = std::min(rounded, deviations * std::sqrt(t.weightedSquares));
  rounded *= weights == DType::F32 ? 0 : unitRoundoff(weights);
  // The smallest f16 is coarse, of weights and of outputs.
  double perKey =
      scoreErrorBound(t) + (weights == DType::F16 ? 0x1p-24 : 0x1p-126);
  double error = static_cast<double>(t.keys) * t.maxValue * perKey + rounded +
                 t.weightedSum *
                     (2 * kExpError + accumulationError(t.keys, t.independent));
  error += t.weightedSum * scalingError(t);
  double absolute = t.out == DType::F16 ? 0x1p-24 : 0x1p-126;
  return error + 2 * unitRoundoff(t.out) * (t.output + error) + absolute;
}

/// NUM6: bound on the difference of an output element.
inline double outputTolerance(const ErrorTerms &t) {
  if (t.isAdditive)
    return additiveTolerance(t);
  double u = unitRoundoff(DType::F32);
  DType weights = t.weights.value_or(isFloat(t.in) ? t.in : DType::F32);
  double rounded = weights == DType::F32 ? 0 : unitRoundoff(weights);
  // Merging weighs by statistics that are stored in f32.
  double merge =
      2 * u *
      (std::max(t.maxScore, t.sink) + std::log(std::max<double>(t.keys, 1)));
  double relative = std::expm1(2 * scoreErrorBound(t)) + 2 * kExpError +
                    2 * accumulationError(t.keys, t.independent) + merge +
                    rounded + scalingError(t) + 2 * unitRoundoff(t.out);
  // The smallest f16 is coarse; no output is farther than all values apart.
  double absolute = t.out == DType::F16 ? 0x1p-24 : 0x1p-126;
  if (t.roundsValues && t.in == DType::F16)
    absolute += 0x1p-24;
  return t.maxValue * std::min(relative, 2.0) + absolute;
}

/// NUM7: bound on the difference of a finite statistic; `base` is 2 or e.
inline double statisticTolerance(const ErrorTerms &t, double base = 2) {
  if (t.isAdditive)
    return 0; // NUM8
  double u = unitRoundoff(DType::F32);
  double magnitude = std::max(t.maxScore + t.scoreError, t.sink) +
                     std::log(std::max<double>(t.keys, 1));
  double natural = scoreErrorBound(t) + kExpError +
                   accumulationError(t.keys, t.independent) +
                   4 * u * (magnitude + 1);
  return natural / std::log(base);
}

/// At least the distance of a code's number from the next one.
inline double codeSpacing(double number, DType type) {
  switch (type) {
  case DType::I8:
    return 1;
  case DType::F8E4M3FN:
    return std::max(0x1p-9, std::fabs(number) / 8);
  case DType::F8E5M2:
    return std::max(0x1p-16, std::fabs(number) / 4);
  default:
    return 0;
  }
}

/// The spacing of subnormal numbers, where a result may be one.
inline double subnormalSpacing(DType type) {
  return type == DType::F16 ? 0x1p-24 : 0x1p-126;
}

/// NUM10: bound on the difference of an element of a norm of rows, from the
/// reference's.
inline double normTolerance(double expected, int64_t dim, DType out) {
  double relative = accumulationError(static_cast<double>(dim), false) / 2 +
                    2 * kExpError + 2 * unitRoundoff(out);
  return std::fabs(expected) * relative + subnormalSpacing(out);
}

/// NUM11: the same where rows lose their mean, `largest` being the largest
/// element of the row in units of its deviation.
inline double layerNormTolerance(double expected, double weight, double bias,
                                 double largest, int64_t dim, DType out) {
  double u = unitRoundoff(DType::F32);
  double sum = accumulationError(static_cast<double>(dim), false);
  double scaled = std::fabs(expected - bias);
  double cancelled = largest * (sum + 2 * u);
  return (std::fabs(weight) + scaled) * cancelled +
         scaled * (sum / 2 + 2 * kExpError) + 2 * u * std::fabs(bias) +
         2 * unitRoundoff(out) * std::fabs(expected) + subnormalSpacing(out);
}

/// What f32 operations on one element are off by, relative to what they work
/// with: exponentials, quotients, functions of a polynomial.
inline constexpr double kElementError = 0x1p-20;

/// NUM13: bound on the difference of an element that is off by `error` before
/// it is rounded.
inline double elementTolerance(double expected, double error, DType out) {
  // Integers are 1 apart.
  if (out == DType::I8)
    return error + 1;
  // The spacing of subnormal numbers.
  double absolute = out == DType::F16        ? 0x1p-24
                    : out == DType::F8E4M3FN ? 0x1p-9
                    : out == DType::F8E5M2   ? 0x1p-16
                                             : 0x1p-126;
  double unit = out == DType::F8E4M3FN ? 0x1p-4
                : out == DType::F8E5M2 ? 0x1p-3
                                       : unitRoundoff(out);
  return error + 2 * unit * (std::fabs(expected) + error) + absolute;
}

} // namespace fi

#endif // FI_INTERPRETER_TOLERANCE_H
