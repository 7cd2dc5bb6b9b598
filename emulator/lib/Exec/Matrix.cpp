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
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

//===- Loads and stores ---------------------------------------------------===//

/// Eight rows of 16 bytes a matrix; lane i holds elements 2 * (i % 4) and the
/// next of row i / 4, or of column i / 4 with .trans.
void ldmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  uint32_t rows = n == 4 ? fullMask : (1u << (8 * n)) - 1;
  uint32_t ok =
      resolve(w, in, Space(in.bytes), rows, o[n], 16, Access::Read, lanes);
  uint16_t matrix[32][8] = {};
  for (unsigned r = 0; r < 8 * n; ++r)
    if (ok >> r & 1)
      std::memcpy(matrix[r], lanes.p[r], 16);
  for (unsigned k = 0; k < n; ++k) {
    uint32_t *d = w.r32(o[k]);
    for (unsigned i = 0; i < 32; ++i) {
      if (in.aux) {
        d[i] = matrix[8 * k + 2 * (i % 4)][i / 4] |
               uint32_t(matrix[8 * k + 2 * (i % 4) + 1][i / 4]) << 16;
      } else {
        std::memcpy(&d[i], &matrix[8 * k + i / 4][2 * (i % 4)], 4);
      }
    }
  }
}
void stmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  const uint32_t *o = in.ops();
  unsigned n = in.count;
  Lanes lanes;
  uint32_t rows = n == 4 ? fullMask : (1u << (8 * n)) - 1;
  uint32_t ok =
      resolve(w, in, Space(in.bytes), rows, o[0], 16, Access::Write, lanes);
  uint16_t matrix[32][8];
  for (unsigned k = 0; k < n; ++k) {
    const uint32_t *s = w.r32(o[1 + k]);
    for (unsigned i = 0; i < 32; ++i) {
      unsigned r = i / 4, c = 2 * (i % 4);
      if (in.aux) {
        matrix[8 * k + c][r] = uint16_t(s[i]);
        matrix[8 * k + c + 1][r] = uint16_t(s[i] >> 16);
      } else {
        matrix[8 * k + r][c] = uint16_t(s[i]);
        matrix[8 * k + r][c + 1] = uint16_t(s[i] >> 16);
      }
    }
  }
  for (unsigned r = 0; r < 8 * n; ++r)
    if (ok >> r & 1)
      std::memcpy(lanes.p[r], matrix[r], 16);
}
void movmatrix(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  uint16_t matrix[8][8];
  const uint32_t *s = w.r32(in.o[1]);
  uint32_t *d = w.r32(in.o[0]);
  for (unsigned i = 0; i < 32; ++i) {
    matrix[i / 4][2 * (i % 4)] = uint16_t(s[i]);
    matrix[i / 4][2 * (i % 4) + 1] = uint16_t(s[i] >> 16);
  }
  for (unsigned i = 0; i < 32; ++i)
    d[i] = matrix[2 * (i % 4)][i / 4] | uint32_t(matrix[2 * (i % 4) + 1][i / 4])
                                            << 16;
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

inline float loadTf32(uint32_t v, unsigned) { return floatOf(v & 0xffffe000u); }
inline float loadHalf(uint32_t v, unsigned e) {
  return halfToFloat(v >> (16 * e) & 0xffff);
}
inline float loadBf16(uint32_t v, unsigned e) {
  return bf16ToFloat(v >> (16 * e) & 0xffff);
}
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

void loadFloatA(Warp &w, const Shape &s, const uint32_t *regs,
                float (*a)[128]) {
  const ByteTable &t = byteTable();
  switch (s.a) {
  case Elt::F16:
    return gatherA(w, regs, s.regsA, s.m, a, loadHalf, 2);
  case Elt::BF16:
    return gatherA(w, regs, s.regsA, s.m, a, loadBf16, 2);
  case Elt::TF32:
    return gatherA(w, regs, s.regsA, s.m, a, loadTf32, 1);
  default:
    return gatherA(
        w, regs, s.regsA, s.m, a,
        [&](uint32_t v, unsigned e) {
          return t.v[s.a == Elt::E5M2][v >> (8 * e) & 0xff];
        },
        4);
  }
}
void loadFloatB(Warp &w, const Shape &s, const uint32_t *regs, float (*b)[8]) {
  const ByteTable &t = byteTable();
  switch (s.b) {
  case Elt::F16:
    return gatherB(w, regs, s.regsB, b, loadHalf, 2);
  case Elt::BF16:
    return gatherB(w, regs, s.regsB, b, loadBf16, 2);
  case Elt::TF32:
    return gatherB(w, regs, s.regsB, b, loadTf32, 1);
  default:
    return gatherB(
        w, regs, s.regsB, b,
        [&](uint32_t v, unsigned e) {
          return t.v[s.b == Elt::E5M2][v >> (8 * e) & 0xff];
        },
        4);
  }
}

void mmaFloat(Warp &w, const Inst &in, uint32_t mask) {
  if (!wholeWarp(w, in, mask))
    return;
  Shape s = shapeOf(in);
  const uint32_t *o = in.ops();
  const uint32_t *ra = o + s.regsD, *rb = ra + s.regsA, *rc = rb + s.regsB;
  alignas(64) float a[16][128], b[128][8], c[16][8];
  loadFloatA(w, s, ra, a);
  loadFloatB(w, s, rb, b);
  if (s.halfC) {
    for (unsigned r = 0; r < s.regsC; ++r) {
      const uint32_t *v = w.r32(rc[r]);
      for (unsigned i = 0; i < 32; ++i) {
        c[8 * r + i / 4][2 * (i % 4)] = loadHalf(v[i], 0);
        c[8 * r + i / 4][2 * (i % 4) + 1] = loadHalf(v[i], 1);
      }
    }
  } else {
    for (unsigned r = 0; r < s.regsC; ++r) {
      const float *v = slot<float>(w, rc[r]);
      for (unsigned i = 0; i < 32; ++i)
        c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2] = v[i];
    }
  }
  for (unsigned row = 0; row < s.m; row += 4) {
    float acc[4][8];
    std::memcpy(acc, c[row], sizeof(acc));
    for (unsigned k = 0; k < s.k; ++k)
      for (unsigned r = 0; r < 4; ++r)
        for (unsigned n = 0; n < 8; ++n)
          acc[r][n] = __builtin_fmaf(a[row + r][k], b[k][n], acc[r][n]);
    std::memcpy(c[row], acc, sizeof(acc));
  }
  if (s.halfD) {
    for (unsigned r = 0; r < s.regsD; ++r) {
      uint32_t *v = w.r32(o[r]);
      for (unsigned i = 0; i < 32; ++i) {
        const float *p = &c[8 * r + i / 4][2 * (i % 4)];
        v[i] = floatToHalf(p[0]) | floatToHalf(p[1]) << 16;
      }
    }
  } else {
    for (unsigned r = 0; r < s.regsD; ++r) {
      uint32_t *v = w.r32(o[r]);
      for (unsigned i = 0; i < 32; ++i)
        v[i] = bitsOf(canonical(c[8 * (r / 2) + i / 4][2 * (i % 4) + r % 2]));
    }
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
    b.inst.fn = mmaFloat;
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
