//===- RowMasks.cpp - masks as ranges of columns and bits -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A mask compares positions, and a position grows by one from column to column:
// what a row sees is a range of columns, of which a lane computes the ends,
// once a row. Several masks that must all allow a key are the common part of
// their ranges. Bits of a packed mask are words, moved so that the lane's first
// column is bit 0. An element then costs one comparison with a constant, or one
// test of a bit.
//
//===----------------------------------------------------------------------===//

#include "Columns.h"
#include "NVVMLowering.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Bits of a word of a mask.
static constexpr int64_t kWord = 32;
/// Beyond every column of a tile, on both sides.
static constexpr int64_t kFar = int64_t(1) << 24;

static bool hasRows(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile || !isTile(type))
    return false;
  FailureOr<RegisterLayout> layout = RegisterLayout::of(tile);
  return succeeded(layout) && layout->overColumns() && !layout->isPartial();
}

static int64_t firstColumn(const RegisterLayout &layout,
                           ArrayRef<int64_t> registers) {
  return layout.getRegisterPart(registers.front()).column;
}

/// Columns from the first to the last one of a row.
static int64_t columnsOf(const RegisterLayout &layout,
                         ArrayRef<int64_t> registers) {
  return layout.getRegisterPart(registers.back()).column -
         firstColumn(layout, registers) + 1;
}

Value NVVMLowering::least(Value a, Value b) {
  return arith::MinSIOp::create(this->b, loc, a, b);
}
Value NVVMLowering::greatest(Value a, Value b) {
  return arith::MaxSIOp::create(this->b, loc, a, b);
}

bool NVVMLowering::lowerComparison(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  if (!hasRows(op.getType()))
    return false;
  P predicate = op.getPredicate();
  std::optional<int64_t> left = columnStep(op.getLhs());
  std::optional<int64_t> right = columnStep(op.getRhs());
  if (!left || !right || std::abs(*left - *right) != 1 ||
      !llvm::is_contained({P::slt, P::sle, P::sgt, P::sge, P::eq}, predicate))
    return false;
  // a - b is `distance` in the first column and grows by one, or falls: then b
  // - a grows, from the opposite of it.
  bool grows = *left - *right == 1;
  if (!grows && predicate != P::eq)
    predicate = predicate == P::slt   ? P::sgt
                : predicate == P::sle ? P::sge
                : predicate == P::sgt ? P::slt
                                      : P::sle;
  Value a = map.lookup(grows ? op.getLhs() : op.getRhs());
  Value c = map.lookup(grows ? op.getRhs() : op.getLhs());
  auto wide = [&](Value value) -> Value {
    if (value.getType().isIndex())
      return toI64(value);
    if (value.getType().getIntOrFloatBitWidth() < 64)
      return arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
    return value;
  };
  auto far = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  RegisterLayout layout = layoutOf(op.getResult());
  RowMasks masks;
  for (ArrayRef<int64_t> registers : registersByRow(layout)) {
    // The column where both are equal, or a column far away on its side.
    Value equal =
        LLVM::SSubSat::create(b, loc, wide(extract(c, registers.front())),
                              wide(extract(a, registers.front())));
    equal = greatest(least(equal, far(kFar)), far(-kFar));
    equal = arith::TruncIOp::create(b, loc, b.getI32Type(), equal);
    // LLVM would compare the 64 bits that it comes from, for every element.
    equal = assembly(b.getI32Type(), "mov.b32 $0, $1;", "=r,r", equal);
    RowMask mask;
    if (predicate == P::sle || predicate == P::eq)
      mask.most = equal;
    if (predicate == P::sge || predicate == P::eq)
      mask.least = equal;
    if (predicate == P::slt)
      mask.most = add32(equal, -1);
    if (predicate == P::sgt)
      mask.least = add32(equal, 1);
    masks.push_back(std::move(mask));
  }
  rowMasks[op.getResult()] = std::move(masks);
  return true;
}

bool NVVMLowering::lowerConjunction(arith::AndIOp op) {
  auto left = rowMasks.find(op.getLhs()), right = rowMasks.find(op.getRhs());
  if (left == rowMasks.end() || right == rowMasks.end())
    return false;
  RowMasks masks;
  for (auto [a, c] : llvm::zip_equal(left->second, right->second)) {
    RowMask both;
    both.most = a.most && c.most ? least(a.most, c.most)
                : a.most         ? a.most
                                 : c.most;
    both.least = a.least && c.least ? greatest(a.least, c.least)
                 : a.least          ? a.least
                                    : c.least;
    both.words = a.words.empty() ? c.words : a.words;
    if (!a.words.empty() && !c.words.empty())
      for (auto [word, other] : llvm::zip_equal(both.words, c.words))
        word = arith::AndIOp::create(b, loc, word, other);
    masks.push_back(std::move(both));
  }
  rowMasks[op.getResult()] = std::move(masks);
  return true;
}

/// From a row to all rows.
bool NVVMLowering::broadcastMasks(BroadcastOp op) {
  auto source = rowMasks.find(op.getSource());
  if (source == rowMasks.end() || !hasRows(op.getType()))
    return false;
  RegisterLayout from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  auto columns = [](const RegisterLayout &layout, ArrayRef<int64_t> registers) {
    return llvm::map_to_vector(registers, [&](int64_t reg) {
      return layout.getRegisterPart(reg).column;
    });
  };
  SmallVector<SmallVector<int64_t>> row = registersByRow(from);
  SmallVector<SmallVector<int64_t>> rows = registersByRow(to);
  if (row.size() != 1)
    return false;
  for (ArrayRef<int64_t> registers : rows)
    if (columns(to, registers) != columns(from, row.front()))
      return false;
  RowMask mask = source->second.front();
  rowMasks[op.getResult()] = RowMasks(rows.size(), mask);
  return true;
}

/// The words of a row's bits, from the lane's first column on.
bool NVVMLowering::gatherRowBits(GatherOp op) {
  const Argument &source = argumentOf(op.getSource());
  Value index = op.getIndices()[0];
  if (!source.element.isInteger(kWord) || !hasRows(op.getType()) ||
      columnStep(index) != 1)
    return false;
  Value places = map.lookup(index);
  RegisterLayout layout = layoutOf(op.getResult());
  RowMasks masks;
  for (ArrayRef<int64_t> registers : registersByRow(layout)) {
    int64_t count = llvm::divideCeil(columnsOf(layout, registers), kWord);
    Value place = extract(places, registers.front());
    // Rounded down: places before the first word are out of range as well.
    Value first = arith::ShRSIOp::create(b, loc, place,
                                         this->index(llvm::Log2_64(kWord)));
    Value shift =
        toI32(arith::AndIOp::create(b, loc, place, this->index(kWord - 1)));
    SmallVector<Value> words;
    for (int64_t i = 0; i <= count; ++i)
      words.push_back(gatherElement(source, add(first, i)));
    RowMask &mask = masks.emplace_back();
    for (int64_t i = 0; i < count; ++i)
      mask.words.push_back(
          LLVM::FshrOp::create(b, loc, words[i + 1], words[i], shift));
  }
  rowMasks[op.getResult()] = std::move(masks);
  return true;
}

LogicalResult NVVMLowering::lowerGatherBits(GatherOp op) {
  if (gatherRowBits(op))
    return success();
  const Argument &source = argumentOf(op.getSource());
  int64_t width = source.element.getIntOrFloatBitWidth();
  auto bitOf = [&](Value place) -> Value {
    Value word = gatherElement(
        source,
        arith::ShRSIOp::create(b, loc, place, index(llvm::Log2_64(width)))
            .getResult());
    Value bit = arith::AndIOp::create(b, loc, place, index(width - 1));
    bit = arith::IndexCastOp::create(b, loc, source.element, bit);
    return arith::TruncIOp::create(b, loc, b.getI1Type(),
                                   arith::ShRUIOp::create(b, loc, word, bit));
  };
  Value places = scalar(op.getIndices()[0]);
  if (!isTile(op.getResult().getType())) {
    map.map(op.getResult(), bitOf(places));
    return success();
  }
  SmallVector<Value> bits;
  for (int64_t reg = 0; reg < layoutOf(op.getResult()).getRegisters(); ++reg)
    bits.push_back(bitOf(
        isa<VectorType>(places.getType()) ? extract(places, reg) : places));
  map.map(op.getResult(), fromElements(bits));
  return success();
}

/// The word of columns 32 `number` and on, with the ends of the range in it.
Value NVVMLowering::wordOf(const RowMask &mask, int64_t number) {
  Value word = mask.words[number];
  // The lowest `count` bits, of none to all.
  auto lowest = [&](Value count) -> Value {
    count = greatest(least(count, i32(kWord)), i32(0));
    Value wide = arith::ShLIOp::create(
        b, loc, arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1)),
        arith::ExtUIOp::create(b, loc, b.getI64Type(), count));
    return arith::TruncIOp::create(
        b, loc, b.getI32Type(),
        arith::SubIOp::create(
            b, loc, wide,
            arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(1))));
  };
  if (mask.most)
    word = arith::AndIOp::create(b, loc, word,
                                 lowest(add32(mask.most, 1 - kWord * number)));
  if (mask.least)
    word = arith::AndIOp::create(
        b, loc, word,
        arith::XOrIOp::create(
            b, loc, lowest(add32(mask.least, -kWord * number)), i32(-1)));
  return word;
}

Value NVVMLowering::elementsOf(const RowMasks &masks,
                               const RegisterLayout &layout) {
  SmallVector<Value> elements(layout.getRegisters());
  Type i1 = b.getI1Type();
  for (auto [mask, registers] :
       llvm::zip_equal(masks, registersByRow(layout))) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < static_cast<int64_t>(mask.words.size()); ++i)
      words.push_back(wordOf(mask, i));
    for (int64_t reg : registers) {
      int64_t column =
          layout.getRegisterPart(reg).column - firstColumn(layout, registers);
      // As text, for two instructions an element with the selection: LLVM would
      // shift bits down and select once for each end of a range.
      if (!words.empty()) {
        Value bit = i32(static_cast<int32_t>(uint32_t(1) << (column % kWord)));
        elements[reg] = assembly(
            i1, "{ .reg .b32 t; and.b32 t, $1, $2; setp.ne.b32 $0, t, 0; }",
            "=b,r,r", {words[column / kWord], bit});
        continue;
      }
      Value at = i32(static_cast<int32_t>(column));
      if (mask.least && mask.most)
        elements[reg] = assembly(i1,
                                 "{ .reg .pred t; setp.le.s32 t, $1, $3; "
                                 "setp.ge.and.s32 $0, $2, $3, t; }",
                                 "=b,r,r,r", {mask.least, mask.most, at});
      else
        elements[reg] = arith::CmpIOp::create(
            b, loc,
            mask.most ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle,
            mask.most ? mask.most : mask.least, at);
    }
  }
  return fromElements(elements);
}

SmallVector<Value> NVVMLowering::makeElements(Operation *op) {
  SmallVector<Value> made;
  for (Value operand : op->getOperands()) {
    auto masks = rowMasks.find(operand);
    if (masks == rowMasks.end() || map.contains(operand))
      continue;
    map.map(operand, elementsOf(masks->second, layoutOf(operand)));
    // What is made in a branch is not there behind it.
    if (op->getBlock() != operand.getParentBlock())
      made.push_back(operand);
  }
  return made;
}
