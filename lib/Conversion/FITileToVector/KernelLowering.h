//===- KernelLowering.h - one tile kernel to loops over vectors --*- C++
//-*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of lowering one kernel for the CPU. Where a tile value lives:
//
//   buffer    in the scratch arena: RxC padded to whole vectors, R or C alone;
//   rows      keys or values in memory, by a table of row offsets, never copied
//             unless a product needs them packed;
//   nowhere   elementwise work and row reductions are computed when something
//             asks for them, in loops over rows that keep values in vectors.
//
// The members are implemented by topic: FITileToVector.cpp (signature, control
// flow), RowDomains.cpp (what rows stand for), RowLoops.cpp (elementwise work),
// Dot.cpp and MatrixTiles.cpp (products), Visibility.cpp (parts of products
// that masks hide), Memory.cpp (ABI, loads and stores), Columns.cpp (parts of
// tiles), Math.cpp (functions on vectors).
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITILETOVECTOR_KERNELLOWERING_H
#define FI_LIB_CONVERSION_FITILETOVECTOR_KERNELLOWERING_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"
#include <functional>
#include <set>

namespace fi::tile {

class KernelLowering {
public:
  KernelLowering(KernelOp kernel, TargetAttr target);

  /// Creates the function before the kernel. Returns the scratch bytes it
  /// needs.
  mlir::FailureOr<int64_t> run();

private:
  using Value = mlir::Value;
  using Location = mlir::Location;
  using Operation = mlir::Operation;
  using LogicalResult = mlir::LogicalResult;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;

  //===--- Tiles ----------------------------------------------------------===//

  /// What varies in a tile: nothing is a scalar; rows, Rx1; keys, 1xC; both.
  enum class Kind { Scalar, Rows, Columns, Matrix };
  static Kind kindOf(Value value);
  static mlir::RankedTensorType tileType(Value value);
  int64_t padded(int64_t size) const { return (size + W - 1) / W * W; }

  /// A buffer in the arena for a tile of that type.
  Value allocate(mlir::RankedTensorType type);
  int64_t rowLength(int64_t columns, mlir::Type element) const;
  /// The same bytes of a buffer as i32, half as many columns (for bf16 pairs).
  Value viewAsPairs(Value buffer);
  Value allocateRaw(ArrayRef<int64_t> shape, mlir::Type element);

  //===--- Control flow (FITileToVector.cpp) ------------------------------===//

  LogicalResult lowerBlock(mlir::Block &block);
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerForItems(ForItemsOp op);
  LogicalResult lowerForKeys(ForKeysOp op);
  LogicalResult lowerFor(Operation *op);
  LogicalResult lowerIf(Operation *op);
  LogicalResult hoistInvariants(mlir::Region &body);
  LogicalResult lowerBody(mlir::Block &body, mlir::ValueRange carried);
  /// Puts the initial values of carried tiles into buffers.
  LogicalResult bindCarried(mlir::ValueRange inits, mlir::ValueRange arguments,
                            mlir::ValueRange results);
  Value fill(Value tile, Value like);
  /// Puts yielded tiles into the buffers of the carried ones.
  LogicalResult yieldCarried(Operation *terminator, mlir::ValueRange arguments);

  //===--- What rows stand for (RowDomains.cpp) ---------------------------===//

  /// Finds the tiles whose rows are keys: all of these count, whatever the
  /// number of the item's rows.
  void findRowDomains();
  bool hasKeysAsRows(Value tile);
  /// Number of rows that a loop over a tile's rows computes if that is known,
  /// else 0: then it is the item's.
  int64_t fixedRows(Value tile) {
    return hasKeysAsRows(tile) ? tileType(tile).getDimSize(0) : 0;
  }
  Value rowLimit(int64_t fixed) { return fixed ? index(fixed) : rowBound; }
  Value rowVectorLimit(int64_t fixed) {
    return fixed ? index(padded(fixed)) : rowVectorBound;
  }

  //===--- Elementwise work (RowLoops.cpp) --------------------------------===//

  /// Whether the op is computed on demand.
  static bool isLazy(Operation *op);
  /// Gives each tile a buffer; what is ready among the block's yielded values
  /// comes along.
  LogicalResult materialise(ArrayRef<Value> tiles, mlir::Block *block);

  /// The plan of one materialise call.
  struct Phases {
    /// Where a value is computed: matrices in even phases, rows in odd ones.
    llvm::DenseMap<Value, int> phase;
    llvm::SetVector<Value> stored;
    /// In the order of the visit: what is stored gets its buffer in this order.
    llvm::SetVector<Operation *> visited;
    llvm::DenseMap<Value, int> lastLeafUse;
    std::set<std::pair<void *, int>> demanded;
  };
  int phaseOf(Phases &phases, Value tile);
  LogicalResult demand(Phases &phases, Value tile, int phase);
  bool isReady(Value tile);
  bool isRecomputable(Value tile);
  static bool isFree(Operation *op);
  bool isExpensive(Value tile);
  bool usesAreOver(Phases &phases, Operation *op);
  bool mayUpdateInPlace(Phases &phases, Value yielded, Value carried);

  /// One iteration of a loop over rows: values by (tile, chunk of columns).
  struct Iteration {
    Iteration(bool overRows, Value row) : overRows(overRows), row(row) {}
    bool overRows; // vectors along rows; else along the columns of one row
    Value row;     // first row of the vectors, or the row
    Value column;  // where chunk 0 begins, if not at the first column
    llvm::DenseMap<std::pair<Value, int64_t>, Value> values;
  };
  Value evaluate(Iteration &iteration, Value tile, int64_t chunk);
  Value evaluateLeaf(Iteration &iteration, Value tile, int64_t chunk);
  Value evaluateReduction(Iteration &iteration, ReduceOp op, int64_t chunk);
  Value combine(ReduceKind kind, Value a, Value b);
  Value reduceLong(Iteration &iteration, ReduceOp op);
  /// Of what lies behind a tile's last column in its last chunk: neutral.
  Value maskTail(ReduceOp op, Value chunk);
  Value columnOf(const Iteration &iteration, int64_t chunk) {
    return iteration.column ? add(iteration.column, chunk * W)
                            : index(chunk * W);
  }
  /// Rows of more columns are worked on in loops over chunks, a few at a time.
  static constexpr int64_t kLongRow = 1024, kChunksAtOnce = 4;
  static bool isLong(int64_t columns) { return columns > kLongRow; }
  /// Columns of a long row, from the first on, that such loops cover.
  int64_t loopedColumns(int64_t columns) const {
    return columns / (kChunksAtOnce * W) * kChunksAtOnce * W;
  }
  /// Calls `body` with the first column of each chunk and its number of
  /// columns; long rows in a loop.
  void forChunks(int64_t columns,
                 llvm::function_ref<void(Value, int64_t)> body);
  /// Computes values of one width for a row and stores them.
  void storeChunks(Value row, ArrayRef<Value> values);
  Value rowScalar(Iteration &iteration, Value tile);
  void storeVector(Value vector, Value buffer, mlir::ValueRange indices);
  Value loadVector(Value buffer, mlir::ValueRange indices, mlir::Type element);
  void emitRowsPhase(Phases &phases, int phase);
  void emitMatrixPhase(Phases &phases, int phase);
  void emitMatrixLoop(ArrayRef<Value> roots);
  Value gatherVector(GatherOp op, ArrayRef<Value> indices);
  Value gatherRun(GatherOp op, ArrayRef<Value> indices);
  Value gatherUnless(GatherOp op, ArrayRef<Value> indices, Value condition,
                     llvm::function_ref<Value()> make);
  /// Of a vector, or what all lanes have.
  Value laneOf(Value value, int64_t lane);
  Value gatherEach(GatherOp op, ArrayRef<Value> indices);
  /// A loop whose body is built with the induction variable.
  void loop(Value lower, Value upper, int64_t step,
            llvm::function_ref<void(Value)> body);

  //===--- Functions on vectors (Math.cpp) --------------------------------===//

  Value maximum(Value a, Value b);
  Value exp2Bounded(Value x);
  Value elementwise(Operation *op, mlir::ValueRange operands);
  /// Reduces a vector to a scalar, in a fixed order.
  Value horizontal(ReduceKind kind, Value vector);

  void prefetchRows(DotOp op, Value first, int64_t count, Value step,
                    int64_t width, int64_t steps, bool pairs);

  //===--- Hidden scores (Visibility.cpp) ---------------------------------===//

  /// Keys from the first visible one to behind the last, by whole vectors, for
  /// the block of `mr` rows that begins at a row.
  struct Extents {
    Value first, limit; // memref<rows x index>
  };
  /// What a mask hides of the product's result, or of its first operand, which
  /// is 0 there: nothing where no mask is known.
  std::optional<Extents> extentsOfResult(DotOp op);
  std::optional<Extents> extentsOfTerms(DotOp op);
  std::optional<Extents> extentsOf(Value visible, mlir::Block *block);
  /// Builds `body` where the block at `row` sees any of the columns.
  void whereVisible(const std::optional<Extents> &extents, Value row,
                    Value column, int64_t columns,
                    llvm::function_ref<void()> body);
  bool isAvailable(Value value);

  //===--- Products (Dot.cpp) ---------------------------------------------===//

  LogicalResult lowerDot(DotOp op);
  bool multipliesByTiles(DotOp op);
  bool hasOneTileShape();
  void dotByTiles(DotOp op, Value accBuffer, Value factor, Value result,
                  const std::optional<Extents> &part);
  Value viewAs(Value buffer, ArrayRef<int64_t> shape, mlir::Type element);
  void dotAlongRows(DotOp op, Value aBuffer, Value result, bool pairs);
  Value sumLanes(llvm::SmallVector<Value> vectors);
  Value packTransposed(DotOp op, int64_t columnsPerPanel);
  Value packPairs(DotOp op);
  Value packWidened(DotOp op);
  llvm::SmallVector<Value> transpose(llvm::SmallVector<Value> rows);
  /// A vector of the row of a product's second operand, in f32 (or i32 pairs).
  Value loadOperandRow(DotOp op, Value row, Value column, int64_t width,
                       bool pairs);

  //===--- Memory (Memory.cpp) --------------------------------------------===//

  /// Keys or values of a tile, found by offsets.
  struct KVRows {
    Value base;    // memref<?xT>
    Value offsets; // memref<keys x index>, elements from the base
    int64_t rows, columns;
    mlir::Type element;
    bool isPacked = false; // two columns of a tile to an element
    bool adjacent = false; // successive rows lie one behind the other
    Value nextOffsets; // those of the tile after this one, where it is fetched
  };
  struct Argument {
    Value base; // memref<?xT>, or the scalar
    llvm::SmallVector<Value> sizes, strides;
  };
  struct View {
    llvm::SmallVector<unsigned> pools, pages;
  };

  void createFunction();
  Value loadField(Value pointer, int64_t offset, unsigned bits);
  Value itemField(Field field);
  Value flatMemRef(Value pointer, mlir::Type element);
  Value offsetPointer(Value pointer, Value bytes);
  /// Of the item's head, or of another.
  Value rowOffset(const Argument &argument, Value row, int64_t group,
                  bool clamp, Value ofHead = {});
  /// Asks for `columns` elements of a row that begin at `offset`.
  void prefetchRow(const Argument &argument, Value offset, int64_t columns,
                   bool forWriting);
  /// The pool where rows of a part lie.
  const Argument &poolOf(Value view, KVPart part);
  /// By the strides of the pool, or by others.
  Value kvRowOffset(Value view, KVPart part, Value key,
                    ArrayRef<Value> strides = {});
  LogicalResult lowerLoadRows(LoadRowsOp op);
  LogicalResult lowerLoadColumns(LoadColumnsOp op);
  LogicalResult lowerStoreRows(StoreRowsOp op);
  void describeRows(ArrayRef<LoadKVOp> loads, bool withNext);
  void locateRows(ArrayRef<LoadKVOp> loads, Value key, bool next);
  void advanceRows(ArrayRef<LoadKVOp> loads);
  void touchRows(ArrayRef<LoadKVOp> loads);
  void prefetch(const KVRows &rows, Value row, Value column);
  void prefetchNumbered(const KVRows &rows, Value first, Value number,
                        int64_t perRow, int64_t elements);
  LogicalResult lowerLoadKV(LoadKVOp op);
  LogicalResult lowerStoreKV(StoreKVOp op);
  LogicalResult lowerColumns(ColumnsOp op);
  Value takeColumns(ColumnsOp op, Value base, ArrayRef<Value> indices,
                    int64_t from, int64_t count);
  LogicalResult lowerLoadState(LoadStateOp op);
  LogicalResult lowerStoreState(StoreStateOp op);
  void copyPackedRowIn(Value base, Value offset, int64_t columns, Value buffer,
                       Value row);
  /// Copies a row of memory to a row of a buffer, converting, and back. In
  /// memory columns lie `step` elements apart.
  void copyRowIn(Value base, Value offset, int64_t columns, mlir::Type element,
                 Value buffer, Value row, int64_t step = 1);
  void copyRowOut(Value buffer, Value row, int64_t columns, Value base,
                  Value offset, int64_t step = 1);
  Value loadPart(Value base, Value offset, int64_t count, mlir::Type element);
  /// A vector of what memory holds as numbers of f32.
  Value widen(Value part);
  LogicalResult lowerLoadScales(LoadScalesOp op);
  LogicalResult lowerStoreScales(StoreScalesOp op);
  LogicalResult lowerBlockMax(BlockMaxOp op);
  void copyPackedRowOut(Value buffer, Value row, int64_t columns, Value base,
                        Value offset);

  //===--- Small builders -------------------------------------------------===//

  Value index(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value sub(Value a, Value b);
  Value minimum(Value a, Value b);
  Value roundUp(Value a, int64_t multiple);
  Value splatVector(mlir::Type element, double value);
  mlir::VectorType vectorOf(mlir::Type element) const {
    return mlir::VectorType::get({W}, element);
  }
  Value scalar(Value value) { return scalars.lookupOrDefault(value); }

  KernelOp kernel;
  ScheduleAttr schedule;
  mlir::OpBuilder b;
  /// Inserts what is made once, before the loop over items.
  mlir::OpBuilder entry;
  Location loc;
  const int64_t W;
  /// Whether the target multiplies tiles of bf16 (MatrixTiles.cpp).
  const bool matrixTiles;
  mlir::func::FuncOp function;

  llvm::SmallVector<Argument> arguments;
  llvm::DenseMap<Value, View> views;
  mlir::IRMapping scalars;
  llvm::DenseMap<Value, Value> buffers;
  llvm::DenseMap<Value, KVRows> kvRows;
  llvm::DenseMap<Value, Value> pairViews;
  llvm::DenseMap<Value, Extents> extents;
  llvm::DenseSet<Operation *> lowered;
  llvm::DenseMap<Value, Value> preferred;

  Value arena, itemsPointer, rangesPointer, stateOutput, stateStatistic;
  /// Tiles of one domain have one representative; keyDomains has those of keys.
  llvm::EquivalenceClasses<void *> rowDomains;
  llvm::DenseSet<void *> keyDomains;

  Value itemPointer;
  /// Rows that loops run over: the item's, rounded up to `mr`; to vectors.
  Value rowBound, rowVectorBound;
  int64_t scratchBytes = 0;
};

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITILETOVECTOR_KERNELLOWERING_H
