//===- CompanionStage.h - kernels of what stands beside attention -*- C++
//-*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The frame of a stage of rows: buffers, a kernel whose items are tiles of rows
// of one head, or of one part of a head's columns, and the stage's entry in the
// manifest. Between begin() and end() an op computes with tiles of f32.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITOFITILE_COMPANIONSTAGE_H
#define FI_LIB_CONVERSION_FITOFITILE_COMPANIONSTAGE_H

#include "StageBuilder.h"

namespace fi::tile {

/// The largest divisor of `columns` that is a multiple of 8 and at most `most`.
int64_t getColumnPart(int64_t columns, int64_t most);

class CompanionStage {
public:
  CompanionStage(mlir::OpBuilder &b, CompanionOpInterface op,
                 ProgramBuffers &buffers, const llvm::Twine &name)
      : b(b), loc(op.getLoc()), op(op), buffers(buffers), name(name.str()),
        stage(b, op.getLoc()), guard(b) {}

  /// The buffer of an operand.
  unsigned use(mlir::Value operand) { return stage.use(buffers.get(operand)); }
  /// The buffer of a result, or of the destination that stands in its place.
  mlir::FailureOr<unsigned> place(unsigned index = 0);
  /// The buffer of what has other rows than the stage, and is read in whole.
  unsigned useWhole(const Buffer &buffer) {
    whole.push_back(b.getStringAttr(buffer.name));
    return stage.use(buffer);
  }
  unsigned useWhole(mlir::Value value) { return useWhole(buffers.get(value)); }
  /// A temporary with the op's rows, for a stage that follows.
  Buffer addTemporary(llvm::ArrayRef<int64_t> shape) {
    return buffers.addTemporary(shape, f32,
                                buffers.rowsOf(op.getRowOperands().front()));
  }
  unsigned use(const Buffer &buffer) { return stage.use(buffer); }
  /// The stage has that many rows, not those of the op.
  void setRows(int64_t count) { fixedRows = b.getI64IntegerAttr(count); }
  ProgramBuffers &getBuffers() { return buffers; }

  /// Begins the kernel, whose tiles have up to `columns` columns. Every head
  /// has `parts` parts, each of which is an item.
  void begin(int64_t columns, int64_t heads, int64_t parts = 1);
  mlir::DictionaryAttr end();

  mlir::Value argument(unsigned buffer) { return entry->getArgument(buffer); }
  mlir::Value field(Field which);
  mlir::Value index(int64_t value);
  mlir::Value number(double value);
  mlir::RankedTensorType tile(int64_t rows, int64_t columns,
                              mlir::Type element) const {
    return mlir::RankedTensorType::get({rows, columns}, element);
  }

  /// The first of `columns` columns of the item's part.
  mlir::Value firstColumn(int64_t columns);
  /// A tile as it lies in memory.
  mlir::Value loadRaw(unsigned buffer, int64_t columns, mlir::Value first = {},
                      int64_t step = 1);
  /// A tile of rows in f32: `columns` of them from `first` on, `step` apart, or
  /// all where `first` is null.
  mlir::Value load(unsigned buffer, int64_t columns, mlir::Value first = {},
                   int64_t step = 1);
  /// Stores a tile, converted to what the buffer holds.
  void store(mlir::Value value, unsigned buffer, mlir::Value first = {},
             int64_t step = 1);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type f32 = b.getF32Type();
  int64_t rows = 0;
  /// Of the item.
  mlir::Value head, part;

private:
  CompanionOpInterface op;
  ProgramBuffers &buffers;
  std::string name;
  llvm::SmallVector<mlir::Attribute> whole;
  mlir::Attribute fixedRows;
  StageBuilder stage;
  mlir::OpBuilder::InsertionGuard guard;
  std::string symbol;
  int64_t items = 0;
  mlir::Block *entry = nullptr;
  mlir::Value item;
};

/// Parts of rows as wide as a warp moves at once.
inline constexpr int64_t kMostColumns = 256;

/// The stage of an op; null after an error.
mlir::DictionaryAttr buildRows(CompanionStage &stage, GatedOp op);
mlir::DictionaryAttr buildRows(CompanionStage &stage, RopeOp op);
mlir::DictionaryAttr buildRows(CompanionStage &stage, QuantiseOp op);
mlir::DictionaryAttr buildRows(CompanionStage &stage, DequantiseOp op);
mlir::DictionaryAttr buildRows(CompanionStage &stage, PackBitsOp op);
mlir::DictionaryAttr buildRows(CompanionStage &stage, SegmentPackBitsOp op);

/// The stages that find scales which a whole tensor, or a head, shares: the
/// largest numbers of rows, then those of all rows. The codes are a stage of
/// fi.quantise as by scales that are given.
mlir::LogicalResult buildSharedScales(mlir::OpBuilder &b, QuantiseOp op,
                                      ProgramBuffers &buffers,
                                      llvm::StringRef name,
                                      llvm::SmallVectorImpl<mlir::Attribute> &);

/// A region that transforms pairs of rows, and what of a row it transforms.
struct PairTransform {
  mlir::Region &region;
  Pairing pairing;
  /// Paired elements, of all.
  int64_t dims, dim;
  int64_t rows;
  /// Request, head and position, then the captures.
  llvm::SmallVector<mlir::Value> arguments;
  /// Loads columns of the rows in f32, and stores them: columns, the first,
  /// the distance of one from the next.
  llvm::function_ref<mlir::Value(int64_t, mlir::Value, int64_t)> load;
  llvm::function_ref<void(mlir::Value, mlir::Value, int64_t)> store;
};
/// Transforms a tile of rows, and stores what is not paired as it is.
mlir::LogicalResult buildTransform(mlir::OpBuilder &b, mlir::Location loc,
                                   const PairTransform &transform);

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITOFITILE_COMPANIONSTAGE_H
