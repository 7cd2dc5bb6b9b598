//===- CallsToLLVM.cpp - plans and runs become calls of the runtime -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi_call.h says what the calls are given. It is written before memrefs become
// descriptors: their parts are asked for by ops of memref.
//
//===----------------------------------------------------------------------===//

#include "fi-runtime/fi_call.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/IR/FICalls.h"
#include "fi/Support/RuntimeTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace fi {
#define GEN_PASS_DEF_FICALLSTOLLVM
#include "fi/Conversion/Passes.h.inc"
} // namespace fi

using namespace mlir;
using namespace fi;

/// The runtime's name of an element type; none if it has no such type.
static std::optional<fi_dtype> getRuntimeType(Type element) {
  if (element.isIndex())
    return FI_INDEX;
  auto type = getDType(element);
  return type ? toRuntimeType(*type) : std::nullopt;
}

namespace {

/// Numbers of one call, on the stack.
class Words {
public:
  explicit Words(ImplicitLocOpBuilder &b) : b(b) {}

  void add(int64_t number) {
    add(LLVM::ConstantOp::create(b, b.getI64Type(), b.getI64IntegerAttr(number))
            .getResult());
  }
  void add(Value number) {
    if (number.getType().isIndex())
      number = arith::IndexCastOp::create(b, b.getI64Type(), number);
    words.push_back(number);
  }
  LogicalResult addValue(Operation *op, Value value);
  /// The array, which is made where the function begins: a loop does not make
  /// it anew.
  Value store(Block &entry);

  int32_t count = 0;

private:
  ImplicitLocOpBuilder &b;
  SmallVector<Value> words;
};

struct CallsToLLVM : fi::impl::FICallsToLLVMBase<CallsToLLVM> {
  using Base::Base;

  void runOnOperation() override;
  LogicalResult convert(PlanOp op);
  LogicalResult convert(RunOp op);
  /// A function of the runtime; null, with an error, where its name is another
  /// one's.
  LLVM::LLVMFuncOp getFunction(Operation *op, StringRef name, Type result,
                               ArrayRef<Type> arguments);
  Value getProgramName(ImplicitLocOpBuilder &b, StringRef program);

  std::optional<SymbolTable> symbols;
  llvm::StringMap<LLVM::GlobalOp> names;
  /// Of plans, as pointers.
  llvm::DenseMap<Value, Value> pointers;
};

} // namespace

LogicalResult Words::addValue(Operation *op, Value value) {
  Type type = value.getType();
  if (isa<TensorType>(type))
    return op->emitOpError("expected memrefs and scalars, but got ")
           << type << ": bufferize before fi-calls-to-llvm";
  auto element = getRuntimeType(getElementTypeOrSelf(type));
  if (!element)
    return op->emitOpError("expected elements of a type that programs have at "
                           "run time, but got ")
           << type;
  ++count;
  Type i64 = b.getI64Type();
  if (auto memref = dyn_cast<MemRefType>(type)) {
    auto parts = memref::ExtractStridedMetadataOp::create(b, value);
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, value);
    int64_t bytes = getByteSize(
        element == FI_INDEX ? DType::I64 : *getDType(memref.getElementType()));
    Value offset = arith::MulIOp::create(
        b, parts.getOffset(), arith::ConstantIndexOp::create(b, bytes));
    add(FI_CALL_VALUE(FI_VALUE_TENSOR, *element, memref.getRank()));
    add(arith::AddIOp::create(b, address, offset).getResult());
    for (Value size : parts.getSizes())
      add(size);
    for (Value stride : parts.getStrides())
      add(stride);
    return success();
  }
  if (isa<FloatType>(type)) {
    add(FI_CALL_VALUE(FI_VALUE_FLOAT, *element, 0));
    if (!type.isF32())
      value = arith::ExtFOp::create(b, b.getF32Type(), value);
    value = arith::BitcastOp::create(b, b.getI32Type(), value);
    add(arith::ExtUIOp::create(b, i64, value).getResult());
    return success();
  }
  add(FI_CALL_VALUE(FI_VALUE_INTEGER, *element, 0));
  if (type.isInteger(1))
    value = arith::ExtUIOp::create(b, i64, value);
  else if (type.isInteger() && type.getIntOrFloatBitWidth() < 64)
    value = arith::ExtSIOp::create(b, i64, value);
  add(value);
  return success();
}

Value Words::store(Block &entry) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  if (words.empty())
    return LLVM::ZeroOp::create(b, pointer);
  Type i64 = b.getI64Type();
  Value array;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&entry);
    Value size = LLVM::ConstantOp::create(
        b, i64, b.getI64IntegerAttr(int64_t(words.size())));
    array = LLVM::AllocaOp::create(b, pointer, i64, size);
  }
  for (auto [number, word] : llvm::enumerate(words)) {
    Value place = LLVM::GEPOp::create(b, pointer, i64, array,
                                      LLVM::GEPArg(int32_t(number)));
    LLVM::StoreOp::create(b, word, place);
  }
  return array;
}

LLVM::LLVMFuncOp CallsToLLVM::getFunction(Operation *op, StringRef name,
                                          Type result,
                                          ArrayRef<Type> arguments) {
  auto type = LLVM::LLVMFunctionType::get(result, arguments);
  if (Operation *known = symbols->lookup(name)) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(known);
    if (function && function.getFunctionType() == type)
      return function;
    InFlightDiagnostic diag = op->emitOpError("calls '")
                              << name
                              << "' of the runtime, but the module has another "
                                 "symbol of this name";
    diag.attachNote(known->getLoc()) << "see its definition";
    return {};
  }
  auto b = OpBuilder::atBlockBegin(getOperation().getBody());
  auto function = LLVM::LLVMFuncOp::create(b, op->getLoc(), name, type);
  symbols->insert(function);
  return function;
}

Value CallsToLLVM::getProgramName(ImplicitLocOpBuilder &b, StringRef program) {
  LLVM::GlobalOp &global = names[program];
  if (!global) {
    auto at = OpBuilder::atBlockBegin(getOperation().getBody());
    std::string text = program.str() + '\0';
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), unsigned(text.size()));
    global = LLVM::GlobalOp::create(
        at, b.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
        ("fi_name_of_" + program).str(), at.getStringAttr(text));
    symbols->insert(global);
  }
  return LLVM::AddressOfOp::create(b, global);
}

/// The first block of the function that an op is in.
static Block &getEntry(Operation *op) {
  return op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
}

static Value makeCount(ImplicitLocOpBuilder &b, int32_t count) {
  return LLVM::ConstantOp::create(b, b.getI32Type(),
                                  b.getI32IntegerAttr(count));
}

LogicalResult CallsToLLVM::convert(PlanOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  // It is given back where its block ends: nobody may have it longer.
  Block *block = op->getBlock();
  for (Operation *user : op->getUsers())
    if (!block->findAncestorOpInBlock(*user)) {
      InFlightDiagnostic diag = op.emitOpError(
          "expected its runs in the same block or in regions of its ops: run "
          "fi-calls-to-llvm before loops become branches");
      diag.attachNote(user->getLoc()) << "see here";
      return diag;
    }
  auto pointer = LLVM::LLVMPointerType::get(&getContext());
  Type i32 = b.getI32Type();
  LLVM::LLVMFuncOp plan = getFunction(op, "fi_call_plan", pointer,
                                      {pointer, i32, pointer, i32, pointer});
  LLVM::LLVMFuncOp release = getFunction(
      op, "fi_call_release", LLVM::LLVMVoidType::get(&getContext()), pointer);
  if (!plan || !release)
    return failure();

  Words values(b), shapes(b);
  for (Value value : op.getValues())
    if (failed(values.addValue(op, value)))
      return failure();
  // Sizes of each run argument; -1 for those that are told when it runs.
  ValueRange open = op.getSizes();
  auto program = symbols->lookup<ProgramOp>(op.getProgram());
  if (!program)
    return op.emitOpError("expected the fi.program '")
           << op.getProgram()
           << "' to be there: run fi-calls-to-llvm before it is lowered";
  for (unsigned index = 0, e = program.getArgumentTypes().size(); index < e;
       ++index) {
    if (program.isPlanArgument(index))
      continue;
    Type type = program.getArgumentTypes()[index];
    auto shaped = dyn_cast<ShapedType>(type);
    auto element = getRuntimeType(getElementTypeOrSelf(type));
    if (!element)
      return op.emitOpError("expected elements of a type that programs have "
                            "at run time, but got ")
             << type;
    ++shapes.count;
    if (!shaped) {
      shapes.add(FI_CALL_VALUE(isa<FloatType>(type) ? FI_VALUE_FLOAT
                                                    : FI_VALUE_INTEGER,
                               *element, 0));
      shapes.add(int64_t(0));
      continue;
    }
    shapes.add(FI_CALL_VALUE(FI_VALUE_TENSOR, *element, shaped.getRank()));
    shapes.add(int64_t(0));
    for (int64_t size : shaped.getShape()) {
      if (ShapedType::isDynamic(size) && op.getSizes().empty()) {
        shapes.add(int64_t(-1));
      } else if (ShapedType::isDynamic(size)) {
        shapes.add(open.front());
        open = open.drop_front();
      } else {
        shapes.add(size);
      }
    }
    for (int64_t i = 0; i < shaped.getRank(); ++i)
      shapes.add(int64_t(0));
  }
  Block &entry = getEntry(op);
  auto call = LLVM::CallOp::create(
      b, plan,
      ValueRange{getProgramName(b, op.getProgram()), makeCount(b, values.count),
                 values.store(entry), makeCount(b, shapes.count),
                 shapes.store(entry)});
  pointers[op.getResult()] = call.getResult();
  b.setInsertionPoint(block->getTerminator());
  LLVM::CallOp::create(b, release, call.getResult());
  return success();
}

LogicalResult CallsToLLVM::convert(RunOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto pointer = LLVM::LLVMPointerType::get(&getContext());
  Type i32 = b.getI32Type();
  LLVM::LLVMFuncOp run =
      getFunction(op, "fi_call_run", LLVM::LLVMVoidType::get(&getContext()),
                  {pointer, i32, pointer, i32, pointer});
  if (!run)
    return failure();
  Words values(b), results(b);
  for (Value value : op.getValues())
    if (failed(values.addValue(op, value)))
      return failure();
  for (Value out : op.getOuts())
    if (failed(results.addValue(op, out)))
      return failure();
  Block &entry = getEntry(op);
  LLVM::CallOp::create(
      b, run,
      ValueRange{pointers.lookup(op.getPlan()), makeCount(b, values.count),
                 values.store(entry), makeCount(b, results.count),
                 results.store(entry)});
  return success();
}

void CallsToLLVM::runOnOperation() {
  symbols.emplace(getOperation());
  names.clear();
  pointers.clear();
  SmallVector<Operation *> calls;
  getOperation()->walk([&](Operation *op) {
    if (isa<PlanOp, RunOp>(op))
      calls.push_back(op);
  });
  for (Operation *op : calls) {
    if (!op->getParentOfType<FunctionOpInterface>() ||
        SymbolTable::getNearestSymbolTable(op) != getOperation()) {
      op->emitOpError("expected to be in a function of the module");
      return signalPassFailure();
    }
    auto plan = dyn_cast<PlanOp>(op);
    if (failed(plan ? convert(plan) : convert(cast<RunOp>(op))))
      return signalPassFailure();
  }
  for (Operation *op : llvm::reverse(calls))
    op->erase();
  if (erasePrograms)
    for (ProgramOp program :
         llvm::make_early_inc_range(getOperation().getOps<ProgramOp>()))
      program.erase();
}
