//===- Reference.cpp - the reference interpreter --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a program's body op by op and keeps what each value stands for: memory,
// a scalar, a view, a state or a cut.
//
//===----------------------------------------------------------------------===//

#include "fi/Interpreter/Reference.h"
#include "Interpreter.h"
#include "fi/Interpreter/Tolerance.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace mlir;
using namespace fi;
using namespace fi::reference;

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string shapeOf(const HostTensor &tensor) {
  std::string text = "[";
  for (auto [i, size] : llvm::enumerate(tensor.getShape()))
    text += (i ? ", " : "") + std::to_string(size);
  return text + "] of " + getName(tensor.getType()).str();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

bool Interpreter::bind(ArrayRef<HostValue> arguments) {
  BatchError error(program, text);
  Block &body = program.getBody().front();
  if (arguments.size() != body.getNumArguments())
    return error("expected " + Twine(body.getNumArguments()) +
                 " arguments, but got " + Twine(arguments.size()) + " [BAT1]");
  for (auto [index, argument, value] :
       llvm::enumerate(body.getArguments(), arguments)) {
    std::string name = program.getArgumentName(index);
    Type type = argument.getType();
    auto shaped = dyn_cast<ShapedType>(type);
    auto refuse = [&](const Twine &got) {
      return error("expected argument '" + name + "' to be " + textOf(type) +
                   ", but got " + got + " [BAT1]");
    };
    if (!shaped) {
      bool isNumber = isa<FloatType>(type);
      if (value.getKind() == HostValue::Kind::Tensor)
        return refuse("a tensor of " + shapeOf(value.getTensor()));
      if (isNumber != (value.getKind() == HostValue::Kind::Float))
        return refuse(isNumber ? "an integer" : "a float");
      if (isNumber) {
        scalars.set(argument, Scalar::of(roundTo(value.getNumber(), type)));
      } else if (int64_t integer = value.getInteger();
                 integerWidth(type) > 64 ||
                 (wrap(integer, integerWidth(type)) != integer &&
                  !(type.isInteger(1) && integer == 1))) {
        return refuse(Twine(integer));
      } else {
        scalars.set(argument, Scalar::of(wrap(integer, integerWidth(type))));
      }
      continue;
    }
    if (value.getKind() != HostValue::Kind::Tensor)
      return refuse("a scalar");
    const HostTensor &tensor = value.getTensor();
    bool fits = getDType(shaped.getElementType()) == tensor.getType() &&
                shaped.hasRank() && shaped.getRank() == tensor.getRank();
    for (int64_t dim = 0; fits && dim < shaped.getRank(); ++dim)
      fits = tensor.getSize(dim) >= 0 &&
             (shaped.isDynamicDim(dim) ||
              shaped.getDimSize(dim) == tensor.getSize(dim));
    if (!fits)
      return refuse("a tensor of " + shapeOf(tensor));
    if (!tensor.getData() && tensor.getNumElements() != 0)
      return refuse("a tensor without memory");
    tensors[argument] = tensor;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

bool Interpreter::makeNormaliser(Operation *op, NormaliserAttrInterface kind,
                                 std::unique_ptr<Normaliser> &normaliser) {
  normaliser = reference::makeNormaliser(kind);
  if (normaliser)
    return true;
  std::string name;
  llvm::raw_string_ostream(name) << kind;
  return BatchError(op, text)("expected a normaliser that the reference "
                              "interpreter knows, but got " +
                              name + " [NRM2]");
}

/// One row and head of a state.
static Partial partOf(const StateValue &state, int64_t row, int64_t head) {
  Partial part;
  int64_t dim = state.output.getSize(2);
  for (int64_t d = 0; d < dim; ++d)
    part.output.push_back(state.output.getFloat({row, head, d}));
  part.statistic = state.statistic.getFloat({row, head});
  return part;
}

static void store(const StateValue &state, int64_t row, int64_t head,
                  const Partial &part) {
  for (auto [d, value] : llvm::enumerate(part.output))
    state.output.setFloat({row, head, static_cast<int64_t>(d)}, value);
  state.statistic.setFloat({row, head}, part.statistic);
}

static StateValue makeState(int64_t rows, int64_t heads, int64_t dim) {
  return {HostTensor(DType::F64, {rows, heads, dim}),
          HostTensor(DType::F64, {rows, heads})};
}

bool Interpreter::execute(EmptyOp op) {
  StateType type = op.getType();
  int64_t rows = type.getRows();
  if (op.getRows())
    rows = scalars.get(op.getRows()).integer;
  if (rows < 0)
    return BatchError(op, text)("expected operand 'rows' of at least 0, but "
                                "got " +
                                Twine(rows) + " [BAT10]");
  StateValue state = makeState(rows, type.getHeads(), type.getDim());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < type.getHeads(); ++head)
      state.statistic.setFloat({row, head},
                               type.getNormaliser().getEmptyStatistic());
  states[op.getResult()] = {state};
  return true;
}

bool Interpreter::mergeStates(Operation *op, NormaliserAttrInterface kind,
                              ArrayRef<StateValue> parts, StateValue &result) {
  std::unique_ptr<Normaliser> normaliser;
  if (!makeNormaliser(op, kind, normaliser))
    return false;
  ArrayRef<int64_t> shape = parts[0].output.getShape();
  for (auto [index, part] : llvm::enumerate(parts))
    if (part.output.getShape() != shape)
      return BatchError(op, text)("expected state " + Twine(index) +
                                  " to have " + Twine(shape[0]) +
                                  " rows like state 0, but got " +
                                  Twine(part.output.getSize(0)) + " [BAT10]");
  result = makeState(shape[0], shape[1], shape[2]);
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t head = 0; head < shape[1]; ++head) {
      std::vector<Partial> pieces;
      for (const StateValue &part : parts)
        pieces.push_back(partOf(part, row, head));
      store(result, row, head, merge(*normaliser, pieces, shape[2]));
    }
  return true;
}

bool Interpreter::execute(MergeOp op) {
  std::vector<StateValue> parts;
  for (Value state : op.getStates())
    parts.push_back(states[state][0]);
  StateValue result;
  if (!mergeStates(op, op.getType().getNormaliser(), parts, result))
    return false;
  states[op.getResult()] = {result};
  return true;
}

bool Interpreter::execute(MergeSegmentsOp op) {
  StateValue result;
  std::vector<StateValue> parts = states[op.getState()];
  if (!mergeStates(op, op.getType().getNormaliser(), parts, result))
    return false;
  states[op.getResult()] = {result};
  return true;
}

/// Rounds a state to results: to values, or where there are none to places.
/// Places beside values are tensors whose memory the values may take; here they
/// do not.
bool Interpreter::storeResults(Operation *op, const StateValue &state,
                               ValueRange values, ValueRange places) {
  BatchError error(op, text);
  ArrayRef<int64_t> shape = state.output.getShape();
  bool inPlace = values.empty();
  if (inPlace)
    values = places;
  for (unsigned index = 0; index < values.size(); ++index) {
    Value value = values[index];
    auto type = cast<ShapedType>(value.getType());
    const HostTensor &source = index == 0 ? state.output : state.statistic;
    HostTensor target;
    if (inPlace) {
      target = tensors.find(value)->second;
    } else {
      if (!type.isDynamicDim(0) && type.getDimSize(0) != shape[0])
        return error("expected " + Twine(type.getDimSize(0)) +
                     " rows by the type of result " + Twine(index) +
                     ", but got " + Twine(shape[0]) + " [BAT10]");
      target = HostTensor(*getDType(type.getElementType()), source.getShape());
      tensors[value] = target;
    }
    if (target.getShape() != source.getShape())
      return error("expected destination " + Twine(index) + " to have " +
                   Twine(shape[0]) + " rows like the query, but got " +
                   Twine(target.getSize(0)) + " [BAT10]");
    auto copy = [&](int64_t row, int64_t head) {
      if (index == 1)
        return target.setFloat({row, head}, source.getFloat({row, head}));
      for (int64_t d = 0; d < shape[2]; ++d)
        target.setFloat({row, head, d}, source.getFloat({row, head, d}));
    };
    if (options.onlyRows) {
      if (!inPlace)
        fillMissing(target);
      for (auto [row, head] : *options.onlyRows)
        if (row >= 0 && row < shape[0] && head >= 0 && head < shape[1])
          copy(row, head);
      continue;
    }
    for (int64_t row = 0; row < shape[0]; ++row)
      for (int64_t head = 0; head < shape[1]; ++head)
        copy(row, head);
  }
  return true;
}

bool Interpreter::execute(FinalizeOp op) {
  StateValue state = states[op.getState()][0];
  if (op.getSink()) {
    std::unique_ptr<Normaliser> normaliser;
    if (!makeNormaliser(op, op.getState().getType().getNormaliser(),
                        normaliser))
      return false;
    HostTensor sink = *tensorOf(op.getSink());
    ArrayRef<int64_t> shape = state.output.getShape();
    if (sink.getSize(0) != shape[1])
      return BatchError(op, text)("expected operand 'sink' to have an entry "
                                  "for each of " +
                                  Twine(shape[1]) + " heads, but got " +
                                  Twine(sink.getSize(0)) + " [BAT10]");
    StateValue with = makeState(shape[0], shape[1], shape[2]);
    for (int64_t row = 0; row < shape[0]; ++row)
      for (int64_t head = 0; head < shape[1]; ++head) {
        Partial part = partOf(state, row, head);
        addSink(*normaliser, sink.getFloat({head}), part);
        store(with, row, head, part);
      }
    state = with;
  }
  return storeResults(op, state, op.getResults(), op.getOuts());
}

//===----------------------------------------------------------------------===//
// Attention, segments, append
//===----------------------------------------------------------------------===//

bool Interpreter::execute(AttentionOp op) {
  AttentionOperands in;
  in.query = *tensorOf(op.getQuery());
  in.queryTail = tensorOf(op.getQueryTail());
  in.rows = tensorOf(op.getRows());
  in.positions = tensorOf(op.getPositions());
  in.sink = tensorOf(op.getSink());
  in.view = &views.find(op.getView())->second;
  if (op.getSegments())
    in.segments = &segments.find(op.getSegments())->second;
  in.scale = op.getScaleValue() ? scalars.get(op.getScaleValue()).number
                                : op.getScaleAttr().getValueAsDouble();
  in.captures = capturesOf(op.getCaptures());
  std::vector<StateValue> result;
  HostTensor visible, transformed, sums;
  if (!evaluateAttention(op, in, options, result, visible, transformed, sums,
                         text))
    return false;
  if (options.weightedSums)
    options.weightedSums->push_back(sums);
  if (options.transformedScores)
    options.transformedScores->push_back(transformed);
  if (options.visibleKeys)
    options.visibleKeys->push_back(visible);
  if (options.queries) {
    ComputedQuery &query = options.queries->emplace_back();
    Value parts[] = {op.getQuery(), op.getQueryTail()};
    for (auto [i, value] : llvm::enumerate(parts)) {
      if (!value || isa<BlockArgument>(value))
        continue;
      Rows rows = rowsOf(value);
      query.values[i] = rows.values;
      if (rows.tolerance)
        query.errors[i] = *rows.tolerance;
    }
  }
  if (!op.returnsState())
    return storeResults(op, result[0], op.getResults(), op.getOuts());
  auto type = cast<StateType>(op.getResult(0).getType());
  int64_t rows = in.query.getSize(0);
  if (!ShapedType::isDynamic(type.getRows()) && type.getRows() != rows)
    return BatchError(op, text)("expected " + Twine(type.getRows()) +
                                " rows by the type of result 0, but got " +
                                Twine(rows) + " [BAT10]");
  states[op.getResult(0)] = std::move(result);
  return true;
}

bool Interpreter::execute(SegmentsOp op) {
  SegmentsValue value;
  // A balanced plan may cut anywhere, and so nowhere.
  int64_t step = op.getSplit().getKeys();
  for (int64_t length : views.find(op.getView())->second.lengths) {
    std::vector<int64_t> &cuts = value.cuts.emplace_back();
    for (int64_t cut = step; step > 0 && cut < length; cut += step)
      cuts.push_back(cut);
  }
  segments[op.getResult()] = std::move(value);
  return true;
}

bool Interpreter::execute(AppendOp op) {
  BatchError error(op, text);
  const ViewValue &view = views.find(op.getView())->second;
  HostTensor keys = *tensorOf(op.getKeys()), values = *tensorOf(op.getValues());
  std::vector<int64_t> indptr;
  if (keys.getSize(0) != values.getSize(0))
    return error("expected operand 'values' to have " + Twine(keys.getSize(0)) +
                 " tokens like operand 'keys', but got " +
                 Twine(values.getSize(0)) + " [BAT9]");
  auto type = cast<KVViewTypeInterface>(op.getView().getType());
  for (bool wantValues : {false, true}) {
    const HostTensor &from = wantValues ? values : keys;
    int64_t dim =
        type.getPartDim(wantValues ? type.getSecondPart() : KVPart::Keys);
    if (from.getSize(1) != type.getKVHeads() || from.getSize(2) != dim)
      return error(Twine("expected operand '") +
                   (wantValues ? "values" : "keys") + "' to have " +
                   Twine(type.getKVHeads()) + " heads of " + Twine(dim) +
                   " by the view's type, but got " + Twine(from.getSize(1)) +
                   " of " + Twine(from.getSize(2)) + " [BAT9]");
  }
  if (!readRows(error, tensorOf(op.getRows()), keys.getSize(0),
                view.getRequests(), indptr))
    return false;
  for (int64_t r = 0; r < view.getRequests(); ++r)
    if (indptr[r + 1] - indptr[r] > view.lengths[r])
      return error("expected at most " + Twine(view.lengths[r]) +
                   " new tokens, as many as the view has keys, but got " +
                   Twine(indptr[r + 1] - indptr[r]) + " for request " +
                   Twine(r) + " [APP3]");
  RegionFunction regions[2];
  for (bool ofValues : {false, true})
    if (Region *region = op.getTransform(ofValues))
      if (!regions[ofValues].prepare(region->front(), 6,
                                     capturesOf(op.getCaptures())))
        return error("failed in a region: " +
                     Twine(regions[ofValues].getError()) + " [BAT11]");
  for (int64_t r = 0; r < view.getRequests(); ++r) {
    int64_t count = indptr[r + 1] - indptr[r];
    for (int64_t i = 0; i < count; ++i)
      for (int64_t head = 0; head < keys.getSize(1); ++head)
        for (bool ofValues : {false, true}) {
          const HostTensor &from = ofValues ? values : keys;
          std::vector<double> row(from.getSize(2));
          for (size_t d = 0; d < row.size(); ++d)
            row[d] =
                from.getFloat({indptr[r] + i, head, static_cast<int64_t>(d)});
          if (!appendRow(op, view, ofValues, regions[ofValues], r, head,
                         view.lengths[r] - count + i, row))
            return false;
        }
  }
  return true;
}

bool Interpreter::appendRow(AppendOp op, const ViewValue &view, bool ofValues,
                            RegionFunction &region, int64_t request,
                            int64_t head, int64_t key,
                            std::vector<double> &row) {
  auto type = cast<KVViewTypeInterface>(op.getView().getType());
  KVPart part = ofValues ? type.getSecondPart() : KVPart::Keys;
  const HostTensor &to = view.poolOf(part);
  // By how much backends may be off, where a region computes.
  std::vector<double> errors(row.size());
  if (region) {
    std::vector<double> before = row;
    int64_t dims = op.getDims().value_or(row.size());
    int64_t position = view.origins[request] + key;
    if (!transformPairs(region, *op.getPairing(), dims, request, head, position,
                        row))
      return BatchError(op, text)(
          "failed in a region: " + Twine(region.getError()) + " [BAT11]");
    bool isComputed = computesFunctions(*op.getTransform(ofValues));
    for (int64_t pair = 0; pair < dims / 2; ++pair) {
      auto [first, second] = pairOf(*op.getPairing(), dims, pair);
      errors[first] = errors[second] =
          pairError(isComputed, position,
                    std::fabs(before[first]) + std::fabs(before[second]),
                    std::fabs(row[first]) + std::fabs(row[second]));
    }
  }
  if (part != KVPart::Tail &&
      (ofValues ? view.valueScales : view.keyScales).block) {
    view.quantiseRow(ofValues, request, head, key, row);
    return true;
  }
  double scale = view.scale(ofValues, request, head, key);
  bool isScaled = isQuantised(type, ofValues);
  llvm::SmallVector<int64_t, 5> index = view.indexOf(part, request, head, key);
  HostTensor *bound = region ? toleranceOf(op, part, to) : nullptr;
  for (size_t d = 0; d < row.size(); ++d) {
    index.back() = static_cast<int64_t>(d);
    if (isScaled)
      writeSaturated(to.at(index), to.getType(),
                     static_cast<float>(row[d] / scale));
    else
      to.setFloat(index, row[d]);
    if (bound)
      bound->setFloat(index,
                      errors[d] == 0
                          ? 0
                          : elementTolerance(to.getFloat(index),
                                             errors[d] / scale, to.getType()));
  }
  return true;
}

/// Bounds for what appends store in the pool of a part; 0 where nothing is
/// computed.
HostTensor *Interpreter::toleranceOf(AppendOp op, KVPart part,
                                     const HostTensor &pool) {
  if (!options.argumentTolerances)
    return nullptr;
  auto maker = op.getView().getDefiningOp<KVViewOpInterface>();
  auto type = cast<KVViewTypeInterface>(op.getView().getType());
  HostTensor &bound = tolerances[maker.getViewPools()[type.getPool(part)]];
  if (bound.getRank() == 0) {
    bound = HostTensor(DType::F64, pool.getShape());
    std::memset(bound.getData(), 0, bound.getNumElements() * sizeof(double));
  }
  return &bound;
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

/// Of the keys and of the values.
std::array<Scales, 2> Interpreter::scalesOf(KVViewTypeInterface view,
                                            ValueRange operands) {
  std::array<Scales, 2> scales;
  for (auto [scale, operand] : llvm::zip_equal(getScales(view), operands)) {
    Scales &made = scales[scale.ofValues];
    if (!scale.per) {
      made.block = getBlockScaledType(view, scale.ofValues).getBlock();
      made.blocks = *tensorOf(operand);
      continue;
    }
    made.granularity = *scale.per;
    if (isa<ShapedType>(operand.getType()))
      made.tensor = *tensorOf(operand);
    else
      made.number = scalars.get(operand).number;
  }
  if (view.sharesValues())
    scales[true] = scales[false];
  return scales;
}

bool Interpreter::executeDim(Operation *op, Value source, Value index) {
  int64_t dim = scalars.get(index).integer;
  HostTensor tensor = *tensorOf(source);
  if (dim < 0 || dim >= tensor.getRank())
    return BatchError(op, text)("expected a dimension below " +
                                Twine(tensor.getRank()) + ", but got " +
                                Twine(dim) + " [BAT11]");
  scalars.set(op->getResult(0), Scalar::of(tensor.getSize(dim)));
  return true;
}

bool Interpreter::execute(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AttentionOp, EmptyOp, MergeOp, MergeSegmentsOp, FinalizeOp,
            SegmentsOp, AppendOp, GatedOp, RopeOp, QuantiseOp, DequantiseOp,
            PackBitsOp, SegmentPackBitsOp>(
          [&](auto concrete) { return execute(concrete); })
      .Case<RMSNormOp, LayerNormOp>(
          [&](Operation *norm) { return executeNorm(*NormParts::of(norm)); })
      .Case([&](PagedViewOp view) {
        ViewValue value;
        if (!makePagedView(
                view, tensorsOf(view.getPools()), tensorsOf(view.getTables()),
                tensorOf(view.getOrigin()),
                scalesOf(view.getType(), view.getScales()), value, text))
          return false;
        views[view.getResult()] = std::move(value);
        return true;
      })
      .Case([&](LatentViewOp view) {
        ViewValue value;
        if (!makeLatentView(
                view, tensorsOf(view.getPools()), tensorsOf(view.getTables()),
                tensorOf(view.getOrigin()),
                scalesOf(view.getType(), view.getScales()), value, text))
          return false;
        views[view.getResult()] = std::move(value);
        return true;
      })
      .Case([&](BsrViewOp view) {
        ViewValue value;
        if (!makeBsrView(
                view, tensorsOf(view.getPools()), tensorOf(view.getIndptr()),
                tensorsOf(view.getBlocks()), tensorOf(view.getOrigin()),
                scalesOf(view.getType(), view.getScales()), value, text))
          return false;
        views[view.getResult()] = std::move(value);
        return true;
      })
      .Case([&](RaggedViewOp view) {
        ViewValue value;
        if (!makeRaggedView(
                view, tensorsOf(view.getPools()), tensorOf(view.getIndptr()),
                tensorOf(view.getOrigin()),
                scalesOf(view.getType(), view.getScales()), value, text))
          return false;
        views[view.getResult()] = std::move(value);
        return true;
      })
      .Case([&](fi::ReturnOp end) {
        results = tensorsOf(end.getOperands());
        if (options.tolerances)
          for (Value value : end.getOperands())
            options.tolerances->push_back(tolerances.lookup(value));
        return true;
      })
      .Case<tensor::DimOp, memref::DimOp>([&](auto dim) {
        return executeDim(op, dim.getSource(), dim.getIndex());
      })
      .Default([&](Operation *other) {
        scalars.clear();
        if (scalars.add(*other) && scalars.run())
          return true;
        text = scalars.getError() + " [PRG8]";
        return false;
      });
}

bool Interpreter::run() {
  // Operands are known: what makes a value of a kind is interpreted above, and
  // an op that is not known ends the walk.
  for (Operation &op : program.getBody().front())
    if (!execute(&op))
      return false;
  if (options.argumentTolerances)
    for (Value argument : program.getBody().getArguments())
      options.argumentTolerances->push_back(tolerances.lookup(argument));
  return true;
}

llvm::Expected<std::vector<HostTensor>>
fi::interpretProgram(ProgramOp program, ArrayRef<HostValue> arguments,
                     const ReferenceOptions &options) {
  if (options.visibleKeys)
    options.visibleKeys->clear();
  if (options.transformedScores)
    options.transformedScores->clear();
  if (options.weightedSums)
    options.weightedSums->clear();
  if (options.queries)
    options.queries->clear();
  if (options.tolerances)
    options.tolerances->clear();
  if (options.argumentTolerances)
    options.argumentTolerances->clear();
  Interpreter interpreter(program, options);
  if (!interpreter.bind(arguments) || !interpreter.run())
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   llvm::Twine("program @") +
                                       program.getSymName() + ": " +
                                       interpreter.text);
  return std::move(interpreter.results);
}
