//===- ReferenceAttention.cpp - fi.attention, row by row ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each row and head: all scores, all masks, the weights, the sum. Nothing
// is tiled and nothing is online. What is not visible is not read: neither
// slots of a page beyond the last key nor the values of masked keys.
//
//===----------------------------------------------------------------------===//

#include "ReferenceImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::reference;

static constexpr double kInf = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Normalisers
//===----------------------------------------------------------------------===//

namespace {
class Softmax : public Normaliser {
public:
  /// `unit` is ln(base).
  explicit Softmax(double unit) : unit(unit) {}

  double emptyStatistic() const override { return -kInf; }

  double normalise(std::vector<double> &scores) const override {
    return weigh(scores) / unit;
  }

  double merge(std::vector<double> &statistics) const override {
    for (double &statistic : statistics)
      statistic *= unit;
    return weigh(statistics) / unit;
  }

  double ofSink(double logit) const override { return logit / unit; }

private:
  /// Replaces x by exp(x) / sum exp(x) and gives ln(sum exp(x)).
  double weigh(std::vector<double> &x) const {
    double top = -kInf;
    for (double value : x)
      if (std::isnan(value) || value > top)
        top = value;
    if (top == -kInf) {
      x.assign(x.size(), 0.0);
      return -kInf;
    }
    double sum = 0;
    for (double &value : x)
      sum += value = std::exp(value - top);
    for (double &value : x)
      value /= sum;
    return top + std::log(sum);
  }

  double unit;
};

/// Weights that do not depend on other keys: outputs add, and the statistic is
/// always 0.
class Additive : public Normaliser {
public:
  double emptyStatistic() const override { return 0; }

  double normalise(std::vector<double> &scores) const override {
    for (double &score : scores)
      score = score == -kInf ? 0 : weigh(score);
    return 0;
  }

  double merge(std::vector<double> &statistics) const override {
    statistics.assign(statistics.size(), 1.0);
    return 0;
  }

  /// A key without a value adds nothing.
  double ofSink(double) const override { return 0; }

  virtual double weigh(double score) const = 0;
};

class Sum : public Additive {
  double weigh(double score) const override { return score; }
};

class Sigmoid : public Additive {
public:
  explicit Sigmoid(double bias) : bias(bias) {}
  double weigh(double score) const override {
    return 1 / (1 + std::exp(-(score + bias)));
  }

private:
  double bias;
};
} // namespace

std::unique_ptr<Normaliser>
fi::reference::makeNormaliser(NormaliserAttrInterface kind) {
  if (auto softmax = dyn_cast<SoftmaxAttr>(Attribute(kind)))
    return std::make_unique<Softmax>(
        softmax.getBase() == LseBase::Two ? std::log(2.0) : 1.0);
  if (isa<SumAttr>(Attribute(kind)))
    return std::make_unique<Sum>();
  if (auto sigmoid = dyn_cast<SigmoidAttr>(Attribute(kind)))
    return std::make_unique<Sigmoid>(
        sigmoid.getBias() ? sigmoid.getBias().getValueAsDouble() : 0.0);
  return nullptr;
}

Partial fi::reference::merge(const Normaliser &normaliser,
                             ArrayRef<Partial> parts, int64_t dim) {
  Partial result;
  result.output.assign(dim, 0.0);
  std::vector<double> weights;
  for (const Partial &part : parts) {
    weights.push_back(part.statistic);
    result.visible += part.visible;
  }
  result.statistic = normaliser.merge(weights);
  for (auto [weight, part] : llvm::zip(weights, parts))
    for (int64_t d = 0; d < dim; ++d)
      if (weight != 0)
        result.output[d] += weight * part.output[d];
  return result;
}

void fi::reference::addSink(const Normaliser &normaliser, double logit,
                            Partial &result) {
  Partial sink;
  sink.output.assign(result.output.size(), 0.0);
  sink.statistic = normaliser.ofSink(logit);
  int64_t visible = result.visible;
  result = merge(normaliser, {result, sink}, result.output.size());
  result.visible = visible;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// Rows of keys or values of one request as they were read, since all rows of
/// the query read them again. Of long requests none are kept.
class RowCache {
public:
  void begin(int64_t newRequest, int64_t heads, int64_t newLength,
             int64_t newDim) {
    if (request == newRequest)
      return;
    request = newRequest;
    length = newLength;
    dim = newDim;
    isKept = heads * length * dim <= kMost;
    isKnown.assign(isKept ? heads * length : 0, false);
    rows.resize(isKept ? heads * length * dim : dim);
  }
  /// Where a row is, or where it is to be read to, as `isThere` says.
  MutableArrayRef<double> get(int64_t head, int64_t row, bool &isThere) {
    int64_t at = isKept ? head * length + row : 0;
    isThere = isKept && isKnown[at];
    if (isKept)
      isKnown[at] = true;
    return MutableArrayRef(rows).slice(at * dim, dim);
  }

private:
  static constexpr int64_t kMost = int64_t(1) << 22;
  int64_t request = -1, length = 0, dim = 0;
  bool isKept = false;
  std::vector<double> rows;
  std::vector<bool> isKnown;
};

class Evaluation {
public:
  Evaluation(AttentionOp op, const AttentionOperands &in, std::string &text)
      : op(op), in(in), view(*in.view), error(op, text) {}

  bool prepare();
  /// Fills a row and head, piece by piece.
  /// `block` is the row's block of rows, where the view has blocks.
  bool evaluate(int64_t request, int64_t row, int64_t head, int64_t position,
                int64_t block, ArrayRef<int64_t> cuts,
                std::vector<Partial> &parts);

  std::unique_ptr<Normaliser> normaliser;
  int64_t dim = 0;
  /// Of the last row, as its transform made it.
  double queryNorm = 0;

private:
  bool evaluatePiece(int64_t request, int64_t head, int64_t position,
                     int64_t block, ArrayRef<double> query, int64_t begin,
                     int64_t end, Partial &part);
  void readKey(int64_t request, int64_t head, int64_t key,
               MutableArrayRef<double> columns);
  bool prepareForeign(Attribute attr);
  bool isVisible(Attribute mask, ArrayRef<Scalar> arguments, bool &visible);
  bool transform(RegionFunction &region, int64_t request, int64_t head,
                 int64_t position, MutableArrayRef<double> x);
  bool regionError(const RegionFunction &region) {
    return error("failed in a region: " + Twine(region.getError()) +
                 " [BAT11]");
  }

  AttentionOp op;
  const AttentionOperands &in;
  const ViewValue &view;
  BatchError error;
  RegionFunction queryRegion, keyRegion, scoreRegion, maskRegion;
  RowCache keys, values;
  /// Attributes without a meaning of their own here, as ops.
  std::vector<std::unique_ptr<Block>> foreignBlocks;
  llvm::DenseMap<Attribute, std::unique_ptr<RegionFunction>> foreign;
};

} // namespace

static double normOf(ArrayRef<double> x) {
  double squares = 0;
  for (double value : x)
    squares += value * value;
  return std::sqrt(squares);
}

static void readRow(const HostTensor &tensor, const void *address,
                    MutableArrayRef<double> into) {
  DType type = tensor.getType();
  int64_t step = tensor.getStrides().back() * getByteSize(type);
  const char *at = static_cast<const char *>(address);
  for (double &value : into) {
    value = readFloat(at, type);
    at += step;
  }
}

bool Evaluation::prepareForeign(Attribute attr) {
  if (auto any = dyn_cast<AnyAttr>(attr))
    return llvm::all_of(any.getMasks(),
                        [&](Attribute mask) { return prepareForeign(mask); });
  if (isa<CausalAttr, WindowAttr, SoftcapAttr>(attr) || foreign.count(attr))
    return true;
  auto block = std::make_unique<Block>();
  MLIRContext *context = op.getContext();
  auto mask = dyn_cast<MaskAttrInterface>(attr);
  for (Type type : mask ? AttentionOp::getMaskArgumentTypes(context)
                        : AttentionOp::getScoreArgumentTypes(context))
    block->addArgument(type, op.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(block.get());
  Value value = mask ? mask.buildMask(b, op.getLoc(), block->getArguments())
                     : cast<ScoreAttrInterface>(attr).buildScore(
                           b, op.getLoc(), block->getArguments());
  auto function = std::make_unique<RegionFunction>();
  if (!function->prepare(*block, value))
    return regionError(*function);
  foreign[attr] = std::move(function);
  foreignBlocks.push_back(std::move(block));
  return true;
}

bool Evaluation::prepare() {
  normaliser = makeNormaliser(op.getNormaliser());
  if (!normaliser) {
    std::string kind;
    llvm::raw_string_ostream(kind) << op.getNormaliser();
    return error("expected a normaliser that the reference interpreter knows, "
                 "but got " +
                 kind + " [NRM2]");
  }
  dim = op.getViewType().getValueDim();
  struct {
    Region &region;
    RegionFunction &function;
    unsigned arguments;
  } regions[] = {{op.getQueryRegion(), queryRegion, 6},
                 {op.getKeyRegion(), keyRegion, 6},
                 {op.getScoreRegion(), scoreRegion, 6},
                 {op.getMaskRegion(), maskRegion, 5}};
  for (auto &[region, function, arguments] : regions)
    if (!region.empty() &&
        !function.prepare(region.front(), arguments, in.captures))
      return regionError(function);
  if (op.getScoreAttrAttr() && !prepareForeign(op.getScoreAttrAttr()))
    return false;
  if (ArrayAttr masks = op.getMasksAttr())
    for (Attribute mask : masks)
      if (!prepareForeign(mask))
        return false;
  return true;
}

/// Arguments are (request, q_head, kv_head, q_pos, kv_pos).
bool Evaluation::isVisible(Attribute mask, ArrayRef<Scalar> arguments,
                           bool &visible) {
  // In 128 bits, so that no bound and no position wraps.
  __int128 q = arguments[3].integer, k = arguments[4].integer;
  if (isa<CausalAttr>(mask)) {
    visible = k <= q;
  } else if (auto window = dyn_cast<WindowAttr>(mask)) {
    visible = (!window.getLeft() || q - *window.getLeft() <= k) &&
              (!window.getRight() || k <= q + *window.getRight());
  } else if (auto any = dyn_cast<AnyAttr>(mask)) {
    visible = false;
    for (Attribute one : any.getMasks()) {
      bool allowed;
      if (!isVisible(one, arguments, allowed))
        return false;
      visible |= allowed;
    }
  } else {
    RegionFunction &function = *foreign[mask];
    if (!function.call(arguments))
      return regionError(function);
    visible = function.result().integer & 1;
  }
  return true;
}

bool Evaluation::transform(RegionFunction &region, int64_t request,
                           int64_t head, int64_t position,
                           MutableArrayRef<double> x) {
  if (!region)
    return true;
  return transformPairs(region, *op.getPairing(), x.size(), request, head,
                        position, x) ||
         regionError(region);
}

/// A key's row, the tail's columns behind the others.
void Evaluation::readKey(int64_t request, int64_t head, int64_t key,
                         MutableArrayRef<double> columns) {
  size_t tail = op.getViewType().getTailDim();
  view.readRow(KVPart::Keys, request, head, key, columns.drop_back(tail));
  if (tail)
    view.readRow(KVPart::Tail, request, head, key, columns.take_back(tail));
}

bool Evaluation::evaluatePiece(int64_t request, int64_t head, int64_t position,
                               int64_t block, ArrayRef<double> query,
                               int64_t begin, int64_t end, Partial &part) {
  int64_t kvHead = head / op.getGroup();
  int64_t length = view.lengths[request];
  int64_t heads = op.getViewType().getKVHeads();
  keys.begin(request, heads, length, query.size());
  values.begin(request, heads, length, dim);
  bool isThere;
  std::vector<double> scores;
  std::vector<int64_t> visibleKeys;
  for (int64_t j = begin; j < end; ++j) {
    // Positions wrap like the regions' arithmetic.
    int64_t keyPosition =
        static_cast<int64_t>(static_cast<uint64_t>(view.origins[request]) +
                             static_cast<uint64_t>(j));
    Scalar arguments[] = {
        Scalar(),           Scalar::of(request),  Scalar::of(head),
        Scalar::of(kvHead), Scalar::of(position), Scalar::of(keyPosition)};
    ArrayRef<Scalar> positions = ArrayRef<Scalar>(arguments).drop_front();
    bool visible = !view.blockRows || view.sees(block, j);
    if (ArrayAttr masks = op.getMasksAttr())
      for (Attribute mask : masks) {
        bool allowed;
        if (!isVisible(mask, positions, allowed))
          return false;
        visible &= allowed;
      }
    if (maskRegion) {
      if (!maskRegion.call(positions))
        return regionError(maskRegion);
      visible &= maskRegion.result().integer & 1;
    }
    if (!visible)
      continue;

    MutableArrayRef<double> key = keys.get(kvHead, j, isThere);
    if (!isThere) {
      readKey(request, kvHead, j, key);
      if (!transform(keyRegion, request, kvHead, keyPosition, key))
        return false;
    }
    if (op.getPairing())
      part.keyNorm = std::max(part.keyNorm, normOf(key));
    double product = 0;
    for (size_t d = 0; d < query.size(); ++d)
      product += query[d] * key[d];
    double score = in.scale * product;
    if (Attribute attr = op.getScoreAttrAttr()) {
      if (auto softcap = dyn_cast<SoftcapAttr>(attr)) {
        double cap = softcap.getCap().getValueAsDouble();
        score = cap * std::tanh(score / cap);
      } else {
        RegionFunction &function = *foreign[attr];
        arguments[0] = Scalar::of(score);
        if (!function.call(arguments))
          return regionError(function);
        score = function.result().number;
      }
    }
    if (scoreRegion) {
      arguments[0] = Scalar::of(score);
      if (!scoreRegion.call(arguments))
        return regionError(scoreRegion);
      score = scoreRegion.result().number;
    }
    scores.push_back(score);
    visibleKeys.push_back(j);
  }

  part.visible = visibleKeys.size();
  part.output.assign(dim, 0.0);
  part.statistic = normaliser->normalise(scores);
  bool isAdditive = op.getNormaliser().isAdditive();
  std::vector<double> sums(isAdditive ? dim : 0), squares(sums);
  for (auto [weight, j] : llvm::zip(scores, visibleKeys)) {
    if (weight == 0)
      continue;
    MutableArrayRef<double> value = values.get(kvHead, j, isThere);
    if (!isThere)
      view.readRow(KVPart::Values, request, kvHead, j, value);
    for (int64_t d = 0; d < dim; ++d)
      part.output[d] += weight * value[d];
    if (isAdditive)
      for (int64_t d = 0; d < dim; ++d) {
        sums[d] += std::fabs(weight * value[d]);
        squares[d] += weight * value[d] * weight * value[d];
      }
  }
  for (auto [sum, square] : llvm::zip(sums, squares)) {
    part.weightedSum = std::max(part.weightedSum, sum);
    part.weightedSquares = std::max(part.weightedSquares, square);
  }
  return true;
}

bool Evaluation::evaluate(int64_t request, int64_t row, int64_t head,
                          int64_t position, int64_t block,
                          ArrayRef<int64_t> cuts, std::vector<Partial> &parts) {
  std::vector<double> query(op.getViewType().getKeyDim());
  size_t tail = in.queryTail ? op.getViewType().getTailDim() : 0;
  MutableArrayRef<double> columns(query);
  readRow(in.query, in.query.at({row, head, 0}), columns.drop_back(tail));
  if (tail)
    readRow(*in.queryTail, in.queryTail->at({row, head, 0}),
            columns.take_back(tail));
  if (!transform(queryRegion, request, head, position, query))
    return false;
  queryNorm = normOf(query);
  int64_t length = view.lengths[request], begin = 0;
  parts.clear();
  for (size_t i = 0; i <= cuts.size(); ++i) {
    int64_t end = i < cuts.size() ? std::min(cuts[i], length) : length;
    end = std::max(end, begin);
    if (!evaluatePiece(request, head, position, block, query, begin, end,
                       parts.emplace_back()))
      return false;
    begin = end;
  }
  return true;
}

static void store(StateValue &state, int64_t row, int64_t head,
                  const Partial &part) {
  for (auto [d, value] : llvm::enumerate(part.output))
    state.output.setFloat({row, head, static_cast<int64_t>(d)}, value);
  state.statistic.setFloat({row, head}, part.statistic);
}

bool fi::reference::evaluateAttention(AttentionOp op,
                                      const AttentionOperands &in,
                                      const ReferenceOptions &options,
                                      std::vector<StateValue> &states,
                                      HostTensor &visible,
                                      HostTensor &transformed, HostTensor &sums,
                                      std::string &text) {
  BatchError error(op, text);
  int64_t rows = in.query.getSize(0), heads = in.query.getSize(1);
  int64_t requests = in.view->getRequests();
  std::vector<int64_t> indptr;
  if (!readRows(error, in.rows, rows, requests, indptr))
    return false;
  if (in.queryTail && in.queryTail->getSize(0) != rows)
    return error("expected the second query operand to have " + Twine(rows) +
                 " rows like the first, but got " +
                 Twine(in.queryTail->getSize(0)) + " [BAT10]");
  std::vector<int64_t> firstBlocks;
  if (in.view->blockRows && !findBlocks(error, *in.view, indptr, firstBlocks))
    return false;
  if (in.positions && in.positions->getSize(0) < rows)
    return error("expected operand 'positions' to have an entry for each of " +
                 Twine(rows) + " rows, but got " +
                 Twine(in.positions->getSize(0)) + " [BAT8]");
  if (in.sink && in.sink->getSize(0) != heads)
    return error("expected operand 'sink' to have an entry for each of " +
                 Twine(heads) + " heads, but got " +
                 Twine(in.sink->getSize(0)) + " [BAT10]");
  if (in.segments && static_cast<int64_t>(in.segments->cuts.size()) != requests)
    return error("expected operand 'segments' to be made of a view of " +
                 Twine(requests) + " requests, but got " +
                 Twine(in.segments->cuts.size()) + " [BAT3]");

  Evaluation evaluation(op, in, text);
  if (!evaluation.prepare())
    return false;
  const Normaliser &normaliser = *evaluation.normaliser;
  int64_t dim = evaluation.dim;

  // Pieces: one state each where the result is segmented, merged otherwise.
  bool segmented = static_cast<bool>(in.segments);
  auto cutsOf = [&](int64_t request) -> ArrayRef<int64_t> {
    if (!options.forceSegments.empty() && op.getNormaliser().canMerge())
      return options.forceSegments;
    return segmented ? ArrayRef<int64_t>(in.segments->cuts[request])
                     : ArrayRef<int64_t>();
  };
  size_t slots = 1;
  if (segmented)
    for (int64_t r = 0; r < requests; ++r)
      slots = std::max(slots, cutsOf(r).size() + 1);

  Partial empty;
  empty.output.assign(dim, 0.0);
  empty.statistic = normaliser.emptyStatistic();

  states.clear();
  for (size_t slot = 0; slot < slots; ++slot)
    states.push_back({HostTensor(DType::F64, {rows, heads, dim}),
                      HostTensor(DType::F64, {rows, heads})});
  visible = HostTensor(DType::I64, {rows, heads});
  if (op.getPairing())
    transformed = HostTensor(DType::F64, {rows, heads});

  if (op.getNormaliser().isAdditive())
    sums = HostTensor(DType::F64, {rows, heads, 2});

  std::vector<int64_t> requestOf(rows, -1);
  for (int64_t r = 0; r < requests; ++r)
    for (int64_t row = indptr[r]; row < indptr[r + 1]; ++row)
      requestOf[row] = r;

  auto evaluateRow = [&](int64_t row, int64_t head) {
    int64_t request = requestOf[row];
    std::vector<Partial> parts;
    if (request >= 0) {
      int64_t position = static_cast<int64_t>(
          static_cast<uint64_t>(in.view->origins[request]) +
          static_cast<uint64_t>(in.view->lengths[request] -
                                (indptr[request + 1] - indptr[request]) +
                                (row - indptr[request])));
      if (in.positions)
        position = in.positions->getInteger({row});
      int64_t block = 0;
      if (in.view->blockRows)
        block =
            firstBlocks[request] + (row - indptr[request]) / in.view->blockRows;
      if (!evaluation.evaluate(request, row, head, position, block,
                               cutsOf(request), parts))
        return false;
    }
    int64_t seen = 0;
    double keyNorm = 0, weightedSum = 0, weightedSquares = 0;
    for (const Partial &part : parts) {
      weightedSum += part.weightedSum;
      weightedSquares += part.weightedSquares;
      seen += part.visible;
      keyNorm = std::max(keyNorm, part.keyNorm);
    }
    visible.setInteger({row, head}, seen);
    if (op.getNormaliser().isAdditive()) {
      sums.setFloat({row, head, 0}, weightedSum);
      sums.setFloat({row, head, 1}, weightedSquares);
    }
    if (op.getPairing())
      transformed.setFloat({row, head}, std::fabs(in.scale) *
                                            evaluation.queryNorm * keyNorm);
    if (segmented) {
      for (size_t slot = 0; slot < slots; ++slot)
        store(states[slot], row, head,
              slot < parts.size() ? parts[slot] : empty);
      return true;
    }
    Partial whole = parts.empty()       ? empty
                    : parts.size() == 1 ? parts[0]
                                        : merge(normaliser, parts, dim);
    // Rows without keys have it too, so that this equals fi.finalize.
    if (in.sink)
      addSink(normaliser, in.sink->getFloat({head}), whole);
    store(states[0], row, head, whole);
    return true;
  };

  if (!options.onlyRows) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < heads; ++head)
        if (!evaluateRow(row, head))
          return false;
    return true;
  }
  for (StateValue &state : states) {
    fillMissing(state.output);
    fillMissing(state.statistic);
  }
  fillMissing(visible);
  for (auto [row, head] : *options.onlyRows) {
    if (row < 0 || row >= rows || head < 0 || head >= heads)
      return error("expected rows to evaluate among " + Twine(rows) + " x " +
                   Twine(heads) + ", but got (" + Twine(row) + ", " +
                   Twine(head) + ") [BAT12]");
    if (!evaluateRow(row, head))
      return false;
  }
  return true;
}
