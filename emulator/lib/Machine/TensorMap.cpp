//===- TensorMap.cpp - Making and checking tensor maps --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TensorMap.h"

#include <cstring>

namespace fi::emulator {

uint32_t TensorMap::checksum() const {
  // FNV-1a of what stands before the sum.
  const auto *p = reinterpret_cast<const uint8_t *>(this);
  uint32_t h = 0x811c9dc5u;
  for (size_t i = 0; i < offsetof(TensorMap, check); ++i)
    h = (h ^ p[i]) * 0x01000193u;
  return h;
}

uint32_t tensorElementBytes(TensorMapConfig::Type type) {
  using T = TensorMapConfig::Type;
  switch (type) {
  case T::U8:
    return 1;
  case T::U16:
  case T::F16:
  case T::BF16:
    return 2;
  case T::U32:
  case T::I32:
  case T::F32:
  case T::F32Flushed:
  case T::TF32:
  case T::TF32Flushed:
    return 4;
  case T::U64:
  case T::I64:
  case T::F64:
    return 8;
  }
  return 0;
}

uint32_t TensorMap::elementBytes() const {
  return tensorElementBytes(TensorMapConfig::Type(type));
}
uint32_t TensorMap::boxBytes() const {
  uint32_t n = elementBytes();
  for (unsigned i = 0; i < rank; ++i)
    n *= count(i);
  return n;
}
uint32_t TensorMap::sharedBytes() const {
  uint32_t n = rowPitch();
  for (unsigned i = 1; i < rank; ++i)
    n *= count(i);
  return n;
}

bool checkTensorMap(const TensorMapConfig &c, std::string &error) {
  auto fail = [&](const std::string &message) {
    error = "tensor map: " + message;
    return false;
  };
  auto number = [](uint64_t v) { return std::to_string(v); };
  uint32_t bytes = tensorElementBytes(c.type);
  if (!bytes)
    return fail("unknown element type " + number(uint64_t(c.type)) +
                "; the emulator knows 0 to 12");
  if (c.rank < 1 || c.rank > 5)
    return fail("expected a rank of 1 to 5, but got " + number(c.rank));
  if (c.interleave != 0)
    return fail("interleaved layouts are not emulated; expected interleave 0");
  if (uint32_t(c.swizzle) > 3)
    return fail("expected swizzle 0 to 3, but got " +
                number(uint64_t(c.swizzle)));
  if (c.promotion > 3)
    return fail("expected an L2 promotion of 0 to 3, but got " +
                number(c.promotion));
  using T = TensorMapConfig::Type;
  bool isFloat = c.type >= T::F16;
  if (c.fill > 1 || (c.fill == 1 && !isFloat))
    return fail("expected 0 as fill, or 1 with floating-point elements");
  if (c.address == 0 || c.address % 16)
    return fail("expected an address aligned to 16 bytes");
  for (uint32_t i = 0; i < c.rank; ++i) {
    std::string of = " of dimension " + number(i);
    if (c.dims[i] == 0 || c.dims[i] > uint64_t(1) << 32)
      return fail("expected a size of 1 to 2^32" + of + ", but got " +
                  number(c.dims[i]));
    if (i > 0 && (c.strides[i - 1] % 16 || c.strides[i - 1] >> 40))
      return fail("expected a stride" + of +
                  " that is a multiple of 16 bytes and less than 2^40, but "
                  "got " +
                  number(c.strides[i - 1]));
    if (c.box[i] == 0 || c.box[i] > 256)
      return fail("expected a box of 1 to 256 elements" + of + ", but got " +
                  number(c.box[i]));
    if (c.elementStrides[i] == 0 || c.elementStrides[i] > 8)
      return fail("expected an element stride of 1 to 8" + of + ", but got " +
                  number(c.elementStrides[i]));
  }
  uint32_t inner = c.box[0] * bytes;
  if (inner % 16)
    return fail("expected rows of the box of a multiple of 16 bytes, but got " +
                number(inner));
  uint32_t most = c.swizzle == TensorMapConfig::Swizzle::None
                      ? ~0u
                      : 16u << uint32_t(c.swizzle);
  if (inner > most)
    return fail("expected rows of the box of at most " + number(most) +
                " bytes with this swizzle, but got " + number(inner));
  return true;
}

bool encodeTensorMap(const TensorMapConfig &c, void *out, std::string &error) {
  if (reinterpret_cast<uintptr_t>(out) % 64) {
    error = "tensor map: expected a place aligned to 64 bytes";
    return false;
  }
  if (!checkTensorMap(c, error))
    return false;
  TensorMap m;
  std::memset(&m, 0, sizeof(m));
  for (uint32_t i = 0; i < 5; ++i) {
    bool used = i < c.rank;
    m.dims[i] = used ? c.dims[i] : 1;
    m.box[i] = used ? uint16_t(c.box[i]) : 1;
    m.elementStrides[i] = used ? uint8_t(c.elementStrides[i]) : 1;
    if (i > 0)
      m.strides[i - 1] = used ? c.strides[i - 1] : 0;
  }
  m.magic = TensorMap::theMagic;
  m.address = c.address;
  m.type = uint8_t(c.type);
  m.rank = uint8_t(c.rank);
  m.swizzle = uint8_t(c.swizzle);
  m.fill = uint8_t(c.fill);
  m.check = m.checksum();
  std::memset(out, 0, tensorMapBytes);
  std::memcpy(out, &m, sizeof(m));
  return true;
}

TensorMapConfig configOf(const TensorMap &m) {
  TensorMapConfig c;
  c.type = TensorMapConfig::Type(m.type);
  c.rank = m.rank;
  c.address = m.address;
  for (uint32_t i = 0; i < 5; ++i) {
    c.dims[i] = m.dims[i];
    c.box[i] = m.box[i];
    c.elementStrides[i] = m.elementStrides[i];
    if (i > 0)
      c.strides[i - 1] = m.strides[i - 1];
  }
  c.interleave = m.interleave;
  c.swizzle = TensorMapConfig::Swizzle(m.swizzle);
  c.fill = m.fill;
  return c;
}

} // namespace fi::emulator
