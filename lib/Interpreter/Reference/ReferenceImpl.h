//===- ReferenceImpl.h - parts of the reference interpreter -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Views and states as the interpreter holds them, and the normaliser in double.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_INTERPRETER_REFERENCE_REFERENCEIMPL_H
#define FI_LIB_INTERPRETER_REFERENCE_REFERENCEIMPL_H

#include "ScalarEvaluator.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "fi/Interpreter/Reference.h"
#include <cstring>

namespace fi::reference {

/// An operand that is a tensor or memref, with the name it has in messages.
struct NamedTensor {
  llvm::StringRef name;
  HostTensor tensor;
};

/// The scales of keys or of values; 1 where there are none.
struct Scales {
  Granularity granularity = Granularity::Tensor;
  double number = 1;
  HostTensor tensor;
  /// Where blocks of a row have scales: their columns, else 0.
  int64_t block = 0;
  HostTensor blocks;
};

/// Keys and values of each request.
struct ViewValue {
  bool paged = false, fused = false, headsFirst = false;
  /// Whether pools have a dimension of heads.
  bool hasHeads = true;
  int64_t pageSize = 0;
  /// Pools of keys and of values; the same one if fused, or if values are keys.
  /// One of the keys' last columns where it has these.
  HostTensor keys, values, tails;
  /// Per request: number of keys and position of key 0.
  std::vector<int64_t> lengths, origins;
  /// Per request: pages in logical order, or the first row of the pool.
  std::vector<std::vector<int64_t>> pages;
  /// The same of values, where these have a table of their own.
  std::vector<std::vector<int64_t>> valuePages;
  std::vector<int64_t> firstRows;
  /// Of a block-sparse view: the size of a block, where the list of each block
  /// of rows begins, and numbers of blocks of keys. No rows: a view of all
  /// keys.
  int64_t blockRows = 0, blockColumns = 0;
  std::vector<int64_t> blockIndptr, blocks;
  Scales keyScales, valueScales;

  int64_t getRequests() const { return lengths.size(); }
  const HostTensor &poolOf(KVPart part) const;
  /// The first element of a key's row in the pool of a part, and its address.
  llvm::SmallVector<int64_t, 5> indexOf(KVPart part, int64_t request,
                                        int64_t head, int64_t key) const;
  void *row(KVPart part, int64_t request, int64_t head, int64_t key) const;
  /// What the elements of the row of a key or of a value are multiplied by.
  double scale(bool wantValues, int64_t request, int64_t head,
               int64_t key) const;
  /// The elements of the row of a key or of a value, scaled.
  void readRow(KVPart part, int64_t request, int64_t head, int64_t key,
               llvm::MutableArrayRef<double> into) const;
  /// The other way, where blocks have scales: computes these and the codes.
  void quantiseRow(bool wantValues, int64_t request, int64_t head, int64_t key,
                   llvm::ArrayRef<double> row) const;
  /// Address of the scale of a row's first block.
  void *blockScales(bool wantValues, int64_t request, int64_t head,
                    int64_t key) const;
  /// Whether the rows of a block see a key.
  bool sees(int64_t block, int64_t key) const;

private:
  /// [page, token] of a key (or value), or [token].
  std::pair<int64_t, int64_t> place(bool wantValues, int64_t request,
                                    int64_t key) const;
};

/// [rows, heads, dim] and [rows, heads], in double.
struct StateValue {
  HostTensor output, statistic;
};

/// Fills a contiguous tensor with what stands for rows that were left out: all
/// bits set, which is NaN in every float type and -1 as an integer. In one go,
/// because a few rows of a serving batch are wanted among millions of elements.
inline void fillMissing(const HostTensor &tensor) {
  if (int64_t count = tensor.getNumElements())
    std::memset(tensor.getData(), 0xff, count * getByteSize(tensor.getType()));
}

/// Per request: the first key of every piece but the first, rising.
struct SegmentsValue {
  std::vector<std::vector<int64_t>> cuts;
};

/// What one row of one head has over some keys.
struct Partial {
  std::vector<double> output;
  double statistic = 0;
  int64_t visible = 0;
  /// Largest norm of a visible key, where transforms make keys.
  double keyNorm = 0;
  /// Largest, over the output's elements, sum of |weight v| and sum of squares
  /// of weight v, where weights are not normalised.
  double weightedSum = 0, weightedSquares = 0;
};

/// A normaliser in double, on whole rows.
class Normaliser {
public:
  virtual ~Normaliser() = default;
  virtual double emptyStatistic() const = 0;
  /// Turns scores (-inf: no weight) into weights over these keys, and gives the
  /// statistic.
  virtual double normalise(std::vector<double> &scores) const = 0;
  /// Turns the statistics of states over disjoint keys into the states'
  /// weights, and gives the merged statistic.
  virtual double merge(std::vector<double> &statistics) const = 0;
  /// The statistic of a sink: a key without a value, of this logit.
  virtual double ofSink(double logit) const = 0;
};

/// Null if the reference does not know the kind.
std::unique_ptr<Normaliser> makeNormaliser(NormaliserAttrInterface kind);

/// Combines partial results in order.
Partial merge(const Normaliser &normaliser, llvm::ArrayRef<Partial> parts,
              int64_t dim);
/// Adds a sink to a result.
void addSink(const Normaliser &normaliser, double logit, Partial &result);

/// The message of an error of the batch, and where it belongs.
class BatchError {
public:
  BatchError(mlir::Operation *op, std::string &text) : op(op), text(text) {}
  /// Stores `'op' op <message>`; always false.
  bool operator()(const llvm::Twine &message) const;

private:
  mlir::Operation *op;
  std::string &text;
};

/// Reads an indptr: at least one entry, not negative, not falling, with a last
/// entry of at most `end` (`what` names what it counts).
bool readIndptr(const BatchError &error, const NamedTensor &table, int64_t end,
                llvm::StringRef what, std::vector<int64_t> &values);

bool makePagedView(PagedViewOp op, llvm::ArrayRef<HostTensor> pools,
                   llvm::ArrayRef<HostTensor> tables,
                   std::optional<HostTensor> origin,
                   const std::array<Scales, 2> &scales, ViewValue &view,
                   std::string &error);
bool makeLatentView(LatentViewOp op, llvm::ArrayRef<HostTensor> pools,
                    llvm::ArrayRef<HostTensor> tables,
                    std::optional<HostTensor> origin,
                    const std::array<Scales, 2> &scales, ViewValue &view,
                    std::string &error);
bool makeRaggedView(RaggedViewOp op, llvm::ArrayRef<HostTensor> pools,
                    std::optional<HostTensor> indptr,
                    std::optional<HostTensor> origin,
                    const std::array<Scales, 2> &scales, ViewValue &view,
                    std::string &error);

bool makeBsrView(BsrViewOp op, llvm::ArrayRef<HostTensor> pools,
                 std::optional<HostTensor> indptr,
                 llvm::ArrayRef<HostTensor> blocks,
                 std::optional<HostTensor> origin,
                 const std::array<Scales, 2> &scales, ViewValue &view,
                 std::string &error);

/// The first block of rows of each request, and the number of all. They have to
/// be there, in order and within the request's keys.
bool findBlocks(const BatchError &error, const ViewValue &view,
                llvm::ArrayRef<int64_t> rows, std::vector<int64_t> &first);

/// The rows of each request: indptr, or all rows as one request.
bool readRows(const BatchError &error, std::optional<HostTensor> rows,
              int64_t queryRows, int64_t requests,
              std::vector<int64_t> &values);

/// What a region reads besides its arguments: a tensor or a scalar.
using Capture = std::pair<std::optional<HostTensor>, Scalar>;

/// A region with its own slots. Its leading arguments are set for each call.
class RegionFunction {
public:
  bool prepare(mlir::Block &block, unsigned leading,
               llvm::ArrayRef<Capture> captures) {
    for (unsigned i = 0; i < block.getNumArguments(); ++i) {
      mlir::BlockArgument argument = block.getArgument(i);
      evaluator.define(argument);
      if (i < leading)
        continue;
      auto &[tensor, scalar] = captures[i - leading];
      if (tensor)
        evaluator.setTensor(argument, *tensor);
      else
        evaluator.set(argument, scalar);
    }
    this->block = &block;
    results =
        llvm::SmallVector<mlir::Value>(block.getTerminator()->getOperands());
    return evaluator.add(block);
  }

  /// A function that is built as ops, such as a mask attribute of another
  /// dialect: `value` is what it gives.
  bool prepare(mlir::Block &block, mlir::Value value) {
    for (mlir::BlockArgument argument : block.getArguments())
      evaluator.define(argument);
    this->block = &block;
    results = {value};
    for (mlir::Operation &op : block)
      if (!evaluator.add(op))
        return false;
    return true;
  }

  explicit operator bool() const { return block; }

  bool call(llvm::ArrayRef<Scalar> arguments) {
    for (auto [i, argument] : llvm::enumerate(arguments))
      evaluator.set(block->getArgument(i), argument);
    return evaluator.run();
  }
  Scalar result(unsigned index = 0) { return evaluator.get(results[index]); }
  const std::string &getError() const { return evaluator.getError(); }

private:
  mlir::Block *block = nullptr;
  llvm::SmallVector<mlir::Value> results;
  ScalarEvaluator evaluator;
};
/// Transforms the pairs of a row's first `dims` elements by a region; false
/// where the region fails.
bool transformPairs(RegionFunction &region, Pairing pairing, int64_t dims,
                    int64_t request, int64_t head, int64_t position,
                    llvm::MutableArrayRef<double> row);
/// Whether a region computes functions, of angles say, rather than reads them.
bool computesFunctions(mlir::Region &region);
/// By how much f32 is off that transforms a pair: `before` and `after` are the
/// sums of both elements' magnitudes.
double pairError(bool isComputed, int64_t position, double before,
                 double after);
/// The elements of a pair.
inline std::pair<int64_t, int64_t> pairOf(Pairing pairing, int64_t dims,
                                          int64_t pair) {
  return pairing == Pairing::Half ? std::pair(pair, pair + dims / 2)
                                  : std::pair(2 * pair, 2 * pair + 1);
}

struct AttentionOperands {
  HostTensor query;
  std::optional<HostTensor> queryTail, rows, positions, sink;
  const ViewValue *view = nullptr;
  const SegmentsValue *segments = nullptr;
  double scale = 1;
  std::vector<Capture> captures;
};

/// Evaluates fi.attention: one state, or one a piece where the op's result is
/// segmented. Sinks are included. `visible` receives the number of visible
/// keys, `transformed` and `sums` what ReferenceOptions says of
/// transformedScores and weightedSums.
bool evaluateAttention(AttentionOp op, const AttentionOperands &operands,
                       const ReferenceOptions &options,
                       std::vector<StateValue> &states, HostTensor &visible,
                       HostTensor &transformed, HostTensor &sums,
                       std::string &error);

/// Rows that an op takes, and by how much backends may have computed them
/// otherwise where they are computed: [rows, heads, dim] of f64.
struct Rows {
  HostTensor values;
  std::optional<HostTensor> tolerance;
};

/// Evaluate what stands beside attention. `result.tolerance`, where it is
/// there, receives NUM13's bound.
void evaluateGated(GatedOp op, const Rows &input, Rows &result);
/// Rows of codes: `scales` are given, or `made` receives them, or both where
/// blocks have scales and `scales` multiplies these.
void evaluateQuantise(QuantiseOp op, const Rows &input, const Rows *scales,
                      double number, Rows &codes, Rows *made);
void evaluateDequantise(DequantiseOp op, const Rows &codes,
                        llvm::ArrayRef<Rows> scales, double number,
                        Rows &result);
void evaluatePackBits(PackBitsOp op, const HostTensor &input,
                      const HostTensor &result);
void evaluateSegmentPackBits(SegmentPackBitsOp op, const HostTensor &input,
                             const HostTensor &from, const HostTensor &to,
                             const HostTensor &result);
/// Computes the scale of a block of numbers, which goes to `place`, and gives
/// their codes to `store`, as QNT13 says; `number` multiplies the scale.
void quantiseBlock(llvm::ArrayRef<double> block, DType scaleType, float number,
                   void *place,
                   llvm::function_ref<void(int64_t, int64_t)> store);
bool evaluateRope(RopeOp op, const Rows &input, const HostTensor &positions,
                  llvm::ArrayRef<Capture> captures, Rows &result,
                  std::string &error);

} // namespace fi::reference

#endif // FI_LIB_INTERPRETER_REFERENCE_REFERENCEIMPL_H
