//===- RowsStage.cpp - kernels of fi.append and of the algebra of states --===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "CompanionStage.h"
#include "RegionInliner.h"
#include "StageBuilder.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

static constexpr int64_t kTileRows = kStageRows;

ScheduleAttr fi::tile::getRowsSchedule(Operation *op, int64_t tileRows) {
  auto target =
      op->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(kTargetAttr);
  MLIRContext *context = op->getContext();
  if (target && !target.isCPU())
    return ScheduleAttr::get(context, tileRows, /*tileKeys=*/tileRows,
                             /*mr=*/0, /*nr=*/0, /*lanes=*/1, /*maxRows=*/0,
                             /*stream=*/0, /*warps=*/tileRows / 16,
                             /*keyWarps=*/1, /*stages=*/1);
  return ScheduleAttr::get(context, tileRows, /*tileKeys=*/tileRows,
                           /*mr=*/8, /*nr=*/2, /*lanes=*/1, /*maxRows=*/0,
                           /*stream=*/0);
}

/// On a GPU a lane has 32 elements, two rows at least: loads enough to hide the
/// way to memory, and few registers, so that many tiles are on a
/// multiprocessor. Longer rows take more warps. On a CPU a tile stays in the
/// second level cache.
ScheduleAttr fi::tile::getRowTiling(Operation *op, int64_t dim) {
  auto target =
      op->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(kTargetAttr);
  auto make = [&](int64_t rows, int64_t mr, int64_t warps) {
    return ScheduleAttr::get(op->getContext(), rows, /*tileKeys=*/rows, mr,
                             /*nr=*/mr ? 2 : 0, /*lanes=*/1, /*maxRows=*/0,
                             /*stream=*/0, warps, /*keyWarps=*/warps ? 1 : 0,
                             /*stages=*/warps ? 1 : 0);
  };
  if (!target || target.isCPU()) {
    constexpr int64_t kElements = 16384, kShort = 256;
    if (dim <= kShort)
      return make(kStageRows, /*mr=*/8, /*warps=*/0);
    int64_t rows = std::max<int64_t>(
        2, llvm::bit_floor<uint64_t>(std::min<int64_t>(kElements / dim, 16)));
    return make(rows, /*mr=*/2, /*warps=*/0);
  }
  constexpr int64_t kChunks = 4, kMostWarps = 16;
  AtomInfo atom = getAtomInfo(getRowAtom(dim));
  if (dim <= atom.columns)
    return make(kChunks * atom.rows * 4, 0, /*warps=*/4);
  int64_t columnWarps = std::min<int64_t>(
      kMostWarps, llvm::divideCeil(dim, atom.columns * kChunks / 2));
  int64_t rowWarps = std::max<int64_t>(1, 4 / columnWarps);
  return make(2 * rowWarps, 0, rowWarps * columnWarps);
}

Attribute fi::tile::describeBodies(Builder &b, StringRef symbol,
                                   int64_t tileRows) {
  return b.getArrayAttr(b.getDictionaryAttr(
      {b.getNamedAttr("symbol", b.getStringAttr(symbol)),
       b.getNamedAttr("tile_rows", b.getI64IntegerAttr(tileRows)),
       b.getNamedAttr("scratch", b.getI64IntegerAttr(0)),
       b.getNamedAttr("cost", b.getDictionaryAttr(b.getNamedAttr(
                                  "item", b.getI64IntegerAttr(500))))}));
}

static RankedTensorType tileOf(int64_t columns, Type element) {
  return RankedTensorType::get({kTileRows, columns}, element);
}

Value fi::tile::convertTile(OpBuilder &b, Location loc, Value tile,
                            Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType() == element)
    return tile;
  // Between narrow floats the way is through f32.
  if (!type.getElementType().isF32())
    tile = arith::ExtFOp::create(b, loc, type.clone(b.getF32Type()), tile);
  if (element.isF32())
    return tile;
  return arith::TruncFOp::create(b, loc, type.clone(element), tile);
}

DictionaryAttr fi::tile::buildAppendStage(OpBuilder &b, AppendOp op,
                                          ProgramBuffers &buffers,
                                          StringRef name) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = op.getLoc();
  StageBuilder stage(b, loc);
  auto view = cast<KVViewTypeInterface>(op.getView().getType());
  unsigned keys = stage.use(buffers.get(op.getKeys()));
  unsigned values = stage.use(buffers.get(op.getValues()));
  ViewBuffers viewBuffers = useView(stage, op.getView(), buffers);
  SmallVector<unsigned> captures;
  for (Value capture : op.getCaptures())
    captures.push_back(stage.use(buffers.get(capture)));
  std::string symbol = (name + "_rows" + Twine(kTileRows)).str();
  KernelOp kernel = stage.createKernel(symbol, getRowsSchedule(op, kTileRows));
  Block &entry = kernel.getBody().front();
  Value viewValue = createView(stage, kernel, op.getView(), viewBuffers);
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  Value item = items.getItem();
  auto field = [&](Field which) -> Value {
    return ItemOp::create(b, loc, item, which);
  };
  // Token i becomes key kv_len - q_len + i.
  Value key =
      arith::SubIOp::create(b, loc, field(Field::KVLen), field(Field::QLen));
  key = arith::AddIOp::create(b, loc, key, field(Field::RowBegin));
  for (bool isSecond : {false, true}) {
    KVPart part = isSecond ? view.getSecondPart() : KVPart::Keys;
    unsigned buffer = isSecond ? values : keys;
    int64_t dim = view.getPartDim(part);
    Type element = view.getPartType(part);
    Value source = entry.getArgument(buffer);
    Type sourceElement = cast<MemRefType>(source.getType()).getElementType();
    bool wantValues = part == KVPart::Values;
    if (BlockScaledType blocks = getBlockScaledType(view, wantValues)) {
      Value number;
      if (auto per = getNumberGranularity(view, wantValues)) {
        number = entry.getArgument(*viewBuffers.scales[wantValues]);
        if (per == Granularity::Head)
          number = GatherOp::create(b, loc, b.getF32Type(), number,
                                    ValueRange{field(Field::KVHead)});
      }
      Value tile =
          LoadRowsOp::create(b, loc, tileOf(dim, sourceElement), source, item,
                             /*group=*/1, /*head=*/Value(), /*first=*/Value(),
                             /*step=*/1);
      tile = convertTile(b, loc, tile, b.getF32Type());
      auto [codes, scales] = quantiseBlocks(b, loc, tile, blocks, number);
      StoreScalesOp::create(b, loc, part, scales,
                            entry.getArgument(*viewBuffers.blocks[wantValues]),
                            viewValue, item, key);
      StoreKVOp::create(b, loc, part, codes, viewValue, item, key);
      continue;
    }
    // A number that all rows share, or a column.
    Value scales;
    if (auto per = getNumberGranularity(view, wantValues)) {
      scales = entry.getArgument(*viewBuffers.scales[wantValues]);
      switch (*per) {
      case Granularity::Tensor:
        break;
      case Granularity::Head:
        scales = GatherOp::create(b, loc, b.getF32Type(), scales,
                                  ValueRange{field(Field::KVHead)});
        break;
      case Granularity::Page:
      case Granularity::Token:
        scales = LoadScalesOp::create(b, loc, tileOf(1, b.getF32Type()), part,
                                      scales, viewValue, item, key);
        break;
      }
    }
    auto load = [&](int64_t columns, Value first, int64_t step) -> Value {
      Value tile = LoadRowsOp::create(
          b, loc, tileOf(columns, sourceElement), source, item, /*group=*/1,
          /*head=*/Value(), first, static_cast<uint64_t>(step));
      return scales || first ? convertTile(b, loc, tile, b.getF32Type()) : tile;
    };
    auto store = [&](Value tile, Value first, int64_t step) {
      if (scales) {
        ArrayRef<int64_t> shape =
            cast<RankedTensorType>(tile.getType()).getShape();
        tile = arith::DivFOp::create(b, loc, tile,
                                     broadcastTo(b, loc, scales, shape));
        tile = quantise(b, loc, tile, element);
      } else {
        tile = convertTile(b, loc, tile, element);
      }
      StoreKVOp::create(b, loc, part, tile, viewValue, item, key, first,
                        static_cast<uint64_t>(step));
    };
    Region *region = op.getTransform(isSecond);
    if (!region) {
      store(load(dim, Value(), 1), Value(), 1);
      continue;
    }
    Value position = arith::AddIOp::create(b, loc, key, field(Field::KVOrigin));
    position = IotaOp::create(b, loc, tileOf(1, b.getIndexType()), position);
    SmallVector<Value> arguments = {field(Field::Request), field(Field::KVHead),
                                    position};
    for (unsigned capture : captures)
      arguments.push_back(entry.getArgument(capture));
    if (failed(buildTransform(b, loc,
                              {*region, *op.getPairing(),
                               static_cast<int64_t>(op.getDims().value_or(dim)),
                               dim, kTileRows, arguments, load, store})))
      return {};
  }
  return b.getDictionaryAttr(
      {b.getNamedAttr("op", b.getStringAttr("append")),
       b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("query", b.getStringAttr(buffers.get(op.getKeys()).name)),
       b.getNamedAttr("rows", b.getStringAttr(buffers.get(op.getRows()).name)),
       b.getNamedAttr("view", describeView(op.getView(), buffers)),
       b.getNamedAttr("buffers", stage.getNames()),
       b.getNamedAttr("bodies", describeBodies(b, symbol, kTileRows))});
}

namespace {

/// fi.merge, fi.finalize and fi.empty: each row and head by itself.
class RowsStage {
public:
  RowsStage(OpBuilder &b, Operation *op, ProgramBuffers &buffers,
            StringRef name)
      : b(b), loc(op->getLoc()), op(op), buffers(buffers), name(name),
        stage(b, op->getLoc()) {}

  DictionaryAttr build();

private:
  struct StateBuffers {
    unsigned output, statistic;
  };
  StateBuffers useState(Value state) {
    return {stage.use(buffers.get(state)),
            stage.use(buffers.getStatistic(state))};
  }
  std::pair<Value, Value> load(StateBuffers state) {
    return {loadRows(state.output), loadRows(state.statistic)};
  }
  /// What the plan knows of an empty state's rows; null after an error.
  Attribute findRows(EmptyOp empty);
  /// The normaliser's own state before the first key, finalised.
  std::pair<Value, Value> makeEmpty(StateType type);
  Value loadRows(unsigned buffer) {
    Value source = entry->getArgument(buffer);
    auto type = cast<MemRefType>(source.getType());
    int64_t columns = type.getRank() == 3 ? type.getDimSize(2) : 1;
    return LoadRowsOp::create(b, loc, tileOf(columns, type.getElementType()),
                              source, item, /*group=*/1);
  }
  void storeRows(Value tile, unsigned buffer) {
    Value target = entry->getArgument(buffer);
    Type element = cast<MemRefType>(target.getType()).getElementType();
    StoreRowsOp::create(b, loc, convertTile(b, loc, tile, element), target,
                        item,
                        /*group=*/1, Value());
  }

  OpBuilder &b;
  Location loc;
  Operation *op;
  ProgramBuffers &buffers;
  StringRef name;
  StageBuilder stage;
  Block *entry = nullptr;
  Value item;
};

} // namespace

Attribute RowsStage::findRows(EmptyOp empty) {
  Value rows = empty.getRows();
  if (!rows)
    return b.getI64IntegerAttr(empty.getType().getRows());
  return buffers.findRows(op, rows);
}

std::pair<Value, Value> RowsStage::makeEmpty(StateType type) {
  NormaliserAttrInterface normaliser = type.getNormaliser();
  RankedTensorType output = tileOf(type.getDim(), b.getF32Type());
  SmallVector<Type> running = {output};
  llvm::append_range(running, normaliser.getRunningTypes(
                                  b.getContext(), kTileRows, /*lanes=*/1));
  auto init = InitOp::create(b, loc, running, normaliser);
  auto final = tile::FinalizeOp::create(
      b, loc, output, tileOf(1, b.getF32Type()), normaliser, init.getRunning(),
      /*sink=*/Value());
  return {final.getOutput(), final.getStatistic()};
}

DictionaryAttr RowsStage::build() {
  SmallVector<Value> states;
  if (auto merge = dyn_cast<fi::MergeOp>(op))
    llvm::append_range(states, merge.getStates());
  else if (auto finalize = dyn_cast<fi::FinalizeOp>(op))
    states.push_back(finalize.getState());
  auto empty = dyn_cast<EmptyOp>(op);
  if (empty) {
    Attribute rows = findRows(empty);
    if (!rows)
      return {};
    // Its state is what the kernel makes; here it names the rows.
    states.push_back(empty.getResult());
    buffers.setRows(empty.getResult(), rows);
  }
  StateType type = cast<StateType>(states[0].getType());
  NormaliserAttrInterface normaliser = type.getNormaliser();
  SmallVector<StateBuffers> inputs;
  if (!empty)
    for (Value state : states)
      inputs.push_back(useState(state));
  std::optional<unsigned> sink;
  StateBuffers output;
  bool hasStatistic = true;
  if (auto merge = dyn_cast<fi::MergeOp>(op)) {
    buffers.defineState(merge.getResult(), states[0]);
    output = useState(merge.getResult());
  } else if (empty) {
    buffers.defineState(empty.getResult(), empty.getResult());
    output = useState(empty.getResult());
  } else {
    auto finalize = cast<fi::FinalizeOp>(op);
    if (finalize.getSink())
      sink = stage.use(buffers.get(finalize.getSink()));
    for (Value result : finalize.getResults())
      if (failed(buffers.define(result, states[0])))
        return {};
    SmallVector<Value> places(finalize.getResults());
    if (places.empty())
      llvm::append_range(places, finalize.getOuts());
    output.output = stage.use(buffers.get(places[0]));
    hasStatistic = places.size() > 1;
    if (hasStatistic)
      output.statistic = stage.use(buffers.get(places[1]));
  }
  OpBuilder::InsertionGuard guard(b);
  std::string symbol = (name + "_rows" + Twine(kTileRows)).str();
  KernelOp kernel = stage.createKernel(symbol, getRowsSchedule(op, kTileRows));
  kernel->setAttr(kRowItemsAttr,
                  b.getDenseI64ArrayAttr({output.output, type.getHeads()}));
  entry = &kernel.getBody().front();
  auto items = ForItemsOp::create(b, loc, kernel.getWork());
  b.setInsertionPointToStart(&items.getBody().front());
  item = items.getItem();
  auto [o, statistic] = empty ? makeEmpty(type) : load(inputs[0]);
  for (StateBuffers next : llvm::drop_begin(inputs, empty ? 0 : 1)) {
    auto [o2, statistic2] = load(next);
    auto merged = tile::MergeOp::create(
        b, loc, TypeRange{o.getType(), statistic.getType()}, normaliser, o,
        statistic, o2, statistic2);
    o = merged.getOutput();
    statistic = merged.getStatistic();
  }
  if (sink) {
    Value head = ItemOp::create(b, loc, item, Field::KVHead);
    Value logit = GatherOp::create(b, loc, b.getF32Type(),
                                   entry->getArgument(*sink), ValueRange{head});
    Value tile = broadcastTo(b, loc, logit, {kTileRows, 1});
    auto sunk =
        SinkOp::create(b, loc, TypeRange{o.getType(), statistic.getType()},
                       normaliser, o, statistic, tile);
    o = sunk.getOutput();
    statistic = sunk.getStatistic();
  }
  storeRows(o, output.output);
  if (hasStatistic)
    storeRows(statistic, output.statistic);
  return b.getDictionaryAttr(
      {b.getNamedAttr("op", b.getStringAttr("rows")),
       b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("rows_of", buffers.rowsOf(states[0])),
       b.getNamedAttr("heads", b.getI64IntegerAttr(type.getHeads())),
       b.getNamedAttr("buffers", stage.getNames()),
       b.getNamedAttr("bodies", describeBodies(b, symbol, kTileRows))});
}

DictionaryAttr fi::tile::buildRowsStage(OpBuilder &b, Operation *op,
                                        ProgramBuffers &buffers,
                                        StringRef name) {
  return RowsStage(b, op, buffers, name).build();
}
