//===- DotCodes.cpp - products with codes of eight bits -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync.m16n8k16 of f16 or bf16 whose second operand lies in shared memory
// as bytes: ldmatrix reads words of four codes, which become numbers in
// registers, so that memory of every kind holds bytes only.
//
// Of keys, which are read as they lie, lane t of a quad gets columns 4t to 4t +
// 3 of 16. A product sums over columns in any order, as long as both operands
// have the same: the instruction is given 4t and 4t + 2 as its first pair, 4t +
// 1 and 4t + 3 as its second, and the first operand is read so.
//
// Of values ldmatrix transposes pairs of bytes: a lane gets two columns of each
// of its keys. These are columns of two accumulators, the even and the odd ones
// of 16, which is the layout mma_c8.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The k of one mma with elements of 16 bits, and the n; bytes of 16 columns.
static constexpr int64_t kMmaK = 16, kMmaN = 8;

/// Both halves of a word times a power of two, exactly, also of numbers that
/// are not normal. As text: LLVM flushes products of f16 where those of f32
/// are, and makes those of bf16 in f32, also of `llvm.fma` with nothing to add.
/// Of two bf16 there is a product from sm_90 on, and a fused one before.
Value NVVMLowering::multiply16(Value word, Type element, double factor) {
  uint64_t bits = b.getFloatAttr(element, factor)
                      .getValue()
                      .bitcastToAPInt()
                      .getZExtValue();
  SmallVector<Value> operands = {word,
                                 i32(static_cast<int32_t>(bits << 16 | bits))};
  bool isFused = element.isBF16();
  if (isFused)
    operands.push_back(i32(static_cast<int32_t>(0x80008000))); // -0.0
  return assembly(b.getI32Type(),
                  isFused ? "fma.rn.bf16x2 $0, $1, $2, $3;"
                          : "mul.f16x2 $0, $1, $2;",
                  isFused ? "=r,r,r,r" : "=r,r,r", operands);
}

std::pair<Value, Value> NVVMLowering::splitCodes(Value word, Type code,
                                                 Type element) {
  auto mask = [&](Value value, uint32_t bits) -> Value {
    return arith::AndIOp::create(b, loc, value,
                                 i32(static_cast<int32_t>(bits)));
  };
  auto either = [&](Value x, Value y) -> Value {
    return arith::OrIOp::create(b, loc, x, y);
  };
  auto up = [&](Value value, int64_t by) -> Value {
    return by ? arith::ShLIOp::create(b, loc, value, i32(by)).getResult()
              : value;
  };
  auto down = [&](Value value, int64_t by) -> Value {
    return by ? arith::ShRUIOp::create(b, loc, value, i32(by)).getResult()
              : value;
  };
  bool isHalf = element.isF16();
  if (code.isInteger(8)) {
    // A byte below the exponent of 2^10 (f16), where the sign bit counts as 2^7
    // and not as -2^7; or, of bf16, 7 bits below that of 2^7, and what the sign
    // bit makes of the number to subtract: 2^7 or 2^8.
    auto pair = VectorType::get({2}, element);
    auto asPair = [&](Value bits) -> Value {
      return LLVM::BitcastOp::create(b, loc, pair, bits);
    };
    auto toWord = [&](Value numbers) -> Value {
      return LLVM::BitcastOp::create(b, loc, b.getI32Type(), numbers);
    };
    auto splat = [&](double value) -> Value {
      return arith::ConstantOp::create(
          b, loc, DenseElementsAttr::get(pair, b.getFloatAttr(element, value)));
    };
    auto convert = [&](Value bytes) -> Value {
      if (isHalf) {
        Value flipped = arith::XOrIOp::create(b, loc, bytes, i32(0x00800080));
        return toWord(arith::SubFOp::create(
            b, loc, asPair(either(flipped, i32(0x64006400))), splat(1152)));
      }
      Value magnitude =
          asPair(either(mask(bytes, 0x007f007f), i32(0x43004300)));
      Value offset = asPair(either(mask(bytes, 0x00800080), i32(0x43004300)));
      return toWord(
          LLVM::FMAOp::create(b, loc, pair, offset, splat(-1), magnitude));
    };
    return {convert(mask(word, 0x00ff00ff)),
            convert(mask(down(word, 8), 0x00ff00ff))};
  }
  bool hasMantissaOfTwo = isa<Float8E5M2Type>(code);
  if (isHalf && hasMantissaOfTwo)
    return {mask(up(word, 8), 0xff00ff00), mask(word, 0xff00ff00)};
  if (isHalf && has(sm::CvtFP8)) {
    auto pair = VectorType::get({2}, element);
    auto convert = [&](Value two) -> Value {
      Value narrow = arith::TruncIOp::create(b, loc, b.getI16Type(), two);
      Value numbers =
          LLVM::CallIntrinsicOp::create(
              b, loc, pair, b.getStringAttr("llvm.nvvm.e4m3x2.to.f16x2.rn"),
              narrow)
              .getResults();
      return LLVM::BitcastOp::create(b, loc, b.getI32Type(), numbers);
    };
    Value low = convert(word), high = convert(down(word, 16));
    // The halves of both words: 0 and 2, 1 and 3.
    return {either(mask(low, 0x0000ffff), up(high, 16)),
            either(down(low, 16), mask(high, 0xffff0000))};
  }
  // A sign, and 7 bits of exponent and mantissa in the place of the last bits
  // of the exponent and the first ones of the mantissa of the wider type; what
  // the exponents are too small by is a factor, also of numbers that are not
  // normal.
  int64_t mantissa = hasMantissaOfTwo ? 2 : 3;
  int64_t bias = hasMantissaOfTwo ? 15 : 7;
  int64_t place = (isHalf ? 10 : 7) - mantissa;
  double factor = std::ldexp(1.0, static_cast<int>((isHalf ? 15 : 127) - bias));
  uint32_t rest = 0x7fu << place;
  rest |= rest << 16;
  auto convert = [&](Value signs, Value numbers) {
    return multiply16(either(mask(signs, 0x80008000), mask(numbers, rest)),
                      element, factor);
  };
  return {convert(up(word, 8), up(word, place)),
          convert(word, down(word, 8 - place))};
}

/// Lane t of a quad reads columns 4t to 4t + 3 of 16, of f16 or bf16, of row
/// `quad` of its warp's.
NVVMLowering::MatrixRows NVVMLowering::locatePairs(DotOp op, BufType type) {
  SmemAttr layout = type.getLayout();
  int64_t repRows = layoutOf(op.getResult()).getFrag().getRepRows();
  Value offset;
  {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    auto times = [&](Value value, int64_t by) -> Value {
      return arith::MulIOp::create(b, loc, value, i32(by));
    };
    Value quad = arith::DivUIOp::create(b, loc, lane32, i32(kQuad));
    Value inQuad = arith::RemUIOp::create(b, loc, lane32, i32(kQuad));
    Value chunk = arith::DivUIOp::create(b, loc, inQuad, i32(2));
    Value inChunk = arith::RemUIOp::create(b, loc, inQuad, i32(2));
    if (layout.getSwizzle())
      chunk = arith::XOrIOp::create(b, loc, chunk, quad);
    offset = arith::AddIOp::create(b, loc, times(chunk, kChunkBytes),
                                   times(inChunk, kChunkBytes / 2));
    offset =
        arith::AddIOp::create(b, loc, offset, times(quad, layout.getPitch()));
    offset = arith::AddIOp::create(
        b, loc, offset, times(warp32, repRows * 16 * layout.getPitch()));
  }
  Value first = arith::AddIOp::create(b, loc, map.lookup(op.getA()), offset);
  return locateChunks(layout, first);
}

/// Columns 4t and 4t + 2, and 4t + 1 and 4t + 3.
std::pair<Value, Value> NVVMLowering::loadPairs(MatrixRows &rows, int64_t chunk,
                                                int64_t offset) {
  Value pointer = rows.pointers[rows.swizzled ? chunk % 8 : 0];
  offset += (rows.swizzled ? chunk / 8 * 8 : chunk) * kChunkBytes;
  if (offset)
    pointer = LLVM::GEPOp::create(
        b, loc, sharedPointer, b.getI8Type(), pointer,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  Value words = LLVM::LoadOp::create(
      b, loc, VectorType::get({2}, b.getI32Type()), pointer, /*alignment=*/8);
  Value low = extract(words, 0), high = extract(words, 1);
  auto permute = [&](int64_t selector) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(),
                                         b.getStringAttr("llvm.nvvm.prmt"),
                                         ValueRange{low, high, i32(selector)})
        .getResults();
  };
  return {permute(0x5410), permute(0x7632)};
}

LogicalResult NVVMLowering::lowerDotCodes(DotOp op) {
  auto aBuffer = dyn_cast<BufType>(op.getA().getType());
  auto bBuffer = cast<BufType>(op.getB().getType());
  ShapedTile a(op.getA().getType());
  Type element = a.element, code = bBuffer.getElement();
  bool transpose = op.getTranspose();
  FragAttr frag = layoutOf(op.getResult()).getFrag();
  int64_t repRows = frag.getRepRows();
  Atom wanted = transpose ? Atom::MmaC : Atom::MmaC8;
  int64_t dim = transpose ? a.columns : bBuffer.getColumns();
  if (element.isBF16() && !has(sm::MmaBF16))
    return op.emitOpError(
               "expected a target with mma.sync of bf16 for products "
               "of bf16 and codes, but got ")
           << chip.name.str() << "; widen both operands to f32";
  if (static_cast<bool>(aBuffer) != transpose || dim % 16 != 0 ||
      frag.getAtom() != wanted)
    return op.emitOpError(
               "expected rows in a buffer times transposed codes, or "
               "rows in registers times codes with accumulators of ")
           << "even and of odd columns, both of a multiple of 16 dims, but got "
           << op.getA().getType() << " and " << op.getB().getType();
  SmemAttr smem = bBuffer.getLayout();
  MatrixRows aRows;
  if (aBuffer)
    aRows = locatePairs(op, aBuffer);
  MatrixRows bRows = locateSecond(op, bBuffer);
  Type pair = VectorType::get({2}, element);
  auto operandWord = [&](Value word) -> Value {
    return element.isF16()
               ? LLVM::BitcastOp::create(b, loc, pair, word).getResult()
               : word;
  };
  auto multiply = [&](ArrayRef<Value> x, ArrayRef<Value> y,
                      std::array<Value, 4> &sum) {
    multiplyHalves(element, x, y, sum);
  };

  Sums sums = takeSums(op);
  int64_t steps = llvm::divideCeil(a.columns, kMmaK);
  if (transpose) {
    int64_t repColumns = frag.getRepColumns();
    int64_t pitch = aBuffer.getLayout().getPitch();
    // Matrices of 8 keys for two chunks of 16 columns, then of the next 8 keys.
    for (int64_t step = 0; step < steps; step += 2) {
      SmallVector<SmallVector<Value>> firsts[2];
      for (int64_t next = 0; next < 2 && step + next < steps; ++next)
        for (int64_t block = 0; block < repRows; ++block) {
          auto [upper, upperOdd] =
              loadPairs(aRows, 2 * (step + next), block * 16 * pitch);
          auto [lower, lowerOdd] =
              loadPairs(aRows, 2 * (step + next), (block * 16 + 8) * pitch);
          firsts[next].push_back({operandWord(upper), operandWord(lower),
                                  operandWord(upperOdd),
                                  operandWord(lowerOdd)});
        }
      for (int64_t column = 0; column < repColumns; column += 2) {
        SmallVector<Value> words =
            loadMatrices(bRows, step, column * kMmaN * smem.getPitch(),
                         /*transpose=*/false);
        for (int64_t next = 0; next < 2 && column + next < repColumns; ++next)
          for (int64_t half = 0; half < 2 && step + half < steps; ++half) {
            auto [even, odd] =
                splitCodes(words[2 * next + half], code, element);
            Value second[] = {operandWord(even), operandWord(odd)};
            for (int64_t block = 0; block < repRows; ++block)
              multiply(firsts[half][block], second,
                       sums[block * repColumns + column + next]);
          }
      }
    }
    giveSums(op, sums);
    return success();
  }
  // Accumulators by pairs: of even and of odd columns of 16.
  int64_t blocks = frag.getRepColumns();
  Value registers = map.lookup(op.getA());
  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<SmallVector<Value>> firsts;
    for (int64_t block = 0; block < repRows; ++block) {
      SmallVector<Value> &words = firsts.emplace_back();
      int64_t first = (block * steps + step) * 8;
      for (int64_t i = 0; i < 4; ++i) {
        Value two = shuffle(registers, {first + 2 * i, first + 2 * i + 1});
        if (!element.isF16())
          two = LLVM::BitcastOp::create(b, loc, b.getI32Type(), two);
        words.push_back(two);
      }
    }
    for (int64_t chunk = 0; chunk < blocks; chunk += 2) {
      SmallVector<Value> words =
          loadMatrices(bRows, chunk, step * kMmaK * smem.getPitch(),
                       /*transpose=*/true);
      for (int64_t next = 0; next < 2 && chunk + next < blocks; ++next) {
        auto [evenLow, oddLow] = splitCodes(words[2 * next], code, element);
        auto [evenHigh, oddHigh] =
            splitCodes(words[2 * next + 1], code, element);
        Value even[] = {operandWord(evenLow), operandWord(evenHigh)};
        Value odd[] = {operandWord(oddLow), operandWord(oddHigh)};
        for (int64_t block = 0; block < repRows; ++block) {
          int64_t at = 2 * (block * blocks + chunk + next);
          multiply(firsts[block], even, sums[at]);
          multiply(firsts[block], odd, sums[at + 1]);
        }
      }
    }
  }
  giveSums(op, sums);
  return success();
}

/// From lanes that hold columns 4t to 4t + 3 of 16 to those that hold 2t, 2t +
/// 1, 2t + 8 and 2t + 9: of lane t / 2 the first two or the last two, and so of
/// lane t / 2 + 2.
LogicalResult NVVMLowering::exchangeColumns(RelayoutOp op) {
  FragAttr from = layoutOf(op.getSource()).getFrag();
  FragAttr to = layoutOf(op.getResult()).getFrag();
  if (from.getWarps() != to.getWarps() || from.getRepRows() != to.getRepRows())
    return op.emitOpError(
               "expected layouts of the same rows and warps, but got ")
           << op.getSource().getType() << " and " << op.getType();
  Value isOdd, sources[2];
  {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    Value inQuad = arith::RemUIOp::create(b, loc, lane32, i32(kQuad));
    Value first = arith::SubIOp::create(b, loc, lane32, inQuad);
    Value half = arith::DivUIOp::create(b, loc, inQuad, i32(2));
    sources[0] = arith::AddIOp::create(b, loc, first, half);
    sources[1] = add32(sources[0], 2);
    isOdd = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne,
        arith::RemUIOp::create(b, loc, inQuad, i32(2)), i32(0));
  }
  Value registers = map.lookup(op.getSource());
  auto fetch = [&](Value value, Value lane) -> Value {
    Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), value);
    return arith::BitcastOp::create(b, loc, b.getF32Type(),
                                    fromLane(bits, lane));
  };
  int64_t blocks = from.getRepRows() * from.getRepColumns();
  // Registers of a block: accumulators of columns 0 to 7 and of 8 to 15.
  SmallVector<Value> result(8 * blocks);
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t part = 0; part < 2; ++part)
        for (int64_t i = 0; i < 2; ++i) {
          Value low = extract(registers, 8 * block + 4 * half + i);
          Value high = extract(registers, 8 * block + 4 * half + 2 + i);
          result[8 * block + 4 * part + 2 * half + i] =
              arith::SelectOp::create(b, loc, isOdd, fetch(high, sources[part]),
                                      fetch(low, sources[part]));
        }
  map.map(op.getResult(), fromElements(result));
  return success();
}
