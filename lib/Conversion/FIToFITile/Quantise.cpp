//===- Quantise.cpp - numbers to codes of eight bits ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounding as QNT8 and QNT13 say, by arithmetic on tiles that every target has:
// in f32 the code of a number is in its upper bits, once what is below has been
// rounded away.
//
//===----------------------------------------------------------------------===//

#include "RegionInliner.h"
#include "StageBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

class Quantiser {
public:
  Quantiser(OpBuilder &b, Location loc, RankedTensorType type)
      : b(b), loc(loc), floats(type), words(type.clone(b.getI32Type())) {}

  Value toInteger(Value x);
  /// A code of f8E4M3FN, f8E5M2 or f4E2M1FN, in i32. `rounded` receives the
  /// magnitude of its number.
  Value toFloat(Value x, Type storage, Value *rounded = nullptr);
  Value narrow(Value code, Type storage) {
    Value bytes =
        arith::TruncIOp::create(b, loc, words.clone(b.getI8Type()), code);
    if (storage.isInteger(8))
      return bytes;
    return arith::BitcastOp::create(b, loc, words.clone(storage), bytes);
  }
  /// The code of the scale of a block whose largest magnitude is `most`, in
  /// i32, and what the block's numbers are divided by.
  std::pair<Value, Value> toScale(Value most, BlockScaledType scheme,
                                  Value factor);
  /// The codes of numbers over their scales, in i32.
  Value toBlockCodes(Value x, Value scale, Type storage);
  /// The numbers of codes of f4E2M1FN, which are the low bits of words.
  Value fromFloat4(Value code);
  Value word(int32_t value) {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(words, value));
  }

private:
  Value number(double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(floats, static_cast<float>(value)));
  }
  Value bits(Value x) { return arith::BitcastOp::create(b, loc, words, x); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }
  /// A NaN compares with nothing, and stays.
  Value clamp(Value x, double least, double most) {
    Value above = compare(arith::CmpFPredicate::OGT, x, number(most));
    x = arith::SelectOp::create(b, loc, above, number(most), x);
    Value below = compare(arith::CmpFPredicate::OLT, x, number(least));
    return arith::SelectOp::create(b, loc, below, number(least), x);
  }
  /// The nearest multiple of a power of two, counted in it, of a number that is
  /// small beside 2^22 of them: what a sum with a large number rounds away.
  Value countOf(Value x, double spacing) {
    double large = std::ldexp(spacing, 23) * 1.5;
    auto largeBits = static_cast<float>(large);
    int32_t offset;
    static_assert(sizeof(offset) == sizeof(largeBits));
    std::memcpy(&offset, &largeBits, sizeof(offset));
    Value sum = arith::AddFOp::create(b, loc, x, number(large));
    return arith::SubIOp::create(b, loc, bits(sum), word(offset));
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType floats, words;
};

} // namespace

Value Quantiser::toInteger(Value x) {
  return narrow(countOf(clamp(x, -128, 127), 1), b.getI8Type());
}

Value Quantiser::toFloat(Value x, Type storage, Value *rounded) {
  int width = static_cast<int>(storage.getIntOrFloatBitWidth());
  int mantissa = 3, bias = 7;
  double most = 448;
  if (isa<Float8E5M2Type>(storage)) {
    mantissa = 2;
    bias = 15;
    most = 57344;
  } else if (isa<Float4E2M1FNType>(storage)) {
    mantissa = 1;
    bias = 1;
    most = 6;
  }
  Value isNumber = compare(arith::CmpFPredicate::ORD, x, x);
  x = clamp(x, -most, most);
  Value whole = bits(x);
  Value sign = arith::ShRUIOp::create(b, loc, whole, word(32 - width));
  sign = arith::AndIOp::create(b, loc, sign, word(1 << (width - 1)));
  Value magnitude = arith::AndIOp::create(b, loc, whole, word(0x7fffffff));
  // Half of the last place, less the least if that place is even.
  int shift = 23 - mantissa;
  Value odd = arith::ShRUIOp::create(b, loc, magnitude, word(shift));
  odd = arith::AndIOp::create(b, loc, odd, word(1));
  Value upper =
      arith::AddIOp::create(b, loc, magnitude, word((1 << (shift - 1)) - 1));
  upper = arith::AddIOp::create(b, loc, upper, odd);
  upper = arith::ShRUIOp::create(b, loc, upper, word(shift));
  Value normal =
      arith::SubIOp::create(b, loc, upper, word((127 - bias) << mantissa));
  // Below the smallest normal number: multiples of the smallest one.
  Value absolute = arith::BitcastOp::create(b, loc, floats, magnitude);
  Value small = countOf(absolute, std::ldexp(1.0, 1 - bias - mantissa));
  Value isSmall = compare(arith::CmpFPredicate::OLT, absolute,
                          number(std::ldexp(1.0, 1 - bias)));
  if (rounded) {
    Value number = arith::BitcastOp::create(
        b, loc, floats, arith::ShLIOp::create(b, loc, upper, word(shift)));
    Value multiple = arith::MulFOp::create(
        b, loc, arith::SIToFPOp::create(b, loc, floats, small),
        this->number(std::ldexp(1.0, 1 - bias - mantissa)));
    *rounded = arith::SelectOp::create(b, loc, isSmall, multiple, number);
  }
  Value code = arith::SelectOp::create(b, loc, isSmall, small, normal);
  code = arith::SelectOp::create(b, loc, isNumber, code,
                                 word((1 << (width - 1)) - 1));
  return arith::OrIOp::create(b, loc, code, sign);
}

std::pair<Value, Value> Quantiser::toScale(Value most, BlockScaledType scheme,
                                           Value factor) {
  Value code, scale;
  if (isa<Float8E8M0FNUType>(scheme.getBy())) {
    // The power of two below the largest number, less that below 6.
    Value exponent = arith::ShRUIOp::create(b, loc, bits(most), word(23));
    exponent = arith::SubIOp::create(b, loc, exponent, word(2));
    code = arith::MaxSIOp::create(b, loc, exponent, word(1));
    scale = arith::BitcastOp::create(
        b, loc, floats, arith::ShLIOp::create(b, loc, code, word(23)));
  } else {
    scale = arith::DivFOp::create(b, loc, most, number(6));
    scale = arith::DivFOp::create(b, loc, scale, factor);
    Value rounded;
    code = toFloat(scale, scheme.getBy(), &rounded);
    scale = arith::MulFOp::create(b, loc, rounded, factor);
  }
  return {code, scale};
}

Value Quantiser::toBlockCodes(Value x, Value scale, Type storage) {
  Value quotient = arith::DivFOp::create(b, loc, x, scale);
  Value isZero = compare(arith::CmpFPredicate::OEQ, scale, number(0));
  quotient = arith::SelectOp::create(b, loc, isZero, number(0), quotient);
  return toFloat(quotient, storage);
}

/// From 1 on the exponent and the mantissa of an f32 but for a bias; below
/// there are 0 and 1/2.
Value Quantiser::fromFloat4(Value code) {
  Value sign = arith::ShLIOp::create(
      b, loc, arith::AndIOp::create(b, loc, code, word(8)), word(28));
  Value rest = arith::AndIOp::create(b, loc, code, word(7));
  Value large = arith::ShLIOp::create(b, loc, rest, word(22));
  large = arith::AddIOp::create(b, loc, large, word(126 << 23));
  Value small = arith::MulIOp::create(b, loc, rest, word(126 << 23));
  Value isSmall =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, rest, word(2));
  rest = arith::SelectOp::create(b, loc, isSmall, small, large);
  return arith::BitcastOp::create(b, loc, floats,
                                  arith::OrIOp::create(b, loc, rest, sign));
}

Value fi::tile::largestOfRows(OpBuilder &b, Location loc, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  return ReduceOp::create(b, loc, type.clone({type.getDimSize(0), 1}),
                          ReduceKind::Max, math::AbsFOp::create(b, loc, tile));
}

Value fi::tile::scalesOf(OpBuilder &b, Location loc, Value largest,
                         Type storage) {
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(cast<ShapedType>(largest.getType()),
                               static_cast<float>(value)));
  };
  Value scale =
      arith::DivFOp::create(b, loc, largest, number(getLargestCode(storage)));
  // What is all zeros has a scale as well.
  return arith::MaximumFOp::create(b, loc, scale, number(0x1p-126));
}

Value fi::tile::rowScales(OpBuilder &b, Location loc, Value tile,
                          Type storage) {
  return scalesOf(b, loc, largestOfRows(b, loc, tile), storage);
}

Value fi::tile::quantise(OpBuilder &b, Location loc, Value tile, Type storage) {
  Quantiser quantiser(b, loc, cast<RankedTensorType>(tile.getType()));
  return storage.isInteger(8)
             ? quantiser.toInteger(tile)
             : quantiser.narrow(quantiser.toFloat(tile, storage), storage);
}

std::pair<Value, Value> fi::tile::quantiseBlocks(OpBuilder &b, Location loc,
                                                 Value tile,
                                                 BlockScaledType scheme,
                                                 Value number) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (number)
    number = broadcastTo(b, loc, number, type.getShape());
  Quantiser quantiser(b, loc, type);
  Value most = BlockMaxOp::create(b, loc, tile, scheme.getBlock());
  auto [code, scale] = quantiser.toScale(most, scheme, number);
  Value codes = quantiser.toBlockCodes(tile, scale, scheme.getStorage());
  Type bytes = b.getI8Type();
  return {quantiser.narrow(codes, bytes), quantiser.narrow(code, bytes)};
}

std::pair<Value, Value> fi::tile::quantiseBlock(OpBuilder &b, Location loc,
                                                Value even, Value odd,
                                                BlockScaledType scheme,
                                                Value number) {
  auto type = cast<RankedTensorType>(even.getType());
  SmallVector<int64_t> column = {type.getDimSize(0), 1};
  RankedTensorType columnType = type.clone(column);
  Value most =
      arith::MaximumFOp::create(b, loc, math::AbsFOp::create(b, loc, even),
                                math::AbsFOp::create(b, loc, odd));
  most = ReduceOp::create(b, loc, columnType, ReduceKind::Max, most);
  if (number)
    number = broadcastTo(b, loc, number, column);
  Quantiser scales(b, loc, columnType), codes(b, loc, type);
  auto [code, scale] = scales.toScale(most, scheme, number);
  scale = broadcastTo(b, loc, scale, type.getShape());
  Value low = codes.toBlockCodes(even, scale, scheme.getStorage());
  Value high = codes.toBlockCodes(odd, scale, scheme.getStorage());
  high = arith::ShLIOp::create(b, loc, high, codes.word(4));
  Value both = arith::OrIOp::create(b, loc, low, high);
  return {codes.narrow(both, b.getI8Type()),
          scales.narrow(code, scheme.getBy())};
}

std::pair<Value, Value> fi::tile::unpackFloat4(OpBuilder &b, Location loc,
                                               Value bytes) {
  auto type = cast<RankedTensorType>(bytes.getType());
  Quantiser quantiser(b, loc, type.clone(b.getF32Type()));
  Value words =
      arith::ExtUIOp::create(b, loc, type.clone(b.getI32Type()), bytes);
  Value high = arith::ShRUIOp::create(b, loc, words, quantiser.word(4));
  return {quantiser.fromFloat4(words), quantiser.fromFloat4(high)};
}
