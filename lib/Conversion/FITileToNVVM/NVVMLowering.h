//===- NVVMLowering.h - one placed tile kernel to NVVM ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// State of lowering one kernel for a GPU. A tile becomes a vector of the
// registers that one lane holds of it, so that elementwise work is the same
// operation on vectors; what lanes and warps add to a register's position is a
// value. A buffer becomes its byte offset in shared memory.
//
// The members are implemented by topic: FITileToNVVM.cpp (signature, control
// flow), Elementwise.cpp (registers), Memory.cpp (items, rows, states),
// Rows.cpp (lanes along rows), Copy.cpp (copies into shared memory),
// Buffers.cpp (tiles in it), Dot.cpp (products of 16-bit types), DotCodes.cpp
// (those with bytes), DotF32.cpp (products in f32), Marks.cpp (time stamps).
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_CONVERSION_FITILETONVVM_NVVMLOWERING_H
#define FI_LIB_CONVERSION_FITILETONVVM_NVVMLOWERING_H

#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"

namespace fi::tile {

/// Whether the kernel's module asks for checks (kCheckedAttr).
bool isChecked(KernelOp kernel);

/// Whether a kernel's marks are written: its module asks for it (kProfileAttr),
/// and there are some.
bool isProfiled(KernelOp kernel);

/// The type in memory and in registers: an i1 is a byte, and so are codes.
mlir::Type storedType(mlir::Type element, mlir::Builder &b);

class NVVMLowering {
public:
  explicit NVVMLowering(KernelOp kernel);

  /// Creates the function before the kernel.
  mlir::LogicalResult run(mlir::LLVM::GlobalOp shared);
  /// The manifest's recipes of the tensor maps that it takes (docs/abi.md).
  llvm::SmallVector<mlir::Attribute> getRecipes();
  /// What the manifest says of a profiled kernel's marks; else null.
  mlir::Attribute getMarks();

private:
  using Value = mlir::Value;
  using Location = mlir::Location;
  using Operation = mlir::Operation;
  using LogicalResult = mlir::LogicalResult;
  using Type = mlir::Type;
  template <typename T> using ArrayRef = llvm::ArrayRef<T>;

  struct Argument {
    Value base; // pointer to global memory, or the scalar
    Type element;
    bool shared = false; // the base is an offset in shared memory, i32
    llvm::SmallVector<Value> sizes, strides; // index
  };
  struct View {
    llvm::SmallVector<unsigned> pools, pages;
  };

  //===--- Control flow (FITileToNVVM.cpp) --------------------------------===//

  void createFunction();
  int32_t getLeastCTAs(int64_t threads);
  LogicalResult lowerBlock(mlir::Block &block);
  LogicalResult lowerOp(Operation *op);
  LogicalResult lowerForItems(ForItemsOp op);
  void countRowItems(mlir::DenseI64ArrayAttr rows, Value number);
  /// Threads of the warps whose program is lowered now: of a group of warps
  /// that shares tiles, or of a role.
  int64_t getThreads() const { return kLanes * warps; }
  /// What depends on the thread alone, from the number that it has among those
  /// of its CTA, or of its role.
  void setThread(Value number);
  /// All threads of the worker, or of the role, wait for one another.
  void barrier();
  LogicalResult lowerForKeys(ForKeysOp op);
  LogicalResult lowerFor(Operation *op);
  LogicalResult lowerIf(Operation *op);
  LogicalResult lowerCursor(CursorOp op);
  LogicalResult lowerAdvance(AdvanceOp op);
  LogicalResult lowerCursorKey(CursorKeyOp op);
  Value loadRange(Value number, bool end);
  void lowerFromRow(FromRowOp op);
  /// While an operation is lowered, the item's rows are those of its operand.
  class LaterRowsScope {
  public:
    LaterRowsScope(NVVMLowering &lowering, mlir::Operation *op);
    ~LaterRowsScope();

  private:
    NVVMLowering &lowering;
    llvm::DenseMap<Field, Value> fields;
    Value firstRow;
    bool isActive = false;
  };
  /// Asks for what the plan says to this launch (Prefetch.cpp).
  void prefetchPlan();
  void loadItemAtOnce();
  bool visitsKeys();
  void prefetchLine(Value base, Value bytes, Value number);
  /// The next range from `number` on that has tiles for this group of warps.
  Value cursorAt(Value number, Value last, Value step);

  //===--- Registers (Elementwise.cpp) ------------------------------------===//

  Type lowered(Type type);
  RegisterLayout layoutOf(Value tile);
  LogicalResult lowerElementwise(Operation *op);
  LogicalResult lowerConstant(Operation *op);
  LogicalResult lowerIota(IotaOp op);
  LogicalResult lowerBroadcast(BroadcastOp op);
  LogicalResult lowerMask(MaskOp op);
  LogicalResult lowerReduce(ReduceOp op);
  /// Combines each row's value with those of the other warps that share it.
  LogicalResult combineWarps(ReduceOp op, llvm::SmallVector<Value> &values);
  LogicalResult lowerBlockMax(BlockMaxOp op);
  LogicalResult lowerAny(AnyOp op);
  LogicalResult lowerRelayout(RelayoutOp op);
  LogicalResult lowerMath(Operation *op);
  /// Codes (a vector of bytes) as numbers of f16, bf16 or f32.
  Value fromCodes(Value bytes, Type code, Type element);
  Value fromCodesByPairs(Value bytes, bool isFour);
  Value combine(ReduceKind kind, Value a, Value b);
  Value combineAll(ReduceKind kind, llvm::SmallVector<Value> values);
  /// Combines with the lanes that differ in `bit`.
  Value combineLanes(ReduceKind kind, Value value, int64_t bit);
  Value extract(Value vector, int64_t index);
  Value fromElements(ArrayRef<Value> elements);
  Value shuffle(Value vector, ArrayRef<int64_t> indices);
  /// `count` registers from `first` on: a vector of them, or the one.
  Value neighbours(Value vector, int64_t first, int64_t count);
  /// Between accumulators of columns side by side and of even and odd ones.
  LogicalResult exchangeColumns(RelayoutOp op);

  //===--- Integers that count columns (Columns.cpp) ----------------------===//

  /// False if the integers do not grow evenly from column to column.
  bool lowerColumnsToFloat(mlir::arith::SIToFPOp op);

  //===--- Masks by rows (RowMasks.cpp) -----------------------------------===//

  /// Which columns of a row are set, counted from the first that the lane has:
  /// those from `least` to `most`, as far as these are given, and, if there are
  /// `words`, those whose bits are set there, 32 a word. All i32.
  struct RowMask {
    Value least, most;
    llvm::SmallVector<Value, 2> words;
  };
  /// One for each row of a lane, as registersByRow has them.
  using RowMasks = llvm::SmallVector<RowMask, 4>;
  /// What follows gives false where a tile of i1 is not of that form; else its
  /// elements are made when they are used.
  bool lowerComparison(mlir::arith::CmpIOp op);
  bool lowerConjunction(mlir::arith::AndIOp op);
  bool broadcastMasks(BroadcastOp op);
  bool gatherRowBits(GatherOp op);
  LogicalResult lowerGatherBits(GatherOp op);
  /// Makes the elements of operands that are known as masks by rows alone;
  /// returns those that hold for this operation only.
  llvm::SmallVector<Value> makeElements(Operation *op);
  Value elementsOf(const RowMasks &masks, const RegisterLayout &layout);
  Value wordOf(const RowMask &mask, int64_t number);
  Value greatest(Value a, Value b);
  Value least(Value a, Value b);

  //===--- Memory (Memory.cpp) --------------------------------------------===//

  Value itemWord(int64_t offset, unsigned bits);
  Value loadField(Value pointer, int64_t offset, unsigned bits);
  Value itemField(Field field);
  /// Address of element `offset` (index).
  Value address(const Argument &argument, Value offset);
  Value rowOffset(const Argument &argument, Value row, int64_t group,
                  bool clamp, Value ofHead = {});
  /// `entry`, if given, is what the page table holds for the key.
  Value kvRowOffset(Value view, KVPart part, Value key, Value entry = {},
                    ArrayRef<Value> strides = {});
  KVRowAddress rowAddress(Value view, KVPart part, Value key);
  /// The pool where rows of a part lie.
  const Argument &poolOf(Value view, KVPart part);
  /// An entry of the page table of a part.
  Value loadEntry(Value view, KVPart part, Value entryIndex);
  Value checkEntry(Value view, KVPart part, Value entry);
  Value isLeader();
  void logRunning(Value value);
  Value tableEntry(Value view, KVPart part, Value key);
  /// The key of a row of a tile, not beyond the last; i32 arithmetic.
  Value clampedKey(Value first, Value row32);
  Value loadElements(const Argument &argument, Value offset, int64_t count);
  void storeElements(Value elements, const Argument &argument, Value offset);
  /// The rows that registers of this lane lie in, and for each its registers by
  /// pairs of neighbouring columns, or one by one.
  struct RowOfRegisters {
    Value row; // index, within the tile
    /// First register of each pair, and its column without the lane's part.
    llvm::SmallVector<std::pair<int64_t, int64_t>> pairs;
  };
  llvm::SmallVector<RowOfRegisters> rowsOf(mlir::RankedTensorType type);
  /// What a lane adds to the columns, and lane and warp to the rows, of its
  /// registers.
  Value laneColumn(const RegisterLayout &layout);
  Value laneRow(const RegisterLayout &layout);
  /// Number of a lane among those that share a row.
  Value laneInRow(const RegisterLayout &layout);
  /// Whether a lane's registers of columns from `column` on, without the lane's
  /// part, lie in a tile of so many columns; null where all lanes' do.
  Value isInside(const RegisterLayout &layout, int64_t column, int64_t columns);
  /// What a lane adds to its row's offset to have its registers of columns from
  /// `column` on; of those that lie beyond a tile, where it has its first ones,
  /// or some of the tile if these lie beyond it too.
  Value columnOffset(const RegisterLayout &layout, int64_t column,
                     int64_t columns);
  /// The warp whose part of a tile this warp has, and whether it is itself,
  /// unless all are.
  Value holder(FragAttr frag);
  Value isHolder(FragAttr frag);
  /// Loads a tile row by row: `offsetOf` gives a row's first element. Columns
  /// of the tile lie `step` elements apart.
  Value loadTile(mlir::RankedTensorType type, const Argument &argument,
                 llvm::function_ref<Value(Value)> offsetOf, Value part = {},
                 int64_t step = 1);
  void storeTile(Value registers, mlir::RankedTensorType type,
                 const Argument &argument, Value rowLimit,
                 llvm::function_ref<Value(Value)> offsetOf, Value part = {},
                 int64_t step = 1);
  /// Where a row begins that a tile has, or the part of it that is meant.
  Value rowBegin(const Argument &argument, Value row, int64_t group, bool clamp,
                 Value head, Value first);
  LogicalResult lowerLoadRows(LoadRowsOp op);
  LogicalResult loadOwnRows(LoadRowsOp op);
  LogicalResult lowerStoreRows(StoreRowsOp op);
  LogicalResult lowerLoadKV(LoadKVOp op);
  LogicalResult lowerLoadScales(LoadScalesOp op);
  LogicalResult lowerStoreScales(StoreScalesOp op);
  void storePacked(StoreKVOp op);
  mlir::LogicalResult lowerBlockScales(LoadScalesOp op,
                                       llvm::ArrayRef<mlir::Value> strides);
  LogicalResult lowerStoreKV(StoreKVOp op);
  LogicalResult lowerLoadState(LoadStateOp op);
  LogicalResult lowerStoreState(StoreStateOp op);
  LogicalResult lowerShareState(ShareStateOp op);
  LogicalResult lowerLoadGroupState(LoadGroupStateOp op);
  LogicalResult lowerStoreMergedState(StoreMergedStateOp op);
  /// How a kernel that merges its own states keeps the outputs of a slot: 8
  /// rows after 8 rows, in each a warp's registers lane after lane, so that it
  /// reads and writes whole lines. Statistics lie row after row, as all states
  /// do that another kernel merges.
  struct StateLayout {
    StateLayout(mlir::RankedTensorType type, int64_t parts);
    int64_t rows, columns; // of a part
    int64_t parts;
    int64_t pairs; // of columns that a lane has side by side
    int64_t getChunk() const { return 2 * pairs; }
    /// What a pair's column adds.
    int64_t getColumn(int64_t column) const { return column * 8; }
  };
  /// Whether states have a place in shared memory; an error if not.
  template <typename Op> mlir::LogicalResult checkOffset(Op op);
  Value stateBegin(Value slot, mlir::RankedTensorType type);
  /// Of tiles that lanes have along rows; `first` is the row of a slot.
  void storeRowState(Value registers, mlir::RankedTensorType type, Value first,
                     Value limit);
  void loadRowState(LoadStateOp op, Value slot);
  Argument stateSlot(const StateLayout &layout, Value slot);
  Value stateRow(const StateLayout &layout, Value row, Value part);
  void storeState(mlir::TypedValue<mlir::RankedTensorType> output,
                  mlir::TypedValue<mlir::RankedTensorType> statistic,
                  Value slot, Value part);
  LogicalResult lowerArriveLast(ArriveLastOp op);
  /// Outputs and statistic of a group's state.
  std::pair<Argument, Argument> groupState(int64_t offset, Value number,
                                           int64_t rows, int64_t columns);
  int64_t getGroups() const {
    return std::max<int64_t>(1, schedule.getKeyWarps());
  }
  LogicalResult lowerGather(GatherOp op);
  LogicalResult lowerLoadColumns(LoadColumnsOp op);
  Value gatherElement(const Argument &argument, ArrayRef<Value> indices);

  //===--- Copies (Copy.cpp) ----------------------------------------------===//

  /// How the threads of a group share the chunks of a buffer.
  struct ChunkMap {
    ChunkMap(BufType type, int64_t threads);
    int64_t bytes;    // of a chunk: 16, or 8 where rows are no multiple of it
    int64_t elements; // of a chunk
    int64_t chunks;   // of a row with data
    int64_t padded;   // of a row in all
    int64_t threads, total;
    /// Rows from one turn of a thread to its next; 0 where turns are unlike.
    int64_t rowsPerTurn;
    int64_t getTurns() const { return llvm::divideCeil(total, threads); }
  };
  /// Copies the rows of a buffer, chunk by chunk, asynchronously. `pointerTo`
  /// gets a row (i32), the number of the turn and the chunk's place in the row
  /// in bytes.
  void copyRows(BufType type, Value buffer,
                llvm::function_ref<Value(Value, int64_t, Value)> pointerTo);
  /// A loop over blocks of a buffer's rows, where a warp alone has many chunks
  /// to copy: `copy` gets a block's type, where it lies and its first row
  /// (i32). One block where they are few.
  void copyBlocks(BufType type, Value buffer,
                  llvm::function_ref<void(BufType, Value, Value)> copy);
  Value loadChunk(const ChunkMap &chunks, Value source, Value size);
  void storeChunk(const ChunkMap &chunks, Value words, Value target);
  /// Rows of a tile of keys that lie one after another in memory, in one page,
  /// where each turn of all threads stays within such a run; else 0.
  int64_t getRun(KVViewTypeInterface view, BufType type, Value key);
  /// Keys that tiles begin at multiples of, where loops over keys give the key.
  int64_t getKeyAlignment(Value key);
  /// Entries of the page table that a thread needs for a tile.
  int64_t countEntries(LocateOp op);
  llvm::SmallVector<Value> byteStrides(const Argument &argument);
  Value advance(Value pointer, Value bytes);
  Value chunkNumber(const ChunkMap &chunks, int64_t turn);
  Value chunkRow(const ChunkMap &chunks, int64_t turn);
  LogicalResult lowerLocate(LocateOp op);
  Value sharedPointerAt(Value offset);
  LogicalResult lowerCopyRows(CopyRowsOp op);
  LogicalResult lowerCopyKV(CopyKVOp op);
  /// Copies the rows of a part of a buffer, from `firstRow` (i32) of it on, by
  /// threads. `entries`, if any, are those of a page table for all rows: lane
  /// `l` has those of each row whose number is `l` modulo the lanes.
  template <typename OpT>
  void copyKV(OpT op, BufType type, Value buffer, Value firstRow,
              ArrayRef<Value> entries);

  //===--- Tensor copies (TensorCopy.cpp)
  //----------------------------------===//

  /// Boxes of an argument, as a parameter of the kernel describes them that the
  /// runtime makes from a recipe.
  struct TensorMap {
    unsigned argument;
    llvm::SmallVector<int64_t, 5> box; // by the argument's dimensions
    Value parameter;
  };
  Value tensorMap(unsigned argument, ArrayRef<int64_t> box);
  LogicalResult lowerPrefetchKV(PrefetchKVOp op);
  LogicalResult copyRowsByBoxes(CopyRowsOp op);
  /// Only tiles that have no keys beyond the request's last.
  LogicalResult copyKVByBoxes(CopyKVOp op);
  /// Fills a buffer with boxes of `rows` rows and of 128 bytes: lane 0 of each
  /// warp starts its share. `coordinatesOf` gets the number of a box's rows
  /// (i32) and says where they begin, by the argument's dimensions.
  LogicalResult
  copyBoxes(Operation *op, mlir::TypedValue<BufType> buffer, unsigned argument,
            ArrayRef<int64_t> box, int64_t rows,
            llvm::function_ref<llvm::SmallVector<Value>(Value)> coordinatesOf);

  //===--- Products (Dot.cpp) ---------------------------------------------===//

  LogicalResult lowerDot(DotOp op);
  /// Four 8 x 8 matrices: each lane gives the address of one row.
  llvm::SmallVector<Value> loadMatrices(Value pointer, int64_t offset,
                                        bool transpose);
  /// Byte offset of a lane's row in a block of matrices (i32): `rowBit` and
  /// `chunkBit` say which bit of the matrix's number moves 8 rows or one chunk.
  Value matrixOffset(SmemAttr layout, int64_t rowBit, int64_t chunkBit);
  /// Where a lane's rows of blocks of matrices lie: a pointer for each place of
  /// a chunk in its group of 8, what is beyond is a constant.
  struct MatrixRows {
    std::array<Value, 8> pointers;
    bool swizzled;
  };
  /// From the place of a lane's first chunk.
  MatrixRows locateChunks(SmemAttr layout, Value first);
  MatrixRows locateMatrices(SmemAttr layout, Value buffer, int64_t rowBit,
                            int64_t chunkBit);
  llvm::SmallVector<Value> loadMatrices(MatrixRows &rows, int64_t chunk,
                                        int64_t offset, bool transpose);
  /// Accumulators of a product, four registers each, before and after it.
  using Sums = llvm::SmallVector<std::array<Value, 4>>;
  Sums takeSums(DotOp op);
  void giveSums(DotOp op, const Sums &sums);
  /// Adds the product of fragments of 16 rows and 8 columns over 16 of f16 or
  /// bf16.
  void multiplyFP8(Type first, Type second, ArrayRef<Value> x,
                   ArrayRef<Value> y, std::array<Value, 4> &sum);
  void multiplyHalves(Type element, ArrayRef<Value> x, ArrayRef<Value> y,
                      std::array<Value, 4> &sum);
  MatrixRows locateFirst(DotOp op, BufType type);
  MatrixRows locateSecond(DotOp op, BufType type);

  //===--- Roles (Roles.cpp) ----------------------------------------------===//

  LogicalResult lowerRole(RoleOp op);
  /// One lane of a warp arrives, for all.
  void arriveOnce(Value barrier);
  /// By one thread, before roles begin.
  LogicalResult initBarriers();
  /// The value of the first lane, which all lanes of a warp have.
  Value uniform(Value value);
  /// Address of the mbarrier of a buffer of a channel.
  mlir::FailureOr<Value> barrierOf(Operation *op, Value channel, Value number,
                                   Arrival arrival);
  LogicalResult lowerAwait(AwaitOp op);
  LogicalResult lowerArrive(ArriveOp op);

  //===--- Time stamps (Marks.cpp) ----------------------------------------===//

  /// Makes room for what warps know of their logs, behind all else in shared
  /// memory.
  LogicalResult reserveMarks();
  /// What each warp begins and ends with.
  void beginMarks();
  void endMarks();
  /// An item begins: what counts once in it has not come yet.
  void resetMarks();
  LogicalResult lowerMark(MarkOp op);
  void writeMark(MarkOp op);
  /// Runs `body` on lane 0 of each warp, with the warp's number in its CTA.
  void onFirstLane(llvm::function_ref<void(Value warpOfCTA)> body);
  Value warpLog(Value warpOfCTA);
  Value markState(Value warpOfCTA);
  Value readTimer(llvm::StringRef name);
  LogicalResult await(AwaitOp op);
  /// Keeps a copy into a channel's buffer for where that is committed; false
  /// where it is done now.
  bool isDeferred(Operation *copy, Value buffer);
  LogicalResult fill(ArriveOp op);

  //===--- Products of warpgroups (DotWarpgroup.cpp) ----------------------===//

  LogicalResult lowerDotWarpgroup(DotOp op);
  LogicalResult lowerDotStart(DotStartOp op);
  LogicalResult lowerWait(WaitOp op);
  /// The accumulators of a product that has begun, and is over if it `waits`.
  LogicalResult startWarpgroup(Operation *op, Value a, Value b, Value acc,
                               bool transpose, mlir::RankedTensorType tile,
                               Value result, bool waits);

  //===--- Products with codes (DotCodes.cpp) -----------------------------===//

  LogicalResult lowerDotCodes(DotOp op);
  LogicalResult lowerDotFP8(DotOp op);
  /// The numbers of bytes 0 and 2, and of bytes 1 and 3, of a word of four
  /// codes, as words of two elements of f16 or bf16.
  std::pair<Value, Value> splitCodes(Value word, Type code, Type element);
  MatrixRows locatePairs(DotOp op, BufType type);
  std::pair<Value, Value> loadPairs(MatrixRows &rows, int64_t chunk,
                                    int64_t offset);
  Value multiply16(Value word, Type element, double factor);

  //===--- Products in f32 (DotF32.cpp) -----------------------------------===//

  LogicalResult lowerDotF32(DotOp op);
  /// A fragment as numbers that tf32 holds: values are `high`, plus `low` where
  /// they have more digits.
  struct Split {
    llvm::SmallVector<Value> high, low; // i32
  };
  Split split(ArrayRef<Value> values, bool isExact);
  /// Where a lane's elements of blocks of 8 columns of f32 lie: a pointer for
  /// each place of a block in its group of 128 bytes, what is beyond is a
  /// constant.
  struct BlockRows {
    std::array<Value, 4> pointers;
    bool swizzled = false;
  };
  /// A fragment as its lanes need it for products without an instruction for
  /// them: for each k, two rows of the first operand or two columns of the
  /// second one.
  using Spread = llvm::SmallVector<std::array<Value, 2>>;
  Spread spreadFirst(ArrayRef<Value> values);
  Spread spreadSecond(ArrayRef<Value> values);
  Value fromLane(Value value, Value lane);
  Value laneBit(uint32_t mask);
  Value exchange(Value source,
                 const std::array<std::pair<int64_t, int64_t>, 32> &sources);
  BlockRows locateBlocks(SmemAttr layout, Value buffer, Value row,
                         Value columnBytes);
  llvm::SmallVector<Value> loadBlock(BlockRows &rows, int64_t block,
                                     int64_t offset, int64_t count);
  llvm::SmallVector<Value> widen(Value word, Type element);

  //===--- Tiles in buffers (Buffers.cpp) ---------------------------------===//

  LogicalResult lowerRead(ReadOp op);
  LogicalResult lowerWrite(WriteOp op);
  LogicalResult lowerColumns(ColumnsOp op);
  /// Calls `visit` with each group of neighbouring registers of the tile: its
  /// first register, how many are accessed at once, and their address in a
  /// buffer whose columns the tile has from `first` by `step`.
  void visitBuffer(mlir::RankedTensorType tile, BufType type, Value buffer,
                   int64_t first, int64_t step,
                   llvm::function_ref<void(int64_t, int64_t, Value)> visit);

  //===--- Small builders -------------------------------------------------===//

  /// PTX text without side effects.
  Value assembly(mlir::Type result, llvm::StringRef text,
                 llvm::StringRef constraints, mlir::ValueRange operands);
  /// PTX text that does something, and gives nothing.
  void instruct(llvm::StringRef text, llvm::StringRef constraints,
                mlir::ValueRange operands);
  Value index(int64_t value);
  Value i32(int64_t value);
  Value add(Value a, Value b);
  Value add(Value a, int64_t b);
  Value mul(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value sub(Value a, Value b);
  Value minimum(Value a, Value b);
  Value divide(Value a, int64_t b);
  Value remainder(Value a, int64_t b);
  Value toI64(Value value);
  Value toI32(Value value);
  Value fromI32(Value value);
  Value add32(Value a, int64_t b);
  Value toIndex(Value value);
  Value partOf(Value part) { return part ? scalar(part) : Value(); }
  Value scalar(Value value) { return map.lookupOrDefault(value); }
  const Argument &argumentOf(Value memref) {
    return arguments[llvm::cast<mlir::BlockArgument>(memref).getArgNumber()];
  }

  /// Whether the target has a feature: nothing here asks which one it is.
  bool has(sm::Feature feature) const { return chip.has(feature); }

  KernelOp kernel;
  ScheduleAttr schedule;
  const sm::Target &chip;
  mlir::OpBuilder b;
  Location loc;
  mlir::LLVM::LLVMFuncOp function;
  /// Warps that share a tile: those of a group, or of the role that is lowered.
  int64_t warps;
  /// The role that is lowered, and its number.
  RoleOp role;
  int64_t roleNumber = 0;
  /// Whether it copies. Each of its warps fills buffers of its own.
  bool isCopying = false;
  /// Whether copies only fetch: the condition of an item's tile to be there.
  Value isFetched;
  /// What a warp has to do to fill a channel's next buffer: to wait for it and
  /// to copy. It does so where the buffer is committed.
  llvm::MapVector<Value, llvm::SmallVector<Operation *>> filling;
  /// The number of the warp in its role, which the assembler knows to be that
  /// of all lanes.
  Value uniformWarp;
  llvm::SmallVector<TensorMap> tensorMaps;
  /// Of channels that tensor copies fill: whether the buffer that is not
  /// committed yet was filled by threads.
  llvm::DenseMap<Value, Value> filledByThreads;
  mlir::LLVM::LLVMPointerType globalPointer, sharedPointer;

  llvm::SmallVector<Argument> arguments;
  llvm::DenseMap<Value, View> views;
  llvm::DenseMap<std::tuple<SmemAttr, int64_t, int64_t>, Value> matrixOffsets;
  /// Whether the kernel merges the states that it stores.
  bool mergesItself = false;
  /// Whether warps tell one another parts of reductions.
  bool sharesRows = false;
  /// Of the tables that a kernel looks up ahead.
  llvm::DenseMap<mlir::Type, int64_t> entryCounts;
  mlir::IRMapping map;
  llvm::DenseMap<Value, RowMasks> rowMasks;
  Value itemsPointer, rangesPointer, countersPointer;
  Value beginItem, endItem, itemPointer;
  /// Fields of the item that were loaded at once.
  llvm::DenseMap<Field, Value> itemFields;
  /// Of its other words, by their offset.
  llvm::DenseMap<int64_t, Value> wordsOfItem;
  /// Of items without their first rows: how many, and what is left.
  struct LaterRows {
    Value first, begin, count;
  };
  llvm::DenseMap<Value, LaterRows> laterRows;
  /// Whether entries of page tables are asked for; null: always.
  Value isLookedUp;
  /// Row of the kernel's tile at which tiles of the operation begin; null: 0.
  Value firstRow;
  /// Checked kernels: the log of faults and the number of the item; else null.
  Value logPointer, itemNumber;
  /// Profiled kernels: the log of time stamps, else null; the marks that the
  /// manifest names; those that count once in an item, by name; where in shared
  /// memory warps keep what they know of their logs.
  Value marksPointer;
  llvm::SmallVector<MarkOp> marks;
  llvm::SmallVector<mlir::StringAttr> onceMarks;
  int64_t markOffset = 0;
  /// Of a role that copies: marks that belong to the warp that fills the next
  /// buffer.
  llvm::SmallVector<Operation *> heldMarks;
  Argument stateOutput, stateStatistic;
  /// Thread within the group of warps that shares a tile; all index, and the
  /// same as i32 for addresses in shared memory.
  Value thread, lane, warp, group;
  Value thread32, lane32, warp32, group32;
  Value sharedBase; // i32
  /// Bytes from the first row of a panel to those of the warpgroup.
  Value warpgroupRows;
  /// Where values that depend on the thread alone are computed.
  mlir::OpBuilder entry;
};

} // namespace fi::tile

#endif // FI_LIB_CONVERSION_FITILETONVVM_NVVMLOWERING_H
