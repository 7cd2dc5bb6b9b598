//===- Reduce.cpp - The operations of cp.reduce.async.bulk ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Async.h"

// The formats are inline in a namespace of an instruction set; here in one for
// this file.
#define FI_EMU_ISA reductions
#include "../Exec/Float.h"

namespace fi::emulator {
namespace {

using namespace reductions;

template <class T> T apply(BulkOp op, T a, T b) {
  switch (op) {
  case BulkOp::Add:
    return T(a + b);
  case BulkOp::Min:
    return b < a ? b : a;
  case BulkOp::Max:
    return a < b ? b : a;
  default:
    break;
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    switch (op) {
    case BulkOp::Inc:
      return U(a) >= U(b) ? T(0) : T(U(a) + 1);
    case BulkOp::Dec:
      return a == 0 || U(a) > U(b) ? b : T(U(a) - 1);
    case BulkOp::And:
      return T(a & b);
    case BulkOp::Or:
      return T(a | b);
    case BulkOp::Xor:
      return T(a ^ b);
    default:
      break;
    }
  }
  return a;
}

template <class T>
void reduceAll(BulkOp op, uint8_t *to, const uint8_t *from, uint32_t bytes) {
  for (uint32_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    a = apply(op, a, b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

void reduceHalves(BulkOp op, bool bf16, uint8_t *to, const uint8_t *from,
                  uint32_t bytes) {
  for (uint32_t i = 0; i + 2 <= bytes; i += 2) {
    uint16_t a, b;
    std::memcpy(&a, to + i, 2);
    std::memcpy(&b, from + i, 2);
    float x = bf16 ? bf16ToFloat(a) : halfToFloat(a);
    float y = bf16 ? bf16ToFloat(b) : halfToFloat(b);
    float r = apply(op, x, y);
    a = uint16_t(roundTo(double(r), bf16 ? formatBF16 : formatF16,
                         Rounding::Nearest, false));
    std::memcpy(to + i, &a, 2);
  }
}

} // namespace

bool bulkReductionExists(BulkOp op, Type type) {
  bool word = type == Type::U32 || type == Type::S32;
  bool wide = type == Type::U64 || type == Type::S64;
  bool half = type == Type::F16 || type == Type::BF16;
  switch (op) {
  case BulkOp::Add:
    return word || type == Type::U64 || half || type == Type::F32 ||
           type == Type::F64;
  case BulkOp::Min:
  case BulkOp::Max:
    return word || wide || half;
  case BulkOp::Inc:
  case BulkOp::Dec:
    return type == Type::U32;
  case BulkOp::None:
    return false;
  default:
    return type == Type::B32 || type == Type::B64;
  }
}

void reduceBytes(BulkOp op, Type type, uint8_t *to, const uint8_t *from,
                 uint32_t bytes) {
  switch (type) {
  case Type::S32:
    return reduceAll<int32_t>(op, to, from, bytes);
  case Type::U64:
  case Type::B64:
    return reduceAll<uint64_t>(op, to, from, bytes);
  case Type::S64:
    return reduceAll<int64_t>(op, to, from, bytes);
  case Type::F32:
    return reduceAll<float>(op, to, from, bytes);
  case Type::F64:
    return reduceAll<double>(op, to, from, bytes);
  case Type::F16:
  case Type::BF16:
    return reduceHalves(op, type == Type::BF16, to, from, bytes);
  default:
    return reduceAll<uint32_t>(op, to, from, bytes);
  }
}

} // namespace fi::emulator
