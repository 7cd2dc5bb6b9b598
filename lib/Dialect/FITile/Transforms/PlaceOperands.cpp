//===- PlaceOperands.cpp - decides where operands of products lie ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first pass of the placed form. What a product reads from memory goes
// through a channel in shared memory, waited for where it was loaded: keys and
// values, and the rows of the query. Operands that are computed from them, as
// rows that a region transforms, are read from such a buffer into registers and
// written to another one, so that the warps of a worker share the work. First
// operands that are computed in the product's own loop stay in registers.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FP8.h"
#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "fi/Target/SMTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fi::tile {
#define GEN_PASS_DEF_FITILEPLACEOPERANDS
#include "fi/Dialect/FITile/Transforms/Passes.h.inc"
} // namespace fi::tile

using namespace mlir;
using namespace fi;
using namespace fi::tile;

namespace {

struct PlaceOperandsPass
    : fi::tile::impl::FITilePlaceOperandsBase<PlaceOperandsPass> {
  void runOnOperation() override {
    known.clear();
    staged.clear();
    lastChannel = {};
    asCodes.clear();
    if (getOperation().getSchedule().getWgmma() && failed(markWarpgroups()))
      return signalPassFailure();
    llvm::SetVector<Operation *> loads;
    SmallVector<OpOperand *> computed;
    WalkResult result = getOperation().walk([&](DotOp dot) {
      for (OpOperand &operand : dot->getOpOperands().take_front(2)) {
        Value value = operand.get();
        Operation *def = value.getDefiningOp();
        if (isa_and_nonnull<LoadRowsOp, LoadKVOp>(def) && !isTable(def)) {
          loads.insert(def);
          // Codes that no product takes are converted where they are staged.
          if (isCode(elementInMemory(def))) {
            if (multipliesFP8(dot) || takesCodes(operand))
              asCodes.insert(&operand);
            else
              computed.push_back(&operand);
          }
          continue;
        }
        bool isSecond = operand.getOperandNumber() == 1;
        if (!isa<RankedTensorType>(value.getType()) ||
            (!isSecond && (!def || loopOf(def) == loopOf(dot))))
          continue;
        if (!def || !dot->getParentOfType<ForItemsOp>()) {
          dot.emitOpError("expected the second operand of a product to be "
                          "loaded, or computed for the item, but got a value "
                          "that a loop carries or that no item has")
              << " [TILE24]";
          return WalkResult::interrupt();
        }
        computed.push_back(&operand);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (OpOperand *operand : computed)
      collectLoads(operand->get(), loads);
    for (Operation *load : loads)
      place(load);
    // Columns of what was loaded are other values by now.
    llvm::MapVector<Value, SmallVector<OpOperand *>> byValue;
    for (OpOperand *operand : computed)
      byValue[operand->get()].push_back(operand);
    for (auto &[value, uses] : byValue)
      stage(value, uses);
  }

private:
  /// Products by warpgroups: all of a kernel that are.
  LogicalResult markWarpgroups() {
    KernelOp kernel = getOperation();
    auto target =
        kernel->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(
            kTargetAttr);
    const sm::Target *chip = target ? target.getChip() : nullptr;
    if (!chip || !chip->has(sm::Feature::Wgmma))
      return kernel.emitOpError("expected a target with products of warpgroups "
                                "for 'wgmma', but got ")
             << (chip ? llvm::StringRef(chip->name) : "none") << " [SCH9]";
    WalkResult result = kernel.walk([&](DotOp dot) {
      constexpr int64_t kMostColumns = 256;
      ShapedTile a(dot.getA().getType()), b(dot.getB().getType()),
          c(dot.getType());
      Operation *second = dot.getB().getDefiningOp();
      bool isHalf = a.element.isF16() || a.element.isBF16();
      // What products read lies in panels, for nobody else.
      bool isLoaded = isa_and_nonnull<LoadKVOp>(second) &&
                      llvm::all_of(second->getUsers(), llvm::IsaPred<DotOp>);
      if (!isHalf || a.element != b.element || !isLoaded ||
          elementInMemory(second) != b.element || c.columns % 8 != 0 ||
          c.columns > kMostColumns || (!dot.getTranspose() && b.rows % 16)) {
        dot.emitOpError("expected a product of f16 or bf16 with keys or values "
                        "as they are loaded, of a multiple of 8 columns up to ")
            << kMostColumns << ", for 'wgmma', but got " << dot.getA().getType()
            << " and " << dot.getB().getType()
            << "; leave 'wgmma' out of the schedule [SCH9]";
        return WalkResult::interrupt();
      }
      dot.setWarpgroup(true);
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static Operation *loopOf(Operation *op) {
    Operation *parent = op->getParentOp();
    while (parent && !isa<ForKeysOp, scf::ForOp>(parent))
      parent = parent->getParentOp();
    return parent;
  }

  /// Whether tensor cores take the numbers of both operands as they lie in
  /// memory, and faster than if they were converted.
  static bool multipliesFP8(DotOp dot) {
    auto a = dyn_cast<RankedTensorType>(dot.getA().getType());
    Operation *rows = dot.getA().getDefiningOp(),
              *keys = dot.getB().getDefiningOp();
    constexpr int64_t kDepth = 32;
    return a && a.getElementType().isF16() && a.getDimSize(1) % kDepth == 0 &&
           dot.getTranspose() && isa_and_nonnull<LoadRowsOp>(rows) &&
           !isTable(rows) && isa_and_nonnull<LoadKVOp>(keys) &&
           isFP8(elementInMemory(rows)) && isFP8(elementInMemory(keys)) &&
           hasFeature(dot, sm::FastMmaFP8);
  }

  /// Whether a product converts the codes that a buffer holds: those of keys
  /// where rows of the query lie in one too, those of values where weights are
  /// in registers. What it reads at once is of 32 columns.
  static bool takesCodes(OpOperand &operand) {
    auto dot = cast<DotOp>(operand.getOwner());
    auto a = dyn_cast<RankedTensorType>(dot.getA().getType());
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto kv = operand.get().getDefiningOp<LoadKVOp>();
    return operand.getOperandNumber() == 1 && a && kv &&
           isByteCode(elementInMemory(kv)) &&
           (a.getElementType().isF16() ||
            (a.getElementType().isBF16() && hasFeature(dot, sm::MmaBF16))) &&
           type.getDimSize(1) % 32 == 0 &&
           dot.getTranspose() ==
               isa_and_nonnull<LoadRowsOp>(dot.getA().getDefiningOp());
  }

  /// Whether an operation loads a number of each row, which is not copied.
  static bool isTable(Operation *load) {
    auto rows = dyn_cast<LoadRowsOp>(load);
    return rows && cast<MemRefType>(rows.getSource().getType()).getRank() != 3;
  }

  /// What `value` is computed from, element by element.
  void collectLoads(Value value, llvm::SetVector<Operation *> &loads) {
    SmallVector<Value> work = {value};
    llvm::SmallDenseSet<Value> seen;
    while (!work.empty()) {
      Value next = work.pop_back_val();
      Operation *def = next.getDefiningOp();
      if (!def || !isTile(next.getType()) || !seen.insert(next).second)
        continue;
      if (isa<LoadRowsOp, LoadKVOp>(def) && !isTable(def))
        loads.insert(def);
      else if (isPure(def))
        llvm::append_range(work, def->getOperands());
    }
  }

  ChannelOp createChannel(int64_t rows, int64_t columns, Type element) {
    OpBuilder b = OpBuilder::atBlockBegin(&getOperation().getBody().front());
    SmemAttr layout = getOperation().getSchedule().getWgmma()
                          ? getPanelLayout(&getContext(), rows)
                          : getSmemLayout(&getContext(), columns, element);
    auto buffer = BufType::get(&getContext(), rows, columns, element, layout);
    // Channels in the order in which they are made.
    if (lastChannel)
      b.setInsertionPointAfter(lastChannel);
    auto channel = ChannelOp::create(b, getOperation().getLoc(),
                                     ChanType::get(&getContext(), buffer, 1),
                                     IntegerAttr());
    lastChannel = channel;
    return channel;
  }

  /// The first and the last operation of `block` that is among `users` or holds
  /// one.
  static std::pair<Operation *, Operation *>
  rangeOf(ArrayRef<Operation *> users, Block *block) {
    Operation *first = nullptr, *last = nullptr;
    for (Operation *user : users) {
      Operation *inBlock = block->findAncestorOpInBlock(*user);
      if (!first || inBlock->isBeforeInBlock(first))
        first = inBlock;
      if (!last || last->isBeforeInBlock(inBlock))
        last = inBlock;
    }
    return {first, last};
  }

  /// The type of what is loaded as it lies in memory.
  static Type elementInMemory(Operation *load) {
    if (auto kv = dyn_cast<LoadKVOp>(load)) {
      auto view = cast<KVViewTypeInterface>(kv.getView().getType());
      return view.getPartType(kv.getPart());
    }
    return getElementTypeOrSelf(cast<LoadRowsOp>(load).getSource());
  }

  ChannelOp channelOf(Operation *load, RankedTensorType tile, Type element) {
    auto kv = dyn_cast<LoadKVOp>(load);
    auto create = [&] {
      return createChannel(tile.getDimSize(0), tile.getDimSize(1), element);
    };
    if (!kv)
      return create();
    // Loops that follow one another share a channel.
    ChannelOp channel;
    for (Known &other : known)
      if (other.part == kv.getPart() && other.view == kv.getView() &&
          other.type == tile && other.block != kv->getBlock())
        channel = other.channel;
    if (!channel)
      channel = create();
    known.push_back(
        {kv.getPart(), kv.getView(), tile, kv->getBlock(), channel});
    return channel;
  }

  /// A tile of a buffer, widened to `type`; all columns without `step`.
  static Value readFrom(OpBuilder &b, Value buffer, RankedTensorType type,
                        Type element, int64_t first = 0, int64_t step = 0) {
    Location loc = buffer.getLoc();
    IntegerAttr firstAttr, stepAttr;
    if (step) {
      firstAttr = b.getI64IntegerAttr(first);
      stepAttr = b.getI64IntegerAttr(step);
    }
    Value read = ReadOp::create(b, loc, type.clone(element), buffer, firstAttr,
                                stepAttr);
    if (element == type.getElementType())
      return read;
    if (element.isInteger())
      return arith::SIToFPOp::create(b, loc, type, read);
    return arith::ExtFOp::create(b, loc, type, read);
  }

  /// The copy is waited for where it is first used.
  void place(Operation *load) {
    Value tile = load->getResult(0);
    auto type = cast<RankedTensorType>(tile.getType());
    Type element = elementInMemory(load);
    Block *block = load->getBlock();
    ChannelOp channel = channelOf(load, type, element);
    OpBuilder b(load);
    Location loc = load->getLoc();
    auto free = AcquireOp::create(b, loc, channel);
    if (auto kv = dyn_cast<LoadKVOp>(load)) {
      CopyKVOp::create(b, loc, kv.getPart(), kv.getView(), kv.getItem(),
                       kv.getKey(), free, Value(), Value());
    } else {
      auto rows = cast<LoadRowsOp>(load);
      CopyRowsOp::create(b, loc, rows.getSource(), rows.getItem(), free,
                         rows.getGroup());
    }
    CommitOp::create(b, loc, channel);
    b.setInsertionPoint(
        rangeOf(llvm::to_vector(load->getUsers()), block).first);
    auto ready = GetOp::create(b, loc, channel);
    // A product takes a buffer in a tile's place: only the type differs. For
    // others it is read: as a whole, or the columns that are asked for.
    Operation *lastRead = ready;
    SmallVector<Operation *> products, replaced;
    Value whole;
    for (OpOperand &use : llvm::make_early_inc_range(tile.getUses())) {
      Operation *user = use.getOwner();
      if (isa<DotOp>(user) && use.getOperandNumber() < 2 &&
          (!isCode(element) || asCodes.contains(&use))) {
        products.push_back(user);
        use.set(ready);
      } else if (auto columns = dyn_cast<ColumnsOp>(user)) {
        Value read = readFrom(b, ready, columns.getType(), element,
                              columns.getFirst(), columns.getStep());
        lastRead = read.getDefiningOp();
        columns.getResult().replaceAllUsesWith(read);
        replaced.push_back(columns);
      } else {
        if (!whole) {
          whole = readFrom(b, ready, type, element);
          lastRead = whole.getDefiningOp();
        }
        use.set(whole);
      }
    }
    b.setInsertionPointAfter(
        products.empty() ? lastRead : rangeOf(products, block).second);
    ReleaseOp::create(b, loc, channel);
    for (Operation *op : replaced)
      op->erase();
    load->erase();
  }

  /// Lays a computed operand out where products read it.
  void stage(Value value, ArrayRef<OpOperand *> uses) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<Operation *> products;
    for (OpOperand *use : uses)
      products.push_back(use->getOwner());
    // What no item needs to compute is laid out for each.
    Block &items =
        products.front()->getParentOfType<ForItemsOp>().getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&items);
    Operation *def = value.getDefiningOp();
    Block *block = &items;
    if (items.findAncestorOpInBlock(*def)) {
      b.setInsertionPointAfter(def);
      block = def->getBlock();
    }
    Location loc = value.getLoc();
    ChannelOp channel = stagingChannel(type, block);
    auto free = AcquireOp::create(b, loc, channel);
    WriteOp::create(b, loc, value, free);
    CommitOp::create(b, loc, channel);
    auto [first, last] = rangeOf(products, block);
    b.setInsertionPoint(first);
    auto ready = GetOp::create(b, loc, channel);
    b.setInsertionPointAfter(last);
    ReleaseOp::create(b, loc, channel);
    for (OpOperand *use : uses)
      use->set(ready);
  }

  /// Loops over keys that follow one another share channels.
  ChannelOp stagingChannel(RankedTensorType type, Block *block) {
    bool inLoop = isa<ForKeysOp>(block->getParentOp());
    for (Staged &other : staged)
      if (inLoop && other.type == type && other.inLoop &&
          !other.blocks.contains(block)) {
        other.blocks.insert(block);
        return other.channel;
      }
    ChannelOp channel = createChannel(type.getDimSize(0), type.getDimSize(1),
                                      type.getElementType());
    staged.push_back({type, inLoop, {}, channel});
    staged.back().blocks.insert(block);
    return channel;
  }

  struct Known {
    KVPart part;
    Value view;
    Type type;
    Block *block;
    ChannelOp channel;
  };
  SmallVector<Known> known;
  struct Staged {
    RankedTensorType type;
    bool inLoop;
    llvm::SmallPtrSet<Block *, 4> blocks;
    ChannelOp channel;
  };
  SmallVector<Staged> staged;
  ChannelOp lastChannel;
  /// Operands that products convert themselves.
  llvm::SmallPtrSet<OpOperand *, 4> asCodes;
};

} // namespace
