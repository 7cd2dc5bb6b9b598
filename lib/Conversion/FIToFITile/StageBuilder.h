//===- StageBuilder.h - kernels and manifest of one stage -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the stages of a program have in common: the buffers they name, the
// kernels they make, and their part of the manifest.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITOFITILE_STAGEBUILDER_H
#define FI_LIB_CONVERSION_FITOFITILE_STAGEBUILDER_H

#include "fi/Dialect/FI/IR/FICompanions.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace fi::tile {

/// A buffer of the manifest: an argument, a result or a temporary.
struct Buffer {
  std::string name;
  /// Type in kernels: a memref with strides known at run time, or a scalar.
  mlir::Type type;
};

/// The buffers of a program, by the level-1 value that they hold.
class ProgramBuffers {
public:
  ProgramBuffers(ProgramOp program);

  /// The buffer of an argument or of a computed tensor.
  const Buffer &get(mlir::Value value) const {
    return buffers.find(value)->second;
  }
  /// The statistic of a state, beside its outputs.
  const Buffer &getStatistic(mlir::Value state) const {
    return statistics.find(state)->second;
  }
  /// Makes the buffers of a tensor that an op computes: a result of the program
  /// if it is returned, else a temporary.
  mlir::LogicalResult define(mlir::Value value, mlir::Value rowsOf) {
    return define(value, this->rowsOf(rowsOf));
  }
  mlir::LogicalResult define(mlir::Value value, mlir::Attribute rows);
  /// A tensor that no value stands for, between the stages of one op.
  Buffer addTemporary(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                      mlir::Attribute rows);
  /// What the plan knows of a number of rows that an op is given: an argument
  /// of the plan, a constant, or the size of a run argument. Null after an
  /// error.
  mlir::Attribute findRows(mlir::Operation *op, mlir::Value rows);
  /// Says how many rows a value has that no run argument gives them to: an
  /// integer argument of the plan, or a number.
  void setRows(mlir::Value value, mlir::Attribute source) {
    rowSources[value] = source;
  }
  /// Makes the buffers of a state.
  void defineState(mlir::Value state, mlir::Value rowsOf);
  /// How many rows the value has: the name of a run argument with as many, or
  /// as setRows says.
  mlir::Attribute rowsOf(mlir::Value value) const {
    return rowSources.lookup(value);
  }

  mlir::ArrayAttr getArguments() const;
  mlir::ArrayAttr getResults() const;
  mlir::ArrayAttr getTemporaries() const;

  ProgramOp program;

private:
  mlir::DictionaryAttr describe(llvm::StringRef name, mlir::ShapedType type,
                                mlir::Attribute rowsOf) const;

  llvm::MapVector<mlir::Value, Buffer> buffers, statistics;
  llvm::DenseMap<mlir::Value, mlir::Attribute> rowSources;
  llvm::SmallVector<mlir::Attribute> results, temporaries;
  llvm::SmallVector<mlir::Attribute> orderedResults;
};

/// The type under which a kernel sees a tensor or memref.
mlir::MemRefType getBufferType(mlir::ShapedType type);

/// Collects the buffers of one kernel signature, then makes kernels with it.
class StageBuilder {
public:
  StageBuilder(mlir::OpBuilder &builder, mlir::Location loc)
      : builder(builder), loc(loc) {}

  /// Index of the buffer among the kernel's arguments.
  unsigned use(const Buffer &buffer);
  /// The names, in order.
  mlir::ArrayAttr getNames() const;

  /// Makes a kernel with an empty body (but its return), sets the insertion
  /// point into it. Kernel arguments are the buffers, then the work.
  KernelOp createKernel(llvm::StringRef name, ScheduleAttr schedule);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  llvm::SmallVector<Buffer> used;
};

/// The stages, each of which makes its kernels at the builder's insertion point
/// and returns its manifest entry, or null after an error.
mlir::DictionaryAttr buildAttentionStage(mlir::OpBuilder &builder,
                                         AttentionOp op,
                                         ProgramBuffers &buffers,
                                         llvm::StringRef name);
mlir::DictionaryAttr buildAppendStage(mlir::OpBuilder &builder, AppendOp op,
                                      ProgramBuffers &buffers,
                                      llvm::StringRef name);
/// fi.merge, fi.finalize, fi.empty.
mlir::DictionaryAttr buildRowsStage(mlir::OpBuilder &builder,
                                    mlir::Operation *op,
                                    ProgramBuffers &buffers,
                                    llvm::StringRef name);

/// What stands beside attention: one stage, or several whose last is the op's.
mlir::LogicalResult
buildCompanionStages(mlir::OpBuilder &builder, CompanionOpInterface op,
                     ProgramBuffers &buffers, llvm::StringRef name,
                     llvm::SmallVectorImpl<mlir::Attribute> &stages);
mlir::DictionaryAttr buildNormStage(mlir::OpBuilder &builder,
                                    const NormParts &norm,
                                    ProgramBuffers &buffers,
                                    llvm::StringRef name);

/// Of kernels that move rows: any size of tiles will do.
inline constexpr int64_t kStageRows = 64;
/// The schedule of a kernel whose tiles are rows of `dim` elements, each worked
/// on by itself: how many rows a tile has, and on how many warps.
ScheduleAttr getRowTiling(mlir::Operation *op, int64_t dim);
/// The schedule of tiles of that many rows, on as many warps as they fill.
ScheduleAttr getRowsSchedule(mlir::Operation *op, int64_t tileRows);
/// The `bodies` entry of a stage with one.
mlir::Attribute describeBodies(mlir::Builder &builder, llvm::StringRef symbol,
                               int64_t tileRows);
/// `tile` converted to the element type of memory that it goes to.
mlir::Value convertTile(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value tile, mlir::Type element);

/// The `view` entry of the manifest.
mlir::DictionaryAttr describeView(mlir::Value view,
                                  const ProgramBuffers &buffers);
/// The buffers of a view that kernels need, and the view in a kernel.
struct ViewBuffers {
  llvm::SmallVector<unsigned> pools, pages;
  /// Of keys and of values: numbers of f32, and scales of blocks.
  std::optional<unsigned> scales[2], blocks[2];
};
/// The codes of a tile of f32: rounded to nearest, the largest of what is
/// beyond.
mlir::Value quantise(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value tile, mlir::Type storage);
/// The scales of rows of a tile of f32, a column: the largest magnitude over
/// the largest code (QTZ4).
mlir::Value rowScales(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value tile, mlir::Type storage);
/// The largest magnitude of each row, and the scales of such, as columns.
mlir::Value largestOfRows(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tile);
mlir::Value scalesOf(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value largest, mlir::Type storage);
/// The codes of a tile of f32 and, in each column of a block, the code of the
/// block's scale, both as i8; `number` multiplies all scales if it is not null
/// (QNT13).
std::pair<mlir::Value, mlir::Value>
quantiseBlocks(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
               BlockScaledType scheme, mlir::Value number);
/// The same of one block of each row, given by its even and its odd columns:
/// bytes of two codes, and the code of the scale, of its type.
std::pair<mlir::Value, mlir::Value>
quantiseBlock(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value even,
              mlir::Value odd, BlockScaledType scheme, mlir::Value number);
/// The other way: numbers of the codes in the low and in the high half of
/// bytes.
std::pair<mlir::Value, mlir::Value>
unpackFloat4(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value bytes);
ViewBuffers useView(StageBuilder &stage, mlir::Value view,
                    const ProgramBuffers &buffers);
mlir::Value createView(StageBuilder &stage, KernelOp kernel, mlir::Value view,
                       const ViewBuffers &viewBuffers);

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITOFITILE_STAGEBUILDER_H
