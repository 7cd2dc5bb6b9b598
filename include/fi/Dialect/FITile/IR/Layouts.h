//===- Layouts.h - arithmetic of layouts ------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which register of which lane of which warp holds an element of a tile, and
// where a chunk of a row lies in shared memory. A layout is an atom, which is a
// table from the PTX ISA, repeated along rows and columns.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_IR_LAYOUTS_H
#define FI_DIALECT_FITILE_IR_LAYOUTS_H

#include "fi/Dialect/FITile/IR/FITile.h"

namespace fi::tile {

constexpr int64_t kLanes = 32;
/// Lanes that share the rows of an mma fragment.
constexpr int64_t kQuad = 4;
/// Columns that a lane has side by side in the atoms of rows.
constexpr int64_t kRowChunk = 8;
/// Bytes that ldmatrix and cp.async move at once.
constexpr int64_t kChunkBytes = 16;

struct AtomInfo {
  int64_t rows, columns, registers;
};
AtomInfo getAtomInfo(Atom atom);
/// Lanes that share a row.
int64_t getRowLanes(Atom atom);
/// Whether an atom is one of rows, rather than a fragment of a product.
bool isRowAtom(Atom atom);
/// The atom of rows for tiles of so many columns.
Atom getRowAtom(int64_t columns);

struct Position {
  int64_t row, column;
  bool operator==(const Position &other) const {
    return row == other.row && column == other.column;
  }
};
/// Element in register `reg` of a lane, within the atom's block.
Position getAtomPosition(Atom atom, int64_t reg, int64_t lane);

/// The registers of a placed tile.
class RegisterLayout {
public:
  /// Of a tile with an encoding of this dialect.
  static mlir::FailureOr<RegisterLayout> of(mlir::RankedTensorType type);

  int64_t getRegisters() const { return registers; }
  FragAttr getFrag() const { return frag; }
  /// Whether registers run over rows (columns) at all.
  bool overRows() const { return kind != Kind::Columns; }
  bool overColumns() const { return kind != Kind::Rows; }
  bool isPartial() const { return kind == Kind::Partial; }
  /// Columns that a lane holds in neighbouring registers; what a lane adds to
  /// columns is a multiple of it.
  int64_t getNeighbours() const;

  int64_t getRowLanes() const { return fi::tile::getRowLanes(frag.getAtom()); }
  /// Columns from one repeat to the next.
  int64_t getRepeatColumns() const;
  /// Whether some lanes have registers of columns from `column` on, without the
  /// lane's part, beyond a tile of so many columns.
  bool goesBeyond(int64_t column, int64_t columns) const;

  /// The element that a register holds.
  Position getPosition(int64_t reg, int64_t lane, int64_t warp) const;
  /// The part of a position that depends on the register alone; the rest
  /// depends on lane and warp alone.
  Position getRegisterPart(int64_t reg) const;

private:
  enum class Kind { Matrix, Rows, Columns, Partial };
  RegisterLayout(FragAttr frag, Kind kind);
  FragAttr frag;
  Kind kind;
  int64_t registers;
};

/// Whether warps tell one another parts of a reduction, and the bytes of shared
/// memory that it takes: for each row those of its warps, one behind the other.
bool spansWarps(ReduceOp op);
/// Where they lie: an attribute of such a reduction.
constexpr llvm::StringLiteral kOffsetAttr = "fi_tile.offset";
int64_t getReductionPitch(FragAttr frag);
int64_t getReductionBytes(ReduceOp op);

/// A picture of a layout: which lane and register holds each element of the
/// first atom, for diagnostics.
std::string drawLayout(mlir::RankedTensorType type);

/// Byte offset of chunk `chunk` of row `row` in a buffer.
int64_t getChunkOffset(SmemAttr layout, int64_t row, int64_t chunk);
/// Bytes that are copied at once into a buffer whose rows lie one behind the
/// other in memory: a chunk, or half of one where rows have an odd number of
/// halves.
int64_t getCopyBytes(BufType type);
/// The layout for rows of `columns` elements: swizzled, or of an odd pitch.
/// Columns are padded to a multiple of 16, what a product reads at once.
SmemAttr getSmemLayout(mlir::MLIRContext *context, int64_t columns,
                       mlir::Type element);
/// The layout of so many rows in panels of 128 bytes a row, which wgmma reads.
SmemAttr getPanelLayout(mlir::MLIRContext *context, int64_t rows);
/// Times that the busiest bank is used when 8 rows of one chunk are read at
/// once (ldmatrix), at worst over rows and chunks; 1 is free of conflicts.
int64_t countBankConflicts(SmemAttr layout, int64_t rows, int64_t chunks);

/// Bytes of a row of a group's state in shared memory: rows begin 8 banks
/// apart, so that the rows of a fragment that are written at once do not
/// collide.
inline int64_t getGroupStatePitch(int64_t columns) {
  return (columns * 4 + 127) / 128 * 128 + 32;
}
/// Bytes of a group's state, with its statistic behind the outputs.
inline int64_t getGroupStateBytes(mlir::RankedTensorType output) {
  return output.getDimSize(0) * (getGroupStatePitch(output.getDimSize(1)) + 4);
}

} // namespace fi::tile

#endif // FI_DIALECT_FITILE_IR_LAYOUTS_H
