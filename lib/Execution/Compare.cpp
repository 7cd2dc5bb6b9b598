//===- Compare.cpp - two runs of a program side by side -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Compare.h"
#include "NormTolerances.h"
#include "fi/Execution/Inputs.h"
#include "fi/Interpreter/Tolerance.h"
#include "fi/Support/Random.h"
#include <map>
#include <set>

using namespace fi;
using llvm::Expected;

bool fi::writesArguments(const Signature &signature) {
  return !signature.appends.empty() ||
         llvm::any_of(
             signature.norms,
             [](const NormInfo &norm) { return !norm.outs.empty(); }) ||
         llvm::any_of(signature.companions,
                      [](const CompanionInfo &companion) {
                        return !companion.outs.empty();
                      }) ||
         llvm::any_of(signature.attentions, [](const AttentionInfo &attention) {
           return !attention.outs.empty();
         });
}

bool fi::isRandomData(const Signature &signature, const Batch &batch,
                      llvm::ArrayRef<NamedTensor> tensors) {
  for (const ArgumentInfo &info : signature.arguments) {
    if (!isFloat(info.type) || info.kind == ArgumentInfo::Kind::Scalar)
      continue;
    const ArgumentSource *source = batch.find(info.name);
    if ((source && source->kind != ArgumentSource::Kind::Normal &&
         source->kind != ArgumentSource::Kind::Uniform) ||
        llvm::any_of(tensors, [&](const NamedTensor &tensor) {
          return tensor.name == info.name;
        }))
      return false;
  }
  return true;
}

std::vector<HostValue> fi::takeArguments(const Signature &signature,
                                         llvm::ArrayRef<HostValue> inputs) {
  std::vector<HostValue> arguments;
  bool writes = writesArguments(signature);
  for (auto [info, value] : llvm::zip(signature.arguments, inputs))
    arguments.push_back(writes && info.kind == ArgumentInfo::Kind::Pool
                            ? cloneValue(value)
                            : value);
  return arguments;
}

std::vector<RowAndHead> fi::sampleRows(const Signature &signature,
                                       llvm::ArrayRef<HostValue> arguments,
                                       int64_t count, uint64_t seed) {
  int64_t rows = 0, heads = 0;
  for (const AttentionInfo &attention : signature.attentions) {
    if (attention.query >= 0) {
      const HostTensor &query = arguments[attention.query].getTensor();
      rows = std::max(rows, query.getSize(0));
      heads = std::max(heads, query.getSize(1));
    } else if (attention.queryRows >= 0 &&
               arguments[attention.queryRows].getKind() ==
                   HostValue::Kind::Tensor) {
      rows =
          std::max(rows, arguments[attention.queryRows].getTensor().getSize(0));
      heads = std::max(heads, attention.queryHeads);
    }
  }
  int64_t all = rows * heads;
  std::set<RowAndHead> chosen;
  if (count >= all) {
    for (int64_t i = 0; i < all; ++i)
      chosen.insert({i / heads, i % heads});
  } else {
    Random random(deriveSeed(seed, "sample"));
    while (static_cast<int64_t>(chosen.size()) < count) {
      int64_t i = random.below(all);
      chosen.insert({i / heads, i % heads});
    }
  }
  return std::vector<RowAndHead>(chosen.begin(), chosen.end());
}

//===----------------------------------------------------------------------===//
// Tolerances
//===----------------------------------------------------------------------===//

namespace {

/// Largest norm of a key and largest element of a value of one request and
/// head.
struct KeyMagnitudes {
  double keyNorm = 0, value = 0;
};

/// The error terms of rows of one attention.
class AttentionTerms {
public:
  AttentionTerms(const AttentionInfo &attention, size_t number,
                 const BackendRun &run)
      : attention(attention), run(run),
        lengths(getRequestLengths(attention, run.arguments)),
        offsets(getRowOffsets(attention, run.arguments)) {
    if (number < run.visibleKeys.size())
      visible = &run.visibleKeys[number];
    if (attention.hasTransforms && number < run.transformedScores.size())
      transformed = &run.transformedScores[number];
    if (attention.isAdditive && number < run.weightedSums.size())
      sums = &run.weightedSums[number];
    int queries[] = {attention.query, attention.queryTail};
    for (auto [i, argument] : llvm::enumerate(queries)) {
      bool isKnown = number < run.queries.size();
      if (argument >= 0)
        parts[i] = &run.arguments[argument].getTensor();
      else if (isKnown && run.queries[number].values[i].getRank() == 3)
        parts[i] = &run.queries[number].values[i];
      if (isKnown && run.queries[number].errors[i].getRank() == 3)
        errors[i] = &run.queries[number].errors[i];
    }
    scale = attention.scaleNumber.value_or(1);
    if (attention.scale >= 0)
      scale = run.arguments[attention.scale].getNumber();
    for (int capture : attention.captures)
      if (capture >= 0)
        largestCapture =
            std::max(largestCapture, magnitudeOf(run.arguments[capture]));
  }

  /// Widens `terms` by this attention's part of a row and head.
  void add(ErrorTerms &terms, int64_t row, int64_t head);

private:
  static double magnitudeOf(const HostValue &value);
  int requestOf(int64_t row) const {
    for (size_t r = 0; r + 1 < offsets.size(); ++r)
      if (row >= offsets[r] && row < offsets[r + 1])
        return r;
    return -1;
  }
  const KeyMagnitudes &magnitudes(int request, int64_t head);
  /// Largest magnitude of a position of a request's rows and keys.
  double largestPosition(int request);
  /// What the numbers of that row are multiplied by.
  double scaleOf(llvm::ArrayRef<int64_t> index, int64_t head, bool isValue);
  /// The elements of a row, as numbers.
  std::vector<double> readRow(const HostTensor &pool,
                              llvm::ArrayRef<int64_t> index, int64_t head,
                              bool isValue);
  /// Place of the row of a key or a value.
  llvm::SmallVector<int64_t, 5> indexOf(int request, int64_t key, int64_t head,
                                        ViewInfo::Pool from, bool isValue);

  const AttentionInfo &attention;
  const BackendRun &run;
  std::vector<RequestLengths> lengths;
  std::vector<int64_t> offsets;
  const HostTensor *visible = nullptr, *transformed = nullptr, *sums = nullptr;
  /// The query and its last columns, and what backends compute otherwise.
  const HostTensor *parts[2] = {}, *errors[2] = {};
  double scale = 1, largestCapture = 0;
  std::map<std::pair<int, int64_t>, KeyMagnitudes> cache;
};

double AttentionTerms::magnitudeOf(const HostValue &value) {
  if (value.getKind() == HostValue::Kind::Float)
    return std::fabs(value.getNumber());
  if (value.getKind() != HostValue::Kind::Tensor ||
      !isFloat(value.getTensor().getType()))
    return 0;
  const HostTensor &tensor = value.getTensor();
  auto *data = static_cast<const char *>(tensor.getData());
  double largest = 0;
  for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i) {
    double element =
        readFloat(data + i * getByteSize(tensor.getType()), tensor.getType());
    if (std::isfinite(element))
      largest = std::max(largest, std::fabs(element));
  }
  return largest;
}

double AttentionTerms::scaleOf(llvm::ArrayRef<int64_t> index, int64_t head,
                               bool isValue) {
  const ViewInfo::Scales &scales = attention.view.scales[isValue];
  if (scales.argument < 0)
    return 1;
  const HostValue &value = run.arguments[scales.argument];
  if (value.getKind() == HostValue::Kind::Float)
    return value.getNumber();
  const HostTensor &tensor = value.getTensor();
  if (tensor.getRank() == 1)
    return tensor.getFloat({head});
  if (scales.isPerPage)
    return tensor.getFloat({index[0], head});
  llvm::SmallVector<int64_t, 5> at(index.drop_back());
  if (attention.view.isFused)
    at.erase(at.begin() + 1);
  return tensor.getFloat(at);
}

std::vector<double> AttentionTerms::readRow(const HostTensor &pool,
                                            llvm::ArrayRef<int64_t> index,
                                            int64_t head, bool isValue) {
  DType type = pool.getType();
  auto *data = static_cast<const char *>(pool.at(index));
  double factor = scaleOf(index, head, isValue);
  const ViewInfo::Scales &scales = attention.view.scales[isValue];
  std::vector<double> row;
  if (!scales.block) {
    for (int64_t d = 0, dim = pool.getSize(pool.getRank() - 1); d < dim; ++d)
      row.push_back(readFloat(data + d * getByteSize(type), type) * factor);
    return row;
  }
  const HostTensor &blocks = run.arguments[scales.blocks].getTensor();
  llvm::SmallVector<int64_t, 5> at(index);
  if (attention.view.isFused)
    at.erase(at.begin() + 1);
  for (int64_t d = 0, dim = 2 * pool.getSize(pool.getRank() - 1); d < dim;
       ++d) {
    int64_t byte = readInteger(data + d / 2, type);
    at.back() = d / scales.block;
    row.push_back(readFloat4(d % 2 ? byte >> 4 : byte) * blocks.getFloat(at) *
                  factor);
  }
  return row;
}

llvm::SmallVector<int64_t, 5> AttentionTerms::indexOf(int request, int64_t key,
                                                      int64_t head,
                                                      ViewInfo::Pool from,
                                                      bool isValue) {
  const ViewInfo &view = attention.view;
  auto [pool, pagesTable] = from;
  const HostTensor &tensor = run.arguments[pool].getTensor();
  llvm::SmallVector<int64_t, 5> index;
  if (view.isPaged) {
    int64_t page = tensor.getSize(view.getKeyDimension());
    const HostTensor &table = run.arguments[pagesTable].getTensor();
    int64_t id;
    if (view.isDense)
      id = table.getInteger({request, key / page});
    else
      id = table.getInteger(
          {run.arguments[view.indptr].getTensor().getInteger({request}) +
           key / page});
    index.push_back(id);
    if (view.isFused)
      index.push_back(isValue);
    index.push_back(view.isHND ? head : key % page);
    if (view.hasHeads)
      index.push_back(view.isHND ? key % page : head);
  } else {
    int64_t token = key;
    if (view.indptr >= 0)
      token += run.arguments[view.indptr].getTensor().getInteger({request});
    index.push_back(view.isHND ? head : token);
    index.push_back(view.isHND ? token : head);
  }
  index.push_back(0);
  return index;
}

const KeyMagnitudes &AttentionTerms::magnitudes(int request, int64_t head) {
  auto [it, isNew] = cache.try_emplace({request, head});
  if (!isNew)
    return it->second;
  KeyMagnitudes &result = it->second;
  // Keys may lie in two pools, each of which has some of a key's columns.
  std::vector<double> keySquares(lengths[request].keyLength);
  for (auto [i, from] : llvm::enumerate(attention.view.getPools())) {
    if (from.pool < 0)
      continue;
    bool isValue = i == 1;
    const HostTensor &tensor = run.arguments[from.pool].getTensor();
    for (int64_t key = 0; key < lengths[request].keyLength; ++key) {
      llvm::SmallVector<int64_t, 5> index =
          indexOf(request, key, head, from, isValue);
      for (double element : readRow(tensor, index, head, isValue)) {
        if (isValue)
          result.value = std::max(result.value, std::fabs(element));
        else
          keySquares[key] += element * element;
      }
    }
  }
  for (double squares : keySquares)
    result.keyNorm = std::max(result.keyNorm, std::sqrt(squares));
  return result;
}

double AttentionTerms::largestPosition(int request) {
  double origin = 0;
  if (attention.view.origin >= 0)
    origin =
        run.arguments[attention.view.origin].getTensor().getInteger({request});
  const RequestLengths &length = lengths[request];
  double largest = std::fabs(origin) + static_cast<double>(length.keyLength) +
                   static_cast<double>(length.queryLength);
  if (attention.positions >= 0)
    for (int64_t row = offsets[request]; row < offsets[request + 1]; ++row)
      largest = std::max(
          largest,
          std::fabs(
              double(run.arguments[attention.positions].getTensor().getInteger(
                  {row}))));
  return largest;
}

void AttentionTerms::add(ErrorTerms &terms, int64_t row, int64_t head) {
  for (int sink : attention.sinks)
    if (sink >= 0)
      if (double logit = run.arguments[sink].getTensor().getFloat({head});
          std::isfinite(logit))
        terms.sink = std::max(terms.sink, std::fabs(logit));
  int request = requestOf(row);
  if (request < 0 || !parts[0] || attention.view.keys < 0)
    return;
  int64_t group = std::max<int64_t>(
      parts[0]->getSize(1) / std::max<int64_t>(attention.view.heads, 1), 1);
  const KeyMagnitudes &keys = magnitudes(request, head / group);
  auto squaresOf = [&](llvm::ArrayRef<const HostTensor *> tensors) {
    double squares = 0;
    for (const HostTensor *part : tensors)
      for (int64_t d = 0; part && d < part->getSize(2); ++d) {
        double element = part->getFloat({row, head, d});
        squares += element * element;
      }
    return squares;
  };
  double squares = squaresOf(parts);
  // A score is off as much as a query that is off, times a key. Few elements of
  // random rows round otherwise, and not all to one side (NUM15).
  double off = std::sqrt(squaresOf(errors));
  if (terms.independent && attention.dim > 4)
    off *= 2 / std::sqrt(double(attention.dim));
  double queryError = std::fabs(scale) * off * keys.keyNorm;
  terms.scoreError = std::max(terms.scoreError, queryError);
  double score = std::fabs(scale) * std::sqrt(squares) * keys.keyNorm;
  if (transformed && row < transformed->getSize(0) &&
      head < transformed->getSize(1))
    if (double made = transformed->getFloat({row, head}); std::isfinite(made))
      score = std::max(score, made);
  terms.maxScore = std::max(terms.maxScore, score);
  terms.maxValue = std::max(terms.maxValue, keys.value);
  terms.dim = std::max(terms.dim, attention.dim);
  int64_t seen = lengths[request].keyLength;
  if (visible && row < visible->getSize(0) && head < visible->getSize(1) &&
      visible->getInteger({row, head}) >= 0)
    seen = visible->getInteger({row, head});
  terms.keys += seen;
  if (attention.hasPlainScores)
    return;
  // What a region adds is not known; a few roundings of everything it can see,
  // with captures times positions as the largest of it.
  constexpr double roundings = 16;
  double magnitude =
      score + largestCapture * std::max<int64_t>(lengths[request].keyLength, 1);
  // Of a hyperbolic tangent, which may be approximate, 2^-21 (NUM3).
  magnitude += attention.softcap / 2;
  // 1 + |s| is rounded as 1 is.
  magnitude += attention.largestAddend;
  // Angles are products of positions, and errors in them relative to these.
  if (attention.hasTransforms)
    magnitude += score * largestPosition(request);
  terms.scoreError =
      std::max(terms.scoreError,
               roundings * unitRoundoff(DType::F32) * magnitude + queryError);
  if (sums && row < sums->getSize(0) && head < sums->getSize(1)) {
    terms.weightedSum += sums->getFloat({row, head, 0});
    terms.weightedSquares += sums->getFloat({row, head, 1});
  } else if (attention.isAdditive) {
    // Without the reference: no weight is larger than a score, or than 1.
    double term = keys.value * std::max(magnitude, 1.0);
    terms.weightedSum += static_cast<double>(seen) * term;
    terms.weightedSquares += static_cast<double>(seen) * term * term;
  }
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

class Comparer {
public:
  Comparer(const Signature &signature, const BackendRun &got,
           const BackendRun &expected, const CompareOptions &options)
      : signature(signature), got(got), expected(expected), options(options) {
    for (size_t i = 0; i < signature.attentions.size(); ++i)
      attentions.emplace_back(signature.attentions[i], i, expected);
  }
  std::vector<Comparison> compare();

private:
  /// [rows, heads, ...] of attentions; without attentions exact.
  Comparison compareRows(const std::string &name, const HostTensor &a,
                         const HostTensor &b, llvm::ArrayRef<size_t> from,
                         bool isStatistic, double base);
  void compareElement(Comparison &comparison, llvm::ArrayRef<int64_t> index,
                      const HostTensor &a, const HostTensor &b,
                      double tolerance);
  Comparison compareExactly(const std::string &name, const HostTensor &a,
                            const HostTensor &b) {
    return compareBy(name, a, b,
                     [](llvm::ArrayRef<int64_t>, double) { return 0.0; });
  }
  /// The result of a norm, or its sum; nothing where they are of none.
  using Place = int;
  std::optional<Comparison> compareNorm(const std::string &name,
                                        const HostTensor &a,
                                        const HostTensor &b, Place result,
                                        Place argument);
  /// Every element, with a tolerance that follows from what is expected.
  Comparison compareBy(
      const std::string &name, const HostTensor &a, const HostTensor &b,
      llvm::function_ref<double(llvm::ArrayRef<int64_t>, double)> tolerance);
  /// Every element with its own tolerance.
  Comparison compareWithin(const std::string &name, const HostTensor &a,
                           const HostTensor &b, const HostTensor &tolerances) {
    return compareBy(name, a, b, [&](llvm::ArrayRef<int64_t> index, double) {
      return tolerances.getFloat(index);
    });
  }

  const Signature &signature;
  const BackendRun &got, &expected;
  const CompareOptions &options;
  std::vector<AttentionTerms> attentions;
};

void Comparer::compareElement(Comparison &comparison,
                              llvm::ArrayRef<int64_t> index,
                              const HostTensor &a, const HostTensor &b,
                              double tolerance) {
  double x = a.getFloat(index), y = b.getFloat(index);
  ++comparison.compared;
  bool isEqual = x == y || (std::isnan(x) && std::isnan(y));
  double error = isEqual ? 0 : std::fabs(x - y);
  // A NaN on one side is as wrong as can be.
  if (std::isnan(error))
    error = std::numeric_limits<double>::infinity();
  if (!(error <= tolerance))
    ++comparison.failed;
  comparison.maxError = std::max(comparison.maxError, error);
  bool isFirst = comparison.compared == 1;
  // error / tolerance, without dividing by a tolerance of zero.
  if (isFirst || error * comparison.tolerance > comparison.error * tolerance ||
      (std::isinf(error) && !std::isinf(comparison.error))) {
    comparison.worst.assign(index.begin(), index.end());
    comparison.error = error;
    comparison.tolerance = tolerance;
    comparison.got = x;
    comparison.expected = y;
  }
}

Comparison Comparer::compareBy(
    const std::string &name, const HostTensor &a, const HostTensor &b,
    llvm::function_ref<double(llvm::ArrayRef<int64_t>, double)> tolerance) {
  Comparison comparison;
  comparison.name = name;
  llvm::SmallVector<int64_t, 5> index(a.getRank(), 0);
  for (int64_t i = 0, n = a.getNumElements(); i < n; ++i) {
    compareElement(comparison, index, a, b,
                   tolerance(index, b.getFloat(index)));
    for (int64_t d = a.getRank(); d-- > 0;) {
      if (++index[d] < a.getSize(d))
        break;
      index[d] = 0;
    }
  }
  return comparison;
}

std::optional<Comparison> Comparer::compareNorm(const std::string &name,
                                                const HostTensor &a,
                                                const HostTensor &b,
                                                Place result, Place argument) {
  for (const NormInfo &norm : signature.norms) {
    auto isPlace = [&](Place known, size_t number) {
      return (result >= 0 && known == result) ||
             (argument >= 0 && number < norm.outs.size() &&
              norm.outs[number] == argument);
    };
    NormTolerances tolerances(norm, expected);
    if (isPlace(norm.result, 0))
      return compareBy(name, a, b,
                       [&](llvm::ArrayRef<int64_t> index, double wanted) {
                         return tolerances.ofNorm(index, wanted, a.getType());
                       });
    if (isPlace(norm.sum, 1))
      return compareBy(name, a, b, [&](llvm::ArrayRef<int64_t>, double wanted) {
        return tolerances.ofSum(wanted, a.getType());
      });
  }
  return std::nullopt;
}

Comparison Comparer::compareRows(const std::string &name, const HostTensor &a,
                                 const HostTensor &b,
                                 llvm::ArrayRef<size_t> from, bool isStatistic,
                                 double base) {
  Comparison comparison;
  comparison.name = name;
  auto compareRow = [&](int64_t row, int64_t head) {
    // Those of normalised weights, and of others.
    std::optional<ErrorTerms> kinds[2];
    for (size_t i : from) {
      bool isAdditive = signature.attentions[i].isAdditive;
      if (!kinds[isAdditive])
        kinds[isAdditive].emplace();
      ErrorTerms &terms = *kinds[isAdditive];
      terms.out = a.getType();
      terms.independent = options.independent;
      terms.isAdditive = isAdditive;
      const AttentionInfo &attention = signature.attentions[i];
      const ViewInfo &view = attention.view;
      // The coarsest of all that are merged.
      if (view.values >= 0) {
        DType type = signature.arguments[view.values].type;
        // Products are of the query's type then (NUM9).
        if (view.scales[1].isScaled && attention.query >= 0)
          type = signature.arguments[attention.query].type;
        else if (view.scales[1].isScaled && attention.queryType)
          type = *attention.queryType;
        // Numbers of FP8 count as those of f16 (ATT25).
        if (type == DType::F8E4M3FN || type == DType::F8E5M2)
          type = DType::F16;
        if (unitRoundoff(type) > unitRoundoff(terms.in))
          terms.in = type;
      }
      auto isFP8 = [&](int argument) {
        DType type =
            argument < 0 ? DType::F32 : signature.arguments[argument].type;
        return type == DType::F8E4M3FN || type == DType::F8E5M2;
      };
      terms.hasCoarseSums |=
          options.onDevice && isFP8(attention.query) && isFP8(view.keys);
      terms.isScaled |= view.scales[0].isScaled || view.scales[1].isScaled;
      terms.roundsValues |=
          view.scales[1].argument >= 0 &&
          signature.arguments[view.scales[1].argument].shape.size() > 1;
      attentions[i].add(terms, row, head);
    }
    auto tolerance = [&](double expected) {
      double sum = 0;
      for (std::optional<ErrorTerms> &terms : kinds) {
        if (!terms)
          continue;
        terms->output = std::fabs(expected);
        sum += isStatistic ? statisticTolerance(*terms, base)
                           : outputTolerance(*terms);
      }
      return sum;
    };
    if (a.getRank() == 2)
      return compareElement(comparison, {row, head}, a, b,
                            tolerance(b.getFloat({row, head})));
    double same = tolerance(0);
    for (int64_t d = 0; d < a.getSize(2); ++d)
      compareElement(comparison, {row, head, d}, a, b,
                     kinds[true] ? tolerance(b.getFloat({row, head, d}))
                                 : same);
  };
  if (options.onlyRows) {
    for (auto [row, head] : *options.onlyRows)
      if (row < a.getSize(0) && head < a.getSize(1))
        compareRow(row, head);
    return comparison;
  }
  for (int64_t row = 0; row < a.getSize(0); ++row)
    for (int64_t head = 0; head < a.getSize(1); ++head)
      compareRow(row, head);
  return comparison;
}

/// The reference's bounds for a result or an argument, if it has any.
static const HostTensor *boundsOf(llvm::ArrayRef<HostTensor> bounds,
                                  size_t number, const HostTensor &of) {
  bool isKnown = number < bounds.size() && of.getRank() > 0 &&
                 bounds[number].getShape() == of.getShape();
  return isKnown ? &bounds[number] : nullptr;
}

std::vector<Comparison> Comparer::compare() {
  std::vector<Comparison> comparisons;
  std::vector<size_t> all;
  for (size_t i = 0; i < signature.attentions.size(); ++i)
    all.push_back(i);
  for (size_t r = 0; r < signature.results.size(); ++r) {
    const HostTensor &a = got.results[r], &b = expected.results[r];
    // The attentions that a result comes from; all, where merges are between.
    std::vector<size_t> from;
    bool isBaseE = false;
    for (size_t i : all) {
      const AttentionInfo &attention = signature.attentions[i];
      isBaseE |= attention.isBaseE;
      if (attention.output == int(r) || attention.lse == int(r))
        from.push_back(i);
    }
    const std::string &name = signature.results[r].name;
    if (const HostTensor *own = boundsOf(expected.tolerances, r, b))
      comparisons.push_back(compareWithin(name, a, b, *own));
    else if (auto norm = compareNorm(name, a, b, /*result=*/int(r), -1))
      comparisons.push_back(std::move(*norm));
    else if (all.empty() || a.getRank() < 2 || a.getRank() > 3)
      comparisons.push_back(compareExactly(name, a, b));
    else
      comparisons.push_back(compareRows(name, a, b, from.empty() ? all : from,
                                        /*isStatistic=*/a.getRank() == 2,
                                        isBaseE ? std::exp(1.0) : 2.0));
  }
  if (!writesArguments(signature))
    return comparisons;
  for (size_t i = 0; i < signature.arguments.size(); ++i) {
    if (signature.arguments[i].kind != ArgumentInfo::Kind::Pool)
      continue;
    const HostTensor &a = got.arguments[i].getTensor(),
                     &b = expected.arguments[i].getTensor();
    std::vector<size_t> from;
    bool isStatistic = false;
    for (size_t n : all)
      for (auto [o, place] : llvm::enumerate(signature.attentions[n].outs))
        if (place == int(i)) {
          from = {n};
          isStatistic = o == 1;
        }
    const std::string &name = signature.arguments[i].name;
    if (const HostTensor *own = boundsOf(expected.argumentTolerances, i, b))
      comparisons.push_back(compareWithin(name, a, b, *own));
    else if (auto norm = compareNorm(name, a, b, -1, /*argument=*/int(i)))
      comparisons.push_back(std::move(*norm));
    else if (from.empty())
      comparisons.push_back(compareExactly(name, a, b));
    else
      comparisons.push_back(compareRows(
          name, a, b, from, isStatistic,
          signature.attentions[from[0]].isBaseE ? std::exp(1.0) : 2.0));
  }
  return comparisons;
}

} // namespace

std::vector<Comparison> fi::compareRuns(const Signature &signature,
                                        const BackendRun &got,
                                        const BackendRun &expected,
                                        const CompareOptions &options) {
  return Comparer(signature, got, expected, options).compare();
}

Expected<std::vector<HostTensor>>
fi::countVisibleKeys(Executor &executor, const Signature &signature,
                     llvm::ArrayRef<HostValue> inputs) {
  std::vector<HostValue> arguments = takeArguments(signature, inputs);
  for (const AttentionInfo &attention : signature.attentions)
    if (attention.query >= 0) {
      const HostTensor &query = inputs[attention.query].getTensor();
      arguments[attention.query] =
          HostTensor(query.getType(), query.getShape());
    }
  auto results = executor.allocateResults(arguments);
  if (!results)
    return results.takeError();
  if (llvm::Error error = executor.runOnHost(arguments, *results))
    return std::move(error);
  std::vector<HostTensor> counts;
  for (const AttentionInfo &attention : signature.attentions) {
    int64_t rows = 0, heads = 0;
    if (attention.query >= 0) {
      rows = inputs[attention.query].getTensor().getSize(0);
      heads = inputs[attention.query].getTensor().getSize(1);
    }
    HostTensor count(DType::I64, {rows, heads});
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < heads; ++head) {
        int64_t seen = -1;
        if (attention.lse >= 0 && attention.hasPlainScores) {
          double lse = (*results)[attention.lse].getFloat({row, head});
          double number = attention.isBaseE ? std::exp(lse) : std::exp2(lse);
          // f32 tells counts apart far beyond any length.
          if (number < 0x1p40)
            seen = std::llround(number);
        }
        count.setInteger({row, head}, seen);
      }
    counts.push_back(count);
  }
  return counts;
}
