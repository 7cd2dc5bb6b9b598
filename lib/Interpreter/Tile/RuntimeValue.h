//===- RuntimeValue.h - values of the level 2 interpreter -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an SSA value may be while a kernel is interpreted. Tiles and scalars are
// immutable and shared, so carrying them through loops costs nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INTERPRETER_TILE_RUNTIMEVALUE_H
#define FI_INTERPRETER_TILE_RUNTIMEVALUE_H

#include "fi/ABI/KernelABI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace fi::tile {

/// A scalar (one element) or a tile (row-major). Floats are in `floats`.
/// Integers are in `integers`: sign-extended, but 0 or 1 for i1.
struct Elements {
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

/// A KV view's memory.
struct KVView {
  KVViewTypeInterface type;
  llvm::SmallVector<HostTensor, 2> pools;
  std::vector<HostTensor> tables;
};

using ElementsRef = std::shared_ptr<const Elements>;

/// A ring. Its buffers are numbered as they are acquired; each count is how
/// many have got so far.
struct Channel {
  ChannelOp op;
  int64_t depth;
  int64_t acquired = 0, committed = 0, gotten = 0, released = 0;
  /// By number modulo depth; null where nothing was copied.
  std::vector<ElementsRef> data;
};
struct BufferRef {
  Channel *channel;
  int64_t number;
};
/// A place among the first keys of an item's visited tiles.
struct CursorPlace {
  std::shared_ptr<const std::vector<int64_t>> tiles;
  size_t at;
};

/// An item without its first rows.
struct LaterRows {
  fi_item item;
  int64_t firstRow;
};

using RuntimeValue =
    std::variant<std::monostate, ElementsRef, HostTensor,
                 std::shared_ptr<const KVView>, const fi_work *,
                 const fi_item *, std::shared_ptr<const LaterRows>, Channel *,
                 BufferRef, CursorPlace>;

inline RuntimeValue makeFloats(std::vector<double> values) {
  return std::make_shared<const Elements>(Elements{std::move(values), {}});
}
inline RuntimeValue makeIntegers(std::vector<int64_t> values) {
  return std::make_shared<const Elements>(Elements{{}, std::move(values)});
}

inline mlir::Type getElementType(mlir::Type type) {
  return mlir::getElementTypeOrSelf(type);
}
inline bool hasFloats(mlir::Type type) {
  return llvm::isa<mlir::FloatType>(getElementType(type));
}
/// Bits of an integer element; `index` has 64.
inline unsigned getWidth(mlir::Type type) {
  mlir::Type element = getElementType(type);
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}
inline int64_t countElements(mlir::Type type) {
  auto tile = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tile ? tile.getNumElements() : 1;
}

/// The value of the low `width` bits, as `Elements` holds it.
inline int64_t wrap(uint64_t bits, unsigned width) {
  if (width == 1)
    return bits & 1;
  return width >= 64 ? static_cast<int64_t>(bits)
                     : llvm::SignExtend64(bits, width);
}
inline int64_t asSigned(int64_t value, unsigned width) {
  return width == 1 ? -value : value;
}
inline uint64_t asUnsigned(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

/// The nearest number of a float type.
double roundTo(mlir::Type floatType, double value);

/// `LOCATION: 'OP' op MESSAGE`
llvm::Error makeError(mlir::Operation *op, const llvm::Twine &message);

} // namespace fi::tile

#endif // FI_INTERPRETER_TILE_RUNTIMEVALUE_H
