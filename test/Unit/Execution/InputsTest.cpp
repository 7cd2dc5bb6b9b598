//===- InputsTest.cpp - arguments from batches ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ExecutionTesting.h"
#include "fi/Support/Random.h"
#include "gmock/gmock.h"
#include <cmath>
#include <set>

using namespace fi;
using namespace fi::test;
using testing::HasSubstr;

namespace {

std::vector<int64_t> entries(const HostValue &value) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < value.getTensor().getSize(0); ++i)
    result.push_back(value.getTensor().getInteger({i}));
  return result;
}

TEST(Signature, FindsRoles) {
  TestProgram p(kPaged);
  const Signature &s = p.signature;
  ASSERT_EQ(s.arguments.size(), 8u);
  EXPECT_TRUE(s.arguments[3].isPlan);
  EXPECT_FALSE(s.arguments[4].isPlan);
  EXPECT_EQ(s.arguments[5].kind, ArgumentInfo::Kind::Pool);
  EXPECT_EQ(s.arguments[7].kind, ArgumentInfo::Kind::Scalar);
  ASSERT_EQ(s.attentions.size(), 1u);
  const AttentionInfo &a = s.attentions[0];
  EXPECT_EQ(a.query, 4);
  EXPECT_EQ(a.rows, 0);
  EXPECT_EQ(a.scale, 7);
  EXPECT_EQ(a.output, 0);
  EXPECT_EQ(a.lse, 1);
  EXPECT_EQ(a.view.indptr, 1);
  EXPECT_EQ(a.view.pages, 2);
  EXPECT_EQ(a.view.last, 3);
  EXPECT_EQ(a.view.page, 4);
  EXPECT_TRUE(a.hasPlainScores);
  EXPECT_EQ(s.results[1].rowsOf, 4);
}

TEST(Inputs, TablesFromLengths) {
  TestProgram p(kPaged);
  auto values = p.inputs(
      R"({"requests": [{"q_len": 3, "kv_len": 6}, {"q_len": 0, "kv_len": 0},
                       {"q_len": 1, "kv_len": 8}]})");
  ASSERT_EQ(values.size(), 8u);
  EXPECT_EQ(entries(values[0]), (std::vector<int64_t>{0, 3, 3, 4}));
  EXPECT_EQ(entries(values[1]), (std::vector<int64_t>{0, 2, 2, 4}));
  EXPECT_EQ(entries(values[3]), (std::vector<int64_t>{2, 0, 4}));
  // Different pages, inside of the pool, which has unused ones too.
  std::vector<int64_t> pages = entries(values[2]);
  EXPECT_EQ(std::set<int64_t>(pages.begin(), pages.end()).size(), 4u);
  int64_t pool = values[5].getTensor().getSize(0);
  EXPECT_GT(pool, 4);
  for (int64_t page : pages)
    EXPECT_LT(page, pool);
  EXPECT_EQ(values[4].getTensor().getShape(),
            llvm::ArrayRef<int64_t>({4, 2, 8}));
  EXPECT_DOUBLE_EQ(values[7].getNumber(), 1 / std::sqrt(8.0));
  std::vector<RequestLengths> lengths =
      getRequestLengths(p.signature.attentions[0], values);
  ASSERT_EQ(lengths.size(), 3u);
  EXPECT_EQ(lengths[0].keyLength, 6);
  EXPECT_EQ(lengths[1].keyLength, 0);
  EXPECT_EQ(lengths[2].queryLength, 1);
}

// Rows of no request and spare pages are stated; what the tables need remains
// below that.
TEST(Inputs, StatedShapesNeedNotFollow) {
  TestProgram p(kPaged);
  auto values = p.inputs(
      R"({"arguments": {"qo": [1, 2], "ip": [0, 1], "pg": [3], "last": [1], "sc": 1,
                        "q": {"random": "normal", "shape": [5, 2, 8]},
                        "k": {"fill": 1, "shape": [7, 4, 1, 8]},
                        "v": {"random": "uniform"}}})");
  ASSERT_EQ(values.size(), 8u);
  EXPECT_EQ(values[4].getTensor().getSize(0), 5);
  EXPECT_EQ(values[5].getTensor().getSize(0), 7);
  EXPECT_EQ(values[6].getTensor().getSize(0), 4);
}

/// Every slot of a pool is NaN exactly where no request has a key, in any
/// layout.
void checkUnused(const char *text, int pool,
                 llvm::function_ref<llvm::SmallVector<int64_t>(
                     int64_t page, int64_t slot, int64_t head, int64_t d)>
                     index) {
  TestProgram p(text);
  auto values = p.inputs(
      R"({"arguments": {"qo": [0, 1, 2], "ip": [1, 3, 4], "pg": [9, 4, 0, 2],
                        "last": [3, 1], "sc": 1}})");
  ASSERT_FALSE(values.empty());
  const HostTensor &tensor = values[pool].getTensor();
  // Request 0: page 4 whole, page 0 up to 3 keys; request 1: a key of page 2.
  auto isUsed = [](int64_t page, int64_t slot) {
    return page == 4 || (page == 0 && slot < 3) || (page == 2 && slot < 1);
  };
  for (int64_t page = 0; page < 10; ++page)
    for (int64_t slot = 0; slot < 4; ++slot)
      for (int64_t d = 0; d < 8; ++d)
        EXPECT_EQ(std::isnan(tensor.getFloat(index(page, slot, 0, d))),
                  !isUsed(page, slot))
            << page << ' ' << slot;
}

TEST(Inputs, UnusedSlotsAreNaN) {
  checkUnused(kPaged, 5,
              [](int64_t page, int64_t slot, int64_t head, int64_t d) {
                return llvm::SmallVector<int64_t>{page, slot, head, d};
              });
}

TEST(Inputs, UnusedSlotsOfHNDAreNaN) {
  std::string text = kPaged;
  for (auto [from, to] :
       {std::pair("?x4x1x8", "?x1x4x8"), std::pair("NHD", "HND")})
    text.replace(text.find(from), strlen(from), to);
  checkUnused(text.c_str(), 6,
              [](int64_t page, int64_t slot, int64_t head, int64_t d) {
                return llvm::SmallVector<int64_t>{page, head, slot, d};
              });
}

TEST(Inputs, UnusedSlotsOfFusedPoolsAreNaN) {
  checkUnused(R"(
!ix = tensor<?xi32>
!pool = memref<?x2x4x1x8xf32>
!kv = !fi.paged_kv<4x1x8xf32, NHD, fused>
!q = tensor<?x2x8xf32>
fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %sc: f32) -> (!q) {
  %kv = fi.view.paged %k tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(%sc) : !q over !kv -> !q
  fi.return %o : !q
})",
              5, [](int64_t page, int64_t slot, int64_t head, int64_t d) {
                return llvm::SmallVector<int64_t>{page, 1, slot, head, d};
              });
}

TEST(Inputs, DenseTablesAndRaggedViews) {
  TestProgram dense(R"(
!ix = tensor<?xi64>
!pool = memref<?x4x1x8xf32>
!kv = !fi.paged_kv<4x1x8xf32, NHD, index = i64, table = dense>
!q = tensor<?x1x8xf32>
fi.program @p plan(%qo: !ix, %pg: tensor<?x?xi64>, %len: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%pg, %len : tensor<?x?xi64>, !ix) : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
})");
  const char *batch =
      R"({"requests": [{"q_len": 2, "kv_len": 9}, {"q_len": 1, "kv_len": 1}]})";
  auto values = dense.inputs(batch);
  ASSERT_EQ(values.size(), 6u);
  EXPECT_EQ(values[1].getTensor().getShape(), llvm::ArrayRef<int64_t>({2, 3}));
  EXPECT_EQ(entries(values[2]), (std::vector<int64_t>{9, 1}));
  EXPECT_EQ(dense.run(values).results[0].getSize(0), 3);

  TestProgram ragged(R"(
!ix = tensor<?xi32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
fi.program @p plan(%qo: !ix, %ip: !ix, %pos: !ix) run(%q: !t, %k: !t, %v: !t) -> (!t) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv at(%pos : !ix) scale(1.0) mask(#fi.causal) : !t over !kv -> !t
  fi.return %o : !t
})");
  values = ragged.inputs(batch);
  ASSERT_EQ(values.size(), 6u);
  EXPECT_EQ(entries(values[1]), (std::vector<int64_t>{0, 9, 10}));
  EXPECT_EQ(entries(values[2]), (std::vector<int64_t>{7, 8, 0}));
  EXPECT_EQ(values[4].getTensor().getSize(0), 10);
  BackendRun run = ragged.run(values);
  EXPECT_EQ(run.visibleKeys[0].getInteger({0, 0}), 8);
}

TEST(Inputs, GivenTensorsComeFirst) {
  TestProgram p(kPaged);
  InputOptions options;
  HostTensor q(DType::F64, {2, 2, 8});
  fillConstant(q, 3);
  options.tensors.push_back({"q", q});
  auto values = p.inputs(
      R"({"requests": [{"q_len": 2, "kv_len": 2}], "arguments": {"q": {"fill": 1}}})",
      options);
  ASSERT_EQ(values.size(), 8u);
  // Converted to the program's type.
  EXPECT_EQ(values[4].getTensor().getType(), DType::F32);
  EXPECT_EQ(values[4].getTensor().getFloat({1, 1, 7}), 3);
}

TEST(Inputs, RefusesWithASentence) {
  TestProgram p(kPaged);
  EXPECT_THAT(p.inputError("{}"),
              HasSubstr("argument 'qo' has no value; give it in the batch"));
  EXPECT_THAT(p.inputError(R"({"arguments": {"qq": 1}})"),
              HasSubstr("program 'p' has no argument 'qq'; it has qo, ip, pg"));
  EXPECT_THAT(p.inputError(R"({"page_size": 16, "requests": []})"),
              HasSubstr("the program's pages hold 4 keys"));
  EXPECT_THAT(
      p.inputError(
          R"({"pool_pages": 2, "requests": [{"q_len": 1, "kv_len": 12}]})"),
      HasSubstr("the batch needs 3 pages, but the pool 'k' has 2"));
  EXPECT_THAT(
      p.inputError(R"({"requests": [{"q_len": 1, "kv_len": 2147483647}]})"),
      HasSubstr("at most 2^26 are allowed"));
  EXPECT_THAT(p.inputError(R"({"arguments": {"sc": [1, 2]}})"),
              HasSubstr("argument 'sc'"));
  EXPECT_THAT(p.inputError(R"({"arguments": {"qo": [[0, 1]]}})"),
              HasSubstr("argument 'qo': expected shape [?], but got [1, 2]"));
}

TEST(Inputs, LyingTablesAreNoDanger) {
  // Execution refuses such tables; making inputs from them must end.
  TestProgram p(kPaged);
  for (
      const char *tables :
      {R"("qo": [0, 1], "ip": [0, 2147483647], "pg": [1], "last": [-5])",
       R"("qo": [5, -3], "ip": [7, 3], "pg": [-1, 3], "last": [2147483647])",
       R"("qo": [0, 1], "ip": [-2147483648, 2147483647], "pg": [0], "last": [1])"}) {
    auto values =
        p.inputs(std::string("{\"arguments\": {") + tables + ", \"sc\": 1}}");
    EXPECT_EQ(values.size(), 8u);
    if (!values.empty())
      getRequestLengths(p.signature.attentions[0], values);
  }
  EXPECT_THAT(
      p.inputError(
          R"({"arguments": {"qo": [], "ip": [], "pg": [], "last": []}})"),
      HasSubstr("does not follow from the batch"));
}

} // namespace
