//===- AttentionTest.cpp - fi.attention in the reference interpreter ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts, lengths, positions and edge values against hand-computed results and
// a dense loop of the tests' own.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"

using namespace fi;
using namespace fi::test;

static const char *const kPaged = R"(
!kv = !fi.paged_kv<4x1x8xf32, NHD>
!pool = memref<?x4x1x8xf32>
!ix = tensor<?xi32>
fi.program @paged
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: tensor<?x2x8xf32>, %k: !pool, %v: !pool, %sc: f32)
    -> (tensor<?x2x8xf32>, tensor<?x2xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(%sc) mask(#fi.causal)
      : tensor<?x2x8xf32> over !kv -> tensor<?x2x8xf32>, tensor<?x2xf32>
  fi.return %o, %lse : tensor<?x2x8xf32>, tensor<?x2xf32>
})";

namespace {
/// Three requests with 3, 1 and 4 rows and 6, 2 and 9 keys.
struct ThreeRequests {
  HostTensor rows = ints({0, 3, 4, 8}), indptr = ints({0, 2, 3, 6}),
             pages = ints({7, 2, 11, 3, 14, 6}), last = ints({2, 2, 1});
  std::vector<std::vector<int64_t>> pagesOf = {{7, 2}, {11}, {3, 14, 6}};
  std::vector<int64_t> lengths = {6, 2, 9}, rowOf = {0, 3, 4, 8};
};
} // namespace

TEST(ReferenceAttention, threeRequestsSeeTheirKeys) {
  ThreeRequests batch;
  HostTensor q = random({8, 2, 8}, 1), k = filled({16, 4, 1, 8}, kNaN),
             v = filled({16, 4, 1, 8}, kNaN);
  // Only slots of keys hold numbers: everything else is poison.
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t j = 0; j < batch.lengths[r]; ++j)
      for (int64_t d = 0; d < 8; ++d) {
        int64_t page = batch.pagesOf[r][j / 4];
        k.setFloat({page, j % 4, 0, d}, std::sin(1.0 + r + 10 * j + 100 * d));
        v.setFloat({page, j % 4, 0, d}, std::cos(1.0 + r + 10 * j + 100 * d));
      }
  std::vector<HostTensor> visible;
  ReferenceOptions options;
  options.visibleKeys = &visible;
  Program program(kPaged);
  std::vector<HostTensor> results =
      program.run({batch.rows, batch.indptr, batch.pages, batch.last, q, k, v,
                   HostValue::number(0.35)},
                  options);
  ASSERT_EQ(visible.size(), 1u);
  EXPECT_EQ(
      integers(visible[0]),
      (std::vector<int64_t>{4, 4, 5, 5, 6, 6, 2, 2, 6, 6, 7, 7, 8, 8, 9, 9}));
  for (int64_t r = 0; r < 3; ++r) {
    int64_t begin = batch.rowOf[r], rows = batch.rowOf[r + 1] - begin;
    int64_t keys = batch.lengths[r];
    HostTensor qr(DType::F32, {rows, 2, 8}), kr(DType::F32, {keys, 1, 8}),
        vr(DType::F32, {keys, 1, 8});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t d = 0; d < 8; ++d)
          qr.setFloat({i, h, d}, q.getFloat({begin + i, h, d}));
    for (int64_t j = 0; j < keys; ++j)
      for (int64_t d = 0; d < 8; ++d) {
        int64_t page = batch.pagesOf[r][j / 4];
        kr.setFloat({j, 0, d}, k.getFloat({page, j % 4, 0, d}));
        vr.setFloat({j, 0, d}, v.getFloat({page, j % 4, 0, d}));
      }
    Dense wanted =
        dense(qr, kr, vr, static_cast<float>(0.35),
              [&](int64_t i, int64_t j) { return j <= keys - rows + i; });
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t h = 0; h < 2; ++h) {
        EXPECT_NEAR(results[1].getFloat({begin + i, h}),
                    wanted.statistic.getFloat({i, h}), 1e-6);
        for (int64_t d = 0; d < 8; ++d)
          EXPECT_NEAR(results[0].getFloat({begin + i, h, d}),
                      wanted.output.getFloat({i, h, d}), 1e-7);
      }
  }
}

TEST(ReferenceAttention, equalScoresGiveMeansAndCounts) {
  ThreeRequests batch;
  HostTensor k = random({16, 4, 1, 8}, 2), v(DType::F32, {16, 4, 1, 8});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t j = 0; j < batch.lengths[r]; ++j)
      v.setFloat({batch.pagesOf[r][j / 4], j % 4, 0, 3}, j);
  std::vector<HostTensor> results =
      Program(kPaged).run({batch.rows, batch.indptr, batch.pages, batch.last,
                           filled({8, 2, 8}, 0), k, v, HostValue::number(1)});
  // Row 5 is row 1 of request 2: keys 0 to 6, mean 3, log2(7).
  EXPECT_NEAR(results[0].getFloat({5, 1, 3}), 3.0, 1e-7);
  EXPECT_NEAR(results[1].getFloat({5, 1}), 2.8073549, 1e-6);
  EXPECT_EQ(results[0].getFloat({5, 1, 2}), 0.0);
}

TEST(ReferenceAttention, acceptsWhatEnginesSend) {
  // indptr that does not start at 0, surplus pages, an empty request whose last
  // page length is nonsense, a request without rows, rows of no request.
  HostTensor k = random({4, 4, 1, 8}, 3), v = random({4, 4, 1, 8}, 4);
  std::vector<HostTensor> results = Program(kPaged).run(
      {ints({1, 3, 4, 4}), ints({2, 3, 3, 4}), ints({99, 99, 1, 2, 99, -1}),
       ints({3, 77, 1}), random({6, 2, 8}, 5), k, v, HostValue::number(1)});
  auto isEmpty = [&](int64_t row) {
    bool empty = true;
    for (int64_t h = 0; h < 2; ++h) {
      empty &= results[1].getFloat({row, h}) == -kInf;
      for (int64_t d = 0; d < 8; ++d)
        empty &= results[0].getFloat({row, h, d}) == 0;
    }
    return empty;
  };
  EXPECT_TRUE(isEmpty(0));  // before the first request
  EXPECT_FALSE(isEmpty(1)); // request 0
  EXPECT_FALSE(isEmpty(2));
  EXPECT_TRUE(isEmpty(3)); // request 1 has no keys
  EXPECT_TRUE(isEmpty(4)); // behind the last request
  EXPECT_TRUE(isEmpty(5));

  // No requests, no rows, no pages.
  results = Program(kPaged).run(
      {ints({0}), ints({0}), ints({}), ints({}),
       HostTensor(DType::F32, {0, 2, 8}), HostTensor(DType::F32, {0, 4, 1, 8}),
       HostTensor(DType::F32, {0, 4, 1, 8}), HostValue::number(1)});
  EXPECT_EQ(results[0].getNumElements(), 0);
}

/// One request over contiguous keys; `mask` is the clause.
static std::string ragged(const std::string &mask, int64_t heads = 1) {
  std::string q = "tensor<?x" + std::to_string(heads) + "x8xf32>";
  std::string lse = "tensor<?x" + std::to_string(heads) + "xf32>";
  return R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
fi.program @ragged run(%q: )" +
         q + ", %k: !t, %v: !t, %sc: f32) -> (" + q + ", " + lse + R"() {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o, %lse = fi.attention %q over %kv scale(%sc) )" +
         mask + " : " + q + " over !kv -> " + q + ", " + lse + R"(
  fi.return %o, %lse : )" +
         q + ", " + lse + "\n}";
}

TEST(ReferenceAttention, causalWithMoreRowsThanKeys) {
  Program program(ragged("mask(#fi.causal)"));
  for (auto [rows, keys] : {std::pair<int64_t, int64_t>(128, 64),
                            {300, 256},
                            {1000, 512},
                            {34, 1},
                            {5, 0}}) {
    HostTensor q = random({rows, 1, 8}, 6), k = random({keys, 1, 8}, 7),
               v = random({keys, 1, 8}, 8);
    std::vector<HostTensor> visible;
    ReferenceOptions options;
    options.visibleKeys = &visible;
    std::vector<HostTensor> results =
        program.run({q, k, v, HostValue::number(0.5)}, options);
    Dense wanted =
        dense(q, k, v, 0.5, [rows = rows, keys = keys](int64_t i, int64_t j) {
          return j + rows <= keys + i;
        });
    expectNear(results[0], wanted.output, 1e-6);
    expectNear(results[1], wanted.statistic, 1e-5);
    for (int64_t row = 0; row < rows - keys; ++row) {
      ASSERT_EQ(results[1].getFloat({row, 0}), -kInf) << row;
      ASSERT_EQ(results[0].getFloat({row, 0, 0}), 0.0) << row;
      ASSERT_EQ(visible[0].getInteger({row, 0}), 0) << row;
    }
  }
}

TEST(ReferenceAttention, extremeScores) {
  Program program(ragged("mask(#fi.causal)"));
  HostTensor v = random({1, 1, 8}, 9);
  // 64 * 64 * 8 = 32768 in each direction, scaled beyond +-50,000.
  for (double sign : {-1.0, 1.0}) {
    std::vector<HostTensor> results =
        program.run({filled({1, 1, 8}, 64), filled({1, 1, 8}, sign * 64), v,
                     HostValue::number(4)});
    expectNear(results[0], v, 0);
    EXPECT_NEAR(results[1].getFloat({0, 0}), sign * 131072 / std::log(2.0),
                0.01);
  }
  // Two such keys, one 40,000 above the other: the lower one has no weight.
  HostTensor k(DType::F32, {2, 1, 8});
  k.setFloat({0, 0, 0}, -900);
  k.setFloat({1, 0, 0}, -500);
  HostTensor two = random({2, 1, 8}, 10);
  std::vector<HostTensor> results =
      program.run({filled({1, 1, 8}, 100), k, two, HostValue::number(1)});
  for (int64_t d = 0; d < 8; ++d)
    EXPECT_EQ(results[0].getFloat({0, 0, d}), two.getFloat({1, 0, d}));
  EXPECT_NEAR(results[1].getFloat({0, 0}), -50000 / std::log(2.0), 0.01);
}

TEST(ReferenceAttention, maskedKeysAreNotRead) {
  Program program(ragged("mask(#fi.causal)"));
  HostTensor q = random({2, 1, 8}, 11), k = random({3, 1, 8}, 12),
             v = random({3, 1, 8}, 13);
  k.setFloat({2, 0, 0}, kNaN);
  v.setFloat({2, 0, 5}, kInf);
  std::vector<HostTensor> results =
      program.run({q, k, v, HostValue::number(1)});
  // Row 0 does not see key 2, row 1 does.
  EXPECT_TRUE(std::isfinite(results[1].getFloat({0, 0})));
  EXPECT_TRUE(std::isfinite(results[0].getFloat({0, 0, 5})));
  EXPECT_TRUE(std::isnan(results[1].getFloat({1, 0})));
}

TEST(ReferenceAttention, everyLayoutGivesTheSame) {
  // 11 keys of 2 heads, dims 16 and 8, in each layout; bf16 keys, f16 values.
  constexpr int64_t keys = 11, heads = 2, dim = 16, valueDim = 8, page = 4;
  HostTensor q = random({3, 4, dim}, 14),
             k = random({keys, heads, dim}, 15, DType::BF16),
             v = random({keys, heads, valueDim}, 16, DType::F16);
  Dense wanted = dense(q, k, v, 0.25,
                       [](int64_t i, int64_t j) { return j <= keys - 3 + i; });
  std::vector<int64_t> order = {5, 0, 3};
  for (bool hnd : {false, true})
    for (bool denseTable : {false, true})
      for (bool dynamic : {false, true})
        for (bool wide : {false, true}) {
          std::string p = dynamic ? "?" : "4",
                      kv = "!fi.paged_kv<" + p + "x2x16xbf16, " +
                           (hnd ? "HND" : "NHD") + ", vo = 8, v = f16";
          std::string ix = wide ? "i64" : "i32";
          if (wide)
            kv += ", index = i64";
          if (denseTable)
            kv += ", table = dense";
          kv += ">";
          auto pool = [&](const char *rest) {
            return std::string("memref<?x") + (hnd ? "2x" + p : p + "x2") +
                   rest;
          };
          std::string kp = pool("x16xbf16>"),
                      vp = pool("x8xf16, strided<[?, ?, ?, 1], offset: ?>>");
          std::string plan =
              denseTable
                  ? "%t: tensor<?x?x" + ix + ">, %n: tensor<?x" + ix + ">"
                  : "%ip: tensor<?x" + ix + ">, %t: tensor<?x" + ix +
                        ">, %n: tensor<?x" + ix + ">";
          std::string tables =
              denseTable
                  ? "%t, %n : tensor<?x?x" + ix + ">, tensor<?x" + ix + ">"
                  : "%ip, %t, %n : tensor<?x" + ix + ">, tensor<?x" + ix +
                        ">, tensor<?x" + ix + ">";
          Program program(
              "fi.program @p plan(" + plan + ") run(%q: tensor<?x4x16xf32>, " +
              "%k: " + kp + ", %v: " + vp + ") -> (tensor<?x4x8xf32>, " +
              "tensor<?x4xf32>) {\n%kv = fi.view.paged %k, %v tables(" +
              tables + ") : " + kp + ", " + vp + " -> " + kv +
              "\n%o, %l = fi.attention %q over %kv scale(0.25) "
              "mask(#fi.causal) : tensor<?x4x16xf32> over " +
              kv + " -> tensor<?x4x8xf32>, tensor<?x4xf32>\n" +
              "fi.return %o, %l : tensor<?x4x8xf32>, tensor<?x4xf32>\n}");
          HostTensor kPool(DType::BF16,
                           hnd ? llvm::ArrayRef<int64_t>{6, heads, page, dim}
                               : llvm::ArrayRef<int64_t>{6, page, heads, dim});
          // Values in a wider allocation: the first half of each row of 16.
          HostTensor backing(DType::F16, kPool.getShape());
          HostTensor vPool(DType::F16,
                           hnd ? llvm::ArrayRef<int64_t>{6, heads, page, 8}
                               : llvm::ArrayRef<int64_t>{6, page, heads, 8},
                           backing.getData(), backing.getStrides());
          for (int64_t j = 0; j < keys; ++j)
            for (int64_t h = 0; h < heads; ++h)
              for (int64_t d = 0; d < dim; ++d) {
                int64_t a = hnd ? h : j % page, b = hnd ? j % page : h;
                kPool.setFloat({order[j / page], a, b, d},
                               k.getFloat({j, h, d}));
                if (d < valueDim)
                  vPool.setFloat({order[j / page], a, b, d},
                                 v.getFloat({j, h, d}));
              }
          DType index = wide ? DType::I64 : DType::I32;
          std::vector<HostValue> arguments;
          if (denseTable) {
            // Entries beyond the length are not read.
            HostTensor table(index, {1, 5});
            std::vector<int64_t> row = {5, 0, 3, -1, 1000};
            for (int64_t i = 0; i < 5; ++i)
              table.setInteger({0, i}, row[i]);
            arguments = {table, ints({keys}, index)};
          } else {
            arguments = {ints({0, 3}, index), ints(order, index),
                         ints({3}, index)};
          }
          arguments.insert(arguments.end(), {q, kPool, vPool});
          std::vector<HostTensor> results = program.run(arguments);
          expectNear(results[0], wanted.output, 1e-6);
          expectNear(results[1], wanted.statistic, 1e-6);
        }
}

TEST(ReferenceAttention, fusedPoolsAndHeadsFirst) {
  HostTensor q = random({2, 2, 8}, 17), k = random({5, 2, 8}, 18),
             v = random({5, 2, 8}, 19);
  Dense wanted = dense(q, k, v, 1.0, [](int64_t, int64_t) { return true; });
  HostTensor fused(DType::F32, {3, 2, 2, 2, 8}); // pages of 2, HND
  std::vector<int64_t> order = {2, 0, 1};
  HostTensor kh(DType::F32, {2, 5, 8}), vh(DType::F32, {2, 5, 8});
  for (int64_t j = 0; j < 5; ++j)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 8; ++d) {
        fused.setFloat({order[j / 2], 0, h, j % 2, d}, k.getFloat({j, h, d}));
        fused.setFloat({order[j / 2], 1, h, j % 2, d}, v.getFloat({j, h, d}));
        kh.setFloat({h, j, d}, k.getFloat({j, h, d}));
        vh.setFloat({h, j, d}, v.getFloat({j, h, d}));
      }
  Program paged(R"(
!kv = !fi.paged_kv<2x2x8xf32, HND, fused>
!ix = tensor<?xi32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix)
    run(%q: tensor<2x2x8xf32>, %kv0: tensor<?x2x2x2x8xf32>)
    -> (tensor<2x2x8xf32>, tensor<2x2xf32>) {
  %kv = fi.view.paged %kv0 tables(%ip, %pg, %last : !ix, !ix, !ix)
      : tensor<?x2x2x2x8xf32> -> !kv
  %o, %l = fi.attention %q over %kv scale(1.0)
      : tensor<2x2x8xf32> over !kv -> tensor<2x2x8xf32>, tensor<2x2xf32>
  fi.return %o, %l : tensor<2x2x8xf32>, tensor<2x2xf32>
})");
  std::vector<HostTensor> results =
      paged.run({ints({0, 3}), ints(order), ints({1}), q, fused});
  expectNear(results[0], wanted.output, 1e-6);
  expectNear(results[1], wanted.statistic, 1e-6);

  Program heads(R"(
!kv = !fi.ragged_kv<2x8xf32, HND>
fi.program @p run(%q: tensor<2x2x8xf32>, %k: tensor<2x?x8xf32>,
                  %v: tensor<2x?x8xf32>) -> (tensor<2x2x8xf32>, tensor<2x2xf32>) {
  %kv = fi.view.ragged %k, %v : tensor<2x?x8xf32>, tensor<2x?x8xf32> -> !kv
  %o, %l = fi.attention %q over %kv scale(1.0)
      : tensor<2x2x8xf32> over !kv -> tensor<2x2x8xf32>, tensor<2x2xf32>
  fi.return %o, %l : tensor<2x2x8xf32>, tensor<2x2xf32>
})");
  results = heads.run({q, kh, vh});
  expectNear(results[0], wanted.output, 1e-6);
  expectNear(results[1], wanted.statistic, 1e-6);
}

TEST(ReferenceAttention, onlyTheListedRows) {
  Program program(ragged("mask(#fi.causal)", 2));
  HostTensor q = random({4, 2, 8}, 20), k = random({9, 1, 8}, 21),
             v = random({9, 1, 8}, 22);
  std::vector<HostTensor> all = program.run({q, k, v, HostValue::number(1)});
  std::vector<HostTensor> visible;
  ReferenceOptions options;
  options.onlyRows = {{3, 0}, {1, 1}};
  options.visibleKeys = &visible;
  std::vector<HostTensor> some =
      program.run({q, k, v, HostValue::number(1)}, options);
  EXPECT_EQ(integers(visible[0]),
            (std::vector<int64_t>{-1, -1, -1, 7, -1, -1, 9, -1}));
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t head = 0; head < 2; ++head) {
      bool listed = (row == 3 && head == 0) || (row == 1 && head == 1);
      double statistic = some[1].getFloat({row, head});
      if (listed)
        EXPECT_EQ(statistic, all[1].getFloat({row, head}));
      else
        EXPECT_TRUE(std::isnan(statistic));
    }
}

TEST(ReferenceAttention, writesIntoPlacesOfTheCaller) {
  Program program(R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = memref<?x1x8xf32>
!s = memref<?x1x8xbf16, strided<[?, ?, 1], offset: ?>>
fi.program @p run(%q: !t, %k: !t, %v: !t, %o: !s, %l: memref<?x1xf32>) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  fi.attention %q over %kv scale(1.0) outs(%o, %l : !s, memref<?x1xf32>) : !t over !kv
  fi.return
})");
  HostTensor q = random({2, 1, 8}, 23), k = random({3, 1, 8}, 24),
             v = random({3, 1, 8}, 25), lse(DType::F32, {2, 1});
  HostTensor backing = filled({2, 2, 8}, 7, DType::BF16);
  HostTensor o(DType::BF16, {2, 1, 8}, backing.getData(), {16, 16, 1});
  EXPECT_TRUE(program.run({q, k, v, o, lse}).empty());
  Dense wanted = dense(q, k, v, 1.0, [](int64_t, int64_t) { return true; });
  expectNear(lse, wanted.statistic, 1e-6);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t d = 0; d < 8; ++d) {
      EXPECT_NEAR(o.getFloat({row, 0, d}), wanted.output.getFloat({row, 0, d}),
                  0.01);
      EXPECT_EQ(backing.getFloat({row, 1, d}), 7.0);
    }
  // With a list of rows, the others stay as they are.
  lse.setFloat({0, 0}, 123);
  ReferenceOptions options;
  options.onlyRows = {{1, 0}};
  program.run({q, k, v, o, lse}, options);
  EXPECT_EQ(lse.getFloat({0, 0}), 123.0);
}

TEST(ReferenceAttention, roundsOnceToTheResultType) {
  Program program(R"(
!kv = !fi.ragged_kv<1x8xbf16>
fi.program @p run(%q: tensor<1x1x8xbf16>, %k: tensor<?x1x8xbf16>,
                  %v: tensor<?x1x8xbf16>) -> (tensor<1x1x8xbf16>) {
  %kv = fi.view.ragged %k, %v : tensor<?x1x8xbf16>, tensor<?x1x8xbf16> -> !kv
  %o = fi.attention %q over %kv scale(1.0)
      : tensor<1x1x8xbf16> over !kv -> tensor<1x1x8xbf16>
  fi.return %o : tensor<1x1x8xbf16>
})");
  // Mean of 1 and 1 + 2^-7 lies halfway: ties to even gives 1.
  HostTensor v = filled({2, 1, 8}, 1, DType::BF16);
  for (int64_t d = 0; d < 8; ++d)
    v.setFloat({1, 0, d}, 1.0078125);
  std::vector<HostTensor> results =
      program.run({filled({1, 1, 8}, 0, DType::BF16),
                   filled({2, 1, 8}, 1, DType::BF16), v});
  EXPECT_EQ(results[0].getType(), DType::BF16);
  EXPECT_EQ(results[0].getFloat({0, 0, 0}), 1.0);
}
