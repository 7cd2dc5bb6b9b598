//===- Wgmma.cpp - wgmma.mma_async ----------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp's part of an m64nNkK product: sixteen rows. Numbers are as those of
// mma: exact products, added in float in the order of k by fused
// multiply-adds. Accumulators stay in their registers; A is spread so that each
// lane finds its row, and B, converted once for the four warps of a group, lies
// so that four neighbouring numbers are those of four neighbouring lanes.
//
//===----------------------------------------------------------------------===//
#include "Async.h"
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

enum Element : uint8_t { F16, BF16, TF32, E4M3, E5M2, S8, U8 };
constexpr unsigned bytesOf(Element e) {
  return e == TF32 ? 4 : e == F16 || e == BF16 ? 2 : 1;
}
template <Element E>
using NumberOf = std::conditional_t<E == S8 || E == U8, int32_t, float>;

struct ByteTable {
  float v[2][256];
  ByteTable() {
    for (uint32_t i = 0; i < 256; ++i) {
      v[0][i] = float(valueOf(i, formatE4M3));
      v[1][i] = float(valueOf(i, formatE5M2));
    }
  }
};

/// The elements of sixteen bytes (or of a register: four).
template <Element E, unsigned Bytes>
inline void numbers(const uint8_t *from, NumberOf<E> *to) {
  constexpr unsigned n = Bytes / bytesOf(E);
  if constexpr (E == TF32) {
    for (unsigned i = 0; i < n; ++i) {
      uint32_t v;
      std::memcpy(&v, from + 4 * i, 4);
      to[i] = floatOf(v & 0xffffe000u);
    }
  } else if constexpr (E == F16 || E == BF16) {
    uint16_t h[n];
    std::memcpy(h, from, Bytes);
    FI_EMU_VECTORIZE
    for (unsigned i = 0; i < n; ++i)
      to[i] = E == F16 ? halfToFloat(h[i]) : bf16ToFloat(h[i]);
  } else if constexpr (E == S8 || E == U8) {
    for (unsigned i = 0; i < n; ++i)
      to[i] = E == S8 ? int32_t(int8_t(from[i])) : int32_t(from[i]);
  } else {
    static const ByteTable table;
    for (unsigned i = 0; i < n; ++i)
      to[i] = table.v[E == E5M2][from[i]];
  }
}

/// A, spread: [k][half of the rows][lane].
template <Element E>
void spreadA(Warp &w, const WgmmaForm &form, const WgmmaOp &op,
             NumberOf<E> *out) {
  using T = NumberOf<E>;
  constexpr unsigned bytes = bytesOf(E), k = 32 / bytes, per = 16 / bytes;
  T rows[16][k];
  if (form.fromRegisters) {
    constexpr unsigned each = 4 / bytes; // of a register
    // Rows of the upper half, of the lower; then the next columns.
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned lane = 0; lane < 32; ++lane)
        numbers<E, 4>(
            reinterpret_cast<const uint8_t *>(&op.registersA[r][lane]),
            &rows[lane / 4 + r % 2 * 8][r / 2 * (k / 2) + lane % 4 * each]);
  } else {
    const uint8_t *shared = sharedBytesOf(w);
    if (op.a.alongK) {
      for (unsigned r = 0; r < 16; ++r)
        for (unsigned e = 0; e < k; e += per)
          numbers<E, 16>(shared + op.a.at(op.rank * 16 + r, e), &rows[r][e]);
    } else {
      T chunk[per];
      for (unsigned kk = 0; kk < k; ++kk)
        for (unsigned r = 0; r < 16; r += per) {
          numbers<E, 16>(shared + op.a.at(kk, op.rank * 16 + r), chunk);
          for (unsigned i = 0; i < per && r + i < 16; ++i)
            rows[r + i][kk] = chunk[i];
        }
    }
  }
  for (unsigned kk = 0; kk < k; ++kk)
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned g = 0; g < 8; ++g) {
        T v = rows[8 * half + g][kk];
        v = op.negative ? T(-v) : v;
        T *to = out + (kk * 2 + half) * 32 + g * 4;
        to[0] = to[1] = to[2] = to[3] = v;
      }
}

/// B: [k][n / 8][n % 2][n % 8 / 2].
template <Element E>
void panelB(Warp &w, const WgmmaForm &form, const WgmmaOp &op,
            NumberOf<E> *out) {
  using T = NumberOf<E>;
  constexpr unsigned bytes = bytesOf(E), k = 32 / bytes, per = 16 / bytes;
  const uint8_t *shared = sharedBytesOf(w);
  unsigned n = form.n;
  auto place = [](unsigned column) {
    return column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
  };
  T chunk[per];
  if (op.b.alongK) {
    for (unsigned column = 0; column < n; ++column)
      for (unsigned e = 0; e < k; e += per) {
        numbers<E, 16>(shared + op.b.at(column, e), chunk);
        T *to = out + place(column);
        for (unsigned i = 0; i < per; ++i)
          to[(e + i) * n] = chunk[i];
      }
    return;
  }
  for (unsigned kk = 0; kk < k; ++kk)
    for (unsigned column = 0; column < n; column += per) {
      numbers<E, 16>(shared + op.b.at(kk, column), chunk);
      for (unsigned i = 0; i < per && column + i < n; ++i)
        out[kk * n + place(column + i)] = chunk[i];
    }
}

#if defined(__clang__) && __has_builtin(__builtin_elementwise_fma)
template <class T> using Vector8 = T __attribute__((vector_size(32)));
template <class T> using Vector4 = T __attribute__((vector_size(16)));
/// Eight columns and eight rows (times four lanes): 8 chains of additions.
template <class T, unsigned K>
inline void multiply(const T *a, const T *b, unsigned n, T *c0, T *c1) {
  Vector8<T> acc0[4], acc1[4];
  std::memcpy(acc0, c0, sizeof(acc0));
  std::memcpy(acc1, c1, sizeof(acc1));
#pragma clang loop unroll(disable)
  for (unsigned k = 0; k < K; ++k) {
    Vector4<T> b0, b1;
    std::memcpy(&b0, b + k * n, sizeof(b0));
    std::memcpy(&b1, b + k * n + 4, sizeof(b1));
    Vector8<T> x = __builtin_shufflevector(b0, b0, 0, 1, 2, 3, 0, 1, 2, 3);
    Vector8<T> y = __builtin_shufflevector(b1, b1, 0, 1, 2, 3, 0, 1, 2, 3);
#pragma clang loop unroll(full)
    for (unsigned v = 0; v < 4; ++v) {
      Vector8<T> row;
      std::memcpy(&row, a + k * 64 + 8 * v, sizeof(row));
      if constexpr (std::is_floating_point_v<T>) {
        acc0[v] = __builtin_elementwise_fma(row, x, acc0[v]);
        acc1[v] = __builtin_elementwise_fma(row, y, acc1[v]);
      } else {
        acc0[v] += row * x;
        acc1[v] += row * y;
      }
    }
  }
  std::memcpy(c0, acc0, sizeof(acc0));
  std::memcpy(c1, acc1, sizeof(acc1));
}
#else
template <class T, unsigned K>
inline void multiply(const T *a, const T *b, unsigned n, T *c0, T *c1) {
  for (unsigned k = 0; k < K; ++k)
    for (unsigned i = 0; i < 32; ++i) {
      T row = a[k * 64 + i], x = b[k * n + i % 4], y = b[k * n + 4 + i % 4];
      if constexpr (std::is_floating_point_v<T>) {
        c0[i] = __builtin_fmaf(row, x, c0[i]);
        c1[i] = __builtin_fmaf(row, y, c1[i]);
      } else {
        c0[i] += row * x;
        c1[i] += row * y;
      }
    }
}
#endif

inline int32_t saturated(int64_t v) {
  return int32_t(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

template <Element A, Element B>
void product(Warp &w, const Inst &in, const WgmmaForm &form,
             const WgmmaOp &op) {
  using T = NumberOf<A>;
  constexpr unsigned K = 32 / bytesOf(A);
  alignas(64) T a[K * 64];
  spreadA<A>(w, form, op, a);
  bool fresh;
  T *b = reinterpret_cast<T *>(wgmmaPanel(w, op, K * form.n, fresh));
  if (fresh)
    panelB<B>(w, form, op, b);
  const uint32_t *d = in.list + sizeof(WgmmaForm) / 4;
  alignas(64) T c0[32], c1[32];
  for (unsigned j = 0; j < form.n / 8; ++j)
    for (unsigned half = 0; half < 2; ++half) {
      uint32_t *v0 = w.r32(d[form.halfD ? 2 * j + half : 4 * j + 2 * half]);
      uint32_t *v1 = form.halfD ? v0 : w.r32(d[4 * j + 2 * half + 1]);
      bool keep = op.scaleD && !form.saturate;
      if (!keep) {
        std::memset(c0, 0, sizeof(c0));
        std::memset(c1, 0, sizeof(c1));
      } else if (form.halfD) {
        for (unsigned i = 0; i < 32; ++i) {
          c0[i] = T(halfToFloat(uint16_t(v0[i])));
          c1[i] = T(halfToFloat(uint16_t(v0[i] >> 16)));
        }
      } else {
        std::memcpy(c0, v0, sizeof(c0));
        std::memcpy(c1, v1, sizeof(c1));
      }
      multiply<T, K>(a + half * 32, b + 8 * j, form.n, c0, c1);
      if constexpr (std::is_floating_point_v<T>) {
        if (form.halfD) {
          for (unsigned i = 0; i < 32; ++i)
            v0[i] = uint32_t(floatToHalf(c0[i])) | uint32_t(floatToHalf(c1[i]))
                                                       << 16;
          continue;
        }
        for (unsigned i = 0; i < 32; ++i) {
          v0[i] = bitsOf(canonical(c0[i]));
          v1[i] = bitsOf(canonical(c1[i]));
        }
      } else if (form.saturate) {
        for (unsigned i = 0; i < 32; ++i) {
          int64_t x = op.scaleD ? int32_t(v0[i]) : 0;
          int64_t y = op.scaleD ? int32_t(v1[i]) : 0;
          v0[i] = uint32_t(saturated(x + c0[i]));
          v1[i] = uint32_t(saturated(y + c1[i]));
        }
      } else {
        std::memcpy(v0, c0, sizeof(c0));
        std::memcpy(v1, c1, sizeof(c1));
      }
    }
}

using Compute = void (*)(Warp &, const Inst &, const WgmmaForm &,
                         const WgmmaOp &);
Compute computeOf(uint8_t a, uint8_t b) {
  switch (a) {
  case F16:
    return product<F16, F16>;
  case BF16:
    return product<BF16, BF16>;
  case TF32:
    return product<TF32, TF32>;
  case E4M3:
    return b == E4M3 ? product<E4M3, E4M3> : product<E4M3, E5M2>;
  case E5M2:
    return b == E4M3 ? product<E5M2, E4M3> : product<E5M2, E5M2>;
  case S8:
    return b == S8 ? product<S8, S8> : product<S8, U8>;
  default:
    return b == S8 ? product<U8, S8> : product<U8, U8>;
  }
}

//===- Instructions -------------------------------------------------------===//

// Behind the form in the list: d, a (registers) or its descriptor, b, scale-d.
void mmaAsync(Warp &w, const Inst &in, uint32_t m) {
  if (!wholeWarp(w, in, m))
    return;
  const WgmmaForm &form = *reinterpret_cast<const WgmmaForm *>(in.list);
  const uint32_t *o = in.list + sizeof(WgmmaForm) / 4 + form.countD;
  WgmmaOp op;
  auto uniform = [&](uint32_t slotIndex, uint64_t &out) {
    const uint64_t *v = w.r64(slotIndex);
    out = v[0];
    for (unsigned i = 1; i < 32; ++i)
      if (v[i] != out) {
        wgmmaRefuse(w, in, "the lanes of the warp give different descriptors");
        return false;
      }
    return true;
  };
  if (form.fromRegisters) {
    for (unsigned r = 0; r < 4; ++r)
      std::memcpy(op.registersA[r], w.r32(o[r]), 128);
    o += 4;
  } else if (!uniform(*o++, op.descriptors[0])) {
    return;
  }
  if (!uniform(o[0], op.descriptors[1]))
    return;
  uint32_t scale = w.pred(o[1]);
  if (scale != 0 && scale != fullMask)
    return wgmmaRefuse(w, in, "the lanes of the warp differ in scale-d");
  op.scaleD = scale != 0;
  op.negative = in.aux;
  const char *error = nullptr;
  if ((!form.fromRegisters && !matrixLayout(op.descriptors[0], form.bytes,
                                            form.transposeA, op.a, error)) ||
      !matrixLayout(op.descriptors[1], form.bytes, form.transposeB, op.b,
                    error))
    return wgmmaRefuse(w, in, error);
  wgmmaIssue(w, in, form, op);
}

Element elementOf(std::string_view t) {
  return t == "f16"    ? F16
         : t == "bf16" ? BF16
         : t == "tf32" ? TF32
         : t == "e4m3" ? E4M3
         : t == "e5m2" ? E5M2
         : t == "s8"   ? S8
                       : U8;
}

/// Groups: mma_async sync aligned shape [satfinite] d a b.
void buildMmaAsync(Builder &b) {
  WgmmaForm form{};
  std::string_view shape = b.group(3);
  size_t k = shape.find('k');
  form.n = uint32_t(std::atoi(std::string(shape.substr(4, k - 4)).c_str()));
  form.k = uint32_t(std::atoi(std::string(shape.substr(k + 1)).c_str()));
  bool ints = b.match.groups.size() == 8;
  size_t first = ints ? 5 : 4;
  form.saturate = ints && b.has(4);
  form.typeA = elementOf(b.group(first + 1));
  form.typeB = elementOf(b.group(first + 2));
  form.bytes = uint8_t(bytesOf(Element(form.typeA)));
  form.halfD = b.is(first, "f16");
  form.countD = form.n / (form.halfD ? 4 : 2);
  form.fromRegisters = b.counts[1] != 1;
  const char *op = "'wgmma.mma_async'";
  if (b.counts[0] != form.countD)
    return b.fail("expected " + std::to_string(form.countD) +
                  " registers for d of " + op + ", but got " +
                  std::to_string(b.counts[0]));
  if (form.fromRegisters && b.counts[1] != 4)
    return b.fail(std::string("expected 4 registers for a of ") + op +
                  ", but got " + std::to_string(b.counts[1]));
  uint32_t at = form.countD;
  for (uint32_t i = 0; i < b.counts[1]; ++i)
    if (b.widths[at + i] != (form.fromRegisters ? 4 : 8))
      return b.fail(std::string("expected a of ") + op +
                    " as a descriptor of 64 bits or registers of 32");
  at += b.counts[1];
  // Numbers behind scale-d: signs, then transpositions.
  size_t operand = 4, have = b.ast.operands.size();
  bool transposable = form.bytes == 2;
  size_t want =
      ints ? 4 : 6 + (transposable ? (form.fromRegisters ? 1 : 2) : 0);
  if (have != want)
    return b.fail(std::string("expected ") + std::to_string(want) +
                  " operands of " + op + " in this form, but got " +
                  std::to_string(have));
  bool negative = false;
  auto number = [&](int64_t least, int64_t most, int64_t &out) {
    const Operand &o = b.ast.operands[operand++];
    out = o.value;
    if (o.kind == Operand::Int && (o.value == least || o.value == most))
      return true;
    b.fail("expected " + std::to_string(least) + " or " + std::to_string(most) +
           " as operand " + std::to_string(operand) + " of " + op);
    return false;
  };
  int64_t v;
  if (!ints) {
    for (int i = 0; i < 2; ++i) {
      if (!number(-1, 1, v))
        return;
      negative ^= v < 0;
    }
    if (transposable && !form.fromRegisters) {
      if (!number(0, 1, v))
        return;
      form.transposeA = v != 0;
    }
    if (transposable) {
      if (!number(0, 1, v))
        return;
      form.transposeB = v != 0;
    }
  }
  form.compute = computeOf(form.typeA, form.typeB);
  std::vector<uint32_t> words(sizeof(WgmmaForm) / 4);
  static_assert(sizeof(WgmmaForm) % 4 == 0);
  std::memcpy(words.data(), &form, sizeof(form));
  // d, a, b, scale-d.
  words.insert(words.end(), b.slots.begin(), b.slots.begin() + at + 2);
  b.keep(std::move(words));
  b.inst.aux = negative;
  b.inst.fn = mmaAsync;
}

void fenceHandler(Warp &w, const Inst &in, uint32_t m) {
  if (wholeWarp(w, in, m))
    wgmmaFence(w, in);
}
void commitHandler(Warp &w, const Inst &in, uint32_t m) {
  if (wholeWarp(w, in, m))
    wgmmaCommit(w, in);
}
void waitHandler(Warp &w, const Inst &in, uint32_t m) {
  if (wholeWarp(w, in, m))
    wgmmaWait(w, in, in.aux);
}
void buildGroup(Builder &b) {
  b.inst.fn = b.is(0, "fence")          ? fenceHandler
              : b.is(0, "commit_group") ? commitHandler
                                        : waitHandler;
  if (!b.is(0, "wait_group"))
    return;
  const Operand &n = b.ast.operands[0];
  if (n.kind != Operand::Int || n.value < 0 || n.value > 7)
    return b.fail("expected 0 to 7 as number of groups in 'wgmma.wait_group'");
  b.inst.aux = uint32_t(n.value);
}

void maxRegisters(Warp &w, const Inst &in, uint32_t m) {
  if (wholeWarp(w, in, m))
    setMaxRegisters(w, in, in.aux, in.count);
}
void buildMaxRegisters(Builder &b) {
  const Operand &n = b.ast.operands[0];
  if (n.kind != Operand::Int || n.value < 24 || n.value > 256 || n.value % 8)
    return b.fail("expected a multiple of 8 of 24 to 256 as number of "
                  "registers in 'setmaxnreg'");
  b.inst.aux = uint32_t(n.value);
  b.inst.count = b.is(0, "inc");
  b.inst.fn = maxRegisters;
}

#define MMA(SHAPES, TYPES, OPERANDS)                                           \
  {"wgmma",                                                                    \
   "mma_async sync aligned " SHAPES " " TYPES,                                 \
   "+v32 wg b64 p" OPERANDS,                                                   \
   80,                                                                         \
   90,                                                                         \
   buildMmaAsync}
const Row rows[] = {
    MMA("$wg16", "f16|f32 f16 f16", " b32 b32 b32 b32?"),
    MMA("$wg16", "f32 bf16 bf16", " b32 b32 b32 b32?"),
    MMA("$wg8", "f32 tf32 tf32", " b32 b32"),
    MMA("$wg32", "f16|f32 e4m3|e5m2 e4m3|e5m2", " b32 b32"),
    MMA("$wgint", "[satfinite] s32 s8|u8 s8|u8", ""),
    {"wgmma", "fence sync aligned", "", 80, 90, buildGroup},
    {"wgmma", "commit_group sync aligned", "", 80, 90, buildGroup},
    {"wgmma", "wait_group sync aligned", "u32", 80, 90, buildGroup},
    {"setmaxnreg", "inc|dec sync aligned u32", "b32", 80, 90,
     buildMaxRegisters},
};
#undef MMA

} // namespace

void addWgmmaRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
