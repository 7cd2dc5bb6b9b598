//===- GPUBackendTest.cpp - programs on the emulated backend --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a user of `--backend=emulated:CHIP` gets: programs without a schedule,
// by the executor that the tools use, on memory of the device, with the
// emulator's checks, against the reference. With FI_TEST_GPU=cuda in the
// environment they run on that backend instead.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "GPUVariants.h"
#include <cmath>

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

namespace {

AttentionText attention(const std::string &element) {
  AttentionText text;
  text.query = text.keys = text.values = text.output = element;
  text.clauses = "mask(#fi.causal)";
  return text;
}

/// Decoding, chunks and whole prompts, more rows than keys, requests without
/// rows or keys, at sizes that an emulator bears.
std::vector<Request> batch() {
  return {{1, 1}, {1, 137}, {5, 5}, {23, 70}, {0, 20},
          {4, 0}, {9, 4},   {0, 0}, {70, 90}, {1, 40}};
}

llvm::ArrayRef<Planned> plans() {
  static const Planned all[] = {{0, SplitChoice::None},
                                {5, SplitChoice::Balanced},
                                {2, SplitChoice::Fixed, 64}};
  return all;
}

class EmulatedBackend
    : public testing::TestWithParam<std::tuple<const char *, Variant>> {};

TEST_P(EmulatedBackend, EqualsReference) {
  auto [element, variant] = GetParam();
  AttentionText text = attention(element);
  variant.change(text);
  std::vector<Request> requests = batch();
  if (text.view == View::Contiguous)
    requests = {{23, 140}};
  Case test(text.get(), requests);
  if (text.isPageDynamic)
    test.setPageSize(8);
  test.on(on("sm_80")).check(plans());
}

std::string
nameOf(const testing::TestParamInfo<std::tuple<const char *, Variant>> &info) {
  return std::get<1>(info.param).name + "_" + std::get<0>(info.param);
}

INSTANTIATE_TEST_SUITE_P(
    Views, EmulatedBackend,
    testing::Combine(
        testing::Values("f16", "bf16"),
        testing::Values(
            Variant{"contiguous_nhd",
                    [](AttentionText &t) {
                      t.view = View::Contiguous;
                      t.isHND = false;
                    }},
            Variant{"contiguous_hnd",
                    [](AttentionText &t) { t.view = View::Contiguous; }},
            Variant{"ragged_i64",
                    [](AttentionText &t) {
                      t.view = View::Ragged;
                      t.isHND = false;
                      t.index = "i64";
                    }},
            Variant{"page1_hnd", [](AttentionText &t) { t.page = 1; }},
            Variant{"page4_nhd",
                    [](AttentionText &t) {
                      t.page = 4;
                      t.isHND = false;
                    }},
            Variant{"page16_i64", [](AttentionText &t) { t.index = "i64"; }},
            Variant{"page17", [](AttentionText &t) { t.page = 17; }},
            Variant{"page256_nhd",
                    [](AttentionText &t) {
                      t.page = 256;
                      t.isHND = false;
                    }},
            Variant{"any_page_nhd",
                    [](AttentionText &t) {
                      t.isPageDynamic = true;
                      t.isHND = false;
                    }},
            Variant{"dense", [](AttentionText &t) { t.view = View::Dense; }},
            Variant{"fused_nhd",
                    [](AttentionText &t) {
                      t.isFused = true;
                      t.isHND = false;
                    }},
            Variant{"origin_positions",
                    [](AttentionText &t) {
                      t.hasOrigin = true;
                      t.hasPositions = true;
                    }})),
    nameOf);

/// Head dims and groups.
std::function<void(AttentionText &)> heads(int64_t key, int64_t value,
                                           int64_t kvHeads, int64_t group) {
  return [=](AttentionText &t) {
    t.keyDim = key;
    t.valueDim = value;
    t.kvHeads = kvHeads;
    t.group = group;
  };
}
INSTANTIATE_TEST_SUITE_P(
    Heads, EmulatedBackend,
    testing::Combine(
        testing::Values("f16", "bf16"),
        testing::Values(Variant{"d8_g1", heads(8, 8, 2, 1)},
                        Variant{"d64_g8", heads(64, 64, 1, 8)},
                        Variant{"d72_g3", heads(72, 72, 1, 3)},
                        Variant{"d80_g1", heads(80, 80, 2, 1)},
                        Variant{"d96_g4", heads(96, 96, 1, 4)},
                        Variant{"d128_g1", heads(128, 128, 2, 1)},
                        Variant{"d128_g4", heads(128, 128, 2, 4)},
                        Variant{"d128_g16", heads(128, 128, 1, 16)},
                        Variant{"d192_v128", heads(192, 128, 1, 2)},
                        Variant{"d256_g2", heads(256, 256, 1, 2)},
                        Variant{"d512_g1", heads(512, 512, 1, 1)},
                        Variant{"d64_g71", heads(64, 64, 1, 71)})),
    nameOf);

std::function<void(AttentionText &)> clauses(const std::string &text) {
  return [=](AttentionText &t) { t.clauses = text; };
}
INSTANTIATE_TEST_SUITE_P(
    Clauses, EmulatedBackend,
    testing::Combine(
        testing::Values("f16", "bf16"),
        testing::Values(
            Variant{"full", clauses("")},
            Variant{"window",
                    clauses("mask(#fi.window<left = 30, right = 0>)")},
            Variant{
                "sinks_and_window",
                clauses(maskRegion("%c = arith.cmpi sle, %kp, %qp : index\n"
                                   "%four = arith.constant 4 : index\n"
                                   "%f = arith.cmpi slt, %kp, %four : index\n"
                                   "%w = arith.constant 20 : index\n"
                                   "%d = arith.subi %qp, %kp : index\n"
                                   "%n = arith.cmpi sle, %d, %w : index\n"
                                   "%a = arith.ori %f, %n : i1\n"
                                   "%m = arith.andi %c, %a : i1\n"
                                   "fi.yield %m : i1"))},
            Variant{"softcap_base_e",
                    clauses("normalise(#fi.softmax<base = e>) "
                            "score(#fi.softcap<20.0>) mask(#fi.causal)")},
            Variant{"sum", clauses("normalise(#fi.sum) mask(#fi.causal)")},
            Variant{"sigmoid",
                    clauses("normalise(#fi.sigmoid) mask(#fi.causal)")},
            Variant{"sigmoid_bias",
                    clauses("normalise(#fi.sigmoid<bias = -3.0>)")},
            Variant{
                "alibi",
                clauses(scoreRegion("%d = arith.subi %kp, %qp : index\n"
                                    "%i = arith.index_cast %d : index to i32\n"
                                    "%f = arith.sitofp %i : i32 to f32\n"
                                    "%h = arith.index_cast %qh : index to i32\n"
                                    "%g = arith.sitofp %h : i32 to f32\n"
                                    "%e = math.exp2 %g : f32\n"
                                    "%m = arith.divf %f, %e : f32\n"
                                    "%t = arith.addf %s, %m : f32\n"
                                    "fi.yield %t : f32") +
                        " mask(#fi.causal)")},
            Variant{"nothing_visible",
                    clauses(maskRegion("%m = arith.constant false\n"
                                       "fi.yield %m : i1"))},
            Variant{"per_head",
                    clauses(maskRegion("%c = arith.cmpi sle, %kp, %qp : index\n"
                                       "%w = arith.constant 16 : index\n"
                                       "%r = arith.muli %qh, %w : index\n"
                                       "%d = arith.subi %qp, %kp : index\n"
                                       "%n = arith.cmpi sle, %d, %r : index\n"
                                       "%m = arith.andi %c, %n : i1\n"
                                       "fi.yield %m : i1"))})),
    nameOf);

/// Chips differ in shared memory, and schedules with it.
TEST(EmulatedChips, EqualReference) {
  for (const char *chip : {"sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a",
                           "sm_103a", "sm_110a", "sm_120a", "sm_121a"})
    for (int64_t dim : {64, 128, 256, 512}) {
      // Newer instructions, older limits: one size will do.
      if (llvm::StringRef(chip).starts_with("sm_1") && dim != 128)
        continue;
      SCOPED_TRACE(testing::Message() << chip << ", " << dim);
      AttentionText text = attention("bf16");
      heads(dim, dim, 1, 2)(text);
      Case(text.get(), {{3, 90}, {1, 30}})
          .on(on(chip))
          .check({{2, SplitChoice::Fixed, 64}});
    }
}

/// The program's own rule of splitting, and rows behind the last request.
TEST(EmulatedBackend, PaddingRowsAndFixedSplits) {
  AttentionText text = attention("f16");
  text.clauses += " split(#fi.split<fixed = 64>)";
  Case(text.get(), batch())
      .adjust([](const Signature &signature, std::vector<HostValue> &values) {
        for (auto [info, value] : llvm::zip(signature.arguments, values))
          if (info.name == "q") {
            llvm::SmallVector<int64_t> shape(value.getTensor().getShape());
            shape[0] += 5;
            value = HostValue(HostTensor(DType::F16, shape));
          }
      })
      .on(on("sm_80"))
      .check({{3}});
}

/// More pieces than meet at once: 38 by two meetings, 540 by three, of kernels
/// with and without groups of warps. CTAs come in a seeded order: in the usual
/// one the first meeting is over before the next begins, and shared counters
/// pass.
TEST(EmulatedBackend, PiecesMeetInTrees) {
  for (const char *shape :
       {"warps = 1, key_warps = 4", "warps = 2", "warps = 2, key_warps = 2"}) {
    SCOPED_TRACE(shape);
    AttentionText text = attention("f16");
    heads(32, 32, 1, 4)(text);
    text.clauses = "mask(#fi.causal) schedules([#fi.schedule<tile_rows = " +
                   std::string(shape[8] == '1' ? "16" : "32") +
                   ", tile_keys = 16, " + shape + ", stages = 2, lanes = 4>])";
    Case(text.get(), {{1, 600}, {2, 8640}, {1, 20}})
        .on(on("sm_80:seed=7"))
        .check({{8, SplitChoice::Fixed, 16}});
  }
  // 513 pieces: the last of them is a part by itself at every level, and has no
  // counter but its own; the next one is another head's.
  AttentionText text = attention("f16");
  heads(32, 32, 2, 2)(text);
  text.clauses = "mask(#fi.causal) schedules([#fi.schedule<tile_rows = 16, "
                 "tile_keys = 16, warps = 1, key_warps = 2, stages = 2, "
                 "lanes = 4>])";
  Case(text.get(), {{1, 8200}})
      .on(on("sm_80:seed=7"))
      .check({{8, SplitChoice::Fixed, 16}});
}

/// A text of StateTest.cpp in another element type.
std::string with(std::string text, const std::string &element) {
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, element);
  return text;
}

class EmulatedStages : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Types, EmulatedStages,
                         testing::Values("f16", "bf16", "f32"));

/// Rows of a plan argument, of the type, of a run argument and a constant; also
/// as results of their own.
TEST_P(EmulatedStages, EmptyStates) {
  for (int64_t rows : {0, 1, 130}) {
    SCOPED_TRACE(rows);
    Case(with(R"(!ix = tensor<?xi32>
!q = tensor<?x2x8xTYPE>
!lse = tensor<?x2xf32>
!t = tensor<?x1x8xTYPE>
!kv = !fi.ragged_kv<1x8xTYPE>
#n = #fi.softmax<base = e>
!st = !fi.state<?x2x8xf32, #n>
!fixed = !fi.state<70x2x8xf32, #n>
!seventy = tensor<70x2x8xTYPE>
fi.program @empties plan(%n: index, %qo: !ix, %ip: !ix)
    run(%q: !q, %k: !t, %v: !t, %sink: tensor<2xf32>)
    -> (!q, !lse, !seventy, !q, !lse, !q) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %a = fi.empty rows(%n) : !st
  %o, %l = fi.finalize %a sink(%sink : tensor<2xf32>) : !st -> !q, !lse
  %b = fi.empty : !fixed
  %p = fi.finalize %b sink(%sink : tensor<2xf32>) : !fixed -> !seventy
  %zero = arith.constant 0 : index
  %d = tensor.dim %q, %zero : !q
  %c = fi.empty rows(%d) : !st
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.4) normalise(#n)
      mask(#fi.causal) : !q over !kv -> !st
  %m = fi.merge %c, %s, %c : !st
  %r, %rl = fi.finalize %m : !st -> !q, !lse
  %three = arith.constant 3 : index
  %e = fi.empty rows(%three) : !st
  %f = fi.merge %e, %e : !st
  %u = fi.finalize %f : !st -> !q
  fi.return %o, %l, %p, %r, %rl, %u : !q, !lse, !seventy, !q, !lse, !q
}
)",
              GetParam()),
         {{3, 9}, {40, 70}, {0, 0}, {1, 30}})
        .giveInteger("n", rows)
        .give("sink", floats({0.5, -3}))
        .on(on("sm_80"))
        .check(plans());
  }
}

TEST_P(EmulatedStages, Segments) {
  for (const char *sink : {"", " sink(%sink : tensor<2xf32>)"}) {
    std::string text = R"(!ix = tensor<?xi32>
!q = tensor<?x2x16xTYPE>
!lse = tensor<?x2xf32>
!t = tensor<?x1x16xTYPE>
!kv = !fi.ragged_kv<1x16xTYPE>
!seg = !fi.state<?x2x16xf32, #fi.softmax<base = 2>, segmented>
!st = !fi.state<?x2x16xf32, #fi.softmax<base = 2>>
fi.program @cut plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t, %sink: tensor<2xf32>) -> (!q, !lse) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.4) mask(#fi.causal) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o, %l = fi.finalize %s)";
    Case(with(text + sink +
                  " : !st -> !q, !lse\n  fi.return %o, %l : !q, !lse\n}\n",
              GetParam()),
         batch())
        .give("sink", floats({0.5, -2}))
        .on(on("sm_80"))
        .check(plans());
  }
}

TEST_P(EmulatedStages, Places) {
  const char *head = R"(!ix = tensor<?xi32>
!m = memref<?x4x16xTYPE>
!l = memref<?x4xf32>
!t = tensor<?x2x16xTYPE>
!kv = !fi.ragged_kv<2x16xTYPE>
!st = !fi.state<?x4x16xf32, #fi.softmax<base = 2>>
fi.program @places plan(%qo: !ix, %indptr: !ix)
    run(%q: !m, %k: !t, %v: !t, %o: !m, %lse: !l) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !t, !t -> !kv
)";
  for (const char *body :
       {"  fi.attention %q rows(%qo : !ix) over %kv scale(0.25) "
        "mask(#fi.causal) outs(%o, %lse : !m, !l) : !m over !kv\n",
        "  %s = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) "
        "mask(#fi.causal) : !m over !kv -> !st\n"
        "  fi.finalize %s outs(%o, %lse : !m, !l) : !st\n"})
    Case(with(std::string(head) + body + "  fi.return\n}\n", GetParam()),
         batch())
        .on(on("sm_80"))
        .check(plans());
}

TEST_P(EmulatedStages, Append) {
  for (const char *layout : {"HND", "NHD", "HND, fused"}) {
    SCOPED_TRACE(layout);
    bool isFused = std::string(layout).size() > 3, isHND = layout[0] == 'H';
    std::string pool = std::string("memref<?x") + (isFused ? "2x" : "") +
                       (isHND ? "2x4" : "4x2") + "x24xTYPE>";
    std::string pools = isFused ? "%k" : "%k, %v",
                types = isFused ? "!pool" : "!pool, !pool";
    Case(
        with("!ix = tensor<?xi64>\n!q = tensor<?x4x24xTYPE>\n"
             "!lse = tensor<?x4xf32>\n!pool = " +
                 pool + "\n!kv = !fi.paged_kv<4x2x24xTYPE, " + layout +
                 ", index = i64>\n!new = tensor<?x2x24xTYPE>\n"
                 "fi.program @step plan(%qo: !ix, %indptr: !ix, %pages: !ix, "
                 "%last: !ix)\n    run(%q: !q, %nk: !new, %nv: !new, %k: "
                 "!pool" +
                 (isFused ? "" : ", %v: !pool") +
                 ") -> (!q, !lse) {\n  %kv = fi.view.paged " + pools +
                 " tables(%indptr, %pages, %last : !ix, !ix, !ix) : " + types +
                 " -> !kv\n  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, "
                 "!new to !kv\n  %o, %l = fi.attention %q rows(%qo : !ix) over "
                 "%kv scale(0.2) mask(#fi.causal) : !q over !kv -> !q, !lse\n"
                 "  fi.return %o, %l : !q, !lse\n}\n",
             GetParam()),
        {{1, 1}, {1, 37}, {5, 5}, {3, 130}, {0, 20}, {0, 0}, {70, 150}})
        .on(on("sm_80"))
        .check(plans());
  }
}

/// What there is no code for.
TEST(EmulatedErrors, AreSentences) {
  if (std::getenv("FI_TEST_GPU"))
    GTEST_SKIP() << "they name emulated chips";
  auto expect = [](const AttentionText &text, const std::string &sentence) {
    std::string error = Case(text.get(), {{3, 20}}).on(on("sm_80")).getError();
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
  };
  AttentionText text = attention("f16");
  text.target = "#fi.target<sm_90a>";
  expect(text, "compiled for sm_90a");
  text = attention("f16");
  text.clauses += " schedules([#fi.schedule<tile_rows = 128, tile_keys = 512, "
                  "warps = 4, stages = 4, lanes = 4>])";
  expect(text, "bytes of shared memory, but they take");
}

} // namespace
