//===- BatchTest.cpp - unusual batches and values -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi/Support/Random.h"
#include <cmath>

using namespace fi;
using namespace fi::test;

namespace {

AttentionText causal(const std::string &element = "f32") {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = "mask(#fi.causal)";
  text.query = text.keys = text.values = text.output = element;
  return text;
}

TEST(BatchTest, Empty) {
  AttentionText text = causal();
  Case(text.get(), {}).check();
  Case(text.get(), {{0, 0}, {0, 0}}).check();
  Case(text.get(), {{0, 30}}).check();
  Case(text.get(), {{7, 0}, {0, 0}, {1, 0}}).check();
  text.view = AttentionText::View::Dense;
  Case(text.get(), {{7, 0}, {2, 3}}).check();
  text.view = AttentionText::View::Ragged;
  Case(text.get(), {{7, 0}, {2, 3}, {0, 5}}).check();
  Case(text.get(), {}).check();
  text.view = AttentionText::View::Contiguous;
  Case(text.get(), {{5, 0}}).check();
  Case(text.get(), {{0, 5}}).check();
}

TEST(BatchTest, MoreRowsThanKeys) {
  for (const char *clauses :
       {"mask(#fi.causal)", "", "mask(#fi.window<left = 2, right = 70>)"}) {
    AttentionText text = causal();
    text.clauses = clauses;
    Case(text.get(), {{100, 3}, {2, 1}, {70, 69}, {17, 1}}).check();
  }
}

TEST(BatchTest, RowsBeyondTheLastRequest) {
  for (const char *element : {"f32", "bf16"}) {
    AttentionText text = causal(element);
    HostTensor query(element == std::string("f32") ? DType::F32 : DType::BF16,
                     {90, 4, 16});
    fillNormal(query, 5);
    // Rows before the first request, too.
    Case(text.get(), {{0, 30}, {4, 70}})
        .give("qo", integers({2, 2, 6}))
        .give("q", query)
        .check();
  }
}

TEST(BatchTest, OffsetsThatDoNotStartAtZero) {
  Case(causal().get(), {})
      .give("qo", integers({0, 3, 4}))
      .give("indptr", integers({2, 4, 5}))
      .give("pages", integers({100, 100, 3, 1, 0, 100}))
      .give("last", integers({4, 16, 99}))
      .adjust([](const Signature &signature, std::vector<HostValue> &values) {
        // Pools of 4 pages: what is not used may name any page.
        for (const char *name : {"k", "v"}) {
          HostTensor pool(DType::F32, {4, 2, 16, 16});
          fillNormal(pool, name[0]);
          values[signature.find(name)] = pool;
        }
      })
      .check();
}

TEST(BatchTest, PagesThatRepeat) {
  Case(causal().get(), {})
      .give("qo", integers({0, 3, 4}))
      .give("indptr", integers({0, 3, 6}))
      .give("pages", integers({1, 1, 0, 0, 1, 1}))
      .give("last", integers({4, 16}))
      .check();
}

TEST(BatchTest, StridedTensors) {
  // Rows and pages of wider buffers: only the last dimension is dense.
  for (auto [view, isHND] : {std::pair(AttentionText::View::Paged, true),
                             std::pair(AttentionText::View::Paged, false),
                             std::pair(AttentionText::View::Ragged, false)})
    for (const char *element : {"f32", "bf16"}) {
      AttentionText text = causal(element);
      text.view = view;
      text.isHND = isHND;
      text.runArguments = ", %bias: tensor<4x?xf32>";
      text.clauses = "captures(%b = %bias : tensor<4x?xf32>)\n" +
                     scoreRegion("%v = fi.load %b[%qh, %kp] : tensor<4x?xf32>\n"
                                 "%t = arith.addf %s, %v : f32\n"
                                 "fi.yield %t : f32") +
                     " mask(#fi.causal)";
      HostTensor bias(DType::F32, {4, 200});
      fillNormal(bias, 3);
      std::vector<HostTensor> wide;
      Case test(text.get(), mixedBatch());
      test.give("bias", bias)
          .adjust([&](const Signature &signature,
                      std::vector<HostValue> &values) {
            for (const char *name : {"q", "k", "v", "bias"}) {
              HostValue &value = values[signature.find(name)];
              HostTensor from = value.getTensor();
              llvm::SmallVector<int64_t> shape(from.getShape());
              for (int64_t &size : shape)
                size += 3;
              wide.emplace_back(from.getType(), shape);
              fillConstant(wide.back(), NAN);
              HostTensor to(from.getType(), from.getShape(),
                            wide.back().getData(), wide.back().getStrides());
              llvm::SmallVector<int64_t> index(from.getRank(), 0);
              for (int64_t i = 0, n = from.getNumElements(); i < n; ++i) {
                to.setFloat(index, from.getFloat(index));
                for (int64_t d = from.getRank(); d-- > 0;) {
                  if (++index[d] < from.getSize(d))
                    break;
                  index[d] = 0;
                }
              }
              value = to;
            }
          })
          .check();
    }
}

TEST(BatchTest, LongKeys) {
  for (const char *element : {"f32", "bf16"}) {
    AttentionText text = causal(element);
    text.group = 4;
    Case(text.get(), {{1, 3000}, {2, 1025}, {1, 64}}).check();
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// All of one value: rounding errors add up.
std::function<void(const Signature &, std::vector<HostValue> &)>
constant(double query, double key) {
  return [=](const Signature &signature, std::vector<HostValue> &values) {
    fillConstant(values[signature.find("q")].getTensor(), query);
    fillConstant(values[signature.find("k")].getTensor(), key);
  };
}

TEST(ValuesTest, ExtremeScores) {
  for (const char *element : {"f32", "bf16", "f16"})
    for (double key : {-64.0, 64.0}) {
      SCOPED_TRACE(testing::Message() << element << " " << key);
      AttentionText text = causal(element);
      text.keyDim = text.valueDim = 128;
      text.scale = "1.0";
      Case(text.get(), {{1, 130}, {3, 3}, {20, 70}})
          .isRandom(false)
          .adjust(constant(64, key))
          .check();
    }
}

TEST(ValuesTest, ScoresFarApart) {
  // One key has a score of 50,000, all others of -50,000, in every order.
  for (int64_t best : {0, 63, 64, 129}) {
    SCOPED_TRACE(best);
    AttentionText text = causal();
    text.view = AttentionText::View::Ragged;
    text.isHND = false;
    text.clauses = "";
    text.scale = "1.0";
    Case(text.get(), {{3, 130}})
        .isRandom(false)
        .adjust(
            [=](const Signature &signature, std::vector<HostValue> &values) {
              fillConstant(values[signature.find("q")].getTensor(), 50);
              HostTensor keys = values[signature.find("k")].getTensor();
              fillConstant(keys, -62.5);
              for (int64_t h = 0; h < 2; ++h)
                for (int64_t d = 0; d < 16; ++d)
                  keys.setFloat({best, h, d}, 62.5);
            })
        .check();
  }
}

TEST(ValuesTest, EqualKeysCount) {
  // Equal scores: the statistic is the logarithm of the number of keys.
  AttentionText text = causal("bf16");
  Case test(text.get(), mixedBatch());
  test.isRandom(false).adjust(constant(0, 1));
  test.check();
}

TEST(ValuesTest, RisingScores) {
  // Every tile has a new maximum.
  AttentionText text = causal();
  text.view = AttentionText::View::Ragged;
  text.isHND = false;
  Case(text.get(), {{40, 400}})
      .adjust([](const Signature &signature, std::vector<HostValue> &values) {
        HostTensor keys = values[signature.find("k")].getTensor();
        fillConstant(values[signature.find("q")].getTensor(), 1);
        for (int64_t k = 0; k < 400; ++k)
          for (int64_t h = 0; h < 2; ++h)
            for (int64_t d = 0; d < 16; ++d)
              keys.setFloat({k, h, d}, (h ? 0.05 : -0.05) * k);
      })
      .isRandom(false)
      .check();
}

TEST(ValuesTest, TinyAndHuge) {
  // Subnormal and large values of every type.
  for (auto [element, value] :
       {std::pair("f32", 1e-39), std::pair("f32", 1e30),
        std::pair("bf16", 1e-39), std::pair("bf16", 1e30),
        std::pair("f16", 6e-8), std::pair("f16", 60000.0)}) {
    SCOPED_TRACE(testing::Message() << element << " " << value);
    double v = value;
    Case(causal(element).get(), {{3, 130}, {20, 30}})
        .isRandom(false)
        .adjust(
            [=](const Signature &signature, std::vector<HostValue> &values) {
              fillConstant(values[signature.find("v")].getTensor(), v);
            })
        .check();
  }
}

TEST(ValuesTest, NaNInOneRequestStaysThere) {
  AttentionText text = causal();
  text.view = AttentionText::View::Ragged;
  text.isHND = false;
  std::vector<Request> requests = {{3, 70}, {3, 20}, {40, 90}};
  Case clean(text.get(), requests), dirty(text.get(), requests);
  dirty.adjust([](const Signature &signature, std::vector<HostValue> &values) {
    HostTensor keys = values[signature.find("k")].getTensor();
    for (int64_t d = 0; d < 16; ++d)
      keys.setFloat({75, 1, d}, NAN);
  });
  for (Planned planned : everyPlan()) {
    std::vector<HostTensor> a = clean.runOnCPU(planned),
                            b = dirty.runOnCPU(planned);
    ASSERT_EQ(a.size(), 2u);
    ASSERT_EQ(b.size(), 2u);
    for (int64_t row = 0; row < 46; ++row)
      for (int64_t head = 0; head < 4; ++head) {
        if (row >= 3 && row < 6 && head >= 2)
          continue;
        EXPECT_EQ(a[1].getFloat({row, head}), b[1].getFloat({row, head}));
        for (int64_t d = 0; d < 16; ++d)
          EXPECT_EQ(a[0].getFloat({row, head, d}),
                    b[0].getFloat({row, head, d}));
      }
  }
}

//===----------------------------------------------------------------------===//
// Batch invariance
//===----------------------------------------------------------------------===//

TEST(InvarianceTest, FixedSplitGivesEqualBitsInAnyBatch) {
  // The first request alone, with others, and for other numbers of workers.
  for (const char *element : {"f32", "bf16"})
    for (int64_t rows : {1, 3, 30}) {
      SCOPED_TRACE(testing::Message() << element << " " << rows << " rows");
      AttentionText text = causal(element);
      text.view = AttentionText::View::Ragged;
      text.isHND = false;
      auto make = [&](std::vector<Request> more) {
        std::vector<Request> requests = {{rows, 700}};
        requests.insert(requests.end(), more.begin(), more.end());
        auto test = std::make_unique<Case>(text.get(), requests);
        test->adjust(
            [=](const Signature &signature, std::vector<HostValue> &values) {
              // Equal data for the first request, whatever comes behind.
              for (const char *name : {"q", "k", "v"}) {
                HostTensor all = values[signature.find(name)].getTensor();
                HostTensor first(all.getType(),
                                 {name[0] == 'q' ? rows : 700, all.getSize(1),
                                  all.getSize(2)},
                                 all.getData());
                fillNormal(first, name[0]);
              }
            });
        return test;
      };
      auto alone = make({}), together = make({{1, 20}, {60, 300}, {5, 2000}});
      std::vector<HostTensor> expected;
      for (int workers : {1, 2, 5, 16})
        for (Case *test : {alone.get(), together.get()}) {
          std::vector<HostTensor> results =
              test->runOnCPU({workers, SplitChoice::Fixed, 128});
          ASSERT_EQ(results.size(), 2u);
          for (HostTensor &result : results) {
            llvm::SmallVector<int64_t> shape(result.getShape());
            shape[0] = rows;
            HostTensor first(result.getType(), shape);
            std::memcpy(first.getData(), result.getData(),
                        first.getNumElements() * getByteSize(result.getType()));
            result = first;
          }
          if (expected.empty())
            expected = results;
          for (auto [a, b] : llvm::zip(expected, results))
            EXPECT_TRUE(hasEqualBits(a, b)) << workers << " workers";
        }
    }
}

TEST(InvarianceTest, SplitsAreReallyMade) {
  Case test(causal().get(), {{1, 3000}, {2, 1025}});
  EXPECT_EQ(test.getSchedule({4, SplitChoice::None}).find("\"slot\":0"),
            std::string::npos);
  std::string fixed = test.getSchedule({4, SplitChoice::Fixed, 128});
  std::string balanced = test.getSchedule({16, SplitChoice::Balanced});
  EXPECT_NE(fixed, balanced);
  EXPECT_NE(fixed, test.getSchedule({4, SplitChoice::None}));
}

} // namespace
