//===- AttentionMerge.cpp - states of split keys --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where pieces of a split tile, or groups of warps, have a state each: how a
// body merges them, or a kernel of its own, in split order.
//
//===----------------------------------------------------------------------===//

#include "AttentionStage.h"
#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Rows rather than columns, where a block of them is less than a fragment has:
/// states have few valid rows as a rule, and a lane that has columns side by
/// side loads them at once.
AttentionStage::MergeShare AttentionStage::shareMerging(ScheduleAttr schedule) {
  constexpr int64_t kRowsOfFragment = 16;
  MergeShare share;
  int64_t dim = view.getValueDim(), groups = schedule.getKeyWarps();
  if (groups <= 1)
    return share;
  // One row is what all rows have in common, so two.
  int64_t ofWarp = getAtomInfo(getRowAtom(dim)).rows;
  share.rows = std::max<int64_t>(2, ofWarp * schedule.getWarps());
  // Where f32 are multiplied in pairs, LLVM 22 computes what all columns of a
  // row share in a pair of which one half is undefined. That is harmless, but
  // what reads registers that nobody has written cannot be told from a mistake.
  if (dim % kRowChunk != 0 || share.rows >= kRowsOfFragment ||
      hasFeature(op, sm::FastF32x2)) {
    share.rows = 0;
    share.part = GroupOp::create(b, loc, b.getIndexType());
  }
  return share;
}

void AttentionStage::forMergedRows(
    const MergeShare &share, ScheduleAttr schedule,
    llvm::function_ref<void(RankedTensorType, Value row)> merge) {
  int64_t columns = view.getValueDim();
  if (!share.rows) {
    int64_t parts = share.part ? schedule.getKeyWarps() : 1;
    return merge(tile(schedule.getTileRows(), columns / parts, b.getF32Type()),
                 Value());
  }
  Value own = arith::MulIOp::create(
      b, loc, GroupOp::create(b, loc, b.getIndexType()), index(share.rows));
  auto loop = scf::ForOp::create(b, loc, own, field(Field::RowCount),
                                 index(share.rows * schedule.getKeyWarps()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value whole = item;
  item = FromRowOp::create(b, loc, whole, loop.getInductionVar());
  if (sinkBuffer)
    buildRows(share.rows);
  merge(tile(share.rows, columns, b.getF32Type()), loop.getInductionVar());
  item = whole;
}

/// Pieces meet by kMergeFanIn, whoever arrives last merges their states, and
/// what came of these meets again, until few enough are left for the result:
/// one worker could not read many states in the time that the others take to
/// write them. All merging is in split order.
void AttentionStage::mergePieces(KernelOp kernel, const MergeShare &share) {
  Value fanIn = index(kMergeFanIn);
  Value count = field(Field::SlotCount);
  // The piece's number, from which slots count.
  Value own = arith::SubIOp::create(b, loc, field(Field::Slot),
                                    field(Field::FirstSlot));
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getBoolAttr(value));
  };
  auto less = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
  };
  // As many levels as 2^31 pieces have; `stride` pieces have become one.
  auto levels = scf::ForOp::create(b, loc, index(0), index(8), index(1),
                                   ValueRange{constant(true), index(1)});
  b.setInsertionPointToStart(levels.getBody());
  Value goesOn = levels.getRegionIterArgs()[0];
  Value stride = levels.getRegionIterArgs()[1];
  Value next = arith::MulIOp::create(b, loc, stride, fanIn);
  auto meeting = scf::IfOp::create(b, loc, b.getI1Type(), goesOn, true, true);
  scf::YieldOp::create(b, loc, ValueRange{meeting.getResult(0), next});
  b.setInsertionPointToStart(meeting.elseBlock());
  scf::YieldOp::create(b, loc, constant(false));
  b.setInsertionPointToStart(meeting.thenBlock());
  Value left = arith::CeilDivUIOp::create(b, loc, count, stride);
  Value isPart = less(index(2 * kMergeFanIn), left);
  Value first = arith::SelectOp::create(
      b, loc, isPart,
      arith::SubIOp::create(b, loc, own,
                            arith::RemUIOp::create(b, loc, own, next)),
      index(0));
  Value rest = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, count, first), stride);
  Value arrivals = arith::SelectOp::create(
      b, loc, isPart, arith::MinSIOp::create(b, loc, rest, fanIn), left);
  // Counters of the first slots of a level's parts, moved by the level as far
  // as the tile has slots: what is left alone at its end is one piece, which
  // counts to one again and again.
  Value beyond = arith::SubIOp::create(
      b, loc, arith::SubIOp::create(b, loc, count, index(1)), first);
  Value counter = arith::AddIOp::create(
      b, loc, first,
      arith::MinSIOp::create(b, loc, levels.getInductionVar(), beyond));
  Value last =
      ArriveLastOp::create(b, loc, kernel.getWork(), item,
                           ValueRange{counter, arrivals}, IntegerAttr());
  auto merging = scf::IfOp::create(b, loc, b.getI1Type(), last, true, true);
  scf::YieldOp::create(b, loc, merging.getResults());
  b.setInsertionPointToStart(merging.elseBlock());
  scf::YieldOp::create(b, loc, constant(false));
  b.setInsertionPointToStart(merging.thenBlock());
  Value offset = arith::SubIOp::create(b, loc, first, own);
  forMergedRows(share, kernel.getSchedule(), [&](RankedTensorType type, Value) {
    auto [output, statistic] = mergeSlots(
        kernel, type, arrivals,
        [&](Value number) -> Value {
          Value piece = arith::MulIOp::create(b, loc, number, stride);
          return arith::AddIOp::create(b, loc, offset, piece);
        },
        share.part, /*atOnce=*/true);
    auto store = scf::IfOp::create(b, loc, isPart, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(store.thenBlock());
    StoreMergedStateOp::create(b, loc, output, statistic, kernel.getWork(),
                               item, offset, share.part);
    b.setInsertionPointToStart(store.elseBlock());
    storeMerged(output, statistic, type.getDimSize(0), share.part);
  });
  scf::YieldOp::create(b, loc, isPart);
}

/// States of `count` parts, loaded by number, folded in their order.
std::pair<Value, Value> AttentionStage::foldStates(
    RankedTensorType type, Value count, int64_t atOnce,
    llvm::function_ref<std::pair<Value, Value>(Value)> load) {
  // Pairs are merged where states come one at a time.
  NormaliserAttrInterface normaliser = op.getNormaliser();
  bool folds = atOnce > 0;
  if (!folds || !normaliser.canFold()) {
    auto [output, statistic] = load(index(0));
    auto loop = scf::ForOp::create(b, loc, index(1), count, index(1),
                                   ValueRange{output, statistic});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto [nextOutput, nextStatistic] = load(loop.getInductionVar());
    auto merged = tile::MergeOp::create(
        b, loc, TypeRange{output.getType(), statistic.getType()}, normaliser,
        loop.getRegionIterArgs()[0], loop.getRegionIterArgs()[1], nextOutput,
        nextStatistic);
    scf::YieldOp::create(b, loc, merged.getResults());
    return {loop.getResult(0), loop.getResult(1)};
  }
  int64_t rows = type.getDimSize(0);
  SmallVector<Type> types = {type};
  llvm::append_range(types, normaliser.getRunningTypes(b.getContext(), rows,
                                                       /*lanes=*/1));
  auto init = InitOp::create(b, loc, types, normaliser);
  auto loop = scf::ForOp::create(b, loc, index(0), count, index(atOnce),
                                 init.getRunning());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    // Several at once, so that their loads do not wait for one another; past
    // the last one the last is read again, as none.
    SmallVector<Value> tiles;
    Value last = arith::SubIOp::create(b, loc, count, index(1));
    for (int64_t i = 0; i < atOnce; ++i) {
      Value number = loop.getInductionVar();
      if (i)
        number = arith::AddIOp::create(b, loc, number, index(i));
      auto [output, statistic] =
          load(i ? arith::MinSIOp::create(b, loc, number, last).getResult()
                 : number);
      if (i) {
        Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             number, count);
        auto statisticType = cast<RankedTensorType>(statistic.getType());
        Value empty = arith::ConstantOp::create(
            b, loc,
            DenseElementsAttr::get(
                statisticType,
                APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true)));
        statistic = arith::SelectOp::create(b, loc, inside, statistic, empty);
      }
      llvm::append_values(tiles, output, statistic);
    }
    llvm::append_range(tiles, loop.getRegionIterArgs());
    auto folded = FoldOp::create(b, loc, types, normaliser, tiles);
    scf::YieldOp::create(b, loc, folded.getResults());
  }
  auto final =
      tile::FinalizeOp::create(b, loc, type, tile(rows, 1, b.getF32Type()),
                               normaliser, loop.getResults(), Value());
  return {final.getOutput(), final.getStatistic()};
}

/// The state over the keys of all groups of warps, of this group's share.
std::pair<Value, Value> AttentionStage::mergeGroups(RankedTensorType type,
                                                    Value row,
                                                    const MergeShare &share,
                                                    ScheduleAttr schedule) {
  auto statisticType = tile(type.getDimSize(0), 1, b.getF32Type());
  Value part = share.part ? share.part : index(0);
  return foldStates(
      type, GroupsOp::create(b, loc, b.getIndexType()),
      std::min(statesAtOnce(type, schedule), schedule.getKeyWarps()),
      [&](Value number) -> std::pair<Value, Value> {
        auto load =
            LoadGroupStateOp::create(b, loc, type, statisticType, number, part,
                                     view.getValueDim(), IntegerAttr(), row);
        return {load.getOutput(), load.getStatistic()};
      });
}

/// `slotOf` gives a slot, from the item's own, of a number below `count`.
std::pair<Value, Value>
AttentionStage::mergeSlots(KernelOp kernel, RankedTensorType type, Value count,
                           llvm::function_ref<Value(Value)> slotOf, Value part,
                           bool atOnce) {
  auto statisticType = tile(type.getDimSize(0), 1, b.getF32Type());
  return foldStates(
      type, count, atOnce ? statesAtOnce(type, kernel.getSchedule()) : 0,
      [&](Value number) -> std::pair<Value, Value> {
        auto load =
            LoadStateOp::create(b, loc, type, statisticType, kernel.getWork(),
                                item, slotOf(number), part);
        return {load.getOutput(), load.getStatistic()};
      });
}

void AttentionStage::storeMerged(Value output, Value statistic, int64_t rows,
                                 Value part) {
  if (sinkBuffer) {
    auto sunk =
        SinkOp::create(b, loc, TypeRange{output.getType(), statistic.getType()},
                       op.getNormaliser(), output, statistic, loadSink(rows));
    output = sunk.getOutput();
    statistic = sunk.getStatistic();
  }
  storeOutputs(output, statistic, part);
}

KernelOp AttentionStage::buildMerge(StringRef kernelName,
                                    ScheduleAttr schedule) {
  OpBuilder::InsertionGuard guard(b);
  KernelOp kernel = stage.createKernel(kernelName, schedule);
  entry = &kernel.getBody().front();
  int64_t rows = schedule.getTileRows();
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  item = items.getItem();
  auto outputType = tile(rows, view.getValueDim(), b.getF32Type());
  auto [output, statistic] = mergeSlots(
      kernel, outputType, field(Field::SlotCount),
      [](Value number) { return number; }, /*part=*/Value(),
      /*atOnce=*/false);
  if (sinkBuffer)
    buildRows(rows);
  storeMerged(output, statistic, rows, /*part=*/Value());
  return kernel;
}
