//===- ChooseSchedule.cpp - tiles for a target ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The register block is what fills a core's vector registers without spilling,
// measured: 6x4 vectors with 32 registers, which asks for fewer loads a product
// than 8x2; 6x2 or 4x2 with 16. Few packed rows (decode) make a block of their
// own, as tall as the query heads of a KV head, so that few multiplies are
// spent on rows that are not there.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FP8.h"
#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "fi/Target/RegisterModel.h"
#include "fi/Target/SMTable.h"
#include "fi/Target/SharedModel.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace fi {
#define GEN_PASS_DEF_FICHOOSESCHEDULEPASS
#include "fi/Dialect/FI/Transforms/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

namespace {

/// Keys of a tile: enough to pay for a tile's fixed work; few, where the tile
/// and the next one are to stay in the first-level cache.
constexpr int64_t kManyKeys = 64, kFewKeys = 32;
/// Packed rows of a tile that share the work of packing its keys.
constexpr int64_t kManyRows = 192;
/// The same where hardware multiplies tiles: more, since products cost little
/// beside packing, and beside accumulators' way to memory and back.
constexpr int64_t kTiledKeys = 128, kTiledRows = 384;
/// Requests of at most so many packed rows get the decode body.
constexpr int64_t kFewRows = 16;

ArrayAttr chooseForCPU(AttentionOp op, TargetAttr target) {
  Builder b(op.getContext());
  bool wide = target.getVectorBits() == 512;
  int64_t lanes = target.getVectorBits() / 32;

  // A power of two, so that rows times keys fill a vector of sums.
  int64_t fewMr =
      std::min<int64_t>(llvm::PowerOf2Ceil(op.getGroup()), wide ? 8 : 4);
  auto few = ScheduleAttr::get(op.getContext(), kFewRows, kFewKeys, fewMr,
                               /*nr=*/2, lanes, /*maxRows=*/kFewRows,
                               /*stream=*/1);

  int64_t mr = target.getVectorBits() >= 256 ? 6 : 4, nr = wide ? 4 : 2;
  int64_t keys = kManyKeys, rows = kManyRows / mr * mr;
  // Four accumulators of 16 x 16 where tiles of bf16 are multiplied in
  // hardware. What a transform computes is of f32. Keys of two parts are two
  // products, which have tiles of one shape only if their depths are whole.
  constexpr int64_t kDepth = 32;
  int64_t tail = op.getViewType().getTailDim();
  bool isWhole = tail == 0 || (tail % kDepth == 0 &&
                               op.getViewType().getKeyDim() % kDepth == 0);
  if (target.getAmx() && isWhole && !op.getPairing() &&
      op.getQueryType().getElementType().isBF16() &&
      op.getViewType().getKeyType().isBF16() &&
      op.getViewType().getValueType().isBF16()) {
    mr = 32;
    nr = 2;
    keys = kTiledKeys;
    rows = kTiledRows;
  } else if (op.getPairing()) {
    // Keys are transformed anew for each tile of rows.
    rows = kTiledRows / mr * mr;
  }
  auto many = ScheduleAttr::get(op.getContext(), rows, keys, mr, nr, lanes,
                                /*maxRows=*/0, /*stream=*/0);
  return b.getArrayAttr({few, many});
}

/// Registers that may spill where that saves reading each fragment of keys for
/// twice as many rows: outside the loops, as measured (docs/performance.md).
constexpr int64_t kSpilledRegisters = 48;
constexpr int64_t kLanes = 32;

/// Whether the warps of a body have registers for their rows.
bool hasRegisters(AttentionOp op, const sm::Target *chip, int64_t rows,
                  int64_t keys, int64_t warps) {
  auto view = op.getViewType();
  AttentionShape shape;
  shape.rowsPerWarp = rows / warps;
  shape.keys = keys;
  shape.keyDim = view.getKeyDim();
  shape.valueDim = view.getValueDim();
  shape.keyBytes = std::max(1u, view.getKeyType().getIntOrFloatBitWidth() / 8);
  shape.copyThreads = kLanes * warps;
  int64_t page = view.getPageSize();
  if (page == 0)
    shape.pageKeys = keys; // no table
  else if (!ShapedType::isDynamic(page))
    shape.pageKeys = page;
  constexpr int64_t unknown = 255;
  int64_t limit = chip ? getRegisterLimit(*chip, kLanes * warps) : unknown;
  return estimateRegisters(shape) <= limit + kSpilledRegisters;
}

/// Whether the query's type is one that products of the target do not take.
bool isWidened(AttentionOp op) {
  return getQueryNumbers(op).isBF16() && !hasFeature(op, sm::MmaBF16);
}

/// Whether products of queries and keys, or of weights and values, are of f32:
/// transformed rows, types that are f32 or differ, and what the target does not
/// multiply.
bool multipliesF32(AttentionOp op) {
  auto view = op.getViewType();
  Type query = getQueryNumbers(op);
  return op.getPairing() || query.isF32() || view.getValueType().isF32() ||
         isWidened(op) || exceedsRange(view, false, query) ||
         exceedsRange(view, true, query) ||
         (query != view.getKeyType() && !isQuantised(view, false));
}

/// Whether tensor cores multiply the codes of queries and keys.
bool multipliesFP8(AttentionOp op) {
  auto view = op.getViewType();
  int64_t tail = view.getTailDim();
  return isFP8(op.getQueryType().getElementType()) &&
         isFP8(view.getKeyType()) && !op.getPairing() && tail % 32 == 0 &&
         view.getKeyDim() % 32 == 0 && hasFeature(op, sm::FastMmaFP8);
}

/// The buffers of a body in shared memory, by the bytes of their rows: those of
/// the query, of keys and values with `stages` slots each, and of rows that are
/// computed for a product and lie there once more (PlaceOperands.cpp). These
/// are queries and keys that regions transform, in f32, by halves, and codes,
/// as numbers of the query's type, that products do not convert themselves.
struct SharedRows {
  SmallVector<int64_t, 4> queries, stagedKeys, computedKeys;
};
SharedRows getSharedRows(AttentionOp op) {
  auto view = op.getViewType();
  SharedRows rows;
  Type query = getQueryNumbers(op),
       inMemory = op.getQueryType().getElementType();
  int64_t queryBits = query.getIntOrFloatBitWidth();
  int64_t tail = view.getTailDim();
  bool multipliesFP8 = ::multipliesFP8(op);
  auto add = [](SmallVectorImpl<int64_t> &to, int64_t dim, int64_t bits) {
    if (dim)
      to.push_back(getSharedPitch(dim, bits));
  };
  auto per = getNumberGranularity(view, /*wantValues=*/true);
  bool hasOwnScales = per == Granularity::Page || per == Granularity::Token;
  int64_t keyBits = view.getKeyType().getIntOrFloatBitWidth();
  for (int64_t dim : {view.getKeyDim() - tail, tail}) {
    add(rows.queries, dim, inMemory.getIntOrFloatBitWidth());
    if (query != inMemory && !multipliesFP8 && !op.getPairing())
      add(rows.queries, dim, multipliesF32(op) ? 32 : queryBits);
    add(rows.stagedKeys, dim, keyBits);
  }
  bool isShared = view.sharesValues() && !hasOwnScales &&
                  (isQuantised(view, true) || query == view.getKeyType());
  if (!isShared)
    add(rows.stagedKeys, view.getValueDim(),
        view.getValueType().getIntOrFloatBitWidth());
  auto addComputed = [&](bool wantValues) {
    int64_t dim = wantValues ? view.getValueDim() : view.getKeyDim();
    bool hasBlocks = static_cast<bool>(getBlockScaledType(view, wantValues));
    if (!isQuantised(view, wantValues) ||
        (!query.isF32() && !isWidened(op) && dim % 32 == 0 && !hasBlocks &&
         !(wantValues && hasOwnScales)))
      return;
    int64_t bits =
        isWidened(op) || exceedsRange(view, wantValues, query) ? 32 : queryBits;
    int64_t part = wantValues ? 0 : tail;
    add(rows.computedKeys, dim - part, bits);
    add(rows.computedKeys, part, bits);
  };
  if (op.getPairing()) {
    for (auto *computed : {&rows.queries, &rows.computedKeys})
      for (int64_t half : {0, 1})
        add(*computed, (view.getKeyDim() + half) / 2, 32);
  } else {
    addComputed(/*wantValues=*/false);
  }
  addComputed(/*wantValues=*/true);
  return rows;
}

/// Many rows by warpgroups, where the target multiplies so and the operands lie
/// in memory as products take them: three of 64 rows, two where accumulators
/// are wide. Null where they do not fit.
ScheduleAttr chooseWarpgroups(AttentionOp op, const sm::Target *chip) {
  auto view = op.getViewType();
  Type query = op.getQueryType().getElementType();
  if (!chip || !chip->has(sm::Feature::Wgmma) ||
      !chip->has(sm::Feature::Setmaxnreg) || multipliesF32(op) ||
      query != view.getKeyType() || query != view.getValueType() ||
      isQuantised(view, false) || isQuantised(view, true) ||
      view.sharesValues() || op.getQueryTail())
    return {};
  constexpr int64_t kMostValues = 256, kWideValues = 128;
  int64_t keyDim = view.getKeyDim(), valueDim = view.getValueDim();
  if (keyDim % 8 != 0 || valueDim % 8 != 0 || valueDim > kMostValues)
    return {};
  // Four warps copy with few registers; of a lane's others, the output takes
  // half a column each, scores and weights as many, since scores may be asked
  // for again behind their weights, and the weights of the tile before half.
  constexpr int64_t kLoadWarps = 4, kOthers = 12;
  int64_t warps = valueDim > kWideValues ? 8 : 12, rows = 16 * warps;
  int64_t registers = getRoleRegisters(*chip, warps, kLoadWarps).computing;
  auto panels = [](int64_t dim) { return llvm::alignTo(dim, 64) * 2; };
  for (int64_t keys : {128, 112, 96, 80, 64, 32, 16}) {
    if (valueDim / 2 + keys * 5 / 4 + kOthers > registers)
      continue;
    int64_t stage = keys * (panels(keyDim) + panels(valueDim));
    constexpr int64_t kMostStages = 4, kBarriers = 1024;
    int64_t stages =
        (chip->maxSharedPerCTA - kBarriers - rows * panels(keyDim)) / stage;
    if (stages < 2)
      continue;
    return ScheduleAttr::get(
        op.getContext(), rows, keys, /*mr=*/0, /*nr=*/0, /*lanes=*/4,
        /*maxRows=*/0, /*stream=*/0, warps, /*keyWarps=*/1,
        std::min(stages, kMostStages), kLoadWarps, /*wgmma=*/1, /*rotate=*/1,
        /*turns=*/0, /*tma=*/chip->has(sm::Feature::Tma), /*late=*/1);
  }
  return {};
}

/// A warp's accumulator and scores have to fit into its registers: 32 rows a
/// warp share each fragment of keys; 16 where the values are too wide for that,
/// and where numbers of f32 are split into several for a product.
ArrayAttr chooseForGPU(AttentionOp op, const sm::Target *chip) {
  Builder b(op.getContext());
  MLIRContext *context = op.getContext();
  int64_t dim = op.getViewType().getValueDim();
  auto make = [&](int64_t rows, int64_t keys, int64_t maxRows, int64_t warps,
                  int64_t keyWarps, int64_t stages) -> Attribute {
    return ScheduleAttr::get(context, rows, keys, /*mr=*/0, /*nr=*/0,
                             /*lanes=*/4, maxRows, /*stream=*/0, warps,
                             keyWarps, stages);
  };
  // Few rows: memory is the limit. Warps take key tiles in turn, each with a
  // ring of its own, and share their states at the end.
  int64_t keyWarps = dim % 32 == 0 ? 4 : 1;
  // As many bytes of keys on their way, whatever an element takes.
  auto view = op.getViewType();
  int64_t fewKeys =
      isCode(view.getKeyType()) && isCode(view.getValueType()) ? 32 : 16;
  SmallVector<Attribute> bodies = {
      make(16, fewKeys, /*maxRows=*/16, /*warps=*/1, keyWarps, /*stages=*/2)};
  if (multipliesF32(op)) {
    // Without an instruction for them a product is a fused one for each number:
    // small tiles, or there are more than an assembler bears.
    bool hasProducts = !chip || chip->has(sm::MmaTF32);
    bodies.push_back(make(64, hasProducts ? 64 : 16, /*maxRows=*/0, /*warps=*/4,
                          /*keyWarps=*/1, /*stages=*/2));
    return b.getArrayAttr(bodies);
  }
  // Two warps share each tile of keys, and several such pairs take turns.
  bodies.push_back(make(32, 32, /*maxRows=*/32, /*warps=*/2, keyWarps,
                        /*stages=*/keyWarps > 1 ? 2 : 3));
  if (ScheduleAttr many = chooseWarpgroups(op, chip)) {
    bodies.push_back(many);
    return b.getArrayAttr(bodies);
  }
  int64_t warps = hasRegisters(op, chip, 128, 64, /*warps=*/4) ? 4 : 8;
  bodies.push_back(make(128, 64, /*maxRows=*/0, warps, 1, /*stages=*/2));
  return b.getArrayAttr(bodies);
}

/// Tiles of keys lie in one block of a block-sparse view each. A target has a
/// least number of keys for a tile. Null after an error.
ArrayAttr fitToBlocks(ArrayAttr schedules, AttentionOp op, TargetAttr target) {
  auto bsr = dyn_cast<BsrKVType>(op.getView().getType());
  if (!bsr)
    return schedules;
  constexpr int64_t kKeysOfProduct = 16;
  int64_t least = target.isCPU() ? target.getVectorBits() / 32 : kKeysOfProduct;
  if (bsr.getColumns() % least != 0) {
    op.emitOpError("expected blocks of a multiple of ")
        << least << " columns, which a tile has at least, but got "
        << bsr.getColumns()
        << "; a paged view with the blocks of rows as requests takes any "
           "[SCH8]";
    return {};
  }
  SmallVector<Attribute> fitted;
  for (auto s : schedules.getAsRange<ScheduleAttr>())
    fitted.push_back(s.withTiles(s.getTileRows(),
                                 std::gcd(s.getTileKeys(), bsr.getColumns()),
                                 s.getWarps(), s.getKeyWarps(), s.getStages()));
  return ArrayAttr::get(op.getContext(), fitted);
}

/// Makes tiles smaller until their buffers fit into the shared memory of a CTA:
/// the query's rows, and a ring of keys and values for each group of warps. The
/// larger of the two is halved, the ring by its keys as long as a product has
/// enough of them.
ScheduleAttr fitToShared(ScheduleAttr schedule, AttentionOp op, int64_t limit) {
  constexpr int64_t kLeast = 16; // rows of a warp, and keys of a product
  int64_t rows = schedule.getTileRows(), keys = schedule.getTileKeys();
  int64_t warps = schedule.getWarps(), keyWarps = schedule.getKeyWarps(),
          stages = schedule.getStages();
  SharedRows shared = getSharedRows(op);
  while (true) {
    auto sum = [&](ArrayRef<int64_t> pitches, int64_t count, int64_t slots) {
      int64_t bytes = 0;
      for (int64_t pitch : pitches)
        bytes += getSharedChannelBytes(count, pitch, slots);
      return bytes;
    };
    // Groups of warps have a ring and a query each.
    int64_t groups = std::max<int64_t>(1, keyWarps);
    int64_t ring = groups * (sum(shared.stagedKeys, keys, stages) +
                             sum(shared.computedKeys, keys, 1));
    int64_t queries = groups * sum(shared.queries, rows, 1);
    // Their states take the place of both.
    int64_t states =
        groups > 1
            ? groups * rows *
                  (llvm::alignTo(4 * op.getViewType().getValueDim(), 128) + 32 +
                   4)
            : 0;
    if (std::max(queries + ring, states) + kSharedFlagBytes <= limit)
      break;
    if (rows > kLeast && queries >= ring) {
      rows /= 2;
      warps = std::min(warps, rows / kLeast);
    } else if (keys > kLeast) {
      keys /= 2;
    } else if (stages > 2) {
      --stages;
    } else if (keyWarps > 1) {
      keyWarps /= 2;
    } else if (stages > 1) {
      --stages;
    } else if (rows > kLeast) {
      rows /= 2;
      warps = std::min(warps, rows / kLeast);
    } else {
      break; // Nothing smaller: whoever allocates says by how much.
    }
  }
  return schedule.withTiles(rows, keys, warps, keyWarps, stages);
}

/// A body without the bound of rows that it is for.
ScheduleAttr forAnyRows(ScheduleAttr s) {
  return ScheduleAttr::get(
      s.getContext(), s.getTileRows(), s.getTileKeys(), s.getMr(), s.getNr(),
      s.getLanes(), /*maxRows=*/0, s.getStream(), s.getWarps(), s.getKeyWarps(),
      s.getStages(), s.getLoadWarps(), s.getWgmma(), s.getRotate(),
      s.getTurns(), s.getTma(), s.getLate());
}

ArrayAttr fitToChip(ArrayAttr schedules, AttentionOp op, TargetAttr target) {
  const sm::Target *chip = target.getChip();
  if (!chip)
    return schedules;
  SmallVector<Attribute> fitted;
  // Those of warpgroups were made to fit.
  for (auto schedule : schedules.getAsRange<ScheduleAttr>())
    fitted.push_back(schedule.getWgmma()
                         ? schedule
                         : fitToShared(schedule, op, chip->maxSharedPerCTA));
  // Of bodies that have become alike, the one for more rows.
  SmallVector<Attribute> different;
  for (auto [number, schedule] : llvm::enumerate(fitted))
    if (number + 1 == fitted.size() ||
        forAnyRows(cast<ScheduleAttr>(schedule)) !=
            forAnyRows(cast<ScheduleAttr>(fitted[number + 1])))
      different.push_back(schedule);
  return ArrayAttr::get(op.getContext(), different);
}

struct ChooseSchedule : fi::impl::FIChooseSchedulePassBase<ChooseSchedule> {
  void runOnOperation() override {
    auto target = getOperation()->getAttrOfType<TargetAttr>(kTargetAttr);
    if (!target) {
      getOperation().emitError(
          "expected a module with the attribute 'fi.target', "
          "for example #fi.target<cpu, vector_bits = 256>");
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([&](AttentionOp op) {
      if (op.getSchedulesAttr())
        return WalkResult::advance();
      ArrayAttr schedules =
          fitToBlocks(target.isCPU() ? chooseForCPU(op, target)
                                     : chooseForGPU(op, target.getChip()),
                      op, target);
      if (!schedules)
        return WalkResult::interrupt();
      op.setSchedulesAttr(target.isCPU() ? schedules
                                         : fitToChip(schedules, op, target));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
