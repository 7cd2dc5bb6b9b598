//===- Signature.cpp - what a program takes and gives ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Signature.h"
#include "fi/Dialect/FI/IR/FICompanions.h"
#include "fi/Support/File.h"
#include "fi/Target/Manifest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace fi;
using namespace mlir;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

int Signature::find(StringRef argument) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument)
      return i;
  return -1;
}

std::vector<ViewInfo> Signature::getViews() const {
  std::vector<ViewInfo> views;
  for (const AttentionInfo &attention : attentions)
    views.push_back(attention.view);
  for (const AppendInfo &append : appends)
    views.push_back(append.view);
  return views;
}

Expected<ProgramOp> fi::findProgram(ModuleOp module, StringRef name) {
  llvm::SmallVector<ProgramOp> programs(module.getOps<ProgramOp>());
  if (programs.empty())
    return createStringError("expected a fi.program, but the module has none");
  if (name.empty() && programs.size() == 1)
    return programs.front();
  llvm::SmallVector<StringRef> names;
  for (ProgramOp program : programs) {
    if (program.getSymName() == name)
      return program;
    names.push_back(program.getSymName());
  }
  std::string list = llvm::join(names, ", ");
  if (name.empty())
    return createStringError("the module has several programs; choose one of " +
                             list);
  return createStringError("no program is named '" + name +
                           "'; the module has " + list);
}

Expected<tile::PackageOp> fi::findPackage(ModuleOp module, StringRef name) {
  llvm::SmallVector<tile::PackageOp> packages(module.getOps<tile::PackageOp>());
  if (packages.empty())
    return createStringError("expected a fi.program, or kernels with their "
                             "fi_tile.package, but the module has neither");
  // Kernels do not say whose they are.
  if (packages.size() > 1)
    return createStringError(
        "expected one fi_tile.package at level 2, but got " +
        Twine(packages.size()) + "; run one program at a time");
  if (!name.empty() && packages.front().getSymName() != name)
    return createStringError("no program is named '" + name +
                             "'; the module has " +
                             packages.front().getSymName());
  return packages.front();
}

Expected<Signature> fi::getSignature(ModuleOp module, StringRef name) {
  if (!module.getOps<ProgramOp>().empty()) {
    Expected<ProgramOp> program = findProgram(module, name);
    if (!program)
      return program.takeError();
    return getSignature(*program);
  }
  Expected<tile::PackageOp> package = findPackage(module, name);
  if (!package)
    return package.takeError();
  std::string manifest;
  llvm::raw_string_ostream os(manifest);
  printManifest(*package, os);
  return parseSignature(manifest);
}

//===----------------------------------------------------------------------===//
// From a program
//===----------------------------------------------------------------------===//

namespace {

class SignatureBuilder {
public:
  explicit SignatureBuilder(ProgramOp program) : program(program) {}
  Expected<Signature> build();

private:
  /// The argument that a value is, or -1.
  static int argumentOf(Value value) {
    auto argument = dyn_cast_or_null<BlockArgument>(value);
    return argument && isa<ProgramOp>(argument.getOwner()->getParentOp())
               ? static_cast<int>(argument.getArgNumber())
               : -1;
  }
  int resultOf(Value value) {
    Operation *terminator = program.getBody().front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands())
      if (operand.get() == value)
        return operand.getOperandNumber();
    return -1;
  }
  /// The argument that tells how many rows a value has: a query, the scalar or
  /// the tensor that an empty state's rows come from. `number` receives rows
  /// that are constant.
  static int rowsOf(Value value, int64_t &number);
  static void collectSinks(Value state, llvm::SmallVectorImpl<int> &sinks);
  ViewInfo viewOf(Value value);

  ProgramOp program;
};

int SignatureBuilder::rowsOf(Value value, int64_t &number) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      value = attention.getQuery();
    else if (auto merge = dyn_cast<MergeOp>(op); merge && op->getNumOperands())
      value = op->getOperand(0);
    else if (auto companion = dyn_cast<CompanionOpInterface>(op))
      value = companion.getRowOperands().front();
    else if (isa<FinalizeOp, MergeSegmentsOp, EmptyOp, RMSNormOp, LayerNormOp,
                 tensor::DimOp, memref::DimOp>(op) &&
             op->getNumOperands())
      value = op->getOperand(0);
    else {
      APInt constant;
      if (matchPattern(value, m_ConstantInt(&constant)))
        number = constant.getSExtValue();
      return -1;
    }
  }
  return argumentOf(value);
}

static double largestAddendOf(mlir::Region &region) {
  double largest = 0;
  region.walk([&](Operation *op) {
    if (!isa<mlir::arith::AddFOp, mlir::arith::SubFOp>(op))
      return;
    for (Value operand : op->getOperands()) {
      llvm::APFloat number(0.0);
      if (mlir::matchPattern(operand, mlir::m_ConstantFloat(&number)) &&
          number.isFinite())
        largest = std::max(largest, std::fabs(number.convertToDouble()));
    }
  });
  return largest;
}

/// Where an operand of a view is kept, by the name that it has there and in
/// manifests.
static int *fieldOf(ViewInfo &view, StringRef name) {
  return llvm::StringSwitch<int *>(name)
      .Case("keys", &view.keys)
      .Case("values", &view.values)
      .Case("tail", &view.tail)
      .Case("indptr", &view.indptr)
      .Case("pages", &view.pages)
      .Case("value_pages", &view.valuePages)
      .Case("last", &view.last)
      .Case("lengths", &view.lengths)
      .Case("row_indptr", &view.rowIndptr)
      .Case("columns", &view.columns)
      .Case("origin", &view.origin)
      .Default(nullptr);
}

ViewInfo SignatureBuilder::viewOf(Value value) {
  ViewInfo view;
  auto maker = value.getDefiningOp<KVViewOpInterface>();
  if (!maker)
    return view;
  for (auto [name, operand] : maker.getNamedOperands())
    if (int *field = fieldOf(view, name))
      *field = argumentOf(operand);
  auto type = cast<KVViewTypeInterface>(value.getType());
  int64_t page = type.getPageSize();
  view.isPaged = page != 0;
  view.isDense = view.isPaged && view.indptr < 0;
  view.page = page > 0 ? page : -1;
  view.heads = type.getKVHeads();
  std::optional<unsigned> heads = type.getHeadDimension();
  view.hasHeads = heads.has_value();
  view.isHND = heads && *heads < type.getKeyDimension();
  view.isFused = type.getPoolCount() == 1;
  if (auto bsr = dyn_cast<BsrKVType>(value.getType())) {
    view.blockRows = bsr.getRows();
    view.blockColumns = bsr.getColumns();
  }
  for (auto [scale, operand] :
       llvm::zip_equal(getScales(type), maker.getViewScales())) {
    ViewInfo::Scales &info = view.scales[scale.ofValues];
    info.isScaled = true;
    if (scale.per) {
      info.argument = argumentOf(operand);
      info.isPerPage = scale.per == Granularity::Page;
    } else {
      info.blocks = argumentOf(operand);
      info.block = getBlockScaledType(type, scale.ofValues).getBlock();
    }
  }
  if (type.sharesValues())
    view.scales[true] = view.scales[false];
  return view;
}

/// The sinks of what finalises a state, alone or merged with others.
void SignatureBuilder::collectSinks(Value state,
                                    llvm::SmallVectorImpl<int> &sinks) {
  for (Operation *user : state.getUsers()) {
    if (auto finalize = dyn_cast<FinalizeOp>(user)) {
      if (finalize.getSink())
        sinks.push_back(argumentOf(finalize.getSink()));
    } else if (isa<MergeOp, MergeSegmentsOp>(user)) {
      collectSinks(user->getResult(0), sinks);
    }
  }
}

Expected<Signature> SignatureBuilder::build() {
  Signature signature;
  signature.program = program.getSymName().str();
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
    ArgumentInfo info;
    info.name = program.getArgumentName(i);
    info.isPlan = program.isPlanArgument(i);
    info.kind = isa<MemRefType>(type)         ? ArgumentInfo::Kind::Pool
                : isa<RankedTensorType>(type) ? ArgumentInfo::Kind::Tensor
                                              : ArgumentInfo::Kind::Scalar;
    std::optional<DType> dtype = getDType(getElementTypeOrSelf(type));
    if (!dtype)
      return createStringError("argument '" + StringRef(info.name) +
                               "' has an element type that a host tensor "
                               "cannot hold");
    info.type = *dtype;
    if (auto shaped = dyn_cast<ShapedType>(type))
      for (int64_t size : shaped.getShape())
        info.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
    signature.arguments.push_back(std::move(info));
  }
  Operation *terminator = program.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    ResultInfo info;
    info.name = "result" + std::to_string(i);
    auto type = cast<ShapedType>(value.getType());
    std::optional<DType> dtype = getDType(type.getElementType());
    if (!dtype)
      return createStringError("result " + Twine(i) +
                               " has an element type that a host tensor cannot "
                               "hold");
    info.type = *dtype;
    for (int64_t size : type.getShape())
      info.shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
    int64_t rows = -1;
    info.rowsOf = rowsOf(value, rows);
    if (!info.shape.empty() && info.shape[0] < 0)
      info.shape[0] = rows;
    signature.results.push_back(std::move(info));
  }
  for (Operation &op : program.getBody().front()) {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      AttentionInfo info;
      info.query = argumentOf(attention.getQuery());
      info.queryTail = argumentOf(attention.getQueryTail());
      if (info.query < 0) {
        auto query = cast<ShapedType>(attention.getQuery().getType());
        int64_t rows = -1;
        info.queryRows = rowsOf(attention.getQuery(), rows);
        info.queryHeads = query.getDimSize(1);
        info.queryType = getDType(query.getElementType());
      }
      info.rows = argumentOf(attention.getRows());
      info.positions = argumentOf(attention.getPositions());
      info.scale = argumentOf(attention.getScaleValue());
      info.dim = attention.getViewType().getKeyDim();
      info.view = viewOf(attention.getView());
      if (FloatAttr scale = attention.getScaleAttr())
        info.scaleNumber = scale.getValueAsDouble();
      info.hasTransforms = attention.getPairing().has_value();
      info.hasPlainScores = !attention.getNormaliser().isAdditive() &&
                            !attention.getScoreAttr() &&
                            attention.getScoreRegion().empty() &&
                            attention.getQueryRegion().empty() &&
                            attention.getKeyRegion().empty();
      if (auto cap =
              dyn_cast_or_null<SoftcapAttr>(attention.getScoreAttrAttr()))
        info.softcap = cap.getCap().getValueAsDouble();
      info.largestAddend = largestAddendOf(attention.getScoreRegion());
      for (Value capture : attention.getCaptures())
        info.captures.push_back(argumentOf(capture));
      if (attention.getSink())
        info.sinks.push_back(argumentOf(attention.getSink()));
      if (attention.returnsState() && attention.getNumResults() > 0)
        collectSinks(attention.getResult(0), info.sinks);
      info.hasPlainScores &= info.sinks.empty();
      info.isAdditive = attention.getNormaliser().isAdditive();
      if (auto softmax = dyn_cast<SoftmaxAttr>(attention.getNormaliser()))
        info.isBaseE = softmax.getBase() == LseBase::E;
      for (Value place : attention.getOuts())
        info.outs.push_back(argumentOf(place));
      if (attention.getNumResults() > 0)
        info.output = resultOf(attention.getResult(0));
      if (attention.getNumResults() > 1)
        info.lse = resultOf(attention.getResult(1));
      // A state's output appears where it is finalised.
      if (attention.returnsState() && attention.getNumResults() > 0 &&
          attention.getResult(0).hasOneUse())
        if (auto finalize =
                dyn_cast<FinalizeOp>(*attention.getResult(0).user_begin())) {
          for (Value place : finalize.getOuts())
            info.outs.push_back(argumentOf(place));
          if (finalize.getOutput())
            info.output = resultOf(finalize.getOutput());
          if (finalize.getStatistic())
            info.lse = resultOf(finalize.getStatistic());
        }
      signature.attentions.push_back(std::move(info));
    } else if (auto norm = NormParts::of(&op)) {
      NormInfo &info = signature.norms.emplace_back();
      info.input = argumentOf(norm->input);
      info.addend = argumentOf(norm->addend);
      info.weight = argumentOf(norm->weight);
      info.bias = argumentOf(norm->bias);
      info.scales = argumentOf(norm->scales);
      for (Value place : norm->outs)
        info.outs.push_back(argumentOf(place));
      if (op.getNumResults() > 0)
        info.result = resultOf(op.getResult(0));
      if (norm->addend && op.getNumResults() > 1)
        info.sum = resultOf(op.getResult(1));
      info.dim = norm->getDim();
      info.epsilon = norm->epsilon;
      info.hasAddend = norm->addend != Value();
      info.plusOne = norm->plusOne;
      info.centred = norm->centred;
      info.isCoded = norm->scheme != ScaledType();
    } else if (auto companion = dyn_cast<CompanionOpInterface>(op)) {
      CompanionInfo info;
      // A number of rows has none.
      for (Value operand : companion.getRowOperands())
        info.rows.push_back(
            isa<ShapedType>(operand.getType()) ? argumentOf(operand) : -1);
      for (OpOperand &place : companion.getDestinations())
        info.outs.push_back(argumentOf(place.get()));
      signature.companions.push_back(std::move(info));
    } else if (auto append = dyn_cast<AppendOp>(op)) {
      signature.appends.push_back(
          {argumentOf(append.getKeys()), argumentOf(append.getValues()),
           argumentOf(append.getRows()), viewOf(append.getView())});
    }
  }
  return signature;
}

} // namespace

Expected<Signature> fi::getSignature(ProgramOp program) {
  return SignatureBuilder(program).build();
}

//===----------------------------------------------------------------------===//
// From a manifest
//===----------------------------------------------------------------------===//

static std::optional<DType> parseManifestDType(StringRef name) {
  return name == "index" ? DType::I64 : parseDType(name);
}

/// The shape of an entry; null is a size known at run time.
static llvm::SmallVector<int64_t, 4> shapeOf(const llvm::json::Object &entry) {
  llvm::SmallVector<int64_t, 4> shape;
  if (const llvm::json::Array *sizes = entry.getArray("shape"))
    for (const llvm::json::Value &size : *sizes)
      shape.push_back(size.getAsInteger().value_or(-1));
  return shape;
}

Expected<Signature> fi::parseSignature(StringRef manifest) {
  auto root = parseJson(manifest, "manifest.json");
  if (!root)
    return root.takeError();
  auto malformed = [](const Twine &what) {
    return createStringError("'manifest.json': " + what);
  };
  const llvm::json::Object *object = root->getAsObject();
  if (!object)
    return malformed("expected an object");
  Signature signature;
  signature.program = object->getString("program").value_or("").str();
  const llvm::json::Array *arguments = object->getArray("arguments"),
                          *results = object->getArray("results"),
                          *stages = object->getArray("stages");
  if (!arguments || !results || !stages)
    return malformed("expected the arrays 'arguments', 'results', 'stages'");
  for (const llvm::json::Value &value : *arguments) {
    const llvm::json::Object *entry = value.getAsObject();
    std::optional<DType> type =
        entry ? parseManifestDType(entry->getString("dtype").value_or(""))
              : std::nullopt;
    if (!type)
      return malformed("expected arguments with a dtype");
    StringRef kind = entry->getString("kind").value_or("tensor");
    signature.arguments.push_back({entry->getString("name").value_or("").str(),
                                   entry->getString("group") == "plan",
                                   kind == "pool" ? ArgumentInfo::Kind::Pool
                                   : kind == "scalar"
                                       ? ArgumentInfo::Kind::Scalar
                                       : ArgumentInfo::Kind::Tensor,
                                   *type, shapeOf(*entry)});
  }
  auto argument = [&](const llvm::json::Object &entry, StringRef key) {
    return signature.find(entry.getString(key).value_or(""));
  };
  auto resultNamed = [&](std::optional<StringRef> name) {
    for (size_t i = 0; name && i < signature.results.size(); ++i)
      if (signature.results[i].name == *name)
        return static_cast<int>(i);
    return -1;
  };
  for (const llvm::json::Value &value : *results) {
    const llvm::json::Object *entry = value.getAsObject();
    std::optional<DType> type =
        entry ? parseManifestDType(entry->getString("dtype").value_or(""))
              : std::nullopt;
    if (!type)
      return malformed("expected results with a dtype");
    ResultInfo info = {entry->getString("name").value_or("").str(), *type,
                       shapeOf(*entry), argument(*entry, "rows_of")};
    if (std::optional<int64_t> rows = entry->getInteger("rows_of");
        rows && !info.shape.empty())
      info.shape[0] = *rows;
    signature.results.push_back(std::move(info));
  }
  for (const llvm::json::Value &value : *stages) {
    const llvm::json::Object *stage = value.getAsObject();
    const llvm::json::Object *entry =
        stage ? stage->getObject("view") : nullptr;
    if (!entry)
      continue;
    ViewInfo view;
    view.isPaged = entry->getString("kind") == "paged";
    view.isHND = entry->getString("order") == "HND";
    view.page = entry->getInteger("page").value_or(-1);
    view.heads = entry->getInteger("heads").value_or(0);
    for (auto &[name, named] : *entry)
      if (int *field = fieldOf(view, name))
        *field = argument(*entry, name);
    view.hasHeads = entry->getString("order") != "ND";
    if (const llvm::json::Object *blocks = entry->getObject("blocks")) {
      view.blockRows = blocks->getInteger("rows").value_or(1);
      view.blockColumns = blocks->getInteger("columns").value_or(1);
    }
    // A fused pool has a dimension for keys and values.
    view.isFused = view.isPaged && view.keys >= 0 &&
                   signature.arguments[view.keys].shape.size() == 5;
    if (view.values < 0)
      view.values = view.keys;
    view.isDense = view.isPaged && view.indptr < 0;
    StringRef op = stage->getString("op").value_or("");
    if (op == "attention") {
      AttentionInfo info;
      info.query = argument(*stage, "query");
      info.queryTail = argument(*stage, "query_tail");
      info.rows = argument(*stage, "rows");
      info.positions = argument(*stage, "positions");
      info.view = view;
      if (const llvm::json::Object *dims = stage->getObject("dims"))
        info.dim = dims->getInteger("qk").value_or(0);
      if (const llvm::json::Object *outputs = stage->getObject("outputs")) {
        info.output = resultNamed(outputs->getString("o"));
        info.lse = resultNamed(outputs->getString("lse"));
      }
      signature.attentions.push_back(std::move(info));
    } else if (op == "append") {
      AppendInfo info;
      info.rows = argument(*stage, "rows");
      info.view = view;
      // The manifest lists an append's buffers in the kernel's order: the new
      // keys and values first.
      if (const llvm::json::Array *buffers = stage->getArray("buffers");
          buffers && buffers->size() >= 2) {
        info.keys = signature.find((*buffers)[0].getAsString().value_or(""));
        info.values = signature.find((*buffers)[1].getAsString().value_or(""));
      }
      signature.appends.push_back(std::move(info));
    }
  }
  return signature;
}
