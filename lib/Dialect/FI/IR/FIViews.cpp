//===- FIViews.cpp - operations that make views
//----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of pools and tables against the type of a view, and what the rest of
// the compiler asks of the ops.
//
//===----------------------------------------------------------------------===//

#include "Shapes.h"
#include "fi/Dialect/FI/IR/FI.h"

using namespace mlir;
using namespace fi;

/// Whether a memref's last dimension is contiguous; tensors always are.
static bool lastContiguous(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(memref.getStridesAndOffset(strides, offset)) &&
         (strides.empty() || strides.back() == 1);
}

/// KV5 and KV8 for one pool.
static LogicalResult verifyPool(Operation *op, StringRef name, Value pool,
                                ArrayRef<int64_t> shape, Type element) {
  auto type = cast<ShapedType>(pool.getType());
  if (!shapeFits(type.getShape(), shape))
    return op->emitOpError("expected operand '")
           << name << "' of shape " << shapeText(shape)
           << " by the view's type, but got " << shapeText(type.getShape())
           << " [KV5]";
  if (type.getElementType() != element)
    return op->emitOpError("expected operand '")
           << name << "' to hold " << element << " by the view's type, but got "
           << type.getElementType() << " [KV5]";
  if (!lastContiguous(type))
    return op->emitOpError("expected operand '")
           << name << "' to have a last dimension of stride 1, but got " << type
           << " [KV8]";
  return success();
}

/// KV6, KV7 and KV13 for one table.
static LogicalResult verifyTable(Operation *op, StringRef name, Value table,
                                 int64_t rank, Type index, StringRef id) {
  auto type = cast<ShapedType>(table.getType());
  if (!type.hasRank() || type.getRank() != rank ||
      type.getElementType() != index)
    return op->emitOpError("expected operand '")
           << name << "' to be of rank " << rank << " with elements of type "
           << index << ", but got " << type << " [" << id << "]";
  return success();
}

static LogicalResult verifyOrigin(KVViewOpInterface op, Type index) {
  if (Value origin = op.getViewOrigin())
    return verifyTable(op, "origin", origin, 1, index, "KV7");
  return success();
}

/// QNT4: the scales that the schemes ask for. Of a token there is one where the
/// pool has a row, and of a row as many as it has blocks: `tokens` are the
/// pool's sizes but the last, and those of the parts of a fused one.
static LogicalResult verifyScales(KVViewOpInterface op,
                                  KVViewTypeInterface view,
                                  ArrayRef<int64_t> tokens) {
  ValueRange scales = op.getViewScales();
  SmallVector<KVScale, 4> wanted = getScales(view);
  if (scales.size() != wanted.size())
    return op->emitOpError("expected ")
           << wanted.size() << " operands 'scales', those of keys and of "
           << "values that the view's type asks for, but got " << scales.size()
           << " [QNT4]";
  for (auto [want, scale] : llvm::zip(wanted, scales)) {
    StringRef name = want.ofValues ? "values" : "keys";
    SmallVector<int64_t> shape;
    auto shaped = dyn_cast<ShapedType>(scale.getType());
    if (!want.per) {
      BlockScaledType blocks = getBlockScaledType(view, want.ofValues);
      shape.assign(tokens.begin(), tokens.end());
      shape.push_back((want.ofValues ? view.getValueDim() : view.getKeyDim()) /
                      blocks.getBlock());
      if (!shaped || !shapeFits(shaped.getShape(), shape) ||
          shaped.getElementType() != blocks.getBy() || !lastContiguous(shaped))
        return op->emitOpError("expected the scales of ")
               << name << " to be of shape " << shapeText(shape) << " and type "
               << blocks.getBy()
               << ", one for each block of a row, with a last "
               << "dimension of stride 1, but got " << scale.getType()
               << " [QNT4]";
      continue;
    }
    switch (*want.per) {
    case Granularity::Tensor:
      break;
    case Granularity::Head:
      shape = {view.getKVHeads()};
      break;
    case Granularity::Page:
      shape = {ShapedType::kDynamic, view.getKVHeads()};
      break;
    case Granularity::Token:
      shape.assign(tokens.begin(), tokens.end());
      break;
    }
    bool isNumber = want.per == Granularity::Tensor;
    if (isNumber ? static_cast<bool>(shaped)
                 : !shaped || !shapeFits(shaped.getShape(), shape) ||
                       !shaped.getElementType().isF32()) {
      InFlightDiagnostic diag = op->emitOpError("expected the scales of ");
      diag << name << " to be ";
      if (isNumber)
        diag << "a number of f32";
      else
        diag << "f32 of shape " << shapeText(shape);
      return diag << ", one for each " << stringifyGranularity(*want.per)
                  << ", but got " << scale.getType() << " [QNT4]";
    }
  }
  return success();
}

/// The pools' names, which are their parts.
static constexpr StringLiteral kPools[] = {"keys", "values"};
static constexpr StringLiteral kFusedPool[] = {"pool"};
static constexpr StringLiteral kLatentPools[] = {"latents", "tails"};

/// All pools of a view; `shapeOf` gives what one is to be like.
static LogicalResult
verifyPools(KVViewOpInterface op, KVViewTypeInterface type,
            ArrayRef<StringLiteral> names, StringRef wanted,
            llvm::function_ref<SmallVector<int64_t>(KVPart)> shapeOf) {
  ValueRange pools = op.getViewPools();
  if (pools.size() != names.size())
    return op->emitOpError("expected ")
           << names.size() << " " << wanted << ", but got " << pools.size()
           << " [KV5]";
  KVPart parts[] = {KVPart::Keys, type.getSecondPart()};
  for (auto [name, pool, part] : llvm::zip(names, pools, parts))
    if (failed(
            verifyPool(op, name, pool, shapeOf(part), type.getPoolType(part))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Tables of pages
//===----------------------------------------------------------------------===//

/// Names of the tables of a paged view, in order.
static SmallVector<StringRef> tableNames(bool dense, bool twoTables) {
  SmallVector<StringRef> names;
  if (!dense)
    names.push_back("indptr");
  names.push_back("pages");
  if (twoTables)
    names.push_back("value_pages");
  names.push_back(dense ? "lengths" : "last");
  return names;
}

static LogicalResult verifyPageTables(Operation *op, OperandRange tables,
                                      bool dense, bool twoTables, Type index) {
  SmallVector<StringRef> names = tableNames(dense, twoTables);
  if (tables.size() != names.size())
    return op->emitOpError("expected ")
           << names.size() << " tables (" << llvm::join(names, ", ")
           << "), but got " << tables.size() << " [KV6]";
  for (auto [name, table] : llvm::zip(names, tables)) {
    bool isPages = name == "pages" || name == "value_pages";
    if (failed(verifyTable(op, name, table, dense && isPages ? 2 : 1, index,
                           "KV6")))
      return failure();
  }
  return success();
}

static SmallVector<KVOperand> namePages(ArrayRef<StringRef> poolNames,
                                        ValueRange pools, ValueRange tables,
                                        bool dense, bool twoTables,
                                        Value origin) {
  SmallVector<KVOperand> named;
  for (auto [index, name] : llvm::enumerate(poolNames))
    named.push_back({name, pools[std::min(index, pools.size() - 1)]});
  SmallVector<StringRef> names = tableNames(dense, twoTables);
  for (StringRef name : {"indptr", "pages", "value_pages", "last", "lengths"}) {
    auto at = llvm::find(names, name);
    if (at != names.end())
      named.push_back({name, tables[at - names.begin()]});
    else if (name != "value_pages")
      named.push_back({name, Value()});
  }
  named.push_back({"origin", origin});
  return named;
}

//===----------------------------------------------------------------------===//
// PagedViewOp
//===----------------------------------------------------------------------===//

LogicalResult PagedViewOp::verify() {
  PagedKVType type = getType();
  bool nhd = type.getOrder() == HeadOrder::NHD;
  auto poolShape = [&](KVPart part) {
    SmallVector<int64_t> shape = {ShapedType::kDynamic};
    if (type.getFused())
      shape.push_back(2);
    if (nhd)
      llvm::append_values(shape, type.getPage(), type.getHeads());
    else
      llvm::append_values(shape, type.getHeads(), type.getPage());
    shape.push_back(type.getPoolColumns(part));
    return shape;
  };
  bool fused = type.getFused();
  if (failed(verifyPools(
          *this, type, fused ? ArrayRef<StringLiteral>(kFusedPool) : kPools,
          fused ? "fused pool" : "pools, of keys and values", poolShape)) ||
      failed(verifyPageTables(*this, getTables(), type.getDense(),
                              type.getTwoTables(), type.getIndexType())))
    return failure();
  SmallVector<int64_t> tokens = {ShapedType::kDynamic, type.getPage(),
                                 type.getHeads()};
  if (!nhd)
    std::swap(tokens[1], tokens[2]);
  if (failed(verifyScales(*this, type, tokens)))
    return failure();
  return verifyOrigin(*this, type.getIndexType());
}

ValueRange PagedViewOp::getViewScales() { return getScales(); }

SmallVector<Value> PagedViewOp::getPageTables() {
  unsigned first = getType().getDense() ? 0 : 1;
  SmallVector<Value> tables = {getTables()[first]};
  if (getType().getTwoTables())
    tables.push_back(getTables()[first + 1]);
  return tables;
}

SmallVector<KVOperand> PagedViewOp::getNamedOperands() {
  return namePages({"keys", "values"}, getPools(), getTables(),
                   getType().getDense(), getType().getTwoTables(), getOrigin());
}

//===----------------------------------------------------------------------===//
// LatentViewOp
//===----------------------------------------------------------------------===//

LogicalResult LatentViewOp::verify() {
  LatentKVType type = getType();
  auto poolShape = [&](KVPart part) -> SmallVector<int64_t> {
    return {ShapedType::kDynamic, type.getPage(), type.getPoolColumns(part)};
  };
  if (failed(verifyPools(*this, type, kLatentPools,
                         "pools, of latents and tails", poolShape)) ||
      failed(verifyPageTables(*this, getTables(), type.getDense(),
                              /*twoTables=*/false, type.getIndexType())) ||
      failed(verifyScales(*this, type, {ShapedType::kDynamic, type.getPage()})))
    return failure();
  return verifyOrigin(*this, type.getIndexType());
}

ValueRange LatentViewOp::getViewScales() { return getScales(); }

SmallVector<Value> LatentViewOp::getPageTables() {
  return {getTables()[getType().getDense() ? 0 : 1]};
}

SmallVector<KVOperand> LatentViewOp::getNamedOperands() {
  // Latents are keys and values.
  Value latents = getPools().front(), tails = getPools().back();
  return namePages({"keys", "values", "tail"}, {latents, latents, tails},
                   getTables(), getType().getDense(), /*twoTables=*/false,
                   getOrigin());
}

//===----------------------------------------------------------------------===//
// RaggedViewOp, BsrViewOp
//===----------------------------------------------------------------------===//

/// What a view without pages shares with others of its kind.
template <typename OpTy> static LogicalResult verifyTokens(OpTy op) {
  auto type = op.getType();
  auto poolShape = [&](KVPart part) -> SmallVector<int64_t> {
    if (type.getOrder() == HeadOrder::NHD)
      return {ShapedType::kDynamic, type.getHeads(), type.getPoolColumns(part)};
    return {type.getHeads(), ShapedType::kDynamic, type.getPoolColumns(part)};
  };
  if (failed(verifyPools(op, type, kPools, "pools, of keys and values",
                         poolShape)))
    return failure();
  if (op.getIndptr() && failed(verifyTable(op, "indptr", op.getIndptr(), 1,
                                           type.getIndexType(), "KV6")))
    return failure();
  SmallVector<int64_t> tokens = {ShapedType::kDynamic, type.getHeads()};
  if (type.getOrder() == HeadOrder::HND)
    std::swap(tokens[0], tokens[1]);
  if (failed(verifyScales(op, type, tokens)))
    return failure();
  return verifyOrigin(op, type.getIndexType());
}

LogicalResult RaggedViewOp::verify() { return verifyTokens(*this); }

ValueRange RaggedViewOp::getViewScales() { return getScales(); }

SmallVector<Value> RaggedViewOp::getPageTables() { return {}; }

SmallVector<KVOperand> RaggedViewOp::getNamedOperands() {
  return {{"keys", getPools()[0]},
          {"values", getPools()[1]},
          {"indptr", getIndptr()},
          {"origin", getOrigin()}};
}

static constexpr StringLiteral kBlockTables[] = {"row_indptr", "columns"};

LogicalResult BsrViewOp::verify() {
  if (failed(verifyTokens(*this)))
    return failure();
  if (getBlocks().size() != 2)
    return emitOpError("expected 2 tables of blocks (row_indptr, columns), but "
                       "got ")
           << getBlocks().size() << " [KV13]";
  for (auto [name, table] : llvm::zip(kBlockTables, getBlocks()))
    if (failed(verifyTable(*this, name, table, 1, getType().getIndexType(),
                           "KV13")))
      return failure();
  return success();
}

ValueRange BsrViewOp::getViewScales() { return getScales(); }

SmallVector<Value> BsrViewOp::getPageTables() { return {}; }

SmallVector<KVOperand> BsrViewOp::getNamedOperands() {
  return {{"keys", getPools()[0]},           {"values", getPools()[1]},
          {"indptr", getIndptr()},           {kBlockTables[0], getBlocks()[0]},
          {kBlockTables[1], getBlocks()[1]}, {"origin", getOrigin()}};
}
