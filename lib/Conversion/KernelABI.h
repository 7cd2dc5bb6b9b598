//===- KernelABI.h - the ABI as both lowerings see it -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the fields of items lie, and what the manifest learns of bodies once
// they are lowered: the same for the CPU and for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_KERNELABI_H
#define FI_LIB_CONVERSION_KERNELABI_H

#include "fi/ABI/KernelABI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace fi::tile {

/// Of a kernel whose items are the tiles of a memref's rows, each for all heads
/// (docs/abi.md): the number of that argument, and the heads.
inline constexpr llvm::StringLiteral kRowItemsAttr = "fi_tile.row_items";

struct ItemFieldPlace {
  size_t offset; // bytes
  unsigned bits;
};

inline ItemFieldPlace getItemFieldPlace(Field field) {
  switch (field) {
  case Field::Request:
    return {offsetof(fi_item, request), 32};
  case Field::KVHead:
    return {offsetof(fi_item, kv_head), 32};
  case Field::RowBegin:
    return {offsetof(fi_item, row_begin), 32};
  case Field::RowCount:
    return {offsetof(fi_item, row_count), 32};
  case Field::QBegin:
    return {offsetof(fi_item, q_begin), 64};
  case Field::QLen:
    return {offsetof(fi_item, q_len), 64};
  case Field::KVLen:
    return {offsetof(fi_item, kv_len), 64};
  case Field::KVOrigin:
    return {offsetof(fi_item, kv_origin), 64};
  case Field::Slot:
    return {offsetof(fi_item, slot), 32};
  case Field::SlotCount:
    return {offsetof(fi_item, slot_count), 32};
  case Field::FirstSlot:
    return {offsetof(fi_item, first_slot), 32};
  }
  return {0, 32};
}

/// `manifest` with the entry `name` of each body that has a value, by symbol.
inline mlir::Attribute
withBodyEntry(mlir::Attribute manifest, llvm::StringRef name,
              const llvm::StringMap<mlir::Attribute> &values) {
  mlir::Builder b(manifest.getContext());
  if (auto array = mlir::dyn_cast<mlir::ArrayAttr>(manifest))
    return b.getArrayAttr(llvm::map_to_vector(array, [&](mlir::Attribute one) {
      return withBodyEntry(one, name, values);
    }));
  auto dictionary = mlir::dyn_cast<mlir::DictionaryAttr>(manifest);
  if (!dictionary)
    return manifest;
  mlir::NamedAttrList entries;
  for (mlir::NamedAttribute entry : dictionary)
    entries.append(entry.getName(),
                   withBodyEntry(entry.getValue(), name, values));
  if (auto symbol =
          mlir::dyn_cast_or_null<mlir::StringAttr>(dictionary.get("symbol"))) {
    auto found = values.find(symbol.getValue());
    if (found != values.end())
      entries.set(name, found->second);
  }
  return entries.getDictionary(manifest.getContext());
}

/// Scales have strides of their own in the place of the pool's: one of a page
/// does not move with the token, and none has parts if fused, or a dim but for
/// those of blocks.
template <typename OpTy>
llvm::SmallVector<mlir::Value>
getScaleStrides(OpTy op, llvm::ArrayRef<mlir::Value> strides,
                mlir::Value zero) {
  auto view = mlir::cast<KVViewTypeInterface>(op.getView().getType());
  llvm::SmallVector<mlir::Value> result(strides);
  auto paged = mlir::dyn_cast<PagedKVType>(op.getView().getType());
  if (op.getBlockScheme()) {
    if (paged && paged.getFused())
      result.insert(result.begin() + 1, zero);
    return result;
  }
  bool isPerPage = getNumberGranularity(view, op.getPart() == KVPart::Values) ==
                   Granularity::Page;
  // [pages, 1], of a pool [pages, page, dim].
  if (!view.getHeadDimension())
    return {result[0], isPerPage ? zero : result[1], zero};
  if (isPerPage)
    result.insert(paged.getOrder() == HeadOrder::NHD ? result.begin() + 1
                                                     : result.end(),
                  zero);
  if (paged && paged.getFused())
    result.insert(result.begin() + 1, zero);
  result.push_back(zero);
  return result;
}

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_KERNELABI_H
