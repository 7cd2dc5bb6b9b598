//===- BatchTest.cpp - descriptions of batches ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Batch.h"
#include "fi/Support/Random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace fi;
using testing::HasSubstr;

namespace {

Batch parse(std::string text) {
  auto batch = parseBatchJson(text, "dir/b.json");
  if (batch)
    return *batch;
  ADD_FAILURE() << llvm::toString(batch.takeError());
  return Batch();
}

std::string errorOf(std::string text) {
  auto batch = parseBatchJson(text, "b.json");
  return batch ? "no error" : llvm::toString(batch.takeError());
}

std::string csvError(std::string text) {
  auto batch = parseBatchCsv(text, "b.csv");
  return batch ? "no error" : llvm::toString(batch.takeError());
}

llvm::Expected<HostTensor> tensorOf(std::string source, DType type,
                                    llvm::ArrayRef<int64_t> shape) {
  Batch batch = parse("{\"arguments\": {\"x\": " + source + "}}");
  return makeTensor(*batch.find("x"), "x", type, shape, 1);
}

std::string tensorError(std::string source, DType type,
                        llvm::ArrayRef<int64_t> shape) {
  auto tensor = tensorOf(source, type, shape);
  return tensor ? "no error" : llvm::toString(tensor.takeError());
}

TEST(Batch, ReadsAllEntries) {
  Batch batch = parse(R"({"program": "p", "seed": 7, "page_size": 8,
    "pool_pages": 40, "page_order": "sequential", "comment": "x",
    "requests": [{"q_len": 3, "kv_len": 6}, {"q_len": 0, "kv_len": 0}],
    "arguments": {"q": {"random": "normal", "seed": 1, "shape": [8, 4, 64]},
                  "k": {"npy": "k.npy"}, "v": {"npz": "/abs/v.npz", "name": "w"},
                  "sc": 0.125}})");
  EXPECT_EQ(batch.program, "p");
  EXPECT_EQ(batch.seed, 7u);
  EXPECT_EQ(batch.pageSize, 8);
  EXPECT_EQ(batch.poolPages, 40);
  EXPECT_FALSE(batch.shufflePages);
  ASSERT_EQ(batch.requests.size(), 2u);
  EXPECT_EQ(batch.requests[0].keyLength, 6);
  // Relative to the batch's file.
  EXPECT_EQ(batch.find("k")->file, "dir/k.npy");
  EXPECT_EQ(batch.find("v")->file, "/abs/v.npz");
  EXPECT_EQ(batch.find("v")->member, "w");
  EXPECT_EQ(batch.find("q")->seed, 1u);
  EXPECT_EQ(batch.find("nothing"), nullptr);
}

TEST(Batch, RefusesWithASentence) {
  EXPECT_THAT(errorOf("{"), HasSubstr("'b.json' is not JSON"));
  EXPECT_THAT(errorOf("[]"), HasSubstr("expected an object, but got an array"));
  EXPECT_THAT(errorOf(R"({"argments": {}})"),
              HasSubstr("unknown entry 'argments'; allowed are program"));
  EXPECT_THAT(errorOf(R"({"seed": -1})"), HasSubstr("seed: expected 0 to"));
  EXPECT_THAT(errorOf(R"({"seed": "x"})"),
              HasSubstr("seed: expected an integer, but got a string"));
  EXPECT_THAT(errorOf(R"({"page_size": 0})"),
              HasSubstr("page_size: expected 1"));
  EXPECT_THAT(errorOf(R"({"page_order": "random"})"),
              HasSubstr("\"shuffled\" or \"sequential\""));
  EXPECT_THAT(errorOf(R"({"requests": [{"q_len": 1}]})"),
              HasSubstr("requests[0]: expected an entry 'kv_len'"));
  EXPECT_THAT(
      errorOf(R"({"requests": [{"q_len": -1, "kv_len": 1}]})"),
      HasSubstr("requests[0].q_len: expected 0 to 2147483647, but got -1"));
  EXPECT_THAT(errorOf(R"({"requests": [3]})"),
              HasSubstr("expected an object with q_len and kv_len"));
  EXPECT_THAT(
      errorOf(R"({"arguments": {"q": "x"}})"),
      HasSubstr("arguments.q: expected a number, an array or an object"));
  EXPECT_THAT(errorOf(R"({"arguments": {"q": {"shape": [1]}}})"),
              HasSubstr("expected one of values, npy, npz, random and fill"));
  EXPECT_THAT(errorOf(R"({"arguments": {"q": {"fill": 1, "npy": "x"}}})"),
              HasSubstr("but got several"));
  EXPECT_THAT(errorOf(R"({"arguments": {"q": {"fill": 1, "seed": 2}}})"),
              HasSubstr("unknown entry 'seed'; allowed are fill, shape"));
  EXPECT_THAT(errorOf(R"({"arguments": {"q": {"random": "cauchy"}}})"),
              HasSubstr("expected \"normal\" or \"uniform\""));
  EXPECT_THAT(errorOf(R"({"arguments": {"q": {"npy": 3}}})"),
              HasSubstr("arguments.q.npy: expected a file's name"));
}

TEST(Batch, DeepNestingIsASentence) {
  EXPECT_THAT(errorOf(std::string(1000000, '[')), HasSubstr("64 deep"));
  EXPECT_THAT(errorOf("{\"arguments\": {\"q\": " + std::string(60, '[') +
                      std::string(60, ']') + "}}"),
              HasSubstr("no error"));
}

TEST(Batch, DamagedTextNeverCrashes) {
  std::string whole = R"({"program": "p", "seed": 7, "requests":
    [{"q_len": 3, "kv_len": 6}], "arguments": {"q": {"random": "normal",
    "shape": [8, 4]}, "k": [1, [2.5, -3e7]], "sc": 0.125}})";
  Random random(5);
  for (int i = 0; i < 50000; ++i) {
    std::string damaged = whole;
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      // Mostly bytes that JSON gives a meaning.
      static const char kBytes[] = "{}[]\",:0e-.\\u\xff";
      damaged[random.below(damaged.size())] =
          kBytes[random.below(sizeof(kBytes) - 1)];
    }
    auto batch = parseBatchJson(damaged, "b.json");
    if (!batch)
      EXPECT_FALSE(llvm::toString(batch.takeError()).empty());
  }
}

TEST(Csv, ReadsColumnsInAnyOrder) {
  auto batch = parseBatchCsv("# lengths\nid, kv_len ,q_len\n\na,6,3 # first\nb,"
                             "2,1\r\n",
                             "b.csv");
  ASSERT_TRUE(static_cast<bool>(batch)) << llvm::toString(batch.takeError());
  ASSERT_EQ(batch->requests.size(), 2u);
  EXPECT_EQ(batch->requests[0].queryLength, 3);
  EXPECT_EQ(batch->requests[1].keyLength, 2);
}

TEST(Csv, RefusesWithASentence) {
  EXPECT_THAT(csvError(""), HasSubstr("the file is empty"));
  EXPECT_THAT(csvError("1,2\n"), HasSubstr("'b.csv':1: expected a head line"));
  EXPECT_THAT(csvError("q_len,kv_len\n1\n"),
              HasSubstr("'b.csv':2: expected 2 columns, but got 1"));
  EXPECT_THAT(csvError("q_len,kv_len\n1,x\n"), HasSubstr("but got 'x'"));
  EXPECT_THAT(csvError("q_len,kv_len\n-1,2\n"), HasSubstr("but got '-1'"));
  EXPECT_THAT(csvError("q_len,kv_len\n1,99999999999999999999\n"),
              HasSubstr("as kv_len"));
}

TEST(MakeTensor, TakesValues) {
  auto tensor = tensorOf("[[1, 2], [3, \"-inf\"]]", DType::F32, {-1, 2});
  ASSERT_TRUE(static_cast<bool>(tensor));
  EXPECT_EQ(tensor->getShape(), llvm::ArrayRef<int64_t>({2, 2}));
  EXPECT_EQ(tensor->getFloat({0, 1}), 2);
  EXPECT_TRUE(std::isinf(tensor->getFloat({1, 1})));
  // An empty array for a tensor without rows.
  auto empty = tensorOf("[]", DType::F32, {-1, 4, 64});
  ASSERT_TRUE(static_cast<bool>(empty)) << llvm::toString(empty.takeError());
  EXPECT_EQ(empty->getShape(), llvm::ArrayRef<int64_t>({0, 4, 64}));
}

TEST(MakeTensor, RefusesWithASentence) {
  EXPECT_THAT(tensorError("[[1, 2], [3]]", DType::F32, {-1, -1}),
              HasSubstr("arrays of equal length"));
  EXPECT_THAT(tensorError("[1.5]", DType::I32, {-1}),
              HasSubstr("expected an integer, but got 1.5"));
  EXPECT_THAT(tensorError("[4294967296]", DType::I32, {-1}),
              HasSubstr("expected a value of i32, but got 4294967296"));
  EXPECT_THAT(tensorError("[1]", DType::I32, {-1, -1}),
              HasSubstr("expected shape [?, ?], but got [1]"));
  EXPECT_THAT(tensorError(R"({"random": "normal"})", DType::F32, {-1, 4}),
              HasSubstr("its shape [?, 4] does not follow from the batch"));
  EXPECT_THAT(tensorError(R"({"random": "normal", "shape": [2147483647,
                          2147483647]})",
                          DType::F32, {-1, -1}),
              HasSubstr("exceeds 64 GiB"));
  EXPECT_THAT(tensorError(R"({"npy": "missing.npy"})", DType::F32, {-1}),
              HasSubstr("cannot read 'dir/missing.npy'"));
}

TEST(MakeTensor, RandomNumbersDependOnTheSeedAlone) {
  auto a = tensorOf(R"({"random": "normal", "seed": 3})", DType::F32, {1000});
  auto b = tensorOf(R"({"random": "normal", "seed": 3})", DType::F32, {1000});
  auto c = tensorOf(R"({"random": "normal", "seed": 4})", DType::F32, {1000});
  ASSERT_TRUE(a && b && c);
  double sum = 0, squares = 0;
  int same = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    double x = a->getFloat({i});
    EXPECT_EQ(x, b->getFloat({i}));
    same += x == c->getFloat({i});
    sum += x;
    squares += x * x;
  }
  EXPECT_LT(same, 3);
  EXPECT_NEAR(sum / 1000, 0, 0.15);
  EXPECT_NEAR(squares / 1000, 1, 0.2);
  auto u = tensorOf(R"({"random": "uniform", "low": 2, "high": 3})", DType::F32,
                    {1000});
  ASSERT_TRUE(static_cast<bool>(u));
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(u->getFloat({i}), 2);
    EXPECT_LE(u->getFloat({i}), 3);
  }
}

TEST(ConvertTensor, ConvertsOnlyWhatFits) {
  HostTensor wide(DType::I64, {2});
  wide.setInteger({0}, 5);
  auto narrow = convertTensor(wide, "x", DType::I32, {-1}, "here");
  ASSERT_TRUE(static_cast<bool>(narrow));
  EXPECT_EQ(narrow->getInteger({0}), 5);
  wide.setInteger({1}, int64_t(1) << 40);
  auto refused = convertTensor(wide, "x", DType::I32, {-1}, "here");
  ASSERT_FALSE(static_cast<bool>(refused));
  EXPECT_THAT(llvm::toString(refused.takeError()),
              HasSubstr("does not fit into i32"));
  auto floating = convertTensor(wide, "x", DType::F32, {-1}, "here");
  ASSERT_FALSE(static_cast<bool>(floating));
  EXPECT_THAT(llvm::toString(floating.takeError()),
              HasSubstr("expected f32, but got i64 from here"));
}

} // namespace
