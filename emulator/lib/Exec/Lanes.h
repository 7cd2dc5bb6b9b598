//===- Lanes.h - One operation for the lanes of a warp ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops over 32 lanes that compilers turn into vector code. The files that
// include this one are compiled once for each level of the instruction set, in
// a namespace of that level (FI_EMU_ISA); nothing here may be seen from
// elsewhere.
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_EXEC_LANES_H
#define FI_EMULATOR_EXEC_LANES_H

#include "../Decode/Table.h"
#include "Exec.h"
#include "Float.h"
#include <type_traits>
#include <utility>

#if defined(__clang__)
#define FI_EMU_VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#else
#define FI_EMU_VECTORIZE _Pragma("GCC ivdep")
#endif

namespace fi::emulator::FI_EMU_ISA {

/// A type as it lies in a slot.
template <class T> struct Io {
  using S = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static T get(S s) {
    if constexpr (std::is_floating_point_v<T>) {
      T v;
      std::memcpy(&v, &s, sizeof(T));
      return v;
    } else {
      return T(s);
    }
  }
  static S put(T v) {
    if constexpr (std::is_floating_point_v<T>) {
      S s;
      std::memcpy(&s, &v, sizeof(T));
      return s;
    } else {
      return S(std::make_unsigned_t<T>(v));
    }
  }
};

template <class S> inline S *slot(Warp &w, uint32_t index) {
  return reinterpret_cast<S *>(w.regs + size_t(index) * 32);
}

/// d[i] = f(i) for the lanes of the mask. f is computed for all lanes, so it
/// must be defined for what stands in lanes that are off.
template <class S, class F> inline void lanes(S *d, uint32_t mask, F f) {
  if (mask == fullMask) {
    FI_EMU_VECTORIZE
    for (unsigned i = 0; i < 32; ++i)
      d[i] = f(i);
    return;
  }
  S t[32];
  FI_EMU_VECTORIZE
  for (unsigned i = 0; i < 32; ++i)
    t[i] = f(i);
  for (unsigned i = 0; i < 32; ++i)
    d[i] = mask >> i & 1 ? t[i] : d[i];
}

/// As a mask: bit i is f(i).
template <class F> inline uint32_t lanesMask(F f) {
  uint32_t t[32];
  FI_EMU_VECTORIZE
  for (unsigned i = 0; i < 32; ++i)
    t[i] = uint32_t(f(i)) << i;
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i)
    r |= t[i];
  return r;
}

/// o[0] = F(o[1]...), by lanes.
template <class F, class D, class A>
void unary(Warp &w, const Inst &in, uint32_t m) {
  const auto *a = slot<typename Io<A>::S>(w, in.o[1]);
  lanes(slot<typename Io<D>::S>(w, in.o[0]), m,
        [&](unsigned i) { return Io<D>::put(F::f(Io<A>::get(a[i]))); });
}
template <class F, class D, class A, class B>
void binary(Warp &w, const Inst &in, uint32_t m) {
  const auto *a = slot<typename Io<A>::S>(w, in.o[1]);
  const auto *b = slot<typename Io<B>::S>(w, in.o[2]);
  lanes(slot<typename Io<D>::S>(w, in.o[0]), m, [&](unsigned i) {
    return Io<D>::put(F::f(Io<A>::get(a[i]), Io<B>::get(b[i])));
  });
}
template <class F, class D, class A, class B, class C>
void ternary(Warp &w, const Inst &in, uint32_t m) {
  const auto *a = slot<typename Io<A>::S>(w, in.o[1]);
  const auto *b = slot<typename Io<B>::S>(w, in.o[2]);
  const auto *c = slot<typename Io<C>::S>(w, in.o[3]);
  lanes(slot<typename Io<D>::S>(w, in.o[0]), m, [&](unsigned i) {
    return Io<D>::put(
        F::f(Io<A>::get(a[i]), Io<B>::get(b[i]), Io<C>::get(c[i])));
  });
}

template <class F> Handler intUnary(Type t) {
  switch (t) {
  case Type::U16:
  case Type::B16:
    return unary<F, uint16_t, uint16_t>;
  case Type::S16:
    return unary<F, int16_t, int16_t>;
  case Type::U32:
  case Type::B32:
    return unary<F, uint32_t, uint32_t>;
  case Type::S32:
    return unary<F, int32_t, int32_t>;
  case Type::U64:
  case Type::B64:
    return unary<F, uint64_t, uint64_t>;
  case Type::S64:
    return unary<F, int64_t, int64_t>;
  default:
    return nullptr;
  }
}
template <class F> Handler intBinary(Type t) {
  switch (t) {
  case Type::U16:
  case Type::B16:
    return binary<F, uint16_t, uint16_t, uint16_t>;
  case Type::S16:
    return binary<F, int16_t, int16_t, int16_t>;
  case Type::U32:
  case Type::B32:
    return binary<F, uint32_t, uint32_t, uint32_t>;
  case Type::S32:
    return binary<F, int32_t, int32_t, int32_t>;
  case Type::U64:
  case Type::B64:
    return binary<F, uint64_t, uint64_t, uint64_t>;
  case Type::S64:
    return binary<F, int64_t, int64_t, int64_t>;
  default:
    return nullptr;
  }
}
template <class F> Handler intTernary(Type t) {
  switch (t) {
  case Type::U16:
    return ternary<F, uint16_t, uint16_t, uint16_t, uint16_t>;
  case Type::S16:
    return ternary<F, int16_t, int16_t, int16_t, int16_t>;
  case Type::U32:
    return ternary<F, uint32_t, uint32_t, uint32_t, uint32_t>;
  case Type::S32:
    return ternary<F, int32_t, int32_t, int32_t, int32_t>;
  case Type::U64:
    return ternary<F, uint64_t, uint64_t, uint64_t, uint64_t>;
  case Type::S64:
    return ternary<F, int64_t, int64_t, int64_t, int64_t>;
  default:
    return nullptr;
  }
}

/// Rows of each file.
void addIntegerRows(Table &table);
void addLogicRows(Table &table);
void addCompareRows(Table &table);
void addFloatRows(Table &table);
void addHalfRows(Table &table);
void addConvertRows(Table &table);
void addMemoryRows(Table &table);
void addAtomicRows(Table &table);
void addControlRows(Table &table);
void addWarpRows(Table &table);
void addMatrixRows(Table &table);
void addBulkRows(Table &table);
void addWgmmaRows(Table &table);

} // namespace fi::emulator::FI_EMU_ISA

#endif // FI_EMULATOR_EXEC_LANES_H
