//===- StageBuilder.cpp - kernels and manifest of one stage ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageBuilder.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

MemRefType fi::tile::getBufferType(ShapedType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), 0, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

static std::string dtypeName(Type type) {
  if (type.isIndex())
    return "index";
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return name;
}

static ArrayAttr shapeAttr(Builder &b, ArrayRef<int64_t> shape) {
  SmallVector<Attribute> sizes;
  for (int64_t size : shape)
    sizes.push_back(ShapedType::isDynamic(size)
                        ? Attribute(b.getUnitAttr())
                        : Attribute(b.getI64IntegerAttr(size)));
  return b.getArrayAttr(sizes);
}

//===----------------------------------------------------------------------===//
// ProgramBuffers
//===----------------------------------------------------------------------===//

ProgramBuffers::ProgramBuffers(ProgramOp program) : program(program) {
  for (BlockArgument argument : program.getBody().getArguments()) {
    std::string name = program.getArgumentName(argument.getArgNumber());
    Type type = argument.getType();
    if (auto shaped = dyn_cast<ShapedType>(type))
      type = getBufferType(shaped);
    buffers[argument] = {name, type};
    if (!program.isPlanArgument(argument.getArgNumber()))
      rowSources[argument] = StringAttr::get(program.getContext(), name);
  }
  orderedResults.resize(program.getResultTypes().size());
}

DictionaryAttr ProgramBuffers::describe(StringRef name, ShapedType type,
                                        Attribute rowsOf) const {
  Builder b(type.getContext());
  return b.getDictionaryAttr(
      {b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("dtype",
                      b.getStringAttr(dtypeName(type.getElementType()))),
       b.getNamedAttr("shape", shapeAttr(b, type.getShape())),
       b.getNamedAttr("rows_of", rowsOf)});
}

Buffer ProgramBuffers::addTemporary(ArrayRef<int64_t> shape, Type element,
                                    Attribute rows) {
  auto type = RankedTensorType::get(shape, element);
  std::string name = "temporary" + std::to_string(temporaries.size());
  temporaries.push_back(describe(name, type, rows));
  return {name, getBufferType(type)};
}

Attribute ProgramBuffers::findRows(Operation *op, Value rows) {
  Builder b(op->getContext());
  APInt number;
  if (matchPattern(rows, m_ConstantInt(&number))) {
    if (!number.isNegative())
      return b.getI64IntegerAttr(number.getSExtValue());
    op->emitOpError("expected a number of rows of at least 0, but got ")
        << number.getSExtValue();
    return {};
  }
  auto argument = dyn_cast<BlockArgument>(rows);
  if (argument && program.isPlanArgument(argument.getArgNumber()))
    return b.getStringAttr(get(argument).name);
  // The rows of a run argument, which the plan finds.
  Operation *dim = rows.getDefiningOp();
  if (isa_and_nonnull<tensor::DimOp, memref::DimOp>(dim) &&
      matchPattern(dim->getOperand(1), m_Zero()))
    if (auto tensor = dyn_cast<BlockArgument>(dim->getOperand(0));
        tensor && !program.isPlanArgument(tensor.getArgNumber()))
      return rowsOf(tensor);
  op->emitOpError("expected ") << (isa<EmptyOp>(op) ? "'rows'" : "'bytes'")
                               << " to be known when planning: a plan "
                                  "argument, a constant, or dimension "
                                  "0 of a run argument";
  return {};
}

LogicalResult ProgramBuffers::define(Value value, Attribute rows) {
  auto type = cast<ShapedType>(value.getType());
  rowSources[value] = rows;
  SmallVector<OpOperand *> returns;
  for (OpOperand &use : value.getUses())
    if (isa<fi::ReturnOp>(use.getOwner()))
      returns.push_back(&use);
  if (returns.size() > 1)
    return returns[1]->getOwner()->emitOpError(
               "expected each value to be returned once, but got operand ")
           << returns[0]->getOperandNumber() << " again as operand "
           << returns[1]->getOperandNumber();
  std::string name;
  if (returns.empty()) {
    name = "temporary" + std::to_string(temporaries.size());
    temporaries.push_back(describe(name, type, rows));
  } else {
    unsigned index = returns[0]->getOperandNumber();
    name = "result" + std::to_string(index);
    orderedResults[index] = describe(name, type, rows);
  }
  buffers[value] = {name, getBufferType(type)};
  return success();
}

void ProgramBuffers::defineState(Value value, Value rowsOf) {
  auto state = cast<StateType>(value.getType());
  Attribute rows = this->rowsOf(rowsOf);
  rowSources[value] = rows;
  buffers[value] =
      addTemporary({state.getRows(), state.getHeads(), state.getDim()},
                   state.getElement(), rows);
  statistics[value] = addTemporary({state.getRows(), state.getHeads()},
                                   state.getElement(), rows);
}

ArrayAttr ProgramBuffers::getArguments() const {
  Builder b(program->getContext());
  SmallVector<Attribute> entries;
  auto program = this->program;
  for (BlockArgument argument : program.getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    Type type = argument.getType();
    auto shaped = dyn_cast<ShapedType>(type);
    StringRef kind = !shaped                 ? "scalar"
                     : isa<MemRefType>(type) ? "pool"
                                             : "tensor";
    SmallVector<NamedAttribute> entry = {
        b.getNamedAttr("name", b.getStringAttr(program.getArgumentName(index))),
        b.getNamedAttr(
            "group",
            b.getStringAttr(program.isPlanArgument(index) ? "plan" : "run")),
        b.getNamedAttr("kind", b.getStringAttr(kind)),
        b.getNamedAttr("dtype",
                       b.getStringAttr(dtypeName(getElementTypeOrSelf(type))))};
    if (shaped)
      entry.push_back(b.getNamedAttr("shape", shapeAttr(b, shaped.getShape())));
    if (program.getArgAttr(index, "fi.sorted"))
      entry.push_back(b.getNamedAttr("sorted", b.getBoolAttr(true)));
    entries.push_back(b.getDictionaryAttr(entry));
  }
  return b.getArrayAttr(entries);
}

ArrayAttr ProgramBuffers::getResults() const {
  return ArrayAttr::get(program->getContext(), orderedResults);
}

ArrayAttr ProgramBuffers::getTemporaries() const {
  return ArrayAttr::get(program->getContext(), temporaries);
}

//===----------------------------------------------------------------------===//
// StageBuilder
//===----------------------------------------------------------------------===//

unsigned StageBuilder::use(const Buffer &buffer) {
  for (auto [index, other] : llvm::enumerate(used))
    if (other.name == buffer.name)
      return index;
  used.push_back(buffer);
  return used.size() - 1;
}

ArrayAttr StageBuilder::getNames() const {
  return builder.getArrayAttr(
      llvm::map_to_vector(used, [&](const Buffer &buffer) -> Attribute {
        return builder.getStringAttr(buffer.name);
      }));
}

KernelOp StageBuilder::createKernel(StringRef name, ScheduleAttr schedule) {
  SmallVector<Type> types;
  SmallVector<Attribute> attrs;
  for (const Buffer &buffer : used) {
    types.push_back(buffer.type);
    attrs.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        ProgramOp::kNameAttr, builder.getStringAttr(buffer.name))));
  }
  types.push_back(WorkType::get(builder.getContext()));
  attrs.push_back(builder.getDictionaryAttr({}));
  auto kernel = KernelOp::create(
      builder, loc, name, builder.getFunctionType(types, {}), schedule,
      /*sym_visibility=*/StringAttr(), builder.getArrayAttr(attrs),
      /*res_attrs=*/ArrayAttr());
  Block *block = builder.createBlock(&kernel.getBody(), {}, types,
                                     SmallVector<Location>(types.size(), loc));
  tile::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(block);
  return kernel;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

DictionaryAttr fi::tile::describeView(Value view,
                                      const ProgramBuffers &buffers) {
  Builder b(view.getContext());
  SmallVector<NamedAttribute> entry;
  auto name = [&](StringRef key, Value value) {
    entry.push_back(b.getNamedAttr(
        key, value ? Attribute(b.getStringAttr(buffers.get(value).name))
                   : Attribute(b.getUnitAttr())));
  };
  cast<KVViewTypeInterface>(view.getType()).appendManifest(entry);
  for (auto [key, value] :
       view.getDefiningOp<KVViewOpInterface>().getNamedOperands())
    name(key, value);
  // What the runtime has to check: scales whose sizes go with the pools'.
  SmallVector<Attribute> scales;
  auto type = cast<KVViewTypeInterface>(view.getType());
  ValueRange operands = view.getDefiningOp<KVViewOpInterface>().getViewScales();
  for (auto [scale, operand] : llvm::zip_equal(getScales(type), operands))
    if (!scale.per || scale.per == Granularity::Page ||
        scale.per == Granularity::Token)
      scales.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", b.getStringAttr(buffers.get(operand).name)),
           b.getNamedAttr("per",
                          b.getStringAttr(scale.per
                                              ? stringifyGranularity(*scale.per)
                                              : StringRef("block"))),
           b.getNamedAttr("values", b.getBoolAttr(scale.ofValues))}));
  if (!scales.empty())
    entry.push_back(b.getNamedAttr("scales", b.getArrayAttr(scales)));
  return b.getDictionaryAttr(entry);
}

ViewBuffers fi::tile::useView(StageBuilder &stage, Value view,
                              const ProgramBuffers &buffers) {
  ViewBuffers result;
  auto maker = view.getDefiningOp<KVViewOpInterface>();
  for (Value pool : maker.getViewPools())
    result.pools.push_back(stage.use(buffers.get(pool)));
  for (Value table : maker.getPageTables())
    result.pages.push_back(stage.use(buffers.get(table)));
  for (auto [scale, operand] :
       llvm::zip_equal(getScales(cast<KVViewTypeInterface>(view.getType())),
                       maker.getViewScales()))
    (scale.per ? result.scales : result.blocks)[scale.ofValues] =
        stage.use(buffers.get(operand));
  if (cast<KVViewTypeInterface>(view.getType()).sharesValues())
    result.scales[true] = result.scales[false];
  return result;
}

Value fi::tile::createView(StageBuilder &stage, KernelOp kernel, Value view,
                           const ViewBuffers &viewBuffers) {
  Block &entry = kernel.getBody().front();
  auto arguments = [&](ArrayRef<unsigned> indices) {
    return llvm::map_to_vector(indices, [&](unsigned index) -> Value {
      return entry.getArgument(index);
    });
  };
  return ViewOp::create(stage.builder, stage.loc, view.getType(),
                        arguments(viewBuffers.pools),
                        arguments(viewBuffers.pages));
}
