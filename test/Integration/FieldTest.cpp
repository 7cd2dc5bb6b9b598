//===- FieldTest.cpp - faults that others met in production ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs that made other attention libraries fail, where no test beside them
// has their like. docs/faults.md says which test is for which fault.
//
//===----------------------------------------------------------------------===//

#include "FieldTesting.h"
#include "fi/Support/Random.h"
#include <cmath>
#include <sys/mman.h>

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

namespace {

AttentionText small(const std::string &clauses = "mask(#fi.causal)") {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = clauses;
  return text;
}

//===----------------------------------------------------------------------===//
// Masks, empties
//===----------------------------------------------------------------------===//

TEST(FieldTest, CausalPromptsLongerThanTheirKeys) {
  for (const char *element : {"f32", "bf16"}) {
    AttentionText text = small();
    text.kvHeads = text.group = 1;
    text.query = text.keys = text.values = text.output = element;
    Case(text.get(), {{128, 64}, {300, 256}, {600, 212}}).check();
  }
}

TEST(FieldTest, FirstRowsSeeNothingAndTheLastAllKeys) {
  Case test(small().get(), {{40, 7}});
  std::vector<HostTensor> results = test.runOnCPU({3, SplitChoice::Fixed, 2});
  ASSERT_EQ(results.size(), 2u);
  for (int64_t row = 0; row < 40; ++row)
    for (int64_t head = 0; head < 4; ++head) {
      EXPECT_EQ(std::isinf(results[1].getFloat({row, head})), row < 33);
      if (row < 33)
        for (int64_t d = 0; d < 16; ++d)
          EXPECT_EQ(results[0].getFloat({row, head, d}), 0);
    }
}

// Pieces in which a row sees no key, which only the values of a table tell.
TEST(FieldTest, PiecesWithoutVisibleKeys) {
  AttentionText text = withAllowedKeys(small());
  Case(text.get(), {{3, 200}, {20, 199}, {2, 150}})
      .give("allowed", allowedPieces())
      .check();
}

TEST(FieldTest, WindowsOfAllLengths) {
  // Shorter than a tile, longer than all keys, of both sides and of one, and
  // without causality.
  for (int64_t left : {0, 1, 31, 32, 33, 500})
    for (const char *more : {"", ", right = 2", ", right = 70"}) {
      SCOPED_TRACE(testing::Message() << left << more);
      static const Planned plans[] = {{2}, {4, SplitChoice::Fixed, 64}};
      Case(small("mask(#fi.window<left = " + std::to_string(left) + more + ">)")
               .get(),
           {{1, 1}, {5, 33}, {70, 150}, {1, 300}, {129, 65}})
          .setOptLevel(0)
          .check(plans);
    }
}

// A table with an entry for each key and no more.
TEST(FieldTest, RegionsSeeKeysInRangeOnly) {
  AttentionText text = withBiasOfKeys(small());
  Case(text.get(), {{1, 129}, {40, 129}}).give("bias", biasOfKeys(129)).check();
}

// A mask that is too small hides what it does not have.
TEST(FieldTest, MasksOfWrongSizesReadNothingElse) {
  AttentionText text = withAllowedKeys(small());
  HostTensor bits(DType::I1, {1, 10});
  for (int64_t k = 0; k < 10; ++k)
    bits.setInteger({0, k}, 1);
  Case(text.get(), {{3, 50}, {2, 20}}).give("allowed", bits).check();
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

/// Address space without memory behind it but where it is touched.
class Reserved {
public:
  explicit Reserved(size_t bytes)
      : bytes(bytes),
        data(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Reserved() {
    if (data != MAP_FAILED)
      munmap(data, bytes);
  }
  size_t bytes;
  void *data;
};

// The next tests reserve more addresses than a machine may let a process have
// (a limit on address space, no overcommitment): they are skipped there, as
// nothing smaller reaches offsets beyond 32 bits.

// Pages whose elements lie beyond 2^32 of a pool, in number and in bytes.
TEST(FieldTest, PagesFarApart) {
  for (View view : {View::Paged, View::Dense}) {
    AttentionText text = small();
    text.view = view;
    text.kvHeads = text.group = 1;
    // [pages, 1 head, 16 slots, 16 dims] with a stride of 2^21 elements.
    constexpr int64_t kPages = 3000, kStride = int64_t(1) << 21;
    Reserved keys(kPages * kStride * 4), values(kPages * kStride * 4);
    if (keys.data == MAP_FAILED || values.data == MAP_FAILED)
      GTEST_SKIP() << "no address space of " << keys.bytes << " bytes";
    std::vector<int64_t> pages = {2999, 0, 2100, 1024};
    Case test(text.get(), {});
    test.give("qo", integers({0, 3, 4}));
    if (view == View::Paged) {
      test.give("indptr", integers({0, 3, 4}))
          .give("pages", integers(pages))
          .give("last", integers({5, 16}));
    } else {
      HostTensor table(DType::I32, {2, 3});
      for (int64_t i = 0; i < 3; ++i)
        table.setInteger({0, i}, pages[i]);
      table.setInteger({1, 0}, pages[3]);
      test.give("pages", table).give("lengths", integers({37, 16}));
    }
    test.adjust([&](const Signature &signature, std::vector<HostValue> &given) {
      for (auto [name, memory] :
           {std::pair("k", keys.data), std::pair("v", values.data)}) {
        llvm::SmallVector<int64_t> strides = {kStride, 256, 16, 1};
        HostTensor pool(DType::F32, {kPages, 1, 16, 16}, memory, strides);
        for (int64_t page : pages)
          for (int64_t slot = 0; slot < 16; ++slot)
            for (int64_t d = 0; d < 16; ++d)
              pool.setFloat({page, 0, slot, d},
                            std::sin(double(page * 7 + slot * 31 + d) +
                                     (name[0] == 'v')));
        given[signature.find(name)] = pool;
      }
    });
    test.check();
  }
}

// The same of latents and of tails, which have tables in common.
TEST(FieldTest, LatentPagesFarApart) {
  AttentionText text = small();
  text.kvHeads = 1;
  text.group = 4;
  text.valueDim = 32;
  text.tailDim = 8;
  constexpr int64_t kPages = 3000, kStride = int64_t(1) << 21;
  Reserved latents(kPages * kStride * 4), tails(kPages * kStride * 4);
  // Reserved, not used: a process may have a limit of its addresses (ulimit
  // -v).
  if (latents.data == MAP_FAILED || tails.data == MAP_FAILED)
    GTEST_SKIP() << "no address space of " << latents.bytes << " bytes";
  std::vector<int64_t> pages = {2999, 0, 2100, 1024};
  Case test(text.get(), {});
  test.give("qo", integers({0, 3, 4}))
      .give("indptr", integers({0, 3, 4}))
      .give("pages", integers(pages))
      .give("last", integers({5, 16}));
  test.adjust([&](const Signature &signature, std::vector<HostValue> &given) {
    for (auto [name, memory, dim] :
         {std::tuple("k", latents.data, 32), std::tuple("v", tails.data, 8)}) {
      llvm::SmallVector<int64_t> strides = {kStride, dim, 1};
      HostTensor pool(DType::F32, {kPages, 16, dim}, memory, strides);
      for (int64_t page : pages)
        for (int64_t slot = 0; slot < 16; ++slot)
          for (int64_t d = 0; d < dim; ++d)
            pool.setFloat({page, slot, d},
                          std::sin(double(page * 7 + slot * 31 + d) + dim));
      given[signature.find(name)] = pool;
    }
  });
  test.check();
}

// More elements between the first row of a norm and its last than 2^32.
TEST(FieldTest, NormsOfRowsFarApart) {
  constexpr int64_t kRows = 3000, kStride = int64_t(1) << 21;
  Reserved rows(kRows * kStride * 4);
  // Reserved, not used: a process may have a limit of its addresses (ulimit
  // -v).
  if (rows.data == MAP_FAILED)
    GTEST_SKIP() << "no address space of " << rows.bytes << " bytes";
  std::string type = "tensor<?x1x64xf32>";
  Case test("fi.program @norm run(%x: " + type + ") -> (" + type +
                ") {\n  %y = fi.rms_norm %x eps(1.0e-6) : " + type + " -> " +
                type + "\n  fi.return %y : " + type + "\n}\n",
            {{kRows, 0}});
  test.adjust([&](const Signature &, std::vector<HostValue> &given) {
    llvm::SmallVector<int64_t> strides = {kStride, 64, 1};
    HostTensor x(DType::F32, {kRows, 1, 64}, rows.data, strides);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t d = 0; d < 64; ++d)
        x.setFloat({row, 0, d}, std::sin(double(row * 7 + d)));
    given[0] = x;
  });
  test.check({{1}, {3}});
}

// Tokens of a ragged view whose rows lie far apart.
TEST(FieldTest, TokensFarApart) {
  AttentionText text = small();
  text.view = View::Ragged;
  text.isHND = false;
  text.kvHeads = text.group = 1;
  constexpr int64_t kTokens = 60, kStride = int64_t(1) << 27;
  Reserved keys(kTokens * kStride * 4), values(kTokens * kStride * 4);
  if (keys.data == MAP_FAILED || values.data == MAP_FAILED)
    GTEST_SKIP() << "no address space of " << keys.bytes << " bytes";
  Case(text.get(), {{3, 40}, {1, 20}})
      .adjust([&](const Signature &signature, std::vector<HostValue> &given) {
        for (auto [name, memory] :
             {std::pair("k", keys.data), std::pair("v", values.data)}) {
          llvm::SmallVector<int64_t> strides = {kStride, 16, 1};
          HostTensor wide(DType::F32, {kTokens, 1, 16}, memory, strides);
          copyTensor(given[signature.find(name)].getTensor(), wide);
          given[signature.find(name)] = wide;
        }
      })
      .check();
}

/// A view of the middle of a wider tensor of NaN.
HostTensor widen(const HostTensor &from, std::vector<HostTensor> &owners) {
  llvm::SmallVector<int64_t> shape(from.getShape());
  for (int64_t &size : shape)
    size += 3;
  owners.emplace_back(from.getType(), shape);
  fillConstant(owners.back(), NAN);
  HostTensor to(from.getType(), from.getShape(), owners.back().getData(),
                owners.back().getStrides());
  copyTensor(from, to);
  return to;
}

TEST(FieldTest, AppendsOfStridedTokensToTheFirstOfManyPages) {
  // One page of one key, new tokens in a wider tensor, batches without any.
  std::vector<Request> batches[] = {
      {{3, 9}, {0, 5}, {1, 1}}, {{0, 7}, {0, 0}}, {}, {{30, 30}}};
  for (const std::vector<Request> &requests : batches) {
    std::vector<HostTensor> owners;
    Case(kAppendProgram, requests)
        .adjust([&](const Signature &signature, std::vector<HostValue> &given) {
          for (const char *name : {"nk", "nv"}) {
            HostValue &value = given[signature.find(name)];
            value = widen(value.getTensor(), owners);
          }
        })
        .check();
  }
}

//===----------------------------------------------------------------------===//
// Sizes, repetition
//===----------------------------------------------------------------------===//

TEST(FieldTest, LargePages) {
  for (int64_t page : {256, 512})
    for (bool isHND : {false, true}) {
      AttentionText text = small();
      text.page = page;
      text.isHND = isHND;
      Case(text.get(), {{1, 600}, {5, 512}, {3, 256}, {2, 1}}).check();
    }
}

TEST(FieldTest, ManyRequests) {
  AttentionText text = small();
  text.kvHeads = text.group = 1;
  text.keyDim = text.valueDim = 8;
  text.page = 1;
  std::vector<Request> requests(40000, Request{1, 1});
  static const Planned plans[] = {{2}, {3, SplitChoice::Fixed, 1}};
  Case(text.get(), requests).setOptLevel(0).check(plans);
}

TEST(FieldTest, OneRequestOfManyQueryTokensOverManyKeys) {
  AttentionText text = small();
  text.group = 4;
  Case(text.get(), {{64, 3000}}).check();
}

TEST(FieldTest, AHundredRunsHaveEqualBits) {
  for (const char *element : {"f32", "bf16"}) {
    AttentionText text = small();
    text.query = text.keys = text.values = text.output = element;
    Case test(text.get(), {{1, 700}, {33, 65}, {1, 3}, {5, 400}, {128, 128}});
    std::vector<HostTensor> first = test.runOnCPU({8, SplitChoice::Balanced});
    ASSERT_EQ(first.size(), 2u);
    for (int i = 0; i < 100; ++i) {
      std::vector<HostTensor> again = test.runOnCPU({8, SplitChoice::Balanced});
      ASSERT_EQ(again.size(), 2u);
      ASSERT_TRUE(hasEqualBits(first[0], again[0])) << i;
      ASSERT_TRUE(hasEqualBits(first[1], again[1])) << i;
    }
  }
}

// Tables of cosines in a narrow type are read as they are and computed with in
// f32.
TEST(FieldTest, RotationsByNarrowTables) {
  for (const char *element : {"bf16", "f16", "f32"}) {
    std::string e = element, type = "tensor<?x?x" + e + ">";
    std::string load = e == "f32"
                           ? "%c = fi.load %cos[%pos, %pair] : " + type
                           : "%n = fi.load %cos[%pos, %pair] : " + type +
                                 "\n%c = arith.extf %n : " + e + " to f32";
    std::string turn = "(%x: f32, %y: f32, %pair: index, %req: index, %head: "
                       "index, %pos: index) {\n" +
                       load +
                       "\n%a = arith.mulf %x, %c : f32\n"
                       "%b = arith.mulf %y, %c : f32\n"
                       "fi.yield %a, %b : f32, f32\n}\n";
    AttentionText text =
        small("pair<half> captures(%cos = %table : " + type + ") query" + turn +
              "key" + turn + "mask(#fi.causal)");
    text.runArguments = ", %table: " + type;
    HostTensor table(e == "f32"    ? DType::F32
                     : e == "bf16" ? DType::BF16
                                   : DType::F16,
                     {70, 8});
    for (int64_t p = 0; p < 70; ++p)
      for (int64_t i = 0; i < 8; ++i)
        table.setFloat({p, i}, std::cos(double(p) / (1 + double(i))));
    Case(text.get(), {{1, 37}, {5, 5}, {40, 70}, {1, 1}})
        .give("table", table)
        .setOptLevel(0)
        .check();
  }
}

} // namespace
