//===- BatchTensors.cpp - tensors from a batch's description --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Batch.h"
#include "fi/Support/Npy.h"
#include "fi/Support/Random.h"
#include <cmath>
#include <limits>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Bytes that a tensor of a batch may have: 64 GiB, beyond which a size is a
/// mistake.
static constexpr int64_t kMaxBytes = int64_t(1) << 36;

static Error checkSize(StringRef argument, DType type,
                       llvm::ArrayRef<int64_t> shape) {
  int64_t left = kMaxBytes / getByteSize(type);
  for (int64_t size : shape) {
    if (size > left)
      return createStringError("argument '" + argument + "': shape " +
                               formatShape(shape) + " exceeds 64 GiB");
    left /= std::max<int64_t>(size, 1);
  }
  return Error::success();
}

static Error checkShape(StringRef argument, llvm::ArrayRef<int64_t> got,
                        llvm::ArrayRef<int64_t> wanted, StringRef origin) {
  bool fits = got.size() == wanted.size();
  for (size_t i = 0; fits && i < got.size(); ++i)
    fits = wanted[i] < 0 || wanted[i] == got[i];
  if (fits)
    return Error::success();
  return createStringError("argument '" + argument + "': expected shape " +
                           formatShape(wanted) + ", but got " +
                           formatShape(got) + " from " + origin);
}

static bool holds(DType type, int64_t value) {
  switch (type) {
  case DType::I32:
    return value == static_cast<int32_t>(value);
  case DType::I8:
    return value == static_cast<int8_t>(value);
  case DType::I1:
    return value == 0 || value == 1;
  default:
    return true;
  }
}

Expected<HostTensor> fi::convertTensor(const HostTensor &tensor,
                                       StringRef argument, DType type,
                                       llvm::ArrayRef<int64_t> shape,
                                       StringRef origin) {
  if (Error error = checkShape(argument, tensor.getShape(), shape, origin))
    return std::move(error);
  if (tensor.getType() == type)
    return tensor;
  if (isFloat(tensor.getType()) != isFloat(type))
    return createStringError("argument '" + argument + "': expected " +
                             getName(type) + ", but got " +
                             getName(tensor.getType()) + " from " + origin);
  HostTensor result(type, tensor.getShape());
  int64_t fromBytes = getByteSize(tensor.getType()),
          toBytes = getByteSize(type);
  auto *from = static_cast<const char *>(tensor.getData());
  auto *to = static_cast<char *>(result.getData());
  for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i) {
    if (isFloat(type)) {
      writeFloat(to + i * toBytes, type,
                 readFloat(from + i * fromBytes, tensor.getType()));
      continue;
    }
    int64_t value = readInteger(from + i * fromBytes, tensor.getType());
    if (!holds(type, value))
      return createStringError("argument '" + argument + "': " + Twine(value) +
                               " from " + origin + " does not fit into " +
                               getName(type));
    writeInteger(to + i * toBytes, type, value);
  }
  return result;
}

/// Writes the numbers of nested arrays in order. The shape is that of the first
/// element at each depth; others must agree.
static Error writeValues(const llvm::json::Value &value, StringRef argument,
                         DType type, llvm::ArrayRef<int64_t> shape, char *&to) {
  if (!shape.empty()) {
    const llvm::json::Array *array = value.getAsArray();
    if (!array || static_cast<int64_t>(array->size()) != shape.front())
      return createStringError("argument '" + argument +
                               "': expected arrays of equal length");
    for (const llvm::json::Value &element : *array)
      if (Error error =
              writeValues(element, argument, type, shape.drop_front(), to))
        return error;
    return Error::success();
  }
  auto wrong = [&](StringRef wanted) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    if (text.size() > 40)
      text = text.substr(0, 37) + "...";
    return createStringError("argument '" + argument + "': expected " + wanted +
                             ", but got " + text);
  };
  if (isFloat(type)) {
    std::optional<double> number = value.getAsNumber();
    if (std::optional<StringRef> text = value.getAsString()) {
      // JSON has no spelling for these.
      double infinity = std::numeric_limits<double>::infinity();
      if (*text == "nan")
        number = std::numeric_limits<double>::quiet_NaN();
      else if (*text == "inf" || *text == "-inf")
        number = *text == "inf" ? infinity : -infinity;
    }
    if (!number)
      return wrong("a number, \"nan\", \"inf\" or \"-inf\"");
    writeFloat(to, type, *number);
  } else {
    std::optional<int64_t> number = value.getAsInteger();
    if (std::optional<bool> truth = value.getAsBoolean())
      number = *truth;
    if (!number)
      return wrong("an integer");
    if (!holds(type, *number))
      return wrong(("a value of " + getName(type)).str());
    writeInteger(to, type, *number);
  }
  to += getByteSize(type);
  return Error::success();
}

static Expected<HostTensor> makeFromValues(const ArgumentSource &source,
                                           StringRef argument, DType type,
                                           llvm::ArrayRef<int64_t> wanted) {
  llvm::SmallVector<int64_t, 4> shape;
  const llvm::json::Value *value = &source.values;
  while (const llvm::json::Array *array = value->getAsArray()) {
    shape.push_back(array->size());
    if (array->empty())
      break;
    value = &array->front();
  }
  // `[]` may stand for [0, 4, 64]: sizes behind the 0 cannot be written down.
  llvm::SmallVector<int64_t, 4> full = shape;
  if (!shape.empty() && shape.back() == 0)
    for (size_t i = shape.size(); i < wanted.size(); ++i)
      full.push_back(std::max<int64_t>(wanted[i], 0));
  if (Error error = checkShape(argument, full, wanted, "the batch"))
    return std::move(error);
  HostTensor tensor(type, full);
  char *to = static_cast<char *>(tensor.getData());
  if (Error error = writeValues(source.values, argument, type, shape, to))
    return std::move(error);
  if (source.shape)
    if (Error error = checkShape(argument, full, *source.shape, "its values"))
      return std::move(error);
  return tensor;
}

Expected<HostTensor> fi::makeTensor(const ArgumentSource &source,
                                    StringRef argument, DType type,
                                    llvm::ArrayRef<int64_t> shape,
                                    uint64_t defaultSeed) {
  using Kind = ArgumentSource::Kind;
  switch (source.kind) {
  case Kind::Values:
    return makeFromValues(source, argument, type, shape);
  case Kind::Npy: {
    auto tensor = readNpy(source.file);
    if (!tensor)
      return tensor.takeError();
    return convertTensor(*tensor, argument, type, shape,
                         "'" + source.file + "'");
  }
  case Kind::Npz: {
    auto tensors = readNpz(source.file);
    if (!tensors)
      return tensors.takeError();
    StringRef member = source.member.empty() ? argument : source.member;
    for (const NamedTensor &tensor : *tensors)
      if (tensor.name == member)
        return convertTensor(tensor.tensor, argument, type, shape,
                             "'" + source.file + "'");
    return createStringError("'" + StringRef(source.file) +
                             "': expected an array named '" + member +
                             "', but there is none");
  }
  case Kind::Normal:
  case Kind::Uniform:
  case Kind::Fill:
    break;
  }
  llvm::SmallVector<int64_t, 4> full(shape);
  if (source.shape) {
    if (Error error = checkShape(argument, *source.shape, shape, "the batch"))
      return std::move(error);
    full = *source.shape;
  }
  if (llvm::any_of(full, [](int64_t size) { return size < 0; }))
    return createStringError("argument '" + argument + "': its shape " +
                             formatShape(full) +
                             " does not follow from the batch; state it by "
                             "'shape'");
  if (Error error = checkSize(argument, type, full))
    return std::move(error);
  HostTensor tensor(type, full);
  uint64_t seed = source.seed.value_or(defaultSeed);
  if (source.kind == Kind::Normal)
    fillNormal(tensor, seed, source.first, source.second);
  else if (source.kind == Kind::Uniform)
    fillUniform(tensor, seed, source.first, source.second);
  else
    fillConstant(tensor, source.first);
  return tensor;
}
