//===- Buffers.cpp - tiles between buffers and registers ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements of buffers in shared memory, one by one or by pairs: any column can
// be read into any register.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

void NVVMLowering::visitBuffer(
    RankedTensorType tile, BufType type, Value buffer, int64_t first,
    int64_t step, llvm::function_ref<void(int64_t, int64_t, Value)> visit) {
  RegisterLayout layout = *RegisterLayout::of(tile);
  SmemAttr smem = type.getLayout();
  // Two elements of 4 bits are a byte: a lane's first column is an even one.
  int64_t bits = type.getElement().getIntOrFloatBitWidth();
  int64_t group = layout.getNeighbours();
  // Neighbours are accessed at once where they are so in the buffer, aligned.
  int64_t count = step == 1 && first % group == 0 ? group : 1;
  Value laneBytes, turn, rowBytes;
  {
    OpBuilder::InsertionGuard guard(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    auto times = [&](Value value, int64_t by) -> Value {
      return arith::MulIOp::create(b, loc, value, i32(by));
    };
    int64_t lanes = layout.getNeighbours() * step * bits / 8;
    laneBytes = times(toI32(remainder(lane, kQuad)), lanes);
    rowBytes = times(toI32(laneRow(layout)), smem.getPitch());
    // Rows of registers are multiples of 8 apart: the lane decides a swizzle.
    turn =
        times(arith::DivUIOp::create(b, loc, lane32, i32(kQuad)), kChunkBytes);
  }
  Value start = arith::AddIOp::create(b, loc, buffer, rowBytes);
  for (int64_t reg = 0; reg < layout.getRegisters(); reg += count) {
    Position part = layout.getRegisterPart(reg);
    int64_t column = part.column;
    Value place = add32(laneBytes, (first + column * step) * bits / 8);
    if (smem.getSwizzle())
      place = arith::XOrIOp::create(b, loc, place, turn);
    Value at = arith::AddIOp::create(b, loc, start, place);
    visit(reg, count, sharedPointerAt(add32(at, part.row * smem.getPitch())));
  }
}

LogicalResult NVVMLowering::lowerRead(ReadOp op) {
  BufType type = op.getBuffer().getType();
  RankedTensorType tile = op.getType();
  if (failed(RegisterLayout::of(tile)))
    return op.emitOpError("expected a tile with a layout: run "
                          "fi-tile-assign-layouts first");
  Type element = storedType(tile.getElementType(), b);
  RegisterLayout layout = layoutOf(op.getResult());
  SmallVector<Value> registers(layout.getRegisters());
  int64_t firstColumn = op.getFirst().value_or(0);
  int64_t columnStep = op.getStep().value_or(1);
  bool isApart = false;
  if (isa<Float4E2M1FNType>(type.getElement())) {
    if (layout.getNeighbours() * columnStep % 2 != 0)
      return op.emitOpError("expected lanes that hold pairs of columns of "
                            "f4E2M1FN, but got ")
             << tile;
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(value));
    };
    visitBuffer(
        tile, type, map.lookup(op.getBuffer()), firstColumn, columnStep,
        [&](int64_t reg, int64_t count, Value pointer) {
          Value byte = LLVM::LoadOp::create(b, loc, b.getI8Type(), pointer);
          auto half = [&](bool isHigh) -> Value {
            if (isHigh)
              return arith::ShRUIOp::create(b, loc, byte, constant(4));
            return arith::AndIOp::create(b, loc, byte, constant(15));
          };
          int64_t column =
              firstColumn + layout.getRegisterPart(reg).column * columnStep;
          registers[reg] = half(column % 2 != 0);
          if (count == 2)
            registers[reg + 1] = half(true);
        });
    map.map(op.getResult(), fromElements(registers));
    return success();
  }
  visitBuffer(tile, type, map.lookup(op.getBuffer()), firstColumn, columnStep,
              [&](int64_t reg, int64_t count, Value pointer) {
                Type loadedType = count == 1
                                      ? element
                                      : Type(VectorType::get({count}, element));
                Value loaded = LLVM::LoadOp::create(
                    b, loc, loadedType, pointer,
                    count * element.getIntOrFloatBitWidth() / 8);
                isApart |= count == 1;
                for (int64_t i = 0; i < count; ++i)
                  registers[reg + i] = count == 1 ? loaded : extract(loaded, i);
              });
  Value read = fromElements(registers);
  // LLVM 22 would take pairs of bytes out of the half-built vector, of which
  // its code for the GPU reads registers that nothing has written.
  if (isApart && element.getIntOrFloatBitWidth() == 8)
    read = LLVM::FreezeOp::create(b, loc, read);
  map.map(op.getResult(), read);
  return success();
}

/// Whether products of 16-bit elements read the channel of a buffer.
static bool isMultipliedInHalves(Value buffer) {
  auto slot = buffer.getDefiningOp<SlotOp>();
  auto isHalf = [](Value operand) {
    return ShapedTile(operand.getType()).element.getIntOrFloatBitWidth() == 16;
  };
  return slot && llvm::any_of(slot.getChannel().getUsers(), [&](Operation *op) {
           auto other = dyn_cast<SlotOp>(op);
           return other &&
                  llvm::any_of(other->getUsers(), [&](Operation *user) {
                    auto dot = dyn_cast<DotOp>(user);
                    return dot && isHalf(dot.getA()) && isHalf(dot.getB());
                  });
         });
}

LogicalResult NVVMLowering::lowerWrite(WriteOp op) {
  BufType type = op.getBuffer().getType();
  RankedTensorType tile = op.getTile().getType();
  FailureOr<RegisterLayout> layout = RegisterLayout::of(tile);
  if (failed(layout))
    return op.emitOpError("expected a tile with a layout: run "
                          "fi-tile-assign-layouts first");
  OpBuilder::InsertionGuard guard(b);
  if (Value writes = isHolder(layout->getFrag())) {
    auto branch = scf::IfOp::create(b, loc, writes, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value registers = map.lookup(op.getTile());
  visitBuffer(tile, type, map.lookup(op.getBuffer()), /*first=*/0, /*step=*/1,
              [&](int64_t reg, int64_t count, Value pointer) {
                LLVM::StoreOp::create(
                    b, loc, neighbours(registers, reg, count), pointer,
                    count * tile.getElementTypeBitWidth() / 8);
              });
  // Such a product reads 16 columns at once: zeros behind the last ones, 8
  // columns further.
  constexpr int64_t kHalf = 8;
  int64_t columns = tile.getDimSize(1), bits = tile.getElementTypeBitWidth();
  if (columns % (2 * kHalf) != kHalf || !isMultipliedInHalves(op.getBuffer()))
    return success();
  visitBuffer(tile, type, map.lookup(op.getBuffer()), /*first=*/kHalf,
              /*step=*/1, [&](int64_t reg, int64_t count, Value pointer) {
                if (layout->getRegisterPart(reg).column < columns - kHalf)
                  return;
                Type zeros = VectorType::get({count}, b.getI16Type());
                LLVM::StoreOp::create(
                    b, loc,
                    arith::ConstantOp::create(b, loc, b.getZeroAttr(zeros)),
                    pointer, count * bits / 8);
              });
  return success();
}

/// Where each lane finds the element of a register: a register of a lane.
using Sources = std::array<std::pair<int64_t, int64_t>, kLanes>;

/// Null where it lies in another warp.
static std::optional<Sources> findSources(const RegisterLayout &from,
                                          const RegisterLayout &to, int64_t reg,
                                          int64_t first, int64_t step,
                                          int64_t warps) {
  auto holds = [&](int64_t other, int64_t lane, int64_t otherLane) {
    for (int64_t w = 0; w < warps; ++w) {
      Position wanted = to.getPosition(reg, lane, w);
      wanted.column = first + wanted.column * step;
      if (!(from.getPosition(other, otherLane, w) == wanted))
        return false;
    }
    return true;
  };
  Sources sources;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    bool found = false;
    // A lane's own registers first: those cost nothing.
    for (int64_t at = 0; at < kLanes && !found; ++at)
      for (int64_t other = 0; other < from.getRegisters() && !found; ++other)
        if (holds(other, lane, lane ^ at)) {
          sources[lane] = {other, lane ^ at};
          found = true;
        }
    if (!found)
      return std::nullopt;
  }
  return sources;
}

/// The bit of `mask` that belongs to the lane.
Value NVVMLowering::laneBit(uint32_t mask) {
  Value shifted = arith::ShRUIOp::create(b, loc, i32(int32_t(mask)), lane32);
  return arith::AndIOp::create(b, loc, shifted, i32(1));
}

/// What each lane's source holds: for every register that is one of some lane
/// a shuffle, of which lanes take theirs.
Value NVVMLowering::exchange(Value source, const Sources &sources) {
  std::array<uint32_t, 5> bits = {};
  llvm::MapVector<int64_t, uint32_t> readers;
  for (auto [lane, place] : llvm::enumerate(sources)) {
    readers[place.first] |= uint32_t(1) << lane;
    for (auto [bit, mask] : llvm::enumerate(bits))
      mask |= uint32_t(place.second >> bit & 1) << lane;
  }
  Value from = i32(0);
  for (auto [bit, mask] : llvm::enumerate(bits))
    if (mask)
      from = arith::OrIOp::create(
          b, loc, from,
          arith::ShLIOp::create(b, loc, laneBit(mask), i32(int64_t(bit))));
  Type type = cast<VectorType>(source.getType()).getElementType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type narrow = b.getIntegerType(width);
  Value result;
  for (auto [reg, mask] : readers) {
    Value value = extract(source, reg);
    if (type != narrow)
      value = arith::BitcastOp::create(b, loc, narrow, value);
    if (width < 32)
      value = arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
    value = fromLane(value, from);
    if (result)
      value = arith::SelectOp::create(
          b, loc,
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, laneBit(mask),
                                i32(0)),
          value, result);
    result = value;
  }
  if (width < 32)
    result = arith::TruncIOp::create(b, loc, narrow, result);
  return type == narrow ? result
                        : arith::BitcastOp::create(b, loc, type, result);
}

/// Free where every element stays in its lane; what other lanes of the warp
/// hold is asked of them.
LogicalResult NVVMLowering::lowerColumns(ColumnsOp op) {
  FailureOr<RegisterLayout> from = RegisterLayout::of(op.getSource().getType());
  FailureOr<RegisterLayout> to = RegisterLayout::of(op.getType());
  if (failed(from) || failed(to))
    return op.emitOpError("expected tiles with layouts: run "
                          "fi-tile-assign-layouts first");
  Type element = op.getType().getElementType();
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  std::vector<Sources> sources;
  bool moves = false;
  for (int64_t reg = 0; reg < to->getRegisters(); ++reg) {
    std::optional<Sources> found =
        findSources(*from, *to, reg, op.getFirst(), op.getStep(), warps);
    bool isOwn = found && llvm::all_of(llvm::enumerate(*found), [&](auto it) {
                   return it.value().second == int64_t(it.index()) &&
                          it.value().first == found->front().first;
                 });
    if (!found || (!isOwn && (width < 8 || width > 32))) {
      InFlightDiagnostic diag = op.emitOpError(
          "expected columns that lanes of the same warp hold, in elements of 8 "
          "to 32 bits where they are not a lane's own; those of what a buffer "
          "holds are read by fi_tile.read");
      diag.attachNote() << "from " << op.getSource().getType() << ": "
                        << drawLayout(op.getSource().getType());
      return diag;
    }
    moves |= !isOwn;
    sources.push_back(*found);
  }
  Value source = map.lookup(op.getSource());
  if (!moves) {
    SmallVector<int64_t> own;
    for (const Sources &place : sources)
      own.push_back(place.front().first);
    map.map(op.getResult(), shuffle(source, own));
    return success();
  }
  SmallVector<Value> elements;
  for (const Sources &place : sources)
    elements.push_back(exchange(source, place));
  map.map(op.getResult(), fromElements(elements));
  return success();
}
