//===- Columns.cpp - integers that count columns --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversions to floats of integers that grow evenly: one for each row.
//
//===----------------------------------------------------------------------===//

#include "Columns.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

SmallVector<SmallVector<int64_t>>
fi::tile::registersByRow(const RegisterLayout &layout) {
  llvm::MapVector<int64_t, SmallVector<int64_t>> rows;
  for (int64_t reg = 0; reg < layout.getRegisters(); ++reg)
    rows[layout.getRegisterPart(reg).row].push_back(reg);
  SmallVector<SmallVector<int64_t>> sorted;
  for (auto &[row, registers] : rows) {
    llvm::sort(registers, [&](int64_t a, int64_t b) {
      return layout.getRegisterPart(a).column <
             layout.getRegisterPart(b).column;
    });
    sorted.push_back(std::move(registers));
  }
  return sorted;
}

/// Sums that f32 holds, up to 2^24, are exact; larger ones are rounded twice.
bool NVVMLowering::lowerColumnsToFloat(arith::SIToFPOp op) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || !type.getElementType().isF32())
    return false;
  std::optional<int64_t> step = columnStep(op.getIn());
  RegisterLayout layout = layoutOf(op.getResult());
  if (!step || !layout.overRows() || !layout.overColumns())
    return false;
  Value integers = map.lookup(op.getIn());
  SmallVector<Value> floats(layout.getRegisters());
  for (ArrayRef<int64_t> registers : registersByRow(layout)) {
    int64_t least = layout.getRegisterPart(registers.front()).column;
    Value first = arith::SIToFPOp::create(b, loc, b.getF32Type(),
                                          extract(integers, registers.front()));
    for (int64_t reg : registers) {
      int64_t more = *step * (layout.getRegisterPart(reg).column - least);
      floats[reg] =
          more ? arith::AddFOp::create(
                     b, loc, first,
                     arith::ConstantOp::create(
                         b, loc, b.getF32FloatAttr(static_cast<float>(more))))
                     .getResult()
               : first;
    }
  }
  map.map(op.getResult(), fromElements(floats));
  return true;
}
