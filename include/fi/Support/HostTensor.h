//===- HostTensor.h - tensors in host memory --------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What interpreters and tools compute on: a typed, strided block of host
// memory, owned or borrowed, with exact conversion of every element type to and
// from double and int64.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_HOSTTENSOR_H
#define FI_SUPPORT_HOSTTENSOR_H

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace fi {

/// Element types in memory. `I1` takes a byte.
enum class DType {
  F32,
  F16,
  BF16,
  F64,
  I32,
  I64,
  I8,
  I1,
  F8E4M3FN,
  F8E5M2,
  F8E8M0FNU
};

/// Bytes of one element.
int64_t getByteSize(DType type);
/// The name in manifests and messages: "f32", "bf16", "i64", ...
llvm::StringRef getName(DType type);
std::optional<DType> parseDType(llvm::StringRef name);
bool isFloat(DType type);
/// The type in memory of an MLIR element type (`index` is i64); none if there
/// is no such type.
std::optional<DType> getDType(mlir::Type elementType);

/// Reads and writes one element. Floats are rounded to nearest, ties to even.
double readFloat(const void *address, DType type);
void writeFloat(void *address, DType type, double value);
/// The same, where numbers beyond the largest become that one: f8 and integers,
/// which are rounded to nearest too.
void writeSaturated(void *address, DType type, double value);
/// f4E2M1FN, in the low 4 bits.
double readFloat4(int64_t code);
/// The nearest one, ties to even, the largest of what is beyond; a NaN is 0.
int64_t toFloat4(double value);
/// Of a float the whole part, the nearest one that there is; 0 of a NaN.
int64_t readInteger(const void *address, DType type);
void writeInteger(void *address, DType type, int64_t value);

/// A strided tensor. Copies share the memory.
class HostTensor {
public:
  HostTensor() = default;
  /// Owned, contiguous, zero.
  HostTensor(DType type, llvm::ArrayRef<int64_t> shape);
  /// Borrowed; strides in elements, contiguous if empty.
  HostTensor(DType type, llvm::ArrayRef<int64_t> shape, void *data,
             llvm::ArrayRef<int64_t> strides = {});
  /// Contiguous, in memory that copies of the tensor keep.
  HostTensor(DType type, llvm::ArrayRef<int64_t> shape,
             std::shared_ptr<void> memory)
      : HostTensor(type, shape, memory.get()) {
    owner = std::move(memory);
  }

  DType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  llvm::ArrayRef<int64_t> getStrides() const { return strides; }
  int64_t getRank() const { return shape.size(); }
  int64_t getSize(unsigned dim) const { return shape[dim]; }
  int64_t getNumElements() const;
  void *getData() const { return data; }

  /// Address of the element at `indices`, which must be in range.
  void *at(llvm::ArrayRef<int64_t> indices) const;
  double getFloat(llvm::ArrayRef<int64_t> indices) const {
    return readFloat(at(indices), type);
  }
  void setFloat(llvm::ArrayRef<int64_t> indices, double value) const {
    writeFloat(at(indices), type, value);
  }
  int64_t getInteger(llvm::ArrayRef<int64_t> indices) const {
    return readInteger(at(indices), type);
  }
  void setInteger(llvm::ArrayRef<int64_t> indices, int64_t value) const {
    writeInteger(at(indices), type, value);
  }
  bool isContiguous() const;

private:
  DType type = DType::F32;
  llvm::SmallVector<int64_t, 4> shape, strides;
  void *data = nullptr;
  std::shared_ptr<void> owner;
};

/// Copies the elements of a tensor to another of its type and shape.
void copyTensor(const HostTensor &from, const HostTensor &to);

} // namespace fi

#endif // FI_SUPPORT_HOSTTENSOR_H
