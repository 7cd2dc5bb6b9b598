//===- VariantTest.cpp - masks, scores and captures -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "PackedMasks.h"

using namespace fi;
using namespace fi::test;

namespace {

AttentionText small(const std::string &clauses) {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = clauses;
  return text;
}

//===----------------------------------------------------------------------===//
// Short spellings
//===----------------------------------------------------------------------===//

struct Clause {
  const char *name, *text;
};
class ClauseTest : public testing::TestWithParam<Clause> {};

TEST_P(ClauseTest, EqualsReference) {
  Case(small(GetParam().text).get(), mixedBatch()).check();
}

INSTANTIATE_TEST_SUITE_P(
    Attributes, ClauseTest,
    testing::Values(
        Clause{"full", ""}, Clause{"causal", "mask(#fi.causal)"},
        Clause{"window", "mask(#fi.window<left = 17, right = 3>)"},
        Clause{"left", "mask(#fi.window<left = 100>)"},
        Clause{"right", "mask(#fi.window<right = 5>)"},
        Clause{"diagonal", "mask(#fi.window<left = 0, right = 0>)"},
        Clause{"farthest", "mask(#fi.window<left = 3, right = "
                           "9223372036854775807>)"},
        Clause{"farthest_left", "mask(#fi.window<left = 9223372036854775807, "
                                "right = 2>)"},
        Clause{"both", "mask(#fi.causal, #fi.window<left = 64>)"},
        Clause{"any", "mask(#fi.any<#fi.window<left = 3, right = 2>, "
                      "#fi.window<right = 0>>)"},
        Clause{"softcap", "score(#fi.softcap<30.0>) mask(#fi.causal)"},
        Clause{"hard_softcap", "score(#fi.softcap<0.5>)"},
        Clause{"base_e", "normalise(#fi.softmax<base = e>) mask(#fi.causal)"},
        Clause{"sum", "normalise(#fi.sum) mask(#fi.causal)"},
        Clause{"sigmoid", "normalise(#fi.sigmoid) mask(#fi.causal)"},
        Clause{"sigmoid_bias", "normalise(#fi.sigmoid<bias = -3.0>) "
                               "mask(#fi.window<left = 100>)"},
        Clause{"sigmoid_far", "normalise(#fi.sigmoid<bias = -200.0>)"},
        Clause{"sum_softcap", "normalise(#fi.sum) score(#fi.softcap<2.0>)"},
        Clause{
            "sum_fixed",
            "normalise(#fi.sum) mask(#fi.causal) split(#fi.split<fixed = 32>)"},
        Clause{"balanced", "mask(#fi.causal) split(#fi.split<balanced>)"},
        Clause{"fixed", "mask(#fi.causal) split(#fi.split<fixed = 32>)"}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Masks in regions
//===----------------------------------------------------------------------===//

TEST(MaskTest, Spellings) {
  const char *spellings[] = {
      // q >= k
      "%m = arith.cmpi sge, %qp, %kp : index\nfi.yield %m : i1",
      // not (k > q)
      "%g = arith.cmpi sgt, %kp, %qp : index\n%t = arith.constant true\n"
      "%m = arith.xori %g, %t : i1\nfi.yield %m : i1",
      "%d = index.sub %qp, %kp\n%z = index.constant 0\n"
      "%m = index.cmp sge(%d, %z)\nfi.yield %m : i1",
      "%c = arith.cmpi sle, %kp, %qp : index\n%t = arith.constant true\n"
      "%f = arith.constant false\n%m = arith.select %c, %t, %f : i1\n"
      "fi.yield %m : i1",
      // By scf.if, from the request's parity.
      kAlternatingMask};
  for (const char *spelling : spellings) {
    SCOPED_TRACE(spelling);
    Case(small(maskRegion(spelling)).get(), mixedBatch()).check();
  }
}

TEST(MaskTest, Dilated) {
  Case(small(maskRegion(kDilatedMask)).get(), mixedBatch()).check();
}

TEST(MaskTest, PrefixLM) {
  for (const char *index : {"i32", "i64"}) {
    AttentionText text = small(
        "captures(%pre = %prefix : tensor<?x" + std::string(index) + ">)\n" +
        maskRegion("%n = fi.load %pre[%req] : tensor<?x" + std::string(index) +
                   ">\n%i = arith.index_cast %n : " + index +
                   " to index\n"
                   "%in = arith.cmpi slt, %kp, %i : index\n"
                   "%c = arith.cmpi sle, %kp, %qp : index\n"
                   "%m = arith.ori %in, %c : i1\nfi.yield %m : i1"));
    text.planArguments = ", %prefix: tensor<?x" + std::string(index) + ">";
    // One entry is missing: it reads as 0.
    Case(text.get(), mixedBatch())
        .give("prefix", integers({0, 5, 2, 100, 7, 3, 70, 9, 1}, DType::I64))
        .check();
  }
}

/// Documents of 1 to 40 tokens, rising ids.
HostTensor documents(int64_t requests, int64_t keys, DType type) {
  HostTensor ids(type, {requests, keys});
  for (int64_t r = 0; r < requests; ++r)
    for (int64_t k = 0, id = 0, left = 3; k < keys; ++k, --left) {
      if (left == 0) {
        ++id;
        left = 1 + (id * 17 + r * 5) % 40;
      }
      ids.setInteger({r, k}, id);
    }
  return ids;
}

TEST(MaskTest, Documents) {
  for (bool isSorted : {false, true}) {
    SCOPED_TRACE(isSorted);
    AttentionText text =
        small("captures(%dc = %doc : tensor<?x?xi32>) mask(#fi.causal)\n" +
              maskRegion("%a = fi.load %dc[%req, %qp] : tensor<?x?xi32>\n"
                         "%c = fi.load %dc[%req, %kp] : tensor<?x?xi32>\n"
                         "%m = arith.cmpi eq, %a, %c : i32\nfi.yield %m : i1"));
    text.planArguments = std::string(", %doc: tensor<?x?xi32>") +
                         (isSorted ? " {fi.sorted}" : "");
    Case(text.get(), mixedBatch())
        .give("doc", documents(10, 200, DType::I32))
        .check();
  }
}

TEST(MaskTest, CapturedBits) {
  // Bits of a tree of drafts: [row of the batch, key].
  AttentionText text =
      small("captures(%bits = %allowed : tensor<?x?xi1>)\n" +
            maskRegion("%a = fi.load %bits[%req, %kp] : tensor<?x?xi1>\n"
                       "%c = arith.cmpi sle, %kp, %qp : index\n"
                       "%m = arith.andi %a, %c : i1\nfi.yield %m : i1"));
  text.planArguments = ", %allowed: tensor<?x?xi1>";
  HostTensor bits(DType::I1, {10, 200});
  for (int64_t r = 0; r < 10; ++r)
    for (int64_t k = 0; k < 200; ++k)
      bits.setInteger({r, k}, (r * 7 + k * k) % 3 != 0);
  Case(text.get(), mixedBatch()).give("allowed", bits).check();
}

TEST(MaskTest, RunTimeWindow) {
  AttentionText text = small(
      "captures(%w = %width : index)\n" +
      maskRegion("%e = arith.addi %kp, %w : index\n"
                 "%m = arith.cmpi sge, %e, %qp : index\nfi.yield %m : i1"));
  text.planArguments = ", %width: index";
  for (int64_t width : {0, 20, 1000})
    Case(text.get(), mixedBatch()).giveInteger("width", width).check();
}

TEST(MaskTest, PerHead) {
  // Query heads have windows of their own, KV heads an offset.
  AttentionText text = small(
      "captures(%w = %windows : tensor<4xi64>)\n" +
      maskRegion("%n = fi.load %w[%qh] : tensor<4xi64>\n"
                 "%i = arith.index_cast %n : i64 to index\n"
                 "%j = arith.addi %i, %kh : index\n"
                 "%e = arith.addi %kp, %j : index\n"
                 "%m = arith.cmpi sge, %e, %qp : index\nfi.yield %m : i1"));
  text.planArguments = ", %windows: tensor<4xi64>";
  Case(text.get(), mixedBatch())
      .give("windows", integers({1, 30, 500, 7}, DType::I64))
      .check();
}

TEST(MaskTest, DivisionByACapturedZero) {
  // A divisor that is 0 for requests that nobody guards is the reference's
  // error; here it is guarded, by select and in a branch that is not taken.
  AttentionText text =
      small("captures(%blocks = %block : tensor<?xi32>)\n" +
            maskRegion("%n = fi.load %blocks[%req] : tensor<?xi32>\n"
                       "%i = arith.index_cast %n : i32 to index\n"
                       "%z = arith.constant 0 : index\n"
                       "%some = arith.cmpi sgt, %i, %z : index\n"
                       "%m = scf.if %some -> i1 {\n"
                       "%a = arith.divsi %qp, %i : index\n"
                       "%c = arith.divsi %kp, %i : index\n"
                       "%same = arith.cmpi eq, %a, %c : index\n"
                       "scf.yield %same : i1\n} else {\n"
                       "%t = arith.constant true\nscf.yield %t : i1\n}\n"
                       "fi.yield %m : i1"));
  text.planArguments = ", %block: tensor<?xi32>";
  Case(text.get(), mixedBatch())
      .give("block", integers({4, 0, 1, 16, 0, 3, 0, 7}))
      .check();
}

//===----------------------------------------------------------------------===//
// Scores in regions
//===----------------------------------------------------------------------===//

const char *const kAlibi = "%d = arith.subi %kp, %qp : index\n"
                           "%i = arith.index_cast %d : index to i32\n"
                           "%f = arith.sitofp %i : i32 to f32\n"
                           "%m = fi.load %sl[%qh] : tensor<4xf32>\n"
                           "%b = arith.mulf %m, %f : f32\n"
                           "%t = arith.addf %s, %b : f32\nfi.yield %t : f32";

TEST(ScoreTest, Alibi) {
  AttentionText text = small("captures(%sl = %slope : tensor<4xf32>)\n" +
                             scoreRegion(kAlibi) + " mask(#fi.causal)");
  text.runArguments = ", %slope: tensor<4xf32>";
  Case(text.get(), mixedBatch())
      .give("slope", floats({0.5, 0.25, 0.125, 0.0625}))
      .check();
  text.query = text.keys = text.values = text.output = "bf16";
  Case(text.get(), mixedBatch())
      .give("slope", floats({0.5, 0.25, 0.125, 0.0625}))
      .check();
}

TEST(ScoreTest, Functions) {
  struct Function {
    const char *name, *text;
  };
  const Function functions[] = {
      {"tanh", "%t = math.tanh %s : f32\nfi.yield %t : f32"},
      {"exp", "%c = arith.constant 0.1 : f32\n%a = arith.mulf %s, %c : f32\n"
              "%t = math.exp %a : f32\nfi.yield %t : f32"},
      {"log", "%a = math.absf %s : f32\n%c = arith.constant 1.0 : f32\n"
              "%d = arith.addf %a, %c : f32\n%t = math.log %d : f32\n"
              "fi.yield %t : f32"},
      {"sine", "%t = math.sin %s : f32\nfi.yield %t : f32"},
      {"root", "%a = math.absf %s : f32\n%t = math.sqrt %a : f32\n"
               "fi.yield %t : f32"},
      {"division", "%c = arith.constant 3.0 : f32\n"
                   "%t = arith.divf %s, %c : f32\nfi.yield %t : f32"},
      {"exp2", "%c = arith.constant 0.1 : f32\n%a = arith.mulf %s, %c : f32\n"
               "%t = math.exp2 %a : f32\nfi.yield %t : f32"},
      {"fma", "%c = arith.constant 0.5 : f32\n%t = math.fma %s, %c, %c : f32\n"
              "fi.yield %t : f32"},
      {"clamp", "%c = arith.constant 0.5 : f32\n"
                "%t = arith.minimumf %s, %c : f32\nfi.yield %t : f32"},
      {"maxnum", "%c = arith.constant -0.5 : f32\n"
                 "%t = arith.maxnumf %s, %c : f32\nfi.yield %t : f32"},
      {"compare", "%c = arith.constant 0.0 : f32\n"
                  "%g = arith.cmpf ogt, %s, %c : f32\n"
                  "%n = arith.negf %s : f32\n"
                  "%t = arith.select %g, %s, %n : f32\nfi.yield %t : f32"},
      {"narrow", "%n = arith.truncf %s : f32 to bf16\n"
                 "%t = arith.extf %n : bf16 to f32\n"
                 "%z = arith.constant 0.0 : f32\n%m = arith.mulf %t, %z : f32\n"
                 "%r = arith.addf %s, %m : f32\nfi.yield %r : f32"},
      {"integers",
       "%a = arith.index_cast %kp : index to i64\n"
       "%c = arith.constant 5 : i64\n%r = arith.remsi %a, %c : i64\n"
       "%f = arith.sitofp %r : i64 to f32\n"
       "%t = arith.addf %s, %f : f32\nfi.yield %t : f32"},
      {"shift", "%a = arith.index_cast %kp : index to i32\n"
                "%c = arith.constant 3 : i32\n%r = arith.shrsi %a, %c : i32\n"
                "%x = arith.xori %r, %c : i32\n"
                "%f = arith.sitofp %x : i32 to f32\n"
                "%t = arith.addf %s, %f : f32\nfi.yield %t : f32"},
      {"hidden", // A score of -inf hides a key as a mask does.
       "%c = arith.constant 2 : index\n%r = arith.remui %kp, %c : index\n"
       "%z = arith.constant 0 : index\n%e = arith.cmpi eq, %r, %z : index\n"
       "%i = arith.constant 0xFF800000 : f32\n"
       "%t = arith.select %e, %i, %s : f32\nfi.yield %t : f32"},
      {"constant", "%t = arith.constant 1.5 : f32\nfi.yield %t : f32"}};
  static const Planned plans[] = {{2}, {4, SplitChoice::Fixed, 64}};
  for (const Function &function : functions) {
    SCOPED_TRACE(function.name);
    Case(small(scoreRegion(function.text) + " mask(#fi.causal)").get(),
         {{1, 37}, {5, 5}, {40, 150}, {9, 4}})
        .setOptLevel(0)
        .check(plans);
  }
}

TEST(ScoreTest, CapturesOfEveryType) {
  struct Capture {
    const char *element;
    DType type;
    const char *toFloat;
  };
  const Capture captures[] = {
      {"f32", DType::F32, ""},
      {"f16", DType::F16, "%f = arith.extf %v : f16 to f32\n"},
      {"bf16", DType::BF16, "%f = arith.extf %v : bf16 to f32\n"},
      {"i32", DType::I32, "%f = arith.sitofp %v : i32 to f32\n"},
      {"i64", DType::I64, "%f = arith.sitofp %v : i64 to f32\n"},
      {"i8", DType::I8, "%f = arith.sitofp %v : i8 to f32\n"},
      {"i1", DType::I1, "%f = arith.uitofp %v : i1 to f32\n"},
      {"index", DType::I64,
       "%i = arith.index_cast %v : index to i64\n"
       "%f = arith.sitofp %i : i64 to f32\n"}};
  static const Planned plans[] = {{2}, {4, SplitChoice::Fixed, 64}};
  for (const Capture &capture : captures) {
    SCOPED_TRACE(capture.element);
    std::string type = "tensor<4x?x" + std::string(capture.element) + ">";
    // By head and position, which runs out of range: those read 0.
    AttentionText text =
        small("captures(%c = %bias : " + type + ")\n" +
              scoreRegion("%v = fi.load %c[%qh, %kp] : " + type + "\n" +
                          capture.toFloat + "%t = arith.addf %s, " +
                          (*capture.toFloat ? "%f" : "%v") +
                          " : f32\nfi.yield %t : f32") +
              " mask(#fi.causal)");
    text.runArguments = ", %bias: " + type;
    HostTensor bias(capture.type, {4, 120});
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t k = 0; k < 120; ++k) {
        int64_t value = (h * 31 + k * 7) % 9 - 4;
        if (isFloat(capture.type))
          bias.setFloat({h, k}, value * 0.25);
        else
          bias.setInteger({h, k},
                          capture.type == DType::I1 ? value & 1 : value);
      }
    Case(text.get(), mixedBatch())
        .give("bias", bias)
        .setOptLevel(0)
        .check(plans);
  }
}

TEST(ScoreTest, ScalarsOfEveryType) {
  AttentionText text = small(
      "captures(%a = %fa : f32, %c = %ia : i32, %d = %ja : i64, %e = %xa : "
      "index)\n" +
      scoreRegion("%x = arith.mulf %s, %a : f32\n"
                  "%w = arith.extsi %c : i32 to i64\n"
                  "%y = arith.addi %w, %d : i64\n"
                  "%i = arith.index_cast %e : index to i64\n"
                  "%z = arith.addi %y, %i : i64\n"
                  "%f = arith.sitofp %z : i64 to f32\n"
                  "%p = arith.index_cast %kp : index to i64\n"
                  "%r = arith.remsi %p, %z : i64\n"
                  "%g = arith.sitofp %r : i64 to f32\n"
                  "%q = arith.divf %g, %f : f32\n"
                  "%t = arith.addf %x, %q : f32\nfi.yield %t : f32"));
  text.planArguments = ", %ia: i32, %ja: i64";
  text.runArguments = ", %fa: f32, %xa: index, %sc: f32";
  text.scale = "%sc";
  Case(text.get(), mixedBatch())
      .giveNumber("fa", 0.75)
      .giveInteger("ia", 3)
      .giveInteger("ja", -2)
      .giveInteger("xa", 12)
      .giveNumber("sc", -0.3)
      .check();
}

TEST(ScoreTest, OfPositionsAlone) {
  // Does not depend on the product, only on one of row and key.
  for (const char *of : {"%kp", "%qp", "%kh", "%qh", "%req"}) {
    SCOPED_TRACE(of);
    std::string by = of;
    Case(small(scoreRegion("%i = arith.index_cast " + by +
                           " : index to i32\n%c = arith.constant 7 : i32\n"
                           "%r = arith.remsi %i, %c : i32\n"
                           "%t = arith.sitofp %r : i32 to f32\n"
                           "fi.yield %t : f32"))
             .get(),
         {{1, 37}, {5, 5}, {40, 150}, {9, 4}})
        .check();
  }
}

/// Editing the text of a region changes the reference and the CPU alike.
TEST(ScoreTest, EditedTextChangesBoth) {
  auto text = [](const char *factor) {
    return small(scoreRegion("%c = arith.constant " + std::string(factor) +
                             " : f32\n%t = arith.mulf %s, %c : f32\n"
                             "fi.yield %t : f32") +
                 " mask(#fi.causal)")
        .get();
  };
  Case before(text("1.0"), {{4, 60}}), after(text("-2.5"), {{4, 60}});
  before.check();
  after.check();
  std::vector<HostTensor> cpu[] = {before.runOnCPU({2}), after.runOnCPU({2})};
  std::vector<HostTensor> reference[] = {before.runReference(),
                                         after.runReference()};
  int64_t changed = 0;
  double least = 1e-3;
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t d = 0; d < 16; ++d) {
        double onCPU = cpu[1][0].getFloat({row, head, d}) -
                       cpu[0][0].getFloat({row, head, d});
        double inReference = reference[1][0].getFloat({row, head, d}) -
                             reference[0][0].getFloat({row, head, d});
        EXPECT_NEAR(onCPU, inReference, 1e-4);
        changed += std::abs(inReference) > least;
      }
  EXPECT_GT(changed, 4 * 4 * 16 * 9 / 10);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

TEST(PositionsTest, Origin) {
  for (const char *index : {"i32", "i64"}) {
    AttentionText text = small("mask(#fi.window<left = 40, right = 0>)");
    text.hasOrigin = true;
    text.index = index;
    Case(text.get(), mixedBatch())
        .give("origin",
              integers({0, 5, 100, 7, 9, 1, 33, 2, 4, 1000, 77}, DType::I64))
        .check();
  }
}

TEST(PositionsTest, At) {
  // Drafts of a tree stand at equal positions; rows in any order.
  for (const char *index : {"i32", "i64"}) {
    AttentionText text = small("mask(#fi.causal)");
    text.hasPositions = true;
    text.index = index;
    std::vector<int64_t> positions;
    int64_t row = 0;
    for (Request request : mixedBatch())
      for (int64_t i = 0; i < request.rows; ++i, ++row)
        positions.push_back((row * 37 + i) % (request.keys + 3) - 1);
    Case(text.get(), mixedBatch())
        .give("pos", integers(positions, DType::I64))
        .check();
  }
}

TEST(PositionsTest, AtAndOrigin) {
  AttentionText text = small("mask(#fi.causal, #fi.window<left = 30>)");
  text.hasPositions = text.hasOrigin = true;
  std::vector<int64_t> positions;
  for (Request request : mixedBatch())
    for (int64_t i = 0; i < request.rows; ++i)
      positions.push_back(50 + request.keys - 2 * i);
  Case(text.get(), mixedBatch())
      .give("pos", integers(positions))
      .give("origin", integers({50, 51, 50, 50, 50, 50, 49, 50, 50, 50}))
      .check();
}

// The lower 32 bits of positions are what the mask of a region compares, where
// they do not hold them, too: on the way to index and back nothing is lost.
TEST(PositionsTest, FarFromZeroIn32Bits) {
  AttentionText text = small(R"(mask(%req: index, %qh: index, %kh: index,
         %qp: index, %kp: index) {
      %k = arith.index_cast %kp : index to i32
      %same = arith.maxsi %k, %k : i32
      %back = arith.index_cast %same : i32 to index
      %end = arith.constant 40 : index
      %visible = arith.cmpi slt, %back, %end : index
      fi.yield %visible : i1
    })");
  text.hasOrigin = true;
  text.index = "i64";
  constexpr int64_t kFar = int64_t(1) << 31;
  std::vector<int64_t> origins = {0,         kFar - 50, kFar,    2 * kFar - 20,
                                  2 * kFar,  -kFar - 9, -kFar,   kFar << 16,
                                  kFar - 30, -20,       2 * kFar};
  Case(text.get(), mixedBatch())
      .give("origin", integers(origins, DType::I64))
      .check();
}

TEST(PackedMasks, OfWordsAndBytes) {
  for (int bits : {512, 256, 128}) {
    SCOPED_TRACE(bits);
    AttentionText text;
    text.keyDim = text.valueDim = 32;
    text.target = "#fi.target<cpu, vector_bits = " + std::to_string(bits) + ">";
    checkPackedMasks(
        text, "", {{1, 37}, {23, 70}, {0, 20}, {4, 0}, {9, 4}, {1, 100}},
        [](Case &) {}, everyPlan());
  }
}

} // namespace
