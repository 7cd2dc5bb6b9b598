//===- ToleranceTest.cpp - the numeric contract ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An attention in plain f32 must stay within the bounds, on ordinary and on
// hostile inputs, and a lost key must not.
//
//===----------------------------------------------------------------------===//

#include "fi/Interpreter/Tolerance.h"
#include "ReferenceTesting.h"
#include "llvm/ADT/STLFunctionalExtras.h"

using namespace fi;
using namespace fi::test;

namespace {

/// One row: float inputs of `keys` keys.
struct Row {
  int64_t dim, keys;
  std::vector<float> q, k, v;

  Row(int64_t dim, int64_t keys)
      : dim(dim), keys(keys), q(dim), k(dim * keys), v(keys) {}

  void randomize(unsigned seed, float spread) {
    std::mt19937 generator(seed);
    auto next = [&] {
      return static_cast<float>(generator() / 4294967296.0 - 0.5) * 2;
    };
    for (float &x : q)
      x = spread * next();
    for (float &x : k)
      x = spread * next();
    for (float &x : v)
      x = next();
  }

  ErrorTerms terms(double scale) const {
    ErrorTerms t;
    t.dim = dim;
    t.keys = keys;
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += std::fabs(double(q[d]) * k[j * dim + d]);
      t.maxScore = std::max(t.maxScore, std::fabs(scale) * sum);
      t.maxValue = std::max(t.maxValue, std::fabs(double(v[j])));
    }
    return t;
  }
};

/// Output and base-2 statistic, all of it in T; online over tiles of 16 keys.
template <typename T>
std::pair<double, double> attend(const Row &row, float scale, int64_t keys) {
  T m = -kInf, l = 0, o = 0;
  for (int64_t begin = 0; begin < keys; begin += 16) {
    int64_t end = std::min(begin + 16, keys);
    T x[16], top = m;
    for (int64_t j = begin; j < end; ++j) {
      T dot = 0;
      for (int64_t d = 0; d < row.dim; ++d)
        dot += T(row.q[d]) * T(row.k[j * row.dim + d]);
      x[j - begin] = T(scale) * dot * T(1.4426950408889634);
      top = std::max(top, x[j - begin]);
    }
    T factor = std::exp2(m - top);
    l *= factor;
    o *= factor;
    for (int64_t j = begin; j < end; ++j) {
      T weight = std::exp2(x[j - begin] - top);
      l += weight;
      o += weight * T(row.v[j]);
    }
    m = top;
  }
  return {o / l, m + std::log2(l)};
}

} // namespace

TEST(Tolerance, holdsOnRandomRows) {
  for (bool independent : {false, true})
    for (int64_t dim : {8, 64, 128, 512})
      for (int64_t keys : {1, 17, 1000})
        for (float spread : {0.5f, 2.0f, 8.0f}) {
          Row row(dim, keys);
          row.randomize(dim + keys, spread);
          float scale = 1 / std::sqrt(static_cast<float>(dim));
          ErrorTerms t = row.terms(scale);
          t.independent = independent;
          auto [o, lse] = attend<float>(row, scale, keys);
          auto [wantedO, wantedLse] = attend<double>(row, scale, keys);
          EXPECT_NEAR(o, wantedO, outputTolerance(t)) << dim << " " << keys;
          EXPECT_NEAR(lse, wantedLse, statisticTolerance(t))
              << dim << " " << keys;
        }
}

TEST(Tolerance, holdsOnHostileRows) {
  // Equal summands, whose rounding errors all go one way; scores of +-50,000;
  // products that cancel.
  Row equal(64, 8192);
  equal.q.assign(64, 0.1f);
  equal.k.assign(64 * 8192, 0.1f);
  equal.v.assign(8192, 0.1f);
  Row large(128, 33);
  large.randomize(3, 1);
  for (float &x : large.q)
    x = 64;
  for (float &x : large.k)
    x = -64 + x / 1024;
  Row cancels(128, 100);
  cancels.randomize(4, 100);
  for (int64_t j = 0; j < 100; ++j)
    for (int64_t d = 1; d < 128; d += 2) {
      cancels.q[d] = cancels.q[d - 1];
      cancels.k[j * 128 + d] = -cancels.k[j * 128 + d - 1] + 0.001f * j;
    }
  for (auto [row, scale] : {std::pair<Row *, float>(&equal, 1.0f),
                            {&large, 0.1f},
                            {&cancels, 0.09f}}) {
    ErrorTerms t = row->terms(scale);
    auto [o, lse] = attend<float>(*row, scale, row->keys);
    auto [wantedO, wantedLse] = attend<double>(*row, scale, row->keys);
    EXPECT_NEAR(o, wantedO, outputTolerance(t));
    EXPECT_NEAR(lse, wantedLse, statisticTolerance(t));
  }
}

TEST(Tolerance, findsALostKey) {
  // The last of 1000 keys is left out: both results must be out of bounds in
  // nearly all of 100 rows.
  int outputs = 0, statistics = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Row row(128, 1000);
    row.randomize(seed, 1);
    ErrorTerms t = row.terms(0.088f);
    t.independent = true;
    auto [o, lse] = attend<float>(row, 0.088f, 999);
    auto [wantedO, wantedLse] = attend<double>(row, 0.088f, 1000);
    outputs += std::fabs(o - wantedO) > outputTolerance(t);
    statistics += std::fabs(lse - wantedLse) > statisticTolerance(t);
  }
  EXPECT_GE(outputs, 90);
  EXPECT_EQ(statistics, 100);
}

/// Sum of values by sigmoids, all in T, with weights rounded as `round` says.
template <typename T>
static double addUp(const Row &row, float scale, int64_t keys,
                    llvm::function_ref<double(double)> round, ErrorTerms &t) {
  T o = 0;
  for (int64_t j = 0; j < keys; ++j) {
    T dot = 0;
    for (int64_t d = 0; d < row.dim; ++d)
      dot += T(row.q[d]) * T(row.k[j * row.dim + d]);
    T weight = 1 / (1 + std::exp(-T(scale) * dot));
    o += T(round(weight)) * T(row.v[j]);
    double term = double(weight) * row.v[j];
    t.weightedSum += std::fabs(term);
    t.weightedSquares += term * term;
  }
  t.isAdditive = true;
  t.output = std::fabs(double(o));
  return o;
}

TEST(Tolerance, ofWeightsThatAreNotNormalised) {
  auto exact = [](double x) { return x; };
  auto toBF16 = [](double x) {
    int exponent;
    return std::ldexp(std::nearbyint(std::ldexp(std::frexp(x, &exponent), 8)),
                      exponent - 8);
  };
  int lostF32 = 0, lostBF16 = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    Row row(64, 1 + 10 * seed);
    row.randomize(seed, 2);
    ErrorTerms t = row.terms(0.125f), unused;
    t.independent = true;
    double wanted = addUp<double>(row, 0.125f, row.keys, exact, t);
    auto f32 = addUp<float>(row, 0.125f, row.keys, exact, unused);
    EXPECT_NEAR(f32, wanted, outputTolerance(t)) << row.keys;
    EXPECT_EQ(statisticTolerance(t), 0);
    double f32Lost = addUp<float>(row, 0.125f, row.keys - 1, exact, unused);
    lostF32 += std::fabs(f32Lost - wanted) > outputTolerance(t);
    t.in = DType::BF16;
    double bf16 = addUp<float>(row, 0.125f, row.keys, toBF16, unused);
    EXPECT_NEAR(bf16, wanted, outputTolerance(t)) << row.keys;
    // A tile of 16 keys.
    double bf16Lost = addUp<float>(
        row, 0.125f, std::max<int64_t>(row.keys - 16, 0), toBF16, unused);
    lostBF16 += std::fabs(bf16Lost - wanted) > outputTolerance(t);
  }
  EXPECT_GE(lostF32, 90);
  EXPECT_GE(lostBF16, 75);
}

TEST(Tolerance, growsWithItsTerms) {
  ErrorTerms t;
  t.dim = 128;
  t.keys = 100;
  t.maxScore = 10;
  t.maxValue = 1;
  double f32 = outputTolerance(t), lse = statisticTolerance(t);
  t.out = DType::F16;
  double f16 = outputTolerance(t);
  t.in = t.out = DType::BF16;
  double bf16 = outputTolerance(t);
  EXPECT_LT(f32, f16);
  EXPECT_LT(f16, bf16);
  EXPECT_GE(bf16, 3 * 0x1p-8);
  EXPECT_EQ(statisticTolerance(t), lse);
  EXPECT_NEAR(statisticTolerance(t, std::exp(1.0)), lse * std::log(2.0), 1e-12);
  t.maxScore = 1e6;
  EXPECT_LE(outputTolerance(t), 2.1);
}
