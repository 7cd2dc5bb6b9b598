//===- AttentionStage.cpp - kernels of fi.attention -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One kernel per schedule: for each item, a loop over the visited key tiles
// with the regions inlined, then the output, or a partial state where the plan
// has split the keys. And one kernel per tile size that merges the partial
// states of a tile, in split order.
//
// Where a region transforms pairs of a row, rows of queries and keys are tiles
// of first and of second elements: a product is a sum over pairs, so nothing
// puts a row together again.
//
//===----------------------------------------------------------------------===//

#include "AttentionStage.h"
#include "fi/Dialect/FI/IR/FP8.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// What becomes part of the stage, beside the attention.
LogicalResult AttentionStage::findFold() {
  sink = op.getSink();
  split = op.getSplitAttr();
  if (!op.getSegments())
    return success();
  auto segments = op.getSegments().getDefiningOp<SegmentsOp>();
  Value state = op.getResult(0);
  fold = state.hasOneUse() ? dyn_cast<MergeSegmentsOp>(*state.user_begin())
                           : MergeSegmentsOp();
  if (!segments || !fold || fold.getSegments() != op.getSegments())
    return op.emitOpError("expected the segmented state to be folded once, by "
                          "fi.merge_segments with the same segments");
  split = segments.getSplit();
  Value merged = fold.getResult();
  if (merged.hasOneUse())
    finalisation = dyn_cast<fi::FinalizeOp>(*merged.user_begin());
  if (finalisation)
    sink = finalisation.getSink();
  return success();
}

LogicalResult AttentionStage::collectBuffers() {
  for (Value part : op.getQueryParts())
    queryBuffers.push_back(stage.use(buffers.get(part)));
  viewBuffers = useView(stage, op.getView(), buffers);
  if (op.getScaleValue())
    scaleBuffer = stage.use(buffers.get(op.getScaleValue()));
  if (sink)
    sinkBuffer = stage.use(buffers.get(sink));
  if (op.getPositions())
    positionsBuffer = stage.use(buffers.get(op.getPositions()));
  for (Value capture : op.getCaptures())
    captureBuffers.push_back(stage.use(buffers.get(capture)));

  auto destination = [&](const Buffer &output, const Buffer *statistic) {
    destinations.output = stage.use(output);
    destinations.outputName = output.name;
    if (statistic) {
      destinations.statistic = stage.use(*statistic);
      destinations.statisticName = statistic->name;
    }
  };
  if (op.returnsState() && !finalisation) {
    Value state = fold ? fold.getResult() : op.getResult(0);
    buffers.defineState(state, op.getQuery());
    destination(buffers.get(state), &buffers.getStatistic(state));
    return success();
  }
  // Tensors in `outs` only say where a result may lie; its place is its own.
  Operation *source = finalisation ? finalisation.getOperation() : op;
  SmallVector<Value> outs(source->getResults());
  if (outs.empty())
    llvm::append_range(outs,
                       finalisation ? finalisation.getOuts() : op.getOuts());
  for (Value result : source->getResults())
    if (failed(buffers.define(result, op.getQuery())))
      return failure();
  destination(buffers.get(outs[0]),
              outs.size() > 1 ? &buffers.get(outs[1]) : nullptr);
  return success();
}

void AttentionStage::buildRows(int64_t tileRows) {
  auto column = tile(tileRows, 1, b.getIndexType());
  Value packed = IotaOp::create(b, loc, column, field(Field::RowBegin));
  auto splat = [&](Value scalar) {
    return broadcastTo(b, loc, scalar, column.getShape());
  };
  Value token = packed;
  if (group == 1) {
    queryHead = field(Field::KVHead);
  } else {
    Value size = splat(index(group));
    token = arith::DivUIOp::create(b, loc, packed, size);
    Value head = arith::RemUIOp::create(b, loc, packed, size);
    Value first =
        arith::MulIOp::create(b, loc, field(Field::KVHead), index(group));
    queryHead = arith::AddIOp::create(b, loc, head, splat(first));
  }
  if (positionsBuffer) {
    Value positions = argument(*positionsBuffer);
    Value row =
        arith::AddIOp::create(b, loc, token, splat(field(Field::QBegin)));
    Type element = cast<MemRefType>(positions.getType()).getElementType();
    Value read = GatherOp::create(b, loc, tile(tileRows, 1, element), positions,
                                  ValueRange{row});
    queryPosition = arith::IndexCastOp::create(b, loc, column, read);
    return;
  }
  // origin + kv_len - q_len + token
  Value first =
      arith::SubIOp::create(b, loc, field(Field::KVLen), field(Field::QLen));
  first = arith::AddIOp::create(b, loc, first, field(Field::KVOrigin));
  queryPosition = arith::AddIOp::create(b, loc, token, splat(first));
}

/// Some columns of rows: where these are numbers times a scale that all columns
/// share, of the numbers, so that nobody needs every other column of what lanes
/// have computed.
static Value takeColumns(OpBuilder &b, Location loc, RankedTensorType part,
                         Value rows, int64_t first, int64_t step) {
  if (auto product = rows.getDefiningOp<arith::MulFOp>()) {
    Value scale;
    if (auto splat = product.getRhs().getDefiningOp<tensor::SplatOp>())
      scale = splat.getInput();
    else if (auto wide = product.getRhs().getDefiningOp<BroadcastOp>())
      if (cast<RankedTensorType>(wide.getSource().getType()).getDimSize(1) == 1)
        scale = wide.getSource();
    if (scale)
      return arith::MulFOp::create(
          b, loc, takeColumns(b, loc, part, product.getLhs(), first, step),
          broadcastTo(b, loc, scale, part.getShape()));
  }
  return ColumnsOp::create(b, loc, part, rows, first, step);
}

FailureOr<SmallVector<Value>> AttentionStage::buildOperand(Value rows,
                                                           Region &region,
                                                           Value head,
                                                           Value position) {
  if (!op.getPairing())
    return SmallVector<Value>{rows};
  auto type = cast<RankedTensorType>(rows.getType());
  bool half = *op.getPairing() == Pairing::Half;
  int64_t pairs = type.getDimSize(1) / 2;
  RankedTensorType part = tile(type.getDimSize(0), pairs, b.getF32Type());
  auto columns = [&](int64_t first) -> Value {
    return takeColumns(b, loc, part, rows, first, half ? 1 : 2);
  };
  SmallVector<Value> operand = {columns(0), columns(half ? pairs : 1)};
  if (region.empty())
    return operand;
  Value pair =
      IotaOp::create(b, loc, tile(1, pairs, b.getIndexType()), index(0));
  SmallVector<Value> arguments = {
      operand[0], operand[1], pair, field(Field::Request), head, position};
  llvm::append_range(arguments, captureArguments());
  FailureOr<SmallVector<Value>> made = inlineRegion(b, region, arguments);
  if (failed(made))
    return failure();
  for (Value &value : *made)
    value = broadcastTo(b, loc, value, part.getShape());
  return made;
}

FailureOr<SmallVector<Value>> AttentionStage::buildQuery(int64_t rows) {
  Type element = productType(/*wantValues=*/false);
  auto load = [&](unsigned buffer) -> Value {
    int64_t columns =
        cast<MemRefType>(argument(buffer).getType()).getDimSize(2);
    return LoadRowsOp::create(b, loc, tile(rows, columns, element),
                              argument(buffer), item, group);
  };
  SmallVector<Value> loaded = llvm::map_to_vector(queryBuffers, load);
  buildRows(rows);
  int64_t tail = view.getTailDim();
  if (!tail)
    return buildOperand(loaded[0], op.getQueryRegion(), queryHead,
                        queryPosition);
  if (loaded.size() > 1)
    return loaded;
  int64_t head = view.getKeyDim() - tail;
  auto columns = [&](int64_t first, int64_t count) -> Value {
    return ColumnsOp::create(b, loc, tile(rows, count, element), loaded[0],
                             first, /*step=*/1);
  };
  return SmallVector<Value>{columns(0, head), columns(head, tail)};
}

/// Products are of one element type: the wider of both operands', and f32 of
/// what a region has computed. Codes, times the scales of their blocks, are
/// multiplied as numbers of the query's type where that holds them all.
Type AttentionStage::productType(bool wantValues) {
  Type query = getQueryNumbers(op);
  if (!wantValues && op.getPairing())
    return b.getF32Type();
  if (isQuantised(view, wantValues))
    return exceedsRange(view, wantValues, query) ? b.getF32Type() : query;
  if (wantValues)
    return view.getValueType();
  return query == view.getKeyType() ? query : b.getF32Type();
}

Value AttentionStage::sharedScale(bool wantValues) {
  auto per = getNumberGranularity(view, wantValues);
  if (!per)
    return {};
  Value scales = argument(*viewBuffers.scales[wantValues]);
  if (per == Granularity::Tensor)
    return scales;
  if (per == Granularity::Head)
    return GatherOp::create(b, loc, b.getF32Type(), scales,
                            ValueRange{field(Field::KVHead)});
  return {};
}

Value AttentionStage::keyScales(bool wantValues, RankedTensorType type,
                                Value viewValue, Value key) {
  auto per = getNumberGranularity(view, wantValues);
  if (per != Granularity::Page && per != Granularity::Token)
    return {};
  return LoadScalesOp::create(
      b, loc, type, wantValues ? KVPart::Values : KVPart::Keys,
      argument(*viewBuffers.scales[wantValues]), viewValue, item, key);
}

Value AttentionStage::loadNumbers(KVPart part, Type element, Value viewValue,
                                  Value key, int64_t keys) {
  auto type = tile(keys, view.getPartDim(part), element);
  bool ofValues = part == KVPart::Values;
  if (!getBlockScaledType(view, ofValues))
    return LoadKVOp::create(b, loc, type, part, viewValue, item, key);
  RankedTensorType wide = type.clone(b.getF32Type());
  Value loaded = LoadKVOp::create(b, loc, wide, part, viewValue, item, key);
  Value scales = LoadScalesOp::create(b, loc, wide, part,
                                      argument(*viewBuffers.blocks[ofValues]),
                                      viewValue, item, key);
  loaded = arith::MulFOp::create(b, loc, loaded, scales);
  if (element.isF32())
    return loaded;
  return arith::TruncFOp::create(b, loc, type, loaded);
}

/// A scale that all values share multiplies the output; others are part of the
/// values.
Value AttentionStage::loadValues(Value viewValue, Value key, int64_t keys) {
  Type element = productType(/*wantValues=*/true);
  auto type = tile(keys, view.getValueDim(), element);
  Value scales = keyScales(true, tile(keys, 1, b.getF32Type()), viewValue, key);
  if (!scales)
    return loadNumbers(KVPart::Values, element, viewValue, key, keys);
  Value loaded = LoadKVOp::create(b, loc, type.clone(b.getF32Type()),
                                  KVPart::Values, viewValue, item, key);
  loaded = scaled(loaded, scales);
  if (element.isF32())
    return loaded;
  return arith::TruncFOp::create(b, loc, type, loaded);
}

Value AttentionStage::buildScores(ArrayRef<Value> query, Value viewValue,
                                  Value key, ScheduleAttr schedule,
                                  Value &keyRows) {
  int64_t rows = schedule.getTileRows(), keys = schedule.getTileKeys();
  Type element = cast<RankedTensorType>(query[0].getType()).getElementType();
  auto load = [&](KVPart part) -> Value {
    return loadNumbers(part, element, viewValue, key, keys);
  };
  Value loaded = load(KVPart::Keys);
  // Codes are numbers of that type once they are loaded.
  if (element == view.getKeyType() ||
      (isQuantised(view, false) && view.sharesValues() && !op.getPairing()))
    keyRows = loaded;
  Value firstPosition =
      arith::AddIOp::create(b, loc, key, field(Field::KVOrigin));
  SmallVector<Value> k = {loaded};
  if (view.getTailDim())
    k.push_back(load(KVPart::Tail));
  Value shared = sharedScale(/*wantValues=*/false);
  if (op.getPairing()) {
    // A region sees keys as they are, scales and all.
    Value rowPosition =
        IotaOp::create(b, loc, tile(keys, 1, b.getIndexType()), firstPosition);
    Value scales = shared;
    if (!scales)
      scales = keyScales(false, tile(keys, 1, b.getF32Type()), viewValue, key);
    if (scales)
      loaded = scaled(loaded, scales);
    FailureOr<SmallVector<Value>> made = buildOperand(
        loaded, op.getKeyRegion(), field(Field::KVHead), rowPosition);
    if (failed(made))
      return {};
    k = *made;
  }
  auto scoresType = tile(rows, keys, b.getF32Type());
  Value scores;
  for (auto [left, right] : llvm::zip_equal(query, k)) {
    Value product = DotOp::create(b, loc, scoresType, left, right, Value(),
                                  /*transpose=*/true);
    scores = scores ? arith::AddFOp::create(b, loc, scores, product).getResult()
                    : product;
  }
  Value scale =
      op.getScaleAttr()
          ? arith::ConstantOp::create(b, loc, op.getScaleAttr()).getResult()
          : argument(*scaleBuffer);
  if (shared && !op.getPairing())
    scale = arith::MulFOp::create(b, loc, scale, shared);
  scores = scaled(scores, scale);
  if (!op.getPairing())
    if (Value scales =
            keyScales(false, tile(1, keys, b.getF32Type()), viewValue, key))
      scores = scaled(scores, scales);

  auto row = tile(1, keys, b.getIndexType());
  Value keyIndex = IotaOp::create(b, loc, row, key);
  Value keyPosition = IotaOp::create(b, loc, row, firstPosition);
  SmallVector<Value> arguments = {field(Field::Request), queryHead,
                                  field(Field::KVHead), queryPosition,
                                  keyPosition};
  llvm::append_range(arguments, captureArguments());
  if (!op.getScoreRegion().empty()) {
    SmallVector<Value> scoreArguments = {scores};
    llvm::append_range(scoreArguments, arguments);
    auto made = inlineRegion(b, op.getScoreRegion(), scoreArguments);
    if (failed(made))
      return {};
    scores = broadcastTo(b, loc, made->front(), scoresType.getShape());
  }
  // Regions are asked for keys in range only; the tile may reach beyond.
  Value limit = broadcastTo(b, loc, field(Field::KVLen), row.getShape());
  Value visible =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, keyIndex, limit);
  visible = broadcastTo(b, loc, visible, scoresType.getShape());
  if (!op.getMaskRegion().empty()) {
    auto made = inlineRegion(b, op.getMaskRegion(), arguments);
    if (failed(made))
      return {};
    Value allowed = broadcastTo(b, loc, made->front(), scoresType.getShape());
    visible = arith::AndIOp::create(b, loc, visible, allowed);
  }
  return MaskOp::create(b, loc, scores, visible);
}

Value AttentionStage::loadSink(int64_t tileRows) {
  if (!sinkBuffer)
    return {};
  auto column = tile(tileRows, 1, b.getF32Type());
  if (group == 1) {
    Value one = GatherOp::create(b, loc, b.getF32Type(), argument(*sinkBuffer),
                                 ValueRange{queryHead});
    return broadcastTo(b, loc, one, column.getShape());
  }
  return GatherOp::create(b, loc, column, argument(*sinkBuffer),
                          ValueRange{queryHead});
}

void AttentionStage::storeOutputs(Value output, Value statistic, Value part) {
  Value target = argument(destinations.output);
  Type element = cast<MemRefType>(target.getType()).getElementType();
  auto type = cast<RankedTensorType>(output.getType());
  if (element != type.getElementType())
    output = arith::TruncFOp::create(b, loc, type.clone(element), output);
  StoreRowsOp::create(b, loc, output, target, item, group, part);
  if (destinations.statistic)
    StoreRowsOp::create(b, loc, statistic, argument(*destinations.statistic),
                        item, group, part);
}

KernelOp AttentionStage::buildBody(StringRef kernelName,
                                   ScheduleAttr schedule) {
  OpBuilder::InsertionGuard guard(b);
  KernelOp kernel = stage.createKernel(kernelName, schedule);
  entry = &kernel.getBody().front();
  int64_t rows = schedule.getTileRows(), keys = schedule.getTileKeys();
  Value viewValue = createView(stage, kernel, op.getView(), viewBuffers);
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  item = items.getItem();

  FailureOr<SmallVector<Value>> query = buildQuery(rows);
  if (failed(query))
    return {};
  auto accType = tile(rows, view.getValueDim(), b.getF32Type());
  SmallVector<Type> runningTypes = {accType};
  NormaliserAttrInterface normaliser = op.getNormaliser();
  llvm::append_range(
      runningTypes,
      normaliser.getRunningTypes(b.getContext(), rows, schedule.getLanes()));
  auto init = InitOp::create(b, loc, runningTypes, normaliser);
  auto loop =
      ForKeysOp::create(b, loc, item, init.getRunning(), Part::All, keys);
  {
    OpBuilder::InsertionGuard loopGuard(b);
    b.setInsertionPointToStart(&loop.getBody().front());
    Value keyRows;
    Value scores =
        buildScores(*query, viewValue, loop.getKey(), schedule, keyRows);
    if (!scores)
      return {};
    // Values that are keys lie where these were loaded to.
    auto per = getNumberGranularity(view, /*wantValues=*/true);
    bool hasOwnScales = per == Granularity::Page || per == Granularity::Token;
    Value v = view.sharesValues() && !hasOwnScales ? keyRows : Value();
    if (!v)
      v = loadValues(viewValue, loop.getKey(), keys);
    auto update = UpdateOp::create(b, loc, runningTypes, normaliser, scores, v,
                                   loop.getCarried());
    tile::YieldOp::create(b, loc, update.getResults());
  }
  auto statisticType = tile(rows, 1, b.getF32Type());
  auto finalize = [&](Value sink) -> std::pair<Value, Value> {
    auto final = tile::FinalizeOp::create(b, loc, accType, statisticType,
                                          normaliser, loop.getResults(), sink);
    Value scale = sharedScale(/*wantValues=*/true);
    return {scale ? scaled(final.getOutput(), scale) : final.getOutput(),
            final.getStatistic()};
  };
  if (!normaliser.canMerge()) {
    auto [output, statistic] = finalize(loadSink(rows));
    storeOutputs(output, statistic);
    return kernel;
  }
  Value whole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                      field(Field::Slot), index(0));
  // Pieces of a tile have states; groups of warps too, each of all columns.
  auto store = [&](RankedTensorType type, Value output, Value statistic,
                   Value part) {
    auto branch = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    storeMerged(output, statistic, type.getDimSize(0), part);
    b.setInsertionPointToStart(branch.elseBlock());
    StoreStateOp::create(b, loc, output, statistic, kernel.getWork(), item,
                         part);
  };
  if (schedule.getKeyWarps() > 1) {
    auto [output, statistic] = finalize(Value());
    ShareStateOp::create(b, loc, output, statistic, IntegerAttr());
    MergeShare share = shareMerging(schedule);
    forMergedRows(share, schedule, [&](RankedTensorType type, Value row) {
      auto [merged, ofMerged] = mergeGroups(type, row, share, schedule);
      store(type, merged, ofMerged, share.part);
    });
    if (!mergesItself(schedule))
      return kernel;
    auto isPiece = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
    b.setInsertionPointToStart(isPiece.elseBlock());
    mergePieces(kernel, share);
    return kernel;
  }
  auto branch = scf::IfOp::create(b, loc, whole, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  {
    auto [output, statistic] = finalize(loadSink(rows));
    storeOutputs(output, statistic);
  }
  b.setInsertionPointToStart(branch.elseBlock());
  auto [output, statistic] = finalize(Value());
  StoreStateOp::create(b, loc, output, statistic, kernel.getWork(), item,
                       /*part=*/Value());
  if (mergesItself(schedule))
    mergePieces(kernel, MergeShare());
  return kernel;
}

/// In nanoseconds, as on one H200 whose multiprocessors hold two CTAs each:
/// what a CTA gets of its memory and of its products then. Starting and ending
/// an item take time of their own; so do counting, fences and the first load
/// where pieces of a split tile meet, and loading each state. Where a tile has
/// many rows its products take as long if a request has fewer.
SmallVector<NamedAttribute> AttentionStage::gpuCosts(ScheduleAttr schedule) {
  constexpr double kStateBytesPerNs = 20;
  // A CTA of warpgroups has a multiprocessor for itself.
  bool hasAll = schedule.getWgmma();
  double bytesPerNs = hasAll ? 32 : 16, flopPerNs = hasAll ? 5000 : 1300;
  int64_t itemNs = hasAll ? 2500 : 4000, rowNs = hasAll ? 8 : 16;
  constexpr int64_t kMeetingNs = 2400;
  auto number = [&](StringRef name, double value) {
    return b.getNamedAttr(
        name, b.getI64IntegerAttr(std::max<int64_t>(1, std::llround(value))));
  };
  int64_t bits = view.getKeyDim() * view.getKeyType().getIntOrFloatBitWidth();
  if (!view.sharesValues())
    bits += view.getValueDim() * view.getValueType().getIntOrFloatBitWidth();
  int64_t keys = schedule.getTileKeys(), rows = schedule.getTileRows();
  // Many rows are several tiles, which find keys in the cache.
  bool isFew = schedule.getMaxRows();
  double loads = isFew ? 1 : 0.125;
  double flop = 2.0 * keys * (view.getKeyDim() + view.getValueDim());
  double rowCost = flop / flopPerNs;
  SmallVector<NamedAttribute> costs = {
      number("item", itemNs + rowNs * rows),
      number("tile", loads * keys * bits / 8 / bytesPerNs +
                         (isFew ? 0 : rowCost * rows)),
      b.getNamedAttr(
          "tile_row",
          b.getI64IntegerAttr(
              isFew ? std::max<int64_t>(1, std::llround(rowCost)) : 0))};
  if (mergesItself(schedule))
    llvm::append_values(
        costs, number("slot_row", 4 * view.getValueDim() / kStateBytesPerNs),
        number("meeting", kMeetingNs));
  return costs;
}

DictionaryAttr AttentionStage::build() {
  if (failed(findFold()))
    return {};
  ArrayAttr schedules = op.getSchedulesAttr();
  if (!schedules || schedules.empty()) {
    op.emitOpError("expected 'schedules': run fi-choose-schedule first");
    return {};
  }
  if (auto bsr = dyn_cast<BsrKVType>(op.getView().getType()))
    for (auto schedule : schedules.getAsRange<ScheduleAttr>())
      if (bsr.getColumns() % schedule.getTileKeys() != 0) {
        op.emitOpError("expected blocks of a multiple of the ")
            << schedule.getTileKeys() << " keys of a tile, but got "
            << bsr.getColumns() << " columns [SCH8]";
        return {};
      }
  if (failed(collectBuffers()))
    return {};

  auto number = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto named = [&](StringRef key, Attribute value) {
    return b.getNamedAttr(key, value);
  };
  auto string = [&](const Twine &text) -> Attribute {
    return b.getStringAttr(text);
  };
  auto nameOrNull = [&](Value value) -> Attribute {
    return value ? string(buffers.get(value).name) : b.getUnitAttr();
  };
  // Units of work as the planner balances it: products, and the keys and values
  // that are read whatever the number of rows.
  auto cost = [&](ScheduleAttr schedule) {
    int64_t elements =
        schedule.getTileKeys() * (view.getKeyDim() + view.getValueDim());
    SmallVector<NamedAttribute> costs = {
        named("item", number(1000)), named("tile", number(elements / 8)),
        named("tile_row", number(elements / 50 + 1))};
    if (schedule.getWarps())
      costs = gpuCosts(schedule);
    return b.getDictionaryAttr(costs);
  };
  SmallVector<Attribute> bodies, merges;
  llvm::SmallDenseSet<int64_t> tileRows;
  for (auto [index, attr] : llvm::enumerate(schedules)) {
    auto schedule = cast<ScheduleAttr>(attr);
    std::string rows = std::to_string(schedule.getTileRows());
    std::string symbol = (name + "_rows" + rows).str();
    // States depend on the number of rows alone: one merge serves both bodies.
    bool isKnown = !tileRows.insert(schedule.getTileRows()).second;
    if (isKnown)
      symbol += "_" + std::to_string(index);
    if (!buildBody(symbol, schedule))
      return {};
    SmallVector<NamedAttribute> body = {
        named("symbol", string(symbol)),
        named("tile_rows", number(schedule.getTileRows())),
        named("tile_keys", number(schedule.getTileKeys())),
        named("max_rows", schedule.getMaxRows()
                              ? Attribute(number(schedule.getMaxRows()))
                              : b.getUnitAttr()),
        named("scratch", number(0)),
        named("cost", cost(schedule))};
    if (mergesItself(schedule))
      llvm::append_values(body, named("counters", b.getBoolAttr(true)),
                          named("merge_fan_in", number(kMergeFanIn)));
    bodies.push_back(b.getDictionaryAttr(body));
    if (isKnown || !op.getNormaliser().canMerge())
      continue;
    symbol = (name + "_merge" + rows).str();
    buildMerge(symbol, schedule);
    merges.push_back(b.getDictionaryAttr(
        {named("symbol", string(symbol)),
         named("tile_rows", number(schedule.getTileRows())),
         named("scratch", number(0)),
         named("cost",
               b.getDictionaryAttr(
                   {named("item", number(200)),
                    named("slot_row", number(view.getValueDim() / 8))}))}));
  }
  SmallVector<NamedAttribute> stageEntry = {
      named("op", string("attention")),
      named("name", string(name)),
      named("query", string(buffers.get(op.getQuery()).name)),
      named("rows", nameOrNull(op.getRows())),
      named("positions", nameOrNull(op.getPositions())),
      named("view", describeView(op.getView(), buffers)),
      named("heads",
            b.getDictionaryAttr({named("q", number(op.getQueryHeads())),
                                 named("kv", number(view.getKVHeads()))})),
      named("dims",
            b.getDictionaryAttr({named("qk", number(view.getKeyDim())),
                                 named("vo", number(view.getValueDim()))})),
      named("outputs",
            b.getDictionaryAttr(
                {named("o", string(destinations.outputName)),
                 named("lse", destinations.statistic
                                  ? string(destinations.statisticName)
                                  : b.getUnitAttr())})),
      named("buffers", stage.getNames()),
      named("bodies", b.getArrayAttr(bodies))};
  if (op.getQueryTail())
    stageEntry.push_back(named("query_tail", nameOrNull(op.getQueryTail())));
  if (!merges.empty())
    stageEntry.push_back(named("merge", b.getArrayAttr(merges)));
  if (split) {
    SmallVector<NamedAttribute> policy = {
        named("policy", string(split.getKeys() ? "fixed" : "balanced"))};
    if (split.getKeys())
      policy.push_back(named("keys", number(split.getKeys())));
    stageEntry.push_back(named("split", b.getDictionaryAttr(policy)));
  }
  if (!op.getMaskRegion().empty()) {
    // Without bounds nothing is known: every tile is visited and tested.
    ArrayAttr terms = op.getBoundsAttr();
    if (!terms)
      terms = b.getArrayAttr(b.getDictionaryAttr(
          {named("lo", b.getArrayAttr({})), named("hi", b.getArrayAttr({})),
           named("exact", b.getBoolAttr(false))}));
    stageEntry.push_back(
        named("mask", b.getDictionaryAttr(named("terms", terms))));
  }
  return b.getDictionaryAttr(stageEntry);
}

DictionaryAttr fi::tile::buildAttentionStage(OpBuilder &b, AttentionOp op,
                                             ProgramBuffers &buffers,
                                             StringRef name) {
  return AttentionStage(b, op, buffers, name).build();
}
