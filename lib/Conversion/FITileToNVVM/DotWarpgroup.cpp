//===- DotWarpgroup.cpp - products of warpgroups --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma.mma_async.m64nNk16: four warps multiply 64 rows, whose accumulators are
// those of mma.sync for 16 rows a warp. Second operands, and first ones that
// are not in registers, lie in panels of 64 columns with a swizzle of 128
// bytes, which descriptors point to.
//
// A product is one piece of assembly, so that no register that it reads is
// written after its fence, and none that it writes is read before it is waited
// for.
//
//===----------------------------------------------------------------------===//

#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// The k of one wgmma with elements of 16 bits; rows of a warpgroup; columns
/// and bytes of a panel's row; rows of a block that a swizzle repeats after.
static constexpr int64_t kDepth = 16, kRows = 64, kPanelColumns = 64,
                         kPitch = 128, kBlockRows = 8;

/// A matrix descriptor without its address: strides between blocks of 8 rows
/// and between panels, in units of 16 bytes, and the swizzle of 128 bytes.
static uint64_t getDescriptor(SmemAttr layout) {
  uint64_t panel = layout.getPanel() / kChunkBytes;
  uint64_t block = kBlockRows * kPitch / kChunkBytes;
  return panel << 16 | block << 32 | uint64_t(1) << 62;
}

/// What a step of 16 columns adds to the address of a matrix whose rows are
/// those of the product, in units of 16 bytes.
static int64_t alongColumns(SmemAttr layout, int64_t step) {
  int64_t column = step * kDepth;
  return column / kPanelColumns * layout.getPanel() / kChunkBytes +
         column % kPanelColumns * 2 / kChunkBytes;
}

/// The same of a step of 16 rows, for a matrix whose columns are those.
static int64_t alongRows(int64_t step) {
  return step * kDepth * kPitch / kChunkBytes;
}

LogicalResult NVVMLowering::lowerDotWarpgroup(DotOp op) {
  return startWarpgroup(op, op.getA(), op.getB(), op.getAcc(),
                        op.getTranspose(), op.getType(), op.getResult(),
                        /*waits=*/true);
}

LogicalResult NVVMLowering::lowerDotStart(DotStartOp op) {
  return startWarpgroup(op, op.getA(), op.getB(), op.getAcc(),
                        op.getTranspose(), op.getResult().getType().getTile(),
                        op.getResult(), /*waits=*/false);
}

/// Groups of products that begin between one and the wait for it may go on.
LogicalResult NVVMLowering::lowerWait(WaitOp op) {
  int64_t later = 0;
  for (Operation *other = op.getFuture().getDefiningOp()->getNextNode();
       other != op; other = other->getNextNode())
    later += isa<DotStartOp>(other);
  SmallVector<Value> operands, sources = {map.lookup(op.getFuture())};
  for (Value kept : op.getKept())
    sources.push_back(map.lookup(kept));
  std::string constraints;
  llvm::raw_string_ostream cs(constraints);
  SmallVector<Type> types;
  for (Value source : sources)
    for (int64_t i = 0; i < cast<VectorType>(source.getType()).getNumElements();
         ++i) {
      operands.push_back(extract(source, i));
      types.push_back(operands.back().getType());
      cs << "=f,";
    }
  for (size_t i = 0; i < operands.size(); ++i)
    cs << i << ",";
  cs << "~{memory}";
  // What is waited for goes through the wait, so that nobody reads it before.
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  Value results =
      LLVM::InlineAsmOp::create(
          b, loc, type, operands,
          "wgmma.wait_group.sync.aligned " + std::to_string(later) + ";",
          constraints, /*has_side_effects=*/true, /*is_align_stack=*/false,
          LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
          ArrayAttr())
          .getRes();
  int64_t next = 0;
  for (auto [source, result] : llvm::zip(sources, op->getResults())) {
    SmallVector<Value> elements;
    for (int64_t i = 0; i < cast<VectorType>(source.getType()).getNumElements();
         ++i)
      elements.push_back(LLVM::ExtractValueOp::create(b, loc, results, next++));
    map.map(result, fromElements(elements));
  }
  return success();
}

LogicalResult NVVMLowering::startWarpgroup(Operation *op, Value firstOperand,
                                           Value secondOperand, Value acc,
                                           bool transpose,
                                           RankedTensorType tile, Value result,
                                           bool waits) {
  auto second = dyn_cast<BufType>(secondOperand.getType());
  ShapedTile a(firstOperand.getType());
  RegisterLayout layout = *RegisterLayout::of(tile);
  FragAttr frag = layout.getFrag();
  auto inPanels = [](BufType type) { return type.getLayout().getPanel() != 0; };
  auto first = dyn_cast<BufType>(firstOperand.getType());
  if (!second || !inPanels(second) || (first && !inPanels(first)) ||
      frag.getAtom() != Atom::MmaC || frag.getRepRows() != 1 ||
      frag.getWarps() != warps || warps % 4 != 0)
    return op->emitOpError("expected a product of warpgroups of 64 rows, with "
                           "buffers in panels, but got ")
           << firstOperand.getType() << " and " << secondOperand.getType()
           << " to " << tile;
  int64_t columns = tile.getDimSize(1);
  int64_t steps = llvm::divideCeil(a.columns, kDepth);
  int64_t count = layout.getRegisters();
  StringRef element = a.element.isF16() ? "f16" : "bf16";

  auto descriptor = [&](Value buffer, SmemAttr smem) -> Value {
    Value at = arith::AddIOp::create(b, loc, sharedBase, buffer);
    // The address in units of 16 bytes, of 14 bits.
    constexpr int64_t kAddressMask = 0x3ffff;
    at = arith::AndIOp::create(b, loc, at, i32(kAddressMask));
    at = arith::ShRUIOp::create(b, loc, at, i32(4));
    Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), at);
    Value rest = arith::ConstantOp::create(
        b, loc, b.getI64IntegerAttr(int64_t(getDescriptor(smem))));
    return arith::OrIOp::create(b, loc, wide, rest);
  };

  SmallVector<Value> operands;
  std::string text, constraints;
  llvm::raw_string_ostream os(text), cs(constraints);
  for (int64_t i = 0; i < count; ++i)
    cs << "=f,";
  int64_t next = count;
  // Where operands are known by number: after the results.
  auto operand = [&](Value value, StringRef constraint) {
    operands.push_back(value);
    cs << constraint << ",";
    return next++;
  };
  if (acc)
    for (int64_t i = 0; i < count; ++i)
      operand(extract(map.lookup(acc), i), std::to_string(i));
  SmallVector<int64_t> words;
  int64_t firstAddress = 0;
  if (first) {
    // Each warpgroup has its rows.
    if (!warpgroupRows) {
      OpBuilder::InsertionGuard guard(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      Value group = arith::DivUIOp::create(b, loc, uniformWarp, i32(4));
      warpgroupRows = arith::MulIOp::create(b, loc, group, i32(kRows * kPitch));
    }
    Value rows =
        arith::AddIOp::create(b, loc, map.lookup(firstOperand), warpgroupRows);
    firstAddress = operand(descriptor(rows, first.getLayout()), "l");
  } else {
    Value registers = map.lookup(firstOperand);
    for (int64_t i = 0; i < 4 * steps; ++i) {
      Value two = shuffle(registers, {2 * i, 2 * i + 1});
      words.push_back(
          operand(LLVM::BitcastOp::create(b, loc, b.getI32Type(), two), "r"));
    }
  }
  int64_t secondAddress =
      operand(descriptor(map.lookup(secondOperand), second.getLayout()), "l");

  os << "{\n.reg .pred p, q;\n.reg .b64 a, b;\nsetp.ne.b32 p, 0, 0;\n"
        "setp.ne.b32 q, 1, 0;\nwgmma.fence.sync.aligned;\n";
  for (int64_t step = 0; step < steps; ++step) {
    if (first)
      os << "add.s64 a, $" << firstAddress << ", "
         << alongColumns(first.getLayout(), step) << ";\n";
    os << "add.s64 b, $" << secondAddress << ", "
       << (transpose ? alongColumns(second.getLayout(), step) : alongRows(step))
       << ";\nwgmma.mma_async.sync.aligned.m64n" << columns << "k16.f32."
       << element << "." << element << " {";
    for (int64_t i = 0; i < count; ++i)
      os << (i ? ", $" : "$") << i;
    os << "}, ";
    if (first) {
      os << "a";
    } else {
      os << "{";
      for (int64_t i = 0; i < 4; ++i)
        os << (i ? ", $" : "$") << words[4 * step + i];
      os << "}";
    }
    // Scales of the accumulators (none at first) and of the operands, and
    // whether these lie transposed.
    os << ", b, " << (step == 0 && !acc ? "p" : "q") << ", 1, 1"
       << (first ? ", 0" : "") << ", " << (transpose ? 0 : 1) << ";\n";
  }
  os << "wgmma.commit_group.sync.aligned;\n";
  if (waits)
    os << "wgmma.wait_group.sync.aligned 0;\n";
  os << "}";
  cs << "~{memory}";
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, b.getF32Type()));
  Value results = LLVM::InlineAsmOp::create(
                      b, loc, type, operands, text, constraints,
                      /*has_side_effects=*/true, /*is_align_stack=*/false,
                      LLVM::tailcallkind::TailCallKind::None,
                      LLVM::AsmDialectAttr(), ArrayAttr())
                      .getRes();
  SmallVector<Value> sums;
  for (int64_t i = 0; i < count; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, loc, results, i));
  map.map(result, fromElements(sums));
  return success();
}
