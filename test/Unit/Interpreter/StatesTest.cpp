//===- StatesTest.cpp - states, merges, sinks and appends -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The algebra of states in the reference interpreter: golden values, empties,
// cuts anywhere, sinks that count once.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"

using namespace fi;
using namespace fi::test;

/// Two attentions over separate keys, merged; both parts are returned too.
static std::string merged(const std::string &base, const std::string &states) {
  return R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
!l = tensor<?x1xf32>
!st = !fi.state<?x1x8xf32, #fi.softmax<base = )" +
         base + R"(>>
fi.program @p run(%q: !t, %k0: !t, %v0: !t, %k1: !t, %v1: !t) -> (!t, !l) {
  %a = fi.view.ragged %k0, %v0 : !t, !t -> !kv
  %b = fi.view.ragged %k1, %v1 : !t, !t -> !kv
  %sa = fi.attention %q over %a scale(1.0) normalise(#fi.softmax<base = )" +
         base + R"(>) : !t over !kv -> !st
  %sb = fi.attention %q over %b scale(1.0) normalise(#fi.softmax<base = )" +
         base + R"(>) : !t over !kv -> !st
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : !t
  %e = fi.empty rows(%n) : !st
  %m = fi.merge )" +
         states + R"( : !st
  %o, %l = fi.finalize %m : !st -> !t, !l
  fi.return %o, %l : !t, !l
})";
}

/// A key whose score against q = (1, 0, ...) is `logit`.
static HostTensor keyOf(double logit) {
  HostTensor key(DType::F32, {1, 1, 8});
  key.setFloat({0, 0, 0}, logit);
  return key;
}
static HostTensor unit(int64_t d) {
  HostTensor value(DType::F32, {1, 1, 8});
  value.setFloat({0, 0, d}, 1);
  return value;
}

TEST(ReferenceStates, mergeGolden) {
  // ([1, 0], 2) + ([0, 1], 1) in base 2: ([2/3, 1/3], log2(4 + 2)).
  double ln2 = std::log(2.0);
  std::vector<HostValue> arguments = {unit(0), keyOf(2 * ln2), unit(0),
                                      keyOf(ln2), unit(1)};
  std::vector<HostTensor> results =
      Program(merged("2", "%sa, %sb")).run(arguments);
  EXPECT_NEAR(results[0].getFloat({0, 0, 0}), 2.0 / 3, 1e-7);
  EXPECT_NEAR(results[0].getFloat({0, 0, 1}), 1.0 / 3, 1e-7);
  EXPECT_NEAR(results[1].getFloat({0, 0}), 2.5849625, 1e-6);
  results = Program(merged("e", "%sa, %sb")).run(arguments);
  EXPECT_NEAR(results[0].getFloat({0, 0, 0}), 2.0 / 3, 1e-7);
  EXPECT_NEAR(results[1].getFloat({0, 0}), std::log(6.0), 1e-6);
}

TEST(ReferenceStates, emptyIsTheIdentity) {
  HostTensor none(DType::F32, {0, 1, 8});
  std::vector<HostValue> arguments = {unit(0), keyOf(2), unit(3), none, none};
  for (const char *states :
       {"%sa", "%sa, %sb", "%sb, %sa", "%e, %sa, %e", "%e, %e, %sa, %sb"}) {
    std::vector<HostTensor> results =
        Program(merged("2", states)).run(arguments);
    EXPECT_EQ(results[0].getFloat({0, 0, 3}), 1.0) << states;
    EXPECT_NEAR(results[1].getFloat({0, 0}), 2 / std::log(2.0), 1e-6);
  }
  for (const char *states : {"%e", "%e, %e", "%sb, %sb, %e"}) {
    std::vector<HostTensor> results =
        Program(merged("2", states)).run(arguments);
    for (double value : elements(results[0]))
      EXPECT_EQ(value, 0.0) << states;
    EXPECT_EQ(results[1].getFloat({0, 0}), -kInf) << states;
  }
}

TEST(ReferenceStates, mergeNormalisesItsWeights) {
  // Statistics beyond the range of exp, on either side.
  for (double base : {-60000.0, 60000.0}) {
    std::vector<HostTensor> results =
        Program(merged("2", "%sa, %sb"))
            .run({unit(0), keyOf(base), unit(0), keyOf(base), unit(1)});
    EXPECT_NEAR(results[0].getFloat({0, 0, 0}), 0.5, 1e-7);
    EXPECT_NEAR(results[1].getFloat({0, 0}), base / std::log(2.0) + 1, 0.01);
  }
}

/// Paged attention with a sink, through an attention or through a state.
static std::string withSink(bool throughState, const std::string &mask,
                            const std::string &split = "") {
  std::string body;
  if (!split.empty())
    body = R"(
  %g = fi.segments rows(%qo : !ix) over %kv split()" +
           split +
           R"() : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.7) )" +
           mask + R"( : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o, %l = fi.finalize %s sink(%sink : tensor<2xf32>) : !st -> !q, !l)";
  else if (throughState)
    body = R"(
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.7) )" +
           mask + R"( : !q over !kv -> !st
  %o, %l = fi.finalize %s sink(%sink : tensor<2xf32>) : !st -> !q, !l)";
  else
    body = R"(
  %o, %l = fi.attention %q rows(%qo : !ix) over %kv scale(0.7) sink(%sink : tensor<2xf32>) )" +
           mask + R"( : !q over !kv -> !q, !l)";
  return R"(
!kv = !fi.ragged_kv<2x8xf32>
!t = tensor<?x2x8xf32>
!q = tensor<?x2x8xf32>
!l = tensor<?x2xf32>
!ix = tensor<?xi64>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x2x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t, %sink: tensor<2xf32>) -> (!q, !l) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !fi.ragged_kv<2x8xf32, index = i64>)" +
         body + R"(
  fi.return %o, %l : !q, !l
})";
}

static std::string withWideIndex(std::string text) {
  // The alias must be the view's type.
  std::string from = "!kv = !fi.ragged_kv<2x8xf32>",
              to = "!kv = !fi.ragged_kv<2x8xf32, index = i64>";
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(ReferenceStates, sinkCountsOnceUnderAnyCut) {
  HostTensor rows = ints({0, 3, 5, 6}, DType::I64),
             indptr = ints({0, 13, 15, 15}, DType::I64);
  HostTensor q = random({8, 2, 8}, 41), k = random({16, 2, 8}, 42),
             v = random({16, 2, 8}, 43), sink = floats({2}, {1.5, -0.25});
  std::vector<HostValue> arguments = {rows, indptr, q, k, v, sink};
  for (std::string mask :
       {"", "mask(#fi.causal)", "mask(#fi.window<left = 2>)",
        "score(#fi.softcap<1.5>) mask(#fi.window<left = 4, right = 1>)"}) {
    std::vector<HostTensor> plain =
        Program(withWideIndex(withSink(false, mask))).run(arguments);
    std::vector<std::string> programs = {
        withSink(false, mask), withSink(true, mask),
        withSink(true, mask, "#fi.split<balanced>"),
        withSink(true, mask, "#fi.split<fixed = 1>"),
        withSink(true, mask, "#fi.split<fixed = 5>")};
    for (const std::string &text : programs)
      for (std::vector<int64_t> cuts :
           {std::vector<int64_t>{}, {1}, {12}, {2, 3, 9}, {4, 8, 100}}) {
        ReferenceOptions options;
        options.forceSegments = cuts;
        std::vector<HostTensor> other =
            Program(withWideIndex(text)).run(arguments, options);
        expectNear(other[0], plain[0], 1e-6);
        expectNear(other[1], plain[1], 1e-6);
      }
    // By hand: a row without keys has the sink alone.
    EXPECT_EQ(plain[0].getFloat({5, 0, 0}), 0.0);
    EXPECT_NEAR(plain[1].getFloat({5, 0}), 1.5 / std::log(2.0), 1e-6);
    EXPECT_NEAR(plain[1].getFloat({7, 1}), -0.25 / std::log(2.0), 1e-6);
  }
}

TEST(ReferenceStates, sinkOnlyGrowsTheDenominator) {
  // One key of logit 0 and a sink of logit ln 3: a quarter of the value.
  HostTensor v = filled({1, 2, 8}, 8);
  std::vector<HostTensor> results =
      Program(withWideIndex(withSink(false, "")))
          .run({ints({0, 1}, DType::I64), ints({0, 1}, DType::I64),
                filled({1, 2, 8}, 0), filled({1, 2, 8}, 0), v,
                floats({2}, {std::log(3.0), -kInf})});
  EXPECT_NEAR(results[0].getFloat({0, 0, 0}), 2.0, 1e-6);
  EXPECT_NEAR(results[1].getFloat({0, 0}), 2.0, 1e-6);
  // A sink of -inf is none.
  EXPECT_EQ(results[0].getFloat({0, 1, 0}), 8.0);
  EXPECT_EQ(results[1].getFloat({0, 1}), 0.0);
}

TEST(ReferenceStates, sharedPrefixIsExact) {
  // Two requests share a prefix of 8 keys and have suffixes of 3 and 6; against
  // each request's keys in one piece.
  const char *text = R"(
!kv = !fi.paged_kv<4x1x8xf32, NHD>
!pool = tensor<?x4x1x8xf32>
!ix = tensor<?xi32>
!q = tensor<?x1x8xf32>
!l = tensor<?x1xf32>
!st = !fi.state<?x1x8xf32, #fi.softmax<base = 2>>
fi.program @cascade
    plan(%all: !ix, %qo: !ix, %pi: !ix, %pp: !ix, %pl: !ix, %si: !ix, %sp: !ix, %sl: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !l) {
  %prefix = fi.view.paged %k, %v tables(%pi, %pp, %pl : !ix, !ix, !ix) : !pool, !pool -> !kv
  %suffix = fi.view.paged %k, %v tables(%si, %sp, %sl : !ix, !ix, !ix) origin(%first : !ix) : !pool, !pool -> !kv
  %shared = fi.attention %q rows(%all : !ix) over %prefix scale(0.5) : !q over !kv -> !st
  %own = fi.attention %q rows(%qo : !ix) over %suffix scale(0.5) mask(#fi.causal) : !q over !kv -> !st
  %s = fi.merge %shared, %own : !st
  %o, %l = fi.finalize %s : !st -> !q, !l
  fi.return %o, %l : !q, !l
})";
  HostTensor q = random({5, 1, 8}, 44), k = random({6, 4, 1, 8}, 45),
             v = random({6, 4, 1, 8}, 46);
  std::vector<HostTensor> results = Program(text).run(
      {ints({0, 5}), ints({0, 2, 5}), ints({0, 2}), ints({4, 1}), ints({4}),
       ints({0, 1, 3}), ints({0, 5, 2}), ints({3, 2}), ints({8, 8}), q, k, v});
  std::vector<std::vector<int64_t>> pages = {{4, 1, 0}, {4, 1, 5, 2}};
  std::vector<int64_t> lengths = {11, 14}, begins = {0, 2, 5};
  for (int64_t r = 0; r < 2; ++r) {
    int64_t rows = begins[r + 1] - begins[r], keys = lengths[r];
    HostTensor qr(DType::F32, {rows, 1, 8}), kr(DType::F32, {keys, 1, 8}),
        vr(DType::F32, {keys, 1, 8});
    for (int64_t d = 0; d < 8; ++d) {
      for (int64_t i = 0; i < rows; ++i)
        qr.setFloat({i, 0, d}, q.getFloat({begins[r] + i, 0, d}));
      for (int64_t j = 0; j < keys; ++j) {
        kr.setFloat({j, 0, d}, k.getFloat({pages[r][j / 4], j % 4, 0, d}));
        vr.setFloat({j, 0, d}, v.getFloat({pages[r][j / 4], j % 4, 0, d}));
      }
    }
    Dense wanted = dense(qr, kr, vr, 0.5, [&](int64_t i, int64_t j) {
      return j <= keys - rows + i;
    });
    for (int64_t i = 0; i < rows; ++i) {
      EXPECT_NEAR(results[1].getFloat({begins[r] + i, 0}),
                  wanted.statistic.getFloat({i, 0}), 1e-6);
      for (int64_t d = 0; d < 8; ++d)
        EXPECT_NEAR(results[0].getFloat({begins[r] + i, 0, d}),
                    wanted.output.getFloat({i, 0, d}), 1e-6);
    }
  }
}

TEST(ReferenceStates, appendWritesTheLastKeysAndRounds) {
  const char *text = R"(
!kv = !fi.paged_kv<2x1x8xbf16, HND>
!pool = memref<?x1x2x8xbf16>
!ix = tensor<?xi32>
!n = tensor<?x1x8xf32>
fi.program @p plan(%ap: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%nk: !n, %nv: !n, %k: !pool, %v: !pool, %q: !n) -> (!n) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%ap : !ix) to %kv : !n, !n to !kv
  %o = fi.attention %q rows(%ap : !ix) over %kv scale(1.0) mask(#fi.causal) : !n over !kv -> !n
  fi.return %o : !n
})";
  HostTensor k = filled({4, 1, 2, 8}, 9, DType::BF16),
             v = filled({4, 1, 2, 8}, 9, DType::BF16);
  HostTensor newKeys = filled({4, 1, 8}, 0), newValues = filled({4, 1, 8}, 0);
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t d = 0; d < 8; ++d)
      newValues.setFloat({i, 0, d}, i + 1 + 1.0 / 1024);
  // Request 0: 3 keys, 2 new, in pages 2, 0; request 1: none new; request 2:
  // one key, 1 new, page 3. The last new token belongs to no request.
  std::vector<HostTensor> results = Program(text).run(
      {ints({0, 2, 2, 3}), ints({0, 2, 3, 4}), ints({2, 0, 1, 3}),
       ints({1, 2, 1}), newKeys, newValues, k, v, filled({4, 1, 8}, 0)});
  auto value = [&](int64_t page, int64_t slot) {
    return v.getFloat({page, 0, slot, 0});
  };
  EXPECT_EQ(value(2, 0), 9.0); // key 0 was there
  EXPECT_EQ(value(2, 1), 1.0); // rounded to bf16
  EXPECT_EQ(value(0, 0), 2.0);
  EXPECT_EQ(value(0, 1), 9.0); // beyond the last key
  EXPECT_EQ(value(1, 0), 9.0);
  EXPECT_EQ(value(3, 0), 3.0);
  EXPECT_EQ(k.getFloat({3, 0, 0, 0}), 0.0);
  // The attention behind it sees what was appended.
  EXPECT_EQ(results[0].getFloat({2, 0, 0}), 3.0);
}

TEST(ReferenceStates, appendOfNothing) {
  const char *text = R"(
!kv = !fi.ragged_kv<1x8xf32>
!m = memref<?x1x8xf32>
!ix = tensor<?xi32>
fi.program @p plan(%ap: !ix) run(%nk: !m, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  fi.append %nk, %nk rows(%ap : !ix) to %kv : !m, !m to !kv
  fi.return
})";
  HostTensor k = filled({3, 1, 8}, 4);
  Program(text).run({ints({0, 0}), HostTensor(DType::F32, {0, 1, 8}), k});
  for (double value : elements(k))
    EXPECT_EQ(value, 4.0);
}
