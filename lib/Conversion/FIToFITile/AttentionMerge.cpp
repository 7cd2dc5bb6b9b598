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
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Pieces meet by kMergeFanIn, whoever arrives last merges their states, and
/// what came of these meets again, until few enough are left for the result:
/// one worker could not read many states in the time that the others take to
/// write them. All merging is in split order.
void AttentionStage::mergePieces(KernelOp kernel, RankedTensorType type,
                                 Value part, int64_t rows) {
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
  // Counters of the first slots of a level's parts, moved by the level.
  Value counter =
      arith::AddIOp::create(b, loc, first, levels.getInductionVar());
  Value last =
      ArriveLastOp::create(b, loc, kernel.getWork(), item,
                           ValueRange{counter, arrivals}, IntegerAttr());
  auto merging = scf::IfOp::create(b, loc, b.getI1Type(), last, true, true);
  scf::YieldOp::create(b, loc, merging.getResults());
  b.setInsertionPointToStart(merging.elseBlock());
  scf::YieldOp::create(b, loc, constant(false));
  b.setInsertionPointToStart(merging.thenBlock());
  Value offset = arith::SubIOp::create(b, loc, first, own);
  auto [output, statistic] = mergeSlots(
      kernel, type, arrivals,
      [&](Value number) -> Value {
        Value piece = arith::MulIOp::create(b, loc, number, stride);
        return arith::AddIOp::create(b, loc, offset, piece);
      },
      part, /*atOnce=*/true);
  auto store = scf::IfOp::create(b, loc, isPart, /*withElseRegion=*/true);
  scf::YieldOp::create(b, loc, isPart);
  b.setInsertionPointToStart(store.thenBlock());
  StoreMergedStateOp::create(b, loc, output, statistic, kernel.getWork(), item,
                             offset, part);
  b.setInsertionPointToStart(store.elseBlock());
  storeMerged(output, statistic, rows, part);
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

/// The state over the keys of all groups of warps, a part of its columns.
std::pair<Value, Value> AttentionStage::mergeGroups(Value output,
                                                    Value statistic, Value part,
                                                    ScheduleAttr schedule) {
  ShareStateOp::create(b, loc, output, statistic, IntegerAttr());
  auto whole = cast<RankedTensorType>(output.getType());
  int64_t columns = whole.getDimSize(1);
  auto share = tile(whole.getDimSize(0), columns / schedule.getKeyWarps(),
                    b.getF32Type());
  return foldStates(
      share, GroupsOp::create(b, loc, b.getIndexType()),
      std::min(statesAtOnce(share, schedule), schedule.getKeyWarps()),
      [&](Value number) -> std::pair<Value, Value> {
        auto load =
            LoadGroupStateOp::create(b, loc, share, statistic.getType(), number,
                                     part, columns, IntegerAttr());
        return {load.getOutput(), load.getStatistic()};
      });
}

/// `slotOf` gives a slot, from the item's own, of a number below `count`.
std::pair<Value, Value>
AttentionStage::mergeSlots(KernelOp kernel, RankedTensorType type, Value count,
                           llvm::function_ref<Value(Value)> slotOf, Value part,
                           bool atOnce) {
  auto statisticType = tile(type.getDimSize(0), 1, b.getF32Type());
  // As many as a few registers of a thread hold.
  int64_t held = type.getNumElements() /
                 (32 * std::max<int64_t>(1, kernel.getSchedule().getWarps()));
  return foldStates(
      type, count, atOnce ? std::clamp<int64_t>(128 / held, 1, 8) : 0,
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
