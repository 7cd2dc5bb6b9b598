//===- Elementwise.cpp - work on registers --------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operations become themselves on the vector of a lane's registers;
// broadcasts choose registers; reductions combine registers, then lanes.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>
#include <numeric>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

//===----------------------------------------------------------------------===//
// Types and small builders
//===----------------------------------------------------------------------===//

Type NVVMLowering::lowered(Type type) {
  if (isa<CursorType>(type))
    return VectorType::get({4}, b.getIndexType());
  if (isa<BufType>(type))
    return b.getI32Type();
  if (isa<EntriesType>(type))
    return VectorType::get({entryCounts.lookup(type)}, b.getI32Type());
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return type;
  FailureOr<RegisterLayout> layout = RegisterLayout::of(tile);
  Type element = tile.getElementType();
  if (isCode(element) || isa<Float8E8M0FNUType>(element))
    element = b.getI8Type();
  return VectorType::get({layout->getRegisters()}, element);
}

RegisterLayout NVVMLowering::layoutOf(Value tile) {
  return *RegisterLayout::of(cast<RankedTensorType>(tile.getType()));
}

Value NVVMLowering::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value NVVMLowering::i32(int64_t value) {
  return arith::ConstantIntOp::create(b, loc, value, 32);
}
Value NVVMLowering::add(Value a, Value c) {
  return arith::AddIOp::create(b, loc, a, c);
}
Value NVVMLowering::add(Value a, int64_t c) {
  return c == 0 ? a : add(a, index(c));
}
Value NVVMLowering::mul(Value a, Value c) {
  return arith::MulIOp::create(b, loc, a, c);
}
Value NVVMLowering::mul(Value a, int64_t c) {
  return c == 1 ? a : mul(a, index(c));
}
Value NVVMLowering::sub(Value a, Value c) {
  return arith::SubIOp::create(b, loc, a, c);
}
Value NVVMLowering::minimum(Value a, Value c) {
  return arith::MinSIOp::create(b, loc, a, c);
}
Value NVVMLowering::divide(Value a, int64_t c) {
  return c == 1 ? a : arith::DivUIOp::create(b, loc, a, index(c)).getResult();
}
Value NVVMLowering::remainder(Value a, int64_t c) {
  return arith::RemUIOp::create(b, loc, a, index(c));
}
Value NVVMLowering::toI64(Value value) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
}
Value NVVMLowering::toI32(Value value) {
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
}
Value NVVMLowering::fromI32(Value value) {
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
}
Value NVVMLowering::add32(Value a, int64_t c) {
  return c == 0 ? a : arith::AddIOp::create(b, loc, a, i32(c)).getResult();
}
Value NVVMLowering::assembly(Type result, StringRef text, StringRef constraints,
                             ValueRange operands) {
  return LLVM::InlineAsmOp::create(b, loc, result, operands, text, constraints,
                                   /*has_side_effects=*/false,
                                   /*is_align_stack=*/false,
                                   LLVM::tailcallkind::TailCallKind::None,
                                   /*asm_dialect=*/LLVM::AsmDialectAttr(),
                                   /*operand_attrs=*/ArrayAttr())
      .getRes();
}
void NVVMLowering::instruct(StringRef text, StringRef constraints,
                            ValueRange operands) {
  LLVM::InlineAsmOp::create(b, loc, TypeRange(), operands, text, constraints,
                            /*has_side_effects=*/true,
                            /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None,
                            /*asm_dialect=*/LLVM::AsmDialectAttr(),
                            /*operand_attrs=*/ArrayAttr());
}
Value NVVMLowering::toIndex(Value value) {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
}
Value NVVMLowering::extract(Value vector, int64_t at) {
  return vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{at});
}
Value NVVMLowering::fromElements(ArrayRef<Value> elements) {
  auto type = VectorType::get({static_cast<int64_t>(elements.size())},
                              elements.front().getType());
  return vector::FromElementsOp::create(b, loc, type, elements);
}
Value NVVMLowering::shuffle(Value vector, ArrayRef<int64_t> indices) {
  return vector::ShuffleOp::create(b, loc, vector, vector, indices);
}

Value NVVMLowering::neighbours(Value vector, int64_t first, int64_t count) {
  if (count == 1)
    return extract(vector, first);
  SmallVector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return shuffle(vector, indices);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

static bool isTiled(Type type) {
  return isa<RankedTensorType>(type) && isTile(type);
}

LogicalResult NVVMLowering::lowerElementwise(Operation *op) {
  auto known = [&](Type type) {
    return isTiled(type) || type.isIntOrIndexOrFloat();
  };
  bool fits = op->getNumRegions() == 0 && op->getNumSuccessors() == 0;
  for (Type type : op->getOperandTypes())
    fits &= known(type);
  for (Type type : op->getResultTypes()) {
    fits &= known(type);
    if (isTiled(type) &&
        failed(RegisterLayout::of(cast<RankedTensorType>(type))))
      return op->emitOpError("expected tiles with layouts: run "
                             "fi-tile-assign-layouts first");
  }
  if (!fits)
    return op->emitOpError("has no lowering for a GPU");
  if (isa<math::MathDialect>(op->getDialect()))
    return lowerMath(op);
  if (isa<arith::ExtFOp, arith::SIToFPOp>(op) &&
      isTiled(op->getOperand(0).getType()) &&
      isCode(getElementTypeOrSelf(op->getOperand(0).getType()))) {
    map.map(op->getResult(0),
            fromCodes(map.lookup(op->getOperand(0)),
                      getElementTypeOrSelf(op->getOperand(0).getType()),
                      getElementTypeOrSelf(op->getResult(0).getType())));
    return success();
  }
  if (auto conversion = dyn_cast<arith::SIToFPOp>(op);
      conversion && lowerColumnsToFloat(conversion))
    return success();
  Operation *clone = b.clone(*op, map);
  for (OpResult result : clone->getResults())
    result.setType(lowered(result.getType()));
  // Products and sums may be fused, as on a CPU.
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(clone)) {
    auto fast = cast<arith::ArithFastMathInterface>(clone);
    clone->setAttr(fast.getFastMathAttrName(),
                   arith::FastMathFlagsAttr::get(
                       b.getContext(), fast.getFastMathFlagsAttr().getValue() |
                                           arith::FastMathFlags::contract));
  }
  return success();
}

/// Codes of f8E4M3FN, or of f4E2M1FN in the low half of a byte each, as f16:
/// an instruction takes two.
Value NVVMLowering::fromCodesByPairs(Value bytes, bool isFour) {
  int64_t count = cast<VectorType>(bytes.getType()).getNumElements();
  auto pair = VectorType::get({2}, b.getF16Type());
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < count; i += 2) {
    Value two;
    if (isFour) {
      Value low = extract(bytes, i),
            high = extract(bytes, std::min(i + 1, count - 1));
      Value four = arith::ConstantIntOp::create(b, loc, 4, 8);
      two = arith::OrIOp::create(b, loc, low,
                                 arith::ShLIOp::create(b, loc, high, four));
      two = arith::ExtUIOp::create(b, loc, b.getI16Type(), two);
    } else {
      two = LLVM::BitcastOp::create(
          b, loc, b.getI16Type(),
          shuffle(bytes, {i, std::min(i + 1, count - 1)}));
    }
    StringRef name = isFour ? "llvm.nvvm.e2m1x2.to.f16x2.rn"
                            : "llvm.nvvm.e4m3x2.to.f16x2.rn";
    Value converted =
        LLVM::CallIntrinsicOp::create(b, loc, pair, b.getStringAttr(name), two)
            .getResults();
    for (int64_t j = 0; j < 2 && i + j < count; ++j)
      numbers.push_back(extract(converted, j));
  }
  return fromElements(numbers);
}

/// The bits of f8E5M2 are the upper half of an f16. What is no number becomes
/// some number (QNT7).
Value NVVMLowering::fromCodes(Value bytes, Type code, Type element) {
  auto type = cast<VectorType>(bytes.getType());
  VectorType words = type.clone(b.getI16Type());
  VectorType halves = type.clone(b.getF16Type());
  VectorType wide = type.clone(b.getF32Type());
  auto constant = [&](VectorType type, Attribute value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     DenseElementsAttr::get(type, value));
  };
  auto toElement = [&](Value numbers) -> Value {
    Type from = cast<VectorType>(numbers.getType()).getElementType();
    if (from == element)
      return numbers;
    if (from.isF16())
      numbers = arith::ExtFOp::create(b, loc, wide, numbers);
    if (element.isF32())
      return numbers;
    return arith::TruncFOp::create(b, loc, type.clone(element), numbers);
  };
  if (code.isInteger(8))
    return toElement(arith::SIToFPOp::create(b, loc, wide, bytes));
  if (isa<Float8E8M0FNUType>(code)) {
    // The exponent of an f32, whose smallest one is not of normal numbers.
    VectorType exponents = type.clone(b.getI32Type());
    Value bits = arith::ExtUIOp::create(b, loc, exponents, bytes);
    bits = arith::ShLIOp::create(b, loc, bits,
                                 constant(exponents, b.getI32IntegerAttr(23)));
    bits = arith::MaxUIOp::create(
        b, loc, bits, constant(exponents, b.getI32IntegerAttr(1 << 22)));
    return toElement(arith::BitcastOp::create(b, loc, wide, bits));
  }
  bool isFour = isa<Float4E2M1FNType>(code);
  if ((isFour && has(sm::CvtFP4)) ||
      (isa<Float8E4M3FNType>(code) && has(sm::CvtFP8)))
    return toElement(fromCodesByPairs(bytes, isFour));
  Value bits = arith::ExtUIOp::create(b, loc, words, bytes);
  if (isFour) {
    // From 1 on the exponent and the mantissa of an f16 but for a bias; below
    // there are 0 and the f16 0x3800.
    auto word = [&](int64_t value) -> Value {
      return constant(words, b.getI16IntegerAttr(static_cast<int16_t>(value)));
    };
    Value sign = arith::ShLIOp::create(b, loc, bits, word(12));
    sign = arith::AndIOp::create(b, loc, sign, word(0x8000));
    Value rest = arith::AndIOp::create(b, loc, bits, word(7));
    Value large = arith::ShLIOp::create(b, loc, rest, word(9));
    large = arith::AddIOp::create(b, loc, large, word(0x3800));
    Value small = arith::MulIOp::create(b, loc, rest, word(0x3800));
    Value isSmall =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rest, word(2));
    rest = arith::SelectOp::create(b, loc, isSmall, small, large);
    bits = arith::OrIOp::create(b, loc, sign, rest);
    return toElement(arith::BitcastOp::create(b, loc, halves, bits));
  }
  bits = arith::ShLIOp::create(b, loc, bits,
                               constant(words, b.getI16IntegerAttr(8)));
  if (isa<Float8E5M2Type>(code))
    return toElement(arith::BitcastOp::create(b, loc, halves, bits));
  // As an f32, but for its bias; numbers that are not normal are counts of the
  // smallest. (A product with a power of two, also one of f32 that LLVM narrows
  // to f16, would take what is not normal for 0.)
  VectorType longs = type.clone(b.getI32Type());
  auto number = [&](uint32_t value) -> Value {
    return constant(longs, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  };
  Value whole = arith::ExtUIOp::create(b, loc, longs, bytes);
  Value sign = arith::ShLIOp::create(b, loc, whole, number(24));
  sign = arith::AndIOp::create(b, loc, sign, number(0x80000000));
  Value rest = arith::AndIOp::create(b, loc, whole, number(0x7f));
  Value large = arith::ShLIOp::create(b, loc, rest, number(20));
  large = arith::AddIOp::create(b, loc, large, number(120u << 23));
  Value small =
      arith::MulFOp::create(b, loc, arith::SIToFPOp::create(b, loc, wide, rest),
                            constant(wide, b.getF32FloatAttr(0x1p-9f)));
  Value isSmall =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, rest, number(8));
  rest = arith::SelectOp::create(
      b, loc, isSmall, arith::BitcastOp::create(b, loc, longs, small), large);
  rest = arith::OrIOp::create(b, loc, rest, sign);
  return toElement(arith::BitcastOp::create(b, loc, wide, rest));
}

LogicalResult NVVMLowering::lowerConstant(Operation *op) {
  auto constant = cast<arith::ConstantOp>(op);
  if (!isTiled(constant.getType())) {
    b.clone(*op, map);
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return op->emitOpError("expected a tile of equal elements, which is all "
                           "that a constant can be here");
  auto type = cast<ShapedType>(lowered(constant.getType()));
  map.map(
      constant.getResult(),
      arith::ConstantOp::create(b, loc, dense.resizeSplat(type)).getResult());
  return success();
}

/// What no PTX instruction computes as it stands.
LogicalResult NVVMLowering::lowerMath(Operation *op) {
  auto perElement = [&](auto compute) {
    Value operand = map.lookup(op->getOperand(0));
    if (auto vector = dyn_cast<VectorType>(operand.getType())) {
      SmallVector<Value> results;
      for (int64_t i = 0; i < vector.getNumElements(); ++i)
        results.push_back(compute(extract(operand, i)));
      map.map(op->getResult(0), fromElements(results));
    } else {
      map.map(op->getResult(0), compute(operand));
    }
    return success();
  };
  auto intrinsic = [&](StringRef name, Value x) -> Value {
    return LLVM::CallIntrinsicOp::create(b, loc, x.getType(),
                                         b.getStringAttr(name), x)
        .getResults();
  };
  bool isF32 = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
  if (isF32 && isa<math::Exp2Op>(op))
    return perElement(
        [&](Value x) { return intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x); });
  if (isF32 && isa<math::Log2Op>(op))
    return perElement(
        [&](Value x) { return intrinsic("llvm.nvvm.lg2.approx.ftz.f", x); });
  Operation *clone = b.clone(*op, map);
  for (OpResult result : clone->getResults())
    result.setType(lowered(result.getType()));
  return success();
}

LogicalResult NVVMLowering::lowerIota(IotaOp op) {
  RegisterLayout layout = layoutOf(op.getResult());
  Type element = op.getType().getElementType();
  SmallVector<int64_t> offsets;
  for (int64_t reg = 0; reg < layout.getRegisters(); ++reg) {
    Position part = layout.getRegisterPart(reg);
    offsets.push_back(layout.overColumns() ? part.column : part.row);
  }
  Value first;
  if (layout.overColumns()) {
    first = laneColumn(layout);
  } else {
    first = laneRow(layout);
  }
  first = add(scalar(op.getBase()), first);
  auto type = VectorType::get({layout.getRegisters()}, b.getIndexType());
  Value steps = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, [&] {
        return SmallVector<Attribute>(
            llvm::map_to_vector(offsets, [&](int64_t offset) -> Attribute {
              return b.getIndexAttr(offset);
            }));
      }()));
  Value spread = vector::BroadcastOp::create(b, loc, type, first);
  Value result = add(spread, steps);
  if (!element.isIndex())
    result = arith::IndexCastOp::create(
        b, loc, VectorType::get({layout.getRegisters()}, element), result);
  map.map(op.getResult(), result);
  return success();
}

LogicalResult NVVMLowering::lowerBroadcast(BroadcastOp op) {
  RegisterLayout from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  Value source = map.lookup(op.getSource());
  SmallVector<int64_t> indices;
  for (int64_t reg = 0; reg < to.getRegisters(); ++reg) {
    Position wanted = to.getRegisterPart(reg);
    for (int64_t other = 0; other < from.getRegisters(); ++other) {
      Position has = from.getRegisterPart(other);
      if (from.overRows() ? has.row == wanted.row
                          : has.column == wanted.column) {
        indices.push_back(other);
        break;
      }
    }
    if (static_cast<int64_t>(indices.size()) != reg + 1)
      return op.emitOpError("expected layouts whose rows or columns agree, but "
                            "got ")
             << op.getSource().getType() << " and " << op.getType();
  }
  map.map(op.getResult(), shuffle(source, indices));
  return success();
}

LogicalResult NVVMLowering::lowerMask(MaskOp op) {
  Value scores = map.lookup(op.getScores());
  auto type = cast<VectorType>(scores.getType());
  Type element = type.getElementType();
  auto inf = APFloat::getInf(cast<FloatType>(element).getFloatSemantics(),
                             /*Negative=*/true);
  Value masked = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getFloatAttr(element, inf)));
  map.map(op.getResult(),
          arith::SelectOp::create(b, loc, map.lookup(op.getVisible()), scores,
                                  masked)
              .getResult());
  return success();
}

LogicalResult NVVMLowering::lowerRelayout(RelayoutOp op) {
  RegisterLayout from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  if (from.getFrag().getAtom() == Atom::MmaC8 &&
      to.getFrag().getAtom() == Atom::MmaC && from.overRows() &&
      from.overColumns() && op.getType().getElementType().isF32())
    return exchangeColumns(op);
  // Free where registers only change their numbers: every element stays in its
  // lane and warp.
  SmallVector<int64_t> indices;
  int64_t warps = to.getFrag().getWarps();
  bool stays = from.getFrag().getWarps() == warps;
  for (int64_t reg = 0; stays && reg < to.getRegisters(); ++reg) {
    std::optional<int64_t> source;
    for (int64_t other = 0; other < from.getRegisters() && !source; ++other) {
      bool same = from.getRegisterPart(other) == to.getRegisterPart(reg);
      for (int64_t l = 0; same && l < kLanes; ++l)
        for (int64_t w = 0; same && w < warps; ++w)
          same = from.getPosition(other, l, w) == to.getPosition(reg, l, w);
      if (same)
        source = other;
    }
    stays = source.has_value();
    if (stays)
      indices.push_back(*source);
  }
  if (!stays) {
    InFlightDiagnostic diag = op.emitOpError(
        "expected a change of layout that moves nothing between lanes");
    diag.attachNote() << "from " << op.getSource().getType() << ": "
                      << drawLayout(op.getSource().getType());
    diag.attachNote() << "to " << op.getType() << ": "
                      << drawLayout(op.getType());
    return diag;
  }
  map.map(op.getResult(), shuffle(map.lookup(op.getSource()), indices));
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value NVVMLowering::combine(ReduceKind kind, Value a, Value c) {
  if (kind == ReduceKind::Add)
    return arith::AddFOp::create(b, loc, a, c);
  return arith::MaxNumFOp::create(b, loc, a, c);
}

/// Pairwise, so that sums do not wait for one another.
Value NVVMLowering::combineAll(ReduceKind kind, SmallVector<Value> values) {
  while (values.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      next.push_back(combine(kind, values[i], values[i + 1]));
    if (values.size() % 2)
      next.push_back(values.back());
    values = std::move(next);
  }
  return values.front();
}

Value NVVMLowering::combineLanes(ReduceKind kind, Value value, int64_t bit) {
  Value other =
      NVVM::ShflOp::create(b, loc, value.getType(), i32(-1), value, i32(bit),
                           i32(kLanes - 1), NVVM::ShflKind::bfly, UnitAttr());
  return combine(kind, value, other);
}

LogicalResult NVVMLowering::lowerAny(AnyOp op) {
  Value source = map.lookup(op.getSource());
  Value any =
      vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, source);
  map.map(op.getResult(),
          NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), i32(-1), any,
                                   NVVM::VoteSyncKind::any)
              .getResult());
  return success();
}

LogicalResult NVVMLowering::lowerReduce(ReduceOp op) {
  RegisterLayout from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  if (!op.getType().getElementType().isF32())
    return op.emitOpError("expected a reduction of f32, but got ")
           << op.getType();
  if (to.overColumns() && !to.isPartial())
    return op.emitOpError("expected a value per row, or one for each lane that "
                          "shares it, but got ")
           << op.getType();
  Value source = map.lookup(op.getSource());
  int64_t columns = op.getSource().getType().getDimSize(1);
  double none = op.getKind() == ReduceKind::Add
                    ? 0
                    : -std::numeric_limits<double>::infinity();
  SmallVector<Value> results;
  for (int64_t reg = 0; reg < to.getRegisters(); ++reg) {
    int64_t row = to.getRegisterPart(reg).row;
    SmallVector<Value> values;
    for (int64_t other = 0; other < from.getRegisters(); ++other) {
      Position part = from.getRegisterPart(other);
      if (part.row != row)
        continue;
      Value value = extract(source, other);
      // Neighbours are inside together.
      int64_t first = part.column / kRowChunk * kRowChunk;
      if (from.goesBeyond(first, columns))
        value = arith::SelectOp::create(
            b, loc, isInside(from, first, columns), value,
            arith::ConstantOp::create(b, loc, b.getF32FloatAttr(none)));
      values.push_back(value);
    }
    Value value = combineAll(op.getKind(), std::move(values));
    if (!to.isPartial())
      for (int64_t bit = 1; bit < from.getRowLanes(); bit *= 2)
        value = combineLanes(op.getKind(), value, bit);
    results.push_back(value);
  }
  if (spansWarps(op) && failed(combineWarps(op, results)))
    return failure();
  map.map(op.getResult(), fromElements(results));
  return success();
}

LogicalResult NVVMLowering::combineWarps(ReduceOp op,
                                         SmallVector<Value> &values) {
  auto offset = op->getAttrOfType<IntegerAttr>(kOffsetAttr);
  if (!offset)
    return op.emitOpError("expected an offset: run fi-tile-allocate");
  RegisterLayout layout = layoutOf(op.getResult());
  FragAttr frag = layout.getFrag();
  int64_t count = frag.getColumnWarps(), pitch = getReductionPitch(frag);
  auto times = [&](Value value, int64_t by) -> Value {
    return arith::MulIOp::create(b, loc, value, i32(by));
  };
  Value row = times(toI32(laneRow(layout)), pitch);
  Value number = toI32(remainder(holder(frag), count));
  auto placeOf = [&](unsigned reg) {
    return add32(row,
                 offset.getInt() + layout.getRegisterPart(reg).row * pitch);
  };
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                        laneInRow(layout), index(0));
  if (Value writes = isHolder(frag))
    isFirst = arith::AndIOp::create(b, loc, isFirst, writes);
  {
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (auto [reg, value] : llvm::enumerate(values))
      LLVM::StoreOp::create(
          b, loc, value,
          sharedPointerAt(arith::AddIOp::create(b, loc, placeOf(reg),
                                                times(number, sizeof(float)))),
          sizeof(float));
  }
  barrier();
  for (auto [reg, value] : llvm::enumerate(values)) {
    SmallVector<Value> parts;
    // By four, then what is left: nobody has written what lies behind.
    for (int64_t first = 0; first < count;) {
      int64_t most = std::min<int64_t>(4, count - first);
      int64_t atOnce = most == 3 ? 2 : most;
      Type type = b.getF32Type();
      if (atOnce > 1)
        type = VectorType::get({atOnce}, type);
      Value loaded = LLVM::LoadOp::create(
          b, loc, type,
          sharedPointerAt(add32(placeOf(reg), first * sizeof(float))),
          atOnce * sizeof(float));
      for (int64_t i = 0; i < atOnce; ++i)
        parts.push_back(atOnce > 1 ? extract(loaded, i) : loaded);
      first += atOnce;
    }
    value = combineAll(op.getKind(), std::move(parts));
  }
  return success();
}
