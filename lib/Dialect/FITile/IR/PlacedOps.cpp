//===- PlacedOps.cpp - operations of the placed form ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks. Constraints are TILE20 ... in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Tensor copies are those of a role, whose channels count their bytes, into
/// rows of 128 bytes that are swizzled as tensor maps do.
static LogicalResult verifyTensorCopy(Operation *op, BufType buffer) {
  if (!op->getParentOfType<RoleOp>())
    return op->emitOpError("expected 'via(tma)' in a role, whose channels "
                           "count bytes, but got it outside of roles [TILE41]");
  constexpr int64_t kRow = 128;
  SmemAttr layout = buffer.getLayout();
  int64_t bits = buffer.getElement().getIntOrFloatBitWidth();
  if (layout.getPitch() != kRow || layout.getSwizzle() != kRow ||
      buffer.getColumns() * bits % 128 != 0 || buffer.getRows() % 8 != 0)
    return op->emitOpError("expected with 'via(tma)' a buffer of a multiple of "
                           "8 rows of whole chunks of 16 bytes, in panels of "
                           "128 bytes with a swizzle of 128, but got ")
           << buffer << " [TILE41]";
  return success();
}

/// What a box of a tensor map may have along a dimension.
static constexpr int64_t kMostInBox = 256;

int64_t CopyKVOp::getBoxRows() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  int64_t page = view.getPageSize(), rows = getBuffer().getType().getRows();
  auto key = dyn_cast<BlockArgument>(getKey());
  auto loop =
      key ? dyn_cast<ForKeysOp>(key.getOwner()->getParentOp()) : ForKeysOp();
  if (page == ShapedType::kDynamic || !loop || key.getArgNumber() != 0)
    return 0;
  if (page > 0)
    rows = std::gcd(std::gcd(rows, page), loop.getStep());
  return rows;
}

LogicalResult CopyRowsOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  BufType buffer = getBuffer().getType();
  if (source.getRank() != 3 || source.getElementType() != buffer.getElement() ||
      source.getShape().back() != buffer.getColumns())
    return emitOpError("expected a source [rows, heads, ")
           << buffer.getColumns() << "] of " << buffer.getElement()
           << ", but got " << source << " [TILE20]";
  if (static_cast<int64_t>(getGroup()) < 1)
    return emitOpError("expected a group of at least 1 head, but got ")
           << getGroup() << " [TILE20]";
  if (!getTma())
    return success();
  if (failed(verifyTensorCopy(*this, buffer)))
    return failure();
  int64_t group = getGroup(), rows = buffer.getRows();
  if (rows % group != 0 || group > kMostInBox || rows / group > kMostInBox)
    return emitOpError("expected with 'via(tma)' rows of at most ")
           << kMostInBox << " whole tokens of at most " << kMostInBox
           << " heads, but got " << rows << " rows of groups of " << group
           << " [TILE41]";
  return success();
}

LogicalResult CopyKVOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  Type element = view.getPartType(getPart());
  int64_t dim = view.getPartDim(getPart());
  BufType buffer = getBuffer().getType();
  if (buffer.getElement() != element || buffer.getColumns() != dim)
    return emitOpError("expected a buffer of rows of ")
           << dim << " x " << element << ", but got " << buffer << " [TILE21]";
  if (!getTma())
    return success();
  if (failed(verifyTensorCopy(*this, buffer)))
    return failure();
  constexpr int64_t kMostDims = 5;
  int64_t rows = getBoxRows();
  if (getValid() || getEntries() || rows == 0 || rows % 8 != 0 ||
      rows > kMostInBox || view.getPoolRank() > kMostDims)
    return emitOpError("expected with 'via(tma)' all keys of a tile of a loop "
                       "over keys, in pages of a known multiple of 8 or "
                       "without pages, at most ")
           << kMostInBox << " in each, of pools of at most " << kMostDims
           << " dimensions, but got boxes of " << rows << " of "
           << getView().getType() << " [TILE41]";
  return success();
}

void LocateOp::build(OpBuilder &b, OperationState &state, Type result,
                     Value view, Value item, Value key, Value valid,
                     unsigned table) {
  build(b, state, result, view, item, key, valid,
        table ? b.getI64IntegerAttr(table) : IntegerAttr());
}

LogicalResult LocateOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  int64_t table = getTable().value_or(0), count = view.getTableCount();
  if (table < 0 || table >= count)
    return emitOpError("expected one of the view's ")
           << count << " page tables, but got number " << table << " [TILE33]";
  return success();
}

LogicalResult PrefetchKVOp::verify() {
  auto view = cast<KVViewTypeInterface>(getView().getType());
  Type element = view.getPartType(getPart());
  int64_t dim = view.getPartDim(getPart());
  BufType buffer = getEntries().getType().getBuffer();
  if (buffer.getElement() != element || buffer.getColumns() != dim)
    return emitOpError("expected entries for a buffer of rows of ")
           << dim << " x " << element << ", but got " << buffer << " [TILE46]";
  return success();
}

LogicalResult ReadOp::verify() {
  BufType buffer = getBuffer().getType();
  RankedTensorType tile = getType();
  int64_t first = getFirst().value_or(0), step = getStep().value_or(1);
  int64_t columns = tile.getDimSize(1);
  if (tile.getDimSize(0) != buffer.getRows() ||
      tile.getElementType() != buffer.getElement() ||
      (!getFirst() && columns != buffer.getColumns()))
    return emitOpError("expected a tile of the buffer's shape and type, but "
                       "got ")
           << tile << " from " << buffer << " [TILE22]";
  if (getFirst().has_value() != getStep().has_value() || first < 0 ||
      step < 1 || first >= buffer.getColumns() ||
      columns > (buffer.getColumns() - 1 - first) / step + 1)
    return emitOpError(
               "expected 'from' of at least 0 and 'step' of at least 1, "
               "given together, with columns of the buffer, but got ")
           << columns << " columns from " << first << " step " << step << " of "
           << buffer << " [TILE22]";
  return success();
}

LogicalResult WriteOp::verify() {
  BufType buffer = getBuffer().getType();
  RankedTensorType tile = getTile().getType();
  if (tile.getDimSize(0) != buffer.getRows() ||
      tile.getElementType() != buffer.getElement() ||
      tile.getDimSize(1) != buffer.getColumns())
    return emitOpError("expected a tile of the buffer's shape and type, but "
                       "got ")
           << tile << " for " << buffer << " [TILE32]";
  return success();
}

LogicalResult RelayoutOp::verify() {
  RankedTensorType from = getSource().getType(), to = getType();
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError("expected a result that differs in its layout only, but "
                       "got ")
           << to << " from " << from << " [TILE23]";
  return success();
}

LogicalResult RoleOp::verify() {
  if (getWarps() < 1 || getWarps() > 32)
    return emitOpError("expected 1 to 32 warps, but got ")
           << getWarps() << " [TILE39]";
  constexpr int64_t kWarpgroup = 4;
  if (std::optional<int64_t> registers = getRegisters())
    if (getWarps() % kWarpgroup != 0 || *registers % 8 != 0 ||
        *registers < 24 || *registers > 256)
      return emitOpError("expected 'registers' of whole warpgroups, four warps "
                         "each, a multiple of 8 from 24 to 256, but got ")
             << *registers << " for " << getWarps() << " warps [TILE39]";
  WalkResult result = getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      Region *region = operand.getParentRegion();
      if (getBody().isAncestor(region) || !definition ||
          isa<ChannelOp, ViewOp>(definition) ||
          definition->hasTrait<OpTrait::ConstantLike>())
        continue;
      InFlightDiagnostic diag =
          op->emitOpError("expected values of its role, channels, views, "
                          "constants and arguments of the kernel, but got one "
                          "of ")
          << operand.getType() << " [TILE39]";
      diag.attachNote(definition->getLoc()) << "computed here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult DotStartOp::verify() {
  ShapedTile a(getA().getType()), b(getB().getType());
  RankedTensorType tile = getResult().getType().getTile();
  bool transpose = getTranspose();
  int64_t depth = transpose ? b.columns : b.rows;
  int64_t columns = transpose ? b.rows : b.columns;
  bool isHalf = a.element.isF16() || a.element.isBF16();
  if (!isTile(tile) || !tile.getElementType().isF32() || !isHalf ||
      a.element != b.element || a.columns != depth ||
      tile.getDimSize(0) != a.rows || tile.getDimSize(1) != columns)
    return emitOpError("expected a product of f16 or bf16 with a result of ")
           << a.rows << " x " << columns << " f32, but got " << getA().getType()
           << " and " << getB().getType() << " to " << tile << " [TILE40]";
  if (getAcc() && getAcc().getType() != tile)
    return emitOpError("expected an accumulator of the type of the result, ")
           << tile << ", but got " << getAcc().getType() << " [TILE40]";
  for (Operation *user : getResult().getUsers())
    if (!isa<WaitOp>(user) || user->getBlock() != (*this)->getBlock())
      return emitOpError("expected a future that fi_tile.wait takes in the "
                         "same block, but '")
             << user->getName() << "' does, or elsewhere [TILE40]";
  if (!getResult().hasOneUse())
    return emitOpError("expected a future that is waited for once, but it is "
                       "used ")
           << std::distance(getResult().use_begin(), getResult().use_end())
           << " times [TILE40]";
  return success();
}

//===----------------------------------------------------------------------===//
// MarkOp
//===----------------------------------------------------------------------===//

/// Bytes of a mark's name: it stands in pictures.
static constexpr size_t kMostInName = 48;

void MarkOp::build(OpBuilder &b, OperationState &state, MarkKind kind,
                   StringRef name, bool once) {
  build(b, state, kind, name.empty() ? StringAttr() : b.getStringAttr(name),
        once);
}

LogicalResult MarkOp::verify() {
  if (getKind() == MarkKind::End) {
    if (getName() || getOnce())
      return emitOpError("expected 'end' without a name and without 'once', "
                         "but got ")
             << (getName() ? "a name" : "'once'") << " [TILE42]";
    return success();
  }
  StringRef name = getName().value_or("");
  if (name.empty() || name.size() > kMostInName ||
      !llvm::all_of(name, [](char c) {
        return llvm::isPrint(c) && c != '"' && c != '\\';
      })) {
    InFlightDiagnostic diagnostic =
        emitOpError("expected a name of 1 to ")
        << kMostInName
        << " printable characters without quotes and backslashes, but got ";
    if (StringAttr given = getNameAttr())
      diagnostic << given;
    else
      diagnostic << "none";
    return diagnostic << " [TILE42]";
  }
  if (getOnce() && !(*this)->getParentOfType<ForItemsOp>())
    return emitOpError("expected 'once' in a loop over items, whose first "
                       "time it counts, but got it outside [TILE43]");
  return success();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

bool tile::isOfThePlan(Operation *op) {
  return isPure(op) ||
         isa<CursorOp, AdvanceOp, LocateOp, ItemOp, AcquireOp, GetOp, SlotOp,
             AwaitOp, ArriveOp, MarkOp, PrefetchKVOp>(op);
}

/// The first wait in a block, or null.
static AwaitLaunchesOp findWait(Block::iterator begin, Block::iterator end) {
  auto found = std::find_if(
      begin, end, [](Operation &op) { return isa<AwaitLaunchesOp>(op); });
  return found == end ? AwaitLaunchesOp() : cast<AwaitLaunchesOp>(*found);
}

/// The first operation of this dialect from `begin` on, at any depth, that may
/// not stand in front of a wait, or null.
static Operation *findEarly(Block::iterator begin, Block::iterator end) {
  for (Operation &op : llvm::make_range(begin, end)) {
    Operation *early = nullptr;
    op.walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (isa<ForItemsOp>(inner))
        return WalkResult::skip(); // it waits itself
      bool isHeld =
          !isa<FITileDialect>(inner->getDialect()) || isOfThePlan(inner) ||
          isa<ChannelOp, ViewOp, LaunchNextOp, AwaitLaunchesOp, RoleOp>(inner);
      if (!isHeld)
        early = inner;
      return isHeld ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (early)
      return early;
  }
  return nullptr;
}

LogicalResult AwaitLaunchesOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel || kernel.getBody().getOps<LaunchNextOp>().empty())
    return emitOpError("expected a kernel with 'fi_tile.launch_next', which "
                       "holds it to the rules of launches that overlap "
                       "[TILE45]");
  if (!isa<ForItemsOp>((*this)->getParentOp()))
    return success();
  Block &item = *(*this)->getBlock();
  if (findWait(item.begin(), item.end()) != *this)
    return success();
  if (Operation *early = findEarly(item.begin(), getOperation()->getIterator()))
    return emitOpError("expected nothing in front of it in an item but what "
                       "reads the plan's data and writes nothing, but got '")
           << early->getName() << "' [TILE44]";
  return success();
}

LogicalResult LaunchNextOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  WalkResult result = kernel.walk([&](ForItemsOp items) {
    Block &item = items.getBody().front();
    if (Operation *early =
            findEarly(items->getBlock()->begin(), items->getIterator())) {
      emitOpError("expected nothing in front of the items of its kernel but "
                  "what reads the plan's data and writes nothing, but got '")
          << early->getName() << "' [TILE44]";
      return WalkResult::interrupt();
    }
    auto behind = std::next(items->getIterator());
    if (findWait(item.begin(), item.end()) &&
        findWait(behind, items->getBlock()->end()))
      return WalkResult::advance();
    emitOpError("expected every loop over items of its kernel to have "
                "'fi_tile.await_launches' in its body and behind it [TILE45]")
            .attachNote(items.getLoc())
        << "this one has not";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
