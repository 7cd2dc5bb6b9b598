//===- OutlinePrograms.cpp - ops of fi in functions become programs -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What belongs together is found by types: a value that is no tensor, memref or
// scalar (a view, a state, segments) cannot be passed to a program, so the ops
// that make and use it are of one. The call stands where the last of them
// stood.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FICalls.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace fi {
#define GEN_PASS_DEF_FIOUTLINEPROGRAMSPASS
#include "fi/Dialect/FI/Transforms/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

/// Whether a value may be an argument of a program (PRG5).
static bool isPassable(Value value) {
  Type type = value.getType();
  return isa<RankedTensorType, MemRefType>(type) || type.isIntOrIndexOrFloat();
}

/// Ops that a program may have, outside of regions of others.
static bool isMember(Operation *op) {
  return isa_and_present<FIDialect>(op->getDialect()) &&
         !isa<ProgramOp, PlanOp, RunOp, fi::ReturnOp, fi::LoadOp, YieldOp>(
             op) &&
         !op->getParentOfType<ProgramOp>();
}

/// What of an op's operands a plan is made of. Captures are looked at apart.
static bool isOfPlan(OpOperand &operand) {
  Operation *op = operand.getOwner();
  auto isOneOf = [&](OperandRange range) {
    unsigned first = range.getBeginOperandIndex();
    return operand.getOperandNumber() >= first &&
           operand.getOperandNumber() < first + range.size();
  };
  auto is = [&](Value value) { return value && operand.get() == value; };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](AttentionOp attention) {
        return is(attention.getRows()) || is(attention.getPositions());
      })
      .Case<PagedViewOp, LatentViewOp>([&](auto view) {
        return isOneOf(view.getTables()) || is(view.getOrigin());
      })
      .Case([&](RaggedViewOp view) {
        return is(view.getIndptr()) || is(view.getOrigin());
      })
      .Case([&](BsrViewOp view) {
        return is(view.getIndptr()) || isOneOf(view.getBlocks()) ||
               is(view.getOrigin());
      })
      .Case<SegmentsOp, AppendOp>(
          [&](auto other) { return is(other.getRows()); })
      .Default(false);
}

/// What an operand is called in the program's signature.
static std::string getName(OpOperand &operand) {
  Operation *op = operand.getOwner();
  Value value = operand.get();
  auto numberIn = [&](OperandRange range) -> std::optional<unsigned> {
    unsigned first = range.getBeginOperandIndex();
    if (operand.getOperandNumber() < first ||
        operand.getOperandNumber() >= first + range.size())
      return std::nullopt;
    return operand.getOperandNumber() - first;
  };
  auto ofView = [&](ValueRange pools, Value origin) -> std::string {
    if (value == origin)
      return "origin";
    if (!llvm::is_contained(pools, value))
      return isa<IntegerType>(getElementTypeOrSelf(value)) ? "table" : "scales";
    if (pools.size() != 2)
      return "kv";
    return operand.getOperandNumber() == 0 ? "k" : "v";
  };
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case([&](AttentionOp attention) -> std::string {
        if (value == attention.getQuery())
          return "q";
        if (value == attention.getRows())
          return "rows";
        if (value == attention.getPositions())
          return "positions";
        if (value == attention.getScaleValue())
          return "scale";
        if (value == attention.getSink())
          return "sink";
        return numberIn(attention.getCaptures()) ? "capture" : "arg";
      })
      .Case<PagedViewOp, LatentViewOp>([&](auto view) -> std::string {
        return ofView(view.getPools(), view.getOrigin());
      })
      .Case<RaggedViewOp, BsrViewOp>([&](auto view) -> std::string {
        return value == view.getIndptr()
                   ? "indptr"
                   : ofView(view.getPools(), view.getOrigin());
      })
      .Case([&](AppendOp append) -> std::string {
        if (value == append.getKeys())
          return "new_k";
        if (value == append.getValues())
          return "new_v";
        return value == append.getRows() ? "new_rows" : "capture";
      })
      .Case([](SegmentsOp) { return "rows"; })
      .Case([](FinalizeOp) { return "sink"; })
      .Case([](EmptyOp) { return "count"; })
      .Default([](Operation *) { return "arg"; });
}

/// Whether an op makes sizes, of which a plan may be made, from what has
/// elements.
static bool readsSizesOnly(Operation *op) {
  return isa<tensor::DimOp, memref::DimOp>(op);
}

/// Whether a value follows from constants and sizes alone.
static bool isOfSizes(Value value) {
  SmallVector<Value> work = {value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
      return false;
    if (!readsSizesOnly(op))
      llvm::append_range(work, op->getOperands());
  }
  return true;
}

/// The places that an op's results may be given.
static MutableOperandRange getDestinations(Operation *op) {
  MutableOperandRange none(op, 0, 0);
  if (op->getNumResults() == 0)
    return none;
  return llvm::TypeSwitch<Operation *, MutableOperandRange>(op)
      .Case<AttentionOp, FinalizeOp, RMSNormOp, LayerNormOp, GatedOp, RopeOp,
            QuantiseOp, DequantiseOp, PackBitsOp, SegmentPackBitsOp>(
          [](auto of) { return of.getOutsMutable(); })
      .Default(none);
}

/// That of one result; null for none.
static Value getDestination(OpResult result) {
  MutableOperandRange places = getDestinations(result.getOwner());
  return places.empty() ? Value() : places[result.getResultNumber()].get();
}

namespace {

/// Ops of one program, in the order of the text.
class Outliner {
public:
  Outliner(ArrayRef<Operation *> members, SymbolTable &symbols)
      : members(members), inside(members.begin(), members.end()),
        last(members.back()), symbols(symbols), b(last) {}

  LogicalResult run();

private:
  LogicalResult checkPlace();
  LogicalResult collect();
  LogicalResult checkPlan();
  bool needsSizes();
  /// Also of constants, which are written in the program.
  ProgramOp makeProgram();
  /// The sizes of a result, of what is there before the program.
  FailureOr<SmallVector<OpFoldResult>> getShape(OpResult result);
  LogicalResult makeCall(ProgramOp program);

  ArrayRef<Operation *> members;
  llvm::SmallPtrSet<Operation *, 8> inside;
  Operation *last;
  SymbolTable &symbols;
  OpBuilder b;
  /// Arguments, with their names.
  llvm::MapVector<Value, std::string> planned, passed;
  llvm::SetVector<Operation *> constants;
  SmallVector<OpResult> results;
};

struct OutlinePrograms : fi::impl::FIOutlineProgramsPassBase<OutlinePrograms> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<FunctionOpInterface> functions;
    for (auto function : getOperation().getOps<FunctionOpInterface>())
      if (!isa<ProgramOp>(function))
        functions.push_back(function);
    for (FunctionOpInterface function : functions)
      if (failed(outline(function, symbols)))
        return signalPassFailure();
  }

  LogicalResult outline(FunctionOpInterface function, SymbolTable &symbols);
};

} // namespace

LogicalResult Outliner::run() {
  if (failed(checkPlace()) || failed(collect()) || failed(checkPlan()))
    return failure();
  if (results.empty() && llvm::all_of(members, wouldOpBeTriviallyDead)) {
    // What nobody uses needs no program.
    for (Operation *op : llvm::reverse(members))
      op->erase();
    return success();
  }
  return makeCall(makeProgram());
}

/// Whether all of them may be done where the last one stands.
LogicalResult Outliner::checkPlace() {
  for (Operation *op : members)
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers()) {
        if (inside.contains(user)) {
          if (user->getBlock() == last->getBlock() &&
              op->getBlock() == last->getBlock())
            continue;
        } else if (isPassable(result)) {
          Operation *here = last->getBlock()->findAncestorOpInBlock(*user);
          if (!here || last->isBeforeInBlock(here))
            continue;
          InFlightDiagnostic diag =
              op->emitOpError("expected its result to be used behind the last "
                              "op of its program");
          diag.attachNote(user->getLoc()) << "it is used here";
          diag.attachNote(last->getLoc()) << "the program's last op";
          return diag;
        }
        InFlightDiagnostic diag =
            op->emitOpError("expected ")
            << result.getType()
            << " to be used by ops of fi of the same block only, but it is "
               "used by '"
            << user->getName() << "'";
        diag.attachNote(user->getLoc()) << "it is used here";
        return diag;
      }
  // Memory is as the first op that looks at it finds it.
  Operation *first = nullptr;
  bool looks = llvm::any_of(members, [](Operation *op) {
    return llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>);
  });
  for (Operation *op : members)
    if (looks && !first && !isMemoryEffectFree(op))
      first = op;
  for (Operation *op = first; op && op != last; op = op->getNextNode())
    if (!inside.contains(op) && !isMemoryEffectFree(op)) {
      InFlightDiagnostic diag =
          op->emitOpError("has effects on memory between ops of fi that make "
                          "one program");
      diag.attachNote(first->getLoc()) << "the first of them";
      diag.attachNote(last->getLoc()) << "the last of them";
      return diag;
    }
  return success();
}

/// Sorts what comes from outside.
LogicalResult Outliner::collect() {
  llvm::StringSet<> names;
  auto add = [&](OpOperand &operand, bool ofPlan) {
    auto &group = ofPlan ? planned : passed;
    if (planned.contains(operand.get()) || passed.contains(operand.get()))
      return;
    std::string name = getName(operand), unique = name;
    for (unsigned number = 1; !names.insert(unique).second; ++number)
      unique = name + std::to_string(number);
    group[operand.get()] = unique;
  };
  auto isPlanCapture = [](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (auto function =
              dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()))
        if (argument.getOwner()->isEntryBlock())
          return static_cast<bool>(function.getArgAttr(argument.getArgNumber(),
                                                       ProgramOp::kPlanAttr));
    return value.getType().isIntOrIndex() && isOfSizes(value);
  };
  // Tables first: what is one in any place is one.
  for (bool ofPlan : {true, false})
    for (Operation *op : members) {
      MutableOperandRange destinations = getDestinations(op);
      auto isDestination = [&](OpOperand &operand) {
        return llvm::any_of(destinations,
                            [&](OpOperand &one) { return &one == &operand; });
      };
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        Operation *owner = value.getDefiningOp();
        if ((owner && inside.contains(owner)) || isDestination(operand))
          continue;
        if (!isPassable(value)) {
          InFlightDiagnostic diag =
              op->emitOpError("expected an op of fi in this function to make ")
              << value.getType();
          diag.attachNote(value.getLoc()) << "it comes from here";
          return diag;
        }
        if (owner && !isa<ShapedType>(value.getType()) &&
            matchPattern(value, m_Constant())) {
          constants.insert(owner);
          continue;
        }
        bool isPlanned = isOfPlan(operand) || isPlanCapture(value);
        if (isPlanned == ofPlan)
          add(operand, ofPlan);
      }
      if (!ofPlan)
        for (OpResult result : op->getResults())
          if (llvm::any_of(result.getUsers(), [&](Operation *user) {
                return !inside.contains(user);
              }))
            results.push_back(result);
    }
  return success();
}

/// Whether a plan can be made before anything is computed (CAL6).
LogicalResult Outliner::checkPlan() {
  for (auto &entry : planned) {
    SmallVector<Value> work = {entry.first};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      Value next = work.pop_back_val();
      if (!seen.insert(next).second)
        continue;
      auto refuse = [&](const Twine &why, Location where) {
        InFlightDiagnostic diag =
            last->emitOpError("expected what its plan is made of to be known "
                              "without running, but '")
            << entry.second << "' " << why.str() << " [CAL6]";
        diag.attachNote(where) << "see here";
        return diag;
      };
      if (passed.contains(next))
        return refuse("depends on '" + passed[next] + "', a run argument",
                      next.getLoc());
      Operation *op = next.getDefiningOp();
      if (!op || readsSizesOnly(op))
        continue;
      if (!isMemoryEffectFree(op))
        return refuse("depends on memory, by '" + op->getName().getStringRef() +
                          "'",
                      op->getLoc());
      llvm::append_range(work, op->getOperands());
      SetVector<Value> above;
      getUsedValuesDefinedAbove(op->getRegions(), above);
      llvm::append_range(work, above);
    }
  }
  return success();
}

/// Whether there are rows or keys that no table counts.
bool Outliner::needsSizes() {
  return llvm::any_of(members, [](Operation *op) {
    return llvm::TypeSwitch<Operation *, bool>(op)
        .Case([](AttentionOp attention) { return !attention.getRows(); })
        .Case<RaggedViewOp, BsrViewOp>(
            [](auto view) { return !view.getIndptr(); })
        .Case([](PagedViewOp view) {
          return ShapedType::isDynamic(
              cast<PagedKVType>(view.getType()).getPage());
        })
        .Case<LatentViewOp, SegmentsOp, MergeOp, MergeSegmentsOp, FinalizeOp,
              EmptyOp, AppendOp>([](auto) { return false; })
        .Default(true);
  });
}

ProgramOp Outliner::makeProgram() {
  Operation *function = last->getParentOfType<FunctionOpInterface>();
  OpBuilder at(function);
  SmallVector<Type> types, resultTypes;
  SmallVector<Attribute> attributes;
  for (auto *group : {&planned, &passed})
    for (auto &[value, name] : *group) {
      types.push_back(value.getType());
      NamedAttrList list;
      if (group == &planned)
        list.set(ProgramOp::kPlanAttr, at.getUnitAttr());
      list.set(ProgramOp::kNameAttr, at.getStringAttr(name));
      attributes.push_back(list.getDictionary(at.getContext()));
    }
  for (OpResult result : results)
    resultTypes.push_back(result.getType());

  // Named after the op that computes.
  Operation *main = last;
  for (Operation *op : members)
    if (isa<AttentionOp>(op))
      main = op;
  std::string stem = (SymbolTable::getSymbolName(function).getValue() + "_" +
                      main->getName().stripDialect())
                         .str();
  std::string name;
  unsigned number = 0;
  do
    name = stem + std::to_string(number++);
  while (symbols.lookup(name));

  auto program = ProgramOp::create(
      at, last->getLoc(), at.getStringAttr(name),
      TypeAttr::get(at.getFunctionType(types, resultTypes)),
      /*sym_visibility=*/StringAttr(), at.getArrayAttr(attributes),
      /*res_attrs=*/ArrayAttr());
  symbols.insert(program, function->getIterator());
  Block *block = at.createBlock(&program.getBody());
  IRMapping map;
  for (auto *group : {&planned, &passed})
    for (auto &[value, unused] : *group)
      map.map(value, block->addArgument(value.getType(), value.getLoc()));
  for (Operation *constant : constants)
    at.clone(*constant, map);
  for (Operation *op : members) {
    // Destinations are none of the program's values.
    for (OpResult result : op->getResults())
      if (Value destination = getDestination(result))
        if (!map.contains(destination))
          map.map(destination, destination);
    getDestinations(at.clone(*op, map)).clear();
  }
  fi::ReturnOp::create(at, last->getLoc(),
                       llvm::map_to_vector(results, [&](OpResult result) {
                         return map.lookup(Value(result));
                       }));
  return program;
}

FailureOr<SmallVector<OpFoldResult>> Outliner::getShape(OpResult result) {
  auto type = cast<RankedTensorType>(result.getType());
  ReifiedRankedShapedTypeDims reified;
  if (!type.hasStaticShape() &&
      failed(reifyResultShapes(b, result.getOwner(), reified)))
    return failure();
  SmallVector<OpFoldResult> shape;
  for (auto [number, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      shape.push_back(b.getIndexAttr(size));
      continue;
    }
    shape.push_back(reified[result.getResultNumber()][number]);
    // The size of another op's result, which will be in the program too.
    auto value = dyn_cast<Value>(shape.back());
    auto dim = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
    auto of = dim ? dyn_cast<OpResult>(dim.getSource()) : OpResult();
    if (!of || !inside.contains(of.getOwner()))
      continue;
    auto other = getShape(of);
    auto index = dim.getConstantIndex();
    if (failed(other) || !index)
      return failure();
    shape.back() = (*other)[size_t(*index)];
    if (dim->use_empty())
      dim.erase();
  }
  return shape;
}

LogicalResult Outliner::makeCall(ProgramOp program) {
  Location loc = last->getLoc();
  SmallVector<Value> sizes, outs;
  if (needsSizes())
    for (auto &[value, unused] : passed)
      if (auto type = dyn_cast<ShapedType>(value.getType()))
        for (int64_t dim = 0; dim < type.getRank(); ++dim)
          if (type.isDynamicDim(unsigned(dim)))
            sizes.push_back(
                isa<MemRefType>(type)
                    ? memref::DimOp::create(b, loc, value, dim).getResult()
                    : tensor::DimOp::create(b, loc, value, dim).getResult());
  for (OpResult result : results) {
    if (Value destination = getDestination(result)) {
      outs.push_back(destination);
      continue;
    }
    auto shape = getShape(result);
    if (failed(shape))
      return result.getOwner()->emitOpError(
          "has a result whose size is not known here; give its place in "
          "'outs'");
    outs.push_back(tensor::EmptyOp::create(
        b, loc, *shape, getElementTypeOrSelf(result.getType())));
  }
  auto name = FlatSymbolRefAttr::get(program.getSymNameAttr());
  auto plan = PlanOp::create(
      b, loc, PlanType::get(b.getContext()), name,
      llvm::map_to_vector(planned, [](auto &a) { return a.first; }), sizes);
  auto run = RunOp::create(
      b, loc, ValueRange(outs).getTypes(), name,
      llvm::map_to_vector(passed, [](auto &a) { return a.first; }),
      plan.getResult(), outs);
  for (auto [from, to] : llvm::zip(results, run.getResults()))
    Value(from).replaceAllUsesWith(to);
  for (Operation *op : llvm::reverse(members))
    op->erase();
  return success();
}

LogicalResult OutlinePrograms::outline(FunctionOpInterface function,
                                       SymbolTable &symbols) {
  llvm::EquivalenceClasses<Operation *> classes;
  SmallVector<Operation *> order;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isMember(op))
      return WalkResult::advance();
    order.push_back(op);
    classes.insert(op);
    return WalkResult::skip();
  });
  for (Operation *op : order)
    for (Value operand : op->getOperands())
      if (Operation *owner = operand.getDefiningOp();
          owner && !isPassable(operand) && classes.contains(owner))
        classes.unionSets(owner, op);
  llvm::MapVector<Operation *, SmallVector<Operation *>> programs;
  for (Operation *op : order)
    programs[classes.getLeaderValue(op)].push_back(op);
  for (auto &[leader, members] : programs)
    if (failed(Outliner(members, symbols).run()))
      return failure();
  return success();
}
