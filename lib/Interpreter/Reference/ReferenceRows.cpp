//===- ReferenceRows.cpp - ops on rows in the reference -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operands and places of what stands beside attention, and norms.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"
#include "RowElements.h"

using namespace mlir;
using namespace fi;
using namespace fi::reference;

/// A row of numbers that are off by `off`, by a scale of its own.
static void storeCodes(Type storage, ArrayRef<double> numbers,
                       ArrayRef<double> off, ArrayRef<int64_t> row,
                       const HostTensor &codes, const HostTensor &scales,
                       const HostTensor &codesOff,
                       const HostTensor &scalesOff) {
  double most = 0, scaleOff = 0, largest = getLargestCode(storage);
  for (auto [y, error] : llvm::zip_equal(numbers, off)) {
    most = std::max(most, std::fabs(y));
    scaleOff = std::max(scaleOff, error / largest);
  }
  double scale = std::max(most / largest, 0x1p-126);
  scales.setFloat(row, scale);
  bool isKnown = codesOff.getRank() > 0;
  if (isKnown)
    scalesOff.setFloat(row, elementTolerance(scale, scaleOff, DType::F32));
  for (auto [d, y] : llvm::enumerate(numbers)) {
    int64_t index[] = {row[0], row[1], static_cast<int64_t>(d)};
    writeSaturated(codes.at(index), codes.getType(),
                   static_cast<float>(y / scale));
    if (isKnown)
      codesOff.setFloat(
          index,
          codeTolerance(y / scale,
                        (off[d] + std::fabs(y / scale) * scaleOff) / scale +
                            std::fabs(y / scale) * kQuotientError,
                        codes.getType()));
  }
}

bool Interpreter::executeNorm(const NormParts &norm) {
  Operation *op = norm.op;
  HostTensor input = *tensorOf(norm.input);
  std::optional<HostTensor> addend = tensorOf(norm.addend);
  std::optional<HostTensor> weight = tensorOf(norm.weight);
  std::optional<HostTensor> bias = tensorOf(norm.bias);
  int64_t rows = input.getSize(0), dim = input.getSize(2);
  if (addend && addend->getSize(0) != rows)
    return BatchError(op, text)("expected operand 'addend' to have " +
                                Twine(rows) + " rows like 'input', but got " +
                                Twine(addend->getSize(0)) + " [BAT10]");
  std::vector<HostTensor> results;
  for (auto [index, place] : llvm::enumerate(norm.getPlaces())) {
    auto type = cast<ShapedType>(place.getType());
    bool isResult = op->getNumResults() > 0;
    if (isResult)
      tensors[place] = HostTensor(*getDType(type.getElementType()),
                                  input.getShape().take_front(type.getRank()));
    HostTensor target = tensors.find(place)->second;
    if (target.getSize(0) != rows ||
        (!type.isDynamicDim(0) && type.getDimSize(0) != rows))
      return BatchError(op, text)(
          Twine("expected ") + (isResult ? "result " : "destination ") +
          Twine(index) + " to have " + Twine(rows) +
          " rows like 'input', but got " +
          Twine(type.isDynamicDim(0) ? target.getSize(0) : type.getDimSize(0)) +
          " [BAT10]");
    results.push_back(target);
  }
  auto scaleOf = [&](int64_t head) -> double {
    if (!norm.scheme)
      return 1;
    if (norm.scheme.getGranularity() == Granularity::Head)
      return tensorOf(norm.scales)->getFloat({head});
    return scalars.get(norm.scales).number;
  };
  // Codes by scales that are computed are off as these are.
  HostTensor codesOff, scalesOff;
  if (norm.makesScales() && options.tolerances) {
    codesOff = HostTensor(DType::F64, input.getShape());
    scalesOff = HostTensor(DType::F64, input.getShape().drop_back());
    tolerances[norm.getPlaces().front()] = codesOff;
    tolerances[norm.getPlaces().back()] = scalesOff;
  }
  // What other ops of the program take is off as backends compute it.
  HostTensor rowsOff;
  Value first = norm.getPlaces().front();
  if (!norm.scheme && options.tolerances && op->getNumResults() > 0 &&
      llvm::any_of(first.getUsers(),
                   [](Operation *user) { return !isa<ReturnOp>(user); })) {
    rowsOff = HostTensor(DType::F64, input.getShape());
    tolerances[first] = rowsOff;
  }
  std::vector<double> x(dim), made(dim), off(dim);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < input.getSize(1); ++head) {
      double mean = 0, squares = 0, magnitude = 0;
      for (int64_t d = 0; d < dim; ++d) {
        x[d] = input.getFloat({row, head, d});
        magnitude = std::max(
            magnitude,
            std::fabs(x[d]) +
                (addend ? std::fabs(addend->getFloat({row, head, d})) : 0));
        if (addend) {
          x[d] += addend->getFloat({row, head, d});
          results[1].setFloat({row, head, d}, x[d]);
        }
        mean += x[d] / static_cast<double>(dim);
      }
      for (double &element : x) {
        if (norm.centred)
          element -= mean;
        squares += element * element;
      }
      double scale =
          1 / std::sqrt(squares / static_cast<double>(dim) + norm.epsilon);
      for (int64_t d = 0; d < dim; ++d) {
        double factor = weight ? weight->getFloat({d}) : 1;
        if (norm.plusOne)
          factor += 1;
        double offset = bias ? bias->getFloat({d}) : 0;
        double y = x[d] * scale * factor + offset;
        auto offBy = [&](DType type) {
          return norm.centred ? layerNormTolerance(y, factor, offset,
                                                   magnitude * scale, dim, type)
                              : normTolerance(y, dim, type);
        };
        if (norm.makesScales()) {
          made[d] = y;
          off[d] = offBy(DType::F32);
          continue;
        }
        if (rowsOff.getRank() > 0)
          rowsOff.setFloat({row, head, d}, offBy(results[0].getType()));
        if (norm.scheme)
          writeSaturated(results[0].at({row, head, d}), results[0].getType(),
                         static_cast<float>(y / scaleOf(head)));
        else
          results[0].setFloat({row, head, d}, y);
      }
      if (norm.makesScales())
        storeCodes(norm.scheme.getStorage(), made, off, {row, head}, results[0],
                   results.back(), codesOff, scalesOff);
    }
  return true;
}

std::vector<Capture> Interpreter::capturesOf(ValueRange values) {
  std::vector<Capture> captures;
  for (Value value : values)
    if (isa<ShapedType>(value.getType()))
      captures.push_back({tensorOf(value), Scalar()});
    else
      captures.push_back({std::nullopt, scalars.get(value)});
  return captures;
}

Rows Interpreter::rowsOf(Value value) {
  Rows rows = {*tensorOf(value), std::nullopt};
  if (auto it = tolerances.find(value); it != tolerances.end())
    rows.tolerance = it->second;
  return rows;
}

bool Interpreter::makeRows(CompanionOpInterface op, unsigned index,
                           const HostTensor &rows, Rows &result) {
  Value place = op.getPlaces()[index];
  auto type = cast<ShapedType>(place.getType());
  llvm::SmallVector<int64_t, 4> shape(type.getShape());
  bool isResult = op->getNumResults() > 0;
  if (!isResult)
    shape[0] = tensorOf(place)->getSize(0);
  else if (type.isDynamicDim(0))
    shape[0] = rows.getSize(0);
  if (shape[0] != rows.getSize(0))
    return BatchError(op, text)(
        Twine("expected ") + (isResult ? "result " : "destination ") +
        Twine(index) + " to have " + Twine(rows.getSize(0)) +
        " rows like 'input', but got " + Twine(shape[0]) + " [BAT10]");
  result.values = isResult ? HostTensor(*getDType(type.getElementType()), shape)
                           : *tensorOf(place);
  if (options.tolerances)
    result.tolerance = HostTensor(DType::F64, shape);
  return true;
}

bool Interpreter::setRows(CompanionOpInterface op, unsigned index,
                          const Rows &rows) {
  Value place = op.getPlaces()[index];
  tensors[place] = rows.values;
  if (rows.tolerance)
    tolerances[place] = *rows.tolerance;
  return true;
}

bool Interpreter::checkRows(Operation *op, StringRef name,
                            const HostTensor &operand,
                            const HostTensor &input) {
  if (operand.getSize(0) == input.getSize(0))
    return true;
  return BatchError(op, text)(
      "expected operand '" + name + "' to have " + Twine(input.getSize(0)) +
      " rows like 'input', but got " + Twine(operand.getSize(0)) + " [BAT10]");
}

bool Interpreter::execute(GatedOp op) {
  Rows input = rowsOf(op.getInput()), result;
  if (!makeRows(op, 0, input.values, result))
    return false;
  evaluateGated(op, input, result);
  return setRows(op, 0, result);
}

bool Interpreter::execute(RopeOp op) {
  Rows input = rowsOf(op.getInput()), result;
  return makeRows(op, 0, input.values, result) &&
         evaluateRope(op, input, *tensorOf(op.getPositions()),
                      capturesOf(op.getCaptures()), result, text) &&
         setRows(op, 0, result);
}

bool Interpreter::execute(QuantiseOp op) {
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  Rows input = rowsOf(op.getInput()), scales, codes, made;
  double number = 1;
  bool makes = scheme.blocks || !op.getScales();
  if (Value operand = op.getScales()) {
    if (isa<ShapedType>(operand.getType()))
      scales = rowsOf(operand);
    else
      number = scalars.get(operand).number;
    if (scheme.areOfRows() && !scheme.blocks &&
        !checkRows(op, "scales", scales.values, input.values))
      return false;
  }
  // What all rows share is one for all, or for each head.
  HostTensor shared(
      DType::F32,
      {scheme.granularity == Granularity::Head ? input.values.getSize(1) : 1});
  if (!makeRows(op, 0, input.values, codes) ||
      (makes &&
       !makeRows(op, 1, op.makesSharedScales() ? shared : input.values, made)))
    return false;
  evaluateQuantise(op, input, scales.values.getRank() > 0 ? &scales : nullptr,
                   number, codes, makes ? &made : nullptr);
  return setRows(op, 0, codes) && (!makes || setRows(op, 1, made));
}

bool Interpreter::execute(DequantiseOp op) {
  RowScheme scheme = RowScheme::of(op.getScheme(), op.getGroup());
  Rows codes = rowsOf(op.getInput()), result;
  std::vector<Rows> scales;
  double number = 1;
  for (Value operand : op.getScales())
    if (isa<ShapedType>(operand.getType()))
      scales.push_back(rowsOf(operand));
    else
      number = scalars.get(operand).number;
  if (scheme.areOfRows() &&
      !checkRows(op, "scales", scales.front().values, codes.values))
    return false;
  if (!makeRows(op, 0, codes.values, result))
    return false;
  evaluateDequantise(op, codes, scales, number, result);
  return setRows(op, 0, result);
}

bool Interpreter::execute(PackBitsOp op) {
  HostTensor input = *tensorOf(op.getInput());
  Rows result;
  if (!makeRows(op, 0, input, result))
    return false;
  evaluatePackBits(op, input, result.values);
  return setRows(op, 0, result);
}

bool Interpreter::execute(SegmentPackBitsOp op) {
  int64_t bytes = op.getBytes() ? scalars.get(op.getBytes()).integer
                                : tensorOf(op.getOuts().front())->getSize(0);
  Rows result;
  if (!makeRows(op, 0, HostTensor(DType::I8, {bytes}), result))
    return false;
  evaluateSegmentPackBits(op, *tensorOf(op.getInput()), *tensorOf(op.getFrom()),
                          *tensorOf(op.getTo()), result.values);
  return setRows(op, 0, result);
}
