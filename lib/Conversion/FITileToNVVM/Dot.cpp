//===- Dot.cpp - products -------------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync.m16n8k16 on fragments of f16 or bf16, or m16n8k8 of f16 twice. Those
// of the first operand are in registers, or are read with ldmatrix like those
// of the second.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "fi/Dialect/FI/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The k of one mma with elements of 16 bits and with FP8, which have as many
/// bytes, and the n.
static constexpr int64_t kMmaK = 16, kMmaKOfFP8 = 32, kMmaN = 8;

Value NVVMLowering::matrixOffset(SmemAttr layout, int64_t rowBit,
                                 int64_t chunkBit) {
  Value &known = matrixOffsets[{layout, rowBit, chunkBit}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.restoreInsertionPoint(entry.saveInsertionPoint());
  auto quotient = [&](Value value, int64_t by) -> Value {
    return arith::DivUIOp::create(b, loc, value, i32(by));
  };
  auto rest = [&](Value value, int64_t by) -> Value {
    return arith::RemUIOp::create(b, loc, value, i32(by));
  };
  auto times = [&](Value value, int64_t by) -> Value {
    return arith::MulIOp::create(b, loc, value, i32(by));
  };
  // Lane l gives row l % 8 of matrix l / 8.
  Value inMatrix = rest(lane32, 8), matrix = quotient(lane32, 8);
  auto bit = [&](int64_t which) {
    return rest(quotient(matrix, int64_t(1) << which), 2);
  };
  Value row = arith::AddIOp::create(b, loc, times(bit(rowBit), 8), inMatrix);
  Value column = bit(chunkBit);
  if (layout.getSwizzle())
    column = arith::XOrIOp::create(b, loc, column, inMatrix);
  known = arith::AddIOp::create(b, loc, times(row, layout.getPitch()),
                                times(column, kChunkBytes));
  return known;
}

/// Swizzles change the low bits of a chunk's number within its group of 8, so
/// that a lane's chunk c lies at (c / 8) * 128 bytes from where bits 4 to 6 of
/// its first chunk's offset are xored with c % 8.
NVVMLowering::MatrixRows NVVMLowering::locateChunks(SmemAttr layout,
                                                    Value first) {
  MatrixRows rows = {{}, layout.getSwizzle() != 0};
  for (int64_t chunk = 0; chunk < 8; chunk += 2) {
    if (chunk > 0 && !rows.swizzled)
      break;
    Value at = first;
    if (chunk > 0)
      at = arith::XOrIOp::create(b, loc, first, i32(chunk * kChunkBytes));
    rows.pointers[chunk] = sharedPointerAt(at);
  }
  return rows;
}

NVVMLowering::MatrixRows NVVMLowering::locateMatrices(SmemAttr layout,
                                                      Value buffer,
                                                      int64_t rowBit,
                                                      int64_t chunkBit) {
  return locateChunks(
      layout, arith::AddIOp::create(b, loc, buffer,
                                    matrixOffset(layout, rowBit, chunkBit)));
}

SmallVector<Value> NVVMLowering::loadMatrices(MatrixRows &rows, int64_t chunk,
                                              int64_t offset, bool transpose) {
  if (rows.swizzled)
    return loadMatrices(rows.pointers[chunk % 8],
                        offset + chunk / 8 * 8 * kChunkBytes, transpose);
  return loadMatrices(rows.pointers[0], offset + chunk * kChunkBytes,
                      transpose);
}

SmallVector<Value> NVVMLowering::loadMatrices(Value pointer, int64_t offset,
                                              bool transpose) {
  MLIRContext *context = b.getContext();
  if (offset)
    pointer = LLVM::GEPOp::create(
        b, loc, sharedPointer, b.getI8Type(), pointer,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
  Type word = b.getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(context, SmallVector<Type>(4, word));
  Value loaded = NVVM::LdMatrixOp::create(
      b, loc, type, pointer, b.getI32IntegerAttr(4),
      NVVM::MMALayoutAttr::get(context, transpose ? NVVM::MMALayout::col
                                                  : NVVM::MMALayout::row),
      NVVM::LdStMatrixShapeAttr::get(context, 8, 8),
      NVVM::LdStMatrixEltTypeAttr::get(context, NVVM::LdStMatrixEltType::B16));
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loc, loaded, i));
  return words;
}

NVVMLowering::Sums NVVMLowering::takeSums(DotOp op) {
  FragAttr frag = layoutOf(op.getResult()).getFrag();
  // Accumulators of even and of odd columns come by pairs.
  bool isSplit = frag.getAtom() == Atom::MmaC8;
  Sums sums(frag.getRepRows() * frag.getRepColumns() * (isSplit ? 2 : 1));
  Value acc = op.getAcc() ? map.lookup(op.getAcc()) : Value();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  for (auto [number, sum] : llvm::enumerate(sums))
    for (int64_t i = 0; i < 4; ++i) {
      int64_t reg = 4 * number + i;
      if (isSplit)
        reg = 8 * (number / 2) + 4 * (i / 2) + 2 * (i % 2) + number % 2;
      sum[i] = acc ? extract(acc, reg) : zero;
    }
  return sums;
}

void NVVMLowering::giveSums(DotOp op, const Sums &sums) {
  SmallVector<Value> registers;
  bool isSplit = layoutOf(op.getResult()).getFrag().getAtom() == Atom::MmaC8;
  for (size_t i = 0; i < sums.size(); i += isSplit ? 2 : 1) {
    if (!isSplit) {
      registers.append(sums[i].begin(), sums[i].end());
      continue;
    }
    for (int64_t half : {0, 2})
      for (int64_t j : {0, 1})
        llvm::append_values(registers, sums[i][half + j],
                            sums[i + 1][half + j]);
  }
  map.map(op.getResult(), fromElements(registers));
}

/// Matrices: rows 0-7, rows 8-15, then both for the next 8 columns.
NVVMLowering::MatrixRows NVVMLowering::locateFirst(DotOp op, BufType type) {
  int64_t repRows = layoutOf(op.getResult()).getFrag().getRepRows();
  SmemAttr layout = type.getLayout();
  Value first = arith::AddIOp::create(
      b, loc, map.lookup(op.getA()),
      arith::MulIOp::create(b, loc, warp32,
                            i32(repRows * 16 * layout.getPitch())));
  return locateMatrices(layout, first, /*rowBit=*/0, /*chunkBit=*/1);
}

/// Transposed, rows are columns of the product: matrices of rows 0-7 for two
/// chunks, then rows 8-15.
NVVMLowering::MatrixRows NVVMLowering::locateSecond(DotOp op, BufType type) {
  bool transpose = op.getTranspose();
  return locateMatrices(type.getLayout(), map.lookup(op.getB()),
                        /*rowBit=*/transpose ? 1 : 0,
                        /*chunkBit=*/transpose ? 0 : 1);
}

/// One instruction; where its k is 8, which takes the first half of the
/// registers of each operand, and then the second, two.
void NVVMLowering::multiplyHalves(Type element, ArrayRef<Value> x,
                                  ArrayRef<Value> y,
                                  std::array<Value, 4> &sum) {
  auto resultType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  NVVM::MMATypes kind =
      element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  size_t parts = has(sm::MmaF16K16) ? 1 : 2;
  for (size_t part = 0; part < parts; ++part) {
    auto half = [&](ArrayRef<Value> words) {
      return words.slice(part * words.size() / parts, words.size() / parts);
    };
    Value result = NVVM::MmaOp::create(
        b, loc, resultType, half(x), half(y), ValueRange(sum),
        ArrayRef<int64_t>{16, kMmaN, kMmaK / static_cast<int64_t>(parts)},
        std::nullopt, std::nullopt, std::array<NVVM::MMATypes, 2>{kind, kind},
        std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                       NVVM::MMALayout::col});
    for (int64_t i = 0; i < 4; ++i)
      sum[i] = LLVM::ExtractValueOp::create(b, loc, result, i);
  }
}

/// One instruction on words of four numbers each.
void NVVMLowering::multiplyFP8(Type first, Type second, ArrayRef<Value> x,
                               ArrayRef<Value> y, std::array<Value, 4> &sum) {
  auto resultType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  auto spell = [](Type element) {
    return isa<Float8E4M3FNType>(element) ? "e4m3" : "e5m2";
  };
  std::string name = std::string("llvm.nvvm.mma.m16n8k32.row.col.f32.") +
                     spell(first) + "." + spell(second) + ".f32";
  SmallVector<Value> operands(x);
  llvm::append_range(operands, y);
  llvm::append_range(operands, sum);
  Value result = LLVM::CallIntrinsicOp::create(b, loc, resultType,
                                               b.getStringAttr(name), operands)
                     .getResults();
  for (int64_t i = 0; i < 4; ++i)
    sum[i] = LLVM::ExtractValueOp::create(b, loc, result, i);
}

/// Both operands lie in buffers as they lie in memory. What a lane has of a
/// fragment are four bytes at the same places as two numbers of 16 bits.
LogicalResult NVVMLowering::lowerDotFP8(DotOp op) {
  auto first = cast<BufType>(op.getA().getType());
  auto second = cast<BufType>(op.getB().getType());
  FragAttr frag = layoutOf(op.getResult()).getFrag();
  if (!has(sm::MmaFP8) || first.getColumns() % kMmaKOfFP8 != 0)
    return op.emitOpError("expected a target with mma.sync of FP8 and a "
                          "multiple of 32 columns for a product of ")
           << first.getElement() << " and " << second.getElement()
           << ", but got " << chip.name.str() << " and " << first.getColumns()
           << "; convert the first operand to f16";
  int64_t repRows = frag.getRepRows(), repColumns = frag.getRepColumns();
  int64_t pitch = first.getLayout().getPitch();
  Sums sums = takeSums(op);
  MatrixRows aRows = locateFirst(op, first), bRows = locateSecond(op, second);
  for (int64_t step = 0; step < first.getColumns() / kMmaKOfFP8; ++step) {
    SmallVector<SmallVector<Value>> firsts;
    for (int64_t block = 0; block < repRows; ++block)
      firsts.push_back(loadMatrices(aRows, 2 * step, block * 16 * pitch,
                                    /*transpose=*/false));
    for (int64_t column = 0; column < repColumns; column += 2) {
      SmallVector<Value> words = loadMatrices(
          bRows, 2 * step, column * kMmaN * second.getLayout().getPitch(),
          /*transpose=*/false);
      for (int64_t next = 0; next < 2 && column + next < repColumns; ++next)
        for (int64_t block = 0; block < repRows; ++block)
          multiplyFP8(first.getElement(), second.getElement(), firsts[block],
                      ArrayRef<Value>(words).slice(2 * next, 2),
                      sums[block * repColumns + column + next]);
    }
  }
  giveSums(op, sums);
  return success();
}

LogicalResult NVVMLowering::lowerDot(DotOp op) {
  auto second = dyn_cast<BufType>(op.getB().getType());
  ShapedTile a(op.getA().getType()), second_(op.getB().getType());
  Type element = a.element;
  auto isMultiplied = [](Type element) {
    return element.isF16() || element.isBF16() || element.isF32();
  };
  bool ofCodes = isa<BufType>(op.getA().getType()) && isFP8(element) &&
                 isFP8(second_.element);
  if (!second || (!isMultiplied(element) && !ofCodes) ||
      (!isMultiplied(second_.element) && !isCode(second_.element)))
    return op.emitOpError("expected a product of f16, bf16 or f32 whose second "
                          "operand lies in a buffer, but got ")
           << op.getA().getType() << " and " << op.getB().getType();
  RegisterLayout layout = layoutOf(op.getResult());
  if (isCode(second_.element) && !element.isF32() && !ofCodes)
    return lowerDotCodes(op);
  if (layout.getFrag().getAtom() != Atom::MmaC || !layout.overRows() ||
      layout.getFrag().getWarps() != warps)
    return op.emitOpError("expected a product whose rows all ")
           << warps << " warps share, in accumulators, but got "
           << op.getType();
  if (ofCodes)
    return lowerDotFP8(op);
  if (element.isF32() || element != second_.element ||
      (element.isBF16() && !has(sm::MmaBF16)))
    return lowerDotF32(op);
  FragAttr frag = layout.getFrag();
  int64_t repRows = frag.getRepRows(), repColumns = frag.getRepColumns();
  int64_t steps = llvm::divideCeil(a.columns, kMmaK);
  SmemAttr smem = second.getLayout();
  Sums sums = takeSums(op);
  Type pair = VectorType::get({2}, element);
  auto operandWord = [&](Value word) -> Value {
    // PTX has registers of two elements; NVVM types them for f16 only.
    return element.isF16()
               ? LLVM::BitcastOp::create(b, loc, pair, word).getResult()
               : word;
  };
  MatrixRows aRows;
  if (auto inBuffer = dyn_cast<BufType>(op.getA().getType()))
    aRows = locateFirst(op, inBuffer);
  bool transpose = op.getTranspose();
  MatrixRows bRows = locateSecond(op, second);
  auto aWords = [&](int64_t block, int64_t step) {
    SmallVector<Value> words;
    if (auto inBuffer = dyn_cast<BufType>(op.getA().getType())) {
      for (Value word : loadMatrices(
               aRows, 2 * step, block * 16 * inBuffer.getLayout().getPitch(),
               /*transpose=*/false))
        words.push_back(operandWord(word));
      return words;
    }
    Value registers = map.lookup(op.getA());
    int64_t first = (block * steps + step) * 8;
    for (int64_t i = 0; i < 4; ++i) {
      Value two = shuffle(registers, {first + 2 * i, first + 2 * i + 1});
      if (!element.isF16())
        two = LLVM::BitcastOp::create(b, loc, b.getI32Type(), two);
      words.push_back(two);
    }
    return words;
  };

  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<SmallVector<Value>> firsts;
    for (int64_t block = 0; block < repRows; ++block)
      firsts.push_back(aWords(block, step));
    for (int64_t column = 0; column < repColumns; column += 2) {
      SmallVector<Value> words =
          transpose
              ? loadMatrices(bRows, 2 * step, column * kMmaN * smem.getPitch(),
                             /*transpose=*/false)
              : loadMatrices(bRows, column, step * kMmaK * smem.getPitch(),
                             /*transpose=*/true);
      for (int64_t next = 0; next < 2 && column + next < repColumns; ++next) {
        SmallVector<Value> bWords = {operandWord(words[2 * next]),
                                     operandWord(words[2 * next + 1])};
        for (int64_t block = 0; block < repRows; ++block) {
          auto &sum = sums[block * repColumns + column + next];
          multiplyHalves(element, firsts[block], bWords, sum);
        }
      }
    }
  }
  giveSums(op, sums);
  return success();
}
