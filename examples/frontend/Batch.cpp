//===- Batch.cpp - sequences to run a toy.sdpa on -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The definition of toy.sdpa is written here once more, with nothing of fi's:
// what fi compiles is compared with it.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include <cmath>
#include <random>

using namespace mlir;
using fi::HostTensor;

namespace toy {

static HostTensor makeOffsets(llvm::ArrayRef<int64_t> lengths) {
  HostTensor offsets(fi::DType::I32, {int64_t(lengths.size()) + 1});
  int64_t end = 0;
  for (size_t i = 0; i < lengths.size(); ++i)
    offsets.setInteger({int64_t(i) + 1}, end += lengths[i]);
  return offsets;
}

/// Numbers in [-1, 1], of the shape of `type` with `tokens` for what is open.
static HostTensor makeNumbers(ShapedType type, int64_t tokens,
                              std::mt19937 &random) {
  llvm::SmallVector<int64_t, 3> shape(type.getShape());
  for (int64_t &size : shape)
    size = ShapedType::isDynamic(size) ? tokens : size;
  HostTensor tensor(*fi::getDType(type.getElementType()), shape);
  int64_t bytes = fi::getByteSize(tensor.getType());
  for (int64_t i = 0, end = tensor.getNumElements(); i < end; ++i)
    fi::writeFloat(static_cast<char *>(tensor.getData()) + i * bytes,
                   tensor.getType(), random() / 2147483648.0 - 1);
  return tensor;
}

/// softmax(scale * q k^T + bias) v of one head of one row, added to `out`.
static void attend(SdpaOp op, const Batch &batch, int64_t row, int64_t head,
                   int64_t position, int64_t firstKey, int64_t keyCount,
                   llvm::MutableArrayRef<double> out) {
  auto tensor = [&](Value value) -> const HostTensor & {
    return batch.arguments[cast<BlockArgument>(value).getArgNumber()]
        .getTensor();
  };
  const HostTensor &q = tensor(op.getQuery()), &k = tensor(op.getKey()),
                   &v = tensor(op.getValue());
  int64_t kvHead = head / (q.getSize(1) / k.getSize(1));
  int64_t seen = op.getCausal() ? std::min(keyCount, position + 1) : keyCount;
  std::vector<double> scores;
  double largest = -INFINITY, sum = 0;
  for (int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (int64_t d = 0; d < q.getSize(2); ++d)
      score +=
          q.getFloat({row, head, d}) * k.getFloat({firstKey + j, kvHead, d});
    score *= op.getScale().convertToDouble();
    if (op.getSlopes())
      score += tensor(op.getSlopes()).getFloat({head}) * double(j - position);
    scores.push_back(score);
    largest = std::max(largest, score);
  }
  for (double &score : scores)
    sum += score = std::exp(score - largest);
  for (int64_t j = 0; j < seen; ++j)
    for (size_t d = 0; d < out.size(); ++d)
      out[d] +=
          scores[j] / sum * v.getFloat({firstKey + j, kvHead, int64_t(d)});
}

llvm::Expected<Batch> makeBatch(func::FuncOp function,
                                llvm::ArrayRef<int64_t> rows,
                                llvm::ArrayRef<int64_t> keys) {
  auto ops = function.getOps<SdpaOp>();
  if (!llvm::hasSingleElement(ops))
    return llvm::createStringError("expected a function with one toy.sdpa");
  SdpaOp op = *ops.begin();
  int64_t rowCount = 0, keyCount = 0;
  for (int64_t count : rows)
    rowCount += count;
  for (int64_t count : keys)
    keyCount += count;

  Batch batch;
  std::mt19937 random(1);
  for (BlockArgument argument : function.getArguments()) {
    if (argument == op.getQueryOffsets())
      batch.arguments.push_back(makeOffsets(rows));
    else if (argument == op.getKeyOffsets())
      batch.arguments.push_back(makeOffsets(keys));
    else
      batch.arguments.push_back(
          makeNumbers(cast<ShapedType>(argument.getType()),
                      argument == op.getQuery() ? rowCount : keyCount, random));
  }

  auto query = cast<ShapedType>(op.getQuery().getType());
  int64_t heads = query.getDimSize(1), dim = query.getDimSize(2);
  batch.expected.assign(size_t(rowCount * heads * dim), 0);
  int64_t row = 0, firstKey = 0;
  for (size_t i = 0; i < rows.size(); firstKey += keys[i++])
    for (int64_t n = 0; n < rows[i]; ++n, ++row)
      for (int64_t head = 0; head < heads; ++head)
        attend(op, batch, row, head, keys[i] - rows[i] + n, firstKey, keys[i],
               llvm::MutableArrayRef<double>(batch.expected)
                   .slice(size_t((row * heads + head) * dim), size_t(dim)));
  return batch;
}

} // namespace toy
