//===- ReferenceCodes.cpp - rows of codes and of bits ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi.quantise, fi.dequantise and the ops that pack bits. Quotients are of f32,
// as backends compute them: codes of exact numbers by given scales are exact
// (NUM14).
//
//===----------------------------------------------------------------------===//

#include "RowElements.h"

using namespace mlir;
using namespace fi;
using namespace fi::reference;

/// A code of 4 bits of a number that is not exact may be any: so its byte.
static constexpr double kAnyByte = 255;

/// Where the scale of a row's column is, in a tensor of scales of rows.
static SmallVector<int64_t> scaleAt(const RowScheme &scheme, int64_t row,
                                    int64_t head, int64_t column) {
  SmallVector<int64_t> index = {row, head};
  if (scheme.group)
    index.push_back(column / scheme.group);
  return index;
}

/// The scale of an element: `number`, or one of a tensor of heads or of rows.
static double scaleOf(const RowScheme &scheme, const Rows *scales,
                      double number, int64_t row, int64_t head, int64_t column,
                      double *error = nullptr) {
  if (!scales)
    return number;
  SmallVector<int64_t> index = {
      scheme.granularity == Granularity::Tensor ? 0 : head};
  if (scheme.areOfRows() && scales->values.getRank() > 1)
    index = scaleAt(scheme, row, head, column);
  if (error)
    *error = errorOf(*scales, index);
  return scales->values.getFloat(index);
}

namespace {

/// What shares a scale that is made.
struct Shared {
  double most = 0, off = 0;

  void see(const Rows &input, ArrayRef<int64_t> index) {
    most = std::max(most, std::fabs(input.values.getFloat(index)));
    off = std::max(off, errorOf(input, index));
  }
};

/// A scale, and by how much it may be off.
struct Scale {
  double value, off;
};

} // namespace

/// Makes a scale of numbers, as QTZ4 says.
static Scale makeScale(const RowScheme &scheme, const Shared &shared,
                       Rows &made, ArrayRef<int64_t> place) {
  double largest = getLargestCode(scheme.storage);
  Scale scale = {
      std::max(static_cast<float>(shared.most) / static_cast<float>(largest),
               0x1p-126F),
      shared.off / largest};
  made.values.setFloat(place, scale.value);
  if (made.tolerance)
    made.tolerance->setFloat(
        place, shared.off == 0
                   ? 0
                   : elementTolerance(scale.value, scale.off, DType::F32));
  return scale;
}

/// Codes of a span of columns that share a block's scale, which is made.
static void quantiseBlocks(const RowScheme &scheme, const Rows &input,
                           const Rows *scales, double number, Rows &codes,
                           Rows &made, int64_t row, int64_t head,
                           int64_t first) {
  std::vector<double> x;
  Shared block;
  for (int64_t d = first; d < first + scheme.group; ++d) {
    x.push_back(input.values.getFloat({row, head, d}));
    block.see(input, {row, head, d});
  }
  double off = block.off;
  auto factor =
      static_cast<float>(scaleOf(scheme, scales, number, row, head, first));
  SmallVector<int64_t> place = scaleAt(scheme, row, head, first);
  DType type = made.values.getType();
  quantiseBlock(
      x, type, factor, made.values.at(place), [&](int64_t c, int64_t code) {
        SmallVector<int64_t> byte = {row, head, (first + c) / 2};
        int64_t old = codes.values.getInteger(byte);
        codes.values.setInteger(byte, c % 2 ? (old & 15) | code << 4 : code);
        if (codes.tolerance)
          codes.tolerance->setFloat(byte, off > 0 ? kAnyByte : 0);
      });
  if (made.tolerance)
    made.tolerance->setFloat(
        place, off == 0 ? 0
               : type == DType::F8E8M0FNU
                   ? made.values.getFloat(place)
                   : elementTolerance(made.values.getFloat(place),
                                      std::fabs(off / 6 / factor), type));
}

/// Codes of a span of columns by one scale.
static void quantiseSpan(const Rows &input, Scale scale, bool isMade,
                         Rows &codes, int64_t row, int64_t head, int64_t first,
                         int64_t count) {
  DType type = codes.values.getType();
  for (int64_t c = 0; c < count; ++c) {
    SmallVector<int64_t> index = {row, head, first + c};
    double x = input.values.getFloat(index);
    float quotient = static_cast<float>(x) / static_cast<float>(scale.value);
    writeSaturated(codes.values.at(index), type, quotient);
    if (!codes.tolerance)
      continue;
    double error =
        (errorOf(input, index) + std::fabs(x / scale.value) * scale.off) /
        std::fabs(scale.value);
    if (isMade)
      error += std::fabs(quotient) * kQuotientError;
    codes.tolerance->setFloat(index, codeTolerance(quotient, error, type));
  }
}

void fi::reference::evaluateQuantise(QuantiseOp op, const Rows &input,
                                     const Rows *scales, double number,
                                     Rows &codes, Rows *made) {
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  int64_t dim = input.values.getSize(2);
  int64_t span = scheme.group ? scheme.group : dim;
  // Scales that all rows share are known before the first code.
  std::vector<Scale> known;
  if (op.makesSharedScales()) {
    std::vector<Shared> shared(made->values.getSize(0));
    visitRows(input.values, [&](int64_t row, int64_t head) {
      for (int64_t d = 0; d < dim; ++d)
        shared[shared.size() > 1 ? head : 0].see(input, {row, head, d});
    });
    for (auto [i, one] : llvm::enumerate(shared))
      known.push_back(makeScale(scheme, one, *made, {static_cast<int64_t>(i)}));
  }
  visitRows(input.values, [&](int64_t row, int64_t head) {
    for (int64_t first = 0; first < dim; first += span) {
      if (scheme.blocks) {
        quantiseBlocks(scheme, input, scales, number, codes, *made, row, head,
                       first);
        continue;
      }
      Scale scale = {1, 0};
      if (!known.empty()) {
        scale = known[known.size() > 1 ? head : 0];
      } else if (made) {
        Shared shared;
        for (int64_t d = first; d < first + span; ++d)
          shared.see(input, {row, head, d});
        scale =
            makeScale(scheme, shared, *made, scaleAt(scheme, row, head, first));
      } else {
        scale.value =
            scaleOf(scheme, scales, number, row, head, first, &scale.off);
      }
      quantiseSpan(input, scale, made != nullptr, codes, row, head, first,
                   span);
    }
  });
}

void fi::reference::evaluateDequantise(DequantiseOp op, const Rows &codes,
                                       ArrayRef<Rows> scales, double number,
                                       Rows &result) {
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  int64_t dim = result.values.getSize(2);
  visitRows(codes.values, [&](int64_t row, int64_t head) {
    for (int64_t d = 0; d < dim; ++d) {
      int64_t index[] = {row, head, d}, at[] = {row, head, d};
      at[2] = scheme.blocks ? d / 2 : d;
      double code, codeOff = errorOf(codes, at);
      if (scheme.blocks) {
        int64_t byte = codes.values.getInteger(at);
        code = readFloat4(d % 2 ? byte >> 4 : byte);
        codeOff = codeOff > 0 ? 12 : 0;
      } else {
        code = codes.values.getFloat(at);
      }
      double scaleOff = 0;
      double scale = scaleOf(scheme, scales.empty() ? nullptr : &scales[0],
                             number, row, head, d, &scaleOff);
      if (scheme.blocks && scheme.blocks.hasNumbers())
        scale *= scaleOf(scheme, scales.size() > 1 ? &scales[1] : nullptr,
                         number, row, head, d);
      double value = code * scale;
      setElement(result, index, value,
                 std::fabs(value) * kElementError + codeOff * std::fabs(scale) +
                     (std::fabs(code) + codeOff) * scaleOff);
    }
  });
}

void fi::reference::evaluatePackBits(PackBitsOp op, const HostTensor &input,
                                     const HostTensor &result) {
  visitRows(input, [&](int64_t row, int64_t head) {
    for (int64_t byte = 0; byte < result.getSize(2); ++byte) {
      int64_t packed = 0;
      for (int64_t i = 0; i < 8; ++i)
        if (input.getInteger({row, head, 8 * byte + i}) != 0)
          packed |= int64_t(1)
                    << (op.getOrder() == BitOrder::Little ? i : 7 - i);
      result.setInteger({row, head, byte}, packed);
    }
  });
}

void fi::reference::evaluateSegmentPackBits(SegmentPackBitsOp op,
                                            const HostTensor &input,
                                            const HostTensor &from,
                                            const HostTensor &to,
                                            const HostTensor &result) {
  int64_t segments = std::min(from.getSize(0), to.getSize(0)) - 1;
  int64_t segment = 0;
  for (int64_t byte = 0; byte < result.getSize(0); ++byte) {
    while (segment + 1 < segments && to.getInteger({segment + 1}) <= byte)
      ++segment;
    int64_t packed = 0;
    if (segment < segments && to.getInteger({segment}) <= byte) {
      int64_t first =
          from.getInteger({segment}) + 8 * (byte - to.getInteger({segment}));
      int64_t end = std::min(from.getInteger({segment + 1}), input.getSize(0));
      for (int64_t i = 0; i < 8 && first + i < end; ++i)
        if (input.getInteger({first + i}) != 0)
          packed |= int64_t(1)
                    << (op.getOrder() == BitOrder::Little ? i : 7 - i);
    }
    result.setInteger({byte}, packed);
  }
}
