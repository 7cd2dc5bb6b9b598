//===- Matrix.cpp - ldmatrix, stmatrix, movmatrix, mma.sync ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments as the PTX ISA lays them out ("Warp Level Matrix Instructions").
// Products are exact and added to the accumulator in float in the order of k,
// by fused multiply-adds; f16 accumulators are rounded once at the end. The
// hardware adds groups of products in wider, truncated arithmetic: results
// differ from it in the last bits (docs/emulator.md has the bound).
//
//===----------------------------------------------------------------------===//
#include "Resolve.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

//===- Loads and stores ---------------------------------------------------===//

/// A register of a warp is an 8x8 matrix of 16-bit elements by rows: lane i
/// holds elements 2 * (i % 4) and the next of row i / 4. With .trans, of column
/// i / 4.
inline void transpose16(const uint16_t *from, uint16_t *to) {
  uint16_t t[64];
  std::memcpy(t, from, sizeof(t));
  for (unsigned r = 0; r < 8; ++r)
    for (unsigned c = 0; c < 8; ++c)
      to[8 * r + c] = t[8 * c + r];
}
inline uint32_t matrixRows(Warp &w, const Inst &in, uint32_t at, Access kind,
                           Lanes &lanes) {
  unsigned n = in.count;
  uint32_t rows = n == 4 ? fullMask : (1u << (8 * n)) - 1;
  if (Space(in.bytes) == Space::Shared)
    return access<Space::Shared>(w, in, rows, at, 16, kind, lanes);
  return resolve(w, in, Space(in.bytes), rows, at, 16, kind, lanes);
}
void ldmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  uint32_t ok = matrixRows(w, in, o[n], Access::Read, lanes);
  // A destination may be the register of the addresses: read first.
  alignas(16) uint16_t matrix[4][64];
  for (unsigned r = 0; r < 8 * n; ++r) {
    uint16_t *row = &matrix[r / 8][8 * (r % 8)];
    if (ok >> r & 1)
      std::memcpy(row, lanes.p[r], 16);
    else
      std::memset(row, 0, 16);
  }
  for (unsigned k = 0; k < n; ++k) {
    uint16_t *d = reinterpret_cast<uint16_t *>(w.r32(o[k]));
    if (in.aux)
      transpose16(matrix[k], d);
    else
      std::memcpy(d, matrix[k], sizeof(matrix[k]));
  }
}
void stmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  uint32_t ok = matrixRows(w, in, o[0], Access::Write, lanes);
  alignas(16) uint16_t matrix[4][64];
  for (unsigned k = 0; k < n; ++k) {
    const uint16_t *s = reinterpret_cast<const uint16_t *>(w.r32(o[1 + k]));
    if (in.aux)
      transpose16(s, matrix[k]);
    else
      std::memcpy(matrix[k], s, sizeof(matrix[k]));
  }
  for (unsigned r = 0; r < 8 * n; ++r)
    if (ok >> r & 1)
      std::memcpy(lanes.p[r], &matrix[r / 8][8 * (r % 8)], 16);
}
void movmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  transpose16(reinterpret_cast<const uint16_t *>(w.r32(in.o[1])),
              reinterpret_cast<uint16_t *>(w.r32(in.o[0])));
}
void buildMatrixAccess(Builder &b) {
  // Groups: num, trans, space.
  b.inst.count = uint8_t(b.group(3)[1] - '0');
  b.inst.aux = b.has(4);
  b.inst.bytes = uint8_t(b.has(5) ? Space::Shared : Space::Generic);
  bool load = b.ast.mnemonic == "ldmatrix";
  if (b.counts[load ? 0 : 1] != b.inst.count)
    return b.fail("expected " + std::to_string(b.inst.count) +
                  " registers in '" + std::string(b.ast.mnemonic) + "'");
  b.inst.fn = load ? ldmatrix : stmatrix;
}
void buildMovmatrix(Builder &b) { b.inst.fn = movmatrix; }

//===- Products -----------------------------------------------------------===//

enum class Elt : uint8_t {
  F16,
  BF16,
  TF32,
  E4M3,
  E5M2,
  S8,
  U8,
  S4,
  U4,
  F64,
  B1
};

unsigned bitsOfElt(Elt e) {
  switch (e) {
  case Elt::F16:
  case Elt::BF16:
    return 16;
  case Elt::TF32:
    return 32;
  case Elt::F64:
    return 64;
  case Elt::S4:
  case Elt::U4:
    return 4;
  case Elt::B1:
    return 1;
  default:
    return 8;
  }
}

/// What an mma instruction is, in its `aux` and `imm`: filled by the builder.
struct Shape {
  uint8_t m, k;
  Elt a, b;
  bool halfC, halfD, satfinite;
  uint8_t regsA, regsB, regsC, regsD;
};
Shape shapeOf(const Inst &in) {
  Shape s;
  static_assert(sizeof(Shape) <= 12);
  uint8_t raw[12];
  std::memcpy(raw, &in.imm, 8);
  std::memcpy(raw + 8, &in.aux, 4);
  std::memcpy(&s, raw, sizeof(s));
  return s;
}

/// Where element `e` of a register pair's lane lies. For 8-, 16- and 32-bit
/// elements: A has rows lane / 4 (+ 8) and columns (lane % 4) * per + within (+
/// 4 * per); registers alternate row half first, then column half.
template <class Load, class T>
inline void gatherA(Warp &w, const uint32_t *regs, unsigned n, unsigned rows,
                    T (*a)[128], Load load, unsigned per) {
  // Registers of a: (row half, column half) with the row half fastest.
  unsigned halves = rows / 8;
  for (unsigned r = 0; r < n; ++r) {
    const uint32_t *v = w.r32(regs[r]);
    unsigned row = (r % halves) * 8, col = (r / halves) * 4 * per;
    for (unsigned i = 0; i < 32; ++i)
      for (unsigned e = 0; e < per; ++e)
        a[row + i / 4][col + (i % 4) * per + e] = load(v[i], e);
  }
}
template <class Load, class T>
inline void gatherB(Warp &w, const uint32_t *regs, unsigned n, T (*b)[8],
                    Load load, unsigned per) {
  for (unsigned r = 0; r < n; ++r) {
    const uint32_t *v = w.r32(regs[r]);
    unsigned row = r * 4 * per;
    for (unsigned i = 0; i < 32; ++i)
      for (unsigned e = 0; e < per; ++e)
        b[row + (i % 4) * per + e][i / 4] = load(v[i], e);
  }
}

inline float loadTf32(uint32_t v) { return floatOf(v & 0xffffe000u); }
struct ByteTable {
  float v[2][256];
  ByteTable() {
    for (uint32_t i = 0; i < 256; ++i) {
      v[0][i] = float(valueOf(i, formatE4M3));
      v[1][i] = float(valueOf(i, formatE5M2));
    }
  }
};
const ByteTable &byteTable() {
  static const ByteTable table;
  return table;
}

/// One register of a warp, 8 rows of `per` * 4 elements, as floats; rows of
/// `to` are `stride` apart.
template <Elt E>
inline void loadBlock(const uint32_t *from, float *to, unsigned stride) {
  constexpr unsigned columns = E == Elt::TF32                    ? 4
                               : E == Elt::F16 || E == Elt::BF16 ? 8
                                                                 : 16;
  for (unsigned r = 0; r < 8; ++r) {
    float *row = to + r * stride;
    if constexpr (E == Elt::TF32) {
      for (unsigned c = 0; c < columns; ++c)
        row[c] = loadTf32(from[columns * r + c]);
    } else if constexpr (E == Elt::F16 || E == Elt::BF16) {
      const uint16_t *h = reinterpret_cast<const uint16_t *>(from) + 8 * r;
      FI_EMU_VECTORIZE
      for (unsigned c = 0; c < columns; ++c)
        row[c] = E == Elt::F16 ? halfToFloat(h[c]) : bf16ToFloat(h[c]);
    } else {
      const uint8_t *b = reinterpret_cast<const uint8_t *>(from) + 16 * r;
      const float *table = byteTable().v[E == Elt::E5M2];
      for (unsigned c = 0; c < columns; ++c)
        row[c] = table[b[c]];
    }
  }
}
constexpr unsigned columnsOf(Elt e) {
  return e == Elt::TF32 ? 4 : e == Elt::F16 || e == Elt::BF16 ? 8 : 16;
}

#if defined(__clang__) || __GNUC__ >= 12
using Float8 = float __attribute__((vector_size(32)));
/// Columns of eight rows, `stride` apart.
inline void transpose8(const float *from, unsigned stride, float *to) {
  Float8 r[8], s[8];
  for (unsigned i = 0; i < 8; ++i)
    std::memcpy(&r[i], from + i * stride, 32);
  for (unsigned i = 0; i < 8; i += 2) {
    s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    s[i + 1] =
        __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (unsigned i = 0; i < 8; i += 4)
    for (unsigned k = 0; k < 2; ++k) {
      r[i + k] = __builtin_shufflevector(s[i + k], s[i + k + 2], 0, 1, 8, 9, 4,
                                         5, 12, 13);
      r[i + k + 2] = __builtin_shufflevector(s[i + k], s[i + k + 2], 2, 3, 10,
                                             11, 6, 7, 14, 15);
    }
  for (unsigned k = 0; k < 4; ++k) {
    s[k] = __builtin_shufflevector(r[k], r[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    s[k + 4] =
        __builtin_shufflevector(r[k], r[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  std::memcpy(to, s, sizeof(s));
}
#else
inline void transpose8(const float *from, unsigned stride, float *to) {
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned k = 0; k < 8; ++k)
      to[8 * k + i] = from[i * stride + k];
}
#endif

/// a is 16 x K by rows, b K x 8, c 16 x 8; every sum in the order of k. Eight
/// rows at a time are as many chains of additions as hide their latency.
template <unsigned K>
inline void multiply(const float *a, const float *b, float *c) {
#if defined(__clang__) && __has_builtin(__builtin_elementwise_fma)
  for (unsigned row = 0; row < 16; row += 8) {
    const float *rows = a + row * K;
    Float8 acc[8];
    std::memcpy(acc, c + 8 * row, sizeof(acc));
#pragma clang loop unroll(disable)
    for (unsigned k = 0; k < K; ++k) {
      Float8 v;
      std::memcpy(&v, b + 8 * k, sizeof(v));
#pragma clang loop unroll(full)
      for (unsigned r = 0; r < 8; ++r) {
        float x = rows[r * K + k];
        acc[r] = __builtin_elementwise_fma(Float8{x, x, x, x, x, x, x, x}, v,
                                           acc[r]);
      }
    }
    std::memcpy(c + 8 * row, acc, sizeof(acc));
  }
#else
  for (unsigned row = 0; row < 16; row += 4) {
    float acc[4][8];
    std::memcpy(acc, c + 8 * row, sizeof(acc));
    for (unsigned k = 0; k < K; ++k)
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned n = 0; n < 8; ++n)
          acc[r][n] =
              __builtin_fmaf(a[(row + r) * K + k], b[8 * k + n], acc[r][n]);
    std::memcpy(c + 8 * row, acc, sizeof(acc));
  }
#endif
}

/// m16n8kK.
template <Elt A, Elt B, unsigned K, bool HalfC, bool HalfD>
void mmaFloat(Warp &w, const Inst &in, uint32_t mask) {
  if (!wholeWarp(w, in, mask))
    return;
  constexpr unsigned perA = columnsOf(A), perB = columnsOf(B);
  constexpr unsigned regsA = 2 * K / perA, regsB = K / perB;
  constexpr unsigned regsC = HalfC ? 2 : 4, regsD = HalfD ? 2 : 4;
  // Room for whole blocks of eight columns.
  constexpr unsigned padded = (K + 7) / 8 * 8;
  const uint32_t *o = in.ops();
  const uint32_t *ra = o + regsD, *rb = ra + regsA, *rc = rb + regsB;
  alignas(64) float a[16 * K], t[8 * padded], b[padded * 8], c[16 * 8];
  // The row half changes first, then the columns.
  for (unsigned r = 0; r < regsA; ++r)
    loadBlock<A>(w.r32(ra[r]), a + (r % 2) * 8 * K + (r / 2) * perA, K);
  // Registers of b hold columns of it.
  if constexpr (padded != K)
    std::memset(t, 0, sizeof(t));
  for (unsigned r = 0; r < regsB; ++r)
    loadBlock<B>(w.r32(rb[r]), t + r * perB, padded);
  for (unsigned k = 0; k < padded; k += 8)
    transpose8(t + k, padded, b + 8 * k);
  if constexpr (HalfC) {
    for (unsigned r = 0; r < regsC; ++r)
      loadBlock<Elt::F16>(w.r32(rc[r]), c + 64 * r, 8);
  } else {
    for (unsigned r = 0; r < regsC; r += 2) {
      const float *v0 = slot<float>(w, rc[r]), *v1 = slot<float>(w, rc[r + 1]);
      FI_EMU_VECTORIZE
      for (unsigned i = 0; i < 32; ++i) {
        c[32 * r + 2 * i] = v0[i];
        c[32 * r + 2 * i + 1] = v1[i];
      }
    }
  }
  multiply<K>(a, b, c);
  if constexpr (HalfD) {
    for (unsigned r = 0; r < regsD; ++r) {
      uint16_t *v = reinterpret_cast<uint16_t *>(w.r32(o[r]));
      FI_EMU_VECTORIZE
      for (unsigned i = 0; i < 64; ++i)
        v[i] = uint16_t(floatToHalf(c[64 * r + i]));
    }
  } else {
    for (unsigned r = 0; r < regsD; r += 2) {
      uint32_t *v0 = w.r32(o[r]), *v1 = w.r32(o[r + 1]);
      FI_EMU_VECTORIZE
      for (unsigned i = 0; i < 32; ++i) {
        v0[i] = bitsOf(canonical(c[32 * r + 2 * i]));
        v1[i] = bitsOf(canonical(c[32 * r + 2 * i + 1]));
      }
    }
  }
}
template <Elt A, Elt B, unsigned K> Handler pickAccumulators(const Shape &s) {
  if constexpr (A == Elt::BF16 || A == Elt::TF32)
    return mmaFloat<A, B, K, false, false>;
  else
    return s.halfC ? (s.halfD ? mmaFloat<A, B, K, true, true>
                              : mmaFloat<A, B, K, true, false>)
                   : (s.halfD ? mmaFloat<A, B, K, false, true>
                              : mmaFloat<A, B, K, false, false>);
}
template <Elt A, Elt B> Handler pickBytes(const Shape &s) {
  return s.k == 16 ? pickAccumulators<A, B, 16>(s)
                   : pickAccumulators<A, B, 32>(s);
}
Handler pickFloat(const Shape &s) {
  switch (s.a) {
  case Elt::F16:
    return s.k == 8 ? pickAccumulators<Elt::F16, Elt::F16, 8>(s)
                    : pickAccumulators<Elt::F16, Elt::F16, 16>(s);
  case Elt::BF16:
    return s.k == 8 ? pickAccumulators<Elt::BF16, Elt::BF16, 8>(s)
                    : pickAccumulators<Elt::BF16, Elt::BF16, 16>(s);
  case Elt::TF32:
    return s.k == 4 ? pickAccumulators<Elt::TF32, Elt::TF32, 4>(s)
                    : pickAccumulators<Elt::TF32, Elt::TF32, 8>(s);
  case Elt::E4M3:
    return s.b == Elt::E4M3 ? pickBytes<Elt::E4M3, Elt::E4M3>(s)
                            : pickBytes<Elt::E4M3, Elt::E5M2>(s);
  default:
    return s.b == Elt::E4M3 ? pickBytes<Elt::E5M2, Elt::E4M3>(s)
                            : pickBytes<Elt::E5M2, Elt::E5M2>(s);
  }
}

void mmaInt(Warp &w, const Inst &in, uint32_t mask) {
  if (!wholeWarp(w, in, mask))
    return;
  Shape s = shapeOf(in);
  const uint32_t *o = in.ops();
  const uint32_t *ra = o + s.regsD, *rb = ra + s.regsA, *rc = rb + s.regsB;
  int32_t a[16][128], b[128][8];
  auto loader = [](Elt e) {
    return [e](uint32_t v, unsigned k) -> int32_t {
      switch (e) {
      case Elt::S8:
        return int8_t(v >> (8 * k));
      case Elt::U8:
        return uint8_t(v >> (8 * k));
      case Elt::S4:
        return int32_t(v << (28 - 4 * k)) >> 28;
      default:
        return int32_t(v >> (4 * k) & 15);
      }
    };
  };
  unsigned per = 32 / bitsOfElt(s.a);
  gatherA(w, ra, s.regsA, s.m, a, loader(s.a), per);
  gatherB(w, rb, s.regsB, b, loader(s.b), per);
  int64_t c[16][8];
  for (unsigned r = 0; r < s.regsC; ++r) {
    const uint32_t *v = w.r32(rc[r]);
    for (unsigned i = 0; i < 32; ++i)
      c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2] = int32_t(v[i]);
  }
  for (unsigned row = 0; row < s.m; ++row) {
    int32_t acc[8] = {};
    for (unsigned k = 0; k < s.k; ++k)
      for (unsigned n = 0; n < 8; ++n)
        acc[n] += a[row][k] * b[k][n];
    for (unsigned n = 0; n < 8; ++n) {
      int64_t v = c[row][n] + acc[n];
      if (s.satfinite)
        v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
      c[row][n] = v;
    }
  }
  for (unsigned r = 0; r < s.regsD; ++r) {
    uint32_t *v = w.r32(o[r]);
    for (unsigned i = 0; i < 32; ++i)
      v[i] = uint32_t(c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2]);
  }
}

/// One-bit matrices: and or xor, then popc.
void mmaBits(Warp &w, const Inst &in, uint32_t mask) {
  if (!wholeWarp(w, in, mask))
    return;
  Shape s = shapeOf(in);
  const uint32_t *o = in.ops();
  const uint32_t *ra = o + s.regsD, *rb = ra + s.regsA, *rc = rb + s.regsB;
  uint32_t a[16][128], b[128][8], c[16][8];
  auto word = [](uint32_t v, unsigned) { return v; };
  gatherA(w, ra, s.regsA, s.m, a, word, 1);
  gatherB(w, rb, s.regsB, b, word, 1);
  for (unsigned r = 0; r < s.regsC; ++r) {
    const uint32_t *v = w.r32(rc[r]);
    for (unsigned i = 0; i < 32; ++i)
      c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2] = v[i];
  }
  for (unsigned row = 0; row < s.m; ++row)
    for (unsigned n = 0; n < 8; ++n)
      for (unsigned k = 0; k < s.regsB * 4u; ++k)
        c[row][n] += uint32_t(__builtin_popcount(
            s.satfinite ? a[row][k] & b[k][n] : a[row][k] ^ b[k][n]));
  for (unsigned r = 0; r < s.regsD; ++r) {
    uint32_t *v = w.r32(o[r]);
    for (unsigned i = 0; i < 32; ++i)
      v[i] = c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2];
  }
}

void mmaDouble(Warp &w, const Inst &in, uint32_t mask) {
  if (!wholeWarp(w, in, mask))
    return;
  Shape s = shapeOf(in);
  const uint32_t *o = in.ops();
  const uint32_t *ra = o + s.regsD, *rb = ra + s.regsA, *rc = rb + s.regsB;
  double a[16][16], b[16][8], c[16][8];
  unsigned halves = s.m / 8;
  for (unsigned r = 0; r < s.regsA; ++r)
    for (unsigned i = 0; i < 32; ++i)
      a[(r % halves) * 8 + i / 4][(r / halves) * 4 + i % 4] =
          slot<double>(w, ra[r])[i];
  for (unsigned r = 0; r < s.regsB; ++r)
    for (unsigned i = 0; i < 32; ++i)
      b[r * 4 + i % 4][i / 4] = slot<double>(w, rb[r])[i];
  for (unsigned r = 0; r < s.regsC; ++r)
    for (unsigned i = 0; i < 32; ++i)
      c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2] = slot<double>(w, rc[r])[i];
  for (unsigned row = 0; row < s.m; ++row)
    for (unsigned k = 0; k < s.k; ++k)
      for (unsigned n = 0; n < 8; ++n)
        c[row][n] = __builtin_fma(a[row][k], b[k][n], c[row][n]);
  for (unsigned r = 0; r < s.regsD; ++r)
    for (unsigned i = 0; i < 32; ++i)
      slot<double>(w, o[r])[i] = c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2];
}

Elt eltOf(std::string_view t) {
  return t == "f16"    ? Elt::F16
         : t == "bf16" ? Elt::BF16
         : t == "tf32" ? Elt::TF32
         : t == "e4m3" ? Elt::E4M3
         : t == "e5m2" ? Elt::E5M2
         : t == "s8"   ? Elt::S8
         : t == "u8"   ? Elt::U8
         : t == "s4"   ? Elt::S4
         : t == "u4"   ? Elt::U4
         : t == "b1"   ? Elt::B1
                       : Elt::F64;
}

/// Groups: sync aligned shape row col [satfinite] d a b c [op].
void buildMma(Builder &b) {
  Shape s{};
  std::string_view shape = b.group(2);
  size_t n8 = shape.find("n8k");
  s.m = uint8_t(std::atoi(std::string(shape.substr(1, n8 - 1)).c_str()));
  unsigned k = unsigned(std::atoi(std::string(shape.substr(n8 + 3)).c_str()));
  s.a = eltOf(b.group(7));
  s.b = eltOf(b.group(8));
  std::string_view d = b.group(6), c = b.group(9);
  s.halfD = d == "f16";
  s.halfC = c == "f16";
  s.satfinite = b.has(5);
  if (s.a == Elt::B1)
    s.satfinite = b.is(10, "and");
  unsigned bits = bitsOfElt(s.a), reg = s.a == Elt::F64 ? 64 : 32;
  s.k = uint8_t(k);
  s.regsA = uint8_t(s.m * k * bits / 32 / reg);
  s.regsB = uint8_t(8 * k * bits / 32 / reg);
  s.regsC = uint8_t(s.m * 8 / 32 / (s.halfC ? 2 : 1));
  s.regsD = uint8_t(s.m * 8 / 32 / (s.halfD ? 2 : 1));
  if (bitsOfElt(s.a) != bitsOfElt(s.b))
    return b.fail("expected elements of one width in 'mma'");
  const char *names[] = {"d", "a", "b", "c"};
  unsigned want[] = {s.regsD, s.regsA, s.regsB, s.regsC};
  for (unsigned i = 0; i < 4; ++i)
    if (b.counts[i] != want[i])
      return b.fail(std::string("expected ") + std::to_string(want[i]) +
                    " registers for " + names[i] + " of 'mma', but got " +
                    std::to_string(b.counts[i]));
  uint8_t raw[12] = {};
  std::memcpy(raw, &s, sizeof(s));
  std::memcpy(&b.inst.imm, raw, 8);
  std::memcpy(&b.inst.aux, raw + 8, 4);
  switch (s.a) {
  case Elt::F64:
    b.inst.fn = mmaDouble;
    break;
  case Elt::B1:
    b.inst.fn = mmaBits;
    break;
  case Elt::S8:
  case Elt::U8:
  case Elt::S4:
  case Elt::U4:
    b.inst.fn = mmaInt;
    break;
  default:
    b.inst.fn = pickFloat(s);
  }
}

#define MMA(SHAPE, TYPES, PTX, SM)                                             \
  {"mma",                                                                      \
   "sync aligned " SHAPE " row col " TYPES,                                    \
   "=v32 v32 v32 v32",                                                         \
   PTX,                                                                        \
   SM,                                                                         \
   buildMma}
const Row rows[] = {
    {"ldmatrix", "sync aligned m8n8 x1|x2|x4 [trans] [shared|shared::cta] b16",
     "=v32 m", 65, 75, buildMatrixAccess},
    {"stmatrix", "sync aligned m8n8 x1|x2|x4 [trans] [shared|shared::cta] b16",
     "m v32", 78, 90, buildMatrixAccess},
    {"movmatrix", "sync aligned m8n8 trans b16", "=b32 b32", 78, 75,
     buildMovmatrix},
    MMA("m16n8k8", "[satfinite] f16|f32 f16 f16 f16|f32", 65, 75),
    MMA("m16n8k16", "[satfinite] f16|f32 f16 f16 f16|f32", 70, 80),
    MMA("m16n8k8|m16n8k16", "[satfinite] f32 bf16 bf16 f32", 70, 80),
    MMA("m16n8k4|m16n8k8", "[satfinite] f32 tf32 tf32 f32", 70, 80),
    MMA("m8n8k16", "[satfinite] s32 s8|u8 s8|u8 s32", 65, 75),
    MMA("m16n8k16|m16n8k32", "[satfinite] s32 s8|u8 s8|u8 s32", 70, 80),
    MMA("m8n8k32", "[satfinite] s32 s4|u4 s4|u4 s32", 65, 75),
    MMA("m16n8k32|m16n8k64", "[satfinite] s32 s4|u4 s4|u4 s32", 70, 80),
    MMA("m16n8k32|m16n8k16", "[satfinite] f32|f16 e4m3|e5m2 e4m3|e5m2 f32|f16",
        84, 89),
    MMA("m8n8k128|m16n8k128|m16n8k256",
        "[satfinite] s32 b1 b1 s32 xor|and popc", 70, 75),
    {"mma", "sync aligned m8n8k4 row col [satfinite] f64 f64 f64 f64",
     "=v64 v64 v64 v64", 70, 80, buildMma},
    {"mma",
     "sync aligned m16n8k4|m16n8k8|m16n8k16 row col [satfinite] f64 f64 f64 "
     "f64",
     "=v64 v64 v64 v64", 78, 90, buildMma},
};
#undef MMA

} // namespace

void addMatrixRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
