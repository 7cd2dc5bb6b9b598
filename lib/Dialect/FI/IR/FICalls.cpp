//===- FICalls.cpp - programs called by functions -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FICalls.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace fi;

#define GET_OP_CLASSES
#include "fi/Dialect/FI/IR/FICallOps.cpp.inc"

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

//===----------------------------------------------------------------------===//
// What both say of the program
//===----------------------------------------------------------------------===//

/// Finds the program that a call names; fails, with an error, where there is
/// none. Null where there is what it has become at level 2.
static FailureOr<ProgramOp> findProgram(Operation *op, FlatSymbolRefAttr name,
                                        SymbolTableCollection &symbols) {
  Operation *symbol = symbols.lookupNearestSymbolFrom(op, name);
  auto program = dyn_cast_or_null<ProgramOp>(symbol);
  if (program || (symbol && symbol->getDialect() &&
                  symbol->getDialect()->getNamespace() == "fi_tile"))
    return program;
  InFlightDiagnostic diag =
      op->emitOpError("expected the name of an fi.program, but got '")
      << name.getValue() << "'";
  if (symbol) {
    diag << ", which is '" << symbol->getName() << "'";
    diag.attachNote(symbol->getLoc()) << "see its definition";
  }
  diag << " [CAL1]";
  return failure();
}

/// Whether a value of a type may be passed where a program says `wanted`: a
/// memref stands for a tensor, and may be strided.
static bool isPassable(Type got, Type wanted) {
  if (got == wanted)
    return true;
  auto memref = dyn_cast<MemRefType>(got);
  auto shaped = dyn_cast<ShapedType>(wanted);
  return memref && shaped && shaped.hasRank() &&
         memref.getElementType() == shaped.getElementType() &&
         memref.getShape() == shaped.getShape();
}

static LogicalResult verifyValues(Operation *op, ValueRange values,
                                  ProgramOp program, bool ofPlan) {
  SmallVector<unsigned> wanted;
  for (unsigned index = 0, e = program.getArgumentTypes().size(); index < e;
       ++index)
    if (program.isPlanArgument(index) == ofPlan)
      wanted.push_back(index);
  StringRef group = ofPlan ? "plan" : "run";
  auto note = [&](InFlightDiagnostic &&diag) -> LogicalResult {
    diag.attachNote(program.getLoc()) << "see the program";
    return diag;
  };
  if (values.size() != wanted.size())
    return note(op->emitOpError("expected ")
                << wanted.size() << " operands, one for each " << group
                << " argument of '" << program.getSymName() << "', but got "
                << values.size() << " [CAL2]");
  for (auto [value, index] : llvm::zip(values, wanted))
    if (!isPassable(value.getType(), program.getArgumentTypes()[index]))
      return note(op->emitOpError("expected for ")
                  << group << " argument '" << program.getArgumentName(index)
                  << "' a value of type " << program.getArgumentTypes()[index]
                  << ", or a memref of its shape, but got " << value.getType()
                  << " [CAL2]");
  return success();
}

//===----------------------------------------------------------------------===//
// PlanOp
//===----------------------------------------------------------------------===//

void PlanOp::getEffects(Effects &effects) {
  for (OpOperand &value : getValuesMutable())
    if (isa<MemRefType>(value.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &value);
}

LogicalResult PlanOp::verify() { return success(); }

LogicalResult PlanOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto found = findProgram(*this, getProgramAttr(), symbols);
  if (failed(found) || !*found)
    return found;
  ProgramOp callee = *found;
  if (failed(verifyValues(*this, getValues(), callee, /*ofPlan=*/true)))
    return failure();
  int64_t open = 0;
  for (unsigned index = 0, e = callee.getArgumentTypes().size(); index < e;
       ++index)
    if (auto type = dyn_cast<ShapedType>(callee.getArgumentTypes()[index]);
        type && type.hasRank() && !callee.isPlanArgument(index))
      open += type.getNumDynamicDims();
  if (!getSizes().empty() && int64_t(getSizes().size()) != open)
    return emitOpError("expected no 'sizes', or ")
           << open << ", one for each open size of the run arguments of '"
           << callee.getSymName() << "', but got " << getSizes().size()
           << " [CAL3]";
  return success();
}

//===----------------------------------------------------------------------===//
// RunOp
//===----------------------------------------------------------------------===//

MutableOperandRange RunOp::getDpsInitsMutable() { return getOutsMutable(); }

void RunOp::getEffects(Effects &effects) {
  // Which of them are appended to is the program's affair.
  for (OpOperand &value : getValuesMutable())
    if (isa<MemRefType>(value.get().getType())) {
      effects.emplace_back(MemoryEffects::Read::get(), &value);
      effects.emplace_back(MemoryEffects::Write::get(), &value);
    }
  for (OpOperand &out : getOutsMutable())
    if (isa<MemRefType>(out.get().getType()))
      effects.emplace_back(MemoryEffects::Write::get(), &out);
}

LogicalResult RunOp::verify() {
  auto plan = getPlan().getDefiningOp<PlanOp>();
  if (!plan || plan.getProgramAttr() != getProgramAttr()) {
    InFlightDiagnostic diag = emitOpError("expected operand 'plan' to be the "
                                          "result of fi.plan of '")
                              << getProgram() << "'";
    if (plan)
      diag << ", but got that of '" << plan.getProgram() << "'";
    return diag << " [CAL5]";
  }
  SmallVector<Type> tensors;
  for (Type type : getOuts().getTypes())
    if (isa<RankedTensorType>(type))
      tensors.push_back(type);
  if (!tensors.empty() && tensors.size() != getOuts().size())
    return emitOpError("expected 'outs' to be tensors all, or memrefs all, but "
                       "got ")
           << getOuts().getTypes() << " [CAL4]";
  if (TypeRange(tensors) != getResultTypes())
    return emitOpError("expected a result of the type of each tensor of "
                       "'outs', but got ")
           << getOuts().getTypes() << " and " << getResultTypes() << " [CAL4]";
  return success();
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto found = findProgram(*this, getProgramAttr(), symbols);
  if (failed(found) || !*found)
    return found;
  ProgramOp callee = *found;
  if (failed(verifyValues(*this, getValues(), callee, /*ofPlan=*/false)))
    return failure();
  ArrayRef<Type> results = callee.getResultTypes();
  if (getOuts().size() != results.size())
    return emitOpError("expected 'outs' to have ")
           << results.size() << " operands, one for each result of '"
           << callee.getSymName() << "', but got " << getOuts().size()
           << " [CAL4]";
  for (auto [index, out, type] : llvm::enumerate(getOuts(), results))
    if (!isPassable(out.getType(), type))
      return emitOpError("expected operand ")
             << index << " of 'outs' of type " << type
             << ", or a memref of its shape, but got " << out.getType()
             << " [CAL4]";
  return success();
}
