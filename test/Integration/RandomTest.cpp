//===- RandomTest.cpp - random programs on random batches -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layout, types, sizes, masks, scores, schedules and splits drawn together. The
// number of programs is FI_RANDOM_PROGRAMS, their first seed FI_RANDOM_SEED; a
// failure prints its program.
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Random.h"
#include "IntegrationTesting.h"
#include <cstdlib>

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

namespace {

template <typename T, size_t N> T pick(Random &random, const T (&from)[N]) {
  return from[random.below(N)];
}

std::vector<Request> randomRequests(Random &random, bool isOne) {
  std::vector<Request> requests;
  int64_t count = isOne ? 1 : random.below(7);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t rows[] = {0, 1, 1, 1, 2, 7, 16, 17, 33};
    const int64_t keys[] = {0, 1, 15, 16, 63, 64, 65, 127, 200, 333};
    requests.push_back({pick(random, rows), pick(random, keys)});
  }
  return requests;
}

std::string randomSchedules(Random &random, int64_t lanes) {
  auto one = [&](int64_t maxRows) {
    int64_t mr = 1 + random.below(8), nr = 1 + random.below(4);
    int64_t rows = mr * (1 + random.below(6));
    if (rows < 2)
      rows = 2;
    const int64_t keys[] = {16, 32, 48, 64, 128};
    std::string text =
        "#fi.schedule<tile_rows = " + std::to_string(rows) +
        ", tile_keys = " + std::to_string(pick(random, keys)) +
        ", mr = " + std::to_string(mr) + ", nr = " + std::to_string(nr) +
        ", lanes = " + std::to_string(random.below(2) ? lanes : 1);
    if (maxRows)
      text += ", max_rows = " + std::to_string(maxRows);
    if (random.below(2))
      text += ", stream = 1";
    return text + ">";
  };
  std::string text = " schedules([";
  if (random.below(2))
    text += one(1 + random.below(20)) + ", ";
  return text + one(0) + "])";
}

TEST(RandomTest, EqualsReference) {
  const char *number = std::getenv("FI_RANDOM_PROGRAMS");
  const char *first = std::getenv("FI_RANDOM_SEED");
  int64_t programs = number ? std::atoll(number) : 24;
  uint64_t seed = first ? std::strtoull(first, nullptr, 10) : 1;
  for (int64_t i = 0; i < programs && !HasFailure(); ++i, ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(deriveSeed(seed, "program"));
    const char *const elements[] = {"f32", "f32", "bf16", "bf16", "f16"};
    const int64_t pages[] = {1, 2, 5, 16, 64, 100};
    const int64_t dims[] = {8, 16, 40, 64, 72, 80, 128};
    AttentionText text;
    const View views[] = {View::Paged, View::Paged, View::Dense, View::Ragged,
                          View::Contiguous};
    text.view = pick(random, views);
    text.isHND = random.below(2);
    text.page = pick(random, pages);
    bool isPaged = text.view == View::Paged || text.view == View::Dense;
    text.keyDim = pick(random, dims);
    text.valueDim = random.below(3) ? text.keyDim : pick(random, dims);
    text.keys = pick(random, elements);
    text.values = random.below(3) ? text.keys : pick(random, elements);
    text.query = random.below(3) ? text.keys : pick(random, elements);
    text.output = random.below(3) ? text.query : pick(random, elements);
    text.isPageDynamic = isPaged && random.below(4) == 0;
    text.isFused = isPaged && text.keys == text.values &&
                   text.keyDim == text.valueDim && random.below(4) == 0;
    text.index = random.below(2) ? "i32" : "i64";
    text.kvHeads = 1 + random.below(3);
    text.group = 1 + random.below(8);
    text.hasStatistic = random.below(4) != 0;
    std::vector<Request> requests =
        randomRequests(random, text.view == View::Contiguous);
    // A contiguous view has its one request in the shapes alone.
    text.hasOrigin = text.view != View::Contiguous && random.below(4) == 0;
    std::string heads =
        "tensor<" + std::to_string(text.kvHeads * text.group) + "xf32>";
    bool hasSink = random.below(4) == 0, hasSlope = random.below(3) == 0;
    if (hasSink) {
      text.clauses += "sink(%sink : " + heads + ") ";
      text.runArguments += ", %sink: " + heads;
    }
    if (random.below(4) == 0)
      text.clauses += "normalise(#fi.softmax<base = e>) ";
    if (hasSlope) {
      text.clauses += "captures(%sl = %slope : " + heads + ") " +
                      scoreRegion("%d = arith.subi %kp, %qp : index\n"
                                  "%i = arith.index_cast %d : index to i32\n"
                                  "%f = arith.sitofp %i : i32 to f32\n"
                                  "%m = fi.load %sl[%qh] : " +
                                  heads +
                                  "\n%c = arith.constant 0.01 : f32\n"
                                  "%n = arith.mulf %m, %c : f32\n"
                                  "%b = arith.mulf %n, %f : f32\n"
                                  "%t = arith.addf %s, %b : f32\n"
                                  "fi.yield %t : f32") +
                      " ";
      text.runArguments += ", %slope: " + heads;
    } else if (random.below(3) == 0) {
      text.clauses += "score(#fi.softcap<15.0>) ";
    }
    const char *const masks[] = {
        "",
        "mask(#fi.causal) ",
        "mask(#fi.causal) ",
        "mask(#fi.window<left = 40, right = 3>) ",
        "mask(#fi.causal, #fi.window<left = 70>) ",
        "mask(#fi.any<#fi.window<left = 4>, #fi.causal>) "};
    text.clauses += pick(random, masks);
    if (random.below(2))
      text.clauses += randomSchedules(random, 16);
    Case test(text.get(), requests, seed);
    if (text.isPageDynamic)
      test.setPageSize(text.page);
    if (text.hasOrigin) {
      std::vector<int64_t> origins = {0};
      for (size_t r = 0; r < requests.size(); ++r)
        origins.push_back(random.below(60));
      test.give("origin", integers(origins, DType::I64));
    }
    test.setOptLevel(i % 4 == 0 ? 3 : 0);
    Planned plans[] = {
        {1 + static_cast<int>(random.below(8))},
        {1 + static_cast<int>(random.below(16)), SplitChoice::Balanced},
        {2, SplitChoice::Fixed, 1 + static_cast<int64_t>(random.below(150))}};
    test.check(plans);
  }
}

} // namespace
