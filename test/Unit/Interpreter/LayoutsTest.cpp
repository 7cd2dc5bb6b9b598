//===- LayoutsTest.cpp - layouts in the reference interpreter -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables of values, latents and blocks against a dense loop over keys that the
// tests gather themselves.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"
#include "gmock/gmock.h"

using namespace fi;
using namespace fi::test;
using testing::HasSubstr;

namespace {

/// Columns of `a` and behind them those of `b`, both of one head.
HostTensor beside(const HostTensor &a, const HostTensor &b) {
  int64_t columns = a.getSize(2);
  HostTensor both(DType::F32,
                  {a.getSize(0), a.getSize(1), columns + b.getSize(2)});
  for (int64_t i = 0; i < both.getSize(0); ++i)
    for (int64_t h = 0; h < both.getSize(1); ++h)
      for (int64_t d = 0; d < both.getSize(2); ++d)
        both.setFloat({i, h, d}, d < columns ? a.getFloat({i, h, d})
                                             : b.getFloat({i, h, d - columns}));
  return both;
}

/// `count` rows from `first` on.
HostTensor rowsOf(const HostTensor &from, int64_t first, int64_t count) {
  HostTensor rows(DType::F32, {count, from.getSize(1), from.getSize(2)});
  for (int64_t i = 0; i < count; ++i)
    for (int64_t h = 0; h < from.getSize(1); ++h)
      for (int64_t d = 0; d < from.getSize(2); ++d)
        rows.setFloat({i, h, d}, from.getFloat({first + i, h, d}));
  return rows;
}

/// The keys of pages [pages, page, dim], in the table's order: [keys, 1, dim].
HostTensor gather(const HostTensor &pool, llvm::ArrayRef<int64_t> pages,
                  int64_t keys) {
  int64_t page = pool.getSize(1), dim = pool.getShape().back();
  HostTensor rows(DType::F32, {keys, 1, dim});
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t d = 0; d < dim; ++d)
      rows.setFloat({j, 0, d}, pool.getFloat({pages[j / page], j % page, d}));
  return rows;
}

} // namespace

TEST(ReferenceLayouts, valuesHaveATableOfTheirOwn) {
  // One pool for both, as caches of blocks that hold keys or values have it.
  for (bool isDense : {false, true}) {
    std::string tables =
        isDense ? "!fi.paged_kv<4x1x8xf32, NHD, table = dense, two_tables>"
                : "!fi.paged_kv<4x1x8xf32, NHD, two_tables>";
    std::string plan = isDense ? "%pg: !t2, %vp: !t2, %len: !ix"
                               : "%ip: !ix, %pg: !ix, %vp: !ix, %last: !ix";
    std::string names = isDense ? "%pg, %vp, %len : !t2, !t2, !ix"
                                : "%ip, %pg, %vp, %last : !ix, !ix, !ix, !ix";
    Program program("!kv = " + tables + R"(
!pool = memref<?x4x1x8xf32>
!ix = tensor<?xi32>
!t2 = tensor<?x?xi32>
fi.program @p plan()" +
                    plan + R"() run(%q: tensor<?x2x8xf32>, %b: !pool)
    -> (tensor<?x2x8xf32>, tensor<?x2xf32>) {
  %kv = fi.view.paged %b, %b tables()" +
                    names + R"() : !pool, !pool -> !kv
  %o, %lse = fi.attention %q over %kv scale(0.5)
      : tensor<?x2x8xf32> over !kv -> tensor<?x2x8xf32>, tensor<?x2xf32>
  fi.return %o, %lse : tensor<?x2x8xf32>, tensor<?x2xf32>
})");
    HostTensor q = random({3, 2, 8}, 1), pool = random({9, 4, 1, 8}, 2);
    HostTensor flat(DType::F32, {9, 4, 8}, pool.getData(), {32, 8, 1});
    std::vector<HostValue> arguments;
    if (isDense) {
      HostTensor pages(DType::I32, {1, 3}), valuePages(DType::I32, {1, 3});
      for (int64_t i = 0; i < 3; ++i) {
        pages.setInteger({0, i}, std::array{7, 2, 5}[i]);
        valuePages.setInteger({0, i}, std::array{0, 8, 3}[i]);
      }
      arguments = {pages, valuePages, ints({10}), q, pool};
    } else {
      arguments = {ints({0, 3}), ints({7, 2, 5}), ints({0, 8, 3}), ints({2}), q,
                   pool};
    }
    std::vector<HostTensor> results = program.run(arguments);
    Dense wanted =
        dense(q, gather(flat, {7, 2, 5}, 10), gather(flat, {0, 8, 3}, 10), 0.5,
              [](int64_t, int64_t) { return true; });
    expectNear(results[0], wanted.output, 1e-6);
    expectNear(results[1], wanted.statistic, 1e-6);
    // A page of values outside of the pool is named as such.
    if (!isDense) {
      arguments[2] = ints({0, 9, 3});
      EXPECT_THAT(
          program.error(arguments),
          HasSubstr("expected operand 'value_pages' to hold indices of "
                    "the pool's 9 pages, but got 9 as page 1 of request "
                    "0 [BAT5]"));
    }
  }
}

static const char *const kLatent = R"(
!kv = !fi.latent_kv<16+8xf32, page = 4>
!c = memref<?x4x16xf32>
!r = memref<?x4x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix)
    run(%qn: tensor<?x3x16xf32>, %qr: tensor<?x3x8xf32>, %q: tensor<?x3x24xf32>, %c: !c, %r: !r)
    -> (tensor<?x3x16xf32>, tensor<?x3xf32>, tensor<?x3x16xf32>) {
  %kv = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  %o, %lse = fi.attention %qn, %qr over %kv scale(0.25) mask(#fi.causal)
      : tensor<?x3x16xf32>, tensor<?x3x8xf32> over !kv -> tensor<?x3x16xf32>, tensor<?x3xf32>
  %o2 = fi.attention %q over %kv scale(0.25) mask(#fi.causal)
      : tensor<?x3x24xf32> over !kv -> tensor<?x3x16xf32>
  fi.return %o, %lse, %o2 : tensor<?x3x16xf32>, tensor<?x3xf32>, tensor<?x3x16xf32>
})";

TEST(ReferenceLayouts, latentsAreKeysAndValues) {
  Program program(kLatent);
  HostTensor qn = random({2, 3, 16}, 1), qr = random({2, 3, 8}, 2),
             c = random({6, 4, 16}, 3), r = random({6, 4, 8}, 4);
  HostTensor q = beside(qn, qr);
  std::vector<HostTensor> results =
      program.run({ints({0, 3}), ints({5, 0, 2}), ints({1}), qn, qr, q, c, r});
  HostTensor latents = gather(c, {5, 0, 2}, 9);
  Dense wanted =
      dense(q, beside(latents, gather(r, {5, 0, 2}, 9)), latents, 0.25,
            [](int64_t row, int64_t key) { return key <= 7 + row; });
  expectNear(results[0], wanted.output, 1e-6);
  expectNear(results[1], wanted.statistic, 1e-6);
  expectNear(results[2], wanted.output, 1e-6);

  EXPECT_THAT(program.error({ints({0, 3}), ints({5, 0, 2}), ints({1}), qn,
                             random({3, 3, 8}, 2), q, c, r}),
              HasSubstr("expected the second query operand to have 2 rows like "
                        "the first, but got 3 [BAT10]"));
  // Both pools have to hold the pages.
  EXPECT_THAT(program.error({ints({0, 3}), ints({5, 0, 2}), ints({1}), qn, qr,
                             q, c, random({5, 4, 8}, 4)}),
              HasSubstr("indices of the pool's 5 pages, but got 5 as page 0"));
}

TEST(ReferenceLayouts, latentsAreAppended) {
  Program program(R"(
!kv = !fi.latent_kv<16+8xf32, page = 4>
!c = memref<?x4x16xf32>
!r = memref<?x4x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ap: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%nc: tensor<?x1x16xf32>, %nr: tensor<?x1x8xf32>, %c: !c, %r: !r) {
  %kv = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  fi.append %nc, %nr rows(%ap : !ix) to %kv : tensor<?x1x16xf32>, tensor<?x1x8xf32> to !kv
  fi.return
})");
  HostTensor nc = random({3, 1, 16}, 1), nr = random({3, 1, 8}, 2),
             c = filled({4, 4, 16}, 0), r = filled({4, 4, 8}, 0);
  program.run(
      {ints({0, 3}), ints({0, 2}), ints({3, 1}), ints({2}), nc, nr, c, r});
  // Keys 3, 4 and 5 of a request of 6.
  for (auto [i, page, slot] : {std::tuple(0, 3, 3), {1, 1, 0}, {2, 1, 1}})
    for (int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(c.getFloat({page, slot, d}), nc.getFloat({i, 0, d}));
      if (d < 8)
        EXPECT_EQ(r.getFloat({page, slot, d}), nr.getFloat({i, 0, d}));
    }
  EXPECT_EQ(c.getFloat({3, 2, 0}), 0);
}

namespace {

/// Two requests of 5 and 2 rows, 10 and 3 keys, blocks of 2 rows and 4 keys.
struct Blocks {
  HostTensor rows = ints({0, 5, 7}), indptr = ints({0, 10, 13}),
             rowIndptr = ints({0, 2, 2, 3, 4}), columns = ints({0, 2, 1, 0});
  HostTensor q = random({7, 2, 8}, 1), k = random({13, 1, 8}, 2),
             v = random({13, 1, 8}, 3);

  std::vector<HostValue> values() {
    return {rows, indptr, rowIndptr, columns, q, k, v};
  }
  Program make(const std::string &mask) {
    return Program(R"(
!kv = !fi.bsr_kv<4x1x8xf32, rows = 2>
!t = tensor<?x1x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%qo: !ix, %ip: !ix, %rp: !ix, %cols: !ix)
    run(%q: tensor<?x2x8xf32>, %k: !t, %v: !t) -> (tensor<?x2x8xf32>, tensor<?x2xf32>) {
  %kv = fi.view.bsr %k, %v indptr(%ip : !ix) blocks(%rp, %cols : !ix, !ix) : !t, !t -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.5) )" +
                   mask +
                   R"(
      : tensor<?x2x8xf32> over !kv -> tensor<?x2x8xf32>, tensor<?x2xf32>
  fi.return %o, %lse : tensor<?x2x8xf32>, tensor<?x2xf32>
})");
  }
};

} // namespace

TEST(ReferenceLayouts, blocksOfRowsSeeTheirBlocksOfKeys) {
  for (bool isCausal : {false, true}) {
    Blocks b;
    std::vector<HostTensor> results =
        b.make(isCausal ? "mask(#fi.causal)" : "").run(b.values());
    // Rows 0 and 1 see blocks 0 and 2, rows 2 and 3 none, row 4 block 1.
    Dense first = dense(rowsOf(b.q, 0, 5), rowsOf(b.k, 0, 10),
                        rowsOf(b.v, 0, 10), 0.5, [&](int64_t row, int64_t key) {
                          bool isListed = row < 2   ? key / 4 != 1
                                          : row < 4 ? false
                                                    : key / 4 == 1;
                          return isListed && (!isCausal || key <= 5 + row);
                        });
    Dense second = dense(
        rowsOf(b.q, 5, 2), rowsOf(b.k, 10, 3), rowsOf(b.v, 10, 3), 0.5,
        [&](int64_t row, int64_t key) { return !isCausal || key <= 1 + row; });
    expectNear(rowsOf(results[0], 0, 5), first.output, 1e-6);
    expectNear(rowsOf(results[0], 5, 2), second.output, 1e-6);
    for (int64_t row = 0; row < 7; ++row)
      EXPECT_NEAR(results[1].getFloat({row, 1}) == -kInf
                      ? -1e9
                      : results[1].getFloat({row, 1}),
                  std::max(-1e9, row < 5
                                     ? first.statistic.getFloat({row, 1})
                                     : second.statistic.getFloat({row - 5, 1})),
                  1e-6);
    EXPECT_EQ(results[1].getFloat({3, 0}), -kInf);
  }
}

TEST(ReferenceLayouts, bat13BlocksAreInOrder) {
  auto error = [](auto change) {
    Blocks b;
    change(b);
    return b.make("").error(b.values());
  };
  EXPECT_THAT(error([](Blocks &b) { b.rowIndptr = ints({0, 2, 2, 3}); }),
              HasSubstr("expected operand 'row_indptr' to have 5 entries, one "
                        "more than there are blocks of rows, but got 4 "
                        "[BAT13]"));
  EXPECT_THAT(
      error([](Blocks &b) { b.columns = ints({2, 0, 1, 0}); }),
      HasSubstr("expected operand 'columns' to rise within the 3 blocks "
                "of keys of request 0, but got 0 at entry 1 [BAT13]"));
  EXPECT_THAT(error([](Blocks &b) { b.columns = ints({0, 3, 1, 0}); }),
              HasSubstr("but got 3 at entry 1 [BAT13]"));
  EXPECT_THAT(error([](Blocks &b) { b.columns = ints({0, 2, 1, 1}); }),
              HasSubstr("1 blocks of keys of request 1, but got 1 at entry 3"));
  EXPECT_THAT(
      error([](Blocks &b) { b.columns = ints({0, 2, 1}); }),
      HasSubstr("expected operand 'row_indptr' to end at most at 3, the "
                "number of entries of operand 'columns', but got 4 "
                "[BAT4]"));
}

TEST(ReferenceLayouts, levelsOfPrefixesAreOneView) {
  // Keys 0 to 6 are one level, 7 to 11 the next, 12 to 19 the last.
  Program program(R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
!ix = tensor<?xi32>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
fi.program @p plan(%a: !ix, %b: !ix, %c: !ix, %bf: !ix, %cf: !ix, %pos: !ix)
    run(%q: tensor<?x2x8xf32>, %k: !t, %v: !t) -> (tensor<?x2x8xf32>, tensor<?x2xf32>) {
  %va = fi.view.ragged %k, %v indptr(%a : !ix) : !t, !t -> !kv
  %vb = fi.view.ragged %k, %v indptr(%b : !ix) origin(%bf : !ix) : !t, !t -> !kv
  %vc = fi.view.ragged %k, %v indptr(%c : !ix) origin(%cf : !ix) : !t, !t -> !kv
  %sa = fi.attention %q over %va at(%pos : !ix) scale(0.5) mask(#fi.window<left = 10>)
      : tensor<?x2x8xf32> over !kv -> !st
  %sb = fi.attention %q over %vb at(%pos : !ix) scale(0.5) mask(#fi.window<left = 10>)
      : tensor<?x2x8xf32> over !kv -> !st
  %sc = fi.attention %q over %vc at(%pos : !ix) scale(0.5) mask(#fi.window<left = 10>, #fi.causal)
      : tensor<?x2x8xf32> over !kv -> !st
  %s = fi.merge %sa, %sb, %sc : !st
  %o, %lse = fi.finalize %s : !st -> tensor<?x2x8xf32>, tensor<?x2xf32>
  fi.return %o, %lse : tensor<?x2x8xf32>, tensor<?x2xf32>
})");
  HostTensor q = random({3, 2, 8}, 1), k = random({20, 1, 8}, 2),
             v = random({20, 1, 8}, 3);
  std::vector<int64_t> positions = {12, 16, 19};
  std::vector<HostTensor> results =
      program.run({ints({0, 7}), ints({7, 12}), ints({12, 20}), ints({7}),
                   ints({12}), ints(positions), q, k, v});
  Dense wanted = dense(q, k, v, 0.5, [&](int64_t row, int64_t key) {
    return key <= positions[row] && key >= positions[row] - 10;
  });
  expectNear(results[0], wanted.output, 1e-6);
  expectNear(results[1], wanted.statistic, 1e-6);
}
