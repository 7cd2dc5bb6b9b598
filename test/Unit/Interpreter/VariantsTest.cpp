//===- VariantsTest.cpp - regions and their short spellings ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Score, mask and transform regions in the reference interpreter; every
// attribute against its region; scalar arithmetic at the edges of its types.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"
#include <cstring>

using namespace fi;
using namespace fi::test;

/// Attention with 2 query heads over contiguous keys of 1 head. `clauses` come
/// behind the scale; `arguments` are further arguments of the program.
static std::string program(const std::string &clauses,
                           const std::string &arguments = "") {
  return R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
!q = tensor<?x2x8xf32>
!l = tensor<?x2xf32>
fi.program @p run(%q: !q, %k: !t, %v: !t)" +
         arguments + R"() -> (!q, !l) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o, %l = fi.attention %q over %kv scale(0.5) )" +
         clauses + R"( : !q over !kv -> !q, !l
  fi.return %o, %l : !q, !l
})";
}

static std::string maskRegion(const std::string &body) {
  return "mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {" +
         body + "}";
}
static std::string scoreRegion(const std::string &body) {
  return "score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, "
         "%kp: index) {" +
         body + "}";
}

namespace {
struct Inputs {
  HostTensor q, k, v;
  Inputs(int64_t rows, int64_t keys)
      : q(random({rows, 2, 8}, 31)), k(random({keys, 1, 8}, 32)),
        v(random({keys, 1, 8}, 33)) {}
  std::vector<HostValue> values() const { return {q, k, v}; }
};
} // namespace

static void expectSame(const std::string &a, const std::string &b) {
  for (auto [rows, keys] :
       {std::pair<int64_t, int64_t>(5, 12), {12, 5}, {7, 7}, {3, 0}}) {
    Inputs in(rows, keys);
    std::vector<HostTensor> first = Program(program(a)).run(in.values());
    std::vector<HostTensor> second = Program(program(b)).run(in.values());
    expectNear(first[0], second[0], 1e-6);
    expectNear(first[1], second[1], 1e-6);
  }
}

TEST(ReferenceVariants, causalIsItsRegion) {
  expectSame("mask(#fi.causal)", maskRegion(R"(
    %m = arith.cmpi sle, %kp, %qp : index
    fi.yield %m : i1)"));
}

TEST(ReferenceVariants, windowIsItsRegion) {
  expectSame("mask(#fi.window<left = 3, right = 1>)", maskRegion(R"(
    %three = arith.constant 3 : index
    %one = index.constant 1
    %lo = arith.subi %qp, %three : index
    %hi = index.add %qp, %one
    %a = arith.cmpi sge, %kp, %lo : index
    %b = index.cmp sle(%kp, %hi)
    %m = arith.andi %a, %b : i1
    fi.yield %m : i1)"));
  expectSame("mask(#fi.window<left = 0>)", maskRegion(R"(
    %m = arith.cmpi sge, %kp, %qp : index
    fi.yield %m : i1)"));
  // Bounds wider than any position do not wrap.
  expectSame("mask(#fi.window<left = 9223372036854775807, "
             "right = 9223372036854775807>)",
             "");
}

TEST(ReferenceVariants, listsMeanAllAndAnyMeansSome) {
  expectSame("mask(#fi.causal, #fi.window<left = 2>)", maskRegion(R"(
    %c2 = arith.constant 2 : index
    %d = arith.subi %qp, %c2 : index
    %a = arith.cmpi sge, %kp, %d : index
    %b = arith.cmpi sle, %kp, %qp : index
    %m = arith.andi %a, %b : i1
    fi.yield %m : i1)"));
  expectSame("mask(#fi.any<#fi.window<left = 0, right = 0>, "
             "#fi.window<left = 1, right = 0>>)",
             "mask(#fi.window<left = 1, right = 0>)");
  // An attribute and a region: both must allow.
  expectSame("mask(#fi.causal, #fi.window<left = 2>)",
             "mask(#fi.causal) " + maskRegion(R"(
    %c2 = arith.constant 2 : index
    %d = arith.subi %qp, %c2 : index
    %a = arith.cmpi sge, %kp, %d : index
    fi.yield %a : i1)"));
}

TEST(ReferenceVariants, windowKeepsItsNumberOfKeys) {
  Inputs in(6, 40);
  std::vector<HostTensor> visible;
  ReferenceOptions options;
  options.visibleKeys = &visible;
  for (int64_t left : {0, 1, 7, 100}) {
    Program p(program("mask(#fi.window<left = " + std::to_string(left) +
                      ", right = 0>)"));
    p.run(in.values(), options);
    for (int64_t row = 0; row < 6; ++row)
      EXPECT_EQ(visible[0].getInteger({row, 1}),
                std::min<int64_t>(left + 1, 35 + row));
  }
}

TEST(ReferenceVariants, softcapIsItsRegionAndComesBeforeTheMask) {
  expectSame("score(#fi.softcap<0.75>) mask(#fi.causal)", scoreRegion(R"(
    %cap = arith.constant 0.75 : f32
    %x = arith.divf %s, %cap : f32
    %y = math.tanh %x : f32
    %z = arith.mulf %y, %cap : f32
    fi.yield %z : f32)") + "mask(#fi.causal)");
  // By hand: scale 0.5, q.k = 8 * 1 * 1, cap 2: 2 tanh(4 / 2).
  std::vector<HostTensor> results =
      Program(program("score(#fi.softcap<2.0>)"))
          .run({filled({1, 2, 8}, 1), filled({1, 1, 8}, 1),
                filled({1, 1, 8}, 3)});
  EXPECT_NEAR(results[1].getFloat({0, 0}), 2 * std::tanh(2.0) / std::log(2.0),
              1e-6);
  EXPECT_EQ(results[0].getFloat({0, 1, 0}), 3.0);
}

TEST(ReferenceVariants, scoresSeePositionsHeadsAndCaptures) {
  // ALiBi with a slope per head and a scalar bias, against one by hand.
  Program p(
      program("captures(%sl = %slope : tensor<2xf32>, %b = %bias : f32) " +
                  scoreRegion(R"(
    %d = arith.subi %kp, %qp : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    %m = fi.load %sl[%qh] : tensor<2xf32>
    %w = arith.mulf %m, %f : f32
    %t = arith.addf %s, %w : f32
    %u = arith.addf %t, %b : f32
    fi.yield %u : f32)"),
              ", %slope: tensor<2xf32>, %bias: f32"));
  HostTensor q = filled({1, 2, 8}, 0), k = filled({3, 1, 8}, 0),
             v = random({3, 1, 8}, 34);
  std::vector<HostTensor> results =
      p.run({q, k, v, floats({2}, {1.0, 0.5}), HostValue::number(5)});
  for (int64_t head = 0; head < 2; ++head) {
    double slope = head == 0 ? 1 : 0.5, sum = 0;
    for (int64_t j = 0; j < 3; ++j)
      sum += std::exp(slope * (j - 2) + 5);
    EXPECT_NEAR(results[1].getFloat({0, head}), std::log2(sum), 1e-6);
  }
}

TEST(ReferenceVariants, regionsAreCalledForKeysInRangeOnly) {
  // Divides by kv_len - kv_pos, which is 0 for the first key out of range.
  std::string region = scoreRegion(R"(
    %len = arith.constant 129 : index
    %d = arith.subi %len, %kp : index
    %x = arith.divsi %len, %d : index
    %i = arith.index_cast %x : index to i64
    %f = arith.sitofp %i : i64 to f32
    %t = arith.addf %s, %f : f32
    fi.yield %t : f32)");
  Inputs in(2, 129);
  ReferenceOptions options;
  options.forceSegments = {64, 128};
  std::vector<HostTensor> cut =
      Program(program(region)).run(in.values(), options);
  std::vector<HostTensor> whole = Program(program(region)).run(in.values());
  expectNear(cut[0], whole[0], 1e-6);
  // With one key more a divisor is 0, which counts as 1.
  Inputs longer(2, 130);
  std::string guarded = region;
  size_t at = guarded.find("%x = arith.divsi %len, %d");
  ASSERT_NE(at, std::string::npos);
  guarded.replace(at, std::strlen("%x = arith.divsi %len, %d"),
                  "%nought = arith.constant 0 : index\n"
                  "    %one = arith.constant 1 : index\n"
                  "    %none = arith.cmpi eq, %d, %nought : index\n"
                  "    %by = arith.select %none, %one, %d : index\n"
                  "    %x = arith.divsi %len, %by");
  expectNear(Program(program(region)).run(longer.values())[0],
             Program(program(guarded)).run(longer.values())[0], 0);
}

TEST(ReferenceVariants, loadsOutOfRangeGiveZero) {
  Program p(program("captures(%t = %table : tensor<?x?xi32>) " + maskRegion(R"(
    %big = arith.constant 1000000 : index
    %x = fi.load %t[%req, %kp] : tensor<?x?xi32>
    %y = fi.load %t[%big, %kp] : tensor<?x?xi32>
    %m = arith.cmpi ne, %x, %y : i32
    fi.yield %m : i1)"),
                    ", %table: tensor<?x?xi32>"));
  HostTensor table(DType::I32, {1, 3});
  for (int64_t i = 0; i < 3; ++i)
    table.setInteger({0, i}, i); // key 0 reads 0, keys 3.. are out of range
  std::vector<HostTensor> visible;
  ReferenceOptions options;
  options.visibleKeys = &visible;
  Inputs in(1, 6);
  p.run({in.q, in.k, in.v, table}, options);
  EXPECT_EQ(visible[0].getInteger({0, 0}), 2);
}

TEST(ReferenceVariants, minusInfinityFromAScoreIsNoWeight) {
  // Keys at odd positions get -inf; their values must not count, even NaN.
  Program p(program(scoreRegion(R"(
    %two = arith.constant 2 : index
    %none = arith.constant 0xFF800000 : f32
    %r = arith.remsi %kp, %two : index
    %one = arith.constant 1 : index
    %odd = arith.cmpi eq, %r, %one : index
    %t = scf.if %odd -> f32 { scf.yield %none : f32 } else { scf.yield %s : f32 }
    fi.yield %t : f32)")));
  Inputs in(1, 4);
  in.v.setFloat({1, 0, 0}, kNaN);
  std::vector<HostTensor> results = p.run(in.values());
  EXPECT_TRUE(std::isfinite(results[0].getFloat({0, 0, 0})));
  // All of them: the state of no keys.
  Program all(program(scoreRegion(R"(
    %none = arith.constant 0xFF800000 : f32
    fi.yield %none : f32)")));
  results = all.run(in.values());
  EXPECT_EQ(results[0].getFloat({0, 0, 0}), 0.0);
  EXPECT_EQ(results[1].getFloat({0, 0}), -kInf);
}

/// RoPE by regions; both pairings against a rotation by hand.
TEST(ReferenceVariants, transformsRotatePairs) {
  auto rope = [](const char *name) {
    return std::string(name) +
           "(%x: f32, %y: f32, %pair: index, %req: index, %head: index, "
           "%pos: index) {" +
           R"(
      %p = arith.index_cast %pos : index to i32
      %pf = arith.sitofp %p : i32 to f32
      %w = fi.load %fr[%pair] : tensor<4xf32>
      %a = arith.mulf %pf, %w : f32
      %c = math.cos %a : f32
      %s = math.sin %a : f32
      %xc = arith.mulf %x, %c : f32
      %ys = arith.mulf %y, %s : f32
      %xs = arith.mulf %x, %s : f32
      %yc = arith.mulf %y, %c : f32
      %u = arith.subf %xc, %ys : f32
      %v = arith.addf %xs, %yc : f32
      fi.yield %u, %v : f32, f32 } )";
  };
  HostTensor freq = floats({4}, {1.0, 0.5, 0.25, 0.125});
  for (bool half : {true, false}) {
    Program p(program(std::string("pair<") + (half ? "half" : "interleaved") +
                          "> captures(%fr = %freq : tensor<4xf32>) " +
                          rope("query") + rope("key"),
                      ", %freq: tensor<4xf32>"));
    Inputs in(2, 5);
    std::vector<HostTensor> results = p.run({in.q, in.k, in.v, freq});
    auto rotate = [&](const HostTensor &tensor, int64_t firstPosition) {
      HostTensor out(DType::F64, tensor.getShape());
      for (int64_t i = 0; i < tensor.getSize(0); ++i)
        for (int64_t h = 0; h < tensor.getSize(1); ++h)
          for (int64_t n = 0; n < 4; ++n) {
            int64_t a = half ? n : 2 * n, b = half ? n + 4 : 2 * n + 1;
            double angle = (firstPosition + i) * freq.getFloat({n});
            double x = tensor.getFloat({i, h, a}),
                   y = tensor.getFloat({i, h, b});
            out.setFloat({i, h, a}, x * std::cos(angle) - y * std::sin(angle));
            out.setFloat({i, h, b}, x * std::sin(angle) + y * std::cos(angle));
          }
      return out;
    };
    Dense wanted = dense(rotate(in.q, 3), rotate(in.k, 0), in.v, 0.5,
                         [](int64_t, int64_t) { return true; });
    expectNear(results[0], wanted.output, 1e-6);
    expectNear(results[1], wanted.statistic, 1e-6);
  }
}

TEST(ReferenceVariants, originsAndGivenPositions) {
  // A suffix view whose keys begin at 100, rows at 103 to 104.
  const char *text = R"(
!kv = !fi.ragged_kv<1x8xf32>
!t = tensor<?x1x8xf32>
!q = tensor<?x2x8xf32>
!l = tensor<?x2xf32>
!ix = tensor<?xi32>
fi.program @p plan(%first: !ix, %pos: !ix) run(%q: !q, %k: !t, %v: !t) -> (!l, !l) {
  %kv = fi.view.ragged %k, %v origin(%first : !ix) : !t, !t -> !kv
  %o, %l = fi.attention %q over %kv scale(0.5)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 102 : index
        %a = arith.cmpi sge, %kp, %c : index
        %b = arith.cmpi sle, %kp, %qp : index
        %m = arith.andi %a, %b : i1
        fi.yield %m : i1
      } : !q over !kv -> !q, !l
  %o2, %l2 = fi.attention %q over %kv at(%pos : !ix) scale(0.5) mask(#fi.causal)
      : !q over !kv -> !q, !l
  fi.return %l, %l2 : !l, !l
})";
  std::vector<HostTensor> visible;
  ReferenceOptions options;
  options.visibleKeys = &visible;
  Program(text).run({ints({100}), ints({101, 99}), random({2, 2, 8}, 1),
                     random({5, 1, 8}, 2), random({5, 1, 8}, 3)},
                    options);
  EXPECT_EQ(integers(visible[0]), (std::vector<int64_t>{2, 2, 3, 3}));
  EXPECT_EQ(integers(visible[1]), (std::vector<int64_t>{2, 2, 0, 0}));
}

/// Evaluates a region body that defines %r : f32, as a score at position 0.
static double evaluate(const char *body) {
  Program p(program(scoreRegion(std::string(body) + "\nfi.yield %r : f32")));
  std::vector<HostTensor> results =
      p.run({filled({1, 2, 8}, 0), filled({1, 1, 8}, 0), filled({1, 1, 8}, 0)});
  return results[1].getFloat({0, 0}) * std::log(2.0);
}

TEST(ReferenceVariants, scalarArithmeticFollowsTheTypes) {
  auto integer = [](const std::string &ops, const std::string &type) {
    return "%a = " + ops + "\n%r = arith.sitofp %a : " + type + " to f32";
  };
  std::string i8 = "%x = arith.constant 127 : i8\n%y = arith.constant 1 : i8\n";
  std::string m7 =
      "%x = arith.constant -7 : i32\n%y = arith.constant 2 : i32\n";
  std::string by0 =
      "%x = arith.constant -7 : i32\n%y = arith.constant 0 : i32\n";
  std::string least = "%x = arith.constant -2147483648 : i32\n"
                      "%y = arith.constant -1 : i32\n";
  std::string index = "%x = index.constant -7\n%y = index.constant 2\n%b = ";
  std::string cast = "\n%a = arith.index_cast %b : index to i32\n"
                     "%r = arith.sitofp %a : i32 to f32";
  std::vector<std::pair<std::string, double>> cases = {
      {i8 + integer("arith.addi %x, %y : i8", "i8"), -128},
      {i8 + integer("arith.shli %x, %y : i8", "i8"), -2},
      {m7 + integer("arith.divsi %x, %y : i32", "i32"), -3},
      {m7 + integer("arith.remsi %x, %y : i32", "i32"), -1},
      {m7 + integer("arith.floordivsi %x, %y : i32", "i32"), -4},
      {m7 + integer("arith.ceildivsi %x, %y : i32", "i32"), -3},
      {m7 + integer("arith.divui %x, %y : i32", "i32"), 2147483644},
      // By 1 where there is no quotient (REG4).
      {by0 + integer("arith.divsi %x, %y : i32", "i32"), -7},
      {by0 + integer("arith.remsi %x, %y : i32", "i32"), 0},
      {by0 + integer("arith.floordivsi %x, %y : i32", "i32"), -7},
      {by0 + integer("arith.ceildivui %x, %y : i32", "i32"), -7},
      {by0 + integer("arith.remui %x, %y : i32", "i32"), 0},
      {least + integer("arith.divsi %x, %y : i32", "i32"), -2147483648.0},
      {least + integer("arith.remsi %x, %y : i32", "i32"), 0},
      {m7 + integer("arith.shrsi %x, %y : i32", "i32"), -2},
      {m7 + integer("arith.maxui %x, %y : i32", "i32"), -7},
      {m7 + integer("arith.minsi %x, %y : i32", "i32"), -7},
      {m7 + integer("arith.xori %x, %y : i32", "i32"), -5},
      {m7 + integer("math.absi %x : i32", "i32"), 7},
      {m7 + integer("math.ctpop %x : i32", "i32"), 30},
      {index + "index.floordivs %x, %y" + cast, -4},
      {index + "index.rems %x, %y" + cast, -1},
      {index + "index.shrs %x, %y" + cast, -2},
      {index + "index.maxs %x, %y" + cast, 2},
      {"%x = arith.constant -1 : i32\n%a = arith.extui %x : i32 to i64\n"
       "%r = arith.sitofp %a : i64 to f32",
       4294967296.0},
      {"%x = arith.constant 300 : i32\n%a = arith.trunci %x : i32 to i8\n"
       "%r = arith.sitofp %a : i8 to f32",
       44},
      {"%x = arith.constant -1 : i8\n%r = arith.uitofp %x : i8 to f32", 255},
      // 2^24 + 1 has no f32.
      {"%x = arith.constant 16777217 : i32\n%r = arith.sitofp %x : i32 to f32",
       16777216},
      {"%x = arith.constant 1.00390625 : f32\n"
       "%b = arith.truncf %x : f32 to bf16\n%r = arith.extf %b : bf16 to f32",
       1},
      {"%x = arith.constant -2.7 : f32\n%a = arith.fptosi %x : f32 to i32\n"
       "%r = arith.sitofp %a : i32 to f32",
       -2},
      {"%x = arith.constant 1.0 : f32\n%a = arith.bitcast %x : f32 to i32\n"
       "%r = arith.sitofp %a : i32 to f32",
       1065353216},
      {"%x = arith.constant 0x7FC00000 : f32\n%y = arith.constant 2.0 : f32\n"
       "%r = arith.maxnumf %x, %y : f32",
       2},
      {"%x = arith.constant 0x7FC00000 : f32\n%y = arith.constant 2.0 : f32\n"
       "%z = arith.constant 3.0 : f32\n%c = arith.cmpf ult, %x, %y : f32\n"
       "%r = arith.select %c, %y, %z : f32",
       2},
      {"%x = arith.constant 3.0 : f32\n%y = arith.constant 4.0 : f32\n"
       "%r = math.fma %x, %y, %x : f32",
       15},
      {"%x = arith.constant 2.0 : f32\n%n = arith.constant 5 : i32\n"
       "%r = math.fpowi %x, %n : f32, i32",
       32},
  };
  for (auto &[body, value] : cases)
    EXPECT_NEAR(evaluate(body.c_str()), value, std::fabs(value) * 1e-6) << body;
}
