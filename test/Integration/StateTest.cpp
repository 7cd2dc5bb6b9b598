//===- StateTest.cpp - sinks, merges and appends --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include <cmath>

using namespace fi;
using namespace fi::test;

namespace {

//===----------------------------------------------------------------------===//
// Sinks
//===----------------------------------------------------------------------===//

TEST(SinkTest, InAttention) {
  for (int64_t group : {1, 2, 3}) {
    SCOPED_TRACE(group);
    AttentionText text;
    text.keyDim = text.valueDim = 16;
    text.group = group;
    std::string type = "tensor<" + std::to_string(2 * group) + "xf32>";
    text.clauses = "sink(%sink : " + type + ") mask(#fi.causal)";
    text.runArguments = ", %sink: " + type;
    std::vector<double> logits = {0.5, -3, 4, -INFINITY, 20, -40};
    logits.resize(2 * group);
    Case(text.get(), mixedBatch()).give("sink", floats(logits)).check();
  }
}

TEST(SinkTest, InBaseE) {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = "sink(%sink : tensor<4xf32>) normalise(#fi.softmax<base = e>) "
                 "mask(#fi.causal)";
  text.runArguments = ", %sink: tensor<4xf32>";
  Case(text.get(), mixedBatch())
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .check();
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

/// A shared prefix and the requests' own suffixes.
std::string cascade(const std::string &element, const std::string &base,
                    bool hasStatistic) {
  std::string lse = hasStatistic ? ", !lse" : "";
  return "#n = #fi.softmax<base = " + base +
         ">\n!ix = tensor<?xi32>\n!q = tensor<?x4x32x" + element +
         ">\n!lse = tensor<?x4xf32>\n!pool = memref<?x2x8x32x" + element +
         ">\n!kv = !fi.paged_kv<8x2x32x" + element +
         ", HND>\n!st = !fi.state<?x4x32xf32, #n>" +
         R"(
fi.program @cascade
    plan(%all: !ix, %qo: !ix, %pi: !ix, %pp: !ix, %pl: !ix, %si: !ix, %sp: !ix, %sl: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32, %sink: tensor<4xf32>) -> (!q)" +
         lse + R"() {
  %prefix = fi.view.paged %k, %v tables(%pi, %pp, %pl : !ix, !ix, !ix) : !pool, !pool -> !kv
  %suffix = fi.view.paged %k, %v tables(%si, %sp, %sl : !ix, !ix, !ix) origin(%first : !ix) : !pool, !pool -> !kv
  %shared = fi.attention %q rows(%all : !ix) over %prefix scale(%sc) normalise(#n) : !q over !kv -> !st
  %own = fi.attention %q rows(%qo : !ix) over %suffix scale(%sc) normalise(#n) mask(#fi.causal) : !q over !kv -> !st
  %s = fi.merge %shared, %own : !st
  %o)" + (hasStatistic ? ", %lse" : "") +
         R"( = fi.finalize %s sink(%sink : tensor<4xf32>) : !st -> !q)" + lse +
         "\n  fi.return %o" + (hasStatistic ? ", %lse" : "") + " : !q" + lse +
         "\n}\n";
}

class CascadeTest : public testing::TestWithParam<
                        std::tuple<const char *, const char *, bool>> {};

TEST_P(CascadeTest, EqualsReference) {
  auto [element, base, hasStatistic] = GetParam();
  Case test(cascade(element, base, hasStatistic), {});
  giveCascade(test)
      .setOptLevel(hasStatistic ? 0 : 3)
      .give("sink", floats({0.5, -3, 4, -INFINITY}))
      .check();
}

INSTANTIATE_TEST_SUITE_P(Merges, CascadeTest,
                         testing::Combine(testing::Values("f32", "bf16", "f16"),
                                          testing::Values("2", "e"),
                                          testing::Bool()));

TEST(MergeTest, OfThreeInOneOp) {
  Case(R"(!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!lse = tensor<?x2xf32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
fi.program @three plan(%qo: !ix, %a: !ix, %b: !ix, %c: !ix)
    run(%q: !q, %k: !t, %v: !t) -> (!q, !lse) {
  %va = fi.view.ragged %k, %v indptr(%a : !ix) : !t, !t -> !kv
  %vb = fi.view.ragged %k, %v indptr(%b : !ix) : !t, !t -> !kv
  %vc = fi.view.ragged %k, %v indptr(%c : !ix) : !t, !t -> !kv
  %sa = fi.attention %q rows(%qo : !ix) over %va scale(0.4) : !q over !kv -> !st
  %sb = fi.attention %q rows(%qo : !ix) over %vb scale(0.4) : !q over !kv -> !st
  %sc = fi.attention %q rows(%qo : !ix) over %vc scale(0.4) mask(#fi.causal) : !q over !kv -> !st
  %s = fi.merge %sa, %sb, %sc : !st
  %o, %l = fi.finalize %s : !st -> !q, !lse
  fi.return %o, %l : !q, !lse
}
)",
       {})
      .give("qo", integers({0, 3, 3, 80}))
      .give("a", integers({0, 100, 110, 150}))
      .give("b", integers({150, 150, 160, 160}))
      .give("c", integers({160, 163, 163, 163}))
      .check();
}

//===----------------------------------------------------------------------===//
// States of no keys
//===----------------------------------------------------------------------===//

/// Alone, finalised with a sink, merged in front of and behind others; with
/// rows by the plan, by a tensor, by a constant and by the type.
const char *const emptyText = R"(!ix = tensor<?xi32>
!q = tensor<?x2x8xBASE>
!lse = tensor<?x2xf32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
#n = #fi.softmax<base = e>
!st = !fi.state<?x2x8xf32, #n>
!fixed = !fi.state<70x2x8xf32, #n>
fi.program @empties plan(%n: index, %qo: !ix, %ip: !ix)
    run(%q: tensor<?x2x8xf32>, %k: !t, %v: !t, %sink: tensor<2xf32>)
    -> (!q, !lse, tensor<70x2x8xf32>, !q, !lse, !q) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %a = fi.empty rows(%n) : !st
  %o, %l = fi.finalize %a : !st -> !q, !lse
  %b = fi.empty : !fixed
  %p = fi.finalize %b sink(%sink : tensor<2xf32>) : !fixed -> tensor<70x2x8xf32>
  %zero = arith.constant 0 : index
  %d = tensor.dim %q, %zero : tensor<?x2x8xf32>
  %c = fi.empty rows(%d) : !st
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.4) normalise(#n)
      mask(#fi.causal) : tensor<?x2x8xf32> over !kv -> !st
  %m = fi.merge %c, %s, %c : !st
  %r, %rl = fi.finalize %m : !st -> !q, !lse
  %three = arith.constant 3 : index
  %e = fi.empty rows(%three) : !st
  %f = fi.merge %e, %e : !st
  %u = fi.finalize %f : !st -> !q
  fi.return %o, %l, %p, %r, %rl, %u : !q, !lse, tensor<70x2x8xf32>, !q, !lse, !q
}
)";

TEST(EmptyTest, EqualsReference) {
  for (const char *element : {"f32", "bf16"})
    for (int64_t rows : {0, 1, 130}) {
      SCOPED_TRACE(testing::Message() << element << ", " << rows);
      std::string text = emptyText;
      text.replace(text.find("BASE"), 4, element);
      Case(text, {{3, 9}, {40, 70}, {0, 0}, {1, 30}})
          .setOptLevel(0)
          .giveInteger("n", rows)
          .give("sink", floats({0.5, -3}))
          .check();
    }
}

TEST(EmptyTest, HasTheRowsOfWhatItIsMergedWith) {
  std::string text = R"(!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
fi.program @other plan(%n: index, %qo: !ix, %ip: !ix) run(%q: !q, %k: !t) -> (!q) {
  %kv = fi.view.ragged %k, %k indptr(%ip : !ix) : !t, !t -> !kv
  %a = fi.empty rows(%n) : !st
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.4) : !q over !kv -> !st
  %m = fi.merge %s, %a : !st
  %r = fi.finalize %m : !st -> !q
  fi.return %r : !q
}
)";
  Case(text, {{3, 9}}).setOptLevel(0).giveInteger("n", 3).check();
  EXPECT_EQ(Case(text, {{3, 9}}).setOptLevel(0).giveInteger("n", 2).getError(),
            "other_merge0: expected states and results of equal numbers of "
            "rows, but got 3 and, in 'temporary0', 2");
  EXPECT_EQ(Case(text, {{3, 9}}).setOptLevel(0).giveInteger("n", -2).getError(),
            "plan: operand 'n': expected a number of rows of at least 0 for "
            "other_empty0, but got -2");
}

/// A cut that the program states, with and without a sink behind it.
TEST(SegmentsTest, AreFolded) {
  for (const char *sink : {"", " sink(%sink : tensor<2xf32>)"}) {
    std::string text = R"(!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!lse = tensor<?x2xf32>
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!seg = !fi.state<?x2x8xf32, #fi.softmax<base = 2>, segmented>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
fi.program @cut plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t, %sink: tensor<2xf32>) -> (!q, !lse) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.4) mask(#fi.causal) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o, %l = fi.finalize %s)";
    Case(text + sink + " : !st -> !q, !lse\n  fi.return %o, %l : !q, !lse\n}\n",
         mixedBatch())
        .give("sink", floats({0.5, -2}))
        .check();
  }
}

//===----------------------------------------------------------------------===//
// Append
//===----------------------------------------------------------------------===//

struct Append {
  const char *name, *fresh, *pool, *order;
  bool isFused;
};
class AppendTest : public testing::TestWithParam<Append> {};

TEST_P(AppendTest, ThenAttention) {
  const Append &append = GetParam();
  std::string order = append.order;
  std::string fused = append.isFused ? "2x" : "";
  std::string pool = "memref<?x" + fused +
                     (order == "HND" ? "2x4x24x" : "4x2x24x") + append.pool +
                     ">";
  std::string kv = std::string("!fi.paged_kv<4x2x24x") + append.pool + ", " +
                   order + (append.isFused ? ", fused>" : ">");
  std::string fresh = std::string("tensor<?x2x24x") + append.fresh + ">";
  std::string pools = append.isFused ? "%k" : "%k, %v";
  std::string text =
      "!ix = tensor<?xi32>\n!q = tensor<?x4x24xf32>\n!lse = tensor<?x4xf32>\n"
      "!pool = " +
      pool + "\n!kv = " + kv + "\n!new = " + fresh +
      "\nfi.program @step plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: "
      "!ix)\n"
      "    run(%q: !q, %nk: !new, %nv: !new, %k: !pool" +
      (append.isFused ? "" : ", %v: !pool") +
      ") -> (!q, !lse) {\n"
      "  %kv = fi.view.paged " +
      pools + " tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool" +
      (append.isFused ? "" : ", !pool") +
      " -> !kv\n"
      "  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv\n"
      "  %o, %l = fi.attention %q rows(%qo : !ix) over %kv scale(0.2) "
      "mask(#fi.causal) : !q over !kv -> !q, !lse\n"
      "  fi.return %o, %l : !q, !lse\n}\n";
  Case(text, {{1, 1}, {1, 37}, {5, 5}, {3, 130}, {0, 20}, {0, 0}, {70, 150}})
      .check();
}

INSTANTIATE_TEST_SUITE_P(
    Types, AppendTest,
    testing::Values(Append{"f32", "f32", "f32", "HND", false},
                    Append{"f32_to_bf16", "f32", "bf16", "HND", false},
                    Append{"f32_to_f16", "f32", "f16", "NHD", false},
                    Append{"bf16", "bf16", "bf16", "NHD", false},
                    Append{"f16_to_bf16", "f16", "bf16", "HND", false},
                    Append{"bf16_to_f32_fused", "bf16", "f32", "NHD", true},
                    Append{"bf16_fused", "bf16", "bf16", "HND", true}),
    [](const auto &info) { return info.param.name; });

TEST(AppendTest, ThatAttentionReadsBeforeAndAfter) {
  Case(R"(!ix = tensor<?xi32>
!q = tensor<?x2x16xf32>
!pool = memref<?x2x4x16xf32>
!kv = !fi.paged_kv<4x2x16xf32, HND>
fi.program @twice plan(%qo: !ix, %oi: !ix, %op: !ix, %ol: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %n: !q, %k: !pool, %v: !pool) -> (!q, !q) {
  %old = fi.view.paged %k, %v tables(%oi, %op, %ol : !ix, !ix, !ix) : !pool, !pool -> !kv
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %a = fi.attention %q rows(%qo : !ix) over %old scale(0.3) : !q over !kv -> !q
  fi.append %n, %n rows(%qo : !ix) to %kv : !q, !q to !kv
  %b = fi.attention %q rows(%qo : !ix) over %kv scale(0.3) : !q over !kv -> !q
  fi.return %a, %b : !q, !q
}
)",
       {})
      .give("qo", integers({0, 3, 4}))
      .give("oi", integers({0, 2, 3}))
      .give("op", integers({3, 1, 0}))
      .give("ol", integers({3, 4}))
      .give("indptr", integers({0, 3, 5}))
      .give("pages", integers({3, 1, 4, 0, 2}))
      .give("last", integers({2, 1}))
      .check();
}

//===----------------------------------------------------------------------===//
// Destinations
//===----------------------------------------------------------------------===//

TEST(OutsTest, AreWrittenInPlace) {
  for (const char *element : {"f32", "bf16"}) {
    std::string e = element;
    Case("!ix = tensor<?xi32>\n!m = memref<?x4x16x" + e +
             ">\n!l = memref<?x4xf32>\n!t = tensor<?x2x16x" + e +
             ">\n!kv = !fi.ragged_kv<2x16x" + e +
             R"(>
fi.program @places plan(%qo: !ix, %indptr: !ix)
    run(%q: !m, %k: !t, %v: !t, %o: !m, %lse: !l) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !t, !t -> !kv
  fi.attention %q rows(%qo : !ix) over %kv scale(0.25) mask(#fi.causal) outs(%o, %lse : !m, !l) : !m over !kv
  fi.return
}
)",
         mixedBatch())
        .check();
  }
}

// A state finalised into places, by a stage of its own and by its attention's.
TEST(OutsTest, TakeFinalisedStates) {
  Case(R"(
!ix = tensor<?xi32>
!m = memref<?x4x16xf32>
!l = memref<?x4xf32>
!t = tensor<?x2x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
!st = !fi.state<?x4x16xf32, #fi.softmax<base = 2>>
fi.program @places plan(%qo: !ix, %indptr: !ix)
    run(%q: !m, %k: !t, %v: !t, %o: !m, %lse: !l) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !t, !t -> !kv
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) mask(#fi.causal) : !m over !kv -> !st
  fi.finalize %s outs(%o, %lse : !m, !l) : !st
  fi.return
}
)",
       mixedBatch())
      .check();
  Case(R"(
!ix = tensor<?xi32>
!m = memref<?x4x16xf32>
!l = memref<?x4xf32>
!t = tensor<?x2x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
fi.program @places plan(%qo: !ix, %indptr: !ix)
    run(%q: !m, %k: !t, %v: !t, %o: !m, %lse: !l) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !t, !t -> !kv
  fi.attention %q rows(%qo : !ix) over %kv scale(0.25) mask(#fi.causal) split(#fi.split<fixed = 64>) outs(%o, %lse : !m, !l) : !m over !kv
  fi.return
}
)",
       mixedBatch())
      .check();
}

// A tensor beside a result names memory that it may take, and says nothing
// else.
TEST(OutsTest, OfTensorsChangeNoResult) {
  Case(R"(
!ix = tensor<?xi32>
!q = tensor<?x4x16xf32>
!l = tensor<?x4xf32>
!t = tensor<?x2x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
fi.program @places plan(%qo: !ix, %indptr: !ix)
    run(%q: !q, %k: !t, %v: !t, %o: !q, %lse: !l) -> (!q, !l) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !t, !t -> !kv
  %r:2 = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) mask(#fi.causal) outs(%o, %lse : !q, !l) : !q over !kv -> !q, !l
  fi.return %r#0, %r#1 : !q, !l
}
)",
       mixedBatch())
      .check();
}

} // namespace
