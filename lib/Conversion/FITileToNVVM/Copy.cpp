//===- Copy.cpp - copies into shared memory -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a group take the chunks of 16 bytes of a buffer in turn, rows
// after rows, so that neighbours read neighbouring bytes.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

NVVMLowering::ChunkMap::ChunkMap(BufType type, int64_t threads)
    : threads(threads) {
  bytes = getCopyBytes(type);
  elements = bytes * 8 / type.getElement().getIntOrFloatBitWidth();
  chunks = llvm::divideCeil(type.getColumns(), elements);
  // A product reads 16 columns at once: what is beyond the last is zero.
  padded = llvm::divideCeil(llvm::alignTo(type.getColumns(), 16), elements);
  total = type.getRows() * padded;
  rowsPerTurn = threads % padded == 0 ? threads / padded : 0;
}

/// Number of the chunk that a thread copies in a turn.
Value NVVMLowering::chunkNumber(const ChunkMap &chunks, int64_t turn) {
  return add32(thread32, turn * chunks.threads);
}

Value NVVMLowering::chunkRow(const ChunkMap &chunks, int64_t turn) {
  OpBuilder::InsertionGuard outside(b);
  b.restoreInsertionPoint(entry.saveInsertionPoint());
  if (chunks.rowsPerTurn == 0)
    return arith::DivUIOp::create(b, loc, chunkNumber(chunks, turn),
                                  i32(chunks.padded));
  Value first = arith::DivUIOp::create(b, loc, thread32, i32(chunks.padded));
  return add32(first, turn * chunks.rowsPerTurn);
}

Value NVVMLowering::sharedPointerAt(Value offset) {
  Value at = arith::AddIOp::create(b, loc, sharedBase, offset);
  return LLVM::IntToPtrOp::create(b, loc, sharedPointer, at);
}

void NVVMLowering::copyRows(
    BufType type, Value buffer,
    llvm::function_ref<Value(Value, int64_t, Value)> pointerTo) {
  ChunkMap chunks(type, getThreads());
  SmemAttr layout = type.getLayout();
  // Turns whose rows are a multiple of 8 apart have their chunks at one
  // distance.
  bool even = chunks.rowsPerTurn != 0 &&
              (layout.getSwizzle() == 0 || chunks.rowsPerTurn % 8 == 0);
  auto binary = [&](auto tag, Value x, int64_t y) -> Value {
    return decltype(tag)::create(b, loc, x, i32(y));
  };
  // Without asynchronous copies chunks go through registers: several are on
  // their way at once.
  constexpr size_t kMostStaged = 8;
  SmallVector<std::pair<Value, Value>, kMostStaged> staged;
  auto storeStaged = [&] {
    for (auto [words, target] : staged)
      storeChunk(chunks, words, target);
    staged.clear();
  };
  Value first;
  for (int64_t turn = 0; turn < chunks.getTurns(); ++turn) {
    OpBuilder::InsertionGuard guard(b);
    Value row = chunkRow(chunks, turn), chunk, place;
    {
      // Where a chunk lies depends on the thread alone.
      OpBuilder::InsertionGuard outside(b);
      b.restoreInsertionPoint(entry.saveInsertionPoint());
      int64_t counted = chunks.rowsPerTurn ? 0 : turn;
      chunk = chunks.padded == 1
                  ? i32(0)
                  : binary(arith::RemUIOp(), chunkNumber(chunks, counted),
                           chunks.padded);
      Value from = even ? chunkRow(chunks, 0) : row;
      // Groups of eight chunks may lie in panels.
      Value inGroup = chunk;
      if (layout.getPanel())
        inGroup = binary(arith::RemUIOp(), chunk, 8);
      Value column = binary(arith::MulIOp(), inGroup, chunks.bytes);
      if (layout.getSwizzle())
        column = arith::XOrIOp::create(b, loc, column,
                                       binary(arith::MulIOp(),
                                              binary(arith::RemUIOp(), from, 8),
                                              kChunkBytes));
      if (layout.getPanel())
        column = arith::AddIOp::create(
            b, loc, column,
            binary(arith::MulIOp(), binary(arith::DivUIOp(), chunk, 8),
                   layout.getPanel()));
      place = arith::AddIOp::create(
          b, loc, binary(arith::MulIOp(), from, layout.getPitch()), column);
    }
    bool isPartial = (turn + 1) * chunks.threads > chunks.total;
    if (isPartial) {
      // What waits does so for all threads.
      storeStaged();
      Value wanted =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                chunkNumber(chunks, turn), i32(chunks.total));
      auto branch = scf::IfOp::create(b, loc, wanted, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value target;
    if (isFetched) {
      // Nothing comes to shared memory.
    } else if (even && first) {
      target = first;
    } else {
      target = sharedPointerAt(arith::AddIOp::create(b, loc, buffer, place));
      if (even)
        first = target;
    }
    if (target && even && turn > 0) {
      auto distance =
          static_cast<int32_t>(turn * chunks.rowsPerTurn * layout.getPitch());
      target = LLVM::GEPOp::create(b, loc, sharedPointer, b.getI8Type(), target,
                                   ArrayRef<LLVM::GEPArg>{distance});
    }
    Value size, column = chunk;
    if (chunks.padded != chunks.chunks) {
      Value real = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                         chunk, i32(chunks.chunks));
      size = arith::SelectOp::create(b, loc, real, i32(chunks.bytes), i32(0));
      column = arith::SelectOp::create(b, loc, real, chunk, i32(0));
    }
    Value bytes = arith::MulIOp::create(b, loc, column, i32(chunks.bytes));
    Value source = pointerTo(row, turn, fromI32(bytes));
    if (isFetched) {
      constexpr int64_t kLine = 128;
      Value begins =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                binary(arith::RemUIOp(), bytes, kLine), i32(0));
      instruct(
          "@$1 prefetch.global.L2 [$0];", "l,b",
          ValueRange{source, arith::AndIOp::create(b, loc, begins, isFetched)});
      continue;
    }
    if (!has(sm::CpAsync)) {
      Value words = loadChunk(chunks, source, size);
      if (isPartial)
        storeChunk(chunks, words, target);
      else
        staged.push_back({words, target});
      if (staged.size() == kMostStaged)
        storeStaged();
      continue;
    }
    // Only whole chunks of 16 bytes can pass by the first cache.
    auto cache = chunks.bytes == kChunkBytes ? NVVM::LoadCacheModifierKind::CG
                                             : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(
        b, loc, target, source, b.getI32IntegerAttr(chunks.bytes),
        NVVM::LoadCacheModifierKindAttr::get(b.getContext(), cache), size);
  }
  storeStaged();
}

/// The words of a chunk; zeros where `size`, if given, is none.
Value NVVMLowering::loadChunk(const ChunkMap &chunks, Value source,
                              Value size) {
  auto type = VectorType::get({chunks.bytes / 4}, b.getI32Type());
  Value words = LLVM::LoadOp::create(b, loc, type, source,
                                     /*alignment=*/chunks.bytes);
  if (!size)
    return words;
  Value isReal =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, size, i32(0));
  Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  return arith::SelectOp::create(b, loc, isReal, words, zeros);
}

void NVVMLowering::storeChunk(const ChunkMap &chunks, Value words,
                              Value target) {
  LLVM::StoreOp::create(b, loc, words, target, /*alignment=*/chunks.bytes);
}

LogicalResult NVVMLowering::lowerCopyRows(CopyRowsOp op) {
  if (isDeferred(op, op.getBuffer()))
    return success();
  if (op.getTma())
    return copyRowsByBoxes(op);
  const Argument &source = argumentOf(op.getSource());
  copyBlocks(op.getBuffer().getType(), map.lookup(op.getBuffer()),
             [&](BufType type, Value buffer, Value first) {
               copyRows(type, buffer, [&](Value row, int64_t, Value bytes) {
                 row = arith::AddIOp::create(b, loc, first, row);
                 Value offset = rowOffset(source, fromI32(row), op.getGroup(),
                                          /*clamp=*/true);
                 return advance(address(source, offset), bytes);
               });
             });
  return success();
}

void NVVMLowering::copyBlocks(
    BufType type, Value buffer,
    llvm::function_ref<void(BufType, Value, Value)> copy) {
  constexpr int64_t kTurns = 8, kRowsOfSwizzle = 8;
  ChunkMap chunks(type, getThreads());
  int64_t rows =
      kTurns * getThreads() / chunks.padded / kRowsOfSwizzle * kRowsOfSwizzle;
  if (!isCopying || rows == 0 || type.getRows() <= rows ||
      type.getRows() % rows != 0) {
    copy(type, buffer, i32(0));
    return;
  }
  auto block = BufType::get(b.getContext(), rows, type.getColumns(),
                            type.getElement(), type.getLayout());
  auto loop =
      scf::ForOp::create(b, loc, i32(0), i32(type.getRows()), i32(rows));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value place = arith::AddIOp::create(
      b, loc, buffer,
      arith::MulIOp::create(b, loc, first, i32(type.getLayout().getPitch())));
  copy(block, place, first);
}

int64_t NVVMLowering::getKeyAlignment(Value key) {
  auto argument = dyn_cast<BlockArgument>(key);
  bool isOfLoop =
      key.getDefiningOp<CursorKeyOp>() ||
      (argument && isa<ForKeysOp>(argument.getOwner()->getParentOp()) &&
       argument.getArgNumber() == 0);
  int64_t alignment = 0;
  if (!isOfLoop)
    return 1;
  kernel.walk([&](Operation *op) {
    if (auto loop = dyn_cast<ForKeysOp>(op))
      alignment = std::gcd(alignment, loop.getStep());
    if (auto cursor = dyn_cast<CursorOp>(op))
      alignment = std::gcd(alignment, cursor.getStep());
    if (auto ahead = dyn_cast<AdvanceOp>(op))
      alignment = std::gcd(alignment, ahead.getStep());
  });
  return alignment;
}

int64_t NVVMLowering::getRun(KVViewTypeInterface view, BufType type,
                             Value key) {
  ChunkMap chunks(type, getThreads());
  int64_t page = view.getPageSize(), run = type.getRows();
  if (page == ShapedType::kDynamic || chunks.rowsPerTurn == 0)
    return 0;
  if (page > 0)
    run = std::gcd(std::gcd(run, page), getKeyAlignment(key));
  return run % chunks.rowsPerTurn == 0 ? run : 0;
}

int64_t NVVMLowering::countEntries(LocateOp op) {
  BufType type = op.getType().getBuffer();
  ChunkMap chunks(type, getThreads());
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  int64_t run = getRun(view, type, op.getKey());
  return run ? type.getRows() / run : chunks.getTurns();
}

LogicalResult NVVMLowering::lowerCopyKV(CopyKVOp op) {
  if (isDeferred(op, op.getBuffer()))
    return success();
  OpBuilder::InsertionGuard guard(b);
  if (op.getTma()) {
    // What follows is for tiles with the last key of a request.
    if (failed(copyKVByBoxes(op)))
      return failure();
  } else if (op.getValid()) {
    auto branch = scf::IfOp::create(b, loc, scalar(op.getValid()),
                                    /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  // A warp alone looks entries of a page table up at once, one for each row and
  // in each lane another.
  BufType whole = op.getBuffer().getType();
  auto viewType = cast<KVViewTypeInterface>(op.getView().getType());
  SmallVector<Value> entries;
  int64_t perTurn = ChunkMap(whole, getThreads()).rowsPerTurn;
  if (isCopying && viewType.getPageSize() != 0 && perTurn > 0 &&
      kLanes % perTurn == 0 && whole.getRows() % perTurn == 0)
    for (int64_t row = 0; row < whole.getRows(); row += kLanes)
      entries.push_back(
          tableEntry(op.getView(), op.getPart(),
                     clampedKey(scalar(op.getKey()), add32(lane32, row))));
  copyBlocks(whole, map.lookup(op.getBuffer()),
             [&](BufType type, Value buffer, Value row) {
               copyKV(op, type, buffer, row, entries);
             });
  return success();
}

/// The same addresses as those of the copies, of which a line of the cache is
/// asked for by its first chunk.
LogicalResult NVVMLowering::lowerPrefetchKV(PrefetchKVOp op) {
  isFetched = scalar(op.getValid());
  copyKV(op, op.getEntries().getType().getBuffer(), i32(0), i32(0), {});
  isFetched = Value();
  return success();
}

template <typename OpT>
void NVVMLowering::copyKV(OpT op, BufType type, Value buffer, Value firstRow,
                          ArrayRef<Value> entriesOfRows) {
  auto viewType = cast<KVViewTypeInterface>(op.getView().getType());
  const Argument &pool = poolOf(op.getView(), op.getPart());
  OpBuilder::InsertionGuard guard(b);
  Value entries = op.getEntries() ? map.lookup(op.getEntries()) : Value();
  ChunkMap chunks(type, getThreads());
  int64_t run = getRun(viewType, type, op.getKey());
  auto entryOf = [&](Value entryIndex, int64_t turn) {
    int64_t number = run ? turn * chunks.rowsPerTurn / run : turn;
    return fromI32(entries ? extract(entries, number)
                           : loadEntry(op.getView(), op.getPart(), entryIndex));
  };
  // An address has a part that the loops over keys do not change, and one that
  // the key decides: sums of products with strides, taken apart.
  SmallVector<Value> strides = byteStrides(pool);
  // Where a request's tokens begin is fixed; a table's first entry counts with
  // the key.
  bool isRagged = viewType.getPageSize() == 0;
  Value fixedBegin = index(0);
  if (isRagged) {
    // Loops do not repeat the load.
    OpBuilder::InsertionGuard outside(b);
    b.setInsertionPointAfterValue(itemPointer);
    fixedBegin = loadField(itemPointer, offsetof(fi_item, table_begin), 64);
  }
  auto part = [&](bool isFixed, Value key, Value head, KVPart which,
                  llvm::function_ref<Value(Value)> lookup) {
    KVRowAddress place = rowAddress(op.getView(), op.getPart(), key);
    place.strides = strides;
    place.head = head;
    place.part = which;
    if (isFixed)
      place.tableBegin = fixedBegin;
    else if (isRagged)
      place.tableBegin = index(0);
    place.lookup = lookup;
    return viewType.buildRowOffset(b, loc, place);
  };
  // From the lane that has looked the row's entry up. The rows of a turn lie
  // within a group of as many rows as there are lanes.
  auto entryOfRow = [&](Value row, int64_t turn) -> Value {
    row = arith::AddIOp::create(b, loc, firstRow, row);
    Value origin = add32(firstRow, turn * chunks.rowsPerTurn);
    Value mine = entriesOfRows.front();
    for (size_t i = 1; i < entriesOfRows.size(); ++i) {
      Value isBehind = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                             origin, i32(i * kLanes));
      mine = arith::SelectOp::create(b, loc, isBehind, entriesOfRows[i], mine);
    }
    return fromLane(mine, arith::AndIOp::create(b, loc, row, i32(kLanes - 1)));
  };
  auto byKey = [&](Value key, int64_t turn) {
    // Where values lie in a page belongs to the other part.
    return part(false, key, index(0), KVPart::Keys,
                [&](Value entryIndex) { return entryOf(entryIndex, turn); });
  };
  Value fixed = part(true, index(0), itemField(Field::KVHead), op.getPart(),
                     [&](Value) { return index(0); });
  Value first = add(scalar(op.getKey()), fromI32(firstRow));
  // Rows past the last key repeat it: the place of each is computed.
  auto copyClamped = [&] {
    copyRows(type, buffer, [&](Value row, int64_t turn, Value bytes) {
      Value origin = advance(pool.base, add(fixed, bytes));
      Value key = clampedKey(first, row);
      if (entriesOfRows.empty())
        return advance(origin, byKey(key, turn));
      Value entry = fromI32(entryOfRow(row, turn));
      return advance(origin, part(false, key, index(0), KVPart::Keys,
                                  [&](Value) { return entry; }));
    });
  };
  if (!run || op.getTma() || !entriesOfRows.empty()) {
    copyClamped();
    return;
  }
  // Whole tiles are all but the last: a run's place is computed, and its rows
  // lie at multiples of a stride from it.
  Value whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                      add(first, type.getRows()),
                                      itemField(Field::KVLen));
  auto branch = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  copyClamped();
  b.setInsertionPointToStart(branch.thenBlock());
  Value stride = strides[viewType.getKeyDimension()], threadOffset, turnOffset;
  {
    OpBuilder::InsertionGuard outside(b);
    b.restoreInsertionPoint(entry.saveInsertionPoint());
    threadOffset = mul(fromI32(chunkRow(chunks, 0)), stride);
    turnOffset = mul(stride, chunks.rowsPerTurn);
  }
  Value origin, place;
  copyRows(type, buffer, [&](Value, int64_t turn, Value bytes) {
    int64_t row = turn * chunks.rowsPerTurn;
    if (!origin)
      origin = advance(pool.base, add(add(fixed, bytes), threadOffset));
    if (row % run == 0) {
      // Loops give a multiple of the run: said so that places in pages fold.
      Value key = add(first, row);
      if (viewType.getPageSize() > 0)
        key = mul(divide(key, run), run);
      place = advance(origin, byKey(key, turn));
    } else {
      // From the row before: multiples of the stride would take registers.
      place = advance(place, turnOffset);
    }
    return place;
  });
}

/// The entries of the page table for the rows that a thread copies.
LogicalResult NVVMLowering::lowerLocate(LocateOp op) {
  BufType buffer = op.getType().getBuffer();
  ChunkMap chunks(buffer, getThreads());
  auto type = cast<VectorType>(lowered(op.getType()));
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  int64_t run = getRun(view, buffer, op.getKey());
  KVPart part = view.getPartOfTable(op.getTable().value_or(0));
  SmallVector<Value> entries;
  auto lookUp = [&] {
    for (int64_t number = 0, end = countEntries(op); number < end; ++number) {
      Value row = run ? i32(number * run) : chunkRow(chunks, number);
      entries.push_back(
          tableEntry(op.getView(), part, clampedKey(scalar(op.getKey()), row)));
    }
    // Where another lookup into such entries needs more.
    entries.resize(type.getNumElements(), entries.back());
  };
  if (!logPointer && getGroups() > 1) {
    // Without a branch, behind which the assembler would wait for the entries.
    isLookedUp = scalar(op.getValid());
    lookUp();
    isLookedUp = Value();
    map.map(op.getResult(), fromElements(entries));
    return success();
  }
  auto branch = scf::IfOp::create(b, loc, TypeRange{Type(type)},
                                  scalar(op.getValid()), true, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  lookUp();
  scf::YieldOp::create(b, loc, fromElements(entries));
  b.setInsertionPointToStart(branch.elseBlock());
  Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  scf::YieldOp::create(b, loc, none);
  map.map(op.getResult(), branch.getResult(0));
  return success();
}
