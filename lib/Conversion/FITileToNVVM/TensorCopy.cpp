//===- TensorCopy.cpp - copies by the hardware ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A buffer is filled by boxes of some rows and of one panel of columns. They
// count their bytes at the buffer's mbarrier, where the warp that fills it has
// the one arrival: with it, it says how many bytes are on their way.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Bytes of a row of a panel.
static constexpr int64_t kPanelBytes = 128;
/// Bytes of a tensor map, and how it is aligned.
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64;

Value NVVMLowering::tensorMap(unsigned argument, ArrayRef<int64_t> box) {
  for (const TensorMap &known : tensorMaps)
    if (known.argument == argument && ArrayRef<int64_t>(known.box) == box)
      return known.parameter;
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0, n = function.getNumArguments(); i < n; ++i)
    attributes.push_back(
        mlir::function_interface_impl::getArgAttrDict(function, i));
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  LLVM::LLVMFunctionType type = function.getFunctionType();
  SmallVector<Type> types(type.getParams());
  types.push_back(pointer);
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), kMapBytes);
  attributes.push_back(b.getDictionaryAttr(
      {b.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(bytes)),
       b.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(kMapAlignment)),
       b.getNamedAttr(NVVM::NVVMDialect::getGridConstantAttrName(),
                      b.getUnitAttr())}));
  function.setFunctionType(
      LLVM::LLVMFunctionType::get(type.getReturnType(), types));
  Value parameter = function.getBody().front().addArgument(pointer, loc);
  function.setAllArgAttrs(attributes);
  tensorMaps.push_back({argument, SmallVector<int64_t, 5>(box), parameter});
  return parameter;
}

SmallVector<Attribute> NVVMLowering::getRecipes() {
  return llvm::map_to_vector(
      tensorMaps, [&](const TensorMap &made) -> Attribute {
        return b.getDictionaryAttr(
            {b.getNamedAttr("box", b.getI64ArrayAttr(made.box)),
             b.getNamedAttr("buffer", b.getI64IntegerAttr(made.argument)),
             b.getNamedAttr("swizzle", b.getI64IntegerAttr(kPanelBytes))});
      });
}

LogicalResult NVVMLowering::copyBoxes(
    Operation *op, TypedValue<BufType> buffer, unsigned argument,
    ArrayRef<int64_t> box, int64_t rows,
    llvm::function_ref<SmallVector<Value>(Value)> coordinatesOf) {
  auto slot = buffer.getDefiningOp<SlotOp>();
  if (!slot)
    return op->emitOpError("expected a buffer of a channel: run "
                           "fi-tile-lower-channels");
  FailureOr<Value> barrier = barrierOf(
      op, slot.getChannel(), toI32(scalar(slot.getNumber())), Arrival::Full);
  if (failed(barrier))
    return failure();
  BufType type = buffer.getType();
  int64_t elementBytes = type.getElement().getIntOrFloatBitWidth() / 8;
  int64_t panels =
      llvm::divideCeil(type.getColumns() * elementBytes, kPanelBytes);
  int64_t runs = type.getRows() / rows;
  Value parameter = tensorMap(argument, box);
  Value place = map.lookup(buffer);
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane32, i32(0));
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value expected = i32(runs * panels * rows * kPanelBytes);
  instruct("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
           "r,r,~{memory}", {*barrier, expected});
  for (int64_t run = 0; run < runs; ++run) {
    SmallVector<Value> coordinates = coordinatesOf(i32(run));
    for (int64_t panel = 0; panel < panels; ++panel) {
      int64_t offset =
          run * rows * kPanelBytes + panel * type.getLayout().getGroupStride();
      Value target = add32(place, offset);
      coordinates.back() = i32(panel * kPanelBytes / elementBytes);
      // The innermost dimension comes first.
      std::string text = "cp.async.bulk.tensor." +
                         std::to_string(coordinates.size()) +
                         "d.shared::cluster.global.mbarrier::complete_tx::"
                         "bytes [$0], [$1, {";
      std::string constraints = "r,l";
      SmallVector<Value> operands = {sharedPointerAt(target), parameter};
      for (Value coordinate : llvm::reverse(coordinates)) {
        text += (operands.size() > 2 ? ", $" : "$") +
                std::to_string(operands.size());
        constraints += ",r";
        operands.push_back(coordinate);
      }
      text += "}], [$" + std::to_string(operands.size()) + "];";
      operands.push_back(*barrier);
      instruct(text, constraints + ",r,~{memory}", operands);
    }
  }
  return success();
}

LogicalResult NVVMLowering::copyRowsByBoxes(CopyRowsOp op) {
  BufType type = op.getBuffer().getType();
  auto slot = op.getBuffer().getDefiningOp<SlotOp>();
  int64_t group = op.getGroup(), rows = type.getRows();
  int64_t elementBytes = type.getElement().getIntOrFloatBitWidth() / 8;
  int64_t box[] = {rows / group, group, kPanelBytes / elementBytes};
  unsigned argument = cast<BlockArgument>(op.getSource()).getArgNumber();
  if (failed(copyBoxes(op, op.getBuffer(), argument, box, rows, [&](Value) {
        Value token = add(divide(itemField(Field::RowBegin), group),
                          itemField(Field::QBegin));
        Value head = mul(itemField(Field::KVHead), group);
        return SmallVector<Value>{toI32(token), toI32(head), i32(0)};
      })))
    return failure();
  filledByThreads[slot.getChannel()] =
      arith::ConstantIntOp::create(b, loc, 0, 1);
  return success();
}

LogicalResult NVVMLowering::copyKVByBoxes(CopyKVOp op) {
  BufType type = op.getBuffer().getType();
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  int64_t rows = op.getBoxRows(), rank = view.getPoolRank();
  int64_t elementBytes = type.getElement().getIntOrFloatBitWidth() / 8;
  SmallVector<int64_t> box(rank, 1);
  box[view.getKeyDimension()] = rows;
  box.back() = kPanelBytes / elementBytes;
  unsigned argument =
      views.find(op.getView())->second.pools[view.getPool(op.getPart())];
  auto slot = op.getBuffer().getDefiningOp<SlotOp>();
  Value first = scalar(op.getKey());
  Value beyond = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                       add(first, type.getRows()),
                                       itemField(Field::KVLen));
  auto branch = scf::IfOp::create(b, loc, beyond, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  // The view's address arithmetic, with strides of 1 in one dimension and of 0
  // in all others, says where a row lies in that dimension.
  auto coordinatesOf = [&](Value run) {
    Value key =
        add(first, fromI32(arith::MulIOp::create(b, loc, run, i32(rows))));
    if (view.getPageSize() > 0)
      key = mul(divide(key, rows), rows);
    SmallVector<Value> coordinates;
    Value entry;
    for (int64_t dim = 0; dim < rank; ++dim) {
      KVRowAddress where = rowAddress(op.getView(), op.getPart(), key);
      SmallVector<Value> strides(rank, index(0));
      strides[dim] = index(1);
      where.strides = strides;
      auto lookup = [&](Value entryIndex) -> Value {
        if (!entry)
          entry = fromI32(loadEntry(op.getView(), op.getPart(), entryIndex));
        return entry;
      };
      where.lookup = lookup;
      coordinates.push_back(toI32(view.buildRowOffset(b, loc, where)));
    }
    return coordinates;
  };
  if (failed(copyBoxes(op, op.getBuffer(), argument, box, rows, coordinatesOf)))
    return failure();
  filledByThreads[slot.getChannel()] = beyond;
  b.setInsertionPointToStart(branch.thenBlock());
  return success();
}
