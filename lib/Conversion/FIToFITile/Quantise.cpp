//===- Quantise.cpp - numbers to codes of eight bits ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounding as QNT8 says, by arithmetic on tiles that every target has: in f32
// the code of a number is in its upper bits, once what is below has been
// rounded away.
//
//===----------------------------------------------------------------------===//

#include "StageBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
  Value toFloat8(Value x, Type storage);

private:
  Value number(double value) {
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(floats, static_cast<float>(value)));
  }
  Value word(int32_t value) {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(words, value));
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
  Value narrow(Value code, Type storage) {
    Value bytes =
        arith::TruncIOp::create(b, loc, words.clone(b.getI8Type()), code);
    if (storage.isInteger(8))
      return bytes;
    return arith::BitcastOp::create(b, loc, words.clone(storage), bytes);
  }

  OpBuilder &b;
  Location loc;
  RankedTensorType floats, words;
};

} // namespace

Value Quantiser::toInteger(Value x) {
  return narrow(countOf(clamp(x, -128, 127), 1), b.getI8Type());
}

Value Quantiser::toFloat8(Value x, Type storage) {
  bool isE5M2 = isa<Float8E5M2Type>(storage);
  int mantissa = isE5M2 ? 2 : 3, bias = isE5M2 ? 15 : 7;
  double most = isE5M2 ? 57344 : 448;
  Value isNumber = compare(arith::CmpFPredicate::ORD, x, x);
  x = clamp(x, -most, most);
  Value whole = bits(x);
  Value sign = arith::ShRUIOp::create(b, loc, whole, word(24));
  sign = arith::AndIOp::create(b, loc, sign, word(0x80));
  Value magnitude = arith::AndIOp::create(b, loc, whole, word(0x7fffffff));
  // Half of the last place, less the least if that place is even.
  int shift = 23 - mantissa;
  Value odd = arith::ShRUIOp::create(b, loc, magnitude, word(shift));
  odd = arith::AndIOp::create(b, loc, odd, word(1));
  Value rounded =
      arith::AddIOp::create(b, loc, magnitude, word((1 << (shift - 1)) - 1));
  rounded = arith::AddIOp::create(b, loc, rounded, odd);
  rounded = arith::ShRUIOp::create(b, loc, rounded, word(shift));
  Value normal =
      arith::SubIOp::create(b, loc, rounded, word((127 - bias) << mantissa));
  // Below the smallest normal number: multiples of the smallest one.
  Value absolute = arith::BitcastOp::create(b, loc, floats, magnitude);
  Value small = countOf(absolute, std::ldexp(1.0, 1 - bias - mantissa));
  Value isSmall = compare(arith::CmpFPredicate::OLT, absolute,
                          number(std::ldexp(1.0, 1 - bias)));
  Value code = arith::SelectOp::create(b, loc, isSmall, small, normal);
  code = arith::SelectOp::create(b, loc, isNumber, code, word(0x7f));
  return narrow(arith::OrIOp::create(b, loc, code, sign), storage);
}

Value fi::tile::quantise(OpBuilder &b, Location loc, Value tile, Type storage) {
  Quantiser quantiser(b, loc, cast<RankedTensorType>(tile.getType()));
  return storage.isInteger(8) ? quantiser.toInteger(tile)
                              : quantiser.toFloat8(tile, storage);
}
