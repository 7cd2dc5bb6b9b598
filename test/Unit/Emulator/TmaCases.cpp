//===- TmaCases.cpp - References of tma.cu --------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <algorithm>
#include <cstring>

namespace fi::emulator::test {
namespace {

using T = TensorMapConfig::Type;
using S = TensorMapConfig::Swizzle;

uint32_t bits(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return b;
}

/// A box that is read, where it goes, and from where.
struct Box {
  const char *label;
  T type;
  uint32_t rank, bytes; // of an element
  uint64_t dims[5];
  uint64_t strides[4];
  uint32_t box[5];
  uint32_t steps[5]; // element strides
  S swizzle;
  int32_t at[5];
  uint32_t offset; // in shared memory
  uint32_t fill;   // what is outside: 0 zeros, 1 NaNs
};

/// Where the sixteen bytes at an address go.
uint32_t swizzled(uint32_t address, S swizzle) {
  uint32_t chunk = address / 16, row = address / 128;
  switch (swizzle) {
  case S::None:
    break;
  case S::Bytes32:
    chunk ^= row & 1;
    break;
  case S::Bytes64:
    chunk ^= row & 3;
    break;
  case S::Bytes128:
    chunk ^= row & 7;
    break;
  }
  return chunk * 16 + address % 16;
}

/// Calls `f` with the byte of shared memory, the byte of the tensor, and
/// whether the tensor has it, for each element of the box. A row that is
/// shorter than the span of the swizzle takes all of it.
template <class F> void forElements(const Box &b, F f) {
  uint32_t count[5] = {1, 1, 1, 1, 1}, n[5];
  for (uint32_t d = 0; d < b.rank; ++d)
    count[d] = d ? (b.box[d] + b.steps[d] - 1) / b.steps[d] : b.box[d];
  uint32_t pitch =
      b.swizzle == S::None ? b.box[0] * b.bytes : 16u << uint32_t(b.swizzle);
  uint32_t row = b.offset;
  for (n[4] = 0; n[4] < count[4]; ++n[4])
    for (n[3] = 0; n[3] < count[3]; ++n[3])
      for (n[2] = 0; n[2] < count[2]; ++n[2])
        for (n[1] = 0; n[1] < count[1]; ++n[1], row += pitch)
          for (n[0] = 0; n[0] < count[0]; ++n[0]) {
            bool inside = true;
            uint64_t address = 0;
            for (uint32_t d = 0; d < b.rank; ++d) {
              int64_t x = int64_t(b.at[d]) + n[d] * (d ? b.steps[d] : 1);
              inside &= x >= 0 && uint64_t(x) < b.dims[d];
              address += uint64_t(x) * (d ? b.strides[d - 1] : b.bytes);
            }
            f(swizzled(row + n[0] * b.bytes, b.swizzle), address, inside);
          }
}

/// The map of a box; `tensor` is the size of what it is over, `bytes` what a
/// copy moves.
TensorMapConfig mapOf(const Box &b, uint64_t &tensor, uint32_t &bytes) {
  TensorMapConfig map;
  map.type = b.type;
  map.rank = b.rank;
  map.swizzle = b.swizzle;
  map.fill = b.fill;
  tensor = b.dims[0] * b.bytes;
  bytes = b.bytes;
  for (uint32_t d = 0; d < b.rank; ++d) {
    map.dims[d] = b.dims[d];
    map.box[d] = b.box[d];
    map.elementStrides[d] = b.steps[d];
    bytes *= d ? (b.box[d] + b.steps[d] - 1) / b.steps[d] : b.box[d];
    if (d) {
      map.strides[d - 1] = b.strides[d - 1];
      tensor += (b.dims[d] - 1) * b.strides[d - 1];
    }
  }
  return map;
}

KernelCase dumpCase(const Box &b) {
  uint64_t tensor;
  uint32_t boxBytes;
  TensorMapConfig map = mapOf(b, tensor, boxBytes);
  KernelCase c;
  c.module = "tma";
  c.target = "sm_90a";
  c.kernel = "dump_" + std::to_string(b.rank) + "d";
  c.label = b.label;
  c.block = {128};
  c.shared = 49152;
  Words source = Numbers(31).words((tensor + 3) / 4);
  c.arguments = {tensorMap(map, 5 + b.rank), output(49152 / 4),
                 scalar(b.offset), scalar(boxBytes), scalar(0xabababab)};
  for (uint32_t d = 0; d < b.rank; ++d)
    c.arguments.push_back(scalar(uint32_t(b.at[d])));
  c.arguments.push_back(hidden(input(source)));
  c.expected.assign(49152 / 4, 0xabababab);
  auto *to = reinterpret_cast<uint8_t *>(c.expected.data());
  const auto *from = reinterpret_cast<const uint8_t *>(source.data());
  forElements(b, [&](uint32_t place, uint64_t address, bool inside) {
    if (inside)
      std::memcpy(to + place, from + address, b.bytes);
    else // NaNs are 0x7ff7, as often as an element has room for it.
      for (uint32_t i = 0; i < b.bytes; ++i)
        to[place + i] = !b.fill ? 0 : i % 2 ? 0x7f : 0xf7;
  });
  return c;
}

KernelCase storeCase(const Box &b) {
  uint64_t tensor;
  uint32_t boxBytes;
  TensorMapConfig map = mapOf(b, tensor, boxBytes);
  KernelCase c;
  c.module = "tma";
  c.target = "sm_90a";
  c.kernel = "box_store";
  c.label = b.label;
  c.block = {64};
  c.shared = 16384;
  c.expected.assign((tensor + 3) / 4, 0xcdcdcdcd);
  c.arguments = {tensorMap(map, 4), scalar(b.offset), scalar(uint32_t(b.at[0])),
                 scalar(uint32_t(b.at[1])),
                 hidden(output(c.expected.size(), 0xcdcdcdcd))};
  Words from(16384 / 4);
  for (uint32_t i = 0; i < from.size(); ++i)
    from[i] = (i + 1) * 2654435761u;
  forElements(b, [&](uint32_t place, uint64_t address, bool inside) {
    if (inside)
      std::memcpy(reinterpret_cast<uint8_t *>(c.expected.data()) + address,
                  reinterpret_cast<const uint8_t *>(from.data()) + place,
                  b.bytes);
  });
  return c;
}

const Box boxes[] = {
    // The four swizzles at their full width, and where they begin.
    {"box_plain",
     T::U32,
     2,
     4,
     {64, 40},
     {256},
     {32, 40},
     {1, 1},
     S::None,
     {8, 0},
     0,
     0},
    {"box_swizzle32",
     T::U32,
     2,
     4,
     {64, 40},
     {256},
     {8, 40},
     {1, 1},
     S::Bytes32,
     {8, 0},
     0,
     0},
    {"box_swizzle64",
     T::U32,
     2,
     4,
     {64, 40},
     {256},
     {16, 40},
     {1, 1},
     S::Bytes64,
     {8, 0},
     0,
     0},
    {"box_swizzle128",
     T::U32,
     2,
     4,
     {64, 40},
     {256},
     {32, 40},
     {1, 1},
     S::Bytes128,
     {8, 0},
     0,
     0},
    {"box_swizzle128_shifted",
     T::U32,
     2,
     4,
     {64, 40},
     {256},
     {32, 12},
     {1, 1},
     S::Bytes128,
     {0, 3},
     1024 + 384,
     0},
    {"box_swizzle64_shifted",
     T::U16,
     2,
     2,
     {64, 40},
     {128},
     {32, 12},
     {1, 1},
     S::Bytes64,
     {0, 3},
     2048 + 128,
     0},
    {"box_swizzle32_shifted",
     T::U8,
     2,
     1,
     {64, 40},
     {64},
     {32, 12},
     {1, 1},
     S::Bytes32,
     {0, 3},
     128,
     0},
    // Rows that are shorter than the swizzle.
    {"box_swizzle128_rows64",
     T::F16,
     2,
     2,
     {128, 40},
     {256},
     {32, 40},
     {1, 1},
     S::Bytes128,
     {32, 0},
     0,
     0},
    {"box_swizzle64_rows16",
     T::F16,
     2,
     2,
     {128, 40},
     {256},
     {8, 40},
     {1, 1},
     S::Bytes64,
     {32, 0},
     0,
     0},
    {"box_swizzle32_rows16",
     T::U8,
     2,
     1,
     {64, 40},
     {64},
     {16, 40},
     {1, 1},
     S::Bytes32,
     {32, 0},
     128,
     0},
    {"box_swizzle128_rows48",
     T::F32,
     3,
     4,
     {32, 8, 3},
     {128, 1024},
     {12, 5, 3},
     {1, 1, 1},
     S::Bytes128,
     {4, 2, 0},
     384,
     0},
    // Edges of the tensor.
    {"box_edges",
     T::F16,
     2,
     2,
     {40, 20},
     {80},
     {64, 16},
     {1, 1},
     S::Bytes128,
     {-8, -3},
     0,
     0},
    {"box_edges_far",
     T::F32,
     2,
     4,
     {20, 20},
     {80},
     {16, 16},
     {1, 1},
     S::None,
     {12, 11},
     0,
     0},
    {"box_outside",
     T::F32,
     2,
     4,
     {20, 20},
     {80},
     {16, 8},
     {1, 1},
     S::None,
     {-100, 40},
     0,
     0},
    {"box_nans",
     T::BF16,
     2,
     2,
     {40, 20},
     {80},
     {32, 16},
     {1, 1},
     S::Bytes64,
     {24, 12},
     0,
     1},
    {"box_nans_f16",
     T::F16,
     2,
     2,
     {40, 20},
     {80},
     {32, 16},
     {1, 1},
     S::Bytes64,
     {24, 12},
     0,
     1},
    {"box_nans_f32",
     T::F32,
     2,
     4,
     {20, 20},
     {80},
     {16, 16},
     {1, 1},
     S::Bytes64,
     {12, 12},
     0,
     1},
    // Every second and third row.
    {"box_steps",
     T::U16,
     3,
     2,
     {64, 24, 6},
     {128, 3072},
     {64, 15, 5},
     {1, 2, 3},
     S::Bytes128,
     {0, 1, 1},
     0,
     0},
    {"box_1d", T::U8, 1, 1, {1000}, {}, {256}, {1}, S::None, {896}, 256, 0},
    // Pages: dimensions in another order than memory, strides that are no
    // multiples of each other.
    {"box_pages",
     T::BF16,
     4,
     2,
     {128, 16, 2, 7},
     {512, 256, 8208},
     {64, 16, 1, 1},
     {1, 1, 1, 1},
     S::Bytes128,
     {64, 0, 1, 5},
     4096,
     0},
    {"box_5d",
     T::U64,
     5,
     8,
     {16, 3, 4, 2, 3},
     {128, 384, 1536, 3072},
     {16, 2, 3, 2, 2},
     {1, 1, 1, 1, 1},
     S::Bytes128,
     {0, 1, 2, 0, 2},
     0,
     0},
};

const Box stores[] = {
    {"store_swizzle128_rows64",
     T::F16,
     2,
     2,
     {128, 40},
     {256},
     {32, 40},
     {1, 1},
     S::Bytes128,
     {32, 0},
     0,
     0},
    {"store_swizzle64_rows16",
     T::F16,
     2,
     2,
     {128, 40},
     {256},
     {8, 40},
     {1, 1},
     S::Bytes64,
     {32, 0},
     128,
     0},
    {"store_edges",
     T::F16,
     2,
     2,
     {40, 20},
     {80},
     {64, 16},
     {1, 1},
     S::Bytes128,
     {16, 12},
     1024,
     0},
};

TensorMapConfig map2d(T type, uint32_t bytes, uint64_t columns, uint64_t rows,
                      uint32_t boxColumns, uint32_t boxRows, S swizzle) {
  TensorMapConfig map;
  map.type = type;
  map.rank = 2;
  map.dims[0] = columns;
  map.dims[1] = rows;
  map.strides[0] = columns * bytes;
  map.box[0] = boxColumns;
  map.box[1] = boxRows;
  map.swizzle = swizzle;
  return map;
}

KernelCase tmaCase(const char *kernel, Dim3 grid, uint32_t threads,
                   uint32_t dynamic = 0) {
  KernelCase c;
  c.module = "tma";
  c.kernel = kernel;
  c.target = "sm_90a";
  c.grid = grid;
  c.block = {threads};
  c.shared = dynamic;
  return c;
}

} // namespace

std::vector<KernelCase> tmaCases() {
  std::vector<KernelCase> cases;
  for (const Box &b : boxes)
    cases.push_back(dumpCase(b));
  for (const Box &b : stores)
    cases.push_back(storeCase(b));
  {
    const uint32_t columns = 76, rows = 75;
    Words in = Numbers(32).words(columns * rows), e(columns * rows);
    for (size_t i = 0; i < e.size(); ++i)
      e[i] = in[i] * 2;
    KernelCase c = tmaCase("tensor_store", {3}, 64, 8192);
    TensorMapConfig map = map2d(T::U32, 4, columns, rows, 32, 32, S::Bytes128);
    c.arguments = {tensorMap(map, 3), tensorMap(map, 4), scalar(rows),
                   hidden(input(in)), hidden(output(columns * rows, 7))};
    c.expected = e;
    cases.push_back(c);
  }
  {
    Words in(5 * 512), e(12 * 20, bits(0.5f));
    Numbers numbers(33);
    for (uint32_t &v : in)
      v = bits(numbers.small());
    // The box is larger than the tensor in both directions.
    for (uint32_t r = 0; r < 20; ++r)
      for (uint32_t k = 0; k < 12; ++k) {
        float s = 0.5f;
        for (uint32_t b = 0; b < 5; ++b) {
          float v;
          std::memcpy(&v, &in[b * 512 + r * 16 + k], 4);
          s += v;
        }
        e[r * 12 + k] = bits(s);
      }
    KernelCase c = tmaCase("tensor_reduce", {5}, 64);
    c.arguments = {tensorMap(map2d(T::F32, 4, 12, 20, 16, 32, S::None), 2),
                   input(in), hidden(output(12 * 20, bits(0.5f)))};
    c.expected = e;
    cases.push_back(c);
  }
  {
    const uint32_t n = 11;
    Words in = Numbers(34).words(n * 256), e(n * 384);
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t t = 0; t < 96; ++t) {
        uint32_t v = 0;
        for (uint32_t k = 0; k < 256; k += 32)
          v = v * 5 + in[i * 256 + (k + t) % 256];
        for (uint32_t k = 0; k < 4; ++k)
          e[i * 384 + t * 4 + k] = v + k;
      }
    KernelCase c = tmaCase("bulk_ring", {1}, 128);
    c.arguments = {input(in), output(n * 384), scalar(n)};
    c.expected = e;
    cases.push_back(c);
  }
  {
    const uint32_t blocks = 6;
    Words in = Numbers(35).words(blocks * 256), e(256, 0);
    // Halves: 1, 2 or 3 times 0.25, whose sums are exact.
    for (uint32_t b = 0; b < blocks; ++b)
      for (uint32_t i = 0; i < 64; ++i) {
        static const uint32_t halves[] = {0x3400, 0x3800, 0x3a00, 0xb400};
        uint32_t &v = in[b * 256 + 64 + i];
        v = halves[v & 3] | halves[v >> 2 & 3] << 16;
      }
    auto quarters = [](uint32_t h) {
      return h == 0x3400 ? 1 : h == 0x3800 ? 2 : h == 0x3a00 ? 3 : -1;
    };
    auto half = [](int q) -> uint32_t { // q / 4
      if (q == 0)
        return 0;
      uint32_t v = bits(float(q) / 4);
      return (v >> 16 & 0x8000) | (((v >> 23 & 255) - 112) << 10) |
             (v >> 13 & 0x3ff);
    };
    for (uint32_t i = 0; i < 64; ++i) {
      int low = 0, high = 0;
      for (uint32_t b = 0; b < blocks; ++b) {
        const uint32_t *v = &in[b * 256 + i];
        e[i] += v[0];
        low += quarters(v[64] & 0xffff);
        high += quarters(v[64] >> 16);
        e[128 + i] = uint32_t(std::min(int32_t(e[128 + i]), int32_t(v[128])));
        e[192 + i] ^= v[192];
      }
      e[64 + i] = half(low) | half(high) << 16;
    }
    KernelCase c = tmaCase("bulk_reduce", {blocks}, 64);
    c.arguments = {input(in), output(256)};
    c.expected = e;
    cases.push_back(c);
  }
  {
    const uint32_t n = 9;
    Words in = Numbers(36).words(n * 128), e(n * 32);
    for (uint32_t i = 0; i < n; ++i)
      for (uint32_t l = 0; l < 32; ++l) {
        uint32_t v = 0;
        for (uint32_t k = 0; k < 128; ++k)
          v = v * 3 + (in[i * 128 + (k + l) % 128] ^ k);
        e[i * 32 + l] = v;
      }
    KernelCase c = tmaCase("mbarrier_states", {1}, 64);
    c.arguments = {input(in), output(n * 32), scalar(n)};
    c.expected = e;
    cases.push_back(c);
  }
  {
    // Rows of 48 words; the map that is passed is of another tensor.
    Words in = Numbers(37).words(20 * 48), e(256, 0);
    for (uint32_t r = 0; r < 8; ++r)
      for (uint32_t k = 0; k < 32; ++k)
        if (15 + r < 20)
          e[r * 32 + k] = in[(15 + r) * 48 + 4 + k];
    KernelCase c = tmaCase("map_replace", {1}, 64);
    c.arguments = {tensorMap(map2d(T::U32, 4, 40, 64, 32, 16, S::Bytes128), 4),
                   input(Words(32, 0)), input(in), output(256),
                   hidden(input(Words(40 * 64, 9)))};
    c.expected = e;
    cases.push_back(c);
  }
  return cases;
}

} // namespace fi::emulator::test
