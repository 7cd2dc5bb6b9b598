//===- Alignment.cpp - what kernels ask of tensors' addresses -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies into shared memory move 16 bytes at a time, tiles in registers pairs
// of elements, or those that a lane has side by side. The manifest says so of
// arguments and results (docs/abi.md), and the runtime refuses what would be a
// fault of the device.
//
//===----------------------------------------------------------------------===//

#include "Alignment.h"
#include "fi/Dialect/FITile/IR/Layouts.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

SmallVector<int64_t> fi::tile::getAlignments(KernelOp kernel) {
  SmallVector<int64_t> result(kernel.getArgumentTypes().size(), 1);
  auto need = [&](Value memory, int64_t bytes) {
    auto argument = dyn_cast<BlockArgument>(memory);
    if (!argument || argument.getOwner() != &kernel.getBody().front())
      return;
    int64_t &known = result[argument.getArgNumber()];
    known = std::max(known, bytes);
  };
  auto needPool = [&](Value view, KVPart part, int64_t bytes) {
    auto op = view.getDefiningOp<ViewOp>();
    if (!op)
      return;
    auto type = cast<KVViewTypeInterface>(view.getType());
    need(op.getPools()[type.getPool(part)], bytes);
  };
  /// Bytes of two elements in memory; of one, where a row has no more. Lanes
  /// along rows move up to 16 bytes at once.
  auto pair = [](Type memoryElement, RankedTensorType tile) {
    int64_t bits = memoryElement.isIntOrFloat()
                       ? memoryElement.getIntOrFloatBitWidth()
                       : 64;
    int64_t count = tile.getDimSize(1) > 1 ? 2 : 1;
    FailureOr<RegisterLayout> layout = RegisterLayout::of(tile);
    if (count > 1 && succeeded(layout) &&
        isRowAtom(layout->getFrag().getAtom()))
      count = layout->getNeighbours();
    return std::min(std::max<int64_t>(1, bits * count / 8), kChunkBytes);
  };
  auto elementOf = [](Value memory) {
    return cast<MemRefType>(memory.getType()).getElementType();
  };
  auto elementOfPool = [](Value view, KVPart part) {
    return cast<KVViewTypeInterface>(view.getType()).getPartType(part);
  };
  kernel.walk([&](Operation *op) {
    if (auto copy = dyn_cast<CopyRowsOp>(op))
      need(copy.getSource(), getCopyBytes(copy.getBuffer().getType()));
    else if (auto copy = dyn_cast<CopyKVOp>(op))
      needPool(copy.getView(), copy.getPart(),
               getCopyBytes(copy.getBuffer().getType()));
    else if (auto load = dyn_cast<LoadRowsOp>(op))
      need(load.getSource(), pair(elementOf(load.getSource()), load.getType()));
    else if (auto store = dyn_cast<StoreRowsOp>(op))
      need(store.getTarget(),
           pair(elementOf(store.getTarget()), store.getTile().getType()));
    else if (auto load = dyn_cast<LoadColumnsOp>(op))
      need(load.getSource(), pair(elementOf(load.getSource()), load.getType()));
    else if (auto load = dyn_cast<LoadKVOp>(op))
      needPool(
          load.getView(), load.getPart(),
          pair(elementOfPool(load.getView(), load.getPart()), load.getType()));
    else if (auto store = dyn_cast<StoreKVOp>(op))
      needPool(store.getView(), store.getPart(),
               pair(elementOfPool(store.getView(), store.getPart()),
                    store.getTile().getType()));
  });
  return result;
}

/// Raises what `known` says of the buffers of each kernel that `manifest`
/// names.
static void collect(Attribute manifest, ArrayAttr buffers,
                    const llvm::StringMap<SmallVector<int64_t>> &kernels,
                    llvm::StringMap<int64_t> &known) {
  if (auto array = dyn_cast<ArrayAttr>(manifest)) {
    for (Attribute one : array)
      collect(one, buffers, kernels, known);
    return;
  }
  auto dictionary = dyn_cast<DictionaryAttr>(manifest);
  if (!dictionary)
    return;
  if (auto own = dictionary.getAs<ArrayAttr>("buffers"))
    buffers = own;
  if (auto symbol = dictionary.getAs<StringAttr>("symbol"); symbol && buffers) {
    auto kernel = kernels.find(symbol.getValue());
    if (kernel != kernels.end())
      for (auto [name, bytes] : llvm::zip(buffers, kernel->second))
        if (auto text = dyn_cast<StringAttr>(name))
          known[text.getValue()] = std::max(known[text.getValue()], bytes);
  }
  for (NamedAttribute entry : dictionary)
    collect(entry.getValue(), buffers, kernels, known);
}

DictionaryAttr
fi::tile::withAlignments(DictionaryAttr manifest,
                         const llvm::StringMap<SmallVector<int64_t>> &kernels) {
  llvm::StringMap<int64_t> known;
  collect(manifest, ArrayAttr(), kernels, known);
  Builder b(manifest.getContext());
  NamedAttrList entries(manifest);
  for (StringRef list : {"arguments", "results"}) {
    auto array = dyn_cast_or_null<ArrayAttr>(manifest.get(list));
    if (!array)
      continue;
    entries.set(list,
                b.getArrayAttr(llvm::map_to_vector(array, [&](Attribute one) {
                  auto dictionary = dyn_cast<DictionaryAttr>(one);
                  auto name = dictionary ? dictionary.getAs<StringAttr>("name")
                                         : StringAttr();
                  int64_t bytes = name ? known.lookup(name.getValue()) : 0;
                  if (bytes <= 1)
                    return one;
                  NamedAttrList entry(dictionary);
                  entry.set("align", b.getI64IntegerAttr(bytes));
                  return Attribute(entry.getDictionary(b.getContext()));
                })));
  }
  return entries.getDictionary(b.getContext());
}
