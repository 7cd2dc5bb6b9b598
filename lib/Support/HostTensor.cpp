//===- HostTensor.cpp - tensors in host memory ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/HostTensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace fi;

int64_t fi::getByteSize(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F16:
  case DType::BF16:
    return 2;
  case DType::I8:
  case DType::I1:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
    return 1;
  }
  return 0;
}

static constexpr std::pair<DType, llvm::StringLiteral> kNames[] = {
    {DType::F32, "f32"},
    {DType::F16, "f16"},
    {DType::BF16, "bf16"},
    {DType::F64, "f64"},
    {DType::I32, "i32"},
    {DType::I64, "i64"},
    {DType::I8, "i8"},
    {DType::I1, "i1"},
    {DType::F8E4M3FN, "f8E4M3FN"},
    {DType::F8E5M2, "f8E5M2"},
    {DType::F8E8M0FNU, "f8E8M0FNU"}};

llvm::StringRef fi::getName(DType type) {
  for (auto &[candidate, name] : kNames)
    if (candidate == type)
      return name;
  return "";
}

std::optional<DType> fi::parseDType(llvm::StringRef name) {
  for (auto &[type, candidate] : kNames)
    if (candidate == name)
      return type;
  return std::nullopt;
}

bool fi::isFloat(DType type) {
  return type == DType::F32 || type == DType::F16 || type == DType::BF16 ||
         type == DType::F64 || type == DType::F8E4M3FN ||
         type == DType::F8E5M2 || type == DType::F8E8M0FNU;
}

std::optional<DType> fi::getDType(mlir::Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  if (type.isF64())
    return DType::F64;
  if (type.isInteger(32))
    return DType::I32;
  if (type.isInteger(64) || type.isIndex())
    return DType::I64;
  if (llvm::isa<mlir::Float8E4M3FNType>(type))
    return DType::F8E4M3FN;
  if (llvm::isa<mlir::Float8E5M2Type>(type))
    return DType::F8E5M2;
  if (llvm::isa<mlir::Float8E8M0FNUType>(type))
    return DType::F8E8M0FNU;
  if (type.isInteger(8))
    return DType::I8;
  if (type.isInteger(1))
    return DType::I1;
  return std::nullopt;
}

template <typename T> static T load(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

template <typename T> static void store(void *address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

/// Narrow floats through APFloat, which rounds as IEEE 754 says.
static double fromBits(uint16_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(
      semantics, llvm::APInt(llvm::APFloat::getSizeInBits(semantics), bits));
  bool exact;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &exact);
  return value.convertToDouble();
}

static uint16_t toBits(double number, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(number);
  bool exact;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &exact);
  return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
}

double fi::readFloat(const void *address, DType type) {
  switch (type) {
  case DType::F32:
    return load<float>(address);
  case DType::F64:
    return load<double>(address);
  case DType::F16:
    return fromBits(load<uint16_t>(address), llvm::APFloat::IEEEhalf());
  case DType::BF16: {
    // The upper half of an f32.
    uint32_t bits = static_cast<uint32_t>(load<uint16_t>(address)) << 16;
    return load<float>(&bits);
  }
  case DType::F8E4M3FN:
    return fromBits(load<uint8_t>(address), llvm::APFloat::Float8E4M3FN());
  case DType::F8E5M2:
    return fromBits(load<uint8_t>(address), llvm::APFloat::Float8E5M2());
  case DType::F8E8M0FNU:
    return fromBits(load<uint8_t>(address), llvm::APFloat::Float8E8M0FNU());
  default:
    return static_cast<double>(readInteger(address, type));
  }
}

void fi::writeFloat(void *address, DType type, double value) {
  switch (type) {
  case DType::F32:
    return store(address, static_cast<float>(value));
  case DType::F64:
    return store(address, value);
  case DType::F16:
    return store(address, toBits(value, llvm::APFloat::IEEEhalf()));
  case DType::BF16:
    return store(address, toBits(value, llvm::APFloat::BFloat()));
  case DType::F8E4M3FN:
    return store(address, static_cast<uint8_t>(
                              toBits(value, llvm::APFloat::Float8E4M3FN())));
  case DType::F8E5M2:
    return store(address, static_cast<uint8_t>(
                              toBits(value, llvm::APFloat::Float8E5M2())));
  case DType::F8E8M0FNU: {
    // Powers of two only: the one below, in size.
    int exponent = std::isfinite(value) && value != 0
                       ? std::clamp(std::ilogb(value) + 127, 0, 254)
                       : 0;
    return store(address,
                 static_cast<uint8_t>(std::isfinite(value) ? exponent : 255));
  }
  default:
    return writeInteger(address, type, static_cast<int64_t>(value));
  }
}

void fi::writeSaturated(void *address, DType type, double value) {
  auto clamp = [&](double least, double most) {
    return std::isnan(value) ? value : std::clamp(value, least, most);
  };
  switch (type) {
  case DType::F8E4M3FN:
    return writeFloat(address, type, clamp(-448, 448));
  case DType::F8E5M2:
    return writeFloat(address, type, clamp(-57344, 57344));
  case DType::I8:
    return writeInteger(
        address, type,
        std::isnan(value) ? 0 : std::llrint(std::nearbyint(clamp(-128, 127))));
  default:
    return writeFloat(address, type, value);
  }
}

double fi::readFloat4(int64_t code) {
  return fromBits(static_cast<uint16_t>(code & 15),
                  llvm::APFloat::Float4E2M1FN());
}

int64_t fi::toFloat4(double value) {
  if (std::isnan(value))
    return 0;
  return toBits(std::clamp(value, -6.0, 6.0), llvm::APFloat::Float4E2M1FN());
}

int64_t fi::readInteger(const void *address, DType type) {
  switch (type) {
  case DType::I32:
    return load<int32_t>(address);
  case DType::I64:
    return load<int64_t>(address);
  case DType::I8:
    return load<int8_t>(address);
  case DType::I1:
    return load<uint8_t>(address) != 0;
  default:
    break;
  }
  // Numbers may be any.
  double number = readFloat(address, type);
  if (std::isnan(number))
    return 0;
  if (number >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  return number < -0x1p63 ? std::numeric_limits<int64_t>::min()
                          : static_cast<int64_t>(number);
}

void fi::writeInteger(void *address, DType type, int64_t value) {
  switch (type) {
  case DType::I32:
    return store(address, static_cast<int32_t>(value));
  case DType::I64:
    return store(address, value);
  case DType::I8:
    return store(address, static_cast<int8_t>(value));
  case DType::I1:
    return store(address, static_cast<uint8_t>(value != 0));
  default:
    return writeFloat(address, type, static_cast<double>(value));
  }
}

static llvm::SmallVector<int64_t, 4>
contiguousStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

HostTensor::HostTensor(DType type, llvm::ArrayRef<int64_t> shape)
    : type(type), shape(shape), strides(contiguousStrides(shape)) {
  size_t bytes = std::max<int64_t>(getNumElements(), 1) * getByteSize(type);
  bytes = (bytes + 63) / 64 * 64;
  owner = std::shared_ptr<void>(std::aligned_alloc(64, bytes), std::free);
  data = owner.get();
  std::memset(data, 0, bytes);
}

HostTensor::HostTensor(DType type, llvm::ArrayRef<int64_t> shape, void *data,
                       llvm::ArrayRef<int64_t> strides)
    : type(type), shape(shape),
      strides(strides.empty() ? contiguousStrides(shape)
                              : llvm::SmallVector<int64_t, 4>(strides)),
      data(data) {}

int64_t HostTensor::getNumElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

void *HostTensor::at(llvm::ArrayRef<int64_t> indices) const {
  int64_t offset = 0;
  for (size_t i = 0; i < indices.size(); ++i)
    offset += indices[i] * strides[i];
  return static_cast<char *>(data) + offset * getByteSize(type);
}

bool HostTensor::isContiguous() const {
  return getNumElements() == 0 ||
         llvm::ArrayRef<int64_t>(strides) ==
             llvm::ArrayRef<int64_t>(contiguousStrides(shape));
}

void fi::copyTensor(const HostTensor &from, const HostTensor &to) {
  int64_t bytes = getByteSize(from.getType());
  int64_t count = from.getNumElements();
  if (from.isContiguous() && to.isContiguous()) {
    if (count > 0)
      std::memcpy(to.getData(), from.getData(), count * bytes);
    return;
  }
  llvm::SmallVector<int64_t, 4> index(from.getRank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to.at(index), from.at(index), bytes);
    for (int64_t d = from.getRank(); d-- > 0;) {
      if (++index[d] < from.getSize(d))
        break;
      index[d] = 0;
    }
  }
}
