//===- Marks.cpp - time stamps of profile builds --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lane 0 of a warp writes its marks into the warp's part of the log. Where the
// next one goes, and for how many there is room, is in shared memory: values
// that loops carry would take registers, and room that they have not.
//
//===----------------------------------------------------------------------===//

#include "../KernelABI.h"
#include "NVVMLowering.h"
#include "fi/Target/SMTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// What a warp keeps in shared memory: where its next mark goes; for how many
/// there is room, below 0 those for which there was none; a bit for each name
/// that counts once and has come.
static constexpr int64_t kPlace = 0, kRoom = 8, kCame = 12, kStateBytes = 16;
static constexpr size_t kMostOnce = 32;
/// Trips of a loop whose number is not known, for the estimate of the log's
/// size: pieces that meet.
static constexpr int64_t kUnknownTrips = 8;

bool fi::tile::isProfiled(KernelOp kernel) {
  return kernel->getParentOfType<ModuleOp>()->hasAttr(kProfileAttr) &&
         kernel.walk([](MarkOp) { return WalkResult::interrupt(); })
             .wasInterrupted();
}

/// Warps of a CTA.
static int64_t countWarps(LLVM::LLVMFuncOp function) {
  auto threads = function->getAttrOfType<DenseI32ArrayAttr>(
      NVVM::NVVMDialect::getReqntidAttrName());
  return threads.asArrayRef().front() / kLanes;
}

/// Of all roles.
static int64_t countWarps(KernelOp kernel) {
  int64_t ofRoles = 0;
  for (auto role : kernel.getBody().getOps<RoleOp>())
    ofRoles += role.getWarps();
  ScheduleAttr schedule = kernel.getSchedule();
  return ofRoles ? ofRoles
                 : schedule.getWarps() *
                       std::max<int64_t>(1, schedule.getKeyWarps());
}

LogicalResult NVVMLowering::reserveMarks() {
  if (!isProfiled(kernel))
    return success();
  kernel.walk([&](MarkOp op) {
    marks.push_back(op);
    if (op.getOnce() && !llvm::is_contained(onceMarks, op.getNameAttr()))
      onceMarks.push_back(op.getNameAttr());
  });
  if (onceMarks.size() > kMostOnce)
    return marks.front().emitOpError("expected at most ")
           << kMostOnce << " names with 'once' in a kernel, but got "
           << onceMarks.size() << " [TILE43]";
  auto bytes = kernel->getAttrOfType<IntegerAttr>(kSharedAttr);
  markOffset = llvm::alignTo(bytes ? bytes.getInt() : 0, kStateBytes);
  int64_t needed = markOffset + countWarps(kernel) * kStateBytes;
  if (needed > chip.maxSharedPerCTA)
    return kernel.emitOpError("needs ")
           << needed
           << " bytes of shared memory with those of its time stamps "
              "('fi.profile'), but a CTA of "
           << chip.name << " has " << chip.maxSharedPerCTA
           << "; take fewer 'stages' or keys a tile to profile it [SCH5]";
  kernel->setAttr(kSharedAttr, b.getI64IntegerAttr(needed));
  return success();
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

/// How often a mark comes at most for each item, or, in loops over keys, for
/// each of a warp's tiles.
static int64_t countTrips(MarkOp op, bool &isOfTile) {
  int64_t trips = 1;
  isOfTile = false;
  if (op.getOnce())
    return trips;
  for (Operation *parent = op->getParentOp(); !isa<KernelOp>(parent);
       parent = parent->getParentOp()) {
    if (auto keys = dyn_cast<ForKeysOp>(parent))
      isOfTile |=
          !keys.getSelection() || *keys.getSelection() == Selection::Rest;
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      continue;
    std::optional<int64_t> lower = getConstantIntValue(loop.getLowerBound()),
                           upper = getConstantIntValue(loop.getUpperBound()),
                           step = getConstantIntValue(loop.getStep());
    bool isKnown = lower && upper && step && *step > 0;
    trips *=
        isKnown ? std::max<int64_t>(0, llvm::divideCeil(*upper - *lower, *step))
                : kUnknownTrips;
  }
  return trips;
}

Attribute NVVMLowering::getMarks() {
  if (marks.empty())
    return {};
  SmallVector<Attribute> names, roles;
  for (MarkOp op : marks) {
    SmallVector<NamedAttribute> entry;
    entry.push_back(b.getNamedAttr(
        "kind", b.getStringAttr(stringifyMarkKind(op.getKind()))));
    if (op.getNameAttr())
      entry.push_back(b.getNamedAttr("name", op.getNameAttr()));
    names.push_back(b.getDictionaryAttr(entry));
  }
  auto addRole = [&](StringRef name, int64_t count) {
    roles.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(name)),
         b.getNamedAttr("warps", b.getI64IntegerAttr(count))}));
  };
  // Of the role, or of all warps, that has most.
  int64_t perItem = 0, perTile = 0, others = 0;
  auto count = [&](Operation *of) {
    int64_t ofItem = 0, ofTile = 0, outside = 0;
    of->walk([&](MarkOp op) {
      bool isOfTile;
      int64_t trips = countTrips(op, isOfTile);
      (!op->getParentOfType<ForItemsOp>() ? outside
       : isOfTile                         ? ofTile
                                          : ofItem) += trips;
    });
    perItem = std::max(perItem, ofItem);
    perTile = std::max(perTile, ofTile);
    others = std::max(others, outside);
  };
  for (auto op : kernel.getBody().getOps<RoleOp>()) {
    addRole(op.getName(), op.getWarps());
    count(op);
  }
  if (roles.empty()) {
    int64_t groups = getGroups();
    for (int64_t group = 0; group < groups; ++group)
      addRole(groups > 1 ? "group " + std::to_string(group) : "",
              kernel.getSchedule().getWarps());
    count(kernel);
  }
  return b.getDictionaryAttr(
      {b.getNamedAttr("launch", b.getI64IntegerAttr(others)),
       b.getNamedAttr("item", b.getI64IntegerAttr(perItem)),
       b.getNamedAttr("marks", b.getArrayAttr(names)),
       b.getNamedAttr("roles", b.getArrayAttr(roles)),
       b.getNamedAttr("tile", b.getI64IntegerAttr(perTile))});
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

void NVVMLowering::onFirstLane(llvm::function_ref<void(Value)> body) {
  Value number = NVVM::ThreadIdXOp::create(b, loc, b.getI32Type());
  Value ofWarp = arith::RemUIOp::create(b, loc, number, i32(kLanes));
  Value first =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, ofWarp, i32(0));
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body(arith::DivUIOp::create(b, loc, number, i32(kLanes)));
}

/// A time register, read where it stands: nothing that touches memory is moved
/// past it.
Value NVVMLowering::readTimer(StringRef name) {
  Type type = name == "smid" ? b.getI32Type() : b.getI64Type();
  std::string text =
      (name == "smid" ? "mov.u32 $0, %" : "mov.u64 $0, %") + name.str() + ";";
  StringRef constraints = name == "smid" ? "=r,~{memory}" : "=l,~{memory}";
  return LLVM::InlineAsmOp::create(
             b, loc, type, ValueRange(), text, constraints,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

/// A pointer `offset` bytes behind another one.
static Value behind(OpBuilder &b, Location loc, Value pointer, int64_t offset) {
  if (offset == 0)
    return pointer;
  return LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

static void store(OpBuilder &b, Location loc, Value value, Value pointer,
                  int64_t offset) {
  LLVM::StoreOp::create(b, loc, value, behind(b, loc, pointer, offset),
                        value.getType().getIntOrFloatBitWidth() / 8);
}

static Value load(OpBuilder &b, Location loc, Type type, Value pointer,
                  int64_t offset) {
  return LLVM::LoadOp::create(b, loc, type, behind(b, loc, pointer, offset),
                              type.getIntOrFloatBitWidth() / 8);
}

/// The part of the log that a warp of this CTA has.
Value NVVMLowering::warpLog(Value warpOfCTA) {
  Value cta = NVVM::BlockIdXOp::create(b, loc, b.getI32Type());
  Value number = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, cta, i32(countWarps(function))),
      warpOfCTA);
  Value capacity = load(b, loc, b.getI32Type(), marksPointer,
                        offsetof(fi_mark_log, capacity));
  auto wide = [&](Value value) -> Value {
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  Value bytes = arith::AddIOp::create(
      b, loc,
      arith::MulIOp::create(b, loc, wide(capacity), constant(sizeof(fi_mark))),
      constant(sizeof(fi_warp_marks)));
  Value offset = arith::MulIOp::create(b, loc, wide(number), bytes);
  return LLVM::GEPOp::create(b, loc, globalPointer, b.getI8Type(),
                             behind(b, loc, marksPointer, sizeof(fi_mark_log)),
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value NVVMLowering::markState(Value warpOfCTA) {
  Value offset = arith::MulIOp::create(b, loc, warpOfCTA, i32(kStateBytes));
  return sharedPointerAt(add32(offset, markOffset));
}

void NVVMLowering::beginMarks() {
  if (!marksPointer)
    return;
  onFirstLane([&](Value warpOfCTA) {
    Value log = warpLog(warpOfCTA), state = markState(warpOfCTA);
    Value first = behind(b, loc, log, sizeof(fi_warp_marks));
    store(b, loc, LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), first),
          state, kPlace);
    Value capacity = load(b, loc, b.getI32Type(), marksPointer,
                          offsetof(fi_mark_log, capacity));
    store(b, loc, capacity, state, kRoom);
    store(b, loc, i32(0), state, kCame);
    store(b, loc, readTimer("smid"), log, offsetof(fi_warp_marks, sm));
    store(b, loc, readTimer("globaltimer"), log,
          offsetof(fi_warp_marks, begin_time));
    store(b, loc, readTimer("clock64"), log,
          offsetof(fi_warp_marks, begin_clock));
  });
}

void NVVMLowering::endMarks() {
  if (!marksPointer)
    return;
  onFirstLane([&](Value warpOfCTA) {
    Value time = readTimer("globaltimer"), clock = readTimer("clock64");
    Value log = warpLog(warpOfCTA), state = markState(warpOfCTA);
    store(b, loc, time, log, offsetof(fi_warp_marks, end_time));
    store(b, loc, clock, log, offsetof(fi_warp_marks, end_clock));
    Value room = load(b, loc, b.getI32Type(), state, kRoom);
    Value capacity = load(b, loc, b.getI32Type(), marksPointer,
                          offsetof(fi_mark_log, capacity));
    Value left = arith::MaxSIOp::create(b, loc, room, i32(0));
    Value over = arith::SubIOp::create(b, loc, left, room);
    store(b, loc, arith::SubIOp::create(b, loc, capacity, left), log,
          offsetof(fi_warp_marks, written));
    store(b, loc, over, log, offsetof(fi_warp_marks, dropped));
    Value run =
        load(b, loc, b.getI32Type(), marksPointer, offsetof(fi_mark_log, run));
    store(b, loc, run, log, offsetof(fi_warp_marks, run));
  });
}

void NVVMLowering::resetMarks() {
  if (!marksPointer || onceMarks.empty())
    return;
  onFirstLane([&](Value warpOfCTA) {
    store(b, loc, i32(0), markState(warpOfCTA), kCame);
  });
}

/// Whether it is what an item begins with.
static bool isFirstOfItem(MarkOp op) {
  if (!isa<ForItemsOp>(op->getParentOp()))
    return false;
  auto marks = op->getBlock()->getOps<MarkOp>();
  return *marks.begin() == op;
}

/// In a role that copies, what is from right before a wait for a free buffer to
/// the copies into it is of the warp that fills the buffer (see fill), but for
/// the mark that an item begins with.
LogicalResult NVVMLowering::lowerMark(MarkOp op) {
  if (!marksPointer)
    return success();
  if (isCopying) {
    Operation *next = op->getNextNode();
    while (isa_and_nonnull<MarkOp>(next))
      next = next->getNextNode();
    auto wait = dyn_cast_or_null<AwaitOp>(next);
    if (wait && wait.getArrival() == Arrival::Empty && !isFirstOfItem(op)) {
      heldMarks.push_back(op);
      return success();
    }
    if (!filling.empty()) {
      filling.back().second.push_back(op);
      return success();
    }
  }
  writeMark(op);
  return success();
}

void NVVMLowering::writeMark(MarkOp op) {
  loc = op.getLoc();
  onFirstLane([&](Value warpOfCTA) {
    Value state = markState(warpOfCTA);
    if (op.getOnce()) {
      int64_t bit = int64_t(1) << (llvm::find(onceMarks, op.getNameAttr()) -
                                   onceMarks.begin());
      Value came = load(b, loc, b.getI32Type(), state, kCame);
      Value mask = arith::ConstantIntOp::create(b, loc, bit, 32);
      Value isFirst = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq,
          arith::AndIOp::create(b, loc, came, mask), i32(0));
      auto branch =
          scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
      store(b, loc, arith::OrIOp::create(b, loc, came, mask), state, kCame);
    }
    Value clock = readTimer("clock64");
    Value room = load(b, loc, b.getI32Type(), state, kRoom);
    store(b, loc, arith::SubIOp::create(b, loc, room, i32(1)), state, kRoom);
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, room, i32(0));
    auto branch = scf::IfOp::create(b, loc, fits, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Value place = load(b, loc, b.getI64Type(), state, kPlace);
    store(b, loc,
          arith::AddIOp::create(
              b, loc, place,
              arith::ConstantIntOp::create(b, loc, sizeof(fi_mark), 64)),
          state, kPlace);
    // At once. What it needs is there or a constant: values that are computed
    // for marks alone would be kept from one to the next.
    static_assert(offsetof(fi_mark, clock) == 0 &&
                      offsetof(fi_mark, mark) == 8 &&
                      offsetof(fi_mark, item) == 12,
                  "four words of 32 bits");
    auto word = [&](Value value) -> Value {
      return arith::TruncIOp::create(b, loc, b.getI32Type(), value);
    };
    Value high = arith::ShRUIOp::create(
        b, loc, clock, arith::ConstantIntOp::create(b, loc, 32, 64));
    int64_t number = llvm::find(marks, op) - marks.begin();
    bool isOfItem = bool(op->getParentOfType<ForItemsOp>());
    Value item = isOfItem ? toI32(itemNumber)
                          : arith::ConstantIntOp::create(b, loc, -1, 32);
    LLVM::StoreOp::create(
        b, loc, fromElements({word(clock), word(high), i32(number), item}),
        LLVM::IntToPtrOp::create(b, loc, globalPointer, place),
        /*alignment=*/sizeof(fi_mark));
  });
  // Products of warpgroups and tensor copies are for lanes that come together.
  if (role)
    NVVM::SyncWarpOp::create(b, loc,
                             arith::ConstantIntOp::create(b, loc, -1, 32));
}
