//===- CompareTest.cpp - comparing runs -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecutionTesting.h"
#include "gmock/gmock.h"
#include <cmath>

using namespace fi;
using namespace fi::test;
using testing::HasSubstr;

namespace {

const char *const kBatch =
    R"({"requests": [{"q_len": 3, "kv_len": 6}, {"q_len": 2, "kv_len": 1},
                     {"q_len": 0, "kv_len": 0}]})";

struct Fixture {
  Fixture() : p(kPaged), inputs(p.inputs(kBatch)) {
    got = p.run(inputs);
    expected = p.run(inputs);
  }
  std::vector<Comparison> compare(CompareOptions options = {}) {
    return compareRuns(p.signature, got, expected, options);
  }
  TestProgram p;
  std::vector<HostValue> inputs;
  BackendRun got, expected;
};

TEST(Compare, EqualRunsAgree) {
  Fixture f;
  auto comparisons = f.compare();
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_EQ(comparisons[0].compared, 5 * 2 * 8);
  EXPECT_EQ(comparisons[1].compared, 5 * 2);
  for (const Comparison &c : comparisons)
    EXPECT_TRUE(c.passed());
  // Row 3 sees nothing: both sides are -inf.
  EXPECT_TRUE(std::isinf(f.got.results[1].getFloat({3, 0})));
}

TEST(Compare, OneWrongElementIsFound) {
  Fixture f;
  double value = f.got.results[0].getFloat({2, 1, 5});
  f.got.results[0].setFloat({2, 1, 5}, value + 1e-3);
  auto comparisons = f.compare();
  EXPECT_FALSE(comparisons[0].passed());
  EXPECT_EQ(comparisons[0].failed, 1);
  EXPECT_EQ(comparisons[0].worst, (llvm::SmallVector<int64_t, 4>{2, 1, 5}));
  EXPECT_NEAR(comparisons[0].error, 1e-3, 1e-6);
  EXPECT_TRUE(comparisons[1].passed());
  // A rounding error passes.
  f.got.results[0].setFloat({2, 1, 5}, value * (1 + 1e-7));
  EXPECT_TRUE(f.compare()[0].passed());
}

TEST(Compare, NaNAndInfinityAreWrong) {
  for (double wrong : {std::nan(""), double(INFINITY), double(-INFINITY)})
    for (int result : {0, 1}) {
      Fixture f;
      llvm::SmallVector<int64_t, 4> index = {1, 0};
      if (result == 0)
        index.push_back(7);
      f.got.results[result].setFloat(index, wrong);
      EXPECT_EQ(f.compare()[result].failed, 1);
      EXPECT_EQ(f.compare()[result].worst, index);
    }
}

// A sink is a score: what it rounds to may be as far away as its size says,
// also in rows of no request. It may be finalised after a merge.
TEST(Compare, SinksWidenTolerances) {
  TestProgram p(R"(
!ix = tensor<?xi32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
!q = tensor<?x2x8xf32>
fi.program @p plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t, %sink: tensor<2xf32>)
    -> (!q, tensor<?x2xf32>) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %a = fi.attention %q rows(%qo : !ix) over %kv scale(0.5) : !q over !kv -> !st
  %m = fi.merge %a : !st
  %o, %lse = fi.finalize %m sink(%sink : tensor<2xf32>) : !st -> !q, tensor<?x2xf32>
  fi.return %o, %lse : !q, tensor<?x2xf32>
})");
  EXPECT_EQ(p.signature.attentions[0].sinks.size(), 1u);
  EXPECT_FALSE(p.signature.attentions[0].hasPlainScores);
  for (double sink : {-90.0, 0.5}) {
    auto inputs =
        p.inputs(R"({"arguments": {"qo": [0, 1], "ip": [0, 0], "sink": [)" +
                 std::to_string(sink) + R"(, -3],
            "q": {"random": "normal", "shape": [2, 2, 8]}}})");
    BackendRun got = p.run(inputs), expected = p.run(inputs);
    for (int64_t row : {0, 1}) {
      double lse = got.results[1].getFloat({row, 0});
      EXPECT_NEAR(lse, sink / std::log(2.0), 1e-5);
      got.results[1].setFloat({row, 0}, lse + 1.6e-5);
    }
    EXPECT_EQ(compareRuns(p.signature, got, expected, {})[1].failed,
              sink == 0.5 ? 2 : 0);
  }
}

TEST(Compare, AFiniteStatisticOfAnEmptyRowIsWrong) {
  Fixture f;
  f.got.results[1].setFloat({3, 0}, -1e30);
  EXPECT_EQ(f.compare()[1].failed, 1);
}

TEST(Compare, OnlyTheSampleIsCompared) {
  Fixture f;
  f.got.results[0].setFloat({2, 1, 5}, 9);
  CompareOptions options;
  options.onlyRows = {{{2, 0}, {4, 1}}};
  auto comparisons = f.compare(options);
  EXPECT_TRUE(comparisons[0].passed());
  EXPECT_EQ(comparisons[0].compared, 16);
  options.onlyRows = {{{2, 1}}};
  EXPECT_FALSE(f.compare(options)[0].passed());
}

TEST(Compare, SamplesAreRowsOfTheQuery) {
  Fixture f;
  auto rows = sampleRows(f.p.signature, f.inputs, 4, 1);
  EXPECT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows, sampleRows(f.p.signature, f.inputs, 4, 1));
  for (auto [row, head] : rows) {
    EXPECT_LT(row, 5);
    EXPECT_LT(head, 2);
  }
  EXPECT_EQ(sampleRows(f.p.signature, f.inputs, 1000, 1).size(), 10u);
}

TEST(Compare, CountsVisibleKeysByARun) {
  Fixture f;
  auto executor = Executor::create("reference", *f.p.module, "", {});
  ASSERT_TRUE(static_cast<bool>(executor));
  auto counts = countVisibleKeys(**executor, f.p.signature, f.inputs);
  ASSERT_TRUE(static_cast<bool>(counts)) << llvm::toString(counts.takeError());
  // What the interpreter counted on the way.
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t head = 0; head < 2; ++head)
      EXPECT_EQ((*counts)[0].getInteger({row, head}),
                f.expected.visibleKeys[0].getInteger({row, head}));
  EXPECT_EQ((*counts)[0].getInteger({2, 0}), 6);
  EXPECT_EQ((*counts)[0].getInteger({3, 0}), 0);
}

TEST(Compare, WrittenPoolsMustBeEqual) {
  TestProgram p(R"(
!ix = tensor<?xi32>
!pool = memref<?x4x1x8xf32>
!kv = !fi.paged_kv<4x1x8xf32, NHD>
!new = tensor<?x1x8xf32>
fi.program @p plan(%ap: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%nk: !new, %nv: !new, %k: !pool, %v: !pool) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%ap : !ix) to %kv : !new, !new to !kv
  fi.return
})");
  auto inputs = p.inputs(R"({"requests": [{"q_len": 3, "kv_len": 6}]})");
  ASSERT_EQ(inputs.size(), 8u);
  BackendRun got = p.run(inputs), expected = p.run(inputs);
  // Each run has pools of its own; the inputs stay.
  EXPECT_NE(got.arguments[6].getTensor().getData(),
            inputs[6].getTensor().getData());
  auto comparisons = compareRuns(p.signature, got, expected, {});
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_TRUE(comparisons[0].passed() && comparisons[1].passed());
  int64_t page = inputs[2].getTensor().getInteger({1});
  // Key 5 is the last of the new ones.
  EXPECT_EQ(got.arguments[6].getTensor().getFloat({page, 1, 0, 3}),
            inputs[4].getTensor().getFloat({2, 0, 3}));
  got.arguments[6].getTensor().setFloat({page, 1, 0, 3}, 2.5);
  comparisons = compareRuns(p.signature, got, expected, {});
  EXPECT_EQ(comparisons[0].failed, 1);
  EXPECT_EQ(comparisons[0].name, "k");
}

TEST(Executor, RefusesWithASentence) {
  TestProgram p(kPaged);
  auto backend = Executor::create("gpu", *p.module, "", {});
  ASSERT_FALSE(static_cast<bool>(backend));
  EXPECT_THAT(llvm::toString(backend.takeError()),
              HasSubstr("or reference, but got 'gpu'"));
  auto name = Executor::create("reference", *p.module, "q", {});
  ASSERT_FALSE(static_cast<bool>(name));
  EXPECT_THAT(llvm::toString(name.takeError()),
              HasSubstr("no program is named 'q'; the module has p"));
  auto package = Executor::openPackage("/nonexistent.fipkg", {});
  ASSERT_FALSE(static_cast<bool>(package));
  EXPECT_THAT(llvm::toString(package.takeError()), HasSubstr("nonexistent"));
  for (const char *text : {"fixed", "fixed:0", "fixed:x", "even"}) {
    auto split = parseSplit(text);
    ASSERT_FALSE(static_cast<bool>(split)) << text;
    EXPECT_THAT(llvm::toString(split.takeError()),
                HasSubstr("expected balanced, fixed:N"));
  }
  EXPECT_EQ(parseSplit("fixed:256")->second, 256);
}

} // namespace
