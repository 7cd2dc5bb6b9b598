//===- Dot.cpp - products -------------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync.m16n8k16 on fragments. Those of the first operand are in registers,
// or are read with ldmatrix like those of the second.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The k of one mma with elements of 16 bits, and the n.
static constexpr int64_t kMmaK = 16, kMmaN = 8;

Value NVVMLowering::matrixOffset(SmemAttr layout, int64_t rowBit,
                                 int64_t chunkBit, int64_t chunk) {
  Value &known = matrixOffsets[{layout, rowBit, chunkBit, chunk}];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.restoreInsertionPoint(entry.saveInsertionPoint());
  // Lane l gives row l % 8 of matrix l / 8.
  Value inMatrix = remainder(lane, 8), matrix = divide(lane, 8);
  auto bit = [&](int64_t which) {
    return remainder(divide(matrix, int64_t(1) << which), 2);
  };
  Value row = add(mul(bit(rowBit), 8), inMatrix);
  Value column = add(bit(chunkBit), chunk);
  if (layout.getSwizzle())
    column = arith::XOrIOp::create(b, loc, column, inMatrix);
  known = add(mul(row, layout.getPitch()), mul(column, kChunkBytes));
  return known;
}

SmallVector<Value> NVVMLowering::loadMatrices(Value buffer, Value laneOffset,
                                              int64_t offset, bool transpose) {
  MLIRContext *context = b.getContext();
  Value at = add(add(buffer, laneOffset), offset);
  Value pointer =
      LLVM::GEPOp::create(b, loc, sharedPointer, b.getI8Type(), sharedBase,
                          ArrayRef<LLVM::GEPArg>{toI64(at)});
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

LogicalResult NVVMLowering::lowerRead(ReadOp op) {
  return op.emitOpError("has no lowering for a GPU yet: products read buffers "
                        "themselves");
}

LogicalResult NVVMLowering::lowerDot(DotOp op) {
  auto second = dyn_cast<BufType>(op.getB().getType());
  ShapedTile a(op.getA().getType()), second_(op.getB().getType());
  Type element = a.element;
  if (!second || (!element.isF16() && !element.isBF16()))
    return op.emitOpError("expected a product of f16 or bf16 whose second "
                          "operand lies in a buffer, but got ")
           << op.getA().getType() << " and " << op.getB().getType();
  RegisterLayout layout = layoutOf(op.getResult());
  FragAttr frag = layout.getFrag();
  int64_t repRows = frag.getRepRows(), repColumns = frag.getRepColumns();
  int64_t steps = llvm::divideCeil(a.columns, kMmaK);
  Value buffer = map.lookup(op.getB());
  SmemAttr smem = second.getLayout();

  // Accumulators, four registers each.
  SmallVector<std::array<Value, 4>> sums(repRows * repColumns);
  Value acc = op.getAcc() ? map.lookup(op.getAcc()) : Value();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  for (auto [number, sum] : llvm::enumerate(sums))
    for (int64_t i = 0; i < 4; ++i)
      sum[i] = acc ? extract(acc, 4 * number + i) : zero;

  Type pair = VectorType::get({2}, element);
  auto operandWord = [&](Value word) -> Value {
    // PTX has registers of two elements; NVVM types them for f16 only.
    return element.isF16()
               ? LLVM::BitcastOp::create(b, loc, pair, word).getResult()
               : word;
  };
  auto aWords = [&](int64_t block, int64_t step) {
    SmallVector<Value> words;
    if (auto inBuffer = dyn_cast<BufType>(op.getA().getType())) {
      // Matrices: rows 0-7, rows 8-15, then both for the next 8 columns.
      SmemAttr aSmem = inBuffer.getLayout();
      Value offset =
          matrixOffset(aSmem, /*rowBit=*/0, /*chunkBit=*/1, 2 * step);
      Value base = add(map.lookup(op.getA()),
                       mul(warp, repRows * 16 * aSmem.getPitch()));
      for (Value word :
           loadMatrices(base, offset, block * 16 * aSmem.getPitch(),
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

  MLIRContext *context = b.getContext();
  auto resultType = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(4, b.getF32Type()));
  NVVM::MMATypes kind =
      element.isF16() ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  for (int64_t step = 0; step < steps; ++step) {
    SmallVector<SmallVector<Value>> firsts;
    for (int64_t block = 0; block < repRows; ++block)
      firsts.push_back(aWords(block, step));
    for (int64_t column = 0; column < repColumns; column += 2) {
      SmallVector<Value> words;
      if (op.getTranspose()) {
        // Rows are columns of the product: matrices of rows 0-7 for two chunks,
        // then rows 8-15.
        Value offset =
            matrixOffset(smem, /*rowBit=*/1, /*chunkBit=*/0, 2 * step);
        words = loadMatrices(buffer, offset, column * kMmaN * smem.getPitch(),
                             /*transpose=*/false);
      } else {
        Value offset = matrixOffset(smem, /*rowBit=*/0, /*chunkBit=*/1, column);
        words = loadMatrices(buffer, offset, step * kMmaK * smem.getPitch(),
                             /*transpose=*/true);
      }
      for (int64_t next = 0; next < 2 && column + next < repColumns; ++next) {
        SmallVector<Value> bWords = {operandWord(words[2 * next]),
                                     operandWord(words[2 * next + 1])};
        for (int64_t block = 0; block < repRows; ++block) {
          auto &sum = sums[block * repColumns + column + next];
          Value result = NVVM::MmaOp::create(
              b, loc, resultType, firsts[block], bWords, ValueRange(sum),
              ArrayRef<int64_t>{16, kMmaN, kMmaK}, std::nullopt, std::nullopt,
              std::array<NVVM::MMATypes, 2>{kind, kind},
              std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                             NVVM::MMALayout::col});
          for (int64_t i = 0; i < 4; ++i)
            sum[i] = LLVM::ExtractValueOp::create(b, loc, result, i);
        }
      }
    }
  }
  SmallVector<Value> registers;
  for (auto &sum : sums)
    registers.append(sum.begin(), sum.end());
  map.map(op.getResult(), fromElements(registers));
  return success();
}
