//===- NpyTest.cpp - reading and writing NumPy's files --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Npy.h"
#include "fi/Support/Random.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstring>
#include <zlib.h>

using namespace fi;
using testing::HasSubstr;

namespace {

std::string npy(std::string header, std::string data, char major = 1) {
  std::string out = "\x93NUMPY";
  out += major;
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  if (major > 1)
    out.append(2, '\0');
  return out + header + data;
}

std::string dict(std::string descr, std::string shape,
                 std::string fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran +
         ", 'shape': " + shape + ", }";
}

template <typename T> std::string bytesOf(std::vector<T> values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * sizeof(T));
}

HostTensor parse(std::string bytes, std::string name = "t.npy") {
  auto tensor = parseNpy(bytes, name);
  if (!tensor) {
    ADD_FAILURE() << llvm::toString(tensor.takeError());
    return HostTensor(DType::F32, {0});
  }
  return *tensor;
}

std::string errorOf(std::string bytes, std::string name = "t.npy") {
  auto tensor = parseNpy(bytes, name);
  if (tensor)
    return "no error";
  return llvm::toString(tensor.takeError());
}

TEST(Npy, ReadsEachElementType) {
  HostTensor f4 = parse(npy(dict("<f4", "(2, 1)"), bytesOf<float>({1.5, -2})));
  EXPECT_EQ(f4.getType(), DType::F32);
  EXPECT_EQ(f4.getShape(), llvm::ArrayRef<int64_t>({2, 1}));
  EXPECT_EQ(f4.getFloat({1, 0}), -2);
  HostTensor f2 = parse(npy(dict("<f2", "(1,)"), bytesOf<uint16_t>({0x3e00})));
  EXPECT_EQ(f2.getType(), DType::F16);
  EXPECT_EQ(f2.getFloat({0}), 1.5);
  HostTensor f8 = parse(npy(dict("<f8", "()"), bytesOf<double>({0.1})));
  EXPECT_EQ(f8.getRank(), 0);
  EXPECT_EQ(f8.getFloat({}), 0.1);
  HostTensor i4 = parse(npy(dict("<i4", "(1,)"), bytesOf<int32_t>({-7})));
  EXPECT_EQ(i4.getInteger({0}), -7);
  HostTensor i8 =
      parse(npy(dict("<i8", "(1,)"), bytesOf<int64_t>({int64_t(1) << 40})));
  EXPECT_EQ(i8.getInteger({0}), int64_t(1) << 40);
  HostTensor i1 = parse(npy(dict("|i1", "(1,)"), bytesOf<int8_t>({-1})));
  EXPECT_EQ(i1.getInteger({0}), -1);
  HostTensor b1 = parse(npy(dict("|b1", "(2,)"), bytesOf<uint8_t>({0, 1})));
  EXPECT_EQ(b1.getType(), DType::I1);
  EXPECT_EQ(b1.getInteger({1}), 1);
}

TEST(Npy, ReadsBFloat16) {
  std::string data = bytesOf<uint16_t>({0x3fc0});
  EXPECT_EQ(parse(npy(dict("<V2", "(1,)"), data)).getFloat({0}), 1.5);
  HostTensor named = parse(npy(dict("<u2", "(1,)"), data), "k.bf16.npy");
  EXPECT_EQ(named.getType(), DType::BF16);
  EXPECT_THAT(errorOf(npy(dict("<u2", "(1,)"), data)),
              HasSubstr("named *.bf16.npy"));
}

TEST(Npy, ReadsFloatsOfEightBitsByTheirFile) {
  std::string data = bytesOf<uint8_t>({0x3c, 0x81});
  HostTensor e4m3 = parse(npy(dict("|u1", "(2,)"), data), "k.f8E4M3FN.npy");
  EXPECT_EQ(e4m3.getType(), DType::F8E4M3FN);
  EXPECT_EQ(e4m3.getFloat({0}), 1.5);
  EXPECT_EQ(e4m3.getFloat({1}), -0x1p-9);
  HostTensor e5m2 = parse(npy(dict("|V1", "(2,)"), data), "k.f8E5M2.npy");
  EXPECT_EQ(e5m2.getFloat({0}), 1.0);
  EXPECT_EQ(e5m2.getFloat({1}), -0x1p-16);
  EXPECT_THAT(errorOf(npy(dict("|u1", "(2,)"), data)),
              HasSubstr("named *.f8E4M3FN.npy or *.f8E5M2.npy"));
}

TEST(Npy, ReordersFortranOrder) {
  // [[0, 1, 2], [3, 4, 5]] by columns.
  HostTensor tensor = parse(
      npy(dict("<i4", "(2, 3)", "True"), bytesOf<int32_t>({0, 3, 1, 4, 2, 5})));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(tensor.getInteger({i / 3, i % 3}), i);
}

TEST(Npy, ReadsNewerHeaders) {
  EXPECT_EQ(
      parse(npy(dict("<i4", "(1,)"), bytesOf<int32_t>({4}), 2)).getInteger({0}),
      4);
  EXPECT_THAT(errorOf(npy(dict("<i4", "(1,)"), bytesOf<int32_t>({4}), 4)),
              HasSubstr("expected version 1, 2 or 3"));
}

TEST(Npy, RefusesWithASentence) {
  std::string data = bytesOf<float>({1, 2});
  EXPECT_THAT(errorOf("PK"), HasSubstr("does not begin with"));
  EXPECT_THAT(errorOf("\x93NUMPY"), HasSubstr("truncated"));
  EXPECT_THAT(errorOf(npy(dict("<f4", "(3,)"), data)),
              HasSubstr("expected 12 bytes of elements, but got 8"));
  EXPECT_THAT(errorOf(npy(dict("<f4", "(1,)"), data)),
              HasSubstr("expected 4 bytes of elements, but got 8"));
  EXPECT_THAT(errorOf(npy(dict(">f4", "(2,)"), data)),
              HasSubstr("little-endian"));
  EXPECT_THAT(errorOf(npy(dict("<c8", "(1,)"), data)),
              HasSubstr("element type '<c8' is not supported"));
  EXPECT_THAT(errorOf(npy("{'descr': [('a', '<f4')], }", data)),
              HasSubstr("structured arrays"));
  EXPECT_THAT(errorOf(npy(dict("<f4", "(-2,)"), data)),
              HasSubstr("tuple of sizes"));
  EXPECT_THAT(errorOf(npy(dict("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"), data)),
              HasSubstr("at most 8 dimensions, but got 9"));
  // A product that overflows, also beside a zero.
  EXPECT_THAT(errorOf(npy(dict("<f4", "(4294967296, 4294967296, 0)"), "")),
              HasSubstr("more than 2^48 elements"));
  EXPECT_THAT(errorOf(npy("{'descr': '<f4'}", data)),
              HasSubstr("expected 'descr', 'fortran_order' and 'shape'"));
  EXPECT_THAT(errorOf(npy("", data)), HasSubstr("expected a dict"));
}

TEST(Npy, EveryPrefixIsRefused) {
  std::string whole = npy(dict("<f4", "(2,)"), bytesOf<float>({1, 2}));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(errorOf(whole.substr(0, size)), "no error") << size;
}

TEST(Npy, DamagedBytesNeverCrash) {
  std::string whole =
      npy(dict("<f4", "(2, 3)"), bytesOf<float>({1, 2, 3, 4, 5, 6}));
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    for (uint64_t n = 1 + random.below(4); n > 0; --n)
      damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    auto tensor = parseNpy(damaged, "t.npy");
    if (!tensor)
      EXPECT_FALSE(llvm::toString(tensor.takeError()).empty());
  }
}

TEST(Npy, WritesWhatItReads) {
  for (DType type : {DType::F32, DType::F16, DType::BF16, DType::F64,
                     DType::I32, DType::I64, DType::I8, DType::I1})
    for (llvm::SmallVector<int64_t> shape :
         {llvm::SmallVector<int64_t>{}, {5}, {2, 3, 4}, {3, 0}}) {
      HostTensor tensor(type, shape);
      fillUniform(tensor, 3, 0, 1.4);
      std::string bytes = formatNpy(tensor);
      HostTensor again = parse(bytes);
      EXPECT_EQ(again.getType(), type);
      EXPECT_EQ(again.getShape(), tensor.getShape());
      size_t size = tensor.getNumElements() * getByteSize(type);
      EXPECT_EQ(std::memcmp(again.getData(), tensor.getData(), size), 0);
      EXPECT_EQ((bytes.size() - size) % 64, 0u);
    }
}

TEST(Npy, WritesStridedTensorsInOrder) {
  int32_t data[] = {0, 1, 2, 3, 4, 5};
  HostTensor transposed(DType::I32, {3, 2}, data, {1, 3});
  HostTensor again = parse(formatNpy(transposed));
  EXPECT_EQ(again.getInteger({2, 1}), 5);
  EXPECT_EQ(again.getInteger({1, 0}), 1);
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

void put16(std::string &out, unsigned value) {
  out += static_cast<char>(value & 0xff);
  out += static_cast<char>(value >> 8 & 0xff);
}
void put32(std::string &out, uint32_t value) {
  put16(out, value & 0xffff);
  put16(out, value >> 16);
}

/// A zip archive of one member, made here rather than by the writer under test.
std::string zip(std::string name, std::string content, bool isDeflated,
                uint32_t sizeChange = 0, uint32_t crcChange = 0) {
  std::string stored = content;
  if (isDeflated) {
    stored.assign(compressBound(content.size()) + 64, '\0');
    z_stream stream = {};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, 0), Z_OK);
    stream.next_in = reinterpret_cast<Bytef *>(content.data());
    stream.avail_in = content.size();
    stream.next_out = reinterpret_cast<Bytef *>(stored.data());
    stream.avail_out = stored.size();
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    stored.resize(stream.total_out);
    deflateEnd(&stream);
  }
  uint32_t crc =
      crc32(0, reinterpret_cast<const Bytef *>(content.data()), content.size());
  std::string common;
  for (unsigned value : {20, 0, isDeflated ? 8 : 0, 0, 0})
    put16(common, value);
  put32(common, crc + crcChange);
  put32(common, stored.size());
  put32(common, content.size() + sizeChange);
  put16(common, name.size());
  put16(common, 0);
  std::string out;
  put32(out, 0x04034b50);
  out += common + name + stored;
  std::string directory;
  put32(directory, 0x02014b50);
  put16(directory, 20);
  directory += common + std::string(14, '\0') + name;
  std::string end;
  put32(end, 0x06054b50);
  put32(end, 0);
  put16(end, 1);
  put16(end, 1);
  put32(end, directory.size());
  put32(end, out.size());
  put16(end, 0);
  return out + directory + end;
}

std::string archiveError(std::string bytes) {
  auto tensors = parseNpz(bytes, "a.npz");
  if (tensors)
    return "no error";
  return llvm::toString(tensors.takeError());
}

std::string member() {
  std::vector<float> values(300, 1.25f);
  return npy(dict("<f4", "(300,)"), bytesOf<float>(values));
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  for (bool isDeflated : {false, true}) {
    auto tensors = parseNpz(zip("k.npy", member(), isDeflated), "a.npz");
    ASSERT_TRUE(static_cast<bool>(tensors))
        << llvm::toString(tensors.takeError());
    ASSERT_EQ(tensors->size(), 1u);
    EXPECT_EQ(tensors->front().name, "k");
    EXPECT_EQ(tensors->front().tensor.getFloat({299}), 1.25);
  }
}

TEST(Npz, RefusesWithASentence) {
  EXPECT_THAT(archiveError(""), HasSubstr("shorter than an end record"));
  EXPECT_THAT(archiveError(std::string(100, 'x')),
              HasSubstr("expected an end record"));
  EXPECT_THAT(archiveError(zip("k.txt", member(), true)),
              HasSubstr("members named *.npy"));
  EXPECT_THAT(archiveError(zip("k.npy", member(), true, 1)),
              HasSubstr("damaged"));
  EXPECT_THAT(archiveError(zip("k.npy", member(), false, 1)),
              HasSubstr("sizes differ"));
  EXPECT_THAT(archiveError(zip("k.npy", member(), true, 0, 1)),
              HasSubstr("checksum"));
  // A size that would be an enormous allocation.
  EXPECT_THAT(archiveError(zip("k.npy", member(), true, 0xf0000000)),
              HasSubstr("cannot come from so few bytes"));
}

TEST(Npz, DamagedBytesNeverCrash) {
  Random random(11);
  for (bool isDeflated : {false, true}) {
    std::string whole = zip("k.npy", member(), isDeflated);
    for (size_t size = 0; size < whole.size(); size += 3)
      EXPECT_NE(archiveError(whole.substr(0, size)), "no error") << size;
    for (int i = 0; i < 20000; ++i) {
      std::string damaged = whole;
      for (uint64_t n = 1 + random.below(4); n > 0; --n)
        damaged[random.below(damaged.size())] =
            static_cast<char>(random.next());
      auto tensors = parseNpz(damaged, "a.npz");
      if (!tensors)
        EXPECT_FALSE(llvm::toString(tensors.takeError()).empty());
    }
  }
}

TEST(Npz, WritesWhatItReads) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("fi-npz", "npz", path));
  HostTensor a(DType::F32, {3, 2}), b(DType::BF16, {5});
  fillNormal(a, 1);
  fillNormal(b, 2);
  std::string problem = llvm::toString(writeNpz(path, {{"a", a}, {"b", b}}));
  EXPECT_EQ(problem, "");
  auto tensors = readNpz(path);
  ASSERT_TRUE(static_cast<bool>(tensors))
      << llvm::toString(tensors.takeError());
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].tensor.getFloat({2, 1}), a.getFloat({2, 1}));
  EXPECT_EQ((*tensors)[1].tensor.getType(), DType::BF16);
  EXPECT_EQ((*tensors)[1].tensor.getFloat({4}), b.getFloat({4}));
  llvm::sys::fs::remove(path);
}

TEST(Npz, UnwritablePlaceIsASentence) {
  HostTensor a(DType::F32, {1});
  EXPECT_THAT(llvm::toString(writeNpz("/nonexistent/a.npz", {{"a", a}})),
              HasSubstr("cannot write '/nonexistent/a.npz'"));
}

} // namespace
