//===- BatchErrorsTest.cpp - wrong batches are sentences ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One test for each rule on the data of a batch (BAT1 ... in docs/spec.md).
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"
#include "gmock/gmock.h"

using namespace fi;
using namespace fi::test;
using testing::HasSubstr;

namespace {

/// Two requests of 1 row; 3 and 2 keys in pages of 2. Each test breaks one
/// thing.
struct Paged {
  HostTensor rows = ints({0, 1, 2}), indptr = ints({0, 2, 3}),
             pages = ints({0, 2, 3}), last = ints({1, 2}),
             origin = ints({0, 0}), positions = ints({2, 1});
  HostTensor q = random({2, 2, 8}, 1), k = random({4, 2, 1, 8}, 2),
             v = random({4, 2, 1, 8}, 3), sink = floats({2}, {0, 0});

  std::string error() { return make().error(values()); }
  void expectGood() { make().run(values()); }

  std::vector<HostValue> values() {
    return {rows, indptr, pages, last, origin, positions, q, k, v, sink};
  }
  Program make() {
    return Program(R"(
!kv = !fi.paged_kv<?x1x8xf32, NHD>
!pool = memref<?x?x1x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix, %first: !ix, %pos: !ix)
    run(%q: tensor<?x2x8xf32>, %k: !pool, %v: !pool, %sink: tensor<?xf32>) -> (tensor<?x2x8xf32>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) origin(%first : !ix)
      : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv at(%pos : !ix) scale(1.0)
      sink(%sink : tensor<?xf32>) : tensor<?x2x8xf32> over !kv -> tensor<?x2x8xf32>
  fi.return %o : tensor<?x2x8xf32>
})");
  }
};

} // namespace

TEST(ReferenceBatch, theUnbrokenBatchRuns) { Paged().expectGood(); }

TEST(ReferenceBatch, bat1Arguments) {
  Paged b;
  Program p = b.make();
  std::vector<HostValue> few = b.values();
  few.pop_back();
  EXPECT_EQ(p.error(few), "program @p: 'fi.program' op expected 10 arguments, "
                          "but got 9 [BAT1]");
  b.rows = ints({0, 1, 2}, DType::I64);
  EXPECT_EQ(b.error(),
            "program @p: 'fi.program' op expected argument 'qo' to be "
            "tensor<?xi32>, but got a tensor of [3] of i64 [BAT1]");
  b.rows = ints({0, 1, 2});
  b.q = random({2, 3, 8}, 1);
  EXPECT_THAT(b.error(), HasSubstr("argument 'q' to be tensor<?x2x8xf32>, but "
                                   "got a tensor of [2, 3, 8] of f32 [BAT1]"));
  b.q = random({2, 16}, 1);
  EXPECT_THAT(b.error(), HasSubstr("[2, 16] of f32 [BAT1]"));
}

TEST(ReferenceBatch, bat1Scalars) {
  Program p(R"(
fi.program @p run(%a: f32, %b: i8, %c: i1, %d: index) -> () {
  fi.return
})");
  auto i = [](int64_t x) { return HostValue::integer(x); };
  auto f = [](double x) { return HostValue::number(x); };
  p.run({f(1), i(-128), i(1), i(-5)});
  EXPECT_THAT(p.error({i(1), i(0), i(1), i(5)}),
              HasSubstr("'a' to be f32, but got an integer [BAT1]"));
  EXPECT_THAT(p.error({f(1), f(0), i(1), i(5)}),
              HasSubstr("'b' to be i8, but got a float [BAT1]"));
  EXPECT_THAT(p.error({f(1), i(128), i(1), i(5)}),
              HasSubstr("'b' to be i8, but got 128 [BAT1]"));
  EXPECT_THAT(p.error({ints({1}), i(0), i(1), i(5)}),
              HasSubstr("'a' to be f32, but got a tensor of [1] of i32"));
}

TEST(ReferenceBatch, bat2Indptr) {
  Paged b;
  b.indptr = ints({0, 2, 1});
  EXPECT_EQ(b.error(),
            "program @p: 'fi.view.paged' op expected operand 'indptr' not to "
            "fall and not to be negative, but got 1 at entry 2 after 2 [BAT2]");
  b.indptr = ints({-1, 2, 3});
  EXPECT_THAT(b.error(), HasSubstr("got -1 at entry 0 after 0 [BAT2]"));
  b.indptr = ints({});
  EXPECT_THAT(b.error(), HasSubstr("'indptr' to have one entry more than there "
                                   "are requests, but got 0 entries [BAT2]"));
  b = Paged();
  b.rows = ints({0, 2, 1});
  EXPECT_THAT(b.error(), HasSubstr("'rows' not to fall"));
}

TEST(ReferenceBatch, bat3Requests) {
  Paged b;
  b.rows = ints({0, 2});
  EXPECT_THAT(b.error(),
              HasSubstr("expected operand 'rows' to have 3 entries, one more "
                        "than the view has requests, but got 2 [BAT3]"));
  Program p(R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
fi.program @p plan(%ip: tensor<?xi32>) run(%q: !t, %k: !t) -> (!t) {
  %kv = fi.view.ragged %k, %k indptr(%ip : tensor<?xi32>) : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !t over !kv -> !t
  fi.return %o : !t
})");
  HostTensor t = random({4, 1, 8}, 1);
  p.run({ints({1, 4}), t, t});
  EXPECT_THAT(
      p.error({ints({0, 1, 4}), t, t}),
      HasSubstr("expected a view of 1 request where there is no operand "
                "'rows', but got 2 [BAT3]"));
}

TEST(ReferenceBatch, bat4Ends) {
  Paged b;
  b.rows = ints({0, 1, 3});
  EXPECT_THAT(b.error(), HasSubstr("'rows' to end at most at 2, the number of "
                                   "rows, but got 3 [BAT4]"));
  b = Paged();
  b.indptr = ints({0, 2, 4});
  EXPECT_THAT(
      b.error(),
      HasSubstr("'indptr' to end at most at 3, the number of entries of "
                "operand 'pages', but got 4 [BAT4]"));
}

TEST(ReferenceBatch, bat5Pages) {
  Paged b;
  b.pages = ints({0, 4, 3});
  EXPECT_THAT(b.error(), HasSubstr("'pages' to hold indices of the pool's 4 "
                                   "pages, but got 4 as page 1 of request 0 "
                                   "[BAT5]"));
  b.pages = ints({0, 2, -1});
  EXPECT_THAT(b.error(), HasSubstr("got -1 as page 0 of request 1 [BAT5]"));
}

TEST(ReferenceBatch, bat6Last) {
  Paged b;
  b.last = ints({1, 3});
  EXPECT_THAT(b.error(), HasSubstr("'last' between 1 and the page size 2, but "
                                   "got 3 for request 1 [BAT6]"));
  b.last = ints({0, 1});
  EXPECT_THAT(b.error(), HasSubstr("but got 0 for request 0 [BAT6]"));
  b.last = ints({1});
  EXPECT_THAT(b.error(), HasSubstr("'last' to have an entry for each of 2 "
                                   "requests, but got 1 [BAT6]"));
}

TEST(ReferenceBatch, bat7DenseTables) {
  Program p(R"(
!kv = !fi.paged_kv<2x1x8xf32, NHD, table = dense>
!pool = memref<?x2x1x8xf32>
fi.program @p plan(%t: tensor<?x?xi32>, %n: tensor<?xi32>)
    run(%q: tensor<?x1x8xf32>, %k: !pool) -> (tensor<?x1x8xf32>) {
  %kv = fi.view.paged %k, %k tables(%t, %n : tensor<?x?xi32>, tensor<?xi32>)
      : !pool, !pool -> !kv
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x1x8xf32> over !kv -> tensor<?x1x8xf32>
  fi.return %o : tensor<?x1x8xf32>
})");
  HostTensor table(DType::I32, {1, 2}), q = random({1, 1, 8}, 1),
                                        k = random({2, 2, 1, 8}, 2);
  p.run({table, ints({4}), q, k});
  for (int64_t length : {5, -1})
    EXPECT_THAT(
        p.error({table, ints({length}), q, k}),
        HasSubstr("'lengths' between 0 and 4 (the row of operand 'pages' "
                  "has no more), but got " +
                  std::to_string(length) + " for request 0 [BAT7]"));
  EXPECT_THAT(p.error({table, ints({1, 1}), q, k}),
              HasSubstr("'pages' to have a row for each of 2 requests, but got "
                        "1 [BAT7]"));
}

TEST(ReferenceBatch, bat8OriginsAndPositions) {
  Paged b;
  b.origin = ints({0});
  EXPECT_THAT(b.error(), HasSubstr("'origin' to have an entry for each of 2 "
                                   "requests, but got 1 [BAT8]"));
  b = Paged();
  b.positions = ints({0});
  EXPECT_THAT(b.error(), HasSubstr("'positions' to have an entry for each of 2 "
                                   "rows, but got 1 [BAT8]"));
}

TEST(ReferenceBatch, bat9Pools) {
  Paged b;
  b.v = random({4, 3, 1, 8}, 3);
  EXPECT_THAT(b.error(), HasSubstr("'values' to have pages of 2 keys like "
                                   "operand 'keys', but got 3 [BAT9]"));
  b.k = b.v = HostTensor(DType::F32, {4, 0, 1, 8});
  EXPECT_THAT(b.error(), HasSubstr("expected pages of at least 1 key"));
  Program p(R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
fi.program @p run(%q: !t, %k: !t, %v: !t) -> (!t) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !t over !kv -> !t
  fi.return %o : !t
})");
  EXPECT_THAT(
      p.error(
          {random({1, 1, 8}, 1), random({3, 1, 8}, 1), random({2, 1, 8}, 1)}),
      HasSubstr("'values' to have 3 tokens like operand 'keys', but got "
                "2 [BAT9]"));
}

TEST(ReferenceBatch, bat9DynamicSizes) {
  // Types of pools may leave open what the view's type says.
  for (bool hnd : {false, true}) {
    std::string order = hnd ? "HND" : "NHD";
    Program p(R"(
!kv = !fi.paged_kv<2x3x8xf32, )" +
              order + R"(>
!pool = memref<?x?x?x?xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.return
})");
    auto pool = [&](int64_t page, int64_t heads, int64_t dim) {
      return hnd ? HostTensor(DType::F32, {4, heads, page, dim})
                 : HostTensor(DType::F32, {4, page, heads, dim});
    };
    auto values = [&](HostTensor k, HostTensor v) {
      return std::vector<HostValue>{ints({0}), ints({}), ints({}), k, v};
    };
    p.run(values(pool(2, 3, 8), pool(2, 3, 8)));
    EXPECT_THAT(p.error(values(pool(4, 3, 8), pool(4, 3, 8))),
                HasSubstr("'keys' of size 2 in dimension " +
                          std::to_string(hnd ? 2 : 1) +
                          " by the view's type, but got 4 [BAT9]"));
    EXPECT_THAT(p.error(values(pool(2, 3, 8), pool(2, 2, 8))),
                HasSubstr("'values' of size 3 in dimension"));
    EXPECT_THAT(p.error(values(pool(2, 3, 16), pool(2, 3, 8))),
                HasSubstr("'keys' of size 8 in dimension 3"));
  }
  Program ragged(R"(
!kv = !fi.ragged_kv<2x8xf32>
!m = memref<?x?x?xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ap: !ix) run(%nk: !m, %nv: !m, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  fi.append %nk, %nv rows(%ap : !ix) to %kv : !m, !m to !kv
  fi.return
})");
  HostTensor good(DType::F32, {3, 2, 8}), wide(DType::F32, {3, 2, 16});
  ragged.run({ints({0, 3}), good, good, good});
  EXPECT_THAT(ragged.error({ints({0, 3}), good, good, wide}),
              HasSubstr("'keys' of size 8 in dimension 2"));
  EXPECT_THAT(ragged.error({ints({0, 3}), good, wide, good}),
              HasSubstr("expected operand 'values' to have 2 heads of 8 by the "
                        "view's type, but got 2 of 16 [BAT9]"));
  EXPECT_THAT(
      ragged.error(
          {ints({0, 3}), good, HostTensor(DType::F32, {2, 2, 8}), good}),
      HasSubstr("expected operand 'values' to have 3 tokens like operand "
                "'keys', but got 2 [BAT9]"));
}

TEST(ReferenceBatch, bat10Sizes) {
  Paged b;
  b.sink = floats({3}, {0, 0, 0});
  EXPECT_THAT(b.error(),
              HasSubstr("'sink' to have an entry for each of 2 heads, "
                        "but got 3 [BAT10]"));
  Program p(R"(
!st = !fi.state<?x1x8xf32, #fi.softmax<base = 2>>
fi.program @p run(%a: index, %b: index) -> (tensor<3x1x8xf32>) {
  %x = fi.empty rows(%a) : !st
  %y = fi.empty rows(%b) : !st
  %s = fi.merge %x, %y : !st
  %o = fi.finalize %s : !st -> tensor<3x1x8xf32>
  fi.return %o : tensor<3x1x8xf32>
})");
  auto i = [](int64_t x) { return HostValue::integer(x); };
  p.run({i(3), i(3)});
  EXPECT_THAT(
      p.error({i(3), i(4)}),
      HasSubstr("expected state 1 to have 3 rows like state 0, but got 4 "
                "[BAT10]"));
  EXPECT_THAT(p.error({i(4), i(4)}),
              HasSubstr("expected 3 rows by the type of result 0, but got 4 "
                        "[BAT10]"));
  EXPECT_THAT(p.error({i(-1), i(0)}),
              HasSubstr("'rows' of at least 0, but got -1 [BAT10]"));
}

TEST(ReferenceBatch, bat11Arithmetic) {
  Program p(R"(
fi.program @p run(%a: tensor<4xf32>, %d: index) {
  %n = tensor.dim %a, %d : tensor<4xf32>
  fi.return
})");
  p.run({random({4}, 1), HostValue::integer(0)});
  for (int64_t dim : {1, -1})
    EXPECT_EQ(
        p.error({random({4}, 1), HostValue::integer(dim)}),
        "program @p: 'tensor.dim' op expected a dimension below 1, but got " +
            std::to_string(dim) + " [BAT11]");
  Program division(R"(
fi.program @p run(%a: i32, %b: i32) {
  %n = arith.divsi %a, %b : i32
  fi.return
})");
  auto i = [](int64_t x) { return HostValue::integer(x); };
  // REG4: every quotient has a value.
  division.run({i(1), i(0)});
  division.run({i(-2147483648), i(-1)});
}

TEST(ReferenceBatch, bat12Rows) {
  Paged b;
  ReferenceOptions options;
  options.onlyRows = {{2, 0}};
  EXPECT_THAT(b.make().error(b.values(), options),
              HasSubstr("expected rows to evaluate among 2 x 2, but got (2, 0) "
                        "[BAT12]"));
}

TEST(ReferenceBatch, app3LongerThanTheView) {
  Program p(R"(
!kv = !fi.ragged_kv<1x8xf32>
!m = memref<?x1x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ap: !ix) run(%nk: !m, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  fi.append %nk, %nk rows(%ap : !ix) to %kv : !m, !m to !kv
  fi.return
})");
  EXPECT_THAT(
      p.error({ints({0, 4}), random({4, 1, 8}, 1), random({3, 1, 8}, 2)}),
      HasSubstr("expected at most 3 new tokens, as many as the view has "
                "keys, but got 4 for request 0 [APP3]"));
}

TEST(ReferenceBatch, prg8OpsThatHaveNoMeaningHere) {
  Program p(R"(
fi.program @p run(%a: tensor<4xf32>) -> (tensor<4xf32>) {
  %b = arith.addf %a, %a : tensor<4xf32>
  fi.return %b : tensor<4xf32>
})");
  EXPECT_EQ(p.error({random({4}, 1)}),
            "program @p: 'arith.addf' op: expected scalars of at most 64 bits "
            "[PRG8]");
}
